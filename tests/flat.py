"""Estimators from flat tables of parameters: what a solver alone has goes into its object."""

from dpcd_sklearn import solvers

SOLVERS = {solver.word: solver for solver in (getattr(solvers, name) for name in solvers.__all__)}
OWN = {name for solver in SOLVERS.values() for name in solver().get_params()}


def flat(cls, *args, **parameters):
    """An estimator; `solver`, if it has parameters of its own, is a word that is stated."""
    own = {name: parameters.pop(name) for name in OWN & parameters.keys()}
    if own:
        parameters["solver"] = SOLVERS[parameters["solver"]](**own)
    return cls(*args, **parameters)
