/* Stepping as the kernel ran, stop conditions, jumps, marks and pins: on a run, and each by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/session.h"
#include "tests/unit/lib/open_scenario.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A session on tests/session/NAME.ini, run and judged to the end. */
static struct session *run(const char *name)
{
    struct session *s = open_scenario("tests/session/%s.ini", name);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    return s;
}

static void at(const struct session *s, const char *place)
{
    char words[CURSOR_WORDS_BYTES];
    cursor_words(s->run.trace, &s->at.cursor, words);
    assert_string_equal(words, place);
}

static int seek(struct session *s, int by)
{
    const struct cursor from = s->at.cursor;
    assert_int_equal(session_seek(s, by), 1);
    session_finish(s, 0);
    return !cursor_same(&from, &s->at.cursor);
}

static int go(struct session *s, const char *place)
{
    struct cursor to = s->at.cursor;
    struct err err;
    if (cursor_parse(place, s->run.trace, &to, &err) != 0) {
        snprintf(s->message, sizeof s->message, "%.250s", err.message);
        return 0;
    }
    return session_jump_to(s, &to);
}

/* 2 heads x 2 q tiles x 2 kv tiles; U is off in the second kv tile. */
static void the_kernels_order(void **state)
{
    (void)state;
    struct session *s = run("alpha-forgotten");
    assert_int_equal(go(s, "q[b0,h0,q0]"), 1);
    assert_int_equal(session_step_order(s, -1), 0);
    assert_string_equal(s->message, "the run begins here");
    const char *const order[] = {"k", "v", "s", "m", "alpha", "p", "l", "u"};
    for (int kv = 0; kv < 2; kv++)
        for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
            assert_int_equal(session_step_order(s, 1), 1);
            assert_string_equal(channel_name(s->at.cursor.channel), order[i]);
            assert_int_equal(s->at.cursor.kv_tile, kv);
        }
    assert_int_equal(session_step_order(s, 3), 1); /* o, lse, and Q of the next q tile */
    at(s, "q[b0,h0,q1] r0 c0");
    assert_int_equal(session_step_order(s, -3), 1);
    at(s, "u[b0,h0,q0,k1] r0 c0");
    /* A stage over kv steps, into the next q tile and head. */
    assert_int_equal(session_step_visit(s, 1), 1);
    at(s, "u[b0,h0,q1,k0] r0 c0");
    assert_int_equal(session_step_visit(s, 2), 1);
    at(s, "u[b0,h1,q0,k0] r0 c0");
    assert_int_equal(session_step_visit(s, 100), 1);
    at(s, "u[b0,h1,q1,k1] r0 c0");
    assert_int_equal(session_step_visit(s, 1), 0);
    session_free(s);
}

static void element_by_element(void **state)
{
    (void)state;
    struct session *s = run("alpha-forgotten");
    assert_int_equal(go(s, "s h0 q0 k1 r0 c35"), 1); /* the last of a tail of 36 columns */
    assert_int_equal(session_step_element(s, 1), 1);
    at(s, "s[b0,h0,q0,k1] r1 c0");
    assert_int_equal(session_step_element(s, 62 * 36 + 35), 1);
    at(s, "s[b0,h0,q0,k1] r63 c35");
    assert_int_equal(session_step_element(s, 1), 1); /* the first of the tile behind it */
    at(s, "s[b0,h0,q1,k0] r0 c0");
    assert_int_equal(session_step_element(s, -1), 1);
    at(s, "s[b0,h0,q0,k1] r63 c35");
    assert_int_equal(session_step_element(s, 3), 1);
    at(s, "s[b0,h0,q1,k0] r0 c2");
    assert_int_equal(session_step_element(s, -4), 1);
    at(s, "s[b0,h0,q0,k1] r63 c34");
    session_free(s);
}

static void places_as_text(void **state)
{
    (void)state;
    struct session *s = run("small");
    assert_int_equal(go(s, "S b0 h1 q1 k1 r3 c5"), 1);
    at(s, "s[b0,h1,q1,k1] r3 c5");
    assert_int_equal(go(s, "r7"), 1); /* the column stays */
    at(s, "s[b0,h1,q1,k1] r7 c5");
    assert_int_equal(go(s, "k0"), 1); /* another tile: from its beginning */
    at(s, "s[b0,h1,q1,k0] r0 c0");
    assert_int_equal(go(s, "α[h0]"), 1);
    at(s, "alpha[b0,h0,q1,k0] r0 c0");
    assert_int_equal(go(s, "q"), 1); /* the channel, not a q tile */
    at(s, "q[b0,h0,q1] r0 c0");
    assert_int_equal(go(s, "s r1000 c1000"), 1);
    at(s, "s[b0,h0,q1,k0] r35 c63"); /* as far as the tail goes */
    const struct {
        const char *text, *why;
    } wrong[] = {{"", "expected a place"},
                 {" [ ] ", "expected a place"},
                 {"s[h2]", "head 2 is out of range: this run has 2"},
                 {"b1", "batch 1 is out of range: this run has 1"},
                 {"q2", "q tile 2"},
                 {"k99999999999", "not part of a place"},
                 {"k-1", "not part of a place"},
                 {"x3", "'x3'"},
                 {"sss", "'sss'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(go(s, wrong[i].text), 0);
        if (!strstr(s->message, wrong[i].why))
            fail_msg("'%s': %s", wrong[i].text, s->message);
        at(s, "s[b0,h0,q1,k0] r35 c63");
    }
    session_free(s);
}

static void stops_are_found(void **state)
{
    (void)state;
    struct session *s = run("alpha-forgotten");
    assert_int_equal(go(s, "q[b0,h0,q0]"), 1);
    assert_int_equal(session_seek(s, 1), 0); /* of what? */
    assert_int_equal(session_add_stop(s, "u off"), 1);
    assert_int_equal(session_add_stop(s, " u  off "), 1); /* the same */
    assert_int_equal(s->search.n, 1);
    assert_true(seek(s, 1));
    assert_string_equal(channel_name(s->at.cursor.channel), "u");
    assert_int_equal(s->at.cursor.q_tile, 0);
    assert_int_equal(s->at.cursor.kv_tile, 1);
    assert_int_equal(s->tile.detail.class_local[s->at.cursor.row * s->tile.detail.cols + s->at.cursor.col], CLASS_OFF);
    assert_true(strstr(s->message, "stop u off: u[b0,h0,q0,k1]") != NULL);
    assert_int_equal(s->job.phase, PHASE_READY);
    assert_true(seek(s, 2)); /* 4 in all: the third */
    assert_int_equal(s->at.cursor.head, 1);
    assert_int_equal(s->at.cursor.q_tile, 0);
    assert_true(seek(s, 5)); /* as far as there are any */
    assert_int_equal(s->at.cursor.q_tile, 1);
    assert_true(strstr(s->message, "not found after this place") != NULL);
    assert_false(seek(s, 1));
    assert_true(seek(s, -1));
    assert_int_equal(s->at.cursor.q_tile, 0);
    /* Back to where the jumps began. */
    assert_int_equal(session_jump(s, -100), 1);
    assert_int_equal(session_jump(s, -1), 0);
    assert_int_equal(session_jump(s, 1), 1);
    /* More than one condition: whichever comes first. */
    assert_int_equal(session_add_stop(s, "alpha > 0"), 1);
    assert_int_equal(go(s, "q[b0,h0,q0]"), 1);
    assert_true(seek(s, 1));
    assert_string_equal(channel_name(s->at.cursor.channel), "alpha");
    session_remove_stop(s, 0);
    session_remove_stop(s, 7);
    assert_int_equal(s->search.n, 1);
    assert_string_equal(s->search.stops[0].text, "alpha > 0");
    session_free(s);
}

/* However far it came, it is over, and nothing stands in the way of the next one. */
static void seeking_is_stopped(void **state)
{
    (void)state;
    struct session *s = run("small");
    assert_int_equal(session_add_stop(s, "s > 1000000"), 1);
    for (int i = 0; i < 20; i++) {
        const struct cursor from = s->at.cursor;
        assert_int_equal(session_seek(s, i % 2 ? -1 : 1), 1);
        assert_int_equal(session_seek(s, 1), 0); /* one at a time */
        assert_string_equal(session_verdict_word(s), "CLEAN");
        session_cancel(s);
        session_finish(s, 0);
        assert_false(s->search.under_way);
        assert_true(cursor_same(&from, &s->at.cursor));
        assert_true(strstr(s->message, "not found") || strstr(s->message, "stopped searching"));
    }
    /* Over while one is under way: the session ends it. */
    assert_int_equal(session_seek(s, 1), 1);
    session_free(s);
}

static int first_hit(struct session *s, const char *condition)
{
    s->search.n = 0;
    assert_int_equal(go(s, "q[b0,h0,q0]"), 1);
    if (!session_add_stop(s, condition))
        fail_msg("%s: %s", condition, s->message);
    return seek(s, 1);
}

static void what_conditions_ask(void **state)
{
    (void)state;
    struct session *s = run("small"); /* nothing is wrong in it */
    static const char *const never[] = {
        "bad",    "any bad", "nan",     "inf",         "missing",    "extra",    "m falls",      "alpha > 1.01",
        "l <= 0", "p < 0",   "off > 0", "s ratio > 1", "global bad", "s = 1e30", "m < -1000000", "s bad > 0"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (first_hit(s, never[i]))
            fail_msg("%s: %s", never[i], s->message);
    assert_true(first_hit(s, "l > 1"));
    assert_true(first_hit(s, "s ratio > 0"));
    assert_true(first_hit(s, "s ratio >= 0"));
    assert_true(first_hit(s, "l rises"));
    assert_int_equal(s->at.cursor.kv_tile, 1); /* against the first */
    assert_true(first_hit(s, "p>0"));
    at(s, "p[b0,h0,q0,k0] r0 c0");
    assert_true(first_hit(s, "s off >= 0"));
    at(s, "s[b0,h0,q0,k0] r0 c0");
    session_free(s);

    s = run("nan-row");
    assert_true(first_hit(s, "nan"));
    assert_true(isnan(s->tile.detail.got[s->at.cursor.row * s->tile.detail.cols + s->at.cursor.col]));
    const struct cursor first = s->at.cursor;
    assert_true(first_hit(s, "any bad"));
    assert_int_equal(s->at.cursor.kv_tile, first.kv_tile);
    session_free(s);
}

static void conditions_that_are_none(void **state)
{
    (void)state;
    struct stop stop;
    struct err err;
    const struct {
        const char *text, *why;
    } wrong[] = {{"", "expected a condition"},
                 {"nans", "'nans' is neither a stage"},
                 {"s falls", "applies to m, l, alpha or u"},
                 {"falls", "applies to m"},
                 {"m falls > 3", "does not take a number"},
                 {"s ratio", "expected >, <"},
                 {"s off 8", "expected >, <"},
                 {"s off > ", "expected one number"},
                 {"s off > x", "expected one number"},
                 {"s off > 8 9", "expected one number"},
                 {"s off > nan", "expected one number"},
                 {"> 8", "name a stage"},
                 {"s off >>> 8", "expected >, <"},
                 {"a b c d e f g", "unexpected '"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(stop_parse(wrong[i].text, NULL, &stop, &err), -1);
        if (!strstr(err.message, wrong[i].why))
            fail_msg("'%s': %s", wrong[i].text, err.message);
    }
    assert_int_equal(stop_parse("global s off>8", NULL, &stop, &err), 0);
    assert_int_equal(stop.global, 1);
    assert_int_equal(stop.channel, asc_s);
    assert_int_equal(stop.kind, STOP_OFF);
    assert_true(stop.number == 8);
    assert_string_equal(stop.text, "global s off > 8");
    assert_int_equal(stop_parse("u", NULL, &stop, &err), 0); /* what is bad of it */
    assert_int_equal(stop.kind, STOP_BAD);
}

static void jumps_go_back_and_forth(void **state)
{
    (void)state;
    struct jumps j = {0};
    struct cursor here = {.row = 0}, to;
    assert_false(jumps_back(&j, &here, &to));
    assert_false(jumps_forward(&j, &here, &to));
    assert_null(jumps_mark(&j, '\''));
    for (int i = 1; i <= 3; i++) { /* 0 -> 1 -> 2 -> 3 */
        jumps_note(&j, &here);
        here.row = i;
    }
    assert_int_equal(jumps_mark(&j, '\'')->row, 2);
    for (int i = 2; i >= 0; i--) {
        assert_true(jumps_back(&j, &here, &to));
        here = to;
        assert_int_equal(here.row, i);
    }
    assert_false(jumps_back(&j, &here, &to));
    for (int i = 1; i <= 3; i++) {
        assert_true(jumps_forward(&j, &here, &to));
        here = to;
        assert_int_equal(here.row, i);
    }
    assert_false(jumps_forward(&j, &here, &to));
    /* A jump from the middle forgets what lay ahead. */
    assert_true(jumps_back(&j, &here, &to));
    assert_true(jumps_back(&j, &to, &here));
    assert_int_equal(here.row, 1);
    jumps_note(&j, &here);
    here.row = 9;
    assert_false(jumps_forward(&j, &here, &to));
    assert_true(jumps_back(&j, &here, &to));
    assert_int_equal(to.row, 1);
    /* The oldest go. */
    j = (struct jumps){0};
    for (here.row = 0; here.row < JUMPS_MAX + 10; here.row++)
        jumps_note(&j, &here);
    int n = 0;
    while (jumps_back(&j, &here, &to)) {
        here = to;
        n++;
    }
    assert_int_equal(n, JUMPS_MAX - 1); /* the place one came from takes the place of one more */
    assert_int_equal(here.row, 11);
    /* Marks. */
    assert_true(jumps_set_mark(&j, 'a', &here));
    assert_true(jumps_set_mark(&j, 'Z', &to));
    assert_false(jumps_set_mark(&j, '1', &to));
    assert_false(jumps_set_mark(&j, '\'', &to));
    assert_int_equal(jumps_mark(&j, 'a')->row, 11);
    assert_null(jumps_mark(&j, 'b'));
    assert_null(jumps_mark(&j, '1'));
    assert_int_equal(jumps_letter(51), 'Z');
}

/* A pin says at every kv step what the tile's own detail says there. */
static void pins_follow(void **state)
{
    (void)state;
    struct session *s = run("alpha-forgotten");
    assert_int_equal(go(s, "u h1 q1 k1"), 1);
    assert_int_equal(session_go_worst(s), 1);
    const struct cursor bad = s->at.cursor;
    assert_int_equal(pins_toggle(&s->at.pins, &bad), 1);
    assert_int_equal(go(s, "o h1 q1 r4 c5"), 1);
    assert_int_equal(pins_toggle(&s->at.pins, &s->at.cursor), 1);
    session_refresh_detail(s);
    for (int kv = 0; kv < 2; kv++) {
        struct pin_value v[2];
        s->at.cursor = bad;
        s->at.cursor.kv_tile = kv;
        session_refresh_detail(s);
        const int i = bad.row * s->tile.detail.cols + bad.col;
        for (int global = 0; global < 2; global++)
            assert_int_equal(pin_value(&s->at.pins.at[0], kv, global, &v[global]), 1);
        assert_true(v[0].got == s->tile.detail.got[i] && v[1].got == v[0].got);
        assert_true(v[0].want == s->tile.detail.want_local[i] && v[0].bound == s->tile.detail.bound_local[i]);
        assert_true(v[1].want == s->tile.detail.want_global[i] && v[1].bound == s->tile.detail.bound_global[i]);
        assert_int_equal(v[0].class, s->tile.detail.class_local[i]);
        assert_int_equal(v[0].class, kv ? CLASS_OFF : CLASS_OK);
        assert_int_equal(pin_value(&s->at.pins.at[1], kv, 0, &v[0]), 1); /* once per q tile: the same at every step */
        assert_int_equal(v[0].class, CLASS_OK);
    }
    assert_int_equal(pin_value(&s->at.pins.at[0], 2, 0, &(struct pin_value){0}), 0);
    /* Another run: other values, the same places. */
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    assert_int_equal(s->at.pins.n, 2);
    assert_int_equal(s->at.pins.at[0].kv_tiles, 2);
    /* No more than there is room for; unpinned at any kv step. */
    for (int i = 0; i < 2; i++) {
        s->at.cursor.col = 10 + i;
        assert_int_equal(pins_toggle(&s->at.pins, &s->at.cursor), 1);
    }
    s->at.cursor.col = 20;
    assert_int_equal(pins_toggle(&s->at.pins, &s->at.cursor), -1);
    s->at.cursor = s->at.pins.at[0].at;
    s->at.cursor.kv_tile = 0;
    assert_int_equal(pins_toggle(&s->at.pins, &s->at.cursor), 0);
    assert_int_equal(s->at.pins.n, 3);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernels_order),
        cmocka_unit_test(element_by_element),
        cmocka_unit_test(places_as_text),
        cmocka_unit_test(stops_are_found),
        cmocka_unit_test(seeking_is_stopped),
        cmocka_unit_test(what_conditions_ask),
        cmocka_unit_test(conditions_that_are_none),
        cmocka_unit_test(jumps_go_back_and_forth),
        cmocka_unit_test(pins_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
