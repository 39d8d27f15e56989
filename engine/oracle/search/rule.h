/* A rule: one edit of a stage's formula that gives what was captured. The grammar:

     what is replaced     an operand of the formula, a term of its sum, or its result
     what stands there    another row vector or other rows, times a factor, plus a constant, to a power; or a number
     at which index       a map of rows, columns or 16-byte pieces
     where                a region

   rule_forward() alone says what a rule gives: the right formula (local.h) on operands that the rule has replaced. */
#ifndef SEARCH_RULE_H
#define SEARCH_RULE_H

#include "engine/oracle/search/formulas.h"
#include "engine/oracle/search/map.h"
#include "engine/oracle/search/region.h"
#include <stdatomic.h>

/* A new kind is a line here, its rows of gives[] (forward.c) and says[] (say.c), who proposes it (propose_*.c), and a
   row of docs/rules.md. */
enum rule_kind {
    RULE_NONE,
    RULE_RESULT,    /* the result is factor * it + plus, times a row vector to a power */
    RULE_CONSTANT,  /* the result is a number; `masked`: where -inf is wanted */
    RULE_UNGUARDED, /* the result is no number in rows that there is nothing for, or of a scale of 0 */
    RULE_ROUNDED,   /* the result is rounded to a type, or cut off; or goes no further than a limit */
    RULE_PLACE,     /* the result, of U what the tile adds, is that of another row and column of the tile */
    RULE_QUOTIENT,  /* O: U of row map(r) is divided by l of row col_map(r) */
    RULE_STALE,     /* the result is that of the tile visited before, as it was captured */
    RULE_ADDED,     /* to the result is added what was captured at another row or column, or of the tile before */
    RULE_CARRIED,   /* m, alpha, l, U: the state is not begun anew, but goes on from the work item before */
    RULE_IS,        /* the result, a row vector, is another one */
    RULE_VECTOR,    /* a row vector of the formula is another */
    RULE_EXPONENT,  /* score and maximum get factors of their own in the exponent, and there is a constant */
    RULE_LOGARITHM, /* LSE: so do m and ln l */
    RULE_SINK,      /* O, LSE: so do sink and m in the weight of the sink; plus -inf: it has none */
    RULE_TERMS,     /* the old and the new term of a sum have other coefficients */
    RULE_KEYS,      /* keys, of S elements of the dot product, count otherwise than once */
    RULE_REACH,     /* l, U: keys count up to the last one that another row sees, rounded up to a multiple of `share`;
                       map is of row * 2^keys.a + column, keys.a 0: of rows */
    RULE_SCALE,     /* Q, K or V has another scale of a code, to a power, where it comes in: map is of groups of rows,
                       col_map of parts of a row; rows.flat: of their number, with rows.whole within the head */
    RULE_WEIGHT,    /* a weight of P stands at another row and key */
    RULE_ROWS,      /* rows of Q, K or V are other rows */
    RULE_SEEN,      /* the mask is that of another row or limit */
    RULE_OPERAND,   /* an operand is rounded, cut off at a limit, moved, or read as another type */
    RULE_SUMMED,    /* the product is summed in f16, or rounded to a type after every so many terms */
    RULE_LANES,     /* a reduction over lanes is incomplete */
    RULE_SPLITS,    /* O, LSE: splits are merged with other weights, or others are */
    RULE_QUANTIZED, /* Q, K or V are made into codes by other scales, or are cut off or wrap around there */
    RULE_HALF,      /* Q, K or V: codes of half a byte are exchanged, or read as another format */
    RULE_TURNED,    /* Q or K is turned by RoPE otherwise than it should */
    RULE_FORMULA,   /* the mask, or which weights dropout keeps, is read elsewhere, or a formula is another */
    RULE_SCORE      /* soft cap, attention bias or ALiBi join the score otherwise */
};

/* Row vectors that may stand in a formula. */
enum entry {
    ENTRY_ZERO,
    ENTRY_ONE,
    ENTRY_M,
    ENTRY_M_PREV,
    ENTRY_TILE_TOP, /* maximum of this tile's scores alone */
    ENTRY_ALPHA,
    ENTRY_L,
    ENTRY_L_PREV,
    ENTRY_M_BEFORE, /* of the tile visited before that one: m_prev of the tile before */
    ENTRY_ALPHA_BEFORE,
    ENTRY_L_BEFORE,
    ENTRY_L_RISEN, /* of the last tile before whose maximum rose */
    ENTRY_M_NEXT,  /* of the tile visited next */
    ENTRY_ALPHA_NEXT,
    ENTRY_ROW_SUM,     /* of this tile's weights */
    ENTRY_M_FLOOR,     /* the larger of m and 0 */
    ENTRY_M_SIZE,      /* |m| */
    ENTRY_M_WITH_TILE, /* the larger of m_prev and the tile's own maximum: m as it should be */
    ENTRIES
};

/* Operands of formulas that are row vectors. */
enum vector_slot { SLOT_M, SLOT_M_PREV, SLOT_ALPHA, SLOT_L, SLOT_SUM, VECTOR_SLOTS };

/* All rows of one head of Q, K or V, as the launch was given them. */
struct source {
    enum asc_channel of; /* q, k or v */
    int head;            /* counted through the batches */
    struct matrix rows;  /* [q_len or kv_len][head_dim or head_dim_v] */
    struct coding coding;
};

/* RULE_ROWS: rows of an operand are other rows. RULE_SEEN: so are the rows that the mask counts from. */
struct from_rows {
    enum asc_channel operand; /* q, k or v: whose place they are in; s: q and k, alike */
    enum asc_channel tensor;  /* and where they are from */
    struct map head, tile;    /* of the head counted through the batches; of the q or kv tile */
    bool whole;               /* the rule's map is of rows of the head, else of rows of the tile */
    bool flat;                /* with whole: of rows of all heads, as they lie in memory (flat_row()) */
    bool paged;               /* RULE_SCALE: rows count as they lie in pages, not by the sequence. RULE_ROWS: the map
                                 is of head * page + row within a page */
    int span;                 /* it is of pieces of so many elements, counted through the rows; 0: of rows */
    int shift;                /* columns c are columns c + shift there, whose rows may be longer */
    int lie, read; /* rows of the tile lie so many elements apart and are read so many apart; 0: as they lie */
    bool by_query; /* the map of heads counts the query's, not the operand's own */
    bool of_batch; /* it counts the heads of a batch, not of all */
    bool of_first; /* it is the same head of the first sequence */
    bool hidden;   /* RULE_SEEN: it is the first key that is seen, else the last one */
    int packed;    /* RULE_SEEN: with whole: the rule's map is of packed_row() of so many heads; 0: of rows */
    bool partly;   /* only elements of the operand's tile for which this holds, by row or by column */
    struct term only;
};

enum { BIAS_OWN = -1 };

/* RULE_SCORE: what ALiBi adds its slope times of, i being a row and j a key; DISTANCE_OWN: what it should. */
enum distance {
    DISTANCE_OWN,
    DISTANCE_AWAY,
    DISTANCE_BEFORE,
    DISTANCE_BEHIND,
    DISTANCE_APART,
    DISTANCE_KEY,
    DISTANCES
};

struct places {
    bool edited;
    bool other_corner; /* i is the diagonal of the other causal corner */
    bool row_of_tile;  /* i counts from the q tile's first row */
    bool col_of_tile;  /* j counts from the kv tile's first key */
    bool lane;         /* of the column it has the lane alone, its remainder by 32 */
    int packed;        /* i is that of row packed_row() of so many heads; 0: of its own */
    enum distance distance;
    int row_step, col_step; /* of the attention bias: the element at i row_step + j col_step of its head's */
};

/* RULE_SPLITS: what is added to ln of the sum of weights that make LSE; FRAME_LSE: the largest lse_s, which
   is taken off before; FRAME_TAKEN: that is never added; FRAME_UNIT: it is divided by their exponent's factor; of O,
   FRAME_UNSHIFTED: weights are f32; FRAME_OWN_M: the largest m is taken off in the weights' unit and added in its own;
   FRAME_OFF, FRAME_ON: the largest of m_s, or lse_s, is added and that of the first
   split was taken off, or the other way round. The weights are exp(factor lse_s + power m_s), those of row map(r), of
   outputs of row col_map(r). */
enum frame {
    FRAME_NONE,
    FRAME_FIRST,
    FRAME_LAST,
    FRAME_LARGEST,
    FRAME_LSE,
    FRAME_TAKEN,
    FRAME_UNIT,
    FRAME_OWN_M,
    FRAME_OFF_M,
    FRAME_ON_M,
    FRAME_OFF_LSE,
    FRAME_ON_LSE,
    FRAME_UNSHIFTED
};

/* RULE_SPLITS: where columns of a split's output are merged, those of another one's, `shift` columns further, take
   their place. */
struct moved_piece {
    bool moves;
    int of, from, shift;
};

/* What of a split is another's where the rule's map leads to one: its LSE, or its maximum or sum alone. TAKEN_SWAPPED:
   its own, each in the place of the other, in m's unit. */
enum taken { TAKEN_LSE, TAKEN_M, TAKEN_L, TAKENS, TAKEN_SWAPPED = TAKENS };

/* What is rounded to the rule's type while splits are merged: the outputs so far, their weights, the sum of these so
   far. Weights stand on the largest LSE, or on the largest m, or are divided by their sum before they meet outputs. */
struct narrow_merge {
    bool output, weights, total, divided, on_m;
};

/* RULE_SPLITS, of O, where the rule's map leads to other rows: the split that stays with its own one, as that in the
   registers of who merges does: none, that which the column or row belongs to where they are dealt among the splits,
   the first or the last; from STAYS_OTHERS on all but that. And whose sum of weights each is divided by. */
enum stays {
    STAYS_NONE,
    STAYS_OF_COLUMN,
    STAYS_OF_ROW,
    STAYS_FIRST,
    STAYS_LAST,
    STAYS_OTHERS,
    STAYS = 2 * STAYS_OTHERS - 1
};
enum total { TOTAL_OF_WEIGHTS, TOTAL_OWN, TOTAL_ALONE, TOTALS }; /* alone: the sum is the other row's, no weight is */

/* RULE_SUMMED, of U that is rounded after every so many keys: α u_prev is rounded before products are added, it is
   added to the first of them, or to their sum; or it alone is rounded. BEFORE_PRODUCTS: each product is, and no sum. */
enum before { BEFORE_ROUNDED, BEFORE_ADDED, BEFORE_BEHIND, BEFORE_ALONE, BEFORE_PRODUCTS, BEFORES };

/* RULE_TURNED: the position is that which the rule's map gives of the row's own one, or of its number in the head; of
   the latter counted from 0, from that of the head's first row, or from that of the first key; or of a
   key's number among the new ones. */
enum reuse { REUSE_NONE, REUSE_FIRST, REUSE_SECOND }; /* of the pair's elements the one that is turned already */

enum narrow_rope { ROPE_WIDE, ROPE_NARROW_TABLE, ROPE_NARROW_ANGLE, ROPE_NARROW_BASE, NARROW_ROPES };

/* Which element is taken for the other one of element d's pair: d xor half of rope_dim, that so many further on, modulo
   head_dim, or that half of head_dim further on, modulo head_dim. */
enum partner { PARTNER_OWN, PARTNER_XOR, PARTNER_FURTHER, PARTNER_OF_HEAD, PARTNERS };

/* The element behind the last one that is turned is turned too: by the angle that stands behind those of the position
   in a table, or by the formula's. */
enum beyond { BEYOND_NONE, BEYOND_BY_TABLE, BEYOND_BY_FORMULA, BEYONDS };

struct turned {
    struct rope by;
    enum partner partner;
    enum narrow_rope narrow; /* what of it is rounded to narrow_type: sine and cosine, angle, angle of position 1 */
    enum dtype narrow_type;
    enum reuse reuse; /* the other one is made of this one as it is turned, not as it was */
    int angles;       /* enum asc_rope: whose pairs the angles are counted by */
    struct map which; /* of the pair whose angle it is; MAP_SAME: its own */
    int signs;        /* enum asc_rope: by whose pairs an element is the first or the second of its own */
    double times;     /* how often; 0: it is not; -1: the other way */
    enum beyond beyond;
    int quarters; /* and by so many right angles more: sine and cosine are exchanged, or have other signs */
    int pitch;    /* of the table, in angles; 0: its own, or no table at all */
    bool by_row, from_first, from_key, from_new;
};

/* RULE_LANES: columns, or lanes of l, that agree in bits first .. first + n - 1 of their number. Of O and LSE the lane
   that is met: that of the place / 2^shift, of `low` bits; or `always` this one, if not -1. Of m and l those that agree
   with the row; or, of a shuffle that asks another row's lane, the columns of one lane, `always`, of row r and of row
   r ^ partner (0: none). Where the rule has a type, of l, O and LSE, nothing is left out: lanes give each other their
   sums in that type, with rounds_result they add in it as well, over one bit after the other, `down` the highest
   first. */
struct lane_bits {
    int first, n, shift, low, always, partner;
    bool down;    /* of P: columns of the lanes behind its own are in it too; RULE_QUANTIZED: thread 0 has the head's */
    bool largest; /* of l, O and LSE: the largest of the lanes' sums stands for the sum of all */
};

/* RULE_QUANTIZED has such bits of the row, at most PART_BITS: codes are made by the scale of rows that agree in them,
   `low`: and stand for that of rows where they are 0, or of the head. n 0: it has none. rows.partly: the scale is made
   of one of the head's largest elements, without those that are larger. */
enum { PART_BITS = 3, LARGEST = 64, STANDS_FOR_FIRST = 1, STANDS_FOR_HEAD = 2 };

/* RULE_SEEN by so many keys: the limit is missing. */
enum { SEEN_ALL = 1 << 28 };

/* The element that tells most: furthest from what it should be, in its bounds. */
struct telling {
    int at[3], kv; /* batch, head, q tile */
    int row, col;
    double got, want, given; /* by the rule */
};

struct evidence {
    size_t wrong, in; /* wrong elements of the sample; those the rule gives */
    size_t told, out; /* elements in its region that it tells from the right formula; those of them it does not give */
    size_t units;     /* rows that hold any of `in`; columns, where a row of K is another */
    bool by_col;      /* they are columns */
    size_t tried;     /* rules, in its search */
    double bits;      /* what it explains */
    double share;     /* of the sample's wrong elements */
    struct telling telling;
};

/* RULE_QUANTIZED, of codes that are made in `type`: whether the scale is rounded to it where they are made, and where
   they are read as well. */
enum narrow_scale { NARROW_NONE, NARROW_MAKES, NARROW_STANDS, NARROW_SCALES };

/* RULE_HALF: how four bits of e2m1 are read. */
enum half_reading {
    HALF_EXCHANGED,
    HALF_LOW,
    HALF_HIGH,
    HALF_BY_ROW,
    HALF_OF_ROWS, /* from here: of codes whose bytes hold two rows, as they do where columns lie one after the other */
    HALF_ROWS_EXCHANGED = HALF_OF_ROWS,
    HALF_ROWS_LOW,
    HALF_ROWS_HIGH,
    HALF_BY_COLUMN,
    HALF_OF_PLACES,
    HALF_UNSIGNED = HALF_OF_PLACES,
    HALF_NEGATED,
    HALF_NO_SUBNORMAL,
    HALF_ONE_MORE,
    HALF_E1M2,
    HALF_E3M0,
    HALF_INT4,
    HALF_UINT4,
    HALF_OFFSET,
    HALF_MAGNITUDE,
    HALF_READINGS,
    HALF_TABLE = HALF_READINGS /* as numbers of the rule's own */
};
enum { HALF_CODES = 16 };

/* RULE_SCALE: that of element (row, d) of its head is number (row + row_plus) / rows * parts + (d + dim_plus) / dims;
   rows 0: it is not counted so. */
struct blocks {
    int rows, dims, row_plus, dim_plus;
};

/* RULE_SCALE: what its own scale is taken to be, where it is one of e4m3 or e8m0. */
enum scale_reading {
    SCALE_AS_IT_IS,
    SCALE_AS_E4M3, /* its bits are read as those of another format */
    SCALE_AS_E5M2,
    SCALE_AS_E8M0,
    SCALE_AS_NUMBER, /* or as a whole number */
    SCALE_BIAS_126,  /* e8m0: 2^(code - 126) */
    SCALE_BIAS_128,
    SCALE_SIGN,     /* e8m0: codes from 128 on set the sign, as where a signed one is shifted to the exponent */
    SCALE_SIGNED,   /* or are 256 less */
    SCALE_OF_BLOCK, /* without that of the tensor */
    SCALE_OF_TENSOR,
    SCALE_TENSOR_TWICE,
    SCALE_BLOCK_TWICE,
    SCALE_IN_F16, /* where it is f32: rounded to a type */
    SCALE_IN_BF16,
    SCALE_IN_E4M3,
    SCALE_POWER_NEAREST, /* to a power of 2, as e8m0 has it */
    SCALE_POWER_ABOVE,
    SCALE_POWER_BELOW,
    SCALE_READINGS
};

struct rule {
    enum asc_channel channel;
    enum rule_kind kind;
    enum vector_slot slot;
    enum entry entry;
    double factor, plus,
        power;   /* RULE_EXPONENT, RULE_LOGARITHM: factors of the first and the second term: factor, power */
    double cost; /* bits of its numbers, entry and map */
    struct map map, col_map;
    struct from_rows rows;
    enum dtype type;
    bool cuts;
    /* RULE_TERMS: coefficient = factor * alpha ^ power; RULE_KEYS: new_power that of the keys' weights. */
    double old_power, old_factor, new_power, new_factor;
    double limit; /* RULE_OPERAND, RULE_ROUNDED: cut off at +- this; 0: it is not; of P below 0: no less than - this;
                     RULE_SCORE: 1: cut off at the soft cap; below 0: a soft cap of - this, in natural units */
    struct formula_edit formula;
    int bias_of;                    /* RULE_SCORE: whose attention bias, BIAS_OWN or OTHER_BIAS_... */
    struct places places;           /* RULE_SCORE: what ALiBi counts, or where the attention bias is read */
    bool undivided, counts_empty;   /* RULE_SPLITS: outputs are not divided by l; a split without keys counts */
    int runs_on;                    /* RULE_SPLITS: of so many rows each takes in those before it; 0: none does */
    bool sum_alone;                 /* and of these the sum of weights alone */
    bool keeps_sum, keeps_output;   /* RULE_SPLITS: what was merged is not rescaled to a larger LSE that comes later */
    int largest;                    /* RULE_SPLITS: this one is weighed as if its LSE were the largest; -1: none is */
    enum frame frame;               /* RULE_SPLITS */
    enum stays stays;               /* RULE_SPLITS */
    enum total total;               /* RULE_SPLITS */
    enum taken taken;               /* RULE_SPLITS, of another split */
    int stay_together;              /* RULE_SPLITS: so many neighbors stay with `stays`; 0: it alone */
    struct narrow_merge narrow;     /* RULE_SPLITS */
    bool narrow_lse, narrow_output; /* RULE_SPLITS: what splits leave is rounded to `type` */
    struct moved_piece piece;       /* RULE_SPLITS */
    bool by_m;      /* RULE_SPLITS: with these, weights are exp(m), of outputs that are not divided by l */
    bool of_items;  /* RULE_SPLITS: maps and keys count the splits of a q tile that left something, keys below 0 from
                       their end, as MAP_FIXED does; MAP_PLUS goes on in the next q tile. With ASC_DEAL_MAP those that
                       its q tile has are they */
    bool by_block;  /* RULE_SPLITS: what is mapped lies by the number of the block that left it, not by its item's */
    bool of_terms;  /* RULE_OPERAND: of keys, or of the elements of Q and K, those alone that `keys` holds of */
    bool reads;     /* RULE_OPERAND: its bits are read as those of `type`; with `cuts` the other way */
    int turns;      /* RULE_OPERAND: it is that of the tile visited before (-1) or next (1); RULE_ADDED */
    bool of_tile;   /* RULE_ADDED, of U: not what was there, but what the tile itself had added */
    bool guess;     /* not proposed by what was captured: it has to explain half of what is wrong */
    bool follows;   /* it explains another stage of this run: of what is wrong it gives half at least, and is silent on
                       the rest */
    bool masked;    /* RULE_CONSTANT: where -inf is wanted alone */
    int share;      /* RULE_QUANTIZED: rows that share a scale; 0: all of a head. RULE_KEYS: keys after which the
                       sum is rescaled by α once more, with `cuts` behind them, else before; 0: it is not.
                       RULE_SUMMED: terms after which the sum is rounded to `type`; 0: it is summed in f16 */
    bool is_signed; /* RULE_QUANTIZED: by the largest value, not the largest magnitude */
    bool down;      /* RULE_QUANTIZED: to the code below, where `cuts` is towards 0, of the code and `plus` */
    enum narrow_scale narrow_scale;   /* RULE_QUANTIZED */
    bool wide_quotient;               /* RULE_QUANTIZED: of `type` is the scale alone, not what is rounded to a code */
    bool wraps;                       /* RULE_QUANTIZED: a code that is too large comes round at the other end */
    enum half_reading half;           /* RULE_HALF */
    bool behind_scale;                /* RULE_OPERAND: what it is moved by is taken off the value, not the code */
    float table[HALF_CODES];          /* HALF_TABLE: what each code is read as */
    enum scale_reading scale_reading; /* RULE_SCALE, with power 1 and maps that leave all where it is */
    struct blocks blocks;             /* RULE_SCALE */
    struct turned turned;             /* RULE_TURNED */
    struct lane_bits lanes;           /* RULE_LANES */
    struct term keys;                 /* RULE_KEYS: which; RULE_WEIGHT, RULE_PLACE: keys.a bits of its map's index
                                            are the key's or column's; RULE_PLACE 0: rows and columns have maps of their own */
    double weight; /* and how often they count; RULE_SPLITS: how often O is divided by the sum of weights. Of what is
                      rounded to `type`: it is as so many times it, and is divided by that again */
    bool rounds_result; /* RULE_EXPONENT: the result is rounded to `type` as well. RULE_QUANTIZED: codes are products
                           with a reciprocal, rounded as well */
    struct region region;
    struct evidence evidence;
};

/* Work items of a work list, counted q tile by q tile, then head by head, and blockIdx.x of those that took them. */
struct work_items {
    const int32_t *first; /* [heads of all batches][q_tiles] number of a q tile's first item */
    int q_tiles;
    const int32_t *last; /* [n] the last item of the block that has this number; -1: it has none */
    int n;               /* items; 0: not known */
};

struct search {
    struct sample *sample;
    struct judge_scratch *scratch;
    const struct source *sources; /* [n_sources] */
    int n_sources;
    int heads, kv_heads;       /* of a batch */
    const int32_t *page_table; /* as in struct asc_problem; NULL without pages */
    int page_size, table_pages;
    struct work_items items;
    const float *slopes;     /* [heads] of ALiBi; NULL: there is none */
    const float *sinks;      /* the same */
    double *room;            /* owned: the arrays of numbers below */
    double *want, *bound;    /* of the largest tile */
    double *rows[4];         /* [R] row vectors */
    double *operand, *loose; /* [R or Bc][elements of a row] or [R][Bc] */
    double *sizes[2];        /* as operand */
    int *seen[2];            /* owned, one block: [R] */
    void **blocks;           /* owned, [n_blocks] owned: search_room() */
    size_t n_blocks;
    struct loaded_heads *loaded; /* one of these */
    double *amax;                /* owned: of the rows of amax_of, and its LARGEST elements */
    const struct source *amax_of;
    uint8_t **labels; /* owned, [tiles][rows * cols] */
    struct rule best, second;
    size_t tried;
    bool failed;
    int part, n_parts;       /* search_part() */
    const atomic_int *epoch; /* of a search beside others: no longer `began`, it is for nothing. NULL: there are none */
    int began;
    bool kept;   /* best or second is another since it began */
    double over; /* bits by which the rule that was taken most narrowly has more than its price */
};

/* A proposal can be made in parts, beside each other: whether this is the part. Every part passes all search_part() of
   a proposal in the same order, whatever was found; what only some parts need is asked for behind them. */
enum { PARTS_MOST = 24, PARTS_ALL = -1 };
static inline bool search_part(struct search *search)
{
    const int part = search->n_parts < PARTS_MOST - 1 ? search->n_parts++ : PARTS_MOST - 1;
    return search->part == PARTS_ALL || search->part == part;
}
/* Whether nobody wants what it finds: rules give nothing then. */
static inline bool search_is_stopped(const struct search *search)
{
    return search->epoch && atomic_load_explicit(search->epoch, memory_order_relaxed) != search->began;
}

/* Zeroed room for as long as what asks proposes. NULL, and failed, without memory. */
void *search_room(struct search *search, size_t bytes);
void search_release(struct search *search); /* all of it */

/* out: [rows of q]. false: there is no such vector here. */
bool entry_value(const struct sample *s, const struct sample_tile *t, enum entry entry, double *out);
const char *entry_name(enum asc_channel ch, enum entry entry);

/* Rows first .. first + n - 1 of a head of Q, K or V as the kernel uses them in a channel of type t: [n][elements of a
   row]. NaN beyond its last row. false: the launch was not given it. */
bool source_rows(const struct search *search, const struct oracle_case *c, enum asc_channel of, int head, int first,
                 int n, double *out, double *loose);
const struct source *source_of(const struct search *search, enum asc_channel of, int head); /* NULL: none */
int count_sources(const struct search *search, enum asc_channel of); /* heads of it, through the batches */
/* A row's number among those of all heads of a tensor, as they lie in memory: head after head, or those of a position
   side by side; -1: there is none. */
int flat_row(const struct search *search, enum asc_channel of, int head, int row);
/* The number of a row of t's head among the rows of all heads of its kv head, as kernels pack them into tiles: row
   `row` of each of the `group` heads beside each other. 0 heads: the row. */
int packed_row(const struct search *search, const struct sample_tile *t, int group, int row);
int head_of(const struct search *search, const struct sample_tile *t, enum asc_channel of); /* through the batches */
int heads_of(const struct search *search, enum asc_channel of);                             /* of a batch */
/* Where the rule's map of heads leads from that of a tile. */
int head_from(const struct search *search, const struct rule *rule, const struct sample_tile *t, enum asc_channel of);
int piece_elements(const struct sample_tile *t, enum asc_channel ch); /* in 16 bytes */

/* What of a cell of U, rescaled, was there before the tile; 0 of other stages. */
double kept_part(const struct sample *s, const struct sample_tile *t, size_t i);
/* RULE_WEIGHT: row * 2^keys.a + key of the weight that stands there; -1: nobody knows. */
int weight_from(const struct rule *rule, int row, int key);
/* RULE_REACH: keys of the tile that row `row` of the q tile sees, rounded up to a multiple; what a tile's sum is of, v
   NULL for l; and what key k adds to element (r, col). */
int reach_keys(const struct sample_tile *t, int row, int unit);
bool reach_terms(const struct search *search, const struct sample_tile *t, const double **p, const double **v);
double reach_term(const struct sample_tile *t, const double *p, const double *v, int r, int col, int k);
int row_of_head(const struct sample_tile *t, enum asc_channel operand, int line);
int group_of(const struct coding *coding, int row);
int scale_part_of(const struct coding *coding, int col);
/* The scale that RULE_SCALE has for that of a head (through the batches), group of rows and part of a row; head: where
   the rule's map of heads leads. NaN: there is no such one. */
enum { SCALE_AXES = 3 };
double scale_by(const struct search *search, const struct rule *rule, const int place[SCALE_AXES], int head);
bool is_coded(const struct source *source);
int lane_bits_of(int x, struct lane_bits b);
void lane_bits_words(struct lane_bits b, const char *of, char *out, size_t bytes); /* "c / 4 mod 8" */
bool lanes_have_all(const struct sample *s); /* whether all lanes of l are the same */
/* Weights of splits that people merge by, in place of exp(lse_s). */
struct merge_formula {
    double of_lse, of_m;
    const char *words;
};
enum { MERGE_FORMULAS = 7 };
extern const struct merge_formula merge_formulas[MERGE_FORMULAS];
/* Of RULE_SPLITS: whether next to nothing of some wrong rows is given. */
bool splits_are_hopeless(struct search *search, const struct rule *rule);
/* Of RULE_SPLITS: whether some weights, or their sum, are another row's or split's. */
bool splits_are_mixed(const struct rule *rule);
int operand_type(const struct oracle_case *c, enum asc_channel operand); /* enum dtype; -1: unknown */
/* The stage's formula on other operands. */
void search_formula(const struct search *search, const struct sample_tile *t, const struct operands *x, double *want,
                    double *bound);

/* A few roundings more of each element. */
void rule_loosen(const struct sample_tile *t, const double *want, double *bound, int roundings);
/* Row r sees columns from .. to - 1 of the tile, by the search's own room. */
void rule_sees(const struct search *search, struct operands *x, int r, int from, int to);

/* x as RULE_ROUNDED or RULE_OPERAND rounds it, cuts it off or limits it; DTYPE_I32: to a whole number. */
double rule_rounded(const struct rule *rule, double x);
/* The number of the type that is nearest to x of those that are no larger. */
double rounded_to_zero(enum dtype type, double x);
/* The same where x may lie so far off: a middle, and in *off half the width. */
double rule_rounded_near(const struct rule *rule, double x, double *off);
/* "rounded to f16", "cut off, not rounded, to whole numbers" */
void rule_rounding(const struct rule *rule, char *out, size_t bytes);

/* What a rule of one kind gives for a tile; false: it says nothing there. Its sentence, without its region. */
typedef bool rule_gives(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                        double *bound);
typedef void rule_says(const struct sample *s, const struct rule *rule, char *out, size_t bytes);
rule_gives rows_forward, scale_forward, quantized_forward, turned_forward, seen_forward, operand_forward, score_forward,
    sum_forward, lanes_forward, splits_forward, formula_forward, carried_forward, half_forward, reach_forward;
/* HALF_TABLE: what each code of the sample's channel was read as, where all its elements agree. How many are read as
   something else than they are; 0 where they do not agree. */
int half_table(const struct sample *s, float table[HALF_CODES]);
rule_says quantized_say, turned_say, sum_say, lanes_say, splits_say, formula_say, score_say, half_say, reach_say;
rule_gives rule_forward; /* of any kind */

/* Bits that a rule has to explain: its own, those of how many were tried, and RULE_BITS_MORE. One that follows was
   chosen among those of other stages, of which there are a few. */
enum { RULE_BITS_MORE = 30, RULE_BITS_FOLLOWING = 5 };
double rule_price(const struct rule *rule);
/* Tries the rule on all tiles, finds its region, and keeps it where it explains more than it costs. */
void rule_try(struct search *search, struct rule *rule);
/* A rule of all that is wrong, cheaper than a number that nobody knows: a further one could only be dearer. */
bool search_is_settled(const struct search *search);
/* Whether it gives less than half of the first rows of a wrong tile: of many that may hold everywhere most end here. */
bool rule_is_hopeless(struct search *search, const struct rule *rule);
/* Labels all tiles by what it gives, and counts what lies in the region that it has. */
void rule_label(struct search *search, struct rule *rule);

#endif
