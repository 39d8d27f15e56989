/* The checked build: every case of tests/simt/checks.cu is found at its lines, and what is nearly wrong is silent; with
   clang++ where there is one, and with g++. */
#include "engine/build/build.h"
#include "engine/build/link_stub.h"
#include "engine/build/scan.h"
#include "engine/simt/simt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIR "build/test-checks"
#define SOURCE "tests/simt/checks.cu"
#define HELPERS "tests/simt/checks_helpers.h"
#define INCLUDE "engine/simt/include"

static struct compiler_build {
    const char *compiler;
    const char *const *flags;
    int there;
} builds[] = {{"clang++", NULL, 0}, {"g++", NULL, 0}};
enum { BUILDS = 2 };

struct output {
    char text[1 << 16];
    int status;
};

static void run(const char *command, struct output *out)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t n = fread(out->text, 1, sizeof out->text - 1, pipe);
    out->text[n] = '\0';
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

static void add(char *command, size_t size, const char *const *words)
{
    for (; *words; words++)
        snprintf(command + strlen(command), size - strlen(command), " %s", *words);
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const size_t n = (size_t)ftell(f);
    rewind(f);
    char *text = calloc(n + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, n, f), n);
    fclose(f);
    return text;
}

/* Inline PTX becomes C++, as the builder does it. */
static void translate(const char *path)
{
    static const char *const own[] = {"engine/", "probes/", NULL};
    struct scan scan = {.own_folders = own, .compiled_path = "", .user_path = ""};
    struct err err;
    char *text = slurp(path);
    if (scan_preprocessed(&scan, text, &err))
        fail_msg("%s: %s", err.where, err.message);
    assert_non_null(scan.rewritten);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(scan.rewritten, f);
    assert_int_equal(fclose(f), 0);
    scan_free(&scan);
    free(text);
}

static void build(const struct compiler_build *b)
{
    char base[96], compile[2048], command[4096], path[128];
    struct err err;
    snprintf(base, sizeof base, DIR "/%s", b->compiler);
    snprintf(compile, sizeof compile, "env -u CPATH -u CPLUS_INCLUDE_PATH %s", b->compiler);
    add(compile, sizeof compile, b->flags);
    if (simt_march_flag())
        snprintf(compile + strlen(compile), sizeof compile - strlen(compile), " %s", simt_march_flag());
    snprintf(compile + strlen(compile), sizeof compile - strlen(compile),
             " -I. -I" INCLUDE " -include " INCLUDE "/simt_device.h");
    snprintf(command, sizeof command, "%s -E -dI " SOURCE " -o %s.ii 2>&1", compile, base);
    must_run(command);
    snprintf(path, sizeof path, "%s.ii", base);
    translate(path);
    snprintf(command, sizeof command, "%s -x c++-cpp-output -c %s.ii -o %s.o 2>&1 && objcopy", compile, base, base);
    add(command, sizeof command, simt_checked_object_flags);
    snprintf(command + strlen(command), sizeof command - strlen(command), " %s.o 2>&1", base);
    must_run(command);
    char object[128], stub[128];
    snprintf(object, sizeof object, "%s.o", base);
    snprintf(stub, sizeof stub, "%s.s", base);
    if (link_stub_spread(object, &err) || link_stub_write(object, stub, &err))
        fail_msg("%s: %s", err.where, err.message);
    snprintf(command, sizeof command, "g++ -o %s %s %s " DIR "/host.o build/libdebuggee_cpu.a", base, object, stub);
    add(command, sizeof command, simt_link_flags);
    snprintf(command + strlen(command), sizeof command - strlen(command), " 2>&1");
    must_run(command);
}

static int setup(void **state)
{
    (void)state;
    struct output out;
    if (access("build/libdebuggee_cpu.a", R_OK)) {
        print_error("build/libdebuggee_cpu.a is missing: run `make test`\n");
        return -1;
    }
    builds[0].flags = simt_checked_clang_flags;
    builds[1].flags = simt_checked_gcc_flags;
    must_run("mkdir -p " DIR " && gcc -D_GNU_SOURCE -I. -c tests/simt/checks_host.c -o " DIR "/host.o 2>&1");
    for (int i = 0; i < BUILDS; i++) {
        char command[64];
        snprintf(command, sizeof command, "%s --version 2>&1", builds[i].compiler);
        run(command, &out);
        builds[i].there = out.status == 0;
        if (builds[i].there)
            build(&builds[i]);
    }
    return 0;
}

/* The line of a file that holds a comment; 0: none. */
static int line_in(const char *file, const char *word, const char *name)
{
    char wanted[64];
    char *text = slurp(file);
    snprintf(wanted, sizeof wanted, "%s: %s\n", word, name);
    const char *at = strstr(text, wanted);
    int line = at != NULL;
    for (const char *c = text; at && c < at; c++)
        line += *c == '\n';
    free(text);
    return line;
}

static int line_of(const char *word, const char *name)
{
    return line_in(SOURCE, word, name);
}

/* Which of two threads comes first is the executor's choice. */
static int is_told(const char *text, const char *kind, int at, int with)
{
    char one[96], other[96];
    snprintf(one, sizeof one, with ? "report %s checks.cu:%d checks.cu:%d " : "report %s checks.cu:%d ", kind, at,
             with);
    snprintf(other, sizeof other, "report %s checks.cu:%d checks.cu:%d ", kind, with, at);
    return strstr(text, one) || (with && strstr(text, other));
}

/* One case: this kind is reported at these lines, in these words; `kind` NULL: nothing is. */
static void expect(const char *name, const char *kind, const char *lines, const char *words)
{
    const int at = lines ? line_of("at", lines) : 0, with = lines ? line_of("with", lines) : 0;
    for (int i = 0; i < BUILDS; i++)
        for (unsigned order = 0; order < SIMT_SHUFFLED + 2 && builds[i].there; order++) {
            struct output out;
            char command[160];
            snprintf(command, sizeof command, "timeout 60 " DIR "/%s %s 2 %u 2>&1", builds[i].compiler, name, order);
            run(command, &out);
            const int right = kind ? is_told(out.text, kind, at, with) && strstr(out.text, words ? words : "")
                                   : !strstr(out.text, "report ");
            if (out.status || !right)
                fail_msg("%s: exit status %d; want %s at %d with %d, `%s`\n%s", command, out.status,
                         kind ? kind : "nothing", at, with, words ? words : "", out.text);
        }
}

static void assert_told(const char *text, const char *want)
{
    if (!strstr(text, want))
        fail_msg("want `%s`\n%s", want, text);
}

static void races(void **state)
{
    (void)state;
    expect("write-write", "race", "write-write", "of the shared array x, which thread (");
    expect("same-value", "race", "same-value", "m");
    expect("write-read", "race", "write-read", "nothing orders them");
    expect("clean-write-read", NULL, NULL, NULL);
    expect("read-write", "race", "read-write", NULL);
    expect("clean-read-write", NULL, NULL, NULL);
    expect("wide-write", "race", "wide-write", NULL);
    expect("clean-wide-write", NULL, NULL, NULL);
    expect("overlap", "overlap", "overlap", "a part of one of 4 that is read elsewhere");
    expect("clean-overlap", NULL, NULL, NULL);
    expect("many-readers", "race", "many-readers", NULL);
    expect("clean-many-readers", NULL, NULL, NULL);
    expect("two-warps", "race", "two-warps", NULL);
    expect("other-reader", "race", "other-reader", NULL);
    expect("clean-several", NULL, NULL, NULL);
}

/* A build's words on a case. */
static void hear(const struct compiler_build *b, const char *name, struct output *out)
{
    char command[160];
    snprintf(command, sizeof command, "timeout 60 " DIR "/%s %s 2>&1", b->compiler, name);
    run(command, out);
}

/* What does no harm by luck comes last, and says so. */
static void same_values_come_last(void **state)
{
    (void)state;
    static const char *const marks[] = {"ranked", "ranked-later", "ranked-same"};
    struct output out;
    for (int i = 0; i < BUILDS; i++) {
        const char *at[3], *luck;
        char want[96];
        if (!builds[i].there)
            continue;
        hear(&builds[i], "ranked", &out);
        for (int k = 0; k < 3; k++) {
            const int line = line_of("at", marks[k]);
            snprintf(want, sizeof want, "report race checks.cu:%d checks.cu:%d ", line, line);
            at[k] = strstr(out.text, want);
            if (!at[k] || strstr(at[k] + 1, want))
                fail_msg("%s: want one `%s`\n%s", builds[i].compiler, want, out.text);
        }
        luck = strstr(out.text, ": the same value (block ");
        if (!luck || luck < at[2] || at[2] < at[0] || at[2] < at[1] || !strstr(luck, "\nagain 3 252\n"))
            fail_msg("%s:\n%s", builds[i].compiler, out.text);
    }
}

static void lanes_of_a_warp(void **state)
{
    (void)state;
    expect("lanes", "race", "lanes", NULL);
    expect("clean-lanes", NULL, NULL, NULL);
    expect("lanes-shuffle", "race", "lanes", NULL);
    expect("clean-lanes-half", NULL, NULL, NULL);
    expect("half-warps", "race", "half-warps", NULL);
}

static void bytes_and_atomics(void **state)
{
    (void)state;
    expect("clean-bytes", NULL, NULL, NULL);
    expect("clean-atomics", NULL, NULL, NULL);
    expect("atomic-and-plain", "race", "atomic-and-plain", NULL);
}

static void barriers_by_number(void **state)
{
    (void)state;
    expect("named", "race", "named", NULL);
    expect("clean-named", NULL, NULL, NULL);
    expect("arrived", "race", "arrived", NULL);
}

static void unwritten_memory(void **state)
{
    (void)state;
    expect("unwritten", "uninitialized", "unwritten", "byte 252 of the shared array x");
    expect("unwritten-half", "uninitialized", "unwritten-half", "byte 126 of dynamic shared memory");
}

/* Of the arrays of a launch; kernels of one launch follow each other. */
static void unwritten_arrays(void **state)
{
    (void)state;
    expect("unfilled", "uninitialized", "unfilled", "byte 508 of the workspace, which no thread has written");
    expect("unfilled-output", "uninitialized", "unfilled", "element 127 of O, which no thread has written");
    expect("clean-unfilled", NULL, NULL, NULL);
    expect("clean-unfilled-memset", NULL, NULL, NULL);
    expect("clean-unfilled-input", NULL, NULL, NULL);
    expect("unfilled-vector", "uninitialized", "unfilled-vector", "byte 508 of the workspace");
    expect("clean-unfilled-vector", NULL, NULL, NULL);
    expect("unfilled-copy", "uninitialized", "unfilled-copy", "byte 508 of the workspace");
    expect("block-atomics", "uninitialized", "block-atomics", "byte 508 of the workspace");
    expect("unfilled-bytes", "uninitialized", "unfilled-bytes", "byte 77 of the workspace");
    expect("clean-unfilled-bytes", NULL, NULL, NULL);
}

static void ends_of_arrays(void **state)
{
    (void)state;
    expect("beyond-dynamic", "bounds", "beyond-dynamic", "of which the launch asked for 256 bytes");
    expect("clean-beyond-dynamic", NULL, NULL, NULL);
    expect("beyond-static", "bounds", "beyond-static", "past the end of the shared array x");
    expect("clean-beyond-static", NULL, NULL, NULL);
    expect("beyond-global", "bounds", "beyond-global", "writes 4 bytes that end 4 bytes past the end of O");
    expect("clean-beyond-global", NULL, NULL, NULL);
}

static void outputs(void **state)
{
    (void)state;
    expect("blocks", "two-writers", "blocks", "element 127 of O");
    expect("clean-blocks", NULL, NULL, NULL);
    expect("clean-block-atomics", NULL, NULL, NULL);
    expect("same-element", "race", "same-element", "of O, which thread (");
    expect("clean-same-element", NULL, NULL, NULL);
    expect("nan-store", "nan-store", "nan-store", "O, element 77");
    expect("clean-nan-store", NULL, NULL, NULL);
}

static void copies_under_way(void **state)
{
    (void)state;
    expect("clean-copies", NULL, NULL, NULL);
    expect("copies", "never-waited", "copies", "no thread has waited for it");
    expect("copies-commit", "never-waited", "copies", NULL);
    expect("copies-barrier", "race", "copies", NULL);
    expect("copies-order", "race", "copies", NULL);
    expect("copy-over", "race", "copy-over", NULL);
    expect("clean-copy-over", NULL, NULL, NULL);
}

static void cooperative_groups(void **state)
{
    (void)state;
    expect("group-lanes", "race", "group-lanes", NULL);
    expect("group-reduce", "race", "group-lanes", NULL);
    expect("clean-group-lanes", NULL, NULL, NULL);
    expect("clean-group-block", NULL, NULL, NULL);
    expect("group-copy", "never-waited", "group-copy", NULL);
    expect("clean-group-copy", NULL, NULL, NULL);
}

/* Each thread has waited for its copies: that one reads another's too early is no wait that is missing. */
static void a_barrier_stands_before_the_wait(void **state)
{
    (void)state;
    struct output out;
    for (int i = 0; i < BUILDS; i++) {
        char command[160];
        if (!builds[i].there)
            continue;
        snprintf(command, sizeof command, DIR "/%s copies-order 2>&1", builds[i].compiler);
        run(command, &out);
        if (strstr(out.text, "never-waited"))
            fail_msg("%s: %s", command, out.text);
    }
}

static void a_thread_returns_before_its_copies(void **state)
{
    (void)state;
    struct output out;
    char want[96];
    snprintf(want, sizeof want, "report never-waited checks.cu:%d ", line_of("with", "copies"));
    for (int i = 0; i < BUILDS; i++) {
        char command[160];
        if (!builds[i].there)
            continue;
        snprintf(command, sizeof command, DIR "/%s copies-return 2>&1", builds[i].compiler);
        run(command, &out);
        if (!strstr(out.text, want) || !strstr(out.text, "again 1 128\n"))
            fail_msg("%s: want `%s`\n%s", command, want, out.text);
    }
}

static void matrices_of_a_warp(void **state)
{
    (void)state;
    expect("wmma-load", "race", "wmma-load", NULL);
    expect("clean-wmma-load", NULL, NULL, NULL);
    expect("wmma-padding", "uninitialized", "wmma-padding", NULL);
    expect("clean-wmma-padding", NULL, NULL, NULL);
    expect("wmma-store", "race", "wmma-store", NULL);
    expect("clean-wmma-store", NULL, NULL, NULL);
    expect("matrices", "race", "matrices", NULL);
    expect("clean-matrices", NULL, NULL, NULL);
}

static void misaligned_vectors(void **state)
{
    (void)state;
    expect("misaligned", "misaligned", "misaligned", "needs a multiple of 16 bytes and is 8 bytes past one");
    expect("clean-misaligned", NULL, NULL, NULL);
}

/* The innermost place is a helper's, in a header; the last one that of the kernel's body, which called it. */
static void functions_that_the_kernel_calls(void **state)
{
    (void)state;
    struct output out;
    char want[400];
    const int put = line_in(HELPERS, "in", "put"), get = line_in(HELPERS, "in", "get");
    const int copy = line_in(HELPERS, "in", "copy") - 1, row = line_in(HELPERS, "in", "row");
    for (int i = 0; i < BUILDS; i++) {
        if (!builds[i].there)
            continue;
        hear(&builds[i], "called", &out);
        snprintf(want, sizeof want, "report race checks_helpers.h:%d checks_helpers.h:%d number ", get, put);
        assert_told(out.text, want);
        snprintf(want, sizeof want,
                 "\nstack < get checks_helpers.h:%d  < called checks.cu:%d \n"
                 "other < put checks_helpers.h:%d  < called checks.cu:%d \n",
                 get, line_of("at", "called"), put, line_of("with", "called"));
        assert_told(out.text, want);
        hear(&builds[i], "copied", &out);
        snprintf(want, sizeof want,
                 "\nstack < copied checks.cu:%d \nother < copy_async checks_helpers.h:%d  < copy_row "
                 "checks_helpers.h:%d  < operator() checks.cu:%d  < copied checks.cu:%d \n",
                 line_of("at", "copied"), copy, row, line_of("in", "lambda"), line_of("with", "copied"));
        assert_told(out.text, want);
    }
    expect("swapped", "race", "swapped", NULL);
}

/* A block that faults does not keep from being told what another one does at the same time. */
static void blocks_under_way_at_a_fault(void **state)
{
    (void)state;
    struct output out;
    char want[96];
    for (int i = 0; i < BUILDS; i++) {
        if (!builds[i].there)
            continue;
        hear(&builds[i], "late 2", &out);
        snprintf(want, sizeof want, "report address checks.cu:%d ", line_of("at", "end"));
        assert_told(out.text, want);
        snprintf(want, sizeof want, "report two-writers checks.cu:%d ", line_of("at", "late"));
        assert_told(out.text, want);
        assert_int_not_equal(out.status, 0);
    }
}

/* What a store would have changed stays as it was, and the run ends as a failed one. */
static void stores_without_a_place(void **state)
{
    (void)state;
    static const char *const events[][2] = {{"address", "dropped"},
                                            {"address", "dropped-before"},
                                            {"address", "dropped-input"},
                                            {"race", "dropped-then"},
                                            {"two-writers", "dropped-writers"}};
    struct output out;
    char want[96];
#if !defined(__x86_64__)
    skip(); /* the executor steps over a store on x86-64 alone */
#endif
    for (int i = 0; i < BUILDS; i++)
        for (int workers = 1; workers <= 2 && builds[i].there; workers++) {
            hear(&builds[i], workers == 1 ? "dropped 1" : "dropped 2", &out);
            for (size_t e = 0; e < sizeof events / sizeof *events; e++) {
                snprintf(want, sizeof want, "report %s checks.cu:%d ", events[e][0], line_of("at", events[e][1]));
                assert_told(out.text, want);
            }
            assert_told(out.text, "write to in, which is an input (dropped; the checked run continues)\n");
            assert_null(strstr(out.text, "\ninput "));
            assert_int_equal(out.status, 1);
        }
}

/* Two stores that do the same in two branches are not made one, which has a line of neither. */
static void stores_of_two_branches(void **state)
{
    (void)state;
    expect("alike", "two-writers", "alike", NULL);
    expect("alike-whole", "two-writers", "alike-whole", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(races),
        cmocka_unit_test(same_values_come_last),
        cmocka_unit_test(lanes_of_a_warp),
        cmocka_unit_test(bytes_and_atomics),
        cmocka_unit_test(barriers_by_number),
        cmocka_unit_test(unwritten_memory),
        cmocka_unit_test(unwritten_arrays),
        cmocka_unit_test(ends_of_arrays),
        cmocka_unit_test(outputs),
        cmocka_unit_test(copies_under_way),
        cmocka_unit_test(cooperative_groups),
        cmocka_unit_test(a_barrier_stands_before_the_wait),
        cmocka_unit_test(a_thread_returns_before_its_copies),
        cmocka_unit_test(matrices_of_a_warp),
        cmocka_unit_test(misaligned_vectors),
        cmocka_unit_test(functions_that_the_kernel_calls),
        cmocka_unit_test(stores_of_two_branches),
        cmocka_unit_test(blocks_under_way_at_a_fault),
        cmocka_unit_test(stores_without_a_place),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
