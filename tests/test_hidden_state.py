"""Hidden-state accounting: the last iterate costs what is claimed, its assumptions are enforced."""

import math

import numpy as np
import pytest
from flat import flat
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import Ridge
from tables import table
from unreleased import step_without_noise

from dpcd_sklearn import BudgetExceededError, DPLinearRegressor, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.losses import SquaredLoss
from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    HiddenStateEvent,
    Receipt,
    epsilon_of,
    gdp_mu,
    gdp_squared,
    hidden_state_fit_event,
    zcdp,
)
from dpcd_sklearn.privacy.accounting._gaussian_dp import hidden_state_factor
from dpcd_sklearn.privacy.mechanisms import Descent, release_last_iterate
from dpcd_sklearn.privacy.mechanisms._hidden_state import contraction
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import SkGD

N_RECORDS = 300


def ridge(alpha, *, n=N_RECORDS, **params):
    """Ridge on everything, by the last iterate; alpha is of a sum of squares, as Ridge's."""
    defaults = {"solver": "skgd", "accounting": "hidden_state", "feature_bounds": (-1, 1)}
    defaults |= {"penalize_intercept": True}
    return flat(DPLinearRegressor, penalty="l2", alpha=alpha / n, **(defaults | params))


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N_RECORDS, 5))
    return X, np.clip(X @ [0.5, -0.4, 0.3, 0, 0.1] + 0.1 * rng.normal(size=N_RECORDS) + 0.2, -1, 1)


# ---- the formula --------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [10, 100, 1000])
@pytest.mark.parametrize(("lengths", "share"), [(1, 0.873), (3, 0.576), (5, 0.447)])
def test_noise_shrinks_as_the_privacy_page_says(condition, lengths, share):
    c = (condition - 1) / (condition + 1)
    steps = lengths * condition
    assert math.sqrt(hidden_state_factor(steps, c) / steps) == pytest.approx(share, abs=0.002)


@given(st.integers(1, 10**6), st.floats(0.0, 1.0, exclude_min=True))
def test_the_last_step_is_worth_between_one_and_all_of_them(count, c):
    factor = hidden_state_factor(count, c)
    assert 1 <= factor <= count
    assert hidden_state_factor(count + 1, c) >= factor * (1 - 1e-12)
    if c < 1:
        assert factor <= (1 + c) / (1 - c) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_calibration_inverts_accounting(epsilon):
    event = hidden_state_fit_event(Budget(epsilon, 1e-6), 200, 0.98)
    assert math.sqrt(gdp_squared(event)) <= gdp_mu(epsilon, 1e-6)
    assert epsilon_of(event, 1e-6) == pytest.approx(epsilon, rel=1e-8)
    assert zcdp(event) == pytest.approx(gdp_squared(event) / 2)
    (release,) = event.releases
    composed = FitEvent((GaussianEvent(release.noise_multiplier, 200),))
    assert epsilon_of(composed, 1e-6) > 1.4 * epsilon
    assert str(event).startswith("the last of 200 noisy steps with noise multiplier")


def shifted_interpolation(count, c, z):
    """μ² of the proof's best constant-fraction shifts, found by a search over the recursion."""
    best = math.inf
    for decay in np.linspace(0.0, 1.0, 4001)[1:]:
        # shifts λ_k = 1 at the end and `decay` before: any choice is valid
        distance, total = 0.0, 0.0
        for k in range(count):
            share = 1.0 if k == count - 1 else 1 - decay
            total += (share * (c * distance + 1)) ** 2
            distance = (1 - share) * (c * distance + 1)
        best = min(best, total)
    return best / z**2


@pytest.mark.parametrize(("count", "c"), [(1, 0.5), (2, 0.5), (5, 0.3)])
def test_the_formula_is_below_every_choice_of_shifts_and_near_the_best(count, c):
    found = gdp_squared(FitEvent((HiddenStateEvent(2.0, count, c),)))
    assert found <= shifted_interpolation(count, c, 2.0) * (1 + 1e-9)
    assert found >= 0.9 * shifted_interpolation(count, c, 2.0)


# ---- the map is what the proof assumes ----------------------------------------------------------


def step_of(X, y, weights, state, *, event, clip=0.7, step=0.4, l2=0.05, row_norm=1.5, n=None):
    return step_without_noise(
        LocalPlace(X, y, weights), event, state, loss=SquaredLoss(), row_norm=row_norm, clip=clip,
        step=step, l2=l2, n_normalizer=n or len(X), fit_intercept=True,
    )  # fmt: skip


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_one_step_contracts_and_neighbours_move_it_by_the_sensitivity(data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 40)), int(rng.integers(1, 9))
    scale = 10.0 ** rng.choice([-3, 0, 2, 4, 153, 300])
    X, y = rng.normal(0, scale, (n, p)), rng.normal(0, 10.0 ** rng.integers(-2, 4), n)
    weights = rng.uniform(0, 5, n)
    c = contraction(0.4, 0.05, 1.5**2 + 1)
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 30, c)
    _, descent = step_of(X, y, weights, np.zeros(p + 1, dtype=np.int64), event=event)
    spread = int(descent.box) // int(10 ** rng.integers(1, 9))
    states = rng.integers(-spread, spread, (2, p + 1))
    moved = [step_of(X, y, weights, state, event=event)[0] for state in states]
    error = 2.0**descent.bits / event.releases[0].noise_multiplier
    sensitivity = 2 * descent.limit
    slack = error - sensitivity  # twice the rounding error that the noise pays for
    assert slack >= 0
    before = np.linalg.norm((states[0] - states[1]).astype(float))
    assert np.linalg.norm(moved[0] - moved[1]) <= c * before * (1 + 1e-12) + slack
    other = X.copy(), y.copy(), weights.copy()
    far = 10.0 ** rng.choice([0, 6, 160, 300])
    other[0][0], other[1][0], other[2][0] = rng.normal(0, far, p), -far, 3.0
    replaced = step_of(*other, states[0], event=event)[0]
    assert np.linalg.norm(replaced - moved[0]) <= error


@pytest.mark.parametrize("x", [1e100, 1e153, 1.3e154, 1e155, 1e200, 1e307, 1e308, 1.7e308])
def test_rows_of_any_length_are_scaled_down_before_their_product_overflows(x):
    # without noise a step contracts: a margin that overflows would jump between near states
    X, y, c = np.array([[x, x]]), np.array([0.5]), contraction(0.4, 0.05, 2.0)
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 30, c)
    states = np.zeros((500, 3), dtype=np.int64)
    _, descent = step_of(X, y, None, states[0], event=event, row_norm=1.0)
    states[:, 0] = np.linspace(-0.9, 0.9, 500) * descent.box
    moved = [step_of(X, y, None, state, event=event, row_norm=1.0)[0] for state in states]
    apart = np.linalg.norm(np.diff(moved, axis=0), axis=1)
    before = np.linalg.norm(np.diff(states, axis=0).astype(float), axis=1)
    error = 2.0**descent.bits / event.releases[0].noise_multiplier - 2 * descent.limit
    assert (apart <= c * before * (1 + 1e-12) + error).all()


@table("row_norm", [1e-12, 1e-8, 1e-3, 1.0])
@table("x", [1e140, 1e150, 1e153, 4e153, 1e155])
def test_rows_that_are_scaled_down_by_far_are_clipped_all_the_same(x, row_norm):
    # the square of so small a factor underflows
    p = 9
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 30, contraction(0.4, 0.05, row_norm**2))
    for y in (1e13, 1e40, -1e90):
        total, descent = step_without_noise(
            LocalPlace(np.full((1, p), x), np.array([y])), event, np.zeros(p, dtype=np.int64),
            loss=SquaredLoss(), row_norm=row_norm, clip=0.7, step=0.4, l2=0.05, n_normalizer=1,
            fit_intercept=False,
        )  # fmt: skip
        longest = descent.limit * (1 + (p + 16) * 2.0**-52) + math.sqrt(p) / 2
        assert np.linalg.norm(total) <= longest
        assert np.linalg.norm(total) >= 0.99 * longest or x == 1e155  # clipped, or no row at all


@pytest.mark.parametrize(("clip", "row_norm"), [(1e-31, 1.0), (1e31, 1.0), (1.0, 1e16)])
def test_numbers_outside_of_what_is_proved_are_refused(clip, row_norm):
    public = {"n_samples": 10, "n_coordinates": 3, "curvature": 1.0, "n_normalizer": 10}
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 30, 1.0)
    square = row_norm**2
    with pytest.raises(ValueError, match="clip and the squared norm"):
        Descent(event, **public, squared_norm=square, clip=clip, step=0.5 / square, l2=square)


def test_every_step_is_its_numpy_twin(records):
    X, y = records
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 30, contraction(0.4, 0.05, 3.25))
    state = np.random.default_rng(1).integers(-(10**6), 10**6, 6)
    weights = np.linspace(0, 3, len(X))
    moved, descent = step_of(X, y, weights, state * 10**5, event=event)
    w = state * 10**5 * descent.unit
    lengths = np.linalg.norm(X, axis=1)
    Z = np.column_stack([X * np.minimum(1, 1.5 / lengths)[:, None], np.ones(len(X))])
    G = ((Z @ w - y) * np.minimum(weights, 1))[:, None] * Z
    G *= np.minimum(1, 0.7 / np.maximum(np.linalg.norm(G, axis=1), 1e-300))[:, None]
    expected = w - 0.4 * (G.mean(axis=0) + 0.05 * w)
    np.testing.assert_allclose(moved * descent.unit, expected, rtol=1e-7, atol=1e-9)


def test_weights_above_one_count_as_one(records):
    X, y = records
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 30, contraction(0.4, 0.05, 3.25))
    state = np.arange(6) * 10**9
    one = step_of(X, y, np.ones(len(X)), state, event=event)[0]
    many = step_of(X, y, np.full(len(X), 7.0), state, event=event)[0]
    assert (one == many).all()


def test_a_descent_that_contracts_less_than_the_event_says_is_refused(records):
    X, y = records
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 30, 0.9)  # truly 0.98
    with pytest.raises(ValueError, match="contract"):
        step_of(X, y, None, np.zeros(6, dtype=np.int64), event=event)
    plain = FitEvent((GaussianEvent(5.0, 30),))
    with pytest.raises(TypeError, match="HiddenStateEvent"):
        step_of(X, y, None, np.zeros(6, dtype=np.int64), event=plain)


@pytest.mark.parametrize(
    ("n", "l2"), [(10**3, 1e-3), (10**5, 1e-2), (10**6, 1e-3)], ids=lambda v: f"{v:g}"
)
def test_rounding_costs_less_than_two_percent_of_noise(n, l2):
    c = contraction(0.3, l2, 3.0)
    event = hidden_state_fit_event(Budget(1.0, 1e-6), 100, c)
    descent = Descent(
        event, n_samples=n, n_coordinates=30, curvature=1.0, squared_norm=3.0, clip=0.5,
        step=0.3, l2=l2, n_normalizer=n,
    )  # fmt: skip
    z = event.releases[0].noise_multiplier
    assert 1 <= 2.0**descent.bits / (z * 2 * descent.limit) < 1.02
    assert n * descent.limit <= 2.0**52


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_the_integers_of_few_records_stay_within_what_the_kernels_round(n):
    event = FitEvent((HiddenStateEvent(1e-4, 3, 1.0),))
    descent = Descent(
        event, n_samples=n, n_coordinates=1, curvature=1.0, squared_norm=1.0, clip=0.5, step=0.5,
        l2=1.0, n_normalizer=n,
    )  # fmt: skip
    assert descent.limit < 2.0**50


# ---- the audit ----------------------------------------------------------------------------------


def last_iterates(present, runs, *, noise_share=1.0, count=40, n=50, claim_c=None):
    """One coordinate, one record that pulls with all its clip or is another that pulls back."""
    step, l2, clip = 0.5, 0.2, 1.0
    X = np.full((n, 1), 1e-9)
    y = np.zeros(n)
    X[0], y[0] = 1.0, 1e6 if present else -1e6
    c = claim_c or contraction(step, l2, 1.0)
    event = hidden_state_fit_event(Budget(8.0, 1e-5), count, c)
    (release,) = event.releases
    drawn = HiddenStateEvent(release.noise_multiplier * noise_share, count, 1.0)
    found = []
    for _ in range(runs):
        descent = Descent(
            FitEvent((drawn,)), n_samples=n, n_coordinates=1, curvature=1.0, squared_norm=1.0,
            clip=clip, step=step, l2=l2, n_normalizer=n,
        )  # fmt: skip
        coef = release_last_iterate(
            Receipt(FitEvent((drawn,)), None), descent, LocalPlace(X, y), loss=SquaredLoss(),
            row_norm=1.0, fit_intercept=False,
        )  # fmt: skip
        found.append(coef[0])
    return np.array(found), math.sqrt(gdp_squared(event))


def audited_mu(runs=4000, **options):
    """Lower confidence bound on μ from the two samples of a statistic that is nearly normal."""
    one, mu = last_iterates(True, runs, **options)
    other, _ = last_iterates(False, runs, **options)
    middle = (np.median(one) + np.median(other)) / 2
    confidence = 1e-6
    fnr = stats.beta.ppf(1 - confidence, (one <= middle).sum() + 1, (one > middle).sum())
    fpr = stats.beta.ppf(1 - confidence, (other > middle).sum() + 1, (other <= middle).sum())
    return stats.norm.ppf(1 - fpr) - stats.norm.ppf(fnr), mu


def test_audit_of_the_last_iterate_stays_below_its_claim_and_near_it():
    found, claim = audited_mu()
    assert 0.8 * claim < found <= claim


def test_audit_catches_a_mutant_with_half_the_noise():
    found, claim = audited_mu(noise_share=0.5)
    assert found > claim


def test_audit_catches_a_mutant_that_claims_a_stronger_contraction():
    found, claim = audited_mu(claim_c=0.4)
    assert found > claim


# ---- the estimator ------------------------------------------------------------------------------


def test_a_fit_releases_one_iterate_with_less_noise_than_composition(records):
    options = {"epsilon": 1.0, "max_iter": 150, "step_size": 1.5, "momentum": 0}
    hidden = ridge(30.0, **options).fit(*records)
    public = {"penalize_intercept": False, "target_bounds": (-1, 1)}
    composed = ridge(30.0, **options, **public, accounting="composition").fit(*records)
    (release,) = hidden.privacy_event_.releases
    assert isinstance(release, HiddenStateEvent)
    assert (release.count, hidden.n_iter_) == (150, 150)
    assert hidden.noise_multiplier_ == release.noise_multiplier < 0.75 * composed.noise_multiplier_
    assert hidden.planned_event(*records[0].shape) == hidden.privacy_event_
    assert hidden.privacy_spent_.epsilon == 1.0
    expected = contraction(1.5 / 6, 30 / 300, 6.0)  # rows of norm sqrt(5) and a one
    assert release.contraction == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_little_noise_it_is_ridge_with_a_penalised_intercept(records, neighboring, weighted):
    X, y = records
    weights = np.linspace(0.1, 1, len(X)) if weighted else None
    extra = {"neighboring": "add_remove", "n_public": 300} if neighboring == "add_remove" else {}
    model = ridge(
        15.0, epsilon=1e5, delta=1e-3, clip=6.0, max_iter=3000, step_size=1.0, **extra
    ).fit(X, y, weights)
    augmented = Ridge(15.0, fit_intercept=False).fit(
        np.column_stack([X, np.ones(len(X))]), y, weights
    )
    np.testing.assert_allclose(model.coef_, augmented.coef_[:-1], atol=5e-3)
    assert model.intercept_ == pytest.approx(augmented.coef_[-1], abs=5e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_ridge(records, fit_intercept):
    X, y = records
    X = X + 0.7  # not centred: the intercept that is penalised is at zero
    free = {"feature_bounds": None, "row_norm_bound": 9.0, "tol": 1e-10}
    model = ridge(5.0, epsilon=math.inf, fit_intercept=fit_intercept, **free).fit(X, y)
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    expected = Ridge(5.0, fit_intercept=False).fit(Z, y).coef_
    found = np.append(model.coef_, model.intercept_) if fit_intercept else model.coef_
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@table(
    ("change", "needed"),
    [
        ({"penalize_intercept": False}, "penalize_intercept=True"),
        ({"alpha": 0.0}, "alpha > 0"),
        ({"sampling": "block"}, 'sampling="full"'),
        ({"momentum": 0.5}, "momentum=0"),
        ({"averaging": "tail"}, 'averaging="last"'),
        ({"feature_bounds": None}, "row_norm_bound or feature_bounds"),
        ({"step_size": 2.5}, "does not contract"),
        ({"alpha": 1e-297}, "does not contract"),
        ({"coef_path": True}, "coef_path=False"),
        ({"accounting": "hidden"}, "accounting"),
        ({"penalize_intercept": "yes"}, "penalize_intercept"),
    ],
)
def test_every_assumption_is_enforced_before_the_charge(records, change, needed):
    accountant = PrivacyAccountant(5.0, 1e-5)
    with pytest.raises(ValueError, match=needed.replace("(", r"\(")):
        (model := ridge(change.pop("alpha", 3.0), accountant=accountant, **change)).fit(*records)
    assert accountant.entries() == []
    assert not hasattr(model, "coef_")


def test_the_preset_has_it_without_an_intercept_and_the_same_assumptions(records):
    hidden = {"solver": SkGD(accounting="hidden_state"), "feature_bounds": (-1, 1)}
    accountant = PrivacyAccountant(5.0, 1e-5)
    for change, needed in (({"fit_intercept": True}, "fit_intercept=False"),
                           ({"positive": True}, "positive=False"), ({"alpha": 0.0}, "alpha > 0"),
                           ({"coef_path": True}, "coef_path=False")):  # fmt: skip
        stated = {"alpha": 3.0, "fit_intercept": False, "accountant": accountant} | hidden
        model = DPRidgeSkGD(**stated | change)
        with pytest.raises(ValueError, match=needed):
            model.fit(*records)
    assert accountant.entries() == []
    preset = DPRidgeSkGD(3.0, fit_intercept=False, **hidden)
    generic = ridge(3.0, fit_intercept=False, penalize_intercept=False)
    assert preset.planned_event(N_RECORDS, 5) == generic.planned_event(N_RECORDS, 5)
    (release,) = preset.planned_event(N_RECORDS, 5).releases
    assert isinstance(release, HiddenStateEvent)


def test_more_records_than_n_public_are_refused(records):
    # their sum over n_public is steeper than the contraction counts with
    X, y = records
    n_public = len(X) - 1
    accountant = PrivacyAccountant(10.0, 1e-4, neighboring="add_remove", n_public=n_public)
    model = ridge(9.0, neighboring="add_remove", n_public=n_public, delta=1e-5)
    with pytest.raises(ValueError, match="n_public"):
        model.set_params(accountant=accountant, random_state=None).fit(X, y)
    assert accountant.entries() == []
    model.set_params(accountant=None)
    fewer = model.fit(X[:-1], y[:-1])
    # units and noise do not follow the true number of records
    least = model.set_params(random_state=None).fit(X[:20], y[:20])
    assert least.privacy_event_ == fewer.privacy_event_


def test_a_ledger_counts_the_last_iterate_as_the_gaussian_that_it_is(records):
    accountant = PrivacyAccountant(2.0, 1e-5)
    model = ridge(20.0, epsilon=0.9, delta=1e-5, accountant=accountant)
    model.fit(*records)
    (entry,) = accountant.entries()
    assert entry.amount == pytest.approx(gdp_mu(0.9, 1e-5) ** 2, rel=1e-9)
    assert "the last of" in entry.event
    with pytest.raises(BudgetExceededError):
        model.set_params(epsilon=2.0).fit(*records)


def test_long_rows_and_extreme_targets_are_bounded_silently(records):
    X, y = records
    X, y = X.copy(), y.copy()
    X[0], y[0] = 1e300, -1e300
    model = DPRidgeSkGD(
        5.0, fit_intercept=False, row_norm_bound=2.0, solver=SkGD(accounting="hidden_state")
    ).fit(X, y)
    assert np.isfinite(model.coef_).all()


def test_defaults_follow_public_numbers_only(records):
    X, y = records
    rng = np.random.default_rng(3)
    models = [ridge(8.0).fit(*data) for data in ((X, y), (rng.permutation(X) * 9, -y))]
    for name in ("n_iter_", "clip_", "noise_multiplier_", "privacy_event_"):
        assert getattr(models[0], name) == getattr(models[1], name)
