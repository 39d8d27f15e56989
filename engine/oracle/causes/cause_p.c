/* Causes of wrong maxima and weights: what the mask, or the padding behind the last key, does to them. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"

int cause_m_before_mask(struct candidate *k)
{
    struct operands s = cause_altered(k);
    cause_unmasked_scores(k, &s);
    local_m(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_p_not_masked(struct candidate *k)
{
    struct operands s = cause_altered(k);
    const struct stage *p = &k->tile->s->stage[asc_p];
    cause_unmasked_scores(k, &s);
    local_p(k->tile->c, &s, cause_out(k));
    const double *frame = local_p_frame(k->tile->c, &s).value;
    /* A row without a maximum has nothing to take weights against. */
    for (int i = 0; i < p->rows * p->cols; i++)
        if (frame[i / p->cols] == -INFINITY)
            k->want[i] = k->bound[i] = 0;
    return 1;
}

int cause_p_masked_late(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    const struct stage *p = &s->stage[asc_p];
    cause_right(k);
    for (int r = 0; r < p->rows; r++) {
        for (int col = 0; col < p->cols; col++) {
            const size_t i = (size_t)r * (size_t)p->cols + (size_t)col;
            if (!cause_sees(k->tile, r, col))
                k->want[i] = k->bound[i] = 0;
        }
    }
    return 1;
}

int cause_p_tail_not_masked(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    double *weight = s->mistake.alpha, *bound = weight + s->stage[asc_p].rows;
    if (c->kv_len % c->bc == 0)
        return 0;
    cause_right(k);
    for (int r = 0; r < s->stage[asc_p].rows; r++)
        weight[r] = cause_padding_weight(k->tile, r, &bound[r]);
    k->row_padding = weight;
    k->row_padding_bound = bound;
    return 1;
}
