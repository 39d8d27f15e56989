/* What attnscope asks of attnscope-judge, a program of its own since it links CUDA: O and LSE of many q tiles against
   the float64 reference, from the inputs. The work lies in a file that both map: this header, then tiles, row ranges,
   blocks and rows at the offsets it names; the tensors are in the trace's file. Valid as C and C++. */
#ifndef JUDGE_WORK_H
#define JUDGE_WORK_H

#include "engine/base/dtype.h"
#include "engine/oracle/formula.h"
#include <stddef.h>
#include <stdint.h>

enum {
    JUDGE_MAGIC = 0x4A554447,
    JUDGE_VERSION = 6,
    JUDGE_ROWS = 16,
    JUDGE_ROW_THREADS = 256 /* of a block that judges O and LSE */,
    JUDGE_KEPT_BYTES = 224 /* a row's judge_kept_row and judge_now */,
    JUDGE_COLUMNS = JUDGE_ROW_THREADS / 32 * 8 /* of U that such a block has at a time */,
    JUDGE_SIZES = 4 /* of a tile's weights: themselves, errors, and of long rows two more */,
    JUDGE_STAGE_THREADS = 256 /* the same of captured stages */
};

/* Of O and LSE the judge expects what the CPU does, bit for bit but for logarithms. Its sums of magnitudes are of tf32
   (scores.cuh), and what weights and U err by is f32 (weights.cuh, values.cuh): up to 0.5 % larger than the CPU's, and
   no smaller but for what underflow costs the CPU's own sums. Where errors are small beside what they are of, bounds
   are wider by this share at most, and in rows of so many kv tiles that they count (5 2^-24 each) by that more. */
#define JUDGE_WIDER 0.005

/* Of a run whose stages were captured: each of them against what its own operands give and against the reference. What
   is said of a q tile is that all of it is right, and the numbers of its verdicts; nothing is said of any other. */
enum { JUDGE_S, JUDGE_M, JUDGE_ALPHA, JUDGE_P, JUDGE_L, JUDGE_U, JUDGE_STAGES };
enum { JUDGE_Q = JUDGE_STAGES, JUDGE_K, JUDGE_V, JUDGE_CAPTURED /* of Q, K, V the inputs' bits */ };
enum { JUDGE_O, JUDGE_LSE, JUDGE_ENDS };
enum {
    JUDGE_SIDES = 2, /* local, global */
    JUDGE_SAMPLES = 31 /* of got / want, see element.c */,
    JUDGE_WAYS = 8
};

/* One way in which S or U may have come about, bit for bit: struct product_way. */
struct judge_way {
    int32_t products, fraction; /* of the tensor core; 1 product: FMAs in f32 */
    int32_t join;               /* of U: enum judge_join */
    int32_t fresh;              /* of S: 1: the way before has other sums */
    float factor[2];
};
enum judge_join { JUDGE_CARRIES, JUDGE_ADDS, JUDGE_FMA };

/* What the formulas of captured stages take besides judge_numbers; the same for all heads. */
struct judge_captured {
    int32_t groups;                    /* blocks to a q tile of plan's rows */
    int32_t p_type, l_rounded, l_cols; /* enum dtype that P.V takes P in; columns of a captured l */
    int32_t direct;                    /* 1: m is the maximum of the captured scores as they are */
    int32_t mask_later;                /* 1: S was captured before its mask */
    int32_t alpha_one_at_start, alpha_one_first, alpha_none_first;
    double s_natural, m_natural;
    double l_relative, l_tiny, l_tiny_global; /* of local formulas, and of the reference */
    double u_relative, u_tiny, u_tiny_global;
    double p_least; /* a smaller operand of P V counts as this; 0: as it is */
    int32_t has[JUDGE_CAPTURED];
    int64_t step[JUDGE_CAPTURED], row[JUDGE_CAPTURED]; /* bytes from kv tile to kv tile, elements from row to row */
    int64_t slot_bytes[JUDGE_CAPTURED];                /* of one slot's kv tiles */
    int64_t inputs_end;                                /* captured values lie behind it in the trace's file */
    int32_t least_exponent;                            /* of operands of tensor cores, biased */
    int32_t n_ways[2];                                 /* of S, of U; 0: bounds decide */
    struct judge_way way[2][JUDGE_WAYS];
};

/* What a captured q tile has besides. */
struct judge_slot {
    int64_t at[JUDGE_CAPTURED]; /* where kv tile 0 of each begins in the trace's file */
    int64_t order;              /* its first visit in judge_work.orders: kv tiles as the kernel came to them */
    int32_t visits;
    int64_t verdicts; /* its first one in judge_work.verdicts: [visits][JUDGE_STAGES][JUDGE_SIDES], then
                         [JUDGE_ENDS][JUDGE_SIDES] */
};

/* Of the elements of one stage of one kv tile, or of O or LSE. */
struct judge_part {
    double worst, sum; /* error / bound, and where it is first; signed errors */
    int32_t place, n;  /* n: finite errors */
    int32_t bad;       /* 1: not all of it is right, or not for this judge to say */
    int32_t likely;    /* 1: of O and LSE: a likely bound was narrower than the worst case's in some element */
};
struct judge_verdict {
    struct judge_part all;
    float median, spread; /* of got / want; NaN: none could be divided */
};

/* How what the products take of Q, K or V is made of its elements. */
struct judge_input {
    int32_t lossy;             /* 1: a correct kernel's may be another number: sums of magnitudes take input_size() */
    int32_t turned;            /* elements of a row that RoPE has turned; 0: none */
    int32_t apart;             /* of these how far the two of a pair lie apart; 1: they are neighbors */
    int32_t descaled;          /* 1: elements are codes, which get their scales before the product */
    int32_t roundings;         /* of that; see codes_roundings() */
    int32_t rows, dims, parts; /* as struct coding has them */
    int64_t scales;            /* where those of the head begin in judge_work.scales */
    double turned_share;       /* rope_loose_share() */
    struct input_terms terms;
};

/* All that the formulas take of a case, the same for every q tile of a head. */
struct judge_numbers {
    int32_t head_dim, head_dim_v, bc;
    int32_t type[4], lse_type;      /* enum dtype of Q, K, V, O */
    int32_t has_lse, likely, lanes; /* lanes that share a row's l */
    int32_t more;                   /* 1: inputs are lossy, or splits are merged */
    int32_t element_bytes;          /* of K and V in a block's room: 2, as they come, or 4, as f32 */
    int32_t splits;                 /* that are merged; 0: none are */
    struct judge_input input[3];    /* of Q, K, V */
    int32_t noise;                  /* 1: what O errs by has a size that is expected */
    int32_t roundings, bin_bits, bin_least;
    double factor, score_grown, score_tiny, score_least; /* S; score_least: product_size() of a small number */
    /* Behind the product: a soft cap (0: none) of scores that are in `before` natural units before it and in `after`
       behind it; biases (terms: 0, 1 or 2). Later: S is captured before that, and m and P read natural units. */
    double cap, tanh_error, before, after, slope;
    int32_t cap_later, bias_later, bias_terms, columns; /* columns: ALiBi counts them, not distances */
    int32_t scaled, scaled_v; /* 1: products are of codes, and get the scales of rows and keys; of the kv tile's V */
    int64_t by_key, by_tile;  /* where these begin in judge_work.scales */
    double natural, convert, start; /* of a score of 1; 1 where m's unit is another; m before the first key, natural */
    double max_begin, bound_begin, l_begin, l_error_begin; /* before the first key */
    double m_begin, m_begin_loose;                         /* the same of a captured m, in its unit */
    double start_later;          /* `start` of a split behind the first, where no sink begins */
    int32_t has_sink, sink_last; /* sink_last: it joins l behind the last tile */
    double sink;
    struct exponential exponential;
    double p_factor, ln_factor;
    double l_error, l_unit, l_half_tiny;
    double p_unit, p_half_tiny, u_error, u_least;
    struct product_share share;
    double random;
    double o_unit, o_half_tiny, lse_unit;
    double o_times, o_roundings; /* of V's codes where O gets their scale */
    double alpha_arguments;
    double folded_lse; /* of a maximum, see bound_folded_scales() */
};

/* Of a row, for the threads that hold its U. */
enum {
    ROW_Q, /* what 1 of the narrowed magnitudes of Q stands for */
    ROW_DECAY,
    ROW_SUM,
    ROW_ERROR,
    ROW_LIKELY,
    ROW_TOGETHER,
    ROW_ALPHA,
    ROW_KEPT,   /* of U, behind a sink */
    ROW_MERGED, /* what the splits before keep of themselves; and of the one that joins: */
    ROW_JOINS,  /* what it weighs, 0: nothing */
    ROW_SHARE,  /* by how much its share errs */
    ROW_NUMBERS
};

/* So many elements of a row are whole instructions of a tensor core; how far rows lie apart in banks that its lanes
   take at once: of Q, K, P and magnitudes eight rows of four elements, of V four rows of eight columns. */
HOST_AND_DEVICE static inline int judge_whole(int n)
{
    return (n + 15) / 16 * 16;
}
HOST_AND_DEVICE static inline int judge_pitch_q(int n)
{
    return judge_whole(n) + 4;
}
HOST_AND_DEVICE static inline int judge_pitch_k(int n, int bytes)
{
    return judge_whole(n) + 16 / bytes;
}
HOST_AND_DEVICE static inline int judge_pitch_v(int n)
{
    return judge_whole(n) + 8;
}
/* Shared memory of a block that judges O and LSE: in most cases two of them have room. */
static inline size_t judge_room_bytes(const struct judge_numbers *n)
{
    const size_t Q = (size_t)judge_pitch_q(n->head_dim), P = (size_t)judge_pitch_q(n->bc), rows = JUDGE_ROWS,
                 K = (size_t)judge_pitch_k(n->head_dim, n->element_bytes), V = (size_t)judge_pitch_v(n->head_dim_v);
    const size_t sums =
        (n->input[0].lossy || n->input[1].lossy ? 2 : 1) * Q + P + (n->likely ? (size_t)LIKELY_BINS : 0) + ROW_NUMBERS;
    const size_t sizes = Q + JUDGE_SIZES * P;
    const size_t tile = n->element_bytes == 2 ? K + V : K > V ? K : V;
    const size_t tiles = rows * (sums * sizeof(double) + sizes * sizeof(float) + JUDGE_KEPT_BYTES) +
                         2 * (size_t)(JUDGE_ROW_THREADS / 32) * sizeof(uint32_t) +
                         (size_t)judge_whole(n->bc) * tile * (size_t)n->element_bytes;
    const size_t end = 4 * rows * JUDGE_COLUMNS * sizeof(double);
    return tiles > end ? tiles : end;
}

/* The same of a block that judges captured stages, whose threads take so many columns of U at a time. */
static inline int judge_columns(const struct judge_numbers *n)
{
    return n->head_dim_v <= 64 ? 64 : n->head_dim_v <= 128 ? 128 : 256;
}
enum {
    JUDGE_STAGE_NUMBERS = 20 /* of a row, see stages.cuh */,
    JUDGE_BLOCK_BYTES = 4096 /* for what all threads read */
};
static inline size_t judge_stage_room_bytes(const struct judge_numbers *n)
{
    const size_t D = (size_t)n->head_dim, W = (size_t)n->bc, rows = JUDGE_ROWS, warps = JUDGE_STAGE_THREADS / 32,
                 widest = (size_t)(n->head_dim > n->head_dim_v ? n->head_dim : n->head_dim_v);
    const size_t more = n->likely ? rows * ((3 * W + LIKELY_BINS) * sizeof(double) + W * sizeof(float)) : 0;
    const size_t tiles = (4 * rows * W + rows * JUDGE_STAGE_NUMBERS + warps) * sizeof(double) + more +
                         warps * JUDGE_STAGES * JUDGE_SIDES * sizeof(struct judge_part) +
                         (2 * rows * D + 2 * rows * W + W * (widest + 1)) * sizeof(float) +
                         rows * (D + W) * sizeof(int16_t);
    /* What each of a row's elements of O errs by is added up by one thread. */
    const size_t end = n->likely ? 3 * rows * (size_t)judge_columns(n) * sizeof(double) : 0;
    return JUDGE_BLOCK_BYTES + (tiles > end ? tiles : end);
}

struct judge_tile {
    int64_t q, k, v, o, lse; /* where each begins in the trace's file */
    int64_t row;             /* its first one's number among all rows */
    int64_t values;          /* its first element's in judge_work.values; read where there are any */
    int32_t numbers;         /* which of judge_work.numbers */
    int32_t rows, keys;
    int64_t diagonal;      /* the key on its first row's diagonal */
    int64_t bias;          /* where the bias of its rows begins in the trace's file; read where there is one */
    int64_t by_row;        /* where the scales of its rows begin in judge_work.scales; read where codes have them */
    double largest_by_row; /* of these; 1 at least */
    int32_t first, last;   /* kv tiles that hold something for one of its rows */
    int32_t visits;        /* how many of first .. last those are: all of them, but with a mask of bytes */
    int64_t order;         /* of splits: its first visit in judge_work.orders, and whether it begins a split */
    int32_t first_row;     /* the number of its first row in the head */
    int64_t mask;          /* where the mask of its rows begins in the trace's file; read where there is one */
    int64_t skips;         /* its first byte in judge_work.skips: 1 for each of first .. last that holds nothing */
};

struct judge_range {
    int32_t first, last; /* keys that a row sees: first .. last - 1, with a mask of bytes some of them */
    int32_t keys;        /* how many */
};

/* In judge_work.orders of a run whose splits are merged: the kv tiles of one split after the other. */
enum { JUDGE_BEGINS = 1 << 30 /* a split behind the first one begins */ };

/* Captured q tiles go to the device in so many pieces, one after the other, while those that are there are judged. */
enum { JUDGE_PIECES = 8 };
static inline int judge_piece(int64_t tile, int64_t tiles)
{
    return (int)(tile * JUDGE_PIECES / tiles);
}

struct judge_block {
    int32_t tile, row; /* rows row .. row + JUDGE_ROWS - 1 of a tile */
};

/* What came of a row. */
struct judge_row {
    int32_t judged, bad_o, bad_lse;
    int32_t open; /* 1: a number that the formulas here say nothing of: the CPU's to judge */
    double worst_o, worst_lse;
    struct noise_row noise;
};

/* What is expected, and the bound: of O's elements, then of LSE. Asked for by tests. */
struct judge_value {
    double want, bound;
};

struct judge_work {
    int32_t magic, version;
    int64_t bytes;      /* of the file */
    int64_t stride[4];  /* rows of Q, K, V, O, in elements */
    int64_t begin, end; /* of the tensors in the trace's file */
    int64_t
        turned[2]; /* offsets in this file: Q and K as RoPE turns them, where judge_tile's q and k then lie; 0: there */
    int64_t turned_bytes[2];
    float code[3][256]; /* what each code of Q, K, V is */
    /* Offsets in this file of arrays, and their lengths. */
    int64_t numbers, tiles, ranges, blocks, scales;
    int64_t n_numbers, n_tiles, n_rows, n_blocks, n_scales;
    int64_t
        rows; /* offset: judge_row[n_rows], written, as all that lies behind; of captured stages their noise alone */
    int64_t skips; /* offset: bytes, see judge_tile; their number is 0 where there is no mask of bytes */
    int64_t n_skips, mask_stride, bias_stride;
    int64_t values; /* offset: judge_value, written; 0: nobody asks for them */
    int64_t n_values;
    /* Of a run whose stages were captured; n_verdicts is 0 for any other. verdicts: written. */
    struct judge_captured captured;
    int64_t slots, orders, verdicts; /* slots: judge_slot[n_tiles] */
    int64_t n_orders, n_verdicts;
    int32_t done;      /* written: 1 when all rows are there */
    char failure[256]; /* written: why not, one sentence */
};

#endif
