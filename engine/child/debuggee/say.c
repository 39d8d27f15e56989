#include "engine/child/debuggee/say.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define ROOM_FOR_END 2 /* "}\n" */

/* Lines of several threads must not mix. A spin lock, because a mutex is not for signal handlers; a handler cannot
   meet its own thread inside: the faults that are told come from kernel code. */
static atomic_flag sending = ATOMIC_FLAG_INIT;

static int put(struct say *s, const char *bytes, size_t n)
{
    if (s->n + n > sizeof s->text - ROOM_FOR_END)
        return -1;
    memcpy(s->text + s->n, bytes, n);
    s->n += n;
    return 0;
}

static int put_string(struct say *s, const char *text)
{
    return put(s, text, strlen(text));
}

/* Bytes of the well-formed UTF-8 sequence at text (RFC 3629), or 0. */
static size_t sequence(const unsigned char *text)
{
    unsigned char first = text[0], low = 0x80, high = 0xBF;
    size_t n;
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        n = 2;
    else if (first >= 0xE0 && first <= 0xEF)
        n = 3;
    else if (first >= 0xF0 && first <= 0xF4)
        n = 4;
    else
        return 0;
    if (first == 0xE0)
        low = 0xA0; /* shorter forms exist below */
    else if (first == 0xED)
        high = 0x9F; /* surrogates above */
    else if (first == 0xF0)
        low = 0x90;
    else if (first == 0xF4)
        high = 0x8F; /* beyond U+10FFFF */
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (text[i] < 0x80 || text[i] > 0xBF)
            return 0;
    return n;
}

/* Quoted and escaped; cut at the end of a sequence where the line is full. */
static void put_quoted(struct say *s, const char *value, size_t keep)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *c = (const unsigned char *)value;
    if (put(s, "\"", 1))
        return;
    while (*c) {
        size_t n = sequence(c);
        char escaped[6] = {'\\', 'u', '0', '0', hex[*c >> 4 & 15], hex[*c & 15]};
        const char *bytes = (const char *)c;
        size_t n_bytes = n;
        if (n == 0) {
            bytes = "?";
            n = n_bytes = 1;
        } else if (*c < 0x20 || *c == '"' || *c == '\\' || *c == 0x7F) {
            bytes = escaped;
            n_bytes = sizeof escaped;
        }
        if (s->n + n_bytes + 1 + keep > sizeof s->text - ROOM_FOR_END)
            break;
        put(s, bytes, n_bytes);
        c += n;
    }
    put(s, "\"", 1);
}

static void put_integer(struct say *s, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        digits[--at] = '-';
    put(s, digits + at, sizeof digits - at);
}

static int put_key(struct say *s, const char *key, size_t value_bytes)
{
    if (s->n + strlen(key) + 4 + value_bytes > sizeof s->text - ROOM_FOR_END)
        return -1;
    put(s, ",\"", 2);
    put_string(s, key);
    return put(s, "\":", 2);
}

void say_begin(struct say *s, enum wire_kind kind)
{
    s->n = 0;
    put_string(s, "{\"type\":\"");
    put_string(s, wire_type(kind));
    put_string(s, "\"");
}

void say_text(struct say *s, const char *key, const char *value)
{
    const size_t for_the_rest = 512; /* fields that follow: numbers */
    if (put_key(s, key, 2) == 0)
        put_quoted(s, value ? value : "", for_the_rest);
}

void say_integer(struct say *s, const char *key, int64_t value)
{
    if (put_key(s, key, 24) == 0)
        put_integer(s, value);
}

void say_triple(struct say *s, const char *key, const uint32_t values[3])
{
    if (put_key(s, key, 40))
        return;
    for (int i = 0; i < 3; i++) {
        put(s, i ? "," : "[", 1);
        put_integer(s, values[i]);
    }
    put(s, "]", 1);
}

void say_check(int failed)
{
    if (failed && (errno == ENOMEM || errno == ENOBUFS))
        _exit(WIRE_REFUSED);
}

void say_end(struct say *s, int fd)
{
    memcpy(s->text + s->n, "}\n", ROOM_FOR_END);
    s->n += ROOM_FOR_END;
    while (atomic_flag_test_and_set_explicit(&sending, memory_order_acquire))
        sched_yield();
    say_check(wire_send_bytes(fd, s->text, s->n, -1));
    atomic_flag_clear_explicit(&sending, memory_order_release);
}
