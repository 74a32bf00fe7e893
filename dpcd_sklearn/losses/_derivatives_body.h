/* One compilation of the losses' derivatives: DPCD_NAME says which. */

static void DPCD_NAME(dpcd_squared)(ptrdiff_t n, const double *margin, const double *target,
                                    double *restrict out)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) out[i] = margin[i] - target[i];
}

static void DPCD_NAME(dpcd_logistic)(ptrdiff_t n, const double *margin, const double *target,
                                     double *restrict out)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) out[i] = 1.0 / (1.0 + dpcd_exp(-margin[i])) - target[i];
}

/* Record i has the margins k n + i. A total is of K terms in their order, one of which is one. */
static void DPCD_NAME(dpcd_multinomial)(ptrdiff_t n, ptrdiff_t n_outputs,
                                        const double *restrict margins,
                                        const double *restrict target, double *restrict out)
{
    double largest[DPCD_TOGETHER], total[DPCD_TOGETHER];
    ptrdiff_t start, i, k;
    for (start = 0; start < n; start += DPCD_TOGETHER) {
        ptrdiff_t size = n - start < DPCD_TOGETHER ? n - start : DPCD_TOGETHER;
        for (i = 0; i < size; i++) largest[i] = margins[start + i];
        for (k = 1; k < n_outputs; k++) {
            const double *margin = margins + k * n + start;
            for (i = 0; i < size; i++) largest[i] = margin[i] > largest[i] ? margin[i] : largest[i];
        }
        for (i = 0; i < size; i++) total[i] = 0.0;
        for (k = 0; k < n_outputs; k++) {
            const double *margin = margins + k * n + start;
            double *power = out + k * n + start;
            for (i = 0; i < size; i++) {
                power[i] = dpcd_exp(margin[i] - largest[i]);
                total[i] += power[i];
            }
        }
        for (k = 0; k < n_outputs; k++) {
            double *share = out + k * n + start;
            for (i = 0; i < size; i++)
                share[i] = share[i] / total[i] - (target[start + i] == (double)k);
        }
    }
}

static const dpcd_derivatives DPCD_NAME(dpcd_derivatives) = {
    DPCD_NAME(dpcd_squared),
    DPCD_NAME(dpcd_logistic),
    DPCD_NAME(dpcd_multinomial),
};
