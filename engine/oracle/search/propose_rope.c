/* Rules of RoPE: what else may be wrong with how Q or K is turned is tried; which position a row was turned by is
   looked for, row by row, among those that there may be. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/element.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/search/turned.h"
#include "engine/oracle/values.h"
#include <limits.h>

static struct rule plain(const struct search *search, enum asc_channel operand)
{
    struct rule rule = rule_new(RULE_TURNED);
    const struct oracle_case *c = search->sample->tiles[0].c;
    rule.rows.operand = operand;
    rule.turned = (struct turned){.by = c->rope, .angles = c->rope.kind, .signs = c->rope.kind, .times = 1};
    rule.cost = 3;
    return rule;
}

static void try_if_any(struct search *search, struct rule *rule)
{
    /* Of a cache that the kernel appends to the new keys alone may be turned otherwise. */
    if (search->sample->tiles[0].c->new_keys || !rule_is_hopeless(search, rule))
        rule_try(search, rule);
}

/* Another number of elements, of angles that go on, that begin anew for so many, or that a table gives that is read as
   if it had so many. */
static void try_dims(struct search *search, const struct rule *from)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int own = c->rope.dim, dims[] = {own, c->head_dim, own / 2, own / 4, c->head_dim / 2, c->head_dim / 4};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int how = 0; how < 4; how++) {
            struct rule rule = *from;
            const int pitches[] = {0, 0, own / 2, dims[i] / 2};
            if (dims[i] < 2 || dims[i] % 2 || dims[i] > c->head_dim || (dims[i] == own && how < 3))
                continue;
            rule.turned.by.dim = dims[i];
            rule.turned.by.base = how == 1 ? c->rope.base : pow(c->rope.base, (double)dims[i] / own);
            rule.turned.pitch = dims[i] == own ? c->head_dim / 2 : pitches[how];
            rule.cost += 5;
            if (rule.turned.pitch != own / 2 || dims[i] != own)
                try_if_any(search, &rule);
        }
}

static void try_bases(struct search *search, const struct rule *from)
{
    static const double bases[] = {10000, 100, 1000, 100000, 150000, 500000, 1000000, 5000000, 10000000};
    const struct rope *own = &from->turned.by;
    const int head_dim = search->sample->tiles[0].c->head_dim;
    for (size_t i = 0; i <= sizeof bases / sizeof *bases; i++) {
        struct rule rule = *from;
        rule.turned.by.base = i < sizeof bases / sizeof *bases ? bases[i] : pow(own->base, (double)own->dim / head_dim);
        rule.cost += 6;
        if (rule.turned.by.base != own->base)
            try_if_any(search, &rule);
    }
}

/* By another multiple of the angle, or with sine and cosine exchanged. */
static void try_multiples(struct search *search, const struct rule *own)
{
    static const double times[] = {0, -1, 2, 3, 0.5, 0.25, 0.125};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct rule rule = *own;
        rule.turned.times = times[i];
        try_if_any(search, &rule);
    }
    for (int i = 0; i < 6; i++) {
        struct rule rule = *own;
        rule.turned.quarters = i % 3 == 2 ? 2 : i % 3 * 2 - 1;
        rule.turned.times = i < 3 ? -1 : 1;
        rule.cost += 2;
        try_if_any(search, &rule);
    }
}

static void try_narrow(struct search *search, const struct rule *own, enum narrow_rope what)
{
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16};
    for (int i = 0; i < 2; i++) {
        struct rule rule = *own;
        rule.turned.narrow = what;
        rule.turned.narrow_type = types[i];
        rule.cost += 2;
        rule_try(search, &rule);
    }
}

/* Pairs that are turned in place, or are others; elements that are no pairs. */
static void try_partners(struct search *search, const struct rule *own)
{
    const bool halves = own->turned.by.kind == ASC_ROPE_HALF;
    for (int reuse = REUSE_FIRST; reuse <= REUSE_SECOND; reuse++) {
        struct rule rule = *own;
        rule.turned.reuse = (enum reuse)reuse;
        try_if_any(search, &rule);
    }
    for (int partner = PARTNER_XOR; partner < PARTNERS && halves; partner++) {
        struct rule rule = *own;
        rule.turned.partner = (enum partner)partner;
        try_if_any(search, &rule);
    }
    for (int beyond = 1; beyond < (halves ? BEYOND_BY_FORMULA : BEYONDS); beyond++) {
        struct rule rule = *own;
        rule.turned.beyond = (enum beyond)beyond;
        try_if_any(search, &rule);
    }
}

/* As the other kind of RoPE has it: pairs, angles, signs. */
static void try_kinds(struct search *search, const struct rule *own)
{
    const int other = own->turned.by.kind == ASC_ROPE_HALF ? ASC_ROPE_INTERLEAVED : ASC_ROPE_HALF;
    for (int i = 1; i < 4; i++) {
        struct rule rule = *own;
        rule.turned.by.kind = i & 1 ? other : own->turned.by.kind;
        rule.turned.angles = i & 2 ? other : own->turned.by.kind;
        rule.turned.signs = rule.turned.by.kind;
        try_if_any(search, &rule);
    }
    struct rule signs = *own;
    signs.turned.signs = other;
    try_if_any(search, &signs);
}

static void try_variants(struct search *search, enum asc_channel operand)
{
    const struct rule own = plain(search, operand);
    if (search_part(search))
        try_multiples(search, &own);
    for (int what = ROPE_WIDE + 1; what < NARROW_ROPES; what++)
        if (search_part(search))
            try_narrow(search, &own, (enum narrow_rope)what);
    if (search_part(search))
        try_partners(search, &own);
    if (search_part(search))
        try_kinds(search, &own);
    if (search_part(search)) {
        try_dims(search, &own);
        try_bases(search, &own);
    }
}

/* Whether the row, turned so, is what was captured of Q or K, or gives the scores that were: all that were looked at.
 */
static bool row_fits(const struct search *search, const struct rule *rule, const struct sample_tile *t, int line,
                     const double *before, double most, double *row, double position)
{
    enum { LEAST = 3 };
    const enum asc_channel of = rule->rows.operand, stage = search->sample->channel;
    const int D = t->c->head_dim, type = values_type(t->c, of);
    const double fold = of == asc_q ? values_fold(t->c) : 1;
    int told = 0;
    turned_row(&rule->turned, &t->c->rope, position, before, D, row);
    for (int d = 0; d < D && stage == of; d++) {
        const size_t i = (size_t)line * (size_t)D + (size_t)d;
        if (t->cell[i] < CELL_SILENT &&
            !element_within(t->type, t->got[i], row[d] * fold, turned_error(&rule->turned, t->c, position) * most))
            return false;
        told += t->cell[i] == CELL_WRONG;
    }
    for (int d = 0; d < D && stage != of; d++)
        row[d] = type < 0 ? row[d] * fold : bound_round((enum dtype)type, row[d] * fold);
    if (stage != of)
        return row_gives_scores(t, of, line, row);
    return told >= LEAST;
}

enum { ROWS_LOOKED_AT = 48, NEAR = 2048, AMBIGUOUS = -1 };

/* The position from `first` to `last` that a row was turned by; *found stays as it is where there is none. */
static void look_for_position(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                              int line, int first, int last, int *found)
{
    double *before = search->rows[2], *row = search->rows[3];
    const double most = turned_row_before(t, rule->rows.operand, line, before);
    for (int p = first; p <= last && *found != AMBIGUOUS; p++)
        if (row_fits(search, rule, t, line, before, most, row, p))
            *found = *found == INT_MAX ? p : AMBIGUOUS;
}

/* Counted from 0, to beyond the last one; where positions begin far from 0, near to that as well. */
static bool find_position(const struct search *search, const struct rule *rule, const struct sample_tile *t, int line,
                          int *found)
{
    const struct oracle_case *c = t->c;
    const int longest = c->kv_len > c->q_len ? c->kv_len : c->q_len, reach = 2 * (longest < NEAR ? longest : NEAR);
    const bool far = c->k_position > reach;
    *found = INT_MAX;
    look_for_position(search, rule, t, line, 0, far ? reach : c->k_position + reach, found);
    if (far)
        look_for_position(search, rule, t, line, c->k_position - reach > reach ? c->k_position - reach : reach + 1,
                          c->k_position + reach, found);
    return *found != INT_MAX && *found != AMBIGUOUS;
}

/* Rows, and the position that each was turned by. */
struct positions {
    struct {
        int tile, line, position;
    } at[ROWS_LOOKED_AT];
    size_t n;
};

/* Whether anything is wrong in a row of Q or K, in a row or column of S. */
static bool line_is_wrong(const struct search *search, const struct rule *rule, const struct sample_tile *t, int line)
{
    const bool by_col = search->sample->channel == asc_s && rule->rows.operand == asc_k;
    const size_t cols = (size_t)t->cols, first = by_col ? (size_t)line : (size_t)line * cols, step = by_col ? cols : 1;
    const int across = by_col ? t->rows : t->cols;
    for (int i = 0; i < across; i++)
        if (t->cell[first + (size_t)i * step] == CELL_WRONG)
            return true;
    return false;
}

/* Up to `most` of its wrong lines, evenly chosen. */
static void look_at_tile(const struct search *search, const struct rule *rule, int tile, int most, struct positions *p)
{
    const struct sample_tile *t = &search->sample->tiles[tile];
    const int lines = turned_lines(search, t, rule->rows.operand);
    int wrong = 0, i = 0;
    for (int line = 0; line < lines; line++)
        wrong += line_is_wrong(search, rule, t, line);
    const int step = 1 + (wrong - 1) / most;
    for (int line = 0; line < lines && p->n < ROWS_LOOKED_AT && !search_is_stopped(search); line++)
        if (line_is_wrong(search, rule, t, line) && i++ % step == tile % step) {
            p->at[p->n].tile = tile;
            p->at[p->n].line = line;
            p->n += find_position(search, rule, t, line, &p->at[p->n].position);
        }
}

static void try_positions(struct search *search, struct rule rule)
{
    enum { TILES = 8, LEAST = 8 };
    const struct sample *s = search->sample;
    const struct oracle_case *c = s->tiles[0].c;
    const double cost = rule.cost;
    struct positions p = {.n = 0};
    int tiles = 0;
    for (int k = 0; k < s->n && tiles < TILES; k++)
        if (wrong_cells(&s->tiles[k]) >= LEAST) {
            look_at_tile(search, &rule, k, TILES, &p);
            tiles++;
        }
    if (p.n < LEAST)
        return;
    /* A map of positions; of rows, to positions, to rows, to what is added to the first key's position; of new keys. */
    for (int way = 0; way < (c->new_keys && rule.rows.operand == asc_k ? 5 : 4); way++) {
        struct pair pairs[ROWS_LOOKED_AT];
        rule.turned.by_row = way > 0;
        rule.turned.from_first = way == 2;
        rule.turned.from_key = way == 3;
        rule.turned.from_new = way == 4;
        for (size_t i = 0; i < p.n; i++) {
            int plus;
            pairs[i].from = turned_index(&rule.turned, &s->tiles[p.at[i].tile], rule.rows.operand, p.at[i].line, &plus);
            pairs[i].to = p.at[i].position - plus;
        }
        rule.cost = cost + 3 + way + map_fit(pairs, p.n, c->k_position + c->kv_len + c->q_len, &rule.map);
        if (rule.cost < INFINITY && (way == 1 || way >= 3 || rule.map.kind != MAP_SAME))
            rule_try(search, &rule);
    }
}

/* Whether a pair of the row, turned by the angle of pair `by`, is what was captured; *told: of a wrong element. */
static bool pair_fits(const struct sample_tile *t, const struct turned *how, enum asc_channel of, int line, int i,
                      int by, double *row, bool *told)
{
    const struct oracle_case *c = t->c;
    struct turned other = *how;
    double *out = row + c->head_dim;
    const double most = turned_row_before(t, of, line, row), fold = of == asc_q ? values_fold(c) : 1;
    const size_t first = (size_t)line * (size_t)c->head_dim;
    int32_t pair[2];
    int plus;
    const int position = turned_index(how, t, of, line, &plus) + plus;
    other.which = (struct map){.kind = MAP_FIXED, .a = by};
    turned_row(&other, &c->rope, position, row, c->head_dim, out);
    asc_rope_pair(how->by.kind, how->by.dim, i, pair);
    *told = false;
    for (int k = 0; k < 2; k++) {
        const size_t at = first + (size_t)pair[k];
        if (t->cell[at] >= CELL_SILENT || !element_within(t->type, t->got[at], out[pair[k]] * fold,
                                                          turned_error(how, c, position) * most * fabs(fold)))
            return false;
        *told = *told || t->cell[at] == CELL_WRONG;
    }
    return true;
}

/* The angle of another pair: which one is looked for pair by pair, in a row whose angles lie far enough apart. */
static void try_angles(struct search *search, struct rule rule, double *row)
{
    enum { PAIRS = 256, ROWS = 4 };
    const struct sample *s = search->sample;
    const int pairs = rule.turned.by.dim / 2;
    struct pair found[PAIRS];
    size_t n = 0;
    int rows = 0;
    for (int k = 0; k < s->n && rows < ROWS; k++) {
        const struct sample_tile *t = &s->tiles[k];
        int line = turned_lines(search, t, rule.rows.operand) - 1;
        if (line < 0 || !line_is_wrong(search, &rule, t, line))
            continue;
        rows++;
        for (int i = 0; i < pairs && !search_is_stopped(search); i++) {
            int by = AMBIGUOUS, fits = 0;
            for (int j = 0; j < pairs; j++) {
                bool told;
                if (pair_fits(t, &rule.turned, rule.rows.operand, line, i, j, row, &told) && ++fits && told)
                    by = j;
            }
            if (fits == 1 && by != AMBIGUOUS && n < PAIRS)
                found[n++] = (struct pair){i, by};
        }
    }
    if (n < 4)
        return;
    rule.cost += 3 + map_fit(found, n, pairs, &rule.turned.which);
    if (rule.cost < INFINITY && rule.turned.which.kind != MAP_SAME)
        rule_try(search, &rule);
}

void propose_rope(struct search *search)
{
    const enum asc_channel stage = search->sample->channel;
    const struct oracle_case *c = search->sample->tiles[0].c;
    const bool itself = stage == asc_q || stage == asc_k;
    if (stage == asc_v && c->rope.kind && c->rope.dim <= c->head_dim_v && search_part(search)) {
        struct rule rule = plain(search, asc_v);
        try_if_any(search, &rule);
    }
    const enum asc_channel operands[] = {itself ? stage : asc_q, asc_k, asc_s};
    if (!c->rope.kind || (!itself && stage != asc_s))
        return;
    for (int i = 0; i < (itself ? 1 : 3); i++)
        try_variants(search, operands[i]);
    if (!search_part(search))
        return;
    double *row =
        itself && !search_is_settled(search) ? search_room(search, 2 * (size_t)c->head_dim * sizeof *row) : NULL;
    if (row)
        try_angles(search, plain(search, stage), row);
    for (int i = 0; i < (itself ? 1 : 2) && !search_is_settled(search); i++) {
        if (!itself && (c->softcap > 0 || c->score_mod))
            continue;
        struct rule rule = plain(search, operands[i]);
        try_positions(search, rule);
        rule.turned.by.kind = rule.turned.angles = rule.turned.signs =
            c->rope.kind == ASC_ROPE_HALF ? ASC_ROPE_INTERLEAVED : ASC_ROPE_HALF;
        rule.cost += 2;
        if (!search_is_settled(search))
            try_positions(search, rule);
    }
}
