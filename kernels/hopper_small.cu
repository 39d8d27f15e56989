// hopper_small: what sm_90 has, for small shapes, where one launch is over before a pipeline has filled. Two blocks
// that reach each other's shared memory, a cluster, share 64 q rows; each has two warpgroups, and every one of the four
// takes every fourth tile of 128 keys, all rows of it: at 512 keys each has one tile, and all of K and V is on its way
// at once. What the four parts hold in the end, m, l and U, is merged without a trip through global memory.
//
// A warpgroup has a tile of K and one of V of its own, which TMA fills anew as soon as they are read. It is the part
// 2 rank + warpgroup of kv tiles part, part + 4, ...; rows and columns lie in the accumulators as in hopper_large.
//
// The merge: each part owns a quarter of the columns, all rows. It gets the other three's U of these, and every part's
// m and l. Those of its own block come by plain stores and a barrier, those of the other by st.async, which counts its
// bytes into a barrier beside them: no fence, and no barrier at the end, since a block returns only when it has got all
// that is sent to it. Pieces travel as the accumulators have them, 16 bytes a lane, 512 contiguous bytes a warp.
//
// Shared memory in bytes, from the first multiple of 1024 on, D 64 / 128:
//     q       [D / 64][64][64] T                           8192   16384
//     k       [2 warpgroups][D / 64][128][64] T           32768   65536
//     v       the same                                    32768   65536
//     there   [2 owners][2 senders] pieces of U           16384   32768   from the other block
//     here    [2 owners] pieces of U                       8192   16384   from the other warpgroup
//     ends    [4 parts][64 rows] m, l                      2048    2048   own warpgroups, then the other block's
//     barriers                                               64      64
//
// With PDL=1 (scenario.define, -D PDL=1; programmatic dependent launch) a launch may begin before the one ahead of it
// on the stream has ended, as far as its first copy: barriers are there and tensor maps fetched by then. It is the
// launch that differs, the kernel is the same.
//
// Limits: more clusters than the GPU holds at once (66 on an H100): then hopper_large. One tile of keys in flight.

#include "hopper.cuh"

#ifndef PDL
#define PDL 0
#endif

namespace
{

using namespace hopper;

template <int head_dim> struct Shape {
    static constexpr int D = head_dim, PANELS = D / PANEL;
    static constexpr int BR = 64, BC = 128, PARTS = 4, THREADS = 256;
    static constexpr int OWN = D / 2 / PARTS; // accumulators of a lane that a part owns
    static constexpr int Q_BYTES = BR * D * 2, TILE_BYTES = BC * D * 2, PIECE_BYTES = 128 * OWN * 4, END_BYTES = BR * 8;
    static constexpr int Q = 0, K = Q + Q_BYTES, V = K + 2 * TILE_BYTES, THERE = V + 2 * TILE_BYTES;
    static constexpr int HERE = THERE + 4 * PIECE_BYTES, ENDS = HERE + 2 * PIECE_BYTES;
    static constexpr int BARRIERS = ENDS + PARTS * END_BYTES;
    static constexpr int BYTES = BARRIERS + 64 + 1024;             // to a multiple of 1024
    static constexpr int SENT = 2 * (2 * PIECE_BYTES + END_BYTES); // what the other block sends
};

// The accumulators that part `owner` owns; which part it is, the compiler does not know.
template <class S> __device__ __forceinline__ void piece_of(const float (&u)[S::D / 2], int owner, float (&out)[S::OWN])
{
#pragma unroll
    for (int part = 0; part < S::PARTS; part++)
#pragma unroll
        for (int i = 0; i < S::OWN; i++)
            if (part == owner)
                out[i] = u[part * S::OWN + i];
}

// Element i of an accumulator.
#define ROW(i) (warp * 16 + g + (i) / 2 % 2 * 8)
#define COL(i) ((i) / 4 * 8 + 2 * t + (i) % 2)

template <class T, class S>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(S::THREADS, 1)
    hopper_small(const __grid_constant__ HopperParams<T> p)
{
    constexpr int BR = S::BR, BC = S::BC, D = S::D, OWN = S::OWN;
    extern __shared__ unsigned char raw[];
    const uint32_t address = shared_address(raw), base = (address + 1023) & ~1023u;
    unsigned char *const shared = raw + (base - address);
    const int warpgroup = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int g = lane / 4, t = lane % 4, rank = cluster_rank(), peer = rank ^ 1, part = 2 * rank + warpgroup;
    const int q_tile = blockIdx.x / 2, head = blockIdx.y, batch = blockIdx.z, first_row = q_tile * BR;
    const int tiles = (max(p.keys(q_tile, BR), 0) + BC - 1) / BC;
    ASC_AT(batch, head, q_tile);

    const uint32_t sq = base + S::Q, sk = base + S::K + warpgroup * S::TILE_BYTES,
                   sv = base + S::V + warpgroup * S::TILE_BYTES;
    const uint32_t q_full = base + S::BARRIERS, got = q_full + 8, k_full = q_full + 16 + 16 * warpgroup,
                   v_full = k_full + 8;
    const bool leads = threadIdx.x % 128 == 0;
    const auto copy = [&](uint32_t to, const CUtensorMap *map, uint32_t barrier, int rows, int first, int of_head) {
        arrive_and_expect(barrier, rows * D * 2);
        for (int panel = 0; panel < S::PANELS; panel++)
            copy_panel(to + panel * rows * 128, map, barrier, panel * PANEL, first, of_head, batch);
    };
    const int kv_head = p.group == 1 ? head : head / p.group; // a division is long where all wait for the first copy
    const auto copy_k = [&](int kt) { copy(sk, &p.k_map, k_full, BC, kt * BC, kv_head); };
    const auto copy_v = [&](int kt) { copy(sv, &p.v_map, v_full, BC, kt * BC, kv_head); };
    allow_next_launch();
    if (leads) {
        prefetch(&p.q_map);
        prefetch(&p.k_map);
        prefetch(&p.v_map);
        barrier_init(k_full, 1);
        barrier_init(v_full, 1);
        if (warpgroup == 0) {
            barrier_init(q_full, 1);
            barrier_init(got, 1);
        }
        fence_barriers();
        // What may be another launch's is read by the copies of this thread alone, and no thread of the block writes
        // any of it before Q has come, which is behind this wait: so is O, which the launch before may yet be writing.
        wait_for_launches_before();
        if (warpgroup == 0) {
            copy(sq, &p.q_map, q_full, BR, first_row, head);
            arrive_and_expect(got, S::SENT);
        }
        if (part < tiles) {
            copy_k(part);
            copy_v(part);
        }
    }
    cluster_arrive();
    __syncthreads();

    const auto warpgroup_meets = [&] { asm volatile("bar.sync %0, 128;" ::"r"(1 + warpgroup) : "memory"); };
    const auto tile = [&](uint32_t at) { return reinterpret_cast<T *>(shared + (at - base)); };
    float u[D / 2], m[2] = {-INFINITY, -INFINITY}, l[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < D / 2; i++)
        u[i] = 0.0f;
    wait(q_full, 0);
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, tile(sq)[place<BR>(r, c)]);

    int round = 0;
    for (int kt = part; kt < tiles; kt += S::PARTS, round ^= 1) {
        const bool more = kt + S::PARTS < tiles;
        float s[BC / 2], alpha[2];
        wait(k_full, round);
        ASC_RECORD_SHARED_BY(k, kt, r, BC, c, D, threadIdx.x % 128, 128, (fence_async(), warpgroup_meets()),
                             tile(sk)[place<BC>(r, c)]);
        wgmma_begin();
#pragma unroll
        for (int d = 0; d < D / 16; d++)
            multiply<T>(s, matrix(sq + d / 4 * BR * 128 + d % 4 * 32), matrix(sk + d / 4 * BC * 128 + d % 4 * 32),
                        d > 0);
        wgmma_commit();
        wgmma_wait<0>(s);
        if (more) {
            warpgroup_meets(); // all of it has read K
            if (leads)
                copy_k(kt + S::PARTS);
        }
        if ((kt + 1) * BC > p.seen(first_row + warp * 16)) {
#pragma unroll
            for (int i = 0; i < BC / 2; i++)
                if (COL(i) >= p.seen(first_row + ROW(i)) - kt * BC)
                    s[i] = -INFINITY;
        }
        ASC_RECORD(s, kt, i, BC / 2, ROW(i), COL(i), s[i]);
        float base_of[2];
        raise_maxima(s, m, alpha);
        ASC_RECORD(m, kt, i, 2, warp * 16 + g + 8 * i, 0, m[i]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            base_of[r] = m[r] == -INFINITY ? 0.0f : m[r]; // no key yet: -inf - -inf would be NaN
            alpha[r] = exp2_fast((alpha[r] - base_of[r]) * p.scale_log2);
        }
        ASC_RECORD(alpha, kt, i, 2, warp * 16 + g + 8 * i, 0, alpha[i]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            l[r] *= alpha[r];
#pragma unroll
            for (int i = 2 * r; kt > part && i < D / 2; i += 4) { // in the first one it is 0
                u[i] *= alpha[r];
                u[i + 1] *= alpha[r];
            }
        }
        wait(v_full, round);
        ASC_RECORD_SHARED_BY(v, kt, r, BC, c, D, threadIdx.x % 128, 128, (fence_async(), warpgroup_meets()),
                             tile(sv)[place<BC>(r, c)]);
        float sum_of_tile[4] = {}; // four chains of additions
        uint32_t
            weights[BC / 4]; // sixteen keys at a time: their P V is under way while the next ones' weights are made
#pragma unroll
        for (int k = 0; k < BC / 16; k++) {
#pragma unroll
            for (int i = 8 * k; i < 8 * k + 8; i++)
                s[i] = exp2_fast(fmaf(s[i], p.scale_log2, -(base_of[i / 2 % 2] * p.scale_log2)));
            ASC_RECORD(p, kt, i, 8, ROW(i), 16 * k + COL(i), s[8 * k + i]);
#pragma unroll
            for (int i = 4 * k; i < 4 * k + 4; i++) {
                sum_of_tile[i % 4] += s[2 * i] + s[2 * i + 1];
                weights[i] = two<T>(s[2 * i], s[2 * i + 1]);
            }
            wgmma_begin();
            multiply<T>(u, weights + 4 * k, matrix(sv + k * 16 * 128, BC * 128), true);
            wgmma_commit();
        }
        l[0] += sum_of_tile[0] + sum_of_tile[2];
        l[1] += sum_of_tile[1] + sum_of_tile[3];
        ASC_RECORD(l, kt, i, 2, warp * 16 + g + 8 * i, t, l[i]);
        wgmma_wait<0>(u);
        ASC_RECORD(u, kt, i, D / 2, ROW(i), COL(i), u[i]);
        if (more) {
            warpgroup_meets(); // and V
            if (leads)
                copy_v(kt + S::PARTS);
        }
    }

#pragma unroll
    for (int r = 0; r < 2; r++) {
        l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
        l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
    }
    // Pieces lie as lanes have them: 16 bytes each, 2048 a warpgroup. The other block may be written once it is there.
    const int own_row = warp * 16 + g, of_lane = threadIdx.x % 128 * 16;
    const auto ends = [&](int of) { return S::ENDS + of * S::END_BYTES + own_row * 8; };
    float mine[OWN], other[OWN];
    cluster_wait();
    const uint32_t got_there = in_block(got, peer);
#pragma unroll
    for (int owner = 0; owner < 2; owner++) {
        piece_of<S>(u, 2 * peer + owner, other);
        const uint32_t to = in_block(base + S::THERE + (2 * owner + warpgroup) * S::PIECE_BYTES + of_lane, peer);
#pragma unroll
        for (int i = 0; i < OWN; i += 4)
            store_there(to + i * 512, other + i, got_there);
    }
    piece_of<S>(u, part ^ 1, other);
#pragma unroll
    for (int i = 0; i < OWN; i += 4)
        *reinterpret_cast<float4 *>(shared + S::HERE + (warpgroup ^ 1) * S::PIECE_BYTES + of_lane + i * 512) =
            make_float4(other[i], other[i + 1], other[i + 2], other[i + 3]);
    if (t == 0)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            store_there(in_block(base + ends(2 + warpgroup) + r * 64, peer), m[r], l[r], got_there);
            *reinterpret_cast<float2 *>(shared + ends(warpgroup) + r * 64) = make_float2(m[r], l[r]);
        }
    piece_of<S>(u, part, mine);
    const int own_col = part * (D / 4) + 2 * t;
    T *const out =
        p.o + batch * p.q_strides.batch + head * p.q_strides.head + (first_row + own_row) * p.q_strides.row + own_col;
    __syncthreads();
    wait(got, 0);

    float weight[S::PARTS][2], top[2], sum[2]; // of this part, the other warpgroup's, the other block's two
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float2 all[] = {make_float2(m[r], l[r]),
                              *reinterpret_cast<const float2 *>(shared + ends(warpgroup ^ 1) + r * 64),
                              *reinterpret_cast<const float2 *>(shared + ends(2) + r * 64),
                              *reinterpret_cast<const float2 *>(shared + ends(3) + r * 64)};
        top[r] = fmaxf(fmaxf(all[0].x, all[1].x), fmaxf(all[2].x, all[3].x));
        const float frame = top[r] == -INFINITY ? 0.0f : top[r];
        sum[r] = 0.0f;
#pragma unroll
        for (int i = 0; i < S::PARTS; i++) {
            weight[i][r] = exp2_fast((all[i].x - frame) * p.scale_log2);
            sum[r] += weight[i][r] * all[i].y;
        }
        const float inverse = sum[r] > 0.0f ? reciprocal(sum[r]) : 0.0f; // a row without any key gives zero
#pragma unroll
        for (int i = 0; i < S::PARTS; i++)
            weight[i][r] *= inverse;
    }
#pragma unroll
    for (int i = 0; i < OWN; i++)
        mine[i] *= weight[0][i / 2 % 2];
#pragma unroll
    for (int from = 1; from < S::PARTS; from++) {
        const unsigned char *piece =
            shared + of_lane +
            (from == 1 ? S::HERE + warpgroup * S::PIECE_BYTES : S::THERE + (2 * warpgroup + from - 2) * S::PIECE_BYTES);
#pragma unroll
        for (int i = 0; i < OWN; i += 4) {
            const float4 x = *reinterpret_cast<const float4 *>(piece + i * 512);
            mine[i] += weight[from][0] * x.x;
            mine[i + 1] += weight[from][0] * x.y;
            mine[i + 2] += weight[from][1] * x.z;
            mine[i + 3] += weight[from][1] * x.w;
        }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = own_row + 8 * r;
        if (first_row + row >= p.q_len)
            continue;
        __align__(4) T values[OWN / 2];
#pragma unroll
        for (int i = 0; i < OWN; i += 4)
            *reinterpret_cast<uint32_t *>(values + i / 2) = two<T>(mine[i + 2 * r], mine[i + 2 * r + 1]);
        ASC_RECORD(o, 0, i, OWN / 2, row, own_col + i / 2 * 8 + i % 2, values[i]);
#pragma unroll
        for (int i = 0; i < OWN; i += 4)
            *reinterpret_cast<uint32_t *>(out + r * 8 * p.q_strides.row + i / 4 * 8) =
                *reinterpret_cast<const uint32_t *>(values + i / 2);
    }
    const int row_of_lse = own_row + 8 * t; // lane t = 0 tells the first row's, lane t = 1 the second's
    if (part == 0 && t < 2 && first_row + row_of_lse < p.q_len) {
        const float sum_own = t ? sum[1] : sum[0], top_own = t ? top[1] : top[0];
        float lse = sum_own > 0.0f ? top_own * p.scale + __logf(sum_own) : -INFINITY;
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + first_row + row_of_lse] = lse;
        ASC_RECORD_ROW(lse, 0, row_of_lse, true, lse);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    return for_instance(problem, [&](auto, auto head_dim) {
        using S = Shape<head_dim>;
        plan->kv_splits = S::PARTS;
        plan->kv_deal = ASC_DEAL_ROUND_ROBIN;
        return hopper_plan(problem, plan, S::BR, S::BC, S::THREADS);
    });
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) -> const char * {
        using T = decltype(type);
        using S = Shape<head_dim>;
        HopperParams<T> p;
        if (const char *refused = hopper_params(problem, S::D, S::BR, S::BC, &p))
            return refused;
        const dim3 blocks(2 * p.q_tiles, problem->heads, problem->batch);
        if (PDL)
            return launch_early(hopper_small<T, S>, blocks, S::THREADS, S::BYTES, stream, p);
        return ASC_LAUNCH((hopper_small<T, S>), blocks, S::THREADS, S::BYTES, stream, p);
    });
}

} // namespace

ASC_KERNEL(hopper_small)
{
    kernel.plan = plan;
    kernel.launch = launch;
    hopper_conventions(kernel);
}
