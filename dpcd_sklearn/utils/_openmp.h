/* OpenMP where the compiler has it, one thread elsewhere. */
#ifndef DPCD_OPENMP_H
#define DPCD_OPENMP_H
#ifdef _OPENMP
#include <omp.h>
static inline int dpcd_most_threads(void) { return omp_get_max_threads(); }
#else
static inline int dpcd_most_threads(void) { return 1; }
#endif
#endif
