"""Predictions: features clipped as in the fit, in every layout, and the linear model inside."""

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.testing import ReproducibleNoise

LO, HI = np.array([-1.0, 0.0, -2.0, -0.5]), np.array([1.0, 3.0, 0.0, 0.5])
REGRESSORS = [DPLassoCD(), DPRidgeSkGD(), DPLinearRegressor("huber", solver="sgd")]
BINARY = [DPLogisticGCD(classes=[0, 1]), DPLinearClassifier(classes=[0, 1], solver="cd")]
TERNARY = [DPLinearClassifier("multinomial", classes=[0, 1, 2], solver="sgd")]
MODELS = REGRESSORS + BINARY + TERNARY
LAYOUTS = [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix]


def name_of(value):
    return getattr(value, "__name__", type(value).__name__)


def fitted(model, bounds=(LO, HI), dtype=np.float64, **params):
    rng = np.random.default_rng(0)
    X = rng.uniform(LO, HI, size=(200, 4)).astype(dtype)
    y = rng.integers(0, 3 if model in TERNARY else 2, size=200)
    scale = None if bounds is None else 1.0  # nothing narrower is looked for
    stated = {"epsilon": 5.0, "feature_bounds": bounds, "feature_scale": scale}
    model = type(model)(**model.get_params(deep=False) | stated | params)
    return model.fit(X, y)


def wild(n_samples=300, dtype=np.float64):
    """Records of which about half the cells lie outside the bounds, and many are zero."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_samples, 4)) * 10.0 ** rng.integers(-1, 4, size=(n_samples, 4))
    return np.where(rng.uniform(size=X.shape) < 0.3, 0.0, X).astype(dtype)


def inside(model, X, bounds=(LO, HI)):
    margins = np.clip(X.astype(np.float64), *bounds) @ np.atleast_2d(model.coef_).T
    return np.squeeze(margins + model.intercept_)


def twin(model, X, bounds=(LO, HI)):
    """Predictions; those of regressors lie within the target's bounds."""
    found = inside(model, X, bounds)
    if hasattr(model, "classes_") or np.isinf(model.epsilon) or model.target_bounds_ is None:
        return found
    return np.clip(found, *model.target_bounds_)


# --- the clip -------------------------------------------------------------------------------------


@table("dtype", [np.float64, np.float32])
@table("layout", LAYOUTS)
@table("model", MODELS)
@table("stated", [{}, {"bounds": None, "epsilon": 50.0}])  # and bounds that are found
def test_features_are_clipped_as_in_the_fit(model, layout, dtype, stated):
    model, X = fitted(model, **stated), wild(dtype=dtype)
    expected = twin(model, X, model.feature_bounds_)
    assert not np.allclose(X @ np.atleast_2d(model.coef_).T, expected.reshape(len(X), -1))
    found = model.predict(layout(X))
    if not hasattr(model, "classes_"):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        return
    assert_allclose(model.decision_function(layout(X)), expected, rtol=1e-12, atol=1e-12)
    if expected.ndim == 1:
        probabilities, chosen = np.c_[expit(-expected), expit(expected)], expected > 0
        logs = np.log(probabilities)
    else:
        probabilities, chosen = softmax(expected, axis=1), expected.argmax(axis=1)
        logs = log_softmax(expected, axis=1)
    assert_array_equal(found, model.classes_[chosen.astype(int)])
    assert_allclose(model.predict_proba(layout(X)), probabilities, atol=1e-12)
    assert_allclose(model.predict_log_proba(layout(X)), logs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_scores_are_of_clipped_predictions(model):
    model, X = fitted(model), wild()
    y = np.arange(len(X)) % 2
    judge = accuracy_score if hasattr(model, "classes_") else r2_score
    assert model.score(X, y) == judge(y, model.predict(np.clip(X, LO, HI)))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_entries_of_one_cell_are_added_before_they_are_clipped(make):
    twice = sparse.coo_array(([9.0, -8.5, 7.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 4))
    rows = sparse.csr_array(([9.0, -8.5, 7.0], [0, 0, 1], [0, 2, 3]), shape=(2, 4))
    assert rows.nnz == 3
    model = fitted(DPLassoCD())
    expected = twin(model, twice.toarray())
    assert_allclose(model.predict(rows), expected, rtol=1e-12)
    assert_allclose(model.predict(make(twice)), expected, rtol=1e-12)
    assert_array_equal(rows.data, [9.0, -8.5, 7.0])


@pytest.mark.parametrize("layout", LAYOUTS, ids=name_of)
def test_predictions_leave_records_as_they_are(layout):
    model, X = fitted(DPLassoCD()), layout(wild())
    before = X.copy()
    for array in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
        array.flags.writeable = False
    model.predict(X)
    assert abs(X - before).max() == 0


# --- where there is no clip -----------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=name_of)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_bounds_or_noise_nothing_is_clipped(model):
    X = wild()
    unit_scale = fitted(model, bounds=None, feature_scale=1.0)
    for free in (unit_scale, fitted(model, epsilon=np.inf, max_iter=5)):
        assert free.feature_bounds_ is None
        margins = getattr(free, "decision_function", free.predict)(X)
        assert_allclose(margins, twin(free, X, (-np.inf, np.inf)), rtol=1e-9, atol=1e-9)


def test_parameters_that_change_after_the_fit_do_not_change_predictions():
    lo, hi = LO.copy(), HI.copy()
    model, X = fitted(DPLassoCD(), bounds=(lo, hi)), wild()
    expected = model.predict(X)
    lo -= 7
    assert_array_equal(model.predict(X), expected)
    assert_array_equal(model.set_params(feature_bounds=None).predict(X), expected)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_predictions_are_clipped_to_the_targets_bounds_stated_or_found(n_targets):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 1))
    y, far = np.repeat(X, n_targets, axis=1), np.array([[-1.0], [1.0]])
    y = y[:, 0] if n_targets == 1 else y
    stated = DPRidgeSkGD(epsilon=100.0, feature_bounds=(-1, 1), target_bounds=(-0.5, 0.6)).fit(X, y)
    assert_allclose(stated.predict(far)[0], np.full(n_targets, -0.5).squeeze())
    assert_allclose(stated.predict(far)[1], np.full(n_targets, 0.6).squeeze())
    found = DPRidgeSkGD(epsilon=100.0, feature_scale=1.0).fit(X, y)
    assert found.target_bounds_ is not None and found.feature_bounds_ is None
    expected = np.broadcast_to(np.asarray(found.target_bounds_).reshape(2, -1), (2, n_targets))
    for plain in (found, found.to_sklearn()):
        assert_allclose(plain.predict(1e6 * far), expected.squeeze())
    free = DPRidgeSkGD(epsilon=np.inf, feature_bounds=(-1, 1), target_bounds=(-0.5, 0.5)).fit(X, y)
    assert np.abs(free.predict(far)).min() > 0.9


# --- the plain estimator inside -------------------------------------------------------------------

ELASTIC = DPLinearRegressor(penalty="elasticnet", alpha=0.01, l1_ratio=0.3, solver="cd")
PLAIN = [
    (DPLassoCD(0.01), Lasso, {"alpha": 0.01}),
    (DPRidgeSkGD(0.5, fit_intercept=False), Ridge, {"alpha": 0.5, "fit_intercept": False}),
    (ELASTIC, ElasticNet, {"alpha": 0.01, "l1_ratio": 0.3}),
    (DPLinearRegressor(penalty="l1", alpha=0.1, solver="cd"), ElasticNet, {"l1_ratio": 1.0}),
    (DPLinearRegressor(penalty="l2", alpha=0.1, solver="cd"), ElasticNet, {"l1_ratio": 0.0}),
    (DPLinearRegressor("huber", solver="sgd"), LinearRegression, {"positive": False}),
    (DPLinearRegressor(penalty="nonnegative", solver="cd"), LinearRegression, {"positive": True}),
    (DPLogisticGCD(0.3, classes=[0, 1]), LogisticRegression, {"C": 0.3, "l1_ratio": 0.0}),
    (
        DPLogisticGCD(l1_ratio=0.5, classes=[0, 1]),
        LogisticRegression,
        {"l1_ratio": 0.5, "solver": "saga"},
    ),
    (BINARY[1], LogisticRegression, {}),
    (TERNARY[0], LogisticRegression, {}),
]
every_plain = pytest.mark.parametrize(("model", "kind", "params"), PLAIN)


def assert_same_predictions(plain, model, X, expected_margins):
    if not hasattr(model, "classes_"):
        assert_allclose(plain.predict(X), expected_margins, rtol=1e-9, atol=1e-9)
        return
    assert_allclose(plain.decision_function(X), expected_margins, rtol=1e-9, atol=1e-9)
    assert_array_equal(plain.classes_, model.classes_)
    if expected_margins.ndim == 1:
        probabilities = np.c_[expit(-expected_margins), expit(expected_margins)]
    else:
        probabilities = softmax(expected_margins, axis=1)
    assert_allclose(plain.predict_proba(X), probabilities, atol=1e-9)
    assert_array_equal(plain.predict(X), model.classes_[probabilities.argmax(axis=1)])


@every_plain
def test_to_sklearn_without_clips_is_the_linear_model_inside(model, kind, params):
    model, X = fitted(model), wild()
    plain = model.to_sklearn(clip=False)
    assert type(plain) is kind
    assert params.items() <= plain.get_params().items()
    assert plain.n_features_in_ == 4 and not hasattr(plain, "feature_names_in_")
    for either in (plain, pickle.loads(pickle.dumps(plain))):
        assert_same_predictions(either, model, X, inside(model, X, (-np.inf, np.inf)))
    assert_allclose(plain.predict(sparse.csr_array(X)), plain.predict(X), rtol=1e-12, atol=1e-12)
    if kind is not LinearRegression:  # scikit-learn's has none
        assert np.ravel(plain.n_iter_) == [model.n_iter_]
    assert clone(plain).get_params() == plain.get_params()
    assert not hasattr(clone(plain), "coef_")
    expected = model.coef_.copy()
    plain.coef_ *= 2
    assert_array_equal(model.coef_, expected)
    clipping, y = model.to_sklearn(), np.arange(300) % 2
    assert isinstance(clipping, kind) and params.items() <= clipping.get_params().items()
    assert_array_equal(clipping.coef_, expected)
    if "random_state" in clipping.get_params():
        clipping.set_params(random_state=0)
    expected = kind(**clipping.get_params(deep=False)).fit(X, y).predict(X)
    for again in (clone(clipping), clipping):  # a new fit of it is plain
        assert_allclose(again.fit(X, y).predict(X), expected, rtol=1e-12, atol=1e-12)


FAR = [1e3, 1e12, 1e300]  # how far out records lie


def assert_is_the_model(plain, model, layout):
    names = ["predict", "predict_proba", "predict_log_proba", "decision_function"]
    for far in FAR:
        X = layout(wild(50) * far)
        for name in [name for name in names if hasattr(plain, name)]:
            found, expected = getattr(plain, name)(X), getattr(model, name)(X)
            if name == "predict_log_proba":  # scikit-learn's is the log of a probability
                found, expected = np.exp(found), np.exp(expected)
            if name == "predict":
                assert_array_equal(found, expected)
            else:
                assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


EXPORTED = [model for model, _, _ in PLAIN]
EXPORTED += [
    DPLinearClassifier(classes=[0, 1, 2]),
    DPLogisticGCD(classes=["a", "b", "c"]),
    "several targets",
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bounds", [(LO, HI), (0.5, 2.0), None])
def test_to_sklearn_is_the_model_on_records_far_out(bounds, layout):
    rng = np.random.default_rng(0)
    X = rng.uniform(LO, HI, size=(400, 4))
    for model in EXPORTED:
        y = rng.integers(0, 2 if getattr(model, "classes", [0, 1]) == [0, 1] else 3, size=400)
        y = np.array(["a", "b", "c"])[y] if getattr(model, "classes", "") == ["a", "b", "c"] else y
        if model == "several targets":
            model, y = DPRidgeSkGD(), X[:, :2]
        model = clone(model).set_params(epsilon=50.0, feature_bounds=bounds).fit(X, y)
        assert model.feature_bounds_ is not None
        plain = model.to_sklearn()
        for either in (plain, pickle.loads(pickle.dumps(plain)), deepcopy(plain)):
            assert_is_the_model(either, model, layout)


def test_to_sklearn_has_nothing_to_clip_where_nothing_is():
    model = fitted(DPLassoCD(), bounds=None, feature_scale=1.0, epsilon=0.01, target_bounds=None)
    assert model.feature_bounds_ is model.target_bounds_ is None
    assert type(model.to_sklearn()) is Lasso
    free = fitted(DPLassoCD(), epsilon=np.inf, target_bounds=(0, 1))
    assert type(free.to_sklearn()) is Lasso


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("model", [DPLassoCD(), DPLogisticGCD(classes=[0, 1])], ids=name_of)
def test_to_sklearn_keeps_the_names_of_columns(model, clip):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(wild(), columns=list("abcd"))
    stated = {"feature_bounds": (LO, HI), "feature_scale": 1.0}  # no bounds are looked for
    stated |= {"target_bounds": (-1e3, 1e3)} if isinstance(model, DPLassoCD) else {}
    model = type(model)(**model.get_params(deep=False) | stated)
    plain = model.fit(frame, np.arange(len(frame)) % 2).to_sklearn(clip=clip)
    assert_array_equal(plain.feature_names_in_, list("abcd"))
    clipped = np.clip(frame, LO, HI)
    with warnings.catch_warnings(action="error"):
        assert_allclose(plain.predict(clipped), model.predict(frame), rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        plain.predict(frame[list("dcba")])


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_to_sklearn_needs_a_fit_and_a_switch(model):
    with pytest.raises(NotFittedError):
        clone(model).to_sklearn()
    for clip in ("no", 1, None):
        with pytest.raises(TypeError, match="clip must be True or False"):
            fitted(model).to_sklearn(clip=clip)


# --- sparse and single precision coefficients -----------------------------------------------------


@table("model", BINARY + TERNARY)
@table("layout", LAYOUTS)
def test_sparse_coefficients_predict_the_same(model, layout):
    model, X = fitted(model), layout(wild())
    coef, margins = model.coef_.copy(), model.decision_function(X)
    assert model.densify() is model and type(model.coef_) is np.ndarray
    assert model.sparsify() is model and sparse.issparse(model.coef_)
    assert model.coef_.format == "csr" and model.coef_.dtype == coef.dtype
    assert_array_equal(model.sparsify().decision_function(X), margins)
    assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), margins)
    plain = model.to_sklearn()
    assert sparse.issparse(plain.coef_)
    assert_array_equal(plain.densify().coef_, coef)
    assert_array_equal(model.densify().coef_, coef)


@pytest.mark.parametrize("method", ["sparsify", "densify"])
def test_sparse_coefficients_need_a_fit(method):
    with pytest.raises(NotFittedError):
        getattr(DPLogisticGCD(), method)()


def test_a_fit_after_sparsify_gives_an_array():
    model = fitted(DPLogisticGCD(classes=[0, 1])).sparsify()
    X = wild()
    assert type(model.fit(X, np.arange(len(X)) % 2).coef_) is np.ndarray


@pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
def test_regressors_show_sparse_coefficients(model):
    assert not hasattr(model, "sparse_coef_")
    model = fitted(model)
    assert model.sparse_coef_.format == "csr"
    assert_array_equal(model.sparse_coef_.toarray(), [model.coef_])


@table("layout", LAYOUTS)
@table("model", MODELS)
def test_float32_records_give_float32_coefficients(model, layout):
    X, y = np.round(wild(), 1).astype(np.float32), np.arange(300) % 2
    given = model.get_params(deep=False) | {
        "coef_path": True,
        "random_state": ReproducibleNoise(0),
        "feature_bounds": (-2, 3),
    }
    single, double = (type(model)(**given).fit(layout(X.astype(d)), y) for d in ("f4", "f8"))
    assert single.coef_.dtype == single.coef_path_.dtype == np.float32
    assert double.coef_.dtype == double.coef_path_.dtype == np.float64
    assert_array_equal(single.coef_, double.coef_.astype(np.float32))  # the bits of the release
    assert_allclose(single.intercept_, double.intercept_, rtol=1e-5, atol=1e-5)
    # the rounding does not show in predictions beyond its own size, far from zero either
    scale = np.abs(double.coef_).max() * 10
    margins = [getattr(m, "decision_function", m.predict)(layout(X)) for m in (single, double)]
    assert margins[0].dtype == np.float64
    assert_allclose(*margins, atol=1e-6 * scale)
    assert single.to_sklearn().coef_.dtype == np.float32


def test_a_rounded_coefficient_is_made_up_for_at_the_middle_of_the_bounds():
    X = np.random.default_rng(0).uniform(1e6, 1e6 + 1, size=(500, 1)).astype(np.float32)
    bounds = (1e6, 1e6 + 1)
    model = DPRidgeSkGD(epsilon=100.0, feature_bounds=bounds).fit(X, np.full(500, 0.5))
    # rounding a coefficient after the intercept was set would move this by 1e6 of its errors
    margin = float(np.float64(model.coef_[0]) * (1e6 + 0.5) + model.intercept_)
    assert abs(margin - 0.5) < 0.1


def test_coefficients_beyond_single_precision_are_its_largest_number():
    X = np.full((50, 1), 1e-9, dtype=np.float32)
    model = DPRidgeSkGD(feature_bounds=(-1e-9, 1e-9), target_bounds=(-1e300, 1e300))
    model.fit(X, np.zeros(50))
    assert abs(model.coef_[0]) == np.finfo(np.float32).max


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_predictions_of_the_largest_numbers_are_finite_without_a_warning(container):
    big = 1.7e308
    rows = np.array([[big, -big, big], [big, big, big], [-big, 0, 0], [1.0, 2.0, -1.0]])
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2
    model = DPRidgeSkGD().fit(X, y)
    model.coef_, model.intercept_ = np.array([2.0, 2.0, -0.5]), 0.25
    classifier = DPLogisticGCD().fit(X, y)
    classifier.coef_, classifier.intercept_ = model.coef_[np.newaxis], np.array([0.25])
    three = DPLinearClassifier("multinomial", max_iter=1).fit(X, np.arange(40) % 3)
    three.coef_ = np.array([model.coef_, -model.coef_, 0 * model.coef_])
    with warnings.catch_warnings(action="error"):
        found = model.predict(container(rows))
        proba = classifier.predict_proba(container(rows))
        log_proba = classifier.predict_log_proba(container(rows))
        of_three = three.predict_proba(container(rows))
        assert not np.isnan(three.predict_log_proba(container(rows))).any()
    largest = np.finfo(np.float64).max
    assert_allclose(found[[0, 1, 2]], [-0.5 * big, largest, -largest])
    assert found[3] == pytest.approx(6.75)
    assert_array_equal(proba[:3, 1], [0, 1, 0])
    assert not np.isnan(log_proba).any()
    assert_array_equal(of_three[:3].argmax(axis=1), [1, 0, 1])
    assert_allclose(of_three.sum(axis=1), 1)
