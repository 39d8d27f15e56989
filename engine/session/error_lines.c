#include "engine/session/error_lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "FILE:12" or "FILE:12:5" at the beginning of a text, as far as `length` goes: the length of that, and what it says.
   0: there is none. */
static size_t read_place(const char *text, size_t length, char file[256], int *line)
{
    for (size_t i = 1; i + 1 < length; i++) {
        if (text[i] == ' ' || text[i] == '\'')
            return 0; /* words, no path */
        if (text[i] != ':' || !isdigit((unsigned char)text[i + 1]))
            continue;
        char *end;
        const long number = strtol(text + i + 1, &end, 10);
        if (i >= 256 || number <= 0 || number > 100000000)
            return 0;
        snprintf(file, 256, "%.*s", (int)i, text);
        *line = (int)number;
        if (end + 1 < text + length && *end == ':' && isdigit((unsigned char)end[1]))
            strtol(end + 1, &end, 10);
        return (size_t)(end - text);
    }
    return 0;
}

static bool has_word(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word)) != NULL;
}

/* What a message that begins with a place calls itself. */
static enum error_line_kind kind_of(const char *text, size_t length)
{
    if (has_word(text, length, " error:") || has_word(text, length, " error "))
        return ERROR_LINE_ERROR;
    if (has_word(text, length, " warning:") || has_word(text, length, " warning "))
        return ERROR_LINE_WARNING;
    return has_word(text, length, " note:") ? ERROR_LINE_NOTE : ERROR_LINE_OTHER;
}

/* "In file included from ...", "k.cu: In function 'f':", "k.cu:12:3:   required from here": it belongs to the message
   that follows. */
static bool introduces(const struct error_line *l)
{
    return l->length > 0 && (l->text[l->length - 1] == ':' || l->text[l->length - 1] == ',' ||
                             has_word(l->text, l->length, " required from "));
}

static int split(const struct err *err, struct error_line out[ERROR_LINES_MAX])
{
    int n = 0;
    for (const char *text = err->message; *text && n < ERROR_LINES_MAX; text += *text == '\n') {
        struct error_line *l = &out[n++];
        *l = (struct error_line){.text = text, .length = strcspn(text, "\n")};
        const size_t place = read_place(text, l->length, l->file, &l->line);
        l->kind = place ? kind_of(text + place, l->length - place) : ERROR_LINE_OTHER;
        text += l->length;
    }
    return n;
}

/* Lines from i on that belong to one message: what introduces it, itself, and what follows up to the next one. */
static int message_length(const struct error_line *lines, int n, int i)
{
    int end = i;
    while (end < n && lines[end].kind == ERROR_LINE_OTHER && introduces(&lines[end]))
        end++;
    if (end < n)
        end++;
    while (end < n &&
           (lines[end].kind == ERROR_LINE_NOTE || (lines[end].kind == ERROR_LINE_OTHER && !introduces(&lines[end]))))
        end++;
    return end - i;
}

/* Every line of a message without a place of its own is about the message's. */
static void give_place(struct error_line *lines, int n)
{
    const struct error_line *head = NULL;
    for (int i = 0; i < n && !head; i++)
        if (lines[i].line > 0 && lines[i].kind != ERROR_LINE_OTHER)
            head = &lines[i];
    for (int i = 0; i < n && head; i++)
        if (lines[i].kind == ERROR_LINE_OTHER && &lines[i] != head) {
            lines[i].line = head->line;
            memcpy(lines[i].file, head->file, sizeof lines[i].file);
        }
}

int error_lines(const struct err *err, struct error_line out[ERROR_LINES_MAX])
{
    int n = split(err, out), sorted = 0;
    struct error_line where = {0};
    const size_t place = read_place(err->where, strlen(err->where), where.file, &where.line);
    /* The first line lost its place to err->where, unless it begins with another one. */
    if (n > 0 && place && out[0].line == 0 && !(introduces(&out[0]) && n > 1)) {
        out[0].kind = ERROR_LINE_ERROR;
        out[0].line = where.line;
        memcpy(out[0].file, where.file, sizeof out[0].file);
    }
    struct error_line *all = malloc(sizeof *all * ERROR_LINES_MAX);
    if (!all)
        return -1;
    memcpy(all, out, sizeof *all * (size_t)n);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0, length; i < n; i += length) {
            int error = 0;
            length = message_length(all, n, i);
            for (int k = i; k < i + length; k++)
                error |= all[k].kind == ERROR_LINE_ERROR;
            if (error != (pass == 0))
                continue;
            give_place(all + i, length);
            memcpy(out + sorted, all + i, sizeof *all * (size_t)length);
            sorted += length;
        }
    free(all);
    /* What belongs to no message is about the error as a whole. */
    for (int i = 0; i < n; i++)
        if (out[i].line == 0 && place) {
            out[i].line = where.line;
            memcpy(out[i].file, where.file, sizeof out[i].file);
        }
    return n;
}
