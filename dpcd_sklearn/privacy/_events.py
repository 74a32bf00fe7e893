"""Frozen descriptions of what a fit releases; what it costs is in ``_accounting``.

An event says what happened, never what it costs, so that one event can be read by several
accountants. Every number in an event is public: it was fixed before a record was used.
"""

from dataclasses import dataclass

NEIGHBORING = ("replace_one", "add_remove")


def _plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


@dataclass(frozen=True)
class GaussianEvent:
    """Adaptive releases of vectors or scalars with Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float, > 0
        Standard deviation of the noise over the l2 sensitivity of the released quantity.
    count : int, >= 1
        Number of releases.
    """

    noise_multiplier: float
    count: int = 1

    def __str__(self):
        return (
            f"{_plural(self.count, 'Gaussian release')} with noise multiplier "
            f"{self.noise_multiplier:.4g}"
        )


@dataclass(frozen=True)
class SelectionEvent:
    """Adaptive choices of one candidate each, by Gumbel noise (exponential mechanism).

    Parameters
    ----------
    eta : float, > 0
        Bounded range of one choice: twice the sensitivity of the scores over the noise scale.
    count : int, >= 1
        Number of choices.
    """

    eta: float
    count: int = 1

    def __str__(self):
        return f"{_plural(self.count, 'choice')} of bounded range {self.eta:.4g}"


@dataclass(frozen=True)
class NonPrivateEvent:
    """A release without noise (``epsilon=inf``): no finite loss describes it."""

    def __str__(self):
        return "a release without noise (not private)"


@dataclass(frozen=True)
class FitEvent:
    """All releases of one fit, in no particular order, under one neighbouring relation.

    Parameters
    ----------
    releases : tuple of GaussianEvent, SelectionEvent or NonPrivateEvent
    neighboring : {"replace_one", "add_remove"}
        The relation under which the sensitivities of the releases were derived.
    """

    releases: tuple
    neighboring: str = "replace_one"

    def __str__(self):
        relation = self.neighboring.replace("_", "-")
        return " and ".join(map(str, self.releases)) + f", under {relation} neighbours"
