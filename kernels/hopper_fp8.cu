// hopper_fp8: hopper_large on codes, e4m3. Both products are wgmma m64nNk32, which takes twice as many elements from
// the same bytes; scales are those of fp8_mma: Q's and K's are part of the exponential, V's leaves with the output, P,
// l and U carry a factor of 2^8.
//
// wgmma reads codes along a row alone: Q and K lie so, but V has columns where P V wants keys. Three warps of the
// producer's warpgroup turn each tile of V before consumers see it. ldmatrix transposes pairs of bytes: a lane gets
// columns 2 g and 2 g + 1 of keys 2 t and 2 t + 1 (g = lane / 4, t = lane % 4), and of the same keys 8 further; prmt
// picks the four bytes of a column; stmatrix stores the words of four lanes, sixteen keys of a column, as a row.
//
// Consumers get along with a tile in about 2000 cycles. So a turner makes its addresses once, not for each load, and
// has four loads under way before the first is stored.
//
// In a turned tile every sixteen keys stand in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15: in that order a lane's
// weights, columns 2 t, 2 t + 1 of two accumulators of eight, fill a register of the A operand as they stand. Rows are
// columns of V, which may have any order as well, since U's columns follow it: of every sixteen, row 8 j + 2 t + e is
// column 4 t + 2 j + e, so that a lane has four neighbors of O. Lanes of odd g store their two columns the other way
// round: the eight rows of a matrix then lie in different banks.
//
// With BLOCKS (0 or 1; scenario.define, -D BLOCKS=1) scales belong to blocks of N rows, N being a multiple of 128: a
// kv tile has one of K and one of V. Scores are scaled tile by tile, and each tile's P V is a sum of its own that is
// added to U in f32 with its scale; wgmma keeps 13 bits behind the point in sums of codes, so that this is the more
// precise one, too. With BLOCKS=0, as it is built, a head has one scale, and wgmma adds to U itself.
//
// Two consumers x 64 rows, 128 keys a tile, 2 stages, turns as in hopper_large. Q goes into registers, sixteen a lane
// at D = 128: products then read half as much from shared memory, and its tile is free for the next q tile at once.
// With BLOCKS=1, whose tile's P V has registers of its own, there is no room for it. Of a stage, K, V and turned V have
// two barriers each, full and free, as there; who turns V has it as a consumer, and turned V as a producer.
//
// Shared memory in bytes, from the first multiple of 1024 on, D 64 / 128:
//     q       [128][D] e4m3              8192   16384
//     k       [2 stages][128][D]        16384   32768
//     v       the same                  16384   32768
//     turned  [2 stages][D][128 keys]   16384   32768
//     barriers                            256     256
//
// Limits: precision, three bits of P and V. Maxima, exponentials and sums are as many as in f16; products alone are
// faster, and V must be turned besides.

#include "hopper.cuh"

#include <cuda_fp8.h>
#include <limits.h>

#ifndef BLOCKS
#define BLOCKS 0
#endif
ASC_CHOICES(BLOCKS, 0, 1);

namespace
{

using namespace hopper;
using Code = __nv_fp8_e4m3;

constexpr float P_OFFSET = 8.0f;      // log2 of the factor in P, l and U
enum { OF_K, OF_V, OF_TURNED, OF_Q }; // Q has one stage

struct Fp8Params : HopperParams<Code, __half> {
    const float *q_scale;           /* [batch][heads][q_groups] */
    const float *k_scale, *v_scale; /* [batch][kv_heads][kv_groups] */
    int q_groups, kv_groups, group_rows;
};

template <int head_dim> struct Shape {
    static constexpr int D = head_dim, WARPGROUPS = 2, BR = 64 * WARPGROUPS, BC = 128, STAGES = 2;
    static constexpr int CONSUMER_THREADS = 128 * WARPGROUPS, THREADS = CONSUMER_THREADS + 128;
    static constexpr int FOR_PRODUCER = 40, FOR_CONSUMER = 232;    // registers, as in hopper_large
    static constexpr int TURNERS = 3, PIECES = BC / 32 * (D / 64); // warps, and pieces of a tile that they turn
    static constexpr int Q_BYTES = BR * D, TILE_BYTES = BC * D;
    static constexpr int Q = 0, TILES = Q + Q_BYTES, BARRIERS = TILES + 3 * STAGES * TILE_BYTES;
    static constexpr int BYTES = BARRIERS + 256 + 1024; // to a multiple of 1024

    uint32_t base;
    __device__ __forceinline__ uint32_t tile(int of, int stage) const
    {
        return base + (of == OF_Q ? Q : TILES + (of * STAGES + stage) * TILE_BYTES);
    }
    __device__ __forceinline__ uint32_t full(int of, int stage) const
    {
        return base + BARRIERS + 16 * (of * STAGES + stage);
    }
    __device__ __forceinline__ uint32_t free(int of, int stage) const
    {
        return full(of, stage) + 8;
    }
};

// Where an element of a tile of Q, K or V stands, and in a turned tile of V column `col` of key `key`.
template <int D> __device__ __forceinline__ unsigned place_of(unsigned row, unsigned col)
{
    return row * D + (col / 16 ^ row / (128 / D) % (D / 16)) * 16 + col % 16;
}
__device__ __forceinline__ unsigned row_of_column(unsigned col)
{
    return col / 16 * 16 + col / 2 % 2 * 8 + col / 4 % 4 * 2 + col % 2;
}
__device__ __forceinline__ unsigned turned_place(unsigned key, unsigned col)
{
    const unsigned row = row_of_column(col), in_chunk = key / 2 % 4 * 4 + key / 8 % 2 * 2 + key % 2;
    return row * 128 + (key / 16 ^ row % 8) * 16 + in_chunk;
}

// Codes of four numbers, the first in the lowest byte; what is beyond 448 becomes 448.
__device__ __forceinline__ uint32_t four(float x0, float x1, float x2, float x3)
{
    uint16_t low, high;
    uint32_t all;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(low) : "f"(x1), "f"(x0));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(high) : "f"(x3), "f"(x2));
    asm("mov.b32 %0, {%1, %2};" : "=r"(all) : "h"(low), "h"(high));
    return all;
}

// All that the producer thread does.
template <class S> __device__ __forceinline__ void produce(const Fp8Params &p, S shared)
{
    int used = 0, n = 0; // q tiles that see any key, and kv tiles, so far
    for (int round = 0; round * gridDim.x < p.work; round++) {
        const Item<S> item(p, round);
        if (!item.is_there || !item.tiles)
            continue;
        for (int kt = -1; kt < item.tiles; kt++) { // V of kt behind K of the one after
            if (kt < 0) {
                wait(shared.free(OF_Q, 0), used++ + 1 & 1);
                arrive_and_expect(shared.full(OF_Q, 0), S::Q_BYTES);
                copy_panel(shared.tile(OF_Q, 0), &p.q_map, shared.full(OF_Q, 0), 0, item.q_tile * S::BR, item.head(p),
                           item.batch(p));
            }
            for (int of = OF_K; of <= OF_V; of++) {
                const int i = of == OF_K ? kt + 1 : kt, stage = (n + i) % S::STAGES;
                if (i < 0 || i == item.tiles)
                    continue;
                wait(shared.free(of, stage), (n + i) / S::STAGES + 1 & 1);
                arrive_and_expect(shared.full(of, stage), S::TILE_BYTES);
                copy_panel(shared.tile(of, stage), of == OF_K ? &p.k_map : &p.v_map, shared.full(of, stage), 0,
                           (item.tiles - 1 - i) * S::BC, item.head(p) / p.group, item.batch(p));
            }
        }
        n += item.tiles;
    }
}

// Where a lane of a warp that turns V loads and stores in the first piece of a tile, 32 keys of 64 columns. In another
// piece it is as many rows further, and in a chunk whose number differs by an exclusive or.
template <class S> struct Turner {
    uint32_t loads[4], store, even, odd;
    __device__ __forceinline__ explicit Turner(unsigned lane)
    {
        const unsigned of_eight = lane % 8, matrix = lane / 8;
#pragma unroll
        for (int n = 0; n < 4; n++)
            loads[n] = place_of<S::D>(lane, 16 * n);
        store = turned_place(matrix / 2 * 16, 2 * of_eight + (of_eight + matrix) % 2);
        even = lane / 4 % 2 ? 0x7531 : 0x6420;
        odd = lane / 4 % 2 ? 0x6420 : 0x7531;
    }
    // Keys 32 y .. 32 y + 31 of columns 64 x .. 64 x + 63.
    __device__ __forceinline__ void turn(uint32_t from, uint32_t to, unsigned x, unsigned y) const
    {
        uint32_t pairs[4][4];
#pragma unroll
        for (int n = 0; n < 4; n++)
            load_matrices_transposed(pairs[n], from + 32 * y * S::D + (loads[n] ^ 64 * x));
#pragma unroll
        for (int n = 0; n < 4; n++) {
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                words[i] = __byte_perm(pairs[n][i / 2 * 2], pairs[n][i / 2 * 2 + 1], i % 2 ? odd : even);
            store_matrices(to + (64 * x + 16 * n) * 128 + (store ^ 32 * y), words);
        }
    }
};

// All that a warp does that turns tiles of V.
template <class S> __device__ __forceinline__ void turn_tiles(const Fp8Params &p, S shared, int warp, int lane)
{
    const Turner<S> turner(lane);
    int n = 0;
    for (int round = 0; round * gridDim.x < p.work; round++) {
        const Item<S> item(p, round);
        for (int kt = 0; item.is_there && kt < item.tiles; kt++, n++) {
            const int stage = n % S::STAGES, parity = n / S::STAGES & 1;
            wait(shared.full(OF_V, stage), parity);
            wait(shared.free(OF_TURNED, stage), parity ^ 1);
            for (unsigned piece = warp; piece < S::PIECES; piece += S::TURNERS)
                turner.turn(shared.tile(OF_V, stage), shared.tile(OF_TURNED, stage), piece % (S::D / 64),
                            piece / (S::D / 64));
            fence_async();
            __syncwarp();
            if (lane == 0) {
                arrive(shared.full(OF_TURNED, stage));
                arrive(shared.free(OF_V, stage));
            }
        }
    }
}

// Element i of an accumulator: its row, its key, its column of U.
#define ROW(i) (warpgroup * 64 + warp * 16 + g + (i) / 2 % 2 * 8)
#define KEY(i) ((i) / 4 * 8 + 2 * t + (i) % 2)
#define COL(i) ((i) / 8 * 16 + 4 * t + (i) / 4 % 2 * 2 + (i) % 2)

template <class S> __global__ void __launch_bounds__(S::THREADS, 1) hopper_fp8(const __grid_constant__ Fp8Params p)
{
    constexpr int BR = S::BR, BC = S::BC, D = S::D;
    extern __shared__ unsigned char raw[];
    const uint32_t address = shared_address(raw), base = (address + 1023) & ~1023u;
    const S shared = {base};
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4 * S::STAGES; i++) {
            barrier_init(shared.full(0, i), i / S::STAGES == OF_TURNED ? S::TURNERS : 1);
            barrier_init(shared.free(0, i), i / S::STAGES == OF_V ? S::TURNERS : 4 * S::WARPGROUPS);
        }
    }
    barriers_are_there();

    const int warpgroup = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    if (warpgroup == S::WARPGROUPS) {
        give_registers<S::FOR_PRODUCER>();
        if (warp > 0)
            turn_tiles<S>(p, shared, warp - 1, lane);
        else if (lane == 0)
            produce<S>(p, shared);
        return;
    }
    take_registers<S::FOR_CONSUMER>();

    const int g = lane / 4, t = lane % 4;
    const auto release = [&](uint32_t barrier) {
        if constexpr (ASC_MODE != 0)
            __syncwarp(); // what the probes of its lanes read; wgmma is waited for by the warp as a whole
        if (lane == 0)
            arrive(barrier);
    };
    float s[BC / 2], u[D / 2], m[2], l[2], alpha[2];
    float of_tile[BLOCKS ? D / 2 : 1];
    uint32_t weights[BC / 8];
    [[maybe_unused]] uint32_t q_codes[D / 8];

    const auto begin_scores = [&](int stage) {
        const uint64_t sk = matrix<D>(shared.tile(OF_K, stage));
        [[maybe_unused]] const uint64_t sq = matrix<D>(shared.tile(OF_Q, 0) + warpgroup * 64 * D);
        wgmma_begin();
#pragma unroll
        for (int d = 0; d < D / 32; d++)
            if constexpr (BLOCKS)
                multiply<Code>(s, behind(sq, d * 32), behind(sk, d * 32), d > 0);
            else
                multiply<Code>(s, q_codes + 4 * d, behind(sk, d * 32), d > 0);
        wgmma_commit();
    };
    const auto begin_output = [&](int stage) {
        const uint64_t sv = matrix(shared.tile(OF_TURNED, stage));
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < BC / 32; k++) {
            if constexpr (BLOCKS)
                multiply<Code>(of_tile, weights + 4 * k, behind(sv, k * 32), k > 0);
            else
                multiply<Code>(u, weights + 4 * k, behind(sv, k * 32), true);
        }
        wgmma_commit();
    };
    if (warpgroup == 1)
        barrier_arrive<S::CONSUMER_THREADS>(1);

    unsigned used = 0, n = 0;
    for (int round = 0; round * gridDim.x < p.work; round++) {
        const Item<S> item(p, round);
        if (!item.is_there)
            break;
        const int first_row = item.q_tile * BR, last = item.tiles - 1; // of the kv tiles, which comes first
        ASC_AT(item.batch(p), item.head(p), item.q_tile);
        [[maybe_unused]] const auto tile = [&](uint32_t at_) {
            return reinterpret_cast<Code *>(raw + (at_ - address));
        };

        const int of_q = item.of_all * p.q_groups + (BLOCKS ? first_row / p.group_rows : 0);
        const int of_kv = (item.batch(p) * p.kv_heads + item.head(p) / p.group) * p.kv_groups;
        const auto group_of = [&](int kt) { return of_kv + (BLOCKS ? kt * BC / p.group_rows : 0); };
        // What a score is worth as it stands, and the same for powers of two.
        const float score = BLOCKS ? p.scale : p.scale * p.q_scale[of_q] * p.k_scale[of_kv];
        const float score_log2 = BLOCKS ? p.scale_log2 : score * 1.44269504088896340736f;

        // Scores become weights and those codes; alpha is for U of the tiles before.
        const auto weigh = [&](auto masks, int kt) {
            if constexpr (BLOCKS) {
                const float scale = p.q_scale[of_q] * p.k_scale[group_of(kt)];
#pragma unroll
                for (int i = 0; i < BC / 2; i++)
                    s[i] *= scale;
            }
            if (decltype(masks)::value && (kt + 1) * BC > p.seen(first_row + warpgroup * 64 + warp * 16)) {
#pragma unroll
                for (int i = 0; i < BC / 2; i++)
                    if (KEY(i) >= p.seen(first_row + ROW(i)) - kt * BC)
                        s[i] = -INFINITY;
            }
            ASC_RECORD(s, kt, i, BC / 2, ROW(i), KEY(i), s[i]);
            float base_of[2];
            raise_maxima(s, m, alpha);
            ASC_RECORD(m, kt, i, 2, warpgroup * 64 + warp * 16 + g + 8 * i, 0, m[i]);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                base_of[r] = m[r] == -INFINITY ? 0.0f : m[r]; // no key yet: -inf - -inf would be NaN
                alpha[r] = exp2_fast((alpha[r] - base_of[r]) * score_log2);
                base_of[r] = base_of[r] * score_log2 - P_OFFSET;
            }
            ASC_RECORD(alpha, kt, i, 2, warpgroup * 64 + warp * 16 + g + 8 * i, 0, alpha[i]);
#pragma unroll
            for (int i = 0; i < BC / 2; i++)
                s[i] = exp2_fast(fmaf(s[i], score_log2, -base_of[i / 2 % 2]));
            ASC_RECORD(p, kt, i, BC / 2, ROW(i), KEY(i), s[i]);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float sum[2] = {};
#pragma unroll
                for (int i = 2 * r; i < BC / 2; i += 4) {
                    sum[0] += s[i];
                    sum[1] += s[i + 1];
                }
                l[r] = l[r] * alpha[r] + (sum[0] + sum[1]);
            }
            ASC_RECORD(l, kt, i, 2, warpgroup * 64 + warp * 16 + g + 8 * i, t, l[i]);
        };
        const auto round_weights = [&] {
#pragma unroll
            for (int i = 0; i < BC / 8; i++) { // rows g, rows g + 8, of sixteen keys
                const float *x = s + i / 2 * 8 + i % 2 * 2;
                weights[i] = four(x[0], x[1], x[4], x[5]);
            }
        };
        const auto arrives = [&](int of, int i) {
            const int stage = (n + i) % S::STAGES;
            wait(shared.full(of, stage), (n + i) / S::STAGES & 1);
            return stage;
        };
        const auto scores_arrive = [&](int i) {
            const int stage = arrives(OF_K, i);
            ASC_RECORD_SHARED_BY(k, last - i, r, BC, c, D, threadIdx.x, S::CONSUMER_THREADS, consumers_agree<S>(),
                                 tile(shared.tile(OF_K, stage))[place_of<D>(r, c)]);
            return stage;
        };
        const auto values_arrive = [&](int i) {
            const int stage = arrives(OF_TURNED, i);
            ASC_RECORD_SHARED_BY(v, last - i, r, BC, c, D, threadIdx.x, S::CONSUMER_THREADS, consumers_agree<S>(),
                                 tile(shared.tile(OF_TURNED, stage))[turned_place(r, c)]);
            return stage;
        };
        const auto output_is_there = [&](int i, int stage) {
            if constexpr (BLOCKS) {
                wgmma_wait<0>(of_tile);
                const float scale = p.v_scale[group_of(last - i)];
#pragma unroll
                for (int e = 0; e < D / 2; e++)
                    u[e] = fmaf(of_tile[e], scale, u[e]);
            } else {
                wgmma_wait<0>(u);
            }
            ASC_RECORD(u, last - i, e, D / 2, ROW(e), COL(e), u[e]);
            release(shared.free(OF_TURNED, stage));
        };

        float factor[2] = {0.0f, 0.0f}; // of U, to O; a row without any key gives zero
        m[0] = m[1] = -INFINITY;
        l[0] = l[1] = 0.0f;
#pragma unroll
        for (int i = 0; i < D / 2; i++)
            u[i] = 0.0f;
        if (item.tiles) {
            wait(shared.full(OF_Q, 0), used & 1);
            ASC_RECORD_SHARED_BY(q, 0, r, BR, c, D, threadIdx.x, S::CONSUMER_THREADS, consumers_agree<S>(),
                                 tile(shared.tile(OF_Q, 0))[place_of<D>(r, c)]);
            if constexpr (!BLOCKS) {
#pragma unroll
                for (int d = 0; d < D / 32; d++)
                    load_matrices(reinterpret_cast<uint32_t(&)[4]>(q_codes[4 * d]),
                                  shared.tile(OF_Q, 0) +
                                      place_of<D>(warpgroup * 64 + warp * 16 + lane % 16, 32 * d + lane / 16 * 16));
                __syncwarp();
                release(shared.free(OF_Q, 0));
            }
            const int k_stage = scores_arrive(0);
            begin_scores(k_stage);
            wgmma_wait<0>(s);
            release(shared.free(OF_K, k_stage));
            weigh(std::true_type(), last);
            round_weights();
            const auto step = [&](auto masks, int i) {
                const int k_stage = scores_arrive(i);
                barrier_wait<S::CONSUMER_THREADS>(1 + warpgroup);
                begin_scores(k_stage);
                const int v_stage = values_arrive(i - 1);
                begin_output(v_stage);
                barrier_arrive<S::CONSUMER_THREADS>(2 - warpgroup);
                wgmma_wait<1>(s);
                release(shared.free(OF_K, k_stage));
                weigh(masks, last - i);
                output_is_there(i - 1, v_stage);
#pragma unroll
                for (int e = 0; e < D / 2; e++)
                    u[e] *= alpha[e / 2 % 2];
                round_weights();
            };
            // Tiles that some row does not see all of come first; where nothing is causal it is the last key's alone.
            const int masked = item.tiles - min(max(p.seen(first_row), 0), p.kv_len) / BC;
            int i = 1;
            for (; i < masked; i++)
                step(std::true_type(), i);
            for (; i < item.tiles; i++) // without as much as a look at the mask
                step(std::false_type(), i);
            if constexpr (BLOCKS)
                release(shared.free(OF_Q, 0));
            const int v_stage = values_arrive(last);
            begin_output(v_stage);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
                l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
                factor[r] = l[r] > 0.0f ? (BLOCKS ? 1.0f : p.v_scale[of_kv]) * reciprocal(l[r]) : 0.0f;
            }
            output_is_there(last, v_stage);
            n += item.tiles;
            used++;
        }

        // Lane t = 0 tells the first row's, lane t = 1 the second's.
        const int own = warpgroup * 64 + warp * 16 + g + 8 * t;
        if (t < 2 && first_row + own < p.q_len) {
            const float l_own = t ? l[1] : l[0], m_own = t ? m[1] : m[0];
            float lse = l_own > 0.0f ? m_own * score + __logf(l_own) - P_OFFSET * 0.693147180559945309417f : -INFINITY;
            p.lse[static_cast<int64_t>(item.of_all) * p.q_len + first_row + own] = lse;
            ASC_RECORD_ROW(lse, 0, own, true, lse);
        }
        const int64_t begin = item.batch(p) * p.q_strides.batch + item.head(p) * p.q_strides.head;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = warpgroup * 64 + warp * 16 + g + 8 * r;
            if (first_row + row >= p.q_len)
                continue;
            uint2 out[D / 16];
#pragma unroll
            for (int b = 0; b < D / 16; b++) {
                const float *x = u + 8 * b + 2 * r;
                out[b] = make_uint2(two<__half>(x[0] * factor[r], x[1] * factor[r]),
                                    two<__half>(x[4] * factor[r], x[5] * factor[r]));
            }
            ASC_RECORD(o, 0, i, D / 4, row, i / 4 * 16 + 4 * t + i % 4, reinterpret_cast<__half *>(out)[i]);
            uint2 *const o = reinterpret_cast<uint2 *>(p.o + begin + (first_row + row) * p.q_strides.row) + t;
#pragma unroll
            for (int b = 0; b < D / 16; b++)
                o[4 * b] = out[b];
        }
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    using S = Shape<64>; // of both alike
    if (!BLOCKS && problem->scale_rows > 0)
        return "scales of blocks of rows are those of another build: -D BLOCKS=1";
    if (BLOCKS && problem->scale_rows % S::BC)
        return "a kv tile of 128 keys has one scale: quant.scales must be tensor, head or rows:N, N a multiple of 128";
    return hopper_plan(problem, plan, S::BR, S::BC, S::THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_head_dim<ASC_E4M3, Code>(problem, [&](auto, auto head_dim) -> const char * {
        using S = Shape<head_dim>;
        Fp8Params p;
        if (const char *refused = hopper_params(problem, S::D, S::BR, S::BC, &p))
            return refused;
        p.q_scale = problem->q_scale;
        p.k_scale = problem->k_scale;
        p.v_scale = problem->v_scale;
        p.q_groups = asc_scale_groups(problem, p.q_len);
        p.kv_groups = asc_scale_groups(problem, p.kv_len);
        p.group_rows = problem->scale_rows > 0 ? problem->scale_rows : INT_MAX;
        int processors = 1;
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
        return ASC_LAUNCH((hopper_fp8<S>), dim3(min(p.work, processors)), S::THREADS, S::BYTES, stream, p);
    });
}

} // namespace

ASC_KERNEL(hopper_fp8)
{
    kernel.plan = plan;
    kernel.launch = launch;
    hopper_conventions(kernel);
    kernel.dtypes = ASC_SUPPORTS(E4M3);
    kernel.o_dtype = ASC_F16;
    kernel.conventions.acc_s = ASC_ACC_WGMMA_E4M3;
    kernel.conventions.acc_u = ASC_ACC_WGMMA_E4M3;
    kernel.conventions.qk_descale = BLOCKS ? ASC_QK_PRODUCT : ASC_QK_FOLDED;
    kernel.conventions.v_descale = BLOCKS ? ASC_V_PRODUCT : ASC_V_OUTPUT;
    kernel.conventions.p_rounded = ASC_P_E4M3;
    kernel.conventions.p_offset = static_cast<int32_t>(P_OFFSET);
}
