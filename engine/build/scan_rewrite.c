/* C++ in place of what CUDA has and g++ has not: inline PTX, launches, where an alignas stands, clusters' sizes. */
#include "engine/build/ptx.h"
#include "engine/build/scan_reader.h"
#include <stdlib.h>
#include <string.h>

/* The first asm, __asm__ or __asm of the line; NULL: it has none. */
static const char *find_asm(const char *line)
{
    static const char *const keywords[] = {"asm", "__asm__", "__asm"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const char *at = scan_find_word(line, keywords[i], strlen(keywords[i]), 0);
        if (at && (!first || at < first))
            first = at;
    }
    return first;
}

/* Where a statement of several lines becomes one, what follows keeps its line. */
static int rewrite_asm(struct reader *r, const char *keyword, const char **rest, struct err *err)
{
    struct ptx_translation ptx = {.line = r->line};
    if (ptx_translate(keyword, &ptx)) {
        if (!ptx.refused[0])
            return err_no_memory(err, r->file, "inline PTX");
        r->line = ptx.refused_line;
        char refusal[sizeof ptx.refused + 64];
        snprintf(refusal, sizeof refusal, "%s: %s", ptx.refused,
                 ptx.unknown ? "not known to the CPU executor (GPU only, or misspelt)" : "GPU only");
        return scan_refuse(r, refusal, err);
    }
    const int failed = scan_replace(r, keyword, ptx.code, ptx.end, err);
    free(ptx.code);
    if (failed)
        return -1;
    if (ptx.line != r->line)
        fprintf(r->rewritten, "\n# %d %s\n", ptx.line, r->marker);
    r->line = ptx.line;
    *rest = ptx.end;
    return 0;
}

/* The last character before `at` that is no space and stands on no line marker; NULL: there is none behind what was
   copied. */
static const char *before(const struct reader *r, const char *at)
{
    while (at > r->copied) {
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
static const char *opening(const struct reader *r, const char *at)
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
static bool is_keyword(const struct reader *r, const char *c)
{
    static const char *const keywords[] = {"if", "else", "do", "while", "for", "switch", "return", "case", "constexpr"};
    const char *begin = c;
    while (begin > r->copied && is_word(begin[-1]))
        begin--;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i]) == (size_t)(c + 1 - begin) && strncmp(begin, keywords[i], strlen(keywords[i])) == 0)
            return is_word(*c);
    return false;
}

/* Where the name of the kernel begins that <<< stands behind: a::b<c, (d > e)>, a variable, (*p), table[i]. */
static const char *kernel_begins(const struct reader *r, const char *at)
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
        for (begin = c; begin > r->copied && is_word(begin[-1]);)
            begin--;
        c = before(r, begin);
        if (!c || c - 1 < r->copied)
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

/* What ends the list that begins at `c`, where no bracket is open; NULL: it is not in this statement. */
static const char *list_ends(const char *c, const char *end)
{
    const size_t n = strlen(end);
    for (int depth = 0; *c && (*c != ';' || depth); c++) {
        if (*c == '"' || (*c == '\'' && !isxdigit((unsigned char)c[-1]))) {
            c = scan_end_of_quoted(c, c + strlen(c)) - 1;
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

/* A kernel's name as it is spelled, for messages: without spaces, quotes and lines. */
static void write_name(const char *from, const char *to, char *name, size_t size)
{
    size_t n = 0;
    for (; from < to && n + 1 < size; from++)
        if (!isspace((unsigned char)*from) && *from != '"' && *from != '\\' && *from != '#')
            name[n++] = *from;
    name[n] = '\0';
}

/* From `from` on, the next argument of a launch that is 0 and nothing else; NULL: none. */
static const char *zero_argument(const char *from, const char *passed)
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

static bool has_braces(const char *from, const char *passed)
{
    for (const char *ends; from < passed; from = ends + 1) {
        ends = list_ends(from, ",");
        ends = ends && ends < passed ? ends : passed;
        if (from[strspn(from, " \t\n")] == '{')
            return true;
    }
    return false;
}

/* k<T><<<g, b>>>(a) becomes simt::raw_launch("k<T>", [&](auto &&...v) { k<T>(v...); }).at(g, b)(a): whatever C++ does
   at a call, overloads, deduced template arguments, defaults, it does in there. With an argument that is 0, a number or
   a null pointer, the launch asks which of them can be called, so the call is the lambda's type too. `at`: of the <<<.
 */
static int rewrite_launch(struct reader *r, const char *at, const char **rest, struct err *err)
{
    char name[128], *text = NULL;
    const char *begin = kernel_begins(r, at), *ends = list_ends(at + 3, ">>>");
    const char *open = ends ? strchr(ends, '(') : NULL, *passed = open ? list_ends(open + 1, ")") : NULL;
    if (!begin || !passed)
        return scan_refuse(r, "a <<<...>>> launch: what it launches is not a name, or it has no end", err);
    if (has_braces(open + 1, passed))
        return scan_refuse(r, "an argument of a <<<...>>> launch is a list in braces: name its type, T{...}", err);
    write_name(begin, at, name, sizeof name);
    const char *zero = zero_argument(open + 1, passed);
    static const char forwarded[] = "(static_cast<decltype(simt_args)>(simt_args)...)";
    const int length = (int)(at - begin);
    const int n = zero ? asprintf(&text,
                                  "::simt::raw_launch(\"%s\", [&](auto &&...simt_args) -> decltype(void(%.*s%s)) { "
                                  "%.*s%s; }).at(",
                                  name, length, begin, forwarded, length, begin, forwarded)
                       : asprintf(&text, "::simt::raw_launch(\"%s\", [&](auto &&...simt_args) { %.*s%s; }).at(", name,
                                  length, begin, forwarded);
    if (n < 0)
        return err_errno(err, r->file, "a launch");
    const int failed = scan_replace(r, begin, text, at + 3, err);
    free(text);
    r->closes = ends;
    r->passed = passed;
    r->zero = zero;
    *rest = at + 3;
    return failed;
}

/* `alignas(x)` behind the storage class that __shared__ stands for: CUDA's is an attribute, behind which C++ takes it.
 *end: behind it, in the same line. NULL: the line has none. */
static const char *find_alignas(const char *line, const char **end)
{
    static const char storage[] = "thread_local", word[] = "alignas";
    for (const char *at = line; (at = scan_find_word(at, storage, sizeof storage - 1, 0)); at++) {
        const char *c = at + sizeof storage - 1;
        while (isspace((unsigned char)*c))
            c++;
        const char *open = strncmp(c, word, sizeof word - 1) == 0 ? scan_skip(c + sizeof word - 1, "(") : NULL;
        int depth = 1;
        for (const char *in = open; in && *in; in++) {
            depth += (*in == '(') - (*in == ')');
            if (!depth) {
                *end = in + 1;
                return c;
            }
        }
    }
    return NULL;
}

/* A GNU attribute may stand anywhere among the specifiers. The operand is a number or a type. */
static int rewrite_alignas(struct reader *r, const char *at, const char *end, struct err *err)
{
    const char *operand = (const char *)memchr(at, '(', (size_t)(end - at)) + 1;
    char *text = NULL;
    if (asprintf(&text, "__attribute__((aligned(::simt::alignment<%.*s>())))", (int)(end - 1 - operand), operand) < 0)
        return err_errno(err, r->file, "an alignas");
    const int failed = scan_replace(r, at, text, end, err);
    free(text);
    return failed;
}

/* __cluster_dims__(a, b, c) goes; the kernel's body begins by telling them, since a template's are known in there. */
static int rewrite_cluster(struct reader *r, const char *at, const char **rest, struct err *err)
{
    const char *open = strchr(at, '('), *ends = open ? list_ends(open + 1, ")") : NULL;
    if (!ends)
        return scan_refuse(r, "__cluster_dims__ without its sizes", err);
    write_name(open + 1, ends, r->dims, sizeof r->dims);
    r->body = list_ends(ends + 1, "{");
    *rest = ends + 1;
    return scan_replace(r, at, "", *rest, err);
}

static int rewrite_body(struct reader *r, const char *at, const char **rest, struct err *err)
{
    char text[sizeof r->dims + 40];
    snprintf(text, sizeof text, "{ ::simt::cluster_dims(%s); ", r->dims);
    r->body = NULL;
    *rest = at + 1;
    return scan_replace(r, at, text, *rest, err);
}

/* In the middle of a line, where a macro has put it, nvcc's compiler alone takes it. */
static const char unroll[] = "#pragma unroll";

enum rewrite scan_first_rewrite(const struct reader *r, const char *line, const char **at, const char **aligned_end)
{
    const char *bare_end = NULL;
    const char *const stop = line + strlen(r->bare),
                      *null = line < r->passed ? scan_find_word(r->bare, "__null", 6, 0) : NULL;
    const char *const found[] = {
        [REWRITE_ASM] = find_asm(r->bare),
        [REWRITE_ALIGNAS] = find_alignas(r->bare, &bare_end),
        [REWRITE_LAUNCH] = strstr(r->bare, "<<<"),
        [REWRITE_LAUNCH_END] = r->closes >= line && r->closes < stop ? r->bare + (r->closes - line) : NULL,
        [REWRITE_NULL] = null && line + (null - r->bare) < r->passed ? null : NULL,
        [REWRITE_CLUSTER] = scan_find_word(r->bare, "__cluster_dims__", sizeof "__cluster_dims__" - 1, 0),
        [REWRITE_BODY] = r->body >= line && r->body < stop ? r->bare + (r->body - line) : NULL,
        [REWRITE_ZERO] = r->zero >= line && r->zero < stop ? r->bare + (r->zero - line) : NULL,
        [REWRITE_PRAGMA] = strstr(r->bare, unroll),
    };
    enum rewrite first = REWRITE_NOTHING;
    for (enum rewrite i = REWRITE_ASM; i <= REWRITE_PRAGMA; i++)
        if (found[i] && (first == REWRITE_NOTHING || found[i] < found[first]))
            first = i;
    if (first != REWRITE_NOTHING)
        *at = line + (found[first] - r->bare);
    if (bare_end)
        *aligned_end = line + (bare_end - r->bare);
    return first;
}

int scan_rewrite(struct reader *r, enum rewrite what, const char *at, const char *aligned_end, const char **rest,
                 struct err *err)
{
    if (what != REWRITE_NOTHING)
        r->raw_end[0] = '\0';
    switch (what) {
    case REWRITE_NOTHING:
        break;
    case REWRITE_ASM:
        return rewrite_asm(r, at, rest, err);
    case REWRITE_ALIGNAS:
        *rest = aligned_end;
        return rewrite_alignas(r, at, *rest, err);
    case REWRITE_LAUNCH:
        return rewrite_launch(r, at, rest, err);
    case REWRITE_LAUNCH_END:
        *rest = at + 3;
        return scan_replace(r, at, ")", *rest, err);
    case REWRITE_NULL: /* NULL of g++ is an integer wherever it is not seen to become a pointer */
        *rest = at + strlen("__null");
        return scan_replace(r, at, "nullptr", *rest, err);
    case REWRITE_CLUSTER:
        return rewrite_cluster(r, at, rest, err);
    case REWRITE_BODY:
        return rewrite_body(r, at, rest, err);
    case REWRITE_ZERO:
        *rest = at + 1;
        r->zero = zero_argument(at + 1 + strspn(at + 1, " \t\n,"), r->passed);
        return scan_replace(r, at, "::simt::zero()", *rest, err);
    case REWRITE_PRAGMA:
        *rest = at + strlen(unroll);
        *rest += strspn(*rest, " 0123456789");
        return scan_replace(r, at, "", *rest, err);
    }
    return 0;
}
