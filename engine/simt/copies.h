/* cp.async: the copies that the CUDA threads of a worker have under way. */
#ifndef SIMT_COPIES_H
#define SIMT_COPIES_H

#include <stdbool.h>
#include <stddef.h>

struct worker;

/* Copies of one thread, oldest first. */
struct copies {
    struct copy *copy; /* owned, [capacity]; first .. n - 1 are under way */
    unsigned first, n, capacity;
    unsigned group; /* that the next copy belongs to: how often the thread has committed */
};

void copies_begin_launch(void);            /* forgets what has been reported */
void copies_begin_block(struct worker *w); /* drops what nobody waited for */
void copies_left(struct worker *w);        /* a thread returns: what it never waited for is reported */
void copies_free(struct worker *w);
/* Whether the thread has no copy under way that is of the same group, by its number, as the copier's to `at`: it has
   waited for its own, or the copier has run ahead of it. false: also where no copy to `at` is under way, or the thread
   copies nothing. */
bool copies_waited(const struct worker *w, unsigned thread, unsigned copier, const void *at);
/* The array that the copier's copy to `at` reads, borrowed; NULL: none is under way, or the array is the kernel's. */
const char *copies_source(const struct worker *w, unsigned copier, const void *at);

#endif
