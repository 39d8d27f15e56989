/* Bulk copies (TMA) of a block that are under way. A GPU makes one any time between its issue and the wait for it; here
   at the wait, or, in a shuffled order, as often at its issue. */
#ifndef SIMT_BULK_H
#define SIMT_BULK_H

struct worker;
struct mbarrier;

void bulk_begin_block(struct worker *w);
void bulk_deliver(struct worker *w, struct mbarrier *b); /* those that this barrier is told of */
void bulk_left(struct worker *w);                        /* a thread returns: its stores are made */
void bulk_free(struct worker *w);

#endif
