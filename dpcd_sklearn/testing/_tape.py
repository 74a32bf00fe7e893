"""Run on one data set, replay on a neighbour, and compare all that is asked."""

import copy
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..privacy.accounting import _events as events
from ..privacy.ledger._prepaid import NeverCopied
from ..privacy.mechanisms._questions import Choices, GaussianNoise, NoNoise
from ..privacy.mechanisms._tables import NamedCounts
from ..privacy.noise import NoiseSource
from ..utils._stated import ReproducibleNoise
from ._visible import LeakError, State, difference, errors_of, fingerprint, outcome

_ROUNDING = 1 + 2e-15  # to which distances are right; ranges of log odds have more to spare
_ROOM = 2**62  # of an answer: with its noise it is an int64


@dataclass(frozen=True)
class Entry:
    """A question that was asked, and what came out.

    Attributes
    ----------
    question, mechanism : object
    asked : tuple
        Their fingerprints.
    exact : object
        The exact answer, which is secret.
    released : object
        The released answer, or the exception that was raised in its place.
    """

    question: object
    mechanism: object
    asked: tuple
    exact: object
    released: object


class Recording(NeverCopied, ReproducibleNoise):  # a copy would be another tape
    """A `random_state` that records what a fit asks of records, and what is released.

    As ReproducibleNoise it makes the noise known: the fit is **not private**, and accountants
    refuse it unless they were made with ``testing=True``.

    Parameters
    ----------
    seed : int, default=0
        Draws the noise and the public choices.
    arbitrary : bool, default=False
        Whether some answers are arbitrary ones inside of their domain, which hardly any records
        give. They lead to branches that few data sets reach.

    Attributes
    ----------
    entries : list of Entry
        In the order of the questions.
    coins : list of (str, object)
        Secret coins by their names.
    rates : list of float
        Probability of a record to be in each batch.
    plan : SolverPlan or None
        The latest one of a model's fit.
    """

    def __init__(self, seed: int = 0, arbitrary: bool = False):
        self.__dict__.update(seed=seed, arbitrary=arbitrary, entries=[], coins=[], rates=[])
        self.__dict__.update(returned=None, plan=None)
        generator = np.random.default_rng(seed)
        share = generator.choice([0.1, 0.5, 1.0]) if arbitrary else 0.0
        self.__dict__.update(_noise=_noise(seed), _generator=generator, _share=share)

    def planned(self, plan):
        """Keep the plan of a fit."""
        self.__dict__["plan"] = plan

    def release(self, place, question, mechanism, drawn=None):
        """Answer a question; mechanisms call it in place of their source of noise.

        Compiled oracles say what they have `drawn`, in place of which they take what is returned.
        """
        exact = released = None
        try:
            exact = question.answer(place)
            released = mechanism.release(exact, self._noise)
            if self._generator.random() < self._share:
                released = _arbitrary_answer(mechanism, exact, self._generator)
        except Exception as error:
            released = error
        asked = fingerprint(question), fingerprint(mechanism)
        exact = copy.deepcopy(exact)
        self.entries.append(Entry(question, mechanism, asked, exact, copy.deepcopy(released)))
        if isinstance(released, Exception):
            raise released
        return released

    def coin(self, name: str, draw: Callable[[], Any]) -> Any:
        """Draw a secret coin."""
        self.coins.append((name, draw()))
        return copy.deepcopy(self.coins[-1][1])

    def words(self, name: str, size: int) -> np.ndarray:
        """Draw 64 secret bits for each record."""
        draw = self._generator.integers
        return self.coin(name, lambda: draw(2**64, size=size, dtype=np.uint64))

    def members(self, n_samples: int, threshold: int) -> np.ndarray:
        """Draw the records of a batch: each with a probability of threshold / 2^64."""
        self.rates.append(threshold / 2.0**64)
        return np.flatnonzero(self.words("batch", n_samples) < np.uint64(threshold))

    def sample(self, n_rows: int, halvings: int) -> np.ndarray:
        """Draw the rows that are counted: each with a probability of 2^-halvings."""
        return np.flatnonzero(self.words("counted", n_rows) < np.uint64(2 ** (64 - halvings)))

    def stated(self) -> list:
        """State what each entry costs, by its mechanism: an event, or None without noise."""
        rates = iter(self.rates)
        return [_event_of(entry, rates) for entry in self.entries]

    def events(self, max_contributions: int | None = 1) -> Counter:
        """Count the releases as a privacy event of persons with so many records does."""
        found = Counter()
        for release in filter(None, self.stated()):
            found[key_of(release, max_contributions)] += release.count
        return found

    def __reduce_ex__(self, protocol):
        raise TypeError("a tape belongs to the process that records it")

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self):
        return "tape"


class Replay(Recording):
    """A `random_state` that gives the answers and coins of a recording.

    Parameters
    ----------
    recording : Recording
    removed : int, default=None
        Row of the recording's records that is missing here, under "add_remove".
    other_coins : bool, default=False
        Whether secret coins are drawn anew. Exact answers then differ by more than one record
        moves them, and only what is visible is compared. A search whose number of runs is a coin
        asks other questions too, so its answers are drawn anew: compare what it shows beside its
        winner.
    max_contributions : int, default=1
        In how many records the data sets differ, at most: answers may move by as many times the
        sensitivity to one of them.
    """

    def __init__(
        self,
        recording: Recording,
        removed: int | None = None,
        other_coins: bool = False,
        max_contributions: int = 1,
    ):
        super().__init__(recording.seed)
        of_searches = any(name == "runs" for name, _ in recording.coins)
        self.__dict__.update(
            _recording=recording, _removed=removed, _other_coins=other_coins, leak=None,
            _n_coins=0, excess=0.0, _answers_anew=other_coins and of_searches,
            _most=max_contributions,
            _generator=np.random.default_rng([recording.seed, 1]),
        )  # fmt: skip

    def release(self, place, question, mechanism, drawn=None):
        if self._answers_anew:
            return super().release(place, question, mechanism)
        try:
            released = self._checked(place, question, mechanism)
        except Exception as error:
            self._keep(error)
            raise
        if isinstance(released, Exception):
            raise released
        return copy.deepcopy(released)

    def _keep(self, error):
        """Keep the first failure: whoever catches it can't hide it."""
        self.__dict__["leak"] = self.leak or error

    def _checked(self, place, question, mechanism):
        number = len(self.entries)
        name = f"question {number} ({type(question).__name__})"
        if number == len(self._recording.entries):
            raise LeakError(f"{name} is one more than before")
        before = self._recording.entries[number]
        asked = fingerprint(question), fingerprint(mechanism)
        if asked != before.asked:
            raise LeakError(f"{name} is another one: {difference(before.asked, asked)}")
        exact = None
        try:
            exact = question.answer(place)
            released = mechanism.release(exact, _noise(0))  # it must not fail on this answer either
        except Exception as error:
            if errors_of(error) != errors_of(before.released):
                raise LeakError(f"{name} failed: {error!r}; before: {before.released!r}") from error
        else:
            if isinstance(before.released, Exception):
                raise LeakError(f"{name} failed before: {before.released!r}")
            if fingerprint(before.mechanism.release(exact, _noise(0))) != fingerprint(released):
                raise LeakError(f"{name} has a mechanism that depends on more than it states")
            self._check_distance(name, mechanism, before.exact, exact)
        self.entries.append(Entry(question, mechanism, asked, exact, before.released))
        return before.released

    def _check_distance(self, name, mechanism, before, exact):
        if not isinstance(mechanism, NamedCounts):
            kinds = [(getattr(one, "dtype", None), np.shape(one)) for one in (before, exact)]
            if kinds[0] != kinds[1] or kinds[0][0] not in (np.int64, object):
                raise LeakError(f"{name} has answers that are not whole numbers alike: {kinds}")
            if any(not -_ROOM < int(one) < _ROOM for one in np.ravel(exact)):
                raise LeakError(f"{name} has an answer that leaves no room for noise")
        if self._other_coins:
            return
        excess = mechanism.excess(before, exact)
        self.__dict__["excess"] = max(self.excess, excess)
        if not excess <= self._most * _ROUNDING:
            raise LeakError(f"{name} moved by {excess:.6g} times its sensitivity")

    def coin(self, name: str, draw: Callable[[], Any]) -> Any:
        if self._other_coins:
            return super().coin(name, draw)
        return copy.deepcopy(self._forced(name))

    def words(self, name: str, size: int) -> np.ndarray:
        if self._other_coins:
            return super().words(name, size)
        words = self._forced(name)
        if self._removed is not None and len(words) == size + 1:
            words = np.delete(words, self._removed)
        if len(words) != size:
            self._keep(LeakError(f"{size} coins were drawn, {len(words)} before ({name})"))
            raise self.leak
        return words

    def _forced(self, name):
        number = self._n_coins
        self.__dict__["_n_coins"] = number + 1
        if number >= len(self._recording.coins) or self._recording.coins[number][0] != name:
            self._keep(LeakError(f"coin {number} ({name}) was not drawn before"))
            raise self.leak
        return self._recording.coins[number][1]

    def check_finished(self):
        """Raise the first leak, also one that was caught; and one if questions are missing."""
        if self.leak is not None:
            raise self.leak
        if self._answers_anew:
            return
        before = self._recording
        if missing := len(before.entries) - len(self.entries):
            raise LeakError(f"{missing} questions were not asked")
        if missing := len(before.coins) - (len(self.coins) or self._n_coins):
            raise LeakError(f"{missing} coins were not drawn")


def replay(
    fit: Callable[[Any, Recording], Any],
    data: Any,
    neighbour: Any,
    *,
    seed: int = 0,
    arbitrary: bool = False,
    removed: int | None = None,
    other_coins: bool = False,
    max_contributions: int = 1,
) -> Replay:
    """Fit on records, replay on neighbouring ones, and compare all that is asked and seen.

    Parameters
    ----------
    fit : callable
        ``fit(data, random_state)`` returns what became visible: a fitted object, or a tuple of
        objects and of accountants with their entries. It builds its estimators anew and gives
        `random_state` to each of them.
    data, neighbour : object
        Two data sets that differ in one record, or in `max_contributions` of one person, as `fit`
        takes them.
    seed, arbitrary : as of Recording
    removed, other_coins, max_contributions : as of Replay

    Returns
    -------
    replay : Replay
        ``entries`` are the questions; ``excess`` is the largest distance of two exact answers over
        its sensitivity; ``returned`` is what the second fit returned.

    Raises
    ------
    LeakError
        If a question, a coin or anything visible differs: attributes, pickles, warnings, printed or
        logged text, exceptions with their causes, what stays in modules and caches of this package.
        If an exact answer moved too far. And if the first fit changed the data, or raised an
        exception after a release.
    """
    recording = Recording(seed, arbitrary)
    state = State()
    first = outcome(fit, data, recording, state)
    state.restore()
    again = Replay(recording, removed, other_coins, max_contributions)
    second = outcome(fit, neighbour, again, state)
    again.check_finished()
    if first != second:
        raise LeakError(f"what is visible differs: {difference(first, second)}")
    if "error" in first and recording.entries:
        raise LeakError(f"a charged fit failed: {first['error'][:2]}")
    return again


# ---- what is asked -------------------------------------------------------------------------------


def _noise(seed):
    return NoiseSource(seed.to_bytes(32, "little"))


def _arbitrary_answer(mechanism, exact, rng):
    """An answer inside of its domain that no records need to have given."""
    if isinstance(mechanism, Choices):
        scores, width = np.concatenate([*mechanism.tables(exact)]), mechanism.width
        last = scores.shape[1] // width - 1
        groups = np.array([rng.permutation(last + 1)[: mechanism.count] for _ in scores])
        if mechanism.count == 1:  # outer cells have branches of their own
            ends = rng.choice([0, min(1, last), max(last - 1, 0), last], groups.shape)
            groups = np.where(rng.random(groups.shape) < 0.5, ends, groups)
        return groups * width + rng.integers(width, size=groups.shape)
    if isinstance(mechanism, NamedCounts):
        found = []
        for counts in exact:
            named = tuple(category for category, _ in counts if rng.random() < 0.5)
            found.append((named, rng.uniform(0, 1e4, len(named))))
        return found
    size = rng.choice([0.0, *10.0 ** np.arange(15), 2.0**52])
    shape = rng.choice([np.ones, rng.standard_normal, rng.standard_cauchy])(exact.shape)
    noisy = np.clip(np.rint(rng.choice([-1, 1]) * size * shape), -(2.0**52), 2.0**52)
    return noisy.astype(np.int64).astype(exact.dtype)


def _event_of(entry, rates):
    """The cost of an entry by its mechanism."""
    mechanism, question = entry.mechanism, entry.question
    if isinstance(mechanism, GaussianNoise):
        if getattr(question, "sampled", False):
            return events.PoissonSampledEvent(next(rates, 1.0), mechanism.noise_multiplier, 1)
        return events.GaussianEvent(mechanism.noise_multiplier)
    if isinstance(mechanism, NamedCounts) and not isinstance(mechanism.noise, NoNoise):
        beyond = (mechanism.least - mechanism.units) / 2.0**mechanism.noise.bits
        spare = len(entry.exact) * float(ndtr(-beyond))
        return events.CoveredEvent(mechanism.noise.noise_multiplier, spare)
    if isinstance(mechanism, Choices) and mechanism.eta:
        return events.SelectionEvent(mechanism.eta, np.size(entry.released))
    return None


def key_of(release, k=1):
    """A kind of release; with its numbers as an event of persons of k records states them."""
    share = 1 if k in (None, 1) else 1 / k  # by their ids persons are what mechanisms state
    number = getattr(release, "noise_multiplier", math.nan) * share
    if hasattr(release, "eta"):
        number = release.eta / share
    rate = [f"{release.sampling_rate:.9g}"] if hasattr(release, "sampling_rate") else []
    return type(release).__name__, number, *rate


def _spare_of(releases):
    """The probabilities that covers of all these leave out, together."""
    return sum(release.spare * release.count for release in releases if hasattr(release, "spare"))


def unpaid(recording: Recording, event: Any) -> Counter:
    """Releases that were made and not charged, or (negative) charged and not made.

    Parameters
    ----------
    recording : Recording
    event : FitEvent
        What was charged.

    Returns
    -------
    Counter
        Empty where questions and event agree.
    """
    found = recording.events(event.max_contributions)
    for release in event.releases:
        found[key_of(release)] -= getattr(release, "count", 1)
    made, paid = map(_spare_of, (recording.stated(), event.releases))
    found["spare", made, paid] = int(made > paid * (1 + 1e-9))
    return Counter({kind: count for kind, count in found.items() if count})
