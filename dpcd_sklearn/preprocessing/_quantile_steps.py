"""Columns scaled, or mapped to a law, by quantiles that are released privately."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtr, ndtri
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from ..privacy.mechanisms._cell_sums import RunningUnits
from ..privacy.sums._counts import N_LINEAR
from ..privacy.sums._place import LocalPlace
from ..utils._compat import Interval, OneToOneFeatureMixin, StrOptions
from ..utils._public import check_interval
from ..utils._tiles import map_cells, within_range
from ..utils._typing import ArrayLike, Bounds, Pair
from ._private_transformer import OF_BUDGET, PrivateTransformer

# ---- The base of scalers by quantiles: all those of a column from one release of running counts --


class QuantileStep(OneToOneFeatureMixin, PrivateTransformer):
    """A transformer that learns quantiles of its columns.

    Parameters
    ----------
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity takes the quantiles of the records, and protects nobody.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=None
        As in `BoundsScaler`: quantiles are looked for within them, to a 256th part. Public. None
        finds a range of six inter-quartile ranges first.

    Warns
    -----
    UserWarning
        If n and epsilon are too small for so many columns: a public fact.
    """

    _uncertain = "quantiles"

    _parameter_constraints = OF_BUDGET | {"feature_bounds": [None, tuple, list, dict]}

    @abstractmethod
    def _quantiles(self):
        """Which quantiles are learnt: a list of numbers in [0, 1]."""

    @abstractmethod
    def _keep(self, values, bounds):
        """Keep what was released: an array (n_quantiles, n_features), and the bounds (lo, hi)."""

    def _plan_releases(self, n_features, budget):
        return self._plan_within_bounds(n_features, budget, 0.3, RunningUnits)

    def _release(self, releases, tables, stated):
        (X,), wanted, plan = tables, np.array(self._quantiles()), releases.plan
        if not plan.units:
            self._keep(np.empty((0, self.n_features_in_)), self._stated_bounds())
            return
        n_known = X.shape[0] if plan.budget.neighboring == "replace_one" else None
        values, bounds = self._release_within_bounds(
            releases,
            LocalPlace(X),
            lambda _: np.quantile(X.toarray() if issparse(X) else X, wanted, axis=0),
            n_known,
            width=3.0,  # inter-quartile ranges to either side
        )
        if plan.budget.private:
            values = _inverted(values, wanted, *bounds)
        self._keep(values, bounds or (values[0], values[-1]))


def _inverted(running, quantiles, lo, hi):
    """Quantiles of each column from noisy running counts: linear within cells."""
    cells = np.arange(N_LINEAR + 1) / N_LINEAR
    found = np.empty((len(quantiles), len(running)))
    for j, counts in enumerate(running):
        below = np.append(0.0, isotonic_regression(np.clip(counts, 0.0, max(counts[-1], 0.0))))
        low = np.interp(quantiles * below[-1], below, cells)
        # beyond the last record counts are alike: there the first cell of so many is right
        high = 1.0 - np.interp((1 - quantiles) * below[-1], below[-1] - below[::-1], cells)
        share = np.where(quantiles > 0.5, high, low)
        found[:, j] = lo[j] + share * (hi[j] - lo[j])
    return np.clip(found, lo, hi)


# The normal law is cut where scikit-learn cuts it.
NORMAL_BOUND = float(-ndtri(1e-7 - np.spacing(1)))


@dataclass(eq=False, repr=False)
class DPQuantileTransformer(QuantileStep):
    r"""Map each column to a uniform or a normal law, by its released quantiles.

    As scikit-learn's QuantileTransformer. What lies beyond the released quantiles gets the value of
    the last one, so bounds of the result are known, and are told in a `PrivatePipeline`.

    **Privacy**

    - Charged, as one event, before a record is used: running counts of all columns together, from
      which all quantiles follow, however many; and five choices a column for the range that they
      are looked for in, where no bounds are stated.
    - Not protected: shapes, dtype and column names. The transformed records are as sensitive as the
      records. NaN and infinite values break the promise on the domain.

    Parameters
    ----------
    n_quantiles : int from 2 to 1,000, default=100
        How many quantiles are kept; their number costs nothing. Beyond 257 they say nothing new.
    output_distribution : {"uniform", "normal"}, default="uniform"
        Numbers from 0 to 1, or normal ones, cut to ∓5.2.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Quantiles of each column, in order. Released.
    references_ : ndarray of shape (n_quantiles,)
        Which ones, from 0 to 1. Public.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or X is sparse, empty, or NaN or infinite somewhere; nothing was
        charged.

    See Also
    --------
    DPStandardScaler : Scales, and leaves the law of a column as it is.

    Notes
    -----
    As in `DPRobustScaler`. Proof: ``privacy/proofs/release_running_counts.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPQuantileTransformer
    >>> X = np.random.default_rng(0).exponential(7.0, size=(50_000, 1))
    >>> Z = DPQuantileTransformer(epsilon=1.0).fit_transform(X)
    >>> bool(np.abs(np.quantile(Z, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.03)
    True
    """

    _parameter_constraints = QuantileStep._parameter_constraints | {
        "n_quantiles": [Interval(Integral, 2, 1000, closed="both")],
        "output_distribution": [StrOptions({"uniform", "normal"})],
    }

    n_quantiles: int = 100
    _: KW_ONLY
    output_distribution: str = "uniform"
    feature_bounds: Bounds | None = None

    def _quantiles(self):
        return np.linspace(0.0, 1.0, self.n_quantiles)

    def _keep(self, values, bounds):
        self.references_ = np.array(self._quantiles())
        self.quantiles_ = np.maximum.accumulate(values, axis=0)

    def transform(self, X: ArrayLike):
        """Map records, each by itself.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_mapped : ndarray of shape (n_samples, n_features)
        """
        return self._mapped(X, self._to_law)

    def inverse_transform(self, X: ArrayLike):
        """From the uniform or normal law to quantiles of the columns.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
        """
        return self._mapped(X, self._from_law)

    def _to_law(self, cells, quantiles):
        # where quantiles are one number, the middle of their places
        shares = np.interp(cells, quantiles, self.references_)
        shares -= np.interp(-cells, -quantiles[::-1], -self.references_[::-1])
        shares /= 2
        if self.output_distribution == "uniform":
            return shares
        return np.clip(ndtri(shares), -NORMAL_BOUND, NORMAL_BOUND)

    def _from_law(self, cells, quantiles):
        shares = ndtr(cells) if self.output_distribution == "normal" else cells
        return np.interp(shares, self.references_, quantiles)

    @np.errstate(all="ignore")
    def _mapped(self, X, function):
        check_is_fitted(self, "quantiles_")  # a refused fit leaves n_features_in_
        X = self._read(X, reset=False).copy()
        for j, quantiles in enumerate(self.quantiles_.T):
            X[:, j] = within_range(function(X[:, j].astype(np.float64), quantiles), X.dtype)
        return X


# ---- A median and a distance of quantiles --------------------------------------------------------


@dataclass(eq=False, repr=False)
class DPRobustScaler(QuantileStep):
    r"""Centre columns by their medians, and divide them by the distance of two quantiles.

    As scikit-learn's RobustScaler, with released quantiles. Nothing is clipped, so of what comes
    out no bounds are known: in front of a model of this package a `DPStandardScaler` pays for
    less, since its bounds are told.

    **Privacy**

    - Charged, as one event, before a record is used: running counts of all columns together, from
      which all quantiles follow; and five choices a column for the range that they are looked for
      in, where no bounds are stated. Nothing, if it neither centres nor scales.
    - Not protected: shapes, dtype, layout and column names; the time of sparse data. The
      transformed records are as sensitive as the records. NaN and infinite values break the
      promise on the domain.

    Parameters
    ----------
    with_centering : bool, default=True
        Whether the median becomes 0. Sparse records need False.
    with_scaling : bool, default=True
        Whether columns are divided.
    quantile_range : tuple (low, high) of float, default=(25.0, 75.0)
        Which quantiles, in percent: 0 < low < high < 100.
    unit_variance : bool, default=False
        Whether normal columns get a variance of one.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        The medians; zeros without centring. Released.
    scale_ : ndarray of shape (n_features,), > 0
        What is divided by; ones without scaling. Of a column whose quantiles are one number it is
        the half-width of the range that they were looked for in. Released.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, if X is empty, NaN or infinite somewhere, or if X is sparse and
        to be centred; nothing was charged.

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
        low, high = check_interval(tuple(self.quantile_range), "quantile_range")
        if not (low > 0 and high < 100):
            raise ValueError(
                f"quantile_range is in percent, 0 < low < high < 100, got {low, high}: ends of a "
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
        X = self._read(X, reset=False).copy()
        return map_cells(X, function, self.center_, self.scale_)
