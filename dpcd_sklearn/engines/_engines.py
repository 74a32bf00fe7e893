"""The solvers by name. A new one is one engine and one line here."""

from dataclasses import replace

from ..privacy.mechanisms._curvature_units import MOST_RECORDS
from ..solvers._stated import SOLVERS
from ._engine_hidden_state import HiddenStateEngine
from ._engines_coordinates import CDEngine, FrankWolfeEngine, GCDEngine, SkGDEngine
from ._engines_gradients import CompGDEngine, SGDEngine, SVRGEngine
from ._engines_newton import NewtonEngine
from ._output_by_output import OutputByOutput, one_of

ENGINES = {
    engine.word: engine
    for engine in (
        CDEngine,
        GCDEngine,
        SkGDEngine,
        CompGDEngine,
        SGDEngine,
        SVRGEngine,
        FrankWolfeEngine,
        NewtonEngine,
    )
}

# Where noise dominates, a penalty with l1 is better served by choosing coordinates.
_NOISY = 25.0
# From this signal on a few Newton steps are as accurate as hundreds of a descent, where columns are
# dense and fewer than the signal: the noise of their matrix grows with p² / s.
_LOUD = 75.0
# The same of more than two classes, whose descents take longest.
_LOUD_OF_MANY = 20.0
_FEW = 1000  # features of a matrix: p² numbers, solved for in p³ operations
_FALLBACKS = ("skgd", "sgd", "cd", "frank-wolfe", "newton")


def engine_of(request):
    """The engine that fits a model, bound to its request.

    Raises
    ------
    ValueError
        If the solver can't solve the problem; the message names the solvers that can.
    """
    if request.inference and request.n_outputs > 1:
        raise ValueError(
            "inference=True is for one target or two classes; fit a model a target, or a pair"
        )
    if isinstance(request.loss, tuple):
        return OutputByOutput(request, [engine_of(one) for one in _of_targets(request)])
    if request.solver.word == "auto":
        request = replace(request, solver=SOLVERS[_auto(request)]())
    solver = request.solver.word
    engine = ENGINES[solver]
    if request.asks_for_smoothness and (needs := _needs_for_smoothness(request, solver)):
        raise ValueError(f'feature_scale="private" needs {needs}')
    if request.solver.accounting == "hidden_state":
        if (needs := HiddenStateEngine.needs(request)) is not None:
            raise ValueError(f'accounting="hidden_state" needs {needs}')
        engine = HiddenStateEngine if request.private else engine
    elif request.inference and (needs := engine.needs_for_inference(request)) is not None:
        raise ValueError(f"inference=True needs {needs}")
    elif engine.needs(request) is not None:
        raise ValueError(_refusal(request, solver))
    return engine(request)


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
    able = (name for name in (best, *_FALLBACKS) if ENGINES[name].needs(request) is None)
    return next(able, best)


def _best_solver(request):
    if request.inference:
        return "newton"
    if request.constraint is not None:
        return "compgd" if request.penalty in (None, "l2") else "frank-wolfe"
    if _suits_newton(request):
        return "newton"
    share = {"l1": 1.0, "elasticnet": request.l1_ratio}.get(request.penalty, 0.0)
    if share < 0.5 or not request.private:
        return "skgd"
    noisy = request.n_normalizer * request.mu < _NOISY * request.n_coordinates**0.5
    return "gcd" if noisy else "skgd"


def _suits_newton(request):
    """Whether a few Newton steps would do, and nobody asked for other ones."""
    if request.private:
        loud = _LOUD_OF_MANY if request.n_outputs > 1 else _LOUD
        worth = request.signal >= max(loud, request.n_features)
    else:
        worth = request.n_classes == 0
    return (
        worth
        and not request.sparse
        and request.n_features <= _FEW
        and request.n_normalizer <= MOST_RECORDS
        and not request.coef_path
        and request.max_iter == "auto"
        and not request.asks_for_smoothness
        and NewtonEngine.needs(request) is None
    )


def _needs_for_smoothness(request, solver):
    """What a request must change for M_j to be released, or None."""
    if solver == "newton":
        return "a descent: Newton steps release moments of rows already, so leave it None for them"
    if request.solver.accounting == "hidden_state":
        return 'accounting="composition": of a hidden state one M is fixed before the charge'
    return None


def _refusal(request, solver):
    """Why a solver can't, and which ones can, or could after one change."""
    needs = {name: engine.needs(request) for name, engine in ENGINES.items()}
    message = f"solver={solver!r} needs {needs[solver]}"
    if working := [name for name in ENGINES if needs[name] is None]:
        return f"{message}; solvers that work as it stands: {', '.join(working)}"
    problem = (
        f"loss={request.loss.name!r}, penalty={request.penalty!r} and "
        f"constraint={request.constraint_word!r}"
    )
    if able := [name for name, engine in ENGINES.items() if engine.solves(request)]:
        others = "".join(f"; {name!r} needs {needs[name]}" for name in able if name != solver)
        return f"{message}; solvers for {problem}: {', '.join(able)}{others}"
    return f"{message}; no solver has {problem} together: change one of them"
