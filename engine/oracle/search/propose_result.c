#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/element.h"
#include "engine/oracle/search/constant.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/values.h"
#include <stdlib.h>
#include <string.h>

struct rule rule_new(enum rule_kind kind)
{
    return (struct rule){.kind = kind,
                         .entry = ENTRY_ONE,
                         .factor = 1,
                         .power = 1,
                         .old_power = 1,
                         .old_factor = 1,
                         .new_factor = 1,
                         .weight = 1,
                         .bias_of = BIAS_OWN,
                         .largest = -1,
                         .type = DTYPE_COUNT};
}

/* The value that more than half of the wrong elements have (Boyer and Moore), if one does. */
static double majority(const struct sample *s)
{
    double held = NAN;
    size_t votes = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (size_t i = 0; i < sample_cells(t); i++) {
            if (t->cell[i] != CELL_WRONG || isnan(t->got[i]))
                continue;
            if (votes == 0)
                held = t->got[i];
            votes = t->got[i] == held ? votes + 1 : votes ? votes - 1 : 0;
        }
    }
    return held;
}

static void propose_constant(struct search *search)
{
    struct rule rule = rule_new(RULE_CONSTANT);
    rule.plus = majority(search->sample);
    const bool plain = rule.plus == 0 || isinf(rule.plus) || fabs(rule.plus) == 1;
    double value = 0;
    if (isnan(rule.plus))
        return;
    rule.cost = 4;
    if (!plain && !constant_near(search->sample->tiles[0].c, rule.plus, 0, &value, &rule.cost, NULL))
        rule.cost = CONSTANT_UNKNOWN_BITS;
    rule_try(search, &rule);
}

void propose_masked(struct search *search)
{
    const struct sample *s = search->sample;
    struct rule rule = rule_new(RULE_CONSTANT);
    for (int k = 0; k < s->n && rule.plus == 0; k++)
        for (size_t i = 0; i < sample_cells(&s->tiles[k]) && rule.plus == 0; i++)
            if (s->tiles[k].cell[i] == CELL_WRONG && s->tiles[k].want[i] == -INFINITY)
                rule.plus = isnan(s->tiles[k].got[i]) ? 0 : s->tiles[k].got[i];
    rule.masked = true;
    rule.cost = rule.plus == 0 ? 5 : CONSTANT_UNKNOWN_BITS;
    rule_try(search, &rule);
}

void propose_unguarded(struct search *search)
{
    const struct sample *s = search->sample;
    struct rule rule = rule_new(RULE_UNGUARDED);
    bool any = false;
    for (int k = 0; k < s->n && !any; k++)
        for (size_t i = 0; i < sample_cells(&s->tiles[k]) && !any; i++)
            any = s->tiles[k].cell[i] == CELL_WRONG && isnan(s->tiles[k].got[i]);
    rule.cost = 2;
    if (any)
        rule_try(search, &rule);
}

/* got against want over wrong elements: ratios or differences, up to `most`, from all tiles alike. */
static size_t gather(const struct sample *s, bool ratios, double *out, size_t most)
{
    size_t n = 0, seen = 0;
    const size_t step = 1 + s->wrong / most;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (size_t i = 0; i < sample_cells(t); i++) {
            if (!is_wrong_number(t, i) || (ratios && fabs(t->want[i]) < 64 * t->bound[i]) || seen++ % step || n >= most)
                continue;
            out[n++] = ratios ? t->got[i] / t->want[i] : t->got[i] - t->want[i];
        }
    }
    return n;
}

enum { GATHERED = 4096 };

/* What a captured number leaves open of a ratio: the rounding to its type, and its bound. */
static double open_ratio(const struct sample *s)
{
    double unit = BOUND_U, half_tiny = 0;
    if (s->n)
        bound_narrow(s->tiles[0].type, &unit, &half_tiny);
    return 4 * fmax(unit, BOUND_U);
}

/* The factors that an element allows: what was captured may have been rounded to its type. */
static bool allows(const struct sample_tile *t, size_t i, double low_high[2])
{
    double unit = 0, half_tiny = 0;
    const double want = t->want[i], got = t->got[i];
    if (!is_wrong_number(t, i) || fabs(want) < 64 * t->bound[i])
        return false;
    int exponent = 0;
    frexp(got, &exponent);
    double off = t->bound[i] * fmax(1, fabs(got / want));
    if (bound_narrow(t->type, &unit, &half_tiny))
        off += fmax(ldexp(unit, exponent - 1), half_tiny); /* half a step at got */
    low_high[0] = fmin((got - off) / want, (got + off) / want);
    low_high[1] = fmax((got - off) / want, (got + off) / want);
    return true;
}

/* The middle of what all elements allow that can agree with those before them: the median of ratios of narrow types
   lies outside of what the most precise ones allow. */
static double refine(const struct sample *s, double factor, double off)
{
    double low = factor - 16 * off, high = factor + 16 * off;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (size_t i = 0; i < sample_cells(t); i++) {
            double own[2];
            if (!allows(t, i, own) || own[0] > high || own[1] < low)
                continue;
            low = fmax(low, own[0]);
            high = fmin(high, own[1]);
        }
    }
    return (low + high) / 2;
}

static void propose_factor(struct search *search, double *room)
{
    struct rule rule = rule_new(RULE_RESULT);
    const size_t n = gather(search->sample, true, room, GATHERED);
    const double middle = median(room, n), open = open_ratio(search->sample);
    if (n < 8 || !isfinite(middle) || middle == 0)
        return;
    const double factor = refine(search->sample, middle, open * fabs(middle));
    double known = 0;
    rule.factor = factor;
    rule.cost = CONSTANT_UNKNOWN_BITS;
    if (constant_near(search->sample->tiles[0].c, factor, open * fabs(factor), &known, &rule.cost, NULL) && known != 1)
        rule.factor = known;
    else
        rule.cost = CONSTANT_UNKNOWN_BITS;
    rule_try(search, &rule);
    /* A short accumulator truncates: the ratio is off by as much, and the bound allows for it. */
    if (rule.factor != known &&
        constant_near(search->sample->tiles[0].c, factor, 0x1p-10 * fabs(factor), &known, &rule.cost, NULL) &&
        known != 1) {
        rule.factor = known;
        rule_try(search, &rule);
    }
}

static void propose_plus(struct search *search, double *room)
{
    struct rule rule = rule_new(RULE_RESULT);
    const size_t n = gather(search->sample, false, room, GATHERED);
    double known = 0;
    rule.plus = median(room, n);
    rule.cost = CONSTANT_UNKNOWN_BITS;
    if (n < 8 || !isfinite(rule.plus) || rule.plus == 0)
        return;
    if (constant_near(search->sample->tiles[0].c, rule.plus, open_ratio(search->sample) * 8, &known, &rule.cost, NULL))
        rule.plus = known;
    rule_try(search, &rule);
}

static void propose_types(struct search *search)
{
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (int cuts = 0; cuts < 2; cuts++) {
            struct rule rule = rule_new(RULE_ROUNDED);
            if (types[i] == search->sample->tiles[0].type && !cuts)
                continue;
            rule.type = types[i];
            rule.cuts = cuts;
            rule.cost = 3;
            rule_try(search, &rule);
        }
    }
}

static void propose_limits(struct search *search)
{
    const double limits[] = {448, 57344, 65504, 127, fabs(majority(search->sample))};
    enum { LIMITS = sizeof limits / sizeof limits[0] };
    for (int i = 0; i < LIMITS; i++) {
        struct rule rule = rule_new(RULE_ROUNDED);
        rule.limit = limits[i];
        rule.cost = i < LIMITS - 1 ? 5 : CONSTANT_UNKNOWN_BITS;
        if (rule.limit > 0 && isfinite(rule.limit))
            rule_try(search, &rule);
    }
    /* An exponent that is held above a number: so is what masked keys weigh. */
    struct rule floor = rule_new(RULE_ROUNDED);
    floor.limit = -majority(search->sample);
    floor.cost = CONSTANT_UNKNOWN_BITS;
    if (search->sample->channel == asc_p && floor.limit < 0 && isfinite(floor.limit))
        rule_try(search, &floor);
}

static void propose_stale(struct search *search)
{
    const enum asc_channel ch = search->sample->channel;
    struct rule rule = rule_new(RULE_STALE), carried = rule_new(RULE_CARRIED);
    rule.cost = carried.cost = 3;
    rule_try(search, &rule);
    if (ch >= asc_m && ch <= asc_u && ch != asc_p)
        rule_try(search, &carried);
}

/* Registers of scores in which the weights of a row before stand: what is added to the sum is scaled with it. */
static void propose_weights_left(struct search *search, struct rule rule)
{
    const double scale = fabs(
        values_factor(search->sample->tiles[0].c->conventions.s_unit, codes_plain_scale(search->sample->tiles[0].c)));
    rule.turns = 0;
    rule.cost = 7;
    for (int by = 1; by < search->sample->tiles[0].rows; by *= 2)
        for (int scaled = 0; scaled < 2; scaled++) {
            rule.map = (struct map){.kind = MAP_PLUS, .a = -by};
            rule.factor = scaled ? scale : 1;
            rule_try(search, &rule);
        }
}

/* Accumulators that were not cleared between tiles, or between blocks of columns or rows. */
static void propose_added(struct search *search)
{
    const struct sample_tile *t = &search->sample->tiles[0];
    struct rule rule = rule_new(RULE_ADDED);
    rule.turns = -1;
    rule.cost = 4;
    rule_try(search, &rule);
    rule.of_tile = true;
    if (search->sample->channel == asc_u)
        rule_try(search, &rule);
    rule.of_tile = false;
    rule.rows.tensor = asc_p;
    if (search->sample->channel == asc_s) {
        rule_try(search, &rule);
        propose_weights_left(search, rule);
    }
    rule.rows.tensor = search->sample->channel;
    rule.turns = 0;
    rule.cost = 6;
    for (int by = 1; by < t->cols || by < t->rows; by *= 2) {
        rule.map = (struct map){.kind = MAP_SAME};
        rule.col_map = (struct map){.kind = MAP_PLUS, .a = -by};
        if (by < t->cols)
            rule_try(search, &rule);
        rule.map = rule.col_map;
        rule.col_map = (struct map){.kind = MAP_SAME};
        if (by < t->rows)
            rule_try(search, &rule);
    }
}

/* Where in the tile the wanted value stands that was captured here; -1: nowhere, or at two places. */
static int find_place(const struct sample *s, const struct sample_tile *t, size_t i)
{
    const double kept = kept_part(s, t, i);
    int found = -1;
    for (size_t k = 0; k < sample_cells(t); k++) {
        if (!isfinite(t->want[k]))
            continue;
        const double theirs = kept_part(s, t, k);
        if (!element_within(t->type, t->got[i], t->want[k] - theirs + kept,
                            t->bound[k] + BOUND_U * fabs(theirs + kept)))
            continue;
        if (found >= 0)
            return -1;
        found = (int)k;
    }
    return found;
}

static void add_pair(struct pair *pairs, size_t *n, size_t most, int from, int to)
{
    if (*n < most)
        pairs[(*n)++] = (struct pair){from, to};
}

static void propose_place(struct search *search)
{
    enum { PLACES = 192 };
    const struct sample *s = search->sample;
    struct pair rows[PLACES], cols[PLACES], both[PLACES];
    size_t n_rows = 0, n_cols = 0, seen = 0;
    const size_t step = 1 + s->wrong / PLACES;
    struct rule rule = rule_new(RULE_PLACE);
    int most_rows = 0, most_cols = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        most_rows = t->rows > most_rows ? t->rows : most_rows;
        most_cols = t->cols > most_cols ? t->cols : most_cols;
        for (size_t i = 0; i < sample_cells(t); i++) {
            if (!is_wrong_number(t, i) || t->got[i] == 0 || seen++ % step)
                continue;
            const int at = find_place(s, t, i);
            if (at < 0)
                continue;
            add_pair(rows, &n_rows, PLACES, (int)(i / (size_t)t->cols), at / t->cols);
            add_pair(cols, &n_cols, PLACES, (int)(i % (size_t)t->cols), at % t->cols);
        }
    }
    if (n_rows < 8)
        return;
    rule.cost = 2 + map_fit(rows, n_rows, most_rows, &rule.map) + map_fit(cols, n_cols, most_cols, &rule.col_map);
    if (rule.cost < INFINITY && (rule.map.kind != MAP_SAME || rule.col_map.kind != MAP_SAME)) {
        rule_try(search, &rule);
        return;
    }
    /* Rows and columns at once: what swizzles do. */
    const int bits = map_bits_for(most_cols);
    for (size_t i = 0; i < n_rows; i++)
        both[i] = (struct pair){(rows[i].from << bits) + cols[i].from, (rows[i].to << bits) + cols[i].to};
    rule.keys.a = bits;
    rule.cost = 4 + map_fit(both, n_rows, most_rows << bits, &rule.map);
    if (rule.cost < INFINITY && rule.map.kind == MAP_BITS)
        rule_try(search, &rule);
}

/* The row whose U the captured O of row r is a multiple of, the multiple in *by; -1: none, or several. */
static int row_multiplied(const struct sample_tile *t, int r, double *by)
{
    const double *got = t->got + (ptrdiff_t)r * t->cols;
    double unit = BOUND_U, half_tiny = 0;
    int largest = 0, found = -1;
    bound_narrow(t->type, &unit, &half_tiny);
    for (int d = 0; d < t->cols; d++) {
        if (!isfinite(got[d]) || t->cell[(ptrdiff_t)r * t->cols + d] > CELL_WRONG)
            return -1;
        largest = fabs(got[d]) > fabs(got[largest]) ? d : largest;
    }
    for (int from = 0; from < (int)query_rows(t) && got[largest] != 0; from++) {
        const double *u = t->x.u_prev.value + (ptrdiff_t)from * t->cols;
        const double first = got[largest] / u[largest];
        double dot = 0, size = 0;
        bool same = isfinite(first);
        for (int d = 0; d < t->cols && same; d++) {
            /* got[d] and got[largest] are each rounded, and u[d] / l once before that. */
            same = fabs(got[d] - first * u[d]) <= 2 * (unit + 4 * BOUND_U) * fabs(got[d]) + half_tiny;
            dot += got[d] * u[d];
            size += u[d] * u[d];
        }
        if (same && found >= 0)
            return -1;
        found = same ? from : found;
        *by = same ? dot / size : *by;
    }
    return found;
}

/* The row whose l that is, within what the outputs' type leaves; -1: none, or several. */
static int row_of_l(const struct sample_tile *t, double l)
{
    int found = -1;
    double unit = BOUND_U, half_tiny = 0;
    bound_narrow(t->type, &unit, &half_tiny);
    for (int from = 0; from < (int)query_rows(t); from++)
        if (fabs(t->x.l_prev.value[from] - l) <= 2 * (unit + 4 * BOUND_U) * l)
            found = found == -1 ? from : -2;
    return found;
}

/* Rows of U that are dealt otherwise where O is made of them, l being dealt in its own way: both by content. */
static void propose_quotient(struct search *search)
{
    enum { PAIRS = 512, LEAST = 16 };
    const struct sample *s = search->sample;
    struct pair of_u[PAIRS], of_l[PAIRS];
    size_t n_u = 0, n_l = 0;
    int rows = 0;
    if (s->channel != asc_o || s->tiles[0].c->kv_splits > 1)
        return;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const double times = codes_o_times(t->c);
        rows = t->c->br > rows ? t->c->br : rows;
        for (int r = 0; r < t->rows && t->any_wrong; r++) {
            double by = 0;
            const int u = row_multiplied(t, r, &by), l = u < 0 ? -1 : row_of_l(t, times / by);
            if (u >= 0)
                add_pair(of_u, &n_u, PAIRS, r, u);
            if (l >= 0)
                add_pair(of_l, &n_l, PAIRS, r, l);
        }
    }
    struct rule rule = rule_new(RULE_QUOTIENT);
    rule.cost = n_u < LEAST ? INFINITY : 5 + map_fit(of_u, n_u, rows, &rule.map);
    if (!(rule.cost < INFINITY) || rule.map.kind == MAP_SAME)
        return;
    rule_try(search, &rule);
    rule.cost += n_l < LEAST ? INFINITY : map_fit(of_l, n_l, rows, &rule.col_map);
    if (rule.cost < INFINITY && rule.col_map.kind != MAP_SAME && !map_equals(&rule.map, &rule.col_map))
        rule_try(search, &rule);
}

void propose_result(struct search *search)
{
    double *room = search_room(search, GATHERED * sizeof *room);
    if (!room)
        return;
    if (search_part(search))
        propose_constant(search);
    if (search_part(search))
        propose_factor(search, room);
    if (search_part(search))
        propose_plus(search, room);
}

void propose_displaced(struct search *search)
{
    if (search->sample->channel >= asc_s) {
        if (search_part(search))
            propose_stale(search);
        if (search_part(search))
            propose_added(search);
        if (search_part(search))
            propose_place(search);
        if (search_part(search))
            propose_quotient(search);
    }
    if (search_part(search))
        propose_limits(search);
    if (search_part(search))
        propose_types(search);
}
