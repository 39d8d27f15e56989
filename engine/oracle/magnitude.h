/* Sums of magnitudes, sum |a b|: what bounds are multiples of. They are computed in f32, at half the price of float64,
   and rounded up: the result is an upper bound, k u above the sum at most (k terms, u = 2^-24), which is less than a
   bound's own last digits mean. */
#ifndef ORACLE_MAGNITUDE_H
#define ORACLE_MAGNITUDE_H

#include "engine/oracle/scratch.h"

/* C = factor |A| |B'|, or factor |A| |B|: A [n][k], B [m][k] or [k][m], C [n][m], all packed; add: C += it.
   n rows of a q tile; m and k no more than Bc or head_dim. */
void magnitude_multiply_transposed(const struct room *room, int n, int m, int k, double factor, const double *a,
                                   const double *b, double *c);
void magnitude_multiply(const struct room *room, int n, int m, int k, double factor, const double *a, const double *b,
                        double *c, int add);

/* The same sums for whoever takes them row by row: |A| |B| as f32 in `sums`, with what 1 of each row stands for in
   `unit`; both belong to the room. */
struct magnitude_sums {
    double *sums, *unit; /* room for [n][m] f32, [n] */
};
void magnitude_sum(const struct room *room, int n, int m, int k, const double *a, const double *b,
                   const struct magnitude_sums *to);

/* Makes sizes ready that several sums take: of Q, [rows][k], for all tiles of a slot; and of B as above. Sums over
   these very arrays find them in the room, see struct shared; nobody may write to them any more. */
void magnitude_share_q(struct room *room, int rows, int k, const double *size);
void magnitude_pack(const struct room *room, int m, int k, const double *size, int transposed,
                    struct packed_operand *to);

/* One row of them: sum i is at most (sums[i] + lost) grown. */
struct magnitude_row {
    const float *sums;
    double grown, lost;
};
struct magnitude_row magnitude_row(const struct magnitude_sums *from, int row, int m, int k);

#endif
