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
#define NULL_PARTS ((uintptr_t)1 << 18) /* a null pointer, and parts of an array that begins there */

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

/* Of another block of the cluster an address has 1 + its rank up here, as mapa has it. */
#define RANK_SHIFT 26u
#define LOCAL_MASK (((uint64_t)1 << RANK_SHIFT) - 1)

/* The same byte in the memory of another block as p is in the calling one's: they are laid out alike. */
static unsigned char *in_block(const struct worker *block, const void *p)
{
    const struct worker *w = simt_tls.worker;
    return block->shared_begin + ((const unsigned char *)p - w->shared_begin);
}

uint64_t shared_local(uint64_t address)
{
    return address & LOCAL_MASK;
}

struct worker *shared_block_of(const void *p)
{
    const struct cluster *c = simt_tls.worker->cluster;
    const uintptr_t at = (uintptr_t)p;
    for (unsigned i = 0; i < c->n; i++) /* one past the end of an array is an address too */
        if (at >= (uintptr_t)c->member[i]->shared_begin && at <= (uintptr_t)c->member[i]->shared_end)
            return c->member[i];
    return NULL;
}

uint64_t simt_shared_address(const void *generic, const char *file, int line)
{
    const struct worker *w = simt_tls.worker, *block = shared_block_of(generic);
    /* CuTe converts the parts of arrays that a kernel has no room for: behind what the launch asked for, where whoever
       uses it is told, a descriptor's 18 bits too. */
    if ((uintptr_t)generic < NULL_PARTS)
        return ((w->launch->shared_bytes + 1023) & ~(uint64_t)1023) | ((uintptr_t)generic & 1023);
    if (!block) {
        report_raise(EVENT_ADDRESS, true, file, line, NULL, "%p is not an address of shared memory", generic);
        traps_end();
    }
    const uint64_t local = (uint64_t)((const unsigned char *)generic - in_block(block, simt_dynamic_shared) + WINDOW);
    return block == w ? local : local | (uint64_t)(block->rank + 1) << RANK_SHIFT;
}

/* All of them lie in the block, outside of the runtime's own state and of dynamic memory that was not asked for. */
static bool is_shared(const struct worker *block, const unsigned char *p, size_t bytes)
{
    const unsigned char *own = in_block(block, &simt_tls), *all = in_block(block, simt_dynamic_shared),
                        *tail = all + block->launch->shared_bytes;
    return p >= block->shared_begin && p + bytes <= block->shared_end &&
           (p + bytes <= own || p >= own + sizeof simt_tls) && (p + bytes <= tail || p >= all + SIMT_SHARED_MAX);
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

static struct worker *member(uint64_t rank, const char *what, const char *file, int line)
{
    const struct cluster *c = simt_tls.worker->cluster;
    if (rank < c->n)
        return c->member[rank];
    report_raise(EVENT_ADDRESS, true, file, line, NULL, "%s: block %u of a cluster of %u", what, (unsigned)rank, c->n);
    traps_end();
}

void *shared_in(uint64_t address, size_t bytes, size_t align, const char *what, const char *file, int line,
                struct worker **block)
{
    struct worker *w = simt_tls.worker;
    const uint64_t rank = address >> RANK_SHIFT;
    struct worker *in = rank && rank <= w->cluster->n ? w->cluster->member[rank - 1] : w;
    const int64_t offset = (int64_t)(address & LOCAL_MASK) - WINDOW;
    unsigned char *p = (unsigned char *)((uintptr_t)in_block(in, simt_dynamic_shared) + (uintptr_t)offset);
    if (rank > w->cluster->n || !is_shared(in, p, bytes)) {
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
    shared_reaches(in, what, file, line);
    *block = in;
    return p;
}

void shared_reaches(const struct worker *block, const char *what, const char *file, int line)
{
    if (block->n_alive || block == simt_tls.worker)
        return;
    report_raise(EVENT_ADDRESS, false, file, line, simt_tls.self,
                 "%s in the shared memory of block (%u,%u,%u) of the cluster, whose threads have all returned", what,
                 block->block.x, block->block.y, block->block.z);
}

void *simt_cluster_pointer(uint64_t address, size_t bytes, size_t align, const char *what, const char *file, int line)
{
    struct worker *block;
    return shared_in(address, bytes, align, what, file, line, &block);
}

void *simt_shared_pointer(uint64_t address, size_t bytes, size_t align, const char *what, const char *file, int line)
{
    struct worker *block;
    void *p = shared_in(address, bytes, align, what, file, line, &block);
    if (block != simt_tls.worker) {
        report_raise(EVENT_ADDRESS, true, file, line, NULL, "%s: the address is of another block of the cluster", what);
        traps_end();
    }
    return p;
}

uint64_t simt_cluster_address(uint64_t address, uint32_t rank, const char *file, int line)
{
    const struct worker *block = member(rank, "mapa", file, line);
    return (address & LOCAL_MASK) | (uint64_t)(block->rank + 1) << RANK_SHIFT;
}

void *simt_cluster_generic(const void *generic, uint32_t rank, const char *file, int line)
{
    const struct worker *to = member(rank, "mapa", file, line), *from = shared_block_of(generic);
    if (!from) {
        report_raise(EVENT_ADDRESS, true, file, line, NULL, "%p is not an address of shared memory", generic);
        traps_end();
    }
    return to->shared_begin + ((const unsigned char *)generic - from->shared_begin);
}

uint32_t simt_cluster_rank_of(const void *generic, const char *file, int line)
{
    const struct worker *block = shared_block_of(generic);
    if (block)
        return block->rank;
    report_raise(EVENT_ADDRESS, true, file, line, NULL, "%p is not an address of shared memory", generic);
    traps_end();
}
uint32_t simt_cluster_rank_of_address(uint64_t address)
{
    return address >> RANK_SHIFT ? (uint32_t)(address >> RANK_SHIFT) - 1 : simt_tls.worker->rank;
}
