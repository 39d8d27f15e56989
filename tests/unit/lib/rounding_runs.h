/* One head of the test kernel, correct or biased, and what is said about its rounding. */
#ifndef TESTS_ROUNDING_RUNS_H
#define TESTS_ROUNDING_RUNS_H

#include "engine/oracle/rounding_bias/rounding_bias.h"
#include "tests/unit/lib/oracle_kernel.h"

enum { ROUNDING_TILES_MAX = 8 };

/* What is put in behind the kernel's back, into what it recorded. */
enum rounding_mistake {
    ROUNDING_RIGHT,
    S_QUARTER_ULP,  /* added before the last rounding of S */
    S_ROUNDED_DOWN, /* instead of to nearest */
    P_ROUNDED_DOWN, /* f16 P */
    O_ROUNDED_DOWN, /* f16 O */
    S_LAST_PRODUCT_DROPPED,
    U_QUARTER_ULP
};

struct rounding_run {
    struct spec spec;
    enum rounding_mistake mistake;
    int q_tiles;
    int fingerprint; /* 1: bits are asked for where a tensor core is declared */
    int negation;    /* 1: a second and a third run have Q and V negated */
};

struct rounding_result {
    struct rounding_cell cells[ASC_CHANNELS * (ROUNDING_TILES_MAX + 1)];
    struct rounding_drift drift[ROUNDING_CURVES * ROUNDING_TILES_MAX];
    int kv_tiles;
};

const struct rounding_cell *rounding_all(const struct rounding_result *r, enum asc_channel ch);
/* Without memory it is over. */
void rounding_judge(const struct rounding_run *r, struct judge_scratch *scratch, struct rounding_result *out);
/* Correct run number i, of all that a kernel may choose freely: fill, order or tensor core, declared or not fitting,
   mask, with and without the fingerprint and negated runs. */
struct rounding_run rounding_correct_run(unsigned i);

#endif
