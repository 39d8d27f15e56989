/* bias_null RUNS: correct runs of a kernel, of every order of summing, tensor core, fill and mask: a bias that is found
   in any stage or kv tile of them is a false alarm. Prints what was said about each stage, and the largest |z| of a
   regression; exits with 1 after a false alarm. Run number i is the same on every machine. */
#include "engine/base/pool.h"
#include "tests/unit/lib/rounding_runs.h"
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS_MAX = 256 };

struct tally {
    uint64_t state[ASC_CHANNELS][ROUNDING_FOUND + 1];
    uint64_t cells, fitted, false_alarms;
    double most_z;
    unsigned first_false;
};

struct job {
    unsigned runs;
    atomic_uint next;
    struct judge_scratch *scratch[THREADS_MAX];
    struct tally tally[THREADS_MAX];
};

static int step(void *ctx, int worker)
{
    struct job *job = ctx;
    struct tally *t = &job->tally[worker];
    const unsigned i = atomic_fetch_add(&job->next, 1);
    if (i >= job->runs)
        return 0;
    struct rounding_result *result = calloc(1, sizeof *result);
    const struct rounding_run r = rounding_correct_run(i);
    if (!result)
        abort();
    rounding_judge(&r, job->scratch[worker], result);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int kv = 0; kv <= result->kv_tiles; kv++) {
            const struct rounding_cell *cell = &result->cells[ch * (result->kv_tiles + 1) + kv];
            t->cells += cell->state != ROUNDING_UNRECORDED;
            if (cell->fit.state == CLUSTERED_FITTED && cell->elements && cell->barred == ROUNDING_CLEAR) {
                t->fitted++;
                t->most_z = fmax(t->most_z, fabs(cell->fit.z));
            }
            if (kv == result->kv_tiles)
                t->state[ch][cell->state]++;
            if (cell->state != ROUNDING_FOUND)
                continue;
            char words[256];
            rounding_words((enum asc_channel)ch, cell, words, sizeof words);
            printf("run %u: %s, kv tile %d of %d, fill %d, core %d, summing %d, D %d, causal %d: %s\n", i,
                   channel_name((enum asc_channel)ch), kv, result->kv_tiles, (int)r.spec.fill, r.spec.core,
                   (int)r.spec.summing, r.spec.head_dim, (int)r.spec.causal, words);
            t->first_false = t->false_alarms++ ? t->first_false : i;
        }
    free(result);
    return 1;
}

int main(int argc, char **argv)
{
    static struct job job;
    struct pool *pool;
    struct err err = {0};
    job.runs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (argc != 2 || job.runs == 0) {
        fprintf(stderr, "usage: bias_null RUNS\n");
        return 2;
    }
    if (pool_new(0, &pool, &err) != 0 || pool_threads(pool) > THREADS_MAX)
        return 3;
    for (int i = 0; i < pool_threads(pool); i++)
        if (!(job.scratch[i] = judge_scratch_new()))
            return 3;
    pool_start(pool, step, &job);
    pool_wait(pool);
    struct tally all = {0};
    for (int i = 0; i < pool_threads(pool); i++) {
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            for (int state = 0; state <= ROUNDING_FOUND; state++)
                all.state[ch][state] += job.tally[i].state[ch][state];
        all.cells += job.tally[i].cells;
        all.fitted += job.tally[i].fitted;
        all.false_alarms += job.tally[i].false_alarms;
        all.most_z = fmax(all.most_z, job.tally[i].most_z);
        judge_scratch_free(job.scratch[i]);
    }
    pool_free(pool);
    printf(
        "%u correct runs, %llu verdicts, %llu of them could be a regression's (largest |z| %.2f): %llu false alarms\n",
        job.runs, (unsigned long long)all.cells, (unsigned long long)all.fitted, all.most_z,
        (unsigned long long)all.false_alarms);
    printf("%-8s %12s %12s %12s\n", "stage", "none", "inconclusive", "found");
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        printf("%-8s %12llu %12llu %12llu\n", channel_name((enum asc_channel)ch),
               (unsigned long long)all.state[ch][ROUNDING_NONE],
               (unsigned long long)all.state[ch][ROUNDING_INCONCLUSIVE],
               (unsigned long long)all.state[ch][ROUNDING_FOUND]);
    return all.false_alarms > 0;
}
