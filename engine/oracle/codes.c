#include "engine/oracle/codes.h"

#include "engine/base/format.h"
#include "engine/base/quantize.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include <math.h>
#include <string.h>

enum dtype codes_type(int quantized)
{
    static const enum dtype types[] = {[ASC_QUANTIZED_U8] = DTYPE_U8,
                                       [ASC_QUANTIZED_E4M3] = DTYPE_E4M3,
                                       [ASC_QUANTIZED_E5M2] = DTYPE_E5M2,
                                       [ASC_QUANTIZED_S8] = DTYPE_S8};
    return types[quantized];
}

double codes_round(enum dtype of, double x)
{
    if (!dtype_is_step_code(of))
        return bound_round(of, x);
    return isnan(x) ? x : fmin(fmax(rint(x), -ASC_U8_MIDPOINT), UINT8_MAX - ASC_U8_MIDPOINT);
}

int codes_groups(int head_rows, int rows)
{
    return rows > 0 && head_rows > 0 ? (head_rows - 1) / rows + 1 : 1;
}

/* The largest magnitude of n codes of f16 or bf16, which are ordered as their bits are; NaN counts for nothing. */
static uint16_t largest_bits(const uint16_t *code, int n, uint16_t infinite)
{
    uint16_t top = 0;
    for (int i = 0; i < n; i++) {
        const uint16_t bits = code[i] & 0x7FFFu;
        top = bits > top && bits <= infinite ? bits : top;
    }
    return top;
}

static float largest_of(const struct matrix *m, int from, int to)
{
    float top = 0;
    for (int r = from; r < to; r++) {
        const uint16_t *row = (const uint16_t *)m->data + r * m->row_stride;
        if (m->dtype == DTYPE_F16)
            top = quantize_amax(top, f16_to_f32(largest_bits(row, m->cols, 0x7C00)));
        else if (m->dtype == DTYPE_BF16)
            top = quantize_amax(top, bf16_to_f32(largest_bits(row, m->cols, 0x7F80)));
        for (int col = 0; m->dtype == DTYPE_F32 && col < m->cols; col++)
            top = quantize_amax(top, ((const float *)m->data)[r * m->row_stride + col]);
    }
    return top;
}

void codes_make_scales(const struct matrix *m, int quantized, int rows, float *scale)
{
    const int share = rows > 0 ? rows : m->rows;
    for (int group = 0; group < codes_groups(m->rows, rows); group++) {
        const int from = group * share, to = m->rows - from < share ? m->rows : from + share;
        scale[group] = quantizer_of(codes_type(quantized), largest_of(m, from, to), QUANTISE_DIVISION).scale;
    }
}

int codes_scale_at(const struct coding *coding, int row, int col)
{
    return (coding->rows > 0 ? row / coding->rows : 0) * coding->parts + (coding->dims > 0 ? col / coding->dims : 0);
}

double codes_scale(const struct coding *coding, int r, int col)
{
    return coding->scale
               ? (double)coding->scale[codes_scale_at(coding, coding->first + r, col)] * (double)coding->tensor
               : 1;
}

const struct matrix *codes_input(const struct oracle_case *c, enum asc_channel ch)
{
    return ch == asc_q ? &c->in_q : ch == asc_k ? &c->in_k : &c->in_v;
}

const struct coding *codes_of(const struct oracle_case *c, enum asc_channel ch)
{
    return ch == asc_q ? &c->q_codes : ch == asc_k ? &c->k_codes : &c->v_codes;
}

static int descales_operands(const struct asc_conventions *conventions, enum asc_channel ch)
{
    return ch == asc_v ? conventions->v_descale == ASC_V_OPERANDS : conventions->qk_descale == ASC_QK_OPERANDS;
}

enum codes_use codes_use(const struct oracle_case *c, enum asc_channel ch)
{
    if (!codes_of(c, ch)->scale)
        return CODES_NONE;
    return descales_operands(&c->conventions, ch) ? CODES_DESCALED : CODES_RAW;
}

/* One row of given codes; a table spares the decoding. */
static void load_codes(const struct matrix *m, int first, int rows, double *out)
{
    double value[256];
    const uint8_t *code = m->data;
    for (int i = 0; i < 256; i++)
        value[i] = values_code(m->dtype, (uint8_t)i);
    for (int r = 0; r < rows; r++)
        for (int col = 0; col < m->cols; col++)
            *out++ = value[code[(first + r) * m->row_stride + col]];
}

/* x as a code of the launch's own; where rounding may choose between two, what lies in the middle, *half from both. */
static double quantize(enum dtype of, double x, double scale, double *half)
{
    const double y = x / scale, off = 8 * BOUND_U * fabs(y);
    const double low = codes_round(of, y - off), high = codes_round(of, y + off);
    *half = high > low ? (high - low) / 2 : 0;
    return high > low ? (low + high) / 2 : codes_round(of, y);
}

int codes_roundings(const struct coding *coding)
{
    return coding->quantized                      ? 5
           : coding->scale_type == ASC_SCALE_E8M0 ? 0
           : coding->scale_type == ASC_SCALE_E4M3 ? 2
                                                  : 1;
}

bool codes_uncertain(const struct oracle_case *c, enum asc_channel ch)
{
    return codes_use(c, ch) != CODES_NONE || (c->rope.kind && ch != asc_v);
}

/* How far rows that RoPE has turned may lie from a correct kernel's. */
static void turned_loose(const struct oracle_case *c, const double *x, int rows, int cols, double *loose)
{
    const double share = rope_loose_share((double)c->conventions.rope_error);
    for (int r = 0; r < rows; r++, x += cols, loose += cols) {
        memset(loose, 0, (size_t)cols * sizeof *loose);
        for (int i = 0; i < c->rope.dim / 2; i++) {
            int32_t pair[2];
            asc_rope_pair(c->rope.kind, c->rope.dim, i, pair);
            loose[pair[0]] = loose[pair[1]] = input_turned(share, x[pair[0]], x[pair[1]]);
        }
    }
}

bool codes_load(const struct oracle_case *c, const struct coded_rows *part, double *out, double *loose)
{
    const struct coding *coding = part->coding;
    const int cols = part->input->cols, descaled = descales_operands(&c->conventions, part->ch);
    struct matrix m = *part->input;
    double any = 0;
    m.rows = part->rows;
    m.data = (const unsigned char *)m.data + (size_t)(part->first * m.row_stride) * dtype_bytes(m.dtype);
    if (coding->scale && !coding->quantized)
        load_codes(part->input, part->first, part->rows, out);
    else
        values_load(&m, out);
    if (c->rope.kind && part->ch != asc_v && loose)
        turned_loose(c, out, part->rows, cols, loose);
    if (c->rope.kind && part->ch != asc_v)
        return true;
    for (int r = 0; coding->scale && r < part->rows; r++) {
        double scale = codes_scale(coding, part->first + r, 0), times = descaled ? scale : 1;
        for (int col = 0; col < cols; col++) {
            if (coding->dims > 0) {
                scale = codes_scale(coding, part->first + r, col);
                times = descaled ? scale : 1;
            }
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            double half = 0;
            if (coding->quantized)
                out[i] = quantize(codes_type(coding->quantized), out[i], scale, &half);
            out[i] *= times;
            if (!loose)
                continue;
            loose[i] = half * times;
            if (descaled)
                loose[i] += input_descaled(codes_roundings(coding), out[i]);
            any = fmax(any, loose[i]);
        }
    }
    return any > 0;
}

double codes_step(const struct oracle_case *c, enum asc_channel ch, int r, int col)
{
    return codes_use(c, ch) == CODES_DESCALED ? codes_scale(codes_of(c, ch), r, col) : 1;
}

bool codes_by(const struct oracle_case *c, enum asc_channel ch, int first, int n, double *by)
{
    const bool left = c->conventions.qk_descale == ASC_QK_PRODUCT && codes_of(c, ch)->scale;
    for (int i = 0; i < n; i++)
        by[i] = left ? codes_scale(codes_of(c, ch), first + i, 0) : 1;
    return left;
}

double codes_v_times(const struct oracle_case *c, int first)
{
    return c->conventions.v_descale == ASC_V_PRODUCT ? codes_scale(&c->v_codes, first, 0) : 1;
}

double codes_o_times(const struct oracle_case *c)
{
    return (c->conventions.v_descale == ASC_V_OUTPUT ? codes_scale(&c->v_codes, 0, 0) : 1) * dropout_of_output(c);
}

static double folded_scales(const struct oracle_case *c)
{
    const bool folded = c->conventions.qk_descale == ASC_QK_FOLDED;
    return folded ? codes_scale(&c->q_codes, 0, 0) * codes_scale(&c->k_codes, 0, 0) : 1;
}

void codes_fold(struct oracle_case *c)
{
    c->scale *= folded_scales(c);
}

double codes_plain_scale(const struct oracle_case *c)
{
    return c->scale / folded_scales(c);
}

/* Whether a run of `span` rows, beginning at a multiple of it, may need two scales. */
static bool changes_within(int scale_rows, int head_rows, int span)
{
    return scale_rows > 0 && scale_rows < head_rows && scale_rows % span != 0;
}

const char *codes_refused(const struct asc_problem *problem, const struct asc_plan *plan,
                          const struct asc_conventions *conventions)
{
    const bool quantized = conventions->quantized != ASC_QUANTIZED_GIVEN;
    const int rows = quantized ? conventions->quantized_rows : problem->scale_rows;
    const int has[3] = {quantized || dtype_is_code((enum dtype)problem->dtype),
                        quantized || dtype_is_code((enum dtype)problem->k_dtype),
                        quantized || dtype_is_code((enum dtype)problem->v_dtype)};
    if (!quantized && problem->scale_dims > 0) {
        if (conventions->qk_descale != ASC_QK_OPERANDS && (has[0] || has[1]))
            return "convention qk_descale is not operands, which takes one scale for all elements of a row, but Q or K "
                   "has one for each part";
        if (conventions->v_descale != ASC_V_OPERANDS && has[2])
            return "convention v_descale is not operands, which takes one scale for all elements of a row, but V has "
                   "one for each part";
    }
    if (conventions->qk_descale == ASC_QK_FOLDED && (has[0] || has[1])) {
        if (conventions->s_unit != ASC_UNIT_RAW || conventions->m_unit != ASC_UNIT_RAW)
            return "convention qk_descale is folded: S and m are then raw, but s_unit or m_unit is not";
        if (has[1] && rows > 0 && rows < problem->kv_len)
            return "convention qk_descale is folded, which takes one scale for all keys of a head, but K has one for "
                   "each "
                   "block of rows";
        if (has[0] && changes_within(rows, problem->q_len, plan->br))
            return "convention qk_descale is folded, but Q has scales that change within a q tile";
    }
    if (conventions->v_descale == ASC_V_PRODUCT && has[2] && changes_within(rows, problem->kv_len, plan->bc))
        return "convention v_descale is product, but V has scales that change within a kv tile";
    if (conventions->v_descale == ASC_V_OUTPUT && has[2] && rows > 0 && rows < problem->kv_len)
        return "convention v_descale is output, which takes one scale for all keys of a head, but V has one for each "
               "block of "
               "rows";
    return NULL;
}

int codes_descale_roundings(const struct oracle_case *c)
{
    return (codes_use(c, asc_q) == CODES_RAW) + (codes_use(c, asc_k) == CODES_RAW);
}
