#include "engine/run/given.h"

#include "engine/run/unquantized.h"
#include <string.h>

static int quantizes(const struct trace *t)
{
    return problem_has_codes(&t->problem) || t->conventions.quantized != ASC_QUANTIZED_GIVEN;
}

int given_view(const struct trace *t, struct trace *out)
{
    if (unquantized_view(t, out))
        return 1;
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
