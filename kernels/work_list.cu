// work_list: split_kv with a scheduler, as FlashInfer, FlashMLA and stream-K have one. Host code cuts the kv tiles of
// all (batch, head, q tile) into work items and deals those to a fixed number of blocks, which take one after the
// other. An item leaves its output, divided by its own sum, and the log-sum-exp of its scores in its slot of the
// workspace; a second launch merges the items of each q tile, weighted by exp(lse_item - lse).
//
// Two schedulers: all kv tiles in a row, cut into as many equal pieces as there are blocks, so that a piece ends within
// a q tile and begins with the rest of another (stream-K); or, with -D PER_BATCH=1, each sequence has a number of
// splits of its own, by its length, as FlashAttention-3's num_splits_dynamic. Of these some are empty: their lse is
// -inf.
//
// Sequences have their own lengths, rows lie one sequence behind the other or padded, keys may lie in pages. A block is
// 8 warps on a 16-row q tile; all else is as in split_kv.
//
// Workspace: o [item][16][D] f32, then lse [item][16] f32. Items are listed q tile by q tile, so that those of one lie
// behind each other; first_item [q tiles of all heads + 1] says where.
//
// Limits: speed, as split_kv. The list is made anew for every launch.

#include "ladder.cuh"

#include <algorithm>
#include <vector>

#ifndef PER_BATCH
#define PER_BATCH 0
#endif
ASC_CHOICES(PER_BATCH, 0, 1);

namespace
{

using namespace ladder;

constexpr int BR = 16, BC = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;
constexpr int BLOCKS = 12;     // few, so that small problems are cut too: a GPU has 132 SMs
constexpr int MOST_SPLITS = 4; // of a sequence, with PER_BATCH

// kv tiles first .. end - 1 of a q tile.
struct Item {
    int batch, head, q_tile, first, end;
};

template <class T> struct WorkParams : Params<T> {
    const Item *items;
    const int *first_of_block; // [blocks + 1]
    const int *first_item;     // [batch][heads][q_tiles] and the end
    float *item_o, *item_lse;
    const int *q_lens, *kv_lens, *cu_seqlens_q, *cu_seqlens_k, *page_table; // NULL where the problem has none
    int causal, page_size, table_pages;
    int64_t page_stride;

    __device__ int q_len_of(int batch) const
    {
        return q_lens ? q_lens[batch] : this->q_len;
    }
    __device__ int kv_len_of(int batch) const
    {
        return kv_lens ? kv_lens[batch] : this->kv_len;
    }
    __device__ int64_t q_row(int batch, int head, int row) const
    {
        const int64_t first = cu_seqlens_q ? cu_seqlens_q[batch] * this->q_strides.row : batch * this->q_strides.batch;
        return first + head * this->q_strides.head + row * this->q_strides.row;
    }
    __device__ int64_t kv_row(int batch, int head, int row) const
    {
        const int64_t in_head = head / this->group * this->kv_strides.head;
        if (page_table)
            return page_table[batch * table_pages + row / page_size] * page_stride + in_head +
                   row % page_size * this->kv_strides.row;
        const int64_t first =
            cu_seqlens_k ? cu_seqlens_k[batch] * this->kv_strides.row : batch * this->kv_strides.batch;
        return first + in_head + row * this->kv_strides.row;
    }
};

template <class T, int D> __global__ void __launch_bounds__(THREADS) work_list(WorkParams<T> p)
{
    constexpr int LD = D + 2, COLS = D / 32;
    extern __shared__ __align__(16) unsigned char shared[];
    T *sq = reinterpret_cast<T *>(shared), *sk = sq + BR * LD, *sv = sk + BC * LD;
    float *sp = reinterpret_cast<float *>(sv + BC * LD);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    for (int at = p.first_of_block[blockIdx.x]; at < p.first_of_block[blockIdx.x + 1]; at++) {
        const Item item = p.items[at];
        const int q_len = p.q_len_of(item.batch), kv_len = p.kv_len_of(item.batch);
        const int reach = p.causal == ASC_CAUSAL_NONE ? kv_len : p.causal == ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len;
        ASC_AT(item.batch, item.head, item.q_tile);

        for (int i = threadIdx.x; i < BR * D; i += THREADS) {
            const int r = i / D, d = i % D, row = item.q_tile * BR + r;
            T x;
            from_float(x, 0.0f);
            if (row < q_len)
                x = p.q[p.q_row(item.batch, item.head, row) + d];
            sq[r * LD + d] = x;
        }
        __syncthreads();
        ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * LD + c]);

        float m[ROWS_PER_WARP], l[ROWS_PER_WARP], u[ROWS_PER_WARP][COLS];
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            m[r] = -INFINITY;
            l[r] = 0.0f;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                u[r][i] = 0.0f;
        }

        for (int kt = item.first; kt < item.end; kt++) {
            for (int i = threadIdx.x; i < BC * D; i += THREADS) {
                const int r = i / D, d = i % D, row = kt * BC + r;
                T x, y;
                from_float(x, 0.0f);
                from_float(y, 0.0f);
                if (row < kv_len) {
                    const int64_t from = p.kv_row(item.batch, item.head, row) + d;
                    x = p.k[from];
                    y = p.v[from];
                }
                sk[r * LD + d] = x;
                sv[r * LD + d] = y;
            }
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
                    if (key >= kv_len || key > item.q_tile * BR + row + reach)
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
            const int64_t row = static_cast<int64_t>(at) * BR + warp * ROWS_PER_WARP + r;
            const float inverse = l[r] > 0.0f ? 1.0f / l[r] : 0.0f;
            const float lse = l[r] > 0.0f ? m[r] + __logf(l[r]) : -INFINITY;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                p.item_o[row * D + lane + 32 * i] = u[r][i] * inverse;
            if (lane == 0)
                p.item_lse[row] = lse;
        }
        __syncthreads(); // the next item overwrites Q
    }
}

// A warp owns a row from its items to its output.
template <class T, int D> __global__ void __launch_bounds__(THREADS) merge_items(WorkParams<T> p)
{
    constexpr int COLS = D / 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int tile = (batch * p.heads + head) * gridDim.x + q_tile;
    const int first = p.first_item[tile], end = p.first_item[tile + 1];
    ASC_AT(batch, head, q_tile);

#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        const int row = warp * ROWS_PER_WARP + r, global_row = q_tile * BR + row;
        if (global_row >= p.q_len_of(batch))
            continue;
        float largest = -INFINITY;
        for (int item = first; item < end; item++)
            largest = fmaxf(largest, p.item_lse[item * BR + row]);
        const float base = largest == -INFINITY ? 0.0f : largest; // no key at all: -inf - -inf would be NaN
        float sum = 0.0f, merged[COLS] = {};
        for (int item = first; item < end; item++) {
            const float weight = __expf(p.item_lse[item * BR + row] - base);
            sum += weight;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                merged[i] += weight * p.item_o[(static_cast<int64_t>(item) * BR + row) * D + lane + 32 * i];
        }
        const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f; // a row without any key gives zero
        const float lse = sum > 0.0f ? base + __logf(sum) : -INFINITY;
        T out[COLS];
#pragma unroll
        for (int i = 0; i < COLS; i++)
            from_float(out[i], merged[i] * inverse);
        T *o = p.o + p.q_row(batch, head, global_row);
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

// The scheduler.

struct WorkList {
    std::vector<Item> items;
    std::vector<int> first_of_block, first_item;
};

std::vector<int> lengths_of(const int32_t *on_device, int batch, int all)
{
    std::vector<int> lengths(batch, all);
    if (on_device)
        cudaMemcpy(lengths.data(), on_device, batch * sizeof(int), cudaMemcpyDeviceToHost);
    return lengths;
}

// kv tiles that the last row of a q tile reaches.
int tiles_seen(const asc_problem &problem, int q_tile, int q_len, int kv_len)
{
    const int last_row = std::min(q_tile * BR + BR, q_len) - 1;
    const int reach = problem.causal == ASC_CAUSAL_NONE       ? kv_len
                      : problem.causal == ASC_CAUSAL_TOP_LEFT ? 0
                                                              : kv_len - q_len;
    const int keys = q_tile * BR < q_len ? std::min(kv_len, last_row + reach + 1) : 0;
    return keys > 0 ? (keys - 1) / BC + 1 : 0;
}

WorkList make_list(const asc_problem &problem)
{
    const std::vector<int> q_lens = lengths_of(problem.q_lens, problem.batch, problem.q_len);
    const std::vector<int> kv_lens = lengths_of(problem.kv_lens, problem.batch, problem.kv_len);
    const int q_tiles = (problem.q_len - 1) / BR + 1;
    WorkList list;
    int total = 0;
    for (int b = 0; b < problem.batch; b++)
        for (int q = 0; q < q_tiles; q++)
            total += problem.heads * tiles_seen(problem, q, q_lens[b], kv_lens[b]);
    const int piece = std::max((total + BLOCKS - 1) / BLOCKS, 1); // kv tiles of a block
    int left = piece;                                             // of this block
    list.first_of_block.push_back(0);
    for (int b = 0; b < problem.batch; b++)
        for (int h = 0; h < problem.heads; h++)
            for (int q = 0; q < q_tiles; q++) {
                const int tiles = tiles_seen(problem, q, q_lens[b], kv_lens[b]);
                const int splits = std::min((kv_lens[b] - 1) / (2 * BC) + 1, MOST_SPLITS),
                          share = (tiles + splits - 1) / splits;
                list.first_item.push_back(static_cast<int>(list.items.size()));
                for (int split = 0; PER_BATCH && split < splits; split++)
                    list.items.push_back(
                        {b, h, q, std::min(split * share, tiles), std::min(split * share + share, tiles)});
                for (int first = 0, end; !PER_BATCH && first < tiles; first = end) {
                    end = std::min(first + left, tiles);
                    list.items.push_back({b, h, q, first, end});
                    left -= end - first;
                    if (!left) {
                        list.first_of_block.push_back(static_cast<int>(list.items.size()));
                        left = piece;
                    }
                }
            }
    const int n = static_cast<int>(list.items.size());
    list.first_item.push_back(n);
    while (PER_BATCH && list.first_of_block.size() < BLOCKS)
        list.first_of_block.push_back(static_cast<int>(static_cast<int64_t>(n) * list.first_of_block.size() / BLOCKS));
    while (list.first_of_block.size() <= BLOCKS)
        list.first_of_block.push_back(n);
    return list;
}

// Device memory for the time of a launch.
struct OnDevice {
    std::vector<void *> all;

    void *make(size_t bytes)
    {
        void *memory = nullptr;
        cudaMalloc(&memory, bytes + 16);
        all.push_back(memory);
        return memory;
    }
    template <class T> const T *copy(const std::vector<T> &from)
    {
        void *to = make(from.size() * sizeof(T));
        cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
        return static_cast<const T *>(to);
    }
    ~OnDevice()
    {
        for (void *memory : all)
            cudaFree(memory);
    }
};

template <class T, int D> const char *launch(const asc_problem &problem, const WorkList &list, void *stream)
{
    OnDevice memory;
    auto p = params_of<WorkParams<T>>(&problem);
    p.items = memory.copy(list.items);
    p.first_of_block = memory.copy(list.first_of_block);
    p.first_item = memory.copy(list.first_item);
    p.item_o = static_cast<float *>(memory.make(list.items.size() * BR * D * sizeof(float)));
    p.item_lse = static_cast<float *>(memory.make(list.items.size() * BR * sizeof(float)));
    p.q_lens = problem.q_lens;
    p.kv_lens = problem.kv_lens;
    p.cu_seqlens_q = problem.cu_seqlens_q;
    p.cu_seqlens_k = problem.cu_seqlens_k;
    p.page_table = problem.page_table;
    p.causal = problem.causal;
    p.page_size = problem.page_size;
    p.table_pages = asc_table_pages(&problem);
    if (problem.page_size) {
        p.kv_strides = asc_strides_of(&problem, problem.kv_heads, problem.page_size);
        p.page_stride = p.kv_strides.batch;
    }
    const size_t shared = (BR + 2 * BC) * (D + 2) * sizeof(T) + WARPS * BC * sizeof(float);
    const char *failed = ASC_LAUNCH((work_list<T, D>), dim3(BLOCKS), THREADS, shared, stream, p);
    return failed ? failed : ASC_LAUNCH((merge_items<T, D>), grid_of(&problem, BR), THREADS, 0, stream, p);
}

} // namespace

// What a program calls. Which types and head_dim it takes its host code is asked itself: each build has all instances.
const char *launch_work_list(const asc_problem &problem, void *stream)
{
    const WorkList list = make_list(problem);
    const bool is_half = problem.dtype == ASC_F16, is_small = problem.head_dim == 64;
    auto *launches = is_half ? (is_small ? launch<__half, 64> : launch<__half, 128>)
                             : (is_small ? launch<__nv_bfloat16, 64> : launch<__nv_bfloat16, 128>);
    return launches(problem, list, stream);
}

ASC_KERNEL(work_list)
{
    kernel.br = BR;
    kernel.bc = BC;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.sequences = ASC_SUPPORTS(Q_LENS) | ASC_SUPPORTS(KV_LENS) | ASC_SUPPORTS(PAGES);
    kernel.run = [](auto &run) {
        const asc_problem &problem = run.problem;
        asc_plan tiles;
        const char *refused = plan_tiles(&problem, &tiles, BR, BC, THREADS);
        run.need(!refused, refused);
        run.asked = ~0u; // plan_tiles() declines what is not taken
        const WorkList list = make_list(problem);
        run.plan.kv_splits = PER_BATCH ? MOST_SPLITS : std::max(std::min(BLOCKS, (problem.kv_len - 1) / BC + 1), 2);
        run.plan.error_limit = problem.dtype == ASC_F16 ? 1e-3f : 0.0f;
        for (size_t i = 0, state = 0; i < list.items.size(); i++, state++) {
            const Item &item = list.items[i], &before = list.items[i ? i - 1 : 0];
            if (item.batch != before.batch || item.head != before.head || item.q_tile != before.q_tile)
                state = 0;
            run.deal(item.batch, item.head, item.q_tile, static_cast<int>(state), item.first, item.end);
        }
        const char *failed = launch_work_list(problem, run.stream);
        run.need(!failed, failed);
    };
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
