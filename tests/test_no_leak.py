"""Public things follow from public facts: no record moves a count, a shape or a message."""

import copy
import dataclasses
import pickle
import warnings
from functools import partial
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from tables import table

import dpcd_sklearn
from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import DPColumnTransformer
from dpcd_sklearn.exceptions import FewRecordsWarning, UnknownScaleWarning
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSimpleImputer,
    DPStandardScaler,
)
from dpcd_sklearn.privacy.accounting import FitEvent, Receipt
from dpcd_sklearn.privacy.ledger import Prepaid
from dpcd_sklearn.privacy.ledger._unpaid import Unpaid
from dpcd_sklearn.privacy.noise._noise import NoiseSource
from dpcd_sklearn.solvers import CD, GCD, SGD, CompGD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise

N_SAMPLES, N_FEATURES = 60, 4
SECRET = 271828.1828  # stands in the records, and nowhere else

MODELS = {
    "lasso": DPLassoCD(0.01),
    "lasso, bounds": DPLassoCD(
        0.01, feature_bounds=(-2, 2), target_bounds=(-1, 3), sampling="importance"
    ),
    "lasso, add_remove": DPLassoCD(
        0.01, neighboring="add_remove", n_public=50, delta=1e-3, fit_intercept=False
    ),
    "logistic": DPLogisticGCD(classes=[0, 1]),
    "logistic, bounds": DPLogisticGCD(
        l1_ratio=0.5, classes=[0, 1], feature_bounds=(-2, 2), solver=GCD(averaging="tail")),
    "ridge": DPRidgeSkGD(),
    "ridge, blocks": DPRidgeSkGD(sampling="block", block_size=2, feature_scale=2.0),
    "ridge, row norm": DPRidgeSkGD(row_norm_bound=3.0, target_bounds=(0, 1)),
    "huber, periodic, path": DPLinearRegressor(
        "huber", penalty=Box(-1, 2), solver=CD(averaging="periodic"), coef_path=True),
    "nice": DPLinearRegressor(target_bounds=(-1, 3), solver=SkGD(sampling="nice", block_size=2)),
    "compgd": DPLinearRegressor(
        solver=CompGD(n_directions=2), constraint="l1_ball", max_iter=20
    ),
    "sgd": DPLinearRegressor(solver=SGD(sampling_rate=0.3, step_decay=0.5), max_iter=5),
    "svrg": DPLinearRegressor(penalty="l1", solver="svrg", feature_bounds=(-2, 2), max_iter=6),
    "newton": DPLinearRegressor("huber", penalty="l1", solver="newton", feature_bounds=(-2, 2)),
    "frank-wolfe": DPLinearRegressor(
        penalty=None, constraint="l1_ball", solver="frank-wolfe", fit_intercept=False
    ),
    "block-greedy": DPLinearClassifier(
        penalty="nonnegative", solver=GCD(rule="gs-q", block_size=3), classes=[0, 1]
    ),
    "lazy": DPLogisticGCD(l1_ratio=1.0, classes=[0, 1], solver=GCD(block_size=2, selection="lazy")),
    "multinomial": DPLinearClassifier(
        "multinomial", classes=[0, 1, 2], solver=SGD(sampling_rate=0.5)
    ),
    "ridge, scales are found": DPRidgeSkGD(epsilon=8.0),
    "ridge, norms are found": DPRidgeSkGD(epsilon=4.0),
    "logistic, scales are found": DPLogisticGCD(classes=[0, 1], epsilon=8.0),
}  # fmt: skip
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    return X, (X[:, 0] > 0).astype(float)


def with_record(X, i, value):
    X = X.copy()
    X[i] = value
    return X


# Other data sets of the same shape and dtype: what is public must be the same for all of them.
ALIKE = {
    "an outlier": lambda X, y: (with_record(X, 3, SECRET), y),
    "the largest double": lambda X, y: (with_record(X, 3, np.finfo(float).max), y),
    "huge outliers of both signs": lambda X, y: (
        with_record(X, 3, [1e308, -1e308, 1e200, -1e200]),
        with_record(y, 3, -1e308),
    ),
    "huge everywhere": lambda X, y: (np.sign(X) * 1e300, y * 1e300),
    "the largest doubles of both signs": lambda X, y: (
        np.where(np.arange(X.size).reshape(X.shape) % 7 < 4, 1, -1) * np.finfo(float).max,
        np.where(np.arange(y.size) % 7 < 4, 1, -1) * np.finfo(float).max,
    ),
    "denormals": lambda X, y: (X * 1e-310, y * 1e-310),
    "permuted labels": lambda X, y: (X, y[::-1].copy()),
    "one label": lambda X, y: (X, np.ones_like(y)),
    "the other label": lambda X, y: (X, np.zeros_like(y)),
    "labels of their own": lambda X, y: (X, np.linspace(-SECRET, SECRET, len(y))),
    "an unknown label": lambda X, y: (X, with_record(y, 3, SECRET)),
    "constant columns": lambda X, y: (np.full_like(X, 0.5), y),
    "columns of zeros": lambda X, y: (np.zeros_like(X), y),
    "equal columns": lambda X, y: (np.repeat(X[:, :1], N_FEATURES, axis=1), y),
    "equal records": lambda X, y: (np.repeat(X[:1], N_SAMPLES, axis=0), y),
    "a perfect fit": lambda X, y: (X, X[:, 0].copy()),
}


def public_outcome(model, X, y, **fit_params):
    """All that a fit shows, but the released numbers: types and shapes stand for them."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, **fit_params)
            error = None
        except Exception as raised:
            error = type(raised), str(raised)
    outcome = {name: value for name, value in vars(model).items() if name.endswith("_")}
    for name in ("coef_", "intercept_", "coef_path_", "intercept_path_"):
        if name in outcome:
            value = np.asarray(outcome[name])
            outcome[name] = type(outcome[name]), value.dtype, value.shape
            outcome[f"finite {name}"] = bool(np.isfinite(value).all())
    if "classes_" in outcome:
        outcome["classes_"] = outcome["classes_"].dtype, outcome["classes_"].tolist()
    for name in ("feature_bounds", "target_bounds", "row_norm_bound"):
        if (value := outcome.get(f"{name}_")) is None:
            continue
        if getattr(model, name, None) is None:  # found, hence released, and so is what follows
            assert np.isfinite(value).all() and np.isfinite(outcome.pop("clip_", 1.0))
            value = np.shape(value)
        outcome[f"{name}_"] = np.array(value).tolist()  # stated facts, to the last bit
    outcome["warnings"] = [(w.category, str(w.message), w.filename, w.lineno) for w in shown]
    outcome["error"] = error
    outcome["size"] = len(pickle.dumps(model))
    return outcome


def no_warning_of_records(outcome):
    """Whether there is none, but that of too few records, which n and epsilon decide."""
    categories = {category for category, *_ in outcome["warnings"]}
    return categories <= {FewRecordsWarning, UnknownScaleWarning}


def test_scales_are_found_by_some_models_and_not_by_others():
    plans = [model._plan(N_SAMPLES, N_FEATURES, 1) for model in MODELS.values()]
    found = [plan.request.scales.features for plan in plans]
    assert set(found) >= {None, "octaves"}


def other_outcomes(model, data, cast):
    """Names of the data sets whose fits show anything else than this one's."""
    expected = public_outcome(model, *cast(*data))
    assert expected["error"] is None and no_warning_of_records(expected)
    assert expected["finite coef_"] and expected["finite intercept_"]
    outcomes = {name: public_outcome(model, *cast(*alike(*data))) for name, alike in ALIKE.items()}
    return [name for name, outcome in outcomes.items() if outcome != expected]


@every_model
def test_what_is_public_is_the_same_for_all_data_of_one_shape(model, data, capfd):
    assert other_outcomes(model, data, lambda X, y: (X, y)) == []
    assert capfd.readouterr() == ("", "")


@every_model
def test_float32_and_f_order_show_no_more(model, data):
    largest = np.finfo(np.float32).max

    def cast(X, y):
        return np.asfortranarray(np.clip(X, -largest, largest), dtype=np.float32), y

    assert other_outcomes(model, data, cast) == []


WEIGHTS = {
    "one record only": lambda w: np.eye(1, len(w))[0],
    "huge": lambda w: np.full_like(w, 1e300),
    "huge for one record": lambda w: with_record(w, 3, np.finfo(float).max),
    "tiny": lambda w: np.full_like(w, 5e-324),
}


@table("weigh", WEIGHTS.values())
@every_model
def test_weights_show_nowhere(model, data, weigh):
    weights = np.random.default_rng(1).uniform(0.5, 1.5, N_SAMPLES)
    expected = public_outcome(model, *data, sample_weight=weights)
    assert expected["error"] is None and no_warning_of_records(expected)
    assert public_outcome(model, *data, sample_weight=weigh(weights)) == expected


@every_model
def test_the_true_number_of_records_shows_nowhere_under_add_remove(model, data):
    model = type(model)(**model.get_params(deep=False)).set_params(
        neighboring="add_remove", n_public=50, delta=1e-3
    )
    X, y = data
    expected = public_outcome(model, X, y)
    for n in (1, 37, 49):
        assert public_outcome(model, X[:n], y[:n]) == expected


@every_model
def test_the_true_number_of_records_decides_no_refusal_under_add_remove(model):
    # every check before the charge, without the records: they would be too many
    model = type(model)(**model.get_params(deep=False)).set_params(
        neighboring="add_remove", n_public=1000, delta=1e-3
    )
    expected = model.planned_event(1, N_FEATURES)
    for n in (1000, 1001, 13_740, 13_742, 10**6, 2**28):
        assert model.planned_event(n, N_FEATURES) == expected


def test_the_true_number_of_records_decides_nothing_of_a_thousand_choices_at_once():
    model = DPLinearRegressor(
        solver=GCD(block_size=1000), penalty="l1", fit_intercept=False,
        neighboring="add_remove", n_public=1000, delta=1e-6)  # fmt: skip
    events = [model.planned_event(n, 2000) for n in (1, 13_740, 13_742, 10**6)]
    assert all(event == events[0] for event in events)


@every_model
def test_the_ledger_of_all_data_sets_is_the_same(model, data):
    entries = []
    for alike in ALIKE.values():
        accountant = PrivacyAccountant(
            10.0, 1e-2, neighboring=model.neighboring, n_public=model.n_public
        )
        private = type(model)(**model.get_params(deep=False)).set_params(accountant=accountant)
        private.fit(*alike(*data))
        (entry,) = accountant.entries()
        assert "271828" not in repr(entry)
        fields = dataclasses.asdict(entry)
        entries.append({name: fields[name] for name in fields.keys() - {"time", "hash"}})
    assert all(entry == entries[0] for entry in entries)


@every_model
def test_a_refusal_is_the_same_for_all_data_sets(model, data):
    accountant = PrivacyAccountant(
        0.01, 1e-6, neighboring=model.neighboring, n_public=model.n_public
    )
    outcomes = []
    for alike in ALIKE.values():
        refused = type(model)(**model.get_params(deep=False)).set_params(accountant=accountant)
        outcomes.append(public_outcome(refused, *alike(*data)))
    assert outcomes[0]["error"][0] is BudgetExceededError
    assert "coef_" not in outcomes[0]
    assert all(outcome == outcomes[0] for outcome in outcomes)


# --- labels -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::dpcd_sklearn.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("classes", "unknown"),
    [([0, 1], 7), ([0.0, 1.0], 0.5), (["no", "yes"], "perhaps"), ([1, 0], -1), ([2, 5], 3)],
    ids=str,
)
def test_an_unknown_label_counts_as_the_smaller_one_and_touches_no_other_record(
    data, classes, unknown
):
    X, y = data
    y = np.sort(classes)[y.astype(int)]
    model = DPLogisticGCD(classes=classes, random_state=ReproducibleNoise(0))
    odd, known = y.astype(object), y.astype(object)
    odd[:5], known[:5] = unknown, min(classes)
    expected = model.fit(X, known).coef_
    np.testing.assert_array_equal(model.fit(X, odd).coef_, expected)
    np.testing.assert_array_equal(model.fit(X, np.array(odd.tolist())).coef_, expected)
    np.testing.assert_array_equal(model.classes_, np.sort(classes))


@pytest.mark.parametrize("label", [0, 1])
def test_an_absent_class_is_no_error_and_can_be_predicted(data, label):
    X, _ = data
    model = DPLogisticGCD(classes=[0, 1]).fit(X, np.full(N_SAMPLES, label))
    np.testing.assert_array_equal(model.classes_, [0, 1])
    assert model.predict_proba(X).shape == (N_SAMPLES, 2)


def test_labels_in_their_own_dtype_come_back_from_predict(data):
    X, y = data
    words = np.array(["no", "yes"])[y.astype(int)]
    model = DPLogisticGCD(classes=["yes", "no"]).fit(X, words)
    assert set(model.predict(X)) <= {"no", "yes"}


# --- messages ----------------------------------------------------------------------------------


def spoiled(X, y, where):
    X, y, weights = X.copy(), y.copy(), np.ones(len(y))
    X[:, 1], y[1], weights[1] = SECRET, SECRET, SECRET
    array = {"X": X, "y": y, "weights": weights}[where]
    array.flat[-1] = np.nan
    return X, y, weights


@table("where", ["X", "y", "weights"])
@every_model
def test_an_error_about_the_domain_quotes_no_record(model, data, where):
    X, y, weights = spoiled(*data, where)
    outcome = public_outcome(model, X, y, sample_weight=weights)
    assert outcome["error"][0] is ValueError and "NaN" in outcome["error"][1]
    assert "271828" not in outcome["error"][1]
    assert outcome["warnings"] == []


@table("which", [1, N_SAMPLES - 1])
@every_model
def test_an_error_about_weights_tells_no_weight_and_no_record(model, data, which):
    # promises about the domain: no weight is negative, and one at least is positive
    weights = np.ones(N_SAMPLES)
    negative = public_outcome(model, *data, sample_weight=with_record(weights, which, -SECRET))
    assert negative["error"][0] is ValueError and "egative" in negative["error"][1]
    assert negative == public_outcome(model, *data, sample_weight=with_record(-weights, 0, SECRET))
    nothing = public_outcome(model, *data, sample_weight=0 * weights)
    assert nothing["error"][0] is ValueError and "zero" in nothing["error"][1]
    only_one = public_outcome(model, *data, sample_weight=with_record(0 * weights, which, 5e-324))
    assert only_one["error"] is None


@every_model
def test_a_fitted_model_does_not_show_an_outlier_in_its_repr(model, data):
    X, y = data
    model.fit(with_record(X, 3, SECRET), with_record(y, 3, SECRET))
    for text in (repr(model), model._repr_html_(), str(model.privacy_event_)):
        assert "271828" not in text


# --- a sensitivity that is bounded is one that can be seen ---------------------------------------


@pytest.mark.filterwarnings("ignore::dpcd_sklearn.PrivacyLeakWarning")
@every_model
def test_one_record_moves_a_fit_with_the_same_noise_no_further_the_farther_it_lies(model, data):
    # The same seed cancels the noise. Clipping caps an outlier's pull, so 1e3 and 1e300 pull
    # alike; an unclipped one would pull 1e297 times as hard. (Not exactly alike: which integer a
    # clipped gradient rounds to and where greedy choices go may differ.)
    X, y = data
    model = type(model)(**model.get_params(deep=False)).set_params(
        random_state=ReproducibleNoise(0), epsilon=8.0
    )
    plain = model.fit(X, y).coef_
    scale = np.abs(plain).max() + 1.0
    for size in (1e3, 1e300):
        outlier = model.fit(with_record(X, 3, size), with_record(y, 3, -size)).coef_
        assert np.abs(outlier - plain).max() < 100 * scale


# --- the scaler before the model ------------------------------------------------------------------


@table("dtype", [np.float32, np.float64])
@table("alike", ALIKE.values())
def test_scaling_to_public_bounds_warns_about_no_record(data, alike, dtype):
    largest = np.finfo(dtype).max
    X = np.clip(alike(*data)[0], -largest, largest).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = BoundsScaler((-2, 2)).fit(X).transform(X)
    assert (np.abs(Z) <= 1).all() and Z.dtype == dtype


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
    plain = partial(ColumnTransformer, sparse_threshold=0)
    rooms = dpcd_sklearn, dpcd_sklearn.preprocessing
    numbers, target = FRAME[["number"]].assign(square=FRAME["number"] ** 2), FRAME["number"]
    for name in sorted(name for room in rooms for name in room.__all__):
        kind = getattr(dpcd_sklearn, name, None) or getattr(dpcd_sklearn.preprocessing, name)
        if not hasattr(kind, "fit"):
            continue
        estimator = kind()
        given = {key: value for key, value in options.items() if key in estimator.get_params()}
        is_word = is_classifier(estimator) or "classes" in estimator.get_params()
        yield estimator.set_params(**given).fit(numbers, FRAME_LABELS if is_word else target)
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
