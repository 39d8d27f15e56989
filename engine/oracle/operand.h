/* Q, K and V as the kernel used them: set beside the input they come from. */
#ifndef ORACLE_OPERAND_H
#define ORACLE_OPERAND_H

#include "engine/oracle/scratch.h"

/* Makes the captured q, k or v of the tile at hand (or, where it is not recorded, the input) what local formulas read;
   want is the input rounded to the captured type, for both sides, and bound is zero; of codes that become values
   (codes.h) want is the value, and bound what it may be off by before it is rounded. Returns 1 if what they read is the
   original input. */
int operand_take(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch);

#endif
