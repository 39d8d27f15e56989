/* One run of a scenario, start to end, in the calling thread: build, plan, choose slots, launch. */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

#include "engine/build/runner.h"
#include "engine/run/filled.h"
#include "engine/scenario/scenario.h"

/* What stays warm between runs. Zero-initialize; free with recorder_free. */
struct recorder {
    struct build build;
    enum probes probes; /* what they do in it */
    struct child *child;
    struct guardian *guardian; /* owned: of device memory, on a GPU; NULL: none was needed yet */
    struct gpu_process *judge; /* owned: of what was captured; NULL: none was needed yet, or there is none */
    bool falls_back;           /* the last run took pinned memory, since there was no other */
    struct trace_store *store; /* owned: the memory of traces that are gone */
    struct pool *pool;         /* owned: fills inputs and traces; NULL: the calling thread does */
    struct filled filled;      /* owned: inputs as they were filled last */
    struct gpu_device gpu;     /* what the build is for, on the GPU */
};

/* Where all that the scenario wants does not fit its capture.mem, which counts the live trace (inputs, outputs,
   recorded values): two runs, as bounded.h says, one after the other in that much memory. Beside it one copy of the
   inputs while they are made (of what is filled it stays, see FILLED_BYTES), and the oracle's working memory, a few MiB
   for each core. 0: *out is a complete trace. -1: *err says why; *out is NULL, or what was recorded until then (crash,
   limit, cancel).
 */
int record(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
           const struct runner_progress *progress, struct trace **out, struct err *err);

/* Makes sure that the cache has what a run with these probes launches. last: as build_request has it. */
int record_build(const struct runner_paths *paths, const struct scenario *scenario, enum probes probes,
                 const struct build *last, const struct runner_progress *progress, struct err *err);

/* Makes r->child one of a build for the scenario's types and head_dim: to ask the kernel what it takes. */
int record_child(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                 enum probes probes, const struct runner_progress *progress, struct err *err);

/* What child_profile() and child_bench() launch on: r->child is one of a build with these probes, *out a live trace of
   the scenario's inputs. room: it holds what record() would record in one pass; false: nothing. */
int record_open(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                enum probes probes, bool room, const struct runner_progress *progress, struct trace **out,
                struct err *err);

/* The run of `run` once more, in a build whose probes feed: the same problem, slots and inputs, `channels` (a set of
   1u << enum asc_channel) overwritten with the values of `fed`, a trace of the same layout that is taken over.
   (*out)->fed is it, and fed_channels what did reach the kernel. ERR_INPUT where the kernel is not the one of `run` any
   more. */
int record_fed(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
               const struct trace *run, struct trace *fed, uint32_t channels, const struct runner_progress *progress,
               struct trace **out, struct err *err);
/* The kernel of `run` once more, in a build with these probes, into the live trace t, which is taken over: one of the
   same problem and slots, with inputs of its own. As record(); ERR_INPUT where the kernel is another one now. */
int record_again(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                 const struct trace *run, enum probes probes, struct trace *t, const struct runner_progress *progress,
                 struct trace **out, struct err *err);
void recorder_free(struct recorder *r);

/* The layout and the types of Q, K and V where a scenario leaves them open: their defaults where the kernel takes them,
   else the first that it takes. */
void adopt_types(const struct child_hello *hello, struct scenario *scenario);

/* Which backend a scenario asks for, enum scenario_backend: itself, or by ATTNSCOPE_BACKEND where that leaves it open.
 */
int backend_wish(const struct scenario *scenario, int *out, struct err *err);

/* Fills the backend's part of *request (backend, gpu, debug); *gpu is what request->gpu then points to. A scenario that
   leaves it open runs on the GPU if a device answers and there is a compiler for it, else on the CPU; `note` (at most
   `size` bytes, may be "") says why a device that is there is not used. ERR_SYSTEM: a GPU is asked for and cannot be
   had. ERR_INPUT: ATTNSCOPE_BACKEND is none of auto, gpu, cpu. */
int backend_choose(const struct runner_paths *paths, const struct scenario *scenario, struct build_request *request,
                   struct gpu_device *gpu, char *note, size_t size, struct err *err);

#endif
