"""Public facts decide all that is public: a tape forces the same answers from any records.

test_tape.py compares neighbours. Here the other data set differs in every record.
"""

import copy
import dataclasses
import functools
import pickle
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from tables import table
from tape_cases import CASES, N, numbers, two, unit

import dpcd_sklearn
from dpcd_sklearn import (
    BudgetExceededError,
    DPGammaRegressor,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPPoissonRegressor,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import DPColumnTransformer
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSimpleImputer,
    DPStandardScaler,
)
from dpcd_sklearn.privacy.accounting import FitEvent, Receipt
from dpcd_sklearn.privacy.ledger import Prepaid
from dpcd_sklearn.privacy.ledger._rehearsal import Unpaid
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.solvers import GCD
from dpcd_sklearn.testing import ReproducibleNoise, replay

LARGEST, LARGEST_SINGLE = np.finfo(float).max, np.finfo(np.float32).max


def of_both_signs(Z):
    return np.where(np.arange(Z.size).reshape(Z.shape) % 7 < 4, LARGEST, -LARGEST)


# Other data sets of the same shape and dtype.
ALIKE = {
    "huge everywhere": lambda X, y: (np.sign(X) * 1e300, np.sign(y) * 1e300),
    "the largest doubles": lambda X, y: (of_both_signs(X), of_both_signs(y)),
    "denormals": lambda X, y: (X * 1e-310, y * 1e-310),
    "permuted labels": lambda X, y: (X, y[::-1].copy()),
    "one label": lambda X, y: (X, np.ones_like(y)),
    "the other label": lambda X, y: (X, np.zeros_like(y)),
    "constant columns": lambda X, y: (np.full_like(X, 0.5), y),
    "columns of zeros": lambda X, y: (np.zeros_like(X), y),
    "equal columns": lambda X, y: (np.repeat(X[:, :1], X.shape[1], axis=1), y),
    "equal records": lambda X, y: (np.repeat(X[:1], len(X), axis=0), y),
    "a perfect fit": lambda X, y: (X, X[:, 0].copy()),
}
OF_NUMBERS = [
    name
    for name, case in CASES.items()
    if case.records in (numbers, unit, two)
    if not name.startswith(("search", "raises"))  # how many runs a search has is a coin
]
FAST = [
    "auto", "auto, add_remove", "auto, two", "cd, stated", "gcd, two", "skgd, scales", "sgd",
    "svrg", "compgd", "frank-wolfe", "ridge, blocks", "ridge, norm", "lasso", "logistic",
    "gcd, lazy", "newton, huber", "box", "inference", "scaler", "select", "pipeline",
]  # fmt: skip


def other_records(data, alike):
    X, y = ALIKE[alike](data.X, np.clip(data.y, -1e300, 1e300))
    if data.y.dtype.kind == "i":
        y = np.clip(y, -(2.0**40), 2.0**40).astype(int)
    return dataclasses.replace(data, X=X, y=y)


def check(name, data, other):
    fit = functools.partial(CASES[name].fit, ledger=True)
    replay(fit, data, other, other_coins=True)


def check_alike(name, alike):
    data, _, _ = CASES[name].pair(0)
    check(name, data, other_records(data, alike))


def half(names):
    """Every other pair: each fit sees half of the data sets, and each data set half of the fits."""
    pairs = [(name, alike) for name in names for alike in ALIKE]
    return [pair for i, pair in enumerate(pairs) if i % 2 == 0]  # the number of data sets is odd


@table(("name", "alike"), half(FAST))
def test_what_is_public_is_the_same_for_all_data_of_one_shape(name, alike, capfd):
    check_alike(name, alike)
    assert capfd.readouterr() == ("", "")  # a tape does not see what compiled code prints


@pytest.mark.slow
@table("alike", ALIKE)
@table("name", OF_NUMBERS)
def test_what_is_public_of_every_fit_is_so(name, alike):
    check_alike(name, alike)


@table("alike", ["the largest doubles", "denormals", "one label"])
@table("name", FAST[::3])
def test_float32_and_f_order_show_no_more(name, alike):
    def cast(data):
        X = np.clip(data.X, -LARGEST_SINGLE, LARGEST_SINGLE)
        return dataclasses.replace(data, X=np.asfortranarray(X, dtype=np.float32))

    data, _, _ = CASES[name].pair(0)
    check(name, cast(data), cast(other_records(data, alike)))


@table(("name", "alike"), half(["auto", "lasso", "logistic", "sgd", "scaler", "pipeline"]))
def test_a_refusal_is_the_same_for_all_data_of_one_shape(name, alike):
    def refused(data, tape):
        model = CASES[name].make(tape)
        accountant = PrivacyAccountant(0.01, 1e-6, testing=True)
        model.set_params(accountant=accountant)
        with pytest.raises(BudgetExceededError) as refusal:
            model.fit(data.X, data.y)
        assert not hasattr(model, "coef_") and not hasattr(model, "scale_")
        return model, str(refusal.value)

    data, _, _ = CASES[name].pair(0)
    assert replay(refused, data, other_records(data, alike)).returned is not None


WEIGHTS = {
    "one record only": lambda w: np.eye(1, len(w))[0],
    "huge": lambda w: np.full_like(w, 1e300),
    "huge for one record": lambda w: np.where(np.arange(len(w)) == 3, LARGEST, w),
    "tiny": lambda w: np.full_like(w, 5e-324),
}
WEIGHTED = [name for name, case in CASES.items() if case.weighted]


@table("weigh", WEIGHTS)
@table("name", WEIGHTED)
def test_weights_show_nowhere(name, weigh):
    data, _, _ = CASES[name].pair(0)
    other = dataclasses.replace(data, weights=WEIGHTS[weigh](data.weights))
    replay(CASES[name].fit, data, other, other_coins=True)


@table("name", WEIGHTED)
def test_an_error_about_weights_tells_no_weight_and_no_record(name):
    """Promises about the domain: no weight is negative, and one at least is positive."""
    data, _, _ = CASES[name].pair(0)
    negative = [dataclasses.replace(data, weights=np.eye(1, N, i)[0] - 1 - i) for i in (1, N - 1)]
    assert replay(CASES[name].fit, *negative).returned is None
    with pytest.raises(ValueError, match="[Nn]egative"):
        CASES[name].fit(negative[0], None)
    with pytest.raises(ValueError, match="zero"):
        CASES[name].fit(dataclasses.replace(data, weights=np.zeros(N)), None)


REMOVING = [name for name in CASES if name.endswith("add_remove") and "search" not in name]


@table(("name", "n_samples"), [(name, (1, 37)[i % 2]) for i, name in enumerate(REMOVING)])
def test_the_true_number_of_records_shows_nowhere_under_add_remove(name, n_samples):
    data, _, _ = CASES[name].pair(0)
    fewer = type(data)(data.X[:n_samples], data.y[:n_samples], data.weights[:n_samples])
    fit = functools.partial(CASES[name].fit, ledger=True)
    replay(fit, data, fewer, other_coins=True)


def test_the_true_number_of_records_decides_no_plan_under_add_remove():
    n_plans = 0
    for name in OF_NUMBERS:
        model = CASES[name].make(None)
        plans = hasattr(model, "planned_event")
        if not plans or "neighboring" not in model.get_params(deep=False):
            continue
        model.set_params(neighboring="add_remove", n_public=1000, delta=1e-3)
        try:
            expected = model.planned_event(1, 3)
        except ValueError:  # it needs bounds, or goes with no such relation
            continue
        n_plans += 1
        for n_samples in (1001, 2**28):
            assert model.planned_event(n_samples, 3) == expected, name
    assert n_plans > 40


def test_the_true_number_of_records_decides_nothing_of_a_thousand_choices_at_once():
    model = DPLinearRegressor(
        solver=GCD(block_size=1000), penalty="l1", fit_intercept=False,
        neighboring="add_remove", n_public=1000, delta=1e-6)  # fmt: skip
    events = [model.planned_event(n, 2000) for n in (1, 13_740, 13_742, 10**6)]
    assert all(event == events[0] for event in events)


@pytest.mark.parametrize(
    ("classes", "unknown"),
    [([0, 1], 7), ([0.0, 1.0], 0.5), (["no", "yes"], "perhaps"), ([1, 0], -1), ([2, 5], 3)],
    ids=str,
)
def test_an_unknown_label_counts_as_the_smaller_one_and_touches_no_other_record(classes, unknown):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(float)
    y = np.sort(classes)[y.astype(int)]
    model = DPLogisticGCD(classes=classes, random_state=ReproducibleNoise(0))
    odd, known = y.astype(object), y.astype(object)
    odd[:5], known[:5] = unknown, min(classes)
    expected = model.fit(X, known).coef_
    np.testing.assert_array_equal(model.fit(X, odd).coef_, expected)
    np.testing.assert_array_equal(model.fit(X, np.array(odd.tolist())).coef_, expected)
    np.testing.assert_array_equal(model.classes_, np.sort(classes))


# ---- what fitted objects hold -------------------------------------------------------------------

FRAME = pd.DataFrame(
    {"word": np.resize(["a", "b", None], 151), "number": np.linspace(-1.0, 1.0, 151)}
)
FRAME_LABELS = np.arange(151) % 2
IN_FLIGHT = Prepaid, Receipt, Unpaid, NoiseSource, np.random.Generator, np.random.RandomState


def mixed(kind):
    """A transformer of two columns by private steps, one of them within a pipeline."""
    numbers = make_pipeline(DPSimpleImputer(), DPStandardScaler())
    return kind([("w", DPOneHotEncoder(max_categories=3), ["word"]), ("n", numbers, ["number"])])


def fitted_objects(accountant):
    """Every kind of estimator of the package, fitted to FRAME or to numbers."""
    options = {"epsilon": 3.0, "delta": 1e-6, "accountant": accountant}
    model = DPLinearClassifier(classes=[0, 1], max_iter=2)
    plain = functools.partial(ColumnTransformer, sparse_threshold=0)
    rooms = dpcd_sklearn, dpcd_sklearn.preprocessing
    numbers, target = FRAME[["number"]].assign(square=FRAME["number"] ** 2), FRAME["number"]
    for name in sorted(name for room in rooms for name in room.__all__):
        kind = getattr(dpcd_sklearn, name, None) or getattr(dpcd_sklearn.preprocessing, name)
        if not hasattr(kind, "fit"):
            continue
        estimator = kind()
        given = {key: value for key, value in options.items() if key in estimator.get_params()}
        is_word = is_classifier(estimator) or "classes" in estimator.get_params()
        y = abs(target) + 0.1 if kind in (DPGammaRegressor, DPPoissonRegressor) else target
        yield estimator.set_params(**given).fit(numbers, FRAME_LABELS if is_word else y)
    for kind in (plain, DPColumnTransformer):
        yield make_private_pipeline(mixed(kind), model, **options).fit(FRAME, FRAME_LABELS)
    union = FeatureUnion([("a", DPStandardScaler()), ("b", DPQuantileTransformer())])
    yield make_private_pipeline(union, model, **options).fit(numbers, FRAME_LABELS)
    inner = make_private_pipeline(DPStandardScaler(), model)
    yield make_private_pipeline(DPStandardScaler(), inner, **options).fit(numbers, FRAME_LABELS)
    yield mixed(DPColumnTransformer).set_params(**options).fit(FRAME)
    for n_jobs in (1, 2):
        base = make_private_pipeline(mixed(plain), model)
        grid = {"dplinearclassifier__alpha": [0.1, 1.0]}
        how = options | {"n_iter": 1.5, "n_jobs": n_jobs, "refit": n_jobs == 1}
        search = PrivateSearchCV(base, grid, **how)
        yield search.fit(FRAME, FRAME_LABELS)
        assert search.best_estimator_ is not None
        scorer = make_private_scorer("accuracy", 0.5, accountant)
        scorer(search.best_estimator_, FRAME, FRAME_LABELS)
        yield scorer


def held(root, allowed):
    """The paths by which an object reaches what it must not hold."""
    seen, left = {}, [(root, type(root).__name__)]
    while left:
        value, path = left.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType, FunctionType, *allowed)):
            continue
        seen[id(value)] = value  # kept, so that no other object gets its id
        shape = getattr(value, "shape", None)
        n_rows = shape[:1] == (len(FRAME),) if isinstance(shape, tuple) else False
        is_list = isinstance(value, (list, tuple)) and len(value) == len(FRAME)
        in_flight = isinstance(value, IN_FLIGHT) or type(value).__name__.endswith("Oracle")
        if in_flight or n_rows or is_list:
            yield f"{path}: {type(value).__name__}"
        if isinstance(value, dict):
            left += [(item, f"{path}[{key!r}]") for key, item in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            left += [(item, f"{path}[{i}]") for i, item in enumerate(value)]
        elif isinstance(value, np.ndarray):
            left += [(value.base, f"{path}.base")]
            left += [(value.ravel().tolist(), f"{path}[:]")] * (value.dtype == object)
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        names = {*getattr(value, "__dict__", ()), *slots}
        left += [(getattr(value, name, None), f"{path}.{name}") for name in names]


@pytest.mark.filterwarnings("ignore")
def test_no_fitted_object_holds_budgets_in_flight_noise_or_records():
    with PrivacyAccountant(1000.0, 0.5) as accountant:
        objects = list(fitted_objects(accountant))
        found = [one for each in objects for one in held(each, [PrivacyAccountant])]
        assert not found, "\n".join(found)
        assert len(objects) > 20
        for each in objects:
            for again in pickle.loads(pickle.dumps(each)), copy.deepcopy(each):
                assert type(again) is type(each)


def test_the_walk_over_fitted_objects_finds_what_it_looks_for():
    receipt = Receipt(FitEvent(()), None)
    records = FRAME, list(range(151)), FRAME_LABELS[::-1]
    for value in (receipt, Prepaid(None, FitEvent(())), *records):
        model = DPRidgeSkGD()
        model._deep = {"a": [(np.array([value, None], dtype=object),)]}
        if isinstance(value, (pd.DataFrame, np.ndarray, list)):
            model._deep = {"a": [(value,)]}
        assert list(held(model, []))
