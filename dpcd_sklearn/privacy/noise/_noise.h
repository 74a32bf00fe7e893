/* The hot loops of the noise source, portable and with AVX2. Both give the same bits. */
#ifndef DPCD_NOISE_H
#define DPCD_NOISE_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_avx2.h"

/* ---- _chacha20.h ---- */
#define DPCD_ADD_XOR_ROTATE(a, b, d, r) \
    a += b;                             \
    d ^= a;                             \
    d = (d << (r)) | (d >> (32 - (r)));
#define DPCD_QUARTER(a, b, c, d)      \
    DPCD_ADD_XOR_ROTATE(a, b, d, 16)  \
    DPCD_ADD_XOR_ROTATE(c, d, b, 12)  \
    DPCD_ADD_XOR_ROTATE(a, b, d, 8)   \
    DPCD_ADD_XOR_ROTATE(c, d, b, 7)

/* ---- _log_exponential.h ---- */
#define DPCD_ONE UINT64_C(0x3ff0000000000000)       /* the bits of 1.0 */
#define DPCD_ROOT_HALF UINT64_C(0x3fe6a09e667f3bcd) /* the bits of sqrt(1/2) */
#define DPCD_TWO_52 UINT64_C(0x4330000000000000)    /* the bits of 2^52 */
#define DPCD_MANTISSA UINT64_C(0x000fffffffffffff)
#define DPCD_LOG2_HIGH 0x1.62e42fefa38p-1 /* log(2) = HIGH + LOW; HIGH has 42 bits: k HIGH is exact */
#define DPCD_LOG2_LOW 0x1.ef35793c7673p-45

#define DPCD_NAME(f) f##_portable
#if defined(__GNUC__)
#define DPCD_LANES 4
#else
#define DPCD_LANES 1
#endif
#include "_chacha20.h"
#include "_log_exponential.h"
#undef DPCD_NAME
#undef DPCD_LANES

#if DPCD_COMPILES_AVX2
DPCD_AVX2_BEGIN
#define DPCD_NAME(f) f##_avx2
#define DPCD_LANES 8
#include "_chacha20.h"
#include "_log_exponential.h"
#undef DPCD_NAME
#undef DPCD_LANES
DPCD_AVX2_END
#endif

static void dpcd_chacha20(int avx2, const uint32_t *key, const uint32_t *nonce, uint32_t counter,
                          int n_blocks, uint64_t *out)
{
#if DPCD_COMPILES_AVX2
    if (avx2) {
        dpcd_chacha20_avx2(key, nonce, counter, n_blocks, out);
        return;
    }
#endif
    dpcd_chacha20_portable(key, nonce, counter, n_blocks, out);
}

static void dpcd_log_exponentials(int avx2, ptrdiff_t n, double *h)
{
#if DPCD_COMPILES_AVX2
    if (avx2) {
        dpcd_log_exponentials_avx2(n, h);
        return;
    }
#endif
    dpcd_log_exponentials_portable(n, h);
}

/* Overwrites secrets; a memset of memory that nobody reads again may be left out. */
static void dpcd_wipe(void *memory, size_t size)
{
    volatile unsigned char *byte = (volatile unsigned char *)memory;
    while (size--) *byte++ = 0;
}
#endif
