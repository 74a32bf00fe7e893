"""An audit release by release: from a model and a shape to rows, and from these to one result."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse, sparray
from sklearn.base import BaseEstimator, clone

from ..linear_model._private_linear_model import PrivateLinearModel
from ..preprocessing._private_transformer import PrivateTransformer
from ..privacy.accounting._accounting import gdp_squared
from ..utils._public import check_count, check_real
from ..utils._texts import ReadableRepr, text_table
from ..utils._typing import ArrayLike
from ._release_audit import audit_releases
from ._release_tests import mu_proved, power_text
from ._simulated_records import SimulatedRecords, SimulatedTable, is_table, labels_of

# ---- The result of an audit, and how it reads ----------------------------------------------------


@dataclass(frozen=True, repr=False)
class AuditResult(ReadableRepr):
    """Errors of the best guess of an audit, and what they prove.

    Attributes
    ----------
    verdict : {"contradiction", "passed", "inconclusive"}
        "passed" says that nothing contradicts the claim and that half the noise would have been
        noticed, with a power of 0.9 or more, of every kind of release.
    epsilon_lower : float
        Lower confidence bound on epsilon at `delta`, for a single record.
    mu_lower : float
        Lower confidence bound on the parameter of Gaussian DP.
    epsilon, delta : float
        The claim.
    mu : float or None
        The claim in Gaussian DP, if the estimator makes one.
    kind : str
        The kind of release that tells most against the claim, or least for it: what follows is of
        this one.
    error : float
        Share of wrong guesses.
    error_upper : float
        Upper confidence bound on the probability of a wrong guess.
    error_claimed : float
        The least that the claim allows.
    power : float or None
        Probability that the same audit contradicts the release with half of its noise; None if it
        is not known.
    n_runs : int
        Fits on each data set.
    confidence : float
        Probability that both lower bounds hold.
    releases : tuple of ReleaseResult
        One for each kind.
    unpaid : tuple of str
        Fitted attributes that tell of records and that no mechanism released; "`privacy_spent_`" if
        the event costs more than it says, "`privacy_event_`" if mechanisms release by another one.
    """

    verdict: str
    epsilon_lower: float
    mu_lower: float
    epsilon: float
    delta: float
    mu: float | None
    kind: str
    error: float
    error_upper: float
    error_claimed: float
    power: float | None
    n_runs: int
    confidence: float
    releases: tuple
    unpaid: tuple = ()

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts the claim in an audit that would have noticed."""
        return self.verdict == "passed"

    @property
    def contradicts(self) -> bool:
        """Whether the claim is wrong, with the stated confidence."""
        return self.verdict == "contradiction"

    def __str__(self):
        verdict = {
            "contradiction": "CONTRADICTION to",
            "passed": "no contradiction to",
            "inconclusive": "INCONCLUSIVE, no contradiction to",
        }[self.verdict]
        head = f"{verdict} epsilon={self.epsilon:.4g} at delta={self.delta:.4g}"
        unpaid = f"; not paid for: {', '.join(self.unpaid)}" if self.unpaid else ""
        lines = [f"{head}, release by release (confidence {self.confidence:.4g} of all){unpaid}"]
        return "\n".join(lines + table_of(self.releases))

    __repr__ = __str__


_HEADS = ("release", "claim", "draws", "errors", "allowed", "power", "noticed", "verdict")


def table_of(releases):
    """Lines of a table: power is that against half the noise, noticed the largest share of it."""
    rows = [_HEADS]
    for one in releases:
        noticed = "none" if one.noticed_noise is None else f"{one.noticed_noise:.2f}"
        seen = (f"{one.error_upper:.3f}", f"{one.error_claimed:.3f}") if one.n_draws else ("", "")
        row = (one.kind, one.claim, f"{one.n_draws:,}", *seen)
        rows.append((*row, power_text(one.power), noticed, one.verdict))
    return text_table(rows, left={0, 1, len(_HEADS) - 1})


_N_SAMPLES, _N_FEATURES = 10_000, 10
_FEWEST = 20  # of which a group differs


def audit(
    estimator: BaseEstimator,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    n_runs: int = 250,
    confidence: float = 0.95,
    n_jobs: int | None = None,
) -> AuditResult:
    """Try to tell data sets apart by what a fit releases, and compare with what is claimed.

    It goes release by release: all kinds that a fit of this shape makes, with the multipliers of
    its event, on records that are made up.

    Parameters
    ----------
    estimator : estimator
        A linear model of this package, or a transformer of it that learns something. Clones of it
        are fitted, without its accountant and seeds. Audit the steps of a pipeline one by one.
    X, y : array-like, default=None
        Say of which shape, layout and labels records are made up: their values are not looked at,
        but for the labels of a classifier without `classes`.
    n_samples, n_features : int, default=None
        Size of made-up records, in place of X. None is 10,000 records, or `n_public` of them, where
        a default fit looks for scales and counts classes; and ten features, or as many as bounds
        are stated for.
    n_runs : int >= 100, default=250
        Fits on each data set that the bounds rest on, for each kind of release. The search for the
        worst records adds as many or fewer.
    confidence : float in (0.5, 1), default=0.95
        An honest estimator contradicts its claim with a probability of one minus this, at most, in
        all kinds of releases together.
    n_jobs : int, default=None
        For joblib.

    Returns
    -------
    result : AuditResult

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or nothing is claimed that could be audited.

    Notes
    -----
    One run over usual records leads, and what it released is what all other runs go on from: only
    the kind in question is drawn afresh. So many records differ that a weak release is heard: k
    records of a μ-GDP release are kμ-GDP. What a model keeps must follow from its releases bit for
    bit. A kind that was not exercised makes the audit inconclusive; choices that no run asked do
    not, where others at their range were looked at. Of many calls of one kind a few dozen are
    drawn, from the first to the last. Of learnt categories the threshold is tried too: of those
    that one record alone has none may be named, and the share of runs without such a name stands in
    the place of errors.

    For a Poisson sample the claim that is tested is that of the worst pair that is known.

    References
    ----------
    Jagielski, Ullman & Oprea (2020). Auditing differentially private machine learning. NeurIPS.
    Nasr et al. (2023). Tight auditing of differentially private machine learning. USENIX Security.
    Hoeffding (1956). On the distribution of the number of successes in independent trials.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.inspection import audit
    >>> model = DPRidgeSkGD(epsilon=2.0, max_iter=3, row_norm_bound=1.0, target_bounds=(-1, 1))
    >>> result = audit(model, n_samples=500, n_features=2, n_runs=100, confidence=1 - 1e-9)
    >>> result.contradicts, [row.kind for row in result.releases]
    (False, ['gradients'])
    """
    n_runs = check_count(n_runs, "n_runs", low=100)
    confidence = check_real(confidence, "confidence", low=0.5, high=1.0)
    learns = isinstance(estimator, (PrivateLinearModel, PrivateTransformer))
    if not learns or getattr(estimator, "charges_nothing", False):
        raise TypeError(
            "audit takes a linear model or transformer of this package that learns something, got "
            f"{type(estimator).__name__}; audit the steps of a pipeline one by one"
        )
    model = clone(estimator).set_params(accountant=None, random_state=None)
    made_up = shape_of(model, X, y, n_samples=n_samples, n_features=n_features)
    if math.isinf(model.epsilon):
        raise ValueError("a fit without noise (epsilon=inf) claims nothing that could be audited")
    rows, unpaid, fitted = audit_releases(
        model, made_up, n_runs=n_runs, confidence=confidence, n_jobs=n_jobs
    )
    verdicts = {row.verdict for row in rows}
    verdict = "passed" if verdicts == {"passed"} else "inconclusive"
    if unpaid or "contradiction" in verdicts:
        verdict = "contradiction"
    worst = min(rows, key=_passes)
    epsilon, delta = fitted.privacy_spent_
    squared = gdp_squared(fitted.privacy_event_)
    k = fitted.privacy_event_.max_contributions or 1  # k records of a person tell k times as much
    return AuditResult(
        verdict=verdict,
        epsilon_lower=max(_epsilon_proved(row, delta) for row in rows),
        mu_lower=max(k * mu_proved(row.error_upper) / max(row.group, 1) for row in rows),
        epsilon=float(epsilon),
        delta=float(delta),
        mu=None if squared is None else math.sqrt(squared),
        kind=worst.kind,
        error=worst.error,
        error_upper=worst.error_upper,
        error_claimed=worst.error_claimed,
        power=worst.power,
        n_runs=n_runs,
        confidence=confidence,
        releases=rows,
        unpaid=unpaid,
    )


def shape_of(model, X, y, *, n_samples, n_features):
    """Numbers and kinds that records are made up of, from X and y or from two numbers.

    Raises
    ------
    TypeError, ValueError
        If they are no shape, or there are both.
    """
    if isinstance(X, tuple) and isinstance(y, tuple):
        raise TypeError(
            "audit goes release by release, on records that it makes up: pass X and y of one data "
            "set, or none. Two data sets are compared by dpcd_sklearn.testing.replay"
        )
    facts = {"labels": labels_of(model, y)}
    if X is None:
        if y is not None:
            raise ValueError("give X with y: audit(model, X, y)")
        columns = getattr(model, "feature_bounds", None)
        if isinstance(columns, dict):
            facts["columns"] = list(columns)
        public = model.n_public
        if n_samples is None:
            n_samples = public or _N_SAMPLES
        if n_features is None:
            n_features = _stated_width(model) or _N_FEATURES
    else:
        if n_samples is not None or n_features is not None:
            raise ValueError("n_samples and n_features are those of X: give X and y, or these two")
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions, got {len(X.shape)}")
        n_samples, n_features = map(int, X.shape)
        if issparse(X):
            facts["sparse"] = "array" if isinstance(X, sparray) else "matrix"
        if hasattr(X, "columns"):
            facts["columns"] = list(X.columns)
        if getattr(X, "dtype", None) == np.float32:
            facts["dtype"] = np.float32
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            facts["n_targets"] = int(np.shape(y)[1])
    n_samples = check_count(n_samples, "n_samples", low=_FEWEST)
    n_features = check_count(n_features, "n_features")
    if model.n_public and n_samples > model.n_public:
        raise ValueError(f"n_samples={n_samples} is more than n_public={model.n_public}")
    made_up = SimulatedTable if is_table(model) else SimulatedRecords
    return made_up(model, n_samples, n_features, **facts)


def _stated_width(model):
    """The number of features that a parameter fixes, or None."""
    bounds, scale = getattr(model, "feature_bounds", None), getattr(model, "feature_scale", None)
    if isinstance(bounds, (list, dict)):  # a pair a feature
        return len(bounds)
    for part in (*(() if bounds is None else bounds), scale):
        if part is not None and np.ndim(part) > 0:
            return len(part)
    return None


def _passes(row):
    """Contradictions first, the clearest of them; then what has the least power."""
    if row.verdict == "contradiction":
        return 0, row.error_upper / row.error_claimed
    return 1, -1.0 if row.power is None else row.power


def _epsilon_proved(row, delta):
    """The largest ε whose (ε, delta)-DP mechanisms err as rarely on so many records."""
    low, high = 0.0, 64.0
    for _ in range(40):
        middle = (low + high) / 2
        grown = min(row.group * middle, 600.0)
        total = delta * math.expm1(grown) / math.expm1(middle)
        least = max(0.0, 1 - total) / (1 + math.exp(grown))
        low, high = (middle, high) if row.error_upper < least else (low, middle)
    return low
