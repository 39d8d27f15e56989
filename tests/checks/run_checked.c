/* Runs a kernel, with access checks or without, on random inputs of one shape, and prints what came of it: a line
   "output" with a hash of O and LSE, one "recorded" of what probes recorded, a line for each event, and one with
   seconds.

     run_checked [-c] [-e] [-p] [-o ORDER,...] [-r ROUNDS] [-D MACRO]... KERNEL.cu B,H,HKV,QLEN,KVLEN,D [KEY=VALUE]...

   -c: with checks; -e: an event is a failure; -p: without probes; -o: values of ATTNSCOPE_LANES (docs/checks.md), a run
   with each. Several shapes may follow each other, each with keys of a scenario of its own; types that are not among
   them are the kernel's own.
 */
#include "engine/run/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    int rounds, event_fails;
    const char *orders; /* separated by commas: a run in each, of a process of its own */
    enum probes probes;
    struct scenario scenario; /* kernel, macros, checks */
};

static int fail(const struct err *err)
{
    printf("failed %s: %s\n", err->where, err->message);
    return 1;
}

static void log_line(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "%s\n", line);
}

/* FNV-1a, as good as any for "the same bits". */
static uint64_t hash(uint64_t h, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001B3u;
    return h;
}

#define HASH_BEGIN 0xCBF29CE484222325u

static uint64_t hash_outputs(const struct trace *t)
{
    uint64_t h = HASH_BEGIN;
    const struct layout_part *outputs[] = {&t->layout.o, &t->layout.lse};
    for (int i = 0; i < 2; i++)
        h = hash(h, t->bytes + outputs[i]->offset, outputs[i]->bytes);
    return h;
}

static uint64_t hash_recorded(const struct trace *t)
{
    uint64_t h = HASH_BEGIN;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; slot < t->layout.n_slots && t->layout.channel[ch].dtype >= 0; slot++)
            for (int kv = 0; kv < t->layout.channel[ch].n_kv; kv++) {
                const struct tile tile = trace_tile(t, (enum asc_channel)ch, slot, kv);
                h = hash(h, tile.data, (size_t)tile.rows * (size_t)tile.cols * dtype_bytes(tile.dtype));
            }
    return h;
}

static void print_events(const struct trace *t)
{
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        printf("event %s %s:%d %s:%d b%d h%d q%d kv%d x%d: %s\n", event_name(e->kind), e->file, e->line, e->other_file,
               e->other_line, e->batch, e->head, e->q_tile, e->kv_tile, e->times, e->text);
    }
}

static int set_shape(struct scenario *s, const char *shape, struct err *err)
{
    static const char *const keys[] = {"shape.batch", "shape.heads",  "shape.kv_heads",
                                       "shape.q_len", "shape.kv_len", "shape.head_dim"};
    char own[128], *rest = own;
    snprintf(own, sizeof own, "%s", shape);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *number = strsep(&rest, ",");
        if (scenario_set(s, keys[i], number ? number : "", err) != 0)
            return -1;
    }
    return 0;
}

/* One shape and the keys behind it; *at moves on. */
static int set_run(struct scenario *s, char **argv, int argc, int *at, struct err *err)
{
    if (set_shape(s, argv[(*at)++], err) != 0)
        return -1;
    for (; *at < argc && strchr(argv[*at], '='); (*at)++) {
        char key[64];
        const char *value = strchr(argv[*at], '=');
        snprintf(key, sizeof key, "%.*s", (int)(value - argv[*at]), argv[*at]);
        if (scenario_set(s, key, value + 1, err) != 0)
            return -1;
    }
    return scenario_check(s, err);
}

static int run(const struct options *o, const struct runner_paths *paths, struct scenario *s, const char *shape)
{
    struct recorder r = {0};
    struct trace *t = NULL;
    struct err err = {0};
    double best = INFINITY;
    const struct runner_progress progress = {.log = log_line};
    if (record_open(&r, paths, s, o->probes, o->probes != PROBES_NONE, &progress, &t, &err) != 0) {
        recorder_free(&r);
        return fail(&err);
    }
    int failed = 0;
    for (int round = 0; round < o->rounds && !failed; round++) {
        failed = child_run(r.child, t, s->limit_s, NULL, &err);
        best = t->info.seconds < best ? t->info.seconds : best;
    }
    if (failed)
        printf("failed %s: %s\n", shape, err.message);
    else
        printf("output %016llx %s\nrecorded %016llx\n", (unsigned long long)hash_outputs(t), shape,
               (unsigned long long)hash_recorded(t));
    print_events(t);
    failed |= o->event_fails && t->info.n_events;
    printf("seconds %.4f\n", best);
    trace_free(t);
    recorder_free(&r);
    return failed ? 1 : 0;
}

static int run_one(const struct options *o, const struct runner_paths *paths, char **argv, int argc, int *at)
{
    const char *shape = argv[*at];
    char orders[256], *rest = orders;
    int failed = 0;
    struct scenario s = o->scenario; /* nothing that it owns is set by these keys */
    struct err err = {0};
    if (set_run(&s, argv, argc, at, &err) != 0) {
        fprintf(stderr, "run_checked: %s: %s: %s\n", shape, err.where, err.message);
        exit(2);
    }
    snprintf(orders, sizeof orders, "%s", o->orders);
    for (const char *order; (order = strsep(&rest, ",")) != NULL;) {
        setenv("ATTNSCOPE_LANES", order, 1);
        failed |= run(o, paths, &s, shape);
    }
    return failed;
}

static int set(struct scenario *s, const char *key, const char *value)
{
    struct err err = {0};
    if (scenario_set(s, key, value, &err) == 0)
        return 0;
    fprintf(stderr, "run_checked: %s: %s\n", err.where, err.message);
    return 2;
}

/* What stands in front of the kernel; *at moves on. */
static int read_options(struct options *o, char **argv, int argc, int *at)
{
    struct err err = {0};
    int failed = 0;
    for (; *at < argc && argv[*at][0] == '-' && !failed; (*at)++) {
        const char *value = *at + 1 < argc ? argv[*at + 1] : "";
        if (strcmp(argv[*at], "-c") == 0) {
            failed = set(&o->scenario, "scenario.checks", "yes");
        } else if (strcmp(argv[*at], "-e") == 0) {
            o->event_fails = 1;
        } else if (strcmp(argv[*at], "-p") == 0) {
            o->probes = PROBES_NONE;
        } else {
            if (strcmp(argv[*at], "-o") == 0)
                o->orders = value;
            else if (strcmp(argv[*at], "-r") == 0)
                o->rounds = (int)strtol(value, NULL, 10);
            else if (strcmp(argv[*at], "-D") == 0 && scenario_define(&o->scenario, value, &err) != 0)
                failed = fail(&err);
            (*at)++;
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    struct options o = {.rounds = 1, .orders = "ascending", .probes = PROBES_RECORD};
    struct runner_paths paths;
    struct err err = {0};
    int i = 1, failed = 0;
    scenario_init(&o.scenario);
    if (read_options(&o, argv, argc, &i) != 0)
        return 2;
    if (i + 1 >= argc) {
        fprintf(stderr, "usage: run_checked [-c] [-e] [-p] [-o ORDER,...] [-r ROUNDS] [-D MACRO]... "
                        "KERNEL.cu B,H,HKV,QLEN,KVLEN,D [KEY=VALUE]...\n");
        return 2;
    }
    if (runner_find_paths(&paths, &err) != 0)
        return fail(&err);
    if (set(&o.scenario, "scenario.kernel", argv[i++]) != 0 || set(&o.scenario, "scenario.backend", "cpu") != 0)
        return 2;
    while (i < argc)
        failed |= run_one(&o, &paths, argv, argc, &i);
    scenario_free(&o.scenario);
    return failed;
}
