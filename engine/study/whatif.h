/* What the output would err by with other formats: predicted in float64 from what the run was given, without running
   the kernel.

   Q, K and V are rounded into codes with scales amax / limit (times a factor) as quantize.h makes them, and, where this
   run's kernel makes f16 values of its codes before it multiplies them, into f16; P with the running maximum of each kv
   tile; O into its type. Sums are exact: accumulators add less than any of these by orders of magnitude, but for a
   tensor core that keeps 13 bits. */
#ifndef STUDY_WHATIF_H
#define STUDY_WHATIF_H

#include "engine/oracle/quantization/paths.h"
#include "engine/trace/trace.h"
#include <stdbool.h>

enum whatif_scales { WHATIF_HEAD, WHATIF_TENSOR, WHATIF_ROWS };

struct whatif_choice {
    int type[3];     /* enum dtype of q, k, v: e4m3, e5m2, u8, or f16, bf16, f32 */
    int scales;      /* enum whatif_scales */
    int rows, dims;  /* of WHATIF_ROWS; 0: all of a head, all elements of a row. Only the run's own has dims */
    int scale_type;  /* enum asc_scale_type */
    double factor;   /* of every scale */
    int p_type;      /* enum dtype of P in P V: f16, bf16, e4m3, e5m2; -1: not rounded */
    int p_offset;    /* P carries 2^this */
    double p_factor; /* times this */
    int p_sums;      /* enum asc_l_from */
};

/* "q f16, k v e4m3, rows:64, x0.5, p f16": "q=f16 e4m3 rows:64 x0.5 p=f16" in the words of whatif_parse(). */
void whatif_words(const struct whatif_choice *c, char *out, size_t bytes);
/* What shares a scale, as `quant.scales` says it. Returns as snprintf() does. */
int whatif_scales(const struct whatif_choice *c, char *out, size_t bytes);
/* Words separated by blanks, each changing the choice that is there: a type of Q, K and V or q=TYPE, k=, v=, p=;
   tensor, head, rows:N; scales=TYPE of these; xFACTOR; offset:N, factor:N of P. Returns 0, or -1 and the word that is
   none of these. */
int whatif_parse(const char *text, struct whatif_choice *c, char bad[32]);
/* The choice that the run itself made: its formats and, as far as the scales show it, what shares one. */
void whatif_of_run(const struct trace *t, struct whatif_choice *out);

enum { WHATIF_MAX = 24, WHATIF_SLOTS = 64 };
struct whatif_row {
    struct whatif_choice choice;
    struct path_error o; /* over the slots that were taken so far */
};
struct whatif {
    struct whatif_row row[WHATIF_MAX];
    int n;
    struct path_error measured; /* of the run's own output over the same slots */
    bool given_known;           /* false: codes were given, and what they were made from is not known: no prediction */
    int slots, all;             /* how many slots are to be taken, evenly spread, of how many */
    /* Owned: largest magnitude of each row of q, k and v, or of each part of it that has a scale of its own,
       [batch][heads][rows][parts]. */
    float *amax[3];
};

/* The run's own choice first, then common ones. most: slots that are taken, evenly spread over all of them. pieces: one
   for each. -1: no memory. */
int whatif_begin(const struct trace *t, int most, struct whatif **out, int *pieces);
int whatif_piece(const struct trace *t, struct whatif *w, int piece);
void whatif_free(struct whatif *w); /* NULL is legal */
/* One more choice, before the first piece. -1: there is no room. */
int whatif_add(struct whatif *w, const struct whatif_choice *choice);

#endif
