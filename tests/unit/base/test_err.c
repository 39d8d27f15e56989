#include "engine/base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void set_fills_and_returns_minus_one(void **state)
{
    (void)state;
    struct err err;
    memset(&err, 0x55, sizeof err);
    assert_int_equal(err_set(&err, ERR_INPUT, "a.ini:3: heads", "%d: expected 1 to %d", 0, 128), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_string_equal(err.where, "a.ini:3: heads");
    assert_string_equal(err.message, "0: expected 1 to 128");
    assert_int_equal(err_set(&err, ERR_RUN, NULL, "gone"), -1);
    assert_string_equal(err.where, "");
}

static void null_error_is_legal(void **state)
{
    (void)state;
    errno = ENOENT;
    assert_int_equal(err_set(NULL, ERR_INPUT, "x", "%s", "y"), -1);
    assert_int_equal(err_errno(NULL, "x", "%s", "y"), -1);
    assert_int_equal(errno, ENOENT);
}

static void system_error_appends_its_words(void **state)
{
    (void)state;
    struct err err;
    errno = ENOENT;
    assert_int_equal(err_errno(&err, "k.cu", "open %s", "k.cu"), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_string_equal(err.message, "open k.cu: No such file or directory");
    assert_int_equal(errno, ENOENT);
}

static void failing_memory_is_said_in_one_way(void **state)
{
    (void)state;
    struct err err;
    errno = 0;
    assert_int_equal(err_no_memory(&err, "k.cu", "%d rows", 8), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_string_equal(err.where, "k.cu");
    assert_string_equal(err.message, "out of memory for 8 rows");
    assert_int_equal(errno, ENOMEM);
}

/* What does not fit is cut; a guard behind the error stays as it was. */
static void long_text_is_cut(void **state)
{
    (void)state;
    struct {
        struct err err;
        uint64_t guard;
    } box;
    char text[2 * sizeof box.err.message];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    box.guard = UINT64_C(0x0123456789ABCDEF);

    err_set(&box.err, ERR_BUILD, text, "%s", text);
    assert_int_equal(strlen(box.err.where), sizeof box.err.where - 1);
    assert_int_equal(strlen(box.err.message), sizeof box.err.message - 1);
    errno = EIO;
    err_errno(&box.err, text, "%s", text);
    assert_int_equal(strlen(box.err.message), sizeof box.err.message - 1);
    errno = EIO; /* with room for a part of the system's words only */
    err_errno(&box.err, text, "%.*s", (int)sizeof box.err.message - 5, text);
    assert_int_equal(strlen(box.err.message), sizeof box.err.message - 1);
    assert_string_equal(box.err.message + sizeof box.err.message - 5, ": In");
    assert_true(box.guard == UINT64_C(0x0123456789ABCDEF));
}

static void every_code_has_status_and_own_name(void **state)
{
    (void)state;
    static const enum err_code codes[] = {
        ERR_NONE,
#define ERROR(id, exit_status, name) id,
#include "engine/base/errors.def"
#undef ERROR
    };
    const size_t n = sizeof codes / sizeof *codes;
    for (size_t i = 0; i < n; i++) {
        const int status = err_exit_status(codes[i]);
        assert_true(codes[i] == ERR_NONE ? status == 0 : status == 2 || status == 3);
        assert_string_not_equal(err_name(codes[i]), "unknown");
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(err_name(codes[i]), err_name(codes[j]));
    }
    assert_int_equal(err_exit_status(ERR_USAGE), 2);
    assert_int_equal(err_exit_status(ERR_SYSTEM), 3);
    assert_int_equal(err_exit_status((enum err_code)99), 3);
    assert_string_equal(err_name((enum err_code)99), "unknown");
}

static void what_is_kept_comes_back(void **state)
{
    (void)state;
    struct err_kept kept = {0};
    struct err err = {0}, back;
    err_keep(&kept, &err);
    err_recall(&kept, &back);
    assert_int_equal(back.code, ERR_NONE);
    assert_string_equal(back.message, "");
    for (int i = 0; i < 2; i++) {
        err_set(&err, i ? ERR_CANCELLED : ERR_BUILD, i ? "" : "a.cu:7", "%s", i ? "" : "line one\nline two");
        err_keep(&kept, &err);
        err_recall(&kept, &back);
        assert_int_equal(back.code, err.code);
        assert_string_equal(back.where, err.where);
        assert_string_equal(back.message, err.message);
    }
    err_forget(&kept);
    assert_null(kept.words);
    kept.code = ERR_RUN; /* there was no memory for its words */
    err_recall(&kept, &back);
    assert_int_equal(back.code, ERR_RUN);
    assert_string_equal(back.message, "out of memory for the words of an error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_and_returns_minus_one),
        cmocka_unit_test(null_error_is_legal),
        cmocka_unit_test(system_error_appends_its_words),
        cmocka_unit_test(failing_memory_is_said_in_one_way),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(what_is_kept_comes_back),
        cmocka_unit_test(every_code_has_status_and_own_name),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
