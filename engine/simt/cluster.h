/* Blocks of a cluster: a worker for each, on a thread of its own, so that each has shared memory of its own where all
   can reach it. One of them runs at a time; whoever has the turn hands it on. A block that is in no cluster is a
   cluster of its own, and never hands on anything. */
#ifndef SIMT_CLUSTER_H
#define SIMT_CLUSTER_H

#include "engine/simt/simt.h"

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_MAX 8u /* CUDA C++ Programming Guide, Thread Block Clusters: what every device has */

struct worker;
struct fiber;

struct cluster {
    unsigned n; /* blocks */
    struct worker *member[CLUSTER_MAX];
    sem_t turn[CLUSTER_MAX];
    uint64_t number; /* of this launch */
    unsigned n_left; /* blocks whose threads all have returned */
    bool failed;     /* none of them can go on */
    bool over;       /* there is no further cluster */
    /* barrier.cluster: threads that have not come in this phase. */
    unsigned missing;
    uint32_t phase;
};

void cluster_init(struct cluster *c, unsigned n);
void cluster_free(struct cluster *c);

/* The thread of a member: false: there is no further cluster. `draw`: the leader takes a number, false: none. */
bool cluster_next(struct worker *w, bool draw(uint64_t *number));
/* Each member once before it runs: behind it all of them have begun. */
void cluster_begun(struct worker *w);
/* All threads of the block have returned, or cannot go on: the others have the turn. */
void cluster_left(struct worker *w);

/* The others have their turn, `first` before the rest, NULL: whoever is next; false: nobody else can run. */
bool cluster_turn(struct worker *w, struct worker *first);
/* Whether another block has a thread that can run. */
bool cluster_can_run(const struct worker *w);

/* A thread of the block returns. */
void cluster_lane_left(struct worker *w, struct fiber *self);

/* The place of block `number` / n in the grid, of this rank. */
struct simt_dim cluster_block(const struct simt_launch *l, uint64_t cluster, unsigned rank);

#endif
