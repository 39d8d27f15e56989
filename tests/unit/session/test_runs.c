/* The ring of runs, and what is said of two of them. Runs are hand-made: verdicts without a kernel. */
#include "engine/session/change.h"
#include "tests/unit/lib/hand_made.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A judged run with this mistake, 4 q tiles x 2 kv tiles. */
static struct run *add(struct runs *r, enum hand_mistake mistake)
{
    const struct hand_made made = {1, 2, 128, 128, 16, 64, .mistake = mistake};
    struct session *s = hand_made_run(&made);
    struct run *theirs = &s->runs.at[0];
    struct run *run = runs_add(r, theirs->trace, theirs->judgement, "v2b_scalar");
    theirs->trace = NULL;
    theirs->judgement = NULL;
    s->run.trace = NULL;
    s->run.judgement = NULL;
    session_free(s);
    run_measure(run);
    return run;
}

static void numbers_are(const struct runs *r, const char *expected)
{
    char made[64] = "";
    for (int i = 0; i < r->n; i++)
        snprintf(made + strlen(made), sizeof made - strlen(made), "%s%d", i ? " " : "", r->at[i].number);
    assert_string_equal(made, expected);
}

static void oldest_goes(void **state)
{
    (void)state;
    struct runs r = {0};
    for (int i = 0; i < RUNS_MAX + 3; i++) {
        const int gone = runs_make_room(&r, UINT64_MAX);
        assert_int_equal(gone, i < RUNS_MAX ? 0 : 1);
        add(&r, HAND_RIGHT);
    }
    numbers_are(&r, "4 5 6 7 8 9 10 11");
    assert_int_equal(r.made, 11);
    assert_int_equal(r.shown, 11);
    assert_int_equal(r.before, 10);
    assert_int_equal(runs_index(&r, 3), -1);
    assert_int_equal(runs_index(&r, 4), 0);
    assert_null(runs_before(&r, &r.at[0]));
    assert_int_equal(runs_before(&r, runs_newest(&r))->number, 10);
    /* The one on the screen stays, however old. */
    r.shown = 4;
    assert_int_equal(runs_make_room(&r, UINT64_MAX), 1);
    numbers_are(&r, "4 6 7 8 9 10 11");
    runs_free(&r);
    assert_int_equal(r.n, 0);
}

/* Together they take no more than they may; at the bound nothing goes. */
static void memory_is_bounded(void **state)
{
    (void)state;
    struct runs r = {0};
    for (int i = 0; i < 4; i++)
        add(&r, HAND_RIGHT);
    const uint64_t one = run_bytes(&r.at[0]);
    assert_true(one > r.at[0].trace->n_bytes); /* verdicts count */
    assert_int_equal(runs_make_room(&r, 4 * one), 0);
    assert_int_equal(runs_make_room(&r, 4 * one - 1), 1);
    numbers_are(&r, "2 3 4");
    assert_int_equal(runs_make_room(&r, one), 2);
    numbers_are(&r, "4");
    assert_int_equal(runs_make_room(&r, 0), 0); /* the newest stays whatever it takes */
    add(&r, HAND_RIGHT);
    r.shown = 4;
    assert_int_equal(runs_make_room(&r, 0), 0);
    numbers_are(&r, "4 5");
    runs_free(&r);
}

static void the_other_run(void **state)
{
    (void)state;
    struct runs r = {0};
    assert_null(runs_other(&r));
    add(&r, HAND_RIGHT);
    assert_null(runs_other(&r));
    add(&r, HAND_RIGHT);
    add(&r, HAND_RIGHT);
    assert_int_equal(runs_other(&r)->number, 2);
    r.shown = 1;
    r.before = 3;
    assert_int_equal(runs_other(&r)->number, 3);
    r.before = 77; /* dropped meanwhile */
    assert_int_equal(runs_other(&r)->number, 3);
    char words[80];
    run_words(runs_shown(&r), words, sizeof words);
    assert_string_equal(words, "run 1");
    snprintf(r.at[0].name, sizeof r.at[0].name, "before the swizzle");
    run_words(runs_shown(&r), words, sizeof words);
    assert_string_equal(words, "run 1 (before the swizzle)");
    runs_free(&r);
}

/* Of the two newest runs. */
static struct change change_of(const struct runs *r)
{
    struct change c;
    change_find(runs_before(r, &r->at[r->n - 1]), &r->at[r->n - 1], &c);
    return c;
}

static void says(const struct runs *r, const char *expected, int sense)
{
    char words[256];
    const struct change c = change_of(r);
    change_words(&c, words, sizeof words);
    assert_string_equal(words, expected);
    assert_int_equal(change_sense(&c), sense);
}

static void repaired_and_broken(void **state)
{
    (void)state;
    struct runs r = {0};
    add(&r, HAND_S_SCALED_TWICE);
    says(&r, "", 0); /* nothing before it */
    add(&r, HAND_RIGHT);
    /* 4 q tiles x 2 kv tiles of 64 x 64 */
    says(&r, "since run 1: S better (32768 → 0 off), m..LSE better globally", -1);
    struct change c = change_of(&r);
    assert_int_equal(c.state, CHANGE_COMPARED);
    assert_int_equal(c.first_moved, 1);
    assert_int_equal(c.first_before.slot, 0);
    assert_int_equal(c.first_now.slot, -1);
    assert_int_equal(c.better & 1u << asc_q, 0);
    assert_int_equal(c.better & 1u << asc_o, 1u << asc_o);
    assert_int_equal(c.worse, 0);
    assert_int_equal(c.stage[asc_s].before, 32768);
    assert_true(c.stage[asc_s].worst_before > 1e5 && c.stage[asc_s].worst_now < 1);
    add(&r, HAND_O_DOUBLED);
    says(&r, "since run 2: O worse (0 → 4096 off)", 1);
    add(&r, HAND_O_DOUBLED);
    says(&r, "since run 3: as before", 0);
    add(&r, HAND_S_SCALED_TWICE); /* one culprit for another */
    says(&r, "since run 4: S worse (0 → 32768 off), O better (4096 → 0 off), m..U, LSE worse globally", 1);
    runs_free(&r);
}

/* As many elements are off, and much more or less so. */
static void same_count(void **state)
{
    (void)state;
    struct runs r = {0};
    add(&r, HAND_S_SCALED_TWICE);
    struct run *now = add(&r, HAND_S_SCALED_TWICE);
    now->worst[asc_s] = r.at[0].worst[asc_s] / 2;
    says(&r, "since run 1: as before", 0); /* a factor of 2 is not beyond 2 */
    now->worst[asc_s] = 70;
    says(&r, "since run 1: S worst error/bound 7.4e+05 → 70", 0);
    now->worst[asc_s] = NAN;
    says(&r, "since run 1: S worst error/bound 7.4e+05 → nan", 0);
    r.at[0].worst[asc_s] = NAN;
    says(&r, "since run 1: as before", 0);
    now->judgement->summary.first = (struct place){2, 1, asc_s};
    says(&r, "since run 1: as many off, in other places", 0);
    assert_int_equal(change_of(&r).first_moved, 1);
    runs_free(&r);
}

static void what_can_not_be_compared(void **state)
{
    (void)state;
    struct runs r = {0};
    add(&r, HAND_S_SCALED_TWICE);
    struct run *now = add(&r, HAND_RIGHT);
    now->trace->problem.kv_len = 64;
    says(&r, "since run 1: of another shape or other q tiles: not compared", 0);
    now->trace->problem.kv_len = 128;
    now->judgement->complete = false;
    says(&r, "", 0);
    now->judgement->complete = true;
    /* A stage that one of them has no verdict on got neither better nor worse. */
    now->judgement->summary.stage[asc_s].local = STAGE_UNRECORDED;
    now->judgement->summary.stage[asc_s].global = STAGE_UNKNOWN;
    now->judgement->summary.stage[asc_m].global = STAGE_PARTIAL;
    says(&r, "since run 1: α..LSE better globally", -1);
    now->trace->info.status = RUN_CRASHED;
    says(&r, "since run 1: does not complete any more", 1); /* a part of the elements is no measure */
    r.at[0].trace->info.status = RUN_CRASHED;
    says(&r, "since run 1: neither came to its end", 0);
    add(&r, HAND_RIGHT);
    says(&r, "since run 2: completes now", -1);
    r.at[1].trace->info.status = RUN_CANCELLED;
    says(&r, "since run 1: completes now", -1);
    runs_free(&r);
}

/* Room for a part only: it ends where the room does. */
static void short_of_room(void **state)
{
    (void)state;
    struct runs r = {0};
    add(&r, HAND_S_SCALED_TWICE);
    add(&r, HAND_RIGHT);
    const struct change c = change_of(&r);
    char words[256];
    for (size_t bytes = 1; bytes < sizeof words; bytes++) {
        memset(words, '#', sizeof words);
        change_words(&c, words, bytes);
        assert_true(strlen(words) < bytes);
        for (size_t i = bytes; i < sizeof words; i++)
            assert_int_equal(words[i], '#');
    }
    runs_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oldest_goes),   cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(the_other_run), cmocka_unit_test(repaired_and_broken),
        cmocka_unit_test(same_count),    cmocka_unit_test(what_can_not_be_compared),
        cmocka_unit_test(short_of_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
