/* Rules of lanes. The lanes of a warp share a row; which of its columns are a lane's own depends on some bits of the
   column. A reduction that lacks the shuffles over such bits stays within columns that agree in them, so that
     P    stands on the maximum of the columns that agree with its own; or, where the shuffles go down, of those of its
          own lane and of the ones behind it
     m, l are those of the columns that agree with the row: each row has the value of another lane
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

/* Scores of the columns whose bits are `value` (value -1: those of the row), -inf elsewhere, in search->operand. */
static void own_scores(const struct search *search, const struct rule *rule, const struct sample_tile *t, int value)
{
    for (int r = 0; r < t->c->in_q.rows; r++)
        for (int col = 0; col < t->x.cols; col++) {
            const size_t i = (size_t)r * (size_t)t->x.cols + (size_t)col;
            const int lane = lane_bits_of(col, rule->lanes), wanted = value < 0 ? lane_bits_of(r, rule->lanes) : value;
            const bool own = lane == wanted || (rule->lanes.down && lane > wanted);
            search->operand[i] = own ? t->x.s.value[i] : -INFINITY;
        }
}

static void maximum_of_lanes(struct search *search, const struct rule *rule, const struct sample_tile *t, int value,
                             double *m, double *bound)
{
    struct oracle_case c = *t->c;
    struct operands x = t->x;
    own_scores(search, rule, t, value);
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
    for (int r = 0; r < t->rows; r++)
        for (int col = 0; col < x.cols; col++) {
            const size_t i = (size_t)r * (size_t)x.cols + (size_t)col;
            search->operand[i] = lane_bits_of(col, rule->lanes) == lane_bits_of(r, rule->lanes) ? t->x.l_p.value[i] : 0;
        }
    x.l_p.value = search->operand;
    search_formula(search, t, &x, want, bound);
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

/* The sum that an element meets: that of its place's lane (the column of O, the row of LSE), or of one lane, always. */
static double sum_met(const struct matrix *lanes, const struct rule *rule, int r, int place)
{
    const int lane =
        rule->lanes.always >= 0 ? rule->lanes.always : place >> rule->lanes.shift & ((1 << rule->lanes.low) - 1);
    double l = 0;
    for (int i = 0; i < lanes->cols; i++)
        if (lane_bits_of(i, rule->lanes) == lane_bits_of(lane, rule->lanes))
            l += dtype_load(lanes->dtype, lanes->data, (size_t)(r * lanes->row_stride + i));
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
        maximum_of_lanes(search, rule, t, -1, want, bound);
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
    char same[64];
    lane_bits_words(rule->lanes, "c", same, sizeof same);
    if (s->channel == asc_p && rule->lanes.down)
        snprintf(
            out, bytes,
            "P of column c stands on the maximum of the columns c' with %s >= that of c alone: a shuffle goes down",
            same);
    else if (s->channel == asc_p)
        snprintf(out, bytes, "P stands on the maximum of its own lanes' columns alone, those with the same %s", same);
    else if (s->channel >= asc_o)
        snprintf(out, bytes,
                 rule->weight == 1 ? "%s is made with the l of %d of %d lanes%s"
                                   : "%s is made with the l of %d of %d lanes%s, %g times",
                 stage, lanes / n, lanes, rule->lanes.always < 0 ? ", each its own" : "", rule->weight);
    else
        snprintf(out, bytes, "%s of row r takes in the columns c of one lane alone, those with %s = r%s", stage, same,
                 same + 1);
}
