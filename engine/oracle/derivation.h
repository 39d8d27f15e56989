/* What one element was made from: the operands of its local formula as this run captured them (where a channel is not
   recorded: what follows from those before it), beside what they should be by the reference. */
#ifndef ORACLE_DERIVATION_H
#define ORACLE_DERIVATION_H

#include "engine/oracle/fingerprint.h"
#include <stdbool.h>

enum { DERIVATION_STEPS = 12 };

/* One operand, or one step of the arithmetic. */
struct derivation_step {
    char name[32];    /* "m before", "sum of q·k" */
    char formula[64]; /* how it follows from the steps above; "": an operand */
    double got, want; /* from what was captured, and by the reference */
    bool got_known, want_known;
    bool expected; /* an operand that is not recorded: got follows from the channels before it */
};

/* One term of the element's sum, or of m one score of the row. */
struct derivation_term {
    int at;                     /* d of S, key column of m, l and U */
    double got[2], want[2];     /* its factors; one where n_factors is 1 */
    double term_got, term_want; /* their product */
};

enum derived {
    DERIVED_NOT,       /* this tile is not judged, or nothing of it was computed before what was asked for */
    DERIVED_UNVISITED, /* the kernel did not come to this tile */
    DERIVED_MASKED,    /* it left the tile, of which this row sees nothing */
    DERIVED_YES
};

struct derivation {
    enum derived derived;
    enum asc_channel channel;
    int row, col; /* the element in its tile */
    struct derivation_step step[DERIVATION_STEPS];
    int n_steps;
    const char *index;             /* what term.at counts: "d", "c"; NULL: there are no terms */
    const char *factor[2];         /* names of a term's factors */
    int n_factors;                 /* 2: the terms are products; 1: weights of l, scores of m */
    struct derivation_term *terms; /* owned, [n_terms], the largest of the captured ones first, NaN before all */
    int n_terms;
    double size_got; /* sum of the magnitudes of the captured terms; 0 for m, which is no sum */
    /* The element: captured, by float64 from its captured operands, and by the reference. */
    double got, want_local, want_global;
    bool recorded;
    char note[64]; /* "": nothing to add; else what the steps do not show */
};

/* Derives element (0, col) of channel ch at kv tile kv (ignored where ch exists once per slot) from a case of one row.
   Of k and v, whose rows are keys, element (row, col) of the tile. fingerprint: as in oracle_case, which has none here,
   so that the local expectation is that of float64. -1 where memory ran out. */
int derive_element(struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch, int kv, int row, int col,
                   struct derivation *out);
void derivation_free(struct derivation *d); /* NULL is legal */

#endif
