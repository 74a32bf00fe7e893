"""Private Lasso, by proximal coordinate descent or what suits it better."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from sklearn.linear_model import Lasso

from ..solvers import CD
from ..utils._typing import (
    TargetBounds,
)
from ._inference import InferenceMixin
from ._parameters import GENERIC, REGRESSION, of
from ._regression import PrivateRegressor


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

        Of several values one is chosen at no further charge: see `strength_path_`.
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
