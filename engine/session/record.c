#include "engine/session/record.h"

#include "engine/base/tensor_core.h"
#include "engine/session/backend.h"
#include "engine/session/feed.h"
#include "probes/conventions.h"
#include "scenarios/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void report(const struct runner_progress *progress, const char *phase)
{
    if (progress && progress->report)
        progress->report(progress->ctx, phase, 0, 0);
}

static int warm_child(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                      enum probes probes, const struct runner_progress *progress, struct err *err)
{
    struct build built = {0};
    struct build_request request = {.kernel = scenario->kernel,
                                    .patch = scenario->patch,
                                    .probes = probes,
                                    .dtype = scenario->problem.dtype,
                                    .head_dim = scenario->problem.head_dim};
    char note[512];
    if (backend_choose(paths, scenario, &request, &r->gpu, note, sizeof note, err) != 0)
        return -1;
    if (*note && progress && progress->log)
        progress->log(progress->ctx, note);
    report(progress, "compiling");
    if (build_debuggee(paths, &request, progress, &built, err) != 0)
        return -1;
    if (r->child && (!child_alive(r->child) || strcmp(built.program, r->build.program) != 0)) {
        child_stop(r->child);
        r->child = NULL;
    }
    build_free(&r->build);
    r->build = built;
    report(progress, "starting");
    return r->child ? 0 : child_start(r->build.program, &r->child, err);
}

static int has_site(const struct build *b, int channel)
{
    for (size_t i = 0; i < b->n_sites; i++)
        if ((int)b->sites[i].channel == channel)
            return 1;
    return 0;
}

static int default_dtype(const struct child_hello *hello, const struct asc_problem *p, int channel)
{
    static const char type_of[ASC_CHANNELS] = {
#define TYPE_INPUT 'i'
#define TYPE_OUTPUT 'o'
#define TYPE_F32 'f'
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) type,
#include "probes/channels.def"
#undef CHANNEL
#undef TYPE_INPUT
#undef TYPE_OUTPUT
#undef TYPE_F32
    };
    if (hello->channel_dtype[channel] >= 0)
        return hello->channel_dtype[channel];
    if (type_of[channel] == 'i')
        return p->dtype;
    if (type_of[channel] == 'o')
        return hello->o_dtype >= 0 ? hello->o_dtype : p->dtype;
    return DTYPE_F32;
}

/* A channel is recorded where the kernel has a probe for it and the scenario wants it. */
static void choose_types(const struct recorder *r, const struct scenario *scenario, struct layout_types *types)
{
    const struct child_hello *hello = child_hello(r->child);
    types->o = hello->o_dtype >= 0 ? hello->o_dtype : scenario->problem.dtype;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        int wanted = (scenario->capture.channels & 1u << ch) && has_site(&r->build, ch);
        types->channel[ch] = wanted ? default_dtype(hello, &scenario->problem, ch) : -1;
    }
}

static int selected(const int *list, int n, int value)
{
    if (!n)
        return 1;
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return 1;
    return 0;
}

/* The selected (batch, head, q tile)s in order, as many as the capture's memory takes. */
static int choose_slots(const struct scenario *scenario, const struct asc_plan *plan, const struct layout_types *types,
                        int32_t (**out)[3], int *n_out, struct err *err)
{
    const struct asc_problem *p = &scenario->problem;
    const struct capture *c = &scenario->capture;
    struct layout one;
    uint64_t slot_bytes;
    if (layout_make(p, plan, types, 1, &one, err) != 0 || layout_slot_bytes(p, plan, types, &slot_bytes, err) != 0)
        return -1;
    uint64_t fixed = one.total_bytes - slot_bytes,
             room = c->mem_bytes > fixed ? (c->mem_bytes - fixed) / slot_bytes : 0;
    if (!room)
        return err_set(err, ERR_INPUT, scenario->path,
                       "capture.mem: one slot of this problem takes %llu bytes, more than the %llu allowed",
                       (unsigned long long)one.total_bytes, (unsigned long long)c->mem_bytes);
    int64_t all = (int64_t)p->batch * p->heads * one.q_tiles;
    if (room > (uint64_t)all)
        room = (uint64_t)all;
    if (room > INT32_MAX)
        room = INT32_MAX;
    int32_t(*slots)[3] = malloc(room * sizeof *slots);
    if (!slots)
        return err_errno(err, "", "no memory for the slot table");
    uint64_t n = 0;
    for (int b = 0; b < p->batch && n < room; b++)
        for (int h = 0; h < p->heads && n < room; h++)
            for (int q = 0; q < one.q_tiles && n < room; q++) {
                if (!selected(c->batches, c->n_batches, b) || !selected(c->heads, c->n_heads, h) ||
                    !selected(c->q_tiles, c->n_q_tiles, q))
                    continue;
                slots[n][0] = b;
                slots[n][1] = h;
                slots[n++][2] = q;
            }
    if (!n) {
        free(slots);
        return err_set(err, ERR_INPUT, scenario->path, "capture: selects nothing of %d batches, %d heads, %d q tiles",
                       p->batch, p->heads, one.q_tiles);
    }
    *out = slots;
    *n_out = (int)n;
    return 0;
}

/* A fill that does not fit the type would make NaN out of a correct kernel. */
static int check_finite(const struct scenario *scenario, int tensor, const void *data, struct err *err)
{
    static const char *const names[] = {"Q", "K", "V"};
    const enum dtype dtype = (enum dtype)scenario->problem.dtype;
    const size_t n = fill_tensor_bytes(&scenario->problem, tensor) / dtype_bytes(dtype);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(dtype_load(dtype, data, i)))
            return err_set(err, ERR_INPUT, scenario->path, "fill.sigma: %s holds values that do not fit %s",
                           names[tensor], dtype_name(dtype));
    return 0;
}

static int make_trace(const struct recorder *r, const struct scenario *scenario, const struct asc_plan *plan,
                      struct trace **out, struct err *err)
{
    const struct asc_problem *p = &scenario->problem;
    const struct fill *fills[3] = {&scenario->fill_q, &scenario->fill_k, &scenario->fill_v};
    void *input[3] = {NULL, NULL, NULL}; /* q, k, v in the problem's layout and dtype */
    int32_t(*slots)[3] = NULL;
    struct layout_types types;
    int n_slots = 0, result = -1;
    choose_types(r, scenario, &types);
    if (choose_slots(scenario, plan, &types, &slots, &n_slots, err) != 0)
        return -1;
    for (int i = 0; i < 3; i++) {
        input[i] = malloc(fill_tensor_bytes(p, i));
        if (!input[i]) {
            err_errno(err, "", "no memory for the inputs");
            goto done;
        }
        fill_tensor(p, i, fills[i], input[i]);
        if (check_finite(scenario, i, input[i], err) != 0)
            goto done;
    }
    result = trace_create(p, plan, &child_hello(r->child)->conventions, &types, (const int32_t(*)[3])slots, n_slots,
                          input[0], input[1], input[2], out, err);
done:
    for (int i = 0; i < 3; i++)
        free(input[i]);
    free(slots);
    return result;
}

static void copy_text(char *to, size_t bytes, const char *from)
{
    size_t n = strnlen(from, bytes - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

/* A path below the current folder without that folder: what the user would type. */
static const char *short_path(const char *path)
{
    char folder[512];
    if (!getcwd(folder, sizeof folder))
        return path;
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static int describe(const struct recorder *r, const struct scenario *scenario, struct trace *t, struct err *err)
{
    struct trace_info *info = &t->info;
    const char *slash = strrchr(scenario->patch, '/');
    copy_text(info->kernel, sizeof info->kernel, child_hello(r->child)->kernel);
    copy_text(info->backend, sizeof info->backend, child_hello(r->child)->backend);
    copy_text(info->source_name, sizeof info->source_name, short_path(scenario->kernel));
    copy_text(info->scenario_name, sizeof info->scenario_name, scenario->name);
    copy_text(info->patch_name, sizeof info->patch_name, slash ? slash + 1 : scenario->patch);
    copy_text(info->device, sizeof info->device, child_hello(r->child)->device);
    /* Said only where it means something: a kernel that declares no tensor core need not use one. */
    if (strcmp(info->backend, backend_name(BACKEND_CPU)) == 0 &&
        (t->conventions.acc_s != ASC_ACC_F32 || t->conventions.acc_u != ASC_ACC_F32 ||
         scenario_stated(scenario, KEY_TENSOR_CORE)))
        copy_text(info->tensor_core, sizeof info->tensor_core,
                  tensor_core_name((enum tensor_core)scenario->tensor_core));
    info->workers = (int)sysconf(_SC_NPROCESSORS_ONLN);
    info->source = r->build.source ? strdup(r->build.source) : NULL;
    info->scenario = scenario->text ? strdup(scenario->text) : NULL;
    info->sites = calloc(r->build.n_sites ? r->build.n_sites : 1, sizeof *info->sites);
    if (!info->sites || (r->build.source && !info->source) || (scenario->text && !info->scenario))
        return err_errno(err, "", "no memory for the run's description");
    info->n_sites = r->build.n_sites;
    for (size_t i = 0; i < info->n_sites; i++) {
        const struct trace_site *from = &r->build.sites[i];
        info->sites[i] = (struct trace_site){.channel = from->channel, .line = from->line};
        copy_text(info->sites[i].file, sizeof info->sites[i].file, short_path(from->file));
    }
    return 0;
}

/* A run that ended early could not say how long it took: then it is the time until its end was noticed. */
static int timed_run(struct child *child, struct trace *t, double limit_s, const struct runner_progress *progress,
                     struct err *err)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const int failed = child_run(child, t, limit_s, progress, err);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (failed)
        t->info.seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    return failed;
}

int record(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
           const struct runner_progress *progress, struct trace **out, struct err *err)
{
    struct asc_plan plan;
    *out = NULL;
    if (warm_child(r, paths, scenario, PROBES_RECORD, progress, err) != 0)
        return -1;
    if (child_load(r->child, &scenario->problem, &plan, err) != 0)
        return -1;
    report(progress, "filling inputs");
    if (make_trace(r, scenario, &plan, out, err) != 0)
        return -1;
    if (describe(r, scenario, *out, err) != 0) {
        trace_free(*out);
        *out = NULL;
        return -1;
    }
    report(progress, "running");
    return timed_run(r->child, *out, scenario->limit_s, progress, err);
}

/* The kernel may have been edited since. */
static int same_kernel(struct recorder *r, const struct scenario *scenario, const struct trace *run, struct err *err)
{
    struct asc_plan plan;
    if (child_load(r->child, &scenario->problem, &plan, err) != 0)
        return -1;
    const struct asc_plan *before = &run->plan;
    struct asc_conventions declared = child_hello(r->child)->conventions;
    conventions_resolve(&declared, run->problem.dtype);
    if (strcmp(r->build.source ? r->build.source : "", run->info.source ? run->info.source : "") != 0 ||
        plan.br != before->br || plan.bc != before->bc || plan.threads != before->threads ||
        !conventions_same(&declared, &run->conventions))
        return err_set(err, ERR_INPUT, scenario->kernel,
                       "has changed since the run that is to be isolated: run it again");
    return 0;
}

int record_fed(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
               const struct trace *run, struct trace *fed, uint32_t channels, const struct runner_progress *progress,
               struct trace **out, struct err *err)
{
    struct trace *t = NULL;
    *out = NULL;
    if (warm_child(r, paths, scenario, PROBES_FEED, progress, err) != 0 || same_kernel(r, scenario, run, err) != 0 ||
        feed_trace_like(run, &t, err) != 0 || describe(r, scenario, t, err) != 0) {
        trace_free(t);
        trace_free(fed);
        return -1;
    }
    t->fed = fed;
    t->fed_channels = channels;
    report(progress, "running");
    const int failed = timed_run(r->child, t, scenario->limit_s, progress, err);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (trace_unfed(t, ch))
            t->fed_channels &= ~(1u << ch);
    *out = t;
    return failed;
}

void recorder_free(struct recorder *r)
{
    child_stop(r->child);
    build_free(&r->build);
    memset(r, 0, sizeof *r);
}
