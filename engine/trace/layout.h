/* Where everything lies in a live trace: a pure function of problem, plan, types and slots.

   The memfd holds, in this order, each part aligned to ASC_ALIGN bytes:
     struct live_header | inputs q k v | outputs o lse | sink, alibi, bias, mask, scales and given values, where there
   are any | lengths, page table and states, where there are any | slots [n][3] i32 | slot index [B][H][q_tiles] i32 |
   dropped, mistyped [ASC_CHANNELS] u64 | stamps of each channel, [slots][kv tiles][warps] u64 | writers of each
   channel, [slots][kv tiles] as abi.h says, where they are kept | values of each channel, [slots][kv tiles][rows][cols]
   so that all values lie behind everything else, as one piece: they may be written in another memory and come here
   afterwards, while the stamps are always written here. A tile begins at a multiple of ASC_TILE_ALIGN bytes. */
#ifndef TRACE_LAYOUT_H
#define TRACE_LAYOUT_H

#include "engine/base/dtype.h"
#include "engine/base/err.h"
#include "probes/abi.h"
#include <stdbool.h>

#define ASC_ALIGN 128u
#define ASC_TILE_ALIGN 16u /* the widest store of a thread */

/* No kernel holds more in shared memory and registers; the oracle's working memory is sized by them. */
#define ASC_TILE_MAX 1024 /* rows of a q tile, keys of a kv tile */
#define ASC_HEAD_DIM_MAX 16384
/* Of any dimension of a shape, and of a window's side: three of them, and a tile, add up in int. */
#define ASC_LENGTH_MAX (1 << 24)
#define ASC_SPLITS_MAX 65535                  /* blocks along one side of a grid */
#define ASC_HEADER_BYTES 4096u                /* room for struct live_header */
#define ASC_WORKSPACE_MAX (UINT64_C(1) << 46) /* bytes; more than any device has */

/* One tensor of the inputs or outputs: bytes at offset from the start of the trace. */
struct layout_part {
    uint64_t offset, bytes;
    int32_t dtype;
    int32_t unused; /* 0: a live header has no padding, whose bytes nobody would set */
};

struct layout {
    struct layout_part q, k, v, o, lse;
    struct layout_part sink, alibi, bias;         /* f32; 0 bytes where the problem has none */
    struct layout_part mask, keep;                /* u8, 0 or 1; 0 bytes as above */
    struct layout_part q_scale, k_scale, v_scale; /* f32, of a tensor of codes; 0 bytes where it holds none */
    struct layout_part q_given, k_given, v_given; /* f16: what codes were made from; 0 bytes as above */
    /* i32 [batch], [batch], [batch][asc_table_pages()]; 0 bytes where the problem has none. q, k, v and o are [batch]
       and padded to q_len and kv_len whatever a kernel gets: THD lies as BLHD does. */
    struct layout_part q_lens, kv_lens, page_table;
    /* With ASC_DEAL_MAP i32 [batch][heads][q_tiles][kv_tiles + 1]: the state of each kv tile, -1: of nobody; last how
       many states there are, empty ones too, -1: none. 0 bytes where tiles are dealt otherwise. */
    struct layout_part states;
    struct layout_part slots;      /* [n_slots][3] i32: batch, head, q tile */
    struct layout_part slot_index; /* [batch][heads][q_tiles] i32 */
    struct layout_part dropped, mistyped;
    uint64_t stamps_offset, values_offset, total_bytes; /* stamps and writers, then values to the end */
    int32_t n_slots, q_tiles, kv_tiles, warps;
    struct asc_channel_map channel[ASC_ALL_CHANNELS];
    struct asc_stamp_map stamp[ASC_ALL_CHANNELS];
};

/* Static facts of channels.def; of a kernel's own values the plan knows the name. */
const char *channel_name(enum asc_channel ch);  /* "alpha" */
const char *channel_label(enum asc_channel ch); /* "α" */
const char *channel_meaning(enum asc_channel ch);
const char *channel_formula(enum asc_channel ch);
int channel_from_name(const char *name);  /* enum asc_channel, or -1 */
bool channel_per_kv(enum asc_channel ch); /* exists per kv tile; false: once per q tile */

/* The same of the kernel's own values too, by their names. */
const char *plan_channel_name(const struct asc_plan *plan, enum asc_channel ch);
const char *plan_channel_label(const struct asc_plan *plan, enum asc_channel ch);
int plan_channel_from_name(const struct asc_plan *plan, const char *name); /* enum asc_channel, or -1 */
int plan_values(const struct asc_plan *plan);                              /* how many of its own it has */
static inline bool channel_is_own(enum asc_channel ch)
{
    return (int)ch >= ASC_CHANNELS;
}

/* Shape of a channel's tile for a plan, padding included. */
int channel_rows(enum asc_channel ch, const struct asc_plan *plan);
int channel_cols(enum asc_channel ch, const struct asc_plan *plan, const struct asc_problem *problem);
size_t channel_largest_tile(const struct asc_plan *plan,
                            const struct asc_problem *problem); /* elements, of any channel */
/* How many of those rows and columns exist in a sequence (tails): 0 < valid <= full for tiles inside it. */
int channel_valid_rows(enum asc_channel ch, const struct asc_problem *p, const struct asc_plan *plan, int batch,
                       int q_tile, int kv);
int channel_valid_cols(enum asc_channel ch, const struct asc_problem *p, const struct asc_plan *plan, int batch,
                       int kv);

/* What each channel holds: dtype[ch] is an enum dtype, or -1 where the channel is not recorded. What it says of a value
   that the plan does not name says nothing. */
struct layout_types {
    int32_t o; /* enum dtype of the output */
    int32_t channel[ASC_ALL_CHANNELS];
    int32_t writers; /* 1: who recorded each element is kept too */
    int32_t unused;  /* 0, as above */
};

/* Bytes one slot takes, at least 1; and the layout for n_slots slots. ERR_INPUT where a length is not positive, heads
   is not a multiple of kv_heads, or a size passes 2^63: nothing here can overflow unnoticed. */
int layout_slot_bytes(const struct asc_problem *p, const struct asc_plan *plan, const struct layout_types *types,
                      uint64_t *bytes, struct err *err);
int layout_make(const struct asc_problem *p, const struct asc_plan *plan, const struct layout_types *types, int n_slots,
                struct layout *out, struct err *err);

/* Whether who recorded each element is kept (abi.h). */
bool layout_keeps_writers(const struct layout *l);

/* What it was made with. */
struct layout_types layout_types_of(const struct layout *l);

/* The ranges of the values, from l->values_offset to the end, and what stands there before a run. Returns how many. */
int layout_unwritten(const struct layout *l, struct unwritten_part out[ASC_ALL_CHANNELS]);

/* By enum asc_causal, asc_layout, asc_lie, asc_bias, asc_rope, asc_kv_deal, asc_scale_type, then NULL: as scenarios and
   saved traces write them. */
extern const char *const problem_causal_names[],
    *const problem_layout_names[], *const problem_lie_names[], *const problem_bias_names[],
                                                                   *const problem_rope_names[],
                                                                       *const plan_deal_names[],
                                                                           *const problem_scale_type_names[];

/* Where the probes write on a GPU; memory_names: by it, then NULL. */
enum memory_kind {
    MEMORY_AUTO, /* MEMORY_GUARD where that can be had, else MEMORY_PINNED */
    MEMORY_PINNED,
    MEMORY_DEVICE, /* gone with the kernel's process */
    MEMORY_GUARD   /* device memory that another process owns */
};
extern const char *const memory_names[], *const memory_meanings[]; /* "guard"; "device memory that a guardian keeps" */

/* " head_dim_v 512 padded left_pad rope half 64 new_keys 3 V in K sink alibi attention bias mask score_mod varlen pages
 * of 16 splits 4 round-robin": what of that a run has; "" for none. */
enum { TERMS_BYTES = 224 };
void problem_terms(const struct asc_problem *p, const struct asc_plan *plan, char text[TERMS_BYTES]);

/* "f16", or of Q, K and V where they differ "f16/e4m3/u8". */
enum { TYPES_BYTES = 16 };
void problem_types(const struct asc_problem *p, char text[TYPES_BYTES]);

/* One of q, k, v and o as a trace has it: [batch][heads][rows][cols], where the strides say. */
enum problem_tensor_id { TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_O };
struct problem_tensor {
    int heads, rows, cols;
    enum dtype dtype;    /* of o: the input's; its own is problem_o_dtype() */
    const int32_t *lens; /* [batch] rows of each sequence; NULL: all have `rows` */
    struct asc_strides stride;
};
struct problem_tensor problem_tensor(const struct asc_problem *p, enum problem_tensor_id id);
enum problem_tensor_id problem_tensor_of(enum asc_channel ch); /* of q, k, v and o */
/* Elements of all of it; rows of a sequence of it. */
size_t problem_tensor_count(const struct asc_problem *p, enum problem_tensor_id id);
static inline int problem_tensor_rows(const struct problem_tensor *t, int batch)
{
    return t->lens ? t->lens[batch] : t->rows;
}
static inline int64_t problem_tensor_at(const struct problem_tensor *t, int64_t batch, int64_t head, int64_t row)
{
    return t->stride.batch * batch + t->stride.head * head + t->stride.row * row;
}

/* The type of the scales; and what a tensor's are multiplied by besides, 1 where there is no such scale. */
enum dtype problem_scale_dtype(const struct asc_problem *p);
float problem_tensor_scale(const struct asc_problem *p, enum problem_tensor_id id);

/* The problem without its arrays. */
struct asc_problem problem_bare(const struct asc_problem *p);

/* Whether q, k or v holds codes. */
bool problem_has_codes(const struct asc_problem *p);
/* The type of the output that a registration declares (asc_kernel.o_dtype); -1: as q, f16 where that holds codes. */
int problem_o_dtype(const struct asc_problem *p, int declared);

/* Checks that a problem's numbers are possible at all (layout_make does it too). `where` names their origin. */
int problem_check(const struct asc_problem *p, const char *where, struct err *err);
/* The part of it about lie and left_pad, and what they do not go with; that about RoPE; about keys that the kernel
   appends. */
int problem_check_lie(const struct asc_problem *p, const char *where, struct err *err);
int problem_check_rope(const struct asc_problem *p, const char *where, struct err *err);
int problem_check_new_keys(const struct asc_problem *p, const char *where, struct err *err);

#endif
