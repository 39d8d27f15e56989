#include "engine/judge/numbers.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/local.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/product.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include <stdlib.h>
#include <string.h>

const struct judge_feature judge_features[] = {
#define KNOWN(what) {what, true},
#define UNKNOWN(what, condition) {what, false},
#define UNCAPTURED(what, condition) {what, false},
#include "engine/judge/features.def"
#undef KNOWN
#undef UNKNOWN
#undef UNCAPTURED
    {NULL, false}};

static bool is_float(enum dtype t)
{
    return t == DTYPE_F16 || t == DTYPE_BF16 || t == DTYPE_F32;
}

static bool is_known(enum dtype t)
{
    return is_float(t) || dtype_is_code(t);
}

/* Whether each row sees some key, and the tiles that hold one are neighbors: so it is without a mask of bytes, whose
   ranges grow with the row. */
static bool sees_ranges(const struct oracle_case *c)
{
    for (int r = 0; r < c->in_q.rows; r++) {
        const struct key_range now = schedule_range(c, r), before = schedule_range(c, r ? r - 1 : 0);
        if (schedule_keys(c, r) == 0 || now.first < before.first || now.first > before.last)
            return false;
    }
    return true;
}

static struct judge_input input_of(const struct oracle_case *c, enum asc_channel ch)
{
    const struct coding *coding = codes_of(c, ch);
    const bool turned = c->rope.kind != 0 && ch != asc_v, descaled = codes_use(c, ch) == CODES_DESCALED;
    struct judge_input x = {.turned = turned ? c->rope.dim : 0,
                            .descaled = descaled,
                            .roundings = codes_roundings(coding),
                            .rows = coding->rows,
                            .dims = coding->dims,
                            .parts = coding->parts,
                            .turned_share = rope_loose_share((double)c->conventions.rope_error)};
    int32_t pair[2];
    asc_rope_pair(c->rope.kind, c->rope.dim, 0, pair);
    x.apart = pair[1] - pair[0];
    /* What a code becomes, and what is turned, is never one number (codes_load()). */
    x.lossy = reference_input(c, ch, &x.terms) || turned || descaled;
    return x;
}

static void take_inputs(const struct oracle_case *c, struct judge_numbers *n)
{
    static const enum asc_channel of[] = {asc_q, asc_k, asc_v};
    for (int i = 0; i < 3; i++) {
        n->input[i] = input_of(c, of[i]);
        n->more |= n->input[i].lossy;
    }
    n->splits = c->kv_splits > 1 ? schedule_splits(c) : 0;
    n->more |= n->splits > 0;
}

/* Where nothing but their type is between K and V and the products, and a factor between these and the softmax, a block
   has them as they come, of rows that are as long as most. */
static int element_bytes(const struct oracle_case *c, const struct judge_numbers *n)
{
    const enum dtype k = c->in_k.dtype, v = c->in_v.dtype;
    const int dim = c->head_dim;
    const bool plain = !n->more && !(c->softcap > 0) && !bias_terms(c) && !codes_descale_roundings(c);
    return plain && k == v && (k == DTYPE_F16 || k == DTYPE_BF16) && (dim == 64 || dim == 128) && c->head_dim_v == dim
               ? 2
               : 4;
}

static bool has_room(const struct oracle_case *c)
{
    struct judge_numbers n = {
        .head_dim = c->head_dim, .head_dim_v = c->head_dim_v, .bc = c->bc, .likely = likely_wanted(c)};
    take_inputs(c, &n);
    n.element_bytes = element_bytes(c, &n);
    return c->head_dim <= 512 && c->head_dim_v <= 512 &&
           judge_room_bytes(&n) + sizeof(struct judge_numbers) + sizeof(struct judge_tile) <= JUDGE_ROOM_MAX;
}

const char *judge_unknown(const struct oracle_case *c)
{
#define KNOWN(what)
#define UNKNOWN(what, condition)                                                                                       \
    if (condition)                                                                                                     \
        return what;
#define UNCAPTURED(what, condition)
#include "engine/judge/features.def"
#undef KNOWN
#undef UNKNOWN
#undef UNCAPTURED
    return NULL;
}

/* The type's bits and least exponent as likely_bin() has them, see deal_weights(). */
static void take_bins(double unit, double half_tiny, struct judge_numbers *n)
{
    n->bin_bits = -1 - ilogb(unit);
    n->bin_least = ilogb(half_tiny) + 1 + n->bin_bits;
}

struct judge_numbers judge_numbers_of(const struct oracle_case *c)
{
    const double nothing = 0x1p-1000;
    struct judge_numbers inputs = {0};
    take_inputs(c, &inputs);
    /* Nothing else makes a score err. */
    const bool products = !(c->softcap > 0) && !bias_terms(c) && !inputs.input[0].lossy && !inputs.input[1].lossy;
    const bool at_sink = local_begins_at_sink(c, 0);
    struct judge_numbers n = {.head_dim = c->head_dim,
                              .head_dim_v = c->head_dim_v,
                              .bc = c->bc,
                              .type = {(int)c->in_q.dtype, (int)c->in_k.dtype, (int)c->in_v.dtype, c->o_dtype},
                              .likely = likely_wanted(c),
                              .noise = likely_wanted(c) && products && !inputs.input[2].lossy && !inputs.splits,
                              .lanes = c->conventions.l_lanes,
                              .roundings = reference_added_keys(c) + 6,
                              .factor = values_factor(c->conventions.s_unit, c->scale),
                              .score_least = product_size(c->conventions.acc_s, nothing),
                              .cap = c->softcap,
                              .tanh_error = bound_tanh(c),
                              .before = values_natural(c->conventions.s_unit, c->scale),
                              .after = values_natural_s(c),
                              .slope = c->alibi_slope,
                              .cap_later = values_capped_later(c),
                              .bias_later = values_biased_later(c),
                              .bias_terms = bias_terms(c),
                              .columns = bias_counts_columns(c),
                              .scaled = c->conventions.qk_descale == ASC_QK_PRODUCT && codes_descale_roundings(c) > 0,
                              .scaled_v = c->conventions.v_descale == ASC_V_PRODUCT && c->v_codes.scale,
                              .natural = values_natural_later(c) ? 1 : values_natural_s(c),
                              .convert = c->conventions.s_unit != c->conventions.m_unit || values_natural_later(c),
                              .start = local_m_begin(c, 0) * values_natural_m(c),
                              .start_later = local_m_begin(c, 1) * values_natural_m(c),
                              .max_begin = at_sink ? c->sink : -INFINITY,
                              .bound_begin = local_m_begin_loose(c, 0) * fabs(values_natural_m(c)),
                              .m_begin = local_m_begin(c, 0),
                              .m_begin_loose = local_m_begin_loose(c, 0),
                              .l_begin = local_l_begin(c, 0),
                              .has_sink = c->has_sink,
                              .sink_last = merge_sink_comes_last(c),
                              .sink = c->sink,
                              .exponential = weight_exponential(c),
                              .p_factor = bound_p_factor(c),
                              .ln_factor = bound_ln_factor(c),
                              .l_error = bound_sum(reference_added_keys(c)),
                              .u_error = reference_accumulate_error(c),
                              .u_least = product_size(c->conventions.acc_u, BOUND_TINY),
                              .random = products ? LIKELY_RANDOM : 0,
                              .o_times = codes_o_times(c),
                              .o_roundings = bound_output_roundings(c),
                              .lse_unit = c->conventions.lse_base2 ? M_LOG2E : 1,
                              .alpha_arguments = ALPHA_ARGUMENTS,
                              .folded_lse = bound_folded_scales(c, 1)};
    const struct matrix *lse = &c->captured[asc_lse];
    enum dtype t;
    double unit = 0;
    double half_tiny = 0;
    memcpy(n.input, inputs.input, sizeof n.input);
    n.more = inputs.more;
    n.splits = inputs.splits;
    n.element_bytes = element_bytes(c, &n);
    n.l_error_begin = n.l_begin * bound_expm1(n.bound_begin);
    n.has_lse = lse->data != NULL;
    n.lse_type = n.has_lse ? (int)lse->dtype : DTYPE_F32;
    n.score_least = n.score_least > nothing ? n.score_least : 0;
    n.score_grown = fabs(n.factor) * (product_score(c) + bound_factor(n.factor));
    n.score_tiny = product_tiny(c->conventions.acc_s, c->head_dim + 1);
    bound_narrow(DTYPE_F16, &unit, &half_tiny);
    if (values_p_type(c, &t)) {
        bound_narrow(t, &n.p_unit, &n.p_half_tiny);
        unit = n.p_unit;
        half_tiny = n.p_half_tiny;
        if (c->conventions.l_from == ASC_L_ROUNDED) {
            n.l_unit = n.p_unit;
            n.l_half_tiny = n.p_half_tiny;
        }
    }
    take_bins(unit, half_tiny, &n);
    n.share = likely_share(c);
    bound_narrow((enum dtype)c->o_dtype, &n.o_unit, &n.o_half_tiny);
    return n;
}

void judge_scale_keys(const struct oracle_case *c, double *by_key, double *by_tile)
{
    if (c->conventions.qk_descale == ASC_QK_PRODUCT)
        codes_by(c, asc_k, 0, c->kv_len, by_key);
    for (int kv = 0; kv < c->kv_tiles; kv++)
        by_tile[kv] = codes_v_times(c, kv * c->bc);
}

int64_t judge_scale_codes_room(const struct oracle_case *c)
{
    int64_t n = 0;
    for (enum asc_channel ch = asc_q; ch <= asc_v; ch++)
        n += codes_use(c, ch) == CODES_DESCALED ? (int64_t)codes_of(c, ch)->groups * codes_of(c, ch)->parts : 0;
    return n;
}

void judge_scale_codes(const struct oracle_case *c, int64_t at, double *scales, struct judge_numbers *n)
{
    static const enum asc_channel of[] = {asc_q, asc_k, asc_v};
    for (int i = 0; i < 3; i++) {
        const struct coding *coding = codes_of(c, of[i]);
        n->input[i].scales = at;
        for (int k = 0; n->input[i].descaled && k < coding->groups * coding->parts; k++)
            scales[at++] = (double)coding->scale[k] * (double)coding->tensor;
    }
}

double judge_scale_rows(const struct oracle_case *c, double *by_row)
{
    double largest = 1;
    codes_by(c, asc_q, 0, c->in_q.rows, by_row);
    for (int r = 0; r < c->in_q.rows; r++)
        largest = fmax(largest, by_row[r]);
    return largest;
}

/* The kv tiles of each split that hold something, one split after the other. -1: no memory. */
static int list_splits(const struct oracle_case *c, int32_t *orders)
{
    struct schedule_lists lists;
    int *room = calloc(schedule_lists_room(c), sizeof *room);
    int n = 0;
    if (!room)
        return -1;
    schedule_lists_make(c, room, &lists);
    for (int split = 0; split < lists.splits; split++) {
        int32_t begins = split ? JUDGE_BEGINS : 0;
        for (int kv = lists.first_tile[split]; kv >= 0; kv = lists.next_tile[kv]) {
            if (schedule_masked(c, kv))
                continue;
            orders[n++] = kv | begins;
            begins = 0;
        }
    }
    free(room);
    return n;
}

int judge_tiles_of(const struct oracle_case *c, struct judge_tile *tile, struct judge_range *ranges,
                   unsigned char *skips, int32_t *orders)
{
    int first = c->kv_len;
    int last = 0;
    for (int r = 0; r < c->in_q.rows; r++) {
        const struct key_range keys = schedule_range(c, r);
        ranges[r] = (struct judge_range){keys.first, keys.last, schedule_keys(c, r)};
        first = keys.first < first ? keys.first : first;
        last = keys.last > last ? keys.last : last;
    }
    tile->rows = c->in_q.rows;
    tile->keys = c->kv_len;
    tile->first_row = c->q_tile * c->br;
    tile->diagonal = schedule_diagonal(c, 0);
    tile->first = first / c->bc;
    tile->last = (last - 1) / c->bc;
    tile->visits = tile->last - tile->first + 1;
    for (int kv = tile->first; skips && kv <= tile->last; kv++) {
        skips[kv - tile->first] = schedule_masked(c, kv);
        tile->visits -= schedule_masked(c, kv);
    }
    const int listed = orders ? list_splits(c, orders) : 0;
    if (orders)
        tile->visits = listed;
    return listed < 0 ? -1 : 0;
}
