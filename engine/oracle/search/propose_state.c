/* Row vectors: solved for in closed form from what was captured, then looked up among those that the kernel has. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/search/constant.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/values.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1024 };

/* What an operand would have to be, [tiles][rows of the tile]; NaN: nothing follows. off: relative to 1 + |x|. */
struct solved {
    double *x; /* [tiles][ROWS_MOST] */
    double off;
};

static double *solved_row(const struct solved *v, int tile)
{
    return v->x + (size_t)tile * ROWS_MOST;
}

static bool near(double x, double y, double off)
{
    return fabs(x - y) <= off * (1 + fabs(x));
}

static int rows_in(const struct sample_tile *t)
{
    return t->c->in_q.rows < ROWS_MOST ? t->c->in_q.rows : ROWS_MOST;
}

/* Known rows, and of these how many an entry has, as it is or with a constant added or multiplied. */
struct matches {
    size_t known, same;
    double *differences, *ratios; /* [known] */
};

static void match_tile(const struct search *search, const struct solved *v, int tile, enum entry entry,
                       struct matches *m)
{
    const struct sample_tile *t = &search->sample->tiles[tile];
    const double *x = solved_row(v, tile);
    double *e = search->rows[0];
    const bool has = entry_value(search->sample, t, entry, e);
    for (int r = 0; r < rows_in(t); r++) {
        if (isnan(x[r]))
            continue;
        if (has && isfinite(e[r])) {
            m->same += near(x[r], e[r], v->off);
            m->differences[m->known] = x[r] - e[r];
            m->ratios[m->known] = e[r] != 0 ? x[r] / e[r] : NAN;
        } else {
            m->differences[m->known] = m->ratios[m->known] = NAN;
        }
        m->known++;
    }
}

/* The median of what is a number, and whether nine of ten lie around it. */
static bool agreed(double *x, size_t n, double off, double *value)
{
    size_t finite = 0, around = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            x[finite++] = x[i];
    *value = median(x, finite);
    for (size_t i = 0; i < finite; i++)
        around += near(x[i], *value, off);
    return finite > 0 && around * 10 >= n * 9;
}

static double entry_bits(void)
{
    return log2(ENTRIES);
}

static void try_constant(struct search *search, struct rule rule, double x, double off, bool factor)
{
    const double none = factor ? 1 : 0;
    double known = 0, bits = CONSTANT_UNKNOWN_BITS;
    if (near(x, none, off))
        return;
    if (constant_near(search->sample->tiles[0].c, x, off * (1 + fabs(x)), &known, &bits, NULL))
        x = known;
    *(factor ? &rule.factor : &rule.plus) = x;
    rule.cost += bits;
    rule_try(search, &rule);
}

/* The result cannot be made of itself, but of that of another row. */
static bool is_result(const struct search *search, enum entry entry)
{
    const enum asc_channel ch = search->sample->channel;
    return (entry == ENTRY_M && ch == asc_m) || (entry == ENTRY_ALPHA && ch == asc_alpha) ||
           (entry == ENTRY_L && ch == asc_l);
}

/* The rows whose entry is the one that stands here. */
static size_t pair_rows(const struct search *search, const struct solved *v, enum entry entry, struct pair *pairs,
                        size_t most, size_t *known, int *count)
{
    size_t n = 0;
    *known = 0;
    *count = 0;
    for (int k = 0; k < search->sample->n; k++) {
        const struct sample_tile *t = &search->sample->tiles[k];
        const double *x = solved_row(v, k);
        double *e = search->rows[0];
        if (!entry_value(search->sample, t, entry, e))
            continue;
        *count = t->c->br > *count ? t->c->br : *count;
        for (int r = 0; r < rows_in(t) && n < most; r++) {
            int found = -1;
            if (isnan(x[r]))
                continue;
            ++*known;
            for (int from = 0; from < rows_in(t); from++)
                if (near(x[r], e[from], v->off) && (from != r || !is_result(search, entry)))
                    found = found < 0 ? from : -2;
            if (found >= 0)
                pairs[n++] = (struct pair){r, found};
        }
    }
    return n;
}

static void try_moved(struct search *search, struct rule rule, double cost, const struct map *map)
{
    rule.map = *map;
    rule.cost += cost;
    if (cost < INFINITY && map->kind != MAP_SAME)
        rule_try(search, &rule);
}

static void identify_moved(struct search *search, const struct solved *v, struct rule rule, enum entry entry)
{
    enum { PAIRS = 512, LEAST = 8, CLASSES = 5 };
    struct pair pairs[PAIRS];
    size_t known = 0;
    int count = 0;
    if (entry == ENTRY_ZERO || entry == ENTRY_ONE)
        return;
    const size_t n = pair_rows(search, v, entry, pairs, PAIRS, &known, &count);
    if (n < LEAST || n * 8 < known)
        return;
    struct map tried;
    try_moved(search, rule, map_fit(pairs, n, count, &tried), &tried);
    /* Rows that share a lane or a place may have maps of their own. */
    for (int k = 0; k < 2 * CLASSES && search->best.kind == RULE_NONE; k++) {
        struct pair own[PAIRS];
        struct map map;
        size_t m = 0;
        for (size_t i = 0; i < n; i++)
            if ((pairs[i].from >> k / 2 & 1) == k % 2)
                own[m++] = pairs[i];
        const double cost = m >= LEAST && m < n ? 1 + map_fit(own, m, count, &map) : INFINITY;
        if (cost < INFINITY && !map_equals(&map, &tried))
            try_moved(search, rule, cost, &map);
        tried = cost < INFINITY ? map : tried;
    }
}

/* Looks up what was solved for among the row vectors of the kernel. `rule` says what they would replace. */
static void identify(struct search *search, const struct solved *v, struct rule rule)
{
    const struct sample *s = search->sample;
    double *room = search_room(search, 2 * (size_t)s->n * ROWS_MOST * sizeof *room);
    if (!room)
        return;
    const double cost = rule.cost + entry_bits();
    for (int entry = 0; entry < ENTRIES; entry++) {
        struct matches m = {.differences = room, .ratios = room + (size_t)s->n * ROWS_MOST};
        double plus = 0, factor = 0;
        for (int k = 0; k < s->n; k++)
            match_tile(search, v, k, (enum entry)entry, &m);
        if (m.known == 0)
            break;
        if (rule.kind == RULE_RESULT && (entry == ENTRY_ONE || entry == ENTRY_ZERO))
            continue;
        const bool is_m = rule.kind == RULE_VECTOR && rule.slot == SLOT_M; /* an edited m stands for m alone */
        if (!is_m && (entry == ENTRY_M_FLOOR || entry == ENTRY_M_SIZE))
            continue;
        rule.entry = (enum entry)entry;
        rule.cost = cost;
        if (is_result(search, rule.entry)) {
            if (rule.kind == RULE_VECTOR)
                identify_moved(search, v, rule, rule.entry);
            continue;
        }
        if (m.same * 10 >= m.known * 3) {
            rule_try(search, &rule);
            if (search->best.kind != RULE_NONE)
                continue;
        }
        if (agreed(m.differences, m.known, v->off, &plus))
            try_constant(search, rule, plus, v->off, false);
        if (entry != ENTRY_ONE && agreed(m.ratios, m.known, v->off, &factor))
            try_constant(search, rule, factor, v->off, true);
        identify_moved(search, v, rule, (enum entry)entry);
    }
}

typedef double solver(const struct sample_tile *t, int r);

static void solve_and_identify(struct search *search, enum rule_kind kind, enum vector_slot slot, double power,
                               double off, solver *solve)
{
    const struct sample *s = search->sample;
    struct solved v = {search_room(search, (size_t)s->n * ROWS_MOST * sizeof(double)), off};
    struct rule rule = rule_new(kind);
    if (!v.x)
        return;
    for (int k = 0; k < s->n; k++)
        for (int r = 0; r < ROWS_MOST; r++)
            solved_row(&v, k)[r] = r < rows_in(&s->tiles[k]) ? solve(&s->tiles[k], r) : NAN;
    rule.slot = slot;
    rule.power = power;
    rule.cost = 3;
    identify(search, &v, rule);
}

/* One number of a row from the wrong elements of it: the median. each(t, i) is NaN where nothing follows. */
static double of_row(const struct sample_tile *t, int r, double (*each)(const struct sample_tile *t, size_t i))
{
    enum { MOST = 256 };
    double x[MOST];
    size_t n = 0;
    if (r >= t->rows)
        return NAN;
    for (int col = 0; col < t->cols && n < MOST; col++) {
        const size_t i = (size_t)r * (size_t)t->cols + (size_t)col;
        if (!is_wrong_number(t, i))
            continue;
        const double value = each(t, i);
        if (isfinite(value))
            x[n++] = value;
    }
    return median(x, n);
}

static double m_of_weight(const struct sample_tile *t, size_t i)
{
    const double s = t->x.s.value[i], p = t->got[i] / bound_p_factor(t->c);
    /* Where P is near the end of its type little of m is left in it. */
    return p > 64 * t->bound[i] && isfinite(s) ? (s * t->x.s_natural - log(p)) / values_natural_m(t->c) : NAN;
}

static double solve_m_of_p(const struct sample_tile *t, int r)
{
    return of_row(t, r, m_of_weight);
}

static double solve_result(const struct sample_tile *t, int r)
{
    return r < t->rows && is_wrong_number(t, (size_t)r * (size_t)t->cols) ? t->got[(size_t)r * (size_t)t->cols] : NAN;
}

/* What is above all scores of the tile was there before it. */
static double solve_m_prev(const struct sample_tile *t, int r)
{
    const double factor = t->x.s_direct ? 1 : t->x.s_natural / values_natural_m(t->c), m = solve_result(t, r);
    for (int col = 0; col < t->x.cols; col++)
        if (!(m > t->x.s.value[r * t->x.cols + col] * factor + 1e-6 * (1 + fabs(m))))
            return NAN;
    return m;
}

static double ratio_of(const struct sample_tile *t, size_t i)
{
    return fabs(t->want[i]) > 64 * t->bound[i] ? t->got[i] / t->want[i] : NAN;
}

static double solve_ratio(const struct sample_tile *t, int r)
{
    return of_row(t, r, ratio_of);
}

static double solve_reciprocal(const struct sample_tile *t, int r)
{
    return 1 / of_row(t, r, ratio_of);
}

static double solve_m_prev_of_alpha(const struct sample_tile *t, int r)
{
    const double alpha = solve_result(t, r);
    return alpha > 0 ? t->x.of[asc_m].value[r] + log(alpha) / values_natural_m(t->c) : NAN;
}

static double solve_m_of_alpha(const struct sample_tile *t, int r)
{
    const double alpha = solve_result(t, r);
    return alpha > 0 ? t->x.m_prev.value[r] - log(alpha) / values_natural_m(t->c) : NAN;
}

static double solve_alpha_of_l(const struct sample_tile *t, int r)
{
    const double l = solve_result(t, r), before = t->x.l_prev.value[r];
    return before > 0 ? t->x.of[asc_alpha].value[r] + (l - t->want[r]) / before : NAN;
}

static double solve_l_prev(const struct sample_tile *t, int r)
{
    const double l = solve_result(t, r), alpha = t->x.of[asc_alpha].value[r];
    return alpha > 0 ? t->x.l_prev.value[r] + (l - t->want[r]) / alpha : NAN;
}

/* By projection on the wrong elements: (u - p v) . u_prev / u_prev . u_prev. */
static double solve_alpha_of_u(const struct sample_tile *t, int r)
{
    double dot = 0, size = 0;
    if (t->next_alpha || r >= t->rows)
        return NAN;
    for (int col = 0; col < t->cols; col++) {
        const size_t i = (size_t)r * (size_t)t->cols + (size_t)col;
        const double before = t->x.u_prev.value[i];
        if (!is_wrong_number(t, i) || !isfinite(before))
            continue;
        dot += (t->got[i] - t->want[i]) * before;
        size += before * before;
    }
    return size > 0 ? t->x.of[asc_alpha].value[r] + dot / size : NAN;
}

static double l_of_output(const struct sample_tile *t, size_t i)
{
    return fabs(t->want[i]) > 64 * t->bound[i] && t->got[i] != 0 ? t->want[i] / t->got[i] : NAN;
}

static double solve_l_of_o(const struct sample_tile *t, int r)
{
    return of_row(t, r, l_of_output) * t->x.l_prev.value[r];
}

static double natural_lse(const struct sample_tile *t, int r)
{
    return solve_result(t, r) / (t->c->conventions.lse_base2 ? M_LOG2E : 1) + bound_ln_factor(t->c);
}

static double solve_m_of_lse(const struct sample_tile *t, int r)
{
    const double l = t->x.l_prev.value[r];
    return l > 0 ? (natural_lse(t, r) - log(l)) / values_natural_m(t->c) : NAN;
}

static double solve_l_of_lse(const struct sample_tile *t, int r)
{
    return exp(natural_lse(t, r) - t->x.m_prev.value[r] * values_natural_m(t->c));
}

/* Of alpha old + new: each with the coefficients that people write instead. */
static void propose_terms(struct search *search)
{
    static const struct {
        double factor, power;
    } old[] = {{1, 1}, {0, 0}, {1, 0}, {1, 2}, {1, -1}, {2, 1}}, new[] = {{1, 0}, {0, 0}, {1, 1}, {1, -1}, {2, 0}};
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
        for (size_t k = 0; k < sizeof new / sizeof new[0]; k++) {
            struct rule rule = rule_new(RULE_TERMS);
            if (i == 0 && k == 0)
                continue;
            rule.old_factor = old[i].factor;
            rule.old_power = old[i].power;
            rule.new_factor = new[k].factor;
            rule.new_power = new[k].power;
            rule.cost = 5;
            rule_try(search, &rule);
        }
    }
}

/* Normal equations of two factors and a constant. */
struct three {
    double a[9], b[3];
    size_t n;
};

static void add_equation(struct three *e, double x, double y, double value)
{
    const double row[3] = {x, y, 1};
    for (int i = 0; i < 3; i++) {
        e->b[i] += row[i] * value;
        for (int k = 0; k < 3; k++)
            e->a[i * 3 + k] += row[i] * row[k];
    }
    e->n++;
}

void take_known(const struct search *search, double *x, double none, double *cost)
{
    double known = 0, bits = CONSTANT_UNKNOWN_BITS;
    const double off = 2e-5 * (1 + fabs(*x));
    if (near(*x, none, 2e-5)) {
        *x = none;
        return;
    }
    if (near(*x, 0, 2e-5)) {
        *x = 0;
        *cost += 3;
        return;
    }
    if (constant_near(search->sample->tiles[0].c, *x, off, &known, &bits, NULL))
        *x = known;
    *cost += bits;
}

/* Factors that the rows do not tell apart, as where all have the same m, are none. */
static void try_three(struct search *search, struct three *e, enum rule_kind kind, double plus)
{
    enum { LEAST = 12 };
    unsigned char known[3];
    if (e->n < LEAST)
        return;
    solve_symmetric(e->a, e->b, 3, 1, known);
    if (!known[0] || !known[1] || !known[2])
        return;
    struct rule rule = rule_new(kind);
    rule.factor = e->b[0];
    rule.power = e->b[1];
    rule.plus = e->b[2] + plus;
    rule.cost = 3;
    take_known(search, &rule.factor, 1, &rule.cost);
    take_known(search, &rule.power, 1, &rule.cost);
    take_known(search, &rule.plus, 0, &rule.cost);
    rule_try(search, &rule);
}

/* The two terms with factors that people do not write, but that follow from what they do: as many lanes' sums. */
static void propose_coefficients(struct search *search)
{
    const struct sample *s = search->sample;
    struct three e = {0};
    double largest = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const double *alpha = t->x.of[asc_alpha].value;
        const double *old = s->channel == asc_l ? t->x.l_prev.value : t->x.u_prev.value;
        for (size_t i = 0; alpha && old && !t->next_alpha && i < sample_cells(t); i++) {
            const double before = alpha[i / (size_t)t->cols] * old[i];
            if (!is_wrong_number(t, i) || !isfinite(before))
                continue;
            add_equation(&e, before, t->want[i] - before, t->got[i]);
            largest = fmax(largest, fabs(t->got[i]));
        }
    }
    unsigned char known[3];
    if (e.n < 64)
        return;
    solve_symmetric(e.a, e.b, 3, 1, known);
    struct rule rule = rule_new(RULE_TERMS);
    if (!known[0] || !known[1] || fabs(e.b[2]) > 1e-4 * largest)
        return;
    rule.old_factor = e.b[0];
    rule.new_factor = e.b[1];
    rule.new_power = 0;
    rule.cost = 5;
    take_known(search, &rule.old_factor, 1, &rule.cost);
    take_known(search, &rule.new_factor, 1, &rule.cost);
    rule_try(search, &rule);
}

/* ln of the captured value = a score (or m_prev) - b m + c. */
static void propose_exponent(struct search *search)
{
    const struct sample *s = search->sample;
    const bool is_p = s->channel == asc_p;
    struct three e = {0};
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (size_t i = 0; i < sample_cells(t); i++) {
            const size_t r = i / (size_t)t->cols;
            const double score =
                is_p ? t->x.s.value[i] * t->x.s_natural : t->x.m_prev.value[i] * values_natural_m(t->c);
            const double m = t->x.of[asc_m].value[r] * values_natural_m(t->c);
            const double p = t->got[i] / (is_p ? bound_p_factor(t->c) : 1);
            if (is_wrong_number(t, i) && p > 256 * t->bound[i] && isfinite(score) && isfinite(m))
                add_equation(&e, score, -m, log(p));
        }
    }
    try_three(search, &e, RULE_EXPONENT, 0);
}

/* LSE = a m + b ln l + c. */
static void propose_logarithm(struct search *search)
{
    const struct sample *s = search->sample;
    const double unit = s->tiles[0].c->conventions.lse_base2 ? M_LOG2E : 1;
    struct three e = {0};
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (int r = 0; r < t->rows; r++) {
            const double m = t->x.m_prev.value[r] * values_natural_m(t->c), l = t->x.l_prev.value[r];
            if (is_wrong_number(t, (size_t)r) && isfinite(m) && l > 0)
                add_equation(&e, m * unit, log(l) * unit, t->got[r]);
        }
    }
    try_three(search, &e, RULE_LOGARITHM, bound_ln_factor(s->tiles[0].c) * unit);
}

/* A row vector that is kept in a narrow type, in its own unit or as the exponent takes it; or the reciprocal of l is.
 */
static void propose_narrow(struct search *search, enum vector_slot slot, enum entry entry)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const double natural = values_natural_m(c);
    const bool is_m = slot == SLOT_M || slot == SLOT_M_PREV, inverts = search->sample->channel == asc_o;
    const double units[] = {1, natural, natural * M_LOG2E};
    for (int type = 0; type < 2; type++)
        for (int i = 0; i < (is_m ? 3 : 1 + inverts); i++) {
            struct rule rule = rule_new(RULE_VECTOR);
            if (is_m && i && (units[i] == 1 || (i == 2 && units[2] == units[1])))
                continue;
            rule.slot = slot;
            rule.entry = entry;
            rule.type = type ? DTYPE_BF16 : DTYPE_F16;
            rule.weight = is_m ? units[i] : 1;
            rule.power = !is_m && i ? -1 : 1;
            rule.cost = 5;
            rule_try(search, &rule);
        }
}

/* An exponent is rounded to a narrow type, as it is or as that of a power of 2; then maybe the power as well. */
static void propose_narrow_exponent(struct search *search)
{
    for (int i = 0; i < 8; i++) {
        struct rule rule = rule_new(RULE_EXPONENT);
        rule.type = i & 1 ? DTYPE_BF16 : DTYPE_F16;
        rule.weight = i & 2 ? M_LOG2E : 1;
        rule.rounds_result = i & 4;
        rule.cost = 6;
        if (!rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
    }
}

/* The one row whose α or l an element of U or O has met; -1: none, or several. */
static int row_met(const struct sample_tile *t, bool is_u, size_t i)
{
    const double *x = is_u ? t->x.of[asc_alpha].value : t->x.l_prev.value;
    const size_t r = i / (size_t)t->cols;
    const double before = is_u ? t->x.u_prev.value[i] : t->got[i];
    const double met = is_u ? x[r] + (t->got[i] - t->want[i]) / before : t->want[i] * x[r] / before;
    double unit = 0, half_tiny = 0;
    int found = -1;
    bound_narrow(t->type, &unit, &half_tiny);
    const double off = (2 * t->bound[i] + unit * fabs(t->got[i])) / fabs(before) * (is_u ? 1 : x[r]) + 1e-6;
    for (int from = 0; from < rows_in(t); from++)
        if (fabs(x[from] - met) <= off)
            found = found == -1 ? from : -2;
    return found;
}

/* Elements of a fragment that are taken for those of other rows: which, by the bits of row and column. */
static void propose_dealt(struct search *search, enum vector_slot slot, enum entry entry)
{
    enum { PAIRS = 384, LEAST = 48 };
    const struct sample *s = search->sample;
    struct pair pairs[PAIRS];
    struct rule rule = rule_new(RULE_VECTOR);
    const size_t step = (s->wrong + s->right) / PAIRS | 1; /* odd: it comes to all columns */
    size_t n = 0, seen = 0;
    const int bits = map_bits_for(s->tiles[0].cols);
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        /* Those that are right say which bits stay. */
        for (size_t i = 0, all = wrong_cells(t) ? sample_cells(t) : 0; i < all && !t->next_alpha; i++) {
            if (t->cell[i] > CELL_WRONG || !isfinite(t->got[i]) || seen++ % step)
                continue;
            const int row = row_met(t, s->channel == asc_u, i), col = (int)(i % (size_t)t->cols);
            if (row >= 0 && n < PAIRS)
                pairs[n++] = (struct pair){(int)(i / (size_t)t->cols) << bits | col, row << bits | col};
        }
    }
    rule.slot = slot;
    rule.entry = entry;
    rule.keys.a = bits;
    rule.cost = n < LEAST ? INFINITY : 4 + map_fit(pairs, n, s->tiles[0].c->br << bits, &rule.map);
    if (rule.cost < INFINITY && rule.map.kind == MAP_BITS)
        rule_try(search, &rule);
}

void propose_state(struct search *search)
{
    switch (search->sample->channel) {
    case asc_m:
        solve_and_identify(search, RULE_IS, SLOT_M, 1, 1e-6, solve_result);
        solve_and_identify(search, RULE_VECTOR, SLOT_M_PREV, 1, 1e-6, solve_m_prev);
        break;
    case asc_alpha:
        solve_and_identify(search, RULE_IS, SLOT_ALPHA, 1, 1e-6, solve_result);
        solve_and_identify(search, RULE_VECTOR, SLOT_M_PREV, 1, 2e-5, solve_m_prev_of_alpha);
        solve_and_identify(search, RULE_VECTOR, SLOT_M, 1, 2e-5, solve_m_of_alpha);
        propose_exponent(search);
        propose_narrow_exponent(search);
        propose_narrow(search, SLOT_M_PREV, ENTRY_M_PREV);
        propose_narrow(search, SLOT_M, ENTRY_M);
        break;
    case asc_p:
        solve_and_identify(search, RULE_VECTOR, SLOT_M, 1, 2e-5, solve_m_of_p);
        solve_and_identify(search, RULE_RESULT, SLOT_SUM, 1, 2e-5, solve_ratio);
        propose_exponent(search);
        propose_narrow_exponent(search);
        propose_narrow(search, SLOT_M, ENTRY_M);
        break;
    case asc_l:
        propose_terms(search);
        propose_coefficients(search);
        solve_and_identify(search, RULE_VECTOR, SLOT_ALPHA, 1, 2e-5, solve_alpha_of_l);
        solve_and_identify(search, RULE_VECTOR, SLOT_L, 1, 2e-5, solve_l_prev);
        solve_and_identify(search, RULE_IS, SLOT_L, 1, 2e-5, solve_result);
        propose_narrow(search, SLOT_ALPHA, ENTRY_ALPHA);
        propose_narrow(search, SLOT_L, ENTRY_L_PREV);
        break;
    case asc_u:
        propose_terms(search);
        propose_coefficients(search);
        solve_and_identify(search, RULE_VECTOR, SLOT_ALPHA, 1, 1e-4, solve_alpha_of_u);
        solve_and_identify(search, RULE_RESULT, SLOT_SUM, 1, 2e-5, solve_ratio);
        solve_and_identify(search, RULE_RESULT, SLOT_SUM, -1, 2e-5, solve_reciprocal);
        propose_narrow(search, SLOT_ALPHA, ENTRY_ALPHA);
        propose_dealt(search, SLOT_ALPHA, ENTRY_ALPHA);
        break;
    case asc_o:
        solve_and_identify(search, RULE_VECTOR, SLOT_L, 1, 2e-3, solve_l_of_o);
        solve_and_identify(search, RULE_RESULT, SLOT_SUM, 1, 2e-3, solve_ratio);
        solve_and_identify(search, RULE_RESULT, SLOT_SUM, -1, 2e-3, solve_reciprocal);
        propose_narrow(search, SLOT_L, ENTRY_L);
        propose_dealt(search, SLOT_L, ENTRY_L);
        break;
    case asc_lse:
        propose_logarithm(search);
        solve_and_identify(search, RULE_VECTOR, SLOT_M, 1, 1e-5, solve_m_of_lse);
        solve_and_identify(search, RULE_VECTOR, SLOT_L, 1, 1e-4, solve_l_of_lse);
        solve_and_identify(search, RULE_IS, SLOT_L, 1, 1e-5, solve_result);
        propose_narrow(search, SLOT_M, ENTRY_M);
        propose_narrow(search, SLOT_L, ENTRY_L);
        break;
    default:
        break;
    }
}
