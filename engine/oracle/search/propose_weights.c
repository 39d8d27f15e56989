/* Which keys, or elements of the dot product, count otherwise than once: least squares for their weights. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/multiply.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/values.h"
#include <stdlib.h>
#include <string.h>

/* Normal equations of n weights. */
struct equations {
    struct search *search;
    double *a, *b; /* [n][n], [n] */
    unsigned char *known;
    int n;
    size_t rows; /* equations in it */
};

static double *numbers(const struct equations *e, int rows, int cols)
{
    return search_room(e->search, (size_t)rows * (size_t)cols * sizeof(double));
}

static void add_row(struct equations *e, const double *row, double y)
{
    for (int i = 0; i < e->n; i++) {
        if (row[i] == 0)
            continue;
        e->b[i] += row[i] * y;
        for (int k = 0; k <= i; k++)
            e->a[(size_t)i * (size_t)e->n + (size_t)k] += row[i] * row[k];
    }
    e->rows++;
}

/* l - alpha l_prev = sum over keys of weight p. */
static void equations_of_l(const struct sample_tile *t, struct equations *e)
{
    double *row = numbers(e, 1, e->n);
    for (int r = 0; row && r < t->rows; r++) {
        double sum = 0;
        if (!is_wrong_number(t, (size_t)r))
            continue;
        memset(row, 0, (size_t)e->n * sizeof *row);
        memcpy(row, t->x.l_p.value + (size_t)r * (size_t)t->x.cols, (size_t)t->x.cols * sizeof *row);
        for (int i = 0; i < t->x.cols; i++)
            sum += row[i];
        add_row(e, row, t->got[r] - t->want[r] + sum);
    }
}

/* The sums of squares of a product X Y' in which each term k has a weight: (X'X) o (Y'Y), its right side the terms'
   products with what was captured. x: [rows][n], y: [cols][n]; z: [rows][cols]. */
static void add_products(struct equations *e, const double *x, int rows, const double *y, int cols, const double *z)
{
    const size_t n = (size_t)e->n;
    double *xx = numbers(e, 2 * e->n + rows, e->n);
    if (!xx || rows == 0)
        return;
    double *yy = xx + n * n, *zy = yy + n * n;
    for (int r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k <= i; k++)
                xx[i * n + k] += x[(size_t)r * n + i] * x[(size_t)r * n + k];
    for (int c = 0; c < cols; c++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k <= i; k++)
                yy[i * n + k] += y[(size_t)c * n + i] * y[(size_t)c * n + k];
    matrix_multiply(rows, (int)n, cols, 1, z, cols, y, (int)n, zy, 0);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i; k++)
            e->a[i * n + k] += xx[i * n + k] * yy[i * n + k];
        for (int r = 0; r < rows; r++)
            e->b[i] += x[(size_t)r * n + i] * zy[(size_t)r * n + i];
    }
    e->rows += (size_t)rows * (size_t)cols;
}

/* u - alpha u_prev = sum over keys of weight p v, over the rows in which all is wrong that can be. */
static void equations_of_u(const struct sample_tile *t, struct equations *e)
{
    const int C = t->x.cols, D = t->cols;
    int rows = 0;
    double *p = numbers(e, t->rows, e->n), *z = numbers(e, t->rows, D), *v = numbers(e, D, e->n);
    for (int r = 0; !e->search->failed && r < t->rows; r++) {
        size_t wrong = 0, numbers = 0;
        for (int d = 0; d < D; d++) {
            const size_t i = (size_t)r * (size_t)D + (size_t)d;
            wrong += t->cell[i] == CELL_WRONG;
            numbers += isfinite(t->got[i]) && isfinite(t->want[i]);
        }
        if (wrong * 2 < (size_t)D || numbers < (size_t)D)
            continue;
        memcpy(p + (size_t)rows * (size_t)e->n, t->x.pv_p.value + (size_t)r * (size_t)C, (size_t)C * sizeof *p);
        for (int d = 0; d < D; d++) {
            const size_t i = (size_t)r * (size_t)D + (size_t)d;
            z[(size_t)rows * (size_t)D + (size_t)d] = t->got[i] - t->x.of[asc_alpha].value[r] * t->x.u_prev.value[i];
        }
        rows++;
    }
    for (int d = 0; !e->search->failed && d < D; d++)
        for (int c = 0; c < C; c++)
            v[(size_t)d * (size_t)e->n + (size_t)c] =
                t->x.times_v * t->x.of[asc_v].value[(size_t)c * (size_t)D + (size_t)d];
    add_products(e, p, rows, v, D, z);
}

/* s = factor sum over d of weight q k, over rows that see all of the tile. */
static void equations_of_s(const struct sample_tile *t, struct equations *e)
{
    const int C = t->cols, D = e->n;
    const double factor = values_factor(t->c->conventions.s_unit, t->c->scale) / values_fold(t->c);
    int rows = 0;
    double *q = numbers(e, t->rows, D), *z = numbers(e, t->rows, C);
    for (int r = 0; !e->search->failed && r < t->rows; r++) {
        size_t wrong = 0, numbers = 0;
        for (int c = 0; c < C; c++) {
            const size_t i = (size_t)r * (size_t)C + (size_t)c;
            wrong += t->cell[i] == CELL_WRONG;
            numbers += isfinite(t->got[i]) && isfinite(t->want[i]);
        }
        if (wrong * 2 < (size_t)C || numbers < (size_t)C)
            continue;
        for (int d = 0; d < D; d++)
            q[(size_t)rows * (size_t)D + (size_t)d] = factor * t->x.of[asc_q].value[(size_t)r * (size_t)D + (size_t)d];
        for (int c = 0; c < C; c++) {
            const size_t i = (size_t)r * (size_t)C + (size_t)c;
            double right = 0;
            for (int d = 0; d < D; d++)
                right +=
                    q[(size_t)rows * (size_t)D + (size_t)d] * t->x.of[asc_k].value[(size_t)c * (size_t)D + (size_t)d];
            /* What the right score has beside the product, a bias, is in the captured one too. */
            z[(size_t)rows * (size_t)C + (size_t)c] = t->got[i] - (t->want[i] - right);
        }
        rows++;
    }
    add_products(e, q, rows, t->x.of[asc_k].value, C, z);
}

/* The weights that are not 1: all 0, or all one other number that is a multiple of 1/2. */
static void take_weights(struct search *search, struct equations *e)
{
    uint8_t *sides = search_room(search, 2 * (size_t)e->n);
    double weight = NAN;
    struct rule rule = rule_new(RULE_KEYS);
    bool whole = true;
    if (!sides || e->rows < 2 * (size_t)e->n)
        return;
    for (int i = 0; i < e->n; i++)
        sides[i] = e->a[(size_t)i * (size_t)e->n + (size_t)i] > 0;
    solve_symmetric(e->a, e->b, e->n, 1, e->known);
    for (int i = 0; i < e->n && whole; i++) {
        const double w = e->b[i], near = rint(2 * w) / 2;
        /* Two keys whose weights are alike in all rows share what either counts for. */
        whole = !sides[i] || e->known[i];
        sides[i] = 0;
        if (!e->known[i])
            continue;
        whole = whole && fabs(w - near) < 0.05;
        if (near == 1) {
            sides[e->n + i] = 1;
        } else {
            whole = whole && (isnan(weight) || weight == near);
            weight = near;
            sides[i] = 1;
        }
    }
    rule.keys.axis = AXIS_COL;
    if (whole && !isnan(weight)) {
        rule.cost = 3 + term_fit(sides, sides + e->n, e->n, &rule.keys);
        rule.weight = weight;
        if (rule.cost < INFINITY && rule.keys.condition != EVERY)
            rule_try(search, &rule);
    }
}

static void propose_sum(struct search *search)
{
    const struct sample *s = search->sample;
    struct equations e = {.search = search, .n = s->channel == asc_s ? s->tiles[0].c->head_dim : s->tiles[0].c->bc};
    e.a = numbers(&e, e.n, e.n);
    e.b = numbers(&e, 1, e.n);
    e.known = search_room(search, (size_t)e.n);
    for (int k = 0; k < s->n && !search->failed; k++) {
        const struct sample_tile *t = &s->tiles[k];
        if (s->channel == asc_l)
            equations_of_l(t, &e);
        else if (s->channel == asc_u && !t->next_alpha)
            equations_of_u(t, &e);
        else if (s->channel == asc_s && !t->x.scales_s)
            equations_of_s(t, &e);
    }
    if (!search->failed)
        take_weights(search, &e);
}

/* A maximum that is too low has left out every score above it, and has taken in the one that it is. */
static void propose_part(struct search *search)
{
    const struct sample *s = search->sample;
    const int n = s->tiles[0].c->bc;
    uint8_t *sides = search_room(search, 2 * (size_t)n);
    struct rule rule = rule_new(RULE_KEYS);
    for (int k = 0; k < s->n && sides; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const double factor = t->x.s_direct ? 1 : t->x.s_natural / values_natural_m(t->c);
        for (int r = 0; r < t->rows; r++) {
            if (!is_wrong_number(t, (size_t)r) || t->got[r] > t->want[r])
                continue;
            for (int col = 0; col < t->x.cols; col++) {
                const double score = t->x.s.value[(size_t)r * (size_t)t->x.cols + (size_t)col] * factor;
                const double off = 1e-6 * (1 + fabs(score));
                if (score > t->got[r] + off)
                    sides[col] = 1;
                else if (score > t->got[r] - off)
                    sides[n + col] = 1;
            }
        }
    }
    rule.keys.axis = AXIS_COL;
    rule.weight = 0;
    int told = 0;
    for (int i = 0; i < n && sides; i++)
        told += sides[i] || sides[n + i];
    /* Of a column that no row asks, either is as good. */
    if (sides && told * 2 >= n)
        rule.cost = 3 + term_fit(sides, sides + n, n, &rule.keys);
    if (rule.cost > 0 && rule.cost < INFINITY && rule.keys.condition != EVERY)
        rule_try(search, &rule);
}

/* P' of u - alpha u_prev = P' V, row by row, where V has as many columns as keys at least. */
static bool solve_p(struct search *search, const struct sample_tile *t, double *p)
{
    const int C = t->x.cols, D = t->cols, R = t->rows;
    double *a = search_room(search, (size_t)C * (size_t)C * sizeof *a);
    unsigned char *known = search_room(search, (size_t)C);
    const double *v = t->x.of[asc_v].value;
    bool made = a && known && D >= C && !t->next_alpha;
    for (int i = 0; i < C && made; i++) {
        for (int k = 0; k <= i; k++)
            for (int d = 0; d < D; d++)
                a[i * C + k] += v[i * D + d] * v[k * D + d];
        for (int r = 0; r < R; r++) {
            double sum = 0;
            for (int d = 0; d < D; d++)
                sum += v[i * D + d] * (t->got[r * D + d] - t->x.of[asc_alpha].value[r] * t->x.u_prev.value[r * D + d]);
            p[i * R + r] = sum / t->x.times_v;
        }
    }
    if (made)
        solve_symmetric(a, p, C, R, known);
    for (int i = 0; i < C && made; i++)
        made = known[i];
    return made;
}

/* The place of the one weight that is this number, as far as the next best is ten times as far away; -1: none. */
static int find_weight(const struct sample_tile *t, double x)
{
    double best = INFINITY, next = INFINITY;
    int found = -1;
    for (int i = 0; i < t->rows * t->x.cols; i++) {
        const double off = fabs(t->x.pv_p.value[i] - x);
        if (off < best) {
            next = best;
            best = off;
            found = i;
        } else if (off < next) {
            next = off;
        }
    }
    return best * 10 < next && best < 1e-2 * fabs(x) ? found : -1;
}

/* Rows of P that are stored at one pitch and read at another, that of Q, K and V maybe: of all rows, or of those of a
   warp. */
static void propose_pitch(struct search *search, struct rule rule, const struct pair *pairs, size_t n)
{
    const int keys = 1 << rule.keys.a, dims = search->sample->tiles[0].c->head_dim;
    const int pitches[] = {keys,     keys + 8, keys + 4, keys + 2, keys + 1, keys + 16,
                           2 * keys, dims,     dims + 8, dims + 4, dims + 2, dims + 16};
    enum { PITCHES = sizeof pitches / sizeof pitches[0] };
    rule.cost = 12;
    for (int i = 0; i < PITCHES * PITCHES; i++)
        for (int rows = 8; rows <= search->sample->tiles[0].c->br; rows *= 2) {
            size_t met = 0;
            rule.map = (struct map){.kind = MAP_PITCH, .a = pitches[i / PITCHES], .b = pitches[i % PITCHES]};
            rule.keys.b = rows;
            for (size_t k = 0; k < n; k++)
                met += weight_from(&rule, pairs[k].from / keys, pairs[k].from % keys) == pairs[k].to;
            if (rule.map.a != rule.map.b && met * 2 > n)
                rule_try(search, &rule);
        }
}

/* Whether weights at other places make the difference between what was captured and what is wanted: of a few elements
   of the eight rows from `first` on. */
static bool makes_difference(const struct sample_tile *t, const struct rule *rule, int first)
{
    enum { ROWS = 8, COLS = 4 };
    const int C = t->x.cols, D = t->cols, keys = 1 << rule->keys.a;
    int asked = 0, met = 0;
    for (int r = first; r < t->rows && r < first + ROWS; r++)
        for (int d = 0; d < D && d < COLS; d++) {
            const size_t i = (size_t)r * (size_t)D + (size_t)d;
            double sum = 0;
            if (t->cell[i] >= CELL_SILENT || !isfinite(t->got[i]) || !isfinite(t->want[i]))
                continue;
            for (int k = 0; k < C; k++) {
                const int from = weight_from(rule, r, k), row = from / keys, key = from % keys;
                const double there = row < t->rows && key < C ? t->x.pv_p.value[row * C + key] : 0;
                sum += (there - t->x.pv_p.value[r * C + k]) * t->x.of[asc_v].value[k * D + d];
            }
            asked++;
            met += fabs(t->x.times_v * sum - (t->got[i] - t->want[i])) <= 4 * t->bound[i];
        }
    return met * 2 > asked;
}

/* A lane's registers of P hold rows r and r + 8 of each sixteen, of keys that differ in one bit: what is put together
   of the wrong ones gives either half of the rows the weights of any of the four, for each value of that bit. */
static void propose_registers(struct search *search, const struct sample_tile *t, struct rule rule, int bits)
{
    enum { HALF = 3, WAYS = 16, LAST_BIT = 4 };
    const int row = rule.keys.a + HALF;
    rule.cost = 4 + log2(2 * WAYS * LAST_BIT);
    for (int way = 0; way < 2 * WAYS * LAST_BIT && row < bits; way++) {
        const int half = way % 2, key = 1 + way / 2 / WAYS, from_row = way / 2 % 4, from_key = way / 8 % 4;
        const unsigned own = 1u << key;
        rule.map = map_of_bits(bits);
        rule.map.row[row] = from_row & 1 ? own : 0;
        rule.map.row[key] = from_key & 1 ? own : 0;
        rule.map.flip = (from_row & 2 ? 1u << row : 0) | (from_key & 2 ? own : 0);
        const bool same = from_key == 1 && from_row == 2 * half;
        if (!same && key < rule.keys.a && makes_difference(t, &rule, half << HALF))
            rule_try(search, &rule);
    }
}

/* Where P' can not be solved, V having fewer columns than keys, or shows no map of all rows: a bit of the key exchanged
   with one of the row or with another of the key, or turned round. */
static void propose_exchanges(struct search *search, struct rule rule)
{
    const struct sample *s = search->sample;
    const bool is_l = s->channel == asc_l;
    const struct sample_tile *t = NULL;
    const int bits = rule.keys.a + map_bits_for(s->tiles[0].c->br);
    for (int k = 0; k < s->n && !t; k++)
        if (wrong_cells(&s->tiles[k]) && !s->tiles[k].next_alpha &&
            (is_l || (s->tiles[k].x.pv_p.value && s->tiles[k].x.of[asc_v].value)))
            t = &s->tiles[k];
    if (!t || bits > MAP_BIT_COUNT)
        return;
    rule.cost = 4 + 2 * log2(bits);
    for (int key = 0; key < rule.keys.a; key++)
        for (int other = key; other < bits; other++) {
            rule.map = map_of_bits(bits);
            rule.map.flip = other == key ? 1u << key : 0;
            map_exchange(&rule.map, key, other);
            if (is_l || makes_difference(t, &rule, 0))
                rule_try(search, &rule);
        }
    if (!is_l)
        propose_registers(search, t, rule, bits);
}

static bool row_is_wrong(const struct sample_tile *t, int row)
{
    for (int col = 0; col < t->cols; col++)
        if (t->cell[(size_t)row * (size_t)t->cols + (size_t)col] == CELL_WRONG)
            return true;
    return false;
}

static void propose_weight(struct search *search)
{
    enum { PAIRS = 96, LEAST = 24 };
    const struct sample *s = search->sample;
    struct pair pairs[PAIRS];
    struct rule rule = rule_new(RULE_WEIGHT);
    size_t n = 0;
    int count = 0;
    const int keys = map_bits_for(s->tiles[0].c->bc);
    uint64_t random = 1; /* places at equal steps have bits that depend on each other: more than one map meets them */
    for (int k = 0; k < s->n && n < PAIRS; k++) {
        const struct sample_tile *t = &s->tiles[k];
        double *p = search_room(search, (size_t)t->c->bc * (size_t)t->c->br * sizeof *p);
        if (p && wrong_cells(t) && t->cell[0] < CELL_SILENT && solve_p(search, t, p)) {
            const int all = t->rows * t->x.cols;
            for (int tried = 0; tried < PAIRS && n < PAIRS; tried++) {
                random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's MMIX */
                const int i = (int)(random >> 33) % all;
                if (!row_is_wrong(t, i / t->x.cols)) /* it would tell of another map */
                    continue;
                const int at = find_weight(t, p[i % t->x.cols * t->rows + i / t->x.cols]), C = t->x.cols;
                if (at >= 0)
                    pairs[n++] = (struct pair){((i / C) << keys) + i % C, ((at / C) << keys) + at % C};
            }
        }
        count = t->c->br << keys > count ? t->c->br << keys : count;
    }
    rule.keys.a = keys;
    if (n < LEAST) {
        propose_exchanges(search, rule);
        return;
    }
    rule.cost = 2 + map_fit(pairs, n, count, &rule.map);
    if (rule.cost < INFINITY && rule.map.kind == MAP_BITS)
        rule_try(search, &rule);
    if (!search_is_settled(search)) { /* a map that meets what was drawn may meet nothing else */
        propose_pitch(search, rule, pairs, n);
        propose_exchanges(search, rule);
    }
}

/* Keys whose weights are rescaled by α as well, or sums that are rescaled once more for every so many keys. */
static void propose_rescaled(struct search *search)
{
    const int bc = search->sample->tiles[0].c->bc;
    for (int keys = 1; keys < bc; keys *= 2)
        for (int way = 0; way < 4; way++) {
            struct rule rule = rule_new(RULE_KEYS);
            rule.keys = (struct term){AXIS_COL, way < 2 ? EVERY : way == 2 ? LOWER : UPPER, 2 * keys, 0};
            rule.share = way < 2 ? keys : 0;
            rule.cuts = way == 1;
            rule.new_power = way >= 2;
            rule.cost = 8;
            if (!rule_is_hopeless(search, &rule))
                rule_try(search, &rule);
            /* As fragments have them: a lower bit of the key changes places with the lowest that counts steps. */
            for (int bit = 0; 1 << bit < keys && way < 2 && !(bc & (bc - 1)); bit++) {
                struct rule dealt = rule;
                dealt.map = map_of_bits(map_bits_for(bc));
                map_exchange(&dealt.map, bit, map_bits_for(keys));
                dealt.cost += 4;
                if (!rule_is_hopeless(search, &dealt))
                    rule_try(search, &dealt);
            }
        }
}

/* Where the sum of a wrong element has ended: what is missing is what the keys behind add; -1: at no key, or at any of
   several. */
static int end_of(const struct sample_tile *t, const double *p, const double *v, int i)
{
    const double missing = t->want[i] - t->got[i], off = 2 * t->bound[i];
    double behind = 0;
    int end = -1;
    for (int k = t->x.cols - 1; k >= 0; k--) {
        behind += reach_term(t, p, v, i / t->cols, i % t->cols, k);
        if (fabs(behind - missing) <= off) {
            if (end >= 0)
                return -1;
            end = k;
        }
    }
    return end;
}

enum { ENDS = 256, LEAST_ENDS = 24 };

struct end {
    const struct sample_tile *t;
    int row, col, keys;
};

/* The row that sees so many keys; of those that a multiple does not tell apart, the one in its own place among them. */
static int row_reaching(const struct end *end, int unit)
{
    int found = -1, rows = 0;
    for (int row = 0; row < end->t->c->br; row++) {
        if (reach_keys(end->t, row, unit) != end->keys)
            continue;
        rows++;
        if (row % unit == end->row % unit)
            found = row;
    }
    return rows <= unit ? found : -1;
}

static void try_ends(struct search *search, const struct end *ends, size_t n, int unit, int bits)
{
    struct rule rule = rule_new(RULE_REACH);
    struct pair pairs[ENDS];
    size_t known = 0;
    const int br = search->sample->tiles[0].c->br;
    for (size_t i = 0; i < n; i++) {
        const int row = row_reaching(&ends[i], unit), col = bits ? ends[i].col : 0;
        if (row >= 0)
            pairs[known++] = (struct pair){ends[i].row << bits | col, row << bits | col};
    }
    rule.keys.a = bits;
    rule.share = unit;
    rule.cost = known < LEAST_ENDS ? INFINITY : 5 + map_fit(pairs, known, br << bits, &rule.map);
    if (rule.cost < INFINITY && rule.map.kind != MAP_SAME && (!bits || rule.map.kind == MAP_BITS))
        rule_try(search, &rule);
}

/* Up to the last key that the first row of so many sees, as a warp may ask it alone, in groups of so many keys. */
static void propose_first_reach(struct search *search)
{
    static const int units[] = {1, 32, 16, 8};
    const int br = search->sample->tiles[0].c->br;
    for (int low = 3; 1 << low <= br; low++)
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
            struct rule rule = rule_new(RULE_REACH);
            rule.map = map_of_bits(map_bits_for(br));
            for (int bit = 0; bit < low; bit++)
                rule.map.row[bit] = 0;
            rule.share = units[i];
            rule.cost = 8;
            rule_try(search, &rule);
        }
}

static void propose_reach(struct search *search)
{
    const struct sample *s = search->sample;
    const size_t step = s->wrong / ENDS | 1; /* odd: it comes to all columns */
    struct end ends[ENDS];
    size_t n = 0, seen = 0;
    const int bits = map_bits_for(s->tiles[0].cols);
    int any = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const double *p, *v;
        if (!t->cut || !reach_terms(search, t, &p, &v))
            continue;
        for (int i = 0; i < (int)sample_cells(t) && n < ENDS; i++) {
            if (!is_wrong_number(t, (size_t)i) || seen++ % step)
                continue;
            const int keys = end_of(t, p, v, i);
            if (keys > 0)
                ends[n++] = (struct end){t, i / t->cols, i % t->cols, keys};
            any |= keys > 0 ? keys : 0;
        }
    }
    propose_first_reach(search);
    if (n < LEAST_ENDS || search_is_settled(search))
        return;
    try_ends(search, ends, n, any & -any, 0);
    if (bits && !search_is_settled(search))
        try_ends(search, ends, n, any & -any, bits);
}

void propose_weights(struct search *search)
{
    const enum asc_channel ch = search->sample->channel;
    switch (ch) {
    case asc_m:
        if (search_part(search))
            propose_part(search);
        break;
    case asc_s:
    case asc_l:
    case asc_u:
        if (search_part(search))
            propose_sum(search);
        if (search_part(search) && ch != asc_s)
            propose_reach(search);
        if (search_part(search) && ch != asc_s)
            propose_rescaled(search);
        if (search_part(search) && ch == asc_u)
            propose_weight(search);
        if (search_part(search) && ch == asc_l && search->best.kind == RULE_NONE) {
            struct rule rule = rule_new(RULE_WEIGHT);
            rule.keys.a = map_bits_for(search->sample->tiles[0].c->bc);
            propose_exchanges(search, rule);
        }
        break;
    default:
        break;
    }
}
