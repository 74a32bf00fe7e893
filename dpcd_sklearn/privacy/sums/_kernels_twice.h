/* Both compilations of the kernels, and the choice between them. */
#ifndef DPCD_KERNELS_TWICE_H
#define DPCD_KERNELS_TWICE_H
#include <float.h>
#include <math.h>
#include <string.h>

#include "_kernels.h"

#if DPCD_COMPILES_AVX2
#include <immintrin.h>
#endif

#if defined(__GNUC__)
/* Into the second cache: the tile that comes next must not push out the one that is summed. */
#define DPCD_PREFETCH(x) __builtin_prefetch((const void *)(x), 0, 2)
#else
#define DPCD_PREFETCH(x) ((void)0)
#endif

#define DPCD_LARGEST 1e90

/* NaN and infinity become DPCD_LARGEST before any clip. */
DPCD_INLINE double dpcd_bounded(double v)
{
    v = v < DPCD_LARGEST ? v : DPCD_LARGEST;
    return v > -DPCD_LARGEST ? v : -DPCD_LARGEST;
}

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

#define DPCD_NAME(f) f##_portable
#define DPCD_BODY_AVX2 0
#include "_kernels_body.h"
#undef DPCD_NAME
#undef DPCD_BODY_AVX2

#if DPCD_COMPILES_AVX2
DPCD_AVX2_BEGIN
#define DPCD_NAME(f) f##_avx2
#define DPCD_BODY_AVX2 1
#include "_kernels_body.h"
#undef DPCD_NAME
#undef DPCD_BODY_AVX2
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
