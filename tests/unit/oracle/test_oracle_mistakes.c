/* Each mistake is blamed on the stage that makes it, and on no other; nothing unreal ever passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

#define SET(channel) (1u << asc_##channel)

static const struct spec base = {.q_len = 128,
                                 .kv_len = 180,
                                 .head_dim = 64,
                                 .br = 64,
                                 .bc = 64,
                                 .q_tile = 1,
                                 .conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED},
                                 .p_dtype = DTYPE_F32};

static struct kernel_run *judged(const struct spec *s)
{
    struct kernel_run *run = kernel_run(s);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    return run;
}

static void blames_the_stage(void **state)
{
    (void)state;
    const struct {
        enum mistake mistake;
        unsigned local;  /* exactly these stages */
        unsigned global; /* at least these */
    } cases[] = {
        {RIGHT, 0, 0},
        {S_SCALED_TWICE, SET(s), SET(s) | SET(m) | SET(alpha) | SET(p) | SET(l) | SET(u) | SET(o) | SET(lse)},
        {S_NOT_SCALED, SET(s), SET(s) | SET(m) | SET(alpha) | SET(p) | SET(l) | SET(u) | SET(o) | SET(lse)},
        {S_K_NOT_TRANSPOSED, SET(s), SET(s) | SET(p) | SET(u) | SET(o)},
        {S_LAST_PRODUCT, SET(s), SET(s) | SET(o)},
        {S_PLUS_MILLI, SET(s), SET(s) | SET(m) | SET(lse)},
        {S_ROUNDED_F16, SET(s), SET(s)},
        {S_CAUSAL_OFF_BY_ONE, SET(s), SET(s) | SET(p) | SET(u) | SET(o)},
        {S_TAIL_COUNTED, SET(s), SET(l) | SET(o)},
        {M_PARTIAL, SET(m), SET(m)},
        {ALPHA_INVERTED, SET(alpha), SET(alpha) | SET(l) | SET(u)},
        {P_BASE_2, SET(p), SET(p) | SET(l) | SET(u) | SET(o)},
        {L_ALPHA_FORGOTTEN, SET(l), SET(l) | SET(o) | SET(lse)},
        {L_ALPHA_TWICE, SET(l), SET(l) | SET(o) | SET(lse)},
        {L_PREVIOUS_KEPT, SET(l), SET(l) | SET(o) | SET(lse)},
        {U_KEY_MISSING, SET(u), SET(u) | SET(o)},
        {U_ALPHA_FORGOTTEN, SET(u), SET(u) | SET(o)},
        {U_ALPHA_TWICE, SET(u), SET(u) | SET(o)},
        {O_UNNORMALIZED, SET(o), SET(o)},
        {O_TRUNCATED, SET(o), 0},
        {LSE_BASE_2, SET(lse), SET(lse)},
        {K_ROW_SWAPPED, SET(k), SET(k) | SET(s)},
        {V_ELEMENT_LOST, SET(v), SET(v) | SET(u) | SET(o)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int reversed = 0; reversed < 2; reversed++) {
            struct spec s = base;
            s.mistake = cases[i].mistake;
            s.reversed = reversed;
            s.causal = s.mistake == S_CAUSAL_OFF_BY_ONE ? ASC_CAUSAL_TOP_LEFT : ASC_CAUSAL_NONE;
            struct kernel_run *run = judged(&s);
            const unsigned local = bad_stages(run, 0), global = bad_stages(run, 1);
            if (local != cases[i].local || (global & cases[i].global) != cases[i].global)
                fail_msg("mistake %d, reversed %d: local %x, expected %x; global %x, expected %x", (int)s.mistake,
                         reversed, local, cases[i].local, global, cases[i].global);
            kernel_run_free(run);
        }
    }
}

/* What stands before the mistake is right globally, too. */
static void upstream_stays_right(void **state)
{
    (void)state;
    struct spec s = base;
    s.mistake = S_SCALED_TWICE;
    struct kernel_run *run = judged(&s);
    assert_int_equal(bad_stages(run, 1) & (SET(q) | SET(k) | SET(v)), 0);
    const struct verdict *v = &run->out[asc_s].local;
    assert_int_equal(v->count[CLASS_OFF], 64 * 64);
    assert_true(fabsf(v->ratio_median - 0.125f) < 1e-6f && v->ratio_spread < 1e-6f);
    assert_true(v->worst_ratio > 100 && v->visited && !v->masked);
    kernel_run_free(run);
    s.mistake = O_UNNORMALIZED;
    run = judged(&s);
    assert_int_equal(bad_stages(run, 1), SET(o));
    kernel_run_free(run);
}

/* The next stage falls back on what is expected of the unrecorded one: the mistake surfaces there. */
static void blame_moves_past_unrecorded(void **state)
{
    (void)state;
    struct spec s = base;
    s.mistake = S_SCALED_TWICE;
    s.unrecorded = SET(s);
    struct kernel_run *run = judged(&s);
    assert_int_equal(bad_stages(run, 0) & (SET(q) | SET(k) | SET(v)), 0);
    assert_int_equal(bad_stages(run, 0) & SET(m), SET(m));
    assert_int_equal(run->out[asc_s].local.judged, 0);
    kernel_run_free(run);
    s.mistake = L_ALPHA_TWICE;
    s.unrecorded = SET(s) | SET(m) | SET(alpha) | SET(p) | SET(l);
    run = judged(&s);
    assert_int_equal(bad_stages(run, 0), SET(o) | SET(lse));
    kernel_run_free(run);
}

static double unreal(int which)
{
    return which == 0 ? NAN : which == 1 ? INFINITY : which == 2 ? -INFINITY : 0;
}

/* NaN, both infinities and "never written" in any place of any channel. */
static void nothing_unreal_passes(void **state)
{
    (void)state;
    const enum tile_status wanted[] = {CLASS_NAN, CLASS_INF, CLASS_INF, CLASS_MISSING};
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        for (int which = 0; which < 4; which++) {
            for (int at = 0; at < 3; at++) {
                struct spec s = base;
                s.causal = ASC_CAUSAL_TOP_LEFT;
                struct kernel_run *run = kernel_run(&s);
                const int kv = channel_per_kv(ch) ? at % 2 : 0;
                const struct matrix *m = &run->captured[kv * ASC_CHANNELS + ch];
                /* Column 0 is visible to every row. */
                const size_t place = at == 0 ? 0 : (size_t)((m->rows - 1) * m->row_stride);
                const uint32_t pattern = UNWRITTEN_32;
                void *array = run_array(run, (enum asc_channel)ch, kv);
                if (which == 3)
                    memcpy((char *)array + place * dtype_bytes(m->dtype), &pattern, dtype_bytes(m->dtype));
                else
                    dtype_store(m->dtype, array, place, unreal(which));
                assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
                const struct tile_verdicts *v = &run->out[kv * ASC_CHANNELS + ch];
                if (v->local.count[wanted[which]] != 1 || v->global.count[wanted[which]] != 1 ||
                    verdict_ok(&v->local) || verdict_ok(&v->global) || v->local.worst_ratio != INFINITY)
                    fail_msg("%s, value %d at %d: local %u global %u", channel_name(ch), which, at,
                             v->local.count[wanted[which]], v->global.count[wanted[which]]);
                kernel_run_free(run);
            }
        }
    }
}

static void masked_elements(void **state)
{
    (void)state;
    const double values[] = {1.0, INFINITY, NAN};
    const enum tile_status wanted[] = {CLASS_EXTRA, CLASS_INF, CLASS_NAN};
    for (int i = 0; i < 4; i++) {
        for (int padding = 0; padding < 2; padding++) {
            struct spec s = base;
            s.causal = ASC_CAUSAL_TOP_LEFT;
            s.q_len = 300;
            s.q_tile = padding ? 3 : 0;
            struct kernel_run *run = kernel_run(&s);
            const int kv = padding ? 2 : 0;
            float *array = run_array(run, asc_s, kv);
            const uint32_t pattern = UNWRITTEN_32;
            if (i < 3)
                array[3 * 64 + 60] = (float)values[i];
            else
                memcpy(&array[3 * 64 + 60], &pattern, sizeof pattern);
            assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
            const struct tile_verdicts *v = &run->out[kv * ASC_CHANNELS + asc_s];
            if (i < 3) {
                assert_int_equal(v->local.count[wanted[i]], 1);
                assert_int_equal(verdict_bad(&v->local), 1);
                assert_int_equal(v->local.worst_col, 60);
            } else {
                assert_int_equal(verdict_bad(&v->local), 0); /* neither padding nor a masked key has to be written */
            }
            kernel_run_free(run);
        }
    }
}

/* S and P of a loop that ends at the diagonal hold nothing beyond it, whatever the masked score would have been; one
   element less is missed. */
static void masked_elements_left_out(void **state)
{
    (void)state;
    const uint32_t pattern = UNWRITTEN_32;
    const struct asc_conventions declared[] = {{.s_at = ASC_S_MASKED},
                                               {.s_masked = ASC_MASKED_UNTOUCHED},
                                               {.s_masked = ASC_MASKED_VALUE, .s_masked_value = -30000},
                                               {.s_at = ASC_S_DOT},
                                               {.p_rounded = ASC_P_F16, .l_from = ASC_L_ROUNDED}};
    for (size_t i = 0; i < 3 * sizeof declared / sizeof declared[0]; i++) {
        const enum asc_channel short_of = i % 3 == 1 ? asc_s : asc_p;
        struct spec s = base;
        s.conventions = declared[i / 3];
        s.causal = ASC_CAUSAL_TOP_LEFT;
        s.q_tile = 0;
        struct kernel_run *run = kernel_run(&s);
        float *const array[] = {run_array(run, asc_s, 0), run_array(run, asc_p, 0)};
        for (int r = 0; r < s.br; r++)
            for (int col = r + 1; col < s.bc; col++)
                for (int k = 0; k < 2; k++)
                    memcpy(&array[k][r * s.bc + col], &pattern, sizeof pattern);
        if (i % 3)
            memcpy(&array[short_of == asc_p][5 * s.bc + 5], &pattern, sizeof pattern);
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad_stages(run, 0), i % 3 ? 1u << short_of : 0);
        assert_int_equal(run->out[short_of].local.count[CLASS_MISSING], i % 3 ? 1 : 0);
        kernel_run_free(run);
    }
}

static void skipped_tiles(void **state)
{
    (void)state;
    struct spec s = base;
    s.skip = 1;
    struct kernel_run *run = judged(&s);
    const struct tile_verdicts *last = &run->out[(size_t)2 * ASC_CHANNELS];
    const enum asc_channel per_tile[] = {asc_k, asc_v, asc_s, asc_m, asc_alpha, asc_p, asc_l, asc_u};
    for (size_t i = 0; i < sizeof per_tile / sizeof per_tile[0]; i++) {
        const struct verdict *v = &last[per_tile[i]].local;
        const struct matrix *m = &run->captured[2 * ASC_CHANNELS + (int)per_tile[i]];
        assert_int_equal(v->count[CLASS_MISSING], m->rows * m->cols);
        assert_int_equal(v->visited, 0);
        assert_int_equal(v->masked, 0);
        assert_false(verdict_ok(&last[per_tile[i]].global));
    }
    /* The epilogue only passes on what it was given. */
    assert_true(verdict_ok(&run->out[asc_o].local) && verdict_ok(&run->out[asc_lse].local));
    assert_false(verdict_ok(&run->out[asc_o].global) || verdict_ok(&run->out[asc_lse].global));
    assert_true(verdict_ok(&run->out[ASC_CHANNELS + asc_u].global));
    kernel_run_free(run);

    s = base;
    s.causal = ASC_CAUSAL_TOP_LEFT;
    s.q_tile = 0;
    run = judged(&s);
    for (size_t i = 0; i < sizeof per_tile / sizeof per_tile[0]; i++) {
        const struct verdict *v = &run->out[2 * ASC_CHANNELS + (int)per_tile[i]].local;
        assert_true(verdict_ok(v) && v->masked && !v->visited);
    }
    kernel_run_free(run);
}

/* A visiting order that repeats or leaves the problem must not upset anything. */
static void odd_orders(void **state)
{
    (void)state;
    struct kernel_run *run = kernel_run(&base);
    const int order[] = {0, 0, -1, 1, 99, 2, 1};
    run->c.order = order;
    run->c.n_visited = 7;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
    kernel_run_free(run);
}

static struct tile_detail detail_of(int ch, int kv)
{
    struct tile_detail d = {.channel = ch, .kv = kv};
    assert_int_equal(tile_detail_make(&d, (size_t)64 * 64), 0);
    return d;
}

static void detail_agrees_with_verdict(void **state)
{
    (void)state;
    struct spec s = base;
    s.mistake = S_SCALED_TWICE;
    s.causal = ASC_CAUSAL_TOP_LEFT;
    struct kernel_run *run = kernel_run(&s);
    for (int i = 0; i < 3 * ASC_CHANNELS; i++) {
        const int ch = i % ASC_CHANNELS, kv = i / ASC_CHANNELS;
        if (kv > 0 && !channel_per_kv(ch))
            continue;
        struct tile_detail d = detail_of(ch, kv);
        assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
        const struct matrix *m = &run->captured[i];
        assert_int_equal(d.rows, m->rows);
        assert_int_equal(d.cols, m->cols);
        uint32_t count[2][CLASS_COUNT] = {{0}};
        for (int e = 0; e < d.rows * d.cols; e++) {
            const size_t at = (size_t)(e / d.cols * m->row_stride + e % d.cols);
            const double got = dtype_load(m->dtype, m->data, at);
            assert_true(d.got[e] == got || (isnan(d.got[e]) && isnan(got)));
            count[0][d.class_local[e]]++;
            count[1][d.class_global[e]]++;
        }
        if (run->out[i].local.visited) {
            assert_memory_equal(count[0], run->out[i].local.count, sizeof count[0]);
            assert_memory_equal(count[1], run->out[i].global.count, sizeof count[1]);
        }
        tile_detail_free(&d);
    }
    /* The scores wanted are eight times those found. */
    struct tile_detail d = detail_of(asc_s, 0);
    assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
    assert_true(fabs(d.want_local[0] - 8 * d.got[0]) <= 8 * d.bound_local[0]);
    assert_true(d.want_global[0] == d.want_local[0]);
    tile_detail_free(&d);
    kernel_run_free(run);
}

/* The pass condition is error <= bound, to the last bit: S is recorded in f64 here, so that any value can be set. */
static void edge_of_the_bound(void **state)
{
    (void)state;
    struct kernel_run *run = kernel_run(&base);
    struct matrix *m = &run->captured[asc_s];
    double *wide = calloc((size_t)m->rows * (size_t)m->cols, sizeof *wide);
    for (int i = 0; i < m->rows * m->cols; i++)
        wide[i] = dtype_load(m->dtype, m->data, (size_t)i);
    *m = (struct matrix){wide, DTYPE_F64, m->cols, m->rows, m->cols};
    struct tile_detail d = detail_of(asc_s, 0);
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int i = 0; i < 64 * 64; i += 97) {
            assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
            const double want = d.want_local[i], bound = d.bound_local[i], kept = wide[i];
            /* The outermost double whose computed distance is still within the bound. */
            double edge = want + sign * bound;
            while (fabs(edge - want) > bound)
                edge = nextafter(edge, want);
            while (fabs(nextafter(edge, sign * INFINITY) - want) <= bound)
                edge = nextafter(edge, sign * INFINITY);
            wide[i] = edge;
            assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
            assert_int_equal(d.class_local[i], CLASS_OK);
            assert_int_equal(verdict_bad(&run->out[asc_s].local), 0);
            wide[i] = nextafter(edge, sign * INFINITY);
            assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
            assert_int_equal(d.class_local[i], CLASS_OFF);
            assert_int_equal(run->out[asc_s].local.count[CLASS_OFF], 1);
            assert_int_equal(run->out[asc_s].local.worst_row, i / 64);
            assert_int_equal(run->out[asc_s].local.worst_col, i % 64);
            assert_true(run->out[asc_s].local.worst_ratio >= 1);
            wide[i] = kept;
        }
    }
    tile_detail_free(&d);
    free(wide);
    kernel_run_free(run);
}

/* A narrow channel passes from round(want - bound) to round(want + bound): one step further on either side is off. */
static void edge_of_the_interval(void **state)
{
    (void)state;
    struct kernel_run *run = kernel_run(&base);
    struct tile_detail d = detail_of(asc_o, 0);
    uint16_t *o = run_array(run, asc_o, 0);
    for (int i = 0; i < 64 * 64; i += 61) {
        assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
        const uint16_t kept = o[i];
        for (int step = -2; step <= 2; step++) {
            o[i] = (uint16_t)(kept + step);
            const double got = dtype_load(DTYPE_F16, o, (size_t)i), want = d.want_local[i], bound = d.bound_local[i];
            double ends[2] = {want - bound, want + bound};
            uint16_t codes[2] = {0, 0};
            for (size_t end = 0; end < 2; end++) {
                dtype_store(DTYPE_F16, codes, end, ends[end]);
                ends[end] = dtype_load(DTYPE_F16, codes, end);
            }
            const int inside = got >= ends[0] && got <= ends[1];
            assert_true(step != 0 || inside);
            assert_true((step != 2 && step != -2) || !inside);
            assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
            assert_int_equal(d.class_local[i], inside ? CLASS_OK : CLASS_OFF);
            assert_int_equal(run->out[asc_o].local.worst_ratio > 1, !inside);
        }
        o[i] = kept;
    }
    tile_detail_free(&d);
    kernel_run_free(run);
}

/* Of equally bad elements the first is named. */
static void first_of_the_worst(void **state)
{
    (void)state;
    struct kernel_run *run = kernel_run(&base);
    float *score = run_array(run, asc_s, 1);
    score[7 * 64 + 9] = NAN;
    score[7 * 64 + 8] = INFINITY;
    score[30 * 64 + 1] = NAN;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    const struct verdict *v = &run->out[ASC_CHANNELS + asc_s].local;
    assert_int_equal(v->worst_row, 7);
    assert_int_equal(v->worst_col, 8);
    assert_int_equal(v->count[CLASS_NAN], 2);
    kernel_run_free(run);
}

/* A wrong maximum is m's fault alone: what stands on it is right in its own frame. */
static void a_wrong_frame_is_only_a_frame(void **state)
{
    (void)state;
    struct spec s = base;
    s.mistake = M_PARTIAL;
    struct kernel_run *run = judged(&s);
    assert_int_equal(bad_stages(run, 1), SET(m) | SET(alpha));
    kernel_run_free(run);
}

/* Keys beyond kv_len take part in this run's maximum if their scores do. */
static void padding_counts_in_the_maximum(void **state)
{
    (void)state;
    struct kernel_run *run = kernel_run(&base);
    float *score = run_array(run, asc_s, 2);
    score[5 * 64 + 63] = 100;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    assert_int_equal(run->out[2 * ASC_CHANNELS + asc_s].local.count[CLASS_EXTRA], 1);
    assert_int_equal(run->out[2 * ASC_CHANNELS + asc_m].local.count[CLASS_OFF], 1);
    assert_int_equal(run->out[2 * ASC_CHANNELS + asc_m].global.count[CLASS_OFF], 0);
    kernel_run_free(run);
}

/* Captured maxima that make no frame: nothing traps, nothing unreal passes, o is still judged by the reference. */
static void absurd_frames(void **state)
{
    (void)state;
    const float frames[] = {1e30f, -1e30f, 200, -200, 3.4e38f};
    for (int i = 0; i < 5; i++) {
        struct kernel_run *run = kernel_run(&base);
        float *m = run_array(run, asc_m, 1);
        for (int r = 0; r < 64; r++)
            m[r] = frames[i];
        float *p = run_array(run, asc_p, 1);
        p[5] = NAN;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        const struct tile_verdicts *tile = &run->out[ASC_CHANNELS];
        assert_int_equal(tile[asc_m].local.count[CLASS_OFF], 64);
        assert_int_equal(tile[asc_m].global.count[CLASS_OFF], 64);
        assert_int_equal(tile[asc_p].global.count[CLASS_NAN], 1);
        assert_true(verdict_ok(&run->out[asc_o].global) && verdict_ok(&run->out[asc_lse].global));
        kernel_run_free(run);
    }
}

/* NaN and infinity in the input: found there, and the stages that pass them on are not to blame. */
static void input_is_the_origin(void **state)
{
    (void)state;
    for (int infinite = 0; infinite < 2; infinite++) {
        struct spec s = base;
        struct kernel_run *run = kernel_run(&s);
        const uint16_t code = infinite ? 0x7C00 : 0x7E00;
        ((uint16_t *)run->k)[70 * 64 + 3] = code;
        ((uint16_t *)run_array(run, asc_k, 1))[6 * 64 + 3] = code;
        float *score = run_array(run, asc_s, 1);
        for (int r = 0; r < 64; r++)
            score[r * 64 + 6] = NAN;
        float *m = run_array(run, asc_m, 1);
        m[0] = NAN;
        run->c.conventions.max_nan = ASC_MAX_PROPAGATES;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        const struct tile_verdicts *tile = &run->out[ASC_CHANNELS];
        assert_int_equal(tile[asc_k].local.count[infinite ? CLASS_INF : CLASS_NAN], 1);
        assert_true(verdict_ok(&tile[asc_s].local));
        /* Nothing follows from a NaN: that is no ok, and no fault either. */
        assert_int_equal(tile[asc_m].local.unjudged, 64);
        assert_false(tile[asc_m].local.judged || verdict_bad(&tile[asc_m].local));
        run->c.conventions.max_nan = ASC_MAX_DROPS;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(tile[asc_m].local.count[CLASS_NAN], 0); /* the score's, which went through all the same */
        assert_int_equal(tile[asc_m].local.unjudged, 1);
        assert_int_equal(tile[asc_m].global.count[CLASS_NAN], 1);
        assert_true(verdict_ok(&tile[asc_p].local));
        assert_int_equal(tile[asc_s].global.count[CLASS_NAN], 64);
        assert_false(verdict_ok(&run->out[asc_o].global));
        kernel_run_free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blames_the_stage),
        cmocka_unit_test(upstream_stays_right),
        cmocka_unit_test(blame_moves_past_unrecorded),
        cmocka_unit_test(nothing_unreal_passes),
        cmocka_unit_test(masked_elements),
        cmocka_unit_test(masked_elements_left_out),
        cmocka_unit_test(skipped_tiles),
        cmocka_unit_test(odd_orders),
        cmocka_unit_test(detail_agrees_with_verdict),
        cmocka_unit_test(edge_of_the_bound),
        cmocka_unit_test(edge_of_the_interval),
        cmocka_unit_test(first_of_the_worst),
        cmocka_unit_test(a_wrong_frame_is_only_a_frame),
        cmocka_unit_test(padding_counts_in_the_maximum),
        cmocka_unit_test(absurd_frames),
        cmocka_unit_test(input_is_the_origin),
    };
    return cmocka_run_group_tests_name("oracle: mistakes", tests, scratch_begin, scratch_end);
}
