from ...losses._loss cimport Loss
from ._records cimport Records
from ._sums cimport Question, Sums


cdef class LocalSums(Sums):
    cdef readonly Py_ssize_t n, p
    cdef Records records
    cdef Loss loss
    cdef bint fit_intercept
    cdef double[::1] roots, _totals

    cdef bint _add_in_threads(self, const Question *question, Py_ssize_t start, Py_ssize_t stop,
                              Py_ssize_t n_threads, Py_ssize_t size) noexcept nogil
    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil
