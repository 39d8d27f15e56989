/* Inputs that are codes, given or made by the launch: correct kernels of every convention raise nothing, and use a good
   part of their bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/oracle/fingerprint.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

#define SET(channel) (1u << asc_##channel)

enum { GIVEN, QUANTISED };
static const enum dtype types[] = {DTYPE_U8, DTYPE_E4M3, DTYPE_E5M2};
static const int rows[] = {0, 64, 16};

enum { TIMES = 4 };

static int draw(uint64_t *state, int n)
{
    return (int)(test_random(state) % (uint64_t)n);
}

static struct spec base(void)
{
    return (struct spec){
        .q_len = 80, .kv_len = 150, .head_dim = 32, .br = 32, .bc = 32, .q_tile = 1, .p_dtype = DTYPE_F32};
}

static const char *refused(const struct spec *s)
{
    const struct asc_problem problem = {.q_len = s->q_len,
                                        .kv_len = s->kv_len,
                                        .scale_rows = s->scale_rows,
                                        .dtype = s->dtype,
                                        .k_dtype = s->dtype,
                                        .v_dtype = s->dtype};
    return codes_refused(&problem, &(struct asc_plan){.br = s->br, .bc = s->bc}, &s->conventions);
}

/* One kernel of many; i counts through all that are tried, what else differs is drawn. 0: this one is refused. */
static int choose(struct spec *s, int i)
{
    const int way = i % 2, type = i / 2 % 3, qk = i / 6 % 3, v = i / 18 % 3, share = i / 54 % 3;
    uint64_t state = (uint64_t)i;
    static const enum fill fills[] = {FILL_NORMAL, FILL_OUTLIERS, FILL_LARGE, FILL_POSITIVE, FILL_COMMON_MEAN};
    static const int rounded[] = {ASC_P_AS_RECORDED, ASC_P_F16, ASC_P_E4M3};
    *s = base();
    struct asc_conventions *c = &s->conventions;
    s->dtype = way == GIVEN ? types[type] : DTYPE_F16;
    s->coded = way == GIVEN;
    c->quantized = way == GIVEN ? ASC_QUANTIZED_GIVEN : ASC_QUANTIZED_U8 + type;
    c->quantized_by = draw(&state, 2);
    *(way == GIVEN ? &s->scale_rows : &c->quantized_rows) = rows[share];
    c->qk_descale = qk;
    c->v_descale = v;
    c->s_unit = c->m_unit = qk == ASC_QK_FOLDED ? ASC_UNIT_RAW : draw(&state, 3);
    c->p_rounded = rounded[draw(&state, 3)];
    c->p_offset = c->p_rounded == ASC_P_E4M3 ? 8 : 0;
    c->l_from = draw(&state, 2);
    c->l_lanes = draw(&state, 4) ? 0 : 4;
    s->o_dtype = draw(&state, 2) ? DTYPE_F16 : DTYPE_F32;
    s->causal = (enum asc_causal)draw(&state, 3);
    s->fill = fills[draw(&state, 5)];
    s->zero_rows = draw(&state, 7) ? 0 : 64;
    s->scales_late = draw(&state, 2);
    s->reversed = draw(&state, 4) == 0;
    s->seed = (unsigned)i;
    return !refused(s);
}

static float used[2][ASC_CHANNELS];

static void judge(const struct spec *s, const char *what)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const struct verdict *v[2] = {&run->out[i].local, &run->out[i].global};
        for (int side = 0; side < 2; side++) {
            if (verdict_bad(v[side]))
                fail_msg("%s: seed %u, %s, quantized %d, qk %d, v %d, rows %d: %s of tile %d, %s: %u bad, %g at %d, %d",
                         what, s->seed, dtype_name(s->dtype), s->conventions.quantized, s->conventions.qk_descale,
                         s->conventions.v_descale, s->scale_rows + s->conventions.quantized_rows,
                         channel_name((enum asc_channel)(i % ASC_CHANNELS)), i / ASC_CHANNELS,
                         side ? "global" : "local", verdict_bad(v[side]), (double)v[side]->worst_ratio,
                         v[side]->worst_row, v[side]->worst_col);
            used[side][i % ASC_CHANNELS] = fmaxf(used[side][i % ASC_CHANNELS], v[side]->worst_ratio);
        }
    }
    kernel_run_free(run);
}

typedef void per_kernel(struct spec *s, int i);

static int for_all(per_kernel *f)
{
    int n = 0;
    for (int i = 0; i < 2 * 3 * 3 * 3 * 3 * TIMES; i++) {
        struct spec s;
        if (!choose(&s, i))
            continue;
        f(&s, i);
        n++;
    }
    return n;
}

static void in_f32(struct spec *s, int i)
{
    (void)i;
    judge(s, "f32");
}

static void correct_kernels(void **state)
{
    (void)state;
    const int n = for_all(in_f32);
    print_message("# %d kernels\n", n);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        print_message("# %-5s largest error/bound: local %.3f global %.3f\n", channel_name((enum asc_channel)ch),
                      (double)used[0][ch], (double)used[1][ch]);
    assert_true(n > 100);
    for (int ch = asc_s; ch < ASC_CHANNELS; ch++)
        assert_true(used[1][ch] > 0.01f && (used[0][ch] > 0.1f || ch == asc_m));
}

/* Without a channel the next one's bound makes up for it: conversions that no probe sees are allowed for. */
static void without_a_channel(struct spec *s, int i)
{
    static const unsigned sets[] = {SET(q), SET(k), SET(v), SET(q) | SET(k) | SET(v),
                                    SET(s), SET(p), SET(u), SET(m) | SET(alpha)};
    s->unrecorded = sets[i / 7 % 8];
    judge(s, "unrecorded");
}

static void unrecorded(void **state)
{
    (void)state;
    assert_true(for_all(without_a_channel) > 100);
}

static void more_conventions(struct spec *s, int i)
{
    switch (i / 7 % 6) {
    case 0:
        s->has_sink = 1;
        s->sink = 0.5f;
        s->conventions.l_sink = ASC_SINK_START + i / 35 % 3;
        break;
    case 1:
        s->alibi_slope = 0.05f;
        s->conventions.s_at = i / 35 % 2 ? ASC_S_CAPPED : ASC_S_MASKED;
        break;
    case 2:
        s->softcap = 5;
        s->conventions.s_at = i / 35 % 2 ? ASC_S_DOT : ASC_S_MASKED;
        break;
    case 3:
        s->kv_splits = 3;
        s->merges_lse = i / 35 % 2;
        break;
    case 4:
        s->conventions.p_max = ASC_P_MAX_TILE;
        s->conventions.u_norm = i / 35 % 2 ? ASC_U_NORM_TILE : ASC_U_NORM_END;
        break;
    default:
        s->conventions.u_phase = ASC_U_RESCALED;
        s->converts = s->conventions.qk_descale != ASC_QK_OPERANDS;
        s->used = DTYPE_F16;
        break;
    }
    judge(s, "more");
}

static void with_other_conventions(void **state)
{
    (void)state;
    assert_true(for_all(more_conventions) > 100);
}

/* Products of tensor cores: of values in f16, of codes in e4m3, and of u8 codes, which f16 holds. */
static void on_tensor_cores(struct spec *s, int i)
{
    const int type = s->conventions.quantized ? (int)codes_type(s->conventions.quantized) : (int)s->dtype;
    const int raw_s = s->conventions.qk_descale != ASC_QK_OPERANDS, raw_u = s->conventions.v_descale != ASC_V_OPERANDS;
    const int wants_f16 = type == DTYPE_U8 || !raw_s;
    /* The test kernel has one core for both products. */
    if (type == DTYPE_E5M2 || raw_s != raw_u)
        return;
    s->core = 1 + (int)(wants_f16 ? TENSOR_CORE_H100 : TENSOR_CORE_MMA_E4M3);
    s->conventions.acc_s = s->conventions.acc_u = wants_f16 ? ASC_ACC_MMA_F16 : ASC_ACC_MMA_E4M3;
    s->conventions.p_rounded = wants_f16 ? ASC_P_F16 : ASC_P_E4M3;
    s->conventions.p_offset = wants_f16 ? 0 : 8;
    s->join = i % 3;
    s->conventions.p_max = i / 3 % 4 == 1 ? ASC_P_MAX_TILE : ASC_P_MAX_RUNNING;
    s->conventions.u_norm = i / 3 % 4 == 2 ? ASC_U_NORM_TILE : ASC_U_NORM_END;
    judge(s, "tensor cores");
}

static void with_tensor_cores(void **state)
{
    (void)state;
    assert_true(for_all(on_tensor_cores) > 100);
}

/* Where S is the product of codes, with their scales or without, it is asked for bit by bit, and so is U of V's codes;
   a rounding of S that the bound lets pass is found. */
static void bits_of_folded_products(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct spec s = base();
        const bool late = i > 0;
        s.join = i > 0 ? i - 1 : 0;
        s.dtype = DTYPE_E4M3;
        s.coded = 1;
        s.kv_len = 256;
        s.conventions.qk_descale = late ? ASC_QK_PRODUCT : ASC_QK_FOLDED;
        s.conventions.v_descale = late ? ASC_V_PRODUCT : ASC_V_OUTPUT;
        s.conventions.acc_s = s.conventions.acc_u = ASC_ACC_MMA_E4M3;
        s.conventions.p_rounded = ASC_P_E4M3;
        s.conventions.p_offset = 8;
        s.core = 1 + (int)TENSOR_CORE_MMA_E4M3;
        struct kernel_run *run = kernel_run(&s);
        struct fingerprint f = {0};
        assert_int_equal(fingerprint_add(&f, &run->c, scratch, 0, FINGERPRINT_BLOCKS), 0);
        const uint32_t model = 1u << TENSOR_CORE_MMA_E4M3;
        assert_int_equal(fingerprint_models(&f.s), model);
        assert_int_equal(fingerprint_models(&f.u), model);
        run->c.fingerprint = &f;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
        assert_int_equal(run->out[asc_s].local.exact, 1 + TENSOR_CORE_MMA_E4M3);
        assert_int_equal(run->out[asc_u].local.exact, 1 + TENSOR_CORE_MMA_E4M3);
        float *score = run_array(run, asc_s, 0);
        *score = nextafterf(*score, INFINITY);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(verdict_bad(&run->out[asc_s].local), 1);
        kernel_run_free(run);
    }
}

/* The edge of an operand's interval: the value in f32 either way, rounded to f16, and no further. */
static void edge_of_a_value(void **state)
{
    (void)state;
    struct spec s = base();
    s.dtype = DTYPE_U8;
    s.coded = 1;
    struct kernel_run *run = kernel_run(&s);
    uint16_t *k = run_array(run, asc_k, 0);
    for (int i = 0; i < 32 * 32; i += 37) {
        const uint16_t kept = k[i];
        for (int step = -1; step <= 1; step++) {
            k[i] = (uint16_t)(kept + step);
            assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
            assert_int_equal(verdict_bad(&run->out[asc_k].local), step != 0);
        }
        k[i] = kept;
    }
    kernel_run_free(run);
}

/* A quotient halfway between two codes may become either; a third of a step away from there it may not. */
static void either_code_of_a_tie(void **state)
{
    (void)state;
    for (int tie = 0; tie < 2; tie++) {
        struct spec s = base();
        s.dtype = DTYPE_F32;
        s.conventions.quantized = ASC_QUANTIZED_U8;
        s.conventions.qk_descale = ASC_QK_PRODUCT;
        struct kernel_run *run = kernel_run(&s);
        float *given = run->k;
        uint8_t *k = run_array(run, asc_k, 0);
        for (int i = 0; i < s.kv_len * 32; i++)
            given[i] = i == 0 ? 127 : i == 5 ? (tie ? 3.5f : 3.3f) : (float)(i % 7);
        codes_make_scales(&run->c.in_k, ASC_QUANTIZED_U8, 0, run->scales[1][0]);
        assert_true(run->scales[1][0][0] == 1);
        for (int i = 0; i < 32 * 32; i++)
            k[i] = (uint8_t)(ASC_U8_MIDPOINT + (int)given[i]);
        for (int code = 2; code <= 5; code++) {
            k[5] = (uint8_t)(ASC_U8_MIDPOINT + code);
            assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
            assert_int_equal(verdict_bad(&run->out[asc_k].local), !(code == 3 || (tie && code == 4)));
            assert_int_equal(verdict_bad(&run->out[asc_k].global), !(code == 3 || (tie && code == 4)));
        }
        kernel_run_free(run);
    }
}

static void refusals(void **state)
{
    (void)state;
    struct spec s = base();
    s.dtype = DTYPE_E4M3;
    s.scale_rows = 64;
    assert_null(refused(&s));
    s.conventions.qk_descale = ASC_QK_PRODUCT;
    s.conventions.v_descale = ASC_V_PRODUCT;
    assert_null(refused(&s));
    s.scale_rows = 48;
    assert_non_null(refused(&s));
    s.bc = 16;
    assert_null(refused(&s));
    s.conventions.v_descale = ASC_V_OUTPUT;
    assert_non_null(refused(&s));
    s.scale_rows = s.kv_len;
    assert_null(refused(&s));
    s.conventions.qk_descale = ASC_QK_FOLDED;
    assert_null(refused(&s));
    s.conventions.s_unit = ASC_UNIT_SCALED;
    assert_non_null(refused(&s));
    s.conventions.s_unit = ASC_UNIT_RAW;
    s.scale_rows = 64;
    assert_non_null(refused(&s));
    s.dtype = DTYPE_F16;
    assert_null(refused(&s));
    s.conventions.quantized = ASC_QUANTIZED_U8;
    assert_null(refused(&s));
    s.conventions.quantized_rows = 64;
    assert_non_null(refused(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correct_kernels),         cmocka_unit_test(unrecorded),
        cmocka_unit_test(with_other_conventions),  cmocka_unit_test(with_tensor_cores),
        cmocka_unit_test(bits_of_folded_products), cmocka_unit_test(edge_of_a_value),
        cmocka_unit_test(either_code_of_a_tie),    cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("oracle: codes", tests, scratch_begin, scratch_end);
}
