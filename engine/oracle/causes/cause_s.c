/* Causes of wrong scores. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include <string.h>

int cause_s_swizzled(struct candidate *k)
{
    const struct swizzle swizzle = cause_swizzle(k->parameter);
    struct operands s = cause_altered(k);
    if (swizzle.of_q) {
        cause_swizzle_operand(k, asc_q, swizzle.mask, k->tile->s->mistake.operand);
        s.of[asc_q].value = k->tile->s->mistake.operand;
        s.size[asc_q] = k->tile->s->mistake.operand;
    }
    if (swizzle.of_k) {
        cause_swizzle_operand(k, asc_k, swizzle.mask, k->tile->s->mistake.size);
        s.of[asc_k].value = k->tile->s->mistake.size;
        s.size[asc_k] = k->tile->s->mistake.size;
    }
    local_s(k->tile->c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}

/* A key beyond kv_len is a row of zeros. */
static void zero_padding(struct candidate *k)
{
    k->row_padding = k->tile->s->room.zero;
    k->row_padding_bound = k->tile->s->room.zero;
}

int cause_s_tail_not_masked(struct candidate *k)
{
    if (k->tile->c->kv_len % k->tile->c->bc == 0)
        return 0;
    cause_right(k);
    zero_padding(k);
    return 1;
}

/* Row r, column col of the tile is the product and nothing else. */
static int is_product(const struct candidate *k, int r, int col)
{
    const struct walk_tile *tile = k->tile;
    return isfinite(tile->s->stage[asc_s].want[LOCAL][(size_t)r * (size_t)tile->s->at.cols + (size_t)col]) &&
           (cause_sees(tile, r, col) || values_mask_later(tile->c));
}

/* What element i of S gets beside its factor. */
static double scale_of_codes(const struct judge_scratch *s, int i)
{
    return s->at.scales_s ? s->at.by_q[i / s->at.cols] * s->at.by_k[i % s->at.cols] : 1;
}

/* By a tensor core with an f16 accumulator, an H100's: the only one whose sums are known to the bit. */
static int accumulated_in_f16_fragments(const struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    struct judge_scratch *s = k->tile->s;
    const struct product_way way = {.ch = asc_s, .model = TENSOR_CORE_H100_F16, .factor = {1, 1}};
    const double factor = values_factor(c->conventions.s_unit, c->scale) / values_fold(c);
    float *sums = (void *)s->core.sums;
    struct product product;
    if (c->conventions.acc_s != ASC_ACC_MMA_F16 || product_take(c, s, asc_s, &product) != 0)
        return 0;
    product_sum(s, &product, &way, sums);
    cause_right(k);
    for (int i = 0; i < c->in_q.rows * s->at.cols; i++) {
        if (!is_product(k, i / s->at.cols, i % s->at.cols))
            continue;
        k->want[i] = factor * scale_of_codes(s, i) * (double)sums[i];
        k->bound[i] = 0;
    }
    cause_loosen(k, 4);
    return 1;
}

/* The sum in f16, forward in d; what follows it is f32. */
int cause_s_accumulated_in_f16(struct candidate *k)
{
    const struct walk_tile *tile = k->tile;
    const int D = tile->c->head_dim, cols = tile->s->at.cols;
    const double *right = tile->s->stage[asc_s].want[LOCAL], *b = tile->s->at.of[asc_k].value;
    const double factor = values_factor(tile->c->conventions.s_unit, tile->c->scale) / values_fold(tile->c);
    if (tile->c->softcap > 0)
        return 0;
    if (k->parameter > 1)
        return accumulated_in_f16_fragments(k);
    for (int r = 0; r < tile->c->in_q.rows; r++) {
        const double *q = tile->s->at.of[asc_q].value + (size_t)r * (size_t)D;
        for (int col = 0; col < cols; col++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            const double *key = b + (size_t)col * (size_t)D;
            double sum = 0;
            k->want[i] = right[i];
            k->bound[i] = 0;
            if (!is_product(k, r, col))
                continue;
            for (int d = 0; d < D; d++) {
                const double product = q[d] * key[d];
                sum = bound_round(DTYPE_F16, sum + (k->parameter > 0 ? bound_round(DTYPE_F16, product) : product));
            }
            k->want[i] = factor * scale_of_codes(tile->s, (int)i) * sum;
        }
    }
    cause_loosen(k, 4);
    return 1;
}

int cause_s_unit(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if ((int)k->parameter == c.conventions.s_unit)
        return 0;
    c.conventions.s_unit = (int)k->parameter;
    local_s(&c, &s, &k->tile->s->room, cause_out(k));
    cause_loosen(k, 2);
    return 1;
}

int cause_s_recorded_before_mask(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if ((int)k->parameter == c.conventions.s_at)
        return 0;
    c.conventions.s_at = (int)k->parameter;
    local_s(&c, &s, &k->tile->s->room, cause_out(k));
    if (values_mask_later(&c))
        zero_padding(k); /* the tail is masked then as well */
    return 1;
}

/* Masked scores are the parameter. */
static int masked_by(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (values_mask_later(&c))
        return 0;
    c.conventions.s_masked = ASC_MASKED_VALUE;
    c.conventions.s_masked_value = (float)k->parameter;
    local_s(&c, &s, &k->tile->s->room, cause_out(k));
    for (int r = 0; r < c.in_q.rows; r++)
        k->tile->s->mistake.alpha[r] = k->parameter;
    k->row_padding = k->tile->s->mistake.alpha;
    k->row_padding_bound = k->tile->s->room.zero;
    return 1;
}

int cause_s_masked_value(struct candidate *k)
{
    return masked_by(k);
}

int cause_s_mask_too_weak(struct candidate *k)
{
    return masked_by(k);
}
