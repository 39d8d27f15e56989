/* What the element under the cursor was made from. */
#ifndef CURSOR_OPERANDS_H
#define CURSOR_OPERANDS_H

#include "engine/oracle/derivation.h"
#include "engine/verdict/judgement.h"

/* Cuts a slot's case down to one row of its q tile. */
struct slot_case;
void slot_case_row(struct slot_case *c, int row);

/* Derives element (row, col) of the tile at place. -1: memory ran out; nothing needs to be freed then. */
int operands_find(const struct judgement *j, const struct trace *t, struct place place, int row, int col,
                  struct judge_scratch *scratch, struct derivation *out);

#endif
