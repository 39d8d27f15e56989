/* Biased rounding is found, at the stage where it is; correct runs raise nothing, and where nothing can be said it is
   said why. Ten thousand correct runs: make bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/lib/rounding_runs.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

/* One head of (1,8,512,64). */
static struct rounding_run mission(enum rounding_mistake mistake)
{
    struct rounding_run r = {.q_tiles = 8, .mistake = mistake};
    r.spec = (struct spec){.q_len = 512, .kv_len = 512, .head_dim = 64, .br = 64, .bc = 64, .seed = 7};
    r.spec.conventions.s_unit = r.spec.conventions.m_unit = ASC_UNIT_SCALED;
    r.spec.conventions.l_from = ASC_L_ROUNDED;
    if (mistake == S_QUARTER_ULP || mistake == S_ROUNDED_DOWN) /* what follows stands on the scores as they were */
        r.spec.unrecorded = ~(1u << asc_q | 1u << asc_k | 1u << asc_s) & ((1u << ASC_CHANNELS) - 1);
    return r;
}

static struct rounding_result result;

static const struct rounding_cell *judge(const struct rounding_run *r, enum asc_channel ch)
{
    rounding_judge(r, scratch, &result);
    return rounding_all(&result, ch);
}

static void expect(const struct rounding_cell *cell, enum rounding_state state, enum rounding_evidence evidence)
{
    char words[256];
    rounding_words(asc_s, cell, words, sizeof words);
    if (cell->state != state || cell->evidence != evidence)
        fail_msg("expected %s by %s, found %s by %s: %s", rounding_state_word(state), rounding_evidence_name(evidence),
                 rounding_state_word(cell->state), rounding_evidence_name(cell->evidence), words);
}

static unsigned found(void)
{
    unsigned set = 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int kv = 0; kv <= result.kv_tiles; kv++)
            if (result.cells[ch * (result.kv_tiles + 1) + kv].state == ROUNDING_FOUND)
                set |= 1u << ch;
    return set;
}

static void quarter_of_an_ulp_in_one_run(void **state)
{
    (void)state;
    const struct rounding_run r = mission(S_QUARTER_ULP);
    const struct rounding_cell *all = judge(&r, asc_s);
    expect(all, ROUNDING_FOUND, ROUNDING_BY_REGRESSION);
    assert_int_equal(found(), 1u << asc_s);
    assert_true(all->size > 0.12 && all->size < 0.18 && all->z > 20);
    for (int kv = 0; kv < 8; kv++)
        expect(&result.cells[(int)asc_s * 9 + kv], ROUNDING_FOUND, ROUNDING_BY_REGRESSION);
}

static void quarter_of_an_ulp_by_negation(void **state)
{
    (void)state;
    struct rounding_run r = mission(S_QUARTER_ULP);
    r.negation = 1;
    const struct rounding_cell *all = judge(&r, asc_s);
    expect(all, ROUNDING_FOUND, ROUNDING_BY_NEGATION);
    const double share = (double)all->broken / (double)all->compared;
    assert_true(share > 0.45 && share < 0.55);
    assert_true(all->size > 0.12 && all->size < 0.18);
    assert_int_equal(found(), 1u << asc_s);
}

/* What a regression must not judge, a second run does. */
static void negation_where_signs_are_unbalanced(void **state)
{
    (void)state;
    static const enum fill fills[] = {FILL_POSITIVE, FILL_COMMON_MEAN};
    for (int i = 0; i < 2; i++) {
        struct rounding_run r = mission(S_QUARTER_ULP);
        r.spec.fill = fills[i];
        r.spec.q_len = r.spec.kv_len = 128;
        r.q_tiles = 2;
        const struct rounding_cell *all = judge(&r, asc_s);
        expect(all, ROUNDING_INCONCLUSIVE, ROUNDING_BY_NOTHING);
        assert_int_equal(all->why, ROUNDING_UNBALANCED);
        r.negation = 1;
        expect(judge(&r, asc_s), ROUNDING_FOUND, ROUNDING_BY_NEGATION);
    }
}

static void rounding_down(void **state)
{
    (void)state;
    struct rounding_run r = mission(S_ROUNDED_DOWN);
    r.spec.q_len = r.spec.kv_len = 128;
    r.q_tiles = 2;
    expect(judge(&r, asc_s), ROUNDING_FOUND, ROUNDING_BY_REGRESSION);
    assert_true(rounding_all(&result, asc_s)->size < -0.2);
    r.negation = 1;
    expect(judge(&r, asc_s), ROUNDING_FOUND, ROUNDING_BY_NEGATION);
}

/* Of a conversion each element tells: no statistics. */
static void conversions_rounded_down(void **state)
{
    (void)state;
    static const struct {
        enum rounding_mistake mistake;
        enum asc_channel channel;
    } conversions[] = {{P_ROUNDED_DOWN, asc_p}, {O_ROUNDED_DOWN, asc_o}};
    for (int i = 0; i < 2; i++) {
        struct rounding_run r = mission(conversions[i].mistake);
        r.spec.q_len = 64;
        r.spec.kv_len = 128;
        r.spec.p_dtype = DTYPE_F16;
        r.q_tiles = 1;
        const struct rounding_cell *all = judge(&r, conversions[i].channel);
        expect(all, ROUNDING_FOUND, ROUNDING_BY_CONVERSION);
        assert_true(all->size < -0.4 && all->size > -0.6);
        assert_true((double)all->off > 0.4 * (double)all->elements);
        r.mistake = ROUNDING_RIGHT;
        expect(judge(&r, conversions[i].channel), ROUNDING_NONE, ROUNDING_BY_CONVERSION);
        assert_true(fabs(rounding_all(&result, conversions[i].channel)->steps) <
                    0.05 * (double)rounding_all(&result, conversions[i].channel)->elements);
    }
}

static void last_product_dropped(void **state)
{
    (void)state;
    for (int core = 0; core < 2; core++) {
        struct rounding_run r = mission(S_LAST_PRODUCT_DROPPED);
        r.spec.q_len = r.spec.kv_len = 128;
        r.q_tiles = 2;
        r.fingerprint = core;
        if (core) {
            r.spec.core = 1 + TENSOR_CORE_H100;
            r.spec.conventions.acc_s = r.spec.conventions.acc_u = ASC_ACC_MMA_F16;
            r.spec.p_dtype = DTYPE_F16;
        }
        const struct rounding_cell *all = judge(&r, asc_s);
        expect(all, ROUNDING_FOUND, ROUNDING_BY_BOUND);
        assert_true((double)all->off > 0.9 * (double)all->elements);
    }
}

static void u_pulled_up(void **state)
{
    (void)state;
    struct rounding_run r = mission(U_QUARTER_ULP);
    r.spec.q_len = 128;
    r.q_tiles = 2;
    expect(judge(&r, asc_u), ROUNDING_FOUND, ROUNDING_BY_REGRESSION);
    assert_int_equal(found(), 1u << asc_u);
}

/* A tensor core truncates: with its fingerprint its bits are asked for, and without it the slope takes it. */
static void tensor_cores_truncate(void **state)
{
    (void)state;
    struct rounding_run r = mission(ROUNDING_RIGHT);
    r.spec.core = 1 + TENSOR_CORE_A100;
    r.spec.conventions.acc_s = r.spec.conventions.acc_u = ASC_ACC_MMA_F16;
    r.spec.p_dtype = DTYPE_F16;
    r.spec.q_len = r.spec.kv_len = 256;
    r.q_tiles = 4;
    const struct rounding_cell *all = judge(&r, asc_s);
    expect(all, ROUNDING_NONE, ROUNDING_BY_REGRESSION);
    assert_true(all->fit.slope < -0.3 && all->fit.slope < -20 * all->fit.slope_error);
    assert_int_equal(found(), 0);
    r.fingerprint = 1;
    expect(judge(&r, asc_s), ROUNDING_NONE, ROUNDING_BY_BITS);
    expect(rounding_all(&result, asc_u), ROUNDING_NONE, ROUNDING_BY_BITS);
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        enum fill fill;
        enum rounding_state state;
        enum rounding_reason why;
    } fills[] = {{FILL_POSITIVE, ROUNDING_INCONCLUSIVE, ROUNDING_UNBALANCED},
                 {FILL_COMMON_MEAN, ROUNDING_INCONCLUSIVE, ROUNDING_UNBALANCED},
                 {FILL_CONSTANT, ROUNDING_INCONCLUSIVE, ROUNDING_REPEATED},
                 {FILL_ARANGE, ROUNDING_INCONCLUSIVE, ROUNDING_REPEATED}};
    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++) {
        struct rounding_run r = mission(ROUNDING_RIGHT);
        r.spec.fill = fills[i].fill;
        r.spec.conventions.s_unit = r.spec.conventions.m_unit = ASC_UNIT_RAW;
        const struct rounding_cell *all = judge(&r, asc_s);
        if (all->state != fills[i].state || all->why != fills[i].why)
            fail_msg("fill %d: %s, %s", (int)fills[i].fill, rounding_state_word(all->state),
                     rounding_reason_name(all->why));
        assert_int_equal(found(), 0);
    }
    struct rounding_run few = mission(ROUNDING_RIGHT);
    few.spec.q_len = few.spec.kv_len = 12;
    few.q_tiles = 1;
    assert_int_equal(judge(&few, asc_s)->why, ROUNDING_FEW);
    struct rounding_run capped = mission(ROUNDING_RIGHT);
    capped.spec.softcap = 20;
    capped.spec.q_len = 64;
    capped.q_tiles = 1;
    capped.spec.kv_len = 64;
    assert_int_equal(judge(&capped, asc_s)->why, ROUNDING_FUNCTION);
    struct rounding_run biased = mission(ROUNDING_RIGHT);
    biased.spec.bias_sigma = 1;
    biased.spec.q_len = 64;
    biased.q_tiles = 1;
    biased.spec.kv_len = 64;
    biased.negation = 1;
    assert_int_equal(judge(&biased, asc_s)->why, ROUNDING_TERMS);
    assert_int_equal(rounding_all(&result, asc_l)->why, ROUNDING_ONE_SIGN);
    assert_int_equal(rounding_all(&result, asc_lse)->why, ROUNDING_FUNCTION);
}

static void other_bits_are_no_bias(void **state)
{
    (void)state;
    struct rounding_cell cell = {.elements = 100, .compared = 100, .broken = 3, .even = 1, .unsteady = 1};
    rounding_decide(&cell);
    expect(&cell, ROUNDING_INCONCLUSIVE, ROUNDING_BY_NEGATION);
    assert_int_equal(cell.why, ROUNDING_UNSTEADY);
    cell.unsteady = 0;
    rounding_decide(&cell);
    expect(&cell, ROUNDING_FOUND, ROUNDING_BY_NEGATION);
    assert_true(cell.size == 0.01);
    cell.broken = 0;
    rounding_decide(&cell);
    expect(&cell, ROUNDING_NONE, ROUNDING_BY_NEGATION);
}

static void correct_runs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 250; i++) {
        const struct rounding_run r = rounding_correct_run(i);
        rounding_judge(&r, scratch, &result);
        if (found())
            fail_msg("run %u: found in %x", i, found());
    }
}

/* A correct kernel does not drift; one whose l grows too fast does. */
static void drift_of_what_needs_no_frame(void **state)
{
    (void)state;
    struct rounding_run r = mission(ROUNDING_RIGHT);
    r.spec.q_len = 128;
    r.spec.p_dtype = DTYPE_F32;
    r.q_tiles = 2;
    judge(&r, asc_l);
    for (int curve = 0; curve < ROUNDING_CURVES; curve++)
        for (int kv = 0; kv < 8; kv++) {
            const struct rounding_drift *d = &result.drift[curve * 8 + kv];
            assert_int_equal((int)d->n, 128);
            assert_true(fabs(rounding_drift_mean(d)) < 1e-5 && rounding_drift_error(d) < 1e-6);
        }
    r.spec.conventions.l_from = ASC_L_UNROUNDED;
    r.spec.mistake = L_PREVIOUS_KEPT; /* l is not added to */
    judge(&r, asc_l);
    assert_true(rounding_drift_mean(&result.drift[7]) < -0.3);
    assert_true(rounding_drift_mean(&result.drift[8 + 7]) > 0.3); /* and u / l grows */
    struct rounding_drift one = {.n = 1, .sum = 1, .squares = 1};
    assert_true(isnan(rounding_drift_error(&one)));
}

/* Against sums that are made element by element. */
static void clustered_variance(void **state)
{
    (void)state;
    enum { N = 24 };
    static double y[N][N];
    struct cluster rows[N] = {0}, cols[N] = {0};
    struct cluster_total total = {0};
    uint64_t seed = 5;
    double of_row[N], of_col[N], g[N][N];
    for (int i = 0; i < N; i++) {
        of_row[i] = test_normal(&seed);
        of_col[i] = test_normal(&seed);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            g[i][j] = test_random(&seed) % 2 ? 1 : -1;
            y[i][j] = 0.3 + 0.5 * g[i][j] + of_row[i] + of_col[j] + test_normal(&seed);
            cluster_add(&rows[i], &cols[j], &total, g[i][j], y[i][j]);
        }
    const struct clustered f = clustered_fit(rows, N, cols, N, &total);
    assert_int_equal(f.state, CLUSTERED_FITTED);
    double sg = 0, sy = 0, sgy = 0;
    for (int i = 0; i < N * N; i++) {
        sg += g[i / N][i % N];
        sy += y[i / N][i % N];
        sgy += g[i / N][i % N] * y[i / N][i % N];
    }
    const double n = N * N, determinant = n * n - sg * sg;
    const double a = (n * sy - sg * sgy) / determinant, b = (n * sgy - sg * sy) / determinant;
    assert_true(fabs(a - f.intercept) < 1e-12 && fabs(b - f.slope) < 1e-12);
    /* The row of the inverse that gives the intercept, applied to each score. */
    double by_row = 0, by_col = 0, by_element = 0;
    for (int i = 0; i < N; i++) {
        double row = 0, col = 0;
        for (int j = 0; j < N; j++) {
            row += (n - sg * g[i][j]) / determinant * (y[i][j] - a - b * g[i][j]);
            col += (n - sg * g[j][i]) / determinant * (y[j][i] - a - b * g[j][i]);
            by_element += pow((n - sg * g[i][j]) / determinant * (y[i][j] - a - b * g[i][j]), 2);
        }
        by_row += row * row;
        by_col += col * col;
    }
    const double variance = (by_row + by_col) * N / (N - 1.0) - by_element;
    assert_true(fabs(f.error - sqrt(variance)) < 1e-9);
    assert_true(f.error > 4 * sqrt(by_element)); /* independent elements would claim to know four times as much */
}

static void few_clusters_know_less(void **state)
{
    (void)state;
    /* Quantiles of Student's t with 15 degrees of freedom and the standard normal ones. */
    assert_true(fabs(clustered_normal(2.131450, 15) - 1.959964) < 0.01);
    assert_true(fabs(clustered_normal(4.072765, 15) - 3.290527) < 0.02);
    assert_true(fabs(clustered_normal(-2.131450, 15) + 1.959964) < 0.01);
    assert_true(fabs(clustered_normal(3.290527, 1e6) - 3.290527) < 1e-4);
    assert_true(clustered_normal(0, 20) == 0);
}

/* The edges between found, in doubt, none and too few. */
static void what_an_estimate_is_worth(void **state)
{
    (void)state;
    static const struct {
        double intercept, error, z;
        enum rounding_state state;
        enum rounding_reason why;
    } edges[] = {
        {0.05, 0.009, 5.51, ROUNDING_FOUND, ROUNDING_CLEAR},
        {0.0499, 0.009, 5.51, ROUNDING_NONE, ROUNDING_CLEAR}, /* smaller than what counts */
        {-0.08, 0.0145, -5.5, ROUNDING_INCONCLUSIVE, ROUNDING_DOUBT},
        {0.07, 0.017, 4.01, ROUNDING_INCONCLUSIVE, ROUNDING_DOUBT},
        {0.07, 0.017, 4, ROUNDING_NONE, ROUNDING_CLEAR},
        {0.01, 0.1 / 5.5 * 1.0001, 0.5, ROUNDING_INCONCLUSIVE, ROUNDING_FEW},
        {0.01, 0.1 / 5.5 * 0.9999, 0.5, ROUNDING_NONE, ROUNDING_CLEAR},
    };
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        struct rounding_cell cell = {.elements = 100, .fit = {.state = CLUSTERED_FITTED}};
        cell.fit.intercept = edges[i].intercept;
        cell.fit.error = edges[i].error;
        cell.fit.z = edges[i].z;
        rounding_decide(&cell);
        assert_int_equal(cell.state, edges[i].state);
        assert_int_equal(cell.why, edges[i].why);
    }
}

/* Heads add up; one in which it is found is enough. */
static void heads_together(void **state)
{
    (void)state;
    const struct clustered fit = {.state = CLUSTERED_FITTED, .intercept = 0.01, .error = 0.01, .z = 1};
    struct rounding_cell a = {.elements = 100, .fit = fit}, b = a, out;
    const struct rounding_cell *cells[] = {&a, &b};
    const int apart[] = {0, 1}, together[] = {0, 0};
    rounding_decide(&a);
    rounding_decide(&b);
    rounding_combine(cells, apart, 2, &out);
    expect(&out, ROUNDING_NONE, ROUNDING_BY_REGRESSION);
    assert_true(fabs(out.error - 0.01 / sqrt(2)) < 1e-9);
    rounding_combine(cells, together, 2, &out);
    assert_true(fabs(out.error - 0.01) < 1e-9); /* they may err as one */
    b.fit.intercept = 0.15;
    b.fit.z = 15;
    rounding_decide(&b);
    rounding_combine(cells, apart, 2, &out);
    expect(&out, ROUNDING_FOUND, ROUNDING_BY_REGRESSION);
    b = a;
    b.barred = ROUNDING_REPEATED;
    b.elements = 300;
    rounding_decide(&b);
    rounding_combine(cells, apart, 2, &out);
    expect(&out, ROUNDING_INCONCLUSIVE, ROUNDING_BY_NOTHING);
    assert_int_equal(out.why, ROUNDING_REPEATED);
    rounding_combine(cells, apart, 0, &out);
    assert_int_equal(out.state, ROUNDING_UNRECORDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quarter_of_an_ulp_in_one_run),
        cmocka_unit_test(quarter_of_an_ulp_by_negation),
        cmocka_unit_test(negation_where_signs_are_unbalanced),
        cmocka_unit_test(rounding_down),
        cmocka_unit_test(conversions_rounded_down),
        cmocka_unit_test(last_product_dropped),
        cmocka_unit_test(u_pulled_up),
        cmocka_unit_test(tensor_cores_truncate),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(other_bits_are_no_bias),
        cmocka_unit_test(what_an_estimate_is_worth),
        cmocka_unit_test(correct_runs),
        cmocka_unit_test(drift_of_what_needs_no_frame),
        cmocka_unit_test(clustered_variance),
        cmocka_unit_test(few_clusters_know_less),
        cmocka_unit_test(heads_together),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
