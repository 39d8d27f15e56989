/* What RULE_TURNED makes of a row, for those who propose it. */
#ifndef SEARCH_TURNED_H
#define SEARCH_TURNED_H

#include "engine/oracle/search/rule.h"

/* Turns a row of n elements as the rule has it: elements of a pair may have angles of their own. own: as it should be.
 */
void turned_row(const struct turned *how, const struct rope *own, double position, const double *x, int n, double *out);

/* Row `line` of an operand's tile as the launch was given it: as it should be, turned back, which is to within 4 u of
   its pairs' lengths; returns its largest magnitude. */
double turned_row_before(const struct sample_tile *t, enum asc_channel ch, int line, double *out);

/* Relative to a row's largest magnitude, how far a kernel's may be off: both turns and the constant of a fold; and
   where the angles are the kernel's own, which as f32 are off by a few roundings of themselves. */
double turned_error(const struct turned *how, const struct oracle_case *c, double position);

/* What a map of positions is asked of: the row's number in its head, or its own position; and what is added to what it
   says. */
int turned_index(const struct turned *how, const struct sample_tile *t, enum asc_channel ch, int line, int *plus);

int turned_lines(const struct search *search, const struct sample_tile *t, enum asc_channel ch);

#endif
