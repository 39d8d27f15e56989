/* The configuration file: what it sets, and what is said of each mistake in it. */
#include "tests/unit/lib/temporary.h"
#include "tui/config.h"
#include "tui/keys/actions.h"
#include "tui/views/view.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[TEMPORARY];

static int read_text(const char *text, struct config *config, struct err *err)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    *err = (struct err){0};
    return config_read(path, config, err);
}

static void none_is_the_defaults(void **state)
{
    (void)state;
    struct config config;
    struct err err = {0};
    unlink(path);
    unsetenv("COLORFGBG");
    assert_int_equal(config_read(path, &config, &err), 0);
    for (int s = 0; s < SETTING_COUNT; s++)
        assert_int_equal(config.choice[s], 0);
    assert_int_equal(config.theme.background, BACKGROUND_UNKNOWN);
    setenv("COLORFGBG", "0;15", 1);
    assert_int_equal(config_read(path, &config, &err), 0);
    assert_int_equal(config.theme.background, BACKGROUND_LIGHT);
    unsetenv("COLORFGBG");
    assert_int_equal(read_text("", &config, &err), 0);
}

static void each_mistake_has_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {"[screen]\nstart = nowhere\n", 2, "start: expected overview|map|"},
        {"[screen]\n\n# words\n  mouse = maybe\n", 4, "mouse: expected yes|no, found 'maybe'"},
        {"[screen]\ncolor = red\n", 2, "color: expected one of start, background, mouse, ascii, try, remember"},
        {"start = map\n", 1, "start: expected it in [screen], [keys] or [colors], found []"},
        {"[mouse]\non = yes\n", 2, "found [mouse]"},
        {"[keys]\nfly = f\n", 2, "fly: expected the name of an action (attnscope docs keys)"},
        {"[keys]\nquit = F99\n", 2, "quit: expected keys as in `attnscope docs keys` (n C-l S-Tab), found 'F99'"},
        {"[keys]\nwatch = C-t\nedit = C-t\n", 3, "edit: 'C-t' is a key of watch already"},
        {"[colors]\nbad = pinkish\n", 2, "bad: expected colors (red, 0 to 255, default)"},
        {"[colors]\nworse = red\n", 2, "worse: expected one of text, dim, strong"},
        {"[screen]\nwords\n", 2, "expected `key = value` or `[section]`"},
        {"[screen\n", 1, "expected `key = value` or `[section]`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config config;
        struct err err;
        char where[TEMPORARY + 16];
        snprintf(where, sizeof where, "%s:%d", path, cases[i].line);
        assert_int_equal(read_text(cases[i].text, &config, &err), -1);
        assert_int_equal(err.code, ERR_INPUT);
        assert_string_equal(err.where, where);
        if (!strstr(err.message, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.message, cases[i].says);
    }
    char line[400];
    struct config config;
    struct err err;
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    assert_int_equal(read_text(line, &config, &err), -1);
    assert_non_null(strstr(err.message, "at most 198 bytes"));
    assert_int_equal(config_read("/", &config, &err), -1);
}

static void where_it_is(void **state)
{
    (void)state;
    char found[64];
    setenv("XDG_CONFIG_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    assert_int_equal(config_path("XDG_CONFIG_HOME", ".config", "config.ini", found, sizeof found), 0);
    assert_string_equal(found, "/x/attnscope/config.ini");
    setenv("XDG_CONFIG_HOME", "x", 1); /* relative: ignored */
    assert_int_equal(config_path("XDG_CONFIG_HOME", ".config", "config.ini", found, sizeof found), 0);
    assert_string_equal(found, "/h/.config/attnscope/config.ini");
    assert_int_equal(config_path("XDG_CONFIG_HOME", ".config", "config.ini", found, 10), -1);
    unsetenv("HOME");
    assert_int_equal(config_path("XDG_CONFIG_HOME", ".config", "config.ini", found, sizeof found), -1);
}

static void what_it_sets(void **state)
{
    (void)state;
    struct config config;
    struct err err;
    assert_int_equal(read_text("[screen]\r\nstart = map\nmouse=no\n  ascii = yes\nbackground = light\nremember = no\n"
                               "[keys]\nrerun = R C-r\nquit =\n[colors]\nbad = 208 on black bold\n",
                               &config, &err),
                     0);
    assert_int_equal(config.choice[SETTING_START], VIEW_MAP);
    assert_int_equal(config.choice[SETTING_MOUSE], 1);
    assert_int_equal(config.choice[SETTING_ASCII], 1);
    assert_int_equal(config.choice[SETTING_REMEMBER], 1);
    assert_int_equal(config.theme.background, BACKGROUND_LIGHT);
    assert_true(config.theme.has_own[STYLE_BAD]);
    assert_int_equal(config.theme.own[STYLE_BAD].fg, 208);
    assert_int_equal(config.theme.own[STYLE_BAD].bg, ANSI_BLACK);
    assert_int_equal(action_of_key('R'), ACTION_RERUN);
    assert_int_equal(action_of_key('r'), ACTION_NONE);
    assert_int_equal(action_of_key('q'), ACTION_NONE);
}

int main(void)
{
    assert_true(mkdtemp(temporary(path, "config")) != NULL);
    strncat(path, "/config.ini", sizeof path - strlen(path) - 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_the_defaults), cmocka_unit_test(each_mistake_has_its_line),
        cmocka_unit_test(where_it_is), cmocka_unit_test(what_it_sets), /* the last one: it changes the keys */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
