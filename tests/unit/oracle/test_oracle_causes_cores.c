/* Causes on every tensor core: a mistake's formula is bounded by the declared accumulator, as the right one is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/causes/causes.h"
#include "tests/unit/lib/case_search.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static const struct core {
    int accumulator;
    enum tensor_core core;
    enum dtype type;
    int p_rounded;
} cores[] = {
    {ASC_ACC_MMA_F16, TENSOR_CORE_V100, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_F16, TENSOR_CORE_H100, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_BF16, TENSOR_CORE_A100, DTYPE_BF16, ASC_P_BF16},
    {ASC_ACC_MMA_F16_F16, TENSOR_CORE_H100_F16, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_E4M3, TENSOR_CORE_MMA_E4M3, DTYPE_E4M3, ASC_P_E4M3},
    {ASC_ACC_MMA_E4M3, TENSOR_CORE_ADA_E4M3, DTYPE_E4M3, ASC_P_E4M3},
    {ASC_ACC_WGMMA_E4M3, TENSOR_CORE_WGMMA_E4M3, DTYPE_E4M3, ASC_P_E4M3},
};
enum { CORES = sizeof cores / sizeof cores[0], SLOTS = 4 };

static struct spec spec_of(const struct core *core, enum mistake mistake, unsigned seed)
{
    struct spec s = {.q_len = 64, .kv_len = 256, .head_dim = 64, .br = 64, .bc = 64, .seed = seed};
    s.dtype = core->type;
    s.o_dtype = DTYPE_F32;
    s.p_dtype = DTYPE_F32;
    s.core = 1 + (int)core->core;
    s.conventions = (struct asc_conventions){.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};
    s.conventions.acc_s = s.conventions.acc_u = core->accumulator;
    s.conventions.p_rounded = core->p_rounded;
    s.mistake = mistake;
    return s;
}

/* 1 if the cause is named for SLOTS runs with the mistake, -1 if it is within the bound everywhere; *others: how many
   other causes of its channel are named. */
static int named(const struct core *core, enum mistake mistake, enum cause cause, int *others)
{
    struct cause_plan plan;
    static struct cause_evidence evidence[CAUSE_COUNT];
    const enum asc_channel ch = cause_channel(cause);
    struct kernel_run *runs[SLOTS];
    bool found[CAUSE_COUNT] = {0};
    unsigned any = 0;
    memset(evidence, 0, sizeof evidence);
    cause_plan_begin(&plan, 1u << ch);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        const struct spec s = spec_of(core, mistake, slot + 1);
        struct kernel_run *run = runs[slot] = kernel_run(&s);
        uint32_t bad[4] = {0};
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        any |= bad_stages(run, 0);
        for (int kv = 0; kv < run->c.kv_tiles; kv++)
            if (verdict_bad(&run->out[kv * ASC_CHANNELS + (int)ch].local))
                bad[kv] = 1u << ch;
        if (slot == 0)
            assert_int_equal(cause_choose(&run->c, bad, scratch, &plan), 0);
        assert_int_equal(cause_collect(&run->c, bad, &plan, scratch, evidence), 0);
    }
    if (any)
        case_search(runs, SLOTS, ch, scratch, found, NULL);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        kernel_run_free(runs[slot]);
    *others = 0;
    if (!any)
        return -1;
    assert_int_equal(any, 1u << ch);
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++)
        *others += c != (int)cause && cause_channel((enum cause)c) == ch && (found[c] || cause_named(&evidence[c]));
    found[cause] |= cause_named(&evidence[cause]) != 0;
    if (!found[cause])
        print_message("# %s: explained %llu of %llu, %llu discriminate in %llu rows\n", cause_name(cause),
                      (unsigned long long)evidence[cause].explained, (unsigned long long)evidence[cause].elements,
                      (unsigned long long)evidence[cause].discriminating, (unsigned long long)evidence[cause].rows);
    return found[cause];
}

static void every_core(void **state)
{
    (void)state;
    static const struct {
        enum mistake mistake;
        enum cause cause;
        int f32_only; /* 1: the test kernel makes it with f32 accumulators alone */
        int others;   /* causes that are the same formula */
        int coarse;   /* 1: 13 bits may hide it */
    } mistakes[] = {
        {S_SCALED_TWICE, CAUSE_s_scaled_twice, 1, 0, 0},    {S_NOT_SCALED, CAUSE_s_not_scaled, 1, 1, 0},
        {S_ROUNDED_F16, CAUSE_s_rounded, 1, 0, 1},          {S_F16_ACCUMULATOR, CAUSE_s_accumulated_in_f16, 1, 0, 0},
        {U_ALPHA_FORGOTTEN, CAUSE_u_not_rescaled, 0, 0, 0}, {U_ALPHA_TWICE, CAUSE_u_rescaled_twice, 0, 0, 0},
        {U_KEY_MISSING, CAUSE_u_key_dropped, 0, 0, 0},
    };
    int failed = 0;
    for (int i = 0; i < CORES; i++) {
        for (size_t m = 0; m < sizeof mistakes / sizeof mistakes[0]; m++) {
            int others = 0;
            if (mistakes[m].f32_only && cores[i].core == TENSOR_CORE_H100_F16)
                continue;
            if (mistakes[m].mistake == S_F16_ACCUMULATOR && cores[i].type != DTYPE_F16)
                continue;
            const int found = named(&cores[i], mistakes[m].mistake, mistakes[m].cause, &others);
            if (found != 1 ? found == 0 || !mistakes[m].coarse : others != mistakes[m].others) {
                print_message("# %s as acc %d: %s, %d other names\n", tensor_core_name(cores[i].core),
                              cores[i].accumulator, cause_name(mistakes[m].cause), others);
                failed++;
            }
        }
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_core)};
    return cmocka_run_group_tests_name("causes on tensor cores", tests, scratch_begin, scratch_end);
}
