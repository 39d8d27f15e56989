/* FlashAttention-1's recurrences (Dao et al. 2022, algorithm 1): P against its tile's own maximum, U divided by l after
   every tile, each alone and both. Right kernels are right, mistakes are found where they are made, bounds hold at
   their edges, and no cause of the other recurrence is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/oracle/causes/causes.h"
#include "engine/oracle/nonfinite/invariants.h"
#include "engine/oracle/nonfinite/onset.h"
#include "engine/oracle/quantization/flow.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

#define SET(channel) (1u << asc_##channel)

static const struct asc_conventions declared[] = {
    {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE},
    {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_max = ASC_P_MAX_TILE},
    {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .u_norm = ASC_U_NORM_TILE},
};
enum { DECLARED = sizeof declared / sizeof declared[0] };

static double largest[2][ASC_CHANNELS]; /* error/bound */

static struct spec base(const struct asc_conventions *conventions)
{
    return (struct spec){.q_len = 40,
                         .kv_len = 75,
                         .head_dim = 16,
                         .br = 16,
                         .bc = 8,
                         .q_tile = 1,
                         .p_dtype = DTYPE_F32,
                         .conventions = *conventions};
}

static void expect_clean(const struct spec *s)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        for (int global = 0; global < 2; global++) {
            const struct verdict *v = global ? &run->out[i].global : &run->out[i].local;
            /* Divided by an l that nobody recorded, of scores so large that nothing is certain, U may be any number. */
            const int unsure = (s->unrecorded & SET(l)) && v->unjudged > 0;
            if ((v->judged || unsure) != (run->captured[i].data != NULL) || verdict_bad(v) ||
                (v->unjudged && !unsure) || !(v->worst_ratio <= 1))
                fail_msg(
                    "%s of kv tile %d, %s: judged %d, bad %u, unjudged %u, error/bound %g at %d,%d; p_max %d u_norm "
                    "%d fill %d causal %d reversed %d summing %d units %d %d p %d unrecorded %x",
                    channel_name(ch), i / ASC_CHANNELS, global ? "global" : "local", v->judged, verdict_bad(v),
                    v->unjudged, (double)v->worst_ratio, v->worst_row, v->worst_col, s->conventions.p_max,
                    s->conventions.u_norm, (int)s->fill, (int)s->causal, s->reversed, (int)s->summing,
                    s->conventions.s_unit, s->conventions.m_unit, s->conventions.p_rounded, s->unrecorded);
            largest[global][ch] = fmax(largest[global][ch], (double)v->worst_ratio);
        }
    }
    kernel_run_free(run);
}

/* Fills, masks, rows without keys, tiles that are visited for nothing, either order, tails, units, narrow P, lanes. */
static struct spec any(unsigned i)
{
    struct spec s = base(&declared[i % DECLARED]);
    uint64_t mixed = i;
    const unsigned x = (unsigned)(test_random(&mixed) >> 8), y = (unsigned)(test_random(&mixed) >> 8);
    s.seed = i;
    s.fill = (enum fill)(x % (FILL_COMMON_MEAN + 1));
    s.causal = (enum asc_causal)(x / 16 % 3);
    s.reversed = (int)(x / 64 % 2);
    s.visits_masked = (int)(x / 128 % 2);
    s.summing = (enum summing)(x / 256 % 3);
    s.q_tile = (int)(x / 1024 % 3);
    s.kv_len = (int[]){75, 30, 7, 80}[x / 4096 % 4]; /* 30: rows without any key at the bottom right */
    s.conventions.s_unit = (int)(y % 3);
    s.conventions.m_unit = (int)(y / 4 % 3);
    s.conventions.p_rounded = (int[]){ASC_P_AS_RECORDED, ASC_P_F16, ASC_P_BF16, ASC_P_E4M3}[y / 16 % 4];
    s.conventions.p_offset = s.conventions.p_rounded == ASC_P_E4M3 ? 8 : 0;
    s.conventions.l_lanes = y / 64 % 4 ? 0 : 4;
    s.conventions.s_at = y / 256 % 3 ? ASC_S_MASKED : ASC_S_DOT;
    s.scale = y / 1024 % 4 ? 0 : 2;
    s.folded = (int)(y / 4096 % 2);
    s.o_dtype = y / 8192 % 2 ? DTYPE_F16 : DTYPE_F32;
    return s;
}

static void right_kernels_are_right(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        struct spec s = any(i);
        expect_clean(&s);
    }
    for (int ch = asc_p; ch < ASC_CHANNELS; ch++) {
        printf("# %-5s largest error/bound: local %.3f global %.3f\n", channel_name((enum asc_channel)ch),
               largest[0][ch], largest[1][ch]);
        assert_true(largest[0][ch] > 0.1 && largest[1][ch] > 0.02);
    }
}

static void unrecorded(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1500; i++) {
        struct spec s = any(i);
        s.unrecorded = (i * 131) % (1u << ASC_CHANNELS);
        expect_clean(&s);
    }
}

static void expect_fault(const struct spec *s, unsigned stages, int kv, const char *name)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    const unsigned found = bad_stages(run, 0);
    int first = -1;
    for (int i = 0; i < run->c.n_visited && first < 0; i++)
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            if (channel_per_kv((enum asc_channel)ch) && !verdict_ok(&run->out[run->order[i] * ASC_CHANNELS + ch].local))
                first = run->order[i];
    if (found != stages || (kv >= 0 && first != kv))
        fail_msg("%s: stages %x, not %x; first at kv tile %d, not %d", name, found, stages, first, kv);
    if (!(bad_stages(run, 1) & SET(o)))
        fail_msg("%s: o is right", name);
    kernel_run_free(run);
}

static void mistakes_are_found(void **state)
{
    (void)state;
    struct spec s = base(&declared[0]);
    s.mistake = U_ALPHA_FORGOTTEN;
    expect_fault(&s, SET(u), 1, "old O not rescaled");
    s.mistake = U_L_PREV_LEFT;
    expect_fault(&s, SET(u), 1, "old O not taken back");
    s.mistake = U_PREVIOUS_L;
    expect_fault(&s, SET(u), -1, "divided by the l before");
    s.mistake = U_BETA_FORGOTTEN;
    expect_fault(&s, SET(u), -1, "P V not brought to the new maximum");
    s.mistake = L_BETA_FORGOTTEN;
    expect_fault(&s, SET(l), -1, "sum not brought to the new maximum");
    s.mistake = L_ALPHA_FORGOTTEN;
    expect_fault(&s, SET(l), 1, "old l not rescaled");
    s.mistake = P_RUNNING_MAX;
    expect_fault(&s, SET(p), -1, "P against the running maximum");
    s.mistake = M_PARTIAL;
    s.seed = 3;
    struct kernel_run *run = kernel_run(&s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    assert_int_equal(bad_stages(run, 0), SET(m));
    kernel_run_free(run);
    for (int i = 1; i < DECLARED; i++) {
        s = base(&declared[i]);
        s.mistake = U_ALPHA_FORGOTTEN;
        expect_fault(&s, SET(u), 1, "one alone, old U not rescaled");
    }
    /* A row that has seen no key: 0 / 0 is where NaN begins. */
    s = base(&declared[0]);
    s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    s.kv_len = 30;
    s.q_tile = 0;
    s.visits_masked = 1;
    s.mistake = U_UNGUARDED;
    run = kernel_run(&s);
    struct onset found = {0};
    assert_int_equal(onset_case(&run->c, scratch, &found), 0);
    assert_true(found.roots > 0 && found.first[0].channel == asc_u && found.first[0].origin == ORIGIN_QUOTIENT);
    assert_int_equal(found.roots, found.of_origin[ORIGIN_QUOTIENT]);
    kernel_run_free(run);
}

/* By a tenth within its bound every element of U, l and P passes, by a tenth beyond none does. */
static void edge_of_the_bounds(void **state)
{
    (void)state;
    static const enum asc_channel channels[] = {asc_p, asc_l, asc_u};
    for (int i = 0; i < DECLARED * 3; i++) {
        const enum asc_channel ch = channels[i / DECLARED];
        const struct spec s = base(&declared[i % DECLARED]);
        const int kv = 3, at = ch == asc_l ? 5 : 21;
        struct kernel_run *run = kernel_run(&s);
        double room[5][16 * 16];
        uint8_t classes[2][16 * 16];
        struct tile_detail d = {.channel = ch,
                                .kv = kv,
                                .got = room[0],
                                .want_local = room[1],
                                .bound_local = room[2],
                                .want_global = room[3],
                                .bound_global = room[4],
                                .class_local = classes[0],
                                .class_global = classes[1]};
        for (int side = 0; side < 2; side++) {
            assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
            const double want = room[1 + 2 * side][at], bound = room[2 + 2 * side][at];
            assert_true(bound > 0 && bound < 1e-4 * fmax(1, fabs(want)));
            float *array = run_array(run, ch, kv);
            const float kept = array[at];
            /* f32 rounds what is written: by a tenth of a bound at most. */
            for (int beyond = 0; beyond < 2; beyond++) {
                array[at] = (float)(want + bound * (beyond ? 1.2 : 0.8));
                assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
                if (classes[side][at] != (beyond ? CLASS_OFF : CLASS_OK))
                    fail_msg("%s of declaration %d: class %d at %s the bound", channel_name(ch), i % DECLARED,
                             classes[side][at], beyond ? "beyond" : "within");
            }
            array[at] = kept;
        }
        kernel_run_free(run);
    }
}

/* Invariants that U breaks where it is not rescaled, at the step of the mistake. */
static void invariants_break_there(void **state)
{
    (void)state;
    for (int i = 0; i < DECLARED; i++) {
        struct spec s = base(&declared[i]);
        struct row_states states;
        for (int wrong = 0; wrong < 2; wrong++) {
            s.mistake = wrong ? U_ALPHA_FORGOTTEN : RIGHT;
            struct kernel_run *run = kernel_run(&s);
            assert_int_equal(row_states_make(&run->c, scratch, &states), 0);
            assert_int_equal(states.first_step, wrong ? 1 : -1);
            if (wrong)
                assert_int_equal(states.at[states.rows + states.first_row].broken, 1u << INVARIANT_OUTPUT);
            row_states_free(&states);
            kernel_run_free(run);
        }
    }
}

/* Weights as the run had them, each in its own frame, give O; also where tiles are dealt and no visit is known. */
static void weights_give_the_output(void **state)
{
    (void)state;
    for (int i = 0; i < DECLARED * 3; i++) {
        struct spec s = base(&declared[i % DECLARED]);
        s.q_len = s.kv_len = 64;
        s.kv_splits = i / DECLARED ? 3 : 0;
        s.kv_deal = ASC_DEAL_ROUND_ROBIN;
        s.scale = 1;
        struct kernel_run *run = kernel_run(&s);
        struct oracle_case c = run->c;
        double w[16 * 64], score[16 * 64];
        if (i / DECLARED == 2)
            c.n_visited = 0;
        for (int r = 0; r < 16; r++)
            for (int key = 0; key < 64; key++)
                score[r * 64 + key] = (double)((float *)run_array(run, asc_s, key / 8))[r * 8 + key % 8];
        assert_int_equal(flow_run_weights(&c, score, &(struct flow_weights){.w = w}), 1);
        for (int r = 0; r < 16; r++) {
            double sum = 0, o = 0;
            for (int key = 0; key < 64; key++) {
                sum += w[r * 64 + key];
                o += w[r * 64 + key] * dtype_load(DTYPE_F16, run->v, (size_t)key * 16 + 3);
            }
            const double got = dtype_load(DTYPE_F16, run_array(run, asc_o, 0), (size_t)r * 16 + 3);
            if (!(fabs(sum - 1) < 1e-6 && fabs(o - got) < 1e-3 * (1 + fabs(got))))
                fail_msg("declaration %d, row %d: weights sum to %g, O %g is %g", i, r, sum, o, got);
        }
        kernel_run_free(run);
    }
}

/* What a cause says of a recurrence that is not the declared one: nothing, whatever the mistake. */
static void no_false_names(void **state)
{
    (void)state;
    static const enum mistake mistakes[] = {U_L_PREV_LEFT,    U_PREVIOUS_L,  U_BETA_FORGOTTEN,
                                            L_BETA_FORGOTTEN, P_RUNNING_MAX, U_UNGUARDED};
    for (int i = 0; i < DECLARED * 6; i++) {
        struct spec s = base(&declared[i % DECLARED]);
        struct cause_evidence evidence[CAUSE_COUNT] = {{0}};
        struct cause_plan plan;
        uint32_t bad[16] = {0}, culprits;
        s.mistake = mistakes[i / DECLARED];
        s.head_dim = 32;
        s.br = 32;
        s.q_len = 64;
        struct kernel_run *run = kernel_run(&s);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        culprits = bad_stages(run, 0);
        for (int j = 0; j < run->c.kv_tiles * ASC_CHANNELS; j++)
            if (run->out[j].local.judged && !verdict_ok(&run->out[j].local))
                bad[j / ASC_CHANNELS] |= 1u << j % ASC_CHANNELS;
        cause_plan_begin(&plan, culprits);
        assert_int_equal(cause_choose(&run->c, bad, scratch, &plan), 0);
        assert_int_equal(cause_collect(&run->c, bad, &plan, scratch, evidence), 0);
        for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
            if (cause_named(&evidence[cause]))
                fail_msg("declaration %d, mistake %d: %s", i % DECLARED, i / DECLARED, cause_name((enum cause)cause));
        kernel_run_free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_kernels_are_right), cmocka_unit_test(unrecorded),
        cmocka_unit_test(mistakes_are_found),      cmocka_unit_test(edge_of_the_bounds),
        cmocka_unit_test(weights_give_the_output), cmocka_unit_test(invariants_break_there),
        cmocka_unit_test(no_false_names),
    };
    return cmocka_run_group_tests_name("oracle: FlashAttention-1's recurrences", tests, scratch_begin, scratch_end);
}
