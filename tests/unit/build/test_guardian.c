/* attnscope's side of the guardian, on a machine without a driver: what it answers, and that one that is gone is known
   to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/child/guardian.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void kill_the_only_child(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_int_equal(kill(pid, SIGKILL), 0);
}

static void what_it_refuses_leaves_it_alive(void **state)
{
    (void)state;
    struct runner_paths paths;
    const struct trace nothing = {.fd = -1};
    struct err err = {0};
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    struct guardian *g = guardian_start(&paths, 0);
    assert_true(guardian_alive(g));
    assert_int_equal(guardian_bring(g, &nothing, &err), -1); /* no driver, or a request that makes no sense */
    assert_true(err.message[0]);
    assert_true(guardian_alive(g));
    kill_the_only_child();
    assert_int_equal(guardian_bring(g, &nothing, &err), -1);
    assert_non_null(strstr(err.message, "the guardian of device memory"));
    assert_false(guardian_alive(g));
    assert_int_equal(guardian_bring(g, &nothing, &err), -1);
    guardian_stop(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_refuses_leaves_it_alive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
