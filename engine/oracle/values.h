/* Captured and input matrices as float64, and the units scores come in. */
#ifndef ORACLE_VALUES_H
#define ORACLE_VALUES_H

#include "engine/oracle/oracle.h"

/* Converts to out, [rows][cols] row-major; what was never written becomes a NaN. */
void values_load(const struct matrix *m, double *out);

/* out = m where an element of m was written, else `under`; both [rows][cols]. */
void values_overlay(const struct matrix *m, const double *under, double *out);

/* 1 if any element of the matrix was written; types without a never-written pattern count as written. */
int values_written(const struct matrix *m);

/* 1 if m holds the same bits as rows first .. first + m->rows - 1 of `of`. */
int values_same(const struct matrix *m, const struct matrix *of, int first);

/* A score of 1 in `unit` is this many natural units (the argument of exp). */
double values_natural(int unit, double scale);
/* The dot product q.k times this is a score in `unit`. */
double values_factor(int unit, double scale);

#endif
