/* The event loop on a real terminal: this program starts itself ("child MODE") in a pseudo-terminal. */
#include "tests/unit/lib/hand_made.h"
#include "tests/unit/lib/screen.h"
#include "tests/unit/lib/temporary.h"
#include "tui/loop.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

static char self[4096]; /* PATH_MAX, as realpath() wants */

/* ---- the program under test ---- */

/* A run by hand; "event": with one. What builds and runs a kernel: "real", and "busy", which hangs. */
static struct session *opened(const char *mode)
{
    const int busy = strcmp(mode, "busy") == 0;
    struct session *s;
    struct err err = {0};
    if (busy || strcmp(mode, "real") == 0) {
        if (session_open(busy ? "tests/session/hang.ini" : "tests/session/small.ini", &s, &err) != 0 ||
            session_set(s, "scenario.limit", "600", &err) != 0 || session_start(s) != 0) {
            fprintf(stderr, "%s\n", err.message);
            exit(1);
        }
        return s;
    }
    struct trace *t = hand_made_trace(&hand_made_usual);
    if (strcmp(mode, "event") == 0)
        hand_made_event(t, EVENT_BARRIER, "threads of one block are at different __syncthreads",
                        "kernels/v2b_scalar.cu", 9);
    s = hand_made_session(&hand_made_usual);
    hand_made_judge(s, t);
    return s;
}

static int child(const char *mode)
{
    struct session *s = opened(mode);
    struct err err = {0};
    struct theme theme = {.background = strcmp(mode, "light") == 0 ? BACKGROUND_LIGHT : BACKGROUND_UNKNOWN};
    const struct tui_options options = {
        .ascii = strcmp(mode, "ascii") == 0, .mouse = strcmp(mode, "keys") != 0, .theme = &theme};
    const int failed = tui_run(s, &options, &err) != 0;
    if (failed)
        fprintf(stderr, "%s: %s\n", err_name(err.code), err.message);
    session_free(s);
    return failed ? err_exit_status(err.code) : 0;
}

/* What a shell does: the job in a group of its own, in the foreground; when it stops, back to the shell. */
static int shell(void)
{
    int status;
    signal(SIGTTOU, SIG_IGN);
    const pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpid());
        signal(SIGTTOU, SIG_DFL);
        _exit(child("plain"));
    }
    setpgid(job, job);
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        char line[16];
        tcsetpgrp(STDIN_FILENO, getpid());
        printf("stopped\n");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) /* "fg" */
            return 1;
        tcsetpgrp(STDIN_FILENO, job);
        kill(-job, SIGCONT);
    }
    tcsetpgrp(STDIN_FILENO, getpid());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* ---- the tests ---- */

static void start(struct screen *s, int cols, int rows, const char *mode, const char *variable)
{
    char *argv[] = {self, "child", (char *)(uintptr_t)mode, NULL};
    const char *const environment[] = {variable, NULL};
    screen_start(s, cols, rows, environment, argv);
}

static void quit(struct screen *s)
{
    screen_send(s, ":quit\r:quit\r"); /* from any view; the first one may ask */
    const int status = screen_wait_exit(s);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(screen_is_restored(s));
    screen_close(s);
}

/* The terminal shows, cell by cell, what the headless view is. */
static void first_screen(void **state)
{
    (void)state;
    struct screen s;
    char kept[16384];
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "? help"));
    FILE *in = fopen("tests/screens/overview-80x24.txt", "r");
    assert_non_null(in);
    kept[fread(kept, 1, sizeof kept - 1, in)] = '\0';
    fclose(in);
    assert_string_equal(screen_text(&s), kept);
    assert_true(s.altscreen);
    assert_false(screen_is_restored(&s));
    quit(&s);
}

static void keys_step_and_zoom(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "l");
    assert_true(screen_wait(&s, "S[h0,q0,k1]"));
    screen_send(&s, "\033OC"); /* Right, as a terminal in keypad mode sends it */
    assert_true(screen_wait(&s, "S[h0,q0,k2]"));
    screen_send(&s, "jjk");
    assert_true(screen_wait(&s, "S[h0,q1,k2]"));
    screen_send(&s, "HH{");
    assert_true(screen_wait(&s, "S[h1,q1,k2]"));
    screen_send(&s, "]");
    assert_true(screen_wait(&s, "[m]"));
    screen_send(&s, "[");
    assert_true(screen_wait(&s, "[S]"));
    screen_send(&s, "J>>");
    assert_true(screen_wait(&s, "▶  2"));
    screen_send(&s, "\r");
    assert_true(screen_wait(&s, "h j k l element"));
    assert_true(screen_wait(&s, "─ cursor ─"));
    screen_send(&s, "vvl");
    assert_true(screen_wait(&s, "difference ─"));
    assert_true(screen_wait(&s, "r1 c3"));
    screen_send(&s, "t");
    assert_true(screen_wait(&s, "difference, global"));
    screen_send(&s, "\r");
    assert_true(screen_wait(&s, "probe of S"));
    screen_send(&s, "\033");
    assert_true(screen_wait(&s, "─ cursor ─"));
    screen_send(&s, "?");
    assert_true(screen_wait(&s, "line 1 of"));
    screen_send(&s, "j");
    assert_true(screen_wait(&s, "line 2 of"));
    screen_send(&s, " kk?M");
    assert_true(screen_wait(&s, "8 heads"));
    screen_send(&s, "O");
    assert_true(screen_wait(&s, "[S]"));
    quit(&s);
}

/* Digits before a key repeat it; Esc drops them. */
static void counts(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "5l3j");
    assert_true(screen_wait(&s, "S[h0,q3,k5]"));
    screen_send(&s, "2h");
    assert_true(screen_wait(&s, "S[h0,q3,k3]"));
    screen_send(&s, "10");
    assert_true(screen_wait(&s, " 10 ─"));
    screen_send(&s, "\033");
    assert_true(screen_wait_gone(&s, " 10 ─"));
    screen_send(&s, "l");
    assert_true(screen_wait(&s, "S[h0,q3,k4]"));
    screen_send(&s, "T11l20j");
    assert_true(screen_wait(&s, "r20 c11"));
    screen_send(&s, "?10j");
    assert_true(screen_wait(&s, "line 11 of"));
    quit(&s);
}

static void marks_and_jumps(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "ma3l2jmb:go u h3 q1 k4 r7 c9\r");
    assert_true(screen_wait(&s, "U[h3,q1,k4]"));
    screen_send(&s, "'a");
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "\017"); /* C-o */
    assert_true(screen_wait(&s, "U[h3,q1,k4]"));
    screen_send(&s, "\017");
    assert_true(screen_wait(&s, "S[h0,q2,k3]"));
    screen_send(&s, "\017");
    assert_true(screen_wait(&s, "no jump"));
    screen_send(&s, "\t");
    assert_true(screen_wait(&s, "U[h3,q1,k4]"));
    screen_send(&s, "'z");
    assert_true(screen_wait(&s, "no mark 'z'"));
    screen_send(&s, "m1");
    assert_true(screen_wait(&s, "a mark is a letter"));
    screen_send(&s, ":marks\r");
    assert_true(screen_wait(&s, "b  s[b0,h0,q2,k3] r0 c0"));
    screen_send(&s, "''");
    assert_true(screen_wait_gone(&s, "b  s[b0,h0,q2,k3] r0 c0"));
    quit(&s);
}

static void commands_are_typed(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "commands", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, ":vi\tso\t\r"); /* view source, by completion */
    assert_true(screen_wait_gone(&s, ":view"));
    assert_true(screen_wait(&s, "─ kernels/v2b_scalar.cu ─"));
    screen_send(&s, ":overview\r:3 kv-next\r");
    assert_true(screen_wait(&s, "S[h0,q0,k3]"));
    screen_send(&s, ":nxt-bda\r");
    assert_true(screen_wait(&s, "no command 'nxt-bda': the nearest is 'next-bad'"));
    screen_send(&s, ":foo\r");
    assert_true(screen_wait(&s, "no command 'foo': Tab lists what there is"));
    screen_send(&s, ":p\r");
    assert_true(screen_wait(&s, "'p' is short for more than one: Tab lists them"));
    screen_send(&s, ":go h99\r");
    assert_true(screen_wait(&s, "head 99 is out of range: this run has 8"));
    screen_send(&s, ":st\t");
    assert_true(screen_wait(&s, "Tab takes the next of 5"));
    screen_send(&s, "\003"); /* C-c leaves the line, not the program */
    assert_true(screen_wait(&s, "n/N bad"));
    screen_send(&s, ":stop s falls\r");
    assert_true(screen_wait(&s, "'falls' applies to m, l, alpha or u"));
    screen_send(&s, ":stop m falls\r");
    assert_true(screen_wait(&s, "m falls: not found after this place"));
    screen_send(&s, ":stops\r");
    assert_true(screen_wait(&s, "1  m falls"));
    screen_send(&s, ":set shape.causal=sideways\r");
    assert_true(screen_wait(&s, "top-left or bottom-right"));
    screen_send(&s, ":set shape.causal=top-left\r");
    assert_true(screen_wait(&s, "shape.causal=top-left: r runs it"));
    screen_send(&s, ":set shape.kv_heads=3\r");
    assert_true(screen_wait(&s, "shape.kv_heads=3 is set, but "));
    screen_send(&s, ":save tests/ses\t");
    assert_true(screen_wait(&s, ":save tests/session/"));
    screen_send(&s, "\033:save README.md\r");
    assert_true(screen_wait(&s, "README.md already exists"));
    screen_send(&s, ":help fp\r");
    assert_true(screen_wait(&s, "'fp' is not explained"));
    screen_send(&s, ":help unst\r");
    assert_true(screen_wait(&s, ":unstop N or all"));
    screen_send(&s, ":\033OA"); /* Up: the last line */
    assert_true(screen_wait(&s, ":help unst"));
    screen_send(&s, "\025q\r"); /* C-u; q is the only command that begins so */
    assert_int_equal(WEXITSTATUS(screen_wait_exit(&s)), 0);
    assert_true(screen_is_restored(&s));
    screen_close(&s);
}

/* In a view of lines n and N go through the matches, until Esc; elsewhere they stay with the bad tiles. */
static void search_in_text(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "S/QV\r");
    assert_true(screen_wait(&s, "'QV' not found")); /* a capital is one */
    screen_send(&s, "/qv\r");
    assert_true(screen_wait(&s, "'qv' on line 8:"));
    screen_send(&s, "n");
    assert_true(screen_wait(&s, "'qv' on line 9:"));
    screen_send(&s, "2n");
    assert_true(screen_wait(&s, "'qv' on line 8:")); /* and round */
    screen_send(&s, "N");
    assert_true(screen_wait(&s, "'qv' on line 10:"));
    screen_send(&s, "\033");
    assert_true(screen_wait(&s, "search ended"));
    screen_send(&s, "n"); /* the next bad tile */
    assert_true(screen_wait_gone(&s, "search ended"));
    screen_send(&s, "O");
    assert_true(screen_wait(&s, "S[h0,q0,k1]"));
    /* From the overview: findings and log first. */
    screen_send(&s, "/scaled twice\r");
    assert_true(screen_wait(&s, "─ log ─"));
    screen_send(&s, "O/__half2float\r");
    assert_true(screen_wait(&s, "─ kernels/v2b_scalar.cu ─"));
    quit(&s);
}

static void pins_are_kept(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "P:pin o h7 r3 c5\r");
    assert_true(screen_wait(&s, "◆ O h7 q0 r3 c5"));
    screen_send(&s, "l");
    assert_true(screen_wait(&s, "◆ S h0 q0 k1 r0 c0  ✗ got "));
    screen_send(&s, "P"); /* the same element at another kv step: it is unpinned */
    assert_true(screen_wait_gone(&s, "◆ S h0 q0"));
    screen_resize(&s, 120, 40);
    assert_true(screen_wait(&s, "cursor r0,c0"));
    assert_true(screen_wait(&s, "◆ O h7 q0 r3 c5"));
    screen_send(&s, ":unpin 2\r");
    assert_true(screen_wait(&s, "from 1 to 1"));
    screen_send(&s, ":unpin\r");
    assert_true(screen_wait_gone(&s, "◆ O h7"));
    quit(&s);
}

static void resize_and_recover(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "? help"));
    screen_resize(&s, 60, 10);
    assert_true(screen_wait(&s, "terminal too small: need 60x16, have 60x10"));
    screen_resize(&s, 1, 1);
    assert_true(screen_wait_gone(&s, "te"));
    screen_resize(&s, 120, 40);
    assert_true(screen_wait(&s, "FINDING"));
    assert_true(screen_wait(&s, "? help"));
    screen_resize(&s, 200, 60);
    assert_true(screen_wait_gone(&s, "heads 0✗1✗2✗3✗4✗5✗6✗7✗  │r9"));
    assert_true(screen_wait(&s, "r23"));
    quit(&s);
}

static int color_of_first_bad(struct screen *s)
{
    VTermScreenCell cell;
    assert_true(screen_wait(s, "? help"));
    vterm_screen_get_cell(s->cells, (VTermPos){2, 26}, &cell); /* the mark below S */
    assert_int_equal(cell.chars[0], 0x2717);
    return VTERM_COLOR_IS_INDEXED(&cell.fg) ? cell.fg.indexed.idx % 8 : -1;
}

/* The cursor goes to where a run goes wrong that was right before, and stays where the user put it. */
static void rerun_says_where_it_went_wrong(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 120, 40, "real", NULL);
    assert_true(screen_wait(&s, "within its bound"));
    screen_send(&s, ":set scenario.patch=tests/session/alpha-forgotten.patch\r");
    assert_true(screen_wait(&s, ": r runs it"));
    screen_send(&s, "r");
    assert_true(screen_wait(&s, "now first bad U h0 q0 k1"));
    assert_true(screen_wait(&s, "U[h0,q0,k1]"));
    screen_send(&s, "[[[[[");
    assert_true(screen_wait_gone(&s, "now first bad"));
    screen_send(&s, ":set scenario.patch=tests/session/next-kv-head.patch\r");
    assert_true(screen_wait(&s, ": r runs it"));
    screen_send(&s, "r");
    assert_true(screen_wait(&s, ": g goes there"));
    screen_send(&s, "i");
    assert_true(screen_wait(&s, "isolated S: K, V still wrong"));
    screen_send(&s, "``");
    assert_true(screen_wait(&s, "run 2 of 3"));
    quit(&s);
}

/* c runs it again with the checks on, and off again. */
static void checks_on_and_off(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "real", NULL);
    assert_true(screen_wait(&s, "within its bound"));
    assert_null(strstr(screen_text(&s), "checked"));
    screen_send(&s, "c");
    assert_true(screen_wait(&s, "cpu, checked"));
    assert_true(screen_wait(&s, "since run 1: as before")); /* it is over */
    screen_send(&s, "c");
    assert_true(screen_wait_gone(&s, "cpu, checked"));
    quit(&s);
}

/* The source stands at what happened until the cursor moves. */
static void source_stands_at_the_event(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "event", NULL);
    assert_true(screen_wait(&s, "barrier, line 9"));
    assert_true(screen_wait(&s, "◆  9"));
    screen_send(&s, "S");
    assert_true(screen_wait(&s, "─ kernels/v2b_scalar.cu ─"));
    assert_true(screen_wait(&s, "barrier, line 9"));
    screen_send(&s, "l");
    assert_true(screen_wait(&s, "probe of S"));
    assert_true(screen_wait(&s, "◆ 13"));
    quit(&s);
}

static void color_and_none(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_int_equal(color_of_first_bad(&s), 1);
    quit(&s);
    start(&s, 80, 24, "plain", "NO_COLOR=1");
    assert_int_equal(color_of_first_bad(&s), -1);
    quit(&s);
}

static void ascii_where_the_locale_is(void **state)
{
    (void)state;
    struct screen s;
    for (int i = 0; i < 2; i++) {
        start(&s, 80, 24, i ? "ascii" : "plain", i ? NULL : "LC_ALL=C");
        assert_true(screen_wait(&s, "? help"));
        assert_true(screen_wait(&s, "scaled twice"));
        for (const char *c = screen_text(&s); *c; c++)
            assert_true((unsigned char)*c < 0x80);
        quit(&s);
    }
}

static void no_usable_terminal(void **state)
{
    (void)state;
    struct screen s;
    static const char *const variables[] = {"TERM=no-such-terminal", "TERM=dumb", "TERM"};
    static const char *const messages[] = {"TERM is 'no-such-terminal'", "terminal 'dumb'", "TERM is not set"};
    for (int i = 0; i < 3; i++) {
        start(&s, 160, 24, "plain", variables[i]);
        assert_true(screen_wait(&s, messages[i]));
        const int status = screen_wait_exit(&s);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        assert_true(screen_is_restored(&s));
        screen_close(&s);
    }
}

static void interrupt_cancels_and_q_leaves(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "busy", NULL);
    assert_true(screen_wait(&s, "(x stops)"));
    screen_send(&s, "c");
    assert_true(screen_wait(&s, "a run is in progress: x stops it"));
    screen_send(&s, "T");
    assert_true(screen_wait(&s, "q back"));
    screen_send(&s, "O");
    assert_true(screen_wait(&s, "q quit"));
    screen_send(&s, "\033"); /* on the overview, however one came there */
    assert_true(screen_wait_gone(&s, "(x stops)"));
    screen_send(&s, "r");
    assert_true(screen_wait(&s, "(x stops)"));
    screen_send(&s, "\003");
    assert_true(screen_wait_gone(&s, "(x stops)"));
    screen_send(&s, "\003");
    assert_true(screen_wait(&s, "nothing is running; q leaves"));
    screen_send(&s, "T");
    assert_true(screen_wait(&s, "q back"));
    screen_send(&s, "q");
    assert_true(screen_wait(&s, "q quit"));
    screen_send(&s, "q");
    assert_int_equal(screen_wait_exit(&s), 0);
    assert_true(screen_is_restored(&s));
    screen_close(&s);
}

static void signals_restore_the_terminal(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGHUP, SIGSEGV, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct screen s;
        start(&s, 80, 24, "plain", NULL);
        assert_true(screen_wait(&s, "? help"));
        kill(s.pid, signals[i]);
        const int status = screen_wait_exit(&s);
        if (i < 2)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        assert_true(screen_is_restored(&s));
        screen_close(&s);
    }
}

static void suspend_and_return(void **state)
{
    (void)state;
    struct screen s;
    char *argv[] = {self, "shell", NULL};
    screen_start(&s, 80, 24, NULL, argv);
    assert_true(screen_wait(&s, "? help"));
    screen_send(&s, "l\032");
    assert_true(screen_wait(&s, "stopped"));
    assert_true(screen_is_restored(&s));
    screen_resize(&s, 120, 40); /* while nobody looks */
    screen_send(&s, "fg\n");
    assert_true(screen_wait(&s, "S[h0,q0,k1]"));
    assert_true(screen_wait(&s, "FINDING"));
    assert_true(s.altscreen);
    quit(&s);
}

/* A lost terminal ends the program; it does not spin. */
static void hang_up(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "? help"));
    close(s.fd);
    int status = 0, ended = 0;
    for (const double until = screen_now() + SCREEN_PATIENCE_MS; !ended && screen_now() < until; usleep(2000))
        ended = waitpid(s.pid, &status, WNOHANG) == s.pid;
    assert_true(ended);
    s.exited = 1;
    s.fd = -1;
    screen_close(&s);
}

static void save_never_overwrites(void **state)
{
    (void)state;
    struct screen s;
    char folder[TEMPORARY], before[512];
    struct stat status;
    assert_non_null(getcwd(before, sizeof before));
    assert_non_null(mkdtemp(temporary(folder, "save")));
    assert_int_equal(chdir(folder), 0);
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "? help"));
    screen_send(&s, "s");
    assert_true(screen_wait(&s, "saved double-scale.safetensors"));
    screen_send(&s, "s");
    assert_true(screen_wait(&s, "saved double-scale-2.safetensors"));
    quit(&s);
    assert_int_equal(stat("double-scale.safetensors", &status), 0);
    assert_int_equal(unlink("double-scale.safetensors"), 0);
    assert_int_equal(unlink("double-scale-2.safetensors"), 0);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Clicks as terminals send them: button, column and row from 1, M pressed, m released. */
static void click(struct screen *s, int row, int col)
{
    char bytes[64];
    snprintf(bytes, sizeof bytes, "\033[<0;%d;%dM\033[<0;%d;%dm", col + 1, row + 1, col + 1, row + 1);
    screen_send(s, bytes);
}

static void mouse_goes_where_it_clicks(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    assert_int_equal(s.mouse, VTERM_PROP_MOUSE_DRAG);
    click(&s, 10, 9); /* q2 below "012345": column 4 is k0 */
    assert_true(screen_wait(&s, "S[h0,q2,k5]"));
    click(&s, 1, 8 + 4 * 6 + 1); /* m in the strip */
    assert_true(screen_wait(&s, "[m]"));
    click(&s, 1, 8 + 3 * 6);
    assert_true(screen_wait(&s, "[S]"));
    click(&s, 12, 20); /* the list's fifth element */
    assert_true(screen_wait(&s, "▶  4"));
    screen_send(&s, "\033[<65;21;13M"); /* the wheel there: columns */
    assert_true(screen_wait(&s, "▶  5"));
    screen_send(&s, "\033[<64;6;10M"); /* and over the map: q tiles */
    assert_true(screen_wait(&s, "S[h0,q1,k5]"));
    click(&s, 16, 9); /* heads */
    assert_true(screen_wait(&s, "S[h3,q1,k5]"));
    screen_send(&s, "\033[<0;16;9M\033[<32;21;9M\033[<0;21;9m"); /* the line between the sides */
    assert_true(screen_wait(&s, "─ S head 3/8 ───────┬"));
    screen_send(&s, "\033[<0;21;9M\033[<32;80;9M\033[<0;80;9m\033[<32;5;9M"); /* no further than the list's need */
    assert_true(screen_wait_gone(&s, "─ S head 3/8 ───────┬"));
    assert_non_null(strstr(screen_text(&s), "err/bound   64x64"));
    click(&s, 9, 9); /* the tile of the cursor opens */
    assert_true(screen_wait(&s, "─ cursor ─"));
    click(&s, 5, 5 + 2 * 9);
    assert_true(screen_wait(&s, "r2 c"));
    click(&s, 23, 79); /* "? help" */
    assert_true(screen_wait(&s, "line 1 of"));
    screen_send(&s, "\033[<65;5;5M");
    assert_true(screen_wait(&s, "line 4 of"));
    /* Other buttons, cut sequences and places off the screen are nothing. */
    screen_send(&s, "\033[<2;5;5M\033[<0;999;999M\033[<0;999;999m\033[<;M\033[<0;0;0M\033[<xO");
    assert_true(screen_wait(&s, "S[h3,q1,k5]"));
    quit(&s);
}

static VTermScreenCell cell_at(struct screen *s, int row, int col)
{
    VTermScreenCell cell;
    vterm_screen_get_cell(s->cells, (VTermPos){row, col}, &cell);
    return cell;
}

/* The dots of a picture have the terminal's colors beside those of curses, leave with the view, and are clicked on. */
static void a_picture_in_colors(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 120, 40, "plain", "COLORTERM=truecolor");
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "I");
    assert_true(screen_wait(&s, "v colors"));
    screen_send(&s, "v"); /* colors come behind what curses writes: those before this are there with it */
    assert_true(screen_wait(&s, "] class"));
    const VTermScreenCell dot = cell_at(&s, 5, 8);
    assert_int_equal(dot.chars[0], 0x2580);
    assert_true(VTERM_COLOR_IS_RGB(&dot.fg) && VTERM_COLOR_IS_RGB(&dot.bg));
    assert_true(dot.fg.rgb.red > dot.fg.rgb.blue); /* it is wrong: the yellow end */
    screen_send(&s, "\033[<0;17;10M\033[<0;17;10m");
    assert_true(screen_wait(&s, " c10 ─"));
    screen_send(&s, "\033");
    assert_true(screen_wait(&s, "─ cursor r"));
    const VTermScreenCell left = cell_at(&s, 20, 8);
    assert_true(VTERM_COLOR_IS_DEFAULT_BG(&left.bg));
    quit(&s);
    start(&s, 120, 40, "plain", "COLORTERM");
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "I");
    assert_true(screen_wait(&s, "v colors"));
    screen_send(&s, "v");
    assert_true(screen_wait(&s, "] class"));
    const VTermScreenCell of_256 = cell_at(&s, 5, 8);
    assert_true(VTERM_COLOR_IS_INDEXED(&of_256.fg));
    quit(&s);
    start(&s, 120, 40, "plain", "NO_COLOR=1");
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    screen_send(&s, "I");
    assert_true(screen_wait(&s, "⣿"));
    quit(&s);
}

/* The background is asked for; its answer is no key, however late it comes, and colors follow it. */
static void the_background_is_asked(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24, "plain", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    assert_non_null(memmem(s.raw, s.n_raw, "\033]11;?\033\\\033[c", 11));
    assert_null(memmem(s.raw, s.n_raw, "38;5;160", 8));
    screen_send(&s, "m");
    assert_true(screen_wait(&s, "mark: a letter"));
    screen_send(&s, "\033]11;rgb:ffff/ffff/ffff\033\\\033[?62;22c");
    screen_send(&s, "a");
    assert_true(screen_wait(&s, "marked as a"));
    assert_non_null(memmem(s.raw, s.n_raw, "38;5;160", 8)); /* bad, on a light background */
    screen_send(&s, "\033]11;rgb:0/0/0\007l");
    assert_true(screen_wait(&s, "S[h0,q0,k1]"));
    quit(&s);
    start(&s, 80, 24, "light", NULL);
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    assert_null(memmem(s.raw, s.n_raw, "\033]11;?", 7));
    quit(&s);
    start(&s, 80, 24, "plain", "TERM=linux");
    assert_true(screen_wait(&s, "S[h0,q0,k0]"));
    assert_null(memmem(s.raw, s.n_raw, "\033]11;?", 7));
    quit(&s);
}

static void no_mouse_where_it_is_not_wanted(void **state)
{
    (void)state;
    struct screen s;
    for (int i = 0; i < 2; i++) {
        start(&s, 80, 24, i ? "plain" : "keys", i ? "TERM=vt100" : NULL);
        assert_true(screen_wait(&s, "? help"));
        assert_int_equal(s.mouse, VTERM_PROP_MOUSE_NONE);
        quit(&s);
    }
}

static void light_background(void **state)
{
    (void)state;
    struct screen s;
    VTermScreenCell cell;
    start(&s, 80, 24, "light", NULL);
    assert_true(screen_wait(&s, "? help"));
    vterm_screen_get_cell(s.cells, (VTermPos){2, 26}, &cell);
    assert_true(VTERM_COLOR_IS_INDEXED(&cell.fg));
    assert_int_equal(cell.fg.indexed.idx, 160);
    quit(&s);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return child(argv[2]);
    if (argc == 2 && strcmp(argv[1], "shell") == 0)
        return shell();
    if (!realpath("/proc/self/exe", self))
        return 1;
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_screen),
        cmocka_unit_test(keys_step_and_zoom),
        cmocka_unit_test(counts),
        cmocka_unit_test(marks_and_jumps),
        cmocka_unit_test(commands_are_typed),
        cmocka_unit_test(search_in_text),
        cmocka_unit_test(pins_are_kept),
        cmocka_unit_test(resize_and_recover),
        cmocka_unit_test(rerun_says_where_it_went_wrong),
        cmocka_unit_test(checks_on_and_off),
        cmocka_unit_test(source_stands_at_the_event),
        cmocka_unit_test(color_and_none),
        cmocka_unit_test(light_background),
        cmocka_unit_test(mouse_goes_where_it_clicks),
        cmocka_unit_test(a_picture_in_colors),
        cmocka_unit_test(the_background_is_asked),
        cmocka_unit_test(no_mouse_where_it_is_not_wanted),
        cmocka_unit_test(ascii_where_the_locale_is),
        cmocka_unit_test(no_usable_terminal),
        cmocka_unit_test(interrupt_cancels_and_q_leaves),
        cmocka_unit_test(signals_restore_the_terminal),
        cmocka_unit_test(suspend_and_return),
        cmocka_unit_test(hang_up),
        cmocka_unit_test(save_never_overwrites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
