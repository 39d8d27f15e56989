// Attention with everything that may stand beside the plain product: sinks, ALiBi, a bias, split KV, paged keys. One
// thread has a row of 16, kv tiles have 32 keys; f16, head_dim 64. A file that includes this says
//   SPLITS  1, or how many blocks the kv tiles are dealt to, merged by a second kernel
//   SINK    enum asc_l_sink, of which it takes START and END
//   MISTAKE what is wrong with it, see below; 0 if it is not said
//   DEAL    enum asc_kv_deal, ASC_DEAL_RANGES if it is not said: how the kv tiles are dealt to the splits
//   STATE   with ASC_DEAL_MAP (batch, head, q_tile, kv_tile): the split of a kv tile
//   S_AT    enum asc_s_at, ASC_S_MASKED if it is not said: what S is captured as
//   PAGED   1: keys are read from pages of a tile each, which lie in memory in another order

#include <cuda_fp16.h>
#include <math.h>

#include "attnscope.h"

namespace
{

constexpr int BR = 16, BC = 32, D = 64;

enum { RIGHT, SINK_IN_EVERY_SPLIT, BIAS_OF_HEAD_0, MERGE_UNGUARDED, PAGES_IN_ORDER, PROBES_BY_PAGE };
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif
#ifndef DEAL
#define DEAL ASC_DEAL_RANGES
#endif
#ifndef S_AT
#define S_AT ASC_S_MASKED
#endif
#ifndef STATE
#define STATE(batch, head, q_tile, kv_tile) 0
#endif

struct Params {
    const __half *q, *k, *v;
    __half *o;
    float *lse; // [batch][heads][q_len]
    const float *sink, *alibi, *bias;
    asc_strides q_strides, kv_strides, bias_strides;
    int batch, heads, kv_heads, q_len, kv_len, kv_tiles, split_tiles;
    int diagonal; // query i's diagonal key is i + diagonal
    int left, right;
    int columns;                     // ALiBi counts columns, as FlashAttention-2 does where causality alone hides keys
    float scale, softcap;            // softcap 0: none
    const int *page;                 // [kv_tiles] where a tile of keys lies
    const __half *paged_k, *paged_v; // [batch][kv_heads][page][BC][D]
    float *split_o, *split_lse;      // [splits][batch][heads][q_len][D], [splits][batch][heads][q_len]
};

__device__ const __half *key_row(const Params &p, const __half *plain, const __half *paged, int b, int kv_head, int key)
{
    if (!PAGED)
        return plain + b * p.kv_strides.batch + kv_head * p.kv_strides.head + key * p.kv_strides.row;
    const int tile = MISTAKE == PAGES_IN_ORDER ? key / BC : p.page[key / BC];
    return paged + (((static_cast<int64_t>(b) * p.kv_heads + kv_head) * p.kv_tiles + tile) * BC + key % BC) * D;
}

__device__ float bias_of(const Params &p, int b, int h, int row, int key)
{
    float bias = 0.0f;
    if (p.alibi)
        bias += p.alibi[h] * (p.columns ? key : -abs(row + p.diagonal - key));
    if (p.bias)
        bias += p.bias[b * p.bias_strides.batch + (MISTAKE == BIAS_OF_HEAD_0 ? 0 : h) * p.bias_strides.head +
                       row * p.bias_strides.row + key];
    return bias;
}

// Each split of a row leaves its output and lse behind.
__device__ void leave(const Params &p, int split, int b, int h, int row, float m, float l, const float *u)
{
    const int64_t at = ((static_cast<int64_t>(split) * p.batch + b) * p.heads + h) * p.q_len + row;
    for (int d = 0; d < D; d++)
        p.split_o[at * D + d] = l > 0.0f ? u[d] / l : 0.0f;
    p.split_lse[at] = l > 0.0f ? m + __logf(l) : -INFINITY;
}

__device__ void store(const Params &p, int b, int h, int row, const __half *o, float lse)
{
    __half *out = p.o + b * p.q_strides.batch + h * p.q_strides.head + row * p.q_strides.row;
    for (int d = 0; d < D; d++)
        out[d] = o[d];
    p.lse[(static_cast<int64_t>(b) * p.heads + h) * p.q_len + row] = lse;
}

__global__ void attention(Params p)
{
    const int q_tile = blockIdx.x, h = blockIdx.y, b = blockIdx.z / SPLITS, split = blockIdx.z % SPLITS;
    const int r = threadIdx.x, row = q_tile * BR + r, kv_head = h / (p.heads / p.kv_heads);
    ASC_AT(b, h, q_tile);
    if (row >= p.q_len)
        return;

    __half q[D];
    for (int d = 0; d < D; d++)
        q[d] = p.q[b * p.q_strides.batch + h * p.q_strides.head + row * p.q_strides.row + d];
    ASC_RECORD(q, 0, i, D, r, i, q[i]);

    const bool sunk = SINK == ASC_SINK_START && p.sink && (split == 0 || MISTAKE == SINK_IN_EVERY_SPLIT);
    float m = sunk ? p.sink[h] : -INFINITY, l = sunk ? 1.0f : 0.0f, u[D] = {};
    constexpr bool ranges = DEAL == ASC_DEAL_RANGES, map = DEAL == ASC_DEAL_MAP;
    const int last = ranges ? min((split + 1) * p.split_tiles, p.kv_tiles) : p.kv_tiles;
    for (int kt = ranges ? split * p.split_tiles : map ? 0 : split; kt < last; kt += ranges || map ? 1 : SPLITS) {
        if (map && STATE(b, h, q_tile, kt) != split)
            continue;
        const int tile_row = q_tile * BR; // no row of the tile sees any key: the whole block goes on
        if ((p.right >= 0 && kt * BC > tile_row + BR - 1 + p.diagonal + p.right) ||
            (p.left >= 0 && kt * BC + BC <= tile_row + p.diagonal - p.left))
            continue;
        [[maybe_unused]] const int tile =
            MISTAKE == PROBES_BY_PAGE ? p.page[kt] : kt; // probes say where in the sequence
        float s[BC], shown[BC], top = m;
        for (int c = 0; c < BC; c++) {
            const int key = kt * BC + c;
            s[c] = shown[c] = -INFINITY;
            const bool hidden =
                (p.right >= 0 && key > row + p.diagonal + p.right) || (p.left >= 0 && key < row + p.diagonal - p.left);
            if (key >= p.kv_len || (hidden && S_AT == ASC_S_MASKED))
                continue;
            const __half *k = key_row(p, p.k, p.paged_k, b, kv_head, key);
            float dot = 0.0f;
            for (int d = 0; d < D; d++)
                dot += __half2float(q[d]) * __half2float(k[d]);
            const float score = dot * p.scale;
            const float capped = p.softcap > 0 ? p.softcap * tanhf(score / p.softcap) : score,
                        biased = capped + bias_of(p, b, h, row, key);
            shown[c] = S_AT == ASC_S_DOT ? score : S_AT == ASC_S_CAPPED ? capped : biased;
            s[c] = hidden ? -INFINITY : biased;
        }
        ASC_RECORD(s, tile, i, BC, r, i, shown[i]);
        for (int c = 0; c < BC; c++)
            top = fmaxf(top, s[c]);
        const float m_prev = m;
        m = top;
        ASC_RECORD_ROW(m, tile, r, true, m);
        const float base = m == -INFINITY ? 0.0f : m;
        float alpha = __expf(m_prev - base);
        ASC_RECORD_ROW(alpha, tile, r, true, alpha);
        float w[BC], sum = 0.0f;
        for (int c = 0; c < BC; c++)
            w[c] = __expf(s[c] - base);
        ASC_RECORD(p, tile, i, BC, r, i, w[i]);
        for (int c = 0; c < BC; c++)
            sum += w[c];
        l = l * alpha + sum;
        ASC_RECORD_ROW(l, tile, r, true, l);
        for (int d = 0; d < D; d++)
            u[d] *= alpha;
        for (int c = 0; c < BC && kt * BC + c < p.kv_len; c++) {
            const __half *v = key_row(p, p.v, p.paged_v, b, kv_head, kt * BC + c);
            for (int d = 0; d < D; d++)
                u[d] += w[c] * __half2float(v[d]);
        }
        ASC_RECORD(u, tile, i, D, r, i, u[i]);
    }
    if (SPLITS > 1) {
        leave(p, split, b, h, row, m, l, u);
        return;
    }
    if (SINK == ASC_SINK_END && p.sink && l > 0.0f)
        l += __expf(p.sink[h] - m);
    float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
    __half o[D];
    for (int d = 0; d < D; d++)
        o[d] = __float2half(l > 0.0f ? u[d] / l : 0.0f);
    ASC_RECORD(o, 0, i, D, r, i, o[i]);
    ASC_RECORD_ROW(lse, 0, r, true, lse);
    store(p, b, h, row, o, lse);
}

// o and lse of a row out of those of its splits.
__global__ void merge(Params p)
{
    const int q_tile = blockIdx.x, h = blockIdx.y, b = blockIdx.z, r = threadIdx.x, row = q_tile * BR + r;
    ASC_AT(b, h, q_tile);
    if (row >= p.q_len)
        return;
    const int64_t first = (static_cast<int64_t>(b) * p.heads + h) * p.q_len + row;
    const int64_t step = static_cast<int64_t>(p.batch) * p.heads * p.q_len;
    float top = -INFINITY, sum = 0.0f, mean[D] = {};
    for (int split = 0; split < SPLITS; split++)
        top = fmaxf(top, p.split_lse[first + split * step]);
    const float base = top == -INFINITY && MISTAKE != MERGE_UNGUARDED ? 0.0f : top; // no split has any key
    for (int split = 0; split < SPLITS; split++)
        sum += __expf(p.split_lse[first + split * step] - base);
    const bool any = sum > 0.0f || MISTAKE == MERGE_UNGUARDED;
    if (SINK == ASC_SINK_END && p.sink && any)
        sum += __expf(p.sink[h] - base);
    float lse = any ? base + __logf(sum) : -INFINITY;
    for (int split = 0; split < SPLITS; split++) {
        const float share = any ? __expf(p.split_lse[first + split * step] - lse) : 0.0f;
        for (int d = 0; d < D; d++)
            mean[d] += share * p.split_o[(first + split * step) * D + d];
    }
    __half o[D];
    for (int d = 0; d < D; d++)
        o[d] = __float2half(mean[d]);
    ASC_RECORD(o, 0, i, D, r, i, o[i]);
    ASC_RECORD_ROW(lse, 0, r, true, lse);
    store(p, b, h, row, o, lse);
}

// Copies K and V into pages: tile t goes to page n - 1 - t, the first and the last one but one change places besides.
__global__ void fill_pages(Params p, int *page, __half *k, __half *v)
{
    const int t = blockIdx.x, kv_head = blockIdx.y, b = blockIdx.z, n = p.kv_tiles;
    int to = n - 1 - t;
    if (n > 2 && (to == 0 || to == n - 2))
        to = n - 2 - to;
    if (threadIdx.x == 0)
        page[t] = to;
    for (int i = threadIdx.x; i < BC * D; i += blockDim.x) {
        const int key = t * BC + i / D, d = i % D;
        const int64_t at = p.kv_strides.batch * b + p.kv_strides.head * kv_head + p.kv_strides.row * key + d;
        const int64_t out = ((static_cast<int64_t>(b) * p.kv_heads + kv_head) * n + to) * BC * D + i;
        k[out] = key < p.kv_len ? p.k[at] : __float2half(0.0f);
        v[out] = key < p.kv_len ? p.v[at] : __float2half(0.0f);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != D)
        return "head_dim must be 64";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = BR;
    plan->kv_splits = SPLITS;
    plan->kv_deal = DEAL;
    return NULL;
}

// Device memory that ends with the launch.
struct Memory {
    void *at = nullptr;
    explicit Memory(size_t bytes)
    {
        if (cudaMalloc(&at, bytes) != cudaSuccess)
            at = nullptr;
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory()
    {
        cudaFree(at); // waits for the kernels that use it
    }
};

const char *launch(const asc_problem *problem, void *stream)
{
    const size_t rows = static_cast<size_t>(problem->batch) * problem->heads * problem->q_len;
    const int tiles = (problem->kv_len + BC - 1) / BC, causal = problem->causal != ASC_CAUSAL_NONE;
    const size_t pages = static_cast<size_t>(problem->batch) * problem->kv_heads * tiles * BC * D;
    Memory split_o(SPLITS * rows * D * sizeof(float)), split_lse(SPLITS * rows * sizeof(float));
    Memory page(tiles * sizeof(int)), paged_k(pages * sizeof(__half)), paged_v(pages * sizeof(__half));
    if (!split_o.at || !split_lse.at || !page.at || !paged_k.at || !paged_v.at)
        return "there is no device memory for splits and pages";
    Params p;
    p.q = static_cast<const __half *>(problem->q);
    p.k = static_cast<const __half *>(problem->k);
    p.v = static_cast<const __half *>(problem->v);
    p.o = static_cast<__half *>(problem->o);
    p.lse = problem->lse;
    p.sink = problem->sink;
    p.alibi = problem->alibi;
    p.bias = problem->bias;
    p.q_strides = asc_strides_of(problem, problem->heads, problem->q_len);
    p.kv_strides = asc_strides_of(problem, problem->kv_heads, problem->kv_len);
    p.bias_strides = asc_bias_strides(problem);
    p.batch = problem->batch;
    p.heads = problem->heads;
    p.kv_heads = problem->kv_heads;
    p.q_len = problem->q_len;
    p.kv_len = problem->kv_len;
    p.kv_tiles = tiles;
    p.split_tiles = asc_split_tiles(tiles, SPLITS);
    p.diagonal = problem->causal == ASC_CAUSAL_TOP_LEFT ? 0 : problem->kv_len - problem->q_len;
    p.left = problem->window_left;
    p.right = causal ? 0 : problem->window_right;
    p.columns = p.right == 0 && (p.left < 0 || p.left >= problem->kv_len);
    p.scale = problem->scale;
    p.softcap = problem->softcap;
    p.page = static_cast<const int *>(page.at);
    p.paged_k = static_cast<const __half *>(paged_k.at);
    p.paged_v = static_cast<const __half *>(paged_v.at);
    p.split_o = static_cast<float *>(split_o.at);
    p.split_lse = static_cast<float *>(split_lse.at);

    const int q_tiles = (problem->q_len + BR - 1) / BR;
    const char *failure = nullptr;
    if (PAGED)
        failure = ASC_LAUNCH(fill_pages, dim3(tiles, problem->kv_heads, problem->batch), BR, 0, stream, p,
                             static_cast<int *>(page.at), static_cast<__half *>(paged_k.at),
                             static_cast<__half *>(paged_v.at));
    if (!failure)
        failure = ASC_LAUNCH(attention, dim3(q_tiles, problem->heads, problem->batch * SPLITS), BR, 0, stream, p);
    if (!failure && SPLITS > 1)
        failure = ASC_LAUNCH(merge, dim3(q_tiles, problem->heads, problem->batch), BR, 0, stream, p);
    return failure;
}

void describe(asc_kernel &kernel)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.conventions.s_at = S_AT;
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.biases = ASC_SUPPORTS(ALIBI) | ASC_SUPPORTS(BIAS);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.l_sink = SINK;
    kernel.conventions.empty_lse_negative = 1;
}

} // namespace
