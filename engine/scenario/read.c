/* A scenario's file: text, lines, sections and keys (through inih), paths. */
#include "engine/base/path.h"
#include "engine/base/text.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (1u << 20)
#define LINE_MAX_BYTES SCENARIO_LINE_MAX

struct reader {
    struct scenario *s;
    struct err *err;
    const char *rest;        /* of the text, borrowed */
    int line;                /* the line handed out last, 0 before the first */
    int section_line;        /* where the section that is being read begins */
    int failed_line;         /* where err was filled in; 0: nowhere */
    int key_line[KEY_COUNT]; /* where a key stands; 0: nowhere */
};

/* "path:line: section.key"; section and key may be NULL. */
static void where_at(const struct reader *r, const char *section, const char *key, char *out, size_t n_bytes)
{
    char name[128] = "", quoted[128];
    if (section)
        snprintf(name, sizeof name, ": %s%s%s", section, section[0] ? "." : "", key);
    text_name(name, strlen(name), quoted, sizeof quoted);
    snprintf(out, n_bytes, "%s:%d%s", r->s->path, r->line, quoted);
}

/* Looks at a `[section]` line before inih does: it says nothing about an empty unknown section, or about what stands
   behind the bracket. A line without a closing bracket is left to inih. */
static int check_section_line(struct reader *r, const char *at, size_t n)
{
    char section[64], where[WHERE_BYTES], found[80];
    const char *close = memchr(at, ']', n);
    if (!close)
        return 0;
    const char *behind = close + 1, *end = at + n;
    while (behind < end && (*behind == ' ' || *behind == '\t'))
        behind++;
    where_at(r, NULL, NULL, where, sizeof where);
    if (behind < end && *behind != ';' && *behind != '#') {
        text_name(behind, (size_t)(end - behind), found, sizeof found);
        return err_set(r->err, ERR_INPUT, where, "expected nothing after `]`, found `%s`", found);
    }
    snprintf(section, sizeof section, "%.*s", (int)(close - at - 1), at + 1);
    const int of = scenario_section(section);
    if (of < 0)
        return scenario_unknown(section, "", where, r->err);
    r->section_line = r->line;
    if (of == SECTION_EXPECT && r->s->expect.line_of_expect == 0)
        r->s->expect.line_of_expect = r->line;
    return 0;
}

/* Hands inih one line, in the manner of fgets. Blanks before it are dropped: inih would take an indented line for more
   of the value before it. */
static char *next_line(char *out, int size, void *context)
{
    struct reader *r = context;
    char where[WHERE_BYTES];
    if (r->failed_line || *r->rest == '\0')
        return NULL;
    r->line++;
    const char *at = r->rest + strspn(r->rest, " \t");
    size_t n = strcspn(at, "\n");
    r->rest = at + n + (at[n] == '\n');
    while (n > 0 && (at[n - 1] == '\r' || at[n - 1] == ' ' || at[n - 1] == '\t'))
        n--;
    if (n > LINE_MAX_BYTES || n + 2 > (size_t)size) {
        where_at(r, NULL, NULL, where, sizeof where);
        err_set(r->err, ERR_INPUT, where, "expected a line of at most %d bytes, found %zu", LINE_MAX_BYTES, n);
        r->failed_line = r->line;
        return NULL;
    }
    if (n > 0 && at[0] == '[' && check_section_line(r, at, n) != 0) {
        r->failed_line = r->line;
        return NULL;
    }
    memcpy(out, at, n);
    memcpy(out + n, "\n", 2);
    return out;
}

static int take_key(struct reader *r, const char *section, const char *name, const char *value)
{
    char where[WHERE_BYTES];
    where_at(r, section, name, where, sizeof where);
    if (section[0] == '\0')
        return err_set(r->err, ERR_INPUT, where, "expected a [section] before the first key");
    const int id = scenario_key_find(section, name);
    if (id < 0)
        return scenario_unknown(section, name, where, r->err);
    const bool list = id == KEY_INCLUDE || id == KEY_FLAGS;
    if (r->key_line[id] && !list)
        return err_set(r->err, ERR_INPUT, where, "expected the key once, found it in line %d as well", r->key_line[id]);
    char all[sizeof r->s->include + LINE_MAX_BYTES + 2];
    if (r->key_line[id] && value[0]) {
        snprintf(all, sizeof all, "%s %s", scenario_said(r->s, (enum scenario_key_id)id), value);
        value = all;
    }
    r->key_line[id] = r->line;
    return scenario_key_set(r->s, (enum scenario_key_id)id, value, where, r->err);
}

/* inih's handler: 1 where all is well. After a first fault the rest is passed over. */
static int on_key(void *context, const char *section, const char *name, const char *value)
{
    struct reader *r = context;
    if (r->failed_line || take_key(r, section, name, value ? value : "") == 0)
        return 1;
    r->failed_line = r->line;
    return 0;
}

static int fail_syntax(const struct reader *r, const char *text, int line)
{
    char where[WHERE_BYTES], found[80];
    for (int i = 1; i < line; i++)
        text += strcspn(text, "\n") + 1;
    text += strspn(text, " \t");
    snprintf(where, sizeof where, "%s:%d", r->s->path, line);
    text_name(text, strcspn(text, "\r\n"), found, sizeof found);
    return err_set(r->err, ERR_INPUT, where, "expected `key = value` or `[section]`, found `%s`", found);
}

static int parse(struct reader *r, const char *text)
{
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark, which some editors write */
        text += 3;
    r->rest = text;
    const int line = ini_parse_stream(next_line, r, on_key, r);
    if (line < 0)
        return err_no_memory(r->err, r->s->path, "its text");
    if (line > 0 && (r->failed_line == 0 || line < r->failed_line))
        return fail_syntax(r, text, line);
    return r->failed_line ? -1 : 0;
}

/* Refuses what is no text. */
static int check_text(const char *path, const char *text, size_t n, struct err *err)
{
    int line = 1;
    char where[WHERE_BYTES];
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        line += c == '\n';
        if (c >= 0x20 || c == '\n' || c == '\r' || c == '\t')
            continue;
        snprintf(where, sizeof where, "%s:%d", path, line);
        return err_set(err, ERR_INPUT, where, "expected text, found byte 0x%02x", c);
    }
    return 0;
}

/* The file as text, owned by the caller; NULL where it is none. */
static char *load(const char *path, struct err *err)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    if (!file) {
        err_set(err, ERR_INPUT, path, "expected a scenario file: %s", strerror(errno));
        return NULL;
    }
    char *text = malloc(FILE_MAX_BYTES + 1);
    size_t n = 0;
    int status = -1;
    if (fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode)) {
        err_set(err, ERR_INPUT, path, "expected a scenario file, found a folder");
    } else if (!text) {
        err_no_memory(err, path, "its text");
    } else {
        n = fread(text, 1, FILE_MAX_BYTES, file);
        if (ferror(file))
            err_errno(err, path, "cannot be read");
        else if (n == FILE_MAX_BYTES)
            err_set(err, ERR_INPUT, path, "expected a scenario of less than %u bytes", FILE_MAX_BYTES);
        else
            status = check_text(path, text, n, err);
    }
    fclose(file);
    if (status != 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    char *fitted = realloc(text, n + 1);
    return fitted ? fitted : text;
}

static bool is_there(const char *path, bool folder)
{
    struct stat st;
    return stat(path, &st) == 0 && (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

/* Replaces path (in a buffer of 512) by the file or folder it means: below the scenario's folder, else below root. */
static int resolve(struct reader *r, enum scenario_key_id id, char *path, const char *root)
{
    const bool folder = id == KEY_INCLUDE;
    char beside[1024 + 2], below[1024 + 2] = "", where[WHERE_BYTES];
    const int n_folder = path_folder(r->s->path);
    if (path[0] == '\0')
        return 0;
    if (path[0] == '/' || !n_folder)
        snprintf(beside, sizeof beside, "%s", path);
    else
        snprintf(beside, sizeof beside, "%.*s%s", n_folder, r->s->path, path);
    if (path[0] != '/' && root && root[0])
        snprintf(below, sizeof below, "%.512s/%s", root, path);
    scenario_where(r->s, r->key_line, id, where, sizeof where);
    const char *found = is_there(beside, folder) ? beside : below[0] && is_there(below, folder) ? below : NULL;
    const char *kind = folder ? "folder" : "file";
    if (!found) {
        return err_set(r->err, ERR_INPUT, where, "expected %s, found no %s %s%s%s%s%s",
                       folder ? "folders" : scenario_keys[id].expected, kind, beside, below[0] ? " and no " : "",
                       below[0] ? kind : "", below[0] ? " " : "", below);
    }
    if (strlen(found) >= sizeof r->s->kernel)
        return err_set(r->err, ERR_INPUT, where, "expected a path of less than %zu bytes", sizeof r->s->kernel);
    memcpy(path, found, strlen(found) + 1);
    return 0;
}

static int resolve_include(struct reader *r, const char *root)
{
    char folder[sizeof r->s->kernel], all[sizeof r->s->include] = "", where[WHERE_BYTES];
    scenario_where(r->s, r->key_line, KEY_INCLUDE, where, sizeof where);
    for (const char *list = r->s->include; *list;) {
        if (!value_next(&list, folder, sizeof folder))
            return err_set(r->err, ERR_INPUT, where, "expected paths of less than %zu bytes", sizeof folder);
        if (resolve(r, KEY_INCLUDE, folder, root) != 0)
            return -1;
        if (value_join(all, sizeof all, folder) != 0)
            return err_set(r->err, ERR_INPUT, where, "expected folders of less than %zu bytes in all", sizeof all);
    }
    memcpy(r->s->include, all, sizeof all);
    return 0;
}

/* A file of inputs, and the array of it that may be named. */
static int resolve_input(struct reader *r, enum scenario_key_id id, const char *root)
{
    char path[sizeof r->s->kernel], all[ARRAY_NAME_BYTES];
    const char *said = scenario_said(r->s, id);
    if (!said)
        return 0;
    char beside[1024 + 2];
    const int n_folder = said[0] == '/' ? 0 : path_folder(r->s->path);
    snprintf(beside, sizeof beside, "%.*s%s", n_folder, r->s->path, said);
    const char *name = array_file_bytes(beside) < strlen(beside) ? strrchr(said, ':') : "";
    snprintf(path, sizeof path, "%.*s", (int)(strlen(said) - strlen(name)), said);
    if (resolve(r, id, path, root) != 0)
        return -1;
    snprintf(all, sizeof all, "%s%s", path, name);
    char *found = strdup(all);
    if (!found)
        return err_no_memory(r->err, r->s->path, "its inputs");
    free(r->s->said[id]);
    r->s->said[id] = found;
    return 0;
}

static int resolve_inputs(struct reader *r, const char *root)
{
    for (int id = KEY_INPUT_FROM; id <= KEY_INPUT_PAGE_TABLE; id++)
        if (resolve_input(r, (enum scenario_key_id)id, root) != 0)
            return -1;
    return scenario_take_inputs(r->s, r->key_line, r->err);
}

/* Keeps the path, and the file's name without .ini. */
static int name_scenario(struct scenario *s, const char *path, struct err *err)
{
    const char *name = path_name(path);
    size_t n = strlen(name);
    if (path_ends_in(name, ".ini"))
        n -= 4;
    if (strlen(path) >= sizeof s->path || n >= sizeof s->name) {
        return err_set(err, ERR_INPUT, path, "expected a path of less than %zu bytes and a name of less than %zu",
                       sizeof s->path, sizeof s->name);
    }
    memcpy(s->path, path, strlen(path) + 1);
    memcpy(s->name, name, n);
    s->name[n] = '\0';
    return 0;
}

int scenario_read(const char *path, const char *root, struct scenario *s, struct err *err)
{
    struct reader r = {.s = s, .err = err};
    scenario_init(s);
    if (name_scenario(s, path, err) == 0 && (s->text = load(path, err)) != NULL && parse(&r, s->text) == 0 &&
        resolve_inputs(&r, root) == 0 && scenario_settle_sequences(s, r.key_line, err) == 0 &&
        scenario_settle_formulas(s, r.key_line, err) == 0 && scenario_check_lines(s, r.key_line, err) == 0 &&
        resolve(&r, KEY_KERNEL, s->kernel, root) == 0 && resolve(&r, KEY_PATCH, s->patch, root) == 0 &&
        resolve_include(&r, root) == 0)
        return 0;
    scenario_free(s);
    return -1;
}
