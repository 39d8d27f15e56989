#ifndef SCREEN_CLOCK_H
#define SCREEN_CLOCK_H

#include <time.h>

/* The clock of session.activity_since. */
static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
