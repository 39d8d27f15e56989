/* The safetensors reader against headers written by hand, right and wrong; the writer against the reader. */
#include "engine/base/bounded_json.h"
#include "engine/base/safetensors.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A file of this header and n_data bytes; owned by the caller. */
static unsigned char *make_file(const char *header, size_t n_data, size_t *n_bytes)
{
    const size_t n = strlen(header);
    *n_bytes = 8 + n + n_data;
    unsigned char *file = calloc(1, *n_bytes);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)((uint64_t)n >> 8 * i);
    memcpy(file + 8, header, n); // NOLINT(bugprone-not-null-terminated-result): a file has no NUL
    return file;
}

static struct safetensors *parses(const char *header, size_t n_data)
{
    struct safetensors *s = NULL;
    struct err err = {0};
    size_t n_bytes;
    unsigned char *file = make_file(header, n_data, &n_bytes);
    if (safetensors_parse(file, n_bytes, "t.st", &s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    free(file); /* nothing of it is needed any more */
    return s;
}

static void refuses(const char *header, size_t n_data, const char *words)
{
    struct safetensors *s = NULL;
    struct err err = {0};
    size_t n_bytes;
    unsigned char *file = make_file(header, n_data, &n_bytes);
    assert_int_equal(safetensors_parse(file, n_bytes, "t.st", &s, &err), -1);
    free(file);
    assert_null(s);
    assert_int_equal(err.code, ERR_INPUT);
    assert_string_equal(err.where, "t.st");
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
    for (const char *c = err.message; *c; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7F);
}

#define A(shape, begin, end) "\"a\":{\"dtype\":\"F16\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void right_files_are_read(void **state)
{
    (void)state;
    struct safetensors *s = parses("{}", 0);
    assert_null(safetensors_find(s, "a"));
    assert_null(safetensors_metadata(s, "a"));
    safetensors_free(s);

    s = parses("{\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[12,16]}," A(
                   "[2,3]", "0", "12") ",\"__metadata__\":{\"k\":\"v\\u00e4\"}, "
                                       "\"z\":{\"shape\":[0,7],\"dtype\":\"I64\",\"data_offsets\":[16,16]}}  ",
               16);
    const struct safetensors_tensor *a = safetensors_find(s, "a"), *b = safetensors_find(s, "b");
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->bytes, 12);
    assert_int_equal(a->n_dims, 2);
    assert_int_equal(a->shape[1], 3);
    assert_int_equal(b->offset - a->offset, 12);
    assert_int_equal(b->n_dims, 0);
    assert_string_equal(b->dtype, "F32");
    assert_int_equal(safetensors_find(s, "z")->bytes, 0);
    assert_string_equal(safetensors_metadata(s, "k"), "v\xc3\xa4");
    assert_null(safetensors_metadata(s, "a"));
    safetensors_free(s);
    safetensors_free(NULL);
}

static void wrong_headers_are_refused(void **state)
{
    (void)state;
    refuses("", 0, "begin with '{'");
    refuses(" {}", 0, "begin with '{'");
    refuses("[]", 0, "begin with '{'");
    refuses("{", 0, "not valid JSON");
    refuses("{}x", 0, "not valid JSON");
    refuses("{\"a\xff\":1}", 0, "not valid JSON");
    refuses("{\"a\\u0000\":1}", 0, "not valid JSON");
    refuses("{\"\x1b[31m\":1}", 0, "not valid JSON");
    refuses("{" A("[1]", "0", "2") "," A("[1]", "2", "4") "}", 4, "duplicate");
    refuses("{\"a\":1}", 0, "needs dtype");
    refuses("{\"a\\u001b[31m\":1}", 0, "tensor 'a^[[31m'");
    refuses("{\"a\":{\"dtype\":\"F16\",\"shape\":[1]}}", 2, "needs dtype");
    refuses("{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,2]}}", 2, "needs dtype");
    refuses("{\"a\":{\"dtype\":\"F17\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2, "unknown type");
    refuses("{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2,4]}}", 2, "needs dtype");
    refuses("{" A("[1,1,1,1,1,1,1,1,1]", "0", "2") "}", 2, "8 dimensions");
    refuses("{" A("[-1]", "0", "2") "}", 2, "integers of zero or more");
    refuses("{" A("[1.0]", "0", "2") "}", 2, "integers of zero or more");
    refuses("{" A("[\"1\"]", "0", "2") "}", 2, "integers of zero or more");
    refuses("{" A("[99999999999999999999]", "0", "2") "}", 2, "not valid JSON");
    refuses("{" A("[1]", "2", "0") "}", 2, "inside the file");
    refuses("{" A("[1]", "-2", "0") "}", 2, "inside the file");
    refuses("{" A("[1]", "0", "3") "}", 2, "inside the file");
    refuses("{" A("[2]", "0", "2") "}", 2, "do not match");
    refuses("{" A("[4294967296,4294967296]", "0", "0") "}", 0, "do not match");
    refuses("{" A("[9223372036854775807,2]", "0", "0") "}", 0, "do not match");
    refuses("{" A("[1]", "2", "4") "}", 4, "hole");
    refuses("{" A("[1]", "0", "2") "}", 3, "after its last tensor");
    refuses("{" A("[2]", "0", "4") ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}", 5, "overlaps");
    refuses("{" A("[2]", "0", "4") ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "overlaps");
    refuses("{\"__metadata__\":[]}", 0, "strings to strings");
    refuses("{\"__metadata__\":{\"a\":1}}", 0, "strings to strings");
    refuses("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "duplicate");
}

static void the_length_is_checked(void **state)
{
    (void)state;
    struct safetensors *s = NULL;
    struct err err = {0};
    for (size_t n = 0; n < 8; n++) {
        assert_int_equal(safetensors_parse("\2\0\0\0\0\0\0", n, "t.st", &s, &err), -1);
        assert_non_null(strstr(err.message, "is not a safetensors file"));
    }
    static const char *const lengths[] = {"\3\0\0\0\0\0\0\0{}", "\0\0\0\0\0\0\0\0{}",
                                          "\377\377\377\377\377\377\377\377{}",
                                          "\1\341\365\5\0\0\0\0{}" /* 100,000,001 */};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(safetensors_parse(lengths[i], 10, "t.st", &s, &err), -1);
        assert_int_equal(err.code, ERR_INPUT);
    }
    assert_int_equal(safetensors_parse("\2\0\0\0\0\0\0\0{}", 10, "t.st", &s, &err), 0);
    safetensors_free(s);
}

/* Headers built to exhaust stack or memory. */
static void bombs_are_refused(void **state)
{
    (void)state;
    const size_t n = 8u << 20;
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, '[', n);
    text[n] = '\0';
    memcpy(text, "{\"a\":", 5);
    refuses(text, 0, "more than 1048576 JSON values");
    text[100000] = '\0'; /* few enough values, but deep */
    refuses(text, 0, "not valid JSON");
    for (size_t i = 5; i < n; i++)
        text[i] = i % 2 ? '0' : ',';
    refuses(text, 0, "more than 1048576 JSON values");
    free(text);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct safetensors_tensor tensors[] = {{.name = "x", .dtype = "I64", .n_dims = 2, .shape = {2, 3}},
                                           {.name = "y \"", .dtype = "BF16", .n_dims = 0},
                                           {.name = "z", .dtype = "U8", .n_dims = 1, .shape = {5}}};
    const struct safetensors_text texts[] = {{"one", "1"}, {"quote", "\"\n\xce\xb1"}};
    unsigned char *header = NULL;
    size_t n = 0;
    struct err err = {0};
    assert_int_equal(safetensors_header(tensors, 3, texts, 2, &header, &n, &err), 0);
    assert_int_equal(n % 8, 0);
    unsigned char *file = calloc(1, n + 55);
    assert_non_null(file);
    memcpy(file, header, n);
    free(header);
    struct safetensors *s = NULL;
    if (safetensors_parse(file, n + 55, "t.st", &s, &err) != 0)
        fail_msg("%s", err.message);
    free(file);
    for (int i = 0; i < 3; i++) {
        const struct safetensors_tensor *t = safetensors_find(s, tensors[i].name);
        assert_non_null(t);
        assert_int_equal(t->offset, tensors[i].offset);
        assert_int_equal(t->bytes, tensors[i].bytes);
        assert_int_equal(t->n_dims, tensors[i].n_dims);
        assert_memory_equal(t->shape, tensors[i].shape, sizeof t->shape);
    }
    assert_int_equal(tensors[0].offset, n);
    assert_string_equal(safetensors_metadata(s, "quote"), texts[1].value);
    safetensors_free(s);

    assert_int_equal(safetensors_header(tensors, 3, &(struct safetensors_text){"bad", "\xff"}, 1, &header, &n, &err),
                     -1);
    tensors[0].shape[0] = INT64_MAX;
    assert_int_equal(safetensors_header(tensors, 3, texts, 2, &header, &n, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    tensors[0].shape[0] = 1;
    char *text = malloc(SAFETENSORS_HEADER_MAX + 1);
    assert_non_null(text);
    memset(text, 'x', SAFETENSORS_HEADER_MAX);
    text[SAFETENSORS_HEADER_MAX] = '\0';
    assert_int_equal(safetensors_header(tensors, 3, &(struct safetensors_text){"long", text}, 1, &header, &n, &err),
                     -1);
    assert_non_null(strstr(err.message, "the format allows 100000000"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_files_are_read),    cmocka_unit_test(wrong_headers_are_refused),
        cmocka_unit_test(the_length_is_checked),   cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
