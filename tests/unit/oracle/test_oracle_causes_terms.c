/* Causes that lie in biases, sinks and the merging of splits: each is named where the test kernel commits it, alone,
   and none where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/causes/causes.h"
#include "tests/unit/lib/case_search.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

enum { SLOTS = 3, MOST_TILES = 16 };

static const struct {
    const char *name;
    enum wrong_term wrong_term;
    enum cause cause;
} terms[] = {
#define TERM(wrong_term, cause) {#wrong_term, wrong_term, cause},
#include "tests/unit/oracle/causes_of_terms.def"
#undef TERM
};

/* A case in which the term shows. */
static struct spec spec_of(enum wrong_term wrong_term, int l_sink, unsigned seed)
{
    struct spec s = {.q_len = 96, .kv_len = 240, .head_dim = 32, .br = 32, .bc = 16, .seed = seed};
    s.o_dtype = DTYPE_F32;
    s.p_dtype = DTYPE_F32;
    s.q_tile = (int)seed % 3;
    s.conventions = (struct asc_conventions){
        .s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .alibi_form = ASC_ALIBI_DISTANCE, .l_sink = l_sink};
    s.wrong_term = wrong_term;
    if (wrong_term == ALIBI_FORGOTTEN || wrong_term == ALIBI_SIGN || wrong_term == ALIBI_TOP_LEFT ||
        wrong_term == ALIBI_NEXT_SLOPE) {
        s.alibi_slope = 0.25f;
        s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    } else if (wrong_term == BIAS_FORGOTTEN || wrong_term == BIAS_SCALED || wrong_term == BIAS_DIVIDED ||
               wrong_term == BIAS_OTHER_HEAD || wrong_term == BIAS_NEXT_ROW) {
        s.bias_sigma = 1;
    } else if (l_sink != ASC_SINK_NONE) {
        s.has_sink = 1;
        s.sink = 0.5f;
    } else {
        s.kv_splits = 4;
        s.merges_lse = 1;
    }
    if (wrong_term == MERGE_NOT_SHIFTED)
        s.scale = 5; /* logits beyond the range of exp in f32 in some rows, within it in others */
    if (wrong_term == MERGE_EMPTY_COUNTS) { /* the last split has no key for most rows */
        s.q_len = s.kv_len;
        s.q_tile = 1 + (int)seed % 3;
        s.causal = ASC_CAUSAL_TOP_LEFT;
        s.visits_masked = 0;
    }
    if (wrong_term == SPLIT_UNGUARDED) { /* the first rows of the tile have no key */
        s.q_len = s.kv_len + 16;
        s.q_tile = 0;
        s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    }
    return s;
}

static int l_sink_of(enum wrong_term wrong_term)
{
    return wrong_term == SINK_WITHOUT_WEIGHT                               ? ASC_SINK_START
           : wrong_term == SINK_FORGOTTEN || wrong_term == SINK_NOT_IN_LSE ? ASC_SINK_END
                                                                           : ASC_SINK_NONE;
}

/* Without a mask, scores that lack the bias are those before it. */
static int synonyms(enum cause a, enum cause b)
{
    return a == b || (a == CAUSE_s_bias_missing && b == CAUSE_s_recorded_before_mask);
}

static bool has_name(const bool named[CAUSE_COUNT], enum asc_channel ch)
{
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++)
        if (named[c] && cause_channel((enum cause)c) == ch && !cause_is_declaration((enum cause)c))
            return true;
    return false;
}

/* Evidence of SLOTS runs; returns the culprits. */
static unsigned collect(enum wrong_term wrong_term, int l_sink, struct cause_evidence evidence[CAUSE_COUNT],
                        bool named[CAUSE_COUNT])
{
    struct cause_plan plan;
    unsigned culprits = 0;
    struct kernel_run *runs[SLOTS];
    memset(evidence, 0, CAUSE_COUNT * sizeof *evidence);
    memset(named, 0, CAUSE_COUNT * sizeof *named);
    cause_plan_begin(&plan, ~0u);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        const struct spec s = spec_of(wrong_term, l_sink, slot + 1);
        struct kernel_run *run = runs[slot] = kernel_run(&s);
        uint32_t bad[MOST_TILES] = {0};
        assert_in_range(run->c.kv_tiles, 1, MOST_TILES);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++)
            if (verdict_bad(&run->out[i].local))
                bad[i / ASC_CHANNELS] |= 1u << i % ASC_CHANNELS;
        for (int kv = 0; kv < run->c.kv_tiles; kv++)
            culprits |= bad[kv];
        assert_int_equal(cause_choose(&run->c, bad, scratch, &plan), 0);
        assert_int_equal(cause_collect(&run->c, bad, &plan, scratch, evidence), 0);
    }
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++)
        named[c] = cause_named(&evidence[c]);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (culprits & 1u << ch && !has_name(named, (enum asc_channel)ch))
            case_search(runs, SLOTS, (enum asc_channel)ch, scratch, named, NULL);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        kernel_run_free(runs[slot]);
    return culprits;
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static struct cause_evidence evidence[CAUSE_COUNT];
    static bool named[CAUSE_COUNT];
    int failed = 0;
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        const enum asc_channel ch = cause_channel(terms[i].cause);
        const unsigned culprits = collect(terms[i].wrong_term, l_sink_of(terms[i].wrong_term), evidence, named);
        const struct cause_evidence *e = &evidence[terms[i].cause];
        if (!named[terms[i].cause] || !(culprits & 1u << ch)) {
            print_message("# %s: culprits %x; %llu of %llu explained, %llu in %llu rows tell\n", terms[i].name,
                          culprits, (unsigned long long)e->explained, (unsigned long long)e->elements,
                          (unsigned long long)e->discriminating, (unsigned long long)e->rows);
            failed++;
        }
        for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
            if (synonyms(terms[i].cause, (enum cause)c) || cause_channel((enum cause)c) != ch || !named[c])
                continue;
            print_message("# %s is also %s\n", terms[i].name, cause_name((enum cause)c));
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

static void others_have_no_name(void **state)
{
    (void)state;
    static struct cause_evidence evidence[CAUSE_COUNT];
    static bool named[CAUSE_COUNT];
    static const enum wrong_term others[] = {BIAS_NEXT_ROW, SPLIT_LAST_LOST, SPLIT_STATE_KEPT};
    int told = 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        collect(others[i], ASC_SINK_NONE, evidence, named);
        for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
            if (!named[c])
                continue;
            print_message("# wrong term %d is named %s\n", (int)others[i], cause_name((enum cause)c));
            told++;
        }
    }
    assert_int_equal(told, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(others_have_no_name),
    };
    return cmocka_run_group_tests_name("oracle: causes in biases, sinks and splits", tests, scratch_begin, scratch_end);
}
