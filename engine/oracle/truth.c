#include "engine/oracle/truth.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <string.h>

/* ln of the largest f32 is 88.7: frames further apart than this lose one another's values. */
#define FRAME_REACH 80.0

/* Loads rows first .. first + rows - 1 of an input and their magnitudes, to the same rows of out and size. Where the
   kernel converts it to a narrower type before use, a correct one works on values up to half a step away: the magnitude
   includes that. Returns 1 if so. */
static int load_input(const struct matrix *input, const struct matrix *captured, int first, int rows, double *out,
                      double *size)
{
    double unit = 0;
    double half_tiny = 0;
    const int lossy =
        captured->data && captured->dtype != input->dtype && bound_narrow(captured->dtype, &unit, &half_tiny);
    const double grown = lossy ? 1 + unit : 1, more = lossy ? half_tiny : 0;
    const size_t at = (size_t)first * (size_t)input->cols, n = (size_t)rows * (size_t)input->cols;
    struct matrix part = *input;
    part.rows = rows;
    part.data = (const unsigned char *)input->data + (size_t)(first * input->row_stride) * dtype_bytes(input->dtype);
    values_load(&part, out + at);
    for (size_t i = at; i < at + n; i++)
        size[i] = fabs(out[i]) * grown + more;
    return lossy;
}

static int load_q(const struct oracle_case *c, struct judge_scratch *s)
{
    return load_input(&c->in_q, &c->captured[asc_q], 0, c->in_q.rows, s->in_q, s->size_q);
}

void truth_inputs(const struct oracle_case *c, struct judge_scratch *s)
{
    const int lossy_q = load_q(c, s);
    const int lossy_k = load_input(&c->in_k, &c->captured[asc_k], 0, c->kv_len, s->in_k, s->size_k);
    s->lossy_qk = lossy_q || lossy_k;
    s->lossy_v = load_input(&c->in_v, &c->captured[asc_v], 0, c->kv_len, s->in_v, s->size_v);
}

void truth_tile_inputs(const struct oracle_case *c, struct judge_scratch *s)
{
    const int lossy_q = load_q(c, s);
    s->lossy_qk = load_input(&c->in_k, &c->captured[asc_k], s->kv * c->bc, s->kv_cols, s->in_k, s->size_k) || lossy_q;
}

void truth_begin(const struct oracle_case *c, struct judge_scratch *s)
{
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim;
    for (size_t r = 0; r < rows; r++) {
        s->max[r] = -INFINITY;
        s->frame[r] = -INFINITY;
        s->max_bound[r] = 0;
        s->frame_loose[r] = 0;
        s->sum[r] = 0;
        s->sum_error[r] = 0;
    }
    memset(s->out, 0, values * sizeof(double));
    memset(s->out_size, 0, values * sizeof(double));
    memset(s->out_error, 0, values * sizeof(double));
}

void truth_s(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *stage = &s->stage[asc_s];
    const int unit = c->conventions.s_unit, rows = c->in_q.rows, cols = s->kv_cols, head_dim = c->head_dim;
    const size_t n = (size_t)rows * (size_t)cols, first = (size_t)s->kv * (size_t)c->bc * (size_t)head_dim;
    if (s->exact_q && s->exact_k) {
        /* The captured operands are the inputs: local_s has computed this. */
        memcpy(stage->want[GLOBAL], stage->want[LOCAL], n * sizeof(double));
        memcpy(stage->bound[GLOBAL], stage->bound[LOCAL], n * sizeof(double));
        return;
    }
    struct score_product product = {.q = s->in_q,
                                    .k = s->in_k + first,
                                    .size_q = s->size_q,
                                    .size_k = s->size_k + first,
                                    .factor = values_factor(unit, c->scale),
                                    .relative = bound_score(head_dim, unit),
                                    .want = stage->want[GLOBAL],
                                    .bound = stage->bound[GLOBAL]};
    local_score(c, s, &product);
    if (!s->lossy_qk)
        return;
    /* Operands off by dq and dk move the product by at most sum (|q| + dq)(|k| + dk) - sum |q| |k|. */
    for (int i = 0; i < rows * head_dim; i++)
        s->spare_q[i] = fabs(s->in_q[i]);
    for (int i = 0; i < cols * head_dim; i++)
        s->spare_k[i] = fabs(product.k[i]);
    const double factor = fabs(product.factor);
    matrix_multiply_transposed(rows, cols, head_dim, factor, s->size_q, head_dim, product.size_k, head_dim, s->sum_abs,
                               0);
    matrix_multiply_transposed(rows, cols, head_dim, -factor, s->spare_q, head_dim, s->spare_k, head_dim, s->sum_abs,
                               1);
    for (size_t i = 0; i < n; i++)
        if (product.want[i] != -INFINITY)
            product.bound[i] += s->sum_abs[i] * BOUND_SLACK;
}

/* The running maximum of the true scores, and of their bounds; want and bound of m. */
static void take_maximum(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *score = &s->stage[asc_s];
    struct stage *stage = &s->stage[asc_m];
    const int cols = s->kv_cols, to = c->conventions.m_unit;
    const double natural = values_natural(c->conventions.s_unit, c->scale), back = values_natural(to, c->scale);
    for (int r = 0; r < stage->rows; r++) {
        const double *x = score->want[GLOBAL] + (size_t)r * (size_t)cols;
        const double *bound = score->bound[GLOBAL] + (size_t)r * (size_t)cols;
        double top = s->max[r];
        double top_bound = s->max_bound[r];
        s->max_prev[r] = top;
        s->max_bound_prev[r] = top_bound;
        for (int col = 0; col < s->visible[r]; col++) {
            top = fmax(top, x[col] * natural);
            top_bound = fmax(top_bound, bound[col] * fabs(natural));
        }
        s->max[r] = top;
        s->max_bound[r] = top_bound;
        double want = top == -INFINITY ? top : top / back;
        stage->want[GLOBAL][r] = want;
        stage->bound[GLOBAL][r] = top == -INFINITY ? 0 : top_bound / fabs(back) + BOUND_SLACK * 0x1p-50 * fabs(want);
        if (c->conventions.s_unit != to && top != -INFINITY)
            stage->bound[GLOBAL][r] += bound_convert(want);
    }
}

/* The frame of each row: the captured m where it can serve. */
static void take_frame(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_m];
    const double natural = values_natural(c->conventions.m_unit, c->scale);
    for (int r = 0; r < stage->rows; r++) {
        const double top = s->max[r];
        const double captured = stage->recorded ? stage->value[r] * natural : NAN;
        s->frame_prev[r] = s->frame[r];
        if (fabs(captured - top) <= FRAME_REACH) {
            s->frame[r] = captured;
            s->frame_loose[r] = bound_expm1(stage->loose[r] * fabs(natural));
        } else {
            /* Not recorded: a correct kernel's frame is its own maximum, within the bound of m. Absurd: the verdict on
               what stands on it need not be gentle. */
            s->frame[r] = top;
            s->frame_loose[r] = stage->recorded ? 0 : bound_expm1(s->max_bound[r]);
        }
    }
}

static void truth_alpha(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *stage = &s->stage[asc_alpha];
    for (int r = 0; r < stage->rows; r++) {
        double want = c->conventions.alpha_first;
        double bound = 0;
        s->decay[r] = 0;
        s->decay_error[r] = 0;
        if (s->max_prev[r] != -INFINITY) {
            const double x = s->max_prev[r] - s->max[r];
            want = exp(x);
            bound = want * (bound_exp(x, local_folded(c, s->max[r])) +
                            bound_expm1(s->max_bound_prev[r] + s->max_bound[r])) +
                    BOUND_TINY;
            /* The alpha of this run goes from frame to frame; its underflow is seen from the frame of max. */
            const double step = s->frame_prev[r] - s->frame[r];
            s->decay[r] = want;
            s->decay_error[r] = want * bound_exp(step, local_folded(c, s->frame[r])) +
                                BOUND_TINY * exp(s->max_prev[r] - s->frame_prev[r] - (s->max[r] - s->frame[r]));
        }
        stage->want[GLOBAL][r] = want;
        stage->bound[GLOBAL][r] = bound;
    }
}

/* Weights of the tile: w and its error relative to max, p in the frame; and the running sum. */
static void truth_p_l(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *score = &s->stage[asc_s];
    struct stage *p = &s->stage[asc_p], *l = &s->stage[asc_l];
    const int cols = s->kv_cols;
    const double natural = values_natural(c->conventions.s_unit, c->scale), relative = bound_sum(c->bc);
    for (int r = 0; r < p->rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double top = s->max[r], frame = s->frame[r], loose = s->frame_loose[r];
        const double shift = top == -INFINITY ? 1 : exp(top - frame), folded = local_folded(c, frame);
        const double tiny = BOUND_TINY / shift;
        double sum = s->decay[r] * s->sum[r];
        double error = (s->decay[r] + s->decay_error[r]) * s->sum_error[r] + s->decay_error[r] * s->sum[r];
        for (int col = 0; col < cols; col++) {
            const size_t i = first + (size_t)col;
            double weight = 0;
            double weight_error = 0;
            if (col < s->visible[r]) {
                const double x = score->want[GLOBAL][i] * natural, off = score->bound[GLOBAL][i] * fabs(natural);
                weight = exp(x - top);
                weight_error = weight * bound_expm1(off + bound_exp(fabs(x - frame) + off, folded)) + tiny;
            }
            s->weight[i] = weight;
            s->weight_error[i] = weight_error;
            p->want[GLOBAL][i] = weight * shift;
            p->bound[GLOBAL][i] = (weight_error + loose * weight) * shift;
            sum += weight;
            error += weight_error;
        }
        error += relative * (sum + error);
        s->sum[r] = sum;
        s->sum_error[r] = error;
        l->want[GLOBAL][r] = sum * shift;
        l->bound[GLOBAL][r] = (error + loose * sum) * shift + c->bc * BOUND_TINY;
    }
}

static void truth_u(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *stage = &s->stage[asc_u];
    const int rows = stage->rows, cols = s->kv_cols, head_dim = c->head_dim;
    const size_t first_key = (size_t)s->kv * (size_t)c->bc * (size_t)head_dim;
    const double *v = s->in_v + first_key, *size_v = s->size_v + first_key;
    const double relative = bound_accumulate(c->bc);
    for (int r = 0; r < rows; r++) {
        const double decay = s->decay[r], decay_error = s->decay_error[r];
        const size_t first = (size_t)r * (size_t)head_dim;
        for (size_t i = first; i < first + (size_t)head_dim; i++) {
            s->out_error[i] = (decay + decay_error) * s->out_error[i] + decay_error * s->out_size[i];
            s->out_size[i] *= decay;
            s->out[i] *= decay;
        }
    }
    matrix_multiply(rows, head_dim, cols, 1, s->weight, cols, v, head_dim, s->out, 1);
    matrix_multiply(rows, head_dim, cols, 1, s->weight, cols, size_v, head_dim, s->out_size, 1);
    matrix_multiply(rows, head_dim, cols, 1, s->weight_error, cols, size_v, head_dim, s->out_error, 1);
    if (s->lossy_v) {
        /* What converting V may have cost: w (size - |v|). */
        for (int i = 0; i < cols * head_dim; i++)
            s->spare_k[i] = size_v[i] - fabs(v[i]);
        matrix_multiply(rows, head_dim, cols, BOUND_SLACK, s->weight, cols, s->spare_k, head_dim, s->out_error, 1);
    }
    for (int r = 0; r < rows; r++) {
        const double shift = s->max[r] == -INFINITY ? 1 : exp(s->max[r] - s->frame[r]), loose = s->frame_loose[r];
        const size_t first = (size_t)r * (size_t)head_dim;
        for (size_t i = first; i < first + (size_t)head_dim; i++) {
            s->out_error[i] += relative * (s->out_size[i] + s->out_error[i]);
            stage->want[GLOBAL][i] = s->out[i] * shift;
            stage->bound[GLOBAL][i] = (s->out_error[i] + loose * s->out_size[i]) * shift + c->bc * BOUND_TINY;
        }
    }
}

void truth_tile(const struct oracle_case *c, struct judge_scratch *s)
{
    take_maximum(c, s);
    take_frame(c, s);
    truth_alpha(c, s);
    truth_p_l(c, s);
    truth_u(c, s);
}

void truth_end(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *o = &s->stage[asc_o], *lse = &s->stage[asc_lse];
    const double unit = c->conventions.lse_base2 ? M_LOG2E : 1;
    for (int r = 0; r < o->rows; r++) {
        const int empty = schedule_keys(c, r) == 0;
        const double sum = s->sum[r], error = s->sum_error[r], least = sum - error;
        for (int d = 0; d < o->cols; d++) {
            const size_t i = (size_t)r * (size_t)o->cols + (size_t)d;
            const double want = empty ? 0 : s->out[i] / sum;
            const double moved = least > 0 ? (s->out_error[i] + fabs(want) * error) / least : INFINITY;
            o->want[GLOBAL][i] = want;
            o->bound[GLOBAL][i] = empty ? 0 : bound_divide(want) + moved;
        }
        if (empty) {
            lse->want[GLOBAL][r] = c->conventions.empty_lse_negative ? -INFINITY : INFINITY;
            lse->bound[GLOBAL][r] = 0;
            continue;
        }
        const double ln_sum = log(sum), frame = s->frame[r], want = s->max[r] + ln_sum;
        const double own = bound_lse(frame, s->max[r] - frame + ln_sum, want);
        lse->want[GLOBAL][r] = want * unit;
        lse->bound[GLOBAL][r] = (own + (least > 0 ? -log1p(-error / sum) : INFINITY)) * unit;
        if (c->conventions.lse_base2)
            lse->bound[GLOBAL][r] += bound_convert(want * unit);
    }
}
