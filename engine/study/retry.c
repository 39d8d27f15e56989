#include "engine/study/retry.h"

#include <stdlib.h>
#include <string.h>

/* Products of Q and K that a second run of the same shape may take. With checks, 2^27 of them take v2b_scalar 22 s on
   two cores, and the kernels with tensor cores 4 s; so these take 3 s at most. What is larger runs at (1, 1, 2 Br, 2
   Bc): more than one block, and a tile before and behind every other. */
#define CHEAP_PRODUCTS (1ull << 24)

bool retry_wanted(const struct trace *t, const struct judgement *j)
{
    return j->complete && trace_complete(t) && !t->info.checked && !t->info.probes_off && !t->fed && findings_open(j);
}

static bool is_cheap(const struct trace *t)
{
    const struct asc_problem *p = &t->problem;
    const double products = (double)p->batch * p->heads * p->q_len * p->kv_len * p->head_dim;
    return t->info.backend == BACKEND_CPU && !t->info.capture.wanted && products <= (double)CHEAP_PRODUCTS;
}

static int shorter(int length, int most)
{
    return length < most ? length : most;
}

/* What t is a run of, for the CPU; as large as it may be. Borrows what the scenario owns. */
static struct scenario smaller(const struct scenario *scenario, const struct trace *t)
{
    struct scenario s = *scenario;
    struct asc_problem *p = &s.problem;
    s.backend = SCENARIO_BACKEND_CPU;
    if (is_cheap(t))
        return s;
    p->batch = p->heads = p->kv_heads = 1;
    p->q_len = shorter(p->q_len, 2 * t->plan.br);
    p->kv_len = shorter(p->kv_len, 2 * t->plan.bc);
    s.capture.n_batches = s.capture.n_heads = s.capture.n_q_tiles = 0;
    return s;
}

struct retrying {
    struct recorder recorder;
    const struct runner_paths *paths;
    const struct runner_progress *progress;
    struct judge_scratch *scratch;
};

static int is_cancelled(void *ctx)
{
    const struct retrying *r = ctx;
    return r->progress && r->progress->cancel && atomic_load(r->progress->cancel);
}

/* A run that ended early says something too. */
static int run(struct retrying *r, const struct scenario *s, enum runner_step step, struct trace **out, struct err *err)
{
    struct err why = {0};
    runner_report(r->progress, step, 0, 0);
    if (record(&r->recorder, r->paths, s, r->progress, out, &why) == 0)
        return 0;
    if (why.code != ERR_CANCELLED)
        return 0;
    trace_free(*out);
    *out = NULL;
    *err = why;
    return -1;
}

static int judge(struct retrying *r, const struct trace *t, struct judgement **out, struct err *err)
{
    int failed = judgement_new(t, out) != 0 || judgement_fingerprint(*out, t, r->scratch) != 0;
    for (int slot = 0; slot < t->layout.n_slots && !failed && !is_cancelled(r); slot++)
        failed = judgement_slot(*out, t, slot, r->scratch) != 0;
    if (!failed && !is_cancelled(r))
        failed = judgement_summarize(*out, t, &(*out)->summary) != 0;
    if (is_cancelled(r))
        return err_set(err, ERR_CANCELLED, "", "cancelled while judging the second run");
    return failed ? err_no_memory(err, "", "the second run") : 0;
}

/* What the checks report between a stage's probe and the one before it, where that stage is wrong in this run too. */
static void take_reports(const struct trace *t, const struct judgement *j, unsigned open, struct retry *out)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct trace_event *e = (open & j->summary.culprits) & 1u << ch ? judgement_event(j, t, ch, false) : NULL;
        if (e)
            out->of[ch] = (struct retried){FOUND_BY_CHECKS, *e};
    }
}

static int run_checked(struct retrying *r, const struct scenario *s, unsigned open, struct retry *out, struct err *err)
{
    struct scenario checked = *s;
    struct trace *t = NULL;
    struct judgement *j = NULL;
    checked.checks = 1;
    int failed = run(r, &checked, STEP_CHECKED, &t, err);
    if (!failed && t)
        failed = judge(r, t, &j, err);
    if (!failed && t)
        take_reports(t, j, open, out);
    judgement_free(j);
    trace_free(t);
    return failed;
}

int retry_run(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *t,
              const struct judgement *j, const struct runner_progress *progress, struct retry *out, struct err *err)
{
    struct retrying r = {.paths = paths, .progress = progress, .scratch = judge_scratch_new()};
    const struct scenario s = smaller(scenario, t);
    memset(out, 0, sizeof *out);
    if (!r.scratch)
        return err_no_memory(err, "", "the second run");
    judge_scratch_watch(r.scratch, is_cancelled, &r);
    const int failed = run_checked(&r, &s, findings_open(j), out, err);
    judge_scratch_free(r.scratch);
    recorder_free(&r.recorder);
    return failed;
}

int retry_tell(const struct retry *found, struct judgement *j)
{
    int failed = 0;
    for (int i = 0; i < j->n_findings; i++) {
        const struct retried *it = &found->of[j->findings[i].channel];
        if (it->by != FOUND_BY_RUN && finding_is_open(&j->findings[i]))
            failed |= finding_close(&j->findings[i], it->by, &it->event);
    }
    return failed;
}
