// Attention on inputs of any type, codes among them, as small as it can be: a first launch leaves K and V as f16 values
// in the workspace, a second one works on these, a thread for each row. What inputs are and where they are is tried on
// it.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>
#include <stdint.h>

#include "attnscope.h"

namespace
{

constexpr int BR = 16, BC = 16, D_MAX = 64;

__device__ float element(const void *tensor, int dtype, int64_t at, const float *scale, int64_t scale_at)
{
    const unsigned char code = dtype == ASC_F16 ? 0 : ((const unsigned char *)tensor)[at];
    switch (dtype) {
    case ASC_F16:
        return __half2float(((const __half *)tensor)[at]);
    case ASC_E4M3:
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3))) * scale[scale_at];
    case ASC_E5M2:
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E5M2))) * scale[scale_at];
    default:
        return (float)(code - ASC_U8_MIDPOINT) * scale[scale_at];
    }
}

// [batch][kv_heads][kv_len][head_dim] K, then V.
__global__ void as_values(asc_problem p, asc_strides ks)
{
    const int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int64_t from = batch * ks.batch + head * ks.head + row * ks.row;
    const int64_t to = (((int64_t)batch * p.kv_heads + head) * p.kv_len + row) * p.head_dim;
    const int64_t scale_at = asc_scale_at(&p, p.kv_heads, p.kv_len, batch, head, row);
    __half *k = (__half *)p.workspace, *v = k + (int64_t)p.batch * p.kv_heads * p.kv_len * p.head_dim;
    for (int d = threadIdx.x; d < p.head_dim; d += BR) {
        k[to + d] = __float2half(element(p.k, p.k_dtype, from + d, p.k_scale, scale_at));
        v[to + d] = __float2half(element(p.v, p.v_dtype, from + d, p.v_scale, scale_at));
    }
}

__global__ void attention(asc_problem p, asc_strides qs)
{
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, tid = threadIdx.x, row = q_tile * BR + tid;
    const int kv_head = head / (p.heads / p.kv_heads), in = row < p.q_len;
    __half *k = (__half *)p.workspace + ((int64_t)batch * p.kv_heads + kv_head) * p.kv_len * p.head_dim;
    __half *v = k + (int64_t)p.batch * p.kv_heads * p.kv_len * p.head_dim;
    const int64_t at = batch * qs.batch + head * qs.head + row * qs.row;
    __half q[D_MAX];
    float u[D_MAX], m = -INFINITY, l = 0.0f;
    ASC_AT(batch, head, q_tile);
    for (int d = 0; d < p.head_dim; d++) {
        const int64_t scale_at = in ? asc_scale_at(&p, p.heads, p.q_len, batch, head, row) : 0;
        q[d] = in ? __float2half(element(p.q, p.dtype, at + d, p.q_scale, scale_at)) : __float2half(0.0f);
        u[d] = 0.0f;
    }
    ASC_RECORD(q, 0, i, p.head_dim, tid, i, q[i]);
    for (int kt = 0; kt * BC < p.kv_len; kt++) {
        const int keys = min(BC, p.kv_len - kt * BC);
        __half *k_tile = k + (int64_t)kt * BC * p.head_dim, *v_tile = v + (int64_t)kt * BC * p.head_dim;
        float s[BC], w[BC];
        ASC_RECORD_SHARED(k, kt, r, keys, c, p.head_dim, k_tile[r * p.head_dim + c]);
        ASC_RECORD_SHARED(v, kt, r, keys, c, p.head_dim, v_tile[r * p.head_dim + c]);
        for (int c = 0; c < BC; c++) {
            float dot = 0.0f;
            for (int d = 0; d < p.head_dim && c < keys; d++)
                dot += __half2float(q[d]) * __half2float(k_tile[c * p.head_dim + d]);
            s[c] = c < keys ? dot * p.scale : -INFINITY;
        }
        ASC_RECORD(s, kt, i, BC, tid, i, s[i]);
        float top = m;
        for (int c = 0; c < BC; c++)
            top = fmaxf(top, s[c]);
        float alpha = __expf(m - top);
        m = top;
        ASC_RECORD_ROW(m, kt, tid, true, m);
        ASC_RECORD_ROW(alpha, kt, tid, true, alpha);
        l *= alpha;
        for (int c = 0; c < BC; c++) {
            w[c] = __expf(s[c] - m);
            l += w[c];
        }
        ASC_RECORD(p, kt, i, BC, tid, i, w[i]);
        ASC_RECORD_ROW(l, kt, tid, true, l);
        for (int d = 0; d < p.head_dim; d++) {
            u[d] *= alpha;
            for (int c = 0; c < keys; c++)
                u[d] += w[c] * __half2float(v_tile[c * p.head_dim + d]);
        }
        ASC_RECORD(u, kt, i, p.head_dim, tid, i, u[i]);
    }
    if (!in)
        return;
    for (int d = 0; d < p.head_dim; d++)
        ((__half *)p.o)[at + d] = __float2half(u[d] / l);
    p.lse[((int64_t)batch * p.heads + head) * p.q_len + row] = m + __logf(l);
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim > D_MAX || problem->causal || problem->window_left >= 0 || problem->window_right >= 0 ||
        problem->softcap != 0)
        return "head_dim at most 64, no mask, no soft cap";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = BR;
    plan->workspace_bytes =
        (uint64_t)2 * problem->batch * problem->kv_heads * problem->kv_len * problem->head_dim * sizeof(__half);
    return NULL;
}

const char *launch(const asc_problem *problem, void *stream)
{
    const asc_problem &p = *problem;
    const char *failed = ASC_LAUNCH(as_values, dim3(p.kv_len, p.kv_heads, p.batch), BR, 0, stream, p,
                                    asc_strides_of(&p, p.kv_heads, p.kv_len));
    if (failed)
        return failed;
    return ASC_LAUNCH(attention, dim3((p.q_len + BR - 1) / BR, p.heads, p.batch), BR, 0, stream, p,
                      asc_strides_of(&p, p.heads, p.q_len));
}

} // namespace

ASC_KERNEL(codes_test)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = kernel.k_dtypes = kernel.v_dtypes =
        ASC_SUPPORTS(F16) | ASC_SUPPORTS(E4M3) | ASC_SUPPORTS(E5M2) | ASC_SUPPORTS(U8);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.o_dtype = ASC_F16;
    kernel.conventions.s_unit = kernel.conventions.m_unit = ASC_UNIT_SCALED;
}
