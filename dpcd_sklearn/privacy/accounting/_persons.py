"""Persons of several records each: neighbours that differ in all of one person's, and their price.

Mechanisms state noise over what *one record* moves, and know nothing of persons. Whoever moves k
records moves every sum by k times as much at most, and every choice has k times the range. Here,
and nowhere else, the event of records becomes the event of persons; the proof is
``proofs/of_persons.md``.
"""

from dataclasses import replace

from ._calibration import with_noise
from ._events import (
    CoveredEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
)

# Releases whose loss grows with records as `with_noise` says.
_INSTEAD = {
    PoissonSampledEvent: (
        "how much less a secret sample of records tells is proved of one record, not of several. "
        'Take solver="auto", "newton", "skgd", "gcd" or "cd", which draw none'
    ),
    CoveredEvent: (
        "categories are learnt above a threshold, and how that keeps the names of several records "
        "secret is not proved. State the categories, which costs nothing"
    ),
}


def of_persons(event, max_contributions):
    """The same releases, with noise over what a person of so many records moves at most.

    Parameters
    ----------
    event : FitEvent
        Of records; an event that is of such persons already stays as it is.
    max_contributions : int or None

    Returns
    -------
    FitEvent

    Raises
    ------
    ValueError
        If it makes releases for which no rule is known.
    """
    if event.max_contributions == max_contributions:
        return event
    if event.max_contributions != 1:
        raise ValueError(
            f"the unit of one event is {event.unit}, it can't become at most {max_contributions}"
        )
    if max_contributions is None:  # of persons by their ids: so were the sensitivities
        return replace(event, max_contributions=None)
    releases = []
    for release in event.releases:
        if type(release) in (GaussianEvent, SelectionEvent):
            one = replace(event, releases=(release,))
            releases += with_noise(one, 1 / max_contributions).releases
        elif type(release) is NonPrivateEvent:
            releases.append(release)
        else:
            why = _INSTEAD.get(type(release), "no rule for several records is known")
            raise ValueError(
                f"neighboring=Persons({max_contributions}) does not cover {release}: {why}"
            )
    return replace(event, releases=tuple(releases), max_contributions=max_contributions)
