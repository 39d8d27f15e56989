/* Between the two halves of a translation: the statement around a template, and the instructions in it. */
#ifndef BUILD_PTX_PARSE_H
#define BUILD_PTX_PARSE_H

#include "engine/build/ptx.h"
#include <stdio.h>

#define PTX_OPERANDS_MAX 160 /* wgmma has 128 results */

struct ptx_operand {
    const char *name, *expression; /* borrowed, in the source; name NULL: has none */
    size_t n_name, n_expression;
    int written;
};

struct ptx_statement {
    const char *at; /* borrowed: where the reading is */
    int line;
    char *text;      /* owned: the template, without the C++ around it */
    int *text_lines; /* owned: for each character */
    size_t n_text, capacity;
    struct ptx_operand operand[PTX_OPERANDS_MAX];
    int n_operands;
    FILE *code;
    struct ptx_translation *out;
};

/* ptx_instructions.c: -1, with what is refused. */
int ptx_refuse(struct ptx_statement *s, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ptx_instructions.c: writes the template's labels, which the block of a statement begins with, and its instructions to
   s->code. */
void ptx_write_labels(struct ptx_statement *s);
int ptx_write_instructions(struct ptx_statement *s);

#endif
