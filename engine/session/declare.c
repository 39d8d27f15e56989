#include "engine/session/declare.h"

#include "engine/base/path.h"
#include "engine/base/replace.h"
#include "engine/build/cache.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- a text without what is no code ---- */

/* What stands in the bare text for an #if, and for its #endif. */
enum { MARK_IF = '\1', MARK_ENDIF = '\2' };

/* The end of a comment or a directive that ends with its line; a backslash takes the next one in. */
static size_t line_end(const char *text, size_t i)
{
    while (text[i] && text[i] != '\n') {
        const bool escaped = text[i] == '\\';
        i++;
        if (escaped && text[i] == '\r' && text[i + 1] == '\n')
            i++;
        if (escaped && text[i])
            i++;
    }
    return i;
}

/* The same of a directive, in which a comment may hold more lines. */
static size_t directive_end(const char *text, size_t i)
{
    const size_t end = line_end(text, i);
    for (; i < end; i++) {
        if (text[i] != '/' || text[i + 1] != '*')
            continue;
        const char *closes = strstr(text + i + 2, "*/");
        const size_t behind = closes ? (size_t)(closes - text) + 2 : strlen(text);
        return directive_end(text, behind);
    }
    return end;
}

static size_t quoted_end(const char *text, size_t i)
{
    const char quote = text[i++];
    while (text[i] && text[i] != quote && text[i] != '\n')
        i += text[i] == '\\' && text[i + 1] ? 2 : 1;
    return i + (text[i] == quote);
}

/* R"x( ... )x", at its quote. */
static size_t raw_end(const char *text, size_t i)
{
    char closes[24];
    const int n = (int)strcspn(text + i + 1, "(");
    snprintf(closes, sizeof closes, ")%.*s\"", n < 16 ? n : 16, text + i + 1);
    const char *end = strstr(text + i, closes);
    return end ? (size_t)(end - text) + strlen(closes) : strlen(text);
}

/* 1'000 is a number. */
static bool separates(const char *text, size_t i)
{
    size_t begin = i;
    while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '\''))
        begin--;
    return begin < i && isdigit((unsigned char)text[begin]);
}

/* Where what is no code and begins at i ends; i: it is code. */
static size_t no_code_end(const char *text, size_t i, bool first)
{
    const char c = text[i];
    if (c == '/' && text[i + 1] == '/')
        return line_end(text, i);
    if (c == '/' && text[i + 1] == '*') {
        const char *end = strstr(text + i + 2, "*/");
        return end ? (size_t)(end - text) + 2 : strlen(text);
    }
    if (c == '#' && first)
        return directive_end(text, i);
    if (c == '"')
        return i > 0 && text[i - 1] == 'R' ? raw_end(text, i) : quoted_end(text, i);
    return c == '\'' && !separates(text, i) ? quoted_end(text, i) : i;
}

/* Comments, directives, strings and characters are blanks, their line ends too: each byte of code has its place. */
static char *bare_text(const char *text)
{
    char *bare = strdup(text);
    bool first = true; /* nothing but blanks before, in this line */
    for (size_t i = 0; bare && text[i];) {
        const size_t end = no_code_end(text, i, first);
        first = text[i] == '\n' || (first && isspace((unsigned char)text[i])) || (first && end > i && text[i] == '/');
        if (end == i) {
            i++;
            continue;
        }
        memset(bare + i, ' ', end - i);
        if (text[i] == '#') {
            const char *name = text + i + 1 + strspn(text + i + 1, " \t");
            bare[i] = strncmp(name, "if", 2) == 0 ? MARK_IF : strncmp(name, "endif", 5) == 0 ? MARK_ENDIF : ' ';
        }
        i = end;
    }
    return bare;
}

/* ---- the registration ---- */

static size_t blanks(const char *bare, size_t i)
{
    return i + strspn(bare + i, " \t\r\n");
}

static bool word_at(const char *bare, size_t i, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(bare + i, word, n) == 0 && !is_word(bare[i + n]) && (i == 0 || !is_word(bare[i - 1]));
}

/* Behind what opens the only registration, the brace of ASC_KERNEL or the parenthesis of ASC_RUN, *listed then; 0:
   there is none, or more than one. */
static size_t registration(const char *bare, bool *listed)
{
    size_t found = 0, n = 0;
    for (size_t i = 0; bare[i]; i++) {
        const bool call = word_at(bare, i, "ASC_RUN");
        if (!call && !word_at(bare, i, "ASC_KERNEL"))
            continue;
        size_t at = blanks(bare, i + strlen(call ? "ASC_RUN" : "ASC_KERNEL"));
        if (bare[at] != '(')
            continue;
        n++;
        *listed = call;
        found = at + 1;
        if (!call) {
            at = blanks(bare, at + strcspn(bare + at, ")") + 1);
            found = bare[at] == '{' ? at + 1 : 0;
        }
    }
    return n == 1 ? found : 0;
}

/* The convention that "kernel.conventions.NAME" or "kernel.NAME" at i names, and where that ends; -1: none. */
static int convention_at(const char *bare, size_t i, size_t *end)
{
    if (!word_at(bare, i, "kernel") || (i > 0 && (bare[i - 1] == '.' || bare[i - 1] == '>')))
        return -1;
    for (int part = 0; part < 2; part++) {
        i = blanks(bare, i + (part ? strlen("conventions") : strlen("kernel")));
        if (bare[i] != '.')
            return -1;
        i = blanks(bare, i + 1);
        for (int k = 0; k < CONVENTIONS; k++)
            if (word_at(bare, i, conventions[k].name)) {
                *end = i + strlen(conventions[k].name);
                return k;
            }
        if (!word_at(bare, i, "conventions"))
            return -1;
    }
    return -1;
}

/* What stands in the registration. 0: nowhere. */
struct found {
    size_t last_begin, last_end; /* the last statement that declares a convention, whatever the problem is */
    size_t value, value_end;     /* of the field that is looked for */
    int times;                   /* that it is named */
    bool plain;                  /* by a statement that sets it, whatever the problem is */
};

/* The end of a value that begins at i: a comma or a semicolon of its own. 0: it is none that could be replaced. */
static size_t value_end(const char *bare, size_t i)
{
    int depth = 0;
    for (; bare[i]; i++) {
        const char c = bare[i];
        if (depth == 0 && (c == ';' || c == ','))
            return i;
        if (c == '=' || c == '{' || c == '}' || c == MARK_IF || c == MARK_ENDIF)
            return 0;
        depth += (c == '(') - (c == ')');
        if (depth < 0)
            return 0;
    }
    return 0;
}

static void look(const char *bare, size_t begin, int field, struct found *out)
{
    int braces = 1, parens = 0, ifs = 0;
    size_t statement = 0; /* of statements of the registration itself that begin with a convention; else 0 */
    bool starts = true, over = false;
    char before = ';'; /* the last one that is no blank */
    *out = (struct found){0};
    for (size_t i = begin; bare[i] && !over; i++) {
        const char c = bare[i];
        size_t end = i;
        const int named = convention_at(bare, i, &end);
        const bool own = braces == 1 && parens == 0 && ifs == 0;
        if (starts && named >= 0 && own)
            statement = i;
        if (named == field && named >= 0) {
            const size_t is = blanks(bare, end), value = blanks(bare, is + (bare[is] != '\0'));
            out->times++;
            const bool sets =
                bare[is] == '=' && bare[is + 1] != '=' && own && statement > 0 && (before == ',' || statement == i);
            out->value = value;
            out->value_end = sets ? value_end(bare, value) : 0;
            out->plain = out->value_end > 0;
        }
        if (c == ';' && own && statement) {
            out->last_begin = statement;
            out->last_end = i + 1;
        }
        braces += (c == '{') - (c == '}');
        parens += (c == '(') - (c == ')');
        ifs += (c == MARK_IF) - (c == MARK_ENDIF);
        over = braces == 0;
        if (c == ';' || c == '{' || c == '}' || c == MARK_IF || c == MARK_ENDIF) {
            starts = true;
            statement = 0;
        } else if (!isspace((unsigned char)c)) {
            starts = false;
        }
        before = isspace((unsigned char)c) ? before : c;
    }
}

/* The same in the list of ASC_RUN: last_end is where its last setting ends; 0: it cannot be read. */
static void look_in_list(const char *bare, size_t begin, int field, struct found *out)
{
    int depth = 0, n = 0;
    size_t item = begin; /* where it begins: a name, a call, then settings */
    *out = (struct found){0};
    for (size_t i = begin; bare[i] && !out->last_end; i++) {
        const char c = bare[i];
        if (c == ';' || c == MARK_IF || c == MARK_ENDIF)
            return;
        if (depth > 0 || (c != ',' && c != ')')) {
            depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
            continue;
        }
        const size_t name = blanks(bare, item), is = blanks(bare, name + strlen(conventions[field].name));
        if (n >= 2 && word_at(bare, name, conventions[field].name) && bare[is] == '=') {
            out->times++;
            out->value = blanks(bare, is + 1);
            out->value_end = i;
            out->plain = true;
        }
        for (out->last_end = c == ')' && n >= 2 ? i : 0;
             out->last_end && isspace((unsigned char)bare[out->last_end - 1]);)
            out->last_end--;
        if (c == ')')
            return;
        item = i + 1;
        n++;
    }
}

static void setting_words(const struct convention_line *line, char *out, size_t size)
{
    snprintf(out, size, "%s = %s", conventions[line->convention].name, line->value);
}

static int line_of(const char *text, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

/* The text with `put` in the place of [from, to). */
static char *spliced(const char *text, size_t from, size_t to, const char *put)
{
    const size_t n = strlen(text) + strlen(put) + 1;
    char *out = malloc(n);
    if (out)
        snprintf(out, n, "%.*s%s%s", (int)from, text, put, text + to);
    return out;
}

/* A line of its own behind what ends at `end`, indented as what stands at `like`; where something else follows in that
   line, behind a blank. */
static char *inserted(const char *text, const char *bare, size_t end, size_t like, const char *words, int *line)
{
    char put[CONVENTION_LINE_BYTES + 80];
    const size_t eol = end + strspn(bare + end, " \t\r");
    if (bare[eol] != '\n') {
        snprintf(put, sizeof put, " %s", words);
        *line = line_of(text, end);
        return spliced(text, end, end, put);
    }
    size_t begin = like;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    const int indent = (int)strspn(text + begin, " \t");
    snprintf(put, sizeof put, "%.*s%s%s\n", indent < 64 ? indent : 64, text + begin, words,
             eol > 0 && text[eol - 1] == '\r' ? "\r" : "");
    *line = line_of(text, eol) + 1;
    return spliced(text, eol + 1, eol + 1, put);
}

char *declare_in(const char *text, const struct convention_line *line, struct declared_at *at, const char **why)
{
    char words[CONVENTION_LINE_BYTES];
    char *bare = bare_text(text), *out = NULL;
    *at = (struct declared_at){0};
    const size_t begin = bare ? registration(bare, &at->listed) : 0;
    struct found found = {0};
    *why = NULL;
    convention_line_words(line, words);
    if (begin && at->listed)
        look_in_list(bare, begin, line->convention, &found);
    else if (begin)
        look(bare, begin, line->convention, &found);
    if (bare && (!begin || (at->listed && !found.last_end))) {
        *why = "it has no ASC_KERNEL(name) {...} or ASC_RUN(...), or several";
    } else if (found.times > 1 || (found.times == 1 && !found.plain)) {
        *why = "it says that under a condition, or twice";
    } else if (found.times == 1) {
        size_t end = found.value_end;
        while (end > found.value && isspace((unsigned char)bare[end - 1]))
            end--;
        snprintf(at->was, sizeof at->was, "%.*s", (int)(end - found.value), text + found.value);
        at->line = line_of(text, found.value);
        out = spliced(text, found.value, end, line->value);
    } else if (begin && at->listed) {
        memcpy(words, ", ", 3);
        setting_words(line, words + 2, sizeof words - 2);
        at->line = line_of(text, found.last_end);
        out = spliced(text, found.last_end, found.last_end, words);
    } else if (begin) {
        const size_t behind = found.last_end ? found.last_end : begin;
        out = inserted(text, bare, behind, found.last_end ? found.last_begin : blanks(bare, begin), words, &at->line);
    }
    free(bare);
    return out;
}

/* ---- the file ---- */

/* What is asked about these lines, and the text that the answer makes. -1: *question says why nothing can be asked. */
static int make(const struct session *s, struct declaring *d, char **out)
{
    const char *path = s->subject.scenario.kernel, *name = path_name(path), *why = NULL;
    char *text = NULL, words[CONVENTION_LINE_BYTES];
    struct stat info;
    struct err err;
    size_t used = 0;
    *out = NULL;
    if (!s->subject.has_scenario)
        why = "this is a saved trace";
    else if (s->subject.scenario.patch[0])
        why = "the kernel is patched";
    else if (d->line[0].convention < 0)
        why = "that is the plan's, which the kernel makes itself";
    else if (cache_read_text(path, "the kernel", &text, &err) != 0)
        why = err.message;
    else if (stat(path, &info) == 0 && (!(info.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) || access(path, W_OK) != 0))
        why = "it is read-only";
    for (int i = 0; i < d->n_lines && !why; i++) {
        struct declared_at at;
        char *next = declare_in(text, &d->line[i], &at, &why);
        if (!next && !why)
            why = "out of memory";
        free(text);
        text = next;
        convention_line_words(&d->line[i], words);
        if (next && at.listed)
            setting_words(&d->line[i], words, sizeof words);
        char where[80];
        if (i == 0)
            snprintf(where, sizeof where, "%.60s:%d", name, at.line);
        else
            snprintf(where, sizeof where, "line %d", at.line);
        if (next && used < sizeof d->question)
            used += (size_t)snprintf(d->question + used, sizeof d->question - used,
                                     at.was[0] ? "%s`%s` in the place of %.24s at %s" : "%s`%s`%.24s into %s",
                                     i ? ", " : "insert ", words, at.was, where);
    }
    if (!why) {
        snprintf(d->question + used, used < sizeof d->question ? sizeof d->question - used : 0, "?");
        *out = text;
        return 0;
    }
    char lines[FINDING_LINES_BYTES];
    struct finding f = {.n_lines = d->n_lines};
    memcpy(f.line, d->line, sizeof f.line);
    finding_lines(&f, lines);
    snprintf(d->question, sizeof d->question, "declare it yourself: %s (%.40s%s%.80s)", lines,
             s->subject.has_scenario ? name : "", s->subject.has_scenario ? ": " : "", why);
    free(text);
    return -1;
}

int session_ask_declaration(const struct session *s, const struct finding *f, struct declaring *out)
{
    char *text;
    *out = (struct declaring){.n_lines = f->n_lines};
    memcpy(out->line, f->line, sizeof out->line);
    if (make(s, out, &text) != 0) {
        out->n_lines = 0;
        return -1;
    }
    free(text);
    return 0;
}

/* The file keeps its mode and its owner, and a link to it stays one. */
static int write_text(const char *path, const char *text, struct err *err)
{
    char file[PATH_MAX];
    struct replacement r;
    struct stat info;
    if (!realpath(path, file) || stat(file, &info) != 0)
        return err_errno(err, path, "cannot be written");
    if (replace_open(&r, file, 0600, err) != 0)
        return -1;
    fputs(text, r.file);
    if ((info.st_uid != geteuid() && fchown(fileno(r.file), info.st_uid, info.st_gid) != 0) ||
        fchmod(fileno(r.file), info.st_mode & 07777) != 0) {
        err_errno(err, path, "cannot be written");
        replace_drop(&r);
        return -1;
    }
    return replace_commit(&r, err);
}

void session_declare(struct session *s, const struct declaring *asked)
{
    struct declaring now = *asked;
    struct err err;
    char *text = NULL;
    if (make(s, &now, &text) != 0)
        session_say(s, "%s", now.question);
    else if (strcmp(now.question, asked->question) != 0)
        session_say(s, "nothing is changed: the kernel is another one by now; ask again");
    else if (write_text(s->subject.scenario.kernel, text, &err) != 0)
        session_say(s, "%.120s: %.120s", err.where, err.message);
    else {
        session_say(s, "written to %.200s", path_name(s->subject.scenario.kernel));
        if (!session_watching(s))
            session_ask_rerun(s);
    }
    free(text);
}
