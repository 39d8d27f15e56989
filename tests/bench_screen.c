/* What a user waits for at the terminal: the first screen of the program itself, and a frame of a map as large as they
   come. bench_screen PROGRAM TRACE... */
#include "engine/verdict/outcome.h"
#include "tests/bench_samples.h"
#include "tests/unit/tui/fixture_session.h"
#include "tests/unit/tui/screen.h"
#include "tui/views/view.h"

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
    static const struct fixture_shape shape = {1, 1, TILES * TILE, TILES * TILE, 64, TILE};
    struct session *s = fixture_new();
    s->trace = fixture_trace(&shape, TILES);
    struct canvas canvas;
    if (judgement_new(s->trace, &s->judgement) != 0 || canvas_init(&canvas, COLS, ROWS, 0) != 0)
        return 3;
    fixture_judge(s, asc_s, TILES);
    for (int slot = 0; slot < TILES; slot++)
        judgement_note_outcomes(s->judgement, slot);
    s->judgement->complete = 1;
    s->phase = PHASE_READY;
    for (int v = 0; v < 2; v++) {
        struct samples frame = {.n = 0};
        const enum view_id view = v ? VIEW_OVERVIEW : VIEW_MAP;
        char what[64];
        for (int i = 0; i < FRAMES; i++) {
            struct view_state state = {.top = 0};
            s->cursor.q_tile = s->cursor.kv_tile = i * TILES / FRAMES;
            const double begin = now_ms();
            canvas_clear(&canvas);
            view_draw(view, s, &canvas, &state);
            sample(&frame, now_ms() - begin);
        }
        snprintf(what, sizeof what, "draw %s of %dx%d tiles at %dx%d", views[view].name, TILES, TILES, COLS, ROWS);
        report(what, &frame, 5);
    }
    canvas_free(&canvas);
    fixture_free(s);
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
