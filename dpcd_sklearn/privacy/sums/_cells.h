/* Cells of numbers, and how many lie in each, for the portable code and AVX2: the same counts.
 *
 * A run of numbers lies side by side in memory: cells of a row, each with edges of its own, or of a
 * column. First the cells of a run are found, in vectors and without branches (data that no
 * predictor foresees cost four times as much), and then they are counted.
 */
#ifndef DPCD_CELLS_H
#define DPCD_CELLS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_kernels.h"

#define DPCD_RUN 512          /* numbers of a run at most */
#define DPCD_LOWEST -125      /* octave 0 holds what is below 2^-125, */
#define DPCD_LAST_OCTAVE 251  /* and the last one 2^125 and more */
#define DPCD_LAST_LINEAR 255
#define DPCD_LAST_REACH 127   /* half an octave each: distances of 1.5 * 2^62 units and more */
#define DPCD_EXPONENT_BIAS 1023

/* Which cells a number is counted in. */
enum { DPCD_OCTAVES, DPCD_LINEAR, DPCD_REACHES, DPCD_OUTSIDE };

/* counts[first[k] + cell of x[k]] += 1; octaves have no `lo` and `per_unit`. Numbers that lie so
 * many bytes `ahead` are asked of the memory. Outside is a run of which a number is not within `lo`
 * and `per_unit`: then counts[0] is odd. */
typedef void (*dpcd_count)(const void *x, int is_float, int cells, ptrdiff_t size, ptrdiff_t ahead,
                           const double *lo, const double *per_unit, const int32_t *first,
                           uint16_t *counts);

/* The octave of |x|, whose exponent is read off the bits; numbers below the normal ones are below
 * the least octave, and so is NaN. */
DPCD_INLINE int32_t dpcd_octave(double x)
{
    uint64_t bits;
    int32_t octave;
    memcpy(&bits, &x, sizeof bits);
    octave = (int32_t)(bits >> 52 & 0x7FF) - (DPCD_EXPONENT_BIAS + DPCD_LOWEST - 1);
    octave = octave > 0 ? octave : 0;
    octave = octave < DPCD_LAST_OCTAVE ? octave : DPCD_LAST_OCTAVE;
    return x == x ? octave : 0;
}

/* The linear cell of a number, in two steps; NaN lies in the first one. */
DPCD_INLINE double dpcd_from_first(double x, double lo, double per_unit)
{
    double at = (x - lo) * per_unit;
    return at > 0.0 ? at : 0.0;
}

DPCD_INLINE int32_t dpcd_cell_at(double at)
{
    return (int32_t)(at < DPCD_LAST_LINEAR ? at : DPCD_LAST_LINEAR);
}

DPCD_INLINE int32_t dpcd_linear(double x, double lo, double per_unit)
{
    return dpcd_cell_at(dpcd_from_first(x, lo, per_unit));
}

/* The half octave of a number's distance from a centre: those above it from 128 on, where less than
 * a unit is the first one, and those below it from 127 down. NaN lies in the outermost one. */
DPCD_INLINE int32_t dpcd_reach(double x, double center, double per_unit)
{
    double at = (x - center) * per_unit;
    uint64_t bits;
    int32_t reach;
    memcpy(&bits, &at, sizeof bits);
    reach = (int32_t)(bits >> 51 & 0xFFF) - (2 * DPCD_EXPONENT_BIAS - 1);
    reach = reach > 0 ? reach : 0;
    reach = reach < DPCD_LAST_REACH ? reach : DPCD_LAST_REACH;
    reach = at >= 0.0 ? DPCD_LAST_REACH + 1 + reach : DPCD_LAST_REACH - reach;
    return at == at ? reach : 0;
}

/* One loop for either type of numbers. */
#define DPCD_OF_RUN(found)                                            \
    if (is_float)                                                     \
        for (k = 0; k < size; k++) found(((const float *)x)[k]);      \
    else                                                              \
        for (k = 0; k < size; k++) found(((const double *)x)[k])
#define DPCD_OCTAVE_OF(v) at[k] = first[k] + dpcd_octave(v)
#define DPCD_FROM_FIRST(v) from_first[k] = dpcd_from_first(v, lo[k], per_unit[k])
#define DPCD_REACH_OF(v) at[k] = first[k] + dpcd_reach(v, lo[k], per_unit[k])
#define DPCD_LOOK_OUTSIDE(v) outside |= !(lo[k] <= (v)) | !((v) <= per_unit[k])

DPCD_INLINE void dpcd_count_run(const void *x, int is_float, int cells, ptrdiff_t size,
                                ptrdiff_t ahead,
                                const double *restrict lo, const double *restrict per_unit,
                                const int32_t *restrict first, uint16_t *restrict counts)
{
    int32_t at[DPCD_RUN];
    double from_first[DPCD_RUN]; /* in one loop compilers merge comparisons, at half the speed */
    int64_t outside = 0;
    uint64_t pair;
    ptrdiff_t k, l;
    if (cells == DPCD_OUTSIDE) {
        DPCD_OF_RUN(DPCD_LOOK_OUTSIDE);
        counts[0] |= outside;
        return;
    } else if (cells == DPCD_REACHES) {
        DPCD_OF_RUN(DPCD_REACH_OF);
    } else if (cells == DPCD_LINEAR) {
        DPCD_OF_RUN(DPCD_FROM_FIRST);
        for (k = 0; k < size; k++) at[k] = first[k] + dpcd_cell_at(from_first[k]);
    } else {
        DPCD_OF_RUN(DPCD_OCTAVE_OF);
    }
    /* memory is asked for here and there: requests in one burst would stop the counts */
    for (k = 0; k + 8 <= size; k += 8) {
        DPCD_PREFETCH((const char *)x + ahead + k * (is_float ? 4 : 8));
        for (l = k; l < k + 8; l += 2) { /* one load gives two places */
            memcpy(&pair, at + l, sizeof pair);
            counts[(uint32_t)pair]++;
            counts[pair >> 32]++;
        }
    }
    for (; k < size; k++) counts[at[k]]++;
}

#define DPCD_COUNT(name)                                                                         \
    static void name(const void *x, int is_float, int cells, ptrdiff_t size, ptrdiff_t ahead,    \
                     const double *lo, const double *per_unit, const int32_t *first,             \
                     uint16_t *counts)                                                           \
    {                                                                                            \
        dpcd_count_run(x, is_float, cells, size, ahead, lo, per_unit, first, counts);            \
    }

DPCD_COUNT(dpcd_count_portable)
#if DPCD_COMPILES_AVX2
DPCD_AVX2_BEGIN
DPCD_COUNT(dpcd_count_avx2)
DPCD_AVX2_END
#endif

static inline dpcd_count dpcd_choose_count(void)
{
#if DPCD_COMPILES_AVX2
    if (dpcd_uses_avx2()) return dpcd_count_avx2;
#endif
    return dpcd_count_portable;
}
#endif
