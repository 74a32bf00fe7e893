"""Records in this process, as an engine is given them after the charge."""

from typing import NamedTuple

import numpy as np

from ..privacy.sums._place import LocalPlace
from ..utils._threads import effective_n_threads


class Arrays(NamedTuple):
    """What is read, and nothing was: an engine opens the place where they lie.

    Records that lie elsewhere have the same methods.
    """

    X: object
    target: np.ndarray
    sample_weight: np.ndarray | None

    def place(self, bounds, n_threads):
        """Where they lie, with bounds as of LocalPlace."""
        return LocalPlace(*self, bounds, n_threads=effective_n_threads(n_threads))

    def labels(self):
        """Where numbers of classes lie, to be counted."""
        return LocalPlace(self.X, self.target)

    def of_output(self, k):
        """The same records with target k of several, or with class k against all others."""
        if self.target.ndim == 2:
            return self._replace(target=np.ascontiguousarray(self.target[:, k]))
        return self._replace(target=(self.target == k).astype(np.float64))
