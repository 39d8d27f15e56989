/* What goes into a bundle: the user's sources and where they lie, scenario, trace, verdict. */
#include "engine/base/path.h"
#include "engine/bundle/parts.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the scenario, which names the files of the bundle ---- */

/* What else than sources the scenario names, as it is packed. */
struct placing {
    const struct sources *sources;
    const char *trace; /* where it lies now; "": there is none */
    struct container *out;
    int inputs;
    struct err *err; /* what could not be packed */
};

/* The file and where an array of it is named. */
static bool place_input(struct placing *p, const char *path, char *out, size_t bytes)
{
    char file[PATH_MAX];
    const size_t n = array_file_bytes(path);
    snprintf(file, sizeof file, "%.*s", (int)n, path);
    if (strcmp(file, p->trace) == 0) {
        snprintf(out, bytes, BUNDLE_TRACE "%s", path + n);
        return true;
    }
    for (size_t i = 0; i < p->out->n; i++) {
        const struct container_entry *entry = &p->out->entries[i];
        if (entry->path && strcmp(entry->path, file) == 0) {
            snprintf(out, bytes, "%s%s", entry->name, path + n);
            return true;
        }
    }
    char name[CONTAINER_NAME_BYTES];
    snprintf(name, sizeof name, "inputs/%d/%s", p->inputs++, path_name(file));
    if (p->err->code == ERR_NONE)
        container_add_file(p->out, name, file, p->err);
    snprintf(out, bytes, "%s%s", name, path + n);
    return true;
}

static bool place(void *ctx, enum scenario_key_id id, const char *path, char *out, size_t bytes)
{
    struct placing *p = ctx;
    if (id == KEY_PATCH) {
        snprintf(out, bytes, "patch/%s", path_name(path));
        if (p->err->code == ERR_NONE)
            container_add_file(p->out, out, path, p->err);
        return true;
    }
    if (id == KEY_KERNEL)
        return source_place(p->sources, p->sources->kernel, out, bytes);
    if (id != KEY_INCLUDE)
        return place_input(p, path, out, bytes);
    char real[PATH_MAX];
    return realpath(path, real) && sources_hold(p->sources, real) && source_place(p->sources, real, out, bytes);
}

/* The inputs are those of the trace: they lie there as the kernel got them, cut and rounded. */
static int take_inputs(struct scenario *s, const char *trace, struct err *err)
{
    for (int id = KEY_INPUT_FROM; id <= KEY_INPUT_KV_ROWS; id++) {
        free(s->said[id]);
        s->said[id] = NULL;
        s->stated[id] = false;
    }
    s->inputs = (struct inputs){0};
    return scenario_set(s, "inputs.from", trace, err);
}

/* The kernel's text is in a trace, patched; its macros and flags stand in one line. */
static int scenario_of_trace(const struct trace *t, const struct sources *from, const char *trace, struct scenario *out,
                             struct err *err)
{
    const char *words = t->info.define;
    char word[512];
    scenario_init(out);
    int failed = scenario_set(out, "scenario.kernel", from->kernel, err);
    while (!failed && value_next(&words, word, sizeof word))
        failed = word[0] == '-' ? scenario_add_word(out, KEY_FLAGS, word, BUNDLE_SCENARIO, err)
                                : scenario_define(out, word, err);
    if (!failed && t->info.checked)
        failed = scenario_set(out, "scenario.checks", "yes", err);
    if (!failed && t->info.probes_off)
        failed = scenario_set(out, "scenario.probes", "off", err);
    return failed || scenario_set(out, "inputs.from", trace, err) != 0 ? -1 : 0;
}

static int pack_scenario(const struct bundle_subject *of, const struct sources *sources, const char *trace,
                         struct container *out, struct err *err)
{
    struct scenario own;
    struct err why = {0};
    struct placing placing = {sources, trace, out, 0, &why};
    char *text = NULL;
    size_t bytes = 0;
    if (!of->scenario && !of->trace)
        return err_set(err, ERR_INPUT, BUNDLE_SCENARIO, "there is neither a scenario nor a trace to pack");
    int failed =
        of->scenario ? scenario_copy(of->scenario, &own) : scenario_of_trace(of->trace, sources, trace, &own, err);
    if (failed && of->scenario)
        return err_no_memory(err, BUNDLE_SCENARIO, "the scenario");
    if (!failed && of->scenario && trace[0] && scenario_has_inputs(&own))
        failed = take_inputs(&own, trace, err);
    /* A kernel by itself is a scenario that says no more. */
    if (!failed && !scenario_said(&own, KEY_KERNEL))
        failed = scenario_set(&own, "scenario.kernel", own.kernel, err);
    FILE *stream = failed ? NULL : open_memstream(&text, &bytes);
    if (!failed && !stream)
        failed = err_no_memory(err, BUNDLE_SCENARIO, "the scenario");
    if (!failed)
        failed = scenario_write_as(&own, stream, BUNDLE_SCENARIO, &(struct scenario_places){place, &placing}, err);
    if (stream && fclose(stream) != 0 && !failed)
        failed = err_no_memory(err, BUNDLE_SCENARIO, "the scenario");
    if (!failed && why.code != ERR_NONE) {
        *err = why;
        failed = -1;
    }
    if (!failed)
        failed = container_add_text(out, BUNDLE_SCENARIO, text, false, err);
    free(text);
    scenario_free(&own);
    return failed ? -1 : 0;
}

/* ---- the trace ---- */

static bool slot_bad(const struct bundle_subject *of, int slot)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int kv = 0; kv < of->trace->layout.kv_tiles; kv++) {
            const struct place at = {slot, kv, (enum asc_channel)ch};
            if (judgement_tile_bad(of->judgement, at, false) || judgement_tile_bad(of->judgement, at, true))
                return true;
        }
    return false;
}

/* Those that fail, as many as there is room for; where none does, the first. *n of them. */
static int *choose_slots(const struct bundle_subject *of, uint64_t slot_bytes, int *n)
{
    const struct layout *l = &of->trace->layout;
    const uint64_t values = (uint64_t)l->n_slots * slot_bytes, fixed = l->total_bytes - values;
    const uint64_t room = of->trace_bytes > fixed ? (of->trace_bytes - fixed) / slot_bytes : 0;
    int *slots = calloc((size_t)l->n_slots, sizeof *slots);
    *n = 0;
    for (int only_bad = 1; slots && only_bad >= 0 && *n == 0; only_bad--)
        for (int slot = 0; slot < l->n_slots && (uint64_t)*n < (room ? room : 1); slot++)
            if (!only_bad || (of->judgement && slot_bad(of, slot)))
                slots[(*n)++] = slot;
    return slots;
}

static int slot_size(const struct trace *t, uint64_t *bytes, struct err *err)
{
    const struct layout_types types = layout_types_of(&t->layout);
    return layout_slot_bytes(&t->problem, &t->plan, &types, bytes, err);
}

/* How the trace that is packed names what lies beside it. Inputs are its own. */
static bool place_beside(void *ctx, enum scenario_key_id id, const char *path, char *out, size_t bytes)
{
    const struct sources *sources = ctx;
    if (id == KEY_KERNEL)
        return sources->n > 0 && source_place(sources, sources->kernel, out, bytes);
    if (id == KEY_INCLUDE) {
        char real[PATH_MAX];
        return realpath(path, real) && sources_hold(sources, real) && source_place(sources, real, out, bytes);
    }
    if (id == KEY_PATCH)
        snprintf(out, bytes, "patch/%s", path_name(path));
    else
        snprintf(out, bytes, "%s", BUNDLE_TRACE);
    return true;
}

static int save_trace(const struct bundle_subject *of, const int *slots, int n, const struct sources *sources,
                      const char *path, struct err *err)
{
    struct trace saved = *of->trace;
    saved.info.settings = scenario_settings_as(of->trace->info.settings,
                                               &(struct scenario_places){place_beside, (void *)(uintptr_t)sources});
    const int failed = slots ? trace_save_slots(&saved, slots, n, path, err) : trace_save(&saved, path, err);
    free(saved.info.settings);
    return failed;
}

static int pack_trace(const struct bundle_subject *of, const struct sources *sources, const char *path, int *n_slots,
                      struct container *out, struct err *err)
{
    const struct layout *l = &of->trace->layout;
    uint64_t slot_bytes = 0;
    *n_slots = l->n_slots;
    if (l->total_bytes <= of->trace_bytes)
        return save_trace(of, NULL, 0, sources, path, err) != 0 ? -1 : container_add_file(out, BUNDLE_TRACE, path, err);
    if (slot_size(of->trace, &slot_bytes, err) != 0)
        return -1;
    int *slots = choose_slots(of, slot_bytes, n_slots);
    const int failed = slots ? save_trace(of, slots, *n_slots, sources, path, err)
                             : err_no_memory(err, BUNDLE_TRACE, "the list of slots");
    free(slots);
    return failed ? -1 : container_add_file(out, BUNDLE_TRACE, path, err);
}

/* ---- all of it ---- */

/* In the order that the list has; the trace, which is large, at the end. */
static void order(struct container *c)
{
    static const char *const first[] = {BUNDLE_MANIFEST, "repro.sh", BUNDLE_SCENARIO, BUNDLE_VERDICT};
    size_t at = 0;
    for (size_t f = 0; f < sizeof first / sizeof *first; f++)
        for (size_t i = at; i < c->n; i++)
            if (strcmp(c->entries[i].name, first[f]) == 0) {
                const struct container_entry entry = c->entries[i];
                memmove(&c->entries[at + 1], &c->entries[at], (i - at) * sizeof entry);
                c->entries[at++] = entry;
            }
    for (size_t i = 0; i + 1 < c->n; i++)
        if (strcmp(c->entries[i].name, BUNDLE_TRACE) == 0) {
            const struct container_entry entry = c->entries[i];
            memmove(&c->entries[i], &c->entries[i + 1], (c->n - i - 1) * sizeof entry);
            c->entries[c->n - 1] = entry;
            return;
        }
}

int bundle_collect(const struct bundle_subject *of, const struct cache_work *work, struct container *out,
                   struct err *err)
{
    struct sources sources = {0};
    char trace[700] = "";
    int n_slots = 0;
    *out = (struct container){0};
    if (of->trace)
        snprintf(trace, sizeof trace, "%s/" BUNDLE_TRACE, work->folder);
    int failed = of->scenario ? sources_of_build(of, &sources, err) : sources_of_trace(of->trace, &sources, err);
    if (!failed && of->trace)
        failed = pack_trace(of, &sources, trace, &n_slots, out, err);
    if (!failed)
        failed = sources_pack(&sources, out, err);
    if (!failed && sources.n)
        failed = pack_scenario(of, &sources, trace, out, err);
    if (!failed)
        failed = container_add_text(out, BUNDLE_VERDICT, of->verdict_json, false, err);
    if (!failed)
        failed = manifest_pack(of, &sources, n_slots, out, err);
    sources_free(&sources);
    if (failed)
        container_free(out);
    else
        order(out);
    return failed ? -1 : 0;
}

int bundle_problem(const struct runner_paths *paths, const struct scenario *scenario, struct container *out,
                   struct err *err)
{
    const struct bundle_subject of = {.paths = paths, .scenario = scenario};
    struct sources sources = {0};
    *out = (struct container){0};
    int failed = sources_of_text(paths, scenario, &sources, err) != 0 || sources_pack(&sources, out, err) != 0 ||
                 pack_scenario(&of, &sources, "", out, err) != 0;
    sources_free(&sources);
    if (failed)
        container_free(out);
    return failed ? -1 : 0;
}
