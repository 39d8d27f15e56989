/* What a user waits for: a run, the opening of a trace, a frame. Medians over several rounds, beside what is aimed at.
 */
#include "engine/session/look.h"
#include "engine/verdict/onset.h"
#include "tests/bench_samples.h"
#include "tui/views/view.h"

#include <string.h>

enum { ROUNDS = 7, FRAMES = 101, COLS = 200, ROWS = 60 };

static void no_wake(void *ctx)
{
    (void)ctx;
}

static int run_to_the_end(struct session *s)
{
    return session_start(s) != 0 || session_finish(s, 0) != 0 ? -1 : 0;
}

static int bench_run(const char *scenario, struct session **out, struct err *err)
{
    struct samples whole = {.n = 0}, launch = {.n = 0};
    if (session_open_scenario(scenario, out, err) != 0)
        return bench_fail(scenario, err);
    if (run_to_the_end(*out) != 0) /* the first one builds, and starts the child */
        return bench_fail(scenario, &(*out)->job.err);
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = now_ms();
        if (run_to_the_end(*out) != 0)
            return bench_fail(scenario, &(*out)->job.err);
        sample(&whole, now_ms() - begin);
        sample(&launch, (*out)->run.trace->info.seconds * 1e3);
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
            return bench_fail("save", err);
        sample(&save, now_ms() - begin);

        struct trace *trace;
        begin = now_ms();
        if (trace_open(path, &trace, err) != 0)
            return bench_fail("open", err);
        sample(&map, now_ms() - begin);
        trace_free(trace);

        struct session *opened;
        begin = now_ms();
        if (session_open_trace(path, &opened, err) != 0)
            return bench_fail("open", err);
        if (run_to_the_end(opened) != 0) {
            *err = opened->job.err;
            session_free(opened);
            return bench_fail("judge", err);
        }
        sample(&judged, now_ms() - begin);
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
        if (laboratory_new(session->run.trace, no_wake, NULL, &l) != 0)
            return;
        laboratory_ask(l, wanted, 0);
        laboratory_finish(l);
        sample(&time, now_ms() - begin);
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
    session_want_rounding(session);
    session_look_finish(session);
    session_finish_rounding(session);
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
        sample(&state, now_ms() - begin);
        begin = now_ms();
        if (onset_of_slot(session->run.trace, 0, session->tile.scratch, found) == 0)
            sample(&roots, now_ms() - begin);
    }
    free(found);
    report("open the softmax state of a q tile", &state, 100);
    report("roots of NaN in a q tile", &roots, 0);
}

/* From a key to the first screen of a view, with nothing of what it asks for there yet; and to the screen with all of
   that. */
static int bench_opening(struct session *session, struct err *err)
{
    struct canvas canvas;
    if (canvas_init(&canvas, COLS, ROWS, 0) != 0)
        return err_no_memory(err, "", "a canvas"), bench_fail("opening", err);
    for (int view = 0; view < VIEW_COUNT; view++) {
        struct samples first = {.n = 0}, whole = {.n = 0};
        const enum view_id id = (enum view_id)view;
        char what[64];
        for (int i = 0; i < ROUNDS; i++) {
            session_drop_look(session);
            session_want_states(session, 0);
            const double begin = now_ms();
            session_look(session, views[id]->looks);
            session_want_states(session, id == VIEW_STATE);
            if (id == VIEW_BIAS)
                session_want_rounding(session);
            const struct view_state state = {.top = view_start_top(id, session, COLS, ROWS)};
            canvas_clear(&canvas);
            view_draw(id, session, &canvas, &state);
            sample(&first, now_ms() - begin);
            if (!views[id]->looks && id != VIEW_BIAS)
                continue;
            session_look_finish(session);
            session_finish_rounding(session);
            canvas_clear(&canvas);
            view_draw(id, session, &canvas, &state);
            sample(&whole, now_ms() - begin);
        }
        snprintf(what, sizeof what, "open %s", view_name(view));
        report(what, &first, 100);
        if (whole.n)
            report("  until all of it is there", &whole, 0);
    }
    session_drop_look(session);
    canvas_free(&canvas);
    return 0;
}

static int bench_frames(const struct session *session, struct err *err)
{
    struct canvas canvas;
    if (canvas_init(&canvas, COLS, ROWS, 0) != 0)
        return err_no_memory(err, "", "a canvas"), bench_fail("frames", err);
    for (int view = 0; view < VIEW_COUNT; view++) {
        struct samples frame = {.n = 0};
        char what[64];
        const struct view_state state = {.top = view_start_top((enum view_id)view, session, COLS, ROWS)};
        for (int i = 0; i < FRAMES; i++) {
            const double begin = now_ms();
            canvas_clear(&canvas);
            view_draw((enum view_id)view, session, &canvas, &state);
            sample(&frame, now_ms() - begin);
        }
        snprintf(what, sizeof what, "draw %s at %dx%d", view_name(view), COLS, ROWS);
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
    bench_heads(argv[1]);
    int status = bench_run(argv[1], &session, &err);
    if (status == 0)
        status = bench_trace(session, path, &err);
    if (status == 0)
        status = bench_opening(session, &err);
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
