/* Causes of wrong operands that are made from codes, and of scales that come behind a product of codes. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/causes/cause_scale.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <stdio.h>
#include <string.h>

/* The number that the parameter is; 0 where there is none. */
static int chosen(const struct candidate *k)
{
    return isnan(k->parameter) ? 0 : (int)k->parameter;
}

/* The row of the input that the operand at hand begins with. */
static int first_row(const struct candidate *k)
{
    return k->channel == asc_q ? 0 : k->tile->s->at.kv * k->tile->c->bc;
}

void cause_bound_operand(const struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const int coded = codes_use(k->tile->c, k->channel) == CODES_DESCALED;
    const double unit = coded ? 5 * BOUND_U * BOUND_SLACK : 0, tiny = coded ? BOUND_TINY : 0;
    for (int i = 0; i < stage->rows * stage->cols; i++)
        k->bound[i] = unit * fabs(k->want[i]) + tiny;
}

/* The values of the operand's codes, without their scales, in want, and in bound how far another lies that the launch
   may have chosen. 0: it is not made from codes, or not from these alone. */
static int load_codes(const struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    const struct coded_rows part = {k->channel, codes_input(&c, k->channel), codes_of(&c, k->channel), first_row(k),
                                    k->tile->s->stage[k->channel].rows};
    if (codes_use(&c, k->channel) != CODES_DESCALED || (k->channel == asc_q && values_fold(&c) != 1))
        return 0;
    c.conventions.qk_descale = ASC_QK_PRODUCT;
    c.conventions.v_descale = ASC_V_PRODUCT;
    codes_load(&c, &part, k->want, k->bound);
    return 1;
}

/* Each code with the scale that `wrong` says. */
static int scaled(const struct candidate *k, enum cause_scale wrong)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    if (!load_codes(k))
        return 0;
    for (int r = 0; r < stage->rows; r++) {
        const double scale = cause_scale(k->tile->c, k->channel, wrong, chosen(k), first_row(k) + r);
        if (isnan(scale))
            return 0;
        for (int col = 0; col < stage->cols; col++) {
            const size_t i = (size_t)r * (size_t)stage->cols + (size_t)col;
            k->want[i] *= scale;
            k->bound[i] = k->bound[i] * scale + 10 * BOUND_U * BOUND_SLACK * fabs(k->want[i]) + BOUND_TINY;
        }
    }
    return 1;
}

/* The codes of another format, signed bytes among them. */
static int decoded(const struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const struct matrix *input = codes_input(k->tile->c, k->channel);
    const struct coding *coding = codes_of(k->tile->c, k->channel);
    if (coding->quantized || !load_codes(k))
        return 0;
    for (int r = 0; r < stage->rows; r++) {
        const double scale = codes_scale(coding, first_row(k) + r);
        const uint8_t *code = (const uint8_t *)input->data + (first_row(k) + r) * input->row_stride;
        for (int col = 0; col < stage->cols; col++)
            k->want[(size_t)r * (size_t)stage->cols + (size_t)col] =
                scale * cause_decode((enum cause_format)chosen(k), code[col]);
    }
    cause_bound_operand(k);
    return 1;
}

/* 1 if row r of the operand and all others of this tile that share its scale are zero, which is then 1. */
static int is_zero_group(const struct candidate *k, const struct matrix *input, int r)
{
    const struct coding *coding = codes_of(k->tile->c, k->channel);
    const int rows = k->tile->s->stage[k->channel].rows, at = coding->first + first_row(k) + r;
    for (int other = 0; other < rows; other++) {
        const int row = first_row(k) + other;
        if (coding->rows > 0 && (coding->first + row) / coding->rows != at / coding->rows)
            continue;
        for (int col = 0; col < input->cols; col++)
            if (dtype_load(input->dtype, input->data, (size_t)(row * input->row_stride + col)) != 0)
                return 0;
    }
    return codes_scale(coding, first_row(k) + r) == 1;
}

/* 0 / 0 where a launch that quantizes has given a group of zeros the scale 0. */
static int zero_group(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    if (!codes_of(k->tile->c, k->channel)->quantized)
        return 0;
    cause_right(k);
    k->makes_nan = k->unreal = 1;
    for (int r = 0; r < stage->rows; r++)
        for (int col = 0; is_zero_group(k, codes_input(k->tile->c, k->channel), r) && col < stage->cols; col++)
            k->want[(size_t)r * (size_t)stage->cols + (size_t)col] = NAN;
    return 1;
}

/* Scores with other scales of Q and K. */
static int with_scales(const struct candidate *k, enum cause_scale wrong, const struct judge_scratch *right)
{
    const struct oracle_case *c = k->tile->c;
    struct operands s = cause_altered(k);
    if (!right->at.scales_s)
        return 0;
    for (int r = 0; r < right->stage[asc_q].rows; r++)
        k->tile->s->mistake.by_q[r] = cause_scale_of_pair(c, asc_q, wrong, chosen(k), r);
    for (int i = 0; i < s.cols; i++)
        k->tile->s->mistake.by_k[i] = cause_scale_of_pair(c, asc_k, wrong, chosen(k), s.kv * c->bc + i);
    if (isnan(k->tile->s->mistake.by_q[0]) || isnan(k->tile->s->mistake.by_k[0]))
        return 0;
    s.by_q = k->tile->s->mistake.by_q;
    s.by_k = k->tile->s->mistake.by_k;
    local_s(c, &s, &k->tile->s->room, cause_out(k));
    cause_loosen(k, 3);
    return 1;
}

/* By what the constant that makes scores natural is wrong; NaN: no such scale, or none is folded into it. */
static double folded_ratio(const struct candidate *k, enum cause_scale wrong)
{
    const struct oracle_case *c = k->tile->c;
    double ratio = 1;
    if (c->conventions.qk_descale != ASC_QK_FOLDED || !codes_descale_roundings(c))
        return NAN;
    for (int i = 0; i < 2; i++) {
        const enum asc_channel ch = i ? asc_k : asc_q;
        ratio *= cause_scale_of_pair(c, ch, wrong, chosen(k), 0) / codes_scale(codes_of(c, ch), 0);
    }
    return ratio;
}

static int exponents(const struct candidate *k, enum cause_scale wrong,
                     int (*times)(const struct candidate *k, double by))
{
    const double ratio = folded_ratio(k, wrong);
    return !isnan(ratio) && times(k, ratio);
}

/* The product with V under another scale of V; O under another. */
static int with_scale_of_v(const struct candidate *k, enum cause_scale wrong, int convention)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    const int first = convention == ASC_V_PRODUCT ? s.kv * c.bc : 0;
    const double scale = cause_scale(&c, asc_v, wrong, chosen(k), first);
    const float one = (float)scale;
    if (c.conventions.v_descale != convention || codes_use(&c, asc_v) != CODES_RAW || isnan(scale))
        return 0;
    if (convention == ASC_V_PRODUCT) {
        s.times_v = scale;
        cause_u_of(k, &c, &s);
    } else {
        c.v_codes = (struct coding){.scale = &one, .groups = 1};
        local_o(&c, &s, cause_out(k));
    }
    cause_loosen(k, 3);
    return 1;
}

#define OPERAND(id)                                                                                                    \
    int cause_##id##_not_descaled(struct candidate *k)                                                                 \
    {                                                                                                                  \
        return scaled(k, SCALE_MISSING);                                                                               \
    }                                                                                                                  \
    int cause_##id##_descaled_twice(struct candidate *k)                                                               \
    {                                                                                                                  \
        return scaled(k, SCALE_TWICE);                                                                                 \
    }                                                                                                                  \
    int cause_##id##_wrong_scale(struct candidate *k)                                                                  \
    {                                                                                                                  \
        return scaled(k, SCALE_OTHER);                                                                                 \
    }                                                                                                                  \
    int cause_##id##_other_format(struct candidate *k)                                                                 \
    {                                                                                                                  \
        return decoded(k);                                                                                             \
    }                                                                                                                  \
    int cause_##id##_zero_group(struct candidate *k)                                                                   \
    {                                                                                                                  \
        return zero_group(k);                                                                                          \
    }
OPERAND(q)
OPERAND(k)
OPERAND(v)
#undef OPERAND

#define STAGE(id, call, with)                                                                                          \
    int cause_##id##_not_descaled(struct candidate *k)                                                                 \
    {                                                                                                                  \
        return call(k, SCALE_MISSING, with);                                                                           \
    }                                                                                                                  \
    int cause_##id##_descaled_twice(struct candidate *k)                                                               \
    {                                                                                                                  \
        return call(k, SCALE_TWICE, with);                                                                             \
    }                                                                                                                  \
    int cause_##id##_wrong_scale(struct candidate *k)                                                                  \
    {                                                                                                                  \
        return call(k, SCALE_OTHER, with);                                                                             \
    }
STAGE(s, with_scales, k->tile->s)
STAGE(alpha, exponents, cause_alpha_exponent_times)
STAGE(p, exponents, cause_p_exponent_times)
STAGE(lse, exponents, cause_lse_m_times)
STAGE(u, with_scale_of_v, ASC_V_PRODUCT)
STAGE(o, with_scale_of_v, ASC_V_OUTPUT)
#undef STAGE

/* Codes that are multiplied, moved by a constant: q.k with q + z, k + z, or both. */
int cause_s_zero_point(struct candidate *k)
{
    const struct walk_tile *tile = k->tile;
    const struct oracle_case *c = tile->c;
    struct operands s = cause_altered(k);
    const struct cause_zero_point by = cause_code_zero_point(chosen(k));
    const struct stage *q = &tile->s->stage[asc_q], *key = &tile->s->stage[asc_k];
    if ((by.of_q && codes_use(c, asc_q) != CODES_RAW) || (by.of_k && codes_use(c, asc_k) != CODES_RAW))
        return 0;
    for (int i = 0; i < q->rows * q->cols; i++)
        k->tile->s->mistake.operand[i] = tile->s->at.of[asc_q].value[i] + (by.of_q ? by.z : 0);
    for (int i = 0; i < key->rows * key->cols; i++)
        k->tile->s->mistake.size[i] = tile->s->at.of[asc_k].value[i] + (by.of_k ? by.z : 0);
    s.of[asc_q].value = s.size[asc_q] = k->tile->s->mistake.operand;
    s.of[asc_k].value = s.size[asc_k] = k->tile->s->mistake.size;
    local_s(c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}
