"""Private Lasso, by proximal coordinate descent or what suits it better."""

from typing import Literal

from sklearn.linear_model import Lasso

from ..privacy.ledger._accountant import PrivacyAccountant
from ..solvers._stated import CD, Solver
from ..utils._typing import (
    ArrayLike,
    Auto,
    Bounds,
    Neighboring,
    Seed,
    TargetBounds,
)
from ._constraints import GENERIC, REGRESSION, of
from ._inference import InferenceMixin
from ._regression import PrivateRegressor


class DPLassoCD(InferenceMixin, PrivateRegressor):
    r"""Lasso under differential privacy, by the solver that suits it, or by DP-CD.

    ``solver="auto"`` follows one public rule, that of all five estimators, and `solver_` says what
    ran; ``solver="cd"``, or stating `sampling`, is proximal coordinate descent (DP-CD). It
    minimises, as scikit-learn's Lasso does,

    .. math::

        \frac{1}{2n} \|y - Xw - b\|_2^2 + \alpha \|w\|_1 .

    **Privacy**

    - Guarantee: `coef_`, `intercept_` and every other fitted attribute are together (epsilon,
      delta)-differentially private under the `neighboring` relation; all iterates, and what is
      released before the first one, could be published at the same cost.
    - Neighbours: data sets that differ in one record, a row of X with its target and weight
      ("replace_one": another record instead; "add_remove": none instead, with a public `n_public`).
      One person with several rows needs more.
    - Not protected: the number of records (under "replace_one"), shapes, column names, parameters
      and bounds; running time and memory; scores on training records; errors about NaN, infinite
      values and shapes; the choice of rows by stratified splits.
    - Assumptions: bounds and hyper-parameters were not chosen by looking at the records;
      no `ReproducibleNoise`; no step before this one learnt from the records without a charge.
    - Ledger: one entry for each fit with an `accountant`, written before a record is used.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the l1 penalty, in [0, inf), in the units of scikit-learn's Lasso, on
        coefficients in the units of X: a column whose mean product with the target is smaller is
        removed.
    epsilon : float, default=1.0
        Privacy loss, in (0, inf]. ``float("inf")`` fits without noise and clipping; the result is
        not private.
    delta : float in (0, 1) or "auto", default="auto"
        Probability that the loss exceeds epsilon, roughly. "auto" is 1 / n_samples²; an error under
        "add_remove".
    solver : str or object of `dpcd_sklearn.solvers`, default="auto"
        A word, or an object with parameters of its own: ``CD("importance")``, of which a search
        states ``solver__sampling``.

        - "auto" is one public rule, that of all five estimators, from the problem, n, p, epsilon
          and delta: "newton" where records are many and dense columns few, unless a path of
          iterates is asked for; "gcd" for l1, and from l1_ratio = 0.5 on, where noise dominates;
          "skgd" otherwise.
        - "cd": proximal coordinate descent (DP-CD).
        - "gcd": greedy coordinate descent (DP-GCD).
        - "skgd": sketched gradient descent (DP-SkGD), of blocks or of all coordinates.
        - "newton": a few proximal Newton steps, by one noisy matrix of second moments and gradients
          that are clipped and noised in its geometry. As fast as a fit without noise, and best
          where records are many and features correlated; up to 4,000 features.
        - "sgd": stochastic gradient descent (DP-SGD).
        - "svrg": variance-reduced stochastic gradients (DP-SVRG).
    sampling : {"uniform", "importance"}, default=None
        Short for ``solver=CD(sampling)``: which coordinate an update of "cd" moves.
    inference : bool, default=False
        Covariances of the coefficients, `confidence_interval`, `wald_test` and `summary`: without
        an l1 penalty (``alpha=0``) alone, by "newton".
    neighboring : {"replace_one", "add_remove"}, default="replace_one"
        What neighbouring data sets are: see Privacy above.
    n_public : int, default=None
        Public number of records for "add_remove", which normalises every sum. None otherwise.
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
    positive : bool, default=False
        Whether coefficients are kept from being negative; the intercept is free.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column: (lo, hi)}, default=None
        Public bounds of the features, never from the data: a tuple of two scalars or arrays of
        shape (n_features,), a list of one pair a feature, or a dict of one pair for the name of
        every column of a data frame. Gives M_j. Values outside are clipped, in predictions too.
        Where n, p, epsilon and delta allow it narrower scales are **looked for within them**, so
        they may be wide; not beside `feature_scale` or for an inference: an intercept then centres
        features on their middle. Nothing is clipped with epsilon = inf.
    feature_scale : float, array of shape (n_features,) or "private", default=None
        Public root mean square of each feature; gives M_j in place of the bounds. "private" is for
        `feature_bounds` that may be far too wide: before the first update mean squares of the
        features within them, and their means where a free intercept makes that good, are
        **released**, for 1 to 10 % of the budget; they give M_j and centres. Where n, p, epsilon
        and delta allow none that tell more than the bounds, nothing is released, and with epsilon =
        inf neither. It asks for a descent: Newton steps, which look at rows already, refuse it, and
        "auto" takes none.
    row_norm_bound : float, default=None
        Public bound on the euclidean norm of a record; gives M_j if nothing else does, and a bound
        on the curvature of blocks. Longer records only fit worse, their gradients are clipped
        anyway. Without any of the three, the **scales are found in the records**, for a share of
        the budget: a centre and bounds for each column, bounds around zero, or one bound on rows,
        as n, p, epsilon and delta allow (one on rows if X is sparse; without an intercept nothing
        is centred). Where they allow nothing, there is a warning, and coefficients are zero; with
        a stated `clip` or `max_iter` features are taken to be of unit scale. State
        ``feature_scale=1.0`` if they are.
    target_bounds : tuple (lo, hi) or list of pairs, default=None
        Public bounds of the target, in its units; of several targets a tuple of two scalars or
        arrays of shape (n_outputs,), or a list of one pair a target. Values outside are clipped
        while fitting, and so are predictions. None finds them in the records too; ``(-1, 1)`` is
        unit scale.
    tol : float, default=1e-6
        For epsilon = inf only: stop when a sweep moves no coefficient by more than this share of
        the largest one.
    coef_path : bool, default=False
        Whether to keep one iterate of every pass in `coef_path_` and `intercept_path_`. Iterates
        are released anyway, so it costs no privacy.
    warm_start : bool, default=False
        Whether to start from the coefficients of the earlier fit of this object, at a price of its
        own. It needs an accountant, and the earlier fit in the same ledger.
    verbose : int or bool, default=0
        Whether to print what is released, and how far the fit is: ten lines, or a hundred from 2
        on. All of it is public.
    accountant : PrivacyAccountant, default=None
        Ledger that every fit is charged to.
    random_state : int, RandomState instance, ReproducibleNoise or None, default=None
        An int or a RandomState draws the public choices of a fit, such as the order of coordinates.
        Noise, noisy choices and batches of records come from the operating system all the same,
        so two fits differ. :class:`~dpcd_sklearn.testing.ReproducibleNoise` makes all of it
        reproducible, hence **not private**: it warns, and an accountant refuses it. With
        ``epsilon=inf`` nothing is secret, and an int determines the fit.
    n_threads : int >= 1, default=1
        How many threads may read dense records, at most. The result does not depend on it, bit for
        bit: what threads add up are integers. The limits of OpenMP (``OMP_NUM_THREADS``,
        threadpoolctl, the share of a worker process of joblib) lower it; joblib's worker threads
        and forked processes have one thread. It pays where a pass reads millions of cells: a pass
        has at most one thread for every 131,072 cells, which are records times columns read (an
        update of DP-CD reads two). Mini-batches, sparse X and epsilon = inf have one thread.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients, float32 if X was. Of several targets each has a fit of its own, with its
        share of the budget. Released.
    sparse_coef_ : CSR matrix of shape (1, n_features) or (n_outputs, n_features)
        The same, made when it is asked for: smaller where most of them are zero.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept. Released.
    coef_path_ : ndarray of shape (n_points, n_features) or (n_points, n_outputs, n_features)
        Iterates at the start, after each pass and at the end; only with `coef_path`. With "tail"
        averaging `coef_` is a mean of iterates, not the last of these. Released.
    intercept_path_ : ndarray of shape (n_points,) or (n_points, n_outputs)
        Intercepts of the same iterates. Released.
    feature_bounds_ : tuple (lo, hi) of ndarrays of shape (n_features,), or None
        What features are clipped to, in the fit and in predictions; None is no clip. Stated, or
        found and released.
    row_norm_bound_ : float or None
        Bound on the norm of records, stated or found and released; None is none.
    target_bounds_ : tuple (lo, hi) of floats or ndarrays of shape (n_outputs,), or None
        What the target is clipped to in the fit, stated or found and released; None is no clip.
    coef_cov_ : ndarray of shape (n_coefs, n_coefs)
        With `inference`: covariance of `coef_` and, last, of the intercept if there is one, by
        sampling and by the noise. NaN where it is not `inference_valid_`. Released.
    coef_std_, privacy_std_ : ndarrays of shape (n_coefs,)
        Standard errors, and the part of them that is the noise. Released. Without `inference`
        `privacy_std_` is there after Newton steps for one target, the squared loss and no penalty
        or a ridge: of first order, for few records at the clip, and NaN where the released
        curvature is not safely positive. After other fits it is an AttributeError.
    inference_valid_ : bool
        Whether the noisy moments are safely positive, the steps arrived and, where bounds were
        found, hardly any record lies outside of them (1.2/sqrt(n) of all). Released.
    outside_share_ : float
        With `inference`, where bounds were found: the share of records that lie outside of them, by
        a noisy count. Released.
    solver_ : str
        The solver that ran, a word of `solver`. Public.
    n_iter_ : int
        T, the number of updates; public (with epsilon = inf, how many were needed).
    n_features_in_ : int
        Number of features. Public.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings. Public.
    privacy_spent_ : PrivacySpent
        Named tuple (epsilon, delta) of this fit. Public.
    privacy_event_ : FitEvent
        What was released, at which noise, the choices that find scales among it. Public.
    noise_multiplier_ : float
        z, the standard deviation of the noise over the sensitivity of a gradient release. Public.
    clip_ : float or ndarray of shape (n_outputs,)
        C that was used, in the units of each target. Public.

    Raises
    ------
    BudgetExceededError
        If the accountant's budget does not admit the fit; nothing was drawn.
    LedgerError
        If the ledger can't be written; nothing was drawn.
    TypeError, ValueError
        If a parameter or the input is invalid; nothing was charged.

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
    _named_after = "cd"
    _of_its_name = ("sampling",)

    _parameter_constraints = (
        PrivateRegressor._parameter_constraints
        | of(GENERIC, "alpha")
        | of(REGRESSION, "positive")
        | {"sampling": [None, *CD._parameter_constraints["sampling"]]}
    )

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float = 1.0,
        delta: Auto = "auto",
        solver: str | Solver = "auto",
        sampling: Literal["uniform", "importance"] | None = None,
        inference: bool = False,
        neighboring: Neighboring = "replace_one",
        n_public: int | None = None,
        clip: Auto = "auto",
        max_iter: Auto = "auto",
        fit_intercept: bool = True,
        positive: bool = False,
        feature_bounds: Bounds | None = None,
        feature_scale: ArrayLike | Literal["private"] | None = None,
        row_norm_bound: float | None = None,
        target_bounds: TargetBounds | None = None,
        tol: float = 1e-6,
        coef_path: bool = False,
        warm_start: bool = False,
        verbose: int = 0,
        accountant: PrivacyAccountant | None = None,
        random_state: Seed | None = None,
        n_threads: int = 1,
    ):
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.sampling = sampling
        self.inference = inference
        self.neighboring = neighboring
        self.n_public = n_public
        self.clip = clip
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.feature_bounds = feature_bounds
        self.feature_scale = feature_scale
        self.row_norm_bound = row_norm_bound
        self.target_bounds = target_bounds
        self.tol = tol
        self.coef_path = coef_path
        self.warm_start = warm_start
        self.verbose = verbose
        self.accountant = accountant
        self.random_state = random_state
        self.n_threads = n_threads

    def _plain(self):
        plain = Lasso(self.alpha, fit_intercept=self.fit_intercept, positive=self.positive)
        plain.n_iter_ = self.n_iter_
        return plain
