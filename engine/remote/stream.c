#include "engine/remote/stream.h"

#include "engine/base/bounded_json.h"
#include "engine/base/clock.h"
#include "engine/build/cache.h"
#include "engine/build/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 50
#define PIECE_BYTES ((size_t)1 << 16)
#define LINE_MAX_BYTES ((size_t)8 << 20) /* a list of 4096 files, with names of 512 bytes */
#define GREETING_MAX_BYTES ((size_t)1 << 20)

#define QUOTED(x) #x
#define QUOTED_VALUE(x) QUOTED(x)
const char remote_version[] = QUOTED_VALUE(ATTNSCOPE_VERSION);

/* Until the descriptor is ready, or a cancel. */
static bool wait_for(const struct stream *s, int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};
    while (!process_cancelled(s->progress) && (s->until <= 0 || clock_seconds() < s->until))
        if (poll(&one, 1, TICK_MS) > 0)
            return true;
    return false;
}

static int make_room(struct stream *s)
{
    if (s->begin) {
        memmove(s->kept, s->kept + s->begin, s->end - s->begin);
        s->end -= s->begin;
        s->begin = 0;
    }
    if (s->end + PIECE_BYTES <= s->room)
        return 0;
    char *more = realloc(s->kept, 2 * s->room + PIECE_BYTES);
    if (!more)
        return -1;
    s->room = 2 * s->room + PIECE_BYTES;
    s->kept = more;
    return 0;
}

static enum stream_got take(struct stream *s)
{
    if (make_room(s) != 0)
        return STREAM_BROKEN;
    for (;;) {
        if (!wait_for(s, s->in, POLLIN))
            return STREAM_CANCELLED;
        const ssize_t n = read(s->in, s->kept + s->end, s->room - s->end);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return STREAM_END;
        s->end += (size_t)n;
        s->received += (uint64_t)n;
        return STREAM_OK;
    }
}

/* The text of the next line. */
static enum stream_got next_line(struct stream *s, const char **line, size_t *n)
{
    for (size_t searched = 0;;) {
        const char *from = s->kept ? s->kept + s->begin : NULL;
        const char *end = from ? memchr(from + searched, '\n', s->end - s->begin - searched) : NULL;
        if (end) {
            *line = from;
            *n = (size_t)(end - from);
            s->begin += *n + 1;
            return STREAM_OK;
        }
        searched = s->end - s->begin;
        if (searched > LINE_MAX_BYTES)
            return STREAM_BROKEN;
        const enum stream_got got = take(s);
        if (got != STREAM_OK)
            return got;
    }
}

enum stream_got stream_line(struct stream *s, json_t **out)
{
    const char *line;
    size_t n;
    *out = NULL;
    const enum stream_got got = next_line(s, &line, &n);
    if (got != STREAM_OK)
        return got;
    *out = bounded_json(line, n, "", NULL);
    if (json_is_object(*out))
        return STREAM_OK;
    json_decref(*out);
    *out = NULL;
    return STREAM_BROKEN;
}

enum stream_got stream_greeting(struct stream *s, const char *key, json_t **out)
{
    const char *line;
    size_t n;
    while (s->received < GREETING_MAX_BYTES) {
        const enum stream_got got = next_line(s, &line, &n);
        if (got != STREAM_OK)
            return got;
        *out = n && line[0] == '{' ? bounded_json(line, n, "", NULL) : NULL;
        if (json_object_get(*out, key))
            return STREAM_OK;
        json_decref(*out);
        *out = NULL;
    }
    return STREAM_BROKEN;
}

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR)
            return -1;
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

enum stream_got stream_to_file(struct stream *s, uint64_t bytes, int fd)
{
    while (bytes) {
        if (s->begin == s->end) {
            const enum stream_got got = take(s);
            if (got != STREAM_OK)
                return got;
        }
        const size_t there = s->end - s->begin, n = bytes < there ? (size_t)bytes : there;
        if (write_all(fd, s->kept + s->begin, n) != 0)
            return STREAM_BROKEN;
        s->begin += n;
        bytes -= n;
    }
    return STREAM_OK;
}

int stream_send_bytes(struct stream *s, const void *bytes, size_t n)
{
    const char *from = bytes;
    while (n) {
        if (!wait_for(s, s->out, POLLOUT)) {
            errno = ECANCELED;
            return -1;
        }
        const size_t piece = n < PIECE_BYTES ? n : PIECE_BYTES;
        const ssize_t done = write(s->out, from, piece);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return -1;
        from += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
        s->sent += done > 0 ? (uint64_t)done : 0;
    }
    return 0;
}

int stream_send(struct stream *s, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text) {
        errno = ENOMEM;
        return -1;
    }
    const int failed = stream_send_bytes(s, text, strlen(text)) != 0 || stream_send_bytes(s, "\n", 1) != 0;
    free(text);
    return failed ? -1 : 0;
}

int stream_send_file(struct stream *s, const char *path, uint64_t bytes)
{
    char piece[PIECE_BYTES];
    FILE *file = fopen(path, "rbe");
    bool failed = !file;
    while (!failed && bytes) {
        const size_t want = bytes < sizeof piece ? (size_t)bytes : sizeof piece, n = fread(piece, 1, want, file);
        errno = n == 0 && !ferror(file) ? EIO : errno;
        failed = n == 0 || stream_send_bytes(s, piece, n) != 0;
        bytes -= n;
    }
    if (file)
        fclose(file);
    return failed ? -1 : 0;
}

void stream_free(struct stream *s)
{
    free(s->kept);
    s->kept = NULL;
}

static int hash(FILE *file, char hex[33])
{
    char piece[PIECE_BYTES];
    struct cache_key *key = file ? cache_key_new() : NULL;
    bool failed = !key;
    for (size_t n; key && (n = fread(piece, 1, sizeof piece, file)) > 0;)
        cache_key_add(key, piece, n);
    failed = failed || ferror(file);
    cache_key_finish(key, failed ? NULL : hex);
    if (file)
        fclose(file);
    return failed ? -1 : 0;
}

int remote_hash_text(const char *text, char hex[33])
{
    const size_t n = strlen(text);
    return hash(n ? fmemopen((void *)(uintptr_t)text, n, "r") : fopen("/dev/null", "re"), hex);
}

int remote_hash_file(const char *path, char hex[33])
{
    return hash(fopen(path, "rbe"), hex);
}
