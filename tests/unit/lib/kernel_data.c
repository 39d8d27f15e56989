#include "tests/unit/lib/kernel_data.h"

#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

double test_uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

double test_normal(uint64_t *state)
{
    double sum = -6; /* twelve uniform values: near enough, and the same bits everywhere */
    for (int i = 0; i < 12; i++)
        sum += test_uniform(state);
    return sum;
}

double test_value(enum fill fill, size_t i, int cols, uint64_t *state)
{
    const size_t n = (size_t)cols;
    const double x = test_normal(state);
    switch (fill) {
    case FILL_LARGE:
        return x * sqrt(30);
    case FILL_OUTLIERS:
        return x * (test_random(state) % 64 == 0 ? 30 : 1);
    case FILL_UNIFORM:
        return test_uniform(state);
    case FILL_ARANGE:
        return ((double)(i % 251) - 125) / 128;
    case FILL_ZEROS:
        return 0;
    case FILL_CONSTANT:
        return 0.5;
    case FILL_ONE_HOT:
        return i / n % n == i % n;
    case FILL_POSITIVE:
        return fabs(x);
    case FILL_COMMON_MEAN:
        return x + 3;
    default:
        return x;
    }
}

float round_to(enum dtype t, float x)
{
    uint64_t room = 0;
    dtype_store(t, &room, 0, (double)x);
    return (float)dtype_load(t, &room, 0);
}

struct matrix *test_padding(struct matrix *padding, int tiles, enum asc_channel ch, int kv)
{
    const int of = ch == asc_s ? 0 : ch == asc_p ? 1 : ch == asc_v ? 2 : -1;
    return of < 0 ? NULL : &padding[of * tiles + kv];
}

void *test_tile(const struct asc_plan *plan, const struct asc_problem *problem, enum asc_channel ch, enum dtype t,
                int kv, int rows, struct matrix *captured, struct matrix *padding)
{
    const int all = channel_rows(ch, plan), cols = channel_cols(ch, plan, problem), bc = plan->bc;
    const int left = problem->kv_len - kv * bc < bc ? problem->kv_len - kv * bc : bc;
    const bool keys_down = ch == asc_k || ch == asc_v, keys_across = ch == asc_s || ch == asc_p;
    const size_t bytes = (size_t)all * (size_t)cols * dtype_bytes(t);
    const uint32_t pattern = UNWRITTEN_32;
    char *tile = malloc(bytes + sizeof pattern);
    for (size_t b = 0; b < bytes; b += sizeof pattern)
        memcpy(tile + b, &pattern, sizeof pattern);
    *captured = (struct matrix){tile, t, cols, keys_down ? left : rows, keys_across ? left : cols};
    if (padding && left < bc)
        *padding = keys_across
                       ? (struct matrix){tile + (size_t)left * dtype_bytes(t), t, cols, rows, bc - left}
                       : (struct matrix){tile + (size_t)left * (size_t)cols * dtype_bytes(t), t, cols, bc - left, cols};
    return tile;
}
