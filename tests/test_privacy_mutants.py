"""Mechanisms with a known flaw, each caught by a check that the real one passes.

Half the noise is in test_audit_mutants.py and test_audit_releases.py; rules of admission that
overspend are in test_accountant_filter.py.
"""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from dpcd_sklearn import (
    DPLassoCD,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.testing import ReproducibleNoise

CONFIDENCE = 1 - 1e-7


def epsilon_shown(one, other, delta=0.0):
    """Lower bound on ε from two boolean samples, wrong with a probability of 1e-7."""

    def bound(says, upper):
        n, hits = len(says), int(np.sum(says))
        if hits == (n if upper else 0):
            return float(upper)
        rule = stats.beta.isf if upper else stats.beta.ppf
        return float(rule((1 - CONFIDENCE) / 4, hits + upper, n - hits + 1 - upper))

    odds = (
        (bound(one, False) - delta) / bound(other, True),
        (1 - bound(other, True) - delta) / max(1 - bound(one, False), 1e-300),
    )
    return math.log(max(*odds, 1.0))


# ---- reading before the charge ------------------------------------------------------------------


class Swapping(PrivacyAccountant):
    """Puts other records in place of the ones that were given, at the moment of the charge."""

    def charge(self, event, **facts):
        receipt = super().charge(event, **facts)
        self.X[...] = self.replacement
        return receipt


class Eager(DPRidgeSkGD):
    """A mutant: looks at the scale of the records before it pays."""

    def fit(self, X, y):
        scale = np.abs(X).max()
        super().fit(X, y)
        self.coef_ = self.coef_ * scale
        return self


def fits_what_it_paid_for(model, order):
    """Whether a fit depends only on what the records are once the charge is durable."""
    rng = np.random.default_rng(0)
    X, replacement = (np.asarray(rng.normal(size=(60, 3)), order=order) for _ in range(2))
    y = np.arange(60) % 2
    accountant = Swapping(1000.0, 0.1, testing=True)
    accountant.X, accountant.replacement = X, replacement.copy()
    seeded = clone(model).set_params(
        random_state=ReproducibleNoise(0),  # the noise is the same in both fits
        feature_scale=1.0,  # of so few records none is found, and features are let go
    )
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        expected = clone(seeded).fit(replacement, y)
        swapped = seeded.set_params(accountant=accountant).fit(X, y)
    assert expected.coef_.any()
    return (swapped.coef_ == expected.coef_).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "model",
    [DPLassoCD(1e-3), DPLogisticGCD(), DPRidgeSkGD()],
    ids=["lasso", "logistic", "ridge"],
)
def test_no_value_of_a_record_is_used_before_its_charge(model, order):
    assert fits_what_it_paid_for(model, order)


def test_a_mutant_that_looks_before_it_pays_is_caught():
    assert not fits_what_it_paid_for(Eager(), "C")


# ---- the paper's selection ----------------------------------------------------------------------


def paper_choices(gradient, smoothness, epsilon, size, rng):
    """Alg. 1 of Mangold et al. (2023): argmax of |∇_j + Lap(Δ_j / ε')| / sqrt(M_j), Δ_j = 1."""
    noisy = gradient + rng.laplace(scale=1 / epsilon, size=(size, len(gradient)))
    return np.argmax(np.abs(noisy) / np.sqrt(smoothness), axis=1)


def gumbel_choices(gradient, smoothness, epsilon, size):
    """Ours: scores of one sensitivity s, Gumbel noise of scale 2 s / η, with η = ε'."""
    # C_j ∝ sqrt(M_j): the same record moves every score by the same s
    sensitivity = 1 / math.sqrt(min(smoothness))
    exponentials = NoiseSource().log_exponentials(size * len(gradient))
    noise = -exponentials.reshape(size, len(gradient))
    scores = np.abs(gradient) / np.sqrt(smoothness) * epsilon / (2 * sensitivity)
    return np.argmax(scores + noise, axis=1)


def test_the_papers_selection_is_caught_and_ours_is_not():
    epsilon, size, smoothness = 1.0, 400_000, np.array([1.0, 1.0])
    # neighbours move both derivatives by their sensitivity, one up and the other down
    one, other = np.array([50.0, 54.0]), np.array([51.0, 53.0])
    rng = np.random.default_rng(0)
    theirs = [paper_choices(g, smoothness, epsilon, size, rng) == 0 for g in (other, one)]
    assert epsilon_shown(*theirs) > 1.3 * epsilon  # 2 ε' in the limit
    ours = [gumbel_choices(g, smoothness, epsilon, size) == 0 for g in (other, one)]
    assert 0.5 * epsilon < epsilon_shown(*ours) <= epsilon


# ---- a grid that is finer than the sampler -------------------------------------------------------


def coarse_release(value, size, rng):
    """A mutant: noise of 12 bits after the point on values of 20 (a scaled 53-bit sampler)."""
    noise = np.rint(rng.standard_normal(size) * 2.0**12) / 2.0**12
    return value + noise


def exact_release(units, size, bits=20):
    """Ours: an integer in units of 2^-bits standard deviations, plus floor(2^bits N)."""
    return (units + NoiseSource().gaussians(size, bits)) / 2.0**bits


def test_a_grid_too_fine_for_its_sampler_is_caught_and_ours_is_not():
    size, rng = 20_000, np.random.default_rng(1)
    one, other = 5 * 2.0**-20, 6 * 2.0**-20  # a difference of one millionth of the noise

    def low_bits(released):
        return np.rint(released * 2.0**20).astype(np.int64) % 2**8 == 5

    mutant = [low_bits(coarse_release(value, size, rng)) for value in (one, other)]
    assert epsilon_shown(*mutant, delta=1e-6) > 5
    ours = [low_bits(exact_release(units, 200_000)) for units in (5, 6)]
    assert epsilon_shown(*ours, delta=1e-6) == 0.0
    assert np.mean(ours[0]) == pytest.approx(2.0**-8, rel=0.2)
