/* Scores under other masks than the case's own. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"

int cause_has_window(const struct oracle_case *c)
{
    return c->window_left >= 0 || c->window_right >= 0;
}

int cause_has_mask(const struct oracle_case *c)
{
    return c->causal != ASC_CAUSAL_NONE || cause_has_window(c);
}

struct oracle_case cause_without_mask(const struct oracle_case *c)
{
    struct oracle_case all = *c;
    all.causal = ASC_CAUSAL_NONE;
    all.window_left = all.window_right = -1;
    return all;
}

int cause_sees(const struct cause_tile *tile, int r, int col)
{
    return col >= tile->s->hidden[r] && col < tile->s->visible[r];
}

void cause_see(const struct oracle_case *mask, int by, struct judge_scratch *s)
{
    for (int r = 0; r < mask->in_q.rows; r++) {
        s->cause_visible[r] = schedule_visible(mask, r + by, s->kv);
        s->cause_hidden[r] = schedule_hidden(mask, r, s->kv);
        if (s->cause_hidden[r] > s->cause_visible[r])
            s->cause_hidden[r] = s->cause_visible[r];
    }
    s->hidden = s->cause_hidden;
    s->visible = s->cause_visible;
}

int cause_declare_s_at(const struct candidate *k, struct oracle_case *c, struct judge_scratch *s)
{
    if (values_mask_later(c) || (int)k->parameter == ASC_S_MASKED)
        return 0;
    c->conventions.s_at = (int)k->parameter;
    s->pad_cols = 0;
    s->scores = s->cause_scores;
    s->scores_loose = s->cause_scores_loose;
    local_use_scores(c, s);
    return 1;
}

double cause_padding_weight(const struct cause_tile *tile, int r, double *bound)
{
    const struct oracle_case *c = tile->c;
    const double *m_loose, *m = local_p_frame(c, tile->s, &m_loose);
    const double natural = values_natural_m(c), x = -m[r] * natural;
    const double weight = bound_p_factor(c) * exp(x);
    *bound = weight * (bound_exp_declared(c, x, fabs(x) + bound_offset(c)) + bound_expm1(m_loose[r] * fabs(natural)));
    return weight;
}

void cause_unmasked_scores(const struct candidate *k, struct judge_scratch *s)
{
    const struct cause_tile *tile = k->tile;
    const struct oracle_case all = cause_without_mask(tile->c);
    const struct stage *score = &tile->s->stage[asc_s];
    struct judge_scratch seen = *tile->s;
    double *want = seen.cause_operand, *bound = seen.cause_size;
    seen.stage[asc_s].want[LOCAL] = want;
    seen.stage[asc_s].bound[LOCAL] = bound;
    cause_see(&all, 0, &seen);
    local_s(tile->c, &seen);
    for (int r = 0; r < score->rows; r++) {
        for (int col = 0; col < score->cols; col++) {
            const size_t i = (size_t)r * (size_t)score->cols + (size_t)col;
            if (!cause_sees(tile, r, col) && !values_mask_later(tile->c))
                continue;
            want[i] = score->value[i];
            bound[i] = score->loose[i];
        }
    }
    s->stage[asc_s].value = want;
    s->stage[asc_s].loose = bound;
    s->scores = s->cause_scores;
    s->scores_loose = s->cause_scores_loose;
    s->hidden = seen.hidden;
    s->visible = seen.visible;
    local_use_scores(tile->c, s);
}
