/* A scenario as a file that scenario_read() takes. */
#include "engine/base/replace.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    const struct scenario *s;
    FILE *out;
    const char *path;
    struct err *err;
    const struct scenario_places *places;
    int section; /* whose head was written last; -1: none */
};

static bool is_path(enum scenario_key_id id)
{
    return id == KEY_KERNEL || id == KEY_PATCH || (id >= KEY_INPUT_FROM && id <= KEY_INPUT_V_SCALE);
}

/* A path that holds from any folder; what names an array behind a colon stays. */
static bool absolute(void *ctx, enum scenario_key_id id, const char *path, char *out, size_t bytes)
{
    char file[PATH_MAX], real[PATH_MAX];
    (void)ctx;
    (void)id;
    const size_t n = array_file_bytes(path);
    snprintf(file, sizeof file, "%.*s", (int)n, path);
    snprintf(out, bytes, "%s%s", realpath(file, real) ? real : file, path + n);
    return true;
}

static int write_line(struct writer *w, enum scenario_key_id id, const char *value)
{
    const struct scenario_key *key = &scenario_keys[id];
    char line[PATH_MAX + 64];
    snprintf(line, sizeof line, "%s = %s", key->name, value);
    if (strlen(line) > SCENARIO_LINE_MAX || strpbrk(line, "\r\n") || strstr(line, " ;"))
        return err_set(w->err, ERR_INPUT, w->path,
                       "%s.%s does not fit a scenario: its line takes at most %d bytes, "
                       "and neither a line feed nor ` ;`",
                       section_names[key->section], key->name, SCENARIO_LINE_MAX);
    if (w->section != (int)key->section)
        fprintf(w->out, "%s[%s]\n", w->section < 0 ? "" : "\n", section_names[key->section]);
    w->section = (int)key->section;
    fprintf(w->out, "%s\n", line);
    return 0;
}

/* Words with blanks between, a line for each. */
static int write_words(struct writer *w, enum scenario_key_id id, const char *list)
{
    char word[512], path[PATH_MAX], quoted[PATH_MAX];
    while (*list) {
        quoted[0] = '\0';
        if (!value_next(&list, word, sizeof word))
            return err_set(w->err, ERR_INPUT, w->path, "%s has a word that is too long", scenario_keys[id].name);
        if (id == KEY_INCLUDE && !w->places->place(w->places->ctx, id, word, path, sizeof path))
            continue;
        if (value_join(quoted, sizeof quoted, id == KEY_INCLUDE ? path : word) != 0 || write_line(w, id, quoted) != 0)
            return -1;
    }
    return 0;
}

static int write_key(struct writer *w, enum scenario_key_id id)
{
    const char *said = scenario_said(w->s, id);
    char path[PATH_MAX];
    if (!said)
        return 0;
    if (id == KEY_INCLUDE || id == KEY_FLAGS)
        return write_words(w, id, said);
    if (is_path(id) && !w->places->place(w->places->ctx, id, said, path, sizeof path))
        return 0;
    if (is_path(id))
        said = path;
    return write_line(w, id, said);
}

int scenario_write_as(const struct scenario *s, FILE *out, const char *name, const struct scenario_places *places,
                      struct err *err)
{
    struct writer w = {s, out, name, err, places, -1};
    int failed = 0;
    for (int id = 0; id < KEY_COUNT && !failed; id++)
        failed = write_key(&w, (enum scenario_key_id)id) != 0;
    return failed ? -1 : 0;
}

int scenario_write(const struct scenario *s, const char *path, struct err *err)
{
    struct replacement r;
    if (replace_open(&r, path, 0666, err) != 0)
        return -1;
    if (scenario_write_as(s, r.file, path, &(struct scenario_places){absolute, NULL}, err) == 0)
        return replace_commit(&r, err);
    replace_drop(&r);
    return -1;
}
