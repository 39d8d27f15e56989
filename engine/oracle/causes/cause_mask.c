/* Scores under other masks than the case's own. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"

int cause_sees(const struct walk_tile *tile, int r, int col)
{
    return operands_see(&tile->s->at, r, col);
}

/* Lets s see all that is a key. */
static void see_all(const struct candidate *k, struct operands *s)
{
    const struct mistake_room *to = &k->tile->s->mistake;
    struct oracle_case all = *k->tile->c;
    all.causal = ASC_CAUSAL_NONE;
    all.window_left = all.window_right = -1;
    all.mask.data = NULL;
    for (int r = 0; r < all.in_q.rows; r++) {
        to->visible[r] = schedule_visible(&all, r, s->kv);
        to->hidden[r] = 0;
    }
    s->hidden = to->hidden;
    s->visible = to->visible;
    s->mask = NULL;
}

/* Scores as they are read under what is declared in c. */
static void use_scores(const struct candidate *k, const struct oracle_case *c, struct operands *s)
{
    const struct mistake_room *room = &k->tile->s->mistake;
    local_use_scores(c, s, (struct expected){room->scores, room->scores_loose});
}

int cause_reads_at(const struct candidate *k, const struct oracle_case *c, struct operands *s)
{
    if (values_mask_later(k->tile->c) || c->conventions.s_at == ASC_S_MASKED)
        return 0;
    s->pad_cols = 0;
    use_scores(k, c, s);
    return 1;
}

double cause_padding_weight(const struct walk_tile *tile, int r, double *bound)
{
    const struct oracle_case *c = tile->c;
    const struct operand m = local_p_frame(c, &tile->s->at);
    const double natural = values_natural_m(c), x = -m.value[r] * natural;
    const double weight = bound_p_factor(c) * exp(x);
    *bound = weight * (bound_exp_declared(c, x, fabs(x) + bound_offset(c)) + bound_expm1(m.loose[r] * fabs(natural)));
    return weight;
}

void cause_unmasked_scores(const struct candidate *k, struct operands *s)
{
    const struct walk_tile *tile = k->tile;
    const struct operand *score = &tile->s->at.of[asc_s];
    struct operands seen = tile->s->at;
    double *want = tile->s->mistake.operand, *bound = tile->s->mistake.size;
    see_all(k, &seen);
    local_s(tile->c, &seen, &tile->s->room, (struct expected){want, bound});
    for (int r = 0; r < tile->c->in_q.rows; r++) {
        for (int col = 0; col < seen.cols; col++) {
            const size_t i = (size_t)r * (size_t)seen.cols + (size_t)col;
            if (!cause_sees(tile, r, col) && !values_mask_later(tile->c))
                continue;
            want[i] = score->value[i];
            bound[i] = score->loose[i];
        }
    }
    s->of[asc_s].value = want;
    s->of[asc_s].loose = bound;
    s->hidden = seen.hidden;
    s->visible = seen.visible;
    s->mask = seen.mask;
    use_scores(k, tile->c, s);
}
