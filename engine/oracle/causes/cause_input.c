/* Causes of wrong Q, K and V. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
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
        k->want[i] = factor * k->tile->s->input[asc_q].value[i];
        k->bound[i] = 0;
    }
    cause_loosen(k, 3); /* the factor is rounded up to twice, the product once */
    return 1;
}

/* Where the rows from elsewhere are those of this very tile, it is right. */
static int q_from(const struct candidate *k, int other)
{
    const double factor = values_fold(k->tile->c);
    if (!cause_other_q(k, other, k->want)) {
        cause_right(k);
        return 1;
    }
    for (int i = 0; i < k->tile->c->in_q.rows * k->tile->c->head_dim; i++)
        k->want[i] *= factor;
    cause_bound_operand(k);
    if (factor != 1)
        cause_loosen(k, 3); /* the factor is rounded up to twice, the product once */
    return 1;
}

int cause_q_first_tile(struct candidate *k)
{
    return q_from(k, OTHER_Q_FIRST_TILE);
}

int cause_q_wrong_head(struct candidate *k)
{
    return q_from(k, (int)k->parameter);
}

static int exactly(const struct candidate *k, const double *x)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    memcpy(k->want, x, (size_t)stage->rows * (size_t)stage->cols * sizeof(double));
    cause_bound_operand(k);
    return 1;
}

static int previous_tile(const struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    const int kv = k->tile->visited[(int)k->parameter];
    cause_right(k); /* before the first tile there was nothing */
    return kv < 0 || (cause_operand_of_tile(k, k->channel, kv, other) && exactly(k, other));
}

/* The row that lies `by` beyond the head's edge: zeros where the kernel looks at kv_len, else what lies there in memory
   (another head, of this sequence or of the next), or the edge once more. What fits what was captured, as a guess. */
static void beyond_edge(const struct candidate *k, int by, int r, double *to)
{
    const int guess[] = {by > 0 ? OTHER_NEXT : OTHER_PREVIOUS, by > 0 ? OTHER_NEXT_BATCH : OTHER_PREVIOUS_BATCH,
                         OTHER_NONE};
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const double *got = stage->got + (size_t)r * (size_t)stage->cols;
    const int last = k->tile->c->kv_len - 1;
    double *room = k->tile->s->mistake.operand;
    const size_t bytes = (size_t)stage->cols * sizeof *to;
    for (size_t i = 0; i < sizeof guess / sizeof guess[0]; i++) {
        const int at = (by > 0) == (guess[i] != OTHER_NONE) ? 0 : last;
        if (cause_input_rows(k, k->channel, guess[i], at, room) && memcmp(room, got, bytes) == 0) {
            memcpy(to, room, bytes);
            return;
        }
    }
    memset(to, 0, bytes);
}

/* Row c holds the row of key c + by. */
static int row_moved(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const size_t cols = (size_t)stage->cols, n = (size_t)stage->rows * cols;
    const int by = k->parameter > 0 ? -1 : 1, first = k->tile->s->at.kv * k->tile->c->bc + by;
    const int before = first < 0; /* rows that lie before the head: 0 or 1 */
    double *room = k->tile->s->mistake.operand, *rival = k->tile->s->mistake.size;
    cause_input_rows(k, k->channel, OTHER_NONE, first + before, room);
    memcpy(k->want + (size_t)before * cols, room, n * sizeof *room - (size_t)before * cols * sizeof *room);
    for (int r = 0; r < stage->rows; r++) {
        const int is_key = first + r >= 0 && first + r < k->tile->c->kv_len;
        double *to = k->want + (size_t)r * cols;
        if (!is_key)
            beyond_edge(k, by, r, to);
        for (size_t col = 0; col < cols; col++)
            rival[(size_t)r * cols + col] = is_key ? NAN : to[col]; /* a guess tells nothing */
    }
    cause_bound_operand(k);
    k->rival = rival;
    return 1;
}

static int holds(const struct candidate *k, enum asc_channel ch)
{
    double *other = k->tile->s->mistake.operand;
    return cause_input_rows(k, ch, OTHER_NONE, k->tile->s->at.kv * k->tile->c->bc, other) && exactly(k, other);
}

static int wrong_head(const struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    return cause_operand_of_head(k, k->channel, k->parameter, other) && exactly(k, other);
}

static int permuted(const struct candidate *k, int n)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const size_t row_bytes = (size_t)stage->cols * sizeof(double);
    for (int r = 0; r < stage->rows; r++) {
        const int from = cause_permuted(k->parameter, r, n);
        double *to = k->want + (size_t)r * (size_t)stage->cols;
        if (from < stage->rows)
            memcpy(to, stage->want[LOCAL] + (size_t)from * (size_t)stage->cols, row_bytes);
        else
            memset(to, 0, row_bytes);
    }
    cause_bound_operand(k);
    return 1;
}

int cause_q_permuted(struct candidate *k)
{
    return permuted(k, k->tile->c->br);
}

int cause_k_previous_tile(struct candidate *k)
{
    return previous_tile(k);
}

int cause_k_next_tile(struct candidate *k)
{
    return cause_with_next(k, asc_k, exactly);
}

int cause_k_wrong_head(struct candidate *k)
{
    return wrong_head(k);
}

int cause_k_permuted(struct candidate *k)
{
    return permuted(k, k->tile->c->bc);
}

int cause_k_row_moved(struct candidate *k)
{
    return row_moved(k);
}

int cause_k_holds_v(struct candidate *k)
{
    return holds(k, asc_v);
}

int cause_v_previous_tile(struct candidate *k)
{
    return previous_tile(k);
}

int cause_v_next_tile(struct candidate *k)
{
    return cause_with_next(k, asc_v, exactly);
}

int cause_v_wrong_head(struct candidate *k)
{
    return wrong_head(k);
}

int cause_v_permuted(struct candidate *k)
{
    return permuted(k, k->tile->c->bc);
}

int cause_v_row_moved(struct candidate *k)
{
    return row_moved(k);
}

int cause_v_holds_k(struct candidate *k)
{
    return holds(k, asc_k);
}

/* The constant, times the scale of a code, is known to a part of the step of the type that the operand is used in: half
   of the elements have voted. */
static int moved(const struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const int first = k->channel == asc_q ? 0 : k->tile->s->at.kv * k->tile->c->bc;
    for (int i = 0; i < stage->rows * stage->cols; i++) {
        const double by = k->parameter * codes_step(k->tile->c, k->channel, first + i / stage->cols);
        k->want[i] = stage->want[LOCAL][i] + by;
        k->bound[i] = 0x1p-10 * fabs(by) + stage->bound[LOCAL][i];
    }
    return 1;
}

int cause_q_zero_point(struct candidate *k)
{
    return moved(k);
}

int cause_k_zero_point(struct candidate *k)
{
    return moved(k);
}

int cause_v_zero_point(struct candidate *k)
{
    return moved(k);
}
