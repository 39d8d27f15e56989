/* How the values of a run fare as codes: each quantized tensor and each group that shares a scale. */
#ifndef STUDY_FORMATS_H
#define STUDY_FORMATS_H

#include "engine/oracle/quantization/formats.h"
#include "engine/trace/trace.h"

/* Rows of a head that share a scale; of P, whose scale is a constant, the rows of a q tile. */
struct formats_group {
    int batch, head, first, rows;
    int first_col, cols, parts;      /* of inputs: which elements of each row; how many such parts a row has */
    double scale, amax;              /* amax: NaN where the values are not known */
    double headroom;                 /* bits, see formats_headroom() */
    double best_scale;               /* formats_best_scale(); NaN: values not known */
    double rms, best_rms, value_rms; /* of the round trip with its own scale and the best one, and of the values; NaN */
    uint64_t elements, saturated, flushed, nan;
};

enum formats_source {
    FORMATS_GIVEN,    /* the problem's codes */
    FORMATS_MADE,     /* as the launch makes them by its conventions */
    FORMATS_RECORDED, /* P, as it was recorded */
    FORMATS_DECLARED  /* P, as the declared type makes it of what was recorded */
};

struct formats_tensor {
    enum asc_channel channel; /* q, k, v or p */
    enum dtype type;
    enum formats_source source;
    struct format_counts counts;
    struct formats_group *groups; /* owned, [n_groups] */
    int *order;                   /* owned, [n_groups]: worst first, by formats_badness() */
    int n_groups;
};

enum { FORMATS_TENSORS = 4 };
struct formats {
    struct formats_tensor tensor[FORMATS_TENSORS];
    int n; /* tensors that are quantized; 0: none is */
};

/* Error of the round trip relative to the values; groups with a NaN code count as infinitely bad, those of zeros as 0,
   and where values are not known the fewer bits of headroom are used, the worse. */
double formats_badness(const struct formats_group *g);

/* Plans the scan of a trace in pieces, which are done one after the other, 0 first; after the last one all is complete.
   -1: no memory. */
int formats_begin(const struct trace *t, struct formats **out, int *pieces);
int formats_piece(const struct trace *t, struct formats *f, int piece);
void formats_free(struct formats *f); /* NULL is legal */

const char *formats_source_words(enum formats_source source);

#endif
