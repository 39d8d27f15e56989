/* How much of its bound a correct kernel uses: over ten million elements each of S, P and U, and what rows there are to
   them, of ordinary and of hostile inputs, in several orders and roundings. Never more than all of it, and never so
   little that the bound could hide anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "tests/unit/lib/oracle_kernel.h"
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

enum { CORE_RUNS = 62 }; /* of each tensor core: ten million elements each of S, P and U */

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

/* Declared accumulators with the tensor cores that they stand for. */
static const struct core {
    int accumulator;
    enum tensor_core core;
    enum dtype type; /* of Q, K, V and, as P.V takes it, P */
    int p_rounded;
} cores[] = {
    {ASC_ACC_MMA_F16, TENSOR_CORE_V100, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_F16, TENSOR_CORE_A100, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_F16, TENSOR_CORE_H100, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_F16, TENSOR_CORE_F32, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_BF16, TENSOR_CORE_A100, DTYPE_BF16, ASC_P_BF16},
    {ASC_ACC_MMA_BF16, TENSOR_CORE_H100, DTYPE_BF16, ASC_P_BF16},
    {ASC_ACC_MMA_F16_F16, TENSOR_CORE_H100_F16, DTYPE_F16, ASC_P_F16},
    {ASC_ACC_MMA_E4M3, TENSOR_CORE_MMA_E4M3, DTYPE_E4M3, ASC_P_E4M3},
    {ASC_ACC_MMA_E4M3, TENSOR_CORE_ADA_E4M3, DTYPE_E4M3, ASC_P_E4M3},
    {ASC_ACC_WGMMA_E4M3, TENSOR_CORE_WGMMA_E4M3, DTYPE_E4M3, ASC_P_E4M3},
};
enum { CORES = sizeof cores / sizeof cores[0] };

static struct spec core_spec(const struct core *core, int i)
{
    static const int units[] = {ASC_UNIT_SCALED, ASC_UNIT_RAW, ASC_UNIT_LOG2};
    struct spec s = {.q_len = 64, .kv_len = 256, .head_dim = 64, .br = 64, .bc = 64, .seed = (unsigned)i};
    s.dtype = core->type;
    s.o_dtype = i % 2 ? DTYPE_F16 : DTYPE_F32;
    s.p_dtype = DTYPE_F32;
    s.core = 1 + (int)core->core;
    s.join = i % 3;
    s.conventions = (struct asc_conventions){.s_unit = units[i % 3], .m_unit = units[i % 3]};
    s.conventions.acc_s = s.conventions.acc_u = core->accumulator;
    s.conventions.p_rounded = core->p_rounded;
    if (core->type == DTYPE_E4M3)
        s.conventions.p_offset = 8;
    s.fill = fills[i % FILLS];
    if (core->accumulator == ASC_ACC_MMA_F16_F16) { /* f16 sums of the others overflow */
        static const enum fill small[] = {FILL_NORMAL, FILL_POSITIVE, FILL_COMMON_MEAN};
        s.join = PRODUCT_CARRIES;
        s.fill = small[i % 3];
    }
    s.reversed = i % 4 == 0;
    return s;
}

/* The same for tensor cores, judged by bounds: whichever was declared. */
static void tensor_cores(void **state)
{
    (void)state;
    static struct use use[CORES][2][ASC_CHANNELS];
    struct judge_scratch *scratch = judge_scratch_new();
    uint64_t elements = 0;
    assert_non_null(scratch);
    for (int i = 0; i < CORES * CORE_RUNS; i++) {
        const int core = i % CORES;
        const struct spec s = core_spec(&cores[core], i / CORES);
        struct kernel_run *run = kernel_run(&s);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        for (int t = 0; t < run->c.kv_tiles * ASC_CHANNELS; t++) {
            char where[64];
            const enum asc_channel ch = (enum asc_channel)(t % ASC_CHANNELS);
            snprintf(where, sizeof where, "%s as %s", channel_name(ch), tensor_core_name(cores[core].core));
            if (!run->captured[t].data)
                continue;
            note(&use[core][0][ch], &run->out[t].local, &s, where);
            note(&use[core][1][ch], &run->out[t].global, &s, where);
        }
        kernel_run_free(run);
    }
    judge_scratch_free(scratch);
    for (int core = 0; core < CORES; core++) {
        const struct use *local = use[core][0], *global = use[core][1];
        elements += local[asc_s].elements + local[asc_p].elements + local[asc_u].elements;
        print_message(
            "# %-10s acc %d: local s %.3f p %.3f u %.3f o %.3f, global s %.3f p %.3f u %.3f o %.3f lse %.3f\n",
            tensor_core_name(cores[core].core), cores[core].accumulator, local[asc_s].largest, local[asc_p].largest,
            local[asc_u].largest, local[asc_o].largest, global[asc_s].largest, global[asc_p].largest,
            global[asc_u].largest, global[asc_o].largest, global[asc_lse].largest);
        for (int ch = asc_s; ch < ASC_CHANNELS; ch++) {
            double most[2] = {0};
            for (int other = 0; other < CORES; other++)
                for (int side = 0; side < 2 && cores[other].accumulator == cores[core].accumulator; side++)
                    most[side] = fmax(most[side], use[other][side][ch].largest);
            if (!(most[0] > 0.02 || ch == asc_m) || !(most[1] > 0.02))
                fail_msg("accumulator %d, %s: largest error/bound only local %.4f, global %.4f",
                         cores[core].accumulator, channel_name((enum asc_channel)ch), most[0], most[1]);
        }
    }
    print_message("# %llu elements of S, P and U\n", (unsigned long long)elements);
}

/* A mistake and the stage that makes it. tiles: how many of those visited first hold nothing of it upstream, so that
   the right kernel's values are what this stage should have given. */
static const struct mutant {
    enum mistake mistake;
    enum asc_channel stage;
    int tiles;
    const char *name;
} mutants[] = {
    {S_SCALED_TWICE, asc_s, 4, "scaled twice"},          {S_NOT_SCALED, asc_s, 4, "not scaled"},
    {S_LAST_PRODUCT, asc_s, 4, "last product dropped"},  {S_F16_ACCUMULATOR, asc_s, 4, "f16 accumulator"},
    {S_ROUNDED_F16, asc_s, 4, "scores rounded to f16"},  {P_BASE_2, asc_p, 4, "2^x for e^x"},
    {L_ALPHA_FORGOTTEN, asc_l, 2, "l: alpha forgotten"}, {U_KEY_MISSING, asc_u, 1, "one key missing"},
    {U_ALPHA_FORGOTTEN, asc_u, 2, "u: alpha forgotten"}, {U_ALPHA_TWICE, asc_u, 2, "u: alpha twice"},
    {O_TRUNCATED, asc_o, 1, "o cut instead of rounded"},
};
enum { MUTANTS = sizeof mutants / sizeof mutants[0] };

/* One mutant of one kernel: what it changed at its stage, beyond doubt or at all, and what of that was found. */
struct hunt {
    const struct mutant *mutant;
    const struct kernel_run *right, *run;
    uint64_t changed, beyond, found, missed;
};

static void look(void *ctx, const struct tile_detail *d)
{
    struct hunt *h = ctx;
    int visit = 0;
    while (visit < h->run->c.n_visited && h->run->order[visit] != d->kv)
        visit++;
    if (d->channel != (int)h->mutant->stage || (channel_per_kv(h->mutant->stage) && visit >= h->mutant->tiles))
        return;
    const void *right = run_array(h->right, h->mutant->stage, d->kv);
    /* Rounded to f16, o is judged by an interval: there is no beyond. */
    const int rounded = h->mutant->stage == asc_o;
    for (int i = 0; i < d->rows * d->cols; i++) {
        const double change =
            fabs(d->got[i] - dtype_load(run_dtype(&h->run->spec, h->mutant->stage), right, (size_t)i));
        const int bad = class_bad(d->class_local[i]);
        h->changed += change > 0;
        h->found += change > 0 && bad;
        /* The right kernel is within one bound of what is expected, so this is beyond it. */
        const int beyond = !rounded && change > 2 * d->bound_local[i] * (1 + 1e-9);
        h->beyond += beyond;
        h->missed += beyond && !bad;
    }
}

/* 0 where the mistake is none: it is what was declared, or another type of operand. */
static int can_be_made(const struct core *core, const struct spec *s)
{
    const int scaled = s->conventions.s_unit == ASC_UNIT_SCALED, f16 = core->accumulator == ASC_ACC_MMA_F16_F16;
    switch (s->mistake) {
    case S_SCALED_TWICE:
    case S_NOT_SCALED:
    case P_BASE_2:
        return scaled && !f16;
    case S_F16_ACCUMULATOR:
        return core->type == DTYPE_F16 && !f16;
    case S_ROUNDED_F16:
        return !f16;
    case O_TRUNCATED:
        return s->o_dtype == DTYPE_F16;
    default:
        return 1;
    }
}

/* Typical mistakes on every tensor core: found in each element that they move by more than twice the bound,
   and laid to the stage that made them. */
static void tensor_core_mutants(void **state)
{
    (void)state;
    enum { KINDS = 4, AT_MOST = 64 * 64 };
    static double numbers[5][AT_MOST];
    static uint8_t classes[2][AT_MOST];
    struct judge_scratch *scratch = judge_scratch_new();
    assert_non_null(scratch);
    for (int m = 0; m < MUTANTS; m++) {
        struct hunt sum = {0};
        for (int i = 0; i < CORES * KINDS; i++) {
            const struct core *core = &cores[i % CORES];
            struct spec s = core_spec(core, i / CORES);
            struct kernel_run *right = kernel_run(&s);
            s.mistake = mutants[m].mistake;
            struct kernel_run *run = can_be_made(core, &s) ? kernel_run(&s) : NULL;
            struct hunt h = {.mutant = &mutants[m], .right = right, .run = run};
            struct tile_detail d = {.each = look,
                                    .ctx = &h,
                                    .got = numbers[0],
                                    .want_local = numbers[1],
                                    .bound_local = numbers[2],
                                    .want_global = numbers[3],
                                    .bound_global = numbers[4],
                                    .class_local = classes[0],
                                    .class_global = classes[1]};
            if (run)
                assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
            const unsigned bad = run ? bad_stages(run, 0) : 0;
            if (h.missed || (bad && bad != 1u << mutants[m].stage) || (h.beyond && !bad))
                fail_msg("%s, %s, fill %d: %llu of %llu elements missed, stages %x bad", mutants[m].name,
                         tensor_core_name(core->core), (int)s.fill, (unsigned long long)h.missed,
                         (unsigned long long)h.beyond, bad);
            sum.changed += h.changed;
            sum.beyond += h.beyond;
            sum.found += h.found;
            kernel_run_free(right);
            if (run)
                kernel_run_free(run);
        }
        print_message("# %-25s %8llu elements changed, %8llu by more than two bounds, %8llu found\n", mutants[m].name,
                      (unsigned long long)sum.changed, (unsigned long long)sum.beyond, (unsigned long long)sum.found);
        assert_true(sum.beyond > 1000 || mutants[m].stage == asc_o);
        assert_true(mutants[m].stage != asc_o || 100 * sum.found >= 99 * sum.changed);
    }
    judge_scratch_free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(campaign), cmocka_unit_test(tensor_cores),
                                       cmocka_unit_test(tensor_core_mutants)};
    return cmocka_run_group_tests_name("oracle: use of the bounds", tests, NULL, NULL);
}
