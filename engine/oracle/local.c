#include "engine/oracle/local.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <string.h>

void local_begin(const struct oracle_case *c, struct judge_scratch *s)
{
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim;
    for (size_t r = 0; r < rows; r++)
        s->m_prev[r] = -INFINITY;
    memset(s->m_prev_loose, 0, rows * sizeof(double));
    memset(s->l_prev, 0, rows * sizeof(double));
    memset(s->l_prev_loose, 0, rows * sizeof(double));
    memset(s->u_prev, 0, values * sizeof(double));
    memset(s->u_prev_loose, 0, values * sizeof(double));
}

double local_folded(const struct oracle_case *c, double m_natural)
{
    const struct asc_conventions *conventions = &c->conventions;
    const int direct = conventions->s_unit == conventions->m_unit && conventions->s_unit != ASC_UNIT_RAW;
    return direct || !isfinite(m_natural) ? 0 : fabs(m_natural);
}

/* A value that float64 arithmetic could not give from finite operands makes no statement. */
static double statement(double x)
{
    return isfinite(x) ? x : NAN;
}

void local_score(const struct oracle_case *c, struct judge_scratch *s, const struct score_product *product)
{
    const int rows = c->in_q.rows, cols = s->kv_cols, head_dim = c->head_dim;
    const double tiny = bound_score_tiny(head_dim) * fmax(1, fabs(product->factor));
    matrix_multiply_transposed(rows, cols, head_dim, product->factor, product->q, head_dim, product->k, head_dim,
                               product->want, 0);
    matrix_multiply_transposed(rows, cols, head_dim, fabs(product->factor) * product->relative, product->size_q,
                               head_dim, product->size_k, head_dim, product->bound, 0);
    for (int r = 0; r < rows; r++) {
        double *want = product->want + (size_t)r * (size_t)cols;
        double *bound = product->bound + (size_t)r * (size_t)cols;
        int col = 0;
        for (; col < s->visible[r] && col < cols; col++) {
            want[col] = statement(want[col]);
            bound[col] += tiny;
        }
        for (; col < cols; col++) {
            want[col] = -INFINITY;
            bound[col] = 0;
        }
    }
}

void local_s(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_s];
    const int unit = c->conventions.s_unit;
    local_score(c, s,
                &(struct score_product){.q = s->stage[asc_q].value,
                                        .k = s->stage[asc_k].value,
                                        .size_q = s->use_q,
                                        .size_k = s->use_k,
                                        .factor = values_factor(unit, c->scale),
                                        .relative = bound_score(c->head_dim, unit),
                                        .want = stage->want[LOCAL],
                                        .bound = stage->bound[LOCAL]});
}

/* m = max(m_prev, max s). A maximum rounds nothing, so the bound is what the operands are uncertain by: the largest
   uncertainty of those that can be the maximum at all. Converting scores to m's unit costs three roundings. */
void local_m(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *score = &s->stage[asc_s], *stage = &s->stage[asc_m];
    const int cols = s->kv_cols, from = c->conventions.s_unit, to = c->conventions.m_unit;
    const double factor = from == to ? 1 : values_factor(to, c->scale) / values_factor(from, c->scale);
    for (int r = 0; r < stage->rows; r++) {
        const double *x = score->value + (size_t)r * (size_t)cols, *loose = score->loose + (size_t)r * (size_t)cols;
        double top = -INFINITY;
        double top_loose = 0;
        int undefined = isnan(s->m_prev[r]);
        for (int col = 0; col < cols; col++) {
            undefined |= isnan(x[col]);
            top = x[col] > top ? x[col] : top;
            top_loose = loose[col] > top_loose ? loose[col] : top_loose;
        }
        for (int col = 0; col < s->pad_cols; col++) {
            const double beyond = s->pad[(size_t)r * (size_t)s->pad_cols + (size_t)col];
            undefined |= isnan(beyond);
            top = beyond > top ? beyond : top;
        }
        top *= factor;
        top_loose *= fabs(factor);
        if (from != to && isfinite(top))
            top_loose += bound_convert(top);
        const double before = s->m_prev[r], before_loose = s->m_prev_loose[r];
        double want = before > top ? before : top;
        double bound = fmax(before_loose, top_loose);
        if (!(before - before_loose <= top + top_loose))
            bound = before_loose;
        else if (!(top - top_loose <= before + before_loose))
            bound = top_loose;
        if (undefined || want == INFINITY)
            want = NAN;
        stage->want[LOCAL][r] = want;
        stage->bound[LOCAL][r] = want == -INFINITY ? 0 : bound;
    }
}

void local_alpha(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *m = &s->stage[asc_m], *stage = &s->stage[asc_alpha];
    const double natural = values_natural(c->conventions.m_unit, c->scale);
    for (int r = 0; r < stage->rows; r++) {
        double want = c->conventions.alpha_first;
        double bound = 0;
        if (isnan(s->m_prev[r]) || isnan(m->value[r])) {
            want = NAN;
        } else if (s->m_prev[r] != -INFINITY) {
            const double x = (s->m_prev[r] - m->value[r]) * natural;
            const double loose = (s->m_prev_loose[r] + m->loose[r]) * fabs(natural);
            want = isfinite(x) ? statement(exp(x)) : NAN;
            bound = want * (bound_exp(x, local_folded(c, m->value[r] * natural)) + bound_expm1(loose)) + BOUND_TINY;
        }
        stage->want[LOCAL][r] = want;
        stage->bound[LOCAL][r] = bound;
    }
}

void local_p(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *score = &s->stage[asc_s], *m = &s->stage[asc_m], *stage = &s->stage[asc_p];
    const double s_natural = values_natural(c->conventions.s_unit, c->scale);
    const double m_natural = values_natural(c->conventions.m_unit, c->scale);
    const int cols = s->kv_cols;
    for (int r = 0; r < stage->rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double top = m->value[r] * m_natural, top_loose = m->loose[r] * fabs(m_natural);
        const double folded = local_folded(c, top);
        for (int col = 0; col < cols; col++) {
            const double value = score->value[first + (size_t)col] * s_natural;
            double want = 0;
            double bound = 0;
            if (isnan(top)) {
                want = NAN;
            } else if (value != -INFINITY) {
                const double x = value - top;
                const double loose = score->loose[first + (size_t)col] * fabs(s_natural) + top_loose;
                want = isfinite(x) ? statement(exp(x)) : NAN;
                bound = want * (bound_exp(x, folded) + bound_expm1(loose)) + BOUND_TINY;
            }
            stage->want[LOCAL][first + (size_t)col] = want;
            stage->bound[LOCAL][first + (size_t)col] = bound;
        }
    }
}

/* Padding columns that were not masked take part in the row sum: their weights are not captured, but follow from their
   scores. Adds them to *sum and their uncertainty to *loose. */
static void add_padding(const struct oracle_case *c, const struct judge_scratch *s, int r, double *sum, double *loose)
{
    const double s_natural = values_natural(c->conventions.s_unit, c->scale);
    const double m_natural = values_natural(c->conventions.m_unit, c->scale);
    const struct stage *m = &s->stage[asc_m];
    const double top = m->value[r] * m_natural;
    for (int col = 0; col < s->pad_cols; col++) {
        const double value = s->pad[(size_t)r * (size_t)s->pad_cols + (size_t)col] * s_natural;
        if (value == -INFINITY)
            continue;
        const double x = value - top, weight = exp(x);
        *sum += weight;
        *loose += weight * (bound_exp(x, local_folded(c, top)) + bound_expm1(m->loose[r] * fabs(m_natural)));
    }
}

/* l = alpha l_prev + sum p: (Bc + 6) roundings of the sum of magnitudes, and each operand's own uncertainty. */
void local_l(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *p = &s->stage[asc_p], *alpha = &s->stage[asc_alpha], *stage = &s->stage[asc_l];
    const int cols = s->kv_cols;
    for (int r = 0; r < stage->rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double factor = alpha->value[r], factor_loose = alpha->loose[r], before = s->l_prev[r];
        double want = factor * before;
        double size = fabs(want);
        double loose = factor_loose * fabs(before) + (fabs(factor) + factor_loose) * s->l_prev_loose[r];
        for (int col = 0; col < cols; col++) {
            const double weight = p->value[first + (size_t)col];
            want += weight;
            size += fabs(weight);
            loose += p->loose[first + (size_t)col];
        }
        double beyond = 0;
        add_padding(c, s, r, &beyond, &loose);
        want += beyond;
        size += beyond;
        stage->want[LOCAL][r] = statement(want);
        stage->bound[LOCAL][r] = bound_sum(c->bc) * (size + loose) + loose + (c->bc + 2) * BOUND_TINY;
    }
}

/* u = alpha u_prev + p v. */
void local_u(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *p = &s->stage[asc_p], *alpha = &s->stage[asc_alpha], *stage = &s->stage[asc_u];
    const int rows = stage->rows, cols = s->kv_cols, head_dim = c->head_dim;
    const double *v = s->stage[asc_v].value;
    double *want = stage->want[LOCAL], *bound = stage->bound[LOCAL], *size = s->sum_abs;
    for (int r = 0; r < rows; r++) {
        const double factor = alpha->value[r], factor_loose = alpha->loose[r];
        const size_t first = (size_t)r * (size_t)head_dim;
        for (size_t i = first; i < first + (size_t)head_dim; i++) {
            const double before = s->u_prev[i];
            want[i] = factor * before;
            size[i] = fabs(want[i]);
            bound[i] = factor_loose * fabs(before) + (fabs(factor) + factor_loose) * s->u_prev_loose[i];
        }
    }
    for (size_t i = 0; i < (size_t)rows * (size_t)cols; i++)
        s->abs_p[i] = fabs(p->value[i]);
    matrix_multiply(rows, head_dim, cols, 1, p->value, cols, v, head_dim, want, 1);
    matrix_multiply(rows, head_dim, cols, 1, s->abs_p, cols, s->use_v, head_dim, size, 1);
    if (!p->exact)
        matrix_multiply(rows, head_dim, cols, 1, p->loose, cols, s->use_v, head_dim, bound, 1);
    const double relative = bound_accumulate(c->bc), tiny = (c->bc + 2) * BOUND_TINY;
    for (size_t i = 0; i < (size_t)rows * (size_t)head_dim; i++) {
        want[i] = statement(want[i]);
        bound[i] += relative * (size[i] + bound[i]) + tiny;
    }
}

void local_advance(const struct oracle_case *c, struct judge_scratch *s)
{
    const size_t row_bytes = (size_t)c->in_q.rows * sizeof(double), value_bytes = row_bytes * (size_t)c->head_dim;
    memcpy(s->m_prev, s->stage[asc_m].value, row_bytes);
    memcpy(s->m_prev_loose, s->stage[asc_m].loose, row_bytes);
    memcpy(s->l_prev, s->stage[asc_l].value, row_bytes);
    memcpy(s->l_prev_loose, s->stage[asc_l].loose, row_bytes);
    memcpy(s->u_prev, s->stage[asc_u].value, value_bytes);
    memcpy(s->u_prev_loose, s->stage[asc_u].loose, value_bytes);
}

/* o = u / l, zero in a row without any key. With operands uncertain by du and dl the quotient moves by at most
   (du + |o| dl) / (|l| - dl). */
void local_o(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_o];
    for (int r = 0; r < stage->rows; r++) {
        const double l = s->l_prev[r], l_loose = s->l_prev_loose[r], least = fabs(l) - l_loose;
        const int empty = schedule_keys(c, r) == 0 && l == 0;
        for (int d = 0; d < stage->cols; d++) {
            const size_t i = (size_t)r * (size_t)stage->cols + (size_t)d;
            const double want = empty ? 0 : l != 0 ? statement(s->u_prev[i] / l) : NAN;
            const double moved = least > 0 ? (s->u_prev_loose[i] + fabs(want) * l_loose) / least : INFINITY;
            stage->want[LOCAL][i] = want;
            stage->bound[LOCAL][i] = empty ? 0 : bound_divide(want) + moved;
        }
    }
}

/* lse = m + ln l; l uncertain by dl moves ln l by at most -ln(1 - dl / l). */
void local_lse(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_lse];
    const double natural = values_natural(c->conventions.m_unit, c->scale);
    const double unit = c->conventions.lse_base2 ? M_LOG2E : 1;
    for (int r = 0; r < stage->rows; r++) {
        const double l = s->l_prev[r], m = s->m_prev[r] * natural, moved = s->l_prev_loose[r] / l;
        double want = NAN;
        double bound = 0;
        if (schedule_keys(c, r) == 0 && l == 0) {
            want = c->conventions.empty_lse_negative ? -INFINITY : INFINITY;
        } else if (l > 0) {
            const double ln_l = log(l);
            want = statement(m + ln_l);
            bound = bound_lse(m, ln_l, want) + s->m_prev_loose[r] * fabs(natural);
            bound += moved < 1 ? -log1p(-moved) : INFINITY;
        }
        stage->want[LOCAL][r] = want * unit;
        stage->bound[LOCAL][r] = bound * unit;
        if (c->conventions.lse_base2 && isfinite(want))
            stage->bound[LOCAL][r] += bound_convert(want * unit);
    }
}
