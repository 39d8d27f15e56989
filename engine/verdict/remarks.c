#include "engine/verdict/remarks.h"

#include "engine/base/path.h"
#include "engine/oracle/fingerprint.h"
#include "engine/trace/conventions.h"
#include "engine/verdict/case.h"

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

static int accumulator_of(const struct trace *t, enum asc_channel ch)
{
    return ch == asc_s ? t->conventions.acc_s : ch == asc_u ? t->conventions.acc_u : ASC_ACC_F32;
}

static const char *why_bounds(const struct fingerprint_stage *f)
{
    int told = 0;
    for (int w = 0; w < f->n; w++)
        told = f->told[w] > told ? f->told[w] : told;
    if (f->n == 0)
        return "the arithmetic after the product is not declared to the bit";
    if (f->blocks == 0)
        return "its operands are not recorded as the tensor core took them";
    if (f->finite == 0)
        return f->odd ? "all sampled sums are NaN or infinite" : "all sampled sums are masked";
    if (told < 2)
        return f->odd ? "too few of the sampled sums are numbers" : "the sums are the same in any order";
    return "no tensor-core model fits";
}

int exactness_of(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct exactness *out)
{
    const int accumulator = accumulator_of(t, ch);
    const struct fingerprint_stage *f = ch == asc_s ? &j->fingerprint->s : &j->fingerprint->u;
    memset(out, 0, sizeof *out);
    if (accumulator == ASC_ACC_F32 || !trace_has(t, ch))
        return 0;
    convention_choice(CONVENTION_OF_acc_s, accumulator, out->declared, sizeof out->declared);
    out->models = fingerprint_models(f);
    out->why = out->models ? "" : why_bounds(f);
    out->tiles = j->summary.stage[ch].exact;
    return 1;
}

void exactness_models(uint32_t models, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int m = 0; m < TENSOR_CORE_COUNT; m++)
        if (models >> m & 1 && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? " or " : "",
                                     tensor_core_name((enum tensor_core)m));
}

void exactness_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char *out, size_t bytes)
{
    struct exactness x;
    char models[96];
    out[0] = '\0';
    if (!exactness_of(j, t, ch, &x))
        return;
    if (!x.models) {
        snprintf(out, bytes, "%s: judged by bounds", x.why);
        return;
    }
    exactness_models(x.models, models, sizeof models);
    if (x.tiles.off)
        snprintf(out, bytes, "%s; %llu elements differ bitwise", models, (unsigned long long)x.tiles.off);
    else
        snprintf(out, bytes, "bit-equal to %s", models);
    const size_t used = strlen(out);
    if (x.tiles.first_unequal.slot >= 0 && used < bytes) {
        const int32_t *at = trace_slot_place(t, x.tiles.first_unequal.slot);
        snprintf(
            out + used, bytes - used,
            "; %llu elements in %llu of %llu tiles, first b%d h%d q%d k%d, are summed differently, within the bound",
            (unsigned long long)x.tiles.unequal, (unsigned long long)x.tiles.unequal_tiles,
            (unsigned long long)x.tiles.n, at[0], at[1], at[2], x.tiles.first_unequal.kv);
    } else if (x.tiles.n < x.tiles.judged && used < bytes) {
        snprintf(out + used, bytes - used, " in %llu of %llu tiles; bounds judged the others",
                 (unsigned long long)x.tiles.n, (unsigned long long)x.tiles.judged);
    }
}
