#include "engine/session/rerun.h"

#include "engine/base/path.h"
#include "engine/session/work.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int session_watching(const struct session *s)
{
    return s->watch != NULL;
}

void session_free_watch(struct session *s)
{
    watch_free(s->watch);
    s->watch = NULL;
    for (size_t i = 0; i < s->n_reads; i++)
        free(s->reads[i]);
    free(s->reads);
    s->reads = NULL;
    s->n_reads = 0;
}

/* What decides a run; a file that cannot be followed for want of memory is one that r has to be pressed for. */
static void follow_files(struct session *s)
{
    const char *const own[] = {s->scenario.path, s->scenario.kernel, s->scenario.patch};
    for (size_t i = 0; s->watch && i < sizeof own / sizeof *own; i++)
        if (own[i][0])
            watch_add(s->watch, own[i]);
    for (size_t i = 0; s->watch && i < s->n_reads; i++)
        watch_add(s->watch, s->reads[i]);
}

int session_watch(struct session *s, int on)
{
    struct err err;
    if (on && !s->has_scenario) {
        session_say(s, "a saved trace has no kernel to watch: open its scenario");
        return -1;
    }
    if (!on) {
        watch_free(s->watch);
        s->watch = NULL;
        s->rerun_due = 0;
    } else if (!s->watch) {
        if (watch_new(work_fd(s->work), &s->watch, &err) != 0) {
            session_say(s, "%.250s", err.message);
            return -1;
        }
        follow_files(s);
    }
    return 0;
}

void session_take_reads(struct session *s, char **reads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int known = 0;
        for (size_t k = 0; k < s->n_reads && !known; k++)
            known = strcmp(s->reads[k], reads[i]) == 0;
        char **all = known ? NULL : realloc(s->reads, (s->n_reads + 1) * sizeof *all);
        if (all) {
            s->reads = all;
            s->reads[s->n_reads++] = reads[i];
        } else {
            free(reads[i]);
        }
    }
    free(reads);
    if (n)
        follow_files(s);
}

int session_take_saves(struct session *s)
{
    if (!s->watch || !watch_take(s->watch))
        return 0;
    s->rerun_due = 1;
    return 1;
}

void session_ask_rerun(struct session *s)
{
    if (s->has_scenario)
        s->rerun_due = 1;
}

/* ---- the file, and what was set over it ---- */

static void drop(struct session_setting *setting)
{
    free(setting->value);
    free(setting->file);
    *setting = (struct session_setting){0};
}

void session_free_settings(struct session *s)
{
    for (int id = 0; id < KEY_COUNT; id++)
        drop(&s->settings[id]);
}

static int same_words(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* "KEY=VALUE" behind what the list holds already. */
static void list_key(char *list, size_t bytes, int id, const char *value)
{
    const struct scenario_key *key = &scenario_keys[id];
    const size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s.%s=%s", used ? ", " : "", key->section, key->name, value);
}

/* What was set here goes over the file's words, unless those have changed since. */
static int set_over(struct session *s, struct scenario *now, char *stay, char *replaced, size_t bytes, struct err *err)
{
    for (int id = 0; id < KEY_COUNT; id++) {
        struct session_setting *setting = &s->settings[id];
        const struct scenario_key *key = &scenario_keys[id];
        const char *said = scenario_said(now, (enum scenario_key_id)id);
        if (!setting->value)
            continue;
        if (!same_words(setting->file, said)) {
            list_key(replaced, bytes, id, said ? said : key->by_default);
            drop(setting);
        } else if (same_words(said, setting->value)) {
            drop(setting); /* as if nothing had been set */
        } else {
            char where[64];
            snprintf(where, sizeof where, "%s.%s", key->section, key->name);
            list_key(stay, bytes, id, setting->value);
            if (scenario_key_set(now, (enum scenario_key_id)id, setting->value, where, err) != 0)
                return -1;
        }
    }
    return 0;
}

static int read_file(const struct session *s, struct scenario *out, struct err *err)
{
    return s->reader.read ? s->reader.read(s->reader.ctx, s->path, s->paths.root, out, err)
                          : session_read(s->path, s->paths.root, out, err);
}

/* s->scenario: the file as it is now, and what was set over it. */
static int reread(struct session *s, struct err *err)
{
    struct scenario now;
    char stay[200] = "", replaced[200] = "";
    if (!s->path[0])
        return 0; /* it was never a file */
    if (read_file(s, &now, err) != 0)
        return -1;
    const int other = !same_words(s->scenario.text, now.text);
    if (set_over(s, &now, stay, replaced, sizeof stay, err) != 0) {
        scenario_free(&now);
        return -1;
    }
    const char *name = path_name(s->path);
    if (other && (stay[0] || replaced[0]))
        snprintf(s->reread, sizeof s->reread, "%.60s read again: %s%s%s%s%s", name, replaced,
                 replaced[0] ? " in the place of what was set here" : "", stay[0] && replaced[0] ? "; " : "", stay,
                 stay[0] ? " kept as set here" : "");
    scenario_free(&s->scenario);
    s->scenario = now;
    follow_files(s);
    return 0;
}

static int key_of(const char *name)
{
    char full[64];
    for (int id = 0; id < KEY_COUNT; id++) {
        snprintf(full, sizeof full, "%s.%s", scenario_keys[id].section, scenario_keys[id].name);
        if (strcmp(full, name) == 0)
            return id;
    }
    return -1;
}

/* The setting, with what the file says of it now. */
static int setting_make(const struct session *s, int id, const char *value, struct session_setting *out,
                        struct err *err)
{
    struct scenario file;
    *out = (struct session_setting){0};
    if (read_file(s, &file, err) != 0)
        return -1;
    const char *said = scenario_said(&file, (enum scenario_key_id)id);
    out->value = strdup(value);
    out->file = said ? strdup(said) : NULL;
    const int failed = !out->value || (said && !out->file);
    scenario_free(&file);
    if (!failed)
        return 0;
    drop(out);
    return err_no_memory(err, "", "what is set");
}

int session_set(struct session *s, const char *key, const char *value, struct err *err)
{
    const int id = key_of(key);
    struct session_setting made;
    if (session_busy(s))
        return err_set(err, ERR_USAGE, "", "a run is in progress: x stops it");
    if (id < 0 || !s->path[0])
        return scenario_set(&s->scenario, key, value, err); /* which knows what to say */
    if (setting_make(s, id, value, &made, err) != 0)
        return -1;
    const struct session_setting before = s->settings[id];
    s->settings[id] = made;
    if (reread(s, err) == 0) {
        drop(&(struct session_setting){before.value, before.file});
        return 0;
    }
    drop(&s->settings[id]);
    s->settings[id] = before;
    return -1;
}

int session_rerun(struct session *s)
{
    struct err err = {0};
    s->rerun_due = 0;
    /* Of a saved trace that is still being judged, too: there will be nothing to run. */
    if (session_busy(s) && s->has_scenario) {
        session_say(s, "a run is in progress: x stops it");
        return -1;
    }
    if (s->has_scenario && reread(s, &err) != 0) {
        s->err = err;
        s->phase = PHASE_FAILED;
        s->made_run = 0;
        return -1;
    }
    const int started = session_start(s);
    if (started == 0) {
        session_say(s, "%s", s->reread);
        s->reread[0] = '\0';
    }
    return started;
}

int session_rerun_if_due(struct session *s)
{
    if (!s->rerun_due || session_busy(s))
        return 0;
    session_rerun(s);
    return 1;
}
