/* Messages between attnscope and a debuggee: whole, in pieces, too long, garbage, with an fd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct link {
    struct wire reader;
    int writer;
};

static void open_link(struct link *l)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(wire_open(&l->reader, pair[0], NULL), 0);
    l->writer = pair[1];
}

static void close_link(struct link *l)
{
    wire_close(&l->reader);
    if (l->writer >= 0)
        close(l->writer);
}

static void put(const struct link *l, const char *bytes)
{
    assert_int_equal(wire_send_bytes(l->writer, bytes, strlen(bytes), -1), 0);
}

static enum wire_got get(struct link *l, struct wire_message *message)
{
    struct err err = {0};
    enum wire_got got;
    assert_int_equal(wire_read(&l->reader, 0, &got, message, &err), 0);
    return got;
}

static void test_pieces(void **state)
{
    (void)state;
    static const char line[] = "{\"type\":\"plan\",\"id\":7,\"br\":64}\n";
    struct link l;
    struct wire_message message;
    open_link(&l);
    assert_int_equal(get(&l, &message), WIRE_NOTHING);
    for (size_t i = 0; i + 1 < sizeof line; i++) {
        assert_int_equal(get(&l, &message), WIRE_NOTHING);
        assert_int_equal(wire_send_bytes(l.writer, line + i, 1, -1), 0);
    }
    assert_int_equal(get(&l, &message), WIRE_MESSAGE);
    assert_int_equal(message.kind, WIRE_PLAN);
    assert_int_equal(wire_integer(message.json, "br", 1, 1024, 0), 64);
    assert_int_equal(wire_integer(message.json, "br", 1, 63, -5), -5);
    assert_int_equal(wire_integer(message.json, "bc", 1, 1024, -5), -5);
    json_decref(message.json);
    close_link(&l);
}

static void test_several_at_once_then_the_end(void **state)
{
    (void)state;
    struct link l;
    struct wire_message message;
    open_link(&l);
    put(&l, "{\"type\":\"cancel\"}\n{\"type\":\"quit\"}\n{\"type\":\"load\"");
    assert_int_equal(get(&l, &message), WIRE_MESSAGE);
    assert_int_equal(message.kind, WIRE_CANCEL);
    json_decref(message.json);
    assert_int_equal(get(&l, &message), WIRE_MESSAGE);
    assert_int_equal(message.kind, WIRE_QUIT);
    json_decref(message.json);
    assert_int_equal(get(&l, &message), WIRE_NOTHING);
    close(l.writer);
    l.writer = -1;
    assert_int_equal(get(&l, &message), WIRE_END); /* half a message is none */
    close_link(&l);
}

static void refused(const char *bytes, const char *why)
{
    struct link l;
    struct wire_message message;
    struct err err = {0};
    enum wire_got got;
    open_link(&l);
    put(&l, bytes);
    assert_int_equal(wire_read(&l.reader, 0, &got, &message, &err), -1);
    assert_int_equal(err.code, ERR_RUN);
    if (!strstr(err.message, why))
        fail_msg("`%s` lacks `%s`", err.message, why);
    close_link(&l);
}

static void test_garbage(void **state)
{
    (void)state;
    refused("hello\n", "not a JSON object");
    refused("[1]\n", "not a JSON object");
    refused("\n", "not a JSON object");
    refused("{\"type\":\"load\",}\n", "not a JSON object");
    refused("{\"type\":\"dance\"}\n", "unknown type");
    refused("{\"type\":3}\n", "unknown type");
    refused("{}\n", "unknown type");
    refused("{\"type\":\"hello\",\"kernel\":\"\xff\"}\n", "not a JSON object");
}

static void test_too_long(void **state)
{
    (void)state;
    static char bytes[WIRE_LINE_MAX + 2];
    memset(bytes, 'x', sizeof bytes - 1);
    refused(bytes, "longer than");
}

static void test_fd_travels(void **state)
{
    (void)state;
    struct link l;
    struct wire writer;
    struct wire_message message;
    char text[8] = "";
    open_link(&l);
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(fd, "abc", 3), 3);
    assert_int_equal(wire_open(&writer, l.writer, NULL), 0);
    assert_int_equal(wire_send(&writer, WIRE_RUN, json_pack("{s:i}", "id", 3), fd, NULL), 0);
    assert_int_equal(wire_take_fd(&l.reader), -1);
    assert_int_equal(get(&l, &message), WIRE_MESSAGE);
    json_decref(message.json);
    int came = wire_take_fd(&l.reader);
    assert_true(came >= 0 && came != fd);
    assert_true(fcntl(came, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pread(came, text, 3, 0), 3);
    assert_string_equal(text, "abc");
    assert_int_equal(wire_take_fd(&l.reader), -1);
    close(came);
    close(fd);
    wire_close(&writer);
    l.writer = -1;
    close_link(&l);
}

/* A debuggee sends what it likes: of several fds beside one message none stays open unseen. */
static void test_one_fd_alone(void **state)
{
    (void)state;
    struct link l;
    struct wire_message message;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {{.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
    struct iovec part = {"{\"type\":\"quit\"}\n", 16};
    struct msghdr two = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    open_link(&l);
    memcpy(CMSG_DATA(&control.header), (int[]){l.writer, l.writer}, 2 * sizeof(int));
    assert_int_equal(sendmsg(l.writer, &two, 0), 16);
    const int next = dup(l.writer); /* the lowest that is free: the first to be received gets it, then the next */
    close(next);
    assert_int_equal(get(&l, &message), WIRE_MESSAGE);
    json_decref(message.json);
    const int came = wire_take_fd(&l.reader);
    const int after = dup(l.writer);
    assert_int_equal(came, next);
    assert_int_equal(after, next + 1);
    close(came);
    close(after);
    close_link(&l);
}

static void test_peer_gone(void **state)
{
    (void)state;
    struct link l;
    struct err err = {0};
    open_link(&l);
    close(l.writer);
    l.writer = -1;
    assert_int_equal(wire_send(&l.reader, WIRE_QUIT, json_object(), -1, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_int_equal(wire_send(&l.reader, WIRE_QUIT, NULL, -1, &err), -1); /* fields for which memory ran out */
    close_link(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),     cmocka_unit_test(test_several_at_once_then_the_end),
        cmocka_unit_test(test_garbage),    cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_fd_travels), cmocka_unit_test(test_one_fd_alone),
        cmocka_unit_test(test_peer_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
