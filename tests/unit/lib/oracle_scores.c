/* The test kernel: its products, masks, units and scores. */
#include "tests/unit/lib/oracle_parts.h"

float sum_products(const struct spec *s, const float *a, const float *b, int n, ptrdiff_t stride_b, float start)
{
    float lanes[4] = {0};
    float sum = start;
    if (s->summing == SUM_LANES) {
        for (int i = 0; i < n; i++)
            lanes[i & 3] += a[i] * b[i * stride_b];
        return start + ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
    }
    for (int i = 0; i < n; i++) {
        const int at = s->summing == SUM_FORWARD ? i : n - 1 - i;
        sum += a[at] * b[at * stride_b];
    }
    return sum;
}

int run_sees(const struct spec *s, int row, int key)
{
    const int i = s->q_tile * s->br + row + (s->mistake == S_CAUSAL_OFF_BY_ONE);
    const int diagonal = s->causal == ASC_CAUSAL_TOP_LEFT ? i : i + s->kv_len - s->q_len;
    const int left = s->window_left + (s->mistake == WINDOW_OFF_BY_ONE);
    if (key >= s->kv_len || (s->causal != ASC_CAUSAL_NONE && key > diagonal))
        return 0;
    return !s->has_window || ((s->window_left < 0 || key >= diagonal - left) &&
                              (s->window_right < 0 || key <= diagonal + s->window_right));
}

int run_tile_masked(const struct spec *s, int kv, int rows)
{
    for (int r = 0; r < rows; r++)
        for (int col = 0; col < s->bc; col++)
            if (run_sees(s, r, kv * s->bc + col))
                return 0;
    return 1;
}

float run_natural(int unit, float top)
{
    return unit == ASC_UNIT_RAW ? top : unit == ASC_UNIT_LOG2 ? (float)M_LN2 : 1;
}

float run_fold(const struct kernel_run *run)
{
    const int fold = run->spec.conventions.q_fold;
    return fold == ASC_FOLD_NONE ? 1 : fold == ASC_FOLD_SCALE ? run->scale : run->scale * (float)M_LOG2E;
}

float run_top(const struct kernel_run *run)
{
    return run->spec.softcap > 0 ? run->spec.softcap : run_folded_scale(run);
}

float run_in_unit(const struct kernel_run *run, float x, int unit)
{
    return unit == ASC_UNIT_RAW ? x / run_top(run) : unit == ASC_UNIT_LOG2 ? x * (float)M_LOG2E : x;
}

/* FlashAttention-2's ALiBi, from its definition: the column, where a causal row sees all keys up to its diagonal. */
static float run_alibi(const struct kernel_run *run, int row, int key)
{
    const struct spec *s = &run->spec;
    const int i = s->q_tile * s->br + row, bottom_right = i + s->kv_len - s->q_len;
    const int top_left = (s->causal == ASC_CAUSAL_TOP_LEFT) != (s->wrong_term == ALIBI_TOP_LEFT);
    const int right = s->causal != ASC_CAUSAL_NONE ? 0 : s->has_window ? s->window_right : -1;
    const int left = s->has_window && s->window_left < s->kv_len ? s->window_left : -1;
    const float slope = s->alibi_slope * (s->wrong_term == ALIBI_SIGN         ? -1
                                          : s->wrong_term == ALIBI_NEXT_SLOPE ? 0.5f
                                                                              : 1);
    if (s->conventions.alibi_form == ASC_ALIBI_FLASH && right == 0 && left < 0)
        return run_in_unit(run, slope, s->conventions.s_unit) * (float)key;
    return -run_in_unit(run, slope, s->conventions.s_unit) * (float)abs((top_left ? i : bottom_right) - key);
}

float run_biased(const struct kernel_run *run, float score, int row, int key)
{
    const struct spec *s = &run->spec;
    const int i = (s->q_tile * s->br + row + (s->wrong_term == BIAS_NEXT_ROW)) % s->q_len;
    if (s->wrong_term == BIAS_FORGOTTEN || key >= s->kv_len)
        return score;
    if (s->alibi_slope != 0 && s->wrong_term != ALIBI_FORGOTTEN)
        score += run_alibi(run, row, key);
    if (run->bias && s->wrong_term == BIAS_SCALED)
        score += run->scale * run->bias[(ptrdiff_t)i * s->kv_len + key];
    else if (run->bias && s->wrong_term == BIAS_DIVIDED)
        score += run->bias[(ptrdiff_t)i * s->kv_len + key] / run->scale;
    else if (run->bias)
        score += run_in_unit(
            run, run->bias[((ptrdiff_t)i + (s->wrong_term == BIAS_OTHER_HEAD ? s->q_len : 0)) * s->kv_len + key],
            s->conventions.s_unit);
    return score;
}

float run_cap(const struct kernel_run *run, float score)
{
    const struct spec *s = &run->spec;
    if (!(s->softcap > 0) || s->mistake == SOFTCAP_FORGOTTEN)
        return score;
    const float x = score * run_natural(s->conventions.s_unit, run_folded_scale(run));
    const float capped = (float)(tanh((double)(x / s->softcap)) * (1 + s->tanh_error));
    if (s->conventions.s_unit == ASC_UNIT_RAW)
        return capped;
    return s->softcap * capped * (s->conventions.s_unit == ASC_UNIT_LOG2 ? (float)M_LOG2E : 1);
}

void *run_operand(enum dtype t, const float *x, int rows, int n, ptrdiff_t row_stride, ptrdiff_t stride,
                  struct tensor_core_operand *out)
{
    uint64_t *codes = calloc((size_t)rows * (size_t)n + 1, sizeof *codes);
    void *room = aligned_alloc(32, tensor_core_room(rows, n));
    for (int i = 0; i < rows * n; i++)
        dtype_store(t, codes, (size_t)i, (double)x[i / n * row_stride + i % n * stride]);
    tensor_core_take(out, room, t, codes, rows, n, n, 1);
    free(codes);
    return room;
}

void run_product(enum tensor_core core, enum dtype t, const float *x, int n, const struct tensor_core_operand *b,
                 const float *start, float *out)
{
    struct tensor_core_operand a;
    void *room = run_operand(t, x, 1, n, n, 1, &a);
    tensor_core_product(core, &a, b, start, b->rows, out, b->rows);
    free(room);
}

float run_score(const struct kernel_run *run, const float *q, const float *k, const float *dots, int row, int col,
                int kv)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    const float *a = q + row * D, *b = k + col * D;
    const int unit = s->conventions.s_unit;
    const float factor = (unit == ASC_UNIT_RAW    ? 1
                          : unit == ASC_UNIT_LOG2 ? run->scale * (float)M_LOG2E
                                                  : run->scale) /
                         run_fold(run);
    float other[512];
    float dot = 0;
    switch (dots ? RIGHT : s->mistake) {
    case S_K_NOT_TRANSPOSED:
        return factor * sum_products(s, a, k + col, D, D, 0);
    case S_LAST_PRODUCT:
        return factor * sum_products(s, a, b, D - 1, 1, 0);
    case S_HALF_OF_D:
        return factor * sum_products(s, a, b, D / 2, 1, 0);
    case S_NEXT_KEY:
        return factor * sum_products(s, a, k + (col + 1) % s->bc * D, D, 1, 0);
    case S_RESULT_TRANSPOSED:
        return factor * sum_products(s, q + col % s->br * D, k + row % s->bc * D, D, 1, 0);
    case S_NEIGHBOR_TILE:
        for (int d = 0; d < D; d++)
            other[d] = (float)dtype_load(s->dtype, run->k, (size_t)(((kv + 1) * s->bc + col) % s->kv_len * D + d));
        return factor * sum_products(s, a, other, D, 1, 0);
    case S_Q_ROUNDED_BF16:
        for (int d = 0; d < D; d++)
            other[d] = round_to(DTYPE_BF16, a[d]);
        return factor * sum_products(s, other, b, D, 1, 0);
    case S_F16_ACCUMULATOR:
        for (int d = 0; d < D; d++)
            dot = round_to(DTYPE_F16, dot + a[d] * b[d]);
        return factor * dot;
    default:
        dot = dots ? dots[col] : sum_products(s, a, b, D, 1, 0);
    }
    if (s->counts_from_zero) {
        float other_q[512];
        for (int d = 0; d < D; d++) {
            other_q[d] = a[d] + (s->counts_from_zero & 1 ? ASC_U8_MIDPOINT : 0);
            other[d] = b[d] + (s->counts_from_zero & 2 ? ASC_U8_MIDPOINT : 0);
        }
        dot = sum_products(s, other_q, other, D, 1, 0);
    }
    if (s->core - 1 == TENSOR_CORE_H100_F16)
        return round_to(DTYPE_F16, dot * factor);
    switch (s->mistake) {
    case S_SCALED_TWICE:
        return dot * factor * run->scale;
    case S_SCALED_THRICE:
        return dot * factor * run->scale * run->scale;
    case S_NOT_SCALED:
        return dot;
    case S_SCALE_AND_HALF:
        return dot * (factor * 1.5f);
    case S_SIGN:
        return -dot * factor;
    case S_ROUNDED_F16:
        return round_to(DTYPE_F16, dot * factor);
    case S_PLUS_MILLI:
        return dot * factor + 1e-3f;
    case S_ABSOLUTE:
        return fabsf(dot) * factor;
    case S_SQUARED:
        return dot * dot * factor;
    default:
        return run_scale_of_score(run, dot, factor, row, kv * s->bc + col);
    }
}

float run_exp(const struct kernel_run *run, float x, int unit, float y)
{
    const float scale_log2 = run_top(run) * (float)M_LOG2E;
    const double error = 1 + run->spec.exp_error;
    if (unit == ASC_UNIT_RAW)
        return (float)(exp2((double)(x * scale_log2 - y * scale_log2)) * error);
    if (unit == ASC_UNIT_SCALED && run->spec.folded)
        return exp2f(fmaf(x, (float)M_LOG2E, -(y * (float)M_LOG2E)));
    return (float)((unit == ASC_UNIT_LOG2 ? exp2((double)(x - y)) : exp((double)(x - y))) * error);
}

enum dtype run_dtype(const struct spec *s, enum asc_channel ch)
{
    if (ch == asc_q || ch == asc_k || ch == asc_v)
        return operand_dtype(s, ch);
    return ch == asc_o ? s->o_dtype : ch == asc_p ? s->p_dtype : DTYPE_F32;
}

void *run_array(const struct kernel_run *run, enum asc_channel ch, int kv)
{
    return run->arrays[(channel_per_kv(ch) ? kv : 0) * ASC_CHANNELS + (int)ch];
}

float run_input(const struct kernel_run *run, enum asc_channel ch, size_t i)
{
    const struct spec *s = &run->spec;
    const void *input = ch == asc_q ? run->q : ch == asc_k ? run->k : run->v;
    const float x = has_codes(s) ? run_code(run, ch, i) : (float)dtype_load(s->dtype, input, i);
    return s->converts || descales_operand(s, ch) ? round_to(operand_dtype(s, ch), x) : x;
}

void run_record(const struct kernel_run *run, enum asc_channel ch, int kv, size_t i, float x)
{
    if (run_array(run, ch, kv))
        dtype_store(run_dtype(&run->spec, ch), run_array(run, ch, kv), i,
                    run_dtype(&run->spec, ch) == DTYPE_U8 ? x + ASC_U8_MIDPOINT : x);
}
