#include "engine/trace/trace_file.h"

#include "engine/base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_tensor(FILE *file, const struct trace *t, const struct trace_tensor_map *map)
{
    for (uint64_t slot = 0; slot < map->n_slots; slot++)
        for (uint64_t kv = 0; kv < map->n_kv; kv++) {
            uint64_t at = *map->offset;
            if (map->slot_stride)
                at += slot * *map->slot_stride + kv * *map->kv_stride;
            if (map->piece_bytes && fwrite(t->bytes + at, map->piece_bytes, 1, file) != 1)
                return -1;
        }
    return 0;
}

static int make_header(const struct trace *t, const struct trace_tensor_map *maps, int n_maps, unsigned char **header,
                       size_t *header_bytes, struct err *err)
{
    struct safetensors_tensor tensors[TRACE_TENSORS_MAX] = {{0}};
    struct safetensors_text texts[TRACE_TEXTS_MAX];
    for (int i = 0; i < n_maps; i++) {
        tensors[i].name = maps[i].name;
        tensors[i].dtype = dtype_safetensors(maps[i].dtype);
        tensors[i].n_dims = maps[i].n_dims;
        memcpy(tensors[i].shape, maps[i].shape, sizeof maps[i].shape);
    }
    const int n_texts = trace_metadata_write(t, texts, err);
    if (n_texts < 0)
        return -1;
    const int result = safetensors_header(tensors, (size_t)n_maps, texts, (size_t)n_texts, header, header_bytes, err);
    trace_metadata_free(texts, n_texts);
    return result;
}

static int write_file(const struct trace *t, const char *path, const struct trace_tensor_map *maps, int n_maps,
                      const unsigned char *header, size_t header_bytes, struct err *err)
{
    struct replacement r;
    if (replace_open(&r, path, 0666, err) != 0)
        return -1;
    setvbuf(r.file, NULL, _IOFBF, 1 << 20);
    int failed = fwrite(header, header_bytes, 1, r.file) != 1;
    for (int i = 0; i < n_maps && !failed; i++)
        failed = write_tensor(r.file, t, &maps[i]) != 0;
    if (!failed)
        return replace_commit(&r, err);
    err_errno(err, path, "cannot be written");
    replace_drop(&r);
    return -1;
}

/* What may be replaced: nothing, an empty file, or a safetensors file (a length of 8 bytes, then JSON). A mistyped path
   must not cost somebody a kernel. */
static int may_replace(const char *path, struct err *err)
{
    struct stat status;
    unsigned char head[9] = {0};
    if (stat(path, &status) != 0)
        return 0;
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_INPUT, path, "is not a regular file; a trace would replace it");
    if (status.st_size == 0)
        return 0;
    FILE *file = fopen(path, "rb");
    const int is_trace = file && fread(head, 1, sizeof head, file) == sizeof head && head[8] == '{';
    if (file)
        fclose(file);
    return is_trace ? 0 : err_set(err, ERR_INPUT, path, "exists and is not a trace; it is not replaced");
}

int trace_save(const struct trace *t, const char *path, struct err *err)
{
    if (may_replace(path, err) != 0)
        return -1;
    struct layout layout = t->layout;
    struct trace_tensor_map maps[TRACE_TENSORS_MAX];
    const int n_maps = trace_tensor_list(&t->problem, &layout, maps);
    unsigned char *header = NULL;
    size_t header_bytes = 0;
    if (make_header(t, maps, n_maps, &header, &header_bytes, err) != 0)
        return -1;
    const int result = write_file(t, path, maps, n_maps, header, header_bytes, err);
    free(header);
    return result;
}
