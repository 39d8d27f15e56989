/* Atomics: one compare-and-swap loop. Relaxed, as CUDA's are. */
#ifndef SIMT_ATOMICS_H
#define SIMT_ATOMICS_H

#include "simt_keywords.h"

namespace simt
{
template <size_t Bytes> struct atomic_word;
template <> struct atomic_word<2> {
    using type = uint16_t;
};
template <> struct atomic_word<4> {
    using type = uint32_t;
};
template <> struct atomic_word<8> {
    using type = uint64_t;
};

/* Replaces *address by next(old) and returns old. */
template <class T, class F> static inline T atomic_update(T *address, F next)
{
    using word = typename atomic_word<sizeof(T)>::type;
    word *at = reinterpret_cast<word *>(address);
    word old_bits = __atomic_load_n(at, __ATOMIC_RELAXED), new_bits;
    T old;
    simt_atomic(address);
    do {
        memcpy(static_cast<void *>(&old), &old_bits, sizeof old);
        const T wanted = next(old);
        memcpy(&new_bits, &wanted, sizeof wanted);
    } while (!__atomic_compare_exchange_n(at, &old_bits, new_bits, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
} // namespace simt

/* SIMT_ATOMIC(name, T, what takes the place of `old`), in the scopes that CUDA names. */
#define SIMT_ATOMIC_SCOPE(name, scope, T, expression)                                                                  \
    static inline T name##scope(T *address, T value)                                                                   \
    {                                                                                                                  \
        return simt::atomic_update(address, [=]([[maybe_unused]] T old) -> T { return (T)(expression); });             \
    }
#define SIMT_ATOMIC(name, T, expression)                                                                               \
    SIMT_ATOMIC_SCOPE(name, , T, expression)                                                                           \
    SIMT_ATOMIC_SCOPE(name, _block, T, expression)                                                                     \
    SIMT_ATOMIC_SCOPE(name, _system, T, expression)
#define SIMT_ATOMIC_CAS(T)                                                                                             \
    static inline T atomicCAS(T *address, T compare, T value)                                                          \
    {                                                                                                                  \
        return simt::atomic_update(address,                                                                            \
                                   [=]([[maybe_unused]] T old) -> T { return old == compare ? value : old; });         \
    }                                                                                                                  \
    static inline T atomicCAS_block(T *address, T compare, T value)                                                    \
    {                                                                                                                  \
        return atomicCAS(address, compare, value);                                                                     \
    }                                                                                                                  \
    static inline T atomicCAS_system(T *address, T compare, T value)                                                   \
    {                                                                                                                  \
        return atomicCAS(address, compare, value);                                                                     \
    }
#include "simt_atomics.def"
#undef SIMT_ATOMIC_CAS
#undef SIMT_ATOMIC
#undef SIMT_ATOMIC_SCOPE

/* A loop that waits for another thread's store usually has a fence in it. */
static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    simt_spin();
}

static inline void __threadfence_block()
{
    __threadfence();
}

static inline void __threadfence_system()
{
    __threadfence();
}

static inline void __nanosleep(unsigned)
{
    simt_yield();
}

#endif
