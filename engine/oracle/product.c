#include "engine/oracle/product.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include <stdio.h>
#include <string.h>

static const enum tensor_core half[] = {TENSOR_CORE_H100, TENSOR_CORE_A100, TENSOR_CORE_V100, TENSOR_CORE_F32};
static const enum tensor_core bfloat[] = {TENSOR_CORE_H100, TENSOR_CORE_A100, TENSOR_CORE_F32};
static const enum tensor_core half_half[] = {TENSOR_CORE_H100_F16};
static const enum tensor_core mma_e4m3[] = {TENSOR_CORE_MMA_E4M3, TENSOR_CORE_ADA_E4M3, TENSOR_CORE_F32};
static const enum tensor_core ada_e4m3[] = {TENSOR_CORE_ADA_E4M3};
static const enum tensor_core wgmma_e4m3[] = {TENSOR_CORE_WGMMA_E4M3, TENSOR_CORE_WGMMA_E4M3_PROMOTED};
static const enum tensor_core wgmma_e4m3_half[] = {TENSOR_CORE_WGMMA_E4M3_F16};

/* What a declaration covers. A kernel for mma.sync runs on whatever GPU there is, or on the CPU in f32. */
static const struct declared {
    enum dtype type, sum; /* of operands, of the accumulator */
    const enum tensor_core *models;
    int n;
} declared[] = {
#define MODELS(list) list, sizeof(list) / sizeof((list)[0])
    [ASC_ACC_F32] = {DTYPE_F32, DTYPE_F32, NULL, 0},
    [ASC_ACC_MMA_F16] = {DTYPE_F16, DTYPE_F32, MODELS(half)},
    [ASC_ACC_MMA_BF16] = {DTYPE_BF16, DTYPE_F32, MODELS(bfloat)},
    [ASC_ACC_MMA_F16_F16] = {DTYPE_F16, DTYPE_F16, MODELS(half_half)},
    [ASC_ACC_MMA_E4M3] = {DTYPE_E4M3, DTYPE_F32, MODELS(mma_e4m3)},
    [ASC_ACC_ADA_E4M3] = {DTYPE_E4M3, DTYPE_F32, MODELS(ada_e4m3)},
    [ASC_ACC_WGMMA_E4M3] = {DTYPE_E4M3, DTYPE_F32, MODELS(wgmma_e4m3)},
    [ASC_ACC_WGMMA_E4M3_F16] = {DTYPE_E4M3, DTYPE_F16, MODELS(wgmma_e4m3_half)},
#undef MODELS
};

bool product_type(int accumulator, enum dtype *t)
{
    *t = declared[accumulator].type;
    return declared[accumulator].n > 0;
}

static bool sums_in_f16(int accumulator)
{
    return declared[accumulator].sum == DTYPE_F16;
}

/* Whether the run may have used a model of the declaration: all of them, where it is not known whose cores they were,
   or where those compute none of it. A sum that is promoted is the same instruction's. */
static bool may_be(const struct declared *d, uint32_t cores, enum tensor_core model)
{
    uint32_t known = 0;
    if (cores >> TENSOR_CORE_WGMMA_E4M3 & 1)
        cores |= 1u << TENSOR_CORE_WGMMA_E4M3_PROMOTED;
    for (int i = 0; i < d->n; i++)
        known |= cores & 1u << d->models[i];
    return !(known & ~(1u << TENSOR_CORE_F32)) || known >> model & 1;
}

/* 2^-10: what the errors of earlier chunks add to later accumulators, (L + 1) 2^-F of a bound at most and below that
   even with 13 bits; in the f16 accumulator the chunks' errors of 2^-10 compound, (1 + 2^-10)^chunks. */
static double bound_on(int accumulator, uint32_t cores, int n)
{
    const struct declared *d = &declared[accumulator];
    double most = bound_gamma(n);
    for (int i = 0; i < d->n; i++)
        if (may_be(d, cores, d->models[i]))
            most = fmax(most, tensor_core_bound(d->models[i], n));
    return d->n ? most * (1 + 0x1p-10) * (1 + most) : most;
}

struct product_share product_share(const struct oracle_case *c, int accumulator, int n)
{
    const struct declared *d = &declared[accumulator];
    struct product_share share = {0, n * BOUND_U * BOUND_U, 0, 0};
    if (sums_in_f16(accumulator))
        return (struct product_share){bound_on(accumulator, c->known_cores, n), 0, 0, 0};
    for (int i = 0; i < d->n; i++) {
        int products = 0;
        int fraction = 0;
        int result = 0;
        if (d->models[i] == TENSOR_CORE_F32 || !may_be(d, c->known_cores, d->models[i]))
            continue;
        tensor_core_shape(d->models[i], &products, &fraction, &result);
        const int chunks = (n + products - 1) / products;
        const double term = ldexp(0.5, -fraction), sum = ldexp(0.5, -result);
        /* The f32 additions of promoted sums are rounded to nearest: one to a chunk at most. */
        share.systematic = fmax(share.systematic, chunks * ((products + 1) * term + sum));
        share.cut = fmax(share.cut, chunks * sum);
        share.terms = fmax(share.terms, chunks * products * term);
        share.variance = fmax(share.variance, chunks * ((products + 1) * term * term + sum * sum + BOUND_U * BOUND_U));
    }
    return share;
}

enum tensor_core product_loosest(int accumulator, uint32_t known_cores, int n)
{
    const struct declared *d = &declared[accumulator];
    enum tensor_core loosest = TENSOR_CORE_F32;
    double most = bound_gamma(n);
    for (int i = 0; i < d->n; i++) {
        const double bound = tensor_core_bound(d->models[i], n);
        if (bound > most && may_be(d, known_cores, d->models[i])) {
            most = bound;
            loosest = d->models[i];
        }
    }
    return loosest;
}

double product_size(int accumulator, double x)
{
    const enum dtype t = declared[accumulator].type;
    const double size = fabs(x), least = t == DTYPE_F16 ? 0x1p-14 : t == DTYPE_E4M3 ? 0x1p-6 : BOUND_TINY;
    return declared[accumulator].n && size > 0 && size < least ? least : size;
}

const double *product_sizes(int accumulator, const double *x, int n, double *room)
{
    int same = 1;
    for (int i = 0; i < n && declared[accumulator].n; i++) {
        room[i] = product_size(accumulator, x[i]);
        same &= room[i] == x[i];
    }
    return same ? x : room;
}

double product_rounding(int accumulator)
{
    return sums_in_f16(accumulator) ? 0x1p-11 : BOUND_U;
}

double product_score(const struct oracle_case *c)
{
    const int accumulator = c->conventions.acc_s, unit = c->conventions.s_unit;
    const int scales = codes_descale_roundings(c);
    if (!declared[accumulator].n)
        return bound_score(c->head_dim + scales, unit);
    const double bound = bound_on(accumulator, c->known_cores, c->head_dim);
    return bound + (1 + bound) * ((unit == ASC_UNIT_LOG2 ? 3 : 1) + scales) * product_rounding(accumulator);
}

double product_accumulate(const struct oracle_case *c)
{
    const int accumulator = c->conventions.acc_u;
    const bool scales = c->conventions.v_descale == ASC_V_PRODUCT; /* P V is multiplied by V's */
    if (!declared[accumulator].n)
        return bound_accumulate(c->bc + scales);
    const double bound = bound_on(accumulator, c->known_cores, c->bc);
    return bound + (1 + bound) * (2 + scales) * product_rounding(accumulator);
}

double product_tiny(int accumulator, int n)
{
    /* Half the smallest subnormal f16, once for each instruction and the two operations around them. */
    const double half_tiny = sums_in_f16(accumulator) ? 0x1p-25 : 0;
    return n * BOUND_TINY + (n / 16 + 3) * half_tiny; /* NOLINT(bugprone-integer-division): 16 to an instruction */
}

/* The factors between the dot product and S; returns how many pairs. */
static int score_factors(const struct oracle_case *c, float factors[3][2])
{
    const struct asc_conventions *conventions = &c->conventions;
    const int unit = conventions->s_unit, fold = conventions->q_fold;
    const float scale = (float)c->scale, log2_e = (float)M_LOG2E;
    if ((c->softcap > 0 && !values_capped_later(c)) || (bias_changes(c) && !values_biased_later(c)))
        return 0;
    factors[0][0] = factors[0][1] = 1;
    if ((unit == ASC_UNIT_RAW && fold == ASC_FOLD_NONE) || (unit == ASC_UNIT_SCALED && fold == ASC_FOLD_SCALE) ||
        (unit == ASC_UNIT_LOG2 && fold == ASC_FOLD_LOG2))
        return 1;
    factors[0][0] = unit == ASC_UNIT_LOG2 && fold == ASC_FOLD_SCALE ? log2_e : scale;
    if (unit == ASC_UNIT_SCALED && fold == ASC_FOLD_NONE)
        return 1;
    if (unit != ASC_UNIT_LOG2 || fold == ASC_FOLD_LOG2)
        return 0;
    if (fold == ASC_FOLD_SCALE)
        return 1;
    factors[0][1] = log2_e;
    factors[1][0] = (float)(c->scale * M_LOG2E);
    factors[2][0] = scale * log2_e;
    factors[1][1] = factors[2][1] = 1;
    return 3;
}

/* Adds one way as the accumulator's type has it: around an f32 sum all is f32; around an f16 sum it may be either. An
   f16 accumulator that starts at alpha u_prev starts at an f16 number. */
static int add_ways(int accumulator, struct product_way way, struct product_way *ways)
{
    const int last = sums_in_f16(accumulator) ? PRODUCT_HALF_FACTORS : PRODUCT_WIDE;
    int n = 0;
    for (int rounds = PRODUCT_WIDE; rounds <= last; rounds++) {
        const bool nothing_around = way.factor[0] == 1 && way.factor[1] == 1 && way.ch == asc_s;
        if ((rounds != PRODUCT_WIDE && nothing_around) ||
            (rounds == PRODUCT_WIDE && last != PRODUCT_WIDE && way.ch == asc_u && way.join == PRODUCT_CARRIES))
            continue;
        way.rounds = rounds;
        ways[n++] = way;
    }
    return n;
}

int product_ways(const struct oracle_case *c, enum asc_channel ch, struct product_way ways[PRODUCT_WAYS])
{
    const int accumulator = ch == asc_s ? c->conventions.acc_s : c->conventions.acc_u;
    const struct declared *d = &declared[accumulator];
    const bool scaled = ch == asc_s ? c->conventions.qk_descale == ASC_QK_PRODUCT && codes_descale_roundings(c)
                                    : c->conventions.v_descale == ASC_V_PRODUCT;
    float factors[3][2] = {{1, 1}};
    int first = 0, finishes = scaled ? PRODUCT_JOINS : PRODUCT_SCALE_FMA;
    int n = 0;
    if (ch == asc_s) {
        /* Scales of codes may join such a factor before they join the product: nobody says. */
        finishes = score_factors(c, factors);
        finishes = !scaled ? finishes : finishes == 1 ? PRODUCT_K_THEN_Q + 1 : 0;
        first = scaled ? PRODUCT_BOTH_SCALES : 0;
    } else if (c->conventions.u_phase == ASC_U_RESCALED || c->conventions.p_max == ASC_P_MAX_TILE ||
               c->conventions.u_norm == ASC_U_NORM_TILE) {
        finishes = 0;
    } else if (scaled) {
        first = PRODUCT_SCALE_FMA;
    }
    for (int i = 0; i < d->n; i++)
        for (int finish = first; finish < finishes; finish++) {
            struct product_way way = {.ch = ch, .model = d->models[i], .factor = {1, 1}};
            if (ch == asc_u)
                way.join = finish;
            else
                memcpy(way.factor, factors[scaled ? 0 : finish], sizeof way.factor);
            way.scales = ch == asc_s && scaled ? finish : PRODUCT_NO_SCALES;
            if (way.join == PRODUCT_FUSES && !tensor_core_step(way.model))
                continue;
            n += add_ways(accumulator, way, ways + n);
        }
    return n;
}

/* How values become an operand: [rows][k] by these strides, all of them in a dense array. */
struct operand_shape {
    int rows, k;
    ptrdiff_t row_stride, k_stride;
    int rounds; /* 0: they must be of the type already */
};

enum { CODES_AT_ONCE = 64 };

/* The code of x as f16: where that is no subnormal number, the upper bits of x rounded to nearest even, the exponent
   counted anew; else the last bits of a sum whose unit is 2^-24. As a whole: not for one that rounds to more than the
   largest number, nor NaN. */
static inline uint64_t half_code(uint64_t bits, double size)
{
    const uint64_t magnitude = bits & INT64_MAX;
    const uint64_t rounded = (magnitude + ((UINT64_C(1) << 41) - 1) + (magnitude >> 42 & 1)) >> 42;
    const uint64_t small = format_f64_bits(size + 0x1.8p28) & 0x7FF;
    return bits >> 63 << 15 | (size < 0x1p-14 ? small : rounded - (UINT64_C(1008) << 10));
}

VECTOR_UNITS bool product_halves(const double *x, int n, bool rounds, uint16_t *out)
{
    const uint64_t exact = !rounds;
    uint64_t failed = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t bits = format_f64_bits(x[i]);
        const double size = x[i] < 0 ? -x[i] : x[i], kept = size + 0x1.8p28 - 0x1.8p28;
        const uint64_t outside = size < 65520 ? 0 : 1, last = bits & ((UINT64_C(1) << 42) - 1);
        const uint64_t small_cut = kept != size ? 1 : 0, cut = size < 0x1p-14 ? small_cut : last;
        failed |= outside | (exact ? cut : 0);
        out[i] = (uint16_t)half_code(bits, size);
    }
    return !failed;
}

static bool take_codes(enum dtype t, void *codes, size_t first, const double *x, int n, bool rounds)
{
    if (t == DTYPE_F16 && product_halves(x, n, rounds, (uint16_t *)codes + first))
        return true;
    for (int i = 0; i < n; i++) {
        dtype_store(t, codes, first + (size_t)i, x[i]);
        const double code = dtype_load(t, codes, first + (size_t)i);
        /* One beyond the largest number of its type is not rounded, but cut off. */
        if (code != x[i] && !isnan(x[i]) && !(rounds && code == bound_round_unlimited(t, x[i])))
            return false;
    }
    return true;
}

static int take(struct judge_scratch *s, void *room, enum dtype t, const double *x, const struct operand_shape *shape,
                struct tensor_core_operand *out)
{
    const size_t n = (size_t)shape->rows * (size_t)shape->k;
    for (size_t i = 0; i < n; i += CODES_AT_ONCE)
        if (!take_codes(t, s->core.codes, i, x + i, n - i < CODES_AT_ONCE ? (int)(n - i) : CODES_AT_ONCE,
                        shape->rounds))
            return -1;
    tensor_core_take(out, room, t, s->core.codes, shape->rows, shape->k, shape->row_stride, shape->k_stride);
    return 0;
}

static int take_s(const struct oracle_case *c, struct judge_scratch *s, struct product *out)
{
    const int rows = c->in_q.rows, cols = s->at.cols, D = c->head_dim;
    enum dtype t;
    if (s->at.folds_unseen || !product_type(c->conventions.acc_s, &t) ||
        take(s, s->core.a, t, s->at.of[asc_q].value, &(struct operand_shape){rows, D, D, 1, 0}, &out->a) != 0)
        return -1;
    return take(s, s->core.b, t, s->at.of[asc_k].value, &(struct operand_shape){cols, D, D, 1, 0}, &out->b);
}

static int all_zero(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0)
            return 0;
    return 1;
}

static int take_u(const struct oracle_case *c, struct judge_scratch *s, struct product *out)
{
    const int rows = c->in_q.rows, keys = s->at.cols, D = c->head_dim_v;
    /* An f16 U may have been rounded when it was recorded, but not where it is an f16 accumulator. */
    const bool whole = sums_in_f16(c->conventions.acc_u) && values_captured(c, s->at.kv, asc_u)->dtype == DTYPE_F16;
    enum dtype t;
    if (!s->stage[asc_p].recorded || !s->at.pv_p.exact || !s->at.of[asc_alpha].exact ||
        !(whole || all_zero(s->at.u_prev.loose, (size_t)rows * (size_t)D)) || !product_type(c->conventions.acc_u, &t) ||
        take(s, s->core.a, t, s->at.pv_p.value, &(struct operand_shape){rows, keys, keys, 1, 1}, &out->a) != 0)
        return -1;
    return take(s, s->core.b, t, s->at.of[asc_v].value, &(struct operand_shape){D, keys, 1, D, 0}, &out->b);
}

int product_take(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch, struct product *out)
{
    out->ch = ch;
    out->row = out->col = 0;
    return ch == asc_s ? take_s(c, s, out) : take_u(c, s, out);
}

struct product product_block(const struct product *whole, int row, int col, int rows, int cols)
{
    return (struct product){whole->ch, tensor_core_rows(&whole->a, row, rows), tensor_core_rows(&whole->b, col, cols),
                            row, col};
}

static float to_half(float x)
{
    return f16_to_f32(f16_from_f32(x));
}

/* A result, or a factor, as the way has it. The product of two f16, and their sum, are the same whether they are
   rounded into f16 at once or from f32: it has 2 (11 + 1) significant bits. */
static float result(const struct product_way *way, float x)
{
    return way->rounds == PRODUCT_WIDE ? x : to_half(x);
}

static float factor(const struct product_way *way, float x)
{
    return way->rounds == PRODUCT_HALF_FACTORS ? to_half(x) : x;
}

static float alpha_of(const struct judge_scratch *s, const struct product_way *way, int i)
{
    return factor(way, (float)s->at.of[asc_alpha].value[i / s->stage[asc_u].cols]);
}

/* alpha u_prev of element i of U, rounded. */
static float rescaled(const struct judge_scratch *s, const struct product_way *way, int i)
{
    return result(way, alpha_of(s, way, i) * (float)s->at.u_prev.value[i]);
}

/* fma(alpha, u_prev, sum). Of f16 factors it is exact in float64, and then rounded once. */
static float fused(const struct judge_scratch *s, const struct product_way *way, int i, float sum)
{
    const float alpha = alpha_of(s, way, i), before = (float)s->at.u_prev.value[i];
    if (way->rounds == PRODUCT_HALF_FACTORS)
        return f16_to_f32(f16_from_f64((double)alpha * (double)before + (double)sum));
    return result(way, fmaf(alpha, before, sum));
}

/* Where the product's row r begins in the result. */
static int row_begin(const struct judge_scratch *s, const struct product *p, int r)
{
    return (p->row + r) * s->stage[p->ch].cols + p->col;
}

/* The first instruction's products, fused with the rescaling; then the others'. */
static void sum_fused(const struct judge_scratch *s, const struct product *p, const struct product_way *way,
                      float *sums)
{
    const int cols = s->stage[way->ch].cols, begin = row_begin(s, p, 0);
    const int k = p->a.k, step = tensor_core_step(way->model), first = step < k ? step : k;
    tensor_core_product_part(way->model, &p->a, &p->b, 0, first, NULL, 0, sums + begin, cols);
    for (int r = 0; r < p->a.rows; r++)
        for (int i = row_begin(s, p, r), end = i + p->b.rows; i < end; i++)
            sums[i] = fused(s, way, i, sums[i]);
    if (first < k)
        tensor_core_product_part(way->model, &p->a, &p->b, first, k - first, sums + begin, cols, sums + begin, cols);
}

void product_sum(const struct judge_scratch *s, const struct product *product, const struct product_way *way,
                 float *sums)
{
    const int cols = s->stage[way->ch].cols, begin = row_begin(s, product, 0);
    const bool carries = way->ch == asc_u && way->join == PRODUCT_CARRIES;
    if (way->ch == asc_u && way->join == PRODUCT_FUSES) {
        sum_fused(s, product, way, sums);
        return;
    }
    for (int r = 0; carries && r < product->a.rows; r++)
        for (int i = row_begin(s, product, r), end = i + product->b.rows; i < end; i++)
            sums[i] = rescaled(s, way, i);
    tensor_core_product(way->model, &product->a, &product->b, carries ? sums + begin : NULL, cols, sums + begin, cols);
}

/* Whether the accumulator holds U itself. */
static bool carried(const struct product_way *way)
{
    return way->join == PRODUCT_CARRIES || way->join == PRODUCT_FUSES;
}

/* A score with what is left of the scales of codes. */
static float descaled(const struct judge_scratch *s, const struct product_way *way, int i, float sum)
{
    const int cols = s->stage[asc_s].cols;
    if (way->scales == PRODUCT_NO_SCALES)
        return sum;
    const float q = factor(way, (float)s->at.by_q[i / cols]), k = factor(way, (float)s->at.by_k[i % cols]);
    if (way->scales == PRODUCT_BOTH_SCALES)
        return result(way, sum * result(way, q * k));
    return way->scales == PRODUCT_Q_THEN_K ? result(way, result(way, sum * q) * k)
                                           : result(way, result(way, sum * k) * q);
}

static float finished(const struct judge_scratch *s, const struct product_way *way, int i, float sum)
{
    const float scale = factor(way, (float)s->at.times_v);
    if (way->ch == asc_s)
        sum = descaled(s, way, i, sum);
    if (way->ch == asc_s)
        return result(way, result(way, sum * factor(way, way->factor[0])) * factor(way, way->factor[1]));
    if (carried(way))
        return sum;
    if (way->join == PRODUCT_SCALE_FMA)
        return result(way, fmaf(sum, scale, rescaled(s, way, i)));
    if (way->join >= PRODUCT_SCALE_FMA)
        sum = result(way, sum * scale);
    return way->join == PRODUCT_ADDS || way->join == PRODUCT_SCALE_ADDS ? result(way, rescaled(s, way, i) + sum)
                                                                        : fused(s, way, i, sum);
}

void product_finish(const struct judge_scratch *s, const struct product *product, const struct product_way *way,
                    const float *sums, float *out)
{
    for (int r = 0; r < product->a.rows; r++)
        for (int i = row_begin(s, product, r), end = i + product->b.rows; i < end; i++)
            out[i] = finished(s, way, i, sums[i]);
}

bool product_shares(const struct product_way *a, const struct product_way *b)
{
    if (a->model != b->model || carried(a) != carried(b))
        return false;
    return a->ch == asc_s || !carried(a) || (a->join == b->join && a->rounds == b->rounds);
}

/* "γ(65)", or of a tensor core what each chunk of L products may cost: (L+1) terms cut F bits below the largest, the
   sum cut to R bits; and `more` roundings around the product. */
static void product_words(int accumulator, uint32_t known_cores, int n, int more, char *out, size_t bytes)
{
    const enum tensor_core model = product_loosest(accumulator, known_cores, n);
    int products = 0;
    int fraction = 0;
    int result = 0;
    if (model == TENSOR_CORE_F32) {
        snprintf(out, bytes, "γ(%d)", n + more);
        return;
    }
    tensor_core_shape(model, &products, &fraction, &result);
    const int chunks = (n + products - 1) / products;
    snprintf(out, bytes, "(%d (%d 2^-%d + 2^-%d) + %d %s)", chunks, products + 1, fraction, result, more,
             product_rounding(accumulator) > BOUND_U ? "2^-11" : "u");
}

static const char *formula(enum asc_channel ch)
{
    switch (ch) {
    case asc_q:
    case asc_k:
    case asc_v:
        return "exactly the input, rounded to the recorded type";
    case asc_m:
        return "0: a maximum rounds nothing";
    case asc_alpha:
        return "α (2⁻²² + u + 3.25 u |m_prev - m| + 2 u |m|) + 2⁻¹²⁶; in log2 units without 2 u |m|";
    case asc_p:
        return "p (2⁻²² + u + 3.25 u |s - m| + 2 u |m|) + 2⁻¹²⁶; in log2 units without 2 u |m|";
    case asc_l:
        return "γ(Bc+6) (α l_prev + Σp)";
    case asc_o:
        return "4 u |o|, then between both ends rounded to the output's type";
    case asc_lse:
        return "3.6e-7 + 6 u |ln l| + 2 u |m| + u |lse|";
    default:
        return "";
    }
}

void bound_formula(enum asc_channel ch, const struct asc_conventions *declared, uint32_t known_cores, int head_dim,
                   int bc, char *out, size_t bytes)
{
    char product[96];
    if (ch == asc_s) {
        product_words(declared->acc_s, known_cores, head_dim, declared->s_unit == ASC_UNIT_LOG2 ? 3 : 1, product,
                      sizeof product);
        snprintf(out, bytes, "%s c Σ|q k|, γ(n) = n u/(1 - n u), u = 2⁻²⁴", product);
    } else if (ch == asc_u) {
        product_words(declared->acc_u, known_cores, bc, 2, product, sizeof product);
        snprintf(out, bytes, "%s (|α u_prev| + Σ|p v|)", product);
    } else {
        snprintf(out, bytes, "%s", formula(ch));
    }
    const size_t used = strlen(out);
    const int tile = declared->p_max == ASC_P_MAX_TILE, divides = declared->u_norm == ASC_U_NORM_TILE;
    if (tile && ch == asc_p)
        snprintf(out + used, bytes - used, "; m is this tile's maximum, t");
    else if ((tile && ch == asc_l) || (tile && !divides && ch == asc_u))
        snprintf(out + used, bytes - used, "; p is exp(t - m) p and its error, t being this tile's maximum");
    else if (divides && ch == asc_u)
        snprintf(out + used, bytes - used, "; %sl_prev and 1 / l, with 6 u more", tile ? "p times exp(t - m), " : "");
}
