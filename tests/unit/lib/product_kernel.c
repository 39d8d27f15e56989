#include "tests/unit/lib/product_kernel.h"

#include "engine/base/format.h"
#include "engine/oracle/bound.h"
#include "engine/trace/layout.h"
#include "tests/unit/lib/scratch.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static void fill(const struct setup *s, uint16_t *codes, int n, uint64_t *state)
{
    for (int i = 0; i < n; i++) {
        double x = -6;
        for (int j = 0; j < 12; j++)
            x += (double)(next(state) >> 11) * 0x1p-53;
        if (s->positive)
            x = fabs(x) + 0.5;
        if (s->dyadic)
            x = round(x * 2) / 2;
        dtype_store(s->type, codes, (size_t)i, x);
    }
}

static const void *row_of(const struct setup *s, const uint16_t *codes, int row)
{
    return (const char *)codes + (size_t)row * D * dtype_bytes(s->type);
}

/* out [BR][n] = start + A B' of two arrays of codes, A [BR][k]. */
struct factors {
    const void *a, *b;
    int n, k;
    ptrdiff_t b_row, b_k;
};

static void multiply(const struct setup *s, const struct factors *x, const float *start, float *out)
{
    static _Alignas(32) unsigned char room[2][65536];
    uint16_t a[BR * 64];
    uint16_t b[64 * 64];
    struct tensor_core_operand left;
    struct tensor_core_operand right;
    assert_true(tensor_core_room(BR, x->k) <= sizeof room[0] && tensor_core_room(x->n, x->k) <= sizeof room[1]);
    const void *from_a = x->a, *from_b = x->b;
    ptrdiff_t b_row = x->b_row;
    ptrdiff_t b_k = x->b_k;
    for (int k = 0; k < x->k && s->permuted; k++) {
        const int from = (k * 17 + 5) % x->k;
        for (int i = 0; i < BR; i++)
            dtype_store(s->type, a, (size_t)i * (size_t)x->k + (size_t)k,
                        dtype_load(s->type, x->a, (size_t)i * (size_t)x->k + (size_t)from));
        for (int j = 0; j < x->n; j++)
            dtype_store(s->type, b, (size_t)j * (size_t)x->k + (size_t)k,
                        dtype_load(s->type, x->b, (size_t)(j * x->b_row + from * x->b_k)));
        from_a = a;
        from_b = b;
        b_row = x->k;
        b_k = 1;
    }
    tensor_core_take(&left, room[0], s->type, from_a, BR, x->k, x->k, 1);
    tensor_core_take(&right, room[1], s->type, from_b, x->n, x->k, b_row, b_k);
    tensor_core_product(s->core, &left, &right, start, x->n, out, x->n);
}

/* The first instruction's products alone (the other weights are zero), fused with the rescaling, then the others. */
static void multiply_fused(const struct setup *s, const struct run *run, int tile, const struct factors *x, float *u)
{
    uint8_t part[2][BR * BC]; /* codes of one byte; 0 is zero */
    const int step = tensor_core_step(s->core);
    assert_int_equal(dtype_bytes(s->type), 1);
    for (int i = 0; i < BR * x->k; i++)
        for (int late = 0; late < 2; late++)
            part[late][i] = (i % x->k >= step) == late ? ((const uint8_t *)x->a)[i] : 0;
    struct factors first = *x;
    struct factors others = *x;
    first.a = part[0];
    others.a = part[1];
    multiply(s, &first, NULL, u);
    for (int i = 0; i < BR * D; i++)
        u[i] = fmaf(run->alpha[tile][i / D], tile ? run->u[tile - 1][i] : 0, u[i]);
    multiply(s, &others, u, u);
}

/* The same in f32 from the last product to the first, columns first_col and on; drops: without the last product. */
static void multiply_scalar(const struct setup *s, const struct factors *x, const float *start, float *out,
                            int first_col, int drops)
{
    for (int i = 0; i < BR; i++) {
        for (int j = first_col; j < x->n; j++) {
            float sum = start ? start[i * x->n + j] : 0;
            for (int k = x->k - 1 - drops; k >= 0; k--)
                sum += (float)dtype_load(s->type, x->a, (size_t)i * (size_t)x->k + (size_t)k) *
                       (float)dtype_load(s->type, x->b, (size_t)(j * x->b_row + k * x->b_k));
            out[i * x->n + j] = sum;
        }
    }
}

int sums_in_f16(const struct setup *s)
{
    return s->core == TENSOR_CORE_H100_F16 || s->core == TENSOR_CORE_WGMMA_E4M3_F16;
}

float half(float x)
{
    return f16_to_f32(f16_from_f32(x));
}

static float result(const struct setup *s, float x)
{
    return s->rounds ? half(x) : x;
}

static float factor(const struct setup *s, float x)
{
    return s->rounds == PRODUCT_HALF_FACTORS ? half(x) : x;
}

static float nudge(float x)
{
    return format_f32_of(format_f32_bits(x) ^ 1);
}

static float toward_zero(double x)
{
    const float nearest = (float)x;
    return fabs((double)nearest) > fabs(x) ? format_f32_of(format_f32_bits(nearest) - 1) : nearest;
}

static float scale_score(const struct setup *s, float dot, float scale, int tile)
{
    const enum fault fault = s->fault == S_ALL_QUARTER_ULP || tile == 1 ? s->fault : NO_FAULT;
    if (s->unit == ASC_UNIT_RAW || s->fold == s->unit)
        return dot;
    if (s->unit == ASC_UNIT_LOG2)
        return s->join == 1 ? result(s, result(s, dot * factor(s, scale)) * factor(s, (float)M_LOG2E))
                            : result(s, dot * factor(s, scale * (float)M_LOG2E));
    if (fault == S_QUARTER_ULP || fault == S_ALL_QUARTER_ULP) {
        const double exact = (double)dot * (double)scale;
        return exact != 0 ? (float)(exact + ldexp(0.25, ilogb(exact) - 23)) : dot;
    }
    return fault == S_TRUNCATED_SCALE ? toward_zero((double)dot * (double)scale) : result(s, dot * factor(s, scale));
}

static void run_tile(struct run *run, int tile)
{
    const struct setup *s = &run->setup;
    float *score = run->s[tile], *p = run->p[tile], *u = run->u[tile];
    const void *keys = row_of(s, run->k, tile * BC), *values = row_of(s, run->v, tile * BC);
    void *p16 = run->p16[tile];
    float start[BR * D];
    float dot[BR * BC];
    const float scale = (float)run->c.scale;
    const struct factors scores = {run->q, keys, BC, D, D, 1};
    const int scalar = s->fault >= SCALAR_TAIL && tile == TILES - 1;
    const int scalar_u = scalar && s->fault != SCALAR_COLUMNS;
    multiply(s, &scores, NULL, dot);
    if (scalar)
        multiply_scalar(s, &scores, NULL, dot, s->fault == SCALAR_COLUMNS ? BC - 8 : 0,
                        s->fault == SCALAR_TAIL_LAST_PRODUCT);
    if (scalar && s->fault == SCALAR_TAIL_ONE_FAR)
        dot[41 * BC + 17] += 1e-3f;
    for (int r = 0; r < BR; r++) {
        const float before = tile ? run->m[tile - 1][r] : -INFINITY;
        const int visible = s->causal ? KV - BR + r - tile * BC + 1 : BC;
        float top = before;
        float sum = 0;
        for (int j = 0; j < BC; j++) {
            float x = dot[r * BC + j];
            if (s->fault == S_LAST_PRODUCT && tile == 1)
                x -= (float)(dtype_load(s->type, run->q, (size_t)r * D + D - 1) *
                             dtype_load(s->type, run->k, ((size_t)tile * BC + (size_t)j) * D + D - 1));
            x = j < visible ? scale_score(s, x, scale, tile) : -INFINITY;
            if (s->fault == S_CUT && tile == 1)
                x = format_f32_of(format_f32_bits(x) & ~7u);
            if (s->fault == S_ONE_BIT && tile == 2 && r == 37 && j == 21)
                x = nudge(x);
            score[r * BC + j] = x;
            top = fmaxf(top, x);
        }
        const double unit = s->unit == ASC_UNIT_RAW ? (double)scale : s->unit == ASC_UNIT_LOG2 ? M_LN2 : 1;
        run->alpha[tile][r] = tile ? (float)exp((double)(before - top) * unit) : 0;
        for (int j = 0; j < BC; j++) {
            const float weight = (float)exp((double)(score[r * BC + j] - top) * unit);
            const size_t at = (size_t)r * BC + (size_t)j;
            p[at] = weight;
            dtype_store(s->type, p16, at, (double)weight);
            if (s->fault == P_TRUNCATED && dtype_load(s->type, p16, at) > (double)weight)
                ((uint16_t *)p16)[at]--;
            sum += weight;
        }
        run->m[tile][r] = top;
        run->l[tile][r] = (tile ? run->l[tile - 1][r] * run->alpha[tile][r] : 0) + sum;
        for (int d = 0; d < D; d++)
            start[r * D + d] = tile ? result(s, factor(s, run->alpha[tile][r]) * run->u[tile - 1][r * D + d]) : 0;
        for (int d = 0; d < D && sums_in_f16(s) && s->join == PRODUCT_CARRIES && !scalar_u; d++)
            start[r * D + d] = half(start[r * D + d]);
    }
    const struct factors outputs = {p16, values, D, BC, 1, D};
    if (s->join == PRODUCT_FUSES)
        multiply_fused(s, run, tile, &outputs, u);
    else
        multiply(s, &outputs, s->join == PRODUCT_CARRIES ? start : NULL, u);
    if (scalar_u)
        multiply_scalar(s, &outputs, s->join == PRODUCT_CARRIES ? start : NULL, u, 0, 0);
    for (int i = 0; i < BR * D && (s->join == PRODUCT_ADDS || s->join == PRODUCT_FMA); i++) {
        const float before = tile ? run->u[tile - 1][i] : 0;
        u[i] = result(s, s->join == PRODUCT_ADDS ? start[i] + u[i]
                                                 : fmaf(factor(s, run->alpha[tile][i / D]), before, u[i]));
    }
    if (s->fault == U_ONE_BIT && tile == 3)
        u[5 * D + 63] = nudge(u[5 * D + 63]);
    if (s->fault == S_NAN && tile == 2)
        score[3 * BC + 3] = NAN;
}

static void capture(struct run *run, enum asc_channel ch, int tile, const void *data, enum dtype t, int rows, int cols)
{
    run->captured[tile * ASC_CHANNELS + (int)ch] = (struct matrix){data, t, cols, rows, cols};
}

struct run *run_new(const struct setup *s)
{
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    uint64_t state = s->seed * UINT64_C(1000);
    run->setup = *s;
    fill(s, run->q, BR * D, &state);
    fill(s, run->k, KV * D, &state);
    fill(s, run->v, KV * D, &state);
    const struct matrix keys = {run->k, s->type, D, KV, D}, values = {run->v, s->type, D, KV, D};
    run->c = (struct oracle_case){.scale = 0.125f * 1.1f,
                                  .causal = s->causal,
                                  .window_left = -1,
                                  .window_right = -1,
                                  .q_len = BR,
                                  .kv_len = KV,
                                  .head_dim = D,
                                  .head_dim_v = D,
                                  .br = BR,
                                  .bc = BC,
                                  .o_dtype = DTYPE_F16,
                                  .in_q = {run->q, s->type, D, BR, D},
                                  .in_k = keys,
                                  .in_v = values,
                                  .kv_tiles = TILES,
                                  .captured = run->captured,
                                  .order = run->order,
                                  .n_visited = TILES};
    struct asc_conventions *conventions = &run->c.conventions;
    conventions->acc_s = conventions->acc_u = s->acc;
    conventions->s_unit = conventions->m_unit = s->unit;
    conventions->q_fold = s->fold;
    conventions->p_rounded = !s->f32_p               ? ASC_P_AS_RECORDED
                             : s->type == DTYPE_F16  ? ASC_P_F16
                             : s->type == DTYPE_BF16 ? ASC_P_BF16
                                                     : ASC_P_E4M3;
    capture(run, asc_q, 0, run->q, s->type, BR, D);
    for (int tile = 0; tile < TILES; tile++) {
        run_tile(run, tile);
        run->order[tile] = tile;
        capture(run, asc_k, tile, row_of(s, run->k, tile * BC), s->type, BC, D);
        capture(run, asc_v, tile, row_of(s, run->v, tile * BC), s->type, BC, D);
        capture(run, asc_s, tile, run->s[tile], DTYPE_F32, BR, BC);
        capture(run, asc_m, tile, run->m[tile], DTYPE_F32, BR, 1);
        capture(run, asc_alpha, tile, run->alpha[tile], DTYPE_F32, BR, 1);
        capture(run, asc_l, tile, run->l[tile], DTYPE_F32, BR, 1);
        for (int i = 0; i < BR * D; i++)
            run->u16[tile][i] = f16_from_f32(run->u[tile][i]);
        capture(run, asc_u, tile, s->f16_u ? (const void *)run->u16[tile] : run->u[tile],
                s->f16_u ? DTYPE_F16 : DTYPE_F32, BR, D);
        capture(run, asc_p, tile, s->f32_p ? (const void *)run->p[tile] : run->p16[tile],
                s->f32_p ? DTYPE_F32 : s->type, BR, BC);
    }
    return run;
}

void judge(struct run *run, struct fingerprint *f)
{
    memset(f, 0, sizeof *f);
    for (unsigned i = 0; i < CASES; i++) {
        struct setup other = run->setup;
        other.seed += i * 100;
        struct run *neighbor = i ? run_new(&other) : run;
        assert_int_equal(fingerprint_add(f, &neighbor->c, scratch, (int)i, FINGERPRINT_BLOCKS / CASES), 0);
        if (i)
            free(neighbor);
    }
    run->c.fingerprint = f;
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
}

uint32_t bad(const struct run *run, enum asc_channel ch, int global)
{
    uint32_t n = 0;
    for (int tile = 0; tile < TILES; tile++) {
        const struct tile_verdicts *v = &run->out[tile * ASC_CHANNELS + (int)ch];
        n += verdict_bad(global ? &v->global : &v->local);
    }
    return n;
}

int exact(const struct run *run, enum asc_channel ch)
{
    return run->out[ASC_CHANNELS + (int)ch].local.exact - 1;
}

void expect_exact(const struct setup *s, int core_s, int core_u)
{
    struct fingerprint f;
    struct run *run = run_new(s);
    judge(run, &f);
    if (exact(run, asc_s) != core_s || exact(run, asc_u) != core_u)
        fail_msg("%s, accumulator %d, unit %d, join %d: S is taken for %d, U for %d", tensor_core_name(s->core), s->acc,
                 s->unit, s->join, exact(run, asc_s), exact(run, asc_u));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int global = 0; global < 2; global++)
            if (bad(run, (enum asc_channel)ch, global))
                fail_msg("%s: %u elements of %s are off, %s", tensor_core_name(s->core),
                         bad(run, (enum asc_channel)ch, global), channel_name((enum asc_channel)ch),
                         global ? "globally" : "locally");
    free(run);
}
