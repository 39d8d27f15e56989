/* Whether the judge on a GPU knows the captured stages of a case, and what its formulas take of them. */
#ifndef JUDGE_CAPTURED_H
#define JUDGE_CAPTURED_H

#include "engine/judge/work.h"
#include "engine/oracle/oracle.h"

/* The channel of each of enum JUDGE_S .. JUDGE_V; and of JUDGE_O and JUDGE_LSE. */
extern const enum asc_channel judge_channels[JUDGE_CAPTURED], judge_ends[JUDGE_ENDS];

/* What it does not know of a case that judge_unknown() has nothing against. The bits that S and U must have are those
   of c->fingerprint. */
const char *judge_captured_unknown(const struct oracle_case *c);

/* All but where tensors lie: groups, has, step, row. */
struct judge_captured judge_captured_of(const struct oracle_case *c);

/* Whether the kernel came to all kv tiles that hold something for the q tile, once each and to no other, and left
   nothing in the padding that takes part. */
bool judge_captured_whole(const struct oracle_case *c);

/* The tensor core whose bits S or U had to have, as struct verdict has it: 0: bounds decided. */
int judge_captured_exact(const struct oracle_case *c, enum asc_channel ch);

#endif
