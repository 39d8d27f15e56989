/* The oracle: arrays in, verdicts out. It knows no files, no traces, no kernel names.
   Global: captured against the float64 reference from the original inputs: how wrong is it.
   Local: captured against float64 arithmetic on what this run captured upstream: is this stage the culprit.
   An element passes when error <= bound, a bound derived from the arithmetic (bound.h); NaN never passes. */
#ifndef ORACLE_ORACLE_H
#define ORACLE_ORACLE_H

#include "engine/base/dtype.h"
#include "engine/trace/rope.h"
#include "probes/abi.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Saved verdicts of another version are recomputed. */
#define ORACLE_VERSION 1

/* What an element, a tile or a head comes to (statuses.def): the classes of judged elements, then the others. */
enum tile_status {
#define CLASS(id, name, utf8, ascii, style, meaning) id,
#define STATUS(id, name, glyph, style, meaning) id,
#include "engine/oracle/statuses.def"
#undef CLASS
#undef STATUS
    STATUS_COUNT,
    CLASS_COUNT = CLASS_EXTRA + 1
};

/* A matrix in memory: element (r, c) is data[r * row_stride + c], strides in elements. */
struct matrix {
    const void *data; /* NULL: absent */
    enum dtype dtype;
    int64_t row_stride;
    int rows, cols;
};

/* Biases that a kernel may take for those of its head and sequence: neighbors are counted round within the batch. */
enum {
    OTHER_BIAS_PREVIOUS_HEAD,
    OTHER_BIAS_NEXT_HEAD,
    OTHER_BIAS_KV_HEAD,
    OTHER_BIAS_KV_HEAD_IN_TURN,
    OTHER_BIAS_FIRST_HEAD,
    OTHER_BIAS_FIRST_BATCH, /* the same head of another sequence */
    OTHER_BIAS_PREVIOUS_BATCH,
    OTHER_BIAS_NEXT_BATCH,
    OTHER_BIASES
};

/* How the elements of an input are codes: element (r, c) stands for its code's value (values_code) times the scale of
   row first + r of its head and of its part of the row. */
struct coding {
    const float *scale; /* [groups][parts] of this head; NULL: the elements are values */
    int groups, rows;   /* rows of the head that share a scale; 0: all of them */
    int parts, dims;    /* elements of a row that share one; 0: all of them */
    float tensor;       /* what every scale is multiplied by besides: 1, but of scales that are e4m3 */
    int scale_type;     /* enum asc_scale_type */
    int first;          /* row of the head that the matrix begins with */
    int quantized; /* enum asc_quantized: the elements are values, which the launch makes into codes by these scales */
};

struct expression;

/* What a verdict is asked about: one (batch, head, q tile) of a run. */
struct oracle_case {
    /* As the float the kernel was given; where Q and K are multiplied as codes and S is in their unit (convention
       qk_descale), times the scales of both: see codes_fold. */
    double scale;
    double softcap;                /* 0: none */
    int causal;                    /* enum asc_causal */
    int window_left, window_right; /* keys beside the diagonal; -1: no limit */
    /* Score of a sink beside the keys, slope of ALiBi, [valid rows of this q tile][kv_len] of the bias (data NULL:
       none); all in natural units, those of scale q.k. */
    bool has_sink;
    double sink, alibi_slope;
    struct matrix bias;
    /* u8 [valid rows of this q tile][kv_len], 0 where a key is hidden whatever else lets it be seen; data NULL: none.
     */
    struct matrix mask;
    /* The masks of all heads and sequences; NULL: none. masks_at: from one sequence, head, row to the next. */
    const uint8_t *masks;
    struct asc_strides masks_at;
    /* The same: 0 where dropout, of this probability, drops the weight. */
    struct matrix keep;
    const uint8_t *keeps;
    struct asc_strides keeps_at;
    double dropout;
    const char *mask_formula, *score_formula; /* what mask and score_mod were made of; "" or NULL: not known */
    const struct expression *score_mod;       /* what a score becomes behind the soft cap; NULL: it stays */
    int32_t place[2];                         /* batch, head */
    struct matrix other_bias[OTHER_BIASES];   /* as bias, from elsewhere; data NULL: that is this very one */
    int kv_splits, kv_deal;                   /* as in struct asc_plan */
    const int32_t *states;                    /* [kv_tiles + 1] as a trace has them; NULL unless ASC_DEAL_MAP */
    int q_len, kv_len, head_dim, head_dim_v, br, bc;
    int new_keys; /* of kv_len the last ones, which the kernel appends to its cache */
    int q_tile;
    int o_dtype; /* enum dtype of the output */
    struct asc_conventions conventions;
    uint32_t cores;           /* set of 1u << enum tensor_core whose bits may be asked for; 0: any */
    uint32_t known_cores;     /* the same set, of those that have computed it; 0: bounds take the loosest */
    struct matrix in_q;       /* [valid rows of this q tile][head_dim], the original input */
    struct matrix in_k, in_v; /* [kv_len][head_dim or head_dim_v], of the kv head this head reads */
    struct coding q_codes, k_codes, v_codes; /* of in_q, in_k, in_v */
    /* in_q and in_k are what RoPE makes of the inputs, f32: as was done, the position of the first row of each, and the
       type of the inputs. */
    struct rope rope;
    int q_position, k_position;
    enum dtype turned_type;
    int kv_tiles;
    /* Captured, valid region only (rows < q_len, keys < kv_len); data NULL where the channel is not recorded.
       captured[kv * ASC_CHANNELS + ch]; channels that exist once per slot stand at kv 0. */
    const struct matrix *captured; /* [kv_tiles][ASC_CHANNELS] */
    /* The types of the channels whether they are captured here or not: enum dtype, -1: unknown. NULL: all are. */
    const int32_t *types; /* [ASC_CHANNELS] */
    /* Padding columns of s (keys >= kv_len) in valid rows: what stands there must be masked. data NULL: no padding. */
    const struct matrix *s_padding; /* [kv_tiles], or NULL: no tile has padding */
    /* The same of p: no weight may stand there. And the padding rows of v: what is not finite there makes U so. */
    const struct matrix *p_padding, *v_padding; /* [kv_tiles], or NULL: not looked at */
    /* What the kernel went on with where a probe overwrote its value after capturing it: an element is the fed one
       where one was written, else the captured one. Same shapes, data NULL: not fed. NULL: nothing is. */
    const struct matrix *fed;           /* [kv_tiles][ASC_CHANNELS] */
    const struct matrix *fed_s_padding; /* [kv_tiles]; goes with fed */
    const int *order; /* [n_visited] kv tiles in the order the kernel visited them; how splits mix does not matter */
    int n_visited;
    const struct fingerprint *fingerprint; /* which tensor core the run used (fingerprint.h); NULL: bounds decide */
};

/* Elements of a row of q and k, or of v, u and o; and of the longer one. */
static inline int oracle_dim(const struct oracle_case *c, enum asc_channel ch)
{
    return ch == asc_v || ch == asc_u || ch == asc_o ? c->head_dim_v : c->head_dim;
}
static inline int oracle_widest(const struct oracle_case *c)
{
    return c->head_dim_v > c->head_dim ? c->head_dim_v : c->head_dim;
}

/* One channel of one tile, judged one way (locally or globally). */
struct verdict {
    uint32_t count[CLASS_COUNT];
    uint32_t unjudged; /* elements of no class: STATUS_UNJUDGED */
    bool judged : 1;   /* false: not recorded, or no element of it can be judged */
    bool visited : 1;  /* the kernel recorded here */
    bool masked : 1;   /* no element of this tile may contribute: nothing is expected here */
    bool likely : 1;   /* of O and LSE: a bound of likely.h was narrower than the worst case's in some element */
    bool unusual : 1;  /* of O: errors that are not of the size of roundings, struct output_noise */
    /* 1 + enum tensor_core: elements had to equal what this one gives, bit for bit. 0: the bound decided. */
    uint8_t exact;
    uint32_t unequal; /* elements that do not and were not blamed: they are within the bound, and so are all around */
    /* Of the first element with the largest error/bound (non-finite ones count as inf). In s and p, a column at or
       beyond the valid ones is padding that holds something; in v, a row. */
    int16_t worst_row, worst_col;
    float worst_ratio; /* error / bound there */
    float mean_error;  /* signed mean of got - want over finite pairs */
    /* got / want over evenly spaced elements: median and interquartile range; NaN where nothing can be divided */
    float ratio_median, ratio_spread;
};

bool verdict_ok(const struct verdict *v); /* judged, and every element that could be is CLASS_OK */
uint32_t verdict_bad(const struct verdict *v);
double verdict_worst(const struct verdict *v); /* worst_ratio; NaN where an element is NaN or was never written */
bool class_bad(int element_class);             /* judged, and not CLASS_OK */

struct tile_verdicts {
    struct verdict local, global;
};

/* Every element of one tile, for a view; or of one tile after the other, for `each`. Arrays are [rows][cols] of the
   channel's valid region. */
struct tile_detail {
    int channel, kv; /* in: which tile; with `each`, out */
    /* NULL: that tile alone. Else called for every tile that is judged, as soon as it is; the arrays have room for the
       largest. l of several lanes comes as what they add up to. */
    void (*each)(void *ctx, const struct tile_detail *d);
    void *ctx;
    int rows, cols; /* out */
    double *got, *want_local, *bound_local, *want_global, *bound_global;
    uint8_t *class_local, *class_global; /* enum tile_status */
};

/* Makes the arrays, of n elements. -1: memory ran out, and there is nothing to free. */
int tile_detail_make(struct tile_detail *d, size_t n);
void tile_detail_free(struct tile_detail *d); /* of a zeroed one: legal */

/* Working memory of one thread; grows as needed. NULL where memory ran out. */
struct judge_scratch;
struct judge_scratch *judge_scratch_new(void);
void judge_scratch_free(struct judge_scratch *s);
/* ask(ctx) is called at every kv tile that a walk over a slot comes to; nonzero ends the walk, and what was called then
   returns -1 as if memory had run out. NULL: nobody asks. */
void judge_scratch_watch(struct judge_scratch *s, int (*ask)(void *ctx), void *ctx);

/* Judges every tile of the case: out[kv * ASC_CHANNELS + ch] (slot channels at kv 0). detail may be NULL.
   Returns 0, or -1 where memory ran out. */
int judge_case(const struct oracle_case *c, struct judge_scratch *scratch, struct tile_verdicts *out,
               struct tile_detail *detail);
/* The same walk for what each(ctx, tile) makes of every tile alone. */
int judge_each(const struct oracle_case *c, struct judge_scratch *scratch,
               void (*each)(void *ctx, const struct tile_detail *d), void *ctx);

/* How far O of a q tile of long rows lies from the reference, beside what roundings are expected to do: errors well
   within their bounds that are not of the size of roundings. A tile like that is worth a look, and not wrong for it. */
struct output_noise {
    bool known;        /* rows are long enough, see likely.h */
    int keys;          /* that its last row sees */
    double slope;      /* what O errs by in proportion to itself */
    double low, high;  /* between these it is expected */
    double ratio;      /* root mean square of what is left of the errors, to what is expected of it */
    double row, limit; /* the same of the worst row; beyond this it is unusual */
};
/* Of the case that was judged last. */
const struct output_noise *judge_noise(const struct judge_scratch *s);
bool noise_unusual(const struct output_noise *n);

/* The bound of a channel's elements, in one line (shown beside a value), as its declarations make it, and
   the cores that are known to have computed it (struct oracle_case). */
void bound_formula(enum asc_channel ch, const struct asc_conventions *declared, uint32_t known_cores, int head_dim,
                   int bc, char *out, size_t bytes);

#endif
