/* A run's memory on the GPU: the live trace, pinned, or pinned but for its values, which are in device memory then; and
   the arrays the kernel computes on. */
#ifndef GPU_RUN_H
#define GPU_RUN_H

#include "engine/child/debuggee/debuggee.h"
#include "engine/gpu/arrays.h"
#include "engine/gpu/pinned.h"
#include <cuda_runtime_api.h>
#include <stdbool.h>

struct run {
    void *trace; /* owned: the live trace, mapped */
    size_t n_bytes;
    struct asc_problem problem; /* pointers into arrays */
    struct asc_plan plan;
    struct asc_device probes;
    struct pinned pinned;  /* the same bytes as `trace`, as the GPU sees them */
    unsigned char *values; /* device memory, owned: where the probes write; NULL: into the pinned trace */
    bool opened;           /* it is the guardian's, opened here */
    void *o, *lse;         /* where the outputs go, in the pinned mapping */
    struct arrays arrays;
    void *fed;  /* owned device memory: the fed trace; NULL: nothing is fed */
    void *slot; /* owned device memory: every block looks itself up there */
};

/* Copies what the request's live trace holds to the device. The pinned trace stays for the next run. */
int run_prepare(struct run *run, const struct asc_kernel *kernel, const struct launch_request *request,
                struct err *err);
int run_bind(const struct run *run, struct err *err); /* the probes write there */
/* What they wrote, into the trace, where that is for this process to do. */
int run_publish(const struct run *run, struct err *err);
/* Frees all of it and closes the request's files; legal after run_prepare() failed. */
void run_finish(struct run *run, const struct launch_request *request);

/* One sentence on the kernel that a synchronization found to have failed. */
void run_say_stopped(cudaError_t status, char *text, size_t size);
/* Launches and waits; events (may be NULL) are recorded around the launch. -1: text says what failed, in a launch or in
   the kernel. */
struct run_events {
    cudaEvent_t begin, end; /* borrowed */
};
int run_once(const struct asc_kernel *kernel, const struct run *run, const struct run_events *events, char *text,
             size_t size);

#endif
