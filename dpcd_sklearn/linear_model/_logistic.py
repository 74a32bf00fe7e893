"""Private logistic regression, by greedy coordinate descent or what suits it better."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression

from ..solvers import GCD
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

        Of several values one is chosen at no further charge: see `strength_path_`.
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
