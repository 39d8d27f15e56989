#include "tests/unit/lib/long_kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct long_spec s = {.keys = atoi(argv[1]), .rows = atoi(argv[2]), .dim = 64, .core = TENSOR_CORE_H100};
    s.fill = argc > 3 ? atoi(argv[3]) : 0;
    s.known = argc > 4 && atoi(argv[4]);
    s.core = argc > 5 ? atoi(argv[5]) : TENSOR_CORE_H100;
    s.reversed = argc > 6;
    struct judge_scratch *scratch = judge_scratch_new();
    struct long_data data;
    clock_t t0 = clock();
    long_data_make(&data, &s);
    printf("made %.2f s\n", (double)(clock() - t0) / CLOCKS_PER_SEC);
    for (int m = 0; m < LONG_MISTAKES; m++) {
        struct long_result r;
        s.mistake = m;
        t0 = clock();
        long_judge(&s, &data, scratch, &r);
        printf("%d: bad o %u lse %u worst %.3g bound %.3g size %.3g share %.2g; ratio %.3g row %.3g (limit %.3g) slope "
               "%.3g in %.3g %.3g%s  %.2f s\n",
               m, r.bad_o, r.bad_lse, r.worst, r.bound, r.size, r.share, r.noise.ratio, r.noise.row, r.noise.limit,
               r.noise.slope, r.noise.low, r.noise.high, noise_unusual(&r.noise) ? " UNUSUAL" : "",
               (double)(clock() - t0) / CLOCKS_PER_SEC);
    }
    return 0;
}
