/* The float64 reference from the original inputs, and how far a correct kernel may lie from it at each stage.

   m, P, l and U stand on the maximum the kernel took. Two frames m and m' give p and p exp(m - m'), so they are
   compared in this run's own: its captured m is the frame, whatever it is, and reference is exp(true s - frame). A
   wrong m is then m's fault alone. Where the captured m is no usable frame (not finite, or further from the true
   maximum than exp can bridge in f32) the true maximum is.

   Inside, everything is kept relative to the true running maximum, M, so that nothing can overflow:
     w = exp(s - M), L = sum w, U = sum w v.

   How far a correct kernel may lie from it, composed through the stages (hats are the kernel's, F its frame, B the
   bound of a score, e the relative error of one exponential at the argument it gets): p:  p^/p = exp(s^ - s) (1 + e),
   so |p^ - p| <= p d, d = expm1(B + e) l:  E_j = decay (1 + e_alpha) E_(j-1) + decay e_alpha L_(j-1) + sum w d +
   gamma(Bc+6) (L_j + E_j) with decay = exp(M_(j-1) - M_j): the previous error is carried along, alpha's own error falls
   on what l was, each weight's error falls on the sum, and the additions round what they add; of n lanes each adds Bc/n
   keys. u:  E_j = decay (1 + e_alpha) E_(j-1) + decay e_alpha |U_(j-1)| + sum w d |v| + g (decay |U_(j-1)| + A_j + the
   errors so far), A_j = sum w |v| over the tile: no partial sum within it, in any order, is larger, and what was summed
   before counts as what it has come to, not as its magnitudes. o = u / l:  |o^ - o| <= (E_u + |o| E_l) / (L - E_l),
   then the division's own error lse = m + ln l: -ln(1 - E_l / L), then its own error.

   Where P stands on the maximum of its own tile, T (convention p_max), p is w exp(M - T) and errs by d as before, the
   exponential's argument being s - T; l and u take it in times b = exp(T - F), which errs by e_b, and one operation
   rounds: a weight's part in E is then w (d + expm1(e_b + u)), and T itself cancels out of p b. Where U is divided by l
   after every tile (u_norm), N_j = u^_j l^_j is an unnormalized U: N_j = (alpha^ N_(j-1) + p^ v) (1 + 6 u), the six
   being the operations of a step beyond alpha u_prev + p v, so that E_u is that of U with six roundings more a step;
   and |u^ - u| <= (E_u + |u| E_l) / (L - E_l) as for o. Where rows are long, o and lse may err by less than that with
   all but certainty: likely.h. */
#ifndef ORACLE_REFERENCE_H
#define ORACLE_REFERENCE_H

#include "engine/oracle/bound.h"
#include "engine/oracle/scratch.h"
#include <math.h>

/* Loads Q as float64; and of the tile at hand K or V, which operand_take() does. */
void reference_load(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch);
/* Of that, what its codes' scales multiply scores and P V by. */
void reference_scales(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch);
void reference_inputs(const struct oracle_case *c, struct judge_scratch *s);
/* Before the first tile of a split. */
void reference_begin(const struct oracle_case *c, struct judge_scratch *s, int split);

/* Scores of the tile at hand: want[GLOBAL] and bound[GLOBAL] of s. */
void reference_s(const struct oracle_case *c, struct judge_scratch *s);
/* Takes in the tile at hand (after reference_s) and fills want[GLOBAL] and bound[GLOBAL] of m, alpha, p, l and u. The
   frame is what stage m captured, if it did. */
void reference_tile(const struct oracle_case *c, struct judge_scratch *s);

/* Steps of it, in reference_u.c. What u of all tiles before this one is in this tile's frame, where it is recorded
   after its rescaling; then U: weight and weight_error are read, and what V and a rounded P cost is added to the
   latter. */
void reference_late_u(const struct oracle_case *c, struct judge_scratch *s);
void reference_u(const struct oracle_case *c, struct judge_scratch *s);

/* 2^k, the factor of P, l and U. */
static inline double reference_offset(const struct oracle_case *c)
{
    return bound_p_factor(c);
}

/* How an input is rounded before it is used. false: it is not; *t says so as well. */
bool reference_input(const struct oracle_case *c, enum asc_channel ch, struct input_terms *t);
/* How many weights of a tile an l adds up: each of several lanes sums its share of them. */
int reference_added_keys(const struct oracle_case *c);
/* What summing a tile costs U, relative to the largest partial sum. */
double reference_accumulate_error(const struct oracle_case *c);

/* Where no visit was seen, the kernel may have taken the kv tiles of the split from the last to the first. Its partial
   sums are then what is left of the whole, |U - U_j| <= |U| + |U_j|: what falls on them falls on the last one as well,
   in every tile. After the last tile of a split. */
void reference_turn(const struct oracle_case *c, struct judge_scratch *s);

/* After all tiles with a visible key, their splits merged (merge.h): o and lse. */
void reference_end(const struct oracle_case *c, struct judge_scratch *s);

#endif
