"""The tape of an audit: a run that leads, and runs that follow it and draw some answers afresh.

A leading run keeps all releases. One that follows it draws some of them afresh, and its solver
hears the leader's answers to all: given these, what followers draw is independent, from one draw to
the next and of all that was released before. Compiled oracles draw as in every fit.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np

from ..privacy.accounting._events import CoveredEvent, PoissonSampledEvent
from ..privacy.mechanisms._quantiles import QuantileChoices
from ..privacy.mechanisms._questions import GreedyChoices
from ..privacy.noise import NoiseSource
from ..testing._tape import Entry, Recording


@dataclass(frozen=True)
class Kind:
    """Releases of one kind at one noise.

    Parameters
    ----------
    words : str
        Its name in a table.
    release : FitEvent's release
        What pays for each of them.
    neighboring : str
    cells : str, default=""
        Between which cells quantiles are chosen.
    """

    words: str
    release: object
    neighboring: str
    cells: str = ""


def kinds_of(tape, event):
    """By kind the numbers of its entries, and how many releases each is; `event` was charged."""
    found = {}
    for number, (entry, release) in enumerate(zip(tape.entries, tape.stated(), strict=True)):
        if release is None:
            continue
        words, cells = _words_of(entry, tape.plan)
        of_one = _as_charged(replace(release, count=1), event)
        kind = Kind(words, of_one, event.neighboring, cells)
        found.setdefault(kind, {})[number] = release.count
    return found


def _as_charged(release, event):
    """A release with the sampling rate, or the spare, that was charged for it."""
    if not isinstance(release, (PoissonSampledEvent, CoveredEvent)):
        return release
    of_kind = [charged for charged in event.releases if type(charged) is type(release)]
    noise = release.noise_multiplier
    same = (replace(one, count=1) for one in of_kind if one.noise_multiplier == noise)
    return next(same, release)


def _words_of(entry, plan):
    """The name of an entry's kind, and the cells of its choices."""
    question, mechanism = entry.question, entry.mechanism
    if isinstance(mechanism, QuantileChoices):
        if question.around is None or question.of == "row_norm":
            return "choices of scales", "octaves" if question.edges is None else "linear"
        if mechanism.intervals:
            return "choices of scales", "intervals"
        prior = mechanism.prior  # it favours one side, if any
        is_even = prior is None or prior[0] == prior[1]
        return ("choices of tails", "doublings") if is_even else ("choices of scales", "tails")
    if isinstance(mechanism, GreedyChoices):
        return "greedy choices", ""
    words = question.name
    if plan is None:  # a transformer
        words = {"curvature": "second moments"}.get(words, words)
    elif words == "coordinates of gradients" and (part := plan.part_of("intercept")) is not None:
        settles = mechanism.noise_multiplier == part.releases[0].noise_multiplier
        words = "settled intercept" if settles else words
    return words, ""


class EnoughError(Exception):
    """Ends a run that has drawn what is wanted of it."""


class AuditTape(Recording):
    """A `random_state` for one run of an audit, with noise of the operating system's entropy.

    Parameters
    ----------
    seed : int
        Draws the public choices.
    leader : AuditTape, default=None
        Tape of the run that this one follows.
    wanted : collection of int, default=()
        Which entries a follower draws; a leader draws all.

    Attributes
    ----------
    n_left : int or None
        Entries that are wanted and still to be drawn; None is all of a run.
    """

    def __init__(self, seed, leader=None, wanted=()):
        super().__init__(seed)
        self.__dict__.update(
            leader=leader, wanted=frozenset(wanted), n_left=len(wanted) or None,
            _noise=NoiseSource(), _generator=np.random.default_rng(),
        )  # fmt: skip

    def release(self, place, question, mechanism, drawn=None):
        """The answer that a solver hears: that of the leader, where there is one."""
        number, exact = len(self.entries), None
        if self.leader is None or number in self.wanted:
            exact = copy.copy(question.answer(place))
            drawn = mechanism.release(exact, self._noise) if drawn is None else drawn
            if self.n_left is not None:
                self.__dict__["n_left"] -= 1
            if isinstance(mechanism, GreedyChoices):  # scores need the oracle, and so its records
                exact, mechanism = mechanism.scores(exact), replace(mechanism, scores=np.asarray)
        self.entries.append(Entry(question, mechanism, (), exact, drawn))
        if self.n_left == 0:
            raise EnoughError
        leader = self if self.leader is None else self.leader
        return copy.copy(leader.entries[number].released)
