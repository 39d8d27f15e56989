/* Inputs that are codes, given as such or made by the launch itself. All readers of in_q, in_k, in_v and of other
   heads' go through here.

   What the products take depends on the conventions qk_descale and v_descale: with "operands" the dequantized values,
   else those of the codes; their scales then come behind the product (codes_by, codes_v_times, codes_o_times) or, with
   "folded", are part of the case's scale. */
#ifndef ORACLE_CODES_H
#define ORACLE_CODES_H

#include "engine/oracle/oracle.h"
#include <stdbool.h>

/* The type that a launch makes values into, and the value nearest to x there, saturated. quantized: not GIVEN. */
enum dtype codes_type(int quantized);
double codes_round(enum dtype of, double x);
/* Scales as convention `quantized` says, [groups]: of the rows of m, `rows` sharing one; 0: all of them. */
void codes_make_scales(const struct matrix *m, int quantized, int rows, float *scale);
int codes_groups(int head_rows, int rows);

/* The scale of element `col` of row r of a matrix; 1 where its elements are values. What is left of scales behind a
   product is that of all elements of a row (codes_refused()): column 0 stands for them. */
double codes_scale(const struct coding *coding, int r, int col);
/* How often a value that is made of a code is rounded, in f32: not at all by a power of two, twice where the scales of
   block and tensor are multiplied first, as 4 + 24 bits do not fit. A code times a scale of e4m3 does. */
int codes_roundings(const struct coding *coding);
/* Its number among those of the head; row: of the head. */
int codes_scale_at(const struct coding *coding, int row, int col);

/* The input that channel q, k or v comes from, and how it is coded. */
const struct matrix *codes_input(const struct oracle_case *c, enum asc_channel ch);
const struct coding *codes_of(const struct oracle_case *c, enum asc_channel ch);
/* 1 if it is codes that become values before they are multiplied; 2 if codes are multiplied; 0: it is no codes. */
enum codes_use { CODES_NONE, CODES_DESCALED, CODES_RAW };
enum codes_use codes_use(const struct oracle_case *c, enum asc_channel ch);

/* A part of an input. */
struct coded_rows {
    enum asc_channel ch; /* whose conventions hold */
    const struct matrix *input;
    const struct coding *coding;
    int first, rows;
};

/* out: what the products take, [rows][cols]. loose: how far a correct kernel's may lie from it before it is rounded to
   the type it is used in, the same shape; not written, and may be NULL, where codes_use is CODES_NONE. Returns whether
   anything of loose is not 0.

   A value made from a code is rounded once, u |x|, see codes_roundings() for scales that are no f32. Where the launch
   quantizes, its scale may be another f32 (4 u: an approximate division), and a quotient so near the middle of two
   codes that 8 u of it decide may become either (2 u for each of two divisions, or of a division and a multiplication;
   as much again for approximate ones): out then lies between the two.

   RoPE turns a pair (a, b) into (a c - b s, b c + a s), which is x, y of the same length: two products and a sum in f32
   err by u (|a c| + |b s|) + u |x|, of which |a c| + |b s| <= |a, b| |c, s| = |x, y| (Cauchy and Schwarz), and what out
   has of it was rounded once more: 3 u |x, y|. A kernel with other cosines and sines (convention rope_error, e) is
   off by e (|a| + |b|) <= e sqrt(2) |x, y| besides. What it then rounds to a narrower type is not in loose. */
bool codes_load(const struct oracle_case *c, const struct coded_rows *part, double *out, double *loose);

/* By how much a code of row r and column `col` of an input that is one more makes it larger: its scale where it becomes
 * a value, else 1.
 */
double codes_step(const struct oracle_case *c, enum asc_channel ch, int r, int col);

/* What is left to multiply S by, [rows of the q tile] or [keys of the tile that begins at key `first`]: with "product"
   the scales. Returns whether they are not all 1 by convention. */
bool codes_by(const struct oracle_case *c, enum asc_channel ch, int first, int n, double *by);
/* What is left to multiply P V by, of the tile at key `first`, and U before it becomes O: the factor of dropout too. */
double codes_v_times(const struct oracle_case *c, int first);
double codes_o_times(const struct oracle_case *c);

/* Whether what the products take is no one number even in the type it is used in: made from codes, or turned by RoPE.
 */
bool codes_uncertain(const struct oracle_case *c, enum asc_channel ch);

/* How many more roundings lie between a product of codes and natural scores than between one of values. */
int codes_descale_roundings(const struct oracle_case *c);

/* Puts the scales of Q and K into the case's scale where the conventions fold them into the exponential. */
void codes_fold(struct oracle_case *c);
/* The case's scale without them: that of the softmax. */
double codes_plain_scale(const struct oracle_case *c);

/* NULL, or one sentence: scales that change where the conventions leave no room for it. */
const char *codes_refused(const struct asc_problem *problem, const struct asc_plan *plan,
                          const struct asc_conventions *conventions);

#endif
