#include "engine/scenario/patch.h"

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How carriage returns before newlines count. A checkout may turn a text or its patch, wholly, from LF to CRLF. Where
   all lines of the text end one way and all old lines of the patch the other, no hunk could fit to the letter: then,
   and only then, carriage returns are looked past, and new lines end as the text's do. */
enum line_ends { ENDS_EXACT, ENDS_AS_LF, ENDS_AS_CRLF };

struct applier {
    const struct patch *patch;
    struct patch_line *text; /* owned */
    size_t n_text;
    enum line_ends ends;
    size_t cursor; /* lines of the text already copied */
    char *out;     /* owned; large enough for both inputs */
    size_t n_out;
    const struct patch_line *open_line; /* the one written without a newline: nothing may follow; else NULL */
    struct err *err;
};

static size_t without_cr(const struct patch_line *line)
{
    return line->n > 0 && line->text[line->n - 1] == '\r' ? line->n - 1 : line->n;
}

/* Of the lines that end, but for a patch's new ones: 1: all end in CRLF; 0: all in LF; -1: mixed, or there are none. */
static int is_crlf(const struct patch_line *lines, size_t n)
{
    size_t ended = 0, crlf = 0;
    for (size_t i = 0; i < n; i++) {
        if (!lines[i].has_eol || lines[i].kind == '+')
            continue;
        ended++;
        crlf += without_cr(&lines[i]) < lines[i].n;
    }
    return ended == 0 || (crlf > 0 && crlf < ended) ? -1 : crlf > 0;
}

static enum line_ends choose_ends(const struct applier *a)
{
    const int text = is_crlf(a->text, a->n_text), patch = is_crlf(a->patch->lines, a->patch->n_lines);
    if (text < 0 || patch < 0 || text == patch)
        return ENDS_EXACT;
    return text ? ENDS_AS_CRLF : ENDS_AS_LF;
}

static int same_line(const struct applier *a, const struct patch_line *x, const struct patch_line *y)
{
    const size_t nx = a->ends == ENDS_EXACT ? x->n : without_cr(x), ny = a->ends == ENDS_EXACT ? y->n : without_cr(y);
    return nx == ny && x->has_eol == y->has_eol && memcmp(x->text, y->text, nx) == 0;
}

/* How many of the hunk's old lines the text has from line `at` on, and the first that it has not, or NULL. */
static size_t match(const struct applier *a, const struct patch_hunk *hunk, size_t at,
                    const struct patch_line **differs)
{
    size_t n = 0;
    *differs = NULL;
    for (size_t i = 0; i < hunk->n_lines; i++) {
        const struct patch_line *line = &a->patch->lines[hunk->first_line + i];
        if (line->kind == '+')
            continue;
        if (at + n >= a->n_text || !same_line(a, line, &a->text[at + n])) {
            *differs = line;
            break;
        }
        n++;
    }
    return n;
}

static int emit(struct applier *a, const struct patch_line *line, enum line_ends ends)
{
    if (a->open_line) {
        char where[768];
        snprintf(where, sizeof where, "%s:%d", a->patch->name,
                 a->open_line->kind ? a->open_line->diff_line : line->diff_line);
        return err_set(a->err, ERR_INPUT, where, "expected nothing behind a line without a newline");
    }
    const size_t n = ends == ENDS_EXACT ? line->n : without_cr(line);
    memcpy(a->out + a->n_out, line->text, n);
    a->n_out += n;
    if (line->has_eol && ends == ENDS_AS_CRLF)
        a->out[a->n_out++] = '\r';
    if (line->has_eol)
        a->out[a->n_out++] = '\n';
    a->open_line = line->has_eol ? NULL : line;
    return 0;
}

static void describe(const struct patch_line *line, char *out, size_t n_bytes)
{
    char quoted[160];
    text_name(line->text, line->n, quoted, sizeof quoted);
    snprintf(out, n_bytes, "`%s`%s", quoted, line->has_eol ? "" : " without a newline");
}

/* The hunk fits nowhere: says what differs where it fits best, of several such places nearest to the one it names. */
static int fail_hunk(struct applier *a, const struct patch_hunk *hunk, size_t best)
{
    const struct patch_line *differs;
    const size_t at = best + match(a, hunk, best, &differs);
    char where[768], expected[256], found[256] = "the end of the text", line_text[48] = "";
    if (!differs)
        differs = &a->patch->lines[hunk->first_line];
    describe(differs, expected, sizeof expected);
    if (at < a->n_text) {
        describe(&a->text[at], found, sizeof found);
        snprintf(line_text, sizeof line_text, " in line %zu", at + 1);
    }
    snprintf(where, sizeof where, "%s:%d", a->patch->name, differs->diff_line);
    return err_set(a->err, ERR_INPUT, where, "hunk %zu of %zu: expected %s, found %s%s",
                   (size_t)(hunk - a->patch->hunks) + 1, a->patch->n_hunks, expected, found, line_text);
}

/* The place nearest to `wanted` where all old lines match, not before the cursor. */
static int find_place(struct applier *a, const struct patch_hunk *hunk, size_t wanted, size_t *place)
{
    const struct patch_line *differs;
    size_t best = wanted, best_matched = 0;
    for (size_t distance = 0; distance <= a->n_text; distance++) {
        const size_t candidates[2] = {wanted + distance, wanted - distance};
        for (int i = 0; i < (distance ? 2 : 1); i++) {
            const size_t at = candidates[i];
            if (at > a->n_text || at < a->cursor || (i == 1 && distance > wanted))
                continue;
            const size_t matched = match(a, hunk, at, &differs);
            if (!differs) {
                *place = at;
                return 0;
            }
            if (matched > best_matched) {
                best = at;
                best_matched = matched;
            }
        }
    }
    return fail_hunk(a, hunk, best);
}

/* shift: how far the hunk before this one lay behind the line that it named. */
static int apply_hunk(struct applier *a, const struct patch_hunk *hunk, long *shift)
{
    /* A hunk without old lines names the line before it. */
    const long named = (long)hunk->old_start - (hunk->old_count > 0);
    long wanted = named + *shift;
    if (hunk->old_count == 0 && wanted > (long)a->n_text) {
        /* Nothing but the number says where it belongs. */
        char where[768];
        snprintf(where, sizeof where, "%s:%d", a->patch->name, hunk->diff_line);
        return err_set(a->err, ERR_INPUT, where, "hunk %zu of %zu: expected a text of at least %ld lines, found %zu",
                       (size_t)(hunk - a->patch->hunks) + 1, a->patch->n_hunks, wanted, a->n_text);
    }
    if (wanted < (long)a->cursor)
        wanted = (long)a->cursor;
    if (wanted > (long)a->n_text)
        wanted = (long)a->n_text;
    size_t place = 0;
    if (find_place(a, hunk, (size_t)wanted, &place) != 0)
        return -1;
    *shift = (long)place - named;
    while (a->cursor < place) {
        if (emit(a, &a->text[a->cursor++], ENDS_EXACT) != 0)
            return -1;
    }
    for (size_t i = 0; i < hunk->n_lines; i++) {
        const struct patch_line *line = &a->patch->lines[hunk->first_line + i];
        /* What stays is copied from the text itself. */
        if ((line->kind == '+' && emit(a, line, a->ends) != 0) ||
            (line->kind == ' ' && emit(a, &a->text[a->cursor], ENDS_EXACT) != 0))
            return -1;
        a->cursor += line->kind != '+';
    }
    return 0;
}

static int apply_all(struct applier *a)
{
    long shift = 0;
    a->ends = choose_ends(a);
    for (size_t i = 0; i < a->patch->n_hunks; i++) {
        if (apply_hunk(a, &a->patch->hunks[i], &shift) != 0)
            return -1;
    }
    while (a->cursor < a->n_text) {
        if (emit(a, &a->text[a->cursor++], ENDS_EXACT) != 0)
            return -1;
    }
    a->out[a->n_out] = '\0';
    return 0;
}

int patch_apply(const char *text, const char *diff, const char *diff_name, char **out, struct err *err)
{
    struct patch patch;
    struct applier a = {.patch = &patch, .err = err};
    *out = NULL;
    if (patch_parse(diff, diff_name, &patch, err) != 0)
        return -1;
    a.text = patch_split(text, &a.n_text);
    /* Each line of either goes into the result at most once, with at most "\r\n" added. */
    a.out = malloc(strlen(text) + strlen(diff) + 2 * (a.n_text + patch.n_lines) + 1);
    int status;
    if (!a.text || !a.out)
        status = err_no_memory(err, diff_name, "the patched text");
    else
        status = apply_all(&a);
    free(a.text);
    patch_free(&patch);
    if (status != 0) {
        free(a.out);
        return -1;
    }
    *out = a.out;
    return 0;
}
