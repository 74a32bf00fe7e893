"""Penalties with parameters of their own, as users state them."""

import math
from numbers import Real

from ..utils._compat import Interval
from ..utils._public import check_interval
from ..utils._stated import Stated

_BOUND = [Interval(Real, None, None, closed="both")]


class Box(Stated):
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
