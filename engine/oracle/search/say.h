/* Parts of sentences: each adds to what `out` has. */
#ifndef SEARCH_SAY_H
#define SEARCH_SAY_H

#include "engine/oracle/search/rule.h"

void say_add(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What a condition is of: "rows with r mod 4 >= 2". */
struct noun {
    const char *one, *many, *letter;
};
void say_condition(const struct term *t, const struct noun *noun, char *out, size_t bytes);
/* Of what a stage sums, the keys or the elements of Q and K, those that the condition holds of. */
void say_summed(const struct sample *s, const struct term *of, char *out, size_t bytes);
/* Of the elements of ch. */
void say_term(const struct sample *s, enum asc_channel ch, const struct term *t, char *out, size_t bytes);
/* Whether any head of the sample has more rows than a tile: keys, or queries. */
bool say_several_tiles(const struct sample *s, bool of_keys);
/* " of the tile" behind "row ..." that a map of the tile's rows gives and a map of the head's would not; else "". */
const char *say_of_tile(const struct sample *s, enum asc_channel ch, const struct map *map);

/* "bit 3 of the key is bit 4 of the row, ..." of all bits that do not stay, of an index whose lower `low` bits are
   `lower` and the others the row. */
void say_moved_bits(const struct map *map, int low, const char *lower, char *out, size_t bytes);
/* The same, or what such a map is known as: exchanged within blocks, another swizzle. */
void say_bits(const struct map *map, int low, const char *lower, char *out, size_t bytes);
/* "row r - 8 in rows with r mod 16 >= 8" where one bit of the row is the same number for all, and all others stay. */
bool say_set_bit(const struct map *map, int low, char *out, size_t bytes);

rule_says rows_say, scale_say, seen_say, weight_say;

#endif
