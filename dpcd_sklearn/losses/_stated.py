"""Losses with a parameter, as users state them."""

from numbers import Real

from ..utils._compat import Interval, StrOptions
from ..utils._stated import Stated


class Huber(Stated):
    """(margin - target)² / 2 up to `threshold`, linear beyond.

    Parameters
    ----------
    threshold : float > 0 or "auto", default="auto"
        Residual from which the loss is linear, in the units of the target; public. "auto" is a
        fifth of half the width of the target's bounds; without noise it is 1.35.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.losses import Huber
    >>> DPLinearRegressor(Huber(100.0)).get_params()["loss__threshold"]
    100.0
    """

    word = "huber"
    _parameter_constraints = {
        "threshold": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")]
    }

    def __init__(self, threshold: float | str = "auto"):
        self.threshold = threshold


class Tweedie(Stated):
    """Half the unit deviance of Tweedie's family, of predictions exp(margin).

    Parameters
    ----------
    power : float in [1, 2] or 0, default=1.5
        The variance of the target is proportional to its mean to this power, public: 1 is Poisson,
        2 is gamma, between are sums of a Poisson number of gammas; 0 is the squared loss, without
        a log link, as of scikit-learn's TweedieRegressor.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.losses import Tweedie
    >>> DPLinearRegressor(Tweedie(1.9)).loss
    Tweedie(power=1.9)
    """

    word = "tweedie"
    _parameter_constraints = {"power": [Interval(Real, 0, 2, closed="both")]}

    def __init__(self, power: float = 1.5):
        self.power = power

    def check(self):
        super().check()
        if 0 < self.power < 1:
            raise ValueError(f"power of Tweedie must be 0 or lie in [1, 2], got {self.power!r}")


class Quantile(Stated):
    """The pinball loss, whose minimiser is a conditional quantile, smoothed near the target.

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
    width : float > 0 or "auto", default="auto"
        How far from the target the loss is curved, in its units; public. "auto" is a tenth of half
        the width of the target's bounds, less from a signal of 200 on, down to an 80th; without
        noise it is none, where scikit-learn's QuantileRegressor solves the problem.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.losses import Quantile
    >>> DPLinearRegressor(Quantile(0.9)).get_params()["loss__quantile"]
    0.9
    """

    word = "quantile"
    _parameter_constraints = {
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "width": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, quantile: float = 0.5, width: float | str = "auto"):
        self.quantile = quantile
        self.width = width
