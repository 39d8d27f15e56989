/* Proposals: rules that may explain a stage, made from what was captured. Each only proposes; rule_try() judges. */
#ifndef SEARCH_PROPOSE_H
#define SEARCH_PROPOSE_H

#include "engine/oracle/search/rule.h"
#include <math.h>

/* Of any stage: a number, a factor, a constant. */
void propose_result(struct search *search);
/* Of any stage: the tile before, another place, another type. */
void propose_displaced(struct search *search);
/* Of any stage: a number in place of -inf. */
void propose_masked(struct search *search);
/* Of any stage: no number where a guard is missing. */
void propose_unguarded(struct search *search);
/* Of m, alpha, P, l, U, O, LSE: other row vectors, coefficients, exponents, keys. */
void propose_state(struct search *search);
/* Of sums over keys or elements: which count otherwise than once. */
void propose_weights(struct search *search);
/* Of Q, K, V, S and U: rows of Q, K and V from elsewhere; of S another mask. */
void propose_rows(struct search *search);

/* Solves for a number of the rule in which the result is linear, and tries it; right: what it is by rights. */
typedef void try_number(struct search *search, struct rule *rule, double *field, double right);
/* Of S: another formula of mask or score, or other places of it. */
void propose_places_of_score(struct search *search, try_number *solved);
/* Of S: the bias, or the distance that ALiBi counts, of another place. */
void propose_bias_places(struct search *search);
void propose_distances(struct search *search);
/* Of P, l and U: dropout keeps other weights, or l lacks those that it drops. */
void propose_dropout(struct search *search);
/* Of S: another mask. */
void propose_seen(struct search *search);
/* Of S and U, what their operand may be: with blocks transposed; under another swizzle; with pieces exchanged by a bit
   of the row; with elements out of place by bits of row and column; at the places that rows are taken from most often.
 */
void propose_transposed(struct search *search, enum asc_channel operand);
void propose_swizzled(struct search *search);
void propose_described(struct search *search);
void propose_panels(struct search *search, enum asc_channel operand);
void propose_summed(struct search *search, enum asc_channel operand);
void propose_paired(struct search *search);
void propose_pieces(struct search *search, enum asc_channel operand);
void propose_elements(struct search *search, enum asc_channel operand);
void propose_usual(struct search *search, enum asc_channel operand);
void propose_checkered(struct search *search, enum asc_channel operand);

/* Of Q, K and S where there is RoPE: turned otherwise than by their positions. */
void propose_rope(struct search *search);

/* Of scales of e4m3 and e8m0 that are taken for others: before what is more general, as a factor of 2. */
void propose_readings(struct search *search);

/* Of Q, K and V that are codes, and of what their scales belong to: another scale. */
void propose_scales(struct search *search);

/* Of Q, K and V that are codes of half a byte: read otherwise, on the way to a stage or where they are recorded. */
void propose_halves(struct search *search, enum asc_channel operand);

/* Of Q, K and V that the launch makes into codes: other scales of its own, codes cut off or too large. */
void propose_quantized(struct search *search);

/* Of S, l and U: operands that are rounded, cut off or moved; soft cap, attention bias, ALiBi. */
void propose_edits(struct search *search);

/* Of S and U: sums in f16. */
void propose_sums(struct search *search);

/* Of O and LSE where splits are merged: other weights, splits and rows of them. */
void propose_splits(struct search *search);

/* Of m, P, l, O and LSE: a reduction that some lanes are missing from. */
void propose_lanes(struct search *search);

/* A solved number: as it is known, at the cost of its name; `none` is what changes nothing. */
void take_known(const struct search *search, double *x, double none, double *cost);

/* A rule that changes nothing yet. */
struct rule rule_new(enum rule_kind kind);

static inline size_t wrong_cells(const struct sample_tile *t)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sample_cells(t); i++)
        wrong += t->cell[i] == CELL_WRONG;
    return wrong;
}

/* Whether most of what is wrong is near what it should be, or beyond all numbers: what a narrow type makes of a sum. */
bool is_nearly_right(const struct sample *s);

/* Whether a rule gives most of what is wrong in the first wrong tile: where most is right anyway that tells more than
   rule_is_hopeless(). */
bool gives_wrong_ones(struct search *search, const struct rule *rule);

/* Cells of a tile that are wrong, with a number where one was wanted. */
static inline bool is_wrong_number(const struct sample_tile *t, size_t i)
{
    return t->cell[i] == CELL_WRONG && isfinite(t->got[i]) && isfinite(t->want[i]);
}

#endif
