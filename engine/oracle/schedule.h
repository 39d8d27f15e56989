/* Which keys a row may see, and which tiles a kernel may skip. */
#ifndef ORACLE_SCHEDULE_H
#define ORACLE_SCHEDULE_H

#include "engine/oracle/oracle.h"
#include <stdbool.h>

/* Keys first .. last - 1; first == last: none. */
struct key_range {
    int first, last;
};

/* The key on row r's diagonal, from which mask, window and ALiBi count. */
int64_t schedule_diagonal(const struct oracle_case *c, int r);

/* The keys that causal mask and window, both counted from the row's diagonal, leave to row r of this q tile. */
struct key_range schedule_range(const struct oracle_case *c, int r);

/* Whether row r sees a key: it is one of those, and no mask hides it. */
bool schedule_shows(const struct oracle_case *c, int r, int key);

/* How many it sees. 0: the row has no key at all. And how many of kv tile kv. */
int schedule_keys(const struct oracle_case *c, int r);
int schedule_keys_of(const struct oracle_case *c, int r, int kv);

/* Columns of kv tile `kv` that exist: keys below kv_len. */
int schedule_cols(const struct oracle_case *c, int kv);

/* Of the columns of kv tile `kv` row r sees schedule_hidden .. schedule_visible - 1, of these, where there is a mask,
   the first and the last for sure; both are equal where it sees none. */
int schedule_hidden(const struct oracle_case *c, int r, int kv);
int schedule_visible(const struct oracle_case *c, int r, int kv);
void schedule_sight(const struct oracle_case *c, int r, int kv, int *hidden, int *visible); /* both */
/* Whether any row sees any key of it. */
bool schedule_sees(const struct oracle_case *c, int kv);

/* Whether no row of this q tile sees any key of the tile: a kernel may visit it or skip it. */
bool schedule_masked(const struct oracle_case *c, int kv);

/* How many splits the kv tiles are dealt to (1: they are not), and which one a tile belongs to. Those behind the last
   one with a tile are left out, unless a map deals. */
int schedule_splits(const struct oracle_case *c);
int schedule_split(const struct oracle_case *c, int kv);

/* The i-th kv tile as the kernel visited them; where no visit is known, of all, split by split. */
int schedule_nth(const struct oracle_case *c, int i);

/* The tiles of each split and the visits to them, for walks that go split by split: each in its order, -1 behind the
   last one. A visit is its place in the case's order; of several to a tile the first one is listed. */
struct schedule_lists {
    int splits;
    int *first_tile, *next_tile;   /* [splits], [kv_tiles] */
    int *first_visit, *next_visit; /* [splits], [n_visited] */
    int *last_tile;                /* [splits]: of all visits */
};

/* How many ints of room the lists of a case take, and the lists, in that room. */
size_t schedule_lists_room(const struct oracle_case *c);
void schedule_lists_make(const struct oracle_case *c, int *room, struct schedule_lists *out);

/* Whether no row of this q tile sees any key at all. */
bool schedule_empty(const struct oracle_case *c);

/* One visit of a kv tile. */
struct case_step {
    int kv, split;
    int before, behind; /* steps of the same split, -1: none */
};

/* Where nothing was recorded that shows visits, all tiles that hold something count as visited. out: room for
   [kv_tiles]; returns how many, -1 without memory. */
int steps_list(const struct oracle_case *c, struct case_step *out);

#endif
