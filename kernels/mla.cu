// mla: varlen_paged with rows of K that are longer than those of V, up to 576 and 512 elements: 192 and 128 of
// DeepSeek's prefill, or its decode, where V is no array of its own but the first 512 elements of each row of K, the
// latent, and all heads read the one kv head. A row of Q or K is too long for registers or for a tile of 64 in shared
// memory, so a tile has 16 queries and 16 keys; V that lies in K is read where K's tile is, and loaded once.
//
// Rows lie where the problem's strides say: padded, in one array with Q, with V transposed; keys may lie behind a left
// padding.
//
// A block is 4 warps on one 16-row q tile, 4 rows a warp. A lane has every 32nd column of U in registers, 16 at most.
//
// Limits: speed, as varlen_paged, and Q is read again for each head of the group.

#include "ladder.cuh"

namespace
{

using namespace ladder;

constexpr int BR = 16, BC = 16, WARPS = 4, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;
constexpr int DIM_MOST = 576, DIM_V_MOST = 512, COLS = DIM_V_MOST / 32;

template <class T> struct Latent {
    Params<T> p; /* kv_strides: of K */
    asc_strides v_strides, o_strides;
    const int32_t *q_lens, *kv_lens, *cu_seqlens_q, *cu_seqlens_k, *page_table, *leftpad_k;
    int page_size, table_pages, causal, dim, dim_v;
    bool v_in_k;
};

// Where the first row of a sequence begins, but for its head; with pages, where all do.
__device__ int64_t begin_of(const int32_t *cu_seqlens, const int32_t *pages, const asc_strides &strides, int batch)
{
    return pages ? 0 : cu_seqlens ? cu_seqlens[batch] * strides.row : batch * strides.batch;
}

// Row i of a head that begins at `first`.
__device__ int64_t row_at(const asc_strides &strides, const int32_t *pages, int page_size, int64_t first, int i)
{
    return pages ? first + pages[i / page_size] * strides.batch + i % page_size * strides.row : first + i * strides.row;
}

// Rows first .. first + 15 of `dim` elements into shared memory, two behind each; rows beyond `rows` become zero.
template <class T, class Row> __device__ void load_tile(T *tile, int dim, int first, int rows, int64_t col, Row row)
{
    for (int i = threadIdx.x; i < 16 * dim; i += THREADS) {
        const int r = i / dim, d = i % dim;
        T x;
        from_float(x, 0.0f);
        if (first + r < rows)
            x = row(first + r)[d * col];
        tile[r * (dim + 2) + d] = x;
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) mla(Latent<T> x)
{
    const Params<T> &p = x.p;
    const int D = x.dim, DV = x.dim_v, LD = D + 2, LDV = x.v_in_k ? LD : DV + 2, cols = DV / 32;
    extern __shared__ __align__(16) unsigned char shared[];
    T *sq = reinterpret_cast<T *>(shared), *sk = sq + BR * LD, *sv = x.v_in_k ? sk : sk + BC * LD;
    float *sp = reinterpret_cast<float *>(x.v_in_k ? sk + BC * LD : sv + BC * LDV), *sm = sp + WARPS * BC,
          *sl = sm + BR;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int q_len = x.q_lens ? x.q_lens[batch] : p.q_len, kv_len = x.kv_lens ? x.kv_lens[batch] : p.kv_len;
    if (q_tile * BR >= q_len)
        return;
    const int reach = x.causal == ASC_CAUSAL_NONE ? kv_len : x.causal == ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len;
    const int32_t *pages = x.page_table ? x.page_table + batch * x.table_pages : nullptr;
    const int64_t kv_head = head / p.group;
    const T *q = p.q + begin_of(x.cu_seqlens_q, nullptr, p.q_strides, batch) + head * p.q_strides.head;
    T *o = p.o + begin_of(x.cu_seqlens_q, nullptr, x.o_strides, batch) + head * x.o_strides.head;
    const int64_t pad = x.leftpad_k ? x.leftpad_k[batch] : 0;
    const int64_t k_first =
        begin_of(x.cu_seqlens_k, pages, p.kv_strides, batch) + kv_head * p.kv_strides.head + pad * p.kv_strides.row;
    const int64_t v_first =
        begin_of(x.cu_seqlens_k, pages, x.v_strides, batch) + kv_head * x.v_strides.head + pad * x.v_strides.row;
    ASC_AT(batch, head, q_tile);

    load_tile(sq, D, q_tile * BR, q_len, 1, [&](int i) { return q + i * p.q_strides.row; });
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
    const int last_row = min(q_tile * BR + BR, q_len) - 1;
    const int keys = min(kv_len, last_row + reach + 1);
    for (int kt = 0; kt * BC < keys; kt++) {
        load_tile(sk, D, kt * BC, kv_len, 1,
                  [&](int i) { return p.k + row_at(p.kv_strides, pages, x.page_size, k_first, i); });
        if (!x.v_in_k)
            load_tile(sv, DV, kt * BC, kv_len, x.v_strides.col,
                      [&](int i) { return p.v + row_at(x.v_strides, pages, x.page_size, v_first, i); });
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, DV, sv[r * LDV + c]);

#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            const int row = warp * ROWS_PER_WARP + r, half = lane / BC, col = lane % BC, key = kt * BC + col;
            float s = 0.0f; // half of the products in each half of the warp
            for (int d = half; d < D; d += 2)
                s += to_float(sq[row * LD + d]) * to_float(sk[col * LD + d]);
            s = (s + __shfl_xor_sync(0xffffffffu, s, BC)) * p.scale;
            if (key >= kv_len || key > q_tile * BR + row + reach)
                s = -INFINITY;
            ASC_RECORD(s, kt, i, 1, row, col, s);

            const float m_prev = sm[row], m = fmaxf(m_prev, warp_max(s));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m);
            const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
            const float alpha = __expf(m_prev - base), w = __expf(s - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
            ASC_RECORD(p, kt, i, 1, row, col, w);
            const float l = sl[row] * alpha + warp_sum(half ? 0.0f : w);
            ASC_RECORD_ROW(l, kt, row, lane == 0, l);
            if (!half)
                sp[warp * BC + col] = w;
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
                    if (i < cols)
                        u[r][i] += weight * to_float(sv[c * LDV + lane + 32 * i]);
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
        if (global_row >= q_len)
            continue;
        T out[COLS];
#pragma unroll
        for (int i = 0; i < COLS; i++) {
            from_float(out[i], u[r][i] * inverse);
            if (i < cols)
                o[global_row * x.o_strides.row + lane + 32 * i] = out[i];
        }
        ASC_RECORD(o, 0, i, cols, row, lane + 32 * i, out[i]);
        if (lane == 0) {
            p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + global_row] = lse;
            ASC_RECORD_ROW(lse, 0, row, true, lse);
        }
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->br = BR;
    plan->bc = BC;
    plan->threads = THREADS;
    if (problem->head_dim % 2 || problem->head_dim > DIM_MOST)
        return "head_dim must be even, and at most 576";
    if (problem->head_dim_v % 32 || problem->head_dim_v > DIM_V_MOST)
        return "head_dim_v must be a multiple of 32, and at most 512";
    if (problem->heads > 65535 || problem->batch > 65535)
        return "batch and heads are grid dimensions y and z: at most 65535 each";
    if (problem->window_left >= 0 || problem->window_right >= 0 || problem->softcap != 0)
        return "there is no sliding window and no soft cap in this kernel";
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    return NULL;
}

template <class T> const char *launch_of(const asc_problem *problem, void *stream)
{
    Latent<T> x = {};
    x.p = params_of<Params<T>>(problem);
    x.p.q_strides = problem->q_strides;
    x.p.kv_strides = problem->k_strides;
    x.v_strides = problem->v_strides;
    x.o_strides = problem->o_strides;
    x.leftpad_k = problem->leftpad_k;
    x.q_lens = problem->q_lens;
    x.kv_lens = problem->kv_lens;
    x.cu_seqlens_q = problem->cu_seqlens_q;
    x.cu_seqlens_k = problem->cu_seqlens_k;
    x.page_table = problem->page_table;
    x.page_size = problem->page_size;
    x.table_pages = asc_table_pages(problem);
    x.causal = problem->causal;
    x.dim = problem->head_dim;
    x.dim_v = problem->head_dim_v;
    x.v_in_k = problem->v_in_k;
    const size_t rows = (BR + BC) * (x.dim + 2) + (x.v_in_k ? 0 : BC * (x.dim_v + 2));
    return ASC_LAUNCH(mla<T>, grid_of(problem, BR), THREADS, rows * sizeof(T) + (WARPS * BC + 2 * BR) * sizeof(float),
                      stream, x);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return problem->dtype == ASC_F16 ? launch_of<__half>(problem, stream) : launch_of<__nv_bfloat16>(problem, stream);
}

} // namespace

ASC_KERNEL(mla)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.sequences = ASC_SUPPORTS(Q_LENS) | ASC_SUPPORTS(KV_LENS) | ASC_SUPPORTS(PAGES) | ASC_SUPPORTS(LEFT_PAD);
    kernel.tensors =
        ASC_SUPPORTS(HEAD_DIM_V) | ASC_SUPPORTS(V_IN_K) | ASC_SUPPORTS(STRIDES) | ASC_SUPPORTS(TRANSPOSED_V);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
