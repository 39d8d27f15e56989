/* How far a correct kernel's O and LSE lie from the reference with all but certainty, where a row has many keys: a
   worst case adds all roundings up as if each went the same way, and is wider than a whole kv tile then.

   A rounding is taken to be independent of the others and to have no mean (Higham and Mary, A New Approach to
   Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41(5), 2019, model and theorem 2.4). By the inequality of
   Azuma and Hoeffding a sum of such errors, the i-th at most c_i, is beyond lambda sqrt(sum c_i^2) with a probability
   of 2 exp(-lambda^2 / 2) at most. With lambda = LIKELY_LAMBDA that is less than 1e-12 for any of 2^36 elements of a
   run.

   What may have a mean is added up as in a worst case, `systematic`: the error of an exponential and of its argument's
   constant; alpha's; what is lost below the normal numbers; half of what a tensor core cuts off (product_share); 6/10
   of a score's error; and, of a weight rounded to unit roundoff u, 4 u^2, since a density that changes across a step
   moves the mean: by h^2 / 12 |f'| p / f of p, h <= 2 u being the step, with |f'| p / f <= 12. A weight of less than 8
   of the type's half steps below its normal numbers errs by all of the half step.

   Weights that are equal are rounded alike, and their errors are one. Whether they are shows: weights are dealt to
   LIKELY_BINS by where they lie between two numbers of their type. If roundings are independent the squares of the
   bins' sums exceed those of an even share by sum w^2; where groups of equal weights go together by sum of (sum of
   group)^2, and it is that by which sum c_i^2 grows. That it is estimated low by chance, 1/4 of it where all are
   different, is within what c_i has room for: an error within +-c_i, evenly spread, has a third of the variance. */
#ifndef ORACLE_LIKELY_H
#define ORACLE_LIKELY_H

#include "engine/oracle/magnitude.h"
#include "engine/oracle/scratch.h"

/* Whether the case keeps such sums. */
bool likely_wanted(const struct oracle_case *c);

#define LIKELY_RANDOM 0.4 /* of a score's error what has no mean, where its product alone errs */
/* Of U's sums in one tile. */
struct product_share likely_share(const struct oracle_case *c);

void likely_begin(const struct oracle_case *c, struct judge_scratch *s);

/* A row's weights, before P is dropped and rounded: what each may err by, and what this adds to l. */
struct likely_row {
    double decay;  /* of what was there before, its own error included */
    double moved;  /* what else l may err by in this tile, all of it systematic, its weights' errors included */
    double reach;  /* l, at most */
    int roundings; /* of l in this tile */
    double unit, half_tiny; /* of the type to which l's weights are rounded; 0: they are not */
};
void likely_weights(const struct oracle_case *c, struct judge_scratch *s, int r, const struct likely_row *row);

/* After the weights were dropped: sums over the tile's keys of systematic errors, and of the squares of the others. */
void likely_products(const struct oracle_case *c, struct judge_scratch *s);
/* Row r of U, from reference.moved, what errs beyond the weights, systematic; reach, the largest partial sum of the
   tile; product, its own; and its magnitudes. */
void likely_values(const struct oracle_case *c, struct judge_scratch *s, int r, const struct magnitude_row *size);

/* What reference_turn() adds. */
struct likely_turned {
    double tiles, alpha; /* alphas' errors */
    int roundings;       /* of l in a tile */
};
void likely_turn(const struct oracle_case *c, struct judge_scratch *s, int r, const struct likely_turned *by);

/* Of merged splits: each one's is taken for systematic. */
void likely_merged(const struct oracle_case *c, struct judge_scratch *s, const double *l, const double *u);

/* What is left of the sums' errors in the frame that a sink sets. */
void likely_sink(const struct oracle_case *c, struct judge_scratch *s, int r, double kept, double more);

/* Fills likely.noise once O was read and its expectation is there. */
#define NOISE_COMMON 0x1p-16 /* what all of an O may be off by together, relative: its division, exponentials */
void likely_noise(const struct oracle_case *c, struct judge_scratch *s);
/* The same from its rows: n of them, of `cols` elements, the last of which sees so many keys. */
void noise_finish(const struct noise_row *rows, int n, int cols, bool known, int keys, struct output_noise *noise);

/* The largest errors of U (element i of [R][D]) and of l in row r, at the end. */
double likely_of_u(const struct judge_scratch *s, int r, size_t i);
double likely_of_l(const struct judge_scratch *s, int r);
#endif
