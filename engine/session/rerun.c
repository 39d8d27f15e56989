#include "engine/session/rerun.h"

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

/* What decides a run; a file that can not be followed for want of memory is one that r has to be pressed for. */
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
        snprintf(s->message, sizeof s->message, "a saved trace has no kernel to watch: open its scenario");
        return -1;
    }
    if (!on) {
        watch_free(s->watch);
        s->watch = NULL;
        s->rerun_due = 0;
    } else if (!s->watch) {
        if (watch_new(work_fd(s->work), &s->watch, &err) != 0) {
            snprintf(s->message, sizeof s->message, "%.250s", err.message);
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
    s->reread_due |= s->scenario.path[0] && watch_was(s->watch, s->scenario.path);
    return 1;
}

void session_ask_rerun(struct session *s)
{
    if (s->has_scenario)
        s->rerun_due = 1;
    s->reread_due |= s->has_scenario && s->scenario.path[0];
}

/* What keys have changed since the file was read stays as they have it. */
static int reread(struct session *s, struct err *err)
{
    struct scenario now;
    int (*read)(const void *, const char *, const char *, struct scenario *, struct err *) = s->reader.read;
    if ((read ? read(s->reader.ctx, s->scenario.path, s->paths.root, &now, err)
              : scenario_read(s->scenario.path, s->paths.root, &now, err)) != 0)
        return -1;
    const int checks = s->scenario.checks, profile = s->scenario.profile;
    const int checks_by_key = checks != s->read_checks, profile_by_key = profile != s->read_profile;
    s->read_checks = now.checks;
    s->read_profile = now.profile;
    if (checks_by_key)
        now.checks = checks;
    if (profile_by_key)
        now.profile = profile;
    scenario_free(&s->scenario);
    s->scenario = now;
    follow_files(s);
    return 0;
}

int session_rerun_if_due(struct session *s)
{
    struct err err = {0};
    if (!s->rerun_due || session_busy(s))
        return 0;
    s->rerun_due = 0;
    if (s->reread_due && reread(s, &err) != 0) {
        s->err = err;
        s->phase = PHASE_FAILED;
        return 1;
    }
    s->reread_due = 0;
    session_start(s);
    return 1;
}
