#include "engine/build/patch.h"

#include "engine/base/leftovers.h"
#include "engine/base/path.h"
#include "engine/base/text.h"
#include "engine/build/cache.h"
#include "engine/build/process.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_S 20

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

/* "-12,3", or "-12", which counts one line. Returns what stands behind it, or NULL. */
static const char *read_range(const char *at, char sign, unsigned long *start, unsigned long *count)
{
    char *end;
    if (!at || *at != sign || !isdigit((unsigned char)at[1]))
        return NULL;
    *start = strtoul(at + 1, &end, 10);
    *count = 1;
    if (*end != ',')
        return end;
    if (!isdigit((unsigned char)end[1]))
        return NULL;
    *count = strtoul(end + 1, &end, 10);
    return end;
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
    patch->n = 0;
    for (const char *at = patch->text; (line = take_line(&at)).text;) {
        const char *expected = NULL;
        number++;
        const bool again = state == HUNKS && old + new == 0;
        if (begins(line, "\\ ") && state == HUNKS)
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

/* What differs where the hunk says that it belongs: patch(1) tells no more than its number. */
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

/* What patch(1) has said, by its hunk where one failed: "Hunk #2 FAILED at 40." */
static int fail(const struct process_output *said, const char *text, const char *diff, const char *name, int hunks,
                struct err *err)
{
    static const char ours[] = "patch: **** ";
    const char *failed = strstr(said->out, " FAILED at "), *words = strstr(said->err, ours);
    while (failed && failed > said->out && failed[-1] != '#')
        failed--;
    const long hunk = failed ? strtol(failed, NULL, 10) : 0;
    if (hunk > 0 && hunk <= hunks)
        return fail_hunk(text, diff, name, (int)hunk, hunks, err);
    words = words ? words + sizeof ours - 1 : said->err;
    return err_set(err, ERR_INPUT, name, "patch: %.*s", (int)strcspn(words, "\n"), words);
}

/* Into a folder of its own: beside what it writes, patch(1) makes files of other names. */
static int run(const char *file, const char *text, const struct patch *patch, const char *diff, int hunks, char **out,
               struct err *err)
{
    const char *temporary = getenv("TMPDIR");
    char folder[512], patched[520], part[520];
    struct process_output said = {0};
    int failed;
    snprintf(folder, sizeof folder, "%s/attnscope-patch-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return err_errno(err, folder, "a folder for the patched copy");
    leftovers_add_path(folder);
    snprintf(patched, sizeof patched, "%s/copy", folder);
    snprintf(part, sizeof part, "%s/diff", folder);
    const char *const argv[] = {"patch", "-u",    "-f", "-F0", "--binary", "--follow-symlinks",
                                "-o",    patched, "-r", "-",   "-i",       patch->n > 1 ? part : patch->path,
                                "--",    file,    NULL};
    if (patch->n > 1 && cache_write_text(folder, "diff", diff, err) != 0)
        failed = -1;
    else if (process_capture(argv, LIMIT_S, NULL, &said, err) != 0)
        failed = errno == ENOENT ? err_set(err, ERR_SYSTEM, patch->path,
                                           "patch(1), which applies it, is not installed (package patch)")
                                 : -1;
    else if (said.status != 0)
        failed = fail(&said, text, diff, patch->path, hunks, err);
    else
        failed = cache_read_text(patched, "the patched copy", out, err);
    process_output_free(&said);
    cache_remove_folder(folder);
    leftovers_remove_path(folder);
    return failed;
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
        run(path, text, patch, diff, file->hunks, out, err);
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
