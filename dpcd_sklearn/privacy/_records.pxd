from ._kernels cimport dpcd_matrix


cdef extern from "_sparse.h":
    const int DPCD_SLICE
    ctypedef struct dpcd_sparse:
        const void *indptr
        const void *indices
        const void *data
        int is_float
        int is_long
        const double *lo
        const double *hi
        int by_column
    Py_ssize_t dpcd_line_start(const dpcd_sparse *m, Py_ssize_t line) noexcept nogil
    void dpcd_slice(const dpcd_sparse *m, Py_ssize_t line, Py_ssize_t at, Py_ssize_t n,
                    Py_ssize_t *where, double *values) noexcept nogil
    int dpcd_is_canonical(const dpcd_sparse *m, Py_ssize_t n_lines,
                          Py_ssize_t size) noexcept nogil
    double dpcd_slice_sum(Py_ssize_t n, const double *r, const double *values, double scale,
                          double limit) noexcept nogil
    void dpcd_gather_at(Py_ssize_t n, const Py_ssize_t *where, const double *v,
                        double *out) noexcept nogil
    void dpcd_scatter_lane(Py_ssize_t n, const Py_ssize_t *where, const double *values, double a,
                           int square, Py_ssize_t lane, double *lanes) noexcept nogil
    void dpcd_join_lanes(Py_ssize_t n, double *lanes, double *out) noexcept nogil
    void dpcd_slice_lanes(Py_ssize_t n, const Py_ssize_t *where, const double *values,
                          const double *v, int square, double *lanes) noexcept nogil
    void dpcd_slice_add(Py_ssize_t n, const Py_ssize_t *where, const double *values, double r,
                        const double *scale, double limit, double *sums) noexcept nogil
    void dpcd_slice_change(Py_ssize_t n, const Py_ssize_t *where, const double *values, double r,
                           double s, const double *scale, double limit,
                           double *sums) noexcept nogil


cdef class Records:
    cdef object _owners
    cdef readonly bint is_sparse
    cdef dpcd_matrix X  # dense records
    cdef dpcd_sparse columns, rows  # sparse ones, by column and (for greedy choices) by row
    cdef const double *y
    cdef const double *weights
    cdef readonly Py_ssize_t n, p, n_entries, n_threads

    cdef const double *_hold(self, array, Py_ssize_t size) except NULL
    cdef dpcd_sparse _sparse(self, X, bint by_column, bounds) except *
