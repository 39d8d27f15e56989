/* Working memory of one judging thread, and the tile that is being worked on. */
#ifndef ORACLE_SCRATCH_H
#define ORACLE_SCRATCH_H

#include "engine/oracle/formula.h"
#include "engine/oracle/oracle.h"
#include "engine/oracle/schedule.h"
#include <stdbool.h>

enum side { LOCAL, GLOBAL, SIDES };

/* Q, K and V come first among the channels. */
enum { INPUTS = asc_v + 1 };

/* What is kept of K and V for other slots, by each thread: all of 2048 keys with 128 columns each, and no more where
   there are more keys, so that memory does not grow with them. */
enum { KEPT_TILES = 64, KEPT_BYTES = 16 << 20 };

/* Arrays are float64 and dense. R: rows of the q tile; C: Bc; D: the larger of head_dim and
   head_dim_v; a row is as long as its own. Nothing grows with the number of keys. */

/* One channel of the tile at hand. Arrays are [rows][cols] of the channel's valid region. */
struct stage {
    int rows, cols;
    bool recorded; /* got holds what this run captured here */
    double *got;
    double *want[SIDES]; /* NaN: its operands allow no statement; +-inf: exactly this infinity is expected */
    double *bound[SIDES];
    double *got_room, *want_room; /* of got and want[LOCAL], where an operand is no array of its own */
    double *loose_room; /* of what the kernel's value is uncertain by; of a channel that was fed: of the fed values */
};

/* What a formula computes: the values of a stage, and how far a correct kernel's may lie from them. */
struct expected {
    double *want, *bound;
};

/* Values that formulas read, and how far the kernel's own may lie from each. */
struct operand {
    const double *value, *loose;
    bool exact; /* loose is all zero */
};

/* All that the local formulas (local.h) read of the tile at hand. The right formula with an operand replaced is a call
   on a copy of this. */
struct operands {
    int kv, cols;                /* the kv tile and its columns */
    int split;                   /* which split of the keys is walked through */
    int tiles_seen;              /* tiles of it of which something was computed, before this one */
    const int *hidden, *visible; /* [R] each row sees columns hidden .. visible - 1 of the tile, see operands_see() */
    const uint8_t *mask; /* [R], mask_row apart, of the tile's columns: not those that are 0; NULL: all of these */
    int64_t mask_row;
    const uint8_t *keep; /* the same: which weights dropout keeps */
    int64_t keep_row;
    bool s_recorded; /* S of this tile was captured */
    /* Of each channel the captured values, or where there are none the expected ones; Q, K and V as they are used. */
    struct operand of[ASC_CHANNELS];
    /* What of Q, K and V takes part in sums of magnitudes: their own values, signs and all, where nothing makes the
       magnitudes larger. */
    const double *size[INPUTS];
    bool unseen[INPUTS];     /* converted where no probe sees it, from `input` */
    bool folds_unseen;       /* Q is folded and rounded where no probe sees it */
    const double *input_v;   /* [C][D] the original V */
    const double *by_q;      /* [R] what S of each row is multiplied by, Q being codes; read where scales_s is 1 */
    const double *by_k;      /* [C] of each column, K being codes */
    bool scales_s;           /* S gets by_q and by_k, being a product of codes */
    double times_v;          /* what P V is multiplied by, V being codes; 1: it is not */
    const double *bias;      /* [R][C] bias of the scores, natural units; read where there is one */
    const double *bias_size; /* [R][C] sums of the magnitudes of its terms */
    /* Scores as m and P read them, capped and masked: [R][cols], one of them s_natural natural units. */
    struct operand s;
    double s_natural;
    bool s_direct;     /* m is the maximum of these very numbers */
    const double *pad; /* [R][pad_cols] scores of keys beyond kv_len */
    int pad_cols;      /* such columns that went on as something else than -inf, or 0 */
    /* [R], [R], [R][D] the state before this tile, and after the last. */
    struct operand m_prev, l_prev, u_prev;
    struct operand tile_top;  /* [R] maximum of this tile's scores alone, in m's unit; NaN: unknown */
    struct operand beta;      /* [R] exp(tile_top - m), by which l and U take in a P that stands on tile_top; else 1 */
    struct operand pv_p, l_p; /* [R][cols] P as P.V and as l take it */
};

/* An original input. "loss" is by how much converting it to the captured type may have moved a value, a magnitude
   |x| + loss. Rows are those of the q tile, or of the kv tile at hand. */
struct original_input {
    double *value, *value_room; /* [rows][D]; the values may also be those of a kept tile */
    double *loose; /* [rows][D] how far a correct kernel's may lie from it before it is rounded to a narrower type */
    const double *top;  /* [D] of V: the largest size in each column; NULL: nobody has looked */
    double *by;         /* [rows] what S of the row (q) or column (k) is multiplied by, these being codes; v: NULL */
    const double *size; /* [rows][D] what takes part in sums of magnitudes: the values themselves, or magnitudes */
    bool lossy;         /* there is a loss */
    double *size_room;  /* of the magnitudes */
    double *abs_room;   /* of those of the captured values */
};

/* The state that the tiles walked through leave, as it was captured: what m_prev, l_prev and u_prev are. */
struct carried {
    double *m, *m_loose; /* [R] */
    double *l, *l_loose; /* [R] */
    double *u, *u_loose; /* [R][D] */
    bool u_exact;        /* u_loose is all zero */
};

/* Operands that are no channel of their own. */
struct prepared {
    double *folded_q, *folded_bound;     /* [R][D] Q times what is folded into it, and its bound before rounding */
    double *bias, *bias_size;            /* [R][C], where scores have a bias */
    double *scores, *scores_loose;       /* [R][C] capped and masked scores, where the captured ones are not */
    double *pad;                         /* [R][C] */
    double *tile_top, *tile_top_loose;   /* [R] */
    double *beta, *beta_loose;           /* [R] */
    double *p_rounded, *p_rounded_loose; /* [R][C] P as P.V takes it */
    double *kept, *kept_loose;           /* [R][C], where there is dropout: P without what is dropped */
    double *all, *all_loose;             /* [R][C], the same: P as if nothing were */
    double *lane_sum; /* [R] sums of the lanes of l; the never-written pattern where one of them is missing */
};

/* The float64 reference of the tiles so far (reference.h). "Frame" is the m that this run's p, l and u stand on;
   weights and sums count relative to the maximum of the true scores. */
struct reference {
    struct exponential exponential;
    double *max, *max_prev;             /* [R] maximum of the true scores so far, and before this tile, natural units */
    double *max_bound, *max_bound_prev; /* [R] largest bound of a score so far, natural units */
    double *frame, *frame_prev;         /* [R] natural units */
    double *frame_loose;                /* [R] relative uncertainty of exp(-frame) */
    double *shift;                      /* [R] exp(max - frame); 1 while no key was seen */
    double *p_unit;                     /* [R] what 1 of this run's P stands for in the frame of max */
    double *decay, *decay_error;        /* [R] exp(max_prev - max), and what a correct alpha may err by */
    double *sum, *sum_error;            /* [R] sum of exp(s - max), and how far a correct l may lie from it */
    double *lost;                       /* [R] what one tile's u may lose below the smallest normal number */
    double *out, *out_error;            /* [R][D] sum of exp(s - max) v; how far a correct u may lie */
    double *turned;                     /* [R] sum of alpha's errors, whatever its argument: see reference_turn() */
    int tiles;                          /* taken in */
    double *moved, *reach, *product;    /* [D] of one row in this tile, see likely_values() */
    double *out_top;                    /* [D] largest magnitude in each column of V so far */
    double *weight, *weight_error;      /* [R][C] exp(s - max), and how far a correct p may lie from it */
    /* The true scores behind cap, bias and mask, and their bounds: [R][cols], one of them s_natural natural units. */
    const double *s, *s_bound;
    double s_natural;
    double *scores, *scores_bound; /* [R][C] room for them where these come later than S; -inf: masked */
};

/* What the errors of the sums are with all but certainty (likely.h). */
struct likely {
    bool on, merged;            /* merged: of splits, whose errors are systematic by now */
    struct product_share share; /* of U's sums in one tile */
    struct output_noise noise;
    struct noise_row *rows;           /* [R] */
    bool decided[ASC_CHANNELS];       /* of o and lse: it was narrower than the worst case in some element */
    double *decay;                    /* [R] of this tile */
    double *l, *l_variance;           /* [R] systematic errors; squares of the others */
    double *squares, *bins;           /* [R], [R][LIKELY_BINS] of the weights */
    double *u, *u_variance;           /* [R][D] */
    double *u_cut;                    /* [R][D] of u what sums are expected to cut off */
    double *weight, *weight_variance; /* [R][C] */
    /* Sums over the tile's keys: [R][D] f32, and what 1 of each row stands for, [R]. */
    double *fixed_sums, *fixed_unit, *variance_sums, *variance_unit;
};

/* The sum of the splits so far, where there are any. */
struct merged {
    double *m;                    /* [R] largest that a split has ended with, natural units; -inf: none had any key */
    double *l, *l_loose;          /* [R] sum of their l in that frame */
    double *u, *u_size, *u_loose; /* [R][D] sum of their u in that frame, and of its magnitudes w |u_s| */
    double *l_likely, *u_likely;  /* reference alone: the uncertainties with all but certainty, see likely.h */
    double *max_bound;            /* [R] reference alone: largest bound of a score in any split, natural units */
};

/* What mistakes are tried out in (causes/cause.h). X: the larger of R and C times the larger of C and D. */
struct mistake_room {
    double *want, *bound;          /* [X] what it expects of the tile at hand */
    double *operand, *size;        /* [X] an operand as the mistake has it; its magnitude, or its uncertainty */
    double *scores, *scores_loose; /* [R][C] behind cap and mask */
    double *alpha;                 /* [2][R] and its uncertainty */
    double *next;                  /* [4][R] m and alpha of the tile visited next, and their uncertainties */
    int *hidden, *visible;         /* [R] what its mask lets each row see */
};

/* K or V made ready for products: of an array, and of its sizes, as these were then; NULL: not of any. */
struct packed_operand {
    const double *of, *size_of;
    double *panels;      /* see matrix_pack() */
    double *size_panels; /* of size_of, f32 */
    double size_unit;    /* what 1 of these stands for */
};

/* Operands that several products take. Formulas that read these very arrays find them here. */
struct shared {
    struct packed_operand k, v, v_room; /* of the tile at hand */
    const double *size_q;               /* [R][D] of the slot */
    double *q_rows, *q_unit;            /* [R][D] f32 of size_q; [R] what 1 of each row stands for */
};

/* A tile of K or V whose captured bits were the input's, all finite, for other slots of its head. */
struct kept_tile {
    enum dtype dtype;
    int rows, cols;              /* 0: none */
    unsigned char *codes;        /* the bits, without gaps: what is kept belongs to those, wherever they stand */
    double *value;               /* [rows][cols] the numbers */
    struct packed_operand ready; /* of these */
    double *top;                 /* [cols] the largest magnitude in each column */
    double *block;               /* owned: all of its arrays */
    size_t bytes;
};

/* Room for products and for sums of magnitudes (magnitude.h). */
struct room {
    struct shared shared;
    const double *zero;   /* zeros: nothing is uncertain */
    double *q, *k;        /* [R][D], [C][D] |q|, |k| or |v|, or another array of that shape for a moment */
    double *p;            /* [R][C] |p| */
    double *sum;          /* [R][C] or [R][D] sums of magnitudes */
    double *a, *b, *c;    /* [R][C] or [R][D], [C][D], [R][C] or [R][D] f32: factors of such sums, and these */
    double *unit;         /* [R] what 1 of these stands for */
    double *weighed;      /* [R][D] f32: sum |p v|, then sum w |v| */
    double *weighed_unit; /* [R] what 1 of these stands for */
};

/* Room for what tensor cores give (product.h). */
struct product_room {
    double *a, *b; /* operands, taken apart */
    double *codes; /* codes of one */
    double *sums;  /* [R][C] or [R][D] f32: what the tensor core gives */
    double *out;   /* [R][C] or [R][D] f32: what the kernel makes of it */
    double *model; /* [R][C] or [R][D] what S or U is bit for bit; NaN: no product */
};

struct judge_scratch {
    int (*ask)(void *ctx); /* judge_scratch_watch() */
    void *ask_ctx;
    bool stopped;  /* the walk at hand ends here, without a result */
    double *block; /* owned, length doubles: all arrays of float64 */
    int *indices;  /* owned, index_length ints: all arrays of int */
    size_t length, index_length;
    struct stage stage[ASC_CHANNELS];
    struct operands at;
    struct original_input input[INPUTS];
    struct carried carried;
    struct prepared prepared;
    struct reference reference;
    struct likely likely;
    struct merged merged[SIDES];
    struct mistake_room mistake;
    struct room room;
    struct kept_tile *kept; /* owned, [KEPT_TILES][2] K, V of the first kv tiles; NULL: none */
    size_t kept_bytes;
    struct product_room core;
    struct matrix lanes;   /* lane_sum as the captured l, where that has several lanes */
    int *hidden, *visible; /* [R] */
    int *left_out;         /* [R] 1: the kernel left the row out of this tile, see tile_local() */
    bool any_left_out;
    int *unreal_v; /* [D] 1: V's padding made this column of U NaN or infinite */
    int *seen;     /* [kv_tiles] 1: judged already */
    struct schedule_lists lists;
    bool weighed_p;           /* room.weighed holds sum |p v| of pv_p and the v that local formulas read */
    struct stage late;        /* u of an earlier tile, recorded once this tile has rescaled it */
    int late_kv, late_masked; /* which tile that is, or -1 */
    bool pad_captured;        /* something else than -inf was captured in S's padding */
    bool masked;              /* no row sees any of the tile at hand */
    bool exact_q;             /* local formulas read the original Q */
    bool lean;                /* of the reference's S only what follows from it is asked for */
    bool exact_k;             /* local_s has worked on this tile and has read the original K */
};

/* Whether row r sees a column of the tile. */
static inline bool operands_see(const struct operands *x, int r, int col)
{
    return col >= x->hidden[r] && col < x->visible[r] && (!x->mask || x->mask[r * x->mask_row + col]);
}

/* Makes room for the case and points all buffers into it. Returns -1 where memory ran out. */
int scratch_prepare(struct judge_scratch *s, const struct oracle_case *c);

/* Points s at kv tile kv: shapes of its stages, what each row sees. */
void scratch_tile(struct judge_scratch *s, const struct oracle_case *c, int kv);

/* The captured matrix of a channel at the tile at hand (or of the slot). */
const struct matrix *scratch_captured(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch);

/* The fed matrix of a channel at the tile at hand, or NULL: not fed. */
const struct matrix *scratch_fed(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch);

/* Where the local formula of a channel writes. */
struct expected scratch_local(const struct judge_scratch *s, enum asc_channel ch);

/* Loads a captured channel and makes it, or what it was fed with, the value that local formulas read. */
void scratch_take(struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch);
/* Makes the locally expected values the ones that local formulas read: nothing was captured. */
void scratch_expect(struct judge_scratch *s, enum asc_channel ch);

#endif
