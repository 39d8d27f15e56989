/* Two runs side by side: the float64 reference recorded twice, and one of both changed at the edges of what counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/run/feed.h"
#include "engine/scenario/scenario.h"
#include "engine/study/difference.h"
#include "engine/verdict/judgement.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { A, B };

struct maker {
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_conventions conventions;
    struct layout_types types;
    int slots; /* how many of the q tiles are recorded, from `first` on */
    int first;
    uint64_t seed;
};

static struct maker maker(void)
{
    struct maker m = {.slots = 4};
    m.problem = (struct asc_problem){.batch = 1,
                                     .heads = 2,
                                     .kv_heads = 2,
                                     .q_len = 12,
                                     .kv_len = 20,
                                     .head_dim = 8,
                                     .head_dim_v = 8,
                                     .dtype = DTYPE_F16,
                                     .causal = ASC_CAUSAL_BOTTOM_RIGHT,
                                     .window_left = -1,
                                     .window_right = -1,
                                     .scale = 0.35f};
    m.plan = (struct asc_plan){.br = 8, .bc = 8, .threads = 32};
    m.types.o = DTYPE_F16;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        m.types.channel[ch] = DTYPE_F32;
    m.types.channel[asc_q] = m.types.channel[asc_k] = m.types.channel[asc_v] = DTYPE_F16;
    m.types.channel[asc_o] = m.types.channel[asc_p] = DTYPE_F16;
    return m;
}

/* Every tile was visited, in ascending order. */
static void stamp(const struct feed *f)
{
    const struct layout *l = &f->trace->layout;
    for (int slot = 0; slot < l->n_slots; slot++)
        for (int kv = 0; kv < l->kv_tiles; kv++)
            for (int ch = 0; ch < ASC_CHANNELS; ch++) {
                const uint64_t *stamps = trace_stamps(f->trace, ch, slot, kv);
                const uint64_t clock = 100 * (uint64_t)kv + (uint64_t)ch + 1;
                memcpy(f->bytes + ((const unsigned char *)stamps - f->trace->bytes), &clock, sizeof clock);
            }
}

/* A run that recorded the reference. */
static struct feed made(const struct maker *m)
{
    unsigned char input[3][4096];
    int32_t slots[4][3];
    struct trace *empty = NULL;
    struct feed f;
    struct err err = {0};
    struct judge_scratch *scratch = judge_scratch_new();
    for (int i = 0; i < 3; i++) {
        const struct fill fill = {.kind = FILL_NORMAL, .sigma = 1, .seed = m->seed};
        assert_true(fill_tensor_bytes(&m->problem, i) <= sizeof input[i]);
        assert_int_equal(fill_tensor(&m->problem, i, &fill, NULL, input[i]), 0);
    }
    for (int i = 0; i < m->slots; i++) {
        slots[i][0] = 0;
        slots[i][1] = (m->first + i) / 2;
        slots[i][2] = (m->first + i) % 2;
    }
    assert_int_equal(trace_create(&m->problem, &m->plan, &m->conventions, &m->types, (const int32_t(*)[3])slots,
                                  m->slots, input[0], input[1], input[2], &empty, &err),
                     0);
    assert_int_equal(feed_open(&f, empty, NULL, (1u << ASC_CHANNELS) - 1, &err), 0);
    for (int slot = 0; slot < m->slots; slot++)
        assert_int_equal(feed_slot(&f, slot, scratch), 0);
    judge_scratch_free(scratch);
    trace_free(empty);
    f.run = NULL;
    stamp(&f);
    return f;
}

struct two {
    struct feed a, b;
    struct difference d;
};

static struct two two(const struct maker *m)
{
    return (struct two){.a = made(m), .b = made(m)};
}

static void drop(struct two *x)
{
    feed_close(&x->a);
    feed_close(&x->b);
}

static void compare(struct two *x)
{
    struct err err = {0};
    assert_int_equal(difference_check(x->a.trace, x->b.trace, "a", "b", &err), 0);
    assert_int_equal(difference_find(x->a.trace, x->b.trace, 1, &x->d, &err), 0);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct channel_difference *d = &x->d.channel[ch];
        assert_int_equal(d->compared,
                         d->same + d->nan_bits + d->within + d->beyond + d->unbounded + d->classes + d->coverage);
    }
}

/* Element (row, col) of a tile, writable. */
static void *element(struct feed *f, enum asc_channel ch, int slot, int kv, int row, int col)
{
    const struct tile tile = trace_tile(f->trace, ch, slot, kv);
    const size_t at = (size_t)(row * tile.cols + col) * dtype_bytes(tile.dtype);
    assert_non_null(tile.data);
    return f->bytes + ((const unsigned char *)tile.data - f->trace->bytes) + at;
}

static float *number(struct feed *f, enum asc_channel ch, int slot, int kv, int row, int col)
{
    return element(f, ch, slot, kv, row, col);
}

static void test_the_same(void **state)
{
    (void)state;
    const struct maker m = maker();
    struct two x = two(&m);
    compare(&x);
    assert_true(difference_exact(&x.d));
    assert_true(difference_within(&x.d));
    assert_int_equal(x.d.both, 4);
    assert_int_equal(x.d.channel[asc_s].compared, 2 * 12 * 20);
    assert_int_equal(x.d.channel[asc_s].same, 2 * 12 * 20);
    assert_true(difference_first(&x.d, 1).order == UINT64_MAX);
    drop(&x);
}

static void test_one_step(void **state)
{
    (void)state;
    const struct maker m = maker();
    struct two x = two(&m);
    float *s = number(&x.b, asc_s, 3, 1, 2, 5);
    const float before = *s;
    *s = nextafterf(*s, INFINITY);
    compare(&x);
    const struct channel_difference *d = &x.d.channel[asc_s];
    assert_int_equal(d->within, 1);
    assert_int_equal(d->same, d->compared - 1);
    assert_int_equal(d->largest_ulp, 1);
    assert_true(d->largest == (double)*s - (double)before);
    assert_true(d->largest_ratio > 0 && d->largest_ratio <= 1);
    assert_true(difference_within(&x.d));
    assert_false(difference_exact(&x.d));
    const struct difference_place first = difference_first(&x.d, 1);
    char words[96];
    difference_place_words(&first, words, sizeof words);
    assert_string_equal(words, "s[b0,h1,q1,k1] row 2, column 5");
    assert_true(first.got[A] == (double)before && first.got[B] == (double)*s);
    assert_true(difference_first(&x.d, 0).order == UINT64_MAX);
    drop(&x);
}

/* The bound of S at an element, from its own formula's verdict. */
static double bound_of_s(const struct trace *t, int slot, int kv, int row, int col)
{
    struct judgement *j = NULL;
    struct tile_detail detail;
    struct judge_scratch *scratch = judge_scratch_new();
    assert_int_equal(judgement_new(t, &j), 0);
    assert_int_equal(judgement_detail(j, t, (struct place){slot, kv, asc_s}, scratch, &detail), 0);
    const double bound = detail.bound_local[row * detail.cols + col];
    tile_detail_free(&detail);
    judgement_free(j);
    judge_scratch_free(scratch);
    return bound;
}

static void test_the_edge_of_both_bounds(void **state)
{
    (void)state;
    const struct maker m = maker();
    struct two x = two(&m);
    const double limit = 2 * bound_of_s(x.a.trace, 0, 0, 1, 2), from = (double)*number(&x.a, asc_s, 0, 0, 1, 2);
    float edge = (float)from;
    while ((double)nextafterf(edge, INFINITY) - from <= limit)
        edge = nextafterf(edge, INFINITY);
    *number(&x.b, asc_s, 0, 0, 1, 2) = edge;
    compare(&x);
    assert_int_equal(x.d.channel[asc_s].within, 1);
    assert_true(difference_within(&x.d));
    *number(&x.b, asc_s, 0, 0, 1, 2) = nextafterf(edge, INFINITY);
    compare(&x);
    assert_int_equal(x.d.channel[asc_s].beyond, 1);
    assert_true(x.d.channel[asc_s].largest_ratio > 1);
    assert_false(difference_within(&x.d));
    drop(&x);
}

static void test_classes(void **state)
{
    (void)state;
    static const uint32_t nan_a = 0x7fc00001, nan_b = 0x7fc00002, unwritten = UNWRITTEN_32;
    const struct maker m = maker();
    struct two x = two(&m);
    /* NaN in both: one class, but said; the same bits or not. */
    memcpy(number(&x.a, asc_u, 0, 0, 0, 0), &nan_a, 4);
    memcpy(number(&x.b, asc_u, 0, 0, 0, 0), &nan_a, 4);
    memcpy(number(&x.a, asc_u, 0, 0, 0, 1), &nan_a, 4);
    memcpy(number(&x.b, asc_u, 0, 0, 0, 1), &nan_b, 4);
    compare(&x);
    assert_int_equal(x.d.channel[asc_u].nan, 2);
    assert_int_equal(x.d.channel[asc_u].nan_bits, 1);
    assert_true(difference_within(&x.d));
    assert_false(difference_exact(&x.d));
    /* NaN in one. */
    *number(&x.b, asc_u, 0, 0, 0, 0) = 1;
    compare(&x);
    assert_int_equal(x.d.channel[asc_u].classes, 1);
    assert_false(difference_within(&x.d));
    memcpy(number(&x.b, asc_u, 0, 0, 0, 0), &nan_a, 4);
    /* A mask in one: row 0 of q tile 0 sees keys 0 .. 8. */
    assert_true(*number(&x.a, asc_s, 0, 1, 0, 1) == -INFINITY);
    *number(&x.b, asc_s, 0, 1, 0, 1) = -1e30f;
    compare(&x);
    assert_int_equal(x.d.channel[asc_s].classes, 1);
    assert_false(difference_within(&x.d));
    *number(&x.b, asc_s, 0, 1, 0, 1) = INFINITY;
    compare(&x);
    assert_int_equal(x.d.channel[asc_s].classes, 1);
    *number(&x.b, asc_s, 0, 1, 0, 1) = -INFINITY;
    compare(&x);
    assert_true(difference_within(&x.d));
    /* Written in one run alone; then in neither. */
    memcpy(number(&x.b, asc_l, 2, 0, 3, 0), &unwritten, 4);
    compare(&x);
    assert_int_equal(x.d.channel[asc_l].coverage, 1);
    assert_false(difference_within(&x.d));
    assert_true(x.d.channel[asc_l].first_bad.unwritten_b && !x.d.channel[asc_l].first_bad.unwritten_a);
    memcpy(number(&x.a, asc_l, 2, 0, 3, 0), &unwritten, 4);
    compare(&x);
    assert_int_equal(x.d.channel[asc_l].coverage, 0);
    assert_int_equal(x.d.channel[asc_l].unwritten, 1);
    assert_true(difference_within(&x.d));
    drop(&x);
}

static void test_a_narrow_type(void **state)
{
    (void)state;
    const struct maker m = maker();
    struct two x = two(&m);
    uint16_t *p = element(&x.b, asc_p, 0, 0, 4, 3);
    assert_true(*p > 0x2000 && *p < 0x3c00);
    *p += 2; /* a correct P lies within half a step of f16 and a little: two runs differ by one step at most */
    compare(&x);
    assert_int_equal(x.d.channel[asc_p].beyond, 1);
    assert_int_equal(x.d.channel[asc_p].largest_ulp, 2);
    drop(&x);
}

/* What upstream differs by is no fault of the stage: m and S move together, P stays what it should be. */
static void test_upstream_is_taken_off(void **state)
{
    (void)state;
    const struct maker m = maker();
    struct two x = two(&m);
    for (int col = 0; col < 8; col++)
        *number(&x.b, asc_s, 0, 0, 5, col) += 0.5f;
    *number(&x.b, asc_m, 0, 0, 5, 0) += 0.5f;
    compare(&x);
    assert_int_equal(x.d.channel[asc_s].beyond, 8);
    assert_int_equal(x.d.channel[asc_m].beyond, 0);
    assert_int_equal(x.d.channel[asc_m].within, 1);
    assert_true(x.d.channel[asc_m].largest >= 0.49);
    drop(&x);
}

static void test_lanes_add_up(void **state)
{
    (void)state;
    struct maker m = maker();
    m.conventions.l_lanes = 2;
    struct two x = two(&m);
    float *lane = number(&x.b, asc_l, 1, 0, 1, 0), *next = number(&x.b, asc_l, 1, 0, 1, 1);
    *next += *lane / 2;
    *lane /= 2;
    compare(&x);
    assert_int_equal(x.d.channel[asc_l].compared, 2 * 12 * 3);
    assert_true(difference_within(&x.d));
    assert_false(difference_exact(&x.d));
    *next *= 2;
    compare(&x);
    assert_int_equal(x.d.channel[asc_l].beyond, 1);
    drop(&x);
}

static void test_slots_of_one_run(void **state)
{
    (void)state;
    struct maker m = maker();
    struct err err = {0};
    struct two x = {0};
    m.slots = 3;
    x.a = made(&m);
    m.first = 2;
    m.slots = 2;
    x.b = made(&m);
    compare(&x);
    assert_int_equal(x.d.both, 1);
    assert_int_equal(x.d.only[A], 2);
    assert_int_equal(x.d.only[B], 1);
    assert_true(difference_exact(&x.d));
    feed_close(&x.a);
    m.first = 0;
    x.a = made(&m);
    assert_int_equal(difference_find(x.a.trace, x.b.trace, 0, &x.d, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    drop(&x);
}

/* Complete runs: the outputs are compared where nothing was recorded as well. */
static void test_outputs_everywhere(void **state)
{
    (void)state;
    struct maker m = maker();
    const struct maker all = m;
    struct two x = {0};
    struct feed reference = made(&all);
    m.slots = 1;
    x = two(&m);
    struct feed *feeds[] = {&x.a, &x.b};
    for (int i = 0; i < 2; i++) {
        const struct layout *l = &feeds[i]->trace->layout;
        for (int slot = 0; slot < 4; slot++)
            for (int row = 0; row < (slot % 2 ? 4 : 8); row++) {
                const size_t at = (size_t)slot / 2 * 12 + (size_t)slot % 2 * 8 + (size_t)row;
                memcpy(feeds[i]->bytes + l->o.offset + at * 16, element(&reference, asc_o, slot, 0, row, 0), 16);
                memcpy(feeds[i]->bytes + l->lse.offset + at * 4, element(&reference, asc_lse, slot, 0, row, 0), 4);
            }
        feeds[i]->trace->info.status = RUN_COMPLETE;
    }
    compare(&x);
    assert_true(x.d.outputs && difference_exact(&x.d));
    assert_int_equal(x.d.channel[asc_o].compared, 2 * 12 * 8);
    /* Head 1, q tile 1, row 2: not recorded. */
    uint16_t *o = (uint16_t *)(void *)(x.b.bytes + x.b.trace->layout.o.offset + (size_t)(12 + 8 + 2) * 16 + 6);
    float *lse = (float *)(void *)(x.b.bytes + x.b.trace->layout.lse.offset) + 12 + 8 + 2;
    *lse = nextafterf(*lse, INFINITY);
    compare(&x);
    assert_true(difference_within(&x.d) && !difference_exact(&x.d));
    *o += 64;
    compare(&x);
    assert_int_equal(x.d.channel[asc_o].beyond, 1);
    const struct difference_place first = difference_first(&x.d, 0);
    char words[96];
    difference_place_words(&first, words, sizeof words);
    assert_string_equal(words, "o[b0,h1,q1] row 2, column 3");
    /* One run that did not come to its end is not the same as one that did. */
    *o -= 64;
    x.b.trace->info.status = RUN_CRASHED;
    compare(&x);
    assert_false(difference_within(&x.d));
    feed_close(&reference);
    drop(&x);
}

static void refused(struct maker with, const char *words)
{
    const struct maker m = maker();
    struct err err = {0};
    struct feed a = made(&m), b = made(&with);
    assert_int_equal(difference_check(a.trace, b.trace, "a", "b", &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_string_equal(err.where, "b");
    assert_string_equal(err.message, words);
    feed_close(&a);
    feed_close(&b);
}

static void test_what_can_not_be_compared(void **state)
{
    (void)state;
    struct maker m = maker();
    m.problem.kv_len = 16;
    refused(m, "cannot be compared with a: its kv_len is 16, there 20");
    m = maker();
    m.plan.bc = 4;
    refused(m, "cannot be compared with a: its tiles are 8 x 4, there 8 x 8");
    m = maker();
    m.conventions.m_unit = ASC_UNIT_RAW;
    m.conventions.s_unit = ASC_UNIT_SCALED;
    refused(m, "cannot be compared with a: its kernel declares s_unit scaled, there raw");
    m = maker();
    m.types.channel[asc_s] = DTYPE_F16;
    refused(m, "cannot be compared with a: it has s as f16, there f32");
    m = maker();
    m.seed = 7;
    refused(m, "cannot be compared with a: its input Q has different values");
    m = maker();
    m.problem.scale = 0.25f;
    refused(m, "cannot be compared with a: its scale is 0.25, there 0.349999994");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_one_step),
        cmocka_unit_test(test_the_edge_of_both_bounds),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_a_narrow_type),
        cmocka_unit_test(test_upstream_is_taken_off),
        cmocka_unit_test(test_lanes_add_up),
        cmocka_unit_test(test_slots_of_one_run),
        cmocka_unit_test(test_outputs_everywhere),
        cmocka_unit_test(test_what_can_not_be_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
