#include "engine/cursor/jumps.h"

#include <string.h>

static void push(struct jumps *j, const struct cursor *c)
{
    if (j->n == JUMPS_MAX)
        memmove(j->list, j->list + 1, (size_t)--j->n * sizeof *j->list);
    j->list[j->n++] = *c;
}

void jumps_note(struct jumps *j, const struct cursor *from)
{
    if (j->at < j->n)
        j->n = j->at;
    if (j->n == 0 || !cursor_same(&j->list[j->n - 1], from))
        push(j, from);
    j->at = j->n;
}

bool jumps_back(struct jumps *j, const struct cursor *here, struct cursor *to)
{
    if (j->at == 0 || j->n == 0)
        return false;
    if (j->at < j->n) {
        j->list[j->at] = *here;
    } else if (!cursor_same(&j->list[j->n - 1], here)) {
        push(j, here);
        j->at = j->n - 1;
    } else {
        j->at = j->n - 1; /* it was jumped from and never left */
        if (j->at == 0)
            return false;
    }
    *to = j->list[--j->at];
    return true;
}

bool jumps_forward(struct jumps *j, const struct cursor *here, struct cursor *to)
{
    if (j->at + 1 >= j->n)
        return false;
    j->list[j->at] = *here;
    *to = j->list[++j->at];
    return true;
}

static int mark_index(uint32_t letter)
{
    if (letter >= 'a' && letter <= 'z')
        return (int)(letter - 'a');
    return letter >= 'A' && letter <= 'Z' ? (int)(letter - 'A') + 26 : -1;
}

char jumps_letter(int index)
{
    return (char)(index < 26 ? 'a' + index : 'A' + index - 26);
}

bool jumps_set_mark(struct jumps *j, uint32_t letter, const struct cursor *at)
{
    const int i = mark_index(letter);
    if (i < 0)
        return false;
    j->mark[i] = *at;
    j->marked |= UINT64_C(1) << i;
    return true;
}

const struct cursor *jumps_mark(const struct jumps *j, uint32_t letter)
{
    const int i = mark_index(letter);
    if (letter == '\'') {
        const int last = j->at < j->n ? j->at - 1 : j->n - 1;
        return last >= 0 ? &j->list[last] : NULL;
    }
    return i >= 0 && j->marked >> i & 1 ? &j->mark[i] : NULL;
}
