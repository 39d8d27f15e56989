/* Least squares by normal equations. */
#ifndef SEARCH_SOLVE_H
#define SEARCH_SOLVE_H

#include "engine/oracle/search/rule.h"
#include <stdbool.h>
#include <stddef.h>

/* Solves A X = B for symmetric A [n][n] (its lower half is read and overwritten) and B [n][m], which becomes X, by
   Cholesky's factorization. known[i]: 0 where the equations do not determine unknown i; its row of X is 0 then. */
void solve_symmetric(double *a, double *b, int n, int m, unsigned char *known);

/* What an operand of scores or U would have to be in a tile, over all tiles that meet it: x [rows][head_dim], known
   [rows]; both all zeros before. false: there are too few rows to tell. */
bool solve_operand(struct search *search, enum asc_channel operand, int tile, double *x, unsigned char *known);

/* Whether row `line` of Q or K would give the scores that were captured if it were `row`: all of a few wrong ones. */
bool row_gives_scores(const struct sample_tile *t, enum asc_channel operand, int line, const double *row);

/* Of x[0 .. n - 1], which it puts in order; NaN of none. */
double median(double *x, size_t n);

#endif
