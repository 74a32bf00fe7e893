"""The audit for users: its bounds hold, it sees most of a loss, it catches broken mechanisms.

Flaws of the mechanism itself, compiled one by one, are in test_audit_mutants.py.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.inspection import (
    AuditDisplay,
    AuditResult,
    BudgetDisplay,
    audit,
    audit_one_run,
)
from dpcd_sklearn.inspection._bounds import error_bound
from dpcd_sklearn.inspection._claims import Claim, epsilon_shown, least_error, mu_shown
from dpcd_sklearn.pipeline import PrivatePipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.privacy.accounting import (
    FitEvent,
    GaussianEvent,
    PoissonSampledEvent,
    SelectionEvent,
    gdp_epsilon,
    gdp_mu,
)
from dpcd_sklearn.solvers import SGD
from dpcd_sklearn.testing import ReproducibleNoise

BUDGET = {"epsilon": 4.0, "delta": 1e-3}
SCALED = {"feature_scale": 1.0}  # of so few records none is found, and features are let go
# of so few records no scale of the target is found either
ADD = {"neighboring": "add_remove", "n_public": 20, "target_bounds": (-1, 1)}
SURE = 1 - 1e-6


# ---- honest estimators --------------------------------------------------------------------------

HONEST = [
    pytest.param(DPLassoCD(**BUDGET, **SCALED, solver="cd"), 0.8, id="lasso"),
    pytest.param(DPRidgeSkGD(**BUDGET), 0.8, id="ridge"),
    pytest.param(DPRidgeSkGD(**BUDGET, sampling="block"), 0.8, id="blocks"),
    pytest.param(DPRidgeSkGD(**BUDGET, **SCALED, **ADD), 0.8, id="add"),
    pytest.param(DPRidgeSkGD(**BUDGET, feature_bounds=(-2, 1)), 0.7, id="bounds"),
    pytest.param(DPLinearRegressor(**BUDGET, solver="compgd"), 0.7, id="compgd"),
    pytest.param(DPLinearRegressor(**BUDGET, solver=SGD(sampling_rate=1.0)), 0.8, id="sgd"),
]


@pytest.mark.parametrize(("model", "share"), HONEST)
def test_an_honest_model_passes_and_most_of_its_loss_is_seen(model, share):
    families = ["one feature", "opposite signs"]
    result = audit(model, families=families, n_runs=250, confidence=0.999)
    assert not result.contradicts and result.power > 0.7, str(result)
    assert (result.epsilon, result.delta) == (4.0, 1e-3)
    assert result.mu == pytest.approx(gdp_mu(4.0, 1e-3), rel=1e-6)
    # the bound is 3.1 standard deviations below the truth, each of about 10 % of it
    assert mu_shown(result.error) > (share - 0.3) * result.mu, str(result)
    assert result.epsilon_lower > 0.1


def test_an_honest_greedy_model_passes():
    model = DPLogisticGCD(**BUDGET, solver="gcd")
    result = audit(model, families=["many features"], confidence=SURE)
    assert not result.contradicts and result.mu is None
    assert result.epsilon_lower > 0  # about .5, give or take .1


class InUnits(DPRidgeSkGD):
    """Takes targets as they are: that of the record that differs lies beyond all margins."""

    def _finds_target(self):
        return False


def test_at_a_large_epsilon_nine_tenths_of_mu_are_shown():
    model = InUnits(epsilon=20.0, feature_scale=1.0)
    result = audit(model, families=["one feature"], broken=None, n_runs=1000)
    assert result.mu > 3
    # .95 with a standard deviation of .03
    assert 0.85 * result.mu < result.mu_lower <= 1.01 * result.mu, str(result)


def test_an_audit_that_would_not_notice_is_inconclusive():
    # the record that differs counts nothing
    X, y, weights = np.ones((5, 1)), np.zeros(5), np.array([0.0, 1, 1, 1, 1])
    pair = [(X, y + [s * 1e6, 0, 0, 0, 0], weights) for s in (1, -1)]
    result = audit(DPLassoCD(**BUDGET), *pair, n_runs=100, confidence=0.999)
    assert result.verdict == "inconclusive" and not result.passed
    assert result.power < 0.1
    assert str(result).startswith("INCONCLUSIVE")
    unknown = audit(DPLassoCD(**BUDGET), *pair, n_runs=100, confidence=0.999, broken=None)
    assert unknown.verdict == "inconclusive" and unknown.power is None


def test_stated_data_sets_are_used_alone_or_beside_the_families():
    X, y = np.ones((5, 1)), np.zeros(5)
    one, other = (X, y + [1e6, 0, 0, 0, 0]), (X, y - [1e6, 0, 0, 0, 0])
    model = DPLassoCD(**BUDGET, **SCALED, solver="cd")
    stated = audit(model, one, other, broken=None)
    assert stated.pair == "stated" and stated.mu_lower > 0.2 * stated.mu
    same = audit(model, one, one, broken=None, confidence=SURE)
    assert same.mu_lower == 0.0 and not same.contradicts
    beside = audit(model, one, one, families=["one feature"], broken=None)
    assert beside.pair == "one feature" and beside.mu_lower > 0.2 * beside.mu


def test_the_accountant_is_not_charged_and_a_seed_is_not_used():
    accountant = PrivacyAccountant(100.0, 0.1, testing=True)
    model = DPRidgeSkGD(accountant=accountant, random_state=ReproducibleNoise(3), **BUDGET)
    result = audit(model, n_runs=100, families=["one feature"], broken=None)
    assert accountant.entries() == []
    assert len(np.unique(result.statistics[0])) > 10  # seeded fits would all be the same
    assert model.accountant is accountant and model.random_state == ReproducibleNoise(3)


def test_pipelines_are_audited_on_stated_data():
    model = make_pipeline(BoundsScaler((-1, 1)), InUnits(feature_bounds=(-1, 1), **BUDGET))
    X = np.ones((20, 1))
    pair = [(X, np.append(s * 1e9, np.zeros(19))) for s in (1, -1)]
    result = audit(model, *pair, confidence=SURE)
    assert not result.contradicts and result.mu_lower > 0.1 * result.mu  # at six nines
    with pytest.raises(ValueError, match="give data and neighbor for a pipeline"):
        audit(model, n_runs=100)


def test_a_pipeline_claims_what_all_of_its_steps_spend():
    X = np.random.default_rng(0).normal(size=(40, 1))
    pair = [(X, np.append(s * 1e9, np.zeros(39))) for s in (1, -1)]
    steps = [("scaler", DPStandardScaler()), ("model", DPRidgeSkGD())]
    options = {"n_runs": 100, "confidence": SURE}
    whole = PrivatePipeline(steps, epsilon=3.0, delta=1e-3)
    result = audit(whole, *pair, **options)
    # its fits are charged: nobody hears them, nor lets them have less noise
    assert (result.epsilon, result.statistic, result.power) == (3.0, "coefficients", None)
    two = Pipeline([(name, step.set_params(**BUDGET)) for name, step in steps])
    with pytest.raises(ValueError, match="scaler and model each spend a budget: state"):
        audit(two, *pair, **options)
    result = audit(two, *pair, claim=(8.0, 2e-3), **options)
    assert not result.contradicts and result.power is not None


def test_an_audit_listens_and_changes_no_method(monkeypatch):
    """Whatever is audited, a fit finds its estimator's methods as the class wrote them."""
    found, fit = [], DPRidgeSkGD.fit

    def watched(self, *args, **options):
        found.extend(name for name in vars(self) if callable(vars(self)[name]))
        return fit(self, *args, **options)

    monkeypatch.setattr(DPRidgeSkGD, "fit", watched)
    X = np.random.default_rng(0).normal(size=(40, 10))
    model = DPRidgeSkGD(max_iter=2, **BUDGET)
    pair = [(X, np.append(s * 1e9, np.zeros(39))) for s in (1, -1)]
    audit(model, *pair, n_runs=100)
    audit(make_pipeline(BoundsScaler((-9, 9)), model), *pair, n_runs=100)
    audit_one_run(model, X, X[:, 0], n_canaries=10)
    audit(model, n_samples=40, n_features=1, n_runs=100, broken=None)
    assert found == []


# ---- broken ones --------------------------------------------------------------------------------


class Boastful(DPRidgeSkGD):
    """Says that it spent an eighth of what it did."""

    def _set_released(self, plan, solution, dtype):
        super()._set_released(plan, solution, dtype)
        self.privacy_spent_ = type(self.privacy_spent_)(self.epsilon / 8, plan.request.budget.delta)


class Peeking(DPRidgeSkGD):
    """Adds to the coefficients what no oracle released."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ + 1e9 * np.sign(np.mean(y))
        return self


class Shy(DPRidgeSkGD):
    """Refuses the records on which it would be tested."""

    def fit(self, X, y, sample_weight=None):
        if sample_weight is not None and np.max(sample_weight) > 1:
            raise ValueError("no weights above one")
        return super().fit(X, y, sample_weight)


class ScalerBefore(RegressorMixin, BaseEstimator):
    """A private model behind scales that were learnt from the records for nothing."""

    def fit(self, X, y):
        last = DPRidgeSkGD(**BUDGET, fit_intercept=False)
        self.pipeline_ = make_pipeline(StandardScaler(with_mean=False), last).fit(X, y)
        self.scale_ = self.pipeline_[0].scale_
        self.coef_, self.intercept_ = self.pipeline_[1].coef_, 0.0
        return self


def test_a_claim_that_is_too_small_is_caught():
    result = audit(Boastful(**BUDGET), families="all", n_runs=500)
    assert result.contradicts and result.epsilon_lower < 4
    assert str(result).startswith("CONTRADICTION to epsilon=0.5 at")


def test_what_is_told_beside_the_oracle_is_caught():
    result = audit(Peeking(**BUDGET), families="all")
    assert result.contradicts and result.statistic == "coefficients", str(result)


def test_families_that_a_model_refuses_are_named():
    result = audit(Shy(**BUDGET), families="all", n_runs=100, broken=None)
    heavy = ("several features", "intercept alone", "heavy record", "pulling others")
    assert result.refused == (*heavy, "many features")
    assert "fits of several features, intercept alone," in str(result)
    result = audit(DPRidgeSkGD(**BUDGET), families=["one feature"], n_runs=100, broken=None)
    assert result.refused == () and "refused" not in str(result)


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
        statistic=lambda model: np.append(model.coef_, model.scale_),
    )
    assert result.contradicts and result.statistic == "numbers of the user"


def test_a_model_without_noise_is_caught_by_any_claim_and_measures_the_power():
    pair = [(np.ones((5, 1)), np.array([s, 0, 0, 0, 0])) for s in (1.0, -1.0)]
    result = audit(Ridge(), *pair, claim=(3.0, 1e-6))
    assert result.contradicts and result.epsilon_lower > 3.0
    assert result.power is None  # half of no noise is nothing

    class Silent(BaseEstimator):
        def fit(self, X, y):
            self.coef_, self.intercept_ = np.random.default_rng().normal(size=1), 0.0
            return self

    silent = audit(Silent(), *pair, claim=(3.0, 1e-6), broken=Ridge(), confidence=SURE)
    assert silent.power < 0.1  # the test was made for a model that tells nothing
    with pytest.raises(TypeError, match="broken"):
        audit(Ridge(), *pair, claim=(3.0, 1e-6), broken="loud")


# ---- the bounds themselves ----------------------------------------------------------------------


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.0, 0.2), (0.5, 0.5), (0.02, 0.9), (0.0, 0.001)])
@pytest.mark.parametrize("confidence", [0.6, 0.95])
def test_the_bound_on_the_error_holds_as_often_as_it_says(rates, confidence):
    """The bound on guesses whose two data sets err at two rates, by the exact distribution."""
    n = 30
    masses = np.convolve(*(stats.binom.pmf(np.arange(n + 1), n, rate) for rate in rates))
    bounds = np.array([error_bound(k, 2 * n, confidence) for k in range(2 * n + 1)])
    assert masses[bounds < np.mean(rates)].sum() <= 1 - confidence
    assert (np.diff(bounds) >= 0).all()


def test_what_an_error_shows_is_what_has_it_as_its_least():
    for mu in (0.3, 1.0, 4.0):
        assert mu_shown(ndtr(-mu / 2)) == pytest.approx(mu)
        event = FitEvent((GaussianEvent(2.0 / mu, 4),))
        assert least_error(event) == pytest.approx(ndtr(-mu / 2))
    for epsilon, delta in ((0.5, 0.0), (3.0, 0.1)):
        assert epsilon_shown(Claim.stated((epsilon, delta)).error, delta) == pytest.approx(epsilon)
    assert epsilon_shown(0.6, 0.0) == mu_shown(0.6) == 0.0


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_the_floor_of_samples_is_that_of_the_full_release_and_of_one_sample(relation):
    full = least_error(FitEvent((PoissonSampledEvent(1 - 1e-12, 5.0, 20),), relation))
    assert full == pytest.approx(
        least_error(FitEvent((GaussianEvent(5.0, 20),), relation)), rel=1e-3
    )
    # of one sample: the mixtures differ by their shifted parts only
    one = least_error(FitEvent((PoissonSampledEvent(0.3, 0.5, 1),), relation))
    assert 1 - 2 * one == pytest.approx(0.3 * (2 * ndtr(1.0) - 1), rel=1e-3)
    # more releases, or others beside them, tell more
    two = FitEvent((PoissonSampledEvent(0.3, 0.5, 2),), relation)
    beside = FitEvent((PoissonSampledEvent(0.3, 0.5, 1), GaussianEvent(2.0)), relation)
    assert least_error(two) < one and least_error(beside) < one


def test_the_floor_of_one_choice_is_that_of_randomised_response():
    # the worst choice of bounded range eta is between e^(eta/2) and e^(-eta/2) in odds
    error = least_error(FitEvent((SelectionEvent(2.0, 1),)))
    assert error == pytest.approx(1 / (1 + math.exp(1.0)), rel=1e-3)


@pytest.mark.slow
def test_an_honest_mechanism_contradicts_as_rarely_as_the_confidence_says():
    class Gaussian(BaseEstimator):
        def fit(self, X, y):
            self.coef_ = np.array([np.mean(y) + np.random.default_rng().normal()])
            self.intercept_ = 0.0
            return self

    pair = [(np.ones((1, 1)), np.array([y])) for y in (0.5, -0.5)]  # 1-GDP, by definition
    claim = (gdp_epsilon(1.0, 0.01), 0.01, 1.0)
    above = [
        audit(Gaussian(), *pair, claim=claim, n_runs=200, confidence=0.8).contradicts
        for _ in range(60)
    ]
    assert sum(above) <= 24  # at most 20 %: more than twice as many are rarer than 1e-4


# ---- what is refused ----------------------------------------------------------------------------


@table(
    ("options", "error", "match"),
    [
        ({"n_runs": 99}, ValueError, "n_runs"),
        ({"n_runs": 1e3}, ValueError, "n_runs"),
        ({"n_runs": True}, ValueError, "n_runs"),
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"confidence": float("nan")}, ValueError, "confidence"),
        ({"confidence": "high"}, TypeError, "confidence"),
        ({"data": (np.ones((2, 1)), np.ones(2))}, ValueError, "both data and neighbor"),
        ({"families": "some"}, ValueError, "families"),
        ({"families": ["twins"]}, ValueError, "families"),
        ({"families": []}, ValueError, "no pair"),
        ({"claim": (0.0, 0.1)}, ValueError, "claimed epsilon"),
        ({"claim": 3.0}, ValueError, r"claim must be \(epsilon, delta\)"),
        ({"claim": (1.0, 0.1, -1.0)}, ValueError, "claimed mu"),
        ({"claim": (1.0, 1.0)}, ValueError, "claimed delta"),
        ({"claim": (1.0, float("nan"))}, ValueError, "claimed delta"),
        pytest.param({"statistic": lambda model: np.nan}, ValueError, "not finite", id="statistic"),
    ],
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
    with pytest.raises(ValueError, match="the worst pair of Ridge is not known"):
        audit(Ridge(), claim=(1.0, 0.1))

    class NoCoefficients(BaseEstimator):
        def fit(self, X, y):
            return self

    with pytest.raises(TypeError, match="give a statistic"):
        audit(NoCoefficients(), *pair, claim=(1.0, 0.1), n_runs=100)


# ---- pictures -----------------------------------------------------------------------------------


def test_the_picture_shows_claim_audit_and_chosen_test():
    pytest.importorskip("matplotlib", reason="plots are an extra")
    display = AuditDisplay.from_estimator(
        DPRidgeSkGD(**BUDGET, max_iter=5), n_runs=200, families=["one feature"]
    )
    assert isinstance(display.result, AuditResult)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any("claim" in label for label in labels)
    assert any("GDP" in label for label in labels)
    assert any("bound of confidence 95%" in label for label in labels)
    assert display.ax_.get_title().startswith(display.result.verdict)
    x, y = display.line_.get_data()
    assert len(x) == 400 and (np.diff(y) >= 0).all() and (np.diff(x) <= 0).all()
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
