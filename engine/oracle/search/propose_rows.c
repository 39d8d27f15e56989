/* Rows of Q, K and V that are other rows: what pieces that were looked up by content have in common. */
#include "engine/oracle/search/lookup.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/element.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/values.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 256 };

/* Which tensor most pieces are from. */
static enum asc_channel main_tensor(const struct lookup *l)
{
    int count[INPUTS] = {0};
    for (int i = 0; i < l->n; i++)
        count[l->found[i].tensor]++;
    return count[asc_k] > count[asc_q] ? (count[asc_v] > count[asc_k] ? asc_v : asc_k)
                                       : (count[asc_v] > count[asc_q] ? asc_v : asc_q);
}

enum how { WHOLE_ROWS, TILE_ROWS, TILE_PIECES, WHOLE_PIECES, FLAT_ROWS };

static bool of_pieces(enum how how)
{
    return how == TILE_PIECES || how == WHOLE_PIECES;
}

/* The pairs that one way of counting gives; false: it can not be counted so. */
static size_t count_pairs(const struct lookup *l, const struct rule *rule, enum how how, struct pair *heads,
                          struct pair *tiles, struct pair *rows, int *count)
{
    const enum asc_channel by = rule->rows.by_query ? asc_q : l->operand;
    size_t n = 0;
    *count = 0;
    for (int i = 0; i < l->n; i++) {
        const struct found *f = &l->found[i];
        const struct sample_tile *t = &l->search->sample->tiles[f->tile];
        const int block = lookup_block(l, t), tile = lookup_tile(l, t);
        if (f->tensor != rule->rows.tensor || (!of_pieces(how) && f->from_piece != f->piece))
            continue;
        heads[n] = (struct pair){head_of(l->search, t, by), f->head};
        tiles[n] = (struct pair){tile, f->from_row / block};
        rows[n] =
            how == FLAT_ROWS    ? (struct pair){flat_row(l->search, l->operand, heads[n].from, tile * block + f->row),
                                                flat_row(l->search, f->tensor, f->head, f->from_row)}
            : how == WHOLE_ROWS ? (struct pair){tile * block + f->row, f->from_row}
            : how == WHOLE_PIECES
                ? (struct pair){(tile * block + f->row) * l->pieces + f->piece, f->from_row * l->pieces + f->from_piece}
            : how == TILE_PIECES
                ? (struct pair){f->row * l->pieces + f->piece, f->from_row % block * l->pieces + f->from_piece}
                : (struct pair){f->row, f->from_row % block};
        const int most = how == FLAT_ROWS      ? l->n_rows * count_sources(l->search, l->operand)
                         : how == WHOLE_ROWS   ? l->n_rows
                         : how == WHOLE_PIECES ? l->n_rows * l->pieces
                                               : block * (how == TILE_PIECES ? l->pieces : 1);
        *count = most > *count ? most : *count;
        n++;
    }
    return n;
}

/* The map of heads or tiles. Where it does not meet all, as at the end of an array behind which another lies, those
   that it does not meet are left out of what follows. */
static double fit_place(const struct pair *at, int count, struct map *map, struct pair *rows, struct pair *tiles,
                        size_t *n)
{
    double bits = map_fit(at, *n, count, map);
    size_t same = 0, left = 0;
    for (size_t i = 0; i < *n; i++)
        same += at[i].from == at[i].to;
    if (!(bits < INFINITY) && same * 10 >= *n * 6) {
        *map = (struct map){.kind = MAP_SAME};
        bits = 4;
    }
    for (size_t i = 0; i < *n; i++) {
        if (map_at(map, at[i].from) != at[i].to)
            continue;
        rows[left] = rows[i];
        if (tiles)
            tiles[left] = tiles[i];
        left++;
    }
    *n = left;
    return left >= 4 ? bits : INFINITY;
}

/* Heads are counted through the batches, or those of each. */
static double fit_heads(const struct lookup *l, struct rule *rule, struct pair *heads, struct pair *rows,
                        struct pair *tiles, size_t *n)
{
    const enum asc_channel by = rule->rows.by_query ? asc_q : l->operand;
    const int from = heads_of(l->search, by), to = heads_of(l->search, rule->rows.tensor);
    for (size_t i = 0; i < *n && rule->rows.of_batch; i++) {
        if (heads[i].from / from != heads[i].to / to)
            return INFINITY;
        heads[i] = (struct pair){heads[i].from % from, heads[i].to % to};
    }
    return fit_place(heads, count_sources(l->search, by), &rule->rows.head, rows, tiles, n);
}

/* One way of counting rows, with heads counted as the operand's or as the query's. only: of a part of the tile. */
static void try_map(struct lookup *l, enum how how, bool by_query, bool of_batch, const struct term *only, double bits,
                    struct pair *pairs)
{
    struct rule rule = rule_new(RULE_ROWS);
    struct pair *heads = pairs, *tiles = pairs + FOUND_MOST, *rows = pairs + 2 * (size_t)FOUND_MOST;
    int count = 0;
    rule.rows.operand = l->operand;
    rule.rows.tensor = main_tensor(l);
    rule.rows.whole = how == WHOLE_ROWS || how == WHOLE_PIECES || how == FLAT_ROWS;
    rule.rows.flat = how == FLAT_ROWS;
    rule.rows.span = of_pieces(how) ? l->span : 0;
    rule.rows.by_query = by_query;
    rule.rows.of_batch = of_batch;
    const size_t n = count_pairs(l, &rule, how, heads, tiles, rows, &count);
    if (n < 4 || n * 2 < (size_t)l->n)
        return;
    rule.cost = 3 + (rule.rows.tensor != l->operand) * 2 + by_query + of_batch + bits;
    if (only) {
        rule.rows.partly = true;
        rule.rows.only = *only;
    }
    size_t left = n;
    if (how != FLAT_ROWS)
        rule.cost += fit_heads(l, &rule, heads, rows, tiles, &left);
    if (how == TILE_ROWS || how == TILE_PIECES)
        rule.cost += fit_place(tiles, 1 + l->n_rows / (count ? count : 1), &rule.rows.tile, rows, NULL, &left);
    double cost = how == TILE_PIECES ? map_fit_places(rows, left, l->pieces, &rule.map) : INFINITY;
    if (!(cost < INFINITY))
        cost = map_fit(rows, left, count, &rule.map);
    rule.cost += cost;
    /* What begins within a row; all else another way of counting has. */
    if (how == WHOLE_PIECES && (rule.map.kind != MAP_PLUS || rule.map.a % l->pieces == 0))
        return;
    if (rule.cost < INFINITY)
        rule_try(l->search, &rule);
}

/* Rows that lie so far apart and are read at another distance, through all heads as they lie in memory. */
static void try_pitch(struct lookup *l)
{
    const int heads = heads_of(l->search, l->operand);
    for (int beside = 1; beside <= heads; beside += heads > 1 ? heads - 1 : 1) {
        struct rule rule = rule_new(RULE_ROWS);
        const int line = l->pieces * beside;
        int n = 0, meet = 0;
        rule.rows.operand = rule.rows.tensor = l->operand;
        rule.rows.whole = rule.rows.flat = true;
        rule.rows.span = l->span;
        rule.map = (struct map){.kind = MAP_PITCH, .a = line};
        for (int i = 0; i < l->n; i++) {
            const struct found *f = &l->found[i];
            const struct sample_tile *t = &l->search->sample->tiles[f->tile];
            const int head = head_of(l->search, t, l->operand), row = lookup_tile(l, t) * lookup_block(l, t) + f->row;
            const int from = flat_row(l->search, l->operand, head, row) * l->pieces + f->piece;
            const int to = flat_row(l->search, f->tensor, f->head, f->from_row) * l->pieces + f->from_piece;
            if (f->tensor != l->operand || from < line)
                continue;
            if (!rule.map.b && (to - from % line) % (from / line) == 0)
                rule.map.b = (to - from % line) / (from / line);
            n++;
            meet += map_at(&rule.map, from) == to;
        }
        rule.cost = 3 + 2 * log2(2 + abs(rule.map.b));
        if (n >= 4 && meet * 10 >= n * 9 && rule.map.b > 0 && rule.map.b != line)
            rule_try(l->search, &rule);
    }
}

/* Columns c + n of a tensor with longer rows, as V that lies in K is from a wrong column on. */
static void try_longer(struct search *search, enum asc_channel operand)
{
    const struct sample *s = search->sample;
    const enum asc_channel other = operand == asc_v ? asc_k : asc_v;
    const struct sample_tile *t = NULL;
    const struct oracle_case *c = s->tiles[0].c;
    const int D = oracle_dim(c, operand), longer = oracle_dim(c, other);
    for (int k = 0; k < s->n && !t; k++)
        t = wrong_cells(&s->tiles[k]) ? &s->tiles[k] : NULL;
    if (!t || operand == asc_q || longer <= D)
        return;
    const int head = head_of(search, t, operand);
    for (int shift = 0; shift + D <= longer; shift++) {
        struct rule rule = rule_new(RULE_ROWS);
        int same = 0;
        rule.rows.operand = operand;
        rule.rows.tensor = other;
        rule.rows.whole = true;
        rule.rows.shift = shift;
        rule.cost = 5 + log2(1 + longer - D);
        if (source_rows(search, c, other, head, t->kv * c->bc, 1, search->rows[2], search->rows[3]))
            for (int d = 0; d < D; d++)
                same += element_within(t->type, t->got[d], search->rows[2][d + shift], search->rows[3][d + shift]);
        if (same == D)
            rule_try(search, &rule);
    }
}

/* Whether the first rows of the tile, but row 0, are those of `rows` read at this distance. */
static bool read_apart(const struct sample_tile *t, const double *rows, const double *loose, int dim, int block,
                       const struct from_rows *f, int D)
{
    enum { ROWS = 4 };
    const double fold = f->operand == asc_q ? values_fold(t->c) : 1;
    int same = 0;
    for (int i = D; i < ROWS * D && i < (int)sample_cells(t); i++) {
        const int at = i / D * f->read + i % D, line = at / f->lie, col = at % f->lie;
        if (line >= block || col >= dim || t->cell[i] >= CELL_SILENT)
            continue;
        const size_t there = (size_t)line * (size_t)dim + (size_t)col;
        if (!element_within(t->type, t->got[i], rows[there] * fold, loose[there] * fabs(fold)))
            return false;
        same++;
    }
    return same >= D;
}

/* Rows that lie at one distance in the tile, with some padding, and are read at another; V in the rows of K too. */
static void try_apart(struct search *search, enum asc_channel operand)
{
    enum { PADDING = 16 };
    const struct sample *s = search->sample;
    const struct oracle_case *c = s->tiles[0].c;
    const int D = oracle_dim(c, operand), block = operand == asc_q ? c->br : c->bc;
    const struct sample_tile *t = NULL;
    for (int k = 0; k < s->n && !t; k++)
        t = wrong_cells(&s->tiles[k]) >= 8 ? &s->tiles[k] : NULL;
    for (int other = 0; other < (operand == asc_v && c->head_dim_v < c->head_dim ? 2 : 1) && t; other++) {
        struct rule rule = rule_new(RULE_ROWS);
        struct from_rows *f = &rule.rows;
        f->operand = operand;
        f->tensor = other ? asc_k : operand;
        const int dim = oracle_dim(c, f->tensor), first = (operand == asc_q ? t->at[AXIS_Q_TILE] : t->kv) * block;
        double *rows = search_room(search, 2 * (size_t)block * (size_t)dim * sizeof *rows);
        double *loose = rows ? rows + (size_t)block * (size_t)dim : NULL;
        if (!rows || !source_rows(search, c, f->tensor, head_of(search, t, operand), first, block, rows, loose))
            return;
        for (f->lie = dim; f->lie <= dim + PADDING; f->lie++)
            for (f->read = 1; f->read <= 2 * f->lie; f->read++)
                if (f->read != f->lie && read_apart(t, rows, loose, dim, block, f, D)) {
                    rule.cost = 6 + log2(1 + PADDING) + log2(2 * f->lie);
                    rule_try(search, &rule);
                }
    }
}

static bool stays(const struct lookup *l, const struct found *f)
{
    const struct sample_tile *t = &l->search->sample->tiles[f->tile];
    return f->tensor == l->operand && f->head == head_of(l->search, t, l->operand) && f->from_piece == f->piece &&
           f->from_row == lookup_tile(l, t) * lookup_block(l, t) + f->row;
}

/* Some rows of the tile, or some columns, are elsewhere and the others in their place: the maps are those of what is
   elsewhere. */
static void try_part(struct lookup *l, enum how how, struct pair *pairs)
{
    const struct sample_tile *t = &l->search->sample->tiles[0];
    const int D = oracle_dim(t->c, l->operand), rows = lookup_block(l, t), most = rows > D ? rows : D;
    struct lookup moved = *l;
    uint8_t *sides = search_room(l->search, (size_t)4 * (size_t)most);
    if (!sides)
        return;
    uint8_t *in[2] = {sides, sides + most}, *out[2] = {sides + 2 * (size_t)most, sides + 3 * (size_t)most};
    moved.n = 0;
    for (int i = 0; i < l->n; i++) {
        const struct found *f = &l->found[i];
        const bool stay = stays(l, f);
        if (!stay)
            moved.found[moved.n++] = *f;
        (stay ? out : in)[0][f->row] = 1;
        memset((stay ? out : in)[1] + (size_t)f->piece * (size_t)l->span, 1, (size_t)l->span);
    }
    for (int by_col = 0; by_col < 2 && moved.n >= 4 && moved.n < l->n; by_col++) {
        struct term only = {.axis = by_col ? AXIS_COL : AXIS_ROW};
        const double bits = term_fit(in[by_col], out[by_col], by_col ? D : rows, &only);
        if (bits < INFINITY && only.condition != EVERY)
            try_map(&moved, how, false, false, &only, bits, pairs);
    }
}

static void try_maps(struct lookup *l)
{
    struct pair *pairs = search_room(l->search, (size_t)3 * FOUND_MOST * sizeof *pairs);
    if (!pairs)
        return;
    const bool batches = count_sources(l->search, l->operand) > heads_of(l->search, l->operand);
    const bool captured = l->search->sample->channel <= asc_v;
    for (int of_batch = 0; of_batch < (batches ? 2 : 1); of_batch++)
        for (int how = WHOLE_ROWS; how <= (of_batch ? WHOLE_PIECES : FLAT_ROWS); how++)
            for (int by_query = 0; by_query < (l->operand != asc_q && how < WHOLE_PIECES ? 2 : 1); by_query++)
                if (how != WHOLE_PIECES || captured)
                    try_map(l, (enum how)how, by_query, of_batch, NULL, 0, pairs);
    for (int how = WHOLE_ROWS; how <= TILE_PIECES && l->search->sample->channel >= asc_s; how++)
        try_part(l, (enum how)how, pairs);
}

/* A piece of a captured operand is looked up where most of it is wrong. */
static void look_up_captured(struct lookup *l)
{
    const struct sample *s = l->search->sample;
    size_t wrong = 0, seen = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t step = 1 + wrong / LOOKED_UP;
        for (int k = 0; k < s->n; k++) {
            const struct sample_tile *t = &s->tiles[k];
            for (int r = 0; r < t->rows; r++) {
                for (int p = 0; p < l->pieces; p++) {
                    const size_t at = (size_t)r * (size_t)t->cols + (size_t)p * (size_t)l->span;
                    int n = 0;
                    bool numbers = true;
                    for (int i = 0; i < l->span; i++) {
                        n += t->cell[at + (size_t)i] == CELL_WRONG;
                        numbers = numbers && isfinite(t->got[at + (size_t)i]);
                    }
                    if (!numbers || n * 4 < l->span)
                        continue;
                    wrong += pass == 0;
                    if (pass == 1 && seen++ % step == 0)
                        look_up(l, k, r, p, &(struct wanted_piece){t->got + at, 0, t->type});
                }
            }
        }
    }
}

/* Where the numbers of each column stand, of those of the rows in their place: a column is another one where all tiles
   say so. */
static void look_up_columns(struct lookup *l, int tile, const double *x, int n, const unsigned char *known, double off)
{
    const struct sample_tile *t = &l->search->sample->tiles[tile];
    const int D = oracle_dim(t->c, l->operand), block = lookup_block(l, t), first = lookup_tile(l, t) * block;
    const size_t size = (size_t)block * (size_t)D * (size_t)D;
    if (!lookup_load(l, l->operand, head_of(l->search, t, l->operand)))
        return;
    if (!l->by_columns && (l->by_columns = search_room(l->search, size + (size_t)block)))
        memset(l->by_columns, 1, size + (size_t)block);
    if (!l->by_columns)
        return;
    for (int r = 0; r < block; r++) {
        const double *row = x + (size_t)r * (size_t)D, *own = l->rows + (size_t)(first + r) * (size_t)D;
        double spread = 0;
        const bool there = r < n && first + r < l->n_rows && known[r];
        l->by_columns[size + (size_t)r] &= there;
        for (int d = 0; d < D && there; d++)
            spread += own[d] * own[d];
        spread = off * sqrt(spread / D);
        for (int i = 0; i < D * D && there; i++)
            l->by_columns[(size_t)r * (size_t)D * (size_t)D + (size_t)i] &= fabs(row[i / D] - own[i % D]) <= spread;
    }
}

/* The column that column d of the rows `in` is, if it is one alone; -1: none. */
static int column_of(const struct lookup *l, const uint8_t *in, int rows, int D, int d)
{
    int found = -1;
    for (int from = 0; from < D; from++) {
        int same = 0, all = 0;
        for (int r = 0; r < rows; r++) {
            all += in[r];
            same += in[r] && l->by_columns[(size_t)((r * D + d) * D + from)];
        }
        if (same * 10 < all * 9)
            continue;
        if (found >= 0)
            return -1;
        found = from;
    }
    return found;
}

/* A map of columns, all or some: one that is the same for their numbers counted through the rows. */
static double fit_columns(const struct pair *pairs, size_t n, const struct term *only, int D, struct rule *rule)
{
    struct pair own[MAX_COLUMNS];
    struct map map = {.kind = MAP_SAME};
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        const bool in = term_holds(only, pairs[i].from);
        if (!in && pairs[i].from != pairs[i].to)
            return INFINITY;
        if (in)
            own[m++] = pairs[i];
    }
    const double cost = m >= 4 ? map_fit(own, m, D, &map) : INFINITY;
    if (!(cost < INFINITY) || (map.kind != MAP_PLUS && map.kind != MAP_ROTATED && map.kind != MAP_BITS))
        return INFINITY;
    rule->map = map;
    return cost;
}

/* Rows whose columns are others, set apart from those that are as they should be; or columns. */
static void try_columns(struct lookup *l)
{
    const struct sample_tile *t = &l->search->sample->tiles[0];
    const int block = lookup_block(l, t), D = oracle_dim(t->c, l->operand);
    struct pair pairs[MAX_COLUMNS];
    struct rule rule = rule_new(RULE_ROWS), best = rule;
    struct term rows = {.axis = AXIS_ROW};
    uint8_t *sides = l->by_columns ? search_room(l->search, 2 * (size_t)block) : NULL,
            *out = sides ? sides + block : NULL;
    size_t n = 0;
    best.cost = INFINITY;
    for (int r = 0; sides && r < block; r++) {
        int own = 0;
        for (int d = 0; d < D; d++)
            own += l->by_columns[(size_t)((r * D + d) * D + d)];
        if (l->by_columns[(size_t)block * (size_t)D * (size_t)D + (size_t)r])
            (own * 10 >= D * 9 ? out : sides)[r] = 1;
    }
    const double bits = sides ? term_fit(sides, out, block, &rows) : INFINITY;
    for (int d = 0; d < D && D <= MAX_COLUMNS && sides && bits < INFINITY; d++) {
        const int from = column_of(l, sides, block, D, d);
        if (from >= 0)
            pairs[n++] = (struct pair){d, from};
    }
    rule.rows.operand = rule.rows.tensor = l->operand;
    rule.rows.span = 1;
    rule.rows.partly = rows.condition != EVERY;
    rule.rows.only = rows;
    for (int a = 1; a <= D && n * 10 >= (size_t)D * 8 && (a == 1 || !rule.rows.partly); a *= 2)
        for (int upper = 0; upper < (a > 1 ? 2 : 1); upper++) {
            const struct term only = {AXIS_COL, a == 1 ? EVERY : upper ? UPPER : LOWER, a, 0};
            struct rule part = rule;
            part.cost = 6 + bits + 3 * (a > 1) + fit_columns(pairs, n, &only, D, &part);
            if (a > 1) {
                part.rows.partly = true;
                part.rows.only = only;
            }
            if (part.cost < best.cost)
                best = part;
        }
    while (best.map.kind == MAP_BITS && 1 << best.map.bits < block << map_bits_for(D) &&
           best.map.bits < MAP_BIT_COUNT) {
        best.map.row[best.map.bits] = 1u << best.map.bits;
        best.map.bits++;
    }
    if (best.cost < INFINITY)
        rule_try(l->search, &best);
}

/* A matrix that was solved for: pieces of rows that the equations determine. */
static void look_up_solved(struct lookup *l, int tile, const double *x, int n, const unsigned char *known, double off)
{
    const int D = l->span * l->pieces, step = 1 + n * l->pieces / (LOOKED_UP / 4);
    look_up_columns(l, tile, x, n, known, off);
    for (int r = 0; r < n; r++)
        for (int p = (step - r * l->pieces % step) % step; p < l->pieces && known[r]; p += step)
            look_up(l, tile, r, p,
                    &(struct wanted_piece){x + (size_t)r * (size_t)D + (size_t)p * (size_t)l->span, off, DTYPE_F32});
}

static void look_up_operand_solved(struct lookup *l, int tile)
{
    const struct sample_tile *t = &l->search->sample->tiles[tile];
    const int n = l->operand == asc_q ? t->rows : t->x.cols;
    double *x = search_room(l->search, (size_t)n * (size_t)oracle_dim(t->c, l->operand) * sizeof *x);
    unsigned char *known = search_room(l->search, (size_t)n);
    if (x && known && solve_operand(l->search, l->operand, tile, x, known))
        look_up_solved(l, tile, x, n, known, 0.05);
}

/* Lines of a tile that are looked for, each with the first of its wrong scores: most rows do not give even that. */
enum { LINES = 24 };

struct wanted_lines {
    int n, line[LINES];
    double off[LINES], open[LINES];        /* what a row must make up for, and how nearly */
    double (*own)[LINES], (*other)[LINES]; /* [elements] the lines as they are; what is multiplied with each */
};

static void take_lines(const struct sample_tile *t, enum asc_channel operand, struct wanted_lines *w)
{
    const bool is_k = operand == asc_k;
    const int D = t->c->head_dim, n = is_k ? t->cols : t->rows, across = is_k ? t->rows : t->cols;
    for (int j = 0; j < n; j += 1 + n / LINES) {
        w->line[w->n] = j;
        w->open[w->n] = -1; /* without a wrong score it is no row's */
        for (int k = 0; k < across && w->open[w->n] < 0; k++) {
            const size_t at = is_k ? (size_t)k * (size_t)t->cols + (size_t)j : (size_t)j * (size_t)t->cols + (size_t)k;
            if (!is_wrong_number(t, at))
                continue;
            for (int d = 0; d < D; d++) {
                w->own[d][w->n] = t->x.of[operand].value[j * D + d];
                w->other[d][w->n] = t->x.of[is_k ? asc_q : asc_k].value[k * D + d];
            }
            w->off[w->n] = t->got[at] - t->want[at];
            w->open[w->n] = 4 * t->bound[at] + 1e-6 * fabs(t->got[at]);
        }
        w->n++;
    }
}

/* Whether a row gives the first score of each line: summed in the order of row_gives_scores(), of all lines at once. */
VECTOR_UNITS static void gives_first(const struct wanted_lines *w, const double *row, int D, double factor, bool *gives)
{
    double moved[LINES] = {0};
    for (int d = 0; d < D; d++)
        for (int i = 0; i < LINES; i++)
            moved[i] += w->other[d][i] * (row[d] - w->own[d][i]);
    for (int i = 0; i < LINES; i++)
        gives[i] = !(fabs(w->off[i] - factor * moved[i]) > w->open[i]);
}

/* Where there are too few rows to solve for an operand, a score still names its row: of 4 rows of Q the products with a
   K row are four numbers, which no other K row gives. */
static void look_up_lines(struct lookup *l, int tile)
{
    const struct sample_tile *t = &l->search->sample->tiles[tile];
    const int D = t->c->head_dim, own = head_of(l->search, t, l->operand);
    const double factor = values_factor(t->c->conventions.s_unit, t->c->scale) / values_fold(t->c);
    const enum asc_channel tensors[] = {l->operand, l->operand == asc_k ? asc_v : asc_k};
    struct wanted_lines w = {.own = search_room(l->search, 2 * (size_t)D * sizeof *w.own)};
    struct found found[LINES];
    int times[LINES] = {0}, ended = 0; /* rows of where the last line's search has ended */
    bool gives[LINES];
    if (t->x.scales_s || t->c->softcap > 0 || !w.own)
        return;
    w.other = w.own + D;
    take_lines(t, l->operand, &w);
    for (int i = -1; i < count_sources(l->search, l->operand); i++) {
        for (int k = 0; k < 2; k++) {
            if (i == own || !lookup_load(l, tensors[k], i < 0 ? own : i))
                continue;
            for (int row = 0; row < l->n_rows; row++) {
                const double *x = l->rows + (size_t)row * (size_t)D;
                gives_first(&w, x, D, factor, gives);
                for (int j = 0; j < w.n; j++) {
                    if (!gives[j] || times[j] == 2 || !row_gives_scores(t, l->operand, w.line[j], x))
                        continue;
                    if (++times[j] == 2 && j == w.n - 1)
                        ended = l->n_rows;
                    found[j] = (struct found){
                        .tile = tile, .row = w.line[j], .tensor = tensors[k], .head = l->head, .from_row = row};
                }
            }
        }
    }
    l->n_rows = ended ? ended : l->n_rows;
    for (int j = 0; j < w.n; j++)
        if (times[j] == 1 && l->n < FOUND_MOST)
            l->found[l->n++] = found[j];
}

static void look_up_operand(struct search *search, enum asc_channel operand, void (*look)(struct lookup *l, int tile))
{
    enum { TILES = 6 };
    struct lookup *l = search_room(search, sizeof *l);
    const struct sample *s = search->sample;
    int tiles = 0;
    if (!l)
        return;
    l->search = search;
    l->operand = operand;
    l->span = piece_elements(&s->tiles[0], operand);
    l->pieces = oracle_dim(s->tiles[0].c, operand) / l->span;
    if (oracle_dim(s->tiles[0].c, operand) % l->span == 0) {
        if (!look)
            look_up_captured(l);
        for (int k = 0; look && k < s->n && tiles < TILES; k++)
            if (wrong_cells(&s->tiles[k]) >= 8) {
                look(l, k);
                tiles++;
            }
        if (l->n) {
            try_maps(l);
            try_pitch(l);
        }
        if (search->best.kind == RULE_NONE || search->best.evidence.share < 0.9999)
            try_columns(l);
    }
}

/* Pages of rows side by side that are taken for pages of heads, and the other way round. */
static void try_pages(struct search *search, enum asc_channel operand)
{
    const int size = search->page_size, heads = search->kv_heads;
    for (int way = 0; way < 2 && size > 1 && heads > 1; way++) {
        struct rule rule = rule_new(RULE_ROWS);
        rule.rows.operand = rule.rows.tensor = operand;
        rule.rows.whole = rule.rows.paged = true;
        rule.map = (struct map){.kind = MAP_TURNED, .a = way ? heads : size, .b = way ? size : heads};
        rule.cost = 8;
        rule_try(search, &rule);
    }
}

void propose_rows(struct search *search)
{
    const enum asc_channel stage = search->sample->channel;
    const struct rule *best = &search->best;
    if (stage <= asc_v) {
        if (search_part(search))
            look_up_operand(search, stage, NULL);
        if (search_part(search) && (best->kind == RULE_NONE || best->evidence.share < 0.9999))
            try_apart(search, stage);
        if (search_part(search) && stage != asc_q)
            try_longer(search, stage);
        if (search_part(search) && stage != asc_q)
            try_pages(search, stage);
        if (search_part(search) && best->kind == RULE_NONE)
            propose_usual(search, stage);
        if (search_part(search) && best->kind == RULE_NONE)
            propose_summed(search, stage);
        if (search_part(search) && best->kind == RULE_NONE)
            propose_checkered(search, stage);
    } else if (stage == asc_s) {
        if (search_part(search))
            propose_seen(search);
        if (search_part(search))
            propose_transposed(search, asc_k);
        if (search_part(search))
            look_up_operand(search, asc_k, look_up_lines);
        if (search_part(search))
            look_up_operand(search, asc_q, look_up_lines);
        if (search_part(search))
            look_up_operand(search, asc_k, look_up_operand_solved);
        if (search_part(search))
            look_up_operand(search, asc_q, look_up_operand_solved);
        if (search_part(search) && best->kind == RULE_NONE)
            propose_swizzled(search);
        if (search_part(search) && best->kind == RULE_NONE)
            propose_described(search);
        if (search_part(search) && best->kind == RULE_NONE) {
            propose_panels(search, asc_k);
            propose_panels(search, asc_q);
            propose_summed(search, asc_k);
            propose_summed(search, asc_q);
        }
        if (search_part(search) && best->kind == RULE_NONE) {
            propose_usual(search, asc_k);
            propose_pieces(search, asc_k);
        }
        if (search_part(search) && best->kind == RULE_NONE)
            propose_paired(search);
        if (search_part(search) && best->kind == RULE_NONE) {
            propose_elements(search, asc_k);
            propose_elements(search, asc_q);
        }
    } else if (stage == asc_u) {
        if (search_part(search))
            propose_transposed(search, asc_v);
        if (search_part(search))
            look_up_operand(search, asc_v, look_up_operand_solved);
        if (search_part(search) && best->kind == RULE_NONE) {
            propose_panels(search, asc_v);
            propose_summed(search, asc_v);
        }
        if (search_part(search) && best->kind == RULE_NONE) {
            propose_usual(search, asc_v);
            propose_pieces(search, asc_v);
        }
        if (search_part(search) && best->kind == RULE_NONE)
            propose_elements(search, asc_v);
    }
}
