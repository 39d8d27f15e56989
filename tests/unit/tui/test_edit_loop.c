/* Edit, save, see what changed: the program on a terminal, a copied kernel, and an editor that is a script. */
#include "engine/build/runner.h"
#include "tests/unit/lib/screen.h"
#include "tests/unit/lib/temporary.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct runner_paths paths;
static char program[4200]; /* room for realpath() */
static char folder[TEMPORARY];

static void __attribute__((format(printf, 1, 2))) shell(const char *format, ...)
{
    char command[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    assert_int_equal(system(command), 0);
}

/* The kernel's scores, and a scenario; an editor that takes "+LINE FILE", remembers both and runs edit.sh on FILE. */
static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(temporary(folder, "edit-loop")))
        return -1;
    shell("cp '%s/kernels/v2b_scalar.cu' '%s/k.cu'", paths.root, folder);
    shell("cp '%s/kernels/ladder.cuh' '%s'", paths.root, folder);
    shell(
        "printf '[scenario]\\nkernel = k.cu\\nbackend = cpu\\n[shape]\\nheads = 1\\nq_len = 128\\nhead_dim = 64\\n' > "
        "'%s/s.ini'",
        folder);
    shell("printf '#!/bin/sh\\necho \"$@\" > %s/asked\\nset -e\\nshift\\nsh -e %s/edit.sh \"$1\"\\n' > '%s/vi' && "
          "chmod +x '%s/vi'",
          folder, folder, folder, folder);
    return 0;
}

static void start(struct screen *s, int cols, int rows)
{
    static char scenario[TEMPORARY + 16], visual[TEMPORARY + 16];
    static const char *const environment[] = {visual, NULL};
    snprintf(scenario, sizeof scenario, "%s/s.ini", folder);
    snprintf(visual, sizeof visual, "VISUAL=%s/vi", folder);
    char *argv[] = {program, scenario, NULL};
    screen_start(s, cols, rows, environment, argv);
}

static void quit(struct screen *s)
{
    screen_send(s, ":quit\r:quit\r"); /* from any view; the first one may ask */
    assert_int_equal(screen_wait_exit(s), 0);
    assert_true(screen_is_restored(s));
    screen_close(s);
}

/* What the editor was asked, "+143 .../k.cu": the line. */
static int asked_line(void)
{
    char path[TEMPORARY + 16];
    int line = 0;
    snprintf(path, sizeof path, "%s/asked", folder);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_int_equal(fscanf(in, "+%d", &line), 1);
    fclose(in);
    unlink(path);
    return line;
}

static void saved_is_run(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 120, 40);
    assert_true(screen_wait(&s, "watch CLEAN"));
    screen_send(&s, "jl");
    assert_true(screen_wait(&s, "S[h0,q1,k1]"));
    shell("sed -i 's/s\\[i\\] \\*= p.scale;/s[i] *= p.scale * p.scale;/' '%s/k.cu'", folder);
    assert_true(screen_wait(&s, "watch FAIL"));
    assert_true(screen_wait(&s, "local    ok      ok      ok      ✗▼      ok"));
    assert_true(screen_wait(&s, "since run 1: S worse (0 → "));
    assert_non_null(strstr(screen_text(&s), "S[h0,q1,k1]")); /* the cursor stays */
    screen_send(&s, "`");
    assert_true(screen_wait(&s, "watch CLEAN"));
    assert_non_null(strstr(screen_text(&s), "S[h0,q1,k1]"));
    assert_non_null(strstr(screen_text(&s), "run 1"));
    screen_send(&s, "`");
    assert_true(screen_wait(&s, "watch FAIL"));
    screen_send(&s, "R");
    assert_true(screen_wait(&s, "2 of 2 kept"));
    assert_true(screen_wait(&s, "s[i] *= p.scale * p.scale;"));
    screen_send(&s, "ascaled twicx\177e\r");
    assert_true(screen_wait(&s, "run 2 (scaled twice)"));
    screen_send(&s, "D");
    assert_true(screen_wait(&s, "from run 1 to run 2 (scaled twice)"));
    screen_send(&s, "\033Rj\r"); /* the list again, one further, show it */
    assert_true(screen_wait(&s, "watch CLEAN"));
    screen_send(&s, "W");
    assert_true(screen_wait(&s, "not watching"));
    quit(&s);
}

/* A build error is a panel over the run that there is; Enter goes to its line, and what was repaired there is run. */
static void error_is_edited(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24);
    assert_true(screen_wait(&s, "watch CLEAN"));
    shell("sed -i 's/s\\[i\\] \\*= p.scale;/s[i] *= p.scal;/' '%s/k.cu'", folder);
    assert_true(screen_wait(&s, "build error: "));
    assert_true(screen_wait(&s, "Esc: run 1"));
    assert_true(screen_wait(&s, "did you mean"));
    screen_send(&s, "\033");
    assert_true(screen_wait(&s, "E shows all of it; run 1 is shown"));
    screen_send(&s, "lE");
    assert_true(screen_wait(&s, "Esc: run 1"));
    shell("echo 'sed -i s/p.scal\\;/p.scale\\;/ \"$1\"' > '%s/edit.sh'", folder);
    screen_send(&s, "\r");
    assert_true(screen_wait(&s, "since run 1: as before")); /* the panel has gone, and there is a run */
    assert_true(screen_wait(&s, "S[h0,q0,k1]"));
    const int line = asked_line();
    shell("sed -n '%dp' '%s/k.cu' | grep -q 'p.scale;'", line, folder);
    quit(&s);
}

/* e is at the probe's line; without watching, what was saved is run all the same. An editor that fails is said. */
static void probe_is_edited(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24);
    assert_true(screen_wait(&s, "watch CLEAN"));
    screen_send(&s, "W");
    assert_true(screen_wait_gone(&s, "watch CLEAN"));
    shell("sed -i '1i // one line more' '%s/k.cu'", folder); /* the run's lines are not the file's any more */
    shell("echo 'exit 3' > '%s/edit.sh'", folder);
    screen_send(&s, "e");
    assert_true(screen_wait(&s, "vi ended with status 3"));
    shell("sed -n '%dp' '%s/k.cu' | grep -q 'ASC_RECORD(s,'", asked_line(), folder);
    shell("echo 'sed -i s/p.scale\\;/1.0f\\;/ \"$1\"' > '%s/edit.sh'", folder);
    screen_send(&s, "e");
    assert_true(screen_wait(&s, "FAIL"));
    assert_true(screen_wait(&s, "since run 1: S worse"));
    quit(&s);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct err err;
    /* The program lies beside the tests' folder: build/attnscope and build/tests/test_edit_loop. */
    char *slash = realpath(argv[0], program) ? strrchr(program, '/') : NULL;
    if (!slash || runner_find_paths(&paths, &err) != 0)
        return 1;
    memcpy(slash, "/../attnscope", sizeof "/../attnscope");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(saved_is_run, begin),
        cmocka_unit_test_setup(error_is_edited, begin),
        cmocka_unit_test_setup(probe_is_edited, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
