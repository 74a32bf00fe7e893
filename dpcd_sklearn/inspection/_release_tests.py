"""Tests that tell two data sets by what releases answer: each is fixed before it is judged."""

import numpy as np
from scipy import stats
from scipy.sparse import issparse

from ..privacy.accounting._events import SelectionEvent

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


def separation(one, other):
    """Distance of means in standard deviations: μ, for Gaussians of one variance."""
    gap, spread = np.mean(one) - np.mean(other), np.sqrt((np.var(one) + np.var(other)) / 2)
    if gap == 0 or not np.isfinite(gap):
        return 0.0
    return float(min(abs(gap) / spread, 1e6)) if spread > 0 else 1e6


class ReleaseTest:
    """Says "first data set" above a threshold."""

    threshold = 0.0

    def errors(self, values):
        """Wrong guesses of statistics of either side."""
        one, other = values
        return int(np.sum(one <= self.threshold) + np.sum(other > self.threshold))

    def learn(self, looks):
        """Fix what is not known beforehand."""
        (one, wide), (other, narrow) = (
            (float(np.mean(values)), float(np.std(values)) + 1e-300)
            for values in map(self.of, looks)
        )
        self.threshold = (one * narrow + other * wide) / (wide + narrow)


def numbers(answers):
    """All numbers of a run's answers; of a symmetric matrix one of each pair of cells."""
    found = []
    for answer in answers:
        for part in answer if isinstance(answer, (tuple, list)) else [answer]:
            if part is None:
                continue
            part = np.asarray(part, dtype=float)
            if part.ndim == 2 and part.shape[0] == part.shape[1]:
                part = part[np.tril_indices(len(part))]
            found.append(part.ravel())
    return np.concatenate(found)


class LinearTest(ReleaseTest):
    """Along the difference of what next to no noise answers, over the variances."""

    def __init__(self, low):
        one, other = (np.mean([numbers(run) for run in side], axis=0) for side in low)
        self._gap = np.nan_to_num(one - other)
        self._weights = self._gap

    def learn(self, looks):
        values = [np.array([numbers(run) for run in look]) for look in looks]
        variance = sum(np.var(side, axis=0, ddof=1) for side in values) / 2
        typical = np.mean(variance) or 1.0
        # a variance of a few runs is known to a part of itself
        doubt = 4 / len(values[0])
        around = (1 - doubt) * variance + doubt * np.median(variance)
        self._weights = self._gap / np.maximum(around, 1e-12 * typical)
        super().learn(looks)

    def of(self, runs):
        return np.array([numbers(run) for run in runs]) @ self._weights


class IsotropicLinearTest(LinearTest):
    """Linear test for isotropic noise.

    Parameters
    ----------
    low : pair of lists of runs
        What next to no noise answers.
    numbers_in : callable
        From an answer to numbers with such noise.
    """

    def __init__(self, low, numbers_in=list):
        self._numbers_in = numbers_in
        super().__init__([self._read(runs) for runs in low])

    def _read(self, runs):
        return [[self._numbers_in(answer) for answer in run] for run in runs]

    def learn(self, looks):
        values = [np.array([numbers(run) for run in self._read(look)]) for look in looks]
        variance = sum(np.var(side, axis=0, ddof=1) for side in values) / 2
        self._weights = self._gap / np.mean(variance)
        ReleaseTest.learn(self, looks)

    def of(self, runs):
        return super().of(self._read(runs))


def counts_of(categories):
    """From released categories to the counts of some: one that was not named has none."""

    def counts(answer):
        named = [dict(zip(words, numbers, strict=True)) for words, numbers in answer]
        return np.array([[of.get(word, 0.0) for word in categories] for of in named])

    return counts


class RankingTest(ReleaseTest):
    """The log likelihood ratio of columns drawn one after another, of which some gain in one set.

    Parameters
    ----------
    gains : bool ndarray of shape (n_features,)
        Which columns gain in the first data set, as the others do in the other one.
    lead : float
        By how much their keys lead there.
    """

    def __init__(self, gains, lead):
        self._keys = np.where(gains, lead / 2, -lead / 2)

    def of(self, runs):
        return np.array([sum(map(self._ratio, run)) for run in runs])

    def _ratio(self, ranking):
        return self._log_odds(self._keys, ranking) - self._log_odds(-self._keys, ranking)

    @staticmethod
    def _log_odds(keys, ranking):
        rest = np.exp(keys)
        taken = np.cumsum(np.append(0.0, rest[ranking[:-1]]))
        return float(np.sum(keys[ranking] - np.log(rest.sum() - taken)))


class QuantileTest(ReleaseTest):
    """How many choices are below the cells that hold the quantiles, less those above."""

    def __init__(self, low):
        self._middle = np.median([_cells(run) for run in low], axis=0)

    def of(self, runs):
        found = [np.sign(self._middle - _cells(run)).sum() for run in runs]
        return np.array(found, dtype=float)


def _cells(run):
    return np.concatenate([np.ravel(answer) for answer in run]).astype(float)


class GreedyChoiceTest(ReleaseTest):
    """The log likelihood ratio: at the leader's iterates both data sets' scores are known."""

    def __init__(self, leader, kind, calls, pair):
        asked = [leader.asked[kind][at] for at in calls]
        self._scores = [_scores_of(leader.plan, asked, records) for records in pair]

    def of(self, runs):
        one, other = self._scores
        return np.array(
            [
                sum(
                    _log_probability(a, *choice) - _log_probability(b, *choice)
                    for a, b, choice in zip(one, other, run, strict=True)
                )
                for run in runs
            ]
        )


def _scores_of(plan, asked, records):
    """The scores of all moves over the scale of their noise: an array for each choice.

    `asked` has the problem and the iterate of each choice.
    """
    (release,) = (r for r in plan.part.releases if isinstance(r, SelectionEvent))
    neighbors = {"replace_one": 2.0, "add_remove": 1.0}[plan.part.neighboring]
    smoothness, n = plan.geometry.smoothness, plan.request.budget.n
    clip = plan.finite_clip / smoothness.sum() ** 0.5  # C_kj = this sqrt(M_kj)
    scale = 2 * neighbors * clip / n / release.eta
    features, target, weights = _as_read(plan, records)
    found = []
    for problem, iterate in asked:
        w = iterate.reshape(-1, len(smoothness))
        margins = features @ w.T
        r = plan.loss.gradient(margins[:, 0] if len(w) == 1 else margins, target)
        r = np.reshape(r, margins.shape) * weights[:, None]
        each = r[:, :, None] * features[:, None, :]  # each coordinate is clipped by itself
        each = np.clip(np.nan_to_num(each), -clip * smoothness**0.5, clip * smoothness**0.5)
        found.append(_scores(problem, w, each.sum(axis=0) / n, smoothness) / scale)
    return found


def _as_read(plan, records):
    """Features, targets and weights as the mechanism reads them."""
    (X, y, weights), request, geometry = records, plan.request, plan.geometry
    X = np.asarray(X.toarray() if issparse(X) else X, dtype=float)
    if geometry.lo is not None:
        X = np.clip(X, geometry.lo, geometry.hi)
    X = X - geometry.center
    if len(geometry.smoothness) > X.shape[1]:
        X = np.column_stack([X, np.ones(len(X))])
    target = np.asarray(y)
    if request.n_classes:
        target = np.searchsorted(np.unique(target), target).astype(float)
    else:
        target = (target - request.target_center) / request.target_half_width
        loss = request.loss
        ends = (loss.low, loss.high) if request.has_log_link else (-1.0, 1.0)
        target = np.clip(target, *ends)
    return X, target, np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)


def _scores(problem, w, gradient, smoothness):
    """The promise of every move: (n_outputs * n_coordinates, 2), downwards and upwards."""
    penalty, n_penalized, rule = problem
    return np.array(
        [
            [
                penalty.greedy_score(rule, w[k, j], gradient[k, j], smoothness[j], sign, j)
                if j < n_penalized
                else -sign * gradient[k, j] / smoothness[j] ** 0.5
                for sign in (-1, 1)
            ]
            for k, j in np.ndindex(w.shape)
        ]
    )


def _log_probability(scores, coordinates, directions):
    """The log probability of choices one after the other by Gumbel noise, no coordinate twice."""
    scores, total = scores.copy(), 0.0
    for j, direction in zip(coordinates, directions, strict=True):
        total += scores[j, int(direction > 0)] - np.logaddexp.reduce(scores, axis=None)
        scores[j] = -np.inf
    return total
