/* The trace that an isolated run is fed from: laid out as that of the ordinary run, filled slot by slot with the
   reference or with another trace's values. */
#ifndef RUN_FEED_H
#define RUN_FEED_H

#include "engine/oracle/oracle.h"
#include "engine/trace/trace.h"

struct feed {
    const struct trace *run;  /* borrowed: the ordinary run */
    const struct trace *from; /* borrowed: whose values are fed; NULL: the reference's */
    uint32_t channels;        /* set of 1u << enum asc_channel */
    struct trace *trace;      /* owned: what is being filled */
    unsigned char *bytes;     /* owned: its mapping, writable */
};

/* 0 if `from` (opened from `path`) can feed these channels of `run`: the same problem, inputs, plan, conventions and
   types, and every slot of the run. ERR_INPUT says what differs. */
int feed_check(const struct trace *run, const struct trace *from, const char *path, uint32_t channels, struct err *err);

/* A new live trace of the same problem, slots, types and inputs, nothing recorded. */
int feed_trace_like(const struct trace *run, struct trace **out, struct err *err);
/* The same with other inputs, and room for `channels` alone (a set of 1u << enum asc_channel). */
int feed_trace_with(const struct trace *run, const struct trace_inputs *inputs, uint32_t channels, struct trace **out,
                    struct err *err);

int feed_open(struct feed *f, const struct trace *run, const struct trace *from, uint32_t channels, struct err *err);
/* Fills one slot; thread-safe for different slots. -1 without memory. */
int feed_slot(const struct feed *f, int slot, struct judge_scratch *scratch);
struct trace *feed_finish(struct feed *f); /* the filled trace, now the caller's */
void feed_close(struct feed *f);           /* drops what was not finished; legal after feed_finish and on zeros */

#endif
