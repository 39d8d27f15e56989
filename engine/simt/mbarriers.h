/* mbarriers of a block: arrivals, and bytes that copies have promised to bring. */
#ifndef SIMT_MBARRIERS_H
#define SIMT_MBARRIERS_H

#include <stdbool.h>
#include <stdint.h>

#define MBARRIERS_MAX 128u

struct worker;
struct fiber;

struct mbarrier {
    uint64_t address; /* shared; 0: none any more */
    uint32_t expected, pending;
    int64_t bytes;        /* that copies still have to bring; below 0: they came before they were expected */
    uint32_t phase;       /* phases that have completed */
    uint32_t waiting[32]; /* lanes of each warp, for the phase under way */
    const char *file;     /* of its init; borrowed */
    int line;
};

struct mbarriers {
    struct mbarrier at[MBARRIERS_MAX];
    unsigned n;
};

void mbarriers_begin_block(struct worker *w);
/* The barrier of an operation at this place; one that was never initialized ends the process. */
struct mbarrier *mbarrier_at(struct worker *w, uint64_t address, const char *what, const char *file, int line);
/* A copy has brought so many bytes. */
void mbarrier_brought(struct worker *w, struct mbarrier *b, int64_t bytes, const char *file, int line);
/* "the mbarrier of attn.cu:40: 1 of 2 arrivals are missing, and 8192 bytes" */
void mbarrier_describe(const struct mbarrier *b, char *text, unsigned size);

#endif
