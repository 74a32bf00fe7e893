"""Bounds, powers and verdicts of all audits, from how many guesses were wrong."""

import numpy as np
from scipy import stats

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
    """Probability that an audit of so many runs contradicts what erred so often in others.

    Parameters
    ----------
    errors, n_seen : int
        Wrong guesses of the others, and all.
    n_runs : int
        Over each data set, of the audit.
    confidence : float
    claimed : float
        The least error that is claimed.
    """
    n = 2 * n_runs
    low, high = -1, n  # bounds grow with errors: the most that contradict
    while high - low > 1:
        middle = (low + high) // 2
        if error_bound(middle, n, confidence) < claimed:
            low = middle
        else:
            high = middle
    if low < 0:
        return 0.0
    return float(stats.betabinom.cdf(low, n, errors + 0.5, n_seen - errors + 0.5))


def verdict_of(upper, claimed, power):
    """In a word; without the power to notice half of the noise nothing is passed."""
    if upper < claimed:
        return "contradiction"
    return "passed" if power is not None and power >= REQUIRED_POWER else "inconclusive"


def shown(power):
    """Digits of a power, never more than there is: .8996 is no .9."""
    return "unknown" if power is None else f"{np.floor(power * 1000) / 1000:.3f}"
