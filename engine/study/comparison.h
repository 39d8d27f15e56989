/* A run set beside float64 and an f16 kernel on what was given, and where the error of its output comes from: of one
   slot in full, of all slots in short. */
#ifndef STUDY_COMPARISON_H
#define STUDY_COMPARISON_H

#include "engine/oracle/quantization/attribution.h"
#include "engine/oracle/quantization/paths.h"
#include "engine/trace/trace.h"
#include <stdbool.h>

struct comparison {
    int slot;
    bool given_known; /* false: what codes were made from is not known; the values of the codes count as given */
    bool has_output;  /* false: the run left none, and nothing can be attributed */
    struct paths paths;
    struct attribution attribution;
    double share[PLAYERS]; /* of the q tile's output */
};
int comparison_make(const struct trace *t, int slot, struct comparison *out); /* -1: no memory */
void comparison_free(struct comparison *c);                                   /* a zero-initialized one is legal */

/* A kv tile of a part: what its keys contribute. */
struct comparison_step {
    int kv; /* -1: no key has the sign of the part */
    double part;
    struct attribution_step largest; /* within that tile */
};
/* Of one player's part of o[row, col]: the kv tile that contributes most in its sign. The rest has no keys but those of
   its scores. -1: no memory. */
int comparison_step(const struct trace *t, const struct comparison *c, enum player player, int row, int col,
                    struct comparison_step *out);
/* "o[37,12]: -0.031 in all, P -0.027, saturated at k5 (key 331: 512 became 448)". -1: no memory for where. */
int comparison_words(const struct trace *t, const struct comparison *c, int row, int col, char *out, size_t bytes);

/* The same of any slot, in short. */
struct survey_row {
    struct path_error o[PATHS];
    double share[PLAYERS]; /* NaN: nothing can be attributed */
};
void survey_row_of(const struct comparison *c, struct survey_row *out);
/* o over all rows, and shares weighed by the squares of the rows' errors: those of the run as a whole. */
void survey_total(const struct survey_row *rows, int n, struct survey_row *out);

#endif
