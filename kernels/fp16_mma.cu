// fp16_mma: v2c_wmma with mma.sync, ldmatrix and cp.async written as inline PTX. The fragments' layout is known, so
// that nothing of a tile goes through shared memory any more: the softmax works on the accumulators of Q Kt where they
// are, and its weights, rounded, are the A operand of P V as they stand.
//
// A q tile of 64 rows is 4 warps' work, a kv tile has 64 keys; a warp owns 16 rows. Of an accumulator of 16 x 8 a lane
// has columns 2 t and 2 t + 1 (t = lane % 4) of rows g and g + 8 (g = lane / 4). One barrier for each kv tile: behind
// it the tile is there for all, and the one before has been read by all, so that the next is copied into its place.
// Scores stay as the tensor cores give them; the scale goes into the exponential, exp(scale (s - m)) = 2^(c s - c m).
// Each lane sums its own columns into l, the four lanes of a row meet after the last tile.
//
// With WS (0, 1 or 2; scenario.define, -D WS=1) warps are specialised: WS producer warps do nothing but copy kv tiles,
// 4 consumer warps nothing but compute. With WS=0, as it is built, everybody does both. The arithmetic is the same, to
// the last bit. The two sides meet at named barriers; of the first two there is one for each of the two stages. Who
// only says something arrives (bar.arrive), who needs it waits (bar.sync):
//     full     producers arrive when a tile's copies are there (cp.async.wait_group makes them visible to the thread
//              that issued them, the barrier to all), consumers wait before they read it
//     empty    consumers arrive when they have read a tile, producers wait before they copy the next one over it; the
//              first to be empty is the second stage, once Q, which comes in there, is in registers
//     readers  consumers alone: Q is there; with WS=0 a tile is there; the last tile has been read
// All threads of the block take part in full and empty, the 128 consumers in readers.
//
// Shared memory in bytes, head_dim 64 / 128. Rows are not padded: eight elements, 16 bytes, are a chunk, and chunk c of
// row r stands at c ^ (r % 8), so that the eight rows that ldmatrix reads at once lie in different banks.
//     k   [2][64][D] T    16384   32768     before the first tile q [64][D] T in the place of the second stage,
//     v   [2][64][D] T    16384   32768     at the end o [64][D] T in that of the first
//                         32768   65536
//
// Limits: few q tiles, a long kv (nobody shares a row's keys), and the last kv tiles of a causal problem, where half of
// the products are masked. No more than half of what wgmma reaches on sm_90. A producer takes as many registers as a
// consumer, since only sm_90 can give them back (setmaxnreg), so there is room for fewer blocks; and with two stages a
// consumer that is done with a tile waits for the slowest one before the next but one is copied.

#include "ladder.cuh"

#ifndef WS
#define WS 0
#endif
ASC_CHOICES(WS, 0, 1, 2);

namespace
{

using namespace ladder;

constexpr int BR = 64, BC = 64, PRODUCERS = 32 * WS, THREADS = CONSUMERS + PRODUCERS;

// Where chunk `chunk` of row `row` of a tile begins, in elements.
template <int D> __device__ __forceinline__ int place(int row, int chunk)
{
    return row * D + (chunk ^ row % 8) * 8;
}

// Begins to copy rows first .. first + 63 of a head; rows beyond `rows` become zero. `threads` threads share the work.
template <class T, int D, int threads>
__device__ __forceinline__ void copy_tile(T *tile, const T *head, int64_t row_stride, int first, int rows, bool aligned,
                                          int thread = threadIdx.x)
{
#pragma unroll(PRODUCERS > 0 ? 4 : 8) // a producer has 16 or 32: all of their addresses at once would be spilled
    for (int n = 0; n < 64 * D / 8 / threads; n++) {
        const int i = n * threads + thread, r = i / (D / 8), chunk = i % (D / 8);
        const bool there = first + r < rows;
        T *to = tile + place<D>(r, chunk);
        const T *from = head + min(first + r, rows - 1) * row_stride + chunk * 8;
        if (aligned) {
            copy_async(shared_address(to), from, there ? 16 : 0);
        } else {
            for (int e = 0; e < 8; e++)
                to[e] = there ? from[e] : T(0.0f);
        }
    }
}

// A tile's element as the probes see it.
#define AT(tile, row, col) (tile)[place<D>(row, (col) / 8) + (col) % 8]
// Element i of the accumulators of a warp's 16 rows, 8 columns each.
#define ROW(i) (warp * 16 + g + (i) / 2 % 2 * 8)
#define COL(i) ((i) / 4 * 8 + 2 * t + (i) % 2)

// All that a producer does.
template <class T, int D>
__device__ __forceinline__ void produce(T *k_stages, T *v_stages, const T *k, const T *v, const Params<T> &p, int keys)
{
    for (int kt = 0; kt * BC < keys; kt++) {
        const int stage = kt % 2 * 64 * D, first = kt * BC, thread = threadIdx.x - CONSUMERS;
        if (kt > 0)
            barrier_wait<THREADS>(EMPTY + kt % 2);
        copy_tile<T, D, PRODUCERS>(k_stages + stage, k, p.kv_strides.row, first, p.kv_len, p.aligned, thread);
        copy_tile<T, D, PRODUCERS>(v_stages + stage, v, p.kv_strides.row, first, p.kv_len, p.aligned, thread);
        copy_commit();
        copy_wait<0>();
        barrier_arrive<THREADS>(FULL + kt % 2);
    }
}

template <class T, int D, bool asc_probed> __global__ void __launch_bounds__(THREADS) fp16_mma(Params<T> p)
{
    constexpr int TILE = 64 * D;
    extern __shared__ __align__(128) unsigned char shared[];
    T *k_stages = reinterpret_cast<T *>(shared), *v_stages = k_stages + 2 * TILE, *sq = k_stages + TILE;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    const int keys = p.keys(q_tile, BR);
    // Up to here all rows of this warp see all keys.
    const int seen_by_all = p.seen(q_tile * BR + warp * 16);

    if constexpr (WS > 0) {
        if (threadIdx.x >= CONSUMERS) {
            produce<T, D>(k_stages, v_stages, k, v, p, keys);
            return;
        }
    }
    copy_tile<T, D, CONSUMERS>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
    copy_commit();
    if (WS == 0 && keys > 0) {
        copy_tile<T, D, CONSUMERS>(k_stages, k, p.kv_strides.row, 0, p.kv_len, p.aligned);
        copy_tile<T, D, CONSUMERS>(v_stages, v, p.kv_strides.row, 0, p.kv_len, p.aligned);
    }
    copy_commit();
    copy_wait<1>();
    consumers_meet();
    ASC_RECORD_SHARED_BY(q, 0, r, BR, c, D, threadIdx.x, CONSUMERS, consumers_meet(), AT(sq, r, c));

    // Matrices of A: rows 0-7, rows 8-15, then the same eight columns on. The rows of a lane's addresses are all of the
    // same remainder by 8, so what the swizzle does to a chunk is the same for all of them.
    const int swizzle = lane % 8;
    uint32_t a_q[D / 16][4];
    const uint32_t q_row = shared_address(sq) + (warp * 16 + lane % 16) * D * sizeof(T);
#pragma unroll
    for (int d = 0; d < D / 16; d++)
        load_matrices(a_q[d], q_row + ((2 * d + lane / 16) ^ swizzle) * 16);
    if (WS > 0 && BC < keys)
        barrier_arrive<THREADS>(EMPTY + 1);

    float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.0f, 0.0f}; /* of rows g and g + 8 */
    float u[D / 8][4] = {};

    for (int kt = 0; kt * BC < keys; kt++) {
        if constexpr (WS > 0) {
            barrier_wait<THREADS>(FULL + kt % 2);
        } else {
            copy_wait<0>();
            consumers_meet(); // the tile is there for all, and all have read the one before
            if ((kt + 1) * BC < keys) {
                const int other = (kt + 1) % 2, first = (kt + 1) * BC;
                copy_tile<T, D, CONSUMERS>(k_stages + other * TILE, k, p.kv_strides.row, first, p.kv_len, p.aligned);
                copy_tile<T, D, CONSUMERS>(v_stages + other * TILE, v, p.kv_strides.row, first, p.kv_len, p.aligned);
            }
            copy_commit();
        }
        T *sk = k_stages + kt % 2 * TILE, *sv = v_stages + kt % 2 * TILE;
        ASC_RECORD_SHARED_BY(k, kt, r, BC, c, D, threadIdx.x, CONSUMERS, consumers_meet(), AT(sk, r, c));
        ASC_RECORD_SHARED_BY(v, kt, r, BC, c, D, threadIdx.x, CONSUMERS, consumers_meet(), AT(sv, r, c));

        // S = Q Kt. Matrices of B: keys 0-7, the same eight elements on, then both for keys 8-15.
        float s[BC / 8][4] = {};
        const uint32_t k_row = shared_address(sk) + (lane / 16 * 8 + lane % 8) * D * sizeof(T);
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
#pragma unroll
            for (int n = 0; n < BC / 16; n++) {
                uint32_t b[4];
                load_matrices(b, k_row + n * 16 * D * sizeof(T) + ((2 * d + lane / 8 % 2) ^ swizzle) * 16);
                mma<T>(s[2 * n], a_q[d], b[0], b[1]);
                mma<T>(s[2 * n + 1], a_q[d], b[2], b[3]);
            }
        }
        if ((kt + 1) * BC > seen_by_all) {
#pragma unroll
            for (int i = 0; i < BC / 2; i++) {
                const int seen = p.seen(q_tile * BR + ROW(i)) - kt * BC;
                if (COL(i) >= seen)
                    s[i / 4][i % 4] = -INFINITY;
            }
        }
        ASC_RECORD(s, kt, i, BC / 2, ROW(i), COL(i), s[i / 4][i % 4]);

        float m_prev[2], alpha[2], base[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float largest = -INFINITY;
#pragma unroll
            for (int j = 0; j < BC / 8; j++)
                largest = fmaxf(largest, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
            m_prev[r] = m[r];
            m[r] = fmaxf(m[r], largest);
        }
        ASC_RECORD(m, kt, i, 2, warp * 16 + g + 8 * i, 0, m[i]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            base[r] = m[r] == -INFINITY ? 0.0f : m[r]; // no key yet: -inf - -inf would be NaN
            alpha[r] = exp2_fast((m_prev[r] - base[r]) * p.scale_log2);
        }
        ASC_RECORD(alpha, kt, i, 2, warp * 16 + g + 8 * i, 0, alpha[i]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float shift = base[r] * p.scale_log2;
#pragma unroll
            for (int j = 0; j < BC / 8; j++)
#pragma unroll
                for (int e = 2 * r; e < 2 * r + 2; e++)
                    s[j][e] = exp2_fast(fmaf(s[j][e], p.scale_log2, -shift));
        }
        ASC_RECORD(p, kt, i, BC / 2, ROW(i), COL(i), s[i / 4][i % 4]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            l[r] *= alpha[r];
#pragma unroll
            for (int j = 0; j < BC / 8; j++)
                l[r] += s[j][2 * r] + s[j][2 * r + 1];
        }
        ASC_RECORD(l, kt, i, 2, warp * 16 + g + 8 * i, t, l[i]);
#pragma unroll
        for (int j = 0; j < D / 8; j++) {
            u[j][0] *= alpha[0];
            u[j][1] *= alpha[0];
            u[j][2] *= alpha[1];
            u[j][3] *= alpha[1];
        }

        // U += P V. Matrices of B, transposed: keys 0-7, keys 8-15, then the same eight columns on.
        const uint32_t v_row = shared_address(sv) + lane % 16 * D * sizeof(T);
#pragma unroll
        for (int n = 0; n < BC / 16; n++) {
            const uint32_t a_p[4] = {two<T>(s[2 * n][0], s[2 * n][1]), two<T>(s[2 * n][2], s[2 * n][3]),
                                     two<T>(s[2 * n + 1][0], s[2 * n + 1][1]),
                                     two<T>(s[2 * n + 1][2], s[2 * n + 1][3])};
#pragma unroll
            for (int j = 0; j < D / 16; j++) {
                uint32_t b[4];
                load_matrices_transposed(b, v_row + n * 16 * D * sizeof(T) + ((2 * j + lane / 16) ^ swizzle) * 16);
                mma<T>(u[2 * j], a_p, b[0], b[1]);
                mma<T>(u[2 * j + 1], a_p, b[2], b[3]);
            }
        }
        ASC_RECORD(u, kt, i, D / 2, ROW(i), COL(i), u[i / 4][i % 4]);
        if (WS > 0 && (kt + 2) * BC < keys)
            barrier_arrive<THREADS>(EMPTY + kt % 2);
    }

    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
        l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
        inverse[r] = l[r] > 0.0f ? 1.0f / l[r] : 0.0f; // a row without any key gives zero
    }
    // Lane t = 0 tells the first row's, lane t = 1 the second's.
    const int own = warp * 16 + g + 8 * t;
    if (t < 2 && q_tile * BR + own < p.q_len) {
        const float l_own = t ? l[1] : l[0], m_own = t ? m[1] : m[0];
        float lse = l_own > 0.0f ? m_own * p.scale + __logf(l_own) : -INFINITY;
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + q_tile * BR + own] = lse;
        ASC_RECORD_ROW(lse, 0, own, true, lse);
    }

    // Through shared memory, so that a row leaves in pieces of 16 bytes.
    consumers_meet(); // the last tile has been read
    T *so = k_stages;
#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
        for (int r = 0; r < 2; r++)
            *reinterpret_cast<uint32_t *>(&AT(so, warp * 16 + g + 8 * r, j * 8 + 2 * t)) =
                two<T>(u[j][2 * r] * inverse[r], u[j][2 * r + 1] * inverse[r]);
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 16 * D / 8 / 32; n++) {
        const int i = n * 32 + lane, row = warp * 16 + i / (D / 8), chunk = i % (D / 8), global_row = q_tile * BR + row;
        if (global_row >= p.q_len)
            continue;
        __align__(16) T out[8];
        *reinterpret_cast<uint4 *>(out) = *reinterpret_cast<const uint4 *>(so + place<D>(row, chunk));
        ASC_RECORD(o, 0, i, 8, row, chunk * 8 + i, out[i]);
        T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row + chunk * 8;
        if (p.aligned) {
            *reinterpret_cast<uint4 *>(o) = *reinterpret_cast<const uint4 *>(out);
        } else {
            for (int e = 0; e < 8; e++)
                o[e] = out[e];
        }
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    if (!(problem->scale > 0))
        return "the maximum is taken before scores are scaled: scale must be above 0";
    return plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        using T = decltype(type);
        constexpr int D = head_dim;
        const auto p = params_of<Params<T>>(problem);
        return ASC_TWICE(ASC_LAUNCH((fp16_mma<T, D, asc_probed>), grid_of(problem, BR), THREADS,
                                    (4 * 64 * D * sizeof(T)), stream, p));
    });
}

} // namespace

ASC_KERNEL(fp16_mma)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_RAW;
    kernel.conventions.m_unit = ASC_UNIT_RAW;
    kernel.conventions.acc_s = ASC_ACC_MMA;
    kernel.conventions.acc_u = ASC_ACC_MMA;
    kernel.conventions.p_rounded = ASC_P_INPUT;
    kernel.conventions.l_lanes = 4;
    kernel.conventions.empty_lse_negative = 1;
}
