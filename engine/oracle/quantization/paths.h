/* Three ways from the same inputs to one q tile's output: float64, a kernel that stays in f16, and the run that was
   recorded. Errors are those of the other two against the first, kv tile by kv tile.

   The f16 path: the given inputs rounded to f16; each score the exact dot product, scaled, rounded to f32 once; P =
   exp(s - m), m being the running maximum, rounded to f16 for P V; l the sum of P before that; U and the exponential
   exact; O rounded to f16. It is what a good kernel can reach whose operands are f16: f32 accumulators add less than
   the rounding of P, 2^-24 a term to 2^-11. */
#ifndef QUANTIZATION_PATHS_H
#define QUANTIZATION_PATHS_H

#include "engine/oracle/oracle.h"

enum path { PATH_F16, PATH_RUN, PATHS };

struct path_error {
    uint64_t n;   /* elements compared; 0: nothing was recorded, or is there */
    uint64_t bad; /* not counted in n: no number, or infinite where the reference is not, or the other way round */
    double largest, squares; /* of |x - reference| */
};
double path_rms(const struct path_error *e); /* NaN: nothing was compared */
void path_error_add(struct path_error *to, const struct path_error *from);

struct path_tile {
    int visited; /* by the run */
    /* Scores in natural units; weights divided by their final sum; U / l after this tile. */
    struct path_error s[PATHS], p[PATHS], ul[PATHS];
};

struct paths {
    int kv_tiles, rows, dim;
    struct path_tile *tile; /* owned, [kv_tiles] */
    struct path_error o[PATHS];
    double *o_given, *o_path[PATHS]; /* owned, [rows][dim] */
};

/* given: the case of what was given, without codes; run: that of the run. -1: no memory. */
int paths_make(const struct oracle_case *given, const struct oracle_case *run, struct paths *out);
void paths_free(struct paths *p); /* a zero-initialized one is legal */

#endif
