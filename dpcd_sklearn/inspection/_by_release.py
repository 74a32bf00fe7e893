"""From a model and a shape to an audit release by release, and from its rows to one result."""

import math
from numbers import Integral

import numpy as np
from scipy.sparse import issparse, sparray

from ..linear_model._private_linear_model import PrivateLinearModel
from ..preprocessing._private_transformer import PrivateTransformer
from ..privacy.accounting._accounting import gdp_squared
from ._audit_result import AuditResult
from ._claims import mu_shown
from ._pairs import stated_width
from ._release_audit import audit_releases
from ._simulated_records import SimulatedRecords, labels_of
from ._simulated_tables import SimulatedTable, is_table

_N_SAMPLES, _N_FEATURES = 10_000, 10
_FEWEST = 20  # of which a group differs


def is_auditable(model):
    """Whether the model's releases are known one by one."""
    if isinstance(model, PrivateTransformer):
        return not model.charges_nothing
    return isinstance(model, PrivateLinearModel)


def shape_of(model, X, y, *, n_samples, n_features):
    """Numbers and kinds that records are made up of, from X and y or from two numbers.

    Raises
    ------
    ValueError
        If they are no shape, or there are both.
    """
    if isinstance(X, tuple) or isinstance(y, tuple):
        raise ValueError(
            "give both data and neighbor as tuples: audit(model, (X, y), (X2, y2)); or "
            "audit(model, X, y), or audit(model, n_samples=..., n_features=...)"
        )
    if not is_auditable(model):
        return None
    facts = {"labels": labels_of(model, y)}
    if X is None:
        if y is not None:
            raise ValueError("give X with y: audit(model, X, y)")
        columns = getattr(model, "feature_bounds", None)
        if isinstance(columns, dict):
            facts["columns"] = list(columns)
        public = model.n_public if model.neighboring == "add_remove" else None
        if n_samples is None:
            n_samples = public or _N_SAMPLES
        if n_features is None:
            n_features = stated_width(model) or _N_FEATURES
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
    for name, value, least in (("n_samples", n_samples, _FEWEST), ("n_features", n_features, 1)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be an integer >= {least} in an audit, got {value!r}")
    if model.neighboring == "add_remove" and model.n_public and n_samples > model.n_public:
        raise ValueError(f"n_samples={n_samples} is more than n_public={model.n_public}")
    made_up = SimulatedTable if is_table(model) else SimulatedRecords
    return made_up(model, int(n_samples), int(n_features), **facts)


def audit_by_release(model, made_up, n_runs, confidence, measures, n_jobs):
    """An AuditResult of all kinds of releases of one fit."""
    if math.isinf(model.epsilon):
        raise ValueError("a fit without noise (epsilon=inf) claims nothing that could be audited")
    rows, unpaid, fitted = audit_releases(
        model, made_up, n_runs=n_runs, confidence=confidence, measures=measures, n_jobs=n_jobs
    )
    verdicts = {row.verdict for row in rows}
    verdict = "passed" if verdicts == {"passed"} else "inconclusive"
    if unpaid or "contradiction" in verdicts:
        verdict = "contradiction"
    worst = min(rows, key=_passes)
    epsilon, delta = fitted.privacy_spent_
    squared = gdp_squared(fitted.privacy_event_)
    return AuditResult(
        verdict=verdict,
        epsilon_lower=max(_epsilon_shown(row, delta) for row in rows),
        mu_lower=max(mu_shown(row.error_upper) / max(row.group, 1) for row in rows),
        epsilon=float(epsilon),
        delta=float(delta),
        mu=None if squared is None else math.sqrt(squared),
        error=worst.error,
        error_upper=worst.error_upper,
        error_claimed=worst.error_claimed,
        power=worst.power,
        pair=worst.pair,
        refused=(),
        statistic=worst.kind,
        n_runs=n_runs,
        confidence=confidence,
        statistics=worst.statistics,
        threshold=worst.threshold,
        releases=rows,
        unpaid=unpaid,
    )


def _passes(row):
    """Contradictions first, the clearest of them; then what has the least power."""
    if row.verdict == "contradiction":
        return 0, row.error_upper / row.error_claimed
    return 1, -1.0 if row.power is None else row.power


def _epsilon_shown(row, delta):
    """The largest ε whose (ε, delta)-DP mechanisms err as rarely on so many records."""
    low, high = 0.0, 64.0
    for _ in range(40):
        middle = (low + high) / 2
        grown = min(row.group * middle, 600.0)
        total = delta * math.expm1(grown) / math.expm1(middle)
        least = max(0.0, 1 - total) / (1 + math.exp(grown))
        low, high = (middle, high) if row.error_upper < least else (low, middle)
    return low
