/* Two texts line by line: what a run's kernel has that the one before had not. */
#ifndef STUDY_TEXT_DIFF_H
#define STUDY_TEXT_DIFF_H

#include <stddef.h>

struct diff_line {
    char op;          /* ' ', '-', '+'; '@': lines were left out before the next one */
    int before, now;  /* line numbers from 1 where it is, else where it would be */
    const char *text; /* borrowed from the texts; not terminated */
    size_t length;
};

struct text_diff {
    struct diff_line *lines; /* owned, [n] */
    size_t n;
    int added, removed;
};

/* With `context` equal lines around every change. Larger texts that have nothing in common in their middle are said to
   be replaced there as a whole. NULL stands for an empty text. -1 without memory. */
int text_diff_make(const char *before, const char *now, int context, struct text_diff *out);
void text_diff_free(struct text_diff *d);

#endif
