/* The listed mistakes: where each can show, which name is right, and which names say the same there. */
#ifndef TEST_CAUSE_GRADE_H
#define TEST_CAUSE_GRADE_H

#include "tests/unit/lib/cause_outcome.h"

/* What a mistake needs to show, and what a shape offers. */
enum {
    CAUSAL = 1,
    TOP_LEFT = 2,
    BOTTOM_RIGHT = 4,
    OBLONG = 8,
    SQUARE = 16,
    TAIL = 32,
    EMPTY_ROWS = 64,
    RAW = 128,
    LOG2 = 256,
    SCALES = 512, /* S is scaled where it is recorded */
    NOT_LOG2 = 1024,
    FORWARD = 2048,
    NARROW_P = 4096,
    WIDE_PV = 8192, /* what P.V takes has not been rounded */
    HUGE_V = 16384,
    OFFSET = 32768,
    MASK = 65536,
    WINDOW = 131072,
    CAPPED = 262144,
    NATURAL_LSE = 524288,
    WIDE_L = 1048576, /* what l sums has not been rounded */
    EARLY_U = 2097152,
    LAGS = 4194304,
    CORES = 8388608,       /* products by tensor cores, U recorded behind them */
    PIECES = 16777216,     /* rows are of 2, 4 .. pieces of 16 bytes */
    NO_KEY_YET = 33554432, /* a tile is visited by rows that have seen no key behind it */
    NO_KEYS = 67108864,    /* rows see no key at all */
    LANES = 134217728
};

extern const struct listed_mistake {
    const char *name;
    enum cause cause, second;
    unsigned needs;
    bool is_alike; /* it may have no name */
} listed[LISTED_END];
extern const char *const unlisted[MISTAKES];

bool synonyms(enum cause a, enum cause b);
/* Whether an unlisted mistake has been given a name. */
bool is_misnamed(const struct outcome *o, const struct spec *s);
unsigned offers(const struct spec *s);
/* 1: the expected names and no others but their synonyms; 0: one is not found; -1: a wrong one. */
int grade(const struct outcome *o, const struct spec *s);
/* A shape with what a listed mistake needs to show. */
struct spec spec_of(const struct spec *shape, enum mistake mistake, enum fill fill, unsigned seed);
void print_case(const struct spec *s, const char *where, const struct outcome *o);

#endif
