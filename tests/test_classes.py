"""Several outputs: more than two classes, unknown labels, wide heads, and several targets."""

import itertools
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score
from sklearn.preprocessing import normalize
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import (
    PrivacyLeakWarning,
    ReproducibleNoiseWarning,
    UnknownScaleWarning,
)
from dpcd_sklearn.losses import MultinomialLoss
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPStandardScaler
from dpcd_sklearn.privacy.accounting import epsilon_of
from dpcd_sklearn.solvers import GCD, SkGD
from dpcd_sklearn.solvers._descent_recipe import descent_recipe
from dpcd_sklearn.testing import ReproducibleNoise

X, Y = load_iris(return_X_y=True)
CLASSES = [0, 1, 2]
BOTH = [DPLinearClassifier, DPLogisticGCD]
both = pytest.mark.parametrize("estimator", BOTH)


def plan_of(model, n_outputs=1):
    return model._plan(*X.shape, model._stated_outputs(n_outputs))


# ---- which loss ----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_number_of_classes_chooses_the_loss(estimator, n_classes):
    model = estimator(classes=range(n_classes), max_iter=3, feature_scale=1.0)
    name = "logistic" if n_classes == 2 else "multinomial"
    assert plan_of(model).request.loss.name == name
    assert plan_of(clone(model).set_params(classes=None), n_classes).request.loss.name == name
    model.fit(X, np.arange(len(X)) % n_classes)
    rows = 1 if n_classes == 2 else n_classes
    assert model.coef_.shape == (rows, 4) and model.intercept_.shape == (rows,)
    assert model.privacy_event_ == model.planned_event(*X.shape)
    assert model.privacy_event_ == model.planned_event(*X.shape, n_classes)
    assert epsilon_of(model.privacy_event_, model.privacy_spent_.delta) <= 1 + 1e-9
    plain = model.to_sklearn()
    assert_array_equal(plain.predict(X), model.predict(X))
    assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_a_greedy_choice_moves_its_feature_in_all_classes():
    model = DPLogisticGCD(
        1e6, solver="gcd", classes=CLASSES, max_iter=3, coef_path=True, feature_scale=1.0
    ).fit(X, Y)
    path = np.concatenate([model.coef_path_, model.intercept_path_[..., np.newaxis]], axis=2)
    for before, after in itertools.pairwise(path):
        moved = before != after
        assert moved.any(axis=0).sum() == 1  # a penalty so small shrinks nothing to zero
        assert moved.sum() >= 2  # all but one class, where noise said the other way


def test_a_block_of_greedy_choices_holds_each_feature_once():
    # nearly as many choices as candidates: classes of one feature are among them
    options = {"C": 1e6, "max_iter": 2, "coef_path": True, "feature_scale": 1.0}
    options["solver"] = GCD(block_size=12)
    # noise leaves a feature at zero in one of fifty fits
    model = DPLogisticGCD(classes=CLASSES, random_state=ReproducibleNoise(0), **options).fit(X, Y)
    assert (model.coef_path_[0] == 0).all() and (model.coef_path_[-1] != 0).any(axis=0).all()
    assert model.privacy_event_.releases[0].count == 24
    expected = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, Y)
    for block_size in (2, 7, 15):
        model = DPLogisticGCD(epsilon=math.inf, tol=1e-8, solver=GCD(block_size=block_size)).fit(
            X, Y
        )
        assert_allclose(model.coef_, expected.coef_, atol=2e-3)


def test_a_greedy_clip_keeps_the_ratios_of_a_records_derivatives():
    plan = plan_of(DPLogisticGCD(solver="gcd", classes=CLASSES, feature_bounds=(-2, 2)))
    longest = plan.loss.longest
    # C_kj for a feature at its bounds: none is clipped by itself
    clip = plan.clip / plan.geometry.smoothness.sum() ** 0.5
    assert_allclose(clip * plan.geometry.smoothness[0] ** 0.5, 2 * longest)
    margins = np.random.default_rng(0).normal(size=(50, 3)) * 4
    full, scaled = MultinomialLoss().gradient(margins, Y[:50]), plan.loss.gradient(margins, Y[:50])
    norms = np.linalg.norm(full, axis=1, keepdims=True)
    assert (norms > longest).any() and (norms < longest).any()
    assert_allclose(scaled, full * np.minimum(1, longest / norms), rtol=1e-12)
    noiseless = DPLogisticGCD(solver="gcd", classes=CLASSES, epsilon=math.inf)
    assert plan_of(noiseless).loss.longest == math.inf
    assert plan_of(DPLinearClassifier(classes=CLASSES)).loss.longest == math.inf


def test_a_sampling_is_of_features_whatever_the_number_of_classes():
    class Firsts:
        block_size = 2

        def draw(self, generator, count):
            return ([0, 4] for _ in range(count))  # a feature and the intercept

    model = DPLinearClassifier(
        solver=SkGD(Firsts(), averaging="last"), classes=CLASSES, penalty=None, max_iter=4
    ).fit(X, Y)
    assert_array_equal(model.coef_ != 0, np.tile([True, False, False, False], (3, 1)))
    assert (model.intercept_ != 0).all() and model.n_iter_ == 10


# ---- all of them together ------------------------------------------------------------------------


@table("solver", ["cd", "gcd", "skgd", "sgd", "svrg", "newton"])
@table("epsilon", [0.5, 4.0])
def test_all_classes_are_one_charge_and_share_the_releases(solver, epsilon):
    accountant = PrivacyAccountant(100.0, 1e-2)
    model = DPLinearClassifier(
        classes=CLASSES, solver=solver, epsilon=epsilon, accountant=accountant,
        max_iter=4, feature_scale=1.0).fit(X, Y)  # fmt: skip
    (entry,) = accountant.entries()
    assert entry.event == str(model.privacy_event_)
    spent = epsilon_of(model.privacy_event_, model.privacy_spent_.delta)
    assert 0.98 * epsilon < spent <= epsilon * (1 + 1e-6)
    assert model.coef_.shape == (3, 4)
    two = clone(model).set_params(classes=[0, 1]).planned_event(*X.shape)
    counts = [[r.count for r in event.releases] for event in (model.privacy_event_, two)]
    assert counts[0] == counts[1]  # a release is of all classes, be they two or three


# ---- labels outside ------------------------------------------------------------------------------

LABELS = {
    "numbers": (np.array([0, 1, 2]), 7),
    "words": (np.array(["a", "b", "c"]), "z"),
}


@both
@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_an_unknown_label_counts_as_the_first_or_raises_before_the_charge(estimator, kind):
    classes, unknown = LABELS[kind]
    y = classes[Y]
    first, outside = y.copy(), y.copy()
    first[50], outside[50] = classes[0], unknown
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        model = estimator(classes=classes, max_iter=3, random_state=ReproducibleNoise(0))
        assert_array_equal(model.fit(X, outside).coef_, clone(model).fit(X, first).coef_)
    if estimator is DPLogisticGCD:  # which has no other way
        return
    accountant = PrivacyAccountant(10.0, 1e-3)
    model.set_params(unknown_label="raise", accountant=accountant, random_state=None)
    with pytest.raises(ValueError, match="a label that is not among classes") as raised:
        model.fit(X, outside)
    assert not accountant.entries() and not hasattr(clone(model), "classes_")
    # neither which label it was nor where it stands
    assert str(unknown) not in str(raised.value).replace("raise", "") and "50" not in str(raised)
    model.fit(X, first)
    assert len(accountant.entries()) == 1


def test_an_unknown_object_raises_too():
    y = np.array([0, 1, 2], dtype=object)[Y]
    y[3] = None
    model = DPLinearClassifier(classes=[0, 1, 2], max_iter=3)
    model.fit(X, y)
    with pytest.raises(ValueError, match="not among classes"):
        model.set_params(unknown_label="raise").fit(X, y)


class Odd(type):
    """The type of classes that can't be compared by value."""

    __hash__ = type.__hash__

    def __eq__(cls, other):
        raise RuntimeError("a record")

    def __ne__(cls, other):
        return cls is not other


@table("odd", [None, [1], "word", 10**400, Odd("Label", (), {})])
@table("classes", [[0, 1], ["a", "b"]])
def test_any_object_is_an_unknown_label_once_classes_are_stated(odd, classes):
    # an error after the charge would tell about the record
    labels = np.array([classes[min(k, 1)] for k in Y], dtype=object)
    plain = DPLogisticGCD(classes=classes, epsilon=math.inf, tol=1e-3)
    other = labels.copy()
    other[7] = classes[0]
    expected = plain.fit(X, other).coef_.copy()
    labels[7] = odd
    with np.errstate(all="raise"):
        assert_array_equal(plain.fit(X, labels).coef_, expected)


# ---- how good ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.65), (10.0, 0.87)])
def test_ten_classes_are_fitted_by_the_defaults(epsilon, least):
    """In bounds that are twice too wide: medians of ten splits are .82 and .94."""
    images, digits = load_digits(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(len(digits))
    images, digits = images[shuffled] / 16 - 0.5, digits[shuffled]
    model = DPLinearClassifier(classes=range(10), epsilon=epsilon, feature_bounds=(-1, 1))
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        model.set_params(random_state=ReproducibleNoise(0)).fit(images[:1437], digits[:1437])
    assert model.score(images[1437:], digits[1437:]) > least


@pytest.mark.parametrize("n_coordinates", [11, 785, 3970])
def test_more_than_two_classes_take_few_long_steps_that_noise_leaves_room_for(n_coordinates):
    """Noise alone moves a margin by τκ / (n μ) at most, a bound that follows no feature."""
    for signal in (0.1, 10.0, 300.0, 1e4, 1e6):
        two, more = (descent_recipe(signal, 11.0, 11.0, True, k, n_coordinates) for k in (2, 5))
        assert two["momentum"] == 0.9 and two["step_size"] <= 30 * (1 + 1e-9)
        assert more["max_iter"] <= 100 and more["momentum"] <= 0.95
        time = [recipe["step_size"] * recipe["max_iter"] for recipe in (two, more)]
        pace = [time[0] * two["residual_clip"], time[1] * more["residual_clip"]]
        assert time[1] <= max(20_000.0, 375.0 * n_coordinates) * (1 + 1e-9)
        if time[0] < 20_000 * (1 - 1e-9) and time[1] < 20_000:
            assert pace[1] >= 2 * pace[0] * (1 - 1e-9)
        noise = signal * math.sqrt(n_coordinates)
        assert pace[1] <= max(3.0 * noise, 2 * pace[0]) * (1 + 1e-9)


def test_heads_of_many_features_descend_as_long_as_those_of_few():
    """For one n μ a time that follows s alone would be √p' times shorter for wide heads."""
    noise = 40_000.0
    moved = []
    for n_coordinates in (785, 3970):
        recipe = descent_recipe(noise / n_coordinates**0.5, 2.0, 2.0, True, 10, n_coordinates)
        moved.append(recipe["step_size"] * recipe["max_iter"] * recipe["residual_clip"] / noise)
    assert moved[1] == pytest.approx(3.0) and moved[0] > 0.4


N_PRIVATE = 1437


@pytest.fixture(scope="module")
def heads():
    """Random features of digits, as float32 rows of norm 1, and their labels."""
    rng = np.random.default_rng(0)
    images, digits = load_digits(return_X_y=True)
    shuffled = rng.permutation(len(digits))
    weights, shift = rng.standard_normal((64, 1200)), 0.3 * rng.standard_normal(1200)
    features = np.maximum((images[shuffled] / 16 - 0.3) @ weights + shift, 0)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features.astype(np.float32), digits[shuffled]


def fitted(X, y, *, seed=None, **params):
    noise = None if seed is None else ReproducibleNoise(seed)
    model = DPLinearClassifier(delta=1e-5, random_state=noise, **params)
    with warnings.catch_warnings():
        for category in (PrivacyLeakWarning, ReproducibleNoiseWarning):
            warnings.simplefilter("ignore", category)
        return model.fit(X, y)


@pytest.mark.filterwarnings("ignore:feature 966")
@pytest.mark.parametrize("stated", [{}, {"row_norm_bound": 1.0}], ids=["nothing", "rows"])
def test_a_head_on_wide_features_learns_what_its_budget_pays_for(heads, stated):
    """Means of three are .93 to .94 where the time of the descent follows s alone."""
    X, y = heads
    scores = []
    for seed in range(3):
        model = fitted(
            X[:N_PRIVATE], y[:N_PRIVATE], classes=range(10), epsilon=10.0, seed=seed, **stated
        )
        scores.append(model.score(X[N_PRIVATE:], y[N_PRIVATE:]))
    assert model.solver_ == "skgd" and np.mean(scores) > 0.945


@pytest.mark.parametrize("stated", [{}, {"row_norm_bound": 1.0}], ids=["nothing", "rows"])
def test_sparse_rows_of_few_entries_are_not_walked_for_as_long_as_dense_ones(stated):
    """As long, they end at .88 to .90, where they are at .97 to .98."""
    rng = np.random.default_rng(0)
    n, p, classes = 6000, 2000, 5
    y = rng.integers(0, classes, n)
    topics = rng.integers(0, p, (classes, 100))
    odds = np.arange(1, p + 1) ** -0.9
    common = rng.choice(p, (n, 40), p=odds / odds.sum())
    own = topics[y[:, np.newaxis], rng.integers(0, 100, (n, 6))]
    columns = np.hstack((common, own)).ravel()
    X = csr_array((np.ones(columns.size), columns, np.arange(0, columns.size + 1, 46)), (n, p))
    X.sum_duplicates()
    X = normalize(X)
    train, test = slice(0, 4500), slice(4500, None)
    model = DPLinearClassifier(epsilon=10.0, delta=1e-5, classes=range(classes), **stated)
    assert model.fit(X[train], y[train]).score(X[test], y[test]) > 0.94


# ---- several targets -----------------------------------------------------------------------------


RNG = np.random.default_rng(0)
N, CENTERS = 3000, np.array([0.0, 5.0, 100.0])
RECORDS = RNG.uniform(-1, 1, (N, 4))
COEF = RNG.uniform(-0.5, 0.5, (3, 4))
TARGETS = RECORDS @ COEF.T + CENTERS + 0.05 * RNG.standard_normal((N, 3))
BOUNDS = [(-2, 2), (3, 7), (98, 102)]
IN_UNITS = {"feature_bounds": (-1, 1), "feature_scale": 1.0}  # so that no scale is looked for
MODELS = {
    "ridge": DPRidgeSkGD(1.0, **IN_UNITS),
    "lasso": DPLassoCD(1e-4, **IN_UNITS),
    "gcd": DPLinearRegressor(solver="gcd", penalty="l1", alpha=1e-4, **IN_UNITS),
    "huber": DPLinearRegressor("huber", **IN_UNITS),
    "sgd": DPLinearRegressor(solver="sgd", **IN_UNITS),
}
UNIT = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
every_model = pytest.mark.parametrize("name", MODELS)


@every_model
def test_several_targets_are_one_charge_of_a_part_for_each(name):
    accountant = PrivacyAccountant(8.0, 1e-6)  # not one bit more
    model = clone(MODELS[name]).set_params(
        epsilon=8.0, delta=1e-6, target_bounds=BOUNDS, accountant=accountant
    )
    model.fit(RECORDS, TARGETS)
    (entry,) = accountant.entries()
    assert entry.event == str(model.privacy_event_)
    assert model.privacy_event_ == model.planned_event(N, 4, 3)
    assert 7.8 < epsilon_of(model.privacy_event_, 1e-6) <= 8 * (1 + 1e-6)
    releases = model.privacy_event_.releases
    assert releases == 3 * releases[: len(releases) // 3]
    assert model.coef_.shape == (3, 4) and model.intercept_.shape == (3,)
    assert model.predict(RECORDS).shape == (N, 3) and model.sparse_coef_.shape == (3, 4)
    assert model.score(RECORDS, TARGETS) > 0.5
    assert_array_equal(model.to_sklearn().predict(RECORDS), model.predict(RECORDS))


@pytest.mark.parametrize("shape", ["list", "tuple", "one for all"])
def test_bounds_of_targets_are_of_each_or_of_all(shape):
    bounds = {
        "list": BOUNDS,
        "tuple": (np.array([-2.0, 3, 98]), np.array([2.0, 7, 102])),
        "one for all": (-2.0, 102.0),
    }[shape]
    plan = MODELS["ridge"].__class__(target_bounds=bounds)._plan(N, 4, 3)
    centers = [plan.request.target_center for plan in plan._plans]
    assert centers == ([50.0] * 3 if shape == "one for all" else [0.0, 5.0, 100.0])


def test_a_clip_is_in_the_units_of_each_target():
    wide = [(-2, 2), (3, 7), (0, 200)]
    stated = DPRidgeSkGD(target_bounds=wide, feature_bounds=(-1, 1), feature_scale=1.0)
    model = clone(stated).fit(RECORDS, TARGETS)
    assert_allclose(model.clip_ / model.clip_[0], [1, 1, 50])
    same = clone(stated).set_params(target_bounds=(-2, 102)).fit(RECORDS, TARGETS)
    assert isinstance(same.clip_, float)


def test_one_target_is_one_target_in_any_shape():
    model = DPRidgeSkGD(target_bounds=(-2, 2), solver="skgd", **IN_UNITS)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model.fit(RECORDS, TARGETS[:, :1])
    assert model.coef_.shape == (4,) and isinstance(model.intercept_, float)
    assert len(model.privacy_event_.releases) == 1


def test_no_two_targets_share_their_noise():
    zeros = np.zeros((50, 4)), np.zeros((50, 3))
    model = DPRidgeSkGD(fit_intercept=False, max_iter=5, **UNIT)
    assert len(np.unique(model.fit(*zeros).coef_)) == 12
    with pytest.warns(ReproducibleNoiseWarning):
        model.set_params(random_state=ReproducibleNoise(0)).fit(*zeros)
    assert len(np.unique(model.coef_)) == 12


# ---- scales that are found -----------------------------------------------------------------------


def test_bounds_of_each_target_are_found_and_those_of_features_once():
    accountant = PrivacyAccountant(8.0, 1e-6)
    Z = TARGETS * [1.0, 1.0, 20.0]
    model = DPRidgeSkGD(epsilon=8.0, delta=1e-6, accountant=accountant, solver="skgd")
    model.fit(RECORDS * [1, 2, 5, 9], Z)
    choices, of_targets, *updates = model.privacy_event_.releases
    assert choices.count == (5 + 5) * 4 and of_targets.count % 3 == 0  # with zooms
    assert updates == 3 * updates[:1]
    assert model.privacy_event_ == model.planned_event(N, 4, 3)
    assert 7.8 < epsilon_of(model.privacy_event_, 1e-6) <= 8 * (1 + 1e-6)
    lo, hi = model.target_bounds_
    # as far as the tail of each target goes, in doublings
    assert_allclose((lo + hi) / 2, np.median(Z, axis=0), atol=np.ptp(Z, axis=0).max() * 0.2)
    spread = np.subtract(*np.quantile(Z, [0.75, 0.25], axis=0))
    assert (hi - lo > 3 * spread).all() and (hi - lo < 8 * np.ptp(Z, axis=0)).all()
    lo, hi = model.feature_bounds_
    assert lo.shape == (4,) and (np.diff(hi - lo) > 0).all()
    assert r2_score(Z, model.predict(RECORDS * [1, 2, 5, 9]), multioutput="raw_values").min() > 0.5
    assert model.clip_.shape == (3,) and model.clip_[2] > 5 * model.clip_[1]


@pytest.mark.parametrize("name", [*MODELS, "newton", "svrg", "compgd", "skgd"])
def test_every_solver_plans_one_event_for_all_targets(name):
    model = clone(MODELS[name]) if name in MODELS else DPLinearRegressor(solver=name, penalty=None)
    model.set_params(epsilon=8.0, feature_bounds=None, feature_scale=None)
    for facts in ({}, {"target_bounds": BOUNDS}, {"target_bounds": [(0, 1), (3, 7e5), (-9, 9)]}):
        plan = model.set_params(**facts)._plan(N, 4, 3)
        first, *others = plan._plans
        assert len(others) == 2 and plan.parts[0].releases[0].count == (5 + 4) * 4  # tails, zooms
        assert len(plan.parts) == 3  # the targets pay for their own bounds, narrower ones too
        for other in others:
            assert other.alone == first.alone and other.n_updates == first.n_updates
            assert other.parts is plan.parts
    fitted = model.set_params(target_bounds=None).fit(RECORDS, TARGETS)
    assert fitted.privacy_event_ == model.planned_event(N, 4, 3)
    assert np.isfinite(fitted.coef_).all() and (np.abs(fitted.intercept_ - CENTERS) < 20).all()


def test_targets_of_few_records_have_unit_scale():
    with pytest.warns(UnknownScaleWarning, match="too small to find scales"):
        model = DPRidgeSkGD(epsilon=0.1).fit(RECORDS[:50], TARGETS[:50])
    assert model.target_bounds_ is None and model.feature_bounds_ is None


def test_a_pipeline_shares_its_budget_with_all_targets():
    ledger = PrivacyAccountant(8.0, 1e-6)
    steps = DPStandardScaler(), DPRidgeSkGD()
    model = make_private_pipeline(*steps, epsilon=8.0, delta=1e-6, accountant=ledger)
    model.fit(RECORDS, TARGETS)
    (entry,) = ledger.entries()
    assert entry.event == str(model.privacy_event_) == str(model.planned_event(N, 4, 3))
    assert model.predict(RECORDS).shape == (N, 3) and model.score(RECORDS, TARGETS) > 0.3


def test_a_search_is_of_one_target():
    search = PrivateSearchCV(DPRidgeSkGD(**UNIT), {"alpha": [0.1, 1.0]}, epsilon=8.0)
    with pytest.raises(ValueError, match="y must have shape"):
        search.fit(RECORDS, TARGETS)


@table(
    ("y", "params", "match"),
    [
        (TARGETS, {"target_bounds": [(0, 1), (0, 1)]}, "target_bounds"),
        (TARGETS, {"target_bounds": [(0, 1), (1, 1), (0, 1)]}, "no width"),
        (TARGETS[:, :0], {}, "minimum of 1"),
        (TARGETS[:, :, None], {}, "dim"),
        (sparse.csr_array(TARGETS), {}, "not a sparse matrix"),
        (np.where(TARGETS > 0, "a", "b"), {}, "real numbers"),
        (np.where(TARGETS > 100, np.nan, TARGETS), {}, "NaN"),
    ],
)
def test_targets_that_no_model_has_are_refused_before_the_charge(y, params, match, uncharged):
    model = DPRidgeSkGD(row_norm_bound=2.0, accountant=uncharged).set_params(**params)
    with pytest.raises((TypeError, ValueError), match=match):
        model.fit(RECORDS, y)
