"""The audit for users: its bounds hold, it sees most of a loss, it catches broken mechanisms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpcd_sklearn import DPLassoCD, DPLogisticGCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.inspection import AuditDisplay, AuditResult, BudgetDisplay, audit
from dpcd_sklearn.inspection._audit import _epsilon_lower, _interval
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_epsilon, gdp_mu

BUDGET = {"epsilon": 4.0, "delta": 1e-3}
ONE_WAY = BUDGET | {"alpha": 0.0, "max_iter": 3, "step_size": 1.0, "averaging": "last"}
CASES = [
    pytest.param(DPLassoCD(fit_intercept=False, **ONE_WAY), id="lasso"),
    pytest.param(DPLassoCD(**ONE_WAY), id="lasso with intercept"),
    pytest.param(DPRidgeSkGD(momentum=0, **ONE_WAY), id="ridge"),
    pytest.param(
        DPRidgeSkGD(momentum=0, **ONE_WAY, neighboring="add_remove", n_public=20), id="add-remove"
    ),
    pytest.param(
        DPRidgeSkGD(
            3.0, **BUDGET, accounting="hidden_state", penalize_intercept=True, row_norm_bound=1.0
        ),
        id="hidden state",
    ),
]
GREEDY = DPLogisticGCD(
    1e6, **BUDGET, max_iter=4, step_size=0.1, averaging="last", fit_intercept=False,
    selection_share=0.3, classes=[0, 1],
)  # fmt: skip


# ---- honest estimators --------------------------------------------------------------------------


@pytest.mark.parametrize("model", CASES)
def test_an_honest_model_passes_and_most_of_its_loss_is_seen(model):
    result = audit(model, n_runs=2000, confidence=1 - 1e-6)
    assert result.passed
    assert (result.epsilon, result.delta) == (4.0, 1e-3)
    assert result.mu == pytest.approx(gdp_mu(4.0, 1e-3), rel=1e-6)
    # intervals of this confidence are wide: about half of it
    assert result.mu_lower > 0.3 * result.mu
    assert result.epsilon_lower > 0.5


def test_an_honest_greedy_model_passes():
    result = audit(GREEDY, n_runs=2000, confidence=1 - 1e-6)
    assert result.passed and result.mu is None
    assert result.epsilon_lower > 0.05


def test_stated_data_sets_and_weights_are_used():
    X, y = np.ones((5, 1)), np.zeros(5)
    one, other = (X, y + [1e6, 0, 0, 0, 0]), (X, y - [1e6, 0, 0, 0, 0])
    model = DPLassoCD(**ONE_WAY)
    assert audit(model, one, other, n_runs=2000).epsilon_lower > 0.2
    same = audit(model, one, one, n_runs=400, confidence=1 - 1e-6)
    assert same.passed and same.epsilon_lower < 0.5
    weights = np.array([0.0, 1, 1, 1, 1])  # the record that differs counts nothing
    silent = audit(model, (*one, weights), (*other, weights), n_runs=400, confidence=1 - 1e-6)
    assert silent.epsilon_lower < 0.5


def test_the_accountant_is_not_charged_and_a_seed_is_not_used():
    accountant = PrivacyAccountant(100.0, 0.1, testing=True)
    model = DPRidgeSkGD(accountant=accountant, random_state=3, **BUDGET)
    result = audit(model, n_runs=100)
    assert accountant.entries() == []
    assert len(np.unique(result.statistics[0])) > 10  # seeded fits would all be the same
    assert model.accountant is accountant and model.random_state == 3


def test_pipelines_are_audited_on_stated_data():
    model = make_pipeline(BoundsScaler((-1, 1)), DPRidgeSkGD(feature_bounds=(-1, 1), **ONE_WAY))
    X = np.ones((20, 1))
    pair = [(X, np.append(s * 1e9, np.zeros(19))) for s in (1, -1)]
    # 1.4 with a standard deviation of 0.2
    result = audit(model, *pair, n_runs=2000, confidence=1 - 1e-6)
    assert result.passed and result.epsilon_lower > 0.2
    with pytest.raises(ValueError, match="give data and neighbor for a pipeline"):
        audit(model, n_runs=100)


# ---- broken ones --------------------------------------------------------------------------------


class HalfTheNoise(DPLassoCD):
    """Releases at half the noise that it claims."""

    def _plan(self, *public, **options):
        plan = super()._plan(*public, **options)
        (release,) = plan.event.releases
        half = replace(release, noise_multiplier=release.noise_multiplier / 2)
        plan.event = replace(plan.event, releases=(half,))
        return plan


class Boastful(DPRidgeSkGD):
    """Says that it spent half of what it did."""

    def _set_released(self, plan, solution, dtype):
        super()._set_released(plan, solution, dtype)
        self.privacy_spent_ = type(self.privacy_spent_)(self.epsilon / 8, plan.request.delta)


class ScalerBefore(RegressorMixin, BaseEstimator):
    """A private model behind scales that were learnt from the records for nothing."""

    def fit(self, X, y):
        last = DPRidgeSkGD(**ONE_WAY, fit_intercept=False)
        self.pipeline_ = make_pipeline(StandardScaler(with_mean=False), last).fit(X, y)
        self.scale_ = self.pipeline_[0].scale_
        self.coef_, self.intercept_ = self.pipeline_[1].coef_, 0.0
        return self


def test_half_the_noise_is_caught():
    honest = ONE_WAY | {"fit_intercept": False}
    claim = (4.0, 1e-3, gdp_mu(4.0, 1e-3))
    caught = audit(HalfTheNoise(**honest), claim=claim, n_runs=2000)
    assert not caught.passed and caught.mu_lower > 1.3 * claim[2]
    assert audit(DPLassoCD(**honest), claim=claim, n_runs=2000).passed


def test_a_claim_that_is_too_small_is_caught():
    result = audit(Boastful(momentum=0, fit_intercept=False, **ONE_WAY), n_runs=2000)
    assert not result.passed
    assert str(result).startswith("CONTRADICTION to epsilon=0.5")


def test_a_step_that_learns_for_nothing_is_caught():
    X = np.ones((20, 1))
    far = X.copy()
    far[0] = 100.0
    y = np.ones(20)
    result = audit(
        ScalerBefore(),
        (X, y),
        (far, y),
        claim=(4.0, 1e-3),
        n_runs=1000,
        statistic=lambda model: np.append(model.coef_, model.scale_),
    )
    assert not result.passed


def test_a_model_without_noise_is_caught_by_any_claim():
    pair = [(np.ones((5, 1)), np.array([s, 0, 0, 0, 0])) for s in (1.0, -1.0)]
    result = audit(Ridge(), *pair, claim=(3.0, 1e-6), n_runs=1000)
    assert not result.passed and result.epsilon_lower > 3.0


# ---- the bounds themselves ----------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.3, 0.97, 1.0])
def test_intervals_hold_the_rate_as_often_as_they_say(rate):
    rng = np.random.default_rng(0)
    held = []
    for _ in range(2000):
        low, high = _interval(rng.random(80) < rate, 0.9)
        held.append(low <= rate <= high)
    assert np.mean(held) > 0.95 - 0.02  # each rate has half of the allowed failures


def test_the_bound_on_epsilon_is_that_of_the_definition():
    assert _epsilon_lower((0.5, 0.6), (0.1, 0.2), 0.0) == pytest.approx(math.log(2.5))
    assert _epsilon_lower((0.99, 1.0), (0.4, 0.5), 0.1) == pytest.approx(math.log(0.4 / 0.01))
    assert _epsilon_lower((0.1, 0.2), (0.1, 0.2), 0.0) == 0.0
    assert _epsilon_lower((1.0, 1.0), (0.0, 0.0), 0.0) > 600  # told apart for certain


@pytest.mark.slow
def test_an_honest_mechanism_contradicts_as_rarely_as_the_confidence_says():
    class Gaussian(BaseEstimator):
        def fit(self, X, y):
            self.coef_ = np.array([np.mean(y) + np.random.default_rng().normal()])
            self.intercept_ = 0.0
            return self

    pair = [(np.ones((1, 1)), np.array([y])) for y in (0.5, -0.5)]  # 1-GDP, by definition
    claim = (gdp_epsilon(1.0, 0.01), 0.01)
    above = [
        not audit(Gaussian(), *pair, claim=claim, n_runs=200, confidence=0.8).passed
        for _ in range(60)
    ]
    assert sum(above) <= 12  # at most 20 %, and in fact far fewer


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_runs": 99}, ValueError, "n_runs"),
        ({"n_runs": 1e3}, ValueError, "n_runs"),
        ({"n_runs": True}, ValueError, "n_runs"),
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"confidence": float("nan")}, ValueError, "confidence"),
        ({"confidence": "high"}, TypeError, "confidence"),
        ({"data": (np.ones((2, 1)), np.ones(2))}, ValueError, "both data and neighbor"),
        ({"claim": (0.0, 0.1)}, ValueError, "claimed epsilon"),
        ({"claim": 3.0}, ValueError, r"claim must be \(epsilon, delta\)"),
        ({"claim": (1.0, 0.1, -1.0)}, ValueError, "claimed mu"),
        ({"claim": (1.0, 1.0)}, ValueError, "claimed delta"),
        ({"claim": (1.0, float("nan"))}, ValueError, "claimed delta"),
        pytest.param({"statistic": lambda model: np.nan}, ValueError, "not finite", id="statistic"),
    ],
    ids=str,
)
def test_bad_input_is_refused(options, error, match):
    with pytest.raises(error, match=match):
        audit(DPRidgeSkGD(**BUDGET), **{"n_runs": 100} | options)


def test_a_model_that_claims_nothing_needs_a_claim():
    pair = [(np.ones((5, 1)), np.arange(5) * s) for s in (1.0, -1.0)]
    with pytest.raises(ValueError, match=r"give claim=\(epsilon, delta\)"):
        audit(Ridge(), *pair, n_runs=100)
    with pytest.raises(ValueError, match="without noise"):
        audit(DPRidgeSkGD(epsilon=math.inf), *pair, n_runs=100)

    class NoCoefficients(BaseEstimator):
        def fit(self, X, y):
            return self

    with pytest.raises(TypeError, match="give a statistic"):
        audit(NoCoefficients(), *pair, claim=(1.0, 0.1), n_runs=100)


# ---- pictures -----------------------------------------------------------------------------------


def test_the_picture_shows_claim_audit_and_chosen_test():
    pytest.importorskip("matplotlib", reason="plots are an extra")
    display = AuditDisplay.from_estimator(DPRidgeSkGD(**BUDGET, max_iter=5), n_runs=200)
    assert isinstance(display.result, AuditResult)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any("claim" in label for label in labels)
    assert any("GDP" in label for label in labels)
    assert any("99% intervals" in label for label in labels)
    x, y = display.line_.get_data()
    assert len(x) == 200 and (np.diff(y) >= 0).all() and (np.diff(x) <= 0).all()
    assert display.ax_.get_xlabel() == "false alarm rate"
    again = AuditDisplay(display.result).plot(ax=display.ax_)
    assert again.figure_ is display.figure_


@pytest.mark.parametrize("by", ["entry", "time"])
def test_the_budget_over_time_is_that_of_the_report(by):
    pytest.importorskip("matplotlib", reason="plots are an extra")
    accountant = PrivacyAccountant(5.0, 1e-5)
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) / 50
    for epsilon in (0.3, 0.5, 0.4):
        DPRidgeSkGD(epsilon=epsilon, delta=1e-6, accountant=accountant).fit(X, y)
    DPLassoCD(epsilon=0.2, delta=1e-6, accountant=accountant).fit(X, y)
    display = BudgetDisplay.from_accountant(accountant, by=by)
    report = accountant.report()
    spent = display.line_.get_ydata()[-4:]
    np.testing.assert_allclose(spent, report.epsilons)
    assert spent[-1] == pytest.approx(accountant.spent().epsilon)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any("DPRidgeSkGD (3)" in label for label in labels)
    assert any("budget" in label for label in labels)
    assert display.ax_.get_ylim()[1] > 5.0
    BudgetDisplay.from_accountant(PrivacyAccountant(1.0, 1e-5), by=by)  # an empty ledger too
    with pytest.raises(ValueError, match="by must be"):
        display.plot(by="fold")
