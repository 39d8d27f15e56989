#include "tests/unit/lib/screen.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

double screen_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int screen_property(VTermProp property, VTermValue *value, void *user)
{
    if (property == VTERM_PROP_ALTSCREEN)
        ((struct screen *)user)->altscreen = value->boolean;
    if (property == VTERM_PROP_MOUSE)
        ((struct screen *)user)->mouse = value->number;
    return 1;
}

void screen_start(struct screen *s, int cols, int rows, const char *const *environment, char *const *argv)
{
    static const VTermScreenCallbacks callbacks = {.settermprop = screen_property};
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    memset(s, 0, sizeof *s);
    s->cols = cols;
    s->rows = rows;
    s->pid = forkpty(&s->fd, NULL, NULL, &size);
    if (s->pid < 0) {
        perror("forkpty");
        abort();
    }
    if (s->pid == 0) {
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        unsetenv("NO_COLOR");
        for (; environment && *environment; environment++) {
            char *copy = strdup(*environment);
            if (!copy || (strchr(copy, '=') ? putenv(copy) : unsetenv(copy)) != 0)
                _exit(126);
        }
        execv(argv[0], argv);
        _exit(127);
    }
    s->vterm = vterm_new(rows, cols);
    vterm_set_utf8(s->vterm, 1);
    s->cells = vterm_obtain_screen(s->vterm);
    vterm_screen_set_callbacks(s->cells, &callbacks, s);
    vterm_screen_enable_altscreen(s->cells, 1);
    vterm_screen_reset(s->cells, 1);
}

void screen_send_bytes(struct screen *s, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(s->fd, bytes, n);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return;
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        }
    }
}

void screen_send(struct screen *s, const char *keys)
{
    screen_send_bytes(s, keys, strlen(keys));
}

/* Takes over what the program has written within `ms`; 0 once it has closed the terminal. */
static int screen_pump(struct screen *s, int ms)
{
    char bytes[8192];
    struct pollfd fd = {.fd = s->fd, .events = POLLIN};
    if (poll(&fd, 1, ms) <= 0)
        return 1;
    ssize_t n = read(s->fd, bytes, sizeof bytes);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    s->raw = realloc(s->raw, s->n_raw + (size_t)n);
    if (!s->raw)
        abort();
    memcpy(s->raw + s->n_raw, bytes, (size_t)n);
    s->n_raw += (size_t)n;
    vterm_input_write(s->vterm, bytes, (size_t)n);
    /* Answers to what the program asks the terminal. */
    size_t answer = vterm_output_read(s->vterm, bytes, sizeof bytes);
    screen_send_bytes(s, bytes, answer);
    return 1;
}

static size_t screen_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | code);
    return n;
}

const char *screen_text(struct screen *s)
{
    free(s->text);
    s->text = malloc((size_t)s->rows * ((size_t)s->cols * 4 + 1) + 1);
    if (!s->text)
        abort();
    char *out = s->text;
    for (int row = 0; row < s->rows; row++) {
        char *end = out;
        for (int col = 0; col < s->cols;) {
            VTermScreenCell cell;
            vterm_screen_get_cell(s->cells, (VTermPos){row, col}, &cell);
            uint32_t code = cell.chars[0] ? cell.chars[0] : ' ';
            out += screen_utf8(code, out);
            if (code != ' ')
                end = out;
            col += cell.width > 0 ? cell.width : 1;
        }
        out = end;
        *out++ = '\n';
    }
    *out = '\0';
    return s->text;
}

int screen_wait(struct screen *s, const char *text)
{
    const double until = screen_now() + SCREEN_PATIENCE_MS;
    for (int open = 1; open && screen_now() < until;) {
        if (strstr(screen_text(s), text))
            return 1;
        open = screen_pump(s, 50);
    }
    if (strstr(screen_text(s), text))
        return 1;
    fprintf(stderr, "waited in vain for '%s' on\n%s", text, s->text);
    return 0;
}

int screen_wait_gone(struct screen *s, const char *text)
{
    const double until = screen_now() + SCREEN_PATIENCE_MS;
    while (screen_now() < until) {
        if (!strstr(screen_text(s), text))
            return 1;
        if (!screen_pump(s, 50))
            break;
    }
    fprintf(stderr, "'%s' did not leave\n%s", text, screen_text(s));
    return 0;
}

void screen_resize(struct screen *s, int cols, int rows)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    s->cols = cols;
    s->rows = rows;
    vterm_set_size(s->vterm, rows, cols);
    ioctl(s->fd, TIOCSWINSZ, &size); /* the kernel sends SIGWINCH */
}

int screen_is_restored(struct screen *s)
{
    struct termios t;
    return tcgetattr(s->fd, &t) == 0 && (t.c_lflag & ICANON) && (t.c_lflag & ECHO) && (t.c_lflag & ISIG) &&
           !s->altscreen;
}

int screen_wait_exit(struct screen *s)
{
    const double until = screen_now() + SCREEN_PATIENCE_MS;
    while (!s->exited && screen_now() < until) {
        screen_pump(s, 20);
        s->exited = waitpid(s->pid, &s->status, WNOHANG) == s->pid;
    }
    if (!s->exited)
        return -1;
    for (int open = 1; open;) { /* what it wrote last */
        struct pollfd fd = {.fd = s->fd, .events = POLLIN};
        open = poll(&fd, 1, 0) > 0 && screen_pump(s, 0);
    }
    return s->status;
}

void screen_close(struct screen *s)
{
    if (!s->exited) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, &s->status, 0);
    }
    close(s->fd);
    vterm_free(s->vterm);
    free(s->text);
    free(s->raw);
}
