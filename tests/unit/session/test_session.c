#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/child/stamps.h"
#include "engine/session/session.h"
#include "engine/verdict/status.h"
#include "tests/unit/lib/open_scenario.h"
#include "tests/unit/lib/temporary.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A session on tests/session/NAME.ini, run and judged to the end. */
static struct session *run(const char *name)
{
    struct session *s = open_scenario("tests/session/%s.ini", name);
    assert_int_equal(session_start(s), 0);
    assert_int_equal(session_start(s), -1); /* one at a time */
    session_finish(s, 0);
    return s;
}

static int meets(const struct session *s, struct expect expect)
{
    char why[512];
    int met = judgement_meets(s->run.judgement, s->run.trace, &expect, why, sizeof why);
    print_message("%s\n", why);
    return met;
}

static const struct expect nothing = {.first_channel = -1, .first = {-1, -1, -1, -1}};

static void test_clean(void **state)
{
    (void)state;
    struct session *s = run("small");
    assert_int_equal(s->job.phase, PHASE_READY);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        assert_int_equal(s->run.judgement->summary.stage[ch].local, STAGE_OK);
        assert_int_equal(s->run.judgement->summary.stage[ch].global, STAGE_OK);
        assert_int_equal(trace_dropped(s->run.trace, ch) + trace_mistyped(s->run.trace, ch), 0);
    }
    /* Tails count: 2 heads of 100 rows, and 100 keys or 64 columns. */
    assert_int_equal(s->run.judgement->summary.stage[asc_s].elements, 2 * 100 * 100);
    assert_int_equal(s->run.judgement->summary.stage[asc_o].elements, 2 * 100 * 64);
    assert_true(meets(s, nothing));
    struct expect fails = nothing;
    fails.verdict = EXPECT_FAIL;
    assert_false(meets(s, fails));
    assert_int_equal(session_go_first_bad(s), 0);
    assert_int_equal(session_step_bad(s, 1), 0);
    session_free(s);
}

static void test_nan(void **state)
{
    (void)state;
    struct session *s = run("nan-row");
    const struct summary *sum = &s->run.judgement->summary;
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(sum->culprits, 1u << asc_s);
    assert_int_equal(sum->first.channel, asc_s);
    assert_int_equal(sum->first.kv, 1);
    assert_memory_equal(trace_slot_place(s->run.trace, sum->first.slot), ((int32_t[]){0, 1, 1}), 3 * sizeof(int32_t));
    assert_int_equal(sum->stage[asc_s].bad_local, 36); /* row 5 of kv tile 1: 100 - 64 keys */
    assert_int_equal(sum->stage[asc_q].bad_global + sum->stage[asc_k].bad_global + sum->stage[asc_v].bad_global, 0);
    /* The cursor went there by itself. */
    assert_int_equal(s->at.cursor.head, 1);
    assert_int_equal(s->at.cursor.q_tile, 1);
    assert_int_equal(s->at.cursor.kv_tile, 1);
    assert_int_equal(s->at.cursor.row, 5);
    assert_int_equal(s->at.cursor.col, 0);
    assert_int_equal(s->tile.detail.class_local[(size_t)5 * (size_t)s->tile.detail.cols], CLASS_NAN);
    assert_int_equal(s->run.judgement->n_findings, 1);
    assert_int_equal(s->run.judgement->findings[0].cause, CAUSE_NONE);
    assert_int_equal(s->run.judgement->findings[0].row, 5);
    session_free(s);
}

static void parts_are(const struct session *s, struct expect expect, enum expect_part stage, enum expect_part tile,
                      enum expect_part finding)
{
    struct expect_parts p;
    judgement_parts(s->run.judgement, s->run.trace, &expect, &p);
    assert_int_equal(p.stage, stage);
    assert_int_equal(p.tile, tile);
    assert_int_equal(p.finding, finding);
}

static void test_expectations(void **state)
{
    (void)state;
    struct session *s = run("alpha-forgotten");
    struct expect e = nothing;
    assert_false(meets(s, e)); /* nothing expected: a clean run is */
    e.verdict = EXPECT_FAIL;
    assert_true(meets(s, e));
    e.first_channel = asc_u;
    e.culprits = 1u << asc_u;
    assert_true(meets(s, e));
    const struct expect right = e;
    e.first_channel = asc_s;
    assert_false(meets(s, e));
    e = right;
    e.culprits |= 1u << asc_o;
    assert_false(meets(s, e));
    e = right;
    e.first[3] = 0; /* the first kv tile has nothing to rescale: the fault begins in the second */
    assert_false(meets(s, e));
    e.first[3] = 1;
    assert_true(meets(s, e));
    e = right;
    static const char *const causes[] = {"scaled-twice", "u-not-rescaled,scaled-twice", "none", "u-cubed"};
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        snprintf(e.cause, sizeof e.cause, "%s", causes[i]);
        assert_false(meets(s, e));
    }
    snprintf(e.cause, sizeof e.cause, "u-not-rescaled");
    assert_true(meets(s, e));
    parts_are(s, e, PART_RIGHT, PART_NOT_STATED, PART_RIGHT);
    e.first[3] = 0; /* each part by itself */
    parts_are(s, e, PART_RIGHT, PART_WRONG, PART_RIGHT);
    e.first[3] = 1;
    e.culprits |= 1u << asc_o;
    parts_are(s, e, PART_WRONG, PART_RIGHT, PART_RIGHT);
    e.culprits = 0;
    e.first_channel = -1;
    snprintf(e.cause, sizeof e.cause, "scaled-twice");
    parts_are(s, e, PART_NOT_STATED, PART_RIGHT, PART_WRONG);
    parts_are(s, nothing, PART_WRONG, PART_NOT_STATED, PART_NOT_STATED);
    session_free(s);
}

static unsigned kinds(const char *list)
{
    char name[64];
    unsigned set = 0;
    for (int i = 0; scenario_listed(list, i, name); i++)
        set |= 1u << event_from_name(name);
    return set;
}

static void expect_events(struct expect *e, const char *events, const char *at, const char *stopped)
{
    *e = nothing;
    e->verdict = EXPECT_FAIL;
    e->events = kinds(events);
    snprintf(e->event_at, sizeof e->event_at, "%s", at);
    e->stopped = kinds(stopped);
}

/* The 1-based line of the source that holds a text. */
static int line_with(const struct trace *t, const char *piece)
{
    int line = 1;
    const char *at = strstr(t->info.source, piece);
    assert_non_null(at);
    for (const char *c = t->info.source; c < at; c++)
        line += *c == '\n';
    return line;
}

/* What is reported on the way, in a run whose values are right. */
static void test_expected_events(void **state)
{
    (void)state;
    struct session *s = run("small");
    struct trace_info *info = &s->run.trace->info;
    struct expect e = nothing;
    e.no_event = true;
    assert_true(meets(s, e));
    expect_events(&e, "barrier", "", "");
    assert_false(meets(s, e)); /* there is none */

    const int line = line_with(s->run.trace, "const int last_row");
    free(info->events);
    info->events = calloc(2, sizeof *info->events);
    assert_non_null(info->events);
    info->n_events = 2;
    for (int i = 0; i < 2; i++) {
        trace_event_init(&info->events[i]);
        info->events[i].kind = EVENT_BARRIER;
        info->events[i].line = i ? 1 : line;
    }
    snprintf(info->events[0].file, sizeof info->events[0].file, "%s", info->source_name);
    assert_true(meets(s, e));
    e.no_culprits = 1;
    assert_true(meets(s, e));
    e.culprits = 1u << asc_s;
    e.no_culprits = 0;
    assert_false(meets(s, e)); /* the values are right */
    expect_events(&e, "barrier,fp-invalid", "", "");
    assert_false(meets(s, e)); /* each of them */
    info->events[1].kind = EVENT_FP_INVALID;
    assert_true(meets(s, e));
    expect_events(&e, "barrier", "const int last_row", "");
    assert_true(meets(s, e));
    parts_are(s, e, PART_NOT_STATED, PART_RIGHT, PART_RIGHT);
    e.no_culprits = 1;
    parts_are(s, e, PART_RIGHT, PART_RIGHT, PART_RIGHT);
    snprintf(e.event_at, sizeof e.event_at, "extern __shared__"); /* of the same text, elsewhere */
    assert_false(meets(s, e));
    snprintf(e.event_at, sizeof e.event_at, "const int last_row");
    info->events[0].line--;
    assert_false(meets(s, e));
    info->events[0].line += 2;
    assert_false(meets(s, e));
    info->events[0].line = 0; /* not known is not met */
    assert_false(meets(s, e));
    snprintf(info->events[0].other_file, sizeof info->events[0].other_file, "%s", info->source_name);
    info->events[0].other_line = line; /* the other side of a collision does as well */
    assert_true(meets(s, e));
    info->events[0].other_line++;
    assert_false(meets(s, e));
    info->events[0].line = line;
    snprintf(info->events[0].file, sizeof info->events[0].file, "other.h");
    assert_false(meets(s, e));
    e = nothing;
    assert_false(meets(s, e)); /* right values, and yet not clean */
    assert_string_equal(session_verdict_word(s), "FAIL");
    info->events[0].kind = EVENT_FP_OVERFLOW; /* that its values have to say */
    assert_true(meets(s, e));
    assert_string_equal(session_verdict_word(s), "CLEAN");
    info->events[0].kind = EVENT_RACE;
    e.no_event = true;
    assert_false(meets(s, e));
    expect_events(&e, "", "", "address"); /* it came to its end */
    assert_false(meets(s, e));
    session_free(s);
}

/* Where values are right, the keys for bad tiles go to the reports. */
static void test_stepping_over_reports(void **state)
{
    (void)state;
    struct session *s = run("small");
    struct trace_info *info = &s->run.trace->info;
    free(info->events);
    info->events = calloc(4, sizeof *info->events);
    assert_non_null(info->events);
    info->n_events = 4;
    static const struct {
        enum event_kind kind;
        int head, q_tile, kv_tile;
    } at[] = {{EVENT_FP_OVERFLOW, 0, 0, 1}, {EVENT_RACE, 1, 0, 1}, {EVENT_BOUNDS, 1, 1, -1}, {EVENT_RACE, 7, 0, 0}};
    for (int i = 0; i < 4; i++) {
        struct trace_event *e = &info->events[i];
        trace_event_init(e);
        e->kind = at[i].kind;
        e->batch = 0;
        e->head = at[i].head;
        e->q_tile = at[i].q_tile;
        e->kv_tile = at[i].kv_tile;
    }
    session_go(s, (struct place){0, 0, asc_q});
    assert_int_equal(session_at_report(s), 0);
    assert_ptr_equal(session_event(s), &info->events[1]); /* the first one that makes it unclean */
    assert_int_equal(session_step_bad(s, 1), 1);
    assert_int_equal(s->at.cursor.channel, asc_s);
    assert_int_equal(s->at.cursor.head * 100 + s->at.cursor.q_tile * 10 + s->at.cursor.kv_tile, 101);
    assert_int_equal(session_at_report(s), 1);
    assert_int_equal(session_step_bad(s, 1), 1); /* no kv tile is known: at the first one */
    assert_int_equal(s->at.cursor.head * 100 + s->at.cursor.q_tile * 10 + s->at.cursor.kv_tile, 110);
    assert_ptr_equal(session_event(s), &info->events[2]);
    assert_int_equal(session_step_bad(s, 1), 0); /* there is no head 7 */
    assert_int_equal(session_step_bad(s, -1), 1);
    assert_int_equal(session_step_bad(s, -1), 0);
    assert_int_equal(session_go_first_bad(s), 1);
    assert_int_equal(s->at.cursor.head * 100 + s->at.cursor.q_tile * 10 + s->at.cursor.kv_tile, 101);
    session_free(s);
    /* Wrong values come first. */
    s = run("alpha-forgotten");
    free(s->run.trace->info.events);
    s->run.trace->info.events = calloc(1, sizeof *info->events);
    assert_non_null(s->run.trace->info.events);
    s->run.trace->info.n_events = 1;
    trace_event_init(&s->run.trace->info.events[0]);
    s->run.trace->info.events[0].kind = EVENT_RACE;
    s->run.trace->info.events[0].batch = s->run.trace->info.events[0].head = s->run.trace->info.events[0].q_tile = 0;
    s->run.trace->info.events[0].kv_tile = 0;
    assert_int_equal(session_go_first_bad(s), 1);
    assert_int_equal(s->at.cursor.channel, asc_u);
    session_go(s, (struct place){0, 0, asc_q});
    assert_int_equal(session_step_bad(s, 1), 1);
    assert_int_equal(s->at.cursor.channel, asc_u);
    session_free(s);
}

/* Runs that end early, as they should. */
static void test_expected_stops(void **state)
{
    (void)state;
    struct session *s = run("reads-behind-k");
    struct expect e;
    assert_int_equal(s->run.trace->info.stopped, EVENT_ADDRESS);
    assert_false(meets(s, nothing));
    expect_events(&e, "", "", "");
    assert_false(meets(s, e)); /* a failure is one of values */
    expect_events(&e, "", "", "launch,address");
    assert_true(meets(s, e));
    expect_events(&e, "", "", "launch");
    assert_false(meets(s, e));
    expect_events(&e, "", "x = head[", "address");
    assert_true(meets(s, e));
    parts_are(s, e, PART_NOT_STATED, PART_RIGHT, PART_RIGHT);
    expect_events(&e, "", "tile[r * (D + 2) + d] = x", "address");
    assert_false(meets(s, e));
    parts_are(s, e, PART_NOT_STATED, PART_WRONG, PART_RIGHT);
    expect_events(&e, "", "x = head[", "launch");
    parts_are(s, e, PART_NOT_STATED, PART_RIGHT, PART_WRONG);
    expect_events(&e, "", "", "address");
    e.first_channel = asc_s; /* what it recorded is right */
    assert_false(meets(s, e));
    session_free(s);

    s = run("hang");
    expect_events(&e, "", "anything", "limit"); /* no event says where */
    assert_true(meets(s, e));
    expect_events(&e, "", "", "deadlock");
    assert_false(meets(s, e));
    session_free(s);
}

static void test_hang_keeps_what_was_written(void **state)
{
    (void)state;
    struct session *s = run("hang");
    assert_int_equal(s->job.phase, PHASE_FAILED);
    assert_int_equal(s->job.err.code, ERR_RUN);
    assert_string_equal(session_verdict_word(s), "HUNG");
    assert_non_null(s->run.trace);
    /* What came before the loop is there and right; what never came is nobody's fault. */
    int slot = trace_slot(s->run.trace, 0, 0, 1);
    assert_true(trace_first_stamp(s->run.trace, asc_u, slot, 0) > 0);
    assert_int_equal(trace_first_stamp(s->run.trace, asc_u, slot, 1), 0);
    assert_int_equal(s->run.judgement->summary.culprits, 0);
    assert_false(meets(s, nothing));
    /* Nothing is wrong, so the cursor stands where the run came to. */
    struct last_stamp last;
    const int farthest = runner_farthest(s->run.trace, &last);
    assert_int_equal(session_slot(s), farthest);
    assert_int_equal(last.finished, 0);
    assert_int_equal(s->at.cursor.channel, last.channel);
    assert_int_equal(s->at.cursor.kv_tile, last.kv);
    /* The next run works: a fresh child. */
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    assert_string_equal(session_verdict_word(s), "HUNG");
    assert_int_equal(s->run.number, 2);
    session_free(s);
}

static void test_cancel(void **state)
{
    (void)state;
    struct session *s = open_scenario("tests/session/hang.ini");
    s->subject.scenario.limit_s = 600;
    assert_int_equal(session_start(s), 0);
    while (s->job.phase != PHASE_RUNNING && session_busy(s))
        session_update(s);
    session_cancel(s);
    session_finish(s, 0);
    assert_int_equal(s->job.err.code, ERR_CANCELLED);
    assert_string_equal(session_verdict_word(s), "CANCELLED");
    session_free(s);
}

static void test_stepping(void **state)
{
    (void)state;
    struct session *s = run("alpha-forgotten");
    session_go(s, (struct place){0, 0, asc_k});
    assert_int_equal(session_go(s, (struct place){0, 0, asc_q}), 1);
    assert_int_equal(session_step_stage(s, -1), 0);
    assert_true(s->message[0] != '\0');
    assert_int_equal(session_step_kv(s, 1), 0); /* Q exists once per q tile */
    assert_int_equal(session_step_stage(s, 3), 1);
    assert_int_equal(s->at.cursor.channel, asc_s);
    assert_int_equal(session_step_kv(s, 1), 1);
    assert_int_equal(session_step_kv(s, 1), 0);
    assert_int_equal(session_step_col(s, 40), 1); /* a tail of 36 columns: stops at the last */
    assert_int_equal(s->at.cursor.col, 35);
    assert_int_equal(session_step_head(s, 1), 1);
    assert_int_equal(session_step_head(s, 1), 0);
    assert_int_equal(session_step_q(s, 1), 1);
    assert_int_equal(session_step_row(s, 100), 1);
    assert_int_equal(s->at.cursor.row, 35);
    assert_int_equal(session_step_stage(s, 100), 0);

    /* Every bad tile once, forward and back: U of the second kv tile in each of 2 heads x 2 q tiles. */
    session_go(s, (struct place){0, 0, asc_q});
    int n = 0;
    while (session_step_bad(s, 1)) {
        n++;
        assert_int_equal(s->at.cursor.channel, asc_u);
        assert_int_equal(s->at.cursor.kv_tile, 1);
    }
    assert_int_equal(n, 4);
    while (session_step_bad(s, -1))
        n--;
    assert_int_equal(n, 1); /* it already stood on the last one */
    session_free(s);
}

/* What leaves the kernel is judged, not only what its probes saw. */
static void test_output_is_judged(void **state)
{
    (void)state;
    struct session *s = run("o-wrong-column");
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(s->run.judgement->summary.culprits, 1u << asc_o);
    assert_non_null(strstr(s->run.judgement->findings[0].text, "memory does not match what the probe saw"));
    session_free(s);

    s = run("lse-not-stored");
    assert_int_equal(s->run.judgement->summary.culprits, 1u << asc_lse);
    assert_int_equal(s->run.judgement->summary.stage[asc_lse].missing_local, 2 * 100);
    assert_non_null(strstr(s->run.judgement->findings[0].text, "was never written"));
    session_free(s);

    /* Without any probe for them as well. */
    struct err err;
    s = open_scenario("tests/session/o-wrong-column.ini");
    assert_int_equal(scenario_set(&s->subject.scenario, "capture.channels", "l,u", &err), 0);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    assert_int_equal(s->run.judgement->summary.culprits, 1u << asc_o);
    assert_int_equal(s->run.judgement->summary.stage[asc_lse].local, STAGE_OK);
    session_free(s);
}

/* A run of a scenario of which only some channels are recorded. */
static struct session *run_recording(const char *scenario, const char *channels)
{
    struct session *s = open_scenario("%s.ini", scenario);
    struct err err;
    assert_int_equal(scenario_set(&s->subject.scenario, "capture.channels", channels, &err), 0);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    return s;
}

/* Whatever is recorded, a right kernel is clean; and what is recorded is judged, with nothing upstream as well. */
static void test_few_channels(void **state)
{
    (void)state;
    static const char *const right[] = {"o", "lse", "q,o", "o,lse", "s", "m", "p", "l", "u", "alpha"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct session *s = run_recording("tests/session/small", right[i]);
        assert_string_equal(session_verdict_word(s), "CLEAN");
        assert_true(meets(s, nothing));
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            if (trace_has(s->run.trace, ch)) {
                assert_int_equal(s->run.judgement->summary.stage[ch].local, STAGE_OK);
                assert_int_equal(s->run.judgement->summary.stage[ch].global, STAGE_OK);
            }
        session_free(s);
    }
    static const char *const wrong[] = {"tests/session/o-nan", "scenarios/bugs/o-not-divided",
                                        "scenarios/bugs/double-scale"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct session *s = run_recording(wrong[i], "o");
        assert_string_equal(session_verdict_word(s), "FAIL");
        assert_true(s->run.judgement->summary.culprits & 1u << asc_o);
        session_free(s);
    }
}

/* A stage of which no element can be judged is not known to be right, and a run of such stages is not clean. */
static void test_unjudged_is_not_clean(void **state)
{
    (void)state;
    struct session *s = run("small");
    for (int i = 0; i < s->run.judgement->n_slots * s->run.judgement->kv_tiles * ASC_CHANNELS; i++) {
        struct tile_verdicts *v = &s->run.judgement->tiles[i];
        const int hide = i % ASC_CHANNELS == asc_p;
        if (hide)
            v->local = v->global = (struct verdict){.unjudged = v->local.count[CLASS_OK], .visited = 1};
    }
    judgement_summarize(s->run.judgement, s->run.trace, NULL, &s->run.judgement->summary);
    assert_int_equal(s->run.judgement->summary.stage[asc_p].local, STAGE_UNKNOWN);
    assert_int_equal(s->run.judgement->summary.stage[asc_p].global, STAGE_UNKNOWN);
    assert_int_equal(s->run.judgement->summary.stage[asc_p].elements, 0);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    for (int i = 0; i < s->run.judgement->n_slots * s->run.judgement->kv_tiles * ASC_CHANNELS; i++)
        s->run.judgement->tiles[i] =
            (struct tile_verdicts){{.unjudged = 1, .visited = 1}, {.unjudged = 1, .visited = 1}};
    judgement_summarize(s->run.judgement, s->run.trace, NULL, &s->run.judgement->summary);
    assert_string_equal(session_verdict_word(s), "UNJUDGED");
    assert_false(meets(s, nothing));
    session_free(s);
}

static void test_accesses_outside_an_array_are_named(void **state)
{
    (void)state;
    static const char *const names[] = {"o-unguarded", "reads-behind-k", "reads-far-behind"};
    static const char *const words[] = {"past the end of O", "past the end of", "past the end of Q"};
    for (int i = 0; i < 3; i++) {
        struct session *s = run(names[i]);
        assert_string_equal(session_verdict_word(s), "CRASHED");
        assert_non_null(session_event(s));
        assert_int_equal(session_event(s)->kind, EVENT_ADDRESS);
        assert_non_null(strstr(session_event(s)->text, words[i]));
        assert_true(session_event(s)->line > 0 && s->at.event);
        /* What was not written is neither fine nor anybody's fault. */
        assert_int_equal(s->run.judgement->summary.stage[asc_lse].local, i < 2 ? STAGE_PARTIAL : STAGE_UNKNOWN);
        assert_int_equal(s->run.judgement->summary.culprits, 0);
        session_free(s);
    }
}

static void test_tiles_left_out_come_first(void **state)
{
    (void)state;
    struct session *s = run("last-tile-skipped");
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(s->run.judgement->summary.culprits, 1u << CULPRIT_LOOP); /* and no stage */
    assert_int_equal(s->run.judgement->summary.unvisited, 4);                 /* 2 heads x 2 q tiles, kv tile 1 */
    assert_int_equal(s->run.judgement->summary.first_unvisited.kv, 1);
    assert_int_equal(s->run.judgement->n_findings, 1);
    assert_true(s->run.judgement->findings[0].loop);
    const char *text = s->run.judgement->findings[0].text;
    assert_non_null(
        strstr(text, "4 kv tiles that rows should see were never visited; the number of tiles is rounded down"));
    assert_non_null(strstr(text, " is missing: h0 q0 k1"));
    assert_false(meets(s, nothing));
    struct expect fails = nothing;
    fails.verdict = EXPECT_FAIL;
    fails.first[3] = 1;
    assert_true(meets(s, fails));
    fails.first_channel = CULPRIT_LOOP;
    fails.culprits = 1u << CULPRIT_LOOP;
    assert_true(meets(s, fails));
    fails.culprits |= 1u << asc_s;
    assert_false(meets(s, fails));
    fails.culprits = 1u << CULPRIT_LOOP;
    fails.first_channel = asc_k;
    assert_false(meets(s, fails));
    fails.first_channel = CULPRIT_LOOP;
    fails.first[3] = 0;
    assert_false(meets(s, fails));
    session_free(s);
}

static void test_saved_is_judged_the_same(void **state)
{
    (void)state;
    char path[TEMPORARY];
    struct session *s = run("alpha-forgotten"), *again;
    struct err err;
    int fd = mkstemp(temporary(path, "session"));
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(session_save(s, path, &err), 0);
    assert_int_equal(session_open(path, &again, &err), 0);
    assert_int_equal(again->subject.has_scenario, 0);
    assert_int_equal(session_start(again), 0);
    assert_int_equal(session_finish(again, 0), 0);
    const struct summary *a = &s->run.judgement->summary, *b = &again->run.judgement->summary;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        assert_int_equal(a->stage[ch].elements, b->stage[ch].elements);
        assert_int_equal(a->stage[ch].bad_local, b->stage[ch].bad_local);
        assert_int_equal(a->stage[ch].bad_global, b->stage[ch].bad_global);
    }
    assert_int_equal(a->first.slot, b->first.slot);
    assert_int_equal(a->first.channel, b->first.channel);
    assert_string_equal(s->run.judgement->findings[0].text, again->run.judgement->findings[0].text);
    assert_int_equal(session_site(s)->line, session_site(again)->line);
    assert_int_equal(session_start(again), -1); /* a saved trace cannot be rerun */
    unlink(path);
    session_free(again);
    session_free(s);
}

static void test_not_recorded_is_not_fine(void **state)
{
    (void)state;
    struct err err;
    struct session *s = open_scenario("tests/session/nan-row.ini");
    assert_int_equal(scenario_set(&s->subject.scenario, "capture.channels", "q,k,v", &err), 0);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    assert_int_equal(s->run.judgement->summary.stage[asc_s].local, STAGE_UNRECORDED);
    assert_int_equal(trace_tile(s->run.trace, asc_s, 0, 0).data == NULL, 1);
    session_free(s);

    s = open_scenario("tests/session/nan-row.ini");
    assert_int_equal(scenario_set(&s->subject.scenario, "capture.mem", "1KiB", &err), 0);
    assert_int_equal(session_start(s), 0);
    assert_int_equal(session_finish(s, 0), -1);
    assert_int_equal(s->job.err.code, ERR_INPUT);
    session_free(s);
}

/* What a map reads is what the verdicts come to, for every tile of every stage. */
static void test_outcomes_are_those_of_the_verdicts(void **state)
{
    (void)state;
    static const char *const names[] = {"nan-row", "hang", "last-tile-skipped", "s-before-mask"};
    unsigned seen = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct session *s = run(names[i]);
        struct judgement *j = s->run.judgement;
        const size_t bytes = (size_t)j->n_slots * (size_t)j->kv_tiles * ASC_CHANNELS;
        uint8_t *noted = malloc(bytes);
        assert_non_null(noted);
        memcpy(noted, j->statuses, bytes);
        for (int slot = 0; slot < j->n_slots; slot++)
            for (int ch = 0; ch < ASC_CHANNELS; ch++)
                for (int kv = 0; kv < (channel_per_kv(ch) ? j->kv_tiles : 1); kv++) {
                    const struct place place = {slot, kv, (enum asc_channel)ch};
                    memcpy(j->statuses, noted, bytes);
                    const enum tile_status read = judgement_status(j, place);
                    memset(j->statuses, 0, bytes);
                    assert_int_equal(read, judgement_status(j, place));
                    seen |= 1u << read;
                }
        free(noted);
        session_free(s);
    }
    assert_true(seen & 1u << CLASS_OK);
    assert_true(seen & 1u << CLASS_NAN);
    assert_true(seen & 1u << STATUS_UNWRITTEN);
    assert_true(seen & 1u << STATUS_UPSTREAM);
}

/* Heads counted round within a batch, and through the batches as they lie in memory, part at the last one. */
static void test_next_kv_head(void **state)
{
    (void)state;
    struct session *s = run("next-kv-head");
    const struct judgement *j = s->run.judgement;
    assert_int_equal(j->summary.culprits, 1u << asc_k | 1u << asc_v);
    assert_int_equal(j->n_findings, 2);
    assert_int_equal(j->findings[0].cause, CAUSE_k_wrong_head);
    assert_int_equal(j->findings[1].cause, CAUSE_v_wrong_head);
    for (int i = 0; i < 2; i++)
        assert_non_null(strstr(j->findings[i].explained, "kv head"));
    session_free(s);
}

/* Where the output is right, no mistake of the mask is named: the tail is hidden from all but the probe. */
static void test_scores_before_the_mask(void **state)
{
    (void)state;
    struct session *s = run("s-before-mask");
    const struct judgement *j = s->run.judgement;
    assert_int_equal(j->summary.stage[asc_o].global, STAGE_OK);
    assert_int_equal(j->summary.culprits, 1u << asc_s | 1u << asc_l);
    assert_int_equal(j->n_findings, 2);
    assert_int_equal(j->findings[0].cause, CAUSE_s_recorded_before_mask);
    assert_string_equal(j->findings[0].detail, "s_at declared masked, looks dot");
    assert_int_equal(j->findings[1].cause, CAUSE_NONE); /* l is right once S is declared so */
    assert_non_null(strstr(j->findings[1].declaration, "s_at = dot"));
    assert_int_equal(j->findings[0].n_also + j->findings[1].n_also, 0);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_expected_events),
        cmocka_unit_test(test_expected_stops),
        cmocka_unit_test(test_stepping_over_reports),
        cmocka_unit_test(test_hang_keeps_what_was_written),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_output_is_judged),
        cmocka_unit_test(test_few_channels),
        cmocka_unit_test(test_unjudged_is_not_clean),
        cmocka_unit_test(test_accesses_outside_an_array_are_named),
        cmocka_unit_test(test_tiles_left_out_come_first),
        cmocka_unit_test(test_stepping),
        cmocka_unit_test(test_outcomes_are_those_of_the_verdicts),
        cmocka_unit_test(test_next_kv_head),
        cmocka_unit_test(test_scores_before_the_mask),
        cmocka_unit_test(test_saved_is_judged_the_same),
        cmocka_unit_test(test_not_recorded_is_not_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
