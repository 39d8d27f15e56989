/* What a user waits for: a run, the opening of a trace, a frame. Medians over several rounds, beside what is aimed at.
 */
#include "engine/session/look.h"
#include "engine/session/onset.h"
#include "tui/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, FRAMES = 101, MAX_SAMPLES = 128, COLS = 200, ROWS = 60 };

struct samples {
    double ms[MAX_SAMPLES];
    int n;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One row of the table; aim_ms 0: none. Returns the median. */
static double report(const char *what, struct samples *s, double aim_ms)
{
    qsort(s->ms, (size_t)s->n, sizeof s->ms[0], ascending);
    const double median = s->ms[s->n / 2];
    printf("%-44s %9.2f %9.2f %9.2f", what, median, s->ms[0], s->ms[s->n - 1]);
    if (aim_ms > 0)
        printf(" %9.0f %8.2f", aim_ms, median / aim_ms);
    printf("\n");
    fflush(stdout);
    return median;
}

static void no_wake(void *ctx)
{
    (void)ctx;
}

static int fail(const char *what, const struct err *err)
{
    fprintf(stderr, "bench: %s: %s%s%s\n", what, err->where, err->where[0] ? ": " : "", err->message);
    return 3;
}

static int run_to_the_end(struct session *s)
{
    return session_start(s) != 0 || session_finish(s, 0) != 0 ? -1 : 0;
}

static int bench_run(const char *scenario, struct session **out, struct err *err)
{
    struct samples whole = {.n = 0}, launch = {.n = 0};
    if (session_open_scenario(scenario, out, err) != 0)
        return fail(scenario, err);
    if (run_to_the_end(*out) != 0) /* the first one builds, and starts the child */
        return fail(scenario, &(*out)->err);
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = now_ms();
        if (run_to_the_end(*out) != 0)
            return fail(scenario, &(*out)->err);
        whole.ms[whole.n++] = now_ms() - begin;
        launch.ms[launch.n++] = (*out)->trace->info.seconds * 1e3;
    }
    const double all = report("run, capture, judge", &whole, 1000);
    const double kernel = report("  of this the launch, probes on", &launch, 0);
    printf("%-44s %8.1f %%\n", "  of this the rest: copy, judge, find causes", 100 * (1 - kernel / all));
    return 0;
}

static int bench_trace(const struct session *session, const char *path, struct err *err)
{
    struct samples save = {.n = 0}, map = {.n = 0}, judged = {.n = 0};
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_ms();
        if (session_save(session, path, err) != 0)
            return fail("save", err);
        save.ms[save.n++] = now_ms() - begin;

        struct trace *trace;
        begin = now_ms();
        if (trace_open(path, &trace, err) != 0)
            return fail("open", err);
        map.ms[map.n++] = now_ms() - begin;
        trace_free(trace);

        struct session *opened;
        begin = now_ms();
        if (session_open_trace(path, &opened, err) != 0)
            return fail("open", err);
        if (run_to_the_end(opened) != 0) {
            *err = opened->err;
            session_free(opened);
            return fail("judge", err);
        }
        judged.ms[judged.n++] = now_ms() - begin;
        session_free(opened);
    }
    report("save the trace", &save, 0);
    report("open a saved trace", &map, 0);
    report("open a saved trace and judge it", &judged, 0);
    return 0;
}

/* Until what a view asks for is there, all of it; with the laboratory's own thread. */
static void bench_look(const struct session *session, unsigned wanted, const char *what, double aim_ms)
{
    struct samples time = {.n = 0};
    for (int i = 0; i < ROUNDS; i++) {
        struct laboratory *l;
        const double begin = now_ms();
        if (laboratory_new(session->trace, no_wake, NULL, &l) != 0)
            return;
        laboratory_ask(l, wanted, 0);
        laboratory_finish(l);
        time.ms[time.n++] = now_ms() - begin;
        laboratory_free(l);
    }
    report(what, &time, aim_ms);
}

/* Then the session's own, so that the frames have something to draw. */
static void bench_looks(struct session *session)
{
    const unsigned all = LABORATORY_FORMATS | LABORATORY_COMPARISON | LABORATORY_SURVEY | LABORATORY_WHATIF;
    bench_look(session, LABORATORY_FORMATS, "formats: every code of the run", 0);
    bench_look(session, LABORATORY_COMPARISON, "compare: three paths of a q tile, its shares", 100);
    bench_look(session, LABORATORY_SURVEY, "compare: the same of every q tile", 0);
    bench_look(session, LABORATORY_WHATIF, "whatif: all rows", 0);
    session_look(session, all);
    session_look_finish(session);
}

/* What the view of the softmax state waits for at another q tile, and a search for roots in every slot of it. */
static void bench_state(struct session *session)
{
    struct samples state = {.n = 0}, roots = {.n = 0};
    struct onset *found = malloc(sizeof *found);
    for (int i = 0; i < ROUNDS && found; i++) {
        double begin = now_ms();
        session_want_states(session, 0);
        session_want_states(session, 1);
        state.ms[state.n++] = now_ms() - begin;
        begin = now_ms();
        if (onset_of_slot(session->trace, 0, session->scratch, found) == 0)
            roots.ms[roots.n++] = now_ms() - begin;
    }
    free(found);
    report("open the softmax state of a q tile", &state, 100);
    report("roots of NaN in a q tile", &roots, 0);
}

static int bench_frames(const struct session *session, struct err *err)
{
    struct canvas canvas;
    if (canvas_init(&canvas, COLS, ROWS, 0) != 0)
        return err_set(err, ERR_SYSTEM, "", "no memory for a canvas"), fail("frames", err);
    for (int view = 0; view < VIEW_COUNT; view++) {
        struct samples frame = {.n = 0};
        char what[64];
        const struct view_state state = {.top = view_start_top((enum view_id)view, session, COLS, ROWS)};
        for (int i = 0; i < FRAMES; i++) {
            const double begin = now_ms();
            canvas_clear(&canvas);
            view_draw((enum view_id)view, session, &canvas, &state);
            frame.ms[frame.n++] = now_ms() - begin;
        }
        snprintf(what, sizeof what, "draw %s at %dx%d", views[view].name, COLS, ROWS);
        report(what, &frame, 5);
    }
    canvas_free(&canvas);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct session *session = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: bench_session SCENARIO FOLDER\n");
        return 2;
    }
    char path[512];
    snprintf(path, sizeof path, "%s/bench-%ld.safetensors", argv[2], (long)getpid());
    printf("%s, %ld cores; ms\n%-44s %9s %9s %9s %9s %8s\n", argv[1], sysconf(_SC_NPROCESSORS_ONLN), "", "median",
           "least", "most", "aim", "of aim");
    int status = bench_run(argv[1], &session, &err);
    if (status == 0)
        status = bench_trace(session, path, &err);
    if (status == 0)
        bench_looks(session);
    if (status == 0)
        bench_state(session);
    if (status == 0)
        status = bench_frames(session, &err);
    session_free(session);
    unlink(path);
    return status;
}
