"""Counts of classes, where intercepts start, and how they settle after a descent of narrow clip.

Their sensitivity and their noise are in test_neighbours.py.
"""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import log_loss
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, DPLogisticGCD, PrivacyAccountant
from dpcd_sklearn.exceptions import ReproducibleNoiseWarning
from dpcd_sklearn.plan import _settled_intercept
from dpcd_sklearn.plan._label_prior import found_intercepts
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, epsilon_of, gdp_mu, gdp_squared
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import CountUnits, Oracle
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import SGD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise

N = 4000
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 3))
FEW = (RNG.random(N) < 0.1).astype(int)
THREE = RNG.choice(3, N, p=[0.9, 0.08, 0.02])
UNIT = {"feature_bounds": (-1, 1), "feature_scale": 1.0}
MODELS = {
    "skgd": DPLinearClassifier(classes=[0, 1], solver="skgd"),
    "cd": DPLinearClassifier(classes=[0, 1], solver="cd"),
    "sgd": DPLinearClassifier(classes=[0, 1], solver=SGD(sampling_rate=1.0)),
    "batches": DPLinearClassifier(classes=[0, 1], solver="sgd"),
    "svrg": DPLinearClassifier(classes=[0, 1], solver="svrg"),
    "compgd": DPLinearClassifier(classes=[0, 1], solver="compgd", penalty=None),
    "newton": DPLinearClassifier(classes=[0, 1], solver="newton"),
    "gcd": DPLogisticGCD(classes=[0, 1], solver="gcd"),
    "softmax": DPLinearClassifier(classes=[0, 1, 2]),
    "softmax sgd": DPLinearClassifier(classes=[0, 1, 2], solver=SGD(sampling_rate=1.0)),
    "greedy softmax": DPLogisticGCD(classes=[0, 1, 2], solver="gcd"),
    "softmax cd": DPLinearClassifier(classes=[0, 1, 2], solver="cd"),
}
every_model = pytest.mark.parametrize("name", MODELS)
scales = pytest.mark.parametrize("stated", [UNIT, {}], ids=["stated", "found"])


@every_model
@scales
@table("epsilon", [1.0, 8.0])
def test_counts_have_two_percent_of_a_budget_that_is_kept(name, stated, epsilon):
    delta = 1e-6
    model = clone(MODELS[name]).set_params(epsilon=epsilon, delta=delta, max_iter=3, **stated)
    plan = model._plan(N, 3, model._stated_outputs(1))
    assert plan.event == model.planned_event(N, 3)
    assert len(plan.parts) == 2 + (not stated)
    assert plan.part_of("counts") is plan.parts[-2]
    (counts,) = plan.part_of("counts").releases
    mu = gdp_mu(epsilon, delta)
    assert counts.count == 1 and isinstance(counts, GaussianEvent)
    assert 1 / counts.noise_multiplier**2 == pytest.approx(0.02 * mu**2, rel=1e-9)
    assert 0.98 * epsilon < epsilon_of(plan.event, delta) <= epsilon
    if (squared := gdp_squared(plan.event)) is not None:  # Gaussians alone: exactly
        assert squared == pytest.approx(mu**2, rel=1e-5) and squared <= mu**2
    share = plan.request.scales.share + 0.02
    assert plan.request.mu**2 == pytest.approx(mu**2 * (1 - share))


@every_model
@scales
def test_intercepts_start_where_the_classes_are(name, stated):
    model = clone(MODELS[name]).set_params(coef_path=True, max_iter=3, epsilon=2.0, delta=1e-6)
    y = FEW if len(model.classes) == 2 else THREE
    accountant = PrivacyAccountant(2.0, 1e-6)  # not one bit more than the budget
    model.set_params(accountant=accountant, **stated).fit(X, y)
    (entry,) = accountant.entries()
    assert entry.event == str(model.privacy_event_) == str(model.planned_event(N, 3))
    start, shares = np.atleast_1d(model.intercept_path_[0]), np.bincount(y) / N
    assert not model.coef_path_[0].any()
    # of z = 17 noise is of 24 records where there are three classes: seven standard deviations
    # leave the class of 8 % within half and twice its share, and that of 2 % a rare one
    if len(start) == 1:
        shares = shares[-len(start) :]
        assert_allclose(start[:2], np.log(shares / (1 - shares))[:2], atol=1.0)
    else:
        assert abs(start.mean()) < 1e-9
        start = start - start[0]
        assert_allclose(start[1], np.log(shares[1] / shares[0]), atol=1.0)
    assert len(start) == 1 or start[2] < -2
    plan = model._plan(N, 3, model._stated_outputs(1))
    assert model.noise_multiplier_ in [
        getattr(release, "noise_multiplier", None) for release in plan.part.releases
    ]
    assert plan.part_of("counts").releases[0] in model.privacy_event_.releases


def test_public_weights_of_classes_move_the_start_with_them():
    """The intercept of the weighted problem without features is the logit of weighted shares."""
    options = {"epsilon": 500.0, "delta": 1e-6, "coef_path": True, "max_iter": 1, **UNIT}
    for weights in ({0: 0.025, 1: 0.25, 2: 1.0}, {0: 0.025, 1: 1.0}, {0: 0.0, 1: 1.0}):
        classes = list(weights)
        model = DPLinearClassifier(classes=classes, class_weight=weights, **options)
        y = np.minimum(THREE, len(classes) - 1)
        start = np.atleast_1d(model.fit(X, y).intercept_path_[0])
        heavy = np.array(list(weights.values()))
        shares = np.bincount(y) * np.maximum(heavy / heavy.max(), 1 / N)  # a weight of 0 is least
        shares /= shares.sum()
        expected = np.log(shares) - np.log(shares).mean()
        expected = np.diff(expected) if len(classes) == 2 else expected
        assert_allclose(start, expected, atol=0.2)


def test_a_class_that_no_record_has_leaves_a_finite_start():
    model = DPLinearClassifier(classes=[0, 1], coef_path=True, max_iter=1, epsilon=10.0, **UNIT)
    for y in (np.zeros(N, dtype=int), np.ones(N, dtype=int)):
        (start, *_) = model.fit(X, y).intercept_path_
        assert 1 < abs(start) < math.log(N) + 1 and (start > 0) == y[0]


def test_several_classes_of_few_records_are_drawn_to_their_shares():
    few, labels, model = X[:1000], THREE[:1000], DPLinearClassifier(classes=[0, 1, 2], epsilon=0.3)
    fits = (model.fit(few, labels) for _ in range(20))
    # up to 1.05 where it is zero that they are drawn to, in the median .47; shares alone have .38
    assert max(log_loss(labels, fit.predict_proba(few)) for fit in fits) < 0.6


@pytest.mark.parametrize(
    "model",
    [
        DPLinearClassifier(classes=[0, 1], fit_intercept=False),
        DPLinearClassifier(classes=[0, 1], penalize_intercept=True),
        DPLinearClassifier(classes=[0, 1], epsilon=0.01),  # n μ sqrt(0.02) is below 50
        DPLinearClassifier(classes=[0, 1], epsilon=math.inf),
        DPLinearClassifier(classes=[0, 1], constraint="l1_ball", penalize_intercept=True),
        DPLinearClassifier(classes=[0, 1], warm_start=True),  # which has intercepts
        DPLinearClassifier(classes=range(257)),
        DPLinearRegressor(),
    ],
    ids=str,
)
def test_no_counts_are_released_where_they_have_no_use_or_are_not_affordable(model):
    plan = clone(model).set_params(**UNIT)._plan(N, 3, model._stated_outputs(1))
    assert plan.part_of("counts") is None and not plan.request.counts_share
    assert len(plan.parts) == 1 or not plan.request.n_classes


def test_counts_ignore_weights_and_count_unknown_labels_as_the_first():
    words = np.array(["b", "c"])[FEW].astype(object)
    words[:100] = "unheard of"
    options = {"classes": ["a", "b", "c"], "coef_path": True, "max_iter": 1}
    options["random_state"] = ReproducibleNoise(0)
    with warnings.catch_warnings(action="ignore", category=ReproducibleNoiseWarning):
        one = DPLinearClassifier(**options).fit(X, words).intercept_path_[0]
        words[:100] = "a"
        other = DPLinearClassifier(**options).fit(X, words, np.linspace(0.1, 2, N))
    assert_array_equal(one, other.intercept_path_[0])


def test_counts_have_a_stream_of_noise_of_their_own():
    """A key makes noise reproducible: what the gradients draw from it is not drawn here again."""
    place, key = LocalPlace(X, FEW.astype(float)), bytes(range(32))
    plan = DPLinearClassifier(classes=[0, 1], **UNIT)._plan(N, 3, 1)
    units = CountUnits(plan.part_of("counts"), n_classes=2, n_samples=N, n_normalizer=N)

    def start(key):
        receipt = charge(None, units.event)
        return found_intercepts(plan, receipt, place, None, key)[0]

    ((same_stream,),) = Oracle(charge(None, units.event), units, place, key=key).release()
    assert start(key) == start(key) != start(None)
    assert start(key) != math.log(same_stream / (N - same_stream))


N_WIDE, P_WIDE = 1600, 200
RNG_WIDE = np.random.default_rng(0)
WIDE = (RNG_WIDE.random((N_WIDE, P_WIDE)) < 0.05).astype(float)
OF_WIDE = (RNG_WIDE.random(N_WIDE) < 0.6).astype(int)
MODEL = DPLinearClassifier(
    classes=[0, 1], epsilon=2.0, delta=1e-6, feature_scale=0.5, row_norm_bound=5.0
)


def plan_of(**params):
    return clone(MODEL).set_params(**params)._plan(N_WIDE, P_WIDE, 1)


def test_the_derivatives_are_a_part_of_one_budget():
    accountant = PrivacyAccountant(2.0, 1e-6)  # not one bit more
    model = clone(MODEL).set_params(accountant=accountant).fit(WIDE, OF_WIDE)
    plan, (entry,) = plan_of(), accountant.entries()
    assert entry.event == str(model.privacy_event_) and model.privacy_event_ == plan.event
    counts, settling, length, updates = plan.parts
    assert [counts, settling, length] == [*map(plan.part_of, ("counts", "intercept", "length"))]
    (release,) = settling.releases
    assert isinstance(release, GaussianEvent) and release.count == 3
    mu = gdp_mu(2.0, 1e-6)
    assert 3 / release.noise_multiplier**2 == pytest.approx(0.05 * mu**2, rel=1e-9)
    assert 2 * (1 - 1e-5) < epsilon_of(plan.event, 1e-6) <= 2.0
    assert model.noise_multiplier_ == updates.releases[0].noise_multiplier
    assert len(plan_of(feature_scale=None, row_norm_bound=None).parts) == 5  # with scales


@table(
    "params",
    [
        {"epsilon": 0.1},  # too much noise
        {"epsilon": 50.0},  # no narrow clip
        {"clip": 1.0},
        {"class_weight": {0: 0.5}},
        {"fit_intercept": False},
        {"warm_start": True},
        {"solver": SkGD("block")},
        {"solver": "cd"},
        {"solver": "gcd"},
        {"classes": [0, 1, 2]},
        {"classes": [0, 1, 2], "solver": "skgd"},
        {"epsilon": math.inf},
    ],
)
def test_nothing_is_settled_where_it_has_no_use(params):
    model = clone(MODEL).set_params(**params)
    plan = model._plan(N_WIDE, P_WIDE, model._stated_outputs(1))
    assert not plan.settles and plan.part_of("intercept") is None


def test_the_model_expects_as_many_records_of_a_class_as_there_are(monkeypatch):
    """Without signal a narrow clip drives the intercept off; only it is moved back."""
    length = "dpcd_sklearn.linear_model._private_linear_model.with_length"
    monkeypatch.setattr(length, lambda *args: args[-2])  # which would move all of them
    found = []
    for settles in (True, False):
        if not settles:  # the same budget, the same noise and no last step
            monkeypatch.setattr("dpcd_sklearn.solvers._skgd.settled", lambda *args: args[-1])
        with pytest.warns(ReproducibleNoiseWarning):
            model = clone(MODEL).set_params(random_state=ReproducibleNoise(0)).fit(WIDE, OF_WIDE)
        found.append((model.coef_, expit(model.decision_function(WIDE)).mean()))
    (coef, share), (same, off) = found
    assert_allclose(coef, same)
    assert abs(off - OF_WIDE.mean()) > 0.1 > 0.05 > abs(share - OF_WIDE.mean())


@pytest.mark.parametrize("mutant", [1.0, 0.5])
def test_half_the_noise_is_noticed(mutant):
    """Moves from a point that is right already are noise alone, of which the size is known."""
    plan, n = plan_of(), 400
    z = plan.part_of("intercept").releases[0].noise_multiplier
    target, zeros = np.tile([0.0, 1.0], N_WIDE // 2), np.zeros((N_WIDE, 1))
    plan = DPLinearClassifier(solver="skgd", classes=[0, 1], feature_scale=1.0)._plan(N_WIDE, 1, 1)
    counts, length = map(plan.part_of, ("counts", "length"))
    event = FitEvent((GaussianEvent(z * mutant, 3),))
    plan = plan.changed(settles=True).changed(parts=(counts, event, length, plan.parts[-1]))
    last = np.array(
        [
            _settled_intercept.settled(
                plan, charge(None, event), LocalPlace(zeros, target), None, 0.0, np.zeros(2)
            )[-1]
            for _ in range(n)
        ]
    )
    # a step is .7 of Newton's, so that .3 of what was there is left: noise of .3^2, .3 and 1
    std = 0.7 * 4 * 2 * z / N_WIDE * math.sqrt(1 + 0.09 + 0.0081)
    assert (last.std() > 0.75 * std) == (mutant == 1.0)
    assert last.std() < 1.3 * std


def test_unsettled_iterates_and_the_settled_model_are_told_apart():
    model = clone(MODEL).set_params(coef_path=True).fit(WIDE, OF_WIDE)
    assert all(len(one) == P_WIDE for one, _ in pairwise(model.coef_path_))
    assert model.intercept_path_[-1] != model.intercept_
