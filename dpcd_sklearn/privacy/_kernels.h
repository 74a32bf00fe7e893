/* Kernels over tiles of records: margins, row norms, and sums of clipped integers.
 *
 * (a) A tile is a block of rows (and a subset of columns) as doubles, row-major or column-major as
 *     the matrix is. Double matrices without bounds are used in place, others are converted,
 *     clipped to the stated bounds and centred while they are copied to a scratch that stays in
 *     cache.
 * (b) Every sum over columns runs in eight lanes by position (k mod 8) joined in one fixed order,
 *     without fused multiply-add, in both layouts: a record's contribution is the same number
 *     whatever the layout, alignment and block it lies in.
 * (c) A contribution is rint(clip(v)) in integer units, so sums over records are exact in doubles
 *     and do not depend on their order. Adding and subtracting 1.5 * 2^52 rounds to nearest.
 */
#ifndef DPCD_KERNELS_H
#define DPCD_KERNELS_H
#include <math.h>
#include <stddef.h>

#include "_avx2.h"

#define DPCD_LANES 8
#define DPCD_TILE_ROWS 1024
#define DPCD_TILE_CELLS 8192 /* 64 KiB of doubles */

typedef struct {
    const void *data;
    int is_float; /* float32, else float64 */
    int c_order;
    ptrdiff_t stride; /* elements between rows (C order) or between columns (F order) */
    ptrdiff_t n_columns;
    const double *lo, *hi, *center; /* public bounds of the columns, or NULL */
} dpcd_matrix;

typedef struct {
    const double *cells;
    ptrdiff_t stride, n_rows, n_columns;
    int c_order;
} dpcd_tile;

/* ---- (a) tiles --------------------------------------------------------------------------- */

DPCD_INLINE double dpcd_cell(const dpcd_matrix *m, ptrdiff_t i, ptrdiff_t j, int is_float,
                             int bounded)
{
    ptrdiff_t at = m->c_order ? i * m->stride + j : j * m->stride + i;
    double x = is_float ? (double)((const float *)m->data)[at] : ((const double *)m->data)[at];
    if (bounded) {
        x = x < m->hi[j] ? x : m->hi[j];
        x = x > m->lo[j] ? x : m->lo[j];
        x -= m->center[j];
    }
    return x;
}

DPCD_INLINE void dpcd_pack(const dpcd_matrix *m, ptrdiff_t i0, const ptrdiff_t *columns,
                           const dpcd_tile *t, double *restrict out, int is_float, int bounded)
{
    ptrdiff_t i, k;
    if (m->c_order)
        for (i = 0; i < t->n_rows; i++)
            for (k = 0; k < t->n_columns; k++)
                out[i * t->n_columns + k] =
                    dpcd_cell(m, i0 + i, columns ? columns[k] : k, is_float, bounded);
    else
        for (k = 0; k < t->n_columns; k++)
            for (i = 0; i < t->n_rows; i++)
                out[k * t->n_rows + i] =
                    dpcd_cell(m, i0 + i, columns ? columns[k] : k, is_float, bounded);
}

/* Rows i0 .. i0 + n_rows - 1 of the given columns (NULL: all). scratch: n_rows * n_columns. */
static void dpcd_load(const dpcd_matrix *m, ptrdiff_t i0, ptrdiff_t n_rows,
                      const ptrdiff_t *columns, ptrdiff_t n_columns, double *scratch, dpcd_tile *t)
{
    t->n_rows = n_rows;
    t->n_columns = n_columns;
    t->c_order = m->c_order;
    if (!m->is_float && !m->lo && (!columns || (n_columns == 1 && !m->c_order))) {
        const double *data = (const double *)m->data;
        ptrdiff_t first = columns ? columns[0] : 0;
        t->cells = m->c_order ? data + i0 * m->stride : data + first * m->stride + i0;
        t->stride = m->stride;
        return;
    }
    if (m->is_float && m->lo)
        dpcd_pack(m, i0, columns, t, scratch, 1, 1);
    else if (m->is_float)
        dpcd_pack(m, i0, columns, t, scratch, 1, 0);
    else if (m->lo)
        dpcd_pack(m, i0, columns, t, scratch, 0, 1);
    else
        dpcd_pack(m, i0, columns, t, scratch, 0, 0);
    t->cells = scratch;
    t->stride = m->c_order ? n_columns : n_rows;
    if (n_columns == 1) { /* one column is contiguous in either order */
        t->c_order = 0;
        t->stride = n_rows;
    }
}

/* The given rows, all columns, packed by rows. scratch: n_rows * m->n_columns. */
static void dpcd_gather(const dpcd_matrix *m, const ptrdiff_t *rows, ptrdiff_t n_rows,
                        double *scratch, dpcd_tile *t)
{
    ptrdiff_t i, k;
    t->n_rows = n_rows;
    t->n_columns = t->stride = m->n_columns;
    t->c_order = 1;
    t->cells = scratch;
    for (i = 0; i < n_rows; i++)
        for (k = 0; k < m->n_columns; k++)
            scratch[i * t->stride + k] = dpcd_cell(m, rows[i], k, m->is_float, m->lo != NULL);
}

/* ---- (b) sums over columns ----------------------------------------------------------------- */

DPCD_INLINE double dpcd_join(const double *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* out[i] += sum_k v[k] f(X[i, k]), f the identity or the square. */
DPCD_INLINE void dpcd_rows_dot(const dpcd_tile *t, const double *restrict v, double *restrict out,
                               int square)
{
    ptrdiff_t i, k, l, n = t->n_rows, p = t->n_columns;
    if (t->c_order) {
        for (i = 0; i < n; i++) {
            const double *restrict x = t->cells + i * t->stride;
            double s[DPCD_LANES] = {0};
            for (k = 0; k + DPCD_LANES <= p; k += DPCD_LANES)
                for (l = 0; l < DPCD_LANES; l++)
                    s[l] += v[k + l] * (square ? x[k + l] * x[k + l] : x[k + l]);
            for (l = 0; k < p; k++, l++) s[l] += v[k] * (square ? x[k] * x[k] : x[k]);
            out[i] += dpcd_join(s);
        }
    } else {
        double lanes[DPCD_LANES][DPCD_TILE_ROWS];
        ptrdiff_t used = p < DPCD_LANES ? p : DPCD_LANES;
        for (l = 0; l < used; l++) {
            double *restrict s = lanes[l];
            for (i = 0; i < n; i++) s[i] = 0.0;
            for (k = l; k < p; k += DPCD_LANES) {
                const double *restrict x = t->cells + k * t->stride;
                double vk = v[k];
                for (i = 0; i < n; i++) s[i] += vk * (square ? x[i] * x[i] : x[i]);
            }
        }
        if (used == DPCD_LANES)
            for (i = 0; i < n; i++)
                out[i] += ((lanes[0][i] + lanes[4][i]) + (lanes[2][i] + lanes[6][i])) +
                          ((lanes[1][i] + lanes[5][i]) + (lanes[3][i] + lanes[7][i]));
        else
            for (i = 0; i < n; i++) {
                double s[DPCD_LANES] = {0};
                for (l = 0; l < used; l++) s[l] = lanes[l][i];
                out[i] += dpcd_join(s);
            }
    }
}

static void dpcd_margins(const dpcd_tile *t, const double *step, double *margins)
{
    dpcd_rows_dot(t, step, margins, 0);
}

static void dpcd_square_norms(const dpcd_tile *t, const double *weights, double *norms)
{
    dpcd_rows_dot(t, weights, norms, 1);
}

/* ---- one record's derivative ---------------------------------------------------------------- */

/* r[i] *= weights[i], then bounded: NaN and infinity become 1e90 before any clipping. */
static void dpcd_weigh(ptrdiff_t n, const double *weights, double *restrict r)
{
    ptrdiff_t i;
    if (weights)
        for (i = 0; i < n; i++) r[i] *= weights[i];
    for (i = 0; i < n; i++) {
        double v = r[i] < 1e90 ? r[i] : 1e90;
        r[i] = v > -1e90 ? v : -1e90;
    }
}

/* r[i] *= min(1, clip / (|r[i]| sqrt(norms[i]))): the record's vector has norm at most clip. */
static void dpcd_clip_norms(ptrdiff_t n, const double *restrict square_norms, double clip,
                            double *restrict r)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        double ratio = clip / (fabs(r[i]) * sqrt(square_norms[i]));
        r[i] *= ratio < 1.0 ? ratio : 1.0;
    }
}

/* ---- (c) sums over records ------------------------------------------------------------------- */

/* limit is an integer, so clipping before rounding equals clamping after it. */
DPCD_INLINE double dpcd_units(double v, double limit)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    v = v < limit ? v : limit;               /* sends NaN to limit */
    v = v > -limit ? v : -limit;
    return (v + magic) - magic;
}

DPCD_INLINE void dpcd_sums(const dpcd_tile *t, const double *restrict r,
                           const double *restrict scale, double limit, double *restrict sums,
                           int exact)
{
#define DPCD_TERM(ri, x, sk) (exact ? (ri) * (x) : dpcd_units((ri) * (x) * (sk), limit))
    ptrdiff_t i, k, l, n = t->n_rows, p = t->n_columns;
    if (t->c_order) {
        for (i = 0; i + 4 <= n; i += 4) {
            const double *restrict x0 = t->cells + i * t->stride, *restrict x1 = x0 + t->stride;
            const double *restrict x2 = x1 + t->stride, *restrict x3 = x2 + t->stride;
            double r0 = r[i], r1 = r[i + 1], r2 = r[i + 2], r3 = r[i + 3];
            for (k = 0; k < p; k++)
                sums[k] += (DPCD_TERM(r0, x0[k], scale[k]) + DPCD_TERM(r1, x1[k], scale[k])) +
                           (DPCD_TERM(r2, x2[k], scale[k]) + DPCD_TERM(r3, x3[k], scale[k]));
        }
        for (; i < n; i++) {
            const double *restrict x = t->cells + i * t->stride;
            for (k = 0; k < p; k++) sums[k] += DPCD_TERM(r[i], x[k], scale[k]);
        }
    } else {
        for (k = 0; k < p; k++) {
            const double *restrict x = t->cells + k * t->stride;
            double s[2 * DPCD_LANES] = {0}, sk = exact ? 1.0 : scale[k];
            for (i = 0; i + 2 * DPCD_LANES <= n; i += 2 * DPCD_LANES)
                for (l = 0; l < 2 * DPCD_LANES; l++) s[l] += DPCD_TERM(r[i + l], x[i + l], sk);
            for (l = 0; i < n; i++, l++) s[l] += DPCD_TERM(r[i], x[i], sk);
            sums[k] += dpcd_join(s) + dpcd_join(s + DPCD_LANES);
        }
    }
#undef DPCD_TERM
}

/* sums[k] += sum_i rint(clip(r[i] X[i, k] scale[k])) in integer units of at most limit each. */
static void dpcd_clipped_sums(const dpcd_tile *t, const double *r, const double *scale,
                              double limit, double *sums)
{
    dpcd_sums(t, r, scale, limit, sums, 0);
}

/* sums[k] += sum_i r[i] X[i, k]: for epsilon = inf only. */
static void dpcd_plain_sums(const dpcd_tile *t, const double *r, double *sums)
{
    dpcd_sums(t, r, NULL, 0.0, sums, 1);
}

/* The same two sums for the intercept's constant column of ones. */
static double dpcd_clipped_sum_of_ones(ptrdiff_t n, const double *restrict r, double scale,
                                       double limit)
{
    double s = 0.0;
    ptrdiff_t i;
    for (i = 0; i < n; i++) s += dpcd_units(r[i] * scale, limit);
    return s;
}

static double dpcd_plain_sum_of_ones(ptrdiff_t n, const double *restrict r)
{
    double s = 0.0;
    ptrdiff_t i;
    for (i = 0; i < n; i++) s += r[i];
    return s;
}

#endif
