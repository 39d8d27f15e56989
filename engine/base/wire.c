#include "engine/base/wire.h"

#include "engine/base/json_memory.h"
#include "engine/base/pass_fd.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const types[WIRE_KINDS] = {
#define MESSAGE(id, type, sender, fields) [WIRE_##id] = (type),
#include "engine/base/messages.def"
#undef MESSAGE
};

const char *wire_type(enum wire_kind kind)
{
    return types[kind];
}

int wire_open(struct wire *w, int fd, struct err *err)
{
    *w = (struct wire){.fd = fd, .received = -1, .line = malloc(WIRE_LINE_MAX)};
    if (!w->line) {
        wire_close(w);
        return err_no_memory(err, "", "a buffer for messages");
    }
    return 0;
}

void wire_close(struct wire *w)
{
    if (w->fd >= 0)
        close(w->fd);
    if (w->received >= 0)
        close(w->received);
    free(w->line);
    *w = (struct wire){.fd = -1, .received = -1};
}

int wire_take_fd(struct wire *w)
{
    int fd = w->received;
    w->received = -1;
    return fd;
}

/* Reads once, keeps the last fd that came. 1: something came, 0: nothing is there, -1: the end, -2: the system failed,
   errno says how. */
static int fill(struct wire *w, int wait)
{
    int fd;
    const ssize_t n = pass_fd_receive(w->fd, w->line + w->used, WIRE_LINE_MAX - w->used, wait ? 0 : MSG_DONTWAIT, &fd);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno == ECONNRESET ? -1 : -2;
    if (fd >= 0 && w->received >= 0)
        close(w->received);
    if (fd >= 0)
        w->received = fd;
    if (n == 0)
        return -1;
    w->used += (size_t)n;
    return 1;
}

static int parse(const char *line, size_t n, struct wire_message *message, struct err *err)
{
    int shown = n > 80 ? 80 : (int)n;
    json_error_t why;
    json_t *json = json_loadb(line, n, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(json)) {
        json_decref(json);
        return err_set(err, ERR_RUN, "", "a message is not a JSON object: `%.*s`", shown, line);
    }
    const char *type = wire_text(json, "type");
    for (int kind = 0; kind < WIRE_KINDS; kind++)
        if (strcmp(type, types[kind]) == 0) {
            *message = (struct wire_message){.kind = (enum wire_kind)kind, .json = json};
            return 0;
        }
    json_decref(json);
    return err_set(err, ERR_RUN, "", "a message of an unknown type: `%.*s`", shown, line);
}

int wire_read(struct wire *w, int wait, enum wire_got *got, struct wire_message *message, struct err *err)
{
    *got = WIRE_NOTHING;
    for (;;) {
        const char *end = memchr(w->line + w->searched, '\n', w->used - w->searched);
        if (end) {
            size_t n = (size_t)(end - w->line);
            int failed = parse(w->line, n, message, err);
            w->used -= n + 1;
            memmove(w->line, w->line + n + 1, w->used);
            w->searched = 0;
            *got = failed ? WIRE_NOTHING : WIRE_MESSAGE;
            return failed;
        }
        w->searched = w->used;
        if (w->used == WIRE_LINE_MAX)
            return err_set(err, ERR_RUN, "", "a message is longer than %u bytes", WIRE_LINE_MAX);
        int came = fill(w, wait);
        if (came == -2)
            return err_errno(err, "", "reading a message");
        if (came <= 0) {
            *got = came < 0 ? WIRE_END : WIRE_NOTHING;
            return 0;
        }
    }
}

int wire_send_bytes(int fd, const char *bytes, size_t n, int pass_fd)
{
    while (n) {
        const ssize_t sent = pass_fd_send(fd, bytes, n, pass_fd);
        if (sent < 0)
            return -1;
        bytes += sent;
        n -= (size_t)sent;
        pass_fd = -1;
    }
    return 0;
}

int wire_send(const struct wire *w, enum wire_kind kind, json_t *fields, int pass_fd, struct err *err)
{
    char *line = NULL;
    if (fields && json_object_set_new(fields, "type", json_string(types[kind])) == 0)
        line = json_memory_dumps(fields, JSON_COMPACT);
    json_decref(fields);
    if (!line)
        return err_no_memory(err, "", "a \"%s\" message", types[kind]);
    size_t n = strlen(line);
    line[n] = '\n'; /* in the place of the NUL: the length is passed */
    int failed = wire_send_bytes(w->fd, line, n + 1, pass_fd);
    int saved = errno;
    free(line);
    errno = saved;
    return failed ? err_errno(err, "", "sending a \"%s\" message", types[kind]) : 0;
}

long long wire_integer(const json_t *json, const char *key, long long min, long long max, long long otherwise)
{
    const json_t *value = json_object_get(json, key);
    if (!json_is_integer(value))
        return otherwise;
    long long n = json_integer_value(value);
    return n < min || n > max ? otherwise : n;
}

double wire_number(const json_t *json, const char *key, double otherwise)
{
    const json_t *value = json_object_get(json, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

const char *wire_text(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

int wire_word(const json_t *json, const char *key, const char *const *names, int otherwise)
{
    const char *word = wire_text(json, key);
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], word) == 0)
            return i;
    return otherwise;
}

const char *const launch_end_names[] = {"failed", "complete", "cancelled", NULL};
