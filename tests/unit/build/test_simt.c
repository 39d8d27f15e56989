/* The CPU executor: builds tests/simt/X.cu as the builder does, without any CUDA, and runs its cases. */
#include "engine/build/build.h"
#include "engine/build/link_stub.h"
#include "engine/build/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIR "build/test-simt"
#define RUNTIME "build/libdebuggee_cpu.a"
#define INCLUDE "engine/simt/include"

static const char *const programs[] = {"features", "types",    "errors", "tensor",   "unaligned",
                                       "ptx",      "barriers", "hopper", "clusters", "groups"};
#define PROGRAMS (sizeof programs / sizeof programs[0])

static const char *missing; /* why the programs cannot be built on this machine, or NULL */

struct output {
    char text[1 << 16];
    int status; /* exit status; -1: it did not exit */
};

static void run(const char *command, struct output *out)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t n = fread(out->text, 1, sizeof out->text - 1, pipe);
    out->text[n] = '\0';
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe))
        ;
    const int status = pclose(pipe);
    out->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void must_run(const char *command)
{
    struct output out;
    run(command, &out);
    if (out.status)
        fail_msg("%s\n%s", command, out.text);
}

static void join(char *command, size_t bytes, const char *const *flags)
{
    for (; *flags; flags++) {
        const size_t used = strlen(command);
        snprintf(command + used, bytes - used, " %s", *flags);
    }
}

static unsigned char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = calloc(*n + 1, 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

/* As the builder compiles inline PTX: preprocessed, with C++ in its place. */
static void rewrite(const char *program, const char *compiler)
{
    char command[4096], path[64];
    static const char *const own[] = {"engine/", "probes/", NULL};
    struct scan scan = {.own_folders = own, .compiled_path = "", .user_path = ""};
    struct err err;
    size_t n;
    snprintf(path, sizeof path, DIR "/%s.ii", program);
    snprintf(command, sizeof command, "%s -E -dI tests/simt/%s.cu -o %s 2>&1", compiler, program, path);
    must_run(command);
    char *text = (char *)slurp(path, &n);
    if (scan_preprocessed(&scan, text, &err))
        fail_msg("%s: %s", err.where, err.message);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(scan.rewritten ? scan.rewritten : text, f);
    assert_int_equal(fclose(f), 0);
    scan_free(&scan);
    free(text);
}

/* Compiles all programs side by side, then links each with its stub. */
static int build_programs(void **state)
{
    (void)state;
    struct output out;
    run("g++ --version 2>&1", &out);
    if (out.status) {
        missing = "g++ is not installed";
        return 0;
    }
    if (access(RUNTIME, R_OK)) {
        print_error("%s is missing: run `make test`\n", RUNTIME);
        return -1;
    }
    char flags[1024] = "", link[256] = "", command[16384] = "mkdir -p " DIR " && cd . && (";
    join(flags, sizeof flags, simt_compile_flags);
    if (simt_march_flag())
        snprintf(flags + strlen(flags), sizeof flags - strlen(flags), " %s", simt_march_flag());
    char compiler[2048];
    snprintf(compiler, sizeof compiler,
             "env -u CPATH -u C_INCLUDE_PATH -u CPLUS_INCLUDE_PATH g++%s -Wall -Wextra -Werror -I. -Ibuild/include "
             "-I" INCLUDE " -include " INCLUDE "/simt_device.h",
             flags);
    for (size_t i = 0; i < PROGRAMS; i++) {
        char source[96];
        snprintf(source, sizeof source, "tests/simt/%s.cu", programs[i]);
        if (strcmp(programs[i], "ptx") == 0 || strcmp(programs[i], "unaligned") == 0 ||
            strcmp(programs[i], "barriers") == 0 || strcmp(programs[i], "hopper") == 0 ||
            strcmp(programs[i], "clusters") == 0) {
            must_run("mkdir -p " DIR);
            rewrite(programs[i], compiler);
            snprintf(source, sizeof source, "-x c++-cpp-output " DIR "/%s.ii", programs[i]);
        }
        const size_t used = strlen(command);
        snprintf(command + used, sizeof command - used, "%s -c %s -o " DIR "/%s.o & p%zu=$!; ", compiler, source,
                 programs[i], i);
    }
    snprintf(command + strlen(command), sizeof command - strlen(command), "%s",
             "gcc -D_GNU_SOURCE -I. -c tests/simt/host.c -o " DIR "/host.o");
    for (size_t i = 0; i < PROGRAMS; i++)
        snprintf(command + strlen(command), sizeof command - strlen(command), " && wait $p%zu", i);
    snprintf(command + strlen(command), sizeof command - strlen(command), ") 2>&1");
    must_run(command);
    join(link, sizeof link, simt_link_flags);
    for (size_t i = 0; i < PROGRAMS; i++) {
        char object[64], stub[64];
        struct err err;
        snprintf(object, sizeof object, DIR "/%s.o", programs[i]);
        snprintf(stub, sizeof stub, DIR "/%s.s", programs[i]);
        if (link_stub_write(object, stub, &err))
            fail_msg("%s: %s", err.where, err.message);
        snprintf(command, sizeof command, "g++ -o " DIR "/%s %s %s " DIR "/host.o " RUNTIME "%s 2>&1", programs[i],
                 object, stub, link);
        must_run(command);
    }
    return 0;
}

static void run_case(const char *program, const char *arguments, struct output *out)
{
    char command[256];
    if (missing) {
        print_message("skipped: %s\n", missing);
        skip();
    }
    snprintf(command, sizeof command, "timeout 60 " DIR "/%s %s 2>&1", program, arguments);
    run(command, out);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* Exit status 0, and nothing to report: with traps on, in both lane orders, on one worker and several. */
static void runs_clean(const char *program, const char *arguments)
{
    struct output out;
    run_case(program, arguments, &out);
    if (out.status || count(out.text, "report "))
        fail_msg("%s %s: exit status %d\n%s", program, arguments, out.status, out.text);
}

static void test_features(void **state)
{
    (void)state;
    runs_clean("features", "launches 1 1");
    runs_clean("features", "launches 3 1 1");
    runs_clean("features", "launches 2 0");
}

static void test_types(void **state)
{
    (void)state;
    runs_clean("types", "all");
}

static void test_tensor_cores(void **state)
{
    (void)state;
    runs_clean("tensor", "wmma 1 1");
    runs_clean("tensor", "wmma 1 0 1");
}

static void test_arrays_need_no_alignment(void **state)
{
    (void)state;
    runs_clean("unaligned", "v2c_cpasync 2 1");
    runs_clean("unaligned", "v2c_wmma_qk 2 1");
    runs_clean("unaligned", "v2c_wmma 2 1");
    runs_clean("unaligned", "fp16_mma 2 1");
}

static void test_clock_is_the_same_everywhere(void **state)
{
    (void)state;
    struct output one, many;
    run_case("features", "clocks 1", &one);
    assert_int_equal(one.status, 0);
    assert_non_null(strstr(one.text, "stamps "));
    for (int workers = 2; workers < 9; workers += 3) {
        char arguments[32];
        snprintf(arguments, sizeof arguments, "clocks %d 1", workers);
        run_case("features", arguments, &many);
        assert_string_equal(one.text, many.text);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct output out;
    run_case("features", "refusals", &out);
    if (out.status)
        fail_msg("%s", out.text);
    assert_int_equal(count(out.text, "report launch ?:0 "), 3);
    assert_int_equal(count(out.text, "report shared-memory ?:0 "), 1);
    assert_non_null(strstr(out.text, "slow: 232449 bytes of dynamic shared memory, at most 232448 are allowed"));
}

static void test_cancel(void **state)
{
    (void)state;
    struct output out;
    run_case("features", "cancel 2", &out);
    assert_int_equal(out.status, 0);
    assert_non_null(strstr(out.text, "error cancelled"));
    assert_null(strstr(out.text, "report "));
}

/* Line of the comment "at: NAME" in a program's source. */
static int marked_line(const char *program, const char *name)
{
    char line[512], mark[64], path[96];
    snprintf(path, sizeof path, "tests/simt/%s.cu", program);
    snprintf(mark, sizeof mark, "// at: %s\n", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int n = 0, found = 0;
    while (fgets(line, sizeof line, f)) {
        n++;
        if (strstr(line, mark))
            found = n;
    }
    fclose(f);
    if (!found)
        fail_msg("no line is marked 'at: %s'", name);
    return found;
}

struct mistake {
    const char *name;         /* of the case */
    const char *mark;         /* of the line; NULL: any */
    const char *kind, *place; /* as printed by host.c */
    const char *text;         /* part of the sentence */
    int fatal, status, reports;
    int needs; /* enum */
};
enum { ANYWHERE, X86, F16C };

/* clang-format off */
static const struct mistake mistakes[] = {
    {"partial", "partial", "barrier", "block 0,0,0 thread 0,0,0", "by 40 of 64 threads", 0, 0, 1, ANYWHERE},
    {"lines", "lines", "barrier", "block 0,0,0 thread 32,0,0", "different __syncthreads", 0, 0, 1, ANYWHERE},
    {"deadlock", "deadlock", "deadlock", "block 0,0,0 thread 0,0,0", "|threads 0..19 wait in __shfl_sync (mask ffffffff) at errors.cu:", 1, 1, 1, ANYWHERE},
    {"deadlock", "deadlock", "deadlock", "block 0,0,0 thread 0,0,0", "|threads 20..63 wait in __syncthreads at errors.cu:", 1, 1, 1, ANYWHERE},
    {"outside", "outside", "shuffle", "block 0,0,0 thread 0,0,0", "lane 0 reads lane 9", 0, 0, 1, ANYWHERE},
    {"unnamed", "unnamed", "shuffle", "block 0,0,0 thread 5,0,0", "mask 0000000f", 0, 0, 1, ANYWHERE},
    {"mixed", "mixed", "shuffle", "block 0,0,0 thread 1,0,0", "at different lines", 0, 0, 1, ANYWHERE},
    {"null-write", "null-write", "address", "block 0,1,0 thread 2,0,0", "address 0x0 (a null pointer)", 1, 3, 1, ANYWHERE},
    {"far-read", "far-read", "address", "block 0,0,0 thread 1,0,0", "address 0x100", 1, 3, 1, ANYWHERE},
    {"stack-overflow", NULL, "address", "block 0,0,0 thread 31,0,0", "stack overflow", 1, 3, 1, ANYWHERE},
    {"assertion", "assertion", "assert", "block 0,0,0 thread 1,2,0", "assert(threadIdx.y < 2 || threadIdx.x == 0)", 1, 4, 1, ANYWHERE},
    {"trap", "trap", "trap", "block 0,0,0 thread 63,0,0", "__trap()", 1, 3, 1, ANYWHERE},
    {"int-divide", "int-divide", "trap", "block 0,0,0 thread 4,0,0", "integer division by zero", 1, 3, 1, X86},
    {"invalid", "invalid", "fp-invalid", "block 1,0,0 thread 33,0,0", "NaN", 0, 0, 1, X86},
    {"poison", "poison", "fp-invalid", "block 0,0,0 thread 63,0,0", "uninitialized memory", 0, 0, 1, X86},
    {"divide", "divide", "fp-divide", "block 0,0,0 thread 3,0,0", "division by zero", 0, 0, 1, X86},
    {"divide-long", "divide-long", "fp-divide", "block 0,0,0 thread 3,0,0", "division by zero", 0, 0, 1, X86},
    {"overflow", "overflow", "fp-overflow", "block 0,0,0 thread 7,0,0", "overflow", 0, 0, 3, F16C},
    {"overflow", "overflow-libm", "fp-overflow", "block 0,0,0 thread 8,0,0", "overflow", 0, 0, 3, F16C},
    {"atomic-local", "atomic-local", "address", "block 0,0,0 thread 6,0,0", "an atomic operation on a local variable", 0, 0, 1, ANYWHERE},
    {"copy-misaligned", "copy-misaligned", "misaligned", "block 0,0,0 thread 1,0,0", "misaligned address: cp.async of 16 bytes from 0x", 1, 3, 1, ANYWHERE},
    {"copy-bytes", "copy-bytes", "address", "block 0,0,0 thread 0,0,0", "cp.async of 12 bytes", 1, 3, 1, ANYWHERE},
    {"copy-wild", "copy-wild", "address", "block 0,0,0 thread 2,0,0", "a null pointer", 1, 3, 1, ANYWHERE},
    {"matrix-misaligned", "matrix-misaligned", "matrix", "block 0,0,0 thread 31,0,0", "wmma::store_matrix_sync: its address is not a multiple of 32 bytes", 0, 0, 3, ANYWHERE},
    {"matrix-misaligned", "matrix-ldm", "matrix", "block 0,0,0 thread 30,0,0", "its ldm is not a multiple of 16 bytes", 0, 0, 3, ANYWHERE},
    {"matrix-misaligned", "matrix-two", "matrix", "block 0,0,0 thread 31,0,0", "do not name the same matrix", 0, 0, 3, ANYWHERE},
    {"matrix-apart", "matrix-apart", "matrix", "block 0,0,0 thread 31,0,0", "do not name the same matrix", 0, 0, 1, ANYWHERE},
    {"matrix-overflow", "matrix-overflow", "fp-overflow", "block 0,0,0 thread 31,0,0", "overflow in a matrix product", 0, 0, 1, X86},
    {"overflow", "overflow-half", "fp-overflow", "block 0,0,0 thread 9,0,0", "overflow", 0, 0, 3, F16C},
};
/* clang-format on */

/* What a thread leaves under way is told once a launch, by its line, and is no later block's. */
static void test_asynchronous_copies(void **state)
{
    (void)state;
    static const char *const arguments[] = {"copies 1 1", "copies 3 1 1"};
    for (int i = 0; i < 2; i++) {
        struct output out;
        char want[96];
        run_case("tensor", arguments[i], &out);
        snprintf(want, sizeof want, "report never-waited tensor.cu:%d ", marked_line("tensor", "left"));
        if (out.status || count(out.text, "report ") != 1 || !strstr(out.text, want))
            fail_msg("%s: exit status %d, expected one `%s`\n%s", arguments[i], out.status, want, out.text);
    }
}

static int machine_has(int needs)
{
#if defined(__x86_64__)
    return needs != F16C || simt_march_flag();
#else
    return needs == ANYWHERE;
#endif
}

static void find_mistakes(const char *program, const struct mistake *m, size_t n)
{
    for (const struct mistake *end = m + n; m < end; m++) {
        if (!machine_has(m->needs))
            continue;
        struct output out;
        char arguments[64], want[256], line[32] = "";
        snprintf(arguments, sizeof arguments, "%s 1 1", m->name);
        run_case(program, arguments, &out);
        if (m->mark)
            snprintf(line, sizeof line, "%d ", marked_line(program, m->mark));
        snprintf(want, sizeof want, "report %s %s.cu:%s", m->kind, program, line);
        const char *report = strstr(out.text, want);
        char rest[128];
        snprintf(rest, sizeof rest, "%s fatal %d: ", m->place, m->fatal);
        const char *end = report ? strchr(report, '\n') : NULL;
        const char *place = report ? strstr(report, rest) : NULL, *text = report ? strstr(report, m->text) : NULL;
        if (!end || !place || place > end || !text || text > end)
            fail_msg("%s: expected '%s... %s...%s...', got\n%s", m->name, want, rest, m->text, out.text);
        if (out.status != m->status || count(out.text, "report ") != m->reports)
            fail_msg("%s: exit status %d, expected %d with %d reports\n%s", m->name, out.status, m->status, m->reports,
                     out.text);
    }
}

static void test_mistakes(void **state)
{
    (void)state;
    find_mistakes("errors", mistakes, sizeof mistakes / sizeof *mistakes);
}

/* clang-format off */
static const struct mistake ptx_mistakes[] = {
    {"misaligned", "misaligned", "misaligned", "block 0,0,0 thread 9,0,0", "misaligned address: ldmatrix at shared address", 1, 3, 1, ANYWHERE},
    {"outside", "outside", "address", "block 0,0,0 thread 15,0,0", "ldmatrix at shared address 0x10000f0 leaves the block's shared memory (its dynamic part: 0x1000000, 240 bytes)", 1, 3, 1, ANYWHERE},
    {"generic", "generic", "address", "block 0,0,0 thread 0,0,0", "ld.shared at shared address 0x", 1, 3, 1, ANYWHERE},
    {"null-part", "null-part", "address", "block 0,0,0 thread 0,0,0", "ld.shared at shared address 0x400 leaves", 1, 3, 1, ANYWHERE},
    {"lanes", "lanes", "matrix", "block 0,0,0 thread 31,0,0", "mma.sync: some of the 32 lanes have returned", 0, 0, 1, ANYWHERE},
    {"copy-to", "copy-to", "misaligned", "block 0,0,0 thread 0,0,0", "misaligned address: cp.async at shared address", 1, 3, 1, ANYWHERE},
    {"copy-little", "copy-little", "address", "block 0,0,0 thread 0,0,0", "cp.async.cg copies 16 bytes", 1, 3, 1, ANYWHERE},
};
/* clang-format on */

static void test_inline_ptx(void **state)
{
    (void)state;
    runs_clean("ptx", "all 1 1");
    runs_clean("ptx", "all 3 1 1");
    find_mistakes("ptx", ptx_mistakes, sizeof ptx_mistakes / sizeof *ptx_mistakes);
    struct output out;
    run_case("ptx", "not-shared 1 1", &out); /* in the wrapper's header */
    assert_int_equal(out.status, 3);
    assert_non_null(strstr(out.text, "report address ptx_wrappers.h:"));
    assert_non_null(strstr(out.text, "is not an address of shared memory"));
}

/* clang-format off */
static const struct mistake barrier_mistakes[] = {
    {"number", "number", "barrier", "block 0,0,0 thread 0,0,0", "barrier 16: a block has barriers 0 to 15", 1, 3, 1, ANYWHERE},
    {"count", NULL, "barrier", "block 0,0,0 thread 0,0,0", "barrier 1 for 48 threads: that must be a multiple of 32", 1, 3, 1, ANYWHERE},
    {"no-count", NULL, "barrier", "block 0,0,0 thread 0,0,0", "barrier 1 for 0 threads: that must be a multiple of 32", 1, 3, 1, ANYWHERE},
    {"too-many", "too-many", "barrier", "block 0,0,0 thread 0,0,0", "barrier 1 for 96 threads: the block has 64", 1, 3, 1, ANYWHERE},
    {"different", "different", "barrier", "block 0,0,0 thread 32,0,0", "barrier 2 for 32 threads: others use it for 64", 0, 0, 1, ANYWHERE},
    {"again", "again", "barrier", "block 0,0,0 thread 0,0,0", "arrives again before the barrier is complete (32 of 96 threads have arrived)", 0, 0, 1, ANYWHERE},
    {"lanes-apart", "lanes-apart", "barrier", "block 0,0,0 thread 0,0,0", "barrier 3: of warp 0 only lanes 0000ffff came", 0, 0, 1, ANYWHERE},
    {"never-complete", "never-complete", "deadlock", "block 0,0,0 thread 0,0,0", "|threads 0..31 wait at barrier 4 (32 of 64 threads have come) at barriers.cu:", 1, 1, 1, ANYWHERE},
    {"never-complete", "never-complete", "deadlock", "block 0,0,0 thread 0,0,0", "|threads 32..63 wait at barrier 5 (32 of 64 threads have come) at barriers.cu:", 1, 1, 1, ANYWHERE},
    {"returned", "returned", "barrier", "block 0,0,0 thread 0,0,0", "barrier 6 is reached by 32 of 64 threads: the others have returned", 0, 0, 1, ANYWHERE},
    {"both-zeros", "both-zeros", "barrier", "block 0,0,0 thread 0,0,0", "__syncthreads is barrier 0, which others use for 64 threads", 0, 0, 2, ANYWHERE},
};
/* clang-format on */

static void test_named_barriers(void **state)
{
    (void)state;
    struct output one, two;
    runs_clean("barriers", "all 1 1");
    runs_clean("barriers", "all 3 1 1");
    run_case("barriers", "all 1 1", &one);
    run_case("barriers", "all 2 1", &two);
    assert_string_equal(one.text, two.text); /* the clock with them */
    find_mistakes("barriers", barrier_mistakes, sizeof barrier_mistakes / sizeof *barrier_mistakes);
}

/* clang-format off */
static const struct mistake hopper_mistakes[] = {
    {"no-init", "arrive", "barrier", "block 0,0,0 thread 0,0,0", "mbarrier.arrive: no mbarrier.init has come for the mbarrier at shared address", 1, 3, 1, ANYWHERE},
    {"too-many-arrivals", "arrive", "barrier", "block 0,0,0 thread 0,0,0", "mbarrier.arrive of 1, where 0 of 1 arrivals are left in this phase", 0, 0, 1, ANYWHERE},
    {"missing-bytes", NULL, "deadlock", "block 0,0,0 thread 0,0,0", "phase 0: 0 of 1 arrivals are missing, and 2048 bytes that it expects, at hopper.cu:", 1, 1, 1, ANYWHERE},
    {"never-waited", NULL, "never-waited", "block 0,0,0 thread 0,0,0", "returns without having waited for its wgmma", 0, 0, 1, ANYWHERE},
    {"no-map", NULL, "address", "block 0,0,0 thread 0,0,0", "a tensor map that cuTensorMapEncodeTiled has not made", 1, 3, 1, ANYWHERE},
};
/* clang-format on */

static void test_hopper(void **state)
{
    (void)state;
    runs_clean("hopper", "all 1 0");
    runs_clean("hopper", "all 2 0 1");
    runs_clean("hopper", "all 2 0 5");
    find_mistakes("hopper", hopper_mistakes, sizeof hopper_mistakes / sizeof *hopper_mistakes);
}

/* clang-format off */
static const struct mistake cluster_mistakes[] = {
    {"peer-left", "store-far", "address", "block 0,0,0 thread 0,0,0", "st.shared in the shared memory of block (1,0,0) of the cluster, whose threads have all returned", 0, 0, 1, ANYWHERE},
    {"no-peer", NULL, "address", "block 0,0,0 thread 0,0,0", "mapa: block 2 of a cluster of 2", 1, 3, 1, ANYWHERE},
    {"one-waits", NULL, "deadlock", "block 0,0,0 thread 0,0,0", "phase 0: 0 of 1 arrivals are missing, and 16 bytes that it expects, at clusters.cu:", 1, 1, 1, ANYWHERE},
    {"waits-alone", NULL, "barrier", "block 0,0,0 thread 0,0,0", "barrier.cluster.wait: this thread has not arrived at the cluster's barrier", 0, 0, 1, ANYWHERE},
    {"never-waited", NULL, "never-waited", "block 0,0,0 thread 30,0,0", "a bulk copy to this block, whose last thread returns: nobody has waited for phase 0", 0, 0, 1, ANYWHERE},
    {"registers", NULL, "registers", "block 0,0,0 thread 383,0,0", "12 warps are to have 66560 registers, and it was launched with 64512 (384 threads of 168): a warp waits for ever", 0, 0, 1, ANYWHERE},
};
/* clang-format on */

static void test_clusters(void **state)
{
    (void)state;
    runs_clean("clusters", "all 1 0");
    runs_clean("clusters", "all 2 0 1");
    runs_clean("clusters", "all 2 0 5");
    find_mistakes("clusters", cluster_mistakes, sizeof cluster_mistakes / sizeof *cluster_mistakes);
}

/* clang-format off */
static const struct mistake group_mistakes[] = {
    {"outside", "outside", "shuffle", "block 0,0,0 thread 16,0,0", "lane 16 reads lane 28", 0, 0, 1, ANYWHERE},
    {"beyond", "beyond", "shuffle", "block 0,0,0 thread 0,0,0", "lane 0 reads lane 5", 0, 0, 1, ANYWHERE},
    {"apart", "apart", "deadlock", "block 0,0,0 thread 0,0,0", "|threads 0..8 wait in __syncwarp (mask ffffffff) at groups.cu:", 1, 1, 1, ANYWHERE},
    {"width", "width", "address", "block 0,0,0 thread 0,0,0", "a tile has 1, 2, 4, 8, 16 or 32 threads", 1, 3, 1, ANYWHERE},
    {"left", "left", "never-waited", "block 0,0,0 thread 0,0,0", "cp.async of 16 bytes", 0, 0, 1, ANYWHERE},
};
/* clang-format on */

static void test_cooperative_groups(void **state)
{
    (void)state;
    runs_clean("groups", "all 1 1");
    runs_clean("groups", "all 3 1 1");
    runs_clean("groups", "all 2 1 3");
    find_mistakes("groups", group_mistakes, sizeof group_mistakes / sizeof *group_mistakes);
}

/* mma.sync adds up as the tensor cores that were asked for. */
static void test_inline_ptx_follows_the_model(void **state)
{
    (void)state;
    struct output out;
    run_case("ptx", "cuts 1 1 0 h100", &out);
    assert_non_null(strstr(out.text, "sum 1 + 1.19209e-07\n"));
    run_case("ptx", "cuts 1 1 0 a100", &out);
    assert_non_null(strstr(out.text, "sum 1 + 0\n"));
    run_case("ptx", "cuts-fp8 1 1 0 h100", &out);
    assert_non_null(strstr(out.text, "sum 1 + 0.00012207\n"));
    run_case("ptx", "cuts-fp8 1 1 0 a100", &out);
    assert_non_null(strstr(out.text, "sum 1 + 0\n"));
}

/* Infinities of masked scores and NaN that only pass through are nobody's mistake. */
static void test_honest_infinities_are_quiet(void **state)
{
    (void)state;
    runs_clean("errors", "quiet 1 1");
}

/* Without traps asked for, arithmetic is not reported; NaN goes on. */
static void test_traps_are_optional(void **state)
{
    (void)state;
    runs_clean("errors", "invalid 2 0");
}

static void spill(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void poke(const char *path, size_t at, unsigned char byte)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, f), byte);
    assert_int_equal(fclose(f), 0);
}

/* Fails with this code and leaves nothing, or succeeds. */
static int stub_is_safe(const char *object, enum err_code code)
{
    struct err err;
    link_stub_missing(object, DIR, &err);
    unlink(DIR "/missing0.s");
    if (!link_stub_write(object, DIR "/bad.s", &err))
        return 1;
    assert_int_equal(err.code, code);
    assert_true(err.message[0] != '\0');
    assert_int_equal(access(DIR "/bad.s", F_OK), -1);
    return 0;
}

static void test_link_stub_names_dynamic_memory(void **state)
{
    (void)state;
    if (missing)
        skip();
    size_t n;
    unsigned char *text = slurp(DIR "/features.s", &n);
    char *stub = calloc(1, n + 1);
    assert_non_null(stub);
    memcpy(stub, text, n);
    assert_non_null(strstr(stub, "\nsimt_dynamic_shared:\n"));
    assert_non_null(strstr(stub, "\nsmem:\n"));
    assert_non_null(strstr(stub, "4pool")); /* in a namespace and a template: mangled */
    assert_non_null(strstr(stub, ".zero 232448"));
    free(stub);
    free(text);
}

static void test_link_stub_refuses_what_is_no_object(void **state)
{
    (void)state;
    mkdir("build", 0777);
    mkdir(DIR, 0777);
    struct err err;
    assert_int_equal(link_stub_write(DIR "/none.o", DIR "/bad.s", &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    spill(DIR "/bad.o", "", 0);
    assert_false(stub_is_safe(DIR "/bad.o", ERR_BUILD));
    spill(DIR "/bad.o", "\177ELF not really, but long enough to hold a header of sixty-four bytes", 68);
    assert_false(stub_is_safe(DIR "/bad.o", ERR_BUILD));
    if (missing)
        skip();
    size_t n;
    unsigned char *object = slurp(DIR "/errors.o", &n);
    for (size_t keep = 0; keep < n; keep += n / 10 + 1) { /* section headers stand last: always some too few */
        spill(DIR "/bad.o", object, keep);
        assert_false(stub_is_safe(DIR "/bad.o", ERR_BUILD));
    }
    /* Every byte of the header, and many of the section headers, which stand last. */
    spill(DIR "/bad.o", object, n);
    const size_t tail = n > 2560 ? n - 2560 : 64;
    for (size_t at = 0; at < n; at = at + 1 == 64 ? tail : at + (at < 64 ? 1 : 13)) {
        poke(DIR "/bad.o", at, object[at] ^ 0xFF);
        stub_is_safe(DIR "/bad.o", ERR_BUILD);
        poke(DIR "/bad.o", at, object[at]);
    }
    assert_true(stub_is_safe(DIR "/bad.o", ERR_BUILD));
    assert_int_equal(link_stub_write(DIR "/errors.o", DIR "/no/such/folder.s", &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    free(object);
    unlink(DIR "/bad.o");
}

/* Preprocessing goes on past every header of the table that is named whole. */
static void test_gpu_only_headers_have_stand_ins(void **state)
{
    (void)state;
    static const char *const patterns[][2] = {
#define GPU_ONLY(pattern, what, why) {pattern, why},
#include "engine/build/gpu_only.def"
#undef GPU_ONLY
    };
    int headers = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        const char *pattern = patterns[i][0];
        assert_true(patterns[i][1][0] != '\0');
        const size_t length = strlen(pattern);
        if (pattern[0] != '<' || length < 3 || pattern[length - 1] != '>')
            continue;
        char path[256];
        snprintf(path, sizeof path, INCLUDE "/%.*s", (int)length - 2, pattern + 1);
        if (access(path, R_OK))
            fail_msg("%s is in the table, %s is missing", pattern, path);
        headers++;
    }
    assert_true(headers > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_tensor_cores),
        cmocka_unit_test(test_asynchronous_copies),
        cmocka_unit_test(test_arrays_need_no_alignment),
        cmocka_unit_test(test_clock_is_the_same_everywhere),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_inline_ptx),
        cmocka_unit_test(test_named_barriers),
        cmocka_unit_test(test_hopper),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_cooperative_groups),
        cmocka_unit_test(test_inline_ptx_follows_the_model),
        cmocka_unit_test(test_honest_infinities_are_quiet),
        cmocka_unit_test(test_traps_are_optional),
        cmocka_unit_test(test_link_stub_names_dynamic_memory),
        cmocka_unit_test(test_link_stub_refuses_what_is_no_object),
        cmocka_unit_test(test_gpu_only_headers_have_stand_ins),
    };
    return cmocka_run_group_tests(tests, build_programs, NULL);
}
