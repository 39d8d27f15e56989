/* Rules of rows, scales and masks in words: which index stands where another is wanted. */
#include "engine/oracle/search/say.h"

#include "engine/oracle/codes.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>

/* "bit 3 of the row", "bits 0 to 4 of the column", of an index whose lower `low` bits are `lower`. */
static void say_bit_run(int first, int last, int low, const char *lower, char *out, size_t bytes)
{
    const char *of = first < low ? lower : "row";
    const int from = first < low ? 0 : low;
    if (first == last)
        say_add(out, bytes, "bit %d of the %s", first - from, of);
    else
        say_add(out, bytes, "bits %d to %d of the %s", first - from, last - from, of);
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

/* Where bits k to `last` change places with as many others: the first of these; -1: they do not. */
static int exchanged_with(const struct map *map, int k, int last)
{
    const int to = map->row[k] ? __builtin_ctz(map->row[k]) : k;
    for (int i = k; i <= last && to > last; i++)
        if (map->row[i] != 1u << (to + i - k) || map->row[to + i - k] != 1u << i ||
            ((map->flip >> i | map->flip >> (to + i - k)) & 1))
            return -1;
    return to > last ? to : -1;
}

void say_moved_bits(const struct map *map, int low, const char *lower, char *out, size_t bytes)
{
    unsigned said = 0;
    for (int k = 0, n = 0; k < map->bits; k++) {
        if (said >> k & 1 || (map->row[k] == 1u << k && !(map->flip >> k & 1)))
            continue;
        const int last = last_alike(map, low, k), other = exchanged_with(map, k, last);
        const unsigned run = ((2u << (last - k)) - 1) << k;
        say_add(out, bytes, n++ ? ", " : "");
        say_bit_run(k, last, low, lower, out, bytes);
        said |= run;
        if (other >= 0) {
            say_add(out, bytes, " and ");
            say_bit_run(other, other + last - k, low, lower, out, bytes);
            say_add(out, bytes, " are exchanged");
            said |= run << (other - k);
            continue;
        }
        const bool stays = map->row[k] >> k & 1 && map->row[k] != 1u << k;
        say_add(out, bytes, "%s%s", last > k ? " are" : " is", stays ? " xored with" : "");
        for (int i = 0, m = 0; i < map->bits; i++)
            if (map->row[k] >> i & 1 && !(stays && i == k)) {
                say_add(out, bytes, !m++ ? " " : stays ? " and " : " xor ");
                say_bit_run(i, i + last - k, low, lower, out, bytes);
            }
        if (map->flip >> k & 1)
            say_add(out, bytes, map->row[k] ? " inverted" : " 1");
        else if (!map->row[k])
            say_add(out, bytes, " 0");
    }
}

bool say_set_bit(const struct map *map, int low, char *out, size_t bytes)
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
    say_add(out, bytes, "row r %c %d in rows with r mod %d %s %d", is_one ? '+' : '-', step, 2 * step,
            is_one ? "<" : ">=", step);
    return true;
}

/* How heads are counted; of one batch alone nothing tells. */
static const char *head_count_words(const struct sample *s, bool of_batch)
{
    for (int i = 0; i < s->n; i++)
        if (s->tiles[i].at[0] > 0)
            return of_batch ? " of the batch" : ", counted through the batches";
    return "";
}

#define SIGN_OF_CODES                                                                                                  \
    "the scales of %s have the other sign where their codes are 128 or more, scales of 2 and more, as where a code "   \
    "that is taken with a sign is shifted to the exponent"
#define SIGNED_CODES                                                                                                   \
    "the codes of the scales of %s are taken with a sign: those of 128 and more, scales of 2 and more, become "        \
    "2^(code - 383)"

static void say_scale_reading(const char *operand, enum scale_reading reading, char *out, size_t bytes)
{
    static const char *const words[SCALE_READINGS] = {
        [SCALE_AS_E4M3] = "the bits of the scales of %s are read as e4m3",
        [SCALE_AS_E5M2] = "the bits of the scales of %s are read as e5m2",
        [SCALE_AS_E8M0] = "the bits of the scales of %s are read as e8m0",
        [SCALE_AS_NUMBER] = "the bits of the scales of %s are read as whole numbers",
        [SCALE_BIAS_126] = "the scales of %s are read as 2^(code - 126), not 2^(code - 127)",
        [SCALE_BIAS_128] = "the scales of %s are read as 2^(code - 128), not 2^(code - 127)",
        [SCALE_SIGN] = SIGN_OF_CODES,
        [SCALE_SIGNED] = SIGNED_CODES,
        [SCALE_OF_BLOCK] = "%s is used without the scale of the tensor, with that of its block alone",
        [SCALE_OF_TENSOR] = "%s is used without the scale of its block, with that of the tensor alone",
        [SCALE_TENSOR_TWICE] = "%s gets the scale of the tensor twice",
        [SCALE_BLOCK_TWICE] = "%s gets the scale of its block twice",
        [SCALE_IN_F16] = "the scales of %s are rounded to f16",
        [SCALE_IN_BF16] = "the scales of %s are rounded to bf16",
        [SCALE_IN_E4M3] = "the scales of %s are rounded to e4m3",
        [SCALE_POWER_NEAREST] = "the scales of %s are rounded to powers of 2",
        [SCALE_POWER_ABOVE] = "the scales of %s are rounded up to powers of 2",
        [SCALE_POWER_BELOW] = "the scales of %s are rounded down to powers of 2"};
    say_add(out, bytes, words[reading], operand);
}

/* Groups by parts of a head that are taken for parts by groups. */
static bool say_table(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    static const char *const orders[] = {"[part][group]", "[group][part]"};
    const struct coding *coding = codes_of(s->tiles[0].c, rule->rows.operand);
    const bool right = rule->map.a == coding->parts && rule->map.b == coding->groups;
    if (!right && (rule->map.a != coding->groups || rule->map.b != coding->parts))
        return false;
    say_add(out, bytes, "scales of %s lie as %s and are read as %s, of each head", channel_label(rule->rows.operand),
            orders[right], orders[!right]);
    return true;
}

/* "row 31 gets the scale of row 32", "as if each stood for 64 elements" */
static void say_blocks(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct blocks *by = &rule->blocks;
    const struct coding *own = codes_of(s->tiles[0].c, rule->rows.operand);
    const char *operand = channel_label(rule->rows.operand);
    const bool other_rows = by->rows != own->rows, other_dims = own->parts > 1 && by->dims != own->dims;
    if (by->row_plus || by->dim_plus) {
        const int plus = by->row_plus ? by->row_plus : by->dim_plus;
        say_add(out, bytes, "each %s of %s gets the scale of the one %d %s", by->row_plus ? "row" : "element", operand,
                abs(plus), plus > 0 ? "behind it" : "before it");
        return;
    }
    say_add(out, bytes, "scales of %s are looked up as if each stood for", operand);
    if (other_rows)
        say_add(out, bytes, " %d row%s, not %d", by->rows, by->rows == 1 ? "" : "s", own->rows);
    if (other_dims)
        say_add(out, bytes, "%s %d elements, not %d", other_rows ? ", and" : "", by->dims, own->dims);
}

void scale_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct from_rows *f = &rule->rows;
    const char *operand = channel_label(f->operand), *tensor = channel_label(f->tensor);
    char words[128];
    if (f->operand == asc_s) {
        say_add(out, bytes,
                rule->power == 0 ? "Q and K are used without their scales" : "Q and K get their scales twice");
        return;
    }
    if (rule->scale_reading != SCALE_AS_IT_IS) {
        say_scale_reading(operand, rule->scale_reading, out, bytes);
        return;
    }
    if (rule->power != 1) {
        say_add(out, bytes, rule->power == 0 ? "%s is used without its scale" : "%s gets its scale twice", operand);
        return;
    }
    if (rule->blocks.rows) {
        say_blocks(s, rule, out, bytes);
        return;
    }
    if (f->paged) {
        say_add(out, bytes,
                "%s gets the scale of another group: that of its row where it lies in its page, not of the key",
                operand);
        return;
    }
    if (f->flat && rule->map.kind == MAP_TILED) {
        say_add(out, bytes,
                "scales of %s are read as they lie for tensor cores, in tiles of 128 rows by 4 blocks: number "
                "r mod 32 * 16 + r / 32 mod 4 * 4 + c mod 4 of its tile, but lie row by row",
                operand);
        return;
    }
    if (f->flat && !f->whole && rule->map.kind == MAP_PITCH) {
        const bool of_group = rule->map.a == codes_of(s->tiles[0].c, f->operand)->parts;
        say_add(out, bytes, "scales of %s are read as if a %s had %d %s%s, not %d", operand,
                of_group ? "row group" : "head", rule->map.b, of_group ? "part" : "scale", rule->map.b == 1 ? "" : "s",
                rule->map.a);
        return;
    }
    if (f->flat && f->whole && rule->map.kind == MAP_TURNED && say_table(s, rule, out, bytes))
        return;
    if (f->flat) {
        map_words(&rule->map, "i", words, sizeof words);
        say_add(out, bytes, "%s gets another scale: number %s where number i is wanted, counted through its %s",
                operand, words, f->whole ? "head, group by group" : "heads");
        return;
    }
    const bool other_head = f->head.kind != MAP_SAME || f->by_query, other_group = rule->map.kind != MAP_SAME,
               other_part = rule->col_map.kind != MAP_SAME;
    if (f->of_first) {
        say_add(out, bytes, "%s gets the scale of the first sequence", operand);
        return;
    }
    const char *whose = f->tensor != f->operand     ? tensor
                        : !other_head && other_part ? "another part of its row"
                        : !other_head               ? "another group"
                        : other_group               ? "another group and head"
                                                    : "another head";
    say_add(out, bytes, "%s gets the scale of %s", operand, whose);
    if (other_part) {
        map_words(&rule->col_map, "d", words, sizeof words);
        say_add(out, bytes, ": part %s where part d is wanted", words);
    }
    if (other_group) {
        map_words(&rule->map, "g", words, sizeof words);
        say_add(out, bytes, ": group %s where group g is wanted", words);
    }
    if (f->head.kind != MAP_SAME || f->by_query) {
        map_words(&f->head, "h", words, sizeof words);
        say_add(out, bytes, ", head %s %s h%s", words, f->by_query ? "for query head" : "where it should be",
                head_count_words(s, false));
    }
}

void say_bits(const struct map *map, int low, const char *lower, char *out, size_t bytes)
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
        say_add(out, bytes, " its rows and %ss exchanged", lower);
        if (swapped < low || map->bits != 2 * low)
            say_add(out, bytes, " within blocks of %d x %d", 1 << swapped, 1 << swapped);
        return;
    }
    if (swizzles && mask) {
        say_add(out, bytes, " %s i ^ ", lower);
        if (shift)
            say_add(out, bytes, "%d ", 1 << shift);
        say_add(out, bytes, "(row & %u)", mask);
        say_add(out, bytes, " where %s i is wanted: another swizzle", lower);
        return;
    }
    bool moved[2] = {false, false}; /* rows, and what is within them */
    for (int k = 0; k < map->bits; k++)
        moved[k < low] = moved[k < low] || map->row[k] != 1u << k || (map->flip >> k & 1);
    const bool both = moved[0] && moved[1];
    say_add(out, bytes, " %s%s%s%s out of place: ", moved[0] ? "rows" : "", both ? " and " : "", moved[1] ? lower : "",
            moved[1] ? "s" : "");
    say_moved_bits(map, low, lower, out, bytes);
}

/* " row r - 8 where row r is wanted": what the rule's map of rows, columns or pieces does; "" where they stay. */
static void say_places(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct from_rows *f = &rule->rows;
    const struct map *map = &rule->map;
    const int dim = oracle_dim(s->tiles[0].c, f->operand), unit = f->span ? f->span : dim;
    const char *stored, *read;
    char words[160], moves[16]; /* of a descriptor that is wrong in all */
    map_words(map, f->span == 1 && map->kind == MAP_PLUS ? "c" : f->span ? "i" : "r", words, sizeof words);
    if (map->kind == MAP_BITS && f->span) {
        say_bits(map, map_bits_for(dim / f->span), f->span == 1 ? "column" : "16-byte piece", out, bytes);
    } else if (map->kind == MAP_PITCH && (f->span || f->flat)) {
        say_add(out, bytes, " rows that lie %d elements apart and are read %d apart", map->a * unit, map->b * unit);
    } else if (map->kind == MAP_PLUS && f->span && f->whole) {
        say_add(out, bytes, ", row after row, the element %d %s the one that is wanted", abs(map->a * unit),
                map->a < 0 ? "before" : "behind");
    } else if (f->paged || (map->kind == MAP_TURNED && f->flat)) {
        say_add(out, bytes, " rows with their number and their head's exchanged%s",
                f->paged ? " within a page" : ", as in another layout");
    } else if (map->kind == MAP_DESCRIBED) {
        map_descriptor(map, words, sizeof words);
        /* Steps alone give the same pieces under any swizzle: it is addresses that are swizzled. */
        const bool steps = strncmp(words, "k steps", 7) == 0 && !strstr(words, "rows") && !strstr(words, "swizzle");
        say_add(out, bytes, " what is read %swith %s", steps ? "" : "of the swizzle of 128 bytes ", words);
    } else if (map->kind == MAP_SUMMED) {
        say_add(
            out, bytes,
            "%s 16-byte piece i of row r at (i - i mod %d) + (i mod %d xor r mod 8), where it lies at i xor r mod 8",
            s->channel == f->operand ? " what is read with" : "", 1 << map->b, 1 << map->b);
    } else if (map->kind == MAP_PANELS) {
        say_add(out, bytes, " panels of %d elements that lie %d rows apart and are read %d apart",
                MAP_PANEL_PIECES * unit, map->bits, map->b);
    } else if (map->kind == MAP_PLACED) {
        map_places(map, &stored, &read, moves);
        say_add(out, bytes, " 16-byte pieces as if those of row r were stored at %s and read at %s, x = %s", stored,
                read, moves);
    } else if (map->kind == MAP_PLUS && f->span == 1) {
        say_add(out, bytes, " column %s where column c is wanted", words);
    } else if (map->kind != MAP_SAME && f->span) {
        say_add(out, bytes, " 16-byte piece %s where piece i is wanted, counted through the rows", words);
    } else if (map->kind != MAP_SAME) {
        int low, high;
        const bool clears = map_clears(map, &low, &high) && high < map->bits && low > 0;
        say_add(out, bytes, " row %s%s where row r is wanted", words,
                f->flat               ? " of the tensor"
                : f->whole && !clears ? " of the head"
                : f->whole            ? ""
                                      : say_of_tile(s, f->operand, map));
        if (clears && high == low + 1)
            say_add(out, bytes, ": rows %d to %d hold rows 0 to %d", 1 << low, (1 << high) - 1, (1 << low) - 1);
    }
}

void rows_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct from_rows *f = &rule->rows;
    const bool both = f->operand == asc_s, other = f->tensor != f->operand;
    const char *operand = both ? "Q and K" : channel_label(f->operand), *tensor = channel_label(f->tensor);
    const char *tile = f->operand == asc_q ? "q tile" : "kv tile", *from = f->tensor == asc_q ? "q tile" : "kv tile";
    char words[160], places[256] = "";
    if (f->lie) {
        say_add(out, bytes, "%s is read from rows of %s%s that lie %d elements apart, as if they lay %d apart", operand,
                other ? tensor : "its", other ? "" : " tile", f->lie, f->read);
        return;
    }
    if (!other && rule->map.kind == MAP_SAME && f->tile.kind == MAP_SAME && f->head.kind == MAP_SAME && !f->by_query) {
        say_add(out, bytes, "it is made of the %s that the launch was given, not of the one that was captured",
                operand);
        return;
    }
    say_places(s, rule, places, sizeof places);
    /* Where the operand was right at its own probe, it is not what it holds that is wrong. */
    const bool as_read = (both ? rule->map.kind == MAP_PLACED : s->channel != f->operand) && !other &&
                         places[0] == ' ' && rule->map.kind != MAP_DESCRIBED && f->tile.kind == MAP_SAME &&
                         f->head.kind == MAP_SAME && !f->by_query;
    if (as_read)
        say_add(out, bytes, "%s %s read with", operand, both ? "are" : "is");
    else
        say_add(out, bytes, "%s hold%s%s%s", operand, both ? "" : "s", other ? " " : "", other ? tensor : "");
    if (other && (f->shift || oracle_dim(s->tiles[0].c, f->tensor) != oracle_dim(s->tiles[0].c, f->operand)))
        say_add(out, bytes, ", column c + %d where column c is wanted", f->shift);
    say_add(out, bytes, "%s%s", other && places[0] == ' ' ? "," : "", places);
    bool said = other || places[0];
    if (f->tile.kind != MAP_SAME) {
        map_words(&f->tile, "t", words, sizeof words);
        say_add(out, bytes, "%s %s %s where %s t is wanted", said ? ", of" : " that of", from, words, tile);
        said = true;
    }
    if (f->head.kind != MAP_SAME || f->by_query) {
        map_words(&f->head, "h", words, sizeof words);
        say_add(out, bytes, "%s %shead %s %s h%s", said ? ", of" : " that of", f->tensor == asc_q ? "" : "kv ", words,
                f->by_query ? "for query head" : "where it should be", head_count_words(s, f->of_batch));
    }
    if (f->partly) {
        say_add(out, bytes, " in its ");
        say_term(s, f->operand, &f->only, out, bytes);
    }
}

void seen_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    (void)s;
    char words[128];
    const char *limit = rule->rows.hidden ? "first" : "last";
    if (rule->col_map.kind == MAP_BITS) {
        say_add(out, bytes, "the mask takes its columns for other keys: ");
        say_moved_bits(&rule->col_map, rule->col_map.bits, "key", out, bytes);
        return;
    }
    if (rule->col_map.kind != MAP_SAME) {
        map_words(&rule->col_map, "c", words, sizeof words);
        say_add(out, bytes, "the mask takes column c for key %s of the tile", words);
        return;
    }
    if (fabs(rule->plus) >= SEEN_ALL) {
        say_add(out, bytes, "keys %s the mask's %s one are seen too: that limit is missing",
                rule->rows.hidden ? "before" : "after", limit);
        return;
    }
    if (rule->map.kind == MAP_SAME && !rule->rows.packed) {
        const int n = (int)fabs(rule->plus);
        const bool more = (rule->plus > 0) != rule->rows.hidden;
        say_add(out, bytes, "the mask's %s key is off by %+d: ", limit, (int)rule->plus);
        if (n == 1)
            say_add(out, bytes, "rows see a key too %s", more ? "many" : "few");
        else /* rows at an end of the keys have no more to see, or to lose */
            say_add(out, bytes, "rows see up to %d keys too %s", n, more ? "many" : "few");
        return;
    }
    map_words(&rule->map, rule->rows.packed ? "n" : "r", words, sizeof words);
    say_add(out, bytes, "the %s key that row r%s sees is that of row %s", limit, rule->rows.whole ? " of the head" : "",
            words);
    if (rule->rows.packed)
        say_add(out, bytes, ", n being r * %d + g, its place among packed rows, and g the head's number in its group",
                rule->rows.packed);
}

void weight_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    if (rule->map.kind == MAP_PITCH) {
        say_add(out, bytes, "rows of P lie %d weights apart and are read %d apart on the way to U", rule->map.a,
                rule->map.b);
        return;
    }
    say_add(out, bytes, s->channel == asc_l ? "l is a sum of P with" : "P is read on the way to U with");
    say_bits(&rule->map, rule->keys.a, "key", out, bytes);
}
