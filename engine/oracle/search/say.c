/* Rules in words: one template for each kind, none for a cause. */
#include "engine/oracle/search/search.h"

#include "engine/base/dtype.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/search/constant.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *out, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    if (used < bytes)
        vsnprintf(out + used, bytes - used, format, args);
    va_end(args);
}

/* What a condition is of: "rows with r mod 4 >= 2". */
struct noun {
    const char *one, *many, *letter;
};

static const struct noun axis_nouns[AXES] = {{"batch", "batches", "b"},
                                             {"head", "heads", "h"},
                                             {"q tile", "q tiles", "q"},
                                             {"kv tile", "kv tiles", "k"},
                                             {"tile visited as number", "tiles visited as number", "n"},
                                             {"row", "rows", "r"},
                                             {"column", "columns", "c"},
                                             {"row of the head", "rows of the head", "r"},
                                             {"", "", ""},
                                             {"key", "keys", "k"},
                                             {"", "", ""},
                                             {"", "", ""}};

static void say_condition(const struct term *t, const struct noun *noun, char *out, size_t bytes)
{
    switch (t->condition) {
    case EQUAL:
        add(out, bytes, "%s %d", noun->one, t->a);
        break;
    case NOT:
        add(out, bytes, "all %s but %d", noun->many, t->a);
        break;
    case FROM:
        add(out, bytes, "%s from %d on", noun->many, t->a);
        break;
    case BELOW:
        add(out, bytes, "%s below %d", noun->many, t->a);
        break;
    case WITHIN:
        add(out, bytes, "%s %d to %d", noun->many, t->a, t->b);
        break;
    case RESIDUE:
        if (t->a == 2)
            add(out, bytes, "%s %s", t->b ? "odd" : "even", noun->many);
        else
            add(out, bytes, "%s with %s mod %d = %d", noun->many, noun->letter, t->a, t->b);
        break;
    case NO_RESIDUE:
        add(out, bytes, "all %s but those with %s mod %d = %d", noun->many, noun->letter, t->a, t->b);
        break;
    case UPPER:
    case LOWER:
        if (t->a == 2)
            add(out, bytes, "%s %s", t->condition == UPPER ? "odd" : "even", noun->many);
        else
            add(out, bytes, "%s with %s mod %d %s %d", noun->many, noun->letter, t->a,
                t->condition == UPPER ? ">=" : "<", t->a / 2);
        break;
    case EVERY:
        add(out, bytes, "all %s", noun->many);
    }
}

/* Which rows, by what they see of a tile: the values of AXIS_VIEW that the condition holds for. */
static void say_view(const struct term *t, char *out, size_t bytes)
{
    static const char *const views[] = {"all of a tile that others see whole too", "all of a tile that others do not",
                                        "a part of the tile", "nothing of the tile"};
    const bool all = term_holds(t, 0) && term_holds(t, 1);
    const bool cut = !term_holds(t, 0) && term_holds(t, 1) && term_holds(t, 2);
    add(out, bytes, cut ? "tiles of which some row does not see all" : "rows that see ");
    for (int i = 0, n = 0; i < 4 && !cut; i++)
        if (term_holds(t, i) && !(all && i == 1))
            add(out, bytes, "%s%s", n++ ? " or " : "", all && i == 0 ? "all of the tile" : views[i]);
}

static void say_term(const struct term *t, char *out, size_t bytes)
{
    if (t->axis == AXIS_TURN && t->condition == EQUAL && t->a == 0)
        add(out, bytes, "the first tile visited");
    else if (t->axis == AXIS_TURN && ((t->condition == FROM && t->a == 1) || (t->condition == NOT && t->a == 0)))
        add(out, bytes, "every tile after the first one visited");
    else if (t->axis == AXIS_ROW_OF_HEAD && t->condition == EQUAL)
        add(out, bytes, "row %d of the head", t->a);
    else if (t->axis == AXIS_RISE)
        add(out, bytes, "rows whose maximum %s", term_holds(t, 1) ? "rises at this tile" : "stays as it was");
    else if (t->axis == AXIS_NEW)
        add(out, bytes, term_holds(t, 1) ? "new keys" : "keys that were in the cache");
    else if (t->axis == AXIS_VIEW)
        say_view(t, out, bytes);
    else
        say_condition(t, &axis_nouns[t->axis], out, bytes);
}

void region_say(const struct region *region, char *out, size_t bytes)
{
    out[0] = '\0';
    if (region->some_rows && region->by_alpha)
        add(out, bytes, " in rows whose α is %.4g or %s", region->alpha, region->by_alpha > 0 ? "more" : "less");
    else if (region->some_rows)
        add(out, bytes, " in some rows alone, which no region tells");
    for (int i = region->n - 1; i >= 0; i--) {
        add(out, bytes, i == region->n - 1 ? " in " : " of ");
        say_term(&region->term[i], out, bytes);
    }
}

/* "the α of row r - 8 times 2" */
static void say_entry(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char number[96], row[96];
    if (rule->entry == ENTRY_ZERO || rule->entry == ENTRY_ONE) {
        add(out, bytes, "%.6g", (rule->entry == ENTRY_ONE) * rule->factor + rule->plus);
        return;
    }
    const char *name = entry_name(s->channel, rule->entry);
    add(out, bytes, "%.*s", rule->map.kind != MAP_SAME ? (int)strcspn(name, ",") : (int)strlen(name), name);
    if (rule->map.kind != MAP_SAME) {
        map_words(&rule->map, "r", row, sizeof row);
        add(out, bytes, " of row %s", row);
    }
    if (rule->factor != 1) {
        constant_say(s->tiles[0].c, rule->factor, number, sizeof number);
        add(out, bytes, " times %s", number);
    }
    if (rule->plus != 0)
        add(out, bytes, " plus %.6g", rule->plus);
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
            add(out, bytes, ", as if kept weights %s", as_if[i].instead);
            return;
        }
}

static void say_result(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    char number[96];
    if (rule->entry != ENTRY_ONE) {
        add(out, bytes, "%s is what it should be %s ", stage, rule->power < 0 ? "divided by" : "times");
        say_entry(s, rule, out, bytes);
        return;
    }
    if (rule->factor == -1 && rule->plus == 0) {
        add(out, bytes, "%s has the wrong sign", stage);
        return;
    }
    if (rule->plus != 0) {
        constant_say(s->tiles[0].c, fabs(rule->plus), number, sizeof number);
        add(out, bytes, "%s is %s %s than it should be", stage, number, rule->plus > 0 ? "more" : "less");
        return;
    }
    constant_say(s->tiles[0].c, rule->factor, number, sizeof number);
    add(out, bytes, "%s is what it should be times %s", stage, number);
    say_dropout(s, rule->factor, out, bytes);
}

/* "bit 3 of the row", "bits 0 to 4 of the column", of an index whose lower `low` bits are `lower`. */
static void say_bit_run(int first, int last, int low, const char *lower, char *out, size_t bytes)
{
    const char *of = first < low ? lower : "row";
    const int from = first < low ? 0 : low;
    if (first == last)
        add(out, bytes, "bit %d of the %s", first - from, of);
    else
        add(out, bytes, "bits %d to %d of the %s", first - from, last - from, of);
}

/* The last bit of those from k on that come from their places just as bit k does. */
static int last_alike(const struct map *map, int low, int k)
{
    const unsigned places = (1u << low) - 1;
    int last = k;
    while (last + 1 < map->bits && last + 1 != low) {
        const unsigned row = map->row[last], next = map->row[last + 1];
        /* A run stays within the row or the column on both sides. */
        if (next != row << 1 || !row || (row & places & ~(places >> 1)) ||
            (map->flip >> (last + 1) & 1) != (map->flip >> last & 1))
            break;
        last++;
    }
    return last;
}

void say_moved_bits(const struct map *map, int low, const char *lower, char *out, size_t bytes)
{
    for (int k = 0, n = 0, behind = 0; k < map->bits; k++) {
        if (k < behind || (map->row[k] == 1u << k && !(map->flip >> k & 1)))
            continue;
        const int last = last_alike(map, low, k);
        add(out, bytes, n++ ? ", " : "");
        say_bit_run(k, last, low, lower, out, bytes);
        add(out, bytes, last > k ? " are" : " is");
        for (int i = 0, m = 0; i < map->bits; i++)
            if (map->row[k] >> i & 1) {
                add(out, bytes, m++ ? " xor " : " ");
                say_bit_run(i, i + last - k, low, lower, out, bytes);
            }
        if (map->flip >> k & 1)
            add(out, bytes, map->row[k] ? " inverted" : " 1");
        else if (!map->row[k])
            add(out, bytes, " 0");
        behind = last + 1;
    }
}

/* "row r - 8 in rows with r mod 16 >= 8" where one bit of the row is the same number for all, and all others stay. */
static bool say_set_bit(const struct map *map, int low, char *out, size_t bytes)
{
    int bit = -1;
    for (int k = 0; k < map->bits; k++) {
        if (map->row[k] == 1u << k && !(map->flip >> k & 1))
            continue;
        if (bit >= 0 || k < low || map->row[k])
            return false;
        bit = k;
    }
    if (bit < 0)
        return false;
    const bool is_one = map->flip >> bit & 1;
    const int step = 1 << (bit - low);
    add(out, bytes, "row r %c %d in rows with r mod %d %s %d", is_one ? '+' : '-', step, 2 * step,
        is_one ? "<" : ">=", step);
    return true;
}

static void say_vector(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    static const char *const roles[VECTOR_SLOTS] = {
        [SLOT_M] = "m", [SLOT_M_PREV] = "m_prev", [SLOT_ALPHA] = "α", [SLOT_L] = "l", [SLOT_SUM] = "the sum"};
    const bool before = rule->slot == SLOT_L && s->channel == asc_l;
    if (rule->type != DTYPE_COUNT) {
        add(out, bytes, "%s is rounded to %s on the way to %s", before ? "l_prev" : roles[rule->slot],
            dtype_name(rule->type), stage);
        return;
    }
    if (rule->slot == SLOT_ALPHA)
        add(out, bytes, "%s of the tiles before is rescaled by ", stage);
    else
        add(out, bytes, "%s is made with another %s: ", stage, before ? "l_prev" : roles[rule->slot]);
    if (rule->keys.a) {
        add(out, bytes, "%s of ", roles[rule->slot]);
        if (say_set_bit(&rule->map, rule->keys.a, out, bytes))
            return;
        add(out, bytes, "another row: ");
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
        add(out, bytes, "%g ", factor);
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++)
        if (powers[i].power == power)
            add(out, bytes, "%s", powers[i].words);
    add(out, bytes, "%s", of);
}

static void say_terms(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    const char *old = s->channel == asc_l ? "l_prev" : "u_prev", *fresh = s->channel == asc_l ? "Σ p" : "p v";
    add(out, bytes, "%s = ", stage);
    if (rule->old_factor != 0)
        say_coefficient(rule->old_factor, rule->old_power, old, out, bytes);
    if (rule->old_factor != 0 && rule->new_factor != 0)
        add(out, bytes, " + ");
    if (rule->new_factor != 0)
        say_coefficient(rule->new_factor, rule->new_power, fresh, out, bytes);
    if (rule->old_factor == 0 && rule->new_factor == 0)
        add(out, bytes, "0");
    else if (rule->old_factor == 0)
        add(out, bytes, ": the tiles before are dropped");
    else if (rule->new_factor == 0)
        add(out, bytes, ": this tile is not added");
    else if (rule->new_power == 0 && rule->new_factor == 1 && rule->old_power == 0)
        add(out, bytes, ": the tiles before are not rescaled");
    else if (rule->new_power == 0 && rule->old_factor == 1 && rule->old_power == 1)
        say_dropout(s, rule->new_factor, out, bytes);
}

static void say_keys(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    static const struct noun key = {"key", "keys", "c"};
    char which[96] = "";
    say_condition(&rule->keys, &key, which, sizeof which);
    const char *tiles = rule->region.n == 0 ? " of every tile" : "";
    if (rule->share > 0)
        add(out, bytes, "%s is rescaled by α %s every %d keys, not once for the tile", stage,
            rule->cuts ? "behind" : "before", rule->share);
    else if (rule->new_power != 0)
        add(out, bytes, "weights of %s are rescaled by α as well on the way to %s", which, stage);
    else if (rule->weight == 0)
        add(out, bytes, "%s leaves out %s%s", stage, which, tiles);
    else
        add(out, bytes, "%s counts %s%s %g times", stage, which, tiles, rule->weight);
}

static void say_dims(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    (void)s;
    static const struct noun element = {"element", "elements", "d"};
    char which[96] = "";
    say_condition(&rule->keys, &element, which, sizeof which);
    if (rule->weight == 0)
        add(out, bytes, "the dot products leave out %s of the head dimension", which);
    else
        add(out, bytes, "the dot products count %s of the head dimension %g times", which, rule->weight);
}

/* " - 0.5 m", without the sign where it is the first and positive. */
static void say_summand(const struct sample *s, double factor, const char *name, bool first, char *out, size_t bytes)
{
    char number[96];
    if (factor == 0)
        return;
    add(out, bytes, "%s", first ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ");
    if (!name) {
        add(out, bytes, "%.6g", fabs(factor));
        return;
    }
    if (fabs(factor) != 1) {
        constant_say(s->tiles[0].c, fabs(factor), number, sizeof number);
        add(out, bytes, "%s ", number);
    }
    add(out, bytes, "%s", name);
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
        add(out, bytes, "0");
}

static void say_exponent(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    add(out, bytes, "%s = exp(", stage);
    say_sum(s, rule->factor, s->channel == asc_p ? "s" : "m_prev", -rule->power, "m", rule->plus, out, bytes);
    add(out, bytes, ")%s", rule->power == 0 ? ": m is not subtracted" : "");
}

static void say_logarithm(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const char *stage = channel_label(s->channel);
    add(out, bytes, "%s = ", stage);
    say_sum(s, rule->factor, "m", rule->power, "ln l", rule->plus, out, bytes);
}

static void say_sink(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char words[96];
    if (rule->rows.head.kind != MAP_SAME) {
        map_words(&rule->rows.head, "h", words, sizeof words);
        add(out, bytes, "the sink is that of head %s where it should be h", words);
        return;
    }
    if (rule->plus == -INFINITY) {
        add(out, bytes, "%s is made with an l that lacks the sink", channel_label(s->channel));
        return;
    }
    add(out, bytes, "the sink joins l with the weight exp(");
    say_sum(s, rule->factor, "sink", -rule->power, "m", rule->plus, out, bytes);
    add(out, bytes, ")");
}

/* How heads are counted; of one batch alone nothing tells. */
static const char *head_count_words(const struct sample *s, bool of_batch)
{
    for (int i = 0; i < s->n; i++)
        if (s->tiles[i].at[0] > 0)
            return of_batch ? " of the batch" : ", counted through the batches";
    return "";
}

static void say_scale_reading(const char *operand, enum scale_reading reading, char *out, size_t bytes)
{
    static const char *const words[SCALE_READINGS] = {
        [SCALE_AS_E4M3] = "the bits of the scales of %s are read as e4m3",
        [SCALE_AS_E5M2] = "the bits of the scales of %s are read as e5m2",
        [SCALE_AS_E8M0] = "the bits of the scales of %s are read as e8m0",
        [SCALE_AS_NUMBER] = "the bits of the scales of %s are read as whole numbers",
        [SCALE_BIAS_126] = "the scales of %s are read as 2^(code - 126), not 2^(code - 127)",
        [SCALE_BIAS_128] = "the scales of %s are read as 2^(code - 128), not 2^(code - 127)",
        [SCALE_OF_BLOCK] = "%s is used without the scale of the tensor, with that of its block alone",
        [SCALE_OF_TENSOR] = "%s is used without the scale of its block, with that of the tensor alone",
        [SCALE_TENSOR_TWICE] = "%s gets the scale of the tensor twice",
        [SCALE_BLOCK_TWICE] = "%s gets the scale of its block twice"};
    add(out, bytes, words[reading], operand);
}

static void say_scale(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct from_rows *f = &rule->rows;
    const char *operand = channel_label(f->operand), *tensor = channel_label(f->tensor);
    char words[128];
    if (f->operand == asc_s) {
        add(out, bytes, rule->power == 0 ? "Q and K are used without their scales" : "Q and K get their scales twice");
        return;
    }
    if (rule->scale_reading != SCALE_AS_IT_IS) {
        say_scale_reading(operand, rule->scale_reading, out, bytes);
        return;
    }
    if (rule->power != 1) {
        add(out, bytes, rule->power == 0 ? "%s is used without its scale" : "%s gets its scale twice", operand);
        return;
    }
    if (f->paged) {
        add(out, bytes, "%s gets the scale of another group: that of its row where it lies in its page, not of the key",
            operand);
        return;
    }
    if (f->flat && rule->map.kind == MAP_TILED) {
        add(out, bytes,
            "scales of %s are read as they lie for tensor cores, in tiles of 128 rows by 4 blocks: number "
            "r mod 32 * 16 + r / 32 mod 4 * 4 + c mod 4 of its tile, but lie row by row",
            operand);
        return;
    }
    if (f->flat && !f->whole && rule->map.kind == MAP_PITCH) {
        const bool of_group = rule->map.a == codes_of(s->tiles[0].c, f->operand)->parts;
        add(out, bytes, "scales of %s are read as if a %s had %d %s%s, not %d", operand,
            of_group ? "row group" : "head", rule->map.b, of_group ? "part" : "scale", rule->map.b == 1 ? "" : "s",
            rule->map.a);
        return;
    }
    if (f->flat) {
        map_words(&rule->map, "i", words, sizeof words);
        add(out, bytes, "%s gets another scale: number %s where number i is wanted, counted through its %s", operand,
            words, f->whole ? "head, group by group" : "heads");
        return;
    }
    const bool other_head = f->head.kind != MAP_SAME || f->by_query, other_group = rule->map.kind != MAP_SAME,
               other_part = rule->col_map.kind != MAP_SAME;
    const char *whose = f->tensor != f->operand     ? tensor
                        : !other_head && other_part ? "another part of its row"
                        : !other_head               ? "another group"
                        : other_group               ? "another group and head"
                                                    : "another head";
    add(out, bytes, "%s gets the scale of %s", operand, whose);
    if (other_part) {
        map_words(&rule->col_map, "d", words, sizeof words);
        add(out, bytes, ": part %s where part d is wanted", words);
    }
    if (other_group) {
        map_words(&rule->map, "g", words, sizeof words);
        add(out, bytes, ": group %s where group g is wanted", words);
    }
    if (f->head.kind != MAP_SAME || f->by_query) {
        map_words(&f->head, "h", words, sizeof words);
        add(out, bytes, ", head %s %s h%s", words, f->by_query ? "for query head" : "where it should be",
            head_count_words(s, false));
    }
}

/* What a map of bits does to the bits of an index, of which the lower `low` are `lower` and the others the row. */
static void say_bits(const struct map *map, int low, const char *lower, char *out, size_t bytes)
{
    int swapped = 0, shift = -1;
    unsigned mask = 0, which = 0, back = 0; /* bits that come from the other half, and those that go there */
    bool swaps = map->flip == 0, swizzles = map->flip == 0;
    for (int k = 0; k < map->bits; k++) {
        const unsigned row = map->row[k], own = 1u << k, other = k < low ? own << low : own >> low;
        const unsigned from_row = (row & ~own) >> low;
        swaps = swaps && (row == own || row == other);
        if (k < low && row == other) {
            swapped++;
            which |= own;
        }
        if (k >= low && row == other)
            back |= other;
        if (row == own)
            continue;
        /* A swizzle: bit k of the column gets bit k - shift of the row. */
        swizzles = swizzles && k < low && (row & own) && row == (own | from_row << low) &&
                   __builtin_popcount(from_row) == 1 && __builtin_ctz(from_row) <= k &&
                   (shift < 0 || shift == k - __builtin_ctz(from_row));
        if (swizzles)
            shift = k - __builtin_ctz(from_row);
        mask |= from_row;
    }
    if (swaps && swapped && which == (1u << swapped) - 1 && back == which) {
        add(out, bytes, " its rows and %ss exchanged", lower);
        if (swapped < low || map->bits != 2 * low)
            add(out, bytes, " within blocks of %d x %d", 1 << swapped, 1 << swapped);
        return;
    }
    if (swizzles && mask) {
        add(out, bytes, " %s i ^ ", lower);
        if (shift)
            add(out, bytes, "%d ", 1 << shift);
        add(out, bytes, "(row & %u)", mask);
        add(out, bytes, " where %s i is wanted: another swizzle", lower);
        return;
    }
    add(out, bytes, " %ss out of place: ", lower);
    say_moved_bits(map, low, lower, out, bytes);
}

static int bits_of_row(const struct sample *s, enum asc_channel operand, int span)
{
    int low = 0;
    while (span << low < oracle_dim(s->tiles[0].c, operand))
        low++;
    return low;
}

static void say_rows(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct from_rows *f = &rule->rows;
    const bool both = f->operand == asc_s;
    const char *operand = both ? "Q and K" : channel_label(f->operand), *tensor = channel_label(f->tensor);
    const char *tile = f->operand == asc_q ? "q tile" : "kv tile";
    char words[160]; /* of a descriptor that is wrong in all */
    bool said = false;
    if (f->tensor == f->operand && rule->map.kind == MAP_SAME && f->tile.kind == MAP_SAME && f->head.kind == MAP_SAME) {
        add(out, bytes, "it is made of the %s that the launch was given, not of the one that was captured", operand);
        return;
    }
    add(out, bytes, "%s hold%s", operand, both ? "" : "s");
    if (f->tensor != f->operand) {
        add(out, bytes, " %s", tensor);
        said = true;
    }
    if (f->tensor != f->operand &&
        (f->shift || oracle_dim(s->tiles[0].c, f->tensor) != oracle_dim(s->tiles[0].c, f->operand)))
        add(out, bytes, ", column c + %d where column c is wanted", f->shift);
    if (rule->map.kind == MAP_BITS && f->span) {
        add(out, bytes, "%s", said ? "," : "");
        say_bits(&rule->map, bits_of_row(s, f->operand, f->span), f->span == 1 ? "column" : "16-byte piece", out,
                 bytes);
        said = true;
    } else if (rule->map.kind == MAP_PITCH && (f->span || f->flat)) {
        const int unit = f->span ? f->span : oracle_dim(s->tiles[0].c, f->operand);
        add(out, bytes, "%s rows that lie %d elements apart and are read %d apart", said ? "," : "", rule->map.a * unit,
            rule->map.b * unit);
        said = true;
    } else if (rule->map.kind == MAP_PLUS && f->span && f->whole) {
        const int by = rule->map.a * f->span;
        add(out, bytes, "%s, row after row, the element %d %s the one that is wanted", said ? "," : "", abs(by),
            by < 0 ? "before" : "behind");
        said = true;
    } else if (rule->map.kind == MAP_PLUS && f->span == 1) {
        map_words(&rule->map, "c", words, sizeof words);
        add(out, bytes, "%s column %s where column c is wanted", said ? "," : "", words);
        said = true;
    } else if (f->paged) {
        add(out, bytes, "%s rows with their number and their head's exchanged within a page", said ? "," : "");
        said = true;
    } else if (rule->map.kind == MAP_TURNED && f->flat) {
        add(out, bytes, "%s rows with their number and their head's exchanged, as in another layout", said ? "," : "");
        said = true;
    } else if (rule->map.kind == MAP_DESCRIBED) {
        map_descriptor(&rule->map, words, sizeof words);
        add(out, bytes, "%s what is read of the swizzle of 128 bytes with %s", said ? "," : "", words);
        said = true;
    } else if (rule->map.kind == MAP_PLACED) {
        const char *stored, *read;
        char moves[16];
        map_places(&rule->map, &stored, &read, moves);
        add(out, bytes, "%s 16-byte pieces as if those of row r were stored at %s and read at %s, x = %s",
            said ? "," : "", stored, read, moves);
        said = true;
    } else if (rule->map.kind != MAP_SAME) {
        map_words(&rule->map, f->span ? "i" : "r", words, sizeof words);
        if (f->span)
            add(out, bytes, "%s 16-byte piece %s where piece i is wanted, counted through the rows", said ? "," : "",
                words);
        else
            add(out, bytes, "%s row %s%s where row r is wanted", said ? "," : "", words,
                f->flat    ? " of the tensor"
                : f->whole ? " of the head"
                           : "");
        said = true;
    }
    if (f->tile.kind != MAP_SAME) {
        map_words(&f->tile, "t", words, sizeof words);
        add(out, bytes, "%s %s %s where %s t is wanted", said ? ", of" : " that of", tile, words, tile);
        said = true;
    }
    if (f->head.kind != MAP_SAME || f->by_query) {
        map_words(&f->head, "h", words, sizeof words);
        add(out, bytes, "%s %shead %s %s h%s", said ? ", of" : " that of", f->tensor == asc_q ? "" : "kv ", words,
            f->by_query ? "for query head" : "where it should be", head_count_words(s, f->of_batch));
    }
    if (f->partly) {
        add(out, bytes, " in its ");
        say_term(&f->only, out, bytes);
    }
}

static void say_seen(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    (void)s;
    char words[128];
    const char *limit = rule->rows.hidden ? "first" : "last";
    if (rule->col_map.kind == MAP_BITS) {
        add(out, bytes, "the mask takes its columns for other keys: ");
        say_moved_bits(&rule->col_map, rule->col_map.bits, "key", out, bytes);
        return;
    }
    if (rule->col_map.kind != MAP_SAME) {
        map_words(&rule->col_map, "c", words, sizeof words);
        add(out, bytes, "the mask takes column c for key %s of the tile", words);
        return;
    }
    if (fabs(rule->plus) >= SEEN_ALL) {
        add(out, bytes, "keys %s the mask's %s one are seen too: that limit is missing",
            rule->rows.hidden ? "before" : "after", limit);
        return;
    }
    if (rule->map.kind == MAP_SAME && !rule->rows.packed) {
        const int n = (int)fabs(rule->plus);
        const bool more = (rule->plus > 0) != rule->rows.hidden;
        add(out, bytes, "the mask's %s key is off by %+d: ", limit, (int)rule->plus);
        if (n == 1)
            add(out, bytes, "rows see a key too %s", more ? "many" : "few");
        else /* rows at an end of the keys have no more to see, or to lose */
            add(out, bytes, "rows see up to %d keys too %s", n, more ? "many" : "few");
        return;
    }
    map_words(&rule->map, rule->rows.packed ? "n" : "r", words, sizeof words);
    add(out, bytes, "the %s key that row r%s sees is that of row %s", limit, rule->rows.whole ? " of the head" : "",
        words);
    if (rule->rows.packed)
        add(out, bytes, ", n being r * %d + g, its place among packed rows, and g the head's number in its group",
            rule->rows.packed);
}

static void say_weight(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    (void)s;
    if (rule->map.kind == MAP_PITCH) {
        add(out, bytes, "rows of P lie %d weights apart and are read %d apart on the way to U", rule->map.a,
            rule->map.b);
        return;
    }
    add(out, bytes, "P meets V with");
    say_bits(&rule->map, rule->keys.a, "key", out, bytes);
}

static void say_unguarded(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    (void)rule;
    const char *stage = channel_label(s->channel);
    add(out, bytes, "%s is NaN %s", stage,
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
        add(out, bytes, "%s is %.6g%s", stage, rule->plus + 0.0, rule->masked ? " where -inf is wanted" : "");
        break;
    case RULE_ROUNDED:
        if (rule->limit > 0)
            add(out, bytes, "%s is cut off at %g", stage, rule->limit);
        else
            add(out, bytes, "%s is %s %s", stage, rule->cuts ? "cut off, not rounded, to" : "rounded to",
                dtype_name(rule->type));
        break;
    case RULE_PLACE:
        if (s->channel == asc_u)
            stage = "what the tile adds to U";
        if (rule->map.kind == MAP_BITS && rule->keys.a) {
            add(out, bytes, "%s holds", stage);
            say_bits(&rule->map, rule->keys.a, "column", out, bytes);
            break;
        }
        map_words(&rule->map, "r", row, sizeof row);
        map_words(&rule->col_map, "c", col, sizeof col);
        add(out, bytes, "%s holds row %s, column %s where row r, column c is wanted", stage, row, col);
        break;
    case RULE_ADDED:
        if (rule->turns)
            add(out, bytes, "to %s is added %s of the tile visited before: it is not cleared", stage,
                rule->rows.tensor == asc_p ? "the P" : "that");
        else
            add(out, bytes, "to %s is added that of %s %d before: it is not cleared", stage,
                rule->map.kind == MAP_SAME ? "the column" : "the row", -rule->map.a - rule->col_map.a);
        break;
    case RULE_STALE:
        add(out, bytes,
            s->channel >= asc_o ? "%s is that before the last tile: the last one is not in it"
                                : "%s is that of the tile visited before",
            stage);
        break;
    case RULE_CARRIED:
        add(out, bytes, "%s goes on from what the work item before has left: the state is not reset between them",
            stage);
        break;
    case RULE_IS:
        add(out, bytes, "%s is ", stage);
        say_entry(s, rule, out, bytes);
        break;
    default:
        break;
    }
}

static rule_says *const says[] = {
    [RULE_RESULT] = say_result,       [RULE_CONSTANT] = say_plain,    [RULE_UNGUARDED] = say_unguarded,
    [RULE_ROUNDED] = say_plain,       [RULE_PLACE] = say_plain,       [RULE_STALE] = say_plain,
    [RULE_ADDED] = say_plain,         [RULE_CARRIED] = say_plain,     [RULE_IS] = say_plain,
    [RULE_VECTOR] = say_vector,       [RULE_EXPONENT] = say_exponent, [RULE_LOGARITHM] = say_logarithm,
    [RULE_SINK] = say_sink,           [RULE_TERMS] = say_terms,       [RULE_KEYS] = say_keys,
    [RULE_DIMS] = say_dims,           [RULE_SCALE] = say_scale,       [RULE_WEIGHT] = say_weight,
    [RULE_ROWS] = say_rows,           [RULE_SEEN] = say_seen,         [RULE_OPERAND] = operand_say,
    [RULE_SUMMED] = sum_say,          [RULE_LANES] = lanes_say,       [RULE_SPLITS] = splits_say,
    [RULE_QUANTIZED] = quantized_say, [RULE_TURNED] = turned_say,     [RULE_FORMULA] = formula_say,
    [RULE_SCORE] = score_say,         [RULE_HALF] = half_say,         [RULE_REACH] = reach_say};

void rule_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char region[128];
    out[0] = '\0';
    if (rule->kind == RULE_NONE)
        return;
    says[rule->kind](s, rule, out, bytes);
    region_say(&rule->region, region, sizeof region);
    add(out, bytes, "%s", region);
}
