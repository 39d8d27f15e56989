/* Row sums, products with V, and what follows from them after the last tile. */
#include "engine/oracle/local.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/product.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <string.h>

/* A value that float64 arithmetic could not give from finite operands makes no statement. */
static inline double statement(double x)
{
    return isfinite(x) ? x : NAN;
}

/* P is rounded after it was recorded, or was not recorded at all: from exact f32 values the rounded ones follow
   exactly; from others, rounding may cost half a step more. One beyond the largest number of its type should have been
   smaller: what saturation makes of it is no rounding. */
static void round_weights(const struct stage *stage, enum dtype t, struct judge_scratch *s)
{
    const struct operand *p = &s->at.of[asc_p];
    double *rounded = s->prepared.p_rounded, *rounded_loose = s->prepared.p_rounded_loose;
    const int n = stage->rows * stage->cols;
    double unit = 0;
    double half_tiny = 0;
    bound_narrow(t, &unit, &half_tiny);
    for (int i = 0; i < n; i++) {
        const double x = p->value[i], loose = p->loose[i];
        rounded[i] = p->exact && isfinite(x) ? bound_round_unlimited(t, x) : x;
        rounded_loose[i] = p->exact ? 0 : loose + unit * (fabs(x) + loose) + half_tiny;
    }
    s->at.pv_p.value = rounded;
    s->at.pv_p.loose = p->exact ? s->room.zero : rounded_loose;
}

void local_use_weights(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *p = &s->stage[asc_p];
    struct operands *x = &s->at;
    enum dtype t;
    x->pv_p = x->l_p = x->of[asc_p];
    if (!values_p_type(c, &t))
        return;
    if (p->recorded && scratch_captured(s, c, asc_p)->dtype == t) {
        x->pv_p.loose = s->room.zero; /* what was recorded is what P.V takes */
        x->pv_p.exact = 1;
    } else {
        round_weights(p, t, s);
    }
    if (c->conventions.l_from == ASC_L_ROUNDED)
        x->l_p = x->pv_p;
}

/* Padding columns that were not masked take part in the row sum: their weights are not captured, but follow from their
   scores. Adds them to *sum and their uncertainty to *loose. */
static void add_padding(const struct oracle_case *c, const struct operands *x, int r, double *sum, double *loose)
{
    const double s_natural = values_natural_s(c), m_natural = values_natural_m(c);
    const double factor = bound_p_factor(c);
    const struct operand m = local_p_frame(c, x);
    const double top = m.value[r] * m_natural, folded = local_folded(c, top) + bound_offset(c);
    for (int col = 0; col < x->pad_cols; col++) {
        const double value = x->pad[(size_t)r * (size_t)x->pad_cols + (size_t)col] * s_natural;
        if (value == -INFINITY)
            continue;
        const double exponent = value - top, weight = factor * exp(exponent);
        *sum += weight;
        *loose += bound_exp_moved(weight, factor, exponent,
                                  m.loose[r] * fabs(m_natural) + bound_exp_declared(c, exponent, folded));
    }
    /* Where no probe shows it, padding with a value for its score may count or not. */
    const int unseen = values_unseen_padding(c, x->s_recorded, x->cols);
    if (unseen)
        *loose += unseen * factor *
                  exp((double)c->conventions.s_masked_value * s_natural - top + m.loose[r] * fabs(m_natural));
}

/* An alpha of which nothing is known is a finite number all the same: what was 0 before it stays 0. */
static double alpha_loose(const struct operand *alpha, int r)
{
    return fmin(alpha->loose[r], FLT_MAX);
}

VECTOR_UNITS static void add_weights(const double *p, const double *p_loose, int n, double *want, double *size,
                                     double *loose)
{
    *want += vector_sum(p, n);
    *size += vector_sum_sizes(p, n);
    *loose += vector_sum(p_loose, n);
}

/* l = alpha l_prev + sum p: (Bc + 6) roundings of the sum of magnitudes, and each operand's own uncertainty. With
   partial sums in lanes the same holds for what they add up to. Where P stands on this tile's maximum its sum counts
   beta = exp(t - m) times: one rounding more, and beta is uncertain too. */
void local_l(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    const struct operand *alpha = &x->of[asc_alpha];
    const int cols = x->cols, is_tile = c->conventions.p_max == ASC_P_MAX_TILE;
    for (int r = 0; r < c->in_q.rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double factor = alpha->value[r], factor_loose = alpha_loose(alpha, r), before = x->l_prev.value[r];
        double want = factor * before;
        double size = fabs(want);
        double loose = factor_loose * fabs(before) + (fabs(factor) + factor_loose) * x->l_prev.loose[r];
        double sum = 0;
        double sum_size = 0;
        double sum_loose = 0;
        double beyond = 0;
        add_weights(x->l_p.value + first, x->l_p.loose + first, cols, &sum, &sum_size, &sum_loose);
        add_padding(c, x, r, &beyond, &sum_loose);
        sum += beyond;
        sum_size += beyond;
        if (is_tile) {
            sum_loose = (x->beta.value[r] + x->beta.loose[r]) * sum_loose + x->beta.loose[r] * sum_size;
            sum *= x->beta.value[r];
            sum_size *= x->beta.value[r];
        }
        want += sum;
        size += sum_size;
        loose += sum_loose;
        out.want[r] = statement(want);
        out.bound[r] = bound_sum(c->bc + is_tile) * (size + loose) + loose + (c->bc + 2 + is_tile) * BOUND_TINY;
    }
}

struct joined_row {
    double factor, factor_loose; /* alpha, and what it is uncertain by */
    double relative, tiny;       /* error of summing */
    struct magnitude_row size;   /* sum |p v| */
};

/* alpha u_prev + p v of one row, p v being in `want`. more: what the uncertainty of p makes of it. */
VECTOR_UNITS static void join_row(int n, const struct joined_row *row, const double *before, const double *before_loose,
                                  const double *more, double *restrict want, double *restrict bound)
{
    const double factor = row->factor, factor_loose = row->factor_loose, most = fabs(factor) + factor_loose;
    const double relative = row->relative, tiny = row->tiny;
    const struct magnitude_row sizes = row->size;
    for (int i = 0; i < n; i++) {
        const double carried = factor * before[i], size = fabs(carried) + (sizes.sums[i] + sizes.lost) * sizes.grown;
        const double loose = factor_loose * fabs(before[i]) + most * before_loose[i] + more[i];
        want[i] = statement(carried + want[i]);
        bound[i] = loose + relative * (size + loose) + tiny;
    }
}

/* The sum over the lanes that hold a part of l costs an addition each. */
static double lanes_loose(const struct oracle_case *c, double l)
{
    return c->conventions.l_lanes > 1 ? bound_gamma(c->conventions.l_lanes) * fabs(l) : 0;
}

/* FlashAttention-1's ways to join one row, p v being in `want`.
   P stands on this tile's maximum: u = alpha u_prev + beta p v, one operation more in the accumulator's type.
   U is divided by l after every tile: u = (alpha l_prev u_prev + beta p v) / l, in whatever order. Each of the two
   terms gets two more factors at most, l_prev and 1 / l, whose own error is 4 u at most (bound_divide): 6 operations
   more, on the magnitudes, since what is divided may be the terms. An l uncertain by dl moves u by at most |u| dl /
   (|l| - dl). Where l is 0 no weight was anything else, and u stays 0. */
static void join_normalized_row(const struct oracle_case *c, const struct operands *x, int r,
                                const struct joined_row *row, const double *more, struct expected out)
{
    const int divides = c->conventions.u_norm == ASC_U_NORM_TILE, n = c->head_dim;
    const struct operand *l = &x->of[asc_l];
    const size_t first = (size_t)r * (size_t)n;
    const double *before = x->u_prev.value + first, *before_loose = x->u_prev.loose + first;
    const double l_prev = x->l_prev.value[r], l_prev_loose = x->l_prev.loose[r] + lanes_loose(c, l_prev);
    const double most = fabs(row->factor) + row->factor_loose, beta = x->beta.value[r], beta_loose = x->beta.loose[r];
    const double factor = divides ? row->factor * l_prev : row->factor;
    const double factor_loose = divides ? row->factor_loose * fabs(l_prev) + most * l_prev_loose : row->factor_loose;
    const double divisor = divides ? l->value[r] : 1, off = divides ? l->loose[r] + lanes_loose(c, divisor) : 0;
    const double least = fabs(divisor) - off;
    const double steps = (c->conventions.p_max == ASC_P_MAX_TILE) + 6 * divides;
    const double relative = row->relative + steps * product_rounding(c->conventions.acc_u) * BOUND_SLACK;
    double *want = out.want + first, *bound = out.bound + first;
    for (int i = 0; i < n; i++) {
        const double carried = factor * before[i], raw = (row->size.sums[i] + row->size.lost) * row->size.grown;
        const double size = fabs(carried) + beta * raw, sum = carried + beta * want[i];
        const double loose = factor_loose * fabs(before[i]) + (fabs(factor) + factor_loose) * before_loose[i] +
                             (beta + beta_loose) * more[i] + beta_loose * raw;
        if (divisor == 0) {
            want[i] = sum == 0 ? 0 : NAN;
            bound[i] = 0;
            continue;
        }
        want[i] = statement(sum / divisor);
        bound[i] = least > 0
                       ? (loose + relative * (size + loose) + row->tiny + fabs(want[i]) * off) / least + BOUND_TINY
                       : INFINITY;
    }
}

/* u = alpha u_prev + p v; a u that is recorded after its rescaling holds alpha u_prev already. */
void local_u(const struct oracle_case *c, const struct operands *x, const struct room *room, struct expected out)
{
    const struct operand *alpha = &x->of[asc_alpha];
    const int rows = c->in_q.rows, cols = x->cols, head_dim = c->head_dim;
    const int rescaled = c->conventions.u_phase == ASC_U_RESCALED, accumulator = c->conventions.acc_u;
    const double times = x->times_v;
    int exact = x->pv_p.exact;
    const struct magnitude_sums sizes = {room->weighed, room->weighed_unit};
    const double *size_p = product_sizes(accumulator, x->pv_p.value, rows * cols, room->p);
    const double *size_v = product_sizes(accumulator, x->size[asc_v], cols * head_dim, room->k);
    double *want = out.want, *bound = out.bound;
    matrix_multiply(rows, head_dim, cols, times, x->pv_p.value, cols, x->of[asc_v].value, head_dim, want, 0);
    magnitude_sum(room, rows, head_dim, cols, size_p, size_v, &sizes);
    if (!x->pv_p.exact)
        magnitude_multiply(room, rows, head_dim, cols, times, x->pv_p.loose, x->size[asc_v], room->sum, 0);
    if (x->unseen[asc_v]) {
        /* V is converted where no probe sees it. */
        for (int i = 0; i < cols * head_dim; i++)
            room->k[i] = fabs(x->size[asc_v][i]) - fabs(x->input_v[i]);
        magnitude_multiply(room, rows, head_dim, cols, times * BOUND_SLACK, x->pv_p.value, room->k, room->sum, !exact);
        exact = 0;
    }
    for (int r = 0; r < rows; r++) {
        const size_t first = (size_t)r * (size_t)head_dim;
        struct joined_row row = {.factor = rescaled ? 1 : alpha->value[r],
                                 .factor_loose = rescaled ? 0 : alpha_loose(alpha, r),
                                 .relative = product_accumulate(c),
                                 .tiny = product_tiny(accumulator, c->bc + 2) * fmax(1, times),
                                 .size = magnitude_row(&sizes, r, head_dim, cols)};
        row.size.grown *= times;
        if (c->conventions.p_max == ASC_P_MAX_TILE || c->conventions.u_norm == ASC_U_NORM_TILE) {
            join_normalized_row(c, x, r, &row, exact ? room->zero : room->sum + first, out);
            continue;
        }
        join_row(head_dim, &row, x->u_prev.value + first, x->u_prev.loose + first,
                 exact ? room->zero : room->sum + first, want + first, bound + first);
    }
}

void local_keep_u(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *u = &s->stage[asc_u];
    const size_t bytes = (size_t)c->in_q.rows * (size_t)c->head_dim * sizeof(double);
    s->late.rows = u->rows;
    s->late.cols = u->cols;
    s->late.recorded = u->recorded;
    s->late_kv = s->at.kv;
    s->late_masked = s->masked;
    memcpy(s->late.got, u->got, bytes);
    for (int side = 0; side < SIDES; side++) {
        memcpy(s->late.want[side], u->want[side], bytes);
        memcpy(s->late.bound[side], u->bound[side], bytes);
    }
}

void local_rescale(const struct oracle_case *c, const double *alpha, const double *alpha_loose, double *want,
                   double *bound)
{
    for (int i = 0; i < c->in_q.rows * c->head_dim; i++) {
        const double factor = alpha[i / c->head_dim], loose = fmin(alpha_loose[i / c->head_dim], FLT_MAX);
        bound[i] = (fabs(factor) + loose) * bound[i] + loose * fabs(want[i]);
        want[i] = statement(want[i] * factor);
        bound[i] += BOUND_U * (fabs(want[i]) + bound[i]) * BOUND_SLACK + BOUND_TINY;
    }
}

void local_rescale_u(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct operand *alpha = &s->at.of[asc_alpha];
    const size_t bytes = (size_t)c->in_q.rows * (size_t)c->head_dim * sizeof(double);
    if (s->late_kv < 0)
        return;
    local_rescale(c, alpha->value, alpha->loose, s->late.want[LOCAL], s->late.bound[LOCAL]);
    if (s->late.recorded)
        return;
    memcpy(s->carried.u, s->late.want[LOCAL], bytes);
    memcpy(s->carried.u_loose, s->late.bound[LOCAL], bytes);
}

static double final_l_loose(const struct oracle_case *c, const struct operands *x, int r)
{
    return x->l_prev.loose[r] + lanes_loose(c, x->l_prev.value[r]);
}

/* o = u / l, zero in a row without any key. With operands uncertain by du and dl the quotient moves by at most
   (du + |o| dl) / (|l| - dl). Where U is that of V's codes, o gets their scale: bound_descale. Of a U that has been
   divided already, and is not merged with anything, o is the value. */
void local_o(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    const int cols = c->head_dim;
    const double times = codes_o_times(c);
    for (int r = 0; r < c->in_q.rows; r++) {
        const double l = x->l_prev.value[r], l_loose = final_l_loose(c, x, r), least = fabs(l) - l_loose;
        const int empty = schedule_keys(c, r) == 0 && l == 0;
        for (int d = 0; d < cols; d++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)d;
            if (merge_leaves_normalized(c)) {
                const double u = statement(x->u_prev.value[i]);
                out.want[i] = u * times;
                out.bound[i] = bound_descale(c, u, x->u_prev.loose[i], times);
                continue;
            }
            const double want = empty ? 0 : l != 0 ? statement(x->u_prev.value[i] / l) : NAN;
            const double moved = least > 0 ? (x->u_prev.loose[i] + fabs(want) * l_loose) / least : INFINITY;
            out.want[i] = want * times;
            out.bound[i] = empty ? 0 : bound_descale(c, want, bound_divide(want) + moved, times);
        }
    }
}

double local_lse_of_sink(const struct oracle_case *c, int r, double *bound)
{
    const struct matrix *m = values_captured(c, 0, asc_lse);
    const double declared = c->conventions.empty_lse_negative ? -INFINITY : INFINITY;
    *bound = 0;
    if (m->data && dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride)) == declared)
        return declared;
    *bound = bound_lse(fabs(c->sink), 0, c->sink) + bound_convert(c->sink);
    return c->sink;
}

/* lse = m + ln l - k ln 2, 2^k being P's factor; l uncertain by dl moves ln l by at most -ln(1 - dl / l). */
void local_lse(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    const double natural = values_natural_m(c), offset = bound_ln_factor(c);
    const double unit = c->conventions.lse_base2 ? M_LOG2E : 1;
    for (int r = 0; r < c->in_q.rows; r++) {
        const double l = x->l_prev.value[r], m = x->m_prev.value[r] * natural, moved = final_l_loose(c, x, r) / l;
        double want = NAN;
        double bound = 0;
        if (schedule_keys(c, r) == 0 && c->has_sink && l <= bound_p_factor(c)) {
            want = local_lse_of_sink(c, r, &bound);
        } else if (schedule_keys(c, r) == 0 && l == 0) {
            want = c->conventions.empty_lse_negative ? -INFINITY : INFINITY;
        } else if (l > 0) {
            const double ln_l = log(l);
            want = statement(m + ln_l - offset);
            bound = bound_lse(fabs(m) + fabs(offset), ln_l, want) + bound_folded_scales(c, m) +
                    x->m_prev.loose[r] * fabs(natural);
            bound += moved < 1 ? -log1p(-moved) : INFINITY;
        }
        out.want[r] = want * unit;
        out.bound[r] = bound * unit;
        if (c->conventions.lse_base2 && isfinite(want))
            out.bound[r] += bound_convert(want * unit);
    }
}
