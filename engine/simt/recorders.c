/* Which block recorded a tile of the trace first. Where another one records other values over them, the tile holds a
   mixture that neither has computed, and no stage is to blame for it. */
#include "engine/simt/launch.h"
#include "engine/simt/report.h"
#include "engine/simt/worker.h"
#include "engine/trace/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { TABLE = 1 << 20, PROBES = 8, BLOCK_BITS = 24, TOLD = 64 };

static _Atomic uint64_t table[TABLE]; /* offset of a tile over 16, above its block + 1; 0: free */
static atomic_int used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int32_t told[TOLD][3]; /* under lock: batch, head, q tile */
static int n_told;

void recorders_begin_launch(void)
{
    if (atomic_exchange(&used, 0))
        memset((void *)table, 0, sizeof table);
    n_told = 0;
}

static uint64_t this_block(void)
{
    const struct worker *w = simt_tls.worker;
    const struct simt_dim grid = w->launch->grid;
    const uint64_t block = w->block.x + (uint64_t)grid.x * (w->block.y + (uint64_t)grid.y * w->block.z);
    return block % ((1u << BLOCK_BITS) - 1) + 1;
}

int simt_records(size_t offset)
{
    const uint64_t block = this_block(), key = (uint64_t)(offset / 16 + 1) << BLOCK_BITS;
    atomic_store_explicit(&used, 1, memory_order_relaxed);
    for (uint64_t i = 0, at = key * 0x9E3779B97F4A7C15u >> 40; i < PROBES; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&table[(at + i) % TABLE], &there, key | block))
            return 0;
        if (there >> BLOCK_BITS == key >> BLOCK_BITS)
            return there != (key | block);
    }
    return 0; /* no room: what is not known is not said */
}

void simt_two_recorders(void)
{
    const struct fiber *self = simt_tls.self;
    int fresh = self != NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_told && fresh; i++)
        fresh = told[i][0] != self->batch || told[i][1] != self->head || told[i][2] != self->q_tile;
    fresh = fresh && n_told < TOLD;
    if (fresh)
        memcpy(told[n_told++], (const int32_t[3]){self->batch, self->head, self->q_tile}, sizeof told[0]);
    pthread_mutex_unlock(&lock);
    if (!fresh)
        return;
    char text[160];
    snprintf(text, sizeof text,
             "q tile %d of batch %d, head %d is recorded by two blocks, with different values: what stands there is of "
             "both",
             self->q_tile, self->batch, self->head);
    struct simt_report r = {.kind = EVENT_TWO_RECORDERS, .text = text, .times = 1};
    report_send(&r, self);
}
