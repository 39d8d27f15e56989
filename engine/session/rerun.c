/* What is run: reading its file, what is set over it, watching what decides it. */
#include "engine/base/path.h"
#include "engine/session/common.h"
#include "engine/session/watch.h"
#include "engine/session/work.h"
#include "engine/study/whatif.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool session_watching(const struct session *s)
{
    return s->subject.watch != NULL;
}

static void forget_files(struct subject *what)
{
    watch_free(what->watch);
    what->watch = NULL;
    for (size_t i = 0; i < what->n_reads; i++)
        free(what->reads[i]);
    free(what->reads);
    what->reads = NULL;
    what->n_reads = 0;
}

/* What decides a run; a file that cannot be followed for want of memory is one that r has to be pressed for. */
static void follow_files(const struct subject *what)
{
    const char *const own[] = {what->scenario.path, what->scenario.kernel, what->scenario.patch};
    for (size_t i = 0; what->watch && i < sizeof own / sizeof *own; i++)
        if (own[i][0])
            watch_add(what->watch, own[i]);
    for (size_t i = 0; what->watch && i < what->n_reads; i++)
        watch_add(what->watch, what->reads[i]);
}

int session_watch(struct session *s, bool on)
{
    struct err err;
    if (on && !s->subject.has_scenario) {
        session_say(s, SESSION_NO_KERNEL);
        return -1;
    }
    if (!on) {
        watch_free(s->subject.watch);
        s->subject.watch = NULL;
        s->subject.rerun_due = 0;
    } else if (!s->subject.watch) {
        if (watch_new(work_fd(s->work), &s->subject.watch, &err) != 0) {
            session_say(s, "%.250s", err.message);
            return -1;
        }
        follow_files(&s->subject);
    }
    return 0;
}

void subject_take_reads(struct subject *what, char **reads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int known = 0;
        for (size_t k = 0; k < what->n_reads && !known; k++)
            known = strcmp(what->reads[k], reads[i]) == 0;
        char **all = known ? NULL : realloc(what->reads, (what->n_reads + 1) * sizeof *all);
        if (all) {
            what->reads = all;
            what->reads[what->n_reads++] = reads[i];
        } else {
            free(reads[i]);
        }
    }
    free(reads);
    if (n)
        follow_files(what);
}

bool session_take_saves(struct session *s)
{
    if (!s->subject.watch || !watch_take(s->subject.watch))
        return false;
    s->subject.rerun_due = 1;
    return true;
}

void session_ask_rerun(struct session *s)
{
    if (s->subject.has_scenario)
        s->subject.rerun_due = 1;
}

/* ---- the file, and what was set over it ---- */

static void drop(struct session_setting *setting)
{
    free(setting->value);
    free(setting->file);
    *setting = (struct session_setting){0};
}

void subject_free(struct subject *what)
{
    for (int id = 0; id < KEY_COUNT; id++)
        drop(&what->settings[id]);
    forget_files(what);
}

static bool same_words(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* "KEY=VALUE" behind what the list holds already. */
static void list_key(char *list, size_t bytes, int id, const char *value)
{
    const struct scenario_key *key = &scenario_keys[id];
    const size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s.%s=%s", used ? ", " : "", section_names[key->section], key->name, value);
}

/* One key that was set here. */
static int set_one(struct subject *what, int id, struct scenario *now, char *stay, char *replaced, size_t bytes,
                   struct err *err)
{
    struct session_setting *setting = &what->settings[id];
    const struct scenario_key *key = &scenario_keys[id];
    const char *said = scenario_said(now, (enum scenario_key_id)id);
    char name[64];
    if (!same_words(setting->file, said)) {
        list_key(replaced, bytes, id, said ? said : key->by_default);
        drop(setting);
        return 0;
    }
    if (same_words(said, setting->value)) {
        drop(setting); /* as if nothing had been set */
        return 0;
    }
    snprintf(name, sizeof name, "%s.%s", section_names[key->section], key->name);
    list_key(stay, bytes, id, setting->value);
    return scenario_set(now, name, setting->value, err);
}

/* What was set here goes over the file's words, unless those have changed since. Inputs come first: lengths give way to
   them. */
static int set_over(struct subject *what, struct scenario *now, char *stay, char *replaced, size_t bytes,
                    struct err *err)
{
    for (int inputs = 1; inputs >= 0; inputs--)
        for (int id = 0; id < KEY_COUNT; id++)
            if (what->settings[id].value && (scenario_keys[id].section == SECTION_INPUTS) == (inputs != 0) &&
                set_one(what, id, now, stay, replaced, bytes, err) != 0)
                return -1;
    return 0;
}

static int check_cause(const struct scenario *scenario, struct err *err)
{
    char where[600], name[64];
    for (int i = 0; scenario_listed(scenario->expect.cause, i, name); i++) {
        if (cause_from_name(name) >= 0)
            continue;
        snprintf(where, sizeof where, "%s:%d: expect.cause", scenario->path, scenario->expect.line_of_expect);
        return err_set(err, ERR_INPUT, where, "expected a name that `attnscope docs causes` lists, found '%s'", name);
    }
    return 0;
}

/* What made the run of a saved trace. */
static int read_trace(const char *path, struct scenario *out, struct err *err)
{
    struct trace *t;
    if (trace_open(path, &t, err) != 0)
        return -1;
    int failed = scenario_from_settings(t->info.settings, path, out, err);
    /* Where the run was on the CPU, this one is too; that of a GPU runs where it can. */
    if (!failed && t->info.backend == BACKEND_CPU && !scenario_stated(out, KEY_BACKEND)) {
        failed = scenario_set(out, "scenario.backend", "cpu", err);
        if (failed)
            scenario_free(out);
    }
    trace_free(t);
    return failed;
}

int session_read(const char *path, const char *root, struct scenario *out, struct err *err)
{
    struct err ignored;
    bool trace = false;
    if (path_ends_in(path, ".cu")) {
        scenario_init(out);
        snprintf(out->kernel, sizeof out->kernel, "%s", path);
        return 0;
    }
    if (path_ends_in(path, ".safetensors") ||
        (!path_ends_in(path, ".ini") && trace_is(path, &trace, &ignored) == 0 && trace))
        return read_trace(path, out, err);
    if (scenario_read(path, root, out, err) != 0)
        return -1;
    if (check_cause(out, err) == 0)
        return 0;
    scenario_free(out);
    return -1;
}

static int read_file(const struct subject *what, struct scenario *out, struct err *err)
{
    return what->reader.read ? what->reader.read(what->reader.ctx, what->path, what->paths.root, out, err)
                             : session_read(what->path, what->paths.root, out, err);
}

/* s->subject.scenario: the file as it is now, and what was set over it. */
static int reread(struct subject *what, struct err *err)
{
    struct scenario now;
    char stay[200] = "", replaced[200] = "";
    if (!what->path[0])
        return 0; /* it was never a file */
    if (read_file(what, &now, err) != 0)
        return -1;
    const bool other = !same_words(what->scenario.text, now.text);
    if (set_over(what, &now, stay, replaced, sizeof stay, err) != 0 ||
        (scenario_has_inputs(&now) && scenario_take_inputs(&now, NULL, err) != 0)) {
        scenario_free(&now);
        return -1;
    }
    const char *name = path_name(what->path);
    if (other && (stay[0] || replaced[0]))
        snprintf(what->reread, sizeof what->reread, "%.60s read again: %s%s%s%s%s", name, replaced,
                 replaced[0] ? " in the place of what was set here" : "", stay[0] && replaced[0] ? "; " : "", stay,
                 stay[0] ? " kept as set here" : "");
    scenario_free(&what->scenario);
    what->scenario = now;
    follow_files(what);
    return 0;
}

static int key_of(const char *name)
{
    char full[64];
    for (int id = 0; id < KEY_COUNT; id++) {
        snprintf(full, sizeof full, "%s.%s", section_names[scenario_keys[id].section], scenario_keys[id].name);
        if (strcmp(full, name) == 0)
            return id;
    }
    return -1;
}

/* The setting, with what the file says of it now. */
static int setting_make(const struct subject *what, int id, const char *value, struct session_setting *out,
                        struct err *err)
{
    struct scenario file;
    *out = (struct session_setting){0};
    if (read_file(what, &file, err) != 0)
        return -1;
    const char *said = scenario_said(&file, (enum scenario_key_id)id);
    out->value = strdup(value);
    out->file = said ? strdup(said) : NULL;
    const bool failed = !out->value || (said && !out->file);
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
    if (id < 0 || !s->subject.path[0])
        return scenario_set(&s->subject.scenario, key, value, err); /* which knows what to say */
    if (setting_make(&s->subject, id, value, &made, err) != 0)
        return -1;
    const struct session_setting before = s->subject.settings[id];
    s->subject.settings[id] = made;
    if (reread(&s->subject, err) == 0) {
        drop(&(struct session_setting){before.value, before.file});
        return 0;
    }
    drop(&s->subject.settings[id]);
    s->subject.settings[id] = before;
    return -1;
}

int session_rerun(struct session *s)
{
    struct err err = {0};
    s->subject.rerun_due = 0;
    /* Of a saved trace that is still being judged, too: there will be nothing to run. */
    if (session_busy(s) && s->subject.has_scenario) {
        session_say(s, "a run is in progress: x stops it");
        return -1;
    }
    if (s->subject.has_scenario && reread(&s->subject, &err) != 0) {
        s->job.err = err;
        s->job.phase = PHASE_FAILED;
        s->job.made_run = 0;
        return -1;
    }
    const int started = session_start(s);
    if (started == 0) {
        session_say(s, "%s", s->subject.reread);
        s->subject.reread[0] = '\0';
    }
    return started;
}

bool session_rerun_if_due(struct session *s)
{
    if (!s->subject.rerun_due || session_busy(s))
        return false;
    session_rerun(s);
    return true;
}

int session_run_choice(struct session *s, const struct whatif_choice *choice)
{
    static const char *const keys[] = {"shape.dtype", "shape.k_dtype", "shape.v_dtype"};
    struct whatif_choice own;
    char scales[64] = "head";
    struct err err = {0};
    if (!s->subject.has_scenario)
        return session_refuse(s, SESSION_NO_KERNEL);
    if (session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    whatif_of_run(s->run.trace, &own);
    if (choice->factor != 1)
        return session_refuse(s, "scenarios cannot scale the quantization factors: this row is a prediction only");
    if (choice->p_type != own.p_type || choice->p_offset != own.p_offset || choice->p_factor != own.p_factor)
        return session_refuse(s, "the type of P belongs to the kernel: this row is a prediction only");
    if (choice->scales != WHATIF_HEAD)
        whatif_scales(choice, scales, sizeof scales);
    if (s->run.trace->conventions.quantized != ASC_QUANTIZED_GIVEN)
        return session_refuse(s, "this kernel quantizes in its own launch: a scenario cannot choose its formats");
    for (int i = 0; i < 3; i++)
        if (session_set(s, keys[i], dtype_name((enum dtype)choice->type[i]), &err) != 0)
            return session_refuse(s, err.message);
    if (problem_has_codes(&s->subject.scenario.problem) &&
        (session_set(s, "quant.scales", scales, &err) != 0 ||
         (choice->scale_type != own.scale_type &&
          session_set(s, "quant.scale_type", problem_scale_type_names[choice->scale_type], &err) != 0)))
        return session_refuse(s, err.message);
    return session_rerun(s);
}
