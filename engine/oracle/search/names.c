/* Rules that have a name: points of the grammar, as the rows RULED of causes.def say. */
#include "engine/oracle/search/search.h"

#include "engine/oracle/codes.h"
#include <math.h>
#include <stdlib.h>

struct naming {
    const struct sample *sample;
    const struct sample_tile *at; /* any one: what is the same in all */
    const struct rule *rule;
    double scale;
    int causal, corners; /* corners: keys that a row sees less under the top left corner than under the other */
    bool window, lse_base2;
};

enum whose_key { FIRST_KEY, LAST_KEY };
enum which_tile { FIRST, EARLIER, NEXT };

static bool near(double x, double y)
{
    return fabs(x - y) <= 1e-6 * fabs(y);
}

static bool times(const struct naming *n, double factor)
{
    return n->rule->kind == RULE_RESULT && n->rule->entry == ENTRY_ONE && n->rule->plus == 0 &&
           near(n->rule->factor, factor);
}

static bool score_rule(const struct naming *n)
{
    return n->rule->kind == RULE_SCORE;
}

/* With a soft cap or a bias behind it, a factor of the score is none of the result. */
static bool scores_times(const struct naming *n, double factor)
{
    return times(n, factor) ||
           (score_rule(n) && n->rule->old_factor == 1 && n->rule->weight == 1 && near(n->rule->factor, factor));
}

static bool scale_rule(const struct naming *n, double power)
{
    return n->rule->kind == RULE_SCALE && n->rule->power == power;
}

/* s: Q and K. */
static bool rows_of(const struct naming *n, enum asc_channel operand)
{
    return n->rule->kind == RULE_ROWS && n->rule->rows.operand == operand;
}

static bool turned(const struct naming *n)
{
    return n->rule->kind == RULE_TURNED;
}

static bool own_tensor(const struct naming *n, enum asc_channel operand)
{
    return rows_of(n, operand) && n->rule->rows.tensor == operand;
}

static bool own_head(const struct naming *n)
{
    return n->rule->rows.head.kind == MAP_SAME && !n->rule->rows.by_query && !n->rule->rows.flat &&
           !n->rule->rows.paged;
}

static bool holds(const struct naming *n, enum asc_channel operand, enum asc_channel tensor)
{
    return rows_of(n, operand) && n->rule->rows.tensor == tensor && !n->rule->rows.lie;
}

static bool moves_head(const struct naming *n, enum asc_channel operand)
{
    return own_tensor(n, operand) && !own_head(n) && !n->rule->rows.flat && !n->rule->rows.paged;
}

/* Rows out of place within their tile. */
static bool moves_rows(const struct naming *n, enum asc_channel operand)
{
    return own_tensor(n, operand) && own_head(n) && !n->rule->rows.whole && n->rule->rows.span == 0 &&
           n->rule->map.kind != MAP_SAME && n->rule->map.kind != MAP_PLUS && n->rule->rows.tile.kind == MAP_SAME;
}

static bool of_rows(const struct naming *n)
{
    for (int i = 0; i < n->rule->region.n; i++)
        if (n->rule->region.term[i].axis == AXIS_ROW)
            return true;
    return false;
}

/* In some rows or columns of a tile alone: what a name says is more than that, but for the one that says rows. */
static bool is_partial(const struct naming *n)
{
    const struct region *region = &n->rule->region;
    bool partial = region->some_rows || n->rule->rows.partly;
    if (n->rule->kind == RULE_SCALE) /* which is one of groups of rows as it is */
        return false;
    for (int i = 0; i < region->n; i++)
        partial = partial || region->term[i].axis == AXIS_ROW || region->term[i].axis == AXIS_COL;
    return partial;
}

static int block_of(const struct naming *n, enum asc_channel operand)
{
    return operand == asc_q ? n->at->c->br : n->at->c->bc;
}

/* Rows off by one, across the edges of tiles. */
static bool shifts_rows(const struct naming *n, enum asc_channel operand)
{
    const struct map *map = &n->rule->map;
    return own_tensor(n, operand) && n->rule->rows.head.kind == MAP_SAME && n->rule->rows.span == 0 &&
           map->kind == MAP_PLUS && abs(map->a) == 1 && !of_rows(n);
}

/* When the kernel visits a kv tile; -1: never. */
static int turn_of(const struct oracle_case *c, int kv)
{
    for (int i = 0; i < c->n_visited; i++)
        if (c->order[i] == kv)
            return i;
    return c->n_visited ? -1 : kv;
}

/* The tile that rows of a sample's tile are from: the first one that lies among the keys says which it is. */
static bool moves_tile(const struct naming *n, enum asc_channel operand, enum which_tile which)
{
    const int block = block_of(n, operand), tiles = operand == asc_q ? 1 << 30 : n->at->c->kv_tiles;
    if (!own_tensor(n, operand) || !own_head(n) || shifts_rows(n, operand) ||
        (n->rule->map.kind != MAP_SAME && (!n->rule->rows.whole || n->rule->rows.span)))
        return false;
    for (int i = 0; i < n->sample->n; i++) {
        const struct sample_tile *t = &n->sample->tiles[i];
        const int own = operand == asc_q ? t->at[AXIS_Q_TILE] : t->kv;
        const int from =
            n->rule->rows.whole ? map_at(&n->rule->map, own * block) / block : map_at(&n->rule->rows.tile, own);
        if (n->rule->rows.whole && map_at(&n->rule->map, own * block + block - 1) / block != from)
            return false; /* rows of two tiles: what is off is no tile */
        if (from == own || from < 0 || from >= tiles || !region_holds(&n->rule->region, t, 0, 0))
            continue;
        const int turn = turn_of(t->c, from), now = turn_of(t->c, own);
        return which == FIRST ? from == 0 : turn >= 0 && (which == NEXT ? turn == now + 1 : turn < now);
    }
    return false;
}

/* Rows and columns are exchanged within blocks of so many; 0: no. */
static int transposes(const struct naming *n, enum asc_channel operand)
{
    const struct map *map = &n->rule->map;
    int swapped = 0;
    if (!own_tensor(n, operand) || map->kind != MAP_BITS || n->rule->rows.span != 1 || map->flip)
        return 0;
    const int low = map_bits_for(oracle_dim(n->at->c, operand));
    for (int k = 0; k < map->bits; k++) {
        const unsigned own = 1u << k, other = k < low ? own << low : own >> low;
        if (map->row[k] != own && map->row[k] != other)
            return 0;
        swapped += k < low && map->row[k] == other;
    }
    return swapped ? 1 << swapped : 0;
}

/* Pieces of a row out of place within it. */
static bool swizzles(const struct naming *n, enum asc_channel operand)
{
    const struct map *map = &n->rule->map;
    if (!own_tensor(n, operand) || map->kind != MAP_BITS || n->rule->rows.span <= 1)
        return false;
    for (int k = 0; k < map->bits; k++)
        if (n->rule->rows.span << k >= oracle_dim(n->at->c, operand) && (map->row[k] != 1u << k || map->flip >> k & 1))
            return false;
    return true;
}

/* The result's own rows, or its columns, are out of place. */
static bool places(const struct naming *n, bool rows)
{
    return n->rule->kind == RULE_PLACE && n->rule->keys.a == 0 &&
           (rows ? n->rule->col_map.kind : n->rule->map.kind) == MAP_SAME;
}

static bool sees_all(const struct naming *n)
{
    return fabs(n->rule->plus) >= SEEN_ALL;
}

/* Besides the limit that the rule says is missing: the mask's other side. */
static bool has_other_limit(const struct naming *n)
{
    const struct oracle_case *c = n->at->c;
    return n->rule->rows.hidden ? c->causal != ASC_CAUSAL_NONE || c->window_right >= 0 : c->window_left >= 0;
}

static bool sees(const struct naming *n, enum whose_key which, int more)
{
    return n->rule->kind == RULE_SEEN && n->rule->map.kind == MAP_SAME && n->rule->col_map.kind == MAP_SAME &&
           n->rule->rows.hidden == (which == FIRST_KEY) && n->rule->plus == more;
}

static bool entry_rule(const struct naming *n, enum rule_kind kind, enum entry entry)
{
    return n->rule->kind == kind && n->rule->entry == entry && n->rule->map.kind == MAP_SAME &&
           (kind == RULE_RESULT ? n->rule->power == -1 : n->rule->factor == 1 && n->rule->plus == 0);
}

/* A half, or all from a column on; or what lanes are. */
static bool keys_rule(const struct naming *n, bool by_lanes)
{
    const struct term *keys = &n->rule->keys;
    const bool halves = (keys->condition == UPPER || keys->condition == LOWER) && keys->a < n->at->c->bc;
    const bool periodic = halves || keys->condition == RESIDUE || keys->condition == NO_RESIDUE;
    return n->rule->kind == RULE_KEYS && n->rule->weight == 0 && periodic == by_lanes;
}

/* The dot product ends before head_dim. */
static bool cuts_dims(const struct naming *n)
{
    const struct term *d = &n->rule->keys;
    const int D = n->at->c->head_dim;
    return n->rule->kind == RULE_KEYS && n->sample->channel == asc_s && n->rule->weight == 0 &&
           (d->condition == FROM || (d->condition == EQUAL && d->a == D - 1) || (d->condition == UPPER && d->a == D));
}

/* Score (or m_prev) and m are both multiplied in the exponent. */
static bool exponents(const struct naming *n, double factor)
{
    return n->rule->kind == RULE_EXPONENT && near(n->rule->factor, factor) && near(n->rule->power, factor) &&
           n->rule->plus == 0;
}

static bool terms(const struct naming *n, double old, double old_power, double new, double new_power)
{
    const struct rule *r = n->rule;
    return r->kind == RULE_TERMS && r->old_factor == old && (old == 0 || r->old_power == old_power) &&
           r->new_factor == new && (new == 0 || r->new_power == new_power);
}

static bool limited(const struct naming *n, double limit)
{
    return n->rule->kind == RULE_ROUNDED && n->rule->limit == limit;
}

/* Values of an operand, or of Q, K or V itself, are moved. */
static bool moved(const struct naming *n, enum asc_channel operand)
{
    const struct rule *r = n->rule;
    const bool itself = n->sample->channel == operand && r->kind == RULE_RESULT && r->factor == 1;
    return r->plus != 0 && !r->behind_scale && (itself || (r->kind == RULE_OPERAND && r->rows.operand == operand));
}

/* So are the codes that S is the product of. */
static bool codes_moved(const struct naming *n)
{
    const bool raw = codes_use(n->at->c, asc_q) == CODES_RAW || codes_use(n->at->c, asc_k) == CODES_RAW;
    return raw && (moved(n, asc_q) || moved(n, asc_k) || moved(n, asc_s));
}

static bool reads(const struct naming *n, enum asc_channel operand)
{
    return n->rule->rows.operand == operand &&
           (n->rule->kind == RULE_HALF || (n->rule->kind == RULE_OPERAND && n->rule->reads));
}

/* And nothing else is wrong: what else there is may be why there is no number. */
static bool unguarded(const struct naming *n)
{
    return n->rule->kind == RULE_UNGUARDED && n->rule->evidence.share >= 0.9999;
}

static bool operand_limited(const struct naming *n, enum asc_channel operand)
{
    return n->rule->kind == RULE_OPERAND && n->rule->rows.operand == operand && n->rule->limit == 448;
}

static bool merges(const struct naming *n, double of_lse, double of_m)
{
    const struct rule *r = n->rule;
    return r->kind == RULE_SPLITS && r->keys.condition == EVERY && near(r->factor, of_lse) && r->power == of_m &&
           r->map.kind == MAP_SAME && r->col_map.kind == MAP_SAME &&
           (of_lse == 1 || (!r->undivided && !r->counts_empty));
}

static bool logarithm(const struct naming *n, double of_m, double of_l)
{
    return n->rule->kind == RULE_LOGARITHM && near(n->rule->factor, of_m) && near(n->rule->power, of_l) &&
           n->rule->plus == 0;
}

/* m counts as if it were in another unit: raw scores, natural ones, or those of powers of 2. */
static bool other_unit_of_m(const struct naming *n)
{
    const double units[] = {n->scale, 1, M_LN2};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            if (a != b && logarithm(n, units[a] / units[b], 1))
                return true;
    return false;
}

enum cause rule_cause(const struct sample *s, const struct rule *rule)
{
    const struct sample_tile *at = &s->tiles[0];
    const struct oracle_case *c = at->c;
    const struct naming naming = {.sample = s,
                                  .at = at,
                                  .rule = rule,
                                  .scale = codes_plain_scale(c),
                                  .causal = c->causal,
                                  .corners = c->q_len - c->kv_len,
                                  .window = c->window_left >= 0 || c->window_right >= 0,
                                  .lse_base2 = c->conventions.lse_base2},
                        *n = &naming;
    const bool partial = is_partial(n);
    if ((rule->kind == RULE_EXPONENT || rule->kind == RULE_LANES) && rule->type != DTYPE_COUNT)
        return CAUSE_NONE;
#define CAUSE(...)
#define RULED(id, name, stage, kind, condition, ...)                                                                   \
    if (s->channel == (stage) && (condition) && (!partial || CAUSE_##id == CAUSE_u_rows_not_rescaled))                 \
        return CAUSE_##id;
#define DECLARED(...)
#include "engine/oracle/causes/causes.def"
#undef DECLARED
#undef RULED
#undef CAUSE
    return CAUSE_NONE;
}
