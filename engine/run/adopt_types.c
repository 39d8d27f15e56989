#include "engine/run/adopt_types.h"

#include "engine/scenario/keys.h"

/* The one that is wanted, if the set has it, else its first. An empty set stands for `same`. */
static int32_t choose(uint32_t set, int32_t wanted, int32_t same)
{
    if (!set)
        return same;
    return (set & 1u << wanted) ? wanted : (int32_t)__builtin_ctz(set);
}

void adopt_types(const struct child_hello *hello, struct scenario *scenario)
{
    struct asc_problem *p = &scenario->problem;
    if (!scenario_stated(scenario, KEY_DTYPE))
        p->dtype = choose(hello->dtypes, p->dtype, p->dtype);
    if (!scenario_stated(scenario, KEY_K_DTYPE))
        p->k_dtype = choose(hello->k_dtypes, p->dtype, p->dtype);
    if (!scenario_stated(scenario, KEY_V_DTYPE))
        p->v_dtype = choose(hello->v_dtypes, p->k_dtype, p->dtype);
}
