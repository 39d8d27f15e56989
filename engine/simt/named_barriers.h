/* Barriers 0 to 15 of a block as inline PTX uses them: some of its threads meet there, or only say that they came. */
#ifndef SIMT_NAMED_BARRIERS_H
#define SIMT_NAMED_BARRIERS_H

#include <stdbool.h>
#include <stdint.h>

#define NAMED_BARRIERS 16u /* PTX ISA, barrier{.cta}: "with value 0 through 15" */

struct worker;

/* One round; all zero: nobody has come. */
struct named_barrier {
    unsigned expected, arrived; /* threads */
    bool whole_block;           /* no number was given: the threads that have returned are not waited for */
    uint32_t came[32];          /* lanes of each warp */
    uint32_t waiting[32];       /* those of them that wait */
    const char *file;           /* of the first that came; borrowed */
    int line;
};

void named_barriers_begin_block(struct worker *w);
/* A thread has returned: that may complete a barrier of the whole block. */
void named_barriers_lane_left(struct worker *w);

#endif
