/* Attention of one q tile as a dataflow whose parts can be exchanged: Q, K, scores, weights, V, each as it was given or
   as a run had it. What attribution, the comparison of paths and what-if are made of. All arrays float64, row-major;
   scores natural (what exp takes), -inf where masked; keys from 0 to kv_len. */
#ifndef QUANTIZATION_FLOW_H
#define QUANTIZATION_FLOW_H

#include "engine/oracle/scratch.h"
#include <stdbool.h>

/* Rows of the q tile, keys, head_dim and head_dim_v of a case. */
struct flow_shape {
    int rows, keys, dim, dim_v;
};
struct flow_shape flow_shape(const struct oracle_case *c);

/* Inputs: as the case holds them (of codes their values, times their scales), or, where a tile of the channel was
   captured, as the kernel used it. q: [rows][dim]; k: [keys][dim]; v: [keys][dim_v]. */
enum flow_source { FLOW_INPUT, FLOW_USED };
void flow_load(const struct oracle_case *c, enum asc_channel ch, enum flow_source source, double *out);

/* scale q k, soft cap, bias, mask. s: [rows][keys]. */
void flow_scores(const struct oracle_case *c, const double *q, const double *k, double *s);
/* The scores that the run went on with: captured ones, made natural; of a tile that it did not visit -inf. Where S was
   not recorded, those of `model` stay (s may be model). Returns whether it was. */
bool flow_run_scores(const struct oracle_case *c, const double *model, double *s);

/* Weights of P V, divided by l: they add up to 1 but for a sink. A row without a key has none. w may be s. */
void flow_weights(const struct oracle_case *c, const double *s, double *w);

/* The same as a kernel rounds them: p = factor exp(s - m) with the running maximum m of each kv tile (of the run's
   own where it was captured), rounded into a type. Any of the outputs but w may be NULL. */
struct flow_rounding {
    int type;      /* enum dtype of P in P V, saturated; -1: not rounded */
    double factor; /* that P carries */
    int sums;      /* enum asc_l_from */
};
struct flow_weights {
    double *w;    /* [rows][keys] rounded p / l, in one frame: what V is multiplied by */
    double *p;    /* [rows][keys] p before it was rounded, in its own frame */
    double *code; /* [rows][keys] and after */
};
void flow_round_weights(const struct oracle_case *c, const double *s, const struct flow_rounding *rounding,
                        const struct flow_weights *out);
/* How this run's kernel rounds P, from its conventions and the type it was recorded in. */
struct flow_rounding flow_rounding(const struct oracle_case *c);
/* The weights of the run: from its captured P where that was recorded, else as flow_round_weights() makes them from s,
   its scores. Returns whether P was recorded. */
bool flow_run_weights(const struct oracle_case *c, const double *s, const struct flow_weights *out);

/* o: [rows][dim_v] = w v. */
void flow_output(const struct oracle_case *c, const double *w, const double *v, double *o);
/* The run's own output, as it left it or its probe recorded it. false: neither is there. */
bool flow_run_output(const struct oracle_case *c, double *o);

/* Where a kv tile begins, and how many keys it has. */
int flow_tile(const struct oracle_case *c, int kv, int *first);
/* Whether the run recorded anything at this kv tile, or its visits are not known at all. */
bool flow_visited(const struct oracle_case *c, int kv);

#endif
