"""Scaling to [-1, 1] by bounds: public ones, or found ones."""

import math
from abc import ABCMeta, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..plan._scale_choices import (
    AMPLE_EVIDENCE,
    find_scales,
    find_scales_within,
    most_zooms,
    n_choices,
)
from ..privacy.accounting._calibration import greedy_fit_event
from ..privacy.mechanisms._quantiles import QuantileOracle, QuantileUnits
from ..privacy.sums._place import LocalPlace
from ..privacy.sums._records import canonical
from ..utils._cells import given_back
from ..utils._compat import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, fit_context
from ..utils._input import read_array, read_records
from ..utils._public import check_bounds
from ..utils._tiles import map_cells
from ..utils._typing import ArrayLike, Bounds
from ._private_transformer import CHECKS, OF_BUDGET, PrivateTransformer

# ---- Maps of features that clip to bounds and scale to [-1, 1], whoever found the bounds ---------


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
            The image of each record, in float32 if X is, else float64; CSR and CSC stay what
            they are, other sparse formats become CSR.
        """
        check_is_fitted(self, "center_")  # a refused fit leaves n_features_in_
        given = X
        X = read_records(
            self, X, reset=False, copy=self._must_copy(X), force_writeable=True, **CHECKS
        )
        lo, hi, center, half_width = self._map()
        self._refuse_sparse_if_zero_moves(X, lo, hi, center)
        if issparse(X):
            X = canonical(X)  # clipping is not linear: one entry a cell
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
        lo, hi, center, half_width = self._map()
        self._refuse_sparse_if_zero_moves(X, lo, hi, center)
        return given_back(map_cells(X, lambda x, c, h: x * h + c, center, half_width), given)

    def _must_copy(self, X):
        # A NumPy view of a data frame may share memory with other frames (copy-on-write).
        return self.copy or not (isinstance(X, np.ndarray) or issparse(X))

    def _refuse_sparse_if_zero_moves(self, X, lo, hi, center):
        if not issparse(X):
            return
        stays = zero_stays_zero(lo, hi, center)
        if not stays.all():
            raise ValueError(f"X is sparse, but {self._how_zero_stays(int(np.argmin(stays)))}")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
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


@dataclass(eq=False, repr=False)
class BoundsScaler(BoundedMap):
    r"""Map features from public bounds [lo, hi] to [-1, 1].

    Feature j of a record becomes, with :math:`m_j = (lo_j + hi_j) / 2` and
    :math:`h_j = (hi_j - lo_j) / 2`,

    .. math::

        z_{ij} = \frac{\min(\max(x_{ij}, lo_j), hi_j) - m_j}{h_j},

    or, with ``with_centering=False``, :math:`m_j = 0` and
    :math:`h_j = \max(|lo_j|, |hi_j|)`. A feature with lo = hi becomes 0. Values outside the bounds
    are clipped, without a warning: a warning would tell about the records.

    **Privacy**

    - Guarantee: `fit` releases nothing that it learnt from the records, hence there is nothing to
      charge and no entry in the ledger. It looks at the shape, the kind of dtype and the column
      names. Each record is mapped by itself, so neighbouring data sets stay neighbours
      (replace one record, or add and remove one) and the budget of the next step is untouched.
    - Assumptions: `bounds` are public knowledge (a unit, a legal limit, the range of a sensor),
      never the minimum and maximum of the data. Which columns exist is public as well.
    - Not protected: the transformed records are as sensitive as the records. Shapes, column names
      and bounds are public. NaN and infinite values break the promise on the domain: the error
      about them is outside the guarantee. Work on sparse data follows its number of entries.

    Parameters
    ----------
    bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=(-1.0, 1.0)
        Finite bounds in the units of the features, lo <= hi. Public: never from the data.
        In a tuple, lo and hi are each a number (the same for all features) or an array of shape
        (n_features,) in the order of the columns. A list has one pair (lo, hi) for each feature.
        A dict is for data frames: it must name every column and no other one.
    with_centering : bool, default=True
        Whether the middle of the bounds becomes 0. If False, features are only divided, and zero
        stays zero where lo <= 0 <= hi, which sparse data needs.
    copy : bool, default=True
        If False, `transform` and `inverse_transform` overwrite X where they can: a NumPy array or
        a CSR or CSC matrix of writeable floats. Anything else is copied, data frames always.

    Attributes
    ----------
    lo_, hi_ : ndarray of shape (n_features,)
        The bounds, one for each feature. Public.
    center_ : ndarray of shape (n_features,)
        What is subtracted: the middle of the bounds, or with ``with_centering=False`` zero (where
        lo = hi that value in either case). Public.
    half_width_ : ndarray of shape (n_features,)
        What is divided by: half of hi - lo, or with ``with_centering=False`` the largest magnitude
        within the bounds; 0 where lo = hi. Public.
    n_features_in_ : int
        Number of features. Public.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings. Public.

    Raises
    ------
    TypeError
        If `bounds` is no tuple of two, list of pairs or dict, or holds something other than
        numbers; an array or ``[lo, hi]`` is refused, because it could mean either.
    ValueError
        If a bound is not finite, of the wrong length or upside down; if a dict misses a column or
        names an unknown one; if X is empty, NaN or infinite somewhere; if X is sparse and zero
        would not stay zero.

    Notes
    -----
    The result keeps float32, its memory layout and sparsity; other dtypes become float64. The map
    is computed in double precision and rounded once, so a dense array, a sparse matrix and a
    single record alone give the same numbers, always within [-1, 1].

    Sparse data is never densified. It is accepted when zero stays zero in every column: with
    ``with_centering=False`` and lo <= 0 <= hi, or with bounds that are symmetric, lo = -hi.

    Examples
    --------
    >>> from dpcd_sklearn.preprocessing import BoundsScaler
    >>> X = [[20.0, 0.0], [65.0, 30000.0], [150.0, 90000.0]]
    >>> scaler = BoundsScaler(bounds=[(0, 100), (0, 60000)]).fit(X)
    >>> scaler.transform(X)
    array([[-0.6, -1. ],
           [ 0.3,  0. ],
           [ 1. ,  1. ]])
    >>> scaler.inverse_transform([[0.5, 0.5]])
    array([[   75., 45000.]])
    """

    _parameter_constraints = {
        "bounds": [tuple, list, np.ndarray, dict],
        "with_centering": ["boolean"],
        "copy": ["boolean"],
    }

    bounds: Bounds = (-1.0, 1.0)
    _: KW_ONLY
    with_centering: bool = True
    copy: bool = True

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Check the bounds against the shape and the column names of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The records. Nothing is learnt from their values.
        y : None
            Ignored.

        Returns
        -------
        self : BoundsScaler
            The fitted scaler.
        """
        X = read_records(self, X, **CHECKS)
        columns = getattr(self, "feature_names_in_", None)
        lo, hi = check_bounds(self.bounds, self.n_features_in_, name="bounds", columns=columns)
        self.lo_, self.hi_ = lo, hi
        self.center_, self.half_width_ = _center_and_half_width(lo, hi, self.with_centering)
        self._refuse_sparse_if_zero_moves(X, lo, hi, self.center_)
        return self

    def _map(self):
        return self.lo_, self.hi_, self.center_, self.half_width_

    def _how_zero_stays(self, j):
        return (
            f"with these bounds zero would not stay zero and X would become dense: feature {j} has "
            f"lo={self.lo_[j]:g}, hi={self.hi_[j]:g}; pass with_centering=False and bounds with "
            "lo <= 0 <= hi, or symmetric bounds (lo == -hi)"
        )

    @property
    def _takes_sparse(self):
        if isinstance(self.bounds, dict):  # sparse matrices have no column names
            return False
        try:
            pairs = zip(*self.bounds, strict=True) if isinstance(self.bounds, list) else self.bounds
            lo, hi = (np.asarray(bound, dtype=np.float64) for bound in pairs)
            with np.errstate(invalid="ignore"):  # infinite bounds
                center, _ = _center_and_half_width(lo, hi, self.with_centering)
            return bool(zero_stays_zero(lo, hi, center).all())
        except (TypeError, ValueError, OverflowError):  # `fit` says what is wrong with the bounds
            return False


def _center_and_half_width(lo, hi, with_centering):
    """Return what the map subtracts and divides by; lo == hi gives (lo, 0)."""
    center, half_width = lo / 2 + hi / 2, hi / 2 - lo / 2  # halves first: hi - lo may overflow
    if not with_centering:
        center, half_width = np.zeros_like(center), np.maximum(np.abs(lo), np.abs(hi))
    constant = lo == hi
    return np.where(constant, lo, center), np.where(constant, 0.0, half_width)


# ---- Scaling whose centres and widths are found in the records, at a price -----------------------


@dataclass(eq=False, repr=False)
class DPStandardScaler(PrivateTransformer, BoundedMap):
    r"""Centre and scale features by private quantiles, and clip them to [-1, 1].

    For raw columns without bounds, or in bounds that are too wide. Feature j of a record becomes

    .. math::

        z_{ij} = \frac{\min(\max(x_{ij}, c_j - h_j), c_j + h_j) - c_j}{h_j},

    with :math:`c_j` the middle of its quartiles and :math:`h_j` twice the distance between them.
    Both are quantiles, so a few records far away move nothing. In stated bounds they are the middle
    and the half-width of the part that holds nearly all records.

    **Privacy**

    - Charged: one choice a column (the octave of the median of abs(x)), three more (quartiles
      and an interval around them) with centring, one with tails, and of many records up to five
      zooms, as one event, before a record is used. Within stated bounds: three or four a column.
    - Not protected: shapes, dtype, layout and column names; the time of sparse data, which follows
      its number of entries. The transformed records are as sensitive as the records. NaN and
      infinite values break the promise on the domain: the error about them is outside the
      guarantee.

    Parameters
    ----------
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone: a fifth of what the models behind it have by default. Infinity
        takes the same cells without noise, and protects nobody.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=None
        As in `BoundsScaler`; the part that records fill is looked for, if these can tell. Public.
    with_centering : bool, default=True
        Whether the middle of the quartiles becomes 0. If False, zero stays zero, as sparse data
        needs, and one choice a column is paid for instead of four.
    with_tails : bool, default=False
        Whether widths double until they hold 19 of 20 records, for columns whose few large numbers
        matter: delays, incomes. A twentieth of the records far away moves them then. Of few records
        no tail is looked for: a public rule. It needs `with_centering`; bounds take its place.
    copy : bool, default=True
        If False, `transform` and `inverse_transform` overwrite X where they can: a NumPy array or
        a CSR or CSC matrix of writeable floats. Anything else is copied, data frames always.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        What is subtracted. Released.
    scale_ : ndarray of shape (n_features,)
        What is divided by, :math:`h_j`; 0 where stated bounds are one point. Released.
    feature_bounds_ : tuple (lo, hi) of ndarray of shape (n_features,)
        Where features are clipped, ``center_`` ∓ ``scale_``, in the units of X. Released, hence
        public now. What `transform` returns has the bounds (-1, 1): state those to the next step.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, if X is empty, NaN or infinite somewhere, or if X is sparse and
        to be centred; nothing was charged.

    Warns
    -----
    UserWarning
        If n and epsilon are too small for so many columns without bounds: a public fact.

    Notes
    -----
    Each choice is an exponential mechanism. The score of a cell is minus the number of records
    that would have to move for it to hold the quantile. Octaves are those of 2^-125 to 2^125.
    Quartiles are found to a 64th of the upper end of the octave. Of a column far from zero beside
    its spread both lie in one cell, and finer cells there are zoomed in on, up to five times and as
    far as evidence (a public number) and double precision go. The last choice is between intervals
    around that centre: where records are not spread within any, but most are one number, the
    width is twice the upper end of the octave. Of a column that is mostly zero one choice tells the
    octave of what is not zero, most likely the one that begins at 1 where evidence is little; two
    more tell how often it doubles until few numbers lie beyond, and the narrower one is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([30, 1e6], [10, 1e5], size=(50_000, 2))
    >>> scaler = DPStandardScaler(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(scaler.center_ - [30, 1e6]) < [5, 2e5]))
    True
    >>> print(scaler.planned_event(50_000, 2))
    18 choices of bounded range 0.08646, under replace-one neighbours
    """

    _parameter_constraints = OF_BUDGET | {
        "feature_bounds": [None, tuple, list, dict],
        **dict.fromkeys(("with_centering", "with_tails", "copy"), ["boolean"]),
    }

    _: KW_ONLY
    feature_bounds: Bounds | None = None
    with_centering: bool = True
    with_tails: bool = False
    copy: bool = True

    def _read(self, X, *, reset):
        X = super()._read(X, reset=reset)
        if reset and self.feature_bounds is not None:
            self._refuse_sparse_if_zero_moves(X, *self._stated_bounds(), 0.0)
        return X

    def _release(self, releases, tables, stated):
        (X,), plan, bounds = tables, releases.plan, self._stated_bounds()
        (units,) = plan.units
        how, zooms = self._way(X.shape[1], plan.budget)
        oracle = releases.oracle(units, LocalPlace(X), kind=QuantileOracle)
        evidence = math.inf if units.noiseless else plan.budget.n * units.eta
        if how.endswith("within"):
            center, scale = find_scales_within(oracle, how, *bounds, evidence)
        else:
            center, scale = find_scales(oracle, "features", how, evidence, zooms=zooms)
        lo, hi = np.clip((center - scale, center + scale), *bounds or (-np.inf, np.inf))
        if bounds is not None:
            center, scale = _center_and_half_width(lo, hi, self.with_centering)
        self.center_, self.scale_, self.feature_bounds_ = center, scale, (lo, hi)

    def _few_records_warning(self, units, n_normalizer):
        if self.feature_bounds is not None:  # with little evidence they are left as they are
            return None
        return super()._few_records_warning(units, n_normalizer)

    def _way(self, n_features, budget):
        """How scales are looked for, and with how many zooms: the finest way there is evidence for.

        Near zero a zoom gains nothing, so it must take little from other choices.
        """
        if not self.with_centering:
            return "octaves", 0
        rho = budget.rho if budget.private else math.inf
        evidence = budget.n * math.sqrt(8 * rho)  # of one choice alone
        if self.feature_bounds is not None:
            ample = evidence / math.sqrt(n_choices(n_features, "all within")) >= 70
            return "all within" if ample else "within", 0
        if not self.with_tails:
            return "quartiles", most_zooms(evidence, n_features, "quartiles", 2 * AMPLE_EVIDENCE)
        if evidence / math.sqrt(n_choices(n_features, "tails")) < AMPLE_EVIDENCE:
            return "quartiles", 0
        return "tails", most_zooms(evidence, n_features, "tails", 4 * AMPLE_EVIDENCE)

    def _plan_releases(self, n_features, budget):
        if self.with_tails and not self.with_centering:
            raise ValueError(
                "with_tails=True needs with_centering=True: tails are distances from a centre"
            )
        count = n_choices(n_features, *self._way(n_features, budget))
        return [(greedy_fit_event(budget, count, 1.0), QuantileUnits, {})]

    def _needed_share(self, signal, n_features):
        """Share of μ² in a pipeline, from its n μ: a model suffers more from wrong scales."""
        how, least, most = "quartiles", 0.1, 0.3
        if self.feature_bounds is not None:
            # as little as columns that fill their bounds hardly feel
            how, least, most = "all within", 0.05, 0.14
        needed = n_choices(n_features, how) * (AMPLE_EVIDENCE / (2 * signal)) ** 2
        return min(max(needed, least), most)

    def _map(self):
        lo, hi = self.feature_bounds_
        return lo, hi, self.center_, self.scale_

    def _how_zero_stays(self, j):
        return "centring would make it dense; pass with_centering=False, and bounds that hold zero"

    @property
    def _takes_sparse(self):
        return not self.with_centering
