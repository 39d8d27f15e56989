/* What each stage should be, computed in float64 from what this very run captured upstream.

   Where an upstream channel is not recorded, the value expected of it takes its place, and its bound enters the next
   stage's as an uncertainty of the operand (`loose` in struct operand): bounds compose along the chain. With all
   channels recorded in f32 every uncertainty is zero.

   Operands that are NaN or infinite without cause make the expected value NaN, "no statement": that fault is the
   upstream stage's. Legitimate infinities stay exact: masked scores, m of a row that has seen no key, lse of one that
   has none. */
#ifndef ORACLE_LOCAL_H
#define ORACLE_LOCAL_H

#include "engine/oracle/scratch.h"
#include <stdbool.h>

/* Before the first tile of a split. */
void local_begin(const struct oracle_case *c, struct judge_scratch *s, int split);

/* Whether m begins at the sink in a split. The first one alone does: it would count more than once otherwise. */
bool local_begins_at_sink(const struct oracle_case *c, int split);
/* m of a row that has seen no key and no sink, in its unit. */
double local_m_start(const struct oracle_case *c);
/* m before the first tile of a split: the same, or the sink; and how far the kernel's own may lie from it. */
double local_m_begin(const struct oracle_case *c, int split);
double local_m_begin_loose(const struct oracle_case *c, int split);
/* l before it, in units of P's factor: 1, the sink's weight, where l begins with that. */
double local_l_begin(const struct oracle_case *c, int split);
/* LSE of a row that has a sink and no key: the sink, unless the kernel gives what it says of rows without any key. */
double local_lse_of_sink(const struct oracle_case *c, int r, double *bound);

/* What m should be where the running maximum is top: of the values that the declared policy permits the one nearest to
   the captured m (got; NULL: not recorded, then their middle, its uncertainty added to *bound). */
double local_policy(const struct oracle_case *c, double top, const double *got, double *bound);

/* True where alpha is what the conventions say, *alpha, whatever m has become; false: exp(m_prev - m). */
bool local_alpha_declared(const struct oracle_case *c, const struct operands *x, double m_prev, double *alpha);

/* Behind m: the maximum of this tile's scores alone, and what a weight that stands on it counts in l and U. */
void local_tile_top(const struct oracle_case *c, struct judge_scratch *s);
/* What P of the tile at hand stands on, in m's unit, and its uncertainty: m, or this tile's own maximum. */
struct operand local_p_frame(const struct oracle_case *c, const struct operands *x);

/* Whether the kernel declares that it has no alpha: there is nothing to rescale, and what alpha is does not matter. */
bool local_alpha_none(const struct oracle_case *c, const struct operands *x);

/* Each computes its stage for the tile at hand from the operands; `room` is for products. */
void local_s(const struct oracle_case *c, const struct operands *x, const struct room *room, struct expected out);
void local_m(const struct oracle_case *c, const struct operands *x, struct expected out);
void local_alpha(const struct oracle_case *c, const struct operands *x, struct expected out);
void local_p(const struct oracle_case *c, const struct operands *x, struct expected out);
void local_l(const struct oracle_case *c, const struct operands *x, struct expected out);
void local_u(const struct oracle_case *c, const struct operands *x, const struct room *room, struct expected out);
/* out = times P V. */
struct weighed_v {
    int rows, dim, keys;
    double times;
    const double *weights, *v; /* [rows][keys], [keys][dim] */
};
void local_weigh_v(const struct room *room, const struct weighed_v *x, double *out);
/* After the last tile. */
void local_o(const struct oracle_case *c, const struct operands *x, struct expected out);
void local_lse(const struct oracle_case *c, const struct operands *x, struct expected out);

/* Scores as m and P read them (`seen`: [R][C] where they are not the captured ones), weights as P.V and l take them:
   after s, and after p, have been adopted. */
void local_use_scores(const struct oracle_case *c, struct operands *x, struct expected seen);
void local_use_weights(const struct oracle_case *c, struct judge_scratch *s);

/* Where u is recorded after the next tile's rescaling: keeps u of this tile; and once alpha of the next is known,
   applies it. */
void local_keep_u(const struct oracle_case *c, struct judge_scratch *s);
void local_rescale_u(const struct oracle_case *c, struct judge_scratch *s);
/* want *= alpha, [rows][head_dim_v] and [rows]; bounds grow by one rounding more and by alpha's own uncertainty. */
void local_rescale(const struct oracle_case *c, const double *alpha, const double *alpha_loose, double *want,
                   double *bound);

/* m, l and u of this tile become the ones before the next. */
void local_advance(const struct oracle_case *c, struct judge_scratch *s);

/* Scores factor q k' of the tile with their bound, masked; both [rows][kv_cols]. qs, ks: sizes of the operands (their
   magnitudes, grown by what conversion may have cost). Shared with the reference and the causes. */
struct score_product {
    const double *q, *k, *size_q, *size_k; /* [rows][head_dim], [kv_cols][head_dim] */
    double factor, relative;               /* score = factor q.k, bound = relative |factor| sum |q k| */
    double *want, *bound;
};
void local_score(const struct oracle_case *c, const struct operands *x, const struct room *room,
                 const struct score_product *product);

/* To bound what operands may be off by, beyond local_score. */
void local_score_lossy(const struct oracle_case *c, const struct operands *x, const struct room *room,
                       const struct score_product *product);

/* Captured or expected scores and their uncertainties, [rows][kv_cols], behind the cap, bias and mask that come after
   the capture; cap and bias leave them in natural units. */
struct score_view {
    const double *value, *loose;
    double *out, *out_loose;
};
void local_see_scores(const struct oracle_case *c, const struct operands *x, const struct score_view *view);

#endif
