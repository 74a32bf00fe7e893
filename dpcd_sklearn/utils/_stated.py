"""Parameters: how a constructor keeps them, and those that are objects with some of their own."""

import inspect
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import TypeVar

from sklearn.base import BaseEstimator

from ._compat import validate_parameter_constraints
from ._public import check_real, plain_number

_Constructor = TypeVar("_Constructor", bound=Callable[..., None])


def keeps_parameters(constructor: _Constructor) -> _Constructor:
    """A decorator of an ``__init__`` without a body: every parameter becomes an attribute."""
    _, *parameters = inspect.signature(constructor).parameters.values()
    defaults = {parameter.name: parameter.default for parameter in parameters}

    @wraps(constructor)
    def __init__(self, *args, **params):  # noqa: N807
        constructor(self, *args, **params)  # Python refuses what is no parameter, or missing
        vars(self).update(defaults | dict(zip(defaults, args, strict=False)) | params)

    return __init__


class NeverCopied:
    """Copies and clones of an object are the object itself."""

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


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
