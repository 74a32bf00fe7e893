cdef extern from "_kernels.h":
    const int DPCD_TILE_ROWS
    const int DPCD_TILE_CELLS
    const int DPCD_LANES
    ctypedef struct dpcd_matrix:
        const void *data
        int is_float
        int c_order
        Py_ssize_t stride
        Py_ssize_t n_columns
        const double *lo
        const double *hi
        const double *center
    ctypedef struct dpcd_tile:
        const double *cells
        Py_ssize_t stride
        Py_ssize_t n_rows
        Py_ssize_t n_columns
        int c_order
    void dpcd_load(const dpcd_matrix *m, Py_ssize_t i0, Py_ssize_t n_rows,
                   const Py_ssize_t *columns, Py_ssize_t n_columns, double *scratch,
                   dpcd_tile *t) noexcept nogil
    void dpcd_gather(const dpcd_matrix *m, const Py_ssize_t *rows, Py_ssize_t n_rows,
                     double *scratch, dpcd_tile *t) noexcept nogil
    void dpcd_margins(const dpcd_tile *t, const double *step, double *margins) noexcept nogil
    void dpcd_square_norms(const dpcd_tile *t, const double *weights,
                           double *norms) noexcept nogil
    void dpcd_weigh(Py_ssize_t n, const double *weights, double *r) noexcept nogil
    void dpcd_clip_norms(Py_ssize_t n, const double *square_norms, double clip,
                         double *r) noexcept nogil
    void dpcd_clipped_sums(const dpcd_tile *t, const double *r, const double *scale,
                           double limit, double *sums) noexcept nogil
    void dpcd_plain_sums(const dpcd_tile *t, const double *r, double *sums) noexcept nogil
    double dpcd_clipped_sum_of_ones(Py_ssize_t n, const double *r, double scale,
                                    double limit) noexcept nogil
    double dpcd_plain_sum_of_ones(Py_ssize_t n, const double *r) noexcept nogil


cdef class Records:
    cdef object _owners
    cdef dpcd_matrix X
    cdef const double *y
    cdef const double *weights
    cdef Py_ssize_t n, p

    cdef const double *_hold(self, array, Py_ssize_t size) except NULL
