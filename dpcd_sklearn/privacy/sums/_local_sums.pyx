"""The common part of sums in this process: buffers, and shares of rows for threads."""

import numpy as np
from libc.stdlib cimport calloc, free

from ...losses._loss cimport Loss
from ...utils._threads cimport in_shares
from ._records cimport Records
from ._sums cimport Question, Sums

# A question, and sums of so many numbers that each share of rows adds its own to.
cdef struct Shares:
    void *sums
    const Question *question
    double *parts
    Py_ssize_t size


cdef bint _add_share(void *of, Py_ssize_t share, Py_ssize_t start,
                     Py_ssize_t stop) noexcept nogil:
    cdef Shares *shares = <Shares *>of
    return (<LocalSums>shares.sums)._add_rows(shares.question, start, stop,
                                              shares.parts + share * shares.size)


cdef class LocalSums(Sums):
    """Sums over records in memory, or in a map of a file.

    Parameters
    ----------
    records : Records
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,), or (n_outputs * n_coordinates,)
        M_j, public, of all outputs alike or of each of them (`by_output`); the intercept, if any,
        comes last in an output.
    fit_intercept : bool
    n_outputs : int
        Margins of a record.
    by_output : bool
    """

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs, bint by_output):
        self.records, self.loss, self.fit_intercept = records, loss, fit_intercept
        self.n, self.p, self.n_outputs = records.n, records.p, n_outputs
        self.n_coordinates = self.p + fit_intercept
        if n_outputs < 1 or (n_outputs > 1 and not loss.multi_output):
            raise ValueError(f"the {loss.name} loss has one output, got n_outputs={n_outputs}")
        size = self.n_coordinates * (n_outputs if by_output else 1)
        if smoothness.shape != (size,):
            raise ValueError(f"smoothness has shape {smoothness.shape}, expected ({size},)")
        if records.y == NULL:
            raise ValueError("sums over records need their targets")
        self.roots = np.sqrt(smoothness, dtype=np.float64)
        self._totals = np.empty(n_outputs * self.n_coordinates)

    cdef bint _add_in_threads(self, const Question *question, Py_ssize_t start, Py_ssize_t stop,
                              Py_ssize_t n_threads, Py_ssize_t size) noexcept nogil:
        """_totals += contributions of these rows; False when out of memory.

        Integers are added exactly: neither the shares nor their order show in the totals.
        """
        cdef Py_ssize_t k
        cdef bint enough
        cdef Shares shares
        if n_threads == 1:
            return self._add_rows(question, start, stop, &self._totals[0])
        shares.sums, shares.question, shares.size = <void *>self, question, size
        shares.parts = <double *>calloc(max(1, n_threads * size), sizeof(double))
        if shares.parts == NULL:
            return False
        enough = in_shares(_add_share, &shares, start, stop, n_threads)
        for k in range(n_threads * size):
            self._totals[k % size] += shares.parts[k]
        free(shares.parts)
        return enough

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        """sums += contributions of the rows i, ..., stop - 1; False when out of memory."""
        return False
