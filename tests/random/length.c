/* length: what is seen of a mistake in O and LSE of long rows, by length, and 1000 correct runs; as sections of
   docs/truth.md. Exits with 1 where a mistake is not found or a correct run is beyond a bound. Run number i is the same
   on every machine. */
#include "engine/base/pool.h"
#include "tests/unit/lib/long_kernel.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 256, LENGTHS = 4, DIM = 64, SEEN_ROWS = 64, SEEN_SEEDS = 4, FEW_ROWS = 8 };
static const int lengths[LENGTHS] = {4096, 16384, 65536, 262144};
static const unsigned correct_runs[LENGTHS] = {400, 300, 200, 100};
static const enum tensor_core cores[] = {TENSOR_CORE_F32, TENSOR_CORE_V100, TENSOR_CORE_A100, TENSOR_CORE_H100};

/* Of one length, with the tensor core known or not. */
struct seen {
    unsigned bound[LONG_MISTAKES], unusual[LONG_MISTAKES], found[LONG_MISTAKES], runs[LONG_MISTAKES];
    double least_bound, least_unusual; /* shares of a row of the smallest weight whose loss is seen */
    double median, size;               /* bound of O, O */
};

struct correct {
    unsigned runs, beyond, unusual;
    uint64_t elements;
    double worst;
};

struct job {
    atomic_uint next;
    struct judge_scratch *scratch[THREADS_MAX];
    struct seen seen[LENGTHS][2];
    struct correct correct[THREADS_MAX][LENGTHS];
};

static void judge(const struct long_spec *s, const struct long_data *data, struct judge_scratch *scratch,
                  struct long_result *out)
{
    if (long_judge(s, data, scratch, out) != 0)
        abort();
}

static bool beyond(const struct long_result *r)
{
    return r->bad_o || r->bad_lse;
}

/* The share of the smallest weight of row 0 whose loss is seen, all larger ones' being as well: by bisection. */
static double least_seen(struct long_spec s, const struct long_data *data, struct judge_scratch *scratch, bool unusual)
{
    int found = -1;
    double share = INFINITY;
    s.mistake = LONG_WEIGHT_LOST;
    s.rows = FEW_ROWS;
    for (int missed = s.keys; missed - found > 1;) {
        struct long_result r;
        s.rank = found + (missed - found) / 2;
        judge(&s, data, scratch, &r);
        if (unusual ? noise_unusual(&r.noise) : beyond(&r)) {
            found = s.rank;
            share = r.share;
        } else {
            missed = s.rank;
        }
    }
    return share;
}

static void look(struct seen *to, int keys, bool known, struct judge_scratch *scratch)
{
    for (unsigned seed = 0; seed < SEEN_SEEDS; seed++) {
        struct long_spec s = {
            .keys = keys, .rows = SEEN_ROWS, .dim = DIM, .core = TENSOR_CORE_H100, .known = known, .seed = seed};
        struct long_data data;
        if (!long_data_make(&data, &s))
            abort();
        for (int m = LONG_RIGHT + 1; m < LONG_MISTAKES; m++) {
            struct long_result r;
            s.mistake = (enum long_mistake)m;
            judge(&s, &data, scratch, &r);
            to->runs[m]++;
            to->bound[m] += beyond(&r);
            to->unusual[m] += noise_unusual(&r.noise);
            to->found[m] += beyond(&r) || noise_unusual(&r.noise);
            to->median = r.bound;
            to->size = r.size;
        }
        if (seed == 0) {
            to->least_bound = least_seen(s, &data, scratch, false);
            to->least_unusual = least_seen(s, &data, scratch, true);
        }
        long_data_free(&data);
    }
}

static void run_correct(unsigned number, int length, struct correct *to, struct judge_scratch *scratch)
{
    struct long_spec s = {.keys = lengths[length],
                          .rows = FEW_ROWS,
                          .dim = DIM,
                          .fill = (enum long_fill)(number % LONG_FILLS),
                          .core = cores[number / LONG_FILLS % 4],
                          .known = number / 3 % 2,
                          .reversed = number / 5 % 2,
                          .folds_alpha = number / 11 % 2,
                          .exp_low = number / 13 % 2,
                          .seed = 1000 + number};
    struct long_data data;
    struct long_result r;
    if (!long_data_make(&data, &s))
        abort();
    judge(&s, &data, scratch, &r);
    long_data_free(&data);
    to->runs++;
    to->beyond += beyond(&r);
    to->unusual += noise_unusual(&r.noise);
    to->elements += (uint64_t)s.rows * (DIM + 1);
    to->worst = fmax(to->worst, r.worst);
    if (beyond(&r) || noise_unusual(&r.noise))
        fprintf(stderr,
                "run %u of %d keys: fill %d, core %s, known %d, reversed %d: error/bound %.3g, row %.3g, slope "
                "%.3g in %.3g .. %.3g\n",
                number, s.keys, (int)s.fill, tensor_core_name(s.core), s.known, s.reversed, r.worst, r.noise.row,
                r.noise.slope, r.noise.low, r.noise.high);
}

/* The longest first. */
static int step(void *ctx, int worker)
{
    struct job *job = ctx;
    unsigned i = atomic_fetch_add(&job->next, 1);
    if (i < 2 * LENGTHS) {
        const int length = LENGTHS - 1 - (int)i / 2;
        look(&job->seen[length][i % 2], lengths[length], i % 2, job->scratch[worker]);
        return 1;
    }
    i -= 2 * LENGTHS;
    for (int length = LENGTHS - 1; length >= 0; length--) {
        if (i < correct_runs[length]) {
            run_correct(i, length, &job->correct[worker][length], job->scratch[worker]);
            return 1;
        }
        i -= correct_runs[length];
    }
    return 0;
}

/* How it was found, in all runs or in some. */
static void cell(const struct seen *x, enum long_mistake m)
{
    if (x->bound[m] == x->runs[m])
        printf(" | bound");
    else if (x->bound[m])
        printf(" | bound in %u of %u, unusual in %u", x->bound[m], x->runs[m], x->unusual[m]);
    else if (x->unusual[m] == x->runs[m])
        printf(" | unusual");
    else
        printf(" | unusual in %u of %u", x->unusual[m], x->runs[m]);
}

static bool print_seen(const struct job *job)
{
    bool found = true;
    printf("| keys, tensor core | rms of O | median bound of O | kv tile left out | two rows of V exchanged | a row's "
           "largest weight lost | O times 1 + 2⁻¹⁰ | smallest weight seen by its bound, as unusual |\n"
           "| --- | ---: | ---: | --- | --- | --- | --- | ---: |\n");
    for (int length = 0; length < LENGTHS; length++)
        for (int known = 1; known >= 0; known--) {
            const struct seen *x = &job->seen[length][known];
            printf("| %d, %s | %.1e | %.1e", lengths[length], known ? "h100" : "unknown", x->size, x->median);
            for (int m = LONG_RIGHT + 1; m < LONG_MISTAKES; m++) {
                cell(x, (enum long_mistake)m);
                found = found && x->found[m] == x->runs[m];
            }
            printf(" | %.1e, %.1e |\n", x->least_bound, x->least_unusual);
        }
    return found;
}

static bool print_correct(const struct job *job, int threads)
{
    bool clean = true;
    printf("\n| correct runs of | runs | elements judged | largest error/bound | unusual | false alarms |\n"
           "| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (int length = 0; length < LENGTHS; length++) {
        struct correct all = {0};
        for (int i = 0; i < threads; i++) {
            const struct correct *x = &job->correct[i][length];
            all.runs += x->runs;
            all.beyond += x->beyond;
            all.unusual += x->unusual;
            all.elements += x->elements;
            all.worst = fmax(all.worst, x->worst);
        }
        printf("| %d keys | %u | %llu | %.2f | %u | %u |\n", lengths[length], all.runs,
               (unsigned long long)all.elements, all.worst, all.unusual, all.beyond);
        clean = clean && all.beyond == 0;
    }
    return clean;
}

int main(void)
{
    static struct job job;
    struct pool *pool;
    struct err err = {0};
    if (pool_new(0, &pool, &err) != 0 || pool_threads(pool) > THREADS_MAX)
        return 3;
    const int threads = pool_threads(pool);
    for (int i = 0; i < threads; i++)
        if (!(job.scratch[i] = judge_scratch_new()))
            return 3;
    pool_start(pool, step, &job);
    pool_wait(pool);
    pool_free(pool);
    for (int i = 0; i < threads; i++)
        judge_scratch_free(job.scratch[i]);
    const bool found = print_seen(&job), clean = print_correct(&job, threads);
    return !found || !clean;
}
