#include "engine/base/tensor_core.h"
#include "engine/simt/launch.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <math.h>
#include <string.h>

/* tensor_core_mma takes no more than this. */
enum { SIDE_MAX = 16 };

static bool all_numbers(enum dtype t, const void *codes, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(dtype_load(t, codes, (size_t)i)))
            return false;
    return true;
}

static bool finds(const float *x, int n, bool (*what)(float))
{
    for (int i = 0; i < n; i++)
        if (what(x[i]))
            return true;
    return false;
}

static bool is_nan(float x)
{
    return isnan(x);
}

static bool is_infinite(float x)
{
    return isinf(x);
}

/* What the traps would report of scalar arithmetic: a result that is no number though every operand is one. */
static void report_new(const struct simt_mma *mma, enum dtype t, const float *d)
{
    const int n = mma->m * mma->n;
    const bool nan = finds(d, n, is_nan);
    if ((!nan && !finds(d, n, is_infinite)) || finds(mma->c, n, is_nan) || finds(mma->c, n, is_infinite) ||
        !all_numbers(t, mma->a, mma->m * mma->k) || !all_numbers(t, mma->b, mma->n * mma->k))
        return;
    report_raise(nan ? EVENT_FP_INVALID : EVENT_FP_OVERFLOW, false, mma->file, mma->line, NULL,
                 nan ? "inf - inf in a matrix product: NaN" : "overflow in a matrix product: the result is infinite");
}

void simt_matrix_report(const char *file, int line, const char *what, const char *why)
{
    report_raise(EVENT_MATRIX, false, file, line, NULL, "%s: %s: undefined on a GPU", what, why);
}

/* With an f16 accumulator only the H100 is known. mma.sync of FP8 there is not what wgmma does; before it, Ada has it.
 */
static enum tensor_core model_of(const struct simt_mma *mma, enum dtype t)
{
    const int named = tensor_core_from_name(launch_options()->tensor_core);
    const enum tensor_core model = named < 0 ? TENSOR_CORE_H100 : (enum tensor_core)named;
    if (mma->wgmma && dtype_bytes(t) == 1)
        return mma->f16_accumulator ? TENSOR_CORE_WGMMA_E4M3_F16 : TENSOR_CORE_WGMMA_E4M3;
    if (mma->f16_accumulator)
        return TENSOR_CORE_H100_F16;
    if (tensor_core_takes(model, t))
        return model;
    if (t == DTYPE_E4M3 || t == DTYPE_E5M2)
        return model == TENSOR_CORE_H100 ? TENSOR_CORE_MMA_E4M3 : TENSOR_CORE_ADA_E4M3;
    return TENSOR_CORE_A100;
}

void simt_tensor_product(const struct simt_mma *mma, float *d)
{
    static const enum dtype types[] = {[SIMT_MMA_F16] = DTYPE_F16,
                                       [SIMT_MMA_BF16] = DTYPE_BF16,
                                       [SIMT_MMA_E4M3] = DTYPE_E4M3,
                                       [SIMT_MMA_E5M2] = DTYPE_E5M2};
    const enum dtype t = types[mma->type];
    const enum tensor_core model = model_of(mma, t);
    const size_t row_bytes = (size_t)mma->k * dtype_bytes(t);
    const unsigned char *a = mma->a, *b = mma->b;
    const int paused = traps_pause();
    for (int i = 0; i < mma->m; i += SIDE_MAX)
        for (int j = 0; j < mma->n; j += SIDE_MAX) {
            const int m = mma->m - i < SIDE_MAX ? mma->m - i : SIDE_MAX;
            const int n = mma->n - j < SIDE_MAX ? mma->n - j : SIDE_MAX;
            float part[SIDE_MAX * SIDE_MAX];
            const ptrdiff_t first = (ptrdiff_t)i * mma->n + j;
            for (ptrdiff_t row = 0; row < m; row++)
                memcpy(part + row * n, mma->c + first + row * mma->n, (size_t)n * sizeof *part);
            tensor_core_mma(model, t, m, n, mma->k, a + (size_t)i * row_bytes, b + (size_t)j * row_bytes, part, part);
            for (ptrdiff_t row = 0; row < m; row++)
                memcpy(d + first + row * mma->n, part + row * n, (size_t)n * sizeof *part);
        }
    if (simt_tls.worker->traps)
        report_new(mma, t, d);
    traps_resume(paused);
}
