#include "engine/build/scan.h"

#include "engine/build/launch_text.h"
#include "engine/build/ptx.h"
#include "engine/trace/own_values.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
    const char *text, *refusal;
};
static const struct pattern patterns[] = {
#define GPU_ONLY(text, what, why) {text, what ": GPU only: " why},
#include "engine/build/gpu_only.def"
#undef GPU_ONLY
};
#define N_PATTERNS (sizeof patterns / sizeof *patterns)

#define INCLUDES_MAX 16
#define RAW_DELIMITER_MAX 16 /* C++17, [lex.string] */

/* Where a file is included. */
struct include {
    char file[256];
    int line;
};

struct reader {
    struct scan *scan;                    /* borrowed */
    struct include include[INCLUDES_MAX]; /* of the current file, the outermost first; deeper ones are only counted */
    int n_includes;
    int include_line; /* of the last #include in the current file; 0: none has been seen */
    char file[256];   /* as the user names it */
    int line;
    int of_user;      /* the current line stands in a file of the user's */
    char raw_end[20]; /* inside a raw string that ends with this: )delimiter" ; "" outside */
    char *bare;       /* owned: the current line, strings and characters blanked */
    size_t capacity;
    char marker[2048];  /* the current file as its line marker has it, in quotes */
    const char *text;   /* all of it */
    const char *closes; /* the >>> of the launch that was begun last; NULL: none is open */
    const char *passed; /* where the arguments of that launch end */
    const char *body;   /* the { of the kernel whose __cluster_dims__ was read last; NULL: it is behind, or none */
    char dims[128];     /* their arguments */
    const char *zero;   /* the next of them that is 0 and nothing else; NULL: none */
    FILE *rewritten;    /* NULL: nothing to rewrite so far */
    const char *copied; /* what stands before this is in `rewritten` */
};

const char *scan_gpu_only_header(const char *name)
{
    for (size_t i = 0; i < N_PATTERNS; i++) {
        const char *pattern = patterns[i].text;
        if (pattern[0] != '<' || !isalpha((unsigned char)pattern[1]))
            continue;
        size_t n = strcspn(pattern + 1, ">*");
        if (strncmp(name, pattern + 1, n) == 0 && (pattern[n + 1] == '*' || name[n] == '\0'))
            return patterns[i].refusal;
    }
    return NULL;
}

/* # 12 "file" 1 3 */
static void read_marker(struct reader *r, const char *text, const char *end)
{
    char marker[2048], *rest, name[1024];
    size_t n = 0;
    snprintf(marker, sizeof marker, "%.*s", (int)(end - text), text);
    long line = strtol(marker, &rest, 10);
    const char *c = strchr(rest, '"');
    if (!c)
        return;
    for (c++; *c && *c != '"'; c++) {
        if (*c == '\\' && (c[1] == '\\' || c[1] == '"'))
            c++;
        if (n + 1 < sizeof name)
            name[n++] = *c;
    }
    name[n] = '\0';
    int system = 0, enters = 0, returns = 0;
    for (; *c; c++) {
        system |= *c == '3';
        enters |= *c == '1';
        returns |= *c == '2';
    }
    if (enters) {
        struct include *from = &r->include[r->n_includes];
        if (r->n_includes < INCLUDES_MAX) {
            snprintf(from->file, sizeof from->file, "%s", r->file);
            from->line = r->include_line ? r->include_line : r->line;
        }
        r->n_includes++;
    }
    if (returns && r->n_includes)
        r->n_includes--;
    r->include_line = 0;
    r->line = (int)line;
    const char *name_begin = strchr(rest, '"'), *name_end = strrchr(rest, '"');
    snprintf(r->marker, sizeof r->marker, "%.*s", (int)(name_end - name_begin + 1), name_begin);
    r->of_user = !system && name[0] != '<';
    for (const char *const *own = r->scan->own_folders; *own; own++)
        if (strncmp(name, *own, strlen(*own)) == 0)
            r->of_user = 0;
    const char *shown = strcmp(name, r->scan->compiled_path) == 0 ? r->scan->user_path : name;
    snprintf(r->file, sizeof r->file, "%.255s", shown);
}

/* At the quote of R"delimiter( : notes how the string ends. */
static void begin_raw(struct reader *r, const char *quote, const char *end)
{
    size_t n = 0;
    while (quote + 1 + n < end && quote[1 + n] != '(' && n < RAW_DELIMITER_MAX)
        n++;
    snprintf(r->raw_end, sizeof r->raw_end, ")%.*s\"", (int)n, quote + 1);
}

/* Copies [c, end) into r->bare, each character at its place, with strings and character constants blanked. */
static void strip(struct reader *r, const char *c, const char *end)
{
    const char *line = c;
    char *bare = r->bare;
    memset(bare, ' ', (size_t)(end - line));
    bare[end - line] = '\0';
    while (c < end) {
        const char before = c > line ? bare[c - line - 1] : ' ';
        if (r->raw_end[0]) {
            size_t n_end = strlen(r->raw_end);
            if ((size_t)(end - c) >= n_end && memcmp(c, r->raw_end, n_end) == 0) {
                r->raw_end[0] = '\0';
                c += n_end;
            } else {
                c++;
            }
        } else if (*c == '"' && before == 'R') {
            begin_raw(r, c, end);
            c++;
        } else if (*c == '"' || (*c == '\'' && !isxdigit((unsigned char)before))) {
            /* behind a digit, ' separates digits */
            c = end_of_quoted(c, end);
        } else {
            bare[c - line] = *c;
            c++;
        }
    }
}

/* Where the identifier stands in the line, whole, or its beginning where `open`; NULL: nowhere. */
static const char *find_word(const char *line, const char *word, size_t n, int open)
{
    for (const char *at = line; (at = strstr(at, word)); at++)
        if ((at == line || !is_word(at[-1])) && (open || !is_word(at[n])))
            return at;
    return NULL;
}

static bool matches(const char *line, const char *pattern)
{
    size_t n = strlen(pattern);
    if (!is_word(pattern[0]))
        return strstr(line, pattern) != NULL;
    if (pattern[n - 1] != '*')
        return find_word(line, pattern, n, 0) != NULL;
    char begin[64];
    snprintf(begin, sizeof begin, "%.*s", (int)(n - 1), pattern);
    return find_word(line, begin, n - 1, 1) != NULL;
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

static int refuse(const struct reader *r, const char *refusal, struct err *err)
{
    char where[300], includes[1024];
    snprintf(where, sizeof where, "%s:%d", r->file, r->line);
    write_includes(r, includes, sizeof includes);
    return err_set(err, ERR_GPU_ONLY, where, "%s%s", refusal, includes);
}

static int check_include(const struct reader *r, const char *text, const char *end, struct err *err)
{
    char name[256];
    while (text < end && *text != '<' && *text != '"')
        text++;
    size_t n = 0;
    for (text++; text < end && *text != '>' && *text != '"' && n + 1 < sizeof name; text++)
        name[n++] = *text;
    name[n] = '\0';
    const char *refusal = scan_gpu_only_header(name);
    return refusal ? refuse(r, refusal, err) : 0;
}

static int check_code(const struct reader *r, struct err *err)
{
    for (size_t i = 0; i < N_PATTERNS; i++) {
        const char *text = patterns[i].text;
        int header = text[0] == '<' && isalpha((unsigned char)text[1]);
        if (!header && matches(r->bare, text))
            return refuse(r, patterns[i].refusal, err);
    }
    return 0;
}

static int add_site(struct reader *r, enum asc_channel channel, int line, struct err *err)
{
    struct scan *scan = r->scan;
    for (size_t i = 0; i < scan->n_sites; i++) {
        const struct trace_site *site = &scan->sites[i];
        if (site->channel == channel && site->line == line && strcmp(site->file, r->file) == 0)
            return 0;
    }
    struct trace_site *sites = realloc(scan->sites, (scan->n_sites + 1) * sizeof *sites);
    if (!sites)
        return err_no_memory(err, r->file, "the list of probes");
    scan->sites = sites;
    sites[scan->n_sites] = (struct trace_site){.channel = channel, .line = line};
    snprintf(sites[scan->n_sites].file, sizeof sites[0].file, "%s", r->file);
    scan->n_sites++;
    return 0;
}

static const char *skip(const char *c, const char *token)
{
    while (isspace((unsigned char)*c))
        c++;
    size_t n = strlen(token);
    return strncmp(c, token, n) == 0 ? c + n : NULL;
}

/* asc_values_are("<text>"), as ASC_VALUES expands to: `line` still has its strings. */
static int find_values(struct reader *r, const char *line, const char *end, struct err *err)
{
    static const char token[] = "asc_values_are";
    char text[1024], where[512];
    const char *bare = strstr(r->bare, token), *at = bare ? line + (bare - r->bare) : NULL;
    const char *c = at ? skip(at + strlen(token), "(") : NULL, *quote = c ? skip(c, "\"") : NULL;
    const char *stop = quote ? memchr(quote, '"', (size_t)(end - quote)) : NULL;
    if (!stop)
        return 0;
    snprintf(where, sizeof where, "%s:%ld", r->file, (long)r->line);
    if ((size_t)(stop - quote) >= sizeof text)
        return err_set(err, ERR_INPUT, where, "ASC_VALUES is longer than %zu characters", sizeof text - 1);
    snprintf(text, sizeof text, "%.*s", (int)(stop - quote), quote);
    return own_values_parse(text, where, r->scan->values, err);
}

static int channel_of(const struct scan *scan, const char *name)
{
    for (int i = 0; i < ASC_OWN_CHANNELS && scan->values[i].name[0]; i++)
        if (strcmp(scan->values[i].name, name) == 0)
            return ASC_CHANNELS + i;
    return channel_from_name(name);
}

/* asc_site(::asc_named::asc_<name>, <line>), as every probe expands to. */
static int find_sites(struct reader *r, struct err *err)
{
    for (const char *at = r->bare; (at = strstr(at, "asc_site")); at++) {
        char name[32];
        size_t n = 0;
        const char *c = skip(at + strlen("asc_site"), "(");
        if (!c || !(c = skip(c, "::asc_named::asc_")))
            continue;
        while (is_word(c[n]) && n + 1 < sizeof name) {
            name[n] = c[n];
            n++;
        }
        name[n] = '\0';
        int channel = channel_of(r->scan, name);
        if (channel < 0 || !(c = skip(c + n, ",")))
            continue;
        long line = strtol(c, NULL, 10);
        if (line > 0 && line < 1 << 30 && add_site(r, (enum asc_channel)channel, (int)line, err))
            return -1;
    }
    return 0;
}

/* The first asm, __asm__ or __asm of the line; NULL: it has none. */
static const char *find_asm(const char *line)
{
    static const char *const keywords[] = {"asm", "__asm__", "__asm"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const char *at = find_word(line, keywords[i], strlen(keywords[i]), 0);
        if (at && (!first || at < first))
            first = at;
    }
    return first;
}

/* [at, end) becomes `text`. */
static int replace(struct reader *r, const char *at, const char *text, const char *end, struct err *err)
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
        return refuse(r, refusal, err);
    }
    const int failed = replace(r, keyword, ptx.code, ptx.end, err);
    free(ptx.code);
    if (failed)
        return -1;
    if (ptx.line != r->line)
        fprintf(r->rewritten, "\n# %d %s\n", ptx.line, r->marker);
    r->line = ptx.line;
    *rest = ptx.end;
    return 0;
}

/* k<T><<<g, b>>>(a) becomes simt::raw_launch("k<T>", [&](auto &&...v) { k<T>(v...); }).at(g, b)(a): whatever C++ does
   at a call, overloads, deduced template arguments, defaults, it does in there. With an argument that is 0, a number or
   a null pointer, the launch asks which of them can be called, so the call is the lambda's type too. `at`: of the <<<.
 */
static int rewrite_launch(struct reader *r, const char *at, const char **rest, struct err *err)
{
    char name[128], *text = NULL;
    const char *begin = launch_kernel(&(struct launch_text){r->text, r->copied}, at), *ends = list_ends(at + 3, ">>>");
    const char *open = ends ? strchr(ends, '(') : NULL, *passed = open ? list_ends(open + 1, ")") : NULL;
    if (!begin || !passed)
        return refuse(r, "a <<<...>>> launch: what it launches is not a name, or it has no end", err);
    if (launch_has_braces(open + 1, passed))
        return refuse(r, "an argument of a <<<...>>> launch is a list in braces: name its type, T{...}", err);
    launch_name(begin, at, name, sizeof name);
    const char *zero = launch_zero(open + 1, passed);
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
    const int failed = replace(r, begin, text, at + 3, err);
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
    for (const char *at = line; (at = find_word(at, storage, sizeof storage - 1, 0)); at++) {
        const char *c = at + sizeof storage - 1;
        while (isspace((unsigned char)*c))
            c++;
        const char *open = strncmp(c, word, sizeof word - 1) == 0 ? skip(c + sizeof word - 1, "(") : NULL;
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
    const int failed = replace(r, at, text, end, err);
    free(text);
    return failed;
}

/* __cluster_dims__(a, b, c) goes; the kernel's body begins by telling them, since a template's are known in there. */
static int rewrite_cluster(struct reader *r, const char *at, const char **rest, struct err *err)
{
    const char *open = strchr(at, '('), *ends = open ? list_ends(open + 1, ")") : NULL;
    if (!ends)
        return refuse(r, "__cluster_dims__ without its sizes", err);
    launch_name(open + 1, ends, r->dims, sizeof r->dims);
    r->body = list_ends(ends + 1, "{");
    *rest = ends + 1;
    return replace(r, at, "", *rest, err);
}

static int rewrite_body(struct reader *r, const char *at, const char **rest, struct err *err)
{
    char text[sizeof r->dims + 40];
    snprintf(text, sizeof text, "{ ::simt::cluster_dims(%s); ", r->dims);
    r->body = NULL;
    *rest = at + 1;
    return replace(r, at, text, *rest, err);
}

enum rewrite {
    REWRITE_NOTHING,
    REWRITE_ASM,
    REWRITE_ALIGNAS,
    REWRITE_LAUNCH,
    REWRITE_LAUNCH_END,
    REWRITE_NULL,
    REWRITE_CLUSTER,
    REWRITE_BODY,
    REWRITE_ZERO,
    REWRITE_PRAGMA
};

/* In the middle of a line, where a macro has put it, nvcc's compiler alone takes it. */
static const char unroll[] = "#pragma unroll";

/* What is first in the line that r->bare shows, and where. aligned_end: where an alignas ends. */
static enum rewrite first_rewrite(const struct reader *r, const char *line, const char **at, const char **aligned_end)
{
    const char *bare_end = NULL;
    const char *const stop = line + strlen(r->bare),
                      *null = line < r->passed ? find_word(r->bare, "__null", 6, 0) : NULL;
    const char *const found[] = {
        [REWRITE_ASM] = find_asm(r->bare),
        [REWRITE_ALIGNAS] = find_alignas(r->bare, &bare_end),
        [REWRITE_LAUNCH] = strstr(r->bare, "<<<"),
        [REWRITE_LAUNCH_END] = r->closes >= line && r->closes < stop ? r->bare + (r->closes - line) : NULL,
        [REWRITE_NULL] = null && line + (null - r->bare) < r->passed ? null : NULL,
        [REWRITE_CLUSTER] = find_word(r->bare, "__cluster_dims__", sizeof "__cluster_dims__" - 1, 0),
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

/* *rest: where to go on, the line's end or behind what was rewritten. */
static int read_line(struct reader *r, const char *line, const char *end, const char **rest, struct err *err)
{
    *rest = end;
    size_t n = (size_t)(end - line);
    if (!r->raw_end[0] && n > 2 && line[0] == '#' && line[1] == ' ' && isdigit((unsigned char)line[2])) {
        read_marker(r, line + 2, end);
        r->line--; /* it names the line that follows */
        return 0;
    }
    if (!r->raw_end[0] && ((n > 8 && strncmp(line, "#include", 8) == 0) || (n > 7 && strncmp(line, "#import", 7) == 0)))
        r->include_line = r->line;
    if (!r->of_user)
        return 0;
    if (!r->raw_end[0] && line[0] == '#')
        return !r->scan->gpu_only_allowed && n > 9 && strncmp(line, "#include", 8) == 0
                   ? check_include(r, line, end, err)
                   : 0;
    if (n + 1 > r->capacity) {
        char *bare = realloc(r->bare, 2 * n + 256);
        if (!bare)
            return err_no_memory(err, r->file, "a line of the preprocessed source");
        r->bare = bare;
        r->capacity = 2 * n + 256;
    }
    strip(r, line, end);
    const char *at = NULL, *aligned_end = NULL;
    const enum rewrite what = r->scan->gpu_only_allowed ? REWRITE_NOTHING : first_rewrite(r, line, &at, &aligned_end);
    if (at)
        r->bare[at - line] = '\0';
    if ((!r->scan->gpu_only_allowed && check_code(r, err)) || find_values(r, line, end, err) || find_sites(r, err))
        return -1;
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
        return replace(r, at, ")", *rest, err);
    case REWRITE_NULL: /* NULL of g++ is an integer wherever it is not seen to become a pointer */
        *rest = at + strlen("__null");
        return replace(r, at, "nullptr", *rest, err);
    case REWRITE_CLUSTER:
        return rewrite_cluster(r, at, rest, err);
    case REWRITE_BODY:
        return rewrite_body(r, at, rest, err);
    case REWRITE_ZERO:
        *rest = at + 1;
        r->zero = launch_zero(at + 1 + strspn(at + 1, " \t\n,"), r->passed);
        return replace(r, at, "::simt::zero()", *rest, err);
    case REWRITE_PRAGMA:
        *rest = at + strlen(unroll);
        *rest += strspn(*rest, " 0123456789");
        return replace(r, at, "", *rest, err);
    }
    return 0;
}

/* #include lines are there for check_include(); to compile the text is to have them included already. */
static void blank_includes(char *text, size_t bytes)
{
    static const char *const directives[] = {"#include", "#import"};
    for (char *line = text, *stop = text + bytes, *end; line < stop; line = end + (end < stop)) {
        end = memchr(line, '\n', (size_t)(stop - line));
        if (!end)
            end = stop;
        for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
            size_t n = strlen(directives[i]);
            if ((size_t)(end - line) >= n && memcmp(line, directives[i], n) == 0)
                memset(line, ' ', (size_t)(end - line));
        }
    }
}

static int finish_rewritten(struct reader *r, struct err *err)
{
    if (!r->rewritten)
        return 0;
    fputs(r->copied, r->rewritten);
    int failed = ferror(r->rewritten);
    failed |= fclose(r->rewritten);
    r->rewritten = NULL;
    if (failed || !r->scan->rewritten) /* closing allocates, and says nothing where it could not */
        return err_no_memory(err, r->file, "the rewritten source");
    blank_includes(r->scan->rewritten, r->scan->n_rewritten);
    return 0;
}

void scan_free(struct scan *scan)
{
    free(scan->sites);
    free(scan->rewritten);
    scan->sites = NULL;
    scan->n_sites = 0;
    scan->rewritten = NULL;
}

int scan_preprocessed(struct scan *scan, const char *text, struct err *err)
{
    struct reader r = {.scan = scan, .text = text, .copied = text};
    int failed = 0;
    scan->sites = NULL;
    scan->n_sites = 0;
    scan->rewritten = NULL;
    const char *stop = text + strlen(text);
    if (scan->always)
        failed = replace(&r, text, "", text, err);
    while (text < stop && !failed) {
        const char *end = memchr(text, '\n', (size_t)(stop - text)), *rest;
        failed = read_line(&r, text, end ? end : stop, &rest, err);
        if (rest == end && end) {
            r.line++;
            rest++;
        }
        text = rest;
    }
    if (!failed)
        failed = finish_rewritten(&r, err);
    if (r.rewritten)
        fclose(r.rewritten);
    free(r.bare);
    if (failed)
        scan_free(scan);
    return failed;
}
