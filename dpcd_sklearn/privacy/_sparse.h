/* Kernels over the entries of sparse records, a slice of a column (or of a row) at a time.
 *
 * (a) Entries are copied to scratch that stays in cache as (position, double), clipped to the
 *     column's bounds: one place knows the types of indices and values.
 * (b) A contribution is the same number as in the dense kernels: what is not stored is zero, and a
 *     zero changes no sum. Sums over columns keep the dense kernels' eight lanes.
 */
#ifndef DPCD_SPARSE_H
#define DPCD_SPARSE_H
#include <float.h>
#include <stdint.h>

#include "_kernels.h"

#define DPCD_SLICE 1024

typedef struct {
    const void *indptr, *indices, *data;
    int is_float, is_long; /* float32 values, int64 indices; else float64 and int32 */
    const double *lo, *hi; /* public bounds of the columns, which contain zero; or NULL */
    int by_column;         /* major lines are columns (CSC), else rows (CSR) */
} dpcd_sparse;

static ptrdiff_t dpcd_line_start(const dpcd_sparse *m, ptrdiff_t line)
{
    return m->is_long ? (ptrdiff_t)((const int64_t *)m->indptr)[line]
                      : (ptrdiff_t)((const int32_t *)m->indptr)[line];
}

DPCD_INLINE void dpcd_slice_of(const dpcd_sparse *m, ptrdiff_t line, ptrdiff_t at, ptrdiff_t n,
                               ptrdiff_t *restrict where, double *restrict values, int is_float,
                               int is_long)
{
    ptrdiff_t i, j;
    for (i = 0; i < n; i++)
        where[i] = is_long ? (ptrdiff_t)((const int64_t *)m->indices)[at + i]
                           : (ptrdiff_t)((const int32_t *)m->indices)[at + i];
    for (i = 0; i < n; i++) {
        double x =
            is_float ? (double)((const float *)m->data)[at + i] : ((const double *)m->data)[at + i];
        x = x < DBL_MAX ? x : DBL_MAX; /* a sum of duplicates may have overflowed */
        values[i] = x > -DBL_MAX ? x : -DBL_MAX;
    }
    if (m->lo)
        for (i = 0; i < n; i++) {
            double x = values[i];
            j = m->by_column ? line : where[i];
            x = x < m->hi[j] ? x : m->hi[j];
            values[i] = x > m->lo[j] ? x : m->lo[j];
        }
}

/* Entries at, ..., at + n - 1 of the matrix, which lie on one line; n is at most DPCD_SLICE. */
static void dpcd_slice(const dpcd_sparse *m, ptrdiff_t line, ptrdiff_t at, ptrdiff_t n,
                       ptrdiff_t *where, double *values)
{
    if (m->is_float && m->is_long)
        dpcd_slice_of(m, line, at, n, where, values, 1, 1);
    else if (m->is_float)
        dpcd_slice_of(m, line, at, n, where, values, 1, 0);
    else if (m->is_long)
        dpcd_slice_of(m, line, at, n, where, values, 0, 1);
    else
        dpcd_slice_of(m, line, at, n, where, values, 0, 0);
}

/* Whether positions ascend strictly within [0, size) on every line. */
static int dpcd_is_canonical(const dpcd_sparse *m, ptrdiff_t n_lines, ptrdiff_t size)
{
    ptrdiff_t line, at, last, where;
    for (line = 0; line < n_lines; line++) {
        last = -1;
        for (at = dpcd_line_start(m, line); at < dpcd_line_start(m, line + 1); at++) {
            where = m->is_long ? (ptrdiff_t)((const int64_t *)m->indices)[at]
                               : (ptrdiff_t)((const int32_t *)m->indices)[at];
            if (where <= last || where >= size) return 0;
            last = where;
        }
    }
    return 1;
}

/* sum_i of r[i] values[i]: clipped integer units, or plain when limit is zero. */
static double dpcd_slice_sum(ptrdiff_t n, const double *restrict r, const double *restrict values,
                             double scale, double limit)
{
    ptrdiff_t i, l;
    double s[DPCD_LANES] = {0};
    if (limit > 0) {
        for (i = 0; i + DPCD_LANES <= n; i += DPCD_LANES)
            for (l = 0; l < DPCD_LANES; l++)
                s[l] += dpcd_units(r[i + l] * values[i + l] * scale, limit);
        for (l = 0; i < n; i++, l++) s[l] += dpcd_units(r[i] * values[i] * scale, limit);
    } else {
        for (i = 0; i < n; i++) s[i % DPCD_LANES] += r[i] * values[i];
    }
    return dpcd_join(s);
}

/* out[i] = v[where[i]] */
static void dpcd_gather_at(ptrdiff_t n, const ptrdiff_t *restrict where, const double *restrict v,
                           double *restrict out)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) out[i] = v[where[i]];
}

/* lanes[where[i]][lane] += a f(values[i]), f the identity or the square. */
static void dpcd_scatter_lane(ptrdiff_t n, const ptrdiff_t *restrict where,
                              const double *restrict values, double a, int square, ptrdiff_t lane,
                              double *restrict lanes)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++)
        lanes[where[i] * DPCD_LANES + lane] +=
            a * (square ? values[i] * values[i] : values[i]);
}

/* out[i] += the joined lanes of row i, which become zero. */
static void dpcd_join_lanes(ptrdiff_t n, double *restrict lanes, double *restrict out)
{
    ptrdiff_t i, l;
    for (i = 0; i < n; i++) {
        out[i] += dpcd_join(lanes + i * DPCD_LANES);
        for (l = 0; l < DPCD_LANES; l++) lanes[i * DPCD_LANES + l] = 0.0;
    }
}

/* lanes[where[k] mod 8] += v[where[k]] f(values[k]), f the identity or the square. */
static void dpcd_slice_lanes(ptrdiff_t n, const ptrdiff_t *restrict where,
                             const double *restrict values, const double *restrict v, int square,
                             double *restrict lanes)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++)
        lanes[where[k] % DPCD_LANES] +=
            v[where[k]] * (square ? values[k] * values[k] : values[k]);
}

/* sums[where[k]] += r values[k]: in clipped integer units, or plain when limit is zero. */
static void dpcd_slice_add(ptrdiff_t n, const ptrdiff_t *restrict where,
                           const double *restrict values, double r, const double *restrict scale,
                           double limit, double *restrict sums)
{
    ptrdiff_t k;
    if (limit > 0)
        for (k = 0; k < n; k++)
            sums[where[k]] += dpcd_units(r * values[k] * scale[where[k]], limit);
    else
        for (k = 0; k < n; k++) sums[where[k]] += r * values[k];
}

/* sums[where[k]] += how the units of one record change when its derivative goes from r to s. */
static void dpcd_slice_change(ptrdiff_t n, const ptrdiff_t *restrict where,
                              const double *restrict values, double r, double s,
                              const double *restrict scale, double limit, double *restrict sums)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) {
        double unit = scale[where[k]];
        sums[where[k]] += dpcd_units(s * values[k] * unit, limit) -
                          dpcd_units(r * values[k] * unit, limit);
    }
}

#endif
