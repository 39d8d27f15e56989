/* Causes of a wrong unnormalized output. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <string.h>

/* U as it was recorded: where the next tile has rescaled it, by the power of its alpha. */
static int evaluate_as(const struct candidate *k, const struct oracle_case *c, struct operands *s, double power)
{
    const struct walk_tile *tile = k->tile;
    const int rows = tile->c->in_q.rows;
    double *alpha = tile->s->mistake.alpha, *loose = alpha + rows;
    local_u(c, s, &tile->s->room, cause_out(k));
    if (!tile->next_alpha)
        return 1;
    for (int r = 0; r < rows; r++) {
        const double x = tile->next_alpha[r];
        alpha[r] = x != 0 ? pow(x, power) : power == 0;
        loose[r] = tile->next_alpha_loose[r] > 0 ? fabs(power * pow(x, power - 1)) * tile->next_alpha_loose[r] : 0;
    }
    local_rescale(tile->c, alpha, loose, k->want, k->bound);
    return 1;
}

static int evaluate(const struct candidate *k, struct operands *s, double power)
{
    return evaluate_as(k, k->tile->c, s, power);
}

int cause_u_of(const struct candidate *k, const struct oracle_case *c, struct operands *s)
{
    return evaluate_as(k, c, s, 1);
}

static int with_p(const struct candidate *k, const double *p)
{
    struct operands s = cause_altered(k);
    s.pv_p.value = p;
    return evaluate(k, &s, 1);
}

/* The bits of what the tensor core gives are known. That is no constant: its bound is not 0. */
static int summed_in_f16(const struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct judge_scratch *s = k->tile->s;
    const struct stage *u = &s->stage[asc_u];
    struct product_way ways[PRODUCT_WAYS];
    struct product product;
    c.conventions.acc_u = ASC_ACC_MMA_F16_F16;
    if ((int)k->parameter >= product_ways(&c, asc_u, ways) || product_take(&c, s, asc_u, &product) != 0)
        return 0;
    const struct product_way *way = &ways[(int)k->parameter];
    void *sums = s->core.sums, *out = s->core.out;
    product_sum(s, &product, way, sums);
    product_finish(s, way, sums, out);
    const float *given = out;
    for (int i = 0; i < u->rows * u->cols; i++) {
        k->want[i] = (double)given[i];
        k->bound[i] = DBL_MIN;
    }
    return 1;
}

int cause_u_summed_in_f16(struct candidate *k)
{
    return k->tile->c->conventions.acc_u != ASC_ACC_MMA_F16_F16 && summed_in_f16(k);
}

/* The same of a declared one: what tells is what leaves its range, sums of a part of the keys on the way among it. */
int cause_u_f16_overflow(struct candidate *k)
{
    k->makes_nan = 1;
    return k->tile->c->conventions.acc_u == ASC_ACC_MMA_F16_F16 && summed_in_f16(k);
}

int cause_u_p_masked_late(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p = cause_copy(k, k->tile->s->at.pv_p.value, asc_p);
    for (int i = 0; i < stage->rows * stage->cols; i++)
        if (!cause_sees(k->tile, i / stage->cols, i % stage->cols))
            p[i] = 0;
    return with_p(k, p);
}

int cause_u_p_unrounded(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    struct operands s = cause_altered(k);
    enum dtype t;
    if (!values_p_type(k->tile->c, &t) || !p->recorded || scratch_captured(k->tile->s, k->tile->c, asc_p)->dtype == t)
        return 0;
    s.pv_p = s.of[asc_p];
    return evaluate(k, &s, 1);
}

int cause_u_p_rounded(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p =
        cause_copy(k, k->tile->s->at.of[asc_p].value, asc_p); /* as recorded: another type than the declared one */
    enum dtype t;
    if (values_p_type(k->tile->c, &t) && t == cause_type(k->parameter))
        return 0;
    for (int i = 0; i < stage->rows * stage->cols; i++)
        p[i] = bound_round(cause_type(k->parameter), p[i]);
    return with_p(k, p);
}
