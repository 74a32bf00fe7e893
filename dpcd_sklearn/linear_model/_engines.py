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
    needs = ENGINES[solver].needs(model, loss)
    if needs is None:
        return ENGINES[solver]
    others = [name for name, engine in ENGINES.items() if engine.needs(model, loss) is None]
    alternative = f"; solvers that work as it stands: {', '.join(others)}" if others else ""
    raise ValueError(f"solver={solver!r} needs {needs}{alternative}")
