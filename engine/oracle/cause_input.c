/* Causes of wrong Q, K and V. */
#include "engine/oracle/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/values.h"
#include <string.h>

int cause_q_folded(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    if ((int)k->parameter == c.conventions.q_fold)
        return 0;
    c.conventions.q_fold = (int)k->parameter;
    const double factor = values_fold(&c);
    for (int i = 0; i < c.in_q.rows * c.head_dim; i++) {
        k->want[i] = factor * k->tile->s->in_q[i];
        k->bound[i] = 0;
    }
    cause_loosen(k, 3); /* the factor is rounded up to twice, the product once */
    return 1;
}

static int exactly(const struct candidate *k, const double *x)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const size_t bytes = (size_t)stage->rows * (size_t)stage->cols * sizeof(double);
    memcpy(k->want, x, bytes);
    memset(k->bound, 0, bytes);
    return 1;
}

static int previous_tile(const struct candidate *k)
{
    double *other = k->tile->s->cause_operand;
    const int kv = k->tile->visited[(int)k->parameter];
    cause_right(k); /* before the first tile there was nothing */
    return kv < 0 || (cause_operand_of_tile(k, k->channel, kv, other) && exactly(k, other));
}

static int wrong_head(const struct candidate *k)
{
    double *other = k->tile->s->cause_operand;
    return cause_operand_of_head(k, k->channel, k->parameter, other) && exactly(k, other);
}

static int permuted(const struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const size_t row_bytes = (size_t)stage->cols * sizeof(double);
    memset(k->bound, 0, row_bytes * (size_t)stage->rows);
    for (int r = 0; r < stage->rows; r++) {
        const int from = cause_permuted(k->parameter, r, k->tile->c->bc);
        double *to = k->want + (size_t)r * (size_t)stage->cols;
        if (from < stage->rows)
            memcpy(to, stage->want[LOCAL] + (size_t)from * (size_t)stage->cols, row_bytes);
        else
            memset(to, 0, row_bytes);
    }
    return 1;
}

int cause_k_previous_tile(struct candidate *k)
{
    return previous_tile(k);
}

int cause_k_wrong_head(struct candidate *k)
{
    return wrong_head(k);
}

int cause_k_permuted(struct candidate *k)
{
    return permuted(k);
}

int cause_v_previous_tile(struct candidate *k)
{
    return previous_tile(k);
}

int cause_v_wrong_head(struct candidate *k)
{
    return wrong_head(k);
}

int cause_v_permuted(struct candidate *k)
{
    return permuted(k);
}

/* The constant is known to a part of the step of the type that V is used in: half of the elements have voted. */
int cause_v_zero_point(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_v];
    for (int i = 0; i < stage->rows * stage->cols; i++) {
        k->want[i] = stage->want[LOCAL][i] + k->parameter;
        k->bound[i] = 0x1p-10 * fabs(k->parameter);
    }
    return 1;
}
