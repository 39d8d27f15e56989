/* A trace made of what the input says: problem, plan, conventions, types, values with NaN, stamps, texts and events. It
   is saved, and opened as any other. */
#include "engine/trace/conventions.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct source {
    const uint8_t *data;
    size_t size;
    uint64_t state; /* of values, of which there are more than bytes of input */
};

static unsigned take(struct source *from)
{
    if (from->size == 0)
        return 0;
    from->size--;
    return *from->data++;
}

/* Within [low, high]. */
static int32_t take_count(struct source *from, int low, int high)
{
    const unsigned first = take(from);
    return low + (int)((first | take(from) << 8) % (unsigned)(high - low + 1));
}

static float take_float(struct source *from)
{
    uint32_t bits = 0;
    float value;
    for (int i = 0; i < 4; i++)
        bits = bits << 8 | take(from);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static unsigned draw(struct source *from, unsigned n)
{
    from->state = from->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(from->state >> 33) % n;
}

static void put_value(struct source *from, enum dtype dtype, bool odd, unsigned char *to)
{
    const double ordinary = draw(from, 2000) / 1000.0 - 1;
    static const double specials[] = {0, INFINITY, -INFINITY, NAN, 1e30, 1e-40, -0.0, 448, 65504};
    const double value = odd && draw(from, 4) == 0 ? specials[draw(from, 9)] : ordinary;
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (odd && draw(from, 8) == 0) { /* never written: abi.h */
        for (size_t i = 0; i < dtype_bytes(dtype); i++)
            to[i] = i % 2 ? 0x7F : 0xF5;
    } else if (dtype == DTYPE_F64) {
        memcpy(to, &value, sizeof value);
    } else if (dtype == DTYPE_F32) {
        memcpy(to, &single, sizeof single);
    } else if (dtype == DTYPE_BF16) {
        bits >>= 16;
        memcpy(to, &bits, 2);
    } else {
        for (size_t i = 0; i < dtype_bytes(dtype); i++)
            to[i] = (unsigned char)draw(from, 256);
        if (dtype == DTYPE_F16 && !odd)
            to[1] = (unsigned char)(0x30 | (to[1] & 0x8B)); /* of magnitude 0.1 to 1 */
    }
}

static void put_values(struct source *from, const void *at, size_t n, enum dtype dtype, bool odd, struct trace *t,
                       unsigned char *mapped)
{
    unsigned char *to = mapped + ((const unsigned char *)at - t->bytes);
    for (size_t i = 0; i < n; i++)
        put_value(from, dtype, odd, to + i * dtype_bytes(dtype));
}

static void take_problem(struct source *from, struct asc_problem *p)
{
    p->batch = take_count(from, 1, 2);
    p->kv_heads = take_count(from, 1, 2);
    p->heads = p->kv_heads * take_count(from, 1, 2);
    p->q_len = take_count(from, 1, 14);
    p->kv_len = take_count(from, 1, 14);
    p->head_dim = take_count(from, 1, 6);
    p->head_dim_v = take_count(from, 1, 6);
    p->causal = take_count(from, 0, 2);
    p->window_left = take(from) & 1 ? -1 : take_count(from, 0, 5);
    p->window_right = take(from) & 1 ? -1 : take_count(from, 0, 5);
    p->layout = take_count(from, 0, 1);
    p->dtype = take_count(from, 0, DTYPE_COUNT - 1);
    p->k_dtype = take(from) & 1 ? p->dtype : take_count(from, 0, DTYPE_COUNT - 1);
    p->v_dtype = take(from) & 1 ? p->dtype : take_count(from, 0, DTYPE_COUNT - 1);
    p->scale_rows = take_count(from, 0, 5);
    p->scale = take(from) & 1 ? 0.25f : take_float(from);
    p->softcap = take(from) & 1 ? 0 : take_float(from);
    p->has_sink = take(from) & 1;
    p->has_alibi = take(from) & 1;
    p->bias_kind = take(from) & 1 ? 0 : take_count(from, 0, 4);
}

static void take_plan(struct source *from, struct asc_plan *plan)
{
    plan->br = take_count(from, 1, 8);
    plan->bc = take_count(from, 1, 8);
    plan->threads = take_count(from, 1, 40);
    plan->kv_splits = take_count(from, 0, 5);
    plan->kv_deal = take_count(from, 0, 1);
    plan->error_limit = take(from) & 1 ? 0 : fabsf(take_float(from));
}

static void take_conventions(struct source *from, const struct asc_problem *p, struct asc_conventions *c)
{
    struct err err;
    for (int i = 0; i < CONVENTIONS; i++) {
        const unsigned byte = take(from);
        if (byte >= 235)
            convention_set(c, i,
                           conventions[i].kind == CONVENTION_REAL
                               ? (double)take_float(from)
                               : (double)(byte % ((unsigned)conventions[i].high + 1)));
    }
    conventions_resolve(c, p);
    if (conventions_check(c, "fuzz", &err) != 0) {
        *c = (struct asc_conventions){0};
        conventions_resolve(c, p);
    }
}

static void take_text(struct source *from, char *to, size_t bytes)
{
    static const char *const known[] = {"complete", "crashed", "hung",         "cancelled", "race", "fp-invalid",
                                        "on",       "off",     "cpu",          "gpu",       "h100", "\033[2J\xff\n\t",
                                        "k.cu",     "",        "uninitialized"};
    const unsigned n = take(from) % 40;
    if (n < 24) {
        snprintf(to, bytes, "%s", known[n % (sizeof known / sizeof *known)]);
        return;
    }
    for (size_t i = 0; i < n && i + 1 < bytes; i++)
        to[i] = (char)take(from);
}

static void take_event(struct source *from, struct trace_event *e)
{
    trace_event_init(e);
    e->kind = (enum event_kind)take_count(from, 0, EVENT_KINDS - 1);
    take_text(from, e->text, sizeof e->text);
    take_text(from, e->file, sizeof e->file);
    take_text(from, e->other_file, sizeof e->other_file);
    e->line = take_count(from, -1, 9);
    e->other_line = take_count(from, 0, 9);
    e->batch = take_count(from, -2, 3);
    e->head = take_count(from, -2, 3);
    e->q_tile = take_count(from, -2, 7);
    e->kv_tile = take_count(from, -2, 7);
    e->times = take_count(from, -1, 9);
}

static void take_info(struct source *from, struct trace_info *info)
{
    take_text(from, info->kernel, sizeof info->kernel);
    take_text(from, info->source_name, sizeof info->source_name);
    info->backend = (enum backend)take_count(from, BACKEND_CPU, BACKEND_GPU);
    take_text(from, info->device, sizeof info->device);
    take_text(from, info->tensor_core, sizeof info->tensor_core);
    info->probes_off = take(from) & 1;
    info->checked = take(from) & 1;
    info->status = RUN_COMPLETE;
    if (take(from) > 180) {
        info->status = (int32_t)(take(from) % (RUN_REFUSED + 1));
        take_text(from, info->status_text, sizeof info->status_text);
        info->stopped = (enum event_kind)take_count(from, 0, EVENT_KINDS - 1);
    }
    info->source = strdup("a\nb\n\tc\033[2J\n// ASC\n\xff\xfe z\n");
    info->n_sites = (size_t)take_count(from, 0, 12);
    info->sites = calloc(info->n_sites + 1, sizeof *info->sites);
    for (size_t i = 0; info->sites && i < info->n_sites; i++) {
        info->sites[i].channel = (enum asc_channel)take_count(from, 0, ASC_CHANNELS - 1);
        info->sites[i].line = take_count(from, -1, 9);
        take_text(from, info->sites[i].file, sizeof info->sites[i].file);
    }
    info->n_events = take(from) & 1 ? 0 : (size_t)take_count(from, 0, 4);
    info->events = calloc(info->n_events + 1, sizeof *info->events);
    for (size_t i = 0; info->events && i < info->n_events; i++)
        take_event(from, &info->events[i]);
}

/* What probes leave, in a mapping that may be written. */
static void put_recorded(struct source *from, struct trace *t, unsigned char *mapped)
{
    const unsigned stamps = take(from);
    const bool odd = take(from) & 1, outputs = take(from) & 3;
    const struct asc_problem *p = &t->problem;
    const size_t rows = (size_t)p->batch * (size_t)p->heads * (size_t)p->q_len;
    enum dtype dtype;
    if (outputs) {
        const void *o = trace_tensor(t, 'o', &dtype);
        put_values(from, o, rows * (size_t)p->head_dim_v, dtype, odd, t, mapped);
        const void *lse = trace_tensor(t, 'L', &dtype);
        put_values(from, lse, rows, dtype, odd, t, mapped);
    }
    for (int slot = 0; slot < t->layout.n_slots; slot++)
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            for (int kv = 0; kv < (channel_per_kv((enum asc_channel)ch) ? t->layout.kv_tiles : 1); kv++) {
                const struct tile tile = trace_tile(t, (enum asc_channel)ch, slot, kv);
                if (!tile.data || (stamps > 200 && draw(from, 4) == 0))
                    continue;
                put_values(from, tile.data, (size_t)tile.rows * (size_t)tile.cols, tile.dtype, odd, t, mapped);
                const unsigned char *at = (const void *)trace_stamps(t, (enum asc_channel)ch, slot, kv);
                for (int w = 0; w < t->layout.warps; w++) {
                    const uint64_t clock = stamps & 2   ? (uint64_t)(kv * 20 + ch + 1)
                                           : stamps & 4 ? draw(from, 7)
                                                        : (uint64_t)draw(from, 1u << 30) << 33;
                    memcpy(mapped + (at - t->bytes) + (size_t)w * sizeof clock, &clock, sizeof clock);
                }
            }
}

static int take_slots(struct source *from, const struct asc_problem *p, int q_tiles, int32_t slots[3][3])
{
    const bool all = take(from) > 40;
    int n = 0;
    for (int i = 0; i < p->batch * p->heads * q_tiles && n < 3; i++)
        if (all || draw(from, 2)) {
            slots[n][0] = i / q_tiles / p->heads;
            slots[n][1] = i / q_tiles % p->heads;
            slots[n++][2] = i % q_tiles;
        }
    return n;
}

static struct trace *make_trace(struct source *from)
{
    /* As much as the largest problem has, of the widest type. */
    static unsigned char inputs[3][2 * 4 * 14 * 6 * 8];
    static float terms[2 * 4 * 14 * 14];
    struct asc_problem p = {0};
    struct asc_plan plan = {0};
    struct asc_conventions c = {0};
    struct layout_types types;
    struct err err;
    struct trace *t = NULL;
    int32_t slots[3][3];
    take_problem(from, &p);
    take_plan(from, &plan);
    if (problem_check(&p, "fuzz", &err) != 0)
        return NULL;
    take_conventions(from, &p, &c);
    plan.l_lanes = c.l_lanes;
    types.o = take_count(from, 0, DTYPE_COUNT - 1);
    const unsigned mixed = take(from);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = mixed < 128 ? DTYPE_F32 : take(from) < 60 ? -1 : (int)take_count(from, 0, DTYPE_COUNT - 1);
    const int n_slots = take_slots(from, &p, (p.q_len + plan.br - 1) / plan.br, slots);
    const bool odd = take(from) > 200;
    const int32_t input_types[3] = {p.dtype, p.k_dtype, p.v_dtype};
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof *inputs / 8; k++)
            put_value(from, (enum dtype)input_types[i], odd, inputs[i] + k * dtype_bytes((enum dtype)input_types[i]));
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        put_value(from, DTYPE_F32, odd, (unsigned char *)&terms[i]);
    p.sink = p.alibi = p.bias = p.q_scale = p.k_scale = p.v_scale = terms;
    if (trace_create(&p, &plan, &c, &types, (const int32_t(*)[3])slots, n_slots, inputs[0], inputs[1], inputs[2], &t,
                     &err) != 0)
        return NULL;
    unsigned char *mapped = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (mapped == MAP_FAILED)
        abort();
    put_recorded(from, t, mapped);
    munmap(mapped, t->n_bytes);
    take_info(from, &t->info);
    return t;
}

static char folder[] = "/dev/shm/attnscope-fuzz-XXXXXX", path[sizeof folder + 32];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source from = {data, size, size * 77 + 1};
    struct err err;
    struct trace *t = make_trace(&from);
    if (!path[0]) {
        if (!mkdtemp(folder) || atexit(remove_folder) != 0)
            abort();
        snprintf(path, sizeof path, "%s/trace.safetensors", folder);
    }
    const char *keep = getenv("FUZZ_KEEP"); /* where the trace is left: a seed of fuzz_trace */
    if (t && trace_save(t, keep ? keep : path, &err) == 0) {
        trace_free(t);
        fuzz_trace_file(keep ? keep : path, take(&from) * 2654435761u + take(&from));
        return 0;
    }
    trace_free(t);
    return -1;
}
