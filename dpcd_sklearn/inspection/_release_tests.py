"""Tests that tell two data sets by what releases answer: each is fixed before it is judged."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from ..privacy.mechanisms._tables import NamedCounts
from ..privacy.noise import NoiseSource
from ..utils._texts import ReadableRepr
from ._simulated_tables import COMMON

# ---- Bounds, powers and verdicts of all audits, from how many guesses were wrong -----------------
#
# (a) A test is fixed; then come n fresh runs over each of two data sets, and the test guesses which
#     one it was. k of the 2n guesses are wrong.
# (b) Let p be the mean probability of a wrong guess. The guesses are independent, so for k <= 2np -
#     1 the probability of at most k errors is at most that of a Binomial(2n, p) (Hoeffding 1956,
#     Theorem 4). Let U(k) be the larger of (k + 1) / 2n and Clopper & Pearson's bound, the Beta(k +
#     1, 2n - k) quantile of the confidence. With the largest k of U(k) < p the condition holds and
#     the binomial tail is below 1 - confidence: U(errors) < p is as rare.
# (c) No guess errs less than a claim's floor (``_release_claims``): a bound below the floor
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
