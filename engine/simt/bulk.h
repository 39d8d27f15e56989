/* Bulk copies (TMA) of a block that are under way. A GPU makes one any time between its issue and the wait for it; here
   by turns that look random at its issue, where what still reads its place shows, and at the wait, where what reads it
   too early does. */
#ifndef SIMT_BULK_H
#define SIMT_BULK_H

struct worker;
struct mbarrier;

void bulk_begin_block(struct worker *w);
void bulk_deliver(struct worker *w, struct mbarrier *b); /* those that this barrier is told of */
void bulk_left(struct worker *w);                        /* a thread returns: its stores are made */
void bulk_block_left(struct worker *w);                  /* and all have: what is still to come is dropped */
void bulk_free(struct worker *w);

#endif
