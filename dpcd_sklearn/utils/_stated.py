"""Parameters that are objects: a solver, a loss, a set, the noise of a test."""

from dataclasses import dataclass
from numbers import Integral, Real

from ._compat import BaseEstimator, validate_parameter_constraints
from ._public import check_count, check_real, plain_number
from ._texts import ReadableRepr


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


@dataclass(frozen=True, repr=False)
class ReproducibleNoise(ReadableRepr):
    """A `random_state` that makes the noise of a fit reproducible, so the fit is **not private**.

    For tests, benchmarks and the search for a mistake: two fits of the same records with equal
    parameters are then the same to the last bit. Whoever knows or guesses the seed can draw the
    noise again and remove it. Such a fit warns with ReproducibleNoiseWarning, and no accountant
    admits it unless it was made with ``testing=True``; one that does reports infinity spent.

    An int or a RandomState as `random_state` is another thing: it draws the public choices of a
    fit, such as the order of coordinates, and the noise stays secret.

    Parameters
    ----------
    seed : int in [0, 2^32 - 1]
        The same seed, the same noise.

    Raises
    ------
    TypeError, ValueError
        If `seed` is no integer, or out of range.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.exceptions import ReproducibleNoiseWarning
    >>> from dpcd_sklearn.testing import ReproducibleNoise
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 3))
    >>> model = DPRidgeSkGD(random_state=ReproducibleNoise(0))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    ...     first, second = (model.fit(X, X[:, 0]).coef_ for _ in range(2))
    >>> bool(np.all(first == second))
    True
    """

    seed: int

    def __post_init__(self):
        seed = check_count(self.seed, "seed", low=0, high=2**32 - 1)
        object.__setattr__(self, "seed", seed)

    def __repr__(self):
        return f"ReproducibleNoise({self.seed})"
