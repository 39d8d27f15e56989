#include "engine/oracle/schedule.h"

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

int schedule_keys(const struct oracle_case *c, int r)
{
    const int64_t row = (int64_t)c->q_tile * c->br + r;
    switch (c->causal) {
    case ASC_CAUSAL_TOP_LEFT:
        return (int)clamp(row + 1, 0, c->kv_len);
    case ASC_CAUSAL_BOTTOM_RIGHT:
        return (int)clamp(row + 1 + c->kv_len - c->q_len, 0, c->kv_len);
    default:
        return c->kv_len;
    }
}

int schedule_cols(const struct oracle_case *c, int kv)
{
    return (int)clamp(c->kv_len - (int64_t)kv * c->bc, 0, c->bc);
}

int schedule_visible(const struct oracle_case *c, int r, int kv)
{
    return (int)clamp(schedule_keys(c, r) - (int64_t)kv * c->bc, 0, c->bc);
}

int schedule_masked(const struct oracle_case *c, int kv)
{
    /* A later row never sees less than an earlier one. */
    return c->in_q.rows < 1 || schedule_visible(c, c->in_q.rows - 1, kv) == 0;
}
