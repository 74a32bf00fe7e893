"""Penalties with parameters of their own, as users state them."""

import math
from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral, Real

import numpy as np

from ..utils._compat import Interval
from ..utils._public import check_interval
from ..utils._stated import Stated

_BOUND = [Interval(Real, None, None, closed="both")]


class StatedPenalty(Stated):
    """A penalty that an object states.

    Attributes
    ----------
    word : str
        Of which penalty of `PENALTIES` it is.
    """

    word = None

    def by_column(self, n_features, columns):
        """Return signs or groups of columns, by their places, as a tuple."""
        return None


class Box(StatedPenalty):
    """Bounds of every coefficient, in units of one over feature.

    Parameters
    ----------
    lo, hi : float, lo < hi, default=0.0 and inf
        Either may be infinite; public.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import Box
    >>> DPLinearRegressor(penalty=Box(-1.0, 1.0)).get_params()["penalty__hi"]
    1.0
    """

    word = "box"
    _parameter_constraints = {"lo": _BOUND, "hi": _BOUND}

    def __init__(self, lo: float = 0.0, hi: float = math.inf):
        self.lo = lo
        self.hi = hi

    def check(self):
        """Refuse what is no interval, as of any parameter."""
        super().check()
        check_interval((self.lo, self.hi), "Box")


class Monotonic(StatedPenalty):
    """An elastic net of coefficients with stated signs.

    Its strength is the estimator's `alpha` and its share of l1 `l1_ratio`: ``alpha=0`` states signs
    alone, ``l1_ratio=1`` a lasso and ``l1_ratio=0`` a ridge with signs.

    Parameters
    ----------
    monotonic_cst : sequence of {-1, 0, 1}, or dict by column name, default=()
        As of scikit-learn's HistGradientBoostingRegressor: predictions never fall as a feature with
        1 grows, never rise with -1, and 0 states nothing. A dict may leave columns out;
        an empty one states nothing. Public.

    Raises
    ------
    ValueError
        By the fit, before anything is charged: if other numbers are stated, of another length, or
        of unknown columns, or for more than two classes, of which no coefficient has a sign.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import Monotonic
    >>> model = DPLinearRegressor(penalty=Monotonic([1, 0]), alpha=0.0, epsilon=float("inf"))
    >>> model.fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [2.0, 1.0, 0.0]).coef_[0] >= 0
    np.True_
    """

    word = "elasticnet"

    def __init__(self, monotonic_cst: Sequence[int] | Mapping[str, int] = ()):
        self.monotonic_cst = monotonic_cst

    def by_column(self, n_features, columns):
        signs = self.monotonic_cst
        if isinstance(signs, Mapping) or (isinstance(signs, Sequence) and not signs):
            stated, signs = dict(signs), np.zeros(n_features, dtype=object)
            for name, sign in stated.items():
                signs[_place(name, n_features, columns, "monotonic_cst")] = sign
        signs = np.asarray(signs, dtype=object)
        if signs.shape != (n_features,):
            raise ValueError(
                f"monotonic_cst must state one of -1, 0 and 1 for each of {n_features} features, "
                f"or be a dict by column name; got shape {signs.shape}"
            )
        for sign in signs:
            if isinstance(sign, bool) or not isinstance(sign, Real) or sign not in (-1, 0, 1):
                raise ValueError(f"monotonic_cst must hold -1, 0 and 1 alone, got {sign!r}")
        return tuple(map(int, signs))


class GroupLasso(StatedPenalty):
    """Lengths of groups of coefficients: the columns of a group are kept or left out together.

    It is the estimator's `alpha` times the sum over groups of the square root of the group's size
    times the length of its coefficients. Solvers that move all coefficients at once take it:
    ``SGD`` and ``SVRG``, of which ``solver="auto"`` chooses the first.

    Parameters
    ----------
    groups : sequence of sequences, default=()
        Indices or names of the columns of each group. No column is in two of them, and one in none
        is free. Public.

    Raises
    ------
    ValueError
        By the fit, before anything is charged: if a group is empty, or a column is in two of them
        or unknown.

    References
    ----------
    Yuan & Lin (2006). Model selection and estimation in regression with grouped variables. JRSSB.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import GroupLasso
    >>> DPLinearRegressor(penalty=GroupLasso([[0, 1], [2, 3]]), alpha=0.1).penalty
    GroupLasso(groups=[[0, 1], [2, 3]])
    """

    word = "group_lasso"

    def __init__(self, groups: Sequence[Sequence[int | str]] = ()):
        self.groups = groups

    def by_column(self, n_features, columns):
        kinds = (list, tuple, np.ndarray)
        groups = self.groups if isinstance(self.groups, kinds) else [None]
        if not all(isinstance(group, kinds) and len(group) for group in groups):
            raise ValueError(f"groups must be lists of at least one column, got {self.groups!r}")
        found = tuple(
            tuple(_place(column, n_features, columns, "groups") for column in group)
            for group in groups
        )
        together = sum(found, ())
        if len(set(together)) < len(together):
            raise ValueError(f"groups must hold no column twice, got {self.groups!r}")
        return found


def _place(column, n_features, columns, name):
    """Where a column lies, by its name or index."""
    if isinstance(column, Integral) and not isinstance(column, bool):
        if 0 <= column < n_features:
            return int(column)
    elif isinstance(column, Hashable) and columns is not None and column in columns:
        return columns.index(column)
    known = f"0 to {n_features - 1}" if columns is None else f"of {list(columns)}"
    raise ValueError(f"{name} must be of columns of X, {known}, got {column!r}")


class Ball(Stated):
    """A set of all coefficients around zero, of a stated radius."""

    name = None
    _parameter_constraints = {"radius": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, radius: float = 1.0):
        self.radius = radius


class L2Ball(Ball):
    """Coefficients of euclidean norm at most `radius`.

    Parameters
    ----------
    radius : float > 0, default=1.0
        In units of one over feature; public.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import L2Ball
    >>> DPLinearRegressor(constraint=L2Ball(2.0)).get_params()["constraint__radius"]
    2.0
    """

    name = "l2_ball"

    def project(self, coef, smoothness):
        """The point u of the ball with the least sum of M_j (u_j - coef_j)^2.

        That is u_j = M_j coef_j / (M_j + s), with the s >= 0 that gives u the length `radius`:
        Newton's method on 1 / norm(u) from s = 0 finds it from below (Moré & Sorensen 1983).
        """
        s, u, length = 0.0, coef, _norm(coef)
        for _ in range(50):
            if length <= self.radius * (1 + 1e-15):
                break
            s += (length / self.radius - 1) / np.sum((u / length) ** 2 / (smoothness + s))
            u = coef * (smoothness / (smoothness + s))
            length = _norm(u)
        return u if length <= self.radius else u * (self.radius / length)


class L1Ball(Ball):
    """Coefficients whose absolute values sum to at most `radius`.

    Parameters
    ----------
    radius : float > 0, default=1.0
        In units of one over feature; public.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import L1Ball
    >>> DPLinearRegressor(constraint=L1Ball(2.0), solver="compgd").constraint
    L1Ball(radius=2.0)
    """

    name = "l1_ball"

    def project(self, coef, smoothness):
        """The point u of the ball with the least sum of M_j (u_j - coef_j)^2.

        By soft thresholding at s / M_j (Duchi et al. 2008, weighted). Coordinates leave zero in the
        order of M_j abs(coef_j); s is counted from the largest of these, which keeps the digits of
        the radius.
        """
        if np.abs(coef).sum() <= self.radius:
            return coef
        weights = smoothness / smoothness.max()
        below = weights * np.abs(coef)
        below = below.max() - below
        order = np.argsort(below)
        inverses = 1 / weights[order]
        depths = (self.radius + np.cumsum(below[order] * inverses)) / np.cumsum(inverses)
        zero = np.flatnonzero(depths <= below[order])
        depth = depths[zero[0] - 1 if len(zero) else -1]
        return np.sign(coef) * np.maximum(depth - below, 0.0) / weights


def _norm(u):
    largest = np.max(np.abs(u), initial=0.0)
    return largest * np.linalg.norm(u / largest) if largest > 0 else 0.0
