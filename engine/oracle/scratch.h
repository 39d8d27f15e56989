/* Working memory of one judging thread, and the tile that is being worked on. */
#ifndef ORACLE_SCRATCH_H
#define ORACLE_SCRATCH_H

#include "engine/oracle/oracle.h"

enum side { LOCAL, GLOBAL, SIDES };

/* One channel of the tile at hand. Arrays are [rows][cols] of the channel's valid region. */
struct stage {
    int rows, cols;
    int recorded; /* 1: got holds what this run captured here */
    double *got;
    double *want[SIDES]; /* NaN: its operands allow no statement; +-inf: exactly this infinity is expected */
    double *bound[SIDES];
    double *got_room, *want_room; /* of got and want[LOCAL], where an operand is no array of its own */
    double *loose_room;           /* of loose; of a channel that was fed: the values the kernel went on with */
    /* What the local formulas downstream take for this channel: the captured values, or where there are none the
       expected ones; and how far the kernel's own values may lie from it (all zero for captured f32). */
    const double *value, *loose;
    int exact; /* 1: loose is all zero */
};

struct judge_scratch {
    int (*ask)(void *ctx); /* judge_scratch_watch() */
    void *ask_ctx;
    int stopped;   /* 1: the walk at hand ends here, without a result */
    double *block; /* owned, room doubles: all arrays of float64 */
    int *indices;  /* owned, index_room ints: all arrays of int */
    size_t room, index_room;
    struct stage stage[ASC_CHANNELS];
#define BUFFER(name, elements, meaning) double *name;
#include "engine/oracle/buffers.def"
#undef BUFFER
    struct matrix lanes;               /* lane_sum as the captured l, where that has several lanes */
    int *hidden, *visible;             /* [R] each row may see columns hidden .. visible - 1 of the tile */
    int *cause_hidden, *cause_visible; /* [R] the same under the mask of a mistake */
    int *unreal_v;                     /* [D] 1: V's padding made this column of U NaN or infinite */
    int *seen;                         /* [kv_tiles] 1: judged already */
    /* What takes part in sums of magnitudes: of the original inputs, and of the q, k and v that local formulas read.
       Their own values, signs and all, where nothing makes the magnitudes larger. */
    const double *in_q_size, *in_k_size, *in_v_size, *use_q, *use_k, *use_v;
    /* Scores as m and P read them: capped and masked. use_s is in unit use_s_natural; loose as in struct stage. */
    const double *use_s, *use_s_loose; /* [R][kv_cols] */
    double use_s_natural;              /* 1 of it in natural units */
    int use_s_direct;                  /* 1: m is the maximum of these very numbers */
    /* The true scores behind cap and mask, and their bounds; 1 of them in natural units. */
    const double *true_s, *true_s_bound; /* [R][kv_cols] */
    double true_s_natural;
    /* P as P.V and as l take it; loose as in struct stage. */
    const double *pv_p, *pv_p_loose, *l_p, *l_p_loose; /* [R][kv_cols] */
    int pv_p_exact;                                    /* 1: pv_p_loose is all zero */
    int u_prev_exact;                                  /* 1: u_prev_loose is all zero */
    int weighed_p;            /* 1: weighed_sizes holds sum |p v| of pv_p and the v that local formulas read */
    struct stage late;        /* u of an earlier tile, recorded once this tile has rescaled it */
    int late_kv, late_masked; /* which tile that is, or -1 */
    int folds_unseen;         /* 1: Q is folded and rounded where no probe sees it */
    /* 1: where no probe sees it, Q, or K or V of the tile, is converted as lossy_q says */
    int unseen_q, unseen_k, unseen_v;
    int split;        /* which split of the keys is walked through */
    int tiles_seen;   /* tiles of it of which something was computed, before this one */
    int kv;           /* the tile at hand */
    int kv_cols;      /* its columns */
    int pad_cols;     /* padding columns of s that went on as something else than -inf, or 0 */
    int pad_captured; /* 1: something else than -inf was captured there */
    int masked;       /* 1: no row sees any of it */
    int exact_q;      /* 1: local formulas read the original Q */
    int exact_k;      /* 1: local_s has worked on this tile and has read the original K */
    /* 1: converting the inputs to the type that the kernel takes them in may have moved them; k and v: of the tile */
    int lossy_q, lossy_k, lossy_v;
    int scales_s;   /* 1: S gets by_q and by_k, being a product of codes */
    double times_v; /* what P V of the tile is multiplied by, V being codes; 1: it is not */
};

/* Makes room for the case and points all buffers into it. Returns -1 where memory ran out. */
int scratch_prepare(struct judge_scratch *s, const struct oracle_case *c);

/* Points s at kv tile kv: shapes of its stages, what each row sees. */
void scratch_tile(struct judge_scratch *s, const struct oracle_case *c, int kv);

/* The captured matrix of a channel at the tile at hand (or of the slot). */
const struct matrix *scratch_captured(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch);

/* The fed matrix of a channel at the tile at hand, or NULL: not fed. */
const struct matrix *scratch_fed(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch);

/* Loads a captured channel and makes it, or what it was fed with, the value that local formulas read. */
void scratch_take(struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch);
/* Makes the locally expected values the ones that local formulas read: nothing was captured. */
void scratch_expect(struct judge_scratch *s, enum asc_channel ch);

#endif
