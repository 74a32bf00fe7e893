"""Which values the estimators' parameters take, and the objects that words stand for."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

import numpy as np

from ..losses import ABSENT
from ..penalties import CONSTRAINTS, SEPARABLE, Box, StatedPenalty
from ..plan._private_fit import BUDGET_CONSTRAINTS
from ..plan._solver import Solver
from ..privacy.ledger._accountant import PrivacyAccountant
from ..solvers._choice import SOLVERS
from ..utils._compat import BaseEstimator, Interval, StrOptions
from ..utils._stated import ReproducibleNoise, Stated
from ..utils._typing import ArrayLike, Auto, Bounds, Neighboring, Seed

_POSITIVE = [Interval(Real, 0, None, closed="neither")]
_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
_AUTO_OR_POSITIVE = [StrOptions({"auto"}), *_POSITIVE]
SEVERAL = [list, tuple, np.ndarray]
_COUNT = [Interval(Integral, 1, None, closed="left")]

# Values that the parameters of every estimator may have.
COMMON = BUDGET_CONSTRAINTS | {
    "clip": _AUTO_OR_POSITIVE,
    "max_iter": _AUTO_OR_POSITIVE,
    "solver": [StrOptions({"auto", *SOLVERS}), Solver],
    "inference": ["boolean"],
    "fit_intercept": ["boolean"],
    "feature_bounds": [None, tuple, list, np.ndarray, dict],
    "feature_scale": [None, StrOptions({"private"}), Real, tuple, list, np.ndarray],
    "row_norm_bound": [None, *_POSITIVE],
    "tol": _POSITIVE,
    "coef_path": ["boolean"],
    "warm_start": ["boolean"],
    "verbose": ["boolean", Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state", ReproducibleNoise],
    "n_threads": [None, *_COUNT],
}


@dataclass(eq=False, repr=False, kw_only=True)
class SharedParameters(BaseEstimator):
    """Parameters of every estimator, with their defaults, and what is said of them.

    A class has these texts of its own parameters and attributes, where its docstring has no others.

    **Privacy**

    - Guarantee: `coef_`, `intercept_` and every other fitted attribute are together (epsilon,
      delta)-differentially private under the `neighboring` relation; all iterates, chosen
      coordinates and directions, and what is released before the first iterate, could be published
      at the same cost. Who is in a mini-batch is never published.
    - Neighbours: data sets that differ in one record, a row of X with its target and weight
      ("replace_one": another record instead; "add_remove": none instead, with a public `n_public`).
      Where a person has several rows, :class:`~dpcd_sklearn.Persons` protects the person.
    - Not protected: the number of records (under "replace_one"), shapes, column names, parameters
      and bounds, and the set of labels unless `classes` states it; running time and memory; scores
      on training records; errors about NaN, infinite values, shapes and targets that the loss does
      not have; the choice of rows by stratified splits.
    - Assumptions: bounds and hyper-parameters were not chosen by looking at the records;
      no `ReproducibleNoise`; no step before this one learnt from the records without a charge.
    - Ledger: one entry for each fit with an `accountant`, written before a record is used.

    Parameters
    ----------
    l1_ratio : float in [0, 1] or list of them, default=0.15
        ρ for "elasticnet"; not used by the other penalties.
    constraint : {"l1_ball", "l2_ball"}, L1Ball or L2Ball, default=None
        Ball around zero that the vector of coefficients stays in, of radius 1 or, as an object of
        `dpcd_sklearn.penalties`, of a stated one: "l1_ball" for "compgd" and "frank-wolfe",
        "l2_ball" for "compgd".
    epsilon : float, default=1.0
        Privacy loss, in (0, inf]. ``float("inf")`` fits without noise and clipping; the result is
        not private.
    delta : float in (0, 1) or "auto", default="auto"
        Probability that the loss exceeds epsilon, roughly. "auto" is 1 / n_samples²; an error under
        "add_remove".
    solver : str or object of `dpcd_sklearn.solvers`, default="auto"
        A word, or an object with parameters of its own, such as ``CD("importance")``, of which a
        search states ``solver__sampling``.

        - "auto" is one public rule, that of all five estimators, from the problem, n, p, epsilon
          and delta: "newton" where records are many and dense columns few, unless a path of
          iterates is asked for; "gcd" for l1, and from l1_ratio = 0.5 on, where noise dominates;
          "skgd" otherwise; for constraints, which the generic estimators have, "compgd" or
          "frank-wolfe". With ``epsilon=inf`` it is scikit-learn's own solver, where that has the
          objective and nothing is asked of its steps.
        - "cd": proximal coordinate descent (DP-CD).
        - "gcd": greedy coordinate descent (DP-GCD).
        - "skgd": sketched gradient descent (DP-SkGD), of blocks or of all coordinates.
        - "newton": a few proximal Newton steps, by one noisy matrix of second moments and gradients
          that are clipped and noised in its geometry. As fast as a fit without noise, and best
          where records are many and features correlated; up to 4,000 features.
        - "sgd": stochastic gradient descent (DP-SGD).
        - "svrg": variance-reduced stochastic gradients (DP-SVRG).
        - "compgd": gradient descent in random directions (DP-CompGD); of mini-batches
          DP-CompMiniBatch. For the penalties None and "l2".
        - "frank-wolfe": Frank–Wolfe on the l1 ball, without a penalty; with an intercept it needs
          `penalize_intercept=True`.

        Of more than two classes "cd" and "skgd" move a coordinate in all classes at once, "gcd"
        chooses among features x classes and moves the feature in all of them, "newton" has one
        matrix for all classes, and "compgd" and "frank-wolfe" refuse them.
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        What neighbouring data sets are: see Privacy above. ``Persons(k)`` are those that differ in
        all records of one person, at most k, with k times the noise; ``Persons()`` in any number,
        whose ids `fit` is told as `groups`.
    n_public : int, default=None
        Public number of records for "add_remove", which normalises every sum. None otherwise.
    clip : float > 0 or "auto", default="auto"
        Norm that M^(-1/2) g is clipped to by Newton steps, public, in the units of the target.
        "auto" follows n, p, epsilon and delta.
    max_iter : float > 0 or "auto", default="auto"
        Number of passes; may be a fraction. A pass of "cd" and "skgd" moves every coordinate once
        on average. An update of "gcd" and "frank-wolfe" is a pass; one of "sgd" and "compgd" is its
        `sampling_rate` of a pass; an outer loop of "svrg" is two, one of "newton" a step. "auto"
        follows n, p, epsilon and delta.
    fit_intercept : bool, default=True
        Whether to fit an intercept: a coordinate that is clipped and paid for like any other.
    penalize_intercept : bool, default=False
        Whether penalties and constraints are on the intercept too; "frank-wolfe" needs that, or no
        intercept.
    positive : bool, default=False
        Whether coefficients are kept from being negative; the intercept is free.
    class_weight : dict {label: weight}, default=None
        Public weights of the classes, 1 for a label that is left out; needs `classes`. They
        multiply weights of records before contributions are clipped, so those above 1 are refused
        where there is noise, with what to write. "balanced" is refused, because it counts the
        labels of the records: where the shares of the classes are public, weights of ``min(shares)
        / (4 * share)`` find rare classes nearly as often.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column: (lo, hi)}, default=None
        Public bounds of the features, never from the data: a tuple of two scalars or arrays of
        shape (n_features,), a list of one pair a feature, or a dict of one pair for the name of
        every column of a data frame. Gives M_j. Values outside are clipped, in predictions too.
        Where n, p, epsilon and delta allow it narrower scales are **looked for within them**, so
        they may be wide; not beside `feature_scale` or for an inference: an intercept then centres
        features on their middle, unless `row_norm_bound` says that records are shorter without.
        Nothing is clipped with epsilon = inf.
    feature_scale : float, array of shape (n_features,) or "private", default=None
        Public root mean square of each feature; gives M_j in place of the bounds. "private" is for
        `feature_bounds` that may be far too wide: before the first update mean squares of the
        features within them, and their means where a free intercept makes that good, are
        **released**, for 1 to 10 % of the budget; they give M_j and centres. Where n, p, epsilon
        and delta allow no scales that improve on the bounds, and with epsilon = inf, nothing is
        released. It needs a descent: Newton steps, which release moments of rows already, refuse
        it, and "auto" then chooses none.
    row_norm_bound : float, default=None
        Public bound on the euclidean norm of a record; gives M_j if nothing else does, and a bound
        on the curvature of blocks. Longer records fit worse, since their gradients are clipped
        anyway. Where none of the three is stated, the **scales are found in the records**, for a
        share of the budget: a centre and bounds for each column, bounds around zero, or one bound
        on rows, as n, p, epsilon and delta allow (one on rows if X is sparse; without an intercept
        nothing is centred). Where they allow nothing, a warning says so and coefficients are zero;
        with a stated `clip` or `max_iter` features are taken to be of unit scale. State
        ``feature_scale=1.0`` if they are.
    target_bounds : tuple (lo, hi) or list of pairs, default=None
        Public bounds of the target, in its units; of several targets a tuple of two scalars or
        arrays of shape (n_outputs,), or a list of one pair a target. Values outside are clipped
        while fitting, and so are predictions. None finds them in the records too; ``(-1, 1)`` is
        unit scale. Where they may be far too wide, by public numbers, narrower ones or the median
        are looked for within them, for at most 10 % of the budget, unless you state a
        `feature_scale`.
    tol : float, default=1e-6
        For epsilon = inf only: stop when a sweep moves no coefficient by more than this share of
        the largest one; scikit-learn's solvers stop at measures of their own, as fine as this.
    coef_path : bool, default=False
        Whether to keep one iterate of every pass in `coef_path_` and `intercept_path_`. Iterates
        are released anyway, so it costs no privacy.
    warm_start : bool, default=False
        Whether to start from the coefficients of the earlier fit of this object, at a price of its
        own. It needs an accountant, and the earlier fit in the same ledger.
    verbose : int or bool, default=0
        Whether to print what is released, and how far the fit is: ten times, or a hundred from 2
        on, in one line that stays in place in terminals and notebooks. All of it is public.
    accountant : PrivacyAccountant, default=None
        Ledger that every fit is charged to.
    random_state : int, RandomState instance, ReproducibleNoise or None, default=None
        An int or a RandomState draws the public choices of a fit, such as the order of coordinates.
        Noise, noisy choices and batches of records come from the operating system all the same,
        so two fits differ. :class:`~dpcd_sklearn.testing.ReproducibleNoise` makes all of it
        reproducible, hence **not private**: it warns, and an accountant refuses it. With
        ``epsilon=inf`` nothing is secret, and an int determines the fit.
    n_threads : int >= 1 or None, default=None
        How many threads may read records, at most. None stands for as many as OpenMP admits, and
        outside the main thread for one. The result does not depend on it, bit for bit: what threads
        add up are integers. The limits of OpenMP (``OMP_NUM_THREADS``, threadpoolctl, the share of
        a worker process of joblib) lower it; joblib's worker threads and forked processes have one
        thread. It pays where a pass reads millions of cells: a pass has at most one thread for
        every 131,072 cells, which are records times columns read (an update of DP-CD reads two), or
        stored entries. Mini-batches, columns of sparse X and epsilon = inf have one thread.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients, float32 if X was. Of several targets each has a fit of its own, with its
        share of the budget. Released.
    sparse_coef_ : CSR matrix of shape (1, n_features) or (n_outputs, n_features)
        `coef_` as a CSR matrix, made when it is asked for: smaller where most entries are zero.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept. Released.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted. Public if `classes` states them, else published without noise.
    coef_path_ : ndarray of shape (n_points, n_features) or (n_points, n_outputs, n_features)
        Iterates at the start, after each pass and at the end; only with `coef_path`. With "tail"
        averaging `coef_` is a mean of iterates, not the last of these. Released.
    intercept_path_ : ndarray of shape (n_points,) or (n_points, n_outputs)
        Intercepts of the same iterates. Released.
    alpha_, penalty_, l1_ratio_ : float, str, float
        What was chosen, where several were stated. Released.
    strength_path_ : dict of arrays of length n_strengths
        Where a strength was chosen: all candidates ("penalty", "alpha" or "C", "l1_ratio"), their
        coefficients ("coef", "intercept"), and by how much the mean loss of each is estimated to
        exceed that of the chosen one ("excess_loss"), with the standard deviation of that by
        privacy noise ("excess_loss_std"). The estimate is of the fit's own clipped loss on these
        records. Released.

        Of several values, or with "auto", a grid that follows what was released, **one is chosen at
        no further charge** from what the Newton steps of this one fit release. Where n, p and
        epsilon are too small for a choice, n mu / sqrt(p) < max(75, p), one strength is fitted,
        with a warning before the charge. Without noise it is chosen by cross-validation, as
        scikit-learn's LassoCV, RidgeCV, ElasticNetCV and LogisticRegressionCV do.
    feature_bounds_ : tuple (lo, hi) of ndarrays of shape (n_features,), or None
        What features are clipped to, in the fit and in predictions; None is no clip. Stated, or
        found and released.
    row_norm_bound_ : float or None
        Bound on the norm of records, stated or found and released; None is none.
    target_bounds_ : tuple (lo, hi) of floats or ndarrays of shape (n_outputs,), or None
        What the target is clipped to in the fit, stated or found and released, within the stated
        ones too; None is no clip.
    coef_cov_ : ndarray of shape (n_coefs, n_coefs)
        With `inference`: covariance of `coef_` and, last, of the intercept if there is one, by
        sampling and by the noise. NaN where it is not `inference_valid_`, and of coefficients that
        the released curvature does not tell apart, which `summary` names. Released.
    coef_std_, privacy_std_ : ndarrays of shape (n_coefs,)
        Standard errors, and the part of them that is the noise. Released. Without `inference`
        `privacy_std_` is there after Newton steps for one target, the squared loss and no penalty
        or a ridge: of first order, around the fit without noise that has the same bounds, the same
        clip of gradients and the same penalty. Where many records reach the clip, that fit differs
        from least squares within the bounds. It is NaN for coefficients that the released curvature
        does not tell apart: of many columns all, if it is mostly noise (20,000 x 40, ε = 1). So
        it is for all where the last step was longer than six of it, before the steps converged.
        Other fits release no curvature, on which it depends; then it raises AttributeError.
    inference_valid_ : bool
        Whether the noisy moments are safely positive in some direction at least, the steps arrived
        and, where bounds were found, hardly any record lies outside of them (1.2/sqrt(n) of all).
        False where public numbers rule intervals out: then the fit is that of ``inference=False``.
        Released.
    outside_share_ : float
        With `inference`, where bounds were found: the share of records that lie outside of them, by
        a noisy count. Released.
    solver_ : str
        The solver that ran, a word of `solver`, or "scikit-learn" where its own solver did, without
        noise. Public.
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
    """

    epsilon: float = 1.0
    delta: Auto = "auto"
    solver: str | Solver = "auto"
    inference: bool = False
    neighboring: Neighboring = "replace_one"
    n_public: int | None = None
    clip: Auto = "auto"
    max_iter: Auto = "auto"
    fit_intercept: bool = True
    feature_bounds: Bounds | None = None
    feature_scale: ArrayLike | Literal["private"] | None = None
    row_norm_bound: float | None = None
    tol: float = 1e-6
    coef_path: bool = False
    warm_start: bool = False
    verbose: int = 0
    accountant: PrivacyAccountant | None = None
    random_state: Seed | None = None
    n_threads: int | None = None


# Parameters of the generic estimators, and of some of the presets.
GENERIC = {
    "penalty": [None, StrOptions(SEPARABLE - {Box.word}), StatedPenalty, list, tuple],
    "alpha": [*_NOT_NEGATIVE, StrOptions({"auto"}), *SEVERAL],
    "l1_ratio": [Interval(Real, 0, 1, closed="both"), *SEVERAL],
    "constraint": [None, StrOptions(set(CONSTRAINTS)), *CONSTRAINTS.values()],
    "penalize_intercept": ["boolean"],
}

REGRESSION = {
    "target_bounds": [None, tuple, list, np.ndarray],
    "positive": ["boolean"],
}
CLASSIFICATION = {
    "classes": [None, "array-like"],
    "class_weight": [None, dict, StrOptions({"balanced"})],
    "unknown_label": [StrOptions({"first", "raise"})],
    "C": [*_POSITIVE, StrOptions({"auto"}), *SEVERAL],
}


def of(table, *names):
    """The entries of a table with these names."""
    return {name: table[name] for name in names}


# Solvers of Ridge and LogisticRegression.
_PLAIN_SOLVERS = {"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"}
_PLAIN_SOLVERS |= {"svd", "cholesky", "lsqr", "sparse_cg"}


# Parameters of scikit-learn's estimators and of other private ones, and what is here for them.
_ELSEWHERE = {
    "alpha": "C of DPLogisticGCD, 1 / (n alpha), and alpha of the others",
    "C": "C of DPLogisticGCD, and alpha = 1 / (n C) of DPLinearClassifier",
    "penalty": "l1_ratio of DPLogisticGCD (0 is l2, 1 is l1), and penalty of DPLinearRegressor and "
    "DPLinearClassifier",
    "l1_ratio": "l1_ratio of DPLinearRegressor(penalty='elasticnet')",
    "loss": "loss of DPLinearRegressor and DPLinearClassifier",
    "inference": "inference of DPLinearRegressor, DPRidgeSkGD and DPLinearClassifier",
    "n_jobs": "n_threads, which changes no bit of the result",
    "multi_class": "chosen by the number of classes: more than two have one softmax model",
    "sample_weight": "fit(X, y, sample_weight=...)",
    "groups": "neighboring=Persons() and fit(X, y, groups=ids)",
    "max_contributions": "neighboring=Persons(max_contributions)",
    "eps": "epsilon",
    "n_iter": "max_iter, passes over the coordinates",
    "copy_X": "never needed: X is not changed",
    "cv": "cv of DPLassoCV, DPRidgeCV, DPElasticNetCV and DPLogisticCV, for epsilon=inf alone",
    "selection": "sampling of DPLassoCD, or solver=CD(sampling)",
    "bounds_X": "feature_bounds",
    "bounds_y": "target_bounds",
    "data_norm": "row_norm_bound",
    "max_grad_norm": "clip",
    "noise_multiplier": "found from epsilon and delta: noise_multiplier_ after a fit",
}
_ELSEWHERE |= dict.fromkeys(
    ("early_stopping", "validation_fraction", "n_iter_no_change"),
    "not there: whether to stop would tell about the records, so max_iter is public",
)
_ELSEWHERE |= dict.fromkeys(("dual", "intercept_scaling", "precompute"), "not needed")


def refuse_elsewhere(cls, params, error):
    """Raise an `error` if one of the parameters is another package's, with its name here."""
    known = cls._get_param_names()
    for name in [name for name in params if name not in known]:
        here, solvers = _ELSEWHERE.get(name), [s for s in SOLVERS.values() if hasattr(s(), name)]
        if here is None and solvers:
            here = " or ".join(f"solver={solver.__name__}({name}=...)" for solver in solvers)
        if here is not None:
            raise error(f"{cls.__name__} has no parameter {name}: here it is {here}")


def refuse_absent(loss, solver):
    """Raise a ValueError for a loss or solver of scikit-learn's, with its name here."""
    if isinstance(loss, str) and loss in ABSENT:
        raise ValueError(f"loss must not be {loss!r}: use {ABSENT[loss]}")
    if isinstance(solver, str) and solver in _PLAIN_SOLVERS:
        raise ValueError(
            f"solver={solver!r} is scikit-learn's, which adds no noise. Here it is solver='auto', "
            "the default, or solver='newton'"
        )


# ---- Parameters that are words or objects: a solver, a loss, a penalty, a set --------------------


# Parameters that may be objects, and what to write where one is needed.
MAY_BE_OBJECTS = {"solver": None, "loss": "Huber()", "constraint": "L1Ball()", "penalty": "Box()"}


def stated_solver(model):
    """The solver that is asked for, be it by stating what it alone has.

    "auto" is chosen later, from public numbers.

    Raises
    ------
    ValueError
        If a preset states a parameter of its own algorithm beside another solver.
    """
    own = {name: getattr(model, name) for name in model._of_its_name}
    own = {name: value for name, value in own.items() if value is not None}
    if not own and isinstance(model.solver, Solver):
        return model.solver
    if not own:
        return Solver() if model.solver == "auto" else SOLVERS[model.solver]()
    named = SOLVERS[model._named_after]
    if isinstance(model.solver, str) and model.solver in ("auto", named.word):
        solver = named(**own)
        solver.check()
        return solver
    name = next(iter(own))
    raise ValueError(
        f"{name}={own[name]!r} beside solver={model.solver!r}: write "
        f"solver={named.__name__}({name}={own[name]!r}), or {name}=None"
    )


def bounds_of(penalty):
    """The bounds of coefficients, None where the penalty is no box."""
    if not isinstance(penalty, Box):
        return None
    box = penalty.plain()
    return box.lo, box.hi


def ball_of(constraint):
    """The set of all coefficients, or None."""
    return CONSTRAINTS[constraint]() if isinstance(constraint, str) else constraint


def refuse_parameters_of_words(model, params):
    """Refuse to set a parameter, such as `solver__rule`, of what is a word.

    Raises
    ------
    ValueError
        With the object to write.
    """
    for name, example in MAY_BE_OBJECTS.items():
        stated = params.get(name, getattr(model, name))
        nested = [key for key in params if key.startswith(f"{name}__")]
        if nested and not isinstance(stated, Stated):
            raise ValueError(
                f"{nested[0]} needs an object as {name}, which is {stated!r}: write "
                f"{name}={example or _solvers_with(nested[0].partition('__')[2])}"
            )


def _solvers_with(parameter):
    able = [solver for solver in SOLVERS.values() if parameter in solver().get_params()]
    return " or ".join(f"{solver.__name__}()" for solver in able or SOLVERS.values())
