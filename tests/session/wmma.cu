// Attention with both products on tensor cores, as small as it can be: 4 warps, 16 rows each, everything in shared
// memory. What the oracle's reading of tensor cores is tried on.
#include <cuda_fp16.h>
#include <math.h>
#include <mma.h>

#include "attnscope.h"

namespace
{

using namespace nvcuda;

constexpr int BR = 64, BC = 64, D = 64, WARPS = 4, LD = D + 8;

__device__ void load_tile(__half *tile, const __half *head, int64_t row_stride, int first, int rows)
{
    for (int i = threadIdx.x; i < 64 * D; i += 32 * WARPS)
        tile[i / D * LD + i % D] =
            first + i / D < rows ? head[(first + i / D) * row_stride + i % D] : __float2half(0.0f);
}

__global__ void attention(asc_problem p, asc_strides qs, asc_strides ks, int reach)
{
    __shared__ __align__(32) __half q[BR * LD], k[BC * LD], v[BC * LD], w[BR * LD];
    __shared__ __align__(32) float s[BR * LD], u[BR * LD];
    __shared__ float m[BR], l[BR], alpha[BR];
    const int warp = threadIdx.x / 32, q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int kv_head = head / (p.heads / p.kv_heads), tid = threadIdx.x, threads = 32 * WARPS;
    const __half *kg = (const __half *)p.k + batch * ks.batch + kv_head * ks.head;
    const __half *vg = (const __half *)p.v + batch * ks.batch + kv_head * ks.head;
    ASC_AT(batch, head, q_tile);
    load_tile(q, (const __half *)p.q + batch * qs.batch + head * qs.head, qs.row, q_tile * BR, p.q_len);
    for (int i = tid; i < BR * LD; i += threads)
        u[i] = 0.0f;
    if (tid < BR) {
        m[tid] = -INFINITY;
        l[tid] = 0.0f;
    }
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, q[r * LD + c]);

    const int keys = min(p.kv_len, min(q_tile * BR + BR, p.q_len) + reach);
    for (int kt = 0; kt * BC < keys; kt++) {
        load_tile(k, kg, ks.row, kt * BC, p.kv_len);
        load_tile(v, vg, ks.row, kt * BC, p.kv_len);
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, k[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, v[r * LD + c]);

        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
        for (int n = 0; n < BC; n += 16) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
            wmma::fill_fragment(acc, 0.0f);
            for (int d = 0; d < D; d += 16) {
                wmma::load_matrix_sync(a, q + warp * 16 * LD + d, LD);
                wmma::load_matrix_sync(b, k + n * LD + d, LD);
                wmma::mma_sync(acc, a, b, acc);
            }
            for (int i = 0; i < acc.num_elements; i++)
                acc.x[i] = acc.x[i] * p.scale;
            wmma::store_matrix_sync(s + warp * 16 * LD + n, acc, LD, wmma::mem_row_major);
        }
        __syncthreads();
        for (int i = tid; i < BR * BC; i += threads) {
            const int row = i / BC, key = kt * BC + i % BC;
            if (key >= p.kv_len || key > q_tile * BR + row + reach)
                s[row * LD + i % BC] = -INFINITY;
        }
        __syncthreads();
        ASC_RECORD_SHARED(s, kt, r, BR, c, BC, s[r * LD + c]);

        if (tid < BR) {
            float top = m[tid], sum = 0.0f;
            for (int c = 0; c < BC; c++)
                top = fmaxf(top, s[tid * LD + c]);
            const float base = top == -INFINITY ? 0.0f : top;
            alpha[tid] = __expf(m[tid] - base);
            for (int c = 0; c < BC; c++) {
                const float weight = __expf(s[tid * LD + c] - base);
                w[tid * LD + c] = __float2half(weight);
                sum += weight;
            }
            m[tid] = top;
            l[tid] = l[tid] * alpha[tid] + sum;
            ASC_RECORD_ROW(m, kt, tid, true, m[tid]);
            ASC_RECORD_ROW(alpha, kt, tid, true, alpha[tid]);
            ASC_RECORD_ROW(l, kt, tid, true, l[tid]);
        }
        __syncthreads();
        ASC_RECORD_SHARED(p, kt, r, BR, c, BC, w[r * LD + c]);
        for (int i = tid; i < BR * D; i += threads)
            u[i / D * LD + i % D] *= alpha[i / D];
        __syncthreads();
        for (int n = 0; n < D; n += 16) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
            wmma::load_matrix_sync(acc, u + warp * 16 * LD + n, LD, wmma::mem_row_major);
            for (int c = 0; c < BC; c += 16) {
                wmma::load_matrix_sync(a, w + warp * 16 * LD + c, LD);
                wmma::load_matrix_sync(b, v + c * LD + n, LD);
                wmma::mma_sync(acc, a, b, acc);
            }
            wmma::store_matrix_sync(u + warp * 16 * LD + n, acc, LD, wmma::mem_row_major);
        }
        __syncthreads();
        ASC_RECORD_SHARED(u, kt, r, BR, c, D, u[r * LD + c]);
    }

    for (int i = tid; i < BR * D; i += threads) {
        const int row = i / D;
        const __half o = __float2half(l[row] > 0.0f ? u[row * LD + i % D] / l[row] : 0.0f);
        w[row * LD + i % D] = o;
        if (q_tile * BR + row < p.q_len)
            ((__half *)p.o)[batch * qs.batch + head * qs.head + (q_tile * BR + row) * qs.row + i % D] = o;
    }
    __syncthreads();
    ASC_RECORD_SHARED(o, 0, r, BR, c, D, w[r * LD + c]);
    if (tid < BR && q_tile * BR + tid < p.q_len) {
        const float lse = l[tid] > 0.0f ? m[tid] + __logf(l[tid]) : INFINITY;
        p.lse[((int64_t)batch * p.heads + head) * p.q_len + q_tile * BR + tid] = lse;
        ASC_RECORD_ROW(lse, 0, tid, true, lse);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != D)
        return "head_dim must be 64";
    if (problem->window_left >= 0 || problem->window_right >= 0 || problem->softcap != 0)
        return "no window, no soft cap";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = 32 * WARPS;
    return NULL;
}

const char *launch(const asc_problem *problem, void *stream)
{
    const int reach = problem->causal == ASC_CAUSAL_NONE       ? problem->kv_len
                      : problem->causal == ASC_CAUSAL_TOP_LEFT ? 0
                                                               : problem->kv_len - problem->q_len;
    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads, problem->batch);
    return ASC_LAUNCH(attention, grid, 32 * WARPS, 0, stream, *problem,
                      asc_strides_of(problem, problem->heads, problem->q_len),
                      asc_strides_of(problem, problem->kv_heads, problem->kv_len), reach);
}

} // namespace

ASC_KERNEL(wmma_test)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.channel_dtype[asc_p] = ASC_F16;
    kernel.conventions.s_unit = kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = kernel.conventions.acc_u = ASC_ACC_MMA_F16;
}
