/* How an editor is told a place, and which line of a file is meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/lib/temporary.h"
#include "tui/editor.h"
#include <string.h>
#include <unistd.h>

static void told(const char *editor, const char *file, int line, const char *expected)
{
    struct editor_command command;
    char made[1024] = "";
    assert_int_equal(editor_command(editor, file, line, &command), 0);
    for (int i = 2; command.argv[i]; i++) /* behind /bin/sh -c */
        snprintf(made + strlen(made), sizeof made - strlen(made), "%s[%s]", i > 2 ? " " : "", command.argv[i]);
    assert_string_equal(command.argv[0], "/bin/sh");
    assert_string_equal(command.argv[1], "-c");
    assert_string_equal(made, expected);
}

static void commands(void **state)
{
    (void)state;
    told(NULL, "k.cu", 12, "[vi \"$@\"] [vi] [+12] [k.cu]");
    told("", "k.cu", 0, "[vi \"$@\"] [vi] [+1] [k.cu]");
    told("/usr/bin/nvim", "a b.cu", 12, "[/usr/bin/nvim \"$@\"] [nvim] [+12] [a b.cu]");
    told("emacs -nw", "k.cu", 3, "[emacs -nw \"$@\"] [emacs] [+3] [k.cu]");
    told("code --wait", "k.cu", 3, "[code --wait \"$@\"] [code] [-g] [k.cu:3]");
    told("hx", "k.cu", 3, "[hx \"$@\"] [hx] [k.cu:3]");
    told("my-editor", "k.cu", 3, "[my-editor \"$@\"] [my-editor] [k.cu]");
    /* What a name holds is not taken for an option, nor for a place to be filled in. */
    told("vi", "-k.cu", 3, "[vi \"$@\"] [vi] [+3] [./-k.cu]");
    told("vi", "+k.cu", 3, "[vi \"$@\"] [vi] [+3] [./+k.cu]");
    told("hx", "LINE FILE.cu", 3, "[hx \"$@\"] [hx] [LINE FILE.cu:3]");
}

static void too_long(void **state)
{
    (void)state;
    struct editor_command command;
    char name[8192];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(editor_command("vi", name, 1, &command), -1);
    assert_int_equal(editor_command(name, "k.cu", 1, &command), -1);
    name[4000] = '\0';
    assert_int_equal(editor_command("vi", name, 1, &command), 0);
    name[4090] = 'x';
    name[4000] = 'x';
    name[4091] = '\0';
    assert_int_equal(editor_command("vi", name, 1, &command), -1);
}

static void lines(void **state)
{
    (void)state;
    char path[TEMPORARY];
    const int fd = mkstemp(temporary(path, "editor"));
    assert_true(fd >= 0);
    static const char now[] = "new\none\n  two\nx\nthree\nx\n";
    assert_int_equal(write(fd, now, sizeof now - 1), (ssize_t)sizeof now - 1);
    close(fd);
    static const char then[] = "one\ntwo\nx\nthree\ngone\n\n";
    assert_int_equal(editor_line(path, then, 1), 2);
    assert_int_equal(editor_line(path, then, 2), 3); /* an indent is no other line */
    assert_int_equal(editor_line(path, then, 3), 4); /* the nearer one of two */
    assert_int_equal(editor_line(path, then, 5), 5); /* nowhere: the number stands */
    assert_int_equal(editor_line(path, then, 6), 6); /* blank lines are all alike */
    assert_int_equal(editor_line(path, then, 99), 99);
    assert_int_equal(editor_line(path, NULL, 4), 4);
    assert_int_equal(editor_line(path, then, 0), 1);
    assert_int_equal(editor_line("/nonexistent", then, 2), 2);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands),
        cmocka_unit_test(too_long),
        cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
