"""The base of private regressors: a target with public bounds, predictions, and exposures.

With the mean μ = e ν of an exposure e, half the unit deviance of Tweedie's family is

    d(y, e ν) = e^(2 - power) d(y / e, ν),

so a record with an exposure is one of y / e with e^(2 - power) times the weight: exactly, and with
no mechanism of its own. Weights multiply a record's contribution before it is clipped.
"""

from abc import ABCMeta
from functools import partial
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import d2_tweedie_score, r2_score

from ..losses import loss_of
from ..plan._target_mean import found_mean, start_within
from ..utils._cells import given_back, on_host, refuse_collections
from ..utils._compat import RegressorMixin, check_sample_weight, num_samples
from ..utils._input import check_finite_target, read_input, read_target
from ..utils._public import check_bounds
from ..utils._tiles import elementwise
from ..utils._typing import ArrayLike, Column
from ..utils._warnings import warn
from ._parameters import REGRESSION, of
from ._prediction import exponential, margins_of_model, within
from ._private_linear_model import PrivateLinearModel

# Without noise a log link is followed from so many times less than the least positive target to so
# many times more than the largest one.
_ROOM = 8.0


class PrivateRegressor(RegressorMixin, PrivateLinearModel, metaclass=ABCMeta):
    """A loss of residuals, on a target that is mapped from its public bounds to [-1, 1]."""

    loss = "squared"

    _target_is_numeric = True
    _has_many_targets = True

    _parameter_constraints = PrivateLinearModel._parameter_constraints | of(
        REGRESSION, "target_bounds"
    )

    @property
    def _log_link(self):
        """The power of a loss with a log link, or None."""
        loss, stated = loss_of(self._loss_word, self.loss)
        return stated.power if loss.has_log_link else None

    def _loss(self, n_outputs, target_half_width, share=0.1):
        if self._log_link is not None:
            if np.isinf(self.epsilon):
                return super()._loss(1, (0.0, np.inf))
            bounds = 0.0, float(target_half_width)
            if self.target_bounds is not None:
                bounds = tuple(float(end[0]) for end in self._stated_target_bounds(1))
            return super()._loss(1, bounds)
        if n_outputs == 1:
            return super()._loss(n_outputs, target_half_width, share)
        own = super()._loss
        return tuple(own(1, float(width), share) for width in target_half_width)

    def _stated_outputs(self, n_outputs):
        return n_outputs

    def _scaling_of_target(self, n_outputs):
        if self._log_link is not None:
            self._check_range_of_link(n_outputs)
            return 0.0, 1.0
        if n_outputs == 1:
            return self._scaling_of_one(0, 1)
        scales = [self._scaling_of_one(k, n_outputs) for k in range(n_outputs)]
        return tuple(map(np.array, zip(*scales, strict=True)))

    def _scaling_of_one(self, k, n_outputs):
        if self.target_bounds is None:
            return 0.0, 1.0
        lo, hi = (float(bound[k]) for bound in self._stated_target_bounds(n_outputs))
        if self.fit_intercept:
            center, half_width = lo / 2 + hi / 2, hi / 2 - lo / 2  # hi - lo may overflow
        else:
            center, half_width = 0.0, max(abs(lo), abs(hi))
        if half_width == 0:
            raise ValueError(
                f"target_bounds ({lo:g}, {hi:g}) leave the target no width; state the range that "
                "the target may take"
            )
        return (0.0, 1.0) if np.isinf(self.epsilon) else (float(center), float(half_width))

    def _check_range_of_link(self, n_outputs):
        """Refuse several targets, and bounds that a log link can't reach."""
        if n_outputs > 1:
            raise ValueError(f"loss={self.loss!r} is for one target; fit one model for each")
        if self.target_bounds is None:
            return
        lo, hi = (float(end[0]) for end in self._stated_target_bounds(1))
        if not 0 <= lo < hi:
            raise ValueError(
                f"target_bounds ({lo:g}, {hi:g}) of loss={self.loss!r}, which predicts "
                "exp(margin), must have 0 <= lo < hi"
            )

    def _without_noise(self, plan, records):
        if self._log_link is None:
            return plan
        if not plan.request.in_arrays:
            raise ValueError(
                f"loss={self.loss!r} with epsilon=inf needs records as arrays in memory"
            )
        y = records.arrays()[1].astype(np.float64)
        mean, largest = float(y.mean()) or 1.0, float(y.max()) or 1.0
        least = float(y[y > 0].min(initial=largest)) / _ROOM * (self._log_link > 1)
        loss = type(plan.request.loss)(self._log_link, mean, least, _ROOM * largest)
        return plan.with_loss(loss.bounded())

    def _start(self, plan, n_features):
        if (start := super()._start(plan, n_features)) is None and self._log_link is not None:
            return self._start_at(plan.request)
        return start

    def _start_at(self, request):
        """The model of a mean alone."""
        intercept = np.full(1, np.log(request.loss.mean) if request.fit_intercept else 0.0)
        return np.zeros((1, request.n_features)), intercept

    def _start_at_mean(self, plan, receipt, records, key):
        """The plan, of a log link in units of the released mean, and where it starts."""
        mean, weight, noise = found_mean(plan, receipt, records, key)
        if self._log_link is None:
            return plan, start_within(plan.request, mean, noise)
        plan = plan.with_loss(plan.request.loss.around(mean, weight, plan.knows_weights))
        return plan, self._start_at(plan.request)

    def _finds_target(self):
        return self.target_bounds is None

    def _set_released(self, plan, solution, dtype):
        super()._set_released(plan, solution, dtype)
        self.target_bounds_ = self._bounds_of_target(plan.request)

    def _bounds_of_target(self, request):
        """Bounds of the target, stated or found; None if it is neither."""
        if request.has_log_link:
            return request.loss.low, request.loss.high
        if request.target_search.n_choices:
            center, half_width = request.target_center, request.target_half_width
            bounds = np.atleast_1d(center - half_width), np.atleast_1d(center + half_width)
        elif self.target_bounds is not None:
            bounds = self._stated_target_bounds(request.n_outputs)
        else:
            return None
        return bounds if request.n_outputs > 1 else tuple(float(bound[0]) for bound in bounds)

    def _stated_target_bounds(self, n_outputs):
        return check_bounds(self.target_bounds, n_outputs, name="target_bounds")

    def _encode_labels(self, y, sample_weight):
        if issparse(y):
            raise TypeError("y must be an array, not a sparse matrix; pass y.toarray()")
        if y.dtype.kind not in "biuf":  # a conversion that fails later would be paid for
            # of the kind only: the width of a dtype of words is that of the longest one
            raise TypeError(f"y must hold real numbers, got dtype kind {y.dtype.kind!r}")
        if y.dtype.kind == "f" and y.dtype.itemsize > 8:
            y = y.astype(np.float64)
        check_finite_target(y)  # of objects and long doubles, only now
        if (power := self._log_link) is not None and y.size:
            least = "> 0" if power == 2 else ">= 0"
            if y.min() < 0 or (power == 2 and y.min() == 0):
                raise ValueError(f"loss={self.loss!r} needs targets {least}, and y has others")
        if y.ndim == 1:
            return y, 1
        if y.shape[1] == 1:
            warn(
                "A column-vector y was passed when a 1d array was expected: its one column is the "
                "target",
                DataConversionWarning,
            )
            return y[:, 0], 1
        return y, y.shape[1]

    def _scale_target(self, y, request):
        y = np.ascontiguousarray(y, dtype=np.float64)
        bounds = self._bounds_of_target(request)
        if np.isinf(self.epsilon) or bounds is None:
            return y
        y = np.clip(y, *bounds)  # a copy, and the only one
        y -= request.target_center
        y /= request.target_half_width
        return y

    @property
    def sparse_coef_(self) -> csr_matrix:
        """`coef_` as a CSR matrix of shape (1, n_features) or (n_outputs, n_features)."""
        return csr_matrix(self.coef_)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the target.

        Losses with a log link predict exp(margin), the mean of the target. Features are clipped as
        they were in the fit, to `feature_bounds_`, and predictions to the target's bounds,
        `target_bounds_`, stated or found. Without noise nothing is clipped; what would overflow is
        the largest finite number.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        found = margins_of_model(self, X)  # first: it says when the model is not fitted
        if self._log_link is not None:
            found = exponential(found)
        return given_back(within(found, self._prediction_bounds), X)

    @property
    def _prediction_bounds(self):
        """Bounds that predictions are clipped to: the target's, of fits with noise."""
        return None if np.isinf(self.privacy_spent_.epsilon) else self.target_bounds_

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions on these records, or D² of a loss with a log link; not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        self._warn_of_score()
        found, y, sample_weight = self.predict(on_host(X)), on_host(y), on_host(sample_weight)
        score, name = r2_score, "y or sample_weight"
        if (power := self._log_link) is not None:
            found = np.maximum(found, np.finfo(np.float64).tiny)
            score = partial(d2_tweedie_score, power=power)
        return read_input(score, y, found, sample_weight=sample_weight, name=name)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._log_link is None
        tags.target_tags.positive_only = self._log_link is not None
        tags.regressor_tags.poor_score = True  # on the few records of scikit-learn's checks
        return tags


# ---- Exposures: rates of counts, and totals of positive numbers, per unit of time or size --------

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
        y = read_target(y, num_samples(X))
        exposure = _exposure_of(offset, len(y))
        weight = elementwise(lambda one: one ** (2 - power), exposure)
        given = check_sample_weight(sample_weight, y)
        weight = weight if given is None else _as_positive(weight * given, given)
        return _as_positive(y / exposure, y), weight

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


def _as_positive(found, given):
    """Multiples of finite numbers; those of positive ones stay positive and finite."""
    least, most = np.nextafter(0.0, 1.0), np.finfo(np.float64).max
    return np.where(given > 0, np.clip(found, least, most), found)


def _exposure_of(offset, n_samples):
    """exp(offset), one for each record; refused if it is not as long, or not within ±50."""
    offset = read_input(np.asarray, on_host(offset), dtype=np.float64, name="offset")
    if offset.shape != (n_samples,):
        raise ValueError(f"offset has the shape {offset.shape}, and y {n_samples} records")
    if not (np.abs(offset) <= _FARTHEST).all():
        raise ValueError(
            f"offset must lie within ±{_FARTHEST:g}: it is the logarithm of an exposure > 0, in a "
            "unit in which exposures are about 1"
        )
    return exponential(offset)
