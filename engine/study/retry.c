#include "engine/study/retry.h"

#include "engine/study/difference.h"
#include "engine/verdict/reports.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Products of Q and K that a second run of the same shape may take. With checks, 2^27 of them take v2b_scalar 22 s on
   two cores, and the kernels with tensor cores 4 s; so these take 3 s at most. What is larger runs at (1, 1, 2 Br, 2
   Bc): more than one block, and a tile before and behind every other. */
#define CHEAP_PRODUCTS (1ull << 24)

/* Nothing is wrong, nor was reported. */
static bool is_clean(const struct trace *t, const struct judgement *j)
{
    return !j->n_findings && !j->summary.culprits && !j->summary.suspicious && !j->no_summary && judgement_any(j) &&
           !reports_count(t);
}

bool retry_wanted(const struct trace *t, const struct judgement *j)
{
    return j->complete && trace_complete(t) && !t->info.checked && !t->info.probes_off && !t->fed &&
           (findings_open(j) || is_clean(t, j));
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
    p->has_q_lens = p->has_kv_lens = 0; /* the longest one may be first */
    p->q_lens = p->kv_lens = NULL;
    p->q_len = shorter(p->q_len, 2 * t->plan.br);
    p->kv_len = shorter(p->kv_len, 2 * t->plan.bc);
    s.capture.n_batches = s.capture.n_heads = s.capture.n_q_tiles = 0;
    return s;
}

#define USUAL_ORDER "ascending"

struct retrying {
    struct recorder recorder;
    const struct runner_paths *paths;       /* borrowed */
    const struct runner_progress *progress; /* borrowed, or NULL */
    struct judge_scratch *scratch;          /* owned */
    const struct summary *wrong;            /* borrowed: of the first run */
    struct scenario scenario;               /* what is run; borrows what its owner has */
    unsigned open;                          /* stages of which nothing is known so far */
    bool output_right;                      /* what is wrong there has been recorded wrong, or declared otherwise */
    bool same, elsewhere;                   /* as large as the first run; which was one on a GPU */
    struct retry *found;
    char why[120]; /* the last run came to no trace; "": it did */
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
    r->why[0] = '\0';
    if (record(&r->recorder, r->paths, s, r->progress, out, &why) == 0)
        return 0;
    snprintf(r->why, sizeof r->why, "%.*s", (int)strcspn(why.message, "\n"), why.message);
    if (why.code != ERR_CANCELLED)
        return 0;
    trace_free(*out);
    *out = NULL;
    *err = why;
    return -1;
}

static int judge(struct retrying *r, const struct trace *t, struct judgement **out, struct err *err)
{
    int failed = judgement_new(t, out) != 0 || judgement_fingerprint(*out, t, &r->scratch, NULL) != 0;
    for (int slot = 0; slot < t->layout.n_slots && !failed && !is_cancelled(r); slot++)
        failed = judgement_slot(*out, t, slot, r->scratch) != 0;
    if (!failed && !is_cancelled(r))
        failed = judgement_summarize(*out, t, NULL, &(*out)->summary) != 0;
    if (is_cancelled(r))
        return err_set(err, ERR_CANCELLED, "", "cancelled while judging the second run");
    return failed ? err_no_memory(err, "", "the second run") : 0;
}

static bool has_raced(const struct found_again *it)
{
    return it->by == FOUND_BY_ORDER || (it->by == FOUND_BY_CHECKS && it->event.kind == EVENT_RACE);
}

static bool any_raced(const struct retry *found)
{
    bool any = false;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        any |= has_raced(&found->of[ch]);
    return any;
}

/* What the checks report between a stage's probe and the one before it, where that stage is wrong in this run too; and
   of the others what they report of its block. */
static void take_reports(struct retrying *r, const struct trace *t, const struct judgement *j)
{
    for (enum asc_channel ch = 0; ch < ASC_CHANNELS; ch++) {
        struct found_again *it = &r->found->of[ch];
        if (!((r->open & j->summary.culprits) & 1u << ch))
            continue;
        const struct trace_event *own = judgement_event(j, t, ch, false),
                                 *between = own ? own : judgement_event_of_read(j, t, ch, r->scratch),
                                 *any = between ? between : judgement_event_in_slots(j, t, ch);
        if (r->output_right && any && any->kind != EVENT_PROBE_RACE)
            continue;
        if (any)
            it->event = *any;
        it->has_event = any != NULL;
        it->in_part = any && judgement_event_in_part(j, t, ch, any, r->scratch);
        it->between = between != NULL;
        it->by = between ? FOUND_BY_CHECKS : FOUND_BY_RUN;
        r->open &= ~((unsigned)it->between << ch);
    }
}

/* "checks clean", of another shape or another machine with which: " on the CPU at 1,1,128,64". */
static void take_clean(struct retrying *r, const struct trace *t, const struct judgement *j)
{
    struct checked_again *out = &r->found->clean;
    const struct asc_problem *p = &t->problem;
    char at[80] = "", lines[80] = "";
    int wrong = 0;
    if (!r->same)
        snprintf(at, sizeof at, "%s at %d,%d,%d,%d", r->elsewhere ? " on the CPU" : "", p->batch, p->heads, p->q_len,
                 p->head_dim);
    const struct trace_event *first = NULL;
    for (size_t i = 0; i < t->info.n_events && !first; i++)
        first = event_is_mistake(t->info.events[i].kind) ? &t->info.events[i] : NULL;
    out->is = first || !trace_complete(t) || j->summary.culprits ? CHECKED_FOUND : CHECKED_CLEAN;
    if (first)
        event_lines(first, 1, lines, sizeof lines);
    while (wrong < ASC_CHANNELS && !(j->summary.culprits >> wrong & 1))
        wrong++;
    if (first)
        snprintf(out->words, sizeof out->words, "checks%s find %s %s", at, event_name(first->kind), lines);
    else if (!trace_complete(t))
        snprintf(out->words, sizeof out->words, "the run with checks%s ended early", at);
    else if (j->summary.culprits)
        snprintf(out->words, sizeof out->words, "with checks%s %s is wrong", at,
                 channel_label((enum asc_channel)wrong));
    else
        snprintf(out->words, sizeof out->words, "checks clean%s", at);
}

/* A race within a warp is none where its lanes advance together. */
static void take_lockstep(struct retrying *r, const struct trace *t, const struct judgement *j)
{
    for (int ch = 0; ch < ASC_CHANNELS && trace_complete(t); ch++)
        if (has_raced(&r->found->of[ch]) && j->summary.stage[ch].local == STAGE_OK)
            r->found->of[ch].by = FOUND_BY_LOCKSTEP;
}

/* With checks, in this order. */
static int run_checked(struct retrying *r, const char *lanes,
                       void (*take)(struct retrying *r, const struct trace *t, const struct judgement *j),
                       struct err *err)
{
    struct scenario checked = r->scenario;
    struct trace *t = NULL;
    struct judgement *j = NULL;
    checked.checks = 1;
    snprintf(checked.lanes, sizeof checked.lanes, "%s", lanes);
    int failed = run(r, &checked, STEP_CHECKED, &t, err);
    if (!failed && t)
        failed = judge(r, t, &j, err);
    if (!failed && t)
        take(r, t, j);
    judgement_free(j);
    trace_free(t);
    return failed;
}

/* What an order moves here and there is not what is wrong everywhere: of what was compared it has moved a quarter of
   the share that was wrong. */
static bool moves_enough(const struct channel_difference *c, const struct stage_summary *stage)
{
    const double moved = (double)(c->beyond + c->classes + c->coverage);
    return moved > 0 && 4 * moved * (double)stage->elements >= (double)stage->bad_local * (double)c->compared;
}

/* The open stages that differ from `base` in a run in this order, by more than the rounding of what they are made of
   there. */
static int moved_by(struct retrying *r, const struct trace *base, const char *lanes, unsigned *moved, struct err *err)
{
    struct scenario other = r->scenario;
    struct trace *t = NULL;
    struct difference d;
    struct err ignored = {0};
    *moved = 0;
    snprintf(other.lanes, sizeof other.lanes, "%s", lanes);
    if (run(r, &other, STEP_REORDERED, &t, err) != 0)
        return -1;
    if (t && trace_complete(t) && difference_check(base, t, "", "", &ignored) == 0 &&
        difference_find(base, t, 0, &d, &ignored) == 0)
        for (int ch = 0; ch < ASC_CHANNELS; ch++) {
            if (moves_enough(&d.channel[ch], &r->wrong->stage[ch]))
                *moved |= r->open & 1u << ch;
        }
    trace_free(t);
    return 0;
}

/* What differs in the same order too owes that to something else: to blocks, which run side by side. */
static int run_in_orders(struct retrying *r, const struct trace *base, struct err *err)
{
    static const char *const orders[] = {"descending", "shuffled:1"};
    unsigned moved = 0, some, unsteady;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0] && moved != r->open; i++) {
        if (moved_by(r, base, orders[i], &some, err) != 0)
            return -1;
        moved |= some;
    }
    if (!moved)
        return 0;
    if (moved_by(r, base, USUAL_ORDER, &unsteady, err) != 0)
        return -1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if ((moved | unsteady) & 1u << ch)
            r->found->of[ch].by = unsteady & 1u << ch ? FOUND_BY_REPEAT : FOUND_BY_ORDER;
    return 0;
}

/* The first run is the base where it had the order and the shape of these. */
static int try_orders(struct retrying *r, const struct trace *t, struct err *err)
{
    struct scenario usual = r->scenario;
    struct trace *own = NULL;
    if (!r->open || r->output_right)
        return 0;
    snprintf(usual.lanes, sizeof usual.lanes, "%s", USUAL_ORDER);
    if (!(is_cheap(t) && !getenv("ATTNSCOPE_LANES")) && run(r, &usual, STEP_REORDERED, &own, err) != 0)
        return -1;
    const struct trace *base = own ? own : t;
    const int failed = own && !trace_complete(own) ? 0 : run_in_orders(r, base, err);
    trace_free(own);
    return failed;
}

int retry_run(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *t,
              const struct judgement *j, const struct runner_progress *progress, struct retry *out, struct err *err)
{
    struct retrying r = {.paths = paths,
                         .progress = progress,
                         .scratch = judge_scratch_new(),
                         .wrong = &j->summary,
                         .scenario = smaller(scenario, t),
                         .open = findings_open(j),
                         .same = is_cheap(t),
                         .elsewhere = t->info.backend != BACKEND_CPU,
                         .output_right = j->n_findings && j->findings[j->n_findings - 1].output_right,
                         .found = out};
    memset(out, 0, sizeof *out);
    if (!r.scratch)
        return err_no_memory(err, "", "the second run");
    judge_scratch_watch(r.scratch, is_cancelled, &r);
    if (is_clean(t, j)) {
        const int cut = run_checked(&r, "", take_clean, err);
        if (r.why[0]) {
            out->clean.is = CHECKED_IMPOSSIBLE;
            snprintf(out->clean.words, sizeof out->clean.words, "not checked: %s", r.why);
        }
        judge_scratch_free(r.scratch);
        recorder_free(&r.recorder);
        return cut;
    }
    const int failed = run_checked(&r, "", take_reports, err) != 0 || try_orders(&r, t, err) != 0 ||
                       (any_raced(out) && run_checked(&r, "lockstep", take_lockstep, err) != 0);
    judge_scratch_free(r.scratch);
    recorder_free(&r.recorder);
    return failed ? -1 : 0;
}

int retry_tell(const struct retry *found, struct judgement *j)
{
    int failed = 0;
    j->checked = found->clean;
    for (int i = 0; i < j->n_findings; i++) {
        const struct found_again *it = &found->of[j->findings[i].channel];
        if (it->by != FOUND_BY_RUN && finding_is_open(&j->findings[i]) && (it->between || !j->findings[i].bare))
            failed |= finding_close(&j->findings[i], it);
    }
    return failed;
}

struct retry_scan {
    const struct runner_paths *paths; /* borrowed, as t and j */
    const struct trace *t;
    const struct judgement *j;
    struct scenario scenario; /* owned */
    void (*wake)(void *ctx);
    void *ctx;
    pthread_t thread;
    bool joinable;
    atomic_int cancel, step, told; /* step: enum runner_step; told: the one that was collected last */
    struct retry found;            /* the thread's until step is STEP_NONE */
    bool failed, taken;
};

static void scan_report(void *ctx, enum runner_step step, double done, double total)
{
    struct retry_scan *s = ctx;
    (void)done;
    (void)total;
    if (step == STEP_CHECKED || step == STEP_REORDERED)
        atomic_store(&s->step, step);
    s->wake(s->ctx);
}

static void *scan_thread(void *ctx)
{
    struct retry_scan *s = ctx;
    struct err ignored = {0};
    const struct runner_progress progress = {.report = scan_report, .ctx = s, .cancel = &s->cancel};
    s->failed = retry_run(s->paths, &s->scenario, s->t, s->j, &progress, &s->found, &ignored) != 0;
    atomic_store(&s->step, STEP_NONE);
    s->wake(s->ctx);
    return NULL;
}

int retry_scan_new(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *t,
                   const struct judgement *j, void (*wake)(void *ctx), void *ctx, struct retry_scan **out)
{
    struct retry_scan *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s || scenario_copy(scenario, &s->scenario) != 0) {
        free(s);
        return -1;
    }
    s->paths = paths;
    s->t = t;
    s->j = j;
    s->wake = wake;
    s->ctx = ctx;
    atomic_store(&s->step, STEP_CHECKED);
    s->joinable = pthread_create(&s->thread, NULL, scan_thread, s) == 0;
    if (!s->joinable) {
        retry_scan_free(s);
        return -1;
    }
    *out = s;
    return 0;
}

void retry_scan_cancel(struct retry_scan *s)
{
    atomic_store(&s->cancel, 1);
}

void retry_scan_finish(struct retry_scan *s)
{
    if (s->joinable)
        pthread_join(s->thread, NULL);
    s->joinable = false;
}

void retry_scan_free(struct retry_scan *s)
{
    if (!s)
        return;
    retry_scan_cancel(s);
    retry_scan_finish(s);
    scenario_free(&s->scenario);
    free(s);
}

enum runner_step retry_scan_step(const struct retry_scan *s)
{
    return (enum runner_step)atomic_load(&s->step);
}

const struct retry *retry_scan_collect(struct retry_scan *s, bool *changed)
{
    const int step = atomic_load(&s->step);
    *changed = atomic_exchange(&s->told, step) != step;
    if (step != STEP_NONE || s->taken)
        return NULL;
    retry_scan_finish(s);
    s->taken = true;
    return s->failed ? NULL : &s->found;
}
