// v2c_cpasync: v2b_scalar with its K and V in a pipeline of two stages. While the warps work on one kv tile, cp.async
// copies the next one into the other stage, 16 bytes at a time and past the registers; a pointer that is not aligned to
// 16 bytes takes plain loads instead. Reads of shared memory are as wide: 16 bytes of Q and K, a pair of V.
//
// A block is 8 warps on one 64-row q tile; a warp takes its 8 rows one after the other. A kv tile has 8192 / D keys.
// For a row, a lane owns the keys lane, lane + 32, ... and head_dim / 64 pairs of neighboring output columns.
//
// The pipeline, stage by stage: copy tile j + 1, commit; wait until all but the last group are there, which is tile j;
// barrier, since a thread waits for its own copies alone; work on tile j; barrier, before its stage is copied into.
//
// Shared memory in bytes, head_dim 64 / 128 (rows of K are padded by 16 bytes, so that 8 lanes that read 16 bytes of 8
// different rows meet all 32 banks; Q is read by all lanes at one place, V along a row: neither needs it):
//     q   [64][D] T            8192   16384
//     k   [2][BC][D + 8] T    36864   34816
//     v   [2][BC][D] T        32768   32768
//     p   [8][BC] f32          4096    2048     weights of the row each warp works on
//     m,l [64] f32              512     512
//                             82432   86528
//
// Limits: arithmetic. Every product is still a scalar FMA behind two conversions, and every row reads all
// of K and V from shared memory again. Two blocks fill an SM.

#include "ladder.cuh"

namespace
{

using namespace ladder;

constexpr int BR = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;

template <class T, int D> struct Shared {
    static constexpr int BC = 8192 / D, LDK = D + 8;
    static constexpr int Q = BR * D, K = BC * LDK, V = BC * D; /* elements of a tile */
    static constexpr size_t bytes = (Q + 2 * K + 2 * V) * sizeof(T) + (WARPS * BC + 2 * BR) * sizeof(float);
};

template <class T, int D, bool asc_probed> __global__ void __launch_bounds__(THREADS) v2c_cpasync(Params<T> p)
{
    using L = Shared<T, D>;
    constexpr int BC = L::BC, LDK = L::LDK, KEYS = BC / 32, COLS = D / 32;
    extern __shared__ __align__(16) unsigned char shared[];
    T *sq = reinterpret_cast<T *>(shared), *k_stages = sq + L::Q, *v_stages = k_stages + 2 * L::K;
    float *sp = reinterpret_cast<float *>(v_stages + 2 * L::V), *sm = sp + WARPS * BC, *sl = sm + BR;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    const int keys = p.keys(q_tile, BR);

    copy_tile<T, D, D, BR, THREADS>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
    __pipeline_commit();
    if (keys > 0) {
        copy_tile<T, D, LDK, BC, THREADS>(k_stages, k, p.kv_strides.row, 0, p.kv_len, p.aligned);
        copy_tile<T, D, D, BC, THREADS>(v_stages, v, p.kv_strides.row, 0, p.kv_len, p.aligned);
    }
    __pipeline_commit();
    if (threadIdx.x < BR) {
        sm[threadIdx.x] = -INFINITY;
        sl[threadIdx.x] = 0.0f;
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * D + c]);

    float u[ROWS_PER_WARP][COLS] = {};

    for (int kt = 0; kt * BC < keys; kt++) {
        T *sk = k_stages + kt % 2 * L::K, *sv = v_stages + kt % 2 * L::V;
        if ((kt + 1) * BC < keys) {
            const int other = (kt + 1) % 2, first = (kt + 1) * BC;
            copy_tile<T, D, LDK, BC, THREADS>(k_stages + other * L::K, k, p.kv_strides.row, first, p.kv_len, p.aligned);
            copy_tile<T, D, D, BC, THREADS>(v_stages + other * L::V, v, p.kv_strides.row, first, p.kv_len, p.aligned);
        }
        __pipeline_commit();      // of nothing, behind the last tile
        __pipeline_wait_prior(1); // this tile is there, the next one may be under way
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LDK + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * D + c]);

#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            const int row = warp * ROWS_PER_WARP + r;
            float s[KEYS] = {};
#pragma unroll 1
            for (int d = 0; d < D; d += 8) {
                const uint4 x = *reinterpret_cast<const uint4 *>(sq + row * D + d);
                const float2 x0 = widen(x.x, T()), x1 = widen(x.y, T()), x2 = widen(x.z, T()), x3 = widen(x.w, T());
#pragma unroll
                for (int i = 0; i < KEYS; i++) {
                    const uint4 y = *reinterpret_cast<const uint4 *>(sk + (lane + 32 * i) * LDK + d);
                    const float2 y0 = widen(y.x, T()), y1 = widen(y.y, T());
                    const float2 y2 = widen(y.z, T()), y3 = widen(y.w, T());
                    s[i] += x0.x * y0.x + x0.y * y0.y + x1.x * y1.x + x1.y * y1.y;
                    s[i] += x2.x * y2.x + x2.y * y2.y + x3.x * y3.x + x3.y * y3.y;
                }
            }
#pragma unroll
            for (int i = 0; i < KEYS; i++) {
                const int key = kt * BC + lane + 32 * i;
                s[i] *= p.scale;
                if (key >= p.kv_len || key > q_tile * BR + row + p.reach)
                    s[i] = -INFINITY;
            }
            ASC_RECORD(s, kt, i, KEYS, row, lane + 32 * i, s[i]);

            const float m_prev = sm[row];
            float m = fmaxf(m_prev, warp_max(largest_of(s)));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m);
            const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
            float alpha = __expf(m_prev - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
#pragma unroll
            for (int i = 0; i < KEYS; i++)
                s[i] = __expf(s[i] - base);
            ASC_RECORD(p, kt, i, KEYS, row, lane + 32 * i, s[i]);
#pragma unroll
            for (int i = 0; i < KEYS; i++)
                sp[warp * BC + lane + 32 * i] = s[i];
            float l = sl[row] * alpha + warp_sum(sum_of(s));
            ASC_RECORD_ROW(l, kt, row, lane == 0, l);
            __syncwarp(); // every lane has read m_prev and l_prev, and the row's weights are there
            if (lane == 0) {
                sm[row] = m;
                sl[row] = l;
            }

#pragma unroll
            for (int i = 0; i < COLS; i++)
                u[r][i] *= alpha;
#pragma unroll 4
            for (int c = 0; c < BC; c++) {
                const float weight = sp[warp * BC + c];
#pragma unroll
                for (int i = 0; i < COLS; i += 2) {
                    const unsigned pair = *reinterpret_cast<const unsigned *>(sv + c * D + 32 * i + 2 * lane);
                    const float2 x = widen(pair, T());
                    u[r][i] += weight * x.x;
                    u[r][i + 1] += weight * x.y;
                }
            }
            ASC_RECORD(u, kt, i, COLS, row, i / 2 * 64 + 2 * lane + i % 2, u[r][i]);
            __syncwarp(); // the next row overwrites the weights
        }
        __syncthreads(); // the tile after the next is copied into this stage
    }

#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        const int row = warp * ROWS_PER_WARP + r, global_row = q_tile * BR + row;
        const float l = sl[row], inverse = l > 0.0f ? 1.0f / l : 0.0f; // a row without any key gives zero
        const float lse = l > 0.0f ? sm[row] + __logf(l) : -INFINITY;
        T out[COLS];
#pragma unroll
        for (int i = 0; i < COLS; i++)
            from_float(out[i], u[r][i] * inverse);
        if (global_row < p.q_len) {
            T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                o[i / 2 * 64 + 2 * lane + i % 2] = out[i];
            if (lane == 0)
                p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + global_row] = lse;
            ASC_RECORD(o, 0, i, COLS, row, i / 2 * 64 + 2 * lane + i % 2, out[i]);
            if (lane == 0)
                ASC_RECORD_ROW(lse, 0, row, true, lse);
        }
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    return plan_tiles(problem, plan, BR, 8192 / problem->head_dim, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        using T = decltype(type);
        constexpr int D = head_dim;
        const auto p = params_of<Params<T>>(problem);
        return ASC_TWICE(ASC_LAUNCH((v2c_cpasync<T, D, asc_probed>), grid_of(problem, BR), THREADS,
                                    (Shared<T, D>::bytes), stream, p));
    });
}

} // namespace

ASC_KERNEL(v2c_cpasync)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
