// hopper_large: what sm_90 has, for large shapes. A producer thread feeds tiles of K and V through TMA into a ring of
// stages; consumer warpgroups multiply with wgmma, 64 rows each, straight from shared memory. Each has Q Kt of the next
// kv tile under way while it works on the softmax, and P V of the last one while it works on the next. One block for
// each multiprocessor takes q tile after q tile.
//
// Of an accumulator of 64 x N a lane has columns 2 t and 2 t + 1 (t = lane % 4) of every eight, of rows g and g + 8
// (g = lane / 4) of its warp's 16, as in fp16_mma: the weights, rounded, are the A operand of P V as they stand.
//
// The two sides meet at mbarriers. Of a stage, K and V have two each:
//     full     the producer arrives once, and says how many bytes TMA will bring; consumers wait before they read
//     free     every consumer warp arrives when its wgmma has read the tile; the producer waits before it copies anew
// Round r of a stage has parity r % 2; a fresh barrier passes a wait for parity 1, so that the first round waits for
// nobody. Q has one full and one free barrier; its rounds are the block's q tiles.
//
// Two stages. D = 64: 4 consumers x 64 rows, 64 keys a tile. D = 128, and D = 64 with a causal mask, whose q tiles are
// to be many and small so that blocks get equal work: 2 consumers x 64 rows, 128 keys, and the two take turns on the
// tensor cores (named barriers 1 and 2), so that one computes weights while the other multiplies.
//
// Shared memory in bytes, from the first multiple of 1024 on, D 64 / 64 causal / 128:
//     q   [D / 64][rows][64] T            32768   16384   32768
//     k   [stages][D / 64][keys][64] T    16384   32768   65536
//     v   the same                        16384   32768   65536
//     barriers                              256     256     256
//
// With PDL=1 a launch may begin early, as with hopper_small; here all threads wait before they go on.
//
// Limits: one wave of tiles that is not full; few rows.

#include "hopper.cuh"

#ifndef PDL
#define PDL 0
#endif

namespace
{

using namespace hopper;

enum { OF_K, OF_V, OF_Q }; // Q has one stage

template <int head_dim, bool causal> struct Shape {
    static constexpr int D = head_dim, PANELS = D / PANEL;
    static constexpr bool CAUSAL = causal, WIDE = D == 64 && !causal;
    static constexpr int WARPGROUPS = WIDE ? 4 : 2, BR = 64 * WARPGROUPS, BC = WIDE ? 64 : 128;
    static constexpr int STAGES = 2;
    static constexpr bool TURNS = !WIDE;
    static constexpr int CONSUMER_THREADS = 128 * WARPGROUPS, THREADS = CONSUMER_THREADS + 128;
    // Registers of a thread: all there are, dealt in the launch, then given by the producer to the consumers.
    static constexpr int FOR_PRODUCER = WIDE ? 32 : 24, FOR_CONSUMER = WIDE ? 112 : 240;
    static constexpr int Q_BYTES = BR * D * 2, TILE_BYTES = BC * D * 2;
    static constexpr int Q = 0, K = Q + Q_BYTES, BARRIERS = K + 2 * STAGES * TILE_BYTES;
    static constexpr int BYTES = BARRIERS + 256 + 1024; // to a multiple of 1024

    uint32_t base;
    __device__ __forceinline__ uint32_t tile(int of, int stage) const
    {
        return base + (of == OF_Q ? Q : K + (of * STAGES + stage) * TILE_BYTES);
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

// All that the producer thread does.
template <class T, class S> __device__ __forceinline__ void produce(const HopperParams<T> &p, S shared)
{
    int used = 0, n = 0; // q tiles that see any key, and kv tiles, so far
    for (int round = 0; round * gridDim.x < p.work; round++) {
        const Item<S> item(p, round);
        if (!item.is_there || !item.tiles)
            continue;
        const auto copy = [&](int of, int kt) {
            const int stage = (n + kt) % S::STAGES, first = (item.tiles - 1 - kt) * S::BC;
            wait(shared.free(of, stage), (n + kt) / S::STAGES + 1 & 1);
            arrive_and_expect(shared.full(of, stage), S::TILE_BYTES);
            for (int panel = 0; panel < S::PANELS; panel++)
                copy_panel(shared.tile(of, stage) + panel * S::BC * 128, of == OF_K ? &p.k_map : &p.v_map,
                           shared.full(of, stage), panel * PANEL, first, item.head(p) / p.group, item.batch(p));
        };
        wait(shared.free(OF_Q, 0), used + 1 & 1);
        arrive_and_expect(shared.full(OF_Q, 0), S::Q_BYTES);
        for (int panel = 0; panel < S::PANELS; panel++)
            copy_panel(shared.tile(OF_Q, 0) + panel * S::BR * 128, &p.q_map, shared.full(OF_Q, 0), panel * PANEL,
                       item.q_tile * S::BR, item.head(p), item.batch(p));
        copy(OF_K, 0);
        for (int kt = 1; kt < item.tiles; kt++) {
            copy(OF_K, kt);
            copy(OF_V, kt - 1);
        }
        copy(OF_V, item.tiles - 1);
        n += item.tiles;
        used++;
    }
}

// Four lanes have two neighboring columns of each of four groups of eight: each ends up with the eight of one group.
__device__ __forceinline__ uint4 gather(uint32_t (&word)[4], int t)
{
#pragma unroll
    for (int step = 1; step < 4; step *= 2) { // words and lanes whose numbers differ in this bit change places
        const bool upper = t & step;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & step)
                continue;
            const uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? word[i] : word[i + step], step);
            word[i] = upper ? got : word[i];
            word[i + step] = upper ? word[i + step] : got;
        }
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
}

// Element i of an accumulator.
#define ROW(i) (warpgroup * 64 + warp * 16 + g + (i) / 2 % 2 * 8)
#define COL(i) ((i) / 4 * 8 + 2 * t + (i) % 2)

template <class T, class S>
__global__ void __launch_bounds__(S::THREADS, 1) hopper_large(const __grid_constant__ HopperParams<T> p)
{
    constexpr int BR = S::BR, BC = S::BC, D = S::D;
    extern __shared__ unsigned char raw[];
    const uint32_t address = shared_address(raw), base = (address + 1023) & ~1023u;
    const S shared = {base};
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3 * S::STAGES; i++) {
            barrier_init(shared.full(0, i), 1);
            barrier_init(shared.free(0, i), 4 * S::WARPGROUPS);
        }
    }
    barriers_are_there();
    allow_next_launch();
    wait_for_launches_before();

    const int warpgroup = threadIdx.x / 128;
    if (warpgroup == S::WARPGROUPS) {
        give_registers<S::FOR_PRODUCER>();
        if (threadIdx.x == S::CONSUMER_THREADS)
            produce<T, S>(p, shared);
        return;
    }
    take_registers<S::FOR_CONSUMER>();

    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const auto release = [&](uint32_t barrier) {
        if constexpr (ASC_MODE != 0)
            __syncwarp(); // what the probes of its lanes read; wgmma is waited for by the warp as a whole
        if (lane == 0)
            arrive(barrier);
    };
    float s[BC / 2], u[D / 2], m[2], l[2];
    uint32_t weights[BC / 4];

    // S = Q Kt, as it is begun.
    const auto begin_scores = [&](int stage) {
        const uint32_t sq = shared.tile(OF_Q, 0) + warpgroup * 64 * 128, sk = shared.tile(OF_K, stage);
        wgmma_begin();
#pragma unroll
        for (int d = 0; d < D / 16; d++)
            multiply<T>(s, matrix(sq + d / 4 * BR * 128 + d % 4 * 32), matrix(sk + d / 4 * BC * 128 + d % 4 * 32),
                        d > 0);
        wgmma_commit();
    };
    // U += P V.
    const auto begin_output = [&](int stage, bool add) {
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < BC / 16; k++)
            multiply<T>(u, weights + 4 * k, matrix(shared.tile(OF_V, stage) + k * 16 * 128, BC * 128), add || k > 0);
        wgmma_commit();
    };
    // The other warpgroup's turn comes when this one has begun its products.
    if (S::TURNS && warpgroup == 1)
        barrier_arrive<S::CONSUMER_THREADS>(1);

    int used = 0, n = 0;
    for (int round = 0; round * gridDim.x < p.work; round++) {
        const Item<S> item(p, round);
        if (!item.is_there)
            break;
        const int first_row = item.q_tile * BR;
        ASC_AT(item.batch(p), item.head(p), item.q_tile);
        // Up to here all rows of this warp see all keys.
        const int seen_by_all = p.seen(first_row + warpgroup * 64 + warp * 16);
        [[maybe_unused]] const auto tile = [&](uint32_t at_) { return reinterpret_cast<T *>(raw + (at_ - address)); };

        const auto weigh = [&](auto masks, int kt, float(&alpha)[2]) {
            if (decltype(masks)::value && (kt + 1) * BC > seen_by_all) {
#pragma unroll
                for (int i = 0; i < BC / 2; i++)
                    if (COL(i) >= p.seen(first_row + ROW(i)) - kt * BC)
                        s[i] = -INFINITY;
            }
            ASC_RECORD(s, kt, i, BC / 2, ROW(i), COL(i), s[i]);
            float base_of[2];
            raise_maxima(s, m, alpha);
            ASC_RECORD(m, kt, i, 2, warpgroup * 64 + warp * 16 + g + 8 * i, 0, m[i]);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                // No key yet, which a mask alone brings about: -inf - -inf would be NaN.
                base_of[r] = S::CAUSAL && m[r] == -INFINITY ? 0.0f : m[r];
                alpha[r] = exp2_fast((alpha[r] - base_of[r]) * p.scale_log2);
            }
            ASC_RECORD(alpha, kt, i, 2, warpgroup * 64 + warp * 16 + g + 8 * i, 0, alpha[i]);
#pragma unroll
            for (int i = 0; i < BC / 2; i++)
                s[i] = exp2_fast(fmaf(s[i], p.scale_log2, -(base_of[i / 2 % 2] * p.scale_log2)));
            ASC_RECORD(p, kt, i, BC / 2, ROW(i), COL(i), s[i]);
            // As many chains of additions as there are registers for.
            constexpr int CHAINS = S::WIDE ? 1 : 2;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float sum[CHAINS] = {};
#pragma unroll
                for (int i = 2 * r; i < BC / 2; i += 4) {
                    sum[0] += s[i];
                    sum[CHAINS - 1] += s[i + 1];
                }
                l[r] = l[r] * alpha[r] + (CHAINS > 1 ? sum[0] + sum[CHAINS - 1] : sum[0]);
            }
            ASC_RECORD(l, kt, i, 2, warpgroup * 64 + warp * 16 + g + 8 * i, t, l[i]);
        };
        const auto round_weights = [&] {
#pragma unroll
            for (int i = 0; i < BC / 4; i++)
                weights[i] = two<T>(s[2 * i], s[2 * i + 1]);
        };

        float alpha[2], inverse[2] = {0.0f, 0.0f}; // of l, to O; a row without any key gives zero
        m[0] = m[1] = -INFINITY;
        l[0] = l[1] = 0.0f;
#pragma unroll
        for (int i = 0; i < D / 2; i++)
            u[i] = 0.0f;
        if (item.tiles) {
            const int last = item.tiles - 1; // of the kv tiles, which comes first
            wait(shared.full(OF_Q, 0), used & 1);
            ASC_RECORD_SHARED_BY(q, 0, r, BR, c, D, threadIdx.x, S::CONSUMER_THREADS, consumers_agree<S>(),
                                 tile(shared.tile(OF_Q, 0))[place<BR>(r, c)]);
            const auto scores_arrive = [&](int i) {
                const int stage = (n + i) % S::STAGES;
                wait(shared.full(OF_K, stage), (n + i) / S::STAGES & 1);
                ASC_RECORD_SHARED_BY(k, last - i, r, BC, c, D, threadIdx.x, S::CONSUMER_THREADS, consumers_agree<S>(),
                                     tile(shared.tile(OF_K, stage))[place<BC>(r, c)]);
                return stage;
            };
            const auto values_arrive = [&](int i) {
                const int stage = (n + i) % S::STAGES;
                wait(shared.full(OF_V, stage), (n + i) / S::STAGES & 1);
                ASC_RECORD_SHARED_BY(v, last - i, r, BC, c, D, threadIdx.x, S::CONSUMER_THREADS, consumers_agree<S>(),
                                     tile(shared.tile(OF_V, stage))[place<BC>(r, c)]);
                return stage;
            };
            const int k_stage = scores_arrive(0);
            begin_scores(k_stage);
            wgmma_wait<0>(s);
            release(shared.free(OF_K, k_stage));
            weigh(std::true_type(), last, alpha);
            round_weights();
            const auto step = [&](auto masks, int i) {
                const int k_stage = scores_arrive(i);
                if (S::TURNS)
                    barrier_wait<S::CONSUMER_THREADS>(1 + warpgroup);
                begin_scores(k_stage);
                const int v_stage = values_arrive(i - 1);
                begin_output(v_stage, true);
                if (S::TURNS)
                    barrier_arrive<S::CONSUMER_THREADS>(2 - warpgroup);
                wgmma_wait<1>(s);
                release(shared.free(OF_K, k_stage));
                weigh(masks, last - i, alpha);
                wgmma_wait<0>(u);
                ASC_RECORD(u, last - i + 1, e, D / 2, ROW(e), COL(e), u[e]);
                release(shared.free(OF_V, v_stage));
#pragma unroll
                for (int e = 0; e < D / 2; e++)
                    u[e] *= alpha[e / 2 % 2];
                round_weights();
            };
            // Tiles that some row does not see all of come first; without a causal mask it is the last key's alone.
            const int masked = S::CAUSAL ? item.tiles - max(p.seen(first_row), 0) / BC : 1;
            int i = 1;
            for (; S::CAUSAL && i < masked; i++)
                step(std::true_type(), i);
            for (; i < item.tiles; i++) // without as much as a look at the mask
                step(std::false_type(), i);
            release(shared.free(OF_Q, 0));
            const int v_stage = values_arrive(last);
            begin_output(v_stage, true);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
                l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
                inverse[r] = l[r] > 0.0f ? reciprocal(l[r]) : 0.0f;
            }
            wgmma_wait<0>(u);
            ASC_RECORD(u, 0, e, D / 2, ROW(e), COL(e), u[e]);
            release(shared.free(OF_V, v_stage));
            n += item.tiles;
            used++;
        }

        // Lane t = 0 tells the first row's, lane t = 1 the second's.
        const int own = warpgroup * 64 + warp * 16 + g + 8 * t;
        if (t < 2 && first_row + own < p.q_len) {
            const float l_own = t ? l[1] : l[0], m_own = t ? m[1] : m[0];
            float lse = l_own > 0.0f ? m_own * p.scale + __logf(l_own) : -INFINITY;
            p.lse[static_cast<int64_t>(item.of_all) * p.q_len + first_row + own] = lse;
            ASC_RECORD_ROW(lse, 0, own, true, lse);
        }
        const int64_t begin = item.batch(p) * p.q_strides.batch + item.head(p) * p.q_strides.head;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = warpgroup * 64 + warp * 16 + g + 8 * r;
            uint4 out[D / 32];
#pragma unroll
            for (int b = 0; b < D / 32; b++) {
                const float *x = u + 16 * b + 2 * r;
                uint32_t word[4];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    word[j] = two<T>(x[4 * j] * inverse[r], x[4 * j + 1] * inverse[r]);
                out[b] = gather(word, t);
            }
            if (first_row + row >= p.q_len)
                continue;
            ASC_RECORD(o, 0, i, D / 4, row, i / 8 * 32 + t * 8 + i % 8, reinterpret_cast<T *>(out)[i]);
            uint4 *const o = reinterpret_cast<uint4 *>(p.o + begin + (first_row + row) * p.q_strides.row) + t;
#pragma unroll
            for (int b = 0; b < D / 32; b++)
                o[4 * b] = out[b];
        }
    }
}

// f(S()) for the shape of the problem.
template <int D, class F> const char *for_shape(const asc_problem *problem, F f)
{
    return problem->causal == ASC_CAUSAL_NONE ? f(Shape<D, false>()) : f(Shape<D, true>());
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    return for_instance(problem, [&](auto, auto head_dim) {
        return for_shape<head_dim>(problem, [&](auto shape) {
            using S = decltype(shape);
            return hopper_plan(problem, plan, S::BR, S::BC, S::THREADS);
        });
    });
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        return for_shape<head_dim>(problem, [&](auto shape) -> const char * {
            using T = decltype(type);
            using S = decltype(shape);
            HopperParams<T> p;
            if (const char *refused = hopper_params(problem, S::D, S::BR, S::BC, &p))
                return refused;
            int processors = 1;
            cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
            const dim3 blocks(min(p.work, processors));
            if (PDL)
                return launch_early(hopper_large<T, S>, blocks, S::THREADS, S::BYTES, stream, p);
            return ASC_LAUNCH((hopper_large<T, S>), blocks, S::THREADS, S::BYTES, stream, p);
        });
    });
}

} // namespace

ASC_KERNEL(hopper_large)
{
    kernel.plan = plan;
    kernel.launch = launch;
    hopper_conventions(kernel);
}
