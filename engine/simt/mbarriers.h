/* mbarriers of a block: arrivals, and bytes that copies have promised to bring. */
#ifndef SIMT_MBARRIERS_H
#define SIMT_MBARRIERS_H

#include "engine/simt/checks/checks.h"

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
    const void *pc, *body;
    const struct fiber *by; /* who has initialized it */
    struct checked_mbarrier born;
    /* The phase that the last copy belongs to, and the last that somebody has seen completed; counted from 1. */
    uint32_t filled, seen;
    const char *copy_file; /* of that copy; borrowed */
    int copy_line;
};

struct mbarriers {
    struct mbarrier at[MBARRIERS_MAX];
    unsigned n;
};

void mbarriers_begin_block(struct worker *w);
/* All threads have returned: copies that nobody has waited for are reported. */
void mbarriers_left(struct worker *w);
/* The barrier of an operation at this place, and the block of the cluster that has it; one that was never initialized
   ends the process. */
struct mbarrier *mbarrier_at(struct worker **block, uint64_t address, const char *what, const char *file, int line);
/* A copy of block w has been issued; it has brought so many bytes. */
void mbarrier_filled(struct mbarrier *b, const char *file, int line);
void mbarrier_brought(struct worker *w, struct mbarrier *b, int64_t bytes, const char *file, int line);
/* "the mbarrier of hopper.cuh:24, called at attn.cu:40 (2 of 6 initialized there, shared address 0x8010), phase 3:
   1 of 2 arrivals are missing, and 8192 bytes" */
void mbarrier_describe(const struct mbarriers *all, unsigned number, char *text, unsigned size);

#endif
