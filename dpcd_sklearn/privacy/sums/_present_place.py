"""Records in this process, some of whose cells are missing: those lie in no cell of a column."""

import numpy as np
from scipy.sparse import issparse

from ._place import LocalPlace
from ._records import canonical


class PresentPlace(LocalPlace):
    """Where records lie of which NaN is missing. Counts of features leave it out.

    Parameters
    ----------
    X : as of LocalPlace
    """

    def counts(self, of, *, edges=None, around=None):
        if of != "features":
            raise ValueError("of what may be missing columns are counted, and nothing else")
        counts = super().counts(of, edges=edges, around=around)
        counts[:, 0] -= _n_missing(self._arrays[0])  # `count_cells` has NaN in the first cell
        return counts


def _n_missing(X):
    """How many records have no number in each column."""
    if not issparse(X):
        return np.array([np.count_nonzero(np.isnan(X[:, j])) for j in range(X.shape[1])])
    stored = canonical(X).tocsc()
    columns = np.repeat(np.arange(X.shape[1]), np.diff(stored.indptr))
    return np.bincount(columns[np.isnan(stored.data)], minlength=X.shape[1])
