/* Capture in bounded memory: what a first pass looks at, and what a second one records. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/run/bounded.h"
#include "engine/session/session.h"
#include "tests/unit/lib/open_scenario.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every q tile of `heads` heads in each of two batches. */
static struct bounded all_of(int heads, int q_tiles)
{
    struct bounded b;
    struct err err = {0};
    const int n = 2 * heads * q_tiles;
    int32_t(*places)[3] = calloc((size_t)n, sizeof *places);
    for (int i = 0; i < n; i++) {
        places[i][0] = i / q_tiles / heads;
        places[i][1] = i / q_tiles % heads;
        places[i][2] = i % q_tiles;
    }
    assert_int_equal(bounded_begin(&b, places, n, &err), 0);
    return b;
}

static const struct asc_problem problem = {
    .batch = 2, .heads = 5, .q_len = 700, .kv_len = 1000, .head_dim = 64, .head_dim_v = 64};
static const struct asc_plan plan = {.br = 64, .bc = 64};

static int64_t sampled(const struct bounded *b)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++)
        n += b->state[i] == BOUNDED_SAMPLE;
    return n;
}

static void test_all_is_judged_where_it_is_cheap(void **state)
{
    (void)state;
    struct bounded b = all_of(5, 11);
    bounded_sample(&b, &problem, &plan, (int64_t)110 * 64 * 1000);
    assert_int_equal(sampled(&b), 110);
    bounded_end(&b);
    b = all_of(5, 11);
    bounded_sample(&b, &problem, &plan, (int64_t)110 * 64 * 1000 - 1);
    assert_true(sampled(&b) < 110);
    bounded_end(&b);
}

static void test_the_sample(void **state)
{
    (void)state;
    for (int64_t room = 0; room < 110; room++) {
        struct bounded b = all_of(5, 11);
        bounded_sample(&b, &problem, &plan, room * 64 * 1000);
        for (int head = 0; head < 10; head++) {
            const uint8_t *tiles = b.state + (ptrdiff_t)(11 * (size_t)head);
            assert_non_null(memchr(tiles, BOUNDED_SAMPLE, 11));
            if (head % 5 == 0 || head % 5 == 4)
                assert_true(tiles[0] == BOUNDED_SAMPLE && tiles[10] == BOUNDED_SAMPLE);
        }
        assert_true(sampled(&b) <= (room > 18 ? room : 18));
        bounded_end(&b);
    }
}

static void test_what_is_off_is_recorded_first(void **state)
{
    (void)state;
    static const int32_t expected[][3] = {{0, 1, 3}, {0, 1, 4}, {1, 2, 0}};
    struct bounded b = all_of(5, 11);
    int32_t slots[110][3];
    for (int64_t i = 0; i < b.n; i++)
        b.state[i] = BOUNDED_OK;
    b.state[11 + 3] = b.state[11 + 4] = b.state[77] = BOUNDED_OFF;
    assert_int_equal(bounded_choose(&b, slots, 3), 3);
    assert_memory_equal(slots, expected, sizeof expected);
    /* Less room: every head has its first. */
    assert_int_equal(bounded_choose(&b, slots, 2), 2);
    assert_memory_equal(slots[0], expected[0], sizeof expected[0]);
    assert_memory_equal(slots[1], expected[2], sizeof expected[2]);
    /* More: their neighbors in the same head. */
    static const int32_t more[][3] = {{0, 1, 2}, {0, 1, 3}, {0, 1, 4}, {0, 1, 5}, {1, 2, 0}, {1, 2, 1}};
    assert_int_equal(bounded_choose(&b, slots, 6), 6);
    assert_memory_equal(slots, more, sizeof more);
    /* All of it, each once and in order. */
    assert_int_equal(bounded_choose(&b, slots, 110), 110);
    assert_memory_equal(slots, b.places, sizeof slots);
    bounded_end(&b);
}

/* Tiles of 4096 keys that are within their bounds, and one that stands out. */
static void expect_unusual(struct output_noise odd, bool found)
{
    static const int32_t expected[] = {0, 1, 3};
    struct bounded b = all_of(5, 11);
    int32_t slots[1][3];
    for (int64_t i = 0; i < b.n; i++) {
        b.state[i] = BOUNDED_OK;
        /* The first q tile of each head has few keys, and errors of another size. */
        b.noise[i] = (struct output_noise){.known = true,
                                           .keys = i % 11 ? 4096 : 64,
                                           .slope = -1e-4,
                                           .low = -4e-4,
                                           .high = 1e-4,
                                           .ratio = i % 11 ? 0.5 : 1,
                                           .row = 1,
                                           .limit = 2.75};
    }
    odd.known = true;
    odd.keys = 4096;
    b.noise[11 + 3] = odd;
    assert_int_equal(bounded_find_unusual(&b), 0);
    assert_int_equal(b.state[11 + 3], found ? BOUNDED_UNUSUAL : BOUNDED_OK);
    for (int64_t i = 0; i < b.n; i++)
        assert_true(i == 11 + 3 || b.state[i] == BOUNDED_OK);
    bounded_choose(&b, slots, 1);
    assert_int_equal(memcmp(slots[0], expected, sizeof expected) == 0, found);
    /* What is off comes before it. */
    b.state[77] = BOUNDED_OFF;
    bounded_choose(&b, slots, 1);
    assert_int_equal(slots[0][0], 1);
    bounded_end(&b);
}

static void test_what_is_unusual_is_recorded_next(void **state)
{
    (void)state;
    const struct output_noise usual = {
        .slope = -1e-4, .low = -4e-4, .high = 1e-4, .ratio = 0.5, .row = 1, .limit = 2.75};
    struct output_noise x = usual;
    expect_unusual(x, false);
    x.row = 2.8; /* by itself: one of its rows, what it errs by in proportion, what is no number */
    expect_unusual(x, true);
    x = usual;
    x.slope = 1.1e-4;
    expect_unusual(x, true);
    x.slope = NAN;
    expect_unusual(x, true);
    x = usual;
    x.ratio = 0.76; /* among the others, 1.5 times the median and half of the width */
    expect_unusual(x, true);
    x.ratio = 0.74;
    expect_unusual(x, false);
    x.slope = -3.6e-4;
    expect_unusual(x, true);
    x.slope = -3.4e-4;
    expect_unusual(x, false);
}

static struct session *run(const char *name, const char *mem)
{
    struct session *s = open_scenario("tests/session/%s.ini", name);
    struct err err;
    if (mem)
        assert_int_equal(scenario_set(&s->subject.scenario, "capture.mem", mem, &err), 0);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    return s;
}

static void test_the_second_pass_records_what_is_off(void **state)
{
    (void)state;
    static const char path[] = "build/bounded-test.safetensors";
    struct session *s = run("one-q-tile", NULL), *again;
    struct err err;
    assert_int_equal(s->job.phase, PHASE_READY);
    const struct trace_capture *c = &s->run.trace->info.capture;
    assert_true(s->run.trace->layout.total_bytes <= s->subject.scenario.capture.mem_bytes);
    assert_true(s->run.trace->layout.n_slots > 0 && s->run.trace->layout.n_slots < 20);
    assert_int_equal(c->wanted, 20);
    assert_int_equal(c->judged, 20);
    assert_int_equal(c->off, 1);
    assert_int_equal(c->differing, 0);
    assert_string_equal(c->off_places, "b0 h2 q3");
    assert_true(trace_slot(s->run.trace, 0, 2, 3) >= 0);
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(s->run.judgement->summary.culprits, 1u << asc_o);
    assert_int_equal(s->run.judgement->summary.first.slot, trace_slot(s->run.trace, 0, 2, 3));
    assert_int_equal(session_save(s, path, &err), 0);
    assert_int_equal(session_open(path, &again, &err), 0);
    session_start(again);
    session_finish(again, 0);
    assert_memory_equal(&again->run.trace->info.capture, c, sizeof *c);
    unlink(path);
    session_free(again);
    session_free(s);
}

/* What is within its bounds by the inputs, and no rounding's error, is judged by what its stages were given. */
static void test_the_second_pass_judges_what_is_unusual(void **state)
{
    (void)state;
    struct session *s = run("scaled-a-little", NULL);
    const struct trace_capture *c = &s->run.trace->info.capture;
    assert_int_equal(s->job.phase, PHASE_READY);
    assert_true(s->run.trace->layout.n_slots < 4);
    assert_int_equal(c->judged, 4);
    assert_int_equal(c->off, 0);
    assert_int_equal(c->unusual, 1);
    assert_string_equal(c->unusual_places, "b0 h0 q2");
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(s->run.judgement->summary.culprits, 1u << asc_o);
    assert_int_equal(s->run.judgement->summary.first.slot, trace_slot(s->run.trace, 0, 0, 2));
    session_free(s);
}

/* All of it fits: one pass, and nothing is said of a first one. */
static void test_one_pass_where_all_fits(void **state)
{
    (void)state;
    struct session *s = run("one-q-tile", "64MiB");
    assert_int_equal(s->run.trace->layout.n_slots, 20);
    assert_int_equal(s->run.trace->info.capture.wanted, 0);
    session_free(s);
}

/* In the second run the fault is gone, or its bits are others: the first one's verdict stands, and it is said. */
static void test_a_kernel_that_is_not_deterministic(void **state)
{
    (void)state;
    struct session *s = run("another-each-time", NULL);
    assert_int_equal(s->job.phase, PHASE_READY);
    assert_true(s->run.trace->info.capture.differing > 0);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    s->run.trace->info.capture.off = 1;
    const struct expect nothing = {.first_channel = -1, .first = {-1, -1, -1, -1}};
    char why[256];
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_false(judgement_meets(s->run.judgement, s->run.trace, &nothing, why, sizeof why));
    session_free(s);
}

static void test_a_crash_is_shown_by_the_second_pass(void **state)
{
    (void)state;
    struct session *s = run("crashes-in-one-q-tile", NULL);
    assert_int_equal(s->job.err.code, ERR_RUN);
    assert_string_equal(session_verdict_word(s), "CRASHED");
    assert_non_null(s->run.trace);
    assert_int_equal(s->run.trace->info.capture.wanted, 20);
    assert_int_equal(s->run.trace->info.capture.judged, 0);
    assert_int_equal(s->run.trace->info.capture.differing, -1);
    session_free(s);
}

static void test_cancelled(void **state)
{
    (void)state;
    struct session *s = run("one-q-tile", "64MiB");
    atomic_int cancel = 1;
    const struct runner_progress progress = {.cancel = &cancel};
    struct err err = {0};
    int32_t(*places)[3] = calloc(20, sizeof *places);
    struct bounded b;
    for (int i = 0; i < 20; i++)
        memcpy(places[i], trace_slot_place(s->run.trace, i), sizeof places[i]);
    assert_int_equal(bounded_begin(&b, places, 20, &err), 0);
    bounded_sample(&b, &s->run.trace->problem, &s->run.trace->plan, BOUNDED_SCORES);
    assert_int_equal(bounded_judge(&b, s->run.trace, NULL, &progress, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    assert_int_equal(b.judged, 0);
    atomic_store(&cancel, 0);
    assert_int_equal(bounded_judge(&b, s->run.trace, NULL, &progress, &err), 0);
    assert_int_equal(b.judged, 20);
    assert_int_equal(b.off, 1);
    assert_int_equal(b.state[2 * 5 + 3], BOUNDED_OFF);
    /* The same run leaves the same bits. */
    bounded_remember(&b, s->run.trace);
    assert_int_equal(bounded_differing(&b, s->run.trace), 0);
    b.hash[7]++;
    assert_int_equal(bounded_differing(&b, s->run.trace), 1);
    bounded_end(&b);
    session_free(s);
}

static void test_too_little_for_one_q_tile(void **state)
{
    (void)state;
    struct session *s = run("one-q-tile", "900KiB");
    assert_int_equal(s->job.err.code, ERR_INPUT);
    assert_non_null(strstr(s->job.err.message, "inputs and outputs take"));
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_judged_where_it_is_cheap),
        cmocka_unit_test(test_the_sample),
        cmocka_unit_test(test_what_is_off_is_recorded_first),
        cmocka_unit_test(test_what_is_unusual_is_recorded_next),
        cmocka_unit_test(test_the_second_pass_judges_what_is_unusual),
        cmocka_unit_test(test_the_second_pass_records_what_is_off),
        cmocka_unit_test(test_one_pass_where_all_fits),
        cmocka_unit_test(test_a_kernel_that_is_not_deterministic),
        cmocka_unit_test(test_a_crash_is_shown_by_the_second_pass),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_too_little_for_one_q_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
