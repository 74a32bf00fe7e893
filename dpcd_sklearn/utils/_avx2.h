/* Code that is compiled twice, portable and with AVX2, and chosen once when a module is imported.
 *
 *     #define DPCD_NAME(f) f##_portable
 *     #include "_body.h"
 *     #undef DPCD_NAME
 *     #if DPCD_COMPILES_AVX2
 *     DPCD_AVX2_BEGIN
 *     #define DPCD_NAME(f) f##_avx2
 *     #include "_body.h"
 *     #undef DPCD_NAME
 *     DPCD_AVX2_END
 *     #endif
 *
 * Both give the same bits: the sources are the same, and neither contracts into FMA. Compilers and
 * processors without AVX2 have the portable code alone. The environment variable DPCD_PORTABLE=1
 * asks for it.
 */
#ifndef DPCD_AVX2_H
#define DPCD_AVX2_H
#include <stdlib.h>

#if defined(_MSC_VER)
#define DPCD_INLINE static __forceinline
#define restrict __restrict
#else
#define DPCD_INLINE static inline __attribute__((always_inline))
#endif

#if defined(__x86_64__) && defined(__clang__)
#define DPCD_COMPILES_AVX2 1
#define DPCD_AVX2_BEGIN \
    _Pragma("clang attribute push(__attribute__((target(\"avx2\"))), apply_to = function)")
#define DPCD_AVX2_END _Pragma("clang attribute pop")
#elif defined(__x86_64__) && defined(__GNUC__)
#define DPCD_COMPILES_AVX2 1
#define DPCD_AVX2_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx2\")")
#define DPCD_AVX2_END _Pragma("GCC pop_options")
#else
#define DPCD_COMPILES_AVX2 0
#endif

/* Whether to use what was compiled with AVX2. */
static inline int dpcd_uses_avx2(void)
{
#if DPCD_COMPILES_AVX2
    const char *portable = getenv("DPCD_PORTABLE");
    if (portable && *portable && *portable != '0') return 0;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}
#endif
