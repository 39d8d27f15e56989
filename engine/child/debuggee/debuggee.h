/* Inside of a debuggee: main.c speaks with attnscope; what runs the kernel is cpu/run_kernel.c or gpu/run_kernel.c. */
#ifndef DEBUGGEE_DEBUGGEE_H
#define DEBUGGEE_DEBUGGEE_H

#include "engine/base/err.h"
#include "engine/base/guardian.h"
#include "engine/base/wire.h"
#include "engine/trace/event.h"
#include "engine/trace/launch.h"
#include "engine/trace/layout.h"
#include "probes/abi.h"
#include <jansson.h>
#include <stddef.h>

struct launch_result {
    enum launch_end end;
    double seconds; /* of the launch */
    int workers;
    char text[512];          /* one sentence where it is not complete */
    enum event_kind stopped; /* what ended it; EVENT_NONE: an event has said it, or nothing did */
    json_t *launches;        /* owned by the caller, or NULL: what the kernels took, as launches_json() says it */
};

struct launch_request {
    int fd;                                      /* of the live trace; closed by the launch */
    int feed_fd;                                 /* of the fed trace, or -1; closed by the launch */
    uint32_t fed_channels;                       /* set of 1u << enum asc_channel */
    enum memory_kind memory;                     /* where the probes write, on a GPU */
    unsigned char handle[GUARDIAN_HANDLE_BYTES]; /* of the guardian's */
    int workers;
    char tensor_core[16]; /* whose products the CPU executor computes; "": the default's */
    char lanes[24];       /* the order of lanes and warps there; "": ATTNSCOPE_LANES says it */
};

uint32_t debuggee_abi(void); /* ASC_ABI_VERSION of the attnscope.h that it was compiled with */
enum backend debuggee_backend(void);
bool debuggee_checked(void); /* built with access checks */
/* Once, at the start: makes the device ready and names it ("" where there is none to name). -1: it cannot be used, the
   sentence in why. */
int debuggee_prepare(char *device, size_t size, char *why, size_t why_size);

/* Runs the kernel into the live trace; events and progress go out on the socket. */
void debuggee_launch(const struct asc_kernel *kernel, int socket, const struct launch_request *request,
                     struct launch_result *result);

/* The answers to "profile" and "bench" (asked): their fields, all but the id, the caller's. NULL: declined, the
   sentence in why. They close the request's files. */
json_t *debuggee_profile(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                         char *why, size_t size);
json_t *debuggee_bench(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                       char *why, size_t size);

/* Gives a kernel with host code of its own (kernel->run) a plan and a launch. */
void debuggee_host(struct asc_kernel *kernel);
/* true: launches have no effect from here on, but to be seen. false: they have again; returns how many threads a block
   had at most, 0 where nothing was launched. */
int debuggee_rehearse(bool begin);
bool debuggee_may_leave(void);    /* in the kernel's own host code, whose exit() is not the end */
bool debuggee_in_host_code(void); /* the kernel's own runs, and its launches have an effect */
/* As the kernel addresses it, with these bytes in it where `from` is given; NULL: no memory. */
void *debuggee_array_new(size_t bytes, const void *from);
void debuggee_array_free(void *array); /* NULL is legal */

/* A kernel's own words; JSON takes UTF-8 only, and a sentence cut to its buffer may end within a character. */
json_t *debuggee_words(const char *text);

/* Before a launch: forget earlier cancels. From any thread: stop the launch under way, if the backend can. */
void debuggee_arm(void);
void debuggee_cancel(void);
void debuggee_where(void); /* says as events where the threads of the launch under way stand, if the backend knows */

/* What ASC_DEAL_MAP deals is filled in before a launch: in live_states() of its trace, by the kernel's own state(), or
   by host code during the launch. problem: with the trace's own arrays. -1: what it says is no state, why says it. */
int debuggee_deal(const struct asc_kernel *kernel, const struct asc_problem *problem, const struct asc_plan *plan,
                  void *live, struct err *err);
void debuggee_host_deals(int32_t *to); /* of kernel->run; NULL is legal */

/* Plans a problem. -1: declined, the sentence in why. */
int debuggee_plan(const struct asc_kernel *kernel, const struct asc_problem *problem, struct asc_plan *plan, char *why,
                  size_t size);

#endif
