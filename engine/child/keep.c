#include "engine/child/keep.h"

#include "engine/base/bounded_json.h"
#include "engine/base/json_memory.h"
#include "engine/base/keep.h"
#include "engine/base/pass_fd.h"
#include "engine/build/device.h"
#include "engine/child/guardian.h"
#include "engine/trace/conventions.h"
#include "engine/trace/own_values.h"
#include "engine/trace/trace_file.h"
#include "engine/trace/trace_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct keeper {
    const struct runner_paths *paths;
    struct guardian *guardian; /* NULL: none was asked for yet */
    int device;                /* of the guardian */
    struct trace *t;           /* NULL: no capture */
    char path[PATH_MAX];       /* where it is saved */
    bool begun;
    struct keep_request ended; /* how, while its values are copied */
    bool apart;                /* the file is open, all but the values written */
    struct trace_saving saving;
    bool over;    /* answered once more, it is forgotten */
    int replaced; /* owned: the file that was at the path, which is freed after the answer; -1 */
};

static void forget(struct keeper *k)
{
    if (k->apart)
        replace_drop(&k->saving.file);
    if (k->replaced >= 0)
        close(k->replaced);
    trace_free(k->t);
    k->t = NULL;
    k->begun = k->apart = k->over = false;
    k->replaced = -1;
}

/* A description, read. */
struct described {
    json_t *json; /* owned: {"cwd", "files", "values", "capture": what the user gave} */
    const json_t *given;
    struct trace *t; /* owned; problem, plan, conventions and info, no bytes */
    struct layout_types types;
    int32_t (*slots)[3]; /* owned */
    int n_slots;
};

static void described_free(struct described *d)
{
    json_decref(d->json);
    trace_free(d->t);
    free(d->slots);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* One entry of the metadata, what the user left out filled in. defaults is taken over. */
static char *entry(const json_t *given, const char *key, json_t *defaults)
{
    const json_t *of = json_object_get(given, key);
    json_t *all = of ? json_deep_copy(of) : json_object();
    json_object_update_missing(all, defaults);
    char *text = json_memory_dumps(all, JSON_COMPACT);
    json_decref(all);
    json_decref(defaults);
    return text;
}

static json_t *problem_defaults(const json_t *given)
{
    const json_t *problem = json_object_get(given, "problem");
    const json_int_t dim = json_integer_value(json_object_get(problem, "head_dim"));
    const json_t *lens = json_object_get(given, "sequences");
    return json_pack("{s:O*, s:O*, s:s, s:i, s:i, s:i, s:i, s:s, s:i, s:i, s:s, s:f, s:f}", "kv_heads",
                     json_object_get(problem, "heads"), "kv_len", json_object_get(problem, "q_len"), "causal", "none",
                     "window_left", -1, "window_right", -1, "has_sink", 0, "has_alibi", 0, "bias_kind", "none",
                     "has_q_lens", json_object_get(lens, "q_lens") != NULL, "has_kv_lens",
                     json_object_get(lens, "kv_lens") != NULL, "layout", "BHLD", "scale",
                     dim > 0 ? 1 / sqrt((double)dim) : 1.0, "softcap", 0.0);
}

/* A list of `rows` lists of n numbers, or, of one row, the list itself. NULL: it is none. The caller's. */
static int32_t *read_numbers(const json_t *list, size_t rows, size_t n)
{
    int32_t *out = calloc(rows * n + 1, sizeof *out);
    bool good = out && json_array_size(list) == (rows == 1 ? n : rows);
    for (size_t i = 0; i < rows * n && good; i++) {
        const json_t *row = rows == 1 ? list : json_array_get(list, i / n), *number = json_array_get(row, i % n);
        good = json_array_size(row) == n && json_is_integer(number) && json_integer_value(number) >= 0 &&
               json_integer_value(number) <= ASC_LENGTH_MAX;
        out[i] = good ? (int32_t)json_integer_value(number) : 0;
    }
    if (good)
        return out;
    free(out);
    return NULL;
}

/* "sequences": lengths, and the page table, which become the problem's. */
static int read_sequences(struct described *d, struct err *err)
{
    struct asc_problem *p = &d->t->problem;
    const json_t *all = json_object_get(d->given, "sequences");
    const struct {
        const char *name;
        const int32_t **to;
        int32_t *has;
        size_t rows, n;
    } lists[] = {{"q_lens", &p->q_lens, &p->has_q_lens, 1, (size_t)p->batch},
                 {"kv_lens", &p->kv_lens, &p->has_kv_lens, 1, (size_t)p->batch},
                 {"page_table", &p->page_table, NULL, (size_t)p->batch, (size_t)asc_table_pages(p)}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_t *list = json_object_get(all, lists[i].name);
        if (lists[i].has)
            *lists[i].has = list != NULL;
        if (list && !(*lists[i].to = read_numbers(list, lists[i].rows, lists[i].n)))
            return err_set(err, ERR_INPUT, "capture: sequences", "%s: expected %zu numbers for each of %d sequences",
                           lists[i].name, lists[i].has ? (size_t)1 : lists[i].n, p->batch);
    }
    if (!p->page_size != !p->page_table)
        return err_set(err, ERR_INPUT, "capture: sequences", "expected page_table and problem.page_size, or neither");
    if (p->layout == ASC_THD && (!p->has_q_lens || (!p->has_kv_lens)))
        return err_set(err, ERR_INPUT, "capture: sequences", "the layout THD: expected q_lens and kv_lens");
    return problem_check(p, "capture", err);
}

/* The keys that a saved trace has are what a capture is described by: the reader of those reads this. */
static int read_metadata(struct described *d, const char *kernel, const char *source, struct err *err)
{
    char types[] = "{\"o\": \"f32\", \"channels\": {}}", nothing[] = "[]", format[] = TRACE_FORMAT;
    char *problem = entry(d->given, "problem", problem_defaults(d->given));
    char *plan = entry(d->given, "plan", json_pack("{s:i, s:i}", "threads", 1024, "kv_splits", 0));
    char *conventions = entry(d->given, "conventions", json_object());
    char *run = entry(d->given, "run",
                      json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:f}", "kernel", kernel, "source_name",
                                source, "scenario_name", "", "patch_name", "", "backend", "gpu", "workers", 0, "status",
                                "", "status_text", "", "seconds", 0.0));
    const struct safetensors_text texts[] = {{"attnscope.format", format}, {"attnscope.problem", problem},
                                             {"attnscope.plan", plan},     {"attnscope.conventions", conventions},
                                             {"attnscope.types", types},   {"attnscope.run", run},
                                             {"attnscope.sites", nothing}, {"attnscope.events", nothing}};
    unsigned char *header = NULL;
    size_t n_bytes = 0;
    struct safetensors *file = NULL;
    struct layout_types unused = {0};
    int failed = !problem || !plan || !conventions || !run ? err_no_memory(err, "capture", "its description") : 0;
    if (!failed)
        failed = safetensors_header(NULL, 0, texts, sizeof texts / sizeof *texts, &header, &n_bytes, err) ||
                 safetensors_parse(header, n_bytes, "capture", &file, err) ||
                 trace_metadata_read(file, "capture", d->t, &unused, err);
    safetensors_free(file);
    free(header);
    free(problem);
    free(plan);
    free(conventions);
    free(run);
    const struct asc_problem *p = &d->t->problem;
    failed = failed || read_sequences(d, err) != 0;
    if (!failed && p->lie)
        failed = err_set(err, ERR_INPUT, "capture", "strides are those of the tensors: expected none in problem");
    if (!failed && p->new_keys)
        failed = err_set(err, ERR_INPUT, "capture",
                         "keys that the kernel appends to its cache (new_keys) are not taken yet");
    if (!failed && p->dropout > 0)
        failed =
            err_set(err, ERR_INPUT, "capture", "dropout is not taken yet: which weights it keeps is no tensor here");
    if (!failed && d->t->plan.kv_deal == ASC_DEAL_MAP)
        failed = err_set(err, ERR_INPUT, "capture",
                         "splits by a map are not taken yet: expected kv tiles dealt as ranges or round-robin");
    return failed ? -1 : 0;
}

static bool is_convention(const struct described *d, const char *name)
{
    (void)d;
    for (int i = 0; i < CONVENTIONS; i++)
        if (strcmp(conventions[i].name, name) == 0)
            return true;
    return false;
}

static bool is_channel(const struct described *d, const char *name)
{
    return plan_channel_from_name(&d->t->plan, name) >= 0;
}

/* Names that nobody knows would be left out in silence. `of`: an object, or a list of names; NULL or null: none. */
static int check_names(const struct described *d, const json_t *of, bool is_list, const char *where, const char *what,
                       bool (*known)(const struct described *d, const char *name), struct err *err)
{
    json_t *value;
    const char *name;
    size_t i;
    if (of && !json_is_null(of) && !(is_list ? json_is_array(of) : json_is_object(of)))
        return err_set(err, ERR_INPUT, where, "expected %s", is_list ? "a list of names" : "an object");
    if (json_is_array(of)) {
        json_array_foreach(of, i, value)
        {
            if (!json_is_string(value) || !known(d, json_string_value(value)))
                return err_set(err, ERR_INPUT, where, "%.60s is not the name of a %s",
                               json_is_string(value) ? json_string_value(value) : "an entry", what);
        }
    }
    json_object_foreach((json_t *)(uintptr_t)of, name, value)
    {
        if (!known(d, name))
            return err_set(err, ERR_INPUT, where, "%.60s is not the name of a %s", name, what);
    }
    return 0;
}

static int read_type(const json_t *types, const char *key, int by_default, int32_t *out, struct err *err)
{
    const json_t *name = json_object_get(types, key);
    *out = name ? dtype_from_name(json_string_value(name)) : by_default;
    return *out < 0 ? err_set(err, ERR_INPUT, "capture: types", "%s must be the name of an element type", key) : 0;
}

/* Whether the user wants this channel: no list of them means all. */
static bool wanted(const json_t *capture, const char *name)
{
    const json_t *list = json_object_get(capture, "channels");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)) ? json_string_value(json_array_get(list, i)) : "",
                   name) == 0)
            return true;
    return !list || json_is_null(list);
}

static int read_types(struct described *d, struct err *err)
{
    const json_t *types = json_object_get(d->given, "types"), *of = json_object_get(types, "channels");
    const json_t *capture = json_object_get(d->given, "capture");
    const struct trace *t = d->t;
    if (check_names(d, json_object_get(d->given, "conventions"), false, "capture: conventions", "convention",
                    is_convention, err) ||
        check_names(d, of, false, "capture: types", "channel", is_channel, err) ||
        check_names(d, json_object_get(capture, "channels"), true, "capture: channels", "channel", is_channel, err))
        return -1;
    if (read_type(types, "o", problem_o_dtype(&t->problem, -1), &d->types.o, err) != 0)
        return -1;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        d->types.channel[ch] = -1;
    for (size_t i = 0; i < t->info.n_sites; i++) {
        const enum asc_channel ch = t->info.sites[i].channel;
        if (channel_is_own(ch)) {
            d->types.channel[ch] = t->plan.value[ch - ASC_CHANNELS].dtype;
            continue;
        }
        const int by_default = conventions_channel(&t->conventions, &t->problem, d->types.o, ch);
        if (wanted(capture, channel_name(ch)) &&
            read_type(of, channel_name(ch), by_default, &d->types.channel[ch], err) != 0)
            return -1;
    }
    return 0;
}

/* Every q tile, or those of "tiles": [[batch, head, q tile], ...]. */
static int read_slots(struct described *d, struct err *err)
{
    const struct asc_problem *p = &d->t->problem;
    const json_t *list = json_object_get(json_object_get(d->given, "capture"), "tiles");
    const bool all = !list || json_is_null(list);
    const int64_t q_tiles = (p->q_len + (int64_t)d->t->plan.br - 1) / (d->t->plan.br > 0 ? d->t->plan.br : 1);
    const int64_t n = all ? (int64_t)p->batch * p->heads * q_tiles : (int64_t)json_array_size(list);
    if (d->t->plan.br < 1)
        return err_set(err, ERR_INPUT, "capture: plan", "br must be positive");
    if (n < 1 || n > INT32_MAX / 3)
        return err_set(err, ERR_INPUT, "capture: tiles", "%lld q tiles; expected a list of [batch, head, q tile]",
                       (long long)n);
    d->n_slots = (int)n;
    d->slots = calloc((size_t)n, sizeof *d->slots);
    if (!d->slots)
        return err_no_memory(err, "capture", "its slots");
    for (int64_t i = 0; i < n && all; i++) {
        d->slots[i][0] = (int32_t)(i / q_tiles / p->heads);
        d->slots[i][1] = (int32_t)(i / q_tiles % p->heads);
        d->slots[i][2] = (int32_t)(i % q_tiles);
    }
    for (int64_t i = 0; i < n && !all; i++)
        for (size_t place = 0; place < 3; place++) {
            const json_t *number = json_array_get(json_array_get(list, (size_t)i), place);
            if (!json_is_integer(number) || json_integer_value(number) < 0 || json_integer_value(number) > INT32_MAX)
                return err_set(err, ERR_INPUT, "capture: tiles", "entry %lld must be [batch, head, q tile]",
                               (long long)i);
            d->slots[i][place] = (int32_t)json_integer_value(number);
        }
    return 0;
}

static int read_files(struct described *d, struct err *err)
{
    const json_t *list = json_object_get(d->json, "files");
    const size_t n = json_array_size(list);
    const char **files = calloc(n + 1, sizeof *files);
    struct trace_info *info = &d->t->info;
    if (!files)
        return err_no_memory(err, "capture", "its files");
    for (size_t i = 0; i < n; i++)
        files[i] = json_string_value(json_array_get(list, i)) ? json_string_value(json_array_get(list, i)) : "";
    free(info->sites);
    info->sites = NULL;
    const char *values = text_of(d->json, "values");
    if (*values && own_values_parse(values, "capture", d->t->plan.value, err) != 0) {
        free(files);
        return -1;
    }
    const int failed = keep_probe_lines(files, n, &d->t->plan, &info->sites, &info->n_sites, err);
    free(files);
    for (size_t i = 0; !failed && i < info->n_sites; i++)
        trace_add_source(d->t, info->sites[i].file, info->sites[i].file);
    if (!failed && !info->n_sites)
        return err_set(err, ERR_INPUT, "capture",
                       "no probe was found in the text of %s%s; name its sources where they are elsewhere",
                       n ? text_of(d->json, "first") : "any file", n > 1 ? " and others" : "");
    return failed;
}

static int describe(struct keeper *k, int fd, struct described *d, struct err *err)
{
    struct stat status;
    char kernel[64];
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size < 1 || status.st_size > KEEP_DESCRIPTION_MAX)
        return err_set(err, ERR_INPUT, "capture", "its description is empty or too long");
    const size_t n = (size_t)status.st_size;
    char *text = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return err_errno(err, "capture", "its description cannot be read");
    d->json = bounded_json(text, n, "capture", err);
    munmap(text, n);
    if (!d->json)
        return -1;
    d->given = json_object_get(d->json, "capture");
    const char *cwd = text_of(d->json, "cwd"), *path = text_of(json_object_get(d->given, "capture"), "path");
    const char *source = text_of(d->json, "first"), *slash = strrchr(source, '/');
    if (*cwd && chdir(cwd) != 0)
        return err_errno(err, cwd, "cannot be entered");
    if (!*path || strlen(path) >= sizeof k->path)
        return err_set(err, ERR_INPUT, "capture: path", "names no file");
    snprintf(k->path, sizeof k->path, "%s", path);
    snprintf(kernel, sizeof kernel, "%.*s", (int)strcspn(slash ? slash + 1 : source, "."), slash ? slash + 1 : source);
    d->t = calloc(1, sizeof *d->t);
    if (!d->t)
        return err_no_memory(err, "capture", "its trace");
    d->t->fd = -1;
    if (read_metadata(d, kernel, runner_short_path(source), err) != 0 || read_files(d, err) != 0)
        return -1;
    return read_types(d, err) || read_slots(d, err);
}

static int memory_wanted(const json_t *given, int *out, struct err *err)
{
    const char *name = text_of(json_object_get(given, "capture"), "memory");
    for (*out = MEMORY_AUTO; memory_names[*out]; ++*out)
        if (strcmp(*name ? name : memory_names[MEMORY_AUTO], memory_names[*out]) == 0)
            return 0;
    return err_set(err, ERR_INPUT, "capture: memory", "'%s' is not auto, guard, device or pinned", name);
}

static int ask_guardian(struct keeper *k, int device, int memory, struct keep_answer *answer, struct err *err)
{
    struct err why = {0};
    if (k->guardian && (!guardian_alive(k->guardian) || k->device != device)) {
        guardian_stop(k->guardian);
        k->guardian = NULL;
    }
    if (!k->guardian)
        k->guardian = guardian_start(k->paths, device);
    k->device = device;
    if (k->guardian && guardian_take(k->guardian, k->t, answer->handle, &why) == 0) {
        answer->guarded = 1;
        return 0;
    }
    snprintf(answer->memory_why, sizeof answer->memory_why, "%s", why.message);
    return memory == MEMORY_GUARD ? err_set(err, ERR_SYSTEM, "capture: memory", "guard cannot be had: %s", why.message)
                                  : 0;
}

static int make(struct keeper *k, const struct keep_request *request, int fd, struct keep_answer *answer,
                struct err *err)
{
    struct described d = {0};
    const struct trace_inputs inputs = {.values_later = true};
    int memory = MEMORY_AUTO;
    forget(k);
    if (request->abi != ASC_ABI_VERSION)
        return err_set(err, ERR_ABI, "capture", "the library is of ABI version %u, this program of %u", request->abi,
                       ASC_ABI_VERSION);
    int failed = describe(k, fd, &d, err) || memory_wanted(d.given, &memory, err) ||
                 trace_create_in(NULL, &d.t->problem, &d.t->plan, &d.t->conventions, &d.types,
                                 (const int32_t(*)[3])(const void *)d.slots, d.n_slots, &inputs, &k->t, err);
    if (!failed) {
        k->t->info = d.t->info;
        memset(&d.t->info, 0, sizeof d.t->info);
        answer->memory = memory;
        if (memory == MEMORY_AUTO || memory == MEMORY_GUARD)
            failed = ask_guardian(k, request->device, memory, answer, err);
    }
    described_free(&d);
    if (failed)
        forget(k);
    return failed ? -1 : 0;
}

/* The output as the probes saw it, where nobody hands it over: q tiles that were not recorded stay never-written. */
static void take_from_channel(struct trace *t, enum asc_channel ch, const struct layout_part *to, int cols)
{
    const struct asc_problem *p = &t->problem;
    const struct problem_tensor o = problem_tensor(p, TENSOR_O);
    const size_t bytes = dtype_bytes((enum dtype)to->dtype);
    unsigned char *file = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (file == MAP_FAILED)
        return;
    for (int slot = 0; slot < t->layout.n_slots; slot++) {
        const struct tile tile = trace_tile(t, ch, slot, 0);
        const int32_t *place = trace_slot_place(t, slot);
        for (int row = 0; row < tile.valid_rows && (int)tile.dtype == to->dtype; row++) {
            const int64_t i = (int64_t)place[2] * t->plan.br + row;
            const int64_t at = ch == asc_lse ? ((int64_t)place[0] * p->heads + place[1]) * p->q_len + i
                                             : problem_tensor_at(&o, place[0], place[1], i);
            memcpy(file + to->offset + (size_t)at * bytes,
                   (const unsigned char *)tile.data + (size_t)row * (size_t)tile.cols * bytes, (size_t)cols * bytes);
        }
    }
    munmap(file, t->n_bytes);
}

/* Numbers of cuda.h's CUresult; -1: the process is gone. */
static enum event_kind stopped_by(int failed)
{
    switch (failed) {
    case 0:
        return EVENT_NONE;
    case -1:
        return EVENT_CRASH;
    case 700: /* illegal address */
    case 714: /* hardware stack error */
    case 717: /* invalid address space */
    case 718: /* invalid pc */
        return EVENT_ADDRESS;
    case 710:
        return EVENT_ASSERT;
    case 716:
        return EVENT_MISALIGNED;
    default: /* __trap() is a launch failure */
        return EVENT_TRAP;
    }
}

static void add_event(struct trace_info *info, enum event_kind kind, const char *text)
{
    free(info->events);
    info->events = kind == EVENT_NONE ? NULL : calloc(1, sizeof *info->events);
    info->n_events = info->events != NULL;
    if (!info->events)
        return;
    trace_event_init(info->events);
    info->events->kind = kind;
    snprintf(info->events->text, sizeof info->events->text, "%s", text);
}

/* What is known of the run when it has ended. */
static void describe_end(struct keeper *k, const struct keep_request *request)
{
    struct trace *t = k->t;
    struct trace_info *info = &t->info;
    if (!request->has_lse && !request->failed && t->layout.channel[asc_lse].dtype < 0)
        t->conventions.no_lse = 1;
    info->status = request->failed ? RUN_CRASHED : RUN_COMPLETE;
    info->stopped = stopped_by(request->failed);
    add_event(info, info->stopped, request->text);
    snprintf(info->status_text, sizeof info->status_text, "%s", request->text);
    info->seconds = request->seconds;
    if (t->conventions.acc_s != ASC_ACC_F32 || t->conventions.acc_u != ASC_ACC_F32) {
        struct gpu_device gpu;
        struct err none = {0};
        if (device_find(k->paths, &gpu, &none) == 0) {
            device_cores(k->paths, &gpu);
            snprintf(info->cores, sizeof info->cores, "%s", gpu.cores);
        }
    }
}

static int lose_values(struct keeper *k, const char *why, struct err *err)
{
    if (k->apart)
        replace_drop(&k->saving.file);
    k->apart = false;
    snprintf(k->t->info.memory_why, sizeof k->t->info.memory_why, "what was recorded is lost%s%s", *why ? ": " : "",
             why);
    return trace_fill_values(k->t, err);
}

/* The values are where they belong. */
static int finish(struct keeper *k, const struct keep_request *request, struct err *err)
{
    struct trace *t = k->t;
    k->replaced = open(k->path, O_PATH | O_CLOEXEC);
    if (k->apart) {
        k->apart = false;
        return replace_commit(&k->saving.file, err);
    }
    if (!request->has_o && t->layout.channel[asc_o].dtype >= 0)
        take_from_channel(t, asc_o, &t->layout.o, t->problem.head_dim_v);
    if (!request->has_lse && t->layout.channel[asc_lse].dtype >= 0)
        take_from_channel(t, asc_lse, &t->layout.lse, 1);
    return trace_save(t, k->path, err);
}

/* Where values go that are in device memory: into the file that becomes the trace; by way of the memory file where
   outputs are taken from them, or their tiles lie apart. The file, or -1. */
static int open_destination(struct keeper *k, const struct keep_request *request, struct values_piece *piece,
                            uint32_t *n, struct err *err)
{
    const struct layout *l = &k->t->layout;
    const bool handed_over =
        (request->has_o || l->channel[asc_o].dtype < 0) && (request->has_lse || l->channel[asc_lse].dtype < 0);
    if (!handed_over || !trace_saves_apart(k->t)) {
        *piece = (struct values_piece){0, l->values_offset, l->total_bytes - l->values_offset};
        *n = 1;
        return k->t->fd;
    }
    if (trace_save_begin(k->t, k->path, &k->saving, err) != 0)
        return -1;
    k->apart = true;
    *n = k->saving.n;
    memcpy(piece, k->saving.piece, k->saving.n * sizeof *piece);
    return fileno(k->saving.file.file);
}

/* answer: NULL: the process is gone. *out: the file that it copies to; -1: it is saved. */
static int end(struct keeper *k, const struct keep_request *request, struct keep_answer *answer, int *out,
               struct err *err)
{
    const enum memory_kind memory = k->t->info.memory;
    struct values_piece piece[GUARDIAN_PARTS];
    uint32_t n = 0;
    struct err why = {0};
    const bool lost = memory == MEMORY_DEVICE && (!answer || request->lost);
    describe_end(k, request);
    if (lost && lose_values(k, "", err) != 0)
        return -1;
    if (lost || memory == MEMORY_PINNED)
        return finish(k, request, err);
    const int to = open_destination(k, request, piece, &n, err);
    if (to < 0)
        return -1;
    if (memory == MEMORY_DEVICE) {
        memcpy(answer->piece, piece, n * sizeof *piece);
        answer->n_pieces = n;
        k->ended = *request;
        *out = to;
        return 0;
    }
    if (guardian_copy(k->guardian, piece, n, to, &why) != 0 && lose_values(k, why.message, err) != 0)
        return -1;
    return finish(k, request, err);
}

static int copied(struct keeper *k, const struct keep_request *request, struct err *err)
{
    return *request->text ? err_set(err, ERR_SYSTEM, k->path, "%s", request->text) : finish(k, &k->ended, err);
}

/* Pinned values are filled here, before a probe writes. */
static int begin(struct keeper *k, const struct keep_request *request, struct err *err)
{
    struct trace_info *info = &k->t->info;
    info->memory = (enum memory_kind)request->memory;
    snprintf(info->memory_why, sizeof info->memory_why, "%s", request->memory_why);
    snprintf(info->device, sizeof info->device, "%s", request->device_name);
    k->begun = true;
    return info->memory == MEMORY_PINNED ? trace_fill_values(k->t, err) : 0;
}

/* The file that goes with the answer, or -1. */
static int answer_request(struct keeper *k, const struct keep_request *request, int fd, struct keep_answer *answer)
{
    struct err err = {0};
    int failed = 0, out = -1;
    if (request->op == KEEP_MAKE) {
        failed = make(k, request, fd, answer, &err);
        out = failed ? -1 : k->t->fd;
    } else if (request->op == KEEP_BEGIN && k->t) {
        failed = begin(k, request, &err);
    } else if (request->op == KEEP_END && k->t) {
        failed = end(k, request, answer, &out, &err);
        k->over = failed || out < 0;
    } else if (request->op == KEEP_COPIED && k->t) {
        failed = copied(k, request, &err);
        k->over = true;
    } else {
        forget(k);
    }
    if (failed)
        snprintf(answer->failure, sizeof answer->failure, "%s%s%s", err.where, *err.where ? ": " : "", err.message);
    return out;
}

int keep_serve(const struct runner_paths *paths, int socket)
{
    static struct keep_request request;
    static struct keeper k = {.replaced = -1};
    int fd;
    k.paths = paths;
    while (pass_fd_receive(socket, &request, sizeof request, 0, &fd) == (ssize_t)sizeof request) {
        struct keep_answer answer = {0};
        const int out = answer_request(&k, &request, fd, &answer);
        if (fd >= 0)
            close(fd);
        if (pass_fd_send(socket, &answer, sizeof answer, out) != (ssize_t)sizeof answer)
            break;
        if (k.over)
            forget(&k);
    }
    if (k.t && k.begun) {
        const struct keep_request gone = {.failed = -1, .text = "the process ended while its kernel was captured"};
        struct err err = {0};
        int none;
        end(&k, &gone, NULL, &none, &err);
    }
    forget(&k);
    guardian_stop(k.guardian);
    return 0;
}
