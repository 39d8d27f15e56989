/* One end of the conversation: lines and bytes over a pair of descriptors, which a cancel does not wait for. */
#ifndef REMOTE_STREAM_H
#define REMOTE_STREAM_H

#include "engine/base/err.h"
#include "engine/build/runner.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REMOTE_VERSION_BYTES 64
extern const char remote_version[]; /* of this attnscope */

struct stream {
    int in, out;                            /* borrowed; both may be without O_NONBLOCK */
    const struct runner_progress *progress; /* whose cancel ends waiting; may be NULL */
    char *kept;                             /* owned: bytes read and not yet handed out */
    size_t begin, end, room;
    double until; /* clock_seconds() at which waiting ends as by a cancel; 0: never */
    uint64_t sent, received;
};

enum stream_got { STREAM_OK, STREAM_END, STREAM_CANCELLED, STREAM_BROKEN };

enum stream_got stream_line(struct stream *s, json_t **out); /* the next JSON object; BROKEN: no memory, or none */
/* The next line that is one and has this key: what a login prints comes before it. */
enum stream_got stream_greeting(struct stream *s, const char *key, json_t **out);
enum stream_got stream_to_file(struct stream *s, uint64_t bytes, int fd);
int stream_send(struct stream *s, json_t *json); /* takes it over. -1: errno, ECANCELED */
int stream_send_bytes(struct stream *s, const void *bytes, size_t n);
int stream_send_file(struct stream *s, const char *path, uint64_t bytes); /* -1 also where it is shorter */
void stream_free(struct stream *s);

/* What tells contents apart. Of a text, and of a file that holds it, the same. */
int remote_hash_text(const char *text, char hex[33]);
int remote_hash_file(const char *path, char hex[33]);

#endif
