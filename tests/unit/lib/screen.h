/* A program in a pseudo-terminal, its screen kept by libvterm: start, send keys, wait for text, resize, read. */
#ifndef TEST_SCREEN_H
#define TEST_SCREEN_H

#include <stddef.h>
#include <sys/types.h>
#include <vterm.h>

/* How long a program may take to show something, ms. Only a failing test waits that long. */
#define SCREEN_PATIENCE_MS 20000

struct screen {
    pid_t pid;
    int fd; /* owned: the master side */
    int cols, rows;
    int altscreen; /* 1 while the program shows its own screen */
    int mouse;     /* what mouse events the program asks for: VTERM_PROP_MOUSE_* */
    int exited, status;
    VTerm *vterm; /* owned */
    VTermScreen *cells;
    char *text; /* owned: the last screen_text() */
    char *raw;  /* owned, [n_raw]: all that the program has written */
    size_t n_raw;
};

double screen_now(void); /* ms */
/* environment: NULL-terminated "NAME=value" (or "NAME" to unset), on top of this process's own and
   TERM=xterm-256color, LC_ALL=C.UTF-8. */
void screen_start(struct screen *s, int cols, int rows, const char *const *environment, char *const *argv);
void screen_send_bytes(struct screen *s, const char *bytes, size_t n);
void screen_send(struct screen *s, const char *keys);
/* The screen as text: a line per row, trailing blanks removed. Valid until the next call. */
const char *screen_text(struct screen *s);
/* 1 once the text is on the screen; 0 (and the screen on stderr) if that does not come. */
int screen_wait(struct screen *s, const char *text);
/* 1 once the text has left the screen. */
int screen_wait_gone(struct screen *s, const char *text);
void screen_resize(struct screen *s, int cols, int rows);
/* 1 if the terminal is in the state a shell expects: lines, echo, signals. */
int screen_is_restored(struct screen *s);
/* Waits for the program's end; its wait status, or -1 if it does not end. The terminal stays readable. */
int screen_wait_exit(struct screen *s);
void screen_close(struct screen *s);

#endif
