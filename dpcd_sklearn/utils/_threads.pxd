cdef enum:
    SLAB = 4194304  # cells that a thread reads between two looks for interrupts

# Does what rows start, ..., stop - 1 ask for, with the share's own numbers of `of`, and without
# Python; False when out of memory. Shares may be empty.
ctypedef bint (*Work)(void *of, Py_ssize_t share, Py_ssize_t start,
                      Py_ssize_t stop) noexcept nogil

cdef bint in_shares(Work work, void *of, Py_ssize_t start, Py_ssize_t stop,
                    Py_ssize_t n_threads) noexcept nogil
cdef int over_rows(Work work, void *of, Py_ssize_t n_rows, Py_ssize_t n_columns,
                   Py_ssize_t n_threads) except -1
