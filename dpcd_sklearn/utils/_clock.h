/* Seconds of a clock that never goes back; no Python, so it may be read without the GIL. */
#ifndef DPCD_CLOCK_H
#define DPCD_CLOCK_H
#ifdef _WIN32
#include <windows.h>
static inline double dpcd_seconds(void)
{
    LARGE_INTEGER now, per_second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&per_second);
    return (double)now.QuadPart / (double)per_second.QuadPart;
}
#else
#include <time.h>
static inline double dpcd_seconds(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0.0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#endif
#endif
