"""An audit: many fits on two neighbouring data sets, and how well they can be told apart.

(a) Half of the fits choose a test (a direction in the space of released numbers and a threshold on
    it), the other half bound its two error rates by Clopper & Pearson. So the bounds hold whatever
    the choice was, and with the stated confidence.
(b) No test of a mu-GDP mechanism has Φ⁻¹(true rate) - Φ⁻¹(false rate) > mu, and none of an
    (epsilon, delta)-DP mechanism has (true rate - delta) / false rate > e^epsilon.
An audit can show that a claim is wrong; it can never show that one is right.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from ..privacy.accounting._accounting import gdp_squared
from ..utils._public import check_bounds, check_real

_FAR = 1e9  # a target whose record reaches every clip


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    epsilon_lower : float
        Lower confidence bound on epsilon at `delta`.
    mu_lower : float
        Lower confidence bound on the parameter of Gaussian DP.
    epsilon, delta : float
        The claim.
    mu : float or None
        The claim in Gaussian DP, if the estimator makes one.
    true_rate, false_rate : tuple of float
        Confidence intervals of the rates at which the test says "first data set".
    n_runs : int
        Fits on each data set.
    confidence : float
        Probability that both lower bounds hold.
    statistics : tuple of two ndarrays
        The test's statistic in the fits that the bounds rest on, for plots.
    threshold : float
        The test says "first data set" above it.
    """

    epsilon_lower: float
    mu_lower: float
    epsilon: float
    delta: float
    mu: float | None
    true_rate: tuple
    false_rate: tuple
    n_runs: int
    confidence: float
    statistics: tuple = field(repr=False, compare=False)
    threshold: float = field(repr=False, compare=False)

    @property
    def passed(self):
        """Whether nothing contradicts the claim."""
        return self.epsilon_lower <= self.epsilon and (self.mu is None or self.mu_lower <= self.mu)

    def __str__(self):
        verdict = "no contradiction to" if self.passed else "CONTRADICTION to"
        gaussian = "" if self.mu is None else f", and mu >= {self.mu_lower:.3g} of {self.mu:.3g}"
        return (
            f"{verdict} epsilon={self.epsilon:.4g} at delta={self.delta:.4g}: in "
            f"{self.n_runs:,} fits on each of two neighbours epsilon >= {self.epsilon_lower:.3g}"
            f"{gaussian} (confidence {self.confidence:.4g})"
        )


def audit(
    estimator,
    data=None,
    neighbor=None,
    *,
    claim=None,
    n_runs=1000,
    confidence=0.99,
    statistic=None,
    n_jobs=None,
    random_state=None,
):
    """Try to tell fits on two neighbouring data sets apart, and compare with what is claimed.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted, without its accountant and seeds. A linear model of this package,
        a pipeline that ends in one, or any other estimator with a `claim`.
    data, neighbor : tuple (X, y) or (X, y, sample_weight), default=None
        Two data sets that are neighbours under the estimator's relation. With None a worst case
        for linear models is made: records that do not pull, and one that pulls with all its clip.
    claim : tuple (epsilon, delta) or (epsilon, delta, mu), default=None
        What to test; with mu, Gaussian DP too. None takes it from the fitted estimator's
        ``privacy_spent_`` and, if it releases Gaussians only, ``privacy_event_``.
    n_runs : int >= 100, default=1000
        Fits on each data set. Bounds approach the truth slowly: 1,000 show about three quarters of
        a loss of epsilon = 1.
    confidence : float in (0.5, 1), default=0.99
        An honest estimator contradicts its claim with a probability of one minus this, at most.
    statistic : callable, default=None
        From a fitted estimator to a float or an array; None is all of `coef_` and `intercept_`.
        An array is reduced to its most telling direction.
    n_jobs : int, default=None
        For joblib.
    random_state : int, RandomState instance or None, default=None
        Of the split into halves only; noise is never seeded.

    Returns
    -------
    result : AuditResult

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, the claim is unknown, or the worst case can't be made.

    Notes
    -----
    With records of real people the result is no private release: it shows how they pull.

    References
    ----------
    Jagielski, Ullman & Oprea (2020). Auditing differentially private machine learning. NeurIPS.
    Nasr et al. (2023). Tight auditing of differentially private machine learning. USENIX Security.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.inspection import audit
    >>> result = audit(DPRidgeSkGD(epsilon=2.0, delta=1e-3, max_iter=10), n_runs=300)
    >>> result.passed
    True
    """
    if isinstance(n_runs, bool) or not isinstance(n_runs, (int, np.integer)) or n_runs < 100:
        raise ValueError(f"n_runs must be an integer >= 100, got {n_runs!r}")
    confidence = check_real(confidence, "confidence", low=0.5, high=1.0)
    if (data is None) != (neighbor is None):
        raise ValueError("give both data and neighbor, or neither")
    model = _without_ledger(estimator)
    if data is None:
        data, neighbor = worst_case(model)
    generator = check_random_state(random_state)
    epsilon, delta, mu = _claim(model, data, claim)
    released = [_fits(model, pair, n_runs, statistic, n_jobs) for pair in (data, neighbor)]
    halves = [np.array_split(values[generator.permutation(n_runs)], 2) for values in released]
    direction, threshold = _test(halves[0][0], halves[1][0], delta, confidence)
    statistics = tuple(half[1] @ direction for half in halves)
    rates = [_interval(values > threshold, confidence) for values in statistics]
    return AuditResult(
        epsilon_lower=_epsilon_lower(*rates, delta),
        mu_lower=float(max(0.0, stats.norm.ppf(rates[0][0]) - stats.norm.ppf(rates[1][1]))),
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        true_rate=rates[0],
        false_rate=rates[1],
        n_runs=int(n_runs),
        confidence=confidence,
        statistics=statistics,
        threshold=threshold,
    )


# ---- fits ---------------------------------------------------------------------------------------


def _without_ledger(estimator):
    """A clone that charges nobody and draws fresh noise."""
    model = clone(estimator)
    params = model.get_params(deep=True)
    model.set_params(
        **{name: None for name in params if name.split("__")[-1] in ("accountant", "random_state")}
    )
    return model


def _fits(model, data, n_runs, statistic, n_jobs):
    """One row of released numbers for each fit."""
    parallel = Parallel(n_jobs=n_jobs)
    sizes = [len(part) for part in np.array_split(np.arange(n_runs), max(1, n_runs // 50))]
    rows = parallel(delayed(_some_fits)(model, data, size, statistic) for size in sizes)
    found = np.concatenate(rows)
    if not np.isfinite(found).all():
        raise ValueError("the statistic of a fit is not finite")
    return found


def _some_fits(model, data, size, statistic):
    X, y, *weights = data
    options = {"sample_weight": weights[0]} if weights else {}
    return np.array(
        [
            np.ravel((statistic or _coefficients)(clone(model).fit(X, y, **options))).astype(float)
            for _ in range(size)
        ]
    )


def _coefficients(model):
    """All coefficients and intercepts of a model, or of the last step of a pipeline."""
    last = model[-1] if hasattr(model, "named_steps") else model
    if not hasattr(last, "coef_"):
        raise TypeError(f"{type(last).__name__} has no coef_; give a statistic")
    return np.append(np.ravel(last.coef_), np.ravel(last.intercept_))


def _claim(model, data, claim):
    if claim is not None:
        if not isinstance(claim, tuple) or len(claim) not in (2, 3):
            raise ValueError(
                f"claim must be (epsilon, delta) or (epsilon, delta, mu), got {claim!r}"
            )
        epsilon = check_real(claim[0], "the claimed epsilon", low=0.0)
        delta = check_real(claim[1], "the claimed delta", low=0, high=1, closed="left")
        mu = check_real(claim[2], "the claimed mu", low=0.0) if len(claim) == 3 else None
        return epsilon, delta, mu
    X, y, *weights = data
    fitted = clone(model).fit(X, y, **({"sample_weight": weights[0]} if weights else {}))
    last = fitted[-1] if hasattr(fitted, "named_steps") else fitted
    if not hasattr(last, "privacy_spent_"):
        raise ValueError(
            f"{type(last).__name__} does not say what it spends; give claim=(epsilon, delta)"
        )
    if math.isinf(last.privacy_spent_.epsilon):
        raise ValueError("a fit without noise (epsilon=inf) claims nothing that could be audited")
    mu_squared = gdp_squared(last.privacy_event_)
    return *last.privacy_spent_, None if mu_squared is None else math.sqrt(mu_squared)


# ---- the test -----------------------------------------------------------------------------------


def _test(one, other, delta, confidence):
    """A direction and a threshold above which the first data set is guessed."""
    difference = one.mean(axis=0) - other.mean(axis=0)
    spread = np.atleast_2d(np.cov(one, rowvar=False) + np.cov(other, rowvar=False))
    scale = np.sqrt(np.diag(spread))
    scale = np.where(scale > 0, scale, np.where(difference != 0, np.abs(difference), 1.0))
    shrunk = spread / np.outer(scale, scale) + 0.01 * np.eye(len(scale))
    direction = np.linalg.solve(shrunk, difference / scale) / scale
    values = one @ direction, other @ direction
    thresholds = np.quantile(np.concatenate(values), np.linspace(0.02, 0.98, 49))

    def promise(threshold):
        rates = [_interval(v > threshold, confidence) for v in values]
        gaussian = stats.norm.ppf(rates[0][0]) - stats.norm.ppf(rates[1][1])
        return gaussian + _epsilon_lower(*rates, delta)

    return direction, float(max(thresholds, key=promise))


def _interval(says_first, confidence):
    """Clopper & Pearson's interval of a rate; both rates hold together at the confidence."""
    n, hits = len(says_first), int(np.sum(says_first))
    share = (1 - confidence) / 4
    low = stats.beta.ppf(share, hits, n - hits + 1) if hits else 0.0
    high = stats.beta.isf(share, hits + 1, n - hits) if hits < n else 1.0
    return float(low), float(high)


def _epsilon_lower(true_rate, false_rate, delta):
    """The better of the two one-sided bounds: for saying "first", and for saying "second"."""
    odds = [
        (true_rate[0] - delta) / max(false_rate[1], 1e-300),
        (1 - false_rate[1] - delta) / max(1 - true_rate[0], 1e-300),
    ]
    return float(max(0.0, math.log(max(*odds, 1.0))))


# ---- the worst case -----------------------------------------------------------------------------


def worst_case(model, n_samples=20):
    """Neighbours of one feature: records that cancel or do not pull, and one that pulls fully.

    Parameters
    ----------
    model : estimator
        A linear model, or a pipeline that ends in one; feature_bounds must be scalars or of one
        feature.
    n_samples : int, default=20

    Returns
    -------
    data, neighbor : tuples (X, y, sample_weight)
    """
    last = model[-1] if hasattr(model, "named_steps") else model
    add_remove = getattr(last, "neighboring", "replace_one") == "add_remove"
    reach = 1.0
    if getattr(last, "feature_bounds", None) is not None:
        lo, hi = check_bounds(last.feature_bounds, 1)
        reach = float(max(abs(lo[0]), abs(hi[0])))
    X = np.full((n_samples, 1), reach)
    # nobody else pulls; a weight of exactly zero for all records would be refused
    weights = np.append(1.0, np.full(n_samples - 1, 1e-300))
    if is_classifier(model):
        labels = getattr(last, "classes", None)
        labels = np.unique([0, 1] if labels is None else labels)
        y = labels[np.arange(n_samples) % 2]
        other = y.copy()
        y[0], other[0] = labels[1], labels[0]
    else:
        y, other = np.zeros(n_samples), np.zeros(n_samples)
        y[0], other[0] = _FAR, -_FAR
    if hasattr(model, "named_steps"):
        raise ValueError("give data and neighbor for a pipeline: its steps change what is worst")
    if add_remove:
        return (X, y, weights), (X[1:], y[1:], weights[1:])
    return (X, y, weights), (X, other, weights)
