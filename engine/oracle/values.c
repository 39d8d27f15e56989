#include "engine/oracle/values.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include "engine/oracle/bias.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <string.h>

/* The exponent of a half moved to its place in f32 is short by 112; a subnormal one comes out normal. */
static inline float half(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = (uint32_t)(code & 0x7FFFu) << 13;
    const float x = format_f32_of(magnitude) * 0x1p112F;
    return format_f32_of(sign | format_f32_bits(x) | (magnitude >= 0x7C00u << 13 ? 0x7F800000u : 0));
}

VECTOR_UNITS static void load_f32(const float *from, int64_t stride, int rows, int cols, double *out)
{
    for (int r = 0; r < rows; r++, from += stride, out += cols)
        for (int c = 0; c < cols; c++)
            out[c] = from[c];
}

VECTOR_UNITS static void load_f16(const uint16_t *from, int64_t stride, int rows, int cols, double *out)
{
    for (int r = 0; r < rows; r++, from += stride, out += cols)
        for (int c = 0; c < cols; c++)
            out[c] = half(from[c]);
}

VECTOR_UNITS static void load_bf16(const uint16_t *from, int64_t stride, int rows, int cols, double *out)
{
    for (int r = 0; r < rows; r++, from += stride, out += cols)
        for (int c = 0; c < cols; c++)
            out[c] = bf16_to_f32(from[c]);
}

const struct matrix *values_captured(const struct oracle_case *c, int kv, enum asc_channel ch)
{
    return &c->captured[(channel_per_kv(ch) ? kv : 0) * ASC_CHANNELS + (int)ch];
}

double values_code(enum dtype of, uint8_t code)
{
    return dtype_load(of, &code, 0) - (of == DTYPE_U8 ? ASC_U8_MIDPOINT : 0);
}

double values_element(const struct matrix *m, size_t i)
{
    return m->dtype == DTYPE_U8 ? values_code(m->dtype, ((const uint8_t *)m->data)[i])
                                : dtype_load(m->dtype, m->data, i);
}

void values_load(const struct matrix *m, double *out)
{
    switch (m->dtype) {
    case DTYPE_F32:
        load_f32(m->data, m->row_stride, m->rows, m->cols, out);
        break;
    case DTYPE_F16:
        load_f16(m->data, m->row_stride, m->rows, m->cols, out);
        break;
    case DTYPE_BF16:
        load_bf16(m->data, m->row_stride, m->rows, m->cols, out);
        break;
    default:
        for (int r = 0; r < m->rows; r++, out += m->cols)
            for (int c = 0; c < m->cols; c++)
                out[c] = values_element(m, (size_t)(r * m->row_stride + c));
    }
}

bool values_element_written(const struct matrix *m, size_t i)
{
    if (m->dtype == DTYPE_E4M3 || m->dtype == DTYPE_E5M2)
        return ((const uint8_t *)m->data)[i] != 0x7F;
    return !dtype_is_unwritten(m->dtype, m->data, i);
}

double values_overlaid(const struct matrix *m, const struct matrix *under, int row, int col)
{
    const size_t i = (size_t)(row * m->row_stride + col), j = (size_t)(row * under->row_stride + col);
    return values_element_written(m, i) ? values_element(m, i) : values_element(under, j);
}

void values_overlay(const struct matrix *m, const double *under, double *out)
{
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->cols; c++) {
            const size_t at = (size_t)r * (size_t)m->cols + (size_t)c, i = (size_t)(r * m->row_stride + c);
            out[at] = values_element_written(m, i) ? values_element(m, i) : under[at];
        }
}

bool values_written(const struct matrix *m)
{
    if (!dtype_has_unwritten(m->dtype))
        return true;
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->cols; c++)
            if (!dtype_is_unwritten(m->dtype, m->data, (size_t)(r * m->row_stride + c)))
                return true;
    return false;
}

bool values_same(const struct matrix *m, const struct matrix *of, int first)
{
    if (m->dtype != of->dtype || m->cols != of->cols || first + m->rows > of->rows)
        return false;
    const size_t bytes = dtype_bytes(m->dtype), row = bytes * (size_t)m->cols;
    const unsigned char *a = m->data, *b = of->data;
    for (int r = 0; r < m->rows; r++)
        if (memcmp(a + bytes * (size_t)(r * m->row_stride), b + bytes * (size_t)((first + r) * of->row_stride), row) !=
            0)
            return false;
    return true;
}

double values_natural(int unit, double scale)
{
    return unit == ASC_UNIT_RAW ? scale : unit == ASC_UNIT_LOG2 ? M_LN2 : 1;
}

double values_factor(int unit, double scale)
{
    return unit == ASC_UNIT_RAW ? 1 : unit == ASC_UNIT_LOG2 ? scale * M_LOG2E : scale;
}

bool values_capped_later(const struct oracle_case *c)
{
    return c->softcap > 0 && c->conventions.s_at == ASC_S_DOT;
}

bool values_biased_later(const struct oracle_case *c)
{
    return bias_changes(c) && (c->conventions.s_at == ASC_S_CAPPED || c->conventions.s_at == ASC_S_DOT);
}

bool values_natural_later(const struct oracle_case *c)
{
    return values_capped_later(c) || values_biased_later(c);
}

bool values_mask_later(const struct oracle_case *c)
{
    return c->conventions.s_at != ASC_S_MASKED || c->conventions.s_masked == ASC_MASKED_UNTOUCHED;
}

int values_unseen_padding(const struct oracle_case *c, int recorded, int kv_cols)
{
    const bool is_value = c->conventions.s_masked == ASC_MASKED_VALUE && !values_mask_later(c);
    return is_value && !recorded ? c->bc - kv_cols : 0;
}

double values_natural_s(const struct oracle_case *c)
{
    const bool capped = c->softcap > 0 && !values_capped_later(c);
    return values_natural(c->conventions.s_unit, capped ? c->softcap : c->scale);
}

double values_natural_m(const struct oracle_case *c)
{
    return values_natural(c->conventions.m_unit, c->softcap > 0 ? c->softcap : c->scale);
}

double values_fold(const struct oracle_case *c)
{
    static const int units[] = {
        [ASC_FOLD_NONE] = ASC_UNIT_RAW, [ASC_FOLD_SCALE] = ASC_UNIT_SCALED, [ASC_FOLD_LOG2] = ASC_UNIT_LOG2};
    return values_factor(units[c->conventions.q_fold], c->scale);
}

int values_type(const struct oracle_case *c, enum asc_channel ch)
{
    if (c->types)
        return c->types[ch];
    return c->captured[ch].data ? (int)c->captured[ch].dtype : -1;
}

bool values_p_type(const struct oracle_case *c, enum dtype *t)
{
    static const enum dtype types[] = {[ASC_P_AS_RECORDED] = DTYPE_F32,
                                       [ASC_P_F16] = DTYPE_F16,
                                       [ASC_P_BF16] = DTYPE_BF16,
                                       [ASC_P_E4M3] = DTYPE_E4M3,
                                       [ASC_P_E5M2] = DTYPE_E5M2};
    *t = types[c->conventions.p_rounded];
    const int recorded = values_type(c, asc_p);
    if (c->conventions.p_rounded == ASC_P_AS_RECORDED && recorded >= 0)
        *t = (enum dtype)recorded;
    return *t == DTYPE_F16 || *t == DTYPE_BF16 || *t == DTYPE_E4M3 || *t == DTYPE_E5M2;
}

double values_scaled_first(const struct oracle_case *c, double m_natural)
{
    const struct asc_conventions *conventions = &c->conventions;
    const bool direct =
        conventions->s_unit == ASC_UNIT_LOG2 && conventions->m_unit == ASC_UNIT_LOG2 && !values_capped_later(c);
    return direct || !isfinite(m_natural) ? 0 : fabs(m_natural);
}
