"""The length of margins: derivatives of the log loss that are released after the updates."""

import math

import numpy as np
import pytest
from flat import fits
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import log_loss
from tables import table
from threadpoolctl import threadpool_limits

from dpcd_sklearn import DPLinearClassifier, PrivacyAccountant
from dpcd_sklearn.loops._problem import Solution
from dpcd_sklearn.losses import LogisticLoss, MultinomialLoss
from dpcd_sklearn.partitions import fit_partitions
from dpcd_sklearn.plan._arrays import Arrays
from dpcd_sklearn.plan._margin_length import LENGTH, root, with_length
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, epsilon_of, gdp_mu
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.testing import ReproducibleNoise

N, P, N_FEW = 4_000, 3, 600
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, P))
Y = (RNG.random(N) < expit(2 * X[:, 0] - 1)).astype(int)
MODEL = DPLinearClassifier(classes=[0, 1], feature_bounds=(-1, 1), feature_scale=1.0)
SHARES = np.zeros((1, P)), np.array([-1.0])


def plan_of(n=N, **params):
    return clone(MODEL).set_params(**params)._plan(n, P, 1)


def moved(plan, coef, key=None, X=X, y=Y):
    solution = Solution(np.append(coef, -1.0), 1, None, True)
    receipt = charge(None, plan.part_of("length"))
    records = Arrays(X, y.astype(float), None)
    return with_length(plan, receipt, records, key, solution, SHARES).coef


def test_the_derivatives_are_a_part_of_one_budget():
    with PrivacyAccountant(1.0, 1e-6) as accountant:  # not one bit more
        model = clone(MODEL).set_params(delta=1e-6, accountant=accountant).fit(X, Y)
        (entry,) = accountant.entries()
    plan = plan_of(delta=1e-6)
    assert entry.event == str(model.privacy_event_) and model.privacy_event_ == plan.event
    (release,) = plan.part_of("length").releases
    assert isinstance(release, GaussianEvent) and release.count == 8
    assert 8 / release.noise_multiplier**2 == pytest.approx(0.05 * gdp_mu(1.0, 1e-6) ** 2, rel=1e-9)
    assert 1 - 1e-5 < epsilon_of(plan.event, 1e-6) <= 1.0


@table(
    "params",
    [
        {"epsilon": 0.04},  # n μ is below 60
        {"epsilon": math.inf},
        {"clip": 1.0},
        {"max_iter": 5},
        {"class_weight": {0: 0.5}},
        {"fit_intercept": False},
        {"penalize_intercept": True},
        {"warm_start": True},
        {"inference": True},
        {"classes": [0, 1, 2], "epsilon": 0.06},  # n μ is below 90
    ],
)
def test_none_is_released_where_it_has_no_use(params):
    model = clone(MODEL).set_params(**params)
    plan = model._plan(N, P, model._stated_outputs(1))
    assert plan.part_of("length") is None and not plan.request.length_share


@pytest.mark.parametrize(("slope", "low", "high"), [(0.4, 0.4, 0.4), (2, 1.7, 2.0), (8, 1.5, 3.5)])
def test_margins_get_the_length_of_the_records(slope, low, high):
    """Records follow a slope of 2: longer margins move there, as far as the clip allows."""
    coef = moved(plan_of(epsilon=20.0), [slope, 0, 0])
    assert low <= coef[0] <= high
    assert_array_equal(coef[1:], [0.0, 0.0, -1.0])


def test_noise_has_the_size_of_short_margins():
    """A slope of a tenth of the records' stays; noise for a clip of 1 would often shorten it."""
    plan = plan_of(n=600, epsilon=0.7)
    kept = [moved(plan, [0.2, 0, 0], X=X[:600], y=Y[:600])[0] / 0.2 for _ in range(60)]
    assert np.mean(np.greater(kept, 0.9)) > 0.7


def test_a_monotone_fit_is_zero_at_the_length():
    assert root(np.arange(-3.0, 5.0)) == pytest.approx(0.45)
    assert root([-3, -1, -2, 1, 2, 3, 4, 5]) == pytest.approx(0.3 + 0.15 * 1.5 / 2.5)
    assert root(np.ones(8)) == 0.05 and root(-np.ones(8)) == 1.0


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_number_of_a_record_is_its_own(n_classes):
    """The same bits alone, in a batch, of sparse rows, of another layout and in threads."""
    n_outputs, lengths = n_classes if n_classes > 2 else 1, [0.5, 1.0]
    loss = MultinomialLoss() if n_classes > 2 else LogisticLoss()
    known, coef = RNG.normal(size=n_outputs), RNG.normal(size=(n_outputs, P + 1))
    X, n = RNG.uniform(-1, 1, (20_000, P)), 20_000  # three batches
    labels = RNG.integers(0, n_classes, n).astype(float)
    bounds = -np.ones(P) / 2, np.ones(P) / 2, np.zeros(P)

    def slopes(features, rows=slice(None), n_threads=1, coef=coef):
        of = Arrays(features[rows], labels[rows], None)
        return of.slopes(loss, known, coef, lengths, 1.5, bounds, n_threads).X

    columns = slopes(X)
    moved = X.clip(-0.5, 0.5) @ coef[:, :P].T + coef[:, P]
    weight = 1.5 / np.maximum(np.ptp(np.c_[np.zeros(n), moved][:, n_outputs > 1 :], axis=1), 1.5)
    for column, length in zip(columns.T, lengths, strict=True):
        beside = length + 1e-6, length - 1e-6
        ahead, behind = (loss.value(np.squeeze(known + f * moved), labels) for f in beside)
        assert_allclose(column, weight * (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-6)
    assert np.abs(columns).max() < 1.5 + 1e-6 and weight.min() < 0.5
    alone = [slopes(X, slice(i, i + 1)) for i in range(9)]
    assert_array_equal(np.concatenate(alone), columns[:9])
    with threadpool_limits(3, user_api="openmp"):
        for other in (X, np.asfortranarray(X), csr_matrix(X)):
            assert_array_equal(slopes(other, n_threads=3), columns)
        huge = slopes(np.full((n, P), 1e300), n_threads=3, coef=np.full_like(coef, 1e308))
    assert np.isfinite(huge).all() and abs(huge).max() < 1.5 + 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_partitions_release_the_bits_of_one_place(n_classes):
    model = clone(MODEL).set_params(random_state=ReproducibleNoise(0), classes=range(n_classes))
    labels = Y + (n_classes > 2) * (X[:, 1] > 0)
    cuts = [slice(0, 1), slice(1, 900), slice(900, N)]
    local = clone(model).fit(X, labels)
    parted = fit_partitions(
        clone(model), lambda task: [task(k, X[cut], labels[cut]) for k, cut in enumerate(cuts)]
    )
    assert plan_of().request.length_share and parted.privacy_event_ == local.privacy_event_
    assert_array_equal(parted.coef_, local.coef_)
    assert_array_equal(parted.intercept_, local.intercept_)


@pytest.mark.parametrize("mutant", [1.0, 0.5])
def test_half_the_noise_is_noticed(mutant, monkeypatch):
    """Records at their shares have no slope: what is released is noise of a known size."""
    plan, found = plan_of(epsilon=1.0), []
    (release,) = plan.part_of("length").releases
    z = release.noise_multiplier
    plan = plan.changed(
        parts=tuple(
            FitEvent((GaussianEvent(mutant * z, 8),)) if part == plan.part_of("length") else part
            for part in plan.parts
        )
    )
    monkeypatch.setattr(
        "dpcd_sklearn.plan._margin_length.root", lambda slopes: found.append(slopes) or 1.0
    )
    for _ in range(60):
        moved(plan, np.zeros(P))  # D is 0: so is every derivative
    std = 2 * z * LENGTH.units(plan_of(epsilon=1.0), N).coordinate_clip / N
    assert (np.std(found) > 0.75 * std) == (mutant == 1.0) and np.std(found) < 1.25 * std


@table(
    "solver, epsilon, alpha", [("auto", 1, 0), ("skgd", 0.5, 0), ("skgd", 3, 0), ("skgd", 1, 0.1)]
)
def test_softmax_margins_are_as_long_as_without_noise(solver, epsilon, alpha):
    """Without the weights, and with a penalty that counts whole, 1.15, .29, 1.33 and .35 times."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((4_000, 12))
    margins = features[:, :6] @ rng.standard_normal((6, 4))
    labels = (margins + rng.gumbel(size=(4_000, 4))).argmax(axis=1)
    stated = {"penalty": "l2", "alpha": alpha, "feature_bounds": (-4, 4)}
    model = DPLinearClassifier(classes=range(4), epsilon=epsilon, solver=solver, **stated)
    noiseless = clone(model).set_params(epsilon=math.inf, solver="auto")
    truth = noiseless.fit(features, labels).coef_
    lengths = [np.vdot(one.coef_, truth) for one in fits(model, features, labels, 8)]
    assert 0.85 < np.median(lengths) / np.vdot(truth, truth) < 1.12


def test_no_fit_is_ruined_by_margins_that_are_too_long():
    """Labels of noise alone: the model of the shares is what there is to be found."""
    rng = np.random.default_rng(1)
    records = rng.standard_normal((1_500, 8)), (rng.random(1_500) < 0.2).astype(int)
    found = fits(DPLinearClassifier(classes=[0, 1], epsilon=0.5), *records, 12)
    losses = [log_loss(records[1], model.predict_proba(records[0])) for model in found]
    shares = log_loss(records[1], np.tile([0.8, 0.2], (1_500, 1)))
    assert np.median(losses) < 1.05 * shares and max(losses) < 1.3 * shares


def test_coefficients_no_longer_than_noise_keep_their_labels():
    """Noise shortened one fit in fifteen so far that shrinkage left the larger class alone."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((1_000, 4))
    labels = (features @ [0.4, -1.1, 0.7, 0.5] + rng.logistic(size=1_000) > 0.7).astype(int)
    model = DPLinearClassifier(classes=[0, 1], epsilon=0.5, delta=1e-6, feature_bounds=(-4, 4))
    scores = [one.score(features, labels) for one in fits(model, features, labels, 30)]
    assert min(scores) > 0.05 + np.mean(labels == 0)


def test_without_a_scale_the_shares_of_classes_are_what_is_kept():
    model = DPLinearClassifier(classes=[0, 1], epsilon=0.1, random_state=ReproducibleNoise(0))
    rng = np.random.default_rng(2)
    features, labels = 1e3 + rng.standard_normal((N_FEW, 6)), (rng.random(N_FEW) < 0.15).astype(int)
    model.fit(features, labels)
    assert not model.coef_.any() and abs(expit(model.intercept_) - 0.15) < 0.1
    plan = model._plan(N_FEW, 6, 1)
    assert model.privacy_event_ == plan.charged and plan.part_of("counts") is not None


def test_plans_follow_public_numbers_alone():
    plans = [plan_of(n=n) for n in (100, 1_000, 100_000)]
    assert [plan.request.length_share > 0 for plan in plans] == [False, True, True]
    assert plans[0].part_of("counts") is None and plans[1].part_of("counts") is not None
