#include "engine/bundle/container.h"

#include "engine/base/replace.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (1u << 20)
#define UTF8_NAMES (1u << 11) /* of an entry's flags (APPNOTE 4.4.4) */
#define ENCRYPTED 1u
#define MADE_BY_UNIX (3u << 8) /* the high half of the attributes is st_mode (APPNOTE 4.4.2, 4.4.15) */
#define ZIP_VERSION 20u
#define DOS_DAY_ONE ((1u << 5 | 1u) << 16) /* 1980-01-01 00:00 */

/* ---- names ---- */

static bool is_plain_text(const char *name)
{
    char shown[UTF8_NAME_BYTES];
    uint32_t code;
    for (size_t n; (n = utf8_decode(name, &code)) > 0; name += n)
        if (utf8_name(name, n, code, shown) > 0 || code == '\n' || code == '\t' || code == '\\')
            return false;
    return true;
}

static bool is_plain_path(const char *name)
{
    for (const char *part = name, *end;; part = end + 1) {
        end = strchrnul(part, '/');
        const size_t n = (size_t)(end - part);
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (!*end)
            return true;
    }
}

int container_check_name(const char *name, const char *where, struct err *err)
{
    char shown[160];
    if (strlen(name) < CONTAINER_NAME_BYTES && is_plain_path(name) && is_plain_text(name))
        return 0;
    return err_set(err, ERR_INPUT, where, "'%s' is no plain path below a folder, which alone a bundle takes",
                   text_name(name, strlen(name), shown, sizeof shown));
}

/* ---- making one ---- */

static struct container_entry *add(struct container *c, const char *name, struct err *err)
{
    if (container_check_name(name, name, err) != 0)
        return NULL;
    if (c->n == CONTAINER_ENTRIES_MAX) {
        err_set(err, ERR_INPUT, name, "a bundle takes no more than %d files", CONTAINER_ENTRIES_MAX);
        return NULL;
    }
    struct container_entry *more = realloc(c->entries, (c->n + 1) * sizeof *more);
    if (!more) {
        err_no_memory(err, name, "the bundle");
        return NULL;
    }
    c->entries = more;
    more[c->n] = (struct container_entry){0};
    snprintf(more[c->n].name, sizeof more[c->n].name, "%s", name);
    return &more[c->n];
}

int container_add_text(struct container *c, const char *name, const char *text, bool program, struct err *err)
{
    struct container_entry *entry = add(c, name, err);
    if (!entry)
        return -1;
    entry->text = strdup(text);
    if (!entry->text)
        return err_no_memory(err, name, "the bundle");
    entry->bytes = strlen(text);
    entry->program = program;
    c->n++;
    return 0;
}

int container_add_file(struct container *c, const char *name, const char *path, struct err *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return err_errno(err, path, "cannot be packed");
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_INPUT, path, "is not a regular file; it cannot be packed");
    struct container_entry *entry = add(c, name, err);
    if (!entry)
        return -1;
    entry->path = strdup(path);
    if (!entry->path)
        return err_no_memory(err, name, "the bundle");
    entry->bytes = (uint64_t)status.st_size;
    c->n++;
    return 0;
}

/* minizip writes into a file that is open already, and leaves it so. */
static voidpf use_open_file(voidpf file, const void *name, int mode)
{
    (void)name;
    (void)mode;
    return file;
}

static int leave_open(voidpf opaque, voidpf file)
{
    (void)opaque;
    return fflush(file);
}

static int write_bytes(zipFile zip, const void *bytes, size_t n)
{
    return zipWriteInFileInZip(zip, bytes, (unsigned)n) == ZIP_OK ? 0 : -1;
}

static int write_file(zipFile zip, const struct container_entry *entry, struct err *err)
{
    char *piece = malloc(PIECE_BYTES);
    FILE *file = piece ? fopen(entry->path, "rbe") : NULL;
    uint64_t all = 0;
    int failed = !piece  ? err_no_memory(err, entry->name, "the bundle")
                 : !file ? err_errno(err, entry->path, "cannot be packed")
                         : 0;
    for (size_t n; !failed && (n = fread(piece, 1, PIECE_BYTES, file)) > 0; all += n)
        if (write_bytes(zip, piece, n) != 0)
            failed = err_errno(err, entry->name, "cannot be packed");
    if (!failed && (ferror(file) || all != entry->bytes))
        failed = err_set(err, ERR_INPUT, entry->path, "has changed while it was packed");
    if (file)
        fclose(file);
    free(piece);
    return failed;
}

/* Values of a trace gain little by packing: the fastest way for them. */
static int write_entry(zipFile zip, const struct container_entry *entry, struct err *err)
{
    const zip_fileinfo info = {.dosDate = DOS_DAY_ONE,
                               .external_fa = (S_IFREG | (entry->program ? 0755u : 0644u)) << 16};
    const int level = entry->bytes > PIECE_BYTES ? 1 : 6;
    if (zipOpenNewFileInZip4_64(zip, entry->name, &info, NULL, 0, NULL, 0, NULL, Z_DEFLATED, level, 0, -MAX_WBITS,
                                DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0, MADE_BY_UNIX | ZIP_VERSION, UTF8_NAMES,
                                0) != ZIP_OK)
        return err_errno(err, entry->name, "cannot be packed");
    int failed = 0;
    if (!entry->text)
        failed = write_file(zip, entry, err);
    else if (write_bytes(zip, entry->text, entry->bytes) != 0)
        failed = err_errno(err, entry->name, "cannot be packed");
    if (zipCloseFileInZip(zip) != ZIP_OK && !failed)
        failed = err_errno(err, entry->name, "cannot be packed");
    return failed;
}

int container_write(const struct container *c, const char *path, struct err *err)
{
    struct replacement r;
    zlib_filefunc64_def functions;
    uint64_t all = 0;
    for (size_t i = 0; i < c->n; i++)
        all += c->entries[i].bytes;
    if (all > CONTAINER_BYTES_MAX)
        return err_set(err, ERR_INPUT, path, "would hold %llu MiB; a bundle takes at most %llu",
                       (unsigned long long)(all >> 20), (unsigned long long)(CONTAINER_BYTES_MAX >> 20));
    if (replace_open(&r, path, 0666, err) != 0)
        return -1;
    fill_fopen64_filefunc(&functions);
    functions.zopen64_file = use_open_file;
    functions.zclose_file = leave_open;
    functions.opaque = r.file;
    zipFile zip = zipOpen2_64(path, APPEND_STATUS_CREATE, NULL, &functions);
    int failed = zip ? 0 : err_no_memory(err, path, "the bundle");
    for (size_t i = 0; i < c->n && !failed; i++)
        failed = write_entry(zip, &c->entries[i], err);
    if (zip && zipClose(zip, NULL) != ZIP_OK && !failed)
        failed = err_errno(err, path, "cannot be written");
    if (!failed)
        return replace_commit(&r, err);
    replace_drop(&r);
    return -1;
}

/* ---- reading one ---- */

bool container_is(const char *path)
{
    char head[4];
    FILE *file = fopen(path, "rbe");
    const bool is = file && fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, "PK\3\4", 4) == 0;
    if (file)
        fclose(file);
    return is;
}

static int damaged(const struct container *c, struct err *err)
{
    return err_set(err, ERR_INPUT, c->path, "is no zip file, or a damaged one");
}

/* What an entry is, beyond its name. */
static int check_kind(const struct container *c, const struct container_entry *entry, const unz_file_info64 *info,
                      struct err *err)
{
    const unsigned mode = (unsigned)(info->external_fa >> 16) & S_IFMT;
    if ((info->version & 0xFF00u) == MADE_BY_UNIX && mode && mode != S_IFREG)
        return err_set(err, ERR_INPUT, c->path, "'%.200s' is a %s, not a regular file; nothing is unpacked",
                       entry->name,
                       mode == S_IFLNK   ? "link"
                       : mode == S_IFDIR ? "folder"
                                         : "device");
    if (info->flag & ENCRYPTED)
        return err_set(err, ERR_INPUT, c->path, "'%.200s' is encrypted", entry->name);
    return 0;
}

static int take_entry(struct container *c, uint64_t *all, struct err *err)
{
    unzFile zip = c->zip;
    unz_file_info64 info;
    unz64_file_pos at;
    char name[CONTAINER_NAME_BYTES] = "";
    if (unzGetCurrentFileInfo64(zip, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK ||
        unzGetFilePos64(zip, &at) != UNZ_OK)
        return damaged(c, err);
    name[sizeof name - 1] = '\0';
    if (info.size_filename != strlen(name))
        return err_set(err, ERR_INPUT, c->path, "a name in it holds a NUL or is longer than %d bytes",
                       CONTAINER_NAME_BYTES - 1);
    if (container_check_name(name, c->path, err) != 0)
        return -1;
    struct container_entry *entry = add(c, name, err);
    if (!entry || check_kind(c, entry, &info, err) != 0)
        return -1;
    entry->bytes = info.uncompressed_size;
    entry->at = at.pos_in_zip_directory;
    entry->number = at.num_of_file;
    if (entry->bytes > CONTAINER_BYTES_MAX || (*all += entry->bytes) > CONTAINER_BYTES_MAX)
        return err_set(err, ERR_INPUT, c->path, "holds more than %llu MiB; nothing is unpacked",
                       (unsigned long long)(CONTAINER_BYTES_MAX >> 20));
    c->n++;
    return 0;
}

struct listed {
    const char *name; /* borrowed */
};

/* In the order of paths: a '/' before all else, so that what lies in a folder stands behind a file of its name. */
static int by_path(const void *a, const void *b)
{
    const char *x = ((const struct listed *)a)->name, *y = ((const struct listed *)b)->name;
    while (*x && *x == *y) {
        x++;
        y++;
    }
    const int of_x = *x == '/' ? 1 : (unsigned char)*x, of_y = *y == '/' ? 1 : (unsigned char)*y;
    return (of_x > of_y) - (of_x < of_y);
}

static int check_twice(const struct container *c, struct err *err)
{
    struct listed *sorted = calloc(c->n + 1, sizeof *sorted);
    if (!sorted)
        return err_no_memory(err, c->path, "the list of its files");
    for (size_t i = 0; i < c->n; i++)
        sorted[i].name = c->entries[i].name;
    qsort(sorted, c->n, sizeof *sorted, by_path);
    int failed = 0;
    for (size_t i = 1; i < c->n && !failed; i++) {
        const char *before = sorted[i - 1].name, *name = sorted[i].name;
        const size_t n = strlen(before);
        if (strncmp(before, name, n) == 0 && (!name[n] || name[n] == '/'))
            failed = err_set(err, ERR_INPUT, c->path, "'%.200s' is there %s; nothing is unpacked", before,
                             name[n] ? "as a file and as a folder" : "twice");
    }
    free(sorted);
    return failed;
}

int container_open(const char *path, struct container *out, struct err *err)
{
    unz_global_info64 info;
    uint64_t all = 0;
    *out = (struct container){0};
    snprintf(out->path, sizeof out->path, "%s", path);
    out->zip = unzOpen64(path);
    int failed = !out->zip || unzGetGlobalInfo64(out->zip, &info) != UNZ_OK ? damaged(out, err) : 0;
    if (!failed && info.number_entry > CONTAINER_ENTRIES_MAX)
        failed = err_set(err, ERR_INPUT, path, "holds more than %d files; nothing is unpacked", CONTAINER_ENTRIES_MAX);
    int at = failed ? UNZ_OK : unzGoToFirstFile(out->zip);
    for (uint64_t i = 0; !failed && i < info.number_entry; i++) {
        failed = at != UNZ_OK ? damaged(out, err) : take_entry(out, &all, err);
        if (!failed && i + 1 < info.number_entry)
            at = unzGoToNextFile(out->zip);
    }
    failed = failed || check_twice(out, err) != 0;
    if (failed)
        container_free(out);
    return failed ? -1 : 0;
}

const struct container_entry *container_find(const struct container *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->entries[i].name, name) == 0)
            return &c->entries[i];
    return NULL;
}

static int read_pieces(struct container *c, const struct container_entry *entry, char *piece,
                       int (*take)(void *ctx, const void *bytes, size_t n), void *ctx, struct err *err)
{
    uint64_t all = 0;
    for (int n; (n = unzReadCurrentFile(c->zip, piece, PIECE_BYTES)) != 0; all += (uint64_t)n) {
        if (n < 0 || all + (uint64_t)n > entry->bytes)
            return damaged(c, err);
        if (take(ctx, piece, (size_t)n) != 0)
            return err_errno(err, entry->name, "cannot be unpacked");
    }
    return all == entry->bytes ? 0 : damaged(c, err);
}

int container_read(struct container *c, const struct container_entry *entry,
                   int (*take)(void *ctx, const void *bytes, size_t n), void *ctx, struct err *err)
{
    const unz64_file_pos at = {entry->at, entry->number};
    if (unzGoToFilePos64(c->zip, &at) != UNZ_OK || unzOpenCurrentFile(c->zip) != UNZ_OK)
        return damaged(c, err);
    char *piece = malloc(PIECE_BYTES);
    int failed = piece ? read_pieces(c, entry, piece, take, ctx, err) : err_no_memory(err, c->path, "what is unpacked");
    free(piece);
    if (unzCloseCurrentFile(c->zip) != UNZ_OK && !failed) /* the checksum is another */
        failed = damaged(c, err);
    return failed;
}

struct growing {
    char *text;
    size_t n;
};

static int append(void *ctx, const void *bytes, size_t n)
{
    struct growing *to = ctx;
    memcpy(to->text + to->n, bytes, n);
    to->n += n;
    return 0;
}

int container_read_text(struct container *c, const struct container_entry *entry, size_t most_bytes, char **text,
                        struct err *err)
{
    *text = NULL;
    if (entry->bytes > most_bytes)
        return err_set(err, ERR_INPUT, c->path, "'%.200s' is larger than %zu KiB", entry->name, most_bytes >> 10);
    struct growing to = {calloc(1, entry->bytes + 1), 0};
    if (!to.text)
        return err_no_memory(err, c->path, "what is unpacked");
    if (container_read(c, entry, append, &to, err) != 0) {
        free(to.text);
        return -1;
    }
    *text = to.text;
    return 0;
}

/* The folders of a name, below the folder that `at` is. */
static int make_folders(int at, const char *name)
{
    char part[CONTAINER_NAME_BYTES];
    for (const char *slash = name; (slash = strchr(slash, '/')); slash++) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        if (mkdirat(at, part, 0700) != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int put(void *file, const void *bytes, size_t n)
{
    return fwrite(bytes, 1, n, file) == n ? 0 : -1;
}

static int unpack_entry(struct container *c, const struct container_entry *entry, int at, struct err *err)
{
    const int fd = make_folders(at, entry->name) == 0
                       ? openat(at, entry->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                       : -1;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file) {
        err_errno(err, entry->name, "cannot be unpacked");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int failed = container_read(c, entry, put, file, err);
    if (fclose(file) != 0 && !failed)
        failed = err_errno(err, entry->name, "cannot be unpacked");
    return failed;
}

int container_unpack(struct container *c, const char *folder, struct err *err)
{
    const int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = at < 0 ? err_errno(err, folder, "cannot be written") : 0;
    for (size_t i = 0; i < c->n && !failed; i++)
        failed = unpack_entry(c, &c->entries[i], at, err);
    if (at >= 0)
        close(at);
    return failed;
}

void container_free(struct container *c)
{
    if (c->zip)
        unzClose(c->zip);
    for (size_t i = 0; i < c->n; i++) {
        free(c->entries[i].text);
        free(c->entries[i].path);
    }
    free(c->entries);
    *c = (struct container){0};
}
