/* The live trace as parent and child see it: what stands at the head of the memfd. Linked into debuggees, so it needs
   nothing but layout.c, problem.c, dtype.c and err.c. */
#ifndef TRACE_LIVE_H
#define TRACE_LIVE_H

#include "engine/trace/layout.h"

#define LIVE_MAGIC "attnscope live\n" /* 16 bytes with its NUL */

struct live_header {
    char magic[16];
    uint32_t abi;               /* ASC_ABI_VERSION */
    uint32_t header_bytes;      /* sizeof(struct live_header) */
    uint64_t total_bytes;       /* of the memfd */
    struct asc_problem problem; /* pointers NULL */
    struct asc_plan plan;
    struct asc_conventions conventions;
    struct layout_types types;
    struct layout layout;             /* what layout_make() says for the four above */
    uint64_t unfed[ASC_ALL_CHANNELS]; /* the probes count here: const values of channels that were to be fed */
};

/* The child's side: trace_attach(), declared in trace.h; and for a run that is fed, after it:
   maps the fed trace behind fd read-only and hands it to the probes, which overwrite the values of `channels` (a set of
   1u << enum asc_channel) with its own. It must be of the problem and layout of the live trace, mapped at `live`. */
int live_feed(int fd, void *live, uint32_t channels, struct asc_device *device, void **mapping, size_t *n_bytes,
              struct err *err);

/* [batch][heads][q_tiles][kv_tiles + 1] of a mapped live trace: what ASC_DEAL_MAP deals; NULL: nothing is dealt so. */
int32_t *live_states(void *live);

/* Sets a registration to the defaults of abi.h, but for dtypes, 0; the debuggee's main calls it, then asc_describe().
 */
void asc_kernel_defaults(struct asc_kernel *kernel);

/* What ASC_KERNEL and the probes of a debuggee define (attnscope.h); there the argument is a C++ reference. */
extern const char asc_kernel_name[];
extern const uint32_t asc_kernel_abi;
void asc_describe(struct asc_kernel *kernel);
/* kernel->run, by run.h's asc_call_run(). */
bool asc_run_host(const struct asc_kernel *kernel, const struct asc_problem *problem, struct asc_plan *plan,
                  int32_t *states, void *stream, char *why, int size);
int asc_bind(const struct asc_device *device);

/* The device's view of a trace mapped at `trace`: pointers into the mapping, strides of its layout. */
void live_device(const struct layout *layout, const struct asc_problem *problem, const struct asc_plan *plan,
                 unsigned char *trace, struct asc_device *device);

#endif
