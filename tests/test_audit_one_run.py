"""The audit by one fit: its bound holds for mechanisms whose guesses are known, and is of use."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from tables import table

from dpcd_sklearn import DPLinearRegressor, DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.inspection import audit, audit_one_run
from dpcd_sklearn.inspection._one_run import _largest, _of_gaussian, _of_pair, is_too_many
from dpcd_sklearn.privacy.accounting import PrivacySpent, with_noise
from dpcd_sklearn.solvers import SGD

SURE = 1 - 1e-6
STATED = {"feature_scale": 1.0}


class InUnits:
    """Takes targets as they are: those of canaries lie beyond all margins."""

    def _finds_target(self):
        return False


class Ridge(InUnits, DPRidgeSkGD):
    pass


class Regressor(InUnits, DPLinearRegressor):
    pass


# ---- the bound ----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 7, 40])
@pytest.mark.parametrize("size", [0.3, 1.0, 3.0])
def test_independent_guesses_of_the_claimed_mechanism_are_never_too_many(m, size):
    """Randomised response and Gaussians: no number of right guesses is called rarer than it is."""
    for rate, inverse in (
        (1 / (1 + np.exp(-size)), _of_pair(size, 0.0)),
        (ndtr(size / 2), _of_gaussian(size)),
    ):
        for right in range(m + 1):
            chance = stats.binom.sf(right - 1, m, rate)
            assert not is_too_many(right, m, m, chance * (1 - 1e-9), inverse)


def test_a_mechanism_that_sometimes_tells_everything_is_allowed_to():
    """(0, δ)-DP: with probability δ all coins are told, else none: the guesses are dependent."""
    m, delta = 20, 0.1
    inverse = _of_pair(1e-12, delta)
    for right in range(11, m + 1):
        chance = delta + (1 - delta) * stats.binom.sf(right - 1, m, 0.5)
        assert not is_too_many(right, m, m, chance * (1 - 1e-9), inverse)
    # as independent guesses all of them would be taken for a loss that is not there
    assert is_too_many(m, m, m, delta * 0.5, _of_pair(0.01, 0.0))


def test_of_one_canary_the_bound_is_exact():
    for mu in (0.5, 2.0):
        rate = ndtr(mu / 2)
        assert is_too_many(1, 1, 1, rate + 1e-6, _of_gaussian(mu))
        assert not is_too_many(1, 1, 1, rate - 1e-6, _of_gaussian(mu))


def test_more_right_guesses_show_more():
    shown = [_largest(_of_gaussian, right, 100, 200, 0.05) for right in (60, 80, 90, 100)]
    assert shown == sorted(shown) and shown[0] < 0.6 < 1.2 < shown[-1]
    assert _largest(_of_gaussian, 50, 100, 100, 0.05) == 0.0


# ---- fits ---------------------------------------------------------------------------------------


def records(n, p):
    X = np.random.default_rng(0).normal(size=(n, p))
    return X, X[:, 0]


@pytest.mark.parametrize(
    ("model", "least"),
    [
        (Ridge(epsilon=10.0, **STATED), 0.3),
        (Ridge(epsilon=10.0, neighboring="add_remove", n_public=300, delta=1e-5, **STATED), 0.3),
        (Ridge(epsilon=10.0, feature_bounds=(-3, 3)), 0.1),
        (Regressor(epsilon=10.0, solver=SGD(sampling_rate=1.0), **STATED), 0.3),
        (Regressor(epsilon=10.0, solver="sgd", **STATED), 0.0),
        (DPRidgeSkGD(epsilon=10.0), 0.0),
    ],
    ids=["ridge", "add_remove", "bounds", "sgd of all", "sgd", "scales are found"],
)
def test_an_honest_fit_is_not_contradicted_and_much_is_seen(model, least):
    X, y = records(150, 200)
    result = audit_one_run(model, X, y, n_canaries=150, confidence=SURE)
    assert not result.contradicts, str(result)
    seen = audit_one_run(model, X, y, n_canaries=150)
    assert seen.mu is None or seen.mu_lower > least * seen.mu, str(seen)


def test_a_tenth_of_the_noise_is_caught_by_one_fit():
    class Louder(Ridge):
        def _plan(self, *public, **options):
            plan = super()._plan(*public, **options)
            self.claimed = plan.event
            return plan.paid_by((with_noise(plan.event, 0.1),))

        def _set_released(self, plan, solution, dtype):
            super()._set_released(plan, solution, dtype)
            self.privacy_event_ = self.claimed

    X, y = records(100, 100)
    result = audit_one_run(Louder(epsilon=2.0, **STATED), X, y, n_canaries=100)
    assert result.contradicts and str(result).startswith("CONTRADICTION"), str(result)


class Boastful(Ridge):
    """Says that it spends another epsilon than its releases do."""

    said = 0.5

    def _set_released(self, plan, solution, dtype):
        super()._set_released(plan, solution, dtype)
        self.privacy_spent_ = PrivacySpent(self.said, plan.request.budget.delta)


def test_an_epsilon_that_its_own_releases_exceed_is_caught_by_one_fit():
    X, y = records(300, 300)
    model = Boastful(epsilon=20.0, delta=1e-2, max_iter=10, **STATED)
    result = audit_one_run(model, X, y, n_canaries=300, n_guesses=200)
    assert result.mu_lower < result.mu  # as its event says
    assert result.contradicts and result.epsilon_lower > 2, str(result)


@pytest.mark.parametrize("said", [math.nan, -1.0])
def test_a_claim_that_is_no_number_is_refused(said, monkeypatch):
    monkeypatch.setattr(Boastful, "said", said)
    X, y = records(20, 20)
    with pytest.raises(ValueError, match="the claimed epsilon"):
        audit_one_run(Boastful(epsilon=2.0), X, y, n_canaries=20)
    with pytest.raises(ValueError, match="the claimed epsilon"):
        audit(Boastful(epsilon=2.0), families="all", n_runs=100)


@table(
    ("model", "options", "error", "match"),
    [
        (DPRidgeSkGD(), {"n_canaries": 21}, ValueError, "n_canaries must be at most 20"),
        (DPRidgeSkGD(), {"n_canaries": 9}, ValueError, "n_canaries must be an integer >= 10"),
        (DPRidgeSkGD(), {"n_guesses": 5}, ValueError, "n_guesses"),
        (DPRidgeSkGD(), {"confidence": 0.2}, ValueError, "confidence"),
        (
            DPLinearRegressor(
                solver="frank-wolfe", constraint="l1_ball", penalty=None, fit_intercept=False
            ),
            {},
            ValueError,
            "no noisy sums",
        ),
    ],
)
def test_what_can_not_be_audited_so_is_refused(model, options, error, match):
    X, y = records(30, 20)
    with pytest.raises(error, match=match):
        audit_one_run(model, X, y, **{"n_canaries": 20} | options)


def test_a_classifier_is_audited_by_its_labels():
    X, y = records(60, 40)
    result = audit_one_run(DPLogisticGCD(epsilon=4.0), X, (y > 0).astype(int), n_canaries=40)
    assert result.n_canaries == 40 and np.isfinite(result.scores).all()
