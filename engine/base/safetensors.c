#include "engine/base/safetensors.h"

#include "engine/base/bounded_json.h"
#include "engine/base/json_memory.h"
#include "engine/base/text.h"

#include <stdlib.h>
#include <string.h>

struct safetensors {
    json_t *root;                       /* owned; names, types and metadata point into it */
    struct safetensors_tensor *tensors; /* owned */
    size_t n_tensors;
};

/* Only for messages: file and tensor. */
struct origin {
    const char *path, *name;
};

static int refuse(const struct origin *origin, struct err *err, const char *what)
{
    char name[128];
    if (!origin->name)
        return err_set(err, ERR_INPUT, origin->path, "%s", what);
    return err_set(err, ERR_INPUT, origin->path, "tensor '%s': %s",
                   text_name(origin->name, strlen(origin->name), name, sizeof name), what);
}

static uint64_t element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
                 {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
                 {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].bytes;
    return 0;
}

/* Size in bytes of t's shape and type; -1: no such type, or the product passes 2^64. */
static int tensor_bytes(const struct safetensors_tensor *t, uint64_t *bytes)
{
    *bytes = element_bytes(t->dtype);
    if (!*bytes)
        return -1;
    for (int i = 0; i < t->n_dims; i++)
        if (__builtin_mul_overflow(*bytes, t->shape[i], bytes))
            return -1;
    return 0;
}

/* A JSON integer of zero or more. */
static int read_count(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return -1;
    *out = (uint64_t)json_integer_value(value);
    return 0;
}

static int read_tensor(const struct origin *origin, const json_t *value, uint64_t data_bytes,
                       struct safetensors_tensor *t, struct err *err)
{
    const json_t *dtype = json_object_get(value, "dtype"), *shape = json_object_get(value, "shape"),
                 *offsets = json_object_get(value, "data_offsets");
    if (!json_is_string(dtype) || !json_is_array(shape) || !json_is_array(offsets) || json_array_size(offsets) != 2)
        return refuse(origin, err, "needs dtype, shape and two data_offsets");
    if (json_array_size(shape) > SAFETENSORS_DIMS_MAX)
        return refuse(origin, err, "has more than 8 dimensions");
    t->name = origin->name;
    t->dtype = json_string_value(dtype);
    t->n_dims = (int)json_array_size(shape);
    for (int i = 0; i < t->n_dims; i++)
        if (read_count(json_array_get(shape, (size_t)i), &t->shape[i]) != 0)
            return refuse(origin, err, "its shape must be integers of zero or more");
    uint64_t begin, end, bytes;
    if (read_count(json_array_get(offsets, 0), &begin) != 0 || read_count(json_array_get(offsets, 1), &end) != 0 ||
        begin > end || end > data_bytes)
        return refuse(origin, err, "its data_offsets do not lie inside the file");
    if (!element_bytes(t->dtype))
        return refuse(origin, err, "has an unknown type");
    if (tensor_bytes(t, &bytes) != 0 || bytes != end - begin)
        return refuse(origin, err, "its shape and type do not match its data_offsets");
    t->offset = begin;
    t->bytes = bytes;
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Sorts by offset; no overlap, no hole, the last one ends with the file. Offsets then count from the file's start. */
static int place_tensors(struct safetensors *s, const char *path, uint64_t data_begin, uint64_t data_bytes,
                         struct err *err)
{
    uint64_t end = 0;
    if (s->n_tensors)
        qsort(s->tensors, s->n_tensors, sizeof *s->tensors, by_offset);
    for (size_t i = 0; i < s->n_tensors; i++) {
        struct safetensors_tensor *t = &s->tensors[i];
        if (t->offset != end)
            return refuse(&(struct origin){path, t->name}, err,
                          t->offset < end ? "overlaps the tensor before it" : "leaves a hole before it");
        end = t->offset + t->bytes;
        t->offset += data_begin;
    }
    if (end != data_bytes)
        return refuse(&(struct origin){path, NULL}, err, "has bytes after its last tensor");
    return 0;
}

static int read_metadata(const char *path, json_t *metadata, struct err *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return err_set(err, ERR_INPUT, path, "__metadata__ must map strings to strings");
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return err_set(err, ERR_INPUT, path, "__metadata__ must map strings to strings");
    }
    return 0;
}

static int read_root(struct safetensors *s, const char *path, uint64_t data_begin, uint64_t data_bytes, struct err *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(s->root))
        return err_set(err, ERR_INPUT, path, "its header is not a JSON object");
    s->tensors = calloc(json_object_size(s->root) + 1, sizeof *s->tensors);
    if (!s->tensors)
        return err_no_memory(err, path, "its header");
    json_object_foreach(s->root, key, value)
    {
        const struct origin origin = {path, key};
        if (strcmp(key, "__metadata__") == 0) {
            if (read_metadata(path, value, err) != 0)
                return -1;
        } else if (read_tensor(&origin, value, data_bytes, &s->tensors[s->n_tensors], err) != 0) {
            return -1;
        } else {
            s->n_tensors++;
        }
    }
    return place_tensors(s, path, data_begin, data_bytes, err);
}

int safetensors_parse(const void *file, size_t n_bytes, const char *path, struct safetensors **out, struct err *err)
{
    const unsigned char *bytes = file;
    uint64_t header_bytes = 0;
    if (n_bytes < 8)
        return err_set(err, ERR_INPUT, path, "is not a safetensors file: %zu bytes long", n_bytes);
    for (int i = 0; i < 8; i++)
        header_bytes |= (uint64_t)bytes[i] << 8 * i;
    if (header_bytes > SAFETENSORS_HEADER_MAX || header_bytes > n_bytes - 8)
        return err_set(err, ERR_INPUT, path,
                       "is not a safetensors file, or is truncated: header of %llu bytes in a file of %zu",
                       (unsigned long long)header_bytes, n_bytes);
    if (!header_bytes || bytes[8] != '{')
        return err_set(err, ERR_INPUT, path, "is not a safetensors file: its header does not begin with '{'");
    struct safetensors *s = calloc(1, sizeof *s);
    if (!s)
        return err_no_memory(err, path, "its header");
    s->root = bounded_json((const char *)bytes + 8, header_bytes, path, err);
    if (!s->root || read_root(s, path, 8 + header_bytes, n_bytes - 8 - header_bytes, err) != 0) {
        safetensors_free(s);
        return -1;
    }
    *out = s;
    return 0;
}

void safetensors_free(struct safetensors *s)
{
    if (!s)
        return;
    json_decref(s->root);
    free(s->tensors);
    free(s);
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

const struct safetensors_tensor *safetensors_only(const struct safetensors *s)
{
    return s->n_tensors == 1 ? &s->tensors[0] : NULL;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->root, "__metadata__"), key));
}

static json_t *tensor_value(const struct safetensors_tensor *t)
{
    const uint64_t end = t->offset + t->bytes;
    json_t *shape = json_array();
    for (int i = 0; i < t->n_dims; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", t->dtype, "shape", shape, "data_offsets", (json_int_t)t->offset,
                     (json_int_t)end);
}

/* The header as a string; NULL where memory ran out or a text is not UTF-8. */
static char *header_text(const struct safetensors_tensor *tensors, size_t n_tensors,
                         const struct safetensors_text *metadata, size_t n_metadata)
{
    json_t *root = json_object(), *texts = json_object();
    int failed = 0;
    for (size_t i = 0; i < n_metadata; i++)
        failed |= json_object_set_new(texts, metadata[i].key, json_string(metadata[i].value));
    failed |= json_object_set_new(root, "__metadata__", texts);
    for (size_t i = 0; i < n_tensors; i++)
        failed |= json_object_set_new(root, tensors[i].name, tensor_value(&tensors[i]));
    char *text = failed ? NULL : json_memory_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

int safetensors_header(struct safetensors_tensor *tensors, size_t n_tensors, const struct safetensors_text *metadata,
                       size_t n_metadata, unsigned char **out, size_t *n_bytes, struct err *err)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        struct safetensors_tensor *t = &tensors[i];
        t->offset = end;
        if (tensor_bytes(t, &t->bytes) != 0 || __builtin_add_overflow(end, t->bytes, &end) || end > INT64_MAX)
            return err_set(err, ERR_INPUT, t->name, "its size exceeds 2^63 bytes, or its type is unknown");
    }
    char *text = header_text(tensors, n_tensors, metadata, n_metadata);
    if (!text)
        return err_set(err, ERR_SYSTEM, "safetensors header", "out of memory, or a text that is not UTF-8");
    /* Spaces behind the JSON, so that the data begins at a multiple of 8. */
    const size_t text_bytes = strlen(text), header_bytes = (text_bytes + 7) / 8 * 8;
    unsigned char *bytes = header_bytes <= SAFETENSORS_HEADER_MAX ? malloc(8 + header_bytes) : NULL;
    if (bytes) {
        for (int i = 0; i < 8; i++)
            bytes[i] = (unsigned char)((uint64_t)header_bytes >> 8 * i);
        memset(bytes + 8, ' ', header_bytes);
        memcpy(bytes + 8, text, text_bytes); // NOLINT(bugprone-not-null-terminated-result): a file has no NUL
    }
    free(text);
    if (header_bytes > SAFETENSORS_HEADER_MAX)
        return err_set(err, ERR_INPUT, "safetensors header", "of %zu bytes; the format allows %u", header_bytes,
                       SAFETENSORS_HEADER_MAX);
    if (!bytes)
        return err_no_memory(err, "safetensors header", "its bytes");
    for (size_t i = 0; i < n_tensors; i++)
        tensors[i].offset += 8 + header_bytes;
    *out = bytes;
    *n_bytes = 8 + header_bytes;
    return 0;
}
