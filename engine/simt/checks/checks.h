/* The checked build: the compiler reports every access of a kernel to memory, and what happens between its threads is
   followed here. What the rest of the executor calls; all of it is for a worker whose `checks` is not NULL. */
#ifndef CHECKS_CHECKS_H
#define CHECKS_CHECKS_H

#include "engine/simt/simt.h"

#include <stddef.h>
#include <stdint.h>

struct worker;
struct fiber;
struct checks;
struct copy;

bool checks_wanted(void); /* the kernel was compiled with checks */
struct checks *checks_new(void);
void checks_free(struct checks *c);

/* The arrays of the launches to come: what one of them writes is written for the next. */
void checks_configure(const struct simt_options *options);

/* Around a launch: every finding may be made again; at its end how often each was made is told. */
void checks_begin_launch(void);
void checks_end_launch(struct worker *const *workers, unsigned n);

/* Before a block, once its shared memory is known; and behind its last thread. */
void checks_begin_block(struct worker *w, uint64_t number);
void checks_end_block(struct checks *c);

/* The calling worker goes on as simt_tls.self. */
void checks_resume(struct worker *w);

/* What orders accesses: the block's barrier; a __syncwarp of these lanes; a barrier by number, to which a thread comes
   and behind which a warp goes on. */
void checks_barrier(struct worker *w);
void checks_syncwarp(struct worker *w, unsigned warp, uint32_t lanes);
void checks_named_come(struct worker *w, const struct fiber *self, unsigned id);
void checks_named_go(struct worker *w, unsigned warp, unsigned id);

/* The same of an mbarrier, by its number in the block. */
void checks_mbarrier_init(struct worker *w, unsigned number);
void checks_mbarrier_come(struct worker *w, const struct fiber *self, struct worker *block, unsigned number);
void checks_mbarrier_go(struct worker *w, const struct fiber *self, unsigned number);

/* And of the barrier of a cluster. */
void checks_cluster_come(struct worker *w, const struct fiber *self);
void checks_cluster_go(struct worker *w, const struct fiber *self);

/* fence.proxy.async: what the thread knows to be written, TMA and wgmma may read. */
void checks_proxy_fence(struct worker *w, const struct fiber *self);
/* They read, on the calling thread's behalf: what a store has written there needs that fence. */
void checks_async_read(struct worker *w, const void *p, size_t bytes, const char *file, int line);

/* An mbarrier that the calling thread has initialized; `fenced`: a fence is behind that, by which TMA and other blocks
   see it. */
struct checked_mbarrier {
    uint32_t stamp;
    bool fenced;
};
struct checked_mbarrier checks_mbarrier_born(struct worker *w);
/* The calling thread hands it to a copy, or arrives from another block. */
void checks_mbarrier_far(struct worker *block, struct checked_mbarrier born, bool copies, const char *file, int line);
/* wgmma of the calling thread: no wgmma.fence has come since it last waited. */
void checks_wgmma_unfenced(struct worker *w, const char *file, int line);

/* Bulk copies of the calling thread, to and from shared memory of block w: a load writes the bytes at `to` from its
   issue on until it is done, a store reads those at `from` at its issue. */
struct checked_copy {
    uint32_t site, stamp;
};
struct checked_copy checks_bulk_load(struct worker *w, const void *to, size_t bytes, unsigned mbarrier,
                                     const char *file, int line);
struct checked_copy checks_bulk_store(struct worker *w, const void *from, size_t bytes, const char *file, int line);
void checks_bulk_done(struct worker *w, const void *to, size_t bytes, struct checked_copy copy);

/* cp.async of the calling thread: from its issue to its wait the bytes at `to` are nobody's to touch. site is for the
   wait, and for a thread that returns without; call: the address behind the call that issues it. */
uint32_t checks_copy_issue(struct worker *w, const void *to, const void *from, size_t bytes, size_t read,
                           const void *call, const char *file, int line);
void checks_copy_done(struct worker *w, const void *to, size_t bytes, uint32_t site);
void checks_copy_left(struct worker *w, const void *to, size_t bytes, uint32_t site, const char *from);

/* Before the calling thread waits or returns: what it stored is there to look at. */
void checks_flush(struct checks *c);

#endif
