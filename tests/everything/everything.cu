// All that a problem may have, in one kernel: packed rows, pages, sequences of their own lengths, widths and strides,
// keys that it appends to its cache, splits dealt in any way, causal limits and windows, soft cap, formulas of scores,
// ALiBi, bias, mask, sinks, dropout, RoPE, codes with scales of any block. A block is a warp on 16 packed rows and one
// split of their kv tiles; a second launch merges what the splits left. Nothing in it is fast.
//
// How kv tiles are dealt to splits, by a map, in ranges or round robin, follows from kv_len, so that all come up.
// DROP_WEIGHTS=1: weights that are kept get 1 / (1 - p), else O does. P_DROPPED=1: P is recorded after dropout.
// P_F16=1: weights are rounded to f16 for P.V.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "attnscope.h"

#ifndef DROP_WEIGHTS
#define DROP_WEIGHTS 0
#endif
#ifndef P_DROPPED
#define P_DROPPED 0
#endif
#ifndef P_F16
#define P_F16 0
#endif

namespace
{

constexpr uint32_t CODES = ASC_SUPPORTS(E4M3) | ASC_SUPPORTS(E5M2) | ASC_SUPPORTS(U8) | ASC_SUPPORTS(S8),
                   TYPES = ASC_SUPPORTS(F32) | ASC_SUPPORTS(F16) | CODES;
constexpr int BR = 16, BC = 16, DIM = 128, LANES = 32, SPLITS = 3;

// The formulas as shape.score_mod says them; the place of one in this list is its number.
const char *const formulas[] = {"", "s - 0.1 * abs(i - j)", "tanh(s / 20) * 20", "j < 64 ? s : s * 0.5"};

__device__ float score_mod(int formula, float s, int i, int j)
{
    switch (formula) {
    case 1:
        return s - 0.1f * abs(i - j);
    case 2:
        return tanhf(s / 20.0f) * 20.0f;
    case 3:
        return j < 64 ? s : s * 0.5f;
    default:
        return s;
    }
}

// Element `at` of an array; a code before its scale.
__device__ float load(const void *array, int type, int64_t at)
{
    switch (type) {
    case ASC_F32:
        return static_cast<const float *>(array)[at];
    case ASC_F16:
        return __half2float(static_cast<const __half *>(array)[at]);
    case ASC_U8:
        return static_cast<float>(static_cast<const uint8_t *>(array)[at] - ASC_U8_MIDPOINT);
    case ASC_S8:
        return static_cast<float>(static_cast<const int8_t *>(array)[at]);
    case ASC_E5M2:
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<const uint8_t *>(array)[at], __NV_E5M2)));
    default:
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<const uint8_t *>(array)[at], __NV_E4M3)));
    }
}
__device__ float as_float(float x)
{
    return x;
}
__device__ float as_float(__half x)
{
    return __half2float(x);
}
__device__ void store(float &to, float x)
{
    to = x;
}
__device__ void store(__half &to, float x)
{
    to = __float2half(x);
}

// The splits of a tile of packed rows, and whose a kv tile of so many is: by the map, neighbors go to different ones,
// in runs of two.
__host__ __device__ int splits_of(int deal, int batch, int tile)
{
    return deal == ASC_DEAL_MAP ? 1 + (batch + tile) % SPLITS : SPLITS;
}
__host__ __device__ int state_of(int deal, int batch, int tile, int kv_tile, int kv_tiles)
{
    if (deal == ASC_DEAL_RANGES)
        return kv_tile / asc_split_tiles(kv_tiles, SPLITS);
    if (deal == ASC_DEAL_ROUND_ROBIN)
        return kv_tile % SPLITS;
    return (kv_tile / 2 * 5 + tile) % splits_of(deal, batch, tile);
}

struct Mask {
    const uint8_t *first; // NULL: there is none
    asc_strides stride;

    __device__ bool at(int batch, int head, int query, int key) const
    {
        return !first || first[batch * stride.batch + head * stride.head + query * stride.row + key];
    }
};

struct Everything {
    asc_problem p; // all pointers are the device's
    asc_strides bias;
    Mask mask, keep;
    float *parts; // [batch][heads][q_len][SPLITS][head_dim_v + 2]: U, m and l
    asc_strides k_new, v_new;
    int q_tile_rows, formula, deal;

    __device__ int q_len(int batch) const
    {
        return p.q_lens ? p.q_lens[batch] : p.q_len;
    }
    __device__ int kv_len(int batch) const
    {
        return p.kv_lens ? p.kv_lens[batch] : p.kv_len;
    }
    __device__ int64_t query_at(const asc_strides &s, int batch, int head, int query) const
    {
        const int64_t first = p.cu_seqlens_q ? p.cu_seqlens_q[batch] * s.row : batch * s.batch;
        return first + head * s.head + query * s.row;
    }
    __device__ int64_t key_at(const asc_strides &s, int batch, int head, int key) const
    {
        if (p.page_size) {
            const int page = p.page_table[batch * ((p.kv_len - 1) / p.page_size + 1) + key / p.page_size];
            return page * s.batch + head * s.head + key % p.page_size * s.row;
        }
        const int64_t first = p.cu_seqlens_k ? p.cu_seqlens_k[batch] * s.row : batch * s.batch;
        return first + head * s.head + (key + (p.leftpad_k ? p.leftpad_k[batch] : 0)) * s.row;
    }
    __device__ bool sees(int batch, int head, int query, int key, int diagonal) const
    {
        return key < kv_len(batch) && (p.causal == ASC_CAUSAL_NONE || key <= diagonal) &&
               (p.window_left < 0 || key >= diagonal - p.window_left) &&
               (p.window_right < 0 || key <= diagonal + p.window_right) && mask.at(batch, head, query, key);
    }
    __device__ float q_element(int batch, int head, int query, int d) const
    {
        const float x = load(p.q, p.dtype, query_at(p.q_strides, batch, head, query) + d);
        return p.q_scale ? x * p.q_scale[asc_scale_of(&p, p.heads, p.q_len, p.head_dim, batch, head, query, d)] : x;
    }
    __device__ float k_element(int batch, int head, int key, int d) const
    {
        const float x = load(p.k, p.k_dtype, key_at(p.k_strides, batch, head, key) + d);
        return p.k_scale ? x * p.k_scale[asc_scale_of(&p, p.kv_heads, p.kv_len, p.head_dim, batch, head, key, d)] : x;
    }
    __device__ float v_element(int batch, int head, int key, int d) const
    {
        const float x = load(p.v, p.v_dtype, key_at(p.v_strides, batch, head, key) + d * p.v_strides.col);
        return p.v_scale ? x * p.v_scale[asc_scale_of(&p, p.kv_heads, p.kv_len, p.head_dim_v, batch, head, key, d)] : x;
    }
    __device__ float new_element(const void *from, int type, const asc_strides &s, int batch, int head, int i,
                                 int d) const
    {
        return load(from, type, s.batch * batch + s.head * head + s.row * i + d);
    }
    // Element d of a row at a position, turned by RoPE; row: gives its elements.
    template <class Row> __device__ float turned(int position, int d, const Row &row) const
    {
        const float x = row(d);
        if (p.rope == ASC_ROPE_NONE || d >= p.rope_dim)
            return x;
        const int pairs = p.rope_dim / 2, half = p.rope == ASC_ROPE_HALF;
        const int pair = half ? d % pairs : d / 2, second = half ? d / pairs : d % 2;
        const float y = row(half ? (d + pairs) % p.rope_dim : d ^ 1);
        const int64_t at = static_cast<int64_t>(position) * pairs + pair;
        return second ? x * p.rope_cos[at] + y * p.rope_sin[at] : x * p.rope_cos[at] - y * p.rope_sin[at];
    }
    __device__ void copy_code(void *cache, int64_t at, const void *from, const asc_strides &s, int batch, int head,
                              int i, int d) const
    {
        static_cast<uint8_t *>(cache)[at] =
            static_cast<const uint8_t *>(from)[s.batch * batch + s.head * head + s.row * i + d];
    }
    // Writes the new keys from `first` to `end` - 1 into the cache. Whoever attends to them does, with the same bits.
    template <class T> __device__ void append(int batch, int head, int first, int end, int lane) const
    {
        const int old = p.cache_lens[batch];
        for (int key = max(first, old); key < end; key++) {
            const int64_t k = key_at(p.k_strides, batch, head, key), v = key_at(p.v_strides, batch, head, key);
            const auto row = [&](int d) { return new_element(p.k_new, p.k_dtype, k_new, batch, head, key - old, d); };
            for (int d = lane; d < p.head_dim; d += LANES)
                if (p.k_scale)
                    copy_code(p.k_cache, k + d, p.k_new, k_new, batch, head, key - old, d);
                else
                    store(static_cast<T *>(p.k_cache)[k + d], turned(p.rope_offset + key, d, row));
            for (int d = lane; d < p.head_dim_v && !p.v_in_k; d += LANES)
                if (p.v_scale)
                    copy_code(p.v_cache, v + d * p.v_strides.col, p.v_new, v_new, batch, head, key - old, d);
                else
                    store(static_cast<T *>(p.v_cache)[v + d * p.v_strides.col],
                          new_element(p.v_new, p.v_dtype, v_new, batch, head, key - old, d));
        }
    }
    __device__ float *part(int batch, int head, int query, int split) const
    {
        const int64_t row = (static_cast<int64_t>(batch) * p.heads + head) * p.q_len + query;
        return parts + (row * SPLITS + split) * (p.head_dim_v + 2);
    }
};

template <class T> __global__ void everything(const Everything a)
{
    __shared__ T sq[BR][DIM], sk[BC][DIM], sv[BC][DIM];
    __shared__ float su[BR][DIM], ss[BR][BC], sm[BR], sl[BR], salpha[BR];
    const asc_problem &p = a.p;
    const int tile = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS, kv_head = blockIdx.y, batch = blockIdx.z;
    const int lane = threadIdx.x, group = p.heads / p.kv_heads, first = tile * BR;
    const int q_len = a.q_len(batch), kv_len = a.kv_len(batch), rows = min(BR, q_len * group - first);
    const int corner = p.causal == ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len;
    if (rows <= 0 || split >= splits_of(a.deal, batch, tile))
        return;
    ASC_AT_ROWS(batch, r, BR, kv_head * group + (first + r) % group, r < rows ? (first + r) / group : -1);

    for (int e = lane; e < BR * p.head_dim; e += LANES) {
        const int r = e / p.head_dim, d = e % p.head_dim, query = (first + r) / group;
        const int head = kv_head * group + (first + r) % group;
        const auto row = [&](int at) { return a.q_element(batch, head, query, at); };
        store(sq[r][d], r < rows ? a.turned(p.rope_offset + query + corner, d, row) : 0);
    }
    for (int e = lane; e < BR * p.head_dim_v; e += LANES)
        su[e / p.head_dim_v][e % p.head_dim_v] = 0;
    if (lane < BR)
        sm[lane] = -INFINITY, sl[lane] = 0;
    __syncwarp();
    ASC_RECORD_SHARED(q, 0, r, BR, c, p.head_dim, sq[r][c]);

    const int kv_tiles = (kv_len + BC - 1) / BC;
    for (int t = 0; t < kv_tiles; t++) {
        if (state_of(a.deal, batch, tile, t, kv_tiles) != split)
            continue;
        if (p.new_keys)
            a.append<T>(batch, kv_head, t * BC, min(kv_len, t * BC + BC), lane);
        __syncwarp();
        for (int e = lane; e < BC * p.head_dim; e += LANES) {
            const int key = t * BC + e / p.head_dim, d = e % p.head_dim;
            const auto row = [&](int at) { return a.k_element(batch, kv_head, key, at); };
            T &to = sk[e / p.head_dim][d];
            if (key < kv_len && !p.new_keys)
                store(to, a.turned(p.rope_offset + key, d, row));
            else
                store(to, key < kv_len ? row(d) : 0); // a cache has turned keys
        }
        for (int e = lane; e < BC * p.head_dim_v; e += LANES) {
            const int key = t * BC + e / p.head_dim_v, d = e % p.head_dim_v;
            store(sv[e / p.head_dim_v][d], key < kv_len ? a.v_element(batch, kv_head, key, d) : 0);
        }
        __syncwarp();
        ASC_RECORD_SHARED(k, t, r, BC, c, p.head_dim, sk[r][c]);
        ASC_RECORD_SHARED(v, t, r, BC, c, p.head_dim_v, sv[r][c]);

        for (int e = lane; e < BR * BC; e += LANES) {
            const int r = e / BC, col = e % BC, key = t * BC + col, query = (first + r) / group;
            const int head = kv_head * group + (first + r) % group, diagonal = query + corner;
            float s = 0;
            for (int d = 0; d < p.head_dim; d++)
                s += as_float(sq[r][d]) * as_float(sk[col][d]);
            s *= p.scale;
            if (p.softcap != 0)
                s = p.softcap * tanhf(s / p.softcap);
            s = score_mod(a.formula, s, query, key);
            if (p.alibi)
                s -= p.alibi[head] * abs(diagonal - key);
            const bool seen = r < rows && a.sees(batch, head, query, key, diagonal);
            if (p.bias && seen)
                s += p.bias[batch * a.bias.batch + head * a.bias.head + query * a.bias.row + key];
            ss[r][col] = seen ? s : -INFINITY;
        }
        __syncwarp();
        ASC_RECORD_SHARED(s, t, r, BR, c, BC, ss[r][c]);
        __syncwarp();

        if (lane < BR) {
            float m = sm[lane];
            for (int c = 0; c < BC; c++)
                m = fmaxf(m, ss[lane][c]);
            salpha[lane] = m == -INFINITY ? 0 : expf(sm[lane] - m);
            sm[lane] = m;
        }
        __syncwarp();
        ASC_RECORD_ROW(m, t, lane % BR, lane < BR, sm[lane % BR]);
        ASC_RECORD_ROW(alpha, t, lane % BR, lane < BR, salpha[lane % BR]);
        for (int e = lane; e < BR * BC; e += LANES) {
            const float s = ss[e / BC][e % BC];
            ss[e / BC][e % BC] = s == -INFINITY ? 0 : expf(s - sm[e / BC]);
        }
        __syncwarp();
        if (!P_DROPPED)
            ASC_RECORD_SHARED(p, t, r, BR, c, BC, ss[r][c]);
        if (lane < BR) {
            float l = sl[lane] * salpha[lane];
            for (int c = 0; c < BC; c++)
                l += ss[lane][c];
            sl[lane] = l;
        }
        __syncwarp();
        ASC_RECORD_ROW(l, t, lane % BR, lane < BR, sl[lane % BR]);
        for (int e = lane; e < BR * BC; e += LANES) {
            const int r = e / BC, key = t * BC + e % BC, query = (first + r) / group;
            const int head = kv_head * group + (first + r) % group;
            float &w = ss[r][e % BC];
            if (p.dropout > 0 && key < kv_len && r < rows) {
                const bool kept = a.keep.at(batch, head, query, key);
                w = kept ? w * (DROP_WEIGHTS ? 1 / (1 - p.dropout) : 1) : 0;
            }
        }
        __syncwarp();
        if (P_DROPPED)
            ASC_RECORD_SHARED(p, t, r, BR, c, BC, ss[r][c]);
        __syncwarp();
        for (int e = lane; e < BR * p.head_dim_v; e += LANES) {
            const int r = e / p.head_dim_v, d = e % p.head_dim_v;
            float u = su[r][d] * salpha[r];
            for (int c = 0; c < BC; c++)
                u += (P_F16 ? __half2float(__float2half(ss[r][c])) : ss[r][c]) * as_float(sv[c][d]);
            su[r][d] = u;
        }
        __syncwarp();
        ASC_RECORD_SHARED(u, t, r, BR, c, p.head_dim_v, su[r][c]);
        __syncwarp();
    }

    for (int r = 0; r < rows; r++) {
        float *part = a.part(batch, kv_head * group + (first + r) % group, (first + r) / group, split);
        for (int d = lane; d < p.head_dim_v; d += LANES)
            part[d] = su[r][d];
        if (lane == 0) {
            part[p.head_dim_v] = sm[r];
            part[p.head_dim_v + 1] = sl[r];
        }
    }
}

template <class T> __global__ void merge(const Everything a)
{
    const asc_problem &p = a.p;
    const int query = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, lane = threadIdx.x, D = p.head_dim_v;
    const int group = p.heads / p.kv_heads, tile = (query * group + head % group) / BR;
    if (query >= a.q_len(batch))
        return;
    ASC_AT(batch, head, query / a.q_tile_rows);
    const float sink = p.sink ? p.sink[head] : -INFINITY;
    float m = sink, l = 0;
    for (int i = 0; i < splits_of(a.deal, batch, tile); i++)
        m = fmaxf(m, a.part(batch, head, query, i)[D]);
    for (int i = 0; i < splits_of(a.deal, batch, tile) && m != -INFINITY; i++) {
        const float *part = a.part(batch, head, query, i);
        l += part[D] == -INFINITY ? 0 : expf(part[D] - m) * part[D + 1];
    }
    if (p.sink)
        l += expf(sink - m);
    const float dropped = p.dropout > 0 && !DROP_WEIGHTS ? 1 / (1 - p.dropout) : 1;
    const float inverse = l > 0 ? dropped / l : 0;
    const float lse = l > 0 ? m + logf(l) : -INFINITY;
    T *out = static_cast<T *>(p.o) + a.query_at(p.o_strides, batch, head, query);
    for (int d = lane; d < D; d += LANES) {
        float u = 0;
        for (int i = 0; i < splits_of(a.deal, batch, tile) && m != -INFINITY; i++) {
            const float *part = a.part(batch, head, query, i);
            u += part[D] == -INFINITY ? 0 : expf(part[D] - m) * part[d];
        }
        T o;
        store(o, u * inverse);
        out[d] = o;
        ASC_RECORD(o, 0, i, 1, query % a.q_tile_rows, d, o);
    }
    if (lane == 0)
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + query] = lse;
    ASC_RECORD_ROW(lse, 0, query % a.q_tile_rows, lane == 0, lse);
}

int formula_of(const asc_problem *problem)
{
    for (int i = 0; i < static_cast<int>(sizeof formulas / sizeof *formulas); i++)
        if (strcmp(problem->score_mod, formulas[i]) == 0)
            return i;
    return -1;
}

bool is_code(int type)
{
    return CODES & 1u << type;
}

int deal_of(const asc_problem *problem)
{
    return problem->kv_len % (ASC_DEAL_MAP + 1);
}

int packed_rows(const asc_problem *problem)
{
    return problem->q_len * (problem->heads / problem->kv_heads);
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim > DIM || problem->head_dim_v > DIM)
        return "head_dim must be 128 or less";
    for (int type : {problem->k_dtype, problem->v_dtype})
        if (type != problem->dtype && (!is_code(type) || problem->dtype == ASC_F32))
            return "K and V are of Q's type, or codes beside f16 or codes";
    if (formula_of(problem) < 0)
        return "this formula of the score is none of those in its code";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = LANES;
    plan->packed = 1;
    plan->kv_splits = SPLITS;
    plan->kv_deal = deal_of(problem);
    plan->workspace_bytes =
        sizeof(float) * problem->batch * problem->heads * problem->q_len * SPLITS * (problem->head_dim_v + 2);
    return NULL;
}

int32_t state(const asc_problem *problem, const asc_plan *plan, int32_t batch, int32_t head, int32_t q_tile,
              int32_t kv_tile)
{
    const int group = problem->heads / problem->kv_heads;
    const int kv_tiles = (asc_kv_len(problem, batch) + BC - 1) / BC;
    return state_of(plan->kv_deal, batch, (q_tile * plan->br * group + head % group) / BR, kv_tile, kv_tiles);
}

template <class T> const char *launch_as(const asc_problem *problem, void *stream)
{
    const Everything a = {*problem,
                          asc_bias_strides(problem),
                          {problem->mask, asc_mask_strides(problem)},
                          {problem->keep, asc_keep_strides(problem)},
                          static_cast<float *>(problem->workspace),
                          asc_strides_of_new(problem, 0),
                          asc_strides_of_new(problem, 1),
                          asc_packed_br(problem, BR),
                          formula_of(problem),
                          deal_of(problem)};
    const int tiles = (packed_rows(problem) + BR - 1) / BR;
    const char *failed =
        ASC_LAUNCH((everything<T>), dim3(tiles * SPLITS, problem->kv_heads, problem->batch), LANES, 0, stream, a);
    return failed ? failed
                  : ASC_LAUNCH((merge<T>), dim3(problem->q_len, problem->heads, problem->batch), LANES, 0, stream, a);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return problem->dtype == ASC_F32 ? launch_as<float>(problem, stream) : launch_as<__half>(problem, stream);
}

} // namespace

ASC_KERNEL(everything)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.state = state;
    kernel.dtypes = kernel.k_dtypes = kernel.v_dtypes = TYPES;
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.biases =
        ASC_SUPPORTS(ALIBI) | ASC_SUPPORTS(BIAS) | ASC_SUPPORTS(MASK) | ASC_SUPPORTS(SCORE_MOD) | ASC_SUPPORTS(DROPOUT);
    kernel.sequences = ASC_SUPPORTS(Q_LENS) | ASC_SUPPORTS(KV_LENS) | ASC_SUPPORTS(PAGES) | ASC_SUPPORTS(LEFT_PAD) |
                       ASC_SUPPORTS(NEW_KEYS);
    kernel.tensors = ASC_SUPPORTS(HEAD_DIM_V) | ASC_SUPPORTS(V_IN_K) | ASC_SUPPORTS(STRIDES) |
                     ASC_SUPPORTS(TRANSPOSED_V) | ASC_SUPPORTS(ROPE) | ASC_SUPPORTS(SCALE_DIMS);
    kernel.s_unit = kernel.m_unit = ASC_UNIT_SCALED;
    kernel.alibi_form = ASC_ALIBI_DISTANCE;
    kernel.l_sink = ASC_SINK_END;
    kernel.empty_lse_negative = 1;
    kernel.p_rounded = P_F16 ? ASC_P_F16 : ASC_P_AS_RECORDED;
    kernel.p_dropout = P_DROPPED ? ASC_P_DROPPED : ASC_P_UNDROPPED;
    kernel.dropout_factor = DROP_WEIGHTS ? ASC_DROPOUT_AT_WEIGHTS : ASC_DROPOUT_AT_END;
}
