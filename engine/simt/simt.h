/* The CPU SIMT executor as its host sees it: runs one kernel launch, blocks spread over worker threads, CUDA threads as
   fibers. The device-side interface that kernels compile against is simt_device.h. */
#ifndef SIMT_SIMT_H
#define SIMT_SIMT_H

#include "engine/trace/event.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Shared memory a launch may ask for, bytes: what an H100 block can have (CUDA C++ Programming Guide, compute
   capability 9.0: 227 KB). */
#define SIMT_SHARED_MAX 232448u

struct simt_dim {
    uint32_t x, y, z;
};

/* A place in a function of the user's. */
struct simt_frame {
    const char *function; /* as the linker names it; NULL: unknown */
    const char *file;
    int line;
};
#define SIMT_FRAMES 8
/* What was being executed, innermost first, inlined functions too: the last one is the kernel's body. Where there are
   more, the outermost stands last all the same. Frames of attnscope's and of the system's headers are left out. */
struct simt_stack {
    int n; /* 0: unknown */
    struct simt_frame at[SIMT_FRAMES];
};

/* Something a GPU would have hidden or died of. */
struct simt_report {
    enum event_kind kind;
    const char *text; /* one sentence; a deadlock's listing has a line per group of threads */
    const char *file; /* NULL: unknown */
    int line;
    struct simt_dim block, thread;
    struct simt_stack stack; /* n 0, or the first frame is file and line */
    bool fatal;              /* the process is about to end, or this launch has failed */
    /* Of a checked kernel. */
    const char *other_file; /* of what it collides with; NULL: nothing, or unknown */
    int other_line;
    struct simt_stack other_stack;
    int32_t batch, head, q_tile, kv_tile; /* that the thread works on; -1: unknown */
    int number; /* from 1: one that is counted; the same comes once more, at the launch's end, for what stands below */
    int times;  /* so far */
    struct simt_frame recorder; /* the probe that has recorded the bytes that it is of; file NULL: none, or unknown */
};

/* An array a kernel works on, so that reports of bad addresses can name it. */
struct simt_region {
    const char *name;
    const void *begin;
    size_t bytes;
    int dtype;          /* enum dtype of its elements; -1: unknown */
    bool output;        /* each element is written by one thread, and is to be a number */
    bool unwritten;     /* what nobody has written so far holds ARRAY_POISON_16, repeated */
    unsigned serial;    /* of what host code allocates: no two have the same; 0: it is the run's own */
    bool host;          /* memory of the CPU: nothing here is a kernel's to reach */
    size_t guard_bytes; /* of the pages on either side that nobody may reach; 0: unknown */
};

/* Orders that CUDA allows. Shuffled: another lane, often of another warp, at every place where lanes wait or have met;
   some fall behind for long. cp.async copies at its issue as often as at the wait for it, and what lanes hand each
   other through memory without a barrier is read early as often as late. The same seed gives the same order. Lockstep,
   which CUDA does not promise: the lanes of a warp come to each access to shared memory together (of a checked build;
   one without it runs as ascending). */
enum { SIMT_ASCENDING, SIMT_DESCENDING, SIMT_LOCKSTEP, SIMT_SHUFFLED };

struct simt_options {
    int workers;             /* threads; 0: as many as cores */
    bool fp_traps;           /* report the first invalid, divide and overflow of each source line */
    int planned_threads;     /* per block; a launch with another number is reported. 0: any */
    const char *tensor_core; /* whose matrix products, a name of tensor_core.def; NULL, "": "h100" */
    uint32_t lane_order;     /* which ready lane runs first: SIMT_ASCENDING, ..., or SIMT_SHUFFLED + any seed */
    /* Called from worker threads and from signal handlers, one at a time. May be NULL. */
    void (*report)(void *ctx, const struct simt_report *report);
    void (*progress)(void *ctx, uint64_t blocks_done, uint64_t blocks); /* after each block, one call at a time */
    void *ctx;
    const struct simt_region *regions; /* borrowed while a launch runs */
    int n_regions;
};
void simt_configure(const struct simt_options *options);
/* From another thread, while a launch runs: reports where the warps of the blocks under way stand. */
void simt_where(void);

/* true: a launch does nothing but to be seen, until false, which returns how many threads a block had at most. */
unsigned simt_rehearse(bool begin);

/* Asks a launch under way to stop at the next block. Safe from any thread. */
void simt_cancel(void);

struct simt_launch {
    struct simt_dim grid, block;
    struct simt_dim cluster; /* blocks; 0: not said, one alone unless the kernel has __cluster_dims__ */
    size_t shared_bytes;     /* dynamic */
    void (*entry)(void *args);
    void *args;
    const char *name;
};
/* Runs the launch to its end. 0, or -1: refused or failed; simt_error() is the sentence, a fatal report has been made.
 */
int simt_launch(const struct simt_launch *launch);
const char *simt_error(void); /* of the last launch; NULL when it was fine */

/* Rises with every probe and barrier of the calling block: the block-local clock of stamps. Never 0. The same numbers
   on every run: a block's fibers run on one thread in a fixed order. */
uint64_t simt_clock(void);

#ifdef __cplusplus
}
#endif
#endif
