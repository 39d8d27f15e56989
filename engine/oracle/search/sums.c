/* Rules of sums: S or U is summed in f16. rule->keys.a says how: of S 0: one rounding per step, 1: product and sum are
   rounded each, 2: by a tensor core; of U in which of the ways that an f16 accumulator leaves open. Or in rule->type,
   rounded after every rule->share terms that are added in f32; of U keys.a is enum before. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <float.h>
#include <stdio.h>

static bool is_given(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch)
{
    return scratch_captured(s, c, ch)->data != NULL;
}

/* The sums of a tile by tensor cores, in the scratch; c: the case, its accumulator as the rule has it. */
static bool sum_by_core(struct judge_scratch *s, const struct oracle_case *c, const struct sample_tile *t,
                        const struct product_way *way, struct product *product)
{
    scratch_tile(s, c, t->kv);
    s->at = t->x;
    s->stage[asc_p].recorded = is_given(s, c, asc_p);
    s->stage[asc_alpha].recorded = is_given(s, c, asc_alpha);
    if (product_take(c, s, way->ch, product) != 0)
        return false;
    product_sum(s, product, way, (float *)(void *)s->core.sums);
    return true;
}

static double sum_forward_in_d(const struct sample_tile *t, int r, int col, bool rounds_products)
{
    const size_t D = (size_t)t->c->head_dim;
    const double *q = t->x.of[asc_q].value + (size_t)r * D, *k = t->x.of[asc_k].value + (size_t)col * D;
    double sum = 0;
    for (size_t d = 0; d < D; d++) {
        const double product = q[d] * k[d];
        sum = bound_round(DTYPE_F16, sum + (rounds_products ? bound_round(DTYPE_F16, product) : product));
    }
    return sum;
}

/* What follows the sum is as it should be. By an H100's tensor core: the only one whose f16 sums are known to the bit.
 */
static bool sum_scores(struct judge_scratch *s, int how, const struct sample_tile *t, double *want, double *bound)
{
    struct product product;
    const struct oracle_case *c = t->c;
    const struct product_way way = {.ch = asc_s, .model = TENSOR_CORE_H100_F16, .factor = {1, 1}};
    const double factor = values_factor(c->conventions.s_unit, c->scale) / values_fold(c);
    const double unit = 4 * product_rounding(c->conventions.acc_s) * BOUND_SLACK;
    if (c->softcap > 0 ||
        (how == 2 && (c->conventions.acc_s != ASC_ACC_MMA_F16 || !sum_by_core(s, c, t, &way, &product))))
        return false;
    for (size_t i = 0; i < sample_cells(t); i++) {
        const int r = (int)(i / (size_t)t->cols), col = (int)(i % (size_t)t->cols);
        const bool seen = values_mask_later(c) || operands_see(&t->x, r, col);
        const double by = t->x.scales_s ? t->x.by_q[r] * t->x.by_k[col] : 1;
        want[i] = t->want[i];
        bound[i] = t->bound[i];
        if (!seen || !isfinite(want[i]))
            continue;
        want[i] = factor * by *
                  (how == 2 ? (double)((const float *)(void *)s->core.sums)[i] : sum_forward_in_d(t, r, col, how == 1));
        bound[i] = unit * fabs(want[i]);
    }
    return true;
}

/* Where a sum may lie that is rounded after every `share` products: those between two roundings are added in f32, in
   any order. Rounding keeps the order of numbers, so both ends are taken along. */
struct interval {
    double low, high;
};

static struct interval round_interval(const struct rule *rule, struct interval x, double off)
{
    return (struct interval){rule_rounded(rule, x.low - off), rule_rounded(rule, x.high + off)};
}

static struct interval sum_narrow(const struct rule *rule, struct interval x, const double *a, const double *b,
                                  int step, int n)
{
    const double relative = bound_gamma(rule->share + 2);
    for (int k = 0; k < n; k += rule->share) {
        double sum = 0, size = fmax(fabs(x.low), fabs(x.high));
        for (int i = k; i < k + rule->share && i < n; i++) {
            const double exact = a[i] * b[(ptrdiff_t)i * step],
                         product = rule->keys.a == BEFORE_PRODUCTS ? rule_rounded(rule, exact) : exact;
            sum += product;
            size += fabs(product);
        }
        if (rule->keys.a >= BEFORE_ALONE)
            x = (struct interval){x.low + sum - relative * size, x.high + sum + relative * size};
        else
            x = round_interval(rule, (struct interval){x.low + sum, x.high + sum}, relative * size);
    }
    return x;
}

/* Its middle and half its width, times a factor that costs `unit`. Behind the range of the type nothing is known but
   where both ends are the same. */
static void take_interval(struct interval x, double factor, double unit, double *want, double *bound)
{
    const double middle = x.low == x.high ? x.low : (x.low + x.high) / 2;
    *want = factor * middle;
    *bound = x.low == x.high ? 0 : fabs(factor) * (x.high - x.low) / 2;
    *bound += isfinite(*want) ? unit * fabs(*want) : 0;
    if (isnan(*want) || isnan(*bound) || (*bound == INFINITY)) {
        *want = NAN;
        *bound = INFINITY;
    }
}

static bool sum_weights(const struct rule *rule, const struct sample_tile *t, double *want, double *bound)
{
    const int C = t->x.cols, D = t->cols;
    if (t->next_alpha || t->x.times_v != 1 || !t->x.pv_p.value || !t->x.of[asc_v].value)
        return false;
    for (int i = 0; i < t->rows * D; i++) {
        const int r = i / D;
        const double kept = t->x.of[asc_alpha].value[r] * t->x.u_prev.value[i], off = BOUND_U * fabs(kept);
        const bool behind = rule->keys.a == BEFORE_BEHIND;
        struct interval x = {0, 0};
        want[i] = t->want[i];
        bound[i] = t->bound[i];
        if (!isfinite(kept) || !isfinite(want[i]))
            continue;
        if (!behind)
            x = (struct interval){kept - off, kept + off};
        if (rule->keys.a == BEFORE_ROUNDED || rule->keys.a == BEFORE_ALONE)
            x = round_interval(rule, x, 0);
        x = sum_narrow(rule, x, t->x.pv_p.value + (ptrdiff_t)r * C, t->x.of[asc_v].value + i % D, D, C);
        if (behind)
            x = (struct interval){x.low + kept - off, x.high + kept + off};
        take_interval(x, 1, behind || rule->keys.a >= BEFORE_ALONE ? BOUND_U : 0, &want[i], &bound[i]);
    }
    return true;
}

static bool sum_scores_narrow(const struct rule *rule, const struct sample_tile *t, double *want, double *bound)
{
    const struct oracle_case *c = t->c;
    const int D = c->head_dim;
    const double factor = values_factor(c->conventions.s_unit, c->scale) / values_fold(c);
    if (c->softcap > 0 || !t->x.of[asc_q].value || !t->x.of[asc_k].value)
        return false;
    for (int i = 0; i < t->rows * t->cols; i++) {
        const int r = i / t->cols, col = i % t->cols;
        const double by = t->x.scales_s ? t->x.by_q[r] * t->x.by_k[col] : 1;
        want[i] = t->want[i];
        bound[i] = t->bound[i];
        if (!isfinite(want[i]) || !(values_mask_later(c) || operands_see(&t->x, r, col)))
            continue;
        take_interval(sum_narrow(rule, (struct interval){0, 0}, t->x.of[asc_q].value + (ptrdiff_t)r * D,
                                 t->x.of[asc_k].value + (ptrdiff_t)col * D, 1, D),
                      factor * by, 4 * BOUND_U, &want[i], &bound[i]);
    }
    return true;
}

bool sum_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                 double *bound)
{
    struct judge_scratch *s = search->scratch;
    struct oracle_case c = *t->c;
    struct product_way ways[PRODUCT_WAYS];
    struct product product;
    if (rule->share)
        return search->sample->channel == asc_s ? sum_scores_narrow(rule, t, want, bound)
                                                : sum_weights(rule, t, want, bound);
    if (search->sample->channel == asc_s)
        return sum_scores(s, rule->keys.a, t, want, bound);
    c.conventions.acc_u = ASC_ACC_MMA_F16_F16;
    if (rule->keys.a >= product_ways(&c, asc_u, ways) || !sum_by_core(s, &c, t, &ways[rule->keys.a], &product))
        return false;
    product_finish(s, &product, &ways[rule->keys.a], (const float *)(void *)s->core.sums, (float *)(void *)s->core.out);
    for (size_t i = 0; i < sample_cells(t); i++) {
        want[i] = (double)((const float *)(void *)s->core.out)[i];
        bound[i] = DBL_MIN; /* known to the bit, but no constant */
    }
    return true;
}

static void say_narrow(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const bool is_s = s->channel == asc_s;
    const int all = is_s ? s->tiles[0].c->head_dim : s->tiles[0].c->bc;
    const char *type = dtype_name(rule->type), *rounded = rule->cuts ? "cut off" : "rounded";
    const char *of = is_s ? "element" : "key";
    if (rule->keys.a == BEFORE_PRODUCTS)
        snprintf(out, bytes, "each product that %s is summed of is %s to %s, and the sum is not",
                 channel_label(s->channel), rounded, type);
    else if (!is_s && rule->keys.a == BEFORE_ALONE)
        snprintf(out, bytes, "U of the tiles before is %s to %s once it is rescaled", rounded, type);
    else if (rule->share >= all && is_s)
        snprintf(out, bytes, "the sum that S is made of is %s to %s before it is scaled", rounded, type);
    else if (rule->share >= all)
        snprintf(out, bytes, "%s %s to %s",
                 rule->keys.a == BEFORE_BEHIND ? "what the tile adds to U is"
                                               : "U is, once rescaled and once added to,",
                 rounded, type);
    else if (rule->share == 1)
        snprintf(out, bytes, "%s is summed in %s: %s after every %s", channel_label(s->channel), type, rounded, of);
    else
        snprintf(out, bytes, "%s is summed in %s: %s after every %d %ss", channel_label(s->channel), type, rounded,
                 rule->share, of);
}

void sum_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    static const char *const how[] = {"in the order of d", "in the order of d, products rounded as well"};
    if (rule->share) {
        say_narrow(s, rule, out, bytes);
        return;
    }
    snprintf(out, bytes, "%s is summed in f16, %s", channel_label(s->channel),
             s->channel == asc_s && rule->keys.a < 2 ? how[rule->keys.a] : "by tensor cores");
}
