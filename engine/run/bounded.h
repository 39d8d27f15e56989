/* Capture in bounded memory, where all that is wanted does not fit: a first pass records nothing but the outputs, the
   oracle judges o and lse of a sample of q tiles by the inputs alone, and a second pass records in full the q tiles
   that are off, then those whose errors are unusual, then the neighbors of what is off, then others, as many as there
   is room for. What is unusual is no verdict: the stages' own, of what was recorded, are. */
#ifndef RUN_BOUNDED_H
#define RUN_BOUNDED_H

#include "engine/build/runner.h"
#include "engine/trace/trace.h"

enum bounded_state {
    BOUNDED_UNJUDGED, /* not in the sample */
    BOUNDED_SAMPLE,   /* to be judged */
    BOUNDED_OK,
    BOUNDED_OFF,
    BOUNDED_UNUSUAL, /* within its bounds, with errors that are not of the size of roundings */
    BOUNDED_OPEN     /* nothing follows for some element of it */
};

struct bounded {
    int32_t (*places)[3]; /* owned, [n]: batch, head, q tile of what is wanted, ascending */
    int64_t n;
    uint8_t *state;             /* owned, [n] enum bounded_state */
    uint64_t *hash;             /* owned, [n]: of what the first pass left of o and lse */
    struct output_noise *noise; /* owned, [n]: of what was judged */
    int64_t judged, off, unusual;
    int64_t by_gpu;  /* of the judged ones: nobody but the judge on a GPU has looked at them */
    char judge[192]; /* who judged and why not a GPU, one sentence; "": the CPU, nobody asked for another one */
};

/* Takes places over, also where it fails: -1 without memory. */
int bounded_begin(struct bounded *b, int32_t (*places)[3], int64_t n, struct err *err);
void bounded_end(struct bounded *b);

/* Chooses what is judged: everything where that takes at most `scores` scores; else one q tile of every head of every
   batch, the first and the last of the first and last head of every batch, and as many more, evenly spread, as `scores`
   allows. */
#define BOUNDED_SCORES (INT64_C(1) << 27) /* seconds of work */
void bounded_sample(struct bounded *b, const struct asc_problem *p, const struct asc_plan *plan, int64_t scores);

/* Judges the sample in a complete run t, on all cores; types as for place_case_make(). ERR_CANCELLED, ERR_SYSTEM. */
int bounded_judge(struct bounded *b, const struct trace *t, const int32_t *types,
                  const struct runner_progress *progress, struct err *err);

/* Every q tile, judged by attnscope-judge on `device`. The CPU judges the first, the worst, up to 16 more that are bad
   or unusual, those that the GPU says nothing of, 64 at most, and 8 good ones at random. Returns 0; 1: nothing is
   judged, and b->judge says why: it failed, or the CPU came to something else about any of these; -1: ERR_CANCELLED,
   ERR_SYSTEM. */
int bounded_judge_on_gpu(struct bounded *b, const struct trace *t, const int32_t *types, const char *program,
                         const char *device, const struct runner_progress *progress, struct err *err);

/* Part of bounded_judge(): which tiles are unusual, by their own noise and by the median of the run's tiles of
   about as many keys. -1: no memory. */
int bounded_find_unusual(struct bounded *b);

/* The first pass left this; and in how many places the second left something else, bit for bit. */
void bounded_remember(struct bounded *b, const struct trace *t);
int64_t bounded_differing(const struct bounded *b, const struct trace *t);

/* The places to record, at most room of them, ascending; returns how many. slots: [room]. */
int bounded_choose(const struct bounded *b, int32_t (*slots)[3], int room);

/* What came of it, for the trace of the second pass. differing -1: not known, one of both runs did not complete. */
void bounded_describe(const struct bounded *b, int64_t differing, struct trace_capture *out);

#endif
