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

int local_begins_at_sink(const struct oracle_case *c, const struct judge_scratch *s)
{
    const int l_sink = c->conventions.l_sink;
    return c->has_sink && s->split == 0 && (l_sink == ASC_SINK_START || l_sink == ASC_SINK_M_START);
}

double local_m_begin(const struct oracle_case *c, const struct judge_scratch *s)
{
    return local_begins_at_sink(c, s) ? c->sink / values_natural_m(c) : local_m_start(c);
}

double local_m_begin_loose(const struct oracle_case *c, const struct judge_scratch *s)
{
    const int converts = local_begins_at_sink(c, s) && c->conventions.m_unit != ASC_UNIT_SCALED;
    return converts ? bound_convert(local_m_begin(c, s)) + bound_folded_scales(c, local_m_begin(c, s)) : 0;
}

double local_l_begin(const struct oracle_case *c, const struct judge_scratch *s)
{
    return local_begins_at_sink(c, s) && c->conventions.l_sink == ASC_SINK_START;
}

void local_begin(const struct oracle_case *c, struct judge_scratch *s, int split)
{
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim;
    s->split = split;
    s->tiles_seen = 0;
    s->late_kv = -1;
    for (size_t r = 0; r < rows; r++) {
        s->m_prev[r] = local_m_begin(c, s);
        s->m_prev_loose[r] = local_m_begin_loose(c, s);
        s->l_prev[r] = local_l_begin(c, s) * bound_p_factor(c);
    }
    memset(s->l_prev_loose, 0, rows * sizeof(double));
    memset(s->u_prev, 0, values * sizeof(double));
    memset(s->u_prev_loose, 0, values * sizeof(double));
    s->u_prev_exact = 1;
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
static const double *captured_m(const struct oracle_case *c, const struct judge_scratch *s, int r, double *room)
{
    const struct matrix *m = scratch_captured(s, c, asc_m);
    if (!m->data)
        return NULL;
    *room = dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride));
    return room;
}

/* A NaN score that the kernel has had, and that its maximum drops; one that nobody wrote could be anything. */
static int dropped_nan(const struct oracle_case *c, const struct judge_scratch *s, int r, int col)
{
    const struct matrix *m = scratch_captured(s, c, asc_s);
    return c->conventions.max_nan == ASC_MAX_DROPS && s->stage[asc_s].recorded &&
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
static int took_nan(const struct oracle_case *c, const struct judge_scratch *s, int r)
{
    double room;
    const double *m = captured_m(c, s, r, &room);
    return m && isnan(*m) && holds_nan(s->use_s + (size_t)r * (size_t)s->kv_cols, s->kv_cols);
}

/* 1: no maximum is there yet that the row's keys would give, as the scores are NaN or hold something where the mask
   hides every key: what alpha is of it is nobody's word. */
static int has_no_maximum(const struct oracle_case *c, const struct judge_scratch *s, int r)
{
    const double m = s->stage[asc_m].value[r];
    if (s->m_prev[r] != -INFINITY)
        return 0;
    if (m == -INFINITY)
        return holds_nan(s->use_s + (size_t)r * (size_t)s->kv_cols, s->kv_cols);
    /* A masked score that is a number gives one like any other. */
    return c->conventions.s_masked != ASC_MASKED_VALUE && schedule_hidden(c, r, s->kv) >= schedule_visible(c, r, s->kv);
}

/* The largest score of row r that takes part, in m's unit, and the largest uncertainty among them. 0: unknown. */
static int row_maximum(const struct oracle_case *c, const struct judge_scratch *s, int r, double *top, double *loose)
{
    const int cols = s->kv_cols;
    const double *x = s->use_s + (size_t)r * (size_t)cols;
    int known = 1;
    largest(x, s->use_s_loose + (size_t)r * (size_t)cols, cols, top, loose);
    if (holds_nan(x, cols))
        for (int col = 0; col < cols; col++)
            known &= !isnan(x[col]) || dropped_nan(c, s, r, col);
    for (int col = 0; col < s->pad_cols; col++) {
        const double beyond = s->pad[(size_t)r * (size_t)s->pad_cols + (size_t)col];
        known = known && !isnan(beyond);
        *top = beyond > *top ? beyond : *top;
    }
    if (s->use_s_direct)
        return known;
    const double factor = s->use_s_natural / values_natural_m(c);
    *top *= factor;
    *loose *= fabs(factor);
    if (isfinite(*top))
        *loose += bound_convert(*top) + bound_folded_scales(c, *top);
    return known;
}

/* m = max(m_prev, max s). A maximum rounds nothing, so the bound is what the operands are uncertain by: the largest
   uncertainty of those that can be the maximum at all. Converting scores to m's unit costs three roundings. */
void local_m(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_m];
    for (int r = 0; r < stage->rows; r++) {
        double top = 0;
        double top_loose = 0;
        double room = 0;
        const int known = row_maximum(c, s, r, &top, &top_loose) && !isnan(s->m_prev[r]);
        const double before = s->m_prev[r], before_loose = s->m_prev_loose[r];
        double want = before > top ? before : top;
        double bound = fmax(before_loose, top_loose);
        if (!(before - before_loose <= top + top_loose))
            bound = before_loose;
        else if (!(top - top_loose <= before + before_loose))
            bound = top_loose;
        if (want == -INFINITY)
            bound = 0;
        if (!known || want == INFINITY || took_nan(c, s, r))
            want = NAN;
        else
            want = local_policy(c, want, captured_m(c, s, r, &room), &bound);
        stage->want[LOCAL][r] = want;
        stage->bound[LOCAL][r] = bound;
    }
}

int local_alpha_none(const struct oracle_case *c, const struct judge_scratch *s)
{
    return c->conventions.alpha_first == ASC_ALPHA_NONE_FIRST && s->tiles_seen == 0 && local_l_begin(c, s) == 0;
}

int local_alpha_declared(const struct oracle_case *c, const struct judge_scratch *s, double m_prev, double *alpha)
{
    const int first = c->conventions.alpha_first;
    *alpha = 1;
    /* A sink in l or m is something to rescale. */
    if (first == ASC_ALPHA_ONE && m_prev == local_m_start(c) && !local_begins_at_sink(c, s))
        return 1;
    if (first == ASC_ALPHA_ONE_FIRST && s->tiles_seen == 0 && local_l_begin(c, s) == 0)
        return 1;
    if (local_alpha_none(c, s))
        return 1;
    *alpha = 0;
    return m_prev == -INFINITY;
}

void local_alpha(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *m = &s->stage[asc_m], *stage = &s->stage[asc_alpha];
    const double natural = values_natural_m(c);
    for (int r = 0; r < stage->rows; r++) {
        double want = 0;
        double bound = 0;
        if (local_alpha_none(c, s)) {
            want = 1;
        } else if (isnan(s->m_prev[r]) || isnan(m->value[r]) || has_no_maximum(c, s, r)) {
            want = NAN;
        } else if (!local_alpha_declared(c, s, s->m_prev[r], &want)) {
            const double x = (s->m_prev[r] - m->value[r]) * natural;
            const double loose = (s->m_prev_loose[r] + m->loose[r]) * fabs(natural);
            want = isfinite(x) ? statement(exp(x)) : NAN;
            bound =
                bound_exp_moved(want, 1, x, loose + bound_exp_declared(c, x, local_folded(c, m->value[r] * natural))) +
                BOUND_TINY;
        }
        stage->want[LOCAL][r] = want;
        stage->bound[LOCAL][r] = bound;
    }
}

/* A row that sees nothing of the tile has weights of 0 whatever they stand on, and takes in 0. A maximum that begins at
   a finite number does so in each tile. beta errs as alpha does, by one exponential at its argument. */
void local_tile_top(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *m = &s->stage[asc_m];
    const double natural = values_natural_m(c);
    for (int r = 0; r < m->rows; r++) {
        double top = 0;
        double loose = 0;
        s->beta[r] = 1;
        s->beta_loose[r] = 0;
        if (c->conventions.p_max != ASC_P_MAX_TILE)
            continue;
        const int known = row_maximum(c, s, r, &top, &loose);
        top = known ? fmax(top, local_m_start(c)) : NAN;
        s->tile_top[r] = top;
        s->tile_top_loose[r] = isfinite(top) ? loose : 0;
        s->beta[r] = 0;
        if (top == -INFINITY)
            continue;
        const double x = (top - m->value[r]) * natural;
        const double off = (s->tile_top_loose[r] + m->loose[r]) * fabs(natural);
        s->beta[r] = isfinite(x) ? statement(exp(x)) : NAN;
        const double error = bound_exp_declared(c, x, local_folded(c, m->value[r] * natural));
        /* As with alpha, a finite number all the same: what adds up to 0 stays 0. */
        s->beta_loose[r] = fmin(bound_exp_moved(s->beta[r], 1, x, off + error) + BOUND_TINY, FLT_MAX);
    }
}

const double *local_p_frame(const struct oracle_case *c, const struct judge_scratch *s, const double **loose)
{
    const int is_tile = c->conventions.p_max == ASC_P_MAX_TILE;
    *loose = is_tile ? s->tile_top_loose : s->stage[asc_m].loose;
    return is_tile ? s->tile_top : s->stage[asc_m].value;
}

void local_p(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_p];
    const double *frame_loose, *m = local_p_frame(c, s, &frame_loose);
    const double m_natural = values_natural_m(c), factor = bound_p_factor(c);
    const int cols = s->kv_cols;
    for (int r = 0; r < stage->rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double top = m[r] * m_natural;
        double *want = stage->want[LOCAL] + first, *bound = stage->bound[LOCAL] + first;
        const struct weight_row row = {.score = s->use_s + first,
                                       .loose = s->use_s_loose + first,
                                       .n = cols,
                                       .natural = s->use_s_natural,
                                       .top = top,
                                       .frame = top,
                                       .frame_loose = frame_loose[r] * fabs(m_natural),
                                       .folded = local_folded(c, top) + bound_offset(c),
                                       .converts = !s->use_s_direct,
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
    s->tiles_seen++;
    memcpy(s->m_prev, s->stage[asc_m].value, row_bytes);
    memcpy(s->m_prev_loose, s->stage[asc_m].loose, row_bytes);
    memcpy(s->l_prev, s->stage[asc_l].value, row_bytes);
    memcpy(s->l_prev_loose, s->stage[asc_l].loose, row_bytes);
    struct stage *u = &s->stage[asc_u];
    if (u->value == u->got_room) {
        /* The captured values stay where they are; the next tile's are loaded elsewhere. */
        double *captured = u->got_room;
        u->got = u->got_room = s->u_prev;
        s->u_prev = captured;
    } else {
        memcpy(s->u_prev, u->value, value_bytes);
    }
    if (!u->exact || !s->u_prev_exact)
        memcpy(s->u_prev_loose, u->loose, value_bytes);
    s->u_prev_exact = u->exact;
}
