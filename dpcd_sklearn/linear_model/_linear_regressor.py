"""Private linear regression with any loss, penalty and solver."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    QuantileRegressor,
    TweedieRegressor,
)

from ..losses import STATED_LOSSES, Huber, Quantile, Tweedie, loss_of, losses_for
from ..penalties import L1Ball, L2Ball, StatedPenalty
from ..utils._compat import StrOptions
from ..utils._typing import TargetBounds
from ._inference import InferenceMixin
from ._parameters import GENERIC
from ._regression import PrivateRegressor, WithExposure


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

        Of several values one is chosen at no further charge: see `strength_path_`.
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
