"""Losses with a parameter, as users state them."""

from numbers import Real

from ..utils._compat import Interval
from ..utils._stated import Stated


class Huber(Stated):
    """(margin - target)² / 2 up to `threshold`, linear beyond.

    Parameters
    ----------
    threshold : float > 0, default=1.35
        Residual from which the loss is linear, in the units of the target; public.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.losses import Huber
    >>> DPLinearRegressor(Huber(100.0)).get_params()["loss__threshold"]
    100.0
    """

    word = "huber"
    _parameter_constraints = {"threshold": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, threshold: float = 1.35):
        self.threshold = threshold
