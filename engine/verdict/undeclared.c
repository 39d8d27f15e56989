#include "engine/verdict/undeclared.h"

#include "engine/verdict/case.h"
#include <stdio.h>

bool undeclared_words(const struct trace *t, int i, char out[UNDECLARED_WORDS_BYTES])
{
    const char *const found[] = {
        trace_lse(t) == TRACE_LSE_UNDECLARED
            ? "LSE is not written; if the kernel has none, declare it: kernel.no_lse = 1"
            : NULL,
        t->conventions.alpha_first != ASC_ALPHA_NONE_FIRST && case_alpha_left_out(t)
            ? "α is not written on the first kv tile; if the kernel has none there, declare it: kernel.alpha_first = "
              "ASC_ALPHA_NONE_FIRST"
            : NULL,
    };
    for (size_t k = 0; k < sizeof found / sizeof found[0]; k++)
        if (found[k] && i-- == 0) {
            snprintf(out, UNDECLARED_WORDS_BYTES, "%s", found[k]);
            return true;
        }
    return false;
}
