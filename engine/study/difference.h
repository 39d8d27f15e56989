/* Two runs of one problem set side by side, element by element. */
#ifndef STUDY_DIFFERENCE_H
#define STUDY_DIFFERENCE_H

#include "engine/base/err.h"
#include "engine/trace/trace.h"
#include <stdbool.h>

struct difference_place {
    uint64_t order; /* execution order; UINT64_MAX: there is none */
    enum asc_channel channel;
    char own[sizeof((struct asc_value *)NULL)->name]; /* of a value of the kernel's own; "": it is none */
    int32_t place[3];                                 /* batch, head, q tile */
    int kv;                                           /* -1 for a channel that exists once per slot */
    int row, col;        /* of the tile; of l in several lanes, col 0 stands for all of them */
    double got[2];       /* in either run */
    int32_t unwritten_a; /* 1: never written there */
    int32_t unwritten_b;
};

/* One channel over all that both runs hold of it; o and lse are what complete runs left in their outputs. An element
   falls into exactly one of the seven counts.

   Elements of other bits are compared by the oracle's local bounds B, each from what its own run captured upstream: a
   correct stage gives a with |a - want_a| <= B_a and b with |b - want_b| <= B_b, so that
   |(a - want_a) - (b - want_b)| <= B_a + B_b. Where both runs hold the same bits upstream this is |a - b|; elsewhere it
   is what this stage added to the difference. Of a narrow type B reaches to the ends of its rounded interval. */
struct channel_difference {
    bool in[2];                        /* this run recorded it */
    uint64_t compared;                 /* elements of both: the sum of the counts */
    uint64_t same;                     /* the same bits, NaN and never-written ones included */
    uint64_t nan_bits;                 /* NaN in both, of other bits */
    uint64_t within, beyond;           /* other bits; |difference| <= both bounds, or not */
    uint64_t unbounded;                /* other bits, and no bound is known: counts as different */
    uint64_t classes;                  /* -inf, +inf, NaN or finite in one run, and not in the other */
    uint64_t coverage;                 /* written in one run alone */
    uint64_t nan, unwritten;           /* in both runs, among the counts above: said, since NaN equals nothing */
    uint64_t lost[2];                  /* values without a place in the trace, or of another type than declared */
    double largest;                    /* |a - b| of finite ones */
    double largest_ratio;              /* of what is compared to both bounds; infinite where both are 0 */
    uint64_t largest_ulp;              /* steps of the type between both; 0 where no bits differ */
    struct difference_place first;     /* of other bits */
    struct difference_place first_bad; /* that is not within both bounds */
};

struct difference {
    /* Of a value of the kernel's own no bound is known: what differs is unbounded, and nothing against
     * difference_within.
     */
    struct channel_difference channel[ASC_ALL_CHANNELS];
    int64_t places;    /* (batch, head, q tile)s of the problem */
    int64_t both;      /* recorded in both runs */
    int64_t only[2];   /* in one alone: not compared, but for o and lse of complete runs */
    bool outputs;      /* both runs are complete, so o and lse are compared everywhere */
    int64_t reordered; /* recorded in both, kv tiles visited in another order */
    int complete[2];
};

/* 0 if a and b (named so in the error) can be compared: the same problem, inputs, tiles, conventions and types.
   ERR_INPUT says what differs first. */
int difference_check(const struct trace *a, const struct trace *b, const char *name_a, const char *name_b,
                     struct err *err);
/* After difference_check. pairs_room: how many elements of other bits a thread may hold its expectations of at a time,
   32 bytes each; with less room than a q tile has of them it is judged more than once. 0: an ordinary number. ERR_INPUT
   where nothing was recorded in both; ERR_SYSTEM without memory. */
int difference_find(const struct trace *a, const struct trace *b, uint64_t pairs_room, struct difference *out,
                    struct err *err);

/* Whether what was compared is the same: bit for bit; or within bounds, with the same classes and coverage. */
bool difference_exact(const struct difference *d);
bool difference_within(const struct difference *d);
/* The first element that speaks against it; order UINT64_MAX: none does. */
struct difference_place difference_first(const struct difference *d, int exact);
/* "s[b0,h3,q17,k40] row 5, column 9" */
void difference_place_words(const struct difference_place *place, char *out, size_t bytes);

#endif
