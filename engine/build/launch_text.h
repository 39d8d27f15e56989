/* The text of a launch, k<T><<<g, b>>>(a). */
#ifndef BUILD_LAUNCH_TEXT_H
#define BUILD_LAUNCH_TEXT_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

static inline bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* All of it, and where it may be looked at from. */
struct launch_text {
    const char *text, *from;
};

/* The end of an ordinary string or character constant that begins at c. */
const char *end_of_quoted(const char *c, const char *end);
/* Where the name of the kernel begins that <<< stands behind: a::b<c, (d > e)>, a variable, (*p), table[i]. */
const char *launch_kernel(const struct launch_text *r, const char *at);
/* What ends the list that begins at `c`, where no bracket is open; NULL: it is not in this statement. */
const char *list_ends(const char *c, const char *end);
/* A kernel's name as it is spelled, for messages: without spaces, quotes and lines. */
void launch_name(const char *from, const char *to, char *name, size_t size);
/* From `from` on, the next argument of a launch that is 0 and nothing else; NULL: none. */
const char *launch_zero(const char *from, const char *passed);
bool launch_has_braces(const char *from, const char *passed);

#endif
