/* The compiler's and the linker's words, cut to what a user needs: the first error, at the user's line. */
#ifndef BUILD_DIAGNOSE_H
#define BUILD_DIAGNOSE_H

#include "engine/base/err.h"
#include <stdbool.h>

struct diagnose {
    const char *compiled_path; /* what the compiler was given */
    const char *user_path;     /* what the user calls it */
    bool without_header;       /* the source includes attnscope.h nowhere */
};

/* A copy of the compiler's words with the user's names in them, the caller's; NULL without memory. */
char *diagnose_words(const struct diagnose *d, const char *said);

/* Fill *err and return -1: ERR_BUILD, ERR_GPU_ONLY for a missing header that is listed so, or ERR_DECLINED for an
   instruction that the GPU does not have. `said` is what came on stderr. */
int diagnose_compiler(const struct diagnose *d, const char *said, struct err *err);
int diagnose_linker(const struct diagnose *d, const char *said, struct err *err);

#endif
