/* Causes from within: a formula of one mistake, evaluated for one tile. It reads what this run captured upstream, as
   the right formula does, and says what the stage would hold if the kernel had made the mistake, with its bound.

   Most are the right formula (local.h) on operands that the mistake has altered: it takes a copy of the operands
   (cause_altered), points some of them at values of its own, and calls the local formula, which writes to want and
   bound of the candidate (cause_out). */
#ifndef CAUSES_CAUSE_H
#define CAUSES_CAUSE_H

#include "engine/base/format.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/causes/causes.h"
#include "engine/oracle/slot_walk.h"
#include <math.h>

enum cause_kind { MISTAKE, FAMILY, DECLARATION };

struct candidate {
    const struct walk_tile *tile;
    enum asc_channel channel;
    double parameter;
    const int *conventions; /* [2] of a declaration */
    double *want, *bound;   /* out, [rows][cols] of the stage */
    /* out, [rows]: what stands in columns of s or p beyond kv_len that are not masked, in row_padding; NULL: all are.
     */
    const double *row_padding, *row_padding_bound;
    bool hides_none; /* out, with it: no other mask hides a part of them */
    /* out: a number that a convention puts in place of a formula, to whole tiles of it; NaN: there is none */
    double constant;
};

/* Each cause_<id>() fills the candidate. Returns 0 where the formula has no meaning for this case. */
#define CAUSE(id, ...) int cause_##id(struct candidate *k);
#define RULED(...)
#define DECLARED(...)
#include "engine/oracle/causes/causes.def"
#undef DECLARED
#undef RULED
#undef CAUSE
int cause_declared(struct candidate *k);
const int *cause_conventions(enum cause c); /* [2] of a declaration, the second may be -1 */

/* What a formula has a choice of. value: the i-th value it may take on this tile, NaN behind the last one. describe: in
   words for the user, "n = 48"; NULL: nothing to say. Without a value there is no choice, only something to say. */
struct cause_parameter {
    double (*value)(const struct walk_tile *tile, enum cause cause, int i);
    void (*describe)(const struct oracle_case *c, enum cause cause, double value, char *text, size_t bytes);
};
extern const struct cause_parameter parameter_declared, parameter_masked_value, parameter_narrow_type, parameter_none,
    parameter_padding, parameter_weak_mask;

const struct cause_parameter *cause_parameter(enum cause c);

/* Calls the formula of a cause. */
int cause_fill(enum cause c, struct candidate *k);

/* A copy of the tile's operands, and where the local formula writes the candidate. */
struct operands cause_altered(const struct candidate *k);
struct expected cause_out(const struct candidate *k);
/* Adds what n more roundings may cost to the bound. */
void cause_loosen(const struct candidate *k, int n);
/* want and bound of the right formula, copied. */
void cause_right(const struct candidate *k);
/* A copy of values in the shape of a stage, in cause_operand. */
double *cause_copy(const struct candidate *k, const double *values, enum asc_channel shape);
/* The type that a narrow_type parameter names. */
enum dtype cause_type(double parameter);

/* Masks. */
/* Scores as they are read where S is recorded at the point that c says, in s; 0 where the mask is declared to come
   later anyway, or comes before that point too. */
int cause_reads_at(const struct candidate *k, const struct oracle_case *c, struct operands *s);
/* A key beyond kv_len is a row of zeros. */
void cause_zero_padding(struct candidate *k);
/* 1 if row r may see column col of the tile. */
int cause_sees(const struct walk_tile *tile, int r, int col);
/* The weight of a key beyond kv_len, a row of zeros, in row r: exp(0 - m). */
double cause_padding_weight(const struct walk_tile *tile, int r, double *bound);
/* Makes s read the expected scores where captured ones are masked. */
void cause_unmasked_scores(const struct candidate *k, struct operands *s);

/* Evidence: sets the candidate against what was captured, over the half of the elements that `half` names (0: those
   that choose a parameter, 1: those that confirm it, -1: all). Stops early where more than `most_failed` cannot be
   explained. */
int cause_half(int row, int col);
/* Counts a value among those of the evidence, once. */
void cause_note_value(struct cause_evidence *e, uint64_t value);
void cause_weigh(const struct candidate *k, int half, uint64_t most_failed, struct cause_evidence *e);

#endif
