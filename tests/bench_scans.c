/* How a large run feels: bench_scans KERNEL B,H,L,D [KEY=VALUE...]. It is recorded once, as far as capture.mem reaches.
   Then every view is opened, and each scan over all heads runs while frames are drawn: how long one takes, what is
   between a key and the end of a scan that is stopped, and how long the scan is. */
#include "engine/base/pool.h"
#include "engine/session/look.h"
#include "engine/verdict/onset.h"
#include "tests/bench_samples.h"
#include "tui/views/view.h"

#include <stdatomic.h>
#include <string.h>

enum { COLS = 200, ROWS = 60, PAUSE_US = 5000, BEFORE_STOP_MS = 300 };

static struct canvas canvas;

/* One turn of the screen's loop without its terminal, the cursor moving on. Returns its milliseconds. */
static double frame(struct session *s, enum view_id view)
{
    const double begin = now_ms();
    session_update(s);
    session_step_kv(s, 1);
    session_look(s, views[view]->looks);
    const struct view_state state = {.top = view_start_top(view, s, COLS, ROWS)};
    canvas_clear(&canvas);
    view_draw(view, s, &canvas, &state);
    return now_ms() - begin;
}

static int run(struct session *s, int argc, char **argv, struct err *err)
{
    struct samples screen = {.n = 0};
    if (scenario_parse_shape(argv[2], &s->subject.scenario.problem, err) != 0)
        return -1;
    for (int i = 3; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals)
            return err_set(err, ERR_USAGE, argv[i], "expected KEY=VALUE");
        *equals = '\0';
        if (scenario_set(&s->subject.scenario, argv[i], equals + 1, err) != 0)
            return -1;
    }
    s->subject.scenario.limit_s = 1800;
    if (scenario_check(&s->subject.scenario, err) != 0)
        return -1;
    const double begin = now_ms();
    if (session_start(s) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    while (session_busy(s)) {
        sample(&screen, frame(s, VIEW_OVERVIEW));
        usleep(PAUSE_US);
    }
    session_finish(s, 0);
    if (!s->run.trace || !s->run.judgement || !s->run.judgement->complete) {
        *err = s->job.err;
        return -1;
    }
    printf("%-44s %9.0f   %zu MiB, %d of %d q tiles\n", "run, record, judge, find causes", now_ms() - begin,
           (size_t)(s->run.trace->layout.total_bytes >> 20), s->run.trace->layout.n_slots,
           s->run.trace->problem.batch * s->run.trace->problem.heads * s->run.trace->layout.q_tiles);
    report("  frames of the overview meanwhile", &screen, 16);
    return 0;
}

static void open_views(struct session *s)
{
    for (int view = 0; view < VIEW_COUNT; view++) {
        struct samples opened = {.n = 0};
        char what[64];
        session_drop_look(s);
        session_want_states(s, 0);
        const double begin = now_ms();
        session_want_states(s, view == VIEW_STATE);
        if (view == VIEW_BIAS)
            session_want_rounding(s);
        frame(s, (enum view_id)view);
        sample(&opened, now_ms() - begin);
        snprintf(what, sizeof what, "open %s", view_name(view));
        report(what, &opened, 100);
    }
    session_drop_look(s);
    session_want_states(s, 0);
}

static int bias_is_scanned(const struct session *s)
{
    const struct rounding_progress *now = session_rounding(s);
    return now && now->step;
}

static int laboratory_is_busy(const struct session *s)
{
    return s->run.laboratory && laboratory_busy(s->run.laboratory);
}

static void stop_bias(struct session *s)
{
    session_stop_rounding(s);
}

static void stop_laboratory(struct session *s)
{
    session_look_toggle(s);
}

/* A scan that a view begins: once it is stopped early, then it runs to its end. */
static void scan(struct session *s, enum view_id view, int (*busy)(const struct session *),
                 void (*stop)(struct session *))
{
    struct samples screen = {.n = 0}, stopped = {.n = 0}, whole = {.n = 0};
    char what[64];
    for (int round = 0; round < 2; round++) {
        session_drop_look(s);
        const double begin = now_ms();
        double asked = 0;
        session_look(s, views[view]->looks);
        if (view == VIEW_BIAS)
            session_want_rounding(s);
        for (frame(s, view); busy(s);) {
            sample(&screen, frame(s, view));
            usleep(PAUSE_US);
            if (round == 0 && !asked && now_ms() - begin > BEFORE_STOP_MS) {
                asked = now_ms();
                stop(s);
            }
        }
        if (asked)
            sample(&stopped, now_ms() - asked);
        if (round == 1)
            sample(&whole, now_ms() - begin);
    }
    snprintf(what, sizeof what, "%s: the scan over all heads", view_name(view));
    report(what, &whole, 0);
    report("  frames meanwhile", &screen, 16);
    report("  from x to its end", &stopped, 100);
    session_drop_look(s);
}

struct onset_scan {
    const struct trace *t;
    struct judge_scratch *scratch[64];
    atomic_int next, done;
};

static int onset_step(void *ctx, int worker)
{
    struct onset_scan *x = ctx;
    struct onset *found = malloc(sizeof *found);
    const int slot = atomic_fetch_add(&x->next, 1);
    const int more = found && slot < x->t->layout.n_slots && onset_of_slot(x->t, slot, x->scratch[worker], found) == 0;
    free(found);
    atomic_fetch_add(&x->done, 1);
    return more;
}

/* What the session does where NaN is in every slot. */
static int scan_onset(struct session *s, struct err *err)
{
    struct onset_scan x = {.t = s->run.trace};
    struct samples screen = {.n = 0}, whole = {.n = 0};
    struct pool *pool;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = cores < 1 ? 1 : cores > 64 ? 64 : (int)cores;
    if (pool_new(threads, &pool, err) != 0)
        return -1;
    for (int i = 0; i < threads; i++)
        x.scratch[i] = judge_scratch_new();
    const double begin = now_ms();
    pool_start(pool, onset_step, &x);
    while (atomic_load(&x.done) <= s->run.trace->layout.n_slots) {
        sample(&screen, frame(s, VIEW_ONSET));
        usleep(PAUSE_US);
    }
    pool_wait(pool);
    sample(&whole, now_ms() - begin);
    pool_free(pool);
    for (int i = 0; i < threads; i++)
        judge_scratch_free(x.scratch[i]);
    report("onset: roots of every q tile", &whole, 0);
    report("  frames meanwhile", &screen, 16);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct session *s = NULL;
    char title[256];
    if (argc < 3) {
        fprintf(stderr, "usage: bench_scans KERNEL B,H,L,D [KEY=VALUE...]\n");
        return 2;
    }
    snprintf(title, sizeof title, "%s %s", argv[1], argv[2]);
    if (canvas_init(&canvas, COLS, ROWS, 0) != 0)
        return bench_fail("canvas", &err);
    bench_heads(title);
    int failed = session_open(argv[1], &s, &err) != 0 || run(s, argc, argv, &err) != 0;
    if (!failed) {
        open_views(s);
        scan(s, VIEW_BIAS, bias_is_scanned, stop_bias);
        scan(s, VIEW_COMPARE, laboratory_is_busy, stop_laboratory);
        scan(s, VIEW_FORMATS, laboratory_is_busy, stop_laboratory);
        scan(s, VIEW_WHATIF, laboratory_is_busy, stop_laboratory);
        failed = scan_onset(s, &err) != 0;
    }
    if (failed)
        bench_fail(argv[1], &err);
    session_free(s);
    canvas_free(&canvas);
    return failed ? 3 : 0;
}
