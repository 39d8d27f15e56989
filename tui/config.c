#include "tui/config.h"

#include "tui/keys/actions.h"
#include "tui/views/view.h"
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 200 /* INI_MAX_LINE, as inih is built by default */

static const struct {
    const char *key, *choices, *meaning;
} settings[SETTING_COUNT] = {
#define SETTING(id, key, choices, meaning) {key, choices, meaning},
#include "tui/config.def"
#undef SETTING
};

struct reader {
    FILE *in;
    const char *path;
    struct config *config;
    struct err *err;
    int line, failed_line; /* from 1; 0: none */
};

static void where_at(const struct reader *r, int line, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s:%d", r->path, line);
}

/* A line for inih, in the manner of fgets. Blanks before it are dropped: inih would take an indented line for more of
   the value before it. */
static char *next_line(char *out, int size, void *context)
{
    struct reader *r = context;
    char line[LINE_BYTES], where[300];
    if (r->failed_line || !fgets(line, sizeof line, r->in))
        return NULL;
    r->line++;
    if (!strchr(line, '\n') && !feof(r->in)) {
        where_at(r, r->line, where, sizeof where);
        err_set(r->err, ERR_INPUT, where, "expected a line of at most %d bytes", LINE_BYTES - 2);
        r->failed_line = r->line;
        return NULL;
    }
    snprintf(out, (size_t)size, "%s", line + strspn(line, " \t"));
    return out;
}

/* Index of a word among "a|b|c", or -1. */
static int choice_from(const char *choices, const char *word)
{
    const size_t length = strlen(word);
    for (int i = 0;; i++) {
        const size_t n = strcspn(choices, "|");
        if (n == length && memcmp(choices, word, n) == 0)
            return i;
        if (!choices[n])
            return -1;
        choices += n + 1;
    }
}

static int take_setting(struct reader *r, const char *where, const char *key, const char *value)
{
    char list[256] = "";
    int s = 0;
    while (s < SETTING_COUNT && strcmp(settings[s].key, key) != 0)
        s++;
    for (int i = 0; s == SETTING_COUNT && i < SETTING_COUNT; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", settings[i].key);
    if (s == SETTING_COUNT)
        return err_set(r->err, ERR_INPUT, where, "%s: expected one of %s", key, list);
    const int view = !*settings[s].choices;
    const int choice = view ? view_from_name(value) : choice_from(settings[s].choices, value);
    for (int i = 0; view && i < VIEW_COUNT; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "|" : "", view_name(i));
    if (choice < 0)
        return err_set(r->err, ERR_INPUT, where, "%s: expected %s, found '%s'", key, view ? list : settings[s].choices,
                       value);
    r->config->choice[s] = choice;
    return 0;
}

static int take_keys(struct reader *r, const char *where, const char *name, const char *keys)
{
    char wrong[40];
    enum action holder;
    const int action = action_from_name(name);
    if (action < 0)
        return err_set(r->err, ERR_INPUT, where, "%s: expected the name of an action (attnscope docs keys)", name);
    if (action_bind((enum action)action, keys, wrong, sizeof wrong, &holder) == 0)
        return 0;
    if (holder != ACTION_NONE)
        return err_set(r->err, ERR_INPUT, where, "%s: '%s' is a key of %s already", name, wrong,
                       action_text(holder)->name);
    return err_set(r->err, ERR_INPUT, where, "%s: expected keys as in `attnscope docs keys` (n C-l S-Tab), found '%s'",
                   name, wrong);
}

static int take_color(struct reader *r, const char *where, const char *name, const char *value)
{
    char wrong[40], list[256] = "";
    const int style = style_from_name(name);
    for (int i = 0; style < 0 && i < STYLE_COUNT; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", style_name((enum style)i));
    if (style < 0)
        return err_set(r->err, ERR_INPUT, where, "%s: expected one of %s", name, list);
    if (theme_parse_look(value, &r->config->theme.own[style], wrong, sizeof wrong) != 0)
        return err_set(r->err, ERR_INPUT, where,
                       "%s: expected colors (red, 0 to 255, default), `on` and one for the background, bold, dim, "
                       "reverse, underline; found '%s'",
                       name, wrong);
    r->config->theme.has_own[style] = 1;
    return 0;
}

/* inih's handler: 1 where all is well. After a first fault the rest is passed over. */
static int on_key(void *context, const char *section, const char *name, const char *value)
{
    static const struct {
        const char *section;
        int (*take)(struct reader *r, const char *where, const char *name, const char *value);
    } sections[] = {{"screen", take_setting}, {"keys", take_keys}, {"colors", take_color}};
    struct reader *r = context;
    char where[300];
    if (r->failed_line)
        return 1;
    where_at(r, r->line, where, sizeof where);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strcmp(sections[i].section, section) == 0) {
            if (sections[i].take(r, where, name, value ? value : "") == 0)
                return 1;
            r->failed_line = r->line;
            return 0;
        }
    err_set(r->err, ERR_INPUT, where, "%s: expected it in [screen], [keys] or [colors], found [%s]", name, section);
    r->failed_line = r->line;
    return 0;
}

static int parse(struct reader *r)
{
    char where[300];
    const int line = ini_parse_stream(next_line, r, on_key, r);
    if (line < 0)
        return err_no_memory(r->err, r->path, "its text");
    if (r->failed_line && (line == 0 || r->failed_line <= line))
        return -1;
    where_at(r, line, where, sizeof where);
    return line ? err_set(r->err, ERR_INPUT, where, "expected `key = value` or `[section]`") : 0;
}

int config_read(const char *path, struct config *out, struct err *err)
{
    *out = (struct config){0};
    struct reader r = {.in = fopen(path, "r"), .path = path, .config = out, .err = err};
    int failed = 0;
    if (r.in) {
        failed = parse(&r);
        if (!failed && ferror(r.in))
            failed = err_errno(err, path, "the configuration cannot be read");
        fclose(r.in);
    } else if (errno != ENOENT && errno != ENOTDIR) {
        failed = err_errno(err, path, "the configuration cannot be read");
    }
    static const enum background backgrounds[] = {BACKGROUND_UNKNOWN, BACKGROUND_DARK, BACKGROUND_LIGHT};
    out->theme.background = backgrounds[out->choice[SETTING_BACKGROUND]];
    if (out->theme.background == BACKGROUND_UNKNOWN)
        out->theme.background = theme_background();
    return failed;
}

int config_path(const char *variable, const char *below_home, const char *name, char *path, size_t bytes)
{
    const char *xdg = getenv(variable), *home = getenv("HOME");
    int n = -1;
    if (xdg && *xdg == '/') /* a relative one is to be ignored: XDG Base Directory Specification */
        n = snprintf(path, bytes, "%s/attnscope/%s", xdg, name);
    else if (home && *home == '/')
        n = snprintf(path, bytes, "%s/%s/attnscope/%s", home, below_home, name);
    return n >= 0 && (size_t)n < bytes ? 0 : -1;
}

int config_load(struct config *out, struct err *err)
{
    char path[512];
    if (config_path("XDG_CONFIG_HOME", ".config", "config.ini", path, sizeof path) != 0)
        path[0] = '\0';
    return config_read(path, out, err);
}

int config_write_docs(FILE *out)
{
    fputs("# Configuration\n\nGenerated from `tui/config.def` by `make docs`. The file is "
          "`$XDG_CONFIG_HOME/attnscope/config.ini`, by default `~/.config/attnscope/config.ini`; an error in it is "
          "reported with its line, and nothing is opened.\n\n    [screen]\n    start = map\n    background = dark\n\n  "
          "  [keys]\n    rerun = R F\n    quit = Q\n\n    [colors]\n    bad = 208 bold\n    cursor = black on "
          "yellow\n\n## [screen]\n\n| key | value | meaning |\n| --- | --- | --- |\n",
          out);
    for (int s = 0; s < SETTING_COUNT; s++) {
        fprintf(out, "| `%s` | ", settings[s].key);
        for (const char *c = settings[s].choices; *c; c++)
            fputs(*c == '|' ? ", " : (char[]){*c, '\0'}, out);
        fprintf(out, "%s | %s |\n", *settings[s].choices ? "" : "a view", settings[s].meaning);
    }
    fputs("\nThe first value is the default. Views: ", out);
    for (int i = 0; i < VIEW_COUNT; i++)
        fprintf(out, "%s`%s`", i ? ", " : "", view_name(i));
    fputs(".\n\n## [keys]\n\n`ACTION = KEYS`, with the names of [keys.md](keys.md); several keys are separated by "
          "blanks; an empty list removes the action's keys. An action that had one of them loses it.\n\n## "
          "[colors]\n\n`STYLE = LOOK`: a color, `on` and one for the background, `bold`, `dim`, `reverse`, "
          "`underline`. Colors are `default`, `black`, `red`, `green`, `yellow`, `blue`, `magenta`, `cyan`, `white`, "
          "or 0 to 255. Styles: ",
          out);
    for (int i = 0; i < STYLE_COUNT; i++)
        fprintf(out, "%s`%s`", i ? ", " : "", style_name((enum style)i));
    fputs(". Every mark also has its own glyph; `NO_COLOR` removes all colors.\n", out);
    return ferror(out) ? -1 : 0;
}
