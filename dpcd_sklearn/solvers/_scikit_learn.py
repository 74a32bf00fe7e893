"""Fits without noise by scikit-learn's own solvers, where these minimise the same objective.

Nothing is protected and nothing is released bit by bit, so a library that many people keep serves
better than loops that were made for noise. What it has no solver for stays with the loops: the
Huber loss without a scale of its own, bounds and balls, a penalised intercept, and whatever asks
for passes, iterates or a start. So do problems that its solvers leave unsolved where columns differ
in scale: a logistic loss with an l1 penalty (``saga``), and of sparse X a regression without one
(LSQR and conjugate gradients, which end far from the minimum and do not say so).
"""

import warnings
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn import config_context
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)

from ..loops._problem import Solution
from ..plan._solver_plan import SolverPlan
from ..privacy.accounting._calibration import gaussian_fit_event
from ..privacy.mechanisms._units import GeometryUnits

_WITH_STRENGTH = {"l1", "l2", "elasticnet"}
# Coefficients of a matrix that is solved for, and features of one that is summed once.
_FEW, _FEW_PRODUCTS = 2000, 1000
_STRONGEST = 1e20  # penalty, beside losses whose curvature is at most that
# The least curvature of a coordinate over the largest: for LBFGS, and for anything else (Newton's
# equations, singular values that are told from none, duality gaps that are told from rounding).
_EVEN, _SOLVABLE = 1e-4, 1e-12
_LEAST_SLOPE, _LEAST_GAP = 1e-14, 1e-14  # what rounding allows, beside the largest there can be


def with_all_targets(request):
    """The request of one fit for all targets, which nobody scales where there is no noise."""
    if not isinstance(request.loss, tuple):
        return request
    units = {"target_center": 0.0, "target_half_width": 1.0}
    return replace(request, loss=request.loss[0], n_fits=request.n_outputs, **units)


class ScikitLearnPlan(SolverPlan):
    """The plan of a fit without noise that scikit-learn's own solver carries out.

    Attributes
    ----------
    otherwise : SolverPlan
        The plan by a loop, for columns of which scikit-learn's solvers lose the narrow ones.
    """

    word = "scikit-learn"
    hides_updates = True

    @classmethod
    def has(cls, request):
        """Whether scikit-learn has the objective, and nobody asked for how it is reached."""
        asked = request.inference or request.coef_path or request.warm_start
        asked = asked or request.solver.word != "auto" or request.max_iter != "auto"
        if request.private or asked or not request.in_arrays:
            return False
        if request.signs is not None:
            return False
        if request.constraint is not None or request.n_penalized > request.n_features:
            return False
        if request.penalty not in {None, *_WITH_STRENGTH} or request.strength > _STRONGEST:
            return False
        twin = with_all_targets(request).loss.twin
        if twin == "pinball":  # of a linear program, in dense matrices
            return request.l1_share == 1 or (request.has_smooth_penalty and request.strength == 0)
        if not request.has_smooth_penalty:
            return twin == "squared" and min(request.l1_share, request.strength) > 0
        return twin in ("logistic", "tweedie") or (twin == "squared" and not request.sparse)

    @cached_property
    def recipe(self):
        return self.noiseless_recipe

    def with_loss(self, loss):
        own = self.otherwise.with_loss(loss)
        return type(self)(replace(self.request, loss=loss), otherwise=own)

    def over_records(self, place):
        plan = super().over_records(place)
        return plan if plan._stages else self.otherwise.over_records(place)

    @cached_property
    def alone(self):
        return gaussian_fit_event(self.request.budget, self.request.n_fits)

    def units(self, n_samples):
        return GeometryUnits(
            self.part,
            n_samples=n_samples,
            smoothness=self.geometry.smoothness,
            n_normalizer=self.request.budget.n,
        )

    def run(self, receipt, records, key, generator):
        request = self.request
        self.units(len(records.target)).redeem(receipt)
        X, y, weights = _with_all_classes(records, request.n_classes)
        X = _with_short_indices(X.astype(np.float64, copy=False))  # sums are in double precision
        weight = len(y) if weights is None else float(weights.sum())
        model = self._estimator(weight, X is not records.X)
        for stage in self._stages:
            if converged := _has_converged(model.set_params(**stage), X, y, weights):
                break
        coef = self._from_original(np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_))
        coef = coef.reshape(request.n_outputs, -1)
        steps = getattr(model, "n_iter_", None)  # direct solvers have none, and make one
        steps = 1 if steps is None else max(1, int(np.max(steps)))
        return Solution(coef if request.n_outputs > 1 else coef[0], steps, converged=converged)

    @property
    def _strength(self):
        return self.request.strength if self.request.penalty in _WITH_STRENGTH else 0.0

    def _estimator(self, weight, may_overwrite):
        """scikit-learn's estimator of the same objective, for records of this weight in all.

        Beside a sum of losses over n stands the penalty's strength here. Ridge and
        LogisticRegression have the sum itself, and ElasticNet divides it by the weight.
        """
        request, strength = self.request, self._strength
        n, tol, intercept = request.budget.n, float(request.tol), request.fit_intercept
        regression = {"fit_intercept": intercept, "copy_X": not may_overwrite}
        # `tol` is of columns in units of sqrt(M_j), theirs of derivatives of a weighted mean
        roots = np.sqrt(self.geometry.smoothness)
        slope = max(tol * (self._curvature / roots).min(), _LEAST_SLOPE * roots.max())
        slope *= np.sqrt(n / weight)
        if request.n_classes:
            C = 1 / (strength * n) if strength else np.inf
            return LogisticRegression(C=C, tol=slope, fit_intercept=intercept, warm_start=True)
        loss = with_all_targets(request).loss
        common = {"alpha": strength * n / weight, "fit_intercept": intercept}
        if loss.twin == "tweedie":
            common |= {"link": "log", "solver": "newton-cholesky", "max_iter": 1000}
            slope *= loss.mean ** (2 - loss.power)
            return TweedieRegressor(power=loss.power, tol=slope, **common)
        if loss.twin == "pinball":
            return QuantileRegressor(quantile=loss.quantile, **common)
        if strength == 0:
            return LinearRegression(**regression)
        if request.l1_share == 0:
            return Ridge(strength * n, tol=tol, **regression)
        return ElasticNet(
            strength * n / weight,
            l1_ratio=request.l1_share,
            positive=request.positive,
            precompute=request.n_features <= min(_FEW_PRODUCTS, n),
            tol=max(tol**2, _LEAST_GAP),  # a gap follows the square of what coefficients lack
            max_iter=self.noiseless_max_iter,
            **regression,
        )

    @property
    def _stages(self):
        """Parameters of the estimator, one after the other until a fit has converged.

        None solve what is too uneven. LBFGS is fastest where coordinates are about equally curved.
        Otherwise it wanders, and Newton steps by a matrix care for no scale.
        """
        curvature, request = self._curvature, self.request
        evenness = curvature.min() / curvature.max()
        if evenness <= _SOLVABLE:
            return []
        if not request.n_classes:
            return [{}]
        if request.n_outputs * request.n_coordinates > _FEW:
            return [{"solver": "lbfgs", "max_iter": self.noiseless_max_iter}]
        newton = {"solver": "newton-cholesky", "max_iter": 1000}
        return [{"solver": "lbfgs", "max_iter": 100}, newton] if evenness > _EVEN else [newton]

    @property
    def _curvature(self):
        """Curvatures of the coordinates, that of the penalty included."""
        curvature = self.geometry.smoothness.copy()
        curvature[: self.request.n_features] += self._strength
        return curvature


def _has_converged(model, X, y, weights):
    """Fit a model of scikit-learn's; whether it got where it should."""
    with warnings.catch_warnings(record=True) as heard, config_context(assume_finite=True):
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weights)
    # the equations of a ridge may be ill-conditioned by scales alone, those of Newton steps may not
    faults = ConvergenceWarning if is_regressor(model) else (ConvergenceWarning, LinAlgWarning)
    return not any(issubclass(one.category, faults) for one in heard)


def _with_all_classes(records, n_classes):
    """X, y and weights, with a record of no weight for each class that no other one has."""
    X, y, weights = records
    absent = np.setdiff1d(np.arange(n_classes), y)
    if not len(absent):
        return X, y, weights
    weights = np.ones(len(y)) if weights is None else weights
    zeros = np.zeros((len(absent), X.shape[1]))
    X = sparse.vstack([X, zeros], format="csr") if sparse.issparse(X) else np.vstack([X, zeros])
    return X, np.append(y, absent), np.append(weights, np.zeros(len(absent)))


def _with_short_indices(X):
    """X, and if it is sparse with indices of 32 bits, which coordinate descent there asks for."""
    if not sparse.issparse(X) or X.indices.dtype == np.int32:
        return X
    indices, starts = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, starts), shape=X.shape)
