/* Causes of a wrong running sum and of a wrong unnormalized output. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"

/* l or U of other weights; U as it was recorded: where the next tile has rescaled it, so. */
static int of_weights(const struct candidate *k, struct operand p)
{
    const struct walk_tile *tile = k->tile;
    struct operands s = cause_altered(k);
    if (k->channel == asc_l) {
        s.l_p = p;
        local_l(tile->c, &s, cause_out(k));
        return 1;
    }
    s.pv_p = p;
    local_u(tile->c, &s, &tile->s->room, cause_out(k));
    if (tile->next_alpha)
        local_rescale(tile->c, tile->next_alpha, tile->next_alpha_loose, k->want, k->bound);
    return 1;
}

/* Weights as they were recorded, rounded to another type than the declared one. */
static int of_rounded(const struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct stage *stage = &k->tile->s->stage[asc_p];
    const enum dtype type = cause_type(k->parameter);
    struct operand p = k->channel == asc_l ? k->tile->s->at.l_p : k->tile->s->at.pv_p;
    double *rounded = cause_copy(k, k->tile->s->at.of[asc_p].value, asc_p);
    enum dtype declared;
    if (values_p_type(c, &declared) && declared == type &&
        (k->channel == asc_u || c->conventions.l_from == ASC_L_ROUNDED))
        return 0; /* that is what is wanted: what differs is something else */
    for (int i = 0; i < stage->rows * stage->cols; i++)
        rounded[i] = bound_round(type, rounded[i]);
    p.value = rounded;
    return of_weights(k, p);
}

int cause_l_from_rounded(struct candidate *k)
{
    return of_rounded(k);
}

int cause_u_p_rounded(struct candidate *k)
{
    return of_rounded(k);
}

/* The weights before they were rounded: as recorded, or where a narrow type was, as they follow from s and m. */
int cause_l_from_unrounded(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    double unit = 0, half_tiny = 0;
    if (!p->recorded || k->tile->c->conventions.l_from == ASC_L_UNROUNDED) /* that is what is wanted */
        return 0;
    if (!bound_narrow(scratch_captured(k->tile->s, k->tile->c, asc_p)->dtype, &unit, &half_tiny))
        return of_weights(k, k->tile->s->at.of[asc_p]);
    return of_weights(k, (struct operand){p->want[LOCAL], p->bound[LOCAL], false});
}

int cause_u_p_unrounded(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    enum dtype t;
    if (!values_p_type(k->tile->c, &t) || !p->recorded || scratch_captured(k->tile->s, k->tile->c, asc_p)->dtype == t)
        return 0;
    return of_weights(k, k->tile->s->at.of[asc_p]);
}

int cause_u_p_masked_late(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    struct operand p = k->tile->s->at.pv_p;
    double *masked = cause_copy(k, p.value, asc_p);
    for (int i = 0; i < stage->rows * stage->cols; i++)
        if (!cause_sees(k->tile, i / stage->cols, i % stage->cols))
            masked[i] = 0;
    p.value = masked;
    return of_weights(k, p);
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

/* Before the first tile l is the sink's weight: only that tile tells. */
int cause_l_sink_missing(struct candidate *k)
{
    struct operands s = cause_altered(k);
    if (!k->tile->c->has_sink || k->tile->c->conventions.l_sink != ASC_SINK_START)
        return 0;
    cause_right(k);
    if (!k->tile->is_first)
        return 1;
    s.l_prev.value = s.l_prev.loose = k->tile->s->room.zero;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}
