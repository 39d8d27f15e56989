/* A capture: the keeper makes the trace's memory file and saves it; this side copies inputs and outputs, and binds the
   probes. */
#include "engine/capture/attnscope_capture.h"
#include "engine/capture/modules.h"
#include "engine/gpu/copy_out.h"
#include "engine/gpu/driver.h"

#include "engine/base/keep.h"
#include "engine/base/pass_fd.h"
#include "engine/trace/live.h"
#include "engine/trace/placed.h"
#include "engine/trace/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES_MAX = 64, LAZY_PEER_ACCESS = 1, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, MAPPED = 2 };

struct asc_capture {
    int socket; /* owned, of the keeper; -1 */
    pid_t keeper;
    int device;
    void *context; /* where the probes are bound */
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device state;
    void *mapping; /* owned: the live trace */
    size_t n_bytes;
    bool pinned, opened;   /* the mapping; the values are the guardian's */
    uint64_t values, slot; /* owned device memory; 0: none */
    enum memory_kind memory;
    struct modules bound;
    double begun_at;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct asc_capture *running[DEVICES_MAX];
/* A keeper that has nothing to do, for the next capture: its guardian has a context already. */
static struct {
    int socket;
    pid_t keeper;
} idle = {-1, -1};

static int fail(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int fail(char *why, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
    return -1;
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* The program beside this library, in a build folder or an installation, else that of PATH. */
static void find_program(char *path, size_t size)
{
    static const char *const beside[] = {"attnscope", "../attnscope", "../bin/attnscope", "../../bin/attnscope",
                                         "bin/attnscope"};
    const char *given = getenv("ATTNSCOPE_PROGRAM");
    Dl_info own;
    snprintf(path, size, "%s", given ? given : "attnscope");
    const char *slash = !given && dladdr(&lock, &own) ? strrchr(own.dli_fname, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof beside / sizeof *beside; i++) {
        char candidate[PATH_MAX];
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)(slash - own.dli_fname), own.dli_fname, beside[i]);
        struct stat status; /* an installation has a folder of that name, too */
        if (stat(candidate, &status) == 0 && S_ISREG(status.st_mode) && access(candidate, X_OK) == 0) {
            snprintf(path, size, "%s", candidate);
            return;
        }
    }
}

/* In a session of its own: neither Ctrl-C nor the end of this process's group ends it. */
static int start_keeper(struct asc_capture *c, char *why, size_t size)
{
    extern char **environ;
    char program[PATH_MAX], *argv[] = {program, "keep", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int pair[2];
    if (idle.socket >= 0) {
        c->socket = idle.socket;
        c->keeper = idle.keeper;
        idle.socket = -1;
        return 0;
    }
    find_program(program, sizeof program);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return fail(why, size, "no socket for the keeper of the trace: %s", strerror(errno));
    /* A descriptor that becomes itself would stay closed on exec. */
    int theirs = pair[1];
    if (theirs == KEEP_SOCKET_FD && (theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, KEEP_SOCKET_FD + 1)) >= 0)
        close(pair[1]);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, theirs, KEEP_SOCKET_FD);
    posix_spawn_file_actions_addclosefrom_np(&actions, KEEP_SOCKET_FD + 1);
    const int failed = posix_spawnp(&c->keeper, program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(theirs);
    c->socket = pair[0];
    return failed ? fail(why, size, "%s cannot be started: %s", program, strerror(failed)) : 0;
}

/* Sends a request, fd with it unless it is -1. What comes back with the answer becomes *got. */
static int ask(struct asc_capture *c, const struct keep_request *request, int fd, struct keep_answer *answer, int *got,
               char *why, size_t size)
{
    memset(answer, 0, sizeof *answer);
    *got = -1;
    ssize_t n = pass_fd_send(c->socket, request, sizeof *request, fd);
    if (n == (ssize_t)sizeof *request)
        n = pass_fd_receive(c->socket, answer, sizeof *answer, 0, got);
    if (n != (ssize_t)sizeof *answer)
        return fail(why, size, "the keeper of the trace, `attnscope keep`, has ended");
    answer->failure[sizeof answer->failure - 1] = '\0';
    return *answer->failure ? fail(why, size, "%s", answer->failure) : 0;
}

static void write_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            putc(*text, out);
    putc('"', out);
}

/* What ASC_VALUES declares; "": nothing. */
static const char *values_of(const struct modules *modules)
{
    for (int i = 0; i < modules->n; i++)
        if (modules->of[i]->values)
            return modules->of[i]->values;
    return "";
}

/* What the keeper reads: {"cwd", "first", "files", "values", "capture": the user's JSON}. A file, or -1. */
static int describe(const struct modules *modules, const char *json)
{
    char cwd[PATH_MAX] = "";
    const int fd = memfd_create("attnscope capture", MFD_CLOEXEC);
    const int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    FILE *out = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (!out)
        return -1;
    fputs("{\"cwd\": ", out);
    write_string(out, getcwd(cwd, sizeof cwd) ? cwd : "");
    fputs(", \"first\": ", out);
    write_string(out, modules->of[0]->file);
    fputs(", \"files\": [", out);
    for (int i = 0; i < modules->n; i++) {
        fputs(i ? ", " : "", out);
        write_string(out, modules->of[i]->file);
    }
    fputs("], \"values\": ", out);
    write_string(out, values_of(modules));
    fprintf(out, ", \"capture\": %s}", json);
    return fclose(out) == 0 ? fd : -1;
}

/* The shape of a tensor of the problem; [4], what is missing is 1. */
struct shape {
    int64_t n[4];
    int n_dims;
    size_t bytes; /* of an element */
};

static struct shape matrix(const struct asc_problem *p, enum problem_tensor_id id, enum dtype dtype)
{
    const struct problem_tensor t = problem_tensor(p, id);
    const bool by_head = p->layout == ASC_BHLD;
    return (struct shape){
        {p->batch, by_head ? t.heads : t.rows, by_head ? t.rows : t.heads, t.cols}, 4, dtype_bytes(dtype)};
}

static bool is_dense(const struct asc_tensor *t, const struct shape *s)
{
    int64_t stride = 1;
    bool dense = true, said = false;
    for (int i = s->n_dims - 1; i >= 0; i--) {
        dense = dense && (t->stride[i] == stride || s->n[i] == 1);
        said = said || t->stride[i];
        stride *= s->n[i];
    }
    return dense || !said;
}

/* A tensor of the caller's, wherever it lies, into dense memory of the trace. */
static int copy_in(void *to, const struct asc_tensor *t, const struct shape *s, const char *name, char *why,
                   size_t size)
{
    const int last = s->n_dims - 1;
    const size_t row = (size_t)s->n[last] * s->bytes;
    const int64_t rows = s->n_dims > 1 ? s->n[last - 1] : 1;
    size_t all = row;
    int status = 0;
    for (int i = 0; i < last; i++)
        all *= (size_t)s->n[i];
    if (is_dense(t, s)) {
        status = driver.copy(to, t->data, all);
        return status ? fail(why, size, "%s cannot be copied: %s", name, driver_error(status)) : 0;
    }
    if (t->stride[last] != 1 && s->n[last] != 1)
        return fail(why, size, "%s: its last dimension has a stride of %lld elements; expected 1", name,
                    (long long)t->stride[last]);
    const int64_t n0 = s->n_dims > 3 ? s->n[0] : 1, n1 = s->n_dims > 2 ? s->n[last - 2] : 1;
    const int64_t stride0 = s->n_dims > 3 ? t->stride[0] : 0, stride1 = s->n_dims > 2 ? t->stride[last - 2] : 0;
    const int64_t pitch = s->n_dims > 1 ? t->stride[last - 1] : 0;
    for (int64_t i = 0; i < n0 * n1 && !status; i++) {
        const unsigned char *from =
            (const unsigned char *)t->data + (i / n1 * stride0 + i % n1 * stride1) * (int64_t)s->bytes;
        unsigned char *there = (unsigned char *)to + (size_t)(i * rows) * row;
        if (pitch * (int64_t)s->bytes >= (int64_t)row) {
            const struct cuda_copy copy = {.from_kind = CUDA_KIND_UNIFIED,
                                           .from = (uint64_t)(uintptr_t)from,
                                           .from_pitch = (size_t)pitch * s->bytes,
                                           .to_kind = CUDA_KIND_HOST,
                                           .to_host = there,
                                           .to_pitch = row,
                                           .width = row,
                                           .height = (size_t)rows};
            status = driver.copy_rows(&copy);
        } else { /* rows that are repeated, or go backwards */
            for (int64_t r = 0; r < rows && !status; r++)
                status = driver.copy(there + (size_t)r * row, from + r * pitch * (int64_t)s->bytes, row);
        }
    }
    return status ? fail(why, size, "%s cannot be copied: %s", name, driver_error(status)) : 0;
}

/* Where rows lie in the caller's tensor: as it says, or dense. */
static struct asc_strides strides_of(const struct asc_problem *p, const struct placed *t, const struct asc_tensor *from)
{
    const int64_t *s = from->stride;
    if (!(s[0] | s[1] | s[2] | s[3]))
        return t->to;
    if (t->packed)
        return (struct asc_strides){0, s[1], s[0], 1};
    return p->layout == ASC_BHLD ? (struct asc_strides){s[0], s[1], s[2], 1}
                                 : (struct asc_strides){s[0], s[2], s[1], 1};
}

/* Rows first .. first + n - 1 of a sequence, which are elements at .. of the caller's. */
static int copy_rows(const struct placed *t, const struct asc_strides *s, const struct asc_tensor *from, int64_t at,
                     int batch, int first, int n, unsigned char *to, size_t bytes, const char *name, char *why,
                     size_t size)
{
    const bool by_head = t->p->layout == ASC_BHLD;
    for (int h = 0; h < (by_head ? t->of.heads : 1); h++) {
        const struct asc_tensor rows = {(const unsigned char *)from->data + (size_t)(at + s->head * h) * bytes,
                                        {s->row, by_head ? 1 : s->head, by_head ? 0 : 1}};
        const struct shape shape = {
            {n, by_head ? t->of.cols : t->of.heads, by_head ? 1 : t->of.cols}, by_head ? 2 : 3, bytes};
        if (copy_in(to + (size_t)problem_tensor_at(&t->of, batch, h, first) * bytes, &rows, &shape, name, why, size) !=
            0)
            return -1;
    }
    return 0;
}

/* One of q, k, v and o, whose sequences may be one behind the other, or in pages: the trace has them padded, with
   never-written values behind them. */
static int copy_tensor(const struct asc_problem *p, enum problem_tensor_id id, const struct asc_tensor *from, void *to,
                       enum dtype dtype, const char *name, char *why, size_t size)
{
    const struct placed t = placed_of(p, id);
    const struct shape whole = matrix(p, id, dtype);
    if (!t.of.lens && !t.packed && !t.paged)
        return copy_in(to, from, &whole, name, why, size);
    const struct asc_strides s = strides_of(p, &t, from);
    int64_t begin = 0;
    for (size_t i = 0; i + 1 < problem_tensor_count(p, id) * whole.bytes; i += 2)
        memcpy((unsigned char *)to + i, &(uint16_t){UNWRITTEN_16}, 2);
    for (int b = 0; b < p->batch; b++) {
        const int64_t pad = placed_left_pad(&t, b);
        const int length = problem_tensor_rows(&t.of, b), step = t.paged ? p->page_size : length;
        const int32_t *pages = p->page_table + (int64_t)b * asc_table_pages(p);
        for (int row = 0; row < length; row += step) {
            const int64_t at = t.paged    ? s.batch * pages[row / step]
                               : t.packed ? s.row * begin
                                          : s.batch * b + s.row * pad;
            if (copy_rows(&t, &s, from, at, b, row, length - row < step ? length - row : step, to, whole.bytes, name,
                          why, size) != 0)
                return -1;
        }
        begin += length;
    }
    return 0;
}

/* Of one scale for each part of a row there is no dimension. */
static struct shape scales_of(const struct asc_problem *p, int heads, int rows, int cols)
{
    return (struct shape){
        {p->batch, heads, asc_scale_groups(p, rows), asc_scale_parts(p, cols)}, p->scale_dims ? 4 : 3, sizeof(float)};
}

static int copy_inputs(struct asc_capture *c, const struct asc_tensors *tensors, char *why, size_t size)
{
    const struct asc_problem *p = &c->problem;
    const struct asc_strides bias = asc_bias_strides(p), mask = asc_mask_strides(p);
    const struct shape heads = {{p->heads}, 1, sizeof(float)};
    const struct {
        const char *name;
        const struct asc_tensor *from;
        const void *to;
        struct shape shape;
    } all[] = {{"q", &tensors->q, p->q, {{0}, 0, 0}},
               {"k", &tensors->k, p->k, {{0}, 0, 0}},
               {"v", &tensors->v, p->v, {{0}, 0, 0}},
               {"q_scale", &tensors->q_scale, p->q_scale, scales_of(p, p->heads, p->q_len, p->head_dim)},
               {"k_scale", &tensors->k_scale, p->k_scale, scales_of(p, p->kv_heads, p->kv_len, p->head_dim)},
               {"v_scale", &tensors->v_scale, p->v_scale, scales_of(p, p->kv_heads, p->kv_len, p->head_dim_v)},
               {"sink", &tensors->sink, p->sink, heads},
               {"alibi", &tensors->alibi, p->alibi, heads},
               {"bias",
                &tensors->bias,
                p->bias,
                {{bias.batch ? p->batch : 1, bias.head ? p->heads : 1, p->q_len, p->kv_len}, 4, sizeof(float)}},
               {"mask",
                &tensors->mask,
                p->mask,
                {{mask.batch ? p->batch : 1, mask.head ? p->heads : 1, p->q_len, p->kv_len}, 4, 1}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].to && !all[i].from->data)
            return fail(why, size, "%s is missing: this problem has one", all[i].name);
        if (!all[i].to && all[i].from->data)
            return fail(why, size, "%s is given, but the problem has none", all[i].name);
        void *to = (void *)(uintptr_t)all[i].to;
        const enum problem_tensor_id id = (enum problem_tensor_id)i;
        const int failed =
            !to             ? 0
            : i <= TENSOR_V ? copy_tensor(p, id, all[i].from, to, problem_tensor(p, id).dtype, all[i].name, why, size)
                            : copy_in(to, all[i].from, &all[i].shape, all[i].name, why, size);
        if (failed)
            return -1;
    }
    return 0;
}

static const struct layout *layout_of(const struct asc_capture *c)
{
    return &((const struct live_header *)c->mapping)->layout;
}

/* Device memory of this process, never written. */
static int take_own(struct asc_capture *c)
{
    const struct layout *l = layout_of(c);
    struct unwritten_part parts[ASC_ALL_CHANNELS];
    size_t available = 0, all = 0;
    const size_t bytes = l->total_bytes - l->values_offset;
    int status = driver.memory(&available, &all);
    if (!status && bytes > available - available / 10)
        return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
    if (!status)
        status = driver.allocate(&c->values, bytes);
    const int n = layout_unwritten(l, parts);
    for (int i = 0; i < n && !status; i++)
        status = driver.fill(c->values + (parts[i].begin - l->values_offset), parts[i].pattern,
                             (parts[i].end - parts[i].begin) / sizeof parts[i].pattern);
    return status;
}

/* Where the values go, as the keeper says; why_not: what it would rather, and why not. */
static int take_memory(struct asc_capture *c, const struct keep_answer *answer, char *why_not, size_t why_bytes,
                       char *why, size_t size)
{
    const struct layout *l = layout_of(c);
    uint64_t pinned = 0;
    int status = 0;
    c->memory = (enum memory_kind)answer->memory;
    snprintf(why_not, why_bytes, "%.255s", answer->memory_why);
    if (l->total_bytes == l->values_offset)
        c->memory = MEMORY_PINNED;
    if (answer->guarded && c->memory != MEMORY_PINNED) {
        struct cuda_handle handle;
        memcpy(handle.bytes, answer->handle, sizeof handle.bytes);
        status = driver.open(&c->values, handle, LAZY_PEER_ACCESS);
        if (status && c->memory == MEMORY_GUARD)
            return fail(why, size, "the guardian's device memory cannot be opened: %s", driver_error(status));
        if (status) {
            c->values = 0;
            snprintf(why_not, why_bytes, "the guardian's device memory cannot be opened: %s", driver_error(status));
        }
        c->opened = !status;
        c->memory = status ? MEMORY_AUTO : MEMORY_GUARD;
    }
    if (c->memory == MEMORY_DEVICE || c->memory == MEMORY_AUTO) {
        status = take_own(c);
        if (status && c->memory == MEMORY_DEVICE)
            return fail(why, size, "no device memory for the values: %s", driver_error(status));
        if (status && c->values)
            driver.release(c->values);
        if (status)
            c->values = 0;
        c->memory = status ? MEMORY_PINNED : MEMORY_DEVICE;
    }
    status = driver.pin(c->mapping, c->values ? l->values_offset : c->n_bytes, MAPPED);
    c->pinned = !status;
    if (!status)
        status = driver.pinned_address(&pinned, c->mapping, 0);
    if (!status)
        status = driver.allocate(&c->slot, l->slot_index.bytes);
    if (!status)
        status = driver.to_device(c->slot, c->state.slot, l->slot_index.bytes);
    if (status)
        return fail(why, size, "the trace cannot be pinned: %s", driver_error(status));
    unsigned char *const mapped = (unsigned char *)(uintptr_t)pinned;
    const unsigned char *host = c->mapping;
    struct asc_device *s = &c->state;
    s->dropped = (uint64_t *)(void *)(mapped + ((const unsigned char *)s->dropped - host));
    s->mistyped = (uint64_t *)(void *)(mapped + ((const unsigned char *)s->mistyped - host));
    s->unfed = NULL;
    s->slot = (const int32_t *)(uintptr_t)c->slot;
    s->stamps = s->trace = mapped;
    if (c->values)
        s->trace = (unsigned char *)(uintptr_t)(c->values - l->values_offset);
    return 0;
}

static bool runs_elsewhere(const struct asc_capture *c)
{
    for (int i = 0; i < DEVICES_MAX; i++)
        if (i != c->device && running[i])
            return true;
    return false;
}

static int bind_one(const struct asc_capture *c, struct asc_noted_module *module, const struct asc_device *state)
{
    void *address = NULL;
    int status = module->address(&address);
    if (!status)
        status = driver.to_device((uint64_t)(uintptr_t)address, state, sizeof *state);
    if (!status)
        module->bound = state->batch || runs_elsewhere(c);
    return status;
}

static int bind_all(const struct asc_capture *c, const struct asc_device *state, char *why, size_t size)
{
    const struct modules *modules = &c->bound;
    for (int i = 0; i < modules->n; i++) {
        const int status = bind_one(c, modules->of[i], state);
        if (status)
            return fail(why, size, "the probes of %s cannot be bound: %s", modules->of[i]->file, driver_error(status));
    }
    const int status = driver.synchronize();
    return status ? fail(why, size, "the probes cannot be bound: %s", driver_error(status)) : 0;
}

static int check_modules(const struct modules *modules, char *why, size_t size)
{
    if (!modules->n)
        return fail(why, size, "no probe in this process: compile the kernels with -DASC_MODE=1, and load them first");
    for (int i = 0; i < modules->n; i++) {
        const struct asc_noted_module *module = modules->of[i];
        if (module->abi != ASC_ABI_VERSION || module->state_bytes != sizeof(struct asc_device))
            return fail(why, size, "%s was compiled with an attnscope.h of ABI version %u; expected %u", module->file,
                        module->abi, ASC_ABI_VERSION);
        if (module->values && strcmp(module->values, values_of(modules)) != 0)
            return fail(why, size, "ASC_VALUES of %s declares other values than another file: one header for both",
                        module->file);
    }
    return 0;
}

/* The context of the caller's runtime, or of device 0 where nothing has run yet. */
static int find_context(struct asc_capture *c, char *why, size_t size)
{
    int status = driver.current(&c->context);
    if (!status && !c->context) {
        status = driver.retain(&c->context, 0);
        if (!status)
            status = driver.make_current(c->context);
    }
    if (!status)
        status = driver.device(&c->device);
    if (!status)
        status = driver.synchronize();
    if (status)
        return fail(why, size, "the device is waited for first: %s", driver_error(status));
    if (c->device < 0 || c->device >= DEVICES_MAX)
        return fail(why, size, "device %d; there are at most %d", c->device, DEVICES_MAX);
    return running[c->device] ? fail(why, size, "another capture is under way on device %d", c->device) : 0;
}

static void name_device(const struct asc_capture *c, char *out, size_t size)
{
    char name[64] = "";
    int major = 0, minor = 0;
    driver.name(name, sizeof name, c->device);
    driver.attribute(&major, ATTRIBUTE_MAJOR, c->device);
    driver.attribute(&minor, ATTRIBUTE_MINOR, c->device);
    snprintf(out, size, "%s, sm_%d%d", name, major, minor);
}

static int make_trace(struct asc_capture *c, const char *json, struct keep_answer *answer, char *why, size_t size)
{
    struct keep_request request = {.op = KEEP_MAKE, .abi = ASC_ABI_VERSION, .device = c->device};
    struct err err = {0};
    int got = -1;
    const int description = describe(&c->bound, json);
    int failed = description < 0 ? fail(why, size, "no memory file for the description")
                                 : ask(c, &request, description, answer, &got, why, size);
    if (description >= 0)
        close(description);
    if (!failed && trace_attach(got, &c->problem, &c->plan, &c->state, &c->mapping, &c->n_bytes, &err) != 0)
        failed = fail(why, size, "%s: %s", err.where, err.message);
    if (got >= 0)
        close(got);
    return failed;
}

static int begin(struct asc_capture *c, const char *json, const struct asc_tensors *tensors, char *why, size_t size)
{
    struct keep_answer answer = {0};
    struct keep_request request = {.op = KEEP_BEGIN};
    int none;
    modules_find(&c->bound);
    if (driver_open(why, size) != 0 || check_modules(&c->bound, why, size) != 0 || find_context(c, why, size) != 0 ||
        start_keeper(c, why, size) != 0 || make_trace(c, json, &answer, why, size) != 0 ||
        copy_inputs(c, tensors, why, size) != 0 ||
        take_memory(c, &answer, request.memory_why, sizeof request.memory_why, why, size) != 0)
        return -1;
    request.memory = c->memory;
    name_device(c, request.device_name, sizeof request.device_name);
    if (ask(c, &request, -1, &answer, &none, why, size) != 0 || bind_all(c, &c->state, why, size) != 0)
        return -1;
    running[c->device] = c;
    c->begun_at = now();
    return 0;
}

/* A keeper that saved or forgot its trace serves again; another one ends with its socket. */
static void release(struct asc_capture *c, bool reusable)
{
    if (c->opened)
        driver.close(c->values);
    else if (c->values)
        driver.release(c->values);
    if (c->slot)
        driver.release(c->slot);
    if (c->pinned)
        driver.unpin(c->mapping);
    if (c->mapping)
        munmap(c->mapping, c->n_bytes);
    if (c->socket >= 0 && reusable && idle.socket < 0) {
        idle.socket = c->socket;
        idle.keeper = c->keeper;
    } else if (c->socket >= 0) {
        close(c->socket);
        if (c->keeper > 0)
            waitpid(c->keeper, NULL, reusable ? 0 : WNOHANG);
    }
    free(c);
}

int asc_capture_begin(const char *json, const struct asc_tensors *tensors, struct asc_capture **capture, char *why,
                      size_t size)
{
    struct asc_capture *c = calloc(1, sizeof *c);
    *why = '\0';
    *capture = NULL;
    if (!c)
        return fail(why, size, "out of memory for a capture");
    c->socket = c->keeper = -1;
    pthread_mutex_lock(&lock);
    const int failed = begin(c, json, tensors, why, size);
    if (failed) {
        static const struct asc_device nothing;
        char ignored[256];
        if (c->begun_at == 0 && c->pinned)
            bind_all(c, &nothing, ignored, sizeof ignored);
        release(c, false);
    } else {
        *capture = c;
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

/* The outputs, into the trace. */
static int bring_home(struct asc_capture *c, const struct asc_tensor *o, const struct asc_tensor *lse, char *why,
                      size_t size)
{
    const struct asc_problem *p = &c->problem;
    const struct layout *l = layout_of(c);
    const struct shape of_lse = {{p->batch, p->heads, p->q_len}, 3, sizeof(float)};
    if (o && o->data && copy_tensor(p, TENSOR_O, o, p->o, (enum dtype)l->o.dtype, "o", why, size) != 0)
        return -1;
    return lse && lse->data ? copy_in(p->lse, lse, &of_lse, "lse", why, size) : 0;
}

/* Values of this process's device memory, to where the keeper says. */
static int copy_values(struct asc_capture *c, const struct keep_answer *to, int fd, char *why, size_t size)
{
    struct keep_request request = {.op = KEEP_COPIED};
    struct copy_room room = {0};
    struct keep_answer answer;
    int none;
    copy_out(&room, c->context, c->values, to->piece, to->n_pieces, fd, request.text, sizeof request.text);
    copy_room_free(&room);
    return ask(c, &request, -1, &answer, &none, why, size);
}

/* Objects that came inside of the capture and were not bound: what their probes saw is lost. */
static void tell_late(const struct asc_capture *c)
{
    struct modules all = c->bound;
    modules_find(&all);
    const int late = all.n - c->bound.n;
    if (late > 0)
        fprintf(stderr,
                "attnscope: probes of %d file%s loaded inside of the capture are not recorded (asc_capture_late)\n",
                late, late == 1 ? "" : "s");
}

int asc_capture_end(struct asc_capture *c, const struct asc_tensor *o, const struct asc_tensor *lse, char *why,
                    size_t size)
{
    static const struct asc_device nothing;
    struct keep_request request = {.op = KEEP_END, .has_o = o && o->data, .has_lse = lse && lse->data};
    struct keep_answer answer;
    void *context = NULL;
    int to = -1, failed = 0;
    char said[256] = "";
    *why = '\0';
    pthread_mutex_lock(&lock);
    tell_late(c);
    driver.current(&context);
    driver.make_current(c->context);
    const int status = driver.synchronize();
    request.seconds = now() - c->begun_at;
    if (status) {
        request.failed = status;
        request.lost = c->values && !c->opened;
        snprintf(request.text, sizeof request.text, "the kernel stopped: %s", driver_error(status));
        snprintf(said, sizeof said, "%s", request.text);
    } else {
        failed = bind_all(c, &nothing, why, size) != 0 || bring_home(c, o, lse, why, size) != 0 ? -1 : 0;
    }
    /* A trace without what was recorded is nobody's. */
    if (failed)
        request.op = KEEP_DROP;
    if (ask(c, &request, -1, &answer, &to, failed ? said : why, failed ? sizeof said : size) != 0 ||
        (answer.n_pieces && copy_values(c, &answer, to, why, size) != 0))
        failed = -1;
    else if (!failed)
        snprintf(why, size, "%s", said);
    if (to >= 0)
        close(to);
    running[c->device] = NULL;
    release(c, !failed && !status);
    driver.make_current(context);
    pthread_mutex_unlock(&lock);
    return failed;
}

void asc_capture_drop(struct asc_capture *c)
{
    static const struct asc_device nothing;
    const struct keep_request request = {.op = KEEP_DROP};
    struct keep_answer answer;
    void *context = NULL;
    int none;
    char ignored[256];
    if (!c)
        return;
    pthread_mutex_lock(&lock);
    driver.current(&context);
    driver.make_current(c->context);
    const bool alive = driver.synchronize() == 0 && bind_all(c, &nothing, ignored, sizeof ignored) == 0;
    const bool forgotten = ask(c, &request, -1, &answer, &none, ignored, sizeof ignored) == 0;
    running[c->device] = NULL;
    release(c, alive && forgotten);
    driver.make_current(context);
    pthread_mutex_unlock(&lock);
}

int asc_capture_late(struct asc_capture *c, int bind)
{
    pthread_mutex_lock(&lock);
    struct modules all = c->bound;
    modules_find(&all);
    int late = all.n - c->bound.n;
    for (int i = c->bound.n; bind && i < all.n && late >= 0; i++)
        if (all.of[i]->abi != ASC_ABI_VERSION || bind_one(c, all.of[i], &c->state) != 0)
            late = -1;
    if (bind && late > 0)
        c->bound = all;
    pthread_mutex_unlock(&lock);
    return late;
}

static struct modules listed;

int asc_capture_modules(void)
{
    pthread_mutex_lock(&lock);
    listed.n = 0;
    modules_find(&listed);
    pthread_mutex_unlock(&lock);
    return listed.n;
}

const char *asc_capture_module(int i)
{
    return i >= 0 && i < listed.n ? listed.of[i]->file : "";
}
