/* The kernels over cells, whose type is a constant where they are inlined; DPCD_NAME and DPCD_WIDTH
 * say which compilation this is, and how many doubles a vector has: one is a plain double. Loops
 * without vectors are plain C, which compilers vectorise.
 */
#define DPCD_VECTOR DPCD_NAME(dpcd_vector)
#define DPCD_INTEGERS DPCD_NAME(dpcd_integers)
#define DPCD_FILL(x) ((x) - (DPCD_VECTOR){0})
#define DPCD_READ(x, i, is_float) DPCD_NAME(dpcd_read)(x, i, is_float)
#define DPCD_CLIP(a, lo, hi) DPCD_NAME(dpcd_clip)(a, lo, hi)
#define DPCD_TERM(v, a) ((v) * (square ? (a) * (a) : (a)))
#define DPCD_PARTS (DPCD_LANES / DPCD_WIDTH)

#if DPCD_WIDTH > 1
typedef double DPCD_VECTOR __attribute__((vector_size(8 * DPCD_WIDTH)));
typedef uint64_t DPCD_INTEGERS __attribute__((vector_size(8 * DPCD_WIDTH)));
#else
typedef double DPCD_VECTOR;
typedef uint64_t DPCD_INTEGERS;
#endif

DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_read)(const void *x, ptrdiff_t i, int is_float)
{
    DPCD_VECTOR a;
    if (!is_float) {
        memcpy(&a, dpcd_at(x, i, 0), sizeof a);
        return a;
    }
    x = dpcd_at(x, i, 1);
#if DPCD_WIDTH == 4
    return _mm256_cvtps_pd(_mm_loadu_ps((const float *)x));
#else
    return (double)*(const float *)x;
#endif
}

/* max(min(a, hi), lo) with NaN sent to hi, as a < hi ? a : hi does. */
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_clip)(DPCD_VECTOR a, DPCD_VECTOR lo, DPCD_VECTOR hi)
{
#if DPCD_WIDTH == 4
    return _mm256_max_pd(_mm256_min_pd(a, hi), lo);
#else
    a = a < hi ? a : hi;
    return a > lo ? a : lo;
#endif
}

/* Of clipped units plus DPCD_MAGIC. */
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_bits)(DPCD_VECTOR v, double limit)
{
    DPCD_INTEGERS bits;
    v = DPCD_CLIP(v, DPCD_FILL(-limit), DPCD_FILL(limit)) + DPCD_MAGIC;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Cells of a row from column k on, and of column k from record i on, as the bounds have them. */
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_of_row)(const void *x, ptrdiff_t k, dpcd_bounds b,
                                               int is_float, int bounded)
{
    DPCD_VECTOR a = DPCD_READ(x, k, is_float);
    if (bounded) a = DPCD_CLIP(a, DPCD_READ(b.lo, k, 0), DPCD_READ(b.hi, k, 0)) -
                     DPCD_READ(b.center, k, 0);
    return a;
}

DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_of_column)(const void *x, ptrdiff_t i, dpcd_bounds b,
                                                  ptrdiff_t k, int is_float, int bounded)
{
    DPCD_VECTOR a = DPCD_READ(x, i, is_float);
    if (bounded) a = DPCD_CLIP(a, DPCD_FILL(b.lo[k]), DPCD_FILL(b.hi[k])) - b.center[k];
    return a;
}
#define DPCD_UNITS(r, cells, s) DPCD_NAME(dpcd_bits)((r) * (cells) * (s), limit)
#define DPCD_OF_ROW(x, k) DPCD_NAME(dpcd_of_row)(x, k, b, is_float, bounded)
#define DPCD_OF_COLUMN(x, i, k) DPCD_NAME(dpcd_of_column)(x, i, b, k, is_float, bounded)

/* ---- sums over columns ---------------------------------------------------------------------- */

/* Four rows at a time, each in eight lanes by k mod 8. */
DPCD_INLINE void DPCD_NAME(dpcd_rows_dot_c)(const dpcd_tile *t, const double *restrict v,
                                            double *restrict out, const char *next, int square,
                                            int is_float, int bounded)
{
    const dpcd_bounds b = t->bounds;
    ptrdiff_t i, k, q, h, left, n = t->n_rows, p = t->n_columns;
    for (i = 0; i < n; i += 4) {
        ptrdiff_t used = n - i < 4 ? n - i : 4;
        const void *x[4];
        double s[4][DPCD_LANES];
        DPCD_VECTOR lanes[4][DPCD_PARTS], a, vk;
        for (q = 0; q < 4; q++) {
            x[q] = dpcd_at(t->cells, (i + (q < used ? q : 0)) * t->stride, is_float);
            for (h = 0; h < DPCD_PARTS; h++) lanes[q][h] = DPCD_FILL(0.0);
        }
        if (next && !(i & 4))
            for (q = 0; q < used; q++)
                for (k = 0; k < p; k += 64 / dpcd_size(is_float))
                    DPCD_PREFETCH(next + (i + q) * t->source_stride + k * t->source_cell);
        for (k = 0; k + DPCD_LANES <= p; k += DPCD_LANES)
            for (h = 0; h < DPCD_PARTS; h++) {
                vk = DPCD_READ(v, k + h * DPCD_WIDTH, 0);
                for (q = 0; q < 4; q++) {
                    a = DPCD_OF_ROW(x[q], k + h * DPCD_WIDTH);
                    lanes[q][h] += DPCD_TERM(vk, a);
                }
            }
        left = (p - k) / DPCD_WIDTH; /* vectors of the first lanes */
        for (q = 0; q < 4; q++)
            for (h = 0; h < DPCD_PARTS; h++) {
                a = lanes[q][h];
                if (h < DPCD_PARTS - 1 && h < left)
                    a += DPCD_TERM(DPCD_READ(v, k + h * DPCD_WIDTH, 0),
                                   DPCD_OF_ROW(x[q], k + h * DPCD_WIDTH));
                memcpy(s[q] + h * DPCD_WIDTH, &a, sizeof a);
            }
        k += left * DPCD_WIDTH;
        for (; k < p; k++)
            for (q = 0; q < 4; q++) {
                double cell = dpcd_public(dpcd_cell(x[q], k, is_float), b, k, bounded);
                s[q][k % DPCD_LANES] += DPCD_TERM(v[k], cell);
            }
        for (q = 0; q < used; q++) out[i + q] += dpcd_join(s[q]);
    }
}

/* s[i] += v[0] x0[i], then v[8] x1[i], ...: `count` columns that share a lane. */
DPCD_INLINE void DPCD_NAME(dpcd_add_columns)(ptrdiff_t n, const void *x, ptrdiff_t apart,
                                             const double *v, dpcd_bounds b, int count,
                                             int square, double *restrict s, int is_float,
                                             int bounded)
{
    ptrdiff_t i;
    int q;
    for (i = 0; i < n; i++)
        for (q = 0; q < count; q++) {
            double cell = dpcd_public(dpcd_cell(x, q * apart + i, is_float), b, q * DPCD_LANES,
                                      bounded);
            s[i] += DPCD_TERM(v[q * DPCD_LANES], cell);
        }
}

/* A block of rows at a time, with its eight lanes in cache. */
DPCD_INLINE void DPCD_NAME(dpcd_rows_dot_f)(const dpcd_tile *t, const double *restrict v,
                                 double *restrict out, int square, int is_float, int bounded)
{
    enum { ROWS = 512 };
    double lanes[DPCD_LANES][ROWS];
    ptrdiff_t i, i0, k, l, n, p = t->n_columns, apart = DPCD_LANES * t->stride;
    for (i0 = 0; i0 < t->n_rows; i0 += ROWS) {
        const void *x = dpcd_at(t->cells, i0, is_float);
        double *restrict o = out + i0;
        n = t->n_rows - i0 < ROWS ? t->n_rows - i0 : ROWS;
        if (p == 1) { /* one term: nothing to join */
            DPCD_NAME(dpcd_add_columns)(n, x, 0, v, t->bounds, 1, square, o, is_float, bounded);
            continue;
        }
        for (l = 0; l < DPCD_LANES; l++) {
            for (i = 0; i < n; i++) lanes[l][i] = 0.0;
            for (k = l; k + 3 * DPCD_LANES < p; k += 4 * DPCD_LANES)
                DPCD_NAME(dpcd_add_columns)(n, dpcd_at(x, k * t->stride, is_float), apart,
                                            v + k, dpcd_bounds_at(t->bounds, k, bounded), 4,
                                            square, lanes[l], is_float, bounded);
            for (; k < p; k += DPCD_LANES)
                DPCD_NAME(dpcd_add_columns)(n, dpcd_at(x, k * t->stride, is_float), apart,
                                            v + k, dpcd_bounds_at(t->bounds, k, bounded), 1,
                                            square, lanes[l], is_float, bounded);
        }
        for (i = 0; i < n; i++)
            o[i] += ((lanes[0][i] + lanes[4][i]) + (lanes[2][i] + lanes[6][i])) +
                    ((lanes[1][i] + lanes[5][i]) + (lanes[3][i] + lanes[7][i]));
    }
}

/* As rows_dot asks for the next tile's first four rows of eight, so this one for the last four. */
DPCD_INLINE void DPCD_NAME(dpcd_scale_rows)(const dpcd_tile *t, const double *restrict scale,
                                            const double *restrict factors, double magic,
                                            const char *next, double *restrict out,
                                            int16_t *restrict whole, ptrdiff_t apart,
                                            int is_float, int bounded)
{
    const dpcd_bounds b = t->bounds;
    ptrdiff_t i, k, p = t->n_columns, step = t->c_order ? 1 : t->stride;
    for (i = 0; i < t->n_rows; i++) {
        double f = factors[i];
        const void *x = dpcd_at(t->cells, i * (t->c_order ? t->stride : 1), is_float);
        if (next && t->c_order && (i & 4))
            for (k = 0; k < p; k += 64 / dpcd_size(is_float))
                DPCD_PREFETCH(next + i * t->source_stride + k * t->source_cell);
        for (k = 0; k < p; k++) {
            double v = dpcd_public(dpcd_cell(x, k * step, is_float), b, k, bounded) * scale[k] * f;
            v = f == 0.0 ? 0.0 : (v + magic) - magic; /* a row of infinite norm may be infinite */
            if (whole)
                whole[i * apart + k] = (int16_t)(int32_t)v;
            else
                out[i * apart + k] = v;
        }
    }
}

/* ---- sums over records: integers as bits of v + DPCD_MAGIC, taken off at the end ------------ */

DPCD_INLINE void DPCD_NAME(dpcd_clipped_sums_c)(const dpcd_tile *t, const double *restrict r,
                                                const double *restrict scale, double limit,
                                                const char *next, int half, double *restrict sums,
                                                int is_float, int bounded)
{
    enum { COLUMNS = 512 };
    const ptrdiff_t line = 64 / dpcd_size(is_float);
    uint64_t bits[COLUMNS];
    ptrdiff_t i, k, k0, h, q, p;
    for (k0 = 0; k0 < t->n_columns; k0 += COLUMNS) {
        const double *restrict s = scale + k0;
        const dpcd_bounds b = dpcd_bounds_at(t->bounds, k0, bounded);
        p = t->n_columns - k0 < COLUMNS ? t->n_columns - k0 : COLUMNS;
        for (k = 0; k < p; k++) bits[k] = 0;
        for (i = 0; i + 4 <= t->n_rows; i += 4) {
            const void *x[4];
            DPCD_VECTOR ri[4];
            int asks = next && (!half || (i & 4));
            for (q = 0; q < 4; q++) {
                x[q] = dpcd_at(t->cells, (i + q) * t->stride + k0, is_float);
                ri[q] = DPCD_FILL(r[i + q]);
            }
            for (k = 0; k + DPCD_WIDTH <= p; k += h) {
                if (asks)
                    for (q = 0; q < 4; q++)
                        DPCD_PREFETCH(next + (i + q) * t->source_stride +
                                      (k0 + k) * t->source_cell);
                for (h = 0; h < line && k + h + DPCD_WIDTH <= p; h += DPCD_WIDTH) {
                    DPCD_VECTOR sk = DPCD_READ(s, k + h, 0);
                    DPCD_INTEGERS sum;
                    memcpy(&sum, bits + k + h, sizeof sum);
                    sum += (DPCD_UNITS(ri[0], DPCD_OF_ROW(x[0], k + h), sk) +
                            DPCD_UNITS(ri[1], DPCD_OF_ROW(x[1], k + h), sk)) +
                           (DPCD_UNITS(ri[2], DPCD_OF_ROW(x[2], k + h), sk) +
                            DPCD_UNITS(ri[3], DPCD_OF_ROW(x[3], k + h), sk));
                    memcpy(bits + k + h, &sum, sizeof sum);
                }
            }
            for (; k < p; k++)
                for (q = 0; q < 4; q++) {
                    double cell = dpcd_public(dpcd_cell(x[q], k, is_float), b, k, bounded);
                    bits[k] += dpcd_unit_bits(r[i + q] * cell * s[k], limit);
                }
        }
        for (; i < t->n_rows; i++) {
            const void *x = dpcd_at(t->cells, i * t->stride + k0, is_float);
            for (k = 0; k < p; k++) {
                double cell = dpcd_public(dpcd_cell(x, k, is_float), b, k, bounded);
                bits[k] += dpcd_unit_bits(r[i] * cell * s[k], limit);
            }
        }
        for (k = 0; k < p; k++) sums[k0 + k] += dpcd_sum_of_bits(bits[k], t->n_rows);
    }
}

/* `count` columns together, so that that many streams of memory run; r[i] is weighed and bounded on
 * the way where `weighs`: what is used once is not stored. */
DPCD_INLINE void DPCD_NAME(dpcd_clipped_columns)(const dpcd_tile *t, ptrdiff_t k, int count,
                                                 const double *restrict r, int weighs,
                                                 const double *restrict weights,
                                                 const double *restrict scale, double limit,
                                                 const char *next, double *restrict sums,
                                                 int is_float, int bounded)
{
    const dpcd_bounds b = dpcd_bounds_at(t->bounds, k, bounded);
    const DPCD_VECTOR least = DPCD_FILL(-DPCD_LARGEST), most = DPCD_FILL(DPCD_LARGEST);
    DPCD_VECTOR part[DPCD_PARTS];
    DPCD_INTEGERS lanes[4][DPCD_PARTS];
    const void *x[4];
    ptrdiff_t i, l, n = t->n_rows;
    int q, h;
    memset(lanes, 0, sizeof lanes);
    for (q = 0; q < count; q++) x[q] = dpcd_at(t->cells, (k + q) * t->stride, is_float);
    for (i = 0; i + DPCD_LANES <= n; i += DPCD_LANES) {
        for (h = 0; h < DPCD_PARTS; h++) {
            part[h] = DPCD_READ(r, i + h * DPCD_WIDTH, 0);
            if (weights) part[h] *= DPCD_READ(weights, i + h * DPCD_WIDTH, 0);
            if (weighs) part[h] = DPCD_CLIP(part[h], least, most);
        }
        for (q = 0; q < count; q++) {
            if (next) /* to the last line of the tile */
                DPCD_PREFETCH(next + (k + q) * t->source_stride + (i + 7) * t->source_cell);
            for (h = 0; h < DPCD_PARTS; h++)
                lanes[q][h] +=
                    DPCD_UNITS(part[h], DPCD_OF_COLUMN(x[q], i + h * DPCD_WIDTH, q),
                               DPCD_FILL(scale[k + q]));
        }
    }
    for (q = 0; q < count; q++) {
        uint64_t each[DPCD_LANES], bits = 0;
        memcpy(each, lanes[q], sizeof each);
        for (l = 0; l < DPCD_LANES; l++) bits += each[l];
        for (l = i; l < n; l++) {
            double rl = weights ? r[l] * weights[l] : r[l];
            if (weighs) rl = dpcd_bounded(rl);
            bits += dpcd_unit_bits(rl * dpcd_public(dpcd_cell(x[q], l, is_float), b, q, bounded) *
                                       scale[k + q],
                                   limit);
        }
        sums[k + q] += dpcd_sum_of_bits(bits, n);
    }
}

DPCD_INLINE void DPCD_NAME(dpcd_clipped_sums_f)(const dpcd_tile *t, const double *restrict r,
                                                const double *restrict scale, double limit,
                                                const char *next, double *restrict sums,
                                                int is_float, int bounded)
{
    ptrdiff_t k;
    for (k = 0; k + 4 <= t->n_columns; k += 4)
        DPCD_NAME(dpcd_clipped_columns)(t, k, 4, r, 0, NULL, scale, limit, next, sums, is_float,
                                        bounded);
    for (; k < t->n_columns; k++)
        DPCD_NAME(dpcd_clipped_columns)(t, k, 1, r, 0, NULL, scale, limit, next, sums, is_float,
                                        bounded);
}

#include "_pairs_body.h"

/* ---- the table ------------------------------------------------------------------------------ */

static void DPCD_NAME(dpcd_rows_dot)(const dpcd_tile *t, const double *v, int square,
                                     ptrdiff_t next_rows, double *out)
{
    const char *next = dpcd_next_tile(t, next_rows);
    if (t->c_order && square)
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_rows_dot_c), v, out, next, 1);
    else if (t->c_order)
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_rows_dot_c), v, out, next, 0);
    else if (square)
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_rows_dot_f), v, out, 1);
    else
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_rows_dot_f), v, out, 0);
}

static void DPCD_NAME(dpcd_scaled_rows)(const dpcd_tile *t, const double *scale,
                                        const double *factors, double magic, ptrdiff_t next_rows,
                                        double *out, int16_t *whole, ptrdiff_t apart)
{
    const char *next = dpcd_next_tile(t, next_rows);
    if (whole)
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_scale_rows), scale, factors, magic, next, NULL, whole,
                     apart);
    else
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_scale_rows), scale, factors, magic, next, out, NULL, apart);
}

static void DPCD_NAME(dpcd_sums)(const dpcd_tile *t, const double *r, const double *scale,
                                 double limit, ptrdiff_t next_rows, int half, double *sums)
{
    const char *next = dpcd_next_tile(t, next_rows);
    if (limit == 0.0)
        DPCD_BY_CELL(t, dpcd_add_plain, r, sums);
    else if (t->c_order)
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_clipped_sums_c), r, scale, limit, next, half, sums);
    else
        DPCD_BY_CELL(t, DPCD_NAME(dpcd_clipped_sums_f), r, scale, limit, next, sums);
}

static double DPCD_NAME(dpcd_clipped_column)(const dpcd_tile *t, const double *r,
                                             const double *weights, double scale, double limit,
                                             ptrdiff_t next_rows)
{
    const char *next = dpcd_next_tile(t, next_rows);
    double sum = 0.0;
    DPCD_BY_CELL(t, DPCD_NAME(dpcd_clipped_columns), 0, 1, r, 1, weights, &scale, limit, next,
                 &sum);
    return sum;
}

static const dpcd_kernels DPCD_NAME(dpcd_kernels) = {
    dpcd_load,
    DPCD_NAME(dpcd_rows_dot),
    DPCD_NAME(dpcd_scaled_rows),
    dpcd_weigh,
    dpcd_clip_norms,
    DPCD_NAME(dpcd_sums),
    DPCD_NAME(dpcd_clipped_column),
    dpcd_sum_of_ones,
    DPCD_NAME(dpcd_add_products),
    DPCD_NAME(dpcd_image_norms),
    DPCD_NAME(dpcd_whole_dot),
    DPCD_NAME(dpcd_whole_sums),
};

#undef DPCD_VECTOR
#undef DPCD_INTEGERS
#undef DPCD_FILL
#undef DPCD_READ
#undef DPCD_CLIP
#undef DPCD_TERM
#undef DPCD_PARTS
#undef DPCD_UNITS
#undef DPCD_OF_ROW
#undef DPCD_OF_COLUMN
