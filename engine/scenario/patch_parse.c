#include "engine/base/text.h"
#include "engine/scenario/patch.h"
#include "engine/scenario/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 999999999u /* of a line or a count */

struct parser {
    struct patch *patch;
    struct patch_line *in; /* the diff's own lines */
    size_t n_in, at;
    struct err *err;
};

struct patch_line *patch_split(const char *text, size_t *n_lines)
{
    size_t n = 0;
    for (const char *at = text; *at; at += *at == '\n') {
        at += strcspn(at, "\n");
        n++;
    }
    struct patch_line *lines = calloc(n + 1, sizeof *lines);
    if (!lines)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const size_t length = strcspn(text, "\n");
        lines[i] =
            (struct patch_line){.text = text, .n = length, .has_eol = text[length] == '\n', .diff_line = (int)i + 1};
        text += length + (text[length] == '\n');
    }
    *n_lines = n;
    return lines;
}

/* The line that is read next, or NULL at the end. */
static const struct patch_line *peek(const struct parser *p)
{
    return p->at < p->n_in ? &p->in[p->at] : NULL;
}

static int begins(const struct patch_line *line, const char *prefix)
{
    return line && line->n >= strlen(prefix) && memcmp(line->text, prefix, strlen(prefix)) == 0;
}

/* An error at the line that is read next: what was expected, and what stands there. */
static int __attribute__((format(printf, 2, 3))) unexpected(const struct parser *p, const char *format, ...)
{
    char where[768], expected[192], found[128] = "the end of the patch", quoted[100];
    const struct patch_line *line = peek(p);
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    if (line) {
        text_name(line->text, line->n, quoted, sizeof quoted);
        snprintf(found, sizeof found, "`%s`", quoted);
    }
    snprintf(where, sizeof where, "%s:%zu", p->patch->name, line ? p->at + 1 : p->n_in);
    return err_set(p->err, ERR_INPUT, where, "expected %s, found %s", expected, found);
}

static int read_number(const char **at, const char *end, size_t *out)
{
    size_t v = 0;
    const char *begin = *at;
    while (*at < end && **at >= '0' && **at <= '9') {
        v = v * 10 + (size_t)(**at - '0');
        if (v > NUMBER_MAX)
            return -1;
        (*at)++;
    }
    *out = v;
    return *at > begin ? 0 : -1;
}

/* "-12,3" or "-12", which counts one line. */
static int read_range(const char **at, const char *end, const char *sign, size_t *start, size_t *count)
{
    const size_t n = strlen(sign);
    if ((size_t)(end - *at) < n || memcmp(*at, sign, n) != 0)
        return -1;
    *at += n;
    if (read_number(at, end, start) != 0)
        return -1;
    *count = 1;
    if (*at < end && **at == ',') {
        (*at)++;
        if (read_number(at, end, count) != 0)
            return -1;
    }
    /* Lines count from 1; a range of none is named by the line before it. */
    return *count > 0 && *start == 0 ? -1 : 0;
}

/* "@@ -12,3 +12,4 @@ anything" */
static int read_header(struct parser *p, struct patch_hunk *hunk)
{
    const struct patch_line *line = peek(p);
    const char *at = line->text, *end = line->text + line->n;
    if (read_range(&at, end, "@@ -", &hunk->old_start, &hunk->old_count) != 0 ||
        read_range(&at, end, " +", &hunk->new_start, &hunk->new_count) != 0 || end - at < 3 ||
        memcmp(at, " @@", 3) != 0 || hunk->old_count + hunk->new_count == 0)
        return unexpected(p, "a hunk header `@@ -LINE,COUNT +LINE,COUNT @@`");
    hunk->diff_line = line->diff_line;
    p->at++;
    return 0;
}

/* "\ No newline at end of file" is about the line before it. */
static void take_no_newline(struct parser *p)
{
    if (begins(peek(p), "\\ ")) {
        p->patch->lines[p->patch->n_lines - 1].has_eol = 0;
        p->at++;
    }
}

static int read_body(struct parser *p, struct patch_hunk *hunk)
{
    size_t old_left = hunk->old_count, new_left = hunk->new_count;
    hunk->first_line = p->patch->n_lines;
    while (old_left + new_left > 0) {
        const struct patch_line *line = peek(p);
        struct patch_line taken = {.kind = 0};
        if (line) {
            taken = *line;
            taken.has_eol = 1;
            /* Editors that strip blanks at the end of lines turn an empty context line's " " into "". */
            const int stripped = line->n == 0 || (line->n == 1 && line->text[0] == '\r');
            taken.kind = stripped ? ' ' : line->text[0];
            taken.text += !stripped;
            taken.n -= !stripped;
        }
        const int is_old = taken.kind == ' ' || taken.kind == '-', is_new = taken.kind == ' ' || taken.kind == '+';
        if ((!is_old && !is_new) || (is_old && old_left == 0) || (is_new && new_left == 0)) {
            return unexpected(p, "%zu more old and %zu more new lines in hunk %zu, as its header says", old_left,
                              new_left, p->patch->n_hunks + 1);
        }
        old_left -= (size_t)is_old;
        new_left -= (size_t)is_new;
        p->patch->lines[p->patch->n_lines++] = taken;
        p->at++;
        take_no_newline(p);
    }
    hunk->n_lines = p->patch->n_lines - hunk->first_line;
    return 0;
}

/* What stands before the first hunk: anything (git's own lines, a mail), then "--- FILE" and "+++ FILE". */
static int read_file_header(struct parser *p)
{
    while (peek(p) && !begins(peek(p), "--- ") && !begins(peek(p), "@@ "))
        p->at++;
    if (!begins(peek(p), "--- "))
        return unexpected(p, "a unified diff with a line `--- FILE`");
    if (begins(peek(p), "--- /dev/null"))
        return unexpected(p, "a patch that changes a file, not one that creates it");
    p->at++;
    if (!begins(peek(p), "+++ "))
        return unexpected(p, "a line `+++ FILE`");
    if (begins(peek(p), "+++ /dev/null"))
        return unexpected(p, "a patch that changes a file, not one that deletes it");
    p->at++;
    return 0;
}

/* Behind a hunk: another one, blank lines, or "-- " and the signature of a mail. */
static int read_behind(struct parser *p)
{
    for (;; p->at++) {
        const struct patch_line *line = peek(p);
        if (!line || begins(line, "@@"))
            return 0;
        if (begins(line, "diff ") || begins(line, "Index: ") || (begins(line, "--- ") && begins(line + 1, "+++ ")))
            return unexpected(p, "a patch of one file");
        if (begins(line, "-- ")) {
            p->at = p->n_in;
            return 0;
        }
        if (line->n > 1 || (line->n == 1 && line->text[0] != '\r'))
            return unexpected(p, "no more lines in hunk %zu, as its header says", p->patch->n_hunks);
    }
}

static int read_all(struct parser *p)
{
    if (read_file_header(p) != 0)
        return -1;
    do {
        struct patch_hunk hunk = {0};
        if (!begins(peek(p), "@@"))
            return unexpected(p, "a hunk header `@@ -LINE,COUNT +LINE,COUNT @@`");
        if (read_header(p, &hunk) != 0 || read_body(p, &hunk) != 0)
            return -1;
        p->patch->hunks[p->patch->n_hunks++] = hunk;
        if (read_behind(p) != 0)
            return -1;
    } while (peek(p));
    return 0;
}

int patch_parse(const char *diff, const char *name, struct patch *out, struct err *err)
{
    struct parser p = {.patch = out, .err = err};
    memset(out, 0, sizeof *out);
    out->name = name;
    p.in = patch_split(diff, &p.n_in);
    /* No more of either than lines; one to spare, so that none of them asks for nothing. */
    out->lines = calloc(p.n_in + 1, sizeof *out->lines);
    out->hunks = calloc(p.n_in + 1, sizeof *out->hunks);
    int status;
    if (!p.in || !out->lines || !out->hunks)
        status = err_no_memory(err, name, "the patch");
    else
        status = read_all(&p);
    free(p.in);
    if (status != 0)
        patch_free(out);
    return status;
}

void patch_free(struct patch *p)
{
    free(p->lines);
    free(p->hunks);
    memset(p, 0, sizeof *p);
}
