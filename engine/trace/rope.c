#include "engine/trace/rope.h"

#include "engine/base/dtype.h"
#include "engine/trace/layout.h"

#include <math.h>
#include <stdlib.h>

static double angle(int dim, double base, double position, int i)
{
    return position * pow(base, -2.0 * i / dim);
}

void rope_turns(int dim, double base, int position, float *cosines, float *sines)
{
    for (int i = 0; i < dim / 2; i++) {
        cosines[i] = (float)cos(angle(dim, base, position, i));
        sines[i] = (float)sin(angle(dim, base, position, i));
    }
}

static void turn(double *a, double *b, double cosine, double sine)
{
    const double x = *a, y = *b;
    *a = x * cosine - y * sine;
    *b = y * cosine + x * sine;
}

void rope_row(const struct rope *rope, double position, double *row)
{
    for (int i = 0; rope->kind && i < rope->dim / 2; i++) {
        const double by = angle(rope->dim, rope->base, position, i);
        int32_t pair[2];
        asc_rope_pair(rope->kind, rope->dim, i, pair);
        turn(&row[pair[0]], &row[pair[1]], cos(by), sin(by));
    }
}

/* Row `row` of a tensor of `type`, turned by these rows of the tables. */
static void turn_row(const struct asc_problem *p, enum dtype type, const void *from, size_t at, int cols,
                     const float *cosines, const float *sines, float *to)
{
    for (int d = 0; d < cols; d++)
        to[d] = (float)dtype_load(type, from, at + (size_t)d);
    for (int i = 0; i < p->rope_dim / 2; i++) {
        int32_t pair[2];
        asc_rope_pair(p->rope, p->rope_dim, i, pair);
        double a = (double)to[pair[0]], b = (double)to[pair[1]];
        turn(&a, &b, (double)cosines[i], (double)sines[i]);
        to[pair[0]] = (float)a;
        to[pair[1]] = (float)b;
    }
}

float *rope_tensor(const struct asc_problem *p, int is_q, int type, const void *from)
{
    const enum problem_tensor_id id = is_q ? TENSOR_Q : TENSOR_K;
    const struct problem_tensor t = problem_tensor(p, id);
    const size_t pairs = (size_t)p->rope_dim / 2;
    float *to = calloc(problem_tensor_count(p, id) + 1, sizeof *to), *turns = malloc(2 * pairs * sizeof *turns);
    for (int b = 0; b < p->batch && to && turns; b++)
        for (int row = 0; row < problem_tensor_rows(&t, b); row++) {
            rope_turns(p->rope_dim, (double)p->rope_base, is_q ? asc_query_position(p, b, row) : p->rope_offset + row,
                       turns, turns + pairs);
            for (int head = 0; head < t.heads; head++) {
                const size_t at = (size_t)problem_tensor_at(&t, b, head, row);
                turn_row(p, (enum dtype)type, from, at, t.cols, turns, turns + pairs, to + at);
            }
        }
    if (!turns) {
        free(to);
        to = NULL;
    }
    free(turns);
    return to;
}
