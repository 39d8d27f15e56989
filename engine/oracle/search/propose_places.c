/* Rows, blocks and pieces of Q, K and V at places that kernels take them from most often: tried, where looking them up
   by content tells nothing or costs more. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/values.h"

/* K or V with blocks of its tile transposed: of 8 x 8, as ldmatrix with and without .trans differ; of a fragment; or
   all. */
void propose_transposed(struct search *search, enum asc_channel operand)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int rows = map_bits_for(c->bc), cols = map_bits_for(oracle_dim(c, operand));
    if (1 << rows != c->bc || 1 << cols != oracle_dim(c, operand) || rows + cols > MAP_BIT_COUNT)
        return;
    for (int swapped = 3; swapped <= rows && swapped <= cols; swapped++) {
        struct rule rule = rule_new(RULE_ROWS);
        rule.rows.operand = rule.rows.tensor = operand;
        rule.rows.span = 1;
        rule.map = map_of_bits(rows + cols);
        for (int k = 0; k < swapped; k++)
            map_exchange(&rule.map, k, k + cols);
        rule.cost = 6;
        rule_try(search, &rule);
    }
}

/* Q, K or both under another swizzle than they were stored with: piece i of row r is read at i ^ (r & mask), mask being
   the bits in which the two swizzles differ. Of both, or where inputs repeat themselves, content does not tell. */
void propose_swizzled(struct search *search)
{
    const struct sample_tile *t = &search->sample->tiles[0];
    struct rule rule = rule_new(RULE_ROWS);
    rule.rows.span = piece_elements(t, asc_k);
    const int low = map_bits_for(t->c->head_dim / rule.rows.span),
              rows = map_bits_for(t->c->br > t->c->bc ? t->c->br : t->c->bc);
    if (rule.rows.span << low != t->c->head_dim || piece_elements(t, asc_q) != rule.rows.span ||
        low + rows > MAP_BIT_COUNT)
        return;
    rule.cost = 8;
    for (int from = 0; from < low; from++) {
        rule.map = map_of_bits(low + rows);
        for (int to = from; to < low && to < rows; to++) {
            rule.map.row[to] |= 1u << (low + to);
            for (int of = asc_q; of <= asc_s; of++) {
                rule.rows.operand = rule.rows.tensor = (enum asc_channel)of;
                if (of != asc_v && !rule_is_hopeless(search, &rule))
                    rule_try(search, &rule);
            }
        }
    }
}

/* Q and K read by one wrong descriptor, or at other places of their rows than they are stored at: neither can be solved
   for. */
void propose_described(struct search *search)
{
    const struct sample_tile *t = &search->sample->tiles[0];
    struct rule rule = rule_new(RULE_ROWS);
    rule.rows.span = piece_elements(t, asc_k);
    const int pieces = t->c->head_dim / rule.rows.span;
    if (t->c->head_dim % rule.rows.span != 0 || piece_elements(t, asc_q) != rule.rows.span)
        return;
    rule.rows.operand = rule.rows.tensor = asc_s;
    rule.cost = 4 + log2(MAP_PLACES);
    for (int way = 0; way < MAP_PLACES; way++)
        if (map_place(way, pieces, &rule.map) && !rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
    if (pieces % MAP_PANEL_PIECES != 0)
        return;
    rule.cost = 4 + log2(MAP_DESCRIPTORS);
    for (int way = 0; way < MAP_DESCRIPTORS; way++)
        if (map_describe(way, pieces, &rule.map) && !rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
}

/* Panels of a tile in shared memory that are read at another distance than they lie at: that of another tile's, half or
   twice as far, or a padding of 8 rows too many or too few. */
void propose_panels(struct search *search, enum asc_channel operand)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int own = operand == asc_q ? c->br : c->bc, other = operand == asc_q ? c->bc : c->br;
    const int apart[] = {other, own / 2, own * 2, own - 8, own + 8};
    struct rule rule = rule_new(RULE_ROWS);
    rule.rows.operand = rule.rows.tensor = operand;
    rule.rows.span = piece_elements(&search->sample->tiles[0], operand);
    const int pieces = oracle_dim(c, operand) / rule.rows.span;
    rule.cost = 8;
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        rule.map = (struct map){.kind = MAP_PANELS, .a = pieces, .b = apart[i], .bits = own};
        if (pieces % MAP_PANEL_PIECES == 0 && pieces > MAP_PANEL_PIECES && apart[i] > 0 && apart[i] != own &&
            !rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
    }
}

/* Addresses under a swizzle to which a part of the piece's number is added, where it belongs into the exclusive or. */
void propose_summed(struct search *search, enum asc_channel operand)
{
    struct rule rule = rule_new(RULE_ROWS);
    rule.rows.operand = rule.rows.tensor = operand;
    rule.rows.span = piece_elements(&search->sample->tiles[0], operand);
    const int pieces = oracle_dim(search->sample->tiles[0].c, operand) / rule.rows.span;
    rule.cost = 8;
    for (int bit = 0; 1 << bit < MAP_PANEL_PIECES && pieces % MAP_PANEL_PIECES == 0; bit++) {
        rule.map = (struct map){.kind = MAP_SUMMED, .a = pieces, .b = bit};
        if (!rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
    }
}

/* Products written out by hand pair an element of Q with another one of K than its own, in one of so many. */
void propose_paired(struct search *search)
{
    enum { FURTHEST = 4, MOST_OF = 16 };
    struct rule rule = rule_new(RULE_ROWS);
    rule.rows.span = 1;
    rule.rows.partly = true;
    for (int of = 2; of <= MOST_OF && !search_is_settled(search); of *= 2)
        for (int which = 0; which < of; which++)
            for (int by = -FURTHEST; by <= FURTHEST; by++)
                for (int operand = asc_q; operand <= asc_k && by; operand++) {
                    rule.rows.operand = rule.rows.tensor = (enum asc_channel)operand;
                    rule.rows.only = (struct term){AXIS_COL, RESIDUE, of, which};
                    rule.map = (struct map){.kind = MAP_PLUS, .a = by};
                    rule.cost = 8 + 2 * log2(of);
                    if (which + by >= 0 && which + by < of && !rule_is_hopeless(search, &rule))
                        rule_try(search, &rule);
                }
}

/* 16-byte pieces out of place by one bit of the row, where there are too few rows to solve for the operand: exchanged
   with the piece's bit, as matrices of a fragment are, or flipping it, as another swizzle does. */
void propose_pieces(struct search *search, enum asc_channel operand)
{
    enum { ROW_BITS = 4 };
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int span = piece_elements(&search->sample->tiles[0], operand), block = operand == asc_q ? c->br : c->bc;
    const int pieces = map_bits_for(oracle_dim(c, operand) / span), rows = map_bits_for(block);
    for (int i = 0; i < pieces && span << pieces == oracle_dim(c, operand) && 1 << rows == block; i++)
        for (int j = 0; j < ROW_BITS && j < rows; j++)
            for (int flips = 0; flips < 2; flips++) {
                struct rule rule = rule_new(RULE_ROWS);
                rule.rows.operand = rule.rows.tensor = operand;
                rule.rows.span = span;
                rule.guess = true;
                rule.cost = 12;
                rule.map = map_of_bits(pieces + rows);
                if (flips)
                    rule.map.row[i] |= 1u << (pieces + j);
                else
                    map_exchange(&rule.map, i, pieces + j);
                rule_try(search, &rule);
            }
}

/* Whether elements of an operand at other places make the difference between what was captured and what is wanted: of a
   few that are wrong. */
static bool makes_difference(const struct sample_tile *t, const struct rule *rule)
{
    enum { TRIED = 64, ASKED = 16, FEW = 4 };
    const enum asc_channel operand = rule->rows.operand;
    const int C = t->x.cols, D = oracle_dim(t->c, operand), n = operand == asc_v ? C : D;
    const double *own = t->x.of[operand].value;
    const double *other = operand == asc_v ? t->x.pv_p.value : t->x.of[operand == asc_k ? asc_q : asc_k].value;
    const double factor =
        operand == asc_v ? t->x.times_v : values_factor(t->c->conventions.s_unit, t->c->scale) / values_fold(t->c);
    const int last = (operand == asc_q ? t->rows : C) * D;
    int asked = 0, met = 0;
    for (int i = 0; i < TRIED && asked < ASKED && (met || asked < FEW); i++) {
        const int r = (5 * i + 1) % t->rows, col = (11 * i + 3) % t->cols;
        const size_t at = (size_t)r * (size_t)t->cols + (size_t)col;
        double sum = 0;
        if (!is_wrong_number(t, at))
            continue;
        for (int k = 0; k < n; k++) {
            const int place = operand == asc_v ? k * D + col : (operand == asc_k ? col : r) * D + k;
            const int from = map_at(&rule->map, place);
            const double by = other[operand == asc_v ? r * C + k : (operand == asc_k ? r : col) * D + k];
            sum += by * ((from < last ? own[from] : 0) - own[place]);
        }
        sum *= factor * (t->x.scales_s && operand != asc_v ? t->x.by_q[r] * t->x.by_k[col] : 1);
        asked++;
        met += fabs(sum - (t->got[at] - t->want[at])) <= 4 * t->bound[at] + 1e-6 * fabs(t->got[at]);
    }
    return met * 2 > asked;
}

/* Bits of an element's number, its column below its row, that take each other's places: moves[i] says whose bit comes
   from which. */
static void try_moves(struct search *search, const struct sample_tile *t, struct rule rule, int n, const int moves[][2])
{
    for (int k = 0; k < rule.map.bits; k++)
        rule.map.row[k] = 1u << k;
    for (int i = 0; i < n; i++)
        rule.map.row[moves[i][0]] = 1u << moves[i][1];
    rule.cost = 6 + n * log2(rule.map.bits);
    if (makes_difference(t, &rule))
        rule_try(search, &rule);
}

/* Elements out of place by bits of their row and column, as bytes of a register are that are picked in another order:
   one bit of each exchanged, two of each, or three bits in turn. */
void propose_elements(struct search *search, enum asc_channel operand)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const struct sample_tile *t = NULL;
    struct rule rule = rule_new(RULE_ROWS);
    int cols = 0, rows = 0;
    while (1 << cols < oracle_dim(c, operand))
        cols++;
    while (1 << rows < (operand == asc_q ? c->br : c->bc))
        rows++;
    for (int k = 0; k < search->sample->n && !t; k++)
        if (wrong_cells(&search->sample->tiles[k]) && !search->sample->tiles[k].next_alpha)
            t = &search->sample->tiles[k];
    const int bits = rows + cols;
    if (!t || !t->x.of[operand].value || 1 << cols != oracle_dim(c, operand) || bits > MAP_BIT_COUNT ||
        (operand == asc_v ? !t->x.pv_p.value : c->softcap > 0))
        return;
    rule.rows.operand = rule.rows.tensor = operand;
    rule.rows.span = 1;
    rule.guess = true;
    rule.map = (struct map){.kind = MAP_BITS, .bits = bits};
    /* Columns of which a bit is 0, as one panel is read in the place of two; or is flipped. */
    for (int i = 0; i < 2 * cols; i++) {
        struct rule one = rule;
        one.map = map_of_bits(bits);
        one.map.row[i / 2] = i % 2 ? one.map.row[i / 2] : 0;
        one.map.flip = i % 2 ? 1u << i / 2 : 0;
        one.cost = 7 + log2(cols);
        if (makes_difference(t, &one))
            rule_try(search, &one);
    }
    for (int i = 0; i < cols; i++)
        for (int j = cols; j < bits; j++) {
            try_moves(search, t, rule, 2, (const int[][2]){{i, j}, {j, i}});
            for (int k = 0; k < bits; k++) {
                if (k > i && k < cols)
                    for (int l = cols; l < bits; l++)
                        if (l != j)
                            try_moves(search, t, rule, 4, (const int[][2]){{i, j}, {j, i}, {k, l}, {l, k}});
                /* Of two columns and a row, or of a column and two rows, each turn once. */
                if ((k < cols ? k != i : k > j)) {
                    try_moves(search, t, rule, 3, (const int[][2]){{i, j}, {j, k}, {k, i}});
                    if (k >= cols)
                        try_moves(search, t, rule, 3, (const int[][2]){{i, k}, {k, j}, {j, i}});
                }
            }
        }
}

/* Rows of a tile one on or one back, round 8, 16, ... of them, or with a bit of their number flipped. */
static void propose_turned(struct search *search, struct rule rule, int block)
{
    for (int size = 2; size <= block; size *= 2)
        for (int way = 0; way < 3; way++) {
            rule.map = (struct map){.kind = MAP_ROTATED, .a = way ? size - 1 : 1, .b = size};
            if (way == 2) {
                rule.map = map_of_bits(map_bits_for(block));
                rule.map.flip = (unsigned)size / 2;
            }
            if ((way == 2 || size > 2) && !rule_is_hopeless(search, &rule))
                rule_try(search, &rule);
        }
}

/* The places that kernels take rows from most often, where inputs that repeat themselves do not tell by content. */
void propose_usual(struct search *search, enum asc_channel operand)
{
    const struct map usual[] = {{.kind = MAP_PLUS, .a = -1},
                                {.kind = MAP_PLUS, .a = 1},
                                {.kind = MAP_FIXED, .a = 0},
                                {.kind = MAP_PLUS, .a = -2}};
    enum { USUAL = sizeof usual / sizeof usual[0] };
    struct rule rule = rule_new(RULE_ROWS);
    rule.rows.operand = rule.rows.tensor = operand;
    rule.guess = true;
    rule.cost = 8;
    for (int i = 0; i < USUAL; i++) {
        struct rule of_tile = rule, of_head = rule, of_rows = rule;
        of_tile.rows.tile = of_head.rows.head = of_rows.map = usual[i];
        of_rows.rows.whole = true;
        rule_try(search, &of_tile);
        rule_try(search, &of_head);
        if (usual[i].kind == MAP_PLUS)
            rule_try(search, &of_rows);
    }
    if (search->sample->channel >= asc_s)
        propose_turned(search, rule,
                       operand == asc_q ? search->sample->tiles[0].c->br : search->sample->tiles[0].c->bc);
    rule.rows.tensor = operand == asc_v ? asc_k : asc_v;
    rule_try(search, &rule);
    /* Columns exchanged in pairs, in pairs of two, ..: codes have too few values to be told by content. */
    for (int i = 0; 2 << i <= oracle_dim(search->sample->tiles[0].c, operand) && search->sample->channel == operand;
         i++) {
        struct rule place = rule_new(RULE_PLACE);
        place.guess = true;
        place.cost = 10;
        place.col_map = map_of_bits(map_bits_for(oracle_dim(search->sample->tiles[0].c, operand)));
        place.col_map.flip = 1u << i;
        rule_try(search, &place);
    }
}

/* Neighbors of Q, K or V that are exchanged where a bit of the row and one of the column differ, as lanes do that ask
   for another bit of their number than the one they mean. */
void propose_checkered(struct search *search, enum asc_channel operand)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    struct rule rule = rule_new(RULE_ROWS);
    const int cols = map_bits_for(oracle_dim(c, operand)), rows = map_bits_for(operand == asc_q ? c->br : c->bc);
    if (1 << cols != oracle_dim(c, operand) || rows + cols > MAP_BIT_COUNT)
        return;
    rule.rows.operand = rule.rows.tensor = operand;
    rule.rows.span = 1;
    rule.cost = 4 + log2(cols * cols * rows);
    for (int i = 0; i < cols; i++)
        for (int k = 0; k < cols; k++)
            for (int j = 0; j < rows; j++) {
                rule.map = map_of_bits(rows + cols);
                rule.map.row[i] |= 1u << k | 1u << (cols + j);
                if (k != i && !rule_is_hopeless(search, &rule))
                    rule_try(search, &rule);
            }
}
