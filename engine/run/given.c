#include "engine/run/given.h"

#include <string.h>

static bool quantizes(const struct trace *t)
{
    return problem_has_codes(&t->problem) || t->conventions.quantized != ASC_QUANTIZED_GIVEN;
}

bool unquantized_view(const struct trace *t, struct trace *out)
{
    static const char letters[] = "qkv";
    if (!quantizes(t))
        return false;
    *out = *t;
    struct layout *l = &out->layout;
    struct layout_part *const parts[3][3] = {
        {&l->q, &l->q_scale, &l->q_given}, {&l->k, &l->k_scale, &l->k_given}, {&l->v, &l->v_scale, &l->v_given}};
    int32_t *const types[3] = {&out->problem.dtype, &out->problem.k_dtype, &out->problem.v_dtype};
    for (int i = 0; i < 3; i++) {
        enum dtype dtype;
        if (!trace_given(t, letters[i], &dtype))
            return false;
        *types[i] = (int32_t)dtype;
        if (parts[i][2]->bytes)
            *parts[i][0] = *parts[i][2];
        parts[i][1]->bytes = parts[i][2]->bytes = 0;
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        l->channel[ch].dtype = -1;
    out->fed = NULL;
    out->conventions.quantized = ASC_QUANTIZED_GIVEN;
    out->conventions.qk_descale = ASC_QK_OPERANDS;
    out->conventions.v_descale = ASC_V_OPERANDS;
    return true;
}

bool given_view(const struct trace *t, struct trace *out)
{
    if (unquantized_view(t, out))
        return true;
    *out = *t;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        out->layout.channel[ch].dtype = -1;
    out->fed = NULL;
    return !quantizes(t);
}

int given_case_make(const struct trace *t, int slot, struct given_case *out)
{
    memset(out, 0, sizeof *out);
    given_view(t, &out->view);
    if (slot_case_make(&out->view, slot, &out->given) == 0 && slot_case_make(t, slot, &out->run) == 0)
        return 0;
    given_case_free(out);
    return -1;
}

void given_case_free(struct given_case *g)
{
    slot_case_free(&g->given);
    slot_case_free(&g->run);
}
