#include "engine/oracle/likely.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/product.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include <string.h>

bool likely_wanted(const struct oracle_case *c)
{
    return c->kv_len >= LIKELY_KEYS;
}

struct product_share likely_share(const struct oracle_case *c)
{
    const int around = 2 + (c->conventions.p_max == ASC_P_MAX_TILE) + 6 * (c->conventions.u_norm == ASC_U_NORM_TILE) +
                       (c->conventions.v_descale == ASC_V_PRODUCT);
    const double rounding = product_rounding(c->conventions.acc_u);
    struct product_share share = product_share(c, c->conventions.acc_u, c->bc);
    share.variance += around * rounding * rounding;
    return share;
}

void likely_begin(const struct oracle_case *c, struct judge_scratch *s)
{
    struct likely *x = &s->likely;
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim_v;
    x->on = likely_wanted(c);
    x->merged = false;
    if (!x->on)
        return;
    x->share = likely_share(c);
    memset(x->l, 0, rows * sizeof *x->l);
    memset(x->l_variance, 0, rows * sizeof *x->l_variance);
    memset(x->squares, 0, rows * sizeof *x->squares);
    memset(x->bins, 0, rows * LIKELY_BINS * sizeof *x->bins);
    memset(x->u, 0, values * sizeof *x->u);
    memset(x->u_variance, 0, values * sizeof *x->u_variance);
    memset(x->u_cut, 0, values * sizeof *x->u_cut);
}

/* Whether nothing but its product makes a score err, and no rounding that many scores share. */
static bool scores_are_products(const struct oracle_case *c, const struct judge_scratch *s)
{
    return !(c->softcap > 0) && !bias_terms(c) && !c->score_mod && !s->input[asc_q].lossy && !s->input[asc_k].lossy;
}

static void deal_weights(const struct oracle_case *c, struct judge_scratch *s, int r, double decay)
{
    struct likely *x = &s->likely;
    double *bins = x->bins + (size_t)r * LIKELY_BINS;
    const double *weight = s->reference.weight + (size_t)r * (size_t)s->at.cols;
    const double per_unit = s->reference.p_unit[r] > 0 ? 1 / s->reference.p_unit[r] : 0;
    enum dtype t = DTYPE_F16;
    double unit = 0;
    double half_tiny = 0;
    if (!values_p_type(c, &t) || !bound_narrow(t, &unit, &half_tiny))
        bound_narrow(DTYPE_F16, &unit, &half_tiny);
    const int bits = -1 - ilogb(unit), least = ilogb(half_tiny) + 1 + bits;
    if (decay != 1) {
        for (int i = 0; i < LIKELY_BINS; i++)
            bins[i] *= decay;
        x->squares[r] *= decay * decay;
    }
    for (int i = 0; i < s->at.cols; i++) {
        const double w = weight[i], p = w * per_unit;
        if (!(w > 0) || !isfinite(p))
            continue;
        bins[likely_bin(p, bits, least)] += w;
        x->squares[r] += w * w;
    }
}

void likely_weights(const struct oracle_case *c, struct judge_scratch *s, int r, const struct likely_row *row)
{
    struct likely *x = &s->likely;
    const size_t first = (size_t)r * (size_t)s->at.cols;
    const double *weight = s->reference.weight + first, *error = s->reference.weight_error + first;
    const double p_unit = s->reference.p_unit[r];
    double *fixed = x->weight + first, *variance = x->weight_variance + first;
    enum dtype t;
    double unit = 0;
    double half_tiny = 0;
    double less = 0;
    double squares = 0;
    double l_more = 0;
    if (!x->on)
        return;
    if (values_p_type(c, &t))
        bound_narrow(t, &unit, &half_tiny);
    const struct likely_terms terms = {.natural = fabs(s->reference.s_natural),
                                       .random = scores_are_products(c, s) ? LIKELY_RANDOM : 0,
                                       .unit = unit,
                                       .half_tiny = half_tiny * p_unit,
                                       .l_unit = row->unit,
                                       .l_half_tiny = row->half_tiny * p_unit};
    for (int i = 0; i < s->at.cols; i++) {
        const struct likely_weight one =
            likely_weight(&terms, weight[i], error[i], s->reference.s_bound[first + (size_t)i]);
        fixed[i] = one.fixed;
        variance[i] = one.variance;
        less += one.less;
        squares += one.squares;
        l_more += one.l_more;
    }
    deal_weights(c, s, r, row->decay);
    x->decay[r] = row->decay;
    x->l[r] = row->decay * x->l[r] + row->moved - less + l_more;
    x->l_variance[r] = row->decay * row->decay * x->l_variance[r] + squares +
                       row->roundings * BOUND_U * BOUND_U * row->reach * row->reach;
}

/* As dropout_apply() has made of the weights. */
static void drop(const struct oracle_case *c, struct judge_scratch *s)
{
    struct likely *x = &s->likely;
    const double times = dropout_of_weights(c);
    for (int i = 0; i < c->in_q.rows * s->at.cols; i++) {
        const double w = s->reference.weight[i], by = w > 0 || s->reference.weight_error[i] > 0 ? times : 0;
        x->weight[i] = by * x->weight[i] + (times != 1 ? DROPOUT_ROUNDINGS * BOUND_U * w : 0);
        x->weight_variance[i] *= by * by;
    }
}

void likely_products(const struct oracle_case *c, struct judge_scratch *s)
{
    struct likely *x = &s->likely;
    const int rows = c->in_q.rows, cols = s->at.cols, dim = c->head_dim_v;
    const double *size_v = s->input[asc_v].size;
    if (!x->on)
        return;
    if (s->at.keep)
        drop(c, s);
    magnitude_sum(&s->room, rows, dim, cols, x->weight, size_v, &(struct magnitude_sums){x->fixed_sums, x->fixed_unit});
    for (int i = 0; i < cols * dim; i++)
        s->room.k[i] = size_v[i] * size_v[i];
    magnitude_sum(&s->room, rows, dim, cols, x->weight_variance, s->room.k,
                  &(struct magnitude_sums){x->variance_sums, x->variance_unit});
}

VECTOR_UNITS static void sum_values(int n, double decay, const struct product_share *share,
                                    const struct magnitude_row *size, const struct magnitude_row *fixed,
                                    const struct magnitude_row *variances, const double *restrict product,
                                    const double *restrict moved, const double *restrict reach, double *restrict u,
                                    double *restrict variance, double *restrict cut)
{
    for (int i = 0; i < n; i++) {
        struct likely_value x = {u[i], variance[i], cut[i]};
        likely_value(decay, share, product[i], (size->sums[i] + size->lost) * size->grown, moved[i], reach[i],
                     (fixed->sums[i] + fixed->lost) * fixed->grown,
                     (variances->sums[i] + variances->lost) * variances->grown, &x);
        u[i] = x.u;
        variance[i] = x.variance;
        cut[i] = x.cut;
    }
}

void likely_values(const struct oracle_case *c, struct judge_scratch *s, int r, const struct magnitude_row *size)
{
    struct likely *x = &s->likely;
    const struct reference *of = &s->reference;
    const int dim = c->head_dim_v, cols = s->at.cols;
    const size_t first = (size_t)r * (size_t)dim;
    const double times = s->at.times_v;
    if (!x->on)
        return;
    struct magnitude_row fixed = magnitude_row(&(struct magnitude_sums){x->fixed_sums, x->fixed_unit}, r, dim, cols);
    struct magnitude_row variance =
        magnitude_row(&(struct magnitude_sums){x->variance_sums, x->variance_unit}, r, dim, cols);
    fixed.grown *= times;
    variance.grown *= times * times;
    sum_values(dim, x->decay[r], &x->share, size, &fixed, &variance, of->product, of->moved, of->reach, x->u + first,
               x->u_variance + first, x->u_cut + first);
}

void likely_turn(const struct oracle_case *c, struct judge_scratch *s, int r, const struct likely_turned *by)
{
    struct likely *x = &s->likely;
    const double sum = s->reference.sum[r], l = by->tiles * by->roundings * BOUND_U * BOUND_U;
    const double fixed = by->tiles * x->share.systematic + by->alpha, either = by->tiles * x->share.variance;
    if (!x->on)
        return;
    x->l[r] = error_turned(x->l[r], by->alpha, sum);
    x->l_variance[r] += l * sum * sum;
    for (int d = 0; d < c->head_dim_v; d++) {
        const size_t i = (size_t)r * (size_t)c->head_dim_v + (size_t)d;
        const double u = fabs(s->reference.out[i]) + s->reference.out_error[i];
        x->u[i] = error_turned(x->u[i], fixed, u);
        x->u_variance[i] += either * u * u;
    }
}

void likely_merged(const struct oracle_case *c, struct judge_scratch *s, const double *l, const double *u)
{
    struct likely *x = &s->likely;
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim_v;
    memcpy(x->l, l, rows * sizeof *l);
    memcpy(x->u, u, values * sizeof *u);
    memset(x->l_variance, 0, rows * sizeof *x->l_variance);
    memset(x->u_variance, 0, values * sizeof *x->u_variance);
    x->merged = true;
}

void likely_sink(const struct oracle_case *c, struct judge_scratch *s, int r, double kept, double more)
{
    struct likely *x = &s->likely;
    if (!x->on)
        return;
    x->l[r] = kept * x->l[r] + more;
    x->l_variance[r] *= kept * kept;
    for (int d = 0; d < c->head_dim_v; d++) {
        const size_t i = (size_t)r * (size_t)c->head_dim_v + (size_t)d;
        x->u[i] *= kept;
        x->u_variance[i] *= kept * kept;
        x->u_cut[i] *= kept;
    }
}

static double together(const struct judge_scratch *s, int r)
{
    return likely_together(s->likely.bins + (size_t)r * LIKELY_BINS, s->likely.squares[r]);
}

void noise_finish(const struct noise_row *rows, int n, int cols, bool known, int keys, struct output_noise *noise)
{
    struct noise_row sum = {0};
    double squares = 0;
    double expected = 0;
    *noise = (struct output_noise){.known = known, .keys = keys};
    if (!known)
        return;
    for (int r = 0; r < n; r++) {
        sum.by_want += rows[r].by_want;
        sum.by_rounded += rows[r].by_rounded;
        sum.squares += rows[r].squares;
        sum.spread += rows[r].spread;
        sum.cut += rows[r].cut;
        sum.of_l += rows[r].of_l;
        sum.shared += rows[r].shared;
    }
    const double by = fabs(sum.by_rounded) < fabs(sum.by_want) ? sum.by_rounded : sum.by_want;
    noise->slope = sum.squares > 0 ? by / sum.squares : 0;
    for (int r = 0; r < n; r++) {
        /* The square of (error - slope want), summed. */
        const double slope = noise->slope,
                     left = rows[r].errors - 2 * slope * rows[r].by_want + slope * slope * rows[r].squares;
        squares += left;
        expected += rows[r].expected;
        noise->row = rows[r].expected > 0 ? fmax(noise->row, sqrt(fmax(left, 0) / rows[r].expected)) : noise->row;
    }
    noise->ratio = expected > 0 ? sqrt(fmax(squares, 0) / expected) : 0;
    const double margin =
        sum.squares > 0 ? 6 * (sqrt(sum.spread) / sum.squares + sqrt(sum.of_l) / n + sqrt(sum.shared / n)) : 0;
    noise->high = margin + NOISE_COMMON;
    noise->low = -noise->high - (sum.squares > 0 ? 2 * sum.cut / sum.squares : 0);
    noise->limit = 2 + 6 / sqrt(cols);
}

static struct noise_row noise_of_row(const struct oracle_case *c, const struct judge_scratch *s, int r)
{
    const struct stage *o = &s->stage[asc_o];
    const struct likely *x = &s->likely;
    const double sum = s->reference.sum[r], times = codes_o_times(c), equal = together(s, r);
    struct noise_row row = {0};
    double unit = 0;
    double half_tiny = 0;
    double p_unit = 0;
    double p_half_tiny = 0;
    enum dtype t;
    if (!(sum > 0))
        return row;
    if (values_p_type(c, &t))
        bound_narrow(t, &p_unit, &p_half_tiny);
    bound_narrow((enum dtype)c->o_dtype, &unit, &half_tiny);
    for (int d = 0; d < o->cols; d++) {
        const size_t i = (size_t)r * (size_t)o->cols + (size_t)d;
        const double want = o->want[GLOBAL][i];
        const struct likely_value value = {x->u[i], x->u_variance[i], x->u_cut[i]};
        noise_add(&row, o->got[i], want, bound_round((enum dtype)c->o_dtype, want),
                  likely_variance(equal, &value, sum, want, times, unit, half_tiny), value.cut / sum * fabs(times));
    }
    row.of_l = x->l_variance[r] / (sum * sum);
    row.shared = VARIANCE_OF_RANGE * equal * p_unit * p_unit * x->squares[r] / (sum * sum);
    return row;
}

/* What errs beside roundings has no size that is expected of it: inputs that the launch converts, scores that go
   through other functions. */
static bool noise_known(const struct oracle_case *c, const struct judge_scratch *s)
{
    return s->likely.on && !s->likely.merged && scores_are_products(c, s) && !s->input[asc_v].lossy &&
           c->conventions.quantized == ASC_QUANTIZED_GIVEN;
}

void likely_noise(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *o = &s->stage[asc_o];
    const bool known = noise_known(c, s);
    for (int r = 0; known && r < o->rows; r++)
        s->likely.rows[r] = noise_of_row(c, s, r);
    noise_finish(s->likely.rows, o->rows, o->cols, known, schedule_keys(c, o->rows - 1), &s->likely.noise);
}

double likely_of_u(const struct judge_scratch *s, int r, size_t i)
{
    return likely_most(together(s, r), s->likely.u[i], s->likely.u_variance[i]);
}

double likely_of_l(const struct judge_scratch *s, int r)
{
    return likely_most(together(s, r), s->likely.l[r], s->likely.l_variance[r]);
}
