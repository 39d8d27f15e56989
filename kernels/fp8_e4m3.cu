// fp8_e4m3: fp8_sim with codes that are numbers, e4m3, four exponent bits and three of the significand; codes and
// scales come with the problem. No table: a conversion of two codes to f16, which is exact, and a product with the
// scale. A scale belongs to the tensor, to a head, or to a block of rows of a head; the kernel asks for it row by row,
// so that any of these is the same to it.
//
// With MIXED (0 or 1; scenario.define, -D MIXED=1) Q stays as it is, in f16. K and V are what fills memory, as a cache
// of keys and values does, and Q is read once: codes save little there, and their rounding adds to that of K in every
// score. With MIXED=0, as it is built, Q comes as codes too.
//
// The codes of the next kv tile are on their way by cp.async while this one is worked on. Each thread takes the codes
// that it copied itself, so that only the f16 tiles need barriers: one that they are there, one that they have been
// read.
//
// Shared memory in bytes, head_dim 64 / 128 (paddings as in v2c_wmma):
//     codes  [2][64][D] e4m3       8192   16384     of K and V, of Q (MIXED=0) before the first kv tile
//     k      [64][D + 8] f16       9216   17408
//     v      [64][D + 8] f16       9216   17408
//     q      [64][D + 8] f16       9216   17408     gone before the first scores come
//     s      [64][72] f32         18432   18432     in the place of q; p [64][72] f16 and at the end u in that of s
//                                 45056   69632
//
// Known to be bad at: precision, three bits wherever the element stands, which finer scales do not change; speed, since
// all products are those of f16 and the conversion comes on top; short kv, where there is little to save.

#include "wmma.cuh"

#include <cuda_fp8.h>
#include <limits.h>

#ifndef MIXED
#define MIXED 0
#endif
ASC_CHOICES(MIXED, 0, 1);

namespace
{

using namespace ladder;
using Code = __nv_fp8_e4m3;
using Query = std::conditional_t<MIXED, __half, Code>;

constexpr int THREADS = 128, QUERY_TYPE = MIXED ? ASC_F16 : ASC_E4M3;

struct ScaledParams : Params<Query, Code, __half> {
    const float *q_scale, *k_scale, *v_scale; /* [batch][heads][groups], [batch][kv_heads][groups] */
    int q_groups, kv_groups, group_rows;      /* group_rows rows of a head share a scale */
};

// Rows first .. first + 63 of a head, each thread the codes that it has copied. Every e4m3 number is an f16 number; the
// product with the scale is rounded to f16 once it is made in f32.
template <int D>
__device__ __forceinline__ void dequantize(__half *tile, const Code *codes, const float *scales, int group_rows,
                                           int first, int rows)
{
    for (int i = threadIdx.x; i < 64 * D / 16; i += THREADS) {
        const int r = i / (D / 16), d = i % (D / 16) * 16;
        const float scale = scales[min(first + r, rows - 1) / group_rows];
        __align__(16) __nv_fp8x2_storage_t two[8];
        __align__(16) __half2 out[8];
        *reinterpret_cast<uint4 *>(two) = *reinterpret_cast<const uint4 *>(codes + r * D + d);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const float2 value = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(two[e], __NV_E4M3)));
            out[e] = __floats2half2_rn(value.x * scale, value.y * scale);
        }
        uint4 *to = reinterpret_cast<uint4 *>(tile + r * Strip<D>::LD + d);
        to[0] = reinterpret_cast<const uint4 *>(out)[0];
        to[1] = reinterpret_cast<const uint4 *>(out)[1];
    }
}

template <int D> __global__ void __launch_bounds__(THREADS) fp8_e4m3(ScaledParams p)
{
    constexpr int TILE = Strip<D>::TILE;
    extern __shared__ __align__(128) unsigned char shared[];
    Code *k_codes = reinterpret_cast<Code *>(shared), *v_codes = k_codes + BC * D;
    __half *sk = reinterpret_cast<__half *>(v_codes + BC * D), *sv = sk + TILE, *sq = sv + TILE;

    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, kv_head = head / p.group;
    const int64_t q_index = static_cast<int64_t>(batch) * p.heads + head;
    const int64_t kv_index = static_cast<int64_t>(batch) * p.kv_heads + kv_head;
    const Query *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const Code *k = p.k + batch * p.kv_strides.batch + kv_head * p.kv_strides.head;
    const Code *v = p.v + batch * p.kv_strides.batch + kv_head * p.kv_strides.head;
    const float *q_scale = p.q_scale + q_index * p.q_groups;
    const float *k_scale = p.k_scale + kv_index * p.kv_groups, *v_scale = p.v_scale + kv_index * p.kv_groups;
    ASC_AT(batch, head, q_tile);

    const int keys = p.keys(q_tile, BR);

    if constexpr (MIXED) {
        copy_tile<Query, D, Strip<D>::LD, BR, THREADS>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
        __pipeline_commit();
    } else {
        copy_tile<Query, D, D, BR, THREADS>(k_codes, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        dequantize<D>(sq, k_codes, q_scale, p.group_rows, q_tile * BR, p.q_len);
    }
    if (keys > 0) {
        copy_tile<Code, D, D, BC, THREADS>(k_codes, k, p.kv_strides.row, 0, p.kv_len, p.aligned);
        copy_tile<Code, D, D, BC, THREADS>(v_codes, v, p.kv_strides.row, 0, p.kv_len, p.aligned);
    }
    __pipeline_commit();
    if (MIXED)
        __pipeline_wait_prior(1);
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * Strip<D>::LD + c]);

    Strip<D> strip(sq);
    __syncthreads(); // from here on the place of Q belongs to the scores
    strip.begin(sq);
    float m = -INFINITY, l = 0.0f;

    for (int kt = 0; kt * BC < keys; kt++) {
        __pipeline_wait_prior(0);
        dequantize<D>(sk, k_codes, k_scale, p.group_rows, kt * BC, p.kv_len);
        dequantize<D>(sv, v_codes, v_scale, p.group_rows, kt * BC, p.kv_len);
        if ((kt + 1) * BC < keys) {
            copy_tile<Code, D, D, BC, THREADS>(k_codes, k, p.kv_strides.row, (kt + 1) * BC, p.kv_len, p.aligned);
            copy_tile<Code, D, D, BC, THREADS>(v_codes, v, p.kv_strides.row, (kt + 1) * BC, p.kv_len, p.aligned);
        }
        __pipeline_commit();
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * Strip<D>::LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * Strip<D>::LD + c]);

        float s[32];
        strip.multiply(s, sk, p.scale, p.seen(q_tile * BR + strip.row) - kt * BC);
        ASC_RECORD(s, kt, i, 32, strip.row, strip.key(i), s[i]);
        const float m_prev = m, largest = largest_of(s);
        m = fmaxf(m, fmaxf(largest, other_lane(largest)));
        ASC_RECORD_ROW(m, kt, strip.row, strip.half == 0, m);
        const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
        float alpha = __expf(m_prev - base);
        ASC_RECORD_ROW(alpha, kt, strip.row, strip.half == 0, alpha);
#pragma unroll
        for (int i = 0; i < 32; i++)
            s[i] = __expf(s[i] - base);
        ASC_RECORD(p, kt, i, 32, strip.row, strip.key(i), s[i]);
        const float sum = sum_of(s);
        l = l * alpha + sum + other_lane(sum);
        ASC_RECORD_ROW(l, kt, strip.row, strip.half == 0, l);
        strip.add(alpha, s, sv);
        ASC_RECORD_FRAGMENT(u, kt, strip.row / 16 * 16, 0, strip.u);
        __syncthreads(); // the next tile takes this one's place
    }

    const int row = q_tile * BR + strip.row;
    if (strip.half == 0 && row < p.q_len) {
        float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
        p.lse[q_index * p.q_len + row] = lse;
        ASC_RECORD_ROW(lse, 0, strip.row, true, lse);
    }
    strip.rescale(l > 0.0f ? 1.0f / l : 0.0f); // a row without any key gives zero
    __align__(16) __half out[D / 2];
    strip.take(out);
    if (row < p.q_len) {
        ASC_RECORD(o, 0, i, D / 2, strip.row, strip.column(i), out[i]);
        strip.store(p.o + batch * p.q_strides.batch + head * p.q_strides.head + row * p.q_strides.row, out, p.aligned);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    return plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_head_dim<QUERY_TYPE, Query>(problem, [&](auto, auto head_dim) {
        constexpr int D = head_dim;
        constexpr size_t bytes = 2 * BC * D + 2 * Strip<D>::TILE * sizeof(__half) + Strip<D>::bytes;
        auto p = params_of<ScaledParams>(problem);
        p.q_scale = problem->q_scale;
        p.k_scale = problem->k_scale;
        p.v_scale = problem->v_scale;
        p.q_groups = asc_scale_groups(problem, p.q_len);
        p.kv_groups = asc_scale_groups(problem, p.kv_len);
        p.group_rows = problem->scale_rows > 0 ? problem->scale_rows : INT_MAX;
        return ASC_LAUNCH((fp8_e4m3<D>), grid_of(problem, BR), THREADS, bytes, stream, p);
    });
}

} // namespace

ASC_KERNEL(fp8_e4m3)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = MIXED ? ASC_SUPPORTS(F16) : ASC_SUPPORTS(E4M3);
    if (MIXED)
        kernel.k_dtypes = kernel.v_dtypes = ASC_SUPPORTS(E4M3);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.o_dtype = ASC_F16;
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = ASC_ACC_MMA_F16;
    kernel.conventions.acc_u = ASC_ACC_MMA_F16;
    kernel.conventions.p_rounded = ASC_P_F16;
    kernel.conventions.empty_lse_negative = 1;
}
