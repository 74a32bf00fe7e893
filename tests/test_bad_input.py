"""Nonsense is refused by name before the charge, and what does not go together."""

import copy
import functools
import itertools
import math
import pickle
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest
from flat import SOLVERS, flat
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tables import table

import dpcd_sklearn
from dpcd_sklearn import (
    BudgetExceededError,
    DPGammaRegressor,
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    Persons,
    PrivacyAccountant,
    preprocessing,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.losses import Huber, Tweedie
from dpcd_sklearn.penalties import Box, L1Ball
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPOneHotEncoder, DPSimpleImputer, DPStandardScaler
from dpcd_sklearn.privacy.accounting import epsilon_of
from dpcd_sklearn.samplings import BlockSampling, FullSampling, NiceSampling, SingleSampling
from dpcd_sklearn.solvers import GCD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise

PRESETS = [DPLassoCD, DPLogisticGCD, DPRidgeSkGD]
GENERIC = [DPLinearRegressor, DPLinearClassifier]
CLASSIFIERS = [DPLogisticGCD, DPLinearClassifier]
REGRESSORS = [DPLassoCD, DPRidgeSkGD, DPLinearRegressor]
ALL = PRESETS + GENERIC
N_SAMPLES, N_FEATURES = 40, 3
NAN, INF = math.nan, math.inf
NO_VALUE = (TypeError, ValueError)


def records():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def accountant():
    with PrivacyAccountant(epsilon=1e6, delta=0.01) as accountant:
        yield accountant


@pytest.fixture
def data():
    return records()


def data_of(kind, data):
    """Records with targets that an estimator takes."""
    X, y = data
    return X, y + (kind is DPGammaRegressor)


def refuse(model, X, y, match, *, error=NO_VALUE, ledger=None, **fit_params):
    """The fit raises with this message, before a charge, and before it would draw any noise."""
    ledger = model.accountant if ledger is None else ledger
    with pytest.raises(error, match=match) as raised:
        model.fit(X, y, **fit_params)
    assert not isinstance(raised.value, BudgetExceededError)
    assert ledger.entries() == []
    released = {name for name in vars(model) if name.endswith("_")}
    assert released <= {"n_features_in_", "feature_names_in_", "classes_"}


def test_the_ledger_of_these_tests_would_show_a_charge(accountant, data):
    for estimator in ALL:
        estimator(accountant=accountant).fit(*data)
    assert len(accountant.entries()) == len(ALL)


# ---- parameters, each by itself -----------------------------------------------------------------

# How messages go on after the name of the parameter: with what is allowed.
ALLOWED = "must|allowed|is for|no feature any width|no width|state them as|asks for|Here it is"
NO_POSITIVE = [0, 0.0, -1, NAN, INF, "1", "none", None, True]
NO_COUNT = [0, -1, 1.5, "all", True, NAN, INF]
NO_FLAG = ["yes", None, 2]
NO_PAIR = [(1, -1), (NAN, 1), (0, INF), "(0, 1)", "01", ("0", "1"), (True, False), (0,), (0, 1, 2)]
NO_PAIR += [([0, 0], [1, 1]), [0, 1], [(0, 1), (0, 1)]]
COMMON = {
    "epsilon": [0, 0.0, -1, NAN, -INF, "1", None, True, False, [1.0], 1j],
    "delta": [0, 1, 1.5, -1, -1e-6, NAN, INF, "n", "none", None, True],
    "neighboring": ["swap", "swap_one", None, True],
    "n_public": [*NO_COUNT, 2.5, "40"],
    "clip": NO_POSITIVE,
    "max_iter": [*NO_POSITIVE, "all", 1e300],
    "solver": ["lbfgs", "saga", "cholesky", "", None, 1, GCD, L1Ball(), {"word": "gcd"}],
    "fit_intercept": NO_FLAG,
    "tol": [*NO_POSITIVE, -1e-3, "auto"],
    "feature_bounds": [
        *NO_PAIR,
        *((-INF, INF), (None, 1), (2, 2), 3.0, ([0, 0, 1], [1, 1, 0]), ([[0, 0, 0]], [[1, 1, 1]])),
        *([(0, 1), (0, 1), (1, 0)], np.array([[0.0, 1.0]] * 3), {"a": (0, 1)}, (0, 10**400)),
    ],
    "feature_scale": [0, -1, [1, 0, 1], [1, 1], NAN, INF, "unit", ["1", "1", "1"], True],
    "row_norm_bound": [0, -1, NAN, INF, "1", True, [1.0]],
    "coef_path": NO_FLAG,
    "warm_start": NO_FLAG,
    "verbose": [-1, 0.5, "loud", None],
    "inference": NO_FLAG,
    "accountant": [],  # what has no ledger can't show that it was not charged
    "random_state": [1.5, "seed", -1, ReproducibleNoise],
    "n_threads": [*NO_COUNT, 2.0, "2", "auto", False, np.True_, [2]],
}
NO_L1_RATIO = [-0.1, 1.1, 2, NAN, INF, "auto", "elasticnet", None]
ALPHA = {"alpha": [-1, -1e-9, NAN, INF, "1", None, True]}
TARGET = ALPHA | {"target_bounds": [*NO_PAIR, (3, 3), 5, {"y": (0, 1)}, (0, 10**400)]}
LABELS = {
    "classes": [
        *([1], [1, 1], [], "01", 2, ["0", "1"]),
        *([0, NAN], [[0, 1]], [None, 1], [1, "a", None]),
    ],
    "class_weight": ["balanced", "auto", 2, [1, 2], {0: 1.0, 1: 2.0}],  # beside classes=None
}
MORE = {  # what may be an object is in the tables of `test_solver_objects` too
    "loss": ["hinge", None, 1, True, Huber, L1Ball()],
    "penalty": ["l0", "None", "box", 1, True, Box, GCD(), (-1, 1)],
    "constraint": ["simplex", 1, True, L1Ball, Box(-1.0, 1.0), 2.0],
    "l1_ratio": [*NO_L1_RATIO, True],
    "penalize_intercept": NO_FLAG,
}
OWN = {
    DPLassoCD: TARGET | {"positive": NO_FLAG, "sampling": ["full", "block", "cyclic", True]},
    DPRidgeSkGD: TARGET
    | {"positive": NO_FLAG, "sampling": ["single", "cyclic", True, [0, 1]]}
    | {"block_size": [0, -1, 1.5, "all", True]},
    DPLogisticGCD: LABELS
    | {"C": NO_POSITIVE, "l1_ratio": [*NO_L1_RATIO, False], "rule": ["gs", "cyclic", True]},
    DPLinearRegressor: TARGET | MORE,
    DPLinearClassifier: LABELS | ALPHA | MORE | {"unknown_label": ["last", None, 1, True]},
}
PARAMETERS = {estimator: COMMON | OWN[estimator] for estimator in ALL}
BAD = [
    (estimator, name, {name: value})
    for estimator in ALL
    for name, values in PARAMETERS[estimator].items()
    for value in values
]
# Parameters beside which a number of records is refused or not.
ADD_REMOVE = {"neighboring": "add_remove", "delta": 1e-5}
BAD += [
    (estimator, "n_public", ADD_REMOVE | {"n_public": n}) for estimator in ALL for n in NO_COUNT
]
# Integers that no double holds are a ValueError too.
NUMBERS = ["epsilon", "delta", "clip", "max_iter", "tol", "row_norm_bound", "n_public"]
NUMBERS += ["n_threads", "feature_scale", "alpha", "C", "l1_ratio", "block_size", "random_state"]
BAD += [
    (estimator, name, {name: value})
    for estimator in ALL
    for name in NUMBERS
    for value in (10**400, -(10**400), 2**64)
    if name in PARAMETERS[estimator]
]


@table(("estimator", "name", "params"), BAD)
def test_a_bad_parameter_is_named_and_not_paid_for(accountant, data, estimator, name, params):
    refuse(estimator(accountant=accountant, **params), *data, match=rf"(?s){name}.*({ALLOWED})")
    without_noise = {"epsilon": INF} | params
    with pytest.raises(NO_VALUE, match=name):
        estimator(**without_noise).fit(*data)
    for stated in (params, without_noise):
        if name != "classes":  # whose fault may show beside y only
            with pytest.raises(NO_VALUE, match=name):
                estimator(**stated).planned_event(N_SAMPLES, N_FEATURES)


@table("estimator", ALL)
def test_every_parameter_that_can_be_wrong_is_in_the_tables(estimator):
    assert set(PARAMETERS[estimator]) == set(estimator().get_params())


# ---- parameters that contradict each other, the shape or the accountant -------------------------

BALL = {"constraint": "l1_ball", "penalty": None}
AUTO_DELTA = {"neighboring": "add_remove", "n_public": 40}
SEVERAL = {"loss": "multinomial", "classes": [0, 1, 2]}
OF_SEVERAL = "loss in .*: cd, gcd, skgd, sgd, svrg"
TOGETHER = [
    (ALL, {"n_public": 40}, 'n_public is for neighboring="add_remove"'),
    (ALL, {"n_public": 40, "delta": 1e-3}, 'n_public is for neighboring="add_remove"'),
    (ALL, {"neighboring": "add_remove"}, 'neighboring="add_remove" needs n_public'),
    (ALL, ADD_REMOVE, 'neighboring="add_remove" needs n_public'),
    (ALL, AUTO_DELTA, 'delta="auto".*not public under add_remove: state it'),
    (CLASSIFIERS, {"class_weight": {0: 1.0, 1: 2.0}}, "class_weight.*must be stated too"),
    *(
        (CLASSIFIERS, {"classes": [0, 1], "class_weight": weight}, match)
        for weight, match in (
            ("balanced", "would count the labels"),
            ({2: 1.0}, "must be among classes"),
            ({0: "1"}, r"class_weight\[0\] must be a number"),
            ({0: 0, 1: 0}, "positive for at least one class"),
            *(({0: wrong}, r"class_weight\[0\] must be in") for wrong in (-1.0, NAN, INF)),
        )
    ),
    (GENERIC, {"solver": "sgd"} | BALL, "work as it stands: compgd$"),
    (GENERIC, {"solver": "frank-wolfe"} | BALL, "fit_intercept=False or penalize_intercept=True"),
    ([DPLinearClassifier], SEVERAL | {"solver": "compgd"}, OF_SEVERAL),
    ([DPLinearClassifier], SEVERAL | {"solver": "frank-wolfe"}, OF_SEVERAL),
    ([DPLinearClassifier], {"loss": "logistic", "classes": [0, 1, 2]}, "must hold two labels"),
    ([DPLinearClassifier], {"loss": "hinge"}, "loss must not be 'hinge': use loss=.log_loss"),
    ([DPLinearRegressor], {"loss": "hinge"}, "loss must not be 'hinge': use loss=.log_loss"),
    ([DPLinearRegressor], {"loss": Tweedie(0.5)}, "power of Tweedie must be 0 or lie in .1, 2."),
    ([DPLinearRegressor], {"loss": "poisson", "target_bounds": (-1, 1)}, "must have 0 <= lo < hi"),
    ([DPLinearRegressor], {"loss": "poisson", "inference": True}, "needs loss='squared' or"),
    (
        [DPLinearRegressor],
        {"loss": "quantile", "penalty": "l2", "alpha": [0.1, 1.0]},
        "needs loss='squared' or 'huber'",
    ),
]


@table(("loss", "y", "match"), [
    ("poisson", -1.0, "loss='poisson' needs targets >= 0"),
    ("gamma", 0.0, "loss='gamma' needs targets > 0"),
    ("tweedie", [0.0, 1.0], "is for one target"),
])  # fmt: skip
def test_targets_that_a_log_link_does_not_have(accountant, data, loss, y, match):
    target = np.ones((len(data[0]), np.size(y)))
    target[3] = y
    target = target[:, 0] if np.ndim(y) == 0 else target
    for epsilon in (1.0, INF):
        model = DPLinearRegressor(loss, epsilon=epsilon)
        model.set_params(accountant=accountant if epsilon == 1 else None)
        refuse(model, data[0], target, match, ledger=accountant)


@table(("loss", "offset", "match"), [
    ("poisson", NAN, "offset must lie within ±50"),
    ("poisson", -INF, "offset must lie within ±50: it is the logarithm of an exposure > 0"),
    ("gamma", 51.0, "offset must lie within ±50"),
    ("poisson", np.zeros(3), "offset has the shape .3,., and y"),
    ("poisson", "a", "offset"),
    ("squared", 0.0, "offset is for a log link, and loss='squared' has none"),
])  # fmt: skip
def test_offsets_that_no_exposure_has(accountant, data, loss, offset, match):
    X, y = data[0], np.ones(len(data[0]))
    offset = np.array([offset] * len(y)) if np.ndim(offset) == 0 else offset
    model = DPLinearRegressor(loss, accountant=accountant)
    refuse(model, X, y, match, offset=offset)
    fitted = DPLinearRegressor(loss, epsilon=INF).fit(X, y)
    with pytest.raises(NO_VALUE, match=match):
        fitted.predict(X, offset=offset)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@table(("loss", "y", "weight", "offset"), [
    ("poisson", 1e300, 1.0, -50.0),
    ("gamma", 5e-324, 1.0, 50.0),
    ("poisson", 1.0, 1.7e308, 50.0),
    ("poisson", 1.0, 5e-324, -50.0),
])  # fmt: skip
def test_an_exposure_of_one_record_raises_nothing(data, loss, y, weight, offset):
    """Each of its numbers is valid, so neither their products nor quotients may tell of it."""
    of_one = np.arange(len(data[0])) == 3
    given = {"sample_weight": weight * of_one, "offset": offset * of_one}
    model = DPLinearRegressor(loss, epsilon=9.0, feature_bounds=(-1, 1), target_bounds=(0.1, 9.0))
    assert np.isfinite(model.fit(data[0], np.where(of_one, y, 1.0), **given).coef_).all()


@table(("estimators", "params", "match"), TOGETHER)
def test_what_does_not_go_together_says_what_does(accountant, data, estimators, params, match):
    for estimator in estimators:
        refuse(estimator(accountant=accountant, **params), *data, match=match)
        if "class_weight" in params and "classes" in params:
            with pytest.raises(NO_VALUE, match=match):
                estimator(**params).planned_event(N_SAMPLES, N_FEATURES)


@table("estimator", ALL)
def test_delta_auto_needs_more_than_one_record_whose_number_is_public(data, estimator):
    X, y = data
    model = estimator(accountant=PrivacyAccountant(1e6, 0.01))
    if estimator in CLASSIFIERS:
        model.set_params(classes=[0, 1])
    refuse(model, X[:1], y[:1], match='delta="auto".*n_samples=1')
    model.set_params(delta=1e-3).fit(X[:1], y[:1])  # a stated one is fine
    model = estimator(accountant=PrivacyAccountant(1e6, 0.01, **AUTO_DELTA), **AUTO_DELTA)
    refuse(model, *data, match='delta="auto".*add_remove')
    model.set_params(delta=1e-3).fit(*data)


@table("n_outputs", [0, -1, 1.5, "3", None])
def test_planned_events_need_a_number_of_outputs(n_outputs):
    with pytest.raises(ValueError, match="n_outputs must be an integer >= 1"):
        DPLinearClassifier("multinomial").planned_event(40, 3, n_outputs)
    with pytest.raises(ValueError, match="n_outputs must be 1"):
        DPLinearClassifier("logistic").planned_event(40, 3, 3)


# ---- public numbers beyond arithmetic -----------------------------------------------------------

BALL_ALONE = BALL | {"fit_intercept": False}
OF_SOLVER = {word: BALL_ALONE if word == "frank-wolfe" else {} for word in SOLVERS}
WITH_STEPS = [word for word in SOLVERS if "step_size" in SOLVERS[word]().get_params()]
LONG_STEP = r"step_size.* of .* must be .*1000000000000000\.0\]"
NO_SCALE = "must give every feature a scale"
TOO_FAR = [  # of every solver
    *(({"max_iter": n}, "max_iter=.*2\\^53 updates") for n in (1.7e308, 1e300, 1e17)),
    *(
        ({"epsilon": epsilon, **facts}, f"{name} {NO_SCALE}")
        for epsilon in (1.0, INF)
        for scale in (1e-320, 1e-160, 1e160)
        for name, facts in (
            ("feature_scale", {"feature_scale": scale}),
            ("feature_scale", {"feature_scale": scale, "row_norm_bound": 1.0}),
            ("feature_bounds", {"feature_bounds": (-scale, scale)}),
        )
    ),
    ({"epsilon": 1e301}, "epsilon must be at most"),
]
OF_ONE = [  # solvers alone
    *(("auto", {"epsilon": 1e-300, "delta": 1e-320}, "epsilon=.* and delta=.* are so small"),),
    *(
        ("frank-wolfe", {"constraint": L1Ball(radius), "selection": selection}, "radius")
        for radius in (1e15, 1e30, 1e300)
        for selection in ("full", "lazy")
    ),
    *(
        ("gcd", {"penalty": "l1", "rule": rule} | far, "alpha, radius or step_size")
        for rule in ("gs-s", "gs-r", "gs-q")
        for far in ({"alpha": 1e30}, {"step_size": 1e14})
    ),
    *(
        (solver, {"target_bounds": (-1e-10, 1e-10), "clip": 1e300}, "clip")
        for solver in ("cd", "sgd")
    ),
    *((solver, {"step_size": far}, LONG_STEP) for solver in WITH_STEPS for far in (1e16, 1.7e308)),
    ("compgd", {"step_size": 1e6, "penalty": "l2", "alpha": 10.0}, "step_size=.*at most .* for so"),
]


@pytest.fixture
def rich():
    # for testing: what is refused below is refused by the numbers, not for want of noise
    with PrivacyAccountant(epsilon=1e9, delta=0.1, testing=True) as accountant:
        yield accountant


@table("solver", OF_SOLVER)
@table(("params", "match"), TOO_FAR)
def test_no_solver_takes_numbers_beyond_arithmetic(rich, data, solver, params, match):
    params = OF_SOLVER[solver] | params
    refuse(DPLinearRegressor(solver=solver, accountant=rich, **params), *data, match=match)


@table(("solver", "params", "match"), OF_ONE)
def test_nor_do_those_whose_noise_or_steps_they_would_drown(rich, data, solver, params, match):
    params = OF_SOLVER.get(solver, {}) | params
    refuse(flat(DPLinearRegressor, solver=solver, accountant=rich, **params), *data, match=match)


@table("solver", OF_SOLVER)
@table("cell", [1e154, 1e300, 1e-32])
def test_cells_that_no_fit_without_noise_takes_are_refused(rich, data, solver, cell):
    params = OF_SOLVER[solver] | {"epsilon": INF, "tol": 1e-2, "accountant": rich}
    model = DPLinearRegressor(solver=solver, **params)
    refuse(model, data[0] * cell, data[1], match="smoothness must lie in")


@table("sizes", [(10**400, 3), (40, 10**400), (40, 2**40), (2**54, 3)])
def test_sizes_that_no_data_has_are_refused(accountant, sizes):
    for ask in (DPLassoCD().planned_event, functools.partial(accountant.cost, DPLassoCD())):
        with pytest.raises(ValueError, match="n_samples|n_features"):
            ask(*sizes)


@table("epsilon", [1.7e308, 10**400])
def test_a_budget_beyond_arithmetic_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivacyAccountant(epsilon, 1e-5)


@table("solver", ["sgd", "svrg"])
@table("epsilon", [1e-5, 1e-12, 1e-300])
@table("relation", [{}, {"neighboring": "add_remove", "n_public": 1000}])
def test_samples_are_calibrated_for_the_smallest_epsilon(solver, epsilon, relation):
    stated = {"solver": solver, "sampling_rate": 0.1, "epsilon": epsilon, "delta": 1e-6}
    model = flat(DPLinearRegressor, **stated, **relation)
    event = model.planned_event(1000, 5)
    assert epsilon_of(event, 1e-6) <= epsilon
    larger = model.set_params(epsilon=2 * epsilon).planned_event(1000, 5)
    assert larger.releases[0].noise_multiplier <= event.releases[0].noise_multiplier


# ---- records, targets and weights ---------------------------------------------------------------


def with_value(array, value, dtype=None):
    array = array.astype(dtype or array.dtype, copy=True)
    array.flat[5] = value
    return array


# Other X and y are refused by what test_common.py checks.
NO_X = [
    ("three dimensions", lambda X: X[:, :, None], "dim 3.*<= 2"),
    ("a scalar", lambda X: 3.0, "Expected 2D array, got scalar"),
    ("a word", lambda X: with_value(X.astype(object), "red"), "could not be converted"),
    ("words", lambda X: np.full(X.shape, "blue"), "dtype|convert"),
    ("too few records", lambda X: X[:-1], r"inconsistent numbers of samples: \[39, 40\]"),
    ("ragged", lambda X: [[1, 2, 3]] * 39 + [[1, 2]], "inhomogeneous|sequence|shape"),
]
NO_Y = [
    ("too long", lambda y: np.append(y, 0), "inconsistent numbers of samples"),
    ("three dimensions", lambda y: y[:, None, None], r"should be a 1d array|got.*shape|dim 3"),
    ("a scalar", lambda y: 1.0, "1d array|scalar|[Ss]ingleton"),
]
NO_TARGET = [
    *(
        (dtype, lambda y, dtype=dtype: y.astype(dtype), "real numbers|dtype")
        for dtype in (str, bytes, "datetime64[D]", "timedelta64[s]")
    ),
    ("words", lambda y: np.where(y == 1, "yes", "no").astype(object), "convert|real numbers"),
    ("a complex cell", lambda y: with_value(y, np.complex64(1), object), "[Cc]omplex"),
    ("a long number", lambda y: with_value(y, "1e999", object), "infinity|too large"),
    ("beyond doubles", lambda y: with_value(y, np.longdouble("1e400"), np.longdouble), "infinity"),
]
NO_LABELS = [
    ("two columns", lambda y: np.column_stack([y, y]), r"should be a 1d array|got.*shape"),
    ("one class", np.ones_like, r"got 1 class\. .*classes="),
    ("continuous", lambda y: y + np.linspace(0, 0.5, len(y)), "Unknown label type: continuous"),
]
NO_WEIGHTS = [
    ("negative", lambda w: with_value(w, -1.0), "[Nn]egative"),
    ("all zero", np.zeros_like, "zero"),
    ("too short", lambda w: w[:-1], r"shape"),
    ("two columns", lambda w: np.column_stack([w, w]), "1D|2 ?[dD]|shape"),
    ("NaN", lambda w: with_value(w, NAN), "NaN"),
    ("infinity", lambda w: with_value(w, INF), "infinity"),
    ("words", lambda w: np.full(len(w), "heavy"), "convert"),
    ("complex", lambda w: w + 1j, "[Cc]omplex"),
]
OF_RECORDS = [
    (estimator, argument, *row)
    for estimators, argument, rows in (
        (ALL, "X", NO_X),
        (ALL, "y", NO_Y),
        (REGRESSORS, "y", NO_TARGET),
        (CLASSIFIERS, "y", NO_LABELS),
        (ALL, "sample_weight", NO_WEIGHTS),
    )
    for estimator in estimators
    for row in rows
]


@table(("estimator", "argument", "what", "spoil", "match"), OF_RECORDS)
def test_bad_records_targets_and_weights_are_refused(
    accountant, data, estimator, argument, what, spoil, match
):
    given = {"X": data[0], "y": data[1], "sample_weight": np.ones(N_SAMPLES)}
    given[argument] = spoil(given[argument])
    refuse(estimator(accountant=accountant), **given, match=match)


def test_a_logistic_loss_refuses_more_than_two_classes(accountant, data):
    model = DPLinearClassifier("logistic", accountant=accountant)
    match = "loss='logistic', got 3 classes.*multinomial"
    refuse(model, data[0], np.arange(N_SAMPLES) % 3, match=match)


def test_weights_that_leave_one_class_are_refused_unless_classes_are_stated(accountant, data):
    X, y = data
    model = DPLogisticGCD(accountant=accountant)
    refuse(model, X, y, match=r"got 1 class\.", sample_weight=y.astype(float))
    model.set_params(classes=[0, 1]).fit(X, y, sample_weight=y.astype(float))


# ---- large records -----------------------------------------------------------------------------

LARGE = [np.asarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2], "f4", "map"]


@table("layout", LARGE)
def test_a_large_array_is_refused_for_any_cell_that_is_not_finite(layout, tmp_path):
    """It is looked at in tiles; what is refused, and in which words, is scikit-learn's."""

    def laid_out(X):
        if layout == "map":
            np.save(tmp_path / "X.npy", X)
            return np.load(tmp_path / "X.npy", mmap_mode="r")
        return X.astype(layout) if layout == "f4" else layout(X)

    X = np.ones((1100, 1000))
    model, y = DPLassoCD(feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=1), np.ones(1100)
    for where in ((0, 0), (1099, 999), (500, 3)):
        for cell, words in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
            other = X.copy()
            other[where] = cell
            refused = pytest.raises(ValueError, match=f"Input X contains {words}")
            with config_context(assume_finite=where == (500, 3)), refused:
                model.fit(laid_out(other), y)
    enormous = laid_out(X * np.float32(3e38))  # whose sum is not finite
    assert model.fit(enormous, y).n_features_in_ == 1000


# ---- words for what is missing, or no number ----------------------------------------------------

TABLE = pd.DataFrame(
    {
        "age": [30.0, np.nan, 51.0, 42.0] * 10,
        "city": pd.Series(["Basel", "Bern", "Basel", "Chur"] * 10, dtype=object),
        "since": pd.to_datetime(["2020-01-01", "2021-01-01"] * 20),
        "kind": pd.Categorical(["a", "b"] * 20),
    }
)


@table("estimator", ALL)
def test_missing_values_are_refused_without_advice_that_voids_the_guarantee(estimator):
    X, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    for where in ([[1.0, np.nan]] + [[1.0, 1.0]] * 3, pd.DataFrame(X).mask(X == 1)):
        with pytest.raises(ValueError, match=r"Input X contains NaN\. Private models") as refused:
            estimator().fit(where, y)
        text = str(refused.value)
        assert "strategy='constant'" in text and "outside of the guarantee" in text
        assert "HistGradientBoosting" not in text and "scikit-learn.org" not in text


@table("read", [functools.partial(make_private_pipeline, DPStandardScaler()), clone])
@table("y", [np.array([np.nan, 1.0]), [None, 0.5], pd.Series([None, 1.0], dtype="Float64")])
def test_missing_targets_are_refused_with_advice_on_targets(read, y):
    for estimator in (DPLinearRegressor(feature_bounds=(0, 1)), DPLassoCD(feature_bounds=(0, 1))):
        with pytest.raises(ValueError, match="Input y contains NaN.*looks at each record") as no:
            read(estimator).fit(np.ones((2, 1)), y)
        assert "DPSimpleImputer" not in str(no.value)
    advised = str(no.value).split("known = ")[1].split("), ")[0] + ")"
    known = eval(advised, {"np": np, "y": y})
    assert known.tolist() == [False, True]


_MASKED = np.ma.masked_array(np.ones(N_SAMPLES), np.arange(N_SAMPLES) == 3)


@table("fit_params", [{"sample_weight": _MASKED}, {"groups": _MASKED.astype(int)}, {}])
def test_masks_and_frames_that_are_not_collected_are_refused(accountant, data, fit_params):
    X, y = data
    unit = Persons() if "groups" in fit_params else "replace_one"
    model = DPRidgeSkGD(accountant=accountant, neighboring=unit)
    if fit_params:
        refuse(model, X, y, "must not be a masked array", **fit_params)
        return
    for masked in ((np.ma.masked_array(X), y), (X, _MASKED)):
        refuse(model, *masked, "must not be a masked array")
    with pytest.raises(TypeError, match="X must not be a masked array"):
        DPStandardScaler().fit(np.ma.masked_array(X))
    refuse(model, X, pd.Series(["a"] * len(y)), "If y holds labels, fit a classifier")
    lazy = pytest.importorskip("polars").DataFrame(X).lazy()
    refuse(model, lazy, y, r"X is a LazyFrame: pass X.collect\(\)")


@pytest.mark.parametrize("estimator", ALL)
def test_a_mixed_table_is_refused_once_with_the_pipeline_that_takes_it(accountant, estimator):
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match="X holds 3 of 4 columns that are no num") as refused:
        estimator(accountant=accountant).fit(TABLE, y)
    assert accountant.entries() == []
    text = str(refused.value)
    assert all(f"{name!r} (" in text for name in ("city", "since", "kind"))
    assert "Basel" not in text  # dtypes and names, no cell
    steps = [make_pipeline, make_private_pipeline, make_private_column_transformer]
    steps += [DPOneHotEncoder, DPSimpleImputer, DPStandardScaler, estimator]
    scope = {step.__name__: step for step in steps}
    assert "categories=" in text.split("\n\n")[0]  # what is free comes first
    pipeline = eval(textwrap.dedent(text.split("\n\n")[1]), scope)
    expression = text.split("such as ")[1].split(";")[0].replace("date", "since")
    days = eval(expression, {"X": TABLE, "pd": pd})
    table = TABLE.assign(since=days)
    with warnings.catch_warnings(action="ignore"):  # forty records are few
        pipeline.fit(table, y)
    assert pipeline.predict(table).shape == (40,)
    if hasattr(pipeline[-1], "classes"):
        pipeline[-1].set_params(classes=[0, 1])
    assert {leak.severity for leak in find_leaks(pipeline)} <= {"note"}


# ---- the accountant -----------------------------------------------------------------------------


PRIVATE = [getattr(room, name) for room in (dpcd_sklearn, preprocessing) for name in room.__all__]
PRIVATE = [kind for kind in PRIVATE if hasattr(kind, "planned_event")]


class Impostor:
    """Looks like an accountant and would let everything pass."""

    testing = True

    def charge(self, event, **facts):
        raise AssertionError("asked an impostor for a receipt")

    cost = spent = charge


@table("wrong", [3.0, "ledger.db", object(), {}, PrivacyAccountant, Impostor()])
@table("kind", PRIVATE)
def test_what_is_no_accountant_is_refused(data, kind, wrong):
    X, y = data_of(kind, data)
    with pytest.raises(TypeError, match="accountant.* must be (a PrivacyAccountant|None) or"):
        kind(accountant=wrong).fit(X, y)


@table("params", [{"random_state": ReproducibleNoise(0)}, {"epsilon": INF}])
@table("kind", PRIVATE)
def test_only_an_accountant_for_testing_admits_what_is_not_private(data, kind, params):
    (word,), data = params, data_of(kind, data)
    accountant = PrivacyAccountant(1e6, 0.01)
    model = kind(accountant=accountant, **params)
    for same in (model, pickle.loads(pickle.dumps(copy.deepcopy(clone(model))))):
        refuse(same, *data, match=f"{word}.*testing=True", ledger=accountant)
    for_tests = PrivacyAccountant(epsilon=5.0, delta=0.01, testing=True)
    kind(accountant=for_tests, **params).fit(*data)
    (entry,) = for_tests.entries()
    assert not entry.private and for_tests.spent().epsilon == INF
    assert ("no noise" if word == "epsilon" else "known noise") in str(for_tests.report())
    assert "random_state" not in str(entry.params)


@table("kind", PRIVATE)
def test_another_relation_a_closed_ledger_and_a_small_budget_are_refused(accountant, data, kind):
    public, data = {"neighboring": "add_remove", "n_public": N_SAMPLES}, data_of(kind, data)
    add_remove = PrivacyAccountant(1e6, 0.01, **public)
    refuse(kind(accountant=add_remove, delta=1e-3), *data, match="neighboring='add_remove'")
    model = kind(accountant=accountant, delta=1e-3, **public)
    refuse(model, *data, match="neighboring='replace_one'")
    small, closed = PrivacyAccountant(0.1, 1e-6), PrivacyAccountant(1e6, 0.01)
    model, reopened = kind(accountant=small), pickle.loads(pickle.dumps(closed))
    with pytest.raises(BudgetExceededError, match="nothing was drawn or recorded"):
        model.fit(*data)
    assert small.entries() == [] and not hasattr(model, "privacy_event_")
    closed.close()
    refuse(kind(accountant=closed), *data, match="closed", ledger=reopened)


# ---- samplings ----------------------------------------------------------------------------------

P = 5
MAKERS = [SingleSampling, FullSampling]
MAKERS += [lambda p: BlockSampling(p, 2), lambda p: NiceSampling(p, 2)]
WRONG_COUNTS = [(0, ValueError), (-1, ValueError)]
WRONG_COUNTS += [(value, TypeError) for value in (2.0, NAN, True, np.True_, "2", None)]
TOO_MANY = [(value, ValueError) for value in (2**31, 10**15, 10**400)]


def spoiled(size):
    """Probabilities, or smoothness, of the right length that are wrong in one way."""
    fine = [1.0] * (size - 1)
    wrong = [[*fine, -1e-300], [*fine, NAN], [*fine, INF], [0.0] * size, [1e308] * size]
    return wrong + [["1"] * size, [True] * size, [1j] * size, [None] * size]


WRONG_LENGTHS = [[0.5] * 4, [], 1.0, np.ones((P, 1))]  # one too few or, for blocks, too many
NO_PARTITION = [[[0, 1], [2, 3]], [[0, 1], [1, 2, 3, 4]], [], [[0, 1, 2, 3, 4], []]]
NO_PARTITION += [[[0, 1], [2, 3, 5]], [[-1, 1], [2, 3, 4]], [[-1, 0, 1, 2, 3, 4]], [[0, 1], [0, 1]]]
NO_PARTITION += [[[0, 0, 1, 2, 3, 4]], [[[0, 1], [2, 3]], [4]]]
NO_INDICES = [[[0.0, 1.0], [2, 3, 4]], [["0"], [1, 2, 3, 4]], [[True, False], [2, 3, 4]], object()]
OF_SAMPLINGS = [
    ("n_coordinates must be", maker, (value,), error)
    for maker in MAKERS
    for value, error in WRONG_COUNTS + TOO_MANY
]
OF_SAMPLINGS += [
    ("block_size must be", cls, (P, value), error)
    for cls in (BlockSampling, NiceSampling)
    for value, error in WRONG_COUNTS
]
OF_SAMPLINGS += [
    ("probabilities must", cls, (*size, value), TypeError if k >= 9 else ValueError)
    for cls, size, length in ((SingleSampling, (P,), P), (BlockSampling, (P, 2), 3))
    for k, value in enumerate(WRONG_LENGTHS + spoiled(length))
]
OF_SAMPLINGS += [("partition.*one block", BlockSampling, (P, p), ValueError) for p in NO_PARTITION]
OF_SAMPLINGS += [("partition", BlockSampling, (P, p), TypeError) for p in NO_INDICES]


@table(("match", "maker", "given", "error"), OF_SAMPLINGS)
def test_samplings_refuse_what_makes_no_sense_by_its_name(match, maker, given, error):
    with pytest.raises(error, match=match):
        maker(*given)


@table("wrong", [*spoiled(P)[:6], np.ones(P - 1), None])
def test_smoothness_that_gives_no_importance_is_refused(wrong):
    sampling = BlockSampling(P, 2, [1, 1, 2])
    with pytest.raises(NO_VALUE, match="smoothness must"):
        sampling.importance(wrong)
    np.testing.assert_array_equal(sampling.probabilities, [0.25, 0.25, 0.5])  # as before


class Drawing:
    """A sampling of the user's own: `draws` makes of a count what is drawn."""

    def __init__(self, draws, block_size=2):
        self.draws, self.block_size = draws, block_size

    def draw(self, generator, count):
        return self.draws(count)


def again(block, block_size=2):
    return Drawing(lambda count: [block] * count, block_size)


def with_curvature(curvature):
    sampling = again([0])
    sampling.curvature = lambda spread: curvature
    return sampling


NONSENSE = [
    *map(with_curvature, (0, 0.5, NAN, INF, "2", None, True)),
    *map(again, ([], [4], [-1], [0, 1, 2], [0.5], [NAN], ["0"], [True], None, [2**63], [None])),
    *map(again, ([[0, 1], [2, 3]], {0, 1}, "01")),
    *(again([0], size) for size in (0, -1, 5, 1.5, "2", None, NAN, True)),
    Drawing(lambda count: [[0]] * (count - 1)),
    Drawing(lambda count: [[0]] * (count + 1)),
    Drawing(lambda count: itertools.repeat([0])),  # without an end
    Drawing(lambda count: None),
    Drawing(lambda count: 0),
]


@table("estimator", GENERIC)
@table("sampling", NONSENSE)
def test_a_sampling_that_draws_nonsense_is_refused_before_the_charge(
    accountant, data, estimator, sampling
):
    model = estimator(solver=SkGD(sampling), accountant=accountant)
    refuse(model, *data, match=r"sampling(\.block_size|\.draw|\.curvature must be| drew)")


def raising(count):
    raise KeyError("a fault of the user's code")


@table("estimator", GENERIC)
@table("later", [lambda count: [[99]] * count, lambda count: [[0, 1]], raising])
def test_a_sampling_that_turns_to_nonsense_once_paid_for_is_replaced_by_a_fixed_block(
    data, estimator, later
):
    trial = iter([lambda count: [[0]] * count])  # sound, and after it comes nonsense
    sampling = Drawing(lambda count: next(trial, later)(count))
    accountant = PrivacyAccountant(1e6, 0.01)
    # of so few records no scale is found, and features without one are let go
    model = estimator(solver=SkGD(sampling), accountant=accountant, feature_scale=1.0)
    with pytest.warns(UserWarning, match="first 2 coordinates were moved"):
        model.fit(*data)
    assert len(accountant.entries()) == 1
    moved = model.coef_.ravel() != 0
    assert moved[:2].all() and not moved[2]  # what was paid for is used, on the public block
