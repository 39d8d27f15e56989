/* bench_stages KERNEL RUNS [KEY=VALUE...]: runs a kernel once, has all its captured stages judged RUNS times by a judge
   on the GPU that stays, and prints one JSON object: how long each took, and its parts. The first one pins the trace.
 */
#include "engine/base/clock.h"
#include "engine/run/gpu_judge.h"
#include "engine/run/gpu_stages.h"
#include "engine/session/session.h"
#include "engine/verdict/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct err *err)
{
    fprintf(stderr, "bench_stages: %s%s%s\n", err->where, err->where[0] ? ": " : "", err->message);
    return 3;
}

static int set(struct session *s, char *setting, struct err *err)
{
    char *value = strchr(setting, '=');
    if (!value)
        return err_set(err, ERR_INPUT, setting, "is no KEY=VALUE");
    *value = '\0';
    return scenario_set(&s->subject.scenario, setting, value + 1, err);
}

static int measure(const struct session *s, long runs, struct err *err)
{
    const struct trace *t = s->run.trace;
    const struct judgement *j = s->run.judgement;
    char program[600], device[64];
    const char *unknown;
    if (gpu_judge_find(&s->subject.paths, program, sizeof program, device, sizeof device, err) != 0)
        return -1;
    if (gpu_stages_unknown(t, j->fingerprint, &unknown) != 0 || unknown)
        return err_set(err, ERR_INPUT, "", "the judge on a GPU does not know this: %s",
                       unknown ? unknown : "no memory");
    struct pool *pool = NULL;
    if (pool_new(0, &pool, err) != 0)
        return -1;
    struct gpu_process *p = gpu_process_start(program);
    int failed = !p || !gpu_process_device(p, NULL, err);
    printf("{\"device\": \"%s\", \"verdict\": \"%s\", \"trace_bytes\": %llu, \"slots\": %d, \"judge\": \"%s\", "
           "\"runs\": [",
           device, session_verdict_word(s), (unsigned long long)t->layout.total_bytes, j->n_slots, j->judge);
    int good = 0;
    int agreed = 0;
    for (long i = 0; i < runs && !failed; i++) {
        struct gpu_stages g;
        const double begun = clock_seconds();
        failed = gpu_stages_judge(program, p, pool, t, j->fingerprint, NULL, &g, err);
        if (failed)
            break;
        const struct gpu_process_spent spent = gpu_process_spent(p);
        printf("%s\n {\"total\": %.6f, \"copying\": %.6f, \"judging\": %.6f}", i ? "," : "", clock_seconds() - begun,
               spent.copying, spent.judging);
        good = g.n_good;
        agreed = 0;
        for (int slot = 0; slot < j->n_slots; slot++)
            agreed += g.good[slot] && gpu_stages_agree(g.tiles + (size_t)slot * (size_t)j->kv_tiles * ASC_CHANNELS,
                                                       judgement_tiles(j, slot), j->kv_tiles);
        gpu_stages_free(&g);
    }
    printf("],\n \"good\": %d, \"agreed\": %d}\n", good, agreed);
    gpu_process_stop(p);
    pool_free(pool);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct session *s = NULL;
    const long runs = argc >= 3 ? strtol(argv[2], NULL, 10) : 0;
    if (runs < 1) {
        fprintf(stderr, "usage: bench_stages KERNEL RUNS [KEY=VALUE...]\n");
        return 2;
    }
    int failed = session_open(argv[1], &s, &err);
    for (int i = 3; i < argc && !failed; i++)
        failed = set(s, argv[i], &err);
    failed = failed || scenario_check(&s->subject.scenario, &err) != 0 || session_start(s) != 0;
    if (!failed) {
        session_finish(s, 0);
        err = s->job.err;
        failed = err.code != ERR_NONE || measure(s, runs, &err) != 0;
    }
    session_free(s);
    return failed ? fail(&err) : 0;
}
