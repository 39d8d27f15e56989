/* The program on a terminal, in a user's folders: what it remembers, what it copies, how it ends. */
#include "tests/unit/lib/screen.h"
#include "tests/unit/lib/temporary.h"
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TRACE "tests/recorded/double-scale.safetensors"

static char program[PATH_MAX], trace[PATH_MAX], folder[TEMPORARY], recent[TEMPORARY + 32];

static void write_file(const char *name, const char *text)
{
    char path[TEMPORARY + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *c = path + strlen(folder) + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            mkdir(path, 0700);
            *c = '/';
        }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static const char *read_recent(void)
{
    static char text[8192];
    FILE *in = fopen(recent, "r");
    text[0] = '\0';
    if (in) {
        text[fread(text, 1, sizeof text - 1, in)] = '\0';
        fclose(in);
    }
    return text;
}

/* A fresh home for each test. */
static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(temporary(folder, "habits")))
        return -1;
    snprintf(recent, sizeof recent, "%s/state/attnscope/recent", folder);
    return 0;
}

/* variables: two of "NAME=value", or NULL. */
static void open_with(struct screen *s, const char *const *arguments, const char *one, const char *two)
{
    char config[TEMPORARY + 32], kept[TEMPORARY + 32];
    char *argv[8] = {program};
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s/config", folder);
    snprintf(kept, sizeof kept, "XDG_STATE_HOME=%s/state", folder);
    const char *const environment[] = {config, kept, "TMUX", "STY", "COLORFGBG", one ? one : "STY", two ? two : "STY",
                                       NULL};
    for (int n = 0; arguments[n]; n++)
        argv[n + 1] = (char *)(uintptr_t)arguments[n];
    screen_start(s, 80, 24, environment, argv);
}

#define OPEN(s, ...) open_with(s, (const char *const[]){__VA_ARGS__, NULL}, NULL, NULL)

static const char *raw_find(const struct screen *s, const char *bytes, size_t n)
{
    return s->n_raw ? memmem(s->raw, s->n_raw, bytes, n) : NULL;
}

static void leave(struct screen *s, const char *keys)
{
    screen_send(s, keys);
    const int status = screen_wait_exit(s);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(screen_is_restored(s));
    screen_close(s);
}

static void the_cursor_is_where_it_was_left(void **state)
{
    (void)state;
    struct screen s;
    char expected[PATH_MAX + 64];
    OPEN(&s, TRACE);
    assert_true(screen_wait(&s, "FAIL"));
    screen_send(&s, "lJ>>");
    assert_true(screen_wait(&s, "S[h0,q0,k1] row 1"));
    screen_send(&s, "\033[<0;16;9M\033[<32;21;9M\033[<0;21;9m");
    assert_true(screen_wait(&s, "─ S head 0/1 ───────┬"));
    leave(&s, "q");
    snprintf(expected, sizeof expected, "open %s\nat s[b0,h0,q0,k1] r1 c2\nsplit 20\n", trace);
    assert_string_equal(read_recent(), expected);
    OPEN(&s, TRACE);
    assert_true(screen_wait(&s, "S[h0,q0,k1] row 1"));
    assert_true(screen_wait(&s, "where you left it; g: the first bad tile"));
    assert_true(screen_wait(&s, "─ S head 0/1 ───────┬"));
    leave(&s, "q");
    /* What is asked for wins; a place that is none is said, and nothing more. */
    OPEN(&s, "--at", "m q0 k0", TRACE);
    assert_true(screen_wait(&s, "[m]"));
    leave(&s, "q");
    OPEN(&s, "--at", "k99", TRACE);
    assert_true(screen_wait(&s, "--at: kv tile 99"));
    leave(&s, "q");
}

static void the_configuration_decides(void **state)
{
    (void)state;
    struct screen s;
    struct stat status;
    write_file("config/attnscope/config.ini", "[screen]\nremember = no\nstart = tile\nmouse = no\n[keys]\nquit = Q\n");
    OPEN(&s, TRACE);
    assert_true(screen_wait(&s, "Q back"));
    assert_true(screen_wait(&s, "─ cursor ─"));
    assert_int_equal(s.mouse, VTERM_PROP_MOUSE_NONE);
    leave(&s, "qQQ");
    assert_int_not_equal(stat(recent, &status), 0);
    write_file("config/attnscope/config.ini", "[screen]\n\nstart = nowhere\n");
    OPEN(&s, TRACE);
    const int ended = screen_wait_exit(&s);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 2);
    static const char said[] = "config.ini:3: start: expected overview|map|"; /* it wraps on the screen */
    assert_non_null(raw_find(&s, said, sizeof said - 1));
    screen_close(&s);
}

/* Marks, pins and stop conditions come back with the file; what is damaged costs one line. */
static void what_was_set_comes_back(void **state)
{
    (void)state;
    struct screen s;
    char text[12000], expected[PATH_MAX + 256];
    int used = snprintf(text, sizeof text,
                        "x\ty\nopen relative\nat s k1\nopen %s\nat nonsense\nmark a s k1 r2 c3\nmark ? s k0\n"
                        "pin m[b0,h0,q1,k0] r1 c0\nstop s off > 8\nstop nonsense\nsplit -1\n",
                        trace);
    memset(text + used, 'z', 5000);
    snprintf(text + used + 5000, sizeof text - (size_t)used - 5000, "\nopen /b\nset shape.q_len=5\nat s k1\n");
    write_file("state/attnscope/recent", text);
    OPEN(&s, TRACE);
    assert_true(screen_wait(&s, "FAIL"));
    assert_true(screen_wait(&s, "line 1 makes no sense and is passed over"));
    screen_send(&s, "'a");
    assert_true(screen_wait(&s, "S[h0,q0,k1] row 2"));
    screen_send(&s, ":stops\r");
    assert_true(screen_wait(&s, "1  s off > 8"));
    screen_send(&s, "g");
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    leave(&s, "q");
    snprintf(expected, sizeof expected,
             "open %s\nat s[b0,h0,q0,k0] r0 c0\nmark a s[b0,h0,q0,k1] r2 c3\npin m[b0,h0,q1,k0] r1 c0\n"
             "stop s off > 8\nopen /b\nset shape.q_len=5\nat s k1\n",
             trace);
    assert_string_equal(read_recent(), expected);
}

static void the_list_is_bounded(void **state)
{
    (void)state;
    struct screen s;
    char text[4096];
    int used = 0, lines = 0;
    for (int i = 0; i < 40; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "open /file%d\n", i);
    write_file("state/attnscope/recent", text);
    OPEN(&s, TRACE);
    assert_true(screen_wait(&s, "FAIL"));
    leave(&s, "q");
    for (const char *c = read_recent(); (c = strstr(c, "open ")); c++)
        lines++;
    assert_int_equal(lines, 20);
    assert_null(strstr(read_recent(), "/file19\n"));
}

static void the_last_files_are_offered(void **state)
{
    (void)state;
    struct screen s;
    char text[PATH_MAX + 64];
    open_with(&s, (const char *const[]){NULL}, NULL, NULL);
    int status = screen_wait_exit(&s);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    assert_non_null(strstr(screen_text(&s), "attnscope: expected SCENARIO|KERNEL.cu|TRACE"));
    screen_close(&s);
    snprintf(text, sizeof text, "open /nowhere/gone.ini\nset fill.seed=7\nopen %s\n", trace);
    write_file("state/attnscope/recent", text);
    open_with(&s, (const char *const[]){NULL}, NULL, NULL);
    assert_true(screen_wait(&s, "▶ /nowhere/gone.ini  fill.seed=7"));
    screen_resize(&s, 5, 2);
    screen_resize(&s, 80, 24);
    screen_send(&s, "jj\r");
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    assert_true(screen_wait(&s, "FAIL"));
    leave(&s, "q");
    open_with(&s, (const char *const[]){NULL}, NULL, NULL);
    assert_true(screen_wait(&s, "▶ tests/recorded/"));
    screen_send(&s, "\033[<0;5;4M"); /* the second line */
    assert_true(screen_wait(&s, "▶ /nowhere/gone.ini  fill.seed=7"));
    screen_send(&s, "\033[<0;5;4M"); /* once more: opens it */
    status = screen_wait_exit(&s);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    assert_true(screen_wait(&s, "/nowhere/gone.ini:"));
    screen_close(&s);
    open_with(&s, (const char *const[]){NULL}, NULL, NULL);
    assert_true(screen_wait(&s, "opened last"));
    leave(&s, "\003");
}

/* Copies with a key and expects these bytes on the terminal. */
static void expect_copied(const char *key, const char *bytes, const char *one, const char *two)
{
    struct screen s;
    open_with(&s, (const char *const[]){"--view", "tile", TRACE, NULL}, one, two);
    assert_true(screen_wait(&s, "FAIL"));
    screen_send(&s, "Y");
    assert_true(screen_wait(&s, "copy:  v value  p place  c command"));
    assert_null(raw_find(&s, "]52;", 4));
    screen_send(&s, key);
    assert_true(screen_wait(&s, "copied: "));
    if (!raw_find(&s, bytes, strlen(bytes)))
        fail_msg("'%s' was not written", bytes + 1);
    leave(&s, "qq");
}

static void copies_go_to_the_clipboard(void **state)
{
    (void)state;
    struct screen s;
    /* s[b0,h0,q0,k0] r0 c0 and 0.0140935406 in base64 */
    expect_copied("p", "\033]52;c;c1tiMCxoMCxxMCxrMF0gcjAgYzA=\a", NULL, NULL);
    expect_copied("v", "\033]52;c;MC4wMTQw", NULL, NULL);
    expect_copied("c", "\033]52;c;YXR0bnNjb3BlIHNob3cgLS12aWV3IHRpbGUg", NULL, NULL); /* attnscope show --view tile */
    expect_copied("p", "\033Ptmux;\033\033]52;c;c1ti", "TMUX=/tmp/tmux-0/default,1,0", "TERM=screen-256color");
    expect_copied("p", "\033P\033]52;c;c1ti", "TERM=screen-256color", NULL);
    OPEN(&s, TRACE);
    assert_true(screen_wait(&s, "FAIL"));
    screen_send(&s, "Yx");
    assert_true(screen_wait(&s, "nothing was copied; copy:  v value"));
    screen_send(&s, "Y\033");
    assert_true(screen_wait_gone(&s, "copy:"));
    assert_null(raw_find(&s, "]52;", 4));
    leave(&s, "q");
}

static void a_crash_says_what_is_left(void **state)
{
    (void)state;
    static const int signals[] = {SIGSEGV, SIGABRT};
    for (size_t i = 0; i < 2; i++) {
        struct screen s;
        OPEN(&s, TRACE);
        assert_true(screen_wait(&s, "FAIL"));
        kill(s.pid, signals[i]);
        const int status = screen_wait_exit(&s);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        assert_true(screen_is_restored(&s));
        assert_int_equal(s.mouse, VTERM_PROP_MOUSE_NONE);
        assert_true(screen_wait(&s, "attnscope crashed; the trace is unchanged"));
        screen_close(&s);
    }
}

static void usual_terminals(void **state)
{
    (void)state;
    static const char *const names[] = {"TERM=xterm", "TERM=screen-256color", "TERM=tmux-256color",
                                        "TERM=linux", "TERM=vt100",           "TERM=xterm-mono"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct screen s;
        open_with(&s, (const char *const[]){TRACE, NULL}, names[i], NULL);
        assert_true(screen_wait(&s, "FAIL"));
        assert_true(screen_wait(&s, "quit  ? help"));
        screen_send(&s, "q");
        assert_int_equal(screen_wait_exit(&s), 0);
        screen_close(&s);
    }
}

int main(void)
{
    const char *given = getenv("ATTNSCOPE");
    if (given && *given) {
        snprintf(program, sizeof program, "%s", given);
    } else {
        char self[PATH_MAX - 32];
        const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n > 0 ? n : 0] = '\0';
        char *slash = strrchr(self, '/');
        snprintf(program, sizeof program, "%.*s/../attnscope", slash ? (int)(slash - self) : 0, self);
    }
    if (!realpath(TRACE, trace))
        return 1;
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_cursor_is_where_it_was_left, set_up),
        cmocka_unit_test_setup(the_configuration_decides, set_up),
        cmocka_unit_test_setup(what_was_set_comes_back, set_up),
        cmocka_unit_test_setup(the_list_is_bounded, set_up),
        cmocka_unit_test_setup(the_last_files_are_offered, set_up),
        cmocka_unit_test_setup(copies_go_to_the_clipboard, set_up),
        cmocka_unit_test_setup(a_crash_says_what_is_left, set_up),
        cmocka_unit_test_setup(usual_terminals, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
