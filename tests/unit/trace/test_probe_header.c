/* attnscope.h: what probes write on the CPU, what they refuse to write, how the builder finds them, and that a release
   build for the GPU is the same machine code as without them. Compilers are run from the repository's root. */
#include "engine/trace/live.h"
#include "engine/trace/trace.h"
#include "tests/unit/lib/temporary.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[TEMPORARY];

/* Runs a command line in sh; what it printed ends up in the failure's message. */
static void runs(const char *format, const char *a, const char *b)
{
    char command[2048], output[4096];
    int n = snprintf(command, sizeof command, "{ ");
    n += snprintf(command + n, sizeof command - (size_t)n, format, a, b);
    snprintf(command + n, sizeof command - (size_t)n, "; } 2>&1");
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t got = fread(output, 1, sizeof output - 1, pipe);
    output[got] = '\0';
    if (pclose(pipe) != 0)
        fail_msg("%s\n%s", command, output);
}

static char *read_text(const char *name, size_t *n_bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("the compiler made no %s", path);
    char *text = calloc(1, 1 << 22);
    assert_non_null(text);
    *n_bytes = fread(text, 1, (1 << 22) - 1, file);
    fclose(file);
    return text;
}

/* The debuggees made of tests/probes/host_probes.cu: one that records, one that also feeds. */
struct debuggee {
    void *library;
    int (*bind)(const struct asc_device *device);
    struct asc_kernel kernel;
};
static struct debuggee recording, feeding;
static int n_libraries;

static void load_sources(struct debuggee *d, const char *mode, const char *sources)
{
    char path[256], options[900];
    void (*describe)(struct asc_kernel * kernel);
    if (d->library)
        return;
    snprintf(path, sizeof path, "%s/probes%d.so", folder, n_libraries++);
    runs("cc -D_GNU_SOURCE -I. -fPIC -c engine/child/debuggee/modules.c -o %s/modules.o%s", folder, "");
    snprintf(options, sizeof options, "-DASC_MODE=%s -o %s -x c++ %s -x none %s/modules.o", mode, path, sources,
             folder);
    runs("c++ -std=c++17 -O2 -Wall -Wextra -Werror -fPIC -shared -Ibuild/include -include tests/probes/one_thread.h "
         "-DASC_BUILD=1 %s%s",
         options, "");
    d->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!d->library)
        fail_msg("%s", dlerror());
    *(void **)&d->bind = dlsym(d->library, "asc_bind");
    *(void **)&describe = dlsym(d->library, "asc_describe");
    assert_true(d->bind && describe);
    asc_kernel_defaults(&d->kernel);
    d->kernel.name = dlsym(d->library, "asc_kernel_name");
    describe(&d->kernel);
}

static void load_one(struct debuggee *d, const char *mode)
{
    load_sources(d, mode, "tests/probes/host_probes.cu");
}

static void load_debuggee(void)
{
    load_one(&recording, "1");
}

static void registration_says_what_the_kernel_takes(void **state)
{
    (void)state;
    load_debuggee();
    const struct asc_kernel *k = &recording.kernel;
    struct asc_problem p = {.head_dim = 7, .head_dim_v = 7};
    struct asc_plan plan = {0};
    assert_string_equal(k->name, "host_probes");
    assert_int_equal(k->dtypes, 1u << DTYPE_F32 | 1u << DTYPE_E4M3);
    assert_int_equal(k->layouts, ASC_SUPPORTS(BHLD));
    assert_int_equal(k->o_dtype, -1);
    assert_int_equal(k->channel_dtype[asc_alpha], DTYPE_E4M3);
    assert_int_equal(k->channel_dtype[asc_s], -1);
    assert_string_equal(k->plan(&p, &plan), "head_dim must be 6");
    p.head_dim = p.head_dim_v = 6;
    assert_null(k->plan(&p, &plan));
    assert_int_equal(plan.bc, 4);
}

enum { BR = 8, BC = 4, D = 6, KV = 3, SLOTS = 2 };

/* An empty trace of 2 heads x 2 q tiles, (head 0, q tile 0) and (head 1, q tile 1) recorded. */
static struct trace *make_trace(void)
{
    const struct asc_problem p = {.batch = 1,
                                  .heads = 2,
                                  .kv_heads = 2,
                                  .q_len = 2 * BR,
                                  .kv_len = KV * BC,
                                  .head_dim = D,
                                  .head_dim_v = D,
                                  .dtype = DTYPE_F32,
                                  .k_dtype = DTYPE_F32,
                                  .v_dtype = DTYPE_F32,
                                  .window_left = -1,
                                  .window_right = -1,
                                  .scale = 1.0f};
    const int32_t slots[SLOTS][3] = {{0, 0, 0}, {0, 1, 1}};
    const struct asc_conventions conventions = {0};
    static const float zeros[2 * 2 * BR * D];
    struct layout_types types = {.o = DTYPE_F32};
    struct asc_plan plan = {0};
    struct trace *t = NULL;
    struct err err = {0};
    load_debuggee();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    types.channel[asc_alpha] = DTYPE_E4M3;
    types.channel[asc_k] = -1;
    assert_null(recording.kernel.plan(&p, &plan));
    if (trace_create(&p, &plan, &conventions, &types, slots, SLOTS, zeros, zeros, zeros, &t, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    return t;
}

/* A run of a debuggee; fed: NULL, or the trace whose values the probes of `channels` take over. */
static struct trace *run(struct debuggee *d, int lost, const struct trace *fed, uint32_t channels)
{
    struct trace *t = make_trace();
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device device;
    struct err err = {0};
    void *mapping = NULL, *fed_mapping = NULL;
    size_t n_bytes = 0, fed_bytes = 0;
    if (trace_attach(t->fd, &problem, &plan, &device, &mapping, &n_bytes, &err) != 0 ||
        (fed && live_feed(fed->fd, mapping, channels, &device, &fed_mapping, &fed_bytes, &err) != 0))
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(d->bind(&device), 0);
    if (lost)
        problem.batch = -1; /* the kernel then believes to be somewhere else */
    assert_null(d->kernel.launch(&problem, NULL));
    munmap(mapping, n_bytes);
    if (fed)
        munmap(fed_mapping, fed_bytes);
    return t;
}

static struct trace *record(int lost)
{
    load_debuggee();
    return run(&recording, lost, NULL, 0);
}

static float value(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col)
{
    const struct tile tile = trace_tile(t, ch, slot, kv);
    assert_int_equal(tile.dtype, DTYPE_F32);
    return ((const float *)tile.data)[row * tile.cols + col];
}

static int unwritten(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    const struct tile tile = trace_tile(t, ch, slot, kv);
    int n = 0;
    for (size_t i = 0; i < (size_t)tile.rows * (size_t)tile.cols; i++)
        n += dtype_is_unwritten(tile.dtype, tile.data, i);
    return n;
}

static void probes_write_their_tile(void **state)
{
    (void)state;
    struct trace *t = record(0);
    for (int slot = 0; slot < SLOTS; slot++) {
        const float base = slot ? 1100.0f : 0.0f;
        for (int e = 0; e < BR * D; e++)
            assert_true(value(t, asc_q, slot, 0, e / D, e % D) == base + (float)e);
        for (int kv = 0; kv < KV; kv++) {
            const float at = base + (float)(10 * kv);
            for (int row = 0; row < BR; row++) {
                for (int col = 0; col < BC; col++)
                    assert_true(value(t, asc_s, slot, kv, row, col) == at + (float)col);
                assert_true(value(t, asc_m, slot, kv, row, 0) == at);
                for (int col = 0; kv == 1 && row < BC && col < D; col++)
                    assert_true(value(t, asc_v, slot, kv, row, col) == base + (float)(row * D + col));
                assert_true(value(t, asc_p, slot, kv, row, BC - 1) == at);
                assert_int_equal(((const uint8_t *)trace_tile(t, asc_alpha, slot, kv).data)[row], 16 * row + kv);
            }
            assert_int_equal(unwritten(t, asc_p, slot, kv), BR * (BC - 1));
            assert_int_equal(unwritten(t, asc_l, slot, kv), BR);                   /* of another type */
            assert_int_equal(unwritten(t, asc_u, slot, kv), kv ? BR * D - 4 : D);  /* block, fragment */
            assert_int_equal(unwritten(t, asc_v, slot, kv), kv == 1 ? 0 : BC * D); /* no probe */
        }
    }
    assert_true(value(t, asc_lse, 0, 0, 1, 0) == 1120.0f); /* the inner ASC_AT of the last block */
    assert_int_equal(unwritten(t, asc_lse, 0, 0), BR - 2);
    assert_int_equal(unwritten(t, asc_lse, 1, 0), BR - 1);
    trace_free(t);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    struct trace *t = record(0);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        /* p: 64 threads x 2 columns, of which 8 have a place; u: 2 x 2 values for a fourth kv tile, and what lies
         beside it of two fragments. l: doubles. */
        const uint64_t dropped = ch == asc_p   ? SLOTS * KV * (64 * 2 - BR)
                                 : ch == asc_u ? SLOTS * (4 + 512 - (BR - 1) * D)
                                               : 0;
        assert_int_equal(trace_dropped(t, ch), dropped);
        assert_int_equal(trace_mistyped(t, ch), ch == asc_l ? SLOTS * KV * BR : 0);
    }
    trace_free(t);
}

static void stamps_tell_warps_and_order(void **state)
{
    (void)state;
    struct trace *t = record(0);
    for (int slot = 0; slot < SLOTS; slot++) {
        uint64_t before = 0;
        for (int kv = 0; kv < KV; kv++) {
            const uint64_t *s = trace_stamps(t, asc_s, slot, kv), *p = trace_stamps(t, asc_p, slot, kv);
            assert_true(s[0] > before && s[1] == 0); /* rows live in warp 0 */
            assert_true(p[0] > s[0] && p[1] > p[0]);
            assert_true(trace_first_stamp(t, asc_l, slot, kv) > s[0]); /* mistyped, yet it was there */
            before = s[0];
        }
        assert_int_equal(trace_stamps(t, asc_u, slot, 0)[1], 0); /* the fragment is warp 0's */
        assert_true(trace_first_stamp(t, asc_u, slot, 0) > 0);
        assert_int_equal(trace_first_stamp(t, asc_v, slot, 0), 0);
        assert_true(trace_stamps(t, asc_q, slot, 0)[1] > 0);
    }
    trace_free(t);
}

/* A block that is nowhere in the problem changes no byte but the counters, and the lse it addressed rightly. */
static void a_lost_block_writes_nothing(void **state)
{
    (void)state;
    struct trace *t = record(1);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; slot < SLOTS && ch != asc_lse; slot++)
            for (int kv = 0; kv < KV; kv++) {
                const struct tile tile = trace_tile(t, ch, slot, kv);
                if (tile.data && ch != asc_alpha)
                    assert_int_equal(unwritten(t, ch, slot, kv), tile.rows * tile.cols);
                assert_int_equal(trace_first_stamp(t, ch, slot, kv), 0);
            }
    assert_int_equal(trace_dropped(t, asc_q), 4 * BR * D);
    assert_int_equal(trace_dropped(t, asc_s), 4 * KV * BR * BC);
    assert_int_equal(trace_dropped(t, asc_k), 0);
    assert_int_equal(trace_mistyped(t, asc_l), 4 * KV * BR);
    trace_free(t);
}

/* A trace to feed from: element i of every tile is `base` + i, element 0 of each nobody has written. */
static struct trace *make_fed(float base)
{
    struct trace *t = make_trace();
    unsigned char *bytes = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    assert_true(bytes != MAP_FAILED);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; slot < SLOTS; slot++)
            for (int kv = 0; kv < KV; kv++) {
                const struct tile tile = trace_tile(t, ch, slot, kv);
                for (int i = 1; tile.data && i < tile.rows * tile.cols; i++)
                    dtype_store(tile.dtype, bytes + ((const unsigned char *)tile.data - t->bytes), (size_t)i,
                                (double)base + i);
            }
    munmap(bytes, t->n_bytes);
    return t;
}

static void feeding_records_first(void **state)
{
    (void)state;
    load_one(&feeding, "2");
    struct trace *fed = make_fed(5000), *t = run(&feeding, 0, fed, 1u << asc_s | 1u << asc_q);
    for (int slot = 0; slot < SLOTS; slot++) {
        const float base = slot ? 1100.0f : 0.0f;
        for (int e = 0; e < BR * D; e++)
            assert_true(value(t, asc_q, slot, 0, e / D, e % D) == base + (float)e);
        for (int kv = 0; kv < KV; kv++)
            for (int row = 0; row < BR; row++) {
                for (int col = 0; col < BC; col++)
                    assert_true(value(t, asc_s, slot, kv, row, col) == base + (float)(10 * kv + col));
                /* m is made of s[0] behind the probe; that of row 0 the fed trace does not hold. */
                const float own = base + (float)(10 * kv), want = row ? 5000.0f + (float)(row * BC) : own;
                assert_true(value(t, asc_m, slot, kv, row, 0) == want);
            }
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        assert_int_equal(trace_unfed(t, ch), 0);
    trace_free(t);
    trace_free(fed);
}

static void every_copy_is_fed(void **state)
{
    (void)state;
    load_one(&feeding, "2");
    struct trace *fed = make_fed(5000), *t = run(&feeding, 0, fed, 1u << asc_o), *ordinary = record(0);
    for (int slot = 0; slot < SLOTS; slot++)
        for (int row = 0; row < BR; row++) {
            assert_true(value(t, asc_o, slot, 0, row, 0) == (float)(1 + row));
            for (int col = 1; col < D; col++) {
                const float own = (float)(1 + row + BR * (col - 1));
                assert_true(value(ordinary, asc_o, slot, 0, row, col) == own);
                assert_true(value(t, asc_o, slot, 0, row, col) == (row ? 5000.0f + (float)(row * D) : own));
            }
        }
    trace_free(ordinary);
    trace_free(t);
    trace_free(fed);
}

/* Two accumulators of 16x16 side by side, as mma.m16n8 has them, counted from their corner at (1, -14). */
static void a_fragment_lies_as_the_tensor_cores_have_it(void **state)
{
    (void)state;
    load_one(&feeding, "2");
    struct trace *t = record(0);
    for (int slot = 0; slot < SLOTS; slot++) {
        const float base = slot ? 1100.0f : 0.0f;
        for (int row = 0; row < BR - 1; row++) {
            for (int col = 0; col < 2; col++) /* columns 14 and 15 of the first */
                assert_true(value(t, asc_u, slot, 0, 1 + row, col) == base + (float)(16 * (4 * row + 3) + 4 + col));
            for (int col = 0; col < 4; col++) {
                const int at = 16 * (4 * row + col / 2) + 8 + col % 2;
                assert_true(value(t, asc_u, slot, 0, 1 + row, 2 + col) == base + (float)at);
            }
        }
        assert_true(value(t, asc_lse, slot, 0, 2, 0) == base + 16 * 5 + 9);
    }
    trace_free(t);
    struct trace *fed = make_fed(5000);
    t = run(&feeding, 0, fed, 1u << asc_u);
    for (int slot = 0; slot < SLOTS; slot++) {
        assert_true(value(t, asc_u, slot, 0, 2, 5) == (slot ? 1100.0f : 0.0f) + 16 * 5 + 9);
        assert_true(value(t, asc_lse, slot, 0, 2, 0) == 5000.0f + 2 * D + 5); /* row 2, column 5 of the fed tile */
    }
    trace_free(fed);
    trace_free(t);
}

static void const_values_are_counted(void **state)
{
    (void)state;
    load_one(&feeding, "2");
    struct trace *fed = make_fed(5000), *t = run(&feeding, 0, fed, 1u << asc_l | 1u << asc_o | 1u << asc_alpha);
    assert_int_equal(trace_unfed(t, asc_l), SLOTS * KV * BR);
    assert_int_equal(trace_unfed(t, asc_o), SLOTS * BR * (D - 1));
    assert_int_equal(trace_unfed(t, asc_alpha), 0);
    assert_int_equal(trace_unfed(t, asc_s), 0); /* not asked for */
    trace_free(t);
    trace_free(fed);
}

/* Without anything to feed, the two builds record the same. */
static void feeding_nothing_is_recording(void **state)
{
    (void)state;
    load_one(&feeding, "2");
    struct trace *a = record(0), *b = run(&feeding, 0, NULL, 0);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; slot < SLOTS; slot++)
            for (int kv = 0; kv < KV; kv++) {
                const struct tile x = trace_tile(a, ch, slot, kv), y = trace_tile(b, ch, slot, kv);
                if (x.data)
                    assert_memory_equal(x.data, y.data, (size_t)x.rows * (size_t)x.cols * dtype_bytes(x.dtype));
                assert_int_equal(trace_dropped(a, ch), trace_dropped(b, ch));
                assert_int_equal(trace_mistyped(a, ch), trace_mistyped(b, ch));
            }
    trace_free(a);
    trace_free(b);
}

static void feeding_is_refused_where_it_can_not_be(void **state)
{
    (void)state;
    load_debuggee();
    struct trace *t = make_trace(), *fed = make_fed(1);
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device device;
    struct err err = {0};
    void *mapping = NULL, *other = NULL;
    size_t n_bytes = 0, other_bytes = 0;
    assert_int_equal(trace_attach(t->fd, &problem, &plan, &device, &mapping, &n_bytes, &err), 0);
    /* Another slot table: its tiles are not those of this run. */
    unsigned char *bytes = mmap(NULL, fed->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fed->fd, 0);
    assert_true(bytes != MAP_FAILED);
    ((int32_t *)(void *)(bytes + fed->layout.slots.offset))[2] = 1;
    assert_int_equal(live_feed(fed->fd, mapping, 1u << asc_s, &device, &other, &other_bytes, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_null(device.fed);
    ((int32_t *)(void *)(bytes + fed->layout.slots.offset))[2] = 0;
    munmap(bytes, fed->n_bytes);
    /* A build that only records. */
    assert_int_equal(live_feed(fed->fd, mapping, 1u << asc_s, &device, &other, &other_bytes, &err), 0);
    assert_int_not_equal(recording.bind(&device), 0);
    munmap(other, other_bytes);
    munmap(mapping, n_bytes);
    trace_free(fed);
    trace_free(t);
}

static void a_refused_launch_says_why(void **state)
{
    (void)state;
    load_debuggee();
    const struct asc_problem p = {.batch = 2, .heads = 1, .q_len = 1};
    assert_string_equal(recording.kernel.launch(&p, NULL), "too much shared memory");
}

static int line_of(const char *text, const char *what)
{
    const char *at = strstr(text, what);
    assert_non_null(at);
    int line = 1;
    for (const char *c = text; c < at; c++)
        line += *c == '\n';
    return line;
}

/* The builder's contract: asc_site(::asc_named::asc_<name>, <line>) in the preprocessor's output, once per probe line.
 */
static void probe_lines_are_found(void **state)
{
    (void)state;
    size_t n;
    runs("c++ -std=c++17 -E -Ibuild/include -include tests/probes/one_thread.h -DASC_MODE=1 -x c++ "
         "tests/probes/host_probes.cu"
         " >%s/mode1.ii && c++ -std=c++17 -E -Ibuild/include -include tests/probes/one_thread.h -x c++"
         " tests/probes/host_probes.cu >%s/mode0.ii",
         folder, folder);
    runs("cp tests/probes/host_probes.cu %s/host_probes.txt%s", folder, "");
    char *source = read_text("host_probes.txt", &n), *text = read_text("mode1.ii", &n);
    static const struct {
        const char *channel, *probe;
        int more_lines; /* of the same probe: which of them is named is the preprocessor's choice */
    } sites[] = {{"q", "ASC_RECORD_SHARED(q,", 0},     {"s", "ASC_RECORD(s,", 0},
                 {"m", "ASC_RECORD_ROW(m,", 0},        {"l", "ASC_RECORD_ROW(l,", 0},
                 {"alpha", "ASC_RECORD_ROW(alpha", 0}, {"p", "ASC_RECORD(p,", 0},
                 {"u", "ASC_RECORD_SHARED(u,", 0},     {"u", "ASC_RECORD_FRAGMENT(u,", 0},
                 {"lse", "ASC_RECORD_ROW(lse,", 1},    {"v", "ASC_RECORD_SHARED_BY(v,", 0}};
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        const int first = line_of(source, sites[i].probe);
        int found = 0;
        for (int line = first; line <= first + sites[i].more_lines; line++) {
            char token[64];
            snprintf(token, sizeof token, "asc_site(::asc_named::asc_%s, %d)", sites[i].channel, line);
            found += strstr(text, token) != NULL;
        }
        if (found != 1)
            fail_msg("%s: %d sites at line %d", sites[i].probe, found, first);
    }
    free(text);
    text = read_text("mode0.ii", &n);
    assert_null(strstr(text, "asc_site"));
    assert_null(strstr(text, "asc_here"));
    free(text);
    free(source);
}

static void types_without_a_place_do_not_compile(void **state)
{
    (void)state;
    size_t n;
    runs("printf '#include \"attnscope.h\"\\nvoid f() { ASC_AT(0, 0, 0); struct odd { int x; } o{}; "
         "ASC_RECORD_ROW(s, 0, 0, true, o); }\\n' >%s/odd.cu && ! c++ -std=c++17 -Ibuild/include -include "
         "tests/probes/one_thread.h -DASC_MODE=1 "
         "-fsyntax-only -x c++ %s/odd.cu 2>/dev/null",
         folder, folder);
    runs(
        "c++ -std=c++17 -Ibuild/include -include tests/probes/one_thread.h -DASC_MODE=1 -fsyntax-only -x c++ %s/odd.cu "
        "2>%s/odd.txt ;"
        " true",
        folder, folder);
    char *text = read_text("odd.txt", &n);
    assert_non_null(strstr(text, "attnscope cannot record this type"));
    free(text);
}

/* Machine code of tests/probes/all_macros.cu as it is and with its probe lines blanked, built from one path. */
static void release_code_is_the_same_without_probes(void **state)
{
    (void)state;
    const char *find = "command -v nvcc >/dev/null || test -x /usr/local/cuda/bin/nvcc";
    if (system(find) != 0) {
        print_message("# skipped: no nvcc here, so no machine code to compare\n");
        skip();
    }
    runs("export PATH=\"$PATH:/usr/local/cuda/bin\"; root=$PWD; cd %s || exit 1\n"
         "build() { # name of the result, source, mode\n"
         "    cp \"$2\" all_macros.cu || exit 1; jobs=\n"
         "    for sm in 80 89 90; do\n"
         "        nvcc -std=c++17 -arch=sm_$sm -I\"$root/build/include\" $3 -cubin -o $1_$sm.cubin all_macros.cu & "
         "jobs=\"$jobs $!\"\n"
         "    done\n"
         "    for job in $jobs; do wait $job || exit 1; done\n"
         "}\n"
         "sed '/\\/\\/ probe$/s/.*//' \"$root/tests/probes/all_macros.cu\" >blank.txt || exit 1\n"
         "! grep -q \"ASC_AT(\" blank.txt || exit 1\n"
         "build with \"$root/tests/probes/all_macros.cu\" ''\n"
         "build without blank.txt ''\n"
         "build recording \"$root/tests/probes/all_macros.cu\" -DASC_MODE=1\n"
         "build feeding \"$root/tests/probes/all_macros.cu\" -DASC_MODE=2%s",
         folder, "");
    static const char *const archs[] = {"80", "89", "90"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        size_t with_bytes, without_bytes, recording_bytes;
        snprintf(name, sizeof name, "with_%s.cubin", archs[i]);
        char *with = read_text(name, &with_bytes);
        snprintf(name, sizeof name, "without_%s.cubin", archs[i]);
        char *without = read_text(name, &without_bytes);
        snprintf(name, sizeof name, "recording_%s.cubin", archs[i]);
        char *recording_code = read_text(name, &recording_bytes);
        assert_true(with_bytes > 1000 && memcmp(with, "\177ELF", 4) == 0);
        assert_int_equal(with_bytes, without_bytes);
        assert_memory_equal(with, without, with_bytes);
        assert_true(recording_bytes > with_bytes); /* the comparison can tell */
        free(with);
        free(without);
        snprintf(name, sizeof name, "feeding_%s.cubin", archs[i]);
        free(read_text(name, &with_bytes));
        assert_true(with_bytes > recording_bytes);
        free(recording_code);
    }
}

static int set_up(void **state)
{
    (void)state;
    if (access("probes/attnscope.h", R_OK) != 0) {
        print_error("run from the repository's root\n");
        return -1;
    }
    return mkdtemp(temporary(folder, "header")) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    if (recording.library)
        dlclose(recording.library);
    if (feeding.library)
        dlclose(feeding.library);
    runs("rm -r %s%s", folder, "");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registration_says_what_the_kernel_takes),
        cmocka_unit_test(probes_write_their_tile),
        cmocka_unit_test(a_fragment_lies_as_the_tensor_cores_have_it),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(stamps_tell_warps_and_order),
        cmocka_unit_test(a_lost_block_writes_nothing),
        cmocka_unit_test(feeding_records_first),
        cmocka_unit_test(every_copy_is_fed),
        cmocka_unit_test(const_values_are_counted),
        cmocka_unit_test(feeding_nothing_is_recording),
        cmocka_unit_test(feeding_is_refused_where_it_can_not_be),
        cmocka_unit_test(a_refused_launch_says_why),
        cmocka_unit_test(probe_lines_are_found),
        cmocka_unit_test(types_without_a_place_do_not_compile),
        cmocka_unit_test(release_code_is_the_same_without_probes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
