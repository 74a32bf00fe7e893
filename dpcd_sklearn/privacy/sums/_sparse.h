/* Kernels over the entries of sparse records: whole passes over columns, or over chosen rows.
 *
 * (a) The matrix is read in place. Three functions know the types of values and indices; compilers
 *     ask once a loop, and entries are waited for much longer than that takes.
 * (b) A contribution is the same number as in the dense kernels: what is not stored is zero, and a
 *     zero changes no sum. Sums over columns keep the dense kernels' eight lanes; sums over
 *     records are of integers, in any order.
 * (c) Sums of all columns read rows, a slice of records at a time; those of few read columns.
 * (d) Whole numbers of 16 bits, of rows in units of their length, lie beside the entries.
 */
#ifndef DPCD_SPARSE_H
#define DPCD_SPARSE_H
#include <float.h>
#include <stdint.h>

#include "_kernels.h"

#define DPCD_SLICE 512 /* records that are read at a time, and once more from the cache */
#define DPCD_AHEAD 16   /* entries between the wish for a column's numbers and their use */

typedef struct {
    const void *indptr, *indices, *data;
    int is_float, is_long; /* float32 values, int64 indices; else float64 and int32 */
    const double *lo, *hi; /* public bounds of the columns, which contain zero; or NULL */
} dpcd_sparse;

/* ---- (a) entries --------------------------------------------------------------------------- */

DPCD_INLINE ptrdiff_t dpcd_integer(const void *array, ptrdiff_t at, int is_long)
{
    return is_long ? (ptrdiff_t)((const int64_t *)array)[at]
                   : (ptrdiff_t)((const int32_t *)array)[at];
}

DPCD_INLINE ptrdiff_t dpcd_line_start(const dpcd_sparse *m, ptrdiff_t line)
{
    return dpcd_integer(m->indptr, line, m->is_long);
}

/* The column of an entry of a row, or the row of one of a column. */
DPCD_INLINE ptrdiff_t dpcd_where(const dpcd_sparse *m, ptrdiff_t at)
{
    return dpcd_integer(m->indices, at, m->is_long);
}

/* An entry of column j, clipped to what is finite, too: a sum of duplicates may have overflowed. */
DPCD_INLINE double dpcd_entry(const dpcd_sparse *m, ptrdiff_t at, ptrdiff_t j)
{
    double x = m->is_float ? (double)((const float *)m->data)[at] : ((const double *)m->data)[at];
    double least = m->lo && m->lo[j] > -DBL_MAX ? m->lo[j] : -DBL_MAX;
    double most = m->hi && m->hi[j] < DBL_MAX ? m->hi[j] : DBL_MAX;
    x = x < most ? x : most; /* sends NaN to most */
    return x > least ? x : least;
}

/* r times it, in clipped integer units, or plain when limit is zero. */
DPCD_INLINE double dpcd_term(const dpcd_sparse *m, ptrdiff_t at, ptrdiff_t j, double r,
                             double scale, double limit)
{
    double v = r * dpcd_entry(m, at, j);
    return limit > 0 ? dpcd_units(v * scale, limit) : v;
}

/* ---- (b) sums over columns: margins and norms of records ----------------------------------- */

/* margins[i] += a X[i, j]: of a single column there is nothing to join. */
static inline void dpcd_add_column(const dpcd_sparse *m, ptrdiff_t j, double a,
                                   double *restrict margins)
{
    ptrdiff_t at = dpcd_line_start(m, j), end = dpcd_line_start(m, j + 1);
    for (; at < end; at++) margins[dpcd_where(m, at)] += a * dpcd_entry(m, at, j);
}

/* lanes[i][k mod 8] += v[k] X[i, j], j = columns[k] (NULL: all columns), or X[i, j]^2 / v[j] */
static inline void dpcd_add_columns(const dpcd_sparse *m, ptrdiff_t n_columns,
                                    const ptrdiff_t *columns, const double *restrict v,
                                    int square, double *restrict lanes)
{
    ptrdiff_t k;
    for (k = 0; k < n_columns; k++) {
        ptrdiff_t j = columns ? columns[k] : k;
        ptrdiff_t at = dpcd_line_start(m, j), end = dpcd_line_start(m, j + 1);
        double a = square ? 1.0 / v[j] : v[k];
        double *restrict lane = lanes + k % DPCD_LANES;
        if (a == 0.0) continue;
        for (; at < end; at++) {
            double x = dpcd_entry(m, at, j);
            lane[dpcd_where(m, at) * DPCD_LANES] += a * (square ? x * x : x);
        }
    }
}

/* out[i] += the joined lanes of record i, which become zero; i = where[k] for k < n (NULL: k). */
static inline void dpcd_join_lanes(ptrdiff_t n, const ptrdiff_t *where, double *restrict lanes,
                                   double *restrict out)
{
    ptrdiff_t k, l;
    for (k = 0; k < n; k++) {
        ptrdiff_t i = where ? where[k] : k;
        out[i] += dpcd_join(lanes + i * DPCD_LANES);
        for (l = 0; l < DPCD_LANES; l++) lanes[i * DPCD_LANES + l] = 0.0;
    }
}

/* out[k] += sum_j v[j] f(X[rows[k], j]), f the identity or the square; X by row. */
static inline void dpcd_dot_rows(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                 const double *restrict v, int square, double *restrict out)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) {
        ptrdiff_t at = dpcd_line_start(m, rows[k]), end = dpcd_line_start(m, rows[k] + 1);
        double lanes[DPCD_LANES] = {0};
        for (; at < end; at++) {
            ptrdiff_t j = dpcd_where(m, at);
            double x = dpcd_entry(m, at, j);
            lanes[j % DPCD_LANES] += v[j] * (square ? x * x : x);
        }
        out[k] += dpcd_join(lanes);
    }
}

/* out[i, j] = X[i0 + i, j], zeros included. */
static inline void dpcd_spread_rows(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n, ptrdiff_t p,
                                    double *restrict out)
{
    ptrdiff_t i, at;
    for (at = 0; at < n * p; at++) out[at] = 0.0;
    for (i = 0; i < n; i++)
        for (at = dpcd_line_start(m, i0 + i); at < dpcd_line_start(m, i0 + i + 1); at++)
            out[i * p + dpcd_where(m, at)] = dpcd_entry(m, at, dpcd_where(m, at));
}

/* ---- (d) rows of whole numbers ------------------------------------------------------------- */

/* whole[at] = rint(X[i, j] scale[j] factors[i]), entry `at` of the first n rows: see scaled_rows */
static inline void dpcd_whole_entries(const dpcd_sparse *m, ptrdiff_t n,
                                      const double *restrict scale,
                                      const double *restrict factors, int16_t *restrict whole)
{
    ptrdiff_t i, at = 0;
    for (i = 0; i < n; i++)
        for (; at < dpcd_line_start(m, i + 1); at++) {
            ptrdiff_t j = dpcd_where(m, at);
            double v = dpcd_entry(m, at, j) * scale[j];
            v = factors[i] == 0.0 ? 0.0 : v * factors[i]; /* whatever an infinite row holds */
            whole[at] = (int16_t)((v + DPCD_MAGIC) - DPCD_MAGIC);
        }
}

/* out[s, i] = sum_j v[s, j] whole[i, j], s = 0 and 1, rows from i0 on; exact, as whole_dot. */
static inline void dpcd_whole_row_dots(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n,
                                       const int16_t *restrict whole, const int16_t *restrict v,
                                       ptrdiff_t apart, int32_t *restrict out)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        ptrdiff_t at = dpcd_line_start(m, i0 + i), end = dpcd_line_start(m, i0 + i + 1);
        int32_t first = 0, second = 0;
        for (; at < end; at++) {
            ptrdiff_t j = dpcd_where(m, at);
            first += whole[at] * v[j];
            second += whole[at] * v[apart + j];
        }
        out[i] = first;
        out[n + i] = second;
    }
}

/* sums[j] += sum_i r[i] whole[i, j], whole numbers r; exact, as whole_sums. */
static inline void dpcd_whole_row_sums(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n,
                                       const int16_t *restrict whole, const double *restrict r,
                                       double *restrict sums)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        ptrdiff_t at = dpcd_line_start(m, i0 + i), end = dpcd_line_start(m, i0 + i + 1);
        int32_t times = (int32_t)r[i];
        for (; at < end; at++) sums[dpcd_where(m, at)] += times * whole[at];
    }
}

/* ---- (b) sums over records ----------------------------------------------------------------- */

/* sums[k] = sum_i of r[i] X[i, columns[k]] (NULL: all), in integer units of clip * roots over limit,
 * of at most limit each; or the plain sums, when limit is zero. */
static inline void dpcd_sum_columns(const dpcd_sparse *m, ptrdiff_t n_columns,
                                    const ptrdiff_t *columns, const double *restrict r,
                                    const double *restrict roots, double clip, double limit,
                                    double *restrict sums)
{
    ptrdiff_t k, q;
    for (k = 0; k < n_columns; k++) {
        ptrdiff_t j = columns ? columns[k] : k;
        ptrdiff_t at = dpcd_line_start(m, j), end = dpcd_line_start(m, j + 1);
        double s[4] = {0}, scale = limit / (clip * roots[j]);
        for (; at + 4 <= end; at += 4) /* chains of additions */
            for (q = 0; q < 4; q++)
                s[q] += dpcd_term(m, at + q, j, r[dpcd_where(m, at + q)], scale, limit);
        for (; at < end; at++) s[0] += dpcd_term(m, at, j, r[dpcd_where(m, at)], scale, limit);
        sums[k] = (s[0] + s[1]) + (s[2] + s[3]);
    }
}

/* sums[j] += sum_k r[k] X[rows[k], j]: in clipped integer units, or plain when limit is zero. */
static inline void dpcd_sum_rows(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                 const double *restrict r, const double *restrict scale,
                                 double limit, double *restrict sums)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) {
        ptrdiff_t at = dpcd_line_start(m, rows[k]), end = dpcd_line_start(m, rows[k] + 1);
        for (; at < end; at++) {
            ptrdiff_t j = dpcd_where(m, at);
            sums[j] += dpcd_term(m, at, j, r[k], scale[j], limit);
        }
    }
}

/* ---- (b) what a step changes --------------------------------------------------------------- */

/* The derivatives of these records become `now`, and the sums of all columns follow; X by row. */
static inline void dpcd_change_rows(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                    const double *restrict now, const double *restrict scale,
                                    double limit, double *restrict r, double *restrict sums)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) {
        ptrdiff_t at = dpcd_line_start(m, rows[k]), end = dpcd_line_start(m, rows[k] + 1);
        double before = r[rows[k]], after = now[k];
        r[rows[k]] = after;
        for (; at < end; at++) {
            ptrdiff_t j = dpcd_where(m, at);
            ptrdiff_t ahead = dpcd_where(m, at + DPCD_AHEAD < end ? at + DPCD_AHEAD : at);
            DPCD_PREFETCH(sums + ahead);
            DPCD_PREFETCH(scale + ahead);
            sums[j] += dpcd_term(m, at, j, after, scale[j], limit) -
                       dpcd_term(m, at, j, before, scale[j], limit);
        }
    }
}

/* ---- records in some columns --------------------------------------------------------------- */

/* Entries of these lines; some number above `most` when there are more. */
static inline ptrdiff_t dpcd_count(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *lines,
                                   ptrdiff_t most)
{
    ptrdiff_t k, count = 0;
    for (k = 0; k < n && count <= most; k++)
        count += dpcd_line_start(m, lines[k] + 1) - dpcd_line_start(m, lines[k]);
    return count;
}

/* The records with an entry in these columns, each once; returns how many. marks: a zero for every
 * record, and zeros again afterwards; touched: room for one more than all records. */
static inline ptrdiff_t dpcd_touch(const dpcd_sparse *m, ptrdiff_t n_columns,
                                   const ptrdiff_t *columns, char *restrict marks,
                                   ptrdiff_t *restrict touched)
{
    ptrdiff_t k, n = 0;
    for (k = 0; k < n_columns; k++) {
        ptrdiff_t at = dpcd_line_start(m, columns[k]), end = dpcd_line_start(m, columns[k] + 1);
        for (; at < end; at++) {
            touched[n] = dpcd_where(m, at); /* counts unless it is there already */
            n += !marks[touched[n]];
            marks[dpcd_where(m, at)] = 1;
        }
    }
    for (k = 0; k < n; k++) marks[touched[k]] = 0;
    return n;
}

/* out[k] = v[where[k]] */
static inline void dpcd_gather_at(ptrdiff_t n, const ptrdiff_t *restrict where,
                                  const double *restrict v, double *restrict out)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) out[k] = v[where[k]];
}

#endif
