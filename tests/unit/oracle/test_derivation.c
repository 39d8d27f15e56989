/* What an element was made from: one row alone is judged as it is among others, and the steps lead to what the oracle
   expects, from captured values and by the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/derivation.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/verdict/case.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static const struct asc_conventions scaled = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};

static const struct spec shapes[] = {
    {.q_len = 40, .kv_len = 50, .head_dim = 16, .br = 16, .bc = 16, .q_tile = 2},
    {.q_len = 5, .kv_len = 7, .head_dim = 4, .br = 4, .bc = 3, .q_tile = 1},
    {.q_len = 1, .kv_len = 1, .head_dim = 1, .br = 1, .bc = 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Every element of a run as the whole q tile's judgement has it. */
struct whole {
    struct tile_detail *tile; /* [kv_tiles][ASC_CHANNELS] */
};

static double *copy(const double *x, int n)
{
    double *y = malloc((size_t)(n ? n : 1) * sizeof *y);
    memcpy(y, x, (size_t)n * sizeof *y);
    return y;
}

static void keep(void *ctx, const struct tile_detail *d)
{
    struct whole *whole = ctx;
    const int n = d->rows * d->cols;
    struct tile_detail *to = &whole->tile[d->kv * ASC_CHANNELS + d->channel];
    *to = (struct tile_detail){.rows = d->rows, .cols = d->cols};
    to->got = copy(d->got, n);
    to->want_local = copy(d->want_local, n);
    to->want_global = copy(d->want_global, n);
}

static struct whole judge_whole(struct kernel_run *run)
{
    struct whole whole = {calloc((size_t)run->c.kv_tiles * ASC_CHANNELS, sizeof *whole.tile)};
    struct tile_detail each = {.each = keep, .ctx = &whole};
    assert_int_equal(tile_detail_make(&each, 4096), 0);
    assert_int_equal(judge_case(&run->c, scratch, run->out, &each), 0);
    tile_detail_free(&each);
    return whole;
}

static void whole_free(struct whole *whole, int kv_tiles)
{
    for (int i = 0; i < kv_tiles * ASC_CHANNELS; i++) {
        free(whole->tile[i].got);
        free(whole->tile[i].want_local);
        free(whole->tile[i].want_global);
    }
    free(whole->tile);
}

static void derive(const struct kernel_run *run, enum asc_channel ch, int kv, int row, int col, struct derivation *out)
{
    const size_t n = (size_t)run->c.kv_tiles * ASC_CHANNELS;
    struct slot_case one = {.c = run->c};
    one.captured = malloc(n * sizeof *one.captured);
    one.padding = malloc(3 * (size_t)run->c.kv_tiles * sizeof *one.padding);
    memcpy(one.captured, run->captured, n * sizeof *one.captured);
    memcpy(one.padding, run->padding, 3 * (size_t)run->c.kv_tiles * sizeof *one.padding);
    one.c.captured = one.captured;
    one.c.s_padding = one.padding;
    one.c.p_padding = one.padding + run->c.kv_tiles;
    one.c.v_padding = one.padding + (ptrdiff_t)2 * run->c.kv_tiles;
    slot_case_row(&one, ch == asc_k || ch == asc_v ? 0 : row);
    assert_int_equal(derive_element(&one.c, scratch, ch, kv, row, col, out), 0);
    free(one.captured);
    free(one.padding);
}

/* The products of one row and of many are summed in other orders. */
static void expect_near(double a, double b, const char *what, const struct derivation *d)
{
    if (isnan(a) && isnan(b))
        return;
    if (!(a == b || fabs(a - b) <= 1e-10 * (fabs(a) + fabs(b)) + 1e-13))
        fail_msg("%s of %s r%d c%d: %.17g, expected %.17g", what, channel_name(d->channel), d->row, d->col, a, b);
}

static const struct derivation_step *step(const struct derivation *d, const char *name)
{
    for (int i = 0; i < d->n_steps; i++)
        if (strcmp(d->step[i].name, name) == 0)
            return &d->step[i];
    return NULL;
}

static double value(const struct derivation *d, const char *name, int want, double otherwise)
{
    const struct derivation_step *s = step(d, name);
    return !s ? otherwise : want ? s->want : s->got;
}

/* What the steps come to; want: those of the reference. NaN: nothing can be said. */
static double arithmetic(const struct kernel_run *run, const struct derivation *d, int want)
{
    switch (d->channel) {
    case asc_q:
    case asc_k:
    case asc_v:
        return value(d, "the input", want, NAN) * value(d, "factor", want, 1);
    case asc_s: {
        const double x = value(d, "sum of q·k", want, NAN) * value(d, "factor", want, NAN), cap = run->c.softcap;
        return cap > 0 ? cap * tanh(x / cap) : x;
    }
    case asc_m:
        return fmax(value(d, "m before", want, NAN), value(d, "largest score", want, NAN));
    case asc_alpha:
        return step(d, "alpha_first") ? value(d, "alpha_first", want, NAN) : exp(value(d, "m before - m", want, NAN));
    case asc_p:
        return exp(value(d, "s - m", want, value(d, "s - t", want, NAN))) * value(d, "factor", want, 1);
    case asc_l:
        return value(d, "α·l before", want, NAN) + value(d, "times the sum", want, value(d, "sum of p", want, NAN));
    case asc_u: {
        const double before = value(d, "α·u before", want, value(d, "u before", want, NAN));
        return (value(d, "α·l before·u before", want, before) +
                value(d, "times the sum", want, value(d, "sum of p·v", want, NAN))) *
               value(d, "α of the next tile", want, 1) / value(d, "l", want, 1);
    }
    case asc_o:
        return value(d, "u", want, NAN) / value(d, "l", want, run->c.conventions.u_norm == ASC_U_NORM_TILE ? 1 : NAN);
    default:
        return (value(d, "m", want, NAN) * values_natural_m(&run->c) + value(d, "ln l", want, NAN) -
                value(d, "offset of P", want, 0)) *
               (run->c.conventions.lse_base2 ? M_LOG2E : 1);
    }
}

static int says_something(const struct kernel_run *run, const struct derivation *d, double x)
{
    return isfinite(x) && isfinite(d->want_local) && schedule_keys(&run->c, d->row) > 0 &&
           (d->channel != asc_s || d->want_local > -1e30);
}

static void expect_ordered(const struct derivation *d)
{
    for (int i = 1; i < d->n_terms; i++) {
        const double a = d->terms[i - 1].term_got, b = d->terms[i].term_got;
        if (d->channel == asc_m ? a < b : fabs(a) < fabs(b))
            fail_msg("terms of %s are not ordered: %g before %g", channel_name(d->channel), a, b);
    }
}

/* steps: 1 where there is nothing in the formula that the steps do not show. */
static void expect_derived(const struct spec *spec, int steps)
{
    struct kernel_run *run = kernel_run(spec);
    struct whole whole = judge_whole(run);
    int derived = 0;
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        const struct tile_detail *tile = &whole.tile[i];
        for (int at = 0; tile->got && at < tile->rows * tile->cols; at += 1 + tile->rows * tile->cols / 12) {
            struct derivation d;
            derive(run, ch, i / ASC_CHANNELS, at / tile->cols, at % tile->cols, &d);
            if (d.derived == DERIVED_YES) {
                derived++;
                assert_true(d.recorded);
                expect_near(d.got, tile->got[at], "captured value", &d);
                expect_near(d.want_local, tile->want_local[at], "local expectation", &d);
                expect_near(d.want_global, tile->want_global[at], "reference", &d);
                const double got = arithmetic(run, &d, 0), want = arithmetic(run, &d, 1);
                if (steps && says_something(run, &d, got))
                    expect_near(got, d.want_local, "captured steps", &d);
                if (steps && says_something(run, &d, want) && isfinite(d.want_global))
                    expect_near(want, d.want_global, "true steps", &d);
                expect_ordered(&d);
            } else {
                assert_int_equal(d.n_steps, 0);
            }
            derivation_free(&d);
        }
    }
    assert_true(derived > 0);
    whole_free(&whole, run->c.kv_tiles);
    kernel_run_free(run);
}

static void correct_runs(void **state)
{
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int causal = ASC_CAUSAL_NONE; causal <= ASC_CAUSAL_BOTTOM_RIGHT; causal++) {
            struct spec s = shapes[shape];
            s.causal = (enum asc_causal)causal;
            s.reversed = causal == ASC_CAUSAL_TOP_LEFT;
            s.visits_masked = shape % 2;
            s.conventions = scaled;
            s.p_dtype = DTYPE_F32;
            s.seed = (unsigned)(7 * shape + causal);
            expect_derived(&s, 1);
        }
    }
}

static void conventions(void **state)
{
    (void)state;
    const struct asc_conventions all[] = {
        {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_RAW},
        {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_SCALED, .alpha_first = ASC_ALPHA_ONE},
        {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .lse_base2 = 1, .p_offset = 8},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .q_fold = ASC_FOLD_SCALE},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .u_phase = ASC_U_RESCALED},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .m_policy = ASC_M_LAGGING, .m_lag = 8},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_RAW, .p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_max = ASC_P_MAX_TILE, .u_phase = ASC_U_RESCALED},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .u_norm = ASC_U_NORM_TILE},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct spec s = shapes[0];
        s.conventions = all[i];
        s.p_dtype = DTYPE_F32;
        s.used = DTYPE_F32;
        expect_derived(&s, all[i].q_fold == ASC_FOLD_NONE && all[i].m_policy == ASC_M_RUNNING);
    }
}

/* What the steps do not show must not change what they lead to. */
static void other_kernels(void **state)
{
    (void)state;
    struct spec s = shapes[0];
    s.conventions = scaled;
    s.p_dtype = DTYPE_F16;
    expect_derived(&s, 0);
    s.p_dtype = DTYPE_F32;
    s.softcap = 5;
    expect_derived(&s, 1);
    s.softcap = 0;
    s.alibi_slope = 0.25F;
    s.bias_sigma = 1;
    expect_derived(&s, 0);
    s.alibi_slope = 0;
    s.bias_sigma = 0;
    s.kv_splits = 2;
    expect_derived(&s, 1);
    s.kv_splits = 0;
    s.conventions.l_lanes = 4;
    struct kernel_run *run = kernel_run(&s);
    struct derivation d;
    derive(run, asc_l, 1, 3, 2, &d);
    assert_true(fabs(d.got - d.want_local) <= 1e-6 * fabs(d.want_local)); /* f32 sums */
    assert_non_null(strstr(d.note, "4 partial sums"));
    derivation_free(&d);
    kernel_run_free(run);
}

/* Operands that are not recorded are said to be expected ones. */
static void unrecorded(void **state)
{
    (void)state;
    struct spec s = shapes[0];
    s.conventions = scaled;
    s.p_dtype = DTYPE_F32;
    s.unrecorded = 1u << asc_m;
    struct kernel_run *run = kernel_run(&s);
    struct derivation d;
    derive(run, asc_p, 1, 2, 5, &d);
    assert_int_equal(d.derived, DERIVED_YES);
    assert_true(step(&d, "m")->expected);
    assert_false(step(&d, "s")->expected);
    derivation_free(&d);
    derivation_free(NULL);
    kernel_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correct_runs),
        cmocka_unit_test(conventions),
        cmocka_unit_test(other_kernels),
        cmocka_unit_test(unrecorded),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
