/* What made a root: each origin is tested from the operands' values, in float64. What none gives is not known. */
#include "engine/oracle/nonfinite/onset_map.h"

#include "engine/base/format.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <float.h>
#include <math.h>

/* The first number that f16 rounds to infinity: half a step above its largest, 65504. */
static const double f16_end = 65520;

enum nan_origin origin_of_conversion(enum dtype t, double x)
{
    /* Halfway to the next number that the format would have, rounding to even: f16 and e5m2 become infinite there;
       e4m3's 448 is even, so that 464 still becomes 448, and what is above it the code of NaN. */
    switch (t) {
    case DTYPE_F16:
        return fabs(x) >= f16_end ? ORIGIN_F16_OVERFLOW : ORIGIN_UNKNOWN;
    case DTYPE_BF16:
        return fabs(x) >= 0x1.FFp127 ? ORIGIN_BF16_OVERFLOW : ORIGIN_UNKNOWN;
    case DTYPE_E4M3:
        return fabs(x) > 464 ? ORIGIN_E4M3_OVERFLOW : ORIGIN_UNKNOWN;
    case DTYPE_E5M2:
        return fabs(x) >= 61440 ? ORIGIN_E5M2_OVERFLOW : ORIGIN_UNKNOWN;
    case DTYPE_F32:
        return fabs(x) >= 0x1.FFFFFFp127 ? ORIGIN_F32_OVERFLOW : ORIGIN_UNKNOWN;
    default:
        return ORIGIN_UNKNOWN;
    }
}

struct explaining {
    const struct onset_map *map;
    const struct oracle_case *c;
    int step;
    struct onset_root *root;
};

static const struct matrix *captured(const struct oracle_case *c, enum asc_channel ch, int kv)
{
    const struct matrix *m = &c->captured[(channel_per_kv(ch) ? kv : 0) * ASC_CHANNELS + (int)ch];
    return m->data ? m : NULL;
}

/* A captured element; NaN with *known 0 where there is none. Lanes of l are added up. */
static double value_at(const struct oracle_case *c, enum asc_channel ch, int kv, int row, int col, int *known)
{
    const struct matrix *m = captured(c, ch, kv);
    const size_t i = m ? (size_t)(row * m->row_stride + col) : 0;
    *known = m && row < m->rows && col < m->cols && !dtype_is_unwritten(m->dtype, m->data, i);
    if (!*known)
        return NAN;
    if (ch != asc_l)
        return values_element(m, i);
    double sum = 0;
    for (int lane = 0; lane < m->cols; lane++)
        sum += dtype_load(m->dtype, m->data, i + (size_t)lane);
    return sum;
}

static void note(struct onset_root *root, enum onset_operand o, double x)
{
    root->known |= 1u << o;
    root->operand[o] = x;
}

static bool is_known(const struct onset_root *root, enum onset_operand o)
{
    return (root->known & 1u << o) != 0;
}

static void note_at(const struct explaining *e, enum onset_operand o, enum asc_channel ch, int kv, int col)
{
    int known;
    const double x = value_at(e->c, ch, kv, e->root->row, col, &known);
    if (known)
        note(e->root, o, x);
}

/* The state before this step: what the step before left, or what it begins with. */
static void note_before(const struct explaining *e, enum onset_operand o, enum asc_channel ch, int col)
{
    const int before = e->map->steps[e->step].before;
    const int split = e->map->steps[e->step].split;
    if (before >= 0) {
        note_at(e, o, ch, e->map->steps[before].kv, col);
        return;
    }
    note(e->root, o,
         ch == asc_m   ? local_m_begin(e->c, split)
         : ch == asc_l ? local_l_begin(e->c, split) * bound_p_factor(e->c)
                       : 0);
}

/* Whether the kernel itself puts this key into the cache: its place holds nothing before that. */
static bool is_appended(const struct explaining *e)
{
    const struct oracle_case *c = e->c;
    const int key = e->root->kv * c->bc + e->root->row;
    return (e->root->channel == asc_k || e->root->channel == asc_v) && c->new_keys > 0 && key < c->kv_len &&
           key >= c->kv_len - c->new_keys;
}

/* The origin of what nobody has computed; ORIGIN_UNKNOWN: it is a value of the kernel's. */
static enum nan_origin nobodys(const struct explaining *e)
{
    const struct onset_root *root = e->root;
    const struct matrix *m = captured(e->c, root->channel, root->kv);
    const int lanes = m && root->channel == asc_l ? m->cols : 1;
    for (int lane = 0; m && lane < lanes; lane++) {
        const uint16_t pattern =
            dtype_nobodys(m->dtype, m->data, (size_t)(root->row * m->row_stride + root->col + lane));
        if (pattern)
            return pattern == UNFINISHED_16 ? ORIGIN_UNFINISHED
                   : pattern == UNUSED_16   ? (is_appended(e) ? ORIGIN_APPENDED : ORIGIN_UNUSED)
                                            : ORIGIN_UNWRITTEN;
    }
    return ORIGIN_UNKNOWN;
}

static enum dtype type_of(const struct explaining *e)
{
    const struct matrix *m = captured(e->c, e->root->channel, e->root->kv);
    return m ? m->dtype : DTYPE_F32;
}

/* Sums of products a b, by sign, and the largest of them. */
struct products {
    double sum, positive, negative;
    int unreal; /* of the products */
};

static void add_product(struct onset_root *root, int index, double a, double b, struct products *out)
{
    const double x = a * b, size = isfinite(x) ? fabs(x) : INFINITY;
    out->sum += x;
    out->positive += x > 0 ? x : 0;
    out->negative -= x < 0 ? x : 0;
    out->unreal += !isfinite(x);
    int at = root->n_products < ONSET_PRODUCTS ? root->n_products : ONSET_PRODUCTS - 1;
    if (root->n_products == ONSET_PRODUCTS) {
        const double least = fabs(root->product[at].a * root->product[at].b);
        if (!isfinite(least) || size <= least)
            return;
    } else {
        root->n_products++;
    }
    while (at > 0 && isfinite(root->product[at - 1].a * root->product[at - 1].b) &&
           fabs(root->product[at - 1].a * root->product[at - 1].b) < size) {
        root->product[at] = root->product[at - 1];
        at--;
    }
    root->product[at] = (struct onset_product){index, a, b};
}

/* Whether the sum may have been an f16 one: it is declared, or recorded as f16, or every number of its tile is one of
   f16, which of 16 that an f32 accumulator left none would be by chance (13 bits less, each). */
static bool may_be_f16(const struct explaining *e)
{
    enum { TELLING = 16 };
    const enum asc_channel ch = e->root->channel;
    const int declared = ch == asc_s ? e->c->conventions.acc_s : e->c->conventions.acc_u;
    const struct matrix *m = captured(e->c, ch, e->root->kv);
    int numbers = 0;
    if (declared == ASC_ACC_MMA_F16_F16 || declared == ASC_ACC_WGMMA_E4M3_F16 || (m && m->dtype == DTYPE_F16))
        return true;
    for (int i = 0; m && i < m->rows * m->cols; i++) {
        uint16_t half;
        const double x = values_element(m, (size_t)(i / m->cols * m->row_stride + i % m->cols));
        if (!isfinite(x) || x == 0)
            continue;
        dtype_store(DTYPE_F16, &half, 0, x);
        if (dtype_load(DTYPE_F16, &half, 0) != x)
            return false;
        numbers++;
    }
    return numbers >= TELLING;
}

/* An accumulator holds partial sums in an order of its own: none is beyond the sum of one sign. A sum of f16 that left
   its range on both sides is NaN, on one infinite. `carried` is what it began with. */
static enum nan_origin origin_of_sum(const struct explaining *e, const struct products *p, double carried)
{
    const double up = p->positive + fmax(carried, 0), down = p->negative + fmax(-carried, 0);
    const double far = fmax(up, down), near = fmin(up, down);
    const int one_sided = isinf(e->root->value);
    if ((one_sided ? far : near) >= FLT_MAX)
        return ORIGIN_F32_OVERFLOW;
    return (one_sided ? far : near) >= f16_end && may_be_f16(e) ? ORIGIN_F16_ACCUMULATOR : ORIGIN_UNKNOWN;
}

static int is_nan_code(enum dtype t, uint8_t code)
{
    const int magnitude = code & 0x7F;
    return t == DTYPE_E4M3 ? magnitude == 0x7F : t == DTYPE_E5M2 ? magnitude >= 0x7C : 0;
}

/* Scales that the launch makes: largest / 448 is 0 for a group of zeros, where the declared arithmetic has 1; and for a
   tiny largest the reciprocal is no f32. */
static enum nan_origin origin_of_own_scale(const struct matrix *in, int row, double x, double scale)
{
    int zeros = scale == 1;
    for (int d = 0; d < in->cols && zeros; d++)
        zeros = values_element(in, (size_t)(row * in->row_stride + d)) == 0;
    if (zeros)
        return ORIGIN_QUOTIENT;
    return x == 0 && 1 / scale > FLT_MAX ? ORIGIN_ZERO_TIMES_INF : ORIGIN_UNKNOWN;
}

static enum nan_origin explain_input(const struct explaining *e)
{
    struct onset_root *root = e->root;
    const struct matrix *in = codes_input(e->c, root->channel);
    const struct coding *coding = codes_of(e->c, root->channel);
    const int row = root->row + (root->channel == asc_q ? 0 : root->kv * e->c->bc);
    const size_t i = (size_t)(row * in->row_stride + root->col);
    const double x = values_element(in, i), fold = root->channel == asc_q ? values_fold(e->c) : 1;
    const double scale = codes_use(e->c, root->channel) == CODES_NONE ? 1 : codes_scale(coding, row, root->col);
    int known;
    root->value = value_at(e->c, root->channel, root->kv, root->row, root->col, &known);
    root->from_input = !known;
    if (!known)
        root->value = x * scale;
    note(root, OPERAND_INPUT, x);
    if (scale != 1)
        note(root, OPERAND_SCALE, scale);
    if (dtype_is_code(in->dtype) && is_nan_code(in->dtype, ((const uint8_t *)in->data)[i]))
        return ORIGIN_FP8_CODE;
    if (!isfinite(x))
        return ORIGIN_INPUT;
    if (!isfinite(scale))
        return x == 0 ? ORIGIN_ZERO_TIMES_INF : ORIGIN_INPUT;
    if (nobodys(e))
        return nobodys(e);
    const enum nan_origin own = coding->quantized ? origin_of_own_scale(in, row, x, scale) : ORIGIN_UNKNOWN;
    return own != ORIGIN_UNKNOWN ? own : origin_of_conversion(type_of(e), x * scale * fold);
}

double onset_factor(const struct oracle_case *c, enum asc_channel ch, int kv, int row, int d)
{
    int known;
    const double x = value_at(c, ch, kv, row, d, &known);
    if (known)
        return x;
    const int of = row + (ch == asc_q ? 0 : kv * c->bc);
    const struct matrix *in = codes_input(c, ch);
    const double value = values_element(in, (size_t)(of * in->row_stride + d));
    return codes_use(c, ch) == CODES_DESCALED ? value * codes_scale(codes_of(c, ch), of, d) : value;
}

static enum nan_origin explain_s(const struct explaining *e)
{
    const struct oracle_case *c = e->c;
    struct onset_root *root = e->root;
    const int kv = root->kv, key = kv * c->bc + root->col;
    const bool seen = schedule_shows(c, root->row, key);
    const double factor = values_factor(c->conventions.s_unit, c->scale);
    struct products p = {0};
    double by_q = 1, by_k = 1, size;
    for (int d = 0; d < c->head_dim; d++)
        add_product(root, d, onset_factor(c, asc_q, 0, root->row, d), onset_factor(c, asc_k, kv, root->col, d), &p);
    note(root, OPERAND_PRODUCT, p.sum);
    codes_by(c, asc_q, root->row, 1, &by_q);
    codes_by(c, asc_k, key, 1, &by_k);
    const double by = by_q * by_k, bias = bias_at(c, root->row, key, &size);
    if (by != 1)
        note(root, OPERAND_SCALE, by);
    if (nobodys(e))
        return nobodys(e);
    if (!isfinite(by))
        return p.sum == 0 ? ORIGIN_ZERO_TIMES_INF : ORIGIN_INPUT;
    if (isnan(bias) || bias == INFINITY)
        return ORIGIN_INPUT;
    if (!seen) /* it is -inf by the mask, times the scale if that comes later */
        return (isnan(root->value) && c->scale == 0) || (root->value == INFINITY && c->scale < 0) ? ORIGIN_INF_TIMES
                                                                                                  : ORIGIN_UNKNOWN;
    const enum nan_origin narrow = origin_of_conversion(type_of(e), p.sum * factor * by);
    if (narrow != ORIGIN_UNKNOWN)
        return narrow;
    const enum nan_origin sum = origin_of_sum(e, &p, 0);
    return sum != ORIGIN_UNKNOWN ? sum : root->value == -INFINITY ? ORIGIN_MASKED : ORIGIN_UNKNOWN;
}

static enum nan_origin explain_alpha(const struct explaining *e)
{
    const struct onset_root *root = e->root;
    note_before(e, OPERAND_M_PREV, asc_m, 0);
    note_at(e, OPERAND_M, asc_m, root->kv, 0);
    if (nobodys(e))
        return nobodys(e);
    if (!is_known(root, OPERAND_M_PREV) || !is_known(root, OPERAND_M))
        return ORIGIN_UNKNOWN;
    const double before = root->operand[OPERAND_M_PREV], m = root->operand[OPERAND_M];
    if (before == -INFINITY && m == -INFINITY)
        return ORIGIN_INF_MINUS_INF;
    const double x = (before - m) * values_natural_m(e->c), off = x * bound_exp_declared(e->c, x, fabs(m));
    return root->value == INFINITY && exp(x + fabs(off)) >= FLT_MAX ? ORIGIN_EXP_OVERFLOW : ORIGIN_UNKNOWN;
}

/* The largest captured score of the row in this tile, in S's unit; NaN scores are dropped. */
static double top_score(const struct explaining *e, int *any)
{
    const int cols = onset_cols(e->map, asc_s, e->root->kv);
    double top = -INFINITY;
    *any = 0;
    for (int col = 0; col < cols; col++) {
        int known;
        const double s = value_at(e->c, asc_s, e->root->kv, e->root->row, col, &known);
        *any |= known;
        top = s > top ? s : top;
    }
    return top;
}

static enum nan_origin explain_p(const struct explaining *e)
{
    const struct oracle_case *c = e->c;
    struct onset_root *root = e->root;
    const bool seen = schedule_shows(c, root->row, root->kv * c->bc + root->col);
    note_at(e, OPERAND_S, asc_s, root->kv, root->col);
    if (c->conventions.p_max == ASC_P_MAX_TILE) {
        int any;
        const double top = top_score(e, &any);
        if (any && !values_mask_later(c) && !values_natural_later(c))
            note(root, OPERAND_M, top * values_natural_s(c) / values_natural_m(c));
    } else {
        note_at(e, OPERAND_M, asc_m, root->kv, 0);
    }
    if (is_known(root, OPERAND_S) && values_mask_later(c) && !seen)
        note(root, OPERAND_S, -INFINITY);
    if (nobodys(e))
        return nobodys(e);
    if (!is_known(root, OPERAND_S) || !is_known(root, OPERAND_M))
        return ORIGIN_UNKNOWN;
    const double m = root->operand[OPERAND_M] * values_natural_m(c), s = root->operand[OPERAND_S];
    if (s == -INFINITY && m == -INFINITY)
        return ORIGIN_INF_MINUS_INF;
    if (values_natural_later(c))
        return ORIGIN_UNKNOWN;
    /* What a correct exponential may be off by belongs to it: at the edge either answer is right. */
    const double x = s * values_natural_s(c) - m, error = bound_exp_declared(c, x, fabs(m) + bound_offset(c));
    const double most = bound_p_factor(c) * exp(x + error);
    if (most >= FLT_MAX && root->value == INFINITY)
        return ORIGIN_EXP_OVERFLOW;
    return origin_of_conversion(type_of(e), most);
}

static enum nan_origin explain_m(const struct explaining *e)
{
    note_before(e, OPERAND_M_PREV, asc_m, 0);
    int any;
    const double top = top_score(e, &any);
    if (any)
        note(e->root, OPERAND_S, top);
    return nobodys(e);
}

/* What a sum of weights counts in l and U: 1, or exp(t - m) where P stands on its tile's maximum; NaN: not known. */
static double beta_of(const struct explaining *e)
{
    int any, known;
    if (e->c->conventions.p_max != ASC_P_MAX_TILE)
        return 1;
    const double top = top_score(e, &any), m = value_at(e->c, asc_m, e->root->kv, e->root->row, 0, &known);
    if (!any || !known || values_mask_later(e->c) || values_natural_later(e->c))
        return NAN;
    return top == -INFINITY ? 0 : exp(top * values_natural_s(e->c) - m * values_natural_m(e->c));
}

/* The weights of the row: their sum, and the largest. 0: not recorded. */
static int add_weights(const struct explaining *e, double *sum, double *largest)
{
    const int cols = onset_cols(e->map, asc_p, e->root->kv);
    int any = 0;
    *sum = *largest = 0;
    for (int col = 0; col < cols; col++) {
        int known;
        const double p = value_at(e->c, asc_p, e->root->kv, e->root->row, col, &known);
        any |= known;
        *sum += known ? p : 0;
        *largest = known ? fmax(*largest, p) : *largest;
    }
    return any;
}

static enum nan_origin explain_l(const struct explaining *e)
{
    const struct onset_root *root = e->root;
    double sum, largest;
    note_before(e, OPERAND_L_PREV, asc_l, 0);
    note_at(e, OPERAND_ALPHA, asc_alpha, root->kv, 0);
    const int weights = add_weights(e, &sum, &largest);
    if (weights)
        note(e->root, OPERAND_P, largest);
    if (nobodys(e))
        return nobodys(e);
    if (!weights || !is_known(root, OPERAND_ALPHA) || !is_known(root, OPERAND_L_PREV))
        return ORIGIN_UNKNOWN;
    const double l = root->operand[OPERAND_ALPHA] * root->operand[OPERAND_L_PREV] + beta_of(e) * sum;
    return origin_of_conversion(DTYPE_F32, l * (1 + bound_sum(e->c->bc)));
}

/* Whether V's padding holds no finite number in this column: times a weight of 0 that is NaN. */
static bool padding_is_unreal(const struct explaining *e, struct onset_product *product)
{
    const struct matrix *v = e->c->v_padding ? &e->c->v_padding[e->root->kv] : NULL;
    for (int r = 0; v && v->data && r < v->rows; r++) {
        const double x = values_element(v, (size_t)(r * v->row_stride + e->root->col));
        if (isfinite(x))
            continue;
        *product = (struct onset_product){onset_rows(e->map, asc_v, e->root->kv) + r, 0, x};
        return true;
    }
    return false;
}

static enum nan_origin explain_u(const struct explaining *e)
{
    const struct oracle_case *c = e->c;
    struct onset_root *root = e->root;
    const int keys = onset_cols(e->map, asc_p, root->kv), behind = e->map->steps[e->step].behind;
    const bool rescaled = c->conventions.u_phase == ASC_U_RESCALED;
    struct products p = {0};
    double sum, largest;
    enum dtype t = DTYPE_F32;
    note_before(e, OPERAND_U_PREV, asc_u, root->col);
    if (!rescaled || behind >= 0)
        note_at(e, OPERAND_ALPHA, asc_alpha, rescaled ? e->map->steps[behind].kv : root->kv, 0);
    const int weights = add_weights(e, &sum, &largest);
    if (weights)
        note(root, OPERAND_P, largest);
    if (padding_is_unreal(e, &root->product[0])) {
        root->n_products = 1;
        return ORIGIN_ZERO_TIMES_INF;
    }
    if (nobodys(e))
        return nobodys(e);
    if (!isfinite(codes_v_times(c, root->kv * c->bc)))
        return ORIGIN_INPUT;
    if (!weights)
        return ORIGIN_UNKNOWN;
    for (int key = 0; key < keys; key++) {
        int known;
        const double w = value_at(c, asc_p, root->kv, root->row, key, &known);
        add_product(root, key, known ? w : 0, onset_factor(c, asc_v, root->kv, key, root->col), &p);
    }
    note(root, OPERAND_PRODUCT, p.sum);
    const enum nan_origin of_p = values_p_type(c, &t) ? origin_of_conversion(t, largest) : ORIGIN_UNKNOWN;
    if (of_p != ORIGIN_UNKNOWN)
        return of_p;
    if (c->conventions.u_norm == ASC_U_NORM_TILE) {
        note_at(e, OPERAND_L, asc_l, root->kv, 0);
        if (is_known(root, OPERAND_L) && root->operand[OPERAND_L] == 0)
            return p.sum == 0 ? ORIGIN_QUOTIENT : ORIGIN_DIVISION;
        return origin_of_sum(e, &p, 0);
    }
    const double before = is_known(root, OPERAND_U_PREV) ? root->operand[OPERAND_U_PREV] : 0;
    const double carried = before * (is_known(root, OPERAND_ALPHA) && !rescaled ? root->operand[OPERAND_ALPHA] : 1);
    const enum nan_origin narrow = origin_of_conversion(type_of(e), carried + beta_of(e) * p.sum);
    return narrow != ORIGIN_UNKNOWN ? narrow : origin_of_sum(e, &p, carried);
}

/* The state that o and lse are made of: of the last step; of several splits only where all are without a key. */
static int note_end(const struct explaining *e, int *all_empty)
{
    int splits = 0, last = -1;
    *all_empty = 1;
    for (int i = 0; i < e->map->n_steps; i++) {
        int known;
        if (e->map->steps[i].behind >= 0)
            continue;
        splits++;
        last = e->map->steps[i].kv;
        const double l = value_at(e->c, asc_l, last, e->root->row, 0, &known);
        *all_empty &= known && l == 0;
    }
    if (splits == 1) {
        note_at(e, OPERAND_M, asc_m, last, 0);
        note_at(e, OPERAND_L, asc_l, last, 0);
        if (e->root->channel == asc_o)
            note_at(e, OPERAND_U, asc_u, last, e->root->col);
    } else if (splits == 0 && (e->c->kv_splits <= 1 || schedule_keys(e->c, e->root->row) == 0)) {
        /* What is merged of tiles that nobody visited is not known. */
        note(e->root, OPERAND_L, 0);
        note(e->root, OPERAND_U, 0);
    }
    return splits;
}

static enum nan_origin explain_end(const struct explaining *e)
{
    const struct oracle_case *c = e->c;
    const struct onset_root *root = e->root;
    int all_empty;
    const int splits = note_end(e, &all_empty);
    if (nobodys(e))
        return nobodys(e);
    if (splits > 1)
        return all_empty ? ORIGIN_MERGE_EMPTY : ORIGIN_UNKNOWN;
    if (!is_known(root, OPERAND_L))
        return ORIGIN_UNKNOWN;
    const double l = root->operand[OPERAND_L];
    if (root->channel == asc_lse)
        return !(l > 0) && !(root->value > 0) ? ORIGIN_LOG : ORIGIN_UNKNOWN; /* ln 0 is -inf */
    if (!is_known(root, OPERAND_U))
        return l == 0 && schedule_keys(c, root->row) == 0 ? ORIGIN_QUOTIENT : ORIGIN_UNKNOWN;
    const double u = root->operand[OPERAND_U];
    if (l == 0)
        return u == 0 ? ORIGIN_QUOTIENT : ORIGIN_DIVISION;
    if (1 / fabs(l) > FLT_MAX)
        return ORIGIN_DIVISION;
    return origin_of_conversion(type_of(e), u / l * codes_o_times(c));
}

/* Whether the weight of a key beyond the last one is what spoils the row's sums: P of it, or S where P is not recorded.
 */
static bool beyond_is_unreal(const struct explaining *e)
{
    const struct oracle_case *c = e->c;
    const struct matrix *p = c->p_padding ? &c->p_padding[e->root->kv] : NULL;
    const struct matrix *m = p && p->data ? p : c->s_padding ? &c->s_padding[e->root->kv] : NULL;
    for (int col = 0; m && m->data && e->root->row < m->rows && col < m->cols; col++) {
        const size_t at = (size_t)(e->root->row * m->row_stride + col);
        const double x = values_element(m, at);
        if (values_element_written(m, at) && !isfinite(x) && x != -INFINITY)
            return true;
    }
    return false;
}

void onset_explain(const struct onset_map *map, int step, struct onset_root *root)
{
    const struct explaining e = {map, map->c, step, root};
    int known;
    root->value = value_at(map->c, root->channel, root->kv, root->row, root->col, &known);
    switch (root->channel) {
    case asc_q:
    case asc_k:
    case asc_v:
        root->origin = explain_input(&e);
        break;
    case asc_s:
        root->origin = explain_s(&e);
        break;
    case asc_m:
        root->origin = explain_m(&e);
        break;
    case asc_alpha:
        root->origin = explain_alpha(&e);
        break;
    case asc_p:
        root->origin = explain_p(&e);
        break;
    case asc_l:
        root->origin = explain_l(&e);
        break;
    case asc_u:
        root->origin = explain_u(&e);
        break;
    default:
        root->origin = explain_end(&e);
    }
    if ((root->channel == asc_l || root->channel == asc_u) && beyond_is_unreal(&e))
        root->origin = ORIGIN_BEYOND;
}
