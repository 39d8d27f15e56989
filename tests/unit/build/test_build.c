/* From a .cu to a debuggee: where things are found, what is kept, what is refused and how it is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/build/cache.h"
#include "engine/build/runner.h"
#include "tests/unit/lib/temporary.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Lines 1..: what a small kernel is; line 8 holds its probe. */
#define KERNEL                                                                                                         \
    "#include \"attnscope.h\"\n"                                                                                       \
    "#include \"mine.h\"\n"                                                                                            \
    "__global__ void k(float *x)\n"                                                                                    \
    "{\n"                                                                                                              \
    "    ASC_AT(0, 0, 0);\n"                                                                                           \
    "    float s = x[0] * SCALE;\n"                                                                                    \
    "    /* note */\n"                                                                                                 \
    "    ASC_RECORD_ROW(m, 0, 0, true, s);\n"                                                                          \
    "}\n"                                                                                                              \
    "static const char *plan(const asc_problem *, asc_plan *) { return \"declines\"; }\n"                              \
    "static const char *launch(const asc_problem *p, void *s)\n"                                                       \
    "{\n"                                                                                                              \
    "    return ASC_LAUNCH(k, 1, 1, 0, s, (float *)p->o);\n"                                                           \
    "}\n"                                                                                                              \
    "ASC_KERNEL(tiny)\n"                                                                                               \
    "{\n"                                                                                                              \
    "    kernel.plan = plan;\n"                                                                                        \
    "    kernel.launch = launch;\n"                                                                                    \
    "}\n"

static char folder[TEMPORARY];
static struct runner_paths paths;

static void in_folder(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text)
{
    struct err err = {0};
    if (cache_write_text(folder, name, text, &err))
        fail_msg("%s: %s", err.where, err.message);
}

/* text with the first `from` replaced. */
static void write_changed(const char *name, const char *text, const char *from, const char *to)
{
    char changed[4096];
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_file(name, changed);
}

static int setup(void **state)
{
    (void)state;
    struct err err = {0};
    char cache[128];
    if (!mkdtemp(temporary(folder, "build")))
        return -1;
    in_folder(cache, sizeof cache, "cache");
    setenv("ATTNSCOPE_CACHE", cache, 1);
    if (runner_find_paths(&paths, &err)) {
        print_message("%s: %s\n", err.where, err.message);
        return -1;
    }
    write_file("mine.h", "#define SCALE 2\n");
    return 0;
}

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
        char below[700];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            remove_folder(below);
        else
            unlink(below);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static int teardown(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

static int build(const char *name, const char *patch, struct build *b, struct err *err)
{
    char kernel[160], patch_path[160];
    in_folder(kernel, sizeof kernel, name);
    in_folder(patch_path, sizeof patch_path, patch ? patch : "");
    *err = (struct err){0};
    const struct build_request request = {
        .kernel = kernel, .patch = patch ? patch_path : NULL, .probes = PROBES_RECORD};
    return build_debuggee(&paths, &request, NULL, b, err);
}

static void built(const char *name, int from_cache)
{
    struct build b;
    struct err err;
    if (build(name, NULL, &b, &err))
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(b.from_cache, from_cache);
    assert_int_equal(access(b.program, X_OK), 0);
    build_free(&b);
}

static int work_folders_left(void)
{
    int n = 0;
    DIR *d = opendir(paths.cache);
    assert_non_null(d);
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
        n += strncmp(entry->d_name, "work.", 5) == 0;
    closedir(d);
    return n;
}

/* where: "name:line" or "name", below the folder. */
static void refused(const char *name, const char *patch, enum err_code code, const char *where, const char *said)
{
    struct build b;
    struct err err;
    char place[200];
    assert_int_equal(build(name, patch, &b, &err), -1);
    if (!strstr(err.message, said))
        fail_msg("`%s` lacks `%s`", err.message, said);
    assert_int_equal(err.code, code);
    if (where) {
        in_folder(place, sizeof place, where);
        assert_string_equal(err.where, place);
    }
    assert_null(b.source);
    assert_null(b.sites);
    assert_string_equal(b.program, "");
    assert_int_equal(work_folders_left(), 0);
}

static void test_paths(void **state)
{
    (void)state;
    struct runner_paths found;
    struct err err = {0};
    char root[sizeof paths.root + 32];
    snprintf(root, sizeof root, "%s/probes/attnscope.h", paths.root);
    assert_int_equal(access(root, R_OK), 0);
    assert_int_equal(strncmp(paths.cache, folder, strlen(folder)), 0);
    setenv("ATTNSCOPE_ROOT", folder, 1);
    assert_int_equal(runner_find_paths(&found, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_string_equal(found.root, "");
    setenv("ATTNSCOPE_ROOT", paths.root, 1);
    assert_int_equal(runner_find_paths(&found, &err), 0);
    assert_string_equal(found.root, paths.root);
    unsetenv("ATTNSCOPE_ROOT");
    setenv("ATTNSCOPE_CACHE", "/proc/none", 1);
    assert_int_equal(runner_find_paths(&found, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    setenv("ATTNSCOPE_CACHE", paths.cache, 1);
}

static void test_cache(void **state)
{
    (void)state;
    struct build b;
    struct err err;
    char file[160];
    write_file("tiny.cu", KERNEL);
    in_folder(file, sizeof file, "tiny.cu");
    if (build("tiny.cu", NULL, &b, &err))
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(b.from_cache, 0);
    assert_string_equal(b.source, KERNEL);
    assert_string_equal(b.source_path, file);
    assert_int_equal(b.n_sites, 1);
    assert_int_equal(b.sites[0].channel, asc_m);
    assert_int_equal(b.sites[0].line, 8);
    assert_string_equal(b.sites[0].file, file);
    build_free(&b);
    build_free(&b);
    built("tiny.cu", 1);
    write_changed("tiny.cu", KERNEL, "/* note */", "/* another */");
    built("tiny.cu", 1);
    write_changed("tiny.cu", KERNEL, "x[0] *", "x[0] +");
    built("tiny.cu", 0);
    write_file("tiny.cu", KERNEL);
    built("tiny.cu", 1);
    write_file("mine.h", "#define SCALE 3\n");
    built("tiny.cu", 0);
    write_file("mine.h", "#define SCALE 2\n");
    built("tiny.cu", 1);
    assert_int_equal(work_folders_left(), 0);
}

#define PATCH                                                                                                          \
    "--- a/tiny.cu\n"                                                                                                  \
    "+++ b/tiny.cu\n"                                                                                                  \
    "@@ -5,3 +5,4 @@\n"                                                                                                \
    "     ASC_AT(0, 0, 0);\n"                                                                                          \
    "-    float s = x[0] * SCALE;\n"                                                                                   \
    "+    float s = x[0] * SCALE * SCALE;\n"                                                                           \
    "+    s += WHAT;\n"                                                                                                \
    "     /* note */\n"

static void build_for(int head_dim, const char *include, char *program, size_t size)
{
    char kernel[160];
    in_folder(kernel, sizeof kernel, "asks.cu");
    const struct build_request request = {
        .kernel = kernel, .include = include, .probes = PROBES_RECORD, .head_dim = head_dim};
    struct build b;
    struct err err = {0};
    if (build_debuggee(&paths, &request, NULL, &b, &err))
        fail_msg("%s: %s", err.where, err.message);
    snprintf(program, size, "%s", b.program);
    build_free(&b);
}

/* A header that asks asc_built_for() has the kernel built for each head_dim alone, wherever it stands. */
static void test_header_asks(void **state)
{
    (void)state;
    static const char *const headers[] = {"asks.h", "there/asks.h"};
    char programs[2][PATH_MAX], include[160], beside[160];
    in_folder(include, sizeof include, "there");
    in_folder(beside, sizeof beside, "asks.h");
    assert_int_equal(mkdir(include, 0700), 0);
    write_changed("asks.cu", KERNEL, "mine.h", "asks.h");
    for (int run = 0; run < 4; run++) {
        const bool asks = run % 2;
        write_file(headers[run / 2],
                   asks ? "#define SCALE (asc_built_for(ASC_F16, 64) ? 2 : 1)\n" : "#define SCALE 2\n");
        build_for(64, run < 2 ? NULL : include, programs[0], sizeof programs[0]);
        build_for(128, run < 2 ? NULL : include, programs[1], sizeof programs[1]);
        assert_int_equal(strcmp(programs[0], programs[1]) != 0, asks);
        if (run == 1)
            assert_int_equal(unlink(beside), 0);
    }
}

static void test_patch(void **state)
{
    (void)state;
    struct build b;
    struct err err;
    char kernel[160];
    write_file("tiny.cu", KERNEL);
    in_folder(kernel, sizeof kernel, "tiny.cu");
    write_changed("good.patch", PATCH, "WHAT", "1");
    write_changed("wrong.patch", PATCH, "WHAT", "nonsense");
    write_changed("stale.patch", PATCH, "x[0] * SCALE;", "x[1] * SCALE;");
    for (int again = 0; again < 2; again++) {
        if (build("tiny.cu", "good.patch", &b, &err))
            fail_msg("%s: %s", err.where, err.message);
        assert_int_equal(b.from_cache, again);
        assert_non_null(strstr(b.source, "SCALE * SCALE"));
        assert_int_equal(strncmp(b.source_path, paths.cache, strlen(paths.cache)), 0);
        assert_string_equal(strrchr(b.source_path, '/'), "/tiny.cu");
        assert_int_equal(b.sites[0].line, 9);
        assert_string_equal(b.sites[0].file, kernel);
        char *compiled = NULL;
        assert_int_equal(cache_read_text(b.source_path, "the copy", &compiled, &err), 0);
        assert_string_equal(compiled, b.source);
        free(compiled);
        build_free(&b);
    }
    refused("tiny.cu", "wrong.patch", ERR_BUILD, "tiny.cu:7", "'nonsense' was not declared");
    refused("tiny.cu", "stale.patch", ERR_INPUT, NULL, "");
    refused("tiny.cu", "none.patch", ERR_INPUT, "none.patch", "No such file");
}

static void test_refused(void **state)
{
    (void)state;
    refused("none.cu", NULL, ERR_INPUT, "none.cu", "No such file");
    refused(".", NULL, ERR_INPUT, ".", "");
    write_changed("bad.cu", KERNEL, "float s = x[0]", "float s = y[0]");
    refused("bad.cu", NULL, ERR_BUILD, "bad.cu:6", "'y' was not declared");
    write_changed("header.cu", KERNEL, "mine.h", "theirs.h");
    refused("header.cu", NULL, ERR_BUILD, "header.cu:2", "theirs.h: No such file or directory");
    write_changed("cub.cu", KERNEL, "mine.h", "cub/cub.cuh");
    refused("cub.cu", NULL, ERR_GPU_ONLY, "cub.cu:2", "CUB");
    write_changed("type.cu", KERNEL, "float s = x[0]", "int *s = (int *)x; //");
    refused("type.cu", NULL, ERR_BUILD, "type.cu:8", "attnscope cannot record this type");
    write_changed("tile.cu", KERNEL, "    ASC_AT(0, 0, 0);\n", "\n");
    refused("tile.cu", NULL, ERR_BUILD, "tile.cu:8", "ASC_AT(batch, head, q_tile) must stand before");
    write_changed("channel.cu", KERNEL, "ASC_RECORD_ROW(m,", "ASC_RECORD_ROW(mm,");
    refused("channel.cu", NULL, ERR_BUILD, "channel.cu:8", "'mm' is not a channel; the channels are q, k, v");
    write_changed("name.cu", KERNEL, "float s = x[0]", "asc_stridez t; float s = x[0]");
    refused("name.cu", NULL, ERR_BUILD, "name.cu:6", "'asc_stridez' was not declared");
    write_changed("bare.cu", KERNEL, "#include \"attnscope.h\"\n", "#include <cuda_fp16.h>\n");
    refused("bare.cu", NULL, ERR_BUILD, "bare.cu:5", "attnscope.h is not included");
    write_changed("missing.cu", KERNEL, "{\n", "{\n extern float elsewhere(float *); x[0] = elsewhere(x);\n");
    refused("missing.cu", NULL, ERR_BUILD, "missing.cu:5", "undefined reference to `elsewhere(float*)'");
}

static void test_registration(void **state)
{
    (void)state;
    char bare[4096];
    write_file("unregistered.cu", "#include \"attnscope.h\"\n__global__ void k() {}\n");
    refused("unregistered.cu", NULL, ERR_BUILD, "unregistered.cu",
            "does not register a kernel: ASC_RUN(name, ...) is missing, or ASC_KERNEL(name)");
    snprintf(bare, sizeof bare, "%sint main() { return 0; }\n", KERNEL);
    write_file("main.cu", bare);
    built("main.cu", 0); /* one of its own is never called */
}

static void test_no_compiler(void **state)
{
    (void)state;
    const char *before = getenv("PATH");
    char *path = strdup(before ? before : "/usr/bin:/bin");
    assert_non_null(path);
    setenv("PATH", folder, 1);
    write_file("tiny.cu", KERNEL);
    struct build b;
    struct err err;
    assert_int_equal(build("tiny.cu", NULL, &b, &err), -1);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_non_null(strstr(err.message, "apt install g++"));
}

/* As if it had been written `seconds` ago. */
static void age(const char *name, int seconds)
{
    char path[200];
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    in_folder(path, sizeof path, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Builds once more after `last`, which this build then is; what is expected of it. */
static void again(const char *patch, struct build *last, int unchanged, int same_program)
{
    char kernel[160], patch_path[160];
    struct build b;
    struct err err = {0};
    in_folder(kernel, sizeof kernel, "tiny.cu");
    in_folder(patch_path, sizeof patch_path, patch ? patch : "");
    const struct build_request request = {
        .kernel = kernel, .patch = patch ? patch_path : NULL, .probes = PROBES_RECORD, .last = last};
    if (build_debuggee(&paths, &request, NULL, &b, &err))
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(b.unchanged, unchanged);
    assert_int_equal(strcmp(b.program, last->program) == 0, same_program);
    if (same_program) {
        assert_int_equal(b.n_sites, last->n_sites);
        assert_memory_equal(b.sites, last->sites, b.n_sites * sizeof *b.sites);
        assert_string_equal(b.source, last->source);
    }
    build_free(last);
    *last = b;
}

static void build_with(const char *define, const char *said, struct build *b)
{
    char kernel[160];
    struct err err = {0};
    in_folder(kernel, sizeof kernel, "choices.cu");
    const struct build_request request = {.kernel = kernel, .define = define, .probes = PROBES_RECORD};
    const int failed = build_debuggee(&paths, &request, NULL, b, &err);
    if ((failed != 0) != (said != NULL))
        fail_msg("%s: %s: %s", define, err.where, err.message);
    if (said)
        assert_non_null(strstr(err.message, said));
}

/* Macros of a build are seen by the kernel, and part of what makes it this build. */
static void test_define(void **state)
{
    (void)state;
    struct build none, one, two;
    write_file("choices.cu", "#ifndef WS\n#define WS 0\n#endif\n" KERNEL
                             "ASC_CHOICES(WS, 0, 1, 2);\n#if WS == 2 && !defined(X)\n#error no X\n#endif\n");
    build_with(NULL, NULL, &none);
    build_with("WS=1", NULL, &one);
    build_with("X=-1 WS=2", NULL, &two);
    assert_string_not_equal(none.program, one.program);
    assert_string_not_equal(one.program, two.program);
    build_free(&two);
    build_with("X=-1 WS=2", NULL, &two);
    assert_int_equal(two.from_cache, 1);
    build_free(&none);
    build_free(&one);
    build_free(&two);
    build_with("WS=3", "WS must be one of 0, 1, 2", &two);
    build_with("WS=2", "no X", &two);
}

/* What can change between two runs, each alone. What is younger than the build is not relied on, hence the ages. */
static void test_nothing_changed(void **state)
{
    (void)state;
    static const char patch[] =
        "--- a/tiny.cu\n+++ b/tiny.cu\n@@ -1,1 +1,2 @@\n-#include \"attnscope.h\"\n+#include \"attnscope.h\"\n+// %s\n";
    struct build last = {0};
    char text[256], path[200];
    write_file("tiny.cu", KERNEL);
    write_file("mine.h", "#define SCALE 2\n");
    age("mine.h", 100);
    age("", 100);
    again(NULL, &last, 0, 0);
    again(NULL, &last, 1, 1);
    age("tiny.cu", 50); /* touched: its text is what counts */
    again(NULL, &last, 1, 1);
    age("mine.h", 50); /* touched: the preprocessor looks, and finds the same */
    again(NULL, &last, 0, 1);
    again(NULL, &last, 1, 1);
    write_file("mine.h", "#define SCALE 3\n");
    age("mine.h", -100); /* written while the build begins, however long it takes to get there */
    age("", 100);
    again(NULL, &last, 0, 0);
    again(NULL, &last, 0, 1); /* as young as the build before: not relied on */
    age("mine.h", 40);
    again(NULL, &last, 0, 1);
    again(NULL, &last, 1, 1);
    write_file("new.h", ""); /* a header that may come before another one */
    age("", 90);
    again(NULL, &last, 0, 1);
    again(NULL, &last, 1, 1);
    write_changed("tiny.cu", KERNEL, "declines", "DECLINES");
    age("", 90);
    again(NULL, &last, 0, 0);
    again(NULL, &last, 1, 1);
    snprintf(text, sizeof text, patch, "one");
    write_file("a.patch", text);
    age("", 90);
    again("a.patch", &last, 0, 0);
    again("a.patch", &last, 1, 1);
    snprintf(text, sizeof text, patch, "two");
    write_file("a.patch", text);
    age("", 90);
    again("a.patch", &last, 0, 0);
    again("a.patch", &last, 1, 1);
    again(NULL, &last, 0, 0);
    again(NULL, &last, 1, 1);
    /* Another g++ comes first. */
    const char *set = getenv("PATH"), *before = set ? set : "/usr/bin:/bin";
    char *search = NULL;
    assert_true(asprintf(&search, "%s/bin:%s", folder, before) > 0);
    in_folder(path, sizeof path, "bin");
    mkdir(path, 0755);
    write_file("bin/g++", "#!/bin/sh\nPATH=${PATH#*:} exec g++ \"$@\"\n");
    in_folder(path, sizeof path, "bin/g++");
    chmod(path, 0755);
    age("bin/g++", 100);
    age("", 90);
    char *kept = strdup(before);
    assert_non_null(kept);
    setenv("PATH", search, 1);
    again(NULL, &last, 0, 0); /* it may give other flags */
    again(NULL, &last, 1, 1);
    age("bin/g++", 60); /* replaced */
    again(NULL, &last, 0, 0);
    setenv("PATH", kept, 1);
    age("", 90);
    again(NULL, &last, 0, 0);
    again(NULL, &last, 1, 1);
    unlink(last.program);
    again(NULL, &last, 0, 1);
    build_free(&last);
    free(search);
    free(kept);
}

static void test_prune(void **state)
{
    (void)state;
    static const char *const old[] = {"a-0123456789abcdef0123456789abcdef", "b-0123456789abcdef0123456789abcdef"};
    static const char others[] = "a-of-the-user";
    char path[400], words[400], below[160];
    in_folder(below, sizeof below, "prune");
    snprintf(words, sizeof words, "%s/%s" CACHE_WORDS, below, old[1]);
    for (int i = 0; i < 3; i++) {
        struct timespec times[2] = {{.tv_sec = 1000000 + i}, {.tv_sec = 1000000 + i}};
        assert_int_equal(cache_write_text(below, i < 2 ? old[i] : others, "x", NULL), 0);
        snprintf(path, sizeof path, "%s/%s", below, i < 2 ? old[i] : others);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    snprintf(path, sizeof path, "%s/patched-0123456789abcdef0123456789abcdef", below);
    assert_int_equal(cache_write_text(path, "k.cu", "x", NULL), 0); /* new */
    cache_prune(below, 2, 0);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/%s", below, old[1]);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(cache_write_text(below, strrchr(words, '/') + 1, "words", NULL), 0);
    cache_prune(below, 0, 3600);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(words, F_OK), -1);
    snprintf(path, sizeof path, "%s/%s", below, old[0]);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/patched-0123456789abcdef0123456789abcdef", below);
    assert_int_equal(access(path, F_OK), 0); /* too young */
    cache_prune(below, 0, -3600);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/%s", below, others);
    assert_int_equal(access(path, F_OK), 0);
}

struct lines {
    char text[2000];
    size_t n, remarks;
    bool fresh;
};

static void take_line(void *ctx, const char *line)
{
    struct lines *lines = ctx;
    const size_t n = strlen(lines->text);
    snprintf(lines->text + n, sizeof lines->text - n, "%s\n", line);
    lines->n++;
}

static void take_remarks(void *ctx, size_t n, bool cached)
{
    struct lines *lines = ctx;
    lines->remarks += n;
    lines->fresh |= !cached;
}

static void take_part(void *ctx, const char *name, double seconds)
{
    char *told = ctx;
    const size_t n = strlen(told);
    snprintf(told + n, 200 - n, "%s %f, ", name, seconds);
}

/* What a compiler reads beside its arguments; each value is a program of its own, the first one that of before. */
static void test_environment(void **state)
{
    (void)state;
    static const char *const variables[] = {"CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "SOURCE_DATE_EPOCH"};
    static const char nvcc[] =
        "#!/bin/sh\n"
        "for a; do case $a in --version) echo fake; exit;; -E) echo 'int x;'; exit;; esac; done\n"
        "while [ \"$1\" != -o ]; do shift; done\n"
        "echo 'int x;' | gcc -x c -c -o \"$2\" - && chmod +x \"$2\"\n"
        "if [ \"$3\" = --time ]; then cat > \"$4\" <<END\n"
        "source file name , phase name , phase input files , phase output file , arch , tool, metric , unit\n"
        "k.cu , gcc (preprocessing 4) , k.cu  , /tmp/k.ii ,  , nvcc , 864.5490 , ms\n"
        "k.cu , cicc ,  /tmp/k.ii  , /tmp/k.ptx , compute_90a , nvcc , 1500.0000 , ms\n"
        " , nvcc (driver) ,  , k.o ,  , nvcc , 0.5 , ms\n"
        "END\n"
        "fi\n";
    char path[200], plain[700];
    struct build b;
    struct err err;
    write_file("tiny.cu", KERNEL);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *set = getenv(variables[i]);
        char *before = set ? strdup(set) : NULL;
        assert_int_equal(build("tiny.cu", NULL, &b, &err), 0);
        snprintf(plain, sizeof plain, "%s", b.program);
        build_free(&b);
        setenv(variables[i], strcmp(variables[i], "SOURCE_DATE_EPOCH") == 0 ? "1" : folder, 1);
        assert_int_equal(build("tiny.cu", NULL, &b, &err), 0);
        assert_string_not_equal(b.program, plain);
        build_free(&b);
        if (before)
            setenv(variables[i], before, 1);
        else
            unsetenv(variables[i]);
        free(before);
        assert_int_equal(build("tiny.cu", NULL, &b, &err), 0);
        assert_string_equal(b.program, plain);
        assert_int_equal(b.from_cache, 1);
        build_free(&b);
    }
    if (build_gpu_ready(&paths, &err) && !strstr(err.where, "nvcc"))
        skip(); /* libdebuggee_gpu.a is not built */
    in_folder(path, sizeof path, "fake");
    mkdir(path, 0755);
    in_folder(path, sizeof path, "fake/bin");
    mkdir(path, 0755);
    write_file("fake/bin/nvcc", nvcc);
    in_folder(path, sizeof path, "fake/bin/nvcc");
    chmod(path, 0755);
    in_folder(path, sizeof path, "fake");
    const char *set = getenv("CUDA_HOME");
    char *home = set ? strdup(set) : NULL;
    setenv("CUDA_HOME", path, 1);
    in_folder(path, sizeof path, "tiny.cu");
    const struct gpu_device device = {.name = "none", .major = 9, .minor = 0};
    const struct build_request request = {
        .kernel = path, .probes = PROBES_RECORD, .backend = BACKEND_GPU, .gpu = &device};
    static const char *const flags[][2] = {
        {NULL, NULL}, {"NVCC_APPEND_FLAGS", "-O0"}, {"NVCC_PREPEND_FLAGS", "-O0"}, {"NVCC_APPEND_FLAGS", "-O1"}};
    char programs[4][700];
    for (int i = 0; i < 4; i++) {
        if (flags[i][0])
            setenv(flags[i][0], flags[i][1], 1);
        char told[200] = "";
        const struct runner_progress progress = {.part = take_part, .ctx = told};
        if (build_debuggee(&paths, &request, &progress, &b, &err))
            fail_msg("%s: %s", err.where, err.message);
        assert_string_equal(told, "gcc (preprocessing 4) 0.864549, cicc 1.500000, nvcc (driver) 0.000500, ");
        snprintf(programs[i], sizeof programs[i], "%s", b.program);
        assert_int_equal(b.from_cache, 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(programs[i], programs[k]);
        build_free(&b);
        if (flags[i][0])
            unsetenv(flags[i][0]);
    }
    if (home)
        setenv("CUDA_HOME", home, 1);
    else
        unsetenv("CUDA_HOME");
    free(home);
}

/* What the compiler said is said again where the program was built before, and goes with it. */
static void test_words_stay(void **state)
{
    (void)state;
    char kernel[160], words[700];
    struct err err = {0};
    in_folder(kernel, sizeof kernel, "loud.cu");
    write_changed("loud.cu", KERNEL, "/* note */", "x[1] = 1 / 0;");
    const struct build_request request = {.kernel = kernel, .probes = PROBES_RECORD};
    for (int again = 0; again < 3; again++) {
        struct lines lines = {.text = ""};
        struct build b;
        const struct runner_progress progress = {.log = take_line, .remarks = take_remarks, .ctx = &lines};
        if (build_debuggee(&paths, &request, &progress, &b, &err))
            fail_msg("%s: %s", err.where, err.message);
        assert_int_equal(b.from_cache, again > 0);
        assert_int_equal(lines.remarks, lines.n);
        assert_int_equal(lines.fresh, again == 0);
        snprintf(words, sizeof words, "%s" CACHE_WORDS, b.program);
        build_free(&b);
        if (again == 2) {
            assert_string_equal(lines.text, ""); /* its words were taken away */
            continue;
        }
        if (!strstr(lines.text, "loud.cu:7:") || !strstr(lines.text, "division by zero"))
            fail_msg("logged: `%s`", lines.text);
        assert_int_equal(access(words, R_OK), 0);
        if (again == 1)
            assert_int_equal(unlink(words), 0);
    }
}

/* Of two attnscopes that build the same kernel at once one compiles it, and the other waits. */
static void test_two_at_once(void **state)
{
    (void)state;
    pid_t other[2];
    int compiled = 0;
    write_changed("twice.cu", KERNEL, "x[0] *", "x[0] -");
    for (int i = 0; i < 2; i++) {
        other[i] = fork();
        assert_true(other[i] >= 0);
        if (other[i] == 0) {
            struct build b;
            struct err err;
            _exit(build("twice.cu", NULL, &b, &err) || access(b.program, X_OK) ? 1 : b.from_cache ? 0 : 2);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;
        assert_int_equal(waitpid(other[i], &status, 0), other[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
        compiled += WEXITSTATUS(status) == 2;
    }
    assert_int_equal(compiled, 1);
    built("twice.cu", 1);
    assert_int_equal(work_folders_left(), 0);
}

static void stop_waiting(void *cancel, enum runner_step step, double done, double total)
{
    (void)done;
    (void)total;
    if (step == STEP_WAITING)
        atomic_store((atomic_int *)cancel, 1);
}

/* Whoever waits for a program can be stopped, and the next one makes what is not made any more. */
static void test_stopped_waiting(void **state)
{
    (void)state;
    char kernel[160];
    atomic_int cancel = 0;
    const struct runner_progress progress = {.report = stop_waiting, .ctx = &cancel, .cancel = &cancel};
    struct build b;
    struct err err = {0};
    write_changed("waits.cu", KERNEL, "x[0] *", "x[0] +");
    in_folder(kernel, sizeof kernel, "waits.cu");
    const struct build_request request = {.kernel = kernel, .patch = "", .probes = PROBES_RECORD};
    assert_int_equal(build_debuggee(&paths, &request, NULL, &b, &err), 0);
    assert_int_equal(unlink(b.program), 0);
    const int locks = cache_open_locks(paths.cache);
    assert_true(locks >= 0);
    assert_false(cache_is_being_made(locks, b.program + strlen(b.program) - 32));
    build_free(&b);
    assert_int_equal(build_debuggee(&paths, &request, &progress, &b, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    assert_int_equal(cancel, 1);
    close(locks);
    built("waits.cu", 0);
}

static void test_cancelled(void **state)
{
    (void)state;
    char kernel[160];
    atomic_int cancel = 1;
    struct runner_progress progress = {.cancel = &cancel};
    struct build b;
    struct err err = {0};
    write_file("tiny.cu", KERNEL);
    in_folder(kernel, sizeof kernel, "tiny.cu");
    const struct build_request request = {.kernel = kernel, .patch = "", .probes = PROBES_RECORD};
    assert_int_equal(build_debuggee(&paths, &request, &progress, &b, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),       cmocka_unit_test(test_cache),       cmocka_unit_test(test_patch),
        cmocka_unit_test(test_header_asks), cmocka_unit_test(test_refused),     cmocka_unit_test(test_registration),
        cmocka_unit_test(test_no_compiler), cmocka_unit_test(test_cancelled),   cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_prune),       cmocka_unit_test(test_environment), cmocka_unit_test(test_nothing_changed),
        cmocka_unit_test(test_define),      cmocka_unit_test(test_words_stay),  cmocka_unit_test(test_stopped_waiting),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
