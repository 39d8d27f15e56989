/* Marks, and the places that the user has jumped from: back and forth through them. */
#ifndef CURSOR_JUMPS_H
#define CURSOR_JUMPS_H

#include "engine/cursor/cursor.h"
#include <stdbool.h>

enum { JUMPS_MAX = 64, MARKS_MAX = 52 };

/* Zero-initialize. */
struct jumps {
    struct cursor list[JUMPS_MAX]; /* oldest first, [n] */
    int n, at;                     /* list[at] is where the cursor stands; at n: nowhere in the list */
    struct cursor mark[MARKS_MAX]; /* a to z, A to Z */
    uint64_t marked;               /* set of 1 << index of mark */
};

/* The cursor is about to leave `from` by a jump. What lay ahead in the list is forgotten. */
void jumps_note(struct jumps *j, const struct cursor *from);
/* false: there is nothing further. *here is remembered, so that the way back leads to it. */
bool jumps_back(struct jumps *j, const struct cursor *here, struct cursor *to);
bool jumps_forward(struct jumps *j, const struct cursor *here, struct cursor *to);

bool jumps_set_mark(struct jumps *j, uint32_t letter, const struct cursor *at); /* false: not a letter a-z, A-Z */
/* The mark's place; of ' the one that was jumped from last. NULL: not set. */
const struct cursor *jumps_mark(const struct jumps *j, uint32_t letter);
char jumps_letter(int index); /* of mark[index] */

#endif
