/* One compilation of the kernels: DPCD_NAME and DPCD_BODY_AVX2 say which. */
#include "_kernels_lanes.h"

#define DPCD_FILL DPCD_NAME(dpcd_fill)
#define DPCD_READ_DOUBLES DPCD_NAME(dpcd_read_d)
#define DPCD_WRITE DPCD_NAME(dpcd_write)
#define DPCD_ADD DPCD_NAME(dpcd_add)
#define DPCD_MUL DPCD_NAME(dpcd_mul)
#define DPCD_CLIP DPCD_NAME(dpcd_clip)
#define DPCD_BITS DPCD_NAME(dpcd_bits)
#define DPCD_ZEROS DPCD_NAME(dpcd_zeros)
#define DPCD_READ_INTEGERS DPCD_NAME(dpcd_read_i)
#define DPCD_WRITE_INTEGERS DPCD_NAME(dpcd_write_i)
#define DPCD_ADD_INTEGERS DPCD_NAME(dpcd_add_i)

#define REAL double
#define DPCD_TYPED(f) DPCD_NAME(f##_of_doubles)
#define DPCD_READ DPCD_NAME(dpcd_read_d)
#include "_kernels_typed.h"
#undef REAL
#undef DPCD_TYPED
#undef DPCD_READ
#define REAL float
#define DPCD_TYPED(f) DPCD_NAME(f##_of_floats)
#define DPCD_READ DPCD_NAME(dpcd_read_f)
#include "_kernels_typed.h"
#undef REAL
#undef DPCD_TYPED
#undef DPCD_READ

/* ---- tiles ------------------------------------------------------------------------------------ */

static void DPCD_NAME(dpcd_load)(const dpcd_matrix *m, ptrdiff_t i0, ptrdiff_t n_rows,
                                 const ptrdiff_t *columns, ptrdiff_t n_columns, double *scratch,
                                 dpcd_tile *t)
{
    t->n_rows = n_rows;
    t->n_columns = n_columns;
    t->c_order = m->c_order;
    t->source = NULL;
    if (!columns || (n_columns == 1 && !m->c_order)) {
        ptrdiff_t first = columns ? columns[0] : 0;
        ptrdiff_t at = m->c_order ? i0 * m->stride : first * m->stride + i0;
        t->source_cell = m->is_float ? sizeof(float) : sizeof(double);
        t->source_stride = m->stride * t->source_cell;
        t->source = (const char *)m->data + at * t->source_cell;
        if (!m->lo) {
            t->cells = t->source;
            t->stride = m->stride;
            t->is_float = m->is_float;
            return;
        }
    }
    if (m->is_float && m->lo)
        DPCD_NAME(dpcd_pack_of_floats)(m, i0, columns, t, scratch, 1);
    else if (m->is_float)
        DPCD_NAME(dpcd_pack_of_floats)(m, i0, columns, t, scratch, 0);
    else if (m->lo)
        DPCD_NAME(dpcd_pack_of_doubles)(m, i0, columns, t, scratch, 1);
    else
        DPCD_NAME(dpcd_pack_of_doubles)(m, i0, columns, t, scratch, 0);
    t->cells = scratch;
    t->stride = m->c_order ? n_columns : n_rows;
    t->is_float = 0;
    if (n_columns == 1) { /* one column is contiguous in either order */
        t->c_order = 0;
        t->stride = n_rows;
    }
}

static void DPCD_NAME(dpcd_gather)(const dpcd_matrix *m, const ptrdiff_t *rows, ptrdiff_t n_rows,
                                   double *scratch, dpcd_tile *t)
{
    t->n_rows = n_rows;
    t->n_columns = t->stride = m->n_columns;
    t->c_order = 1;
    t->is_float = 0;
    t->source = NULL;
    t->cells = scratch;
    if (m->is_float)
        DPCD_NAME(dpcd_gather_of_floats)(m, rows, t, scratch, m->lo != NULL);
    else
        DPCD_NAME(dpcd_gather_of_doubles)(m, rows, t, scratch, m->lo != NULL);
}

static void DPCD_NAME(dpcd_rows_dot)(const dpcd_tile *t, const double *v, int square,
                                     ptrdiff_t next_rows, double *out)
{
    const char *next = dpcd_next_tile(t, next_rows);
    if (t->c_order && t->is_float && square)
        DPCD_NAME(dpcd_rows_dot_c_of_floats)(t, v, out, 1, next);
    else if (t->c_order && t->is_float)
        DPCD_NAME(dpcd_rows_dot_c_of_floats)(t, v, out, 0, next);
    else if (t->c_order && square)
        DPCD_NAME(dpcd_rows_dot_c_of_doubles)(t, v, out, 1, next);
    else if (t->c_order)
        DPCD_NAME(dpcd_rows_dot_c_of_doubles)(t, v, out, 0, next);
    else if (t->is_float && square)
        DPCD_NAME(dpcd_rows_dot_f_of_floats)(t, v, out, 1);
    else if (t->is_float)
        DPCD_NAME(dpcd_rows_dot_f_of_floats)(t, v, out, 0);
    else if (square)
        DPCD_NAME(dpcd_rows_dot_f_of_doubles)(t, v, out, 1);
    else
        DPCD_NAME(dpcd_rows_dot_f_of_doubles)(t, v, out, 0);
}

static void DPCD_NAME(dpcd_scaled_rows)(const dpcd_tile *t, const double *scale,
                                        const double *factors, double magic, ptrdiff_t next_rows,
                                        double *out, ptrdiff_t apart)
{
    const char *next = dpcd_next_tile(t, next_rows);
    if (t->is_float)
        DPCD_NAME(dpcd_scaled_rows_of_floats)(t, scale, factors, magic, next, out, apart);
    else
        DPCD_NAME(dpcd_scaled_rows_of_doubles)(t, scale, factors, magic, next, out, apart);
}

static void DPCD_NAME(dpcd_clipped_sums)(const dpcd_tile *t, const double *r, const double *scale,
                                         double limit, ptrdiff_t next_rows, int half,
                                         double *sums)
{
    const char *next = dpcd_next_tile(t, next_rows);
    if (t->c_order && t->is_float)
        DPCD_NAME(dpcd_clipped_sums_c_of_floats)(t, r, scale, limit, next, half, sums);
    else if (t->c_order)
        DPCD_NAME(dpcd_clipped_sums_c_of_doubles)(t, r, scale, limit, next, half, sums);
    else if (t->is_float)
        DPCD_NAME(dpcd_clipped_sums_f_of_floats)(t, r, scale, limit, next, sums);
    else
        DPCD_NAME(dpcd_clipped_sums_f_of_doubles)(t, r, scale, limit, next, sums);
}

static double DPCD_NAME(dpcd_clipped_column)(const dpcd_tile *t, const double *r,
                                             const double *weights, double scale, double limit,
                                             ptrdiff_t next_rows)
{
    const char *next = dpcd_next_tile(t, next_rows);
    if (t->is_float)
        return DPCD_NAME(dpcd_clipped_column_of_floats)(t, r, weights, scale, limit, next);
    return DPCD_NAME(dpcd_clipped_column_of_doubles)(t, r, weights, scale, limit, next);
}

static void DPCD_NAME(dpcd_plain_sums)(const dpcd_tile *t, const double *r, double *sums)
{
    if (t->is_float)
        DPCD_NAME(dpcd_plain_sums_of_floats)(t, r, sums);
    else
        DPCD_NAME(dpcd_plain_sums_of_doubles)(t, r, sums);
}

/* ---- one number a record ------------------------------------------------------------------------ */

static void DPCD_NAME(dpcd_weigh)(ptrdiff_t n, const double *weights, double *restrict r)
{
    ptrdiff_t i;
    if (weights)
        for (i = 0; i < n; i++) r[i] *= weights[i];
    for (i = 0; i < n; i++) r[i] = dpcd_bounded(r[i]);
}

/* Of a record's derivative in one output; apart is zero when they share their norm. */
DPCD_INLINE double DPCD_NAME(dpcd_length)(double r, double square_norm, ptrdiff_t apart)
{
    double length = fabs(r) * (apart ? sqrt(square_norm) : 1.0);
    return r != 0.0 ? length : 0.0; /* whatever the norm */
}

static void DPCD_NAME(dpcd_clip_outputs)(ptrdiff_t n, ptrdiff_t n_outputs,
                                         const double *restrict square_norms, ptrdiff_t apart,
                                         double clip, double *restrict r)
{
    enum { TOGETHER = 256 };
    double largest[TOGETHER], total[TOGETHER];
    ptrdiff_t start, i, k;
    for (start = 0; start < n; start += TOGETHER) {
        ptrdiff_t size = n - start < TOGETHER ? n - start : TOGETHER;
        const double *restrict norms = square_norms + start;
        double *restrict v = r + start;
        for (i = 0; i < size; i++) largest[i] = total[i] = 0.0;
        for (k = 0; k < n_outputs; k++)
            for (i = 0; i < size; i++) {
                double s = DPCD_NAME(dpcd_length)(v[k * n + i], norms[k * apart + i], apart);
                largest[i] = s > largest[i] ? s : largest[i];
            }
        for (k = 0; k < n_outputs; k++) /* in units of the largest, whose square may underflow */
            for (i = 0; i < size; i++) {
                double s = DPCD_NAME(dpcd_length)(v[k * n + i], norms[k * apart + i], apart);
                s = largest[i] > 0.0 ? s / largest[i] : 0.0;
                total[i] += s * s;
            }
        for (i = 0; i < size; i++) {
            double norm = largest[i] * sqrt(total[i]) * (apart ? 1.0 : sqrt(norms[i]));
            double ratio = norm > clip ? clip / norm : 1.0;
            total[i] = largest[i] <= DBL_MAX ? ratio : 0.0;
        }
        for (k = 0; k < n_outputs; k++)
            for (i = 0; i < size; i++) v[k * n + i] *= total[i];
    }
}

static void DPCD_NAME(dpcd_clip_norms)(ptrdiff_t n, ptrdiff_t n_outputs,
                                       const double *restrict square_norms, ptrdiff_t apart,
                                       double clip, double *restrict r)
{
    ptrdiff_t i;
    if (n_outputs > 1) {
        DPCD_NAME(dpcd_clip_outputs)(n, n_outputs, square_norms, apart, clip, r);
        return;
    }
    for (i = 0; i < n; i++) {
        double ratio = clip / (fabs(r[i]) * sqrt(square_norms[i]));
        r[i] *= ratio < 1.0 ? ratio : 1.0;
    }
}

static double DPCD_NAME(dpcd_clipped_sum_of_ones)(ptrdiff_t n, const double *restrict r,
                                                  double scale, double limit)
{
    uint64_t bits = 0;
    ptrdiff_t i;
    for (i = 0; i < n; i++) bits += dpcd_unit_bits(r[i] * scale, limit);
    return dpcd_sum_of_bits(bits, n);
}

static double DPCD_NAME(dpcd_plain_sum_of_ones)(ptrdiff_t n, const double *restrict r)
{
    double s = 0.0;
    ptrdiff_t i;
    for (i = 0; i < n; i++) s += r[i];
    return s;
}

static const dpcd_kernels DPCD_NAME(dpcd_kernels) = {
    DPCD_NAME(dpcd_load),
    DPCD_NAME(dpcd_gather),
    DPCD_NAME(dpcd_rows_dot),
    DPCD_NAME(dpcd_scaled_rows),
    DPCD_NAME(dpcd_weigh),
    DPCD_NAME(dpcd_clip_norms),
    DPCD_NAME(dpcd_clipped_sums),
    DPCD_NAME(dpcd_clipped_column),
    DPCD_NAME(dpcd_plain_sums),
    DPCD_NAME(dpcd_clipped_sum_of_ones),
    DPCD_NAME(dpcd_plain_sum_of_ones),
};

#undef DPCD_FILL
#undef DPCD_READ_DOUBLES
#undef DPCD_WRITE
#undef DPCD_ADD
#undef DPCD_MUL
#undef DPCD_CLIP
#undef DPCD_BITS
#undef DPCD_ZEROS
#undef DPCD_READ_INTEGERS
#undef DPCD_WRITE_INTEGERS
#undef DPCD_ADD_INTEGERS
#undef DPCD_VECTOR
#undef DPCD_INTEGERS
