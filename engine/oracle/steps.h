/* The visits of a case's kv tiles as a list: split by split, as the kernel made them. */
#ifndef ORACLE_STEPS_H
#define ORACLE_STEPS_H

#include "engine/oracle/oracle.h"

/* One visit of a kv tile. */
struct case_step {
    int kv, split;
    int before, behind; /* steps of the same split, -1: none */
};

/* Where nothing was recorded that shows visits, all tiles that hold something count as visited. out: room for
   [kv_tiles]; returns how many, -1 without memory. */
int steps_list(const struct oracle_case *c, struct case_step *out);

#endif
