/* Every macro of attnscope.h once, in a kernel small enough to compile in seconds. With ASC_MODE 0 its machine code
   must equal that of the same file with the lines marked "probe" blanked. */
#include "attnscope.h" // probe
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>
#include <stdint.h>

using namespace nvcuda;

/* Names of the kernel's own beside those of the header. */
namespace mine
{
struct asc_place {
};
template <class T> __device__ T min(T a, T b)
{
    return a < b ? a : b;
}
} // namespace mine
using namespace mine;

template <int D, bool CAUSAL> __global__ void all_macros(const __half *x, float *out, int heads, int n)
{
    __shared__ __align__(32) __half tile[16 * D];
    __shared__ __nv_bfloat16 wide[16];
    __shared__ __nv_fp8_e4m3 narrow[16];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    ASC_AT(blockIdx.y / heads, blockIdx.y % heads, blockIdx.x); // probe
    __shared__ __align__(32) float square[4][256];
    float sum = 0.0f;
    [[maybe_unused]] const float asc_s = 1, asc_site = 2, asc_open = 3, asc_now = 4; // probe
    for (int j = 0; j < n; j++) {
        for (int e = threadIdx.x; e < 16 * D; e += blockDim.x)
            tile[e] = x[j * 16 * D + e];
        if (threadIdx.x < 16) {
            wide[threadIdx.x] = __float2bfloat16(sum);
            narrow[threadIdx.x] = __nv_fp8_e4m3(sum);
        }
        __syncthreads();
        if (j == 0)                                                                                        // probe
            ASC_RECORD_SHARED(q, 0, r, 16, c, D, tile[r * D + c]);                                         // probe
        ASC_RECORD_SHARED(k, j, r, 16, c, D, tile[r * D + c]);                                             // probe
        ASC_RECORD_SHARED(v, j, r, 16, c, 1, wide[r]);                                                     // probe
        ASC_RECORD_SHARED(p, j, r, 16, c, 1, narrow[r]);                                                   // probe
        if (warp < 2)                                                                                      // probe
            ASC_RECORD_SHARED_BY(alpha, j, r, 16, c, 1, threadIdx.x, 64, (__syncwarp(), 0), square[0][r]); // probe
        float acc[4];
        for (int e = 0; e < 4; e++)
            acc[e] = __half2float(tile[(warp * 4 + e) * D + lane]) * (CAUSAL ? 2.0f : 1.0f);
        ASC_RECORD(s, j, i, 4, warp * 4 + i, lane, acc[i]); // probe
        for (int e = 0; e < 4; e++)
            sum += acc[e];
        ASC_RECORD_ROW(l, j, threadIdx.x % 16, true, sum);                                   // probe
        {                                                                                    // probe
            ASC_AT_ROWS(blockIdx.y / heads, r, 16, blockIdx.y % heads, 16 * blockIdx.x + r); // probe
            ASC_RECORD_ROW(lse, 0, threadIdx.x % 16, warp == 0, sum);                        // probe
            ASC_RECORD_SHARED(k, j, r, 16, c, D, tile[r * D + c]);                           // probe
        }                                                                                    // probe
        ASC_RECORD_ROW(m, j, threadIdx.x % 16, warp == 0, sum);                              // probe
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> rows;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> cols;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> product;
        wmma::fragment<wmma::accumulator, 16, 16, 16, __half> pair[2];
        wmma::fill_fragment(product, sum);
        wmma::fill_fragment(pair[0], __float2half(sum));
        wmma::fill_fragment(pair[1], __float2half(sum));
        wmma::load_matrix_sync(rows, tile, D);
        wmma::load_matrix_sync(cols, tile + warp * 16, D);
        wmma::mma_sync(product, rows, cols, product);
        ASC_RECORD_FRAGMENT(u, j, 0, 16 * warp, product); // probe
        ASC_RECORD_FRAGMENT(o, 0, 0, 32, pair);           // probe
        wmma::store_matrix_sync(square[warp], product, 16, wmma::mem_row_major);
        __syncwarp();
        sum += square[warp][lane] + __half2float(pair[0].x[0] + pair[1].x[1]);
        __syncthreads();
    }
    out[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

template __global__ void all_macros<64, false>(const __half *, float *, int, int);
template __global__ void all_macros<64, true>(const __half *, float *, int, int);

#ifdef ASC_ATTNSCOPE_H
static const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != 64)
        return "head_dim must be 64";
    plan->br = plan->bc = 16;
    plan->threads = 128;
    return nullptr;
}

static const char *launch(const asc_problem *problem, void *stream)
{
    const dim3 grid((problem->q_len + 15) / 16, problem->batch * problem->heads), block(128);
    if (problem->causal)
        return ASC_LAUNCH((all_macros<64, true>), grid, block, 0, stream, static_cast<const __half *>(problem->q),
                          problem->lse, problem->heads, problem->kv_len / 16);
    return ASC_LAUNCH((all_macros<64, false>), grid, block, 64 * 1024, stream, static_cast<const __half *>(problem->q),
                      problem->lse, problem->heads, problem->kv_len / 16);
}

ASC_KERNEL(all_macros)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
}
#endif
