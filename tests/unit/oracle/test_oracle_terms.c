/* Sinks, biases and split KV: kernels that have them are right in every convention, mistakes about them are found where
   they are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/oracle/bias.h"
#include "engine/oracle/nonfinite/invariants.h"
#include "engine/oracle/schedule.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

#define SET(channel) (1u << asc_##channel)
#define BASE .s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED

static double largest[2][ASC_CHANNELS]; /* error/bound */

static void expect_clean(const struct spec *s)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        for (int global = 0; global < 2; global++) {
            const struct verdict *v = global ? &run->out[i].global : &run->out[i].local;
            const int recorded = run->captured[i].data != NULL;
            if (v->judged != recorded || verdict_bad(v) || v->unjudged || !(v->worst_ratio <= 1))
                fail_msg(
                    "%s of kv tile %d, %s: judged %d, bad %u, unjudged %u, error/bound %g at %d,%d; l_sink %d sink %g "
                    "alibi %g bias %g splits %d lse %d units %d %d s_at %d cap %g causal %d fill %d offset %d u_phase "
                    "%d lanes %d reversed %d unrecorded %x",
                    channel_name(ch), i / ASC_CHANNELS, global ? "global" : "local", v->judged, verdict_bad(v),
                    v->unjudged, (double)v->worst_ratio, v->worst_row, v->worst_col, s->conventions.l_sink,
                    (double)s->sink, (double)s->alibi_slope, s->bias_sigma, s->kv_splits, s->merges_lse,
                    s->conventions.s_unit, s->conventions.m_unit, s->conventions.s_at, (double)s->softcap,
                    (int)s->causal, (int)s->fill, s->conventions.p_offset, s->conventions.u_phase,
                    s->conventions.l_lanes, s->reversed, s->unrecorded);
            largest[global][ch] = fmax(largest[global][ch], (double)v->worst_ratio);
        }
    }
    kernel_run_free(run);
}

static struct spec plain(void)
{
    return (struct spec){.q_len = 40,
                         .kv_len = 75,
                         .head_dim = 16,
                         .br = 16,
                         .bc = 8,
                         .q_tile = 1,
                         .p_dtype = DTYPE_F32,
                         .conventions = {BASE}};
}

/* A choice out of n, each of which comes as often as any other, in all combinations as i goes on. */
static int pick(unsigned *i, int n)
{
    const int choice = (int)(*i % (unsigned)n);
    *i /= (unsigned)n;
    return choice;
}

static struct spec combination(unsigned i)
{
    static const float sinks[] = {0, -3, 1.7F, 40};
    static const int splits[] = {0, 1, 2, 3, 7, 16};
    struct spec s = plain();
    const unsigned seed = i;
    uint64_t mixed = i;
    i = (unsigned)(test_random(&mixed) >> 8);
    s.seed = seed;
    s.conventions.s_unit = pick(&i, 3);
    s.conventions.m_unit = pick(&i, 3);
    s.conventions.l_sink = pick(&i, 4);
    s.has_sink = s.conventions.l_sink != ASC_SINK_NONE;
    s.sink = sinks[pick(&i, 4)];
    s.kv_splits = splits[pick(&i, 6)];
    s.merges_lse = pick(&i, 2);
    s.causal = (enum asc_causal)pick(&i, 3);
    s.reversed = pick(&i, 2);
    s.visits_masked = pick(&i, 2);
    i = (unsigned)(test_random(&mixed) >> 8);
    s.alibi_slope = pick(&i, 2) ? 0.37F : 0;
    s.bias_sigma = pick(&i, 2) ? 3 : 0;
    s.conventions.alibi_form = pick(&i, 2);
    s.conventions.s_at = pick(&i, 4);
    s.softcap = pick(&i, 3) == 0 ? 2 : 0;
    s.fill = (enum fill)pick(&i, FILL_COMMON_MEAN + 1);
    s.summing = (enum summing)pick(&i, 3);
    s.has_window = pick(&i, 3) == 0;
    i = (unsigned)(test_random(&mixed) >> 8);
    s.window_left = pick(&i, 3) == 0 ? -1 : 21;
    s.window_right = pick(&i, 3) - 1;
    s.conventions.p_offset = pick(&i, 3) == 0 ? 8 : 0;
    s.conventions.u_phase = pick(&i, 4) == 0;
    s.conventions.l_lanes = pick(&i, 4) == 0 ? 4 : 0;
    s.conventions.lse_base2 = pick(&i, 4) == 0;
    s.conventions.empty_lse_negative = pick(&i, 2);
    s.q_tile = pick(&i, 3);
    s.o_dtype = pick(&i, 2) ? DTYPE_F32 : DTYPE_F16;
    s.conventions.p_max = seed % 4 == 1 ? ASC_P_MAX_TILE : ASC_P_MAX_RUNNING;
    s.conventions.u_norm = seed % 8 < 3 && !s.conventions.u_phase ? ASC_U_NORM_TILE : ASC_U_NORM_END;
    s.kv_deal = seed % 3 == 0 ? ASC_DEAL_ROUND_ROBIN : ASC_DEAL_RANGES;
    if (s.seed % 5 == 0)
        s.kv_len = 30; /* rows without any key, where causality is at the bottom right */
    if (s.seed % 7 == 0)
        s.kv_len = 7; /* one tile, whatever the splits */
    return s;
}

static void combinations_are_right(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        const struct spec s = combination(i);
        expect_clean(&s);
    }
    for (int ch = asc_s; ch < ASC_CHANNELS; ch++) {
        printf("# %-5s largest error/bound: local %.3f global %.3f\n", channel_name((enum asc_channel)ch),
               largest[0][ch], largest[1][ch]);
        assert_true(largest[1][ch] > 0.02 || ch == asc_m);
    }
}

/* Whatever is not recorded, expectations stand in. */
static void unrecorded(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1500; i++) {
        struct spec s = combination(i);
        s.unrecorded = (i * 131) % (1u << ASC_CHANNELS);
        expect_clean(&s);
    }
}

/* What is looked at here: which stages a mistake makes bad, by their own fault and at all. */
static void expect_fault(const struct spec *s, unsigned local, unsigned global, const char *name)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    const unsigned by_itself = bad_stages(run, 0), at_all = bad_stages(run, 1);
    if (by_itself != local || (at_all & global) != global)
        fail_msg("%s: local %x, not %x; global %x, not all of %x", name, by_itself, local, at_all, global);
    kernel_run_free(run);
}

static void mistakes_are_found(void **state)
{
    (void)state;
    struct spec s = plain();
    s.has_sink = 1;
    s.sink = 1.5F;
    /* alpha is where it is lost: 0 instead of exp(sink - m); l follows from that alpha. */
    s.conventions.l_sink = ASC_SINK_START;
    s.wrong_term = SINK_FORGOTTEN;
    expect_fault(&s, SET(m) | SET(alpha), SET(l) | SET(o) | SET(lse), "sink forgotten, start");
    s.wrong_term = SINK_UNSCALED;
    expect_fault(&s, SET(m) | SET(alpha), SET(o) | SET(lse), "sink unscaled, start");
    s.conventions.l_sink = ASC_SINK_END;
    s.wrong_term = SINK_FORGOTTEN;
    expect_fault(&s, SET(o) | SET(lse), SET(o) | SET(lse), "sink forgotten, end");
    s.wrong_term = SINK_UNSCALED;
    expect_fault(&s, SET(o) | SET(lse), SET(o) | SET(lse), "sink unscaled, end");
    s.conventions.l_sink = ASC_SINK_M_START;
    s.wrong_term = SINK_FORGOTTEN;
    expect_fault(&s, SET(m) | SET(alpha) | SET(o) | SET(lse), SET(o) | SET(lse), "sink forgotten, m");
    s.kv_splits = 3;
    s.conventions.l_sink = ASC_SINK_START;
    s.wrong_term = SINK_IN_EVERY_SPLIT;
    expect_fault(&s, SET(m) | SET(alpha) | SET(l), SET(o) | SET(lse), "sink in every split");

    s = plain();
    s.bias_sigma = 2;
    s.wrong_term = BIAS_FORGOTTEN;
    expect_fault(&s, SET(s), SET(s) | SET(o) | SET(lse), "bias forgotten");
    s.wrong_term = BIAS_NEXT_ROW;
    expect_fault(&s, SET(s), SET(s) | SET(o) | SET(lse), "bias of the next row");
    s.wrong_term = BIAS_SCALED;
    expect_fault(&s, SET(s), SET(s) | SET(o) | SET(lse), "bias scaled");
    s.conventions.s_at = ASC_S_DOT; /* the bias comes later: the stages behind show it */
    expect_fault(&s, SET(m) | SET(p), SET(o) | SET(lse), "bias scaled, later");

    s = plain();
    s.alibi_slope = 0.1F;
    s.wrong_term = ALIBI_SIGN;
    expect_fault(&s, SET(s), SET(s) | SET(o) | SET(lse), "slope of the wrong sign");
    s.wrong_term = ALIBI_TOP_LEFT;
    expect_fault(&s, SET(s), SET(s) | SET(o) | SET(lse), "distances from the wrong diagonal");
    /* Declared otherwise: o is right, lse by a constant of the row is not. */
    s.wrong_term = TERMS_RIGHT;
    s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    struct kernel_run *run = kernel_run(&s);
    run->c.conventions.alibi_form = ASC_ALIBI_DISTANCE;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    assert_int_equal(bad_stages(run, 0), SET(s));
    assert_int_equal(bad_stages(run, 1) & (SET(o) | SET(lse)), SET(lse));
    kernel_run_free(run);

    s = plain();
    s.kv_splits = 3;
    for (int i = 0; i < 4; i++) {
        s.merges_lse = i % 2;
        s.kv_deal = i / 2;
        s.wrong_term = SPLIT_STATE_KEPT;
        expect_fault(&s, SET(m) | SET(alpha) | SET(l) | SET(u), SET(lse), "state kept");
        s.wrong_term = SPLIT_EQUAL_WEIGHTS;
        expect_fault(&s, SET(o) | SET(lse), SET(o) | SET(lse), "equal weights");
        s.wrong_term = SPLIT_LAST_LOST;
        expect_fault(&s, SET(o) | SET(lse), SET(o) | SET(lse), "last split lost");
    }
}

/* Right kernels, declared otherwise than they are. */
static void wrong_declarations_are_found(void **state)
{
    (void)state;
    struct spec s = plain();
    s.has_sink = 1;
    s.sink = 0.5F;
    s.bias_sigma = 1;
    for (int kept = ASC_SINK_START; kept <= ASC_SINK_M_START; kept++) {
        for (int declared = ASC_SINK_START; declared <= ASC_SINK_M_START; declared++) {
            s.conventions.l_sink = kept;
            struct kernel_run *run = kernel_run(&s);
            run->c.conventions.l_sink = declared;
            assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
            assert_int_equal((bad_stages(run, 0) & (SET(m) | SET(alpha) | SET(l) | SET(o) | SET(lse))) == 0,
                             kept == declared);
            kernel_run_free(run);
        }
    }
    s.conventions.l_sink = ASC_SINK_END;
    for (int kept = ASC_S_MASKED; kept <= ASC_S_CAPPED; kept++) {
        for (int declared = ASC_S_MASKED; declared <= ASC_S_CAPPED; declared++) {
            s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
            s.conventions.s_at = kept;
            struct kernel_run *run = kernel_run(&s);
            run->c.conventions.s_at = declared;
            assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
            assert_int_equal((bad_stages(run, 0) & SET(s)) == 0, kept == declared);
            kernel_run_free(run);
        }
    }
}

/* FlashInfer's issue 4051: rows that see no key in any split, merged without a guard, are NaN. */
static void empty_splits(void **state)
{
    (void)state;
    struct spec s = plain();
    s.q_len = 64;
    s.kv_len = 40;
    s.q_tile = 1;
    s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    s.visits_masked = 1;
    for (s.merges_lse = 0; s.merges_lse < 2; s.merges_lse++) {
        for (s.kv_splits = 2; s.kv_splits < 8; s.kv_splits++) {
            s.wrong_term = TERMS_RIGHT;
            expect_clean(&s);
            s.wrong_term = SPLIT_UNGUARDED;
            expect_fault(&s, SET(o) | SET(lse), SET(o) | SET(lse), "unguarded");
        }
    }
}

/* How the splits' tiles mix in the order of visits says nothing. */
static void mixed_orders(void **state)
{
    (void)state;
    struct spec s = plain();
    s.kv_splits = 3;
    s.has_sink = 1;
    s.conventions.l_sink = ASC_SINK_START;
    struct kernel_run *run = kernel_run(&s);
    const int n = run->c.n_visited;
    int *order = calloc((size_t)n, sizeof *order);
    int at = 0;
    assert_int_equal(n, 10);
    for (int i = 0; i < 4; i++)
        for (int split = 0; split < 3; split++)
            if (split * 4 + i < n)
                order[at++] = split * 4 + i;
    assert_int_equal(at, n);
    run->c.order = order;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
    /* Without them, the second one's beginning is a fault. */
    run->c.kv_splits = 0;
    run->c.order = run->order;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    assert_int_equal(bad_stages(run, 0), SET(m) | SET(alpha) | SET(o) | SET(lse));
    free(order);
    kernel_run_free(run);
}

/* Captured values beside the bound: S with a bias at its very edge, o and lse of merged splits. */
static void edge_of_the_bounds(void **state)
{
    (void)state;
    struct spec s = plain();
    s.bias_sigma = 3;
    s.alibi_slope = 0.25F;
    s.kv_splits = 3;
    s.o_dtype = DTYPE_F32;
    s.has_sink = 1;
    s.sink = 0.5F;
    s.conventions.l_sink = ASC_SINK_END;
    const enum asc_channel channels[] = {asc_s, asc_o, asc_lse};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        const enum asc_channel ch = channels[i];
        struct kernel_run *run = kernel_run(&s);
        double room[5][16 * 16];
        uint8_t classes[2][16 * 16];
        struct tile_detail d = {.channel = ch,
                                .got = room[0],
                                .want_local = room[1],
                                .bound_local = room[2],
                                .want_global = room[3],
                                .bound_global = room[4],
                                .class_local = classes[0],
                                .class_global = classes[1]};
        assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
        const double want = room[1][5], bound = room[2][5];
        assert_true(bound > 0 && bound < 1e-4);
        for (int beyond = 0; beyond < 2; beyond++) {
            float *array = run_array(run, ch, 0);
            array[5] = (float)(want + bound * (beyond ? 1.1 : 0.9) + (beyond ? 1e-6 : 0));
            assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
            assert_int_equal(classes[0][5], beyond ? CLASS_OFF : CLASS_OK);
        }
        kernel_run_free(run);
    }
}

/* A bias of -inf hides its key like a mask. */
static void bias_that_hides(void **state)
{
    (void)state;
    struct spec s = plain();
    s.bias_sigma = 1;
    for (s.conventions.s_at = ASC_S_MASKED; s.conventions.s_at <= ASC_S_CAPPED; s.conventions.s_at++) {
        struct kernel_run *run = kernel_run(&s);
        double size = 0;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
        run->bias[(ptrdiff_t)(16 + 3) * s.kv_len + 2] = -INFINITY;
        assert_true(bias_at(&run->c, 3, 2, &size) == -INFINITY);
        float *captured = run_array(run, asc_s, 0), *p = run_array(run, asc_p, 0);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_true(bad_stages(run, 0) & (s.conventions.s_at == ASC_S_CAPPED ? SET(p) : SET(s)));
        if (s.conventions.s_at != ASC_S_CAPPED)
            captured[3 * 8 + 2] = -INFINITY;
        p[3 * 8 + 2] = 0;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_true(verdict_ok(&run->out[asc_s].local) && verdict_ok(&run->out[asc_s].global));
        assert_true(verdict_ok(&run->out[asc_p].local));
        kernel_run_free(run);
    }
}

/* The state of one row agrees with what is expected of a kernel. */
static void row_state(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct spec s = combination(i);
        s.conventions.l_lanes = 0;
        s.fill = FILL_NORMAL;
        struct kernel_run *run = kernel_run(&s);
        double m[16], alpha[16], l[16];
        assert_int_equal(row_state_want(&run->c, 3, m, alpha, l), 0);
        for (int at = 0; at < run->c.n_visited; at++) {
            const int kv = run->order[at];
            const double got_m = (double)((float *)run_array(run, asc_m, kv))[3];
            const double got_l = (double)((float *)run_array(run, asc_l, kv))[3];
            const double got_alpha = (double)((float *)run_array(run, asc_alpha, kv))[3];
            if (!(m[kv] == got_m || fabs(m[kv] - got_m) < 1e-3 * (1 + fabs(got_m))) ||
                fabs(alpha[kv] - got_alpha) > 1e-3 || fabs(l[kv] - got_l) > 1e-3 * (1e-3 + got_l))
                fail_msg("%u: kv tile %d: m %g %g alpha %g %g l %g %g", i, kv, m[kv], got_m, alpha[kv], got_alpha,
                         l[kv], got_l);
        }
        kernel_run_free(run);
    }
}

/* FlashAttention-2's own formula, and the other; windows that make the difference. */
static void alibi_forms(void **state)
{
    (void)state;
    static const struct {
        int causal, left, right, columns;
    } cases[] = {
        {ASC_CAUSAL_NONE, -1, -1, 0},         {ASC_CAUSAL_NONE, -1, 0, 1},         {ASC_CAUSAL_NONE, 5, 0, 0},
        {ASC_CAUSAL_BOTTOM_RIGHT, -1, -1, 1}, {ASC_CAUSAL_BOTTOM_RIGHT, 5, -1, 0}, {ASC_CAUSAL_BOTTOM_RIGHT, 20, -1, 1},
        {ASC_CAUSAL_TOP_LEFT, -1, -1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct oracle_case c = {.alibi_slope = 0.5,
                                .causal = cases[i].causal,
                                .window_left = cases[i].left,
                                .window_right = cases[i].right,
                                .q_len = 10,
                                .kv_len = 14,
                                .br = 4,
                                .q_tile = 1};
        double size = 0;
        const double distance = cases[i].causal == ASC_CAUSAL_TOP_LEFT ? 6 - 3 : 6 + 4 - 3;
        assert_true(bias_at(&c, 2, 3, &size) == (cases[i].columns ? 1.5 : -0.5 * distance));
        assert_true(size == fabs(bias_at(&c, 2, 3, &size)));
        c.conventions.alibi_form = ASC_ALIBI_DISTANCE;
        assert_true(bias_at(&c, 2, 3, &size) == -0.5 * distance);
        assert_true(bias_at(&c, 2, 13, &size) == -0.5 * fabs(distance - 10));
    }
}

static void splits_of_tiles(void **state)
{
    (void)state;
    struct oracle_case c = {.kv_tiles = 10, .kv_len = 10, .bc = 1};
    static const struct {
        int splits, effective, of_last;
    } cases[] = {{0, 1, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 2}, {4, 4, 3}, {6, 5, 4}, {7, 5, 4}, {10, 10, 9}, {64, 10, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        c.kv_splits = cases[i].splits;
        assert_int_equal(schedule_splits(&c), cases[i].effective);
        assert_int_equal(schedule_split(&c, 0), 0);
        assert_int_equal(schedule_split(&c, 9), cases[i].of_last);
    }
    assert_int_equal(asc_split_tiles(10, 4), 3);
    c.kv_deal = ASC_DEAL_ROUND_ROBIN;
    for (c.kv_splits = 0; c.kv_splits < 14; c.kv_splits++) {
        const int n = c.kv_splits > 1 ? c.kv_splits : 1;
        assert_int_equal(schedule_splits(&c), n < 10 ? n : 10);
        for (int kv = 0; kv < 10; kv++)
            assert_int_equal(schedule_split(&c, kv), kv % n);
    }
}

/* Where no visit is known tiles come split by split: each begins a state anew once. */
static void order_without_visits(void **state)
{
    (void)state;
    static const int dealt[] = {0, 3, 6, 1, 4, 2, 5};
    struct oracle_case c = {.kv_tiles = 7, .kv_splits = 3, .kv_deal = ASC_DEAL_ROUND_ROBIN, .order = dealt};
    for (int i = 0; i < 7; i++)
        assert_int_equal(schedule_nth(&c, i), dealt[i]);
    c.kv_deal = ASC_DEAL_RANGES;
    for (int i = 0; i < 7; i++)
        assert_int_equal(schedule_nth(&c, i), i);
    c.n_visited = 7;
    for (int i = 0; i < 7; i++)
        assert_int_equal(schedule_nth(&c, i), dealt[i]);
    c = (struct oracle_case){.kv_tiles = 7};
    for (int i = 0; i < 7; i++)
        assert_int_equal(schedule_nth(&c, i), i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinations_are_right),
        cmocka_unit_test(unrecorded),
        cmocka_unit_test(mistakes_are_found),
        cmocka_unit_test(empty_splits),
        cmocka_unit_test(mixed_orders),
        cmocka_unit_test(edge_of_the_bounds),
        cmocka_unit_test(bias_that_hides),
        cmocka_unit_test(row_state),
        cmocka_unit_test(alibi_forms),
        cmocka_unit_test(splits_of_tiles),
        cmocka_unit_test(order_without_visits),
        cmocka_unit_test(wrong_declarations_are_found),
    };
    return cmocka_run_group_tests_name("oracle: sinks, biases, splits", tests, scratch_begin, scratch_end);
}
