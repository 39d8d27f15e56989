/* The bridge from a trace to the oracle: one slot's arrays as an oracle_case. */
#ifndef VERDICT_CASE_H
#define VERDICT_CASE_H

#include "engine/oracle/oracle.h"
#include "engine/oracle/search/rule.h"
#include "engine/trace/trace.h"
#include <stdbool.h>

/* c points into it: it stays where it was made. */
struct slot_case {
    struct oracle_case c;
    int32_t types[ASC_CHANNELS]; /* of the channels, recorded or not; -1: unknown */
    struct matrix *captured;     /* owned, [kv_tiles][ASC_CHANNELS] */
    struct matrix *padding;      /* owned, [3][kv_tiles]: of s, p and v */
    struct matrix *fed;          /* owned, as captured; NULL: not an isolated run */
    struct matrix *fed_padding;  /* owned, as padding */
    int *order;                  /* owned, [kv_tiles] */
    uint16_t *unwritten;         /* owned: a row of f16 that was never written; NULL: none is needed */
    float *made[3];              /* owned: scales that the launch itself made, see struct coding */
    int n_made;
};

/* The tensor cores that are known to have computed what a run recorded: a GPU's, or those that the CPU stood in for; 0:
   not known. */
uint32_t case_known_cores(const struct trace *t);

/* Borrows the trace's arrays; -1 where memory ran out. */
int slot_case_make(const struct trace *t, int slot, struct slot_case *out);
/* The same of a (batch, head, q tile) that need not be recorded: a complete run's o and lse are judged by the inputs
   then. types: [ASC_CHANNELS] enum dtype in which the kernel has a channel, -1: unknown; NULL: those of the trace. */
int place_case_make(const struct trace *t, const int32_t place[3], const int32_t *types, struct slot_case *out);
void slot_case_free(struct slot_case *s);
/* Cuts it down to one row of its q tile. */
void slot_case_row(struct slot_case *c, int row);

/* All heads of Q, K and V, with how they are coded. */
struct case_sources {
    struct source *sources;   /* owned, [n] */
    struct slot_case *scales; /* owned, [n]: holds what the launch itself made */
    int n;
};
int case_sources(const struct trace *t, struct case_sources *out);
void case_sources_free(struct case_sources *s);

/* How many elements of o or lse stand in the output otherwise than the probe recorded them; 0 where either is not there
   to compare. */
int case_output_differs(const struct trace *t, enum asc_channel ch, int slot);

/* Whether it is a complete run whose probes saw alpha on no first tile of any state (split), with or without a
 * declaration. */
bool case_alpha_left_out(const struct trace *t);
/* Whether any probe came to this kv tile. */
bool case_visited(const struct trace *t, int slot, int kv);

/* Whether some warps have left a tile out while others worked on it; the first and the last row of these, -1: there are
   others between them. */
bool case_visited_in_part(const struct trace *t, int slot, int kv, int rows[2]);

/* kv tiles of a slot in the order the kernel visited them, from the stamps, or from what the rows say where warps leave
   tiles out; returns how many, -1 where memory ran out. order: [kv_tiles]. */
int visiting_order(const struct trace *t, int slot, int *order);

#endif
