/* A sweep that a session shows, and its points as runs. */
#include "engine/base/path.h"
#include "engine/session/session.h"
#include "engine/sweep/sweep.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_said(struct session *s, enum scenario_key_id id, const char *value, struct err *err)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", section_names[scenario_keys[id].section], scenario_keys[id].name);
    return session_set(s, key, value, err);
}

/* The keys that base and axes name, as this point has them; macros of axes are one key. */
int session_set_point(struct session *s, size_t point, struct err *err)
{
    const struct sweep *sweep = s->swept;
    struct scenario now;
    scenario_init(&now);
    int failed = 0;
    for (int i = 0; i < sweep->n_base && !failed; i++)
        failed = sweep_set(&now, sweep->base[i], err);
    for (int i = 0; i < sweep->n_axes && !failed; i++) {
        char word[1024];
        snprintf(word, sizeof word, "%s=%s", sweep->axis[i].key, sweep->axis[i].value[sweep->point[point].at[i]]);
        failed = sweep_set(&now, word, err);
    }
    for (int id = 0; id < KEY_COUNT && !failed; id++) {
        const char *said = scenario_said(&now, (enum scenario_key_id)id);
        if (said && id != KEY_KERNEL && scenario_stated(&now, (enum scenario_key_id)id))
            failed = set_said(s, (enum scenario_key_id)id, said, err);
    }
    scenario_free(&now);
    return failed ? -1 : 0;
}

int session_run_point(struct session *s, size_t point)
{
    struct err err = {0};
    if (session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    if (session_set_point(s, point, &err) != 0) {
        session_say(s, "%.60s%s%.180s", err.where, err.where[0] ? ": " : "", err.message);
        return -1;
    }
    return session_rerun(s);
}

static struct sweep *read_sweep(const char *path, struct err *err)
{
    struct sweep *sweep = malloc(sizeof *sweep);
    if (!sweep) {
        (void)err_no_memory(err, path, "the sweep");
        return NULL;
    }
    if (sweep_read(path, sweep, err) == 0 && sweep->n > 0)
        return sweep;
    if (err->code == ERR_NONE)
        (void)err_set(err, ERR_INPUT, path, "has no point");
    sweep_free(sweep);
    free(sweep);
    return NULL;
}

static void attach(struct session *s, struct sweep *sweep)
{
    sweep_free(s->swept);
    free(s->swept);
    s->swept = sweep;
}

size_t session_point_of_interest(const struct session *s)
{
    const struct sweep_point *least = sweep_smallest(s->swept, SWEEP_FAIL);
    return least ? (size_t)(least - s->swept->point) : 0;
}

int session_open_sweep(const char *path, struct session **out, struct err *err)
{
    struct sweep *sweep = read_sweep(path, err);
    *out = NULL;
    if (!sweep)
        return -1;
    if (!path_ends_in(sweep->kernel, ".cu") || session_open(sweep->kernel, out, err) != 0) {
        if (err->code == ERR_NONE)
            (void)err_set(err, ERR_INPUT, path, "expected the path of a kernel (.cu), found '%.200s'", sweep->kernel);
        sweep_free(sweep);
        free(sweep);
        return -1;
    }
    attach(*out, sweep);
    if (session_set_point(*out, session_point_of_interest(*out), err) == 0)
        return 0;
    session_free(*out);
    *out = NULL;
    return -1;
}

int session_load_sweep(struct session *s, const char *path, struct err *err)
{
    char own[PATH_MAX], other[PATH_MAX];
    struct sweep *sweep = read_sweep(path, err);
    if (!sweep)
        return -1;
    const bool same = s->subject.has_scenario && realpath(s->subject.scenario.kernel, own) &&
                      realpath(sweep->kernel, other) && strcmp(own, other) == 0;
    if (same) {
        attach(s, sweep);
        return 0;
    }
    (void)err_set(err, ERR_INPUT, path, "is a sweep of %.120s, which is not open: attnscope %.60s opens it",
                  sweep->kernel, path);
    sweep_free(sweep);
    free(sweep);
    return -1;
}
