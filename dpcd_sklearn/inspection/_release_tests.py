"""Tests that tell two data sets by what releases answer, and the least errors that claims allow."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import log_ndtr, ndtr, ndtri

from ..privacy.accounting._events import CoveredEvent, PoissonSampledEvent, SelectionEvent
from ..privacy.accounting._loss import of_points, repeated
from ..privacy.accounting._renyi import choices_loss, is_tractable
from ..privacy.mechanisms._tables import NamedCounts
from ..privacy.noise import NoiseSource
from ..utils._texts import ReadableRepr
from ._simulated_records import COMMON, LONE

# ---- Bounds, powers and verdicts of all audits, from how many guesses were wrong -----------------
#
# (a) A test is fixed; then come n fresh runs over each of two data sets, and the test guesses which
#     one it was. k of the 2n guesses are wrong.
# (b) Let p be the mean probability of a wrong guess. The guesses are independent, so for k <= 2np -
#     1 the probability of at most k errors is at most that of a Binomial(2n, p) (Hoeffding 1956,
#     Theorem 4). Let U(k) be the larger of (k + 1) / 2n and Clopper & Pearson's bound, the Beta(k +
#     1, 2n - k) quantile of the confidence. With the largest k of U(k) < p the condition holds and
#     the binomial tail is below 1 - confidence: U(errors) < p is as rare.
# (c) No guess errs less than a claim's floor (below): a bound below the floor
#     contradicts the claim. The bounds on μ and ε are those whose floor is this bound. Nothing was
#     assumed about the noise, the statistic or the pair: these decide how strong the test is, which
#     the audit measures with half of the noise. It can show that a claim is wrong; it can never
#     show that one is right.

REQUIRED_POWER = 0.9


def error_bound(errors, n, confidence, alike=False):
    """Upper confidence bound on the mean probability of an error in n independent guesses.

    Guesses that are `alike` have one probability each, so that their errors are binomial.
    """
    if errors >= n:
        return 1.0
    binomial = stats.beta.isf(1 - confidence, errors + 1, n - errors)
    if alike:
        return float(binomial)
    # where Hoeffding's comparison with a binomial begins
    return float(min(1.0, max(binomial, (errors + 1) / n)))


def power_of(errors, n_seen, n_runs, confidence, claimed):
    """Probability that an audit of n_runs over each data set contradicts what erred so often.

    `errors` of `n_seen` guesses of other runs were wrong; `claimed` is the least error of the
    claim.
    """
    n = 2 * n_runs
    # bounds grow with errors: so many numbers of them contradict, from zero on
    number = bisect_left(range(n), claimed, key=lambda k: error_bound(k, n, confidence))
    return float(stats.betabinom.cdf(number - 1, n, errors + 0.5, n_seen - errors + 0.5))


@dataclass(frozen=True)
class ReleaseResult(ReadableRepr):
    """Errors of the best guess from one kind of release, and what they prove.

    Attributes
    ----------
    kind : str
    claim : str
        Claim of the event, for all releases of this kind.
    n_releases : int
        That a fit makes.
    n_draws : int
        That the guesses were made from: 0 if none could be exercised.
    group : int
        Records that the two data sets differ in.
    pair : str
        How they differ.
    n_guesses : int
    error, error_upper, error_claimed : float
        Share of wrong guesses, the upper confidence bound on its mean, and the least that the claim
        allows.
    power : float or None
        Probability that the same audit contradicts this release with half of its noise, measured;
        of names of lone categories with half of the way to the threshold, computed.
    noticed_noise : float or None
        The largest share of the claimed noise that would be noticed with a power of 0.9, from how
        far the data sets were told apart; None if not even 0.01 would.
    verdict : {"contradiction", "passed", "inconclusive"}
    """

    kind: str
    claim: str
    n_releases: int
    n_draws: int = 0
    group: int = 0
    pair: str = "none"
    n_guesses: int = 0
    error: float = math.nan
    error_upper: float = 1.0
    error_claimed: float = 0.0
    power: float | None = None
    noticed_noise: float | None = None
    verdict: str = "inconclusive"


def judged(row, errors, n_guesses, confidence, claimed, alike=False):
    """A row with the bound on its errors and the verdict; without power nothing is passed."""
    upper, verdict = error_bound(errors, n_guesses, confidence, alike), "inconclusive"
    if upper < claimed:
        verdict = "contradiction"
    elif row.power is not None and row.power >= REQUIRED_POWER:
        verdict = "passed"
    return replace(
        row, n_guesses=n_guesses, error=errors / n_guesses, error_upper=upper,
        error_claimed=claimed, verdict=verdict,
    )  # fmt: skip


def power_text(power):
    """Digits of a power, never more than there is: .8996 is no .9."""
    return "unknown" if power is None else f"{np.floor(power * 1000) / 1000:.3f}"


def separation(one, other):
    """Distance of means in standard deviations: μ, for Gaussians of one variance."""
    gap, spread = np.mean(one) - np.mean(other), np.sqrt((np.var(one) + np.var(other)) / 2)
    if gap == 0 or not np.isfinite(gap):
        return 0.0
    return float(min(abs(gap) / spread, 1e6)) if spread > 0 else 1e6


# ---- Tests: a run is a list of entries of a tape, whose exact answers are secret elsewhere -------


class ReleaseTest:
    """Says "first data set" above a threshold."""

    threshold = 0.0

    def _set_threshold(self, one, other):
        """As many deviations from the one mean as from the other."""
        wide, narrow = np.std(one) + 1e-300, np.std(other) + 1e-300
        self.threshold = (np.mean(one) * narrow + np.mean(other) * wide) / (wide + narrow)

    def errors(self, values):
        """Wrong guesses of statistics of either side."""
        one, other = values
        return int(np.sum(one <= self.threshold) + np.sum(other > self.threshold))


class GaussianTest(ReleaseTest):
    """Along the difference of exact answers, over the variances of the noise."""

    def learn(self, looks):
        """Fix the test by runs over each data set."""
        exact, noise = zip(*(_exact_and_noise(look) for look in looks), strict=True)
        gap = np.mean(exact[0], axis=0) - np.mean(exact[1], axis=0)
        variance = np.mean(np.concatenate(noise) ** 2, axis=0)
        # a variance of a few runs is known to a part of itself
        doubt = 4 / len(looks[0])
        around = (1 - doubt) * variance + doubt * np.median(variance)
        self._weights = gap / np.maximum(around, 1e-12 * (np.mean(variance) or 1.0))
        self._set_threshold(*map(self.of, looks))

    def of(self, runs, share=1.0):
        """The statistic of each run, or what it would be with a share of the noise."""
        exact, noise = _exact_and_noise(runs)
        return (exact + share * noise) @ self._weights


def _exact_and_noise(runs):
    """The exact numbers of each run, and the noise in them."""
    numbers = [[_numbers(entry) for entry in run] for run in runs]
    return [
        np.array([np.concatenate([entry[k] for entry in run]) for run in numbers]) for k in (0, 1)
    ]


def _numbers(entry):
    exact, released = entry.exact, entry.released
    if isinstance(entry.mechanism, NamedCounts):  # what was not named has no count
        exact = [dict(counts).get(word, 0) for counts in exact for word in COMMON]
        named = [dict(zip(*column, strict=True)) for column in released]
        released = [counts.get(word, 0.0) for counts in named for word in COMMON]
    exact, released = np.ravel(exact), np.ravel(released)
    return exact.astype(float), (released - exact).astype(float)


class ChoiceTest(ReleaseTest):
    """The log likelihood ratio of choices, whose odds follow from exact answers."""

    def learn(self, looks):
        """Fix the test by runs over each data set."""
        self._odds = [list(map(_log_odds, look[0])) for look in looks]
        # with less noise choices go another way on both sides: between them lies the threshold
        self._set_threshold(*(self.of(look, 0.5) for look in looks))

    def of(self, runs, share=1.0):
        """The statistic of each run, or of other choices with a share of the noise."""
        return np.array([self._ratio(run, share) for run in runs])

    def _ratio(self, run, share):
        ratio = 0.0
        for one, other, entry in zip(*self._odds, run, strict=True):
            picks, width = entry.released, entry.mechanism.width
            if share < 1:
                tables, noise = entry.mechanism.tables(entry.exact), NoiseSource()
                picks = [entry.mechanism.chosen(scores / share, noise) for scores in tables]
                picks = np.concatenate(picks)
            ratio += _log_probability(one, picks, width) - _log_probability(other, picks, width)
        return ratio


def _log_odds(entry):
    """Log odds of the options of each choice: a choice a row."""
    prior = entry.mechanism.prior
    odds = np.concatenate([*entry.mechanism.tables(entry.exact)])
    return odds if prior is None else odds + np.log(prior)


def _log_probability(odds, picks, width):
    """The log probability of picks, of whose group nothing is picked again."""
    rows, total, odds = np.arange(len(odds)), 0.0, odds.copy()
    for pick in picks.T:
        total += np.sum(odds[rows, pick] - np.logaddexp.reduce(odds, axis=1))
        for option in range(width):
            odds[rows, pick // width * width + option] = -np.inf
    return total


# ---- Claims: the least error of a guess between two groups that one kind of release allows -------
#
# Data sets that differ in k records are k steps apart. Of a μ-GDP release a guess errs at least
# with Φ(-kμ/2); choices of bounded range η have a range of kη; of samples it is that of k records
# which all pull one way in one data set and the other way in the other, each in the sample or not.

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

    Each record of a group is in a sample by itself, and all of them pull one way. The curve of one
    mean is bounded by chords, and its losses are composed as an accountant composes them.
    """
    rate, count = release.sampling_rate, release.count
    shift = 1 / release.noise_multiplier / (2 if neighboring == "replace_one" else 1)
    there = np.arange(group + 1)
    odds = stats.binom.pmf(there, group, rate)
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

    For one record it is Φ of the deviate plus μ, but for the spare; for more, that is repeated.
    """
    mu, spare, found = 1 / release.noise_multiplier, release.spare, falsely
    for _ in range(group):
        deviate = ndtri(np.minimum(found / (1 - spare), 1.0))
        found = np.minimum(spare + (1 - spare) * ndtr(deviate + mu), 1.0)
    return found


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
