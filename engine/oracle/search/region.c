#include "engine/oracle/search/region.h"

#include "engine/oracle/schedule.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether a row, which may lie behind the q tile's end, sees all keys that a tile has room for. Of a mask that is a
   table nothing is known there. */
static bool sees_all(const struct sample_tile *t, int row)
{
    const struct key_range keys = schedule_range(t->c, row);
    const int first = t->kv * t->c->bc;
    return !t->is_kv && t->cols == t->x.cols && !t->c->mask.data && keys.first <= first &&
           keys.last >= first + t->c->bc;
}

static bool rises(const struct sample_tile *t, int row)
{
    return t->new_m && t->new_m[row] > t->x.m_prev.value[row];
}

/* Of the row's 16. */
static bool rise_of_16(const struct sample_tile *t, int row, bool all)
{
    const int first = row & ~15;
    bool any = false, every = true;
    for (int r = first; r < first + 16 && r < t->rows; r++) {
        any = any || rises(t, r);
        every = every && rises(t, r);
    }
    return all ? every : any;
}

int axis_value(const struct sample_tile *t, enum axis axis, int row, int col)
{
    switch (axis) {
    case AXIS_BATCH:
    case AXIS_HEAD:
    case AXIS_Q_TILE:
        return t->at[axis];
    case AXIS_KV_TILE:
        return t->kv;
    case AXIS_TURN:
        return t->turn;
    case AXIS_ROW:
        return row;
    case AXIS_ROW_OF_HEAD:
        return (t->is_kv ? t->kv * t->c->bc : t->at[AXIS_Q_TILE] * t->c->br) + row;
    case AXIS_NEW:
        return t->c->new_keys && (t->is_kv || t->cols == t->x.cols) &&
               t->kv * t->c->bc + (t->is_kv ? row : col) >= t->c->kv_len - t->c->new_keys;
    case AXIS_KEY:
        return t->x.hidden && t->cols == t->x.cols ? t->kv * t->c->bc + col : 0;
    case AXIS_RISE:
        return rises(t, row);
    case AXIS_RISE_BESIDE:
        return rises(t, row & ~8);
    case AXIS_RISE_FIRST_OF_16:
        return rises(t, row & ~15);
    case AXIS_RISE_ANY_OF_16:
    case AXIS_RISE_ALL_OF_16:
        return rise_of_16(t, row, axis == AXIS_RISE_ALL_OF_16);
    case AXIS_VIEW:
        return !t->new_m                                               ? 0
               : t->x.hidden[row] >= t->x.visible[row]                 ? 3
               : t->x.hidden[row] > 0 || t->x.visible[row] < t->x.cols ? 2
                                                                       : t->cut;
    case AXIS_LAST_OF_16:
        return sees_all(t, row | 15);
    case AXIS_LAST_OF_TILE:
        return sees_all(t, t->c->br - 1);
    default:
        return col;
    }
}

bool term_holds(const struct term *term, int x)
{
    switch (term->condition) {
    case EQUAL:
        return x == term->a;
    case NOT:
        return x != term->a;
    case FROM:
        return x >= term->a;
    case BELOW:
        return x < term->a;
    case WITHIN:
        return x >= term->a && x <= term->b;
    case UPPER:
        return x % term->a >= term->a / 2;
    case LOWER:
        return x % term->a < term->a / 2;
    case RESIDUE:
        return x % term->a == term->b;
    case NO_RESIDUE:
        return x % term->a != term->b;
    default:
        return true;
    }
}

bool region_holds(const struct region *region, const struct sample_tile *t, int row, int col)
{
    for (int i = 0; i < region->n; i++)
        if (!term_holds(&region->term[i], axis_value(t, region->term[i].axis, row, col)))
            return false;
    return true;
}

static bool separates(const struct term *term, const uint8_t *in, const uint8_t *out, int n)
{
    for (int x = 0; x < n; x++)
        if ((in[x] && !term_holds(term, x)) || (out[x] && term_holds(term, x)))
            return false;
    return true;
}

static void offer(const struct term *term, double bits, const uint8_t *in, const uint8_t *out, int n, double *least,
                  struct term *best)
{
    if (bits >= *least || !separates(term, in, out, n))
        return;
    *least = bits;
    *best = *term;
}

/* Bits: log2 of how many conditions of the kind there are, and 3 for the kind. */
double term_fit(const uint8_t *in, const uint8_t *out, int n, struct term *term)
{
    int first = n, last = -1, inside = 0, outside = 0, only = -1;
    double least = INFINITY;
    for (int x = 0; x < n; x++) {
        inside += in[x] != 0;
        if (in[x] && first == n)
            first = x;
        last = in[x] ? x : last;
        outside += out[x] != 0;
        only = out[x] ? x : only;
    }
    const enum axis axis = term->axis;
    if (last < 0)
        return INFINITY;
    if (!outside) {
        *term = (struct term){axis, EVERY, 0, 0};
        return 0;
    }
    /* Of values that nobody saw nothing is known: a period is one only where both sides are met twice. */
    const double values = log2(fmax(inside + outside, 2));
    const bool repeats = inside > 1 && outside > 1;
    struct term best = {axis, EVERY, 0, 0};
    if (first == last)
        offer(&(struct term){axis, EQUAL, first, 0}, 3 + values, in, out, n, &least, &best);
    if (outside == 1)
        offer(&(struct term){axis, NOT, only, 0}, 3 + values, in, out, n, &least, &best);
    /* The border that is a round number, of those that part the two. */
    int before = -1, after = n;
    for (int x = 0; x < first; x++)
        before = out[x] ? x : before;
    for (int x = n - 1; x > last; x--)
        after = out[x] ? x : after;
    int from = first, below = last + 1;
    for (int unit = 64; unit > 1; unit /= 2) {
        const int x = first / unit * unit, y = (last + unit) / unit * unit;
        if (from == first && x > before)
            from = x;
        if (below == last + 1 && y <= after)
            below = y;
    }
    offer(&(struct term){axis, FROM, from, 0}, 3 + values, in, out, n, &least, &best);
    offer(&(struct term){axis, BELOW, below, 0}, 3 + values, in, out, n, &least, &best);
    for (int a = 2; a <= n && repeats; a *= 2) {
        offer(&(struct term){axis, UPPER, a, 0}, 6, in, out, n, &least, &best);
        offer(&(struct term){axis, LOWER, a, 0}, 6, in, out, n, &least, &best);
    }
    for (int a = 2; a <= n && a <= 64 && repeats; a++)
        for (int not = 0; not < 2; not ++)
            offer(&(struct term){axis, not ? NO_RESIDUE : RESIDUE, a, (not ? only : first) % a}, 3 + 2 * log2(a), in,
                  out, n, &least, &best);
    offer(&(struct term){axis, WITHIN, from, below - 1}, 3 + 2 * values, in, out, n, &least, &best);
    *term = best;
    return least;
}

static const size_t table_most = (size_t)1 << 22;

static int extent_of(const struct sample *s, enum axis axis)
{
    int most = 0;
    if (axis == AXIS_RISE || axis == AXIS_VIEW || axis == AXIS_NEW || axis >= AXIS_LAST_OF_16)
        return axis == AXIS_VIEW ? 4 : 2;
    for (int i = 0; i < s->n; i++) {
        const struct sample_tile *t = &s->tiles[i];
        const int x = axis_value(t, axis, t->rows - 1, t->cols - 1);
        most = x > most ? x : most;
    }
    return most + 1;
}

/* What a tile holds: the elements of its rows, of its columns, and all. Most pairs of axes ask for no more. */
struct tally {
    uint32_t in, out;
};

/* The elements that each value of an axis has. */
struct margin {
    struct tally *of; /* owned, [n]; NULL: not counted yet */
    int n;
    uint64_t lone[2]; /* OUT of values that a condition need not hold, [by chance] */
};

struct tallies {
    struct tally *room; /* owned */
    size_t *first;      /* owned, [tiles]: where a tile's are: its rows', its columns', its own */
    uint64_t in, out;
    struct margin margin[AXES];
};

/* How often each value of two axes is met, [n[0]][n[1]]. */
struct table {
    enum axis axis[2];
    int n[2];
    const struct margin *margin[2];
    bool rows, cols; /* an axis goes by them */
    bool by_chance;
    uint32_t *in, *out;
};

/* A condition holds all values that any IN has. by_chance: but those with few enough for chance, one for more than
   eight OUT: a wide bound takes in what another rule gives, as it does more than one in 32 of the weights of another
   row that are rounded to e4m3. */
static bool is_kept(struct tally n, bool by_chance)
{
    return n.in && !(by_chance && (uint64_t)n.in * 8 < n.out);
}

static void tally(struct tally *t, uint8_t label)
{
    t->in += label == LABEL_IN;
    t->out += label == LABEL_OUT;
}

static bool tallies_make(const struct sample *s, uint8_t *const *labels, struct tallies *out)
{
    size_t n = 0;
    *out = (struct tallies){0};
    out->first = malloc((size_t)s->n * sizeof *out->first);
    for (int i = 0; i < s->n && out->first; i++) {
        out->first[i] = n;
        n += (size_t)s->tiles[i].rows + (size_t)s->tiles[i].cols + 1;
    }
    if (!out->first || !(out->room = calloc(n + 1, sizeof *out->room)))
        return false;
    for (int i = 0; i < s->n; i++) {
        const struct sample_tile *t = &s->tiles[i];
        struct tally *rows = out->room + out->first[i], *cols = rows + t->rows, *all = cols + t->cols;
        const uint8_t *label = labels[i];
        for (int r = 0; r < t->rows; r++, label += t->cols) {
            for (int col = 0; col < t->cols; col++) {
                tally(&rows[r], label[col]);
                tally(&cols[col], label[col]);
            }
            all->in += rows[r].in;
            all->out += rows[r].out;
        }
        out->in += all->in;
        out->out += all->out;
    }
    return true;
}

static bool goes_by_row(enum axis axis)
{
    return axis == AXIS_ROW || axis == AXIS_ROW_OF_HEAD || axis == AXIS_RISE || axis == AXIS_VIEW || axis == AXIS_NEW ||
           (axis >= AXIS_LAST_OF_16 && axis != AXIS_LAST_OF_TILE);
}

static bool goes_by_col(enum axis axis)
{
    return axis == AXIS_COL || axis == AXIS_KEY || axis == AXIS_NEW; /* a key is a row of K, a column of S */
}

/* Whether an axis of a tile's elements goes by their columns; all others go by rows, or by the tile. */
static bool is_of_col(const struct sample_tile *t, enum axis axis)
{
    return axis == AXIS_COL || axis == AXIS_KEY || (axis == AXIS_NEW && !t->is_kv);
}

static const struct margin *margin_of(const struct sample *s, struct tallies *of, enum axis axis)
{
    struct margin *m = &of->margin[axis];
    if (m->of)
        return m;
    m->n = extent_of(s, axis);
    m->of = calloc((size_t)m->n, sizeof *m->of);
    for (int i = 0; i < s->n && m->of; i++) {
        const struct sample_tile *t = &s->tiles[i];
        const bool by_col = is_of_col(t, axis), by_row = !by_col && goes_by_row(axis);
        const struct tally *row = of->room + of->first[i], *col = row + t->rows,
                           *it = by_col   ? col
                                 : by_row ? row
                                          : col + t->cols;
        for (int k = 0; k < (by_col ? t->cols : by_row ? t->rows : 1); k++) {
            if (!it[k].in && !it[k].out)
                continue;
            struct tally *to = &m->of[axis_value(t, axis, by_col ? 0 : k, by_col ? k : 0)];
            to->in += it[k].in;
            to->out += it[k].out;
        }
    }
    for (int x = 0; x < m->n && m->of; x++)
        for (int by_chance = 0; by_chance < 2; by_chance++)
            m->lone[by_chance] += is_kept(m->of[x], by_chance) ? 0 : m->of[x].out;
    return m->of ? m : NULL;
}

/* Whether what the conditions must hold of rows, or of columns, takes in this one. */
static bool is_held(const struct table *t, const struct sample_tile *tile, bool of_col, int row, int col)
{
    bool held = true;
    for (int i = 0; i < 2 && held; i++)
        held = is_of_col(tile, t->axis[i]) != of_col ||
               is_kept(t->margin[i]->of[axis_value(tile, t->axis[i], row, col)], t->by_chance);
    return held;
}

/* Whether there are too many OUT that no two conditions can leave out. */
static bool is_refuted(const struct sample *s, uint8_t *const *labels, const struct tallies *of, const struct table *t)
{
    const uint64_t lone = t->margin[0]->lone[t->by_chance] + t->margin[1]->lone[t->by_chance];
    uint64_t against = 0;
    if (lone < of->out && (of->out - lone) * 10000 > of->in)
        return true;
    for (int i = 0; i < s->n && t->rows && t->cols; i++) {
        const struct sample_tile *tile = &s->tiles[i];
        const struct tally *row = of->room + of->first[i];
        for (int r = 0; r < tile->rows; r++) {
            const uint8_t *label = labels[i] + (size_t)r * (size_t)tile->cols;
            if (!row[r].out || !is_held(t, tile, false, r, 0))
                continue;
            for (int c = 0; c < tile->cols; c++)
                if (label[c] == LABEL_OUT && is_held(t, tile, true, 0, c) && ++against * 10000 > of->in)
                    return true;
        }
    }
    return false;
}

/* Where in the table an element is counted: at[row] + at[rows + column]. */
static void place_in_table(const struct table *t, const struct sample_tile *tile, size_t *at)
{
    for (int r = 0; r < (t->rows ? tile->rows : 1); r++) {
        at[r] = 0;
        for (int i = 0; i < 2; i++)
            if (!is_of_col(tile, t->axis[i]))
                at[r] += (size_t)axis_value(tile, t->axis[i], r, 0) * (size_t)(i ? 1 : t->n[1]);
    }
    for (int c = 0; c < (t->cols ? tile->cols : 1); c++) {
        at[tile->rows + c] = 0;
        for (int i = 0; i < 2; i++)
            if (is_of_col(tile, t->axis[i]))
                at[tile->rows + c] += (size_t)axis_value(tile, t->axis[i], 0, c) * (size_t)(i ? 1 : t->n[1]);
    }
}

static void table_add(struct table *t, size_t at, struct tally n)
{
    if (!n.in && !n.out)
        return;
    t->in[at] += n.in;
    t->out[at] += n.out;
}

static bool table_count(const struct sample *s, uint8_t *const *labels, const struct tallies *of, struct table *t)
{
    const size_t n = (size_t)t->n[0] * (size_t)t->n[1];
    size_t most = 0;
    for (int i = 0; i < s->n; i++) {
        const size_t all = (size_t)s->tiles[i].rows + (size_t)s->tiles[i].cols;
        most = all > most ? all : most;
    }
    t->in = calloc(2 * n, sizeof *t->in);
    size_t *at = calloc(most + 1, sizeof *at);
    t->out = t->in ? t->in + n : NULL;
    for (int i = 0; i < s->n && t->in && at; i++) {
        const struct sample_tile *tile = &s->tiles[i];
        const struct tally *row = of->room + of->first[i], *col = row + tile->rows;
        const size_t *at_col = at + tile->rows;
        place_in_table(t, tile, at);
        if (!t->rows && !t->cols)
            table_add(t, at[0] + at_col[0], col[tile->cols]);
        for (int c = 0; c < tile->cols && t->cols && !t->rows; c++)
            table_add(t, at[0] + at_col[c], col[c]);
        for (int r = 0; r < tile->rows && t->rows; r++) {
            const uint8_t *label = labels[i] + (size_t)r * (size_t)tile->cols;
            if (!t->cols)
                table_add(t, at[r] + at_col[0], row[r]);
            for (int c = 0; c < tile->cols && t->cols && (row[r].in || row[r].out); c++)
                if (label[c] == LABEL_IN)
                    t->in[at[r] + at_col[c]]++;
                else if (label[c] == LABEL_OUT)
                    t->out[at[r] + at_col[c]]++;
        }
    }
    const bool counted = t->in && at;
    free(at);
    return counted;
}

/* in: values of one axis that a condition holds; out: others that meet an OUT among the values of the other axis that
   any IN has. */
static void project(const struct table *t, int axis, uint8_t *in, uint8_t *out)
{
    const struct tally *own = t->margin[axis]->of, *other = t->margin[!axis]->of;
    memset(out, 0, (size_t)t->n[axis]);
    for (int i = 0; i < t->n[axis]; i++)
        in[i] = is_kept(own[i], t->by_chance);
    for (int x = 0; x < t->n[0]; x++)
        for (int y = 0; y < t->n[1]; y++)
            if (t->out[(size_t)x * (size_t)t->n[1] + (size_t)y] && other[axis ? x : y].in && !in[axis ? y : x])
                out[axis ? y : x] = 1;
}

/* IN and OUT inside the region that two conditions make, and IN outside of it. */
static void inside(const struct table *t, const struct term term[2], uint64_t *in, uint64_t *out, uint64_t *beyond)
{
    *in = *out = *beyond = 0;
    for (int x = 0; x < t->n[0]; x++)
        for (int y = 0; y < t->n[1]; y++) {
            const size_t at = (size_t)x * (size_t)t->n[1] + (size_t)y;
            const bool holds = term_holds(&term[0], x) && term_holds(&term[1], y);
            *(holds ? in : beyond) += t->in[at];
            *out += holds ? t->out[at] : 0;
        }
}

static void fit_pair(const struct table *t, struct region *best)
{
    struct term term[2] = {{t->axis[0], EVERY, 0, 0}, {t->axis[1], EVERY, 0, 0}};
    double bits = 2; /* which axes */
    uint64_t in, out, beyond;
    for (int axis = 0; axis < 2; axis++) {
        const size_t n = (size_t)t->n[axis];
        uint8_t *sides = malloc(2 * n);
        if (!sides)
            return;
        project(t, axis, sides, sides + n);
        bits += term_fit(sides, sides + n, t->n[axis], &term[axis]);
        free(sides);
    }
    if (!(bits < best->bits))
        return;
    inside(t, term, &in, &out, &beyond);
    if (!in || out * 10000 > in || beyond * 8 > in)
        return;
    *best = (struct region){.bits = bits};
    for (int axis = 0; axis < 2; axis++)
        if (term[axis].condition != EVERY)
            best->term[best->n++] = term[axis];
    if (!best->n)
        best->bits = 0;
}

static void fit_axes(const struct sample *s, uint8_t *const *labels, struct tallies *of, enum axis a, enum axis b,
                     bool by_chance, struct region *best)
{
    struct table t = {.axis = {a, b},
                      .margin = {margin_of(s, of, a), margin_of(s, of, b)},
                      .rows = goes_by_row(a) || goes_by_row(b),
                      .cols = goes_by_col(a) || goes_by_col(b),
                      .by_chance = by_chance};
    for (int i = 0; i < 2; i++)
        t.n[i] = t.margin[i] ? t.margin[i]->n : 0;
    /* Rows of a long head against elements: too many cells, and a row says what both do. */
    if (!t.margin[0] || !t.margin[1] || (size_t)t.n[0] * (size_t)t.n[1] > table_most || is_refuted(s, labels, of, &t))
        return;
    if (table_count(s, labels, of, &t))
        fit_pair(&t, best);
    free(t.in);
}

/* A pair of axes of which one needs no condition is a region of one. */
bool region_fit(const struct sample *s, uint8_t *const *labels, bool by_chance, struct region *region)
{
    struct region best = {.bits = INFINITY};
    struct tallies of;
    const bool counted = tallies_make(s, labels, &of);
    const int first = s->n && s->tiles[0].c->new_keys ? AXIS_KEY : AXIS_NEW;
    for (int a = 0; a < first && best.bits > 0 && counted; a++)
        for (int b = a + 1; b < first; b++)
            fit_axes(s, labels, &of, (enum axis)a, (enum axis)b, false, &best);
    for (int b = 0; b < first && !(best.bits < INFINITY) && by_chance && counted; b++)
        fit_axes(s, labels, &of, b == AXIS_ROW ? AXIS_COL : AXIS_ROW, (enum axis)b, true, &best);
    const bool is_said = best.bits < INFINITY;
    for (int b = AXIS_KEY; b < AXES && !is_said && counted; b++)
        for (int a = 0; a < b; a++)
            fit_axes(s, labels, &of, (enum axis)a, (enum axis)b, false, &best);
    for (int a = 0; a < AXES; a++)
        free(of.margin[a].of);
    free(of.room);
    free(of.first);
    *region = best;
    return best.bits < INFINITY;
}
