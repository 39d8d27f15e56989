/* Who recorded an element: block, thread, line, and which of the thread's values it was. */
#ifndef TRACE_WRITERS_H
#define TRACE_WRITERS_H

#include "engine/base/safetensors.h"
#include "engine/trace/trace.h"

struct trace_writer {
    bool blocks;       /* several blocks recorded the tile: which of them is not known */
    uint32_t block[3]; /* blockIdx */
    int thread;        /* of the block */
    int number;        /* from 0: of the value in its probe, `i` of ASC_RECORD, the register of a fragment; below 0: */
    const struct trace_site *site; /* the probe line; NULL: not known */
};
enum {
    WRITER_SHARED = -1 /* it lay in memory that threads share: who recorded it need not have computed it */,
    WRITER_FAR = -2 /* a number that is not kept */
};

/* false: nobody recorded the element, or the trace does not say who. */
bool trace_writer(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col,
                  struct trace_writer *out);
/* The thread alone; -1: as above. */
int trace_writer_thread(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col);
/* Whether it says so of anything. */
bool trace_keeps_writers(const struct trace *t);

/* "block (3,0,0) warp 2 lane 17 (thread 81), value 5, kernel.cu:97". */
enum { WRITER_WORDS_BYTES = 400 };
void trace_writer_words(const struct trace_writer *w, char out[WRITER_WORDS_BYTES]);

/* As a file has them. Most tiles of a channel are recorded by the same threads of other blocks: so each of the
   different tiles of writers once, and for each tile which of them is its own. */
struct trace_writers {
    struct channel_writers {
        uint32_t *owned;        /* NULL: `planes` lies in the file */
        const uint32_t *planes; /* [n][rows * cols] as abi.h has an element */
        uint64_t n;             /* 0: there are none */
        uint32_t (*of)[4];      /* owned, [slots][n_kv]: plane, then the head of abi.h */
    } channel[ASC_ALL_CHANNELS];
    uint64_t nowhere; /* 0 */
};
void trace_writers_free(struct trace_writers *w); /* NULL is legal */
/* Of slots[n] or, where that is NULL, all; *out is NULL where there are none. It borrows from t. */
int trace_writers_collect(const struct trace *t, const int *slots, int n, struct trace_writers **out, struct err *err);
/* Of a file that t is being read from, whose layout stands. */
int trace_writers_read(const struct safetensors *file, const char *path, struct trace *t, struct err *err);

#endif
