/* Rounding bounds of "scalar f32 in any order": how far a correct kernel may lie from float64 arithmetic on the same
   operands. Sources: Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapters 3 and 4, for sums and
   products; CUDA C++ Programming Guide, mathematical functions, for exponential, logarithm and division, which hold on
   any GPU. "Measured" is the largest error of an H200 over all 2^32 arguments (2^30 pairs of a division), 2026-11-20,
   driver 580.159, CUDA 13.0: docs/gpu-report/numerics.md; test_numerics.c holds the constants against these figures.

   The oracle's own float64 error stays inside SLACK: a float64 product of n terms errs by n 2^-53 times the sum of
   magnitudes, 2^-29 of what the same product may err in f32, exp by 2^-46, 2^-24 of its f32 bound, and log by 2^-52. So
   do the second-order terms that the formulas leave out (products of two relative errors of size n u, n up to a few
   hundred, are n u < 2^-15 of a bound). */
#ifndef ORACLE_BOUND_H
#define ORACLE_BOUND_H

#include "engine/oracle/formula.h"
#include "engine/oracle/oracle.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* What scales of Q and K in the constant by which scores become natural add to the error of a natural number x: each is
   one more f32 that the constant was multiplied by, and rounded. */
static inline double bound_folded_scales(const struct oracle_case *c, double x)
{
    return c->conventions.qk_descale == ASC_QK_FOLDED ? 2 * BOUND_U * BOUND_SLACK * fabs(x) : 0;
}

/* bound_exp with the kernel's declared exponential. */
static inline double bound_exp_declared(const struct oracle_case *c, double x, double folded)
{
    const double declared = (double)c->conventions.exp_error;
    return bound_exp(x, folded) + (declared > 0 ? (declared - BOUND_EXP) * BOUND_SLACK : 0) + bound_folded_scales(c, x);
}

/* What P, l and U carry, and its logarithm. */
static inline double bound_p_factor(const struct oracle_case *c)
{
    return ldexp(c->conventions.p_factor > 0 ? (double)c->conventions.p_factor : 1, c->conventions.p_offset);
}
static inline double bound_ln_factor(const struct oracle_case *c)
{
    return c->conventions.p_offset * M_LN2 + (c->conventions.p_factor > 0 ? log((double)c->conventions.p_factor) : 0);
}

/* With P's factor f, p = f exp(x) is exp2(s c - (m c - log2 f)), or exp(x) times f: one more rounding, of u (|m c| +
   |ln f|) or of u, and where the constant is rounded u |ln f| more, which `folded` has room for (2 u of it) if this is
   added to it. A product rounds once whatever f is: of one that is no power of two |ln f| is taken to be 1 at least. */
static inline double bound_offset(const struct oracle_case *c)
{
    const double size = fabs(bound_ln_factor(c));
    return c->conventions.p_factor > 0 ? fmax(size, 1) : size;
}

/* tanh.approx.f32: measured 2^-16.46 relative, over all arguments on an H200 and the same on Turing (N. Juffa, NVIDIA
   developer forum 173291: 1.113e-5); 2^-14 leaves a factor of 5 for other GPUs. The PTX ISA promises no more than
   2^-11: a GPU that needs it, and a 16-bit tanh, declares tanh_error. The argument has been multiplied by a rounded
   scale / cap (3 u), which tanh turns into at most as much, since x tanh'(x) <= tanh x; cap and log2 e cost 3 u more.
 */
static inline double bound_tanh(const struct oracle_case *c)
{
    const double declared = (double)c->conventions.tanh_error;
    const int scales = c->conventions.qk_descale == ASC_QK_FOLDED ? 2 : 0; /* two more roundings of that argument */
    return (declared > 0 ? declared : BOUND_TANH) + (6 + scales) * BOUND_U;
}

/* Score in unit f = 1, c or c log2 e: |error| <= bound_score * |f| sum|q k| + bound_score_tiny.
   A dot product of D terms rounds each term D times at most (FMA or not, any order): gamma_D. Multiplying by f after
   the sum, or q by f before it, rounds once more: gamma_(D+1) covers both, as (1 + u) gamma_D + u <= gamma_(D+1).
   In log2 units the constant c log2 e has been rounded twice on the way (log2 e, and the product). */
static inline double bound_score(int head_dim, int unit)
{
    return bound_gamma(head_dim + 1 + (unit == ASC_UNIT_LOG2 ? 2 : 0));
}

/* What a factor adds to that where it is no normal number: it has been rounded by up to 2^-150, or flushed. */
static inline double bound_factor(double factor)
{
    return fabs(factor) < BOUND_TINY ? 2 : 0;
}

static inline double bound_score_tiny(int head_dim)
{
    return (head_dim + 1) * BOUND_TINY;
}

/* Running sum l = alpha l_prev + sum p over bc keys: each term passes at most bc additions, the multiplication and the
   few additions that join partial sums of lanes and the carried sum: (bc + 6) roundings of sum of magnitudes. */
static inline double bound_sum(int bc)
{
    return bound_gamma(bc + 6);
}

/* u = alpha u_prev + p v over bc keys: bc for the dot product, one for alpha u_prev, one for joining them. */
static inline double bound_accumulate(int bc)
{
    return bound_gamma(bc + 2);
}

/* How often O is rounded besides, see output_scaled(). */
static inline double bound_output_roundings(const struct oracle_case *c)
{
    const bool drops = c->keep.data && c->conventions.dropout_factor == ASC_DROPOUT_AT_END;
    return 2 * (c->conventions.v_descale == ASC_V_OUTPUT) + 5 * drops;
}
static inline double bound_descale(const struct oracle_case *c, double o, double bound, double scale)
{
    return output_scaled(o, bound, bound_output_roundings(c), scale);
}

/* For a type narrower than f32: *unit, its unit roundoff, and *half_tiny, half its smallest subnormal; rounding x moves
   it by at most unit |x| + half_tiny. Returns false (and zeros) for all others. Measured: every f32 becomes the f16,
   bf16, e4m3 or e5m2 that bound_round gives. */
bool bound_narrow(enum dtype t, double *unit, double *half_tiny);
double bound_largest(enum dtype t); /* the largest number of such a type; 0 of all others */

/* x rounded to nearest even into t, as float64. */
double bound_round(enum dtype t, double x);
/* The same as if t had no largest number: what a saturating conversion should have had room for. */
double bound_round_unlimited(enum dtype t, double x);
/* The same of each of n numbers; what is not finite stays. */
void bound_round_row(enum dtype t, const double *x, int n, double *out);

#endif
