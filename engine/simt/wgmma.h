/* The wgmmas of a block's threads that nobody has waited for. */
#ifndef SIMT_WGMMA_H
#define SIMT_WGMMA_H

#include <stdbool.h>

struct worker;

struct wgmmas {
    struct wgmma_op *op;     /* owned, [capacity]; in order of issue */
    struct wgmma_sums *sums; /* owned, [sums_capacity]; accumulators that ops are to change */
    unsigned n, capacity, n_sums, sums_capacity;
    unsigned group; /* how often the thread has committed */
    bool fenced;    /* by wgmma.fence, since it last waited */
};

void wgmma_begin_block(struct worker *w);
void wgmma_block_left(struct worker *w); /* and all have: were there registers enough? */
void wgmma_left(struct worker *w);       /* a thread returns: what it never waited for is reported */
void wgmma_free(struct worker *w);

#endif
