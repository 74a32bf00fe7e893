"""Random combinations of what tables try one by one raise ValueError or TypeError, or work.

The records, targets and the judge are those of test_charged_or_refused.py. A case is a function of
its seed alone, which is in every message.
"""

import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flat import SOLVERS as STATED
from test_charged_or_refused import LABELS, TARGET, Ledger, N, kinds_of_x, targets

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box, L1Ball, L2Ball
from dpcd_sklearn.solvers import CD, FrankWolfe
from dpcd_sklearn.testing import ReproducibleNoise

MOST_SECONDS = 10.0  # of the processor: other work of the machine does not count
ALLOWED = (
    "UserWarning: alpha=",  # is not used where the penalty has no strength
    "UserWarning: feature ",  # has numbers too large or too small for a model: it was released
    "UserWarning: n=",  # too few for a choice among strengths
    "BudgetExceededError: this fit would cost epsilon=9.0072e+15",  # an absurd one, refused
    "UserWarning: The number of unique classes is greater than 50%",
)

NAN, INF = math.nan, math.inf
HUGE = [1.7e308, 1e300, 1e155, 1e30, 1e15, 10**400, Fraction(10**400), 2**63, 2**53]
TINY = [5e-324, 1e-320, 1e-300, 1e-155, 1e-30, 1e-15, Fraction(1, 10**400), Fraction(1, 3)]
WRONG = [NAN, INF, -INF, 0, -1, -0.0, -1e-300, -(10**400), True, None, "1", "auto", 1j, [1.0], {}]
WRONG += [np.float64(NAN), Decimal("0.5"), object(), np.bool_(True), b"1", np.array(0.5), (), "\0"]
ABSURD = HUGE + TINY + WRONG
# Calls that would take hours are not tried: they are neither refused nor absurd.
LONG = {"max_iter": [1e15, 2**53, 1e30], "n_inner": [2**53], "sampling_rate": TINY[:-1]}


def pick(rng, values):
    return values[rng.integers(len(values))]


def some_of(rng, choices, share):
    """A random subset of parameters: mostly sound values, some absurd ones."""
    params = {}
    for name, sound in choices.items():
        if rng.random() < share:
            params[name] = pick(rng, sound)
        if rng.random() < 0.25 * share:
            value = pick(rng, HUGE + TINY if rng.random() < 0.6 else ABSURD)
            if not any(value is long or value == long for long in LONG.get(name, ())):
                params[name] = value
    return params


# ---- parameters ---------------------------------------------------------------------------------

SAMPLINGS = ["full", "uniform", "importance", "block", "block-importance", "nice"]
RULES = ["gs-s", "gs-r", "gs-q"]
EPSILONS = [1.0, 0.1, 10.0, INF, 1e-6, 1e-3, 100.0]
COMMON = {
    "epsilon": EPSILONS,
    "delta": ["auto", 1e-5, 1e-2, 0.5, 1e-300, 1 - 1e-16],
    "clip": ["auto", 1.0, 1e-3, 1e3],
    "max_iter": ["auto", 1, 3, 0.1, 7.5],
    "fit_intercept": [True, False],
    "feature_bounds": [None, (-1, 1), (0, 1), (-1e8, 1e8), (-5e-324, 5e-324), (-1e308, 1e308)]
    + [(0, 0), ([0, -1], [1, 1]), (10**400, 1), (NAN, 1)],
    "feature_scale": [None, 1.0, 0.3, 1e-9, 1e9, [1, 2], "private", "private"],
    "row_norm_bound": [None, 1.0, 100.0, 1e-9],
    "tol": [1e-6, 1e-2],
    "coef_path": [True, False],
    "inference": [False, False, True],
    "random_state": [None, 0, np.random.RandomState(1), ReproducibleNoise(0)],
    "n_threads": [1, 2],
}
OF_TARGETS = {
    "alpha": [0.0, 0.1, 1.0, 100.0],
    "target_bounds": [None, (-1, 1), (0, 100), (-1e308, 1e308), (0, 5e-324), (1, 1), (NAN, 1)],
}
PRESETS = {
    DPLassoCD: COMMON | OF_TARGETS | {"sampling": [None, "uniform", "importance"]},
    DPRidgeSkGD: COMMON
    | OF_TARGETS
    | {"sampling": [None, *SAMPLINGS], "block_size": [None, 1, 2, 50]},
    DPLogisticGCD: COMMON
    | {
        "C": [1.0, 1e-3, 1e3],
        "l1_ratio": [0.0, 0.5, 1.0],
        "rule": [None, *RULES],
        "classes": [None, [0, 1], ["a", "b"], [0, 1, 2], [NAN, 1], [None, 1], [0], [[0, 1]]],
    },
}
# Parameters of solvers, whichever has them, and of other objects.
OWN = {
    "step_size": ["auto", 1.0, 0.1, 3.0],
    "averaging": ["auto", "auto", "last", "tail", "periodic", "weighted"],
    "n_inner": [None, 1, 3],
    "sampling": SAMPLINGS,
    "block_size": [1, 2, 50],
    "momentum": ["auto", 0, 0.5, 1 - 1e-16],
    "rule": RULES,
    "selection_share": [0.8, 1e-9, 1 - 1e-12],
    "selection": ["full", "lazy"],
    "sampling_rate": [0.1, 0.5, 1.0],
    "n_directions": [None, 1, 2, 50],
    "curvature_share": ["auto", 0.5, 1e-9, 1 - 1e-12],
    "step_decay": [0.0, 0.5, 1000.0],
    "threshold": ["auto", 1.35, 1e-9, 1e9],
    "radius": [1.0, 1e-3, 1e3, 1e9, 1e15],
    "lo": [-1, 0, -1e308, -INF],
    "hi": [1, INF, 1e308, 5e-324, 10**400],
}
WORDS = ["cd", "gcd", "skgd", "compgd", "sgd", "svrg", "frank-wolfe", "newton"]
SOLVERS = ["auto", *WORDS, *STATED.values()]
GENERIC = {
    "l1_ratio": [0.0, 0.5, 1.0],
    "penalize_intercept": [True, False],
    "solver": SOLVERS,
    "penalty": ["l1", "l2", "elasticnet", "nonnegative", "box", Box, Box, None],
    "constraint": [None, None, None, "l1_ball", "l2_ball", L1Ball, L2Ball],
}
OF_CLASSES = {
    "alpha": OF_TARGETS["alpha"],
    "loss": ["auto", "auto", "logistic", "multinomial"],
    "classes": PRESETS[DPLogisticGCD]["classes"],
    "unknown_label": ["first", "raise"],
}
PRESETS[DPLinearRegressor] = COMMON | OF_TARGETS | GENERIC | {"loss": ["squared", "huber", Huber]}
PRESETS[DPLinearClassifier] = COMMON | GENERIC | OF_CLASSES
for preset, named in ((DPLassoCD, "cd"), (DPRidgeSkGD, "skgd"), (DPLogisticGCD, "gcd")):
    PRESETS[preset] |= {"solver": ["auto", named, "newton", STATED[named], STATED["newton"]]}


def stated(rng, kind, share):
    """An object with some parameters of its own, a few of them absurd."""
    choices = {name: OWN[name] for name in kind().get_params()}
    if kind is CD:
        choices |= {"sampling": ["uniform", "importance"]}
    return kind(**some_of(rng, choices, share))


def random_model(rng, neighboring=True):
    estimator = pick(rng, list(PRESETS))
    share = pick(rng, [0.02, 0.1, 0.3])
    params = some_of(rng, PRESETS[estimator], share)
    if "penalty" in PRESETS[estimator] and rng.random() < 0.5:
        params["solver"] = pick(rng, SOLVERS)
        if params["solver"] in ("frank-wolfe", FrankWolfe):
            ball = pick(rng, ["l1_ball", L1Ball])
            params |= {"penalty": None, "constraint": ball, "fit_intercept": False}
    for name in ("solver", "loss", "penalty", "constraint"):
        if isinstance(params.get(name), type):
            params[name] = stated(rng, params[name], share)
    if neighboring and rng.random() < 0.15:
        params |= {"neighboring": "add_remove", "n_public": pick(rng, [20, 1000] * 9 + ABSURD)}
        params.setdefault("delta", 1e-4)
    return estimator(**params)


# ---- what is tried ------------------------------------------------------------------------------


def fit_and_predict(model, X, y, weights, others):
    """A fit, and predictions for other records, which may be refused; all is finite."""
    model.fit(X, y, sample_weight=weights)
    released = [model.coef_, model.intercept_, *([model.coef_path_] if model.coef_path else [])]
    for other in others:
        try:
            released.append(model.predict(other))
            if hasattr(model, "predict_proba"):
                released[-1:] = [model.decision_function(other), model.predict_proba(other)]
        except (TypeError, ValueError):
            pass
    assert all(np.isfinite(array).all() for array in released), "not finite"
    return model


def tried(rng, kinds):
    """A model, the call of it, and what that is."""
    model = random_model(rng)
    if rng.random() < 0.1:
        sizes = [pick(rng, [10, 1000, 10**6] * 5 + [1, 10**400, 2**53, 0, 1.5, NAN, None, "1"])]
        sizes += [pick(rng, [1, 3, 50, 1000] * 5 + [10**400, 0, -1, 1.5, None, "1"])]
        sizes += [pick(rng, [1] * 20 + [2, 3, 0, -1, 10**400, 1.5, None])]
        return model, lambda: str(model.planned_event(*sizes)), f"planned_event{sizes}"
    is_sound, of_y = rng.random(3) < [0.5, 0.75, 0.8], "good"
    kind, X = ("plain", kinds["of f8"]) if is_sound[0] else pick(rng, [*kinds.items()])
    y = TARGET
    if "Classifier" in type(model).__name__ or "Logistic" in type(model).__name__:
        y = pick(rng, [LABELS, LABELS, np.arange(N) % 3])
    if not is_sound[1]:
        of_y, y = pick(rng, [*targets(y)])
    weights = None if is_sound[2] else pick(rng, [None, *kinds_of_weights(rng)])
    have_rows = all(isinstance(one, np.ndarray) and one.ndim for one in (X, y))
    if have_rows and rng.random() < 0.2:
        n = pick(rng, [1, 2, 10])
        X, y, weights = X[:n], y[:n], None
    others = [pick(rng, [*kinds.values()]) for _ in range(2)]
    call = f"fit of X {kind}, y {of_y}, weights {type(weights)}"
    return model, lambda: fit_and_predict(model, X, y, weights, others), call


def kinds_of_weights(rng):
    sound = np.ones(N), rng.random(N), np.eye(1, N)[0]
    return [*sound, np.zeros(N), -np.ones(N), np.full(N, 1e308), [1j] * N, np.ones(N + 1), 1.0, NAN]


def fault_of(seed, kinds):
    """The fault in the case of a seed, with the call that it came from; None if there is none."""
    rng = np.random.default_rng(seed)
    model, call, words = tried(rng, kinds)
    has_ledger = "fit" in words and model.neighboring == "replace_one" and rng.random() < 0.5
    ledger = Ledger(testing=True)
    if has_ledger:
        model.set_params(accountant=ledger.accountant)
    start = time.process_time()
    with np.errstate(all="ignore"):
        wrong, _ = ledger.of_call(call, int(has_ledger))
    if (seconds := time.process_time() - start) > MOST_SECONDS:
        wrong.append(f"took {seconds:.1f} s")
    wrong = [one for one in wrong if not one.startswith(ALLOWED)]
    return f"seed {seed}: {wrong}\n{model!r}: {words}" if wrong else None


@pytest.mark.parametrize(
    "first",
    [
        *range(0, 400, 50),
        *(pytest.param(k, marks=pytest.mark.slow) for k in range(400, 20_000, 50)),
    ],
)
def test_random_calls_end_as_documented(first, tmp_path):
    kinds = {kind: X for kind, X in kinds_of_x(tmp_path) if kind != "a generator"}
    faults = [fault for seed in range(first, first + 50) if (fault := fault_of(seed, kinds))]
    assert not faults, "\n\n".join(faults)
