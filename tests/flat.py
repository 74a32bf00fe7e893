"""Estimators from flat tables of parameters, where a solver's go into its object; and many fits."""

from sklearn.base import clone

from dpcd_sklearn import solvers
from dpcd_sklearn.testing import ReproducibleNoise

SOLVERS = {solver.word: solver for solver in (getattr(solvers, name) for name in solvers.__all__)}
OWN = {name for solver in SOLVERS.values() for name in solver().get_params()}


def flat(cls, *args, **parameters):
    """An estimator; `solver`, if it has parameters of its own, is a word that is stated."""
    own = {name: parameters.pop(name) for name in OWN & parameters.keys()}
    if own:
        parameters["solver"] = SOLVERS[parameters["solver"]](**own)
    return cls(*args, **parameters)


def fits(model, X, y, count):
    """So many fits of a model, each with other noise, the same in every run."""
    noises = map(ReproducibleNoise, range(count))
    return [clone(model).set_params(random_state=noise).fit(X, y) for noise in noises]
