#include "engine/judge/captured.h"

#include "engine/judge/numbers.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/fingerprint.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <string.h>

const enum asc_channel judge_channels[JUDGE_CAPTURED] = {
    [JUDGE_S] = asc_s, [JUDGE_M] = asc_m, [JUDGE_ALPHA] = asc_alpha, [JUDGE_P] = asc_p, [JUDGE_L] = asc_l,
    [JUDGE_U] = asc_u, [JUDGE_Q] = asc_q, [JUDGE_K] = asc_k,         [JUDGE_V] = asc_v};
const enum asc_channel judge_ends[JUDGE_ENDS] = {[JUDGE_O] = asc_o, [JUDGE_LSE] = asc_lse};

static bool has_stages(const struct oracle_case *c)
{
    for (int i = 0; i < JUDGE_STAGES; i++)
        if (!c->types || c->types[judge_channels[i]] != DTYPE_F32 || !values_captured(c, 0, judge_channels[i])->data)
            return false;
    return true;
}

static bool converts(const struct oracle_case *c)
{
    struct input_terms t;
    return reference_input(c, asc_q, &t) || reference_input(c, asc_k, &t) || reference_input(c, asc_v, &t);
}

static bool has_input(const struct oracle_case *c, enum asc_channel ch, const struct matrix *input)
{
    const struct matrix *m = values_captured(c, 0, ch);
    return !m->data || m->dtype == input->dtype;
}

static bool has_inputs(const struct oracle_case *c)
{
    return has_input(c, asc_q, &c->in_q) && has_input(c, asc_k, &c->in_k) && has_input(c, asc_v, &c->in_v);
}

/* The type that P V takes P in; false: none that is known here. */
static bool weight_type(const struct oracle_case *c, enum dtype *t)
{
    if (!values_p_type(c, t))
        *t = DTYPE_F32;
    return *t == DTYPE_F32 || *t == DTYPE_F16 || *t == DTYPE_BF16;
}

static bool rounds_weights(const struct oracle_case *c)
{
    enum dtype t;
    return weight_type(c, &t);
}

static const struct fingerprint_stage *stage_of(const struct oracle_case *c, enum asc_channel ch)
{
    return !c->fingerprint ? NULL : ch == asc_s ? &c->fingerprint->s : &c->fingerprint->u;
}

/* The ways that fit; -1: more than there is room for, or one that is not known here. */
static int list_ways(const struct oracle_case *c, enum asc_channel ch, struct judge_way ways[JUDGE_WAYS])
{
    const struct fingerprint_stage *f = stage_of(c, ch);
    const uint32_t fits = f ? fingerprint_fits(f) : 0;
    enum dtype operand = DTYPE_F32, weights = DTYPE_F32;
    int n = 0;
    product_type(ch == asc_s ? c->conventions.acc_s : c->conventions.acc_u, &operand);
    weight_type(c, &weights);
    const bool typed = ch == asc_s ? c->in_q.dtype == operand && c->in_k.dtype == operand
                                   : weights == operand && c->in_v.dtype == operand;
    for (int w = 0, last = -1; f && w < f->n; w++) {
        const struct product_way *way = &f->way[w];
        int products = 0;
        int fraction = 0;
        int result = 0;
        if (!(fits >> w & 1))
            continue;
        tensor_core_shape(way->model, &products, &fraction, &result);
        if (n == JUDGE_WAYS || !typed || way->rounds != PRODUCT_WIDE || way->join >= PRODUCT_FUSES ||
            way->scales != PRODUCT_NO_SCALES || result != 23 || tensor_core_step(way->model) ||
            (operand != DTYPE_F16 && operand != DTYPE_BF16))
            return -1;
        ways[n++] = (struct judge_way){.products = products,
                                       .fraction = fraction,
                                       .join = way->join == PRODUCT_CARRIES ? JUDGE_CARRIES
                                               : way->join == PRODUCT_ADDS  ? JUDGE_ADDS
                                                                            : JUDGE_FMA,
                                       .fresh = last != (int)way->model,
                                       .factor = {way->factor[0], way->factor[1]}};
        last = (int)way->model;
    }
    return n;
}

static bool knows_ways(const struct oracle_case *c)
{
    struct judge_way ways[JUDGE_WAYS];
    return list_ways(c, asc_s, ways) >= 0 && list_ways(c, asc_u, ways) >= 0;
}

static bool has_room_captured(const struct oracle_case *c)
{
    const struct judge_numbers n = {
        .head_dim = c->head_dim, .head_dim_v = c->head_dim_v, .bc = c->bc, .likely = likely_wanted(c)};
    return judge_stage_room_bytes(&n) <= JUDGE_ROOM_MAX;
}

const char *judge_captured_unknown(const struct oracle_case *c)
{
#define KNOWN(what)
#define UNKNOWN(what, condition)
#define UNCAPTURED(what, condition)                                                                                    \
    if (condition)                                                                                                     \
        return what;
#include "engine/judge/features.def"
#undef KNOWN
#undef UNKNOWN
#undef UNCAPTURED
    return NULL;
}

int judge_captured_exact(const struct oracle_case *c, enum asc_channel ch)
{
    const struct fingerprint_stage *f = stage_of(c, ch);
    const uint32_t fits = f ? fingerprint_fits(f) : 0;
    for (int w = 0; f && w < f->n; w++)
        if (fits >> w & 1)
            return 1 + (int)f->way[w].model;
    return 0;
}

struct judge_captured judge_captured_of(const struct oracle_case *c)
{
    const double nothing = 0x1p-1000, factor = bound_p_factor(c), least = product_size(c->conventions.acc_u, nothing);
    const bool at_sink = local_begins_at_sink(c, 0), l_begins = local_l_begin(c, 0) != 0; /* that is to be rescaled */
    struct judge_captured x = {.l_rounded = c->conventions.l_from == ASC_L_ROUNDED,
                               .l_cols = values_captured(c, 0, asc_l)->cols,
                               .direct = c->conventions.s_unit == c->conventions.m_unit && !values_natural_later(c),
                               .mask_later = values_mask_later(c),
                               .alpha_one_at_start = c->conventions.alpha_first == ASC_ALPHA_ONE && !at_sink,
                               .alpha_one_first = c->conventions.alpha_first == ASC_ALPHA_ONE_FIRST && !l_begins,
                               .alpha_none_first = c->conventions.alpha_first == ASC_ALPHA_NONE_FIRST && !l_begins,
                               .s_natural = values_natural_later(c) ? 1 : values_natural_s(c),
                               .m_natural = values_natural_m(c),
                               .l_relative = bound_sum(c->bc),
                               .l_tiny = (c->bc + 2) * BOUND_TINY,
                               .l_tiny_global = fmax(1, factor) * c->bc * BOUND_TINY,
                               .u_relative = product_accumulate(c),
                               .u_tiny = product_tiny(c->conventions.acc_u, c->bc + 2),
                               .u_tiny_global = fmax(1, factor) * c->bc * BOUND_TINY,
                               .p_least = least > nothing ? least : 0,
                               .least_exponent = c->in_v.dtype == DTYPE_F16 ? -14 : -126};
    enum dtype t = DTYPE_F32;
    weight_type(c, &t);
    x.p_type = (int)t;
    x.n_ways[0] = list_ways(c, asc_s, x.way[0]);
    x.n_ways[1] = list_ways(c, asc_u, x.way[1]);
    return x;
}

/* Nothing there but what hides a key or was never written. */
static bool padding_hides(const struct matrix *m, double hidden)
{
    for (int r = 0; m->data && r < m->rows; r++)
        for (int col = 0; col < m->cols; col++) {
            const size_t at = (size_t)(r * m->row_stride + col);
            if (values_element_written(m, at) && dtype_load(m->dtype, m->data, at) != hidden)
                return false;
        }
    return true;
}

static bool padding_is_finite(const struct matrix *m)
{
    for (int r = 0; m->data && r < m->rows; r++)
        for (int col = 0; col < m->cols; col++) {
            const size_t at = (size_t)(r * m->row_stride + col);
            if (values_element_written(m, at) && !isfinite(dtype_load(m->dtype, m->data, at)))
                return false;
        }
    return true;
}

bool judge_captured_whole(const struct oracle_case *c)
{
    int whole = 0;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        whole += !schedule_masked(c, kv);
    for (int i = 0; i < c->n_visited; i++) {
        const int kv = c->order[i];
        if (schedule_masked(c, kv) || (!values_mask_later(c) && !padding_hides(&c->s_padding[kv], -INFINITY)) ||
            !padding_hides(&c->p_padding[kv], 0) || !padding_is_finite(&c->v_padding[kv]))
            return false;
    }
    return whole == c->n_visited && whole > 0;
}
