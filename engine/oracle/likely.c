#include "engine/oracle/likely.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/dropout.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/product.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <string.h>

#define RANDOM_OF_SCORE 0.4
#define FEW_STEPS 8

bool likely_wanted(const struct oracle_case *c)
{
    return c->kv_len >= LIKELY_KEYS;
}

void likely_begin(const struct oracle_case *c, struct judge_scratch *s)
{
    struct likely *x = &s->likely;
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim_v;
    x->on = likely_wanted(c);
    x->merged = false;
    if (!x->on)
        return;
    const int around = 2 + (c->conventions.p_max == ASC_P_MAX_TILE) + 6 * (c->conventions.u_norm == ASC_U_NORM_TILE) +
                       (c->conventions.v_descale == ASC_V_PRODUCT);
    const double rounding = product_rounding(c->conventions.acc_u);
    x->share = product_share(c, c->conventions.acc_u, c->bc);
    x->share.variance += around * rounding * rounding;
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

/* Where between two numbers of its type p lies. */
static int bin_of(double p, int bits, int least)
{
    const int exponent = (int)(format_f64_bits(p) >> 52) - 1023, step = (exponent > least ? exponent : least) - bits;
    const double steps = p * format_f64_of((uint64_t)(1023 - step) << 52);
    return (int)((steps - floor(steps)) * LIKELY_BINS);
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
        bins[bin_of(p, bits, least)] += w;
        x->squares[r] += w * w;
    }
}

void likely_weights(const struct oracle_case *c, struct judge_scratch *s, int r, const struct likely_row *row)
{
    struct likely *x = &s->likely;
    const size_t first = (size_t)r * (size_t)s->at.cols;
    const double *weight = s->reference.weight + first, *error = s->reference.weight_error + first;
    const double natural = fabs(s->reference.s_natural), p_unit = s->reference.p_unit[r];
    const double random = scores_are_products(c, s) ? RANDOM_OF_SCORE : 0;
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
    for (int i = 0; i < s->at.cols; i++) {
        const double w = weight[i], loose = s->reference.s_bound[first + (size_t)i] * natural;
        const double either = w > 0 && loose < 0x1p-6 ? fmin(random * w * loose, error[i]) : 0;
        const double size = w + error[i], step = half_tiny * p_unit, l_step = row->half_tiny * p_unit;
        const double rounded = size > 0 ? unit * size + step : 0, l_rounded = size > 0 ? row->unit * size + l_step : 0;
        const bool few = size < FEW_STEPS * step, l_few = size < FEW_STEPS * l_step;
        fixed[i] = error[i] - either + 4 * unit * unit * size + (few ? rounded : 0);
        variance[i] = either * either + (few ? 0 : rounded * rounded);
        less += either;
        squares += either * either + (l_few ? 0 : l_rounded * l_rounded);
        l_more += 4 * row->unit * row->unit * size + (l_few ? l_rounded : 0);
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
                                    const struct magnitude_row *fixed, const struct magnitude_row *variances,
                                    const double *restrict moved, const double *restrict reach,
                                    const double *restrict along, double *restrict u, double *restrict variance,
                                    double *restrict cut)
{
    for (int i = 0; i < n; i++) {
        u[i] = decay * u[i] + moved[i] + share->systematic * reach[i] + (fixed->sums[i] + fixed->lost) * fixed->grown;
        variance[i] = decay * decay * variance[i] + (variances->sums[i] + variances->lost) * variances->grown +
                      share->variance * reach[i] * reach[i];
        cut[i] = decay * cut[i] + (share->cut + share->terms * along[i]) * reach[i];
    }
}

void likely_values(const struct oracle_case *c, struct judge_scratch *s, int r)
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
    sum_values(dim, x->decay[r], &x->share, &fixed, &variance, of->moved, of->reach, of->along, x->u + first,
               x->u_variance + first, x->u_cut + first);
}

void likely_turn(const struct oracle_case *c, struct judge_scratch *s, int r, const struct likely_turned *by)
{
    struct likely *x = &s->likely;
    const double sum = s->reference.sum[r], l = by->tiles * by->roundings * BOUND_U * BOUND_U;
    const double fixed = by->tiles * x->share.systematic + by->alpha, either = by->tiles * x->share.variance;
    if (!x->on)
        return;
    x->l[r] = (x->l[r] + by->alpha * sum) * (1 + by->alpha);
    x->l_variance[r] += l * sum * sum;
    for (int d = 0; d < c->head_dim_v; d++) {
        const size_t i = (size_t)r * (size_t)c->head_dim_v + (size_t)d;
        const double u = fabs(s->reference.out[i]) + s->reference.out_error[i];
        x->u[i] = (x->u[i] + fixed * u) * (1 + fixed);
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

/* By how much equal weights make the variance larger. */
static double together(const struct judge_scratch *s, int r)
{
    const double *bins = s->likely.bins + (size_t)r * LIKELY_BINS;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < LIKELY_BINS; i++) {
        sum += bins[i];
        squares += bins[i] * bins[i];
    }
    const double apart = s->likely.squares[r] * (1 - 1.0 / LIKELY_BINS);
    return apart > 0 ? fmax(1, (squares - sum * sum / LIKELY_BINS) / apart) : INFINITY;
}

/* Of the range of a rounding what it errs by on average: evenly spread over its step, a third, and steps are powers of
   two below the weight, 0.54 of its square. */
#define VARIANCE_OF_RANGE (0.54 / 3)

/* The variance that is expected of one element's roundings. */
static double expected_variance(const struct oracle_case *c, const struct judge_scratch *s, int r, size_t i)
{
    const struct likely *x = &s->likely;
    const double sum = s->reference.sum[r], times = codes_o_times(c), want = s->stage[asc_o].want[GLOBAL][i];
    const double of_weights = VARIANCE_OF_RANGE * together(s, r) * x->u_variance[i], cut = x->u_cut[i] / 4;
    double unit = 0;
    double half_tiny = 0;
    bound_narrow((enum dtype)c->o_dtype, &unit, &half_tiny);
    const double step = unit * fabs(want) + half_tiny + BOUND_U * fabs(want);
    return (of_weights + cut * cut) / (sum * sum) * times * times + VARIANCE_OF_RANGE * step * step;
}

/* What O errs by in proportion to itself, and what is expected of that. Where elements of O are equal, so are the
   errors of their last rounding: so they are set against the reference and against the rounded one, and the less
   counts. */
struct proportion {
    double by_want, by_rounded, squares, spread, cut;
};

static struct proportion proportion(const struct oracle_case *c, const struct judge_scratch *s)
{
    const struct stage *o = &s->stage[asc_o];
    struct proportion p = {0};
    for (int i = 0; i < o->rows * o->cols; i++) {
        const int r = i / o->cols;
        const double want = o->want[GLOBAL][i], sum = s->reference.sum[r];
        if (!(sum > 0) || !isfinite(want) || !isfinite(o->got[i]))
            continue;
        p.by_want += (o->got[i] - want) * want;
        p.by_rounded += (o->got[i] - bound_round((enum dtype)c->o_dtype, want)) * want;
        p.squares += want * want;
        p.spread += want * want * expected_variance(c, s, r, (size_t)i);
        p.cut += fabs(want) * s->likely.u_cut[i] / sum * fabs(codes_o_times(c));
    }
    return p;
}

void likely_noise(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *o = &s->stage[asc_o];
    struct output_noise *noise = &s->likely.noise;
    double squares = 0;
    double expected = 0;
    double of_l = 0;
    double shared = 0; /* of the weights' sum, which all elements of a row err by where V has one sign */
    double unit = 0;
    double half_tiny = 0;
    enum dtype t;
    if (values_p_type(c, &t))
        bound_narrow(t, &unit, &half_tiny);
    /* What errs beside roundings has no size that is expected of it: inputs that the launch converts, scores that go
       through other functions. */
    const bool known = s->likely.on && !s->likely.merged && scores_are_products(c, s) && !s->input[asc_v].lossy &&
                       c->conventions.quantized == ASC_QUANTIZED_GIVEN;
    *noise = (struct output_noise){.known = known, .keys = schedule_keys(c, o->rows - 1)};
    if (!noise->known)
        return;
    const struct proportion p = proportion(c, s);
    const double by = fabs(p.by_rounded) < fabs(p.by_want) ? p.by_rounded : p.by_want;
    noise->slope = p.squares > 0 ? by / p.squares : 0;
    for (int r = 0; r < o->rows; r++) {
        const double sum = s->reference.sum[r];
        double row = 0;
        double of_row = 0;
        for (int d = 0; d < o->cols && sum > 0; d++) {
            const size_t i = (size_t)r * (size_t)o->cols + (size_t)d;
            const double want = o->want[GLOBAL][i], off = o->got[i] - want - noise->slope * want;
            if (!isfinite(off))
                continue;
            row += off * off;
            of_row += expected_variance(c, s, r, i);
        }
        squares += row;
        expected += of_row;
        of_l += sum > 0 ? s->likely.l_variance[r] / (sum * sum) : 0;
        shared += sum > 0 ? VARIANCE_OF_RANGE * together(s, r) * unit * unit * s->likely.squares[r] / (sum * sum) : 0;
        noise->row = of_row > 0 ? fmax(noise->row, sqrt(row / of_row)) : noise->row;
    }
    noise->ratio = expected > 0 ? sqrt(squares / expected) : 0;
    const double margin =
        p.squares > 0 ? 6 * (sqrt(p.spread) / p.squares + sqrt(of_l) / o->rows + sqrt(shared / o->rows)) : 0;
    noise->high = margin + NOISE_COMMON;
    noise->low = -noise->high - (p.squares > 0 ? 2 * p.cut / p.squares : 0);
    noise->limit = 2 + 6 / sqrt(o->cols);
}

static double likely_most(const struct judge_scratch *s, int r, double systematic, double variance)
{
    const double either = variance > 0 ? LIKELY_LAMBDA * sqrt(together(s, r) * variance) : 0;
    return (systematic + either) * BOUND_SLACK;
}

double likely_of_u(const struct judge_scratch *s, int r, size_t i)
{
    return likely_most(s, r, s->likely.u[i], s->likely.u_variance[i]);
}

double likely_of_l(const struct judge_scratch *s, int r)
{
    return likely_most(s, r, s->likely.l[r], s->likely.l_variance[r]);
}
