/* The rule by which a cause is named, the evidence it stands on, and declarations that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/lib/cause_outcome.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static void rule(void **state)
{
    (void)state;
    const struct cause_evidence good = {.elements = 100000,
                                        .explained = 99990,
                                        .discriminating = 16,
                                        .rows = 16,
                                        .values = CAUSE_VALUES,
                                        .chance_seen = 16,
                                        .chance_tried = 4096,
                                        .applicable = 1};
    struct cause_evidence e = good;
    assert_true(cause_named(&e));
    e.explained--;
    assert_false(cause_named(&e));
    e = good;
    e.discriminating--;
    e.chance_seen--;
    assert_false(cause_named(&e));
    assert_true(cause_fits(&e));
    e.discriminating = e.chance_seen = 0;
    assert_false(cause_fits(&e));
    e = good;
    e.rows--;
    assert_false(cause_named(&e));
    assert_true(cause_fits(&e));
    e.explained--;
    assert_false(cause_fits(&e));
    e = good;
    e.values--;
    assert_false(cause_named(&e));
    e = good;
    e.chance_seen++;
    assert_false(cause_named(&e));
    e.discriminating = 9999;
    e.chance_seen = 10000;
    assert_true(cause_named(&e));
    e = good;
    e.applicable = 0;
    assert_false(cause_named(&e));
    e = good;
    e.given_up = 1;
    assert_false(cause_named(&e));
    e = good;
    e.chance_hit = 4096;
    assert_false(cause_named(&e));
    e.chance_hit = 700; /* 16 ln(4097/701) = 28.2 */
    assert_false(cause_named(&e));
    e.chance_hit = 600; /* 30.7 */
    assert_true(cause_named(&e));
    e = good;
    e.chance_tried = 0; /* nothing tried, nothing known about chance */
    assert_false(cause_named(&e));
    const struct cause_evidence none = {.applicable = 1};
    assert_false(cause_named(&none));
}

static void names(void **state)
{
    (void)state;
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        assert_int_equal(cause_from_name(cause_name((enum cause)c)), c);
        assert_true(cause_sentence((enum cause)c)[0] && cause_formula((enum cause)c)[0]);
        assert_true(cause_channel((enum cause)c) < ASC_CHANNELS);
    }
    assert_int_equal(cause_from_name("scaled-thrice"), -1);
    assert_string_equal(cause_name(CAUSE_s_scaled_twice), "scaled-twice");
}

static void evidence_adds_up(void **state)
{
    (void)state;
    struct cause_evidence a[CAUSE_COUNT] = {{0}}, b[CAUSE_COUNT] = {{0}};
    a[1] = (struct cause_evidence){
        .elements = 10, .explained = 9, .values = 2, .value = {7, 9}, .rows = 2, .chance_tried = 3, .applicable = 1};
    b[1] = (struct cause_evidence){.elements = 5,
                                   .explained = 5,
                                   .values = 2,
                                   .value = {7, 8},
                                   .rounding = 2,
                                   .rows = 3,
                                   .chance_tried = 4,
                                   .given_up = 1};
    cause_add_evidence(a, b);
    assert_int_equal(a[1].elements, 15);
    assert_int_equal(a[1].explained, 14);
    assert_int_equal(a[1].rounding, 2);
    assert_int_equal(a[1].rows, 5);
    assert_int_equal(a[1].values, 3);
    assert_int_equal(a[1].value[2], 8);
    assert_int_equal(a[1].chance_tried, 7);
    assert_true(a[1].applicable && a[1].given_up);
}

static struct spec plain(enum mistake mistake)
{
    struct spec s = shapes[0];
    s.mistake = mistake;
    s.v_times = 1;
    s.seed = 5;
    return s;
}

static void a_clean_run_has_no_evidence(void **state)
{
    (void)state;
    const struct spec s = plain(RIGHT);
    struct outcome o;
    assert_int_equal(run_outcome(&s, scratch, &o), 0);
    assert_int_equal(o.culprits, 0);
    for (int cause = 0; cause < CAUSE_COUNT; cause++)
        assert_int_equal(o.evidence[cause].elements, 0);
}

static void detail(struct outcome *o, enum cause cause, const char *expected)
{
    const struct oracle_case c = {
        .bc = 64, .br = 64, .head_dim = 64, .head_dim_v = 64, .conventions = {.s_unit = ASC_UNIT_SCALED}};
    char text[64];
    cause_detail(cause, &c, &o->plan, text, sizeof text);
    assert_string_equal(text, expected);
}

/* A correct kernel under a declaration that is not its own. */
static struct outcome misdeclared(struct spec s, struct asc_conventions declared)
{
    struct outcome o;
    s.misdeclared = 1;
    s.declared = declared;
    assert_int_equal(run_outcome(&s, scratch, &o), 0);
    return o;
}

static void another_unit_is_recognized(void **state)
{
    (void)state;
    struct spec s = plain(RIGHT);
    s.unit = ASC_UNIT_RAW;
    const struct asc_conventions scaled = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};
    struct outcome o = misdeclared(s, scaled);
    assert_true(o.named[CAUSE_s_unit] && o.named[CAUSE_alpha_unit] && o.named[CAUSE_p_unit]);
    assert_true(o.named[CAUSE_lse_m_unit]);
    assert_int_equal(o.culprits & 1u << asc_m, 0); /* m is the maximum of these scores all the same */
    detail(&o, CAUSE_s_unit, "s_unit declared scaled, looks raw");
    s.unit = ASC_UNIT_LOG2;
    o = misdeclared(s, scaled);
    assert_true(o.named[CAUSE_s_unit] && o.named[CAUSE_p_unit] && o.named[CAUSE_alpha_unit]);
    detail(&o, CAUSE_s_unit, "s_unit declared scaled, looks log2");
    s.unit = ASC_UNIT_SCALED;
    o = misdeclared(s, (struct asc_conventions){.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_LOG2});
    assert_true(o.named[CAUSE_m_unit] && o.named[CAUSE_p_unit]);
    assert_int_equal(o.culprits & 1u << asc_s, 0);
}

static void other_declarations_are_recognized(void **state)
{
    (void)state;
    struct spec s = plain(RIGHT);
    struct asc_conventions declared = {.s_unit = (int)s.unit, .m_unit = (int)s.unit};
    declared.lse_base2 = 1;
    struct outcome o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 1u << asc_lse);
    assert_true(o.named[CAUSE_lse_base_e]);
    declared.lse_base2 = 0;
    declared.l_from = ASC_L_ROUNDED;
    s.p_dtype = DTYPE_F16;
    s.sums_unrounded = 1;
    o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 1u << asc_l);
    assert_true(o.named[CAUSE_l_from_unrounded]);
    s.p_dtype = DTYPE_F32; /* and recorded before it is rounded */
    s.p_rounded = ASC_P_F16;
    declared.p_rounded = ASC_P_F16;
    o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 1u << asc_l);
    assert_true(o.named[CAUSE_l_from_unrounded]);
    declared.l_from = ASC_L_UNROUNDED;
    s.p_rounded = ASC_P_AS_RECORDED;
    o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 1u << asc_u);
    assert_true(o.named[CAUSE_u_p_unrounded] && !o.named[CAUSE_u_p_rounded]);
    s.p_rounded = ASC_P_BF16;
    o = misdeclared(s, declared);
    assert_true(o.named[CAUSE_u_p_rounded] && !o.named[CAUSE_u_p_unrounded]);
    detail(&o, CAUSE_u_p_rounded, "to bf16");
    s.p_rounded = ASC_P_AS_RECORDED;
    declared.p_rounded = ASC_P_AS_RECORDED;
    s.sums_unrounded = 0;
    declared.l_from = ASC_L_UNROUNDED;
    declared.q_fold = ASC_FOLD_SCALE;
    o = misdeclared(s, declared);
    assert_true(o.named[CAUSE_q_folded]);
    s.causal = ASC_CAUSAL_TOP_LEFT;
    s.q_len = 96;
    s.mistake = P_MASKED_LATE; /* scores without mask: right if declared so */
    o = misdeclared(s, (struct asc_conventions){.s_unit = (int)s.unit, .m_unit = (int)s.unit});
    assert_true(o.named[CAUSE_s_recorded_before_mask]);
}

/* Right kernels that record S before its mask: every stage that reads S says so. */
static void scores_before_the_mask_are_recognized(void **state)
{
    (void)state;
    struct spec s = shapes[3]; /* a causal mask and a tail */
    s.v_times = 1;
    s.shows_unmasked = 1;
    struct outcome o;
    assert_int_equal(run_outcome(&s, scratch, &o), 0);
    assert_int_equal(o.culprits, 1u << asc_s | 1u << asc_m | 1u << asc_p | 1u << asc_l);
    assert_true(o.named[CAUSE_s_recorded_before_mask] && o.named[CAUSE_m_after_mask] && o.named[CAUSE_p_after_mask]);
    assert_true(o.named[CAUSE_l_after_mask]);
    assert_false(o.named[CAUSE_s_masked_value]);
    detail(&o, CAUSE_s_recorded_before_mask, "s_at declared masked, looks dot");
    s.causal = ASC_CAUSAL_NONE;
    assert_int_equal(run_outcome(&s, scratch, &o), 0);
    assert_true(o.named[CAUSE_s_recorded_before_mask] && o.named[CAUSE_l_after_mask] && !o.named[CAUSE_s_masked_value]);
    struct asc_conventions declared = {.s_unit = (int)s.unit, .m_unit = (int)s.unit, .s_at = ASC_S_DOT};
    o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 0);
}

static void masked_values_are_recognized(void **state)
{
    (void)state;
    struct spec s = shapes[3];
    s.v_times = 1;
    s.masked_value = -1e4f;
    struct asc_conventions declared = {.s_unit = (int)s.unit, .m_unit = (int)s.unit};
    struct outcome o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 1u << asc_s);
    assert_true(o.named[CAUSE_s_masked_value] && count_names(&o) == 1);
    detail(&o, CAUSE_s_masked_value, "s_masked declared -inf, looks like the finite value -10000");
    s.causal = ASC_CAUSAL_NONE; /* the tail alone */
    o = misdeclared(s, declared);
    assert_true(o.named[CAUSE_s_masked_value] && count_names(&o) == 1);
    declared.s_masked = ASC_MASKED_VALUE;
    declared.s_masked_value = -1e9f;
    o = misdeclared(s, declared);
    assert_true(o.named[CAUSE_s_masked_value]);
    declared.s_masked_value = -1e4f;
    o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 0);
}

/* All rows of the first tile hold the same number: that it stands nowhere else by chance is what speaks for it. */
static void another_first_alpha_is_recognized(void **state)
{
    (void)state;
    struct spec s = plain(RIGHT);
    struct asc_conventions declared = {.s_unit = (int)s.unit, .m_unit = (int)s.unit};
    s.alpha_one = 1;
    s.q_len = 256; /* 1 stands in two of three places elsewhere: it takes many rows */
    struct outcome o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 1u << asc_alpha);
    assert_true(o.named[CAUSE_alpha_first] && count_names(&o) == 1);
    s.alpha_one = 0;
    declared.alpha_first = ASC_ALPHA_ONE;
    o = misdeclared(s, declared);
    assert_int_equal(o.culprits, 1u << asc_alpha);
    assert_true(o.named[CAUSE_alpha_first] && count_names(&o) == 1);
    assert_true(o.plan.parameter[CAUSE_alpha_first] == ASC_ALPHA_ZERO);
    declared.alpha_first = ASC_ALPHA_ZERO;
    s.alpha_one = 1;
    s.fill = FILL_CONSTANT; /* alpha is 1 everywhere: that it is so in the first tile says nothing */
    o = misdeclared(s, declared);
    assert_false(o.named[CAUSE_alpha_first]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule),
        cmocka_unit_test(names),
        cmocka_unit_test(evidence_adds_up),
        cmocka_unit_test(a_clean_run_has_no_evidence),
        cmocka_unit_test(another_unit_is_recognized),
        cmocka_unit_test(other_declarations_are_recognized),
        cmocka_unit_test(scores_before_the_mask_are_recognized),
        cmocka_unit_test(masked_values_are_recognized),
        cmocka_unit_test(another_first_alpha_is_recognized),
    };
    return cmocka_run_group_tests_name("oracle: evidence for causes", tests, scratch_begin, scratch_end);
}
