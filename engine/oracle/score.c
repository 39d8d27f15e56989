/* Scores: their product, soft cap and mask, and what m and P read of them. */
#include "engine/oracle/local.h"

#include "engine/base/vector.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"

/* A value that float64 arithmetic could not give from finite operands makes no statement. */
static inline double statement(double x)
{
    return isfinite(x) ? x : NAN;
}

/* x, in natural units and uncertain by *bound, behind the soft cap: x' = cap tanh(x / cap). tanh is steepest at the end
   of the interval nearest 0, where its slope is 1 - tanh^2. */
static double cap_score(const struct oracle_case *c, double x, double *bound)
{
    const double capped = c->softcap * tanh(x / c->softcap);
    const double flat = tanh(fmax(0, fabs(x) - *bound) / c->softcap);
    *bound = fmin((1 - flat * flat) * *bound, 2 * c->softcap) + bound_tanh(c) * fabs(capped) + 2 * BOUND_TINY;
    return capped;
}

static void cap_product(const struct oracle_case *c, const struct score_product *product, size_t n)
{
    const double before = values_natural(c->conventions.s_unit, c->scale), after = values_natural_s(c);
    for (size_t i = 0; i < n; i++) {
        double bound = product->bound[i] * before;
        product->want[i] = cap_score(c, product->want[i] * before, &bound) / after;
        product->bound[i] = bound / after;
    }
}

/* A score gets its bias, both counted in units of which one is `natural` natural ones. A bias of -inf hides the key. */
static double bias_score(const struct oracle_case *c, const struct judge_scratch *s, size_t i, double natural, double x,
                         double *bound)
{
    const double size = s->bias_size[i] / fabs(natural);
    if (s->bias[i] == -INFINITY) {
        *bound = 0;
        return -INFINITY;
    }
    *bound += bound_bias(x, size, bias_terms(c));
    return x + s->bias[i] / natural;
}

static void bias_product(const struct oracle_case *c, const struct judge_scratch *s,
                         const struct score_product *product)
{
    const double natural = values_natural_s(c);
    for (size_t i = 0; i < (size_t)c->in_q.rows * (size_t)s->kv_cols; i++)
        product->want[i] = bias_score(c, s, i, natural, product->want[i], &product->bound[i]);
}

VECTOR_UNITS static void close_scores(int n, double tiny, double *restrict want, double *restrict bound)
{
    for (int i = 0; i < n; i++) {
        want[i] = statement(want[i]);
        bound[i] += tiny;
    }
}

/* What the scales of codes may make of a small number. */
static double largest_scale(const struct judge_scratch *s)
{
    double row = 1;
    double col = 1;
    for (int r = 0; s->scales_s && r < s->stage[asc_q].rows; r++)
        row = fmax(row, s->by_q[r]);
    for (int i = 0; s->scales_s && i < s->kv_cols; i++)
        col = fmax(col, s->by_k[i]);
    return row * col;
}

/* A product of codes of Q and K, or what belongs to one: it gets the scales of both. */
static void scale_rows_and_columns(const struct judge_scratch *s, int rows, double *x)
{
    for (int r = 0; s->scales_s && r < rows; r++)
        for (int col = 0; col < s->kv_cols; col++)
            *x++ *= s->by_q[r] * s->by_k[col];
}

void local_score(const struct oracle_case *c, struct judge_scratch *s, const struct score_product *product)
{
    const int rows = c->in_q.rows, cols = s->kv_cols, head_dim = c->head_dim;
    const int accumulator = c->conventions.acc_s;
    const double tiny = product_tiny(accumulator, head_dim + 1) * fmax(1, fabs(product->factor) * largest_scale(s));
    const double *size_q = product_sizes(accumulator, product->size_q, rows * head_dim, s->spare_q);
    const double *size_k = product_sizes(accumulator, product->size_k, cols * head_dim, s->spare_k);
    const double relative = product->relative + bound_factor(product->factor);
    const int keeps_masked = values_mask_later(c), is_value = c->conventions.s_masked == ASC_MASKED_VALUE;
    const double masked = is_value ? (double)c->conventions.s_masked_value : -INFINITY;
    matrix_multiply_transposed(rows, cols, head_dim, product->factor, product->q, head_dim, product->k, head_dim,
                               product->want, 0);
    magnitude_multiply_transposed(s, rows, cols, head_dim, fabs(product->factor) * relative, size_q, size_k,
                                  product->bound);
    scale_rows_and_columns(s, rows, product->want);
    scale_rows_and_columns(s, rows, product->bound);
    if (c->softcap > 0 && !values_capped_later(c))
        cap_product(c, product, (size_t)rows * (size_t)cols);
    const int biased = bias_terms(c) && !values_biased_later(c);
    if (biased)
        bias_product(c, s, product);
    for (int r = 0; r < rows; r++) {
        const int first = keeps_masked ? 0 : s->hidden[r], last = keeps_masked ? cols : s->visible[r];
        double *want = product->want + (size_t)r * (size_t)cols;
        double *bound = product->bound + (size_t)r * (size_t)cols;
        for (int col = 0; col < first; col++)
            want[col] = masked, bound[col] = 0;
        close_scores(last - first, tiny, want + first, bound + first);
        for (int col = first; biased && col < last; col++)
            if (s->bias[(size_t)r * (size_t)cols + (size_t)col] == -INFINITY)
                want[col] = -INFINITY, bound[col] = 0;
        for (int col = last; col < cols; col++)
            want[col] = masked, bound[col] = 0;
    }
}

static void take_sizes(const double *x, int n, double *size)
{
    for (int i = 0; i < n; i++)
        size[i] = fabs(x[i]);
}

/* Operands off by dq and dk move the product by at most sum (|q| + dq)(|k| + dk) - sum |q| |k|; sizes include dq, dk.
 */
void local_score_lossy(const struct oracle_case *c, struct judge_scratch *s, const struct score_product *product)
{
    const int rows = c->in_q.rows, cols = s->kv_cols, head_dim = c->head_dim;
    const double factor = fabs(product->factor);
    take_sizes(product->size_q, rows * head_dim, s->spare_q);
    take_sizes(product->size_k, cols * head_dim, s->spare_k);
    matrix_multiply_transposed(rows, cols, head_dim, factor, s->spare_q, head_dim, s->spare_k, head_dim, s->sum_abs, 0);
    take_sizes(product->q, rows * head_dim, s->spare_q);
    take_sizes(product->k, cols * head_dim, s->spare_k);
    matrix_multiply_transposed(rows, cols, head_dim, -factor, s->spare_q, head_dim, s->spare_k, head_dim, s->sum_abs,
                               1);
    scale_rows_and_columns(s, rows, s->sum_abs);
    /* Capping makes differences smaller, but for a change of unit. */
    const double unit = values_natural(c->conventions.s_unit, c->scale) / values_natural_s(c);
    for (int i = 0; i < rows * cols; i++)
        if (product->bound[i] != 0)
            product->bound[i] += s->sum_abs[i] * unit * BOUND_SLACK;
}

void local_s(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_s];
    const int unit = c->conventions.s_unit;
    const struct score_product product = {.q = s->stage[asc_q].value,
                                          .k = s->stage[asc_k].value,
                                          .size_q = s->use_q,
                                          .size_k = s->use_k,
                                          .factor = values_factor(unit, c->scale) / values_fold(c),
                                          .relative = product_score(c),
                                          .want = stage->want[LOCAL],
                                          .bound = stage->bound[LOCAL]};
    local_score(c, s, &product);
    if (s->folds_unseen || s->unseen_q || s->unseen_k)
        local_score_lossy(c, s, &product);
}

void local_use_scores(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_s];
    const int converts = values_natural_later(c), mask = values_mask_later(c);
    s->use_s = stage->value;
    s->use_s_loose = stage->loose;
    s->use_s_natural = values_natural_s(c);
    s->use_s_direct = c->conventions.s_unit == c->conventions.m_unit && !converts;
    if (!converts && !mask)
        return;
    local_see_scores(c, s, &(struct score_view){stage->value, stage->loose, s->scores, s->scores_loose});
    s->use_s = s->scores;
    s->use_s_loose = s->scores_loose;
    if (converts)
        s->use_s_natural = 1;
}

void local_see_scores(const struct oracle_case *c, const struct judge_scratch *s, const struct score_view *view)
{
    const int cols = s->kv_cols, cap = values_capped_later(c), bias = values_biased_later(c);
    const int converts = cap || bias, mask = values_mask_later(c);
    const double natural = converts ? values_natural_s(c) : 1;
    for (int r = 0; r < c->in_q.rows; r++) {
        for (int col = 0; col < cols; col++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            double x = view->value[i];
            double loose = view->loose[i];
            if (mask && (col < s->hidden[r] || col >= s->visible[r])) {
                x = -INFINITY;
                loose = 0;
            } else if (converts && isfinite(x)) {
                x *= natural;
                loose = loose * natural + bound_folded_scales(c, x);
                if (cap)
                    x = cap_score(c, x, &loose);
                if (bias)
                    x = bias_score(c, s, i, 1, x, &loose);
            }
            view->out[i] = x;
            view->out_loose[i] = loose;
        }
    }
}
