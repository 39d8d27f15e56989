/* Rules of masks, of which weights dropout keeps, and of formulas of scores: another query, key, head or sequence,
   another pitch, another operator. And of biases and distances of another place. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/codes.h"
#include "engine/oracle/weight.h"
#include <math.h>

static const int first_instead[5] = {ROW_OF_TILE, COLUMN_OF_TILE, HEAD_0, BATCH_0, INSTEADS};

/* Whether it would be another one here at all. */
static bool differs(const struct search *search, const struct formula_edit *f, int instead)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    switch ((enum instead)instead) {
    case ROW_OF_TILE:
        return c->q_len > c->br;
    case COLUMN_OF_TILE:
        return c->kv_len > c->bc;
    case LANE:
        return c->bc > 32;
    case DIAGONAL:
        return c->q_len != c->kv_len;
    case KEY_PADDED:
    case KEY_PADDED_WITHIN:
    case KEY_UNPADDED:
    case KEY_UNPADDED_WITHIN:
        return f->batches > 1 && (f->of_mask || f->of_keep);
    case PACKED_ROW:
    case KV_HEAD:
    case HEAD_OF_GROUP:
        return f->group > 1;
    case HEAD_0:
    case HEAD_BEFORE:
    case HEAD_BEHIND:
        return f->heads > 1;
    case BATCH_0:
    case BATCH_BEFORE:
    case BATCH_BEHIND:
        return f->batches > 1;
    case BATCH_FOR_HEAD:
    case HEAD_FOR_BATCH:
        return f->heads > 1 || f->batches > 1;
    default:
        return true;
    }
}

static void propose_insteads(struct search *search, struct rule rule)
{
    static const int pairs[][3] = {{0, ROW_OF_TILE, COLUMN_OF_TILE},
                                   {0, KEY_FOR_QUERY, QUERY_FOR_KEY},
                                   {0, FIRST_ROW, FIRST_COLUMN},
                                   {0, TILE_OF_QUERY, TILE_OF_KEY},
                                   {2, BATCH_FOR_HEAD, HEAD_FOR_BATCH}};
    const struct rule plain = rule;
    for (int v = 0; v < 4; v++)
        for (int k = first_instead[v]; k < first_instead[v + 1]; k++) {
            rule = plain;
            rule.formula.instead[v] = (uint8_t)k;
            if (differs(search, &rule.formula, k))
                rule_try(search, &rule);
        }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        rule = plain;
        rule.cost = plain.cost + 2;
        rule.formula.instead[pairs[i][0]] = (uint8_t)pairs[i][1];
        rule.formula.instead[pairs[i][0] + 1] = (uint8_t)pairs[i][2];
        if (differs(search, &rule.formula, pairs[i][1]))
            rule_try(search, &rule);
    }
}

static void propose_changes(struct search *search, struct rule rule, const char *formula)
{
    struct expression e;
    char why[EXPRESSION_WHY_BYTES];
    if (!formula || !*formula || expression_parse(formula, !rule.formula.of_mask, &e, why) != 0)
        return;
    rule.formula.changed = true;
    rule.cost += 3 + log2(e.n);
    for (int node = 0; node < e.n; node++)
        for (int change = 0; change < FORMULA_CHANGES; change++) {
            struct rule edit = rule;
            edit.formula.node = node;
            edit.formula.change = change;
            if (formula_has_change(&e.node[node], change))
                rule_try(search, &edit);
        }
}

/* Of a mask, or of which weights dropout keeps. */
static void propose_bytes(struct search *search, struct rule rule)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int row = (int)(rule.formula.of_keep ? c->keeps_at.row : c->masks_at.row),
              pitches[] = {c->kv_len, c->q_len, (row + 7) / 8 * 8, (row + 63) / 64 * 64, (row + 127) / 128 * 128};
    struct rule edit = rule;
    edit.formula.ignored = true;
    rule_try(search, &edit);
    edit.formula.ignored = false;
    edit.formula.inverted = true;
    rule_try(search, &edit);
    edit.formula.inverted = false;
    for (int bits = AS_BITS; bits <= AS_BITS_OF_ROWS && rule.formula.of_mask; bits++) {
        edit.formula.bits = (enum as_bits)bits;
        rule_try(search, &edit);
    }
    edit.formula.bits = AS_BYTES;
    for (size_t i = 0; i < sizeof pitches / sizeof *pitches; i++) {
        edit.formula.pitch = pitches[i];
        if (pitches[i] != row)
            rule_try(search, &edit);
    }
    propose_insteads(search, rule);
}

static struct rule formula_rule(const struct search *search)
{
    struct rule rule = rule_new(RULE_FORMULA);
    rule.cost = 5;
    rule.guess = true;
    rule.formula.heads = search->heads;
    rule.formula.group = search->heads / search->kv_heads;
    rule.formula.batches = count_sources(search, asc_q) / search->heads;
    return rule;
}

void propose_dropout(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const enum asc_channel ch = search->sample->channel;
    struct rule rule = formula_rule(search);
    rule.formula.of_keep = true;
    if (!c->keeps)
        return;
    if (ch == asc_u || (ch == asc_p && c->conventions.p_dropout == ASC_P_DROPPED))
        propose_bytes(search, rule);
    if (ch != asc_l)
        return;
    rule_try(search, &rule);
    rule.factor = dropout_factor(c);
    rule_try(search, &rule);
}

void propose_places_of_score(struct search *search, try_number *solved)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const double scale = codes_plain_scale(c), units[] = {1 / scale, scale, M_LOG2E, M_LN2};
    struct rule rule = formula_rule(search);
    if (c->masks) {
        struct rule of_mask = rule;
        of_mask.formula.of_mask = true;
        propose_bytes(search, of_mask);
        propose_changes(search, of_mask, c->mask_formula);
    }
    if (!c->score_mod)
        return;
    struct rule edit = rule;
    solved(search, &edit, &edit.weight, 1);
    edit.formula.twice = true;
    rule_try(search, &edit);
    edit.formula.twice = false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        edit.factor = units[i];
        rule_try(search, &edit);
    }
    propose_insteads(search, rule);
    propose_changes(search, rule, c->score_formula);
}

/* Whether any tile of the sample begins behind the first row, or key. */
static bool begins_later(const struct sample *s, bool rows)
{
    for (int k = 0; k < s->n; k++)
        if (rows ? s->tiles[k].at[AXIS_Q_TILE] > 0 : s->tiles[k].kv > 0)
            return true;
    return false;
}

void propose_distances(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const bool rows = begins_later(search->sample, true), cols = begins_later(search->sample, false);
    const int group = search->heads / search->kv_heads, ways = group > 1 ? 32 : 16;
    for (int i = 0; i < DISTANCES * ways; i++) {
        struct rule rule = rule_new(RULE_SCORE);
        struct places *p = &rule.places;
        *p = (struct places){.edited = true,
                             .other_corner = i & 1,
                             .row_of_tile = i >> 1 & 1,
                             .col_of_tile = i >> 2 & 1,
                             .lane = i >> 3 & 1,
                             .packed = i % ways >> 4 ? group : 0,
                             .distance = (enum distance)(i / ways)};
        rule.cost = 16; /* a factor of the slope says more simply what it says */
        rule.guess = true;
        /* One of those that say the same. */
        if (p->distance == DISTANCE_OWN || (p->other_corner && c->q_len == c->kv_len) || (p->row_of_tile && !rows) ||
            (p->col_of_tile && !cols) || (p->lane && c->bc <= 32) ||
            (p->distance == DISTANCE_KEY && (p->other_corner || p->row_of_tile || p->packed)))
            continue;
        rule_try(search, &rule);
    }
}

/* Of another row or column of the tile: a lane's second key or row takes that of the first one, or of the one beside
 * it.
 */
static void propose_bias_beside(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    struct rule rule = rule_new(RULE_SCORE);
    rule.cost = 10;
    rule.guess = true;
    for (int cols = 0; cols < 2; cols++) {
        const int bits = map_bits_for(cols ? c->bc : c->br);
        struct map *map = cols ? &rule.col_map : &rule.map;
        for (int i = 0; i < 2 * bits; i++) {
            *map = map_of_bits(bits);
            map->row[i / 2] = i % 2 ? 1u << i / 2 : 0; /* cleared, or flipped */
            map->flip = i % 2 ? 1u << i / 2 : 0;
            rule_try(search, &rule);
        }
        *map = (struct map){.kind = MAP_SAME};
    }
}

void propose_bias_places(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int steps[][2] = {{c->kv_len, 1}, {c->q_len, 1}, {1, c->kv_len}, {1, c->q_len}};
    for (int i = 0; i < 16; i++) {
        struct rule rule = rule_new(RULE_SCORE);
        rule.places = (struct places){.edited = true,
                                      .row_of_tile = i & 1,
                                      .col_of_tile = i >> 1 & 1,
                                      .row_step = steps[i / 4][0],
                                      .col_step = steps[i / 4][1]};
        rule.cost = 7;
        rule.guess = true;
        if (i > 0 && (i / 4 == 0 || i / 4 == 2 || c->q_len != c->kv_len))
            rule_try(search, &rule);
    }
    propose_bias_beside(search);
}
