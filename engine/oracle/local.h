/* What each stage should be, computed in float64 from what this very run captured upstream.

   Where an upstream channel is not recorded, the value expected of it takes its place, and its bound enters the next
   stage's as an uncertainty of the operand (`loose` in struct stage): bounds compose along the chain. With all channels
   recorded in f32 every uncertainty is zero.

   Operands that are NaN or infinite without cause make the expected value NaN, "no statement": that fault is the
   upstream stage's. Legitimate infinities stay exact: masked scores, m of a row that has seen no key, lse of one that
   has none. */
#ifndef ORACLE_LOCAL_H
#define ORACLE_LOCAL_H

#include "engine/oracle/scratch.h"

void local_begin(const struct oracle_case *c, struct judge_scratch *s);

/* Each fills want[LOCAL] and bound[LOCAL] of its stage for the tile at hand from the values of the stages before. */
void local_s(const struct oracle_case *c, struct judge_scratch *s);
void local_m(const struct oracle_case *c, struct judge_scratch *s);
void local_alpha(const struct oracle_case *c, struct judge_scratch *s);
void local_p(const struct oracle_case *c, struct judge_scratch *s);
void local_l(const struct oracle_case *c, struct judge_scratch *s);
void local_u(const struct oracle_case *c, struct judge_scratch *s);

/* m, l and u of this tile become the ones before the next. */
void local_advance(const struct oracle_case *c, struct judge_scratch *s);

/* After the last tile. */
void local_o(const struct oracle_case *c, struct judge_scratch *s);
void local_lse(const struct oracle_case *c, struct judge_scratch *s);

/* Scores factor q k' of the tile with their bound, masked; both [rows][kv_cols]. qs, ks: sizes of the operands (their
   magnitudes, grown by what conversion may have cost). Shared with the truth and the causes. */
struct score_product {
    const double *q, *k, *size_q, *size_k; /* [rows][head_dim], [kv_cols][head_dim] */
    double factor, relative;               /* score = factor q.k, bound = relative |factor| sum |q k| */
    double *want, *bound;
};
void local_score(const struct oracle_case *c, struct judge_scratch *s, const struct score_product *product);

/* |m c| where a kernel has to scale before it subtracts (raw scores, or score and maximum in different units). */
double local_folded(const struct oracle_case *c, double m_natural);

#endif
