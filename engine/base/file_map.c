#include "engine/base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 64 }; /* a session keeps eight runs, a comparison opens two more */

/* Read by the handler, on any thread: begin is set last and cleared first. */
static struct file {
    _Atomic uintptr_t begin; /* 0: free */
    size_t n_bytes;
    int fd;
    struct stat status; /* when it was mapped */
    char path[512];
} files[FILES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char changed[sizeof files->path]; /* the first one that had changed when it was closed */

bool file_map_repair(const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    for (int i = 0; i < FILES_MAX; i++) {
        const uintptr_t begin = atomic_load(&files[i].begin);
        if (!begin || at < begin || at - begin >= files[i].n_bytes)
            continue;
        const uintptr_t page = at - at % (uintptr_t)sysconf(_SC_PAGESIZE);
        return mmap((void *)page, files[i].n_bytes - (page - begin), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                    -1, 0) != MAP_FAILED;
    }
    return false;
}

static void take_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int saved = errno;
    if (!file_map_repair(info->si_addr))
        signal(number, SIG_DFL); /* it happens again */
    errno = saved;
}

/* Whoever has taken the signal already asks file_map_repair(). */
static void take_signal(void)
{
    struct sigaction now, act = {.sa_sigaction = take_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&act.sa_mask);
    if (sigaction(SIGBUS, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
        sigaction(SIGBUS, &act, NULL);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool has_changed(const struct file *f)
{
    struct stat now;
    return fstat(f->fd, &now) != 0 || !same_file(&now, &f->status);
}

static int map(const char *path, int fd, struct file *f, const unsigned char **bytes, size_t *n_bytes, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_errno(err, path, "cannot be read");
    if (!S_ISREG(status.st_mode) || status.st_size <= 0)
        return err_set(err, ERR_INPUT, path, "is %s", S_ISREG(status.st_mode) ? "empty" : "not a regular file");
    void *mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED)
        return err_errno(err, path, "mapping %zu bytes", (size_t)status.st_size);
    *bytes = mapping;
    *n_bytes = f->n_bytes = (size_t)status.st_size;
    f->fd = fd;
    f->status = status;
    snprintf(f->path, sizeof f->path, "%s", path);
    atomic_store(&f->begin, (uintptr_t)mapping);
    return 0;
}

int file_map_open(const char *path, const unsigned char **bytes, size_t *n_bytes, struct err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    if (fd < 0)
        return errno == ENOENT ? err_set(err, ERR_INPUT, path, "no such file") : err_errno(err, path, "cannot be read");
    pthread_mutex_lock(&lock);
    take_signal();
    int i = 0;
    while (i < FILES_MAX && atomic_load(&files[i].begin))
        i++;
    const int failed = i < FILES_MAX ? map(path, fd, &files[i], bytes, n_bytes, err)
                                     : err_set(err, ERR_SYSTEM, path, "more than %d files are open", FILES_MAX);
    pthread_mutex_unlock(&lock);
    if (failed)
        close(fd);
    return failed;
}

void file_map_close(const void *bytes)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; bytes && i < FILES_MAX; i++) {
        struct file *f = &files[i];
        if (atomic_load(&f->begin) != (uintptr_t)bytes)
            continue;
        if (!changed[0] && has_changed(f))
            memcpy(changed, f->path, sizeof changed);
        close(f->fd);
        atomic_store(&f->begin, 0);
        munmap((void *)(uintptr_t)bytes, f->n_bytes);
    }
    pthread_mutex_unlock(&lock);
}

int file_map_check(const void *bytes, struct err *err)
{
    pthread_mutex_lock(&lock);
    const char *path = !bytes && changed[0] ? changed : NULL;
    for (int i = 0; i < FILES_MAX && !path; i++) {
        const uintptr_t begin = atomic_load(&files[i].begin);
        if (begin && (!bytes || begin == (uintptr_t)bytes) && has_changed(&files[i]))
            path = files[i].path;
    }
    const int failed =
        path ? err_set(err, ERR_SYSTEM, path,
                       "was modified or truncated while it was open: what was read is not one run; open it again")
             : 0;
    pthread_mutex_unlock(&lock);
    return failed;
}
