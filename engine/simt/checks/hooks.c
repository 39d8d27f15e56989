/* What the compiler calls before every access of a kernel that is built with -fsanitize=thread: the names of
   ThreadSanitizer's runtime, which is not linked (LLVM, compiler-rt/lib/tsan/rtl/tsan_interface.h). */
#include "engine/simt/checks/state.h"
#include "engine/simt/shared.h"

#include <stdbool.h>
#include <string.h>

/* Names are the compiler's. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,bugprone-macro-parentheses) */

#define SITE ((uint32_t)(uintptr_t)__builtin_return_address(0))

/* In a probe: its own accesses are not the kernel's, but what it reads may be written meanwhile. */
static __attribute__((noinline)) void probe_read(uintptr_t address, size_t bytes, uint32_t site)
{
    struct checks *c = simt_tls.probing;
    if (c && address - c->shared_begin < c->shared_bytes && bytes <= c->shared_bytes - (address - c->shared_begin))
        shadow_probe(c, address - c->shared_begin, bytes, site);
}

/* Of another block of the cluster: true. */
static __attribute__((noinline)) bool look_far(struct checks *c, uintptr_t address, size_t bytes, enum access access,
                                               bool atomic, uint32_t site)
{
    struct worker *block = shared_block_of((const void *)address);
    if (!block || block == c->worker)
        return false;
    shared_reaches(block, access == READ ? "a read" : "a write", NULL, 0);
    struct checks *at = checks_of(c, block);
    const uintptr_t place = address - at->shared_begin;
    if (at->order != c->order || place >= at->shared_bytes || bytes > at->shared_bytes - place)
        return true;
    if (access == READ)
        shadow_read(at, place, bytes, 0, site);
    else if (access == UPDATE)
        shadow_update(at, place, bytes, site);
    else
        shadow_write(at, place, bytes, atomic ? WROTE_ATOMIC : WROTE_PLAIN, site);
    return true;
}

static inline __attribute__((always_inline)) void look(const volatile void *p, size_t bytes, enum access access,
                                                       bool atomic, uint32_t site)
{
    struct checks *c = simt_tls.checks;
    const uintptr_t address = (uintptr_t)p;
    if (!c && access == READ)
        probe_read(address, bytes, site);
    if (!c || address - c->stacks_begin < c->stacks_bytes)
        return;
    if (c->twice.bytes)
        shadow_settle(c);
    const uintptr_t at = address - c->shared_begin;
    const bool is_shared = at < c->shared_bytes && bytes <= c->shared_bytes - at;
    if (is_shared && c->worker->order == SIMT_LOCKSTEP)
        schedule_step(c->worker, simt_tls.self, (const void *)(uintptr_t)site);
    if (!is_shared && c->stride && look_far(c, address, bytes, access, atomic, site))
        return;
    if (!is_shared)
        global_access(c, address, bytes, access, atomic, site);
    else if (access == READ)
        shadow_read(c, at, bytes, 0, site);
    else if (access == UPDATE)
        shadow_update(c, at, bytes, site);
    else
        shadow_write(c, at, bytes, atomic ? WROTE_ATOMIC : WROTE_PLAIN, site);
}

#define HOOKS(bytes)                                                                                                   \
    void __tsan_read##bytes(void *p);                                                                                  \
    void __tsan_write##bytes(void *p);                                                                                 \
    void __tsan_unaligned_read##bytes(void *p);                                                                        \
    void __tsan_unaligned_write##bytes(void *p);                                                                       \
    void __tsan_volatile_read##bytes(void *p);                                                                         \
    void __tsan_volatile_write##bytes(void *p);                                                                        \
    void __tsan_read##bytes(void *p)                                                                                   \
    {                                                                                                                  \
        look(p, bytes, READ, false, SITE);                                                                             \
    }                                                                                                                  \
    void __tsan_write##bytes(void *p)                                                                                  \
    {                                                                                                                  \
        look(p, bytes, WRITE, false, SITE);                                                                            \
    }                                                                                                                  \
    void __tsan_unaligned_read##bytes(void *p)                                                                         \
    {                                                                                                                  \
        look(p, bytes, READ, false, SITE);                                                                             \
    }                                                                                                                  \
    void __tsan_unaligned_write##bytes(void *p)                                                                        \
    {                                                                                                                  \
        look(p, bytes, WRITE, false, SITE);                                                                            \
    }                                                                                                                  \
    void __tsan_volatile_read##bytes(void *p)                                                                          \
    {                                                                                                                  \
        look(p, bytes, READ, false, SITE);                                                                             \
    }                                                                                                                  \
    void __tsan_volatile_write##bytes(void *p)                                                                         \
    {                                                                                                                  \
        look(p, bytes, WRITE, false, SITE);                                                                            \
    }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void *p, size_t bytes);
void __tsan_write_range(void *p, size_t bytes);
void __tsan_read_range(void *p, size_t bytes)
{
    look(p, bytes, READ, false, SITE);
}
void __tsan_write_range(void *p, size_t bytes)
{
    look(p, bytes, WRITE, false, SITE);
}

/* The builder gives these names to the memory functions that the kernel calls (flags.h). */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    look(from, bytes, READ, false, SITE);
    look(to, bytes, WRITE, false, SITE);
    return memmove(to, from, bytes); /* a compiler also copies an object onto itself */
}
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    look(from, bytes, READ, false, SITE);
    look(to, bytes, WRITE, false, SITE);
    return memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int byte, size_t bytes)
{
    look(to, bytes, WRITE, false, SITE);
    return memset(to, byte, bytes);
}

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_vptr_read(void **p);
void __tsan_vptr_update(void **p, void *value);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc)
{
    (void)pc;
}
void __tsan_func_exit(void) {}
void __tsan_vptr_read(void **p)
{
    (void)p;
}
void __tsan_vptr_update(void **p, void *value)
{
    (void)p;
    (void)value;
}

/* Atomics: the hook does the operation. All of them are sequentially consistent here. */
#define UPDATES(bits, T, name)                                                                                         \
    T __tsan_atomic##bits##_##name(volatile T *p, T value, int order);                                                 \
    T __tsan_atomic##bits##_##name(volatile T *p, T value, int order)                                                  \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        look(p, sizeof *p, UPDATE, true, SITE);                                                                        \
        return __atomic_##name(p, value, __ATOMIC_SEQ_CST);                                                            \
    }
#define ATOMICS(bits, T)                                                                                               \
    T __tsan_atomic##bits##_load(const volatile T *p, int order);                                                      \
    T __tsan_atomic##bits##_load(const volatile T *p, int order)                                                       \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST); /* what it may collide with, the update behind it meets too */    \
    }                                                                                                                  \
    void __tsan_atomic##bits##_store(volatile T *p, T value, int order);                                               \
    void __tsan_atomic##bits##_store(volatile T *p, T value, int order)                                                \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        look(p, sizeof *p, WRITE, true, SITE);                                                                         \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                                  \
    }                                                                                                                  \
    T __tsan_atomic##bits##_exchange(volatile T *p, T value, int order);                                               \
    T __tsan_atomic##bits##_exchange(volatile T *p, T value, int order)                                                \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        look(p, sizeof *p, UPDATE, true, SITE);                                                                        \
        return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                                  \
    UPDATES(bits, T, fetch_add)                                                                                        \
    UPDATES(bits, T, fetch_sub)                                                                                        \
    UPDATES(bits, T, fetch_and)                                                                                        \
    UPDATES(bits, T, fetch_or)                                                                                         \
    UPDATES(bits, T, fetch_xor)                                                                                        \
    UPDATES(bits, T, fetch_nand)                                                                                       \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *old, T value, int order, int failed);          \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *old, T value, int order, int failed)           \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        (void)failed;                                                                                                  \
        look(p, sizeof *p, UPDATE, true, SITE);                                                                        \
        return __atomic_compare_exchange_n(p, old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *old, T value, int order, int failed);            \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *old, T value, int order, int failed)             \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        (void)failed;                                                                                                  \
        look(p, sizeof *p, UPDATE, true, SITE);                                                                        \
        return __atomic_compare_exchange_n(p, old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
    }                                                                                                                  \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T old, T value, int order, int failed);                \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T old, T value, int order, int failed)                 \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        (void)failed;                                                                                                  \
        look(p, sizeof *p, UPDATE, true, SITE);                                                                        \
        __atomic_compare_exchange_n(p, &old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                            \
        return old;                                                                                                    \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* -fsanitize=alignment (LLVM, compiler-rt/lib/ubsan/ubsan_handlers.h). */
struct type_mismatch {
    struct {
        const char *file;
        uint32_t line, column;
    } at;
    const void *type;
    unsigned char log_alignment, kind;
};
void __ubsan_handle_type_mismatch_v1(const struct type_mismatch *what, uintptr_t address);
void __ubsan_handle_type_mismatch_v1(const struct type_mismatch *what, uintptr_t address)
{
    struct checks *c = simt_tls.checks;
    const size_t align = (size_t)1 << what->log_alignment;
    const uint32_t site = SITE;
    if (c && address % align && finding_count(c, EVENT_MISALIGNED, site, 0))
        finding_tell(c, EVENT_MISALIGNED, site, 0, stamp_thread(c->stamp),
                     "misaligned address: the access needs a multiple of %zu bytes and is %zu bytes past one", align,
                     (size_t)(address % align));
}

/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,bugprone-macro-parentheses) */

/* What code of ours in the kernel reads on behalf of a warp. */
void simt_check_matrix(const void *first, size_t lines, size_t line_bytes, size_t stride_bytes, const char *file,
                       int line)
{
    struct checks *c = simt_tls.worker->checks;
    const uint32_t site = site_of_line(simt_tls.self->pc, file, line);
    for (size_t i = 0; i < lines; i++)
        checks_read(c, (const unsigned char *)first + i * stride_bytes, line_bytes, READ_LANES, site);
}

void simt_check_lane(int lane, const void *p, size_t bytes, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct checks *c = w->checks;
    const unsigned thread = simt_tls.self->warp * 32u + (unsigned)lane, number = c->first + thread;
    const uint32_t own = c->stamp;
    c->stamp = c->order->clock[number] << STAMP_TIME_SHIFT | number;
    checks_read(c, p, bytes, 0, site_of_line(w->fiber[thread].pc, file, line));
    c->stamp = own;
}

void simt_write_lane(int lane, void *to, const void *from, size_t bytes, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct checks *c = w->checks;
    const unsigned thread = simt_tls.self->warp * 32u + (unsigned)lane;
    if (c) {
        const uint32_t own = c->stamp;
        const uintptr_t at = (uintptr_t)to - c->shared_begin;
        const unsigned number = c->first + thread;
        c->stamp = c->order->clock[number] << STAMP_TIME_SHIFT | number;
        if (at < c->shared_bytes && bytes <= c->shared_bytes - at)
            shadow_write(c, at, bytes, WROTE_PLAIN, site_of_line(w->fiber[thread].pc, file, line));
        c->stamp = own;
    }
    memcpy(to, from, bytes);
}

void simt_checks_pause(int kv_tile)
{
    struct fiber *self = simt_tls.self;
    simt_tls.checks = NULL;
    simt_tls.probing = simt_tls.worker ? simt_tls.worker->checks : NULL;
    if (self && kv_tile >= 0)
        self->kv_tile = kv_tile;
}

void simt_checks_resume(void)
{
    simt_tls.probing = NULL;
    if (simt_tls.self)
        simt_tls.checks = simt_tls.worker->checks;
}
