/* Bytes over a unix socket, and at most one file descriptor beside them. */
#ifndef BASE_PASS_FD_H
#define BASE_PASS_FD_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

union pass_fd_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* As send(), with a copy of fd unless it is -1. A peer that is gone is an error, never a SIGPIPE. */
static inline ssize_t pass_fd_send(int socket, const void *bytes, size_t n, int fd)
{
    union pass_fd_control control = {{0}};
    struct iovec data = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd >= 0) {
        control.header =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}

/* As recv(). *fd: what came beside the bytes, the caller's and closed on exec; -1: nothing. */
static inline ssize_t pass_fd_receive(int socket, void *bytes, size_t n, int flags, int *fd)
{
    union pass_fd_control control = {{0}};
    struct iovec data = {bytes, n};
    /* CMSG_SPACE() has padding that would hold a second fd: of more than one, the system closes the others. */
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_LEN(sizeof *fd)};
    ssize_t came;
    *fd = -1;
    do
        came = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    while (came < 0 && errno == EINTR);
    const struct cmsghdr *header = came < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(header), sizeof *fd);
    return came;
}

#endif
