#include "engine/verdict/exactness.h"

#include "engine/oracle/fingerprint.h"
#include "engine/trace/conventions.h"
#include <stdio.h>
#include <string.h>

/* Nothing but FMAs, which are the same everywhere. */
static bool arithmetic_unknown(const struct trace *t)
{
    return tensor_cores_from_names(t->info.cores) == 1u << TENSOR_CORE_F32;
}

void arithmetic_words(const struct trace *t, char *out, size_t bytes)
{
    const uint32_t cores = tensor_cores_from_names(t->info.cores) & ~(1u << TENSOR_CORE_F32);
    char names[96];
    exactness_models(cores & (1u << TENSOR_CORE_H100 | 1u << TENSOR_CORE_A100 | 1u << TENSOR_CORE_V100), names,
                     sizeof names);
    if (!*names)
        exactness_models(cores, names, sizeof names);
    out[0] = '\0';
    if (*t->info.cores)
        snprintf(out, bytes, "arithmetic of this GPU: %s%s", *names ? "as " : "unknown: bounds decide", names);
}

static int accumulator_of(const struct trace *t, enum asc_channel ch)
{
    return ch == asc_s ? t->conventions.acc_s : ch == asc_u ? t->conventions.acc_u : ASC_ACC_F32;
}

static const char *why_bounds(const struct trace *t, const struct fingerprint_stage *f)
{
    int told = 0;
    if (arithmetic_unknown(t))
        return "the arithmetic of this GPU is unknown";
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

bool exactness_of(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct exactness *out)
{
    const int accumulator = accumulator_of(t, ch);
    const struct fingerprint_stage *f = ch == asc_s ? &j->fingerprint->s : &j->fingerprint->u;
    memset(out, 0, sizeof *out);
    if (accumulator == ASC_ACC_F32 || !trace_has(t, ch))
        return false;
    convention_choice(CONVENTION_OF_acc_s, accumulator, out->declared, sizeof out->declared);
    out->models = fingerprint_models(f);
    out->why = out->models ? "" : why_bounds(t, f);
    out->tiles = j->summary.stage[ch].exact;
    return true;
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
