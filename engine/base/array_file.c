#include "engine/base/array_file.h"

#include "engine/base/file_map.h"
#include "engine/base/safetensors.h"

#include <inttypes.h>
#include <minizip/unzip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NPY_MAGIC "\x93NUMPY"
#define NPY_HEAD_MAX (1u << 16) /* NumPy's own are of 128 bytes */
#define ARRAY_BYTES_MAX (UINT64_C(1) << 46)

enum container { CONTAINER_NPY, CONTAINER_ZIP, CONTAINER_SAFETENSORS };

/* What is being read: the file as it lies, and the array's own name in it ("": the only one). */
struct source {
    char file[ARRAY_NAME_BYTES], name[ARRAY_NAME_BYTES];
    const unsigned char *bytes; /* mapped */
    size_t n_bytes;
    enum container kind;
};

size_t array_file_bytes(const char *spec)
{
    struct stat status;
    const char *colon = strrchr(spec, ':');
    return !colon || stat(spec, &status) == 0 ? strlen(spec) : (size_t)(colon - spec);
}

const char *array_shape(const struct array *a, char out[160])
{
    size_t at = (size_t)snprintf(out, 160, "[");
    for (int i = 0; i < a->n_dims && at < 150; i++)
        at += (size_t)snprintf(out + at, 160 - at, i ? ", %" PRId64 : "%" PRId64, a->length[i]);
    if (at < 159)
        snprintf(out + at, 160 - at, "]");
    return out;
}

int array_take_pairs(struct array *a, struct err *err)
{
    const int last = a->n_dims - 1;
    if (last < 0 || a->stride[last] != 1 || a->length[last] > INT64_MAX / 2)
        return err_set(err, ERR_INPUT, a->name, "expected two codes in a byte along the last dimension, in C order");
    a->pairs = true;
    a->length[last] *= 2;
    for (int i = 0; i < last; i++)
        a->stride[i] *= 2;
    return 0;
}

static int map_source(struct source *s, struct err *err)
{
    if (file_map_open(s->file, &s->bytes, &s->n_bytes, err) != 0)
        return -1;
    s->kind = s->n_bytes > 6 && memcmp(s->bytes, NPY_MAGIC, 6) == 0  ? CONTAINER_NPY
              : s->n_bytes > 4 && memcmp(s->bytes, "PK\3\4", 4) == 0 ? CONTAINER_ZIP
                                                                     : CONTAINER_SAFETENSORS;
    return 0;
}

/* Lengths and strides of a dense array; lengths are there. What its values take, in *bytes. */
static int take_shape(struct array *a, bool fortran, uint64_t *bytes, struct err *err)
{
    char shape[160];
    uint64_t n = 1;
    for (int i = 0; i < a->n_dims; i++) {
        if (a->length[i] < 1 || n > ARRAY_BYTES_MAX / (uint64_t)a->length[i])
            return err_set(err, ERR_INPUT, a->name,
                           "has shape %s; expected lengths of 1 and more, and less than 64 TiB", array_shape(a, shape));
        n *= (uint64_t)a->length[i];
    }
    int64_t stride = 1;
    for (int i = 0; i < a->n_dims; i++) {
        const int dim = fortran ? i : a->n_dims - 1 - i;
        a->stride[dim] = stride;
        stride *= a->length[dim];
    }
    *bytes = n * a->item;
    return 0;
}

/* Values that stand at an address which their type may not have are copied. */
static int place_values(struct array *a, const unsigned char *at, uint64_t bytes, struct err *err)
{
    a->data = at;
    if ((uintptr_t)at % a->item == 0)
        return 0;
    a->copy = malloc(bytes);
    if (!a->copy)
        return err_no_memory(err, a->name, "its values");
    memcpy(a->copy, at, bytes);
    a->data = a->copy;
    return 0;
}

/* ---- .npy ---- */

/* "<f2", "|u1", "|V2" (what NumPy makes of bf16, which it has not); others stay without a type. */
static int take_descr(struct array *a, struct err *err)
{
    static const struct {
        const char *descr;
        int dtype;
        bool bits;
    } known[] = {{"f2", DTYPE_F16, false}, {"f4", DTYPE_F32, false}, {"f8", DTYPE_F64, false}, {"i4", DTYPE_I32, false},
                 {"i8", DTYPE_I64, false}, {"u1", DTYPE_U8, true},   {"i1", DTYPE_S8, true},   {"b1", DTYPE_U8, false},
                 {"u2", -1, true},         {"u4", -1, true},         {"V1", -1, true},         {"f1", -1, true},
                 {"V2", -1, true}};
    if (a->type[0] == '>')
        return err_set(err, ERR_INPUT, a->name, "is of type %s; expected little-endian values", a->type);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(a->type) == 3 && strcmp(a->type + 1, known[i].descr) == 0) {
            a->dtype = known[i].dtype;
            a->bits = known[i].bits;
            a->item = (size_t)(a->type[2] - '0');
            return 0;
        }
    return err_set(err, ERR_INPUT, a->name, "is of type %s; expected f2, f4, f8, i1, u1, or the bits of another type",
                   a->type);
}

/* What stands behind 'key': in the header, a Python dictionary with three keys. */
static const char *npy_value(const char *head, const char *key)
{
    const char *at = strstr(head, key);
    if (!at)
        return "";
    at += strlen(key);
    at += strspn(at, " ");
    at += *at == ':';
    return at + strspn(at, " ");
}

static int take_npy_shape(struct array *a, const char *at, struct err *err)
{
    at += *at == '(';
    for (a->n_dims = 0;; a->n_dims++) {
        char *end;
        at += strspn(at, " ,");
        if (*at == ')')
            return 0;
        const long long length = strtoll(at, &end, 10);
        if (end == at || a->n_dims == ARRAY_DIMS_MAX)
            return err_set(err, ERR_INPUT, a->name, "its .npy header is damaged, or it has more than %d dimensions",
                           ARRAY_DIMS_MAX);
        a->length[a->n_dims] = length;
        at = end;
    }
}

/* The header, of which n bytes are here; where the values begin. 0: fewer than all of it are. */
static size_t npy_begin(const unsigned char *at, size_t n, size_t *text)
{
    if (n < 12 || memcmp(at, NPY_MAGIC, 6) != 0 || at[6] < 1 || at[6] > 3)
        return 0;
    *text = at[6] == 1 ? 10 : 12;
    const size_t length = at[8] | (size_t)at[9] << 8 | (at[6] == 1 ? 0 : (size_t)at[10] << 16 | (size_t)at[11] << 24);
    return length <= NPY_HEAD_MAX && *text + length <= n ? *text + length : 0;
}

/* All but the values. *begin: where these stand. */
static int take_npy_head(struct array *a, const unsigned char *at, size_t n, size_t *begin, uint64_t *bytes,
                         struct err *err)
{
    size_t text = 0;
    *begin = npy_begin(at, n, &text);
    char *head = *begin ? strndup((const char *)at + text, *begin - text) : NULL;
    if (*begin && !head)
        return err_no_memory(err, a->name, "its header");
    const char *descr = head ? npy_value(head, "'descr'") : "";
    const size_t type = *descr == '\'' ? strcspn(descr + 1, "'") : 0;
    int result;
    if (type == 0 || type >= sizeof a->type) {
        result = err_set(err, ERR_INPUT, a->name, "%s",
                         *descr == '[' ? "holds records; expected numbers" : "its .npy header is damaged");
    } else {
        memcpy(a->type, descr + 1, type);
        const bool fortran = strncmp(npy_value(head, "'fortran_order'"), "True", 4) == 0;
        result = take_npy_shape(a, npy_value(head, "'shape'"), err);
        if (result == 0)
            result = take_descr(a, err);
        if (result == 0)
            result = take_shape(a, fortran, bytes, err);
    }
    free(head);
    return result;
}

static int truncated(const struct array *a, struct err *err)
{
    return err_set(err, ERR_INPUT, a->name, "is truncated: it ends before its last value");
}

static int open_npy(const struct source *s, bool values, struct array *a, struct err *err)
{
    size_t begin;
    uint64_t bytes;
    if (s->name[0])
        return err_set(err, ERR_INPUT, a->name, "is a .npy file, which holds one array without a name");
    if (take_npy_head(a, s->bytes, s->n_bytes, &begin, &bytes, err) != 0)
        return -1;
    if (s->n_bytes - begin < bytes)
        return truncated(a, err);
    return values ? place_values(a, s->bytes + begin, bytes, err) : 0;
}

/* ---- .npz: a zip file of .npy files ---- */

/* Finds the member NAME.npy, or the only one there is. */
static int find_member(const struct source *s, unzFile zip, const struct array *a, struct err *err)
{
    char member[ARRAY_NAME_BYTES + 8];
    unz_global_info64 info;
    snprintf(member, sizeof member, "%s.npy", s->name);
    if (s->name[0])
        return unzLocateFile(zip, member, 1) == UNZ_OK
                   ? 0
                   : err_set(err, ERR_INPUT, a->name, "there is no array `%s` in this .npz file", s->name);
    if (unzGetGlobalInfo64(zip, &info) != UNZ_OK || info.number_entry != 1 || unzGoToFirstFile(zip) != UNZ_OK)
        return err_set(err, ERR_INPUT, a->name, "holds several arrays; expected FILE:ARRAY");
    return 0;
}

static bool is_torch(unzFile zip)
{
    char name[256];
    for (int at = unzGoToFirstFile(zip); at == UNZ_OK; at = unzGoToNextFile(zip))
        if (unzGetCurrentFileInfo64(zip, NULL, name, sizeof name, NULL, 0, NULL, 0) == UNZ_OK &&
            strstr(name, "data.pkl"))
            return true;
    return false;
}

static int refuse_torch(const char *file, struct err *err)
{
    return err_set(err, ERR_INPUT, file,
                   "is a PyTorch file; expected .npy, .npz or .safetensors (attnscope.run() takes torch tensors)");
}

/* Reads n bytes on, or up to the end; how many, or -1. */
static int64_t read_member(unzFile zip, unsigned char *out, uint64_t n)
{
    uint64_t used = 0;
    while (used < n) {
        const unsigned want = n - used < 1u << 30 ? (unsigned)(n - used) : 1u << 30;
        const int got = unzReadCurrentFile(zip, out + used, want);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (uint64_t)got;
    }
    return (int64_t)used;
}

static int read_npz(unzFile zip, bool values, struct array *a, struct err *err)
{
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(zip, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK || unzOpenCurrentFile(zip) != UNZ_OK)
        return err_set(err, ERR_INPUT, a->name, "is packed in a way that cannot be read");
    const uint64_t all = info.uncompressed_size, take = values || all < NPY_HEAD_MAX + 12 ? all : NPY_HEAD_MAX + 12;
    size_t begin;
    uint64_t bytes;
    if (all > ARRAY_BYTES_MAX || !(a->copy = malloc(take ? take : 1)))
        return err_no_memory(err, a->name, "its values");
    const int64_t got = read_member(zip, a->copy, take);
    if (got < 0 || (uint64_t)got != take || (unzCloseCurrentFile(zip) == UNZ_CRCERROR && values))
        return err_set(err, ERR_INPUT, a->name, "is damaged: its packed values cannot be read");
    if (take_npy_head(a, a->copy, take, &begin, &bytes, err) != 0)
        return -1;
    if (all - begin < bytes)
        return truncated(a, err);
    if (!values)
        return 0;
    memmove(a->copy, (unsigned char *)a->copy + begin, bytes); /* headers are multiples of 64 bytes, but need not be */
    a->data = a->copy;
    return 0;
}

static int open_npz(const struct source *s, bool values, struct array *a, struct err *err)
{
    unzFile zip = unzOpen64(s->file);
    if (!zip)
        return err_set(err, ERR_INPUT, a->name, "is a damaged .npz file");
    int result;
    if (is_torch(zip))
        result = refuse_torch(a->name, err);
    else
        result = find_member(s, zip, a, err) != 0 ? -1 : read_npz(zip, values, a, err);
    unzClose(zip);
    return result;
}

/* ---- .safetensors ---- */

static int take_tensor_type(struct array *a, const char *type, struct err *err)
{
    static const struct {
        const char *name;
        int dtype;
        size_t item;
        bool bits;
    } known[] = {{"F16", DTYPE_F16, 2, false},
                 {"BF16", DTYPE_BF16, 2, false},
                 {"F32", DTYPE_F32, 4, false},
                 {"F64", DTYPE_F64, 8, false},
                 {"F8_E4M3", DTYPE_E4M3, 1, false},
                 {"F8_E5M2", DTYPE_E5M2, 1, false},
                 {"F8_E8M0", DTYPE_E8M0, 1, false},
                 {"U8", DTYPE_U8, 1, true},
                 {"I8", DTYPE_S8, 1, true},
                 {"BOOL", DTYPE_U8, 1, false},
                 {"I32", DTYPE_I32, 4, false},
                 {"I64", DTYPE_I64, 8, false},
                 {"U16", -1, 2, true},
                 {"U32", -1, 4, true}};
    snprintf(a->type, sizeof a->type, "%s", type);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(type, known[i].name) == 0) {
            a->dtype = known[i].dtype;
            a->item = known[i].item;
            a->bits = known[i].bits;
            return 0;
        }
    return err_set(err, ERR_INPUT, a->name, "is of type %s; expected F16, BF16, F32, F64, F8_E4M3, F8_E5M2, I8 or U8",
                   type);
}

static int open_safetensors(const struct source *s, bool values, struct array *a, struct err *err)
{
    struct safetensors *file;
    uint64_t bytes = 0;
    struct err inner = {0};
    if (safetensors_parse(s->bytes, s->n_bytes, s->file, &file, &inner) != 0)
        return err_set(err, ERR_INPUT, s->file, "is not a .npy, .npz or .safetensors file: %s", inner.message);
    const struct safetensors_tensor *t = s->name[0] ? safetensors_find(file, s->name) : safetensors_only(file);
    int result;
    if (!t)
        result = s->name[0] ? err_set(err, ERR_INPUT, a->name, "there is no tensor `%s` in this file", s->name)
                            : err_set(err, ERR_INPUT, a->name, "holds several tensors; expected FILE:TENSOR");
    else if ((result = take_tensor_type(a, t->dtype, err)) == 0) {
        a->n_dims = t->n_dims;
        for (int i = 0; i < t->n_dims; i++)
            a->length[i] = t->shape[i] <= INT64_MAX ? (int64_t)t->shape[i] : 0;
        result = take_shape(a, false, &bytes, err);
    }
    if (result == 0 && values)
        result = place_values(a, s->bytes + t->offset, bytes, err);
    safetensors_free(file);
    return result;
}

/* ---- all of them ---- */

int array_open(const char *spec, bool values, struct array *out, struct err *err)
{
    struct source s = {0};
    const size_t n = array_file_bytes(spec);
    *out = (struct array){.dtype = -1};
    if (strlen(spec) >= sizeof out->name)
        return err_set(err, ERR_INPUT, "", "expected a path of less than %zu bytes", sizeof out->name);
    memcpy(out->name, spec, strlen(spec) + 1);
    memcpy(s.file, spec, n);
    if (spec[n])
        memcpy(s.name, spec + n + 1, strlen(spec + n + 1) + 1);
    if (map_source(&s, err) != 0)
        return -1;
    out->mapping = s.bytes;
    const int failed = s.kind == CONTAINER_NPY   ? open_npy(&s, values, out, err)
                       : s.kind == CONTAINER_ZIP ? open_npz(&s, values, out, err)
                                                 : open_safetensors(&s, values, out, err);
    if (failed)
        array_close(out);
    return failed;
}

int array_check(const struct array *a, struct err *err)
{
    return a->mapping ? file_map_check(a->mapping, err) : 0;
}

void array_close(struct array *a)
{
    file_map_close(a->mapping);
    free(a->copy);
    a->mapping = a->copy = NULL;
    a->data = NULL;
}

int array_has(const char *file, const char *name, bool *has, struct err *err)
{
    struct source s = {0};
    struct safetensors *tensors;
    snprintf(s.file, sizeof s.file, "%s", file);
    if (map_source(&s, err) != 0)
        return -1;
    int result = 0;
    *has = false;
    if (s.kind == CONTAINER_ZIP) {
        char member[ARRAY_NAME_BYTES];
        unzFile zip = unzOpen64(file);
        snprintf(member, sizeof member, "%s.npy", name);
        *has = zip && unzLocateFile(zip, member, 1) == UNZ_OK;
        if (zip && is_torch(zip))
            result = refuse_torch(file, err);
        if (zip)
            unzClose(zip);
        else
            result = err_set(err, ERR_INPUT, file, "is a damaged .npz file");
    } else if (s.kind == CONTAINER_SAFETENSORS) {
        struct err inner = {0};
        result = safetensors_parse(s.bytes, s.n_bytes, file, &tensors, &inner);
        if (result == 0) {
            *has = safetensors_find(tensors, name) != NULL;
            safetensors_free(tensors);
        } else {
            err_set(err, ERR_INPUT, file, "is not a .npy, .npz or .safetensors file: %s", inner.message);
        }
    }
    file_map_close(s.bytes);
    return result;
}
