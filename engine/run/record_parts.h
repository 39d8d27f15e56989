/* The parts of record(): what a run records, and what it is given. */
#ifndef RUN_RECORD_PARTS_H
#define RUN_RECORD_PARTS_H

#include "engine/run/record.h"

/* What a run records: n of slots. */
struct record_selection {
    struct asc_plan plan;
    struct layout_types types;
    int32_t (*slots)[3]; /* borrowed, [n] */
    int n;
};

/* A channel is recorded where the kernel has a probe for it and the scenario wants it. */
void record_choose_types(const struct recorder *r, const struct scenario *scenario, struct layout_types *types);
/* The selected (batch, head, q tile)s in order; *out is the caller's. */
int record_list_places(const struct scenario *scenario, int q_tiles, int32_t (**out)[3], int64_t *n_out,
                       struct err *err);
/* How many of `wanted` slots the capture's memory takes beside inputs and outputs, at least 1. */
int record_slots_room(const struct scenario *scenario, const struct asc_plan *plan, const struct layout_types *types,
                      int64_t wanted, int *room, struct err *err);
/* A live trace of what is selected, filled with the scenario's inputs. */
int record_inputs(const struct recorder *r, const struct scenario *scenario, const struct record_selection *selection,
                  struct trace **out, struct err *err);

#endif
