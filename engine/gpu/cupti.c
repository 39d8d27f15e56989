#include "engine/gpu/cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Where a toolkit keeps it; the last are the loader's. */
static const char *const folders[] = {"/lib64/", "/extras/CUPTI/lib64/", "/targets/x86_64-linux/lib/",
                                      "/targets/sbsa-linux/lib/", "/lib/"};
static const char *const names[] = {"libcupti.so", "libcupti.so.13", "libcupti.so.12"};

static void *open_library(const char *toolkit)
{
    char path[700];
    void *library = NULL;
    for (size_t f = 0; *toolkit && f < sizeof folders / sizeof *folders; f++)
        for (size_t n = 0; !library && n < sizeof names / sizeof *names; n++) {
            snprintf(path, sizeof path, "%s%s%s", toolkit, folders[f], names[n]);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    for (size_t n = 0; !library && n < sizeof names / sizeof *names; n++)
        library = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);
    return library;
}

int cupti_load(const char *toolkit, struct cupti *out, struct err *err)
{
    void *library = open_library(toolkit);
    if (!library)
        return err_set(err, ERR_SYSTEM, "CUPTI", "libcupti.so was not found%s%s", *toolkit ? " below " : "", toolkit);
        /* POSIX wants a function's address read out of an object pointer this way. */
#define CUPTI_FUNCTION(name, symbol, arguments)                                                                        \
    *(void **)&out->name = dlsym(library, #symbol);                                                                    \
    if (!out->name)                                                                                                    \
        return err_set(err, ERR_SYSTEM, "CUPTI", "libcupti.so has no %s: CUDA 12.6 or later has it", #symbol);
#include "engine/gpu/cupti.def"
#undef CUPTI_FUNCTION
    return 0;
}

void cupti_sentence(const struct cupti *cupti, int result, const char *step, char *text, size_t size)
{
    const char *words = NULL;
    cupti->result_text(result, &words);
    if (result == CUPTI_INSUFFICIENT_PRIVILEGES || result == CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES)
        snprintf(text, size,
                 "this machine lets only administrators read hardware counters (%s; "
                 "https://developer.nvidia.com/ERR_NVGPUCTRPERM)",
                 words ? words : "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    else
        snprintf(text, size, "%s: %s (CUPTI result %d)", step, words ? words : "unknown", result);
}
