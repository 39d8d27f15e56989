/* Captured and input matrices as float64, and the units scores come in. */
#ifndef ORACLE_VALUES_H
#define ORACLE_VALUES_H

#include "engine/oracle/oracle.h"
#include <stdbool.h>

/* The captured matrix of a channel at a kv tile (or of the slot). */
const struct matrix *values_captured(const struct oracle_case *c, int kv, enum asc_channel ch);

/* Converts to out, [rows][cols] row-major; what was never written becomes a NaN. A code of type u8 counts from
   ASC_U8_MIDPOINT. */
void values_load(const struct matrix *m, double *out);
/* The value of a code without its scale. of: its type; u8 counts from ASC_U8_MIDPOINT. */
double values_code(enum dtype of, uint8_t code);
/* Element i of its data, likewise. */
double values_element(const struct matrix *m, size_t i);

/* out = m where an element of m was written, else `under`; both [rows][cols]. */
void values_overlay(const struct matrix *m, const double *under, double *out);
/* One element of that; `under` as a matrix. */
double values_overlaid(const struct matrix *m, const struct matrix *under, int row, int col);

/* Whether element i was written, as attnscope.h's probes decide it: types without the pattern start as the NaN code 7F.
 */
bool values_element_written(const struct matrix *m, size_t i);

/* Whether any element of the matrix was written; types without a never-written pattern count as written. */
bool values_written(const struct matrix *m);

/* Whether m holds the same bits as rows first .. first + m->rows - 1 of `of`. */
bool values_same(const struct matrix *m, const struct matrix *of, int first);

/* A score of 1 in `unit` is this many natural units (the argument of exp). */
double values_natural(int unit, double scale);
/* The dot product q.k times this is a score in `unit`. */
double values_factor(int unit, double scale);

/* The same of what this run's conventions say: a captured score, or a captured m, of 1 is this many natural units. With
   a soft cap, FlashAttention's raw unit is that of the tanh: 1 is the cap itself. */
double values_natural_s(const struct oracle_case *c);
double values_natural_m(const struct oracle_case *c);
/* Whether the soft cap comes after S was captured. */
bool values_capped_later(const struct oracle_case *c);
/* Whether a bias comes after S was captured. */
bool values_biased_later(const struct oracle_case *c);
/* Whether either does: what m and P read is then in natural units. */
bool values_natural_later(const struct oracle_case *c);
/* Whether masked keys hold what they would if they were not: whoever reads S leaves them out. */
bool values_mask_later(const struct oracle_case *c);
/* How many padding keys may take part with the score of a masked key, unseen: S is not recorded (`recorded` 0). */
int values_unseen_padding(const struct oracle_case *c, int recorded, int kv_cols);
/* What q is multiplied by before it is captured. */
double values_fold(const struct oracle_case *c);
/* The type in which the kernel has a channel: the captured one, or what the case says of it; -1: unknown. */
int values_type(const struct oracle_case *c, enum asc_channel ch);
/* The type in which P.V takes P; whether it is narrower than f32. */
bool values_p_type(const struct oracle_case *c, enum dtype *t);

/* |m c| where a kernel may scale before it subtracts: 0 only if score and maximum are both in log2 units. Natural units
   are no promise to subtract first: exp2f(fmaf(s, log2e, -m log2e)) is as good a way to exp(s - m), and nothing
   captured tells which was taken. What this lets pass is 2 u |m|: 1.2e-6 of a weight at |m| = 10, 400 times below a
   rounding to f16. */
double values_scaled_first(const struct oracle_case *c, double m_natural);

#endif
