#include "engine/run/choices.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(struct choices *c, const char *name, size_t n_name, const char *value, size_t n_value)
{
    char(*more)[CHOICE_BYTES] = realloc(c->define, (c->n + 1) * sizeof *more);
    if (!more)
        return -1;
    c->define = more;
    snprintf(more[c->n++], sizeof *more, "%.*s=%.*s", (int)n_name, name, (int)n_value, value);
    return 0;
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '-')
        n++;
    return n;
}

/* "NAME, 0, 1, 2)", as far as it can be read. */
static int read_choice(const char *at, struct choices *out)
{
    const char *name = at + strspn(at, " ");
    const size_t n_name = word_length(name);
    at = name + n_name + strspn(name + n_name, " ");
    while (n_name > 0 && *at == ',') {
        const char *value = at + 1 + strspn(at + 1, " ");
        const size_t n_value = word_length(value);
        if (n_value == 0 || n_name + n_value + 2 > CHOICE_BYTES)
            return 0;
        if (add(out, name, n_name, value, n_value) != 0)
            return -1;
        at = value + n_value + strspn(value + n_value, " ");
    }
    return 0;
}

int choices_read(const char *source, struct choices *out)
{
    static const char macro[] = "ASC_CHOICES(";
    *out = (struct choices){0};
    for (const char *line = source; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, macro, sizeof macro - 1) == 0 && read_choice(line + sizeof macro - 1, out) != 0) {
            choices_free(out);
            return -1;
        }
    return 0;
}

void choices_free(struct choices *c)
{
    if (!c)
        return;
    free(c->define);
    *c = (struct choices){0};
}
