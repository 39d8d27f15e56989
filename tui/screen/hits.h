/* What a click on a cell of the canvas means: areas that views note while they draw. */
#ifndef SCREEN_HITS_H
#define SCREEN_HITS_H

#include "tui/screen/canvas.h"

/* The two numbers that a place of such an area stands for. */
enum hit_kind {
    HIT_TILE,    /* q tile, kv tile (-1: the stage has none) */
    HIT_KV,      /* -, kv tile */
    HIT_HEAD,    /* -, batch and head as one sequence */
    HIT_STAGE,   /* -, channel */
    HIT_ELEMENT, /* row, column of the tile; the wheel goes over rows */
    HIT_COLUMN,  /* the same; the wheel goes over columns */
    HIT_ENTRY,   /* entry of a list, - */
    HIT_ACTION,  /* -, enum action */
    HIT_DIVIDER  /* the line between left and right */
};

struct hit {
    enum hit_kind kind;
    struct rect area;
    int first, second; /* at the area's first cell */
    int step;          /* columns for one of `second`; 0: it is the same everywhere */
};

#define HITS_MAX 256

struct hits {
    struct hit at[HITS_MAX];
    int n;
};

/* Notes an area that lies at `where` of the panel; nothing where nobody asks (c->hits NULL). The first number counts
   the rows. */
void hit_add(struct canvas *c, struct rect panel, struct rect where, enum hit_kind kind, int first, int second,
             int step);

/* What the last one noted there is; 0: nothing. *first and *second are its numbers. */
int hits_find(const struct hits *h, int row, int col, enum hit_kind *kind, int *first, int *second);

#endif
