/* Kernels over tiles of dense records: margins, row norms, and sums of clipped integers.
 *
 * (a) A tile is a block of rows (and a subset of columns), row-major or column-major as the matrix
 *     is, read in place. Only subsets of columns of row-major matrices, sampled rows and, where
 *     several outputs read them, cells within stated bounds are copied, to a scratch of doubles
 *     that stays in cache.
 * (b) Every sum over columns runs in eight lanes by position (k mod 8) joined in one fixed order,
 *     without fused multiply-add, in both layouts: a record's contribution is the same number
 *     whatever the layout, alignment and block it lies in.
 * (c) A contribution is rint(clip(v)) in integer units, so sums over records are exact in integers
 *     and do not depend on their order.
 * (d) While a tile is summed the next one is asked of the memory: what is read once is read at the
 *     speed of the memory only if the requests never pause.
 * Those that hold vectors are compiled twice (``_avx2.h``), both give the same bits, and
 * ``_kernels.pyx`` chooses. The portable ones are plain C, the same on all processors.
 * Which records are rows of 16 bits instead stands in ``proofs/README.md``.
 */
#ifndef DPCD_KERNELS_H
#define DPCD_KERNELS_H
#include <stddef.h>
#include <stdint.h>

#include "_avx2.h"

#if defined(__GNUC__)
/* Into the second cache: the tile that comes next must not push out the one that is summed. */
#define DPCD_PREFETCH(x) __builtin_prefetch((const void *)(x), 0, 2)
#else
#define DPCD_PREFETCH(x) ((void)0)
#endif

#define DPCD_LANES 8
#define DPCD_LONG_ROWS 16384 /* of a tile that is read once, column by column */
#define DPCD_LONG_AHEAD 64
#define DPCD_CELLS_A_THREAD 131072

/* Public bounds of columns, to which cells are clipped before the centre is taken off; or NULL. */
typedef struct {
    const double *lo, *hi, *center;
} dpcd_bounds;

typedef struct {
    const void *data;
    int is_float; /* float32, else float64 */
    int c_order;
    ptrdiff_t stride; /* elements between rows (C order) or between columns (F order) */
    ptrdiff_t n_columns;
    dpcd_bounds bounds;
} dpcd_matrix;

/* `bounds`: those of cells that are read in place, none of copies, which are clipped already.
 * `source`: where the cells lie in memory, from which the next tile's follow (NULL: unknown), with
 * the bytes between its rows (C order) or columns (F order), and of a cell. */
typedef struct {
    const void *cells;
    ptrdiff_t stride, n_rows, n_columns;
    int c_order, is_float;
    dpcd_bounds bounds;
    const char *source;
    ptrdiff_t source_stride, source_cell;
} dpcd_tile;

/* How many passes over a tile there are, and how its rows are read again. */
enum { DPCD_READ_ONCE = 1, DPCD_READ_AGAIN = 2 };

typedef struct {
    /* Rows i0 .. i0 + n_rows - 1, or those given, which are packed by rows, of the given columns
     * (NULL: all); scratch: n_rows * n_columns, or NULL where all cells of rows are read in place,
     * clipped by each that reads them. */
    void (*load)(const dpcd_matrix *m, ptrdiff_t i0, const ptrdiff_t *rows, ptrdiff_t n_rows,
                 const ptrdiff_t *columns, ptrdiff_t n_columns, double *scratch, dpcd_tile *tile);
    /* out[i] += sum_k v[k] f(X[i, k]), f the identity or the square.
     * next_rows: how many rows further on the next tile begins, half of which is asked for here
     * (in C order; 0 for none). */
    void (*rows_dot)(const dpcd_tile *tile, const double *v, int square, ptrdiff_t next_rows,
                     double *out);
    /* out[i, k] = X[i, k] scale[k] factors[i], rows `apart` numbers from each other; rounded to an
     * integer if `magic` is DPCD_MAGIC, not if it is zero; or in 16 bits, if there is `whole`. The
     * other half of the next tile is asked for (in C order). A factor of zero gives zeros, whatever
     * the row. */
    void (*scaled_rows)(const dpcd_tile *tile, const double *scale, const double *factors,
                        double magic, ptrdiff_t next_rows, double *out, int16_t *whole,
                        ptrdiff_t apart);
    /* r[i] *= weights[i] (NULL: 1), then bounded: NaN and infinity become 1e60 before any clip. */
    void (*weigh)(ptrdiff_t n, const double *weights, double *r);
    /* r[i] *= min(1, clip / (|r[i]| sqrt(norms[i]))): a record's vector has norm at most clip. Of
     * several outputs it is one vector, of squared norm sum_k r[k n + i]^2 norms[k apart + i]. */
    void (*clip_norms)(ptrdiff_t n, ptrdiff_t n_outputs, const double *square_norms,
                       ptrdiff_t apart, double clip, double *r);
    /* sums[k] += sum_i rint(clip(r[i] X[i, k] scale[k])), units of at most limit < 2^50 each; or
     * plain sum_i r[i] X[i, k], if the limit is zero: for epsilon = inf only.
     * next_rows: as above, but half (C order) or all of the next tile is asked for. */
    void (*sums)(const dpcd_tile *tile, const double *r, const double *scale, double limit,
                 ptrdiff_t next_rows, int half, double *sums);
    /* The clipped sum of a tile of one contiguous column, of r[i] that weigh has not seen. */
    double (*clipped_column)(const dpcd_tile *tile, const double *r, const double *weights,
                             double scale, double limit, ptrdiff_t next_rows);
    /* The sum, clipped or plain, of the intercept's constant column of ones. */
    double (*sum_of_ones)(ptrdiff_t n, const double *r, double scale, double limit);
    /* totals[j, k] += sum_i q[i, j] q[i, k], exactly, for k >= j (and some k < j), where q[i] is
     * rint(factors[i] rows[i]), whose squares add up to less than 2^31. Rows of 16 bits have zeros
     * from n_columns to row_apart, and rows of the totals lie `dpcd_pairs_apart` of it apart. room:
     * pairs of two rows, as many for each, of which the last are zeros. */
    void (*add_products)(const int16_t *rows, ptrdiff_t n_rows, ptrdiff_t n_columns,
                         ptrdiff_t row_apart, const double *factors, int32_t *room,
                         int64_t *totals);
    /* out[i] = |T rows[i]|^2, of such rows and rows of zeros above a lower triangle, T, the sum of
     * some of such numbers: pair t of row j, at [t, j] of each, has the entries of columns 2 t and
     * 2 t + 1, and row j counts units[j] times. Products of their rows and rows are below 2^31.
     * Here and below zeros fill a row to half a block, and vectors may reach into the next one. */
    void (*image_norms)(const int16_t *rows, ptrdiff_t n_rows, ptrdiff_t n_columns,
                        ptrdiff_t row_apart, ptrdiff_t n_limbs, const int32_t *transform,
                        const double *units, double *out);
    /* out[s, i] = sum_k v[s, k] rows[i, k], of an even number of vectors and rows in 16 bits, whose
     * norms multiply to less than 2^31; v has zeros beyond a row, and out room for a multiple of
     * four rows. Of the next tile, behind this one, every other row is asked for here and the rest
     * by whole_sums: requests in one burst would stop the sums. */
    void (*whole_dot)(const int16_t *rows, ptrdiff_t n_rows, ptrdiff_t row_apart,
                      const int16_t *v, ptrdiff_t n_vectors, ptrdiff_t out_apart, int32_t *out);
    /* sums[s, k] += sum_i r[s, i] rows[i, k]: products of any DPCD_SHORT_SUM rows add up to less
     * than 2^31. Behind an odd number of r is a zero. */
    void (*whole_sums)(const int16_t *rows, ptrdiff_t n_rows, ptrdiff_t row_apart,
                       const int16_t *r, ptrdiff_t r_apart, ptrdiff_t n_outputs, double *sums);
} dpcd_kernels;

#define DPCD_PAIRS_BLOCK 16
#define DPCD_SHORT_SUM 32

/* Pairs of a row, or of two rows, with zeros up to a multiple of a block. */
DPCD_INLINE ptrdiff_t dpcd_pairs_apart(ptrdiff_t n_columns)
{
    return (n_columns + DPCD_PAIRS_BLOCK - 1) / DPCD_PAIRS_BLOCK * DPCD_PAIRS_BLOCK;
}

/* The tile of doubles that are held already. */
DPCD_INLINE dpcd_tile dpcd_tile_of(const double *cells, ptrdiff_t stride, ptrdiff_t n_rows,
                                   ptrdiff_t n_columns, int c_order)
{
    dpcd_tile t = {cells, stride, n_rows, n_columns, c_order, 0, {NULL, NULL, NULL}, NULL, 0, 0};
    return t;
}

/* Where the tile begins that lies so many rows further on in memory; NULL for none. */
DPCD_INLINE const char *dpcd_next_tile(const dpcd_tile *t, ptrdiff_t next_rows)
{
    if (!t->source || !next_rows) return NULL;
    return t->source + next_rows * (t->c_order ? t->source_stride : t->source_cell);
}

DPCD_INLINE double dpcd_join(const double *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

#define DPCD_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer */

#define DPCD_LARGEST 1e60

/* NaN and infinity become DPCD_LARGEST before any clip. */
DPCD_INLINE double dpcd_bounded(double v)
{
    v = v < DPCD_LARGEST ? v : DPCD_LARGEST;
    return v > -DPCD_LARGEST ? v : -DPCD_LARGEST;
}

/* limit is an integer, so clipping before rounding equals clamping after it. */
DPCD_INLINE double dpcd_units(double v, double limit)
{
    v = v < limit ? v : limit; /* sends NaN to limit */
    v = v > -limit ? v : -limit;
    return (v + DPCD_MAGIC) - DPCD_MAGIC;
}

DPCD_INLINE ptrdiff_t dpcd_between(ptrdiff_t least, ptrdiff_t n, ptrdiff_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* Rows of a tile whose rows are `widest` cells wide, as measured: a block that the first cache
 * holds (C order) or that the second one holds twice (F order), but not of so few rows that it is
 * read in crumbs, as long as a cache holds it; or a long run of columns where X is read once. */
static inline ptrdiff_t dpcd_tile_rows(const dpcd_matrix *m, ptrdiff_t widest, int reads)
{
    ptrdiff_t rows, most = widest == 1 ? 512 : 1024;
    widest = widest > 0 ? widest : 1;
    if (m->c_order) {
        rows = dpcd_between(dpcd_between(4, 131072 / widest, 32), 4096 / widest, most);
        return rows - rows % 4;
    }
    if (reads == DPCD_READ_ONCE && widest > 1 && !m->bounds.lo) return DPCD_LONG_ROWS;
    rows = dpcd_between(dpcd_between(64, 262144 / widest, 256), 32768 / widest, most);
    return rows - rows % 16;
}

/* Threads that a pass over so many cells pays for. */
static inline ptrdiff_t dpcd_paying_threads(ptrdiff_t n_threads, ptrdiff_t n_cells)
{
    ptrdiff_t paying = n_cells / DPCD_CELLS_A_THREAD;
    return paying < 1 ? 1 : paying < n_threads ? paying : n_threads;
}

/* How far ahead of a tile, of which `left` rows come after it, memory is asked for. */
static inline ptrdiff_t dpcd_rows_ahead(ptrdiff_t tile_rows, ptrdiff_t left)
{
    return tile_rows == DPCD_LONG_ROWS ? DPCD_LONG_AHEAD : tile_rows < left ? tile_rows : left;
}
#endif
