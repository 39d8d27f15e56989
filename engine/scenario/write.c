/* A scenario as a file that scenario_read() takes, and as what a trace keeps of it. */
#include "engine/base/bounded_json.h"
#include "engine/base/json_memory.h"
#include "engine/base/path.h"
#include "engine/base/replace.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    return id == KEY_KERNEL || id == KEY_PATCH || (id >= KEY_INPUT_FROM && id <= KEY_INPUT_PAGE_TABLE);
}

/* A path that holds from any folder; what names an array behind a colon stays. */
static void absolute(const char *path, char *out, size_t bytes)
{
    char file[PATH_MAX], real[PATH_MAX];
    const size_t n = array_file_bytes(path);
    snprintf(file, sizeof file, "%.*s", (int)n, path);
    snprintf(out, bytes, "%s%s", realpath(file, real) ? real : file, path + n);
}

static bool place_anywhere(void *ctx, enum scenario_key_id id, const char *path, char *out, size_t bytes)
{
    (void)ctx;
    (void)id;
    absolute(path, out, bytes);
    return true;
}

/* The folders of scenario.include, from any folder. -1: no room. */
static int absolute_folders(const char *list, char *out, size_t bytes)
{
    char word[512], path[PATH_MAX];
    out[0] = '\0';
    while (*list) {
        if (!value_next(&list, word, sizeof word))
            return -1;
        absolute(word, path, sizeof path);
        if (value_join(out, bytes, path) != 0)
            return -1;
    }
    return 0;
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
    static const struct scenario_places anywhere = {place_anywhere, NULL};
    struct writer w = {s, out, name, err, places ? places : &anywhere, -1};
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
    if (scenario_write_as(s, r.file, path, NULL, err) == 0)
        return replace_commit(&r, err);
    replace_drop(&r);
    return -1;
}

/* ---- what a trace keeps ---- */

/* What a key was given, where files are named from any folder; NULL: it is not stated. */
static const char *said_anywhere(const struct scenario *s, enum scenario_key_id id, char *room, size_t bytes)
{
    const char *said = scenario_said(s, id);
    if (!said || !(is_path(id) || id == KEY_INCLUDE))
        return said;
    if (is_path(id))
        absolute(said, room, bytes);
    return is_path(id) || absolute_folders(said, room, bytes) == 0 ? room : said;
}

static void name_key(int id, char out[64])
{
    snprintf(out, 64, "%s.%s", section_names[scenario_keys[id].section], scenario_keys[id].name);
}

char *scenario_settings(const struct scenario *s)
{
    char room[PATH_MAX], name[64];
    json_t *json = json_object();
    for (int id = 0; id < KEY_COUNT; id++) {
        const char *said = said_anywhere(s, (enum scenario_key_id)id, room, sizeof room);
        name_key(id, name);
        if (said && scenario_decides((enum scenario_key_id)id))
            json_object_set_new(json, name, json_string(said));
    }
    char *text = json ? json_memory_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

/* Each of the folders of scenario.include. -1: no room. */
static int place_folders(const struct scenario_places *places, const char *list, char *out, size_t bytes)
{
    char word[512], path[PATH_MAX];
    out[0] = '\0';
    while (*list) {
        if (!value_next(&list, word, sizeof word))
            return -1;
        if (places->place(places->ctx, KEY_INCLUDE, word, path, sizeof path) && value_join(out, bytes, path) != 0)
            return -1;
    }
    return 0;
}

char *scenario_settings_as(const char *settings, const struct scenario_places *places)
{
    struct err ignored;
    char room[PATH_MAX], name[64];
    json_t *json = settings ? bounded_json(settings, strlen(settings), "", &ignored) : NULL;
    for (int i = 0; i < KEY_COUNT && json_is_object(json); i++) {
        const enum scenario_key_id id = (enum scenario_key_id)i;
        name_key(id, name);
        const char *said = json_string_value(json_object_get(json, name));
        if (!said || !(is_path(id) || id == KEY_INCLUDE))
            continue;
        const bool stays = id == KEY_INCLUDE ? place_folders(places, said, room, sizeof room) == 0
                                             : places->place(places->ctx, id, said, room, sizeof room);
        if (stays && room[0])
            json_object_set_new(json, name, json_string(room));
        else
            json_object_del(json, name);
    }
    char *text = json ? json_memory_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

static bool is_below(const char *folder, const char *path)
{
    const size_t n = strlen(folder);
    return n > 0 && strncmp(path, folder, n) == 0 && (folder[n - 1] == '/' || path[n] == '/');
}

struct nearness {
    char folder[PATH_MAX], work[PATH_MAX]; /* of the trace, of this process; without links */
};

/* A folder that holds both may be moved: what lies in there is named from the trace. */
static bool place_near(void *ctx, enum scenario_key_id id, const char *path, char *out, size_t bytes)
{
    const struct nearness *near = ctx;
    (void)id;
    const char *folder = near->folder, *shared = near->work;
    size_t used = 0, common = 0;
    if (is_below(folder, path))
        shared = folder;
    else if (!(is_below(shared, path) && is_below(shared, folder))) {
        snprintf(out, bytes, "%s", path);
        return true;
    }
    for (size_t i = strlen(shared);; i++) /* the last folder that both are in */
        if (!folder[i] || folder[i] == '/') {
            if (strncmp(path, folder, i) != 0 || path[i] != '/')
                break;
            common = i;
            if (!folder[i])
                break;
        }
    out[0] = '\0';
    for (const char *at = folder + common; *at && used + 4 < bytes; at++)
        if (*at == '/')
            used += (size_t)snprintf(out + used, bytes - used, "../");
    snprintf(out + used, bytes - used, "%s", path + common + 1);
    return true;
}

char *scenario_settings_near(const char *settings, const char *trace)
{
    struct nearness near = {.work = ""};
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", path_folder(trace), trace);
    if (!realpath(folder[0] ? folder : ".", near.folder))
        near.folder[0] = '\0';
    if (!getcwd(near.work, sizeof near.work))
        near.work[0] = '\0';
    return scenario_settings_as(settings, &(struct scenario_places){place_near, &near});
}

/* Relative to the trace, where that is there, else to the working folder. */
static bool place_found(void *ctx, enum scenario_key_id id, const char *path, char *out, size_t bytes)
{
    const char *trace = ctx;
    char file[PATH_MAX];
    (void)id;
    const int n = snprintf(out, bytes, "%.*s%s", path_folder(trace), trace, path);
    snprintf(file, sizeof file, "%.*s%.*s", path_folder(trace), trace, (int)array_file_bytes(path), path);
    if (path[0] == '/' || n < 0 || (size_t)n >= bytes || access(file, F_OK) != 0)
        snprintf(out, bytes, "%s", path);
    return true;
}

static int set_all(const json_t *json, const char *path, struct scenario *out, struct err *err)
{
    char name[64];
    /* Files of inputs first: what is said of lengths stands over them. */
    for (int inputs = 1; inputs >= 0; inputs--)
        for (int id = 0; id < KEY_COUNT; id++) {
            if ((scenario_keys[id].section == SECTION_INPUTS) != (inputs != 0))
                continue;
            name_key(id, name);
            const json_t *value = json_object_get(json, name);
            if (value && !json_is_string(value))
                return err_set(err, ERR_INPUT, path, "%s of the run that it keeps is no text", name);
            if (value && scenario_set(out, name, json_string_value(value), err) != 0)
                return -1;
        }
    if (access(out->kernel, R_OK) != 0)
        return err_set(err, ERR_INPUT, path, "its kernel is not there any more: %.200s", out->kernel);
    if (out->patch[0] && access(out->patch, R_OK) != 0)
        return err_set(err, ERR_INPUT, path, "its patch is not there any more: %.200s", out->patch);
    return scenario_check(out, err);
}

int scenario_from_settings(const char *settings, const char *path, struct scenario *out, struct err *err)
{
    char *found = scenario_settings_as(settings, &(struct scenario_places){place_found, (void *)(uintptr_t)path});
    json_t *json = found ? bounded_json(found, strlen(found), path, err) : NULL;
    free(found);
    scenario_init(out);
    const int failed = json_is_object(json)
                           ? set_all(json, path, out, err)
                           : err_set(err, ERR_INPUT, path,
                                     "does not keep how its run was made; --inputs gives its inputs to a kernel");
    json_decref(json);
    if (failed)
        scenario_free(out);
    return failed;
}

void scenario_difference(const struct scenario *before, const struct scenario *now, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < KEY_COUNT; i++) {
        const enum scenario_key_id id = (enum scenario_key_id)i;
        const char *a = scenario_said(before, id), *b = scenario_said(now, id);
        a = a ? a : scenario_keys[i].by_default;
        b = b ? b : scenario_keys[i].by_default;
        if (!scenario_decides(id) || strcmp(a, b) == 0 || used + 1 >= bytes)
            continue;
        const int n = snprintf(out + used, bytes - used, "%s%s.%s=%s", used ? ", " : "",
                               section_names[scenario_keys[i].section], scenario_keys[i].name, b);
        used += n > 0 ? (size_t)n : 0;
    }
}
