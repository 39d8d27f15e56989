/* The line at the bottom of the screen: editing, history, completion, and how it is drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/utf8.h"
#include "tui/keys/actions.h"
#include "tui/prompt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct prompt p;

static void open_with(const char *line)
{
    memset(&p, 0, sizeof p);
    prompt_open(&p, ":", line, NULL, NULL);
}

/* Characters of a text as keys. */
static void type(const char *text)
{
    uint32_t code;
    for (size_t length; (length = utf8_decode(text, &code)) > 0; text += length)
        assert_int_equal(prompt_key(&p, code == ' ' ? KEY_ID_SPACE : (int)code), PROMPT_OPEN);
}

static void key(const char *name)
{
    assert_int_not_equal(key_from_name(name), KEY_ID_NONE);
    assert_int_equal(prompt_key(&p, key_from_name(name)), PROMPT_OPEN);
}

static void edits(void **state)
{
    (void)state;
    open_with("");
    type("go s h3");
    assert_string_equal(p.line, "go s h3");
    key("C-a");
    type("x");
    key("End");
    type("y");
    assert_string_equal(p.line, "xgo s h3y");
    key("Home");
    key("Delete");
    key("C-e");
    key("Backspace");
    assert_string_equal(p.line, "go s h3");
    key("C-w");
    assert_string_equal(p.line, "go s ");
    key("C-w"); /* the blanks before the word go with it */
    assert_string_equal(p.line, "go ");
    type("k4");
    key("Left");
    key("Left");
    key("Left");
    key("C-k");
    assert_string_equal(p.line, "go");
    key("C-u");
    assert_string_equal(p.line, "");
    key("Left");
    key("Right");
    key("Delete");
    assert_int_equal(p.at, 0);
}

static void edits_characters_not_bytes(void **state)
{
    (void)state;
    open_with("");
    type("αe\u0301中x");
    key("Left");
    key("Left");
    key("Backspace"); /* e and its accent */
    assert_string_equal(p.line, "α中x");
    key("Left");
    type("ß");
    assert_string_equal(p.line, "ßα中x");
    key("Right");
    key("Delete");
    assert_string_equal(p.line, "ßαx");
    /* Full: what has no room is not there, never half of it. */
    open_with("");
    for (int i = 0; i < PROMPT_BYTES; i++)
        type("中");
    assert_int_equal(strlen(p.line) % 3, 0);
    assert_true(strlen(p.line) > PROMPT_BYTES - 4);
    /* Control characters and keys of no meaning here are nothing. */
    open_with("a");
    prompt_key(&p, 12);
    prompt_key(&p, 0x7F);
    prompt_key(&p, KEY_ID_F1);
    assert_string_equal(p.line, "a");
}

static void leaves(void **state)
{
    (void)state;
    const char *const ways[] = {"Esc", "C-c", "C-g"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        open_with("text");
        assert_int_equal(prompt_key(&p, key_from_name(ways[i])), PROMPT_LEFT);
        assert_null(p.sign);
    }
    open_with("");
    assert_int_equal(prompt_key(&p, KEY_ID_BACKSPACE), PROMPT_LEFT);
    open_with("text");
    assert_int_equal(prompt_key(&p, KEY_ID_ENTER), PROMPT_ENTERED);
    assert_string_equal(p.line, "text");
    assert_null(p.sign);
}

static void enter(const char *sign, const char *line)
{
    prompt_open(&p, sign, line, NULL, NULL);
    assert_int_equal(prompt_key(&p, KEY_ID_ENTER), PROMPT_ENTERED);
}

static void remembers(void **state)
{
    (void)state;
    open_with("");
    enter(":", "one");
    enter(":", "two");
    enter(":", "two"); /* once */
    enter(":", "");    /* not at all */
    enter("/", "other");
    prompt_open(&p, ":", "mine", NULL, NULL);
    key("Up");
    assert_string_equal(p.line, "two");
    key("C-p");
    assert_string_equal(p.line, "one");
    key("Up");
    assert_string_equal(p.line, "one");
    key("Down");
    key("C-n");
    assert_string_equal(p.line, "mine");
    key("Down");
    assert_string_equal(p.line, "mine");
    prompt_open(&p, "/", "", NULL, NULL);
    key("Up");
    assert_string_equal(p.line, "other");
    for (int i = 0; i < PROMPT_HISTORY + 5; i++) {
        char line[16];
        snprintf(line, sizeof line, "line %d", i);
        enter(":", line);
    }
    assert_int_equal(p.history[0].n, PROMPT_HISTORY);
    assert_string_equal(p.history[0].line[0], "line 5");
}

static void offer(void *ctx, const char *line, size_t at, struct candidates *out)
{
    static const char *const words[] = {"stop", "stops", "step-back", "αβ", "αγ", "quit"};
    char word[64];
    (void)ctx;
    out->n = 0;
    out->from = at;
    while (out->from > 0 && line[out->from - 1] != ' ')
        out->from--;
    snprintf(word, sizeof word, "%.*s", (int)(at - out->from), line + out->from);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        candidates_add(out, word, words[i], "help");
}

static void completes(void **state)
{
    (void)state;
    memset(&p, 0, sizeof p);
    prompt_open(&p, ":", "x q y", offer, NULL);
    key("Left");
    key("Left");
    key("Tab"); /* the only one, in the middle of the line */
    assert_string_equal(p.line, "x quit y");
    assert_int_equal(p.list.n, 0);
    key("C-u");
    key("C-k");
    type("q");
    key("Tab"); /* at its end: on to the next word */
    assert_string_equal(p.line, "quit ");
    key("C-u");
    type("s");
    key("Tab"); /* as far as they agree */
    assert_string_equal(p.line, "st");
    assert_int_equal(p.list.n, 3);
    key("Tab");
    assert_string_equal(p.line, "stop");
    key("Tab");
    key("Tab");
    assert_string_equal(p.line, "step-back");
    key("Tab");
    assert_string_equal(p.line, "stop");
    key("S-Tab");
    assert_string_equal(p.line, "step-back");
    type("x"); /* takes it, the list goes */
    assert_string_equal(p.line, "step-backx");
    assert_int_equal(p.list.n, 0);
    key("Tab"); /* nothing fits */
    assert_string_equal(p.line, "step-backx");
    key("C-u");
    type("α");
    key("Tab"); /* β and γ share a byte: no half character */
    assert_string_equal(p.line, "α");
}

static const char *drawn(int cols, int rows)
{
    static char *text;
    struct canvas c;
    size_t bytes;
    free(text);
    assert_int_equal(canvas_init(&c, cols, rows, 0), 0);
    prompt_draw(&p, &c);
    FILE *out = open_memstream(&text, &bytes);
    canvas_write_text(&c, out);
    fclose(out);
    canvas_free(&c);
    return text;
}

static void draws(void **state)
{
    (void)state;
    open_with("go s h3");
    assert_string_equal(drawn(20, 3), "\n\n:go s h3\n");
    type(" 0123456789");
    assert_string_equal(drawn(12, 2), "\n:123456789\n"); /* the cursor's end stays on the screen */
    prompt_open(&p, ":", "st", offer, NULL);
    key("Tab");
    key("Tab");
    assert_string_equal(drawn(40, 7), "\n\n│ stop       help\n│ stops      help\n│ step-back  help\n"
                                      "─ Tab takes the next of 3 ──────────────\n:stop\n");
    assert_string_equal(drawn(40, 5), "\n\n│ stop       help\n─ 3 matches, Tab cycles ────────────────\n:stop\n");
    for (int rows = 1; rows < 6; rows++)
        for (int cols = 1; cols < 12; cols++)
            drawn(cols, rows);
}

static void distances(void **state)
{
    (void)state;
    assert_int_equal(word_distance("", ""), 0);
    assert_int_equal(word_distance("stop", "stop"), 0);
    assert_int_equal(word_distance("sotp", "stop"), 1);
    assert_int_equal(word_distance("stp", "stop"), 1);
    assert_int_equal(word_distance("stoop", "stop"), 1);
    assert_int_equal(word_distance("next", ""), 4);
    assert_int_equal(word_distance("nxt-bda", "next-bad"), 2);
    assert_int_equal(word_distance("kitten", "sitting"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits),     cmocka_unit_test(edits_characters_not_bytes),
        cmocka_unit_test(leaves),    cmocka_unit_test(remembers),
        cmocka_unit_test(completes), cmocka_unit_test(draws),
        cmocka_unit_test(distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
