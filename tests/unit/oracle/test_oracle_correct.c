/* Correct kernels are found correct, at every stage, locally and globally, whatever they may choose freely. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/schedule.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static const struct asc_conventions scaled = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};

static const struct spec shapes[] = {
    {.q_len = 64, .kv_len = 256, .head_dim = 64, .br = 64, .bc = 64},
    {.q_len = 200, .kv_len = 333, .head_dim = 64, .br = 64, .bc = 64, .q_tile = 3},
    {.q_len = 5, .kv_len = 7, .head_dim = 4, .br = 4, .bc = 3, .q_tile = 1},
    {.q_len = 1, .kv_len = 1, .head_dim = 1, .br = 1, .bc = 1},
    {.q_len = 100, .kv_len = 100, .head_dim = 128, .br = 32, .bc = 16, .q_tile = 1},
    {.q_len = 40, .kv_len = 17, .head_dim = 32, .br = 16, .bc = 8, .q_tile = 1},
};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Largest error/bound seen per channel and side. */
static double largest[2][ASC_CHANNELS];

static void expect_clean(const struct spec *s)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        const int kv = i / ASC_CHANNELS;
        for (int global = 0; global < 2; global++) {
            const struct verdict *v = global ? &run->out[i].global : &run->out[i].local;
            const int judged = run->captured[i].data != NULL;
            if (v->judged != judged || verdict_bad(v) || !(v->worst_ratio <= 1))
                fail_msg("%s of kv tile %d, %s: judged %d, bad %u, error/bound %g at %d,%d; fill %d summing %d "
                         "causal %d D %d kv_len %d units %d %d unrecorded %x dtype %d",
                         channel_name(ch), kv, global ? "global" : "local", v->judged, verdict_bad(v),
                         (double)v->worst_ratio, v->worst_row, v->worst_col, (int)s->fill, (int)s->summing,
                         (int)s->causal, s->head_dim, s->kv_len, s->conventions.s_unit, s->conventions.m_unit,
                         s->unrecorded, (int)s->dtype);
            if (judged && v->visited)
                assert_int_equal(v->count[CLASS_OK], run->captured[i].rows * run->captured[i].cols);
            largest[global][ch] = fmax(largest[global][ch], v->worst_ratio);
        }
    }
    kernel_run_free(run);
}

static void fills_orders_and_masks(void **state)
{
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int fill = FILL_NORMAL; fill <= FILL_ARANGE; fill++) {
            for (int causal = ASC_CAUSAL_NONE; causal <= ASC_CAUSAL_BOTTOM_RIGHT; causal++) {
                struct spec s = shapes[shape];
                s.fill = (enum fill)fill;
                s.causal = (enum asc_causal)causal;
                s.summing = (enum summing)((shape + fill + causal) % 3);
                s.reversed = (fill + causal) % 2;
                s.visits_masked = (shape + fill) % 2;
                s.conventions = scaled;
                s.p_dtype = DTYPE_F32;
                s.seed = (unsigned)(fill * 10 + causal);
                expect_clean(&s);
            }
        }
    }
}

static void types(void **state)
{
    (void)state;
    const enum dtype in[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32}, out[] = {DTYPE_BF16, DTYPE_F32, DTYPE_F16};
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int t = 0; t < 9; t++) {
            struct spec s = shapes[shape];
            s.conventions = scaled;
            s.dtype = in[t % 3];
            s.o_dtype = out[t / 3];
            s.p_dtype = in[(t + 1) % 3];
            s.seed = (unsigned)t;
            expect_clean(&s);
        }
    }
}

/* A kernel may convert its inputs first: what it captures is the rounded input, and later stages may differ by that. */
static void converted_inputs(void **state)
{
    (void)state;
    const enum dtype used[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_F32};
    for (int shape = 0; shape < SHAPES; shape++) {
        for (size_t t = 0; t < sizeof used / sizeof used[0]; t++) {
            struct spec s = shapes[shape];
            s.conventions = scaled;
            s.dtype = used[t] == DTYPE_F32 ? DTYPE_F16 : DTYPE_F32;
            s.converts = 1;
            s.used = used[t];
            s.p_dtype = DTYPE_F32;
            expect_clean(&s);
        }
    }
}

static void units_and_conventions(void **state)
{
    (void)state;
    const struct asc_conventions conventions[] = {
        {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_RAW},
        {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_SCALED, .alpha_first = 1},
        {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .lse_base2 = 1},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .lse_base2 = 1, .empty_lse_negative = 1},
    };
    for (int shape = 0; shape < SHAPES; shape++) {
        for (size_t i = 0; i < sizeof conventions / sizeof conventions[0]; i++) {
            for (int fill = FILL_NORMAL; fill <= FILL_OUTLIERS; fill++) {
                struct spec s = shapes[shape];
                s.conventions = conventions[i];
                s.fill = (enum fill)fill;
                s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
                s.visits_masked = fill == FILL_LARGE;
                s.p_dtype = DTYPE_F32;
                expect_clean(&s);
            }
        }
    }
}

/* ex2.approx errs by up to 2^-22.73 either way. */
static void approximate_exponentials(void **state)
{
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int fill = FILL_NORMAL; fill <= FILL_OUTLIERS; fill++) {
                struct spec s = shapes[shape];
                s.conventions = scaled;
                s.p_dtype = DTYPE_F32;
                s.fill = (enum fill)fill;
                s.exp_error = sign * 0x1p-22 * 0.6;
                expect_clean(&s);
            }
        }
    }
}

/* Any set of channels may be unrecorded: expectations stand in, and nothing right becomes wrong. */
static void unrecorded(void **state)
{
    (void)state;
    for (unsigned set = 0; set < 1u << ASC_CHANNELS; set += 37) {
        struct spec s = shapes[set % SHAPES];
        s.conventions = scaled;
        s.p_dtype = DTYPE_F32;
        s.unrecorded = set;
        s.fill = set % 2 ? FILL_NORMAL : FILL_LARGE;
        s.causal = (enum asc_causal)(set % 3);
        s.visits_masked = set % 5 == 0;
        expect_clean(&s);
    }
}

/* Bounds hold, and they are not so wide that nothing could be found. */
static void bounds_are_used(void **state)
{
    (void)state;
    const enum asc_channel rounding[] = {asc_s, asc_alpha, asc_p, asc_l, asc_u, asc_o, asc_lse};
    for (size_t i = 0; i < sizeof rounding / sizeof rounding[0]; i++) {
        print_message("# %-5s largest error/bound: local %.3f global %.3f\n", channel_name(rounding[i]),
                      largest[0][rounding[i]], largest[1][rounding[i]]);
        assert_true(largest[0][rounding[i]] > 0.005);
        assert_true(largest[1][rounding[i]] > 0.005);
    }
    assert_true(largest[0][asc_q] == 0 && largest[0][asc_k] == 0 && largest[0][asc_v] == 0);
}

static void empty_rows(void **state)
{
    (void)state;
    /* Rows 0..22 of 40 see none of 17 keys; the first q tile has no key at all. */
    for (int tile = 0; tile < 3; tile++) {
        for (int negative = 0; negative < 2; negative++) {
            for (int visits = 0; visits < 2; visits++) {
                struct spec s = shapes[5];
                s.q_tile = tile;
                s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
                s.conventions = scaled;
                s.conventions.empty_lse_negative = negative;
                s.visits_masked = visits;
                s.p_dtype = DTYPE_F32;
                expect_clean(&s);
            }
        }
    }
    struct spec s = shapes[5];
    s.q_tile = 0;
    s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    s.conventions = scaled;
    s.p_dtype = DTYPE_F32;
    struct kernel_run *run = kernel_run(&s);
    run->c.conventions.empty_lse_negative = 1;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    assert_int_equal(run->out[asc_lse].local.count[CLASS_INF], 16);
    assert_int_equal(run->out[asc_lse].global.count[CLASS_INF], 16);
    kernel_run_free(run);
}

static void schedule(void **state)
{
    (void)state;
    struct oracle_case c = {
        .q_len = 5, .kv_len = 3, .br = 2, .bc = 2, .q_tile = 1, .kv_tiles = 2, .window_left = -1, .window_right = -1};
    c.in_q.rows = 2;
    assert_int_equal(schedule_cols(&c, 0), 2);
    assert_int_equal(schedule_cols(&c, 1), 1);
    assert_int_equal(schedule_keys(&c, 0), 3);
    c.causal = ASC_CAUSAL_TOP_LEFT;
    assert_int_equal(schedule_keys(&c, 0), 3);
    c.q_tile = 0;
    assert_int_equal(schedule_keys(&c, 0), 1);
    assert_int_equal(schedule_visible(&c, 1, 0), 2);
    assert_int_equal(schedule_visible(&c, 1, 1), 0);
    assert_int_equal(schedule_masked(&c, 1), 1);
    c.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    assert_int_equal(schedule_keys(&c, 0), 0);
    assert_int_equal(schedule_keys(&c, 1), 0);
    c.q_tile = 1;
    assert_int_equal(schedule_keys(&c, 0), 1);
    assert_int_equal(schedule_masked(&c, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule),
        cmocka_unit_test(fills_orders_and_masks),
        cmocka_unit_test(types),
        cmocka_unit_test(units_and_conventions),
        cmocka_unit_test(approximate_exponentials),
        cmocka_unit_test(unrecorded),
        cmocka_unit_test(bounds_are_used),
        cmocka_unit_test(empty_rows),
        cmocka_unit_test(converted_inputs),
    };
    return cmocka_run_group_tests_name("oracle: correct kernels", tests, scratch_begin, scratch_end);
}
