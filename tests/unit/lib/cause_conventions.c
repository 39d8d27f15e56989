/* What the test kernel of causes means by its values: how its conventions change the arithmetic, and how it declares
 * them. */
#include "tests/unit/lib/cause_parts.h"

int lanes_of(const struct spec *s)
{
    return s->lanes ? s->lanes : 1;
}

enum dtype pv_type(const struct spec *s)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    return types[s->p_rounded];
}

struct asc_conventions conventions_of(const struct spec *s)
{
    struct asc_conventions c = {.s_unit = (int)s->unit, .m_unit = (int)s->unit, .p_offset = s->p_offset};
    c.l_lanes = s->lanes;
    c.u_phase = s->late_u ? ASC_U_RESCALED : ASC_U_AFTER_PV;
    c.p_rounded = (int)s->p_rounded;
    c.l_from = s->sums_rounded ? ASC_L_ROUNDED : ASC_L_UNROUNDED;
    c.acc_s = c.acc_u = s->tensor_cores ? ASC_ACC_MMA_F16 : ASC_ACC_F32;
    c.q_fold = s->folds_scale ? ASC_FOLD_SCALE : ASC_FOLD_NONE;
    c.lse_base2 = s->lse_base2;
    c.alpha_first = s->alpha_one ? ASC_ALPHA_ONE : ASC_ALPHA_ZERO;
    c.m_policy = s->m_lag > 0 ? ASC_M_LAGGING : ASC_M_RUNNING;
    c.m_lag = s->m_lag;
    c.s_masked = s->masked_value != 0 ? ASC_MASKED_VALUE : ASC_MASKED_INFINITE;
    c.s_masked_value = s->masked_value;
    return c;
}

float unit_factor(const struct run *run)
{
    const float log2_e = 1.44269504f;
    if (run->spec.folds_scale)
        return 1;
    return run->spec.unit == ASC_UNIT_RAW ? 1 : run->spec.unit == ASC_UNIT_LOG2 ? run->scale * log2_e : run->scale;
}

float raw_unit(const struct run *run)
{
    return run->spec.softcap > 0 ? run->spec.softcap : run->scale;
}

float capped(const struct run *run, float score)
{
    const float cap = run->spec.softcap, log2_e = 1.44269504f;
    if (!(cap > 0))
        return score;
    if (run->spec.unit == ASC_UNIT_RAW)
        return tanhf(score * run->scale / cap);
    return run->spec.unit == ASC_UNIT_LOG2 ? cap * tanhf(score / log2_e / cap) * log2_e : cap * tanhf(score / cap);
}

float exponential(const struct run *run, float x, float y)
{
    const float unit_log2 = raw_unit(run) * 1.44269504f;
    if (run->spec.unit == ASC_UNIT_RAW)
        return exp2f(x * unit_log2 - y * unit_log2);
    return run->spec.unit == ASC_UNIT_LOG2 ? exp2f(x - y) : expf(x - y);
}

float lagging(const struct run *run, float m, float top)
{
    const struct spec *s = &run->spec;
    const float to_log2 = s->unit == ASC_UNIT_LOG2 ? 1 : (s->unit == ASC_UNIT_RAW ? raw_unit(run) : 1) * 1.44269504f;
    return isfinite(m) && top > m && (top - m) * to_log2 <= s->m_lag ? m : top;
}

float tensor_product(enum tensor_core core, const float *a, const float *b, ptrdiff_t stride_b, int n, float start)
{
    float sum = start;
    for (int first = 0; first < n; first += 16) {
        uint16_t codes[2][16] = {{0}};
        for (int i = 0; i < 16 && first + i < n; i++) {
            dtype_store(DTYPE_F16, codes[0], (size_t)i, (double)a[first + i]);
            dtype_store(DTYPE_F16, codes[1], (size_t)i, (double)b[(first + i) * stride_b]);
        }
        tensor_core_mma(core, DTYPE_F16, 1, 1, 16, codes[0], codes[1], &sum, &sum);
    }
    return sum;
}

float product(const struct run *run, const float *a, const float *b, ptrdiff_t stride_b, int n, float start)
{
    float sum = start;
    if (run->spec.tensor_cores)
        return tensor_product(TENSOR_CORE_H100, a, b, stride_b, n, start);
    for (int i = 0; i < n; i++) {
        const int at = run->spec.backward ? n - 1 - i : i;
        sum += a[at] * b[at * stride_b];
    }
    return sum;
}

int mask_hides(const struct spec *s, int row, int key, enum asc_causal causal, int moved)
{
    const int diagonal = causal == ASC_CAUSAL_TOP_LEFT ? row : row + s->kv_len - s->q_len;
    if (causal != ASC_CAUSAL_NONE && key > diagonal + moved)
        return 1;
    if (!s->has_window)
        return 0;
    return (s->window_left >= 0 && key < diagonal - s->window_left) ||
           (s->window_right >= 0 && key > diagonal + s->window_right);
}

int tile_is_seen(const struct run *run, int row0, int rows, int kv)
{
    const struct spec *s = &run->spec;
    for (int r = 0; r < rows; r++)
        for (int key = kv * s->bc; key < (kv + 1) * s->bc && key < s->kv_len; key++)
            if (!mask_hides(s, row0 + r, key, s->causal, 0))
                return 1;
    return 0;
}
