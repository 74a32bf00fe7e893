"""Bounds, powers and verdicts of all audits, from how many guesses were wrong.

(a) A test is fixed; then come n fresh runs over each of two data sets, and the test guesses which
    one it was. k of the 2n guesses are wrong.
(b) Let p be the mean probability of a wrong guess. The guesses are independent, so for
    k <= 2np - 1 the probability of at most k errors is at most that of a Binomial(2n, p)
    (Hoeffding 1956, Theorem 4). Let U(k) be the larger of (k + 1) / 2n and Clopper & Pearson's
    bound, the Beta(k + 1, 2n - k) quantile of the confidence. With the largest k of U(k) < p the
    condition holds and the binomial tail is below 1 - confidence: U(errors) < p is as rare.
(c) No guess errs less than a claim's floor (``_release_claims``): a bound below the floor
    contradicts the claim. The bounds on μ and ε are those whose floor is this bound.
Nothing was assumed about the noise, the statistic or the pair: these decide how strong the test is,
which the audit measures with half of the noise. It can show that a claim is wrong; it can never
show that one is right.
"""

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
