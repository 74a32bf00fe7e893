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
from ..privacy.accounting._renyi import choices_loss, is_tractable
from ._release_tests import ReleaseResult, error_bound, judged
from ._simulated_tables import LONE

# ---- Categories of one record each: whether they are named as rarely as the threshold promises ---
#
# Such a category is named with next to no probability, so no test of two guesses would hear of a
# threshold that is too low. But without its record it can't be named at all: one name is enough.


def lone_names(runs, made_up, kind, number, n_runs, confidence, measures):
    """The row of the names of categories of one record.

    An error is a run that names none of them, where as many as can be are there; `number` is that
    of the entry.
    """
    release, n_columns = kind.release, len(runs.leader.entries[number].exact)
    group, claimed = _group(release, made_up.n, n_runs, confidence)
    drawn = runs.draws((number,), made_up.with_lone_categories(group), n_runs)
    released = ([word for words, _ in entry.released for word in words] for (entry,) in drawn)
    named = np.array([any(w is not None and w >= LONE for w in words) for words in released], float)
    errors = int(np.sum(named == 0))
    power = None
    if measures:  # of a threshold half as far away
        away = float(ndtri(min(release.spare / n_columns, 0.5))) / 2
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
    while True:
        few = np.linspace(0, len(useful) - 1, min(most, len(useful))).astype(int)
        calls = useful[np.unique(few)]
        size = sum(paid[at] for at in calls)
        mu = _mu_of_one(kind, size)
        group = max(1, min(round(best / mu), n_samples // 4))
        if group * mu > 0.8 * best or len(calls) == len(useful):
            break
        most *= 2
    while group * mu > 1.5 * best and len(calls) > 1:  # one record tells too much already
        calls = calls[::2]
        size = sum(paid[at] for at in calls)
        mu = _mu_of_one(kind, size)
    while isinstance(kind.release, SelectionEvent) and len(calls) > 1:
        if is_tractable(group * kind.release.eta, size):
            break
        calls = calls[::2]
        size = sum(paid[at] for at in calls)
    return Game(tuple(map(int, calls)), size, group, least_error(kind, size, group))


def _mu_of_one(kind, size):
    release = kind.release
    if isinstance(release, SelectionEvent):
        return release.eta / 2 * math.sqrt(size)
    if isinstance(release, PoissonSampledEvent):
        return release.sampling_rate / release.noise_multiplier * math.sqrt(size)
    return math.sqrt(size) / release.noise_multiplier


def least_error(kind, size, group):
    """The floor of a guess's error, of so many releases and records."""
    release = kind.release
    if isinstance(release, SelectionEvent):
        if not is_tractable(group * release.eta, size):
            return 0.0
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

    Of a group of records each is in a sample by itself, and all pull one way.

    The likelihood ratio of one mean is split between the ends of its cell, on the chord, which
    keeps both distributions and tells more than the truth; the losses are added by an FFT.
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
    masses = [np.maximum(m, 1e-300) for m in masses]
    p, ratio = masses[0], masses[1] / masses[0]
    losses = -np.log(ratio)
    mean, spread = p @ losses, math.sqrt(p @ losses**2)
    reach = count * abs(mean) + 12 * spread * math.sqrt(count) + np.abs(losses).max()
    size = 2 ** math.ceil(math.log2(2 * reach / _CELL + 4))
    cell = np.floor(losses / _CELL).astype(int)
    low, high = np.exp(-cell * _CELL), np.exp(-(cell + 1) * _CELL)
    upper = p * (low - ratio) / (low - high)
    table = np.zeros(size)
    np.add.at(table, cell % size, p - upper)
    np.add.at(table, (cell + 1) % size, upper)
    table = np.fft.irfft(np.fft.rfft(table) ** count, size)
    positions = np.fft.fftfreq(size, 1 / size) * _CELL
    distance = float(np.maximum(table, 0.0) @ -np.expm1(-np.maximum(positions, 0.0)))
    return min(1.0, distance + 1e-6)


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
