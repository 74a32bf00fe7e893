"""Records that an audit makes up for one fit: of its shape and layout, as bad as its clips admit.

A release tells most of the records that it was made safe against: those that reach its clip, in
opposite directions, or along different axes where their squares are summed. The more of them
differ, the more it tells (group privacy), so `count` of them differ, enough to show a weak release.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import is_classifier

from ..preprocessing._category_encoder import CategoryEncoder
from ..preprocessing._columns import stated_target
from ..preprocessing._fewer_columns import DPSelectKBest
from ..preprocessing._simple_imputer import DPSimpleImputer
from ..utils._persons import relation_of
from ..utils._public import check_bounds

_FAR_TARGET, _LEAST_TARGET = 1e9, 1e-9
# In units of a feature that nothing bounds.
_FAR = 1e3
# Numbers whose octaves lie on both sides of that of the middle one, where odds are highest.
_OCTAVES = 2.0**-9, 6.0, 2.0**14
# Distances in three cells, and in cells amid others that are all alike beforehand.
_TAILS, _DOUBLINGS = (0.0, 1.5, 100.0), (0.0, 0.04, 100.0)
# Odds of tails fall so far from the first cell to those beyond the next, as a logarithm.
_TAIL_ODDS = 3.9
# Records from this share of all on lie in the fullest cell of an interval.
_FULLEST = 0.55
# Every other column is of one number, but for so many records: their tails are looked for.
_RARE = 0.04
# Rows of a person who has several.
_MANY_ROWS = 9


@dataclass(frozen=True)
class Change:
    """How records differ between two data sets.

    Parameters
    ----------
    one, other : {"one", "all", "turned", "signs", "turned signs", "middle", "other half"}
        Which features lie at which end of their bounds.
    turns_target : bool
        Whether targets differ, in place of features.
    weight : float
    far : bool
        Whether features that nothing bounds are far out.
    at_rest : bool
        Whether the target is in the middle of its bounds.
    quiets : bool
        Whether that of the other data set is.
    beyond : bool
        Whether features lie beyond their bounds.
    """

    one: str
    other: str | None = None
    turns_target: bool = True
    weight: float = 1.0
    far: bool = False
    at_rest: bool = False
    quiets: bool = False
    beyond: bool = False


CHANGES = {
    "one feature": Change("one"),
    "all features": Change("all", far=True),
    "opposite signs": Change("signs"),
    "intercept alone": Change("middle", weight=64.0),
    "heavy record": Change("signs", weight=64.0),
    "heavy feature": Change("one", weight=64.0),
    "many features": Change("all", weight=1e4),
    "other signs": Change("signs", "turned signs", turns_target=False),
    "turned record": Change("all", "turned", turns_target=False, weight=1e4),
    "other axis": Change("all", "other half", turns_target=False, far=True),
    "other axis, at rest": Change("all", "other half", False, far=True, at_rest=True),
    "from the middle": Change("all", "middle", turns_target=False, far=True),
    "one that is heard": Change("all", "middle", far=True, quiets=True),
    "far and turned": Change("signs", "turned signs", turns_target=False, far=True),
    "out of bounds": Change("all", "middle", quiets=True, beyond=True),
}
# Which of them are tried for which releases; all that turn something, for those not named.
_OF_ROWS = ("far and turned", "from the middle", "other signs")
OF_KIND = {
    "counts of classes": ("one feature",),
    "records outside of bounds": ("out of bounds",),
    "moments of features": _OF_ROWS,
    "mean square of rows": (*_OF_ROWS, "one that is heard"),
    "mean square of gradients": (*_OF_ROWS, "one that is heard"),
    "mean row": _OF_ROWS,
    "mean root of a person's number of records": ("from the middle",),
    # of few features turned ones, and the intercept's 1 of all, are nearest to a right angle
    "curvature": ("other axis", "far and turned", "from the middle"),
    "moments for inference": ("other axis", "other axis, at rest", "from the middle"),
}


# Ends of cells for transformers, in half-widths. Cells 0 and 212 of 256 are told apart best.
_ENDS = {
    "running counts": {"far apart": (-1.0, 2 * 212.5 / 256 - 1)},
    "means of what is present": {"ends": (-1.0, 1.0)},
    "second moments": {"other axis": ("all", "other half"), "from the middle": ("all", 0.0)},
}
_BESIDE = Change("one", "one", turns_target=False, weight=1e6)
# Share of a feature's reach for what is at right angles; the rest is for what is not.
_ACROSS = 0.9


def _across(along, reach):
    """A row nearly at right angles to others, its features within their reach."""
    n_features = len(reach)
    if along.shape[1] == n_features:  # of no intercept the longest that is at right angles
        across = np.linalg.svd(along)[2][-1]
        return _ACROSS * across * np.min(reach / np.maximum(np.abs(across), 1e-12))
    reach = _ACROSS * reach
    found = lsq_linear(along[:, :-1], -along[:, -1], bounds=(-reach, reach))
    return np.append(found.x, 1.0)


def _pattern(name, p):
    """Multiples of a feature's reach."""
    signs = (-1.0) ** np.arange(1, p + 1)  # the intercept's 1 comes last and is balanced
    half = np.where(np.arange(p) < (p + 1) // 2, 1.0, -1.0)
    return {
        "one": np.eye(1, p)[0],
        "all": np.ones(p),
        "turned": -np.ones(p),
        "signs": signs,
        "turned signs": -signs,
        "middle": np.zeros(p),
        "other half": half,
    }[name]


class SimulatedRecords:
    """Records of the shape and layout of one fit.

    Parameters
    ----------
    model : estimator of this package
    n_samples, n_features : int
    n_targets : int or None
        Number of targets of a regression with several of them.
    labels : ndarray or None
        Labels of a classifier.
    sparse : {None, "array", "matrix"}
    dtype : dtype
    columns : sequence of str or None
    """

    def __init__(
        self, model, n_samples, n_features, *, n_targets=None, labels=None, sparse=None,
        dtype=np.float64, columns=None,
    ):  # fmt: skip
        self.model, self.n, self.p = model, n_samples, n_features
        self.labels, self._n_targets = labels, n_targets
        self._sparse, self._dtype, self._columns = sparse, dtype, columns
        self.adds = relation_of(model.neighboring)[0] == "add_remove"

    # ---- a run to follow ----

    def usual(self, generator):
        """Records as a fit may see them."""
        X = generator.normal(size=(self.n, self.p))
        if (bounds := self._stated_bounds()) is not None:
            lo, hi = bounds
            X = (lo + hi) / 2 + (hi - lo) / 4 * np.clip(X, -2, 2)
        if self._sparse:
            X *= generator.random(X.shape) < 0.2
        else:
            X[:, 1::2] = np.where(generator.random(X[:, 1::2].shape) < _RARE, X[:, 1::2], 1.0)
        noise = generator.normal(size=self.n)
        return self._laid_out(X), self._usual_target(noise), None

    def _usual_target(self, noise):
        if not hasattr(self.model, "fit_intercept"):
            return None
        if self.labels is not None:
            at = np.argsort(noise)
            y = np.empty(self.n, dtype=self.labels.dtype)
            y[at] = self.labels[np.arange(self.n) * len(self.labels) // self.n]
            return y
        lo, hi = self._target_bounds() or (-3.0, 3.0)
        y = (lo + hi) / 2 + (hi - lo) / 6 * np.clip(noise, -3, 3)
        return self._targets(y[:, np.newaxis])

    # ---- quantiles ----

    def ties(self, asked, count, eta, favoured=False):
        """Two data sets between which records move over every quantile.

        A few records hold each quantile. Cells on one side of them that hold none, and on the
        other, are nearly as good: a record that moves over raises these and lowers those.

        `asked` are questions and mechanisms of choices, all between one kind of cells; `count`
        records differ, and one that moves goes and comes under add_remove, and is two; `eta` is the
        range of a choice; `favoured` says whether the first of the tails' cells is favoured
        beforehand.
        """
        count = count // 2 if self.adds else count
        tilt, steps = (_TAIL_ODDS / eta, _TAILS) if favoured else (0.0, _DOUBLINGS)
        moves = count / 2, -count / 2
        return tuple(self._tied(asked, count, moved, tilt, np.array(steps)) for moved in moves)

    def _tied(self, asked, count, moved, tilt, steps):
        X, y = np.ones((self.n, self.p)), None
        if hasattr(self.model, "fit_intercept"):
            y = self._usual_target(np.linspace(-1, 1, self.n))
        for question, mechanism in asked:
            of, around = question.of, question.around
            center, reach = map(np.atleast_1d, around or (0.0, 1.0))
            values = self._around_quantiles(mechanism.quantiles, count, moved, tilt)
            if of == "row_norm":
                X = center + reach * _in_octaves(values)[:, None] / self.p**0.5 * np.ones(self.p)
                continue
            if around is not None:
                away = steps[1 + np.sign(values).astype(int)]
                if mechanism.intervals:  # all on one side but for the fullest cell
                    away = np.array([-0.5, -1.25, -100.0])[1 + np.sign(values).astype(int)]
                    away[int(_FULLEST * self.n) :] = 0.5
                table = center + away[:, None] * reach
            elif question.edges is not None:
                lo, hi = map(np.atleast_1d, question.edges)
                table = (lo + hi) / 2 + (hi - lo) * values[:, None] / 8 * 0.98
            else:
                table = np.repeat(_in_octaves(values)[:, None], 1, axis=1)
            if of == "features":
                X = table * np.ones(self.p)
            else:
                y = self._targets(table)
        return self._laid_out(X), y, None

    def _around_quantiles(self, quantiles, count, moved, tilt):
        """Numbers from -2 to 2: those of few records are where a quantile is.

        Values are -2, 0 and 2 for one quantile; for two -2, -1, 0, 1 and 2.
        """
        few = min(count // 2 + 1 + tilt / 2, self.n * float(1 - max(quantiles)) * 0.9)
        ends = []
        for quantile in quantiles:
            at = self.n * float(quantile) + moved - min(tilt / 2, 0.5 * few)
            ends += [at - few, at + few]
        values = {1: [-2.0, 0.0, 2.0], 2: [-2.0, -1.0, 0.0, 1.0, 2.0]}[len(quantiles)]
        # downwards, so that ends that are a whole number apart stay so
        return np.array(values)[np.searchsorted(np.floor(ends), np.arange(self.n), side="right")]

    # ---- other releases ----

    def pair(self, name, plan, count, generator):
        """Two data sets that differ in so many records, as CHANGES[name] says for a plan."""
        change = CHANGES[name]
        one = self._features(plan, _pattern(change.one, self.p), change)
        other = one
        if change.other is not None:
            other = self._features(plan, _pattern(change.other, self.p), change)
        return self._with(one, other, change, plan, count, generator)

    def pairs_of_transformer(self, words, question, count, generator):
        """Two data sets of rows within bounds that differ in so many, by name.

        Bounds that were released before are those of the question.
        """
        stated = self._stated_bounds() or (-np.ones(self.p), np.ones(self.p))
        lo, hi = getattr(question, "lo", stated[0]), getattr(question, "hi", stated[1])
        center, half_width, found = lo / 2 + hi / 2, hi / 2 - lo / 2, {}
        for name, ends in _ENDS[words].items():
            at = generator.choice(self.n, count, replace=False)
            multiples = (_pattern(end, self.p) if isinstance(end, str) else end for end in ends)
            rows = [center + half_width * each for each in multiples]
            found[name] = self._pair(center, at, rows, (None, None))
        return found

    def beside(self, steps, plan, count, generator):
        """Two data sets of records whose clipped differences from anchors point opposite ways.

        How a loss's gradient differs from that at an anchor points along the step, since losses are
        convex. Of records nearly at right angles to all steps, on either side of that, the
        differences are nearly opposite; a heavy weight takes them to the clip. `steps` are those of
        the run that is followed.
        """
        geometry, roots = plan.geometry, plan.geometry.smoothness**0.5
        reach, center = roots[: self.p], geometry.center
        if geometry.lo is not None:
            lo, hi = np.maximum(geometry.lo, -1e150), np.minimum(geometry.hi, 1e150)
            reach = np.minimum(hi - center, center - lo)
        reach = np.maximum(reach, 1e-12) / roots[: self.p]
        along = steps * roots  # where noise is alike in all directions
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        across = _across(along, reach)
        off = np.linalg.lstsq(along[:, : self.p], np.ones(len(along)))[0]
        off *= (1 - _ACROSS) * np.min(reach / np.maximum(np.abs(off), 1e-12))
        rows = [across[: self.p] + side * off for side in (1, -1)]
        rows = [row * roots[: self.p] + center for row in rows]
        return self._with(*rows, _BESIDE, plan, count, generator)

    def _with(self, one, other, change, plan, count, generator):
        """Two data sets with so many of one row or of the other, the others in the middle."""
        at = generator.choice(self.n, count, replace=False)
        middle = self._features(plan, np.zeros(self.p), change)
        y, turned = self._pair_of_targets(plan, at, change)
        weights = None
        if change.weight != 1.0:
            weights = np.ones(self.n)
            weights[at] = change.weight
        targets = y, turned if change.turns_target else y
        return self._pair(middle, at, (one, other), targets, weights)

    def _pair(self, cells, at, rows, targets, weights=None):
        """Two data sets of cells, in which rows `at` are these, or are missing in the second."""
        sets = []
        for row, y in zip(rows, targets, strict=True):
            X = np.array(np.broadcast_to(cells, (self.n, self.p)))
            X[at] = row
            sets.append((X, y, weights))
        if self.adds:
            sets[1] = (None if part is None else np.delete(part, at, axis=0) for part in sets[0])
        return tuple((self._laid_out(X), y, weights) for X, y, weights in sets)

    def _pair_of_targets(self, plan, at, change):
        if self.labels is not None:
            y = self.labels[np.arange(self.n) % len(self.labels)]
            other = y.copy()
            y[at], other[at] = self.labels[1], self.labels[0]
            return y, other
        y = np.tile(np.asarray(plan.request.target_center, dtype=np.float64), (self.n, 1))
        other = y.copy()
        if not change.at_rest:
            y[at] = _FAR_TARGET
            if not change.quiets:
                other[at] = -_FAR_TARGET
        return self._targets(y), self._targets(other)

    def _features(self, plan, multiples, change):
        geometry = plan.geometry
        if geometry.lo is None:
            return multiples * (_FAR if change.far else 1.0)
        lo, hi = np.maximum(geometry.lo, -1e150), np.minimum(geometry.hi, 1e150)
        middle = np.clip(geometry.center, lo, hi)
        if change.beyond:
            lo, hi = 2 * lo - hi, 2 * hi - lo
        return np.where(multiples > 0, hi, np.where(multiples < 0, lo, middle))

    # ---- layout ----

    def _laid_out(self, X):
        X = np.asarray(X, dtype=self._dtype)
        if self._sparse:
            return (csr_array if self._sparse == "array" else csr_matrix)(X)
        if self._columns is None:
            return X
        import pandas as pd  # the user's X was a data frame

        return pd.DataFrame(X, columns=list(self._columns))

    def _targets(self, y):
        """Targets of columns, or of one for all; positive where the loss has a log link."""
        if getattr(self.model, "_log_link", None) is not None:
            y = np.maximum(y, _LEAST_TARGET)
        return y * np.ones(self._n_targets) if self._n_targets else y[:, 0]

    def _stated_bounds(self):
        bounds = getattr(self.model, "feature_bounds", None)
        if bounds is None:
            return None
        columns = None if self._columns is None else tuple(self._columns)
        lo, hi = check_bounds(bounds, self.p, columns=columns)
        return np.maximum(lo, -1e9), np.minimum(hi, 1e9)

    def _target_bounds(self):
        bounds = getattr(self.model, "target_bounds", None)
        if bounds is None or np.ndim(bounds[0]):
            return None
        return float(bounds[0]), float(bounds[1])


def by_person(X, y, weights):
    """The data of so many persons, each with one or more rows that are alike, and their ids.

    Persons whose first cell lies above the median have many rows, so numbers of rows differ too.
    """
    first = np.ravel(X.toarray()[:, 0] if hasattr(X, "toarray") else np.asarray(X)[:, 0])
    who = np.repeat(np.arange(len(first)), np.where(first > np.median(first), _MANY_ROWS, 1))
    X = X.iloc[who] if hasattr(X, "iloc") else X[who]
    return X, *(None if one is None else one[who] for one in (y, weights)), who


def _in_octaves(values):
    return np.choose(1 + np.sign(values).astype(int), _OCTAVES)


def labels_of(model, y=None):
    """The labels of a classifier; those of y are public where none are stated."""
    if not is_classifier(model):
        return None
    if model.classes is not None:
        return np.unique(model.classes)
    return np.array([0, 1]) if y is None else np.unique(y)


# ---- tables -------------------------------------------------------------------------------------
#
# Cells are the numbers 0 and 1, which are categories of many records; LONE and beyond are
# categories of one record each.

COMMON, LONE = (0, 1), 10
# Share of half-widths: records that do not differ let no sum of products turn its sign.
_BASE = 0.5


def is_table(model):
    """Whether records of a model are tables."""
    if isinstance(model, DPSimpleImputer):
        return model.strategy == "most_frequent"
    return isinstance(model, (CategoryEncoder, DPSelectKBest))


class SimulatedTable(SimulatedRecords):
    """Records of one fit of an encoder or a selection of columns; as of `SimulatedRecords`."""

    def usual(self, generator):
        """Records as a fit may see them, whose targets are at one end."""
        cells = generator.choice(COMMON, size=(self.n, self.p)).astype(float)
        return self._laid_out(cells), self._ends(np.zeros(self.n, dtype=int)), None

    def pairs_of_transformer(self, words, question, count, generator):
        """Two data sets that differ in so many records, by name; as of `SimulatedRecords`."""
        if words == "choices of columns":
            if self.p < 2:  # nothing is chosen
                return {}
            return {"columns that gain": self._of_columns(count, generator)}
        # those of one fold by row number come first: what they do is not spread over sums of folds
        at = np.argsort(np.arange(self.n) % (getattr(self.model, "cv", None) or 1), kind="stable")
        at = at[:count]
        alternately = np.arange(self.n) // 2 % 2
        cells = np.repeat(alternately[:, np.newaxis], self.p, axis=1).astype(float)
        found = {}
        if words != "means of what is present":
            found["other category"] = self._pair_of_ends(cells, at, (0, 1), alternately, (1, 1))
        if words != "counts of categories":
            found["ends of the target"] = self._pair_of_ends(cells, at, (0, 0), alternately, (1, 0))
        return found

    def with_lone_categories(self, count):
        """Records of which so many have categories of their own in each column."""
        cells = np.zeros((self.n, self.p))
        cells[:count] = LONE + np.arange(count)[:, np.newaxis]
        return self._laid_out(cells), self._ends(np.zeros(self.n, dtype=int)), None

    def _of_columns(self, count, generator):
        """Columns whose products with the target some records raise, or lower."""
        at = generator.choice(self.n, count, replace=False)
        # every other column gains in the first of the two data sets
        gains, n_others = np.arange(self.p) % 2 == 0, self.n - count
        base = np.full(self.p, _BASE)
        if self.adds:  # so that the columns that lead without these records fall behind with them
            base[~gains] += count / n_others
        ends = np.where(gains, 1.0, -1.0)
        lo, hi = self._stated_bounds() or (-np.ones(self.p), np.ones(self.p))
        if self._sparse:  # zero stays zero
            hi = np.maximum(np.abs(lo), np.abs(hi))
            lo = -hi
        middle, *rows = (lo / 2 + hi / 2 + (hi / 2 - lo / 2) * row for row in (base, ends, -ends))
        return self._pair_of_ends(middle, at, rows, np.ones(self.n, dtype=int), (1, 1))

    def _pair_of_ends(self, cells, at, rows, high, of_rows):
        """As `_pair`; a target is at the higher end, or of the second class, where `high` is 1."""
        targets = []
        for end in of_rows:
            y = high.copy()
            y[at] = end
            targets.append(self._ends(y))
        return self._pair(cells, at, rows, targets)

    def _ends(self, high):
        """Targets at either end of the bounds, or of the first two classes; None if unused."""
        if not hasattr(self.model, "target_bounds"):
            return None
        labels, bounds = stated_target(self.model)
        return np.asarray(bounds if labels is None else labels)[high]
