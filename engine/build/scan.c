#include "engine/build/scan_reader.h"

#include "engine/trace/own_values.h"
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
            c = scan_end_of_quoted(c, end);
        } else {
            bare[c - line] = *c;
            c++;
        }
    }
}

static bool matches(const char *line, const char *pattern)
{
    size_t n = strlen(pattern);
    if (!is_word(pattern[0]))
        return strstr(line, pattern) != NULL;
    if (pattern[n - 1] != '*')
        return scan_find_word(line, pattern, n, 0) != NULL;
    char begin[64];
    snprintf(begin, sizeof begin, "%.*s", (int)(n - 1), pattern);
    return scan_find_word(line, begin, n - 1, 1) != NULL;
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
    return refusal ? scan_refuse(r, refusal, err) : 0;
}

static int check_code(const struct reader *r, struct err *err)
{
    for (size_t i = 0; i < N_PATTERNS; i++) {
        const char *text = patterns[i].text;
        int header = text[0] == '<' && isalpha((unsigned char)text[1]);
        if (!header && matches(r->bare, text))
            return scan_refuse(r, patterns[i].refusal, err);
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

/* asc_values_are("<text>"), as ASC_VALUES expands to: `line` still has its strings. */
static int find_values(struct reader *r, const char *line, const char *end, struct err *err)
{
    static const char token[] = "asc_values_are";
    char text[1024], where[512];
    const char *bare = strstr(r->bare, token), *at = bare ? line + (bare - r->bare) : NULL;
    const char *c = at ? scan_skip(at + strlen(token), "(") : NULL, *quote = c ? scan_skip(c, "\"") : NULL;
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
        const char *c = scan_skip(at + strlen("asc_site"), "(");
        if (!c || !(c = scan_skip(c, "::asc_named::asc_")))
            continue;
        while (is_word(c[n]) && n + 1 < sizeof name) {
            name[n] = c[n];
            n++;
        }
        name[n] = '\0';
        int channel = channel_of(r->scan, name);
        if (channel < 0 || !(c = scan_skip(c + n, ",")))
            continue;
        long line = strtol(c, NULL, 10);
        if (line > 0 && line < 1 << 30 && add_site(r, (enum asc_channel)channel, (int)line, err))
            return -1;
    }
    return 0;
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
    const enum rewrite what =
        r->scan->gpu_only_allowed ? REWRITE_NOTHING : scan_first_rewrite(r, line, &at, &aligned_end);
    if (at)
        r->bare[at - line] = '\0';
    if ((!r->scan->gpu_only_allowed && check_code(r, err)) || find_values(r, line, end, err) || find_sites(r, err))
        return -1;
    return scan_rewrite(r, what, at, aligned_end, rest, err);
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
        failed = scan_replace(&r, text, "", text, err);
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
