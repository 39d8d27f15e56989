#define NCURSES_WIDECHAR 1
#include "tui/screen/term.h"

#include "engine/base/clock.h"
#include "engine/base/utf8.h"
#include "tui/keys/actions.h"
#include "tui/screen/osc52.h"
#include "tui/screen/scale.h"
#include "tui/screen/term_signals.h"
#include "tui/screen/theme.h"
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#define ESCAPE_MS 25 /* an Esc alone waits this long: sequences arrive in one piece even over ssh */

static struct {
    SCREEN *screen;     /* owned; NULL: not started */
    struct theme theme; /* the user's, with the background that the terminal answers */
    double asked;       /* monotonic seconds: when it was asked for it; 0: it was not, or it has answered */
    int has_mouse;      /* 1: switched on while the screen is ours */
    struct mouse mouse;
    int colors; /* 0, 256 or COLORS_ALL: what cells may have besides their styles */
    attr_t attributes[STYLE_COUNT];
    short pairs[STYLE_COUNT];
    struct cell *drawn; /* owned, [rows][cols]: what curses was given last */
    int drawn_cols, drawn_rows;
    int ended_by;
    int closed;
} term;

/* Buttons and drags (1002) as decimal numbers (1006): xterm's control sequences, "Mouse Tracking". */
static const char mouse_on[] = "\033[?1002h\033[?1006h", mouse_off[] = "\033[?1006l\033[?1002l";
#define MOUSE_BEGINS "\033[<"
#define MOUSE_CODE (KEY_MAX + 1) /* what curses returns for that */

/* The background (OSC 11), and what every terminal answers (DA1): then the first comes no more. */
static const char background_ask[] = "\033]11;?\033\\\033[c";
#define BACKGROUND_BEGINS "\033]11;"
#define BACKGROUND_CODE (KEY_MAX + 2)
#define DEVICE_BEGINS "\033[?"
#define DEVICE_CODE (KEY_MAX + 3)
#define ANSWER_MS 200     /* how long an answer is waited for where it would reach the shell, or an editor */
#define ANSWER_LATEST_S 2 /* since it was asked for: it does not come any more */

bool term_utf8(void)
{
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static attr_t attributes_of(unsigned set)
{
    return (set & ATTR_BOLD ? A_BOLD : A_NORMAL) | (set & ATTR_DIM ? A_DIM : A_NORMAL) |
           (set & ATTR_REVERSE ? A_REVERSE : A_NORMAL) | (set & ATTR_UNDERLINE ? A_UNDERLINE : A_NORMAL);
}

/* Terminals that have all colors say so in COLORTERM: terminfo has no word for it that all agree on. */
static bool has_all_colors(void)
{
    const char *said = getenv("COLORTERM");
    return said && (strcmp(said, "truecolor") == 0 || strcmp(said, "24bit") == 0);
}

static void make_styles(void)
{
    int colors = 0;
    if (has_colors() && start_color() == OK) {
        use_default_colors();
        colors = theme_colors(COLORS);
    }
    term.colors = colors < 256 ? 0 : has_all_colors() ? COLORS_ALL : 256;
    for (int i = 0; i < STYLE_COUNT; i++) {
        const struct look look = theme_look(&term.theme, i, colors);
        term.attributes[i] = attributes_of(look.attributes);
        term.pairs[i] = 0;
        /* The numbers are curses' own; -1 is the default in both. */
        if ((look.fg != ANSI_DEFAULT || look.bg != ANSI_DEFAULT) && i + 1 < COLOR_PAIRS &&
            init_pair((short)(i + 1), (short)look.fg, (short)look.bg) == OK)
            term.pairs[i] = (short)(i + 1);
    }
}

/* All that is written beside curses; what it has in store has been refreshed. */
static void write_all(const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t written = write(STDOUT_FILENO, bytes, n);
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        }
    }
}

static void take_mouse(void)
{
    if (term.has_mouse)
        write_all(mouse_on, sizeof mouse_on - 1);
}

static void ask_background(void)
{
    /* Fewer colors have no palette for it, and the console's driver has printed what it does not know. */
    const char *name = getenv("TERM");
    if (term.theme.background != BACKGROUND_UNKNOWN || !term.colors || (name && strncmp(name, "linux", 5) == 0))
        return;
    write_all(background_ask, sizeof background_ask - 1);
    term.asked = clock_seconds();
}

/* Answers that are under way come here, not to who reads the terminal next. */
static void await_answers(void)
{
    const double until = clock_seconds() + ANSWER_MS * 1e-3;
    while (term.asked > 0 && clock_seconds() < until && clock_seconds() < term.asked + ANSWER_LATEST_S) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&fd, 1, ANSWER_MS / 10) > 0 && term_read() == TERM_ENDED)
            break;
    }
    term.asked = 0;
}

/* Leaves the screen to the shell or to another program. */
static void leave(void)
{
    if (!term.screen)
        return;
    await_answers();
    if (term.has_mouse)
        write_all(mouse_off, sizeof mouse_off - 1);
    endwin();
}

static void stop_at_exit(void)
{
    term_stop();
}

/* 0 if $TERM names a terminal that a screen can be drawn on. */
static int check_terminal(struct err *err)
{
    const char *name = getenv("TERM");
    int found = 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(err, ERR_TERMINAL, "", "standard input and output must be a terminal");
    if (!name || !*name)
        return err_set(err, ERR_TERMINAL, "",
                       "TERM is not set: expected the name of a terminal, such as xterm-256color");
    if (setupterm(name, STDOUT_FILENO, &found) != OK)
        return err_set(err, ERR_TERMINAL, "", "TERM is '%s', which this system does not know: try TERM=xterm", name);
    const bool moves = cursor_address != NULL;
    del_curterm(cur_term);
    return moves ? 0 : err_set(err, ERR_TERMINAL, "", "terminal '%s' cannot move its cursor: try TERM=xterm", name);
}

int term_start(const struct term_options *o, struct err *err)
{
    static int registered;
    if (check_terminal(err) != 0)
        return -1;
    term_utf8();
    if (term_signals_keep() != 0)
        return err_errno(err, "", "the terminal cannot be read");
    if (term_signals_take() != 0)
        return err_errno(err, "", "no pipe for signals");
    term.screen = newterm(NULL, stdout, stdin);
    if (!term.screen) {
        term_signals_give_back();
        return err_set(err, ERR_TERMINAL, "", "the terminal cannot be used");
    }
    term.theme = o->theme ? *o->theme : (struct theme){.background = BACKGROUND_UNKNOWN};
    /* A terminal without a mouse may show what asks for one. */
    term.has_mouse = o->mouse && key_mouse && *key_mouse;
    /* Those of terminfo are of the screen that newterm() has made current. */
    const char *const restore[] = {term.has_mouse ? mouse_off : NULL, exit_attribute_mode, keypad_local, cursor_normal,
                                   exit_ca_mode};
    term_signals_restore_with(restore, sizeof restore / sizeof *restore);
    set_escdelay(ESCAPE_MS);
    raw(); /* Ctrl-C and Ctrl-Z are keys: no signal reaches a debuggee of ours */
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    if (term.has_mouse)
        define_key(MOUSE_BEGINS, MOUSE_CODE);
    define_key(BACKGROUND_BEGINS, BACKGROUND_CODE);
    define_key(DEVICE_BEGINS, DEVICE_CODE);
    curs_set(0);
    take_mouse();
    make_styles();
    ask_background();
    term.ended_by = 0;
    term.closed = 0;
    if (!registered && atexit(stop_at_exit) == 0)
        registered = 1;
    return 0;
}

void term_stop(void)
{
    if (!term.screen)
        return;
    if (!term.closed)
        leave();
    term_signals_give_back();
    delscreen(term.screen);
    term.screen = NULL;
    free(term.drawn);
    term.drawn = NULL;
}

int term_colors(void)
{
    return term.colors;
}

void term_size(int *cols, int *rows)
{
    *cols = COLS > 0 ? COLS : 1;
    *rows = LINES > 0 ? LINES : 1;
}

int term_fd(void)
{
    return STDIN_FILENO;
}

int term_signal(void)
{
    return term.ended_by;
}

static int take_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return TERM_NOTHING;
    resizeterm(size.ws_row, size.ws_col);
    term_redraw_all();
    return TERM_RESIZED;
}

static int read_signal(void)
{
    unsigned char byte;
    while (read(term_signal_fd(), &byte, 1) == 1) {
        switch (byte) {
        case SIGWINCH:
            return take_size();
        case SIGCONT:
            term_redraw_all();
            return TERM_RESIZED;
        case SIGTSTP:
            term_suspend();
            return TERM_RESIZED;
        case SIGINT:
            return TERM_INTERRUPTED;
        default:
            term.ended_by = byte;
            return TERM_ENDED;
        }
    }
    return TERM_NOTHING;
}

static int key_of_curses(wint_t code)
{
    static const struct {
        int curses, id;
    } keys[] = {
#define KEY(id, name, curses) {curses, id},
#include "tui/keys/keys.def"
#undef KEY
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].curses != 0 && (wint_t)keys[i].curses == code)
            return keys[i].id;
    return KEY_ID_NONE;
}

static int key_of_character(wint_t code)
{
    switch (code) {
    case '\r':
    case '\n':
        return KEY_ID_ENTER;
    case '\t':
        return KEY_ID_TAB;
    case 27:
        return KEY_ID_ESC;
    case 8:
    case 127:
        return KEY_ID_BACKSPACE;
    case ' ':
        return KEY_ID_SPACE;
    default:
        return (int)code;
    }
}

/* "64;10;5M" behind MOUSE_BEGINS: button, column, row; m: released. What is no event of ours is a key without a name.
 */
static int read_mouse(void)
{
    int value[3] = {0}, n = 0;
    wint_t code = 0;
    timeout(ESCAPE_MS);
    while (n < 3 && get_wch(&code) == OK && ((code >= '0' && code <= '9') || code == ';')) {
        if (code == ';')
            n++;
        else if (value[n] < 100000)
            value[n] = value[n] * 10 + (int)(code - '0');
    }
    nodelay(stdscr, TRUE);
    /* Bits 2 to 4 are Shift, Meta, Control; 5 is motion, 6 the wheel. */
    const int button = value[0] & 3, wheel = value[0] & 64, moved = value[0] & 32;
    if (n != 2 || (code != 'M' && code != 'm') || value[1] < 1 || value[2] < 1 || (wheel ? button > 1 : button != 0))
        return KEY_ID_NONE;
    term.mouse.col = value[1] - 1;
    term.mouse.row = value[2] - 1;
    if (wheel)
        term.mouse.kind = button == 0 ? MOUSE_WHEEL_UP : MOUSE_WHEEL_DOWN;
    else
        term.mouse.kind = code == 'm' ? MOUSE_RELEASE : moved ? MOUSE_DRAG : MOUSE_PRESS;
    return TERM_MOUSE;
}

/* "rgb:RRRR/GGGG/BBBB" and BEL or ST behind BACKGROUND_BEGINS. */
static int read_background(void)
{
    char answer[64];
    size_t n = 0;
    wint_t code = 0;
    timeout(ESCAPE_MS);
    while (get_wch(&code) == OK && code != 7 && code != 27)
        if (n + 1 < sizeof answer && code < 128)
            answer[n++] = (char)code;
    if (code == 27)
        get_wch(&code); /* the backslash of ST */
    nodelay(stdscr, TRUE);
    answer[n] = '\0';
    const enum background found = theme_background_of(answer);
    if (term.theme.background != BACKGROUND_UNKNOWN || found == BACKGROUND_UNKNOWN)
        return TERM_RESIZED; /* no key */
    term.theme.background = found;
    make_styles();
    term_redraw_all();
    return TERM_RESIZED;
}

/* "62;22c" behind DEVICE_BEGINS. */
static int read_device(void)
{
    wint_t code = 0;
    timeout(ESCAPE_MS);
    while (get_wch(&code) == OK && ((code >= '0' && code <= '9') || code == ';'))
        continue;
    nodelay(stdscr, TRUE);
    term.asked = 0;
    return TERM_RESIZED;
}

bool term_light(void)
{
    return term.theme.background == BACKGROUND_LIGHT;
}

const struct mouse *term_mouse(void)
{
    return &term.mouse;
}

/* 1 if the terminal has gone: curses reports that as no key, for ever. */
static bool hung_up(void)
{
    int waiting = 0;
    return ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0 && errno != EINTR;
}

int term_read(void)
{
    int event = read_signal();
    if (event != TERM_NOTHING)
        return event;
    wint_t code;
    switch (get_wch(&code)) {
    case OK:
        return key_of_character(code);
    case KEY_CODE_YES:
        /* KEY_RESIZE is what resizeterm() itself leaves behind: the size is taken already. */
        return code == KEY_RESIZE        ? TERM_RESIZED
               : code == MOUSE_CODE      ? read_mouse()
               : code == BACKGROUND_CODE ? read_background()
               : code == DEVICE_CODE     ? read_device()
                                         : key_of_curses(code);
    default:
        if (hung_up()) {
            term.closed = 1;
            return TERM_ENDED;
        }
        return TERM_NOTHING;
    }
}

static void draw_row(const struct canvas *c, int row)
{
    const struct cell *line = c->cells + (size_t)row * (size_t)c->cols;
    wchar_t run[256];
    for (int x = 0; x < c->cols;) {
        const uint8_t style = line[x].style;
        const int start = x;
        size_t n = 0;
        for (; x < c->cols && line[x].style == style && n + 1 < sizeof run / sizeof *run; x++)
            if (line[x].code != 0)
                run[n++] = (wchar_t)line[x].code;
        run[n] = L'\0';
        attr_set(term.attributes[style], term.pairs[style], NULL);
        mvaddnwstr(row, start, run, (int)n);
    }
}

static bool same_row(const struct cell *a, const struct cell *b, int cols)
{
    for (int x = 0; x < cols; x++)
        if (a[x].code != b[x].code || a[x].style != b[x].style || a[x].ink != b[x].ink || a[x].paper != b[x].paper)
            return false;
    return true;
}

static bool is_colored(const struct cell *cell)
{
    return cell->ink || cell->paper;
}

/* A cell has its style's colors again: curses does not know that it had others. */
static bool loses_colors(const struct cell *before, const struct cell *now, int cols)
{
    for (int x = 0; x < cols; x++)
        if (is_colored(&before[x]) && !is_colored(&now[x]))
            return true;
    return false;
}

/* "38;2;R;G;B" of an ink, "48;5;N" of a paper, "39": the terminal's own. */
static int color_words(char *out, size_t bytes, uint32_t color, bool paper)
{
    const int kind = paper ? 48 : 38;
    if (!color)
        return snprintf(out, bytes, "%d", kind + 1);
    if (term.colors < COLORS_ALL)
        return snprintf(out, bytes, "%d;5;%d", kind, scale_nearest(color));
    return snprintf(out, bytes, "%d;2;%d;%d;%d", kind, (int)(color >> 16 & 0xff), (int)(color >> 8 & 0xff),
                    (int)(color & 0xff));
}

/* Cells in colors of their own: curses has put their characters there, in its pairs there is no room for all colors.
   Cursor and attributes are as curses left them afterwards (DECSC, DECRC). */
static void color_row(const struct canvas *c, int row)
{
    const struct cell *line = c->cells + (size_t)row * (size_t)c->cols;
    char out[4096], ink[32], paper[32];
    size_t used = 0;
    uint32_t last_ink = 0, last_paper = 0;
    int expected = -1; /* column of the terminal's cursor */
    for (int x = 0; x < c->cols; x++) {
        if (!is_colored(&line[x]))
            continue;
        if (used + 128 > sizeof out) {
            write_all(out, used);
            used = 0;
        }
        if (expected < 0)
            used += (size_t)snprintf(out + used, sizeof out - used, "\0337\033[0m");
        if (x != expected)
            used += (size_t)snprintf(out + used, sizeof out - used, "\033[%d;%dH", row + 1, x + 1);
        if (expected < 0 || line[x].ink != last_ink || line[x].paper != last_paper) {
            color_words(ink, sizeof ink, line[x].ink, false);
            color_words(paper, sizeof paper, line[x].paper, true);
            used += (size_t)snprintf(out + used, sizeof out - used, "\033[%s;%sm", ink, paper);
        }
        used += utf8_write(line[x].code, out + used);
        last_ink = line[x].ink;
        last_paper = line[x].paper;
        expected = x + 1;
    }
    if (expected >= 0)
        used += (size_t)snprintf(out + used, sizeof out - used, "\033[0m\0338");
    write_all(out, used);
}

void term_draw(const struct canvas *c)
{
    const size_t row_bytes = (size_t)c->cols * sizeof *c->cells;
    if (!term.drawn || term.drawn_cols != c->cols || term.drawn_rows != c->rows) {
        free(term.drawn);
        term.drawn = calloc((size_t)c->rows, row_bytes);
        term.drawn_cols = c->cols;
        term.drawn_rows = c->rows;
        erase();
    }
    bool *drawn = calloc((size_t)c->rows, sizeof *drawn); /* NULL: all that has colors is written again */
    for (int row = 0; row < c->rows && row < LINES; row++) {
        const struct cell *now = c->cells + (size_t)row * (size_t)c->cols;
        struct cell *before = term.drawn ? term.drawn + (size_t)row * (size_t)c->cols : NULL;
        if (before && same_row(before, now, c->cols))
            continue;
        draw_row(c, row);
        if (before && loses_colors(before, now, c->cols))
            wredrawln(stdscr, row, 1);
        if (drawn)
            drawn[row] = true;
        if (before)
            memcpy(before, now, row_bytes);
    }
    refresh();
    for (int row = 0; row < c->rows && row < LINES && term.colors; row++)
        if (!drawn || drawn[row])
            color_row(c, row);
    free(drawn);
}

void term_redraw_all(void)
{
    free(term.drawn);
    term.drawn = NULL;
    if (term.screen)
        clearok(stdscr, TRUE);
}

/* The screen is ours again. */
static void come_back(void)
{
    if (!term.screen)
        return;
    take_size();
    term_redraw_all();
    refresh();
    take_mouse();
}

void term_suspend(void)
{
    if (!term.screen)
        return;
    struct sigaction act = {.sa_handler = SIG_DFL}, before;
    sigemptyset(&act.sa_mask);
    leave();
    /* The whole group, as the terminal's own Ctrl-Z would: the shell waits for all of it (make and its children). */
    sigaction(SIGTSTP, &act, &before);
    kill(0, SIGTSTP);
    sigaction(SIGTSTP, &before, NULL);
    come_back();
}

void term_copy(const char *text)
{
    size_t n = 0;
    char *sequence = term.screen ? osc52_sequence(text, getenv("TERM"), getenv("TMUX"), getenv("STY"), &n) : NULL;
    if (!sequence)
        return;
    refresh();
    write_all(sequence, n);
    free(sequence);
}

int term_run(char *const *argv, int *status)
{
    const bool ours = term.screen != NULL;
    /* Ctrl-C at the terminal is the program's; Ctrl-Z stops both, so that the shell is back and fg continues both. */
    const struct sigaction ignored = {.sa_handler = SIG_IGN}, by_default = {.sa_handler = SIG_DFL};
    struct sigaction interrupt, quit, stop;
    leave();
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0 && !ours) {
        execv(argv[0], argv);
        _exit(127);
    }
    if (pid == 0)
        term_signals_become(argv);
    sigaction(SIGINT, &ignored, &interrupt);
    sigaction(SIGQUIT, &ignored, &quit);
    sigaction(SIGTSTP, &by_default, &stop);
    int failed = pid < 0;
    while (!failed && waitpid(pid, status, 0) < 0)
        failed = errno != EINTR;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    sigaction(SIGTSTP, &stop, NULL);
    come_back();
    return failed ? -1 : 0;
}
