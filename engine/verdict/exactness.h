/* S and U of a kernel that declares tensor cores: whose bits they have, or why bounds decided. */
#ifndef VERDICT_EXACTNESS_H
#define VERDICT_EXACTNESS_H

#include "engine/verdict/judgement.h"
#include <stdbool.h>

struct exactness {
    char declared[16]; /* the accumulator: "mma-f16" */
    uint32_t models;   /* set of 1u << enum tensor_core whose bits were asked for; 0: bounds decided */
    const char *why;   /* borrowed: why they did; "" */
    struct exact_tiles tiles;
};

/* false: the stage is no product, declares no tensor core or is not recorded. */
bool exactness_of(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct exactness *out);

/* "bit-equal to h100", "no tensor-core model fits: judged by bounds", in one line; "" where exactness_of says 0. */
void exactness_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char *out, size_t bytes);

/* "arithmetic of this GPU: as h100", "... unknown: bounds decide"; "": no GPU, or no tensor core is declared. */
void arithmetic_words(const struct trace *t, char *out, size_t bytes);

/* "h100", "h100 or a100" */
void exactness_models(uint32_t models, char *out, size_t bytes);

#endif
