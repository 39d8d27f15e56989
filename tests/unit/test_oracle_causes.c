/* Every listed cause is named where a kernel commits that mistake, and alone, or with what is the same formula there.
   The wrong values come from an f32 kernel, not from the formulas of the causes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/cause_outcome.h"
#include <cmocka.h>

enum {
    CAUSAL = 1,
    TOP_LEFT = 2,
    BOTTOM_RIGHT = 4,
    OBLONG = 8,
    SQUARE = 16,
    TAIL = 32,
    EMPTY_ROWS = 64,
    RAW = 128,
    LOG2 = 256,
    NOT_RAW = 512,
    NOT_LOG2 = 1024,
    FORWARD = 2048,
    NARROW_P = 4096,
    WIDE_P = 8192,
    HUGE_V = 16384,
    OFFSET = 32768
};

static const struct {
    const char *name;
    enum cause cause, second;
    unsigned needs;
} listed[LISTED_END] = {
#define LISTED(id, cause, second, needs) [id] = {#id, cause, second, needs},
#include "tests/unit/causes_listed.def"
#undef LISTED
};

/* Formulas that are the same where both apply; the first of each is the mistake. */
static const enum cause same[][2] = {
    {CAUSE_s_not_scaled, CAUSE_s_unit},
    {CAUSE_alpha_base_2, CAUSE_alpha_unit},
    {CAUSE_alpha_base_e, CAUSE_alpha_unit},
    {CAUSE_p_base_2, CAUSE_p_unit},
    {CAUSE_p_base_e, CAUSE_p_unit},
    {CAUSE_p_scaled_again, CAUSE_p_unit},
    {CAUSE_p_not_scaled, CAUSE_p_unit},
    {CAUSE_p_not_scaled, CAUSE_p_scaled_again},
    {CAUSE_s_mask_missing, CAUSE_s_recorded_before_mask},
};

static int synonyms(enum cause a, enum cause b)
{
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if ((same[i][0] == a && same[i][1] == b) || (same[i][0] == b && same[i][1] == a))
            return 1;
    return a == b;
}

static unsigned offers(const struct spec *s)
{
    unsigned set = FORWARD * !s->backward | HUGE_V | OFFSET;
    set |= s->causal ? CAUSAL : 0;
    set |= s->causal == ASC_CAUSAL_TOP_LEFT ? TOP_LEFT : 0;
    set |= s->causal == ASC_CAUSAL_BOTTOM_RIGHT ? BOTTOM_RIGHT : 0;
    set |= s->causal && s->backward && s->skips_masked ? EMPTY_ROWS : 0;
    set |= s->q_len != s->kv_len ? OBLONG : 0;
    set |= s->bc == s->head_dim ? SQUARE : 0;
    set |= s->kv_len % s->bc ? TAIL : 0;
    set |= s->unit == ASC_UNIT_RAW ? RAW : NOT_RAW;
    set |= s->unit == ASC_UNIT_LOG2 ? LOG2 : NOT_LOG2;
    set |= s->p_dtype == DTYPE_F32 ? WIDE_P : NARROW_P;
    return set;
}

static struct judge_scratch *scratch;

/* 1: the expected names and no others but their synonyms; 0: no name; -1: a wrong one. */
static int grade(const struct outcome *o, enum mistake mistake)
{
    int any = 0;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        any |= o->named[cause];
        if (o->named[cause] && !synonyms((enum cause)cause, listed[mistake].cause) &&
            !(listed[mistake].second && synonyms((enum cause)cause, listed[mistake].second)))
            return -1;
    }
    const int right = o->named[listed[mistake].cause] && (!listed[mistake].second || o->named[listed[mistake].second]);
    return right ? 1 : any ? -1 : 0;
}

static struct spec spec_of(int shape, enum mistake mistake, enum fill fill)
{
    struct spec s = shapes[shape];
    s.mistake = mistake;
    s.fill = fill;
    s.seed = (unsigned)(mistake * 31 + shape * 7) + (unsigned)fill;
    s.p_offset = listed[mistake].needs & OFFSET ? 10 : 0;
    s.v_times = listed[mistake].needs & HUGE_V ? 300 : 1;
    return s;
}

static void explain(const struct outcome *o, enum mistake mistake, int shape, enum fill fill)
{
    const struct cause_evidence *e = &o->evidence[listed[mistake].cause];
    char names[512];
    write_names(o, names, sizeof names);
    print_message("%s, shape %d, fill %d: named%s; %llu of %llu explained, %llu tell, chance %llu of %llu\n",
                  listed[mistake].name, shape, (int)fill, names, (unsigned long long)e->explained,
                  (unsigned long long)e->elements, (unsigned long long)e->discriminating,
                  (unsigned long long)e->chance_hit, (unsigned long long)e->chance_tried);
}

static void listed_mistakes_are_named(void **state)
{
    (void)state;
    int count[3] = {0}, without_effect = 0, never = 0; /* count: wrong, none, right */
    for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
        int times = 0;
        for (int shape = 0; shape < SHAPES; shape++) {
            const enum fill fill = (enum fill)((mistake + shape) % (FILL_ARANGE + 1));
            const struct spec s = spec_of(shape, (enum mistake)mistake, fill);
            struct outcome o;
            if (listed[mistake].needs & ~offers(&shapes[shape]))
                continue;
            assert_int_equal(run_outcome(&s, scratch, &o), 0);
            if (!o.culprits) {
                without_effect++;
                continue;
            }
            const int is = grade(&o, (enum mistake)mistake);
            count[is + 1]++;
            times += is == 1;
            if (is < 0)
                explain(&o, (enum mistake)mistake, shape, fill);
        }
        if (!times)
            print_message("%s is never named\n", listed[mistake].name);
        never += !times;
    }
    print_message("listed mistakes: right %d, none %d, wrong %d; without effect %d\n", count[2], count[1], count[0],
                  without_effect);
    assert_int_equal(count[0], 0);
    assert_int_equal(never, 0);
    assert_true(count[2] >= 20 * count[1]);
}

/* lse-base-e needs a convention of its own: test_oracle_cause_rule.c. */
static void every_mistake_is_tried(void **state)
{
    (void)state;
    char tried[CAUSE_COUNT] = {0};
    for (int mistake = RIGHT + 1; mistake < LISTED_END; mistake++) {
        tried[listed[mistake].cause] = 1;
        tried[listed[mistake].second] = 1;
    }
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (!tried[cause] && !cause_is_declaration((enum cause)cause) && cause != CAUSE_lse_base_e)
            fail_msg("%s is not tried", cause_name((enum cause)cause));
}

static int begin(void **state)
{
    (void)state;
    oracle_init();
    scratch = judge_scratch_new();
    return scratch ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    judge_scratch_free(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_mistakes_are_named),
        cmocka_unit_test(every_mistake_is_tried),
    };
    return cmocka_run_group_tests_name("oracle: causes", tests, begin, end);
}
