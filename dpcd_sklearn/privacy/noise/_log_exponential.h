/* Logarithms of exponentials; compiled twice by _noise.h.
 *
 * Additions, multiplications, divisions and comparisons of doubles, each correctly rounded by
 * IEEE 754, and no libm: the values are the same on every machine. The error's bound is in
 * proofs/log_exponential.md.
 */

/* x in (0, inf), normal, is (1 + f) 2^k with 1 + f in [sqrt(1/2), sqrt(2)); f is exact. */
DPCD_INLINE void DPCD_NAME(dpcd_split)(double x, double *f, double *k)
{
    uint64_t bits, exponent;
    double biased, m;
    memcpy(&bits, &x, sizeof bits);
    bits += DPCD_ONE - DPCD_ROOT_HALF;
    exponent = (bits >> 52) | DPCD_TWO_52;
    bits = (bits & DPCD_MANTISSA) + DPCD_ROOT_HALF;
    memcpy(&biased, &exponent, sizeof biased);
    memcpy(&m, &bits, sizeof m);
    *k = biased - (4503599627370496.0 + 1023.0); /* 2^52 + the exponent's bias */
    *f = m - 1.0;
}

/* log1p(f) + k log(2), for f in [sqrt(1/2) - 1, sqrt(2) - 1], about, and integer |k| < 2^10.
 *
 * With s = f / (2 + f) and z = s^2: log1p(f) = 2 atanh(s) = 2 s + s R = f - s (f - R), where
 * R = 2 (z / 3 + z^2 / 5 + ...), cut after z^10: |s| < 0.1717, the rest is below 2^-59 |f|. */
DPCD_INLINE double DPCD_NAME(dpcd_log)(double f, double k)
{
    double s = f / (2.0 + f), z = s * s, y = z * z, odd, even, R;
    odd = 2.0 / 3 + y * (2.0 / 7 + y * (2.0 / 11 + y * (2.0 / 15 + y * (2.0 / 19))));
    even = 2.0 / 5 + y * (2.0 / 9 + y * (2.0 / 13 + y * (2.0 / 17 + y * (2.0 / 21))));
    R = z * (odd + z * even);
    return k * DPCD_LOG2_HIGH + (k * DPCD_LOG2_LOW + (f - s * (f - R)));
}

/* h[i]: log(-log(h)) where h is positive, log(-log1p(-|h|)) where it is negative, in place;
 * 2^-400 < |h| <= 1/2. */
static void DPCD_NAME(dpcd_log_exponentials)(ptrdiff_t n, double *h)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        double a = h[i] < 0 ? -h[i] : h[i], f, k, f1, k1, E;
        DPCD_NAME(dpcd_split)(a, &f, &k);
        /* 1 - a is 1 + f1 or (1 + f1) / 2, on both sides of about 1 - sqrt(1/2); f1 is exact */
        f1 = a < 0.2929 ? -a : 1.0 - 2.0 * a;
        k1 = a < 0.2929 ? 0.0 : -1.0;
        E = -DPCD_NAME(dpcd_log)(h[i] < 0 ? f1 : f, h[i] < 0 ? k1 : k);
        DPCD_NAME(dpcd_split)(E, &f, &k);
        h[i] = DPCD_NAME(dpcd_log)(f, k);
    }
}
