/* How a failure is told. A function that can fail returns 0, or -1 with *err filled in; only main() and the event loop
   exit. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum err_code {
    ERR_NONE,
#define ERROR(code, exit_status, name) code,
#include "engine/base/errors.def"
#undef ERROR
};

struct err {
    enum err_code code;
    char where[512];    /* "file:line: key", or "" */
    char message[3584]; /* what was wrong and what was expected; may span lines (a compiler's own words) */
};

/* Fills *err and returns -1, so that a caller can `return err_set(...)`. err may be NULL. */
int err_set(struct err *err, enum err_code code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same, with ": " and the system's words for errno appended. Takes ERR_SYSTEM. */
int err_errno(struct err *err, const char *where, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "out of memory for ...": what it was for. The one way to say so. Takes ERR_SYSTEM. */
int err_no_memory(struct err *err, const char *where, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* All return -1 always; said here, so that compilers and analysers need not guess it at every caller. */
static inline int err_minus_one(int returned)
{
    (void)returned;
    return -1;
}
#define err_set(...) err_minus_one(err_set(__VA_ARGS__))
#define err_errno(...) err_minus_one(err_errno(__VA_ARGS__))
#define err_no_memory(...) err_minus_one(err_no_memory(__VA_ARGS__))

/* A failure as it is kept: no larger than its words. Zero-initialize; release with err_forget(). */
struct err_kept {
    enum err_code code;
    char *words; /* owned: where, NUL, message; NULL: none, or there was no memory for them */
};
void err_keep(struct err_kept *kept, const struct err *err);
void err_recall(const struct err_kept *kept, struct err *out);
void err_forget(struct err_kept *kept);

int err_exit_status(enum err_code code);       /* 0 for ERR_NONE */
const char *err_name(enum err_code code);      /* "input", "build", ...; "none" */
enum err_code err_from_name(const char *name); /* ERR_SYSTEM: there is no such one */

#endif
