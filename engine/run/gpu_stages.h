/* The captured stages of a run, judged by attnscope-judge on a GPU from the host's copies: which q tiles are right in
   every element of every stage, locally, globally and bit by bit. Of the others it says nothing. */
#ifndef RUN_GPU_STAGES_H
#define RUN_GPU_STAGES_H

#include "engine/base/pool.h"
#include "engine/build/runner.h"
#include "engine/oracle/oracle.h"
#include "engine/run/gpu_process.h"
#include "engine/trace/trace.h"

struct gpu_stages {
    uint8_t *good;               /* owned, [n_slots] 1: tiles and seen of the slot are what the CPU would say */
    struct tile_verdicts *tiles; /* owned, [n_slots][kv_tiles][ASC_CHANNELS] */
    uint32_t *seen; /* owned, [n_slots][kv_tiles] elements of S that are not masked; NULL: S does not show it */
    int n_good;
};
void gpu_stages_free(struct gpu_stages *g);

/* Why the CPU judges this run, NULL: the GPU knows all of it. f: which tensor core it used. -1: no memory. */
int gpu_stages_unknown(const struct trace *t, const struct fingerprint *f, const char **unknown);

/* What is asked of a complete live run that gpu_stages_unknown() has nothing against: all of its slots that the kernel
   went through as expected. pool: idle, or NULL. -1: *err; *out is NULL then. t and f are borrowed until it is freed.
 */
struct gpu_asking;
int gpu_stages_ask(const struct trace *t, const struct fingerprint *f, struct pool *pool, struct gpu_asking **out,
                   struct err *err);
void gpu_asking_free(struct gpu_asking *a); /* NULL is legal */
/* Judges them. process: who serves; NULL: the program is started for this. ERR_SYSTEM: one sentence. */
int gpu_stages_run(const struct gpu_asking *a, const char *program, struct gpu_process *process,
                   const struct runner_progress *progress, struct err *err);
/* What came of it. */
int gpu_stages_take(const struct gpu_asking *a, struct pool *pool, struct gpu_stages *out, struct err *err);

/* All three, one after the other. */
int gpu_stages_judge(const char *program, struct gpu_process *process, struct pool *pool, const struct trace *t,
                     const struct fingerprint *f, const struct runner_progress *progress, struct gpu_stages *out,
                     struct err *err);

/* Whether the CPU comes to the same about a slot: [kv_tiles][ASC_CHANNELS] each. Numbers are the same but for the
   order in which signed errors are added, the logarithms of LSE, and 2^-15 of bounds of U where the reference takes
   sums of the captured P for those of its weights. */
bool gpu_stages_agree(const struct tile_verdicts *gpu, const struct tile_verdicts *cpu, int kv_tiles);

#endif
