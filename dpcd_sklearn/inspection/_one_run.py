"""An audit by one fit: secret coins decide which canary records stand in the data.

Each of m canaries stands in the data with one target or the opposite one (under add_remove: or not
at all), by a fair coin. After the fit the r coins that it tells most of are guessed; c guesses are
right. Let W be the number of right ones, p_k = P(W = k), and let 1 - f(x) be the claimed trade-off
curve turned upwards (Φ(Φ⁻¹(x) + μ) for μ-GDP), g its inverse. For coin i and a number j let E be
"i is guessed as s, and j - 1 or more of the other guesses are right", an event of the release and
the other coins. Neighbours bound P(E | coin s) by 1 - f(P(E | coin -s)); averaged over s and i,
for f is convex,

    Σ_{k >= j} k p_k / m  <=  1 - f(Σ_{k >= j - 1} (r - k) p_k / m)

(Mahloujifar, Melis & Chaudhuri 2024, Theorem 3.2; Steinke, Nasr & Jagielski 2023 for (ε, δ)). With
the tails P_k = P(W >= k) this reads, by partial sums,

    (r - j + 1) P_{j-1}  >=  Σ_{k >= j} P_k + m g((j P_j + Σ_{k > j} P_k) / m),

whose right side grows with every tail. So the least P_0 that allows P_c >= τ follows from the
recursion with equality from P_c = τ and P_k = 0 for k > c; if it is above one, c right guesses are
rarer than τ = 1 - confidence under the claim. Other fits, independence of the guesses and the noise
are not assumed.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_X_y

from ..utils._public import check_bounds, check_real
from ..utils._typing import ArrayLike, Seed
from ._audit import without_ledger
from ._claims import Claim, mu_shown
from ._fits import fitted
from ._likelihood import Rows, log_ratios, rows_of
from ._transcript import Transcript, is_recordable, records_of

_FAR = 1e12  # a target that no margin of a canary reaches
_LONG = 1e3  # features of a canary beside the intercept's 1


@dataclass(frozen=True)
class OneRunResult:
    """Guesses of an audit by one fit, and what they prove.

    Attributes
    ----------
    epsilon_lower, mu_lower : float
        Lower confidence bounds on epsilon at `delta` and on the parameter of Gaussian DP.
    epsilon, delta : float
    mu : float or None
        The claim.
    n_canaries, n_guesses, n_right : int
    confidence : float
        Probability that either bound holds.
    scores : ndarray of shape (n_canaries,)
        Log likelihood ratio of each coin.
    coins : ndarray of shape (n_canaries,), of 1 and -1
    """

    epsilon_lower: float
    mu_lower: float
    epsilon: float
    delta: float
    mu: float | None
    n_canaries: int
    n_guesses: int
    n_right: int
    confidence: float
    scores: np.ndarray = field(repr=False, compare=False)
    coins: np.ndarray = field(repr=False, compare=False)

    @property
    def contradicts(self) -> bool:
        """Whether the claim is wrong, with the stated confidence: that of μ, or of ε at δ.

        Both bounds grow with the same number of right guesses, so the two alarms are one.
        """
        too_far = self.mu is not None and self.mu_lower > self.mu
        return too_far or self.epsilon_lower > self.epsilon

    def __str__(self):
        gaussian = "" if self.mu is None else f" and mu >= {self.mu_lower:.3g} of {self.mu:.3g}"
        return (
            f"{'CONTRADICTION' if self.contradicts else 'no contradiction'} to "
            f"epsilon={self.epsilon:.4g} at delta={self.delta:.4g}: in one fit {self.n_right} of "
            f"{self.n_guesses} guesses about {self.n_canaries} canaries were right; epsilon >= "
            f"{self.epsilon_lower:.3g}{gaussian} (confidence {self.confidence:.4g})"
        )


def audit_one_run(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_canaries: int = 1000,
    n_guesses: int | Literal["auto"] = "auto",
    confidence: float = 0.95,
    random_state: Seed | None = None,
) -> OneRunResult:
    """Audit one fit on your own records and canaries among them.

    Parameters
    ----------
    estimator : linear model of this package with one output
        A clone of it is fitted once, without its accountant and seed. Its solver must release
        noisy sums: not "frank-wolfe" alone.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_canaries : int >= 10, default=1000
        Records that are added, each along its own feature: no more than there are features.
    n_guesses : int or "auto", default="auto"
        Coins that are guessed, those that the fit tells most of; "auto" follows from the claim.
    confidence : float in (0.5, 1), default=0.95
    random_state : int, RandomState instance or None, default=None
        Seed of the coins; noise is never seeded.

    Returns
    -------
    result : OneRunResult

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid or the model releases no noisy sums.

    Notes
    -----
    The bound is valid whatever the noise is, and much weaker than that of many fits: of a full
    gradient in 1,000 canaries it shows .6 of μ at epsilon = 20 and .4 at epsilon = 2. A
    model that was fitted with canaries is not for use.

    References
    ----------
    Steinke, Nasr & Jagielski (2023). Privacy auditing with one (1) training run. NeurIPS.
    Mahloujifar, Melis & Chaudhuri (2024). Auditing f-differential privacy in one run.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.inspection import audit_one_run
    >>> X = np.random.default_rng(0).normal(size=(100, 50))
    >>> result = audit_one_run(DPRidgeSkGD(epsilon=4.0), X, X[:, 0], n_canaries=50)
    >>> result.n_canaries, result.contradicts
    (50, False)
    """
    confidence = check_real(confidence, "confidence", low=0.5, high=1.0)
    X, y = check_X_y(X, y)
    for name, value, most in (
        ("n_canaries", n_canaries, X.shape[1]),
        ("n_guesses", 10 if n_guesses == "auto" else n_guesses, n_canaries),
    ):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 10:
            raise ValueError(f"{name} must be an integer >= 10, got {value!r}")
        if value > most:
            raise ValueError(f"{name} must be at most {most}, got {value}")
    model = without_ledger(estimator)
    if not is_recordable(model) or hasattr(model, "named_steps"):
        raise TypeError("audit_one_run is for linear models of this package")
    coins = check_random_state(random_state).choice([1, -1], n_canaries)
    transcript, rows, claim = _run(model, X, y, coins)
    if transcript.updates is None:
        raise ValueError(
            "audit_one_run needs a transcript: one of more "
            "than 5e7 numbers is not kept (lower max_iter)"
        )
    scores = log_ratios(transcript.plan, transcript.updates, rows)
    if not scores.any():
        raise ValueError("the fit released no noisy sums that canaries could show in")
    if n_guesses == "auto":
        n_guesses = _useful_guesses(claim, n_canaries, 1 - confidence)
    told = np.argsort(-np.abs(scores))[:n_guesses]
    right = int(np.sum(np.sign(scores[told]) == coins[told]))
    sizes = right, int(n_guesses), n_canaries, 1 - confidence
    return OneRunResult(
        epsilon_lower=_largest(lambda e: _of_pair(e, claim.delta), *sizes),
        mu_lower=_largest(_of_gaussian, *sizes),
        epsilon=claim.epsilon,
        delta=claim.delta,
        mu=claim.mu,
        n_canaries=n_canaries,
        n_guesses=int(n_guesses),
        n_right=right,
        confidence=confidence,
        scores=scores,
        coins=coins,
    )


# ---- the fit ------------------------------------------------------------------------------------


def _run(model, X, y, coins):
    """One fit with canaries; what the oracle would have read for either side of every coin."""
    canaries = _canaries(model, X.shape[1], len(coins))
    sides = [_targets(model, y, s * np.ones(len(coins))) for s in (1, -1)]
    mine = np.where(coins > 0, sides[0], sides[1])
    there = np.ones(len(coins), dtype=bool)
    if model.neighboring == "add_remove":
        there, mine = coins > 0, sides[0]
    transcript = Transcript()
    fitted(model, (np.vstack([X, canaries[there]]), np.append(y, mine[there])), transcript)
    n, m, plan = len(y), len(coins), transcript.plan
    both = []
    for targets in sides:  # in the fit's scales, which it may have found for itself
        read = records_of(model, (np.vstack([X, canaries]), np.append(y, targets)))
        both.append(rows_of(plan, read.scaled(plan.request), 1))
    others = 0 if model.neighboring == "add_remove" else m
    rows = Rows(
        np.vstack([both[0].features, both[1].features[n : n + others]]),
        np.append(both[0].target, both[1].target[n : n + others]),
        np.append(both[0].weights, both[1].weights[n : n + others]),
        np.repeat([0.0, 1.0, -1.0], [n, m, others]),
        np.concatenate([np.zeros(n, dtype=int), np.arange(m), np.arange(others)]),
    )
    return transcript, rows, Claim.of(model)


def _canaries(model, n_features, m):
    """Records along one feature each, the others in the middle."""
    if model.feature_bounds is None:
        return (
            _LONG * np.eye(m, n_features) if not is_classifier(model) else 8 * np.eye(m, n_features)
        )
    lo, hi = check_bounds(model.feature_bounds, n_features)
    stated = model.feature_scale is not None and not isinstance(model.feature_scale, str)
    centred = model.fit_intercept and not stated
    rest = (lo + hi) / 2 if centred else np.clip(0.0, lo, hi)
    found = np.tile(rest, (m, 1))
    found[np.arange(m), np.arange(m)] = hi[:m]
    return found


def _targets(model, y, signs):
    if is_classifier(model):
        labels = np.unique(y if model.classes is None else model.classes)
        if len(labels) != 2:
            raise ValueError(f"audit_one_run needs two classes, got {len(labels)}")
        return labels[(signs > 0).astype(int)]
    return signs * _FAR


# ---- the bound ----------------------------------------------------------------------------------


def _of_gaussian(mu):
    """g of μ-GDP."""
    return lambda y: ndtr(ndtri(min(y, 1.0)) - mu)


def _of_pair(epsilon, delta):
    """g of (ε, δ)-DP."""
    grown = math.exp(min(epsilon, 700.0))
    return lambda y: max(0.0, (y - delta) / grown, 1 - delta - grown * (1 - y))


def is_too_many(right, guesses, canaries, share, inverse):
    """Whether so many right guesses are rarer than `share` under a claim.

    Parameters
    ----------
    right, guesses, canaries : int
        c, r and m.
    share : float
        τ.
    inverse : callable
        g, of the claim.
    """
    tail, beyond = share, 0.0
    for j in range(right, 0, -1):
        needed = beyond + tail + canaries * inverse((j * tail + beyond) / canaries)
        beyond += tail
        tail = max(tail, needed / (guesses - j + 1))
        if tail > 1:
            return True
    return False


def _largest(claim, right, guesses, canaries, share):
    """The largest parameter whose claim so many right guesses contradict."""
    low, high = 0.0, 1.0
    if not is_too_many(right, guesses, canaries, share, claim(0.0)):
        return 0.0
    while is_too_many(right, guesses, canaries, share, claim(high)) and high < 64:
        low, high = high, 2 * high
    for _ in range(20):
        middle = (low + high) / 2
        if is_too_many(right, guesses, canaries, share, claim(middle)):
            low = middle
        else:
            high = middle
    return low


def _useful_guesses(claim, m, share):
    """The number that would show most if each canary were told as the claim allows."""
    mu = mu_shown(claim.error)
    ratios = mu * mu / 2 + mu * ndtri((np.arange(20_000) + 0.5) / 20_000)
    sizes, best = np.abs(ratios), (-1.0, m)
    for part in (1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1):
        guesses = max(10, int(part * m))
        told = ratios[sizes >= np.quantile(sizes, 1 - guesses / m)]
        right = round(float(np.mean(told > 0)) * guesses)
        best = max(best, (_largest(_of_gaussian, right, guesses, m, share), guesses))
    return best[1]
