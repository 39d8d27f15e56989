/* The CPU executor's toolchain: g++ behind simt_device.h. */
#include "engine/build/build.h"

#include "engine/base/path.h"
#include "engine/build/link_stub.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_found(const char *program)
{
    const char *path = getenv("PATH");
    char file[600];
    for (const char *at = path ? path : ""; *at;) {
        const size_t n = strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)n, at, program);
        if (n && access(file, X_OK) == 0)
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

static int find_compiler(struct build_job *job, struct err *err)
{
    const char *asked = getenv("ATTNSCOPE_CXX"),
               *name = job->request->checks && is_found("clang++") ? "clang++" : "g++";
    if (asked && *asked)
        name = asked;
    const int n = snprintf(job->compiler, sizeof job->compiler, "%s", name);
    if (n < 0 || (size_t)n >= sizeof job->compiler)
        return err_set(err, ERR_INPUT, "ATTNSCOPE_CXX", "the name of the compiler is too long");
    job->clang = strstr(path_name(name), "clang") != NULL;
    return 0;
}

static const char *const *compile_flags(const struct build_job *job)
{
    if (!job->request->checks)
        return job->clang ? simt_clang_flags : simt_compile_flags;
    return job->clang ? simt_checked_clang_flags : simt_checked_gcc_flags;
}

static void add_arguments(struct build_job *job)
{
    const char *root = job->paths->root, *kernel = job->request->kernel;
    const int n_folder = path_folder(kernel);
    for (const char *const *flag = compile_flags(job); *flag; flag++)
        build_add(job, *flag);
    if (simt_march_flag())
        build_add(job, simt_march_flag());
    /* KiB before g++ collects garbage, where the machine has so much twice for two compilers: FlashAttention-2 takes a
       seventh less. */
    if (!job->clang && (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >= UINT64_C(8) << 30)
        build_add(job, "--param=ggc-min-heapsize=2097152");
    build_add(job, "-fdiagnostics-color=never");
    char place[600];
    if (job->mirror[0] && build_place(job, n_folder ? kernel : ".", place) == 0) {
        build_add(job, "-iquote");
        build_add_path(job, "%.*s", n_folder ? path_folder(place) : (int)strlen(place), place);
    }
    build_add(job, "-iquote");
    build_add_path(job, "%.*s", n_folder ? n_folder : 1, n_folder ? kernel : ".");
    if (strcmp(job->out->source_path, kernel) != 0)
        build_add_path(job, "-ffile-prefix-map=%.*s=%.*s", path_folder(job->out->source_path), job->out->source_path,
                       n_folder, kernel);
    build_add_path(job, "-I%s/engine/simt/include", root);
    build_add(job, "-include");
    build_add_path(job, "%s/engine/simt/include/simt_device.h", root);
}

/* Those of nvcc's that kernels are built with; g++'s own begin so too, but are no flags that a kernel needs. */
static bool lacks_flag(const char *flag)
{
    static const char *const names[] = {
        "-arch",    "-code",          "-gencode", "-G",    "-X",   "-ccbin",    "-cudart",     "-diag",
        "-dlto",    "-expt",          "-ext",     "-fmad", "-ftz", "-keep",     "-lineinfo",   "-maxr",
        "-minnreg", "-opt-info",      "-prec",    "-rdc",  "-res", "-restrict", "-src-in-ptx", "-split-compile",
        "-t",       "-use_fast_math",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(flag, names[i], strlen(names[i])) == 0)
            return true;
    return strncmp(flag, "--", 2) == 0 && strncmp(flag, "--param", 7) != 0 && strncmp(flag, "--std=", 6) != 0;
}

/* Gives the object's memory functions the checks' names, and its shared arrays room between them. */
static int check_object(struct build_job *job, const char *object, struct err *err)
{
    const char *argv[16] = {"objcopy"};
    int n = 1;
    for (const char *const *flag = simt_checked_object_flags; *flag; flag++)
        argv[n++] = *flag;
    argv[n] = object;
    return build_run_linker(job, argv, err) ? -1 : link_stub_spread(object, err);
}

static int link_program(struct build_job *job, const char *object, const char *work, const char *program,
                        struct err *err)
{
    char stub[640], folder[620];
    snprintf(stub, sizeof stub, "%s/shared.s", work);
    build_library_folder(job, folder, sizeof folder);
    if ((job->request->checks && check_object(job, object, err)) || link_stub_write(object, stub, err))
        return -1;
    const char *argv[BUILD_LINK_ARGUMENTS_MAX + 32] = {
        "g++",        "-o",   program,    object, stub, "-Wl,-u,debuggee_main,--wrap=main,--wrap=exit",
        job->library, folder, "-ljansson"};
    int n = 9;
    for (int i = 0; i < job->n_link_arguments; i++)
        argv[n++] = job->link_arguments[i];
    for (const char *const *flag = simt_link_flags; *flag && n < BUILD_LINK_ARGUMENTS_MAX + 31; flag++)
        argv[n++] = *flag;
    return build_link(job, object, work, argv, n, err);
}

static const char *const preprocess[] = {"-E", "-dI", NULL};

const struct toolchain toolchain_cpu = {
    .library = "libdebuggee_cpu.a",
    .link_flags = simt_link_flags,
    .preprocess = preprocess,
    .scan_gpu_only = true,
    .map_folder = "-fdebug-prefix-map",
    .missing = "the compiler was not found: install the package g++ (apt install g++)",
    .lacks_flag = lacks_flag,
    .find_compiler = find_compiler,
    .add_arguments = add_arguments,
    .link = link_program,
};

const char *const simt_compile_flags[] = {
    "-x",
    "c++",
    "-std=c++17",
    "-O1", /* -O2 takes a third more to compile, and a tenth less to run at (1,8,512,64) */
    "-g1", /* files, lines and calls: half of what -g takes to compile CuTe is variables, which nothing here reads */
    "--param=ggc-min-heapsize=524288", /* KiB before it collects garbage, which took CuTe a tenth of its time */
    "-ftrack-macro-expansion=0",       /* an error in a probe stands at the probe's line, not inside its macro */
    "-fno-working-directory",          /* the preprocessed text must not name the folder: it is hashed */
    "-fno-omit-frame-pointer",         /* who called what issued a cp.async (copies.c) */
    "-fno-pie",
    "-fno-extern-tls-init",
    "-fno-strict-aliasing",
    "-fstack-reuse=none",                 /* see -no-stack-coloring below */
    "-fno-aggressive-loop-optimizations", /* a loop past the end of an array must not lose its exit: it would hang */
    "-ftrivial-auto-var-init=pattern",    /* what a kernel leaves unset is no value to count on, as on a GPU */
    "-ffp-contract=off",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
    "-Wno-psabi", /* gcc: of arguments aligned to 64 bytes, as tensor maps are */
    NULL,
};

#define COMMON                                                                                                         \
    "-x", "c++", "-std=c++17", "-O2", "-g1", "-fno-pie", "-fno-strict-aliasing", "-ffp-contract=off",                  \
        "-Wno-unknown-pragmas", "-Wno-attributes", "-ftrivial-auto-var-init=pattern"
#define CHECKED                                                                                                        \
    COMMON, "-DSIMT_CHECKS=1", "-fsanitize=thread", "-fsanitize=alignment", "-fdata-sections" /* link_stub_spread */
#define CLANG                                                                                                          \
    "-Wno-undefined-internal", /* extern __shared__ arrays in an unnamed namespace: the link stub has them */          \
        "-Wno-unused-command-line-argument", /* what a preprocessed source needs no more */                            \
        "-Wno-ignored-attributes",           /* __shared__ on a declaration */                                         \
        "-Wno-pass-failed",                  /* #pragma unroll is a wish */                                            \
        "-gdwarf-4",                         /* what every libbacktrace reads; by itself it means all of -g */         \
        "-g1", "-fdebug-info-for-profiling", /* -g1 alone lacks the names of some functions */                         \
        "-ffp-exception-behavior=maytrap", /* else a division moves in front of the test that guards it, and traps */  \
        "-mllvm",                                                                                                      \
        "-simplifycfg-sink-common=false", /* what two branches do alike stays in both: as one it has no line */        \
        "-mllvm", "-simplifycfg-hoist-common=false", "-mllvm", "-enable-tail-merge=false", "-mllvm",                   \
        "-no-stack-coloring", /* a tensor may point at a local of the function that made it: registers, on a GPU */    \
        "-mllvm", "-dse-memoryssa-scanlimit=0" /* and what was stored there stays */

const char *const simt_clang_flags[] = {COMMON, "-fno-omit-frame-pointer", CLANG, NULL};

const char *const simt_checked_clang_flags[] = {
    CHECKED,
    CLANG,
    "-fno-vectorize", /* accesses of more than 16 bytes get no hooks */
    "-fno-slp-vectorize",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    NULL,
};

const char *const simt_checked_gcc_flags[] = {
    CHECKED,
    "-ftrack-macro-expansion=0",
    "-fno-working-directory",
    "-fno-extern-tls-init",
    "-fno-aggressive-loop-optimizations",
    "-fstack-reuse=none",
    "-fno-crossjumping", /* what two branches do alike stays in both: as one it has the line of either */
    "-fno-tree-tail-merge",
    "-fno-code-hoisting",
    "--param=tsan-instrument-func-entry-exit=0",
    NULL,
};

const char *const simt_checked_object_flags[] = {
    "--redefine-sym",
    "memcpy=__tsan_memcpy",
    "--redefine-sym",
    "memmove=__tsan_memmove",
    "--redefine-sym",
    "memset=__tsan_memset",
    NULL,
};

const char *const simt_link_flags[] = {"-no-pie", "-lbacktrace", "-lpthread", "-lm", NULL};

const char *simt_march_flag(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* The level's other members (BMI, LZCNT, MOVBE) came with the same processors; F16C has no name to ask for in every
       compiler, AVX2 implies it (Intel SDM volume 1, 14.4). */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return "-march=x86-64-v3";
#endif
    return NULL;
}
