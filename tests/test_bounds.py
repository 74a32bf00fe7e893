"""Public bounds: a tuple is (lo, hi), a list one pair a feature, a dict goes by column name."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn import preprocessing as p
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.solvers import SkGD
from dpcd_sklearn.testing import ReproducibleNoise

LO, HI = np.array([0.0, -5.0, 1.0]), np.array([120.0, 5.0, 3.0])
PAIRS = [(0, 120), [-5, 5.0], (1, 3)]
NAMED = {"c": (1, 3), "a": (0, 120), "b": [-5, 5]}
MODELS = [
    DPLassoCD(),
    DPRidgeSkGD(),
    DPLogisticGCD(classes=[0, 1]),
    DPLinearRegressor(solver=SkGD(sampling="importance")),
    DPLinearClassifier(classes=[0, 1], solver="sgd"),
]  # fmt: skip
RNG = np.random.default_rng(0)
X = RNG.uniform(LO, HI, size=(60, 3))
Y = (RNG.uniform(size=60) > 0.5).astype(int)


# --- what is read ---------------------------------------------------------------------------------


FORMS = [(LO, HI), (LO.tolist(), HI.tolist()), PAIRS, NAMED]


@pytest.mark.parametrize("bounds", FORMS, ids=type)
def test_the_forms_mean_the_same(bounds):
    pd = pytest.importorskip("pandas")
    scaler = BoundsScaler(bounds).fit(pd.DataFrame(X, columns=list("abc")))
    assert_array_equal(scaler.lo_, LO)
    assert_array_equal(scaler.hi_, HI)


def test_a_list_of_two_features_is_one_pair_a_feature():
    scaler = BoundsScaler([(0, 1), (0, 100)]).fit(X[:, :2])
    assert_array_equal([scaler.lo_, scaler.hi_], [[0, 0], [1, 100]])
    scaler = BoundsScaler(((0, 1), (0, 100))).fit(X[:, :2])  # a tuple is (lo, hi)
    assert_array_equal([scaler.lo_, scaler.hi_], [[0, 1], [0, 100]])


# --- what is refused ------------------------------------------------------------------------------


def planned(bounds, n_features=3):
    return DPLassoCD(feature_bounds=bounds).planned_event(100, n_features)


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("bounds", [[0, 16], [np.zeros(2), np.ones(2)], [np.float64(0), 1.0]])
def test_a_list_in_place_of_a_tuple_is_told_what_to_write(bounds, n_features):
    with pytest.raises(TypeError, match=r"one pair \(lo, hi\).*write a tuple \(lo, hi\)"):
        planned(bounds, n_features)


@pytest.mark.parametrize("shape", [(2,), (2, 2), (3, 2), (2, 3)])
def test_an_array_is_refused_as_ambiguous(shape):
    with pytest.raises(TypeError, match=r"tuple\(bounds\).*bounds\.tolist\(\)"):
        planned(np.sort(np.ones(shape)), shape[0])


@table(
    ("bounds", "error", "message"),
    [
        ([], ValueError, "for each feature, 3 in all, got 0"),
        ([(0, 1), (0, 1)], ValueError, "for each feature, 3 in all, got 2"),
        ([[0, 0, 0], [1, 1, 1]], ValueError, r"got 2; .*write a tuple \(lo, hi\)"),
        ([(0, 1), (0, 1), (2, 1)], ValueError, r"feature_bounds\[2\]: lo must not exceed hi"),
        ([(0, 1), (0, 1, 2), (0, 1)], TypeError, r"feature_bounds\[1\] must be a pair"),
        ([(0, 1), (0, np.inf), (0, 1)], ValueError, r"feature_bounds\[1\]: hi must be finite"),
        ([(0, 1), ("0", 1), (0, 1)], TypeError, r"feature_bounds\[1\]: lo must hold numbers"),
        ([(0, 1), ([0, 0], 1), (0, 1)], ValueError, r"feature_bounds\[1\]: lo has shape"),
        (([0, 0, 2], [1, 1, 1]), ValueError, "feature 2 has lo=2 > hi=1"),
        ((np.nan, 1), ValueError, "lo must be finite"),
        ((0, [1, np.nan, 1]), ValueError, "hi must be finite"),
        *(((lo, 1), TypeError, "lo must hold numbers") for lo in ("0", None, False)),
        ((0, 1, 2), TypeError, "must be a pair"),
        (([0, 0], [1, 1]), ValueError, r"lo has shape \(2,\), allowed are a scalar and shape"),
        ((0, np.ones((1, 3))), ValueError, r"hi has shape \(1, 3\)"),
    ],
)
def test_a_wrong_list_says_where_and_a_wrong_pair_what(bounds, error, message):
    with pytest.raises(error, match=message):
        planned(bounds)


@table(
    ("change", "message"),
    [
        ({"age": (0, 1)}, r"feature_bounds .* unknown column\(s\) \['age'\]"),
        ({"b": None}, r"feature_bounds .* no bounds for column\(s\) \['b'\]"),
        ({"b": (1, 0)}, r"feature_bounds\['b'\]: lo must not exceed"),
    ],
)
@table("model", MODELS)
def test_a_wrong_dict_names_the_column_and_is_not_charged(model, change, message, uncharged):
    pd = pytest.importorskip("pandas")
    bounds = {name: pair for name, pair in (NAMED | change).items() if pair is not None}
    model = type(model)(**model.get_params(deep=False) | {"feature_bounds": bounds})
    with pytest.raises(ValueError, match=message):
        model.set_params(accountant=uncharged).fit(pd.DataFrame(X, columns=list("abc")), Y)


def test_a_dict_needs_names_of_columns_and_those_of_an_earlier_fit_do_not_count():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    for data in (X, sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match="feature_bounds is a dict.*X has no column names"):
            DPLassoCD(feature_bounds=NAMED).fit(data, Y)
        with pytest.raises(ValueError, match="X has no column names"):
            BoundsScaler(NAMED).fit(frame).fit(data)


@table("kind", [p.DPQuantileTransformer, p.DPRobustScaler, p.DPSimpleImputer, p.DPPCA])
def test_bounds_that_are_too_far_apart_for_cells_between_them_are_refused(kind, uncharged):
    step = kind(feature_bounds=(-1e308, 1e308), accountant=uncharged)
    for act in (lambda: step.fit(X), lambda: step.planned_event(*X.shape)):
        with pytest.raises(ValueError, match="feature_bounds must be at most 1.79e308 apart"):
            act()


@pytest.mark.parametrize("bounds", [[0, 1], [(0, 1), (0, 1)], np.array([0, 1]), {"y": (0, 1)}])
def test_target_bounds_are_one_pair(bounds):
    with pytest.raises((TypeError, ValueError), match="target_bounds"):
        DPLassoCD(target_bounds=bounds).fit(X, Y)


# --- what a fit makes of it -----------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_fits_with_the_same_bounds_are_the_same(model):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"))
    model.set_params(random_state=ReproducibleNoise(0))
    coefs = [
        model.set_params(feature_bounds=bounds).fit(frame, Y).coef_
        for bounds in ((LO, HI), PAIRS, NAMED)
    ]
    assert_array_equal(coefs[0], coefs[1])
    assert_array_equal(coefs[0], coefs[2])
    assert not np.array_equal(coefs[0], model.set_params(feature_bounds=(-5, 120)).fit(X, Y).coef_)


def test_target_bounds_of_one_target_may_be_a_list_of_one_pair():
    model = DPLassoCD(feature_bounds=PAIRS, random_state=ReproducibleNoise(0))
    fits = [model.set_params(target_bounds=b).fit(X, 3 * Y).coef_ for b in ((0, 2), [(0, 2)])]
    assert_array_equal(*fits)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_plan_needs_no_names_and_no_order(model):
    shuffled = dict(reversed(NAMED.items()))
    events = [
        str(model.set_params(feature_bounds=bounds).planned_event(1000, 3))
        for bounds in (PAIRS, NAMED, shuffled)
    ]
    assert len(set(events)) == 1
    with pytest.raises(ValueError, match="feature_bounds names 3 columns, but there are 4"):
        model.planned_event(1000, 4)
