/* Biased rounding over a whole run: per stage, head and kv step. A scan of its own, beside the session's other work: it
   judges every recorded q tile once more and, if asked, runs the kernel again with Q and with V negated before that. */
#ifndef STUDY_ROUNDING_H
#define STUDY_ROUNDING_H

#include "engine/oracle/rounding_bias/rounding_bias.h"
#include "engine/run/record.h"
#include "engine/verdict/judgement.h"
#include <stdbool.h>

/* heads counts through the batches; the last head and the last kv step stand for all of them. */
struct rounding {
    int heads, kv_tiles;
    struct rounding_cell *cells;  /* owned, [ASC_CHANNELS][heads + 1][kv_tiles + 1] */
    struct rounding_drift *drift; /* owned, [ROUNDING_CURVES][heads + 1][kv_tiles] */
    int *group;                   /* owned, [heads]: which K and V a head reads */
    bool negated;                 /* runs with negated inputs were asked for */
    char lost[256];               /* what of these could not be done, and why; "": nothing */
};

static inline const struct rounding_cell *rounding_cell(const struct rounding *b, enum asc_channel ch, int head, int kv)
{
    return &b->cells[((ptrdiff_t)ch * (b->heads + 1) + head) * (b->kv_tiles + 1) + kv];
}
/* Of all heads and kv steps. */
static inline const struct rounding_cell *rounding_stage(const struct rounding *b, enum asc_channel ch)
{
    return rounding_cell(b, ch, b->heads, b->kv_tiles);
}
static inline const struct rounding_drift *rounding_drift(const struct rounding *b, enum rounding_curve curve, int head,
                                                          int kv)
{
    return &b->drift[((ptrdiff_t)curve * (b->heads + 1) + head) * b->kv_tiles + kv];
}
/* Stages in which it was found, a set of 1u << enum asc_channel. */
unsigned rounding_found(const struct rounding *b);
/* Whether these are the ones that are expected; b NULL: none was looked for. why: one line, "" where nothing is stated.
 */
bool rounding_meets(const struct rounding *b, const struct expect *expect, char *why, size_t why_bytes);

/* What is run again; scenario NULL: it cannot be. */
struct rounding_source {
    const struct runner_paths *paths; /* borrowed until rounding_scan_free() */
    const struct scenario *scenario;  /* borrowed until the scan has begun */
};

struct rounding_progress {
    const struct rounding *result; /* of the last scan that came to its end; NULL: none has */
    enum runner_step step;         /* of the one that is under way; STEP_NONE: none is */
    int done, total;               /* heads */
    struct err err;                /* why the last one came to no end */
};

struct rounding_scan;

/* Begins at once. t and j (judged to the end) are borrowed until rounding_scan_free(). wake(ctx) is called on the
   scan's own thread whenever there is something to collect. negate: with runs of negated inputs. -1 without memory. */
int rounding_scan_new(const struct trace *t, const struct judgement *j, const struct rounding_source *source,
                      bool negate, void (*wake)(void *ctx), void *ctx, struct rounding_scan **out);
/* Once more, with runs of negated inputs or not; -1: one is under way. The last result stays until it ends. */
int rounding_scan_again(struct rounding_scan *s, const struct rounding_source *source, bool negate);
void rounding_scan_cancel(struct rounding_scan *s);
void rounding_scan_free(struct rounding_scan *s);    /* ends what is under way; NULL is legal */
void rounding_scan_finish(struct rounding_scan *s);  /* waits for its end, and collects */
bool rounding_scan_collect(struct rounding_scan *s); /* the state has changed */
const struct rounding_progress *rounding_scan_progress(const struct rounding_scan *s);

/* The run once more with Q, or V, negated: what only rounds has to give the negative result, bit for bit.
   Negates n elements of type t: changes their sign bits; of u8, whose values count from ASC_U8_MIDPOINT, the code
   becomes 256 - code. Returns how many have no negative (code 0 of u8), which stay. */
size_t negate_elements(enum dtype t, void *data, size_t n);

#endif
