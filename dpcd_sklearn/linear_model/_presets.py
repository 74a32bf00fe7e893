"""scikit-learn's names and objectives for estimators that are presets of others.

Those with CV in their names have several strengths: the choice is part of one fit, and costs
nothing.
"""

import inspect
from numbers import Real

from sklearn.linear_model import ElasticNet, GammaRegressor, PoissonRegressor, QuantileRegressor

from ..losses import Quantile
from ..utils._compat import Interval, StrOptions
from ._classifiers import DPLogisticGCD
from ._parameters import SEVERAL
from ._regression import PrivateRegressor, WithExposure
from ._regressors import DPLassoCD, DPRidgeSkGD

# Values that a choice among strengths takes.
_OF_CHOICES = dict.fromkeys(("alphas", "Cs"), [StrOptions({"auto"}), *SEVERAL])
_OF_CHOICES |= {"cv": ["cv_object"], "l1_ratios": SEVERAL}
# Parameters of a preset that a choice among strengths leaves no room for.
_LEFT_OUT_OF_CHOICES = {
    *("alpha", "C", "l1_ratio", "solver", "sampling", "block_size", "rule"),
    *("inference", "max_iter", "coef_path", "warm_start"),
}


def init_of(preset, left_out, **own):
    """An ``__init__`` with parameters of its own, and those of a preset but these."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    first, *theirs = inspect.signature(preset.__init__).parameters.values()
    ours = [
        inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD if i == 0 else keyword, default=value
        )
        for i, (name, value) in enumerate(own.items())
    ]
    theirs = [each for each in theirs if each.name not in left_out]
    signature = inspect.Signature([first, *ours, *theirs])

    def __init__(self, *args, **params):  # noqa: N807
        try:
            bound = signature.bind(self, *args, **params)
        except TypeError as error:  # which names no class
            raise TypeError(f"{type(self).__name__}.__init__() {error}") from None
        bound.apply_defaults()
        for name in list(signature.parameters)[1:]:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature
    return __init__


class _ChoosesStrength:
    """A preset whose strength is a list or "auto".

    Parameters
    ----------
    clip : float > 0 or "auto", default="auto"
        Norm that M^(-1/2) g is clipped to by Newton steps, public, in the units of the target.
        "auto" follows n, p, epsilon and delta.
    cv : int, splitter or None, default=None
        For ``epsilon=inf`` only: as of scikit-learn's estimator. With noise no record is set aside.
    """

    _of_its_name = ()


class DPLassoCV(_ChoosesStrength, DPLassoCD):
    r"""Lasso under differential privacy that chooses its strength, at no further charge.

    :class:`DPLassoCD` with several strengths: its objective, one fit, one event, and a choice by
    what that fit releases in any case. With ``epsilon=inf`` it is scikit-learn's LassoCV.

    Parameters
    ----------
    alphas : list of floats or "auto", default="auto"
        Strengths of the l1 penalty, in the units of scikit-learn's Lasso. "auto" is a grid of 30,
        from the released strength that removes all coefficients down to a thousandth of it.

    Notes
    -----
    Proof: ``privacy/proofs/choices.md``. The criterion is that of Mallows (1973), with the known
    variance of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPLassoCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 8))
    >>> y = X[:, 0] - X[:, 1]
    >>> model = DPLassoCV(feature_bounds=(-1, 1), target_bounds=(-2, 2)).fit(X, y)
    >>> len(model.strength_path_["alpha"])
    30
    >>> model.privacy_spent_.epsilon
    1.0
    """

    _strength_parameter = "alphas"
    _parameter_constraints = DPLassoCD._parameter_constraints | _OF_CHOICES
    __init__ = init_of(DPLassoCD, _LEFT_OUT_OF_CHOICES, alphas="auto", cv=None)
    alpha = property(lambda self: self.alphas)


class DPElasticNetCV(DPLassoCV):
    r"""Elastic net under differential privacy that chooses its strength, at no further charge.

    As :class:`DPLassoCV`, with the objective of scikit-learn's ElasticNet; with ``epsilon=inf`` it
    is scikit-learn's ElasticNetCV.

    Parameters
    ----------
    alphas : list of floats or "auto", default="auto"
        Strengths of the penalty, in the units of scikit-learn's ElasticNet. "auto" is a grid that
        follows what was released, for each `l1_ratio`.
    l1_ratio : float in [0, 1] or list of them, default=0.5
        Share of the l1 penalty, 1 is a Lasso; of several one is chosen too.

    Notes
    -----
    Proof: ``privacy/proofs/choices.md``.

    Examples
    --------
    >>> from dpcd_sklearn import DPElasticNetCV
    >>> DPElasticNetCV(l1_ratio=[0.1, 0.5, 0.9]).alphas
    'auto'
    """

    penalty = "elasticnet"
    __init__ = init_of(DPLassoCD, _LEFT_OUT_OF_CHOICES, alphas="auto", l1_ratio=0.5, cv=None)

    def _plain(self):
        ratio = getattr(self, "l1_ratio_", self.l1_ratio)
        plain = ElasticNet(self._strength, l1_ratio=ratio, fit_intercept=self.fit_intercept)
        plain.n_iter_ = self.n_iter_
        return plain


class DPRidgeCV(_ChoosesStrength, DPRidgeSkGD):
    r"""Ridge regression under differential privacy that chooses its strength, at no charge.

    :class:`DPRidgeSkGD` with several strengths: its objective, one fit, one event, and a choice by
    what that fit releases in any case. With ``epsilon=inf`` it is scikit-learn's RidgeCV.

    Parameters
    ----------
    alphas : list of floats or "auto", default="auto"
        Strengths of the l2 penalty, in the units of scikit-learn's Ridge. "auto" is a grid of 15,
        from 1e-5 to 100 times the released mean curvature of the loss.

    Notes
    -----
    Proof: ``privacy/proofs/choices.md``.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeCV
    >>> DPRidgeCV([0.1, 1.0, 10.0], target_bounds=(0, 1)).alphas
    [0.1, 1.0, 10.0]
    """

    _strength_parameter = "alphas"
    _parameter_constraints = DPRidgeSkGD._parameter_constraints | _OF_CHOICES
    __init__ = init_of(DPRidgeSkGD, _LEFT_OUT_OF_CHOICES, alphas="auto", cv=None)
    alpha = property(lambda self: self.alphas)


class DPLogisticCV(_ChoosesStrength, DPLogisticGCD):
    r"""Logistic regression under differential privacy that chooses its strength, at no charge.

    :class:`DPLogisticGCD` with several strengths: its objective, one fit, one event, and a choice
    by what that fit releases in any case. With ``epsilon=inf`` it is scikit-learn's
    LogisticRegressionCV, by the log loss.

    Parameters
    ----------
    Cs : list of floats or "auto", default="auto"
        Inverse strengths of the penalty, in the units of scikit-learn's LogisticRegression. "auto"
        is a grid that follows what was released, for each of `l1_ratios`.
    l1_ratios : list of floats in [0, 1], default=(0.0,)
        Shares of the l1 penalty, 0 is l2 and 1 is l1; of several one is chosen too.
    classes : array-like of labels, default=None
        Public labels, two or more, as of DPLogisticGCD.

    Attributes
    ----------
    C_, penalty_, l1_ratio_ : float, str, float
        What was chosen. Released.

    Notes
    -----
    Proof: ``privacy/proofs/choices.md``.

    Examples
    --------
    >>> from dpcd_sklearn import DPLogisticCV
    >>> DPLogisticCV([0.1, 1.0], classes=[0, 1]).Cs
    [0.1, 1.0]
    """

    _strength_parameter, _ratio_parameter = "Cs", "l1_ratios"
    _parameter_constraints = DPLogisticGCD._parameter_constraints | _OF_CHOICES
    __init__ = init_of(DPLogisticGCD, _LEFT_OUT_OF_CHOICES, Cs="auto", l1_ratios=(0.0,), cv=None)
    C = property(lambda self: self.Cs)
    l1_ratio = property(lambda self: self.l1_ratios)


# ---- Presets for counts, positive numbers and quantiles ------------------------------------------

_LEFT_OUT_OF_MEANS = {"alpha", "sampling", "block_size", "inference", "positive"}


class _OneStrength(PrivateRegressor):
    """A preset whose one strength stands beside a mean loss."""

    penalty = "l2"
    _parameter_constraints = PrivateRegressor._parameter_constraints | {
        "alpha": [Interval(Real, 0, None, closed="left")]
    }


class _OfMeans(WithExposure, _OneStrength):
    """A preset with a log link, which has scikit-learn's class as its twin."""

    _twin = None
    __init__ = init_of(DPRidgeSkGD, _LEFT_OUT_OF_MEANS, alpha=1.0)

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

    Parameters
    ----------
    alpha : float >= 0, default=1.0
        Strength of the l2 penalty beside the mean loss: scikit-learn's.

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


class DPGammaRegressor(_OfMeans):
    r"""Gamma regression under differential privacy: positive numbers, with a log link.

    It minimises, as scikit-learn's GammaRegressor does,

    .. math::

        \frac{1}{n} \sum_i \left(y_i e^{-x_i^T w - b} + x_i^T w + b\right)
        + \frac{\alpha}{2} \|w\|_2^2

    for y > 0: :class:`DPLinearRegressor` with ``loss="gamma"`` and ``penalty="l2"``.

    Parameters
    ----------
    alpha : float >= 0, default=1.0
        Strength of the l2 penalty beside the mean loss: scikit-learn's.

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


class DPQuantileRegressor(_OneStrength):
    r"""Quantile regression under differential privacy: the median, or another quantile.

    It minimises, as scikit-learn's QuantileRegressor does,

    .. math::

        \frac{1}{n} \sum_i \ell_q(y_i - x_i^T w - b) + \alpha \|w\|_1

    with ℓ_q(r) = q r for r >= 0 and (q - 1) r below, q = `quantile`, smoothed within `width`:
    :class:`DPLinearRegressor` with ``loss=Quantile(quantile, width)`` and ``penalty="l1"``.

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
        Which quantile is predicted.
    alpha : float >= 0, default=1.0
        Strength of the l1 penalty beside the mean loss: scikit-learn's.
    width : float > 0 or "auto", default="auto"
        How far from the target the loss is curved, in its units; public. "auto" is a tenth of half
        the target's bounds, down to an 80th for loud signals, and none without noise.

    Notes
    -----
    A smoothed loss is that of targets which are spread by up to `width`, so where the density of
    the target changes within that its quantile moves. A narrow one has more noise.

    Examples
    --------
    >>> from dpcd_sklearn import DPQuantileRegressor
    >>> DPQuantileRegressor(quantile=0.9, alpha=0.0, target_bounds=(0, 10)).quantile
    0.9
    """

    penalty = "l1"
    _parameter_constraints = _OneStrength._parameter_constraints | Quantile._parameter_constraints
    __init__ = init_of(DPRidgeSkGD, _LEFT_OUT_OF_MEANS, quantile=0.5, alpha=1.0, width="auto")

    @property
    def loss(self):
        return Quantile(self.quantile, self.width)

    def _plain(self):
        alpha, intercept = self.alpha, self.fit_intercept
        return QuantileRegressor(quantile=self.quantile, alpha=alpha, fit_intercept=intercept)
