"""Groups of features centred and scaled within each row, for free."""

from numbers import Integral, Real
from typing import Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from ..privacy.sums._margins import products
from ..utils._compat import Interval, fit_context
from ..utils._input import read_records
from ..utils._other_arrays import given_back
from ..utils._public import check_count, check_real
from ..utils._tiles import row_tiles
from ..utils._typing import ArrayLike
from ._bounded_map import CHECKS

_DENSE = CHECKS | {"accept_sparse": False}
_ROUNDING = 1e-14  # of a mean: constant entries differ from theirs by less


class GroupNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Centre and scale groups of features within each row, and the row to norm one.

    The features of a row are cut into `n_groups` groups of consecutive ones. Each group loses its
    mean and is divided by :math:`\sqrt{v + s}`, v its variance and s the `smoothing`; then the row
    is divided by its norm. Embeddings and scattering features whose channels differ in scale make
    better private heads so (Tramèr & Boneh, 2021).

    **Privacy**

    - Guarantee: nothing is learnt from the records, hence there is nothing to charge. Each record
      is mapped by itself, so neighbouring data sets stay neighbours, and the budget of the next
      step is untouched. State ``row_norm_bound=1`` to it; a
      :class:`~dpcd_sklearn.pipeline.PrivatePipeline` does.
    - Not protected: as in :class:`BoundsScaler`.

    Parameters
    ----------
    n_groups : int >= 1, default=1
        Number of groups; the number of features must be a multiple of it.
    smoothing : float in [0, inf), default=1e-5
        s, in squared units of the features: groups that are constant but for so much stay small.
        Public: never from the data.
    copy : bool, default=True
        If False, `transform` overwrites X where it can: a NumPy array of writeable floats. Anything
        else is copied, data frames always.

    Attributes
    ----------
    n_features_in_ : int
        Number of features. Public.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings. Public.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, the number of features is no multiple of `n_groups`, or X is
        sparse, empty, NaN or infinite somewhere.

    Notes
    -----
    The result keeps float32 and its memory layout; other dtypes become float64. Norms are one up to
    rounding, which a model with ``row_norm_bound`` makes good; rows whose groups are all constant
    become zeros.

    References
    ----------
    Tramèr & Boneh (2021). Differentially private learning needs better features (or much more
    data). ICLR.

    Examples
    --------
    >>> from dpcd_sklearn.preprocessing import GroupNormalizer
    >>> GroupNormalizer(n_groups=2, smoothing=0.0).fit_transform([[1.0, 3.0, 20.0, 60.0]])
    array([[-0.5,  0.5, -0.5,  0.5]])
    """

    _parameter_constraints = {
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "copy": ["boolean"],
    }

    def __init__(self, n_groups: int = 1, *, smoothing: float = 1e-5, copy: bool = True):
        self.n_groups = n_groups
        self.smoothing = smoothing
        self.copy = copy

    def _read(self, X, **options):
        """The records, whose number of features suits the groups."""
        if issparse(X):
            raise TypeError(f"{type(self).__name__} takes no sparse X: centred rows are dense")
        X = read_records(self, X, **_DENSE, **options)
        self._checked()
        return X

    def _checked(self):
        """The number of groups and the smoothing, for the number of features that is known."""
        n_groups = check_count(self.n_groups, "n_groups")
        if self.n_features_in_ % n_groups:
            raise ValueError(
                f"n_groups={n_groups} must divide the number of features, {self.n_features_in_}: "
                "groups are of one size"
            )
        return n_groups, check_real(self.smoothing, "smoothing", low=0.0, closed="left")

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Check the parameters, and the shape and the column names of X.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            The records. Nothing is learnt from their values.
        y : None
            Ignored.

        Returns
        -------
        self : GroupNormalizer
        """
        self._read(X)
        return self

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike):
        """Centre and scale the groups of each row, and the row.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            The records.

        Returns
        -------
        X_normalized : ndarray of shape (n_samples, n_features)
        """
        given, copy = X, self.copy or not isinstance(X, np.ndarray)
        first = not hasattr(self, "n_features_in_")  # it is stateless
        X = self._read(X, reset=first, copy=copy, force_writeable=True)
        n_groups, smoothing = self._checked()
        for tile in row_tiles(X):
            values = X[tile].astype(np.float64, order="C")
            _normalize(values.reshape(len(values) * n_groups, -1), smoothing, centre=True)
            _normalize(values, 0.0, centre=False)
            X[tile] = values
        return given_back(X, given)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _normalize(rows, smoothing, centre):
    """Divide each row by the root of its sum of squares and the smoothing's, in place.

    Sums are in one fixed order: a row follows from what it holds, whatever tile it lies in.
    """
    largest = np.abs(rows).max(axis=1, keepdims=True)
    largest[largest == 0.0] = 1.0
    rows /= largest  # their squares neither vanish nor overflow
    ones = np.ones((1, rows.shape[1]))
    if centre:
        rows -= products(rows, ones) / rows.shape[1]
    squares = products(rows * rows, ones)
    rows[squares[:, 0] <= _ROUNDING**2 * rows.shape[1]] = 0.0
    squares += rows.shape[1] * (smoothing / largest / largest)
    rows /= np.sqrt(np.where(squares > 0.0, squares, 1.0))
