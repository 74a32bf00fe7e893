/* What the kernels do whatever the vectors, both compilations of them, and the choice between. */
#ifndef DPCD_KERNELS_TWICE_H
#define DPCD_KERNELS_TWICE_H
#include <float.h>
#include <math.h>
#include <string.h>

#include "_kernels.h"

#if DPCD_COMPILES_AVX2
#include <immintrin.h>
#endif

/* The bits of dpcd_units(v) + DPCD_MAGIC: those of DPCD_MAGIC plus the integer. */
DPCD_INLINE uint64_t dpcd_unit_bits(double v, double limit)
{
    uint64_t bits;
    v = v < limit ? v : limit;
    v = v > -limit ? v : -limit;
    v += DPCD_MAGIC;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* The sum of n integers from the sum of their bits, modulo 2^64. */
DPCD_INLINE double dpcd_sum_of_bits(uint64_t bits, ptrdiff_t n)
{
    const double magic = DPCD_MAGIC;
    uint64_t offset;
    memcpy(&offset, &magic, sizeof offset);
    return (double)(int64_t)(bits - (uint64_t)n * offset);
}

/* ---- cells ---------------------------------------------------------------------------------- */

DPCD_INLINE ptrdiff_t dpcd_size(int is_float) { return is_float ? sizeof(float) : sizeof(double); }

DPCD_INLINE const void *dpcd_at(const void *cells, ptrdiff_t i, int is_float)
{
    return (const char *)cells + i * dpcd_size(is_float);
}

DPCD_INLINE double dpcd_cell(const void *cells, ptrdiff_t i, int is_float)
{
    return is_float ? (double)((const float *)cells)[i] : ((const double *)cells)[i];
}

/* f(t, ..., is_float, bounded), both of which are constants where it is inlined. */
#define DPCD_BY_CELL(t, f, ...)                                                        \
    ((t)->bounds.lo ? (t)->is_float ? f(t, __VA_ARGS__, 1, 1) : f(t, __VA_ARGS__, 0, 1) \
                    : (t)->is_float ? f(t, __VA_ARGS__, 1, 0) : f(t, __VA_ARGS__, 0, 0))

/* Those of the columns from k on. */
DPCD_INLINE dpcd_bounds dpcd_bounds_at(dpcd_bounds b, ptrdiff_t k, int bounded)
{
    if (bounded) {
        b.lo += k;
        b.hi += k;
        b.center += k;
    }
    return b;
}

DPCD_INLINE double dpcd_public(double x, dpcd_bounds b, ptrdiff_t j, int bounded)
{
    if (bounded) {
        x = x < b.hi[j] ? x : b.hi[j];
        x = x > b.lo[j] ? x : b.lo[j];
        x -= b.center[j];
    }
    return x;
}

/* Rows from i0 on, or those given (of all columns): by rows if they are given or lie so. */
DPCD_INLINE void dpcd_pack(const dpcd_matrix *m, ptrdiff_t i0, const ptrdiff_t *rows,
                           const ptrdiff_t *columns, const dpcd_tile *t, double *restrict out,
                           int is_float, int bounded)
{
    const dpcd_bounds b = m->bounds;
    ptrdiff_t i, k, n = t->n_rows, p = t->n_columns;
    if (m->c_order && columns && p == 1)
        for (i = 0; i < n; i++)
            out[i] = dpcd_public(dpcd_cell(m->data, (i0 + i) * m->stride + columns[0], is_float), b,
                                 columns[0], bounded);
    else if (m->c_order)
        for (i = 0; i < n; i++) {
            ptrdiff_t row_at = rows ? rows[i] : i0 + i;
            const void *restrict x = dpcd_at(m->data, row_at * m->stride, is_float);
            double *restrict row = out + i * p;
            if (columns)
                for (k = 0; k < p; k++)
                    row[k] =
                        dpcd_public(dpcd_cell(x, columns[k], is_float), b, columns[k], bounded);
            else
                for (k = 0; k < p; k++)
                    row[k] = dpcd_public(dpcd_cell(x, k, is_float), b, k, bounded);
        }
    else
        for (k = 0; k < p; k++) {
            ptrdiff_t j = columns ? columns[k] : k;
            const void *restrict x = dpcd_at(m->data, j * m->stride + (rows ? 0 : i0), is_float);
            if (rows)
                for (i = 0; i < n; i++)
                    out[i * p + k] = dpcd_public(dpcd_cell(x, rows[i], is_float), b, j, bounded);
            else
                for (i = 0; i < n; i++)
                    out[k * n + i] = dpcd_public(dpcd_cell(x, i, is_float), b, j, bounded);
        }
}

DPCD_INLINE void dpcd_add_plain(const dpcd_tile *t, const double *restrict r,
                                double *restrict sums, int is_float, int bounded)
{
    const dpcd_bounds b = t->bounds;
    ptrdiff_t i, k, n = t->n_rows, p = t->n_columns;
    for (i = 0; i < (t->c_order ? n : 0); i++) {
        const void *restrict x = dpcd_at(t->cells, i * t->stride, is_float);
        for (k = 0; k < p; k++)
            sums[k] += r[i] * dpcd_public(dpcd_cell(x, k, is_float), b, k, bounded);
    }
    for (k = 0; k < (t->c_order ? 0 : p); k++) {
        const void *x = dpcd_at(t->cells, k * t->stride, is_float);
        for (i = 0; i < n; i++)
            sums[k] += r[i] * dpcd_public(dpcd_cell(x, i, is_float), b, k, bounded);
    }
}

/* ---- tiles ---------------------------------------------------------------------------------- */

static void dpcd_load(const dpcd_matrix *m, ptrdiff_t i0, const ptrdiff_t *rows,
                      ptrdiff_t n_rows, const ptrdiff_t *columns, ptrdiff_t n_columns,
                      double *scratch, dpcd_tile *t)
{
    int c_order = m->c_order || rows;
    *t = dpcd_tile_of(scratch, c_order ? n_columns : n_rows, n_rows, n_columns, c_order);
    if (!rows && (!columns || (n_columns == 1 && !m->c_order))) {
        ptrdiff_t first = columns ? columns[0] : 0;
        ptrdiff_t at = m->c_order ? i0 * m->stride : first * m->stride + i0;
        t->source_cell = dpcd_size(m->is_float);
        t->source_stride = m->stride * t->source_cell;
        t->source = (const char *)m->data + at * t->source_cell;
        if (!m->bounds.lo || columns || !scratch) {
            t->cells = t->source;
            t->stride = m->stride;
            t->is_float = m->is_float;
            t->bounds = dpcd_bounds_at(m->bounds, first, m->bounds.lo != NULL);
            return;
        }
    }
    DPCD_BY_CELL(m, dpcd_pack, i0, rows, columns, t, scratch);
    if (n_columns == 1) t->c_order = 0; /* one column is contiguous in either order */
}

/* ---- one number a record -------------------------------------------------------------------- */

static void dpcd_weigh(ptrdiff_t n, const double *weights, double *restrict r)
{
    ptrdiff_t i;
    if (weights)
        for (i = 0; i < n; i++) r[i] *= weights[i];
    for (i = 0; i < n; i++) r[i] = dpcd_bounded(r[i]);
}

/* Of a record's derivative in one output; apart is zero when they share their norm. */
DPCD_INLINE double dpcd_length(double r, double square_norm, ptrdiff_t apart)
{
    double length = fabs(r) * (apart ? sqrt(square_norm) : 1.0);
    return r != 0.0 ? length : 0.0; /* whatever the norm */
}

DPCD_INLINE void dpcd_clip_outputs(ptrdiff_t n, ptrdiff_t n_outputs,
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
                double s = dpcd_length(v[k * n + i], norms[k * apart + i], apart);
                largest[i] = s > largest[i] ? s : largest[i];
            }
        for (k = 0; k < n_outputs; k++) /* in units of the largest, whose square may underflow */
            for (i = 0; i < size; i++) {
                double s = dpcd_length(v[k * n + i], norms[k * apart + i], apart);
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

static void dpcd_clip_norms(ptrdiff_t n, ptrdiff_t n_outputs,
                            const double *restrict square_norms, ptrdiff_t apart,
                            double clip, double *restrict r)
{
    ptrdiff_t i;
    if (n_outputs > 1) {
        dpcd_clip_outputs(n, n_outputs, square_norms, apart, clip, r);
        return;
    }
    for (i = 0; i < n; i++) {
        double ratio = clip / (fabs(r[i]) * sqrt(square_norms[i]));
        r[i] *= ratio < 1.0 ? ratio : 1.0;
    }
}

static double dpcd_sum_of_ones(ptrdiff_t n, const double *restrict r, double scale, double limit)
{
    uint64_t bits = 0;
    double plain = 0.0;
    ptrdiff_t i;
    if (limit == 0.0) {
        for (i = 0; i < n; i++) plain += r[i];
        return plain;
    }
    for (i = 0; i < n; i++) bits += dpcd_unit_bits(r[i] * scale, limit);
    return dpcd_sum_of_bits(bits, n);
}

/* ---- pairs of whole numbers of 16 bits, see ``_pairs_body.h`` --------------------------------- */

DPCD_INLINE int32_t dpcd_pair(int16_t first, int16_t second)
{
    return (int32_t)((uint32_t)(uint16_t)second << 16 | (uint16_t)first);
}

/* One that lies in rows of 16 bits. */
DPCD_INLINE int32_t dpcd_load_pair(const int32_t *x)
{
    int32_t pair;
    memcpy(&pair, x, sizeof pair);
    return pair;
}

/* A number below 2^15 as a whole one. */
DPCD_INLINE int16_t dpcd_rounded(float v)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23 */
    return (int16_t)(int32_t)((v + magic) - magic);
}

/* ---- both compilations ---------------------------------------------------------------------- */

#define DPCD_NAME(f) f##_portable
#define DPCD_WIDTH 1
#include "_kernels_body.h"
#undef DPCD_NAME
#undef DPCD_WIDTH

#if DPCD_COMPILES_AVX2
DPCD_AVX2_BEGIN
#define DPCD_NAME(f) f##_avx2
#define DPCD_WIDTH 4
#include "_kernels_body.h"
#undef DPCD_NAME
#undef DPCD_WIDTH
DPCD_AVX2_END
#endif

static const dpcd_kernels *dpcd_choose_kernels(void)
{
#if DPCD_COMPILES_AVX2
    if (dpcd_uses_avx2()) return &dpcd_kernels_avx2;
#endif
    return &dpcd_kernels_portable;
}
#endif
