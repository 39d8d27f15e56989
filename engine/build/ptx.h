/* Inline PTX for the CPU executor: an asm statement of a kernel becomes calls of functions of simt_ptx.h. */
#ifndef BUILD_PTX_H
#define BUILD_PTX_H

#include <stdbool.h>
#include <stddef.h>

struct ptx_translation {
    int line;        /* in: of the keyword; out: of the statement's end */
    const char *end; /* behind the closing parenthesis */
    char *code;      /* owned: C++ on one line, a statement but for its semicolon */
    /* What the executor does not know of it, "inline PTX wgmma.fence.sync.aligned": the code is a call that ends the
       run with these words. "": nothing. */
    char refused[96];
    int refused_line;
    bool unknown; /* it is an opcode in none of the executor's lists, which may be misspelt */
};

/* Translates the statement whose keyword, asm or __asm__, `text` begins with: preprocessed source, NUL at its end.
   -1: it has no end, or, with an empty `refused`, without memory. */
int ptx_translate(const char *text, struct ptx_translation *out);

#endif
