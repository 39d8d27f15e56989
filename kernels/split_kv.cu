// split_kv: v2b_scalar for few queries and many keys (flash-decoding). The kv tiles of a row are cut into ranges, each
// a block of its own, so that one query still fills the GPU. A block leaves its output, divided by its own sum, and the
// log-sum-exp of its scores in the workspace; a second kernel merges them, weighted by exp(lse_split - lse).
//
// A block is 8 warps on a 16-row q tile and one range; a warp takes its 2 rows one after the other. For a row, a lane
// owns two of the 64 keys (lane, lane + 32) and head_dim / 32 of the output columns. There are 2 to 16 ranges, as many
// as bring the blocks to ENOUGH. A range in which a row sees no key leaves an lse of -inf, and weighs nothing.
//
// Workspace: o [batch][heads][q_len][splits][D] f32, then lse [batch][heads][q_len][splits] f32.
//
// Shared memory in bytes, head_dim 64 / 128 (rows are padded by two elements, so that the 32 lanes that read 32
// different rows meet 32 different banks); the merge has none:
//     q   [16][D + 2] T     2112    4160
//     k   [64][D + 2] T     8448   16640
//     v   [64][D + 2] T     8448   16640
//     p   [8][64] f32       2048    2048     weights of the row each warp works on
//                          21056   39488
//
// Limits: many queries, where ranges only add the way through the workspace, and grouped heads, each of
// which loads the K and V they share. The products are scalar.

#include "ladder.cuh"

namespace
{

using namespace ladder;

constexpr int BR = 16, BC = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;
constexpr int ENOUGH = 264, MOST_SPLITS = 16; // blocks: two for each SM of an H100

template <class T> struct SplitParams : Params<T> {
    float *split_o;   /* [batch][heads][q_len][splits][D] */
    float *split_lse; /* [batch][heads][q_len][splits] */
    int splits, split_tiles;
};

// Rows first .. first + COUNT - 1 of a head into shared memory; rows beyond `rows` become zero.
template <class T, int D, int COUNT>
__device__ void load_tile(T *tile, const T *head, int64_t row_stride, int first, int rows)
{
    for (int i = threadIdx.x; i < COUNT * D; i += THREADS) {
        const int r = i / D, d = i % D;
        T x;
        from_float(x, 0.0f);
        if (first + r < rows)
            x = head[(first + r) * row_stride + d];
        tile[r * (D + 2) + d] = x;
    }
}

template <class T, int D> __global__ void __launch_bounds__(THREADS) split_kv(SplitParams<T> p)
{
    constexpr int LD = D + 2, COLS = D / 32;
    extern __shared__ __align__(16) unsigned char shared[];
    T *sq = reinterpret_cast<T *>(shared), *sk = sq + BR * LD, *sv = sk + BC * LD;
    float *sp = reinterpret_cast<float *>(sv + BC * LD);

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x / p.splits, split = blockIdx.x % p.splits, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    load_tile<T, D, BR>(sq, q, p.q_strides.row, q_tile * BR, p.q_len);
    __syncthreads();
    if (split == 0)
        ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * LD + c]);

    float m[ROWS_PER_WARP], l[ROWS_PER_WARP] = {}, u[ROWS_PER_WARP][COLS] = {};
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++)
        m[r] = -INFINITY;

    const int keys = p.keys(q_tile, BR);
    const int first_tile = split * p.split_tiles, end_tile = min(first_tile + p.split_tiles, (keys + BC - 1) / BC);
    for (int kt = first_tile; kt < end_tile; kt++) {
        load_tile<T, D, BC>(sk, k, p.kv_strides.row, kt * BC, p.kv_len);
        load_tile<T, D, BC>(sv, v, p.kv_strides.row, kt * BC, p.kv_len);
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

            const float m_prev = m[r];
            m[r] = fmaxf(m_prev, warp_max(fmaxf(s[0], s[1])));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m[r]);
            const float base = m[r] == -INFINITY ? 0.0f : m[r]; // no key yet: -inf - -inf would be NaN
            float alpha = __expf(m_prev - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
            float w[2] = {__expf(s[0] - base), __expf(s[1] - base)};
            ASC_RECORD(p, kt, i, 2, row, lane + 32 * i, w[i]);
            l[r] = l[r] * alpha + warp_sum(w[0] + w[1]);
            ASC_RECORD_ROW(l, kt, row, lane == 0, l[r]);
            sp[warp * BC + lane] = w[0];
            sp[warp * BC + lane + 32] = w[1];
            __syncwarp(); // the row's weights are there

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
        const int global_row = q_tile * BR + warp * ROWS_PER_WARP + r;
        const float inverse = l[r] > 0.0f ? 1.0f / l[r] : 0.0f;
        const float lse = l[r] > 0.0f ? m[r] + __logf(l[r]) : -INFINITY;
        if (global_row >= p.q_len)
            continue;
        const int64_t at = ((static_cast<int64_t>(batch) * p.heads + head) * p.q_len + global_row) * p.splits + split;
#pragma unroll
        for (int i = 0; i < COLS; i++)
            p.split_o[at * D + lane + 32 * i] = u[r][i] * inverse;
        if (lane == 0)
            p.split_lse[at] = lse;
    }
}

// A warp owns a row from its splits to its output.
template <class T, int D> __global__ void __launch_bounds__(THREADS) merge_splits(SplitParams<T> p)
{
    constexpr int COLS = D / 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    ASC_AT(batch, head, q_tile);

#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        const int row = warp * ROWS_PER_WARP + r, global_row = q_tile * BR + row;
        if (global_row >= p.q_len)
            continue;
        const int64_t first = (static_cast<int64_t>(batch) * p.heads + head) * p.q_len + global_row;
        const float *split_o = p.split_o + first * p.splits * D, *split_lse = p.split_lse + first * p.splits;

        float largest = -INFINITY;
        for (int split = 0; split < p.splits; split++)
            largest = fmaxf(largest, split_lse[split]);
        const float base = largest == -INFINITY ? 0.0f : largest; // no key at all: -inf - -inf would be NaN
        float sum = 0.0f, merged[COLS] = {};
        for (int split = 0; split < p.splits; split++) {
            const float weight = __expf(split_lse[split] - base);
            sum += weight;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                merged[i] += weight * split_o[split * D + lane + 32 * i];
        }
        const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f; // a row without any key gives zero
        const float lse = sum > 0.0f ? base + __logf(sum) : -INFINITY;
        T out[COLS];
#pragma unroll
        for (int i = 0; i < COLS; i++)
            from_float(out[i], merged[i] * inverse);
        T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row;
#pragma unroll
        for (int i = 0; i < COLS; i++)
            o[lane + 32 * i] = out[i];
        if (lane == 0)
            p.lse[first] = lse;
        ASC_RECORD(o, 0, i, COLS, row, lane + 32 * i, out[i]);
        if (lane == 0)
            ASC_RECORD_ROW(lse, 0, row, true, lse);
    }
}

int64_t rows_of(const asc_problem *problem)
{
    return static_cast<int64_t>(problem->batch) * problem->heads * problem->q_len;
}

// Two at least: there is always something to merge.
int splits_of(const asc_problem *problem)
{
    const int64_t blocks = static_cast<int64_t>(problem->batch) * problem->heads * ((problem->q_len - 1) / BR + 1);
    const int64_t tiles = (problem->kv_len - 1) / BC + 1, wanted = (ENOUGH - 1) / blocks + 1;
    const int64_t most = tiles < MOST_SPLITS ? tiles : MOST_SPLITS, splits = wanted < most ? wanted : most;
    return static_cast<int>(splits > 2 ? splits : 2);
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    const char *refused = plan_tiles(problem, plan, BR, BC, THREADS);
    if (refused)
        return refused;
    plan->kv_splits = splits_of(problem);
    plan->workspace_bytes =
        static_cast<uint64_t>(rows_of(problem)) * plan->kv_splits * (problem->head_dim + 1) * sizeof(float);
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    return NULL;
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        using T = decltype(type);
        constexpr int D = head_dim;
        auto p = params_of<SplitParams<T>>(problem);
        p.splits = splits_of(problem);
        p.split_tiles = asc_split_tiles((problem->kv_len - 1) / BC + 1, p.splits);
        p.split_o = static_cast<float *>(problem->workspace);
        p.split_lse = p.split_o + rows_of(problem) * p.splits * D;

        const size_t shared = (BR + 2 * BC) * (D + 2) * sizeof(T) + WARPS * BC * sizeof(float);
        const dim3 q_tiles = grid_of(problem, BR), blocks(q_tiles.x * p.splits, q_tiles.y, q_tiles.z);
        const char *failed = ASC_LAUNCH((split_kv<T, D>), blocks, THREADS, shared, stream, p);
        return failed ? failed : ASC_LAUNCH((merge_splits<T, D>), q_tiles, THREADS, 0, stream, p);
    });
}

} // namespace

ASC_KERNEL(split_kv)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
