"""Solvers, losses and sets as objects: stated, shown, searched and refused as parameters are."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from flat import SOLVERS
from numpy.testing import assert_array_equal
from sklearn.base import clone
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import PrivacyLeakWarning
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box, GroupLasso, L1Ball, L2Ball, Monotonic
from dpcd_sklearn.samplings import FullSampling
from dpcd_sklearn.solvers import CD, GCD, SGD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{PrivacyLeakWarning.__module__}.PrivacyLeakWarning",
    "ignore:.* leave little but noise",
)
NAN, INF = math.nan, math.inf
N, P = 60, 3
OTHERS = {"loss": [Huber], "penalty": [Box, Monotonic, GroupLasso], "constraint": [L1Ball, L2Ball]}
KINDS = dict.fromkeys(SOLVERS.values(), "solver")
KINDS |= {kind: where for where, kinds in OTHERS.items() for kind in kinds}
# One sound value of every parameter that is not its default, and what none may be.
COUNTS = [0, -1, 1.5, "all", True, NAN, INF, 2**54]
POSITIVE = [0, -1, NAN, -INF, "1", None, True, np.True_, [1.0]]
SHARES = [0, 1, -0.5, NAN, INF, "all", None, True]
WORDS = ["", "cyclic", None, 0.5, True, NAN, ["last"]]
TABLE = {
    "sampling": ("importance", WORDS),
    "rule": ("gs-q", WORDS),
    "selection": ("lazy", WORDS),
    "averaging": ("last", WORDS),
    "block_size": (2, COUNTS),
    "n_inner": (4, COUNTS),
    "n_directions": (2, COUNTS),
    "step_size": (0.5, [*POSITIVE, INF, 1e16, "line-search"]),
    "momentum": (0.5, [-0.1, 1, 1.5, NAN, INF, "nesterov", None, False, True]),
    "step_decay": (0.5, [-0.5, NAN, INF, "auto", None, True]),
    "sampling_rate": (0.5, [*POSITIVE, 1.1, INF]),
    "selection_share": (0.5, [*SHARES, "auto"]),
    "curvature_share": (0.5, SHARES),
    "threshold": (2.0, [*POSITIVE, INF]),
    "radius": (2.0, [*POSITIVE, INF]),
    "lo": (-0.5, [NAN, "0", None, True, INF, [0.0]]),
    "monotonic_cst": (
        [1, 0, -1],
        [[1], [2, 0, 0], [1, 0, NAN], "110", [True, 0, 0], 1, None, {"a": 1}, [[1, 0, 0]]],
    ),
    "groups": (
        [[0, 1], [2]],
        [[[0, 3]], [[0], [0]], [[0, 0]], [[]], [0, 1], "ab", 1, None, [["a"]], [[True]], [[-1]]],
    ),
    "hi": (2.0, [NAN, "0", None, True, -INF, 0.0]),
}
NAMES = {kind.__name__: kind for kind in KINDS}
every_kind = pytest.mark.parametrize("kind", KINDS)
ESTIMATORS = {
    "solver": [DPLassoCD, DPRidgeSkGD, DPLogisticGCD, DPLinearRegressor, DPLinearClassifier],
    "loss": [DPLinearRegressor],
    "penalty": [DPLinearRegressor, DPLinearClassifier],
    "constraint": [DPLinearRegressor, DPLinearClassifier],
}


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-1, 1, (N, P))
    return X, (X[:, 0] > 0).astype(int)


def with_noise(estimator, **params):
    """A fit that leaves nothing to be found, and whose noise is known."""
    public = {"feature_bounds": (-1, 1), "random_state": ReproducibleNoise(0), "max_iter": 3}
    public |= {} if "classes" in estimator().get_params() else {"target_bounds": (0, 1)}
    return estimator(**public | params)


# ---- what an object is ---------------------------------------------------------------------------


@every_kind
def test_parameters_are_got_set_cloned_shown_and_pickled(kind):
    for name, default in kind().get_params().items():
        value, _ = TABLE[name]
        one = kind(**{name: value})
        assert one.get_params()[name] == value != default
        assert repr(one) == f"{kind.__name__}({name}={value!r})"
        for same in (clone(one), pickle.loads(pickle.dumps(one)), eval(repr(one), NAMES),
                     kind().set_params(**{name: value})):  # fmt: skip
            assert same.get_params() == one.get_params() and same is not one
    with pytest.raises(ValueError, match="Invalid parameter"):
        kind().set_params(nonsense=1)


# ---- what is refused -----------------------------------------------------------------------------


@every_kind
def test_a_bad_parameter_of_an_object_is_named_and_not_paid_for(kind, data):
    where, failures = KINDS[kind], []
    accountant = PrivacyAccountant(1e6, 0.1)

    def calls(estimator, **stated):
        yield lambda: estimator(**stated, accountant=accountant).fit(*data)
        yield lambda: estimator(**stated).planned_event(N, P)
        yield lambda: accountant.cost(estimator(**stated), N, P)

    for name, default in kind().get_params().items():
        huge = [] if isinstance(TABLE[name][0], str) else [10**400, -(10**400), Fraction(10**400)]
        for value in TABLE[name][1] + huge:
            if value is default is None:
                continue
            for estimator in ESTIMATORS[where]:
                for call in calls(estimator, **{where: kind(**{name: value})}):
                    try:
                        call()
                    except (TypeError, ValueError) as error:
                        told = name in str(error) or kind.__name__ in str(error)
                    else:
                        told = False
                    if not told or accountant.entries():
                        failures.append((estimator.__name__, name, value))
    accountant.close()
    assert not failures


def test_every_parameter_of_an_object_is_in_the_table():
    assert {name for kind in KINDS for name in kind().get_params()} == set(TABLE)


def test_an_object_in_another_ones_place_is_refused(data):
    stated = [(where, kind()) for kind in KINDS for where in ESTIMATORS if KINDS[kind] != where]
    stated += [(where, kind) for kind, where in KINDS.items()]  # the class itself
    for where, value in stated:
        with PrivacyAccountant(1.0, 0.1) as accountant:
            with pytest.raises(ValueError, match=f"'{where}' parameter of"):
                DPLinearRegressor(**{where: value}, accountant=accountant).fit(*data)
            assert accountant.entries() == []


def test_a_huber_loss_is_for_targets(data):
    with pytest.raises(ValueError, match="'loss' parameter of DPLinearClassifier"):
        DPLinearClassifier(Huber()).fit(*data)


def test_a_word_has_no_parameters_and_says_what_to_write():
    cases = [
        (DPLinearRegressor(solver="gcd"), "solver__rule", "gs-q", r"solver=GCD\(\)"),
        (DPLogisticGCD(), "solver__rule", "gs-q", r"solver=GCD\(\)"),
        (DPLassoCD(), "solver__curvature_share", 0.3, r"solver=Newton\(\)"),
        (DPLinearRegressor("huber"), "loss__threshold", 1.0, r"loss=Huber\(\)"),
        (DPLinearRegressor(constraint="l1_ball"), "constraint__radius", 1.0, r"constraint=L1Ball"),
        (DPLinearRegressor(), "penalty__lo", 1.0, r"penalty=Box\(\)"),
    ]
    for model, name, value, advice in cases:
        before = model.get_params()
        with pytest.raises(ValueError, match=f"{name} needs an object as .*{advice}"):
            model.set_params(**{name: value})
        assert model.get_params() == before
    model = DPLinearRegressor(solver="gcd").set_params(solver=GCD(), solver__rule="gs-q")
    assert model.solver.rule == "gs-q"


# ---- what a fit does with it ---------------------------------------------------------------------


ALONE = {"penalty": None}
BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
WORDS_OF_OBJECTS = [
    *(
        ("solver", word, solver, BALL if word == "frank-wolfe" else ALONE)
        for word, solver in SOLVERS.items()
    ),
    ("loss", "huber", Huber, {"solver": "cd"}),
    ("penalty", "nonnegative", Box, {"solver": "cd"}),
    ("constraint", "l1_ball", L1Ball, ALONE | {"solver": "compgd"}),
    ("constraint", "l2_ball", L2Ball, ALONE | {"solver": "compgd"}),
]


@table(("where", "word", "kind", "own"), WORDS_OF_OBJECTS)
def test_a_word_is_its_default_object(where, word, kind, own, data):
    models = [
        with_noise(DPLinearRegressor, **own | {where: stated}).fit(*data)
        for stated in (word, kind())
    ]
    assert models[0].privacy_event_ == models[1].privacy_event_
    assert_array_equal(models[0].coef_, models[1].coef_)
    if where == "solver":
        assert models[0].solver_ == models[1].solver_ == word


def test_columns_of_a_penalty_are_stated_by_name_too(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for named, placed in (
        (Monotonic({"c": -1, "a": 1}), Monotonic([1, 0, -1])),
        (GroupLasso([["b", "c"]]), GroupLasso([[1, 2]])),
    ):
        coefs = [
            with_noise(DPLinearClassifier, penalty=penalty, classes=[0, 1]).fit(frame, y).coef_
            for penalty in (named, placed)
        ]
        assert_array_equal(*coefs)
    with pytest.raises(ValueError, match="monotonic_cst needs a regression or two classes, got 3"):
        DPLinearClassifier(penalty=Monotonic([1, 0, 0])).planned_event(N, P, n_outputs=3)
    with pytest.raises(ValueError, match="needs penalty in .*'group_lasso'.*work.*: sgd, svrg"):
        DPLinearRegressor(penalty=GroupLasso([[0, 1]]), solver="newton").planned_event(N, P)
    with pytest.raises(ValueError, match="which have a strength"):
        DPLinearRegressor(penalty=Monotonic(), l1_ratio=[0.1, 0.5]).planned_event(N, P)


SHORT = [
    (DPLassoCD, {"sampling": "importance"}, CD("importance")),
    (DPLogisticGCD, {"rule": "gs-q"}, GCD("gs-q")),
    (DPRidgeSkGD, {"sampling": "nice"}, SkGD("nice")),
    (DPRidgeSkGD, {"block_size": 2}, SkGD(block_size=2)),
    (DPRidgeSkGD, {"sampling": "block", "block_size": 2}, SkGD("block", block_size=2)),
]


@pytest.mark.parametrize(("estimator", "short", "solver"), SHORT)
def test_what_is_short_for_an_object_is_the_same_fit(estimator, short, solver, data):
    models = [with_noise(estimator, **one).fit(*data) for one in (short, {"solver": solver})]
    assert models[0].privacy_event_ == models[1].privacy_event_
    assert_array_equal(models[0].coef_, models[1].coef_)


@every_kind
def test_a_fit_reads_an_object_and_never_writes_to_it(kind, data):
    where = KINDS[kind]
    stated = kind()
    own = {"penalty": None} if where in ("solver", "constraint") else {}
    if kind in (L1Ball, L2Ball):
        own |= {"solver": "compgd"}
    if getattr(kind, "word", None) == "frank-wolfe":
        own |= {"constraint": "l1_ball", "fit_intercept": False}
    before = dict(vars(stated))
    models = [with_noise(DPLinearRegressor, **own | {where: stated}) for _ in range(2)]
    for model in models:  # of which both hold the same object
        model.planned_event(N, P)
        model.fit(*data)
        assert getattr(model, where) is stated
    assert vars(stated) == before
    assert_array_equal(models[0].coef_, models[1].coef_)


# ---- samplings -----------------------------------------------------------------------------------


def test_a_sampling_within_a_solver_is_of_the_width_of_the_fit(data):
    sampling = FullSampling(P + 1)
    one = with_noise(DPLinearRegressor, solver=SkGD(sampling)).fit(*data)
    other = with_noise(DPLinearRegressor, solver=SkGD("full")).fit(*data)
    assert one.privacy_event_ == other.privacy_event_
    with pytest.raises(ValueError, match="sampling"):
        with_noise(DPLinearRegressor, solver=SGD(), fit_intercept=False).set_params(
            solver=SkGD(sampling)
        ).fit(*data)
