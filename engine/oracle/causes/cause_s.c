/* Causes of wrong scores. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include <string.h>

/* 1: S is recorded behind the soft cap, and so scaled. */
static int is_capped(const struct oracle_case *c)
{
    return c->softcap > 0 && !values_capped_later(c);
}

int cause_s_scaled_twice(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (c.conventions.q_fold != ASC_FOLD_NONE) {
        c.conventions.q_fold = ASC_FOLD_NONE; /* Q holds the factor, and the scores get it once more */
    } else {
        /* A raw score has been scaled twice where it carries the scale's square; one behind the cap has been scaled. */
        if (c.conventions.s_unit == ASC_UNIT_RAW && !is_capped(&c))
            c.conventions.s_unit = ASC_UNIT_SCALED;
        c.scale = codes_plain_scale(&c) * codes_plain_scale(&c);
    }
    local_s(&c, &s, &k->tile->s->room, cause_out(k));
    cause_loosen(k, 3);
    return 1;
}

int cause_s_not_scaled(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (c.conventions.q_fold != ASC_FOLD_NONE || (c.conventions.s_unit == ASC_UNIT_RAW && !is_capped(&c)))
        return 0;
    c.scale = 1;
    local_s(&c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}

static int with_k(const struct candidate *k, const double *operand)
{
    struct operands s = cause_altered(k);
    s.of[asc_k].value = operand;
    s.size[asc_k] = cause_sizes(k, operand);
    local_s(k->tile->c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}

static int with_q(const struct candidate *k, const double *operand)
{
    struct operands s = cause_altered(k);
    s.of[asc_q].value = operand;
    local_s(k->tile->c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}

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

/* Key c as row and d as column trade places: that stays inside the tile where it is square. */
int cause_s_k_not_transposed(struct candidate *k)
{
    const int n = k->tile->c->head_dim, rows = k->tile->s->at.cols;
    const double *from = k->tile->s->at.of[asc_k].value;
    double *to = k->tile->s->mistake.operand;
    if (k->tile->c->bc != n)
        return 0;
    for (int col = 0; col < n; col++)
        for (int d = 0; d < n; d++)
            to[col * n + d] = d < rows ? from[d * n + col] : 0;
    return with_k(k, to);
}

int cause_s_k_blocks_transposed(struct candidate *k)
{
    return cause_transpose_blocks(k, asc_k) && with_k(k, k->tile->s->mistake.operand);
}

/* The right formula under another mask. */
static int masked_as(const struct candidate *k, const struct oracle_case *mask, int by)
{
    struct operands s = cause_altered(k);
    cause_see(k, mask, by, &s);
    local_s(k->tile->c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}

/* Each row sees as far as the row `by` below it should. */
static int causal_moved(const struct candidate *k, int by)
{
    return k->tile->c->causal != ASC_CAUSAL_NONE && masked_as(k, k->tile->c, by);
}

int cause_s_causal_one_more(struct candidate *k)
{
    return causal_moved(k, 1);
}

int cause_s_causal_one_less(struct candidate *k)
{
    return causal_moved(k, -1);
}

static int causal_corner(const struct candidate *k, enum asc_causal causal)
{
    struct oracle_case c = *k->tile->c;
    if (c.causal == (int)causal)
        return 0;
    c.causal = (int)causal;
    return masked_as(k, &c, 0);
}

int cause_s_causal_top_left(struct candidate *k)
{
    return causal_corner(k, ASC_CAUSAL_TOP_LEFT);
}

int cause_s_causal_bottom_right(struct candidate *k)
{
    return causal_corner(k, ASC_CAUSAL_BOTTOM_RIGHT);
}

/* A key beyond kv_len is a row of zeros. */
static void zero_padding(struct candidate *k)
{
    k->row_padding = k->tile->s->room.zero;
    k->row_padding_bound = k->tile->s->room.zero;
}

int cause_s_mask_missing(struct candidate *k)
{
    const struct oracle_case c = cause_without_mask(k->tile->c);
    zero_padding(k); /* the tail may have been a part of that mask */
    return cause_has_mask(k->tile->c) && masked_as(k, &c, 0);
}

int cause_s_window_missing(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    if (c.causal == ASC_CAUSAL_NONE || !cause_has_window(&c))
        return 0; /* without a causal mask that is no mask at all */
    c.window_left = c.window_right = -1;
    return masked_as(k, &c, 0);
}

int cause_s_window_moved(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    int *edge = (int)k->parameter < 2 ? &c.window_left : &c.window_right;
    const int by = (int)k->parameter % 2 ? -1 : 1;
    if (*edge < 0 || *edge + by < 0)
        return 0;
    *edge += by;
    return masked_as(k, &c, 0);
}

int cause_s_not_capped(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (!is_capped(&c))
        return 0;
    c.softcap = 0;
    local_s(&c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}

int cause_s_tail_not_masked(struct candidate *k)
{
    if (k->tile->c->kv_len % k->tile->c->bc == 0)
        return 0;
    cause_right(k);
    zero_padding(k);
    return 1;
}

int cause_s_k_previous_tile(struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    const int kv = k->tile->visited[(int)k->parameter];
    cause_right(k); /* before the first tile there was nothing */
    return kv < 0 || (cause_operand_of_tile(k, asc_k, kv, other) && with_k(k, other));
}

int cause_s_k_next_tile(struct candidate *k)
{
    return cause_with_next(k, asc_k, with_k);
}

int cause_s_holds_v(struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    return cause_operand_of_tile(k, asc_v, k->tile->s->at.kv, other) && with_k(k, other);
}

int cause_s_k_wrong_head(struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    return cause_operand_of_head(k, asc_k, k->parameter, other) && with_k(k, other);
}

int cause_s_rows_permuted(struct candidate *k)
{
    const struct walk_tile *tile = k->tile;
    struct operands s = cause_altered(k);
    const size_t D = (size_t)tile->c->head_dim, bytes = D * sizeof(double);
    double *q = tile->s->mistake.operand, *size = tile->s->mistake.size;
    for (int r = 0; r < tile->c->in_q.rows; r++) {
        const int from = cause_permuted(k->parameter, r, tile->c->br);
        double *to = q + (size_t)r * D, *to_size = size + (size_t)r * D;
        if (from < tile->s->stage[asc_q].rows) {
            memcpy(to, tile->s->at.of[asc_q].value + (size_t)from * D, bytes);
            memcpy(to_size, tile->s->at.size[asc_q] + (size_t)from * D, bytes);
        } else {
            memset(to, 0, bytes);
            memset(to_size, 0, bytes);
        }
    }
    s.of[asc_q].value = q;
    s.size[asc_q] = size;
    local_s(tile->c, &s, &k->tile->s->room, cause_out(k));
    return 1;
}

int cause_s_columns_permuted(struct candidate *k)
{
    cause_permute_operand(k, asc_k);
    return with_k(k, k->tile->s->mistake.operand);
}

int cause_s_head_dim_cut(struct candidate *k)
{
    const int D = k->tile->c->head_dim;
    double *q = cause_copy(k, k->tile->s->at.of[asc_q].value, asc_q);
    for (int r = 0; r < k->tile->c->in_q.rows; r++)
        memset(q + (size_t)(r * D + (int)k->parameter), 0, (size_t)(D - (int)k->parameter) * sizeof *q);
    return with_q(k, q);
}

static int wider(const struct candidate *k, enum dtype t)
{
    const enum dtype captured = scratch_captured(k->tile->s, k->tile->c, k->channel)->dtype;
    return dtype_bytes(captured) > dtype_bytes(t);
}

int cause_s_rounded(struct candidate *k)
{
    k->rounds = cause_type(k->parameter);
    cause_right(k);
    return wider(k, k->rounds);
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
