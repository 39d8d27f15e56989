// wmma.cuh: what v2c_wmma_qk and v2c_wmma have shown, for the rungs above them: Scores is Q Kt of the one, for
// v2c_wmma, Strip is P V of the other as well, for rungs that differ in how Q, K and V come into shared memory. A block
// is 4 warps on one 64-row q tile, a kv tile has 64 keys; a warp owns 16 rows.

#pragma once

#include "ladder.cuh"

#include <mma.h>

namespace ladder
{

namespace wmma = nvcuda::wmma;

constexpr int BR = 64, BC = 64;

// What the other lane of the row has.
__device__ __forceinline__ float other_lane(float x)
{
    return __shfl_xor_sync(0xffffffffu, x, 1);
}

// A warp's rows of Q, and what they give with the keys of a tile. Two lanes share a row; a lane has every other group
// of four of its keys.
template <class T, int D> struct Scores {
    static constexpr int LD = D + 8, TILE = 64 * LD; /* elements of a row of Q, K and V, of a tile */
    static constexpr int LDS = BC + 8;               /* elements of a row of scores and of weights */
    static constexpr size_t bytes = BR * LDS * sizeof(float);
    static_assert(TILE * sizeof(T) <= bytes, "Q has the place of the scores");

    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> q[D / 16];
    float *scores; /* [16][LDS] */
    int row, half; /* this lane's, in the q tile; which of its lanes */

    __device__ __forceinline__ int key(int i) const
    {
        return i / 4 * 8 + half * 4 + i % 4;
    }

    // Takes Q into fragments. The block meets before begin(), since scores may lie where Q was.
    __device__ __forceinline__ explicit Scores(const T *sq)
    {
#pragma unroll
        for (int d = 0; d < D / 16; d++)
            wmma::load_matrix_sync(q[d], sq + threadIdx.x / 32 * 16 * LD + d * 16, LD);
    }

    __device__ __forceinline__ void begin(void *place)
    {
        row = threadIdx.x / 2;
        half = threadIdx.x % 2;
        scores = static_cast<float *>(place) + threadIdx.x / 32 * 16 * LDS;
    }

    // This lane's scores, scaled; keys from `seen` on are masked.
    __device__ __forceinline__ void multiply(float (&s)[32], const T *sk, float scale, int seen) const
    {
        // Keys are the columns of a column-major matrix whose columns are the rows of the K tile.
#pragma unroll
        for (int n = 0; n < BC / 16; n++) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
            wmma::fill_fragment(acc, 0.0f);
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> fk;
                wmma::load_matrix_sync(fk, sk + n * 16 * LD + d * 16, LD);
                wmma::mma_sync(acc, q[d], fk, acc);
            }
            wmma::store_matrix_sync(scores + n * 16, acc, LDS, wmma::mem_row_major);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 32; i += 4) {
            const float4 x = *reinterpret_cast<const float4 *>(scores + row % 16 * LDS + key(i));
            s[i] = x.x;
            s[i + 1] = x.y;
            s[i + 2] = x.z;
            s[i + 3] = x.w;
        }
#pragma unroll
        for (int i = 0; i < 32; i++)
            s[i] = key(i) < seen ? s[i] * scale : -INFINITY;
    }
};

// What a warp keeps from tile to tile, but for m and l. At the end a lane has every other group of eight of its row's
// columns.
template <int D> struct Strip : Scores<__half, D> {
    using Base = Scores<__half, D>;
    using Base::half, Base::key, Base::LD, Base::LDS, Base::row, Base::scores;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> map, u[D / 16]; /* map: an element is 32 row + column */

    __device__ __forceinline__ int column(int i) const
    {
        return i / 8 * 16 + half * 8 + i % 8;
    }

    using Base::Base;

    __device__ __forceinline__ void begin(void *place)
    {
        Base::begin(place);
        for (int e = threadIdx.x % 32; e < 256; e += 32)
            scores[e] = static_cast<float>(e / 16 * 32 + e % 16);
        __syncwarp();
        wmma::load_matrix_sync(map, scores, 16, wmma::mem_row_major);
#pragma unroll
        for (int j = 0; j < D / 16; j++)
            wmma::fill_fragment(u[j], 0.0f);
    }

    // U becomes alpha U + P V; the weights take the place of the scores.
    __device__ __forceinline__ void add(float alpha, const float (&weight)[32], const __half *sv)
    {
        __half *weights = reinterpret_cast<__half *>(scores);
        __syncwarp(); // all scores of the strip have been read
#pragma unroll
        for (int i = 0; i < 32; i++)
            weights[row % 16 * LDS + key(i)] = __float2half(weight[i]);
        __syncwarp();
        rescale(alpha);
#pragma unroll
        for (int n = 0; n < BC / 16; n++) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fp;
            wmma::load_matrix_sync(fp, weights + n * 16, LDS);
#pragma unroll
            for (int j = 0; j < D / 16; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fv;
                wmma::load_matrix_sync(fv, sv + n * 16 * LD + j * 16, LD);
                wmma::mma_sync(u[j], fp, fv, u[j]);
            }
        }
    }

    // Each row of U times what its lanes have.
    __device__ __forceinline__ void rescale(float factor)
    {
#pragma unroll
        for (int e = 0; e < map.num_elements; e++) {
            const float of_row = __shfl_sync(0xffffffffu, factor, static_cast<int>(map.x[e]) / 32 * 2);
#pragma unroll
            for (int j = 0; j < D / 16; j++)
                u[j].x[e] *= of_row;
        }
    }

    // This lane's columns of U, through the place of the scores, where BC of a row have room at a time.
    __device__ __forceinline__ void take(__half (&out)[D / 2]) const
    {
#pragma unroll
        for (int side = 0; side < D; side += BC) {
            __syncwarp();
#pragma unroll
            for (int n = 0; n < BC / 16; n++)
                wmma::store_matrix_sync(scores + n * 16, u[side / 16 + n], LDS, wmma::mem_row_major);
            __syncwarp();
#pragma unroll
            for (int i = 0; i < BC / 2; i++)
                out[side / 2 + i] = __float2half(scores[row % 16 * LDS + column(i)]);
        }
    }

    // The same columns of a row of O.
    __device__ __forceinline__ void store(__half *o, const __half (&out)[D / 2], bool aligned) const
    {
#pragma unroll
        for (int i = 0; i < D / 2; i += 8) {
            if (aligned) {
                *reinterpret_cast<uint4 *>(o + column(i)) = *reinterpret_cast<const uint4 *>(out + i);
            } else {
                for (int e = 0; e < 8; e++)
                    o[column(i) + e] = out[i + e];
            }
        }
    }
};

} // namespace ladder
