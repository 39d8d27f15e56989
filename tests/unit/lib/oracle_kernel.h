/* A streaming-softmax kernel in plain C f32, with or without a mistake, recorded the way probes record: what the oracle
   is tried on. One q tile of one head. */
#ifndef TESTS_ORACLE_KERNEL_H
#define TESTS_ORACLE_KERNEL_H

#include "engine/base/quantize.h"
#include "engine/base/tensor_core.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/product.h"
#include "engine/trace/layout.h"
#include "tests/unit/lib/kernel_data.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum summing { SUM_FORWARD, SUM_BACKWARD, SUM_LANES };

enum mistake {
    RIGHT,
    /* listed causes */
    S_SCALED_TWICE,
    S_NOT_SCALED,
    S_K_NOT_TRANSPOSED,
    /* other mistakes of scores */
    S_SCALE_AND_HALF,
    S_SIGN,
    S_ROUNDED_F16,
    S_PLUS_MILLI,
    S_LAST_PRODUCT,
    S_RESULT_TRANSPOSED,
    S_NEIGHBOR_TILE,
    S_NEXT_KEY,
    S_HALF_OF_D,
    S_Q_ROUNDED_BF16,
    S_ABSOLUTE,
    S_F16_ACCUMULATOR,
    S_SCALED_THRICE,
    S_SQUARED,
    S_CAUSAL_OFF_BY_ONE,
    S_TAIL_COUNTED,
    P_TAIL_COUNTED, /* S is masked there, P is 0.5 */
    /* later stages */
    M_PARTIAL,
    ALPHA_INVERTED,
    P_BASE_2,
    L_ALPHA_FORGOTTEN,
    L_ALPHA_TWICE,
    L_PREVIOUS_KEPT,
    U_KEY_MISSING,
    U_ALPHA_FORGOTTEN,
    U_ALPHA_TWICE,
    O_UNNORMALIZED,
    O_TRUNCATED,
    LSE_BASE_2,
    M_LEFT_BEHIND, /* P stands on the new maximum, m does not */
    M_TOO_LOW,     /* by 100 on the first tile */
    WINDOW_OFF_BY_ONE,
    SOFTCAP_FORGOTTEN,
    K_ROW_SWAPPED,
    V_ELEMENT_LOST,
    MISTAKES,
    /* of kernels whose P stands on its tile's maximum, or whose U is divided by l after every tile */
    L_BETA_FORGOTTEN,
    U_BETA_FORGOTTEN,
    U_PREVIOUS_L,  /* divided by l before this tile */
    U_L_PREV_LEFT, /* the old U is not taken back to what it was before it was divided */
    P_RUNNING_MAX, /* against m, where the tile's maximum is declared, taken in as if it were */
    U_UNGUARDED    /* 0 / 0 in rows that have seen no key */
};

/* Mistakes about sinks, biases and splits. */
enum wrong_term {
    TERMS_RIGHT,
    SINK_FORGOTTEN,
    SINK_UNSCALED,       /* taken as a raw score */
    SINK_IN_EVERY_SPLIT, /* each begins with it */
    BIAS_FORGOTTEN,
    BIAS_NEXT_ROW,
    BIAS_SCALED, /* added before the scale */
    ALIBI_SIGN,
    ALIBI_TOP_LEFT, /* distances from the other diagonal */
    SPLIT_STATE_KEPT,
    SPLIT_EQUAL_WEIGHTS,
    SPLIT_LAST_LOST,
    SPLIT_UNGUARDED,     /* -inf - -inf where no split has a key */
    SINK_WITHOUT_WEIGHT, /* m begins at it, l at 0 */
    SINK_NOT_IN_LSE,
    BIAS_DIVIDED, /* by the scale */
    ALIBI_FORGOTTEN,
    ALIBI_NEXT_SLOPE,   /* of 8 heads */
    MERGE_BASE_2,       /* splits' lse are natural */
    MERGE_BASE_E,       /* to base 2 */
    MERGE_WITHOUT_L,    /* exp(m) */
    MERGE_NOT_DIVIDED,  /* u for o */
    MERGE_EMPTY_COUNTS, /* lse 0 where no key is */
    MERGE_UNWEIGHTED,
    MERGE_FIRST,       /* the first split alone */
    MERGE_NOT_SHIFTED, /* exp(lse), whatever lse is */
    BIAS_OTHER_HEAD
};

/* Mistakes about codes and their scales, in one operand. */
enum wrong_codes {
    CODES_RIGHT,
    SCALE_MISSING,
    SCALE_TWICE,
    SCALE_OF_GROUP_BEHIND,
    SCALE_OF_HEAD_BEHIND,
    SCALE_OF_FIRST_HEAD,
    SCALE_LARGEST,
    SCALE_OF_Q,
    SCALE_OF_K,
    SCALE_HALF,     /* no known cause */
    ZERO_POINT_OFF, /* each code counts `zero_point` more */
    OTHER_FORMAT,   /* each is decoded as of type `format` */
    ZERO_GROUP_UNGUARDED
};

/* Mistakes that make values that are no finite numbers. */
enum wrong_number {
    NUMBERS_RIGHT,
    EXP_UNGUARDED,  /* exp(-inf - -inf) in rows that have seen no key */
    O_UNGUARDED,    /* 1 / l whatever l is */
    LOG_UNGUARDED,  /* ln 0 */
    L_NEVER_ZEROED, /* l of row unreal_row begins as shared memory does */
    INPUT_UNREAL    /* element (unreal_row, unreal_col) of input unreal_of holds unreal_bits */
};

struct spec {
    int q_len, kv_len, head_dim, br, bc, q_tile;
    enum asc_causal causal;
    int has_window, window_left, window_right; /* has_window 0: no window */
    float softcap, scale;                      /* scale 0: 1/sqrt(head_dim) */
    double tanh_error;                         /* relative error of every tanh */
    enum dtype dtype, o_dtype, p_dtype;        /* 0 is f16: inputs, output, recorded P */
    int converts;                              /* 1: the kernel rounds its inputs to `used` first */
    enum dtype used;
    struct asc_conventions conventions;
    enum fill fill;
    enum summing summing;
    int reversed;        /* visits kv tiles from the last to the first */
    int visits_masked;   /* visits tiles that no row sees */
    int skip;            /* leaves out this many kv tiles at the end of its walk */
    int folded;          /* natural units: exp2(fma(s, log2 e, -m log2 e)) */
    int v_padding_nan;   /* V's rows beyond kv_len are NaN instead of 0 */
    int skips_padding;   /* and P.V leaves them out */
    double exp_error;    /* relative error of every exponential, on top of expf's own */
    unsigned unrecorded; /* set of 1u << channel */
    int core;            /* 1 + enum tensor_core that multiplies; 0: f32, in the order that `summing` says */
    int join;            /* how a tensor core's P V comes to alpha u_prev: enum product_join */
    enum mistake mistake;
    int has_sink;
    float sink, alibi_slope;
    double bias_sigma; /* 0: no bias */
    /* 1: the inputs are codes of type dtype, with scales; with the convention `quantized` the kernel makes its own. */
    int coded;
    int scale_rows;
    int scales_late; /* 1: a product of codes gets Q's scale, then K's, then the factor */
    int zero_rows;   /* so many rows of each input, from the first one, are zero */
    enum wrong_codes wrong_codes;
    enum asc_channel wrong_operand; /* q, k or v */
    float zero_point;
    unsigned counts_from_zero; /* set of 1 Q, 2 K: their codes of u8 are multiplied without their zero point */
    enum dtype format;
    int kv_splits, kv_deal;
    int merges_lse; /* each split gives o and lse; else m, l and u are merged as such */
    enum wrong_term wrong_term;
    enum wrong_number wrong_number;
    enum asc_channel unreal_of;
    int unreal_row, unreal_col;
    uint32_t unreal_bits;
    unsigned seed;
    unsigned negated; /* set of 1 Q, 2 V: the inputs' negatives */
};

struct kernel_run {
    struct spec spec;
    struct oracle_case c;
    struct matrix *captured, *padding; /* owned */
    void **arrays;                     /* owned, [kv_tiles][ASC_CHANNELS]: full tiles, or NULL */
    int *order;                        /* owned */
    int last_kv;                       /* the tile computed last, or -1 */
    void *q, *k, *v;                   /* owned, inputs: [q_len][D], [kv_len][D] */
    float *bias;                       /* owned, [2][q_len][kv_len]: this head's and the next one's, or NULL */
    float *scales[3][2];               /* owned, of q, k and v: their own, and those of another head; NULL: no codes */
    float scale;
    struct tile_verdicts *out; /* owned */
};

enum dtype run_dtype(const struct spec *s, enum asc_channel ch);
void *run_array(const struct kernel_run *run, enum asc_channel ch, int kv);
/* Element i of an input as the kernel uses it. */
float run_input(const struct kernel_run *run, enum asc_channel ch, size_t i);
struct kernel_run *kernel_run(const struct spec *s);
void kernel_run_free(struct kernel_run *run);
/* Stages with a bad element anywhere, as a set of 1u << channel. */
unsigned bad_stages(const struct kernel_run *run, int global);

#endif
