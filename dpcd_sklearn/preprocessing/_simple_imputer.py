"""Missing cells filled with constants that are stated, or released privately."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real

import numpy as np
from scipy.sparse import hstack, issparse
from sklearn.utils.validation import check_is_fitted

from ..plan._scale_choices import find_medians
from ..privacy.accounting._calibration import greedy_fit_event
from ..privacy.accounting._joint import partition_event
from ..privacy.mechanisms._cell_sums import PresentUnits
from ..privacy.mechanisms._quantiles import QuantileOracle, QuantileUnits
from ..privacy.mechanisms._tables import PartitionUnits
from ..privacy.sums._tables import CategoryPlace, PresentPlace, category_of, keys_of
from ..utils._compat import StrOptions
from ..utils._input import read_records
from ..utils._tiles import map_cells
from ..utils._typing import ArrayLike, Bounds
from ._columns import columns_of, names_of
from ._private_transformer import CHECKS, OF_BUDGET, PrivateTransformer


@dataclass(eq=False, repr=False)
class DPSimpleImputer(PrivateTransformer):
    r"""Fill missing cells with a median, a mean, the most frequent value or a constant.

    The fill of a column is released with noise, and is the same for all records: what `transform`
    puts into a record follows from that record and from released numbers.

    **Privacy**

    - Charged, as one event, before a record is used: for medians three choices a column, or one
      where bounds are stated; for means one release of sums of all columns together, and five
      choices a column where no bounds are stated; for the most frequent values one release of the
      counts of all categories. Constants are free.
    - Which cells are missing is protected as their values are, for the fill of each column counts
      the records that have one. No column is dropped, whatever is missing.
    - Not protected: shapes, dtypes, layout and names of columns; the time of sparse data and of
      counts of categories. The transformed records are as sensitive as the records. Infinite
      values break the promise on the domain: the error about them is outside the guarantee.

    Parameters
    ----------
    strategy : {"median", "mean", "most_frequent", "constant"}, default="median"
        Medians and means are of numbers; the most frequent value may be a word.
    fill_value : number, str or None, default=None
        The constant; None is 0 for numbers and "missing" for words. It is also what a column gets
        of which no frequent value was found, so steps behind this one must take it. Public: never
        from the data.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=None
        Bounds of numbers, as in `BoundsScaler`: cells are clipped to them, and fills lie within.
        They save two choices of three. Public: never from the data.
    add_indicator : bool, default=False
        Whether an indicator of missing cells follows for each column, whatever is missing.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        The fill of each column. Released, or stated.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or X is empty, infinite somewhere, or holds words of which a mean
        or a median is asked for; nothing was charged.

    Warns
    -----
    UserWarning
        If n and epsilon are too small for so many columns: a public fact.

    Notes
    -----
    Missing are NaN, None and pandas' NA. In sparse records an entry that is not stored is a zero,
    not missing. Medians are chosen by the exponential mechanism among public cells: the octave of
    the median of abs(x), a 256th part of it, and a 256th part of that (``release_quantiles.md``).
    Means are quotients of noisy sums (``release_present_means.md``) of cells that are clipped to
    the bounds; where none are stated, to four inter-quartile ranges, which are released first.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPSimpleImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([30.0, 1e6], [10.0, 1e5], size=(20_000, 2))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> imputer = DPSimpleImputer(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(imputer.statistics_ - [30, 1e6]) < [2, 2e4]))
    True
    >>> bool(np.isnan(imputer.transform(X)).any())
    False
    >>> print(imputer.planned_event(20_000, 2))
    6 choices of bounded range 0.1814, under replace-one neighbours
    """

    _uncertain, _remedy = "the fills", "feature_bounds that you know, or a constant"
    _parameter_constraints = OF_BUDGET | {
        "strategy": [StrOptions({"median", "mean", "most_frequent", "constant"})],
        "fill_value": [None, Real, str],
        "feature_bounds": [None, tuple, list, dict],
        "add_indicator": ["boolean"],
    }

    strategy: str = "median"
    _: KW_ONLY
    fill_value: float | str | None = None
    feature_bounds: Bounds | None = None
    add_indicator: bool = False

    @property
    def charges_nothing(self):
        """Whether the fill is a constant, so that nothing is learnt or charged."""
        return self.strategy == "constant"

    @property
    def _of_words(self):
        """Whether cells may be words; bounds are of numbers."""
        if self.feature_bounds is not None or self.strategy in ("median", "mean"):
            return False
        return self.strategy == "most_frequent" or isinstance(self.fill_value, str)

    @property
    def _takes_sparse(self):
        return self.strategy != "most_frequent" and not self._of_words

    # ---- the plan ----

    def _plan_releases(self, n_features, budget):
        if self.strategy == "most_frequent":
            return [(partition_event(budget), PartitionUnits, {"n_columns": n_features})]
        if self.strategy == "median":
            count = n_features * self._of_each
            return [(greedy_fit_event(budget, count, 1.0), QuantileUnits, {})]
        return self._plan_within_bounds(n_features, budget, 0.5, PresentUnits)

    @property
    def _of_each(self):
        """How many choices find the median of a column."""
        return 3 if self.feature_bounds is None else 1

    def _needed_share(self, signal, n_features):
        """Share of μ² in a pipeline, from its n μ: a fill need not be exact."""
        if self.strategy == "most_frequent":
            return 0.15
        # with evidence of 50 a choice
        needed = self._of_each * n_features * (50 / (2 * signal)) ** 2
        return min(max(needed, 0.02), 0.05 * self._of_each)

    def _check_stated(self, n_features):
        super()._check_stated(n_features)
        self._check_together()

    def _check_together(self):
        """Conditions on several parameters.

        Raises
        ------
        TypeError, ValueError
        """
        if self.feature_bounds is None:
            return
        if self.strategy == "most_frequent" or isinstance(self.fill_value, str):
            raise ValueError(
                "feature_bounds are of numbers; leave them out for words and the most frequent "
                "values, or ask for strategy='median'"
            )

    # ---- fitting ----

    def _read_with_target(self, X, y):
        return [self._read(X, reset=True)], self._constants()

    def _release(self, releases, tables, stated):
        (X,), fill, bounds = tables, stated, self._stated_bounds()
        if self.strategy == "most_frequent":
            (units,), place = releases.plan.units, CategoryPlace(X, len(X[0]))
            named = releases.oracle(units, place).release()
            fill = _most_frequent(named, otherwise=fill)
        elif not self.charges_nothing:
            fill = self._median_or_mean(X, releases, bounds)
        self._keep(fill, bounds)

    def _median_or_mean(self, X, releases, bounds):
        place = PresentPlace(X)
        if self.strategy == "median":
            (units,) = releases.plan.units
            return find_medians(releases.oracle(units, place, kind=QuantileOracle), bounds)
        return self._release_within_bounds(releases, place, lambda lo_hi: _exact_means(X, lo_hi))[0]

    def _keep_without_records(self):
        """Fills are constants."""
        self._keep(self._constants(), self._stated_bounds())

    def _read(self, X, *, reset):
        """Numbers as an array, words as a list of columns."""
        self._check_together()
        if self._of_words:
            return columns_of(self, X, reset=reset)
        return read_records(self, X, reset=reset, **CHECKS | {"ensure_all_finite": "allow-nan"})

    def _constants(self):
        """The stated fill; 0, or "missing" in columns that are no numbers by their dtypes."""
        fill = self.fill_value
        if isinstance(fill, str) and set(self._kinds) == {"numbers"}:  # as scikit-learn does
            raise ValueError(
                f"fill_value={fill!r} is a word, and all columns of X hold numbers by dtype; state "
                "a number, or convert the columns to objects"
            )
        if fill is not None or not self._of_words:
            return [0.0 if fill is None else fill] * self.n_features_in_
        return [0 if kind == "numbers" else "missing" for kind in self._kinds]

    def _keep(self, fill, bounds):
        if self._of_words:
            self.statistics_ = np.array([*map(category_of, fill), None], dtype=object)[:-1]
            return
        self.statistics_ = np.array(fill, dtype=np.float64)
        if bounds is not None:
            self.statistics_ = np.clip(self.statistics_, *bounds)

    # ---- transforming ----

    def transform(self, X: ArrayLike):
        """Fill missing cells, each by itself.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_filled : {ndarray, CSR, CSC} of shape (n_samples, n_features_out)
            Numbers, or objects where cells may be words or integers of 64 bits lie beside others;
            then indicators, if asked for.
        """
        check_is_fitted(self, "statistics_")  # a refused fit leaves n_features_in_
        X = self._read(X, reset=False)
        if self._of_words:
            return self._filled_words(X)
        X, missing = X.copy(), None
        if self.add_indicator:
            missing = _indicator(X)
        unbounded = np.full(X.shape[1], np.inf)
        lo, hi = self._stated_bounds() or (-unbounded, unbounded)
        map_cells(X, _filled, self.statistics_, lo, hi)
        if missing is None:
            return X
        return hstack([X, missing], format=X.format) if issparse(X) else np.hstack([X, missing])

    def _filled_words(self, columns):
        n_samples, n_features = len(columns[0]), len(columns)
        dtype = _dtype_of_all(columns, self.statistics_)
        filled = np.empty((n_samples, n_features * (1 + self.add_indicator)), dtype=dtype)
        for j, column in enumerate(columns):
            missing = np.ma.getmaskarray(column)
            if column.dtype.kind in "fO":
                missing = np.array([key is None for key in keys_of(column)], dtype=bool)
            filled[:, j] = np.ma.getdata(column)
            filled[missing, j] = self.statistics_[j]
            if self.add_indicator:
                filled[:, n_features + j] = missing
        return filled

    def get_feature_names_out(self, input_features=None):
        """Names of the columns, and of the indicators.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of X; None takes those of the fit, or x0, x1, ...

        Returns
        -------
        names : ndarray of objects
        """
        names = list(names_of(self, input_features))
        if self.add_indicator:
            names += [f"missingindicator_{name}" for name in names]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = self._of_words
        if self._of_words:
            tags.transformer_tags.preserves_dtype = []
        return tags


def _filled(values, fill, lo, hi):
    return np.clip(np.where(np.isnan(values), fill, values), lo, hi)


def _dtype_of_all(columns, fills):
    """Choose by dtypes and fills, never by cells, what holds all cells and fills exactly."""
    kinds = {column.dtype.kind for column in columns}
    if not kinds <= set("biuf") or any(isinstance(fill, str) for fill in fills):
        return object
    whole = {"i": np.int64, "u": np.uint64}.get("".join(kinds))
    if whole and all(isinstance(fill, Integral) for fill in fills):
        limits = np.iinfo(whole)
        if all(limits.min <= fill <= limits.max for fill in fills):
            return whole
    wide = any(c.dtype.kind in "iu" and c.dtype.itemsize == 8 for c in columns)
    return object if wide else np.float64


def _most_frequent(released, otherwise):
    """The most frequent value of each column that was named and is not missing."""
    fill = list(otherwise)
    for j, (categories, counts) in enumerate(released):
        of_values = [i for i, category in enumerate(categories) if category is not None]
        if of_values:
            fill[j] = categories[max(of_values, key=lambda i, c=counts: c[i])]
    return fill


def _indicator(X):
    """Ones where a cell is missing, in the layout and dtype of X."""
    if not issparse(X):
        return np.isnan(X).astype(X.dtype)
    missing = X.copy()
    missing.data = np.isnan(X.data).astype(X.dtype)
    missing.eliminate_zeros()
    return missing


def _exact_means(X, bounds):
    """Means of what is present, for a fit without noise; bounds clip."""
    dense = X.toarray() if issparse(X) else np.asarray(X, dtype=np.float64)
    if bounds is not None:
        dense = np.clip(dense, *bounds)
    present = ~np.isnan(dense)
    return np.where(present, dense, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
