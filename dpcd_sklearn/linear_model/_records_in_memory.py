"""Records of one fit in this process: validated first, read after the charge."""

from abc import ABCMeta, abstractmethod

import numpy as np
from scipy.sparse import issparse

from ..plan._arrays import Arrays, is_mapped
from ..privacy.sums._place import LocalPlace
from ..utils._compat import check_sample_weight
from ..utils._persons import rows_read
from ..utils._threads import effective_n_threads


class RecordsOfAFit(metaclass=ABCMeta):
    """Valid records, as the fit recipe knows them.

    Attributes
    ----------
    shape : tuple (n_samples, n_features)
    dtype : dtype of X
    sparse : bool
    n_outputs : int
    in_arrays : bool
        Whether they are arrays in memory, which sparse ones index by 32 bits, in a fit whose
        updates nobody follows.
    """

    in_arrays = False

    @abstractmethod
    def weighted(self):
        """The place of features and weights, for a plan without noise."""

    @abstractmethod
    def unscaled(self, with_target):
        """The place of records as they are, for a search of scales; after the charge."""

    @abstractmethod
    def scaled(self, request):
        """Records for a plan: Arrays, or what has their methods; after the charge."""

    def run(self, plan, receipt, scaled, key, generator):
        """Carry out a plan over what `scaled` gave; returns a Solution."""
        return plan.run(receipt, scaled, key, generator)


class RecordsInMemory(RecordsOfAFit):
    """Records of this process.

    Parameters
    ----------
    model : PrivateLinearModel
        Which validated them.
    X, y, sample_weight : arrays
    n_outputs : int, default=1
    """

    def __init__(self, model, X, y, sample_weight, n_outputs=1):
        self._model, self._X, self._y, self._weights = model, X, y, sample_weight
        self.shape, self.dtype, self.sparse = X.shape, X.dtype, issparse(X)
        self.n_outputs, self._n_threads = n_outputs, effective_n_threads(model.n_threads)
        parts = (X.data, X.indices, X.indptr) if self.sparse else (X,)
        is_followed = bool(getattr(model, "_skl_callbacks", ()))
        is_long = self.sparse and max(X.nnz, *X.shape) >= 2**31
        self.in_arrays = not (is_followed or is_long or any(is_mapped(part) for part in parts))

    @classmethod
    def checked(cls, model, X, y, sample_weight):
        """The validated arguments of ``fit``; the model publishes the labels."""
        X, y = model._check_records(X, y)
        sample_weight = check_sample_weight(sample_weight, X)
        y, n_outputs = model._encode_labels(y, sample_weight)
        return cls(model, X, y, sample_weight, n_outputs)

    def at_most(self, groups):
        """At most as many records of each person as the model states, sorted by person."""
        records = [one for one in self.arrays() if one is not None]
        rows = rows_read(self._model.neighboring, groups, self.shape[0], *records)
        X, y, *weights = (one[rows] for one in records)
        return RecordsInMemory(self._model, X, y, *(weights or [None]), self.n_outputs)

    def arrays(self):
        """X, y and weights, for a fit without noise."""
        return self._X, self._y, self._weights

    def weighted(self):
        weights = self._model._weights_of(self._y, self._weights)
        return LocalPlace(self._X, None, weights, n_threads=self._n_threads)

    def unscaled(self, with_target):
        y = np.ascontiguousarray(self._y, dtype=np.float64) if with_target else None
        return LocalPlace(self._X, y, n_threads=self._n_threads)

    def scaled(self, request):
        target = self._model._scale_target(self._y, request)
        return Arrays(self._X, target, self._model._weights_of(self._y, self._weights))
