/* Every view as text against tests/screens/, on runs made by hand. */
#include "engine/session/look.h"
#include "engine/verdict/facts.h"
#include "engine/verdict/onset.h"
#include "tests/unit/lib/golden.h"
#include "tests/unit/lib/hand_made.h"
#include "tui/commands.h"
#include "tui/loop_state.h"
#include "tui/show.h"
#include "tui/views/layout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct session *failing(void)
{
    return hand_made_run(&hand_made_usual);
}

static struct hand_made right(void)
{
    struct hand_made made = hand_made_usual;
    made.mistake = HAND_RIGHT;
    return made;
}

static struct session *clean(void)
{
    const struct hand_made made = right();
    return hand_made_run(&made);
}

static void add_log(struct session *s, const char *line)
{
    s->log.line = realloc(s->log.line, (s->log.n + 1) * sizeof *s->log.line);
    s->log.line[s->log.n++] = strdup(line);
}

/* The first screen and every other view, whole. */
static void failing_run(void **state)
{
    (void)state;
    struct session *s = failing();
    struct finding *f = s->run.judgement->findings;
    f->evidence.chance_tried = 16384; /* a sample, which goes with the threads */
    f->evidence.chance_hit = 0;
    s->runs.at[0].at = 60;
    add_log(s, "compiling v2b_scalar.cu");
    add_log(s, "v2b_scalar.cu:8:5: warning: unused variable 'x'");
    golden_screen(s, VIEW_OVERVIEW, NULL, 120, 40, "overview");
    for (int v = 0; v < VIEW_COUNT; v++)
        golden_screen(s, v, NULL, 80, 24, view_name(v));
    session_free(s);
}

static void other_places(void **state)
{
    (void)state;
    struct session *s = failing();
    /* A stage that is wrong only by what it was given. */
    hand_made_go(s, (struct cursor){.head = 2, .q_tile = 3, .kv_tile = 5, .channel = asc_p, .row = 9, .col = 12});
    golden_view(s, VIEW_OVERVIEW, NULL, "upstream");
    /* One value per row, and a stage that exists once per q tile. */
    hand_made_go(s, (struct cursor){.head = 2, .q_tile = 3, .channel = asc_lse, .row = 9});
    golden_view(s, VIEW_OVERVIEW, NULL, "per-row");
    hand_made_go(s, (struct cursor){.head = 2, .q_tile = 3, .channel = asc_o, .row = 9});
    s->at.shown = SHOW_RATIO;
    golden_view(s, VIEW_TILE, NULL, "tile-ratio");
    hand_made_go(s, (struct cursor){.head = 7, .q_tile = 7, .kv_tile = 7, .channel = asc_lse});
    assert_int_equal(session_step_bad(s, 1), 0);
    assert_true(golden_has(s, VIEW_TILE, 80, 24, "no bad tile after this one"));
    session_free(s);
}

/* Every class and sign at once: nothing may pass as fine that is not. */
static void all_signs(void **state)
{
    (void)state;
    struct hand_made made = right();
    made.n_slots = 24; /* heads 3 to 7 are not recorded */
    made.causal = true;
    enum { LAST = 7 }; /* this q tile sees all kv tiles, the one before it all but one */
    struct trace *t = hand_made_trace(&made);
    for (int i = 0; i < 40; i++)
        hand_made_store(t, asc_s, LAST, 0, i, i, 3.5);
    hand_made_store(t, asc_s, LAST, 1, 0, 1, NAN);
    hand_made_store(t, asc_s, LAST, 2, 0, 2, INFINITY);
    hand_made_unwrite(t, asc_s, LAST, 3);
    hand_made_store(t, asc_s, LAST, LAST, 0, 4, 1); /* masked */
    struct session *s = hand_made_session(&made);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.q_tile = LAST, .kv_tile = 1, .channel = asc_s});
    golden_view(s, VIEW_OVERVIEW, NULL, "signs");
    golden_view(s, VIEW_MAP, NULL, "signs-map");
    static const char *const signs[] = {"✗", "N", "∞", "?", "+"};
    static const int kv[] = {0, 1, 2, 3, LAST};
    for (size_t i = 0; i < sizeof kv / sizeof *kv; i++) {
        hand_made_go(s, (struct cursor){.q_tile = LAST, .kv_tile = kv[i], .channel = asc_s, .col = (int)i});
        assert_true(golden_has(s, VIEW_TILE, 120, 40, signs[i]));
    }
    s->at.cursor.head = 5; /* no verb goes to what is not recorded */
    session_refresh_detail(s);
    golden_view(s, VIEW_OVERVIEW, NULL, "not-recorded");
    /* One slot waits. */
    s->job.phase = PHASE_JUDGING;
    s->job.step = STEP_JUDGING;
    s->job.done = 23;
    s->job.total = 24;
    s->job.step_since = 1000;
    atomic_store(&s->run.judgement->slot_done[23], 0);
    golden_top(s, "judging");
    session_free(s);
}

/* Pins leave the rest its room where there is enough; below that they lie over its last rows. */
static void pinned_elements(void **state)
{
    (void)state;
    struct session *s = failing();
    const struct cursor at[] = {{.head = 3, .q_tile = 7, .channel = asc_s, .row = 63, .col = 5},
                                {.channel = asc_m, .row = 9},
                                {.head = 1, .channel = asc_u, .row = 1, .col = 12},
                                {.head = 7, .q_tile = 1, .channel = asc_o, .row = 12, .col = 3}};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pins_toggle(&s->at.pins, &at[i]), 1);
    assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "◆ S h3 q7 k0 r63 c5")); /* its values are not known yet */
    session_refresh_detail(s);
    golden_screen(s, VIEW_OVERVIEW, NULL, 80, 24, "pins");
    golden_screen(s, VIEW_OVERVIEW, NULL, 120, 40, "pins");
    session_step_kv(s, 1);
    golden_screen(s, VIEW_TILE, NULL, 80, 24, "pins-tile");
    session_free(s);
}

/* A view with a line that is typed over it, Tab pressed so often. */
static void check_prompt(struct session *s, const char *line, int tabs, const char *name)
{
    static struct loop l;
    struct canvas c;
    char *text = NULL;
    size_t bytes;
    const struct view_state vs = {.now = 1003.2};
    l = (struct loop){.s = s};
    prompt_open(&l.prompt, ":", line, command_line_complete, &l);
    for (int k = 0; k < tabs; k++)
        prompt_key(&l.prompt, KEY_ID_TAB);
    assert_int_equal(canvas_init(&c, 80, 24, 0), 0);
    view_draw(VIEW_OVERVIEW, s, &c, &vs);
    prompt_draw(&l.prompt, &c);
    FILE *out = open_memstream(&text, &bytes);
    canvas_write_text(&c, out);
    fclose(out);
    canvas_free(&c);
    golden_compare(name, text);
    free(text);
}

static void commands_complete(void **state)
{
    (void)state;
    struct session *s = failing();
    check_prompt(s, "st", 2, "prompt-80x24");
    check_prompt(s, "stop s ", 1, "prompt-stop-80x24");
    check_prompt(s, "set shape.causal=", 2, "prompt-set-80x24");
    session_free(s);
}

static void clean_and_suspicious(void **state)
{
    (void)state;
    const struct hand_made tails = {.batch = 1, .heads = 2, .q_len = 200, .kv_len = 333, .head_dim = 16, .tile = 64};
    struct session *s = hand_made_run(&tails);
    golden_top(s, "clean");
    hand_made_go(s, (struct cursor){.q_tile = 3, .kv_tile = 5, .channel = asc_s});
    golden_view(s, VIEW_OVERVIEW, NULL, "tails");
    s->run.judgement->summary.suspicious = 1u << asc_u | 1u << asc_o; /* which only a wrong bound makes */
    golden_top(s, "suspicious");
    session_free(s);
}

/* Two roots: the one at the cursor with its operands, else the first. */
static void where_nan_begins(void **state)
{
    (void)state;
    const struct hand_made made = right();
    struct trace *t = hand_made_trace(&made);
    hand_made_store(t, asc_s, 40, 1, 9, 33, INFINITY);
    hand_made_store(t, asc_alpha, 3, 2, 5, 0, NAN);
    struct session *s = hand_made_session(&made);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.head = 7, .q_tile = 7, .channel = asc_q});
    assert_int_equal(session_root(s), -1);
    golden_view(s, VIEW_ONSET, NULL, "onset-first");
    assert_int_equal(session_go_root(s, 0), 1);
    assert_int_equal(session_go_root(s, 1), 1);
    assert_int_equal(session_root(s), 1);
    golden_view(s, VIEW_ONSET, NULL, "onset-at-cursor");
    session_free(s);
}

/* The state is that of the cursor's slot, or not known. */
static void softmax_state(void **state)
{
    (void)state;
    struct session *s = failing();
    assert_true(golden_has(s, VIEW_STATE, 80, 24, "unknown"));
    session_want_states(s, 1);
    golden_view(s, VIEW_STATE, NULL, "state-asked");
    session_free(s);
}

/* The culprit stays wrong on exact inputs, what follows heals: the same places, other marks. */
static void isolated_run(void **state)
{
    (void)state;
    struct hand_made made = hand_made_usual;
    const struct hand_made exact = right();
    struct session *s = failing();
    made.healed = true;
    struct trace *t = hand_made_trace(&made);
    t->fed = hand_made_trace(&exact);
    t->fed_channels = 1u << asc_q | 1u << asc_k | 1u << asc_v | 1u << asc_s;
    isolation_of_stage(asc_s, &s->job.isolating);
    hand_made_judge(s, t);
    golden_top(s, "isolated");
    session_free(s);
}

/* More tiles and heads than a screen holds. */
static void scrolled(void **state)
{
    (void)state;
    const struct hand_made large = {2, 24, 480, 1600, 8, 8, HAND_U_NOT_RESCALED, .n_slots = 60};
    struct session *s = hand_made_run(&large);
    hand_made_go(s, (struct cursor){.q_tile = 33, .kv_tile = 150, .channel = asc_u, .row = 3});
    golden_view(s, VIEW_OVERVIEW, NULL, "scrolled");
    golden_view(s, VIEW_MAP, NULL, "scrolled-map");
    session_free(s);
}

static void no_run_yet(void **state)
{
    (void)state;
    struct session *s = hand_made_session(&hand_made_usual);
    golden_top(s, "empty");
    s->job.phase = PHASE_BUILDING;
    s->job.step = STEP_COMPILING;
    s->job.step_since = 1000;
    golden_top(s, "building");
    s->job.phase = PHASE_FAILED;
    err_set(&s->job.err, ERR_BUILD, "kernels/v2b_scalar.cu:71:16", "%s",
            "kernels/v2b_scalar.cu: In function 'void attention(asc_problem)':\n"
            "kernels/v2b_scalar.cu:71:16: error: 'scal' was not declared in this scope; did you mean 'scale'?\n"
            "   71 |         s0 *= p.scal * p.scale;\n"
            "      |                 ^~~~\n"
            "      |                 scale");
    golden_top(s, "build-failed");
    golden_view(s, VIEW_OVERVIEW, NULL, "build-failed-body");
    golden_view(s, VIEW_LOG, NULL, "build-failed-log");
    for (int v = 0; v < VIEW_COUNT; v++) /* nothing to see, and no crash */
        free(golden_draw(s, v, 80, 24, false, NULL));
    for (int i = 0; i < 40; i++)
        strncat(s->job.err.message, "\nanother line of many",
                sizeof s->job.err.message - strlen(s->job.err.message) - 1);
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "more lines: press L"));
    session_free(s);
}

/* A run that ended in head 1, q tile 0, before kv tile 1. */
static struct trace *ended(enum run_status status)
{
    struct hand_made made = right();
    made.ends_slot = 8;
    made.ends_kv = 1;
    struct trace *t = hand_made_trace(&made);
    t->info.status = (int32_t)status;
    return t;
}

static void crashed_run(void **state)
{
    (void)state;
    struct session *s = hand_made_session(&hand_made_usual);
    struct trace *t = ended(RUN_CRASHED);
    hand_made_event(t, EVENT_ADDRESS, "invalid read of address 0x40 (a null pointer) in block (0,1,0), thread (30,0,0)",
                    "kernels/v2b_scalar.cu", 9);
    hand_made_judge(s, t);
    s->job.phase = PHASE_FAILED; /* as the run's end is said where a kernel ran */
    err_set(&s->job.err, ERR_RUN, "kernels/v2b_scalar.cu:9", "%s",
            "SIGSEGV in block 3, thread 17\nlast stamp: S h0 q3 k2");
    golden_top(s, "crashed");
    golden_view(s, VIEW_LOG, NULL, "crashed-log");
    err_set(&s->job.err, ERR_RUN, "kernels/v2b_scalar.cu:9", "%s",
            "the kernel crashed: invalid read of address 0x40 (a null pointer) in block (0,1,0), thread (30,0,0); the "
            "last probe that fired: U at batch 0, head 1, q tile 0, kv tile 1 (kernels/v2b_scalar.cu:14)");
    golden_top(s, "crashed-wrapped");
    golden_view(s, VIEW_OVERVIEW, NULL, "crashed-body");
    session_free(s);
}

/* A run that was stopped: how long it ran, no word twice, what was not written is missing. */
static void cancelled_run(void **state)
{
    (void)state;
    struct session *s = hand_made_session(&hand_made_usual);
    struct trace *t = ended(RUN_CANCELLED);
    t->info.seconds = 12.5;
    snprintf(t->info.status_text, sizeof t->info.status_text, "cancelled");
    hand_made_judge(s, t);
    s->job.phase = PHASE_FAILED;
    err_set(&s->job.err, ERR_CANCELLED, "", "cancelled; last probe: U at batch 0, head 1, q tile 0, kv tile 0");
    golden_top(s, "cancelled");
    assert_true(golden_has(s, VIEW_OVERVIEW, 60, 16, "global par par par par par par par par par par par"));
    for (int v = VIEW_OVERVIEW; v < VIEW_COUNT; v++) {
        char *text = golden_draw(s, v, 120, 40, false, NULL);
        const char *first = strstr(text, "cancelled");
        assert_true(v == VIEW_HELP || !first || !strstr(first + 1, "cancelled"));
        free(text);
    }
    /* Nobody took the time of this one. */
    s->run.trace->info.seconds = 0;
    char *text = golden_draw(s, VIEW_OVERVIEW, 80, 24, false, NULL);
    assert_null(strstr(text, "0.00s"));
    free(text);
    session_free(s);
    /* Before anything ran. */
    s = hand_made_session(&hand_made_usual);
    s->job.phase = PHASE_FAILED;
    err_set(&s->job.err, ERR_CANCELLED, "", "cancelled");
    golden_top(s, "cancelled-early");
    session_free(s);
}

/* While a run is under way, what is shown belongs to the one before it. */
static void rerun_under_way(void **state)
{
    (void)state;
    struct session *s = failing();
    s->job.phase = PHASE_RUNNING;
    s->job.made_run = 0;
    s->job.step = STEP_RUNNING;
    char *text = golden_draw(s, VIEW_OVERVIEW, 80, 24, false, NULL);
    assert_non_null(strstr(text, "the run shown is the one before"));
    assert_null(strstr(text, "so far"));
    free(text);
    s->job.phase = PHASE_JUDGING;
    s->job.made_run = 1;
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "first bad so far S h0 q0 k0"));
    hand_made_event(s->run.trace, EVENT_LAUNCH, "launched with 64 threads", "", 0);
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "launch: launched with 64 threads"));
    session_free(s);
}

/* What happened during the run stands on the first screen, and the source at its line. */
static void events(void **state)
{
    (void)state;
    struct session *s = hand_made_session(&hand_made_usual);
    struct trace *t = hand_made_trace(&hand_made_usual);
    hand_made_event(t, EVENT_BARRIER,
                    "threads of one block meet at different __syncthreads (the other one: line 175) in block (1,0,0), "
                    "thread (94,0,0)",
                    "kernels/v2b_scalar.cu", 9);
    hand_made_event(t, EVENT_BARRIER, "__syncthreads is reached by 224 of 256 threads", "kernels/v2b_scalar.cu", 11);
    hand_made_event(t, EVENT_ADDRESS, "the kernel wrote outside O", "", 0);
    hand_made_judge(s, t);
    golden_top(s, "event");
    golden_view(s, VIEW_SOURCE, NULL, "event-source");
    golden_view(s, VIEW_LOG, NULL, "event-log");
    /* In another file than the one that is shown. */
    snprintf(t->info.events[0].file, sizeof t->info.events[0].file, "kernels/tile.cuh");
    assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "tile.cuh:9, 2 more: L log"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "probe of S"));
    snprintf(t->info.events[0].file, sizeof t->info.events[0].file, "kernels/v2b_scalar.cu");
    session_step_kv(s, 1); /* the cursor has moved */
    assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "EVENT    barrier: "));
    assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "probe of S"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "◆ 13"));
    session_free(s);
}

/* Where a kernel hangs: as many of its warps as there is room for, in the order of the trace, and the source at the
   first one's line. */
static void warps_of_a_run_that_hangs(void **state)
{
    (void)state;
    const struct hand_made made = right();
    struct session *s = hand_made_session(&made);
    struct trace *t = hand_made_trace(&made);
    t->info.status = RUN_HUNG;
    snprintf(t->info.status_text, sizeof t->info.status_text, "the kernel did not finish within 3 s");
    hand_made_event(t, EVENT_STANDS, "block (1,0,0), warp 3: lane 0 at k.cu:97 runs", "kernels/v2b_scalar.cu", 9);
    for (int i = 0; i < 6; i++)
        hand_made_event(t, EVENT_STANDS, "block (1,0,0), warp 4: all 32 lanes at k.cu:130 wait at __syncthreads",
                        "kernels/v2b_scalar.cu", 11);
    hand_made_judge(s, t);
    for (int failed = 0; failed < 2; failed++) { /* opened from a file, and as it ends here */
        assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "within 3 s"));
        assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "warp 3: lane 0 at k.cu:97 runs"));
        assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "warp 4: all 32 lanes at k.cu:130 wait at __syncthreads"));
        assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "more: L log"));
        assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "◆  9"));
        s->job.phase = PHASE_FAILED;
        s->job.made_run = 1;
        err_set(&s->job.err, ERR_RUN, "", "the kernel did not finish within 3 s");
    }
    session_free(s);
}

/* A checked run whose values are right: the reports stand at their tiles and on both of their lines. */
static void reports_of_a_checked_run(void **state)
{
    (void)state;
    const struct hand_made made = right();
    struct session *s = hand_made_session(&made);
    struct trace *t = hand_made_trace(&made);
    t->info.checked = true;
    hand_made_event(t, EVENT_FP_OVERFLOW, "overflow: the result is infinite", "kernels/v2b_scalar.cu", 14);
    hand_made_event(t, EVENT_RACE,
                    "4 bytes of shared memory are written by thread (3,0,0) of block (2,0,0) and read by thread "
                    "(35,0,0) with no barrier between them",
                    "kernels/v2b_scalar.cu", 9);
    struct trace_event *e = &t->info.events[1];
    e->batch = e->head = 0;
    e->q_tile = 2;
    e->kv_tile = 3;
    e->times = 61440;
    e->other_line = 6;
    snprintf(e->other_file, sizeof e->other_file, "%s", e->file);
    hand_made_event(t, EVENT_UNINITIALIZED, "thread (0,0,0) reads 2 bytes that nobody has written",
                    "kernels/v2b_scalar.cu", 10);
    t->info.events[2].batch = t->info.events[2].head = 0;
    t->info.events[2].q_tile = 5;
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.head = 1, .channel = asc_s});
    golden_top(s, "reports"); /* the cursor is elsewhere */
    hand_made_go(s, (struct cursor){.q_tile = 2, .kv_tile = 3, .channel = asc_s});
    golden_top(s, "race");
    golden_view(s, VIEW_SOURCE, NULL, "race-source");
    golden_view(s, VIEW_MAP, NULL, "race-map");
    golden_view(s, VIEW_LOG, NULL, "race-log");
    hand_made_go(s,
                 (struct cursor){.q_tile = 2, .kv_tile = 3, .channel = asc_o}); /* of no kv tile: all of the q tile */
    assert_true(session_at_report(s));
    session_free(s);
}

static void event_of_a_clean_run(void **state)
{
    (void)state;
    const struct hand_made made = right();
    struct session *s = hand_made_session(&made);
    struct trace *t = hand_made_trace(&made);
    hand_made_event(t, EVENT_LAUNCH, "v2b_scalar: launched with 64 threads a block, the plan says 128", "", 0);
    hand_made_judge(s, t);
    golden_top(s, "event-clean");
    session_free(s);
}

/* The panel begins with what was of another type; the log has all of it. */
static void lost_values(void **state)
{
    (void)state;
    struct session *s = failing();
    const struct layout *l = &s->run.trace->layout;
    hand_made_counter(s->run.trace, &l->dropped, asc_s, 77);
    golden_top(s, "dropped");
    hand_made_counter(s->run.trace, &l->dropped, asc_s, 0);
    hand_made_counter(s->run.trace, &l->dropped, asc_l, 15872);
    hand_made_counter(s->run.trace, &l->mistyped, asc_s, 114688);
    golden_top(s, "mistyped");
    assert_true(golden_has(s, VIEW_LOG, 120, 40, "114688 values of s are not f32, the declared type"));
    assert_true(golden_has(s, VIEW_LOG, 120, 40, "15872 values of l were not recorded (l_lanes?)"));
    session_free(s);
    s = clean();
    hand_made_counter(s->run.trace, &s->run.trace->layout.dropped, asc_l, 15872);
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "every recorded stage is within its bound"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "15872 values of l were not recorded (l_lanes?)"));
    session_free(s);
}

/* The words wrap where even they do not fit. */
static void too_small(void **state)
{
    (void)state;
    struct session *s = failing();
    assert_true(golden_has(s, VIEW_OVERVIEW, 40, 10, "terminal too small: need 60x16, have"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 40, 10, session_verdict_word(s))); /* the answer all the same */
    assert_true(golden_has(s, VIEW_OVERVIEW, 40, 10, "q leaves"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 40, 10, "40x10"));
    session_free(s);
}

/* A pane of tmux: what is found and the tile are there, in the overview and in every view. */
static void small(void **state)
{
    (void)state;
    struct session *s = failing();
    golden_screen(s, VIEW_OVERVIEW, NULL, 60, 16, "overview");
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 16, "heads"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 60, 40, "probe of S"));
    struct finding *f = &s->run.judgement->findings[0];
    f->cause = CAUSE_NONE;
    snprintf(f->text, sizeof f->text,
             "S is wrong in 2097109 of 2097152 elements: %s; %s: in rows 0 to 31 of %s, the end",
             "rows of K are those of the kv tile before", "95.3% of them", "every q tile of the heads of batch 0");
    assert_true(golden_has(s, VIEW_OVERVIEW, 60, 16, "the end"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 60, 16, "err/bound"));
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "the end"));
    memset(f->text, 'x', sizeof f->text - 1);
    assert_true(golden_has(s, VIEW_OVERVIEW, 60, 16, "A: all of it"));
    for (int rows = SCREEN_MIN_ROWS; rows < 26; rows += 3)
        for (int view = 0; view < VIEW_COUNT; view++) {
            char *text = golden_draw(s, (enum view_id)view, SCREEN_MIN_COLS, rows, rows & 1, NULL);
            assert_true(strncmp(text, "attnscope", 9) == 0 && strstr(text, "? help"));
            free(text);
        }
    session_free(s);
}

/* Three stages, each wrong by itself. */
static void several_culprits(void **state)
{
    (void)state;
    struct trace *t = hand_made_trace(&hand_made_usual);
    for (int row = 0; row < 40; row++) {
        hand_made_store(t, asc_u, 9, 7, row, 3, 1000 + row);
        hand_made_store(t, asc_lse, 9, 0, row, 0, 50 + row * row);
    }
    struct session *s = hand_made_session(&hand_made_usual);
    hand_made_judge(s, t);
    golden_top(s, "several-culprits");
    session_free(s);
}

/* Tiles that the kernel never came to: missing, and what should stand there. */
static void tiles_left_out(void **state)
{
    (void)state;
    struct hand_made made = right();
    made.kv_tiles = 7;
    struct session *s = hand_made_run(&made);
    assert_int_equal(s->run.judgement->n_findings, 1);
    hand_made_go(s, (struct cursor){.kv_tile = 7, .channel = asc_s});
    golden_top(s, "left-out");
    golden_view(s, VIEW_OVERVIEW, NULL, "left-out-body");
    golden_view(s, VIEW_TILE, NULL, "left-out-tile");
    session_free(s);
}

/* What is said of a tile must be true of all of it. */
static void titles_promise_nothing_else(void **state)
{
    (void)state;
    struct session *s = failing();
    assert_true(golden_has(s, VIEW_OVERVIEW, 120, 40, "median got/want +0.2500"));
    s->run.judgement->tiles[asc_s].local.ratio_spread = 0.04f; /* 0.0313 is an eighth of the median */
    char *text = golden_draw(s, VIEW_OVERVIEW, 120, 40, false, NULL);
    assert_null(strstr(text, "median got/want +0.2500 "));
    free(text);
    /* One value per row: all four numbers are listed. */
    s->at.shown = SHOW_DIFF;
    hand_made_go(s, (struct cursor){.channel = asc_m});
    for (int v = VIEW_OVERVIEW; v <= VIEW_TILE; v++) {
        text = golden_draw(s, v, 120, 40, false, NULL);
        assert_null(strstr(text, "difference"));
        free(text);
    }
    session_free(s);
}

/* No size may touch memory outside the canvas (ASan watches) or write a wrong line. */
static void every_size(void **state)
{
    (void)state;
    struct trace *t = hand_made_trace(&hand_made_usual);
    hand_made_event(t, EVENT_BARRIER, "met by some", "kernels/v2b_scalar.cu", 9);
    struct session *sessions[] = {hand_made_session(&hand_made_usual), hand_made_session(&hand_made_usual)};
    hand_made_judge(sessions[0], t);
    hand_made_go(sessions[0],
                 (struct cursor){.head = 7, .q_tile = 7, .kv_tile = 7, .channel = asc_u, .row = 63, .col = 15});
    sessions[1]->job.phase = PHASE_FAILED;
    err_set(&sessions[1]->job.err, ERR_BUILD, "a.cu:1", "%s", "no\nsuch thing");
    for (int i = 0; i < 2; i++) {
        for (int rows = 1; rows <= 70; rows += rows < 30 ? 1 : 5) {
            for (int cols = 1; cols <= 220; cols += cols >= 78 && cols < 124 ? 2 : 9) {
                for (int v = 0; v < VIEW_COUNT; v++) {
                    char *text = golden_draw(sessions[i], v, cols, rows, false, NULL);
                    int lines = 0;
                    for (const char *c = text; *c; c++)
                        lines += *c == '\n';
                    assert_int_equal(lines, rows);
                    free(text);
                    if (rows < 24)
                        break; /* one sentence, whatever the view */
                }
            }
        }
        session_free(sessions[i]);
    }
}

static void ascii_is_seven_bits(void **state)
{
    (void)state;
    struct session *s = failing();
    for (int v = 0; v < VIEW_COUNT; v++) {
        char *text = golden_draw(s, v, 120, 40, true, NULL);
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
            assert_true(*c < 0x80 && (*c >= 0x20 || *c == '\n'));
        if (v == VIEW_OVERVIEW)
            golden_compare("overview-ascii-120x40", text);
        free(text);
    }
    session_free(s);
}

/* A run on a GPU: the recording launch, and beside it one without probes that was counted and is over budget. */
static void resources_of_a_run_on_a_gpu(void **state)
{
    (void)state;
    struct session *s = failing();
    struct trace_info *info = &s->run.trace->info;
    struct trace_launch l[2];
    for (int i = 0; i < 2; i++) {
        launch_init(&l[i]);
        snprintf(l[i].kernel, sizeof l[i].kernel, "v2c_wmma<__half, 64>");
        snprintf(l[i].limited_by, sizeof l[i].limited_by, i ? "registers" : "registers, shared memory");
        l[i].probes = 1 - i;
        for (int k = 0; k < 3; k++)
            l[i].grid[k] = l[i].block[k] = 1;
        l[i].grid[0] = l[i].grid[1] = 8;
        l[i].block[0] = 128;
        l[i].registers = i ? 96 : 168;
        l[i].static_shared_bytes = i ? 0 : 512;
        l[i].dynamic_shared_bytes = 46080;
        l[i].local_bytes = i ? 0 : 24;
        l[i].resident_blocks = i ? 4 : 3;
        l[i].resident_warps = 4 * l[i].resident_blocks;
        l[i].warp_slots = 64;
        l[i].seconds = i ? 7.41e-5 : 4.1e-4;
    }
    info->launches.at = calloc(2, sizeof *info->launches.at);
    memcpy(info->launches.at, l, sizeof l);
    info->launches.n = 1;
    info->backend = BACKEND_GPU;
    snprintf(info->device, sizeof info->device, "NVIDIA H200, sm_90");
    golden_view(s, VIEW_RESOURCES, NULL, "resources-recorded");
    info->launches.n = 2;
    info->launches.at[1].achieved_occupancy = 0.183;
    info->launches.at[1].tensor_pipe = 0;
    info->launches.at[1].dram_bytes_per_second = 41.2e9;
    info->launches.budget = (struct launch_budget){.stated = 7, .most = {64, 49152, 0}};
    golden_view(s, VIEW_RESOURCES, NULL, "resources-over-budget");
    info->launches.n = 1;
    snprintf(info->launches.not_measured, sizeof info->launches.not_measured,
             "this machine lets only administrators read hardware counters");
    golden_view(s, VIEW_RESOURCES, NULL, "resources-not-measured");
    char words[FACT_WORDS_BYTES];
    assert_false(run_fact_first(s->run.judgement, s->run.trace, FACT_SET(FACT_RECORDED), words));
    info->launches.at[0].staging_lacks = 5632;
    assert_true(run_fact_first(s->run.judgement, s->run.trace, FACT_SET(FACT_RECORDED), words));
    assert_string_equal(words,
                        "v2c_wmma records slowly: its blocks leave 5632 bytes too few of shared memory to gather "
                        "values in");
    info->launches.at[0].probes = 0;
    assert_false(run_fact_first(s->run.judgement, s->run.trace, FACT_SET(FACT_RECORDED), words));
    session_free(s);
}

static void show_says_what_is_wrong(void **state)
{
    (void)state;
    struct session *s = hand_made_session(&hand_made_usual);
    struct err err;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(view_from_name("tiles"), -1);
    assert_int_equal(view_from_name("tile"), VIEW_TILE);
    assert_int_equal(tui_show(s, VIEW_MAP, 59, 24, 0, out, &err), -1);
    assert_int_equal(err.code, ERR_TERMINAL);
    assert_int_equal(tui_show(s, VIEW_MAP, 100000, 24, 0, out, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    fflush(out);
    assert_int_equal(bytes, 0);
    assert_int_equal(tui_show(s, VIEW_HELP, 80, 24, 0, out, &err), 0);
    fclose(out);
    assert_non_null(strstr(text, "next bad tile"));
    free(text);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(tui_show(s, VIEW_HELP, 80, 24, 0, full, &err), -1);
        assert_int_equal(err.code, ERR_SYSTEM);
        fclose(full);
    }
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_run),
        cmocka_unit_test(other_places),
        cmocka_unit_test(all_signs),
        cmocka_unit_test(pinned_elements),
        cmocka_unit_test(commands_complete),
        cmocka_unit_test(clean_and_suspicious),
        cmocka_unit_test(where_nan_begins),
        cmocka_unit_test(softmax_state),
        cmocka_unit_test(isolated_run),
        cmocka_unit_test(scrolled),
        cmocka_unit_test(no_run_yet),
        cmocka_unit_test(crashed_run),
        cmocka_unit_test(cancelled_run),
        cmocka_unit_test(rerun_under_way),
        cmocka_unit_test(events),
        cmocka_unit_test(warps_of_a_run_that_hangs),
        cmocka_unit_test(event_of_a_clean_run),
        cmocka_unit_test(reports_of_a_checked_run),
        cmocka_unit_test(lost_values),
        cmocka_unit_test(too_small),
        cmocka_unit_test(small),
        cmocka_unit_test(several_culprits),
        cmocka_unit_test(tiles_left_out),
        cmocka_unit_test(titles_promise_nothing_else),
        cmocka_unit_test(every_size),
        cmocka_unit_test(ascii_is_seven_bits),
        cmocka_unit_test(resources_of_a_run_on_a_gpu),
        cmocka_unit_test(show_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
