/* What a kernel, the debuggee it is built into and attnscope agree on. Plain data, valid as C, C++ and CUDA C++.
   A change here is a new ASC_ABI_VERSION: debuggees and live traces of another version are refused. */
#ifndef ASC_ABI_H
#define ASC_ABI_H

#include <stddef.h>
#include <stdint.h>

#define ASC_ABI_VERSION 13

/* Element types of tensors; on attnscope's side enum dtype, with the same numbers. */
enum asc_dtype {
#define DTYPE(id, safetensors, bytes, name) ASC_##id,
#include "engine/base/dtypes.def"
#undef DTYPE
    ASC_DTYPES
};

/* "Uninitialized", see engine/base/dtype.h. */
#define ASC_UNWRITTEN_16 0x7FF5u
#define ASC_UNWRITTEN_32 0x7FF57FF5u
#define ASC_UNWRITTEN_64 0x7FF57FF57FF57FF5ull

enum asc_channel {
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) asc_##id,
#include "probes/channels.def"
#undef CHANNEL
    ASC_CHANNELS
};

/* Behind them a kernel's own: the values that ASC_VALUES declares, in its order. They exist once per q and kv tile, and
   nothing is known of them but what asc_plan.value says. */
#define ASC_OWN_CHANNELS 8
#define ASC_ALL_CHANNELS (ASC_CHANNELS + ASC_OWN_CHANNELS)

enum asc_causal {
    ASC_CAUSAL_NONE,
    ASC_CAUSAL_TOP_LEFT,    /* query i sees keys 0..i */
    ASC_CAUSAL_BOTTOM_RIGHT /* query i sees keys 0..i + kv_len - q_len (flash-attention since 2.1) */
};

enum asc_layout {
    ASC_BHLD, /* [batch][head][row][head_dim]; of v and o head_dim_v */
    ASC_BLHD, /* [batch][row][head][head_dim] */
    ASC_THD   /* [row of all sequences][head][head_dim]: one sequence behind the other, see cu_seqlens_q */
};

/* RoPE: which elements of a row of q and k are the pairs that its position turns, i being the pair. */
enum asc_rope {
    ASC_ROPE_NONE,
    ASC_ROPE_INTERLEAVED, /* 2 i and 2 i + 1, as GPT-J has them */
    ASC_ROPE_HALF         /* i and i + rope_dim / 2, as GPT-NeoX and Llama have them */
};

/* Which of the leading dimensions of a bias, [batch][heads][q_len][kv_len], it has; a missing one is 1. */
enum asc_bias { ASC_BIAS_NONE, ASC_BIAS_SHARED, ASC_BIAS_PER_HEAD, ASC_BIAS_PER_BATCH, ASC_BIAS_FULL };

/* The type of the scales of codes. */
enum asc_scale_type {
    ASC_SCALE_F32,
    ASC_SCALE_E4M3, /* NVFP4's: beside them the tensor has a scale of its own, an f32 */
    ASC_SCALE_E8M0  /* the MX formats': powers of two, 2^(code - 127) */
};

/* How the arrays of q, k, v and o lie within that order. */
enum asc_lie {
    ASC_CONTIGUOUS, /* one row right behind the other */
    ASC_STRIDED,    /* elements that belong to nobody behind each row, rows behind each head, heads behind each batch */
    ASC_PACKED_QKV, /* q, k and v in one array, a row of each behind the other: [batch][row][q heads, k heads, v heads]
                       [head_dim]; o is contiguous. With BLHD and THD */
    ASC_V_TRANSPOSED /* v is [batch][kv_heads][head_dim_v][kv_len], a column padded to a multiple of 8 elements, what
                        else there is is contiguous. Without THD and pages */
};

/* Where row `row` of head `head` begins, in elements: stride.batch * b + stride.head * h + stride.row * row; element d
   of it is col * d behind. With THD the rows of a sequence begin at its cu_seqlens in the place of stride.batch * b. */
struct asc_strides {
    int64_t batch, head, row, col;
};

/* Room for a formula and its end, see shape.mask and shape.score_mod of docs/scenarios.md. */
#define ASC_FORMULA_BYTES 256

/* What one run computes: O = softmax(scale Q Kt, capped, modified, biased, masked) V. Lengths in elements; the pointers
   are the debuggee's (device memory on a GPU) and NULL on attnscope's side. lse is always [batch][heads][q_len] f32. */
struct asc_problem {
    int32_t batch, heads, kv_heads, q_len, kv_len;
    int32_t head_dim;   /* of q and k */
    int32_t head_dim_v; /* of v and o; a kernel gets another one than head_dim only where its registration says so */
    /* 1: v is the first head_dim_v elements of each row of k, as MLA's latent is: the same array, with k's strides. */
    int32_t v_in_k;
    int32_t causal; /* enum asc_causal */
    int32_t layout; /* enum asc_layout, of q, k, v and o */
    int32_t dtype;  /* enum asc_dtype, of q */
    int32_t k_dtype, v_dtype;
    /* Of a tensor of codes: rows of a head, and elements of a row, that share a scale; 0: all of them. */
    int32_t scale_rows, scale_dims;
    int32_t scale_type; /* enum asc_scale_type, of the scales of q, k and v, as far as they are codes */
    /* Query i, whose diagonal key is i with ASC_CAUSAL_TOP_LEFT and i + kv_len - q_len otherwise, sees keys from
       diagonal - window_left to diagonal + window_right; -1: no limit on this side. */
    int32_t window_left, window_right;
    /* 1: beside its keys each query has a sink, a score of its head's own: its weight counts in l and lse, and it has
       no value. */
    int32_t has_sink;
    /* 1: the score of query i and key j gets a bias of -slope |diagonal - j|, slope being its head's. */
    int32_t has_alibi;
    int32_t bias_kind; /* enum asc_bias: the score gets bias[batch][head][i][j] */
    int32_t
        mask_kind; /* enum asc_bias: query i sees key j where mask[batch][head][i][j] is not 0, and all else lets it */
    int32_t keep_kind; /* enum asc_bias: with dropout, which dimensions `keep` has */
    /* 1: each sequence has a length of its own, from 0 to q_len or kv_len, see asc_q_len() and asc_kv_len(), which all
       that is said of q_len and kv_len is true of: the diagonal of a sequence is by its own lengths. With BHLD and BLHD
       the rows behind it hold NaN. */
    int32_t has_q_lens, has_kv_lens;
    /* Rows of a page of K and V; 0: no pages. k and v are then [pages][kv_heads][page_size][head_dim], or with BLHD and
       THD [pages][page_size][kv_heads][head_dim]: asc_strides_of(problem, kv_heads, page_size), a page in the place of
       a batch. Key j of a sequence is row j % page_size of page page_table[batch][j / page_size]. */
    int32_t page_size, pages;
    int32_t lie; /* enum asc_lie */
    /* 1: key j of a sequence is row kv_len - asc_kv_len() + j: the rows before it hold NaN. */
    int32_t left_pad;
    /* RoPE (enum asc_rope, ROPE_NONE: the next ones are 0): before they are multiplied, pair i of a row of q and k, (a,
       b), becomes (a cos - b sin, b cos + a sin), both of position * rope_base^(-2 i / rope_dim); elements from
       rope_dim on stay. Key j has the position rope_offset + j, a query that of its diagonal key: asc_query_position().
     */
    int32_t rope, rope_dim, rope_offset;
    float rope_base;
    /* A KV cache that the kernel appends to: the last new_keys keys of each sequence are k_new and v_new, which it
       writes into k and v, where NaN stands in their places, K turned where there is RoPE. The keys before them lie
       there already, turned. 0: k and v have all of them. */
    int32_t new_keys;
    float scale;
    /* Dropout: P.V takes the weight of query i and key j where keep[batch][head][i][j] is not 0, times 1 / (1 -
       dropout), and 0 elsewhere; m and l take all. 0: there is none. */
    float dropout;
    /* With ASC_SCALE_E4M3, of a tensor of codes: what all its scales are multiplied by. Else 0. */
    float q_tensor_scale, k_tensor_scale, v_tensor_scale;
    float softcap; /* a score is softcap tanh(scale q.k / softcap); 0: none */
    /* What the mask was made by, "": by no formula; what a score s behind the soft cap becomes, "": it stays. What a
       kernel computes of them stands in its code; here it may look whether that is what is asked for. */
    char mask_formula[ASC_FORMULA_BYTES], score_mod[ASC_FORMULA_BYTES];
    const void *q; /* [batch][heads][q_len][head_dim], or BLHD */
    const void *k; /* [batch][kv_heads][kv_len][head_dim], or BLHD */
    const void *v; /* as k, with head_dim_v in the place of head_dim; so is o */
    /* An element of type e4m3, e5m2, e2m1, s8 or u8 is a code: its value is that of its format, of u8 the code minus
       ASC_U8_MIDPOINT, times its scale, see asc_scale_of(). NULL where the tensor has another type. Two elements of
       type e2m1 share a byte: number i of an array, which all strides count, stands in byte i / 2, in its low half
       where i is even. */
    const float *q_scale; /* [batch][heads][asc_scale_groups(q_len)][asc_scale_parts(head_dim)] */
    const float *k_scale; /* [batch][kv_heads][asc_scale_groups(kv_len)][asc_scale_parts(head_dim)] */
    const float *v_scale; /* as k_scale, with head_dim_v in the place of head_dim */
    /* The same where scale_type is not ASC_SCALE_F32, of that type: then those are NULL, else these. */
    const uint8_t *q_scale_code, *k_scale_code, *v_scale_code;
    void *o; /* as q, of the kernel's own output type */
    float *lse;
    /* All of them in the unit of scale q.k, which is what a soft cap gives too. NULL: there is none. */
    const float *sink;   /* [heads] */
    const float *alibi;  /* [heads] slopes */
    const float *bias;   /* [batch or 1][heads or 1][q_len][kv_len], see asc_bias_strides() */
    const uint8_t *mask; /* as bias, see asc_mask_strides(): 1 or, where the key is hidden, 0 */
    const uint8_t *keep; /* the same, asc_keep_strides(): 1 or, where the weight is dropped, 0 */
    /* [batch]; NULL: all are q_len, or kv_len. attnscope's side has them too. */
    const int32_t *q_lens, *kv_lens;
    /* [batch + 1]: row i of a sequence is row cu_seqlens_q[batch] + i of q and o, key j row cu_seqlens_k[batch] + j of
       k and v without pages. NULL with another layout. */
    const int32_t *cu_seqlens_q, *cu_seqlens_k;
    int32_t total_q, total_k;  /* rows of q and o, and of k and v, with the layout THD: the ends of these */
    const int32_t *page_table; /* [batch][asc_table_pages()]; NULL without pages. Behind a sequence: an unused page */
    const int32_t *leftpad_k;  /* [batch]: the row of the first key; NULL without left_pad */
    /* With new_keys: [batch], how many keys of each sequence lie in the cache before, asc_cache_len();
       [batch][kv_heads] [new_keys][head_dim or head_dim_v], contiguous in the order of the layout, see
       asc_strides_of_new(); k and v, to write them there. With v_in_k v_new is k_new. NULL without. */
    const int32_t *cache_lens;
    const void *k_new, *v_new;
    void *k_cache, *v_cache;
    /* [asc_rope_rows()][rope_dim / 2] cos and sin of each position, from 0; NULL without RoPE. */
    const float *rope_cos, *rope_sin;
    /* Of the kernel's own arrays, whatever of the above they have; with pages of a page in the place of a batch. */
    struct asc_strides q_strides, k_strides, v_strides, o_strides;
    /* plan.workspace_bytes of device memory for what one launch leaves to the next, aligned to 256; nothing but
       never-written patterns before the first launch of a run. NULL: none was asked for. */
    void *workspace;
};

#define ASC_U8_MIDPOINT 128

/* What a kernel may call on the device too. */
#if defined(__CUDACC__) && !defined(SIMT_HOST)
#define ASC_INLINE static inline __host__ __device__
#else
#define ASC_INLINE static inline
#endif

/* How many groups of rows with scales of their own a head of so many rows has, and how many parts with scales of their
   own a row of so many elements. */
ASC_INLINE int32_t asc_scale_groups(const struct asc_problem *problem, int32_t rows)
{
    return problem->scale_rows > 0 ? (rows - 1) / problem->scale_rows + 1 : 1;
}

ASC_INLINE int32_t asc_scale_parts(const struct asc_problem *problem, int32_t cols)
{
    return problem->scale_dims > 0 ? (cols - 1) / problem->scale_dims + 1 : 1;
}

/* The number of a row's group in q_scale (heads, rows: the problem's heads, q_len), k_scale and v_scale (kv_heads,
   kv_len): its scale stands there, or with scale_dims the first of asc_scale_parts() of them so many times as far.
   Scales for each tensor or each head come as the same number at all their places. Rows are those of the sequence,
   whatever pages they lie in. */
ASC_INLINE int64_t asc_scale_at(const struct asc_problem *problem, int32_t heads, int32_t rows, int32_t batch,
                                int32_t head, int32_t row)
{
    return ((int64_t)batch * heads + head) * asc_scale_groups(problem, rows) +
           (problem->scale_rows > 0 ? row / problem->scale_rows : 0);
}
/* Where the scale of element d of a row of `cols` elements stands. */
ASC_INLINE int64_t asc_scale_of(const struct asc_problem *problem, int32_t heads, int32_t rows, int32_t cols,
                                int32_t batch, int32_t head, int32_t row, int32_t d)
{
    return asc_scale_at(problem, heads, rows, batch, head, row) * asc_scale_parts(problem, cols) +
           (problem->scale_dims > 0 ? d / problem->scale_dims : 0);
}

/* The lengths of a sequence, and how many pages of it the table names. */
ASC_INLINE int32_t asc_q_len(const struct asc_problem *problem, int32_t batch)
{
    return problem->q_lens ? problem->q_lens[batch] : problem->q_len;
}
ASC_INLINE int32_t asc_kv_len(const struct asc_problem *problem, int32_t batch)
{
    return problem->kv_lens ? problem->kv_lens[batch] : problem->kv_len;
}
/* How many of its keys lie in K and V before the launch. */
ASC_INLINE int32_t asc_cache_len(const struct asc_problem *problem, int32_t batch)
{
    return asc_kv_len(problem, batch) - problem->new_keys;
}
ASC_INLINE int32_t asc_table_pages(const struct asc_problem *problem)
{
    return problem->page_size > 0 ? (problem->kv_len - 1) / problem->page_size + 1 : 0;
}

/* The position of a query, see rope_offset; and how many positions the tables have: twice as many as there are, as a
   server's have more than it comes to. */
ASC_INLINE int32_t asc_query_position(const struct asc_problem *problem, int32_t batch, int32_t query)
{
    const int32_t corner =
        problem->causal == ASC_CAUSAL_TOP_LEFT ? 0 : asc_kv_len(problem, batch) - asc_q_len(problem, batch);
    return problem->rope_offset + query + corner;
}
ASC_INLINE int32_t asc_rope_rows(const struct asc_problem *problem)
{
    return 2 * (problem->rope_offset + (problem->q_len > problem->kv_len ? problem->q_len : problem->kv_len));
}
/* The elements of pair i. */
ASC_INLINE void asc_rope_pair(int32_t rope, int32_t rope_dim, int32_t i, int32_t pair[2])
{
    pair[0] = rope == ASC_ROPE_HALF ? i : 2 * i;
    pair[1] = rope == ASC_ROPE_HALF ? i + rope_dim / 2 : 2 * i + 1;
}

/* Strides of a tensor with `heads` heads of `rows` rows of `d` elements in the problem's layout. */
static inline struct asc_strides asc_strides_wide(const struct asc_problem *problem, int32_t heads, int32_t rows,
                                                  int64_t d)
{
    struct asc_strides s;
    if (problem->layout == ASC_BHLD) {
        s.row = d;
        s.head = d * rows;
    } else {
        s.row = d * heads;
        s.head = d;
    }
    s.batch = d * heads * rows;
    s.col = 1;
    return s;
}

/* Of q and k, whose rows have head_dim elements, and where head_dim_v is the same of v and o. */
static inline struct asc_strides asc_strides_of(const struct asc_problem *problem, int32_t heads, int32_t rows)
{
    return asc_strides_wide(problem, heads, rows, problem->head_dim);
}

/* Of v (kv_heads; kv_len, or page_size in pages) and o (heads, q_len). */
static inline struct asc_strides asc_strides_of_v(const struct asc_problem *problem, int32_t heads, int32_t rows)
{
    return asc_strides_wide(problem, heads, rows, problem->v_in_k ? problem->head_dim : problem->head_dim_v);
}
static inline struct asc_strides asc_strides_of_o(const struct asc_problem *problem, int32_t heads, int32_t rows)
{
    return asc_strides_wide(problem, heads, rows, problem->head_dim_v);
}

/* Of k_new and v_new. */
static inline struct asc_strides asc_strides_of_new(const struct asc_problem *problem, int of_v)
{
    return asc_strides_wide(problem, problem->kv_heads, problem->new_keys,
                            of_v && !problem->v_in_k ? problem->head_dim_v : problem->head_dim);
}

/* Where what has a value for each query and key, of enum asc_bias `kind`, begins for [b][h][i]; a stride is 0 along a
   dimension it has not. */
static inline struct asc_strides asc_pair_strides(const struct asc_problem *problem, int32_t kind)
{
    const int per_head = kind == ASC_BIAS_PER_HEAD || kind == ASC_BIAS_FULL;
    const int per_batch = kind == ASC_BIAS_PER_BATCH || kind == ASC_BIAS_FULL;
    const int64_t rows = problem->q_len, row = problem->kv_len;
    struct asc_strides s;
    s.row = row;
    s.head = per_head ? rows * row : 0;
    s.batch = per_batch ? rows * row * (per_head ? problem->heads : 1) : 0;
    s.col = 1;
    return s;
}
static inline struct asc_strides asc_bias_strides(const struct asc_problem *problem)
{
    return asc_pair_strides(problem, problem->bias_kind);
}
static inline struct asc_strides asc_mask_strides(const struct asc_problem *problem)
{
    return asc_pair_strides(problem, problem->mask_kind);
}

static inline struct asc_strides asc_keep_strides(const struct asc_problem *problem)
{
    return asc_pair_strides(problem, problem->keep_kind);
}

/* How many elements it has; 0: there is none. */
static inline uint64_t asc_pair_count(const struct asc_problem *problem, int32_t kind)
{
    const struct asc_strides s = asc_pair_strides(problem, kind);
    const uint64_t one = (uint64_t)problem->q_len * (uint64_t)problem->kv_len;
    const uint64_t heads = s.head ? (uint64_t)problem->heads : 1, batch = s.batch ? (uint64_t)problem->batch : 1;
    return kind == ASC_BIAS_NONE ? 0 : one * heads * batch;
}

static inline uint64_t asc_bias_count(const struct asc_problem *problem)
{
    return asc_pair_count(problem, problem->bias_kind);
}
static inline uint64_t asc_mask_count(const struct asc_problem *problem)
{
    return asc_pair_count(problem, problem->mask_kind);
}
static inline uint64_t asc_keep_count(const struct asc_problem *problem)
{
    return asc_pair_count(problem, problem->keep_kind);
}

/* How split KV deals the kv tiles to its states: ranges of asc_split_tiles() each, one after the other; tile t to state
   t % kv_splits; or as a table says for each (batch, head, q tile), see asc_kernel.state. */
enum asc_kv_deal { ASC_DEAL_RANGES, ASC_DEAL_ROUND_ROBIN, ASC_DEAL_MAP };

/* What columns of a value of the kernel's own are. */
enum asc_extent_of_cols { ASC_COLS_ONE, ASC_COLS_BC, ASC_COLS_HEAD_DIM, ASC_COLS_HEAD_DIM_V };

/* A value of the kernel's own, see ASC_VALUES. */
struct asc_value {
    char name[24]; /* "": there is none */
    int32_t cols;  /* enum asc_extent_of_cols; rows are those of the q tile */
    int32_t dtype; /* enum asc_dtype */
};

/* How a kernel tiles this problem: q tiles of br rows, kv tiles of bc rows. */
struct asc_plan {
    int32_t br, bc;
    /* 1: a plan function or host code gives as br the rows of a tile that holds queries of all heads of a kv head, and
       its probes stand behind ASC_AT_ROWS. Everywhere else br is asc_packed_br() then: the queries of one head. */
    int32_t packed;
    int32_t threads; /* per block, at most 1024 */
    /* Split KV, 0 or 1: none. The kv tiles are dealt to so many states, of blocks or of warps of one block: see
       asc_state_of(). Each has m, l and u of its own, which begin anew at the first tile that it visits; o and lse come
       from merging what the states end with, weighted by exp(m + ln l). A state without any key has l = 0 and weighs
       nothing. With ASC_DEAL_MAP: the most that any (batch, head, q tile) has. */
    int32_t kv_splits;
    int32_t kv_deal; /* enum asc_kv_deal */
    int32_t l_lanes; /* convention l_lanes, taken from the registration: a plan function leaves it alone */
    uint64_t workspace_bytes;
    struct asc_value value[ASC_OWN_CHANNELS]; /* taken from ASC_VALUES: a plan function leaves them alone */
    /* What the kernel promises on normal inputs: most that O is from float64 of the inputs as they were before anything
       was quantized. 0: nothing. `attnscope check KERNEL.cu` holds it to that. */
    float error_limit;
};

/* How many queries of one head a tile of `rows` packed rows has: those of a q tile of the trace lie in one tile of the
   kernel, so that it came to the same kv tiles with all of them. Where heads / kv_heads does not divide rows, tiles
   begin within a query, and one query alone is sure to. */
ASC_INLINE int32_t asc_packed_br(const struct asc_problem *problem, int32_t rows)
{
    const int32_t group = problem->kv_heads > 0 ? problem->heads / problem->kv_heads : 1;
    return group > 0 && rows % group == 0 ? rows / group : 1;
}

/* How many kv tiles a range has; the last ones may have fewer, or none. */
ASC_INLINE int32_t asc_split_tiles(int32_t kv_tiles, int32_t kv_splits)
{
    return kv_splits > 1 ? (kv_tiles - 1) / kv_splits + 1 : kv_tiles;
}

/* The state that kv tile `tile` of a sequence's `kv_tiles` belongs to, from 0; tiles behind the sequence belong to the
   last one's. states: what ASC_DEAL_MAP says of this (batch, head, q tile), by kv tile, a tile of nobody counting as
   state 0's; unused otherwise. Whatever judges, feeds, merges or shows asks here and nowhere else: another way to deal
   is another case here. */
ASC_INLINE int32_t asc_state_of(const struct asc_plan *plan, const int32_t *states, int32_t kv_tiles, int32_t tile)
{
    if (plan->kv_splits <= 1)
        return 0;
    if (plan->kv_deal == ASC_DEAL_ROUND_ROBIN)
        return tile % plan->kv_splits;
    if (tile >= kv_tiles)
        tile = kv_tiles > 0 ? kv_tiles - 1 : 0;
    if (plan->kv_deal == ASC_DEAL_MAP)
        return states && states[tile] >= 0 && states[tile] < plan->kv_splits ? states[tile] : 0;
    return tile / asc_split_tiles(kv_tiles, plan->kv_splits);
}

/* In which unit scores and maxima are captured, relative to the dot product q.k: times 1, scale, scale * log2(e). */
enum asc_unit { ASC_UNIT_RAW, ASC_UNIT_SCALED, ASC_UNIT_LOG2 };

enum asc_s_at { ASC_S_MASKED, ASC_S_BIASED, ASC_S_CAPPED, ASC_S_DOT };
enum asc_s_masked { ASC_MASKED_INFINITE, ASC_MASKED_VALUE, ASC_MASKED_UNTOUCHED };
enum asc_alibi_form { ASC_ALIBI_FLASH, ASC_ALIBI_DISTANCE };
enum asc_q_fold { ASC_FOLD_NONE, ASC_FOLD_SCALE, ASC_FOLD_LOG2 };
enum asc_m_policy { ASC_M_RUNNING, ASC_M_LAGGING, ASC_M_FIXED };
enum asc_m_empty { ASC_EMPTY_INFINITE, ASC_EMPTY_FINITE };
enum asc_alpha_first { ASC_ALPHA_ZERO, ASC_ALPHA_ONE, ASC_ALPHA_ONE_FIRST, ASC_ALPHA_NONE_FIRST };
enum asc_max_nan { ASC_MAX_DROPS, ASC_MAX_PROPAGATES };
enum asc_p_max { ASC_P_MAX_RUNNING, ASC_P_MAX_TILE };
enum asc_p_rounded { ASC_P_AS_RECORDED, ASC_P_F16, ASC_P_BF16, ASC_P_E4M3, ASC_P_E5M2, ASC_P_INPUT };
enum asc_l_from { ASC_L_UNROUNDED, ASC_L_ROUNDED };
enum asc_l_sink { ASC_SINK_NONE, ASC_SINK_START, ASC_SINK_END, ASC_SINK_M_START };
enum asc_u_phase { ASC_U_AFTER_PV, ASC_U_RESCALED };
enum asc_u_norm { ASC_U_NORM_END, ASC_U_NORM_TILE };
enum asc_dropout_factor { ASC_DROPOUT_AT_END, ASC_DROPOUT_AT_WEIGHTS };
enum asc_p_dropout { ASC_P_UNDROPPED, ASC_P_DROPPED };
enum asc_empty_row { ASC_EMPTY_GUARDED, ASC_EMPTY_COMPUTED };
enum asc_quantized { ASC_QUANTIZED_GIVEN, ASC_QUANTIZED_U8, ASC_QUANTIZED_E4M3, ASC_QUANTIZED_E5M2, ASC_QUANTIZED_S8 };
enum asc_quantized_by { ASC_BY_DIVISION, ASC_BY_RECIPROCAL };
enum asc_qk_descale { ASC_QK_OPERANDS, ASC_QK_PRODUCT, ASC_QK_FOLDED };
enum asc_v_descale { ASC_V_OPERANDS, ASC_V_PRODUCT, ASC_V_OUTPUT };
enum asc_kv_head_map { ASC_HEADS_GROUPED, ASC_HEADS_INTERLEAVED };
enum asc_accumulator {
    ASC_ACC_F32, /* scalar f32 in any order */
    ASC_ACC_MMA_F16,
    ASC_ACC_MMA_BF16,
    ASC_ACC_MMA_F16_F16, /* with f16 accumulator */
    ASC_ACC_MMA_E4M3,    /* sm_90: two HMMAs and an add */
    ASC_ACC_ADA_E4M3,
    ASC_ACC_WGMMA_E4M3, /* promoted or not */
    ASC_ACC_MMA,        /* as the type of q, k and v says: MMA_F16, MMA_BF16 or MMA_E4M3 */
    ASC_ACC_WGMMA_E4M3_F16
};

/* What a kernel means by its values, declared per channel and never guessed: each field, its choices and its default
   are listed in conventions.def. */
struct asc_conventions {
#define CONVENTION(name, type, kind, low, high, choices, names, by_default, otherwise) type name;
#include "probes/conventions.def"
#undef CONVENTION
};

/* The kv head that query head `head` reads. */
ASC_INLINE int32_t asc_kv_head(const struct asc_problem *problem, int32_t head, int32_t kv_head_map)
{
    return kv_head_map == ASC_HEADS_INTERLEAVED ? head % problem->kv_heads
                                                : head / (problem->heads / problem->kv_heads);
}

/* What a kernel may do with a score: add to it, hide it by a mask of any shape, compute a formula of it; and drop its
   weight. */
enum asc_addend { ASC_ALIBI, ASC_BIAS, ASC_MASK, ASC_SCORE_MOD, ASC_DROPOUT };

/* How sequences may be, beside all of one length in one piece: lengths of their own, keys in pages, keys that the
   kernel appends. */
enum asc_sequences { ASC_Q_LENS, ASC_KV_LENS, ASC_PAGES, ASC_LEFT_PAD, ASC_NEW_KEYS };

/* How Q, K, V and O may be, beside all of one width, each an array of its own, contiguous. STRIDES: the kernel goes by
   asc_problem.q_strides and the others, whatever these are but for col, which V_TRANSPOSED stands for. ROPE: it turns q
   and k by their positions. SCALE_DIMS: parts of a row of codes have scales of their own.
   SCALE_TYPES: scales are of another type than f32, see asc_problem.scale_type. */
enum asc_arrangement {
    ASC_HEAD_DIM_V,
    ASC_V_IN_K,
    ASC_STRIDES,
    ASC_TRANSPOSED_V,
    ASC_ROPE,
    ASC_SCALE_DIMS,
    ASC_SCALE_TYPES
};

/* A member of a set: ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16), ASC_SUPPORTS(BLHD), ASC_SUPPORTS(ALIBI). */
#define ASC_SUPPORTS(what) (1u << ASC_##what)

struct asc_run; /* run.h */
#if defined(__cplusplus) && !ASC_BUILD
/* Takes any function and compiles none of it: kernel.run in the user's own builds. */
struct asc_any_function {
    template <class Function> void operator=(Function) {}
};
#endif

/* A registration: what ASC_KERNEL fills in. Only plan and launch must be set, or run, br and bc. */
struct asc_kernel {
    const char *name;
    /* Fills *plan for this problem and returns NULL, or one sentence that says why the problem is not taken. */
    const char *(*plan)(const struct asc_problem *problem, struct asc_plan *plan);
    /* Launches on `stream` (a cudaStream_t; NULL on the CPU); returns NULL, or one sentence that says what failed. */
    const char *(*launch)(const struct asc_problem *problem, void *stream);
    /* Of a plan with ASC_DEAL_MAP: the state that a kv tile belongs to, 0 to plan->kv_splits - 1, in any order and with
       states left empty. Host code, asked before a launch; lengths of sequences and the page table are readable here,
       other arrays are not. kernel.run calls run.deal() instead. */
    int32_t (*state)(const struct asc_problem *problem, const struct asc_plan *plan, int32_t batch, int32_t head,
                     int32_t q_tile, int32_t kv_tile);
    /* In the place of both: calls the kernel's own host code, see run.h. Tiles are br x bc. */
#if defined(__cplusplus) && ASC_BUILD
    void (*run)(struct asc_run &run);
#elif defined(__cplusplus)
    asc_any_function run;
#else
    void (*run)(struct asc_run *run);
#endif
    int32_t br, bc;
    uint32_t dtypes;                     /* ASC_SUPPORTS() of enum asc_dtype it takes for q; default f16, and with
                                            run the types that it takes */
    uint32_t k_dtypes, v_dtypes;         /* the same for k and v; default 0: the type of q, no other */
    uint32_t layouts;                    /* ASC_SUPPORTS() of enum asc_layout it takes; default BHLD */
    uint32_t biases;                     /* ASC_SUPPORTS() of enum asc_addend; default none. Sinks: convention l_sink */
    uint32_t sequences;                  /* ASC_SUPPORTS() of enum asc_sequences; default none */
    uint32_t tensors;                    /* ASC_SUPPORTS() of enum asc_arrangement; default none */
    int32_t o_dtype;                     /* enum asc_dtype of the output; -1 (default): as the inputs */
    int32_t channel_dtype[ASC_CHANNELS]; /* enum asc_dtype a probe records; -1 (default): as channels.def says */
    /* kernel.no_lse is kernel.conventions.no_lse. */
    __extension__ union {
        struct asc_conventions conventions;
        __extension__ struct {
#define CONVENTION(name, type, kind, low, high, choices, names, by_default, otherwise) type name;
#include "probes/conventions.def"
#undef CONVENTION
        };
    };
};

/* One channel of a trace in memory: element (slot, kv, row, col) lies at
   base + slot * slot_stride + kv * kv_stride + (row * cols + col) * bytes of its type. Strides in bytes. */
struct asc_channel_map {
    uint64_t offset; /* of slot 0, kv tile 0, from the start of the trace */
    uint64_t slot_stride, kv_stride;
    int32_t rows, cols;
    int32_t n_kv;  /* 1 for a channel that exists once per slot */
    int32_t dtype; /* enum asc_dtype; -1: this channel is not recorded */
};

/* Stamps: one 64-bit clock per (slot, kv tile, warp) and channel, 0 = this warp never recorded here. */
struct asc_stamp_map {
    uint64_t offset; /* of slot 0, kv tile 0, warp 0 */
    uint64_t slot_stride, kv_stride;
    uint64_t writers, writers_slot_stride, writers_kv_stride; /* writers 0: none are kept */
};

/* Who recorded an element, beside the stamps: of each tile of a channel, u32 [ASC_WRITER_HEAD + rows * cols]. The head
   is blockIdx: x + 1, y, z; ASC_WRITER_BLOCKS in the place of x + 1: several blocks did. An element is 0 where nobody
   recorded it, else
   (number of the value in its probe + 1) << ASC_WRITER_NUMBER | (line of the probe mod 1024) << ASC_WRITER_LINE |
   thread of the block mod 1024. ASC_WRITER_SHARED in the place of the number: it lay in memory that threads share. */
#define ASC_WRITER_HEAD 4u
#define ASC_WRITER_BLOCKS 0xffffffffu
#define ASC_WRITER_LINE 10
#define ASC_WRITER_NUMBER 20
#define ASC_WRITER_SHARED 0xfffu
#define ASC_WRITER_FAR 0xffeu /* a number that has no room */
#define ASC_WRITER_SHARED_FROM                                                                                         \
    0x80000000u /* numbers of what lies in memory that threads share, until they are kept                              \
                 */

/* What the probes write through; the debuggee fills it before each launch and hands it to every module, by asc_bind().
 */
struct asc_device {
    unsigned char *trace;  /* the live trace, as the device sees it: where its values are */
    unsigned char *stamps; /* the same of its stamps, in the process's own memory */
    const int32_t *slot;   /* [batch][heads][q_tiles] -> slot number, -1 = not recorded */
    uint64_t *dropped;     /* [ASC_ALL_CHANNELS] values that had no place in the trace */
    uint64_t *mistyped;    /* [ASC_ALL_CHANNELS] values whose C++ type is not the channel's declared type */
    /* Feeding (ASC_MODE 2). */
    const unsigned char *fed; /* a second trace of the same layout, as the device sees it; NULL: nothing is fed */
    uint64_t *unfed;          /* [ASC_ALL_CHANNELS] values of fed channels that are const: not overwritten */
    uint32_t feed;            /* set of 1u << enum asc_channel */
    /* Shared memory behind the kernel's own dynamic bytes, for the probes of so many warps; ASC_LAUNCH says it. */
    uint32_t staging_offset, staging_warps;
    int32_t batch, heads, q_tiles, br, warps; /* br: queries of a q tile */
    struct asc_channel_map channel[ASC_ALL_CHANNELS];
    struct asc_stamp_map stamp[ASC_ALL_CHANNELS];
};

/* The probes of one translation unit: device code of one cannot see the variables of another, so that each has a state
   of its own. A constructor adds it to those that asc_bind() binds. */
struct asc_module {
    uint32_t abi; /* ASC_ABI_VERSION of the header it was compiled with */
    /* 0, or the CUDA error; -1 where probes that only record are asked to feed. */
    int (*bind)(const struct asc_device *device);
    /* Tells staging_offset and staging_warps alone; 0, or the CUDA error. NULL on the CPU. */
    int (*stage)(const uint32_t window[2]);
    struct asc_module *next;
};

/* The same where no debuggee binds it (record.h): what an ELF note of type 1, named "attnscope", says the place of. */
struct asc_noted_module {
    uint32_t abi, state_bytes;      /* ASC_ABI_VERSION, sizeof(struct asc_device) */
    int32_t mode;                   /* ASC_MODE */
    int32_t bound;                  /* 1: a capture wants what its probes record, on whatever device; see ASC_TWICE */
    const char *file;               /* of the translation unit, as its compiler was given it */
    const char *values;             /* what its ASC_VALUES declares; NULL: nothing */
    int (*address)(void **address); /* of its struct asc_device on the current device; 0, or the CUDA error */
};

/* A warp's window of shared memory, see staging.h, and a bit for each two bytes of it. */
#define ASC_STAGE_BYTES 2048u
#define ASC_STAGE_ROOM (ASC_STAGE_BYTES + 128u)

/* What a debuggee offers. asc_stage: to every module; -1: there is none with probes that record. asc_launch_failure:
   after a launch that failed with a cudaError_t, a sentence that sets what was asked for against what is allowed. */
#ifdef __cplusplus
extern "C" {
#endif
void asc_module_add(struct asc_module *module);
int asc_stage(const uint32_t window[2]);
const char *asc_launch_failure(int status);
#ifdef __cplusplus
}
#endif

#endif
