/* Which arithmetic is a matrix instruction's? Candidates beyond the emulator's own models
   (engine/base/tensor_core.def), tried on measured elements. Written apart from the emulator, on integers. */
#ifndef TEST_GPU_NUMERICS_MODELS_H
#define TEST_GPU_NUMERICS_MODELS_H

#include "tests/gpu/vector_judge.h"

enum candidate_carry {
    CARRY_JOINED,    /* the accumulator is one of the chunk's terms: aligned, cut and added with them */
    CARRY_ADDED,     /* the chunk's sum starts from zero and is added to the accumulator in f32, rounded to nearest */
    CARRY_ADDED_CUT, /* the same, toward zero */
    CARRY_ADDED_NARROW, /* the same, toward zero, to `result` places */
    CARRIES
};

enum candidate_half { /* where sums are f16 */
                      HALF_NONE,
                      HALF_CHUNK_NEAREST, /* rounded after every chunk */
                      HALF_CHUNK_CUT,
                      HALF_END_NEAREST, /* carried wide within an instruction, rounded at its end */
                      HALF_END_CUT,
                      HALVES
};

struct candidate {
    int products, fraction, result; /* as in tensor_core.def */
    int pair;                       /* as in tensor_core.def: 2 or 4 */
    int whole;                      /* CARRY_ADDED...: 1: an instruction's chunks are carried, added at its end */
    int floor;                      /* terms are cut toward minus infinity (two's complement), not toward zero */
    int normalized;                 /* alignment goes by each product's own exponent, not by the sum of its factors' */
    enum candidate_carry carry;
    enum candidate_half half;
};

/* One output element and what it was computed from. */
struct candidate_element {
    int k, chain;          /* of one instruction; how many */
    int32_t product[128];  /* significands: product 2^place */
    int16_t place[128];    /* of the product's last bit */
    int16_t exponent[128]; /* sum of the factors' exponents */
    float start;           /* of the accumulator */
    uint32_t got;          /* as in the vectors' file */
    int row;               /* which measurement it belongs to */
};

/* What the candidate makes of it, in the vectors' form. */
uint32_t candidate_result(const struct candidate *c, const struct candidate_element *e, enum dtype sum);
void candidate_text(const struct candidate *c, char *text, size_t size);
/* The model of the emulator as a candidate. */
struct candidate candidate_of_model(enum tensor_core model);

/* Takes element `at` of a row apart. Returns 1, 0 where a number is not finite. */
int candidate_take(const struct vector_inputs *in, const struct vector_row *row, int at, uint32_t got,
                   struct candidate_element *e);

struct candidate_fit {
    struct candidate candidate;
    long equal, n;
    int first_unequal; /* index of an element, or -1 */
};

enum { CANDIDATES_BEST = 6 };

/* The best candidates, best first; of equals, the plainest first. *all_equal: how many agree with every element.
   Returns how many of best[] are filled, or -1 without memory. */
int candidates_fit(const struct candidate_element *elements, int n, enum dtype sum,
                   struct candidate_fit best[CANDIDATES_BEST], int *all_equal);

#endif
