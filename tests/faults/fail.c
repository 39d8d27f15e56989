/* LD_PRELOAD: makes one call of the program fail, to see what it says then.

   FAULT_PROGRAM is the program (its path as /proc/self/exe has it; the processes it starts are left alone), or a folder
   with a slash at its end: every program in there, FAULT_KIND which calls are counted (memory, io, stdout: writes to
   standard output, or worker: what a worker of the CPU executor needs, stacks and a thread), FAULT_AT the call that
   fails (0: the first), FAULT_ON=1 all from there on, FAULT_ERRNO what it fails with. FAULT_COUNT=1 writes how many
   there were to stderr at the end. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The C library's own. NOLINTBEGIN(bugprone-reserved-identifier) */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
/* NOLINTEND(bugprone-reserved-identifier) */

enum kind { NONE, MEMORY, IO, STDOUT, WORKER };

static enum kind kind;
static long at = -1;
static int from_there_on, code = ENOMEM;
static atomic_long calls;

/* Before main(): what comes earlier is the loader's. */
__attribute__((constructor)) static void begin(void)
{
    char self[4096];
    const char *program = getenv("FAULT_PROGRAM"), *what = getenv("FAULT_KIND"), *n = getenv("FAULT_AT"),
               *no = getenv("FAULT_ERRNO");
    const ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
    self[bytes > 0 ? bytes : 0] = '\0';
    const size_t n_program = program ? strlen(program) : 0;
    if (!n_program || !what || strncmp(program, self, n_program) != 0 ||
        (program[n_program - 1] != '/' && self[n_program] != '\0'))
        return;
    at = n ? atol(n) : -1;
    from_there_on = getenv("FAULT_ON") != NULL;
    code = no ? atoi(no) : ENOMEM;
    kind = strcmp(what, "memory") == 0   ? MEMORY
           : strcmp(what, "stdout") == 0 ? STDOUT
           : strcmp(what, "worker") == 0 ? WORKER
                                         : IO;
}

__attribute__((destructor)) static void end(void)
{
    char line[64];
    const int n = snprintf(line, sizeof line, "FAULT_CALLS %ld\n", atomic_load(&calls));
    const int wanted = kind != NONE && getenv("FAULT_COUNT");
    kind = NONE;
    if (wanted && write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(4);
}

static int fails(enum kind of)
{
    if (kind != of)
        return 0;
    const long i = atomic_fetch_add(&calls, 1);
    if (at < 0 || (from_there_on ? i < at : i != at))
        return 0;
    errno = code;
    return 1;
}

void *malloc(size_t bytes)
{
    return fails(MEMORY) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails(MEMORY) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    return fails(MEMORY) ? NULL : __libc_realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(MEMORY) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *p = fails(MEMORY) ? NULL : __libc_memalign(alignment, bytes);
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}

/* CALL(result, name, parameters, arguments, what it returns when it fails): types and lists. COUNTED: of a kind.
   NOLINTBEGIN(bugprone-macro-parentheses) */
#define COUNTED(result, name, parameters, arguments, failed, does_fail)                                                \
    result name parameters                                                                                             \
    {                                                                                                                  \
        static result(*real) parameters;                                                                               \
        if (!real)                                                                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                 \
        return (does_fail) ? (failed) : real arguments;                                                                \
    }
#define CALL(result, name, parameters, arguments, failed)                                                              \
    COUNTED(result, name, parameters, arguments, failed, fails(IO))
/* NOLINTEND(bugprone-macro-parentheses) */
CALL(ssize_t, read, (int f, void *to, size_t n), (f, to, n), -1)
CALL(ssize_t, pread, (int f, void *to, size_t n, off_t o), (f, to, n, o), -1)
CALL(ssize_t, pwrite, (int f, const void *from, size_t n, off_t o), (f, from, n, o), -1)
CALL(int, fsync, (int f), (f), -1)
CALL(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
CALL(FILE *, fdopen, (int f, const char *mode), (f, mode), NULL)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
CALL(int, rename, (const char *from, const char *to), (from, to), -1)
COUNTED(void *, mmap, (void *p, size_t n, int prot, int flags, int f, off_t o), (p, n, prot, flags, f, o), MAP_FAILED,
        fails(IO) || ((prot & PROT_WRITE) && (flags & MAP_NORESERVE) && fails(WORKER)))
CALL(int, ftruncate, (int f, off_t n), (f, n), -1)
CALL(int, fallocate, (int f, int mode, off_t o, off_t n), (f, mode, o, n), -1)
CALL(int, posix_fallocate, (int f, off_t o, off_t n), (f, o, n), code)
CALL(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
CALL(int, eventfd, (unsigned value, int flags), (value, flags), -1)
CALL(int, pipe2, (int f[2], int flags), (f, flags), -1)
CALL(int, socketpair, (int domain, int type, int protocol, int f[2]), (domain, type, protocol, f), -1)
CALL(int, poll, (struct pollfd * f, nfds_t n, int ms), (f, n, ms), -1)
CALL(ssize_t, sendmsg, (int f, const struct msghdr *m, int flags), (f, m, flags), -1)
CALL(ssize_t, recvmsg, (int f, struct msghdr *m, int flags), (f, m, flags), -1)
CALL(char *, mkdtemp, (char *name), (name), NULL)
CALL(int, mkostemp, (char *name, int flags), (name, flags), -1)
CALL(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags), -1)
CALL(int, fstat, (int f, struct stat *s), (f, s), -1)
CALL(int, stat, (const char *path, struct stat *s), (path, s), -1)
CALL(int, posix_spawn,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const argv[], char *const env[]),
     (pid, path, actions, attributes, argv, env), code)
CALL(int, posix_spawnp,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const argv[], char *const env[]),
     (pid, path, actions, attributes, argv, env), code)
COUNTED(int, pthread_create, (pthread_t * thread, const pthread_attr_t *a, void *(*run)(void *), void *ctx),
        (thread, a, run, ctx), EAGAIN, fails(IO) || fails(WORKER))

ssize_t write(int f, const void *from, size_t n)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    return fails(IO) || (f == STDOUT_FILENO && fails(STDOUT)) ? -1 : real(f, from, n);
}

/* A file that is closed badly is closed all the same. */
int fclose(FILE *f)
{
    static int (*real)(FILE *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fclose");
    const int failed = fails(IO), kept = errno, result = real(f);
    errno = failed ? kept : errno;
    return failed ? EOF : result;
}

static int mode_of(int flags, va_list more)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list more;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    va_start(more, flags);
    const int mode = mode_of(flags, more);
    va_end(more);
    return fails(IO) ? -1 : real(path, flags, mode);
}

int fcntl(int f, int command, ...)
{
    static int (*real)(int, int, ...);
    va_list more;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fcntl");
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return fails(IO) ? -1 : real(f, command, argument);
}
