"""Tables that an audit makes up: cells of categories, and targets beside them or beside columns.

Cells are the numbers 0 and 1, which are categories of many records; LONE and beyond are categories
of one record each.
"""

import numpy as np

from ..preprocessing._category_encoder import CategoryEncoder
from ..preprocessing._select_k_best import DPSelectKBest
from ..preprocessing._simple_imputer import DPSimpleImputer
from ._simulated_records import SimulatedRecords

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
        if self.model.classes is not None:
            return np.asarray(self.model.classes)[high]
        return np.asarray(self.model.target_bounds, dtype=float)[high]
