/* The softmax state of a q tile's rows after every step, and what must hold of it whatever the policy of m: a kernel
   whose m lags is right, and one that leaves its own frame (weights on a new maximum, m set back) is found at that
   step. */
#ifndef NONFINITE_INVARIANTS_H
#define NONFINITE_INVARIANTS_H

#include "engine/oracle/schedule.h"

/* What holds for the softmax state of a row after every step, whatever frame the kernel's m sets. */
enum invariant {
    INVARIANT_M_RISES,
    INVARIANT_ALPHA,
    INVARIANT_ALPHA_ONE,
    INVARIANT_L_POSITIVE,
    INVARIANT_SUM,
    INVARIANT_OUTPUT,
    INVARIANT_COUNT
};
const char *invariant_name(enum invariant i);
const char *invariant_sentence(enum invariant i);
const char *invariant_formula(enum invariant i);

/* One row after one step. */
struct row_step {
    double m, alpha, l;             /* captured, m in its unit; lanes of l added up */
    double log_sum, log_sum_want;   /* m + ln l in natural units, without P's factor; captured, and by float64 */
    double sum_ratio, output_ratio; /* error / bound of l e^m, and of u / l in its worst column; -1: not judged */
    int output_col;
    unsigned written; /* set of 1u << asc_m, asc_alpha, asc_l: those that were not are NaN, others may be */
    unsigned broken;  /* set of 1u << enum invariant */
};

struct row_states {
    int rows, n_steps;
    struct case_step *steps; /* owned, [n_steps] */
    struct row_step *at;     /* owned, [n_steps][rows] */
    unsigned judged;         /* invariants that could be judged anywhere */
    uint64_t broken[INVARIANT_COUNT];
    int first_step, first_row; /* of the first break in the order of execution; -1: none */
};

/* -1 where memory ran out; else free with row_states_free(). Of a run that was fed nothing is judged. */
int row_states_make(const struct oracle_case *c, struct judge_scratch *scratch, struct row_states *out);
void row_states_free(struct row_states *s); /* of a zeroed one: legal */

/* The true running state of one row after each kv tile the kernel visited, for curves beside what it captured: m in the
   declared unit, alpha, and l in the frame of the true maximum. Arrays [kv_tiles], NaN where a tile was not visited. -1
   without memory. */
int row_state_want(const struct oracle_case *c, int row, double *m, double *alpha, double *l);

#endif
