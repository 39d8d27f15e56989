/* What is said of a run beside its verdict and finding. */
#ifndef VERDICT_REMARKS_H
#define VERDICT_REMARKS_H

#include "engine/verdict/judgement.h"
#include <stdbool.h>

#define EDGE_WORDS_BYTES 320

/* A local verdict blames the way from the probes of a product's operands to its own: where these were right. "V was
   right at its probe (kernel.cu:165). Between there and probe u another tile is in its place: ...". 0, and "": nothing
   can be said, since the stage is no product, an operand is wrong itself or unrecorded, or the cause is of another
   kind. */
int edge_words(const struct trace *t, const struct summary *summary, const struct finding *f,
               char out[EDGE_WORDS_BYTES]);

/* What the kernel of a run left unwritten throughout though its registration does not say that there is none. The run
   is not wrong: its kernel is not fully declared. */
#define UNDECLARED_WORDS_BYTES 192

/* The i-th of them in one line, with the declaration that is missing; false: there is no i-th. */
bool undeclared_words(const struct trace *t, int i, char out[UNDECLARED_WORDS_BYTES]);

/* S and U of a kernel that declares tensor cores: whose bits they have, or why bounds decided. */
struct exactness {
    char declared[16]; /* the accumulator: "mma-f16" */
    uint32_t models;   /* set of 1u << enum tensor_core whose bits were asked for; 0: bounds decided */
    const char *why;   /* borrowed: why they did; "" */
    struct exact_tiles tiles;
};

/* 0: the stage is no product, declares no tensor core or is not recorded. */
int exactness_of(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct exactness *out);

/* "bit-equal to h100", "no tensor-core model fits: judged by bounds", in one line; "" where exactness_of says 0. */
void exactness_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char *out, size_t bytes);

/* "h100", "h100 or a100" */
void exactness_models(uint32_t models, char *out, size_t bytes);

#endif
