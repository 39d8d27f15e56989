// micro_scales: K and V, and Q where it is too, as codes of the microscaling formats: e2m1, two in a byte, with a scale
// of e4m3 for each 16 elements of a row and one f32 for the tensor (NVFP4), or e2m1, e4m3 and e5m2 with a scale of
// e8m0, a power of two, for each 32 (MXFP4, MXFP8). Other blocks and f32 scales are the same code. Keys lie one behind
// the other or in pages; scales go by the row of the sequence, wherever its page is.
//
// A block is 8 warps on one 32-row q tile, four rows a warp, a key a lane, as in block_scales. Codes become f16 values
// as they come into shared memory.
//
// Shared memory in bytes, head_dim 128: q, k and v [32][130] f16, 24960; the weights of a row for each warp, f32, 1024.
//
// Known to be bad at: speed, as nothing is loaded by more than a code, and each one looks its scale up.

#include "ladder.cuh"

#include <cuda_fp8.h>

namespace
{

using namespace ladder;

constexpr int BR = 32, BC = 32, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS, D_MOST = 128,
              LD = D_MOST + 2, COLS = D_MOST / 32;

// Q, K or V.
struct Tensor {
    const void *data;
    asc_strides strides;
    int type, heads, rows, cols;
    const float *scales; // as asc_scale_of() says, or codes of scales; both NULL where the elements are values
    const uint8_t *scale_codes;
    float tensor_scale;
};

struct Problem {
    asc_problem of;
    Tensor q, k, v;
};

__device__ float e4m3(uint8_t code)
{
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

// Sign, two bits of exponent, one of significand: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
__device__ float e2m1(int code)
{
    const int exponent = code >> 1 & 3, significand = code & 1;
    const float magnitude = exponent ? (1.0f + 0.5f * significand) * (1 << (exponent - 1)) : 0.5f * significand;
    return code & 8 ? -magnitude : magnitude;
}

// The exponent field of an f32 alone; the smallest, 2^-127, is subnormal there.
__device__ float e8m0(uint8_t code)
{
    return code == 0xFF ? __uint_as_float(0x7FC00000u)
           : code       ? __uint_as_float(code << 23)
                        : __uint_as_float(0x400000u);
}

// Element `at` of the codes of a tensor, before its scale.
__device__ float decode(const Tensor &of, int64_t at)
{
    const uint8_t *codes = static_cast<const uint8_t *>(of.data);
    if (of.type == ASC_E2M1)
        return e2m1(codes[at / 2] >> (at % 2 ? 4 : 0) & 0xF);
    if (of.type == ASC_E5M2)
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(codes[at], __NV_E5M2)));
    return e4m3(codes[at]);
}

// One head of one sequence of a tensor.
struct Rows {
    const asc_problem *p;
    const Tensor *of;
    int batch, head;
    const int32_t *cu_seqlens, *pages; // NULL: sequences are padded, and one row is behind the other

    __device__ float scale(int row, int d) const
    {
        const int64_t at = asc_scale_of(p, of->heads, of->rows, of->cols, batch, head, row, d);
        if (p->scale_type == ASC_SCALE_E4M3)
            return e4m3(of->scale_codes[at]) * of->tensor_scale;
        return p->scale_type == ASC_SCALE_E8M0 ? e8m0(of->scale_codes[at]) : of->scales[at];
    }

    __device__ float operator()(int row, int d) const
    {
        const int page = pages ? pages[row / p->page_size] : cu_seqlens ? 0 : batch;
        const int there = pages ? row % p->page_size : cu_seqlens ? cu_seqlens[batch] + row : row;
        const int64_t at = page * of->strides.batch + head * of->strides.head + there * of->strides.row;
        if (of->type == ASC_F16)
            return __half2float(static_cast<const __half *>(of->data)[at + d]);
        return decode(*of, at + d * of->strides.col) * scale(row, d);
    }
};

// Rows first .. first + 31 into shared memory; rows beyond `rows` become zero.
__device__ void load_tile(__half *tile, const Rows &from, int first, int rows)
{
    for (int i = threadIdx.x; i < 32 * from.of->cols; i += THREADS) {
        const int r = i / from.of->cols, d = i % from.of->cols;
        tile[r * LD + d] = __float2half(first + r < rows ? from(first + r, d) : 0.0f);
    }
}

__global__ void __launch_bounds__(THREADS) micro_scales(Problem problem)
{
    __shared__ __half sq[BR * LD], sk[BC * LD], sv[BC * LD];
    __shared__ float sp[WARPS][BC];

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, cols = problem.v.cols / 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const asc_problem &p = problem.of;
    const int q_len = asc_q_len(&p, batch), kv_len = asc_kv_len(&p, batch), kv_head = head / (p.heads / p.kv_heads);
    if (q_tile * BR >= q_len)
        return;
    const int reach = p.causal == ASC_CAUSAL_NONE ? kv_len : p.causal == ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len;
    const int32_t *pages = p.page_table ? p.page_table + batch * asc_table_pages(&p) : nullptr;
    const Rows q = {&p, &problem.q, batch, head, p.cu_seqlens_q, nullptr},
               k = {&p, &problem.k, batch, kv_head, p.cu_seqlens_k, pages},
               v = {&p, &problem.v, batch, kv_head, p.cu_seqlens_k, pages};
    ASC_AT(batch, head, q_tile);

    load_tile(sq, q, q_tile * BR, q_len);
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, p.head_dim, sq[r * LD + c]);

    float u[ROWS_PER_WARP][COLS] = {}, m[ROWS_PER_WARP], l[ROWS_PER_WARP] = {};
    for (int r = 0; r < ROWS_PER_WARP; r++)
        m[r] = -INFINITY;
    // Tiles beyond the reach of the tile's last row hold nothing for anybody.
    const int keys = min(kv_len, min(q_tile * BR + BR, q_len) + reach);
    for (int kt = 0; kt * BC < keys; kt++) {
        load_tile(sk, k, kt * BC, kv_len);
        load_tile(sv, v, kt * BC, kv_len);
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, p.head_dim, sk[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, p.head_dim_v, sv[r * LD + c]);

#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            const int row = warp * ROWS_PER_WARP + r, key = kt * BC + lane;
            float s = 0.0f;
            for (int d = 0; d < p.head_dim; d++)
                s += __half2float(sq[row * LD + d]) * __half2float(sk[lane * LD + d]);
            s *= p.scale;
            if (key >= kv_len || key > q_tile * BR + row + reach)
                s = -INFINITY;
            ASC_RECORD(s, kt, i, 1, row, lane, s);

            const float m_prev = m[r];
            m[r] = fmaxf(m_prev, warp_max(s));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m[r]);
            const float base = m[r] == -INFINITY ? 0.0f : m[r]; // no key yet: -inf - -inf would be NaN
            const float alpha = __expf(m_prev - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
            const float w = __expf(s - base);
            ASC_RECORD(p, kt, i, 1, row, lane, w);
            l[r] = l[r] * alpha + warp_sum(w);
            ASC_RECORD_ROW(l, kt, row, lane == 0, l[r]);
            sp[warp][lane] = w;
            __syncwarp(); // the row's weights are there
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
        const float inverse = l[r] > 0.0f ? 1.0f / l[r] : 0.0f; // a row without any key gives zero
        const float lse = l[r] > 0.0f ? m[r] + __logf(l[r]) : -INFINITY;
        const int64_t first = p.cu_seqlens_q ? p.cu_seqlens_q[batch] * p.o_strides.row : batch * p.o_strides.batch;
        __half *o = static_cast<__half *>(p.o) + first + head * p.o_strides.head + global_row * p.o_strides.row;
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
            p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + global_row] = lse;
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

const char *launch(const asc_problem *p, void *stream)
{
    const int D = p->head_dim, Dv = p->head_dim_v;
    const Problem all = {
        *p,
        {p->q, p->q_strides, p->dtype, p->heads, p->q_len, D, p->q_scale, p->q_scale_code, p->q_tensor_scale},
        {p->k, p->k_strides, p->k_dtype, p->kv_heads, p->kv_len, D, p->k_scale, p->k_scale_code, p->k_tensor_scale},
        {p->v, p->v_strides, p->v_dtype, p->kv_heads, p->kv_len, Dv, p->v_scale, p->v_scale_code, p->v_tensor_scale}};
    return ASC_LAUNCH(micro_scales, grid_of(p, BR), THREADS, 0, stream, all);
}

} // namespace

ASC_KERNEL(micro_scales)
{
    constexpr uint32_t codes = ASC_SUPPORTS(E2M1) | ASC_SUPPORTS(E4M3) | ASC_SUPPORTS(E5M2);
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | codes;
    kernel.k_dtypes = kernel.v_dtypes = codes;
    kernel.o_dtype = ASC_F16;
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.sequences = ASC_SUPPORTS(Q_LENS) | ASC_SUPPORTS(KV_LENS) | ASC_SUPPORTS(PAGES);
    kernel.tensors = ASC_SUPPORTS(HEAD_DIM_V) | ASC_SUPPORTS(SCALE_DIMS) | ASC_SUPPORTS(SCALE_TYPES) |
                     ASC_SUPPORTS(STRIDES) | ASC_SUPPORTS(TRANSPOSED_V);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
