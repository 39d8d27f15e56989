/* What a user waits for at the terminal: the first screen of the program itself, and a frame of a map as large as they
   come. bench_screen PROGRAM TRACE... */
#include "engine/session/show_run.h"
#include "engine/verdict/status.h"
#include "tests/bench_samples.h"
#include "tests/unit/lib/hand_made.h"
#include "tests/unit/lib/screen.h"
#include "tui/views/view.h"
#include <stdio.h>
#include <string.h>

enum { STARTS = 11, FRAMES = 51, COLS = 200, ROWS = 60, TILES = 512, TILE = 16 };

/* From the start of the process until its terminal shows a whole screen, and the verdict. */
static int bench_start(const char *program, const char *trace)
{
    struct samples first = {.n = 0}, judged = {.n = 0};
    char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)trace, NULL};
    const char *name = strrchr(trace, '/') ? strrchr(trace, '/') + 1 : trace;
    char what[96];
    for (int i = 0; i < STARTS; i++) {
        struct screen s;
        const double begin = now_ms();
        screen_start(&s, COLS, ROWS, NULL, argv);
        int shown = screen_wait(&s, "? help");
        sample(&first, now_ms() - begin);
        shown = shown && screen_wait_gone(&s, "judging");
        sample(&judged, now_ms() - begin);
        screen_send(&s, "q");
        const int ended = screen_wait_exit(&s);
        screen_close(&s);
        if (!shown || ended != 0)
            return 3;
    }
    snprintf(what, sizeof what, "start on %s", name);
    report(what, &first, 500);
    report("  until it is judged", &judged, 0);
    return 0;
}

/* 512x512 tiles of one head, each with its verdict. What was captured stays unwritten: a map does not look at it. */
static int bench_map(void)
{
    const struct hand_made made = {
        .batch = 1, .heads = 1, .q_len = TILES * TILE, .kv_len = TILES * TILE, .head_dim = 64, .tile = TILE};
    struct session *s = hand_made_session(&made);
    struct trace *t = hand_made_empty(&made);
    struct judgement *j;
    struct canvas canvas;
    if (judgement_new(t, &j) != 0 || canvas_init(&canvas, COLS, ROWS, 0) != 0)
        return 3;
    const size_t n = (size_t)TILES * TILES * ASC_CHANNELS;
    for (size_t i = 0; i < n; i++) {
        struct verdict *v = &j->tiles[i].local;
        v->judged = v->visited = 1;
        v->count[i % ASC_CHANNELS == asc_s ? CLASS_OFF : CLASS_OK] = TILE * TILE;
        j->tiles[i].global = *v;
    }
    for (int slot = 0; slot < TILES; slot++) {
        atomic_store(&j->slot_done[slot], 1);
        judgement_note_statuses(j, t, slot);
    }
    atomic_store(&j->n_done, TILES);
    j->complete = judgement_summarize(j, t, NULL, &j->summary) == 0;
    session_adopt_run(s, t, j);
    s->job.phase = PHASE_READY;
    for (int v = 0; v < 2; v++) {
        struct samples frame = {.n = 0};
        const enum view_id view = v ? VIEW_OVERVIEW : VIEW_MAP;
        char what[64];
        for (int i = 0; i < FRAMES; i++) {
            struct view_state state = {.top = 0};
            s->at.cursor.q_tile = s->at.cursor.kv_tile = i * TILES / FRAMES;
            const double begin = now_ms();
            canvas_clear(&canvas);
            view_draw(view, s, &canvas, &state);
            sample(&frame, now_ms() - begin);
        }
        snprintf(what, sizeof what, "draw %s of %dx%d tiles at %dx%d", view_name(view), TILES, TILES, COLS, ROWS);
        report(what, &frame, 5);
    }
    canvas_free(&canvas);
    session_free(s);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_screen PROGRAM TRACE...\n");
        return 2;
    }
    bench_heads("at the terminal");
    int failed = 0;
    for (int i = 2; i < argc && !failed; i++)
        failed = bench_start(argv[1], argv[i]);
    return failed ? failed : bench_map();
}
