"""Frozen descriptions of what a fit releases; what it costs is in ``_accounting``.

An event says what happened, never what it costs, so that one event can be read by several
accountants. Every number in an event is public: it was fixed before a record was used.
"""

from dataclasses import dataclass

from ...utils._persons import unit_of, words_of
from ...utils._texts import ReadableRepr, counted
from ._spent import translated
from ._tuning import TRIED, n_candidates_of


@dataclass(frozen=True)
class GaussianEvent(ReadableRepr):
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
            f"{counted(self.count, 'Gaussian release')} with noise multiplier "
            f"{self.noise_multiplier:.4g}"
        )


@dataclass(frozen=True)
class SelectionEvent(ReadableRepr):
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
        return f"{counted(self.count, 'choice')} of bounded range {self.eta:.4g}"


@dataclass(frozen=True)
class CoveredEvent(ReadableRepr):
    """Adaptive uses of mechanisms, each of which tells no more than a Gaussian release would.

    That release has the stated noise, and tells everything with a small probability.

    Parameters
    ----------
    noise_multiplier : float, > 0
        Noise multiplier of the Gaussian release.
    spare : float in (0, 1]
        Probability to tell everything.
    count : int, >= 1
        Number of uses.
    """

    noise_multiplier: float
    spare: float
    count: int = 1

    def __str__(self):
        return (
            f"{counted(self.count, 'release')}, covered by a Gaussian mechanism with noise "
            f"multiplier {self.noise_multiplier:.4g} (δ₀ = {self.spare:.2g})"
        )


@dataclass(frozen=True)
class PoissonSampledEvent(ReadableRepr):
    """Adaptive Gaussian releases, each of a sum over a secret Poisson sample of the records.

    Parameters
    ----------
    sampling_rate : float in (0, 1]
        Probability of each record to be in a sample, independently.
    noise_multiplier : float, > 0
        Standard deviation of the noise over the l2 sensitivity that the sum would have if every
        record were in the sample: 2 C under "replace_one", C under "add_remove", for records of
        norm at most C.
    count : int, >= 1
        Number of releases.
    """

    sampling_rate: float
    noise_multiplier: float
    count: int = 1

    def __str__(self):
        return (
            f"{counted(self.count, 'Gaussian release')} of samples of rate "
            f"{self.sampling_rate:.4g} with noise multiplier {self.noise_multiplier:.4g}"
        )


@dataclass(frozen=True)
class TuningEvent(ReadableRepr):
    """The best of a secret random number of runs of one randomised fit (Papernot & Steinke 2022).

    Only the winner leaves: not the number of runs, other scores or times; candidates are drawn
    independently, or each is tried or not, and a run's score is part of its private output.

    Parameters
    ----------
    base : FitEvent
        One run, its score included.
    distribution : {"logarithmic", "geometric", "poisson", "subset"} or float in [-0.5, 100]
        Law of the number of runs: truncated negative binomial of shape 0, 1 or the given one,
        Poisson (which may be no run at all), or one run of each candidate with probability .95.
    mean : float, > 1 (Poisson: > 0)
        Expected number of runs.
    """

    base: "FitEvent"
    distribution: str | float
    mean: float

    def __str__(self):
        law = self.distribution
        law = law if isinstance(law, str) else f"negative binomial (shape {law:g})"
        base = self.base.releases if isinstance(self.base, FitEvent) else [self.base]
        run = " and ".join(map(str, base))
        if law == "subset":
            n = n_candidates_of(self.mean)
            return f"the best of {n} candidates, each tried with probability {TRIED}, of {run}"
        return f"the best of {law} many runs, {self.mean:.4g} on average, of {run}"


@dataclass(frozen=True)
class NonPrivateEvent(ReadableRepr):
    """A release without noise (``epsilon=inf``): no finite loss describes it."""

    def __str__(self):
        return "a release without noise (not private)"


@dataclass(frozen=True)
class FitEvent(ReadableRepr):
    """All releases of one fit, in no particular order, under one neighbouring relation.

    Parameters
    ----------
    releases : tuple of the events above
    neighboring : {"replace_one", "add_remove"}
        The relation under which the sensitivities of the releases were derived.
    max_contributions : int or None, default=1
        In how many records neighbours differ, at most: those of one person; None is any number.
        Sensitivities are to all of them.
    """

    releases: tuple
    neighboring: str = "replace_one"
    max_contributions: int | None = 1

    def __str__(self):
        return " and ".join(map(str, self.releases)) + f", under {words_of(*self.neighbours)}"

    @property
    def neighbours(self):
        """The relation, and in how many records of a person neighbours differ at most."""
        return self.neighboring, self.max_contributions

    @property
    def unit(self):
        """The unit of privacy in words."""
        return unit_of(self.max_contributions)

    def to_dp_event(self):
        """The same as an event of Google's `dp_accounting`, to check what was spent elsewhere.

        Use it with neighbours that add or remove a record: noise is stated over the sensitivity
        under this event's own relation. Choices become zCDP events, upper bounds that only the
        Rényi accountant takes.

        Returns
        -------
        event : dp_accounting.DpEvent

        Raises
        ------
        ImportError
            If `dp_accounting` is not installed.
        TypeError
            If it has no such event: samples under "replace_one".
        """
        return translated(self)
