"""Statistical audits of the generic estimators, one of each solver, and mutants that must fail.

False alarms of one audit are rarer than 1e-6. Samples hide most of a loss from so few runs.
"""

import dataclasses

import numpy as np
import pytest

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.inspection import audit
from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_mu

CONFIDENCE = 1 - 1e-6
FAR = 1e9  # a target whose record reaches every clip
BUDGET = {"epsilon": 4.0, "delta": 1e-3, "clip": 1.0, "averaging": "last", "max_iter": 3}
PLAIN = BUDGET | {"step_size": 1.0, "fit_intercept": False, "penalty": None}
N = 8


def regressor(**options):
    return DPLinearRegressor(**PLAIN | {"momentum": 0} | options)


REGRESSORS = {
    "sgd of all": regressor(solver="sgd", sampling_rate=1.0),
    "sgd": regressor(solver="sgd", sampling_rate=0.5, max_iter=1),
    "sgd add_remove": regressor(
        solver="sgd", sampling_rate=0.5, max_iter=1, neighboring="add_remove", n_public=N
    ),
    "svrg": regressor(solver="svrg", sampling_rate=0.5, max_iter=2),
    "compgd": regressor(solver="compgd", n_directions=1),
    "compgd of samples": regressor(solver="compgd", n_directions=1, sampling_rate=0.5, max_iter=1),
}
GREEDY = {
    "frank-wolfe": regressor(
        solver="frank-wolfe", constraint="l1_ball", radius=1.0, max_iter=1, momentum="auto"
    ),
    "gcd": regressor(solver="gcd", block_size=2, max_iter=1, selection_share=0.3, step_size=1e-3),
}


def far_neighbours(relation):
    """One record pulls with all its clip, or the other way, or is not there; no other pulls."""
    X, weights = np.ones((N, 1)), np.eye(N)[0]
    one = X, np.full(N, FAR), weights
    if relation == "add_remove":
        return one, (X[1:], np.zeros(N - 1), np.full(N - 1, 1e-300))
    return one, (X, np.full(N, -FAR), weights)


def greedy_neighbours():
    """One record decides which of two coordinates, or which sign of them, promises most."""
    X, y = np.ones((N, 2)), np.zeros(N)
    y[0], other = FAR, np.zeros(N)
    other[0] = -FAR
    return (X, y), (X, other)


def every_number(model):
    return np.append(np.ravel(model.coef_), model.intercept_)


def signed(model):
    """A projection on a random direction has a random sign: its path of one dimension has not."""
    return float(np.sum(model.coef_))


def audited(model, n_runs):
    return audit(
        model,
        *far_neighbours(model.neighboring),
        statistic=signed,
        n_runs=n_runs,
        confidence=CONFIDENCE,
    )


@pytest.mark.parametrize("name", REGRESSORS)
def test_an_honest_solver_passes_and_some_of_its_loss_is_seen(name):
    # of a descent with anchors so few runs show .2, give or take as much
    result = audited(REGRESSORS[name], 3000 if name == "svrg" else 1500)
    assert result.passed and result.epsilon_lower > 0.01, str(result)


@pytest.mark.slow
@pytest.mark.parametrize("name", REGRESSORS)
def test_an_honest_solver_passes_in_many_runs(name):
    result = audited(REGRESSORS[name], 5000)
    assert result.passed and result.epsilon_lower > 0.2, str(result)


@pytest.mark.parametrize("name", GREEDY)
def test_an_honest_greedy_solver_passes(name):
    result = audit(
        GREEDY[name],
        *greedy_neighbours(),
        statistic=signed,
        claim=(4.0, 1e-3),
        n_runs=1500,
        confidence=CONFIDENCE,
    )
    assert result.passed and result.epsilon_lower > 0.05, str(result)


def classes():
    """Three classes, and one record that changes its class; it alone has a weight."""
    X, y, weights = np.full((9, 1), 1e6), np.resize([0, 1, 2], 9), np.eye(9)[0]
    other = y.copy()
    other[0] = 1
    return (X, y, weights), (X, other, weights)


@pytest.mark.parametrize("solver", ["sgd", "svrg"])
def test_an_honest_multinomial_classifier_passes(solver):
    model = DPLinearClassifier(
        loss="multinomial", solver=solver, classes=[0, 1, 2], sampling_rate=0.8, momentum=0,
        **PLAIN | {"max_iter": 2, "clip": 0.2},
    )  # fmt: skip
    result = audit(
        model,
        *classes(),
        statistic=lambda m: float(m.coef_[0, 0] - m.coef_[1, 0]),
        n_runs=2500,
        confidence=CONFIDENCE,
    )
    assert result.passed, str(result)
    if solver == "sgd":
        assert result.epsilon_lower > 0.01, str(result)


# ---- mutants -----------------------------------------------------------------------------------


class Louder(DPLinearRegressor):
    """Releases at half the noise that it claims, and of samples at a twelfth."""

    def _plan(self, *public, **options):
        plan = super()._plan(*public, **options)
        sampled = plan.problem.sampling_rate < 1
        releases = tuple(
            dataclasses.replace(r, noise_multiplier=r.noise_multiplier / (12 if sampled else 2))
            for r in plan.event.releases
        )
        plan.event = dataclasses.replace(plan.event, releases=releases)
        return plan


class Denser(DPLinearRegressor):
    """Pays for samples of a tenth of the records, and has nearly all of them in each."""

    def _plan(self, *public, **options):
        plan = super()._plan(*public, **options)
        (release,) = plan.event.releases
        denser = dataclasses.replace(release, sampling_rate=0.999)
        plan.problem = dataclasses.replace(plan.problem, sampling_rate=0.999)
        plan.event = dataclasses.replace(plan.event, releases=(denser,))
        return plan


@pytest.mark.parametrize(
    "name",
    ["sgd of all", *(pytest.param(n, marks=pytest.mark.slow) for n in ("sgd", "svrg", "compgd"))],
)
def test_a_mutant_with_too_little_noise_is_caught(name):
    mutant, sampled = Louder(**REGRESSORS[name].get_params()), name in ("sgd", "svrg")
    result = audit(
        mutant,
        *far_neighbours("replace_one"),
        claim=(4.0, 1e-3) if sampled else (4.0, 1e-3, gdp_mu(4.0, 1e-3)),
        statistic=signed,
        n_runs=4000,
        confidence=CONFIDENCE,
    )
    assert not result.passed, str(result)


@pytest.mark.slow
def test_a_mutant_that_samples_more_records_than_it_says_is_caught():
    options = {"solver": "sgd", "sampling_rate": 0.1, "max_iter": 0.5, "epsilon": 1.0}
    honest, mutant = regressor(**options), Denser(**regressor(**options).get_params())
    found = [
        audit(
            model,
            *far_neighbours("replace_one"),
            claim=(1.0, 1e-3),
            statistic=signed,
            n_runs=4000,
            confidence=CONFIDENCE,
        )
        for model in (honest, mutant)
    ]
    assert found[0].passed and not found[1].passed, [str(result) for result in found]
