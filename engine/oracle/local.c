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
#include "engine/oracle/weight.h"
#include <float.h>
#include <string.h>

double local_m_start(const struct oracle_case *c)
{
    return c->conventions.m_empty == ASC_EMPTY_FINITE ? (double)c->conventions.m_start : -INFINITY;
}

bool local_begins_at_sink(const struct oracle_case *c, int split)
{
    const int l_sink = c->conventions.l_sink;
    return c->has_sink && split == 0 && (l_sink == ASC_SINK_START || l_sink == ASC_SINK_M_START);
}

double local_m_begin(const struct oracle_case *c, int split)
{
    return local_begins_at_sink(c, split) ? c->sink / values_natural_m(c) : local_m_start(c);
}

double local_m_begin_loose(const struct oracle_case *c, int split)
{
    const bool converts = local_begins_at_sink(c, split) && c->conventions.m_unit != ASC_UNIT_SCALED;
    return converts ? bound_convert(local_m_begin(c, split)) + bound_folded_scales(c, local_m_begin(c, split)) : 0;
}

double local_l_begin(const struct oracle_case *c, int split)
{
    return local_begins_at_sink(c, split) && c->conventions.l_sink == ASC_SINK_START;
}

void local_begin(const struct oracle_case *c, struct judge_scratch *s, int split)
{
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim_v;
    struct carried *to = &s->carried;
    s->at.split = split;
    s->at.tiles_seen = 0;
    s->late_kv = -1;
    for (size_t r = 0; r < rows; r++) {
        to->m[r] = local_m_begin(c, split);
        to->m_loose[r] = local_m_begin_loose(c, split);
        to->l[r] = local_l_begin(c, split) * bound_p_factor(c);
    }
    memset(to->l_loose, 0, rows * sizeof(double));
    memset(to->u, 0, values * sizeof(double));
    memset(to->u_loose, 0, values * sizeof(double));
    to->u_exact = true;
}

/* A value that float64 arithmetic could not give from finite operands makes no statement. */
static double statement(double x)
{
    return isfinite(x) ? x : NAN;
}

double local_policy(const struct oracle_case *c, double top, const double *got, double *bound)
{
    const double lag = (double)c->conventions.m_lag * M_LN2 / values_natural_m(c);
    switch (c->conventions.m_policy) {
    case ASC_M_FIXED:
        if (!got)
            return NAN;
        return isfinite(*got) ? *got : top;
    case ASC_M_LAGGING:
        if (top == -INFINITY)
            return top;
        if (!got) {
            *bound += lag / 2;
            return top - lag / 2;
        }
        if (!(*got < top))
            return top;
        if (*got >= top - lag)
            return *got;
        /* The kernel compares the lag in f32: a difference, a product, and the constant in it. */
        *bound += BOUND_U * 4 * (fabs(top) + lag);
        return top - lag;
    default:
        return top;
    }
}

/* The captured m of a row, before it is made the value of its stage. NULL: not recorded. */
static const double *captured_m(const struct oracle_case *c, const struct operands *x, int r, double *room)
{
    const struct matrix *m = values_captured(c, x->kv, asc_m);
    if (!m->data)
        return NULL;
    *room = dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride));
    return room;
}

/* A NaN score that the kernel has had, and that its maximum drops; one that was never written could be anything. */
static bool dropped_nan(const struct oracle_case *c, const struct operands *x, int r, int col)
{
    const struct matrix *m = values_captured(c, x->kv, asc_s);
    return c->conventions.max_nan == ASC_MAX_DROPS && x->s_recorded &&
           !dtype_is_unwritten(m->dtype, m->data, (size_t)(r * m->row_stride + col));
}

VECTOR_UNITS static void largest(const double *x, const double *loose, int n, double *top, double *top_loose)
{
    *top = vector_max(x, n, -INFINITY);
    *top_loose = vector_max(loose, n, 0);
}

static bool holds_nan(const double *x, int n)
{
    int64_t nan = 0;
    for (int i = 0; i < n; i++)
        nan |= isnan(x[i]);
    return nan != 0;
}

/* Whether a score is NaN, and so is the maximum: what the scores' stage did wrong went through, whatever was declared.
 */
static bool took_nan(const struct oracle_case *c, const struct operands *x, int r)
{
    double room;
    const double *m = captured_m(c, x, r, &room);
    return m && isnan(*m) && holds_nan(x->s.value + (size_t)r * (size_t)x->cols, x->cols);
}

/* Whether no maximum is there yet that the row's keys would give, as the scores are NaN or hold something where the
   mask hides every key: what alpha is of it is nobody's word. */
static bool has_no_maximum(const struct oracle_case *c, const struct operands *x, int r)
{
    const double m = x->of[asc_m].value[r];
    if (x->m_prev.value[r] != -INFINITY)
        return false;
    if (m == -INFINITY)
        return holds_nan(x->s.value + (size_t)r * (size_t)x->cols, x->cols);
    /* A masked score that is a number gives one like any other. */
    return c->conventions.s_masked != ASC_MASKED_VALUE && schedule_hidden(c, r, x->kv) >= schedule_visible(c, r, x->kv);
}

/* The largest score of row r that takes part, in m's unit, and the largest uncertainty among them. 0: unknown. */
static int row_maximum(const struct oracle_case *c, const struct operands *x, int r, double *top, double *loose)
{
    const int cols = x->cols;
    const double *score = x->s.value + (size_t)r * (size_t)cols;
    int known = 1;
    largest(score, x->s.loose + (size_t)r * (size_t)cols, cols, top, loose);
    if (holds_nan(score, cols))
        for (int col = 0; col < cols; col++)
            known &= !isnan(score[col]) || dropped_nan(c, x, r, col);
    for (int col = 0; col < x->pad_cols; col++) {
        const double beyond = x->pad[(size_t)r * (size_t)x->pad_cols + (size_t)col];
        known = known && !isnan(beyond);
        *top = beyond > *top ? beyond : *top;
    }
    if (x->s_direct)
        return known;
    const double factor = x->s_natural / values_natural_m(c);
    *top *= factor;
    *loose *= fabs(factor);
    if (isfinite(*top))
        *loose += bound_convert(*top) + bound_folded_scales(c, *top);
    return known;
}

/* m = max(m_prev, max s). A maximum rounds nothing, so the bound is what the operands are uncertain by: the largest
   uncertainty of those that can be the maximum at all. Converting scores to m's unit costs three roundings. */
void local_m(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    for (int r = 0; r < c->in_q.rows; r++) {
        double top = 0;
        double top_loose = 0;
        double room = 0;
        const bool known = row_maximum(c, x, r, &top, &top_loose) && !isnan(x->m_prev.value[r]);
        const double before = x->m_prev.value[r], before_loose = x->m_prev.loose[r];
        double want = before > top ? before : top;
        double bound = fmax(before_loose, top_loose);
        if (!(before - before_loose <= top + top_loose))
            bound = before_loose;
        else if (!(top - top_loose <= before + before_loose))
            bound = top_loose;
        if (want == -INFINITY)
            bound = 0;
        if (!known || want == INFINITY || took_nan(c, x, r))
            want = NAN;
        else
            want = local_policy(c, want, captured_m(c, x, r, &room), &bound);
        out.want[r] = want;
        out.bound[r] = bound;
    }
}

bool local_alpha_none(const struct oracle_case *c, const struct operands *x)
{
    return c->conventions.alpha_first == ASC_ALPHA_NONE_FIRST && x->tiles_seen == 0 && local_l_begin(c, x->split) == 0;
}

bool local_alpha_declared(const struct oracle_case *c, const struct operands *x, double m_prev, double *alpha)
{
    const int first = c->conventions.alpha_first;
    *alpha = 1;
    /* A sink in l or m is something to rescale. */
    if (first == ASC_ALPHA_ONE && m_prev == local_m_start(c) && !local_begins_at_sink(c, x->split))
        return true;
    if (first == ASC_ALPHA_ONE_FIRST && x->tiles_seen == 0 && local_l_begin(c, x->split) == 0)
        return true;
    if (local_alpha_none(c, x))
        return true;
    *alpha = 0;
    return m_prev == -INFINITY;
}

void local_alpha(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    const struct operand *m = &x->of[asc_m];
    const double natural = values_natural_m(c);
    for (int r = 0; r < c->in_q.rows; r++) {
        double want = 0;
        double bound = 0;
        if (local_alpha_none(c, x)) {
            want = 1;
        } else if (isnan(x->m_prev.value[r]) || isnan(m->value[r]) || has_no_maximum(c, x, r)) {
            want = NAN;
        } else if (!local_alpha_declared(c, x, x->m_prev.value[r], &want)) {
            const double exponent = (x->m_prev.value[r] - m->value[r]) * natural;
            const double loose = (x->m_prev.loose[r] + m->loose[r]) * fabs(natural);
            want = isfinite(exponent) ? statement(exp_step(exponent)) : NAN;
            bound = bound_exp_moved(
                        want, 1, exponent,
                        loose + bound_exp_declared(c, exponent, values_scaled_first(c, m->value[r] * natural))) +
                    BOUND_TINY;
        }
        out.want[r] = want;
        out.bound[r] = bound;
    }
}

/* A row that sees nothing of the tile has weights of 0 whatever they stand on, and takes in 0. A maximum that begins at
   a finite number does so in each tile. beta errs as alpha does, by one exponential at its argument. */
void local_tile_top(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct operand *m = &s->at.of[asc_m];
    const struct prepared *to = &s->prepared;
    const double natural = values_natural_m(c);
    for (int r = 0; r < c->in_q.rows; r++) {
        double top = 0;
        double loose = 0;
        to->beta[r] = 1;
        to->beta_loose[r] = 0;
        if (c->conventions.p_max != ASC_P_MAX_TILE)
            continue;
        const int known = row_maximum(c, &s->at, r, &top, &loose);
        top = known ? fmax(top, local_m_start(c)) : NAN;
        to->tile_top[r] = top;
        to->tile_top_loose[r] = isfinite(top) ? loose : 0;
        to->beta[r] = 0;
        if (top == -INFINITY)
            continue;
        const double x = (top - m->value[r]) * natural;
        const double off = (to->tile_top_loose[r] + m->loose[r]) * fabs(natural);
        to->beta[r] = isfinite(x) ? statement(exp(x)) : NAN;
        const double error = bound_exp_declared(c, x, values_scaled_first(c, m->value[r] * natural));
        /* As with alpha, a finite number all the same: what adds up to 0 stays 0. */
        to->beta_loose[r] = fmin(bound_exp_moved(to->beta[r], 1, x, off + error) + BOUND_TINY, FLT_MAX);
    }
}

struct operand local_p_frame(const struct oracle_case *c, const struct operands *x)
{
    return c->conventions.p_max == ASC_P_MAX_TILE ? x->tile_top : x->of[asc_m];
}

static void weights(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    const struct operand m = local_p_frame(c, x);
    const struct exponential e = weight_exponential(c);
    const double m_natural = values_natural_m(c), factor = bound_p_factor(c);
    const int cols = x->cols;
    for (int r = 0; r < c->in_q.rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double top = m.value[r] * m_natural;
        double *want = out.want + first, *bound = out.bound + first;
        const struct weight_row row = {.score = x->s.value + first,
                                       .loose = x->s.loose + first,
                                       .n = cols,
                                       .terms = {.natural = x->s_natural,
                                                 .top = top,
                                                 .frame = top,
                                                 .frame_loose = m.loose[r] * fabs(m_natural),
                                                 .folded = exponential_folds(&e, top) + e.offset,
                                                 .convert = !x->s_direct,
                                                 .factor = factor,
                                                 .limit = INFINITY,
                                                 .tiny = fmax(1, factor) * BOUND_TINY}};
        weight_row(&e, &row, want, bound);
        for (int col = 0; col < cols && isnan(top); col++)
            want[col] = NAN;
    }
}

void local_p(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    weights(c, x, out);
    if (x->keep && c->conventions.p_dropout == ASC_P_DROPPED)
        dropout_apply(c, x, out.want, out.bound);
}

void local_advance(const struct oracle_case *c, struct judge_scratch *s)
{
    const size_t row_bytes = (size_t)c->in_q.rows * sizeof(double), value_bytes = row_bytes * (size_t)c->head_dim_v;
    const struct operand *m = &s->at.of[asc_m], *l = &s->at.of[asc_l], *u = &s->at.of[asc_u];
    struct carried *to = &s->carried;
    struct stage *stage = &s->stage[asc_u];
    s->at.tiles_seen++;
    memcpy(to->m, m->value, row_bytes);
    memcpy(to->m_loose, m->loose, row_bytes);
    memcpy(to->l, l->value, row_bytes);
    memcpy(to->l_loose, l->loose, row_bytes);
    if (u->value == stage->got_room) {
        /* The captured values stay where they are; the next tile's are loaded elsewhere. */
        double *captured = stage->got_room;
        stage->got = stage->got_room = to->u;
        s->at.u_prev.value = to->u = captured;
    } else {
        memcpy(to->u, u->value, value_bytes);
    }
    if (!u->exact || !to->u_exact)
        memcpy(to->u_loose, u->loose, value_bytes);
    to->u_exact = u->exact;
}

/* What P.V takes of P is rounded after it was recorded, or was not recorded at all: from exact f32 values the rounded
   ones follow exactly; from others, rounding may cost half a step more. One beyond the largest number of its type
   should have been smaller: what saturation makes of it is no rounding. */
static void round_weights(const struct stage *stage, enum dtype t, struct judge_scratch *s)
{
    const struct operand own = s->at.pv_p, *p = &own;
    double *rounded = s->prepared.p_rounded, *rounded_loose = s->prepared.p_rounded_loose;
    const int n = stage->rows * stage->cols;
    double unit = 0;
    double half_tiny = 0;
    bound_narrow(t, &unit, &half_tiny);
    if (p->exact)
        bound_round_row(t, p->value, n, rounded);
    for (int i = 0; i < n && !p->exact; i++)
        rounded_loose[i] = p->loose[i] + unit * (fabs(p->value[i]) + p->loose[i]) + half_tiny;
    if (p->exact)
        s->at.pv_p.value = rounded;
    s->at.pv_p.loose = p->exact ? s->room.zero : rounded_loose;
}

void local_use_weights(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *p = &s->stage[asc_p];
    struct operands *x = &s->at;
    enum dtype t;
    x->pv_p = x->l_p = x->of[asc_p];
    if (x->keep) {
        if (c->conventions.p_dropout == ASC_P_DROPPED)
            weights(c, x, (struct expected){s->prepared.all, s->prepared.all_loose});
        dropout_use_weights(c, s);
    }
    if (!values_p_type(c, &t))
        return;
    const bool goes_on = !x->keep || c->conventions.p_dropout == ASC_P_DROPPED || dropout_of_weights(c) == 1;
    if (p->recorded && goes_on && scratch_captured(s, c, asc_p)->dtype == t) {
        x->pv_p.loose = s->room.zero; /* what was recorded is what P.V takes */
        x->pv_p.exact = true;
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
    const double top = m.value[r] * m_natural, folded = values_scaled_first(c, top) + bound_offset(c);
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
    const int divides = c->conventions.u_norm == ASC_U_NORM_TILE, n = c->head_dim_v;
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

void local_weigh_v(const struct room *room, const struct weighed_v *x, double *out)
{
    if (x->v == room->shared.v.of)
        matrix_multiply_packed(x->rows, x->dim, x->keys, x->times, x->weights, room->shared.v.panels, out);
    else
        matrix_multiply(x->rows, x->dim, x->keys, x->times, x->weights, x->keys, x->v, x->dim, out, 0);
}

/* u = alpha u_prev + p v; a u that is recorded after its rescaling holds alpha u_prev already. */
void local_u(const struct oracle_case *c, const struct operands *x, const struct room *room, struct expected out)
{
    const struct operand *alpha = &x->of[asc_alpha];
    const int rows = c->in_q.rows, cols = x->cols, head_dim_v = c->head_dim_v;
    const int rescaled = c->conventions.u_phase == ASC_U_RESCALED, accumulator = c->conventions.acc_u;
    const double times = x->times_v;
    int exact = x->pv_p.exact;
    const struct magnitude_sums sizes = {room->weighed, room->weighed_unit};
    const double *size_p = product_sizes(accumulator, x->pv_p.value, rows * cols, room->p);
    const double *size_v = product_sizes(accumulator, x->size[asc_v], cols * head_dim_v, room->k);
    double *want = out.want, *bound = out.bound;
    local_weigh_v(room, &(struct weighed_v){rows, head_dim_v, cols, times, x->pv_p.value, x->of[asc_v].value}, want);
    magnitude_sum(room, rows, head_dim_v, cols, size_p, size_v, &sizes);
    if (!x->pv_p.exact)
        magnitude_multiply(room, rows, head_dim_v, cols, times, x->pv_p.loose, x->size[asc_v], room->sum, 0);
    if (x->unseen[asc_v]) {
        /* V is converted where no probe sees it. */
        for (int i = 0; i < cols * head_dim_v; i++)
            room->k[i] = fabs(x->size[asc_v][i]) - fabs(x->input_v[i]);
        magnitude_multiply(room, rows, head_dim_v, cols, times * BOUND_SLACK, x->pv_p.value, room->k, room->sum,
                           !exact);
        exact = 0;
    }
    for (int r = 0; r < rows; r++) {
        const size_t first = (size_t)r * (size_t)head_dim_v;
        struct joined_row row = {.factor = rescaled ? 1 : alpha->value[r],
                                 .factor_loose = rescaled ? 0 : alpha_loose(alpha, r),
                                 .relative = product_accumulate(c),
                                 .tiny = product_tiny(accumulator, c->bc + 2) * fmax(1, times),
                                 .size = magnitude_row(&sizes, r, head_dim_v, cols)};
        row.size.grown *= times;
        if (c->conventions.p_max == ASC_P_MAX_TILE || c->conventions.u_norm == ASC_U_NORM_TILE) {
            join_normalized_row(c, x, r, &row, exact ? room->zero : room->sum + first, out);
            continue;
        }
        join_row(head_dim_v, &row, x->u_prev.value + first, x->u_prev.loose + first,
                 exact ? room->zero : room->sum + first, want + first, bound + first);
    }
}

void local_keep_u(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *u = &s->stage[asc_u];
    const size_t bytes = (size_t)c->in_q.rows * (size_t)c->head_dim_v * sizeof(double);
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
    for (int i = 0; i < c->in_q.rows * c->head_dim_v; i++) {
        const double factor = alpha[i / c->head_dim_v], loose = fmin(alpha_loose[i / c->head_dim_v], FLT_MAX);
        bound[i] = (fabs(factor) + loose) * bound[i] + loose * fabs(want[i]);
        want[i] = statement(want[i] * factor);
        bound[i] += BOUND_U * (fabs(want[i]) + bound[i]) * BOUND_SLACK + BOUND_TINY;
    }
}

void local_rescale_u(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct operand *alpha = &s->at.of[asc_alpha];
    const size_t bytes = (size_t)c->in_q.rows * (size_t)c->head_dim_v * sizeof(double);
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
    const int cols = c->head_dim_v;
    const double times = codes_o_times(c);
    for (int r = 0; r < c->in_q.rows; r++) {
        const double l = x->l_prev.value[r], l_loose = final_l_loose(c, x, r), least = fabs(l) - l_loose;
        const bool empty = schedule_keys(c, r) == 0 && l == 0;
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
