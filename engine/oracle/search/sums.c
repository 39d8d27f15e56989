/* Rules of sums: S or U is summed in f16. rule->keys.a says how: of S 0: one rounding per step, 1: product and sum are
   rounded each, 2: by a tensor core; of U in which of the ways that an f16 accumulator leaves open. */
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
                        const struct product_way *way)
{
    struct product product;
    scratch_tile(s, c, t->kv);
    s->at = t->x;
    s->stage[asc_p].recorded = is_given(s, c, asc_p);
    s->stage[asc_alpha].recorded = is_given(s, c, asc_alpha);
    if (product_take(c, s, way->ch, &product) != 0)
        return false;
    product_sum(s, &product, way, (float *)(void *)s->core.sums);
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
    const struct oracle_case *c = t->c;
    const struct product_way way = {.ch = asc_s, .model = TENSOR_CORE_H100_F16, .factor = {1, 1}};
    const double factor = values_factor(c->conventions.s_unit, c->scale) / values_fold(c);
    const double unit = 4 * product_rounding(c->conventions.acc_s) * BOUND_SLACK;
    if (c->softcap > 0 || (how == 2 && (c->conventions.acc_s != ASC_ACC_MMA_F16 || !sum_by_core(s, c, t, &way))))
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

bool sum_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                 double *bound)
{
    struct judge_scratch *s = search->scratch;
    struct oracle_case c = *t->c;
    struct product_way ways[PRODUCT_WAYS];
    if (search->sample->channel == asc_s)
        return sum_scores(s, rule->keys.a, t, want, bound);
    c.conventions.acc_u = ASC_ACC_MMA_F16_F16;
    if (rule->keys.a >= product_ways(&c, asc_u, ways) || !sum_by_core(s, &c, t, &ways[rule->keys.a]))
        return false;
    product_finish(s, &ways[rule->keys.a], (const float *)(void *)s->core.sums, (float *)(void *)s->core.out);
    for (size_t i = 0; i < sample_cells(t); i++) {
        want[i] = (double)((const float *)(void *)s->core.out)[i];
        bound[i] = DBL_MIN; /* known to the bit, but no constant */
    }
    return true;
}

void sum_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    static const char *const how[] = {"in the order of d", "in the order of d, products rounded as well"};
    snprintf(out, bytes, "%s is summed in f16, %s", channel_label(s->channel),
             s->channel == asc_s && rule->keys.a < 2 ? how[rule->keys.a] : "by tensor cores");
}
