"""Bad input is refused with a message that says what is allowed, and nothing is charged."""

import copy
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from tables import table

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.penalties import L1Ball
from dpcd_sklearn.privacy.mechanisms import _oracle
from dpcd_sklearn.solvers import GCD, Newton
from dpcd_sklearn.testing import ReproducibleNoise

ALL = [DPLassoCD, DPLogisticGCD, DPRidgeSkGD]
REGRESSORS = [DPLassoCD, DPRidgeSkGD]
N_SAMPLES, N_FEATURES = 40, 3
NAN, INF = math.nan, math.inf

every_estimator = pytest.mark.parametrize("estimator", ALL)
every_regressor = pytest.mark.parametrize("estimator", REGRESSORS)


@pytest.fixture
def accountant():
    with PrivacyAccountant(epsilon=1e6, delta=0.01) as accountant:
        yield accountant


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    return X, (X[:, 0] > 0).astype(int)


def refuse(model, X, y, match, *, error=(TypeError, ValueError), ledger=None, **fit_params):
    """The fit raises with this message, before a charge, and before it would draw any noise."""
    ledger = model.accountant if ledger is None else ledger
    with pytest.raises(error, match=match) as raised:
        model.fit(X, y, **fit_params)
    assert not isinstance(raised.value, BudgetExceededError)
    assert ledger.entries() == []
    assert not hasattr(model, "coef_")


def test_the_ledger_of_these_tests_would_show_a_charge(accountant, data):
    for estimator in ALL:
        estimator(accountant=accountant).fit(*data)
    assert len(accountant.entries()) == 3


# --- parameters, each by itself --------------------------------------------------------------

# How messages go on after the name of the parameter: with what is allowed.
ALLOWED = "must|allowed|is for|no feature any width|no width|state them as"
COMMON = {
    "epsilon": [NAN, 0, 0.0, -1, True, False, "1", None, -INF, [1.0], 1j],
    "delta": [NAN, -1e-6, 0, 1, 1.5, INF, True, "none", None],
    "neighboring": ["swap_one", None, True],
    "n_public": [0, -1, 2.5, "40", True],
    "clip": [0, -1, NAN, INF, "none", True, None],
    "max_iter": [0, -1, NAN, INF, "all", True, None],
    "solver": ["lbfgs", "", None, True, GCD, Newton, 1, L1Ball(), {"word": "gcd"}],
    "fit_intercept": ["yes", None, 2],
    "tol": [0, -1e-3, NAN, INF, "auto", None, True],
    "feature_bounds": [
        (1, -1),
        ([0, 0, 1], [1, 1, 0]),
        ([0, 0], [1, 1]),
        ([[0, 0, 0]], [[1, 1, 1]]),
        (NAN, 1),
        (0, INF),
        (-INF, INF),
        "(0, 1)",
        ("0", "1"),
        (True, False),
        (0, 1, 2),
        (0,),
        3.0,
        (None, 1),
        (2, 2),
        [0, 1],
        [(0, 1), (0, 1)],
        [(0, 1), (0, 1), (1, 0)],
        np.array([[0.0, 1.0]] * 3),
        {"a": (0, 1)},
    ],
    "feature_scale": [0, -1, [1, 0, 1], [1, 1], NAN, INF, "unit", ["1", "1", "1"], True],
    "row_norm_bound": [0, -1, NAN, INF, "1", True, [1.0]],
    "coef_path": ["yes", None, 2],
    "warm_start": ["yes", None, 2],
    "verbose": [-1, 0.5, "loud", None],
    "inference": ["yes", None, 2],
    "accountant": [],
    "random_state": [1.5, "seed", -1, ReproducibleNoise],
    "n_threads": [0, -1, 1.5, 2.0, NAN, INF, "2", "auto", None, True, False, [2]],
}
TARGET = {
    "alpha": [-1, -1e-9, NAN, INF, "1", None, True],
    "target_bounds": [
        (1, -1),
        (3, 3),
        (NAN, 1),
        (0, INF),
        "(0, 1)",
        ("0", "1"),
        (0,),
        (0, 1, 2),
        5,
        ([0, 0], [1, 1]),
        (True, False),
        [0, 1],
        [(0, 1), (0, 1)],
        {"y": (0, 1)},
    ],
}
COUNTS = [0, -1, 1.5, "all", True]
POSITIVE = {"positive": ["yes", None, 2]}
# What solvers have is in the tables of `test_solver_objects`.
LASSO = POSITIVE | {"sampling": ["full", "block", "cyclic", True]}
RIDGE = POSITIVE | {"sampling": ["single", "cyclic", True, [0, 1]], "block_size": COUNTS}
LOGISTIC = {
    "C": [0, -1, NAN, INF, "1", None, True],
    "l1_ratio": [2, -0.1, NAN, "elasticnet", None, False],
    "rule": ["gs", "cyclic", True],
    "classes": [[1], [1, 1], [], "01", 2, ["0", "1"]],
    "class_weight": ["balanced", "auto", 2, [1, 2], {0: 1.0, 1: 2.0}],  # beside classes=None
}
TABLES = [(DPLassoCD, COMMON | TARGET | LASSO), (DPRidgeSkGD, COMMON | TARGET | RIDGE)]
TABLES += [(DPLogisticGCD, COMMON | LOGISTIC)]
BAD_PARAMETERS = [
    pytest.param(estimator, name, value, id=f"{estimator.__name__}-{name}={value!r}")
    for estimator, table in TABLES
    for name, values in table.items()
    for value in values
]


@table(("estimator", "name", "value"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named_and_not_paid_for(accountant, data, estimator, name, value):
    model = estimator(**{"accountant": accountant, name: value})
    refuse(model, *data, match=rf"(?s){name}.*({ALLOWED})")


@pytest.mark.parametrize(("estimator", "table"), TABLES)
def test_every_parameter_that_can_be_wrong_is_in_the_tables(estimator, table):
    assert set(table) == set(estimator().get_params())


@table(
    ("estimator", "name", "value"),
    # what is wrong with classes may show beside y only
    [case for case in BAD_PARAMETERS if case.values[1] != "classes"],
)
def test_a_plan_refuses_a_bad_parameter_as_the_fit_does(estimator, name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        estimator(**{name: value}).planned_event(N_SAMPLES, N_FEATURES)


@table(("estimator", "name", "value"), BAD_PARAMETERS)
def test_a_fit_without_noise_refuses_it_too(data, estimator, name, value):
    params = {"epsilon": INF} | {name: value}
    with pytest.raises((TypeError, ValueError), match=name):
        estimator(**params).fit(*data)


# --- parameters that contradict each other or the shape ---------------------------------------


@every_estimator
def test_delta_auto_needs_more_than_one_record(accountant, data, estimator):
    X, y = data
    model = estimator(accountant=accountant)
    if estimator is DPLogisticGCD:
        model.set_params(classes=[0, 1])
    refuse(model, X[:1], y[:1], match='delta="auto".*n_samples=1')
    model.set_params(delta=1e-3).fit(X[:1], y[:1])  # a stated one is fine


@every_estimator
def test_delta_auto_is_refused_under_add_remove(data, estimator):
    accountant = PrivacyAccountant(1e6, 0.01, neighboring="add_remove", n_public=40)
    model = estimator(accountant=accountant, neighboring="add_remove", n_public=40)
    refuse(model, *data, match='delta="auto".*add_remove')
    model.set_params(delta=1e-3).fit(*data)
    assert len(accountant.entries()) == 1


@every_estimator
def test_add_remove_and_n_public_belong_together(accountant, data, estimator):
    model = estimator(accountant=accountant, delta=1e-3)
    refuse(model.set_params(n_public=40), *data, match='n_public is for neighboring="add_remove"')
    model.set_params(n_public=None, neighboring="add_remove")
    refuse(model, *data, match='neighboring="add_remove" needs n_public')


ABSURD = [
    {"clip": 1e-40},
    {"clip": 1e300},
    {"epsilon": 1e-30},
    {"epsilon": 1e30},
    {"epsilon": 1e-300},
    {"delta": 1e-300},
    {"feature_scale": 1e20},
    {"feature_scale": 1e-20},
    {"feature_scale": 1e200},
    {"feature_bounds": (-1e20, 1e20)},
    {"feature_bounds": (-1e308, 1e308)},
    {"row_norm_bound": 1e-20},
    {"max_iter": 1e300},
]


@table("params", ABSURD)
@every_estimator
def test_absurd_public_numbers_are_refused_before_the_charge_or_work(data, estimator, params):
    accountant = PrivacyAccountant(epsilon=1e300, delta=0.01)
    model = estimator(**params, accountant=accountant)
    if raises_before_the_charge(model, data):
        assert accountant.entries() == []
    else:
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
        assert len(accountant.entries()) == 1


def raises_before_the_charge(model, data):
    try:
        model.fit(*data)
    except ValueError:
        return True
    return False


@every_regressor
def test_a_target_range_near_the_largest_double_overflows_nowhere(data, estimator):
    model = estimator(target_bounds=(-1e308, 1e308), alpha=0.0).fit(*data)
    assert np.isfinite(model.clip_)


# --- records, targets and weights -------------------------------------------------------------


def with_value(X, value, dtype=None):
    X = X.astype(dtype or X.dtype, copy=True)
    X.flat[5] = value
    return X


BAD_X = {
    "no records": (lambda X: X[:0], "0 sample.*minimum of 1"),
    "no features": (lambda X: X[:, :0], "0 feature.*minimum of 1"),
    "one dimension": (lambda X: X[:, 0], "Expected 2D array, got 1D"),
    "three dimensions": (lambda X: X[:, :, None], "dim 3.*<= 2"),
    "a scalar": (lambda X: 3.0, "Expected 2D array, got scalar"),
    "nothing": (lambda X: None, "None|scalar|array"),
    "NaN": (lambda X: with_value(X, NAN), "NaN"),
    "infinity": (lambda X: with_value(X, INF), "infinity"),
    "minus infinity, float32": (lambda X: with_value(X, -INF, np.float32), "infinity"),
    "strings": (lambda X: with_value(X.astype(object), "red"), "could not be converted"),
    "numbers as strings of words": (lambda X: np.full(X.shape, "blue"), "dtype|convert"),
    "complex": (lambda X: X + 1j, "Complex data not supported"),
    "too few records": (lambda X: X[:-1], r"inconsistent numbers of samples: \[39, 40\]"),
    "ragged": (lambda X: [[1, 2, 3]] * 39 + [[1, 2]], "inhomogeneous|sequence|shape"),
}


@table("case", BAD_X)
@every_estimator
def test_bad_records_are_refused(accountant, data, estimator, case):
    X, y = data
    spoil, match = BAD_X[case]
    refuse(estimator(accountant=accountant), spoil(X), y, match=match)


BAD_Y = {
    "too long": (lambda y: np.append(y, 0), "inconsistent numbers of samples"),
    "three dimensions": (lambda y: y[:, None, None], r"should be a 1d array|got.*shape|dim 3"),
    "nothing": (lambda y: None, "requires y to be passed"),
    "NaN": (lambda y: with_value(y, NAN, float), "NaN"),
    "infinity": (lambda y: with_value(y, INF, float), "infinity"),
    "complex": (lambda y: y + 1j, "Complex data not supported"),
    "a scalar": (lambda y: 1.0, "1d array|scalar|[Ss]ingleton"),
}


def test_two_columns_of_labels_are_refused(accountant, data):
    X, y = data
    model = DPLogisticGCD(accountant=accountant)
    refuse(model, X, np.column_stack([y, y]), match=r"should be a 1d array|got.*shape")


@table("case", BAD_Y)
@every_estimator
def test_a_bad_target_is_refused(accountant, data, estimator, case):
    X, y = data
    spoil, match = BAD_Y[case]
    refuse(estimator(accountant=accountant), X, spoil(y), match=match)


@pytest.mark.parametrize("dtype", [str, "datetime64[D]", "timedelta64[s]", bytes])
@every_regressor
def test_a_target_that_is_no_number_is_refused_before_the_charge(
    accountant, data, estimator, dtype
):
    X, y = data
    refuse(estimator(accountant=accountant), X, y.astype(dtype), match="real numbers|dtype")


@every_regressor
def test_a_target_of_words_is_refused(accountant, data, estimator):
    X, y = data
    words = np.where(y == 1, "yes", "no").astype(object)
    refuse(estimator(accountant=accountant), X, words, match="convert|real numbers")


LABELS = {
    "one class": (lambda y: np.ones_like(y), r"got 1 class\. .*classes="),
    "a continuous target": (lambda y: y + np.linspace(0, 0.5, len(y)), "Unknown label type"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_of_no_classes_are_refused_when_classes_are_not_stated(accountant, data, case):
    X, y = data
    spoil, match = LABELS[case]
    refuse(DPLogisticGCD(accountant=accountant), X, spoil(y), match=match)


def test_weights_that_leave_one_class_are_refused_unless_classes_are_stated(accountant, data):
    X, y = data
    model = DPLogisticGCD(accountant=accountant)
    refuse(model, X, y, match=r"got 1 class\.", sample_weight=y.astype(float))
    model.set_params(classes=[0, 1]).fit(X, y, sample_weight=y.astype(float))


@pytest.mark.parametrize(
    ("classes", "kind"), [(["0", "1"], int), ([0, 1], str), (["no", "yes"], float)]
)
def test_classes_of_another_kind_than_y_are_refused(accountant, data, classes, kind):
    X, y = data
    model = DPLogisticGCD(accountant=accountant, classes=classes)
    refuse(model, X, y.astype(kind), match="y has dtype .* and classes has dtype")


BAD_WEIGHTS = {
    "negative": (lambda w: with_value(w, -1.0), "[Nn]egative"),
    "all zero": (np.zeros_like, "zero"),
    "too short": (lambda w: w[:-1], r"shape"),
    "two columns": (lambda w: np.column_stack([w, w]), "1D|2 ?[dD]|shape"),
    "NaN": (lambda w: with_value(w, NAN), "NaN"),
    "infinity": (lambda w: with_value(w, INF), "infinity"),
    "words": (lambda w: np.full(len(w), "heavy"), "convert"),
    "complex": (lambda w: w + 1j, "[Cc]omplex"),
}


@table("case", BAD_WEIGHTS)
@every_estimator
def test_bad_weights_are_refused(accountant, data, estimator, case):
    spoil, match = BAD_WEIGHTS[case]
    weights = spoil(np.ones(N_SAMPLES))
    refuse(estimator(accountant=accountant), *data, match=match, sample_weight=weights)


@every_estimator
def test_other_columns_at_prediction_than_at_fit_are_refused(data, estimator):
    X, y = data
    model = estimator().fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3"):
        model.predict(X[:, :2])


# --- the accountant ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [3.0, "ledger.db", object(), PrivacyAccountant, {}])
@every_estimator
def test_what_is_no_accountant_is_refused(data, estimator, wrong):
    with pytest.raises((TypeError, ValueError), match="accountant"):
        estimator(accountant=wrong).fit(*data)


class Impostor:
    """Looks like an accountant and would let everything pass."""

    testing = True

    def charge(self, event, **facts):
        raise AssertionError("asked an impostor for a receipt")

    cost = spent = charge


@every_estimator
def test_what_only_looks_like_an_accountant_is_refused(data, estimator):
    with pytest.raises(TypeError, match="accountant must be a PrivacyAccountant or None"):
        estimator(accountant=Impostor()).fit(*data)


@pytest.mark.parametrize(
    "params", [{"random_state": ReproducibleNoise(0)}, {"epsilon": INF}], ids=str
)
@every_estimator
def test_no_ledger_vouches_for_a_seed_or_for_no_noise(accountant, data, estimator, params):
    (name,) = params
    model = estimator(accountant=accountant, **params)
    refuse(model, *data, match=rf"{name}.*testing=True")


@pytest.mark.parametrize("seed", [7, np.random.RandomState(7)], ids=["int", "RandomState"])
@every_estimator
def test_a_seed_of_public_choices_is_charged_like_any_fit(accountant, data, estimator, seed):
    estimator(accountant=accountant, random_state=seed).fit(*data)
    (entry,) = accountant.entries()
    assert entry.private and accountant.spent().epsilon < INF
    assert "random_state" not in str(entry.params)


@pytest.mark.filterwarnings("ignore::dpcd_sklearn.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "params", [{"random_state": ReproducibleNoise(0)}, {"epsilon": INF}], ids=str
)
@every_estimator
def test_an_accountant_for_testing_admits_both_and_says_so(data, estimator, params):
    accountant = PrivacyAccountant(epsilon=5.0, delta=0.01, testing=True)
    estimator(accountant=accountant, **params).fit(*data)
    (entry,) = accountant.entries()
    assert not entry.private and accountant.spent().epsilon == INF
    assert ("no noise" if "epsilon" in params else "known noise") in str(accountant.report())
    assert "random_state" not in str(entry.params)


@every_estimator
def test_copies_of_an_accountant_do_not_forget_that_it_is_not_for_testing(
    accountant, data, estimator
):
    model = estimator(accountant=accountant, random_state=ReproducibleNoise(0))
    for same in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        refuse(same, *data, match="testing=True")


@every_estimator
def test_an_accountant_of_another_neighbouring_relation_is_refused(data, estimator):
    add_remove = PrivacyAccountant(1e6, 0.01, neighboring="add_remove", n_public=40)
    model = estimator(accountant=add_remove, delta=1e-3)
    refuse(model, *data, match="neighboring='add_remove'")
    replace_one = PrivacyAccountant(1e6, 0.01)
    model = estimator(accountant=replace_one, delta=1e-3, neighboring="add_remove", n_public=40)
    refuse(model, *data, match="neighboring='replace_one'")


@every_estimator
def test_a_closed_accountant_is_refused(data, estimator):
    accountant = PrivacyAccountant(1e6, 0.01)
    reopened = pickle.loads(pickle.dumps(accountant))
    accountant.close()
    refuse(estimator(accountant=accountant), *data, match="closed", ledger=reopened)


@every_estimator
def test_a_budget_that_is_too_small_refuses_before_a_record_is_read(data, estimator, monkeypatch):
    accountant = PrivacyAccountant(epsilon=0.5, delta=1e-6)
    model = estimator(epsilon=1.0, accountant=accountant)
    read = []
    monkeypatch.setattr(
        "dpcd_sklearn.engines._engines_coordinates.RecordOracle",
        type("Watched", (_oracle.RecordOracle,), {"__new__": lambda *a, **k: read.append(a)}),
    )
    with pytest.raises(BudgetExceededError, match="nothing was drawn or recorded"):
        model.fit(*data)
    assert accountant.entries() == [] and read == []
    assert not hasattr(model, "coef_")
