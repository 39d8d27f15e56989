/* Where the parts of a launch with <<<>>> begin and end, in text that has been preprocessed. */
#include "engine/build/launch_text.h"

#include <ctype.h>
#include <string.h>

const char *end_of_quoted(const char *c, const char *end)
{
    char quote = *c;
    for (c++; c < end && *c != quote; c++)
        if (*c == '\\' && c + 1 < end)
            c++;
    return c < end ? c + 1 : end;
}

/* The last character before `at` that is no space and stands on no line marker; NULL: there is none. */
static const char *before(const struct launch_text *r, const char *at)
{
    while (at > r->from) {
        const char *line = --at;
        while (line > r->text && line[-1] != '\n')
            line--;
        if (*line == '#')
            at = line;
        else if (!isspace((unsigned char)*at))
            return at;
    }
    return NULL;
}

/* Of brackets that close at `at`: the one that opens them. Angles are brackets where no round ones are open. */
static const char *opening(const struct launch_text *r, const char *at)
{
    int round = 0, angles = 0;
    for (; at; at = before(r, at)) {
        round += (*at == ')' || *at == ']') - (*at == '(' || *at == '[');
        if (!round)
            angles += (*at == '>') - (*at == '<');
        if (!round && !angles)
            return at;
    }
    return NULL;
}

/* Whether the word that ends at `c` is one behind which a statement or an expression begins. */
static bool is_keyword(const struct launch_text *r, const char *c)
{
    static const char *const keywords[] = {"if", "else", "do", "while", "for", "switch", "return", "case", "constexpr"};
    const char *begin = c;
    while (begin > r->from && is_word(begin[-1]))
        begin--;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i]) == (size_t)(c + 1 - begin) && strncmp(begin, keywords[i], strlen(keywords[i])) == 0)
            return is_word(*c);
    return false;
}

const char *launch_kernel(const struct launch_text *r, const char *at)
{
    const char *begin = NULL, *c = before(r, at);
    while (c) {
        if (*c == '>' || *c == ')' || *c == ']') {
            begin = opening(r, c);
            if (!begin)
                return NULL;
            c = before(r, begin);
            /* (*p) stands for itself; what a call gives, pick(i), begins with its name. */
            if (!c || !(is_word(*c) || *c == ']' || *c == ')' || *c == '>') || (*begin == '(' && is_keyword(r, c)))
                return begin;
            if (*begin == '(' && !is_word(*c) && *c != '>')
                return begin;
            continue;
        }
        if (!is_word(*c))
            return NULL;
        for (begin = c; begin > r->from && is_word(begin[-1]);)
            begin--;
        c = before(r, begin);
        if (!c || c - 1 < r->from)
            return begin;
        const bool scope = *c == ':' && c[-1] == ':';
        if (scope || (*c == '>' && c[-1] == '-'))
            begin = --c;
        else if (*c == '.')
            begin = c;
        else
            return begin;
        c = before(r, begin);
        if (!c || !(is_word(*c) || *c == '>' || (!scope && (*c == ')' || *c == ']'))) || (scope && is_keyword(r, c)))
            return begin; /* ::k */
    }
    return begin;
}

const char *list_ends(const char *c, const char *end)
{
    const size_t n = strlen(end);
    for (int depth = 0; *c && (*c != ';' || depth); c++) {
        if (*c == '"' || (*c == '\'' && !isxdigit((unsigned char)c[-1]))) {
            c = end_of_quoted(c, c + strlen(c)) - 1;
            continue;
        }
        if (depth == 0 && strncmp(c, end, n) == 0)
            return c;
        depth += (*c == '(' || *c == '[' || *c == '{') - (*c == ')' || *c == ']' || *c == '}');
        if (depth < 0)
            return NULL;
    }
    return NULL;
}

void launch_name(const char *from, const char *to, char *name, size_t size)
{
    size_t n = 0;
    for (; from < to && n + 1 < size; from++)
        if (!isspace((unsigned char)*from) && *from != '"' && *from != '\\' && *from != '#')
            name[n++] = *from;
    name[n] = '\0';
}

const char *launch_zero(const char *from, const char *passed)
{
    for (const char *ends; from < passed; from = ends + 1) {
        ends = list_ends(from, ",");
        ends = ends && ends < passed ? ends : passed;
        const char *at = from;
        while (at < ends && isspace((unsigned char)*at))
            at++;
        if (at < ends && *at == '0' && at + 1 + strspn(at + 1, " \t\n") == ends)
            return at;
    }
    return NULL;
}

bool launch_has_braces(const char *from, const char *passed)
{
    for (const char *ends; from < passed; from = ends + 1) {
        ends = list_ends(from, ",");
        ends = ends && ends < passed ? ends : passed;
        if (from[strspn(from, " \t\n")] == '{')
            return true;
    }
    return false;
}
