"""The least error of a guess between two groups that a claim for one kind of release allows.

Data sets that differ in k records are k steps apart. Of a μ-GDP release a guess errs at least with
Φ(-kμ/2); choices of bounded range η have a range of kη; of samples it is that of k records which
all pull one way in one data set and the other way in the other, each in the sample or not.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import binom

from ..privacy.accounting._events import CoveredEvent, PoissonSampledEvent, SelectionEvent
from ..privacy.accounting._loss import of_points, repeated
from ..privacy.accounting._renyi import choices_loss, is_tractable
from ._release_tests import ReleaseResult, error_bound, judged
from ._simulated_tables import LONE

# ---- Categories of one record each: whether they are named as rarely as the threshold promises ---
#
# Such a category is named with next to no probability, so no test of two guesses would hear of a
# threshold that is too low. But without its record it can't be named at all: one name is enough.


def lone_names(runs, made_up, kind, number, n_runs, confidence):
    """The row of the names of categories of one record.

    An error is a run that names none of them, where as many as can be are there; `number` is that
    of the entry.
    """
    release, n_columns = kind.release, len(runs.leader.entries[number].exact)
    group, claimed = _group(release, made_up.n, n_runs, confidence)
    drawn = runs.draws((number,), made_up.with_lone_categories(group), n_runs)
    named = np.array([_is_one_named(entry.released) for (entry,) in drawn], dtype=float)
    errors = int(np.sum(named == 0))
    away = float(ndtri(min(release.spare / n_columns, 0.5))) / 2  # of a threshold half as far
    silent = n_runs * group * n_columns * float(log_ndtr(-away))
    power = -math.expm1(silent) if _one_is_enough(n_runs, confidence) < claimed else 0.0
    row = ReleaseResult(
        "names of lone categories", f"1 within a probability of {release.spare:.2g}", 1,
        n_draws=n_runs, group=group, pair="categories of their own", power=power,
    )  # fmt: skip
    return judged(row, errors, n_runs, confidence, claimed, alike=True)


def _group(release, n_samples, n_runs, confidence):
    """As many records as leave one name a contradiction, and how often none is named at least."""
    heard, group = _one_is_enough(n_runs, confidence), 1
    while group < n_samples // 4 and 1 - _named(release, group + 1) > heard:
        group += 1
    return group, 1 - _named(release, group)


def _one_is_enough(n_runs, confidence):
    """The bound on silent runs where all but one of them are."""
    return error_bound(n_runs - 1, n_runs, confidence, alike=True)


def _named(release, group):
    return float(found_at_most(np.zeros(1), release, group)[0])


def _is_one_named(answer):
    return any(word is not None and word >= LONE for words, _ in answer for word in words)


# At this μ a guess errs once in ten times: often enough to count errors, while half of the noise
# leaves one of a hundred.
_BEST_MU = 2.5
# Between cells that are all alike beforehand. The one in the middle says nothing of either side and
# is picked in ten draws once, with half of the noise too; a larger error of the claim has room.
_BEST_MU_OF_DOUBLINGS = 1.5
# Calls that a run draws, of those of one kind: further ones take time, and tell what these do.
_MOST_CALLS = {"coordinates of gradients": 48, "greedy choices": 24, "Newton gradients": 64}
_MOST_OF_OTHERS = 12
_CELL = 0.005  # of the table of losses of samples


@dataclass(frozen=True)
class Game:
    """Which calls are drawn, how many releases they are, and how many records differ.

    Attributes
    ----------
    calls : tuple of int
    n_releases, group : int
    error : float
        What the claim allows.
    """

    calls: tuple
    n_releases: int
    group: int
    error: float


def game_of(kind, paid, n_samples, steps=()):
    """The game that shows most of one kind of release.

    `paid` are the releases of each call of a whole run, `steps` the steps from an anchor, if a call
    is about the difference from there: where a step is zero nothing is told, and more of them than
    a quarter of the coordinates leave little room beside them.
    """
    most = _MOST_CALLS.get(kind.words, _MOST_OF_OTHERS)
    best = _BEST_MU_OF_DOUBLINGS if kind.cells == "doublings" else _BEST_MU
    useful = np.arange(len(paid))
    if len(steps):
        useful = np.flatnonzero(np.any(steps, axis=1))
        most = min(most, max(1, np.shape(steps)[1] // 4))

    def drawn(most):
        """So many calls at most: how many releases they are, and the group that suits them."""
        few = np.linspace(0, len(useful) - 1, min(most, len(useful))).astype(int)
        calls = useful[np.unique(few)]
        size = sum(paid[at] for at in calls)
        mu = _mu_of_one(kind, size)
        group = max(1, min(round(best / mu), n_samples // 4))
        return calls, size, group, group * mu / best

    while drawn(most)[-1] <= 0.8 and most < len(useful):
        most *= 2
    most = min(most, len(useful))
    calls, size, group, told = drawn(most)
    # one record may tell too much already, or choices be too many to be counted
    while most > 1 and (told > 1.5 or not _is_tractable(kind.release, size, group)):
        most //= 2
        calls, size, group, told = drawn(most)
    return Game(tuple(map(int, calls)), size, group, least_error(kind, size, group))


def _mu_of_one(kind, size):
    release = kind.release
    if isinstance(release, SelectionEvent):
        return release.eta / 2 * math.sqrt(size)
    if isinstance(release, PoissonSampledEvent):
        return release.sampling_rate / release.noise_multiplier * math.sqrt(size)
    return math.sqrt(size) / release.noise_multiplier


def _is_tractable(release, size, group):
    return not isinstance(release, SelectionEvent) or is_tractable(group * release.eta, size)


def least_error(kind, size, group):
    """The floor of a guess's error, of so many releases and records."""
    release = kind.release
    if not _is_tractable(release, size, group):
        return 0.0
    if isinstance(release, SelectionEvent):
        return (1 - choices_loss(group * release.eta, size, 1e-7).delta(0.0)) / 2
    if isinstance(release, PoissonSampledEvent):
        some = replace(release, count=size)
        return (1 - sampled_distance(some, kind.neighboring, group)) / 2
    if isinstance(release, CoveredEvent):
        missed = np.linspace(-9.0, 2.0, 1101)
        found = found_at_most(ndtr(missed), release, group)
        return float(np.min((ndtr(missed) + 1 - found) / 2)) - 1e-6  # between points of the grid
    return float(ndtr(-group * _mu_of_one(kind, size) / 2))


def sampled_distance(release, neighboring, group):
    """Total variation of samples' means.

    Of a group of records each is in a sample by itself, and all pull one way. The curve
    of one mean is bounded by chords, and its losses are composed as an accountant composes them.
    """
    rate, count = release.sampling_rate, release.count
    shift = 1 / release.noise_multiplier / (2 if neighboring == "replace_one" else 1)
    there = np.arange(group + 1)
    odds = binom.pmf(there, group, rate)
    there, odds = there[odds > 1e-15], odds[odds > 1e-15]
    reach = 9.0 + shift * there[-1]
    edges = np.linspace(-reach, reach, 20_001)
    masses = [
        np.diff(sum(share * ndtr(edges - j * a) for j, share in zip(there, odds, strict=True)))
        for a in (shift, -shift if neighboring == "replace_one" else 0.0)
    ]
    masses = np.array(masses)[:, np.min(masses, axis=0) > 1e-15]
    missing = 1 - masses[0].sum()  # in cells that leave double precision: of infinite loss
    losses = np.log(masses[0] / masses[1])  # they grow from cell to cell
    first, last = math.floor(losses[0] / _CELL), math.ceil(losses[-1] / _CELL)
    epsilons = _CELL * np.arange(first, last + 1)
    above = np.searchsorted(losses, epsilons)
    tails = [np.append(np.cumsum(mass[::-1])[::-1], 0.0)[above] for mass in masses]
    loss = of_points(first, _CELL, missing + tails[0] - np.exp(epsilons) * tails[1])
    return min(1.0, repeated(loss, count, 1e-7).delta(0.0) + 1e-6)


def mu_proved(error):
    """The largest μ whose mechanisms can't have so small an error."""
    return float(max(0.0, -2 * ndtri(error)))


def found_at_most(falsely, release, group):
    """How often a test finds a group, at most, that errs so often where it is not.

    Of one record with Φ of the deviate plus μ, but for the spare; of more from one to the next.
    """
    mu, spare, found = 1 / release.noise_multiplier, release.spare, falsely
    for _ in range(group):
        deviate = ndtri(np.minimum(found / (1 - spare), 1.0))
        found = np.minimum(spare + (1 - spare) * ndtr(deviate + mu), 1.0)
    return found
