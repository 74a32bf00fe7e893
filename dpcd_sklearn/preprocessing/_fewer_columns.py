"""Fewer columns: those that go best with the target, or principal components."""

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from ..privacy.accounting._calibration import (
    gaussian_fit_event,
    greedy_fit_event,
    joint_fit_event,
    share_event,
)
from ..privacy.mechanisms._cell_sums import PresentUnits
from ..privacy.mechanisms._tables import ColumnUnits, SecondMomentUnits
from ..privacy.sums._place import LocalPlace
from ..privacy.sums._tables import PresentPlace, TargetPlace
from ..utils._compat import Interval, StrOptions
from ..utils._input import read_input, refuse_broken
from ..utils._public import check_bounds
from ..utils._tiles import row_tiles, within_range
from ..utils._typing import ArrayLike, Bounds, Pair
from ._columns import read_bounded_target, stated_target
from ._private_transformer import OF_BUDGET, UNIT, PrivateTransformer, refuse_more_than


@dataclass(eq=False, repr=False)
class DPSelectKBest(SelectorMixin, PrivateTransformer):
    r"""Keep the k columns that go best with the target, by private choices.

    The score of column j is, with x in half-widths of its bounds and m the target's mean,

    .. math::

        \Big|\sum_i x_{ij} (y_i - m)\Big|, \qquad \text{or} \qquad
        \sum_k \Big|\sum_i x_{ij} ([y_i = k] - m_k)\Big|

    for a target of classes. Scores are not released.

    **Privacy**

    - Guarantee: what `fit` releases, the fitted attributes, is (`epsilon`, `delta`)-DP for
      neighbours that differ in one record (``neighboring="replace_one"``), or by adding or
      removing one (``"add_remove"``).
    - Charged: the mean of the target, and k choices of a column, as one event, before a record is
      used. The number of columns that are looked at costs nothing.
    - Assumptions: `feature_bounds`, `target_bounds` and `classes` are public, never from the data.
      Columns are compared in half-widths, so bounds that are too wide hide a column. Behind a
      `DPStandardScaler` or `BoundsScaler` in a `PrivatePipeline` they are told.
    - Not protected: shapes, dtypes, layout and names of columns; the time of sparse data. NaN and
      infinite values break the promise on the domain.

    Parameters
    ----------
    k : "auto" or int >= 1, default="auto"
        How many columns are kept: a public width, no more than there are columns. "auto" keeps
        ten, or all where there are fewer.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=None
        As in `BoundsScaler`; None is (-1, 1), with a warning. Sparse columns are not centred.

    Attributes
    ----------
    ranking_ : ndarray of shape (k,)
        The columns that were chosen, the one of the largest noisy score first. Released.

    Notes
    -----
    The k best of one draw of Gumbel noise are k choices without replacement. Proof:
    ``privacy/proofs/release_columns.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPSelectKBest
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 500))
    >>> y = X[:, 3] - X[:, 7]
    >>> selector = DPSelectKBest(2, epsilon=1.0, target_bounds=(-2, 2)).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [3, 7]
    >>> selector.transform(X).shape
    (20000, 2)
    """

    _unit_scale = _takes_sparse = True
    _parameter_constraints = OF_BUDGET | {
        "k": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "feature_bounds": [None, tuple, list, dict],
        "target_bounds": [None, tuple, list],
        "classes": [None, "array-like"],
    }

    k: int | str = "auto"
    _: KW_ONLY
    feature_bounds: Bounds | None = None
    target_bounds: Pair | None = None
    classes: ArrayLike | None = None

    def _plan_releases(self, n_features, budget):
        labels, _ = stated_target(self)
        mean = share_event(budget, 0.05, 1)  # of μ²
        k, n_classes = self._width(n_features), 0 if labels is None else len(labels)
        choices = greedy_fit_event(budget, k, 1.0)
        facts = {"n_chosen": k, "n_classes": n_classes, "width": n_features}
        if not budget.private:
            return [(choices, ColumnUnits, facts)]
        mean, choices = joint_fit_event(budget, mean, choices)
        of_mean = mean, PresentUnits, {"n_columns": n_classes or 1}
        return [of_mean, (choices, ColumnUnits, facts)]

    def _read_with_target(self, X, y):
        X = self._read(X, reset=True)
        target, bounds = read_bounded_target(self, y, X.shape[0])
        return [X, target], bounds

    def _release(self, releases, tables, stated):
        X, target = tables
        target = np.eye(len(self.classes))[target] if stated is None else target[:, np.newaxis]
        lo, hi = self._bounds(issparse(X))
        *of_mean, units = releases.plan.units
        means = target.mean(axis=0) if units.noiseless else None
        for part in of_mean:
            oracle = releases.oracle(part, PresentPlace(target), "mean")
            low, high = stated or (0.0, 1.0)
            ones = np.ones(target.shape[1])
            means = oracle.release(low * ones, high * ones)
        half_width = np.where(hi > lo, hi / 2 - lo / 2, 1.0)
        place = TargetPlace(X, target, lo / 2 + hi / 2, half_width)
        self.ranking_ = releases.oracle(units, place, "columns").release(means, stated)

    def _keep_without_records(self):
        """The first k columns."""
        self.ranking_ = np.arange(self._width(self.n_features_in_))

    def _width(self, n_features):
        """The public number of columns that are kept."""
        if self.k == "auto":
            return min(10, n_features)
        refuse_more_than(n_features, k=self.k)
        return self.k

    def _bounds(self, sparse):
        lo, hi = self._stated_bounds(UNIT)
        if sparse:  # zero stays zero
            hi = np.maximum(np.abs(lo), np.abs(hi))
            lo = -hi
        return lo, hi

    def transform(self, X: ArrayLike):
        return self._checked(super().transform, X)

    def inverse_transform(self, X: ArrayLike):
        return self._checked(super().inverse_transform, X)

    def _checked(self, method, X):
        # scikit-learn's methods quote cells, and follow any index of a sparse X
        check_is_fitted(self, "ranking_")  # a refused fit leaves n_features_in_
        refuse_broken(X)
        return read_input(method, X, name="X")

    def _get_support_mask(self):
        check_is_fitted(self, "ranking_")
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.ranking_] = True
        return mask


# ---- Principal components of a released matrix of second moments ---------------------------------


MOST_FEATURES = 4_000


@dataclass(eq=False, repr=False)
class DPPCA(ClassNamePrefixFeaturesOutMixin, PrivateTransformer):
    r"""Project dense records to the principal components of their noisy covariance.

    **Privacy**

    - Charged: one Gaussian release of the matrix of all second moments and means, before a record
      is used. The number of components costs nothing.
    - Assumptions: `feature_bounds` and `row_norm` are public, never from the data. Behind a
      `DPStandardScaler` or `BoundsScaler` in a `PrivatePipeline` bounds are told.
    - Not protected: shapes, dtype and column names. NaN and infinite values break the promise on
      the domain.

    Parameters
    ----------
    n_components : int >= 1, default=2
        How many components are kept: a public width, no more than there are columns or records.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=None
        As in `BoundsScaler`; None is (-1, 1), with a warning. Cells are clipped to them.
    row_norm : float > 0, default=None
        Rows are clipped to this distance from the middle of the bounds, for the covariance alone.
        None is half of the largest that bounds admit. A shorter one means less noise.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Directions of largest noisy variance, of length one. Released.
    explained_variance_ : ndarray of shape (n_components,)
        Their noisy variances, largest first; noise makes small ones negative. Released.
    mean_ : ndarray of shape (n_features,)
        The noisy mean of clipped rows, within bounds. Released.

    Raises
    ------
    TypeError, ValueError
        If a parameter or X is invalid, `n_components` is larger than the number of columns or of
        records, or there are more than 4,000 columns; nothing was charged.

    Notes
    -----
    The moments of a row and of a constant behind it have the sensitivity :math:`\sqrt{2} B^2` in
    the Frobenius norm if a row is replaced, B the norm that rows are clipped to
    (``privacy/proofs/release_curvature.md``). The sign of a component is that of its largest entry.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 1)) * [0.3, 0.3, 0.0] + 0.05 * rng.normal(size=(20_000, 3))
    >>> pca = DPPCA(1, epsilon=1.0, feature_bounds=(-1, 1)).fit(X)
    >>> bool(np.abs(pca.components_[0] - [0.707, 0.707, 0]).max() < 0.1)
    True
    >>> pca.transform(X).shape
    (20000, 1)
    """

    _unit_scale = True
    _parameter_constraints = OF_BUDGET | {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "feature_bounds": [None, tuple, list, dict],
        "row_norm": [None, Interval(Real, 0, math.inf, closed="neither")],
    }

    n_components: int = 2
    _: KW_ONLY
    feature_bounds: Bounds | None = None
    row_norm: float | None = None

    def _plan_releases(self, n_features, budget):
        self._check_width(n_features)
        # under add_remove the number of records is not public: n_public stands for it
        refuse_more_than(budget.n, "records", n_components=self.n_components)
        length, constant = self._length(n_features)
        facts = {"row_norm": math.hypot(length, constant), "constant": constant}
        facts |= {"n_features": n_features}
        return [(gaussian_fit_event(budget, 1), SecondMomentUnits, facts)]

    def _check_width(self, n_features):
        refuse_more_than(n_features, n_components=self.n_components)
        if n_features > MOST_FEATURES:
            raise ValueError(
                f"a covariance of {n_features:,} columns is more than the {MOST_FEATURES:,} that "
                "are held; select columns first (DPSelectKBest)"
            )

    def _length(self, n_features):
        """The norm that rows are clipped to, and the constant that stands behind each."""
        names = getattr(self, "feature_names_in_", None)
        stated = UNIT if self.feature_bounds is None else self.feature_bounds
        if isinstance(stated, dict) and (names is None or len(names) != n_features):
            stated = UNIT  # in a plan columns have no names
        lo, hi = check_bounds(stated, n_features, columns=names)
        longest = math.sqrt(math.fsum((hi / 2 - lo / 2) ** 2)) or 1.0
        # rows within bounds are seldom longer than half of the longest that is possible
        length = min(self.row_norm or longest / 2, longest)
        return length, length / 2  # so that the mean is known about as well as the rest

    def _release(self, releases, tables, stated):
        (X,), (units,) = tables, releases.plan.units
        if X.itemsize not in X.strides:  # neither rows nor columns lie side by side
            X = np.ascontiguousarray(X)
        lo, hi = self._stated_bounds(UNIT)
        center = lo / 2 + hi / 2
        place = LocalPlace(X, np.zeros(X.shape[0]), None, (lo, hi, center))
        moments = releases.oracle(units, place).release()
        mean = moments[-1, :-1] / units.constant
        self.mean_ = np.clip(center + mean, lo, hi)
        self._keep(moments[:-1, :-1] - np.outer(mean, mean))

    def _keep_without_records(self):
        """The first columns as they are."""
        self._check_width(self.n_features_in_)
        self.mean_ = sum(self._stated_bounds(UNIT)) / 2
        self._keep(np.eye(self.n_features_in_))

    def _keep(self, covariance):
        values, vectors = eigh(covariance)
        kept = slice(None, -self.n_components - 1, -1)
        _, self.components_ = svd_flip(None, vectors.T[kept].copy(), u_based_decision=False)
        self.explained_variance_ = values[kept]
        self._n_features_out = len(self.components_)

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike):
        """Project records, each by itself.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_projected : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, "components_")  # a refused fit leaves n_features_in_
        X = self._read(X, reset=False)
        lo, hi = self._stated_bounds(UNIT)
        projected = np.zeros((X.shape[0], len(self.components_)))
        for rows in row_tiles(X):
            centred = np.clip(X[rows].astype(np.float64), lo, hi) - self.mean_
            for j, weights in enumerate(self.components_.T):  # one order, whatever the batch
                projected[rows] += centred[:, j, np.newaxis] * weights
        return within_range(projected, X.dtype).astype(X.dtype)
