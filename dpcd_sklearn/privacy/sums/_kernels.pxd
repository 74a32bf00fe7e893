from libc.stdint cimport int16_t, int32_t, int64_t


cdef extern from "_kernels.h":
    const int DPCD_LANES
    const double DPCD_MAGIC
    const int DPCD_READ_ONCE
    const int DPCD_READ_AGAIN
    ctypedef struct dpcd_bounds:
        const double *lo
        const double *hi
        const double *center
    ctypedef struct dpcd_matrix:
        const void *data
        int is_float
        int c_order
        Py_ssize_t stride
        Py_ssize_t n_columns
        dpcd_bounds bounds
    ctypedef struct dpcd_tile:
        const void *cells
        Py_ssize_t stride
        Py_ssize_t n_rows
        Py_ssize_t n_columns
        int c_order
        int is_float
        dpcd_bounds bounds
        const char *source
    ctypedef struct dpcd_kernels:
        void (*load)(const dpcd_matrix *m, Py_ssize_t i0, const Py_ssize_t *rows,
                     Py_ssize_t n_rows, const Py_ssize_t *columns, Py_ssize_t n_columns,
                     double *scratch, dpcd_tile *tile) noexcept nogil
        void (*rows_dot)(const dpcd_tile *tile, const double *v, int square,
                         Py_ssize_t next_rows, double *out) noexcept nogil
        void (*scaled_rows)(const dpcd_tile *tile, const double *scale, const double *factors,
                            double magic, Py_ssize_t next_rows, double *out,
                            int16_t *whole, Py_ssize_t apart) noexcept nogil
        void (*weigh)(Py_ssize_t n, const double *weights, double *r) noexcept nogil
        void (*clip_norms)(Py_ssize_t n, Py_ssize_t n_outputs, const double *square_norms,
                           Py_ssize_t apart, double clip, double *r) noexcept nogil
        void (*sums)(const dpcd_tile *tile, const double *r, const double *scale, double limit,
                     Py_ssize_t next_rows, int half, double *sums) noexcept nogil
        double (*clipped_column)(const dpcd_tile *tile, const double *r, const double *weights,
                                 double scale, double limit,
                                 Py_ssize_t next_rows) noexcept nogil
        double (*sum_of_ones)(Py_ssize_t n, const double *r, double scale,
                              double limit) noexcept nogil
        void (*add_products)(const int16_t *rows, Py_ssize_t n_rows, Py_ssize_t n_columns,
                             Py_ssize_t row_apart, const double *factors, int32_t *room,
                             int64_t *totals) noexcept nogil
        void (*image_norms)(const int16_t *rows, Py_ssize_t n_rows, Py_ssize_t n_columns,
                            Py_ssize_t apart, Py_ssize_t n_limbs, const int32_t *transform,
                            const double *units, double *out) noexcept nogil
        void (*whole_dot)(const int16_t *rows, Py_ssize_t n_rows, Py_ssize_t apart,
                          const int16_t *v, Py_ssize_t n_vectors, Py_ssize_t out_apart,
                          int32_t *out) noexcept nogil
        void (*whole_sums)(const int16_t *rows, Py_ssize_t n_rows, Py_ssize_t apart,
                           const int16_t *r, Py_ssize_t r_apart, Py_ssize_t n_outputs,
                           double *sums) noexcept nogil
    dpcd_tile dpcd_tile_of(const double *cells, Py_ssize_t stride, Py_ssize_t n_rows,
                           Py_ssize_t n_columns, int c_order) noexcept nogil
    Py_ssize_t dpcd_pairs_apart(Py_ssize_t n_columns) noexcept nogil
    double dpcd_join(const double *s) noexcept nogil
    double dpcd_units(double v, double limit) noexcept nogil
    Py_ssize_t dpcd_tile_rows(const dpcd_matrix *m, Py_ssize_t widest, int reads) noexcept nogil
    Py_ssize_t dpcd_paying_threads(Py_ssize_t n_threads, Py_ssize_t n_cells) noexcept nogil
    Py_ssize_t dpcd_rows_ahead(Py_ssize_t tile_rows, Py_ssize_t left) noexcept nogil


# The kernels that this processor can run; chosen when the module is imported.
cdef const dpcd_kernels *KERNELS
