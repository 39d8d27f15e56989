/* What becomes of scores behind the soft cap: a formula (score_mod.h), ALiBi and a bias tensor. */
#ifndef ORACLE_BIAS_H
#define ORACLE_BIAS_H

#include "engine/oracle/oracle.h"

/* How many of the two the case has. 0: scores have no bias. */
int bias_terms(const struct oracle_case *c);

/* Whether there is anything behind the soft cap that changes scores: a formula, or a bias. */
bool bias_changes(const struct oracle_case *c);
/* What that makes of a score in natural units. */
double bias_modified(const struct oracle_case *c, int r, int key, double score);

/* Whether ALiBi is slope times the key's place, and not times its distance. */
bool bias_counts_columns(const struct oracle_case *c);

/* The bias of row r and key `key` in natural units, and the sum of the terms' magnitudes. -inf: the bias hides the key.
 */
double bias_at(const struct oracle_case *c, int r, int key, double *size);

/* That of all rows and the `cols` keys of tile kv, [rows][cols]. The case has one. */
void bias_tile(const struct oracle_case *c, int kv, int cols, double *bias, double *size);

#endif
