#include "engine/simt/shared.h"

#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <inttypes.h>
#include <link.h>
#include <string.h>

extern __thread unsigned char simt_dynamic_shared[SIMT_SHARED_MAX]; /* in the link stub */

struct range {
    unsigned char *begin, *end;
};

/* The program's thread-local block as the calling thread has it; libraries have blocks of their own. */
static int find_block(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    struct range *block = ctx;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data) {
            block->begin = info->dlpi_tls_data;
            block->end = block->begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the program comes first */
}

static void fill(unsigned char *begin, unsigned char *end)
{
    const uint16_t poison = SHARED_POISON;
    if (end < begin)
        return;
    if ((uintptr_t)begin & 1)
        *begin++ = SHARED_POISON >> 8;
    for (; end - begin >= 2; begin += 2)
        memcpy(begin, &poison, sizeof poison);
    if (begin < end)
        *begin = SHARED_POISON & 0xFF;
}

/* Everything in the block but the runtime's own state and the dynamic memory that this launch does not have. A worker
   thread runs nothing but kernels, so the program has no other thread-local variables to lose. */
void shared_poison(size_t dynamic_bytes)
{
    struct range all = {0};
    dl_iterate_phdr(find_block, &all);
    simt_tls.worker->shared_begin = all.begin;
    simt_tls.worker->shared_end = all.end;
    unsigned char *own = (unsigned char *)&simt_tls, *tail = simt_dynamic_shared + dynamic_bytes;
    struct range skip[2] = {{own, own + sizeof simt_tls}, {tail, simt_dynamic_shared + SIMT_SHARED_MAX}};
    if (skip[0].begin > skip[1].begin || (skip[0].begin == skip[1].begin && skip[0].end > skip[1].end)) {
        const struct range later = skip[0];
        skip[0] = skip[1];
        skip[1] = later;
    }
    fill(all.begin, skip[0].begin);
    fill(skip[0].end, skip[1].begin);
    fill(skip[1].end, all.end);
    __asm__ volatile("" ::: "memory"); /* kernels read it under other types and names */
}

/* The shared address of the first byte of dynamic memory. As aligned as that byte, so that arithmetic on addresses
   finds the same bits; and no small number, so that a null pointer is told from an address. */
#define WINDOW ((int64_t)1 << 24)

void simt_address_error(const char *what, const char *file, int line)
{
    report_raise(EVENT_ADDRESS, true, file, line, NULL, "%s", what);
    traps_end();
}

void simt_misaligned_error(const char *what, const char *file, int line)
{
    report_raise(EVENT_MISALIGNED, true, file, line, NULL, "misaligned address in %s", what);
    traps_end();
}

uint64_t simt_shared_address(const void *generic, const char *file, int line)
{
    const struct worker *w = simt_tls.worker;
    const unsigned char *p = generic;
    /* One past the end of an array is an address too. */
    if (p < w->shared_begin || p > w->shared_end) {
        report_raise(EVENT_ADDRESS, true, file, line, NULL, "%p is not an address of shared memory", generic);
        traps_end();
    }
    return (uint64_t)(p - simt_dynamic_shared + WINDOW);
}

/* All of them lie in the block, outside of the runtime's own state and of dynamic memory that was not asked for. */
static bool is_shared(const struct worker *w, const unsigned char *p, size_t bytes)
{
    const unsigned char *own = (const unsigned char *)&simt_tls, *tail = simt_dynamic_shared + w->launch->shared_bytes;
    return p >= w->shared_begin && p + bytes <= w->shared_end && (p + bytes <= own || p >= own + sizeof simt_tls) &&
           (p + bytes <= tail || p >= simt_dynamic_shared + SIMT_SHARED_MAX);
}

/* Dynamic memory begins at a multiple of what 18 bits count; static memory lies before it or behind. */
const unsigned char *shared_of_descriptor(const struct worker *w, uint32_t address)
{
    const unsigned char *at = simt_dynamic_shared + address;
    if (is_shared(w, at, 16))
        return at;
    at = (const unsigned char *)((uintptr_t)at - ((uintptr_t)1 << 18));
    return is_shared(w, at, 16) ? at : NULL;
}

void *simt_shared_pointer(uint64_t address, size_t bytes, size_t align, const char *what, const char *file, int line)
{
    const struct worker *w = simt_tls.worker;
    const int64_t offset = (int64_t)(uint32_t)address - WINDOW;
    unsigned char *p = (unsigned char *)((uintptr_t)simt_dynamic_shared + (uintptr_t)offset);
    if (address > UINT32_MAX || !is_shared(w, p, bytes)) {
        report_raise(EVENT_ADDRESS, true, file, line, NULL,
                     "%s at shared address 0x%" PRIx64 " leaves the block's shared memory (its dynamic part: 0x%" PRIx64
                     ", %zu bytes)",
                     what, address, (uint64_t)WINDOW, w->launch->shared_bytes);
        traps_end();
    }
    if (align && address % align) {
        report_raise(EVENT_MISALIGNED, true, file, line, NULL,
                     "misaligned address: %s at shared address 0x%" PRIx64 ", not a multiple of %zu bytes", what,
                     address, align);
        traps_end();
    }
    return p;
}
