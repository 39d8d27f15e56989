// rope: v2b_scalar that turns Q and K by their positions while it loads them (RoPE), as the kernels of FlashAttention
// with a KV cache do. Cosines and sines come as tables. What is turned is rounded to the type of Q, as a tensor core
// would take it, and recorded so. It takes sequences and pages as varlen_paged does, any strides, windows, soft caps
// and masks. New keys, with their values, it appends to the cache in K and V, which has turned keys.
//
// A block is 8 warps on one 64-row q tile. Each writes all new keys of its kv head before it reads any: others write
// the same bits there, so that none has to wait for another.
//
// Limits: speed, as v2b_scalar. Every element of a pair is turned by a thread of its own, which reads both; a tile of K
// is turned again for each q tile and head.

#include "ladder.cuh"

namespace
{

using namespace ladder;

constexpr int BR = 64, BC = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;

struct Terms {
    asc_strides v_strides, o_strides, mask_strides;
    const int32_t *q_lens, *kv_lens, *cu_seqlens_q, *cu_seqlens_k, *page_table, *leftpad_k;
    const uint8_t *mask; // NULL: there is none
    const float *cosines, *sines;
    int page_size, table_pages, causal, window_left, window_right, rope, rope_dim, rope_offset;
    float softcap;
};

// What is to be appended.
struct NewKeys {
    const int32_t *cache_lens; // NULL: nothing
    const void *k, *v;
    asc_strides k_strides, v_strides;
};

// The rows of one head of one sequence.
template <class T> struct Rows {
    const T *first;
    asc_strides stride;
    const int32_t *pages; // NULL: one row behind the other
    int page_size;

    __device__ const T *row(int i) const
    {
        if (!pages)
            return first + i * stride.row;
        return first + pages[i / page_size] * stride.batch + i % page_size * stride.row;
    }
};

// Where the first row of a sequence begins, but for its head; with pages, where all do.
__device__ int64_t begin_of(const int32_t *cu_seqlens, const int32_t *pages, const asc_strides &strides, int batch)
{
    return pages ? 0 : cu_seqlens ? cu_seqlens[batch] * strides.row : batch * strides.batch;
}

// Element d of a row at `position`, turned.
template <class T> __device__ float turned(const Terms &of, const T *row, int d, int position)
{
    const float x = to_float(row[d]);
    if (d >= of.rope_dim)
        return x;
    const int pairs = of.rope_dim / 2, half = of.rope == ASC_ROPE_HALF;
    const int pair = half ? d % pairs : d / 2, second = half ? d / pairs : d % 2;
    const float y = to_float(row[half ? (d + pairs) % of.rope_dim : d ^ 1]);
    const int64_t at = static_cast<int64_t>(position) * pairs + pair;
    return second ? x * of.cosines[at] + y * of.sines[at] : x * of.cosines[at] - y * of.sines[at];
}

// Rows first .. first + 63 into shared memory; rows beyond `rows` become zero. position: of row 0.
template <class T, int D>
__device__ void load_turned(T *tile, const Terms &of, const Rows<T> &from, int first, int rows, int position)
{
    for (int i = threadIdx.x; i < 64 * D; i += THREADS) {
        const int r = i / D, d = i % D;
        float x = 0.0f;
        if (first + r < rows)
            x = turned(of, from.row(first + r), d, position + first + r);
        from_float(tile[r * (D + 2) + d], x);
    }
}

template <class T, int D> __device__ void load_tile(T *tile, const Rows<T> &from, int first, int rows)
{
    for (int i = threadIdx.x; i < 64 * D; i += THREADS) {
        const int r = i / D, d = i % D;
        T x;
        from_float(x, 0.0f);
        if (first + r < rows)
            x = from.row(first + r)[d * from.stride.col];
        tile[r * (D + 2) + d] = x;
    }
}

// New keys, which follow key `old` - 1, with their values into the cache.
template <class T, int D>
__device__ void append(const Terms &of, const NewKeys &added, const Rows<T> &k, const Rows<T> &v, int batch,
                       int kv_head, int old, int end)
{
    const asc_strides ks = added.k_strides, vs = added.v_strides;
    for (int i = threadIdx.x; i < (end - old) * D; i += THREADS) {
        const int row = i / D, d = i % D, key = old + row;
        const T *k_new = static_cast<const T *>(added.k) + batch * ks.batch + kv_head * ks.head + row * ks.row;
        const T *v_new = static_cast<const T *>(added.v) + batch * vs.batch + kv_head * vs.head + row * vs.row;
        from_float(const_cast<T *>(k.row(key))[d], turned(of, k_new, d, of.rope_offset + key));
        const_cast<T *>(v.row(key))[d * v.stride.col] = v_new[d];
    }
}

template <class T, int D> __global__ void __launch_bounds__(THREADS) rope(Params<T> p, Terms of, NewKeys added)
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
    const int corner = of.causal == ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len; // of the diagonal
    const int right = of.causal == ASC_CAUSAL_NONE ? of.window_right : 0;
    const int32_t *pages = of.page_table ? of.page_table + batch * of.table_pages : nullptr;
    const int64_t pad = of.leftpad_k ? of.leftpad_k[batch] : 0;
    const int kv_head = head / p.group;
    const uint8_t *mask = of.mask ? of.mask + batch * of.mask_strides.batch + head * of.mask_strides.head : nullptr;
    const Rows<T> q = {p.q + begin_of(of.cu_seqlens_q, nullptr, p.q_strides, batch) + head * p.q_strides.head,
                       p.q_strides, nullptr, 0};
    const Rows<T> k = {p.k + begin_of(of.cu_seqlens_k, pages, p.kv_strides, batch) + kv_head * p.kv_strides.head +
                           pad * p.kv_strides.row,
                       p.kv_strides, pages, of.page_size};
    const Rows<T> v = {p.v + begin_of(of.cu_seqlens_k, pages, of.v_strides, batch) + kv_head * of.v_strides.head +
                           pad * of.v_strides.row,
                       of.v_strides, pages, of.page_size};
    ASC_AT(batch, head, q_tile);

    load_turned<T, D>(sq, of, q, q_tile * BR, q_len, of.rope_offset + corner);
    if (threadIdx.x < BR) {
        sm[threadIdx.x] = -INFINITY;
        sl[threadIdx.x] = 0.0f;
    }
    if (added.cache_lens)
        append<T, D>(of, added, k, v, batch, kv_head, added.cache_lens[batch], kv_len);
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
    const int keys = right < 0 ? kv_len : min(kv_len, last_row + corner + right + 1);
    const int first_key = of.window_left < 0 ? 0 : max(0, q_tile * BR + corner - of.window_left);
    for (int kt = first_key / BC; kt * BC < keys; kt++) {
        if (added.cache_lens)
            load_tile<T, D>(sk, k, kt * BC, kv_len);
        else
            load_turned<T, D>(sk, of, k, kt * BC, kv_len, of.rope_offset);
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
                const int query = q_tile * BR + row, diagonal = query + corner;
                s[i] *= p.scale;
                if (of.softcap > 0.0f)
                    s[i] = of.softcap * tanhf(s[i] / of.softcap);
                if (key >= kv_len || query >= q_len || (right >= 0 && key > diagonal + right) ||
                    (of.window_left >= 0 && key < diagonal - of.window_left) ||
                    (mask && !mask[query * of.mask_strides.row + key]))
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
            T *o = p.o + begin_of(of.cu_seqlens_q, nullptr, of.o_strides, batch) + head * of.o_strides.head +
                   global_row * of.o_strides.row;
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
    plan->br = BR;
    plan->bc = BC;
    plan->threads = THREADS;
    plan->error_limit = problem->dtype == ASC_F16 ? 2e-3f : 0.0f;
    if (problem->head_dim != 64 && problem->head_dim != 128)
        return "head_dim must be 64 or 128";
    if (problem->heads > 65535 || problem->batch > 65535)
        return "batch and heads are grid dimensions y and z: at most 65535 each";
    return NULL;
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        using T = decltype(type);
        constexpr int D = head_dim;
        auto p = params_of<Params<T>>(problem);
        p.q_strides = problem->q_strides;
        p.kv_strides = problem->k_strides;
        const Terms of = {problem->v_strides,    problem->o_strides,       asc_mask_strides(problem),
                          problem->q_lens,       problem->kv_lens,         problem->cu_seqlens_q,
                          problem->cu_seqlens_k, problem->page_table,      problem->leftpad_k,
                          problem->mask,         problem->rope_cos,        problem->rope_sin,
                          problem->page_size,    asc_table_pages(problem), problem->causal,
                          problem->window_left,  problem->window_right,    problem->rope,
                          problem->rope_dim,     problem->rope_offset,     problem->softcap};
        const NewKeys added = {problem->cache_lens, problem->k_new, problem->v_new, asc_strides_of_new(problem, 0),
                               asc_strides_of_new(problem, 1)};
        const size_t shared = 3 * 64 * (D + 2) * sizeof(T) + (WARPS * BC + 2 * BR) * sizeof(float);
        return ASC_LAUNCH((rope<T, D>), grid_of(problem, BR), THREADS, shared, stream, p, of, added);
    });
}

} // namespace

ASC_KERNEL(rope)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.biases = ASC_SUPPORTS(MASK);
    kernel.sequences = ASC_SUPPORTS(Q_LENS) | ASC_SUPPORTS(KV_LENS) | ASC_SUPPORTS(PAGES) | ASC_SUPPORTS(LEFT_PAD) |
                       ASC_SUPPORTS(NEW_KEYS);
    kernel.tensors = ASC_SUPPORTS(ROPE) | ASC_SUPPORTS(STRIDES) | ASC_SUPPORTS(TRANSPOSED_V);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
