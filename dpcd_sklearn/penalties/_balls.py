"""Balls that coefficients are projected onto, whatever their size: nothing overflows."""

from numbers import Real

import numpy as np

from ..utils._compat import Interval
from ..utils._stated import Stated


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
