#include "engine/runners/cpu/shared.h"

#include "engine/runners/cpu/worker.h"

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
