"""Encoders of categories: stated ones are free, learnt ones have a price."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..privacy.accounting._joint import partition_event
from ..privacy.mechanisms._tables import PartitionUnits
from ..privacy.sums._tables import CategoryPlace, category_of, coded
from ..utils._cells import as_dates, is_date
from ..utils._compat import Interval, StrOptions
from ..utils._persons import relation_of
from ..utils._texts import counted
from ..utils._typing import ArrayLike, Column
from ..utils._warnings import warn
from ._columns import columns_of, names_of, refuse_another_kind
from ._private_transformer import OF_BUDGET, PrivateTransformer

# A pipeline aims at finding categories of this share of the records, whose threshold is about so
# many standard deviations of the noise.
_FOUND, _DEVIATIONS = 0.1, 6.5


@dataclass(eq=False, repr=False)
class CategoryEncoder(PrivateTransformer):
    """The base of encoders: how categories are stated, found and looked up.

    **Privacy**

    - Charged: one release of the counts of all categories of all learnt columns together, before a
      record is used. Categories that are stated are free; if all are, nothing is charged.
    - Rare categories stay secret: a category that one record alone has is named with a probability
      below a ten-thousandth of `delta`, of all columns together, and categories of fewer than about
      `threshold_` records are seldom named.
    - Not protected: shapes, dtypes and names of columns; the time of a fit, which depends on the
      number of categories. The transformed records are as sensitive as the records.

    Parameters
    ----------
    categories : "auto", list or dict {column name: list}, default="auto"
        "auto" learns the categories of all columns. A list has for each column its public
        categories or "auto"; a dict those of some columns of a data frame, and the others are
        learnt. Public: never from the data.
    min_frequency : int >= 1, float in (0, 1) or None, default=None
        Least noisy number of records, or share of them, of a category that is learnt.

    Attributes
    ----------
    categories_ : list of ndarrays of objects
        The categories of each column; NaN is what is missing. Released, or stated.
    category_counts_ : list of ndarrays, or None where categories are stated
        Noisy numbers of records of each category. Released.
    threshold_ : float or None
        The noisy number of records that a category is named from; None if nothing is learnt.
        Public.

    Warns
    -----
    UserWarning
        If n and epsilon are so small that few categories can be found: a public fact.
    """

    categories: str | list | dict = "auto"
    _: KW_ONLY
    min_frequency: float | None = None
    max_categories: int = 16

    _parameter_constraints = OF_BUDGET | {
        "categories": [StrOptions({"auto"}), list, tuple, dict],
        "min_frequency": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "max_categories": [Interval(Integral, 2, 2**20, closed="both")],
    }

    @property
    def charges_nothing(self):
        """Whether all categories are stated, so that nothing is learnt or charged."""
        if not isinstance(self.categories, (list, tuple)):
            return False
        return not any(_is_auto(stated) for stated in self.categories)

    def _n_learnt(self, n_features):
        """How many columns of so many are learnt.

        Raises
        ------
        ValueError
            If categories are stated of another number of columns.
        """
        if isinstance(self.categories, str):
            return n_features
        n_stated = len(self.categories)
        if isinstance(self.categories, dict):
            if n_stated > n_features:
                raise ValueError(f"categories names {n_stated} columns, but X has {n_features}")
            return n_features - n_stated
        if n_stated != n_features:
            raise ValueError(
                f"categories is a list for {counted(n_stated, 'column')}, but X has {n_features}; "
                'write "auto" in the place of each column that is to be learnt'
            )
        return sum(map(_is_auto, self.categories))

    def _most_groups(self, n_features):
        """How many categories all of so many columns have at most, with one for all others each."""
        stated = () if isinstance(self.categories, str) else self.categories
        stated = stated.values() if isinstance(stated, dict) else stated
        n_stated = sum(len(c) + 1 for c in stated if hasattr(c, "__len__") and not _is_auto(c))
        return n_stated + self._n_learnt(n_features) * self.max_categories

    def _refuse_large_output(self, n_rows, n_features):
        """Refuse a dense result that memory may not hold; the error names no number of rows.

        Raises
        ------
        ValueError
        """
        width = self._dense_width(n_features)
        if n_rows * width > 2**31:
            raise ValueError(  # how many rows there are may be secret
                f"rows of {width:,} dense columns may be more than memory holds (16 GB); "
                f"{self._remedy_of_width}, or fit first and transform fewer rows at a time"
            )

    def _dense_width(self, n_features):
        """How many dense columns so many columns become; 0 where that is not wider."""
        return 0

    def fit_transform(self, X: ArrayLike, y: Column = None, groups: Column = None):
        """Fit, and encode the records; a result that memory may not hold is refused before.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            For encoders that look at it.
        groups : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        X_encoded : {ndarray, CSR matrix} of shape (n_samples, n_features_out)
            Not private.
        """
        self._refuse_large_output_of_fit(X)
        return self.fit(X, y, groups).transform(X)

    def _refuse_large_output_of_fit(self, X):
        """The same before a charge, where the number of records is public."""
        shape = getattr(X, "shape", ())
        if len(shape) == 2:  # as long a list of rows is not in memory itself
            self._validate_params()
            relation, max_contributions = relation_of(self.neighboring)
            if max_contributions is None:
                return
            n_public = None if relation == "replace_one" else self.n_public
            self._refuse_large_output(n_public or shape[0], shape[1])

    def _plan_releases(self, n_features, budget):
        n_learnt = self._n_learnt(n_features)
        if not n_learnt:
            return []
        return [(partition_event(budget), PartitionUnits, {"n_columns": n_learnt})]

    def _needed_share(self, signal, n_features):
        """Share of μ² in a pipeline, from its n μ: what finding common categories needs."""
        needed = 2 * self._n_learnt(n_features) * (_DEVIATIONS / (_FOUND * signal)) ** 2
        return min(max(needed, 0.05), 0.3)

    def _check_stated(self, n_features):
        self._n_learnt(n_features)
        stated = () if isinstance(self.categories, str) else self.categories
        for given in stated.values() if isinstance(stated, dict) else stated:
            if not _is_auto(given):
                _checked(given)

    def _stated(self):
        """Stated categories of each column, or None if they are learnt."""
        n = self.n_features_in_
        self._n_learnt(n)
        names, given = list(getattr(self, "feature_names_in_", ())), self.categories
        if isinstance(given, str):
            given = [given] * n
        elif isinstance(given, dict):
            if unknown := [name for name in given if name not in names]:
                raise ValueError(f"categories names {unknown}, but the columns of X are {names}")
            given = [given.get(name, "auto") for name in names]
        stated = [None if _is_auto(categories) else _checked(categories) for categories in given]
        for name, kind, categories in zip(names_of(self), self._kinds, stated, strict=True):
            refuse_another_kind(categories or (), kind, name)
        return stated

    def _warn_of_dates(self, stated):
        """Warn before the charge, by names and dtypes, of days that would be learnt one by one."""
        columns = zip(names_of(self), self._kinds, stated, strict=True)
        learnt = [(name, kind) for name, kind, categories in columns if categories is None]
        words = [name for name, kind in learnt if kind != "numbers" and is_date(name)]
        if dates := [name for name, kind in learnt if kind == "dates"] or words:
            how = "" if dates is not words else f"{as_dates(dates)}, then "
            warn(
                f"{dates!r} seem to be dates or spans of time, and each would be a category of its "
                f"own: {how}dpcd_sklearn.compose.date_parts(X) writes dates as years, months and "
                "weekdays"
            )

    _read = columns_of

    def _read_with_target(self, X, y):
        columns, stated = self._read(X, reset=True), self._stated()
        self._warn_of_dates(stated)
        return [columns], stated

    def _release(self, releases, tables, stated):
        self._name(releases, *tables, stated)

    def _name(self, releases, columns, stated, name=None):
        """Find the categories that are not stated, by the first units of the plan; keep all."""
        learnt = [j for j, given in enumerate(stated) if given is None]
        found, self.threshold_ = {}, None
        if learnt:
            units = releases.plan.units[0]
            place = CategoryPlace([columns[j] for j in learnt], len(columns[0]))
            found = dict(zip(learnt, releases.oracle(units, place, name).release(), strict=True))
            self.threshold_ = units.threshold
        self._keep(stated, found, releases.plan.budget.n)

    def _keep_without_records(self):
        """No category is found."""
        self.threshold_ = None
        self._keep(self._stated(), {}, 1)

    def _keep(self, stated, found, n_normalizer):
        """Keep what is released; of what was found only the most frequent, as many as may be."""
        self._categories, self._room, self.category_counts_ = [], [], []
        self._n_normalizer = n_normalizer
        for j, given in enumerate(stated):
            counts, room = None, self.max_categories - self._has_infrequent
            if given is None:
                given, counts = self._most_frequent(*found.get(j, ((), np.empty(0))), n_normalizer)
            else:
                room = len(given)
            self._categories.append(given)
            self._room.append(room)
            self.category_counts_.append(counts)
        self.categories_ = [  # what is missing is NaN
            np.array([np.nan if c is None else c for c in categories], dtype=object)
            for categories in self._categories
        ]

    def _most_frequent(self, categories, counts, n_normalizer):
        least = self.min_frequency or 0
        if not isinstance(least, Integral):
            least = least * n_normalizer
        kept = [i for i in np.argsort(-counts, kind="stable") if counts[i] >= least]
        kept = sorted(kept[: self.max_categories - self._has_infrequent])
        return tuple(categories[i] for i in kept), counts[kept]

    @property
    @abstractmethod
    def _has_infrequent(self):
        """Whether each column has a place for what is none of its categories."""

    def _codes(self, X):
        """The number of each cell's category; one past the last for all others."""
        check_is_fitted(self, "categories_")  # a refused fit leaves n_features_in_
        columns = self._read(X, reset=False)
        return [coded(c, known) for c, known in zip(columns, self._categories, strict=True)]

    def _few_records_warning(self, units, n_normalizer):
        if not isinstance(units, PartitionUnits):  # all categories are stated
            return None
        if units.threshold <= 0.25 * n_normalizer:  # beyond it little is found
            return None
        return (
            f"only categories of more than about {units.threshold:,.0f} of {n_normalizer:,} "
            f"records are found at epsilon={float(self.epsilon):g}. Raise epsilon, or state the "
            "categories that you know: those are free"
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _is_auto(stated):
    return isinstance(stated, str) and stated == "auto"


def _checked(stated):
    """Stated categories of one column, each once, in the order that they were stated in."""
    if isinstance(stated, str) or not hasattr(stated, "__iter__"):
        raise TypeError(
            "the categories of a column are a list of them, or the word 'auto'; got "
            f"{type(stated).__name__}"
        )
    categories = tuple(map(category_of, stated))
    if not categories or len(set(categories)) != len(categories):
        raise ValueError("stated categories of a column are at least one, and each of them once")
    return categories
