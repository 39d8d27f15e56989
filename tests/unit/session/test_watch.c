/* Saved files, as editors save them: in place, by renaming, by way of a link; the folder may go and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/session/watch.h"
#include "tests/unit/lib/temporary.h"
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[TEMPORARY];

static char *in_folder(char path[512], const char *name)
{
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    char path[512];
    FILE *out = fopen(in_folder(path, name), "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void move(const char *from, const char *to)
{
    char a[512], b[512];
    assert_int_equal(rename(in_folder(a, from), in_folder(b, to)), 0);
}

static int readable(const struct watch *w, int ms)
{
    struct pollfd fd = {.fd = watch_fd(w), .events = POLLIN};
    return poll(&fd, 1, ms) == 1;
}

/* Until a change is told; only a failing test waits long. */
static int told(struct watch *w)
{
    for (int i = 0; i < 100; i++) {
        if (!readable(w, 200))
            continue;
        if (watch_take(w))
            return 1;
    }
    return 0;
}

/* Nothing is told of what was done, however often it is asked. */
static int quiet(struct watch *w)
{
    while (readable(w, 3 * WATCH_QUIET_MS))
        if (watch_take(w))
            return 0;
    return 1;
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(temporary(folder, "watch")) ? 0 : -1;
}

static struct watch *watching(const char *const *names)
{
    char path[512];
    struct watch *w;
    struct err err;
    assert_int_equal(watch_new(-1, &w, &err), 0);
    for (; *names; names++)
        assert_int_equal(watch_add(w, in_folder(path, *names)), 0);
    return w;
}

static void saved_in_place(void **state)
{
    (void)state;
    char path[512];
    put("k.cu", "one");
    struct watch *w = watching((const char *const[]){"k.cu", NULL});
    assert_true(quiet(w));
    put("k.cu", "two, longer");
    assert_true(told(w));
    assert_true(watch_was(w, in_folder(path, "k.cu")));
    assert_true(quiet(w)); /* once */
    put("other.cu", "nobody asked for it");
    assert_true(quiet(w));
    watch_free(w);
}

/* What vim and most others do: the old file is renamed away, or a new one is renamed over it. */
static void saved_by_renaming(void **state)
{
    (void)state;
    put("k.cu", "one");
    struct watch *w = watching((const char *const[]){"k.cu", NULL});
    move("k.cu", "k.cu~");
    put("k.cu", "two");
    assert_true(told(w));
    for (int i = 0; i < 3; i++) { /* and again: it is still followed */
        put(".k.cu.tmp", i & 1 ? "three" : "four, longer");
        move(".k.cu.tmp", "k.cu");
        assert_true(told(w));
    }
    watch_free(w);
}

/* Between the steps of a save the file is not there: that is no change, and no reason to build. */
static void gone_for_a_while(void **state)
{
    (void)state;
    char path[512];
    put("k.cu", "one");
    struct watch *w = watching((const char *const[]){"k.cu", NULL});
    unlink(in_folder(path, "k.cu"));
    assert_true(quiet(w));
    put("k.cu", "two");
    assert_true(told(w));
    watch_free(w);
}

static void new_files_count(void **state)
{
    (void)state;
    char path[512];
    struct watch *w = watching((const char *const[]){"late.h", "k.cu", NULL});
    put("late.h", "there it is");
    assert_true(told(w));
    assert_true(watch_was(w, in_folder(path, "late.h")));
    assert_false(watch_was(w, in_folder(path, "k.cu")));
    watch_free(w);
}

/* Several saves within the pause are one change. */
static void saves_in_a_row_are_one(void **state)
{
    (void)state;
    put("k.cu", "");
    struct watch *w = watching((const char *const[]){"k.cu", NULL});
    char text[32] = "";
    for (int i = 0; i < 8; i++) {
        text[i] = 'x';
        put("k.cu", text);
        watch_take(w);
    }
    assert_true(told(w));
    assert_true(quiet(w));
    watch_free(w);
}

static void behind_a_link(void **state)
{
    (void)state;
    char target[512], link[512];
    assert_int_equal(mkdir(in_folder(target, "real"), 0777), 0);
    put("real/k.cu", "one");
    assert_int_equal(symlink(in_folder(target, "real/k.cu"), in_folder(link, "k.cu")), 0);
    struct watch *w = watching((const char *const[]){"k.cu", NULL});
    put("real/k.cu", "two, longer");
    assert_true(told(w));
    assert_true(watch_was(w, link));
    watch_free(w);
}

/* A folder that is replaced (a checkout) is found again. */
static void folder_replaced(void **state)
{
    (void)state;
    char path[512];
    mkdir(in_folder(path, "kernels"), 0777);
    put("kernels/k.cu", "one");
    struct watch *w = watching((const char *const[]){"kernels/k.cu", NULL});
    move("kernels", "old");
    mkdir(in_folder(path, "kernels"), 0777);
    put("kernels/k.cu", "two, longer");
    assert_true(told(w));
    put("kernels/k.cu", "three");
    assert_true(told(w));
    watch_free(w);
}

static void another_descriptor(void **state)
{
    (void)state;
    struct watch *w;
    struct err err;
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const uint64_t one = 1;
    assert_int_equal(watch_new(fd, &w, &err), 0);
    assert_false(readable(w, 0));
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
    assert_true(readable(w, 0));
    assert_false(watch_take(w));
    watch_free(w);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(saved_in_place, begin),         cmocka_unit_test_setup(saved_by_renaming, begin),
        cmocka_unit_test_setup(gone_for_a_while, begin),       cmocka_unit_test_setup(new_files_count, begin),
        cmocka_unit_test_setup(saves_in_a_row_are_one, begin), cmocka_unit_test_setup(behind_a_link, begin),
        cmocka_unit_test_setup(folder_replaced, begin),        cmocka_unit_test(another_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
