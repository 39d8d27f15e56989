/* Rules in words: one template for each kind, none for a cause. */
#include "engine/oracle/search/search.h"

#include "engine/base/dtype.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/search/constant.h"
#include "engine/oracle/search/say.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "the α of row r - 8 times 2" */
static void say_entry(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char number[160], row[96];
    if (rule->entry == ENTRY_ZERO || rule->entry == ENTRY_ONE) {
        say_add(out, bytes, "%.6g", (rule->entry == ENTRY_ONE) * rule->factor + rule->plus);
        return;
    }
    const char *name = entry_name(s->channel, rule->entry);
    say_add(out, bytes, "%.*s", rule->map.kind != MAP_SAME ? (int)strcspn(name, ",") : (int)strlen(name), name);
    if (rule->map.kind != MAP_SAME) {
        map_words(&rule->map, "r", row, sizeof row);
        say_add(out, bytes, " of row %s%s", row, say_of_tile(s, s->channel, &rule->map));
    }
    if (rule->factor != 1) {
        constant_say(s->tiles[0].c, rule->factor, number, sizeof number);
        say_add(out, bytes, " times %s", number);
    }
    if (rule->plus != 0)
        say_add(out, bytes, " plus %.6g", rule->plus);
}

/* Behind a factor of P, of what a tile adds to U, or of O: what it says of dropout's. */
static void say_dropout(const struct sample *s, double factor, char *out, size_t bytes)
{
    const struct oracle_case *c = s->tiles[0].c;
    const bool at_weights = c->conventions.dropout_factor == ASC_DROPOUT_AT_WEIGHTS;
    const double kept = 1 - c->dropout;
    const struct {
        double factor;
        bool anywhere; /* also where the factor has no place: it comes in where it should not */
        const char *instead;
    } as_if[] = {{kept, false, "did not get 1 / (1 - dropout)"},
                 {kept * kept, false, "got 1 - dropout, not 1 / (1 - dropout)"},
                 {kept / c->dropout, false, "got 1 / dropout, not 1 / (1 - dropout)"},
                 {1 / kept, true, "got 1 / (1 - dropout) once more"}};
    if (!c->keep.data || (s->channel != asc_p && s->channel != asc_u && s->channel != asc_o))
        return;
    for (size_t i = 0; i < sizeof as_if / sizeof *as_if; i++)
        if (fabs(factor - as_if[i].factor) <= 1e-6 * as_if[i].factor &&
            (as_if[i].anywhere || at_weights == (s->channel != asc_o))) {
            say_add(out, bytes, ", as if kept weights %s", as_if[i].instead);
            return;
        }
}

/* Whether the stage goes on from a tile in which it was wrong: what is said of it there is of the sum it begins with.
 */
static bool goes_on(const struct sample *s)
{
    bool does = false;
    for (int i = 0; i < s->n && (s->channel == asc_l || s->channel == asc_u); i++) {
        const struct sample_tile *t = &s->tiles[i];
        does = does || (t->any_wrong && t->before >= 0 && s->tiles[t->before].any_wrong);
    }
    return does;
}

static void say_result(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    char number[160];
    if (rule->entry != ENTRY_ONE) {
        say_add(out, bytes, "%s is what it should be %s ", stage, rule->power < 0 ? "divided by" : "times");
        say_entry(s, rule, out, bytes);
        return;
    }
    if (rule->factor == -1 && rule->plus == 0) {
        say_add(out, bytes, "%s has the wrong sign", stage);
        return;
    }
    if (rule->plus != 0) {
        constant_say(s->tiles[0].c, fabs(rule->plus), number, sizeof number);
        say_add(out, bytes, "%s is %s %s than it should be", stage, number, rule->plus > 0 ? "more" : "less");
        return;
    }
    constant_say(s->tiles[0].c, rule->factor, number, sizeof number);
    say_add(out, bytes, "%s is what it should be", stage);
    if (goes_on(s))
        say_add(out, bytes, ", made of the %s that the tile before left,", stage);
    say_add(out, bytes, " times %s", number);
    say_dropout(s, rule->factor, out, bytes);
    const int lanes = s->tiles[0].c->conventions.l_lanes;
    if (s->channel == asc_l && lanes > 1 && rule->factor == lanes && lanes_have_all(s))
        say_add(out, bytes, ": each of its %d lanes has the sum of all", lanes);
}

static void say_vector(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    static const char *const roles[VECTOR_SLOTS] = {
        [SLOT_M] = "m", [SLOT_M_PREV] = "m_prev", [SLOT_ALPHA] = "α", [SLOT_L] = "l", [SLOT_SUM] = "the sum"};
    const bool before = rule->slot == SLOT_L && s->channel == asc_l;
    if (rule->type != DTYPE_COUNT) {
        say_add(out, bytes, "%s%s is rounded to %s on the way to %s", rule->power == -1 ? "1 / " : "",
                before ? "l_prev" : roles[rule->slot], dtype_name(rule->type), stage);
        return;
    }
    if (rule->slot == SLOT_ALPHA)
        say_add(out, bytes, "%s of the tiles before is rescaled by ", stage);
    else
        say_add(out, bytes, "%s is made with another %s: ", stage, before ? "l_prev" : roles[rule->slot]);
    if (rule->keys.a) {
        say_add(out, bytes, "%s of ", roles[rule->slot]);
        if (say_set_bit(&rule->map, rule->keys.a, out, bytes))
            return;
        say_add(out, bytes, "another row: ");
        say_moved_bits(&rule->map, rule->keys.a, "column", out, bytes);
        return;
    }
    say_entry(s, rule, out, bytes);
}

static void say_coefficient(double factor, double power, const char *of, char *out, size_t bytes)
{
    static const struct {
        double power;
        const char *words;
    } powers[] = {{0, ""}, {1, "α "}, {2, "α² "}, {-1, "1/α "}};
    if (factor != 1)
        say_add(out, bytes, "%g ", factor);
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++)
        if (powers[i].power == power)
            say_add(out, bytes, "%s", powers[i].words);
    say_add(out, bytes, "%s", of);
}

static void say_terms(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    const char *old = s->channel == asc_l ? "l_prev" : "u_prev", *fresh = s->channel == asc_l ? "Σ p" : "p v";
    say_add(out, bytes, "%s = ", stage);
    if (rule->old_factor != 0)
        say_coefficient(rule->old_factor, rule->old_power, old, out, bytes);
    if (rule->old_factor != 0 && rule->new_factor != 0)
        say_add(out, bytes, " + ");
    if (rule->new_factor != 0)
        say_coefficient(rule->new_factor, rule->new_power, fresh, out, bytes);
    if (rule->old_factor == 0 && rule->new_factor == 0)
        say_add(out, bytes, "0");
    else if (rule->old_factor == 0)
        say_add(out, bytes, ": the tiles before are dropped");
    else if (rule->new_factor == 0)
        say_add(out, bytes, ": this tile is not added");
    else if (rule->new_power == 0 && rule->new_factor == 1 && rule->old_power == 0)
        say_add(out, bytes, ": the tiles before are not rescaled");
    else if (rule->new_power == 0 && rule->old_factor == 1 && rule->old_power == 1)
        say_dropout(s, rule->new_factor, out, bytes);
}

void say_summed(const struct sample *s, const struct term *of, char *out, size_t bytes)
{
    static const struct noun key = {"key", "keys", "c"}, element = {"element", "elements", "d"};
    out[0] = '\0';
    say_condition(of, s->channel == asc_s ? &element : &key, out, bytes);
}

static void say_keys(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    const bool of_dims = s->channel == asc_s;
    char which[96];
    say_summed(s, &rule->keys, which, sizeof which);
    const char *tiles = of_dims                      ? " of the head dimension"
                        : rule->region.n == 0        ? " of every tile"
                        : say_several_tiles(s, true) ? " of the tile"
                                                     : "";
    const char *who = of_dims ? "the dot products" : stage, *ending = of_dims ? "" : "s";
    if (rule->share > 0) {
        say_add(out, bytes, "%s is rescaled by α %s every", stage, rule->cuts ? "behind" : "before");
        say_add(out, bytes, rule->share == 1 ? " key" : " %d keys", rule->share);
        say_add(out, bytes, ", not once for the tile");
        if (rule->map.kind != MAP_SAME)
            say_add(out, bytes, ", keys taken in the order of c with bits %d and %d exchanged",
                    __builtin_ctz(rule->map.row[map_bits_for(rule->share)]), map_bits_for(rule->share));
    } else if (rule->new_power != 0)
        say_add(out, bytes, "weights of %s are rescaled by α as well on the way to %s", which, stage);
    else if (rule->weight == 0)
        say_add(out, bytes, "%s leave%s out %s%s", who, ending, which, tiles);
    else
        say_add(out, bytes, "%s count%s %s%s %g times", who, ending, which, tiles, rule->weight);
}

static void say_operand(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const enum asc_channel of = rule->rows.operand;
    const bool both = of == asc_s && s->channel == asc_s;
    const bool coded =
        both || (of < asc_s && codes_use(s->tiles[0].c, of) == (of == s->channel ? CODES_DESCALED : CODES_RAW));
    const char *operand = both ? "Q and K" : channel_label(of), *stage = channel_label(s->channel);
    char way[32] = "", number[160], rounded[48], as[112] = "", which[96] = "", part[128] = "";
    if (rule->of_terms) {
        say_summed(s, &rule->keys, which, sizeof which);
        snprintf(part, sizeof part, " of %s%s", which,
                 s->channel == asc_s || rule->region.n > 0 ? "" : " of every tile");
    }
    constant_say(s->tiles[0].c, rule->weight, number, sizeof number);
    if (rule->weight != 1)
        snprintf(as, sizeof as, " once it is multiplied by %s", number);
    if (of != s->channel || both)
        snprintf(way, sizeof way, " on the way to %s", stage);
    if (rule->turns)
        snprintf(out, bytes, "%s is made with the %s of the tile visited %s", stage, operand,
                 rule->turns < 0 ? "before" : "next");
    else if (rule->reads && rule->cuts)
        snprintf(out, bytes, "%s%s is stored as %s and read as %s on the way to %s", operand, part,
                 dtype_name(rule->type), dtype_name((enum dtype)operand_type(s->tiles[0].c, rule->rows.operand)),
                 stage);
    else if (rule->reads)
        snprintf(out, bytes, "the bits of %s%s are read as %s%s", operand, part,
                 rule->type == DTYPE_I32  ? "bytes without a sign"
                 : rule->type == DTYPE_S8 ? "signed bytes"
                                          : dtype_name(rule->type),
                 way);
    else if (rule->factor != 1) {
        rule_rounding(rule, rounded, sizeof rounded);
        constant_say(s->tiles[0].c, rule->factor, number, sizeof number);
        snprintf(out, bytes, "%s is multiplied by %s%s%s%s", operand, number,
                 rule->type != DTYPE_COUNT ? ", and what that gives is " : "", rule->type != DTYPE_COUNT ? rounded : "",
                 way);
    } else if (rule->type != DTYPE_COUNT) {
        rule_rounding(rule, rounded, sizeof rounded);
        snprintf(out, bytes, "%s is %s%s%s", operand, rounded, as, way);
    } else if (rule->limit > 0)
        snprintf(out, bytes, "%s is cut off at %g%s", operand, rule->limit, way);
    else if (rule->behind_scale)
        snprintf(out, bytes, "the midpoint of %s's codes, %g, is taken off the scaled value, not off the code", operand,
                 rule->plus);
    else
        snprintf(out, bytes, "every %s of %s is moved by %.6g%s", coded ? "code" : "value", operand, rule->plus, way);
}

/* " - 0.5 m", without the sign where it is the first and positive. */
static void say_summand(const struct sample *s, double factor, const char *name, bool first, char *out, size_t bytes)
{
    char number[160];
    if (factor == 0)
        return;
    say_add(out, bytes, "%s", first ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ");
    if (!name) {
        say_add(out, bytes, "%.6g", fabs(factor));
        return;
    }
    if (fabs(factor) != 1) {
        constant_say(s->tiles[0].c, fabs(factor), number, sizeof number);
        say_add(out, bytes, "%s ", number);
    }
    say_add(out, bytes, "%s", name);
}

/* A sum of two terms and a constant, a positive one first. */
static void say_sum(const struct sample *s, double a, const char *x, double b, const char *y, double plus, char *out,
                    size_t bytes)
{
    const bool turned = a < 0 && b > 0;
    say_summand(s, turned ? b : a, turned ? y : x, true, out, bytes);
    say_summand(s, turned ? a : b, turned ? x : y, (turned ? b : a) == 0, out, bytes);
    say_summand(s, plus, NULL, a == 0 && b == 0, out, bytes);
    if (a == 0 && b == 0 && plus == 0)
        say_add(out, bytes, "0");
}

static void say_exponent(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    if (rule->type != DTYPE_COUNT) {
        say_add(out, bytes, "the exponent of %s%s is rounded to %s%s", stage,
                rule->weight == 1 ? "" : ", a power of 2,", dtype_name(rule->type),
                rule->rounds_result ? ", and so is the power" : "");
        return;
    }
    say_add(out, bytes, "%s = exp(", stage);
    say_sum(s, rule->factor, s->channel == asc_p ? "s" : "m_prev", -rule->power, "m", rule->plus, out, bytes);
    say_add(out, bytes, ")%s", rule->power == 0 ? ": m is not subtracted" : "");
}

static void say_logarithm(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    say_add(out, bytes, "%s = ", stage);
    say_sum(s, rule->factor, "m", rule->power, "ln l", rule->plus, out, bytes);
}

static void say_sink(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char words[96];
    if (rule->rows.head.kind != MAP_SAME) {
        map_words(&rule->rows.head, "h", words, sizeof words);
        say_add(out, bytes, "the sink is that of head %s where it should be h", words);
        return;
    }
    if (rule->plus == -INFINITY) {
        say_add(out, bytes, "%s is made with an l that lacks the sink", channel_label(s->channel));
        return;
    }
    say_add(out, bytes, "the sink joins l with the weight exp(");
    say_sum(s, rule->factor, "sink", -rule->power, "m", rule->plus, out, bytes);
    say_add(out, bytes, ")");
}

static void say_unguarded(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    (void)rule;
    const char *stage = channel_label(s->channel);
    say_add(out, bytes, "%s is NaN %s", stage,
            s->channel <= asc_v            ? "where all rows of a scale are zero"
            : s->channel < asc_o           ? "in rows that have seen no key"
            : s->tiles[0].c->kv_splits > 1 ? "in rows that no split has a key for"
                                           : "in rows without any key");
}

/* Of kinds that a line or two are enough for. */
static void say_plain(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    char row[96], col[96];
    switch (rule->kind) {
    case RULE_CONSTANT:
        say_add(out, bytes, "%s is %.6g%s", stage, rule->plus + 0.0, rule->masked ? " where -inf is wanted" : "");
        break;
    case RULE_ROUNDED:
        rule_rounding(rule, row, sizeof row);
        if (rule->limit < 0)
            say_add(out, bytes, "%s is nowhere below %g, exp(%.4g)", stage, -rule->limit, log(-rule->limit));
        else if (rule->limit > 0)
            say_add(out, bytes, "%s is cut off at %g", stage, rule->limit);
        else
            say_add(out, bytes, "%s is %s", stage, row);
        break;
    case RULE_PLACE:
        if (s->channel == asc_u)
            stage = "what the tile adds to U";
        if (rule->map.kind == MAP_BITS && rule->keys.a) {
            say_add(out, bytes, "%s holds", stage);
            say_bits(&rule->map, rule->keys.a, "column", out, bytes);
            break;
        }
        map_words(&rule->map, "r", row, sizeof row);
        map_words(&rule->col_map, "c", col, sizeof col);
        say_add(out, bytes, "%s holds row %s%s, column %s where row r, column c is wanted", stage, row,
                say_of_tile(s, s->channel, &rule->map), col);
        break;
    case RULE_QUOTIENT:
        map_words(&rule->map, "r", row, sizeof row);
        map_words(&rule->col_map, "r", col, sizeof col);
        say_add(out, bytes, "O of row r takes U of row %s%s and l of row %s%s", row,
                say_of_tile(s, s->channel, &rule->map), col, say_of_tile(s, s->channel, &rule->col_map));
        break;
    case RULE_ADDED:
        if (rule->of_tile)
            say_add(out, bytes,
                    "what a tile adds to U is summed on top of what the tile visited before added, as where it is not "
                    "cleared");
        else if (rule->turns)
            say_add(out, bytes, "to %s is added %s of the tile visited before, as where it is not cleared", stage,
                    rule->rows.tensor == asc_p ? "the P" : "that");
        else if (rule->rows.tensor == asc_p)
            say_add(out, bytes, "to %s is added%s P of the row %d before, as where it is not cleared", stage,
                    rule->factor != 1 ? ", with the softmax scale," : "", -rule->map.a);
        else
            say_add(out, bytes, "to %s is added that of %s %d before, as where it is not cleared", stage,
                    rule->map.kind == MAP_SAME ? "the column" : "the row", -rule->map.a - rule->col_map.a);
        break;
    case RULE_STALE:
        say_add(out, bytes,
                s->channel >= asc_o ? "%s is that before the last tile: the last one is not in it"
                                    : "%s is that of the tile visited before",
                stage);
        break;
    case RULE_CARRIED:
        say_add(out, bytes, "%s goes on from what the work item before has left: the state is not reset between them",
                stage);
        break;
    case RULE_IS:
        say_add(out, bytes, "%s is ", stage);
        say_entry(s, rule, out, bytes);
        break;
    default:
        break;
    }
}

static rule_says *const says[] = {
    [RULE_RESULT] = say_result, [RULE_CONSTANT] = say_plain,    [RULE_UNGUARDED] = say_unguarded,
    [RULE_ROUNDED] = say_plain, [RULE_PLACE] = say_plain,       [RULE_STALE] = say_plain,
    [RULE_ADDED] = say_plain,   [RULE_CARRIED] = say_plain,     [RULE_IS] = say_plain,
    [RULE_VECTOR] = say_vector, [RULE_EXPONENT] = say_exponent, [RULE_LOGARITHM] = say_logarithm,
    [RULE_SINK] = say_sink,     [RULE_TERMS] = say_terms,       [RULE_KEYS] = say_keys,
    [RULE_SCALE] = scale_say,   [RULE_WEIGHT] = weight_say,     [RULE_ROWS] = rows_say,
    [RULE_SEEN] = seen_say,     [RULE_OPERAND] = say_operand,   [RULE_SUMMED] = sum_say,
    [RULE_LANES] = lanes_say,   [RULE_SPLITS] = splits_say,     [RULE_QUANTIZED] = quantized_say,
    [RULE_TURNED] = turned_say, [RULE_FORMULA] = formula_say,   [RULE_SCORE] = score_say,
    [RULE_HALF] = half_say,     [RULE_REACH] = reach_say,       [RULE_QUOTIENT] = say_plain};

void rule_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char region[128];
    out[0] = '\0';
    if (rule->kind == RULE_NONE)
        return;
    says[rule->kind](s, rule, out, bytes);
    region_say(s, &rule->region, region, sizeof region);
    say_add(out, bytes, "%s", region);
}
