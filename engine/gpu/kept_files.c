#include "engine/gpu/kept_files.h"

#include "engine/gpu/driver.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PIN_MAPPED = 2 }; /* CU_MEMHOSTREGISTER_DEVICEMAP */

static void drop(struct kept_file *f)
{
    if (!f->mapping)
        return;
    driver.unpin(f->mapping);
    munmap(f->mapping, f->bytes);
    memset(f, 0, sizeof *f);
}

/* -1: it is not kept. */
static int find(const struct kept_files *k, const struct stat *file)
{
    for (int i = 0; i < KEPT_FILES; i++)
        if (k->at[i].mapping && k->at[i].device == file->st_dev && k->at[i].inode == file->st_ino &&
            k->at[i].bytes == (size_t)file->st_size)
            return i;
    return -1;
}

bool kept_files_fill(struct kept_files *k, uint64_t from, const struct values_piece *pieces, uint32_t n, int fd)
{
    struct stat file;
    const int i = fstat(fd, &file) == 0 ? find(k, &file) : -1;
    int status = i < 0;
    for (uint32_t p = 0; p < n && !status; p++) {
        const struct kept_file *to = &k->at[i];
        status = pieces[p].to > to->bytes || pieces[p].bytes > to->bytes - pieces[p].to;
        if (!status)
            status =
                driver.from_device(to->mapping + pieces[p].to, from + pieces[p].from, pieces[p].bytes, CUDA_OWN_STREAM);
    }
    if (i >= 0) { /* nothing is under way any more, however it went */
        const int waited = driver.wait(CUDA_OWN_STREAM);
        status = status ? status : waited;
    }
    return !status;
}

/* Its size is sealed, or a page of it could be gone while it is pinned. */
static bool is_memory(int fd)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK;
}

void kept_files_add(struct kept_files *k, int fd)
{
    struct stat file;
    if (!is_memory(fd) || fstat(fd, &file) != 0 || file.st_size <= 0)
        return;
    for (int i = 0; i < KEPT_FILES; i++)
        if (k->at[i].bytes != (size_t)file.st_size)
            drop(&k->at[i]);
    if (find(k, &file) >= 0 || k->seen++ == 0)
        return;
    struct kept_file *last = &k->at[KEPT_FILES - 1];
    void *mapping = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED)
        return;
    if (driver.pin(mapping, (size_t)file.st_size, PIN_MAPPED) != 0) {
        munmap(mapping, (size_t)file.st_size);
        return;
    }
    drop(last);
    memmove(&k->at[1], &k->at[0], (KEPT_FILES - 1) * sizeof k->at[0]);
    k->at[0] = (struct kept_file){mapping, (size_t)file.st_size, file.st_dev, file.st_ino};
}

void kept_files_free(struct kept_files *k)
{
    for (int i = 0; i < KEPT_FILES; i++)
        drop(&k->at[i]);
}
