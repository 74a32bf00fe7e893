"""Twins in NumPy share records with every option, layouts, the unit of a release and its law."""

import itertools
import math

import numpy as np
from scipy import sparse, stats

from dpcd_sklearn.losses import MultinomialLoss, SquaredLoss
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import CoordinateUnits, RecordOracle
from dpcd_sklearn.privacy.sums import LocalPlace


def rows_apart(X):
    """Rows with gaps between them."""
    return np.repeat(np.ascontiguousarray(X), 2, axis=0)[::2]


def columns_apart(X):
    """Columns with gaps between them."""
    return rows_apart(X.T).T


def shifted(X):
    """At an address that no vector register likes."""
    wide = np.empty((X.shape[0], X.shape[1] + 3), dtype=X.dtype)
    wide[:, 1:-2] = X
    return wide[:, 1:-2]


LAYOUTS = [np.ascontiguousarray, np.asfortranarray, rows_apart, columns_apart, shifted]
EVERY_LAYOUT = {one.__name__: one for one in (*LAYOUTS, sparse.csr_array, sparse.csc_array)}


def bits_of(z, neighbors, n):
    """2^bits units are the standard deviation of the noise."""
    return min(48, math.floor(math.log2(z * neighbors * min(2.0**24, 2.0**50 / n))))


def limit_of(z, neighbors, n, size):
    """The norm of a record's numbers in units, before they are rounded."""
    norm = 2.0 ** bits_of(z, neighbors, n) / (z * neighbors)
    if size > 1:
        norm = (norm - math.sqrt(size) / 2) / (1 + (size + 16) * 2.0**-52)
    return math.floor(norm)


def norm_of(limit, size):
    """The largest norm of one record's integers."""
    return limit if size == 1 else limit * (1 + (size + 16) * 2.0**-52) + math.sqrt(size) / 2


class Records:
    """Records with every option of sums, and their derivatives by NumPy."""

    def __init__(
        self, *, n=301, p=5, K=1, loss=None, dtype=np.float64, weighted=False, bounded=False,
        intercept=True, M=None, seed=0,
    ):  # fmt: skip
        rng = np.random.default_rng([seed, n, p])
        self.X = np.asarray(2 * rng.standard_normal((n, p)) + 0.3, dtype=dtype)
        self.y = rng.integers(0, max(K, 2), n).astype(float)
        self.weights = rng.exponential(size=n) if weighted else None
        lo, hi = rng.uniform(-2, 0, p), rng.uniform(0.5, 2, p)
        self.bounds = (lo, hi, (lo + hi) / 2) if bounded else None
        self.n, self.K, self.d, self.intercept = n, K, p + intercept, intercept
        self.loss = loss or (SquaredLoss() if K == 1 else MultinomialLoss())
        self.M = rng.uniform(0.2, 3.0, self.d) if M is None else M

    def place(self, layout, order):
        weights = None if self.weights is None else np.ascontiguousarray(self.weights[order])
        y = np.ascontiguousarray(self.y[order])
        return LocalPlace(layout(self.X[order]), y, weights, self.bounds)

    def rows(self, inside=slice(None)):
        Z = self.X[inside].astype(np.float64)
        if self.bounds is not None:
            Z = np.clip(Z, *self.bounds[:2]) - self.bounds[2]
        return np.column_stack([Z, np.ones(len(Z))]) if self.intercept else Z

    def derivatives(self, coef, inside=slice(None)):
        """Those of each record by the margins of its outputs, of shape (n, K)."""
        margins = self.rows(inside) @ coef.reshape(self.K, -1).T
        r = self.loss.gradient(margins[:, 0] if self.K == 1 else margins, self.y[inside])
        return r.reshape(-1, self.K) * (1 if self.weights is None else self.weights[inside, None])


# ---- greedy choices ------------------------------------------------------------------------------


def oracle_of(X, y, event, M, *, clip=1.0, loss=None, lazy=False, key=None):
    """An oracle that nobody was charged for."""
    n = X.shape[0]
    return RecordOracle(
        charge(None, event),
        CoordinateUnits(event, n_samples=n, smoothness=M, clip=clip, n_normalizer=n),
        LocalPlace(X, y),
        loss=loss or SquaredLoss(),
        fit_intercept=len(M) > X.shape[1],
        lazy=lazy,
        key=key,
    )


def law_of_orders(scores, size):
    """Plackett-Luce: after a choice both signs of its coordinate, 2 j and 2 j + 1, are out."""
    candidates = {c: v for c, v in enumerate(scores) if v > -math.inf}
    law = {}
    for order in itertools.permutations(candidates, size):
        if len({c // 2 for c in order}) < size:
            continue
        probability, left = 1.0, dict(candidates)
        for c in order:
            top = max(left.values())
            probability *= math.exp(left[c] - top) / sum(math.exp(v - top) for v in left.values())
            left.pop(c)
            left.pop(c ^ 1, None)
        law[order] = probability
    assert math.isclose(sum(law.values()), 1.0, rel_tol=1e-9)
    return law


def follows(seen, law, p_value=1e-8):
    """Whether counts are those of draws by a law, by a chi-square test that pools what is rare."""
    draws = sum(seen.values())
    if not all(law.get(one, 0) > 0 for one in seen):
        return False
    common = [one for one, q in law.items() if draws * q > 20]
    table = [(seen.get(one, 0), draws * law[one]) for one in common]
    rest = (draws - sum(a for a, _ in table), draws - sum(b for _, b in table))
    if rest[1] > 20:
        table.append(rest)
    elif stats.poisson.sf(rest[0] - 1, max(rest[1], 1e-12)) < p_value:
        return False
    observed, expected = np.array(table, dtype=float).T
    statistic = np.sum((observed - expected) ** 2 / expected)
    return stats.chi2.sf(statistic, max(len(table) - 1, 1)) > p_value
