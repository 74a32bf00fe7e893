"""The solvers by name. A new one is one engine and one line here."""

from ._engine_hidden_state import HiddenStateEngine
from ._engines_coordinates import CDEngine, FrankWolfeEngine, GCDEngine, SkGDEngine
from ._engines_gradients import CompGDEngine, SGDEngine, SVRGEngine

ENGINES = {
    "cd": CDEngine(),
    "gcd": GCDEngine(),
    "skgd": SkGDEngine(),
    "compgd": CompGDEngine(),
    "sgd": SGDEngine(),
    "svrg": SVRGEngine(),
    "frank-wolfe": FrankWolfeEngine(),
}
_HIDDEN_STATE = HiddenStateEngine()


def engine_of(model, solver, loss):
    """The engine that fits a model.

    Raises
    ------
    ValueError
        If the solver can't solve the problem; the message names the solvers that can.
    """
    if model.accounting == "hidden_state":
        if solver != "skgd":
            raise ValueError(f'accounting="hidden_state" needs solver="skgd", not {solver!r}')
        if (needs := _HIDDEN_STATE.needs(model, loss)) is not None:
            raise ValueError(f'accounting="hidden_state" needs {needs}')
        return _HIDDEN_STATE if model.epsilon < float("inf") else ENGINES[solver]
    if ENGINES[solver].needs(model, loss) is None:
        return ENGINES[solver]
    raise ValueError(_refusal(model, solver, loss))


def _refusal(model, solver, loss):
    """Why a solver can't, and which ones can, or could after one change."""
    needs = {name: engine.needs(model, loss) for name, engine in ENGINES.items()}
    message = f"solver={solver!r} needs {needs[solver]}"
    if working := [name for name in ENGINES if needs[name] is None]:
        return f"{message}; solvers that work as it stands: {', '.join(working)}"
    problem = f"loss={loss!r}, penalty={model.penalty!r} and constraint={model.constraint!r}"
    if able := [name for name, engine in ENGINES.items() if engine.solves(model, loss)]:
        others = "".join(f"; {name!r} needs {needs[name]}" for name in able if name != solver)
        return f"{message}; solvers for {problem}: {', '.join(able)}{others}"
    return f"{message}; no solver has {problem} together: change one of them"
