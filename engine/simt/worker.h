/* What one worker thread holds while it runs a block: the block's CUDA threads, warps and barrier. */
#ifndef SIMT_WORKER_H
#define SIMT_WORKER_H

#include "engine/simt/cluster.h"
#include "engine/simt/copies.h"
#include "engine/simt/include/simt_runtime.h"
#include "engine/simt/mbarriers.h"
#include "engine/simt/named_barriers.h"
#include "engine/simt/wgmma.h"

#include <pthread.h>
#include <stdatomic.h>

#define SIMT_THREADS_MAX 1024u /* per block (CUDA C++ Programming Guide, technical specifications) */
#define SIMT_WARPS_MAX (SIMT_THREADS_MAX / 32u)

/* A CUDA thread. Where it waits is told by the sets of its warp: in none of them and alive, it is at
   __syncthreads. */
struct fiber {
    void *sp;
    struct simt_dim index;
    uint8_t lane, warp;
    uint8_t barrier;  /* the named one it waits at */
    uint8_t mbarrier; /* or the number of the mbarrier */
    /* barrier.cluster: 1 + the phase at which it came last, and that it has waited for. */
    uint32_t cluster_came, cluster_waited;
    uint16_t spins;       /* simt_spin calls since it last let others run */
    bool spinning;        /* it has called that many times since it last waited */
    enum simt_warp_op op; /* of the warp operation it waits at */
    uint32_t mask;
    simt_combine_fn *combine;
    int line; /* of the last place where it waited */
    const char *file;
    const void *pc;                       /* there */
    const void *body;                     /* of its ASC_AT; NULL: none yet */
    int32_t batch, head, q_tile, kv_tile; /* of its ASC_AT and its last probe; -1: unknown */
    int32_t visited;                      /* 1 + the kv tile that it recorded last; 0: none */
    uint32_t visits;                      /* how often it has come to another one */
    /* What simt_records() has said of tiles in one of its visits, by some bits of their offset; visit 0: nothing. The
       rows of a tile ask the same, and the table that knows is larger than a cache. */
    struct fiber_answer {
        size_t offset;
        uint32_t visit; /* 1 + it */
        int who;
    } answer[16];
};

/* Sets of lanes. */
struct warp {
    uint32_t alive;
    uint32_t ready;   /* may run */
    uint32_t waiting; /* in a warp operation */
    uint32_t active;  /* in __activemask */
    uint32_t named;   /* at a named barrier */
    uint32_t at_mbarrier;
    uint32_t at_cluster;        /* in barrier.cluster.wait */
    const char *registers_file; /* of its first setmaxnreg; borrowed */
    int registers_line;
    uint16_t registers; /* of a thread, by setmaxnreg; 0: those of the launch */
    uint32_t step;      /* in lockstep: lanes of the group that takes a step, and have not yet */
    uint32_t met;       /* waiting lanes that are known to be in the same operation as `first` */
    uint8_t first;      /* lane */
    void *arg[32];      /* borrowed from the waiting lanes' stacks */
};

struct worker {
    struct warp warp[SIMT_WARPS_MAX];
    uint32_t ready_warps; /* warps with a ready lane */
    unsigned n_threads, n_alive, n_at_barrier;
    uint32_t order;                  /* of lanes and warps: simt_options.lane_order */
    uint64_t drawn;                  /* of what a shuffled order draws: a counter */
    uint32_t ranks;                  /* in a shuffled order: what the ranks of lanes and warps follow from */
    bool traps;                      /* floating-point traps wanted */
    bool masked;                     /* they are off until the next wait */
    unsigned stale;                  /* traps taken at places already reported */
    bool probed;                     /* the launch under way came by an ASC_AT */
    unsigned epoch;                  /* barriers passed */
    unsigned sum;                    /* predicates of the barrier under way */
    int result[2][SIMT_BARRIER_OPS]; /* of the last two barriers, by epoch */
    const char *barrier_file;
    int barrier_line;
    struct named_barrier named[NAMED_BARRIERS];
    bool failed;             /* this block cannot go on */
    struct cluster *cluster; /* borrowed; it is a member, alone or among others */
    unsigned rank;           /* in there */
    bool left;               /* all of its threads have returned */
    bool parked;             /* another block of the cluster has the turn */
    unsigned yields;
    pthread_t thread;
    atomic_bool in_block;
    uint64_t clock;
    const struct simt_launch *launch; /* borrowed */
    struct simt_dim block;
    void *main_sp;
    unsigned char *stacks; /* owned, [n_stacks] */
    unsigned n_stacks;
    unsigned char *signal_stack;              /* owned */
    unsigned char *shared_begin, *shared_end; /* borrowed: this thread's thread-local storage, shared memory in it */
    bool copying;                             /* a thread of this block has used cp.async */
    struct checks *checks;                    /* owned; NULL: the kernel was not compiled with checks */
    struct copies copies[SIMT_THREADS_MAX];
    struct mbarriers mbarriers;
    struct bulk *bulk; /* owned; NULL: no thread has used it yet */
    bool multiplying;  /* a thread of this block has used wgmma */
    struct wgmmas wgmmas[SIMT_THREADS_MAX];
    struct fiber fiber[SIMT_THREADS_MAX];
};

/* All of the runtime's thread-local state, in one place because shared memory lies around it. */
struct simt_tls {
    struct worker *worker;
    struct fiber *self;     /* the CUDA thread that runs; NULL in host code */
    struct checks *checks;  /* who is told of its accesses; NULL: nobody */
    struct checks *probing; /* in a probe: who is told of what it reads in shared memory */
    int reporting;          /* reports that it is inside of */
    bool locating;          /* looking for the lines of a report */
    uintptr_t fault;        /* the instruction that a signal stopped; 0: none */
};
extern __thread struct simt_tls simt_tls __attribute__((tls_model("local-exec")));

/* The 32 lanes of a warp. */
static inline struct fiber *worker_lanes(struct worker *w, unsigned warp)
{
    return w->fiber + (size_t)warp * 32;
}

/* scheduler.c: who runs next. */
struct fiber *schedule_next(struct worker *w, unsigned warp); /* NULL: nobody can run */
void schedule_wait(struct worker *w, struct fiber *self);     /* parks until made ready */
void schedule_ready(struct worker *w, unsigned warp, uint32_t lanes);
void schedule_begin_block(struct worker *w, uint64_t number);
/* In lockstep, before an access at pc: until the other lanes that are there have come to theirs. */
void schedule_step(struct worker *w, struct fiber *self, const void *pc);
/* One of these lanes, which are ready, runs next; the calling thread some time later. */
void schedule_hand(struct worker *w, struct fiber *self, unsigned warp, uint32_t lanes);
/* The same of another block of the cluster. */
void schedule_hand_block(struct worker *w, struct fiber *self, struct worker *block);
/* As often as not, in every order the same for the block and n. */
bool schedule_coin(const struct worker *w, uint32_t n);
/* In a shuffled order: somebody else may run first. */
void schedule_turn(struct worker *w, struct fiber *self);

/* warp.c: an exit may complete what other lanes wait for. */
void warp_lane_left(struct worker *w, unsigned warp);
void warp_release_active(struct worker *w, unsigned warp);
const char *warp_op_name(enum simt_warp_op op);

/* block.c. What block_run() runs is the block at w->block; w->failed where it could not be finished. */
void block_set_up(struct worker *w, uint64_t number);
void block_run(struct worker *w);
void block_deadlock(struct worker *w) __attribute__((noreturn));
void block_say_deadlock(struct worker *w); /* of its cluster: none of its blocks can go on */
void block_abandon(struct worker *w) __attribute__((noreturn));

#endif
