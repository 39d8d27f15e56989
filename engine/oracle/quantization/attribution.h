/* Where the error of an output comes from: shares of Q, K, P, V and the rest of the arithmetic along the dataflow.

   o is exchanged part by part, from what was given to what the run had, on this run's own scores:

     o0  attention on the given Q, K, V
     o1  with the Q that the kernel used        Q     o1 - o0
     o2  with its K too                         K     o2 - o1
     o3  weights from the scores it captured    rest  o3 - o2   (accumulator of S; mistakes in S)
     o4  with the P that P V took, over its l   P     o4 - o3   (exponential, rounding, saturation, flushing)
     o5  with its V                             V     o5 - o4
     o   as it left it                          rest  o  - o5   (accumulator of U, l, division, rounding of O)

   so that the five parts add up to the error of O but for float64 rounding, ATTRIBUTION_ROUNDING. Exchanging one input
   at a time instead would round P on scores that never occurred: that says nothing of P's part in this run.

   Each part but what the rest has behind P V is a sum over keys, which says at which step it arose: (w' - w) v where
   weights w, divided by their sum, become w'; w (v' - v) of V. Where l adds up the rounded P, weights add up to 1
   before and after, so that (w' - w) (v - o3) is the same sum: a key that lost weight to all others then shows as what
   it is. */
#ifndef QUANTIZATION_ATTRIBUTION_H
#define QUANTIZATION_ATTRIBUTION_H

#include "engine/oracle/oracle.h"
#include <stdbool.h>

/* Whose shares the error of an output is made of, in the order of the dataflow. */
enum player { PLAYER_Q, PLAYER_K, PLAYER_P, PLAYER_V, PLAYER_REST, PLAYERS };
const char *player_name(enum player player);    /* "P" */
const char *player_meaning(enum player player); /* "exponential, rounding ... of P" */

struct attribution {
    int rows, dim, keys; /* dim: of the output */
    int terms;           /* of the longest chain of sums in an output */
    bool s_recorded,
        p_recorded; /* false: what the scores' accumulator adds counts as P's; P is as its declared type makes it */
    double *o_given, *o_run; /* owned, [rows][dim] */
    double *part[PLAYERS];   /* owned, [rows][dim] */
    /* Owned; what the parts are made of. */
    double *w[5];       /* [rows][keys] weights behind o0 .. o4 */
    double *p;          /* [rows][keys] P before it was rounded, in the kernel's frame and with its offset */
    double *code;       /* [rows][keys] and after */
    double *o3;         /* [rows][dim] */
    double *v[2];       /* [keys][dim] given, and as the kernel used it */
    double *v_scale;    /* [keys][dim] of its codes */
    int p_type, v_type; /* enum dtype of codes; -1: it is none */
    bool centered;      /* l adds up the rounded P, and there is no sink */
};

/* given: the case of what was given, without codes; run: the case of the run, of the same problem. -1: no memory, or
   the run has no output. */
int attribution_make(const struct oracle_case *given, const struct oracle_case *run, struct attribution *out);
void attribution_free(struct attribution *a); /* a zero-initialized one is legal */

/* The parts add up to o_run - o_given within this times the sum of their magnitudes and both outputs: ten sums of n
   float64 products each, gamma_n. */
double attribution_rounding(const struct attribution *a);

/* Share of each player in the error of rows r0 .. r1 - 1: covariance of its part with the error over the variance of
   the error, all about 0. They add up to 1; one below 0 makes the error smaller. NaN where the error is 0 or no number.
 */
void attribution_shares(const struct attribution *a, int r0, int r1, double share[PLAYERS]);

/* What happened to the value that a part mostly comes from. */
enum fate {
    FATE_ROUNDED,
    FATE_SATURATED,
    FATE_FLUSHED,
    FATE_OVERFLOWED, /* became infinite, or the NaN of a type that has no infinity */
    FATE_CHANGED,    /* became what no rounding into its type makes of it */
    FATE_EXACT
};
const char *fate_words(enum fate fate); /* "saturated" */
/* Of a value that became another one. type: enum dtype of the code it became, -1: f16 or wider; scale: of the code. */
enum fate attribution_fate(double was, double is, int type, double scale);

struct attribution_step {
    int key;        /* whose contribution is largest in the sign of the part; -1: there is none */
    double of_key;  /* that contribution */
    enum fate fate; /* of P at this key, of V at key and column */
    double was, is; /* that value before and after, for P and V; NaN for others */
};
/* Contributions of one player to one element by keys, [keys]. */
void attribution_keys(const struct attribution *a, enum player player, int row, int col, double *out);
void attribution_largest(const struct attribution *a, enum player player, int row, int col, const double *by_key,
                         struct attribution_step *out);

#endif
