// v2c_wmma: v2c_wmma_qk with P V on tensor cores as well. U stays in accumulator fragments from the first kv tile to
// the last, so that the rescaling by alpha has to know which row each of its elements is of. CUDA does not tell; a
// fragment that is loaded from a tile of indices, each element its own place, does.
//
// A block is 4 warps on one 64-row q tile, a kv tile has 64 keys; a warp owns 16 rows. Scores are those of v2c_wmma_qk,
// from wmma.cuh. Weights are rounded to the type of V and stored over them, from where they are loaded as fragments.
//
// Shared memory in bytes, head_dim 64 / 128 (paddings as in v2c_wmma_qk, now for V and P too):
//     k   [2][64][D + 8] T    18432   34816
//     v   [2][64][D + 8] T    18432   34816
//     q   [64][D + 8] T        9216   17408     gone before the first scores come
//     s   [64][72] f32        18432   18432     in the place of q; p [64][72] T and at the end u in that of s
//                             55296   88064
//
// Limits: the way through shared memory, twice for each tile (S there and back as f32, P once more), which
// mma.sync with its known layout needs not at all.

#include "wmma.cuh"

namespace
{

using namespace ladder;

constexpr int THREADS = 128;

template <class T, int D, bool asc_probed> __global__ void __launch_bounds__(THREADS) v2c_wmma(Params<T> p)
{
    using L = Scores<T, D>;
    constexpr int LD = L::LD, TILE = L::TILE, LDS = L::LDS;
    extern __shared__ __align__(128) unsigned char shared[];
    T *k_stages = reinterpret_cast<T *>(shared), *v_stages = k_stages + 2 * TILE, *sq = v_stages + 2 * TILE;

    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    const int keys = p.keys(q_tile, BR);

    copy_tile<T, D, LD, BR, THREADS>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
    __pipeline_commit();
    if (keys > 0) {
        copy_tile<T, D, LD, BC, THREADS>(k_stages, k, p.kv_strides.row, 0, p.kv_len, p.aligned);
        copy_tile<T, D, LD, BC, THREADS>(v_stages, v, p.kv_strides.row, 0, p.kv_len, p.aligned);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * LD + c]);

    L own(sq);
    __syncthreads(); // from here on the place of Q belongs to the scores
    own.begin(sq);
    float *strip = own.scores;                 // [16][LDS], this warp's scores
    T *weights = reinterpret_cast<T *>(strip); // [16][LDS]
    const int row = own.row % 16, half = own.half;
    float m = -INFINITY, l = 0.0f;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> map, u[D / 16];
    for (int e = threadIdx.x % 32; e < 256; e += 32)
        strip[e] = static_cast<float>(e / 16 * 32 + e % 16); // row * 32 + column
    __syncwarp();
    wmma::load_matrix_sync(map, strip, 16, wmma::mem_row_major);
#pragma unroll
    for (int j = 0; j < D / 16; j++)
        wmma::fill_fragment(u[j], 0.0f);

    for (int kt = 0; kt * BC < keys; kt++) {
        T *sk = k_stages + kt % 2 * TILE, *sv = v_stages + kt % 2 * TILE;
        if ((kt + 1) * BC < keys) {
            const int other = (kt + 1) % 2, first = (kt + 1) * BC;
            copy_tile<T, D, LD, BC, THREADS>(k_stages + other * TILE, k, p.kv_strides.row, first, p.kv_len, p.aligned);
            copy_tile<T, D, LD, BC, THREADS>(v_stages + other * TILE, v, p.kv_strides.row, first, p.kv_len, p.aligned);
        }
        __pipeline_commit();      // of nothing, behind the last tile
        __pipeline_wait_prior(1); // this tile is there, the next one may be under way
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * LD + c]);

        float s[32];
        const int seen = p.seen(q_tile * BR + own.row) - kt * BC;
        own.multiply(s, sk, p.scale, seen);
        ASC_RECORD(s, kt, i, 32, own.row, own.key(i), s[i]);

        const float m_prev = m, largest = largest_of(s);
        m = fmaxf(m, fmaxf(largest, other_lane(largest)));
        ASC_RECORD_ROW(m, kt, own.row, half == 0, m);
        const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
        float alpha = __expf(m_prev - base);
        ASC_RECORD_ROW(alpha, kt, own.row, half == 0, alpha);
#pragma unroll
        for (int e = 0; e < 32; e++)
            s[e] = __expf(s[e] - base);
        ASC_RECORD(p, kt, i, 32, own.row, own.key(i), s[i]);
        const float sum = sum_of(s);
        l = l * alpha + sum + other_lane(sum);
        ASC_RECORD_ROW(l, kt, own.row, half == 0, l);
        __syncwarp(); // all scores of the strip have been read
#pragma unroll
        for (int e = 0; e < 32; e++)
            from_float(weights[row * LDS + own.key(e)], s[e]);
        __syncwarp();

#pragma unroll
        for (int e = 0; e < map.num_elements; e++) {
            const float factor = __shfl_sync(0xffffffffu, alpha, static_cast<int>(map.x[e]) / 32 * 2);
#pragma unroll
            for (int j = 0; j < D / 16; j++)
                u[j].x[e] *= factor;
        }
#pragma unroll
        for (int n = 0; n < BC / 16; n++) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fp;
            wmma::load_matrix_sync(fp, weights + n * 16, LDS);
#pragma unroll
            for (int j = 0; j < D / 16; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> fv;
                wmma::load_matrix_sync(fv, sv + n * 16 * LD + j * 16, LD);
                wmma::mma_sync(u[j], fp, fv, u[j]);
            }
        }
        ASC_RECORD_FRAGMENT(u, kt, own.row / 16 * 16, 0, u);
        __syncthreads(); // the tile after the next is copied into this stage
    }

    const float inverse = l > 0.0f ? 1.0f / l : 0.0f; // a row without any key gives zero
    if (half == 0 && q_tile * BR + own.row < p.q_len) {
        float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + q_tile * BR + own.row] = lse;
        ASC_RECORD_ROW(lse, 0, own.row, true, lse);
    }
#pragma unroll
    for (int e = 0; e < map.num_elements; e++) {
        const float factor = __shfl_sync(0xffffffffu, inverse, static_cast<int>(map.x[e]) / 32 * 2);
#pragma unroll
        for (int j = 0; j < D / 16; j++)
            u[j].x[e] *= factor;
    }
    const int global_row = q_tile * BR + own.row;
    T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row;
#pragma unroll
    for (int side = 0; side < D; side += BC) { // a row of scores has room for this many columns
        __syncwarp();
#pragma unroll
        for (int n = 0; n < BC / 16; n++)
            wmma::store_matrix_sync(strip + n * 16, u[side / 16 + n], LDS, wmma::mem_row_major);
        __syncwarp();
        if (global_row >= p.q_len)
            continue;
#pragma unroll
        for (int g = 0; g < BC / 16; g++) {
            const int col = (2 * g + half) * 8;
            __align__(16) T out[8];
#pragma unroll
            for (int e = 0; e < 8; e++)
                from_float(out[e], strip[row * LDS + col + e]);
            ASC_RECORD(o, 0, i, 8, own.row, side + col + i, out[i]);
            if (p.aligned) {
                *reinterpret_cast<uint4 *>(o + side + col) = *reinterpret_cast<const uint4 *>(out);
            } else {
                for (int e = 0; e < 8; e++)
                    o[side + col + e] = out[e];
            }
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
        constexpr size_t bytes = 4 * Scores<T, D>::TILE * sizeof(T) + Scores<T, D>::bytes;
        const auto p = params_of<Params<T>>(problem);
        return ASC_TWICE(ASC_LAUNCH((v2c_wmma<T, D, asc_probed>), grid_of(problem, BR), THREADS, bytes, stream, p));
    });
}

} // namespace

ASC_KERNEL(v2c_wmma)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = ASC_ACC_MMA;
    kernel.conventions.acc_u = ASC_ACC_MMA;
    kernel.conventions.p_rounded = ASC_P_INPUT;
    kernel.conventions.empty_lse_negative = 1;
}
