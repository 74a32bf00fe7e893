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

static const dpcd_derivatives DPCD_NAME(dpcd_derivatives) = {
    DPCD_NAME(dpcd_squared),
    DPCD_NAME(dpcd_logistic),
};
