/* Keys beyond kv_len: what stands in the padding of the last kv tile, and what it does to the stages that read it. */
#ifndef ORACLE_PADDING_H
#define ORACLE_PADDING_H

#include "engine/oracle/scratch.h"

/* After tile_local: rows whose P is wrong in the padding, and elements of U that are no numbers because V's padding is
   none: neither l nor U is to blame for these, nothing is expected of them. */
void padding_excuse(const struct oracle_case *c, struct judge_scratch *s);

/* After that: adds the padding that is wrong to the local verdicts of p and of v. Its columns, or rows, are numbered on
   from those of the problem. */
void padding_judge_p(const struct oracle_case *c, const struct judge_scratch *s, struct verdict *v);
void padding_judge_v(const struct oracle_case *c, const struct judge_scratch *s, struct verdict *v);

#endif
