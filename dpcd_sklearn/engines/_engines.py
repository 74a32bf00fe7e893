"""The solvers by name. A new one is one engine and one line here."""

from ..privacy.mechanisms._curvature import MOST_RECORDS
from ._engine_hidden_state import HiddenStateEngine
from ._engines_coordinates import CDEngine, FrankWolfeEngine, GCDEngine, SkGDEngine
from ._engines_gradients import CompGDEngine, SGDEngine, SVRGEngine
from ._engines_newton import NewtonEngine
from ._one_vs_rest import OneVsRest, one_of

ENGINES = {
    "cd": CDEngine,
    "gcd": GCDEngine,
    "skgd": SkGDEngine,
    "compgd": CompGDEngine,
    "sgd": SGDEngine,
    "svrg": SVRGEngine,
    "frank-wolfe": FrankWolfeEngine,
    "newton": NewtonEngine,
}

# Where noise dominates, a penalty with l1 is better served by choosing coordinates.
_NOISY = 25.0
# From this signal on a few Newton steps of a regression are as accurate as hundreds of a descent,
# where features are dense and not too many for a matrix (p² numbers, solved for in p³ operations).
# Those of a classifier rest on a bound of its curvature, and are too slow where classes part.
_LOUD, _FEW = 1000.0, 1000
_FALLBACKS = ("skgd", "sgd", "cd", "frank-wolfe", "newton")


def engine_of(request):
    """The engine that fits a model, bound to its request.

    Raises
    ------
    ValueError
        If the solver can't solve the problem; the message names the solvers that can.
    """
    if request.inference and request.n_outputs > 1:
        raise ValueError("inference=True is for two classes; fit a model a pair of them")
    if request.n_outputs > 1 and not request.loss.multi_output:
        return OneVsRest(request, engine_of(one_of(request)))
    free = not request.private and request.is_preset and _suits_newton(request)
    solver = _auto(request) if free or request.solver == "auto" else request.solver
    engine = ENGINES[solver]
    if request.accounting == "hidden_state":
        if solver != "skgd":
            raise ValueError(f'accounting="hidden_state" needs solver="skgd", not {solver!r}')
        if (needs := HiddenStateEngine.needs(request)) is not None:
            raise ValueError(f'accounting="hidden_state" needs {needs}')
        engine = HiddenStateEngine if request.private else engine
    elif request.inference and (needs := engine.needs_for_inference(request)) is not None:
        raise ValueError(f"inference=True needs {needs}")
    elif engine.needs(request) is not None:
        raise ValueError(_refusal(request, solver))
    return engine(request)


def _auto(request):
    """The solver for solver="auto", from public numbers."""
    if request.accounting == "hidden_state":
        return "skgd"
    best = _best_solver(request)
    # momentum, averaging or sampling may ask for another one
    able = (name for name in (best, *_FALLBACKS) if ENGINES[name].needs(request) is None)
    return next(able, best)


def _best_solver(request):
    if request.inference:
        return "newton"
    if request.constraint is not None:
        return "compgd" if request.penalty in (None, "l2") else "frank-wolfe"
    if _suits_newton(request) and (not request.private or request.signal >= _LOUD):
        return "newton"
    share = {"l1": 1.0, "elasticnet": request.l1_ratio}.get(request.penalty, 0.0)
    if share < 0.5 or not request.private:
        return "skgd"
    noisy = request.n_normalizer * request.mu < _NOISY * request.n_coordinates**0.5
    return "gcd" if noisy else "skgd"


def _suits_newton(request):
    """Whether a few Newton steps would do, and nobody asked for other ones."""
    names = ("max_iter", "step_size", "momentum", "averaging")
    own = [getattr(request, name) for name in names]
    # without noise every sampling ends in the same place
    sampling = request.sampling if request.private else "auto"
    return (
        not request.sparse
        and request.n_features <= _FEW
        and request.n_normalizer <= MOST_RECORDS
        and all(isinstance(word, str) and word == "auto" for word in (*own, sampling))
        and not request.coef_path
        and request.accounting == "composition"
        and (request.n_classes == 0 or request.inference)
        and NewtonEngine.needs(request) is None
    )


def _refusal(request, solver):
    """Why a solver can't, and which ones can, or could after one change."""
    needs = {name: engine.needs(request) for name, engine in ENGINES.items()}
    message = f"solver={solver!r} needs {needs[solver]}"
    if working := [name for name in ENGINES if needs[name] is None]:
        return f"{message}; solvers that work as it stands: {', '.join(working)}"
    problem = (
        f"loss={request.loss.name!r}, penalty={request.penalty!r} and "
        f"constraint={request.constraint!r}"
    )
    if able := [name for name, engine in ENGINES.items() if engine.solves(request)]:
        others = "".join(f"; {name!r} needs {needs[name]}" for name in able if name != solver)
        return f"{message}; solvers for {problem}: {', '.join(able)}{others}"
    return f"{message}; no solver has {problem} together: change one of them"
