#include "engine/oracle/search/map.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int parity(unsigned x)
{
    return __builtin_parity(x);
}

/* Where a piece is put in its row, or read from: x, some bits of the row, is in it as a swizzle has it, or as people
   write one instead. Beyond the row lies the next one. */
enum place { PLACE_PLAIN, PLACE_XOR, PLACE_PLUS, PLACE_MINUS, PLACE_BEYOND, PLACE_BEFORE_XOR, PLACES };

static const char *const place_words[PLACES] = {[PLACE_PLAIN] = "c",
                                                [PLACE_XOR] = "c ^ x",
                                                [PLACE_PLUS] = "c + x, round the row",
                                                [PLACE_MINUS] = "c - x, round the row",
                                                [PLACE_BEYOND] = "c + x, beyond the row",
                                                [PLACE_BEFORE_XOR] = "(c - c mod 2) ^ (x + c mod 2)"};

/* MAP_PLACED's b: how it is stored, how it is read, the first bit of the row and how many. */
enum { PLACE_SHIFTS = 3, PLACE_BITS = 3 };

struct placed {
    enum place stored, read;
    int shift, bits;
};

static struct placed placed_of(int b)
{
    return (struct placed){(enum place)(b / (PLACES * PLACE_SHIFTS * PLACE_BITS)),
                           (enum place)(b / (PLACE_SHIFTS * PLACE_BITS) % PLACES), b / PLACE_BITS % PLACE_SHIFTS,
                           PLACE_BITS - b % PLACE_BITS};
}

static int place_at(enum place place, int c, int x, int n)
{
    return place == PLACE_XOR          ? c ^ x
           : place == PLACE_PLUS       ? (c + x) % n
           : place == PLACE_MINUS      ? (c + n - x % n) % n
           : place == PLACE_BEYOND     ? c + x
           : place == PLACE_BEFORE_XOR ? (c & ~1) ^ (x + (c & 1))
                                       : c;
}

static int piece_at(const struct map *map, int i)
{
    static const enum place inverse[PLACES] = {
        [PLACE_XOR] = PLACE_XOR, [PLACE_PLUS] = PLACE_MINUS, [PLACE_MINUS] = PLACE_PLUS};
    const struct placed p = placed_of(map->b);
    const int n = map->a, mask = (1 << p.bits) - 1;
    const int read = i / n * n + place_at(p.read, i % n, i / n >> p.shift & mask, n);
    return read / n * n + place_at(inverse[p.stored], read % n, read / n >> p.shift & mask, n);
}

/* A matrix descriptor of wgmma, in pieces of 16 bytes of a panel, whose rows have 8: what a k step of two pieces begins
   behind the last one, rows of a group of 8, groups, and which bits of the row its swizzle has ("Matrix Descriptor
   Format" and "Shared Memory Matrix Layout" of the PTX ISA). MAP_DESCRIBED's b is one of these. */
struct descriptor {
    int step, row, group, swizzle;
};
enum { DESCRIPTOR_STEPS = 4, DESCRIPTOR_ROWS = 3, DESCRIPTOR_GROUPS = 11, DESCRIPTOR_SWIZZLES = 4 };
enum { DESCRIPTORS = DESCRIPTOR_STEPS * DESCRIPTOR_ROWS * DESCRIPTOR_GROUPS * DESCRIPTOR_SWIZZLES };
enum { PANEL_PIECES = MAP_PANEL_PIECES };
_Static_assert((int)DESCRIPTORS == (int)MAP_DESCRIPTORS, "every descriptor has a number");
static const struct descriptor right_descriptor = {2, PANEL_PIECES, 8 * PANEL_PIECES, 7};

static struct descriptor descriptor_of(int b)
{
    const int swizzle = b % DESCRIPTOR_SWIZZLES, group = b / DESCRIPTOR_SWIZZLES % DESCRIPTOR_GROUPS;
    const int row = b / (DESCRIPTOR_SWIZZLES * DESCRIPTOR_GROUPS) % DESCRIPTOR_ROWS;
    return (struct descriptor){1 + b / (DESCRIPTOR_SWIZZLES * DESCRIPTOR_GROUPS * DESCRIPTOR_ROWS), 2 << row,
                               1 << group, (1 << swizzle) - 1};
}

static int described_at(const struct map *map, int i)
{
    const struct descriptor d = descriptor_of(map->b);
    const int row = i / map->a, piece = i % map->a, panel = piece - piece % PANEL_PIECES, at = piece % PANEL_PIECES;
    const int first = map->bits ? row / map->bits * map->bits : 0;
    int from = first * PANEL_PIECES + (row - first) / 8 * d.group + row % 8 * d.row + at / 2 * d.step + at % 2;
    from ^= from / PANEL_PIECES & d.swizzle;
    const int line = from / PANEL_PIECES;
    return line * map->a + panel + ((from ^ line) & right_descriptor.swizzle);
}

/* Panel after panel; a row behind the last one lies behind the tile. */
static int paneled_at(const struct map *map, int i)
{
    const int row = i / map->a, piece = i % map->a, line = piece / PANEL_PIECES * map->b + row;
    const int panel = line / map->bits;
    return panel * PANEL_PIECES < map->a ? line % map->bits * map->a + panel * PANEL_PIECES + piece % PANEL_PIECES
                                         : (map->bits + row) * map->a + piece;
}

bool map_describe(int way, int pieces, struct map *map)
{
    const struct descriptor d = descriptor_of(way), own = right_descriptor;
    *map = (struct map){.kind = MAP_DESCRIBED, .a = pieces, .b = way};
    return (d.step != own.step) + (d.row != own.row) + (d.group != own.group) + (d.swizzle != own.swizzle) == 1;
}

void map_descriptor(const struct map *map, char *out, size_t bytes)
{
    const struct descriptor d = descriptor_of(map->b), own = right_descriptor;
    const struct {
        const char *words;
        int is, wanted;
    } parts[] = {{"k steps of %d bytes, not %d", 16 * d.step, 16 * own.step},
                 {"rows %d bytes apart, not %d", 16 * d.row, 16 * own.row},
                 {"groups of 8 rows %d bytes apart, not %d", 16 * d.group, 16 * own.group},
                 {"a swizzle of %d bytes, not %d", 16 * (d.swizzle + 1), 16 * (own.swizzle + 1)}};
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && used < bytes; i++) {
        if (parts[i].is == parts[i].wanted)
            continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s", used ? ", " : "");
        used += (size_t)snprintf(out + used, bytes - used, parts[i].words, parts[i].is, parts[i].wanted);
    }
}

/* Where the scale of a block stands in cuBLAS's layout of them ("1D Block Scaling Factors Layout"): each tile of 128
   lines by 4 blocks has 512, of four lines 32 apart beside each other. */
static int tiled_at(int line, int block, int blocks)
{
    const int tile = line / 128 * ((blocks + 3) / 4) + block / 4;
    return tile * 512 + line % 32 * 16 + line % 128 / 32 * 4 + block % 4;
}

int map_bits_for(int count)
{
    int bits = 0;
    while (1 << bits < count)
        bits++;
    return bits;
}

struct map map_of_bits(int bits)
{
    struct map map = {.kind = MAP_BITS, .bits = bits};
    for (int k = 0; k < bits; k++)
        map.row[k] = 1u << k;
    return map;
}

void map_exchange(struct map *map, int a, int b)
{
    const unsigned row = map->row[a];
    map->row[a] = map->row[b];
    map->row[b] = row;
}

static int summed_at(const struct map *map, int i)
{
    const int r = i / map->a, p = i % map->a, low = (1 << map->b) - 1;
    const int at = r * map->a + (p & ~low) + ((p & low) ^ (r & 7)), row = at / map->a;
    return row * map->a + (at % map->a ^ (row & 7));
}

int map_at(const struct map *map, int i)
{
    int to = 0;
    switch (map->kind) {
    case MAP_PLUS:
        return i + map->a;
    case MAP_CLAMPED:
        return i + map->a < map->b ? i + map->a : map->b;
    case MAP_MODULO:
        return i % map->a;
    case MAP_QUOTIENT:
        return i / map->a * (map->b ? map->b : 1);
    case MAP_ROTATED:
        return i / map->b * map->b + (i + map->a) % map->b;
    case MAP_FIXED:
        return map->a;
    case MAP_ONE:
        return i == map->a ? map->b : i;
    case MAP_SHARED:
        return map->b ? (i + map->bits) / map->a % map->b : (i + map->bits) / map->a;
    case MAP_MIRRORED:
        return map->a - i;
    case MAP_PITCH:
        return i / map->a * map->b + i % map->a;
    case MAP_TURNED:
        to = i % (map->a * map->b);
        return i - to + to % map->a * map->b + to / map->a;
    case MAP_TILED:
        return tiled_at(i / map->a, i % map->a, map->a);
    case MAP_PLACED:
        return piece_at(map, i);
    case MAP_DESCRIBED:
        return described_at(map, i);
    case MAP_PANELS:
        return paneled_at(map, i);
    case MAP_SUMMED:
        return summed_at(map, i);
    case MAP_BITS:
        for (int k = 0; k < map->bits; k++)
            to |= (parity((unsigned)i & map->row[k]) ^ (int)(map->flip >> k & 1)) << k;
        return to;
    default:
        return i;
    }
}

bool map_equals(const struct map *map, const struct map *other)
{
    return map->kind == other->kind && map->a == other->a && map->b == other->b && map->flip == other->flip &&
           ((map->kind != MAP_PANELS && map->kind != MAP_SHARED) || map->bits == other->bits) &&
           memcmp(map->row, other->row, sizeof map->row) == 0;
}

static bool meets(const struct map *map, const struct pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (map_at(map, pairs[i].from) != pairs[i].to)
            return false;
    return true;
}

/* One bit of the result as an affine function of the bits of i, by elimination over GF(2). What the pairs leave open is
   the identity: the unknowns are those of (to XOR from), and free ones are 0. */
static bool solve_bit(const struct pair *pairs, size_t n, int bits, int k, unsigned *row, int *flip)
{
    /* Bit `bits` of an equation stands for the constant, the next one for its right side. */
    unsigned pivot[MAP_BIT_COUNT + 1] = {0};
    const unsigned right = 1u << (bits + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned equation = (unsigned)pairs[i].from | 1u << bits;
        if ((pairs[i].from ^ pairs[i].to) >> k & 1)
            equation |= right;
        for (int b = 0; b <= bits; b++) {
            if (!(equation >> b & 1))
                continue;
            if (!pivot[b]) {
                pivot[b] = equation;
                equation = 0;
                break;
            }
            equation ^= pivot[b];
        }
        if (equation & right)
            return false;
    }
    unsigned solution = 0;
    for (int b = bits; b >= 0; b--) {
        if (!pivot[b])
            continue;
        const unsigned known = pivot[b] & solution & (right - 1) & ~(1u << b);
        if (parity(known) ^ (int)(pivot[b] >> (bits + 1) & 1))
            solution |= 1u << b;
    }
    *flip = (int)(solution >> bits & 1);
    *row = (solution & ((1u << bits) - 1)) ^ 1u << k;
    return true;
}

/* log2(bits^2 + bits) for each entry in which the matrix is not the identity (study of causes): that many places there
   are for one. Where it is not, a bit of the indices that no pair has is a guess, and costs two. */
static double fit_bits(const struct pair *pairs, size_t n, int count, struct map *map)
{
    const unsigned all = (1u << map_bits_for(count)) - 1;
    unsigned known = 0;
    int set = 0;
    for (size_t i = 0; i < n; i++) {
        known |= (unsigned)pairs[i].from;
        count = pairs[i].from >= count ? pairs[i].from + 1 : count;
        count = pairs[i].to >= count ? pairs[i].to + 1 : count;
    }
    const int bits = map_bits_for(count);
    if (bits == 0 || bits >= MAP_BIT_COUNT)
        return INFINITY;
    *map = (struct map){.kind = MAP_BITS, .bits = bits};
    for (int k = 0; k < bits; k++) {
        int flip = 0;
        if (!solve_bit(pairs, n, bits, k, &map->row[k], &flip))
            return INFINITY;
        map->flip |= (unsigned)flip << k;
        set += __builtin_popcount(map->row[k] ^ 1u << k) + flip;
    }
    return set * log2(bits * bits + bits) + (set ? 2 * __builtin_popcount(all & ~known) : 0);
}

static void offer(const struct map *map, double bits, const struct pair *pairs, size_t n, double *least,
                  struct map *best)
{
    if (bits < *least && meets(map, pairs, n)) {
        *least = bits;
        *best = *map;
    }
}

enum { FEW_INDICES = 64 };

static double fit_all(const struct pair *pairs, size_t n, int count, struct map *map)
{
    const double values = log2(fmax(count, 2));
    double least = INFINITY;
    struct map best = {.kind = MAP_SAME}, of_bits;
    int last = 0;
    if (n == 0)
        return INFINITY;
    for (size_t i = 0; i < n; i++)
        last = pairs[i].to > last ? pairs[i].to : last;
    offer(&best, 0, pairs, n, &least, &best);
    offer(&(struct map){.kind = MAP_PLUS, .a = pairs[0].to - pairs[0].from}, 2 + values, pairs, n, &least, &best);
    if (n >= 2)
        offer(&(struct map){.kind = MAP_FIXED, .a = pairs[0].to}, 2 + values, pairs, n, &least, &best);
    if (n >= 4)
        offer(&(struct map){.kind = MAP_MIRRORED, .a = pairs[0].from + pairs[0].to}, 3 + values, pairs, n, &least,
              &best);
    for (size_t i = 0; i < n && n >= 4; i++)
        if (pairs[i].to != last) {
            offer(&(struct map){.kind = MAP_CLAMPED, .a = pairs[i].to - pairs[i].from, .b = last}, 2 + 2 * values,
                  pairs, n, &least, &best);
            break;
        }
    /* Within blocks of a power of two, or of all; of few indices, as heads are, within blocks of any size. */
    for (int b = 2; b < 2 * count && n >= 4; b = count <= FEW_INDICES ? b + 1 : 2 * b) {
        const int block = b < count ? b : count, by = ((pairs[0].to - pairs[0].from) % block + block) % block;
        const double odd = b & (b - 1) ? 2 : 0;
        offer(&(struct map){.kind = MAP_ROTATED, .a = by, .b = block}, 4 + odd + values, pairs, n, &least, &best);
    }
    for (int a = 2; a < count && n >= 4; a++) {
        offer(&(struct map){.kind = MAP_MODULO, .a = a}, 2 + values, pairs, n, &least, &best);
        offer(&(struct map){.kind = MAP_QUOTIENT, .a = a}, 2 + values, pairs, n, &least, &best);
        offer(&(struct map){.kind = MAP_QUOTIENT, .a = a, .b = a}, 3 + values, pairs, n, &least, &best);
    }
    for (int a = 2; a < count && n >= 8 && !(least < INFINITY); a++) {
        size_t i = 0;
        while (i < n && pairs[i].from < a)
            i++;
        const int line = i < n ? pairs[i].from / a : 1, rest = i < n ? pairs[i].to - pairs[i].from % a : 1;
        if (i < n && rest % line == 0)
            offer(&(struct map){.kind = MAP_PITCH, .a = a, .b = rest / line}, 3 + 2 * values, pairs, n, &least, &best);
        for (i = 0; i < n && pairs[i].from % a == 0;)
            i++;
        const int lines = i < n ? (pairs[i].to - pairs[i].from / a) / (pairs[i].from % a) : 0;
        /* Of all, or of blocks whose bits are not merely exchanged. */
        if (lines > 1 && (a * lines * 2 > count || (count % (a * lines) == 0 && (a & (a - 1) || lines & (lines - 1)))))
            offer(&(struct map){.kind = MAP_TURNED, .a = a, .b = lines}, 3 + 2 * values, pairs, n, &least, &best);
    }
    if (n >= 4 && least > 0) {
        const double bits = 3 + fit_bits(pairs, n, count, &of_bits);
        if (bits < least) {
            least = bits;
            best = of_bits;
        }
    }
    *map = best;
    return least;
}

/* The difference that most pairs have. */
static int common_difference(const struct pair *pairs, size_t n)
{
    size_t most = 0;
    int common = 0;
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        for (size_t k = 0; k < n; k++)
            same += pairs[k].to - pairs[k].from == pairs[i].to - pairs[i].from;
        if (same > most) {
            most = same;
            common = pairs[i].to - pairs[i].from;
        }
    }
    return common;
}

/* A map of bits that six of ten pairs meet: fitted to a few of them at a time (Fischler and Bolles, 1981), as one pair
   that is chance spoils the elimination. With four such in ten, ten pairs are clean in one of 165 tries. */
static double fit_most(const struct pair *pairs, size_t n, int count, struct map *map)
{
    enum { TRIES = 200, FEW = 10, LEAST = 24 };
    uint64_t random = n;
    struct pair few[FEW];
    for (int try = 0; try < TRIES && n >= LEAST; try++) {
        size_t met = 0;
        for (int i = 0; i < FEW; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's MMIX */
            few[i] = pairs[(size_t)(random >> 33) % n];
        }
        const double bits = fit_bits(few, FEW, count, map);
        for (size_t i = 0; i < n && bits < INFINITY; i++)
            met += map_at(map, pairs[i].from) == pairs[i].to;
        if (met * 10 >= n * 6 && bits > 0) /* not the identity, which says nothing */
            return 7 + bits;
    }
    return INFINITY;
}

double map_fit_shared(const struct pair *pairs, size_t count, int a, int n, struct map *map)
{
    for (int plus = 1; plus <= a && count >= 4; plus++)
        for (int wraps = 0; wraps < 2; wraps++) {
            *map = (struct map){.kind = MAP_SHARED, .a = a, .b = wraps ? n : 0, .bits = plus};
            if (meets(map, pairs, count))
                return 5 + log2(a);
        }
    return INFINITY;
}

_Static_assert((PLACE_PLUS + 1) * PLACES * PLACE_SHIFTS * PLACE_BITS == MAP_PLACES, "each pair of places has a number");

bool map_place(int way, int pieces, struct map *map)
{
    const struct placed p = placed_of(way);
    *map = (struct map){.kind = MAP_PLACED, .a = pieces, .b = way};
    return p.stored != p.read && (p.stored > PLACE_XOR || p.read > PLACE_XOR); /* else nothing, or a map of bits */
}

double map_fit_places(const struct pair *pairs, size_t n, int pieces, struct map *map)
{
    enum { LEAST = 16 };
    for (int b = 0; b < MAP_PLACES && n >= LEAST; b++) {
        size_t met = 0;
        if (!map_place(b, pieces, map))
            continue;
        for (size_t i = 0; i < n; i++)
            met += map_at(map, pairs[i].from) == pairs[i].to;
        if (met * 10 >= n * 9)
            return 4 + log2(MAP_PLACES);
    }
    for (int b = 0; b < 2 * DESCRIPTORS && n >= LEAST && pieces % PANEL_PIECES == 0; b++) {
        size_t met = 0, moved = 0;
        *map = (struct map){.kind = MAP_DESCRIBED, .a = pieces, .b = b / 2, .bits = b % 2 ? MAP_DESCRIBED_ROWS : 0};
        const struct descriptor d = descriptor_of(b / 2), own = right_descriptor;
        if (d.step == own.step && d.row == own.row && d.group == own.group) /* nothing, or a map of bits */
            continue;
        for (size_t i = 0; i < n; i++) {
            met += map_at(map, pairs[i].from) == pairs[i].to;
            moved += pairs[i].from != pairs[i].to;
        }
        if (met * 10 >= n * 9 && moved * 10 >= n)
            return 5 + log2(DESCRIPTORS);
    }
    return INFINITY;
}

void map_places(const struct map *map, const char **stored, const char **read, char moves[16])
{
    const struct placed p = placed_of(map->b);
    *stored = place_words[p.stored];
    *read = place_words[p.read];
    if (p.shift)
        snprintf(moves, 16, "r / %d mod %d", 1 << p.shift, 1 << p.bits);
    else
        snprintf(moves, 16, "r mod %d", 1 << p.bits);
}

/* Where no map meets all pairs, one that meets most is worth a try: the others may be chance, or another mistake. */
double map_fit(const struct pair *pairs, size_t n, int count, struct map *map)
{
    const double bits = fit_all(pairs, n, count, map);
    if (bits < INFINITY || n < 8)
        return bits;
    const int common = common_difference(pairs, n);
    size_t same = 0;
    for (size_t i = 0; i < n; i++)
        same += pairs[i].to - pairs[i].from == common;
    if (same * 2 < n || common == 0)
        return fit_most(pairs, n, count, map);
    *map = (struct map){.kind = MAP_PLUS, .a = common};
    return 4 + log2(fmax(count, 2));
}

bool map_clears(const struct map *map, int *low, int *high)
{
    *low = *high = -1;
    for (int k = 0; k < map->bits; k++) {
        if (map->row[k] == 1u << k)
            continue;
        if (map->row[k] || (*high >= 0 && *high != k))
            return false;
        *low = *high < 0 ? k : *low;
        *high = k + 1;
    }
    return map->kind == MAP_BITS && map->flip == 0 && *high > 0;
}

/* Maps of bits that have a name of their own. */
static bool bits_words(const struct map *map, const char *name, char *out, size_t bytes)
{
    unsigned kept = 0, moved = 0;
    bool masks = map->flip == 0, flips = true, halves = map->flip == 0;
    int within = 0; /* the upper bits stay from here on */
    for (int k = 0; k < map->bits; k++)
        within = map->row[k] == 1u << k ? within : k + 1;
    for (int k = 0; k < map->bits; k++) {
        flips = flips && map->row[k] == 1u << k;
        masks = masks && (map->row[k] == 1u << k || map->row[k] == 0);
        halves = halves && (k >= within || map->row[k] == (k + 1 < within ? 2u << k : 0));
        kept |= (map->row[k] == 1u << k) << k;
        moved |= (map->row[k] != 1u << k) << k;
    }
    const unsigned all = (1u << map->bits) - 1;
    int low, high;
    if (flips)
        snprintf(out, bytes, "%s ^ %u", name, map->flip);
    else if (masks && (moved & (moved + 1)) == 0)
        snprintf(out, bytes, "%s - %s mod %u", name, name, moved + 1);
    else if (masks && (kept & (kept + 1)) == 0)
        snprintf(out, bytes, "%s mod %u", name, kept + 1);
    else if (map_clears(map, &low, &high))
        snprintf(out, bytes, "%s mod %d of each %d", name, 1 << low, 1 << high);
    else if (masks)
        snprintf(out, bytes, "%s & %u", name, kept & all);
    else if (halves && within == map->bits)
        snprintf(out, bytes, "%s / 2", name);
    else if (halves)
        snprintf(out, bytes, "%s / 2 within each %d", name, 1 << within);
    else
        return false;
    return true;
}

enum { LISTED = 16 };

/* The power of two at which a MAP_BITS begins anew: bits from it on stay what they are, and no bit below is made of
   them. */
static int moved_below(const struct map *map)
{
    int n = map->bits;
    for (bool stays = true; n > 0 && stays; n -= stays) {
        stays = map->row[n - 1] == 1u << (n - 1) && !(map->flip >> (n - 1) & 1);
        for (int k = 0; k < n - 1; k++)
            stays = stays && !(map->row[k] >> (n - 1) & 1);
    }
    return 1 << n;
}

void map_words(const struct map *map, const char *name, char *out, size_t bytes)
{
    size_t used;
    int last;
    switch (map->kind) {
    case MAP_PLUS:
        snprintf(out, bytes, "%s %c %d", name, map->a < 0 ? '-' : '+', map->a < 0 ? -map->a : map->a);
        return;
    case MAP_CLAMPED:
        if (map->a)
            snprintf(out, bytes, "min(%s %c %d, %d)", name, map->a < 0 ? '-' : '+', map->a < 0 ? -map->a : map->a,
                     map->b);
        else
            snprintf(out, bytes, "min(%s, %d)", name, map->b);
        return;
    case MAP_MODULO:
        snprintf(out, bytes, "%s mod %d", name, map->a);
        return;
    case MAP_QUOTIENT:
        if (map->b == map->a)
            snprintf(out, bytes, "%s - %s mod %d", name, name, map->a);
        else
            snprintf(out, bytes, "%s / %d", name, map->a);
        return;
    case MAP_ROTATED:
        snprintf(out, bytes, "(%s + %d) mod %d", name, map->a, map->b);
        return;
    case MAP_FIXED:
        snprintf(out, bytes, "%d", map->a);
        return;
    case MAP_ONE:
        snprintf(out, bytes, "%d for %d", map->b, map->a);
        return;
    case MAP_SHARED:
        if (map->b)
            snprintf(out, bytes, "(%s + %d) / %d mod %d", name, map->bits, map->a, map->b);
        else
            snprintf(out, bytes, "(%s + %d) / %d", name, map->bits, map->a);
        return;
    case MAP_MIRRORED:
        snprintf(out, bytes, "%d - %s", map->a, name);
        return;
    case MAP_PITCH:
        if (map->b == 1)
            snprintf(out, bytes, "%s / %d + %s mod %d", name, map->a, name, map->a);
        else
            snprintf(out, bytes, "%s / %d * %d + %s mod %d", name, map->a, map->b, name, map->a);
        return;
    case MAP_TILED:
        snprintf(out, bytes, "of tiles of 128 x 4 of %s", name);
        return;
    case MAP_TURNED:
        snprintf(out, bytes, "%s mod %d * %d + %s / %d", name, map->a, map->b, name, map->a);
        return;
    case MAP_BITS:
        if (bits_words(map, name, out, bytes))
            return;
        last = moved_below(map) <= LISTED ? moved_below(map) - 1 : 8;
        used = (size_t)snprintf(out, bytes, "%s' (", name);
        for (int i = 0; i <= last && used < bytes; i++)
            used += (size_t)snprintf(out + used, bytes - used, "%d ", map_at(map, i));
        if (used < bytes && last + 1 < 1 << map->bits && last + 1 == moved_below(map))
            snprintf(out + used, bytes - used, "for %s = 0 to %d of each %d)", name, last, last + 1);
        else if (used < bytes)
            snprintf(out + used, bytes - used, "for %s = 0 to %d)", name, last);
        return;
    default:
        snprintf(out, bytes, "%s", name);
    }
}
