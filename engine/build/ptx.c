#include "engine/build/ptx_parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RAW_DELIMITER_MAX 16 /* C++17, [lex.string] */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* One character on; a line marker, # 12 "file", is no character. */
static void advance(struct ptx_statement *s)
{
    if (*s->at++ != '\n')
        return;
    s->line++;
    while (s->at[0] == '#' && s->at[1] == ' ' && isdigit((unsigned char)s->at[2])) {
        s->line = (int)strtol(s->at + 2, NULL, 10);
        s->at += strcspn(s->at, "\n");
        if (*s->at)
            s->at++;
    }
}

static void skip_space(struct ptx_statement *s)
{
    while (isspace((unsigned char)*s->at))
        advance(s);
}

static int take(struct ptx_statement *s, char c)
{
    skip_space(s);
    if (*s->at != c)
        return 0;
    advance(s);
    return 1;
}

static bool take_word(struct ptx_statement *s, const char *word)
{
    const size_t n = strlen(word);
    skip_space(s);
    if (strncmp(s->at, word, n) != 0 || is_word(s->at[n]))
        return false;
    s->at += n;
    return true;
}

static int put(struct ptx_statement *s, char c)
{
    if (s->n_text + 1 >= s->capacity) {
        const size_t capacity = 2 * s->capacity + 256;
        char *text = realloc(s->text, capacity);
        if (text)
            s->text = text;
        int *lines = realloc(s->text_lines, capacity * sizeof *lines);
        if (lines)
            s->text_lines = lines;
        if (!text || !lines)
            return -1;
        s->capacity = capacity;
    }
    s->text_lines[s->n_text] = s->line;
    s->text[s->n_text++] = c;
    s->text[s->n_text] = '\0';
    return 0;
}

/* At the R of R"delimiter(...)delimiter". */
static int take_raw(struct ptx_statement *s)
{
    char end[RAW_DELIMITER_MAX + 3];
    const size_t n = strcspn(s->at + 2, "(");
    if (n > RAW_DELIMITER_MAX || !s->at[2 + n])
        return ptx_refuse(s, s->line, "inline PTX in a raw string without an end");
    const int n_end = snprintf(end, sizeof end, ")%.*s\"", (int)n, s->at + 2);
    s->at += n + 3;
    while (*s->at && strncmp(s->at, end, (size_t)n_end) != 0) {
        if (put(s, *s->at))
            return -1;
        s->line += *s->at++ == '\n'; /* no line markers in here */
    }
    if (!*s->at)
        return ptx_refuse(s, s->line, "inline PTX in a raw string without an end");
    s->at += n_end;
    return 0;
}

static int take_quoted(struct ptx_statement *s)
{
    for (s->at++; *s->at && *s->at != '"'; s->at++) {
        char c = *s->at;
        if (c == '\\' && s->at[1]) {
            c = *++s->at;
            if (c == 'n' || c == 'r' || c == 't')
                c = c == 'n' ? '\n' : ' ';
        }
        if (put(s, c))
            return -1;
    }
    if (!*s->at)
        return ptx_refuse(s, s->line, "inline PTX in a string without an end");
    s->at++;
    return 0;
}

/* The strings that the template is made of. */
static int take_template(struct ptx_statement *s)
{
    if (put(s, ' '))
        return -1;
    for (;;) {
        skip_space(s);
        if (s->at[0] == 'R' && s->at[1] == '"') {
            if (take_raw(s))
                return -1;
        } else if (*s->at == '"') {
            if (take_quoted(s))
                return -1;
        } else {
            return 0;
        }
    }
}

/* Behind (: the characters up to its ). */
static int take_expression(struct ptx_statement *s, struct ptx_operand *operand)
{
    int depth = 1;
    operand->expression = s->at;
    while (*s->at) {
        const char c = *s->at;
        if (c == '"' || c == '\'') {
            const bool digits = c == '\'' && isxdigit((unsigned char)s->at[-1]); /* 1'000 */
            if (!digits)
                for (s->at++; *s->at && *s->at != c && *s->at != '\n'; s->at++)
                    s->at += *s->at == '\\' && s->at[1];
            if (!*s->at)
                break;
        }
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (depth == 0) {
            operand->n_expression = (size_t)(s->at - operand->expression);
            s->at++;
            return 0;
        }
        advance(s);
    }
    return ptx_refuse(s, s->line, "inline PTX with an operand without an end");
}

/* [name] "constraint" (expression), ... up to the next colon or the end. */
static int take_operands(struct ptx_statement *s, int written)
{
    skip_space(s);
    while (*s->at == '"' || *s->at == '[') {
        if (s->n_operands == PTX_OPERANDS_MAX)
            return ptx_refuse(s, s->line, "inline PTX with more than %d operands", PTX_OPERANDS_MAX);
        struct ptx_operand *operand = &s->operand[s->n_operands++];
        *operand = (struct ptx_operand){.written = written};
        if (take(s, '[')) {
            skip_space(s);
            for (operand->name = s->at; is_word(*s->at); s->at++)
                operand->n_name++;
            if (!take(s, ']'))
                return ptx_refuse(s, s->line, "inline PTX with an operand name without an end");
            skip_space(s);
        }
        const size_t n = *s->at == '"' ? strcspn(s->at + 1, "\"\n") : 0;
        const char *constraint = s->at + 1;
        const size_t n_letter = n > 0 ? n - strspn(constraint, "=+&") : 0;
        if (n_letter != 1 || constraint[n] != '"' || (n > 1) != written ||
            !strchr(written ? "hrlfd" : "hrlfdn", constraint[n - 1]))
            return ptx_refuse(s, s->line, "inline PTX with the constraint \"%.*s\"", n < 20 ? (int)n : 20, constraint);
        s->at += n + 2;
        if (!take(s, '('))
            return ptx_refuse(s, s->line, "inline PTX with a constraint without an operand");
        if (take_expression(s, operand))
            return -1;
        if (!take(s, ','))
            break;
        skip_space(s);
    }
    return 0;
}

/* Clobbers say nothing here. */
static int take_rest(struct ptx_statement *s)
{
    for (skip_space(s); *s->at == '"' || *s->at == ',' || *s->at == ':'; skip_space(s)) {
        if (*s->at == '"') {
            s->at += 1 + strcspn(s->at + 1, "\"\n");
            if (*s->at != '"')
                break;
        }
        advance(s);
    }
    return take(s, ')') ? 0 : ptx_refuse(s, s->line, "inline PTX that does not end as asm statements do");
}

/* The operands become references and copies under names of our own. */
static void write_operands(struct ptx_statement *s)
{
    for (int i = 0; i < s->n_operands; i++) {
        const struct ptx_operand *operand = &s->operand[i];
        fprintf(s->code, "[[maybe_unused]] %s simt_op%d = (", operand->written ? "auto &&" : "const auto", i);
        const char *stop = operand->expression + operand->n_expression;
        for (const char *c = operand->expression; c < stop; c++) {
            fputc(*c == '\n' ? ' ' : *c, s->code);
            while (*c == '\n' && c + 1 < stop && c[1] == '#')
                c += 1 + strcspn(c + 1, "\n");
        }
        fputs("); ", s->code);
    }
}

static int translate(struct ptx_statement *s)
{
    while (is_word(*s->at))
        s->at++;
    while (take_word(s, "volatile") || take_word(s, "__volatile__") || take_word(s, "inline"))
        ;
    if (!take(s, '('))
        return ptx_refuse(s, s->line, "inline PTX that is not a plain asm statement");
    if (take_template(s))
        return -1;
    for (int section = 0; section < 2 && take(s, ':'); section++)
        if (take_operands(s, section == 0))
            return -1;
    if (take_rest(s))
        return -1;
    fputs("do { ", s->code);
    ptx_write_labels(s);
    write_operands(s);
    if (ptx_write_instructions(s))
        return -1;
    fputs("} while (0)", s->code);
    return 0;
}

/* Behind the parenthesis that closes the statement; -1: it has none. */
static int skip_statement(struct ptx_statement *s)
{
    int depth = 0;
    while (*s->at && *s->at != '(')
        advance(s);
    if (!*s->at)
        return -1;
    do {
        if (*s->at == 'R' && s->at[1] == '"') {
            if (take_raw(s))
                return -1;
            continue;
        }
        if (*s->at == '"') {
            if (take_quoted(s))
                return -1;
            continue;
        }
        depth += (*s->at == '(') - (*s->at == ')');
        if (*s->at)
            advance(s);
    } while (*s->at && depth);
    return depth ? -1 : 0;
}

/* What the executor does not know ends a run that comes to it. Headers are full of what a kernel never calls. */
static int write_trap(struct ptx_statement *s)
{
    const struct ptx_translation *out = s->out;
    if (skip_statement(s))
        return -1;
    fputs("simt_ptx::refused(\"", s->code);
    for (const char *c = out->refused; *c; c++)
        fputs(*c == '"' || *c == '\\' ? "'" : (char[]){*c, '\0'}, s->code);
    fprintf(s->code, ": %s\", %d)", out->unknown ? "not known to the CPU executor (GPU only, or misspelt)" : "GPU only",
            out->refused_line);
    return 0;
}

/* -1: refused, or without memory. */
static int attempt(const char *text, int line, int write(struct ptx_statement *), struct ptx_translation *out)
{
    size_t n_code = 0;
    struct ptx_statement s = {.at = text, .line = line, .out = out};
    out->code = NULL;
    s.code = open_memstream(&out->code, &n_code);
    if (!s.code)
        return -1;
    int failed = write(&s);
    failed |= ferror(s.code) != 0;
    failed |= fclose(s.code) != 0 || !out->code; /* closing allocates, and says nothing where it could not */
    free(s.text);
    free(s.text_lines);
    out->end = s.at;
    out->line = s.line;
    if (failed) {
        free(out->code);
        out->code = NULL;
        return -1;
    }
    return 0;
}

int ptx_translate(const char *text, struct ptx_translation *out)
{
    const int line = out->line;
    out->refused[0] = '\0';
    out->unknown = 0;
    if (attempt(text, line, translate, out) == 0)
        return 0;
    return out->refused[0] ? attempt(text, line, write_trap, out) : -1;
}
