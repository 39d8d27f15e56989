#include "engine/oracle/padding.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/element.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <string.h>

/* NULL: no padding here, or none is recorded. */
static const struct matrix *padding_at(const struct matrix *padding, const struct judge_scratch *s)
{
    return padding && padding[s->at.kv].data ? &padding[s->at.kv] : NULL;
}

/* A padding key has no weight, unless a score other than -inf stands in its place: that is the fault of S, or what the
   conventions say, and P follows from it. */
static int weight_is_right(const struct oracle_case *c, const struct judge_scratch *s, const struct matrix *p, int row,
                           int col)
{
    const size_t at = (size_t)(row * p->row_stride + col);
    const struct operand frame = local_p_frame(c, &s->at);
    const double got = dtype_load(p->dtype, p->data, at), m = frame.value[row] * values_natural_m(c);
    const double m_loose = frame.loose[row] * fabs(values_natural_m(c));
    double score = -INFINITY;
    if (got == 0 || !values_element_written(p, at))
        return 1;
    if (s->at.pad_cols)
        score = s->at.pad[(size_t)row * (size_t)s->at.pad_cols + (size_t)col];
    else if (values_unseen_padding(c, s->stage[asc_s].recorded, s->at.cols))
        score = (double)c->conventions.s_masked_value;
    /* From what is no number follows nothing. */
    if (isnan(m) || m == INFINITY || isnan(score))
        return 1;
    if (score == -INFINITY)
        return 0;
    const double factor = bound_p_factor(c), x = score * values_natural_s(c) - m;
    const double want = factor * exp(x), folded = local_folded(c, m) + bound_offset(c);
    const double loose = m_loose + bound_exp_declared(c, x, folded) + bound_convert(score * values_natural_s(c));
    const double bound = bound_exp_moved(want, factor, x, loose) + fmax(1, factor) * BOUND_TINY;
    return !isfinite(want) || element_within(p->dtype, got, want, bound);
}

static void count(struct verdict *v, double got, int row, int col)
{
    v->count[isnan(got) ? CLASS_NAN : isinf(got) ? CLASS_INF : CLASS_EXTRA]++;
    v->judged = 1;
    if (v->worst_ratio == INFINITY)
        return;
    v->worst_ratio = INFINITY;
    v->worst_row = (int16_t)row;
    v->worst_col = (int16_t)col;
}

/* A written NaN or infinity in column d of V's padding. */
static int is_unreal(const struct matrix *v, int row, int d)
{
    const size_t at = (size_t)(row * v->row_stride + d);
    return !isfinite(dtype_load(v->dtype, v->data, at)) && values_element_written(v, at);
}

static int column_is_unreal(const struct matrix *v, int d)
{
    for (int row = 0; row < v->rows; row++)
        if (is_unreal(v, row, d))
            return 1;
    return 0;
}

/* A weight of zero does not help against a NaN: 0 NaN = NaN. A kernel that leaves V's padding out of the product has
   finite numbers in U, and nothing to be blamed for. */
static void excuse_u(struct judge_scratch *s, const struct matrix *v, int d)
{
    const struct stage *u = &s->stage[asc_u];
    if (!column_is_unreal(v, d))
        return;
    for (int r = 0; r < u->rows; r++) {
        const size_t i = (size_t)r * (size_t)u->cols + (size_t)d;
        if (isfinite(u->got[i]) || !isfinite(u->want[LOCAL][i]))
            continue;
        u->want[LOCAL][i] = NAN;
        s->unreal_v[d] = 1;
    }
}

void padding_excuse(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct matrix *p = padding_at(c->p_padding, s), *v = padding_at(c->v_padding, s);
    const struct stage *l = &s->stage[asc_l], *u = &s->stage[asc_u];
    memset(s->unreal_v, 0, (size_t)c->head_dim * sizeof *s->unreal_v);
    for (int r = 0; p && r < p->rows; r++) {
        int right = 1;
        for (int col = 0; col < p->cols; col++)
            right = right && weight_is_right(c, s, p, r, col);
        if (right)
            continue;
        l->want[LOCAL][r] = NAN;
        for (int d = 0; d < u->cols; d++)
            u->want[LOCAL][(size_t)r * (size_t)u->cols + (size_t)d] = NAN;
    }
    for (int d = 0; v && u->recorded && d < u->cols; d++)
        excuse_u(s, v, d);
}

void padding_judge_p(const struct oracle_case *c, const struct judge_scratch *s, struct verdict *v)
{
    const struct matrix *p = padding_at(c->p_padding, s);
    for (int row = 0; p && row < p->rows; row++)
        for (int col = 0; col < p->cols; col++)
            if (!weight_is_right(c, s, p, row, col))
                count(v, dtype_load(p->dtype, p->data, (size_t)(row * p->row_stride + col)), row, s->at.cols + col);
}

void padding_judge_v(const struct oracle_case *c, const struct judge_scratch *s, struct verdict *v)
{
    const struct matrix *m = padding_at(c->v_padding, s);
    for (int row = 0; m && row < m->rows; row++)
        for (int d = 0; d < m->cols; d++)
            if (s->unreal_v[d] && is_unreal(m, row, d))
                count(v, dtype_load(m->dtype, m->data, (size_t)(row * m->row_stride + d)), s->at.cols + row, d);
}
