// nvcuda::wmma and cp.async, each against values worked out by hand.
#include "check.h"
#include <cuda_pipeline.h>
#include <mma.h>
#include <string.h>

using namespace nvcuda;

template <class T> __device__ float f(T v)
{
    return (float)v;
}

// Small whole numbers: every product and sum is exact, so any order gives the same.
__device__ float a_of(int row, int k)
{
    return (float)((row * 5 + k * 3) % 7 - 3);
}
__device__ float b_of(int k, int col)
{
    return (float)((k * 11 + col * 2) % 5 - 2);
}
__device__ float c_of(int row, int col)
{
    return (float)(row - 2 * col);
}

template <int M, int N, class T, class LA, class LB, class S> __global__ void products()
{
    constexpr bool rows_a = std::is_same<LA, wmma::row_major>::value, rows_b = std::is_same<LB, wmma::row_major>::value;
    constexpr int LDA = (rows_a ? 16 : M) + 8, LDB = (rows_b ? N : 16) + 8, LDC = N + 8, LDD = M + 8;
    __shared__ __align__(128) T a[32 * 40], b[32 * 40];
    __shared__ __align__(128) S c[32 * 40], d[32 * 40];
    const int lane = threadIdx.x;
    for (int e = lane; e < M * 16; e += 32)
        a[rows_a ? e / 16 * LDA + e % 16 : e % 16 * LDA + e / 16] = T(a_of(e / 16, e % 16));
    for (int e = lane; e < 16 * N; e += 32)
        b[rows_b ? e / N * LDB + e % N : e % N * LDB + e / N] = T(b_of(e / N, e % N));
    for (int e = lane; e < M * N; e += 32)
        c[e / N * LDC + e % N] = S(c_of(e / N, e % N));
    __syncwarp();
    wmma::fragment<wmma::matrix_a, M, N, 16, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, 16, T, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, 16, S> fc, fd;
    wmma::load_matrix_sync(fa, a, LDA);
    wmma::load_matrix_sync(fb, b, LDB);
    wmma::load_matrix_sync(fc, c, LDC, wmma::mem_row_major);
    wmma::fill_fragment(fd, -1.0f);
    for (int i = 0; i < fa.num_elements; i++) // elementwise work touches every element, wherever it lies
        fa.x[i] = T(2.0f * f(fa.x[i]));
    wmma::mma_sync(fd, fa, fb, fc);
    wmma::store_matrix_sync(d, fd, LDD, wmma::mem_col_major);
    __syncwarp();
    for (int e = lane; e < M * N; e += 32) {
        const int row = e / N, col = e % N;
        float want = c_of(row, col);
        for (int k = 0; k < 16; k++)
            want += 2.0f * a_of(row, k) * b_of(k, col);
        CHECK(f(d[col * LDD + row]), want);
    }
    CHECK((int)fd.num_elements, 8);
}

// What the map of an accumulator is used for: an index tile says where each element lies.
__global__ void index_tile()
{
    __shared__ __align__(128) float tile[256];
    __shared__ int seen[256];
    for (int e = threadIdx.x; e < 256; e += 32) {
        tile[e] = (float)e;
        seen[e] = 0;
    }
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> map;
    wmma::load_matrix_sync(map, tile, 16, wmma::mem_row_major);
    for (int i = 0; i < map.num_elements; i++)
        seen[(int)map.x[i]]++;
    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32)
        CHECK(seen[e], 1);
    CHECK((int)map.x[0], (int)threadIdx.x / 4 * 16 + (int)threadIdx.x % 4 * 2); // as mma.m16n8k16 has it
    CHECK((int)map.x[2] - (int)map.x[0], 8 * 16);
    CHECK((int)map.x[4] - (int)map.x[0], 8);
}

// 1 + 1.5 ulp/2: a tensor core cuts, an FMA would round up.
__global__ void cuts()
{
    __shared__ __align__(128) __half a[256], b[256];
    for (int e = threadIdx.x; e < 256; e += 32) {
        a[e] = __half(e % 16 == 0 ? 0x1.8p-12f : 0.0f);
        b[e] = __half(e / 16 == 0 ? 0x1p-12f : 0.0f);
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::fill_fragment(sum, 1.0f);
    wmma::mma_sync(sum, fa, fb, sum);
    for (int i = 0; i < sum.num_elements; i++)
        CHECK(sum.x[i], 1.0f);
}

// Every copy happens at the wait for its group, not before; what nobody waits for never does.
__global__ void copies(const uint4 *in)
{
    __shared__ uint4 to[4][64];
    const int t = threadIdx.x;
    for (int i = 0; i < 4; i++)
        to[i][t] = make_uint4(7, 7, 7, 7);
    __pipeline_memcpy_async(&to[0][t], &in[t], 16);
    __pipeline_commit();
    __pipeline_memcpy_async(&to[1][t].y, &in[t].y, 4);
    __pipeline_memcpy_async(&to[1][t].z, &in[t].z, 8, 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&to[2][t], in, 16, 16);
    __pipeline_wait_prior(2);
    CHECK(to[0][t].x, 7u);
    __pipeline_wait_prior(1);
    CHECK(to[0][t].x == (unsigned)t && to[0][t].w == (unsigned)t + 3000, true);
    CHECK(to[1][t].y, 7u);
    __pipeline_wait_prior(0);
    CHECK(to[1][t].x == 7 && to[1][t].y == (unsigned)t + 1000 && to[1][t].z == (unsigned)t + 2000 && to[1][t].w == 0,
          true);
    CHECK(to[2][t].x, 7u); // not committed
    __pipeline_commit();
    __pipeline_wait_prior(0);
    CHECK(to[2][t].x + to[2][t].w, 0u);
    for (int i = 0; i < 100; i++) // more than fit at first, in a pipeline of two stages
    {
        __pipeline_memcpy_async(&to[i % 2][t], &in[i % 64], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        if (i > 0)
            CHECK(to[(i + 1) % 2][t].x, (unsigned)(i - 1) % 64);
    }
    __pipeline_wait_prior(0);
    // under way when the next block of this worker begins
    __pipeline_memcpy_async(&to[3][t], &in[t], 16); // at: left
    __pipeline_commit();
    __syncthreads();
    CHECK(to[3][(t + 1) % 64].x, 7u);
}

#define LAUNCH(kernel, grid, block, ...)                                                                               \
    do {                                                                                                               \
        if (simt_launch_kernel(#kernel, kernel, grid, block, 0, ##__VA_ARGS__))                                        \
            failures++, printf("%s: %s\n", #kernel, simt_error());                                                     \
    } while (0)

template <int M, int N, class T> static void all_layouts()
{
    LAUNCH((products<M, N, T, wmma::row_major, wmma::row_major, float>), 1, 32);
    LAUNCH((products<M, N, T, wmma::row_major, wmma::col_major, float>), 1, 32);
    LAUNCH((products<M, N, T, wmma::col_major, wmma::row_major, float>), 1, 32);
    LAUNCH((products<M, N, T, wmma::col_major, wmma::col_major, float>), 1, 32);
}

template <class T> static void all_shapes()
{
    all_layouts<16, 16, T>();
    all_layouts<32, 8, T>();
    all_layouts<8, 32, T>();
}

extern "C" int simt_case(const char *name)
{
    if (!strcmp(name, "wmma")) {
        all_shapes<__half>();
        all_shapes<__nv_bfloat16>();
        LAUNCH((products<16, 16, __half, wmma::row_major, wmma::col_major, __half>), 1, 32);
        LAUNCH((products<32, 8, __half, wmma::row_major, wmma::col_major, __half>), 1, 32);
        LAUNCH(index_tile, 1, 32);
        LAUNCH(cuts, 1, 32);
    } else if (!strcmp(name, "copies")) {
        static uint4 in[64];
        for (unsigned i = 0; i < 64; i++)
            in[i] = make_uint4(i, i + 1000, i + 2000, i + 3000);
        LAUNCH(copies, 5, 64, in);
    } else {
        return -1;
    }
    return failures;
}
