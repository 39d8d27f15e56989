/* What attnscope and a debuggee say to each other: a JSON object per line over a stream socket; one fd (the live trace)
   travels with "run". The messages are listed in messages.def. */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include "engine/base/err.h"
#include <jansson.h>
#include <stddef.h>

#define WIRE_REFUSED 113     /* exit status of a debuggee that had no memory to say something */
#define WIRE_LINE_MAX 32768u /* bytes, newline included; a sender stays far below */

enum wire_kind {
#define MESSAGE(id, type, sender, fields) WIRE_##id,
#include "engine/base/messages.def"
#undef MESSAGE
    WIRE_KINDS
};
const char *wire_type(enum wire_kind kind); /* "load" */

struct wire {
    int fd;       /* owned: the socket */
    int received; /* owned: an fd that came along and nobody took, or -1 */
    char *line;   /* owned, [WIRE_LINE_MAX]: bytes read and not yet handed out */
    size_t used, searched;
};
int wire_open(struct wire *w, int fd, struct err *err); /* takes fd over, also when it fails */
void wire_close(struct wire *w);

/* One message; the outcome of reading. */
enum wire_got { WIRE_NOTHING, WIRE_MESSAGE, WIRE_END };
struct wire_message {
    enum wire_kind kind;
    json_t *json; /* owned by the caller after WIRE_MESSAGE: json_decref */
};
/* wait: 1 blocks until a message is whole, 0 takes what is there. -1: the other side broke the protocol (ERR_RUN). */
int wire_read(struct wire *w, int wait, enum wire_got *got, struct wire_message *message, struct err *err);
/* The fd that came with the messages read so far, now the caller's; -1: none. */
int wire_take_fd(struct wire *w);

/* Sends one message of `kind`, with the fields of `fields` (taken over, may be NULL where memory ran out) and a copy of
   pass_fd (-1: none). A peer that is gone is an error, never a SIGPIPE. */
int wire_send(const struct wire *w, enum wire_kind kind, json_t *fields, int pass_fd, struct err *err);
int wire_send_bytes(int fd, const char *bytes, size_t n, int pass_fd); /* -1: errno */

/* Fields. Numbers out of range and missing or mistyped fields are `otherwise`. */
long long wire_integer(const json_t *json, const char *key, long long min, long long max, long long otherwise);
double wire_number(const json_t *json, const char *key, double otherwise);
const char *wire_text(const json_t *json, const char *key); /* "" if missing; borrowed */
/* The index of a word in names, which NULL ends. */
int wire_word(const json_t *json, const char *key, const char *const *names, int otherwise);

/* How a launch ended, in its result. */
enum launch_end { LAUNCH_FAILED, LAUNCH_COMPLETE, LAUNCH_CANCELLED };
extern const char *const launch_end_names[]; /* "failed", "complete", "cancelled"; NULL ends them */

#endif
