#include "engine/run/record.h"
#include "engine/run/gpu_judge.h"
#include "engine/run/gpu_process.h"

#include "engine/base/clock.h"
#include "engine/base/path.h"
#include "engine/base/pool.h"
#include "engine/base/tensor_core.h"
#include "engine/base/units.h"
#include "engine/oracle/codes.h"
#include "engine/remote/remote.h"
#include "engine/run/bounded.h"
#include "engine/run/feed.h"
#include "engine/run/inputs.h"
#include "engine/scenario/keys.h"
#include "engine/trace/conventions.h"
#include "engine/trace/trace_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int backend_wish(const struct scenario *scenario, int *out, struct err *err)
{
    static const char *const names[] = {"auto", "gpu", "cpu"};
    const char *given = getenv("ATTNSCOPE_BACKEND");
    *out = scenario->checks ? SCENARIO_BACKEND_CPU : scenario->backend;
    if (*out != SCENARIO_BACKEND_AUTO || !given || !*given)
        return 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(given, names[i]) == 0) {
            *out = i;
            return 0;
        }
    return err_set(err, ERR_INPUT, "ATTNSCOPE_BACKEND", "expected auto, gpu or cpu, found '%s'", given);
}

int backend_choose(const struct runner_paths *paths, const struct scenario *scenario, struct build_request *request,
                   struct gpu_device *gpu, char *note, size_t size, struct err *err)
{
    struct err why = {0};
    int wanted;
    snprintf(note, size, "%s", "");
    if (backend_wish(scenario, &wanted, err) != 0)
        return -1;
    request->backend = BACKEND_CPU;
    request->checks = scenario->checks;
    request->gpu = NULL;
    request->debug = scenario->debug == SCENARIO_DEBUG_FULL ? GPU_FULL : GPU_LINEINFO;
    if (wanted == SCENARIO_BACKEND_CPU)
        return 0;
    const int no_device = device_find(paths, gpu, &why), no_compiler = !no_device && build_gpu_ready(paths, &why);
    if (!no_device && !no_compiler) {
        request->backend = BACKEND_GPU;
        request->gpu = gpu;
        return 0;
    }
    if (wanted == SCENARIO_BACKEND_GPU) {
        *err = why;
        return -1;
    }
    if (no_compiler)
        snprintf(note, size, "%s is not used: %s%s%s", gpu->name, why.where, *why.where ? ": " : "", why.message);
    return 0;
}

/* What a run records: n of slots. */
struct record_selection {
    struct asc_plan plan;
    struct layout_types types;
    int32_t (*slots)[3]; /* borrowed, [n] */
    int n;
};

/* The one that is wanted, if the set has it, else its first. An empty set stands for `same`. */
static int32_t choose_dtype(uint32_t set, int32_t wanted, int32_t same)
{
    if (!set)
        return same;
    return (set & 1u << wanted) ? wanted : (int32_t)__builtin_ctz(set);
}

void adopt_types(const struct child_hello *hello, struct scenario *scenario)
{
    struct asc_problem *p = &scenario->problem;
    if (!scenario_stated(scenario, KEY_LAYOUT) && hello->layouts && !(hello->layouts & 1u << p->layout))
        p->layout = (int32_t)__builtin_ctz(hello->layouts);
    if (!scenario_stated(scenario, KEY_DTYPE))
        p->dtype = choose_dtype(hello->dtypes, p->dtype, p->dtype);
    /* Files have types of their own. */
    const bool files = scenario_has_inputs(scenario);
    if (!scenario_stated(scenario, KEY_K_DTYPE))
        p->k_dtype = choose_dtype(hello->k_dtypes, files ? p->k_dtype : p->dtype, p->dtype);
    if (!scenario_stated(scenario, KEY_V_DTYPE))
        p->v_dtype = choose_dtype(hello->v_dtypes, files ? p->v_dtype : p->k_dtype, p->dtype);
}

static bool has_site(const struct build *b, int channel)
{
    for (size_t i = 0; i < b->n_sites; i++)
        if ((int)b->sites[i].channel == channel)
            return true;
    return false;
}

/* A channel is recorded where the kernel has a probe for it and the scenario wants it. */
static void choose_types(const struct recorder *r, const struct scenario *scenario, struct layout_types *types)
{
    const struct child_hello *hello = child_hello(r->child);
    types->o = problem_o_dtype(&scenario->problem, hello->o_dtype);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        int wanted = (scenario->capture.channels & 1u << ch) && has_site(&r->build, ch);
        const int declared = hello->channel_dtype[ch];
        types->channel[ch] = !wanted         ? -1
                             : declared >= 0 ? declared
                                             : conventions_channel(&hello->conventions, &scenario->problem, types->o,
                                                                   (enum asc_channel)ch);
    }
    for (int ch = ASC_CHANNELS; ch < ASC_ALL_CHANNELS; ch++)
        types->channel[ch] = has_site(&r->build, ch) ? r->build.values[ch - ASC_CHANNELS].dtype : -1;
}

static bool selected(const int *list, int n, int value)
{
    if (!n)
        return true;
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

/* The selected (batch, head, q tile)s in order; *out is the caller's. */
static int list_places(const struct scenario *scenario, int br, int q_tiles, int32_t (**out)[3], int64_t *n_out,
                       struct err *err)
{
    const struct asc_problem *p = &scenario->problem;
    const struct capture *c = &scenario->capture;
    const int64_t all = (int64_t)p->batch * p->heads * q_tiles;
    int32_t(*places)[3] = malloc((size_t)all * sizeof *places);
    int64_t n = 0;
    if (!places)
        return err_no_memory(err, "", "the slot table");
    for (int b = 0; b < p->batch; b++)
        for (int h = 0; h < p->heads; h++)
            for (int q = 0; q < q_tiles; q++) {
                if ((int64_t)q * br >= asc_q_len(p, b) || !selected(c->batches, c->n_batches, b) ||
                    !selected(c->heads, c->n_heads, h) || !selected(c->q_tiles, c->n_q_tiles, q))
                    continue;
                places[n][0] = b;
                places[n][1] = h;
                places[n++][2] = q;
            }
    if (!n) {
        free(places);
        return err_set(err, ERR_INPUT, scenario->path, "capture: selects nothing of %d batches, %d heads, %d q tiles",
                       p->batch, p->heads, q_tiles);
    }
    *out = places;
    *n_out = n;
    return 0;
}

/* How many of `wanted` slots the capture's memory takes beside inputs and outputs, at least 1. */
static int slots_room(const struct scenario *scenario, const struct asc_plan *plan, const struct layout_types *types,
                      int64_t wanted, int *room, struct err *err)
{
    const struct asc_problem *p = &scenario->problem;
    const uint64_t mem = scenario->capture.mem_bytes;
    struct layout l;
    uint64_t slot_bytes;
    if (layout_make(p, plan, types, 1, &l, err) != 0 || layout_slot_bytes(p, plan, types, &slot_bytes, err) != 0)
        return -1;
    if (l.total_bytes > mem) {
        char outside[32], one[32], allowed[32];
        units_bytes(l.total_bytes - slot_bytes, outside, sizeof outside);
        units_bytes(slot_bytes, one, sizeof one);
        units_bytes(mem, allowed, sizeof allowed);
        return err_set(err, ERR_INPUT, scenario->path,
                       "capture.mem: inputs and outputs take %s and one q tile %s, %s are allowed", outside, one,
                       allowed);
    }
    const uint64_t fit = 1 + (mem - l.total_bytes) / slot_bytes,
                   most = wanted < INT32_MAX ? (uint64_t)wanted : INT32_MAX;
    *room = (int)(fit < most ? fit : most);
    /* The slot table grows with them. */
    while (*room > 1 && (layout_make(p, plan, types, *room, &l, err) != 0 || l.total_bytes > mem))
        --*room;
    return 0;
}

/* Who records an element takes twice the memory, or thrice: where that is little beside what a machine has, it is kept.
   On a GPU it costs time as well, and the build must ask for it (record.h). Where it was asked for, and has no room, it
   is said. */
static bool keep_writers(const struct recorder *r, const struct scenario *scenario,
                         const struct record_selection *selection, int64_t wanted,
                         const struct runner_progress *progress)
{
    enum { MOST_MIB = 256 };
    const uint64_t most = (uint64_t)MOST_MIB << 20, mem = scenario->capture.mem_bytes;
    struct layout_types with = selection->types;
    struct layout l;
    const bool gpu = child_hello(r->child)->backend == BACKEND_GPU, is_auto = scenario->capture.writers == WRITERS_AUTO;
    const bool asked = is_auto ? !gpu : scenario->capture.writers == WRITERS_ON;
    char takes[32] = "more than 2^63 bytes", room[32], line[700];
    with.writers = 1;
    if (!asked)
        return false;
    if (wanted <= INT32_MAX && layout_make(&scenario->problem, &selection->plan, &with, (int)wanted, &l, NULL) == 0) {
        if (l.total_bytes <= (is_auto && most < mem ? most : mem))
            return true;
        units_bytes(l.total_bytes, takes, sizeof takes);
    }
    units_bytes(mem, room, sizeof room);
    snprintf(
        line, sizeof line,
        "%s%scapture.writers = on has no room: with who recorded each element this run takes %s, and capture.mem is "
        "%s",
        scenario->path, scenario->path[0] ? ": " : "", takes, room);
    if (!is_auto && progress && progress->log)
        progress->log(progress->ctx, line);
    return false;
}

/* Whether the probes of a GPU write to a guardian's memory, if there is one. */
static bool shares(const struct recorder *r, enum memory_kind memory)
{
    return r->probes != PROBES_NONE && (memory == MEMORY_AUTO || memory == MEMORY_GUARD);
}

/* A live trace of what is selected, with the scenario's inputs. */
static int make_trace(struct recorder *r, const struct scenario *scenario, const struct record_selection *selection,
                      const struct runner_progress *progress, struct trace **out, struct err *err)
{
    struct asc_problem p = scenario->problem;
    struct run_inputs inputs = {0};
    int result = inputs_make(scenario, r->pool, &r->filled, progress, &inputs, err);
    struct trace_inputs given = inputs_of(&inputs, &p);
    given.values_later = guardian_alive(r->guardian) && shares(r, (enum memory_kind)scenario->capture.memory);
    if (result == 0)
        result = trace_create_in(r->store, &p, &selection->plan, &child_hello(r->child)->conventions, &selection->types,
                                 (const int32_t(*)[3])selection->slots, selection->n, &given, out, err);
    inputs_keep(&inputs, scenario, &r->filled);
    inputs_free(&inputs);
    return result;
}

/* What is asked of build_debuggee(). */
static int ask_build(const struct runner_paths *paths, const struct scenario *scenario, enum probes probes,
                     struct gpu_device *gpu, const struct runner_progress *progress, struct build_request *request,
                     struct err *err)
{
    if (scenario->on[0])
        return err_set(err, ERR_INPUT, scenario->on,
                       "this takes more than a run, which alone is made there: start attnscope on that machine for it");
    *request = (struct build_request){.kernel = scenario->kernel,
                                      .patch = scenario->patch,
                                      .define = scenario->define,
                                      .include = scenario->include,
                                      .flags = scenario->flags,
                                      .probes = probes,
                                      .writers = scenario->capture.writers == WRITERS_ON,
                                      .staging = (enum memory_kind)scenario->capture.memory == MEMORY_PINNED,
                                      .dtype = scenario->problem.dtype,
                                      .head_dim = scenario->problem.head_dim};
    char note[512];
    if (backend_choose(paths, scenario, request, gpu, note, sizeof note, err) != 0)
        return -1;
    if (*note && progress && progress->log)
        progress->log(progress->ctx, note);
    return 0;
}

int record_build(const struct runner_paths *paths, const struct scenario *scenario, enum probes probes,
                 const struct build *last, const struct runner_progress *progress, struct err *err)
{
    struct build_request request;
    struct gpu_device gpu;
    struct build built;
    if (ask_build(paths, scenario, probes, &gpu, progress, &request, err) != 0)
        return -1;
    request.last = last;
    if (build_debuggee(paths, &request, progress, &built, err) != 0)
        return -1;
    build_free(&built);
    return 0;
}

/* Whether a GPU is asked for what it can judge. slow: why it is not, though there is one, or why that takes its time;
   NULL where nobody is told. */
static bool asks_gpu(const struct runner_paths *paths, const struct scenario *scenario, int backend, char *slow,
                     size_t bytes)
{
    const bool wanted = scenario->capture.judge == SCENARIO_JUDGE_GPU;
    struct gpu_device gpu;
    struct err none = {0};
    if (!wanted && (scenario->capture.judge != SCENARIO_JUDGE_AUTO || backend != BACKEND_GPU))
        return false;
    if (device_find(paths, &gpu, &none) != 0 || !gpu_judge_is_slow(&gpu))
        return true;
    if (slow)
        gpu_judge_slow_words(&gpu, &scenario->problem, slow, bytes);
    return wanted;
}

/* Its context is there when the run is. */
static void start_judge(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                        int backend)
{
    char program[600];
    struct err missing = {0};
    if (!asks_gpu(paths, scenario, backend, NULL, 0) || r->probes != PROBES_RECORD ||
        (r->judge && gpu_process_alive(r->judge)) ||
        runner_find_built(paths, "attnscope-judge", program, sizeof program, &missing) != 0)
        return;
    gpu_process_stop(r->judge);
    r->judge = gpu_process_start(program);
}

int record_child(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                 enum probes probes, const struct runner_progress *progress, struct err *err)
{
    struct build built = {0};
    struct build_request request;
    r->probes = probes;
    if (ask_build(paths, scenario, probes, &r->gpu, progress, &request, err) != 0)
        return -1;
    request.last = &r->build;
    const enum memory_kind memory = (enum memory_kind)scenario->capture.memory;
    request.staging = request.staging || (memory == MEMORY_AUTO && r->falls_back);
    if (request.backend == BACKEND_GPU) {
        device_cores(paths, &r->gpu);
        if (shares(r, memory) && !guardian_alive(r->guardian)) {
            guardian_stop(r->guardian);
            r->guardian = guardian_start(paths, 0); /* it is ready when the build is */
        }
    }
    start_judge(r, paths, scenario, request.backend);
    runner_report(progress, STEP_READING, 0, 0);
    if (build_debuggee(paths, &request, progress, &built, err) != 0)
        return -1;
    if (r->child && (!child_alive(r->child) || strcmp(built.program, r->build.program) != 0)) {
        child_stop(r->child);
        r->child = NULL;
    }
    build_free(&r->build);
    r->build = built;
    runner_report(progress, STEP_STARTING, 0, 0);
    bool damaged = false;
    if (r->child || child_start(r->build.program, &r->child, &damaged, err) == 0) {
        child_set_memory(r->child, memory, r->guardian);
        return 0;
    }
    /* By a full disk, or a crash of the machine. */
    if (!damaged || !r->build.from_cache || unlink(r->build.program) != 0)
        return -1;
    request.last = NULL;
    *err = (struct err){0};
    if (build_debuggee(paths, &request, progress, &built, err) != 0)
        return -1;
    build_free(&r->build);
    r->build = built;
    if (child_start(r->build.program, &r->child, NULL, err) != 0)
        return -1;
    child_set_memory(r->child, memory, r->guardian);
    return 0;
}

static void copy_text(char *to, size_t bytes, const char *from)
{
    size_t n = strnlen(from, bytes - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

/* "q.npy, k.npy, v.npy": the files alone, each once. */
static void describe_inputs(const struct scenario *scenario, char *out, size_t bytes)
{
    char spec[ARRAY_NAME_BYTES], last[ARRAY_NAME_BYTES] = "";
    size_t used = 0;
    for (int i = 0; i < INPUT_COUNT && used < bytes; i++) {
        if (!scenario_input(scenario, (enum input_id)i, spec))
            continue;
        spec[array_file_bytes(spec)] = '\0';
        if (strcmp(spec, last) != 0)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", path_name(spec));
        memcpy(last, spec, strlen(spec) + 1);
    }
    /* What the kernel did not get as it is there. */
    for (int i = 0; i <= INPUT_V_SCALE && used < bytes; i++) {
        struct array a;
        const enum dtype to = i <= INPUT_V ? fill_dtype(&scenario->problem, i) : DTYPE_F32;
        if (i == INPUT_MASK || i == INPUT_KEEP || !scenario_input(scenario, (enum input_id)i, spec) ||
            array_open(spec, false, &a, NULL) != 0)
            continue;
        const int from = i <= INPUT_V ? scenario_input_type(scenario, i, &a) : a.dtype;
        array_close(&a);
        if (from >= 0 && !dtype_is_code((enum dtype)from) && from != (int)to && (i <= INPUT_V || from == DTYPE_F64))
            used += (size_t)snprintf(out + used, bytes - used, "; %s rounded from %s to %s", scenario_input_names[i],
                                     dtype_name((enum dtype)from), dtype_name(to));
    }
}

static int describe(const struct recorder *r, const struct scenario *scenario, struct trace *t, struct err *err)
{
    struct trace_info *info = &t->info;
    copy_text(info->kernel, sizeof info->kernel, child_hello(r->child)->kernel);
    info->backend = child_hello(r->child)->backend;
    copy_text(info->source_name, sizeof info->source_name, runner_short_path(scenario->kernel));
    copy_text(info->compiled_path, sizeof info->compiled_path, r->build.source_path);
    copy_text(info->scenario_name, sizeof info->scenario_name, scenario->name);
    snprintf(info->define, sizeof info->define, "%s%s%s", scenario->define,
             scenario->define[0] && scenario->flags[0] ? " " : "", scenario->flags);
    describe_inputs(scenario, info->inputs, sizeof info->inputs);
    copy_text(info->patch_name, sizeof info->patch_name, path_name(scenario->patch));
    copy_text(info->device, sizeof info->device, child_hello(r->child)->device);
    /* Said only where it means something: a kernel that declares no tensor core need not use one. */
    const bool declared = t->conventions.acc_s != ASC_ACC_F32 || t->conventions.acc_u != ASC_ACC_F32;
    if (info->backend == BACKEND_GPU && declared)
        copy_text(info->cores, sizeof info->cores, r->gpu.cores);
    if (info->backend == BACKEND_CPU && (declared || scenario_stated(scenario, KEY_TENSOR_CORE)))
        copy_text(info->tensor_core, sizeof info->tensor_core,
                  tensor_core_name((enum tensor_core)scenario->tensor_core));
    copy_text(info->lanes, sizeof info->lanes, scenario->lanes);
    info->probes_off = r->probes == PROBES_NONE;
    info->workers = (int)sysconf(_SC_NPROCESSORS_ONLN);
    info->source = r->build.source ? strdup(r->build.source) : NULL;
    info->scenario = scenario->text ? strdup(scenario->text) : NULL;
    info->settings = scenario_settings(scenario);
    info->sites = calloc(r->build.n_sites ? r->build.n_sites : 1, sizeof *info->sites);
    if (!info->sites || !info->settings || (r->build.source && !info->source) || (scenario->text && !info->scenario))
        return err_no_memory(err, "", "the run's description");
    for (int i = 0; i < r->build.n_patched; i++)
        trace_add_source(t, r->build.patched[i].name, r->build.patched[i].path);
    info->launches.budget = scenario->budget;
    info->n_sites = r->build.n_sites;
    for (size_t i = 0; i < info->n_sites; i++) {
        const struct trace_site *from = &r->build.sites[i];
        info->sites[i] = (struct trace_site){.channel = from->channel, .line = from->line};
        copy_text(info->sites[i].file, sizeof info->sites[i].file, runner_short_path(from->file));
        trace_add_source(t, info->sites[i].file, info->sites[i].file);
    }
    return 0;
}

static void add_sources(struct trace *t, const struct trace_stack *stack)
{
    for (int i = 0; i < stack->n; i++)
        trace_add_source(t, stack->at[i].file, stack->at[i].file);
}

/* Of what was reported. */
static void add_event_sources(struct trace *t)
{
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        trace_add_source(t, e->file, e->file);
        trace_add_source(t, e->other_file, e->other_file);
        add_sources(t, &e->stack);
        add_sources(t, &e->other_stack);
    }
}

/* A run that ended early could not say how long it took: then it is the time until its end was noticed. */
static int timed_run(struct child *child, struct trace *t, double limit_s, const struct runner_progress *progress,
                     struct err *err)
{
    const double begin = clock_seconds();
    const int failed = child_run(child, t, limit_s, progress, err);
    const double end = clock_seconds();
    add_event_sources(t);
    if (failed)
        t->info.seconds = end - begin;
    return failed;
}

/* One run: *out is what it recorded, also where it ended early, or NULL. */
static int record_pass(struct recorder *r, const struct scenario *scenario, const struct record_selection *selection,
                       const struct runner_progress *progress, struct trace **out, struct err *err)
{
    *out = NULL;
    runner_report(progress, STEP_FILLING, 0, 0);
    if (make_trace(r, scenario, selection, progress, out, err) != 0)
        return -1;
    if (describe(r, scenario, *out, err) != 0) {
        trace_free(*out);
        *out = NULL;
        return -1;
    }
    runner_report(progress, STEP_RUNNING, 0, 0);
    const int failed = timed_run(r->child, *out, scenario->limit_s, progress, err);
    r->falls_back = (*out)->info.memory == MEMORY_PINNED && (*out)->info.memory_why[0];
    struct err no_space = {0};
    if (!failed || trace_fill_values(*out, &no_space) == 0)
        return failed;
    trace_free(*out);
    *out = NULL;
    *err = no_space;
    return -1;
}

static void report_first_pass(void *ctx, enum runner_step step, double done, double total)
{
    runner_report(ctx, step == STEP_RUNNING ? STEP_FIRST_PASS : step, done, total);
}

static void log_first_pass(void *ctx, const char *line)
{
    const struct runner_progress *progress = ctx;
    if (progress->log)
        progress->log(progress->ctx, line);
}

/* Judges every q tile of the first pass on a GPU, where that is wanted and can be done. Returns 0; 1: the CPU judges,
   and it has been said why; -1: *err. */
static int judge_on_gpu(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *t,
                        const struct record_selection *wanted, struct bounded *b,
                        const struct runner_progress *progress, struct err *err)
{
    char program[600], device[64], line[320], slow[200] = "";
    struct err missing = {0};
    const bool asks = asks_gpu(paths, scenario, t->info.backend, slow, sizeof slow);
    if (!asks && !slow[0])
        return 1;
    if (asks && slow[0] && progress && progress->log)
        progress->log(progress->ctx, slow);
    if (!asks) {
        snprintf(b->judge, sizeof b->judge, "the CPU, since %.150s; --judge gpu asks it", slow);
    } else if (gpu_judge_find(paths, program, sizeof program, device, sizeof device, &missing) != 0) {
        snprintf(b->judge, sizeof b->judge, "the CPU, since there is no judge on the GPU: %.120s", missing.message);
    } else {
        const int result = bounded_judge_on_gpu(b, t, wanted->types.channel, program, device, progress, err);
        if (result <= 0)
            return result;
    }
    snprintf(line, sizeof line, "o and lse are judged by %s", b->judge);
    if (progress && progress->log)
        progress->log(progress->ctx, line);
    return 1;
}

/* The first pass: nothing is recorded but what the kernel leaves; what of it is off. -1: *err. */
static int first_pass(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                      const struct record_selection *wanted, struct bounded *b, const struct runner_progress *progress,
                      struct err *err)
{
    struct record_selection nothing = *wanted;
    struct trace *t = NULL;
    nothing.slots = b->places;
    nothing.n = 1;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        nothing.types.channel[ch] = -1;
    const struct runner_progress own = {.report = report_first_pass,
                                        .log = log_first_pass,
                                        .ctx = (void *)(uintptr_t)progress,
                                        .cancel = progress ? progress->cancel : NULL};
    int failed = record_pass(r, scenario, &nothing, progress ? &own : NULL, &t, err);
    if (failed && err->code == ERR_CANCELLED)
        err_set(err, ERR_CANCELLED, "", "cancelled; %s", runner_step_words(STEP_FIRST_PASS));
    if (!failed) {
        runner_report(progress, STEP_JUDGING_OUTPUT, 0, 0);
        failed = judge_on_gpu(paths, scenario, t, wanted, b, progress, err);
        if (failed > 0) {
            bounded_sample(b, &scenario->problem, &wanted->plan, BOUNDED_SCORES);
            failed = bounded_judge(b, t, wanted->types.channel, progress, err);
        }
        bounded_remember(b, t);
    }
    trace_free(t);
    return failed;
}

/* Of more places than there is room for: those whose output is off, then others. A first pass that crashed or hung says
   nothing, but the second one then shows how. */
static int record_bounded(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                          struct bounded *b, struct record_selection *selection, const struct runner_progress *progress,
                          struct trace **out, struct err *err)
{
    struct err first = {0};
    const int failed = first_pass(r, paths, scenario, selection, b, progress, &first);
    if (failed && first.code != ERR_RUN) {
        *err = first;
        return -1;
    }
    if (failed && (record_child(r, paths, scenario, r->probes, progress, err) != 0 ||
                   child_load(r->child, &scenario->problem, &selection->plan, err) != 0))
        return -1;
    int32_t(*slots)[3] = calloc((size_t)selection->n, sizeof *slots);
    if (!slots)
        return err_no_memory(err, "", "the slot table");
    selection->slots = slots;
    selection->n = bounded_choose(b, slots, selection->n);
    int result = selection->n ? record_pass(r, scenario, selection, progress, out, err)
                              : err_no_memory(err, "", "the slot table");
    free(slots);
    if (*out)
        bounded_describe(b, !failed && !result ? bounded_differing(b, *out) : -1, &(*out)->info.capture);
    if (failed && !result)
        return err_set(err, ERR_RUN, "first pass", "%.3000s; the second one completed", first.message);
    return result;
}

/* A warm child, and what a run of it would record: selection->slots holds all *wanted places and is the caller's, of
   which the memory takes the first selection->n. The types that the scenario leaves open are set. */
static int select_places(struct recorder *r, const struct runner_paths *paths, struct scenario *scenario,
                         enum probes probes, const struct runner_progress *progress, struct record_selection *selection,
                         int64_t *wanted, struct err *err)
{
    const int32_t built_for = scenario->problem.dtype;
    struct layout one;
    *selection = (struct record_selection){0};
    if (!r->pool && pool_new(0, &r->pool, NULL) != 0)
        r->pool = NULL; /* one thread does it as well */
    if (!r->store)
        r->store = trace_store_new(r->pool); /* without one every run takes new memory */
    if (record_child(r, paths, scenario, probes, progress, err) != 0)
        return -1;
    adopt_types(child_hello(r->child), scenario);
    if (scenario_check_scales(scenario, err) != 0)
        return -1;
    if (scenario->problem.dtype != built_for && record_child(r, paths, scenario, probes, progress, err) != 0)
        return -1;
    if (child_load(r->child, &scenario->problem, &selection->plan, err) != 0)
        return -1;
    memcpy(selection->plan.value, r->build.values, sizeof selection->plan.value);
    const char *refused = codes_refused(&scenario->problem, &selection->plan, &child_hello(r->child)->conventions);
    if (refused)
        return err_set(err, ERR_INPUT, scenario->kernel, "%s", refused);
    choose_types(r, scenario, &selection->types);
    if (layout_make(&scenario->problem, &selection->plan, &selection->types, 1, &one, err) != 0 ||
        list_places(scenario, selection->plan.br, one.q_tiles, &selection->slots, wanted, err) != 0)
        return -1;
    selection->types.writers = keep_writers(r, scenario, selection, *wanted, progress);
    if (slots_room(scenario, &selection->plan, &selection->types, *wanted, &selection->n, err) == 0)
        return 0;
    free(selection->slots);
    return -1;
}

/* Whether there is a GPU to judge on, where one was asked for: said before anything is built or run. */
static int find_judge(const struct runner_paths *paths, struct err *err)
{
    char program[600], device[64];
    struct err missing = {0};
    if (gpu_judge_find(paths, program, sizeof program, device, sizeof device, &missing) == 0)
        return 0;
    return err_set(err, ERR_SYSTEM, "--judge gpu", "there is no GPU to judge on: %.300s", missing.message);
}

int record(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
           const struct runner_progress *progress, struct trace **out, struct err *err)
{
    struct scenario own = *scenario; /* borrows what that owns */
    struct record_selection selection;
    int64_t n = 0;
    *out = NULL;
    if (scenario->on[0])
        return remote_record(paths, scenario, progress, out, err);
    if (scenario->capture.judge == SCENARIO_JUDGE_GPU && find_judge(paths, err) != 0)
        return -1;
    const enum probes probes = scenario->probes == SCENARIO_PROBES_OFF ? PROBES_NONE : PROBES_RECORD;
    if (select_places(r, paths, &own, probes, progress, &selection, &n, err) != 0)
        return -1;
    if (selection.n == n) {
        const int failed = record_pass(r, &own, &selection, progress, out, err);
        free(selection.slots);
        return failed;
    }
    struct bounded b;
    if (bounded_begin(&b, selection.slots, n, err) != 0)
        return -1;
    const int failed = record_bounded(r, paths, &own, &b, &selection, progress, out, err);
    bounded_end(&b);
    return failed;
}

int record_open(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                enum probes probes, bool room, const struct runner_progress *progress, struct trace **out,
                struct err *err)
{
    struct scenario own = *scenario; /* borrows what that owns */
    struct record_selection selection;
    int64_t n = 0;
    *out = NULL;
    if (select_places(r, paths, &own, probes, progress, &selection, &n, err) != 0)
        return -1;
    if (!room) {
        selection.n = 1;
        selection.types.writers = 0;
        for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
            selection.types.channel[ch] = -1;
    }
    runner_report(progress, STEP_FILLING, 0, 0);
    int failed = make_trace(r, &own, &selection, progress, out, err);
    free(selection.slots);
    if (!failed && describe(r, &own, *out, err) != 0) {
        trace_free(*out);
        *out = NULL;
        failed = -1;
    }
    return failed;
}

/* The kernel may have been edited since. */
static int same_kernel(struct recorder *r, const struct scenario *scenario, const struct trace *run, struct err *err)
{
    struct asc_plan plan;
    if (child_load(r->child, &scenario->problem, &plan, err) != 0)
        return -1;
    const struct asc_plan *before = &run->plan;
    memcpy(plan.value, r->build.values, sizeof plan.value);
    struct asc_conventions declared = child_hello(r->child)->conventions;
    conventions_resolve(&declared, &run->problem);
    if (strcmp(r->build.source ? r->build.source : "", run->info.source ? run->info.source : "") != 0 ||
        plan.br != before->br || plan.bc != before->bc || plan.threads != before->threads ||
        plan.kv_splits != before->kv_splits || plan.kv_deal != before->kv_deal ||
        plan.workspace_bytes != before->workspace_bytes || memcmp(plan.value, before->value, sizeof plan.value) != 0 ||
        !conventions_same(&declared, &run->conventions))
        return err_set(err, ERR_INPUT, scenario->kernel, "has changed since that run: run it again");
    return 0;
}

int record_again(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                 const struct trace *run, enum probes probes, struct trace *t, const struct runner_progress *progress,
                 struct trace **out, struct err *err)
{
    struct scenario own = *scenario; /* borrows what that owns */
    *out = NULL;
    own.problem.dtype = run->problem.dtype; /* the scenario may leave them open */
    own.problem.k_dtype = run->problem.k_dtype;
    own.problem.v_dtype = run->problem.v_dtype;
    if (record_child(r, paths, &own, probes, progress, err) != 0 || same_kernel(r, &own, run, err) != 0 ||
        describe(r, &own, t, err) != 0) {
        trace_free(t);
        return -1;
    }
    runner_report(progress, STEP_RUNNING, 0, 0);
    *out = t;
    return timed_run(r->child, t, scenario->limit_s, progress, err);
}

int record_fed(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
               const struct trace *run, struct trace *fed, uint32_t channels, const struct runner_progress *progress,
               struct trace **out, struct err *err)
{
    struct trace *t;
    *out = NULL;
    if (feed_trace_like(run, &t, err) != 0) {
        trace_free(fed);
        return -1;
    }
    t->fed = fed;
    t->fed_channels = channels;
    const int failed = record_again(r, paths, scenario, run, PROBES_FEED, t, progress, out, err);
    for (int ch = 0; *out && ch < ASC_CHANNELS; ch++)
        if (trace_unfed(*out, ch))
            (*out)->fed_channels &= ~(1u << ch);
    return failed;
}

void recorder_free(struct recorder *r)
{
    child_stop(r->child);
    guardian_stop(r->guardian);
    gpu_process_stop(r->judge);
    build_free(&r->build);
    trace_store_free(r->store);
    pool_free(r->pool);
    filled_free(&r->filled);
    memset(r, 0, sizeof *r);
}
