// varlen_paged: v2b_scalar for a batch as servers have it: sequences of their own lengths, one behind the other (THD,
// cu_seqlens) or padded, and keys in pages that a page table names. What it adds to v2b_scalar is where a row lies, and
// that a block asks for its sequence's lengths: everything else is as there, with the same shared memory.
//
// A block is 8 warps on one 64-row q tile. The grid is made for the longest sequence; a block behind the end of its own
// has nothing to do.
//
// Limits: speed, as v2b_scalar. A page's rows are looked up one by one.

#include "ladder.cuh"

namespace
{

using namespace ladder;

constexpr int BR = 64, BC = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;

struct Sequences {
    const int32_t *q_lens, *kv_lens, *cu_seqlens_q, *cu_seqlens_k, *page_table;
    int page_size, table_pages;
    int64_t page_stride;
    int causal;
};

// The rows of one head of one sequence.
template <class T> struct Rows {
    const T *first;
    int64_t stride;
    const int32_t *pages; // NULL: one row behind the other
    int page_size;
    int64_t page_stride;

    __device__ const T *row(int i) const
    {
        if (!pages)
            return first + i * stride;
        return first + pages[i / page_size] * page_stride + i % page_size * stride;
    }
};

// Rows first .. first + 63 into shared memory; rows beyond `rows` become zero.
template <class T, int D> __device__ void load_tile(T *tile, const Rows<T> &from, int first, int rows)
{
    for (int i = threadIdx.x; i < 64 * D; i += THREADS) {
        const int r = i / D, d = i % D;
        T x;
        from_float(x, 0.0f);
        if (first + r < rows)
            x = from.row(first + r)[d];
        tile[r * (D + 2) + d] = x;
    }
}

template <class T, int D> __global__ void __launch_bounds__(THREADS) varlen_paged(Params<T> p, Sequences of)
{
    constexpr int LD = D + 2, COLS = D / 32;
    extern __shared__ __align__(16) unsigned char shared[];
    T *sq = reinterpret_cast<T *>(shared), *sk = sq + BR * LD, *sv = sk + BC * LD;
    float *sp = reinterpret_cast<float *>(sv + BC * LD), *sm = sp + WARPS * BC, *sl = sm + BR;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int q_len = of.q_lens ? of.q_lens[batch] : p.q_len, kv_len = of.kv_lens ? of.kv_lens[batch] : p.kv_len;
    if (q_tile * BR >= q_len)
        return;
    const int reach = of.causal == ASC_CAUSAL_NONE ? kv_len : of.causal == ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len;
    const int64_t q_first = of.cu_seqlens_q ? of.cu_seqlens_q[batch] * p.q_strides.row : batch * p.q_strides.batch;
    const int64_t k_first = of.page_table     ? 0
                            : of.cu_seqlens_k ? of.cu_seqlens_k[batch] * p.kv_strides.row
                                              : batch * p.kv_strides.batch;
    const int32_t *pages = of.page_table ? of.page_table + batch * of.table_pages : nullptr;
    const int64_t k_head = k_first + head / p.group * p.kv_strides.head;
    const Rows<T> q = {p.q + q_first + head * p.q_strides.head, p.q_strides.row, nullptr, 0, 0};
    const Rows<T> k = {p.k + k_head, p.kv_strides.row, pages, of.page_size, of.page_stride};
    const Rows<T> v = {p.v + k_head, p.kv_strides.row, pages, of.page_size, of.page_stride};
    ASC_AT(batch, head, q_tile);

    load_tile<T, D>(sq, q, q_tile * BR, q_len);
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
        load_tile<T, D>(sk, k, kt * BC, kv_len);
        load_tile<T, D>(sv, v, kt * BC, kv_len);
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
                if (key >= kv_len || key > q_tile * BR + row + reach)
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
        if (global_row < q_len) {
            T *o = p.o + q_first + head * p.q_strides.head + global_row * p.q_strides.row;
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
        auto p = params_of<Params<T>>(problem);
        Sequences of = {problem->q_lens,     problem->kv_lens,   problem->cu_seqlens_q,    problem->cu_seqlens_k,
                        problem->page_table, problem->page_size, asc_table_pages(problem), 0,
                        problem->causal};
        if (problem->page_size) {
            p.kv_strides = asc_strides_of(problem, problem->kv_heads, problem->page_size);
            of.page_stride = p.kv_strides.batch;
        }
        const size_t shared = 3 * 64 * (D + 2) * sizeof(T) + (WARPS * BC + 2 * BR) * sizeof(float);
        return ASC_LAUNCH((varlen_paged<T, D>), grid_of(problem, BR), THREADS, shared, stream, p, of);
    });
}

} // namespace

ASC_KERNEL(varlen_paged)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.sequences = ASC_SUPPORTS(Q_LENS) | ASC_SUPPORTS(KV_LENS) | ASC_SUPPORTS(PAGES);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
