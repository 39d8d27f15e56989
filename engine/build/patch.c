#include "engine/build/patch.h"

#include "engine/base/path.h"
#include "engine/base/text.h"
#include "engine/build/cache.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    const char *text; /* NULL: behind the last one */
    size_t n;         /* without its newline */
};

static struct line take_line(const char **at)
{
    const struct line line = {**at ? *at : NULL, strcspn(*at, "\n")};
    *at += line.n + ((*at)[line.n] == '\n');
    return line;
}

static bool begins(struct line line, const char *prefix)
{
    return line.n >= strlen(prefix) && memcmp(line.text, prefix, strlen(prefix)) == 0;
}

static void quote(struct line line, const char *none, char *out, size_t n_bytes)
{
    char quoted[160];
    if (!line.text) {
        snprintf(out, n_bytes, "%s", none);
        return;
    }
    text_name(line.text, line.n, quoted, sizeof quoted);
    snprintf(out, n_bytes, "`%s`", quoted);
}

static int refuse(struct err *err, const char *name, int number, struct line found, const char *expected)
{
    char where[768], quoted[200];
    quote(found, "the end of the patch", quoted, sizeof quoted);
    snprintf(where, sizeof where, "%s:%d", name, number);
    return err_set(err, ERR_INPUT, where, "expected %s, found %s", expected, quoted);
}

/* Of at most nine digits: sums of them are numbers, too. What stands behind it, or NULL. */
static const char *read_number(const char *at, unsigned long *out)
{
    enum { DIGITS = 9 };
    int n = 0;
    for (*out = 0; n <= DIGITS && isdigit((unsigned char)at[n]); n++)
        *out = *out * 10 + (unsigned long)(at[n] - '0');
    return n >= 1 && n <= DIGITS ? at + n : NULL;
}

/* "-12,3", or "-12", which counts one line. Returns what stands behind it, or NULL. */
static const char *read_range(const char *at, char sign, unsigned long *start, unsigned long *count)
{
    at = at && *at == sign ? read_number(at + 1, start) : NULL;
    *count = 1;
    return at && *at == ',' ? read_number(at + 1, count) : at;
}

static bool read_header(struct line line, unsigned long *start, unsigned long *old, unsigned long *new)
{
    unsigned long new_start;
    const char *at = begins(line, "@@ -") ? read_range(line.text + 3, '-', start, old) : NULL;
    at = at && *at == ' ' ? read_range(at + 1, '+', &new_start, new) : NULL;
    return at && strncmp(at, " @@", 3) == 0 && *old + *new > 0;
}

/* ' ', '-' or '+'. Editors that strip blanks at the end of lines turn an empty line's " " into "". */
static char kind_of(struct line line)
{
    return line.n == 0 || *line.text == '\r' ? ' ' : *line.text;
}

/* "+++ b/flash/softmax.h<tab>2024-01-01" */
static void begin_file(struct patch_file *file, struct line line, int number)
{
    const size_t n = line.n - 4 < sizeof file->name ? line.n - 4 : sizeof file->name - 1;
    memcpy(file->name, line.text + 4, n);
    file->name[n] = '\0';
    file->name[strcspn(file->name, "\t\r")] = '\0';
    file->line = number;
}

int patch_check(struct patch *patch, struct err *err)
{
    enum { BEFORE, OLD_NAME, NEW_NAME, HUNKS, SIGNATURE } state = BEFORE;
    unsigned long start, old = 0, new = 0; /* lines that are left of the hunk */
    struct patch_file *file = NULL;
    struct line line;
    const char *const name = patch->path;
    int number = 0;
    bool of_a_line = false; /* the line before was one of a hunk */
    patch->n = 0;
    for (const char *at = patch->text; (line = take_line(&at)).text;) {
        const char *expected = NULL;
        number++;
        const bool again = state == HUNKS && old + new == 0;
        const bool said_of_a_line = of_a_line;
        of_a_line = false;
        if (begins(line, "\\ ") && state == HUNKS && said_of_a_line)
            continue; /* "No newline at end of file" */
        if (again && (begins(line, "diff ") || (begins(line, "--- ") && strncmp(at, "+++ ", 4) == 0)))
            state = BEFORE;
        if (file && state < HUNKS && !file->end && file->hunks)
            file->end = (size_t)(line.text - patch->text);
        if (old + new > 0) {
            const char kind = kind_of(line);
            const bool is_old = kind == ' ' || kind == '-', is_new = kind == ' ' || kind == '+';
            if ((!is_old && !is_new) || (is_old && old == 0) || (is_new && new == 0))
                expected = "more lines in this hunk, as its header says";
            old -= is_old;
            new -= is_new;
            of_a_line = true;
        } else if (state == BEFORE && begins(line, "--- ")) {
            expected = begins(line, "--- /dev/null") ? "a patch that changes a file, not one that creates it" : NULL;
            state = OLD_NAME;
            if (patch->n == PATCH_FILES_MAX)
                expected = "a patch of at most 16 files";
            else
                file = &patch->file[patch->n++];
            if (!expected)
                *file = (struct patch_file){.begin = (size_t)(line.text - patch->text)};
        } else if (state == BEFORE) {
            expected = begins(line, "@@ ") ? "a unified diff with a line `--- FILE`" : NULL;
        } else if (state == OLD_NAME) {
            if (!begins(line, "+++ "))
                expected = "a line `+++ FILE`";
            else if (begins(line, "+++ /dev/null"))
                expected = "a patch that changes a file, not one that deletes it";
            else
                begin_file(file, line, number);
            state = NEW_NAME;
        } else if (state == NEW_NAME || (state == HUNKS && begins(line, "@@"))) {
            if (!read_header(line, &start, &old, &new))
                expected = "a hunk header `@@ -LINE,COUNT +LINE,COUNT @@`";
            state = HUNKS;
            file->hunks++;
        } else if (state == HUNKS && begins(line, "-- ")) {
            state = SIGNATURE; /* of git's mail: its version */
        } else if (state == SIGNATURE && line.text[strspn(line.text, "0123456789")] == '.') {
            continue;
        } else if (kind_of(line) != ' ' || (line.n > 0 && *line.text == ' ')) {
            expected = "no more lines in this hunk, as its header says";
        }
        if (expected)
            return refuse(err, name, number, line, expected);
    }
    if (!file || file->hunks == 0 || old + new > 0)
        return refuse(err, name, number, line,
                      file && file->hunks ? "more lines in the last hunk, as its header says"
                                          : "a unified diff with a hunk");
    if (patch->text[strlen(patch->text) - 1] != '\n')
        return refuse(err, name, number, line, "a newline after the last line");
    if (!file->end)
        file->end = strlen(patch->text);
    return 0;
}

/* What differs where the hunk says that it belongs. */
static int fail_hunk(const char *text, const char *diff, const char *name, int hunk, int hunks, struct err *err)
{
    unsigned long start = 0, old = 0, new, at = 1;
    char where[768], expected[200], found[200], in[48] = "";
    int number = 0;
    for (int left = hunk; left > 0; number++)
        left -= read_header(take_line(&diff), &start, &old, &new);
    const int header = number;
    while (at < start && take_line(&text).text)
        at++;
    for (struct line line; old > 0 && (line = take_line(&diff)).text;) {
        const char kind = kind_of(line);
        number++;
        if (kind != ' ' && kind != '-')
            continue;
        if (line.n > 0 && *line.text == kind)
            line = (struct line){line.text + 1, line.n - 1};
        const struct line there = take_line(&text);
        if (!there.text || there.n != line.n || memcmp(there.text, line.text, line.n) != 0) {
            quote(line, "", expected, sizeof expected);
            quote(there, "the end of the text", found, sizeof found);
            if (there.text)
                snprintf(in, sizeof in, " in line %lu", at);
            snprintf(where, sizeof where, "%s:%d", name, number);
            return err_set(err, ERR_INPUT, where, "hunk %d of %d: expected %s, found %s%s", hunk, hunks, expected,
                           found, in);
        }
        old--;
        at++;
    }
    snprintf(where, sizeof where, "%s:%d", name, header);
    return err_set(
        err, ERR_INPUT, where,
        "hunk %d of %d is as the text has it, and does not fit: hunks stand in the file's order, the side with fewer "
        "lines of context is at the file's beginning or end, and a line without a newline is its last",
        hunk, hunks);
}

struct lines {
    struct line *line; /* owned, [n] */
    size_t n;
    bool open; /* the last one has no newline */
};

static int lines_of(const char *text, struct lines *out)
{
    const size_t bytes = strlen(text);
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == '\n';
    *out = (struct lines){.line = malloc(most * sizeof *out->line), .open = bytes && text[bytes - 1] != '\n'};
    for (struct line line; out->line && (line = take_line(&text)).text;)
        out->line[out->n++] = line;
    return out->line ? 0 : -1;
}

/* A hunk: its lines from `body` on, of which so many are at its beginning and end alone that stay. */
struct hunk {
    const char *body;
    unsigned long start, old, new;
    size_t before, behind;
};

static const char *next_of_hunk(const char *at, struct line *line, char *kind, bool *open)
{
    *line = take_line(&at);
    if (!line->text) /* patch_check() has counted: it is there */
        *line = (struct line){"", 0};
    *kind = kind_of(*line);
    if (line->n > 0 && *line->text == *kind)
        *line = (struct line){line->text + 1, line->n - 1};
    *open = strncmp(at, "\\ ", 2) == 0;
    if (*open)
        take_line(&at);
    return at;
}

/* The next hunk, and what is behind it; NULL: there is none. */
static const char *take_hunk(const char *at, struct hunk *hunk)
{
    struct line line;
    char kind;
    bool open;
    do
        if (!(line = take_line(&at)).text)
            return NULL;
    while (!read_header(line, &hunk->start, &hunk->old, &hunk->new));
    hunk->body = at;
    hunk->before = hunk->behind = 0;
    bool first = true;
    for (unsigned long old = hunk->old, new = hunk->new; old + new > 0;) {
        at = next_of_hunk(at, &line, &kind, &open);
        first = first && kind == ' ';
        hunk->before += first;
        hunk->behind = kind == ' ' ? hunk->behind + 1 : 0;
        old -= kind != '+';
        new -= kind != '-';
    }
    return at;
}

/* Whether the lines that it takes away or leaves are those from `at` on. Where there is less context at one end of the
   hunk, that end is the file's, as patch(1) has it. */
static bool fits_at(const struct lines *lines, const struct hunk *hunk, size_t at)
{
    if ((hunk->before < hunk->behind && hunk->start <= 1 && at > 0) ||
        (hunk->behind < hunk->before && at + hunk->old != lines->n))
        return false;
    const char *from = hunk->body;
    for (size_t end = at + hunk->old; at < end;) {
        struct line line;
        char kind;
        bool open;
        from = next_of_hunk(from, &line, &kind, &open);
        if (kind == '+')
            continue;
        const struct line there = lines->line[at++];
        if (there.n != line.n || memcmp(there.text, line.text, line.n) != 0 || open != (at == lines->n && lines->open))
            return false;
    }
    return true;
}

/* Where it fits that is nearest to `wanted`, from `least` on; SIZE_MAX: nowhere. */
static size_t place_of(const struct lines *lines, const struct hunk *hunk, size_t wanted, size_t least)
{
    if (wanted > lines->n)
        wanted = lines->n;
    for (size_t off = 0; off <= lines->n; off++) {
        if (wanted + off >= least && wanted + off + hunk->old <= lines->n && fits_at(lines, hunk, wanted + off))
            return wanted + off;
        if (off > 0 && wanted >= least + off && wanted - off + hunk->old <= lines->n &&
            fits_at(lines, hunk, wanted - off))
            return wanted - off;
    }
    return SIZE_MAX;
}

/* A line without its newline that is not the last any more gets one. */
static char *put(const char *begin, char *to, struct line line, bool newline)
{
    if (to > begin && to[-1] != '\n')
        *to++ = '\n';
    memcpy(to, line.text, line.n);
    to[line.n] = '\n';
    return to + line.n + newline;
}

/* A hunk is looked for where the ones before it were found, and from there on. */
static int run(const char *text, const struct patch *patch, const char *diff, int hunks, char **out, struct err *err)
{
    struct lines lines;
    struct hunk hunk;
    size_t done = 0;
    int64_t moved = 0;
    *out = malloc(strlen(text) + strlen(diff) + 2);
    if (lines_of(text, &lines) != 0 || !*out) {
        free(lines.line);
        free(*out);
        *out = NULL;
        return err_no_memory(err, patch->path, "its result");
    }
    char *to = *out;
    const char *next = diff;
    int number = 1, failed = 0;
    for (; !failed && (next = take_hunk(next, &hunk)); number++) {
        const int64_t stated = (int64_t)hunk.start - (hunk.old > 0) + moved;
        const size_t wanted = stated > (int64_t)done ? (size_t)stated : done;
        const size_t at = place_of(&lines, &hunk, wanted, done);
        if (at == SIZE_MAX) {
            failed = fail_hunk(text, diff, patch->path, number, hunks, err);
            break;
        }
        moved += (int64_t)at - stated;
        for (; done < at; done++)
            to = put(*out, to, lines.line[done], true);
        const char *from = hunk.body;
        for (unsigned long old = hunk.old, new = hunk.new; old + new > 0;) {
            struct line line;
            char kind;
            bool open;
            from = next_of_hunk(from, &line, &kind, &open);
            old -= kind != '+';
            new -= kind != '-';
            if (kind != '-')
                to = put(*out, to, line, !open);
        }
        done += hunk.old;
    }
    for (; done < lines.n; done++)
        to = put(*out, to, lines.line[done], done + 1 < lines.n || !lines.open);
    *to = '\0';
    free(lines.line);
    if (!failed)
        return 0;
    free(*out);
    *out = NULL;
    return -1;
}

int patch_read(const char *path, struct patch *out, struct err *err)
{
    *out = (struct patch){0};
    const int n = snprintf(out->path, sizeof out->path, "%s", path);
    if (n < 0 || (size_t)n >= sizeof out->path)
        return err_set(err, ERR_INPUT, "", "the path of the patch is longer than %zu bytes", sizeof out->path - 1);
    if (cache_read_text(path, "the patch", &out->text, err) == 0 && patch_check(out, err) == 0)
        return 0;
    patch_free(out);
    return -1;
}

void patch_free(struct patch *patch)
{
    free(patch->text);
    *patch = (struct patch){0};
}

int patch_find(const struct patch *patch, const char *path)
{
    for (int i = 0; i < patch->n; i++)
        if (strcmp(path_name(patch->file[i].name), path_name(path)) == 0)
            return i;
    return -1;
}

int patch_apply_to(const struct patch *patch, int i, const char *path, char **out, struct err *err)
{
    const struct patch_file *file = &patch->file[i];
    char *text = NULL, *diff = strdup(patch->text);
    *out = NULL;
    if (!diff)
        return err_no_memory(err, patch->path, "its text");
    /* Lines of the other files stay, empty, so that this one's keep their numbers. */
    size_t n = 0;
    for (size_t at = 0; patch->text[at]; at++)
        if ((at >= file->begin && at < file->end) || patch->text[at] == '\n')
            diff[n++] = patch->text[at];
    diff[n] = '\0';
    const bool failed =
        cache_read_text(path, i || patch->n > 1 ? "what the patch changes" : "the kernel", &text, err) ||
        run(text, patch, diff, file->hunks, out, err);
    free(text);
    free(diff);
    return failed ? -1 : 0;
}

int patch_apply(const char *kernel, const char *path, char **out, struct err *err)
{
    struct patch patch;
    *out = NULL;
    if (patch_read(path, &patch, err) != 0)
        return -1;
    const int i = patch.n == 1 ? 0 : patch_find(&patch, kernel);
    const int failed =
        i < 0 ? cache_read_text(kernel, "the kernel", out, err) : patch_apply_to(&patch, i, kernel, out, err);
    patch_free(&patch);
    return failed;
}
