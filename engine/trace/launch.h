/* One launch of a kernel on a GPU, and what it takes there. The same JSON says it on the wire and in a saved trace. */
#ifndef TRACE_LAUNCH_H
#define TRACE_LAUNCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAUNCHES_MAX = 24,                    /* kept of a run; a run of more goes on, the rest is not described */
    TRACE_LAUNCHES_MAX = 2 * LAUNCHES_MAX /* of the run that recorded, and of one without probes */
};

/* Where a kernel runs. */
enum backend { BACKEND_CPU, BACKEND_GPU };
extern const char *const backend_names[]; /* "cpu", "gpu"; NULL ends them */

struct trace_launch {
    char kernel[192];    /* without its parameters: "v2b_scalar<__half, 64>" */
    char limited_by[48]; /* what keeps more blocks away: "registers", "shared memory, warps"; "": not known */
    int32_t grid[3], block[3];
#define LAUNCH_INTEGER(name, meaning) int32_t name;
#define LAUNCH_REAL(name, meaning) double name;
#include "engine/trace/launch.def"
#undef LAUNCH_INTEGER
#undef LAUNCH_REAL
};

/* The most that a launch without probes may take. */
enum budget_item { BUDGET_REGISTERS, BUDGET_SHARED_BYTES, BUDGET_SPILL_BYTES, BUDGET_ITEMS };
struct launch_budget {
    uint32_t stated; /* set of 1u << enum budget_item */
    int32_t most[BUDGET_ITEMS];
};

struct trace_launches {
    struct launch_budget budget;
    struct trace_launch *at; /* owned */
    size_t n;
    char not_measured[256]; /* why what was asked for is missing; "" where nothing is */
};

void launch_init(struct trace_launch *l);                  /* nothing is known */
double launch_occupancy(const struct trace_launch *l);     /* resident_warps of warp_slots, at most; NaN */
int64_t launch_shared_bytes(const struct trace_launch *l); /* static and dynamic; -1 */
bool launch_has_counters(const struct trace_launch *l);    /* any counter is known */

const char *budget_name(enum budget_item item); /* the key in [budget] and in JSON: "registers" */
const char *budget_noun(enum budget_item item); /* what it counts: "registers of a thread" */
/* What a launch takes of it; -1: not known. */
int64_t launch_takes(const struct trace_launch *l, enum budget_item item);

json_t *launches_json(const struct trace_launches *launches);
/* Appends what json says, every number checked; NULL, or which field is not what it must be (then *to is unchanged).
   Absent JSON is no launches. */
extern const char launches_no_memory[]; /* what it returns where memory ran out */
const char *launches_read(const json_t *json, struct trace_launches *to);
void launches_free(struct trace_launches *launches);

#endif
