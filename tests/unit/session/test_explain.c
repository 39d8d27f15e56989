/* What a search finds on a sample of a run is true of all of it: runs of many heads, in which the sample does not show
   the one head that speaks against the rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/verdict/explain.h"
#include "tests/unit/lib/hand_made.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEADS = 64, TILE = 16, TILES = 2 };

static const struct hand_made right = {
    .batch = 1, .heads = HEADS, .q_len = TILE, .kv_len = TILES * TILE, .head_dim = 16, .tile = TILE};

/* What becomes of an element of S at kv tile 1, which was x; before: of tile 0. */
typedef double mistake(int head, int row, int col, double x, double before);

static struct explanation explain(mistake *mistake)
{
    struct session *s = hand_made_session(&right);
    struct trace *t = hand_made_trace(&right);
    struct explanation out;
    for (int head = 0; head < HEADS; head++) {
        const struct tile x = trace_tile(t, asc_s, head, 1), before = trace_tile(t, asc_s, head, 0);
        for (size_t i = 0; i < (size_t)TILE * TILE; i++) {
            const int row = (int)i / TILE, col = (int)i % TILE;
            hand_made_store(
                t, asc_s, head, 1, row, col,
                mistake(head, row, col, dtype_load(x.dtype, x.data, i), dtype_load(before.dtype, before.data, i)));
        }
    }
    hand_made_judge(s, t);
    assert_int_equal(judgement_explain(s->run.judgement, t, asc_s, (struct searchers){NULL, &scratch}, NULL, &out), 0);
    session_free(s);
    return out;
}

/* No rule gives it. */
static double noise(int row, int col, double x)
{
    return x * (1 + 0.001 * ((row * TILE + col) * 29 % 31)) + 0.1;
}

static bool is_middle(int head)
{
    return head >= 8 && head < 40;
}

static double stale(int head, int row, int col, double x, double before)
{
    (void)row, (void)col;
    return is_middle(head) ? before : x;
}

static double stale_but_one(int head, int row, int col, double x, double before)
{
    return head == 30 ? x : stale(head, row, col, x, before);
}

static double stale_but_one_noisy(int head, int row, int col, double x, double before)
{
    return head == 30 ? noise(row, col, x) : stale(head, row, col, x, before);
}

static double noisy_rows(int head, int row, int col, double x, double before)
{
    (void)before;
    (void)head;
    return row < 8 ? noise(row, col, x) : x;
}

static double noisy_rows_but_in_one(int head, int row, int col, double x, double before)
{
    return head == 30 && row == 9 ? noise(row, col, x) : noisy_rows(head, row, col, x, before);
}

static double stale_and_doubled(int head, int row, int col, double x, double before)
{
    return head >= 40 ? 2 * x : stale(head, row, col, x, before);
}

static double stale_and_doubled_but_one(int head, int row, int col, double x, double before)
{
    return head == 45 ? x : stale_and_doubled(head, row, col, x, before);
}

/* The element that tells most is one that the rule gives. */
static void expect_telling(const struct rule *rule)
{
    const struct telling *at = &rule->evidence.telling;
    assert_true(at->at[1] >= 8 && at->kv == 1 && at->row < TILE && at->col < TILE);
    assert_true(at->got != at->want);
    assert_true(fabs(at->got - at->given) < 1e-5 * fabs(at->got));
}

static void expect(mistake *mistake, int rules, const char *text)
{
    const struct explanation e = explain(mistake);
    for (int i = 0; i < e.n; i++) {
        expect_telling(&e.rule[i]);
        assert_true(e.rule[i].evidence.bits >= rule_price(&e.rule[i]));
    }
    assert_true(e.tried > 10);
    if (rules)
        assert_string_not_equal(e.runner_up_said, e.said[0]);
    assert_string_equal(e.text, text);
    assert_int_equal(e.n, rules);
    assert_int_equal(e.pattern, !rules && text[0]);
}

static void a_rule_holds_in_all_of_its_region(void **state)
{
    (void)state;
    expect(stale, 1, "S is that of the tile visited before in heads 8 to 39");
    expect(stale_but_one, 0, "");
    expect(stale_but_one_noisy, 0, "S is wrong in kv tile 1 of heads 8 to 39, and right elsewhere");
}

static void so_does_a_pattern(void **state)
{
    (void)state;
    expect(noisy_rows, 0, "S is wrong in rows with r mod 16 < 8 of kv tile 1, and right elsewhere");
    expect(noisy_rows_but_in_one, 0, "");
}

static void so_does_a_second_rule(void **state)
{
    (void)state;
    expect(stale_and_doubled, 2,
           "S is that of the tile visited before in heads 8 to 39; and S is what it should be times 2 in kv tile 1 "
           "of heads from 40 on");
    expect(stale_and_doubled_but_one, 1, "S is that of the tile visited before in heads 8 to 39");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_holds_in_all_of_its_region),
        cmocka_unit_test(so_does_a_pattern),
        cmocka_unit_test(so_does_a_second_rule),
    };
    return cmocka_run_group_tests_name("session: explain", tests, scratch_begin, scratch_end);
}
