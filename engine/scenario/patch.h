/* A unified diff of one file, taken apart. Lines are borrowed from the diff's text. */
#ifndef SCENARIO_PATCH_H
#define SCENARIO_PATCH_H

#include "engine/base/err.h"
#include <stddef.h>

struct patch_line {
    const char *text; /* without its newline */
    size_t n;
    char kind;     /* ' ', '-' or '+'; 0 in the text that is patched */
    char has_eol;  /* 0: the file ends here, without a newline */
    int diff_line; /* where it stands in the diff, from 1 */
};

struct patch_hunk {
    size_t old_start, old_count, new_start, new_count;
    size_t first_line, n_lines; /* in struct patch's lines */
    int diff_line;              /* of its @@ header */
};

struct patch {
    const char *name;         /* of the diff, for messages; borrowed */
    struct patch_line *lines; /* owned */
    size_t n_lines;
    struct patch_hunk *hunks; /* owned */
    size_t n_hunks;
};

/* ERR_INPUT with "name:line" where the diff is malformed or of more than one file; *out is then empty. */
int patch_parse(const char *diff, const char *name, struct patch *out, struct err *err);
void patch_free(struct patch *p); /* an empty one is legal */

/* Cuts a text into lines, owned by the caller; NULL where memory ran out. An empty text has none. */
struct patch_line *patch_split(const char *text, size_t *n_lines);

#endif
