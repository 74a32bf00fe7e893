"""The solver that is stated for a fit, and ranges of parameters that several solvers have."""

from numbers import Integral, Real

from ..utils._compat import Interval, StrOptions
from ..utils._stated import Stated

AUTO = StrOptions({"auto"})
COUNT_OR_NONE = [None, Interval(Integral, 1, 2**53, closed="both")]
INNER = {"averaging": {"auto", "last", "tail", "periodic"}, "n_inner": COUNT_OR_NONE}
WEIGHTED = {"auto", "last", "tail", "weighted"}
MOMENTUM = [AUTO, Interval(Real, 0, 1, closed="left")]
RATE = [AUTO, Interval(Real, 0, 1, closed="right")]
DECAY = [Interval(Real, 0, None, closed="left")]
SHARE = Interval(Real, 0, 1, closed="neither")


def parameters_of(averaging=None, **constraints):
    """The table of one solver's parameters."""
    table = {"step_size": [AUTO, Interval(Real, 0, 1e15, closed="right")]}
    if averaging is not None:
        table["averaging"] = [StrOptions(averaging)]
    return table | constraints


class Solver(Stated):
    """Attributes that a fit reads of any solver, be it their parameter or not; "auto" itself.

    Attributes
    ----------
    word : str
        The value of an estimator's `solver` that stands for it.
    steps_by_coordinate : bool
        Whether coordinates move by steps of their own, however long rows are.
    """

    word = "auto"
    steps_by_coordinate = False
    # Values of what a solver has no parameter for.
    step_size = averaging = momentum = sampling = "auto"
    n_inner = block_size = None
    selection = "full"
