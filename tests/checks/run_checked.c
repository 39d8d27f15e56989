/* Runs a kernel, with access checks or without, on random inputs of one shape, and prints what came of it: a line
   "output" with a hash of O and LSE, one "recorded" of what probes recorded, a line for each event, and one with
   seconds.

     run_checked [-c] [-p] [-d] [-r ROUNDS] KERNEL.cu B,H,HKV,QLEN,KVLEN,D [causal] [bf16] ...

   -c: with checks; -p: without probes; -d: lanes in descending order; several shapes may follow each other. */
#include "engine/runners/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    int checks, rounds;
    enum probes probes;
    const char *kernel;
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

static void fill(void *to, enum dtype dtype, size_t n, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        dtype_store(dtype, to, i, ((double)(x >> 8) / (1 << 24) - 0.5) * 4);
    }
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
        printf("event %s %s:%d %s:%d b%d h%d q%d kv%d x%d: %s\n", e->kind, e->file, e->line, e->other_file,
               e->other_line, e->batch, e->head, e->q_tile, e->kv_tile, e->times, e->text);
    }
}

/* What a run is given. Zero-initialise; owned by the caller: inputs_free. */
struct inputs {
    int32_t (*slots)[3];
    void *q, *k, *v;
};

static void inputs_free(struct inputs *in)
{
    free(in->slots);
    free(in->q);
    free(in->k);
    free(in->v);
}

/* Every (batch, head, q tile) is recorded. */
static int inputs_make(const struct asc_problem *p, int q_tiles, struct inputs *in)
{
    const int n = p->batch * p->heads * q_tiles;
    const size_t nq = (size_t)p->batch * (size_t)p->heads * (size_t)p->q_len * (size_t)p->head_dim;
    const size_t nk = (size_t)p->batch * (size_t)p->kv_heads * (size_t)p->kv_len * (size_t)p->head_dim;
    *in = (struct inputs){malloc((size_t)n * sizeof *in->slots), malloc(nq * 4), malloc(nk * 4), malloc(nk * 4)};
    if (!in->slots || !in->q || !in->k || !in->v)
        return -1;
    for (int i = 0; i < n; i++) {
        in->slots[i][0] = i / q_tiles / p->heads;
        in->slots[i][1] = i / q_tiles % p->heads;
        in->slots[i][2] = i % q_tiles;
    }
    fill(in->q, (enum dtype)p->dtype, nq, 1);
    fill(in->k, (enum dtype)p->k_dtype, nk, 2);
    fill(in->v, (enum dtype)p->v_dtype, nk, 3);
    return 0;
}

static int run_shape(const struct options *o, struct child *c, const struct build *b, const struct asc_problem *p,
                     const char *shape)
{
    struct asc_plan plan;
    struct err err = {0};
    struct trace *t = NULL;
    if (child_load(c, p, &plan, &err) != 0)
        return fail(&err);
    const int q_tiles = (p->q_len + plan.br - 1) / plan.br, n = p->batch * p->heads * q_tiles;
    struct inputs in;
    if (inputs_make(p, q_tiles, &in) != 0) {
        inputs_free(&in);
        return 1;
    }
    const struct child_hello *hello = child_hello(c);
    struct layout_types types = {.o = hello->o_dtype >= 0 ? hello->o_dtype : p->dtype};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = -1;
    for (size_t i = 0; i < b->n_sites && o->probes; i++) {
        const enum asc_channel ch = b->sites[i].channel;
        const int own = hello->channel_dtype[ch];
        types.channel[ch] = own >= 0                                                   ? own
                            : ch == asc_q || ch == asc_k || ch == asc_v || ch == asc_o ? p->dtype
                                                                                       : DTYPE_F32;
    }
    struct asc_conventions conventions = hello->conventions;
    int failed =
        trace_create(p, &plan, &conventions, &types, (const int32_t(*)[3])in.slots, n, in.q, in.k, in.v, &t, &err);
    inputs_free(&in);
    if (failed)
        return fail(&err);
    snprintf(t->info.source_name, sizeof t->info.source_name, "%s", o->kernel);
    double best = INFINITY;
    for (int round = 0; round < o->rounds && !failed; round++) {
        failed = child_run(c, t, 300, NULL, &err);
        best = t->info.seconds < best ? t->info.seconds : best;
    }
    if (failed)
        printf("failed %s: %s\n", shape, err.message);
    else
        printf("output %016llx %s\nrecorded %016llx\n", (unsigned long long)hash_outputs(t), shape,
               (unsigned long long)hash_recorded(t));
    print_events(t);
    printf("seconds %.4f\n", best);
    trace_free(t);
    return failed ? 1 : 0;
}

static int read_problem(const char *shape, int causal, int dtype, struct asc_problem *p)
{
    *p = (struct asc_problem){.layout = ASC_BHLD,
                              .dtype = dtype,
                              .k_dtype = dtype,
                              .v_dtype = dtype,
                              .window_left = -1,
                              .window_right = -1,
                              .causal = causal ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE};
    const int n =
        sscanf(shape, "%d,%d,%d,%d,%d,%d", &p->batch, &p->heads, &p->kv_heads, &p->q_len, &p->kv_len, &p->head_dim);
    p->scale = 1.0f / sqrtf((float)p->head_dim);
    return n == 6 ? 0 : -1;
}

/* One shape and the words behind it; *at moves on. A build for each, since kernels are built for one instance. */
static int run_one(const struct options *o, const struct runner_paths *paths, char **argv, int argc, int *at)
{
    const char *shape = argv[(*at)++];
    int causal = 0, dtype = DTYPE_F16;
    for (; *at < argc && (strcmp(argv[*at], "causal") == 0 || strcmp(argv[*at], "bf16") == 0); (*at)++)
        if (argv[*at][0] == 'c')
            causal = 1;
        else
            dtype = DTYPE_BF16;
    struct asc_problem p;
    if (read_problem(shape, causal, dtype, &p) != 0) {
        fprintf(stderr, "run_checked: a shape is B,H,HKV,QLEN,KVLEN,D, found %s\n", shape);
        return 2;
    }
    const struct runner_progress progress = {.log = log_line};
    const struct build_request request = {
        .kernel = o->kernel, .probes = o->probes, .checks = o->checks, .dtype = dtype, .head_dim = p.head_dim};
    struct build b;
    struct child *c = NULL;
    struct err err = {0};
    if (build_debuggee(paths, &request, &progress, &b, &err) != 0)
        return fail(&err);
    int failed = child_start(b.program, &c, &err) ? fail(&err) : run_shape(o, c, &b, &p, shape);
    child_stop(c);
    build_free(&b);
    return failed;
}

int main(int argc, char **argv)
{
    struct options o = {.rounds = 1, .probes = PROBES_RECORD};
    int i = 1, failed = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-c") == 0)
            o.checks = 1;
        else if (strcmp(argv[i], "-p") == 0)
            o.probes = PROBES_NONE;
        else if (strcmp(argv[i], "-d") == 0)
            setenv("ATTNSCOPE_LANES", "descending", 1);
        else if (strcmp(argv[i], "-r") == 0 && i + 1 < argc)
            o.rounds = (int)strtol(argv[++i], NULL, 10);
    }
    struct runner_paths paths;
    struct err err = {0};
    if (i + 1 >= argc) {
        fprintf(stderr,
                "usage: run_checked [-c] [-p] [-d] [-r ROUNDS] KERNEL.cu B,H,HKV,QLEN,KVLEN,D [causal] [bf16]...\n");
        return 2;
    }
    if (runner_find_paths(&paths, &err) != 0)
        return fail(&err);
    o.kernel = argv[i++];
    while (i < argc)
        failed |= run_one(&o, &paths, argv, argc, &i);
    return failed;
}
