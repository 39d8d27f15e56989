/* Attribution of an output's error: runs whose only fault is known by construction. */
#include "engine/oracle/bound.h"
#include "engine/oracle/quantization/attribution.h"
#include "engine/oracle/quantization/flow.h"
#include "engine/oracle/quantization/formats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 3, KEYS = 10, DIM = 4, BC = 4, TILES = 3 };

/* A run whose channels are float64 arrays: what is captured is what a test says. */
struct run {
    struct oracle_case given, run;
    struct matrix captured[TILES * ASC_CHANNELS];
    double q[ROWS * DIM], k[KEYS * DIM], v[KEYS * DIM];
    double used_q[ROWS * DIM], used_k[KEYS * DIM], used_v[KEYS * DIM];
    double s[TILES][ROWS * BC], m[TILES][ROWS], p[TILES][ROWS * BC], o[ROWS * DIM];
};

static const struct matrix nothing[TILES * ASC_CHANNELS];

static double noise(void)
{
    return (double)(rand() % 20001 - 10000) / 1e4;
}

static struct matrix matrix_of(const double *data, int rows, int cols, int stride)
{
    return (struct matrix){data, DTYPE_F64, stride, rows, cols};
}

static void begin(struct run *x, int causal)
{
    *x = (struct run){.given = {.scale = 0.5,
                                .causal = causal,
                                .window_left = -1,
                                .window_right = -1,
                                .q_len = ROWS,
                                .kv_len = KEYS,
                                .head_dim = DIM,
                                .head_dim_v = DIM,
                                .br = ROWS,
                                .bc = BC,
                                .kv_tiles = TILES}};
    srand(11);
    for (int i = 0; i < ROWS * DIM; i++)
        x->used_q[i] = x->q[i] = noise();
    for (int i = 0; i < KEYS * DIM; i++) {
        x->used_k[i] = x->k[i] = noise();
        x->used_v[i] = x->v[i] = noise();
    }
    x->given.captured = nothing;
    x->given.in_q = matrix_of(x->q, ROWS, DIM, DIM);
    x->given.in_k = matrix_of(x->k, KEYS, DIM, DIM);
    x->given.in_v = matrix_of(x->v, KEYS, DIM, DIM);
}

static int cols_of(int tile)
{
    return KEYS - tile * BC < BC ? KEYS - tile * BC : BC;
}

/* S of what was used, in natural units, m its running maximum, P of that. */
static void compute(struct run *x)
{
    double s[ROWS * KEYS];
    x->run = x->given;
    x->run.captured = nothing;
    x->run.conventions.s_unit = x->run.conventions.m_unit = ASC_UNIT_SCALED;
    flow_scores(&x->run, x->used_q, x->used_k, s);
    for (int r = 0; r < ROWS; r++) {
        double m = -INFINITY;
        for (int t = 0; t < TILES; t++) {
            for (int j = 0; j < cols_of(t); j++) {
                x->s[t][r * BC + j] = s[r * KEYS + t * BC + j];
                m = fmax(m, x->s[t][r * BC + j]);
            }
            x->m[t][r] = m;
            for (int j = 0; j < cols_of(t); j++)
                x->p[t][r * BC + j] = m == -INFINITY ? 0 : exp(x->s[t][r * BC + j] - m);
        }
    }
}

/* Captures it, and makes O of it, P being rounded as the conventions say. */
static void finish(struct run *x, unsigned channels)
{
    double s[ROWS * KEYS], w[ROWS * KEYS];
    for (int t = 0; t < TILES; t++) {
        struct matrix *tile = x->captured + (size_t)t * ASC_CHANNELS;
        if (channels & 1u << asc_k)
            tile[asc_k] = matrix_of(x->used_k + (size_t)t * BC * DIM, cols_of(t), DIM, DIM);
        if (channels & 1u << asc_v)
            tile[asc_v] = matrix_of(x->used_v + (size_t)t * BC * DIM, cols_of(t), DIM, DIM);
        if (channels & 1u << asc_s)
            tile[asc_s] = matrix_of(x->s[t], ROWS, cols_of(t), BC);
        if (channels & 1u << asc_m)
            tile[asc_m] = matrix_of(x->m[t], ROWS, 1, 1);
        if (channels & 1u << asc_p)
            tile[asc_p] = matrix_of(x->p[t], ROWS, cols_of(t), BC);
    }
    x->captured[asc_q] = matrix_of(x->used_q, ROWS, DIM, DIM);
    x->captured[asc_o] = matrix_of(x->o, ROWS, DIM, DIM);
    x->run.captured = x->captured;
    flow_scores(&x->run, x->used_q, x->used_k, s);
    flow_run_scores(&x->run, s, s);
    flow_run_weights(&x->run, s, &(struct flow_weights){.w = w});
    flow_output(&x->run, w, x->used_v, x->o);
}

#define ALL (1u << asc_k | 1u << asc_v | 1u << asc_s | 1u << asc_m | 1u << asc_p)

static double size_of(const struct attribution *a, enum player player)
{
    double most = 0;
    for (int i = 0; i < ROWS * DIM; i++)
        most = fmax(most, fabs(a->part[player][i]));
    return most;
}

static void adds_up(const struct attribution *a)
{
    for (int i = 0; i < ROWS * DIM; i++) {
        double sum = 0, sizes = fabs(a->o_run[i]) + fabs(a->o_given[i]);
        for (int p = 0; p < PLAYERS; p++) {
            sum += a->part[p][i];
            sizes += fabs(a->part[p][i]);
        }
        assert_true(fabs(sum - (a->o_run[i] - a->o_given[i])) <= attribution_rounding(a) * sizes);
    }
}

/* The player alone has a part; by keys it is the same. */
static void only(const struct attribution *a, enum player culprit)
{
    double share[PLAYERS], keys[KEYS];
    adds_up(a);
    for (int p = 0; p < PLAYERS; p++)
        if (p != (int)culprit)
            assert_true(size_of(a, (enum player)p) <= 1e-14);
    assert_true(size_of(a, culprit) > 1e-3);
    attribution_shares(a, 0, ROWS, share);
    assert_float_equal(share[culprit], 1, 1e-10);
    for (int i = 0; i < ROWS * DIM; i++) {
        double sum = 0;
        attribution_keys(a, culprit, i / DIM, i % DIM, keys);
        for (int j = 0; j < KEYS; j++)
            sum += keys[j];
        assert_float_equal(sum, a->part[culprit][i], 1e-13);
    }
}

static void exact_runs_have_no_error(void **state)
{
    (void)state;
    struct run x;
    struct attribution a;
    double share[PLAYERS];
    begin(&x, ASC_CAUSAL_TOP_LEFT);
    compute(&x);
    finish(&x, ALL);
    assert_int_equal(attribution_make(&x.given, &x.run, &a), 0);
    assert_true(a.s_recorded && a.p_recorded);
    adds_up(&a);
    for (int p = 0; p < PLAYERS; p++)
        assert_true(size_of(&a, (enum player)p) <= 1e-14);
    memcpy(a.o_run, a.o_given, sizeof x.o);
    attribution_shares(&a, 0, ROWS, share);
    assert_true(isnan(share[PLAYER_V]));
    attribution_free(&a);
    attribution_free(&a);
}

static void each_operand_alone(void **state)
{
    (void)state;
    static const enum player players[] = {PLAYER_Q, PLAYER_K, PLAYER_V};
    for (int which = 0; which < 3; which++) {
        struct run x;
        struct attribution a;
        begin(&x, ASC_CAUSAL_NONE);
        for (int i = 0; i < KEYS * DIM; i++) {
            if (which == 0 && i < ROWS * DIM)
                x.used_q[i] = bound_round(DTYPE_E4M3, x.q[i]);
            if (which == 1)
                x.used_k[i] = bound_round(DTYPE_E4M3, x.k[i]);
            if (which == 2)
                x.used_v[i] = bound_round(DTYPE_E4M3, x.v[i]);
        }
        compute(&x);
        finish(&x, ALL);
        assert_int_equal(attribution_make(&x.given, &x.run, &a), 0);
        only(&a, players[which]);
        attribution_free(&a);
    }
}

/* A wrong score is the rest's; where S was not recorded, it is told as P's. */
static void scores_are_the_rest(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        struct run x;
        struct attribution a;
        begin(&x, ASC_CAUSAL_NONE);
        compute(&x);
        x.s[1][2] += 0.25;
        x.p[1][2] = exp(x.s[1][2] - x.m[1][0]);
        finish(&x, recorded ? ALL : ALL & ~(1u << asc_s));
        assert_int_equal(attribution_make(&x.given, &x.run, &a), 0);
        assert_int_equal(a.s_recorded, recorded);
        only(&a, recorded ? PLAYER_REST : PLAYER_P);
        attribution_free(&a);
    }
}

/* Scores are multiples of ln 2, so that P times 2^8 is a number of e4m3; at one key of the second step the frame lags
   and it is 512. */
static void saturated_at_one_step(void **state)
{
    (void)state;
    for (int sums = 0; sums < 2; sums++) {
        struct run x;
        struct attribution a;
        struct attribution_step step;
        double keys[KEYS];
        begin(&x, ASC_CAUSAL_NONE);
        compute(&x);
        memset(x.q, 0, sizeof x.q);
        memset(x.k, 0, sizeof x.k);
        for (int r = 0; r < ROWS; r++)
            x.q[(size_t)r * DIM] = 2 * M_LN2;
        for (int j = 0; j < KEYS; j++)
            x.k[(size_t)j * DIM] = j == 6 ? 1 : -(double)(j % 3);
        memcpy(x.used_q, x.q, sizeof x.q);
        memcpy(x.used_k, x.k, sizeof x.k);
        compute(&x);
        x.run.conventions.p_rounded = ASC_P_E4M3;
        x.run.conventions.p_offset = 8;
        x.run.conventions.l_from = sums;
        for (int t = 0; t < TILES; t++)
            for (int i = 0; i < ROWS * BC; i++) {
                x.m[t][i / BC] = 0;
                x.p[t][i] = ldexp(rint(exp(x.s[t][i]) * 4) / 4, 8);
            }
        finish(&x, ALL);
        assert_int_equal(attribution_make(&x.given, &x.run, &a), 0);
        only(&a, PLAYER_P);
        attribution_keys(&a, PLAYER_P, 1, 2, keys);
        attribution_largest(&a, PLAYER_P, 1, 2, keys, &step);
        assert_int_equal(step.key, 6);
        assert_int_equal(step.fate, FATE_SATURATED);
        assert_float_equal(step.was, 512, 0);
        assert_float_equal(step.is, 448, 0);
        attribution_free(&a);
    }
}

static void flushed_weights(void **state)
{
    (void)state;
    struct run x;
    struct attribution a;
    struct attribution_step step;
    double keys[KEYS];
    begin(&x, ASC_CAUSAL_NONE);
    memset(x.k, 0, sizeof x.k);
    for (int r = 0; r < ROWS; r++)
        x.q[(size_t)r * DIM] = 2 * M_LN2;
    for (int j = 1; j < KEYS; j++)
        x.k[(size_t)j * DIM] = -11; /* 2^-11 is less than half of the least e4m3 number */
    for (int j = 1; j < KEYS; j++)
        x.v[(size_t)j * DIM] = 100;
    memcpy(x.used_v, x.v, sizeof x.v);
    memcpy(x.used_q, x.q, sizeof x.q);
    memcpy(x.used_k, x.k, sizeof x.k);
    compute(&x);
    x.run.conventions.p_rounded = ASC_P_E4M3;
    finish(&x, ALL & ~(1u << asc_p | 1u << asc_m)); /* P as its declared type makes it */
    assert_int_equal(attribution_make(&x.given, &x.run, &a), 0);
    assert_false(a.p_recorded);
    only(&a, PLAYER_P);
    attribution_keys(&a, PLAYER_P, 0, 0, keys);
    attribution_largest(&a, PLAYER_P, 0, 0, keys, &step);
    assert_true(step.key >= 1);
    assert_int_equal(step.fate, FATE_FLUSHED);
    attribution_free(&a);
}

/* What rounding does to every value of a type is told from what it cannot have done. */
static void fates(void **state)
{
    (void)state;
    static const int types[] = {DTYPE_E4M3, DTYPE_E5M2, DTYPE_U8};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int i = -2000; i <= 2000; i++) {
            const float scale = 0.75f;
            const double most = formats_limit((enum dtype)types[t]) * (double)scale;
            float was = (float)(i < 0 ? -1 : 1) * (float)(most * exp2(-abs(i) / 100.0)), is;
            formats_round_trip((enum dtype)types[t], scale, &was, 1, &is);
            const enum fate fate = attribution_fate((double)was, (double)is, types[t], (double)scale);
            assert_true(fate == (is == was ? FATE_EXACT : is == 0 ? FATE_FLUSHED : FATE_ROUNDED));
            /* As an operand in f16; twice as large is no rounding where steps are no larger than the value. */
            const double half = bound_round(DTYPE_F16, (double)is);
            if (is != 0 && half != (double)was)
                assert_int_equal(attribution_fate((double)was, half, types[t], (double)scale), FATE_ROUNDED);
            if (fabs((double)is) > 2 * (double)scale)
                assert_int_equal(attribution_fate((double)was, 2 * (double)is, types[t], (double)scale), FATE_CHANGED);
        }
    assert_int_equal(attribution_fate(464, 448, DTYPE_E4M3, 1), FATE_ROUNDED); /* half a step beyond the largest */
    assert_int_equal(attribution_fate(465, 448, DTYPE_E4M3, 1), FATE_SATURATED);
    assert_int_equal(attribution_fate(-465, -448, DTYPE_E4M3, 1), FATE_SATURATED);
    assert_int_equal(attribution_fate(465, -448, DTYPE_E4M3, 1), FATE_CHANGED);
    assert_int_equal(attribution_fate(465, 1, DTYPE_E4M3, 1), FATE_CHANGED);
    assert_int_equal(attribution_fate(465, NAN, DTYPE_E4M3, 1), FATE_OVERFLOWED);
    assert_int_equal(attribution_fate(1, NAN, DTYPE_E4M3, 1), FATE_CHANGED);
    assert_int_equal(attribution_fate(NAN, INFINITY, -1, 1), FATE_CHANGED);
    assert_int_equal(attribution_fate(7.7e4, INFINITY, -1, 1), FATE_OVERFLOWED);
    assert_int_equal(attribution_fate(0x1p-10, 0, DTYPE_E4M3, 1), FATE_FLUSHED);
    assert_int_equal(attribution_fate(1, 0, DTYPE_E4M3, 1), FATE_CHANGED);
    assert_int_equal(attribution_fate(1.466, 176, DTYPE_E4M3, 0.008), FATE_CHANGED); /* its scale was left out */
    assert_int_equal(attribution_fate(1 + 0x1p-9, 1, -1, 1), FATE_ROUNDED);
}

static void all_at_once_adds_up(void **state)
{
    (void)state;
    for (int causal = 0; causal < 3; causal++) {
        struct run x;
        struct attribution a;
        double share[PLAYERS], sum = 0;
        begin(&x, causal);
        for (int i = 0; i < KEYS * DIM; i++) {
            x.used_k[i] = bound_round(DTYPE_E4M3, x.k[i]);
            x.used_v[i] = bound_round(DTYPE_E4M3, x.v[i]);
        }
        compute(&x);
        x.run.conventions.p_rounded = ASC_P_E4M3;
        finish(&x, ALL);
        for (int i = 0; i < ROWS * DIM; i++)
            x.o[i] = bound_round(DTYPE_F16, x.o[i]);
        assert_int_equal(attribution_make(&x.given, &x.run, &a), 0);
        adds_up(&a);
        assert_true(size_of(&a, PLAYER_REST) > 0);
        attribution_shares(&a, 0, ROWS, share);
        for (int p = 0; p < PLAYERS; p++)
            sum += share[p];
        assert_float_equal(sum, 1, 1e-10);
        attribution_free(&a);
    }
}

static void no_output_no_attribution(void **state)
{
    (void)state;
    struct run x;
    struct attribution a;
    begin(&x, ASC_CAUSAL_NONE);
    compute(&x);
    finish(&x, ALL);
    x.captured[asc_o].data = NULL;
    assert_int_equal(attribution_make(&x.given, &x.run, &a), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_runs_have_no_error), cmocka_unit_test(each_operand_alone),
        cmocka_unit_test(scores_are_the_rest),      cmocka_unit_test(saturated_at_one_step),
        cmocka_unit_test(flushed_weights),          cmocka_unit_test(fates),
        cmocka_unit_test(all_at_once_adds_up),      cmocka_unit_test(no_output_no_attribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
