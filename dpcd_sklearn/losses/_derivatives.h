/* Derivatives of losses in the margins, vectorised; the same bits everywhere.
 *
 * The logistic one is sigmoid(margin) - target, the multinomial one softmax(margins), less one for
 * the target's margin. exp(x) = 2^k exp(r), k = rint(x / log 2), |r| <= log(2) / 2: Taylor's
 * polynomial of degree 12 leaves a relative error below 4e-16 in all. The C library's exp is exact
 * to the last bit or so, four times slower, and not the same on every machine.
 */
#ifndef DPCD_DERIVATIVES_H
#define DPCD_DERIVATIVES_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_avx2.h"

/* x is clipped to [-708, 708], NaN to 708, so that the result is a normal number. */
DPCD_INLINE double dpcd_exp(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    const double log2_high = 0x1.62e42fefa0000p-1, log2_low = 0x1.cf79abc9e3b3ap-40;
    double k, r, r2, r4, r8, low, middle, high, power;
    int64_t bits;
    x = x < 708.0 ? x : 708.0;
    x = x > -708.0 ? x : -708.0;
    k = x * 1.4426950408889634074 + magic;
    memcpy(&bits, &k, sizeof bits);
    k -= magic;
    r = (x - k * log2_high) - k * log2_low;
    r2 = r * r;
    r4 = r2 * r2;
    r8 = r4 * r4;
    low = (1.0 + r) + (0.5 + r * (1.0 / 6)) * r2;
    middle = ((1.0 / 24) + r * (1.0 / 120)) + ((1.0 / 720) + r * (1.0 / 5040)) * r2;
    high = ((1.0 / 40320) + r * (1.0 / 362880)) + ((1.0 / 3628800) + r * (1.0 / 39916800)) * r2;
    bits = (int64_t)((uint64_t)(bits + 1023) << 52);
    memcpy(&power, &bits, sizeof power);
    return ((low + middle * r4) + (high + r4 * (1.0 / 479001600)) * r8) * power;
}

typedef void (*dpcd_derivative)(ptrdiff_t n, const double *margin, const double *target,
                                double *out);
typedef struct {
    dpcd_derivative squared, logistic;
    void (*multinomial)(ptrdiff_t n, ptrdiff_t n_outputs, const double *margins,
                        const double *target, double *out);
} dpcd_derivatives;

#define DPCD_TOGETHER 64 /* records of a softmax at a time */

#define DPCD_NAME(f) f##_portable
#include "_derivatives_body.h"
#undef DPCD_NAME

#if DPCD_COMPILES_AVX2
DPCD_AVX2_BEGIN
#define DPCD_NAME(f) f##_avx2
#include "_derivatives_body.h"
#undef DPCD_NAME
DPCD_AVX2_END
#endif

static inline const dpcd_derivatives *dpcd_choose_derivatives(void)
{
#if DPCD_COMPILES_AVX2
    if (dpcd_uses_avx2()) return &dpcd_derivatives_avx2;
#endif
    return &dpcd_derivatives_portable;
}
#endif
