/* The kernels' bodies that read cells of one type: REAL, read four at a time by DPCD_READ. */

/* ---- copies: bounds, subsets of columns, sampled rows --------------------------------------- */

DPCD_INLINE double DPCD_TYPED(dpcd_cell)(REAL cell, const dpcd_matrix *m, ptrdiff_t j, int bounded)
{
    double x = (double)cell;
    if (bounded) {
        x = x < m->hi[j] ? x : m->hi[j];
        x = x > m->lo[j] ? x : m->lo[j];
        x -= m->center[j];
    }
    return x;
}

DPCD_INLINE void DPCD_TYPED(dpcd_pack)(const dpcd_matrix *m, ptrdiff_t i0, const ptrdiff_t *columns,
                                       const dpcd_tile *t, double *restrict out, int bounded)
{
    ptrdiff_t i, k, n = t->n_rows, p = t->n_columns;
    if (m->c_order)
        for (i = 0; i < n; i++) {
            const REAL *restrict x = (const REAL *)m->data + (i0 + i) * m->stride;
            double *restrict row = out + i * p;
            if (columns)
                for (k = 0; k < p; k++)
                    row[k] = DPCD_TYPED(dpcd_cell)(x[columns[k]], m, columns[k], bounded);
            else
                for (k = 0; k < p; k++)
                    row[k] = DPCD_TYPED(dpcd_cell)(x[k], m, k, bounded);
        }
    else
        for (k = 0; k < p; k++) {
            ptrdiff_t j = columns ? columns[k] : k;
            const REAL *restrict x = (const REAL *)m->data + j * m->stride + i0;
            for (i = 0; i < n; i++) out[k * n + i] = DPCD_TYPED(dpcd_cell)(x[i], m, j, bounded);
        }
}

DPCD_INLINE void DPCD_TYPED(dpcd_gather)(const dpcd_matrix *m, const ptrdiff_t *rows,
                                         const dpcd_tile *t, double *restrict out, int bounded)
{
    ptrdiff_t i, k, p = t->n_columns;
    if (m->c_order)
        for (i = 0; i < t->n_rows; i++) {
            const REAL *restrict x = (const REAL *)m->data + rows[i] * m->stride;
            for (k = 0; k < p; k++)
                out[i * p + k] = DPCD_TYPED(dpcd_cell)(x[k], m, k, bounded);
        }
    else
        for (k = 0; k < p; k++) {
            const REAL *restrict x = (const REAL *)m->data + k * m->stride;
            for (i = 0; i < t->n_rows; i++)
                out[i * p + k] = DPCD_TYPED(dpcd_cell)(x[rows[i]], m, k, bounded);
        }
}

/* ---- rows that are scaled ------------------------------------------------------------------- */

/* As rows_dot asks for the next tile's first four rows of eight, so this one for the last four. */
DPCD_INLINE void DPCD_TYPED(dpcd_scaled_rows)(const dpcd_tile *t, const double *restrict scale,
                                              const double *restrict factors, double magic,
                                              const char *next, double *restrict out,
                                              ptrdiff_t apart)
{
    enum { LINE = 64 / sizeof(REAL) };
    ptrdiff_t i, k, n = t->n_rows, p = t->n_columns;
    for (i = 0; i < n; i++) {
        double *restrict row = out + i * apart;
        const REAL *restrict x = (const REAL *)t->cells + i * (t->c_order ? t->stride : 1);
        double f = factors[i];
        if (next && t->c_order && (i & 4))
            for (k = 0; k < p; k += LINE)
                DPCD_PREFETCH(next + i * t->source_stride + k * t->source_cell);
        if (f == 0.0) /* a row of infinite norm may have infinite entries */
            for (k = 0; k < p; k++) row[k] = 0.0;
        else if (t->c_order)
            for (k = 0; k < p; k++) row[k] = ((double)x[k] * scale[k] * f + magic) - magic;
        else
            for (k = 0; k < p; k++)
                row[k] = ((double)x[k * t->stride] * scale[k] * f + magic) - magic;
    }
}

/* ---- sums over columns ----------------------------------------------------------------------- */

/* Four rows at a time, each in eight lanes by k mod 8. */
DPCD_INLINE void DPCD_TYPED(dpcd_rows_dot_c)(const dpcd_tile *t, const double *restrict v,
                                             double *restrict out, int square,
                                             const char *next)
{
    enum { LINE = 64 / sizeof(REAL) };
    ptrdiff_t i, k, l, q, n = t->n_rows, p = t->n_columns;
    for (i = 0; i < n; i += 4) {
        ptrdiff_t used = n - i < 4 ? n - i : 4;
        const REAL *x[4];
        double s[4][DPCD_LANES];
        DPCD_VECTOR low[4], high[4];
        for (q = 0; q < 4; q++) {
            x[q] = (const REAL *)t->cells + (i + (q < used ? q : 0)) * t->stride;
            low[q] = high[q] = DPCD_FILL(0.0);
        }
        if (next && !(i & 4))
            for (q = 0; q < used; q++)
                for (k = 0; k < p; k += LINE)
                    DPCD_PREFETCH(next + (i + q) * t->source_stride + k * t->source_cell);
        for (k = 0; k + DPCD_LANES <= p; k += DPCD_LANES) {
            DPCD_VECTOR v0 = DPCD_READ_DOUBLES(v + k), v1 = DPCD_READ_DOUBLES(v + k + 4);
            for (q = 0; q < 4; q++) {
                DPCD_VECTOR a = DPCD_READ(x[q] + k), b = DPCD_READ(x[q] + k + 4);
                low[q] = DPCD_ADD(low[q], DPCD_MUL(v0, square ? DPCD_MUL(a, a) : a));
                high[q] = DPCD_ADD(high[q], DPCD_MUL(v1, square ? DPCD_MUL(b, b) : b));
            }
        }
        l = 0;
        if (k + 4 <= p) { /* the first four lanes of what is left */
            DPCD_VECTOR v0 = DPCD_READ_DOUBLES(v + k);
            for (q = 0; q < 4; q++) {
                DPCD_VECTOR a = DPCD_READ(x[q] + k);
                low[q] = DPCD_ADD(low[q], DPCD_MUL(v0, square ? DPCD_MUL(a, a) : a));
            }
            k += l = 4;
        }
        for (q = 0; q < 4; q++) {
            DPCD_WRITE(s[q], low[q]);
            DPCD_WRITE(s[q] + 4, high[q]);
        }
        for (; k < p; k++, l++)
            for (q = 0; q < 4; q++) {
                double a = (double)x[q][k];
                s[q][l] += v[k] * (square ? a * a : a);
            }
        for (q = 0; q < used; q++) out[i + q] += dpcd_join(s[q]);
    }
}

/* s[i] += v[0] x0[i], then v[1] x1[i], ...: `count` columns that share a lane. */
DPCD_INLINE void DPCD_TYPED(dpcd_add_columns)(ptrdiff_t n, const REAL *x, ptrdiff_t stride,
                                              const double *v, ptrdiff_t step, int count,
                                              int square, double *restrict s)
{
    ptrdiff_t i;
    int q;
    for (i = 0; i + 4 <= n; i += 4) {
        DPCD_VECTOR sum = DPCD_READ_DOUBLES(s + i);
        for (q = 0; q < count; q++) {
            DPCD_VECTOR a = DPCD_READ(x + q * stride + i);
            sum = DPCD_ADD(sum, DPCD_MUL(DPCD_FILL(v[q * step]), square ? DPCD_MUL(a, a) : a));
        }
        DPCD_WRITE(s + i, sum);
    }
    for (; i < n; i++)
        for (q = 0; q < count; q++) {
            double a = (double)x[q * stride + i];
            s[i] += v[q * step] * (square ? a * a : a);
        }
}

/* A block of rows at a time, with its eight lanes in cache. */
DPCD_INLINE void DPCD_TYPED(dpcd_rows_dot_f)(const dpcd_tile *t, const double *restrict v,
                                             double *restrict out, int square)
{
    enum { ROWS = 512 };
    double lanes[DPCD_LANES][ROWS];
    ptrdiff_t i, i0, k, l, n, p = t->n_columns, apart = DPCD_LANES * t->stride;
    for (i0 = 0; i0 < t->n_rows; i0 += ROWS) {
        const REAL *x = (const REAL *)t->cells + i0;
        double *restrict o = out + i0;
        n = t->n_rows - i0 < ROWS ? t->n_rows - i0 : ROWS;
        if (p == 1) { /* one term: nothing to join */
            DPCD_TYPED(dpcd_add_columns)(n, x, 0, v, 0, 1, square, o);
            continue;
        }
        for (l = 0; l < DPCD_LANES; l++) {
            for (i = 0; i < n; i++) lanes[l][i] = 0.0;
            for (k = l; k + 3 * DPCD_LANES < p; k += 4 * DPCD_LANES)
                DPCD_TYPED(dpcd_add_columns)(n, x + k * t->stride, apart, v + k, DPCD_LANES, 4,
                                             square, lanes[l]);
            for (; k < p; k += DPCD_LANES)
                DPCD_TYPED(dpcd_add_columns)(n, x + k * t->stride, apart, v + k, DPCD_LANES, 1,
                                             square, lanes[l]);
        }
        for (i = 0; i < n; i++)
            o[i] += ((lanes[0][i] + lanes[4][i]) + (lanes[2][i] + lanes[6][i])) +
                    ((lanes[1][i] + lanes[5][i]) + (lanes[3][i] + lanes[7][i]));
    }
}

/* ---- sums over records ------------------------------------------------------------------------ */

/* Integers are summed as the bits of v + DPCD_MAGIC, whose own bits are taken off at the end. */
#define DPCD_UNITS(r, x, s) \
    DPCD_BITS(DPCD_ADD(DPCD_CLIP(DPCD_MUL(DPCD_MUL(r, x), s), lo, hi), magic))

DPCD_INLINE void DPCD_TYPED(dpcd_clipped_sums_c)(const dpcd_tile *t, const double *restrict r,
                                                 const double *restrict scale, double limit,
                                                 const char *next, int half,
                                                 double *restrict sums)
{
    enum { COLUMNS = 512, LINE = 64 / sizeof(REAL) };
    uint64_t bits[COLUMNS];
    DPCD_VECTOR lo = DPCD_FILL(-limit), hi = DPCD_FILL(limit), magic = DPCD_FILL(DPCD_MAGIC);
    ptrdiff_t i, k, k0, h, q, p;
    for (k0 = 0; k0 < t->n_columns; k0 += COLUMNS) {
        const double *restrict s = scale + k0;
        p = t->n_columns - k0 < COLUMNS ? t->n_columns - k0 : COLUMNS;
        for (k = 0; k < p; k++) bits[k] = 0;
        for (i = 0; i + 4 <= t->n_rows; i += 4) {
            const REAL *x[4];
            DPCD_VECTOR ri[4];
            int asks = next && (!half || (i & 4));
            for (q = 0; q < 4; q++) {
                x[q] = (const REAL *)t->cells + (i + q) * t->stride + k0;
                ri[q] = DPCD_FILL(r[i + q]);
            }
            for (k = 0; k + 4 <= p; k += h) {
                if (asks)
                    for (q = 0; q < 4; q++)
                        DPCD_PREFETCH(next + (i + q) * t->source_stride +
                                      (k0 + k) * t->source_cell);
                for (h = 0; h < LINE && k + h + 4 <= p; h += 4) {
                    DPCD_VECTOR sk = DPCD_READ_DOUBLES(s + k + h);
                    DPCD_INTEGERS sum = DPCD_READ_INTEGERS(bits + k + h);
                    DPCD_INTEGERS a = DPCD_UNITS(ri[0], DPCD_READ(x[0] + k + h), sk);
                    DPCD_INTEGERS b = DPCD_UNITS(ri[1], DPCD_READ(x[1] + k + h), sk);
                    DPCD_INTEGERS c = DPCD_UNITS(ri[2], DPCD_READ(x[2] + k + h), sk);
                    DPCD_INTEGERS d = DPCD_UNITS(ri[3], DPCD_READ(x[3] + k + h), sk);
                    sum = DPCD_ADD_INTEGERS(sum, DPCD_ADD_INTEGERS(DPCD_ADD_INTEGERS(a, b),
                                                                   DPCD_ADD_INTEGERS(c, d)));
                    DPCD_WRITE_INTEGERS(bits + k + h, sum);
                }
            }
            for (; k < p; k++)
                for (q = 0; q < 4; q++)
                    bits[k] += dpcd_unit_bits(r[i + q] * (double)x[q][k] * s[k], limit);
        }
        for (; i < t->n_rows; i++) {
            const REAL *x = (const REAL *)t->cells + i * t->stride + k0;
            for (k = 0; k < p; k++) bits[k] += dpcd_unit_bits(r[i] * (double)x[k] * s[k], limit);
        }
        for (k = 0; k < p; k++) sums[k0 + k] += dpcd_sum_of_bits(bits[k], t->n_rows);
    }
}

/* `count` columns together, so that that many streams of memory run. */
DPCD_INLINE void DPCD_TYPED(dpcd_clipped_columns)(const dpcd_tile *t, ptrdiff_t k, int count,
                                                  const double *restrict r,
                                                  const double *restrict scale, double limit,
                                                  const char *next, double *restrict sums)
{
    DPCD_VECTOR lo = DPCD_FILL(-limit), hi = DPCD_FILL(limit), magic = DPCD_FILL(DPCD_MAGIC);
    DPCD_VECTOR s[4];
    DPCD_INTEGERS a[4], b[4];
    const REAL *x[4];
    uint64_t lanes[4];
    ptrdiff_t i, done, n = t->n_rows;
    int q;
    for (q = 0; q < count; q++) {
        x[q] = (const REAL *)t->cells + (k + q) * t->stride;
        s[q] = DPCD_FILL(scale[k + q]);
        a[q] = b[q] = DPCD_ZEROS();
    }
    for (i = 0; i + 8 <= n; i += 8) {
        DPCD_VECTOR r0 = DPCD_READ_DOUBLES(r + i), r1 = DPCD_READ_DOUBLES(r + i + 4);
        for (q = 0; q < count; q++) {
            if (next) /* to the last line of the tile */
                DPCD_PREFETCH(next + (k + q) * t->source_stride + (i + 7) * t->source_cell);
            a[q] = DPCD_ADD_INTEGERS(a[q], DPCD_UNITS(r0, DPCD_READ(x[q] + i), s[q]));
            b[q] = DPCD_ADD_INTEGERS(b[q], DPCD_UNITS(r1, DPCD_READ(x[q] + i + 4), s[q]));
        }
    }
    done = i;
    for (q = 0; q < count; q++) {
        DPCD_WRITE_INTEGERS(lanes, DPCD_ADD_INTEGERS(a[q], b[q]));
        for (i = done; i < n; i++)
            lanes[0] += dpcd_unit_bits(r[i] * (double)x[q][i] * scale[k + q], limit);
        sums[k + q] += dpcd_sum_of_bits(lanes[0] + lanes[1] + lanes[2] + lanes[3], n);
    }
}

/* One column, whose r[i] is weighed and bounded on the way: what is used once is not stored. */
DPCD_INLINE double DPCD_TYPED(dpcd_clipped_column)(const dpcd_tile *t, const double *restrict r,
                                                   const double *restrict weights, double scale,
                                                   double limit, const char *next)
{
    DPCD_VECTOR lo = DPCD_FILL(-limit), hi = DPCD_FILL(limit), magic = DPCD_FILL(DPCD_MAGIC);
    DPCD_VECTOR least = DPCD_FILL(-DPCD_LARGEST), most = DPCD_FILL(DPCD_LARGEST);
    DPCD_VECTOR s = DPCD_FILL(scale), part[2];
    DPCD_INTEGERS a[2] = {DPCD_ZEROS(), DPCD_ZEROS()};
    const REAL *restrict x = (const REAL *)t->cells;
    uint64_t lanes[4];
    ptrdiff_t i, n = t->n_rows;
    int q;
    for (i = 0; i + 8 <= n; i += 8) {
        if (next) DPCD_PREFETCH(next + (i + 7) * t->source_cell);
        for (q = 0; q < 2; q++) {
            part[q] = DPCD_READ_DOUBLES(r + i + 4 * q);
            if (weights) part[q] = DPCD_MUL(part[q], DPCD_READ_DOUBLES(weights + i + 4 * q));
            part[q] = DPCD_CLIP(part[q], least, most);
            a[q] = DPCD_ADD_INTEGERS(a[q], DPCD_UNITS(part[q], DPCD_READ(x + i + 4 * q), s));
        }
    }
    DPCD_WRITE_INTEGERS(lanes, DPCD_ADD_INTEGERS(a[0], a[1]));
    for (; i < n; i++) {
        double ri = dpcd_bounded(weights ? r[i] * weights[i] : r[i]);
        lanes[0] += dpcd_unit_bits(ri * (double)x[i] * scale, limit);
    }
    return dpcd_sum_of_bits(lanes[0] + lanes[1] + lanes[2] + lanes[3], n);
}
#undef DPCD_UNITS

DPCD_INLINE void DPCD_TYPED(dpcd_clipped_sums_f)(const dpcd_tile *t, const double *r,
                                                 const double *scale, double limit,
                                                 const char *next, double *sums)
{
    ptrdiff_t k;
    for (k = 0; k + 4 <= t->n_columns; k += 4)
        DPCD_TYPED(dpcd_clipped_columns)(t, k, 4, r, scale, limit, next, sums);
    for (; k < t->n_columns; k++)
        DPCD_TYPED(dpcd_clipped_columns)(t, k, 1, r, scale, limit, next, sums);
}

DPCD_INLINE void DPCD_TYPED(dpcd_plain_sums)(const dpcd_tile *t, const double *restrict r,
                                             double *restrict sums)
{
    ptrdiff_t i, k, l, n = t->n_rows, p = t->n_columns;
    if (t->c_order)
        for (i = 0; i < n; i++) {
            const REAL *restrict x = (const REAL *)t->cells + i * t->stride;
            for (k = 0; k < p; k++) sums[k] += r[i] * (double)x[k];
        }
    else
        for (k = 0; k < p; k++) {
            const REAL *restrict x = (const REAL *)t->cells + k * t->stride;
            double s[DPCD_LANES] = {0};
            for (i = 0; i + DPCD_LANES <= n; i += DPCD_LANES)
                for (l = 0; l < DPCD_LANES; l++) s[l] += r[i + l] * (double)x[i + l];
            for (l = 0; i < n; i++, l++) s[l] += r[i] * (double)x[i];
            sums[k] += dpcd_join(s);
        }
}
