#include "engine/base/utf8.h"
#include "tui/keys/actions.h"
#include "tui/screen/canvas.h"
#include "tui/screen/number.h"
#include "tui/screen/osc52.h"
#include "tui/screen/scale.h"
#include "tui/screen/svg.h"
#include "tui/screen/text_flow.h"
#include "tui/screen/theme.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(const struct canvas *c)
{
    static char *text;
    size_t bytes;
    free(text);
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(canvas_write_text(c, out), 0);
    fclose(out);
    return text;
}

static void put_clips_to_area_and_canvas(void **state)
{
    (void)state;
    struct canvas c;
    assert_int_equal(canvas_init(&c, 10, 3, 0), 0);
    const struct rect area = {1, 2, 1, 4};
    assert_int_equal(canvas_put(&c, area, 0, 0, STYLE_TEXT, "abcdefgh"), 4);
    canvas_put(&c, area, 0, -2, STYLE_TEXT, "XYZ"); /* only Z lies inside */
    canvas_put(&c, area, 1, 0, STYLE_TEXT, "below the area");
    canvas_put(&c, area, -1, 0, STYLE_TEXT, "above the area");
    canvas_put(&c, (struct rect){-5, -5, 100, 100}, 7, 13, STYLE_TEXT, "out at the corner");
    /* A word goes on behind the edge. */
    assert_string_equal(text_of(&c), "\n  Zbc…\n        o…\n");
    canvas_fill(&c, (struct rect){-3, 8, 100, 100}, STYLE_RULE, "─");
    assert_string_equal(text_of(&c), "        ──\n  Zbc…  ──\n        ──\n");
    /* Between words, or where there is no room for a sign, nothing is said; of ASCII the sign is two columns. */
    canvas_clear(&c);
    canvas_put(&c, area, 0, 0, STYLE_TEXT, "abcd efgh");
    canvas_put(&c, (struct rect){2, 0, 1, 1}, 0, 0, STYLE_TEXT, "12");
    assert_string_equal(text_of(&c), "\n  abcd\n1\n");
    c.ascii = true;
    canvas_put(&c, area, 0, 0, STYLE_TEXT, "-1.25e-7");
    assert_string_equal(text_of(&c), "\n  -1..\n1\n");
    canvas_free(&c);
    canvas_free(&c);
}

static void wide_characters_are_never_halved(void **state)
{
    (void)state;
    struct canvas c;
    assert_int_equal(canvas_init(&c, 6, 1, 0), 0);
    const struct rect all = {0, 0, 1, 6};
    assert_int_equal(canvas_put(&c, all, 0, 0, STYLE_TEXT, "a注意b"), 6);
    assert_string_equal(text_of(&c), "a注意b\n");
    canvas_put(&c, all, 0, 2, STYLE_TEXT, "x"); /* the right half of the first */
    assert_string_equal(text_of(&c), "a x意b\n");
    canvas_put(&c, all, 0, 3, STYLE_TEXT, "y"); /* the left half of the second */
    assert_string_equal(text_of(&c), "a xy b\n");
    canvas_clear(&c);
    canvas_put(&c, all, 0, 5, STYLE_TEXT, "注");  /* cut by the right edge */
    canvas_put(&c, all, 0, -1, STYLE_TEXT, "注"); /* and by the left one */
    assert_string_equal(text_of(&c), "\n");
    assert_int_equal(c.cells[5].code, ' ');
    canvas_free(&c);
}

static void what_a_terminal_acts_on_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        /* Stray continuation, overlong '/', surrogate, beyond Unicode, cut short: each byte by itself. */
        {"\x80|\xC0\xAF|\xED\xA0\x80|", "<80>|<C0><AF>|<ED><A0><80>|\n"},
        {"\xF4\x90\x80\x80|\xE2\x9C", "<F4><90><80><80>|<E2><9C>\n"},
        {"\x1b[2J\n\t\r\a\x7f|", "^[[2J^J^I^M^G^?|\n"},
        {"\xC2\x9B|\x9B\xC2\xA0|",
         "<U+009B>|<9B>\u00A0|\n"}, /* CSI of C1, and as one byte; a blank that may not break */
        /* NOLINTNEXTLINE(misc-misleading-bidirectional): that it misleads nobody is the test */
        {"a\u202Eb\u2066c\u061Cd\u200Fe", "a<U+202E>b<U+2066>c<U+061C>d<U+200F>e\n"},
        {"\u200B\uFEFF\u2028\U000E0041", "<U+200B><U+FEFF><U+2028><U+E0041>\n"},
        {"e\u0301|", "e|\n"}, /* a combining accent takes no cell */
    };
    struct canvas c;
    assert_int_equal(canvas_init(&c, 60, 1, 0), 0);
    const struct rect all = {0, 0, 1, 60};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        canvas_clear(&c);
        assert_int_equal(canvas_put(&c, all, 0, 0, STYLE_TEXT, cases[i].text), text_columns(cases[i].text));
        assert_string_equal(text_of(&c), cases[i].shown);
    }
    canvas_clear(&c);
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): as above */
    assert_int_equal(canvas_put(&c, (struct rect){0, 0, 1, 5}, 0, 0, STYLE_TEXT, "ab\u202E"), 5); /* cut by the edge */
    assert_string_equal(text_of(&c), "ab<U+\n");
    for (uint32_t code = 1; code < 0x110000; code++) { /* whatever the code, no control character becomes a cell */
        char bytes[5] = "";
        bytes[utf8_write(code, bytes)] = '\0';
        canvas_clear(&c);
        canvas_put(&c, all, 0, 0, STYLE_TEXT, bytes);
        const uint32_t cell = c.cells[0].code;
        assert_true(cell >= 0x20 && cell != 0x7F && !(cell >= 0x80 && cell < 0xA0) &&
                    !(cell >= 0x202A && cell <= 0x202E) && !(cell >= 0x2066 && cell <= 0x2069));
    }
    canvas_free(&c);
}

static void ascii_folds_every_glyph(void **state)
{
    (void)state;
    struct canvas c;
    assert_int_equal(canvas_init(&c, 20, 1, 1), 0);
    const struct rect all = {0, 0, 1, 20};
    assert_int_equal(canvas_put(&c, all, 0, 0, STYLE_TEXT, "α✗◆∞…·─│²注"), 11);
    assert_string_equal(text_of(&c), "ax@I:.-|2??\n");
    canvas_free(&c);
}

static void utf8_round_trips(void **state)
{
    (void)state;
    for (uint32_t code = 1; code <= 0x10FFFF; code++) {
        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        char bytes[5] = "";
        uint32_t back;
        const size_t n = utf8_write(code, bytes);
        bytes[n] = '\0';
        if (utf8_decode(bytes, &back) != n || back != code)
            fail_msg("U+%04X", code);
    }
    assert_int_equal(text_columns("S = scale² · q kᵀ"), 17);
}

static void numbers_fit_their_columns(void **state)
{
    (void)state;
    char out[NUMBER_BYTES];
    assert_string_equal(number_signed(out, 0.021025, 9), "+0.021025");
    assert_string_equal(number_signed(out, -0.1603, 7), "-0.1603");
    assert_string_equal(number_signed(out, 1e-9, 9), "+1.00e-09");
    assert_string_equal(number_signed(out, -NAN, 9), "nan");
    assert_string_equal(number_signed(out, -INFINITY, 9), "-inf");
    assert_string_equal(number_signed(out, 9.999999999, 9), "+10.00000");
    for (int width = 7; width <= 12; width++) {
        for (int exponent = -300; exponent <= 300; exponent++) {
            for (int digit = 1; digit <= 10; digit++) {
                number_signed(out, -(digit - 1e-7) * pow(10, exponent), width);
                if ((int)strlen(out) > width)
                    fail_msg("'%s' is wider than %d", out, width);
            }
        }
    }
    assert_string_equal(number_ratio(out, 7412), "7.4e3");
    assert_string_equal(number_ratio(out, 999999), "1.0e6");
    assert_string_equal(number_ratio(out, INFINITY), "inf");
    assert_string_equal(number_ratio(out, 0.07), "0.07");
    assert_string_equal(number_ratio(out, 1e-7), "<.01");
}

static void flow_counts_what_it_draws(void **state)
{
    (void)state;
    struct canvas c;
    assert_int_equal(canvas_init(&c, 10, 4, 0), 0);
    struct text_flow f = {.canvas = &c, .area = {0, 0, 4, 10}};
    flow_put(&f, STYLE_TEXT, "one two three\n\nfour");
    assert_int_equal(f.line, 4);
    assert_string_equal(text_of(&c), "one two\n  three\n\nfour\n");
    struct text_flow count = {.area = {0, 0, 0, 1}};
    flow_put(&count, STYLE_TEXT, "abcdef"); /* no column left after the indent: still ends */
    assert_int_equal(count.line, 6);
    canvas_clear(&c);
    f = (struct text_flow){.canvas = &c, .area = {0, 0, 4, 10}, .top = 3};
    flow_put(&f, STYLE_TEXT, "one two three\n\nfour");
    assert_string_equal(text_of(&c), "four\n\n\n\n");
    canvas_free(&c);
}

static void cut_text_says_so(void **state)
{
    (void)state;
    struct canvas c;
    const struct rect area = {0, 1, 1, 6};
    assert_int_equal(canvas_init(&c, 8, 1, 0), 0);
    assert_int_equal(canvas_put_cut(&c, area, 0, 1, STYLE_TEXT, "abcde"), 5);
    assert_string_equal(text_of(&c), "  abcde\n");
    assert_int_equal(canvas_put_cut(&c, area, 0, 1, STYLE_TEXT, "abcdef"), 5);
    assert_string_equal(text_of(&c), "  abcd…\n");
    canvas_clear(&c);
    canvas_put_cut(&c, area, 0, 0, STYLE_TEXT, "注意注意"); /* no half of the third one */
    assert_string_equal(text_of(&c), " 注意 …\n");
    canvas_clear(&c);
    c.ascii = 1;
    canvas_put_cut(&c, area, 0, 0, STYLE_TEXT, "abcdefg");
    assert_string_equal(text_of(&c), " abcd..\n");
    canvas_put_cut(&c, area, 0, 6, STYLE_TEXT, "no room"); /* nor a place for the sign */
    assert_string_equal(text_of(&c), " abcd..\n");
    canvas_free(&c);
}

static void flow_fits_or_says_where_to_read_on(void **state)
{
    (void)state;
    struct canvas c;
    const struct rect area = {0, 0, 2, 16};
    assert_int_equal(canvas_init(&c, 16, 3, 0), 0);
    assert_int_equal(flow_fit(&c, area, STYLE_TEXT, "", "5 log"), 0);
    assert_int_equal(flow_fit(&c, area, STYLE_TEXT, "one row", "5 log"), 1);
    assert_string_equal(text_of(&c), "one row\n\n\n");
    assert_int_equal(flow_fit(&c, area, STYLE_TEXT, "a kernel crashed in block three", "5 log"), 2);
    assert_string_equal(text_of(&c), "a kernel crashed\nin block three\n\n");
    canvas_clear(&c);
    assert_int_equal(flow_fit(&c, area, STYLE_TEXT, "the kernel has crashed in block three", "5 log"), 2);
    assert_string_equal(text_of(&c), "the kernel has\ncrashed i… 5 log\n\n");
    canvas_free(&c);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    struct canvas c;
    assert_int_equal(canvas_init(&c, 0, 5, 0), -1);
    assert_int_equal(canvas_init(&c, 5, -1, 0), -1);
    assert_null(c.cells);
    canvas_free(&c);
}

static void colors_are_a_choice(void **state)
{
    (void)state;
    assert_int_equal(theme_look(NULL, STYLE_BAD, 256).fg, ANSI_RED);
    assert_int_equal(theme_look(NULL, STYLE_BAD, 8).fg, ANSI_RED);
    assert_int_equal(theme_look(NULL, STYLE_BAD, 0).fg, ANSI_DEFAULT);
    assert_int_equal(theme_look(NULL, STYLE_BAD, 0).attributes, ATTR_BOLD);
    setenv("NO_COLOR", "", 1);
    assert_int_equal(theme_colors(256), 256);
    setenv("NO_COLOR", "1", 1);
    assert_int_equal(theme_colors(256), 0);
    unsetenv("NO_COLOR");
}

static void every_key_has_one_action(void **state)
{
    (void)state;
    for (int a = 0; a < ACTION_COUNT; a++) {
        char keys[64];
        snprintf(keys, sizeof keys, "%s", action_text(a)->keys);
        for (char *rest = keys, *name; (name = strtok_r(rest, " ", &rest));) {
            const int key = key_from_name(name);
            if (key == KEY_ID_NONE)
                fail_msg("%s: no key '%s'", action_text(a)->name, name);
            if (action_of_key(key) != (enum action)a)
                fail_msg("key '%s' is taken twice", name);
        }
    }
    assert_int_equal(action_of_key('n'), ACTION_NEXT_BAD);
    assert_int_equal(action_of_key(3), ACTION_INTERRUPT);
    assert_int_equal(action_of_key(KEY_ID_NONE), ACTION_NONE);
    assert_int_equal(action_of_key(0x1F600), ACTION_NONE);
}

/* docs/keys.md is what the table says. */
static void documented_keys_are_current(void **state)
{
    (void)state;
    char *made = NULL, kept[16384] = "";
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);
    assert_int_equal(actions_write_docs(out), 0);
    fclose(out);
    FILE *file = fopen("docs/keys.md", "r"); /* `make docs` writes it; what editors are told stands behind the keys */
    assert_non_null(file);
    kept[fread(kept, 1, sizeof kept - 1, file)] = '\0';
    fclose(file);
    kept[strlen(made)] = '\0';
    assert_string_equal(made, kept);
    free(made);
}

static void backgrounds_have_looks(void **state)
{
    (void)state;
    struct theme theme = {.background = BACKGROUND_DARK};
    const int dark = theme_look(&theme, STYLE_BAD, 256).fg;
    assert_true(dark >= 16);
    assert_int_equal(theme_look(&theme, STYLE_BAD, 255).fg, ANSI_RED); /* the table has 256 */
    assert_int_equal(theme_look(&theme, STYLE_TEXT, 256).fg, ANSI_DEFAULT);
    assert_false(theme_look(&theme, STYLE_DIM, 256).attributes & ATTR_DIM);
    theme.background = BACKGROUND_LIGHT;
    assert_true(theme_look(&theme, STYLE_BAD, 256).fg >= 16);
    assert_int_not_equal(theme_look(&theme, STYLE_BAD, 256).fg, dark);
    assert_int_equal(theme_rgb(16), 0x000000);
    assert_int_equal(theme_rgb(231), 0xffffff);
    assert_int_equal(theme_rgb(196), 0xff0000);
    assert_int_equal(theme_rgb(232), 0x080808);
    assert_int_equal(theme_rgb(255), 0xeeeeee);
}

static void the_terminal_says_its_background(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        enum background background;
    } cases[] = {{"15;0", BACKGROUND_DARK},         {"0;15", BACKGROUND_LIGHT},   {"0;default;7", BACKGROUND_LIGHT},
                 {"7;8", BACKGROUND_DARK},          {"0;16", BACKGROUND_UNKNOWN}, {"12", BACKGROUND_UNKNOWN},
                 {"0;x", BACKGROUND_UNKNOWN},       {"0;", BACKGROUND_UNKNOWN},   {"", BACKGROUND_UNKNOWN},
                 {"0;default", BACKGROUND_UNKNOWN}, {"0;1a", BACKGROUND_UNKNOWN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("COLORFGBG", cases[i].said, 1);
        assert_int_equal(theme_background(), cases[i].background);
    }
    unsetenv("COLORFGBG");
    assert_int_equal(theme_background(), BACKGROUND_UNKNOWN);
    static const struct {
        const char *answer;
        enum background background;
    } answers[] = {{"rgb:ffff/ffff/ffff", BACKGROUND_LIGHT},
                   {"rgb:fd/f6/e3", BACKGROUND_LIGHT},
                   {"rgba:0000/2b2b/3636/ffff", BACKGROUND_DARK},
                   {"rgb:0/0/0", BACKGROUND_DARK},
                   {"rgb:0000/0000/ffff", BACKGROUND_DARK},
                   {"rgb:ffff/ffff", BACKGROUND_UNKNOWN},
                   {"", BACKGROUND_UNKNOWN},
                   {"rgb:fffff/0/0", BACKGROUND_UNKNOWN},
                   {"white", BACKGROUND_UNKNOWN}};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_int_equal(theme_background_of(answers[i].answer), answers[i].background);
}

static void looks_are_words(void **state)
{
    (void)state;
    struct look look;
    char wrong[32] = "";
    assert_int_equal(theme_parse_look("red on 17 bold underline", &look, wrong, sizeof wrong), 0);
    assert_int_equal(look.fg, ANSI_RED);
    assert_int_equal(look.bg, 17);
    assert_int_equal(look.attributes, ATTR_BOLD | ATTR_UNDERLINE);
    assert_int_equal(theme_parse_look("", &look, wrong, sizeof wrong), 0);
    assert_int_equal(look.fg, ANSI_DEFAULT);
    assert_int_equal(theme_parse_look("255", &look, wrong, sizeof wrong), 0);
    static const char *const none[] = {"256", "-1", "pink", "12x"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(theme_parse_look(none[i], &look, wrong, sizeof wrong), -1);
        assert_string_equal(wrong, none[i]);
    }
    struct theme theme = {.background = BACKGROUND_DARK, .has_own[STYLE_BAD] = 1, .own[STYLE_BAD] = {208, -1, 0}};
    assert_int_equal(theme_look(&theme, STYLE_BAD, 256).fg, 208);
    assert_int_equal(theme_look(&theme, STYLE_BAD, 16).fg, ANSI_DEFAULT);
    assert_int_equal(style_from_name("nonfinite"), STYLE_NONFINITE);
    assert_int_equal(style_from_name("NONFINITE"), -1);
}

/* What a picture is, to the byte: escapes, runs of one style, reversed cells, gaps. */
static void pictures(void **state)
{
    (void)state;
    struct canvas c;
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(canvas_init(&c, 12, 2, 0), 0);
    const struct rect all = {0, 0, 2, 12};
    canvas_put(&c, all, 0, 0, STYLE_TEXT, "a<&b");
    canvas_put(&c, all, 0, 4, STYLE_TEXT, "    x");
    canvas_put(&c, all, 1, 0, STYLE_BAD, "✗");
    canvas_put(&c, all, 1, 2, STYLE_CURSOR, " 7 ");
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(canvas_write_svg(&c, NULL, out), 0);
    fclose(out);
    assert_string_equal(
        text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"117\" height=\"50\" viewBox=\"0 0 116.8 50\">\n"
              "<style>text{font-family:'DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,monospace;font-size:14px;"
              "white-space:pre}\n"
              ".s0{fill:#d0d0d0}\n"
              ".s5{fill:#ff875f;font-weight:bold}\n"
              ".s8{fill:#1c1c1c}\n"
              "</style>\n"
              "<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1c1c1c\"/>\n"
              "<text class=\"s0\" x=\"8.0\" y=\"21\" textLength=\"33.6\" lengthAdjust=\"spacingAndGlyphs\">"
              "a&lt;&amp;b</text>\n"
              "<text class=\"s0\" x=\"75.2\" y=\"21\" textLength=\"8.4\" lengthAdjust=\"spacingAndGlyphs\">x</text>\n"
              "<text class=\"s5\" x=\"8.0\" y=\"38\" textLength=\"8.4\" lengthAdjust=\"spacingAndGlyphs\">✗</text>\n"
              "<rect x=\"24.8\" y=\"25\" width=\"25.2\" height=\"17\" fill=\"#d0d0d0\"/>\n"
              "<text class=\"s8\" x=\"33.2\" y=\"38\" textLength=\"8.4\" lengthAdjust=\"spacingAndGlyphs\">7</text>\n"
              "</svg>\n");
    free(text);
    canvas_free(&c);
}

struct lab {
    double l, a, b;
};

/* CIE L*a*b* of a color as someone sees it; sight NULL: who sees all of them. */
static struct lab seen(uint32_t color, const double (*sight)[3])
{
    static const double xyz[3][3] = {{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}};
    static const double white[3] = {0.9505, 1, 1.089};
    double linear[3], there[3], f[3];
    for (int i = 0; i < 3; i++) {
        const double x = (double)(color >> (16 - 8 * i) & 0xff) / 255;
        linear[i] = x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
    }
    for (int i = 0; i < 3; i++) {
        const double x =
            sight ? sight[i][0] * linear[0] + sight[i][1] * linear[1] + sight[i][2] * linear[2] : linear[i];
        there[i] = fmin(fmax(x, 0), 1);
    }
    for (int i = 0; i < 3; i++) {
        const double x = (xyz[i][0] * there[0] + xyz[i][1] * there[1] + xyz[i][2] * there[2]) / white[i];
        f[i] = x > 0.008856 ? cbrt(x) : 7.787 * x + 16.0 / 116;
    }
    return (struct lab){116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

static double apart(struct lab x, struct lab y)
{
    return sqrt((x.l - y.l) * (x.l - y.l) + (x.a - y.a) * (x.a - y.a) + (x.b - y.b) * (x.b - y.b));
}

/* Colors by number: in order of lightness for everyone, and the two signs apart. The sights are those of G. M. Machado,
   M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE
   TVCG 15(6), 2009: protanopia and deuteranopia. */
static void scales(void **state)
{
    (void)state;
    static const double sights[2][3][3] = {
        {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
        {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
    for (int light = 0; light < 2; light++)
        for (int who = 0; who < 3; who++) {
            const double(*sight)[3] = who ? sights[who - 1] : NULL;
            for (int i = 1; i <= 20; i++) {
                const double by = seen(scale_color(SCALE_SIZE, i / 20.0, light), sight).l -
                                  seen(scale_color(SCALE_SIZE, (i - 1) / 20.0, light), sight).l;
                assert_true(light ? by < -2 : by > 2);
                for (int sign = -1; sign <= 1; sign += 2) {
                    const double away = seen(scale_color(SCALE_SIGN, sign * i / 20.0, light), sight).l -
                                        seen(scale_color(SCALE_SIGN, sign * (i - 1) / 20.0, light), sight).l;
                    assert_true(light ? away < -1 : away > 1);
                }
            }
            for (int i = 5; i <= 10; i++)
                assert_true(apart(seen(scale_color(SCALE_SIGN, i / 10.0, light), sight),
                                  seen(scale_color(SCALE_SIGN, -i / 10.0, light), sight)) > 40);
        }
    assert_int_equal(scale_color(SCALE_SIZE, 0, false), COLOR(0x00224e));
    assert_int_equal(scale_color(SCALE_SIZE, 1, false), COLOR(0xfee838));
    assert_int_equal(scale_color(SCALE_SIZE, 0, true), COLOR(0xfee838));
    assert_int_equal(scale_color(SCALE_SIZE, 9, false), scale_color(SCALE_SIZE, 1, false));
    assert_int_equal(scale_color(SCALE_SIZE, NAN, false), scale_color(SCALE_SIZE, 0, false));
    assert_int_equal(scale_color(SCALE_SIGN, -INFINITY, false), COLOR(0x9ecbff));
    assert_int_equal(scale_level(0), 0);
    assert_int_equal(scale_level(-1), 4);
    assert_int_equal(scale_level(0.2), 1);
    assert_true(scale_of_ratio(0) == 0 && scale_of_ratio(0.01) == 0 && scale_of_ratio(INFINITY) == 1);
    assert_true(scale_of_ratio(1) < 0.31 && scale_of_ratio(1 + 1e-9) >= 0.5);
    assert_int_equal(scale_nearest(COLOR(0xff0000)), 196);
    assert_int_equal(scale_nearest(COLOR(0x080808)), 232);
}

/* Dots of one color are one path; other characters stand on their paper; the text beside is as ever. */
static void pictures_of_dots(void **state)
{
    (void)state;
    struct canvas c;
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(canvas_init(&c, 5, 1, 0), 0);
    const struct rect all = {0, 0, 1, 5};
    canvas_put(&c, all, 0, 0, STYLE_TEXT, "x");
    canvas_color(&c, all, 0, 1, COLOR(0x102030), COLOR(0x405060), "▀");
    canvas_color(&c, all, 0, 2, COLOR(0x102030), 0, "▀");
    canvas_color(&c, all, 0, 3, COLOR(0xffffff), COLOR(0xb000b0), "N");
    canvas_color(&c, all, 0, 5, COLOR(0x102030), 0, "▀"); /* clipped */
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(canvas_write_svg(&c, NULL, out), 0);
    fclose(out);
    assert_non_null(strstr(text, "textLength=\"8.4\" lengthAdjust=\"spacingAndGlyphs\">x</text>\n"
                                 "<g transform=\"translate(8 12.25) scale(8.4 8.5)\" shape-rendering=\"crispEdges\">"
                                 "<path stroke=\"#102030\" d=\"M1 0h2\"/>\n"
                                 "<path stroke=\"#405060\" d=\"M1 1h1\"/>\n"
                                 "<path stroke=\"#b000b0\" d=\"M3 0h1M3 1h1\"/></g>\n"
                                 "<text fill=\"#ffffff\" x=\"33.2\" y=\"21\">N</text>\n</svg>"));
    free(text);
    canvas_free(&c);
}

/* Frames: what stays is written once, what changes comes and goes; the first is seen without an animation. */
static void movies(void **state)
{
    (void)state;
    struct canvas c[3];
    struct svg_frame frames[3];
    char *text = NULL;
    size_t bytes = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(canvas_init(&c[i], 4, 2, 0), 0);
        const struct rect all = {0, 0, 2, 4};
        canvas_put(&c[i], all, 0, 0, STYLE_TEXT, "same");
        canvas_put(&c[i], all, 1, 0, STYLE_TEXT, i ? "two" : "one");
        frames[i] = (struct svg_frame){&c[i], i == 1 ? 3 : 0.5};
    }
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(canvas_write_movie(frames, 3, NULL, out), 0);
    fclose(out);
    assert_non_null(strstr(text, "\n<style>\n"
                                 ".f0_1{animation:k0_1 4.00s step-end infinite}"
                                 "@keyframes k0_1{0.000%{visibility:visible}12.500%{visibility:hidden}}\n"
                                 ".f1_3{visibility:hidden;animation:k1_3 4.00s step-end infinite}"
                                 "@keyframes k1_3{0%{visibility:hidden}12.500%{visibility:visible}}\n"
                                 "</style>\n<text "));
    const char *same = strstr(text, ">same<");
    assert_true(same && !strstr(same + 1, ">same<"));
    assert_non_null(strstr(text, "<g class=\"f0_1\">\n<text "));
    assert_non_null(strstr(text, ">one</text>\n</g>\n<g class=\"f1_3\">\n"));
    assert_null(strstr(text, "<script"));
    free(text);
    for (int i = 0; i < 3; i++)
        canvas_free(&c[i]);
}

static void expect_sequence(const char *text, const char *term, const char *tmux, const char *expected)
{
    size_t n = 0;
    char *made = osc52_sequence(text, term, tmux, NULL, &n);
    assert_non_null(made);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(made, expected, n);
    free(made);
}

/* RFC 4648, section 10, and what is wrapped around it. */
static void clipboard_sequences(void **state)
{
    (void)state;
    expect_sequence("", "xterm", NULL, "\033]52;c;\a");
    expect_sequence("f", "xterm", NULL, "\033]52;c;Zg==\a");
    expect_sequence("fo", "xterm", "", "\033]52;c;Zm8=\a");
    expect_sequence("foo", NULL, NULL, "\033]52;c;Zm9v\a");
    expect_sequence("foobar", "xterm", NULL, "\033]52;c;Zm9vYmFy\a");
    expect_sequence("f", "screen", "x,1,0", "\033]52;c;Zg==\a\033Ptmux;\033\033]52;c;Zg==\a\033\\");
    expect_sequence("f", "screen.xterm", NULL, "\033P\033]52;c;Zg==\a\033\\");
    /* Pieces for GNU screen come together again. */
    char text[2000], joined[4096];
    size_t n = 0, whole_bytes = 0, joined_bytes = 0;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    char *whole = osc52_sequence(text, "xterm", NULL, NULL, &whole_bytes);
    char *pieces = osc52_sequence(text, "xterm", NULL, "1.tty", &n);
    for (size_t i = 0; i < n;) {
        const char *end = memmem(pieces + i, n - i, "\033\\", 2);
        assert_non_null(end);
        assert_memory_equal(pieces + i, "\033P", 2);
        const size_t bytes = (size_t)(end - pieces) - i - 2;
        assert_true(bytes <= 768);
        memcpy(joined + joined_bytes, pieces + i + 2, bytes);
        joined_bytes += bytes;
        i = (size_t)(end - pieces) + 2;
    }
    assert_int_equal(joined_bytes, whole_bytes);
    assert_memory_equal(joined, whole, whole_bytes);
    free(whole);
    free(pieces);
}

static void clicks_find_what_was_drawn_last(void **state)
{
    (void)state;
    struct hits hits = {.n = 0};
    struct canvas c = {.hits = &hits};
    const struct rect panel = {10, 20, 5, 30};
    enum hit_kind kind;
    int first, second;
    hit_add(&c, panel, (struct rect){1, 4, 3, 100}, HIT_TILE, 7, 2, 2); /* cut to the panel */
    hit_add(&c, panel, (struct rect){2, 4, 1, 4}, HIT_HEAD, 0, 9, 0);
    hit_add(&c, panel, (struct rect){5, 0, 1, 1}, HIT_KV, 0, 0, 0); /* outside */
    assert_int_equal(hits.n, 2);
    assert_true(hits_find(&hits, 11, 24, &kind, &first, &second));
    assert_true(kind == HIT_TILE && first == 7 && second == 2);
    assert_true(hits_find(&hits, 13, 49, &kind, &first, &second));
    assert_true(kind == HIT_TILE && first == 9 && second == 2 + 25 / 2);
    assert_false(hits_find(&hits, 13, 50, &kind, &first, &second));
    assert_true(hits_find(&hits, 12, 27, &kind, &first, &second));
    assert_true(kind == HIT_HEAD && second == 9);
    assert_false(hits_find(&hits, 10, 24, &kind, &first, &second));
    for (int i = 0; i < 2 * HITS_MAX; i++)
        hit_add(&c, panel, (struct rect){0, 0, 1, 1}, HIT_KV, 0, 0, 0);
    assert_int_equal(hits.n, HITS_MAX);
    c.hits = NULL;
    hit_add(&c, panel, (struct rect){0, 0, 1, 1}, HIT_KV, 0, 0, 0);
}

static void keys_of_ones_own(void **state)
{
    (void)state;
    char wrong[32];
    enum action holder;
    assert_int_equal(action_from_name("rerun"), ACTION_RERUN);
    assert_int_equal(action_from_name("nothing"), ACTION_NONE);
    assert_int_equal(action_bind(ACTION_RERUN, "F99", wrong, sizeof wrong, &holder), -1);
    assert_string_equal(wrong, "F99");
    assert_int_equal(holder, ACTION_NONE);
    assert_false(action_rebound(ACTION_RERUN));
    assert_int_equal(action_bind(ACTION_RERUN, "  C-r Left", wrong, sizeof wrong, &holder), 0);
    assert_int_equal(action_of_key('r' & 31), ACTION_RERUN);
    assert_int_equal(action_of_key(KEY_ID_LEFT), ACTION_RERUN);
    assert_int_equal(action_of_key('r'), ACTION_NONE);
    assert_int_equal(action_of_key('h'), ACTION_KV_PREV); /* has lost one of two */
    assert_true(action_rebound(ACTION_KV_PREV));
    assert_int_equal(action_bind(ACTION_QUIT, "q C-r", wrong, sizeof wrong, &holder), -1);
    assert_string_equal(wrong, "C-r");
    assert_int_equal(holder, ACTION_RERUN);
    assert_int_equal(action_bind(ACTION_QUIT, "", wrong, sizeof wrong, &holder), 0);
    assert_int_equal(action_of_key('q'), ACTION_NONE);
    assert_int_equal(action_of_key(KEY_ID_NONE), ACTION_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_clips_to_area_and_canvas),
        cmocka_unit_test(wide_characters_are_never_halved),
        cmocka_unit_test(what_a_terminal_acts_on_is_named),
        cmocka_unit_test(ascii_folds_every_glyph),
        cmocka_unit_test(utf8_round_trips),
        cmocka_unit_test(numbers_fit_their_columns),
        cmocka_unit_test(flow_counts_what_it_draws),
        cmocka_unit_test(cut_text_says_so),
        cmocka_unit_test(flow_fits_or_says_where_to_read_on),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(colors_are_a_choice),
        cmocka_unit_test(backgrounds_have_looks),
        cmocka_unit_test(the_terminal_says_its_background),
        cmocka_unit_test(looks_are_words),
        cmocka_unit_test(pictures),
        cmocka_unit_test(pictures_of_dots),
        cmocka_unit_test(movies),
        cmocka_unit_test(scales),
        cmocka_unit_test(clipboard_sequences),
        cmocka_unit_test(clicks_find_what_was_drawn_last),
        cmocka_unit_test(every_key_has_one_action),
        cmocka_unit_test(documented_keys_are_current),
        cmocka_unit_test(keys_of_ones_own), /* the last one: it changes the keys */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
