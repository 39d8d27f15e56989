/* A streaming-softmax kernel in plain C f32, with or without a mistake, recorded the way probes record: what the oracle
   is tried on. One q tile of one head. */
#ifndef TEST_ORACLE_KERNEL_H
#define TEST_ORACLE_KERNEL_H

#include "engine/base/tensor_core.h"
#include "engine/oracle/product.h"
#include "probes/layout.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum fill {
    FILL_NORMAL,
    FILL_LARGE,
    FILL_OUTLIERS,
    FILL_ZEROS,
    FILL_ONE_HOT,
    FILL_CONSTANT,
    FILL_ARANGE,
    FILL_POSITIVE,
    FILL_COMMON_MEAN
};
enum summing { SUM_FORWARD, SUM_BACKWARD, SUM_LANES };

enum mistake {
    RIGHT,
    /* listed causes */
    S_SCALED_TWICE,
    S_NOT_SCALED,
    S_K_NOT_TRANSPOSED,
    /* other mistakes of scores */
    S_SCALE_AND_HALF,
    S_SIGN,
    S_ROUNDED_F16,
    S_PLUS_MILLI,
    S_LAST_PRODUCT,
    S_RESULT_TRANSPOSED,
    S_NEIGHBOUR_TILE,
    S_NEXT_KEY,
    S_HALF_OF_D,
    S_Q_ROUNDED_BF16,
    S_ABSOLUTE,
    S_F16_ACCUMULATOR,
    S_SCALED_THRICE,
    S_SQUARED,
    S_CAUSAL_OFF_BY_ONE,
    S_TAIL_COUNTED,
    P_TAIL_COUNTED, /* S is masked there, P is 0.5 */
    /* later stages */
    M_PARTIAL,
    ALPHA_INVERTED,
    P_BASE_2,
    L_ALPHA_FORGOTTEN,
    L_ALPHA_TWICE,
    L_PREVIOUS_KEPT,
    U_KEY_MISSING,
    U_ALPHA_FORGOTTEN,
    U_ALPHA_TWICE,
    O_UNNORMALISED,
    O_TRUNCATED,
    LSE_BASE_2,
    M_LEFT_BEHIND, /* P stands on the new maximum, m does not */
    M_TOO_LOW,     /* by 100 on the first tile */
    WINDOW_OFF_BY_ONE,
    SOFTCAP_FORGOTTEN,
    K_ROW_SWAPPED,
    V_ELEMENT_LOST,
    MISTAKES
};

/* Mistakes about sinks, biases and splits. */
enum wrong_term {
    TERMS_RIGHT,
    SINK_FORGOTTEN,
    SINK_UNSCALED,       /* taken as a raw score */
    SINK_IN_EVERY_SPLIT, /* each begins with it */
    BIAS_FORGOTTEN,
    BIAS_NEXT_ROW,
    BIAS_SCALED, /* added before the scale */
    ALIBI_SIGN,
    ALIBI_TOP_LEFT, /* distances from the other diagonal */
    SPLIT_STATE_KEPT,
    SPLIT_EQUAL_WEIGHTS,
    SPLIT_LAST_LOST,
    SPLIT_UNGUARDED /* -inf - -inf where no split has a key */
};

struct spec {
    int q_len, kv_len, head_dim, br, bc, q_tile;
    enum asc_causal causal;
    int has_window, window_left, window_right; /* has_window 0: no window */
    float softcap, scale;                      /* scale 0: 1/sqrt(head_dim) */
    double tanh_error;                         /* relative error of every tanh */
    enum dtype dtype, o_dtype, p_dtype;        /* 0 is f16: inputs, output, recorded P */
    int converts;                              /* 1: the kernel rounds its inputs to `used` first */
    enum dtype used;
    struct asc_conventions conventions;
    enum fill fill;
    enum summing summing;
    int reversed;        /* visits kv tiles from the last to the first */
    int visits_masked;   /* visits tiles that no row sees */
    int skip;            /* leaves out this many kv tiles at the end of its walk */
    int folded;          /* natural units: exp2(fma(s, log2 e, -m log2 e)) */
    int v_padding_nan;   /* V's rows beyond kv_len are NaN instead of 0 */
    int skips_padding;   /* and P.V leaves them out */
    double exp_error;    /* relative error of every exponential, on top of expf's own */
    unsigned unrecorded; /* set of 1u << channel */
    int core;            /* 1 + enum tensor_core that multiplies; 0: f32, in the order that `summing` says */
    int join;            /* how a tensor core's P V comes to alpha u_prev: enum product_join */
    enum mistake mistake;
    int has_sink;
    float sink, alibi_slope;
    double bias_sigma; /* 0: no bias */
    int kv_splits;
    int merges_lse; /* each split gives o and lse; else m, l and u are merged as such */
    enum wrong_term wrong_term;
    unsigned seed;
};

struct kernel_run {
    struct spec spec;
    struct oracle_case c;
    struct matrix *captured, *padding; /* owned */
    void **arrays;                     /* owned, [kv_tiles][ASC_CHANNELS]: full tiles, or NULL */
    int *order;                        /* owned */
    int last_kv;                       /* the tile computed last, or -1 */
    void *q, *k, *v;                   /* owned, inputs: [q_len][D], [kv_len][D] */
    float *bias;                       /* owned, [q_len][kv_len], or NULL */
    float scale;
    struct tile_verdicts *out; /* owned */
};

static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline double test_normal(uint64_t *state)
{
    /* A sum of twelve uniform values: near enough, and the same bits everywhere. */
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(test_random(state) >> 11) * 0x1p-53;
    return sum;
}

static inline void *test_fill(const struct spec *s, int rows, uint64_t seed)
{
    const size_t n = (size_t)rows * (size_t)s->head_dim;
    uint64_t state = seed * 7919 + s->seed;
    void *data = calloc(n, 8);
    for (size_t i = 0; i < n; i++) {
        const size_t row = i / (size_t)s->head_dim, d = i % (size_t)s->head_dim;
        double x = test_normal(&state);
        if (s->fill == FILL_LARGE)
            x *= sqrt(30);
        else if (s->fill == FILL_OUTLIERS)
            x *= test_random(&state) % 64 == 0 ? 30 : 1;
        else if (s->fill == FILL_ZEROS)
            x = 0;
        else if (s->fill == FILL_ONE_HOT)
            x = row % (size_t)s->head_dim == d;
        else if (s->fill == FILL_CONSTANT)
            x = 0.5;
        else if (s->fill == FILL_ARANGE)
            x = ((double)(i % 251) - 125) / 128;
        else if (s->fill == FILL_POSITIVE)
            x = fabs(x);
        else if (s->fill == FILL_COMMON_MEAN)
            x += 3;
        dtype_store(s->dtype, data, i, x);
    }
    return data;
}

static inline float sum_products(const struct spec *s, const float *a, const float *b, int n, ptrdiff_t stride_b,
                                 float start)
{
    float lanes[4] = {0};
    float sum = start;
    if (s->summing == SUM_LANES) {
        for (int i = 0; i < n; i++)
            lanes[i & 3] += a[i] * b[i * stride_b];
        return start + ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
    }
    for (int i = 0; i < n; i++) {
        const int at = s->summing == SUM_FORWARD ? i : n - 1 - i;
        sum += a[at] * b[at * stride_b];
    }
    return sum;
}

static inline float round_to(enum dtype t, float x)
{
    uint64_t room = 0;
    dtype_store(t, &room, 0, x);
    return (float)dtype_load(t, &room, 0);
}

/* The keys a row sees, from the definition: one after the other. */
static inline int run_sees(const struct spec *s, int row, int key)
{
    const int i = s->q_tile * s->br + row + (s->mistake == S_CAUSAL_OFF_BY_ONE);
    const int diagonal = s->causal == ASC_CAUSAL_TOP_LEFT ? i : i + s->kv_len - s->q_len;
    const int left = s->window_left + (s->mistake == WINDOW_OFF_BY_ONE);
    if (key >= s->kv_len || (s->causal != ASC_CAUSAL_NONE && key > diagonal))
        return 0;
    return !s->has_window || ((s->window_left < 0 || key >= diagonal - left) &&
                              (s->window_right < 0 || key <= diagonal + s->window_right));
}

static inline int run_tile_masked(const struct spec *s, int kv, int rows)
{
    for (int r = 0; r < rows; r++)
        for (int col = 0; col < s->bc; col++)
            if (run_sees(s, r, kv * s->bc + col))
                return 0;
    return 1;
}

/* A number of `unit` is this many natural ones; top: what a raw one is. */
static inline float run_natural(int unit, float top)
{
    return unit == ASC_UNIT_RAW ? top : unit == ASC_UNIT_LOG2 ? (float)M_LN2 : 1;
}

static inline float run_fold(const struct kernel_run *run)
{
    const int fold = run->spec.conventions.q_fold;
    return fold == ASC_FOLD_NONE ? 1 : fold == ASC_FOLD_SCALE ? run->scale : run->scale * (float)M_LOG2E;
}

/* A natural number in unit `unit`. */
static inline float run_in_unit(const struct kernel_run *run, float x, int unit)
{
    const float top = run->spec.softcap > 0 ? run->spec.softcap : run->scale;
    return unit == ASC_UNIT_RAW ? x / top : unit == ASC_UNIT_LOG2 ? x * (float)M_LOG2E : x;
}

/* FlashAttention-2's ALiBi, from its definition: the column, where a causal row sees all keys up to its diagonal. */
static inline float run_alibi(const struct kernel_run *run, int row, int key)
{
    const struct spec *s = &run->spec;
    const int i = s->q_tile * s->br + row, bottom_right = i + s->kv_len - s->q_len;
    const int top_left = (s->causal == ASC_CAUSAL_TOP_LEFT) != (s->wrong_term == ALIBI_TOP_LEFT);
    const int right = s->causal != ASC_CAUSAL_NONE ? 0 : s->has_window ? s->window_right : -1;
    const int left = s->has_window && s->window_left < s->kv_len ? s->window_left : -1;
    const float slope = s->wrong_term == ALIBI_SIGN ? -s->alibi_slope : s->alibi_slope;
    if (s->conventions.alibi_form == ASC_ALIBI_FLASH && right == 0 && left < 0)
        return run_in_unit(run, slope, s->conventions.s_unit) * (float)key;
    return -run_in_unit(run, slope, s->conventions.s_unit) * (float)abs((top_left ? i : bottom_right) - key);
}

/* A score, in the unit of S, with its biases. */
static inline float run_biased(const struct kernel_run *run, float score, int row, int key)
{
    const struct spec *s = &run->spec;
    const int i = (s->q_tile * s->br + row + (s->wrong_term == BIAS_NEXT_ROW)) % s->q_len;
    if (s->wrong_term == BIAS_FORGOTTEN || key >= s->kv_len)
        return score;
    if (s->alibi_slope != 0)
        score += run_alibi(run, row, key);
    if (run->bias && s->wrong_term == BIAS_SCALED)
        score += run->scale * run->bias[(ptrdiff_t)i * s->kv_len + key];
    else if (run->bias)
        score += run_in_unit(run, run->bias[(ptrdiff_t)i * s->kv_len + key], s->conventions.s_unit);
    return score;
}

/* A plain score, in the unit of S, behind the soft cap. */
static inline float run_cap(const struct kernel_run *run, float score)
{
    const struct spec *s = &run->spec;
    if (!(s->softcap > 0) || s->mistake == SOFTCAP_FORGOTTEN)
        return score;
    const float x = score * run_natural(s->conventions.s_unit, run->scale);
    const float capped = (float)(tanh((double)(x / s->softcap)) * (1 + s->tanh_error));
    if (s->conventions.s_unit == ASC_UNIT_RAW)
        return capped;
    return s->softcap * capped * (s->conventions.s_unit == ASC_UNIT_LOG2 ? (float)M_LOG2E : 1);
}

/* Rows of an operand as a tensor core takes them: [rows][n], element (row, i) at x[row * row_stride + i * stride]. */
static inline void *run_operand(enum dtype t, const float *x, int rows, int n, ptrdiff_t row_stride, ptrdiff_t stride,
                                struct tensor_core_operand *out)
{
    uint64_t *codes = calloc((size_t)rows * (size_t)n + 1, sizeof *codes);
    void *room = aligned_alloc(32, tensor_core_room(rows, n));
    for (int i = 0; i < rows * n; i++)
        dtype_store(t, codes, (size_t)i, (double)x[i / n * row_stride + i % n * stride]);
    tensor_core_take(out, room, t, codes, rows, n, n, 1);
    free(codes);
    return room;
}

/* out [b->rows] = start + x b', x [n] in type t. */
static inline void run_product(enum tensor_core core, enum dtype t, const float *x, int n,
                               const struct tensor_core_operand *b, const float *start, float *out)
{
    struct tensor_core_operand a;
    void *room = run_operand(t, x, 1, n, n, 1, &a);
    tensor_core_product(core, &a, b, start, b->rows, out, b->rows);
    free(room);
}

/* dots: what a tensor core has made of the row; NULL: there is none. */
static inline float run_score(const struct kernel_run *run, const float *q, const float *k, const float *dots, int row,
                              int col, int kv)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    const float *a = q + row * D, *b = k + col * D;
    const int unit = s->conventions.s_unit;
    const float factor = (unit == ASC_UNIT_RAW    ? 1
                          : unit == ASC_UNIT_LOG2 ? run->scale * (float)M_LOG2E
                                                  : run->scale) /
                         run_fold(run);
    float other[512];
    float dot = 0;
    switch (dots ? RIGHT : s->mistake) {
    case S_K_NOT_TRANSPOSED:
        return factor * sum_products(s, a, k + col, D, D, 0);
    case S_LAST_PRODUCT:
        return factor * sum_products(s, a, b, D - 1, 1, 0);
    case S_HALF_OF_D:
        return factor * sum_products(s, a, b, D / 2, 1, 0);
    case S_NEXT_KEY:
        return factor * sum_products(s, a, k + (col + 1) % s->bc * D, D, 1, 0);
    case S_RESULT_TRANSPOSED:
        return factor * sum_products(s, q + col % s->br * D, k + row % s->bc * D, D, 1, 0);
    case S_NEIGHBOUR_TILE:
        for (int d = 0; d < D; d++)
            other[d] = (float)dtype_load(s->dtype, run->k, (size_t)(((kv + 1) * s->bc + col) % s->kv_len * D + d));
        return factor * sum_products(s, a, other, D, 1, 0);
    case S_Q_ROUNDED_BF16:
        for (int d = 0; d < D; d++)
            other[d] = round_to(DTYPE_BF16, a[d]);
        return factor * sum_products(s, other, b, D, 1, 0);
    case S_F16_ACCUMULATOR:
        for (int d = 0; d < D; d++)
            dot = round_to(DTYPE_F16, dot + a[d] * b[d]);
        return factor * dot;
    default:
        dot = dots ? dots[col] : sum_products(s, a, b, D, 1, 0);
    }
    if (s->core - 1 == TENSOR_CORE_H100_F16)
        return round_to(DTYPE_F16, dot * factor);
    switch (s->mistake) {
    case S_SCALED_TWICE:
        return dot * factor * run->scale;
    case S_SCALED_THRICE:
        return dot * factor * run->scale * run->scale;
    case S_NOT_SCALED:
        return dot;
    case S_SCALE_AND_HALF:
        return dot * (factor * 1.5f);
    case S_SIGN:
        return -dot * factor;
    case S_ROUNDED_F16:
        return round_to(DTYPE_F16, dot * factor);
    case S_PLUS_MILLI:
        return dot * factor + 1e-3f;
    case S_ABSOLUTE:
        return fabsf(dot) * factor;
    case S_SQUARED:
        return dot * dot * factor;
    default:
        return dot * factor;
    }
}

/* exp of a difference of two values in their units, the way kernels of that convention compute it. */
static inline float run_exp(const struct kernel_run *run, float x, int unit, float y)
{
    const float scale_log2 = (run->spec.softcap > 0 ? run->spec.softcap : run->scale) * (float)M_LOG2E;
    const double error = 1 + run->spec.exp_error;
    if (unit == ASC_UNIT_RAW)
        return (float)(exp2((double)(x * scale_log2 - y * scale_log2)) * error);
    if (unit == ASC_UNIT_SCALED && run->spec.folded)
        return exp2f(fmaf(x, (float)M_LOG2E, -(y * (float)M_LOG2E)));
    return (float)((unit == ASC_UNIT_LOG2 ? exp2((double)(x - y)) : exp((double)(x - y))) * error);
}

static inline enum dtype run_dtype(const struct spec *s, enum asc_channel ch)
{
    if (ch == asc_q || ch == asc_k || ch == asc_v)
        return s->converts ? s->used : s->dtype;
    return ch == asc_o ? s->o_dtype : ch == asc_p ? s->p_dtype : DTYPE_F32;
}

static inline void *run_array(const struct kernel_run *run, enum asc_channel ch, int kv)
{
    return run->arrays[(channel_per_kv(ch) ? kv : 0) * ASC_CHANNELS + (int)ch];
}

/* An input as the kernel uses it. */
static inline float run_input(const struct spec *s, const void *input, size_t i)
{
    const float x = (float)dtype_load(s->dtype, input, i);
    return s->converts ? round_to(s->used, x) : x;
}

static inline void run_record(const struct kernel_run *run, enum asc_channel ch, int kv, size_t i, float x)
{
    if (run_array(run, ch, kv))
        dtype_store(run_dtype(&run->spec, ch), run_array(run, ch, kv), i, x);
}

/* The kernel's state between tiles. */
struct state {
    float *q, *m, *l, *u; /* [br][D], [br], [br][lanes], [br][D] */
    int lanes;
    struct tensor_core_operand k, v; /* of the tile at hand, where there is a tensor core */
};

static inline float run_max(const struct spec *s, float a, float b)
{
    if (s->conventions.max_nan == ASC_MAX_PROPAGATES && (isnan(a) || isnan(b)))
        return NAN;
    return fmaxf(a, b);
}

/* What m becomes, `top` being the maximum of the scores so far. */
static inline float run_policy(const struct kernel_run *run, float before, float top)
{
    const struct spec *s = &run->spec;
    const float natural = run_natural(s->conventions.m_unit, s->softcap > 0 ? s->softcap : run->scale);
    if (s->conventions.m_policy == ASC_M_FIXED)
        return 5 / natural;
    if (s->conventions.m_policy == ASC_M_LAGGING && isfinite(before) &&
        (top - before) * natural * (float)M_LOG2E <= s->conventions.m_lag)
        return before;
    return top;
}

static inline float run_alpha(const struct kernel_run *run, float before, float top)
{
    const struct spec *s = &run->spec;
    const struct asc_conventions *c = &s->conventions;
    const float start = c->m_empty == ASC_EMPTY_FINITE ? c->m_start : -INFINITY;
    if ((c->alpha_first == ASC_ALPHA_ONE && before == start) ||
        (c->alpha_first == ASC_ALPHA_ONE_FIRST && run->last_kv < 0))
        return 1;
    if (before == -INFINITY)
        return 0;
    const float alpha = run_exp(run, before, c->m_unit, top);
    return s->mistake == ALPHA_INVERTED ? 1 / alpha : alpha;
}

static inline enum dtype run_p_type(const struct spec *s)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    return s->conventions.p_rounded ? types[s->conventions.p_rounded] : s->p_dtype;
}

/* Row r of one tile: scores, their maximum, weights, sums. */
static inline void run_row(const struct kernel_run *run, int kv, int r, const float *k, const float *v,
                           struct state *at)
{
    const struct spec *s = &run->spec;
    const struct asc_conventions *conventions = &s->conventions;
    const ptrdiff_t D = s->head_dim;
    const int bc = s->bc, first = kv * bc, valid = s->kv_len - first < bc ? s->kv_len - first : bc;
    const int real_row = s->q_tile * s->br + r < s->q_len, to_m = conventions->m_unit;
    const int later = conventions->s_at != ASC_S_MASKED || conventions->s_masked == ASC_MASKED_UNTOUCHED;
    const float out = conventions->s_masked == ASC_MASKED_VALUE && !later ? conventions->s_masked_value : -INFINITY;
    const float convert = to_m == conventions->s_unit
                              ? 1
                              : run_natural(conventions->s_unit, s->softcap > 0 ? s->softcap : run->scale) /
                                    run_natural(to_m, s->softcap > 0 ? s->softcap : run->scale);
    float *m = &at->m[r], *l = &at->l[(ptrdiff_t)r * at->lanes], *u = &at->u[r * D];
    float *score = calloc((size_t)bc, sizeof *score), *p = calloc((size_t)bc, sizeof *p);
    float top = *m;
    const enum tensor_core core = s->core ? (enum tensor_core)(s->core - 1) : TENSOR_CORE_F32;
    float *dots = s->core ? calloc((size_t)bc, sizeof *dots) : NULL;
    float *added = calloc((size_t)D * 2, sizeof *added), *rescaled = added + D;
    if (s->core) {
        float last = at->q[(r + 1) * D - 1];
        if (s->mistake == S_LAST_PRODUCT)
            at->q[(r + 1) * D - 1] = 0;
        run_product(s->mistake == S_F16_ACCUMULATOR ? TENSOR_CORE_H100_F16 : core, run_dtype(s, asc_q), at->q + r * D,
                    D, &at->k, NULL, dots);
        at->q[(r + 1) * D - 1] = last;
    }
    for (int c = 0; c < bc; c++) {
        const int masked = c >= valid ? s->mistake != S_TAIL_COUNTED : !run_sees(s, r, first + c);
        const float dot = run_score(run, at->q, k, dots, r, c, kv), capped = run_cap(run, dot);
        const float biased = run_biased(run, capped, r, first + c);
        const float recorded = !later                              ? masked ? out : biased
                               : conventions->s_at == ASC_S_DOT    ? dot
                               : conventions->s_at == ASC_S_CAPPED ? capped
                                                                   : biased;
        if (real_row)
            run_record(run, asc_s, kv, (size_t)r * (size_t)bc + (size_t)c, recorded);
        score[c] = (masked ? out : biased) * convert;
        if (!(s->mistake == M_PARTIAL && c < bc / 4))
            top = run_max(s, top, score[c]);
    }
    const int low = s->mistake == M_TOO_LOW && run->last_kv < 0;
    const float frame = run_policy(run, *m, top) - (low ? 100 : 0), alpha = run_alpha(run, *m, frame);
    const float stand = s->mistake == M_LEFT_BEHIND ? top : frame;
    for (int c = 0; c < bc; c++) {
        p[c] = stand == -INFINITY || score[c] == -INFINITY ? 0 : run_exp(run, score[c], to_m, stand);
        if (s->mistake == P_BASE_2 && score[c] != -INFINITY)
            p[c] = exp2f(score[c] - stand);
        p[c] = ldexpf(p[c], conventions->p_offset);
        if (s->mistake == P_TAIL_COUNTED && c >= valid)
            p[c] = 0.5f;
        if (real_row)
            run_record(run, asc_p, kv, (size_t)r * (size_t)bc + (size_t)c, p[c]);
    }
    const float l_alpha = s->mistake == L_ALPHA_FORGOTTEN ? 1 : s->mistake == L_ALPHA_TWICE ? alpha * alpha : alpha;
    const float u_alpha = s->mistake == U_ALPHA_FORGOTTEN ? 1 : s->mistake == U_ALPHA_TWICE ? alpha * alpha : alpha;
    const int kept = s->mistake == L_PREVIOUS_KEPT && l[0] != 0;
    float sums[64] = {0};
    for (int c = 0; c < bc; c++)
        sums[c % at->lanes] += conventions->l_from == ASC_L_ROUNDED ? round_to(run_p_type(s), p[c]) : p[c];
    for (int lane = 0; lane < at->lanes; lane++)
        l[lane] = l[lane] * l_alpha + (kept ? 0 : sums[lane]);
    if (s->mistake == U_KEY_MISSING)
        p[valid / 2] = 0;
    for (int c = 0; c < bc; c++)
        p[c] = round_to(run_p_type(s), p[c]);
    for (int d = 0; d < D; d++)
        rescaled[d] = core == TENSOR_CORE_H100_F16 ? round_to(DTYPE_F16, u[d] * u_alpha) : u[d] * u_alpha;
    if (s->core)
        run_product(core, run_p_type(s), p, bc, &at->v, s->join == PRODUCT_CARRIES ? rescaled : NULL, added);
    for (int d = 0; d < D; d++) {
        const float before = rescaled[d];
        if (real_row && conventions->u_phase == ASC_U_RESCALED && run->last_kv >= 0)
            run_record(run, asc_u, run->last_kv, (size_t)(r * D + d), before);
        if (!s->core)
            u[d] = sum_products(s, p, v + d, s->skips_padding ? valid : bc, D, before);
        else if (s->join == PRODUCT_CARRIES)
            u[d] = added[d];
        else
            u[d] = s->join == PRODUCT_ADDS ? before + added[d] : fmaf(u_alpha, u[d], added[d]);
        if (real_row)
            run_record(run, asc_u, kv, (size_t)(r * D + d), u[d]);
    }
    *m = frame;
    if (real_row) {
        run_record(run, asc_m, kv, (size_t)r, frame);
        run_record(run, asc_alpha, kv, (size_t)r, alpha);
        for (int lane = 0; lane < at->lanes; lane++)
            run_record(run, asc_l, kv, (size_t)r * (size_t)at->lanes + (size_t)lane, l[lane]);
    }
    free(dots);
    free(added);
    free(score);
    free(p);
}

static inline void run_tile(struct kernel_run *run, int kv, struct state *at)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    const int bc = s->bc, first = kv * bc;
    const int valid = s->kv_len - first < bc ? s->kv_len - first : bc;
    float *k = calloc((size_t)bc * (size_t)D, sizeof *k), *v = calloc((size_t)bc * (size_t)D, sizeof *v);
    for (int i = 0; i < bc * D; i++) {
        const int from = s->mistake == K_ROW_SWAPPED && i / D < 2 ? first * D + i % D + (1 - i / D) * D : first * D + i;
        k[i] = i / D < valid ? run_input(s, run->k, (size_t)from) : 0;
        v[i] = i / D < valid ? run_input(s, run->v, (size_t)(first * D + i)) : s->v_padding_nan ? NAN : 0;
        if (s->mistake == V_ELEMENT_LOST && i == 1)
            v[i] = 0;
        run_record(run, asc_k, kv, (size_t)i, k[i]);
        run_record(run, asc_v, kv, (size_t)i, v[i]);
    }
    void *k_room = s->core ? run_operand(run_dtype(s, asc_k), k, bc, (int)D, D, 1, &at->k) : NULL;
    void *v_room = s->core ? run_operand(run_dtype(s, asc_v), v, (int)D, bc, 1, D, &at->v) : NULL;
    for (int r = 0; r < s->br; r++)
        run_row(run, kv, r, k, v, at);
    run->last_kv = kv;
    free(k_room);
    free(v_room);
    free(k);
    free(v);
}

static inline float truncate_f16(float x)
{
    const float nearest = round_to(DTYPE_F16, x);
    return fabsf(nearest) > fabsf(x) ? round_to(DTYPE_F16, nearest * (1 - 0x1p-11f)) : nearest;
}

/* What a split ends with in one row: its lanes added up, m in natural units. */
struct ending {
    float m, l;
    const float *u; /* [D] */
};

static inline struct ending run_ending(const struct kernel_run *run, const struct state *at, int r)
{
    const struct spec *s = &run->spec;
    const float natural = run_natural(s->conventions.m_unit, s->softcap > 0 ? s->softcap : run->scale);
    struct ending end = {.m = at->m[r] * natural, .u = at->u + (ptrdiff_t)r * s->head_dim};
    for (int lane = 0; lane < at->lanes; lane++)
        end.l += at->l[(ptrdiff_t)r * at->lanes + lane];
    return end;
}

static inline int run_sink_last(const struct spec *s)
{
    const int l_sink = s->conventions.l_sink;
    return s->has_sink && s->wrong_term != SINK_FORGOTTEN && (l_sink == ASC_SINK_END || l_sink == ASC_SINK_M_START);
}

static inline float run_sink(const struct kernel_run *run)
{
    return run->spec.sink * (run->spec.wrong_term == SINK_UNSCALED ? run->scale : 1);
}

/* One row's m, l and u out of those of its splits, as such. */
static inline void run_merge(const struct kernel_run *run, const struct state *splits, int n, int r, float *m, float *l,
                             float *u)
{
    const int D = run->spec.head_dim;
    *m = -INFINITY;
    *l = 0;
    for (int d = 0; d < D; d++)
        u[d] = 0;
    for (int i = 0; i < n; i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        *m = end.l > 0 || run->spec.wrong_term == SPLIT_UNGUARDED || n == 1 ? fmaxf(*m, end.m) : *m;
    }
    for (int i = 0; i < n; i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        float weight = n == 1 ? 1 : expf(end.m - *m);
        if (run->spec.wrong_term == SPLIT_EQUAL_WEIGHTS)
            weight = 1;
        if (end.l == 0 && run->spec.wrong_term != SPLIT_UNGUARDED)
            continue;
        *l += weight * end.l;
        for (int d = 0; d < D; d++)
            u[d] += weight * end.u[d];
    }
}

/* The same by way of each split's own output and lse: leaves the merged lse in *m, 1 in *l and the output in u. */
static inline void run_merge_lse(const struct kernel_run *run, const struct state *splits, int n, int r, float *m,
                                 float *l, float *u)
{
    const struct spec *s = &run->spec;
    const int D = s->head_dim;
    const float offset = (float)(s->conventions.p_offset * M_LN2);
    float lse[64];
    float top = -INFINITY;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        lse[i] = end.l > 0 ? end.m + logf(end.l) - offset : -INFINITY;
        top = fmaxf(top, lse[i]);
    }
    const float base = top == -INFINITY && s->wrong_term != SPLIT_UNGUARDED ? 0 : top;
    for (int i = 0; i < n; i++)
        sum += s->wrong_term == SPLIT_EQUAL_WEIGHTS ? 1 : expf(lse[i] - base);
    if (run_sink_last(s) && sum > 0)
        sum += expf(run_sink(run) - base);
    *m = sum == 0 ? -INFINITY : base + logf(sum);
    *l = sum == 0 ? 0 : sum > 0 ? 1 : NAN;
    for (int d = 0; d < D; d++) {
        u[d] = 0;
        for (int i = 0; i < n; i++) {
            const struct ending end = run_ending(run, &splits[i], r);
            const float weight = s->wrong_term == SPLIT_EQUAL_WEIGHTS ? 1 / (float)n : expf(lse[i] - *m);
            u[d] += end.l > 0 ? weight * (end.u[d] / end.l) : 0;
        }
    }
}

static inline void run_end(const struct kernel_run *run, const struct state *splits, int n)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    float u[512];
    for (int r = 0; r < s->br && s->q_tile * s->br + r < s->q_len; r++) {
        const int by_lse = s->merges_lse && n > 1;
        float l = 0;
        float m_natural = 0;
        if (by_lse)
            run_merge_lse(run, splits, n, r, &m_natural, &l, u);
        else
            run_merge(run, splits, n, r, &m_natural, &l, u);
        if (run_sink_last(s) && !by_lse && l > 0)
            l += ldexpf(expf(run_sink(run) - m_natural), s->conventions.p_offset);
        const float inverse = l > 0 ? 1 / l : l == 0 ? 0 : l;
        float lse = m_natural + (by_lse ? 0 : logf(fmaxf(l, FLT_TRUE_MIN)) - (float)(s->conventions.p_offset * M_LN2));
        if (s->conventions.lse_base2)
            lse *= (float)M_LOG2E;
        if (s->mistake == LSE_BASE_2)
            lse = m_natural + log2f(l);
        if (l == 0)
            lse = run_sink_last(s)                    ? run_sink(run) * (s->conventions.lse_base2 ? (float)M_LOG2E : 1)
                  : s->conventions.empty_lse_negative ? -INFINITY
                                                      : INFINITY;
        run_record(run, asc_lse, 0, (size_t)r, lse);
        for (int d = 0; d < D; d++) {
            float o = u[d] * (s->mistake == O_UNNORMALISED ? 1 : inverse);
            if (s->mistake == O_TRUNCATED)
                o = truncate_f16(o);
            run_record(run, asc_o, 0, (size_t)(r * D + d), o);
        }
    }
}

static inline void run_arrays(struct kernel_run *run)
{
    const struct spec *s = &run->spec;
    const struct asc_plan plan = {.br = s->br, .bc = s->bc, .l_lanes = s->conventions.l_lanes};
    const struct asc_problem problem = {.head_dim = s->head_dim, .q_len = s->q_len, .kv_len = s->kv_len};
    const int tiles = run->c.kv_tiles;
    run->captured = calloc((size_t)tiles * ASC_CHANNELS, sizeof *run->captured);
    run->padding = calloc((size_t)tiles * 3, sizeof *run->padding);
    run->arrays = calloc((size_t)tiles * ASC_CHANNELS, sizeof *run->arrays);
    run->order = calloc((size_t)tiles, sizeof *run->order);
    run->out = calloc((size_t)tiles * ASC_CHANNELS, sizeof *run->out);
    for (int i = 0; i < tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        const int kv = i / ASC_CHANNELS, rows = channel_rows(ch, &plan), cols = channel_cols(ch, &plan, &problem);
        const enum dtype t = run_dtype(s, ch);
        if ((kv > 0 && !channel_per_kv(ch)) || s->unrecorded & 1u << ch)
            continue;
        const size_t bytes = (size_t)rows * (size_t)cols * dtype_bytes(t);
        const uint32_t pattern = UNWRITTEN_32;
        run->arrays[i] = malloc(bytes + sizeof pattern);
        for (size_t b = 0; b < bytes; b += sizeof pattern)
            memcpy((char *)run->arrays[i] + b, &pattern, sizeof pattern);
        const int left = s->kv_len - kv * s->bc < s->bc ? s->kv_len - kv * s->bc : s->bc;
        const int rows_left = s->q_len - s->q_tile * s->br < s->br ? s->q_len - s->q_tile * s->br : s->br;
        run->captured[i] = (struct matrix){run->arrays[i], t, cols, ch == asc_k || ch == asc_v ? left : rows_left,
                                           ch == asc_s || ch == asc_p ? left : cols};
        if (ch == asc_s && left < s->bc)
            run->padding[kv] = (struct matrix){(float *)run->arrays[i] + left, t, cols, rows_left, s->bc - left};
        if (ch == asc_p && left < s->bc)
            run->padding[tiles + kv] = (struct matrix){(char *)run->arrays[i] + (size_t)left * dtype_bytes(t), t, cols,
                                                       rows_left, s->bc - left};
        if (ch == asc_v && left < s->bc)
            run->padding[2 * tiles + kv] = (struct matrix){
                (char *)run->arrays[i] + (size_t)left * (size_t)cols * dtype_bytes(t), t, cols, s->bc - left, cols};
    }
}

/* Bias of any row and key, as natural scores. */
static inline float *test_bias(const struct spec *s)
{
    uint64_t state = 4 * 7919 + s->seed;
    const size_t n = (size_t)s->q_len * (size_t)s->kv_len;
    float *bias = s->bias_sigma > 0 ? calloc(n, sizeof *bias) : NULL;
    for (size_t i = 0; bias && i < n; i++)
        bias[i] = (float)(s->bias_sigma * test_normal(&state));
    return bias;
}

/* The state before the first tile of a split; before: what the split before it ended with, or NULL. */
static inline void run_begin(struct kernel_run *run, struct state *at, const struct state *before)
{
    const struct spec *s = &run->spec;
    const struct asc_conventions *c = &s->conventions;
    const ptrdiff_t D = s->head_dim;
    const int rows = s->q_len - s->q_tile * s->br < s->br ? s->q_len - s->q_tile * s->br : s->br;
    const int first = !before || s->wrong_term == SINK_IN_EVERY_SPLIT;
    const int at_sink = s->has_sink && first && s->wrong_term != SINK_FORGOTTEN &&
                        (c->l_sink == ASC_SINK_START || c->l_sink == ASC_SINK_M_START);
    at->lanes = c->l_lanes > 1 ? c->l_lanes : 1;
    at->q = calloc((size_t)(s->br * D), sizeof *at->q);
    at->u = calloc((size_t)(s->br * D), sizeof *at->u);
    at->m = calloc((size_t)s->br, sizeof *at->m);
    at->l = calloc((size_t)s->br * (size_t)at->lanes, sizeof *at->l);
    run->last_kv = -1;
    for (int r = 0; r < s->br; r++) {
        at->m[r] = c->m_empty == ASC_EMPTY_FINITE ? c->m_start : -INFINITY;
        if (at_sink)
            at->m[r] = run_in_unit(run, run_sink(run), c->m_unit);
        if (at_sink && c->l_sink == ASC_SINK_START)
            at->l[(ptrdiff_t)r * at->lanes] = ldexpf(1, c->p_offset);
        for (int d = 0; d < D; d++) {
            const size_t from = (size_t)((s->q_tile * s->br + r) * D + d);
            at->q[r * D + d] = r < rows ? run_input(s, run->q, from) : 0;
            if (c->q_fold)
                at->q[r * D + d] = round_to(run_dtype(s, asc_q), at->q[r * D + d] * run_fold(run));
            run_record(run, asc_q, 0, (size_t)(r * D + d), at->q[r * D + d]);
        }
    }
    if (before && s->wrong_term == SPLIT_STATE_KEPT) {
        memcpy(at->m, before->m, (size_t)s->br * sizeof *at->m);
        memcpy(at->l, before->l, (size_t)s->br * (size_t)at->lanes * sizeof *at->l);
        memcpy(at->u, before->u, (size_t)(s->br * D) * sizeof *at->u);
    }
}

static inline struct kernel_run *kernel_run(const struct spec *s)
{
    struct kernel_run *run = calloc(1, sizeof *run);
    run->spec = *s;
    run->scale = s->scale != 0 ? s->scale : 1 / sqrtf((float)s->head_dim);
    run->last_kv = -1;
    run->q = test_fill(s, s->q_len, 1);
    run->k = test_fill(s, s->kv_len, 2);
    run->v = test_fill(s, s->kv_len, 3);
    run->bias = test_bias(s);
    const ptrdiff_t D = s->head_dim;
    const int tiles = (s->kv_len + s->bc - 1) / s->bc;
    const size_t size = dtype_bytes(s->dtype);
    const int rows = s->q_len - s->q_tile * s->br < s->br ? s->q_len - s->q_tile * s->br : s->br;
    run->c = (struct oracle_case){.scale = run->scale,
                                  .causal = (int)s->causal,
                                  .softcap = (double)s->softcap,
                                  .window_left = s->has_window ? s->window_left : -1,
                                  .window_right = s->has_window ? s->window_right : -1,
                                  .q_len = s->q_len,
                                  .kv_len = s->kv_len,
                                  .head_dim = D,
                                  .br = s->br,
                                  .bc = s->bc,
                                  .q_tile = s->q_tile,
                                  .o_dtype = (int)s->o_dtype,
                                  .conventions = s->conventions,
                                  .kv_tiles = tiles};
    run_arrays(run);
    run->c.in_q =
        (struct matrix){(char *)run->q + (size_t)s->q_tile * (size_t)s->br * (size_t)D * size, s->dtype, D, rows, D};
    run->c.in_k = (struct matrix){run->k, s->dtype, D, s->kv_len, D};
    run->c.in_v = (struct matrix){run->v, s->dtype, D, s->kv_len, D};
    run->c.captured = run->captured;
    run->c.s_padding = run->padding;
    run->c.p_padding = run->padding + tiles;
    run->c.v_padding = run->padding + (ptrdiff_t)2 * tiles;
    run->c.order = run->order;
    if (s->alibi_slope != 0)
        run->c.alibi_slope = (double)s->alibi_slope;
    if (s->has_sink) {
        run->c.has_sink = 1;
        run->c.sink = (double)s->sink;
    }
    if (run->bias)
        run->c.bias = (struct matrix){run->bias + (ptrdiff_t)s->q_tile * s->br * s->kv_len, DTYPE_F32, s->kv_len, rows,
                                      s->kv_len};
    run->c.kv_splits = s->kv_splits;
    const int splits = s->kv_splits > 1 ? s->kv_splits : 1, per_split = (tiles + splits - 1) / splits;
    struct state *ends = calloc((size_t)splits, sizeof *ends);
    for (int split = 0; split < splits; split++) {
        run_begin(run, &ends[split], split > 0 ? &ends[split - 1] : NULL);
        const int from = split * per_split, to = from + per_split < tiles ? from + per_split : tiles;
        for (int i = 0; i < to - from - s->skip; i++) {
            const int kv = s->reversed ? to - 1 - i : from + i;
            if (!s->visits_masked && run_tile_masked(s, kv, rows))
                continue;
            run->order[run->c.n_visited++] = kv;
            run_tile(run, kv, &ends[split]);
        }
    }
    run_end(run, ends, s->wrong_term == SPLIT_LAST_LOST ? splits - 1 : splits);
    for (int split = 0; split < splits; split++) {
        free(ends[split].q);
        free(ends[split].u);
        free(ends[split].m);
        free(ends[split].l);
    }
    free(ends);
    return run;
}

static inline void kernel_run_free(struct kernel_run *run)
{
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++)
        free(run->arrays[i]);
    free(run->arrays);
    free(run->captured);
    free(run->padding);
    free(run->order);
    free(run->out);
    free(run->q);
    free(run->k);
    free(run->v);
    free(run->bias);
    free(run);
}

/* Stages with a bad element anywhere, as a set of 1u << channel. */
static inline unsigned bad_stages(const struct kernel_run *run, int global)
{
    unsigned bad = 0;
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const struct verdict *v = global ? &run->out[i].global : &run->out[i].local;
        if (v->judged && !verdict_ok(v))
            bad |= 1u << i % ASC_CHANNELS;
    }
    return bad;
}

#endif
