// block_scales: K and V, and Q where it is too, as codes with a scale for each block of a head: scale_rows rows of it
// by scale_dims elements of each. A scale for each page, each token, 16 elements of a row or the whole head are the
// same code: it asks where the scale of an element stands, element by element. Sequences have lengths of their own, and
// keys lie one behind the other or in pages; scales go by the row of the sequence, wherever its page is. New keys come
// as codes too, and are appended to the cache as they are: each block writes all of its kv head before it reads any.
//
// A block is 8 warps on one 32-row q tile, four rows a warp, a key a lane. Codes become f16 values as they come into
// shared memory; from there on it is v2b_scalar in small.
//
// Shared memory in bytes, head_dim 128: q, k and v [32][130] f16, 24960; m, l [32] and the weights of a row for each
// warp, f32, 1280.
//
// Known to be bad at: speed, as nothing is loaded by more than an element, and each element looks its scale up.

#include "ladder.cuh"

#include <cuda_fp8.h>
#include <limits.h>

namespace
{

using namespace ladder;

constexpr int BR = 32, BC = 32, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS, D_MOST = 128,
              LD = D_MOST + 2, COLS = D_MOST / 32;

// Q, K or V.
struct Tensor {
    const void *data;
    asc_strides strides;
    int type, cols;
    const float *scales; // [batch][heads][groups][parts]; NULL where the elements are values
    int heads, groups, parts, scale_rows, scale_dims;
};

struct Problem {
    Tensor q, k, v;
    __half *o;
    asc_strides o_strides;
    float *lse;
    const int32_t *q_lens, *kv_lens, *cu_seqlens_q, *cu_seqlens_k, *page_table;
    int group, q_len, kv_len, page_size, table_pages, causal;
    float scale;
    const int32_t *cache_lens; // NULL: there is nothing to append
    const uint8_t *k_new, *v_new;
    asc_strides k_new_strides, v_new_strides;
};

// What a code is worth before its scale.
__device__ float decode(int type, uint8_t code)
{
    switch (type) {
    case ASC_U8:
        return static_cast<float>(code - ASC_U8_MIDPOINT);
    case ASC_S8:
        return static_cast<float>(static_cast<int8_t>(code));
    case ASC_E5M2:
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E5M2)));
    default:
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
    }
}

// One head of one sequence of a tensor.
struct Rows {
    const Tensor *of;
    int64_t first, page_stride;
    const float *scales;
    const int32_t *pages; // NULL: one row behind the other
    int page_size;

    __device__ int64_t begin(int row) const
    {
        return pages ? first + pages[row / page_size] * page_stride + row % page_size * of->strides.row
                     : first + row * of->strides.row;
    }

    __device__ float operator()(int row, int d) const
    {
        const int64_t at = begin(row);
        if (of->type == ASC_F16)
            return __half2float(static_cast<const __half *>(of->data)[at + d]);
        const float value = decode(of->type, static_cast<const uint8_t *>(of->data)[at + d]);
        return value * scales[row / of->scale_rows * of->parts + d / of->scale_dims];
    }
};

__device__ Rows rows_of(const Tensor &of, int batch, int head, const int32_t *cu_seqlens, const int32_t *pages,
                        int page_size)
{
    Rows rows = {&of, head * of.strides.head, of.strides.batch, nullptr, pages, page_size};
    if (!pages)
        rows.first += cu_seqlens ? cu_seqlens[batch] * of.strides.row : batch * of.strides.batch;
    if (of.scales)
        rows.scales = of.scales + (static_cast<int64_t>(batch) * of.heads + head) * of.groups * of.parts;
    return rows;
}

// Rows first .. first + 31 into shared memory; rows beyond `rows` become zero.
__device__ void load_tile(__half *tile, const Rows &from, int first, int rows)
{
    for (int i = threadIdx.x; i < 32 * from.of->cols; i += THREADS) {
        const int r = i / from.of->cols, d = i % from.of->cols;
        tile[r * LD + d] = __float2half(first + r < rows ? from(first + r, d) : 0.0f);
    }
}

// New keys, which follow key `old` - 1, or their values into the cache.
__device__ void append(const Rows &to, const uint8_t *from, const asc_strides &strides, int batch, int kv_head, int old,
                       int end)
{
    uint8_t *cache = static_cast<uint8_t *>(const_cast<void *>(to.of->data));
    from += batch * strides.batch + kv_head * strides.head;
    for (int i = threadIdx.x; i < (end - old) * to.of->cols; i += THREADS) {
        const int row = i / to.of->cols, d = i % to.of->cols;
        cache[to.begin(old + row) + d] = from[row * strides.row + d];
    }
}

__global__ void __launch_bounds__(THREADS) block_scales(Problem p)
{
    __shared__ __half sq[BR * LD], sk[BC * LD], sv[BC * LD];
    __shared__ float sp[WARPS][BC], sm[BR], sl[BR];

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, cols = p.v.cols / 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int q_len = p.q_lens ? p.q_lens[batch] : p.q_len, kv_len = p.kv_lens ? p.kv_lens[batch] : p.kv_len;
    if (q_tile * BR >= q_len)
        return;
    const int reach = p.causal == ASC_CAUSAL_NONE ? kv_len : p.causal == ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len;
    const int32_t *pages = p.page_table ? p.page_table + batch * p.table_pages : nullptr;
    const Rows q = rows_of(p.q, batch, head, p.cu_seqlens_q, nullptr, 0);
    const Rows k = rows_of(p.k, batch, head / p.group, p.cu_seqlens_k, pages, p.page_size);
    const Rows v = rows_of(p.v, batch, head / p.group, p.cu_seqlens_k, pages, p.page_size);
    ASC_AT(batch, head, q_tile);

    if (p.cache_lens) {
        append(k, p.k_new, p.k_new_strides, batch, head / p.group, p.cache_lens[batch], kv_len);
        append(v, p.v_new, p.v_new_strides, batch, head / p.group, p.cache_lens[batch], kv_len);
    }
    load_tile(sq, q, q_tile * BR, q_len);
    if (threadIdx.x < BR) {
        sm[threadIdx.x] = -INFINITY;
        sl[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, p.q.cols, sq[r * LD + c]);

    float u[ROWS_PER_WARP][COLS] = {};
    // Tiles beyond the reach of the tile's last row hold nothing for anybody.
    const int keys = min(kv_len, min(q_tile * BR + BR, q_len) + reach);
    for (int kt = 0; kt * BC < keys; kt++) {
        load_tile(sk, k, kt * BC, kv_len);
        load_tile(sv, v, kt * BC, kv_len);
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, p.k.cols, sk[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, p.v.cols, sv[r * LD + c]);

#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            const int row = warp * ROWS_PER_WARP + r, key = kt * BC + lane;
            float s = 0.0f;
            for (int d = 0; d < p.q.cols; d++)
                s += __half2float(sq[row * LD + d]) * __half2float(sk[lane * LD + d]);
            s *= p.scale;
            if (key >= kv_len || key > q_tile * BR + row + reach)
                s = -INFINITY;
            ASC_RECORD(s, kt, i, 1, row, lane, s);

            const float m_prev = sm[row];
            float m = fmaxf(m_prev, warp_max(s));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m);
            const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
            float alpha = __expf(m_prev - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
            float w = __expf(s - base);
            ASC_RECORD(p, kt, i, 1, row, lane, w);
            float l = sl[row] * alpha + warp_sum(w);
            ASC_RECORD_ROW(l, kt, row, lane == 0, l);
            sp[warp][lane] = w;
            __syncwarp(); // every lane has read m_prev and l_prev, and the row's weights are there
            if (lane == 0) {
                sm[row] = m;
                sl[row] = l;
            }
#pragma unroll
            for (int i = 0; i < COLS; i++) {
                if (i < cols) {
                    u[r][i] *= alpha;
                    for (int c = 0; c < BC; c++)
                        u[r][i] += sp[warp][c] * __half2float(sv[c * LD + lane + 32 * i]);
                }
            }
            ASC_RECORD(u, kt, i, cols, row, lane + 32 * i, u[r][i]);
            __syncwarp(); // the next row overwrites the weights
        }
        __syncthreads(); // the next tile overwrites K and V
    }

#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        const int row = warp * ROWS_PER_WARP + r, global_row = q_tile * BR + row;
        const float l = sl[row], inverse = l > 0.0f ? 1.0f / l : 0.0f; // a row without any key gives zero
        const float lse = l > 0.0f ? sm[row] + __logf(l) : -INFINITY;
        const int64_t first = p.cu_seqlens_q ? p.cu_seqlens_q[batch] * p.o_strides.row : batch * p.o_strides.batch;
        __half *o = p.o + first + head * p.o_strides.head + global_row * p.o_strides.row;
        __half out[COLS];
        if (global_row >= q_len)
            continue;
#pragma unroll
        for (int i = 0; i < COLS; i++) {
            out[i] = __float2half(u[r][i] * inverse);
            if (i < cols)
                o[lane + 32 * i] = out[i];
        }
        if (lane == 0)
            p.lse[(static_cast<int64_t>(batch) * p.q.heads + head) * p.q_len + global_row] = lse;
        ASC_RECORD(o, 0, i, cols, row, lane + 32 * i, out[i]);
        if (lane == 0)
            ASC_RECORD_ROW(lse, 0, row, true, lse);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->br = BR;
    plan->bc = BC;
    plan->threads = THREADS;
    if (problem->head_dim > D_MOST || problem->head_dim_v > D_MOST || problem->head_dim_v % 32)
        return "head_dim must be up to 128, head_dim_v a multiple of 32 up to 128";
    if (problem->heads > 65535 || problem->batch > 65535)
        return "batch and heads are grid dimensions y and z: at most 65535 each";
    if (problem->window_left >= 0 || problem->window_right >= 0 || problem->softcap != 0)
        return "there is no sliding window and no soft cap in this kernel";
    return NULL;
}

Tensor tensor_of(const asc_problem *problem, const void *data, const asc_strides &strides, int type,
                 const float *scales, int heads, int rows, int cols)
{
    return {data,
            strides,
            type,
            cols,
            scales,
            heads,
            asc_scale_groups(problem, rows),
            asc_scale_parts(problem, cols),
            problem->scale_rows > 0 ? problem->scale_rows : INT_MAX,
            problem->scale_dims > 0 ? problem->scale_dims : INT_MAX};
}

const char *launch(const asc_problem *problem, void *stream)
{
    const asc_problem &p = *problem;
    const Problem all = {tensor_of(problem, p.q, p.q_strides, p.dtype, p.q_scale, p.heads, p.q_len, p.head_dim),
                         tensor_of(problem, p.k, p.k_strides, p.k_dtype, p.k_scale, p.kv_heads, p.kv_len, p.head_dim),
                         tensor_of(problem, p.v, p.v_strides, p.v_dtype, p.v_scale, p.kv_heads, p.kv_len, p.head_dim_v),
                         static_cast<__half *>(p.o),
                         p.o_strides,
                         p.lse,
                         p.q_lens,
                         p.kv_lens,
                         p.cu_seqlens_q,
                         p.cu_seqlens_k,
                         p.page_table,
                         p.heads / p.kv_heads,
                         p.q_len,
                         p.kv_len,
                         p.page_size,
                         asc_table_pages(problem),
                         p.causal,
                         p.scale,
                         p.cache_lens,
                         static_cast<const uint8_t *>(p.k_new),
                         static_cast<const uint8_t *>(p.v_new),
                         asc_strides_of_new(problem, 0),
                         asc_strides_of_new(problem, 1)};
    return ASC_LAUNCH(block_scales, grid_of(problem, BR), THREADS, 0, stream, all);
}

} // namespace

ASC_KERNEL(block_scales)
{
    constexpr uint32_t codes = ASC_SUPPORTS(E4M3) | ASC_SUPPORTS(E5M2) | ASC_SUPPORTS(U8) | ASC_SUPPORTS(S8);
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | codes;
    kernel.k_dtypes = kernel.v_dtypes = codes;
    kernel.o_dtype = ASC_F16;
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.sequences = ASC_SUPPORTS(Q_LENS) | ASC_SUPPORTS(KV_LENS) | ASC_SUPPORTS(PAGES) | ASC_SUPPORTS(NEW_KEYS);
    kernel.tensors = ASC_SUPPORTS(HEAD_DIM_V) | ASC_SUPPORTS(SCALE_DIMS);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
