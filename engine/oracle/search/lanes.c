/* Rules of lanes. The lanes of a warp share a row; which of its columns are a lane's own depends on some bits of the
   column. A reduction that lacks the shuffles over such bits stays within columns that agree in them, so that
     P    stands on the maximum of the columns that agree with its own; or, where the shuffles go down, of those of its
          own lane and of the ones behind it
     m, l are those of the columns that agree with the row: each row has the value of another lane; or a shuffle asks
          the lane of another row, which has the same columns of that one
     O, LSE are made with the sum of l over some of its lanes.
   What a rule gives, and its words. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <stdio.h>
#include <string.h>

int lane_bits_of(int x, struct lane_bits b)
{
    return x >> b.first & ((1 << b.n) - 1);
}

/* In search->operand: of the columns whose bits are `value` (value -1: those of the row) what `from` has of its own row
   and of the partner, if there is one: the larger, or the sum. Elsewhere `nothing`. */
static void own_columns(const struct search *search, const struct rule *rule, const struct sample_tile *t, int value,
                        const double *from, bool sums)
{
    const struct lane_bits lanes = rule->lanes;
    const size_t cols = (size_t)t->x.cols;
    for (int r = 0; r < t->c->in_q.rows; r++)
        for (int col = 0; col < t->x.cols; col++) {
            const size_t i = (size_t)r * cols + (size_t)col;
            const int lane = lane_bits_of(col, lanes), wanted = value < 0 ? lane_bits_of(r, lanes) : value;
            const int partner = r ^ lanes.partner;
            const bool own = lane == wanted || (lanes.down && lane > wanted);
            double x = own ? from[i] : sums ? 0 : -INFINITY;
            if (own && partner != r && partner < t->c->in_q.rows) {
                const double other = from[(size_t)partner * cols + (size_t)col];
                x = sums ? x + other : fmax(x, other);
            }
            search->operand[i] = x;
        }
}

/* What a partner has that the tile lacks is not known. */
static void forget_partners(const struct rule *rule, const struct sample_tile *t, double *want, double *bound)
{
    for (int r = 0; r < t->rows; r++)
        if ((r ^ rule->lanes.partner) >= t->c->in_q.rows) {
            want[r] = NAN;
            bound[r] = INFINITY;
        }
}

static void maximum_of_lanes(struct search *search, const struct rule *rule, const struct sample_tile *t, int value,
                             double *m, double *bound)
{
    struct oracle_case c = *t->c;
    struct operands x = t->x;
    own_columns(search, rule, t, value, t->x.s.value, false);
    x.s.value = search->operand;
    x.pad_cols = 0;
    c.conventions.m_policy = ASC_M_RUNNING;
    local_m(&c, &x, (struct expected){m, bound});
}

static bool lanes_of_p(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                       double *bound)
{
    struct operands x = t->x;
    double *m = search->rows[0], *loose = search->rows[1];
    const size_t cols = (size_t)t->cols;
    for (int value = 0; value < 1 << rule->lanes.n; value++) {
        maximum_of_lanes(search, rule, t, value, m, loose);
        x.of[asc_m] = (struct operand){m, loose, false};
        local_p(t->c, &x, (struct expected){search->operand, search->loose});
        for (size_t i = 0; i < sample_cells(t); i++) {
            if (lane_bits_of((int)(i % cols), rule->lanes) != value)
                continue;
            want[i] = search->operand[i];
            bound[i] = search->loose[i];
        }
    }
    return true;
}

static bool lanes_of_l(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                       double *bound)
{
    struct operands x = t->x;
    own_columns(search, rule, t, rule->lanes.always, t->x.l_p.value, true);
    x.l_p.value = search->operand;
    search_formula(search, t, &x, want, bound);
    forget_partners(rule, t, want, bound);
    return true;
}

/* The captured lanes of l after the last tile; NULL where these are not what O and LSE follow from. */
static const struct matrix *last_lanes(const struct sample_tile *t)
{
    const struct oracle_case *c = t->c;
    if (c->n_visited == 0 || c->fed || schedule_splits(c) > 1)
        return NULL;
    const struct matrix *l = &c->captured[c->order[c->n_visited - 1] * ASC_CHANNELS + asc_l];
    return l->data && l->cols > 1 && l->cols == c->conventions.l_lanes ? l : NULL;
}

bool lanes_have_all(const struct sample *s)
{
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const struct matrix *l = &t->c->captured[t->kv * ASC_CHANNELS + asc_l];
        if (!l->data || l->cols < 2)
            return false;
        for (int r = 0; r < t->rows; r++)
            for (int i = 1; i < l->cols; i++)
                if (dtype_load(l->dtype, l->data, (size_t)(r * l->row_stride + i)) !=
                    dtype_load(l->dtype, l->data, (size_t)(r * l->row_stride)))
                    return false;
    }
    return true;
}

/* The sum that an element meets: that of its place's lane (the column of O, the row of LSE), or of one lane, always;
   and the partner's. */
static double sum_met(const struct matrix *lanes, const struct rule *rule, int r, int place)
{
    const int partner = r ^ rule->lanes.partner;
    const int lane =
        rule->lanes.always >= 0 ? rule->lanes.always : place >> rule->lanes.shift & ((1 << rule->lanes.low) - 1);
    double l = 0;
    for (int i = 0; i < lanes->cols; i++)
        if (lane_bits_of(i, rule->lanes) == lane_bits_of(lane, rule->lanes))
            l += dtype_load(lanes->dtype, lanes->data, (size_t)(r * lanes->row_stride + i)) +
                 (partner != r ? dtype_load(lanes->dtype, lanes->data, (size_t)(partner * lanes->row_stride + i)) : 0);
    return rule->weight * l;
}

static bool lanes_of_output(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                            double *want, double *bound)
{
    const struct matrix *lanes = last_lanes(t);
    const double natural = values_natural_m(t->c), unit = t->c->conventions.lse_base2 ? M_LOG2E : 1;
    const bool is_lse = search->sample->channel == asc_lse;
    if (!lanes)
        return false;
    memcpy(want, t->want, sample_cells(t) * sizeof *want);
    memcpy(bound, t->bound, sample_cells(t) * sizeof *bound);
    for (size_t i = 0; i < sample_cells(t); i++) {
        const int r = (int)(i / (size_t)t->cols), place = is_lse ? r : (int)(i % (size_t)t->cols);
        if ((r ^ rule->lanes.partner) >= t->c->in_q.rows) {
            want[i] = NAN;
            bound[i] = INFINITY;
            continue;
        }
        const double l = sum_met(lanes, rule, r, place), loose = bound_gamma(lanes->cols) * l;
        if (!(l > loose) || !isfinite(want[i]))
            continue;
        if (is_lse) {
            const double m = t->x.m_prev.value[r] * natural, ln_l = log(l) - bound_ln_factor(t->c);
            want[i] = (m + ln_l) * unit;
            bound[i] = (bound_lse(m, ln_l, m + ln_l) + t->x.m_prev.loose[r] * fabs(natural) - log1p(-loose / l)) * unit;
        } else {
            want[i] = t->x.u_prev.value[i] / l;
            bound[i] = bound_divide(want[i]) + (t->x.u_prev.loose[i] + fabs(want[i]) * loose) / (l - loose);
        }
        bound[i] += 4 * BOUND_U * fabs(want[i]);
    }
    return true;
}

bool lanes_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                   double *bound)
{
    switch (search->sample->channel) {
    case asc_m:
        maximum_of_lanes(search, rule, t, rule->lanes.always, want, bound);
        forget_partners(rule, t, want, bound);
        return true;
    case asc_p:
        return lanes_of_p(search, rule, t, want, bound);
    case asc_l:
        return lanes_of_l(search, rule, t, want, bound);
    default:
        return lanes_of_output(search, rule, t, want, bound);
    }
}

void lane_bits_words(struct lane_bits b, const char *of, char *out, size_t bytes)
{
    if (b.first == 0)
        snprintf(out, bytes, "%s mod %d", of, 1 << b.n);
    else
        snprintf(out, bytes, "%s / %d mod %d", of, 1 << b.first, 1 << b.n);
}

void lanes_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    const int n = 1 << rule->lanes.n, lanes = s->tiles[0].c->conventions.l_lanes;
    char same[64], partner[64] = "";
    lane_bits_words(rule->lanes, "c", same, sizeof same);
    if (rule->lanes.partner)
        snprintf(partner, sizeof partner, ", and of as many of row r ^ %d", rule->lanes.partner);
    if (s->channel == asc_p && rule->lanes.down)
        snprintf(
            out, bytes,
            "P of column c stands on the maximum of the columns c' with %s >= that of c alone: a shuffle goes down",
            same);
    else if (s->channel == asc_p)
        snprintf(out, bytes, "P stands on the maximum of its own lanes' columns alone, those with the same %s", same);
    else if (s->channel >= asc_o)
        snprintf(out, bytes,
                 rule->weight == 1 ? "%s is made with the l of %d of %d lanes%s%s"
                                   : "%s is made with the l of %d of %d lanes%s%s, %g times",
                 stage, lanes / n, lanes, rule->lanes.always < 0 ? ", each its own" : "", partner, rule->weight);
    else if (rule->lanes.partner)
        snprintf(out, bytes, "%s of row r takes in the columns c with %s = %d alone, its own and those of row r ^ %d",
                 stage, same, rule->lanes.always, rule->lanes.partner);
    else
        snprintf(out, bytes, "%s of row r takes in the columns c of one lane alone, those with %s = r%s", stage, same,
                 same + 1);
}
