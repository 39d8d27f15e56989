// fp8_sim: v2c_wmma on codes of one byte. A first kernel of the same launch gives each head of Q, K and V a scale, its
// largest magnitude / 127, and each element a code, 128 + x / scale rounded; a head of zeros gets scale 1 and codes
// 128. The second kernel reads codes alone, half of the bytes, and makes f16 of them by a table of what each of the 256
// is worth in this head. From there on it is v2c_wmma.
//
// WS producer warps (0, 1 or 2; scenario.define, -D WS=1) do nothing but put what the codes of kv tiles are worth into
// shared memory, 4 consumer warps nothing but compute; with WS=0 everybody does both. The arithmetic is the same, to
// the last bit. Tiles have two stages, so that one is filled while the other is read. The two sides meet at the named
// barriers of fp16_mma; of the first two there is one for each stage:
//     full     producers arrive when a tile is there, consumers wait before they read it
//     empty    consumers arrive when they have read a tile, producers wait before they put the next but one in its
//              place
//     readers  consumers alone: Q is there; Q is in registers
//
// Shared memory in bytes, head_dim 64 / 128 (paddings as in v2c_wmma):
//     tables  [3][256] f16           1536    1536     of Q, K and V
//     k       [2][64][D + 8] f16    18432   34816
//     v       [2][64][D + 8] f16    18432   34816
//     q       [64][D + 8] f16        9216   17408     gone before the first scores come
//     s       [64][72] f32          18432   18432     in the place of q; p [64][72] f16 and at the end u in that of s
//                                   56832   89600
//
// Workspace, in global memory: the codes of Q, K and V as these lie, and a scale for each head of each.
//
// Known to be bad at: outliers, since one large element of a head costs all others of it their bits; lookups, whose
// addresses are as random as the data, so that banks collide, and which all fall to one or two warps where these are
// producers; long heads, which one block quantizes alone.

#include "wmma.cuh"

#ifndef WS
#define WS 0
#endif
ASC_CHOICES(WS, 0, 1, 2);

namespace
{

using namespace ladder;

constexpr int PRODUCERS = 32 * WS, THREADS = CONSUMERS + PRODUCERS;
constexpr uint8_t MIDPOINT = ASC_U8_MIDPOINT;

struct CodedParams : Params<__half> {
    uint8_t *codes[3]; /* of Q, K and V, which they lie as */
    float *scales[3];  /* [batch][heads], of K and V [batch][kv_heads] */
};

// Eight elements of a row.
__device__ __forceinline__ void load_eight(__half (&to)[8], const __half *from, bool aligned)
{
    if (aligned) {
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
    } else {
        for (int e = 0; e < 8; e++)
            to[e] = from[e];
    }
}

// A block for each head of Q, then of K, then of V.
template <int D> __global__ void __launch_bounds__(THREADS) fp8_sim_quantize(CodedParams p)
{
    __shared__ float largest[THREADS / 32];
    const int which = blockIdx.x, batch = blockIdx.y;
    const int of = which < p.heads ? 0 : which < p.heads + p.kv_heads ? 1 : 2; // Q, K or V
    const int heads = of ? p.kv_heads : p.heads, head = of ? (which - p.heads) % heads : which;
    const int rows = of ? p.kv_len : p.q_len;
    const asc_strides &strides = of ? p.kv_strides : p.q_strides;
    const int64_t begin = batch * strides.batch + head * strides.head;
    const __half *from = of == 0 ? p.q : of == 1 ? p.k : p.v;
    __align__(16) __half x[8];

    float amax = 0.0f;
    for (int i = threadIdx.x; i < rows * (D / 8); i += THREADS) {
        load_eight(x, from + begin + i / (D / 8) * strides.row + i % (D / 8) * 8, p.aligned);
#pragma unroll
        for (int e = 0; e < 8; e++)
            amax = fmaxf(amax, fabsf(__half2float(x[e])));
    }
    amax = warp_max(amax);
    if (threadIdx.x % 32 == 0)
        largest[threadIdx.x / 32] = amax;
    __syncthreads();
    for (int warp = 0; warp < THREADS / 32; warp++)
        amax = fmaxf(amax, largest[warp]);
    const float scale = amax > 0.0f ? amax / 127.0f : 1.0f; // zeros: 0 / 0 would be NaN
    if (threadIdx.x == 0)
        p.scales[of][batch * heads + head] = scale;

    for (int i = threadIdx.x; i < rows * (D / 8); i += THREADS) {
        const int64_t at = begin + i / (D / 8) * strides.row + i % (D / 8) * 8;
        __align__(8) uint8_t codes[8];
        load_eight(x, from + at, p.aligned);
#pragma unroll
        for (int e = 0; e < 8; e++)
            codes[e] = static_cast<uint8_t>(MIDPOINT + __float2int_rn(__half2float(x[e]) / scale));
        *reinterpret_cast<uint2 *>(p.codes[of] + at) = *reinterpret_cast<const uint2 *>(codes);
    }
}

// What the codes of rows first .. first + 63 of a head are worth; rows beyond `rows` become zero. `threads` threads
// share the work.
template <int D, int threads>
__device__ __forceinline__ void dequantize(__half *tile, const uint8_t *head, int64_t row_stride, int first, int rows,
                                           const __half *table, int thread)
{
#pragma unroll 4
    for (int n = 0; n < 64 * D / 16 / threads; n++) {
        const int i = n * threads + thread, r = i / (D / 16), d = i % (D / 16) * 16;
        __align__(16) uint8_t codes[16];
        __align__(16) __half out[16];
        *reinterpret_cast<uint4 *>(codes) =
            *reinterpret_cast<const uint4 *>(head + min(first + r, rows - 1) * row_stride + d);
#pragma unroll
        for (int e = 0; e < 16; e++)
            out[e] = table[first + r < rows ? codes[e] : MIDPOINT];
        uint4 *to = reinterpret_cast<uint4 *>(tile + r * Strip<D>::LD + d);
        to[0] = reinterpret_cast<const uint4 *>(out)[0];
        to[1] = reinterpret_cast<const uint4 *>(out)[1];
    }
}

// Kv tile kt into its stage; K's table comes behind Q's, V's behind K's.
template <int D, int threads>
__device__ __forceinline__ void dequantize_kv(__half *k_stages, __half *v_stages, const uint8_t *k, const uint8_t *v,
                                              const __half *tables, const CodedParams &p, int kt, int thread)
{
    const int stage = kt % 2 * Strip<D>::TILE;
    dequantize<D, threads>(k_stages + stage, k, p.kv_strides.row, kt * BC, p.kv_len, tables + 256, thread);
    dequantize<D, threads>(v_stages + stage, v, p.kv_strides.row, kt * BC, p.kv_len, tables + 512, thread);
}

template <int D> __global__ void __launch_bounds__(THREADS) fp8_sim(CodedParams p)
{
    constexpr int TILE = Strip<D>::TILE;
    extern __shared__ __align__(128) unsigned char shared[];
    __half *tables = reinterpret_cast<__half *>(shared);
    __half *k_stages = tables + 3 * 256, *v_stages = k_stages + 2 * TILE, *sq = v_stages + 2 * TILE;

    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, kv_head = head / p.group;
    const uint8_t *q = p.codes[0] + batch * p.q_strides.batch + head * p.q_strides.head;
    const uint8_t *k = p.codes[1] + batch * p.kv_strides.batch + kv_head * p.kv_strides.head;
    const uint8_t *v = p.codes[2] + batch * p.kv_strides.batch + kv_head * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    const int keys = p.keys(q_tile, BR);

    const float scales[3] = {p.scales[0][batch * p.heads + head], p.scales[1][batch * p.kv_heads + kv_head],
                             p.scales[2][batch * p.kv_heads + kv_head]};
#pragma unroll
    for (int x = 0; x < 3; x++)
        for (int code = threadIdx.x; code < 256; code += THREADS)
            tables[x * 256 + code] = __float2half(static_cast<float>(code - MIDPOINT) * scales[x]);
    __syncthreads();
    if constexpr (WS > 0) {
        if (threadIdx.x >= CONSUMERS) {
            for (int kt = 0; kt * BC < keys; kt++) {
                if (kt >= 2)
                    barrier_wait<THREADS>(EMPTY + kt % 2);
                dequantize_kv<D, PRODUCERS>(k_stages, v_stages, k, v, tables, p, kt, threadIdx.x - CONSUMERS);
                barrier_arrive<THREADS>(FULL + kt % 2);
            }
            return;
        }
    }
    dequantize<D, CONSUMERS>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, tables, threadIdx.x);
    consumers_meet();
    ASC_RECORD_SHARED_BY(q, 0, r, BR, c, D, threadIdx.x, CONSUMERS, consumers_meet(), sq[r * Strip<D>::LD + c]);

    Strip<D> strip(sq);
    consumers_meet(); // from here on the place of Q belongs to the scores
    strip.begin(sq);
    float m = -INFINITY, l = 0.0f;

    for (int kt = 0; kt * BC < keys; kt++) {
        if constexpr (WS > 0) {
            barrier_wait<THREADS>(FULL + kt % 2);
        } else {
            dequantize_kv<D, CONSUMERS>(k_stages, v_stages, k, v, tables, p, kt, threadIdx.x);
            consumers_meet(); // the tile is there for all, and all have read the one before
        }
        __half *sk = k_stages + kt % 2 * TILE, *sv = v_stages + kt % 2 * TILE;
        ASC_RECORD_SHARED_BY(k, kt, r, BC, c, D, threadIdx.x, CONSUMERS, consumers_meet(), sk[r * Strip<D>::LD + c]);
        ASC_RECORD_SHARED_BY(v, kt, r, BC, c, D, threadIdx.x, CONSUMERS, consumers_meet(), sv[r * Strip<D>::LD + c]);

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
        if (WS > 0 && (kt + 2) * BC < keys)
            barrier_arrive<THREADS>(EMPTY + kt % 2);
    }

    const int row = q_tile * BR + strip.row;
    if (strip.half == 0 && row < p.q_len) {
        float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + row] = lse;
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
    const uint64_t q_heads = static_cast<uint64_t>(problem->batch) * problem->heads;
    const uint64_t kv_heads = static_cast<uint64_t>(problem->batch) * problem->kv_heads;
    plan->workspace_bytes = (q_heads * problem->q_len + 2 * kv_heads * problem->kv_len) * problem->head_dim +
                            (q_heads + 2 * kv_heads) * sizeof(float);
    plan->error_limit = 0.06f;
    return plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_head_dim<ASC_F16, __half>(problem, [&](auto, auto head_dim) {
        constexpr int D = head_dim;
        constexpr size_t bytes = (3 * 256 + 4 * Strip<D>::TILE) * sizeof(__half) + Strip<D>::bytes;
        auto p = params_of<CodedParams>(problem);
        uint8_t *next = static_cast<uint8_t *>(problem->workspace);
        for (int x = 0; x < 3; x++) {
            p.codes[x] = next;
            next += (x ? static_cast<uint64_t>(p.kv_heads) * p.kv_len : static_cast<uint64_t>(p.heads) * p.q_len) *
                    problem->batch * D;
        }
        for (int x = 0; x < 3; x++) {
            p.scales[x] = reinterpret_cast<float *>(next);
            next += static_cast<uint64_t>(problem->batch) * (x ? p.kv_heads : p.heads) * sizeof(float);
        }
        const dim3 heads(p.heads + 2 * p.kv_heads, problem->batch);
        const char *failed = ASC_LAUNCH((fp8_sim_quantize<D>), heads, THREADS, 0, stream, p);
        return failed ? failed : ASC_LAUNCH((fp8_sim<D>), grid_of(problem, BR), THREADS, bytes, stream, p);
    });
}

} // namespace

ASC_KERNEL(fp8_sim)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.quantized = ASC_QUANTIZED_U8;
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = ASC_ACC_MMA_F16;
    kernel.conventions.acc_u = ASC_ACC_MMA_F16;
    kernel.conventions.p_rounded = ASC_P_F16;
    kernel.conventions.empty_lse_negative = 1;
}
