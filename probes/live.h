/* The live trace as parent and child see it: what stands at the head of the memfd. Linked into debuggees, so it needs
   nothing but layout.c, dtype.c and err.c. */
#ifndef PROBES_LIVE_H
#define PROBES_LIVE_H

#include "probes/layout.h"

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
    struct layout layout; /* what layout_make() says for the four above */
};

/* The child's side: trace_attach(), declared in trace.h. */

/* Sets a registration to the defaults of abi.h; the debuggee's main calls it, then asc_describe(). */
void asc_kernel_defaults(struct asc_kernel *kernel);

/* What ASC_KERNEL and the probes of a debuggee define (attnscope.h); there the argument is a C++ reference. */
extern const char asc_kernel_name[];
void asc_describe(struct asc_kernel *kernel);
int asc_bind(const struct asc_device *device);

/* The device's view of a trace mapped at `trace`: pointers into the mapping, strides of its layout. */
void live_device(const struct layout *layout, const struct asc_problem *problem, unsigned char *trace,
                 struct asc_device *device);

#endif
