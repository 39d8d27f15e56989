#include "engine/runners/cpu/flags.h"

#include <stddef.h>

const char *const simt_compile_flags[] = {
    "-x",
    "c++",
    "-std=c++17",
    "-O2",
    "-g",
    "-ftrack-macro-expansion=0", /* an error in a probe stands at the probe's line, not inside its macro */
    "-fno-working-directory",    /* the preprocessed text must not name the folder: it is hashed */
    "-fno-pie",
    "-fno-extern-tls-init",
    "-fno-strict-aliasing",
    "-fno-aggressive-loop-optimizations", /* a loop past the end of an array must not lose its exit: it would hang */
    "-ffp-contract=off",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
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
