/* Inside of the checks: what one worker knows of the block it runs. */
#ifndef CHECKS_STATE_H
#define CHECKS_STATE_H

#include "engine/simt/checks/checks.h"
#include "engine/simt/checks/findings.h"
#include "engine/simt/worker.h"
#include <stdbool.h>

/* Who touched a byte and when: a thread of the block, and the time at which it last met others. Times count the
   meetings of a block; a block runs on one worker, so they are in one order. */
#define STAMP_THREAD 0x3FFu
#define STAMP_TIME_SHIFT 10u
#define STAMP_TIME_MAX 0xFFFFFu
#define STAMP_KIND 0xC0000000u

static inline uint32_t stamp_time(uint32_t stamp)
{
    return stamp >> STAMP_TIME_SHIFT & STAMP_TIME_MAX;
}
static inline unsigned stamp_thread(uint32_t stamp)
{
    return stamp & STAMP_THREAD;
}
static inline unsigned stamp_warp(uint32_t stamp)
{
    return (stamp & STAMP_THREAD) / 32;
}

/* The last write of a byte, 0: nobody in this block wrote it; and the reads since, 0: none. Of several readers that
   nothing orders the last stands there, and that there are others. */
struct cell {
    uint32_t w, r;
};
/* Kinds of cell.w. */
#define WROTE_PLAIN 0u
#define WROTE_ATOMIC (1u << 30)
#define WROTE_ASYNC (2u << 30)   /* a cp.async that is under way */
#define WROTE_OUTSIDE (3u << 30) /* no array lies there */
/* And of cell.r. */
#define READ_LANES (1u << 30) /* other lanes of that warp too */
#define READ_WARPS (2u << 30) /* other warps too: checks.warps */
/* Stands for unhooked code of libraries that wrote the byte: before everything. */
#define WROTE_UNSEEN 1u

/* other: of the last reader that was of another warp than cell.r, and which. */
struct cell_sites {
    uint32_t w, r, other, other_warp;
};

struct cell_probe {
    uint32_t stamp, site; /* stamp 0: none */
};

/* Lanes of a warp that have come to a barrier by number, and when. */
struct came {
    uint32_t lanes, time;
};

#define BARRIERS (NAMED_BARRIERS + MBARRIERS_MAX + 1) /* the last: of the cluster, with its first block */
#define CLUSTER_BARRIER (BARRIERS - 1)

/* What is known of the order of the threads of a block, or of all those of a cluster, numbered through. */
struct order {
    uint32_t now;
    bool exhausted; /* more meetings than a stamp can count, or more threads: from then on all counts as ordered */
    bool partial;   /* a __syncwarp of a part of a warp: lane_known counts */
    uint32_t clock[SIMT_THREADS_MAX];
    uint32_t fenced[SIMT_THREADS_MAX]; /* when each had its last proxy fence behind it */
    /* What warp j did before time known[i][j] is before all that warp i does now. */
    uint32_t known[SIMT_WARPS_MAX][SIMT_WARPS_MAX];
    uint32_t lane_known[SIMT_THREADS_MAX][32];
};

/* What is told at the barriers of a block by number, and at mbarriers behind them. */
struct said {
    uint32_t base; /* of the last barrier of the block */
    uint32_t said[BARRIERS][SIMT_WARPS_MAX];
    struct came came[BARRIERS][SIMT_WARPS_MAX];
};

/* A store to an output, whose value is looked at when the thread comes to wait. */
struct store {
    uintptr_t at;
    uint32_t bytes, site;
    int region;
    unsigned thread;
};
#define STORES_MAX 64u

/* A store to what another thread has written, nothing orders them: what stood there before it was made. */
struct twice {
    size_t at;
    uint32_t bytes, other, site, other_site; /* bytes 0: there is none */
    unsigned thread;
    uint32_t recorder; /* as in struct checks */
    unsigned char before[16];
};

/* A site that has read, as shorter numbers, what another one wrote. */
struct mixture {
    uint32_t reader, writer;
    bool ordered;    /* and knew of the write */
    bool raced;      /* and did not */
    bool reads_own;  /* it also reads numbers that were written as long as it reads them */
    bool has_reader; /* another site reads what the writer has written as it was written */
    bool told;
};
#define MIXTURES_MAX 16u

struct checks {
    /* Of the thread that runs. */
    uint32_t stamp;
    const uint32_t *known; /* its warp's row */
    uint32_t base;
    uintptr_t stacks_begin, stacks_bytes;
    uintptr_t shared_begin, shared_bytes;
    struct cell *cell;        /* owned, [shared_bytes] */
    struct cell_sites *sites; /* owned, as cell */
    uint32_t *warps;          /* owned, as cell: where READ_WARPS stands, the warps that read */
    struct cell_probe *probe; /* owned, as cell: the probe that read last, since the last write */
    uint8_t *filled;          /* owned, as cell: 1: a copy wrote last, no store */
    uint8_t *width;           /* owned, as cell: bytes of the store that wrote last; 0: it was none */
    unsigned n_mixtures;
    struct mixture mixture[MIXTURES_MAX];
    bool probed;           /* any of this block's did */
    size_t dynamic_bytes;  /* that the cells stand for; SIZE_MAX: none yet */
    struct worker *worker; /* borrowed */
    uint64_t block;
    int region; /* of the last global access */
    unsigned n_stores;
    struct store store[STORES_MAX];
    struct twice twice;
    size_t store_end;    /* of the plain store under way; 0: none is */
    uint32_t recorder;   /* the probe that has recorded the byte of what is counted next; 0: none since its write */
    struct order *order; /* borrowed: that of the cluster's first block, or own */
    struct order own;
    struct said told;
    unsigned first;  /* number of the block's first thread in there */
    unsigned stride; /* of a cluster: from a block's first thread to the next block's; 0: the block is alone */
    struct findings findings;
};

/* Whether the access of this stamp is before all that the running thread does now. */
static inline bool is_before(const struct checks *c, uint32_t stamp)
{
    const uint32_t time = stamp_time(stamp);
    if (time < c->known[stamp_warp(stamp)])
        return true;
    return c->order->partial && stamp_warp(stamp) == stamp_warp(c->stamp) &&
           time < c->order->lane_known[stamp_thread(c->stamp)][stamp & 31];
}

/* shadow.c: accesses to shared memory, `at` bytes into the block's. `many`: READ_LANES where the warp reads as a whole,
   so that nobody knows which lane reads what. */
void shadow_clear(struct checks *c, size_t dynamic_bytes);
void shadow_read(struct checks *c, size_t at, size_t bytes, uint32_t many, uint32_t site);
void shadow_probe(struct checks *c, size_t at, size_t bytes, uint32_t site); /* a probe reads */
void shadow_write(struct checks *c, size_t at, size_t bytes, uint32_t kind, uint32_t site);
void shadow_settle(struct checks *c);                                         /* the store of `twice` has been made */
void shadow_update(struct checks *c, size_t at, size_t bytes, uint32_t site); /* atomic, reads and writes */

enum access { READ, WRITE, UPDATE };
/* global.c: the arrays of a launch. atomic: such a write collides with no other such. */
void global_configure(const struct simt_options *options);
void global_begin_launch(void);
void global_end_launch(void);
void global_access(struct checks *c, uintptr_t at, size_t bytes, enum access access, bool atomic, uint32_t site);

/* Any access of the running thread; also of code of ours on its behalf. */
void checks_read(struct checks *c, const void *p, size_t bytes, uint32_t many, uint32_t site);

/* Whose stamps have this number; *block: its block. */
const struct fiber *checks_fiber(const struct checks *c, unsigned thread, const struct worker **block);
/* "thread (1,0,0)", and of which block where it is not that of the cells. */
#define WHO_BYTES 96
const char *checks_who(const struct checks *c, unsigned thread, char text[WHO_BYTES]);
/* The running thread touches memory of this block's: its cells are asked on that one's behalf. */
struct checks *checks_of(struct checks *running, struct worker *block);

/* order.c */
void order_begin_block(struct checks *c, unsigned threads);

#endif
