/* Formulas of a score's place: shape.mask and shape.score_mod. Operators bind as in C. A value made of indices and
   whole numbers alone is whole, of 64 bits, and / and % cut it off as C does; one that has a score, a decimal number or
   a function of these in it is real. */
#ifndef TRACE_EXPRESSION_H
#define TRACE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum expression_variable {
    EXPRESSION_I, /* query */
    EXPRESSION_J, /* key */
    EXPRESSION_H, /* head */
    EXPRESSION_B, /* sequence of the batch */
    EXPRESSION_Q_LEN,
    EXPRESSION_KV_LEN,
    EXPRESSION_WHOLE, /* how many are whole */
    EXPRESSION_S = EXPRESSION_WHOLE
};

enum expression_op {
    EXPRESSION_NUMBER,
    EXPRESSION_VARIABLE,
    EXPRESSION_MINUS, /* of one operand */
    EXPRESSION_NOT,
    EXPRESSION_ABS,
    EXPRESSION_EXP,
    EXPRESSION_LOG,
    EXPRESSION_TANH,
    EXPRESSION_SQRT,
    EXPRESSION_ADD, /* of two */
    EXPRESSION_SUBTRACT,
    EXPRESSION_TIMES,
    EXPRESSION_DIVIDE,
    EXPRESSION_REST,
    EXPRESSION_LESS,
    EXPRESSION_LESS_EQUAL,
    EXPRESSION_EQUAL,
    EXPRESSION_AND,
    EXPRESSION_OR,
    EXPRESSION_MIN,
    EXPRESSION_MAX,
    EXPRESSION_CHOICE /* of three: operand[0] ? operand[1] : operand[2] */
};

struct expression_node {
    uint8_t op;          /* enum expression_op */
    bool real;           /* there is something real in it */
    int16_t operand[3];  /* nodes before this one */
    uint16_t first, end; /* where it stands in the text, with the parentheses around it */
    int64_t whole;       /* EXPRESSION_NUMBER that is not real; EXPRESSION_VARIABLE: which */
    double number;       /* EXPRESSION_NUMBER that is real */
};

enum { EXPRESSION_NODES = 128, EXPRESSION_DEPTH = 64, EXPRESSION_WHY_BYTES = 160 };

struct expression {
    int n;         /* nodes; the last one is the whole formula */
    uint32_t uses; /* set of 1u << enum expression_variable */
    struct expression_node node[EXPRESSION_NODES];
};

/* scores: there is s, and what is real, in it. -1: why says at which column it is wrong, and what was expected there.
 */
int expression_parse(const char *text, bool scores, struct expression *out, char why[EXPRESSION_WHY_BYTES]);

/* The value of a node that is not real. false: it has none, for a division by 0 or a number of more than 64 bits. What
   && || and ?: do not come to need not have one. */
bool expression_whole(const struct expression *e, int node, const int64_t at[EXPRESSION_WHOLE], int64_t *out);

#endif
