"""The promise of a budget to a data set: its neighbours, a public number, "auto" for delta."""

import math
from typing import NamedTuple

from ...utils._public import MOST, check_count, check_real
from ._events import NEIGHBORING
from ._gaussian_dp import gdp_mu


class Budget(NamedTuple):
    """The price of all releases of a fit together, and its public number of records.

    Budgets of one price are equal: a calibration that is cached serves every number of records.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Infinite without noise.
    delta : float in (0, 1)
    neighboring : {"replace_one", "add_remove"}, default="replace_one"
    n : int, default=None
        Public number of records, by which sums are divided; what is released costs the same
        whatever it is.
    """

    epsilon: float
    delta: float
    neighboring: str = "replace_one"
    n: int | None = None

    def __eq__(self, other):
        return isinstance(other, Budget) and self[:3] == other[:3]

    def __hash__(self):
        return hash(self[:3])

    @property
    def private(self):
        """Whether there is noise."""
        return math.isfinite(self.epsilon)

    @property
    def mu(self):
        """The largest μ whose mechanisms are (epsilon, delta)-DP."""
        return gdp_mu(self.epsilon, self.delta)


def promised(epsilon, delta, neighboring, n_public, n_samples):
    """The Budget of a fit of so many records, as its parameters are stated.

    Raises
    ------
    TypeError, ValueError
        If the relation is unknown, `n_public` does not belong to it, or delta is no number.
    """
    n_public = public_number(neighboring, n_public)
    delta = resolved_delta(delta, n_samples, n_public)
    n = int(n_samples) if n_public is None else n_public
    return Budget(float(epsilon), delta, neighboring, n)


def public_number(neighboring, n_public):
    """The public number of records under add_remove; None where their true number is public.

    Raises
    ------
    TypeError, ValueError
        If the relation is unknown, or `n_public` does not belong to it.
    """
    if neighboring not in NEIGHBORING:
        raise ValueError(f"neighboring must be one of {NEIGHBORING}, got {neighboring!r}")
    if n_public is not None:
        n_public = check_count(n_public, "n_public", high=MOST)
    if neighboring == "add_remove" and n_public is None:
        raise ValueError(
            'neighboring="add_remove" needs n_public, a public number of records: the true '
            "number is not public under this relation"
        )
    if neighboring == "replace_one" and n_public is not None:
        raise ValueError(
            'n_public is for neighboring="add_remove"; leave it out under replace_one, where '
            "n_samples is public"
        )
    return n_public


def resolved_delta(delta, n_samples, n_public):
    """δ as a number: "auto" is 1/n² of a public n.

    Raises
    ------
    TypeError, ValueError
        If it is neither a number in (0, 1) nor "auto", or n is not public.
    """
    if not isinstance(delta, str):
        return check_real(delta, "delta", low=0, high=1)
    if delta != "auto":
        raise ValueError(f'delta must be "auto" or a number in (0, 1), got {delta!r}')
    if n_public is not None:
        raise ValueError('delta="auto" is 1/n², which is not public under add_remove: state it')
    if n_samples < 2:
        raise ValueError('delta="auto" is 1/n², which is no guarantee for n_samples=1: state it')
    return 1.0 / int(n_samples) ** 2  # small integers of numpy would wrap around
