"""Missing cells filled with constants that are stated, or released privately."""

import math
from numbers import Integral, Real
from typing import Self

import numpy as np
from scipy.sparse import hstack, issparse
from sklearn.utils.validation import check_is_fitted

from ..plan._release import own_key
from ..plan._scale_choices import find_medians, find_scales, zooms_of
from ..privacy.accounting._calibration import gaussian_fit_event, greedy_fit_event
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import partition_event
from ..privacy.mechanisms._cell_sums import PresentOracle, PresentUnits
from ..privacy.mechanisms._quantiles import QuantileOracle, QuantileUnits
from ..privacy.mechanisms._tables import PartitionOracle, PartitionUnits
from ..privacy.mechanisms._units import Units
from ..privacy.sums._categories import CategoryPlace, category_of, keys_of
from ..privacy.sums._present_place import PresentPlace
from ..privacy.sums._records import canonical
from ..utils._compat import StrOptions, fit_context
from ..utils._input import read_records
from ..utils._public import check_bounds
from ..utils._tiles import map_cells
from ..utils._typing import ArrayLike, Column
from ._columns import columns_of, names_of
from ._private_transformer import (
    OF_BUDGET,
    PrivateTransformer,
    after_scales,
    few_records,
    lacks_evidence,
)

_OF_NUMBERS = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": "allow-nan",
}
_SHARE_OF_SCALES = 0.5  # of ρ, where a mean has to find bounds first


class DPSimpleImputer(PrivateTransformer):
    r"""Fill missing cells with a median, a mean, the most frequent value or a constant.

    The fill of a column is released with noise, and is the same for all records: what `transform`
    puts into a record follows from that record and from released numbers.

    **Privacy**

    $guarantee
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
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity adds no noise, and protects nobody.
    $delta
    fill_value : number, str or None, default=None
        The constant; None is 0 for numbers and "missing" for words. It is also what a column gets
        of which no frequent value was found, so steps behind this one must take it. Public: never
        from the data.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=None
        Bounds of numbers, as in `BoundsScaler`: cells are clipped to them, and fills lie within.
        They save two choices of three. Public: never from the data.
    add_indicator : bool, default=False
        Whether an indicator of missing cells follows for each column, whatever is missing.
    $neighboring
    $n_public
    $accountant
    $random_state

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        The fill of each column. Released, or stated.
    $privacy_event_
    $privacy_spent_
    $n_features_in_
    $feature_names_in_

    Raises
    ------
    $BudgetExceededError
    $LedgerError
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

    _parameter_constraints = OF_BUDGET | {
        "strategy": [StrOptions({"median", "mean", "most_frequent", "constant"})],
        "fill_value": [None, Real, str],
        "feature_bounds": [None, tuple, list, dict],
        "add_indicator": ["boolean"],
    }

    def __init__(
        self,
        strategy: str = "median",
        *,
        epsilon: float = 0.2,
        delta="auto",
        fill_value=None,
        feature_bounds=None,
        add_indicator: bool = False,
        neighboring: str = "replace_one",
        n_public: int | None = None,
        accountant=None,
        random_state=None,
    ):
        self.strategy = strategy
        self.epsilon = epsilon
        self.delta = delta
        self.fill_value = fill_value
        self.feature_bounds = feature_bounds
        self.add_indicator = add_indicator
        self.neighboring = neighboring
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state

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

    # ---- the plan ----

    def _event(self, n_features, budget):
        stated = self.feature_bounds is not None
        if self.strategy == "most_frequent":
            return partition_event(budget)
        if self.strategy == "median":
            count = n_features * (1 if stated else 3)
            return greedy_fit_event(budget, count, 1.0)
        means = gaussian_fit_event(budget, 1)
        if stated or not budget.private:
            return means
        return after_scales(budget, n_features, _SHARE_OF_SCALES, means)

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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: None = None, groups: Column = None) -> Self:
        """Find what missing cells are filled with, charging before a record is used.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Numbers, or words as well where the strategy takes them; NaN and None are missing.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record: one of each is read, at most k for ``Persons(k)``.

        Returns
        -------
        self : DPSimpleImputer
            The fitted imputer.

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused or can't be written; no record was used.
        TypeError, ValueError
            If a parameter or X is invalid; nothing was charged.
        """
        self._check_together()
        X, shape = self._read(X, reset=True)
        n_samples, X = self._read_by_fit(groups, shape[0], X)
        bounds, fill = self._bounds(), self._constants(X)
        plan = self._planned(n_samples, shape[1])
        if not self.charges_nothing:
            receipt, key = self._paid(plan, shape[1])
            if self.strategy == "most_frequent":
                (units,), place = plan.units, CategoryPlace(X, n_samples)
                oracle = receipt.shown(PartitionOracle(receipt, units, place, key=key), units)
                fill = _most_frequent(oracle.release_categories(), otherwise=fill)
            else:
                fill = _median_or_mean(X, plan, receipt, bounds, self.strategy, key)
        self._keep(fill, bounds)
        self._promise(plan)
        return self

    def fitted_without_records(self, X):
        """Fit a copy to nothing but the shape and the names: fills are constants.

        A plan asks what comes out: as many columns, in the same layout, as after a fit.
        """
        self._validate_params()
        self._check_together()
        X, _ = self._read(X, reset=True)
        self._keep(self._constants(X), self._bounds())
        return self

    def _read(self, X, reset):
        """Numbers as an array, words as a list of columns; and the shape."""
        if self._of_words and not issparse(X):
            columns, n_samples = columns_of(self, X, reset=reset)
            return columns, (n_samples, len(columns))
        if self.strategy == "most_frequent":
            raise TypeError("the most frequent values are of dense columns; pass X.toarray()")
        X = read_records(self, X, reset=reset, **_OF_NUMBERS)
        return (canonical(X) if issparse(X) else X), X.shape

    def _bounds(self):
        if self.feature_bounds is None:
            return None
        names = getattr(self, "feature_names_in_", None)
        return check_bounds(self.feature_bounds, self.n_features_in_, columns=names)

    def _constants(self, X):
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

    def _units(self, event, n_features, n_samples, n_normalizer):
        sizes = {"n_columns": n_features, "n_samples": n_samples, "n_normalizer": n_normalizer}
        if self.strategy == "most_frequent":
            return [PartitionUnits(event, **sizes)]
        if self.strategy == "median":
            return [QuantileUnits(event)]
        if math.isinf(self.epsilon):
            return [Units(event)]
        *scales, means = (FitEvent((part,), event.neighboring) for part in event.releases)
        return [*map(QuantileUnits, scales), PresentUnits(means, **sizes)]

    def _said_of_few(self, units, n_normalizer):
        named = isinstance(units, PartitionUnits)
        if units.threshold > n_normalizer / 2 if named else lacks_evidence(units, n_normalizer):
            remedy = "feature_bounds that you know, or a constant"
            return few_records(self, n_normalizer, "the fills", remedy)
        return None

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
        X, shape = self._read(X, reset=False)
        if self._of_words:
            return self._filled_words(X, shape)
        X, missing = X.copy(), None
        if self.add_indicator:
            missing = _indicator(X)
        lo, hi = self._bounds() or (np.full(X.shape[1], -np.inf), np.full(X.shape[1], np.inf))
        map_cells(X, _filled, self.statistics_, lo, hi)
        if missing is None:
            return X
        return hstack([X, missing], format=X.format) if issparse(X) else np.hstack([X, missing])

    def _filled_words(self, columns, shape):
        n_features = shape[1]
        dtype = _dtype_of_all(columns, self.statistics_)
        filled = np.empty((shape[0], n_features * (1 + self.add_indicator)), dtype=dtype)
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
        tags.input_tags.sparse = self.strategy != "most_frequent" and not self._of_words
        tags.input_tags.string = self._of_words
        tags.input_tags.categorical = self._of_words
        tags.transformer_tags.preserves_dtype = [] if self._of_words else ["float64", "float32"]
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


@np.errstate(all="ignore")  # a floating point warning would tell about the records
def _median_or_mean(X, plan, receipt, bounds, strategy, key):
    *scales, last = plan.units
    place = PresentPlace(X)
    if strategy == "median":
        oracle = receipt.shown(QuantileOracle(receipt, last, place, key=key), last)
        return find_medians(oracle, bounds)
    for of_scales in scales:
        oracle = QuantileOracle(receipt, of_scales, place, key=own_key("scales", key))
        oracle = receipt.shown(oracle, of_scales)
        zooms = zooms_of(of_scales, X.shape[1])
        center, half_width = find_scales(
            oracle, "features", "quartiles", plan.budget.n * of_scales.eta, zooms=zooms, twice=True
        )
        bounds = center - half_width, center + half_width
    if last.noiseless:
        last.redeem(receipt)
        return _exact_means(X, bounds)
    oracle = PresentOracle(receipt, last, place, key=own_key("means", key))
    return receipt.shown(oracle, last).release_present_means(*bounds)


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
