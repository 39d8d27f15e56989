/* Rules of splits: O and LSE are merged from what the splits of the keys ended with,
     o = Σ w_s o_s / Σ w_s, lse = ln Σ w_s, w_s = exp(lse_s)  (FlashAttention-2, combine_attn_seqk_parallel)
   and a rule has other weights, other splits, or other rows of them. What it gives. And of work items,
   of which a block takes one after the other: a state that goes on from the item before. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/element.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <stdio.h>
#include <string.h>

enum { SWAPPED_MOST = 16 };

/* What a split ended with in one row, natural units. loose: how far the kernel's own lse may lie from it. */
struct ending {
    double m, l, lse, loose;
};

static const struct matrix *of_tile(const struct sample_tile *t, int kv, enum asc_channel ch)
{
    return &t->c->captured[kv * ASC_CHANNELS + (int)ch];
}

/* Whether m, l and u of all splits are known to the bit, and nothing else joins them. */
static bool can_merge(const struct sample_tile *t)
{
    const struct oracle_case *c = t->c;
    if (!t->last_tile || c->fed || c->conventions.u_phase == ASC_U_RESCALED ||
        c->conventions.u_norm == ASC_U_NORM_TILE || (c->has_sink && c->conventions.l_sink != ASC_SINK_START))
        return false;
    for (int split = 0; split < c->kv_splits; split++) {
        static const enum asc_channel state[] = {asc_m, asc_l, asc_u};
        const int kv = t->last_tile[split];
        for (int i = 0; kv >= 0 && i < 3; i++) {
            const struct matrix *x = of_tile(t, kv, state[i]);
            if (!x->data || x->dtype != DTYPE_F32)
                return false;
        }
    }
    return true;
}

/* Where what a row is merged of has been left: a row of the tile that ended a split, of any q tile. */
struct left {
    const struct sample_tile *t; /* NULL: one that the sample does not show */
    int kv, row;
};

/* Whether a split leaves something to be merged, be it that it has no key. */
static bool leaves(const struct sample_tile *t, int split)
{
    return t->c->kv_deal != ASC_DEAL_MAP || !t->c->states || split < t->c->states[t->c->kv_tiles];
}

/* How many of the first so many splits do. */
static int items(const struct sample_tile *t, int splits)
{
    int n = 0;
    for (int split = 0; split < splits; split++)
        n += leaves(t, split);
    return n;
}

/* The q tile that comes `step` (1, -1) behind this one, where items are listed q tile by q tile, then head by head;
   NULL: the sample does not show it. */
static const struct sample_tile *q_tile_beside(const struct search *search, const struct sample_tile *t, int step)
{
    const int *at = t->at;
    for (int i = 0; i < search->sample->n; i++) {
        const struct sample_tile *other = &search->sample->tiles[i], *first = step > 0 ? t : other;
        const bool is_last = first->at[AXIS_Q_TILE] == (first->c->q_len - 1) / first->c->br;
        const bool begins = (step > 0 ? other : t)->at[AXIS_Q_TILE] == 0;
        const int head = head_of(search, other, asc_q) - head_of(search, t, asc_q);
        if (head == 0 ? other->at[AXIS_Q_TILE] == at[AXIS_Q_TILE] + step : head == step && is_last && begins)
            return other;
    }
    return NULL;
}

static struct left item_at(const struct search *search, const struct map *map, const struct sample_tile *t, int split,
                           int r)
{
    const int own = items(t, split), n = items(t, t->c->kv_splits);
    int to = own + map->a;
    if (!leaves(t, split) || n < 1)
        return (struct left){t, -1, r};
    if (map->kind == MAP_ROTATED)
        to = (to + n) % n;
    else if (map->kind == MAP_CLAMPED)
        to = to < 0 ? 0 : to < n ? to : n - 1;
    else if (map->kind == MAP_FIXED)
        to = map->a < 0 ? n + map->a : map->a;
    else if (map->kind != MAP_PLUS)
        to = map_at(map, own) < n ? map_at(map, own) : -1;
    if (map->kind != MAP_PLUS && (to < 0 || to >= n))
        return (struct left){0};
    for (int count = n; t && (to < 0 || to >= count); count = t ? items(t, t->c->kv_splits) : 0) {
        if (to >= count)
            to -= count;
        t = q_tile_beside(search, t, map->a);
        t = t && can_merge(t) ? t : NULL;
        if (t && to < 0)
            to += items(t, t->c->kv_splits);
    }
    for (split = 0; t && (!leaves(t, split) || items(t, split) != to);)
        split++;
    return (struct left){t && r < t->rows ? t : NULL, t ? t->last_tile[split] : -1, r};
}

/* What stands at an item's place, where each block leaves all its items by its own number: the last one of the block
   with the item's. */
static struct left block_at(const struct search *search, const struct sample_tile *t, int split, int r)
{
    const struct work_items *all = &search->items;
    const int own = all->first[head_of(search, t, asc_q) * all->q_tiles + t->at[AXIS_Q_TILE]] + items(t, split);
    const int to = leaves(t, split) && own < all->n ? all->last[own] : -1;
    for (int i = 0; i < search->sample->n && to >= 0; i++) {
        const struct sample_tile *other = &search->sample->tiles[i];
        const int item = to - all->first[head_of(search, other, asc_q) * all->q_tiles + other->at[AXIS_Q_TILE]];
        if (item < 0 || item >= items(other, other->c->kv_splits) || !can_merge(other) || r >= other->rows)
            continue;
        split = 0;
        while (!leaves(other, split) || items(other, split) != item)
            split++;
        return (struct left){other, other->last_tile[split], r};
    }
    return leaves(t, split) ? (struct left){0} : (struct left){t, -1, r};
}

/* By a map of rows of the tile; or of all that was left, counted as it lies in the workspace, [row][split]. */
static struct left left_at(const struct search *search, const struct rule *rule, const struct map *map,
                           const struct sample_tile *t, int split, int r)
{
    const struct oracle_case *c = t->c;
    if (rule->by_block && map->kind != MAP_SAME)
        return block_at(search, t, split, r);
    if (rule->of_items && map->kind != MAP_SAME)
        return item_at(search, map, t, split, r);
    if (!rule->rows.flat)
        return (struct left){t, t->last_tile[split], map_at(map, r)};
    const int row = head_of(search, t, asc_q) * c->q_len + t->at[AXIS_Q_TILE] * c->br + r;
    const int from = map_at(map, row * c->kv_splits + split), q = from / c->kv_splits % c->q_len;
    for (int i = 0; i < search->sample->n && from >= 0; i++) {
        const struct sample_tile *other = &search->sample->tiles[i];
        if (head_of(search, other, asc_q) == from / c->kv_splits / c->q_len && other->at[AXIS_Q_TILE] == q / c->br)
            return (struct left){can_merge(other) ? other : NULL, other->last_tile[from % c->kv_splits], q % c->br};
    }
    return (struct left){0};
}

static void set_lse(const struct rule *rule, const struct oracle_case *c, struct ending *out)
{
    const double offset = bound_ln_factor(c);
    out->lse = out->m + log(out->l) - offset;
    out->loose = bound_lse(fabs(out->m) + fabs(offset), log(out->l), out->lse) + bound_convert(out->lse) + out->loose;
    if (rule->narrow_lse)
        out->lse = rule_rounded_near(rule, out->lse, &out->loose);
}

/* false: the split has no key for this row. */
static bool take_ending(const struct rule *rule, struct left left, struct ending *out)
{
    const struct sample_tile *t = left.t;
    const int kv = left.kv, r = left.row;
    *out = (struct ending){.l = 1, .lse = NAN};
    if (!t)
        return true;
    *out = (struct ending){0};
    if (kv < 0 || r < 0 || r >= t->rows)
        return false;
    const struct matrix *m = of_tile(t, kv, asc_m), *l = of_tile(t, kv, asc_l);
    out->m = dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride)) * values_natural_m(t->c);
    for (int lane = 0; lane < l->cols; lane++)
        out->l += dtype_load(l->dtype, l->data, (size_t)(r * l->row_stride + lane));
    if (!(out->l > 0))
        return false;
    out->loose = l->cols > 1 ? bound_gamma(l->cols) : 0;
    set_lse(rule, t->c, out);
    return true;
}

/* What a split leaves by the rule: where its map leads to another one, all of that, or its maximum or sum alone. */
static bool take_taken(const struct search *search, const struct rule *rule, const struct sample_tile *t, int split,
                       int r, struct ending *out)
{
    const struct map same = {.kind = MAP_SAME};
    struct ending own;
    const bool has_keys = take_ending(rule, left_at(search, rule, &rule->map, t, split, r), out);
    if (rule->taken == TAKEN_LSE || !has_keys)
        return has_keys;
    if (!take_ending(rule, left_at(search, rule, &same, t, split, r), &own))
        return false;
    const bool known = !isnan(out->lse);
    *(rule->taken == TAKEN_M ? &out->l : &out->m) = rule->taken == TAKEN_M ? own.l : own.m;
    out->loose = own.loose;
    set_lse(rule, t->c, out);
    out->lse = known ? out->lse : NAN;
    return true;
}

/* One split's weight w_s = exp(e) in a row, and its relative error: lse_s's own, the subtraction of the largest one,
   exp's, and the roundings around it. false: the split does not take part. */
static bool take_weight(const struct search *search, const struct rule *rule, const struct sample_tile *t, int split,
                        int r, struct ending *end, double *e)
{
    const bool has_keys = take_taken(search, rule, t, split, r, end);
    const int item = items(t, split), from_end = rule->keys.a < 0 ? items(t, t->c->kv_splits) : 0;
    *e = has_keys ? rule->factor * end->lse + rule->power * end->m : 0;
    return (has_keys || (rule->counts_empty && leaves(t, split))) &&
           term_holds(&rule->keys, rule->of_items ? item - from_end : split);
}

static double weight_loose(const struct rule *rule, const struct sample_tile *t, const struct ending *end, double e,
                           double top)
{
    const double error = fabs(rule->factor) * end->loose + 3.25 * BOUND_U * (fabs(e) + fabs(top));
    return bound_expm1(error) + bound_exp_declared(t->c, e - top, 0) + 6 * BOUND_U;
}

struct merged_row {
    double top, sum, sum_loose;
};

/* A number that so much may be off, relatively, as it is rounded. */
static double narrow_weight(const struct rule *rule, double w, double *loose)
{
    double off = w * *loose;
    if (!rule->narrow.weights || w == 0)
        return w;
    w = rule_rounded_near(rule, w, &off);
    *loose = off / w;
    return w;
}

/* A sum so far with its bound, once it is rounded. */
static void narrow_sum(const struct rule *rule, double *sum, double *loose)
{
    *loose += BOUND_U * fabs(*sum);
    *sum = rule_rounded_near(rule, *sum, loose);
}

static struct merged_row merge_weights(const struct search *search, const struct rule *rule,
                                       const struct sample_tile *t, int r)
{
    struct merged_row row = {.top = -INFINITY};
    double so_far = -INFINITY;
    struct ending end;
    double e = 0;
    for (int split = 0; split < t->c->kv_splits; split++)
        if (take_weight(search, rule, t, split, r, &end, &e))
            row.top = fmax(row.top, rule->narrow.on_m ? end.m : e);
    for (int split = 0; split < t->c->kv_splits; split++) {
        if (!take_weight(search, rule, t, split, r, &end, &e))
            continue;
        if (split == rule->largest)
            e = row.top;
        so_far = fmax(so_far, e);
        if (rule->keeps_sum)
            e += row.top - so_far;
        double loose = weight_loose(rule, t, &end, e, row.top);
        const double w = narrow_weight(rule, exp(e - row.top), &loose);
        row.sum += w;
        row.sum_loose += w * loose;
        if (rule->narrow.total)
            narrow_sum(rule, &row.sum, &row.sum_loose);
    }
    return row;
}

/* Weights, their sum and that of the outputs as f32 has them, where they leave its range: inf / inf, or x / inf, or
   0 / 0. Below half the smallest subnormal an exponential is 0. */
static void overflow(const struct sample_tile *t, int r, const struct merged_row *row, double *want)
{
    const double largest = exp(row->top), sum = largest * row->sum;
    const bool vanishes = sum < 0.5 * FLT_TRUE_MIN && schedule_keys(t->c, r) > 0;
    for (int d = 0; d < t->cols; d++) {
        const double x = want[d] * sum;
        const bool infinite = fabs(x) > FLT_MAX;
        if (largest > FLT_MAX || vanishes || (infinite && sum > FLT_MAX))
            want[d] = NAN;
        else if (infinite || sum > FLT_MAX)
            want[d] = infinite ? copysign(INFINITY, x) : 0;
    }
}

/* The weighted outputs of a row are added to want, and how far they may lie to bound. */
static void add_outputs(const struct search *search, const struct rule *rule, const struct sample_tile *t, int r,
                        const struct merged_row *row, double *want, double *bound)
{
    double so_far = -INFINITY;
    const int D = t->cols;
    const double added = bound_gamma(t->c->kv_splits + 2); /* of the sum's own roundings: terms may cancel */
    for (int split = 0; split < t->c->kv_splits; split++) {
        struct ending end, own;
        double e = 0;
        const struct left left = left_at(search, rule, &rule->col_map, t, split, r);
        if (!take_weight(search, rule, t, split, r, &end, &e) || !take_ending(rule, left, &own))
            continue;
        const struct matrix *u = left.t ? of_tile(left.t, left.kv, asc_u) : NULL;
        if (split == rule->largest)
            e = row->top;
        so_far = fmax(so_far, e);
        if (rule->keeps_output)
            e += row->top - so_far;
        double loose = weight_loose(rule, t, &end, e, row->top), w = exp(e - row->top);
        if (rule->narrow.divided) {
            w /= row->sum;
            loose += row->sum_loose / row->sum + 2 * BOUND_U;
        }
        w = narrow_weight(rule, w, &loose);
        const struct moved_piece *piece = rule->piece.moves && split == rule->piece.of ? &rule->piece : NULL;
        const int kv = piece ? t->last_tile[piece->from] : -1;
        const struct matrix *other = !piece ? u : kv >= 0 ? of_tile(t, kv, asc_u) : NULL;
        for (int d = 0; d < D; d++) {
            const int col = piece ? d + piece->shift : d;
            if (col < 0 || col >= D) { /* there is nothing to take: none of the rule's columns */
                want[d] = INFINITY;
                continue;
            }
            const double x =
                other ? dtype_load(other->dtype, other->data, (size_t)(left.row * other->row_stride + col)) : NAN;
            double o = x / (rule->undivided ? 1 : own.l), off = 2 * BOUND_U * fabs(o);
            o = rule->narrow_output ? rule_rounded_near(rule, o, &off) : o;
            want[d] += w * o;
            bound[d] += fabs(w * o) * (loose + added) + (rule->narrow_output ? w * off : 0);
            if (rule->narrow.output) {
                bound[d] += 2 * BOUND_U * fabs(w * o);
                narrow_sum(rule, &want[d], &bound[d]);
            }
        }
    }
}

/* The first of the rows whose sums have not been cleared before row r. */
static int first_of_run(const struct rule *rule, int r)
{
    return rule->runs_on ? r / rule->runs_on * rule->runs_on : r;
}

bool splits_are_mixed(const struct rule *rule)
{
    return (rule->stays || rule->total || rule->by_m) && rule->taken != TAKEN_SWAPPED;
}

static bool stays(const struct rule *rule, const struct sample_tile *t, int split, int r, int d)
{
    const int n = t->c->kv_splits;
    const bool others = rule->stays >= STAYS_OTHERS;
    const int together = rule->stay_together > 0 ? rule->stay_together : 1, group = split / together;
    switch (rule->stays - (others ? STAYS_LAST : 0)) {
    case STAYS_OF_COLUMN:
        return (d * n / t->cols / together == group) != others;
    case STAYS_OF_ROW:
        return (r * n / t->c->br / together == group) != others;
    case STAYS_FIRST:
        return (group == 0) != others;
    case STAYS_LAST:
        return (group == (n - 1) / together) != others;
    default:
        return false;
    }
}

/* m and l of splits, but for those that stay, in each other's place: in the column d of a row
     o = Σ exp(m_s) u_s / Σ exp(m_s) l_s,  lse = ln Σ exp(m_s) l_s
   with the largest of what stands there for m taken off. Where the sum is not positive, as l is any number then, what
   a kernel does is its own affair. */
struct swapped_row {
    double m[SWAPPED_MOST], loose[SWAPPED_MOST]; /* of m, natural */
    double l[SWAPPED_MOST], top, sum, sum_loose;
};

static bool take_swapped(const struct rule *rule, const struct sample_tile *t, int r, int d, struct swapped_row *row)
{
    const double natural = values_natural_m(t->c);
    row->top = -INFINITY;
    row->sum = row->sum_loose = 0;
    for (int split = 0; split < t->c->kv_splits; split++) {
        struct ending end;
        if (!take_ending(rule, (struct left){t, t->last_tile[split], r}, &end))
            return false;
        const bool own = stays(rule, t, split, r, d);
        const double off = t->c->conventions.l_lanes > 1 ? bound_gamma(t->c->conventions.l_lanes) : 0;
        row->m[split] = own ? end.m : end.l * natural;
        row->l[split] = own ? end.l : end.m / natural;
        row->loose[split] = own ? 0 : off * fabs(row->m[split]);
        row->top = fmax(row->top, row->m[split]);
    }
    for (int split = 0; split < t->c->kv_splits; split++) {
        const double m = row->m[split], e = m - row->top, w = exp(e);
        const double off = row->loose[split] + 4 * BOUND_U * (fabs(m) + fabs(row->top));
        row->loose[split] = bound_expm1(2 * off) + bound_exp_declared(t->c, e, 0) + 6 * BOUND_U;
        row->m[split] = w; /* its weight from here on */
        row->sum += w * row->l[split];
        row->sum_loose += fabs(w * row->l[split]) * (row->loose[split] + bound_gamma(t->c->kv_splits + 2));
    }
    return row->sum > 4 * row->sum_loose;
}

static void merge_swapped(const struct search *search, const struct rule *rule, const struct sample_tile *t, int r,
                          double *want, double *bound)
{
    const double unit = t->c->conventions.lse_base2 ? M_LOG2E : 1;
    for (int d = 0; d < t->cols; d++) {
        struct swapped_row row;
        double x = 0, off = 0;
        want[d] = NAN;
        bound[d] = INFINITY;
        if (t->c->kv_splits > SWAPPED_MOST || !take_swapped(rule, t, r, d, &row))
            continue;
        for (int split = 0; split < t->c->kv_splits && search->sample->channel == asc_o; split++) {
            const struct matrix *u = of_tile(t, t->last_tile[split], asc_u);
            const double added = row.m[split] * dtype_load(u->dtype, u->data, (size_t)(r * u->row_stride + d));
            x += added;
            off += fabs(added) * (row.loose[split] + bound_gamma(t->c->kv_splits + 2));
        }
        if (search->sample->channel == asc_o) {
            want[d] = x / row.sum;
            bound[d] = (off + fabs(want[d]) * row.sum_loose) / (row.sum - row.sum_loose) + bound_divide(want[d]);
        } else {
            want[d] = (row.top + log(row.sum) - bound_ln_factor(t->c)) * unit;
            bound[d] =
                (4 * bound_lse(fabs(row.top), log(row.sum), want[d] / unit) - log1p(-row.sum_loose / row.sum)) * unit;
        }
    }
}

/* Weights or their sum, of some splits, are another row's: w_s = exp(lse_s of one row) / Σ exp(lse_s) of one. A row
   that nothing takes part in is left to the right formula. */
static void merge_mixed(const struct search *search, const struct rule *rule, const struct sample_tile *t, int r,
                        double *want, double *bound)
{
    struct rule own = *rule;
    own.map = (struct map){.kind = MAP_SAME};
    const struct rule *rules[] = {&own, rule};
    const struct merged_row rows[] = {merge_weights(search, &own, t, r), merge_weights(search, rule, t, r)};
    const int D = t->cols;
    if (!(rows[0].sum > 0) || !(rows[1].sum > 0))
        return;
    for (int d = 0; d < D; d++)
        want[d] = bound[d] = 0;
    for (int split = 0; split < t->c->kv_splits; split++) {
        const struct left left = left_at(search, rule, &rule->col_map, t, split, r);
        const struct matrix *u = left.t ? of_tile(left.t, left.kv, asc_u) : NULL;
        struct ending ends[2], output;
        double w[2] = {0}, loose[2] = {0};
        for (int moved = 0; moved < 2; moved++) {
            const int weight = moved && rule->total != TOTAL_ALONE, sum = moved && rule->total != TOTAL_OWN;
            double e = 0;
            if (!take_weight(search, rules[weight], t, split, r, &ends[moved], &e))
                continue;
            w[moved] = exp(e - rows[sum].top) / rows[sum].sum;
            loose[moved] = weight_loose(rule, t, &ends[moved], e, rows[sum].top) + rows[sum].sum_loose / rows[sum].sum;
        }
        if ((w[0] == 0 && w[1] == 0) || !take_ending(rule, left, &output))
            continue;
        for (int d = 0; d < D; d++) {
            const int moved = !stays(rule, t, split, r, d);
            const double x = u ? dtype_load(u->dtype, u->data, (size_t)(left.row * u->row_stride + d)) : NAN;
            const double o = x / (rule->by_m ? ends[moved].l : output.l);
            if (w[moved] == 0)
                continue;
            want[d] += w[moved] * o;
            bound[d] += fabs(w[moved] * o) * (loose[moved] + bound_gamma(t->c->kv_splits + 2));
        }
    }
    for (int d = 0; d < D; d++) {
        bound[d] += 2 * bound_gamma(t->c->kv_splits + 2) * fabs(want[d]) + bound_divide(want[d]);
        bound[d] = isnan(want[d]) ? INFINITY : bound[d];
    }
}

/* A row that nothing takes part in is left to the right formula. */
static void merge_output(const struct search *search, const struct rule *rule, const struct sample_tile *t, int r,
                         double *want, double *bound)
{
    if (splits_are_mixed(rule)) {
        merge_mixed(search, rule, t, r, want, bound);
        return;
    }
    struct merged_row row = merge_weights(search, rule, t, r);
    const int D = t->cols;
    const double common = bound_gamma(t->c->kv_splits + 2);
    if (row.sum <= 0)
        return;
    for (int d = 0; d < D; d++)
        want[d] = bound[d] = 0;
    row.sum = row.sum_loose = 0;
    for (int from = first_of_run(rule, r); from <= r; from++) {
        const struct merged_row own = merge_weights(search, rule, t, from);
        row.sum += own.sum;
        row.sum_loose += own.sum_loose;
        if (from == r || !rule->sum_alone)
            add_outputs(search, rule, t, from, &own, want, bound);
    }
    if (rule->narrow.divided) {
        row.sum = 1;
        row.sum_loose = 0;
    }
    for (int d = 0; d < D; d++) {
        want[d] /= row.sum;
        bound[d] =
            (bound[d] + fabs(want[d]) * row.sum_loose) / row.sum + 2 * common * fabs(want[d]) + bound_divide(want[d]);
    }
    for (int d = 0; d < D; d++) /* of what the sample does not show */
        bound[d] = isnan(want[d]) ? INFINITY : bound[d];
    const double again = pow(row.sum, 1 - rule->weight);
    for (int d = 0; d < D && rule->weight != 1; d++) {
        want[d] *= again;
        bound[d] = 2 * again * bound[d];
    }
    if (rule->frame == FRAME_UNSHIFTED)
        overflow(t, r, &row, want);
}

static double frame_of(const struct search *search, const struct rule *rule, const struct sample_tile *t, int r)
{
    const struct map same = {.kind = MAP_SAME};
    const bool apart = rule->frame >= FRAME_OFF_M && rule->frame <= FRAME_ON_LSE;
    double frame = NAN, first = NAN;
    for (int split = 0; split < t->c->kv_splits; split++) {
        struct ending end;
        if (!take_ending(rule, left_at(search, rule, &same, t, split, r), &end))
            continue;
        const double x =
            rule->frame == FRAME_LSE || rule->frame == FRAME_TAKEN || rule->frame >= FRAME_OFF_LSE ? end.lse : end.m;
        first = isnan(first) ? x : first;
        if (rule->frame == FRAME_LAST || isnan(frame))
            frame = x;
        else if (rule->frame != FRAME_FIRST)
            frame = fmax(frame, x);
    }
    if (apart)
        return rule->frame == FRAME_OFF_M || rule->frame == FRAME_OFF_LSE ? frame - first : first - frame;
    return frame;
}

/* ln Σ w_s, in the unit of the weights' own exponents, or with a maximum put back. */
static void merge_lse(const struct search *search, const struct rule *rule, const struct sample_tile *t, int r,
                      double *want, double *bound)
{
    struct merged_row row = merge_weights(search, rule, t, r);
    for (int from = first_of_run(rule, r); from < r; from++) {
        const struct merged_row own = merge_weights(search, rule, t, from);
        row.sum += own.sum;
        row.sum_loose += own.sum_loose;
    }
    const double unit = t->c->conventions.lse_base2 ? M_LOG2E : 1, frame = frame_of(search, rule, t, r);
    double x = row.top + log(row.sum);
    if (row.sum <= 0 || isnan(frame))
        return;
    if (rule->frame == FRAME_UNIT)
        x /= rule->factor;
    else if (rule->frame == FRAME_LSE)
        x += (1 - rule->factor) * frame;
    else if (rule->frame == FRAME_OWN_M)
        x -= rule->power * frame;
    else if (rule->frame == FRAME_TAKEN)
        x -= frame;
    else if (rule->frame != FRAME_NONE)
        x += frame;
    *want = x * unit;
    *bound = isnan(x) ? INFINITY
                      : (bound_lse(fabs(row.top) + fabs(frame), log(row.sum), x) * 4 + row.sum_loose / row.sum) * unit;
}

bool splits_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                    double *bound)
{
    const size_t D = (size_t)t->cols;
    if (!can_merge(t))
        return false;
    memcpy(want, t->want, sample_cells(t) * sizeof *want);
    memcpy(bound, t->bound, sample_cells(t) * sizeof *bound);
    for (int r = 0; r < t->rows; r++) {
        if (rule->taken == TAKEN_SWAPPED)
            merge_swapped(search, rule, t, r, want + (size_t)r * D, bound + (size_t)r * D);
        else if (search->sample->channel == asc_o)
            merge_output(search, rule, t, r, want + (size_t)r * D, bound + (size_t)r * D);
        else
            merge_lse(search, rule, t, r, want + r, bound + r);
    }
    return true;
}

bool splits_are_hopeless(struct search *search, const struct rule *rule)
{
    enum { ROWS = 8 };
    const struct sample_tile *t = NULL;
    for (int k = 0; k < search->sample->n && !t; k++)
        t = search->sample->tiles[k].any_wrong ? &search->sample->tiles[k] : NULL;
    if (!t || search->sample->channel != asc_o || !can_merge(t))
        return true;
    int asked = 0, rows = 0;
    int given = 0;
    for (int i = 0; i < t->rows && rows < ROWS; i++) {
        const int r = (5 * i + t->rows / 2) % t->rows;
        const size_t first = (size_t)r * (size_t)t->cols;
        int wrong = 0;
        for (int d = 0; d < t->cols; d++)
            wrong += t->cell[first + (size_t)d] == CELL_WRONG;
        if (!wrong)
            continue;
        rows++;
        memcpy(search->want, t->want + first, (size_t)t->cols * sizeof *search->want);
        memcpy(search->bound, t->bound + first, (size_t)t->cols * sizeof *search->bound);
        (rule->taken == TAKEN_SWAPPED ? merge_swapped : merge_output)(search, rule, t, r, search->want, search->bound);
        for (int d = 0; d < t->cols; d++) {
            if (t->cell[first + (size_t)d] != CELL_WRONG)
                continue;
            asked++;
            given += isfinite(search->want[d]) &&
                     element_within(t->type, t->got[first + (size_t)d], search->want[d], search->bound[d]);
        }
    }
    return given * 4 < asked;
}

/* What the work item before that of a first tile ended with: its case and last kv tile. false: the sample does not show
   it. */
static bool item_before(const struct search *search, const struct sample_tile *t, const struct oracle_case **c, int *kv)
{
    int i = 0;
    while (i < t->c->n_visited && t->c->order[i] != t->kv)
        i++;
    const struct sample_tile *before = i > 0 ? t : q_tile_beside(search, t, -1);
    *c = before ? before->c : NULL;
    if (!before || i == t->c->n_visited || (i == 0 && (*c)->n_visited == 0))
        return false;
    *kv = (*c)->order[i > 0 ? i - 1 : (*c)->n_visited - 1];
    return true;
}

/* Element (r, col) of a state that was captured; NaN: it was not. */
static double left_there(const struct matrix *x, int r, int col)
{
    return x->data && r < x->rows ? dtype_load(x->dtype, x->data, (size_t)(r * x->row_stride + col)) : NAN;
}

/* Nothing of it is wrong: as it is where an item is a block's first. */
static bool is_right(const struct sample_tile *t)
{
    for (size_t i = 0; i < sample_cells(t); i++)
        if (t->cell[i] == CELL_WRONG)
            return false;
    return true;
}

/* At the first tile of a work item m_prev, l_prev and u_prev are what the item before has left. */
bool carried_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                     double *bound)
{
    (void)rule;
    const struct oracle_case *c = NULL;
    const size_t R = query_rows(t), D = (size_t)t->c->head_dim_v;
    double *m = search->rows[1], *l = search->rows[2], *u = search->operand;
    struct operands x = t->x;
    int kv = 0;
    if (t->c->fed || t->c->conventions.u_phase == ASC_U_RESCALED)
        return false;
    memcpy(want, t->want, sample_cells(t) * sizeof *want);
    memcpy(bound, t->bound, sample_cells(t) * sizeof *bound);
    if (t->turn > 0 || is_right(t))
        return true;
    const bool known = item_before(search, t, &c, &kv);
    for (size_t r = 0; r < R; r++) {
        const struct matrix *at = known ? &c->captured[(ptrdiff_t)kv * ASC_CHANNELS] : NULL;
        m[r] = at ? left_there(&at[asc_m], (int)r, 0) : NAN;
        l[r] = at ? 0 : NAN;
        for (int lane = 0; at && lane < (at[asc_l].data ? at[asc_l].cols : 1); lane++)
            l[r] += left_there(&at[asc_l], (int)r, lane);
        for (size_t d = 0; d < D; d++)
            u[r * D + d] = at ? left_there(&at[asc_u], (int)r, (int)d) : NAN;
    }
    x.m_prev = (struct operand){m, search->sample->zero, true};
    x.l_prev = (struct operand){l, search->sample->zero, true};
    x.u_prev = (struct operand){u, search->sample->zero, true};
    search_formula(search, t, &x, want, bound);
    for (size_t i = 0; i < sample_cells(t); i++)
        bound[i] = isnan(want[i]) ? INFINITY : bound[i];
    return true;
}
