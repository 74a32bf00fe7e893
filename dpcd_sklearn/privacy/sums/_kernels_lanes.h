/* Four doubles, and four 64-bit integers, as the kernels' bodies use them: AVX2 or plain C. */
#define DPCD_VECTOR DPCD_NAME(dpcd_vector)
#define DPCD_INTEGERS DPCD_NAME(dpcd_integers)

#if DPCD_BODY_AVX2
typedef __m256d DPCD_VECTOR;
typedef __m256i DPCD_INTEGERS;

DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_fill)(double x) { return _mm256_set1_pd(x); }
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_read_d)(const double *x) { return _mm256_loadu_pd(x); }
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_read_f)(const float *x)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(x));
}
DPCD_INLINE void DPCD_NAME(dpcd_write)(double *out, DPCD_VECTOR a) { _mm256_storeu_pd(out, a); }
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_add)(DPCD_VECTOR a, DPCD_VECTOR b)
{
    return _mm256_add_pd(a, b);
}
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_mul)(DPCD_VECTOR a, DPCD_VECTOR b)
{
    return _mm256_mul_pd(a, b);
}
/* max(min(a, hi), lo) with NaN sent to hi, as a < hi ? a : hi does. */
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_clip)(DPCD_VECTOR a, DPCD_VECTOR lo, DPCD_VECTOR hi)
{
    return _mm256_max_pd(_mm256_min_pd(a, hi), lo);
}
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_bits)(DPCD_VECTOR a) { return _mm256_castpd_si256(a); }
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_zeros)(void) { return _mm256_setzero_si256(); }
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_read_i)(const uint64_t *x)
{
    return _mm256_loadu_si256((const __m256i *)x);
}
DPCD_INLINE void DPCD_NAME(dpcd_write_i)(uint64_t *out, DPCD_INTEGERS a)
{
    _mm256_storeu_si256((__m256i *)out, a);
}
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_add_i)(DPCD_INTEGERS a, DPCD_INTEGERS b)
{
    return _mm256_add_epi64(a, b);
}
#else
typedef struct {
    double x[4];
} DPCD_VECTOR;
typedef struct {
    uint64_t x[4];
} DPCD_INTEGERS;

/* Constant indices, so that compilers keep the four in registers. */
#define DPCD_EACH(type, f)                    \
    type each;                                \
    each.x[0] = f(0);                         \
    each.x[1] = f(1);                         \
    each.x[2] = f(2);                         \
    each.x[3] = f(3);                         \
    return each;
#define DPCD_SAME(l) (x)
#define DPCD_ITEM(l) (x[l])
#define DPCD_SUM(l) (a.x[l] + b.x[l])
#define DPCD_PRODUCT(l) (a.x[l] * b.x[l])
#define DPCD_LEAST(l) (a.x[l] < hi.x[l] ? a.x[l] : hi.x[l]) /* NaN becomes hi */
#define DPCD_MOST(l) (a.x[l] > lo.x[l] ? a.x[l] : lo.x[l])

DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_fill)(double x) { DPCD_EACH(DPCD_VECTOR, DPCD_SAME) }
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_read_d)(const double *x)
{
    DPCD_EACH(DPCD_VECTOR, DPCD_ITEM)
}
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_read_f)(const float *x)
{
    DPCD_EACH(DPCD_VECTOR, DPCD_ITEM)
}
DPCD_INLINE void DPCD_NAME(dpcd_write)(double *out, DPCD_VECTOR a)
{
    memcpy(out, a.x, sizeof a.x);
}
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_add)(DPCD_VECTOR a, DPCD_VECTOR b)
{
    DPCD_EACH(DPCD_VECTOR, DPCD_SUM)
}
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_mul)(DPCD_VECTOR a, DPCD_VECTOR b)
{
    DPCD_EACH(DPCD_VECTOR, DPCD_PRODUCT)
}
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_min)(DPCD_VECTOR a, DPCD_VECTOR hi)
{
    DPCD_EACH(DPCD_VECTOR, DPCD_LEAST)
}
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_max)(DPCD_VECTOR a, DPCD_VECTOR lo)
{
    DPCD_EACH(DPCD_VECTOR, DPCD_MOST)
}
DPCD_INLINE DPCD_VECTOR DPCD_NAME(dpcd_clip)(DPCD_VECTOR a, DPCD_VECTOR lo, DPCD_VECTOR hi)
{
    return DPCD_NAME(dpcd_max)(DPCD_NAME(dpcd_min)(a, hi), lo);
}
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_bits)(DPCD_VECTOR a)
{
    DPCD_INTEGERS bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_read_i)(const uint64_t *x)
{
    DPCD_EACH(DPCD_INTEGERS, DPCD_ITEM)
}
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_zeros)(void)
{
    const uint64_t x = 0;
    DPCD_EACH(DPCD_INTEGERS, DPCD_SAME)
}
DPCD_INLINE void DPCD_NAME(dpcd_write_i)(uint64_t *out, DPCD_INTEGERS a)
{
    memcpy(out, a.x, sizeof a.x);
}
DPCD_INLINE DPCD_INTEGERS DPCD_NAME(dpcd_add_i)(DPCD_INTEGERS a, DPCD_INTEGERS b)
{
    DPCD_EACH(DPCD_INTEGERS, DPCD_SUM)
}
#undef DPCD_SAME
#undef DPCD_ITEM
#undef DPCD_SUM
#undef DPCD_PRODUCT
#undef DPCD_LEAST
#undef DPCD_MOST
#undef DPCD_EACH
#endif
