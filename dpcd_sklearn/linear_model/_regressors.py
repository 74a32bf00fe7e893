"""Private linear regression: Lasso, ridge, and any loss, penalty and solver."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)

from ..losses import STATED_LOSSES, Huber, Quantile, Tweedie, loss_of, losses_for
from ..penalties import L1Ball, L2Ball, StatedPenalty
from ..samplings import Sampling
from ..solvers import CD, SkGD
from ..utils._compat import StrOptions
from ..utils._typing import TargetBounds
from ._inference import InferenceMixin
from ._parameters import GENERIC, REGRESSION, of
from ._regression import PrivateRegressor, WithExposure


@dataclass(eq=False, repr=False)
class DPLassoCD(InferenceMixin, PrivateRegressor):
    r"""Lasso under differential privacy, by the solver that suits it, or by DP-CD.

    ``solver="auto"`` follows one public rule, that of all five estimators, and `solver_` says what
    ran; ``solver="cd"``, or stating `sampling`, is proximal coordinate descent (DP-CD). It
    minimises, as scikit-learn's Lasso does,

    .. math::

        \frac{1}{2n} \|y - Xw - b\|_2^2 + \alpha \|w\|_1 .

    Parameters
    ----------
    alpha : float, list of floats or "auto", default=1.0
        Strength of the l1 penalty, in [0, inf), in the units of scikit-learn's Lasso, on
        coefficients in the units of X: a column whose mean product with the target is smaller is
        removed.

        If it lists several values, one is chosen at no further charge: see `strength_path_`.
    sampling : {"uniform", "importance"}, default=None
        Short for ``solver=CD(sampling)``: which coordinate an update of "cd" moves.
    inference : bool, default=False
        Covariances of the coefficients, `confidence_interval`, `wald_test` and `summary`: without
        an l1 penalty (``alpha=0``) alone, by "newton".
    clip : float > 0 or "auto", default="auto"
        C of the papers, public, in the units of the target: coordinate j of a record's gradient is
        clipped to C sqrt(M_j / tr M) by "cd" and "gcd", and the norm of M^(-1/2) g to C by "skgd"
        and "newton". "auto" follows the solver, n, p, epsilon and delta.
    max_iter : float > 0 or "auto", default="auto"
        Passes, one of which is as many updates of "cd" as there are coordinates, or one of the
        other solvers; may be a fraction. "auto" follows the solver, n, p, epsilon and delta.
    fit_intercept : bool, default=True
        Whether to fit an intercept: an unpenalised coordinate that is clipped and paid for like any
        other.

    Notes
    -----
    Every update of "cd" releases one partial derivative of the mean loss with Gaussian noise. Its
    sensitivity is 2 C_j / n (C_j / n_public under "add_remove"), and T of them with the noise
    multiplier z are exactly sqrt(T)/z-Gaussian-DP (Dong, Roth & Su 2022). Proof:
    ``privacy/proofs/release_partial.md``.

    Where noise is loud `coef_` and `intercept_` are shrunk towards the middle of a found target, by
    a factor that follows from public numbers and, where columns have one scale, from how long
    released coefficients are beside what noise alone would make of them: it costs nothing. Nothing
    is shrunk with stated `target_bounds`, `clip` or `max_iter`, a solver's steps or averaging,
    bounds of coefficients, inference or a warm start, nor with epsilon = inf.

    With "newton" the mean of rows and of their squared norms is released, from which follows
    how they are centred and clipped, then a matrix of their second moments, and a few gradients
    that are clipped and noised in its geometry; they are composed exactly too. Proofs:
    ``privacy/proofs/release_mean_row.md``, ``release_curvature.md``, ``release_preconditioned.md``.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML. Algorithm 1, Theorem 1 (mended).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dpcd_sklearn import DPLassoCD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPLassoCD(alpha=0.1, epsilon=3.0, feature_bounds=(-0.2, 0.2),
    ...                   target_bounds=(25, 350)).fit(X, y)
    >>> model.privacy_spent_.epsilon
    3.0
    >>> model.coef_.shape
    (10,)
    """

    penalty = "l1"
    _usual_strength = 0.0
    _named_after = "cd"
    _of_its_name = ("sampling",)

    _parameter_constraints = (
        PrivateRegressor._parameter_constraints
        | of(GENERIC, "alpha")
        | of(REGRESSION, "positive")
        | {"sampling": [None, *CD._parameter_constraints["sampling"]]}
    )

    alpha: float = 1.0
    _: KW_ONLY
    sampling: Literal["uniform", "importance"] | None = None
    positive: bool = False
    target_bounds: TargetBounds | None = None

    def _plain(self):
        plain = Lasso(self._strength, fit_intercept=self.fit_intercept, positive=self.positive)
        plain.n_iter_ = self.n_iter_
        return plain


@dataclass(eq=False, repr=False)
class DPRidgeSkGD(InferenceMixin, PrivateRegressor):
    r"""Ridge regression under differential privacy, by the solver that suits it, or by DP-SkGD.

    ``solver="auto"`` follows one public rule, that of all five estimators, and `solver_` says what
    ran; ``solver="skgd"``, or stating `sampling` or `block_size`, is sketched gradient descent
    (DP-SkGD). It minimises, as scikit-learn's Ridge does,

    .. math::

        \|y - Xw - b\|_2^2 + \alpha \|w\|_2^2 .

    Parameters
    ----------
    alpha : float, list of floats or "auto", default=1.0
        Strength of the l2 penalty, in [0, inf), in the units of scikit-learn's Ridge, on
        coefficients in the units of X: a column whose squares add up to less than alpha is as good
        as removed.

        If it lists several values, one is chosen at no further charge: see `strength_path_`.
    sampling : str or object of `dpcd_sklearn.samplings`, default=None
        Short for ``solver=SkGD(sampling, block_size=block_size)``: which coordinates an update of
        "skgd" moves.
    block_size : int >= 1, default=None
        Number of coordinates in a set or block; see `sampling`.
    inference : bool, default=False
        Whether to release what covariances of the coefficients are made of: see `coef_cov_`,
        `confidence_interval`, `wald_test` and `summary`. By "newton", which "auto" is then, or by
        "skgd" along full gradients, of which the noise is followed from step to step.
    clip : float > 0 or "auto", default="auto"
        C of the papers, public: the block S of a record's gradient is clipped so that the norm of
        M_S^(-1/2) g_S is at most ``C sqrt(|S| / tr M)``, in the units of the target. "auto" follows
        n, p, epsilon and delta.
    max_iter : float > 0 or "auto", default="auto"
        Passes, one of which moves every coordinate once on average; may be a fraction. "auto"
        follows n, p, epsilon and delta.

    Notes
    -----
    Every update of "skgd" releases a block of the mean gradient with Gaussian noise that is
    isotropic in the geometry of M^(-1/2). Its sensitivity there is ``2 C sqrt(|S| / tr M) / n``
    (half of it, over n_public, under "add_remove"), and T of them with the noise multiplier z are
    exactly sqrt(T)/z-Gaussian-DP. A random block shows in the iterates, so its choice amplifies
    nothing. Proof: ``privacy/proofs/release_gradient.md``.

    Where noise is loud `coef_` and `intercept_` are shrunk towards the middle of a found target, by
    a factor that follows from public numbers and, where columns have one scale, from how long
    released coefficients are beside what noise alone would make of them: it costs nothing. Nothing
    is shrunk with stated `target_bounds`, `clip` or `max_iter`, a solver's steps or averaging,
    bounds of coefficients, inference or a warm start, nor with epsilon = inf.

    With "newton" the mean of rows and of their squared norms is released, from which follows
    how they are centred and clipped, then a matrix of their second moments, and a few gradients
    that are clipped and noised in its geometry; they are composed exactly too. Proofs:
    ``privacy/proofs/release_mean_row.md``, ``release_curvature.md``, ``release_preconditioned.md``.

    References
    ----------
    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.
    Algorithm 1, Theorem 4.1 (mended: the noise has the standard deviation σ_S).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidgeSkGD(alpha=0.1, epsilon=3.0, feature_bounds=(-0.2, 0.2),
    ...                     target_bounds=(25, 350)).fit(X, y)
    >>> model.privacy_spent_.epsilon
    3.0
    >>> model.coef_.shape
    (10,)
    """

    penalty = "l2"
    _usual_strength = 1.0
    _named_after = "skgd"
    _of_its_name = ("sampling", "block_size")

    _parameter_constraints = (
        PrivateRegressor._parameter_constraints
        | of(GENERIC, "alpha")
        | of(REGRESSION, "positive")
        | {"block_size": [None, *SkGD._parameter_constraints["block_size"]]}
        | {"sampling": [None, *SkGD._parameter_constraints["sampling"]]}
    )

    alpha: float = 1.0
    _: KW_ONLY
    sampling: str | Sampling | None = None
    block_size: int | None = None
    positive: bool = False
    target_bounds: TargetBounds | None = None

    def _beside_mean_loss(self, value, n_normalizer):
        # scikit-learn's Ridge has a sum of squares: alpha ||w||^2 / (2 n) beside our mean
        return value / n_normalizer

    def _as_stated(self, strength, n_normalizer):
        return strength * n_normalizer

    def _plain(self):
        plain = Ridge(self._strength, fit_intercept=self.fit_intercept, positive=self.positive)
        plain.n_iter_ = np.array([self.n_iter_])  # one for each target
        return plain


@dataclass(eq=False, repr=False)
class DPLinearRegressor(WithExposure, InferenceMixin, PrivateRegressor):
    r"""Linear regression under differential privacy: any loss, penalty and solver.

    Minimises the mean loss plus a penalty, as scikit-learn's SGDRegressor does,

    .. math::

        \frac{1}{n} \sum_i \ell(x_i^T w + b, y_i)
        + \alpha \left(\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|_2^2\right)

    with ρ = `l1_ratio` for the elastic net, 1 for l1 and 0 for l2; or the mean loss alone, with
    bounds on the coefficients. ``solver="auto"`` follows one public rule, that of all five
    estimators, and `solver_` says what ran. DPLassoCD and DPRidgeSkGD are the same model with one
    loss and penalty, and fewer parameters.

    **Privacy**

    - Assumptions: bounds and hyper-parameters were not chosen by looking at the records;
      no `ReproducibleNoise`; no step before this one learnt from the records without a charge. For
      mini-batches (``SGD(sampling_rate=0.1)``) under "replace_one", that no pair of records is
      worse than the one that is accounted for: checked numerically, not proved.

    Parameters
    ----------
    loss : str, Huber, Tweedie or Quantile of `dpcd_sklearn.losses`, default="squared"
        Loss of a residual r: r² / 2 ("squared", in scikit-learn's words "squared_error"), or that
        up to a threshold and linear beyond ("huber", whose threshold is a fifth of half the width
        of the target's bounds, or ``Huber(threshold)``, in the units of the target); or the pinball
        loss, smoothed ("quantile", which has the median, or ``Quantile(quantile, width)``). Of
        targets >= 0 half the unit deviance of exp(margin): "poisson", "gamma" (of targets > 0),
        "tweedie", which has the power 1.5, or ``Tweedie(power)``. Those predict within
        `target_bounds`, the upper one of which is looked for where it is not stated, and are for
        one target; with a power above 1 a lower bound below a thousandth of the upper one is
        raised to that.
    penalty : {"l1", "l2", "elasticnet", "nonnegative"}, object, list or None, default=None
        The penalty of every coefficient but the intercept: `alpha` times its absolute value ("l1"),
        half its square ("l2") or a mixture of the two ("elasticnet"); or bounds that it can't
        leave, [0, inf) ("nonnegative"). Objects of `dpcd_sklearn.penalties` are ``Box(lo, hi)``, of
        other bounds, ``Monotonic(signs)``, an elastic net of coefficients with stated signs, and
        ``GroupLasso(groups)``, which has a strength too.
        None is none, as in LinearRegression. A list of "l1", "l2" and "elasticnet" is chosen from.
    alpha : float, list of floats or "auto", default=0.0001
        Strength of "l1", "l2" and "elasticnet", in [0, inf): that of scikit-learn's
        Lasso and ElasticNet, and that of its Ridge divided by the number of records. It is on
        coefficients in the units of X: "l2" adds alpha to each column's mean square, so one of size
        1e-3, whose mean square is 1e-6, is as good as removed by 1e-4. Give such columns other
        units. Other penalties do not use it, and warn.

        If it lists several values, one is chosen at no further charge: see `strength_path_`.
    inference : bool, default=False
        Whether to release what covariances of the coefficients are made of: see `coef_cov_`,
        `confidence_interval`, `wald_test` and `summary`. For "newton", which "auto" is then, and
        for "skgd" along full gradients of the squared loss; with the penalties None and "l2".
    clip : float > 0 or "auto", default="auto"
        C of the papers, public. Coordinate j of a record's gradient is clipped to
        C sqrt(M_j / tr M) by "cd", "gcd" and "frank-wolfe"; its block S by "skgd", so that the norm
        of M_S^(-1/2) g_S is at most C sqrt(abs(S) / tr M); all of it in the same way by "sgd" and
        "svrg", which clips differences of gradients to half of that; its projection by "compgd";
        and its image in the released geometry by "newton", which begins with a wider one if it is
        "auto". In the units of the target. "auto" follows n, p, epsilon and delta.

    Attributes
    ----------
    coef_path_ : ndarray of shape (n_points, n_features) or (n_points, n_outputs, n_features)
        Iterates at the start, after each pass and at the end; only with `coef_path`. With "tail" or
        "weighted" averaging `coef_` is a mean of iterates, not the last of these. Released.
    noise_multiplier_ : float
        z, the standard deviation of the noise over the sensitivity of a gradient release; NaN when
        nothing but choices is released ("frank-wolfe"). Public.

    Notes
    -----
    What each solver releases, with the sensitivity and its proof: ``release_partial`` ("cd",
    "gcd"), ``release_argmax`` ("gcd", "frank-wolfe"), ``release_gradient`` ("skgd"),
    ``release_mean`` ("compgd", "sgd", "svrg"), ``release_mean_row``, ``release_curvature`` and
    ``release_preconditioned`` ("newton"), in ``privacy/proofs``. Releases over all records are
    calibrated by the exact curve of Gaussian DP, those of "gcd" and "frank-wolfe" by the tight
    curve of adaptive choices, and Poisson mini-batches by Rényi divergences.

    Where noise is loud `coef_` and `intercept_` are shrunk towards the middle of a found target, by
    a factor that follows from public numbers and, where columns have one scale, from how long
    released coefficients are beside what noise alone would make of them: it costs nothing. Nothing
    is shrunk with stated `target_bounds`, `clip` or `max_iter`, a solver's steps or averaging,
    bounds of coefficients, inference or a warm start, nor with epsilon = inf.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML.

    Mangold, Bellet, Salmon & Tommasi (2023). High-dimensional private empirical risk minimization
    by greedy coordinate descent. AISTATS.

    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.

    Huang, Lei & Kabán (2023). Optimization and learning with randomly compressed gradient updates.
    Neural Computation. DP-CompGD and DP-CompMiniBatch, mended: each record's projection is clipped.

    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016). Deep learning with differential
    privacy. CCS. DP-SGD.

    Johnson & Zhang (2013). Accelerating stochastic gradient descent using predictive variance
    reduction. NIPS. The method that "svrg" makes private.

    Talwar, Guha Thakurta & Zhang (2015). Nearly optimal private LASSO. NIPS. DP Frank–Wolfe.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.losses import Huber
    >>> from dpcd_sklearn.solvers import CD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPLinearRegressor(Huber(100.0), penalty="l1", alpha=0.1, epsilon=3.0,
    ...                           solver=CD("importance"), feature_bounds=(-0.2, 0.2),
    ...                           target_bounds=(25, 350)).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    _parameter_constraints = (
        PrivateRegressor._parameter_constraints
        | GENERIC
        | {"loss": [StrOptions({"squared_error", *losses_for("regression")}), *STATED_LOSSES]}
    )

    loss: str | Huber | Tweedie | Quantile = "squared"
    _: KW_ONLY
    penalty: str | StatedPenalty | None = None
    alpha: float = 0.0001
    l1_ratio: float = 0.15
    constraint: Literal["l1_ball", "l2_ball"] | L1Ball | L2Ball | None = None
    penalize_intercept: bool = False
    target_bounds: TargetBounds | None = None

    def _plain(self):
        share = getattr(self, "l1_ratio_", self.l1_ratio)
        word = getattr(self, "penalty_", self._penalty_word)
        share = {"l1": 1.0, "l2": 0.0, "elasticnet": share}.get(word)
        loss, stated = loss_of(self._loss_word, self.loss)
        common = {"alpha": self._strength if self.penalty else 0.0}
        common["fit_intercept"] = self.fit_intercept
        if loss.twin == "tweedie":
            plain = TweedieRegressor(power=stated.power, link="log", **common)
            return plain.fit([[0.0]], [1.0])  # it keeps its loss, and no record
        if loss.twin == "pinball":
            return QuantileRegressor(quantile=stated.quantile, **common)
        if loss.name != "squared" or share is None or self.constraint is not None:
            positive = self.penalty == "nonnegative"
            return LinearRegression(fit_intercept=self.fit_intercept, positive=positive)
        plain = ElasticNet(self._strength, l1_ratio=share, fit_intercept=self.fit_intercept)
        plain.n_iter_ = self.n_iter_
        return plain
