// Kernels that copy 16 bytes at a time, on arrays that are aligned to 16 bytes and on arrays that are not: the same
// bits.
#define ASC_ONLY_DTYPE ASC_F16
#define ASC_ONLY_HEAD_DIM 64
#include "attnscope.h"
#include "kernels/ladder.cuh"
#include "kernels/wmma.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <math.h>
#include <mma.h>
#include <string.h>

namespace cpasync
{
#include "kernels/v2c_cpasync.cu"
}
namespace wmma_qk
{
#include "kernels/v2c_wmma_qk.cu"
#undef KEY
} // namespace wmma_qk
namespace wmma_both
{
#include "kernels/v2c_wmma.cu"
}
namespace mma_sync
{
#include "kernels/fp16_mma.cu"
}

enum { HEADS = 2, Q_LEN = 70, KV_LEN = 141, D = 64, Q_VALUES = HEADS * Q_LEN * D, KV_VALUES = KV_LEN * D };

// O of a run whose arrays begin `shift` elements behind a multiple of 16 bytes; 0: it ran.
static int run(void (*describe)(asc_kernel &), int shift, __half *o)
{
    alignas(16) static __half q[Q_VALUES + 8], k[KV_VALUES + 8], v[KV_VALUES + 8], out[Q_VALUES + 8];
    static float lse[HEADS * Q_LEN];
    for (int i = 0; i < Q_VALUES; i++)
        q[shift + i] = __half((float)(i * 37 % 101 - 50) / 32.0f);
    for (int i = 0; i < KV_VALUES; i++) {
        k[shift + i] = __half((float)(i * 53 % 103 - 51) / 32.0f);
        v[shift + i] = __half((float)(i * 29 % 97 - 48) / 32.0f);
    }
    memset(out, 0x7F, sizeof out);
    asc_problem p = {};
    p.batch = 1;
    p.heads = HEADS;
    p.kv_heads = 1;
    p.q_len = Q_LEN;
    p.kv_len = KV_LEN;
    p.head_dim = D;
    p.dtype = ASC_F16;
    p.window_left = p.window_right = -1;
    p.scale = 0.125f;
    p.q = q + shift;
    p.k = k + shift;
    p.v = v + shift;
    p.o = out + shift;
    p.lse = lse;
    asc_kernel kernel = {};
    asc_plan plan = {};
    describe(kernel);
    const char *failed = kernel.plan(&p, &plan);
    if (!failed)
        failed = kernel.launch(&p, nullptr);
    if (failed)
        printf("shift %d: %s\n", shift, failed);
    memcpy(o, out + shift, Q_VALUES * sizeof *o);
    return failed != nullptr;
}

extern "C" int simt_case(const char *name)
{
    static __half aligned[Q_VALUES], shifted[Q_VALUES];
    void (*describe)(asc_kernel &) = !strcmp(name, "v2c_cpasync")   ? cpasync::asc_describe_v2c_cpasync
                                     : !strcmp(name, "v2c_wmma_qk") ? wmma_qk::asc_describe_v2c_wmma_qk
                                     : !strcmp(name, "v2c_wmma")    ? wmma_both::asc_describe_v2c_wmma
                                     : !strcmp(name, "fp16_mma")    ? mma_sync::asc_describe_fp16_mma
                                                                    : nullptr;
    if (!describe || run(describe, 0, aligned))
        return -1;
    int failures = 0;
    for (int shift = 1; shift < 8; shift += 3) {
        failures += run(describe, shift, shifted);
        if (memcmp(aligned, shifted, sizeof aligned) != 0) {
            printf("%s: O differs where arrays begin %d elements behind 16 bytes\n", name, shift);
            failures++;
        }
    }
    for (const __half &x : aligned)
        failures += !(fabsf((float)x) < 2.0f);
    return failures;
}
