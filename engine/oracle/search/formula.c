/* The stage's formula on any operands, and the row vectors that may stand among them. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

double rounded_to_zero(enum dtype type, double x)
{
    const double nearest = bound_round(type, x);
    double unit = 0, half_tiny = 0;
    if (!(fabs(nearest) > fabs(x)) || isinf(nearest))
        return nearest;
    bound_narrow(type, &unit, &half_tiny);
    return bound_round(type, nearest - copysign(fmax(fabs(nearest) * unit, 2 * half_tiny), nearest));
}

double rule_rounded(const struct rule *rule, double x)
{
    if (rule->limit > 0)
        return fmax(fmin(x, rule->limit), -rule->limit);
    if (rule->limit < 0)
        return fmax(x, -rule->limit);
    if (rule->type == DTYPE_I32)
        return rule->cuts ? trunc(x) : rint(x);
    return rule->cuts ? rounded_to_zero(rule->type, x) : bound_round(rule->type, x);
}

double rule_rounded_near(const struct rule *rule, double x, double *off)
{
    const double low = rule_rounded(rule, x - *off), high = rule_rounded(rule, x + *off);
    *off = (high - low) / 2;
    return low == high ? low : (low + high) / 2;
}

void rule_rounding(const struct rule *rule, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s %s", rule->cuts ? "cut off, not rounded, to" : "rounded to",
             rule->type == DTYPE_I32 ? "whole numbers" : dtype_name(rule->type));
}

static bool copy(double *out, const double *x, size_t n)
{
    if (x)
        memcpy(out, x, n * sizeof *out);
    return x != NULL;
}

/* In m's unit. */
static bool tile_top(const struct sample_tile *t, double *out)
{
    const double factor = t->x.s_direct ? 1 : t->x.s_natural / values_natural_m(t->c);
    if (!t->x.s.value)
        return false;
    for (size_t r = 0; r < query_rows(t); r++) {
        double top = -INFINITY;
        for (int col = 0; col < t->x.cols; col++)
            top = fmax(top, t->x.s.value[r * (size_t)t->x.cols + (size_t)col]);
        out[r] = top * factor;
    }
    return true;
}

static bool row_sum(const struct sample_tile *t, double *out)
{
    if (!t->x.l_p.value)
        return false;
    for (size_t r = 0; r < query_rows(t); r++) {
        out[r] = 0;
        for (int col = 0; col < t->x.cols; col++)
            out[r] += t->x.l_p.value[r * (size_t)t->x.cols + (size_t)col];
    }
    return true;
}

/* m, or l of all lanes, of a row as a visit recorded it; NaN: it did not. */
static double state_there(const struct oracle_case *c, int visit, enum asc_channel ch, int r)
{
    const struct matrix *x = &c->captured[(ptrdiff_t)c->order[visit] * ASC_CHANNELS + ch];
    double sum = x->data && r < x->rows ? 0 : NAN;
    for (int lane = 0; !isnan(sum) && lane < x->cols; lane++)
        sum += dtype_load(x->dtype, x->data, (size_t)(r * x->row_stride + lane));
    return sum;
}

/* What l would be if it were stored only in tiles whose maximum rises. */
static bool l_risen(const struct sample_tile *t, bool ends, double *out)
{
    const struct oracle_case *c = t->c;
    int n = 0;
    while (n < c->n_visited && (ends || c->order[n] != t->kv))
        n++;
    if (c->kv_splits > 1 || c->fed || n == 0)
        return false;
    for (size_t r = 0; r < query_rows(t); r++) {
        int i = n - 1;
        while (i > 0 && !(state_there(c, i, asc_m, (int)r) > state_there(c, i - 1, asc_m, (int)r)))
            i--;
        out[r] = state_there(c, i, asc_l, (int)r);
    }
    return true;
}

/* Of o and lse the state is what the last tile has left. */
static bool entry_at_end(const struct sample_tile *t, enum entry entry, double *out)
{
    const size_t R = query_rows(t);
    switch (entry) {
    case ENTRY_M:
        return copy(out, t->x.m_prev.value, R);
    case ENTRY_L:
        return copy(out, t->x.l_prev.value, R);
    case ENTRY_M_PREV:
        return t->end.m_prev.value && copy(out, t->end.m_prev.value, R);
    case ENTRY_L_PREV:
        return t->end.l_prev.value && copy(out, t->end.l_prev.value, R);
    case ENTRY_ALPHA:
        return t->end.of[asc_alpha].value && copy(out, t->end.of[asc_alpha].value, R);
    default:
        return false;
    }
}

static bool entry_of_tile(const struct sample_tile *t, enum entry entry, double *out)
{
    const size_t R = query_rows(t);
    switch (entry) {
    case ENTRY_M:
        return copy(out, t->x.of[asc_m].value, R);
    case ENTRY_M_PREV:
        return copy(out, t->x.m_prev.value, R);
    case ENTRY_TILE_TOP:
        return tile_top(t, out);
    case ENTRY_ALPHA:
        return copy(out, t->x.of[asc_alpha].value, R);
    case ENTRY_L:
        return copy(out, t->x.of[asc_l].value, R);
    case ENTRY_L_PREV:
        return copy(out, t->x.l_prev.value, R);
    case ENTRY_M_WITH_TILE:
        if (!tile_top(t, out) || !t->x.m_prev.value)
            return false;
        for (size_t r = 0; r < R; r++)
            out[r] = fmax(out[r], t->x.m_prev.value[r]);
        return true;
    case ENTRY_ROW_SUM:
        return row_sum(t, out);
    default:
        return false;
    }
}

/* m as a row that sees a key may be taken for one that sees none, or its sign may be lost. */
static bool edited_m(const struct sample *s, const struct sample_tile *t, enum entry entry, double *out)
{
    if (s->channel == asc_m || !entry_value(s, t, ENTRY_M, out)) /* it would be made of itself */
        return false;
    for (size_t r = 0; r < query_rows(t); r++)
        out[r] = entry == ENTRY_M_SIZE ? fabs(out[r]) : fmax(out[r], 0);
    return true;
}

bool entry_value(const struct sample *s, const struct sample_tile *t, enum entry entry, double *out)
{
    const bool ends = s->channel == asc_o || s->channel == asc_lse;
    if (entry == ENTRY_ZERO || entry == ENTRY_ONE) {
        for (size_t r = 0; r < query_rows(t); r++)
            out[r] = entry == ENTRY_ONE;
        return true;
    }
    if (entry == ENTRY_M_FLOOR || entry == ENTRY_M_SIZE)
        return edited_m(s, t, entry, out);
    if (entry == ENTRY_L_RISEN)
        return l_risen(t, ends, out);
    if (ends)
        return entry_at_end(t, entry, out);
    if (entry == ENTRY_M_BEFORE || entry == ENTRY_ALPHA_BEFORE || entry == ENTRY_L_BEFORE)
        return t->before >= 0 && entry_of_tile(&s->tiles[t->before],
                                               entry == ENTRY_M_BEFORE       ? ENTRY_M_PREV
                                               : entry == ENTRY_ALPHA_BEFORE ? ENTRY_ALPHA
                                                                             : ENTRY_L_PREV,
                                               out);
    if (entry == ENTRY_M_NEXT || entry == ENTRY_ALPHA_NEXT)
        return t->next >= 0 && entry_of_tile(&s->tiles[t->next], entry == ENTRY_M_NEXT ? ENTRY_M : ENTRY_ALPHA, out);
    return entry_of_tile(t, entry, out);
}

const char *entry_name(enum asc_channel ch, enum entry entry)
{
    static const char *const names[ENTRIES] = {
        [ENTRY_ZERO] = "0",
        [ENTRY_ONE] = "1",
        [ENTRY_M] = "m",
        [ENTRY_M_PREV] = "m_prev, the maximum before this tile",
        [ENTRY_TILE_TOP] = "the maximum of this tile alone",
        [ENTRY_ALPHA] = "α",
        [ENTRY_L] = "l",
        [ENTRY_L_PREV] = "l before this tile",
        [ENTRY_M_BEFORE] = "the maximum two tiles before",
        [ENTRY_ALPHA_BEFORE] = "the α of the tile before",
        [ENTRY_L_BEFORE] = "l two tiles before",
        [ENTRY_L_RISEN] = "l of the last tile before this one whose maximum rose",
        [ENTRY_M_NEXT] = "m of the next tile",
        [ENTRY_ALPHA_NEXT] = "the α of the next tile",
        [ENTRY_M_WITH_TILE] = "the maximum with this tile, as it should be",
        [ENTRY_M_FLOOR] = "the larger of m and 0",
        [ENTRY_M_SIZE] = "|m|",
        [ENTRY_ROW_SUM] = "the sum of this tile's weights",
    };
    /* O and LSE are made after the last tile: what came before is the state before that. */
    if (ch == asc_o || ch == asc_lse)
        return entry == ENTRY_M_PREV    ? "m before the last tile"
               : entry == ENTRY_L_PREV  ? "l before the last tile"
               : entry == ENTRY_ALPHA   ? "the α of the last tile"
               : entry == ENTRY_L_RISEN ? "l of the last tile whose maximum rose"
                                        : names[entry];
    return names[entry];
}

void rule_loosen(const struct sample_tile *t, const double *want, double *bound, int roundings)
{
    for (size_t i = 0; i < sample_cells(t); i++)
        bound[i] += isfinite(want[i]) ? roundings * BOUND_U * fabs(want[i]) : 0;
}

void search_formula(const struct search *search, const struct sample_tile *t, const struct operands *x, double *want,
                    double *bound)
{
    const struct oracle_case *c = t->c;
    const struct room *room = &search->scratch->room;
    const struct expected out = {want, bound};
    switch (search->sample->channel) {
    case asc_s:
        local_s(c, x, room, out);
        break;
    case asc_m:
        local_m(c, x, out);
        break;
    case asc_alpha:
        local_alpha(c, x, out);
        break;
    case asc_p:
        local_p(c, x, out);
        break;
    case asc_l:
        local_l(c, x, out);
        break;
    case asc_u:
        local_u(c, x, room, out);
        if (t->next_alpha)
            local_rescale(c, t->next_alpha, t->next_alpha_loose, want, bound);
        break;
    case asc_o:
        local_o(c, x, out);
        break;
    default:
        local_lse(c, x, out);
    }
}
