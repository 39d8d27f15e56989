/* Each declared convention: a kernel that keeps it is right, the same values under another declaration are not, and
   nothing unreal passes under any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/oracle/nonfinite/invariants.h"
#include "engine/oracle/schedule.h"
#include "engine/trace/conventions.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

#define SET(channel) (1u << asc_##channel)

/* A kernel that keeps a convention, and a declaration that it does not keep. */
struct case_of {
    const char *name;
    struct asc_conventions kept, wrong;
    float softcap;
    double exp_error, tanh_error;
    int causal, masked_first; /* masked_first: visits tiles that no row sees, the last one first */
    int empty;                /* a q tile with rows that see no key */
    int no_effect;            /* 1: these values cannot tell the two apart */
};

#define BASE .s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED
#define PLAIN                                                                                                          \
    {                                                                                                                  \
        BASE                                                                                                           \
    }

static const struct case_of cases[] = {
    {.name = "s_unit raw", .kept = {.m_unit = ASC_UNIT_SCALED}, .wrong = PLAIN},
    {.name = "s_unit log2", .kept = {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_SCALED}, .wrong = PLAIN},
    {.name = "m_unit log2", .kept = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_LOG2}, .wrong = PLAIN},
    {.name = "m_unit raw", .kept = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_RAW}, .wrong = PLAIN},
    {.name = "raw units with a soft cap", .kept = {0}, .wrong = {.s_unit = ASC_UNIT_SCALED}, .softcap = 2, .causal = 1},
    {.name = "s_at capped", .kept = {BASE, .s_at = ASC_S_CAPPED}, .wrong = PLAIN, .softcap = 2, .causal = 1},
    {.name = "s_at dot",
     .kept = {BASE, .s_at = ASC_S_DOT},
     .wrong = {BASE, .s_at = ASC_S_CAPPED},
     .softcap = 2,
     .causal = 1},
    {.name = "s_at dot, raw", .kept = {.s_at = ASC_S_DOT}, .wrong = {.s_at = ASC_S_CAPPED}, .softcap = 2},
    {.name = "s_at dot, no cap", .kept = {BASE, .s_at = ASC_S_DOT}, .wrong = PLAIN, .causal = 1},
    {.name = "s_masked value",
     .kept = {BASE, .s_masked = ASC_MASKED_VALUE, .s_masked_value = -1e4F},
     .wrong = PLAIN,
     .causal = 1},
    {.name = "s_masked value, masked tile first",
     .kept = {BASE, .s_masked = ASC_MASKED_VALUE, .s_masked_value = -1e4F},
     .wrong = {BASE, .s_masked = ASC_MASKED_VALUE, .s_masked_value = -1e3F},
     .causal = 1,
     .masked_first = 1},
    {.name = "s_masked value, empty rows",
     .kept = {BASE, .s_masked = ASC_MASKED_VALUE, .s_masked_value = -1e4F, .empty_row = ASC_EMPTY_COMPUTED},
     .wrong = {BASE, .s_masked = ASC_MASKED_VALUE, .s_masked_value = -1e4F},
     .causal = 1,
     .masked_first = 1,
     .empty = 1},
    {.name = "s_masked untouched", .kept = {BASE, .s_masked = ASC_MASKED_UNTOUCHED}, .wrong = PLAIN, .causal = 1},
    {.name = "q_fold scale", .kept = {BASE, .q_fold = ASC_FOLD_SCALE}, .wrong = PLAIN},
    {.name = "q_fold log2",
     .kept = {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .q_fold = ASC_FOLD_LOG2},
     .wrong = {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .q_fold = ASC_FOLD_SCALE}},
    {.name = "m lags", .kept = {BASE, .m_policy = ASC_M_LAGGING, .m_lag = 8}, .wrong = PLAIN},
    {.name = "m lags too far",
     .kept = {BASE, .m_policy = ASC_M_LAGGING, .m_lag = 8},
     .wrong = {BASE, .m_policy = ASC_M_LAGGING, .m_lag = 0.01F}},
    {.name = "m fixed", .kept = {BASE, .m_policy = ASC_M_FIXED}, .wrong = PLAIN, .causal = 1},
    {.name = "m_empty finite",
     .kept = {BASE, .m_empty = ASC_EMPTY_FINITE, .m_start = -1e30F},
     .wrong = PLAIN,
     .causal = 1,
     .masked_first = 1},
    {.name = "m_empty zero", .kept = {BASE, .m_empty = ASC_EMPTY_FINITE}, .wrong = PLAIN},
    {.name = "alpha_first one",
     .kept = {BASE, .alpha_first = ASC_ALPHA_ONE},
     .wrong = PLAIN,
     .causal = 1,
     .masked_first = 1},
    {.name = "alpha_first one, once",
     .kept = {BASE, .alpha_first = ASC_ALPHA_ONE_FIRST},
     .wrong = {BASE, .alpha_first = ASC_ALPHA_ONE},
     .causal = 1,
     .masked_first = 1},
    {.name = "alpha_first none",
     .kept = {BASE, .alpha_first = ASC_ALPHA_NONE_FIRST},
     .wrong = {BASE, .alpha_first = ASC_ALPHA_ONE_FIRST}},
    {.name = "alpha_first none, written",
     .kept = {BASE, .alpha_first = ASC_ALPHA_ONE_FIRST},
     .wrong = {BASE, .alpha_first = ASC_ALPHA_NONE_FIRST}},
    {.name = "p_rounded f16", .kept = {BASE, .p_rounded = ASC_P_F16}, .wrong = PLAIN},
    {.name = "p_rounded bf16",
     .kept = {BASE, .p_rounded = ASC_P_BF16},
     .wrong = {BASE, .p_rounded = ASC_P_F16},
     .causal = 1},
    {.name = "p_rounded e4m3",
     .kept = {BASE, .p_rounded = ASC_P_E4M3, .p_offset = 8},
     .wrong = {BASE, .p_rounded = ASC_P_E5M2, .p_offset = 8}},
    {.name = "p_rounded e5m2", .kept = {BASE, .p_rounded = ASC_P_E5M2}, .wrong = {BASE, .p_rounded = ASC_P_BF16}},
    {.name = "p_max tile", .kept = {BASE, .p_max = ASC_P_MAX_TILE}, .wrong = PLAIN},
    {.name = "p_max tile, rows without keys",
     .kept = {BASE, .p_max = ASC_P_MAX_TILE},
     .wrong = PLAIN,
     .causal = 1,
     .masked_first = 1},
    {.name = "u_norm per tile", .kept = {BASE, .u_norm = ASC_U_NORM_TILE}, .wrong = PLAIN},
    {.name = "FlashAttention-1",
     .kept = {BASE, .p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE},
     .wrong = {BASE, .u_norm = ASC_U_NORM_TILE},
     .causal = 1,
     .masked_first = 1},
    {.name = "running maximum where the tile's is declared",
     .kept = {BASE, .u_norm = ASC_U_NORM_TILE},
     .wrong = {BASE, .p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE},
     .causal = 1,
     .masked_first = 1},
    {.name = "p_offset", .kept = {BASE, .p_offset = 8}, .wrong = PLAIN},
    {.name = "p_offset below", .kept = {BASE, .p_offset = -3}, .wrong = {BASE, .p_offset = -2}},
    {.name = "p_factor", .kept = {BASE, .p_factor = 448}, .wrong = PLAIN},
    {.name = "p_factor e4m3",
     .kept = {BASE, .p_rounded = ASC_P_E4M3, .p_factor = 448},
     .wrong = {BASE, .p_rounded = ASC_P_E4M3, .p_offset = 8}},
    {.name = "p_factor off by 2^-11", .kept = {BASE, .p_factor = 448}, .wrong = {BASE, .p_factor = 448.21875F}},
    {.name = "l from rounded",
     .kept = {BASE, .p_rounded = ASC_P_F16, .l_from = ASC_L_ROUNDED},
     .wrong = {BASE, .p_rounded = ASC_P_F16}},
    {.name = "l in four lanes", .kept = {BASE, .l_lanes = 4}, .wrong = PLAIN, .no_effect = 1},
    {.name = "l in 32 lanes, u late",
     .kept = {BASE, .l_lanes = 32, .u_phase = ASC_U_RESCALED},
     .wrong = {BASE, .l_lanes = 32},
     .causal = 1,
     .masked_first = 1},
    {.name = "u after rescaling", .kept = {BASE, .u_phase = ASC_U_RESCALED}, .wrong = PLAIN},
    {.name = "lse base 2", .kept = {BASE, .lse_base2 = 1}, .wrong = PLAIN},
    {.name = "empty lse",
     .kept = {BASE, .empty_lse_negative = 1},
     .wrong = PLAIN,
     .causal = 1,
     .masked_first = 1,
     .empty = 1},
    {.name = "exp_error", .kept = {BASE, .exp_error = 8.8e-5F}, .wrong = PLAIN, .exp_error = 8e-5},
    {.name = "tanh_error", .kept = PLAIN, .wrong = {BASE, .tanh_error = 2.4e-7F}, .softcap = 2, .tanh_error = 0x1p-15},
    {.name = "tanh exact", .kept = {BASE, .tanh_error = 2.4e-7F}, .wrong = PLAIN, .softcap = 2, .no_effect = 1},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static struct spec spec_of(const struct case_of *c)
{
    struct spec s = {.q_len = 96, .kv_len = 116, .head_dim = 32, .br = 32, .bc = 32, .q_tile = 2, .p_dtype = DTYPE_F32};
    s.conventions = c->kept;
    s.softcap = c->softcap;
    s.exp_error = c->exp_error;
    s.tanh_error = c->tanh_error;
    if (c->causal)
        s.causal = ASC_CAUSAL_TOP_LEFT;
    s.reversed = s.visits_masked = c->masked_first;
    if (c->empty) {
        s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
        s.kv_len = 80;
        s.q_tile = 0;
    }
    return s;
}

static struct kernel_run *judged(const struct spec *s)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    return run;
}

static void expect_clean(const struct spec *s, const char *name)
{
    struct kernel_run *run = judged(s);
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        for (int global = 0; global < 2; global++) {
            const struct verdict *v = global ? &run->out[i].global : &run->out[i].local;
            /* alpha between two maxima of -1e30, and what stands on a fixed m that nobody recorded, may be any number.
             */
            const int recorded = run->captured[i].data != NULL;
            const int any = ch == asc_alpha || (s->conventions.m_policy == ASC_M_FIXED && s->unrecorded & 1u << asc_m);
            if ((v->judged || (any && v->unjudged > 0)) != recorded || verdict_bad(v) || !(v->worst_ratio <= 1))
                fail_msg("%s: %s of kv tile %d, %s: judged %d, bad %u of %u, error/bound %g at %d,%d; reversed %d "
                         "unrecorded %x",
                         name, channel_name(ch), i / ASC_CHANNELS, global ? "global" : "local", v->judged,
                         verdict_bad(v), verdict_bad(v) + v->count[CLASS_OK], (double)v->worst_ratio, v->worst_row,
                         v->worst_col, s->reversed, s->unrecorded);
        }
    }
    kernel_run_free(run);
}

static void kept_is_right(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        for (int fill = FILL_NORMAL; fill <= FILL_COMMON_MEAN; fill++) {
            struct spec s = spec_of(&cases[i]);
            s.fill = (enum fill)fill;
            s.summing = (enum summing)((i + fill) % 3);
            const int wide = fill == FILL_LARGE || fill == FILL_OUTLIERS;
            if (s.conventions.m_policy == ASC_M_FIXED && wide)
                continue; /* such weights leave f32 */
            /* A fixed maximum serves scores near it only; so does a start that m may not fall below. */
            if (s.conventions.m_policy == ASC_M_FIXED || s.conventions.m_empty == ASC_EMPTY_FINITE)
                s.scale = 0.05F;
            expect_clean(&s, cases[i].name);
            s.reversed ^= 1;
            expect_clean(&s, cases[i].name);
        }
    }
}

/* A declaration with an effect is told from one that is not kept. */
static void wrong_declarations_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct spec s = spec_of(&cases[i]);
        struct kernel_run *run = kernel_run(&s);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
        run->c.conventions = cases[i].wrong;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        const unsigned bad = bad_stages(run, 0) | bad_stages(run, 1);
        if ((bad == 0) != cases[i].no_effect)
            fail_msg("%s: under the other declaration %x is bad", cases[i].name, bad);
        kernel_run_free(run);
    }
}

/* Fields that the second convention sets replace those of the first. */
static struct asc_conventions both(const struct asc_conventions *a, const struct asc_conventions *b)
{
    struct asc_conventions sum = *a;
    const struct asc_conventions plain = PLAIN;
    for (int i = 0; i < CONVENTIONS; i++)
        if (convention_get(b, i) != convention_get(&plain, i))
            convention_set(&sum, i, convention_get(b, i));
    return sum;
}

/* Some cannot: a U that is divided after every tile is not rescaled later, a sentinel lies out of reach of a fixed
   frame, and weights in a frame that lags by 2^8 leave E4M3, and with m beginning at 0 a maximum of 0 would pass for a
   row without keys, whose alpha is 1. */
static int together(const struct case_of *a, const struct case_of *b)
{
    const struct asc_conventions sum = both(&a->kept, &b->kept);
    const int value = sum.s_masked == ASC_MASKED_VALUE;
    const int fixed = sum.m_policy == ASC_M_FIXED;
    const int lags = sum.m_policy == ASC_M_LAGGING;
    return !((sum.u_norm == ASC_U_NORM_TILE && sum.u_phase == ASC_U_RESCALED) || a->empty || b->empty ||
             ((lags || (sum.p_factor > 0 && sum.p_offset > 0)) && sum.p_rounded == ASC_P_E4M3) || (value && fixed) ||
             sum.exp_error > 0 || sum.tanh_error > 0 ||
             (sum.m_empty == ASC_EMPTY_FINITE && sum.alpha_first == ASC_ALPHA_ONE && sum.m_start == 0) ||
             (sum.m_empty == ASC_EMPTY_FINITE && (value || sum.m_unit == ASC_UNIT_RAW)));
}

static void pairs_are_right(void **state)
{
    (void)state;
    int pairs = 0;
    for (int i = 0; i < CASES; i++) {
        for (int j = 0; j < CASES; j++) {
            if (i == j || !together(&cases[i], &cases[j]))
                continue;
            struct spec s = spec_of(&cases[i]);
            const struct spec other = spec_of(&cases[j]);
            char name[128];
            s.conventions = both(&s.conventions, &other.conventions);
            s.softcap = fmaxf(s.softcap, other.softcap);
            s.reversed |= other.reversed;
            s.visits_masked |= other.visits_masked;
            if (other.causal)
                s.causal = other.causal;
            s.summing = (enum summing)((i + j) % 3);
            s.seed = (unsigned)(i * CASES + j);
            snprintf(name, sizeof name, "%s and %s", cases[i].name, cases[j].name);
            expect_clean(&s, name);
            pairs++;
        }
    }
    assert_in_range(pairs, 300, CASES * CASES);
}

/* Whatever is not recorded, expectations stand in. */
static void unrecorded(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        for (unsigned set = 1; set < 1u << ASC_CHANNELS; set += 131) {
            struct spec s = spec_of(&cases[i]);
            s.unrecorded = set;
            expect_clean(&s, cases[i].name);
        }
    }
}

/* Windows on either side, both or none, on both diagonals, with tiles masked on both sides and rows without a key. */
static void windows_and_caps(void **state)
{
    (void)state;
    const int widths[] = {-1, 0, 1, 7, 40, 1000};
    for (int left = 0; left < 6; left++) {
        for (int right = 0; right < 6; right++) {
            for (int causal = 0; causal < 3; causal++) {
                for (int tile = 0; tile < 5; tile++) {
                    struct spec s = {.q_len = 75, .kv_len = 61, .head_dim = 16, .br = 16, .bc = 8, .q_tile = tile};
                    s.conventions = (struct asc_conventions)PLAIN;
                    s.p_dtype = DTYPE_F32;
                    s.causal = (enum asc_causal)causal;
                    s.has_window = 1;
                    s.window_left = widths[left];
                    s.window_right = widths[right];
                    s.visits_masked = (left + right) % 2;
                    s.reversed = tile % 2;
                    s.softcap = causal == 1 ? 1.5F : 0;
                    expect_clean(&s, "window");
                }
            }
        }
    }
    struct spec s = {.q_len = 64, .kv_len = 64, .head_dim = 16, .br = 32, .bc = 16, .q_tile = 1, .p_dtype = DTYPE_F32};
    s.conventions = (struct asc_conventions)PLAIN;
    s.has_window = 1;
    s.window_left = 20;
    s.mistake = WINDOW_OFF_BY_ONE;
    struct kernel_run *run = judged(&s);
    assert_int_equal(bad_stages(run, 0), SET(s));
    assert_true((bad_stages(run, 1) & (SET(s) | SET(o))) == (SET(s) | SET(o)));
    kernel_run_free(run);
    s.mistake = SOFTCAP_FORGOTTEN;
    s.softcap = 0.25F;
    run = judged(&s);
    assert_int_equal(bad_stages(run, 0) & ~SET(p), SET(s));
    kernel_run_free(run);
}

/* Where m may lag, P has to stand on the m that is recorded all the same. */
static void a_left_frame_is_found(void **state)
{
    (void)state;
    for (int without = 0; without < 2; without++) {
        struct spec s = spec_of(&cases[0]);
        s.conventions = (struct asc_conventions){BASE, .m_policy = ASC_M_LAGGING, .m_lag = 8};
        s.mistake = M_LEFT_BEHIND;
        s.unrecorded = without ? SET(p) : 0;
        struct kernel_run *run = judged(&s);
        assert_int_equal(bad_stages(run, 0), without ? SET(l) | SET(u) : SET(p));
        assert_true(bad_stages(run, 1) & SET(o));
        kernel_run_free(run);
    }
}

static double unreal(int which)
{
    return which == 0 ? NAN : which == 1 ? INFINITY : which == 2 ? -INFINITY : 0;
}

/* NaN, both infinities and "never written" in any channel, under every convention. */
static void nothing_unreal_passes(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct spec s = spec_of(&cases[i]);
        if (cases[i].empty)
            continue;
        struct kernel_run *run = kernel_run(&s);
        for (int ch = 0; ch < ASC_CHANNELS; ch++) {
            for (int which = 0; which < 4; which++) {
                const struct matrix *m = &run->captured[ch];
                const size_t bytes = dtype_bytes(m->dtype);
                if (ch == asc_alpha && which == 3 && cases[i].kept.alpha_first == ASC_ALPHA_NONE_FIRST)
                    continue; /* it never is written there */
                /* The last row's first element: of the first tile, which every row sees. */
                char *at = (char *)run_array(run, (enum asc_channel)ch, 0) +
                           (size_t)((m->rows - 1) * m->row_stride + (which % 2 ? m->cols - 1 : 0)) * bytes;
                const uint32_t pattern = UNWRITTEN_32;
                char kept[8];
                memcpy(kept, at, bytes);
                if (which == 3)
                    memcpy(at, &pattern, bytes);
                else
                    dtype_store(m->dtype, at, 0, unreal(which));
                assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
                if (verdict_ok(&run->out[ch].local) || verdict_ok(&run->out[ch].global))
                    fail_msg("%s: value %d passes in %s, local %d global %d", cases[i].name, which,
                             channel_name((enum asc_channel)ch), verdict_ok(&run->out[ch].local),
                             verdict_ok(&run->out[ch].global));
                memcpy(at, kept, bytes);
            }
        }
        kernel_run_free(run);
    }
}

/* Lanes of l show their own values, and the class of their sum. */
static void lanes_in_detail(void **state)
{
    (void)state;
    struct spec s = spec_of(&cases[0]);
    s.conventions = (struct asc_conventions){BASE, .l_lanes = 4};
    struct kernel_run *run = kernel_run(&s);
    float *l = run_array(run, asc_l, 1);
    l[5 * 4 + 2] += 100;
    double room[5][128];
    uint8_t classes[2][128];
    struct tile_detail d = {.channel = asc_l,
                            .kv = 1,
                            .got = room[0],
                            .want_local = room[1],
                            .bound_local = room[2],
                            .want_global = room[3],
                            .bound_global = room[4],
                            .class_local = classes[0],
                            .class_global = classes[1]};
    assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
    assert_int_equal(d.rows, 32);
    assert_int_equal(d.cols, 4);
    for (int i = 0; i < 128; i++) {
        assert_true(room[0][i] == (double)l[i] && isnan(room[1][i]));
        assert_int_equal(classes[0][i], i / 4 == 5 ? CLASS_OFF : CLASS_OK);
        assert_int_equal(classes[1][i], i / 4 == 5 ? CLASS_OFF : CLASS_OK);
    }
    assert_int_equal(run->out[ASC_CHANNELS + asc_l].local.count[CLASS_OFF], 1);
    kernel_run_free(run);
}

/* Inputs so large that nothing is certain: o and lse still have finite bounds, and a correct kernel is still right. */
static void bounds_stay_finite(void **state)
{
    (void)state;
    const float scales[] = {1e-38F, 1e-45F, 1e-20F, 1, 1e4F, 1e30F};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        for (int unit = ASC_UNIT_RAW; unit <= ASC_UNIT_LOG2; unit++) {
            struct spec s = spec_of(&cases[0]);
            s.conventions = (struct asc_conventions){.s_unit = unit, .m_unit = unit};
            s.scale = scales[i];
            s.fill = FILL_LARGE;
            struct kernel_run *run = kernel_run(&s);
            struct tile_detail d = {0};
            assert_int_equal(tile_detail_make(&d, (size_t)32 * 32), 0);
            for (int lse = 0; lse < 2; lse++) {
                d.channel = lse ? asc_lse : asc_o;
                assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
                for (int e = 0; e < d.rows * d.cols; e++)
                    assert_true(isfinite(d.want_global[e]) && isfinite(d.bound_global[e]));
            }
            if (scales[i] < 1e20F && (bad_stages(run, 0) | bad_stages(run, 1)))
                fail_msg("scale %g, unit %d: local %x global %x", (double)scales[i], unit, bad_stages(run, 0),
                         bad_stages(run, 1));
            tile_detail_free(&d);
            kernel_run_free(run);
        }
    }
}

/* What is declared must be one of the choices. */
static void choices(void **state)
{
    (void)state;
    struct err err = {0};
    for (int i = 0; i < CONVENTIONS; i++) {
        struct asc_conventions c = {0};
        char name[32];
        assert_int_equal(conventions_check(&c, "here", &err), 0);
        convention_set(&c, i, conventions[i].high);
        assert_int_equal(conventions_check(&c, "here", &err), 0);
        if (conventions[i].kind == CONVENTION_REAL && conventions[i].high > 1e30) {
            convention_set(&c, i, INFINITY);
        } else {
            convention_set(&c, i, conventions[i].high + 1);
        }
        assert_int_equal(conventions_check(&c, "here", &err), -1);
        assert_int_equal(err.code, ERR_INPUT);
        assert_non_null(strstr(err.message, conventions[i].name));
        convention_set(&c, i, NAN);
        assert_int_equal(conventions_check(&c, "here", NULL), -1);
        int n = 0;
        for (convention_choice(i, n, name, sizeof name); name[0]; convention_choice(i, ++n, name, sizeof name))
            assert_int_equal(convention_from_choice(i, name), n);
        assert_int_equal(n, conventions[i].kind == CONVENTION_CHOICE ? (int)conventions[i].high + 1 : 0);
        assert_int_equal(convention_from_choice(i, "no such"), -1);
        assert_int_equal(convention_from_choice(i, ""), -1);
    }
}

/* The state of one row agrees with what is expected of a kernel, m, alpha and l, in odd orders too. */
static void row_state(void **state)
{
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++) {
        struct spec s = spec_of(&cases[0]);
        s.conventions = (struct asc_conventions){BASE};
        s.has_window = 1;
        s.window_left = 50;
        s.window_right = 3;
        s.softcap = 2;
        s.reversed = reversed;
        struct kernel_run *run = kernel_run(&s);
        double m[4], alpha[4], l[4];
        const int order[] = {run->order[0], -1, run->order[0], 99, run->order[1], run->order[1], run->order[2]};
        run->c.order = order;
        run->c.n_visited = 7;
        assert_int_equal(row_state_want(&run->c, 9, m, alpha, l), 0);
        for (int i = 0; i < run->c.n_visited; i++) {
            const int kv = order[i];
            if (kv < 0 || kv > 3)
                continue;
            assert_true(fabs(m[kv] - (double)((float *)run_array(run, asc_m, kv))[9]) < 1e-3);
            assert_true(fabs(alpha[kv] - (double)((float *)run_array(run, asc_alpha, kv))[9]) < 1e-3);
            assert_true(fabs(l[kv] - (double)((float *)run_array(run, asc_l, kv))[9]) < 1e-3 * l[kv]);
        }
        kernel_run_free(run);
    }
}

/* A U that is divided by l after every tile is not rescaled by the next one: no kernel means both. */
static void some_exclude_each_other(void **state)
{
    (void)state;
    struct asc_conventions c = {.u_norm = ASC_U_NORM_TILE};
    struct err err = {0};
    assert_int_equal(conventions_check(&c, "k", &err), 0);
    c.u_phase = ASC_U_RESCALED;
    assert_int_equal(conventions_check(&c, "k", &err), -1);
    assert_non_null(strstr(err.message, "exclude each other"));
    c.u_norm = ASC_U_NORM_END;
    assert_int_equal(conventions_check(&c, "k", &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_exclude_each_other), cmocka_unit_test(choices),
        cmocka_unit_test(kept_is_right),           cmocka_unit_test(wrong_declarations_are_found),
        cmocka_unit_test(pairs_are_right),         cmocka_unit_test(unrecorded),
        cmocka_unit_test(windows_and_caps),        cmocka_unit_test(a_left_frame_is_found),
        cmocka_unit_test(nothing_unreal_passes),   cmocka_unit_test(lanes_in_detail),
        cmocka_unit_test(bounds_stay_finite),      cmocka_unit_test(row_state),
    };
    return cmocka_run_group_tests_name("oracle: conventions", tests, scratch_begin, scratch_end);
}
