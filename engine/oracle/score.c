/* Scores: their product, soft cap and mask, and what m and P read of them. */
#include "engine/oracle/local.h"

#include "engine/base/vector.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/product.h"
#include "engine/oracle/score_mod.h"
#include "engine/oracle/values.h"

/* A value that float64 arithmetic could not give from finite operands makes no statement. */
static inline double statement(double x)
{
    return isfinite(x) ? x : NAN;
}

static double cap_score(const struct oracle_case *c, double x, double *bound)
{
    return score_capped(c->softcap, bound_tanh(c), x, bound);
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

/* A score gets its bias, in units of which one is `natural` natural ones. */
static double bias_score(const struct oracle_case *c, const struct operands *x, size_t i, double natural, double score,
                         double *bound)
{
    return score_biased(score, x->bias[i], x->bias_size[i], bias_terms(c), natural, bound);
}

/* What the formula of scores makes of them, as bias_score(). */
static double modify_score(const struct oracle_case *c, const struct operands *x, size_t i, double natural,
                           double score, double *bound)
{
    double off = *bound * fabs(natural);
    const int r = (int)(i / (size_t)x->cols), key = x->kv * c->bc + (int)(i % (size_t)x->cols);
    const double modified = score_mod_at(c, r, key, score * natural, &off);
    *bound = off / fabs(natural);
    return modified / natural;
}

static void modify_product(const struct oracle_case *c, const struct operands *x, const struct score_product *product)
{
    const double natural = values_natural_s(c);
    for (size_t i = 0; i < (size_t)c->in_q.rows * (size_t)x->cols; i++)
        product->want[i] = modify_score(c, x, i, natural, product->want[i], &product->bound[i]);
}

static void bias_product(const struct oracle_case *c, const struct operands *x, const struct score_product *product)
{
    const double natural = values_natural_s(c);
    for (size_t i = 0; i < (size_t)c->in_q.rows * (size_t)x->cols; i++)
        product->want[i] = bias_score(c, x, i, natural, product->want[i], &product->bound[i]);
}

VECTOR_UNITS static void close_scores(int n, double tiny, double *restrict want, double *restrict bound)
{
    for (int i = 0; i < n; i++) {
        want[i] = statement(want[i]);
        bound[i] += tiny;
    }
}

/* What the scales of codes may make of a small number. */
static double largest_scale(const struct operands *x, int rows)
{
    double row = 1;
    double col = 1;
    for (int r = 0; x->scales_s && r < rows; r++)
        row = fmax(row, x->by_q[r]);
    for (int i = 0; x->scales_s && i < x->cols; i++)
        col = fmax(col, x->by_k[i]);
    return row * col;
}

/* A product of codes of Q and K, or what belongs to one: it gets the scales of both. */
static void scale_rows_and_columns(const struct operands *x, int rows, double *out)
{
    for (int r = 0; x->scales_s && r < rows; r++)
        for (int col = 0; col < x->cols; col++)
            *out++ *= x->by_q[r] * x->by_k[col];
}

void local_score(const struct oracle_case *c, const struct operands *x, const struct room *room,
                 const struct score_product *product)
{
    const int rows = c->in_q.rows, cols = x->cols, head_dim = c->head_dim;
    const int accumulator = c->conventions.acc_s;
    const double tiny =
        product_tiny(accumulator, head_dim + 1) * fmax(1, fabs(product->factor) * largest_scale(x, rows));
    const double *size_q = product_sizes(accumulator, product->size_q, rows * head_dim, room->q);
    const double *size_k = product_sizes(accumulator, product->size_k, cols * head_dim, room->k);
    const double relative = product->relative + bound_factor(product->factor);
    const int keeps_masked = values_mask_later(c), is_value = c->conventions.s_masked == ASC_MASKED_VALUE;
    const double masked = is_value ? (double)c->conventions.s_masked_value : -INFINITY;
    if (product->k == room->shared.k.of)
        matrix_multiply_packed(rows, cols, head_dim, product->factor, product->q, room->shared.k.panels, product->want);
    else
        matrix_multiply_transposed(rows, cols, head_dim, product->factor, product->q, head_dim, product->k, head_dim,
                                   product->want, 0);
    magnitude_multiply_transposed(room, rows, cols, head_dim, fabs(product->factor) * relative, size_q, size_k,
                                  product->bound);
    scale_rows_and_columns(x, rows, product->want);
    scale_rows_and_columns(x, rows, product->bound);
    if (c->softcap > 0 && !values_capped_later(c))
        cap_product(c, product, (size_t)rows * (size_t)cols);
    if (c->score_mod && !values_biased_later(c))
        modify_product(c, x, product);
    const bool biased = bias_terms(c) && !values_biased_later(c);
    if (biased)
        bias_product(c, x, product);
    for (int r = 0; r < rows; r++) {
        const int first = keeps_masked ? 0 : x->hidden[r], last = keeps_masked ? cols : x->visible[r];
        double *want = product->want + (size_t)r * (size_t)cols;
        double *bound = product->bound + (size_t)r * (size_t)cols;
        for (int col = 0; col < first; col++)
            want[col] = masked, bound[col] = 0;
        close_scores(last - first, tiny, want + first, bound + first);
        for (int col = first; biased && col < last; col++)
            if (x->bias[(size_t)r * (size_t)cols + (size_t)col] == -INFINITY)
                want[col] = -INFINITY, bound[col] = 0;
        for (int col = first; x->mask && !keeps_masked && col < last; col++)
            if (!operands_see(x, r, col))
                want[col] = masked, bound[col] = 0;
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
void local_score_lossy(const struct oracle_case *c, const struct operands *x, const struct room *room,
                       const struct score_product *product)
{
    const int rows = c->in_q.rows, cols = x->cols, head_dim = c->head_dim;
    const double factor = fabs(product->factor);
    take_sizes(product->size_q, rows * head_dim, room->q);
    take_sizes(product->size_k, cols * head_dim, room->k);
    matrix_multiply_transposed(rows, cols, head_dim, factor, room->q, head_dim, room->k, head_dim, room->sum, 0);
    take_sizes(product->q, rows * head_dim, room->q);
    take_sizes(product->k, cols * head_dim, room->k);
    matrix_multiply_transposed(rows, cols, head_dim, -factor, room->q, head_dim, room->k, head_dim, room->sum, 1);
    scale_rows_and_columns(x, rows, room->sum);
    /* Capping makes differences smaller, but for a change of unit. */
    const double unit = values_natural(c->conventions.s_unit, c->scale) / values_natural_s(c);
    for (int i = 0; i < rows * cols; i++)
        if (product->bound[i] != 0)
            product->bound[i] += room->sum[i] * unit * BOUND_SLACK;
}

void local_s(const struct oracle_case *c, const struct operands *x, const struct room *room, struct expected out)
{
    const int unit = c->conventions.s_unit;
    const struct score_product product = {.q = x->of[asc_q].value,
                                          .k = x->of[asc_k].value,
                                          .size_q = x->size[asc_q],
                                          .size_k = x->size[asc_k],
                                          .factor = values_factor(unit, c->scale) / values_fold(c),
                                          .relative = product_score(c),
                                          .want = out.want,
                                          .bound = out.bound};
    local_score(c, x, room, &product);
    if (x->folds_unseen || x->unseen[asc_q] || x->unseen[asc_k])
        local_score_lossy(c, x, room, &product);
}

void local_use_scores(const struct oracle_case *c, struct operands *x, struct expected seen)
{
    const struct operand *s = &x->of[asc_s];
    const int converts = values_natural_later(c), mask = values_mask_later(c);
    x->s = *s;
    x->s_natural = values_natural_s(c);
    x->s_direct = c->conventions.s_unit == c->conventions.m_unit && !converts;
    if (!converts && !mask)
        return;
    local_see_scores(c, x, &(struct score_view){s->value, s->loose, seen.want, seen.bound});
    x->s.value = seen.want;
    x->s.loose = seen.bound;
    if (converts)
        x->s_natural = 1;
}

void local_see_scores(const struct oracle_case *c, const struct operands *x, const struct score_view *view)
{
    const int cols = x->cols, cap = values_capped_later(c), later = values_biased_later(c);
    const int converts = cap || later, mask = values_mask_later(c);
    const double natural = converts ? values_natural_s(c) : 1;
    for (int r = 0; r < c->in_q.rows; r++) {
        for (int col = 0; col < cols; col++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            double score = view->value[i];
            double loose = view->loose[i];
            if (mask && !operands_see(x, r, col)) {
                score = -INFINITY;
                loose = 0;
            } else if (converts && isfinite(score)) {
                score *= natural;
                loose = loose * natural + bound_folded_scales(c, score);
                if (cap)
                    score = cap_score(c, score, &loose);
                if (later && c->score_mod)
                    score = modify_score(c, x, i, 1, score, &loose);
                if (later && bias_terms(c))
                    score = bias_score(c, x, i, 1, score, &loose);
            }
            view->out[i] = score;
            view->out_loose[i] = loose;
        }
    }
}
