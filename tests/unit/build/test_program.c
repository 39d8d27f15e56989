/* The program itself on a terminal: built kernel, real run, keys, and the way out. */
#include "engine/build/runner.h"
#include "tests/unit/lib/screen.h"
#include "tests/unit/lib/temporary.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct runner_paths paths;
static char program[4200]; /* room for realpath() */

static void start(struct screen *s, const char *scenario, int cols, int rows)
{
    static char path[700];
    static const char *const environment[] = {NULL};
    snprintf(path, sizeof path, "%s/%s", paths.root, scenario);
    char *argv[] = {program, path, NULL};
    screen_start(s, cols, rows, environment, argv);
}

static void quit(struct screen *s)
{
    screen_send(s, ":quit\r:quit\r"); /* from any view; the first one may ask */
    assert_int_equal(screen_wait_exit(s), 0);
    assert_true(screen_is_restored(s));
    screen_close(s);
}

static void test_first_screen_answers(void **state)
{
    (void)state;
    struct screen s;
    start(&s, "scenarios/bugs/double-scale.ini", 120, 40);
    assert_true(screen_wait(&s, "FAIL"));
    assert_true(screen_wait(&s, "scores are scaled twice"));
    const char *text = screen_text(&s);
    assert_non_null(strstr(text, "first bad S h0 q0 k0"));
    assert_non_null(strstr(text, "culprit   S alone"));
    assert_non_null(strstr(text, "scores are scaled twice"));
    assert_non_null(strstr(text, "s[i] *= p.scale * p.scale;")); /* the line itself, above its probe */
    assert_non_null(
        strstr(text, "global   ok      ok      ok      ✗       ✗       ✗       ✗       ✗       ✗       ✗       ✗"));
    assert_non_null(
        strstr(text, "local    ok      ok      ok      ✗       ok      ok      ok      ok      ok      ok      ok"));
    quit(&s);
}

static void test_stepping_and_rerun(void **state)
{
    (void)state;
    struct screen s;
    start(&s, "tests/session/nan-row.ini", 120, 40);
    assert_true(screen_wait(&s, "S[h1,q1,k1]")); /* the cursor went to the first bad tile by itself */
    assert_true(screen_wait(&s, "nan 36"));
    assert_true(screen_wait(&s, "FAIL")); /* judged to the end: a run under way would not be started again */
    screen_send(&s, "h");
    assert_true(screen_wait(&s, "S[h1,q1,k0]"));
    screen_send(&s, "n");
    assert_true(screen_wait(&s, "S[h1,q1,k1]"));
    screen_send(&s, "]");
    assert_true(screen_wait(&s, "[m]"));
    screen_resize(&s, 80, 24);
    assert_true(screen_wait(&s, "q quit  ? help"));
    screen_send(&s, "r");
    assert_true(screen_wait(&s, "FAIL"));
    screen_resize(&s, 120, 40);
    assert_true(screen_wait(&s, "run 2"));
    assert_true(screen_wait(&s, "[m]")); /* same cursor */
    screen_send(&s, "S");
    assert_true(screen_wait(&s, "probe of m"));
    assert_true(screen_wait(&s, "ASC_RECORD_ROW(m, kt, row, lane == 0, m);"));
    quit(&s);
}

static void test_endless_kernel_is_stopped_by_a_key(void **state)
{
    (void)state;
    struct screen s;
    start(&s, "tests/session/hang.ini", 80, 24);
    assert_true(screen_wait(&s, "running"));
    screen_send(&s, "x");
    assert_true(screen_wait(&s, "CANCELLED"));
    quit(&s);
}

static void test_endless_kernel_meets_its_limit(void **state)
{
    (void)state;
    struct screen s;
    start(&s, "tests/session/hang.ini", 80, 24);
    assert_true(screen_wait(&s, "HUNG"));
    quit(&s);
}

static void test_saved_trace_opens(void **state)
{
    (void)state;
    struct screen s;
    char command[6000], name[TEMPORARY], trace[TEMPORARY + 12];
    snprintf(trace, sizeof trace, "%s.safetensors", temporary(name, "trace"));
    int fd = mkstemps(trace, 12);
    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "'%s' run '%s/tests/session/nan-row.ini' -o '%s' >/dev/null", program, paths.root,
             trace);
    assert_int_equal(WEXITSTATUS(system(command)), 1);
    char *argv[] = {program, trace, NULL};
    static const char *const environment[] = {NULL};
    screen_start(&s, 80, 24, environment, argv);
    assert_true(screen_wait(&s, "S[h1,q1,k1]"));
    assert_true(screen_wait(&s, "FAIL"));
    screen_send(&s, "r");
    assert_true(screen_wait(&s, "since run 1: as before")); /* its kernel, once more */
    quit(&s);
    unlink(trace);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct err err;
    /* The program lies beside the tests' folder: build/attnscope and build/tests/test_program. */
    char *slash = realpath(argv[0], program) ? strrchr(program, '/') : NULL;
    if (!slash || runner_find_paths(&paths, &err) != 0)
        return 1;
    memcpy(slash, "/../attnscope", sizeof "/../attnscope");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_screen_answers),
        cmocka_unit_test(test_stepping_and_rerun),
        cmocka_unit_test(test_endless_kernel_is_stopped_by_a_key),
        cmocka_unit_test(test_endless_kernel_meets_its_limit),
        cmocka_unit_test(test_saved_trace_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
