/* Which tensor core a run used. The right model equals every element of S and U, wrong ones a part of them at most
   (measured: up to 63 %); once it is known, equality can be asked for instead of a bound. */
#ifndef ORACLE_FINGERPRINT_H
#define ORACLE_FINGERPRINT_H

#include "engine/oracle/product.h"

/* How many blocks of 16 x 16 elements make a sample of 4096. */
enum { FINGERPRINT_BLOCKS = 16, FINGERPRINT_SIDE = 16 };

struct fingerprint_stage {
    int n;          /* ways that are open */
    int blocks;     /* whose operands were captured */
    int finite;     /* of these, with any sum that is and should be a number: no other tells anything */
    int odd;        /* of these, with any that is or should be NaN or infinite, masked ones apart */
    uint32_t cores; /* of oracle_case: of other tensor cores no bits are asked for; 0: any */
    struct product_way way[PRODUCT_WAYS];
    int told[PRODUCT_WAYS];  /* blocks that tell this way from rounding the exact sum, or from another tensor core */
    int equal[PRODUCT_WAYS]; /* of these, how many it equals in every element */
    int match[PRODUCT_WAYS]; /* the same, of the blocks that any way tells: a count that compares ways */
};

/* Both are summed over cases by fingerprint_add, from zeros. */
struct fingerprint {
    struct fingerprint_stage s, u;
};

/* Adds up to `blocks` blocks of each of S and U of one case, where their accumulators are declared as tensor cores;
   `sample` numbers the cases, so that each gives other blocks. -1 without memory. */
int fingerprint_add(struct fingerprint *f, const struct oracle_case *c, struct judge_scratch *scratch, int sample,
                    int blocks);

/* Adds what another sum of the same problem's cases counted. */
void fingerprint_join(struct fingerprint *f, const struct fingerprint *other);

/* The ways that fit, as a set of 1u << index: those that equal most of the blocks that any way tells. A fault may lie
   in the sample as well as anywhere, so one of them must equal more than half of the blocks that it tells itself, and
   at least two. Where sums are nearly exact, the right way may tell fewer than a wrong one that equals the same blocks:
   both fit. 0: none, bounds decide. */
uint32_t fingerprint_fits(const struct fingerprint_stage *stage);

/* The tensor cores of the ways that fit, as a set of 1u << enum tensor_core. */
uint32_t fingerprint_models(const struct fingerprint_stage *stage);

/* Where a way fits, makes it what the verdict on the recorded S or U of the tile at hand expects locally, with a bound
   of zero: an element passes if any way that fits gives it. Fragments of 16 x 8 that were evidently computed in another
   way (a correct kernel may use scalar code for its tails) keep their bound; *unequal is how many elements are not
   bit-equal there. Returns the tensor core, or -1: the bound stays everywhere.
   A mistake can hide there only if it stays within the rounding of f32, changes an eighth at least of what tells a
   tile's arithmetic or a quarter of a fragment's, and moves some of it by more than a step; it is counted all the same.
 */
int fingerprint_expect(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch, uint32_t *unequal);

#endif
