/* The least that attnscope.h needs of an executor: threads run one after another, so kernels must not synchronize. Used
   to test the probes alone. */
#ifndef TESTS_ONE_THREAD_H
#define TESTS_ONE_THREAD_H

#define SIMT_HOST 1
#include <stddef.h>
#include <stdint.h>

#define __global__
#define __device__
#define __host__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

static uint64_t one_thread_ticks;
static inline uint64_t simt_clock()
{
    return ++one_thread_ticks;
}

/* Nobody else is there to wait for. */
static inline void __syncthreads() {}

static const char *one_thread_error;
/* Where a thread works, and which accesses are a probe's own: for events and checks, which there are none of here. */
static inline void simt_place(int, int, int) {}
/* One block records it all, in one thread. */
enum { SIMT_SAME_VISIT = 4 };
static inline int simt_records(size_t, int)
{
    return 0;
}
static inline int simt_copies(size_t, int)
{
    return 0;
}
static inline void simt_two_values(int, int, int, const void *, const void *) {}
struct asc_stamp_map;
/* Who has recorded an element is not kept. */
static inline uint32_t *simt_writers(unsigned char *, const asc_stamp_map *, int, int)
{
    return nullptr;
}
static inline void simt_sign(uint32_t *, uint32_t, uint32_t, uint32_t) {}
/* Nothing is linked that could be missing. */
extern "C" __attribute__((weak)) const char *asc_missing_sentence(const char *mangled)
{
    return mangled;
}
extern "C" __attribute__((weak)) void asc_missing_end(const char *) {}
static inline void simt_checks_pause(int) {}
static inline void simt_checks_resume() {}

static inline const char *simt_error()
{
    return one_thread_error;
}

template <class Kernel, class... A>
int simt_launch_kernel(const char *, Kernel *kernel, dim3 grid, dim3 block, size_t shared_bytes, A... args)
{
    one_thread_error = shared_bytes > 232448 ? "too much shared memory" : nullptr;
    if (one_thread_error)
        return -1;
    gridDim = grid;
    blockDim = block;
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                for (threadIdx.z = 0; threadIdx.z < block.z; threadIdx.z++)
                    for (threadIdx.y = 0; threadIdx.y < block.y; threadIdx.y++)
                        for (threadIdx.x = 0; threadIdx.x < block.x; threadIdx.x++)
                            kernel(args...);
    return 0;
}

#endif
