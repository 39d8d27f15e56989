/* What views show of the cursor's tile, and of its row, its element and its slot. */
#ifndef SESSION_CURSOR_TILE_H
#define SESSION_CURSOR_TILE_H

#include "engine/cursor/cursor.h"
#include "engine/cursor/stop.h"
#include "engine/session/picture.h"
#include "engine/verdict/judgement.h"
#include "engine/verdict/states.h"

struct session;
struct tile_values;

/* An element of its tile that the cursor goes to as soon as the tile's values are there. */
enum element_due { ELEMENT_NONE, ELEMENT_FIRST_BAD, ELEMENT_WORST, ELEMENT_STOP };

struct cursor_tile {
    struct tile_detail detail; /* of the cursor's tile; detail.got NULL: not recorded or not judged yet */
    struct place detail_place; /* which tile that is */
    int row, row_slot;         /* whose row state row_want is */
    /* m, alpha and l of the cursor's row over the kv tiles by the reference; NULL: not known. Owned, [kv_tiles]. */
    double *row_want[ASC_CHANNELS];
    struct derivation operands; /* of the cursor's element; derived says whether they are known */
    struct place operands_place;
    int operands_row, operands_col;
    bool operands_made;               /* the above are those of this element, derived or not */
    struct row_states states;         /* of the rows of a slot, after every step; steps NULL: not known. Owned */
    int states_slot;                  /* that slot */
    bool wants_states;                /* a view shows those of the cursor's slot */
    struct picture picture;           /* of the cursor's q tile or head, as far as it is made */
    enum picture_scope wants_picture; /* of which a view shows one; PICTURE_TILE: of neither */
    bool picture_global;
    bool unseen;                /* nobody looks at tiles, and nothing of the above is made: it judges a slot again */
    struct tile_values *values; /* owned: the thread that makes all of the above (tile_values.h); NULL: not asked yet */
    double patience_s;          /* how long a verb waits for it; it comes by itself then. 0: to the end, however long */
    struct judge_scratch *scratch; /* owned: of the owner's thread, for one tile */
    unsigned given_up;             /* set of enum lack: what the user has stopped, until the cursor moves */
    double lacked_at;              /* monotonic seconds: when memory ran out for it last */
    struct cursor lacked_by;       /* and what the cursor was at then */
    enum element_due due;
    struct stop due_stop; /* ELEMENT_STOP: which */
};

/* Makes all of it that of the cursor's place; the verbs and session_update() call it. */
void session_refresh_detail(struct session *s);
void session_drop_detail(struct session *s);
/* To the first bad element of the cursor's tile, or the worst, as soon as the tile's values are there. */
void session_find_element(struct session *s, bool worst);

#endif
