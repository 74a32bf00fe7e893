/* Kernels over the entries of sparse records: whole passes over columns, or over chosen rows.
 *
 * (a) One place knows the types of values and indices: every pass is compiled for each of them,
 *     and reads the matrix in place.
 * (b) A contribution is the same number as in the dense kernels: what is not stored is zero, and a
 *     zero changes no sum. Sums over columns keep the dense kernels' eight lanes; sums over
 *     records are of integers, in any order.
 * (c) Sums of all columns read rows, a slice of records at a time; those of few read columns.
 */
#ifndef DPCD_SPARSE_H
#define DPCD_SPARSE_H
#include <float.h>
#include <stdint.h>

#include "_kernels.h"

#define DPCD_SLICE 512 /* records that are read at a time, and once more from the cache */
#define DPCD_AHEAD 16   /* entries between the wish for a column's numbers and their use */

#if defined(__GNUC__)
#define DPCD_PREFETCH(address) __builtin_prefetch(address)
#else
#define DPCD_PREFETCH(address) ((void)0)
#endif

typedef struct {
    const void *indptr, *indices, *data;
    int is_float, is_long; /* float32 values, int64 indices; else float64 and int32 */
    const double *lo, *hi; /* public bounds of the columns, which contain zero; or NULL */
} dpcd_sparse;

/* ---- (a) entries --------------------------------------------------------------------------- */

/* pass(..., is_float, is_long) with constants in the place of the matrix' types */
#define DPCD_BY_TYPE(m, pass, ...)              \
    do {                                        \
        if ((m)->is_float && (m)->is_long)      \
            pass(m, __VA_ARGS__, 1, 1);         \
        else if ((m)->is_float)                 \
            pass(m, __VA_ARGS__, 1, 0);         \
        else if ((m)->is_long)                  \
            pass(m, __VA_ARGS__, 0, 1);         \
        else                                    \
            pass(m, __VA_ARGS__, 0, 0);         \
    } while (0)

DPCD_INLINE ptrdiff_t dpcd_integer(const void *array, ptrdiff_t at, int is_long)
{
    return is_long ? (ptrdiff_t)((const int64_t *)array)[at]
                   : (ptrdiff_t)((const int32_t *)array)[at];
}

static inline ptrdiff_t dpcd_line_start(const dpcd_sparse *m, ptrdiff_t line)
{
    return dpcd_integer(m->indptr, line, m->is_long);
}

/* What the values of a column are clipped to: a sum of duplicates may have overflowed. */
DPCD_INLINE double dpcd_least(const dpcd_sparse *m, ptrdiff_t j)
{
    return m->lo && m->lo[j] > -DBL_MAX ? m->lo[j] : -DBL_MAX;
}

DPCD_INLINE double dpcd_most(const dpcd_sparse *m, ptrdiff_t j)
{
    return m->hi && m->hi[j] < DBL_MAX ? m->hi[j] : DBL_MAX;
}

DPCD_INLINE double dpcd_entry(const dpcd_sparse *m, ptrdiff_t at, double least, double most,
                              int is_float)
{
    double x = is_float ? (double)((const float *)m->data)[at] : ((const double *)m->data)[at];
    x = x < most ? x : most; /* sends NaN to most */
    return x > least ? x : least;
}

/* ---- what a matrix is worth ---------------------------------------------------------------- */

#define DPCD_CANONICAL 0
#define DPCD_UNSORTED 1
#define DPCD_BROKEN_POINTERS 2
#define DPCD_OUT_OF_RANGE 3

/* In the type of the positions, without branches: `outside` gets its sign bit from a position that
 * is negative or above `last`, and `falls` counts those that are not above the one before. */
#define DPCD_SCAN(signed_type, unsigned_type, largest)                                            \
    do {                                                                                          \
        const signed_type *where = (const signed_type *)m->indices;                               \
        unsigned_type outside = 0, count = 0;                                                     \
        const unsigned_type last = (unsigned_type)(size - 1 < (largest) ? size - 1 : (largest));  \
        if (end) outside = (unsigned_type)where[0] | (last - (unsigned_type)where[0]);            \
        for (at = 1; at < end; at++) {                                                            \
            outside |= (unsigned_type)where[at] | (last - (unsigned_type)where[at]);              \
            count += (unsigned_type)(where[at] <= where[at - 1]);                                 \
        }                                                                                         \
        if (outside >> (8 * sizeof(unsigned_type) - 1)) return DPCD_OUT_OF_RANGE;                 \
        falls = (ptrdiff_t)count;                                                                 \
    } while (0)

DPCD_INLINE int dpcd_check_of(const dpcd_sparse *m, ptrdiff_t n_lines, ptrdiff_t size,
                              ptrdiff_t n_stored, int is_long_pointer, int is_long)
{
    ptrdiff_t line, at, start, end = 0, falls = 0;
    if (dpcd_integer(m->indptr, 0, is_long_pointer) != 0) return DPCD_BROKEN_POINTERS;
    for (line = 0; line < n_lines; line++) {
        start = end;
        end = dpcd_integer(m->indptr, line + 1, is_long_pointer);
        if (end < start || end > n_stored) return DPCD_BROKEN_POINTERS;
    }
    if (end && size < 1) return DPCD_OUT_OF_RANGE;
    if (is_long)
        DPCD_SCAN(int64_t, uint64_t, INT64_MAX);
    else
        DPCD_SCAN(int32_t, uint32_t, INT32_MAX);
    /* a fall is where a line begins, or the line is unsorted */
    for (line = 1; line < n_lines && falls; line++) {
        start = dpcd_integer(m->indptr, line, is_long_pointer);
        if (start && start < dpcd_integer(m->indptr, line + 1, is_long_pointer))
            falls -= dpcd_integer(m->indices, start, is_long) <=
                     dpcd_integer(m->indices, start - 1, is_long);
    }
    return falls ? DPCD_UNSORTED : DPCD_CANONICAL;
}
#undef DPCD_SCAN

/* Whether positions ascend strictly within [0, size) on every line, or what is wrong. */
static inline int dpcd_check(const dpcd_sparse *m, ptrdiff_t n_lines, ptrdiff_t size,
                             ptrdiff_t n_stored, int is_long_pointer)
{
    if (is_long_pointer && m->is_long) return dpcd_check_of(m, n_lines, size, n_stored, 1, 1);
    if (is_long_pointer) return dpcd_check_of(m, n_lines, size, n_stored, 1, 0);
    if (m->is_long) return dpcd_check_of(m, n_lines, size, n_stored, 0, 1);
    return dpcd_check_of(m, n_lines, size, n_stored, 0, 0);
}

/* ---- (b) sums over columns: margins and norms of records ----------------------------------- */

DPCD_INLINE void dpcd_add_column_of(const dpcd_sparse *m, ptrdiff_t j, double a,
                                    double *restrict margins, int is_float, int is_long)
{
    double least = dpcd_least(m, j), most = dpcd_most(m, j);
    ptrdiff_t at = dpcd_integer(m->indptr, j, is_long);
    ptrdiff_t end = dpcd_integer(m->indptr, j + 1, is_long);
    for (; at < end; at++)
        margins[dpcd_integer(m->indices, at, is_long)] +=
            a * dpcd_entry(m, at, least, most, is_float);
}

/* margins[i] += a X[i, j]: of a single column there is nothing to join. */
static inline void dpcd_add_column(const dpcd_sparse *m, ptrdiff_t j, double a, double *margins)
{
    DPCD_BY_TYPE(m, dpcd_add_column_of, j, a, margins);
}

DPCD_INLINE void dpcd_add_columns_of(const dpcd_sparse *m, ptrdiff_t n_columns,
                                     const ptrdiff_t *columns, const double *restrict v,
                                     int square, double *restrict lanes, int is_float, int is_long)
{
    ptrdiff_t k;
    for (k = 0; k < n_columns; k++) {
        ptrdiff_t j = columns ? columns[k] : k, at = dpcd_integer(m->indptr, j, is_long);
        ptrdiff_t end = dpcd_integer(m->indptr, j + 1, is_long);
        double a = square ? 1.0 / v[j] : v[k], least = dpcd_least(m, j), most = dpcd_most(m, j);
        double *restrict lane = lanes + k % DPCD_LANES;
        if (a == 0.0) continue;
        for (; at < end; at++) {
            double x = dpcd_entry(m, at, least, most, is_float);
            lane[dpcd_integer(m->indices, at, is_long) * DPCD_LANES] += a * (square ? x * x : x);
        }
    }
}

/* lanes[i][k mod 8] += step[k] X[i, columns[k]]; NULL: all columns */
static inline void dpcd_add_columns(const dpcd_sparse *m, ptrdiff_t n_columns,
                                    const ptrdiff_t *columns, const double *step, double *lanes)
{
    DPCD_BY_TYPE(m, dpcd_add_columns_of, n_columns, columns, step, 0, lanes);
}

/* lanes[i][k mod 8] += X[i, j]^2 / smoothness[j], j = columns[k]; NULL: all columns */
static inline void dpcd_add_squares(const dpcd_sparse *m, ptrdiff_t n_columns,
                                    const ptrdiff_t *columns, const double *smoothness,
                                    double *lanes)
{
    DPCD_BY_TYPE(m, dpcd_add_columns_of, n_columns, columns, smoothness, 1, lanes);
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

DPCD_INLINE void dpcd_dot_rows_of(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                  const double *restrict v, int square, double *restrict out,
                                  int is_float, int is_long)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) {
        ptrdiff_t at = dpcd_integer(m->indptr, rows[k], is_long);
        ptrdiff_t end = dpcd_integer(m->indptr, rows[k] + 1, is_long);
        double lanes[DPCD_LANES] = {0};
        for (; at < end; at++) {
            ptrdiff_t j = dpcd_integer(m->indices, at, is_long);
            double x = dpcd_entry(m, at, dpcd_least(m, j), dpcd_most(m, j), is_float);
            lanes[j % DPCD_LANES] += v[j] * (square ? x * x : x);
        }
        out[k] += dpcd_join(lanes);
    }
}

/* out[k] += sum_j v[j] f(X[rows[k], j]), f the identity or the square; X by row. */
static inline void dpcd_dot_rows(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                 const double *v, int square, double *out)
{
    if (square)
        DPCD_BY_TYPE(m, dpcd_dot_rows_of, n, rows, v, 1, out);
    else
        DPCD_BY_TYPE(m, dpcd_dot_rows_of, n, rows, v, 0, out);
}

/* ---- (d) rows of whole numbers of 16 bits, which lie beside the entries that they are of ------ */

DPCD_INLINE void dpcd_whole_entries_of(const dpcd_sparse *m, ptrdiff_t n,
                                       const double *restrict scale,
                                       const double *restrict factors, int16_t *restrict whole,
                                       int is_float, int is_long)
{
    ptrdiff_t i, at = 0, j;
    for (i = 0; i < n; i++)
        for (; at < dpcd_integer(m->indptr, i + 1, is_long); at++) {
            j = dpcd_integer(m->indices, at, is_long);
            double v = dpcd_entry(m, at, dpcd_least(m, j), dpcd_most(m, j), is_float) * scale[j];
            v = factors[i] == 0.0 ? 0.0 : v * factors[i]; /* whatever an infinite row holds */
            whole[at] = (int16_t)((v + DPCD_MAGIC) - DPCD_MAGIC);
        }
}

/* whole[at] = rint(X[i, j] scale[j] factors[i]), entry `at` of the first n rows; see scaled_rows. */
static inline void dpcd_whole_entries(const dpcd_sparse *m, ptrdiff_t n, const double *scale,
                                      const double *factors, int16_t *whole)
{
    DPCD_BY_TYPE(m, dpcd_whole_entries_of, n, scale, factors, whole);
}

DPCD_INLINE void dpcd_whole_rows_of(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n,
                                    const int16_t *restrict whole, const int16_t *restrict v,
                                    ptrdiff_t apart, int32_t *restrict out,
                                    const double *restrict r, double *restrict sums,
                                    int is_float, int is_long)
{
    ptrdiff_t i, at, j;
    (void)is_float;
    for (i = 0; i < n; i++) {
        int32_t first = 0, second = 0, times = r ? (int32_t)r[i] : 0;
        ptrdiff_t end = dpcd_integer(m->indptr, i0 + i + 1, is_long);
        for (at = dpcd_integer(m->indptr, i0 + i, is_long); at < end; at++) {
            j = dpcd_integer(m->indices, at, is_long);
            if (r) {
                sums[j] += times * whole[at];
            } else {
                first += whole[at] * v[j];
                second += whole[at] * v[apart + j];
            }
        }
        if (r) continue;
        out[i] = first;
        out[n + i] = second;
    }
}

/* out[s, i] = sum_j v[s, j] whole[i, j], s = 0 and 1, rows from i0 on; exact, as whole_dot. */
static inline void dpcd_whole_row_dots(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n,
                                       const int16_t *whole, const int16_t *v, ptrdiff_t apart,
                                       int32_t *out)
{
    DPCD_BY_TYPE(m, dpcd_whole_rows_of, i0, n, whole, v, apart, out, NULL, NULL);
}

/* sums[j] += sum_i r[i] whole[i, j], whole numbers r; exact, as whole_sums. */
static inline void dpcd_whole_row_sums(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n,
                                       const int16_t *whole, const double *r, double *sums)
{
    DPCD_BY_TYPE(m, dpcd_whole_rows_of, i0, n, whole, NULL, 0, NULL, r, sums);
}

DPCD_INLINE void dpcd_spread_rows_of(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n, ptrdiff_t p,
                                     double *restrict out, int is_float, int is_long)
{
    ptrdiff_t i, at, j;
    for (at = 0; at < n * p; at++) out[at] = 0.0;
    for (i = 0; i < n; i++)
        for (at = dpcd_integer(m->indptr, i0 + i, is_long);
             at < dpcd_integer(m->indptr, i0 + i + 1, is_long); at++) {
            j = dpcd_integer(m->indices, at, is_long);
            out[i * p + j] = dpcd_entry(m, at, dpcd_least(m, j), dpcd_most(m, j), is_float);
        }
}

/* out[i, j] = X[i0 + i, j], zeros included. */
static inline void dpcd_spread_rows(const dpcd_sparse *m, ptrdiff_t i0, ptrdiff_t n, ptrdiff_t p,
                                    double *out)
{
    DPCD_BY_TYPE(m, dpcd_spread_rows_of, i0, n, p, out);
}

/* ---- (b) sums over records ----------------------------------------------------------------- */

#define DPCD_SPARSE_TERM(at)                                                    \
    (exact ? r[dpcd_integer(m->indices, at, is_long)] *                         \
                 dpcd_entry(m, at, least, most, is_float)                       \
           : dpcd_units(r[dpcd_integer(m->indices, at, is_long)] *              \
                            dpcd_entry(m, at, least, most, is_float) * scale,   \
                        limit))

DPCD_INLINE void dpcd_sum_columns_of(const dpcd_sparse *m, ptrdiff_t n_columns,
                                     const ptrdiff_t *columns, const double *restrict r,
                                     const double *restrict roots, double clip, double limit,
                                     int exact, double *restrict plain,
                                     int64_t *restrict integers, int is_float, int is_long)
{
    ptrdiff_t k;
    for (k = 0; k < n_columns; k++) {
        ptrdiff_t j = columns ? columns[k] : k, at = dpcd_integer(m->indptr, j, is_long);
        ptrdiff_t end = dpcd_integer(m->indptr, j + 1, is_long);
        double least = dpcd_least(m, j), most = dpcd_most(m, j), s = 0.0, t = 0.0;
        double scale = exact ? 1.0 : limit / (clip * roots[j]);
        for (; at + 4 <= end; at += 4) { /* two chains of additions */
            s += DPCD_SPARSE_TERM(at) + DPCD_SPARSE_TERM(at + 1);
            t += DPCD_SPARSE_TERM(at + 2) + DPCD_SPARSE_TERM(at + 3);
        }
        for (; at < end; at++) s += DPCD_SPARSE_TERM(at);
        if (exact)
            plain[k] = s + t;
        else
            integers[k] = (int64_t)(s + t);
    }
}
#undef DPCD_SPARSE_TERM

/* integers[k] = sum_i of r[i] X[i, columns[k]] (NULL: all), in units of clip * roots over limit, of
 * at most limit each; or the plain sums, when limit is zero. */
static inline void dpcd_sum_columns(const dpcd_sparse *m, ptrdiff_t n_columns, const ptrdiff_t *columns,
                             const double *r, const double *roots, double clip, double limit,
                             double *plain, int64_t *integers)
{
    if (limit == 0)
        DPCD_BY_TYPE(m, dpcd_sum_columns_of, n_columns, columns, r, roots, clip, limit, 1, plain,
                     integers);
    else
        DPCD_BY_TYPE(m, dpcd_sum_columns_of, n_columns, columns, r, roots, clip, limit, 0, plain,
                     integers);
}

DPCD_INLINE void dpcd_sum_rows_of(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                  const double *restrict r, const double *restrict scale,
                                  double limit, double *restrict sums, int is_float, int is_long)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) {
        ptrdiff_t at = dpcd_integer(m->indptr, rows[k], is_long);
        ptrdiff_t end = dpcd_integer(m->indptr, rows[k] + 1, is_long);
        for (; at < end; at++) {
            ptrdiff_t j = dpcd_integer(m->indices, at, is_long);
            double v = r[k] * dpcd_entry(m, at, dpcd_least(m, j), dpcd_most(m, j), is_float);
            sums[j] += limit > 0 ? dpcd_units(v * scale[j], limit) : v;
        }
    }
}

/* sums[j] += sum_k r[k] X[rows[k], j]: in clipped integer units, or plain when limit is zero. */
static inline void dpcd_sum_rows(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                 const double *r, const double *scale, double limit, double *sums)
{
    DPCD_BY_TYPE(m, dpcd_sum_rows_of, n, rows, r, scale, limit, sums);
}

/* ---- (b) what a step changes --------------------------------------------------------------- */

DPCD_INLINE void dpcd_change_rows_of(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                                     const double *restrict now, const double *restrict scale,
                                     double limit, double *restrict r, int64_t *restrict sums,
                                     int is_float, int is_long)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++) {
        ptrdiff_t at = dpcd_integer(m->indptr, rows[k], is_long);
        ptrdiff_t end = dpcd_integer(m->indptr, rows[k] + 1, is_long);
        double before = r[rows[k]], after = now[k];
        r[rows[k]] = after;
        for (; at < end; at++) {
            ptrdiff_t j = dpcd_integer(m->indices, at, is_long);
            ptrdiff_t ahead = at + DPCD_AHEAD < end ? at + DPCD_AHEAD : at;
            DPCD_PREFETCH(sums + dpcd_integer(m->indices, ahead, is_long));
            DPCD_PREFETCH(scale + dpcd_integer(m->indices, ahead, is_long));
            double x = dpcd_entry(m, at, dpcd_least(m, j), dpcd_most(m, j), is_float);
            sums[j] += (int64_t)(dpcd_units(after * x * scale[j], limit) -
                                 dpcd_units(before * x * scale[j], limit));
        }
    }
}

/* The derivatives of these records become `now`, and the sums of all columns follow; X by row. */
static inline void dpcd_change_rows(const dpcd_sparse *m, ptrdiff_t n, const ptrdiff_t *rows,
                             const double *now, const double *scale, double limit, double *r,
                             int64_t *sums)
{
    DPCD_BY_TYPE(m, dpcd_change_rows_of, n, rows, now, scale, limit, r, sums);
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

DPCD_INLINE void dpcd_touch_of(const dpcd_sparse *m, ptrdiff_t j, char *restrict marks,
                               ptrdiff_t *restrict touched, ptrdiff_t *n, int is_float, int is_long)
{
    ptrdiff_t at = dpcd_integer(m->indptr, j, is_long);
    ptrdiff_t end = dpcd_integer(m->indptr, j + 1, is_long), count = *n;
    (void)is_float;
    for (; at < end; at++) {
        ptrdiff_t i = dpcd_integer(m->indices, at, is_long);
        touched[count] = i; /* counts unless it is there already */
        count += !marks || !marks[i];
        if (marks) marks[i] = 1;
    }
    *n = count;
}

/* The records with an entry in these columns, each once; returns how many. marks: a zero for every
 * record, and zeros again afterwards; touched: room for one more than all records. */
static inline ptrdiff_t dpcd_touch(const dpcd_sparse *m, ptrdiff_t n_columns,
                                   const ptrdiff_t *columns, char *marks, ptrdiff_t *touched)
{
    ptrdiff_t k, n = 0;
    if (n_columns == 1) { /* once anyway */
        DPCD_BY_TYPE(m, dpcd_touch_of, columns[0], NULL, touched, &n);
        return n;
    }
    for (k = 0; k < n_columns; k++) DPCD_BY_TYPE(m, dpcd_touch_of, columns[k], marks, touched, &n);
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
