"""A statistical audit of greedy fits, and a test that mutants fail it.

Other solvers are audited release by release in test_audit_mutants.py. Many small fits on two
worst-case neighbours; a threshold on one released statistic guesses which data set it was.
Clopper-Pearson bounds on the two error rates give a lower bound on the loss, which
must stay below the claim (``privacy_spent_``, ``privacy_event_``), and for a mutant with half the
noise must exceed it. Each bound fails with a probability of `ALPHA`: a false alarm of one audit is
rarer than 2 ALPHA = 2e-4, and than 1e-7 where the whole loss shows, since both bounds have to be
off at once. Claims lie near μ = 2, where few fits decide most: by the binomial law, where nine
tenths of the loss show, a mutant escapes 250 fits of each neighbour with a probability below 3e-5,
and an honest model shows less than a third with one below 1e-3. The slow one asks 20,000 fits.
"""

import dataclasses
import math

import numpy as np
import pytest
import sklearn
from flat import flat
from scipy import stats

from dpcd_sklearn import DPLogisticGCD
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, SelectionEvent, epsilon_of

ALPHA = 1e-4
N_PILOT, N_RUNS = 30, 250


# ---- bounds ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Rates:
    """Bounds on P(statistic > threshold) under two neighbours, each wrong with probability ALPHA.

    `least` bounds the rate where it is the higher one from below, `most` the other from above.
    """

    least: float
    most: float

    @classmethod
    def of(cls, high, low, threshold):
        n = len(high)
        true, false = np.sum(high > threshold), np.sum(low > threshold)
        return cls(
            float(stats.beta.ppf(ALPHA, true, n - true + 1)) if true else 0.0,
            float(stats.beta.isf(ALPHA, false + 1, n - false)) if false < n else 1.0,
        )

    @property
    def mu(self):
        """No test of a μ-GDP mechanism has Φ⁻¹(true rate) - Φ⁻¹(false rate) > μ."""
        return stats.norm.ppf(self.least) - stats.norm.ppf(self.most)

    @property
    def eta(self):
        """No event of an η-bounded-range mechanism changes its log odds by more than η."""
        return math.log(self.least / (1 - self.least)) - math.log(self.most / (1 - self.most))

    def epsilon(self, delta):
        """No test of an (ε, δ)-DP mechanism has (true rate - δ) / false rate > e^ε."""
        return math.log(max(self.least - delta, 1e-300) / self.most)


def statistics_of(model, statistic, data, size):
    """The statistic of `size` fits."""
    with sklearn.config_context(skip_parameter_validation=True):
        return np.array([statistic(model.fit(*data)) for _ in range(size)])


def audit(model, statistic, one, other, n_runs=N_RUNS):
    """Rates of the test that a pilot chose: halfway between the means."""
    pilot = [np.mean(statistics_of(model, statistic, data, N_PILOT)) for data in (one, other)]
    high, low = (one, other) if pilot[0] > pilot[1] else (other, one)
    samples = [statistics_of(model, statistic, data, n_runs) for data in (high, low)]
    return Rates.of(*samples, threshold=np.mean(pilot))


def louder(release):
    """A release at half the noise."""
    if isinstance(release, GaussianEvent):
        return dataclasses.replace(release, noise_multiplier=release.noise_multiplier / 2)
    return dataclasses.replace(release, eta=2 * release.eta)


def mutate(monkeypatch, model, mutants):
    """Release with half the noise what is among the mutants; the claims stay as they are."""
    honest = type(model)._plan

    def plan(self, *public, **options):
        planned = honest(self, *public, **options)
        (event,) = planned.parts  # scales are stated
        releases = tuple(louder(r) if isinstance(r, mutants) else r for r in event.releases)
        return planned.changed(parts=(FitEvent(releases, event.neighboring),))

    monkeypatch.setattr(type(model), "_plan", plan)


# ---- greedy choices: DP-GCD ----------------------------------------------------------------------


N_OTHERS = 30  # records that all pull alike and make the directions certain


def chosen_first(model):
    """Which of two coordinates the only update chose."""
    first, second = model.coef_.ravel()
    assert (first != 0) + (second != 0) == 1
    return float(first != 0)


def greedy_neighbours(n_features, intercept):
    """One record decides between the first coordinate and the second, or pulls the only one."""
    X = np.ones((N_OTHERS + 1, n_features))
    y = np.ones(N_OTHERS + 1, dtype=int)  # derivative -1/2: everything is pulled upwards
    X[0] = [1, -1][:n_features]
    other = X.copy()
    other[0] = -X[0]
    if intercept:  # a feature of zeros beside a constant: choices between it and the intercept
        other_y = y.copy()
        other_y[0] = 0
        return (np.ones_like(X), y), (np.ones_like(X), other_y)
    return (X, y), (other, y)


def greedy_model(**options):
    common = {
        "C": 1e6,
        "epsilon": 10.0,
        "delta": 0.01,
        "clip": 0.1,
        "max_iter": 1,
        "classes": [0, 1],
        "feature_scale": 1.0,
    }
    common |= {"step_size": 1e-3, "averaging": "last", "fit_intercept": False}
    return flat(DPLogisticGCD, solver="gcd", **common | options)


CHOOSING = greedy_model(selection_share=0.3)


def test_a_greedy_choice_loses_what_it_claims_and_more_at_twice_the_range(monkeypatch):
    rates = audit(CHOOSING, chosen_first, *greedy_neighbours(2, intercept=False))
    claim = CHOOSING.privacy_event_.releases[0].eta
    assert claim / 3 < rates.eta <= claim
    assert rates.epsilon(0.01) <= 10.0
    mutate(monkeypatch, CHOOSING, SelectionEvent)
    rates = audit(CHOOSING, chosen_first, *greedy_neighbours(2, intercept=False))
    assert rates.eta > claim


def weights_and_intercept(model):
    """Every release pushes this sum the same way, so it is as telling as all of them together."""
    return float(np.sum(model.coef_) + np.sum(model.intercept_))


def greedy_values():
    for share, intercept in ((0.2, False), (0.6, True)):
        model = greedy_model(selection_share=share, fit_intercept=intercept, max_iter=4)
        yield pytest.param(model, id=f"share {share}{' with intercept' if intercept else ''}")


def claimed_mu(model):
    """μ of the released values alone, whatever the choices cost."""
    event = model.planned_event(N_OTHERS + 1, 1)
    return math.sqrt(event.releases[1].count) / event.releases[1].noise_multiplier


@pytest.mark.parametrize("model", list(greedy_values()))
def test_greedy_values_lose_what_they_claim_and_more_at_half_the_noise(model, monkeypatch):
    neighbours, claim = greedy_neighbours(1, model.fit_intercept), claimed_mu(model)
    rates = audit(model, weights_and_intercept, *neighbours)
    assert claim / 3 < rates.mu <= claim
    spent = model.privacy_spent_
    assert rates.epsilon(spent.delta) <= spent.epsilon == 10.0
    mutate(monkeypatch, model, GaussianEvent)
    assert audit(model, weights_and_intercept, *neighbours).mu > claim


# The whole greedy fit against its (ε, δ): the choice of a direction and the value of one release,
# of one record alone, which pulls up or down. The mutant's bound is expected near 1.6, and falls
# below 1 with a probability of less than 1e-9.
ALONE = greedy_model(epsilon=1.0, delta=0.05, selection_share=0.5)


def rates_of_one_record_alone(claimed):
    z = claimed.releases[1].noise_multiplier
    # 0.95 standard deviations of the mutant: z / 2 times the sensitivity 2 C, times γ / M
    threshold = 0.95 * z / 2 * 2 * 0.1 * 1e-3 / 0.25
    samples = [
        statistics_of(ALONE, weights_and_intercept, (np.ones((1, 1)), np.array([y])), 20_000)
        for y in (1, 0)
    ]
    return Rates.of(*samples, threshold)


@pytest.mark.slow
def test_a_greedy_fit_loses_its_epsilon_and_delta_and_more_at_half_of_all_noise(monkeypatch):
    claimed = ALONE.planned_event(1, 1)
    assert 0.2 < rates_of_one_record_alone(claimed).epsilon(0.05) <= 1.0
    mutate(monkeypatch, ALONE, (GaussianEvent, SelectionEvent))
    assert epsilon_of(ALONE.planned_event(1, 1), 0.05) > 2
    assert rates_of_one_record_alone(claimed).epsilon(0.05) > 1.0
