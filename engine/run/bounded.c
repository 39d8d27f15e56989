#include "engine/run/bounded.h"

#include "engine/base/pool.h"
#include "engine/run/gpu_judge.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

int bounded_begin(struct bounded *b, int32_t (*places)[3], int64_t n, struct err *err)
{
    *b = (struct bounded){.places = places, .n = n};
    b->state = calloc((size_t)n + 1, sizeof *b->state);
    b->hash = calloc((size_t)n + 1, sizeof *b->hash);
    b->noise = calloc((size_t)n + 1, sizeof *b->noise);
    if (b->state && b->hash && b->noise)
        return 0;
    bounded_end(b);
    return err_no_memory(err, "", "the list of q tiles");
}

void bounded_end(struct bounded *b)
{
    free(b->places);
    free(b->state);
    free(b->hash);
    free(b->noise);
    *b = (struct bounded){0};
}

/* Whether place i is the first of its head. */
static bool begins_head(const struct bounded *b, int64_t i)
{
    return i == 0 || b->places[i][0] != b->places[i - 1][0] || b->places[i][1] != b->places[i - 1][1];
}

static int64_t head_end(const struct bounded *b, int64_t begin)
{
    int64_t end = begin + 1;
    while (end < b->n && !begins_head(b, end))
        end++;
    return end;
}

/* Whether the head that begins at place i is the first or the last wanted one of its batch. */
static bool outer_head(const struct bounded *b, int64_t begin, int64_t end)
{
    return begin == 0 || end == b->n || b->places[begin - 1][0] != b->places[begin][0] ||
           b->places[end][0] != b->places[begin][0];
}

void bounded_sample(struct bounded *b, const struct asc_problem *p, const struct asc_plan *plan, int64_t scores)
{
    const int64_t room = scores / ((int64_t)plan->br * p->kv_len);
    int64_t taken = 0;
    int64_t number = 0;
    if (b->n <= room) {
        memset(b->state, BOUNDED_SAMPLE, (size_t)b->n);
        return;
    }
    for (int64_t begin = 0, end = 0; begin < b->n; begin = end, number++) {
        end = head_end(b, begin);
        /* Another q tile in every head, so that all parts of the sequence have their turn: steps of the golden ratio
           fall evenly. */
        const double share = 0.6180339887498949 * (double)number;
        b->state[begin + (int64_t)((share - (double)(int64_t)share) * (double)(end - begin))] = BOUNDED_SAMPLE;
        if (outer_head(b, begin, end))
            b->state[begin] = b->state[end - 1] = BOUNDED_SAMPLE;
    }
    for (int64_t i = 0; i < b->n; i++)
        taken += b->state[i] == BOUNDED_SAMPLE;
    const int64_t more = room - taken;
    for (int64_t i = 0; i < more; i++)
        b->state[(int64_t)((double)i * (double)b->n / (double)more)] = BOUNDED_SAMPLE;
}

/* What the CPU says of one of the sample. */
struct cpu_verdict {
    int64_t bad;
    double worst;
};

static struct cpu_verdict cpu_verdict(const struct tile_verdicts *v)
{
    const struct verdict *o = &v[asc_o].global, *lse = &v[asc_lse].global;
    return (struct cpu_verdict){(int64_t)verdict_bad(o) + (int64_t)verdict_bad(lse),
                                fmax((double)o->worst_ratio, (double)lse->worst_ratio)};
}

struct job {
    struct bounded *b;
    const struct trace *t;
    const int32_t *types;
    struct judge_scratch **scratch;  /* owned, [threads] */
    struct tile_verdicts **verdicts; /* owned, [threads][kv_tiles][ASC_CHANNELS] */
    int64_t sample;
    struct cpu_verdict *out; /* borrowed, [n]; NULL: nobody asks */
    const struct runner_progress *progress;
    atomic_llong next, done;
    atomic_int failed;
};

static bool cancelled(const struct runner_progress *progress)
{
    return progress && progress->cancel && atomic_load(progress->cancel);
}

/* The worse of o and lse. */
static enum bounded_state state_of(const struct tile_verdicts *v)
{
    const struct verdict *o = &v[asc_o].local, *lse = &v[asc_lse].local;
    const int has_lse = lse->visited; /* of a kernel that writes none nothing is judged */
    if (verdict_bad(o) || verdict_bad(lse))
        return BOUNDED_OFF;
    return verdict_ok(o) && (!has_lse || verdict_ok(lse)) && !o->unjudged && !lse->unjudged ? BOUNDED_OK : BOUNDED_OPEN;
}

static int step(void *ctx, int worker)
{
    struct job *job = ctx;
    struct slot_case c;
    int64_t i = atomic_fetch_add(&job->next, 1);
    if (atomic_load(&job->failed) || cancelled(job->progress))
        return 0;
    while (i < job->b->n && job->b->state[i] != BOUNDED_SAMPLE)
        i = atomic_fetch_add(&job->next, 1);
    if (i >= job->b->n)
        return 0;
    int failed = place_case_make(job->t, job->b->places[i], job->types, &c) != 0;
    failed = failed || judge_case(&c.c, job->scratch[worker], job->verdicts[worker], NULL) != 0;
    slot_case_free(&c);
    if (failed)
        atomic_store(&job->failed, 1);
    if (!failed) {
        job->b->state[i] = (uint8_t)state_of(job->verdicts[worker]);
        job->b->noise[i] = *judge_noise(job->scratch[worker]);
        if (job->out)
            job->out[i] = cpu_verdict(job->verdicts[worker]);
    }
    const int64_t done = atomic_fetch_add(&job->done, 1) + 1;
    runner_report(job->progress, STEP_JUDGING_OUTPUT, (double)done, (double)job->sample);
    return 1;
}

static int prepare(struct job *job, int threads)
{
    job->scratch = calloc((size_t)threads, sizeof(struct judge_scratch *));
    job->verdicts = calloc((size_t)threads, sizeof(struct tile_verdicts *));
    int made = job->scratch && job->verdicts;
    for (int i = 0; i < threads && made; i++) {
        job->scratch[i] = judge_scratch_new();
        job->verdicts[i] = calloc((size_t)job->t->layout.kv_tiles * ASC_CHANNELS, sizeof **job->verdicts);
        made = job->scratch[i] && job->verdicts[i];
    }
    return made;
}

static void drop(struct job *job, int threads)
{
    for (int i = 0; i < threads; i++) {
        if (job->scratch)
            judge_scratch_free(job->scratch[i]);
        if (job->verdicts)
            free(job->verdicts[i]);
    }
    free(job->scratch);
    free(job->verdicts);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of tiles whose rows see about as many keys, one may differ from the median by this much: their errors' root mean
   square, a sum over thousands of elements; what they err by in proportion, by the width of what is expected. */
#define RUN_RATIO 1.5
#define RUN_SLOPE 0.5
enum { RUN_TILES = 8 /* of fewer there is no median to go by */, LENGTHS = 32 };

/* Tiles of one length, by powers of two, that are within their bounds. */
static bool counts(const struct bounded *b, int64_t i, int length)
{
    return (b->state[i] == BOUNDED_OK || b->state[i] == BOUNDED_UNUSUAL) && b->noise[i].known &&
           ilogb(b->noise[i].keys + 1.0) == length;
}

static double median(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

static void compare(struct bounded *b, int length, double *ratio, double *slope)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++) {
        if (!counts(b, i, length))
            continue;
        ratio[n] = b->noise[i].ratio;
        slope[n++] = b->noise[i].slope;
    }
    if (n < RUN_TILES)
        return;
    const double of_ratio = median(ratio, n), of_slope = median(slope, n);
    for (int64_t i = 0; i < b->n; i++) {
        const struct output_noise *x = &b->noise[i];
        if (counts(b, i, length) &&
            (x->ratio > RUN_RATIO * of_ratio || fabs(x->slope - of_slope) > RUN_SLOPE * (x->high - x->low)))
            b->state[i] = BOUNDED_UNUSUAL;
    }
}

int bounded_find_unusual(struct bounded *b)
{
    double *room = calloc(2 * (size_t)b->n + 1, sizeof *room);
    if (!room)
        return -1;
    for (int64_t i = 0; i < b->n; i++)
        if (b->state[i] == BOUNDED_OK && noise_unusual(&b->noise[i]))
            b->state[i] = BOUNDED_UNUSUAL;
    for (int length = 0; length < LENGTHS; length++)
        compare(b, length, room, room + b->n);
    free(room);
    return 0;
}

/* Judges the sample; out, [n]: may be NULL. */
static int judge_sample(struct bounded *b, const struct trace *t, const int32_t *types, struct cpu_verdict *out,
                        const struct runner_progress *progress, struct err *err)
{
    struct pool *pool = NULL;
    struct job job = {.b = b, .t = t, .types = types, .out = out, .progress = progress};
    for (int64_t i = 0; i < b->n; i++)
        job.sample += b->state[i] == BOUNDED_SAMPLE;
    if (pool_new(0, &pool, err) != 0)
        return -1;
    const int threads = pool_threads(pool);
    if (prepare(&job, threads)) {
        pool_start(pool, step, &job);
        pool_wait(pool);
    } else {
        atomic_store(&job.failed, 1);
    }
    drop(&job, threads);
    pool_free(pool);
    if (atomic_load(&job.failed))
        return err_no_memory(err, "", "judging");
    return cancelled(progress) ? err_set(err, ERR_CANCELLED, "", "cancelled while judging the first pass") : 0;
}

static int finish(struct bounded *b, struct err *err)
{
    if (bounded_find_unusual(b) != 0)
        return err_no_memory(err, "", "judging");
    b->judged = b->unusual = b->off = 0;
    for (int64_t i = 0; i < b->n; i++) {
        b->judged += b->state[i] == BOUNDED_OK || b->state[i] == BOUNDED_UNUSUAL || b->state[i] == BOUNDED_OFF;
        b->unusual += b->state[i] == BOUNDED_UNUSUAL;
        b->off += b->state[i] == BOUNDED_OFF;
    }
    return 0;
}

int bounded_judge(struct bounded *b, const struct trace *t, const int32_t *types,
                  const struct runner_progress *progress, struct err *err)
{
    const int failed = judge_sample(b, t, types, NULL, progress, err);
    struct err own = {0};
    return finish(b, failed ? &own : err) || failed ? -1 : 0;
}

enum { CONFIRM_BAD = 16, CONFIRM_OPEN = 64, CONFIRM_GOOD = 8 };

static enum bounded_state gpu_state(const struct gpu_verdict *v)
{
    return v->bad ? BOUNDED_OFF : v->open ? BOUNDED_OPEN : BOUNDED_OK;
}

/* Which of them the CPU looks at: sets them to BOUNDED_SAMPLE. The good ones are others in each run. */
static int64_t choose_confirmed(struct bounded *b, const struct gpu_verdict *of)
{
    int64_t worst = 0;
    int64_t good = 0;
    int64_t n = 0;
    int bad = 0;
    int open = 0;
    for (int64_t i = 0; i < b->n; i++) {
        worst = of[i].worst > of[worst].worst ? i : worst;
        good += b->state[i] == BOUNDED_OK;
    }
    for (int64_t i = 0; i < b->n; i++) {
        const enum bounded_state state = (enum bounded_state)b->state[i];
        const bool asked = (state == BOUNDED_OPEN && open++ < CONFIRM_OPEN) ||
                           ((state == BOUNDED_OFF || state == BOUNDED_UNUSUAL) && bad++ < CONFIRM_BAD);
        if (i == 0 || i == worst || asked)
            b->state[i] = BOUNDED_SAMPLE;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t random = (uint64_t)now.tv_nsec;
    for (int k = 0; k < CONFIRM_GOOD && good > 0; k++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        int64_t i = (int64_t)((random >> 11) % (uint64_t)b->n);
        for (int64_t tried = 0; tried < b->n && b->state[i] != BOUNDED_OK; tried++)
            i = (i + 1) % b->n;
        if (b->state[i] == BOUNDED_OK)
            b->state[i] = BOUNDED_SAMPLE;
    }
    for (int64_t i = 0; i < b->n; i++)
        n += b->state[i] == BOUNDED_SAMPLE;
    return n;
}

/* The GPU's bounds are a little wider (JUDGE_WIDER), more so where errors are as large as what they are of. */
#define SAME_RATIO 0.05

static bool same(double x, double y)
{
    return fabs(x - y) <= SAME_RATIO * fmax(fabs(x), fabs(y)) || (isinf(x) && isinf(y));
}

/* What is off by hardly more than the CPU's bound may be within the GPU's. In an O of 16 bits a bound takes in a whole
   step more or less: a ratio is not compared where one of the two is as large as that may be. */
static bool agrees(const struct gpu_verdict *gpu, const struct cpu_verdict *cpu, const struct output_noise *noise)
{
    enum { STEP = 2 };
    const int64_t few = STEP + (cpu->bad + 99) / 100;
    if (gpu->open)
        return true;
    return gpu->bad <= cpu->bad && gpu->bad >= cpu->bad - few && (gpu->bad || !cpu->bad || cpu->worst <= STEP) &&
           (same((float)gpu->worst, (float)cpu->worst) || (gpu->worst > 0.5 && cpu->worst > 0.5)) &&
           gpu->noise.known == noise->known &&
           (!noise->known || (same(gpu->noise.ratio, noise->ratio) && same(gpu->noise.row, noise->row) &&
                              same(gpu->noise.high, noise->high) && same(gpu->noise.low, noise->low)));
}

/* What the GPU said, less what the CPU does not confirm. 1: it does not. */
static int confirm(struct bounded *b, const struct trace *t, const int32_t *types, const struct gpu_judged *g,
                   const char *device, const struct runner_progress *progress, struct err *err)
{
    uint8_t *chosen = calloc((size_t)b->n + 1, sizeof *chosen);
    struct cpu_verdict *cpu = calloc((size_t)b->n + 1, sizeof *cpu);
    int64_t wrong = -1;
    int failed = !chosen || !cpu ? err_no_memory(err, "", "the judge's verdicts") : 0;
    for (int64_t i = 0; i < b->n && !failed; i++) {
        b->state[i] = (uint8_t)gpu_state(&g->tiles[i]);
        b->noise[i] = g->tiles[i].noise;
    }
    if (!failed && bounded_find_unusual(b) != 0)
        failed = err_no_memory(err, "", "judging");
    if (!failed) {
        const int64_t confirmed = choose_confirmed(b, g->tiles);
        memcpy(chosen, b->state, (size_t)b->n);
        failed = judge_sample(b, t, types, cpu, progress, err);
        b->by_gpu = b->n - confirmed;
    }
    for (int64_t i = 0; i < b->n && !failed && wrong < 0; i++)
        if (chosen[i] == BOUNDED_SAMPLE && !agrees(&g->tiles[i], &cpu[i], &b->noise[i]))
            wrong = i;
    if (!failed && wrong >= 0) {
        snprintf(b->judge, sizeof b->judge,
                 "the CPU: the judge on %.64s is wrong about b%d h%d q%d, and nothing that it said counts", device,
                 b->places[wrong][0], b->places[wrong][1], b->places[wrong][2]);
        memset(b->state, BOUNDED_UNJUDGED, (size_t)b->n);
        memset(b->noise, 0, (size_t)b->n * sizeof *b->noise);
        b->by_gpu = 0;
    } else if (!failed) {
        snprintf(b->judge, sizeof b->judge, "%.64s, and the CPU came to the same about %lld q tiles of %lld", device,
                 (long long)(b->n - b->by_gpu), (long long)b->n);
        for (int64_t i = 0; i < b->n; i++) /* nobody has judged these */
            b->by_gpu -= b->state[i] == BOUNDED_OPEN && chosen[i] != BOUNDED_SAMPLE;
    }
    free(chosen);
    free(cpu);
    return failed ? -1 : wrong >= 0;
}

int bounded_judge_on_gpu(struct bounded *b, const struct trace *t, const int32_t *types, const char *program,
                         const char *device, const struct runner_progress *progress, struct err *err)
{
    struct gpu_judged g;
    const char *unknown;
    if (gpu_judge_unknown(t, types, b->places, b->n, &unknown, err) != 0)
        return -1;
    if (unknown) {
        snprintf(b->judge, sizeof b->judge, "the CPU, since the judge on a GPU does not know this: %s", unknown);
        return 1;
    }
    if (gpu_judge_run(program, t, types, b->places, b->n, false, progress, &g, err) != 0) {
        if (err->code == ERR_CANCELLED)
            return -1;
        snprintf(b->judge, sizeof b->judge, "the CPU, since the judge on %.64s failed: %.90s", device, err->message);
        return 1;
    }
    int result = confirm(b, t, types, &g, device, progress, err);
    gpu_judged_free(&g);
    if (result == 0 && finish(b, err) != 0)
        result = -1;
    return result;
}

static uint64_t hash_of(const struct trace *t, const int32_t place[3])
{
    const struct asc_problem *p = &t->problem;
    const struct problem_tensor tensor = problem_tensor(p, TENSOR_O);
    const int first = place[2] * t->plan.br, rows = channel_valid_rows(asc_o, p, &t->plan, place[0], place[2], 0);
    enum dtype of_o;
    enum dtype of_lse;
    const unsigned char *o = trace_tensor(t, 'o', &of_o), *lse = trace_tensor(t, 'L', &of_lse);
    const int64_t head = (int64_t)place[0] * p->heads + place[1];
    uint64_t hash =
        XXH3_64bits(lse + (size_t)(head * p->q_len + first) * dtype_bytes(of_lse), (size_t)rows * dtype_bytes(of_lse));
    for (int r = 0; r < rows; r++) {
        const int64_t at = problem_tensor_at(&tensor, place[0], place[1], first + r);
        hash = XXH3_64bits_withSeed(o + (size_t)at * dtype_bytes(of_o), (size_t)tensor.cols * dtype_bytes(of_o), hash);
    }
    return hash;
}

void bounded_remember(struct bounded *b, const struct trace *t)
{
    for (int64_t i = 0; i < b->n; i++)
        b->hash[i] = hash_of(t, b->places[i]);
}

int64_t bounded_differing(const struct bounded *b, const struct trace *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++)
        n += b->hash[i] != hash_of(t, b->places[i]);
    return n;
}

static int compare_indices(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct choice {
    const struct bounded *b;
    uint8_t *taken; /* [n] */
    int64_t *index; /* [room] */
    int n, room;
};

static void take(struct choice *c, int64_t i)
{
    if (i < 0 || i >= c->b->n || c->taken[i] || c->n >= c->room)
        return;
    c->taken[i] = 1;
    c->index[c->n++] = i;
}

static void take_in_order(struct choice *c)
{
    const struct bounded *b = c->b;
    /* Of what is off, the first in every head, then the rest. */
    for (int64_t i = 0, end = 0; i < b->n; i = end) {
        end = head_end(b, i);
        while (i < end && b->state[i] != BOUNDED_OFF)
            i++;
        if (i < end)
            take(c, i);
    }
    for (int64_t i = 0; i < b->n; i++)
        if (b->state[i] == BOUNDED_OFF)
            take(c, i);
    for (int64_t i = 0; i < b->n; i++)
        if (b->state[i] == BOUNDED_UNUSUAL)
            take(c, i);
    for (int64_t i = 0; i < b->n; i++)
        if (b->state[i] == BOUNDED_OPEN)
            take(c, i);
    for (int64_t i = 0; i < b->n; i++) {
        if (b->state[i] != BOUNDED_OFF)
            continue;
        if (!begins_head(b, i))
            take(c, i - 1);
        if (i + 1 < b->n && !begins_head(b, i + 1))
            take(c, i + 1);
    }
    /* Evenly spread over all that is wanted, then what is left of it. */
    const int64_t more = c->room - c->n;
    for (int64_t i = 0; i < more; i++)
        take(c, (int64_t)((double)i * (double)b->n / (double)more));
    for (int64_t i = 0; i < b->n; i++)
        take(c, i);
}

int bounded_choose(const struct bounded *b, int32_t (*slots)[3], int room)
{
    struct choice c = {.b = b, .room = room};
    c.taken = calloc((size_t)b->n + 1, sizeof *c.taken);
    c.index = calloc((size_t)room + 1, sizeof *c.index);
    if (c.taken && c.index) {
        take_in_order(&c);
        qsort(c.index, (size_t)c.n, sizeof *c.index, compare_indices);
        for (int i = 0; i < c.n; i++)
            memcpy(slots[i], b->places[c.index[i]], sizeof slots[i]);
    }
    free(c.taken);
    free(c.index);
    return c.n;
}

enum { NAMED_MAX = 8 }; /* q tiles of a state, by name */

static void name_places(const struct bounded *b, enum bounded_state state, char *out, size_t bytes)
{
    size_t used = 0;
    int named = 0;
    for (int64_t i = 0; i < b->n && named <= NAMED_MAX; i++) {
        if (b->state[i] != state)
            continue;
        if (named++ == NAMED_MAX) {
            snprintf(out + used, bytes - used, ", ...");
            break;
        }
        used += (size_t)snprintf(out + used, bytes - used, "%sb%d h%d q%d", used ? ", " : "", b->places[i][0],
                                 b->places[i][1], b->places[i][2]);
    }
}

void bounded_describe(const struct bounded *b, int64_t differing, struct trace_capture *out)
{
    *out = (struct trace_capture){.wanted = b->n,
                                  .judged = b->judged,
                                  .off = b->off,
                                  .unusual = b->unusual,
                                  .by_gpu = b->by_gpu,
                                  .differing = differing};
    snprintf(out->judge, sizeof out->judge, "%s", b->judge);
    name_places(b, BOUNDED_OFF, out->off_places, sizeof out->off_places);
    name_places(b, BOUNDED_UNUSUAL, out->unusual_places, sizeof out->unusual_places);
}
