"""From public facts about the features to the geometry of a problem: M_j, bounds and spread."""

from dataclasses import dataclass

import numpy as np

from ..utils._public import check_bounds, check_real, check_scales

# A feature without width would have M_j = 0; the floor keeps its clip and step finite. Raw columns
# differ by many orders of magnitude, and the narrow ones count as much: the floor lies far below,
# but not so far where no noise hides rounding.
_FLOOR, _LEAST, _LEAST_OF_MOMENTS = 1e-6, 1e-59, 1e-18


@dataclass(frozen=True, eq=False)
class Geometry:
    """Coordinate-wise smoothness and what bounds it.

    Attributes
    ----------
    smoothness : ndarray of shape (n_coordinates,)
        M_j; the intercept, if any, comes last.
    center : ndarray of shape (n_features,)
        What is subtracted from each feature while it is read (an exact change of the intercept).
    lo, hi : ndarray of shape (n_features,) or None
        Records are clipped to these while they are read.
    largest_square : float
        Bound on the squared norm of a record in the geometry of (M / curvature)^(-1/2).
    """

    smoothness: np.ndarray
    center: np.ndarray
    lo: np.ndarray | None
    hi: np.ndarray | None
    largest_square: float

    def __post_init__(self):
        # a sampling is given `spread`, and through it all of this, while records are read
        for array in (self.smoothness, self.center, self.lo, self.hi):
            if array is not None:
                array.flags.writeable = False

    def spread(self, block_size):
        """Bound on λ_max(M_S^{-1/2} H_S M_S^{-1/2}) for blocks S of this size.

        It is at most the trace, |S|, because M_j bounds the diagonal of H, and at most the largest
        squared norm of a record.
        """
        return max(1.0, min(float(block_size), self.largest_square))

    @property
    def bounds(self):
        """The triple that the oracle reads records with, or None."""
        if self.lo is None:
            return None
        return self.lo, self.hi, np.ascontiguousarray(self.center)

    @property
    def is_fixed(self):
        """Which features have a single value, at which they are centred."""
        if self.lo is None:
            return np.zeros(len(self.center), dtype=bool)
        return (self.lo == self.hi) & (self.center == self.lo)

    @property
    def clipped_to(self):
        """The pair (lo, hi) if a record could lie outside, or None."""
        if self.lo is None or np.isinf(self.lo).all():
            return None
        return self.lo, self.hi


def _with_intercept(smoothness, n_features, of_intercept, fit_intercept, least=_LEAST):
    """M_j of the features (an array or one number for all), with a floor, and of an intercept."""
    out = np.empty(n_features + fit_intercept)
    features = out[:n_features]
    features[:] = smoothness
    np.maximum(features, min(_FLOOR * features.max(), least), out=features)
    out[n_features:] = of_intercept
    return out


def stated_scales(request):
    """Scales that the user states of features; without a statement they have unit scale.

    With an intercept, features that have bounds, but no scale, are centred on the middle of them.
    Sparse records are never centred, and their bounds contain zero.

    Returns
    -------
    center : ndarray of shape (n_features,)
    lo, hi : ndarrays of shape (n_features,), or None
    scales : ndarray of shape (n_features,), or float
        Half-widths around the centre, or what else the square root of M_j is in proportion to.

    Raises
    ------
    TypeError, ValueError
        If a statement is malformed or contradicts another one.
    """
    n_features = request.n_features
    center = np.broadcast_to(0.0, n_features)  # one number: a vector of wide records counts
    lo = hi = None
    scales = 1.0
    if request.row_norm_bound is not None:
        scales = check_real(request.row_norm_bound, "row_norm_bound", low=0.0, high=1e30)
    if request.feature_bounds is not None:
        lo, hi = check_bounds(request.feature_bounds, n_features, columns=request.columns)
        if request.sparse and ((lo > 0).any() or (hi < 0).any()):
            raise ValueError(
                "feature_bounds of sparse X must contain zero, the value of all that is not "
                "stored; widen them or pass a dense X"
            )
        # a stated scale is of raw features, and sparse ones are never centred; nor are rows that
        # a stated norm keeps shorter than their distances from the middle may be
        half_widths = (hi - lo) / 2
        is_short = _has_use_for_norm(request) and scales < np.linalg.norm(half_widths)
        is_raw = request.feature_scale is not None or request.sparse
        if request.fit_intercept and not (is_raw or is_short):
            center = (lo + hi) / 2
            scales = half_widths
        else:
            scales = np.maximum(np.abs(lo), np.abs(hi))
        if not scales.any():
            raise ValueError(
                "feature_bounds leave no feature any width (lo == hi everywhere, or all zero "
                "without an intercept); widen the bounds of at least one feature"
            )
        # a feature without width has the narrowest other scale, in which a penalty stays moderate
        scales = np.where(scales > 0, scales, scales[scales > 0].min())
    if request.feature_scale is not None:
        scales = check_scales(request.feature_scale, n_features)
    return center, lo, hi, scales


def _has_use_for_norm(request):
    """Whether steps are of whole rows, which nothing but a stated norm tells the length of."""
    is_stated = request.row_norm_bound is not None and request.scales.features is None
    return is_stated and not request.solver.steps_by_coordinate


def public_geometry(request):
    """Geometry from what the user states, and from mean squares if they were released.

    Raises
    ------
    TypeError, ValueError
        If a statement is malformed or contradicts another one.
    """
    n_features, row_norm_bound = request.n_features, request.row_norm_bound
    center, lo, hi, scales = stated_scales(request)
    largest_square = np.inf
    if request.means is not None:
        center = center + request.means * scales
        if lo is None:
            hi = np.full(n_features, np.inf)
            lo = -hi
    if request.mean_squares is not None:
        scales = scales * np.sqrt(request.mean_squares)
    curvature = request.loss.curvature
    smoothness = curvature * (scales * scales)
    smoothness = _with_intercept(smoothness, n_features, curvature, request.fit_intercept)
    # for this range the kernels' guards against overflow are proved
    if not ((smoothness >= 1e-60) & (smoothness <= 1e60)).all():
        names = ("feature_scale", "feature_bounds")
        name = next((n for n in names if getattr(request, n) is not None), "row_norm_bound")
        raise ValueError(
            f"{name} must give every feature a scale from about 1e-29 to 1e29; rescale the features"
        )
    if row_norm_bound is not None and not center.any():
        narrowest = smoothness[:n_features].min() / curvature
        largest_square = row_norm_bound**2 / narrowest + request.fit_intercept
    return Geometry(smoothness, center, lo, hi, largest_square)


def moment_geometry(moments, request):
    """Geometry from the moments of the records themselves: for epsilon = inf only."""
    n_features, curvature = len(moments.center), request.loss.curvature
    squares, weight = moments.squares.copy(), moments.weight
    constant = np.sqrt(squares) <= 1e-12 * np.sqrt(weight) * np.abs(moments.center)
    squares[constant] = 0.0  # up to rounding; squares that overflow are none
    smoothness = curvature * squares / moments.n_samples
    if not smoothness.any():
        smoothness = np.ones(n_features)  # constant features: their coefficients stay near zero
    of_intercept = curvature * (weight / moments.n_samples)
    sizes = n_features, of_intercept, request.fit_intercept
    smoothness = _with_intercept(smoothness, *sizes, _LEAST_OF_MOMENTS)
    infinite = np.full(n_features, np.inf)
    return Geometry(smoothness, moments.center, -infinite, infinite, np.inf)
