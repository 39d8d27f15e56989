/* Whether the judge on a GPU knows all of a case, and what its formulas take of it. */
#ifndef JUDGE_NUMBERS_H
#define JUDGE_NUMBERS_H

#include "engine/judge/work.h"
#include "engine/oracle/oracle.h"

/* What it does not know, the first thing of features.def; NULL: it knows all of it. */
const char *judge_unknown(const struct oracle_case *c);

struct judge_numbers judge_numbers_of(const struct oracle_case *c);
/* The scales of codes that are multiplied as they are: of a head's keys [kv_len] and of V's tiles [kv_tiles], of a q
   tile's rows [br]; the largest of these, 1 at least. */
void judge_scale_keys(const struct oracle_case *c, double *by_key, double *by_tile);
double judge_scale_rows(const struct oracle_case *c, double *by_row);
/* Scales of codes that get them before a product: how many numbers they are in a head, and these, from `at` on. */
int64_t judge_scale_codes_room(const struct oracle_case *c);
void judge_scale_codes(const struct oracle_case *c, int64_t at, double *scales, struct judge_numbers *n);
/* The kv tiles that hold something for a row of the case's q tile, and what each of its rows sees. skips: [kv_tiles];
   NULL where there is no mask of bytes. orders: [kv_tiles]; NULL where no splits are merged. -1: no memory. */
int judge_tiles_of(const struct oracle_case *c, struct judge_tile *tile, struct judge_range *ranges,
                   unsigned char *skips, int32_t *orders);

/* Shared memory of a block, in bytes. */
#define JUDGE_ROOM_MAX 232448

struct judge_feature {
    const char *what;
    bool on_gpu;
};
extern const struct judge_feature judge_features[]; /* NULL ends them */

#endif
