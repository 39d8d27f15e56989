/* RoPE: what Q and K are once each row is turned by its position. All that is known of it is asked here and of
   asc_query_position(), asc_rope_rows() and asc_rope_pair() of probes/abi.h. */
#ifndef TRACE_ROPE_H
#define TRACE_ROPE_H

#include "probes/abi.h"

/* cos and sin of position * base^(-2 i / dim), i from 0 to dim / 2 - 1, in float64, then rounded to f32: a row of the
   tables that a kernel gets. */
void rope_turns(int dim, double base, int position, float *cosines, float *sines);

/* How rows were turned, or would be. */
struct rope {
    int kind; /* enum asc_rope; NONE: not at all */
    int dim;
    double base;
};

/* Turns a row of float64 by the angles of a position, any whole number: a negative one turns back. The angles are those
   of float64, not rounded. */
void rope_row(const struct rope *rope, double position, double *row);

/* How far each of a pair of this length may be from a correct kernel's, before it is rounded to its type: two products
   and a sum in f32, and how far its cosines and sines are off (convention rope_error). */
static inline double rope_loose_share(double rope_error)
{
    const double u = 0x1p-24, slack = 1 + 0x1p-14;
    return 3 * u * slack + 1.4142135623730951 * rope_error;
}
static inline double rope_loose(double length, double rope_error)
{
    return rope_loose_share(rope_error) * length + 3 * 0x1p-126;
}

/* All of q or k, of element type `type`, as a trace has it: what its rows are turned into by the tables, in float64 and
   then rounded to f32. The caller's; NULL where memory ran out. */
float *rope_tensor(const struct asc_problem *p, int is_q, int type, const void *from);

#endif
