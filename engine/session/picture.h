/* The elements of a tile, of a q tile over its kv tiles, or of all q and kv tiles of a head, side by side, as a grid of
   cells. Where there are more elements than cells, a cell holds the worst of those that it covers. */
#ifndef SESSION_PICTURE_H
#define SESSION_PICTURE_H

#include "engine/verdict/judgement.h"

struct session;

enum picture_scope { PICTURE_TILE, PICTURE_Q_TILE, PICTURE_HEAD, PICTURE_SCOPES };

struct picture_cell {
    uint8_t status;         /* enum tile_status of that element; STATUS_UNRECORDED: nothing is known here */
    int row, col;           /* of the element, in the picture */
    float got, want, ratio; /* ratio: error over bound */
    /* Of a tile: the one element of it whose wanted value this one has; -1: none has it, or several. */
    int from_row, from_col;
    int thread; /* of its block, that recorded it; -1: not known */
};

struct picture {
    /* What it is of. global: judged by the reference, else by what was captured upstream. */
    enum picture_scope scope;
    enum asc_channel channel;
    int batch, head;
    bool global;
    int first_q, q_tiles, first_kv, kv_tiles;
    int tile_rows, tile_cols; /* elements of a whole tile */
    int warps;                /* of a block */
    int by_row, by_col;       /* elements of a cell */
    int part, first_row; /* the only q tile of it that the cells below are of, and which row is their first; -1, 0 */
    int rows, cols;
    struct picture_cell *cells; /* owned, [rows][cols]; NULL: there is none */
    uint8_t *made;              /* owned, [q_tiles]: is in it */
    int n_made, n_there;        /* of the q tiles that can be */
};

void picture_free(struct picture *p); /* of a zeroed one: legal */
/* The element that stands for several cells of one: the worst. */
const struct picture_cell *picture_worse(const struct picture_cell *a, const struct picture_cell *b);
/* Whether a cell has no place on a scale: NaN, infinity, never written, written where nothing should be. */
bool picture_cell_is_special(const struct picture_cell *cell);

/* The cursor's tile, from its values; -1: they are not there, or no memory. */
int picture_of_tile(const struct session *s, bool global, struct picture *out);
/* A part of a picture: one slot. -1: no memory, or it was given up. */
int picture_of_slot(const struct judgement *j, const struct trace *t, struct place place, enum picture_scope scope,
                    bool global, struct judge_scratch *scratch, struct picture *out);

/* A view shows the picture of the cursor's q tile or head from now on, or none (PICTURE_TILE needs none). */
void session_want_picture(struct session *s, enum picture_scope scope, bool global);
/* For cursor_tile.c: whether what there is of it is of another place than the cursor's; the next slot that is missing,
   nearest to the cursor first (-1: none); takes one over. */
bool picture_is_stale(const struct session *s);
int picture_next_slot(const struct session *s);
int picture_take(struct session *s, struct picture *part); /* -1: no memory */

/* The type that a channel's values were captured in. */
enum dtype trace_captured_type(const struct trace *t, enum asc_channel ch);

#endif
