#include "engine/oracle/local.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include <float.h>
#include <string.h>

double local_m_start(const struct oracle_case *c)
{
    return c->conventions.m_empty == ASC_EMPTY_FINITE ? (double)c->conventions.m_start : -INFINITY;
}

int local_begins_at_sink(const struct oracle_case *c, int split)
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
    const int converts = local_begins_at_sink(c, split) && c->conventions.m_unit != ASC_UNIT_SCALED;
    return converts ? bound_convert(local_m_begin(c, split)) + bound_folded_scales(c, local_m_begin(c, split)) : 0;
}

double local_l_begin(const struct oracle_case *c, int split)
{
    return local_begins_at_sink(c, split) && c->conventions.l_sink == ASC_SINK_START;
}

void local_begin(const struct oracle_case *c, struct judge_scratch *s, int split)
{
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim;
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
    to->u_exact = 1;
}

double local_folded(const struct oracle_case *c, double m_natural)
{
    const struct asc_conventions *conventions = &c->conventions;
    const int direct =
        conventions->s_unit == ASC_UNIT_LOG2 && conventions->m_unit == ASC_UNIT_LOG2 && !values_capped_later(c);
    return direct || !isfinite(m_natural) ? 0 : fabs(m_natural);
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

/* A NaN score that the kernel has had, and that its maximum drops; one that nobody wrote could be anything. */
static int dropped_nan(const struct oracle_case *c, const struct operands *x, int r, int col)
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

static int holds_nan(const double *x, int n)
{
    int64_t nan = 0;
    for (int i = 0; i < n; i++)
        nan |= isnan(x[i]);
    return nan != 0;
}

/* 1: a score is NaN, and so is the maximum: what the scores' stage did wrong went through, whatever was declared. */
static int took_nan(const struct oracle_case *c, const struct operands *x, int r)
{
    double room;
    const double *m = captured_m(c, x, r, &room);
    return m && isnan(*m) && holds_nan(x->s.value + (size_t)r * (size_t)x->cols, x->cols);
}

/* 1: no maximum is there yet that the row's keys would give, as the scores are NaN or hold something where the mask
   hides every key: what alpha is of it is nobody's word. */
static int has_no_maximum(const struct oracle_case *c, const struct operands *x, int r)
{
    const double m = x->of[asc_m].value[r];
    if (x->m_prev.value[r] != -INFINITY)
        return 0;
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
        const int known = row_maximum(c, x, r, &top, &top_loose) && !isnan(x->m_prev.value[r]);
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

int local_alpha_none(const struct oracle_case *c, const struct operands *x)
{
    return c->conventions.alpha_first == ASC_ALPHA_NONE_FIRST && x->tiles_seen == 0 && local_l_begin(c, x->split) == 0;
}

int local_alpha_declared(const struct oracle_case *c, const struct operands *x, double m_prev, double *alpha)
{
    const int first = c->conventions.alpha_first;
    *alpha = 1;
    /* A sink in l or m is something to rescale. */
    if (first == ASC_ALPHA_ONE && m_prev == local_m_start(c) && !local_begins_at_sink(c, x->split))
        return 1;
    if (first == ASC_ALPHA_ONE_FIRST && x->tiles_seen == 0 && local_l_begin(c, x->split) == 0)
        return 1;
    if (local_alpha_none(c, x))
        return 1;
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
            want = isfinite(exponent) ? statement(exp(exponent)) : NAN;
            bound = bound_exp_moved(want, 1, exponent,
                                    loose + bound_exp_declared(c, exponent, local_folded(c, m->value[r] * natural))) +
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
        const double error = bound_exp_declared(c, x, local_folded(c, m->value[r] * natural));
        /* As with alpha, a finite number all the same: what adds up to 0 stays 0. */
        to->beta_loose[r] = fmin(bound_exp_moved(to->beta[r], 1, x, off + error) + BOUND_TINY, FLT_MAX);
    }
}

struct operand local_p_frame(const struct oracle_case *c, const struct operands *x)
{
    return c->conventions.p_max == ASC_P_MAX_TILE ? x->tile_top : x->of[asc_m];
}

void local_p(const struct oracle_case *c, const struct operands *x, struct expected out)
{
    const struct operand m = local_p_frame(c, x);
    const double m_natural = values_natural_m(c), factor = bound_p_factor(c);
    const int cols = x->cols;
    for (int r = 0; r < c->in_q.rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double top = m.value[r] * m_natural;
        double *want = out.want + first, *bound = out.bound + first;
        const struct weight_row row = {.score = x->s.value + first,
                                       .loose = x->s.loose + first,
                                       .n = cols,
                                       .natural = x->s_natural,
                                       .top = top,
                                       .frame = top,
                                       .frame_loose = m.loose[r] * fabs(m_natural),
                                       .folded = local_folded(c, top) + bound_offset(c),
                                       .converts = !x->s_direct,
                                       .factor = factor,
                                       .limit = INFINITY,
                                       .tiny = fmax(1, factor) * BOUND_TINY};
        weight_row(c, &row, want, bound);
        for (int col = 0; col < cols && isnan(top); col++)
            want[col] = NAN;
    }
}

void local_advance(const struct oracle_case *c, struct judge_scratch *s)
{
    const size_t row_bytes = (size_t)c->in_q.rows * sizeof(double), value_bytes = row_bytes * (size_t)c->head_dim;
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
