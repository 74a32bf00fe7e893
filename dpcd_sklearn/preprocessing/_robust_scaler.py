"""Scaling by a median and a distance of quantiles that are released privately."""

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from ..privacy.sums._counts import N_LINEAR
from ..privacy.sums._records import canonical
from ..utils._tiles import map_cells
from ..utils._typing import ArrayLike, Bounds, Pair
from ._quantile_transformer import QuantileStep


@dataclass(eq=False, repr=False)
class DPRobustScaler(QuantileStep):
    r"""Centre columns by their medians, and divide them by the distance of two quantiles.

    As scikit-learn's RobustScaler, with released quantiles. Nothing is clipped, so of what comes
    out no bounds are known: in front of a model of this package a `DPStandardScaler` pays for
    less, since its bounds are told.

    **Privacy**

    $guarantee
    - Charged, as one event, before a record is used: running counts of all columns together, from
      which all quantiles follow; and five choices a column for the range that they are looked for
      in, where no bounds are stated. Nothing, if it neither centres nor scales.
    - Not protected: shapes, dtype, layout and column names; the time of sparse data. The
      transformed records are as sensitive as the records. NaN and infinite values break the
      promise on the domain.

    Parameters
    ----------
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity takes the quantiles of the records, and protects nobody.
    $delta
    with_centering : bool, default=True
        Whether the median becomes 0. Sparse records need False.
    with_scaling : bool, default=True
        Whether columns are divided.
    quantile_range : tuple (low, high) of float, default=(25.0, 75.0)
        Which quantiles, in percent: 0 < low < high < 100.
    unit_variance : bool, default=False
        Whether normal columns get a variance of one.
    $bounds_of_quantiles
    $relation
    $ledger_and_seed

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        The medians; zeros without centring. Released.
    scale_ : ndarray of shape (n_features,), > 0
        What is divided by; ones without scaling. Of a column whose quantiles are one number it is
        the half-width of the range that they were looked for in. Released.
    $of_fit

    Raises
    ------
    $refused_charge
    TypeError, ValueError
        If a parameter is invalid, if X is empty, NaN or infinite somewhere, or if X is sparse and
        to be centred; nothing was charged.

    $few_records

    See Also
    --------
    DPStandardScaler : Clips to bounds, which it tells the next step.
    DPQuantileTransformer : Maps all quantiles.

    Notes
    -----
    Counts below 256 edges are released by the square root of the matrix of running sums
    (``privacy/proofs/release_running_counts.md``), made monotone and inverted.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPRobustScaler
    >>> X = np.random.default_rng(0).normal([30, 1e6], [10, 1e5], size=(50_000, 2))
    >>> scaler = DPRobustScaler(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(scaler.center_ - [30, 1e6]) < [1, 1e4]))
    True
    >>> bool(np.all(np.abs(scaler.scale_ / [13.5, 1.35e5] - 1) < 0.1))
    True
    """

    _parameter_constraints = QuantileStep._parameter_constraints | {
        "with_centering": ["boolean"],
        "with_scaling": ["boolean"],
        "quantile_range": [tuple, list],
        "unit_variance": ["boolean"],
    }

    _: KW_ONLY
    with_centering: bool = True
    with_scaling: bool = True
    quantile_range: Pair = (25.0, 75.0)
    unit_variance: bool = False
    feature_bounds: Bounds | None = None

    @property
    def charges_nothing(self):
        """Whether nothing is learnt, as it neither centres nor scales."""
        return not (self.with_centering or self.with_scaling)

    def _validate_params(self):
        super()._validate_params()
        low_high = tuple(self.quantile_range)
        if len(low_high) != 2 or not all(_is_number(q) for q in low_high):
            raise TypeError("quantile_range is a pair of numbers, such as (25.0, 75.0)")
        if not 0 < low_high[0] < low_high[1] < 100:
            raise ValueError(
                f"quantile_range is in percent, 0 < low < high < 100, got {low_high}: ends of a "
                "column are those of one record each"
            )

    def _quantiles(self):
        low, high = self.quantile_range
        return [low / 100, 0.5, high / 100]

    def _keep(self, values, bounds):
        n_features = values.shape[1]
        self.center_, self.scale_ = np.zeros(n_features), np.ones(n_features)
        if len(values) == 0:
            return
        low, median, high = values
        if self.with_centering:
            self.center_ = median
        if not self.with_scaling:
            return
        spread, width = high - low, bounds[1] - bounds[0]
        if self.unit_variance:
            quantiles = self._quantiles()
            spread = spread / (ndtri(quantiles[2]) - ndtri(quantiles[0]))
        one_number = high - low < width / N_LINEAR
        scale = np.where(one_number, width / 2, spread)
        self.scale_ = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)

    @property
    def _takes_sparse(self):
        return not self.with_centering

    def transform(self, X: ArrayLike):
        """Centre and scale records, each by itself.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_scaled : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        """
        return self._mapped(X, lambda values, center, scale: (values - center) / scale)

    def inverse_transform(self, X: ArrayLike):
        """Undo the scaling.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_original : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        """
        return self._mapped(X, lambda values, center, scale: values * scale + center)

    def _mapped(self, X, function):
        check_is_fitted(self, "center_")  # a refused fit leaves n_features_in_
        X = self._read(X, reset=False)
        X = canonical(X).copy() if issparse(X) else X.copy()
        return map_cells(X, function, self.center_, self.scale_)


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
