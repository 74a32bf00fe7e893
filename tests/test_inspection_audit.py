"""The audit for users: it charges nobody, changes nothing and says what it can't do.

What it catches is in test_audit_releases.py and, of compiled mechanisms, in test_audit_mutants.py.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from tables import table

from dpcd_sklearn import DPLassoCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.inspection import BudgetDisplay, audit
from dpcd_sklearn.inspection._release_audit import Kind
from dpcd_sklearn.inspection._release_tests import error_bound, least_error, mu_proved
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.privacy.accounting import GaussianEvent, PoissonSampledEvent
from dpcd_sklearn.testing import ReproducibleNoise

SMALL = {"n_samples": 300, "n_features": 1, "n_runs": 100}
MODEL = DPRidgeSkGD(
    epsilon=4.0, max_iter=3, feature_bounds=(-1, 1), target_bounds=(-1, 1), feature_scale=1.0
)


@pytest.mark.usefixtures("one_pair")
def test_an_audit_charges_nobody_uses_no_seed_and_changes_no_method(monkeypatch):
    coefs, methods, fit = [], [], DPRidgeSkGD.fit

    def watched(self, *args, **options):
        methods.extend(name for name in vars(self) if callable(vars(self)[name]))
        fit(self, *args, **options)
        coefs.append(self.coef_[0] if hasattr(self, "coef_") else 0.0)
        return self

    monkeypatch.setattr(DPRidgeSkGD, "fit", watched)
    accountant = PrivacyAccountant(100.0, 0.1, testing=True)
    noise = ReproducibleNoise(3)
    model = DPRidgeSkGD(**MODEL.get_params() | {"accountant": accountant, "random_state": noise})
    for _ in range(2):
        audit(model, **SMALL)
    assert accountant.entries() == [] and methods == []
    assert model.accountant is accountant and model.random_state == noise
    whole = [coef for coef in coefs if coef]  # those of the leading runs and of what is kept
    assert len(set(whole)) > 1  # seeded fits would all be the same


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


def floor(release, relation="replace_one", group=1):
    kind = Kind("gradients", release, relation)
    return least_error(kind, release.count, group)


def test_what_an_error_shows_is_what_has_it_as_its_least():
    for mu in (0.3, 1.0, 4.0):
        assert mu_proved(ndtr(-mu / 2)) == pytest.approx(mu)
        assert floor(GaussianEvent(2.0 / mu, 4)) == pytest.approx(ndtr(-mu / 2))
    assert mu_proved(0.6) == 0.0


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_the_floor_of_samples_is_that_of_the_full_release_and_of_one_sample(relation):
    full = floor(PoissonSampledEvent(1 - 1e-12, 5.0, 20), relation)
    assert full == pytest.approx(floor(GaussianEvent(5.0, 20), relation), rel=1e-3)
    # of one sample: the mixtures differ by their shifted parts only
    one = floor(PoissonSampledEvent(0.3, 0.5, 1), relation)
    assert 1 - 2 * one == pytest.approx(0.3 * (2 * ndtr(1.0) - 1), rel=1e-3)
    # more releases, or a larger group, tell more
    assert floor(PoissonSampledEvent(0.3, 0.5, 2), relation) < one
    assert floor(PoissonSampledEvent(0.3, 0.5, 1), relation, 2) < one


# ---- what is refused ----------------------------------------------------------------------------


@table(
    ("options", "error", "match"),
    [
        ({"n_runs": 99}, ValueError, "n_runs"),
        ({"n_runs": 1e3}, TypeError, "n_runs"),
        ({"n_runs": True}, TypeError, "n_runs"),
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"confidence": float("nan")}, ValueError, "confidence"),
        ({"confidence": "high"}, TypeError, "confidence"),
    ],
)
def test_bad_input_is_refused(options, error, match):
    with pytest.raises(error, match=match):
        audit(MODEL, **SMALL | options)


def test_what_releases_nothing_one_by_one_is_refused():
    for other in (Ridge(), BoundsScaler((-1, 1)), make_pipeline(BoundsScaler((-1, 1)), MODEL)):
        with pytest.raises(TypeError, match="audit the steps of a pipeline one by one"):
            audit(other, **SMALL)
    with pytest.raises(ValueError, match="without noise"):
        audit(DPRidgeSkGD(epsilon=math.inf), **SMALL)


# ---- pictures -----------------------------------------------------------------------------------


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
