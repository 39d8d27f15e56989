/* The mask that a kernel applied is read from S, or from P where S holds no mask, and its shift is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/mask/mask.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static const struct spec base = {.q_len = 128,
                                 .kv_len = 180,
                                 .head_dim = 16,
                                 .br = 64,
                                 .bc = 48,
                                 .q_tile = 1,
                                 .visits_masked = 1,
                                 .conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED},
                                 .p_dtype = DTYPE_F32};

enum { MOST_TILES = 4 };

/* All tiles of a run. */
struct reading {
    struct kernel_run *run;
    struct mask_tile tiles[MOST_TILES];
    struct mask_counts counts;
    struct mask_plan plan;
    struct mask_evidence evidence[MASK_SHIFTS];
};

static void read_tiles(struct reading *r)
{
    const struct oracle_case *c = &r->run->c;
    assert_true(c->kv_tiles <= MOST_TILES);
    assert_int_equal(mask_read_all(c, scratch, r->tiles), 0);
    for (int kv = 0; kv < c->kv_tiles; kv++)
        mask_add(&r->counts, &r->tiles[kv].counts);
    mask_vote(c, r->tiles, &r->plan);
    mask_plan_close(&r->plan);
    mask_collect(c, r->tiles, &r->plan, r->evidence);
}

/* A right kernel, judged as one whose mask should have been another. */
static struct reading reading(const struct spec *s, const struct oracle_case *wanted)
{
    struct reading r = {.run = kernel_run(s)};
    if (wanted) {
        r.run->c.causal = wanted->causal;
        r.run->c.window_left = wanted->window_left;
        r.run->c.window_right = wanted->window_right;
    }
    read_tiles(&r);
    return r;
}

static void reading_free(struct reading *r)
{
    for (int kv = 0; kv < r->run->c.kv_tiles; kv++)
        mask_tile_free(&r->tiles[kv]);
    kernel_run_free(r->run);
}

static uint64_t all(const struct reading *r)
{
    const struct mask_counts *n = &r->counts;
    return n->both + n->neither + n->only_wanted + n->only_applied + n->unknown;
}

static unsigned names(const struct reading *r)
{
    unsigned set = 0;
    for (int i = 0; i < MASK_SHIFTS; i++)
        set |= (unsigned)mask_named(&r->evidence[i]) << i;
    return set;
}

static void a_right_mask_is_read_as_it_is(void **state)
{
    (void)state;
    static const struct {
        enum asc_causal causal;
        int has_window, left, right;
    } masks[] = {{ASC_CAUSAL_NONE, 0, 0, 0},
                 {ASC_CAUSAL_TOP_LEFT, 0, 0, 0},
                 {ASC_CAUSAL_BOTTOM_RIGHT, 0, 0, 0},
                 {ASC_CAUSAL_BOTTOM_RIGHT, 1, 40, -1},
                 {ASC_CAUSAL_NONE, 1, 21, 37}};
    static const struct asc_conventions ways[] = {
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED},
        {.s_masked = ASC_MASKED_VALUE, .s_masked_value = -1e4f},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .s_at = ASC_S_DOT},
        {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .s_masked = ASC_MASKED_UNTOUCHED},
    };
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            for (int visits = 0; visits < 2; visits++) {
                struct spec s = base;
                s.causal = masks[i].causal;
                s.has_window = masks[i].has_window;
                s.window_left = masks[i].left;
                s.window_right = masks[i].right;
                s.conventions = ways[w];
                s.visits_masked = visits;
                struct reading r = reading(&s, NULL);
                const struct mask_counts *n = &r.counts;
                assert_int_equal(mask_source(&r.run->c), w < 2 ? MASK_FROM_S : MASK_FROM_P);
                if (mask_wrong(n) || n->unknown)
                    fail_msg("mask %zu, way %zu: %llu, %llu wrong, %llu unknown", i, w,
                             (unsigned long long)n->only_wanted, (unsigned long long)n->only_applied,
                             (unsigned long long)n->unknown);
                uint64_t wanted = 0;
                for (int row = 0; row < 64; row++)
                    wanted += (uint64_t)schedule_keys(&r.run->c, row);
                assert_int_equal(n->both, wanted);
                assert_int_equal(all(&r), 64 * 4 * 48);
                assert_int_equal(names(&r), 0);
                reading_free(&r);
            }
        }
    }
}

static void shifts_are_named(void **state)
{
    (void)state;
    static const struct {
        struct oracle_case applied, wanted; /* their masks alone */
        enum mask_shift name;
        int by;
        unsigned also;
    } cases[] = {
        {{.causal = ASC_CAUSAL_TOP_LEFT, .window_left = -1, .window_right = -1},
         {.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = -1, .window_right = -1},
         MASK_OTHER_CORNER,
         0,
         1u << MASK_DIAGONAL},
        {{.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = -1, .window_right = -1},
         {.causal = ASC_CAUSAL_TOP_LEFT, .window_left = -1, .window_right = -1},
         MASK_OTHER_CORNER,
         0,
         1u << MASK_DIAGONAL},
        {{.causal = ASC_CAUSAL_NONE, .window_left = -1, .window_right = -1},
         {.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = -1, .window_right = -1},
         MASK_NONE,
         0,
         0},
        {{.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = -1, .window_right = -1},
         {.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = 30, .window_right = -1},
         MASK_NO_WINDOW,
         0,
         0},
        {{.causal = ASC_CAUSAL_NONE, .window_left = 30, .window_right = -1},
         {.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = 30, .window_right = -1},
         MASK_NOT_CAUSAL,
         0,
         0},
        {{.causal = ASC_CAUSAL_NONE, .window_left = -1, .window_right = 20},
         {.causal = ASC_CAUSAL_NONE, .window_left = 30, .window_right = 20},
         MASK_NO_LEFT,
         0,
         0},
        {{.causal = ASC_CAUSAL_NONE, .window_left = 30, .window_right = -1},
         {.causal = ASC_CAUSAL_NONE, .window_left = 30, .window_right = 20},
         MASK_NO_RIGHT,
         0,
         0},
        {{.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = 31, .window_right = -1},
         {.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = 30, .window_right = -1},
         MASK_LEFT_EDGE,
         -1,
         0},
        {{.causal = ASC_CAUSAL_NONE, .window_left = 30, .window_right = 3}, /* the left side is where it was */
         {.causal = ASC_CAUSAL_BOTTOM_RIGHT, .window_left = 30, .window_right = -1},
         MASK_CAUSAL_EDGE,
         3,
         0},
        {{.causal = ASC_CAUSAL_NONE, .window_left = 30, .window_right = 17},
         {.causal = ASC_CAUSAL_NONE, .window_left = 30, .window_right = 20},
         MASK_RIGHT_EDGE,
         -3,
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct spec s = base;
        s.causal = (enum asc_causal)cases[i].applied.causal;
        s.has_window = 1;
        s.window_left = cases[i].applied.window_left;
        s.window_right = cases[i].applied.window_right;
        struct reading r = reading(&s, &cases[i].wanted);
        assert_true(mask_wrong(&r.counts) > 0);
        if (names(&r) != (1u << cases[i].name | cases[i].also))
            fail_msg("case %zu: %x, not %x", i, names(&r), 1u << cases[i].name | cases[i].also);
        if (cases[i].by)
            assert_int_equal(r.plan.by[cases[i].name], cases[i].by);
        reading_free(&r);
    }
}

/* Scores and weights that show whatever mask `sees` draws. */
static void paint(struct kernel_run *run, int (*sees)(const struct oracle_case *c, int row, int key))
{
    const struct oracle_case *c = &run->c;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        for (int i = 0; i < run->spec.br * c->bc; i++)
            if (run->arrays[kv * ASC_CHANNELS + asc_s])
                ((float *)run->arrays[kv * ASC_CHANNELS + asc_s])[i] =
                    sees(c, i / c->bc, kv * c->bc + i % c->bc) ? 0.25f : -INFINITY;
}

static int sees_inverted(const struct oracle_case *c, int row, int key)
{
    const struct key_range keys = schedule_range(c, row);
    return key < c->kv_len && (key < keys.first || key >= keys.last);
}

static int sees_the_tail(const struct oracle_case *c, int row, int key)
{
    const struct key_range keys = schedule_range(c, row);
    return key >= c->kv_len || (key >= keys.first && key < keys.last);
}

static int sees_two_more(const struct oracle_case *c, int row, int key)
{
    return key < c->kv_len && key < schedule_range(c, row + 2).last;
}

static int sees_two_more_and_the_tail(const struct oracle_case *c, int row, int key)
{
    return key >= c->kv_len || sees_two_more(c, row, key);
}

/* Rows 0 to 7 of the tile see 5 to 12 keys of it, those behind all 12. */
static int sees_the_tail_to_a_line(const struct oracle_case *c, int row, int key)
{
    const struct key_range keys = schedule_range(c, row);
    return (key >= c->kv_len && key < c->kv_len + 5 + row) || (key >= keys.first && key < keys.last);
}

static int sees_three_of_the_tail(const struct oracle_case *c, int row, int key)
{
    (void)row;
    return key < c->kv_len + 3;
}

/* Every eighth row ends where it should. */
static int sees_three_of_the_tail_sometimes(const struct oracle_case *c, int row, int key)
{
    return key < c->kv_len + (row % 8 ? 3 : 0);
}

static int sees_the_tail_at_random(const struct oracle_case *c, int row, int key)
{
    const struct key_range keys = schedule_range(c, row);
    return (key >= c->kv_len && (row * 7919 + key * 104729) % 1013 < 500) || (key >= keys.first && key < keys.last);
}

static int sees_at_random(const struct oracle_case *c, int row, int key)
{
    return key < c->kv_len && (row * 7919 + key * 104729) % 1013 < 500;
}

static int sees_two_more_sometimes(const struct oracle_case *c, int row, int key)
{
    return key < c->kv_len && key < schedule_range(c, row + (row % 8 ? 2 : 0)).last;
}

/* One element of a thousand is as wanted where the shift says otherwise. */
static int sees_two_more_but_one(const struct oracle_case *c, int row, int key)
{
    return sees_two_more(c, row, key) && !(row == 1 && key == schedule_range(c, row + 2).last - 1);
}

static void painted_under(enum asc_causal causal, int (*sees)(const struct oracle_case *c, int row, int key),
                          unsigned expected, enum mask_shift shift, int by)
{
    struct spec s = base;
    s.causal = causal;
    struct reading r = {.run = kernel_run(&s)};
    paint(r.run, sees);
    read_tiles(&r);
    assert_int_equal(names(&r), expected);
    if (by)
        assert_int_equal(r.plan.by[shift], by);
    reading_free(&r);
}

static void painted(int (*sees)(const struct oracle_case *c, int row, int key), unsigned expected, int by)
{
    painted_under(ASC_CAUSAL_TOP_LEFT, sees, expected, MASK_DIAGONAL, by);
}

static void what_no_kernel_of_ours_does_is_named_too(void **state)
{
    (void)state;
    painted(sees_inverted, 1u << MASK_INVERTED, 0);
    painted(sees_the_tail, 1u << MASK_TAIL, 0);
    painted(sees_the_tail_to_a_line, 1u << MASK_TAIL_LINE, 0);
    painted(sees_the_tail_at_random, 0, 0);
    painted_under(ASC_CAUSAL_NONE, sees_three_of_the_tail, 1u << MASK_TAIL_EDGE, MASK_TAIL_EDGE, 3);
    painted_under(ASC_CAUSAL_NONE, sees_three_of_the_tail_sometimes, 0, MASK_TAIL_EDGE, 0);
    painted(sees_two_more, 1u << MASK_DIAGONAL, 2);
    painted(sees_two_more_and_the_tail, 1u << MASK_DIAGONAL | 1u << MASK_TAIL, 2);
    painted(sees_at_random, 0, 0);
    painted(sees_two_more_sometimes, 0, 0);
    painted(sees_two_more_but_one, 0, 0);
}

static void the_rule(void **state)
{
    (void)state;
    const struct mask_evidence good = {
        .elements = 10000, .explained = 9999, .telling = 16, .rows = 16, .chance_tried = 128, .chance_hit = 0};
    struct mask_evidence e = good;
    assert_true(mask_named(&e));
    e.explained--;
    assert_false(mask_named(&e));
    e = good;
    e.telling = 15;
    assert_false(mask_named(&e));
    e = good;
    e.rows = 15;
    assert_false(mask_named(&e));
    e = good;
    e.chance_hit = 20; /* 16 ln(129 / 21) = 29.04 */
    assert_false(mask_named(&e));
    e.chance_hit = 18; /* 30.6 */
    assert_true(mask_named(&e));
    const struct mask_evidence none = {0};
    assert_false(mask_named(&none));
}

/* A weight of 0 whose score makes it so says nothing; nobody's element says nothing; nor does a run of neither. */
static void what_is_not_known(void **state)
{
    (void)state;
    struct spec s = base;
    s.conventions.s_at = ASC_S_DOT;
    s.fill = FILL_LARGE;
    s.scale = 8;
    struct reading r = reading(&s, NULL);
    assert_true(r.counts.unknown > 0 && mask_wrong(&r.counts) == 0);
    reading_free(&r);
    s = base;
    s.unrecorded = 1u << asc_s | 1u << asc_p;
    r = reading(&s, NULL);
    assert_int_equal(mask_source(&r.run->c), MASK_NOT_KNOWN);
    assert_int_equal(r.counts.unknown, all(&r));
    reading_free(&r);
    s = base;
    s.unrecorded = 0;
    struct reading one = {.run = kernel_run(&s)};
    const uint32_t pattern = UNWRITTEN_32;
    memcpy((float *)one.run->arrays[asc_s] + 5, &pattern, sizeof pattern);
    read_tiles(&one);
    assert_int_equal(one.counts.unknown, 1);
    assert_int_equal(mask_bit(&one.tiles[0], one.tiles[0].known, 0, 5), 0);
    assert_int_equal(mask_bit(&one.tiles[0], one.tiles[0].wanted, 0, 5), 1);
    reading_free(&one);
}

/* A finite number that leaves no weight hides a key; one that leaves it some does not. */
static void finite_scores_hide_where_they_weigh_nothing(void **state)
{
    (void)state;
    struct spec s = base;
    s.causal = ASC_CAUSAL_TOP_LEFT;
    s.conventions.s_masked = ASC_MASKED_VALUE;
    s.conventions.s_masked_value = -1e4f;
    struct reading r = {.run = kernel_run(&s)};
    r.run->c.conventions.s_masked = ASC_MASKED_INFINITE;
    read_tiles(&r);
    assert_int_equal(mask_wrong(&r.counts), 0);
    reading_free(&r);
    s.conventions.s_masked_value = -30;
    r = (struct reading){.run = kernel_run(&s)};
    r.run->c.conventions.s_masked = ASC_MASKED_INFINITE;
    read_tiles(&r);
    assert_int_equal(r.counts.neither, 0);
    assert_true(names(&r) & 1u << MASK_NONE);
    reading_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_mask_is_read_as_it_is),
        cmocka_unit_test(shifts_are_named),
        cmocka_unit_test(what_no_kernel_of_ours_does_is_named_too),
        cmocka_unit_test(the_rule),
        cmocka_unit_test(what_is_not_known),
        cmocka_unit_test(finite_scores_hide_where_they_weigh_nothing),
    };
    return cmocka_run_group_tests_name("oracle: masks", tests, scratch_begin, scratch_end);
}
