/* Products of rows of whole numbers of 16 bits, exactly: twice as many in an instruction as of
 * float32, and four times as many as of doubles.
 *
 * Two numbers that are multiplied by two others, and both products added, lie side by side in 32
 * bits: a pair. Sums of pairs' products are 32-bit integers, which the caller keeps from overflow
 * (DPCD_PAIRED_SUM), and exact in any order; that is why these kernels, unlike those of doubles,
 * have one layout for all matrices and need no lanes. See ``_kernels_body.h``.
 */
#define DPCD_PAIRS DPCD_NAME(dpcd_pairs)
#define DPCD_LOAD_PAIRS(x) DPCD_NAME(dpcd_load_pairs)(x)
#define DPCD_ADD_PAIRS(sum, a, b) DPCD_NAME(dpcd_add_pairs)(sum, a, b)
#define DPCD_FILL_PAIRS(x) DPCD_NAME(dpcd_fill_pairs)(x)

#if DPCD_WIDTH == 4
typedef __m256i DPCD_PAIRS;
#else
typedef int32_t DPCD_PAIRS;
#endif
enum { DPCD_NAME(dpcd_n_pairs) = sizeof(DPCD_PAIRS) / sizeof(int32_t) };

DPCD_INLINE DPCD_PAIRS DPCD_NAME(dpcd_load_pairs)(const int32_t *x)
{
    DPCD_PAIRS a;
    memcpy(&a, x, sizeof a);
    return a;
}

DPCD_INLINE DPCD_PAIRS DPCD_NAME(dpcd_fill_pairs)(int32_t x)
{
#if DPCD_WIDTH == 4
    return _mm256_set1_epi32(x);
#else
    return x;
#endif
}

/* sum + a.first b.first + a.second b.second */
DPCD_INLINE DPCD_PAIRS DPCD_NAME(dpcd_add_pairs)(DPCD_PAIRS sum, DPCD_PAIRS a, DPCD_PAIRS b)
{
#if DPCD_WIDTH == 4
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#else
    return sum + (int16_t)a * (int16_t)b + (a >> 16) * (b >> 16);
#endif
}

/* sums[q, l] = sum over t of what a[q first + t then] and b[t apart + l] give, for four a and
 * DPCD_PAIRS_BLOCK b. */
DPCD_INLINE void DPCD_NAME(dpcd_pair_products)(const int32_t *restrict a, ptrdiff_t first,
                                               ptrdiff_t then, const int32_t *restrict b,
                                               ptrdiff_t apart, ptrdiff_t n,
                                               int32_t sums[4][DPCD_PAIRS_BLOCK])
{
    enum { SIZE = DPCD_NAME(dpcd_n_pairs), AT_ONCE = 2 * SIZE };
    ptrdiff_t t, l;
    int q;
    for (l = 0; l < DPCD_PAIRS_BLOCK; l += AT_ONCE) {
        DPCD_PAIRS low[4], high[4];
        for (q = 0; q < 4; q++) low[q] = high[q] = DPCD_FILL_PAIRS(0);
        for (t = 0; t < n; t++) {
            const DPCD_PAIRS b0 = DPCD_LOAD_PAIRS(b + t * apart + l);
            const DPCD_PAIRS b1 = DPCD_LOAD_PAIRS(b + t * apart + l + SIZE);
            for (q = 0; q < 4; q++) {
                const DPCD_PAIRS aq = DPCD_FILL_PAIRS(dpcd_load_pair(a + q * first + t * then));
                low[q] = DPCD_ADD_PAIRS(low[q], aq, b0);
                high[q] = DPCD_ADD_PAIRS(high[q], aq, b1);
            }
        }
        for (q = 0; q < 4; q++) {
            memcpy(sums[q] + l, &low[q], sizeof low[q]);
            memcpy(sums[q] + l + SIZE, &high[q], sizeof high[q]);
        }
    }
}

/* totals[j, k] += sum over rows of q[i, j] q[i, k], k >= j at the least. */
static void DPCD_NAME(dpcd_add_products)(const int16_t *rows, ptrdiff_t n_rows, ptrdiff_t n_columns,
                                         ptrdiff_t row_apart, const double *factors,
                                         int32_t *room, int64_t *totals)
{
    const ptrdiff_t n_pairs = (n_rows + 1) / 2, apart = dpcd_pairs_apart(row_apart);
    int32_t sums[4][DPCD_PAIRS_BLOCK];
    ptrdiff_t t, j, k, l;
    int q;
    for (t = 0; t < n_pairs; t++) {
        const ptrdiff_t i = 2 * t, next = i + 1 < n_rows ? i + 1 : i; /* a row alone: with zeros */
        const int16_t *first = rows + i * row_apart, *second = rows + next * row_apart;
        const float f = (float)factors[i], g = next > i ? (float)factors[next] : 0.0f;
        for (k = 0; k < row_apart; k++)
            room[t * apart + k] = dpcd_pair(dpcd_rounded(first[k] * f),
                                            dpcd_rounded(second[k] * g));
    }
    for (j = 0; j < n_columns; j += 4)
        for (k = j - j % DPCD_PAIRS_BLOCK; k < apart; k += DPCD_PAIRS_BLOCK) {
            DPCD_NAME(dpcd_pair_products)(room + j, 1, apart, room + k, apart, n_pairs, sums);
            for (q = 0; q < 4; q++)
                for (l = 0; l < DPCD_PAIRS_BLOCK; l++)
                    totals[(j + q) * apart + k + l] += sums[q][l];
        }
}

/* out[i] = |transform rows[i]|^2, where transform has pairs as columns, and units of its rows. */
static void DPCD_NAME(dpcd_image_norms)(const int16_t *rows, ptrdiff_t n_rows,
                                        ptrdiff_t n_columns, ptrdiff_t row_apart, ptrdiff_t n_limbs,
                                        const int32_t *transform, const double *units, double *out)
{
    const ptrdiff_t apart = dpcd_pairs_apart(n_columns);
    int32_t sums[4][DPCD_PAIRS_BLOCK];
    ptrdiff_t i, h, k, l, last, used;
    int q;
    for (i = 0; i < n_rows; i += used) {
        const int32_t *cells = (const int32_t *)(rows + i * row_apart); /* pairs, as rows are */
        double lanes[4][DPCD_LANES] = {{0.0}};
        used = n_rows - i < 4 ? 1 : 4; /* one is multiplied four times */
        for (k = 0; k < apart; k += DPCD_PAIRS_BLOCK) {
            double images[4][DPCD_PAIRS_BLOCK];
            /* a triangle below rows of zeros: all other columns are zeros */
            last = k + DPCD_PAIRS_BLOCK - (apart - n_columns) + n_columns % 2;
            for (h = 0; h < n_limbs; h++) {
                const double *u = units + h * apart + k;
                DPCD_NAME(dpcd_pair_products)(cells, used == 4 ? row_apart / 2 : 0, 1,
                                              transform + h * (apart / 2) * apart + k, apart,
                                              last / 2, sums);
                for (q = 0; q < 4; q++)
                    if (h)
                        for (l = 0; l < DPCD_PAIRS_BLOCK; l++) images[q][l] += sums[q][l] * u[l];
                    else
                        for (l = 0; l < DPCD_PAIRS_BLOCK; l++) images[q][l] = sums[q][l] * u[l];
            }
            for (q = 0; q < 4; q++)
                for (l = 0; l < DPCD_LANES; l++) {
                    const double first = images[q][l], second = images[q][l + DPCD_LANES];
                    lanes[q][l] += first * first + second * second;
                }
        }
        for (q = 0; q < used; q++) out[i + q] = dpcd_join(lanes[q]);
    }
}

/* Cells of two rows, one below the other, as pairs. */
DPCD_INLINE void DPCD_NAME(dpcd_pair_loaded)(const int16_t *x, const int16_t *y, DPCD_PAIRS *first,
                                             DPCD_PAIRS *second)
{
    DPCD_PAIRS a, b;
    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
#if DPCD_WIDTH == 4 /* halves of four columns, which dpcd_add_paired puts in order */
    *first = _mm256_unpacklo_epi16(a, b);
    *second = _mm256_unpackhi_epi16(a, b);
#else
    *first = dpcd_pair(x[0], y[0]);
    *second = dpcd_pair(x[1], y[1]);
#endif
}

/* sums[l] += the sums of pairs that dpcd_pair_loaded made. */
DPCD_INLINE void DPCD_NAME(dpcd_add_paired)(DPCD_PAIRS first, DPCD_PAIRS second, double *sums)
{
    enum { SIZE = DPCD_NAME(dpcd_n_pairs) };
    int32_t found[2 * SIZE];
    ptrdiff_t l;
#if DPCD_WIDTH == 4
    const DPCD_PAIRS low = _mm256_permute2x128_si256(first, second, 0x20);
    second = _mm256_permute2x128_si256(first, second, 0x31);
    first = low;
#endif
    memcpy(found, &first, sizeof first);
    memcpy(found + SIZE, &second, sizeof second);
    for (l = 0; l < 2 * SIZE; l++) sums[l] += found[l];
}

/* out[q] = the sum of the lanes of a[q]. */
DPCD_INLINE void DPCD_NAME(dpcd_join_pairs)(const DPCD_PAIRS a[4], int32_t out[4])
{
#if DPCD_WIDTH == 4
    const DPCD_PAIRS sums = _mm256_hadd_epi32(_mm256_hadd_epi32(a[0], a[1]),
                                              _mm256_hadd_epi32(a[2], a[3]));
    _mm_storeu_si128((__m128i *)out, _mm_add_epi32(_mm256_castsi256_si128(sums),
                                                   _mm256_extracti128_si256(sums, 1)));
#else
    int32_t lanes[DPCD_NAME(dpcd_n_pairs)];
    ptrdiff_t l;
    int q;
    for (q = 0; q < 4; q++) {
        memcpy(lanes, &a[q], sizeof a[q]);
        out[q] = 0;
        for (l = 0; l < DPCD_NAME(dpcd_n_pairs); l++) out[q] += lanes[l];
    }
#endif
}

static void DPCD_NAME(dpcd_whole_dot)(const int16_t *restrict rows, ptrdiff_t n_rows,
                                      ptrdiff_t row_apart, const int16_t *restrict v,
                                      ptrdiff_t n_vectors, ptrdiff_t out_apart,
                                      int32_t *restrict out)
{
    enum { SIZE = DPCD_NAME(dpcd_n_pairs) };
    const ptrdiff_t apart = dpcd_pairs_apart(row_apart), ahead = n_rows * row_apart;
    ptrdiff_t i, k, s;
    int q;
    for (i = 0; i < n_rows; i += 4)
        for (s = 0; s < n_vectors; s += 2) {
            DPCD_PAIRS first[4], second[4];
            const int16_t *x[4];
            for (q = 0; q < 4; q++) {
                x[q] = rows + (i + q < n_rows ? i + q : i) * row_apart;
                first[q] = second[q] = DPCD_FILL_PAIRS(0);
            }
            for (k = 0; k < apart; k += 2 * SIZE) {
                const DPCD_PAIRS a = DPCD_LOAD_PAIRS((const int32_t *)(v + s * apart + k));
                const DPCD_PAIRS b = DPCD_LOAD_PAIRS((const int32_t *)(v + (s + 1) * apart + k));
                for (q = 0; q < 4; q++) {
                    const DPCD_PAIRS c = DPCD_LOAD_PAIRS((const int32_t *)(x[q] + k));
                    /* every other row of the next tile */
                    if (s == 0 && !(q & 1) && !(k & 31)) DPCD_PREFETCH(x[q] + ahead + k);
                    first[q] = DPCD_ADD_PAIRS(first[q], c, a);
                    second[q] = DPCD_ADD_PAIRS(second[q], c, b);
                }
            }
            DPCD_NAME(dpcd_join_pairs)(first, out + s * out_apart + i);
            DPCD_NAME(dpcd_join_pairs)(second, out + (s + 1) * out_apart + i);
        }
}

/* Sums of the columns k, ..., of so many outputs at once. */
DPCD_INLINE void DPCD_NAME(dpcd_whole_block)(const int16_t *restrict rows, ptrdiff_t n_rows,
                                             ptrdiff_t row_apart, ptrdiff_t k, const int16_t *r,
                                             ptrdiff_t r_apart, ptrdiff_t ahead, int n_outputs,
                                             double *sums)
{
    DPCD_PAIRS first[4], second[4], a, b;
    ptrdiff_t t;
    int q;
    for (q = 0; q < n_outputs; q++) first[q] = second[q] = DPCD_FILL_PAIRS(0);
    for (t = 0; 2 * t < n_rows; t++) {
        const int16_t *x = rows + 2 * t * row_apart + k;
        DPCD_NAME(dpcd_pair_loaded)(x, 2 * t + 1 < n_rows ? x + row_apart : x, &a, &b);
        if (ahead && !(k & 31)) DPCD_PREFETCH(x + ahead + row_apart); /* the others */
        for (q = 0; q < n_outputs; q++) {
            const int32_t *two = (const int32_t *)(r + q * r_apart + 2 * t);
            const DPCD_PAIRS times = DPCD_FILL_PAIRS(dpcd_load_pair(two));
            first[q] = DPCD_ADD_PAIRS(first[q], a, times);
            second[q] = DPCD_ADD_PAIRS(second[q], b, times);
        }
    }
    for (q = 0; q < n_outputs; q++)
        DPCD_NAME(dpcd_add_paired)(first[q], second[q], sums + q * dpcd_pairs_apart(row_apart) + k);
}

static void DPCD_NAME(dpcd_whole_sums)(const int16_t *restrict rows, ptrdiff_t n_rows,
                                       ptrdiff_t row_apart, const int16_t *restrict r,
                                       ptrdiff_t r_apart, ptrdiff_t n_outputs,
                                       double *restrict sums)
{
    const ptrdiff_t apart = dpcd_pairs_apart(row_apart);
    ptrdiff_t i, k, s, m, n;
    for (i = 0; i < n_rows; i += DPCD_SHORT_SUM)
        for (s = 0; s < n_outputs; s += n) {
            const int16_t *x = rows + i * row_apart, *c = r + s * r_apart + i;
            const ptrdiff_t ahead = s ? 0 : n_rows * row_apart;
            double *total = sums + s * apart;
            m = n_rows - i < DPCD_SHORT_SUM ? n_rows - i : DPCD_SHORT_SUM;
            n = n_outputs - s >= 4 ? 4 : n_outputs - s >= 2 ? 2 : 1;
            for (k = 0; k < apart; k += 2 * DPCD_NAME(dpcd_n_pairs))
                if (n == 4)
                    DPCD_NAME(dpcd_whole_block)(x, m, row_apart, k, c, r_apart, ahead, 4, total);
                else if (n == 2)
                    DPCD_NAME(dpcd_whole_block)(x, m, row_apart, k, c, r_apart, ahead, 2, total);
                else
                    DPCD_NAME(dpcd_whole_block)(x, m, row_apart, k, c, r_apart, ahead, 1, total);
        }
}

#undef DPCD_PAIRS
#undef DPCD_LOAD_PAIRS
#undef DPCD_ADD_PAIRS
#undef DPCD_FILL_PAIRS
