"""Nothing is read of a record before its charge, and a mutant that does is caught."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from dpcd_sklearn import (
    DPLassoCD,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from dpcd_sklearn.testing import ReproducibleNoise


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
