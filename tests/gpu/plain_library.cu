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

/* NULL, or why not. shape: batch, heads, kv_heads, q_len, kv_len, head_dim, causal (0, 1 top-left, 2 bottom-right),
   bf16. Arrays are [batch][heads][rows][head_dim]. The plan is asked each time, as attnscope does once. */
extern "C" const char *plain_launch(const int *shape, const void *q, const void *k, const void *v, void *o, float *lse,
                                    void *stream)
{
    asc_problem p = {};
    p.batch = shape[0];
    p.heads = shape[1];
    p.kv_heads = shape[2];
    p.q_len = shape[3];
    p.kv_len = shape[4];
    p.head_dim = shape[5];
    p.causal = shape[6] == 1 ? ASC_CAUSAL_TOP_LEFT : shape[6] == 2 ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE;
    p.dtype = p.k_dtype = p.v_dtype = shape[7] ? ASC_BF16 : ASC_F16;
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
