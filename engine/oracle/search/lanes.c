/* Rules of lanes. The lanes of a warp share a row; which of its columns are a lane's own depends on some bits of the
   column. A reduction that lacks the shuffles over such bits stays within columns that agree in them, so that
     P    stands on the maximum of the columns that agree with its own; or, where the shuffles go down, of those of its
          own lane and of the ones behind it
     m, l are those of the columns that agree with the row: each row has the value of another lane; or a shuffle asks
          the lane of another row, which has the same columns of that one
     O, LSE are made with the sum of l over some of its lanes.
   Or the shuffles are complete, and lanes give each other their sums in a narrow type: each lane's total is its own; or
   take the larger one of two sums, and do not add them.
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

enum { LANES_MOST = 32 };

/* Where a lane's sum may lie. */
struct lane_sum {
    double low, high;
};

static bool are_exchanged(const struct rule *rule)
{
    return rule->type != DTYPE_COUNT || rule->lanes.largest;
}

/* What lane `at` of 2^n has once all have exchanged theirs, lane by lane xor a bit: additions are of f32, or of the
   type itself. Rounding keeps the order of numbers, so that both ends are taken along. */
static struct lane_sum exchange_lanes(const struct rule *rule, struct lane_sum *of, int at)
{
    const int n = rule->lanes.n;
    for (int step = 0; step < n; step++) {
        const int bit = 1 << (rule->lanes.down ? n - 1 - step : step);
        struct lane_sum next[LANES_MOST] = {{0}};
        for (int i = 0; i < 1 << n; i++) {
            const struct lane_sum a = of[i], b = of[i ^ bit];
            if (rule->lanes.largest) {
                next[i] = (struct lane_sum){fmax(a.low, b.low), fmax(a.high, b.high)};
                continue;
            }
            const double low = rule_rounded(rule, b.low), high = rule_rounded(rule, b.high);
            if (rule->rounds_result)
                next[i] = (struct lane_sum){rule_rounded(rule, rule_rounded(rule, a.low) + low),
                                            rule_rounded(rule, rule_rounded(rule, a.high) + high)};
            else
                next[i] = (struct lane_sum){(a.low + low) * (1 - BOUND_U), (a.high + high) * (1 + BOUND_U)};
        }
        memcpy(of, next, (sizeof *of) << n);
    }
    return of[at];
}

/* l of a tile whose weights are summed by lanes that have some bits of the column: what the row adds is theirs. */
static bool lanes_exchange_l(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                             double *bound)
{
    (void)search;
    const int C = t->x.cols, lanes = 1 << rule->lanes.n;
    const double *p = t->x.l_p.value, *loose = t->x.l_p.loose;
    if (!p || !t->x.of[asc_alpha].value || lanes > LANES_MOST)
        return false;
    for (int r = 0; r < t->rows; r++) {
        struct lane_sum of[LANES_MOST] = {0};
        const double gamma = bound_gamma(C / lanes + 1);
        double exact = 0, size = 0;
        for (int col = 0; col < C; col++) {
            struct lane_sum *lane = &of[lane_bits_of(col, rule->lanes)];
            const double x = p[r * C + col], off = (loose ? loose[r * C + col] : 0) + gamma * fabs(x);
            lane->low += x - off;
            lane->high += x + off;
            exact += x;
            size += fabs(x);
        }
        const struct lane_sum sum = exchange_lanes(rule, of, rule->lanes.always);
        want[r] = t->want[r] + (sum.low + sum.high) / 2 - exact;
        bound[r] = t->bound[r] + (sum.high - sum.low) / 2 + 2 * BOUND_U * (fabs(want[r]) + size);
        if (!isfinite(want[r]) || !isfinite(bound[r])) {
            want[r] = NAN;
            bound[r] = INFINITY;
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

/* Lane of l that an element of O or LSE meets. */
static int lane_met(const struct rule *rule, int place)
{
    return rule->lanes.always >= 0 ? rule->lanes.always : place >> rule->lanes.shift & ((1 << rule->lanes.low) - 1);
}

/* The sum that an element meets: that of its place's lane (the column of O, the row of LSE), or of one lane, always;
   and the partner's. */
static double sum_met(const struct matrix *lanes, const struct rule *rule, int r, int place)
{
    const int partner = r ^ rule->lanes.partner, lane = lane_met(rule, place);
    double l = 0;
    for (int i = 0; i < lanes->cols; i++)
        if (lane_bits_of(i, rule->lanes) == lane_bits_of(lane, rule->lanes))
            l += dtype_load(lanes->dtype, lanes->data, (size_t)(r * lanes->row_stride + i)) +
                 (partner != r ? dtype_load(lanes->dtype, lanes->data, (size_t)(partner * lanes->row_stride + i)) : 0);
    return rule->weight * l;
}

/* What each lane of a row has once all have exchanged theirs. */
static void exchange_row(const struct matrix *lanes, const struct rule *rule, int r, struct lane_sum *of)
{
    for (int i = 0; i < lanes->cols; i++)
        of[i].low = of[i].high = dtype_load(lanes->dtype, lanes->data, (size_t)(r * lanes->row_stride + i));
    exchange_lanes(rule, of, 0);
}

static bool lanes_of_output(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                            double *want, double *bound)
{
    const struct matrix *lanes = last_lanes(t);
    const double natural = values_natural_m(t->c), unit = t->c->conventions.lse_base2 ? M_LOG2E : 1;
    const bool is_lse = search->sample->channel == asc_lse, exchanged = are_exchanged(rule);
    struct lane_sum of[LANES_MOST] = {0};
    if (!lanes || (exchanged && (lanes->cols > LANES_MOST || lanes->cols != 1 << rule->lanes.n)))
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
        if (exchanged && i % (size_t)t->cols == 0)
            exchange_row(lanes, rule, r, of);
        const struct lane_sum *met = &of[exchanged ? lane_met(rule, place) : 0];
        const double l = exchanged ? (met->low + met->high) / 2 : sum_met(lanes, rule, r, place);
        const double loose = exchanged ? (met->high - met->low) / 2 : bound_gamma(lanes->cols) * l;
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
        return (are_exchanged(rule) ? lanes_exchange_l : lanes_of_l)(search, rule, t, want, bound);
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
    char same[64], partner[64] = "", of_l[96] = "";
    lane_bits_words(rule->lanes, "c", same, sizeof same);
    if (are_exchanged(rule) && s->channel == asc_l)
        snprintf(of_l, sizeof of_l, ", a lane having the columns with the same %s", same);
    if (rule->lanes.largest) {
        snprintf(out, bytes, "the largest of the lanes' sums stands for the sum of all%s", of_l);
        return;
    }
    if (rule->type != DTYPE_COUNT) {
        const char *type = dtype_name(rule->type);
        if (rule->rounds_result)
            snprintf(out, bytes, "the lanes of l add their sums in %s on the way to %s%s", type, stage, of_l);
        else
            snprintf(out, bytes, "the lanes of l give each other their sums %s to %s on the way to %s%s",
                     rule->cuts ? "cut off" : "rounded", type, stage, of_l);
        return;
    }
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
