#include "tui/screen/term_signals.h"

#include "engine/base/file_map.h"
#include "tui/screen/term.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Signals that only wake the loop; the handler writes their number into the pipe. */
static const int noted_signals[] = {SIGWINCH, SIGCONT, SIGTSTP, SIGINT, SIGTERM, SIGHUP};
/* Signals that end the program at once: the terminal is restored first. */
static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define NOTED (sizeof noted_signals / sizeof *noted_signals)
#define FATAL (sizeof fatal_signals / sizeof *fatal_signals)

static struct {
    struct sigaction noted_before[NOTED], fatal_before[FATAL];
    struct termios before;
    char restore[256]; /* bytes that leave the alternate screen, show the cursor, reset attributes */
    size_t restore_bytes;
    char last_words[768];
    size_t last_bytes;
    void *stack; /* owned */
} on;

static int signal_pipe[2] = {-1, -1};

static void note_signal(int number)
{
    const int saved = errno;
    const unsigned char byte = (unsigned char)number;
    /* A full pipe already wakes the loop. */
    if (write(signal_pipe[1], &byte, 1) < 0)
        errno = saved;
    errno = saved;
}

/* Only what POSIX allows in a handler: curses is not called. */
static void restore_and_die(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (number == SIGBUS && file_map_repair(info->si_addr)) /* an open file was cut; the loop says so and ends */
        return;
    if (write(STDOUT_FILENO, on.restore, on.restore_bytes) < 0)
        errno = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &on.before);
    if (write(STDERR_FILENO, on.last_words, on.last_bytes) < 0)
        errno = 0;
    signal(number, SIG_DFL);
    raise(number);
}

/* Appends a capability without its padding ("$<5>"). */
static void append_capability(const char *text)
{
    if (!text || text == (const char *)-1)
        return;
    while (*text && on.restore_bytes < sizeof on.restore) {
        if (text[0] == '$' && text[1] == '<') {
            text += strcspn(text, ">");
            text += *text == '>';
        } else {
            on.restore[on.restore_bytes++] = *text++;
        }
    }
}

int term_signals_keep(void)
{
    return tcgetattr(STDIN_FILENO, &on.before);
}

void term_signals_restore_with(const char *const restore[], size_t n)
{
    on.restore_bytes = 0;
    for (size_t i = 0; i < n; i++)
        append_capability(restore[i]);
}

int term_signals_take(void)
{
    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    on.restore_bytes = 0;
    /* A stack of its own: an overflow of the stack is a crash too. */
    const size_t stack_bytes = 64u << 10;
    on.stack = malloc(stack_bytes);
    const stack_t stack = {.ss_sp = on.stack, .ss_size = stack_bytes};
    const bool has_stack = on.stack && sigaltstack(&stack, NULL) == 0;
    struct sigaction act = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < NOTED; i++)
        sigaction(noted_signals[i], &act, &on.noted_before[i]);
    act.sa_sigaction = restore_and_die;
    act.sa_flags = SA_SIGINFO | (has_stack ? SA_ONSTACK : 0);
    for (size_t i = 0; i < FATAL; i++)
        sigaction(fatal_signals[i], &act, &on.fatal_before[i]);
    return 0;
}

void term_signals_give_back(void)
{
    for (size_t i = 0; i < NOTED; i++)
        sigaction(noted_signals[i], &on.noted_before[i], NULL);
    for (size_t i = 0; i < FATAL; i++)
        sigaction(fatal_signals[i], &on.fatal_before[i], NULL);
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    free(on.stack);
    on.stack = NULL;
    for (int i = 0; i < 2; i++) {
        close(signal_pipe[i]);
        signal_pipe[i] = -1;
    }
}

int term_signal_fd(void)
{
    return signal_pipe[0];
}

void term_signals_become(char *const *argv)
{
    for (size_t i = 0; i < NOTED; i++)
        sigaction(noted_signals[i], &on.noted_before[i], NULL);
    for (size_t i = 0; i < FATAL; i++)
        sigaction(fatal_signals[i], &on.fatal_before[i], NULL);
    execv(argv[0], argv);
    _exit(127);
}

void term_last_words(const char *text)
{
    const size_t n = strlen(text) < sizeof on.last_words ? strlen(text) : sizeof on.last_words;
    on.last_bytes = 0; /* a crash in between says nothing rather than half of it */
    memcpy(on.last_words, text, n);
    on.last_bytes = n;
}
