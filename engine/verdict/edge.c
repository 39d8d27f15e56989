#include "engine/verdict/edge.h"

#include "engine/base/path.h"

#include <stdio.h>
#include <string.h>

/* Those that lie in memory from their probe to the product, in the order of the formula. */
static const struct {
    enum asc_channel product, operand[2];
} products[] = {{asc_s, {asc_q, asc_k}}, {asc_u, {asc_p, asc_v}}};

static int was_right(const struct summary *summary, enum asc_channel ch)
{
    return summary->stage[ch].local == STAGE_OK;
}

/* " (kernel.cu:165)" */
static void write_site(const struct trace *t, enum asc_channel ch, char out[280])
{
    const struct trace_site *site = trace_site(t, ch);
    out[0] = '\0';
    if (site)
        snprintf(out, 280, " (%s:%d)", path_name(site->file), site->line);
}

static void other_tile_words(const struct trace *t, const struct finding *f, enum asc_channel operand,
                             char out[EDGE_WORDS_BYTES])
{
    char site[280];
    write_site(t, operand, site);
    snprintf(out, EDGE_WORDS_BYTES,
             "%s was right at its probe%.90s. Between there and probe %s another tile took its place: a barrier or a "
             "wait is missing, or the wrong buffer is read",
             channel_label(operand), site, channel_name(f->channel));
}

static void changed_words(const struct trace *t, const struct finding *f, const enum asc_channel operand[2],
                          char out[EDGE_WORDS_BYTES])
{
    char sites[2][280];
    for (int i = 0; i < 2; i++)
        write_site(t, operand[i], sites[i]);
    snprintf(out, EDGE_WORDS_BYTES,
             "%s%.60s and %s%.60s were right at their probes. Between there and probe %s they are read wrong, or "
             "overwritten, or the arithmetic is wrong",
             channel_label(operand[0]), sites[0], channel_label(operand[1]), sites[1], channel_name(f->channel));
}

int edge_words(const struct trace *t, const struct summary *summary, const struct finding *f,
               char out[EDGE_WORDS_BYTES])
{
    out[0] = '\0';
    if (t->fed || summary->stage[f->channel].missing_local == summary->stage[f->channel].bad_local)
        return 0;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const enum asc_channel *operand = products[i].operand;
        if (products[i].product != f->channel)
            continue;
        if (f->cause == CAUSE_NONE) {
            if (was_right(summary, operand[0]) && was_right(summary, operand[1]))
                changed_words(t, f, operand, out);
        } else if (cause_is_other_tile(f->cause) && was_right(summary, operand[1])) {
            other_tile_words(t, f, operand[1], out);
        }
    }
    return out[0] != '\0';
}
