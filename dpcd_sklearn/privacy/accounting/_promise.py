"""The promise of a budget to a data set: its neighbours, a public number, "auto" for delta."""

from ...utils._public import MOST, check_count, check_real
from ._events import NEIGHBORING


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
