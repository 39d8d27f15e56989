#include "engine/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions behind the macros. */
#undef err_set
#undef err_errno
#undef err_no_memory

static void fill(struct err *err, enum err_code code, const char *where, const char *format, va_list args)
{
    err->code = code;
    snprintf(err->where, sizeof err->where, "%s", where ? where : "");
    vsnprintf(err->message, sizeof err->message, format, args);
}

int err_set(struct err *err, enum err_code code, const char *where, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, code, where, format, args);
        va_end(args);
    }
    return -1;
}

int err_errno(struct err *err, const char *where, const char *format, ...)
{
    int saved = errno;
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, ERR_SYSTEM, where, format, args);
        va_end(args);
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, ": %s", strerror(saved));
    }
    errno = saved;
    return -1;
}

int err_no_memory(struct err *err, const char *where, const char *format, ...)
{
    if (err) {
        char what[256];
        va_list args;
        va_start(args, format);
        vsnprintf(what, sizeof what, format, args);
        va_end(args);
        err_set(err, ERR_SYSTEM, where, "out of memory for %s", what);
    }
    errno = ENOMEM;
    return -1;
}

void err_keep(struct err_kept *kept, const struct err *err)
{
    const size_t n_where = strlen(err->where) + 1, n_message = strlen(err->message) + 1;
    err_forget(kept);
    kept->code = err->code;
    kept->words = err->code != ERR_NONE ? malloc(n_where + n_message) : NULL;
    if (kept->words) {
        memcpy(kept->words, err->where, n_where);
        memcpy(kept->words + n_where, err->message, n_message);
    }
}

void err_recall(const struct err_kept *kept, struct err *out)
{
    *out = (struct err){.code = kept->code};
    if (kept->words) {
        snprintf(out->where, sizeof out->where, "%s", kept->words);
        snprintf(out->message, sizeof out->message, "%s", kept->words + strlen(kept->words) + 1);
    } else if (kept->code != ERR_NONE) {
        snprintf(out->message, sizeof out->message, "out of memory for the words of an error");
    }
}

void err_forget(struct err_kept *kept)
{
    free(kept->words);
    *kept = (struct err_kept){0};
}

int err_exit_status(enum err_code code)
{
    switch (code) {
    case ERR_NONE:
        return 0;
#define ERROR(id, exit_status, name)                                                                                   \
    case id:                                                                                                           \
        return exit_status;
#include "engine/base/errors.def"
#undef ERROR
    }
    return 3;
}

const char *err_name(enum err_code code)
{
    switch (code) {
    case ERR_NONE:
        return "none";
#define ERROR(id, exit_status, name)                                                                                   \
    case id:                                                                                                           \
        return name;
#include "engine/base/errors.def"
#undef ERROR
    }
    return "unknown";
}

enum err_code err_from_name(const char *name)
{
    static const enum err_code codes[] = {
        ERR_NONE,
#define ERROR(id, exit_status, name) id,
#include "engine/base/errors.def"
#undef ERROR
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(err_name(codes[i]), name) == 0)
            return codes[i];
    return ERR_SYSTEM;
}
