"""Private linear classification: logistic regression, and any loss, penalty and solver."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression

from ..losses import losses_for
from ..penalties import L1Ball, L2Ball, StatedPenalty
from ..solvers import GCD
from ..utils._compat import StrOptions
from ..utils._typing import ArrayLike
from ._classification import PrivateClassifier
from ._inference import InferenceMixin
from ._parameters import CLASSIFICATION, GENERIC, of
from ._strengths import values_of


@dataclass(eq=False, repr=False)
class DPLogisticGCD(InferenceMixin, PrivateClassifier):
    r"""Logistic regression under differential privacy, by the solver that suits it, or by DP-GCD.

    ``solver="auto"`` follows one public rule, that of all five estimators, and `solver_` says what
    ran; ``solver="gcd"``, or stating `rule` or `block_size`, is greedy coordinate descent (DP-GCD),
    which suits problems where few features carry the signal. It minimises, as scikit-learn's
    LogisticRegression does, for two classes

    .. math::

        C \sum_i \log(1 + e^{-y_i (x_i^T w + b)})
        + \rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|_2^2

    with y in {-1, 1} and ρ = `l1_ratio`; for more, the multinomial loss of one vector of
    coefficients for each class.

    Parameters
    ----------
    C : float, list of floats or "auto", default=1.0
        Inverse strength of the penalty, in (0, inf), in the units of scikit-learn's
        LogisticRegression, on coefficients in the units of X: columns of small numbers, whose
        squares add up to less than 1 / C, are as good as removed.

        If it lists several values, one is chosen at no further charge: see `strength_path_`.
    l1_ratio : float in [0, 1] or list of them, default=0.0
        Share of the l1 penalty: 0 is l2, 1 is l1.
    rule : {"gs-s", "gs-r", "gs-q"}, default=None
        Short for ``solver=GCD(rule)``: what a coordinate is chosen by.
    inference : bool, default=False
        Whether to release what covariances of the coefficients are made of, for 20 % of μ²: see
        `coef_cov_`, `confidence_interval`, `wald_test` and `summary`. By "newton", which "auto" is
        then, since how descents follow their noise is not known; an l1 penalty is refused.
    clip : float > 0 or "auto", default="auto"
        C of the papers, public: coordinate j of a record's gradient, in every class, is clipped to
        C sqrt(M_j / tr M) by "gcd", and of more than two classes its derivatives in all classes are
        scaled down together first; the norm of M^(-1/2) g is clipped to C by "skgd" and "newton".
        "auto" follows the solver, n, p, epsilon and delta.
    max_iter : float > 0 or "auto", default="auto"
        Passes, each of which is one update; may be a fraction. "auto" follows the solver, n, p,
        epsilon and delta.
    fit_intercept : bool, default=True
        Whether to fit an intercept: an unpenalised coordinate that is clipped and paid for like any
        other.
    classes : array-like of labels, default=None
        Public labels, two or more. A class may have no record, and a label outside of them counts
        as the smallest of them, in silence, which `DPLinearClassifier` has a parameter for. None
        takes the labels from y, which publishes them. Each is compared by itself, exactly.

    Attributes
    ----------
    C_, penalty_, l1_ratio_ : float, str, float
        What was chosen, where several were stated. Released.

    Notes
    -----
    Every update of "gcd" chooses a coordinate and a direction by Gumbel noise on 2 p signed scores,
    and releases the chosen partial derivative with Gaussian noise; a step against the chosen
    direction is not taken. Of more than two classes it chooses a feature and a class, and moves the
    feature in all classes by one released vector. Thresholds C_j proportional to sqrt(M_j) make all
    scores equally sensitive, without which the papers' selection is not private. Choices of one
    bounded range η and releases of noise multiplier z are composed by the tight curve of all
    adaptive interleavings, which needs about 7 % less noise than zCDP. Proofs:
    ``privacy/proofs/release_argmax.md``, ``selections.md``.

    Where noise is loud `coef_` and `intercept_` are shrunk towards the released shares of the
    classes, by a factor that follows from public numbers and, after a full descent, from how long
    released coefficients are beside what noise alone would make of them; after Newton steps margins
    are no longer than the last gradients bear out, since a narrow clip makes them too long. Neither
    costs anything. Nothing is shrunk with a stated `clip` or `max_iter`, a solver's steps or
    averaging, bounds of coefficients, inference or a warm start, nor with epsilon = inf.

    With "newton" the mean of rows and of their squared norms is released, from which follows
    how they are centred and clipped, then a matrix of their second moments, and a few gradients
    that are clipped and noised in its geometry; they are composed exactly too. Of more than two
    classes one matrix serves all, and a record's gradients have one clip for all of them. Proofs:
    ``privacy/proofs/release_mean_row.md``, ``release_curvature.md``, ``release_preconditioned.md``.

    Where n μ sqrt(0.02) >= 25 for each class, μ that of (epsilon, delta), a free intercept starts
    at the classes' shares of the records, times their `class_weight`. Their noisy counts have 2 %
    of μ² and stand before the updates in `privacy_event_`: ``privacy/proofs/release_counts.md``.
    A fit with `warm_start` counts nothing.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2023). High-dimensional private empirical risk minimization
    by greedy coordinate descent. AISTATS. Algorithms 1 and 2 (mended).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dpcd_sklearn import DPLogisticGCD
    >>> from dpcd_sklearn.preprocessing import BoundsScaler
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(BoundsScaler((0, 100)),
    ...                       DPLogisticGCD(epsilon=3.0, feature_bounds=(-1, 1))).fit(X, y)
    >>> model[-1].privacy_spent_.epsilon
    3.0
    >>> model[-1].coef_.shape
    (1, 30)
    """

    penalty = "elasticnet"
    _strength_name = _strength_parameter = "C"
    _usual_strength = 1.0
    _named_after = "gcd"
    _of_its_name = ("rule",)

    _parameter_constraints = (
        PrivateClassifier._parameter_constraints
        | of(CLASSIFICATION, "C")
        | of(GENERIC, "l1_ratio")
        | {"rule": [None, *GCD._parameter_constraints["rule"]]}
    )

    C: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.0
    rule: Literal["gs-s", "gs-r", "gs-q"] | None = None
    classes: ArrayLike | None = None
    class_weight: dict | None = None

    def _beside_mean_loss(self, value, n_normalizer):
        # scikit-learn's C multiplies a sum of losses: divide by C n to stand beside our mean
        return 1.0 / (value * n_normalizer)

    _as_stated = _beside_mean_loss  # its own inverse

    def _plain(self):
        l1_ratio = float(values_of(getattr(self, "l1_ratio_", self.l1_ratio))[0])
        solver = "saga" if l1_ratio else "lbfgs"  # which has no l1 penalty
        plain = LogisticRegression(
            C=self._strength, l1_ratio=l1_ratio, solver=solver, fit_intercept=self.fit_intercept
        )
        plain.n_iter_ = np.array([self.n_iter_])
        return plain


@dataclass(eq=False, repr=False)
class DPLinearClassifier(InferenceMixin, PrivateClassifier):
    r"""Linear classification under differential privacy: any loss, penalty and solver.

    Minimises the mean loss plus a penalty, as scikit-learn's SGDClassifier does,

    .. math::

        \frac{1}{n} \sum_i \ell(x_i^T w + b, y_i)
        + \alpha \left(\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|_2^2\right)

    with ρ = `l1_ratio` for the elastic net, 1 for l1 and 0 for l2; or the mean loss alone, with
    bounds on the coefficients. For K > 2 classes there is one vector w for each, and the penalty
    is the sum over them. ``solver="auto"`` follows one public rule, that of all five estimators,
    and `solver_` says what ran. DPLogisticGCD is the same model with the logistic loss, and fewer
    parameters.

    **Privacy**

    - Assumptions: bounds and hyper-parameters were not chosen by looking at the records;
      no `ReproducibleNoise`; no step before this one learnt from the records without a charge. For
      mini-batches (``SGD(sampling_rate=0.1)``) under "replace_one", that no pair of records is
      worse than the one that is accounted for: checked numerically, not proved.

    Parameters
    ----------
    loss : {"auto", "log_loss", "logistic", "multinomial"}, default="auto"
        "logistic" is for two classes. "multinomial" is for two or more, with one vector of
        coefficients for each class, and one clip and one noisy gradient for all of them together;
        of two classes it is "logistic". "auto", in scikit-learn's words "log_loss", follows the
        number of classes, as LogisticRegression does.
    penalty : {"l1", "l2", "elasticnet", "nonnegative"}, object, list or None, default=None
        The penalty of every coefficient but the intercept: `alpha` times its absolute value ("l1"),
        half its square ("l2") or a mixture of the two ("elasticnet"); or bounds that it can't
        leave, [0, inf) ("nonnegative"). Objects of `dpcd_sklearn.penalties` are ``Box(lo, hi)``, of
        other bounds, ``Monotonic(signs)``, an elastic net of coefficients with stated signs, and
        ``GroupLasso(groups)``, which has a strength too.
        None is none: short descents and what is kept of them hold coefficients already. A list of
        "l1", "l2" and "elasticnet" is chosen from.
    alpha : float, list of floats or "auto", default=0.0001
        Strength of "l1", "l2" and "elasticnet", in [0, inf): 1 / (n C) in terms of scikit-learn's
        LogisticRegression and n records. It is on coefficients in the units of X: "l2" adds alpha
        to each column's mean square (times a quarter at most), so one of size 1e-3 is as good as
        removed by 1e-4. Give such columns other units. Other penalties do not use it, and warn.

        If it lists several values, one is chosen at no further charge: see `strength_path_`.
    inference : bool, default=False
        Whether to release what covariances of the coefficients are made of: see `coef_cov_`,
        `confidence_interval`, `wald_test` and `summary`. For "newton", which "auto" is then, of
        two classes; with the penalties None and "l2".
    clip : float > 0 or "auto", default="auto"
        C of the papers, public. Coordinate j of a record's gradient is clipped to
        C sqrt(M_j / tr M) by "cd", "gcd" and "frank-wolfe"; its block S by "skgd", so that the norm
        of M_S^(-1/2) g_S is at most C sqrt(abs(S) / tr M); all of it in the same way by "sgd" and
        "svrg", which clips differences of gradients to half of that; its projection by "compgd";
        and its image in the released geometry by "newton", which begins with a wider one if it is
        "auto". Of more than two classes a coordinate, block or image is that of all classes
        together, and "gcd" scales a record's derivatives in all classes down together first. "auto"
        follows n, p, epsilon and delta.
    classes : array-like of labels, default=None
        Public labels: two, or more unless `loss` is "logistic". A class may have no record, and a
        label outside of them counts as the smallest of them, in silence: see `unknown_label`. None
        takes the labels from y, which publishes them. Each label is compared with them by itself,
        exactly. Members of VotingClassifier, BaggingClassifier, StackingClassifier get labels that
        are numbered from 0, those of OneVsRestClassifier and its like 0 and 1: state [0, 1, ...].
    unknown_label : {"first", "raise"}, default="first"
        What a label outside of the stated `classes` does: it counts as the smallest of them
        ("first"), or it is a ValueError before anything is charged ("raise"), which publishes that
        one fact, that there is such a label.

    Attributes
    ----------
    coef_path_ : ndarray of shape (n_points, n_features) or (n_points, n_classes, n_features)
        Iterates at the start, after each pass and at the end; only with `coef_path`. With "tail" or
        "weighted" averaging `coef_` is a mean of iterates, not the last of these. Released.
    noise_multiplier_ : float
        z, the standard deviation of the noise over the sensitivity of a gradient release; NaN when
        nothing but choices is released ("frank-wolfe"). Public.

    Notes
    -----
    What each solver releases, with the sensitivity and its proof: ``release_partial`` ("cd",
    "gcd"), ``release_argmax`` ("gcd", "frank-wolfe"), ``release_gradient`` ("skgd") and
    ``release_mean`` ("compgd", "sgd", "svrg"), ``release_mean_row``, ``release_curvature`` and
    ``release_preconditioned`` ("newton"), in ``privacy/proofs``. Releases over all records are
    calibrated by the exact curve of Gaussian DP, those of "gcd" and "frank-wolfe" by the tight
    curve of adaptive choices, and Poisson mini-batches by Rényi divergences.

    Where noise is loud `coef_` and `intercept_` are shrunk towards the released shares of the
    classes, by a factor that follows from public numbers and, after a full descent, from how long
    released coefficients are beside what noise alone would make of them; after Newton steps margins
    are no longer than the last gradients bear out, since a narrow clip makes them too long. Neither
    costs anything. Nothing is shrunk with a stated `clip` or `max_iter`, a solver's steps or
    averaging, bounds of coefficients, inference or a warm start, nor with epsilon = inf.

    Where n μ sqrt(0.02) >= 25 for each class, μ that of (epsilon, delta), a free intercept starts
    at the classes' shares of the records, times their `class_weight`. Their noisy counts have 2 %
    of μ² and stand before the updates in `privacy_event_`: ``privacy/proofs/release_counts.md``.
    A fit with `warm_start` counts nothing.

    After a full descent ("skgd") with a residual clip below 0.25 and neither `clip` nor
    `class_weight` stated, three unclipped derivatives of the intercept (``release_partial``) have
    5 % of μ², if their noise is below 0.025. They set right what a narrow clip makes of the
    intercept of two classes. `coef_path_` ends before them.

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
    >>> from sklearn.datasets import load_digits
    >>> from dpcd_sklearn import DPLinearClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DPLinearClassifier(penalty="l2", alpha=1e-3, epsilon=3.0,
    ...                            classes=range(10), feature_bounds=(0, 16)).fit(X, y)
    >>> model.coef_.shape
    (10, 64)
    """

    _parameter_constraints = (
        PrivateClassifier._parameter_constraints
        | GENERIC
        | {"loss": [StrOptions({"auto", "log_loss", *losses_for("classification")})]}
    )

    loss: Literal["auto", "log_loss", "logistic", "multinomial"] = "auto"
    _: KW_ONLY
    penalty: str | StatedPenalty | None = None
    alpha: float = 0.0001
    l1_ratio: float = 0.15
    constraint: Literal["l1_ball", "l2_ball"] | L1Ball | L2Ball | None = None
    classes: ArrayLike | None = None
    class_weight: dict | None = None
    unknown_label: Literal["first", "raise"] = "first"
    penalize_intercept: bool = False

    def _plain(self):
        # its C is 1 / (alpha n), and n is not kept
        plain = LogisticRegression(fit_intercept=self.fit_intercept)
        plain.n_iter_ = np.array([self.n_iter_])
        return plain
