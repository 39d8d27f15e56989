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

/* MASKING: a mistake by which hidden keys have weights, or seen ones have none: the output cannot be right then.
   EVERYWHERE: it makes whole tiles all the same, so that only the others, which it leaves right, tell it from chance.
 */
enum cause_kind { MISTAKE, MASKING, EVERYWHERE, DECLARATION };

struct candidate {
    const struct walk_tile *tile;
    enum asc_channel channel;
    double parameter;
    double *want, *bound; /* out, [rows][cols] of the stage */
    const double *rival;  /* out, may be NULL: what a simpler formula wants; equal to it, an element tells nothing */
    /* out, [rows]: what stands in columns of s or p beyond kv_len that are not masked, in row_padding; NULL: all are.
     */
    const double *row_padding, *row_padding_bound;
    enum dtype rounds; /* out: the value is rounded to this type on top; DTYPE_COUNT: it is not */
    /* out: a number that a convention puts in place of a formula, to whole tiles of it; NaN: there is none */
    double constant;
    int truncates; /* out: conversion to the captured type cuts off instead of rounding */
    int unreal;    /* out: where want is NaN the formula says just that: no number stands there */
    int makes_nan; /* out: want is NaN where the mistake makes it so, and that tells it from a number */
};

/* Each cause_<id>() fills the candidate. Returns 0 where the formula has no meaning for this case. */
#define CAUSE(id, ...) int cause_##id(struct candidate *k);
#define RULED(...)
#include "engine/oracle/causes/causes.def"
#undef RULED
#undef CAUSE

/* What a formula has a choice of. value: the i-th value it may take on this tile, NaN behind the last one. describe: in
   words for the user, "n = 48"; NULL: nothing to say. Without a value there is no choice, only something to say. */
struct cause_parameter {
    double (*value)(const struct walk_tile *tile, int i);
    void (*describe)(const struct oracle_case *c, double value, char *text, size_t bytes);
};
extern const struct cause_parameter parameter_alpha_first, parameter_code_zero_point, parameter_f16_core,
    parameter_f16_sum, parameter_fold, parameter_format_of_k, parameter_format_of_q, parameter_format_of_v,
    parameter_m_unit, parameter_m_unit_pair, parameter_masked_value, parameter_narrow_type, parameter_none,
    parameter_padding, parameter_s_at, parameter_s_unit, parameter_swizzle_of_s, parameter_unit_pair,
    parameter_weak_mask, parameter_which_scale, parameter_wrong_scale_of_qk, parameter_wrong_scale_of_v,
    parameter_zero_point_of_k, parameter_zero_point_of_q, parameter_zero_point_of_v;

const struct cause_parameter *cause_parameter(enum cause c);

int cause_is_everywhere(enum cause c); /* 1: of that kind */

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
/* What a swizzle parameter names: row r has its 16-byte piece i at i ^ r & mask, in Q and K or in one of them. */
struct swizzle {
    unsigned mask;
    int of_q, of_k; /* V has a mask alone */
};
struct swizzle cause_swizzle(double parameter);
/* Q, K or V with its pieces so out of place; out as the stage. */
void cause_swizzle_operand(const struct candidate *k, enum asc_channel ch, unsigned mask, double *out);
/* The type that a narrow_type parameter names. */
enum dtype cause_type(double parameter);
/* The bound of an operand that holds want: of one made from codes as codes_load has it, else 0. */
void cause_bound_operand(const struct candidate *k);

/* The units of a unit_pair parameter in c and s; 0 where they are the declared ones. */
int cause_declare_pair(const struct candidate *k, struct oracle_case *c, struct operands *s);

/* The stage with exponents `by` times what they are, and LSE with m. */
int cause_p_exponent_times(const struct candidate *k, double by);
int cause_alpha_exponent_times(const struct candidate *k, double by);
int cause_lse_m_times(const struct candidate *k, double by);
/* U as `s` and the conventions of `c` have it, as it was recorded. */
int cause_u_of(const struct candidate *k, const struct oracle_case *c, struct operands *s);

/* Masks. */
/* Scores as they are read where S is recorded at the point that a parameter names, in c and s; 0 where the mask is
   declared to come later anyway, or comes before that point too. */
int cause_declare_s_at(const struct candidate *k, struct oracle_case *c, struct operands *s);
struct oracle_case cause_without_mask(const struct oracle_case *c);
/* 1 if row r may see column col of the tile. */
int cause_sees(const struct walk_tile *tile, int r, int col);
/* Lets s see what `mask` allows, each row as far as the row `by` below it. */
void cause_see(const struct candidate *k, const struct oracle_case *mask, int by, struct operands *s);
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
