/* The reference that isolated runs are fed with: it is what the oracle calls right, for every order and type, and what
   a plain double computation gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/reference_fill.h"
#include "tests/unit/lib/oracle_kernel.h"
#include <cmocka.h>

static struct judge_scratch *scratch;

static const struct asc_conventions scaled = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};

/* The tiles of a run, filled with the reference in place of what the kernel wrote. */
struct filled {
    struct reference_target *tiles;
    struct matrix *captured;
    void **arrays;
    int n;
};

static void fill_unwritten(const struct matrix *m, void *data)
{
    const uint16_t pattern = UNWRITTEN_16;
    const size_t bytes = (size_t)(m->rows * m->row_stride) * dtype_bytes(m->dtype);
    for (size_t i = 0; i + sizeof pattern <= bytes; i += sizeof pattern)
        memcpy((unsigned char *)data + i, &pattern, sizeof pattern);
}

static struct filled fill_reference(const struct kernel_run *run)
{
    struct filled f = {.n = run->c.kv_tiles * ASC_CHANNELS};
    f.tiles = calloc((size_t)f.n, sizeof *f.tiles);
    f.captured = calloc((size_t)f.n, sizeof *f.captured);
    f.arrays = calloc((size_t)f.n, sizeof *f.arrays);
    for (int i = 0; i < f.n; i++) {
        const struct matrix *m = &run->c.captured[i];
        const int ch = i % ASC_CHANNELS, pads = ch == asc_s || ch == asc_p;
        if (!m->data)
            continue;
        f.captured[i] = *m;
        f.captured[i].data = f.arrays[i] = calloc((size_t)(m->rows * m->row_stride) + 1, 8);
        fill_unwritten(m, f.arrays[i]);
        f.tiles[i] = (struct reference_target){f.arrays[i], m->dtype, m->row_stride,
                                               m->rows,     m->cols,  pads ? (int)m->row_stride - m->cols : 0};
    }
    assert_int_equal(reference_fill(&run->c, scratch, f.tiles), 0);
    return f;
}

static void filled_free(struct filled *f)
{
    for (int i = 0; i < f->n; i++)
        free(f->arrays[i]);
    free(f->arrays);
    free(f->captured);
    free(f->tiles);
}

static double element(const struct filled *f, enum asc_channel ch, int kv, int r, int col)
{
    const struct matrix *m = &f->captured[kv * ASC_CHANNELS + (int)ch];
    return dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride + col));
}

/* Globally nothing is off; padding is masked; the run's own mistakes leave no mark. */
static void expect_right(const struct spec *spec)
{
    struct kernel_run *run = kernel_run(spec);
    struct filled f = fill_reference(run);
    struct oracle_case c = run->c;
    c.captured = f.captured;
    c.s_padding = NULL;
    assert_int_equal(judge_case(&c, scratch, run->out, NULL), 0);
    for (int i = 0; i < f.n; i++) {
        const struct verdict *v = &run->out[i].global;
        if (verdict_bad(v))
            fail_msg("%s of kv tile %d: %u off, error/bound %g at %d,%d", channel_name(i % ASC_CHANNELS),
                     i / ASC_CHANNELS, verdict_bad(v), (double)v->worst_ratio, v->worst_row, v->worst_col);
        const struct reference_target *t = &f.tiles[i];
        const int plain = spec->conventions.s_at == ASC_S_MASKED && spec->conventions.s_masked == ASC_MASKED_INFINITE;
        for (int r = 0; plain && r < t->rows; r++)
            for (int col = t->cols; t->data && col < t->cols + t->pad_cols; col++)
                assert_true(element(&f, i % ASC_CHANNELS, i / ASC_CHANNELS, r, col) ==
                            (i % ASC_CHANNELS == asc_s ? -INFINITY : 0));
    }
    filled_free(&f);
    kernel_run_free(run);
}

static void the_oracle_calls_it_right(void **state)
{
    (void)state;
    static const struct spec shapes[] = {
        {.q_len = 64, .kv_len = 256, .head_dim = 64, .br = 64, .bc = 64},
        {.q_len = 200, .kv_len = 333, .head_dim = 64, .br = 64, .bc = 64, .q_tile = 3},
        {.q_len = 5, .kv_len = 7, .head_dim = 4, .br = 4, .bc = 3, .q_tile = 1},
        {.q_len = 40, .kv_len = 17, .head_dim = 32, .br = 16, .bc = 8, .q_tile = 1},
    };
    static const enum mistake mistakes[] = {RIGHT, S_SCALED_TWICE, M_PARTIAL, U_ALPHA_FORGOTTEN};
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
        for (int causal = ASC_CAUSAL_NONE; causal <= ASC_CAUSAL_BOTTOM_RIGHT; causal++)
            for (int fill = FILL_NORMAL; fill <= FILL_OUTLIERS; fill++) {
                struct spec s = shapes[shape];
                s.causal = (enum asc_causal)causal;
                s.fill = (enum fill)fill;
                s.reversed = (fill + causal) % 2;
                s.visits_masked = causal % 2;
                s.conventions = scaled;
                s.p_dtype = fill % 2 ? DTYPE_F16 : DTYPE_F32;
                s.mistake = mistakes[(shape + (size_t)fill) % 4];
                s.seed = (unsigned)(10 * causal + fill);
                expect_right(&s);
                s.conventions = (struct asc_conventions){.m_unit = ASC_UNIT_LOG2, .alpha_first = 1, .lse_base2 = 1};
                s.mistake = RIGHT;
                expect_right(&s);
            }
}

static void in_every_convention(void **state)
{
    (void)state;
    static const struct {
        struct asc_conventions conventions;
        float softcap, alibi_slope;
        double bias_sigma;
        int has_sink, kv_splits, kv_deal;
    } cases[] = {
        {.conventions = {0}},
        {.conventions = {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_RAW}},
        {.conventions = {.s_at = ASC_S_CAPPED}, .softcap = 2},
        {.conventions = {.s_at = ASC_S_DOT}, .softcap = 2},
        {.conventions = {.s_masked = ASC_MASKED_VALUE, .s_masked_value = -1e4F, .empty_row = ASC_EMPTY_COMPUTED}},
        {.conventions = {.s_masked = ASC_MASKED_UNTOUCHED}},
        {.conventions = {.q_fold = ASC_FOLD_SCALE, .s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED}},
        {.conventions = {.m_empty = ASC_EMPTY_FINITE, .m_start = -1e4F}},
        {.conventions = {.alpha_first = ASC_ALPHA_ONE_FIRST}},
        {.conventions = {.alpha_first = ASC_ALPHA_ONE}},
        {.conventions = {.p_offset = 8}},
        {.conventions = {.p_max = ASC_P_MAX_TILE}},
        {.conventions = {.u_norm = ASC_U_NORM_TILE, .p_offset = 8}},
        {.conventions = {.p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE, .l_lanes = 4, .p_rounded = ASC_P_F16}},
        {.conventions = {.p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE}, .kv_splits = 2},
        {.conventions = {.l_sink = ASC_SINK_END, .p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE}, .has_sink = 1},
        {.conventions = {.l_lanes = 4}},
        {.conventions = {.u_phase = ASC_U_RESCALED}},
        {.conventions = {.lse_base2 = 1, .empty_lse_negative = 1}},
        {.conventions = {.m_policy = ASC_M_LAGGING, .m_lag = 8}},
        {.conventions = {.m_policy = ASC_M_FIXED, .m_empty = ASC_EMPTY_FINITE}},
        {.conventions = {.p_rounded = ASC_P_F16, .l_from = ASC_L_ROUNDED}},
        {.conventions = {.l_sink = ASC_SINK_START}, .has_sink = 1},
        {.conventions = {.l_sink = ASC_SINK_END, .m_unit = ASC_UNIT_LOG2}, .has_sink = 1},
        {.conventions = {.l_sink = ASC_SINK_M_START, .p_offset = 8}, .has_sink = 1, .kv_splits = 2},
        {.conventions = {0}, .alibi_slope = 0.25F, .bias_sigma = 1},
        {.conventions = {.s_at = ASC_S_BIASED}, .alibi_slope = 0.25F, .softcap = 2},
        {.conventions = {.s_at = ASC_S_CAPPED}, .bias_sigma = 1},
        {.conventions = {.u_phase = ASC_U_RESCALED}, .kv_splits = 2},
        {.conventions = {.u_phase = ASC_U_RESCALED}, .kv_splits = 2, .kv_deal = ASC_DEAL_ROUND_ROBIN},
        {.conventions = {.l_sink = ASC_SINK_START}, .kv_splits = 3, .has_sink = 1, .kv_deal = ASC_DEAL_ROUND_ROBIN},
        {.conventions = {.l_sink = ASC_SINK_START, .lse_base2 = 1}, .kv_splits = 4, .has_sink = 1, .bias_sigma = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int causal = ASC_CAUSAL_NONE; causal <= ASC_CAUSAL_BOTTOM_RIGHT; causal++) {
            struct spec s = {.q_len = 40, .kv_len = 27, .head_dim = 8, .br = 16, .bc = 8, .q_tile = 1};
            s.causal = (enum asc_causal)causal;
            s.conventions = cases[i].conventions;
            s.softcap = cases[i].softcap;
            s.alibi_slope = cases[i].alibi_slope;
            s.bias_sigma = cases[i].bias_sigma;
            s.has_sink = cases[i].has_sink;
            s.sink = 0.75F;
            s.kv_splits = cases[i].kv_splits;
            s.kv_deal = cases[i].kv_deal;
            s.p_dtype = DTYPE_F32;
            s.reversed = causal == ASC_CAUSAL_TOP_LEFT;
            s.seed = (unsigned)i;
            expect_right(&s);
        }
}

/* A row sum in lanes: one holds it all. */
static void lanes_of_a_sum(void **state)
{
    (void)state;
    const struct spec s = {.q_len = 4,
                           .kv_len = 6,
                           .head_dim = 4,
                           .br = 4,
                           .bc = 3,
                           .dtype = DTYPE_F32,
                           .o_dtype = DTYPE_F32,
                           .p_dtype = DTYPE_F32,
                           .conventions = {.l_lanes = 4}};
    struct kernel_run *run = kernel_run(&s);
    struct filled f = fill_reference(run);
    for (int kv = 0; kv < 2; kv++)
        for (int r = 0; r < 4; r++) {
            assert_true(element(&f, asc_l, kv, r, 0) >= 1);
            for (int lane = 1; lane < 4; lane++)
                assert_true(element(&f, asc_l, kv, r, lane) == 0);
        }
    filled_free(&f);
    kernel_run_free(run);
}

/* One small case by hand. */
static void it_is_attention(void **state)
{
    (void)state;
    const struct spec s = {.q_len = 4,
                           .kv_len = 7,
                           .head_dim = 4,
                           .br = 4,
                           .bc = 3,
                           .dtype = DTYPE_F32,
                           .o_dtype = DTYPE_F32,
                           .p_dtype = DTYPE_F32,
                           .reversed = 1,
                           .conventions = scaled,
                           .seed = 3};
    struct kernel_run *run = kernel_run(&s);
    struct filled f = fill_reference(run);
    const float *q = run->q, *k = run->k, *v = run->v;
    for (int r = 0; r < 4; r++) {
        double score[7], top = -INFINITY, after_first = 0, sum = 0, out = 0;
        for (int key = 6; key >= 0; key--) {
            score[key] = 0;
            for (int d = 0; d < 4; d++)
                score[key] += (double)q[4 * r + d] * (double)k[4 * key + d] * (double)run->scale;
            top = fmax(top, score[key]);
            if (key == 6)
                after_first = top; /* kv tile 2 holds key 6 alone, and comes first */
        }
        for (int key = 0; key < 7; key++) {
            sum += exp(score[key] - top);
            out += exp(score[key] - top) * (double)v[4 * key + 1];
        }
        assert_true(fabs(element(&f, asc_s, 1, r, 2) - score[5]) < 1e-6);
        assert_true(fabs(element(&f, asc_m, 2, r, 0) - after_first) < 1e-6);
        assert_true(fabs(element(&f, asc_m, 0, r, 0) - top) < 1e-6);
        assert_true(fabs(element(&f, asc_l, 2, r, 0) - 1) < 1e-6);
        assert_true(fabs(element(&f, asc_l, 0, r, 0) - sum) < 1e-5);
        assert_true(fabs(element(&f, asc_u, 0, r, 1) - out) < 1e-5);
        assert_true(fabs(element(&f, asc_o, 0, r, 1) - out / sum) < 1e-6);
        assert_true(fabs(element(&f, asc_lse, 0, r, 0) - (top + log(sum))) < 1e-6);
        assert_true(element(&f, asc_alpha, 2, r, 0) == 0);
    }
    filled_free(&f);
    kernel_run_free(run);
}

/* What the reference cannot say is left to the kernel. */
static void nan_inputs_are_left_alone(void **state)
{
    (void)state;
    const struct spec s = {.q_len = 4,
                           .kv_len = 6,
                           .head_dim = 4,
                           .br = 4,
                           .bc = 3,
                           .dtype = DTYPE_F32,
                           .o_dtype = DTYPE_F32,
                           .p_dtype = DTYPE_F32,
                           .conventions = scaled};
    struct kernel_run *run = kernel_run(&s);
    ((float *)run->k)[16] = NAN; /* key 4: kv tile 1, column 1 */
    struct filled f = fill_reference(run);
    const struct matrix *m = &f.captured[ASC_CHANNELS + asc_s];
    for (int r = 0; r < 4; r++)
        for (int col = 0; col < 3; col++)
            assert_int_equal(dtype_is_unwritten(m->dtype, m->data, (size_t)(r * m->row_stride + col)), col == 1);
    filled_free(&f);
    kernel_run_free(run);
}

int main(void)
{
    scratch = judge_scratch_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_calls_it_right),
        cmocka_unit_test(in_every_convention),
        cmocka_unit_test(lanes_of_a_sum),
        cmocka_unit_test(it_is_attention),
        cmocka_unit_test(nan_inputs_are_left_alone),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    judge_scratch_free(scratch);
    return failed;
}
