/* Runs made by hand: a streaming softmax in plain C writes what probes would, right or with a mistake, and a real
   session judges it. What a view, a list of runs or a benchmark is tried on, without a build and the same each time. */
#ifndef TEST_HAND_MADE_H
#define TEST_HAND_MADE_H

#include "engine/session/session.h"

enum hand_mistake {
    HAND_RIGHT,
    HAND_S_SCALED_TWICE,
    HAND_U_NOT_RESCALED, /* from the second kv tile on */
    HAND_O_DOUBLED
};

struct hand_made {
    int batch, heads, q_len, kv_len, head_dim, tile;
    enum hand_mistake mistake;
    int n_slots;   /* the first of them are recorded; 0: all */
    int kv_tiles;  /* the kernel comes to that many of a q tile; 0: to all */
    int ends_slot; /* the run ends in this slot, before kv tile ends_kv; both 0: it comes to its end */
    int ends_kv;
    bool causal;
    bool writers; /* element i of a tile is recorded by thread i % 128 of block (2,0,0) */
    bool healed;  /* what comes after the mistake goes on with right values, as in an isolated run */
};

/* The run of most screens: 8 heads of 8 x 8 tiles. */
extern const struct hand_made hand_made_usual;

/* A live trace of it; free with trace_free(). hand_made_empty(): nothing is written yet. Fails the program. */
struct trace *hand_made_trace(const struct hand_made *made);
struct trace *hand_made_empty(const struct hand_made *made);
/* One element of a recorded tile becomes another. */
void hand_made_store(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col, double value);
/* The tile as if the kernel had not come to it: no values, no stamps. */
void hand_made_unwrite(const struct trace *t, enum asc_channel ch, int slot, int kv);
void hand_made_event(struct trace *t, enum event_kind kind, const char *text, const char *file, int line);
void hand_made_counter(const struct trace *t, const struct layout_part *part, enum asc_channel ch, uint64_t n);

/* A session on the scenario that such a run is of, without a run; free with session_free(). */
struct session *hand_made_session(const struct hand_made *made);
/* The trace is judged and shown as the session's next run, which owns it. */
void hand_made_judge(struct session *s, struct trace *t);
/* Both. */
struct session *hand_made_run(const struct hand_made *made);
/* Moves the cursor; fails where that is no place. */
void hand_made_go(struct session *s, struct cursor to);

#endif
