#include "engine/run/lost.h"

#include <inttypes.h>
#include <stdio.h>

int mistyped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES])
{
    const uint64_t n = trace_mistyped(t, ch);
    out[0] = '\0';
    if (n)
        snprintf(out, LOST_WORDS_BYTES, "%" PRIu64 " values of %s are not %s, the declared type", n, channel_name(ch),
                 dtype_name(t->layout.channel[ch].dtype));
    return n > 0;
}

int dropped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES])
{
    const uint64_t n = trace_dropped(t, ch);
    /* Its column is the lane: one, unless the kernel says that a row has partial sums in several. */
    const char *why = ch == asc_l && t->plan.l_lanes <= 1 ? " (l_lanes?): lane" : ": column";
    out[0] = '\0';
    if (n)
        snprintf(out, LOST_WORDS_BYTES, "%" PRIu64 " values of %s were not recorded%s, row or kv tile out of range", n,
                 channel_name(ch), why);
    return n > 0;
}
