/* Inputs as codes: what shares a scale, and where it goes. */
#include "engine/base/format.h"
#include "engine/base/quantize.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/layout.h"

/* Some rows of a head: first .. end - 1. */
struct rows {
    int batch, head, first, end;
};

static float rows_amax(const struct problem_tensor *t, const struct rows *r, const uint16_t *values, float amax)
{
    for (int row = r->first; row < r->end; row++) {
        const uint16_t *at = values + problem_tensor_at(t, r->batch, r->head, row);
        for (int d = 0; d < t->cols; d++)
            amax = quantize_amax(amax, f16_to_f32(at[d]));
    }
    return amax;
}

static void encode_rows(const struct asc_problem *p, const struct problem_tensor *t, const struct rows *r, float amax,
                        const uint16_t *values, uint8_t *codes, float *scales)
{
    const struct quantizer q = quantizer_of(t->dtype, amax, QUANTISE_DIVISION);
    scales[asc_scale_at(p, t->heads, t->rows, r->batch, r->head, r->first)] = q.scale;
    for (int row = r->first; row < r->end; row++) {
        const int64_t begin = problem_tensor_at(t, r->batch, r->head, row);
        for (int d = 0; d < t->cols; d++)
            codes[begin + d] = quantize_code(&q, f16_to_f32(values[begin + d]));
    }
}

/* The groups one after the other: r is the next one. 0: there is none. */
static bool next_group(const struct asc_problem *p, const struct problem_tensor *t, struct rows *r)
{
    const int group = p->scale_rows > 0 ? p->scale_rows : t->rows;
    r->first = r->end;
    if (r->first >= t->rows) {
        r->first = 0;
        r->head++;
    }
    if (r->head == t->heads) {
        r->head = 0;
        r->batch++;
    }
    r->end = t->rows - r->first < group ? t->rows : r->first + group;
    return r->batch < p->batch;
}

void encode_tensor(const struct asc_problem *p, int tensor, enum scenario_scales by, const uint16_t *values,
                   uint8_t *codes, float *scales)
{
    const struct problem_tensor t = problem_tensor(p, (enum problem_tensor_id)tensor);
    float of_all = 0;
    if (by == SCALES_TENSOR)
        for (struct rows r = {0}; next_group(p, &t, &r);)
            of_all = rows_amax(&t, &r, values, of_all);
    for (struct rows r = {0}; next_group(p, &t, &r);)
        encode_rows(p, &t, &r, by == SCALES_TENSOR ? of_all : rows_amax(&t, &r, values, 0), values, codes, scales);
}

size_t encode_scales_bytes(const struct asc_problem *p, int tensor)
{
    const struct problem_tensor t = problem_tensor(p, (enum problem_tensor_id)tensor);
    return (size_t)p->batch * (size_t)t.heads * (size_t)asc_scale_groups(p, t.rows) * sizeof(float);
}
