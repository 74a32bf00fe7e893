"""Presets for counts, positive numbers and quantiles, with scikit-learn's names and objectives."""

from numbers import Real

from sklearn.linear_model import GammaRegressor, PoissonRegressor, QuantileRegressor

from ..losses import Quantile
from ..utils._compat import Interval
from ._cv import parameters_of
from ._exposure import WithExposure
from ._regression import PrivateRegressor
from ._ridge import DPRidgeSkGD

_LEFT_OUT = {"alpha", "sampling", "block_size", "inference", "positive"}


class _OneStrength(PrivateRegressor):
    """A preset whose one strength stands beside a mean loss."""

    penalty = "l2"
    _parameter_constraints = PrivateRegressor._parameter_constraints | {
        "alpha": [Interval(Real, 0, None, closed="left")]
    }


class _OfMeans(WithExposure, _OneStrength):
    """A preset with a log link, which has scikit-learn's class as its twin."""

    _twin = None

    def _plain(self):
        plain = self._twin(alpha=self.alpha, fit_intercept=self.fit_intercept)
        return plain.fit([[0.0]], [1.0])  # it keeps its loss, and no record


class DPPoissonRegressor(_OfMeans):
    r"""Poisson regression under differential privacy: counts and rates, with a log link.

    It minimises, as scikit-learn's PoissonRegressor does,

    .. math::

        \frac{1}{n} \sum_i \left(e^{x_i^T w + b} - y_i (x_i^T w + b)\right)
        + \frac{\alpha}{2} \|w\|_2^2

    for y >= 0: :class:`DPLinearRegressor` with ``loss="poisson"`` and ``penalty="l2"``.

    $privacy_of_presets

    Parameters
    ----------
    alpha : float >= 0, default=1.0
        Strength of the l2 penalty beside the mean loss: scikit-learn's.
    $parameters_of_means

    Attributes
    ----------
    $attributes_of_means

    Raises
    ------
    $errors_of_fits

    Notes
    -----
    The mean of the target is released first: the intercept starts there, and derivatives are
    clipped in units of it. Proof: ``privacy/proofs/log_link.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> y = rng.poisson(np.exp(X[:, 0] + 0.5))
    >>> model = DPPoissonRegressor(alpha=0, feature_bounds=(-1, 1), target_bounds=(0, 20))
    >>> bool(abs(model.fit(X, y).coef_[0] - 1) < 0.3)
    True
    """

    loss, _twin = "poisson", PoissonRegressor
    __init__ = parameters_of(DPRidgeSkGD, _LEFT_OUT, alpha=1.0)


class DPGammaRegressor(_OfMeans):
    r"""Gamma regression under differential privacy: positive numbers, with a log link.

    It minimises, as scikit-learn's GammaRegressor does,

    .. math::

        \frac{1}{n} \sum_i \left(y_i e^{-x_i^T w - b} + x_i^T w + b\right)
        + \frac{\alpha}{2} \|w\|_2^2

    for y > 0: :class:`DPLinearRegressor` with ``loss="gamma"`` and ``penalty="l2"``.

    $privacy_of_presets

    Parameters
    ----------
    alpha : float >= 0, default=1.0
        Strength of the l2 penalty beside the mean loss: scikit-learn's.
    $parameters_of_means

    Attributes
    ----------
    $attributes_of_means

    Raises
    ------
    $errors_of_fits

    Notes
    -----
    Predictions and targets are raised to a thousandth of the upper bound of the target, or to its
    stated lower bound. The mean of the target is released first: the intercept starts there. Proof:
    ``privacy/proofs/log_link.md``.

    Examples
    --------
    >>> from dpcd_sklearn import DPGammaRegressor
    >>> DPGammaRegressor(0.1, target_bounds=(1, 500)).alpha
    0.1
    """

    loss, _twin = "gamma", GammaRegressor
    __init__ = parameters_of(DPRidgeSkGD, _LEFT_OUT, alpha=1.0)


class DPQuantileRegressor(_OneStrength):
    r"""Quantile regression under differential privacy: the median, or another quantile.

    It minimises, as scikit-learn's QuantileRegressor does,

    .. math::

        \frac{1}{n} \sum_i \ell_q(y_i - x_i^T w - b) + \alpha \|w\|_1

    with ℓ_q(r) = q r for r >= 0 and (q - 1) r below, q = `quantile`, smoothed within `width`:
    :class:`DPLinearRegressor` with ``loss=Quantile(quantile, width)`` and ``penalty="l1"``.

    $privacy_of_presets

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
        Which quantile is predicted.
    alpha : float >= 0, default=1.0
        Strength of the l1 penalty beside the mean loss: scikit-learn's.
    width : float > 0 or "auto", default="auto"
        How far from the target the loss is curved, in its units; public. "auto" is a tenth of half
        the width of the target's bounds. Without noise it is none.
    $parameters_of_means

    Attributes
    ----------
    $attributes_of_means

    Raises
    ------
    $errors_of_fits

    Notes
    -----
    A smoothed loss is that of targets which are spread by up to `width`, so where the density of
    the target changes within that its quantile moves. A narrow one takes more steps and noise.

    Examples
    --------
    >>> from dpcd_sklearn import DPQuantileRegressor
    >>> DPQuantileRegressor(quantile=0.9, alpha=0.0, target_bounds=(0, 10)).quantile
    0.9
    """

    penalty = "l1"
    _parameter_constraints = _OneStrength._parameter_constraints | Quantile._parameter_constraints
    __init__ = parameters_of(DPRidgeSkGD, _LEFT_OUT, quantile=0.5, alpha=1.0, width="auto")

    @property
    def loss(self):
        return Quantile(self.quantile, self.width)

    def _plain(self):
        alpha, intercept = self.alpha, self.fit_intercept
        return QuantileRegressor(quantile=self.quantile, alpha=alpha, fit_intercept=intercept)
