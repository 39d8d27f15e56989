/* Causes of a wrong running sum. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <string.h>

static int with_alpha(const struct candidate *k, double power)
{
    struct operands s = cause_altered(k);
    cause_power_of_alpha(k, power, &s);
    local_l(k->tile->c, &s, cause_out(k));
    cause_loosen(k, 4);
    return 1;
}

int cause_l_not_rescaled(struct candidate *k)
{
    return with_alpha(k, 0);
}

int cause_l_rescaled_twice(struct candidate *k)
{
    return with_alpha(k, 2);
}

int cause_l_rescaled_inverse(struct candidate *k)
{
    return with_alpha(k, -1);
}

/* alpha times the sum, this tile's part included. */
int cause_l_rescaled_late(struct candidate *k)
{
    const struct operand *alpha = &k->tile->s->at.of[asc_alpha];
    struct operands s = cause_altered(k);
    cause_power_of_alpha(k, 0, &s);
    local_l(k->tile->c, &s, cause_out(k));
    for (int r = 0; r < k->tile->c->in_q.rows; r++) {
        const double size = fabs(k->want[r]);
        k->want[r] *= alpha->value[r];
        k->bound[r] = k->bound[r] * (fabs(alpha->value[r]) + alpha->loose[r]) + size * alpha->loose[r] + BOUND_TINY;
    }
    cause_loosen(k, 2);
    return 1;
}

int cause_l_previous_dropped(struct candidate *k)
{
    struct operands s = cause_altered(k);
    cause_right(k); /* before the first tile there was nothing but a sink */
    if (k->tile->visited[0] < 0)
        return 1;
    s.l_prev.value = k->tile->s->room.zero;
    s.l_prev.loose = k->tile->s->room.zero;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}

static int with_p(const struct candidate *k, const double *p)
{
    struct operands s = cause_altered(k);
    s.l_p.value = p;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}

static int with_p_exactly(const struct candidate *k, struct operand p)
{
    struct operands s = cause_altered(k);
    s.l_p = p;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_l_tile_dropped(struct candidate *k)
{
    struct operands s = cause_altered(k);
    s.l_p.value = k->tile->s->room.zero;
    s.l_p.loose = k->tile->s->room.zero;
    s.pad_cols = 0;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}

static const double *carried(const struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    for (int r = 0; r < s->stage[asc_l].rows; r++)
        s->mistake.alpha[r] = s->at.of[asc_alpha].value[r] * s->at.l_prev.value[r];
    return s->mistake.alpha;
}

static int over_part(struct candidate *k, int (*in)(const struct walk_tile *tile, double parameter, int r, int col))
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p = cause_copy(k, k->tile->s->at.l_p.value, asc_p);
    for (int r = 0; r < stage->rows; r++)
        for (int col = 0; col < stage->cols; col++)
            if (!in(k->tile, k->parameter, r, col))
                p[(size_t)r * (size_t)stage->cols + (size_t)col] = 0;
    with_p(k, p);
    /* A part whose weights are all negligible cannot be told from a tile that is left out. */
    k->rival = carried(k);
    return 1;
}

int cause_l_part_of_row(struct candidate *k)
{
    return over_part(k, cause_in_part);
}

int cause_l_reduction_incomplete(struct candidate *k)
{
    return over_part(k, cause_in_lanes);
}

int cause_l_padding_counted(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    const int padding = c->bc - s->at.cols;
    if (c->kv_len % c->bc == 0 || s->at.pad_cols > 0)
        return 0;
    cause_right(k);
    for (int r = 0; r < s->stage[asc_l].rows && padding > 0; r++) {
        double bound = 0;
        const double weight = cause_padding_weight(k->tile, r, &bound);
        k->want[r] += padding * weight * s->at.beta.value[r];
        k->bound[r] += padding * ((s->at.beta.value[r] + s->at.beta.loose[r]) * bound + s->at.beta.loose[r] * weight +
                                  s->at.beta.value[r] * weight * bound_sum(c->bc));
    }
    return 1;
}

/* Where S is recorded before the mask, what stands in its padding has no weight. */
int cause_l_after_mask(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    struct operands s = cause_altered(k);
    if (values_mask_later(c) || c->kv_len % c->bc == 0)
        return 0;
    s.pad_cols = 0;
    local_l(c, &s, cause_out(k));
    return 1;
}

int cause_l_p_saturated(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p = cause_copy(k, k->tile->s->at.l_p.value, asc_p);
    for (int i = 0; i < stage->rows * stage->cols; i++)
        p[i] = fmin(p[i], E4M3_MAX);
    return with_p(k, p);
}

int cause_l_from_rounded(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p = cause_copy(k, k->tile->s->at.of[asc_p].value, asc_p);
    enum dtype declared;
    if (k->tile->c->conventions.l_from == ASC_L_ROUNDED && values_p_type(k->tile->c, &declared) &&
        declared == cause_type(k->parameter))
        return 0; /* that is what is wanted: what differs is something else */
    for (int i = 0; i < stage->rows * stage->cols; i++)
        p[i] = bound_round(cause_type(k->parameter), p[i]);
    return with_p(k, p);
}

/* The weights before they were rounded: as recorded, or where a narrow type was, as they follow from s and m. */
int cause_l_from_unrounded(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    struct operands s = cause_altered(k);
    double unit = 0;
    double half_tiny = 0;
    if (!p->recorded || k->tile->c->conventions.l_from == ASC_L_UNROUNDED) /* that is what is wanted */
        return 0;
    if (!bound_narrow(scratch_captured(k->tile->s, k->tile->c, asc_p)->dtype, &unit, &half_tiny))
        return with_p_exactly(k, k->tile->s->at.of[asc_p]);
    s.l_p.value = p->want[LOCAL];
    s.l_p.loose = p->bound[LOCAL];
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}
