"""Scales that nobody stated: found within the promise, whatever is found, and nothing for free."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
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
from dpcd_sklearn.exceptions import UnknownScaleWarning
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.plan import _release, _scale_choices, _scales, _target
from dpcd_sklearn.plan._found_scales import FoundScales
from dpcd_sklearn.plan._scale_choices import n_choices
from dpcd_sklearn.plan._scales import NOTHING
from dpcd_sklearn.preprocessing import (
    DPPCA,
    DPQuantileTransformer,
    DPRobustScaler,
    DPStandardScaler,
)
from dpcd_sklearn.privacy.accounting import (
    FitEvent,
    SelectionEvent,
    choices_event,
    epsilon_of,
    joined,
)
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import QuantileOracle, QuantileUnits
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import CD, GCD, SGD, SVRG, CompGD, FrankWolfe, SkGD, _descent_recipe
from dpcd_sklearn.solvers._compgd import CompGDPlan
from dpcd_sklearn.testing import ReproducibleNoise

N, P, EPSILON, DELTA = 400, 3, 50.0, 1e-3
SCALES = np.array([1.0, 1e3, 1e-3])
BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
SOLVERS = {
    "cd": DPLinearRegressor(solver=CD(), penalty="l1"),
    "gcd": DPLinearRegressor(solver=GCD(block_size=2), penalty="l1"),
    "skgd": DPLinearRegressor(solver=SkGD()),
    "skgd in blocks": DPLinearRegressor(solver=SkGD(sampling="block-importance")),
    "compgd": DPLinearRegressor(solver=CompGD(), penalty="l2"),
    "sgd": DPLinearRegressor(solver=SGD()),
    "sgd of all": DPLinearRegressor("huber", solver=SGD(sampling_rate=1.0)),
    "svrg": DPLinearRegressor(solver=SVRG()),
    "frank-wolfe": DPLinearRegressor(solver=FrankWolfe(), **BALL),
    "logistic": DPLogisticGCD(classes=[0, 1]),
    "multinomial": DPLinearClassifier("multinomial", solver=SGD(), classes=[0, 1, 2]),
}
GAUSSIAN = ["cd", "skgd", "skgd in blocks", "compgd", "sgd of all"]
every_solver = pytest.mark.parametrize("name", SOLVERS)


def model_of(name, **params):
    fixed = {"epsilon": EPSILON, "delta": DELTA, "max_iter": 5}
    return clone(SOLVERS[name]).set_params(**fixed | params)


def records(model, n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * SCALES + [5.0, -2e3, 0.0]
    if hasattr(model, "classes"):
        return X, rng.integers(0, 2, n)
    return X, X @ (1 / SCALES) * 100 + rng.standard_normal(n)


def is_centred(model):
    return model.fit_intercept


def n_target(model):
    """Choices of the target's bounds, which the evidence of N records at EPSILON is ample for."""
    return 0 if hasattr(model, "classes") else (8 if is_centred(model) else 1)


# --- every solver finds scales --------------------------------------------------------------------

VARIANTS = {
    "dense": ({}, lambda X: X),
    "float32": ({}, np.float32),
    "Fortran": ({}, np.asfortranarray),
    "sparse": ({}, sparse.csr_array),
    "sparse columns": ({}, sparse.csc_matrix),
    "no intercept": ({"fit_intercept": False}, lambda X: X),
    "weights": ({}, lambda X: X),
    "data frame": ({}, lambda X: pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))),
    "add_remove": ({"neighboring": "add_remove", "n_public": N}, lambda X: X),
}


@table("variant", VARIANTS)
@every_solver
def test_every_solver_finds_scales_of_every_kind_of_records(name, variant):
    params, layout = VARIANTS[variant]
    model = model_of(name, **params)
    X, y = records(model)
    weights = np.linspace(0.5, 1.5, N) if variant == "weights" else None
    model.fit(layout(X), y, sample_weight=weights)
    is_sparse = variant.startswith("sparse")
    centred = is_centred(model)
    n_features = 1 if is_sparse else n_choices(P, "tails", 1) if centred else P
    choices, *updates = model.privacy_event_.releases
    assert choices.count == n_features
    if n_target(model):
        target, *updates = updates
        assert target.count == n_target(model)
    assert updates and model.privacy_event_ == model.planned_event(N, P, sparse=is_sparse)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    if is_sparse:
        assert model.feature_bounds_ is None
        median = np.median(np.linalg.norm(X, axis=1))
        assert 0.5 <= model.row_norm_bound_ / median <= 4  # an octave off, by chance
    else:
        assert model.row_norm_bound_ is None
        lo, hi = model.feature_bounds_
        assert lo.shape == hi.shape == (P,)
        inside = ((lo <= X) & (X <= hi)).mean(axis=0)
        size = np.std(X, axis=0) if centred else np.median(np.abs(X), axis=0)
        assert (inside > 0.7).all() and ((hi - lo) / size < 20).all()
        assert centred or (lo == -hi).all()
    if n_target(model):
        lo, hi = model.target_bounds_
        assert ((lo <= y) & (y <= hi)).mean() > 0.7 and hi - lo < 20 * np.std(y)


# --- the price ------------------------------------------------------------------------------------


@table("params", [{}, {"epsilon": 5.0, "delta": 1e-6}, {"n_public": 10**5}])
@every_solver
def test_choices_and_updates_together_are_what_is_promised(name, params):
    if "n_public" in params:
        params = {"neighboring": "add_remove", "epsilon": 0.5} | params
    model = model_of(name, **params)
    plan = model._plan(params.get("n_public", 5000), P, model._stated_outputs(1))
    search = plan.request.scales
    per_feature = 5 + search.zooms if is_centred(model) else 1
    assert search.n_choices == per_feature * P and search.zooms == 5 * is_centred(model)
    assert 0.0499 <= search.share <= 0.3001
    choices, *counts, updates = plan.parts
    if n_target(model):
        target, own = counts.pop(0), plan.request.target_search
        assert target.releases == (SelectionEvent(own.eta, own.n_choices),)
        assert 0 < own.share < 0.1001
    assert choices.releases == (SelectionEvent(search.eta, search.n_choices),)
    assert len(counts) == (plan.request.n_classes > 0)  # test_label_prior.py
    assert plan.event == joined(plan.parts)
    told = epsilon_of(plan.event, model.delta)
    assert told <= model.epsilon
    if name in GAUSSIAN:
        assert told >= (1 - 1e-5) * model.epsilon
    # updates alone, and with stated facts, cost no more than what choices left
    assert epsilon_of(plan.part, model.delta) < model.epsilon
    (*_, mine), (*_, alone) = plan.part.releases, plan.alone.releases
    noise = "noise_multiplier" if hasattr(mine, "noise_multiplier") else "eta"
    ratio = getattr(mine, noise) / getattr(alone, noise)
    assert (ratio if noise == "noise_multiplier" else 1 / ratio) > 1


PRIVATE = {
    "feature_scale": "private", "feature_bounds": (-20, 20), "target_bounds": (-1, 1)
}  # fmt: skip
FACTS = [
    {"feature_bounds": (-3, 3), "feature_scale": 1.0},
    {"feature_scale": 1.0},
    {"row_norm_bound": 10.0},
]


@pytest.mark.parametrize("facts", FACTS, ids=str)
@every_solver
def test_stated_facts_win_and_cost_nothing(name, facts):
    model = model_of(name, **facts)
    if n_target(model):
        model.set_params(target_bounds=(-300, 300))
    plan, event = model._plan(N, P, model._stated_outputs(1)), model.planned_event(N, P)
    assert not plan.request.scales.n_choices
    if plan.request.n_classes:
        assert plan.parts[:-1] == (plan.part_of("counts"),)
    else:
        assert event == plan.alone

    model.fit(*records(model))
    assert model.privacy_event_ == event
    assert model.row_norm_bound_ == facts.get("row_norm_bound")
    bounds = facts.get("feature_bounds")
    assert (model.feature_bounds_ is None) == (bounds is None)
    if n_target(model):
        assert model.target_bounds_ == (-300, 300)


def test_what_is_stated_of_one_leaves_the_other_to_be_found():
    X, y = records(DPRidgeSkGD())
    params = {"epsilon": EPSILON, "delta": DELTA}
    facts = {"feature_bounds": (-1, 1), "feature_scale": 1.0}
    model = DPRidgeSkGD(**facts, **params).fit(X, y)
    assert model.privacy_event_.releases[0].count == n_target(model)
    assert_array_equal(model.feature_bounds_, [-np.ones(P), np.ones(P)])
    assert model.target_bounds_[1] > 100
    model = DPRidgeSkGD(target_bounds=(-1, 1), **params).fit(X, y)
    assert model.privacy_event_.releases[0].count == n_choices(P, "tails", 1)
    lo, hi = model.target_bounds_
    assert -1 <= lo < hi <= 1 and model.feature_bounds_[1][1] > 100


def test_nothing_is_found_without_noise():
    assert DPRidgeSkGD(epsilon=np.inf)._plan(10**6, P, 1).request.scales is NOTHING


@table("epsilon", [1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9, 1e300])
@table("n_public", [3, 10**4, 10**9, 2**53])
@table("facts", [{}, PRIVATE])
def test_no_budget_and_no_number_of_records_breaks_a_plan(epsilon, n_public, facts):
    """Whatever a choice or mean squares would be refused for is known before the charge."""
    model = DPRidgeSkGD(epsilon=epsilon, delta=1e-9, neighboring="add_remove", n_public=n_public)
    stated = {"feature_scale": 1.0, "target_bounds": (-1, 1), "solver": "skgd"}
    model.set_params(**facts)
    try:
        clone(model).set_params(**stated).planned_event(n_public, P)
    except ValueError:
        with pytest.raises(ValueError, match="noise multiplier"):
            model.planned_event(n_public, P)
        return
    plan = model._plan(n_public, P, 1)
    if (search := plan.request.scales).n_choices:
        assert QuantileUnits(plan.part_of("scales")).eta == search.eta
        assert n_public * search.eta >= 20 and search.share < 0.3001
    if search.n_choices or epsilon >= 1e-3:
        assert epsilon_of(plan.event, 1e-9) <= epsilon


# --- what may be known ----------------------------------------------------------------------------


def test_what_stands_beside_the_updates_leaves_them_something():
    """Scales, counts and moments of any fit are less than all of its budget, whatever its size."""
    models = [DPLinearRegressor(inference=inference) for inference in (False, True)]
    models += [DPLinearClassifier(inference=inference) for inference in (False, True)]
    found = []
    for model in models:
        for n in (60, 300, 3000):
            for epsilon in np.geomspace(20, 400, 12) / n:
                plan = clone(model).set_params(epsilon=epsilon, solver="newton")
                try:
                    request = plan._plan(n, 4, 1).request
                    found += [(model, n, epsilon)] * (not request.mu > 0)
                except ValueError as error:
                    if "domain" in str(error):
                        found.append((model, n, epsilon, str(error)))
    assert not found, found


KEYS = [
    ({}, (_scales, "QuantileOracle")),
    (PRIVATE, (_release, "Oracle")),
]


@table("facts, oracle", KEYS)
def test_scales_and_updates_have_keys_of_their_own(facts, oracle, monkeypatch):
    keys = []

    def heard(oracle):
        class Heard(oracle):
            def __init__(self, *args, key, **options):
                keys.append(key)
                super().__init__(*args, key=key, **options)

        return Heard

    with monkeypatch.context() as patch:
        for room, name in (oracle, (_descent_recipe, "RecordOracle")):
            patch.setattr(room, name, heard(getattr(room, name)))
        for seed in (ReproducibleNoise(0), None):
            model = model_of("skgd", random_state=seed, **{"target_bounds": (-3, 3)} | facts)
            model.fit(*records(model))
    ours, theirs, *fresh = keys
    assert len(ours) == len(theirs) == 32 and ours != theirs
    assert fresh == [None, None]  # the operating system's entropy


# --- too few records ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["skgd", "logistic", "frank-wolfe"])
def test_too_few_records_have_unit_scale_and_a_warning(name):
    model = model_of(name, epsilon=1.0)
    X, y = records(model, 20)
    with pytest.warns(UnknownScaleWarning, match="State feature_bounds"):
        model.fit(X, y)
    unit = {"feature_scale": 1.0}
    unit |= {"target_bounds": (-1, 1)} if n_target(model) else {}
    assert model.privacy_event_ == clone(model).set_params(**unit).planned_event(20, P)
    assert model.feature_bounds_ is None and model.row_norm_bound_ is None
    assert getattr(model, "target_bounds_", None) is None


@pytest.mark.parametrize("stated", [{}, {"target_bounds": (0, 40)}], ids=["found", "stated"])
def test_tails_of_features_are_asked_about_whatever_the_target(stated):
    rng = np.random.default_rng(0)
    n = 20_000
    heavy = rng.lognormal(0, 1.5, n)
    X = np.column_stack([heavy, rng.normal(5, 1, n)])
    model = DPLinearRegressor(epsilon=3.0, random_state=ReproducibleNoise(0), **stated)
    lo, hi = model.fit(X, rng.normal(20, 3, n)).feature_bounds_
    assert hi[0] > np.quantile(heavy, 0.93) and hi[1] < 10
    assert model.privacy_event_.releases[0].count == n_choices(2, "tails", 5)


def test_the_tail_of_a_target_is_held():
    rng = np.random.default_rng(0)
    heavy = rng.lognormal(0, 1.5, 20_000)
    X = np.column_stack([heavy, rng.normal(5, 1, 20_000)])
    y = rng.normal(20, 3, 20_000)
    model = DPLinearRegressor(epsilon=3.0, random_state=ReproducibleNoise(0))
    assert clone(model).fit(X, y).target_bounds_[1] < 50
    y += 5 * heavy
    assert model.fit(X, y).target_bounds_[1] > 5 * np.quantile(heavy, 0.95)
    assert model.score(X, y) > 0.3  # the largest are clipped still


def test_the_finest_way_that_has_evidence_enough_is_taken():
    ways, tails, least = [], set(), {"tails": 134, "quartiles": 40, "octaves": 32, "rows": 32}
    for n in (10, 100, 200, 300, 700, 1000, 1500, 3000, 10**4, 30_000, 10**5, 10**6):
        request = DPRidgeSkGD(epsilon=1.0, delta=1e-6)._plan(n, 20, 1).request
        scales, target = request.scales, request.target_search
        ways.append((scales.features, target.zooms, target.tail))
        if scales.features is not None:
            assert n * scales.eta >= least[scales.features] * (1 - 1e-12)
            tails.add(scales.tail)
        if target.n_choices:
            assert n * target.eta >= (24 if target.is_all else 40) * (1 - 1e-9)
    assert ways[0][:2] == (None, 0) and ways[-1][:2] == ("tails", 4)
    assert len(set(ways)) >= 6 and {float(tail) for tail in tails} == {0.95, 0.99, 0.995, 0.999}


@table("n, features", [(250, "rows"), (320, "octaves"), (400, "octaves")])
def test_two_classes_pay_more_for_octaves_before_they_have_one_scale(n, features):
    """One scale for columns of several sizes: AUC .46 to .74, and octaves .67 to .96."""
    scales = DPLinearClassifier(classes=[0, 1], epsilon=1.0)._plan(n, 10, 1).request.scales
    assert scales.features == features and scales.share < 0.501


@pytest.mark.parametrize("center", [0, 70, -2000])
def test_a_narrow_target_far_from_zero_is_found_at_the_least_evidence(center):
    """Odds of an empty cell beside it are counted: quartiles failed in one of two fits."""
    rng = np.random.default_rng(0)
    X, lost = rng.standard_normal((1000, 60)), 0
    for seed in range(40):
        y = rng.normal(center, 3, len(X))
        model = DPLinearRegressor(epsilon=0.5, random_state=ReproducibleNoise(seed))
        plan = model._plan(*X.shape, 1)
        assert len(X) * plan.request.target_search.eta < 80
        lo, hi = model.fit(X, y).target_bounds_
        lost += not (lo < center < hi and hi - lo < 300)
    assert lost <= 2


# --- whatever is found ----------------------------------------------------------------------------


ABSURD = {
    "an l1 beyond all numbers": DPLassoCD(alpha=1e300),
    "a box that is none": DPLinearRegressor(solver="cd", penalty=Box(1e300, 1.1e300)),
    "a clip below all": DPLinearRegressor(solver="cd", clip=1e-20),
    "a threshold of nothing": DPLinearRegressor(Huber(5e-324), solver="cd"),
    "a radius beyond greedy scores": DPLinearRegressor(solver="frank-wolfe", **BALL),
    "a penalty beyond greedy scores": DPLinearRegressor(solver="gcd", penalty="l1", alpha=100.0),
}
NARROW = FoundScales((np.full(P, -(2.0**-29)), np.full(P, 2.0**-29)), None, (-1e-13, 1e-13))
WIDE = FoundScales((np.full(P, -(2.0**29)), np.full(P, 2.0**29)), None, (-1e19, 1e19))


@table("found", [NARROW, WIDE])
@table("absurd", ABSURD)
def test_what_a_mechanism_would_refuse_is_carried_out_in_unit_scale(absurd, found):
    model = clone(ABSURD[absurd]).set_params(epsilon=EPSILON, delta=DELTA, max_iter=5)
    plan = model._plan(10**6, P, 1)
    try:
        plan._located(found, model._loss(1, found.half_width(plan.request))).planned(10**6)
        refused = False
    except ValueError:
        refused = True
    if not refused:
        located = model._plan(10**6, P, 1, located=(plan, found))
        assert located is not plan
        return
    with pytest.warns(UnknownScaleWarning, match="do not go with the other parameters"):
        located = model._plan(10**6, P, 1, located=(plan, found))
    assert located is plan


def test_some_of_these_are_refused_as_they_are_found():
    wide = dataclasses.replace(WIDE, target_bounds=(-1, 1))
    cases = {"a radius beyond greedy scores": wide, "an l1 beyond all numbers": NARROW}
    for (absurd, found), message in zip(cases.items(), ("greedy scores", "l1"), strict=True):
        model = clone(ABSURD[absurd]).set_params(epsilon=EPSILON, delta=DELTA)
        plan = model._plan(10**6, P, 1)
        with pytest.raises(ValueError, match=message):
            plan._located(found, model._loss(1, found.half_width(plan.request))).planned(10**6)


def test_one_narrow_column_does_not_cost_the_others_their_scale():
    """A greedy penalty is loud against it; it is read a little wider, and the others as found."""
    model = DPLinearRegressor(solver="gcd", penalty="l1", alpha=1.0, epsilon=1.0, delta=1e-6)
    plan = model._plan(10**6, P, 1)
    half = np.array([1.0, 100.0, 2.0**-29])
    found = FoundScales((-half, half), None, (-0.01, 0.01))
    with pytest.raises(ValueError, match="greedy scores"):
        plan._located(found, plan.request.loss).planned(10**6)
    located = model._plan(10**6, P, 1, located=(plan, found))
    assert_allclose(located.geometry.clipped_to[1], [1.0, 100.0, 100 / 1024])
    assert located.parts is plan.parts and located.n_updates == plan.n_updates


def test_a_sampling_that_fails_beside_what_was_found_has_unit_scale():
    class Moody:
        block_size = 2

        def draw(self, generator, count):
            return ([0, 1] for _ in range(count))

        def curvature(self, spread):
            if spread.__self__.smoothness[0] != 1:
                raise RuntimeError("not with these")
            return 2.0

    model = model_of("skgd", solver__sampling=Moody(), accountant=PrivacyAccountant(1e3, 1e-2))
    with pytest.warns(UnknownScaleWarning, match="not with these"):
        model.fit(*records(model))
    assert len(model.accountant.entries()) == 1
    assert np.isfinite(model.coef_).all() and model.feature_bounds_ is None


def test_a_step_of_compgd_that_was_sound_in_unit_scale_is_shortened():
    params = {"solver": CompGD(step_size=15.0), "penalty": "l2", "alpha": 0.5}
    model = DPLinearRegressor(epsilon=EPSILON, delta=DELTA, max_iter=500, **params)
    plan = model._plan(N, P, 1)  # accepted: the curvature of unit scale outweighs the ridge
    assert isinstance(plan, CompGDPlan)
    half = np.full(P, 1e-3)
    located = model._plan(N, P, 1, located=(plan, FoundScales((-half, half), None, (-1, 1))))
    problem, l2 = located.problem, located.problem.penalty.l2
    least = problem.curvature * problem.smoothness.min()
    assert plan.problem.step_size == 15.0 and 15.0 * l2 > 2 * (least + l2)
    assert problem.step_size * l2 <= 1.8 * (least + l2) * (1 + 1e-12)
    wide = model._plan(N, P, 1, located=(plan, FoundScales((-1e3 + half, 1e3 + half), None, None)))
    assert wide.problem.step_size == 15.0  # nothing to mend
    X = np.random.default_rng(0).standard_normal((N, P)) * 1e-3
    model.fit(X, X @ [1e3, 2e3, 3e3])
    assert np.abs(model.coef_).max() < 1e4 and abs(model.intercept_) < 1e3


def test_few_of_many_columns_are_told_with_one_scale_for_all():
    """A scale of a tenth of a row's norm was 4.5 times that of 2,000 columns: R² of .23."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 2000))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(5000)
    noise = ReproducibleNoise(0)
    model = DPLassoCD(alpha=0.01, epsilon=1.0, delta=1e-6, random_state=noise).fit(X, y)
    assert model.row_norm_bound_ is not None and model.score(X, y) > 0.6
    assert_allclose(model.coef_[:3], 1.0, atol=0.5)


# --- columns of every kind ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:feature 6 has numbers")
@pytest.mark.parametrize("name", ["skgd", "cd", "gcd", "sgd", "logistic"])
def test_columns_of_every_kind_are_taken(name):
    rng = np.random.default_rng(0)
    n = 3000
    z = rng.standard_normal(n)
    X = np.column_stack(
        [
            z,
            np.where(rng.random(n) < 0.95, 0.0, 7.0),  # mostly zero
            np.zeros(n),
            np.full(n, 5.0),
            1e12 * rng.standard_normal(n),
            1e-12 * rng.standard_normal(n),
            1e300 * rng.standard_normal(n),
        ]
    )
    model = clone(SOLVERS[name]).set_params(random_state=ReproducibleNoise(0), epsilon=5.0)
    y = (z > 0).astype(int) if name == "logistic" else 10 * z
    model.fit(X, y)
    lo, hi = model.feature_bounds_
    assert np.isfinite([lo, hi]).all() and (lo < hi).all()
    assert (lo[1:3] == -hi[1:3]).all() and (hi[1:3] >= 1).all()  # around zero, of any size
    assert lo[3] <= 5 <= hi[3] and hi[3] - lo[3] == 4 * 8  # nothing is seen beside one number
    assert np.abs([lo[0], hi[0]]).max() < 10
    assert 1e12 < hi[4] < 1e13 and 1e-12 < hi[5] < 1e-11
    assert (hi - lo)[6] == 2.0**96  # the widest that is proved
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert model.score(X, y) > (0.8 if name == "logistic" else 0.5)


# around one half of zeros the two ways of looking meet
@table("n, epsilon, share, unit, most", [(3200, 10.0, z, 1.0, 0) for z in (0.45, 0.5, 0.55)]
       + [(1500, 3.0, 0.8, 1e-3, 40), (1500, 3.0, 0.8, 1e3, 40)])  # fmt: skip
def test_no_target_is_found_far_wider_or_narrower_than_its_records(n, epsilon, share, unit, most):
    """A width that no record reaches is as likely as the evidence beyond the tail allows.

    However many records are zero, and in every unit, since octaves are of the others.
    """
    rng = np.random.default_rng(0)
    search = DPRidgeSkGD(epsilon=epsilon, delta=1e-7)._plan(n, P, 1).request.target_search
    event = FitEvent((SelectionEvent(search.eta, search.n_choices),))
    y = np.where(rng.random(n) < share, 0.0, unit * np.exp(rng.normal(size=n)))
    place, wrong = LocalPlace(np.zeros((n, 1)), y), 0
    for _ in range(400):
        oracle = QuantileOracle(charge(None, event), QuantileUnits(event), place)
        lo, hi = _target.find_target(oracle, search, centred=True)
        wrong += not (hi - lo < 16 * np.ptp(y) and hi > np.quantile(y[y > 0], 0.6))
    assert wrong <= most


# --- columns of few values ------------------------------------------------------------------------


def seen_and_width(X, evidence, how, zooms):
    """The part of the range of each column that found bounds keep, and their width beside it."""
    n, p = X.shape
    event = choices_event(evidence / n, n_choices(p, how, zooms), "replace_one")
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), LocalPlace(X), key=bytes(32))
    center, half_width = _scale_choices.find_scales(oracle, "features", how, evidence, zooms=zooms)
    ends = X.min(axis=0), X.max(axis=0)
    seen = np.ptp(np.clip(ends, center - half_width, center + half_width), axis=0)
    return seen / np.ptp(ends, axis=0), 2 * half_width / np.ptp(ends, axis=0)


WAYS = {37: ("quartiles", 0), 60: ("quartiles", 0), 150: ("tails", 1), 300: ("tails", 5)}


@table("evidence", WAYS)
def test_bounds_hold_both_values_of_columns_that_have_two(evidence):
    """Bounds of a part of the gap between them make a coefficient so many times too large."""
    rng = np.random.default_rng(0)
    share = np.tile(np.linspace(0.01, 0.99, 99), 10)
    X = (rng.random((4000, len(share))) < share).astype(float)
    how, zooms = WAYS[evidence]
    seen, width = seen_and_width(X, float(evidence), how, zooms)
    assert (seen > 0.2).all() and (width > 8).mean() < 0.06
    # nor are amounts of which many are zero cut to a thousandth, where evidence tells of the others
    for zeros, most in ((0.52, {37: 0.05}), (0.75, {37: 0.1}), (0.9, {37: 1, 60: 0.65, 150: 0.05})):
        X = 1e3 * np.exp(rng.normal(size=(4000, 200))) * (rng.random((4000, 200)) > zeros)
        seen, width = seen_and_width(X, float(evidence), how, zooms)
        assert (seen < 0.003).mean() <= most.get(evidence, 0.02) and (width > 32).mean() <= 0.12


# --- far from zero, and in other units ------------------------------------------------------------


@pytest.mark.parametrize("place", [150.0, -3e3, 1e5, 1e8])
@pytest.mark.parametrize("unit", [1e-28, 1e-8, 1.0, 1e20])
def test_columns_far_from_zero_are_found_as_near_ones_are(place, unit):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20_000, 2))
    y = Z @ [1.0, -0.5] + 0.1 * rng.normal(size=len(Z))
    model = DPLinearRegressor(epsilon=5.0)
    X = (Z + [place, place / 2]) * unit
    assert model.fit(X, y).score(X, y) > 0.97
    if abs(place) < 1e4:  # as years are; the first ones have evidence for quartiles alone
        assert model.set_params(epsilon=1.0).fit(X[:1500], y[:1500]).score(X, y) > 0.9


@table("place, unit", [(0.0, 1e-30), (0.0, 1e30), (1e6, 1e30), (-1e8, 1e-8)])
@table(
    "steps",
    [
        [DPStandardScaler()],
        [DPRobustScaler()],
        [DPQuantileTransformer(output_distribution="normal")],
        [DPStandardScaler(), DPPCA(n_components=2)],
    ],
)
def test_steps_leave_no_trace_of_the_place_and_unit_of_columns(steps, place, unit):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20_000, 2))
    y = Z @ [1.0, -0.5] + 0.1 * rng.normal(size=len(Z))
    model = make_private_pipeline(*map(clone, steps), DPLinearRegressor(), epsilon=5.0)
    X = (Z + place) * unit
    assert model.fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("unit", [1e-30, 1e-15, 1e15, 1e30])
@pytest.mark.parametrize("place", [0.0, 1e6])
@table("loss", ["squared", "huber", "quantile"])
def test_targets_are_found_in_any_unit(place, unit, loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(20_000, 2))
    y = (X @ [1.0, -0.5] + 0.1 * rng.normal(size=len(X)) + place) * unit
    model = DPLinearRegressor(loss, epsilon=5.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert_allclose(model.coef_ / unit, [1.0, -0.5], atol=0.1)


def test_a_size_that_no_model_takes_is_said():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5000, 2)) * [1.0, 1e32]
    with pytest.warns(UserWarning, match="feature 1 has .* a size about .*DPStandardScaler"):
        DPLinearRegressor(epsilon=3.0).fit(X, X[:, 0])


# --- within stated bounds of a target -------------------------------------------------------------


FAR_TOO_WIDE = [(-2, 200), (-200, 2), (-2000, 2000), (-1e4, 2)]
EXTREME = [(-1e308, 1e308), (0, 1.7e308), (1e308, 1.7e308), (0, 1e299), (-1e-300, 1e-300)]


@table("bounds", [(-2, 2), *FAR_TOO_WIDE, *EXTREME])
def test_target_bounds_that_are_far_too_wide_do_not_ruin_a_fit(bounds):
    """Cells of extreme ones would leave double precision, after the charge."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4000, 2))
    y = X @ [1.0, -1.0] + 0.1 * rng.normal(size=4000)
    model = DPLinearRegressor(epsilon=1.0, feature_bounds=(0, 1), target_bounds=bounds).fit(X, y)
    lo, hi = model.target_bounds_
    assert bounds[0] <= lo < hi <= bounds[1] and np.isfinite(model.coef_).all()
    assert bounds in EXTREME or model.score(X, y) > 0.9
    assert model.privacy_event_ == model.planned_event(len(y), 2)
    assert bounds != (-2, 2) or (lo, hi) == bounds


def test_a_descent_in_wide_bounds_finds_the_part_that_a_skewed_target_fills():
    """Within the stated bounds alone the median of R² is below zero."""
    rng, scores = np.random.default_rng(0), []
    for seed in range(15):
        X = rng.uniform(size=(200, 4))
        y = np.exp(X[:, 0] - 0.5 + 0.3 * rng.normal(size=200))
        params = {"feature_bounds": (0, 1), "target_bounds": (0, 8), "epsilon": 1.0}
        model = DPLinearRegressor(**params, random_state=ReproducibleNoise(seed)).fit(X, y)
        scores.append(model.score(X, y))
        assert 0 <= model.target_bounds_[0] < model.target_bounds_[1] <= 8
        assert model.privacy_event_ == model.planned_event(200, 4)
    assert np.median(scores) > 0.1


def test_nothing_is_looked_for_within_target_bounds_where_it_is_told_not_to_or_can_not_be_found():
    facts = {"feature_bounds": (0, 1), "target_bounds": (-2, 200), "epsilon": 1.0}

    def search(n=4000, **params):
        model = DPLinearRegressor(**facts | params)
        return model._plan(n, 2, 1).request.target_search

    assert search().eta and search().n_choices == 3 and search().share <= 0.06
    assert search(n=10**6).share < search().share  # no more than evidence asks for
    assert not search(n=200).eta and search(n=300).share < search(n=200).share < 0.101
    for params in (
        {"feature_scale": 1.0},
        {"inference": True},
        {"fit_intercept": False},
        {"n": 100},
        {"epsilon": np.inf},
    ):
        assert search(**params) is _target.NO_TARGET
