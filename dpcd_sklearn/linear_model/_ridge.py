"""Private ridge regression, by sketched gradient descent or what suits it better."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.linear_model import Ridge

from ..samplings import Sampling
from ..solvers import SkGD
from ..utils._typing import (
    TargetBounds,
)
from ._inference import InferenceMixin
from ._parameters import GENERIC, REGRESSION, of
from ._regression import PrivateRegressor


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

        Of several values one is chosen at no further charge: see `strength_path_`.
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
