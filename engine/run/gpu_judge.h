/* O and LSE of q tiles, judged by attnscope-judge on a GPU from the host's copies of the tensors. */
#ifndef RUN_GPU_JUDGE_H
#define RUN_GPU_JUDGE_H

#include "engine/build/runner.h"
#include "engine/judge/work.h"
#include "engine/oracle/oracle.h"
#include "engine/trace/trace.h"

/* What came of one q tile. */
struct gpu_verdict {
    int64_t bad; /* elements of O and LSE */
    double worst;
    bool open; /* a number that the GPU's formulas say nothing of */
    struct output_noise noise;
};

struct gpu_judged {
    struct gpu_verdict *tiles;  /* owned, [n] */
    struct judge_value *values; /* owned: of each tile O's [rows][head_dim_v] and then LSE's [rows]; NULL: not asked */
    int64_t n_values;
};
void gpu_judged_free(struct gpu_judged *g);

/* Whether the judge on a GPU knows these q tiles: NULL, or what it does not know. ERR_SYSTEM: no memory. */
int gpu_judge_unknown(const struct trace *t, const int32_t *types, int32_t (*places)[3], int64_t n,
                      const char **unknown, struct err *err);

/* Whether a GPU has next to no units for float64: those made for graphics have 2 for a multiprocessor's 128 of f32,
   those made for computing half or all as many (CUDA C++ Programming Guide, "Arithmetic Instructions"). The CPU is
   asked then, unless the user asks for the GPU. false: the driver does not say. */
bool gpu_judge_is_slow(const struct gpu_device *gpu);
/* "NVIDIA GeForce RTX 4090 computes float64 at 1/64 of f32's rate: the products of every q tile take at least 55 s
 * there".
 */
void gpu_judge_slow_words(const struct gpu_device *gpu, const struct asc_problem *p, char *out, size_t bytes);

/* The judge's program, and the device it would run on ("NVIDIA H200"). ERR_SYSTEM: why there is none, one sentence. */
int gpu_judge_find(const struct runner_paths *paths, char *program, size_t program_bytes, char *device,
                   size_t device_bytes, struct err *err);

/* Judges n q tiles of a complete live run; types as for place_case_make(). ERR_SYSTEM: one sentence. */
int gpu_judge_run(const char *program, const struct trace *t, const int32_t *types, int32_t (*places)[3], int64_t n,
                  bool values, const struct runner_progress *progress, struct gpu_judged *out, struct err *err);

#endif
