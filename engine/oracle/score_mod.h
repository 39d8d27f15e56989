/* A formula of the score (shape.score_mod), and how far rounding alone may take a kernel from it. */
#ifndef ORACLE_SCORE_MOD_H
#define ORACLE_SCORE_MOD_H

#include "engine/oracle/oracle.h"

/* What the score s of row r and key `key`, in natural units and uncertain by *bound, becomes, and how uncertain that
   is. NaN: the formula has no value there, or a bound that is not finite, so that nothing is said of it. */
double score_mod_at(const struct oracle_case *c, int r, int key, double s, double *bound);

#endif
