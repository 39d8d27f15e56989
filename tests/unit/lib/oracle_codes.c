/* The test kernel: its inputs where they are codes. */
#include "tests/unit/lib/oracle_parts.h"

static int codes_index(enum asc_channel ch)
{
    return ch == asc_q ? 0 : ch == asc_k ? 1 : 2;
}

int descales_operand(const struct spec *s, enum asc_channel ch)
{
    return has_codes(s) && !(ch == asc_v ? s->conventions.v_descale : s->conventions.qk_descale);
}

static enum dtype codes_dtype(const struct spec *s)
{
    return s->conventions.quantized ? codes_type(s->conventions.quantized) : s->dtype;
}

enum dtype operand_dtype(const struct spec *s, enum asc_channel ch)
{
    if (s->converts)
        return s->used;
    return !has_codes(s) ? s->dtype : descales_operand(s, ch) ? DTYPE_F16 : codes_dtype(s);
}

enum dtype core_dtype(const struct spec *s, enum asc_channel ch)
{
    const enum dtype t = operand_dtype(s, ch);
    return t == DTYPE_U8 ? DTYPE_F16 : t;
}

static float right_scale(const struct kernel_run *run, enum asc_channel ch, int row)
{
    const struct spec *s = &run->spec;
    const int share = s->conventions.quantized ? s->conventions.quantized_rows : s->scale_rows;
    return has_codes(s) ? run->scales[codes_index(ch)][0][share ? row / share : 0] : 1;
}

/* The scale that the kernel takes for a row of an input. */
static float run_scale(const struct kernel_run *run, enum asc_channel ch, int row)
{
    const struct spec *s = &run->spec;
    const int share = s->conventions.quantized ? s->conventions.quantized_rows : s->scale_rows;
    const int group = share ? row / share : 0, i = codes_index(ch), rows = ch == asc_q ? s->q_len : s->kv_len;
    const float right = right_scale(run, ch, row);
    float top = 0;
    switch (ch == s->wrong_operand ? s->wrong_codes : CODES_RIGHT) {
    case SCALE_MISSING:
        return 1;
    case SCALE_TWICE:
        return right * right;
    case SCALE_OF_GROUP_BEHIND:
        return group + 1 < codes_groups(rows, share) ? run->scales[i][0][group + 1] : run->scales[i][1][0];
    case SCALE_OF_HEAD_BEHIND:
    case SCALE_OF_FIRST_HEAD:
        return run->scales[i][1][group];
    case SCALE_LARGEST:
        for (int g = 0; g < codes_groups(rows, share); g++)
            top = fmaxf(top, fmaxf(run->scales[i][0][g], run->scales[i][1][g]));
        return top;
    case SCALE_OF_Q:
        return run->scales[0][0][group];
    case SCALE_OF_K:
        return run->scales[1][0][group];
    case SCALE_HALF:
        return right * 0.5f;
    default:
        return right;
    }
}

float run_code(const struct kernel_run *run, enum asc_channel ch, size_t i)
{
    const struct spec *s = &run->spec;
    const void *input = ch == asc_q ? run->q : ch == asc_k ? run->k : run->v;
    const int row = (int)(i / (size_t)s->head_dim), wrong = ch == s->wrong_operand ? (int)s->wrong_codes : CODES_RIGHT;
    const enum dtype type = codes_dtype(s);
    uint8_t code = s->conventions.quantized ? 0 : ((const uint8_t *)input)[i];
    if (s->conventions.quantized) {
        const float scale = right_scale(run, ch, row), top = type == DTYPE_U8 ? 127 : type == DTYPE_E4M3 ? 448 : 57344;
        const int by_reciprocal = s->conventions.quantized_by == ASC_BY_RECIPROCAL;
        const struct quantizer q = {type, (enum quantize_by)by_reciprocal, scale, scale == 1 ? 1 : top / (scale * top)};
        code = quantize_code(&q, (float)dtype_load(s->dtype, input, i));
        if (wrong == ZERO_GROUP_UNGUARDED && row < s->zero_rows)
            return NAN;
    }
    float value = quantize_value(wrong == OTHER_FORMAT ? s->format : type, code);
    if (wrong == ZERO_POINT_OFF)
        value += s->zero_point;
    return descales_operand(s, ch) ? value * run_scale(run, ch, row) : value;
}

float run_scale_of_score(const struct kernel_run *run, float dot, float factor, int row, int key)
{
    const struct spec *s = &run->spec;
    if (!has_codes(s) || s->conventions.qk_descale != ASC_QK_PRODUCT)
        return dot * factor;
    const int q_row = s->q_tile * s->br + row;
    const float by_q = run_scale(run, asc_q, q_row < s->q_len ? q_row : 0);
    const float by_k = run_scale(run, asc_k, key < s->kv_len ? key : 0);
    return s->scales_late ? dot * by_q * by_k * factor : dot * (factor * (by_q * by_k));
}

float run_scale_of_tile(const struct kernel_run *run, int kv)
{
    return has_codes(&run->spec) && run->spec.conventions.v_descale == ASC_V_PRODUCT
               ? run_scale(run, asc_v, kv * run->spec.bc)
               : 1;
}

float run_scale_of_o(const struct kernel_run *run)
{
    return has_codes(&run->spec) && run->spec.conventions.v_descale == ASC_V_OUTPUT ? run_scale(run, asc_v, 0) : 1;
}

float run_folded_scale(const struct kernel_run *run)
{
    const struct spec *s = &run->spec;
    if (!has_codes(s) || s->conventions.qk_descale != ASC_QK_FOLDED)
        return run->scale;
    return run->scale * run_scale(run, asc_q, s->q_tile * s->br) * run_scale(run, asc_k, 0);
}

struct coding run_coding(const struct kernel_run *run, enum asc_channel ch)
{
    const struct spec *s = &run->spec;
    const int i = codes_index(ch), rows = ch == asc_q ? s->q_len : s->kv_len;
    if (!has_codes(s))
        return (struct coding){0};
    struct coding k = {.parts = 1,
                       .tensor = 1,
                       .scale = run->scales[i][0],
                       .rows = s->conventions.quantized ? s->conventions.quantized_rows : s->scale_rows,
                       .first = ch == asc_q ? s->q_tile * s->br : 0,
                       .quantized = s->conventions.quantized};
    k.groups = codes_groups(rows, k.rows);
    return k;
}
