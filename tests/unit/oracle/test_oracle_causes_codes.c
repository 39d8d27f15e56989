/* Mistakes about codes and their scales: each gets its name, with what was taken for the right one, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/oracle/causes/causes.h"
#include "tests/unit/lib/case_search.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

enum { SLOTS = 4 };

/* How codes come to the kernel, and where their scales go. */
enum mode { U8, E4M3, OWN_E4M3, BLOCKS, PRODUCT, FOLDED };

static struct spec spec_of(enum mode mode, unsigned seed)
{
    struct spec s = {
        .q_len = 64, .kv_len = 160, .head_dim = 32, .br = 64, .bc = 32, .p_dtype = DTYPE_F32, .seed = seed};
    struct asc_conventions *c = &s.conventions;
    s.coded = mode != OWN_E4M3;
    s.dtype = mode == OWN_E4M3 ? DTYPE_F16 : mode == E4M3 || mode == FOLDED ? DTYPE_E4M3 : DTYPE_U8;
    c->s_unit = c->m_unit = mode == FOLDED ? ASC_UNIT_RAW : ASC_UNIT_SCALED;
    c->quantized = mode == OWN_E4M3 ? ASC_QUANTIZED_E4M3 : ASC_QUANTIZED_GIVEN;
    c->quantized_rows = mode == OWN_E4M3 ? 32 : 0;
    s.scale_rows = mode == BLOCKS || mode == PRODUCT ? 32 : 0;
    c->qk_descale = mode == PRODUCT ? ASC_QK_PRODUCT : mode == FOLDED ? ASC_QK_FOLDED : ASC_QK_OPERANDS;
    c->v_descale = mode == PRODUCT ? ASC_V_PRODUCT : mode == FOLDED ? ASC_V_OUTPUT : ASC_V_OPERANDS;
    return s;
}

struct found {
    unsigned culprits;
    struct cause_plan plan;
    struct cause_evidence evidence[CAUSE_COUNT];
    bool named[CAUSE_COUNT];
    char said[ASC_CHANNELS][SENTENCE_BYTES]; /* by the search */
    struct oracle_case c;                    /* of a slot that is gone: numbers only */
};

static bool has_name(const struct found *f, enum asc_channel ch)
{
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (f->named[cause] && cause_channel((enum cause)cause) == ch)
            return true;
    return false;
}

static void look(struct spec s, struct found *f)
{
    struct kernel_run *run[SLOTS];
    uint32_t bad[SLOTS][5] = {{0}};
    memset(f, 0, sizeof *f);
    const unsigned seed = s.seed;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        s.seed = seed + slot;
        if (slot > 0 && !s.conventions.quantized_rows)
            s.zero_rows = 0; /* one head of several */
        run[slot] = kernel_run(&s);
        assert_int_equal(judge_case(&run[slot]->c, scratch, run[slot]->out, NULL), 0);
        f->culprits |= bad_stages(run[slot], 0);
        for (int i = 0; i < run[slot]->c.kv_tiles * ASC_CHANNELS; i++)
            if (verdict_bad(&run[slot]->out[i].local))
                bad[slot][i / ASC_CHANNELS] |= 1u << i % ASC_CHANNELS;
    }
    cause_plan_begin(&f->plan, f->culprits);
    /* From the last tile on, where all that comes before has an effect; earlier ones decide between what fits alike. */
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int i = SLOTS * 5 - 1, n = 0; i >= 0 && n < 3; i--) {
            uint32_t one[5] = {0};
            one[i % 5] = bad[i / 5][i % 5] & 1u << ch;
            if (one[i % 5])
                assert_int_equal(cause_choose(&run[i / 5]->c, one, scratch, &f->plan), 0);
            n += one[i % 5] != 0;
        }
    for (int slot = 0; slot < SLOTS; slot++) {
        assert_int_equal(cause_collect(&run[slot]->c, bad[slot], &f->plan, scratch, f->evidence), 0);
        f->c = run[slot]->c;
    }
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        f->named[cause] = cause_named(&f->evidence[cause]);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (f->culprits & 1u << ch && !has_name(f, (enum asc_channel)ch))
            case_search(run, SLOTS, (enum asc_channel)ch, scratch, f->named, f->said[ch]);
    for (int slot = 0; slot < SLOTS; slot++)
        kernel_run_free(run[slot]);
}

static int count(const struct found *f)
{
    int n = 0;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        n += f->named[cause];
    return n;
}

/* What tells one mistake of the name from others, by its parameter or by its rule. */
static bool says(const struct found *f, enum cause cause, const char *detail)
{
    char text[128];
    cause_detail(cause, &f->c, &f->plan, text, sizeof text);
    return text[0] ? strcmp(text, detail) == 0 : strstr(f->said[cause_channel(cause)], detail) != NULL;
}

static void print(const struct found *f, const char *what)
{
    print_message("# %s: culprits %x\n", what, f->culprits);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (f->said[ch][0])
            print_message("#  %s: %s\n", channel_name((enum asc_channel)ch), f->said[ch]);
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        const struct cause_evidence *e = &f->evidence[cause];
        char detail[128];
        cause_detail((enum cause)cause, &f->c, &f->plan, detail, sizeof detail);
        if (f->named[cause] || (e->applicable && 2 * e->explained > e->elements))
            print_message("#  %s %s (%s): %llu of %llu, %llu tell in %llu rows, %d values, chance %llu of %llu\n",
                          f->named[cause] ? "named" : "not", cause_name((enum cause)cause), detail,
                          (unsigned long long)e->explained, (unsigned long long)e->elements,
                          (unsigned long long)e->discriminating, (unsigned long long)e->rows, e->values,
                          (unsigned long long)e->chance_hit, (unsigned long long)e->chance_tried);
    }
}

/* A mistake in one operand, and what it is to be called; up to three stages have it. */
static const struct mistake_of {
    enum mode mode;
    enum wrong_codes wrong;
    enum asc_channel operand;
    enum cause cause[3];
    const char *detail;
} mistakes[] = {
    {U8, SCALE_MISSING, asc_q, {CAUSE_q_not_descaled}, ""},
    {U8, SCALE_MISSING, asc_k, {CAUSE_k_not_descaled}, ""},
    {E4M3, SCALE_MISSING, asc_v, {CAUSE_v_not_descaled}, ""},
    {OWN_E4M3, SCALE_MISSING, asc_k, {CAUSE_k_not_descaled}, ""},
    {E4M3, SCALE_TWICE, asc_q, {CAUSE_q_descaled_twice}, ""},
    {BLOCKS, SCALE_TWICE, asc_k, {CAUSE_k_descaled_twice}, ""},
    {OWN_E4M3, SCALE_TWICE, asc_v, {CAUSE_v_descaled_twice}, ""},
    {BLOCKS, SCALE_OF_GROUP_BEHIND, asc_q, {CAUSE_q_wrong_scale}, ""},
    {BLOCKS, SCALE_OF_GROUP_BEHIND, asc_k, {CAUSE_k_wrong_scale}, ""},
    {OWN_E4M3, SCALE_OF_GROUP_BEHIND, asc_v, {CAUSE_v_wrong_scale}, ""},
    {U8, SCALE_OF_HEAD_BEHIND, asc_k, {CAUSE_k_wrong_scale}, ""},
    {BLOCKS, SCALE_OF_HEAD_BEHIND, asc_v, {CAUSE_v_wrong_scale}, ""},
    {BLOCKS, SCALE_OF_FIRST_HEAD, asc_k, {CAUSE_k_wrong_scale}, ""},
    {BLOCKS, SCALE_LARGEST, asc_v, {CAUSE_v_wrong_scale}, ""},
    {E4M3, SCALE_OF_Q, asc_k, {CAUSE_k_wrong_scale}, ""},
    {E4M3, SCALE_OF_K, asc_v, {CAUSE_v_wrong_scale}, ""},
    {U8, ZERO_POINT_OFF, asc_q, {CAUSE_q_zero_point}, "every code of Q is moved by 1"},
    {U8, ZERO_POINT_OFF, asc_k, {CAUSE_k_zero_point}, "every code of K is moved by 128"},
    {BLOCKS, ZERO_POINT_OFF, asc_v, {CAUSE_v_zero_point}, "every code of V is moved by -1"},
    {U8, OTHER_FORMAT, asc_k, {CAUSE_k_other_format}, "read as e4m3"},
    {E4M3, OTHER_FORMAT, asc_q, {CAUSE_q_other_format}, "read as e5m2"},
    {E4M3, OTHER_FORMAT, asc_v, {CAUSE_v_other_format}, "read as e5m2"},
    {PRODUCT, SCALE_MISSING, asc_q, {CAUSE_s_not_descaled}, "Q is used without its scale"},
    {PRODUCT, SCALE_MISSING, asc_k, {CAUSE_s_not_descaled}, "K is used without its scale"},
    {PRODUCT, SCALE_TWICE, asc_k, {CAUSE_s_descaled_twice}, "K gets its scale twice"},
    {PRODUCT,
     SCALE_OF_GROUP_BEHIND,
     asc_k,
     {CAUSE_s_wrong_scale},
     "K gets another scale: number i + 1 where number i is wanted"},
    {PRODUCT,
     SCALE_OF_HEAD_BEHIND,
     asc_q,
     {CAUSE_s_wrong_scale},
     "Q gets the scale of another head, head h + 1 where it should be h"},
    {PRODUCT, SCALE_MISSING, asc_v, {CAUSE_u_not_descaled}, "V is used without its scale"},
    {PRODUCT, SCALE_TWICE, asc_v, {CAUSE_u_descaled_twice}, "V gets its scale twice"},
    {PRODUCT,
     SCALE_OF_GROUP_BEHIND,
     asc_v,
     {CAUSE_u_wrong_scale},
     "V gets another scale: number i + 1 where number i is wanted"},
    {FOLDED,
     SCALE_MISSING,
     asc_q,
     {CAUSE_p_not_descaled, CAUSE_alpha_not_descaled, CAUSE_lse_not_descaled},
     "Q is used without its scale"},
    {FOLDED,
     SCALE_TWICE,
     asc_k,
     {CAUSE_p_descaled_twice, CAUSE_alpha_descaled_twice, CAUSE_lse_descaled_twice},
     "K gets its scale twice"},
    {FOLDED,
     SCALE_OF_Q,
     asc_k,
     {CAUSE_p_wrong_scale, CAUSE_alpha_wrong_scale, CAUSE_lse_wrong_scale},
     "K gets the scale of Q"},
    {FOLDED, SCALE_MISSING, asc_v, {CAUSE_o_not_descaled}, "V is used without its scale"},
    {FOLDED, SCALE_TWICE, asc_v, {CAUSE_o_descaled_twice}, "V gets its scale twice"},
    {FOLDED, SCALE_OF_K, asc_v, {CAUSE_o_wrong_scale}, "V gets the scale of K"},
};

static char tried[CAUSE_COUNT];

static void mistakes_are_named(void **state)
{
    (void)state;
    static struct found f;
    int failed = 0;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const struct mistake_of *m = &mistakes[i];
        struct spec s = spec_of(m->mode, 10 * (unsigned)i);
        char what[64];
        s.wrong_codes = m->wrong;
        s.wrong_operand = m->operand;
        s.format = m->mode == U8 ? DTYPE_E4M3 : DTYPE_E5M2;
        if (m->wrong == ZERO_POINT_OFF)
            s.zero_point = strtof(strrchr(m->detail, ' ') + 1, NULL);
        look(s, &f);
        int wanted = 0;
        int right = 1;
        for (int j = 0; j < 3 && m->cause[j]; j++) {
            right = right && f.named[m->cause[j]] && says(&f, m->cause[j], m->detail);
            tried[m->cause[j]] = 1;
            wanted++;
        }
        if (right && count(&f) == wanted)
            continue;
        snprintf(what, sizeof what, "%zu, mode %d, mistake %d of %s", i, m->mode, m->wrong, channel_name(m->operand));
        print(&f, what);
        failed++;
    }
    assert_int_equal(failed, 0);
}

/* One cause, and no other, in these stages. */
static int only(const struct spec *s, enum cause cause, unsigned culprits, const char *detail)
{
    static struct found f;
    tried[cause] = 1;
    look(*s, &f);
    if (f.named[cause] && count(&f) == 1 && f.culprits == culprits && says(&f, cause, detail))
        return 1;
    print(&f, cause_name(cause));
    return 0;
}

/* A scale of 0: in some rows of a head, and in a whole head among others. */
static void zero_groups(void **state)
{
    (void)state;
    const enum cause causes[] = {CAUSE_q_zero_group, CAUSE_k_zero_group, CAUSE_v_zero_group};
    for (int i = 0; i < 6; i++) {
        struct spec s = spec_of(OWN_E4M3, 500 + (unsigned)i);
        s.wrong_codes = ZERO_GROUP_UNGUARDED;
        s.wrong_operand = (enum asc_channel[]){asc_q, asc_k, asc_v}[i % 3];
        s.conventions.quantized_rows = i < 3 ? 32 : 0;
        s.zero_rows = i < 3 ? 32 : 160;
        assert_true(only(&s, causes[i % 3], 1u << s.wrong_operand, ""));
        s.wrong_codes = CODES_RIGHT;
        struct kernel_run *run = kernel_run(&s);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
        kernel_run_free(run);
    }
}

/* Raw codes of u8 that count from 0, in the product alone: the test kernel's operands are recorded before. */
static void zero_points_in_the_product(void **state)
{
    (void)state;
    static const char *const details[] = {"every code of Q and K is moved by 128", "every code of Q is moved by 128",
                                          "every code of K is moved by 128"};
    for (int i = 0; i < 3; i++) {
        struct spec s = spec_of(PRODUCT, 600 + (unsigned)i);
        s.counts_from_zero = (unsigned)(i == 0 ? 3 : i);
        assert_true(only(&s, CAUSE_s_zero_point, 1u << asc_s, details[i]));
    }
}

/* P beyond 448: recorded before its rounding, and after it. */
static void saturated_weights(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct spec s = spec_of(i < 2 ? E4M3 : FOLDED, 700 + (unsigned)i);
        s.conventions.p_offset = 11;
        s.conventions.p_rounded = ASC_P_E4M3;
        s.p_dtype = i % 2 ? DTYPE_E4M3 : DTYPE_F32;
        assert_true(only(&s, i % 2 ? CAUSE_p_saturated : CAUSE_u_p_saturated, 1u << (i % 2 ? asc_p : asc_u), ""));
        s.conventions.p_offset = 8;
        struct kernel_run *run = kernel_run(&s);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
        kernel_run_free(run);
    }
}

/* An accumulator in f16, declared as that: its rounding is allowed for, the end of its range is not. */
static void f16_overflow(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        struct spec s = {.q_len = 64, .kv_len = 160, .head_dim = 32, .br = 64, .bc = 32, .seed = 800};
        s.conventions.acc_s = s.conventions.acc_u = ASC_ACC_MMA_F16_F16;
        s.conventions.s_unit = s.conventions.m_unit = ASC_UNIT_SCALED;
        s.conventions.p_rounded = ASC_P_F16;
        s.conventions.p_offset = 14;
        s.core = 1 + (int)TENSOR_CORE_H100_F16;
        s.p_dtype = DTYPE_F32;
        s.o_dtype = DTYPE_F32;
        assert_true(only(&s, CAUSE_u_f16_overflow, 1u << asc_u, ""));
        s.conventions.p_offset = 0;
        struct kernel_run *run = kernel_run(&s);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad_stages(run, 0), 0);
        kernel_run_free(run);
    }
}

/* Half of a scale, or a zero point that is no constant, are no causes. */
static void unlisted_mistakes_have_no_name(void **state)
{
    (void)state;
    static struct found f;
    for (int i = 0; i < 6 * 3; i++) {
        struct spec s = spec_of((enum mode)(i / 3), 900 + (unsigned)i);
        s.wrong_codes = SCALE_HALF;
        s.wrong_operand = (enum asc_channel[]){asc_q, asc_k, asc_v}[i % 3];
        look(s, &f);
        assert_true(f.culprits != 0);
        if (count(&f))
            print(&f, "half a scale");
        assert_int_equal(count(&f), 0);
    }
}

/* Correct kernels of all modes have no culprit. */
static void correct_kernels_are_clean(void **state)
{
    (void)state;
    static struct found f;
    for (int mode = U8; mode <= FOLDED; mode++) {
        look(spec_of((enum mode)mode, 1000), &f);
        assert_int_equal(f.culprits, 0);
    }
}

static void every_mistake_is_tried(void **state)
{
    (void)state;
    static const enum cause coded[] = {
#define CODED(id) CAUSE_##id,
#include "tests/unit/oracle/causes_coded.def"
#undef CODED
    };
    for (size_t i = 0; i < sizeof coded / sizeof coded[0]; i++)
        if (!tried[coded[i]])
            fail_msg("%s is not tried", cause_name(coded[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correct_kernels_are_clean),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(unlisted_mistakes_have_no_name),
        cmocka_unit_test(zero_groups),
        cmocka_unit_test(zero_points_in_the_product),
        cmocka_unit_test(saturated_weights),
        cmocka_unit_test(f16_overflow),
        cmocka_unit_test(every_mistake_is_tried),
    };
    return cmocka_run_group_tests_name("causes of codes", tests, scratch_begin, scratch_end);
}
