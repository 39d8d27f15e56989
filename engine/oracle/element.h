/* One tile of one channel: every element gets its class, the tile its verdict. */
#ifndef ORACLE_ELEMENT_H
#define ORACLE_ELEMENT_H

#include "engine/oracle/scratch.h"
#include <stdbool.h>

/* What is compared. want: NaN says nothing (see `lenient`), an infinity is expected exactly. bound: one that is
   infinite or NaN cannot fail, so where want is finite it says nothing either. */
struct comparison {
    const struct matrix *captured;
    const double *got, *want, *bound; /* [rows][cols]; got is captured as float64; got == want: all right and finite */
    int rows, cols;
    bool lenient; /* where want is NaN what was written is not judged: the fault lies upstream (a local verdict) */
    /* It is p or u, whose size is the kernel's own choice: what is cut off at the largest number of a narrow type, or
       becomes infinite there, has not been rounded, it is lost. */
    bool unlimited;
    const int *left_out; /* [rows] 1: right as it is, see tile_local(); NULL: none */
};

/* Whether a captured finite value of type t is what arithmetic within bound of want can give, rounded to t. */
bool element_within(enum dtype t, double got, double want, double bound);
/* The same of p and u, as in struct comparison. */
bool element_within_unlimited(enum dtype t, double got, double want, double bound);

/* How far a captured value of type t may be from want: the bound, and the rounding to t. */
double element_reach(enum dtype t, double want, double bound);
/* |got - want| over what it may be, the rounding to the captured type t included: at most 1 where the class is no bad
   one, more where it is. Equal infinities are no error; NaN where either is. */
double element_ratio(enum dtype t, int class, double got, double want, double bound);

/* The class of one element, or STATUS_UNJUDGED; bound is that of the arithmetic, before rounding to the captured type.
 */
enum tile_status element_classify(const struct comparison *c, int row, int col);

/* Judges all elements; classes may be NULL, else [rows][cols]. */
void element_judge(const struct comparison *c, struct verdict *v, uint8_t *classes);

/* Adds columns that exist only as padding: -inf, masked (what a masked key holds) or never written is right, all else
   is counted as it deserves. Their columns are numbered on from first_col. */
void element_judge_padding(const struct matrix *padding, int first_col, double masked, struct verdict *v);

#endif
