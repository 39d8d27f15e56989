#include "engine/build/flags.h"

#include <stddef.h>

const char *const simt_compile_flags[] = {
    "-x",
    "c++",
    "-std=c++17",
    "-O2",
    "-g",
    "-ftrack-macro-expansion=0", /* an error in a probe stands at the probe's line, not inside its macro */
    "-fno-working-directory",    /* the preprocessed text must not name the folder: it is hashed */
    "-fno-omit-frame-pointer",   /* who called what issued a cp.async (copies.c) */
    "-fno-pie",
    "-fno-extern-tls-init",
    "-fno-strict-aliasing",
    "-fno-aggressive-loop-optimizations", /* a loop past the end of an array must not lose its exit: it would hang */
    "-ftrivial-auto-var-init=pattern",    /* what a kernel leaves unset is no value to count on, as on a GPU */
    "-ffp-contract=off",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
    NULL,
};

#define CHECKED                                                                                                        \
    "-x", "c++", "-std=c++17", "-O2", "-g", "-fno-pie", "-fno-strict-aliasing", "-ffp-contract=off",                   \
        "-Wno-unknown-pragmas", "-Wno-attributes", "-DSIMT_CHECKS=1", "-fsanitize=thread", "-fsanitize=alignment",     \
        "-ftrivial-auto-var-init=pattern", "-fdata-sections" /* link_stub_spread */

const char *const simt_checked_clang_flags[] = {
    CHECKED,
    "-Wno-undefined-internal",           /* extern __shared__ arrays in an unnamed namespace: the link stub has them */
    "-Wno-unused-command-line-argument", /* what a preprocessed source needs no more */
    "-Wno-ignored-attributes",           /* __shared__ on a declaration */
    "-gdwarf-4",                         /* what every libbacktrace reads */
    "-ffp-exception-behavior=maytrap",   /* else a division moves in front of the test that guards it, and traps */
    "-fno-vectorize",                    /* accesses of more than 16 bytes get no hooks */
    "-fno-slp-vectorize",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    "-mllvm",
    "-simplifycfg-sink-common=false", /* what two branches do alike stays in both: as one it has no line */
    "-mllvm",
    "-simplifycfg-hoist-common=false",
    "-mllvm",
    "-enable-tail-merge=false",
    NULL,
};

const char *const simt_checked_gcc_flags[] = {
    CHECKED,
    "-ftrack-macro-expansion=0",
    "-fno-working-directory",
    "-fno-extern-tls-init",
    "-fno-aggressive-loop-optimizations",
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
