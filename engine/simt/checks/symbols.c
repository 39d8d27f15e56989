#include "engine/simt/checks/symbols.h"

#include "engine/simt/simt.h"
#include "engine/simt/worker.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern __thread unsigned char simt_dynamic_shared[SIMT_SHARED_MAX]; /* in the link stub */

static struct symbols symbols;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uintptr_t block_begin; /* of the thread that reads them */
static size_t block_bytes;

static void add(size_t offset, size_t bytes, const char *name)
{
    struct symbol *more = realloc(symbols.at, (symbols.n + 1) * sizeof *more);
    if (!more)
        return;
    symbols.at = more;
    more[symbols.n++] = (struct symbol){offset, bytes, name};
}

static int by_offset(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Our own program, which the linker made: its table is what ELF says. */
static void read_table(const unsigned char *file, const Elf64_Shdr *table, const Elf64_Shdr *strings)
{
    const size_t own = (size_t)((uintptr_t)&simt_tls - block_begin);
    for (size_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, file + table->sh_offset + i * sizeof s, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) != STT_TLS || s.st_shndx == SHN_UNDEF || !s.st_size || s.st_value == own ||
            s.st_value + s.st_size > block_bytes)
            continue;
        add(s.st_value, s.st_size, (const char *)file + strings->sh_offset + s.st_name);
    }
}

static void read_file(const unsigned char *file, size_t bytes)
{
    Elf64_Ehdr header;
    memcpy(&header, file, sizeof header);
    if (header.e_shoff + (uint64_t)header.e_shnum * sizeof(Elf64_Shdr) > bytes)
        return;
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr table, strings;
        memcpy(&table, file + header.e_shoff + i * sizeof table, sizeof table);
        if (table.sh_type != SHT_SYMTAB)
            continue;
        memcpy(&strings, file + header.e_shoff + table.sh_link * sizeof strings, sizeof strings);
        read_table(file, &table, &strings);
    }
}

/* The file stays mapped: the names lie in it. */
static void read_all(void)
{
    struct stat info;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    symbols.dynamic_offset = (size_t)((uintptr_t)simt_dynamic_shared - block_begin);
    if (fd >= 0 && fstat(fd, &info) == 0 && (size_t)info.st_size > sizeof(Elf64_Ehdr)) {
        void *file = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED)
            read_file(file, (size_t)info.st_size);
    }
    if (fd >= 0)
        close(fd);
    qsort(symbols.at, symbols.n, sizeof *symbols.at, by_offset);
}

void symbols_read(uintptr_t shared_begin, size_t shared_bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!block_bytes) {
        block_begin = shared_begin;
        block_bytes = shared_bytes;
    }
    pthread_once(&once, read_all);
    pthread_mutex_unlock(&lock);
}

const struct symbols *symbols_get(void)
{
    return &symbols;
}

/* "tile" of "_ZZ6kernelPfE4tile.0": the last name that a mangled one holds, behind its length. */
static void plain_name(const char *mangled, char *name, size_t size)
{
    const char *best = mangled;
    int n = (int)strlen(mangled);
    for (const char *at = mangled; strncmp(mangled, "_Z", 2) == 0 && *at;) {
        char *behind;
        const long length = *at >= '1' && *at <= '9' ? strtol(at, &behind, 10) : 0;
        if (length > 0 && (size_t)length <= strlen(behind)) {
            best = behind;
            n = (int)length;
            at = behind + length;
        } else {
            at++;
        }
    }
    snprintf(name, size, "%.*s", n < 60 ? n : 60, best);
}

void symbols_describe(uintptr_t address, size_t dynamic_bytes, char *text, size_t size)
{
    const size_t dynamic = address - (uintptr_t)simt_dynamic_shared;
    const size_t at = dynamic + symbols.dynamic_offset;
    if (dynamic < SIMT_SHARED_MAX) {
        if (dynamic < dynamic_bytes)
            snprintf(text, size, "byte %zu of dynamic shared memory", dynamic);
        else
            snprintf(text, size, "byte %zu of dynamic shared memory, of which the launch asked for %zu bytes", dynamic,
                     dynamic_bytes);
        return;
    }
    const struct symbol *before = NULL;
    for (size_t i = 0; i < symbols.n && symbols.at[i].offset <= at; i++)
        before = &symbols.at[i];
    char name[64];
    if (before)
        plain_name(before->name, name, sizeof name);
    if (!before)
        snprintf(text, size, "shared memory before all arrays");
    else if (at - before->offset < before->bytes)
        snprintf(text, size, "byte %zu of the shared array %s", at - before->offset, name);
    else
        snprintf(text, size, "byte %zu past the end of the shared array %s", at - before->offset - before->bytes, name);
}
