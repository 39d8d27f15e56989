/* Which tensor core a run used. The right model equals every element of S and U, wrong ones a part of them at most (in
   the study of numerics up to 63 %); once it is known, equality can be asked for instead of a bound. */
#ifndef ORACLE_FINGERPRINT_H
#define ORACLE_FINGERPRINT_H

#include "engine/oracle/product.h"

/* How many blocks of 16 x 16 elements make a sample of 4096. */
enum { FINGERPRINT_BLOCKS = 16, FINGERPRINT_SIDE = 16 };

struct fingerprint_stage {
    int n; /* ways that are open */
    struct product_way way[PRODUCT_WAYS];
    int told[PRODUCT_WAYS];  /* blocks that tell this way from rounding the exact sum, or from another tensor core */
    int equal[PRODUCT_WAYS]; /* of these, how many it equals in every element */
};

/* Both are summed over cases by fingerprint_add, from zeros. */
struct fingerprint {
    struct fingerprint_stage s, u;
};

/* Adds up to `blocks` blocks of each of S and U of one case, where their accumulators are declared as tensor cores.
   -1 without memory. */
int fingerprint_add(struct fingerprint *f, const struct oracle_case *c, struct judge_scratch *scratch, int blocks);

/* The ways that fit, as a set of 1u << index. A fault may lie in the sample as well as anywhere, so a way fits if it
   equals more than half of the blocks that can tell, and at least two; of several the ones that equal most.
   0: none, bounds decide. */
uint32_t fingerprint_fits(const struct fingerprint_stage *stage);

/* Where a way fits, makes it what the verdict on the recorded S or U of the tile at hand expects locally, with a bound
   of zero. Returns the tensor core, or -1: the bound stays. An element passes if any way that fits gives it. */
int fingerprint_expect(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch);

#endif
