/* Every view as text against tests/screens/; UPDATE_GOLDEN=1 writes those files anew. Runs in the repository's root. */
#include "engine/verdict/onset.h"
#include "tests/unit/tui/golden_screen.h"
#include "tui/commands.h"
#include "tui/loop_state.h"
#include "tui/show.h"

static void add_log(struct session *s, const char *line)
{
    s->log = realloc(s->log, (s->n_log + 1) * sizeof *s->log);
    s->log[s->n_log++] = strdup(line);
}

static void failing_run(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    add_log(s, "compiling v2b_scalar.cu");
    add_log(s, "v2b_scalar.cu:8:5: warning: unused variable 'x'");
    for (int v = 0; v < VIEW_COUNT; v++)
        check(s, v, views[v].name);
    fixture_free(s);
}

static void other_places(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    /* A stage that is wrong only by what it was given. */
    s->cursor = (struct cursor){.head = 2, .q_tile = 3, .kv_tile = 5, .channel = asc_p, .row = 9, .col = 40};
    fixture_detail(s);
    check(s, VIEW_OVERVIEW, "upstream");
    /* One value per row, and a stage that exists once per q tile. */
    s->cursor.channel = asc_lse;
    s->cursor.col = 0;
    fixture_detail(s);
    check(s, VIEW_OVERVIEW, "per-row");
    s->shown = SHOW_RATIO;
    s->cursor.channel = asc_o;
    snprintf(s->message, sizeof s->message, "no next bad tile");
    fixture_detail(s);
    check(s, VIEW_TILE, "tile-ratio");
    fixture_free(s);
}

/* Every class and sign at once: nothing may pass as fine that is not. */
static void all_signs(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 24, -1, 20); /* heads 3 to 7 are not recorded, one waits */
    struct judgement *j = s->judgement;
    for (int i = 0; i < 8; i++) {
        struct tile_verdicts *v = &j->tiles[i * ASC_CHANNELS + asc_s];
        const int class = i % CLASS_COUNT;
        fixture_verdict(&v->local, class, 40, 4096);
        fixture_verdict(&v->global, class, 40, 4096);
        if (i == 6)
            v->local.masked = 1;
        if (i == 7) {
            fixture_verdict(&v->local, CLASS_OK, 0, 4096);
            fixture_verdict(&v->global, CLASS_OFF, 4000, 4096);
        }
    }
    judgement_summarise(j, s->trace, &j->summary);
    fixture.busy = 1;
    s->phase = PHASE_JUDGING;
    snprintf(s->activity, sizeof s->activity, "judging");
    s->done = 20;
    s->total = 24;
    s->activity_since = 1000;
    s->cursor.q_tile = 1;
    fixture_detail(s);
    for (int kv = 5; kv < 8; kv++) /* the state's curves have nothing to say about masked tiles */
        j->tiles[(1 * 8 + kv) * ASC_CHANNELS + asc_m].local.masked = 1;
    s->detail.class_local[1] = CLASS_NAN;
    s->detail.got[1] = NAN;
    s->detail.class_local[2] = CLASS_INF;
    s->detail.got[2] = INFINITY;
    s->detail.class_local[3] = CLASS_MISSING;
    s->detail.got[3] = NAN;
    s->detail.class_local[4] = CLASS_EXTRA;
    check(s, VIEW_OVERVIEW, "signs");
    check(s, VIEW_MAP, "signs-map");
    s->cursor.head = 5;
    fixture_detail(s);
    check(s, VIEW_OVERVIEW, "not-recorded");
    fixture.busy = 0;
    fixture_free(s);
}

/* Pins leave the rest its room where there is enough; below that they lie over its last rows. */
static void pinned_elements(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    const struct cursor at[] = {{.head = 3, .q_tile = 7, .channel = asc_s, .row = 63, .col = 5},
                                {.channel = asc_m, .row = 9},
                                {.head = 1, .channel = asc_u, .row = 1, .col = 60},
                                {.head = 7, .q_tile = 1, .channel = asc_o, .row = 12, .col = 34}};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pins_toggle(&s->pins, &at[i]), 1);
    check(s, VIEW_OVERVIEW, "pins-unknown");
    fixture_pins(s);
    check(s, VIEW_OVERVIEW, "pins");
    s->cursor.kv_tile = 1;
    fixture_detail(s);
    check(s, VIEW_TILE, "pins-tile");
    s->cursor.kv_tile = 2;
    fixture_detail(s);
    check(s, VIEW_SOURCE, "pins-source");
    fixture_free(s);
}

/* A view with a line that is typed over it, Tab pressed so often. */
static void check_prompt(struct session *s, const char *line, int tabs, const char *name)
{
    static const int sizes[][2] = {{80, 24}, {120, 40}};
    static struct loop l;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct canvas c;
        char *text = NULL, file[128];
        size_t bytes;
        const struct view_state vs = {.now = 1003.2};
        l = (struct loop){.s = s};
        prompt_open(&l.prompt, ":", line, command_line_complete, &l);
        for (int k = 0; k < tabs; k++)
            prompt_key(&l.prompt, KEY_ID_TAB);
        assert_int_equal(canvas_init(&c, sizes[i][0], sizes[i][1], 0), 0);
        view_draw(VIEW_OVERVIEW, s, &c, &vs);
        prompt_draw(&l.prompt, &c);
        FILE *out = open_memstream(&text, &bytes);
        canvas_write_text(&c, out);
        fclose(out);
        canvas_free(&c);
        snprintf(file, sizeof file, "%s-%dx%d", name, sizes[i][0], sizes[i][1]);
        compare(file, text);
        free(text);
    }
}

static void commands_complete(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    check_prompt(s, "st", 2, "prompt");
    check_prompt(s, "stop s ", 1, "prompt-stop");
    check_prompt(s, "set shape.causal=", 2, "prompt-set");
    fixture_free(s);
}

static void clean_and_suspicious(void **state)
{
    (void)state;
    static const struct fixture_shape tails = {1, 2, 200, 333, 16, 64};
    struct session *s = fixture_run(&tails, 8, -1, 8);
    s->cursor = (struct cursor){.q_tile = 3, .kv_tile = 5, .channel = asc_s};
    fixture_detail(s);
    check(s, VIEW_OVERVIEW, "clean");
    s->judgement->summary.suspicious = 1u << asc_u | 1u << asc_o;
    check(s, VIEW_OVERVIEW, "suspicious");
    fixture_free(s);
}

static void add_root(struct run_onset *o, const struct trace *t, int slot, const struct onset_root *root)
{
    struct onset *found = calloc(1, sizeof *found);
    found->roots = (uint64_t)root->members;
    found->outputs = root->reached;
    found->of_rule[root->rule] = found->of_stage[root->channel] = found->roots;
    found->n = 1;
    found->first[0] = *root;
    run_onset_add(o, t, slot, found);
    free(found);
}

/* Roots of several kinds: the one at the cursor with its operands, else the first. */
static void where_nan_begins(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    assert_int_equal(run_onset_new(s->trace, &s->judgement->onset), 0);
    const struct onset_root alpha = {
        .channel = asc_alpha,
        .kv = 2,
        .row = 5,
        .members = 1,
        .rule = RULE_INF_MINUS_INF,
        .value = NAN,
        .known = 1u << OPERAND_M_PREV | 1u << OPERAND_M,
        .operand = {[OPERAND_M_PREV] = -INFINITY, [OPERAND_M] = -INFINITY},
        .chain = {[asc_alpha] = {1, 2, 2}, [asc_l] = {6, 2, 7}, [asc_u] = {384, 2, 7}, [asc_o] = {64, 0, 0}},
        .reached = 64,
        .reached_rows = 1,
        .reached_row = 5,
        .last = asc_o};
    const struct onset_root score = {.channel = asc_s,
                                     .kv = 1,
                                     .row = 9,
                                     .col = 33,
                                     .members = 2,
                                     .rule = RULE_F16_ACCUMULATOR,
                                     .value = INFINITY,
                                     .known = 1u << OPERAND_PRODUCT,
                                     .operand = {[OPERAND_PRODUCT] = 81234.5},
                                     .n_products = 2,
                                     .product = {{7, 250, 240.5}, {8, -3, NAN}},
                                     .keys = 64,
                                     .keys_so_far = 128,
                                     .chain = {[asc_s] = {2, 1, 1}, [asc_p] = {2, 1, 1}},
                                     .last = asc_p,
                                     .last_kv = 1};
    add_root(s->judgement->onset, s->trace, 40, &score);
    add_root(s->judgement->onset, s->trace, 3, &alpha);
    check(s, VIEW_ONSET, "onset-first");
    s->cursor = (struct cursor){.head = 5, .q_tile = 0, .kv_tile = 1, .channel = asc_s, .row = 9, .col = 33};
    fixture_detail(s);
    assert_int_equal(session_root(s), 1);
    check(s, VIEW_ONSET, "onset-at-cursor");
    fixture_free(s);
}

/* A state whose l leaves m's frame at step 4 in row 9. */
static void softmax_state(void **state)
{
    (void)state;
    enum { ROWS = 64, STEPS = 8 };
    struct session *s = fixture_fail();
    struct row_states *t = &s->states;
    *t = (struct row_states){.rows = ROWS, .n_steps = STEPS, .judged = 0x37, .first_step = 4, .first_row = 9};
    t->steps = calloc(STEPS, sizeof *t->steps);
    t->at = calloc((size_t)ROWS * STEPS, sizeof *t->at);
    for (int step = 0; step < STEPS; step++) {
        t->steps[step].kv = step;
        for (int row = 0; row < ROWS; row++) {
            struct row_step *at = &t->at[step * ROWS + row];
            const double m = 1.5 + 0.25 * step + 0.05 * row, l = 20.0 * (step + 1);
            *at = (struct row_step){m,
                                    step ? 0.78 : 0,
                                    l,
                                    m + log(l),
                                    m + log(l),
                                    0.1 + 0.001 * row,
                                    0.2,
                                    0,
                                    1u << asc_m | 1u << asc_alpha | 1u << asc_l,
                                    0};
            if (row == 9 && step >= 4) {
                at->sum_ratio = 1800;
                at->log_sum += 0.5;
                at->broken = 1u << INVARIANT_SUM;
            }
        }
    }
    t->broken[INVARIANT_SUM] = 4;
    s->cursor.row = 9;
    s->cursor.kv_tile = 4;
    s->states_slot = session_slot(s);
    fixture_detail(s);
    check(s, VIEW_STATE, "state-broken");
    s->cursor.q_tile = 5; /* those are not its rows */
    fixture_detail(s);
    char *text = draw(s, VIEW_STATE, 80, 24, 0, 1003.2);
    assert_non_null(strstr(text, "not known"));
    free(text);
    row_states_free(t);
    fixture_free(s);
}

/* The culprit stays wrong on exact inputs, what follows heals: the same places, other marks. */
static void isolated_run(void **state)
{
    (void)state;
    struct session *s = fixture_fail(), *healed = fixture_run(&fixture_mission, 64, -1, 64);
    snprintf(s->title, sizeof s->title, "v2b_scalar + double-scale.patch, S isolated");
    s->isolation.trace = healed->trace; /* that it is there says enough; its marks are those of the bad run */
    s->isolation.judgement = healed->judgement;
    healed->trace = NULL;
    healed->judgement = NULL;
    isolation_of_stage(asc_s, &s->isolation.asked);
    s->trace->fed_channels = 1u << asc_q | 1u << asc_k | 1u << asc_v | 1u << asc_s;
    s->isolation.judgement->summary = s->judgement->summary;
    for (int ch = asc_m; ch < ASC_CHANNELS; ch++) {
        s->judgement->summary.stage[ch].global = MARK_OK;
        s->judgement->summary.stage[ch].bad_global = 0;
    }
    check(s, VIEW_OVERVIEW, "isolated");
    fixture_free(healed);
    fixture_free(s);
}

/* More tiles and heads than a screen holds. */
static void scrolled(void **state)
{
    (void)state;
    static const struct fixture_shape large = {2, 24, 480, 1600, 8, 8};
    struct session *s = fixture_run(&large, 60, asc_l, 60);
    s->cursor = (struct cursor){.q_tile = 33, .kv_tile = 150, .channel = asc_l, .row = 3};
    fixture_detail(s);
    check(s, VIEW_OVERVIEW, "scrolled");
    check(s, VIEW_MAP, "scrolled-map");
    fixture_free(s);
}

static void no_run_yet(void **state)
{
    (void)state;
    struct session *s = fixture_new();
    check(s, VIEW_OVERVIEW, "empty");
    s->phase = PHASE_BUILDING;
    snprintf(s->activity, sizeof s->activity, "compiling v2b_scalar.cu");
    s->activity_since = 1000;
    check(s, VIEW_OVERVIEW, "building");
    s->phase = PHASE_FAILED;
    err_set(&s->err, ERR_BUILD, "kernels/v2b_scalar.cu:71:16", "%s",
            "kernels/v2b_scalar.cu: In function 'void attention(asc_problem)':\n"
            "kernels/v2b_scalar.cu:71:16: error: 'scal' was not declared in this scope; did you mean 'scale'?\n"
            "   71 |         s0 *= p.scal * p.scale;\n"
            "      |                 ^~~~\n"
            "      |                 scale");
    check(s, VIEW_OVERVIEW, "build-failed");
    check(s, VIEW_LOG, "build-failed-log");
    for (int v = 0; v < VIEW_COUNT; v++) /* nothing to see, and no crash */
        free(draw(s, v, 80, 24, 0, 0));
    for (int i = 0; i < 40; i++)
        strncat(s->err.message, "\nanother line of many", sizeof s->err.message - strlen(s->err.message) - 1);
    char *text = draw(s, VIEW_OVERVIEW, 80, 24, 0, 0);
    assert_non_null(strstr(text, "more lines: press L"));
    free(text);
    fixture_free(s);
}

static void crashed_run(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 64, asc_s, 64);
    s->phase = PHASE_FAILED;
    snprintf(s->trace->info.status, sizeof s->trace->info.status, "crashed");
    err_set(&s->err, ERR_RUN, "kernels/v2b_scalar.cu:9", "%s", "SIGSEGV in block 3, thread 17\nlast stamp: S h0 q3 k2");
    check(s, VIEW_OVERVIEW, "crashed");
    check(s, VIEW_LOG, "crashed-log");
    err_set(&s->err, ERR_RUN, "kernels/v2b_scalar.cu:9", "%s",
            "the kernel crashed: invalid read of address 0x40 (a null pointer) in block (0,1,0), thread (30,0,0); the "
            "last probe that fired: U at batch 0, head 1, q tile 0, kv tile 1 (kernels/v2b_scalar.cu:14)");
    fixture_event(s, "address", "invalid read of address 0x40 (a null pointer) in block (0,1,0), thread (30,0,0)",
                  "kernels/v2b_scalar.cu", 9);
    check(s, VIEW_OVERVIEW, "crashed-wrapped");
    fixture_free(s);
}

/* Nobody wrote this tile, nor did the kernel come here. */
static void unwritten(struct session *s, struct place place)
{
    struct tile_verdicts *v =
        &s->judgement->tiles[((size_t)place.slot * (size_t)s->judgement->kv_tiles + (size_t)place.kv) * ASC_CHANNELS +
                             (size_t)place.channel];
    fixture_verdict(&v->local, CLASS_MISSING, 4096, 4096);
    v->local.visited = 0;
    v->local.ratio_median = NAN;
    v->global = v->local;
}

/* A run that was stopped: how long it ran, no word twice, what was not written is missing. */
static void cancelled_run(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 64, -1, 64);
    s->judgement->run_incomplete = 1;
    for (int kv = 3; kv < 8; kv++)
        unwritten(s, (struct place){0, kv, asc_s});
    judgement_summarise(s->judgement, s->trace, &s->judgement->summary);
    s->phase = PHASE_FAILED;
    s->trace->info.seconds = 12.5;
    snprintf(s->trace->info.status, sizeof s->trace->info.status, "cancelled");
    snprintf(s->trace->info.status_text, sizeof s->trace->info.status_text, "cancelled");
    err_set(&s->err, ERR_CANCELLED, "",
            "cancelled; the last probe that fired: U at batch 0, head 0, q tile 0, kv tile 2");
    check(s, VIEW_OVERVIEW, "cancelled");
    for (int v = VIEW_OVERVIEW; v < VIEW_COUNT; v++) {
        char *text = draw(s, v, 120, 40, 0, 0);
        const char *first = strstr(text, "cancelled");
        assert_true(v == VIEW_HELP || !first || !strstr(first + 1, "cancelled"));
        free(text);
    }
    /* Nobody took the time of this one. */
    s->trace->info.seconds = 0;
    char *text = draw(s, VIEW_OVERVIEW, 80, 24, 0, 0);
    assert_null(strstr(text, "0.00s"));
    free(text);
    /* Before anything ran. */
    judgement_free(s->judgement);
    trace_free(s->trace);
    s->judgement = NULL;
    s->trace = NULL;
    err_set(&s->err, ERR_CANCELLED, "", "cancelled");
    check(s, VIEW_OVERVIEW, "cancelled-early");
    fixture_free(s);
}

/* While a run is under way, what is shown belongs to the one before it. */
static void rerun_under_way(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    s->phase = PHASE_RUNNING;
    snprintf(s->activity, sizeof s->activity, "running");
    char *text = draw(s, VIEW_OVERVIEW, 80, 24, 0, 0);
    assert_non_null(strstr(text, "the run before this one"));
    assert_null(strstr(text, "so far"));
    free(text);
    s->phase = PHASE_JUDGING;
    text = draw(s, VIEW_OVERVIEW, 80, 24, 0, 0);
    assert_non_null(strstr(text, "first bad so far S h0 q0 k0"));
    free(text);
    fixture_event(s, "launch", "launched with 64 threads", "", 0);
    text = draw(s, VIEW_OVERVIEW, 80, 24, 0, 0);
    assert_non_null(strstr(text, "launch: launched with 64 threads"));
    free(text);
    fixture_free(s);
}

/* What happened during the run stands on the first screen, and the source at its line. */
static void events(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    fixture_event(s, "barrier",
                  "threads of one block meet at different __syncthreads (the other one: line 175) in block (1,0,0), "
                  "thread (94,0,0)",
                  "kernels/v2b_scalar.cu", 9);
    fixture_event(s, "barrier", "__syncthreads is reached by 224 of 256 threads", "kernels/v2b_scalar.cu", 11);
    fixture_event(s, "address", "the kernel wrote outside O", "", 0);
    check(s, VIEW_OVERVIEW, "event");
    check(s, VIEW_SOURCE, "event-source");
    check(s, VIEW_LOG, "event-log");
    s->at_event = 0; /* the cursor has moved */
    char *text = draw(s, VIEW_OVERVIEW, 120, 40, 0, 0);
    assert_non_null(strstr(text, "EVENT    barrier: "));
    assert_non_null(strstr(text, "probe of S"));
    assert_non_null(strstr(text, "◆ 13"));
    free(text);
    /* In another file than the one that is shown. */
    s->at_event = 1;
    snprintf(s->trace->info.events[0].file, sizeof s->trace->info.events[0].file, "kernels/tile.cuh");
    text = draw(s, VIEW_OVERVIEW, 120, 40, 0, 0);
    assert_non_null(strstr(text, "tile.cuh:9, 2 more: L log"));
    assert_non_null(strstr(text, "probe of S"));
    free(text);
    fixture_free(s);
}

/* A checked run whose values are right: the reports stand at their tiles and on both of their lines. */
static void reports_of_a_checked_run(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 64, -1, 64);
    snprintf(s->trace->info.checks, sizeof s->trace->info.checks, "on");
    fixture_event(s, "fp-overflow", "overflow: the result is infinite", "kernels/v2b_scalar.cu", 14);
    fixture_event(s, "race",
                  "4 bytes of shared memory are written by thread (3,0,0) of block (2,0,0) and read by thread (35,0,0) "
                  "with no barrier between them",
                  "kernels/v2b_scalar.cu", 9);
    struct trace_event *e = &s->trace->info.events[1];
    e->batch = e->head = 0;
    e->q_tile = 2;
    e->kv_tile = 3;
    e->times = 61440;
    e->other_line = 6;
    snprintf(e->other_file, sizeof e->other_file, "%s", e->file);
    fixture_event(s, "uninitialised", "thread (0,0,0) reads 2 bytes that nobody has written", "kernels/v2b_scalar.cu",
                  10);
    s->trace->info.events[2].batch = s->trace->info.events[2].head = 0;
    s->trace->info.events[2].q_tile = 5;
    s->at_event = 0;
    check(s, VIEW_OVERVIEW, "reports"); /* the cursor is elsewhere */
    s->cursor.q_tile = 2;
    s->cursor.kv_tile = 3;
    fixture_detail(s);
    check(s, VIEW_OVERVIEW, "race");
    check(s, VIEW_SOURCE, "race-source");
    check(s, VIEW_MAP, "race-map");
    check(s, VIEW_LOG, "race-log");
    fixture_free(s);
}

static void event_of_a_clean_run(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 64, -1, 64);
    fixture_event(s, "launch", "v2b_scalar: launched with 64 threads a block, the plan says 128", "", 0);
    check(s, VIEW_OVERVIEW, "event-clean");
    fixture_free(s);
}

static void count(const struct trace *t, const struct layout_part *part, enum asc_channel ch, uint64_t n)
{
    assert_int_equal(pwrite(t->fd, &n, sizeof n, (off_t)(part->offset + ch * sizeof n)), sizeof n);
}

/* The panel begins with what was of another type; the log has all of it. */
static void lost_values(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    const struct layout *l = &s->trace->layout;
    count(s->trace, &l->dropped, asc_s, 77);
    check(s, VIEW_OVERVIEW, "dropped");
    count(s->trace, &l->dropped, asc_s, 0);
    count(s->trace, &l->dropped, asc_l, 15872);
    count(s->trace, &l->mistyped, asc_s, 114688);
    check(s, VIEW_OVERVIEW, "mistyped");
    char *text = draw(s, VIEW_LOG, 120, 40, 0, 0);
    assert_non_null(strstr(text, "114688 values of s are not f32, the declared type"));
    assert_non_null(strstr(text, "15872 values of l had no place in the trace (l_lanes?)"));
    free(text);
    fixture_free(s);
    s = fixture_run(&fixture_mission, 64, -1, 64);
    count(s->trace, &s->trace->layout.dropped, asc_l, 15872);
    text = draw(s, VIEW_OVERVIEW, 80, 24, 0, 0);
    assert_non_null(strstr(text, "every recorded stage is within its bound"));
    assert_non_null(strstr(text, "15872 values of l had no place in the trace (l_lanes?)"));
    free(text);
    fixture_free(s);
}

/* The words wrap where even they do not fit. */
static void too_small(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    char *text = draw(s, VIEW_OVERVIEW, 40, 10, 0, 0);
    assert_non_null(strstr(text, "terminal too small: need 80x24, have"));
    assert_non_null(strstr(text, "40x10"));
    free(text);
    fixture_free(s);
}

static void several_culprits(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    struct judgement *j = s->judgement;
    for (int i = 1; i < 3; i++) {
        j->findings[i] = (struct finding){.channel = i == 1 ? asc_u : asc_lse, .first = j->summary.first};
        snprintf(j->findings[i].text, sizeof j->findings[i].text,
                 "%s is wrong in 800 of 25600 elements: no known cause", channel_label(j->findings[i].channel));
    }
    j->n_findings = 3;
    j->summary.culprits |= 1u << asc_u | 1u << asc_lse;
    check(s, VIEW_OVERVIEW, "several-culprits");
    fixture_free(s);
}

/* Tiles that the kernel never came to: missing, and what should stand there. */
static void tiles_left_out(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 64, -1, 64);
    struct judgement *j = s->judgement;
    for (int slot = 0; slot < 64; slot++)
        for (int ch = asc_k; ch <= asc_u; ch++)
            unwritten(s, (struct place){slot, 7, ch});
    judgement_summarise(j, s->trace, &j->summary);
    struct cause_plan plan = {0};
    struct cause_evidence *evidence = calloc(CAUSE_COUNT, sizeof *evidence);
    assert_non_null(evidence);
    j->n_findings = judgement_find(j, s->trace, &j->summary, &plan, evidence, NULL, j->findings);
    assert_int_equal(j->n_findings, 1);
    free(evidence);
    s->finding = j->findings;
    s->cursor = (struct cursor){.kv_tile = 7, .channel = asc_s};
    fixture_detail(s);
    for (int i = 0; i < s->detail.rows * s->detail.cols; i++) {
        s->detail.got[i] = s->detail.want_local[i] = s->detail.bound_local[i] = NAN;
        s->detail.class_local[i] = CLASS_MISSING;
    }
    check(s, VIEW_OVERVIEW, "left-out");
    check(s, VIEW_TILE, "left-out-tile");
    fixture_free(s);
}

/* What is said of a tile must be true of all of it. */
static void titles_promise_nothing_else(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    char *text = draw(s, VIEW_OVERVIEW, 120, 40, 0, 0);
    assert_non_null(strstr(text, "median got/want +0.1250"));
    free(text);
    s->judgement->tiles[asc_s].local.ratio_spread = 0.02f; /* 0.0156 is an eighth of the median */
    text = draw(s, VIEW_OVERVIEW, 120, 40, 0, 0);
    assert_null(strstr(text, "median got/want +0.1250 "));
    free(text);
    /* One value per row: all four numbers are listed. */
    s->shown = SHOW_DIFF;
    s->cursor.channel = asc_m;
    fixture_detail(s);
    for (int v = VIEW_OVERVIEW; v <= VIEW_TILE; v++) {
        text = draw(s, v, 120, 40, 0, 0);
        assert_null(strstr(text, "difference"));
        free(text);
    }
    fixture_free(s);
}

/* No size may touch memory outside the canvas (ASan watches) or write a wrong line. */
static void every_size(void **state)
{
    (void)state;
    struct session *sessions[] = {fixture_fail(), fixture_new()};
    sessions[1]->phase = PHASE_FAILED;
    err_set(&sessions[1]->err, ERR_BUILD, "a.cu:1", "%s", "no\nsuch thing");
    sessions[0]->cursor = (struct cursor){.head = 7, .q_tile = 7, .kv_tile = 7, .channel = asc_u, .row = 63, .col = 63};
    fixture_detail(sessions[0]);
    fixture_event(sessions[0], "barrier", "met by some", "kernels/v2b_scalar.cu", 9);
    for (int i = 0; i < 2; i++) {
        for (int rows = 1; rows <= 70; rows += rows < 30 ? 1 : 5) {
            for (int cols = 1; cols <= 220; cols += cols >= 78 && cols < 124 ? 2 : 9) {
                for (int v = 0; v < VIEW_COUNT; v++) {
                    char *text = draw(sessions[i], v, cols, rows, 0, 0);
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
        fixture_free(sessions[i]);
    }
}

static void ascii_is_seven_bits(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    for (int v = 0; v < VIEW_COUNT; v++) {
        char *text = draw(s, v, 120, 40, 1, 0);
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
            assert_true(*c < 0x80 && (*c >= 0x20 || *c == '\n'));
        if (v == VIEW_OVERVIEW)
            compare("overview-ascii-120x40", text);
        free(text);
    }
    fixture_free(s);
}

/* A run on a GPU: the recording launch, and beside it one without probes that was counted and is over budget. */
static void resources_of_a_run_on_a_gpu(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    struct trace_info *info = &s->trace->info;
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
    snprintf(info->backend, sizeof info->backend, "gpu");
    snprintf(info->device, sizeof info->device, "NVIDIA H200, sm_90");
    check(s, VIEW_RESOURCES, "resources-recorded");
    info->launches.n = 2;
    info->launches.at[1].achieved_occupancy = 0.183;
    info->launches.at[1].tensor_pipe = 0;
    info->launches.at[1].dram_bytes_per_second = 41.2e9;
    info->launches.budget = (struct launch_budget){.stated = 7, .most = {64, 49152, 0}};
    check(s, VIEW_RESOURCES, "resources-over-budget");
    info->launches.n = 1;
    snprintf(info->launches.not_measured, sizeof info->launches.not_measured,
             "this machine lets only administrators read hardware counters");
    check(s, VIEW_RESOURCES, "resources-not-measured");
    fixture_free(s);
}

static char *edited(const char *text, const char *old, const char *now)
{
    const char *at = strstr(text, old);
    char *made = malloc(strlen(text) + strlen(now) + 1);
    assert_non_null(at);
    sprintf(made, "%.*s%s%s", (int)(at - text), text, now, at + strlen(old));
    return made;
}

/* One run more, of a kernel with other words in it. */
static void add_run(struct session *s, int culprit, const char *old, const char *now)
{
    struct session *next = fixture_run(&fixture_mission, 64, culprit, 64);
    char *text = edited(s->trace->info.source, old, now);
    const int fd = fixture.fd;
    free(next->trace->info.source);
    next->trace->info.source = text;
    struct run *run = runs_add(&s->runs, next->trace, next->judgement, "v2b_scalar");
    run_measure(run);
    run->at = 60 * (time_t)run->number;
    next->trace = NULL;
    next->judgement = NULL;
    fixture_free(next);
    fixture.fd = fd;
    session_show_run(s, run->number);
}

/* Scores were scaled twice, then a repair went wrong in O. */
static struct session *three_runs(void)
{
    struct session *s = fixture_fail();
    s->scenario.capture.mem_bytes = (uint64_t)2 << 30;
    struct run *run = runs_add(&s->runs, s->trace, s->judgement, s->title);
    run_measure(run);
    run->at = 60;
    snprintf(run->name, sizeof run->name, "as it came");
    snprintf(run->saved, sizeof run->saved, "as-it-came.safetensors");
    add_run(s, asc_s, "        float s0 = 0, s1 = 0;\n", "        float s0 = 0;\n        float s1 = 0;\n");
    add_run(s, asc_o, "        s0 *= p.scale * p.scale; s1 *= p.scale * p.scale;\n", "        s0 *= p.scale;\n");
    s->runs.before = 1;
    return s;
}

static void runs_and_changes(void **state)
{
    (void)state;
    struct session *s = three_runs();
    fixture.watching = 1;
    check(s, VIEW_OVERVIEW, "changed");
    check(s, VIEW_RUNS, "runs-three");
    check(s, VIEW_CHANGES, "changes-three");
    session_show_run(s, 2);
    check(s, VIEW_OVERVIEW, "changed-nothing");
    session_show_run(s, 1); /* nothing before it */
    char *text = draw(s, VIEW_OVERVIEW, 120, 40, 0, 0);
    assert_null(strstr(text, "since run"));
    assert_null(strstr(text, "▲"));
    free(text);
    text = draw(s, VIEW_CHANGES, 120, 40, 0, 0);
    assert_non_null(strstr(text, "there is no run before this one"));
    free(text);
    for (int i = 0; i < 9; i++) /* the ring is full: room for a line of each, and what is said of one */
        add_run(s, asc_s, i % 2 ? "scalar dots" : "scalar dot products", i % 2 ? "scalar dot products" : "scalar dots");
    check(s, VIEW_RUNS, "runs-full");
    fixture_free(s);
}

/* The panel of a build that failed, and the run behind it. */
static void build_error_over_a_run(void **state)
{
    (void)state;
    struct session *s = three_runs();
    s->phase = PHASE_FAILED;
    s->made_run = 0;
    err_set(&s->err, ERR_BUILD, "kernels/v2b_scalar.cu:71:16", "%s",
            "'scal' was not declared in this scope; did you mean 'scale'?\n"
            "   71 |         s0 *= p.scal * p.scale;\n"
            "      |                 ^~~~\n"
            "      |                 scale\n"
            "kernels/v2b_scalar.cu:80:9: warning: unused variable 'x' [-Wunused-variable]\n"
            "kernels/v2b_scalar.cu: In function 'void attention(asc_problem)':\n"
            "kernels/v2b_scalar.cu:93:5: error: expected ';' before '}' token");
    check(s, VIEW_ERRORS, "build-error");
    check(s, VIEW_OVERVIEW, "build-error-behind");
    struct view_state vs = {.selected = 0};
    char file[256];
    assert_int_equal(errors_view_lines(s), 7);
    assert_int_equal(errors_view_place(s, &vs, file, sizeof file), 71);
    assert_string_equal(file, "kernels/v2b_scalar.cu");
    vs.selected = 5; /* both errors stand before the warning */
    assert_int_equal(errors_view_place(s, &vs, file, sizeof file), 93);
    vs.selected = 1000;
    assert_int_equal(errors_view_place(s, &vs, file, sizeof file), 80);
    s->phase = PHASE_READY;
    s->err = (struct err){0};
    assert_int_equal(errors_view_lines(s), 0);
    assert_int_equal(errors_view_place(s, &vs, file, sizeof file), 0);
    fixture_free(s);
}

static void show_says_what_is_wrong(void **state)
{
    (void)state;
    struct session *s = fixture_new();
    struct err err;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(tui_show(s, "tiles", 80, 24, 0, out, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.message, "overview, map, tile, source, "));
    assert_non_null(strstr(err.message, "errors, help"));
    assert_int_equal(tui_show(s, "map", 79, 24, 0, out, &err), -1);
    assert_int_equal(err.code, ERR_TERMINAL);
    assert_int_equal(tui_show(s, "map", 100000, 24, 0, out, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    fflush(out);
    assert_int_equal(bytes, 0);
    assert_int_equal(tui_show(s, "help", 80, 24, 0, out, &err), 0);
    fclose(out);
    assert_non_null(strstr(text, "next bad tile"));
    free(text);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(tui_show(s, "help", 80, 24, 0, full, &err), -1);
        assert_int_equal(err.code, ERR_SYSTEM);
        fclose(full);
    }
    fixture_free(s);
}

int main(void)
{
    setenv("TZ", "UTC", 1); /* times of runs */
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
        cmocka_unit_test(event_of_a_clean_run),
        cmocka_unit_test(reports_of_a_checked_run),
        cmocka_unit_test(lost_values),
        cmocka_unit_test(too_small),
        cmocka_unit_test(several_culprits),
        cmocka_unit_test(tiles_left_out),
        cmocka_unit_test(titles_promise_nothing_else),
        cmocka_unit_test(every_size),
        cmocka_unit_test(ascii_is_seven_bits),
        cmocka_unit_test(resources_of_a_run_on_a_gpu),
        cmocka_unit_test(runs_and_changes),
        cmocka_unit_test(build_error_over_a_run),
        cmocka_unit_test(show_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
