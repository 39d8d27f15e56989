/* What a bundle says of itself: manifest.json, with the versions of all that took part, and repro.sh. */
#include "engine/base/bounded_json.h"
#include "engine/base/path.h"
#include "engine/build/process.h"
#include "engine/bundle/parts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_NAME "attnscope bundle"
#define TOOL_LIMIT_S 20.0
#define MANIFEST_BYTES ((size_t)1 << 20)

/* ---- versions ---- */

/* What a program says; "" where it fails. */
static void ask(const char *const *argv, struct process_output *said)
{
    if (process_capture(argv, TOOL_LIMIT_S, NULL, said, NULL) != 0)
        *said = (struct process_output){0};
    else if (said->status != 0)
        process_output_free(said);
}

static void first_line(const char *text, char *out, size_t bytes)
{
    snprintf(out, bytes, "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
}

static void version_of(const char *program, char *out, size_t bytes)
{
    struct process_output said;
    ask((const char *const[]){program, "--version", NULL}, &said);
    first_line(said.out, out, bytes);
    process_output_free(&said);
}

static void find_compiler(const struct bundle_subject *of, bool gpu, struct bundle_facts *facts)
{
    const char *given = getenv("ATTNSCOPE_CXX");
    char folder[600], nvcc[700];
    if (!gpu) {
        const bool checked = of->trace && of->trace->info.checked && !(given && *given);
        if (checked) /* build_cpu.c takes it where it is found */
            version_of("clang++", facts->compiler, sizeof facts->compiler);
        if (!facts->compiler[0])
            version_of(given && *given ? given : "g++", facts->compiler, sizeof facts->compiler);
        return;
    }
    struct process_output said;
    build_gpu_toolkit(folder, sizeof folder);
    snprintf(nvcc, sizeof nvcc, "%s/bin/nvcc", folder);
    ask((const char *const[]){nvcc, "--version", NULL}, &said);
    const char *release = said.out ? strstr(said.out, "release ") : NULL;
    if (release) {
        first_line(release, facts->compiler, sizeof facts->compiler);
        memmove(facts->compiler + 5, facts->compiler, strnlen(facts->compiler, sizeof facts->compiler - 6) + 1);
        memcpy(facts->compiler, "nvcc ", 5);
        facts->compiler[sizeof facts->compiler - 1] = '\0';
        snprintf(facts->cuda, sizeof facts->cuda, "%.*s", (int)strcspn(release + 8, ","), release + 8);
    }
    process_output_free(&said);
}

static void find_driver(char *out, size_t bytes)
{
    char line[512] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    if (file && fgets(line, sizeof line, file))
        first_line(line, out, bytes);
    if (file)
        fclose(file);
}

/* The commit that the kernel's folder is at; dirty: a packed source is not as that commit has it. */
static void find_commit(const struct sources *sources, struct bundle_facts *facts)
{
    char folder[PATH_MAX];
    struct process_output said;
    const char **argv = calloc(sources->n + 10, sizeof *argv);
    snprintf(folder, sizeof folder, "%.*s", path_folder(sources->kernel), sources->kernel);
    ask((const char *const[]){"git", "-C", folder, "rev-parse", "--verify", "HEAD", NULL}, &said);
    first_line(said.out, facts->commit, sizeof facts->commit);
    process_output_free(&said);
    if (facts->commit[0] && argv) {
        const char *const words[] = {"git", "-C", folder, "status", "--porcelain", "--ignored", "--"};
        size_t n = sizeof words / sizeof *words;
        memcpy(argv, words, sizeof words);
        for (size_t i = 0; i < sources->n; i++)
            argv[n++] = sources->at[i].path;
        const bool failed = process_capture(argv, TOOL_LIMIT_S, NULL, &said, NULL) != 0;
        facts->dirty = failed || said.status != 0 || said.n_out != 0;
        process_output_free(&said);
    }
    free(argv);
}

/* Of a saved trace the machine is not known that made it, beyond what the trace says. */
static void find_versions(const struct bundle_subject *of, const struct sources *sources, struct bundle_facts *facts)
{
    const struct trace *t = of->trace;
    const bool gpu = t && t->info.backend == BACKEND_GPU;
    snprintf(facts->attnscope, sizeof facts->attnscope, "%s", of->version);
    snprintf(facts->verdict, sizeof facts->verdict, "%s", of->verdict);
    snprintf(facts->error, sizeof facts->error, "%s", of->error);
    if (t) {
        snprintf(facts->kernel, sizeof facts->kernel, "%s", t->info.kernel);
        snprintf(facts->backend, sizeof facts->backend, "%s", gpu ? "gpu" : "cpu");
        snprintf(facts->gpu, sizeof facts->gpu, "%s", t->info.device);
    }
    if (!of->scenario)
        return;
    if (!facts->kernel[0])
        snprintf(facts->kernel, sizeof facts->kernel, "%s", path_name(of->scenario->kernel));
    find_compiler(of, gpu, facts);
    if (gpu)
        find_driver(facts->driver, sizeof facts->driver);
    find_commit(sources, facts);
}

/* ---- manifest and script ---- */

/* null for what is not known. */
static json_t *text_json(const char *text)
{
    json_t *json = *text ? json_string(text) : NULL;
    return json ? json : json_null();
}

static json_t *manifest_json(const struct bundle_facts *f)
{
    json_t *json = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "format", FORMAT_NAME, "version", BUNDLE_FORMAT,
                             "attnscope", text_json(f->attnscope), "kernel", text_json(f->kernel), "verdict",
                             text_json(f->verdict), "error", text_json(f->error));
    json_object_set_new(json, "build",
                        json_pack("{s:o, s:o, s:o, s:o, s:o}", "backend", text_json(f->backend), "compiler",
                                  text_json(f->compiler), "cuda", text_json(f->cuda), "driver", text_json(f->driver),
                                  "gpu", text_json(f->gpu)));
    json_object_set_new(json, "source",
                        f->commit[0] ? json_pack("{s:o, s:b}", "commit", text_json(f->commit), "dirty", f->dirty)
                                     : json_null());
    json_object_set_new(json, "slots",
                        f->recorded ? json_pack("{s:i, s:i}", "packed", f->slots, "recorded", f->recorded)
                                    : json_null());
    return json;
}

static int pack_script(const struct bundle_facts *f, const struct sources *sources, struct container *out,
                       struct err *err)
{
    char text[2048], kernel[CONTAINER_NAME_BYTES] = "";
    if (!container_find(out, BUNDLE_SCENARIO) || !source_place(sources, sources->kernel, kernel, sizeof kernel))
        return 0;
    const int n = snprintf(text, sizeof text,
                           "#!/bin/sh\n"
                           "# Builds %.300s and runs it here, as " BUNDLE_SCENARIO " says; it was %.31s.\n"
                           "# attnscope %.63s, %.200s%s%.100s. What follows goes to attnscope run.\n"
                           "cd \"$(dirname \"$0\")\" || exit\n"
                           "exec \"${ATTNSCOPE:-attnscope}\" run " BUNDLE_SCENARIO " \"$@\"\n",
                           kernel, f->verdict, f->attnscope, f->compiler[0] ? f->compiler : "a saved trace",
                           f->gpu[0] ? ", " : "", f->gpu);
    if (n < 0 || (size_t)n >= sizeof text)
        return err_set(err, ERR_INPUT, kernel, "has too long a path to be packed");
    return container_add_text(out, "repro.sh", text, true, err);
}

int manifest_pack(const struct bundle_subject *of, const struct sources *sources, int n_slots, struct container *out,
                  struct err *err)
{
    struct bundle_facts facts = {.slots = n_slots, .recorded = of->trace ? of->trace->layout.n_slots : 0};
    find_versions(of, sources, &facts);
    json_t *json = manifest_json(&facts);
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text)
        return err_no_memory(err, BUNDLE_MANIFEST, "the manifest");
    int failed = container_add_text(out, BUNDLE_MANIFEST, text, false, err);
    free(text);
    return failed ? -1 : pack_script(&facts, sources, out, err);
}

/* ---- reading ---- */

static void take_text(const json_t *from, const char *key, char *out, size_t bytes)
{
    const char *text = json_string_value(json_object_get(from, key));
    snprintf(out, bytes, "%s", text ? text : "");
}

static int take_count(const json_t *from, const char *key)
{
    const json_int_t n = json_integer_value(json_object_get(from, key));
    return n > 0 && n <= INT32_MAX ? (int)n : 0;
}

static int take_facts(const json_t *json, const char *path, struct bundle_facts *out, struct err *err)
{
    const char *format = json_string_value(json_object_get(json, "format"));
    if (!format || strcmp(format, FORMAT_NAME) != 0)
        return err_set(err, ERR_INPUT, path, "is a zip file, but no bundle: its " BUNDLE_MANIFEST " does not say so");
    if (json_integer_value(json_object_get(json, "version")) != BUNDLE_FORMAT)
        return err_set(err, ERR_INPUT, path, "is a bundle of another version; expected version %d", BUNDLE_FORMAT);
    const json_t *build = json_object_get(json, "build"), *source = json_object_get(json, "source"),
                 *slots = json_object_get(json, "slots");
    take_text(json, "attnscope", out->attnscope, sizeof out->attnscope);
    take_text(json, "kernel", out->kernel, sizeof out->kernel);
    take_text(json, "verdict", out->verdict, sizeof out->verdict);
    take_text(json, "error", out->error, sizeof out->error);
    take_text(build, "backend", out->backend, sizeof out->backend);
    take_text(build, "compiler", out->compiler, sizeof out->compiler);
    take_text(build, "cuda", out->cuda, sizeof out->cuda);
    take_text(build, "driver", out->driver, sizeof out->driver);
    take_text(build, "gpu", out->gpu, sizeof out->gpu);
    take_text(source, "commit", out->commit, sizeof out->commit);
    out->dirty = json_is_true(json_object_get(source, "dirty"));
    out->slots = take_count(slots, "packed");
    out->recorded = take_count(slots, "recorded");
    return 0;
}

int bundle_facts(struct container *c, struct bundle_facts *out, struct err *err)
{
    const struct container_entry *entry = container_find(c, BUNDLE_MANIFEST);
    char *text;
    *out = (struct bundle_facts){.slots = 0};
    if (!entry)
        return err_set(err, ERR_INPUT, c->path, "is a zip file, but no bundle: it holds no " BUNDLE_MANIFEST);
    if (container_read_text(c, entry, MANIFEST_BYTES, &text, err) != 0)
        return -1;
    json_t *json = bounded_json(text, entry->bytes, BUNDLE_MANIFEST, err);
    free(text);
    const int failed = json ? take_facts(json, c->path, out, err) : -1;
    json_decref(json);
    return failed;
}

int bundle_open(const struct runner_paths *paths, const char *path, struct bundle_opened *out, struct err *err)
{
    struct container c;
    *out = (struct bundle_opened){.open = false};
    snprintf(out->path, sizeof out->path, "%s", path);
    if (container_open(path, &c, err) != 0)
        return -1;
    int failed = bundle_facts(&c, &out->facts, err);
    if (!failed && cache_make_work(paths->cache, &out->work, err) == 0) {
        out->open = true;
        out->has_scenario = container_find(&c, BUNDLE_SCENARIO) != NULL;
        failed = container_unpack(&c, out->work.folder, err);
    } else {
        failed = -1;
    }
    container_free(&c);
    if (failed)
        bundle_close(out);
    return failed ? -1 : 0;
}

void bundle_close(struct bundle_opened *b)
{
    if (b->open)
        cache_drop_work(&b->work);
    b->open = false;
}
