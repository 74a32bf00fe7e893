"""An audit: many fits on two neighbouring data sets, and how well they can be told apart.

(a) A search over pairs of neighbours fixes one pair and one test (a statistic of what a fit
    released, and a threshold). Then come n fresh fits on each of the two data sets; the test
    guesses which one, and k of the 2n guesses are wrong.
(b) Let p be the mean probability of a wrong guess. The guesses are independent, so for
    k <= 2np - 1 the probability of at most k errors is at most that of a Binomial(2n, p)
    (Hoeffding 1956, Theorem 4). Let U(k) be the larger of (k + 1) / 2n and Clopper & Pearson's
    bound, the Beta(k + 1, 2n - k) quantile of the confidence. With the largest k of U(k) < p the
    condition holds and the binomial tail is below 1 - confidence: U(errors) < p is as rare.
(c) No guess errs less than a claim's floor (``_claims``): a bound below the floor contradicts it.
    The bounds on μ and ε are those whose floor is this bound.
Nothing was assumed about the noise, the statistic or the pair: these decide how strong the test is,
which the audit measures on the same fit with half of its noise. It can show that a claim is
wrong; it can never show that one is right.
"""

from collections.abc import Callable, Sequence
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..pipeline._budget_of_step import last_step
from ..utils._public import check_real
from ._audit_result import AuditResult
from ._bounds import error_bound, power_of, verdict_of
from ._by_release import audit_by_release, is_auditable, shape_of
from ._claims import Claim, epsilon_shown, mu_shown
from ._fits import Subject, best_test
from ._pairs import FAMILIES, worst_pairs
from ._transcript import is_recordable

# Fits on each data set of every pair, at least; the finalists have six times as many more.
_FIRST_LOOK, _SHARE_OF_LOOK = 20, 25
_FINALISTS = 3
_POWER_RUNS = 250


def audit(
    estimator: BaseEstimator,
    data: object = None,
    neighbor: object = None,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    claim: object = None,
    families: str | Sequence[str] = "auto",
    broken: object = "half_noise",
    n_runs: int = 250,
    confidence: float = 0.95,
    statistic: Callable[..., float] | None = None,
    n_jobs: int | None = None,
) -> AuditResult:
    """Try to tell data sets apart by what fits release, and compare with what is claimed.

    ``audit(model)``, ``audit(model, n_samples=..., n_features=...)`` and ``audit(model, X, y)`` go
    release by release: all kinds that a fit of this shape makes, with the multipliers of its event,
    on records that are made up. ``audit(model, (X, y), (other_X, other_y))`` compares whole fits.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted, without its accountant and seeds. A linear model of this
        package, or a transformer of it that learns something; with two data sets also a pipeline
        that ends in a linear model of it, or any other estimator with a `claim`.
    data, neighbor : X and y, or two tuples (X, y) or (X, y, sample_weight), default=None
        X and y say of which shape, layout and labels records are made up: their values are not
        looked at, but for the labels of a classifier without `classes`. Two tuples are two data
        sets that are neighbours under the estimator's relation.
    n_samples, n_features : int, default=None
        Size of made-up records, in place of X. None is 10,000 records, or `n_public` of them, where
        a default fit looks for scales and counts classes; and ten features, or as many as bounds
        are stated for.
    claim : tuple (epsilon, delta) or (epsilon, delta, mu), default=None
        What to test of whole fits; with mu, Gaussian DP too. None takes it from the fitted
        estimator's ``privacy_spent_`` and ``privacy_event_``: all that these releases may tell is
        tested, which is more than one (epsilon, delta).
    families : {"auto", "all"} or list of str, default="auto"
        Families, for whole fits, of six made-up records among which the worst pair is searched, for
        linear models of this package: "one feature", "opposite signs", "several features",
        "intercept alone", "heavy record", "pulling others", "many features", "other signs",
        "other axis", and for more than two `classes` "turned record". "auto" is none of them beside
        stated data, and all of them where a `claim`, a `statistic` or a `broken` estimator asks for
        whole fits; else the audit goes release by release. Stated data are one more candidate.
    broken : {"half_noise"}, estimator or None, default="half_noise"
        What the audit must be able to catch, to measure its power: the same fit with half of its
        noise (of models of this package; unknown for others), or an estimator that tells too much.
        None measures nothing, and then an audit without a contradiction is inconclusive.
    n_runs : int >= 100, default=250
        Fits on each data set that the bounds rest on, for each kind of release. The search adds as
        many or fewer, the power 250 at most.
    confidence : float in (0.5, 1), default=0.95
        An honest estimator contradicts its claim with a probability of one minus this, at most, in
        all kinds of releases together.
    statistic : callable, default=None
        Function, for whole fits, from a fitted estimator to a float or an array, which is reduced
        to its most telling direction. None is the log likelihood ratio of everything that a model
        of this package released on its way, and `coef_` and `intercept_`, whichever tells more.
    n_jobs : int, default=None
        For joblib.

    Returns
    -------
    result : AuditResult

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, the claim is unknown, or there is no pair to test.

    Notes
    -----
    Release by release, one run over usual records leads, and what it released is what all other
    runs go on from: only the kind in question is drawn afresh. So many records differ that a weak
    release is heard: k records of a μ-GDP release are kμ-GDP. What a model keeps must follow from
    its releases bit for bit. A kind that was not exercised makes the audit inconclusive. Of many
    calls of one kind a few dozen are drawn, from the first to the last. Of learnt categories the
    threshold is tried too: of those that one record alone has none may be named, and the share of
    runs without such a name stands in the place of errors.

    With records of real people the result of whole fits is no private release: it shows how they
    pull. For a Poisson sample the claim that is tested is that of the worst pair that is known.

    References
    ----------
    Jagielski, Ullman & Oprea (2020). Auditing differentially private machine learning. NeurIPS.
    Nasr et al. (2023). Tight auditing of differentially private machine learning. USENIX Security.
    Hoeffding (1956). On the distribution of the number of successes in independent trials.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.inspection import audit
    >>> model = DPRidgeSkGD(epsilon=2.0, max_iter=3)
    >>> result = audit(model, n_samples=500, n_features=2, confidence=1 - 1e-9)
    >>> result.contradicts, len(result.releases)  # choices for features, for the target; gradients
    (False, 3)
    """
    n_runs = check_runs(n_runs)
    confidence = check_real(confidence, "confidence", low=0.5, high=1.0)
    model = without_ledger(estimator)
    sizes = {"n_samples": n_samples, "n_features": n_features}
    is_pair = isinstance(data, tuple) and isinstance(neighbor, tuple)
    if not is_pair:
        shape = shape_of(model, data, neighbor, **sizes)
        asks_for_fits = claim is not None or statistic is not None or families != "auto"
        if is_auditable(model) and not asks_for_fits and broken in ("half_noise", None):
            measures = broken is not None
            return audit_by_release(model, shape, n_runs, confidence, measures, n_jobs)
    if (given := [name for name, size in sizes.items() if size is not None]) or (
        data is not None and not is_pair
    ):
        raise ValueError(
            f"{' and '.join(given) or 'X and y'} are for audits release by release of one linear "
            "model or transformer of this package that learns something, without claim, families, "
            "statistic and a broken estimator; for whole fits give two neighbours: "
            "audit(model, (X, y), (X2, y2))"
        )
    return _audit_of_fits(
        model, data, neighbor, claim, families, broken, n_runs, confidence, statistic, n_jobs
    )


def _audit_of_fits(
    model, data, neighbor, claim, families, broken, n_runs, confidence, statistic, n_jobs
):
    """The audit of whole fits on two data sets."""
    stated = None if claim is None else Claim.stated(claim)
    pairs = _candidates(model, data, neighbor, families)
    refused, best = _search(model, pairs, stated, statistic, n_runs, n_jobs)
    name, subject, claim, test = best
    values = [test.of(subject.shows(side, n_runs)) for side in (0, 1)]
    errors = int(np.sum(values[0] <= test.threshold) + np.sum(values[1] > test.threshold))
    upper = error_bound(errors, 2 * n_runs, confidence)
    power = _power(subject, test, claim, broken, n_runs, confidence)
    return AuditResult(
        verdict=verdict_of(upper, claim.error, power),
        epsilon_lower=epsilon_shown(upper, claim.delta),
        mu_lower=mu_shown(upper),
        epsilon=claim.epsilon,
        delta=claim.delta,
        mu=claim.mu,
        error=errors / (2 * n_runs),
        error_upper=upper,
        error_claimed=claim.error,
        power=power,
        pair=name,
        refused=refused,
        statistic=test.statistic,
        n_runs=n_runs,
        confidence=confidence,
        statistics=tuple(values),
        threshold=test.threshold,
    )


def check_runs(n_runs):
    """The number of fits, or the ValueError that says what is allowed."""
    if isinstance(n_runs, bool) or not isinstance(n_runs, Integral) or n_runs < 100:
        raise ValueError(f"n_runs must be an integer >= 100, got {n_runs!r}")
    return int(n_runs)


def without_ledger(estimator):
    """A clone that charges nobody and draws fresh noise."""
    model = clone(estimator)
    params = model.get_params(deep=True)
    model.set_params(
        **{name: None for name in params if name.split("__")[-1] in ("accountant", "random_state")}
    )
    return model


# ---- the search ---------------------------------------------------------------------------------


def _candidates(model, data, neighbor, families):
    if isinstance(families, str) and families not in ("auto", "all"):
        raise ValueError(f'families must be "auto", "all" or a list of names, got {families!r}')
    names = list(FAMILIES) if isinstance(families, str) else list(families)
    if unknown := [name for name in names if name not in FAMILIES]:
        raise ValueError(f"families must be among {list(FAMILIES)}, got {unknown}")
    pairs = {} if data is None else {"stated": (data, neighbor)}
    if data is not None and families == "auto":
        return pairs
    if last_step(model) is not model and names:
        raise ValueError("give data and neighbor for a pipeline: its steps change what is worst")
    if not is_recordable(model) and names:
        raise ValueError(
            f"give data and neighbor: the worst pair of {type(model).__name__} is not known"
        )
    pairs |= worst_pairs(model, names)
    if not pairs:
        raise ValueError("no pair to test: give data and neighbor, or a family that suits")
    return pairs


def _search(model, pairs, stated, statistic, n_runs, n_jobs):
    """Names of refused pairs, and the pair and the test that tell most.

    A short look at all of them, a longer one at the best.
    """
    found, refused, last = [], [], None
    for name, pair in pairs.items():
        try:
            subject = Subject(model, pair, statistic)
        except ValueError as error:  # a family that a parameter excludes
            if len(pairs) == 1 or name == "stated":
                raise
            refused.append(name)
            last = error
            continue
        subject.n_jobs = n_jobs
        claim = Claim.of(_that_says(subject.fitted)) if stated is None else stated
        found.append([name, subject, claim, None, []])
    if not found:
        raise last
    look = max(_FIRST_LOOK, n_runs // _SHARE_OF_LOOK) if len(found) > 1 else max(50, n_runs // 4)
    while True:
        for candidate in found:
            subject, looks = candidate[1], candidate[4]
            looks.append([subject.shows(side, look) for side in (0, 1)])
            candidate[3] = best_test(subject, [np.concatenate(s) for s in zip(*looks, strict=True)])
        # what a claim allows depends on the number of records
        found.sort(key=lambda c: c[3].separation / max(mu_shown(c[2].error), 1e-3), reverse=True)
        if len(found) <= _FINALISTS:
            return tuple(refused), found[0][:4]
        found, look = found[:_FINALISTS], 6 * look


def _that_says(fitted):
    """Who says what a fit spends: the model, a pipeline of one budget, or its one private step."""
    if hasattr(fitted, "privacy_spent_") or last_step(fitted) is fitted:
        return fitted
    private = [name for name, step in fitted.steps if hasattr(step, "privacy_spent_")]
    if len(private) > 1:
        raise ValueError(
            f"{' and '.join(private)} each spend a budget: state what they spend together, "
            "claim=(epsilon, delta), or make a PrivatePipeline, which has one budget"
        )
    return last_step(fitted)


# ---- power ------------------------------------------------------------------------------------


def _power(subject, test, claim, broken, n_runs, confidence):
    """Probability of a contradiction if what is audited were broken, or None.

    The number of its errors in an audit, predicted from that in some fits.
    """
    if broken is None or (broken == "half_noise" and not is_recordable(subject.model)):
        return None
    noise = 0.5
    if broken != "half_noise":
        if not hasattr(broken, "fit"):
            raise TypeError(f'broken must be "half_noise", an estimator or None, got {broken!r}')
        noise, jobs, rows = 1.0, subject.n_jobs, subject.rows
        subject = Subject(without_ledger(broken), subject.pair, subject.statistic)
        subject.n_jobs, subject.rows = jobs, rows
    size = min(n_runs, _POWER_RUNS)
    values = [test.of(subject.shows(side, size, noise)) for side in (0, 1)]
    errors = int(np.sum(values[0] <= test.threshold) + np.sum(values[1] > test.threshold))
    return power_of(errors, 2 * size, n_runs, confidence, claim.error)
