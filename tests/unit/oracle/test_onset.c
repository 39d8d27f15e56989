/* Where NaN and infinity begin: the test kernel makes each kind of root at a known place, or one value of a right run
   is put in the place of another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/nonfinite/onset.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

#define SET(channel) (1u << asc_##channel)

static const struct spec base = {.q_len = 64,
                                 .kv_len = 150,
                                 .head_dim = 64,
                                 .br = 64,
                                 .bc = 64,
                                 .p_dtype = DTYPE_F32,
                                 .conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED}};

/* Rows 0 to 23 see no key at all: 40 keys end at the bottom right corner of 64 rows. */
static struct spec empty_rows(void)
{
    struct spec s = base;
    s.kv_len = 40;
    s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    s.conventions.empty_lse_negative = 1;
    return s;
}

static struct onset onset_of(const struct kernel_run *run)
{
    struct onset found;
    assert_int_equal(onset_case(&run->c, scratch, &found), 0);
    return found;
}

static struct onset onset_of_spec(const struct spec *s)
{
    struct kernel_run *run = kernel_run(s);
    const struct onset found = onset_of(run);
    kernel_run_free(run);
    return found;
}

/* One value of a right run becomes another. */
static struct onset with_value(const struct spec *s, enum asc_channel ch, int kv, int row, int col, double value)
{
    struct kernel_run *run = kernel_run(s);
    const struct matrix *m = &run->captured[kv * ASC_CHANNELS + (int)ch];
    if (m->dtype == DTYPE_E4M3 && isnan(value))
        ((uint8_t *)run_array(run, ch, kv))[row * m->row_stride + col] = 0x7F;
    else
        dtype_store(m->dtype, run_array(run, ch, kv), (size_t)(row * m->row_stride + col), value);
    const struct onset found = onset_of(run);
    kernel_run_free(run);
    return found;
}

static void is_root(const struct onset_root *root, enum asc_channel ch, int kv, int row, int col,
                    enum nan_origin origin)
{
    if (root->channel != ch || root->kv != kv || root->row != row || root->col != col || root->origin != origin)
        fail_msg("found %s k%d [%d, %d] %s, wanted %s k%d [%d, %d] %s", channel_name(root->channel), root->kv,
                 root->row, root->col, origin_name(root->origin), channel_name(ch), kv, row, col, origin_name(origin));
}

static void exponential_without_a_guard(void **state)
{
    (void)state;
    struct spec s = empty_rows();
    s.wrong_number = EXP_UNGUARDED;
    const struct onset found = onset_of_spec(&s);
    /* alpha of 24 rows; P is made of s and m, which are right: 40 keys in each of them. */
    assert_int_equal(found.of_stage[asc_alpha], 24);
    assert_int_equal(found.of_stage[asc_p], 24 * 40);
    assert_int_equal(found.of_origin[ORIGIN_INF_MINUS_INF], 24 + 24 * 40);
    assert_int_equal(found.roots, 24 + 24 * 40);
    assert_int_equal(found.outputs, 24 * 64);
    assert_int_equal(found.n, 2 * ONSET_PER_STAGE);
    is_root(&found.first[0], asc_alpha, 0, 0, 0, ORIGIN_INF_MINUS_INF);
    assert_int_equal(found.first[0].members, 1);
    assert_true(found.first[0].operand[OPERAND_M] == -INFINITY && found.first[0].operand[OPERAND_M_PREV] == -INFINITY);
    is_root(&found.first[ONSET_PER_STAGE], asc_p, 0, 0, 0, ORIGIN_INF_MINUS_INF);
    assert_int_equal(found.first[ONSET_PER_STAGE].members, 40);
    for (int i = 0; i < found.n; i++) {
        assert_int_equal(found.first[i].reached, 64);
        assert_int_equal(found.first[i].reached_rows, 1);
        assert_int_equal(found.first[i].reached_row, found.first[i].row);
        assert_int_equal(found.first[i].last, asc_o);
    }
}

static void empty_rows_are_no_onset(void **state)
{
    (void)state;
    struct spec s = empty_rows();
    for (int i = 0; i < 8; i++) {
        s.visits_masked = i & 1;
        s.conventions.alpha_first = i & 2 ? ASC_ALPHA_ONE : ASC_ALPHA_ZERO;
        s.kv_splits = i & 4 ? 2 : 0;
        s.kv_deal = i & 1 ? ASC_DEAL_ROUND_ROBIN : ASC_DEAL_RANGES;
        s.bc = i & 4 ? 16 : 64;
        assert_int_equal(onset_of_spec(&s).roots, 0);
    }
}

static void ends_without_a_guard(void **state)
{
    (void)state;
    struct spec s = empty_rows();
    s.wrong_number = O_UNGUARDED;
    struct onset found = onset_of_spec(&s);
    assert_int_equal(found.roots, 24 * 64);
    assert_int_equal(found.outputs, 24 * 64);
    is_root(&found.first[1], asc_o, 0, 1, 0, ORIGIN_QUOTIENT);
    assert_int_equal(found.first[1].members, 64);
    assert_int_equal(found.first[1].reached, 64);
    s.wrong_number = LOG_UNGUARDED;
    s.conventions.empty_lse_negative = 0;
    found = onset_of_spec(&s);
    assert_int_equal(found.roots, 24);
    is_root(&found.first[0], asc_lse, 0, 0, 0, ORIGIN_LOG);
    assert_int_equal(found.first[0].reached, 0);
    s = empty_rows();
    s.kv_splits = 2;
    s.bc = 16;
    s.merges_lse = 1;
    s.wrong_term = SPLIT_UNGUARDED;
    found = onset_of_spec(&s);
    assert_true(found.of_origin[ORIGIN_MERGE_EMPTY] >= (uint64_t)24 * 64 &&
                found.roots == found.of_origin[ORIGIN_MERGE_EMPTY]);
    is_root(&found.first[0], asc_o, 0, 0, 0, ORIGIN_MERGE_EMPTY);
}

static void inputs_that_are_no_numbers(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        struct spec s = base;
        s.wrong_number = INPUT_UNREAL;
        s.unrecorded = recorded ? 0 : SET(q) | SET(k) | SET(v);
        s.unreal_bits = 0x7E00;
        s.unreal_of = asc_q;
        s.unreal_row = 9;
        s.unreal_col = 5;
        struct onset found = onset_of_spec(&s);
        /* fmaxf drops every score of the row, which then looks like one without any key: its output is 0. */
        assert_int_equal(found.roots, 1);
        is_root(&found.first[0], asc_q, 0, 9, 5, ORIGIN_INPUT);
        assert_int_equal(found.first[0].reached, 0);
        assert_int_equal(found.first[0].last, asc_lse);
        s.conventions.max_nan = ASC_MAX_PROPAGATES;
        found = onset_of_spec(&s);
        assert_int_equal(found.roots, 1);
        is_root(&found.first[0], asc_q, 0, 9, 5, ORIGIN_INPUT);
        assert_int_equal(found.first[0].reached, 64);
        s.conventions.max_nan = ASC_MAX_DROPS;
        assert_int_equal(found.first[0].from_input, !recorded);
        /* fmaxf drops the NaN of key 70, exp(NaN - m) does not: all rows from kv tile 1 on. */
        s.unreal_of = asc_k;
        s.unreal_row = 70;
        found = onset_of_spec(&s);
        assert_int_equal(found.roots, 1);
        is_root(&found.first[0], asc_k, 1, 6, 5, ORIGIN_INPUT);
        assert_int_equal(found.first[0].reached, 64 * 64);
        assert_int_equal(found.first[0].reached_rows, 64);
        assert_int_equal(found.outputs, 64 * 64);
        s.unreal_of = asc_v;
        s.unreal_bits = 0x7C00;
        found = onset_of_spec(&s);
        assert_int_equal(found.roots, 1);
        is_root(&found.first[0], asc_v, 1, 6, 5, ORIGIN_INPUT);
        assert_int_equal(found.first[0].reached, 64); /* column 5 of every row */
        assert_int_equal(found.first[0].reached_col, 5);
    }
}

static void codes_of_nan(void **state)
{
    (void)state;
    struct spec s = base;
    s.dtype = DTYPE_E4M3;
    s.o_dtype = DTYPE_F32;
    s.coded = 1;
    s.wrong_number = INPUT_UNREAL;
    s.unreal_of = asc_k;
    s.unreal_row = 3;
    s.unreal_col = 8;
    s.unreal_bits = 0xFF;
    const struct onset found = onset_of_spec(&s);
    assert_int_equal(found.roots, 1);
    is_root(&found.first[0], asc_k, 0, 3, 8, ORIGIN_FP8_CODE);
    assert_int_equal(found.first[0].reached, 64 * 64);
}

static void scale_of_a_group_of_zeros(void **state)
{
    (void)state;
    struct spec s = base;
    s.conventions.quantized = ASC_QUANTIZED_E4M3;
    s.wrong_codes = ZERO_GROUP_UNGUARDED;
    s.wrong_operand = asc_k;
    s.zero_rows = 150;
    const struct onset found = onset_of_spec(&s);
    assert_int_equal(found.roots, 150 * 64);
    assert_int_equal(found.of_origin[ORIGIN_QUOTIENT], found.roots);
    is_root(&found.first[0], asc_k, 0, 0, 0, ORIGIN_QUOTIENT);
    assert_int_equal(found.first[0].members, 64);
}

static void memory_that_nobody_wrote(void **state)
{
    (void)state;
    struct spec s = base;
    s.wrong_number = L_NEVER_ZEROED;
    s.unreal_row = 7;
    const struct onset found = onset_of_spec(&s);
    assert_int_equal(found.roots, 1);
    is_root(&found.first[0], asc_l, 0, 7, 0, ORIGIN_UNWRITTEN);
    assert_int_equal(found.first[0].reached, 64);
    assert_int_equal(found.outputs, 64);
}

static void padding_of_v(void **state)
{
    (void)state;
    struct spec s = base;
    s.v_padding_nan = 1;
    const struct onset found = onset_of_spec(&s);
    assert_int_equal(found.roots, 64 * 64);
    is_root(&found.first[0], asc_u, 2, 0, 0, ORIGIN_ZERO_TIMES_INF);
    assert_int_equal(found.first[0].product[0].index, 150 - 2 * 64);
    s.skips_padding = 1;
    assert_int_equal(onset_of_spec(&s).roots, 0);
}

/* A frame that stays where it is lets weights leave f16, e4m3 and f32. */
static void weights_leave_their_range(void **state)
{
    (void)state;
    struct spec s = base;
    s.conventions.m_policy = ASC_M_FIXED;
    s.scale = 1.5f;
    s.conventions.p_rounded = ASC_P_F16;
    struct onset found = onset_of_spec(&s);
    assert_true(found.roots > 0);
    assert_int_equal(found.of_origin[ORIGIN_F16_OVERFLOW], found.roots);
    assert_int_equal(found.of_stage[asc_u], found.roots);
    assert_true(found.first[0].operand[OPERAND_P] >= 65520);
    assert_true(found.first[0].reached > 0);
    s.conventions.p_rounded = 0;
    s.p_dtype = DTYPE_F16;
    found = onset_of_spec(&s);
    assert_true(found.roots > 0);
    assert_int_equal(found.of_origin[ORIGIN_F16_OVERFLOW], found.roots);
    assert_int_equal(found.of_stage[asc_p], found.roots);
}

static void values_at_the_edge_of_a_rule(void **state)
{
    (void)state;
    static const struct {
        enum dtype t;
        double below, above;
        enum nan_origin origin;
    } edges[] = {{DTYPE_F16, 65519.99, 65520, ORIGIN_F16_OVERFLOW},
                 {DTYPE_E4M3, 464, 464.01, ORIGIN_E4M3_OVERFLOW},
                 {DTYPE_E5M2, 61439.9, 61440, ORIGIN_E5M2_OVERFLOW},
                 {DTYPE_BF16, 0x1.FEFFp127, 0x1.FFp127, ORIGIN_BF16_OVERFLOW},
                 {DTYPE_F32, 0x1.FFFFFEp127, 0x1.FFFFFFp127, ORIGIN_F32_OVERFLOW}};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        assert_int_equal(origin_of_conversion(edges[i].t, edges[i].below), ORIGIN_UNKNOWN);
        assert_int_equal(origin_of_conversion(edges[i].t, -edges[i].above), edges[i].origin);
    }
    /* exp overflows at ln(FLT_MAX) = 88.7228: alpha from a step of m, of either size. */
    for (int above = 0; above < 2; above++) {
        struct kernel_run *run = kernel_run(&base);
        float *before = run_array(run, asc_m, 0), *m = run_array(run, asc_m, 1), *alpha = run_array(run, asc_alpha, 1);
        before[4] = m[4] + (above ? 88.73f : 88.71f);
        alpha[4] = INFINITY;
        const struct onset found = onset_of(run);
        assert_int_equal(found.of_stage[asc_alpha], 1);
        assert_int_equal(found.of_origin[above ? ORIGIN_EXP_OVERFLOW : ORIGIN_UNKNOWN], 1);
        kernel_run_free(run);
    }
}

static void single_values(void **state)
{
    (void)state;
    struct onset found = with_value(&base, asc_s, 1, 3, 2, NAN);
    is_root(&found.first[0], asc_s, 1, 3, 2, ORIGIN_UNKNOWN); /* honestly */
    assert_int_equal(found.roots, 1);
    assert_int_equal(found.first[0].reached, 0);
    assert_int_equal(found.first[0].last, asc_s); /* swallowed: P, captured, is finite */
    assert_int_equal(found.first[0].n_products, ONSET_PRODUCTS);
    const struct onset_product *p = found.first[0].product;
    for (int i = 1; i < ONSET_PRODUCTS; i++)
        assert_true(fabs(p[i - 1].a * p[i - 1].b) >= fabs(p[i].a * p[i].b));
    found = with_value(&base, asc_s, 1, 3, 2, -INFINITY);
    is_root(&found.first[0], asc_s, 1, 3, 2, ORIGIN_MASKED);
    found = with_value(&base, asc_m, 1, 3, 0, NAN);
    is_root(&found.first[0], asc_m, 1, 3, 0, ORIGIN_UNKNOWN);
    found = with_value(&base, asc_l, 2, 3, 0, INFINITY);
    is_root(&found.first[0], asc_l, 2, 3, 0, ORIGIN_UNKNOWN);
    found = with_value(&base, asc_u, 0, 3, 9, NAN);
    is_root(&found.first[0], asc_u, 0, 3, 9, ORIGIN_UNKNOWN);

    struct spec s = base; /* a masked score times a negative scale */
    s.causal = ASC_CAUSAL_TOP_LEFT;
    s.visits_masked = 1;
    s.scale = -0.125f;
    found = with_value(&s, asc_s, 0, 3, 10, INFINITY);
    is_root(&found.first[0], asc_s, 0, 3, 10, ORIGIN_INF_TIMES);

    s = base; /* 64 products of 0.5 * 0.5 times a scale are 16 of it */
    s.fill = FILL_CONSTANT;
    s.scale = 5000;
    s.conventions.acc_s = ASC_ACC_F32;
    found = with_value(&s, asc_o, 0, 3, 10, INFINITY);
    is_root(&found.first[0], asc_o, 0, 3, 10, ORIGIN_UNKNOWN);
    assert_int_equal(found.first[0].reached, 1);
}

/* O is infinite where a sum that is no 0 is divided by 0, or multiplied by a reciprocal that f32 has not: 1 / 2^-128 is
   the first power beyond it. */
static void divisions(void **state)
{
    (void)state;
    static const struct {
        double l;
        int divides;
    } edges[] = {{0, 1}, {0x1p-128, 1}, {0x1p-127, 0}};
    const int last = 2; /* kv tile */
    for (size_t i = 0; i < 3; i++) {
        struct kernel_run *run = kernel_run(&base);
        const struct matrix *o = &run->captured[asc_o];
        ((float *)run_array(run, asc_l, last))[3] = (float)edges[i].l;
        dtype_store(o->dtype, run_array(run, asc_o, 0), (size_t)(3 * o->row_stride + 10), INFINITY);
        const struct onset found = onset_of(run);
        assert_int_equal(found.n, 1);
        assert_int_equal(found.first[0].channel, asc_o);
        assert_int_equal(found.first[0].origin == ORIGIN_DIVISION, edges[i].divides);
        kernel_run_free(run);
    }
}

/* The chain names every stage that it went through, and what the mask left of the row. */
static void chains(void **state)
{
    (void)state;
    struct spec s = empty_rows();
    s.wrong_number = EXP_UNGUARDED;
    struct onset found = onset_of_spec(&s);
    const struct onset_root *root = &found.first[0];
    assert_int_equal(root->channel, asc_alpha);
    assert_int_equal(root->keys, 0);
    assert_int_equal(root->keys_so_far, 0);
    assert_int_equal(root->chain[asc_alpha].elements, 1);
    assert_int_equal(root->chain[asc_l].elements, 1);
    assert_int_equal(root->chain[asc_u].elements, 64);
    assert_int_equal(root->chain[asc_o].elements, root->reached);
    assert_int_equal(root->chain[asc_s].elements, 0);

    found = with_value(&base, asc_u, 1, 3, 9, NAN); /* captured: what follows is finite, and one element is its own */
    root = &found.first[0];
    assert_int_equal(root->keys, 64);
    assert_int_equal(root->keys_so_far, 128);
    assert_int_equal(root->chain[asc_u].elements, 1);
    assert_int_equal(root->chain[asc_u].first_kv, 1);
    assert_int_equal(root->chain[asc_u].last_kv, 1);
    assert_int_equal(root->chain[asc_o].elements, 0);
}

/* Sums that leave f16: values of Q and K of 64 at head_dim 64 make 64 * 4096. */
static void sums_leave_f16(void **state)
{
    (void)state;
    struct spec s = base;
    s.fill = FILL_CONSTANT;
    s.wrong_number = INPUT_UNREAL; /* one product of 0.5 * 60000, its neighbors 0.25 */
    s.unreal_of = asc_k;
    s.unreal_row = 5;
    s.unreal_bits = 0x7B53; /* 60000 */
    s.scale = 1e-3f;
    struct onset found = with_value(&s, asc_s, 0, 3, 5, INFINITY);
    is_root(&found.first[0], asc_s, 0, 3, 5, ORIGIN_UNKNOWN); /* 30000 and 16 stay within f16 */
    s.fill = FILL_LARGE;
    s.scale = 1e-6f;
    s.unreal_bits = 0x7BFF;
    struct kernel_run *run = kernel_run(&s);
    int overflows = 0;
    for (int r = 0; r < 64; r++) {
        double up = 0, down = 0;
        for (int d = 0; d < 64; d++) {
            const double x = (double)run_input(run, asc_q, (size_t)r * 64 + (size_t)d) *
                             (double)run_input(run, asc_k, (size_t)5 * 64 + (size_t)d);
            up += fmax(x, 0);
            down += fmax(-x, 0);
        }
        const int beyond = fmax(up, down) >= 65520;
        overflows += beyond;
        ((float *)run_array(run, asc_s, 0))[r * 64 + 5] = INFINITY;
        run->c.conventions.acc_s = ASC_ACC_MMA_F16_F16;
        found = onset_of(run);
        assert_int_equal(found.first[0].origin, beyond ? ORIGIN_F16_ACCUMULATOR : ORIGIN_UNKNOWN);
        /* An accumulator that is declared f32, and whose other numbers are none of f16, is none. */
        run->c.conventions.acc_s = ASC_ACC_F32;
        found = onset_of(run);
        assert_int_equal(found.first[0].origin, ORIGIN_UNKNOWN);
        ((float *)run_array(run, asc_s, 0))[r * 64 + 5] = 0;
    }
    assert_true(overflows > 16 && overflows < 64);
    /* Where all of them are, it is one whatever was declared; 15 do not tell. */
    float *scores = (float *)run_array(run, asc_s, 0);
    const int n = 64 * 64;
    for (int numbers = 15; numbers <= 16; numbers++) {
        int overflown = -1;
        for (int i = 0; i < n; i++)
            scores[i] = i < numbers ? 1.5f : 0.0f;
        for (int r = 1; r < 64 && overflown < 0; r++) {
            scores[r * 64 + 5] = INFINITY;
            found = onset_of(run);
            overflown = found.first[0].origin == ORIGIN_F16_ACCUMULATOR ? r : -1;
            scores[r * 64 + 5] = 0;
        }
        assert_int_equal(overflown >= 0, numbers == 16);
    }
    kernel_run_free(run);
}

/* What a probe did not record passes on what its operands are: it is no root, nor hides one. */
static void unrecorded_stages(void **state)
{
    (void)state;
    const unsigned unrecorded[] = {SET(m),
                                   SET(alpha),
                                   SET(p),
                                   SET(l) | SET(m),
                                   SET(s) | SET(p),
                                   SET(u),
                                   SET(m) | SET(alpha) | SET(p) | SET(l) | SET(u)};
    for (size_t i = 0; i < sizeof unrecorded / sizeof unrecorded[0]; i++) {
        struct spec s = base;
        s.unrecorded = unrecorded[i];
        s.wrong_number = INPUT_UNREAL;
        s.unreal_bits = 0x7E00;
        s.unreal_of = asc_q;
        s.unreal_row = 9;
        s.conventions.max_nan = ASC_MAX_PROPAGATES;
        const struct onset found = onset_of_spec(&s);
        assert_int_equal(found.roots, 1);
        is_root(&found.first[0], asc_q, 0, 9, 0, ORIGIN_INPUT);
        assert_int_equal(found.first[0].reached, 64);
    }
}

/* Whatever a right kernel may do, nothing begins there. */
static void right_runs_have_no_onset(void **state)
{
    (void)state;
    static const struct asc_conventions kernels[] = {
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED},
        {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_RAW, .p_rounded = ASC_P_F16, .s_masked = ASC_MASKED_UNTOUCHED},
        {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .q_fold = ASC_FOLD_LOG2, .u_phase = ASC_U_RESCALED},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_rounded = ASC_P_E4M3, .p_offset = 8, .l_lanes = 4},
        {.m_policy = ASC_M_LAGGING, .m_lag = 8, .m_empty = ASC_EMPTY_FINITE, .m_start = -1e30F},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .l_sink = ASC_SINK_START, .alpha_first = ASC_ALPHA_ONE},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE},
    };
    enum { KERNELS = sizeof kernels / sizeof kernels[0] };
    static const enum fill fills[] = {FILL_NORMAL, FILL_OUTLIERS, FILL_LARGE, FILL_ZEROS, FILL_COMMON_MEAN};
    for (int i = 0; i < 60 * KERNELS; i++) {
        struct spec s = base;
        s.q_len = 30 + i % 7;
        s.kv_len = 20 + 13 * (i % 5);
        s.br = 16;
        s.bc = 16;
        s.q_tile = i % 2;
        s.head_dim = 32;
        s.causal = (enum asc_causal)(i % 3);
        s.fill = fills[i % 5];
        s.conventions = kernels[i % KERNELS];
        s.has_sink = s.conventions.l_sink != ASC_SINK_NONE;
        s.kv_splits = i % 4 == 3 ? 2 : 0;
        s.kv_deal = i % 8 == 7 ? ASC_DEAL_ROUND_ROBIN : ASC_DEAL_RANGES;
        s.visits_masked = i % 4 < 2;
        s.has_window = i % 9 == 0;
        s.window_left = 5;
        s.window_right = 3;
        s.unrecorded = i % 11 == 0 ? SET(m) | SET(p) : i % 13 == 0 ? SET(s) | SET(l) : 0;
        s.scale = i % 5 == 2 ? 8 : 0;
        s.seed = (unsigned)i;
        const struct onset found = onset_of_spec(&s);
        if (found.roots)
            fail_msg("run %d: %s at %s", i, origin_name(found.first[0].origin), channel_name(found.first[0].channel));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_without_a_guard),
        cmocka_unit_test(empty_rows_are_no_onset),
        cmocka_unit_test(ends_without_a_guard),
        cmocka_unit_test(inputs_that_are_no_numbers),
        cmocka_unit_test(codes_of_nan),
        cmocka_unit_test(scale_of_a_group_of_zeros),
        cmocka_unit_test(memory_that_nobody_wrote),
        cmocka_unit_test(padding_of_v),
        cmocka_unit_test(weights_leave_their_range),
        cmocka_unit_test(values_at_the_edge_of_a_rule),
        cmocka_unit_test(single_values),
        cmocka_unit_test(divisions),
        cmocka_unit_test(chains),
        cmocka_unit_test(sums_leave_f16),
        cmocka_unit_test(unrecorded_stages),
        cmocka_unit_test(right_runs_have_no_onset),
    };
    return cmocka_run_group_tests_name("oracle: onset", tests, scratch_begin, scratch_end);
}
