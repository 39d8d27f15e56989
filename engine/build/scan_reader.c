#include "engine/build/scan_reader.h"

#include <string.h>

const char *scan_end_of_quoted(const char *c, const char *end)
{
    char quote = *c;
    for (c++; c < end && *c != quote; c++)
        if (*c == '\\' && c + 1 < end)
            c++;
    return c < end ? c + 1 : end;
}

const char *scan_find_word(const char *line, const char *word, size_t n, int open)
{
    for (const char *at = line; (at = strstr(at, word)); at++)
        if ((at == line || !is_word(at[-1])) && (open || !is_word(at[n])))
            return at;
    return NULL;
}

const char *scan_skip(const char *c, const char *token)
{
    while (isspace((unsigned char)*c))
        c++;
    size_t n = strlen(token);
    return strncmp(c, token, n) == 0 ? c + n : NULL;
}

/* " (in file included from mine.h:3, from k.cu:2)"; "": the current file is the kernel's. */
static void write_includes(const struct reader *r, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = r->n_includes < INCLUDES_MAX ? r->n_includes : INCLUDES_MAX; i-- > 0 && used < bytes;)
        used += (size_t)snprintf(out + used, bytes - used, "%sfrom %s:%d%s", used ? ", " : " (in file included ",
                                 r->include[i].file, r->include[i].line, i ? "" : ")");
}

int scan_refuse(const struct reader *r, const char *refusal, struct err *err)
{
    char where[300], includes[1024];
    snprintf(where, sizeof where, "%s:%d", r->file, r->line);
    write_includes(r, includes, sizeof includes);
    return err_set(err, ERR_GPU_ONLY, where, "%s%s", refusal, includes);
}

int scan_replace(struct reader *r, const char *at, const char *text, const char *end, struct err *err)
{
    if (!r->rewritten)
        r->rewritten = open_memstream(&r->scan->rewritten, &r->scan->n_rewritten);
    if (!r->rewritten)
        return err_errno(err, r->file, "the rewritten source");
    fwrite(r->copied, 1, (size_t)(at - r->copied), r->rewritten);
    fputs(text, r->rewritten);
    r->copied = end;
    return 0;
}
