"""Rows no longer than a public norm, for free."""

from numbers import Real
from typing import Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from ..privacy.sums._margins import products
from ..utils._cells import given_back
from ..utils._compat import Interval, fit_context
from ..utils._input import read_records
from ..utils._public import check_real
from ..utils._tiles import row_tiles
from ..utils._typing import ArrayLike
from ._private_transformer import CHECKS


class RowNormClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Scale each row that is longer than a public norm down to that norm.

    A record becomes :math:`x \cdot \min(1, R / \|x\|_2)`; shorter rows stay as they are.

    **Privacy**

    - Guarantee: nothing is learnt from the records, hence there is nothing to charge. Each record
      is mapped by itself, so neighbouring data sets stay neighbours, and the budget of the next
      step is untouched. State the norm to it, as ``row_norm_bound``.
    - Not protected: as in :class:`BoundsScaler`.

    Parameters
    ----------
    norm : float in (0, inf), default=1.0
        R, the largest norm of a row. Public: never from the data.
    copy : bool, default=True
        If False, `transform` overwrites X where it can: a NumPy array or a CSR or CSC matrix of
        writeable floats. Anything else is copied, data frames always.

    Attributes
    ----------
    n_features_in_ : int
        Number of features. Public.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings. Public.

    Raises
    ------
    TypeError, ValueError
        If `norm` is no positive number, or X is empty, NaN or infinite somewhere.

    Notes
    -----
    Stateless: `transform` needs no `fit`. The result keeps float32, its memory layout and
    sparsity; other dtypes become float64. Norms are at most R up to rounding, which a model with
    ``row_norm_bound`` makes good.

    Examples
    --------
    >>> from dpcd_sklearn.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=5.0).fit_transform([[3.0, 4.0], [6.0, 8.0], [0.0, 1.0]])
    array([[3., 4.],
           [3., 4.],
           [0., 1.]])
    """

    _parameter_constraints = {
        "norm": [Interval(Real, 0, None, closed="neither")],
        "copy": ["boolean"],
    }

    def __init__(self, norm: float = 1.0, *, copy: bool = True):
        self.norm = norm
        self.copy = copy

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Check the norm, and the shape and the column names of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The records. Nothing is learnt from their values.
        y : None
            Ignored.

        Returns
        -------
        self : RowNormClipper
        """
        read_records(self, X, **CHECKS)
        check_real(self.norm, "norm", low=0.0)
        return self

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike):
        """Scale long rows down.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The records.

        Returns
        -------
        X_clipped : {ndarray, CSR, CSC} of shape (n_samples, n_features)
            CSR and CSC stay what they are, other sparse formats become CSR.
        """
        norm = check_real(self.norm, "norm", low=0.0)
        copy = self.copy or not (isinstance(X, np.ndarray) or issparse(X))
        given = X
        X = read_records(self, X, reset=False, copy=copy, force_writeable=True, **CHECKS)
        if issparse(X):
            by_row = X.tocsr()
            rows = np.repeat(np.arange(X.shape[0]), np.diff(by_row.indptr))
            largest = np.zeros(X.shape[0])
            np.maximum.at(largest, rows, np.abs(by_row.data))
            part = by_row.data / np.where(largest > 0, largest, 1.0)[rows]
            length = np.sqrt(np.bincount(rows, part * part, minlength=X.shape[0]))
            factor = _factor(largest, length, norm)
            X.data *= factor[rows if X.format == "csr" else X.indices]
            return X
        for tile in row_tiles(X):
            # rows are summed along memory: in another order the bits of one row would follow n
            values = X[tile].astype(np.float64, order="C")
            largest = np.abs(values).max(axis=1)
            part = values / np.where(largest > 0, largest, 1.0)[:, np.newaxis]
            # in one fixed order: a row is scaled by what it holds, whatever tile it lies in
            length = np.sqrt(products(part * part, np.ones((1, X.shape[1])))[:, 0])
            factor = _factor(largest, length, norm)
            X[tile] = values * factor[:, np.newaxis]
        return given_back(X, given)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _factor(largest, length, norm):
    """min(1, norm / (largest · length)): a row's largest entry, and its norm in units of it."""
    factor = norm / np.where(largest > 0, largest, 1.0) / np.maximum(length, 1.0)
    return np.where(largest > 0, np.minimum(factor, 1.0), 1.0)
