/* What a rule gives: the right formula on operands that the rule has replaced. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <string.h>

/* The row vector that the rule puts in: (factor entry[map(r)] + plus) ^ power; NaN where the map leads out of it. */
static bool rule_vector(const struct search *search, const struct rule *rule, const struct sample_tile *t, double *out)
{
    double *entry = search->rows[0];
    const int R = (int)query_rows(t);
    if (!entry_value(search->sample, t, rule->entry, entry))
        return false;
    for (int r = 0; r < R; r++) {
        const int from = map_at(&rule->map, r);
        const double x = from >= 0 && from < R ? rule->factor * entry[from] + rule->plus : NAN;
        out[r] = rule->power == 1 ? x : pow(x, rule->power);
        if (rule->type == DTYPE_COUNT || !isfinite(out[r]))
            continue;
        if (rule->power == -1) /* its reciprocal is what is rounded */
            out[r] = 1 / rule_rounded(rule, (double)(1 / (float)x));
        else
            out[r] = rule_rounded(rule, out[r] * rule->weight) / rule->weight;
    }
    return true;
}

static struct operand exact(const struct search *search, const double *value)
{
    return (struct operand){value, search->sample->zero, 1};
}

/* factor * it + plus; or times a row vector. */
static bool forward_result(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                           double *bound)
{
    double *by = search->rows[1];
    const bool plain = rule->entry == ENTRY_ONE;
    if (!plain && !rule_vector(search, rule, t, by))
        return false;
    for (size_t i = 0; i < sample_cells(t); i++) {
        const double factor = plain ? rule->factor : by[i / (size_t)t->cols % query_rows(t)];
        const double plus = plain ? rule->plus : 0;
        want[i] = factor * t->want[i] + plus;
        /* A row vector that was captured, a constant, a product and a sum: four roundings. */
        bound[i] = fabs(factor) * t->bound[i] + 4 * BOUND_U * (fabs(want[i]) + fabs(plus));
        if (!isfinite(t->want[i])) {
            want[i] = t->want[i];
            bound[i] = t->bound[i];
        }
    }
    return true;
}

static bool forward_is(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                       double *bound)
{
    if (t->cols != 1 || !rule_vector(search, rule, t, want))
        return false;
    /* It was captured as such, and got a factor, a constant and a power at most. */
    for (size_t r = 0; r < sample_cells(t); r++)
        bound[r] = rule->factor == 1 && rule->plus == 0 && rule->power == 1
                       ? t->bound[r]
                       : t->bound[r] + 8 * BOUND_U * (fabs(want[r]) + fabs(rule->plus));
    return true;
}

/* The exponent of P or alpha as it is rounded to a type, x being s - m in natural units: s is moved by as much. */
static void round_exponents(const struct rule *rule, const struct sample_tile *t, struct operands *x, bool is_p,
                            double *score, double *loose)
{
    const double unit = is_p ? x->s_natural : values_natural_m(t->c), of_m = values_natural_m(t->c);
    const size_t cols = is_p ? (size_t)t->cols : 1;
    for (size_t i = 0; i < query_rows(t) * cols; i++) {
        const double s = score[i] * unit, m = x->of[asc_m].value[i / cols] * of_m, e = (s - m) * rule->weight;
        double off = 2 * BOUND_U * (fabs(s) + fabs(m) + fabs(s - m)) * rule->weight;
        loose[i] = 0;
        if (!isfinite(e))
            continue;
        score[i] = (m + rule_rounded_near(rule, e, &off) / rule->weight) / unit;
        loose[i] = off / rule->weight / fabs(unit);
    }
}

/* exp(factor s - power m + plus) of P; of alpha m_prev stands for s. */
static bool forward_exponent(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                             double *bound)
{
    const bool is_p = search->sample->channel == asc_p;
    struct operands x = t->x;
    struct operand *minuend = is_p ? &x.s : &x.m_prev;
    double *score = search->operand, *m = search->rows[1];
    const size_t n = is_p ? sample_cells(t) : query_rows(t);
    if (!minuend->value || !x.of[asc_m].value || (!is_p && search->sample->channel != asc_alpha))
        return false;
    for (size_t i = 0; i < n; i++)
        score[i] = isfinite(minuend->value[i]) ? rule->factor * minuend->value[i] : minuend->value[i];
    for (size_t r = 0; r < query_rows(t); r++)
        m[r] = isfinite(x.of[asc_m].value[r]) ? rule->power * x.of[asc_m].value[r] : x.of[asc_m].value[r];
    *minuend = exact(search, score);
    x.of[asc_m] = exact(search, m);
    if (rule->type != DTYPE_COUNT) {
        round_exponents(rule, t, &x, is_p, score, search->loose);
        minuend->loose = search->loose;
        minuend->exact = false;
    }
    search_formula(search, t, &x, want, bound);
    for (size_t i = 0; i < sample_cells(t); i++) {
        want[i] *= exp(rule->plus);
        bound[i] = bound[i] * exp(rule->plus) + 4 * BOUND_U * fabs(want[i]);
        if (rule->rounds_result && isfinite(want[i]))
            want[i] = rule_rounded_near(rule, want[i], &bound[i]);
    }
    return true;
}

/* factor m + power ln l + plus. */
static bool forward_logarithm(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                              double *bound)
{
    (void)search;
    const double unit = t->c->conventions.lse_base2 ? M_LOG2E : 1;
    for (size_t r = 0; r < sample_cells(t); r++) {
        const double m = t->x.m_prev.value[r] * values_natural_m(t->c), ln_l = log(t->x.l_prev.value[r]);
        const double x = rule->factor * m + rule->power * (ln_l - bound_ln_factor(t->c));
        want[r] = isfinite(x) ? x * unit + rule->plus : NAN;
        bound[r] = bound_lse(fabs(rule->factor * m) + fabs(rule->plus), rule->power * ln_l, x) * unit * 4;
    }
    return true;
}

/* The interval that the right formula leaves, rounded: its middle and half its width. */
static bool forward_rounded(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                            double *bound)
{
    (void)search;
    for (size_t i = 0; i < sample_cells(t); i++) {
        const double low = rule_rounded(rule, t->want[i] - t->bound[i]),
                     high = rule_rounded(rule, t->want[i] + t->bound[i]);
        want[i] = isfinite(t->want[i]) ? (low + high) / 2 : t->want[i];
        bound[i] = isfinite(t->want[i]) ? (high - low) / 2 : 0;
    }
    return true;
}

double kept_part(const struct sample *s, const struct sample_tile *t, size_t i)
{
    const double *alpha = t->x.of[asc_alpha].value;
    const double kept =
        s->channel != asc_u || t->next_alpha || !alpha ? 0 : alpha[i / (size_t)t->cols] * t->x.u_prev.value[i];
    return isfinite(kept) ? kept : 0;
}

static bool forward_place(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                          double *bound)
{
    const struct sample *s = search->sample;
    const int bits = rule->keys.a;
    for (int r = 0; r < t->rows; r++) {
        for (int col = 0; col < t->cols; col++) {
            const size_t to = (size_t)r * (size_t)t->cols + (size_t)col;
            const int both = bits ? map_at(&rule->map, (r << bits) + col) : 0;
            const int row = bits ? both >> bits : map_at(&rule->map, r);
            const int from = bits ? both & ((1 << bits) - 1) : map_at(&rule->col_map, col);
            const bool inside = row >= 0 && row < t->rows && from >= 0 && from < t->cols;
            const size_t at = inside ? (size_t)row * (size_t)t->cols + (size_t)from : to;
            const double kept = kept_part(s, t, to), theirs = kept_part(s, t, at);
            want[to] = inside ? t->want[at] - theirs + kept : NAN;
            bound[to] = inside ? t->bound[at] : 0;
            if (kept != 0 || theirs != 0)
                bound[to] = fmax(t->bound[at], t->bound[to]) + 8 * BOUND_U * (fabs(kept) + fabs(theirs));
        }
    }
    return true;
}

/* Of rows behind the tile's last one nothing was captured, and what a kernel gives for x / 0 is its own affair. */
static bool forward_quotient(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                             double *bound)
{
    const int R = (int)query_rows(t), D = t->cols;
    struct operands x = t->x;
    double *u = search->operand, *u_loose = search->loose, *l = search->rows[1], *l_loose = search->rows[2];
    if (search->sample->channel != asc_o || t->c->kv_splits > 1)
        return false;
    for (int r = 0; r < R; r++) {
        const int of_u = map_at(&rule->map, r), of_l = map_at(&rule->col_map, r);
        const bool has_u = of_u >= 0 && of_u < R, has_l = of_l >= 0 && of_l < R;
        l[r] = has_l && (of_l == r || t->x.l_prev.value[of_l] != 0) ? t->x.l_prev.value[of_l] : NAN;
        l_loose[r] = has_l ? t->x.l_prev.loose[of_l] : 0;
        for (int d = 0; d < D; d++) {
            u[r * D + d] = has_u ? t->x.u_prev.value[of_u * D + d] : NAN;
            u_loose[r * D + d] = has_u ? t->x.u_prev.loose[of_u * D + d] : 0;
        }
    }
    x.u_prev = (struct operand){u, u_loose, t->x.u_prev.exact};
    x.l_prev = (struct operand){l, l_loose, t->x.l_prev.exact};
    search_formula(search, t, &x, want, bound);
    for (size_t i = 0; i < sample_cells(t); i++)
        bound[i] = isnan(want[i]) ? INFINITY : bound[i];
    return true;
}

/* Of U: an accumulator of the tile's products alone, which is multiplied by the scale of V's codes where it is added.
   The sum goes on from what was there: so does the rounding of the accumulator, after each of a few products, 16 at
   most. */
static bool added_by_tile(const struct search *search, const struct sample_tile *t, double *want, double *bound)
{
    const struct sample *s = search->sample;
    const struct sample_tile *from = t->before >= 0 ? &s->tiles[t->before] : NULL;
    const double unit = 4 * BOUND_U + t->x.cols / 16.0 * product_rounding(t->c->conventions.acc_u);
    if (s->channel != asc_u || t->next_alpha || !t->x.of[asc_alpha].value)
        return false;
    for (size_t i = 0; i < sample_cells(t); i++) {
        const double times = from ? t->x.times_v / from->x.times_v : 1;
        const double fresh = from && i < sample_cells(from) ? from->got[i] - kept_part(s, from, i) : NAN;
        const double more = t->turn > 0 ? fresh * times : 0;
        want[i] = t->want[i] + more;
        bound[i] = t->bound[i];
        if (from && t->turn > 0)
            bound[i] += times * (from->bound[i] + 2 * BOUND_U * (fabs(from->got[i]) + fabs(fresh))) +
                        unit * (fabs(more) + fabs(want[i]));
        if (isnan(more)) /* the sample does not show the tile before */
            bound[i] = INFINITY;
    }
    return true;
}

/* An accumulator that was not cleared holds what was there. */
static bool forward_added(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                          double *bound)
{
    if (rule->of_tile)
        return added_by_tile(search, t, want, bound);
    const struct sample_tile *from = !rule->turns ? t : t->before >= 0 ? &search->sample->tiles[t->before] : NULL;
    if (!from || from->rows != t->rows || from->cols != t->cols)
        return false;
    const struct matrix *p = rule->rows.tensor == asc_p ? &t->c->captured[from->kv * ASC_CHANNELS + (int)asc_p] : NULL;
    if (p && !p->data)
        return false;
    for (int r = 0; r < t->rows; r++) {
        const int row = map_at(&rule->map, r);
        for (int col = 0; col < t->cols; col++) {
            const size_t i = (size_t)r * (size_t)t->cols + (size_t)col;
            const int at = map_at(&rule->col_map, col);
            const bool inside = row >= 0 && row < t->rows && at >= 0 && at < t->cols;
            const double more = !inside ? 0
                                : p ? rule->factor * dtype_load(p->dtype, p->data, (size_t)(row * p->row_stride + at))
                                    : from->got[(size_t)row * (size_t)t->cols + (size_t)at];
            want[i] = t->want[i] + more;
            /* What was there has been rounded to the type that it was captured in. */
            bound[i] = t->bound[i] + 2 * BOUND_U * (fabs(more) + fabs(want[i]));
            if (!isfinite(t->want[i]) || !isfinite(more)) {
                want[i] = t->want[i];
                bound[i] = t->bound[i];
            }
        }
    }
    return true;
}

static bool forward_stale(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                          double *bound)
{
    (void)rule;
    const struct sample_tile *before = t->before >= 0 ? &search->sample->tiles[t->before] : NULL;
    if (search->sample->channel >= asc_o) {
        /* What the state before the last tile gives. */
        struct operands x = t->x;
        if (!t->end.u_prev.value || t->c->conventions.u_phase == ASC_U_RESCALED)
            return false;
        x.m_prev = t->end.m_prev;
        x.l_prev = t->end.l_prev;
        x.u_prev = t->end.u_prev;
        search_formula(search, t, &x, want, bound);
        return true;
    }
    if (!before || sample_cells(before) < sample_cells(t) || before->cols != t->cols)
        return false;
    memcpy(want, before->got, sample_cells(t) * sizeof *want);
    memset(bound, 0, sample_cells(t) * sizeof *bound);
    return true;
}

/* Each element of U or O meets the α or l of a row that its column takes part in, as fragments have it. */
static bool forward_dealt(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                          double *want, double *bound)
{
    const bool is_u = search->sample->channel == asc_u;
    const double *x = is_u ? t->x.of[asc_alpha].value : t->x.l_prev.value;
    const int R = (int)query_rows(t);
    if (!x || t->next_alpha)
        return false;
    for (int i = 0; i < (int)sample_cells(t); i++) {
        const int r = i / t->cols, from = map_at(&rule->map, (r << rule->keys.a) + i % t->cols) >> rule->keys.a;
        const double other = from >= 0 && from < R ? x[from] : NAN, by = is_u ? other / x[r] : x[r] / other;
        want[i] = is_u ? t->want[i] + (other - x[r]) * t->x.u_prev.value[i] : t->want[i] * by;
        bound[i] =
            t->bound[i] * fmax(1, by) + 4 * BOUND_U * (fabs(want[i]) + (is_u ? fabs(other * t->x.u_prev.value[i]) : 0));
        if (other == x[r]) {
            want[i] = t->want[i];
            bound[i] = t->bound[i];
        }
        /* What lanes behind the tile's last row have is not captured. */
        if (from < 0 || from >= R) {
            want[i] = NAN;
            bound[i] = INFINITY;
        }
    }
    return true;
}

static bool forward_vector(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                           double *bound)
{
    if (rule->keys.a)
        return forward_dealt(search, rule, t, want, bound);
    const bool ends = search->sample->channel >= asc_o;
    struct operands x = t->x;
    double *vector = search->rows[1];
    if (!rule_vector(search, rule, t, vector))
        return false;
    const struct operand operand = exact(search, vector);
    switch (rule->slot) {
    case SLOT_M:
        *(ends ? &x.m_prev : &x.of[asc_m]) = operand;
        break;
    case SLOT_M_PREV:
        x.m_prev = operand;
        break;
    case SLOT_ALPHA:
        x.of[asc_alpha] = operand;
        break;
    case SLOT_L:
        x.l_prev = operand;
        break;
    default:
        return false;
    }
    search_formula(search, t, &x, want, bound);
    return true;
}

/* l with the sink's weight as the rule has it, exp(factor sink - power m + plus); of m and α, where these begin at the
   sink, m_prev of the first tile. Where all but nothing is left of l
   without the right one, what rounding has left of it is no statement. */
static bool forward_sink(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                         double *bound)
{
    const struct oracle_case *c = t->c;
    const int head = map_at(&rule->rows.head, t->at[AXIS_HEAD]);
    const bool other = rule->rows.head.kind != MAP_SAME;
    struct operands x = t->x;
    if (!c->has_sink || (other && (!search->sinks || head < 0 || head >= search->heads)))
        return false;
    const double sink = rule->factor * (other ? (double)search->sinks[head] : c->sink), factor = bound_p_factor(c);
    if (search->sample->channel < asc_o) {
        for (int r = 0; r < c->in_q.rows; r++) {
            search->rows[1][r] = sink / values_natural_m(c);
            search->loose[r] = t->x.m_prev.loose[r] + 2 * BOUND_U * fabs(search->rows[1][r]);
        }
        if (x.tiles_seen == 0 && local_begins_at_sink(c, x.split))
            x.m_prev = (struct operand){search->rows[1], search->loose, false};
        search_formula(search, t, &x, want, bound);
        return true;
    }
    for (int r = 0; r < c->in_q.rows; r++) {
        const double l = t->x.l_prev.value[r], m = t->x.m_prev.value[r] * values_natural_m(c);
        const double right = isfinite(m) ? factor * exp(c->sink - m) : 0, e = sink - rule->power * m + rule->plus;
        const double share = isfinite(m) ? factor * exp(e) : 0, rest = l - right;
        const double error = bound_exp_declared(c, c->sink, 2 * fabs(c->sink)) + bound_convert(c->sink);
        search->rows[1][r] = rest > l * 0x1p-8 ? rest + share : NAN;
        search->loose[r] = t->x.l_prev.loose[r] + (8 * BOUND_U + bound_expm1(error)) * fabs(l);
        if (share > 0) /* factors, differences and the exponential of it */
            search->loose[r] +=
                share * bound_expm1(bound_exp_declared(c, e, 0) +
                                    8 * BOUND_U * (1 + fabs(sink) + fabs(rule->power * m) + fabs(rule->plus)));
    }
    x.l_prev = (struct operand){search->rows[1], search->loose, false};
    search_formula(search, t, &x, want, bound);
    return true;
}

/* old_factor alpha^old_power old + new_factor alpha^new_power new, of what the right formula has as alpha old + new. */
static bool forward_terms(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                          double *bound)
{
    const struct operand *old = search->sample->channel == asc_l ? &t->x.l_prev : &t->x.u_prev;
    const double *alpha = t->x.of[asc_alpha].value;
    if (!alpha || !old->value || t->next_alpha || t->rows != (int)query_rows(t))
        return false;
    for (int r = 0; r < t->rows; r++) {
        const double a = alpha[r], by_old = rule->old_factor * (rule->old_power == 0 ? 1 : pow(a, rule->old_power)),
                     by_new = rule->new_factor * (rule->new_power == 0 ? 1 : pow(a, rule->new_power)),
                     more = fmax(1, fmax(fabs(by_new), a > 0 ? fabs(by_old / a) : 1));
        for (size_t i = (size_t)r * (size_t)t->cols, end = i + (size_t)t->cols; i < end; i++) {
            const double before = old->value[i], fresh = t->want[i] - a * before;
            want[i] = (by_old == 0 ? 0 : by_old * before) + (by_new == 0 ? 0 : by_new * fresh);
            /* Each coefficient takes three roundings more at most: a reciprocal or square, and its product. */
            bound[i] = t->bound[i] * more + 4 * BOUND_U * (fabs(by_old * before) + fabs(by_new * fresh));
            if (isnan(t->want[i]))
                want[i] = NAN;
        }
    }
    return true;
}

/* Weights that are rescaled before they are rounded for the product: near an edge either side may have come out. What
   is not rescaled stays as the right formula has it. */
static void round_weights(const struct search *search, struct operands *x, const struct sample_tile *t, double *p)
{
    const int type = operand_type(t->c, asc_p);
    for (size_t i = 0; i < query_rows(t) * (size_t)x->cols && type >= 0; i++) {
        const double low = bound_round_unlimited((enum dtype)type, p[i] * (1 - 4 * BOUND_U)),
                     high = bound_round_unlimited((enum dtype)type, p[i] * (1 + 4 * BOUND_U));
        const bool stays = p[i] == t->x.of[asc_p].value[i];
        p[i] = stays ? t->x.pv_p.value[i] : (low + high) / 2;
        search->loose[i] = stays ? t->x.pv_p.loose[i] : (high - low) / 2;
    }
    if (type >= 0)
        x->pv_p = (struct operand){p, search->loose, false};
}

/* P with some of its columns times a weight, or Q with some of its elements; of m scores that do not take part. */
static bool forward_weights(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                            double *bound)
{
    struct operands x = t->x;
    const enum asc_channel ch = search->sample->channel;
    const bool dims = ch == asc_s;
    const double *from = dims ? x.of[asc_q].value : ch == asc_m ? x.s.value : ch == asc_l ? x.l_p.value : x.pv_p.value;
    const int cols = dims ? t->c->head_dim : x.cols;
    if (rule->new_power != 0 && ch == asc_u && operand_type(t->c, asc_p) >= 0)
        from = x.of[asc_p].value;
    const bool rescales = rule->share > 0 || rule->new_power != 0;
    const int steps = rule->share > 0 ? (cols + rule->share - 1) / rule->share : 1;
    const double *alpha = x.of[asc_alpha].value;
    double *to = search->operand, *power = search->rows[2]; /* of a row's alpha, by how many steps rescale */
    if (!from || (rescales && (!alpha || t->next_alpha)))
        return false;
    for (int r = 0; r < (int)query_rows(t) && rescales; r++)
        search->rows[1][r] = pow(alpha[r], steps);
    if (rescales)
        x.of[asc_alpha].value = search->rows[1];
    for (int r = 0; r < (int)query_rows(t); r++) {
        for (int step = 0; step <= steps && rescales; step++)
            power[step] = pow(alpha[r], rule->share > 0 ? step : rule->new_power);
        for (int col = 0; col < cols; col++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            to[i] = !term_holds(&rule->keys, col) ? from[i] : ch == asc_m ? -INFINITY : rule->weight * from[i];
            const int step = rule->share > 0 ? steps - !rule->cuts - map_at(&rule->map, col) / rule->share : 0;
            if (rescales && term_holds(&rule->keys, col))
                to[i] *=
                    step >= 0 && step <= steps ? power[step] : pow(alpha[r], step); /* a map of a whole tile's keys */
        }
    }
    if (dims) {
        x.of[asc_q].value = to;
    } else if (ch == asc_m) {
        x.s.value = to;
    } else if (ch == asc_l) {
        x.l_p.value = to;
    } else {
        x.pv_p.value = to;
        if (rule->new_power != 0)
            round_weights(search, &x, t, to);
    }
    search_formula(search, t, &x, want, bound);
    for (size_t i = 0; i < sample_cells(t) && rescales; i++) /* powers take a few roundings */
        bound[i] += 4 * steps * BOUND_U * fabs(want[i]) + t->bound[i];
    /* Where α is 0 a weight times it is one that is left out: nothing tells them apart. */
    for (size_t i = 0; i < sample_cells(t) && rule->new_power != 0; i++)
        if (alpha[i / (size_t)t->cols] == 0) {
            want[i] = NAN;
            bound[i] = INFINITY;
        }
    return true;
}

/* Rows of P in strips of keys.b: stored at one pitch, read at another. */
int weight_from(const struct rule *rule, int row, int key)
{
    const int keys = 1 << rule->keys.a, strip = rule->keys.b;
    if (rule->map.kind != MAP_PITCH)
        return map_at(&rule->map, row * keys + key);
    const int at = row % strip * rule->map.b + key, from = at / rule->map.a;
    return from < strip && at % rule->map.a < keys ? (row / strip * strip + from) * keys + at % rule->map.a : -1;
}

/* P with its weights at other rows and keys, on its way to U or l. */
static bool forward_weight(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                           double *bound)
{
    struct operands x = t->x;
    const int C = x.cols, R = (int)query_rows(t), keys = 1 << rule->keys.a;
    struct operand *p = search->sample->channel == asc_l ? &x.l_p : &x.pv_p;
    if ((search->sample->channel != asc_u && search->sample->channel != asc_l) || !p->value)
        return false;
    for (int r = 0; r < R; r++)
        for (int k = 0; k < C; k++) {
            const int from = weight_from(rule, r, k), row = from / keys, key = from % keys;
            /* Of rows behind the tile's last one nothing is known. */
            const double there = key >= C ? 0 : row < R ? p->value[row * C + key] : NAN;
            search->operand[r * C + k] = from < 0 ? NAN : there;
        }
    /* A weight that leads to a key behind the last one meets no V, but is counted. */
    for (int r = 0; r < R && search->sample->channel == asc_l; r++)
        for (int k = C; k < t->c->bc; k++) {
            const int from = weight_from(rule, r, k), row = from / keys, key = from % keys;
            if (from >= 0 && key < C)
                search->operand[(ptrdiff_t)r * C] += row < R ? p->value[(ptrdiff_t)row * C + key] : NAN;
        }
    p->value = search->operand;
    search_formula(search, t, &x, want, bound);
    for (size_t i = 0; i < sample_cells(t); i++)
        if (isnan(want[i]) && !isnan(t->want[i]))
            bound[i] = INFINITY;
    return true;
}

/* Rows of the tile that share the scale of row r of Q, K or V, which the launch makes, are all zero. */
static bool is_zero_group(const struct sample_tile *t, enum asc_channel ch, int r)
{
    const struct coding *coding = codes_of(t->c, ch);
    const int first = coding->first + (ch == asc_q ? 0 : t->kv * t->c->bc);
    if (!coding->quantized || codes_scale(coding, first + r - coding->first, 0) != 1)
        return false;
    for (size_t i = 0; i < sample_cells(t); i++)
        if (t->want[i] != 0 && group_of(coding, first + (int)(i / (size_t)t->cols)) == group_of(coding, first + r))
            return false;
    return true;
}

/* A kernel that does not guard the row makes no number of it: -inf - -inf, or 0 / 0. */
static bool needs_guard(const struct sample_tile *t, enum asc_channel stage, int r)
{
    switch (stage) {
    case asc_q:
    case asc_k:
    case asc_v:
        return is_zero_group(t, stage, r);
    case asc_alpha:
        return t->x.of[asc_m].value[r] == -INFINITY;
    case asc_p:
        return local_p_frame(t->c, &t->x).value[r] == -INFINITY;
    case asc_o:
    case asc_lse:
        return t->c->kv_splits > 1 ? schedule_keys(t->c, r) == 0 : stage == asc_o && t->x.l_prev.value[r] == 0;
    default:
        return false;
    }
}

static bool forward_unguarded(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                              double *bound)
{
    (void)rule;
    memcpy(bound, t->bound, sample_cells(t) * sizeof *bound);
    memcpy(want, t->want, sample_cells(t) * sizeof *want);
    for (int r = 0; r < t->rows; r++)
        if (needs_guard(t, search->sample->channel, r))
            for (int col = 0; col < t->cols; col++)
                want[(size_t)r * (size_t)t->cols + (size_t)col] = NAN;
    return true;
}

static bool forward_constant(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                             double *bound)
{
    (void)search;
    for (size_t i = 0; i < sample_cells(t); i++) {
        const bool stays = rule->masked && t->want[i] != -INFINITY;
        want[i] = stays ? t->want[i] : rule->plus;
        bound[i] = stays ? t->bound[i] : 0;
    }
    return true;
}

static rule_gives *const gives[] = {
    [RULE_RESULT] = forward_result,   [RULE_CONSTANT] = forward_constant, [RULE_UNGUARDED] = forward_unguarded,
    [RULE_ROUNDED] = forward_rounded, [RULE_PLACE] = forward_place,       [RULE_STALE] = forward_stale,
    [RULE_ADDED] = forward_added,     [RULE_CARRIED] = carried_forward,   [RULE_IS] = forward_is,
    [RULE_VECTOR] = forward_vector,   [RULE_EXPONENT] = forward_exponent, [RULE_LOGARITHM] = forward_logarithm,
    [RULE_SINK] = forward_sink,       [RULE_TERMS] = forward_terms,       [RULE_KEYS] = forward_weights,
    [RULE_SCALE] = scale_forward,     [RULE_WEIGHT] = forward_weight,     [RULE_ROWS] = rows_forward,
    [RULE_SEEN] = seen_forward,       [RULE_OPERAND] = operand_forward,   [RULE_SUMMED] = sum_forward,
    [RULE_LANES] = lanes_forward,     [RULE_SPLITS] = splits_forward,     [RULE_QUANTIZED] = quantized_forward,
    [RULE_TURNED] = turned_forward,   [RULE_FORMULA] = formula_forward,   [RULE_SCORE] = score_forward,
    [RULE_HALF] = half_forward,       [RULE_REACH] = reach_forward,       [RULE_QUOTIENT] = forward_quotient};

bool rule_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                  double *bound)
{
    return rule->kind != RULE_NONE && !search_is_stopped(search) && gives[rule->kind](search, rule, t, want, bound);
}
