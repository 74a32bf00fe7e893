"""Categories as means of the target, which are released privately."""

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real

import numpy as np

from ..privacy.accounting._calibration import gaussian_fit_event
from ..privacy.accounting._joint import joint_budgets, partition_event
from ..privacy.mechanisms._tables import TargetUnits
from ..privacy.sums._tables import GroupPlace, coded
from ..utils._compat import Interval, StrOptions
from ..utils._persons import ids_of, persons_of, relation_of
from ..utils._typing import ArrayLike, Auto, Column, Pair
from ._category_encoder import CategoryEncoder
from ._columns import each_once, names_of, read_bounded_target, stated_target

_SHARE_OF_NAMES = 0.3  # of μ², where categories are learnt


@dataclass(eq=False, repr=False)
class DPTargetEncoder(CategoryEncoder):
    r"""Encode categories as noisy means of the target, drawn to the mean of all.

    For columns of many categories: each stays one column, or one for each of several classes. The
    mean of a category whose noise is large is drawn to that of all records.

    **Privacy**

    - Guarantee: what `fit` releases, the fitted attributes, is (`epsilon`, `delta`)-DP for
      neighbours that differ in one record (``neighboring="replace_one"``), or by adding or
      removing one (``"add_remove"``). Given them each record is mapped by itself, and by its row
      number if `cv` is stated, so neighbouring data sets stay neighbours, and the budget of the
      next step comes on top.
    - Charged, as one event, before a record is used: sums of the target and numbers of records of
      all categories of all columns together; and one release of the counts of categories, where
      some are learnt.
    - Rare categories stay secret, as in `DPOneHotEncoder`: they count as one category of their own.
    - Assumptions: `classes`, `target_bounds` and stated `categories` are public, never from the
      data.
    - Not protected: shapes, dtypes and names of columns; the time of a fit, which follows the
      number of categories. The transformed records are as sensitive as the records, targets
      included.

    Parameters
    ----------
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity names every category and adds no noise.
    smooth : "auto" or float >= 0, default="auto"
        How many records with the mean of all each category has beside its own. "auto" draws means
        by the share of their variance that is noise.
    cv : int >= 2 or None, default=None
        Into how many folds row numbers are divided, i modulo `cv`: `fit_transform` encodes a record
        by the other folds. They share the budget, so what `transform` uses has `cv` times the
        variance of noise; without them a record has its own part in the mean of its category, which
        is small where categories are learnt. Needs ``neighboring="replace_one"``.
    max_categories : int >= 2, default=1024
        Most categories of a learnt column, that of infrequent ones included.

    Attributes
    ----------
    encodings_ : list of ndarrays of shape (n_categories + 1, n_encodings)
        What each category of a column becomes; the last row is for all others. Released.
    target_mean_ : ndarray of shape (n_encodings,)
        What they are drawn to. Released.

    Raises
    ------
    TypeError, ValueError
        If a parameter or y is invalid, a cell is no string, number or boolean, there might be more
        sums than memory holds, or folds are asked for under "add_remove"; nothing was charged.

    See Also
    --------
    DPOneHotEncoder : Indicator columns, for columns of few categories.

    Notes
    -----
    A record lies in one category of each column, and in one fold by its row number. Proof:
    ``privacy/proofs/release_target_sums.md``. Of two classes the share of the second one is
    encoded; of more, columns of each class follow one another for each column of X.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPTargetEncoder
    >>> rng = np.random.default_rng(0)
    >>> towns = rng.choice(["Lille", "Lens"], size=(20_000, 1))
    >>> rents = np.where(towns[:, 0] == "Lille", 9.0, 5.0) + rng.normal(size=20_000)
    >>> encoder = DPTargetEncoder(epsilon=1.0, target_bounds=(0, 20)).fit(towns, rents)
    >>> encoder.transform([["Lille"], ["Lens"]]).round().ravel()
    array([9., 5.])
    """

    _parameter_constraints = CategoryEncoder._parameter_constraints | {
        "classes": [None, "array-like"],
        "target_bounds": [None, tuple, list],
        "smooth": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "cv": [None, Interval(Integral, 2, 100, closed="both")],
    }
    charges_nothing = False
    _has_infrequent = True

    _: KW_ONLY
    classes: ArrayLike | None = None
    target_bounds: Pair | None = None
    smooth: Auto = "auto"
    cv: int | None = None
    max_categories: int = 1024

    # ---- the plan ----

    _remedy_of_width = "encode fewer columns, or by fewer classes"

    def _dense_width(self, n_features):
        return n_features * self._n_encodings

    @property
    def _n_classes(self):
        return 0 if self.classes is None else len(self.classes)

    @property
    def _n_encodings(self):
        """How many columns a column becomes."""
        return self._n_classes if self._n_classes > 2 else 1

    def _plan_releases(self, n_features, budget):
        self._check_together(n_features)
        facts = {"n_columns": n_features, "n_classes": self._n_classes}
        if not self._n_learnt(n_features):
            return [(gaussian_fit_event(budget, 1), TargetUnits, facts)]
        parts = partition_event, lambda own: gaussian_fit_event(own, 1)
        (own, rest), _ = joint_budgets(parts, [_SHARE_OF_NAMES, 1 - _SHARE_OF_NAMES], budget)
        names = super()._plan_releases(n_features, own)
        return [*names, (gaussian_fit_event(rest, 1), TargetUnits, facts)]

    def _check_together(self, n_features):
        """Conditions on several parameters.

        Raises
        ------
        TypeError, ValueError
        """
        if self.cv is not None and relation_of(self.neighboring)[0] == "add_remove":
            raise ValueError(
                "cv divides records by row number, which is not public under add_remove: one "
                "record more moves all that follow. Leave cv=None"
            )
        stated_target(self)
        n_sums = self._most_groups(n_features) * (self._n_classes or 2) * (self.cv or 1)
        if n_sums > 2**26:  # half a gigabyte
            raise ValueError(
                f"{n_sums:,} sums of the target may be more than memory holds; lower "
                "max_categories, cv, or the number of columns or classes"
            )

    # ---- fitting ----

    def _read_with_target(self, X, y):
        (columns,), stated = super()._read_with_target(X, y)
        target, bounds = read_bounded_target(self, y, len(columns[0]))
        return [columns, target], (stated, bounds)

    def _release(self, releases, tables, stated):
        (columns, target), (categories, bounds) = tables, stated
        self._name(releases, columns, categories, "categories")
        if bounds is not None:
            half_width = bounds[1] / 2 - bounds[0] / 2
            target = (target - (bounds[0] / 2 + bounds[1] / 2)) / (half_width or 1.0)
        units = releases.plan.units[-1]
        codes = [coded(c, known) for c, known in zip(columns, self._categories, strict=True)]
        sizes = [len(known) + 1 for known in self._categories]
        units_of_records = np.arange(len(target)) if releases.persons is None else releases.persons
        n_folds = self.cv or 1
        folds = units_of_records % n_folds
        place = GroupPlace(codes, sizes, target, self._n_classes, folds, n_folds)
        sums = releases.oracle(units, place, "sums").release(place.shapes)
        self._encode(sums, bounds, units.noise_std)

    def fit_transform(self, X: ArrayLike, y: ArrayLike, groups: Column = None):
        """Fit, and encode each record: with `cv` by what the other folds say.

        Folds are of persons where ids say whose the records are.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
        y, groups : array-like of shape (n_samples,)
            As in `fit`.

        Returns
        -------
        X_encoded : ndarray of shape (n_samples, n_features * n_encodings)
            Not private.
        """
        self._refuse_large_output_of_fit(X)
        self.fit(X, y, groups)
        if self.cv is None:
            return self.transform(X)
        ids = ids_of(self.neighboring, groups)
        persons = None if ids is None else persons_of(ids, len(ids))[1]
        return self._looked_up(X, self._of_others, persons)

    def _keep_without_records(self):
        self._check_together(self.n_features_in_)
        super()._keep_without_records()
        self.target_mean_ = np.zeros(self._n_encodings)
        self.encodings_ = [np.zeros((len(c) + 1, self._n_encodings)) for c in self._categories]
        self._of_others = [self.encodings_] * (self.cv or 1)

    def _encode(self, tables, bounds, noise_std):
        """Keep encodings of all folds, and of all but each."""
        n_folds = self.cv or 1
        pooled = [table.sum(axis=0) for table in tables]
        mean = _mean_of(pooled, self._n_classes)
        self.encodings_ = self._means(pooled, mean, noise_std * math.sqrt(n_folds), bounds)
        self._of_others = []
        for fold in range(n_folds if n_folds > 1 else 0):
            others = [whole - table[fold] for whole, table in zip(pooled, tables, strict=True)]
            of_others = noise_std * math.sqrt(n_folds - 1)
            self._of_others.append(self._means(others, mean, of_others, bounds))
        self.target_mean_ = self._in_units_of_target(mean, bounds)

    def _means(self, tables, mean, noise_std, bounds):
        found = []
        for table in tables:
            means = _drawn_means(table, mean, self._n_classes, noise_std, self.smooth)
            found.append(self._in_units_of_target(means, bounds))
        return found

    def _in_units_of_target(self, means, bounds):
        """Within bounds of the target, or shares of the classes that are encoded."""
        if bounds is None:
            shares = np.clip(means, 0.0, 1.0)
            return shares if self._n_classes > 2 else shares[..., 1:]
        lo, hi = bounds
        return np.clip(lo / 2 + hi / 2 + np.clip(means, -1.0, 1.0) * (hi / 2 - lo / 2), lo, hi)

    # ---- transforming ----

    def transform(self, X: ArrayLike):
        """Encode records, each by itself.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_encoded : ndarray of shape (n_samples, n_features * n_encodings)
        """
        return self._looked_up(X, [self.encodings_])

    def _looked_up(self, X, encodings, units=None):
        """Encodings of records, by the fold of each one's unit of privacy: itself, or a person."""
        codes = self._codes(X)
        n_samples = len(codes[0])
        self._refuse_large_output(n_samples, len(codes))
        folds = (np.arange(n_samples) if units is None else units) % len(encodings)
        found = np.empty((n_samples, len(codes) * self._n_encodings))
        for fold, of_columns in enumerate(encodings):
            rows = np.flatnonzero(folds == fold)
            for j, (code, means) in enumerate(zip(codes, of_columns, strict=True)):
                start = j * self._n_encodings
                found[rows, start : start + self._n_encodings] = means[code[rows]]
        return found

    def get_feature_names_out(self, input_features=None):
        """Names of the columns, each with its classes if there are more than two.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of X; None takes those of the fit, or x0, x1, ...

        Returns
        -------
        names : ndarray of objects
        """
        names = list(names_of(self, input_features))
        if self._n_encodings > 1:
            names = [f"{name}_{label}" for name in names for label in self.classes]
        return each_once(names)


def _parts_of(table, n_classes):
    """Sums of each encoding, and numbers of records, of each group."""
    if n_classes:
        return table, table.sum(axis=1)
    return table[:, :1], table[:, 1]


def _mean_of(tables, n_classes):
    """The mean of the target of all records, of all columns together."""
    parts = [_parts_of(table, n_classes) for table in tables]
    total = sum(sums.sum(axis=0) for sums, _ in parts)
    count = sum(float(counts.sum()) for _, counts in parts)
    mean = np.clip(total / max(count, 1.0), 0.0 if n_classes else -1.0, 1.0)
    if not n_classes:
        return mean
    whole = mean.sum()
    return mean / whole if whole > 0 else np.full(n_classes, 1 / n_classes)


def _drawn_means(table, mean, n_classes, noise_std, smooth):
    """Means of groups, drawn to the mean of all by as much as their noise says."""
    sums, counts = _parts_of(table, n_classes)
    off = sums - counts[:, np.newaxis] * mean
    counts = np.maximum(counts, max(noise_std, 1.0))[:, np.newaxis]
    if smooth != "auto":
        return mean + off / (counts + smooth)
    variance = noise_std**2 * (1 + mean**2)
    if n_classes:  # and that of labels
        variance = noise_std**2 * ((1 - mean) ** 2 + (n_classes - 1) * mean**2)
        variance = variance + counts * mean * (1 - mean)
    apart = (off**2 - variance).sum(axis=0) / (counts**2).sum(axis=0)
    apart = counts**2 * np.maximum(apart, 0.0)
    share = np.where(apart > 0, apart / np.maximum(apart + variance, 1e-300), 0.0)
    return mean + share * off / counts
