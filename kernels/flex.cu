// flex: v2b_scalar with a mask of any shape and a formula of the score, as FlexAttention makes them. The mask comes as
// bytes, one for each query and key; a kv tile of which no row of the block sees a key is left out. The formulas of the
// score stand in the code, as a compiler would have put them there: a problem with another one is declined. An
// attention bias is added behind them.
//
// A block is 8 warps on one 64-row q tile.
//
// Limits: speed, as v2b_scalar. Every byte of the mask is read twice: once to see whether the tile is empty.

#include "ladder.cuh"
#include <string.h>

namespace
{

using namespace ladder;

constexpr int BR = 64, BC = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;

// The formulas as shape.score_mod says them; the place of one in this list is its number.
const char *const formulas[] = {"", "s - 0.1 * abs(i - j)", "tanh(s / 20) * 20", "j < 64 ? s : s * 0.5",
                                "h % 2 == 0 ? s : max(s, 0) - log(1 + exp(-abs(s)))"};

__device__ float score_mod(int formula, float s, int h, int i, int j)
{
    switch (formula) {
    case 1:
        return s - 0.1f * abs(i - j);
    case 2:
        return tanhf(s / 20.0f) * 20.0f;
    case 3:
        return j < 64 ? s : s * 0.5f;
    case 4:
        return h % 2 == 0 ? s : fmaxf(s, 0.0f) - __logf(1.0f + __expf(-fabsf(s)));
    default:
        return s;
    }
}

struct Mask {
    const uint8_t *first; // NULL: there is none
    asc_strides stride;
    int formula;
    const float *bias; // NULL: there is none
    asc_strides by;

    __device__ const uint8_t *of(int batch, int head) const
    {
        return first ? first + batch * stride.batch + head * stride.head : nullptr;
    }
};

// Whether a query sees a key.
template <class T> __device__ bool sees(const Params<T> &p, const Mask &of, const uint8_t *mask, int i, int j)
{
    return i < p.q_len && j < p.seen(i) && (!mask || mask[i * of.stride.row + j]);
}

// Whether any row of the block sees any key of the tile.
template <class T>
__device__ bool tile_is_seen(const Params<T> &p, const Mask &of, const uint8_t *mask, int q_tile, int kt)
{
    bool seen = false;
    for (int i = threadIdx.x; i < BR * BC; i += THREADS)
        seen = seen || sees(p, of, mask, q_tile * BR + i / BC, kt * BC + i % BC);
    return __syncthreads_or(seen) != 0;
}

// Rows first .. first + 63 into shared memory; rows beyond `rows` become zero.
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

template <class T, int D> __global__ void __launch_bounds__(THREADS) flex(Params<T> p, Mask of)
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
    const uint8_t *mask = of.of(batch, head);
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

    for (int kt = 0; kt * BC < p.keys(q_tile, BR); kt++) {
        if (mask && !tile_is_seen(p, of, mask, q_tile, kt))
            continue;
        load_tile<T, D>(sk, k, p.kv_strides.row, kt * BC, p.kv_len);
        load_tile<T, D>(sv, v, p.kv_strides.row, kt * BC, p.kv_len);
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * LD + c]);

#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            const int row = warp * ROWS_PER_WARP + r, i = q_tile * BR + row;
            float s[2] = {0.0f, 0.0f};
            for (int d = 0; d < D; d++) {
                const float x = to_float(sq[row * LD + d]);
                s[0] += x * to_float(sk[lane * LD + d]);
                s[1] += x * to_float(sk[(lane + 32) * LD + d]);
            }
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int j = kt * BC + lane + 32 * c;
                s[c] = score_mod(of.formula, s[c] * p.scale, head, i, j);
                if (of.bias && i < p.q_len && j < p.kv_len)
                    s[c] += of.bias[batch * of.by.batch + head * of.by.head + i * of.by.row + j];
                if (!sees(p, of, mask, i, j))
                    s[c] = -INFINITY;
            }
            ASC_RECORD(s, kt, c, 2, row, lane + 32 * c, s[c]);

            const float m_prev = sm[row];
            float m = fmaxf(m_prev, warp_max(fmaxf(s[0], s[1])));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m);
            const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
            float alpha = __expf(m_prev - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
            float w[2] = {__expf(s[0] - base), __expf(s[1] - base)};
            ASC_RECORD(p, kt, c, 2, row, lane + 32 * c, w[c]);
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
            for (int c = 0; c < COLS; c++)
                u[r][c] *= alpha;
            for (int key = 0; key < BC; key++) {
                const float weight = sp[warp * BC + key];
#pragma unroll
                for (int c = 0; c < COLS; c++)
                    u[r][c] += weight * to_float(sv[key * LD + lane + 32 * c]);
            }
            ASC_RECORD(u, kt, c, COLS, row, lane + 32 * c, u[r][c]);
            __syncwarp(); // the next row overwrites the weights
        }
        __syncthreads(); // the next tile overwrites K and V
    }

#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        const int row = warp * ROWS_PER_WARP + r, i = q_tile * BR + row;
        const float l = sl[row], inverse = l > 0.0f ? 1.0f / l : 0.0f; // a row without any key gives zero
        const float lse = l > 0.0f ? sm[row] + __logf(l) : -INFINITY;
        T out[COLS];
#pragma unroll
        for (int c = 0; c < COLS; c++)
            from_float(out[c], u[r][c] * inverse);
        if (i < p.q_len) {
            T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + i * p.q_strides.row;
#pragma unroll
            for (int c = 0; c < COLS; c++)
                o[lane + 32 * c] = out[c];
            if (lane == 0)
                p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + i] = lse;
            ASC_RECORD(o, 0, c, COLS, row, lane + 32 * c, out[c]);
            if (lane == 0)
                ASC_RECORD_ROW(lse, 0, row, true, lse);
        }
    }
}

int formula_of(const asc_problem *problem)
{
    for (int i = 0; i < static_cast<int>(sizeof formulas / sizeof *formulas); i++)
        if (strcmp(problem->score_mod, formulas[i]) == 0)
            return i;
    return -1;
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (formula_of(problem) < 0)
        return "this formula of the score is none of those in its code: see kernels/flex.cu";
    return plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        using T = decltype(type);
        constexpr int D = head_dim;
        const Mask mask = {problem->mask, asc_mask_strides(problem), formula_of(problem), problem->bias,
                           asc_bias_strides(problem)};
        const size_t shared = 3 * 64 * (D + 2) * sizeof(T) + (WARPS * BC + 2 * BR) * sizeof(float);
        return ASC_LAUNCH((flex<T, D>), grid_of(problem, BR), THREADS, shared, stream, params_of<Params<T>>(problem),
                          mask);
    });
}

} // namespace

ASC_KERNEL(flex)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.biases = ASC_SUPPORTS(MASK) | ASC_SUPPORTS(SCORE_MOD) | ASC_SUPPORTS(BIAS);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
