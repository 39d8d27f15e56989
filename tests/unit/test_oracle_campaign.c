/* How much of its bound a correct kernel uses: over ten million elements each of S, P and U, and what rows there are to
   them, of ordinary and of hostile inputs, in several orders and roundings. Never more than all of it, and never so
   little that the bound could hide anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/test_oracle_kernel.h"
#include <cmocka.h>

static const enum fill fills[] = {FILL_NORMAL, FILL_OUTLIERS, FILL_LARGE, FILL_POSITIVE, FILL_COMMON_MEAN};

static const struct asc_conventions kernels[] = {
    {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED},
    {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_RAW, .p_rounded = ASC_P_F16},
    {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .q_fold = ASC_FOLD_LOG2, .p_rounded = ASC_P_BF16},
    {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_rounded = ASC_P_E4M3, .p_offset = 8, .l_lanes = 4},
    {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_rounded = ASC_P_F16, .l_from = ASC_L_ROUNDED},
    {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_SCALED, .m_policy = ASC_M_LAGGING, .m_lag = 8},
    {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .u_phase = ASC_U_RESCALED, .lse_base2 = 1},
};

enum {
    FILLS = sizeof fills / sizeof fills[0],
    KERNELS = sizeof kernels / sizeof kernels[0],
    SUMMINGS = 3,
    RUNS = 3 * FILLS * KERNELS * SUMMINGS
};

struct use {
    double largest; /* error/bound */
    uint64_t elements;
};

static void note(struct use *use, const struct verdict *v, const struct spec *s, const char *where)
{
    if (verdict_bad(v) || !(v->worst_ratio <= 1))
        fail_msg("%s: %u bad, error/bound %g; fill %d summing %d dtype %d seed %u", where, verdict_bad(v),
                 (double)v->worst_ratio, (int)s->fill, (int)s->summing, (int)s->dtype, s->seed);
    use->largest = fmax(use->largest, v->worst_ratio);
    use->elements += v->count[CLASS_OK];
}

static void campaign(void **state)
{
    (void)state;
    static struct use use[2][ASC_CHANNELS];
    struct judge_scratch *scratch = judge_scratch_new();
    assert_non_null(scratch);
    for (int i = 0; i < RUNS; i++) {
        struct spec s = {.q_len = 64, .kv_len = 512, .head_dim = 64, .br = 64, .bc = 64, .seed = (unsigned)i};
        s.fill = fills[i % FILLS];
        s.conventions = kernels[i / FILLS % KERNELS];
        s.summing = (enum summing)(i / (FILLS * KERNELS) % SUMMINGS);
        s.dtype = i % 2 ? DTYPE_BF16 : DTYPE_F16;
        s.o_dtype = i % 3 == 0 ? DTYPE_F32 : s.dtype;
        s.p_dtype = DTYPE_F32;
        s.reversed = i % 4 == 0;
        struct kernel_run *run = kernel_run(&s);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        for (int t = 0; t < run->c.kv_tiles * ASC_CHANNELS; t++) {
            if (!run->captured[t].data)
                continue;
            const enum asc_channel ch = (enum asc_channel)(t % ASC_CHANNELS);
            note(&use[0][ch], &run->out[t].local, &s, channel_name(ch));
            note(&use[1][ch], &run->out[t].global, &s, channel_name(ch));
        }
        kernel_run_free(run);
    }
    judge_scratch_free(scratch);
    const enum asc_channel many[] = {asc_s, asc_p, asc_u};
    for (int ch = asc_s; ch < ASC_CHANNELS; ch++) {
        print_message("# %-5s %9llu elements, largest error/bound: local %.3f global %.3f\n",
                      channel_name((enum asc_channel)ch), (unsigned long long)use[0][ch].elements, use[0][ch].largest,
                      use[1][ch].largest);
        assert_true(use[0][ch].largest > 0.02 || ch == asc_m); /* a maximum rounds nothing */
        assert_true(use[1][ch].largest > 0.02);
    }
    for (int i = 0; i < 3; i++)
        assert_true(use[0][many[i]].elements >= 10000000 && use[1][many[i]].elements >= 10000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(campaign)};
    oracle_init();
    return cmocka_run_group_tests_name("oracle: use of the bounds", tests, NULL, NULL);
}
