/* Patches: what diff writes applies back to the target, and what does not fit says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/philox.h"
#include "engine/scenario/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "--- a/k.cu\n+++ b/k.cu\n"
#define TEN "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

static const struct {
    const char *text, *diff, *want;
} fits[] = {
    {"a\nb\nc\n", HEAD "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
    {"a\nb\nc\n", HEAD "@@ -1,3 +1,3 @@ void f(void)\n a\n-b\n+B\n c", "a\nB\nc\n"},
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
    /* carriage returns: as part of the text; and where one side was turned into the other as a whole */
    {"a\r\nb\r\n", HEAD "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n"},
    {"a\r\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\r\n-b\n+c\n", "a\r\nc\n"},
    {"a\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\n-b\n+b\r\n", "a\nb\r\n"},
    {"a\nb\n", HEAD "@@ -1,0 +2 @@\n+c\r\n", "a\nc\r\nb\n"},
    {"a\r\nb\r\n", HEAD "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n", "a\r\nc\r\nd\r\n"},
    {"a\nb\n", "--- a\r\n+++ b\r\n@@ -1,2 +1,3 @@\r\n a\r\n-b\r\n+c\r\n+d\r\n", "a\nc\nd\n"},
    {"a\r\nb\r\n", "--- a\r\n+++ b\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n"},
    /* what tools put around it; context lines whose only blank an editor has removed; content like headers */
    {"a\n\nb\n", "diff --git a/k.cu b/k.cu\nindex 1..2 100644\n" HEAD "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n-- \n2.39.5\n\n",
     "a\n\nc\n"},
    {"-- a\nb\n", HEAD "@@ -1,2 +1,2 @@\n--- a\n+++ a\n b\n\n", "++ a\nb\n"},
};

static void test_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        struct err err = {0};
        char *out = NULL;
        if (patch_apply(fits[i].text, fits[i].diff, "x.patch", &out, &err) != 0)
            fail_msg("case %zu: %s: %s", i, err.where, err.message);
        assert_string_equal(out, fits[i].want);
        free(out);
    }
}

#define HEADER "expected a hunk header `@@ -LINE,COUNT +LINE,COUNT @@`, found "

static const struct {
    const char *text, *diff, *said; /* said: behind "x.patch:" */
} misfits[] = {
    /* no unified diff of one file */
    {"a\n", "", "0: expected a unified diff with a line `--- FILE`, found the end of the patch"},
    {"a\n", "hello\n", "1: expected a unified diff with a line `--- FILE`, found the end of the patch"},
    {"a\n", "@@ -1 +1 @@\n-a\n+b\n", "1: expected a unified diff with a line `--- FILE`, found `@@ -1 +1 @@`"},
    {"a\n", "*** a\n--- b\n***************\n", "3: expected a line `+++ FILE`, found `***************`"},
    {"a\n", "--- a\n", "1: expected a line `+++ FILE`, found the end of the patch"},
    {"a\n", "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+b\n",
     "1: expected a patch that changes a file, not one that creates it, found `--- /dev/null`"},
    {"a\n", "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
     "2: expected a patch that changes a file, not one that deletes it, found `+++ /dev/null`"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b\n--- a/other.cu\n+++ b/other.cu\n@@ -1 +1 @@\n-a\n+b\n",
     "6: expected a patch of one file, found `--- a/other.cu`"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n+b\ndiff --git a/other.cu b/other.cu\n",
     "6: expected a patch of one file, found `diff --git a/other.cu b/other.cu`"},
    /* headers */
    {"a\n", HEAD, "2: " HEADER "the end of the patch"},
    {"a\n", HEAD "-a\n+b\n", "3: " HEADER "`-a`"},
    {"a\n", HEAD "@@ -1 @@\n-a\n+b\n", "3: " HEADER "`@@ -1 @@`"},
    {"a\n", HEAD "@@ -1 +1\n-a\n+b\n", "3: " HEADER "`@@ -1 +1`"},
    {"a\n", HEAD "@@ -1, +1 @@\n-a\n+b\n", "3: " HEADER "`@@ -1, +1 @@`"},
    {"a\n", HEAD "@@ --1 +1 @@\n-a\n+b\n", "3: " HEADER "`@@ --1 +1 @@`"},
    {"a\n", HEAD "@@@ -1 -1 +1 @@@\n", "3: " HEADER "`@@@ -1 -1 +1 @@@`"},
    {"a\n", HEAD "@@ -0,1 +1 @@\n-a\n+b\n", "3: " HEADER "`@@ -0,1 +1 @@`"},
    {"a\n", HEAD "@@ -1,0 +1,0 @@\n", "3: " HEADER "`@@ -1,0 +1,0 @@`"},
    {"a\n", HEAD "@@ -1000000000 +1 @@\n-a\n+b\n", "3: " HEADER "`@@ -1000000000 +1 @@`"},
    {"a\n", HEAD "@@ -1,99999999999999999999999 +1 @@\n-a\n+b\n", "3: " HEADER "`@@ -1,99999999999999999999999 +1 @@`"},
    /* counts that lie */
    {"a\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\n-b\n",
     "5: expected 0 more old and 1 more new lines in hunk 1, as its header says, found the end of the patch"},
    {"a\nb\n", HEAD "@@ -1,3 +1,3 @@\n a\n-b\n+c\n@@ -9 +9 @@\n-x\n",
     "7: expected 1 more old and 1 more new lines in hunk 1, as its header says, found `@@ -9 +9 @@`"},
    {"a\nb\n", HEAD "@@ -1 +1,2 @@\n a\n-b\n+c\n",
     "5: expected 0 more old and 1 more new lines in hunk 1, as its header says, found `-b`"},
    {"a\nb\n", HEAD "@@ -1,1 +1,1 @@\n-a\n+b\n c\n",
     "6: expected no more lines in hunk 1, as its header says, found ` c`"},
    {"a\n", HEAD "@@ -1,999999999 +1,999999999 @@\n-a\n+b\n",
     "5: expected 999999998 more old and 999999998 more new lines in hunk 1, as its header says, found the end of the "
     "patch"},
    {"a\nb\n", HEAD "@@ -1,2 +1,2 @@\n a\n*b\n+c\n",
     "5: expected 1 more old and 1 more new lines in hunk 1, as its header says, found `*b`"},
    {"a\n", HEAD "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n",
     "4: expected 1 more old and 1 more new lines in hunk 1, as its header says, found `\\ No newline at end of file`"},
    /* hunks that do not fit */
    {TEN, HEAD "@@ -1 +1 @@\n-1\n+a\n@@ -4,3 +4,3 @@\n 4\n-five\n+V\n 6\n@@ -9 +9 @@\n-9\n+IX\n",
     "8: hunk 2 of 3: expected `five`, found `5` in line 5"},
    {TEN, HEAD "@@ -2,2 +2,2 @@\n 2\n-x\n+y\n", "5: hunk 1 of 1: expected `x`, found `3` in line 3"},
    {TEN, HEAD "@@ -9,3 +9,3 @@\n 9\n 10\n-11\n+XI\n", "6: hunk 1 of 1: expected `11`, found the end of the text"},
    {TEN, HEAD "@@ -1,3 +1,3 @@\n 8\n 9\n-ten\n+X\n", "6: hunk 1 of 1: expected `ten`, found `10` in line 10"},
    {"", HEAD "@@ -1 +1 @@\n-a\n+b\n", "4: hunk 1 of 1: expected `a`, found the end of the text"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a \n+b\n", "4: hunk 1 of 1: expected `a `, found `a` in line 1"},
    {"a\tb\r\n", HEAD "@@ -1,2 +0,0 @@\n-a b\r\n-c\n", "4: hunk 1 of 1: expected `a b^M`, found `a^Ib^M` in line 1"},
    {TEN, HEAD "@@ -5 +5 @@\n-5\n+V\n@@ -2 +2 @@\n-2\n+II\n", "7: hunk 2 of 2: expected `2`, found `6` in line 6"},
    {TEN, HEAD "@@ -5 +5 @@\n-5\n+V\n@@ -5 +5 @@\n-5\n+V\n", "7: hunk 2 of 2: expected `5`, found `6` in line 6"},
    {"a\n", HEAD "@@ -7,0 +8 @@\n+b\n", "3: hunk 1 of 1: expected a text of at least 7 lines, found 1"},
    {"a", HEAD "@@ -1 +1 @@\n-a\n+b\n", "4: hunk 1 of 1: expected `a`, found `a` without a newline in line 1"},
    {"a\n", HEAD "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n",
     "4: hunk 1 of 1: expected `a` without a newline, found `a` in line 1"},
    {"a\nb\n", HEAD "@@ -1 +1 @@\n-a\n+c\n\\ No newline at end of file\n",
     "5: expected nothing behind a line without a newline"},
    {"a\nb", HEAD "@@ -2,0 +3 @@\n+c\n", "4: expected nothing behind a line without a newline"},
    {"a\nb\n", HEAD "@@ -1 +1,2 @@\n-a\n+c\n\\ No newline at end of file\n+d\n",
     "5: expected nothing behind a line without a newline"},
};

static void test_misfits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof misfits / sizeof misfits[0]; i++) {
        struct err err = {0};
        char want[512], said[4200];
        char *out = (char *)want; /* must not stay */
        if (patch_apply(misfits[i].text, misfits[i].diff, "x.patch", &out, &err) == 0)
            fail_msg("applied: %s", misfits[i].diff);
        snprintf(want, sizeof want, "x.patch:%s", misfits[i].said);
        snprintf(said, sizeof said, "%s: %s", err.where, err.message);
        assert_string_equal(said, want);
        assert_int_equal(err.code, ERR_INPUT);
        assert_null(out);
        assert_int_equal(patch_apply(misfits[i].text, misfits[i].diff, "x.patch", &out, NULL), -1);
    }
}

/* A stream of random numbers that is the same in every run. */
static uint32_t next_random(uint32_t below)
{
    static uint32_t calls;
    const uint32_t counter[4] = {calls++, 0, 0, 0}, key[2] = {20, 26};
    uint32_t out[4];
    philox4x32(counter, key, out);
    return out[0] % below;
}

/* Few different lines, so that hunks match in wrong places too; the rest of the alphabet is what patches choke on. */
static void random_line(char *out, size_t n_bytes)
{
    static const char *const lines[] = {"",      "a",     "b",           "}",     " a",  "-a", "+b",
                                        "--- a", "+++ b", "@@ -1 +1 @@", "\\ No", "a\r", "\r"};
    snprintf(out, n_bytes, "%s", lines[next_random(sizeof lines / sizeof lines[0])]);
}

#define LINES_MAX 64

struct text {
    char line[LINES_MAX][16];
    int n, ends; /* ends: the last line has its newline */
};

static char *join(const struct text *t)
{
    char *joined = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&joined, &n_bytes);
    assert_non_null(out);
    for (int i = 0; i < t->n; i++)
        fprintf(out, "%s%s", t->line[i], i + 1 < t->n || t->ends ? "\n" : "");
    assert_int_equal(fclose(out), 0);
    return joined;
}

static void random_text(struct text *t)
{
    t->n = (int)next_random(40);
    for (int i = 0; i < t->n; i++)
        random_line(t->line[i], sizeof t->line[i]);
    t->ends = next_random(4) != 0;
    if (t->n > 0 && t->line[t->n - 1][0] == '\0')
        t->ends = 1; /* an empty last line without a newline is no line */
}

static void random_edits(struct text *t)
{
    for (uint32_t edits = next_random(6); edits > 0; edits--) {
        const int at = (int)next_random((uint32_t)t->n + 1), what = (int)next_random(3);
        if (what == 0 && t->n < LINES_MAX) {
            memmove(t->line[at + 1], t->line[at], (size_t)(t->n - at) * sizeof t->line[0]);
            random_line(t->line[at], sizeof t->line[at]);
            t->n++;
        } else if (what == 1 && at < t->n) {
            memmove(t->line[at], t->line[at + 1], (size_t)(t->n - at - 1) * sizeof t->line[0]);
            t->n--;
        } else if (at < t->n) {
            random_line(t->line[at], sizeof t->line[at]);
        }
    }
    t->ends = next_random(4) != 0 || (t->n > 0 && t->line[t->n - 1][0] == '\0');
}

static void diff_line(FILE *out, const struct text *t, int i, char kind)
{
    fprintf(out, "%c%s\n", kind, t->line[i]);
    if (i + 1 == t->n && !t->ends)
        fputs("\\ No newline at end of file\n", out);
}

static int same_line(const struct text *x, int i, const struct text *y, int j)
{
    const int x_ends = i + 1 < x->n || x->ends, y_ends = j + 1 < y->n || y->ends;
    return strcmp(x->line[i], y->line[j]) == 0 && x_ends == y_ends;
}

/* A unified diff with `context` lines around each change, along a longest common subsequence. The edits as a string of
   one kind per line (' ', '-', '+'), then cut into hunks wherever more than 2 * context equal lines stand together. */
static char *make_diff(const struct text *x, const struct text *y, int context)
{
    static int common[LINES_MAX + 1][LINES_MAX + 1];
    char kinds[2 * LINES_MAX + 1];
    int n = 0, i = 0, j = 0;
    for (int a = x->n; a >= 0; a--) {
        for (int b = y->n; b >= 0; b--) {
            if (a == x->n || b == y->n)
                common[a][b] = 0;
            else if (same_line(x, a, y, b))
                common[a][b] = common[a + 1][b + 1] + 1;
            else
                common[a][b] = common[a + 1][b] > common[a][b + 1] ? common[a + 1][b] : common[a][b + 1];
        }
    }
    while (i < x->n || j < y->n) {
        const int both = i < x->n && j < y->n;
        if (both && same_line(x, i, y, j) && common[i][j] == common[i + 1][j + 1] + 1)
            kinds[n++] = ' ', i++, j++;
        else if (i < x->n && (j == y->n || common[i + 1][j] >= common[i][j + 1]))
            kinds[n++] = '-', i++;
        else
            kinds[n++] = '+', j++;
    }
    char *diff = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&diff, &n_bytes);
    assert_non_null(out);
    fputs(HEAD, out);
    i = j = 0;
    for (int at = 0; at < n;) {
        int from = at;
        while (from < n && kinds[from] == ' ')
            from++;
        if (from == n)
            break;
        int to = from, last = from; /* to: behind the hunk's last change */
        while (last < n && last - to <= 2 * context) {
            to = kinds[last] != ' ' ? last + 1 : to;
            last++;
        }
        const int lead = from - at < context ? from - at : context;
        i += from - at - lead;
        j += from - at - lead;
        int end = to, old_count = 0, new_count = 0;
        while (end < n && end - to < context && kinds[end] == ' ')
            end++;
        for (int k = from - lead; k < end; k++) {
            old_count += kinds[k] != '+';
            new_count += kinds[k] != '-';
        }
        fprintf(out, "@@ -%d,%d +%d,%d @@\n", i + (old_count > 0), old_count, j + (new_count > 0), new_count);
        for (int k = from - lead; k < end; k++) {
            diff_line(out, kinds[k] == '+' ? y : x, kinds[k] == '+' ? j : i, kinds[k]);
            i += kinds[k] != '+';
            j += kinds[k] != '-';
        }
        at = end;
    }
    assert_int_equal(fclose(out), 0);
    return diff;
}

static void test_random_edits(void **state)
{
    (void)state;
    int applied = 0;
    for (int round = 0; round < 4000; round++) {
        struct text x, y;
        random_text(&x);
        y = x;
        random_edits(&y);
        char *before = join(&x), *after = join(&y), *out = NULL;
        char *diff = make_diff(&x, &y, (int)next_random(4));
        struct err err = {0};
        if (strcmp(before, after) != 0) {
            if (patch_apply(before, diff, "random", &out, &err) != 0)
                fail_msg("%s: %s\n%s", err.where, err.message, diff);
            assert_string_equal(out, after);
            applied++;
        }
        free(before);
        free(after);
        free(diff);
        free(out);
    }
    assert_true(applied > 2000);
}

/* A hunk whose lines stand once in the text is found however far the text has moved. */
static void test_moved_text(void **state)
{
    (void)state;
    static const char moved[] = "new\n";
    for (size_t lines = 0; lines < 300; lines++) {
        const size_t n = lines * (sizeof moved - 1);
        char *out = NULL, text[1400], want[1400];
        for (size_t i = 0; i < n; i++)
            text[i] = want[i] = moved[i % (sizeof moved - 1)];
        snprintf(text + n, sizeof text - n, "%s", TEN);
        snprintf(want + n, sizeof want - n, "1\n2\n3\nIV\n5\n6\n7\n8\n9\n10\n");
        assert_int_equal(patch_apply(text, HEAD "@@ -3,3 +3,3 @@\n 3\n-4\n+IV\n 5\n", "x", &out, NULL), 0);
        assert_string_equal(out, want);
        free(out);
    }
}

/* Any damage to a patch is refused or applied, never worse (run under the sanitizers). */
static void test_damaged(void **state)
{
    (void)state;
    static const char good[] =
        HEAD "@@ -1,2 +1,3 @@\n 1\n+1.5\n 2\n@@ -9,2 +10,2 @@\n-9\n+IX\n 10\n\\ No newline at end of file\n";
    int refused = 0;
    for (int round = 0; round < 20000; round++) {
        char diff[sizeof good];
        char *out = NULL;
        memcpy(diff, good, sizeof good);
        for (uint32_t k = next_random(4); k > 0; k--) {
            static const char bytes[] = " -+@\\\n\r,019a";
            diff[next_random(sizeof good - 1)] = bytes[next_random(sizeof bytes)]; /* its NUL cuts the patch short */
        }
        refused += patch_apply("1\n2\n3\n4\n5\n6\n7\n8\n9\n10", diff, "damaged", &out, NULL) != 0;
        free(out);
    }
    assert_true(refused > 5000 && refused < 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),       cmocka_unit_test(test_misfits), cmocka_unit_test(test_random_edits),
        cmocka_unit_test(test_moved_text), cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests_name("patch", tests, NULL, NULL);
}
