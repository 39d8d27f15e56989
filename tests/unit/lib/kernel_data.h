/* What the test kernels are given, and where they record. */
#ifndef TEST_KERNEL_DATA_H
#define TEST_KERNEL_DATA_H

#include "engine/base/dtype.h"
#include "engine/oracle/oracle.h"
#include <stdint.h>

enum fill {
    FILL_NORMAL,
    FILL_LARGE,
    FILL_OUTLIERS,
    FILL_ZEROS,
    FILL_ONE_HOT,
    FILL_CONSTANT,
    FILL_ARANGE,
    FILL_POSITIVE,
    FILL_COMMON_MEAN,
    FILL_UNIFORM /* 0 to 1 */
};

uint64_t test_random(uint64_t *state);
double test_uniform(uint64_t *state);
double test_normal(uint64_t *state);
/* Element i of an input of rows of so many columns. */
double test_value(enum fill fill, size_t i, int cols, uint64_t *state);
float round_to(enum dtype t, float x);

/* A tile as a probe finds it, full and uninitialized, the caller's; `rows` of its rows are queries. captured: the part
   that is in the problem; padding, if not NULL: the keys beyond it. */
void *test_tile(const struct asc_plan *plan, const struct asc_problem *problem, enum asc_channel ch, enum dtype t,
                int kv, int rows, struct matrix *captured, struct matrix *padding);
/* Of [3][tiles], of S, P and V, the one of a kv tile; NULL: the channel has none. */
struct matrix *test_padding(struct matrix *padding, int tiles, enum asc_channel ch, int kv);

#endif
