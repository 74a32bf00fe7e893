"""Parameters that are words or objects: a solver, a loss, a penalty, a set."""

from ..penalties import CONSTRAINTS, Box
from ..plan._solver import Solver
from ..solvers._choice import SOLVERS
from ..utils._stated import Stated

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
