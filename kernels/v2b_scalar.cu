// v2b_scalar: fused attention in its plainest form, the first rung of the ladder. Scalar dot products, streaming
// softmax, f32 accumulation; one warp owns a row from its scores to its output, and m and l of the row live in shared
// memory. Any q_len and kv_len: what lies beyond the end is loaded as zero and masked.
//
// A block is 8 warps on one 64-row q tile; a warp takes its 8 rows one after the other. For a row, a lane owns two of
// the 64 keys (lane, lane + 32) and head_dim / 32 of the output columns.
//
// Shared memory in bytes, head_dim 64 / 128 (rows are padded by two elements, so that the 32 lanes that read 32
// different rows meet 32 different banks):
//     q   [64][D + 2] T     8448   16640
//     k   [64][D + 2] T     8448   16640
//     v   [64][D + 2] T     8448   16640
//     p   [8][64] f32       2048    2048     weights of the row each warp works on
//     m,l [64] f32           512     512
//                          27904   52480
//
// Limits: speed. Every product is a scalar FMA, K is read from shared memory once per row, and the loads of
// a tile wait for the arithmetic of the one before.

#include "ladder.cuh"

namespace
{

using namespace ladder;

constexpr int BR = 64, BC = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;

// Rows first .. first + 63 of a head into shared memory; rows beyond `rows` become zero.
template <class T, int D> __device__ void load_tile(T *tile, const T *head, int64_t row_stride, int first, int rows)
{
    for (int i = threadIdx.x; i < 64 * D; i += THREADS) {
        const int r = i / D, d = i % D;
        T x;
        from_float(x, 0.0f);
        if (first + r < rows)
            x = head[(first + r) * row_stride + d];
        tile[r * (D + 2) + d] = x;
    }
}

template <class T, int D, bool asc_probed> __global__ void __launch_bounds__(THREADS) v2b_scalar(Params<T> p)
{
    constexpr int LD = D + 2, COLS = D / 32;
    extern __shared__ __align__(16) unsigned char shared[];
    T *sq = reinterpret_cast<T *>(shared), *sk = sq + BR * LD, *sv = sk + BC * LD;
    float *sp = reinterpret_cast<float *>(sv + BC * LD), *sm = sp + WARPS * BC, *sl = sm + BR;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    load_tile<T, D>(sq, q, p.q_strides.row, q_tile * BR, p.q_len);
    if (threadIdx.x < BR) {
        sm[threadIdx.x] = -INFINITY;
        sl[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * LD + c]);

    float u[ROWS_PER_WARP][COLS];
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++)
#pragma unroll
        for (int i = 0; i < COLS; i++)
            u[r][i] = 0.0f;

    // Tiles beyond the reach of the tile's last row hold nothing for anybody.
    const int last_row = min(q_tile * BR + BR, p.q_len) - 1;
    const int keys = min(p.kv_len, last_row + p.reach + 1);
    for (int kt = 0; kt * BC < keys; kt++) {
        load_tile<T, D>(sk, k, p.kv_strides.row, kt * BC, p.kv_len);
        load_tile<T, D>(sv, v, p.kv_strides.row, kt * BC, p.kv_len);
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * LD + c]);

#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            const int row = warp * ROWS_PER_WARP + r;
            float s[2] = {0.0f, 0.0f};
            for (int d = 0; d < D; d++) {
                const float x = to_float(sq[row * LD + d]);
                s[0] += x * to_float(sk[lane * LD + d]);
                s[1] += x * to_float(sk[(lane + 32) * LD + d]);
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int key = kt * BC + lane + 32 * i;
                s[i] *= p.scale;
                if (key >= p.kv_len || key > q_tile * BR + row + p.reach)
                    s[i] = -INFINITY;
            }
            ASC_RECORD(s, kt, i, 2, row, lane + 32 * i, s[i]);

            const float m_prev = sm[row];
            float m = fmaxf(m_prev, warp_max(fmaxf(s[0], s[1])));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m);
            const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
            float alpha = __expf(m_prev - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
            float w[2] = {__expf(s[0] - base), __expf(s[1] - base)};
            ASC_RECORD(p, kt, i, 2, row, lane + 32 * i, w[i]);
            float l = sl[row] * alpha + warp_sum(w[0] + w[1]);
            ASC_RECORD_ROW(l, kt, row, lane == 0, l);
            sp[warp * BC + lane] = w[0];
            sp[warp * BC + lane + 32] = w[1];
            __syncwarp(); // every lane has read m_prev and l_prev, and the row's weights are there
            if (lane == 0) {
                sm[row] = m;
                sl[row] = l;
            }

#pragma unroll
            for (int i = 0; i < COLS; i++)
                u[r][i] *= alpha;
            for (int c = 0; c < BC; c++) {
                const float weight = sp[warp * BC + c];
#pragma unroll
                for (int i = 0; i < COLS; i++)
                    u[r][i] += weight * to_float(sv[c * LD + lane + 32 * i]);
            }
            ASC_RECORD(u, kt, i, COLS, row, lane + 32 * i, u[r][i]);
            __syncwarp(); // the next row overwrites the weights
        }
        __syncthreads(); // the next tile overwrites K and V
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
                o[lane + 32 * i] = out[i];
            if (lane == 0)
                p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + global_row] = lse;
            ASC_RECORD(o, 0, i, COLS, row, lane + 32 * i, out[i]);
            if (lane == 0)
                ASC_RECORD_ROW(lse, 0, row, true, lse);
        }
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    return plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        using T = decltype(type);
        constexpr int D = head_dim;
        const auto p = params_of<Params<T>>(problem);
        const size_t shared = 3 * 64 * (D + 2) * sizeof(T) + (WARPS * BC + 2 * BR) * sizeof(float);
        return ASC_TWICE(ASC_LAUNCH((v2b_scalar<T, D, asc_probed>), grid_of(problem, BR), THREADS, shared, stream, p));
    });
}

} // namespace

ASC_KERNEL(v2b_scalar)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
