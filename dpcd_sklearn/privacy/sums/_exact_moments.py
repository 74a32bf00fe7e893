"""Moments of the records as they are, for fits without noise: floating point, in tiles of rows."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ...utils._tiles import row_tiles


class Moments(NamedTuple):
    """Moments of each feature, over the records with their weights.

    Attributes
    ----------
    n_samples : int
    weight : float
        Sum of all weights.
    center : ndarray of shape (n_features,)
        Weighted means; zero unless they were asked for.
    squares : ndarray of shape (n_features,)
        Weighted sums of squares around the center.
    """

    n_samples: int
    weight: float
    center: np.ndarray
    squares: np.ndarray


def moments_of(X, sample_weight, centered):
    """The moments of an array or sparse matrix; sparse records are never centred."""
    n_samples, n_features = X.shape
    weights = np.ones(n_samples) if sample_weight is None else sample_weight
    center, squares = np.zeros(n_features), np.zeros(n_features)
    if issparse(X):
        squares = X.multiply(X).astype(np.float64).T @ weights
        return Moments(n_samples, weights.sum(), center, squares)
    if centered:
        for rows in row_tiles(X):
            center += weights[rows] @ X[rows]
        center /= weights.sum()
    for rows in row_tiles(X):
        squares += weights[rows] @ (X[rows] - center) ** 2
    return Moments(n_samples, weights.sum(), center, squares)
