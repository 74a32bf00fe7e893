"""Parameters that are objects: a solver, a loss or a set with parameters of its own."""

from numbers import Integral, Real

from sklearn.base import BaseEstimator

from ._compat import validate_parameter_constraints
from ._public import check_real, plain_number


class Stated(BaseEstimator):
    """Parameters that are stated, shown, cloned and searched as an estimator's are.

    Fits read it and never write to it.
    """

    _parameter_constraints = {}

    def check(self):
        """Refuse what a parameter may not be.

        Raises
        ------
        TypeError
            If a number is a boolean.
        ValueError
            If a parameter is out of range, NaN or of another kind.
        """
        stated, name = self.get_params(deep=False), type(self).__name__
        for key, value in stated.items():
            if isinstance(value, Real) and not isinstance(value, bool):
                number = check_real(value, f"{key} of {name}", closed="both")
                stated[key] = value if isinstance(value, Integral) else number
        validate_parameter_constraints(self._parameter_constraints, stated, caller_name=name)
        for key, value in stated.items():
            if isinstance(value, bool):
                raise TypeError(f"{key} of {name} must be no boolean, got {value!r}")

    def plain(self):
        """A copy that a fit computes with: its numbers are Python's, and nobody else holds it."""
        stated = self.get_params(deep=False)
        return type(self)(**{name: plain_number(value) for name, value in stated.items()})
