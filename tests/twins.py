"""Twins in NumPy share records with every option, their layouts, and the unit of a release."""

import math

import numpy as np

from dpcd_sklearn.losses import MultinomialLoss, SquaredLoss
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
