"""Which greedy scores are still true: those of a sum and a coefficient that did not change."""

import numpy as np
from libc.math cimport NAN

from ...penalties._penalty cimport Penalty, Rule


cdef class KnownScores:
    """What the scores of each coordinate were made of, for one penalty and rule at a time.

    Parameters
    ----------
    n_coordinates : int
    """

    def __init__(self, Py_ssize_t n_coordinates):
        self._sums, self._coef = np.empty(n_coordinates), np.empty(n_coordinates)
        self.forget_all()

    def __reduce__(self):
        raise TypeError("sums over records are never copied or pickled")

    cdef void be_for(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                     Py_ssize_t size) noexcept nogil:
        """Forget scores of another problem; `size` decides which public parts are refused."""
        if (self._penalty is penalty and self._n_penalized == n_penalized
                and self._rule == rule and self._size == size):
            return
        with gil:
            self._penalty = penalty
        self._n_penalized, self._rule, self._size = n_penalized, rule, size
        self.forget_all()

    cdef bint has(self, Py_ssize_t j, double total, double w) noexcept nogil:
        """Whether both scores of coordinate j are of this sum over records and coefficient."""
        return (&self._sums[0])[j] == total and (&self._coef[0])[j] == w

    cdef void learn(self, Py_ssize_t j, double total, double w) noexcept nogil:
        (&self._sums[0])[j] = total
        (&self._coef[0])[j] = w

    cdef void forget(self, Py_ssize_t j) noexcept nogil:
        (&self._sums[0])[j] = NAN  # equals nothing

    cdef void forget_all(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self._sums.shape[0]):
            self.forget(j)
