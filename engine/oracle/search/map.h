/* Index maps: where row (or column) i takes its values from. */
#ifndef SEARCH_MAP_H
#define SEARCH_MAP_H

#include <stdbool.h>
#include <stddef.h>

enum map_kind {
    MAP_SAME,
    MAP_PLUS,      /* i + a */
    MAP_CLAMPED,   /* min(i + a, b) */
    MAP_MODULO,    /* i mod a */
    MAP_QUOTIENT,  /* i / a, times b if b is not 0 */
    MAP_ROTATED,   /* (i + a) mod b */
    MAP_FIXED,     /* a */
    MAP_ONE,       /* b for a, every other one itself */
    MAP_SHARED,    /* (i + bits) / a, mod b if b is not 0 */
    MAP_MIRRORED,  /* a - i */
    MAP_PITCH,     /* i / a * b + i mod a: lines of a, taken to be b apart */
    MAP_TURNED,    /* i mod a * b + i / a within blocks of a * b: b lines of a, taken to be a lines of b */
    MAP_TILED,     /* lines of a, read as tensor cores have scales of blocks: in tiles of 128 lines by 4 */
    MAP_PLACED,    /* a pieces a row, stored at one place of their row and read at another: b is which (place_words) */
    MAP_DESCRIBED, /* a pieces a row, stored under the swizzle of 128 bytes and read by another descriptor of wgmma, b
                    */
    MAP_PANELS,    /* a pieces a row, in panels of MAP_PANEL_PIECES that lie bits rows apart and are read b apart */
    MAP_SUMMED, /* a pieces a row, stored under the swizzle of 128 bytes, piece p of row r at p ^ r mod 8, and read at
                   an address to which bits b and up of p are added, not joined by exclusive or: it may lead into the
                   next row */
    MAP_BITS    /* affine over GF(2): bit k of the result is the parity of i & row[k], times flip's bit k */
};

enum { MAP_BIT_COUNT = 16 };
/* MAP_DESCRIBED: a is a multiple of the first, b below the second; bits are the rows of one operand, 0: all; Q has the
   third. */
enum { MAP_PANEL_PIECES = 8, MAP_DESCRIPTORS = 528, MAP_DESCRIBED_ROWS = 64, MAP_PLACES = 162 };

struct map {
    enum map_kind kind;
    int a, b;
    unsigned row[MAP_BIT_COUNT], flip;
    int bits; /* of the indices; of MAP_PANELS rows; of MAP_SHARED what is added */
};

struct pair {
    int from, to; /* i, and where its values are from */
};

/* Bits that numbers below `count` have. */
int map_bits_for(int count);
/* The identity of numbers of so many bits, as a MAP_BITS to be edited; exchanges two bits of it. */
struct map map_of_bits(int bits);
void map_exchange(struct map *map, int a, int b);

int map_at(const struct map *map, int i);
bool map_equals(const struct map *map, const struct map *other);
/* The cheapest map that all pairs meet, of indices below `count`, or else a constant difference that most have; its
   cost in bits, or INFINITY. */
double map_fit(const struct pair *pairs, size_t n, int count, struct map *map);
/* The same of heads of Q, `a` of which share one of n heads: their number may be off before it is divided. */
double map_fit_shared(const struct pair *pairs, size_t count, int a, int n, struct map *map);
/* The same of pieces: a MAP_PLACED or MAP_DESCRIBED of so many a row. */
double map_fit_places(const struct pair *pairs, size_t n, int pieces, struct map *map);
/* What of MAP_PLACED is stored and read where, c being the piece and x what `moves` says. */
void map_places(const struct map *map, const char **stored, const char **read, char moves[16]);
/* The map of the way-th pair of places; whether it moves anything, and is no MAP_BITS. */
bool map_place(int way, int pieces, struct map *map);
/* The map of a descriptor; whether one thing of it alone is not as it should be. */
bool map_describe(int way, int pieces, struct map *map);
/* Of MAP_DESCRIBED, what of the descriptor is not as it should be: "k steps of 16 bytes, not 32". */
void map_descriptor(const struct map *map, char *out, size_t bytes);
/* Whether it makes bits low .. high - 1 of the index 0, and keeps all others. */
bool map_clears(const struct map *map, int *low, int *high);
/* "row r - 8", "row r / 2", "rows exchanged ..." with `name` as the index's name. */
void map_words(const struct map *map, const char *name, char *out, size_t bytes);

#endif
