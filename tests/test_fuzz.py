"""Random calls raise ValueError or TypeError, or work: no other exception, no crash, no hang.

A case is a function of its seed alone, which is in every message.
"""

import datetime
import math
import time
import traceback
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flat import SOLVERS as STATED
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from dpcd_sklearn.exceptions import (
    BudgetExceededError,
    FewRecordsWarning,
    LedgerError,
    UnknownScaleWarning,
)
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box, L1Ball, L2Ball
from dpcd_sklearn.solvers import CD, FrankWolfe
from dpcd_sklearn.testing import ReproducibleNoise

SECRET = "SECRET271828"  # stands in cells, and in no message
MOST_SECONDS = 10.0  # of the processor: other work of the machine does not count
ALLOWED_ERRORS = (ValueError, TypeError, BudgetExceededError, LedgerError)
ALLOWED_WARNINGS = (
    PrivacyLeakWarning,
    FewRecordsWarning,
    UnknownScaleWarning,
    ConvergenceWarning,
    DataConversionWarning,
)
ALLOWED_MESSAGES = (
    "alpha=",  # is not used where the penalty has no strength
    "The number of unique classes is greater than 50%",
    "X has feature names, but",
    "X does not have valid feature names, but",
    "this ledger lies in ",  # for a time; said once a process
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
TARGET = {
    "alpha": [0.0, 0.1, 1.0, 100.0],
    "target_bounds": [None, (-1, 1), (0, 100), (-1e308, 1e308), (0, 5e-324), (1, 1), (NAN, 1)],
}
PRESETS = {
    DPLassoCD: COMMON | TARGET | {"sampling": [None, "uniform", "importance"]},
    DPRidgeSkGD: COMMON | TARGET | {"sampling": [None, *SAMPLINGS], "block_size": [None, 1, 2, 50]},
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
    "threshold": [1.35, 1e-9, 1e9],
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
    "alpha": TARGET["alpha"],
    "loss": ["auto", "auto", "logistic", "multinomial"],
    "classes": PRESETS[DPLogisticGCD]["classes"],
    "unknown_label": ["first", "raise"],
}
PRESETS[DPLinearRegressor] = COMMON | TARGET | GENERIC | {"loss": ["squared", "huber", Huber]}
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


# ---- records ------------------------------------------------------------------------------------


@np.errstate(all="ignore")
def random_values(rng, shape):
    X = rng.standard_normal(shape)
    kind = rng.random()
    if kind < 0.1:
        X *= pick(rng, [1e308, 1e154, 1e-154, 1e-12, 1e12, 0.0, 5e-324])
        X = np.clip(X, -1.7e308, 1.7e308)
    elif kind < 0.2 and X.size:
        X.flat[rng.integers(X.size)] = pick(rng, [NAN, INF, -INF, 1.7e308, 5e-324, 1e154])
    elif kind < 0.25:
        X = np.full(shape, pick(rng, [0.0, 1.0, 1e308]))
    return X


DTYPES = ["float32", "float16", "longdouble", "int8", "int64", "uint64", "bool", "complex128"]
DTYPES += ["U9", "S9", "object", "datetime64[s]", "timedelta64[s]", ">f8"]


@np.errstate(all="ignore")
def random_dense(rng, X):
    """An array in some dtype and layout, or something that is none."""
    kind = rng.random()
    if kind < 0.2:
        X = X.astype(pick(rng, DTYPES)) if np.isfinite(X).all() else X.astype("float32")
    elif kind < 0.25:
        X = X.astype(object)
        if X.size:
            odd = [SECRET, None, 10**400, {}, Decimal("1e999"), [1], datetime.date(2000, 1, 1)]
            X.flat[rng.integers(X.size)] = pick(rng, odd)
    layout = rng.random()
    if layout < 0.2:
        X = np.asfortranarray(X)
    elif layout < 0.3:
        X = np.repeat(X, 2, axis=-1)[..., ::2]
    elif layout < 0.35:
        X = X[::-1]
    elif layout < 0.4:
        X = np.ascontiguousarray(X)
        X.flags.writeable = False
    elif layout < 0.45:
        return X.tolist()
    elif layout < 0.5:
        return [X[0], X[:, :, None], X[:0], X[:, :0], 3.0, None, SECRET, [[1], [1, 2]]][
            rng.integers(8)
        ]
    elif layout < 0.55:
        import pandas as pd

        X = X.astype(X.dtype.newbyteorder("="))
        return pd.DataFrame(X, columns=list("abcdefgh"[: X.shape[1]]))
    return X


def random_sparse(rng, X):
    """A sparse matrix or array of some format, whole or broken."""
    cells = np.where(rng.random(X.shape) < 0.4, X, 0.0)
    dtype = pick(rng, ["float64", "float32", "int64", "bool", "complex128"])
    with np.errstate(all="ignore"):
        S = sparse.coo_array(np.nan_to_num(cells).astype(dtype) if dtype != "float64" else cells)
    S = S.asformat(pick(rng, ["csr", "csr", "csc", "csc", "coo", "bsr", "dia", "lil", "dok"]))
    if rng.random() < 0.3:
        S = getattr(sparse, f"{S.format}_matrix")(S)
    if rng.random() < 0.4:
        break_sparse(rng, S)
    return S


def break_sparse(rng, S):
    names = [n for n in ("indices", "indptr", "row", "col", "data", "offsets") if hasattr(S, n)]
    if not names:
        return
    name = pick(rng, names)
    array = np.array(getattr(S, name), copy=True)
    how = rng.integers(6)
    if how == 0 and array.size and name != "data":
        array.flat[rng.integers(array.size)] = pick(rng, [-1, 10**6, 2**31 - 1, -(2**31), 7])
    elif how == 1:
        array = array[:-1]
    elif how == 2 and name != "data":
        array = array.astype(pick(rng, ["int64", "int16", "float64", "uint64", "object"]))
    elif how == 3:
        array = array[::-1]
    elif how == 4:
        array = np.array([SECRET] * len(array), dtype=object)
    elif how == 5:
        array = np.append(array, array[-1:], axis=0)
    try:
        setattr(S, name, array)
    except (AttributeError, TypeError, ValueError):
        pass  # SciPy itself does not let it be broken


def random_records(rng, shape):
    X = random_values(rng, shape)
    if rng.random() < 0.4:
        return X
    return random_sparse(rng, X) if rng.random() < 0.3 else random_dense(rng, X)


def shown(array):
    """A short description of an array; a broken one may not be able to say it itself."""
    try:
        kind = getattr(array, "dtype", None), getattr(array, "shape", None)
        with np.errstate(all="ignore"):  # of pandas
            text = repr(array)
    except Exception as error:
        kind, text = None, repr(error)
    return f"<{type(array).__name__} {kind} {' '.join(text.split())[:120]}>"


def random_y(rng, model, n):
    y = rng.standard_normal(n)
    if "Classifier" in type(model).__name__ or "Logistic" in type(model).__name__:
        y = rng.integers(pick(rng, [2, 2, 2, 3]), size=n)
        words = [np.array(["a", "b", SECRET]), np.array(["a", 1, None], dtype=object)]
        if rng.random() < 0.3:
            y = pick(rng, words)[y]
    if rng.random() < 0.75:
        return y
    odd = [y[:-1], y[:, None], np.column_stack([y, y]), None, y.astype(object), y.astype(str), 1.0]
    odd += [random_values(rng, n), [10**400] * n, [SECRET] * n, [{}] * n, y.tolist(), SECRET]
    odd += [np.full(n, np.datetime64("2000-01-01")), [None] * n, [NAN] * n, np.full(n, 1j)]
    return pick(rng, odd)


def random_weights(rng, n):
    if rng.random() < 0.8:
        return None
    odd = [np.ones(n), rng.random(n), np.zeros(n), -np.ones(n), np.full(n, 1e308), [SECRET] * n]
    odd += [np.ones(n + 1), 1.0, 10**400, NAN, random_values(rng, n), [1j] * n, np.ones((n, 1))]
    return pick(rng, odd)


# ---- what is tried ------------------------------------------------------------------------------


def try_fit(rng):
    n, p = int(pick(rng, [1, 2, 10, 10, 30, 30])), int(rng.integers(1, 6))
    model = random_model(rng)
    if rng.random() < 0.5:
        relation = {"neighboring": model.neighboring} if model.neighboring == "add_remove" else {}
        n_public = 1000 if relation else None
        model.accountant = PrivacyAccountant(
            1e9, 0.4, testing=bool(rng.random() < 0.7), n_public=n_public, **relation
        )
    X, y = random_records(rng, (n, p)), random_y(rng, model, n)
    weights = random_weights(rng, n)
    yield f"{model!r}.fit({shown(X)}, {shown(y)}, {shown(weights)})"
    try:
        model.fit(X, y, sample_weight=weights)
    except ALLOWED_ERRORS:
        if model.accountant is not None:
            assert model.accountant.entries() == [], "charged, then refused"
        raise
    released = [model.coef_, model.intercept_, *([model.coef_path_] if model.coef_path else [])]
    for array in released:
        assert np.isfinite(array).all(), f"not finite: {array!r}"
    assert model.accountant is None or len(model.accountant.entries()) == 1
    X = random_records(rng, (n, p))
    yield f"{model!r} predicts {shown(X)}"
    found = model.predict(X)
    assert len(found) == n
    if hasattr(model, "predict_proba"):
        for array in (model.decision_function(X), model.predict_proba(X)):
            assert np.isfinite(array).all(), "not finite"
        assert not np.isnan(model.predict_log_proba(X)).any()
    else:
        assert np.isfinite(found).all(), "not finite"


def try_plan(rng):
    model = random_model(rng)
    sizes = [pick(rng, [10, 1000, 10**6] * 5 + [1, 10**400, 2**53, 0, 1.5, NAN, None, "1", True])]
    sizes += [pick(rng, [1, 3, 50, 1000] * 5 + [10**400, 0, -1, 1.5, None, "1"])]
    outputs = pick(rng, [1] * 20 + [2, 3, 0, -1, 10**400, 1.5, None])
    yield f"{model!r}.planned_event({sizes}, {outputs})"
    str(model.planned_event(*sizes, n_outputs=outputs))


TRIED = [try_fit] * 7 + [try_plan]


# ---- the judge ----------------------------------------------------------------------------------


def fault_of(seed):
    """The fault in the case of a seed, with the call it came from; None if there is none."""
    rng = np.random.default_rng(seed)
    attempt = pick(rng, TRIED)
    called, fault, start = "", None, time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for called in attempt(rng):  # noqa: B007
                start = time.process_time()
        except ALLOWED_ERRORS as error:
            fault = _quoted(error)
        except Exception:
            fault = traceback.format_exc(limit=-8)
    seconds = time.process_time() - start
    if fault is None and seconds > MOST_SECONDS:
        fault = f"took {seconds:.1f} s"
    for warning in caught:
        known = isinstance(warning.message, ALLOWED_WARNINGS)
        if not known and not str(warning.message).startswith(ALLOWED_MESSAGES):
            fault = fault or f"{warning.category.__name__}: {warning.message} ({warning.filename})"
    return None if fault is None else f"seed {seed}: {fault}\n{called}"


def _quoted(error):
    while error is not None:
        if SECRET in str(error) or f"<U{len(SECRET)}" in str(error):
            return f"quotes a record: {error}"
        error = error.__cause__ or error.__context__
    return None


@pytest.mark.parametrize(
    "first",
    [
        *range(0, 400, 50),
        *(pytest.param(k, marks=pytest.mark.slow) for k in range(400, 20_000, 50)),
    ],
)
def test_random_calls_end_as_documented(first):
    faults = [fault for seed in range(first, first + 50) if (fault := fault_of(seed))]
    assert not faults, "\n\n".join(faults)
