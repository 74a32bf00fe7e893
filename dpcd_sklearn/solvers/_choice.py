"""The solvers by name, and which of them fits a model. A new one is one file and one line here."""

import math
from dataclasses import replace

from ..plan._inference import has_too_few_for_intervals
from ..plan._output_by_output import OutputByOutput, one_of
from ..plan._strengths import chooses_columns, is_loud, nearest, refuse
from ..privacy.mechanisms._curvature_units import MOST_RECORDS
from ._cd import CD
from ._compgd import CompGD
from ._frank_wolfe import FrankWolfe
from ._gcd import GCD
from ._newton import Newton, NewtonPlan
from ._scikit_learn import ScikitLearnPlan, with_all_targets
from ._sgd import SGD
from ._skgd import SkGD
from ._svrg import SVRG

SOLVERS = {solver.word: solver for solver in (CD, GCD, SkGD, CompGD, SGD, SVRG, FrankWolfe, Newton)}
_PLANS = {word: solver.planned_by for word, solver in SOLVERS.items()}

# An l1 penalty is better served by greedy steps below this signal, or, where columns are many and
# dense, below this n μ / p: a descent has the noise of all columns, whichever are relevant.
_NOISY, _NOISY_OF_MANY = 25.0, 8.0
_MANY = 100
# With an l1 penalty on more columns than that, Newton steps lost to a descent by .01 to .1 of R² at
# nearly every n μ / p below this one, on wide real tables as on simulated ones.
_LOUD_OF_SPARSE = 100.0
# From this signal on a few Newton steps are as accurate as hundreds of a descent, where columns are
# dense and fewer than the signal: the noise of their matrix grows with p² / s.
_LOUD = 75.0
# The same of a regression within stated target bounds: at s of 50 to 75 Newton steps gained .02 of
# R² in 15 of 22 cases and lost it in one; at 40 to 50 they lost.
_LOUD_OF_NUMBERS = 50.0
# Where a target's bounds are found its clip is wider, and the matrix of many columns noisier beside
# it: below so much signal a column descents were better (of 22 cases of 1.5 to 4, 12 better by .01
# of R² and 5 worse). Strengths of penalties are chosen from the matrix, so they have it from 1 on.
_CLEAR_OF_FOUND = 4
# The same of counts. Derivatives of rare ones are cut to those of a median, which is zero, and
# moments of rows tell what predictions lack (48 cells of 5 to 50 columns: mean D² -.02 to .07).
_LOUD_OF_COUNTS = 25.0
# The same of quantiles, whose steps follow the few records near them.
_LOUD_OF_QUANTILES = 100.0
# The same of more than two classes, whose descents take longest.
_LOUD_OF_MANY = 20.0
# The same of persons by their ids: below it what is known of clipped persons is too little, and
# margins of labels come out half as long as they should be.
_LOUD_OF_PERSONS = 1000.0
_FEW = 1000  # features of a matrix: p² numbers, solved for in p³ operations
_FALLBACKS = ("skgd", "sgd", "cd", "frank-wolfe", "newton")


def plan_of(request):
    """The plan of a fit, bound to its request.

    Raises
    ------
    ValueError
        If the solver can't solve the problem; the message names the solvers that can.
    """
    if request.inference and (request.by_id or request.budget.max_contributions > 1):
        raise ValueError(
            "inference=True takes records to be independent, and those of one person are not: its "
            "intervals would be too short. Leave inference=False, or make each person one record, "
            "of the means of its columns, say"
        )
    if request.signs is not None and request.n_classes > 2:
        raise ValueError(
            f"monotonic_cst needs a regression or two classes, got {request.n_classes}: the "
            "probability of one of several classes depends on the coefficients of all of them"
        )
    if request.by_id:
        return _plan_by_id(request)
    if request.inference and request.n_outputs > 1:
        raise ValueError(
            "inference=True is for one target or two classes; fit one model for each, or each pair"
        )
    if ScikitLearnPlan.has(request):
        own = plan_of(replace(request, in_arrays=False))
        return ScikitLearnPlan(with_all_targets(request), otherwise=own)
    if isinstance(request.loss, tuple):
        return OutputByOutput(request, [plan_of(one) for one in _of_targets(request)])
    if request.strengths and not request.chooses:
        request = _of_one_strength(request)
    asked = request
    if request.solver.word == "auto":
        request = replace(request, solver=SOLVERS[_auto(request)]())
    solver = request.solver.word
    plan = _PLANS[solver]
    if request.asks_for_smoothness and solver == "newton":
        raise ValueError(
            'feature_scale="private" needs a descent: Newton steps release moments of rows '
            "already, so leave it None for them"
        )
    if request.inference and (needs := plan.needs_for_inference(request)) is not None:
        raise ValueError(f"inference=True needs {needs}")
    elif plan.needs(request) is not None:
        raise ValueError(_refusal(request, solver))
    if has_too_few_for_intervals(request):
        return plan_of(asked.changed(inference=False, lacks_intervals=True))
    return plan(request)


def _plan_by_id(request):
    """The plan of a fit over persons, by their ids: full gradients, or Newton steps.

    Raises
    ------
    ValueError
        If it asks for anything else, in words.
    """
    if isinstance(request.loss, tuple):
        return OutputByOutput(request, [_plan_by_id(one) for one in _of_targets(request)])
    solver = request.solver
    if solver.word == "auto":
        solver = Newton() if _suits_newton(request) else SGD(sampling_rate=1.0)
    wrong = {
        "epsilon is finite": not request.private,
        f"the solver is Newton(), SGD(sampling_rate=1) or 'auto', got {solver.word!r} (by rows: "
        "neighboring=Persons(k) with groups reads k rows of each person at most, for all solvers "
        "but mini-batches)": solver.word != "newton"
        and (solver.word != "sgd" or solver.sampling_rate != 1),
        "one strength of the penalty is stated": bool(request.strengths),
        "no feature_scale is 'private'": request.asks_for_smoothness,
        f"clip is stated with loss={request.loss.name!r}, since no mean of the target is released "
        "by ids (2.0 suits rates that are about 1 or less)": request.has_log_link
        and request.clip == "auto",
    }
    if needs := [words for words, fails in wrong.items() if fails]:
        raise ValueError(f"groups need that {' and that '.join(needs)}")
    plan, request = _PLANS[solver.word], replace(request, solver=solver)
    if (needs := plan.needs(request)) is not None:
        raise ValueError(f"groups need {needs}")
    return plan(request)


def _of_one_strength(request):
    """The request without a penalty, where strengths are chosen after it; else that of one."""
    refuse(request)
    free = replace(request, penalty=None, strength=0.0, chooses=True)
    suits = free.solver.word == "newton" or _suits_newton(free)
    if suits and is_loud(free):
        return replace(free, solver=Newton()) if free.solver.word == "auto" else free
    if chooses_columns(request):
        raise ValueError("there is too little for a choice among columns within one fit")
    one = nearest(request)
    return replace(request, penalty=one.penalty, strength=one.strength, l1_ratio=one.l1_ratio)


def _of_targets(request):
    """The request of each target, which has a loss and a scale of its own."""
    scales = zip(request.loss, request.target_center, request.target_half_width, strict=True)
    return [
        one_of(request, loss=loss, target_center=float(center), target_half_width=float(half_width))
        for loss, center, half_width in scales
    ]


def _auto(request):
    """The solver for solver="auto", from public numbers."""
    best = _best_solver(request)
    able = (name for name in (best, *_FALLBACKS) if _PLANS[name].needs(request) is None)
    return next(able, best)


def _best_solver(request):
    if request.inference:
        return "newton"
    if request.constraint is not None:
        return "compgd" if request.penalty in (None, "l2") else "frank-wolfe"
    if _suits_newton(request):
        return "newton"
    if not (_is_sparse(request) and request.private):
        return "skgd"
    size, least = request.n_coordinates, _NOISY * request.n_coordinates**0.5
    if size >= _MANY and not request.sparse and request.n_outputs == 1:
        least = max(least, _NOISY_OF_MANY * size)
    return "gcd" if request.budget.n * request.mu < least else "skgd"


def _is_sparse(request):
    """Whether the penalty says that few coefficients are expected to differ from zero."""
    share = {"l1": 1.0, "elasticnet": request.l1_ratio}.get(request.penalty, 0.0)
    return share >= 0.5


def _suits_newton(request):
    """Whether a few Newton steps would do, and nobody asked for other ones."""
    if request.private:
        size, loud = request.n_coordinates, _LOUD_OF_MANY if request.n_outputs > 1 else _LOUD
        if not (request.n_classes or request.finds_target):
            of_counts = request.has_log_link and request.loss.power < 2
            loud = _LOUD_OF_COUNTS if of_counts else _LOUD_OF_NUMBERS
        if request.loss.name == "quantile":
            loud = _LOUD_OF_QUANTILES
        if request.by_id:  # with scales that were found Newton steps err 1.3 to 1.7 times as much
            loud = math.inf if request.looks_for_features else _LOUD_OF_PERSONS
        a_column = _CLEAR_OF_FOUND if request.finds_target and not request.chooses else 1
        worth = request.signal >= max(loud, a_column * request.n_features)
        if _is_sparse(request) and size > _MANY:
            worth = worth and request.budget.n * request.mu >= _LOUD_OF_SPARSE * size
    else:
        worth = request.n_classes == 0 and request.loss.name != "quantile"
    return (
        worth
        and not request.sparse
        and request.n_features <= _FEW
        and 4 * request.budget.n <= MOST_RECORDS  # under add_remove
        and not request.coef_path
        and request.max_iter == "auto"
        and not request.asks_for_smoothness
        and NewtonPlan.needs(request) is None
    )


def _refusal(request, solver):
    """Why a solver can't, and which ones can, or could after one change."""
    needs = {name: plan.needs(request) for name, plan in _PLANS.items()}
    message = f"solver={solver!r} needs {needs[solver]}"
    if working := [name for name in _PLANS if needs[name] is None]:
        return f"{message}; solvers that work as it stands: {', '.join(working)}"
    problem = (
        f"loss={request.loss.name!r}, penalty={request.penalty!r} and "
        f"constraint={request.constraint_word!r}"
    )
    if able := [name for name, plan in _PLANS.items() if plan.solves(request)]:
        others = "".join(f"; {name!r} needs {needs[name]}" for name in able if name != solver)
        return f"{message}; solvers for {problem}: {', '.join(able)}{others}"
    return f"{message}; no solver has {problem} together: change one of them"
