/* Where a rule holds: a condition on where an element lies that all wrong elements meet and no right one does. */
#ifndef SEARCH_REGION_H
#define SEARCH_REGION_H

#include "engine/oracle/search/sample.h"

enum axis {
    AXIS_BATCH,
    AXIS_HEAD,
    AXIS_Q_TILE,
    AXIS_KV_TILE,
    AXIS_TURN,
    AXIS_ROW,
    AXIS_COL,
    AXIS_ROW_OF_HEAD,
    AXIS_NEW, /* 1: the key is one that the kernel appends to its cache */
    /* What is said only where none of these will do. */
    AXIS_KEY,          /* column of the scores, counted through the head */
    AXIS_RISE,         /* 1: the row's maximum rises at this tile */
    AXIS_VIEW,         /* of the tile the row sees all, where all rows do (0) or not (1), a part (2), nothing (3) */
    AXIS_LAST_OF_16,   /* 1: the last of the row's 16, which a warp may go by, sees all of the tile */
    AXIS_LAST_OF_TILE, /* 1: the last row of the q tile does */
    /* What a thread or a warp that rescales by a vote goes by; 1: the maximum rises at this tile ... */
    AXIS_RISE_BESIDE,      /* of the first of the rows r and r + 8 that a lane of an mma has */
    AXIS_RISE_FIRST_OF_16, /* of the first of the row's 16 */
    AXIS_RISE_ANY_OF_16,   /* of any of them */
    AXIS_RISE_ALL_OF_16,   /* of all of them that there are */
    AXES
};

enum condition {
    EQUAL,      /* x == a */
    NOT,        /* x != a */
    FROM,       /* x >= a */
    BELOW,      /* x < a */
    WITHIN,     /* a <= x <= b */
    UPPER,      /* x % a >= a / 2 */
    LOWER,      /* x % a < a / 2 */
    RESIDUE,    /* x % a == b */
    NO_RESIDUE, /* x % a != b */
    EVERY       /* no condition */
};

struct term {
    enum axis axis;
    enum condition condition;
    int a, b;
};

enum { REGION_TERMS = 2 };

struct region {
    struct term term[REGION_TERMS];
    int n;          /* 0: everywhere, but for what follows */
    bool some_rows; /* in rows alone in which nothing speaks against it: what they share is no region */
    double alpha;   /* they are those whose α is so much, with by_alpha 1: or more, -1: or less */
    int by_alpha;
    double bits; /* what it takes to say it, of all conditions that could be said */
};

/* What a rule says of an element, in the order of struct sample: labels[tile][row * cols + col]. */
enum label {
    LABEL_SILENT, /* it says what the right formula says, or nothing was expected */
    LABEL_IN,     /* wrong, and just so */
    LABEL_OUT     /* right, and the rule would have it otherwise; or wrong in another way */
};

int axis_value(const struct sample_tile *t, enum axis axis, int row, int col);
bool term_holds(const struct term *term, int x);
bool region_holds(const struct region *region, const struct sample_tile *t, int row, int col);

/* The cheapest condition that holds for x in `in` and for none in `out`, of values below n; both [n], what is in
   neither may be either. Returns its bits, or INFINITY. */
double term_fit(const uint8_t *in, const uint8_t *out, int n, struct term *term);

/* The cheapest region that holds all IN and no more than one OUT in 10,000 of these; by_chance: else one that leaves
   out rows, columns, tiles or heads with an IN for more than eight OUT, and of all IN no more than an eighth of what it
   holds. false: there is none. */
bool region_fit(const struct sample *s, uint8_t *const *labels, bool by_chance, struct region *region);

#endif
