/* Inside of a debuggee: main.c speaks with attnscope, launch.c runs the kernel. */
#ifndef DEBUGGEE_DEBUGGEE_H
#define DEBUGGEE_DEBUGGEE_H

#include "engine/base/err.h"
#include "probes/abi.h"

struct launch_result {
    const char *status; /* "complete", "failed", "cancelled" */
    double seconds;     /* of the launch */
    int workers;
    char text[512]; /* one sentence where it is not complete */
};

struct launch_request {
    int fd;                /* of the live trace; closed by the launch */
    int feed_fd;           /* of the fed trace, or -1; closed by the launch */
    uint32_t fed_channels; /* set of 1u << enum asc_channel */
    int workers;
};

/* Runs the kernel into the live trace; events and progress go out on the socket. */
void debuggee_launch(const struct asc_kernel *kernel, int socket, const struct launch_request *request,
                     struct launch_result *result);

/* Before a launch: forget earlier cancels. From any thread: stop the launch under way. */
void debuggee_arm(void);
void debuggee_cancel(void);

/* Plans a problem. -1: declined, the sentence in why. */
int debuggee_plan(const struct asc_kernel *kernel, const struct asc_problem *problem, struct asc_plan *plan, char *why,
                  size_t size);

#endif
