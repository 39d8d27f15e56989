/* Is rounding biased: do a stage's errors, each within its bound, pull to one side? For one head, from all q tiles of
   it that were recorded; per channel and kv tile.

   Evidence is taken in the order of rounding.def. Equality with the declared tensor core comes first: its truncation is
   then part of what is expected. Else a run with negated inputs: rounding to nearest and truncation are odd functions,
   so S(-q) = -S(q) in every bit, in any order of summing; what is added to one side is not odd. Else, of a single run,
   a regression (clustered.h) of errors in units of 2^-23 |q o k|, the Euclidean norm of the products: such an error has
   no tail, where one in ulp of S has 1 / |s|. It refuses where signs are unbalanced or inputs repeat. */
#ifndef ROUNDING_BIAS_ROUNDING_BIAS_H
#define ROUNDING_BIAS_ROUNDING_BIAS_H

#include "engine/oracle/oracle.h"
#include "engine/oracle/rounding_bias/clustered.h"
#include <stdbool.h>

enum rounding_state { ROUNDING_UNRECORDED, ROUNDING_NONE, ROUNDING_INCONCLUSIVE, ROUNDING_FOUND };
enum rounding_evidence {
#define ROUNDING_EVIDENCE(id, name, meaning) id,
#include "engine/oracle/rounding_bias/rounding.def"
    ROUNDING_EVIDENCES
};
enum rounding_reason {
#define ROUNDING_REASON(id, name, sentence) id,
#include "engine/oracle/rounding_bias/rounding.def"
    ROUNDING_REASONS
};

/* A bias of a quarter of an ulp before the last rounding is 0.146 of the unit; |z| > 5.5 has a chance of 4e-8. */
#define ROUNDING_LEAST_SIZE 0.05
#define ROUNDING_LEAST_Z 5.5
/* An estimate that could miss this much says nothing. */
#define ROUNDING_TO_SEE 0.1
/* Beyond this (a chance of 6e-5) a mean that is large enough is no sign that there is none, either. */
#define ROUNDING_DOUBT_Z 4

/* One channel of one kv tile, of several, or of several heads. */
struct rounding_cell {
    uint64_t elements;         /* judged, each ok or off */
    uint64_t off;              /* beyond their bound */
    uint64_t off_bits;         /* of these: where a tensor core's bits were asked for */
    uint64_t off_step;         /* of `off`: one step of a narrow type away, as the wrong way of rounding leaves it */
    uint64_t fixed;            /* exactly what is expected, and nothing else would be right */
    uint64_t by_bits;          /* of these: a tensor core's bits */
    uint64_t only;             /* of a narrow type, and rounding leaves one value */
    uint64_t compared, broken; /* with the run of negated inputs; and not its negative */
    double steps;              /* sum of (got - want) in steps of the narrow type */
    double even;               /* sum over `compared` of half of what the two runs add up to, in units */
    struct clustered fit;
    bool narrow;                    /* the type is narrower than f32 */
    bool unsteady;                  /* the same inputs gave other bits */
    enum rounding_reason barred;    /* why `fit` cannot be used; ROUNDING_CLEAR: it can */
    uint64_t inconclusive, refused; /* of a sum of cells: elements of those that said nothing; `fit` has none of them */
    /* The verdict; rounding_decide(). */
    enum rounding_state state;
    enum rounding_evidence evidence;
    enum rounding_reason why;
    double size, error, z; /* of a bias; NaN where the evidence gives none */
};

/* What has become of a number that does not depend on the frame that m sets, relative to the reference, mean over rows.
 */
struct rounding_drift {
    double n, sum, squares;
};
static inline double rounding_drift_mean(const struct rounding_drift *d)
{
    return d->sum / d->n;
}
/* Its standard error; NaN of fewer than two rows. */
double rounding_drift_error(const struct rounding_drift *d);
void rounding_drift_merge(struct rounding_drift *to, const struct rounding_drift *from);
enum rounding_curve { ROUNDING_SUM /* m + ln l */, ROUNDING_OUTPUT /* u / l, along the reference */, ROUNDING_CURVES };

/* Collects one head: rounding_head_new(any case of it), each q tile once, rounding_head_finish(). */
struct rounding_head;
struct rounding_head *rounding_head_new(const struct oracle_case *c); /* NULL without memory */
void rounding_head_free(struct rounding_head *h);

/* The same q tile in a run of negated Q, and in one of negated V; as oracle_case.captured. NULL: there is none. */
struct rounding_negated {
    const struct matrix *q, *v;
};
/* Judges the case once more. -1 without memory. */
int rounding_head_add(struct rounding_head *h, const struct oracle_case *c, const struct rounding_negated *negated,
                      struct judge_scratch *scratch);
/* cells: [ASC_CHANNELS][kv_tiles + 1], the last one of all kv tiles; drift: [ROUNDING_CURVES][kv_tiles]. */
void rounding_head_finish(struct rounding_head *h, struct rounding_cell *cells, struct rounding_drift *drift);

/* Sets the verdict of a cell from what was counted in it. */
void rounding_decide(struct rounding_cell *cell);
/* n cells as one, verdict included: estimates weigh as much as they have elements. Cells of one group share K and V and
   may err together; groups are independent. */
void rounding_combine(const struct rounding_cell *const *cells, const int *group, int n, struct rounding_cell *out);

const char *rounding_state_word(enum rounding_state state); /* "none", "found", "inconclusive", "not recorded" */
const char *rounding_evidence_name(enum rounding_evidence evidence);
const char *rounding_reason_name(enum rounding_reason reason);
const char *rounding_reason_sentence(enum rounding_reason reason);
/* What a size of this evidence is counted in: "2⁻²³ |q∘k|"; "" where there is none. */
const char *rounding_unit(enum asc_channel ch, const struct rounding_cell *cell);
/* The verdict in one line: "S(-q) is not -S(q) in 49.6 % of 2097152 elements; ..." */
void rounding_words(enum asc_channel ch, const struct rounding_cell *cell, char *out, size_t bytes);

#endif
