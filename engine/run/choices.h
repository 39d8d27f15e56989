/* What a kernel leaves to its build: the ASC_CHOICES lines of its source. */
#ifndef RUN_CHOICES_H
#define RUN_CHOICES_H

#include <stddef.h>

#define CHOICE_BYTES 64

struct choices {
    char (*define)[CHOICE_BYTES]; /* owned, [n]: "NAME=VALUE", in the order of the source */
    size_t n;
};

/* Every value of every choice; n 0 where there is none. -1: no memory. */
int choices_read(const char *source, struct choices *out);
void choices_free(struct choices *c);

#endif
