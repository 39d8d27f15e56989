/* numerics [--tsv FILE] [--vectors FILE] [--elements N] [--threads N] [--step N]: measures the first CUDA device; 77
   without one. --step: every n-th of 2^32 arguments and the ends of ranges; 1, all of them.
   numerics --replay FILE [--tsv FILE]: searches the arithmetic of recorded products instead.
   Exit status 1 if anything the oracle takes for granted does not hold. */
#include "tests/gpu/numerics.h"

#include <errno.h>
#include <stdlib.h>

struct options {
    const char *tsv, *vectors, *replay;
    int elements, threads, step;
};

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--tsv FILE] [--vectors FILE] [--elements N] [--threads N] [--step N] [--replay FILE]\n",
            program);
    return 2;
}

static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value)
            return -1;
        if (strcmp(argv[i], "--tsv") == 0)
            o->tsv = value;
        else if (strcmp(argv[i], "--vectors") == 0)
            o->vectors = value;
        else if (strcmp(argv[i], "--replay") == 0)
            o->replay = value;
        else if (strcmp(argv[i], "--elements") == 0)
            o->elements = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--threads") == 0)
            o->threads = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--step") == 0)
            o->step = (int)strtol(value, NULL, 10);
        else
            return -1;
    }
    return o->elements >= 1 && o->elements <= 1 << 20 && o->threads >= 0 && o->step >= 1 ? 0 : -1;
}

static int measure(struct numerics_device *d, const struct options *o, struct numerics_table *t)
{
    const char *why = "";
    int status = 0;
    numerics_table_start(t, d);
    if (numerics_products(d, t, o->elements, 1) != 0 || numerics_functions(d, t) != 0 ||
        numerics_conversions(d, t, o->threads) != 0)
        status = 1;
    if (o->vectors && numerics_record(d, o->vectors, &why) != 0) {
        fprintf(stderr, "%s: %s\n", o->vectors, why);
        status = 1;
    }
    return numerics_table_end(t) | status;
}

int main(int argc, char **argv)
{
    struct options o = {.elements = 8192, .step = 1};
    if (parse(argc, argv, &o) != 0)
        return usage(argv[0]);
    struct numerics_device d = {.function_step = (unsigned)o.step, .conversion_step = (unsigned)o.step};
    if (!o.replay) {
        const char *why = "";
        const int found = numerics_cuda_open(&d, &why);
        if (found != 1) {
            printf("%s: %s\n", found ? "FAIL" : "SKIP: no CUDA device", why);
            return found ? 1 : 77;
        }
    }
    struct numerics_table t = {.tsv = o.tsv ? fopen(o.tsv, "w") : NULL, .text = stdout};
    if (o.tsv && !t.tsv) {
        fprintf(stderr, "%s: %s\n", o.tsv, strerror(errno));
        return 1;
    }
    int status;
    if (o.replay) {
        snprintf(d.name, sizeof d.name, "%s", o.replay);
        numerics_table_start(&t, &d);
        status = numerics_replay(o.replay, &t) != 0;
        status |= numerics_table_end(&t);
    } else
        status = measure(&d, &o, &t);
    if (t.tsv && fclose(t.tsv) != 0) {
        fprintf(stderr, "%s: %s\n", o.tsv, strerror(errno));
        status = 1;
    }
    return status;
}
