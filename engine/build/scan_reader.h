/* What scan.c reads line by line, and how scan_rewrite.c makes it C++. */
#ifndef BUILD_SCAN_READER_H
#define BUILD_SCAN_READER_H

#include "engine/build/scan.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>

#define INCLUDES_MAX 16
#define RAW_DELIMITER_MAX 16 /* C++17, [lex.string] */

/* Where a file is included. */
struct include {
    char file[256];
    int line;
};

struct reader {
    struct scan *scan;                    /* borrowed */
    struct include include[INCLUDES_MAX]; /* of the current file, the outermost first; deeper ones are only counted */
    int n_includes;
    int include_line; /* of the last #include in the current file; 0: none has been seen */
    char file[256];   /* as the user names it */
    int line;
    int of_user;      /* the current line stands in a file of the user's */
    char raw_end[20]; /* inside a raw string that ends with this: )delimiter" ; "" outside */
    char *bare;       /* owned: the current line, strings and characters blanked */
    size_t capacity;
    char marker[2048];  /* the current file as its line marker has it, in quotes */
    const char *text;   /* all of it */
    const char *closes; /* the >>> of the launch that was begun last; NULL: none is open */
    const char *passed; /* where the arguments of that launch end */
    const char *body;   /* the { of the kernel whose __cluster_dims__ was read last; NULL: it is behind, or none */
    char dims[128];     /* their arguments */
    const char *zero;   /* the next of them that is 0 and nothing else; NULL: none */
    FILE *rewritten;    /* NULL: nothing to rewrite so far */
    const char *copied; /* what stands before this is in `rewritten` */
};

static inline bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Where the identifier stands in the line, whole, or its beginning where `open`; NULL: nowhere. */
const char *scan_find_word(const char *line, const char *word, size_t n, int open);
/* The end of an ordinary string or character constant that begins at c. */
const char *scan_end_of_quoted(const char *c, const char *end);
/* Behind spaces and `token`; NULL: something else is there. */
const char *scan_skip(const char *c, const char *token);
/* ERR_GPU_ONLY, at the current line. */
int scan_refuse(const struct reader *r, const char *refusal, struct err *err);
/* [at, end) becomes `text`. */
int scan_replace(struct reader *r, const char *at, const char *text, const char *end, struct err *err);

enum rewrite {
    REWRITE_NOTHING,
    REWRITE_ASM,
    REWRITE_ALIGNAS,
    REWRITE_LAUNCH,
    REWRITE_LAUNCH_END,
    REWRITE_NULL,
    REWRITE_CLUSTER,
    REWRITE_BODY,
    REWRITE_ZERO,
    REWRITE_PRAGMA
};

/* What is first in the line that r->bare shows, and where. aligned_end: where an alignas ends. */
enum rewrite scan_first_rewrite(const struct reader *r, const char *line, const char **at, const char **aligned_end);
/* *rest: where to go on, unchanged or behind what was rewritten. */
int scan_rewrite(struct reader *r, enum rewrite what, const char *at, const char *aligned_end, const char **rest,
                 struct err *err);

#endif
