#include "engine/verdict/element_code.h"

#include "engine/oracle/values.h"

#include <math.h>
#include <stdio.h>

static double plain_value(enum dtype type, unsigned code)
{
    const uint8_t byte = (uint8_t)code;
    return dtype_load(type, &byte, 0);
}

/* The codes of the next smaller and the next larger number; of +0 and -0 the positive one. */
static void find_neighbors(struct element_code *c)
{
    double low = -INFINITY, high = INFINITY;
    for (unsigned code = 0; code < 256; code++) {
        const double x = plain_value(c->type, code);
        if (!isfinite(x))
            continue;
        if (x < c->plain && x > low) {
            low = x;
            c->below = (struct code_neighbor){true, code, x * c->scale};
        } else if (x > c->plain && x < high) {
            high = x;
            c->above = (struct code_neighbor){true, code, x * c->scale};
        }
    }
}

static bool input_code(const struct trace *t, struct place place, int row, int col, struct element_code *out)
{
    static const char letters[] = {[asc_q] = 'q', [asc_k] = 'k', [asc_v] = 'v'};
    const char which = letters[place.channel];
    const struct asc_problem *p = &t->problem;
    const struct problem_tensor tensor = problem_tensor(p, problem_tensor_of(place.channel));
    const int32_t *at = trace_slot_place(t, place.slot);
    const bool of_keys = place.channel != asc_q;
    const int head = of_keys ? asc_kv_head(p, at[1], t->conventions.kv_head_map) : at[1];
    const int number = of_keys ? place.kv * t->plan.bc + row : at[2] * t->plan.br + row;
    const float *scales = trace_scales(t, which);
    enum dtype type, given_type;
    const uint8_t *codes = trace_tensor(t, which, &type);
    if (!codes || !dtype_is_code(type) || row < 0 || col < 0 || col >= tensor.cols ||
        number >= problem_tensor_rows(&tensor, at[0]))
        return false;
    const size_t i = (size_t)(problem_tensor_at(&tensor, at[0], head, number) + col * tensor.stride.col);
    const void *given = trace_given(t, which, &given_type);
    out->type = type;
    out->code = codes[i];
    out->scale =
        scales ? (double)scales[asc_scale_of(p, tensor.heads, tensor.rows, tensor.cols, at[0], head, number, col)] : 1;
    out->given = given && !dtype_is_unwritten(given_type, given, i) ? dtype_load(given_type, given, i) : NAN;
    return true;
}

/* What P·V takes P as, where that is codes; -1: it is none. */
static int weight_type(const struct trace *t, enum dtype recorded)
{
    const int rounded = t->conventions.p_rounded;
    if (dtype_is_code(recorded))
        return (int)recorded;
    const int type = rounded == ASC_P_E4M3    ? (int)DTYPE_E4M3
                     : rounded == ASC_P_E5M2  ? (int)DTYPE_E5M2
                     : rounded == ASC_P_INPUT ? t->problem.dtype
                                              : -1;
    return type >= 0 && dtype_is_code((enum dtype)type) ? type : -1;
}

/* P carries a factor of its own, which its codes are without. */
static bool weight_code(const struct trace *t, struct place place, int row, int col, double given,
                        struct element_code *out)
{
    const struct tile tile = trace_tile(t, asc_p, place.slot, place.kv);
    const struct asc_conventions *c = &t->conventions;
    const int type = weight_type(t, tile.dtype);
    if (!tile.data || type < 0 || row < 0 || col < 0 || row >= tile.rows || col >= tile.cols)
        return false;
    const double factor = ldexp(c->p_factor > 0 ? (double)c->p_factor : 1.0, (int)c->p_offset);
    const size_t i = (size_t)row * (size_t)tile.cols + (size_t)col;
    const bool recorded = dtype_is_code(tile.dtype);
    uint8_t code = recorded ? ((const uint8_t *)tile.data)[i] : 0;
    if (!recorded) { /* it was recorded before it was rounded */
        if (dtype_is_unwritten(tile.dtype, tile.data, i))
            return false;
        given = dtype_load(tile.dtype, tile.data, i);
        dtype_store((enum dtype)type, &code, 0, given);
    }
    out->type = (enum dtype)type;
    out->code = code;
    out->scale = 1 / factor;
    out->given = given / factor;
    return true;
}

bool element_code(const struct trace *t, struct place place, int row, int col, double given, struct element_code *out)
{
    *out = (struct element_code){.given = NAN};
    const bool input = place.channel == asc_q || place.channel == asc_k || place.channel == asc_v;
    if (place.slot < 0 || !(input                    ? input_code(t, place, row, col, out)
                            : place.channel == asc_p ? weight_code(t, place, row, col, given, out)
                                                     : false))
        return false;
    out->plain = plain_value(out->type, out->code);
    out->value = out->plain * out->scale;
    find_neighbors(out);
    return true;
}

static void neighbor_words(const struct code_neighbor *n, const char *none, char *out, size_t bytes)
{
    if (n->is)
        snprintf(out, bytes, "0x%02x %+.6g", n->code, n->value);
    else
        snprintf(out, bytes, "%s", none);
}

void element_code_words(const struct element_code *c, char out[CODE_LINES][CODE_LINE_BYTES])
{
    char below[40], above[40], share[32] = "";
    snprintf(out[0], CODE_LINE_BYTES, "code 0x%02x of %s is %+.6g, times the scale %.6g: %+.6g", c->code,
             dtype_name(c->type), c->plain, c->scale, c->value);
    const double off = c->value - c->given;
    if (c->given != 0)
        snprintf(share, sizeof share, " (%+.2g %%)", 100 * off / fabs(c->given));
    if (isnan(c->given))
        snprintf(out[1], CODE_LINE_BYTES, "what was quantized is not known");
    else
        snprintf(out[1], CODE_LINE_BYTES, "quantized from %+.6g: off by %+.3g%s", c->given, off, share);
    neighbor_words(&c->below, "none below", below, sizeof below);
    neighbor_words(&c->above, "none above", above, sizeof above);
    snprintf(out[2], CODE_LINE_BYTES, "beside it %s and %s", below, above);
}
