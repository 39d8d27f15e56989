/* Inputs as codes: what shares a scale, and where it goes. */
#include "engine/base/format.h"
#include "engine/base/quantize.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/layout.h"

/* A block of a head that shares a scale: rows first .. end - 1, of them elements from .. to - 1. */
struct rows {
    int batch, head, first, end, from, to;
};

static float rows_amax(const struct problem_tensor *t, const struct rows *r, const uint16_t *values, float amax)
{
    for (int row = r->first; row < r->end; row++) {
        const uint16_t *at = values + problem_tensor_at(t, r->batch, r->head, row);
        for (int d = r->from; d < r->to; d++)
            amax = quantize_amax(amax, f16_to_f32(at[d]));
    }
    return amax;
}

static void encode_rows(const struct asc_problem *p, const struct problem_tensor *t, const struct rows *r, float scale,
                        float tensor, const uint16_t *values, uint8_t *codes, float *scales)
{
    const struct quantizer q = quantizer_by(t->dtype, scale * tensor);
    scales[asc_scale_of(p, t->heads, t->rows, t->cols, r->batch, r->head, r->first, r->from)] = scale;
    for (int row = r->first; row < r->end; row++) {
        const int64_t begin = problem_tensor_at(t, r->batch, r->head, row);
        for (int d = r->from; d < r->to; d++)
            codes[begin + d] = quantize_code(&q, f16_to_f32(values[begin + d]));
    }
}

/* The blocks one after the other: r is the next one. 0: there is none. */
static bool next_block(const struct asc_problem *p, const struct problem_tensor *t, struct rows *r)
{
    const int group = p->scale_rows > 0 ? p->scale_rows : t->rows, part = p->scale_dims > 0 ? p->scale_dims : t->cols;
    r->from = r->to;
    if (r->from >= t->cols || r->end == 0) {
        r->from = 0;
        r->first = r->end;
    }
    if (r->first >= t->rows) {
        r->first = 0;
        r->head++;
    }
    if (r->head == t->heads) {
        r->head = 0;
        r->batch++;
    }
    r->end = t->rows - r->first < group ? t->rows : r->first + group;
    r->to = t->cols - r->from < part ? t->cols : r->from + part;
    return r->batch < p->batch;
}

float encode_tensor(const struct asc_problem *p, int tensor, enum scenario_scales by, const uint16_t *values,
                    uint8_t *codes, float *scales)
{
    const struct problem_tensor t = problem_tensor(p, (enum problem_tensor_id)tensor);
    const bool has_own = p->scale_type == ASC_SCALE_E4M3;
    float of_all = 0;
    if (by == SCALES_TENSOR || has_own)
        for (struct rows r = {0}; next_block(p, &t, &r);)
            of_all = rows_amax(&t, &r, values, of_all);
    const float own = has_own ? quantize_tensor_scale(t.dtype, of_all) : 1;
    for (struct rows r = {0}; next_block(p, &t, &r);) {
        const float amax = by == SCALES_TENSOR ? of_all : rows_amax(&t, &r, values, 0);
        encode_rows(p, &t, &r, quantize_scale(t.dtype, problem_scale_dtype(p), amax, own), own, values, codes, scales);
    }
    return own;
}

size_t encode_scales_bytes(const struct asc_problem *p, int tensor)
{
    const struct problem_tensor t = problem_tensor(p, (enum problem_tensor_id)tensor);
    return (size_t)p->batch * (size_t)t.heads * (size_t)asc_scale_groups(p, t.rows) *
           (size_t)asc_scale_parts(p, t.cols) * sizeof(float);
}
