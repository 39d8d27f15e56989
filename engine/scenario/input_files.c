/* Which files inputs are of. */
#include "engine/scenario/keys.h"

#include <stdio.h>

const char *const scenario_input_names[INPUT_COUNT] = {
    "q",       "k",       "v",       "sink",   "alibi",   "bias",         "mask",         "keep",
    "q_scale", "k_scale", "v_scale", "q_lens", "kv_lens", "cu_seqlens_q", "cu_seqlens_k", "page_table"};

_Static_assert(KEY_INPUT_PAGE_TABLE == KEY_INPUT_Q + INPUT_PAGE_TABLE, "keys and inputs are in one order");

bool scenario_has_inputs(const struct scenario *s)
{
    for (int id = KEY_INPUT_FROM; id <= KEY_INPUT_PAGE_TABLE; id++)
        if (scenario_stated(s, (enum scenario_key_id)id))
            return true;
    return false;
}

bool scenario_input(const struct scenario *s, enum input_id i, char spec[ARRAY_NAME_BYTES])
{
    const char *own = scenario_said(s, (enum scenario_key_id)(KEY_INPUT_Q + (int)i)),
               *from = scenario_said(s, KEY_INPUT_FROM);
    if (own)
        snprintf(spec, ARRAY_NAME_BYTES, "%s", own);
    else if (from && s->inputs.found & 1u << i)
        snprintf(spec, ARRAY_NAME_BYTES, "%s:%s%s", from, s->inputs.from_trace ? "input." : "",
                 scenario_input_names[i]);
    return own || (from && s->inputs.found & 1u << i);
}

int scenario_input_type(const struct scenario *s, int tensor, const struct array *a)
{
    const bool own = scenario_stated(s, (enum scenario_key_id)(KEY_INPUT_Q + tensor));
    return s->inputs.from_trace && !own ? s->inputs.from_types[tensor] : a->dtype;
}

bool scenario_states_type(const struct scenario *s, int tensor)
{
    return scenario_stated(s, KEY_DTYPE) || (tensor > 0 && scenario_stated(s, KEY_K_DTYPE)) ||
           (tensor > 1 && scenario_stated(s, KEY_V_DTYPE));
}

bool scenario_given(const struct scenario *s, int tensor, char spec[ARRAY_NAME_BYTES])
{
    const bool from_trace = s->inputs.from_trace && !scenario_stated(s, (enum scenario_key_id)(KEY_INPUT_Q + tensor));
    if (from_trace)
        snprintf(spec, ARRAY_NAME_BYTES, "%s:input.%s_given", scenario_said(s, KEY_INPUT_FROM),
                 scenario_input_names[tensor]);
    return from_trace;
}
