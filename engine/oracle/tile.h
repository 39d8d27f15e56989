/* One visited tile as the local formulas see it: each stage's expectation, then what was captured of it as the operand
   of the next. Shared by the verdicts and the causes. */
#ifndef ORACLE_TILE_H
#define ORACLE_TILE_H

#include "engine/oracle/scratch.h"

/* The stages that are computed in each tile, in order. */
extern const enum asc_channel tile_stages[];
enum { TILE_STAGES = 6 };

/* 1: no row sees the tile and nothing was computed of it: the kernel left after its loads. */
int tile_left(const struct oracle_case *c, const struct judge_scratch *s);

/* want[LOCAL] and bound[LOCAL] of every stage of the tile at hand (its operands taken), each from the captured values
   of the stages before; where there are none, from the expected ones. */
void tile_local(const struct oracle_case *c, struct judge_scratch *s);

/* The captured values of a channel, or where this tile has none, the expected ones, become what formulas read. */
void tile_adopt(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch);

/* Loads what stands in the columns of s at and beyond kv_len, where any of it is not masked. */
void tile_padding(const struct oracle_case *c, struct judge_scratch *s);

#endif
