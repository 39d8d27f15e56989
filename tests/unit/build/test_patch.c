/* Patches are applied as patch(1) applies them without fuzz, and what it would pass over is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/build/cache.h"
#include "engine/build/patch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER "diff --git a/other.h b/other.h\n--- a/other.h\n+++ b/other.h\n@@ -1 +1 @@\n-a\n+c\n"
#define HEAD "--- a/k.cu\n+++ b/k.cu\n"
#define TEN "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

static char folder[64];

static int enter(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/patch-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    cache_remove_folder(folder);
    return 0;
}

static int apply(const char *text, const char *diff, char **out, struct err *err)
{
    assert_int_equal(cache_write_text(".", "k.cu", text, NULL), 0);
    assert_int_equal(cache_write_text(".", "x.patch", diff, NULL), 0);
    return patch_apply("k.cu", "x.patch", out, err);
}

static const struct {
    const char *text, *diff, *want;
} fits[] = {
    {"a\nb\nc\n", HEAD "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
    {"a\nb\nc\n", HEAD "@@ -1,3 +1,3 @@ void f(void)\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b\n", "b\n"},
    /* additions and deletions only, at either end, with and without context */
    {"", HEAD "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n"},
    {"a\nb\n", HEAD "@@ -1,2 +0,0 @@\n-a\n-b\n", ""},
    {"b\n", HEAD "@@ -1 +1,2 @@\n+a\n b\n", "a\nb\n"},
    {TEN, HEAD "@@ -10,0 +11 @@\n+11\n", TEN "11\n"},
    {TEN, HEAD "@@ -0,0 +1 @@\n+0\n", "0\n" TEN},
    {"a\nb\nc\n", HEAD "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\nc\n"},
    /* several hunks, the second shifted by the first */
    {TEN, HEAD "@@ -1,2 +1,3 @@\n 1\n+1.5\n 2\n@@ -9,2 +10,1 @@\n-9\n 10\n", "1\n1.5\n2\n3\n4\n5\n6\n7\n8\n10\n"},
    {TEN, HEAD "@@ -2 +2 @@\n-2\n+b\n@@ -3 +3 @@\n-3\n+c\n", "1\nb\nc\n4\n5\n6\n7\n8\n9\n10\n"},
    /* named line wrong: the nearest that fits; the next hunk moves along */
    {"0\n0\n" TEN, HEAD "@@ -2 +2 @@\n-2\n+b\n@@ -4 +4,0 @@\n-4\n", "0\n0\n1\nb\n3\n5\n6\n7\n8\n9\n10\n"},
    {"x\ny\nx\ny\nx\ny\n", HEAD "@@ -4,1 +4,1 @@\n-x\n+z\n", "x\ny\nx\ny\nz\ny\n"},
    {"x\ny\ny\ny\ny\nx\n", HEAD "@@ -3,1 +3,1 @@\n-x\n+z\n", "z\ny\ny\ny\ny\nx\n"},
    {TEN, HEAD "@@ -999999999,1 +999999999,1 @@\n-2\n+b\n", "1\nb\n3\n4\n5\n6\n7\n8\n9\n10\n"},
    {"a\na\na\n", HEAD "@@ -1 +1 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+c\n", "b\nc\na\n"},
    /* no newline at the end: before, after, both */
    {"a\nb", HEAD "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"},
    {"a\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n", "a\nc"},
    {"a\nb", HEAD "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n", "c\nb"},
    {"a\nb", HEAD "@@ -1 +1 @@\n-a\n+c\n", "c\nb"},
    {"a\nb\n", HEAD "@@ -1 +1 @@\n-a\n+c\n\\ No newline at end of file\n", "c\nb\n"},
    /* carriage returns are part of the text */
    {"a\r\nb\r\n", HEAD "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n"},
    {"a\r\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\r\n-b\n+c\n", "a\r\nc\n"},
    {"a\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\n-b\n+b\r\n", "a\nb\r\n"},
    {"a\nb\n", HEAD "@@ -1,0 +2 @@\n+c\r\n", "a\nc\r\nb\n"},
    {"a\r\nb\r\n", "--- a\r\n+++ b\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n"},
    /* what tools put around it; context lines whose only blank an editor has removed; content like headers */
    {"a\n\nb\n", "diff --git a/k.cu b/k.cu\nindex 1..2 100644\n" HEAD "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n-- \n2.39.5\n\n",
     "a\n\nc\n"},
    /* the kernel's file of several */
    {"a\n", OTHER "diff --git a/k.cu b/k.cu\n" HEAD "@@ -1 +1 @@\n-a\n+b\n" OTHER, "b\n"},
    {"a\n", OTHER "--- a/x.h\n+++ b/x.h\n@@ -1 +1 @@\n-a\n+b\n", "a\n"},
    {"-- a\nb\n", HEAD "@@ -1,2 +1,2 @@\n--- a\n+++ a\n b\n\n", "++ a\nb\n"},
};

static void test_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        struct err err = {0};
        char *out = NULL;
        if (apply(fits[i].text, fits[i].diff, &out, &err) != 0)
            fail_msg("case %zu: %s: %s", i, err.where, err.message);
        assert_string_equal(out, fits[i].want);
        free(out);
    }
}

#define ELSE                                                                                                           \
    "is as the text has it, and does not fit: hunks stand in the file's order, the side with fewer lines of "          \
    "context is at the file's beginning or end, and a line without a newline is its last"
#define HEADER "expected a hunk header `@@ -LINE,COUNT +LINE,COUNT @@`, found "

static const struct {
    const char *text, *diff, *said; /* said: behind "x.patch:" */
} misfits[] = {
    /* no unified diff of one file */
    {"a\n", "", "0: expected a unified diff with a hunk, found the end of the patch"},
    {"a\n", "hello\n", "1: expected a unified diff with a hunk, found the end of the patch"},
    {"a\n", "@@ -1 +1 @@\n-a\n+b\n", "1: expected a unified diff with a line `--- FILE`, found `@@ -1 +1 @@`"},
    {"a\n", "*** a\n--- b\n***************\n", "3: expected a line `+++ FILE`, found `***************`"},
    {"a\n", "--- a\n", "1: expected a unified diff with a hunk, found the end of the patch"},
    {"a\n", "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+b\n",
     "1: expected a patch that changes a file, not one that creates it, found `--- /dev/null`"},
    {"a\n", "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
     "2: expected a patch that changes a file, not one that deletes it, found `+++ /dev/null`"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b\n--- a/other.cu\nno second name\n",
     "6: expected no more lines in this hunk, as its header says, found `--- a/other.cu`"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b\ndiff --git a/other.cu b/other.cu\n@@ -1 +1 @@\n-a\n+b\n",
     "7: expected a unified diff with a line `--- FILE`, found `@@ -1 +1 @@`"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b\n--- a/other.cu\n+++ b/other.cu\n@@ -1 +1 @@\n-x\n",
     "9: expected more lines in the last hunk, as its header says, found the end of the patch"},
    {"a\n", OTHER HEAD "@@ -1 +1 @@\n-b\n+b\n", "10: hunk 1 of 1: expected `b`, found `a` in line 1"},
    /* headers */
    {"a\n", HEAD, "2: expected a unified diff with a hunk, found the end of the patch"},
    {"a\n", HEAD "-a\n+b\n", "3: " HEADER "`-a`"},
    {"a\n", HEAD "@@ -1 @@\n-a\n+b\n", "3: " HEADER "`@@ -1 @@`"},
    {"a\n", HEAD "@@ -1 +1\n-a\n+b\n", "3: " HEADER "`@@ -1 +1`"},
    {"a\n", HEAD "@@ -1, +1 @@\n-a\n+b\n", "3: " HEADER "`@@ -1, +1 @@`"},
    {"a\n", HEAD "@@ --1 +1 @@\n-a\n+b\n", "3: " HEADER "`@@ --1 +1 @@`"},
    {"a\n", HEAD "@@@ -1 -1 +1 @@@\n", "3: " HEADER "`@@@ -1 -1 +1 @@@`"},
    {"a\n", HEAD "@@ -1,0 +1,0 @@\n", "3: " HEADER "`@@ -1,0 +1,0 @@`"},
    {"a\n", HEAD "@@ -1,99999999999999999999999 +1 @@\n-a\n+b\n", "3: " HEADER "`@@ -1,99999999999999999999999 +1 @@`"},
    /* counts that lie */
    {"a\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\n-b\n",
     "5: expected more lines in the last hunk, as its header says, found the end of the patch"},
    {"a\nb\n", HEAD "@@ -1,3 +1,3 @@\n a\n-b\n+c\n@@ -9 +9 @@\n-x\n",
     "7: expected more lines in this hunk, as its header says, found `@@ -9 +9 @@`"},
    {"a\nb\n", HEAD "@@ -1 +1,2 @@\n a\n-b\n+c\n",
     "5: expected more lines in this hunk, as its header says, found `-b`"},
    {"a\nb\n", HEAD "@@ -1,1 +1,1 @@\n-a\n+b\n c\n",
     "6: expected no more lines in this hunk, as its header says, found ` c`"},
    {"a\n", HEAD "@@ -1,999999999 +1,999999999 @@\n-a\n+b\n",
     "5: expected more lines in the last hunk, as its header says, found the end of the patch"},
    {"a\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\n*b\n+c\n",
     "5: expected more lines in this hunk, as its header says, found `*b`"},
    {"a\n", HEAD "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n",
     "4: expected more lines in this hunk, as its header says, found `\\ No newline at end of file`"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n\\ No newline at end of file\n+b\n",
     "6: expected more lines in this hunk, as its header says, found `\\ No newline at end of file`"},
    {"a\n", HEAD "@@ -1,18446744073709551615 +1,2 @@\n-a\n",
     "3: expected a hunk header `@@ -LINE,COUNT +LINE,COUNT @@`, found `@@ -1,18446744073709551615 +1,2 @@`"},
    {"a\n", HEAD "@@ -9000000000000 +1 @@\n-a\n+b\n",
     "3: expected a hunk header `@@ -LINE,COUNT +LINE,COUNT @@`, found `@@ -9000000000000 +1 @@`"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b", "5: expected a newline after the last line, found the end of the patch"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n1d\n",
     "8: expected no more lines in this hunk, as its header says, found `1d`"},
    {"a\n", "1d\n", "1: expected a unified diff with a hunk, found the end of the patch"},
    /* hunks that do not fit */
    {TEN, HEAD "@@ -1 +1 @@\n-1\n+a\n@@ -4,3 +4,3 @@\n 4\n-five\n+V\n 6\n@@ -9 +9 @@\n-9\n+IX\n",
     "8: hunk 2 of 3: expected `five`, found `5` in line 5"},
    {TEN, HEAD "@@ -2,2 +2,2 @@\n 2\n-x\n+y\n", "5: hunk 1 of 1: expected `x`, found `3` in line 3"},
    {TEN, HEAD "@@ -9,3 +9,3 @@\n 9\n 10\n-11\n+XI\n", "6: hunk 1 of 1: expected `11`, found the end of the text"},
    {TEN, HEAD "@@ -1,3 +1,3 @@\n 8\n 9\n-ten\n+X\n", "4: hunk 1 of 1: expected `8`, found `1` in line 1"},
    {"", HEAD "@@ -1 +1 @@\n-a\n+b\n", "4: hunk 1 of 1: expected `a`, found the end of the text"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a \n+b\n", "4: hunk 1 of 1: expected `a `, found `a` in line 1"},
    {"a\tb\r\n", HEAD "@@ -1,2 +0,0 @@\n-a b\r\n-c\n", "4: hunk 1 of 1: expected `a b^M`, found `a^Ib^M` in line 1"},
    {TEN, HEAD "@@ -5 +5 @@\n-5\n+V\n@@ -2 +2 @@\n-2\n+II\n", "6: hunk 2 of 2 " ELSE},
    {TEN, HEAD "@@ -5 +5 @@\n-5\n+V\n@@ -5 +5 @@\n-5\n+V\n", "6: hunk 2 of 2 " ELSE},
    {"a", HEAD "@@ -1 +1 @@\n-a\n+b\n", "3: hunk 1 of 1 " ELSE},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "3: hunk 1 of 1 " ELSE},
};

static void test_misfits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof misfits / sizeof misfits[0]; i++) {
        struct err err = {0};
        char want[512], said[4200];
        char *out = (char *)want; /* must not stay */
        if (apply(misfits[i].text, misfits[i].diff, &out, &err) == 0)
            fail_msg("applied: %s", misfits[i].diff);
        snprintf(want, sizeof want, "x.patch:%s", misfits[i].said);
        snprintf(said, sizeof said, "%s: %s", err.where, err.message);
        if (strcmp(said, want) != 0)
            fail_msg("case %zu: %s, not %s", i, said, want);
        assert_int_equal(err.code, ERR_INPUT);
        assert_null(out);
        assert_int_equal(patch_apply("k.cu", "x.patch", &out, NULL), -1);
    }
}

/* Names in the diff lead nowhere, whatever they are; nothing is left beside the two files, after a success and a
 * failure. */
static void test_writes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"/etc/passwd", "../../x", "other.cu", "-o", "k.cu.orig"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int fits_there = 0; fits_there < 2; fits_there++) {
            char diff[256], *out = NULL;
            snprintf(diff, sizeof diff,
                     "diff --git a/%s b/%s\nrename from k.cu\nrename to %s\n--- %s\n+++ %s\n@@ -9 +9 @@\n-%s\n+b\n",
                     names[i], names[i], names[i], names[i], names[i], fits_there ? "2" : "no");
            assert_int_equal(apply(TEN, diff, &out, NULL), fits_there ? 0 : -1);
            free(out);
            struct stat before, after;
            assert_int_equal(stat(".", &before), 0);
            assert_int_equal(patch_apply("k.cu", "x.patch", &out, NULL), fits_there ? 0 : -1);
            assert_int_equal(stat(".", &after), 0);
            assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
            free(out);
        }
    }
    DIR *d = opendir(".");
    assert_non_null(d);
    for (const struct dirent *entry; (entry = readdir(d));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "k.cu") != 0 && strcmp(entry->d_name, "x.patch") != 0)
            fail_msg("%s was left", entry->d_name);
    closedir(d);
    char *text = NULL;
    assert_int_equal(cache_read_text("k.cu", "it", &text, NULL), 0);
    assert_string_equal(text, TEN);
    free(text);
}

static void test_a_kernel_behind_a_link(void **state)
{
    (void)state;
    char *out = NULL;
    assert_int_equal(apply(TEN, HEAD "@@ -2 +2 @@\n-2\n+b\n", &out, NULL), 0);
    free(out);
    assert_int_equal(symlink("k.cu", "-link.cu"), 0);
    assert_int_equal(patch_apply("-link.cu", "x.patch", &out, NULL), 0);
    assert_string_equal(out, "1\nb\n3\n4\n5\n6\n7\n8\n9\n10\n");
    free(out);
    unlink("-link.cu");
}

/* No program is asked. */
static void test_environment(void **state)
{
    (void)state;
    const char *set = getenv("PATH");
    char *path = strdup(set ? set : ""), *out = NULL;
    assert_non_null(path);
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(apply("0\n" TEN, HEAD "@@ -2 +2 @@\n-2\n+b\n", &out, NULL), 0);
    assert_string_equal(out, "0\n1\nb\n3\n4\n5\n6\n7\n8\n9\n10\n");
    free(out);
    setenv("PATH", path, 1);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),           cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_writes_nothing), cmocka_unit_test(test_a_kernel_behind_a_link),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests_name("patch", tests, enter, leave);
}
