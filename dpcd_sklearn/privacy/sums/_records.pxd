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
    void dpcd_add_column(const dpcd_sparse *m, Py_ssize_t j, double a,
                         double *margins) noexcept nogil
    void dpcd_add_columns(const dpcd_sparse *m, Py_ssize_t n_columns, const Py_ssize_t *columns,
                          const double *v, int square, double *lanes) noexcept nogil
    void dpcd_join_lanes(Py_ssize_t n, const Py_ssize_t *where, double *lanes,
                         double *out) noexcept nogil
    void dpcd_dot_rows(const dpcd_sparse *m, Py_ssize_t n, const Py_ssize_t *rows,
                       const double *v, int square, double *out) noexcept nogil
    void dpcd_spread_rows(const dpcd_sparse *m, Py_ssize_t i0, Py_ssize_t n, Py_ssize_t p,
                          double *out) noexcept nogil
    void dpcd_sum_columns(const dpcd_sparse *m, Py_ssize_t n_columns, const Py_ssize_t *columns,
                          const double *r, const double *roots, double clip, double limit,
                          double *sums) noexcept nogil
    void dpcd_sum_rows(const dpcd_sparse *m, Py_ssize_t n, const Py_ssize_t *rows,
                       const double *r, const double *scale, double limit,
                       double *sums) noexcept nogil
    void dpcd_change_rows(const dpcd_sparse *m, Py_ssize_t n, const Py_ssize_t *rows,
                          const double *now, const double *scale, double limit, double *r,
                          double *sums) noexcept nogil
    Py_ssize_t dpcd_count(const dpcd_sparse *m, Py_ssize_t n, const Py_ssize_t *lines,
                          Py_ssize_t most) noexcept nogil
    Py_ssize_t dpcd_touch(const dpcd_sparse *m, Py_ssize_t n_columns, const Py_ssize_t *columns,
                          char *marks, Py_ssize_t *touched) noexcept nogil
    void dpcd_gather_at(Py_ssize_t n, const Py_ssize_t *where, const double *v,
                        double *out) noexcept nogil


cdef class Records:
    cdef object _owners, _stored
    cdef readonly bint is_sparse
    cdef dpcd_matrix X  # dense records
    cdef dpcd_sparse columns, rows  # sparse ones, from when they are asked for
    cdef const double *y
    cdef const double *weights
    cdef readonly Py_ssize_t n, p, n_entries, n_threads

    cdef const double *_hold(self, array, Py_ssize_t size) except NULL
    cdef bint holds(self, bint by_row) noexcept nogil
    cdef _point(self, dpcd_sparse *m, X)
