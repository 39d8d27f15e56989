/* A kernel of kernels/ as a library: no probes, no attnscope. Built with -DKERNEL='"kernels/x.cu"'; bursts.py loads it.
 */
#define ASC_BUILD 1
#include "attnscope.h"

#include KERNEL

#include <cuda_runtime.h>

void asc_launching(const char *, const void *, const unsigned[3], const unsigned[3], size_t) {}

const char *asc_launch_failure(int status)
{
    return cudaGetErrorString(static_cast<cudaError_t>(status));
}

/* Nothing is linked that could be missing. */
extern "C" const char *asc_missing_sentence(const char *mangled)
{
    return mangled;
}
extern "C" void asc_missing_end(const char *) {}

/* NULL, or why not. shape: batch, heads, kv_heads, q_len, kv_len, head_dim, causal (0, 1 top-left, 2 bottom-right),
   type (0 f16, 1 bf16, 2 e4m3), rows that share a scale (0: those of a head). Arrays are
   [batch][heads][rows][head_dim]; scales, of codes, [batch][heads][groups] of Q, K and V. The plan is asked each time,
   as attnscope does once. */
extern "C" const char *plain_launch(const int *shape, const void *q, const void *k, const void *v, void *o, float *lse,
                                    const float *const *scales, void *stream)
{
    asc_problem p = {};
    p.batch = shape[0];
    p.heads = shape[1];
    p.kv_heads = shape[2];
    p.q_len = shape[3];
    p.kv_len = shape[4];
    p.head_dim = shape[5];
    p.causal = shape[6] == 1 ? ASC_CAUSAL_TOP_LEFT : shape[6] == 2 ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE;
    p.dtype = p.k_dtype = p.v_dtype = shape[7] == 0 ? ASC_F16 : shape[7] == 1 ? ASC_BF16 : ASC_E4M3;
    p.scale_rows = shape[8];
    p.q_scale = scales[0];
    p.k_scale = scales[1];
    p.v_scale = scales[2];
    p.window_left = p.window_right = -1;
    p.scale = 1.0f / sqrtf(static_cast<float>(p.head_dim));
    p.q = q;
    p.k = k;
    p.v = v;
    p.o = o;
    p.lse = lse;
    static const asc_kernel kernel = [] {
        asc_kernel described = {};
        asc_describe(described);
        return described;
    }();
    asc_plan tiles = {};
    const char *why = kernel.plan(&p, &tiles);
    return why ? why : tiles.workspace_bytes ? "a workspace is not given here" : kernel.launch(&p, stream);
}
