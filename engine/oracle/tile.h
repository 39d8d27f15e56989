/* One visited tile as the local formulas see it: each stage's expectation, then what was captured of it as the operand
   of the next. Shared by the verdicts and the causes. */
#ifndef ORACLE_TILE_H
#define ORACLE_TILE_H

#include "engine/oracle/scratch.h"
#include <stdbool.h>

/* The stages that are computed in each tile, in order. */
extern const enum asc_channel tile_stages[];
enum { TILE_STAGES = 6 };

/* Whether no row sees the tile and nothing was computed of it: the kernel left after its loads. */
bool tile_left(const struct oracle_case *c, const struct judge_scratch *s);

/* want[LOCAL] and bound[LOCAL] of every stage of the tile at hand (its operands taken), each from the captured values
   of the stages before; where there are none, from the expected ones. */
void tile_local(const struct oracle_case *c, struct judge_scratch *s);

/* The captured values of a channel, or where this tile has none, the expected ones, become what formulas read. */
void tile_adopt(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch);

/* Loads what stands in the columns of s at and beyond kv_len, where any of it is not masked. */
void tile_padding(const struct oracle_case *c, struct judge_scratch *s);

/* Q, K and V as the kernel used them, set beside the input they come from.
   Makes the captured q, k or v of the tile at hand (or, where it is not recorded, the input) what local formulas read;
   want is the input rounded to the captured type, for both sides, and bound is zero; of codes that become values
   (codes.h) want is the value, and bound what it may be off by before it is rounded. Returns whether what they read is
   the original input. */
bool operand_take(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch);

/* The local and the global U both weigh V, and its magnitudes: makes it ready for both. */
void operand_share_v(const struct oracle_case *c, struct judge_scratch *s);

/* Keys beyond kv_len: what stands in the padding of the last kv tile, and what it does to the stages that read it.
   After tile_local: rows whose P is wrong in the padding, and elements of U that are no numbers because V's padding is
   none: neither l nor U is to blame for these, nothing is expected of them. */
void padding_excuse(const struct oracle_case *c, struct judge_scratch *s);

/* After that: adds the padding that is wrong to a side's verdict of p, and to the local one of v. Its columns, or rows,
   are numbered on from those of the problem. */
void padding_judge_p(const struct oracle_case *c, const struct judge_scratch *s, int side, struct verdict *v);
void padding_judge_v(const struct oracle_case *c, const struct judge_scratch *s, struct verdict *v);

#endif
