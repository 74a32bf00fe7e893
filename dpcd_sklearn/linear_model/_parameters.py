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
    """Parameters of every estimator, with their defaults."""

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
    if not own:
        return _solver_of(model.solver)
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


def _solver_of(stated):
    if isinstance(stated, Solver):
        return stated
    return Solver() if stated == "auto" else SOLVERS[stated]()


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
