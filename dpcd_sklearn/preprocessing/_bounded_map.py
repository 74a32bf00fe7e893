"""Maps of features that clip to bounds and scale to [-1, 1], whoever found the bounds."""

from abc import ABCMeta, abstractmethod

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..privacy.sums._records import canonical
from ..utils._input import read_array, read_records
from ..utils._other_arrays import given_back
from ..utils._tiles import map_cells
from ..utils._typing import ArrayLike

CHECKS = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": True,
}


class BoundedMap(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """The base of scalers to [-1, 1]: how records are mapped, once the map is known."""

    @abstractmethod
    def _map(self):
        """The arrays lo, hi, center and half_width of the fitted map."""

    @abstractmethod
    def _how_zero_stays(self, j):
        """Why feature j makes sparse records dense, and what to do about it."""

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike):
        """Map records to [-1, 1], clipping what lies outside the bounds.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The records, in the units of `bounds`.

        Returns
        -------
        X_scaled : {ndarray, CSR, CSC} of shape (n_samples, n_features)
            The image of each record; CSR and CSC stay what they are, other sparse formats
            become CSR.
        """
        check_is_fitted(self, "center_")  # a refused fit leaves n_features_in_
        given = X
        X = read_records(
            self, X, reset=False, copy=self._must_copy(X), force_writeable=True, **CHECKS
        )
        self._refuse_sparse_if_zero_moves(X)
        if sparse.issparse(X):
            X = canonical(X)  # clipping is not linear: one entry a cell
        lo, hi, center, half_width = self._map()
        divisor = np.where(half_width > 0, half_width, 1.0)
        return given_back(map_cells(X, _to_unit, lo, hi, center, divisor), given)

    def inverse_transform(self, X: ArrayLike):
        """Undo the scaling; what was clipped stays at its bound.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Scaled records. Values outside [-1, 1] land outside the bounds.

        Returns
        -------
        X_original : {ndarray, CSR, CSC} of shape (n_samples, n_features)
            The records in the units of `bounds`; a feature with lo = hi becomes that value.
        """
        check_is_fitted(self, "center_")  # a refused fit leaves n_features_in_
        given = X
        X = read_array(X, copy=self._must_copy(X), force_writeable=True, estimator=self, **CHECKS)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        self._refuse_sparse_if_zero_moves(X)
        _, _, center, half_width = self._map()
        return given_back(map_cells(X, _from_unit, center, half_width), given)

    def _must_copy(self, X):
        # A NumPy view of a data frame may share memory with other frames (copy-on-write).
        return self.copy or not (isinstance(X, np.ndarray) or sparse.issparse(X))

    def _refuse_sparse_if_zero_moves(self, X):
        if not sparse.issparse(X):
            return
        lo, hi, center, _ = self._map()
        stays = zero_stays_zero(lo, hi, center)
        if not stays.all():
            raise ValueError(f"X is sparse, but {self._how_zero_stays(int(np.argmin(stays)))}")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def zero_stays_zero(lo, hi, center):
    """Tell for each feature whether the map sends 0 to 0."""
    return (center == 0) & (lo <= 0) & (0 <= hi)


def _to_unit(values, lo, hi, center, divisor):
    out = np.clip(values, lo, hi)  # double, as the bounds are; from here on nothing overflows
    out -= center
    out /= divisor
    return np.clip(out, -1.0, 1.0, out=out)  # rounding may have stepped over the edge


def _from_unit(values, center, half_width):
    return values * half_width + center
