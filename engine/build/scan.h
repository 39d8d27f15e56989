/* What the preprocessor's output says about a kernel: its probe lines, and what only a GPU can run. */
#ifndef BUILD_SCAN_H
#define BUILD_SCAN_H

#include "engine/trace/trace.h"
#include <stdbool.h>

struct scan {
    /* The user's files are all but the system's and those below one of these folders. Borrowed. */
    const char *const *own_folders; /* NULL-terminated, each with a slash at its end */
    /* The preprocessor's name of the source and the name that the user knows it by. Borrowed. */
    const char *compiled_path, *user_path;
    bool gpu_only_allowed;    /* constructs that only a GPU can run are no error */
    bool always;              /* `rewritten` is never NULL */
    struct trace_site *sites; /* owned: each probe line once, in source order */
    size_t n_sites;
    struct asc_value values[ASC_OWN_CHANNELS]; /* what its ASC_VALUES declares */
    char *rewritten; /* owned: the text with inline PTX and <<<>>> as C++, alignas behind __shared__ as an attribute,
                        and without #include lines; NULL: it had none of them */
    size_t n_rewritten;
};

/* Reads `text`, made by g++ -E -dI or nvcc -E. ERR_GPU_ONLY: a construct of gpu_only.def, or PTX that ptx.def lacks,
 * stands in a user file (where: its line).
 */
int scan_preprocessed(struct scan *scan, const char *text, struct err *err);
void scan_free(struct scan *scan);

/* Why a header that was not found is refused ("CUB: GPU only: ..."), or NULL. */
const char *scan_gpu_only_header(const char *name);

#endif
