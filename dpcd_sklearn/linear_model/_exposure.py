"""Exposures: rates of counts, and totals of positive numbers, per unit of time or size.

With the mean μ = e ν of an exposure e, half the unit deviance of Tweedie's family is

    d(y, e ν) = e^(2 - power) d(y / e, ν),

so a record with an exposure is one of y / e with e^(2 - power) times the weight: exactly, and with
no mechanism of its own. Weights multiply a record's contribution before it is clipped.
"""

from typing import Self

import numpy as np
from sklearn.utils import check_array, column_or_1d

from ..utils._input import read_input
from ..utils._other_arrays import given_back, on_host, refuse_collections
from ..utils._typing import ArrayLike, Column
from ._prediction import exponential

_FARTHEST = 50.0


class WithExposure:
    """A regressor that may have a log link, whose `fit` and `predict` take an offset."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Column = None,
        groups: Column = None,
        offset: Column = None,
    ) -> Self:
        """Fit the model, charging the accountant before a record is used.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `DPRidgeSkGD.fit`; with a log link y has one target, of shape (n_samples,).
        offset : array-like of shape (n_samples,), default=None
            What is added to the margins of a log link, within ±50: the logarithm of an exposure
            (years, kilometres, persons) of each record, as private as its target. The model is
            that of y / exp(offset), with the weights times exp(offset)^(2 - power), so
            `target_bounds` are those of this rate, which is clipped to them, and `predict` without
            an offset gives it. Choose a unit in which exposures are about 1.

        Returns
        -------
        self : object

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused or can't be written; no record was used.
        TypeError, ValueError
            If a parameter, X, y, a weight or an offset is invalid; nothing was charged.
        """
        if offset is not None:
            y, sample_weight = self._per_unit(X, y, sample_weight, offset)
        return super().fit(X, y, sample_weight, groups)

    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def _per_unit(self, X, y, sample_weight, offset):
        """Targets per unit of exposure, and their weights."""
        self._validate_params()
        if (power := self._log_link) is None:
            raise ValueError(
                f"offset is for a log link, and loss={self.loss!r} has none: leave it None, or "
                "subtract it from y"
            )
        refuse_collections(self, X=X, y=y, offset=offset)
        y = read_input(column_or_1d, on_host(y), dtype=np.float64, name="y")
        exposure = _exposure_of(offset, len(y))
        weight = exposure ** (2 - power)
        if sample_weight is not None:
            given = read_input(column_or_1d, on_host(sample_weight), name="sample_weight")
            if given.shape != weight.shape or given.dtype.kind not in "biuf":
                return y, given  # which is refused by its own name
            weight = weight * given
        return y / exposure, weight

    def predict(self, X: ArrayLike, offset: Column = None) -> np.ndarray:
        """Predict the target.

        Losses with a log link predict exp(margin), the mean of the target per unit of exposure.
        Features are clipped as they were in the fit, to `feature_bounds_`, and predictions to the
        target's bounds, `target_bounds_`, stated or found. Without noise nothing is clipped; what
        would overflow is the largest finite number.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        offset : array-like of shape (n_samples,), default=None
            Logarithms of exposures, by which predictions are multiplied, as of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        found = super().predict(X)
        if offset is None:
            return found
        if self._log_link is None:
            raise ValueError(f"offset is for a log link, and loss={self.loss!r} has none")
        return given_back(on_host(found) * _exposure_of(offset, len(found)), X)


def _exposure_of(offset, n_samples):
    """exp(offset), one for each record.

    Raises
    ------
    TypeError, ValueError
        If it is not of this length, not finite or too large; no cell is quoted.
    """
    stated = {"ensure_2d": False, "dtype": np.float64, "ensure_all_finite": False}
    offset = read_input(check_array, on_host(offset), name="offset", **stated)
    if offset.shape != (n_samples,):
        raise ValueError(f"offset has the shape {offset.shape}, and y {n_samples} records")
    if not (np.abs(offset) <= _FARTHEST).all():
        raise ValueError(
            f"offset must lie within ±{_FARTHEST:g}: it is the logarithm of an exposure > 0, in a "
            "unit in which exposures are about 1"
        )
    return exponential(offset)
