"""Selection of the columns that go best with the target."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from ..privacy.accounting._calibration import greedy_fit_event, joint_fit_event, share_event
from ..privacy.mechanisms._cell_sums import PresentUnits
from ..privacy.mechanisms._tables import ColumnUnits
from ..privacy.sums._present_place import PresentPlace
from ..privacy.sums._score_of_columns import TargetPlace
from ..utils._compat import Interval, StrOptions
from ..utils._typing import ArrayLike, Bounds, Pair
from ._columns import read_target, stated_target
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

    Raises
    ------
    TypeError, ValueError
        If a parameter, X or y is invalid; nothing was charged.

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
        "target_bounds": [tuple, list],
        "classes": [None, "array-like"],
    }

    k: int | str = "auto"
    _: KW_ONLY
    feature_bounds: Bounds | None = None
    target_bounds: Pair = (-1.0, 1.0)
    classes: ArrayLike | None = None

    def _check_stated(self, n_features):
        super()._check_stated(n_features)
        stated_target(self)

    def _plan_releases(self, n_features, budget):
        mean = share_event(budget, 0.05, 1)  # of μ²
        k, n_classes = self._width(n_features), 0 if self.classes is None else len(self.classes)
        choices = greedy_fit_event(budget, k, 1.0)
        facts = {"n_chosen": k, "n_classes": n_classes, "width": n_features}
        if not budget.private:
            return [(choices, ColumnUnits, facts)]
        mean, choices = joint_fit_event(budget, mean, choices)
        of_mean = mean, PresentUnits, {"n_columns": n_classes or 1}
        return [of_mean, (choices, ColumnUnits, facts)]

    def _read_with_target(self, X, y):
        X = self._read(X, reset=True)
        target, bounds = read_target(self, y, X.shape[0])
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

    def _keep_without_records(self, X):
        """The first k columns."""
        self.ranking_ = np.arange(self._width(X.shape[1]))

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

    def _get_support_mask(self):
        check_is_fitted(self, "ranking_")  # a refused fit leaves n_features_in_
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.ranking_] = True
        return mask

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
