/* Loads and stores with cache hints: plain ones here. Addresses and address spaces, clocks, __trap. */
#ifndef SIMT_MEMORY_H
#define SIMT_MEMORY_H

#include "simt_keywords.h"

#define SIMT_LOAD(name)                                                                                                \
    template <class T> static inline T name(const T *address)                                                          \
    {                                                                                                                  \
        return *address;                                                                                               \
    }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
SIMT_LOAD(__ldcv)
#undef SIMT_LOAD

#define SIMT_STORE(name)                                                                                               \
    template <class T> static inline void name(T *address, typename std::common_type<T>::type value)                   \
    {                                                                                                                  \
        *address = value;                                                                                              \
    }
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)
#undef SIMT_STORE

/* Kernels keep a shared address in 32 bits. A global one is its own image. */
static inline size_t __cvta_generic_to_shared(const void *p, SIMT_SITE)
{
    return (size_t)simt_shared_address(p, simt_file, simt_line);
}

static inline size_t __cvta_generic_to_global(const void *p)
{
    return (size_t)p;
}

static inline void *__cvta_shared_to_generic(size_t p, SIMT_SITE)
{
    return simt_cluster_pointer(p, 0, 0, "__cvta_shared_to_generic", simt_file, simt_line);
}

static inline void *__cvta_global_to_generic(size_t p)
{
    return (void *)p;
}

static inline long long clock64()
{
#if defined(__x86_64__)
    return (long long)__builtin_ia32_rdtsc();
#else
    long long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

static inline void __trap(SIMT_SITE)
{
    simt_trap(simt_file, simt_line);
}

static inline void __brkpt() {}

#endif
