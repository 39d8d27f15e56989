#include "engine/base/text.h"

#include "engine/base/clock.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 4 }; /* bytes of a character in UTF-8 */

/* One stream. A buffer ends anywhere: the beginning of a character waits for its rest. */
static struct stream {
    FILE *file;
    int fd;
    char begun[LONGEST];
    size_t n_begun;
} streams[2] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

static int out_failure; /* errno of the first write to standard output that failed */

int text_out_end(void)
{
    if (fflush(text_out()) != 0 && !out_failure)
        out_failure = errno;
    return out_failure;
}

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno != EINTR) {
            if (fd == STDOUT_FILENO && !out_failure)
                out_failure = errno;
            return -1;
        }
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        }
    }
    return 0;
}

static char kept[512];        /* with a line feed */
static atomic_int kept_bytes; /* 0 while it is being written */

void text_keep(const char *line)
{
    atomic_store(&kept_bytes, 0);
    /* What a terminal shows of the progress goes first. */
    const int n = snprintf(kept, sizeof kept, "%sattnscope: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", line);
    atomic_store(&kept_bytes, n < (int)sizeof kept ? n : 0);
}

void text_write_kept(void)
{
    write_all(STDERR_FILENO, kept, (size_t)atomic_load(&kept_bytes));
}

/* What is shown for one character, at most UTF8_NAME_BYTES; returns its length. */
static size_t show(const char *text, size_t length, uint32_t code, char *out)
{
    const size_t named = code == '\n' || code == '\t' ? 0 : utf8_name(text, length, code, out);
    if (named == 0)
        memcpy(out, text, length);
    return named ? named : length;
}

/* How many bytes the character that begins with this one has; 1 where none does. */
static size_t wanted(char first)
{
    const unsigned char byte = (unsigned char)first;
    return byte < 0xC2 || byte > 0xF4 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/* 1: the n bytes may be the beginning of a character, of which more is to come. */
static bool unfinished(const char *text, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            return false;
    return n < wanted(text[0]);
}

/* Shows text[0..n); returns how many bytes were not taken, being a beginning, or -1. */
static ssize_t show_all(int fd, const char *text, size_t n, int ended)
{
    char out[2048];
    size_t used = 0, at = 0;
    while (at < n && (ended || !unfinished(text + at, n - at))) {
        char one[LONGEST + 1] = {0}; /* utf8_decode() stops at a NUL */
        uint32_t code;
        memcpy(one, text + at, n - at < LONGEST ? n - at : LONGEST);
        size_t length = utf8_decode(one, &code);
        if (length == 0) /* a NUL is a byte like others here */
            length = 1;
        if (used + UTF8_NAME_BYTES > sizeof out) {
            if (write_all(fd, out, used) != 0)
                return -1;
            used = 0;
        }
        used += show(one, length, code, out + used);
        at += length;
    }
    return write_all(fd, out, used) != 0 ? -1 : (ssize_t)(n - at);
}

static ssize_t stream_write(void *cookie, const char *bytes, size_t n)
{
    struct stream *s = cookie;
    size_t taken = 0;
    while (s->n_begun > 0 && taken < n) {
        s->begun[s->n_begun++] = bytes[taken++];
        if (unfinished(s->begun, s->n_begun))
            continue;
        const ssize_t left = show_all(s->fd, s->begun, s->n_begun, 0);
        if (left < 0)
            return 0;
        memmove(s->begun, s->begun + s->n_begun - (size_t)left, (size_t)left);
        s->n_begun = (size_t)left;
    }
    const ssize_t left = show_all(s->fd, bytes + taken, n - taken, 0);
    if (left < 0)
        return 0;
    memcpy(s->begun + s->n_begun, bytes + n - (size_t)left, (size_t)left);
    s->n_begun += (size_t)left;
    return (ssize_t)n;
}

static int stream_close(void *cookie)
{
    struct stream *s = cookie;
    return show_all(s->fd, s->begun, s->n_begun, 1) < 0 ? EOF : 0;
}

int text_open(void)
{
    for (int i = 0; i < 2; i++) {
        struct stream *s = &streams[i];
        if (!s->file)
            s->file = fopencookie(s, "w", (cookie_io_functions_t){.write = stream_write, .close = stream_close});
        if (!s->file) {
            static const char words[] = "attnscope: out of memory for standard output\n";
            (void)write_all(STDERR_FILENO, words, sizeof words - 1);
            return -1;
        }
        setvbuf(s->file, NULL, s->fd == STDERR_FILENO || isatty(s->fd) ? _IOLBF : _IOFBF, BUFSIZ);
    }
    return 0;
}

FILE *text_out(void)
{
    return streams[0].file;
}

FILE *text_err(void)
{
    return streams[1].file;
}

char *text_name(const char *text, size_t n, char *out, size_t bytes)
{
    static const char cut[] = "...";
    size_t used = 0, room = 0; /* room: as much of the text as leaves place for "..." */
    for (size_t at = 0; at < n;) {
        char one[LONGEST + 1] = {0}, shown[UTF8_NAME_BYTES]; /* utf8_decode() stops at a NUL */
        uint32_t code;
        memcpy(one, text + at, n - at < LONGEST ? n - at : LONGEST);
        size_t length = utf8_decode(one, &code);
        length = length ? length : 1;
        size_t named = utf8_name(one, length, code, shown);
        if (named == 0)
            memcpy(shown, one, named = length);
        if (used + named >= bytes) {
            memcpy(out + room, cut, sizeof cut);
            return out;
        }
        memcpy(out + used, shown, named);
        used += named;
        room = used + sizeof cut <= bytes ? used : room;
        at += length;
    }
    out[used] = '\0';
    return out;
}

void text_inline(FILE *out, const char *format, ...)
{
    char text[8192], shown[2 * sizeof text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_name(text, strlen(text), shown, sizeof shown);
    fputs(shown, out);
}

void text_failure(FILE *out, const struct err *err)
{
    text_inline(out, "%s%s", err->where, err->where[0] ? ": " : "");
    if (err->code == ERR_BUILD)
        fputs(err->message, out);
    else if (err->code != ERR_RUN)
        text_inline(out, "%s", err->message);
    else /* a listing may follow the first line */
        for (const char *line = err->message; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            fputs(line > err->message ? "\n  " : "", out);
            text_inline(out, "%.*s", (int)strcspn(line, "\n"), line);
        }
    fputs("\n", out);
}

/* Where no terminal replaces lines: whether one is due. A run that takes less than the first pause says nothing. */
static bool plain_line_is_due(void)
{
    enum { FIRST_S = 5, EVERY_S = 30 };
    static double due; /* 0: nothing has been told yet */
    const char *wanted = getenv("ATTNSCOPE_PROGRESS");
    const double now = clock_seconds();
    if (wanted && strcmp(wanted, "no") == 0)
        return false;
    if (due <= 0)
        due = now + FIRST_S;
    if (now < due)
        return false;
    due = now + EVERY_S;
    return true;
}

void text_progress(const char *line)
{
    enum { COLUMNS = 79 };
    char shown[4 * COLUMNS + 1], whole[sizeof shown + COLUMNS + 8];
    int columns = 0, n;
    size_t end = 0;
    uint32_t code;
    text_name(line, strlen(line), shown, sizeof shown);
    if (isatty(STDERR_FILENO)) {
        for (size_t length; (length = utf8_decode(shown + end, &code)) > 0; end += length)
            if ((columns += utf8_width(code)) > COLUMNS) {
                columns -= utf8_width(code);
                break;
            }
        n = snprintf(whole, sizeof whole, "\r%.*s%*s\r", (int)end, shown, COLUMNS - columns, "");
    } else {
        n = line[0] && plain_line_is_due() ? snprintf(whole, sizeof whole, "%s\n", shown) : 0;
    }
    fflush(text_err());
    if (n > 0 && write_all(STDERR_FILENO, whole, (size_t)n) != 0)
        errno = 0;
}
