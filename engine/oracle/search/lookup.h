/* Where pieces of rows of Q, K and V stand among all that the launch was given: looked up by content. */
#ifndef SEARCH_LOOKUP_H
#define SEARCH_LOOKUP_H

#include "engine/oracle/search/propose.h"

/* Pieces that are kept, and that are looked up. */
enum { FOUND_MOST = 512, LOOKED_UP = 192 };

/* What stands where: piece p of row r of a tile, from a piece of a row of a head. */
struct found {
    int tile, row, piece;
    enum asc_channel tensor;
    int head, from_row, from_piece;
};

/* Heads as they were loaded, for all that one proposal looks up: the last one makes room where there are too many. */
enum { HEADS_LOADED = 64 };

struct loaded_heads {
    struct loaded_head {
        enum asc_channel tensor;
        int head;
        bool known;
        size_t room;
        double *rows; /* [2][room] rows and loose */
    } of[HEADS_LOADED];
    int n;
    size_t values;
};

struct lookup {
    struct search *search;
    enum asc_channel operand;
    int span, pieces; /* elements of a piece, pieces of a row */
    struct found found[FOUND_MOST];
    int n;
    int looked;           /* pieces that were looked up */
    bool repeats;         /* the inputs repeat themselves: nothing can be told */
    uint8_t *by_columns;  /* [block][D][D]: whether column d of a row is what another is of its own row; and
                             [block]: whether that is known */
    double *rows, *loose; /* of the head that was loaded last */
    enum asc_channel tensor;
    int head, n_rows;
};

/* Values that are known as far as `off`, times the spread of the piece where they were solved for. */
struct wanted_piece {
    const double *x;
    double off; /* 0: as captured, to the last bit of their type */
    enum dtype type;
};

/* Loads a head of a tensor into rows and loose; false: it is not there, or its rows are of another length. */
bool lookup_load(struct lookup *l, enum asc_channel tensor, int head);

/* Rows of a tile of the operand, and which of its tiles it is. */
int lookup_block(const struct lookup *l, const struct sample_tile *t);
int lookup_tile(const struct lookup *l, const struct sample_tile *t);

/* Looks for piece `piece` of row `row` of a tile of the sample, and adds to found where it stands. */
void look_up(struct lookup *l, int tile, int row, int piece, const struct wanted_piece *w);

#endif
