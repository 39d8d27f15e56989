/* Which block recorded a tile of the trace first, and in which of its threads' visits. Where another block records
   other values over them, the tile holds a mixture that neither has computed, and no stage is to blame for it. Where
   the same one does, the kernel came twice, or its threads do not agree. */
#include "engine/base/dtype.h"
#include "engine/simt/launch.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"
#include "engine/trace/event.h"
#include "engine/trace/layout.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { TABLE = 1 << 20, PROBES = 8, BLOCK_BITS = 24, TOLD = 64 };

static _Atomic uint64_t table[TABLE];    /* offset of a tile over 16, above its block + 1; 0: free */
static _Atomic uint32_t visit_of[TABLE]; /* of the tile that stands there: fiber.visits of its first recorder */
static uint64_t earlier[TABLE]; /* tiles that launches before this one in the run recorded: their keys; 0: free */
static bool any_earlier;
static atomic_bool used;
static atomic_uint said[2]; /* sets of channels: of two visits, of copies */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int32_t told[TOLD][3]; /* under lock: batch, head, q tile */
static int n_told;
static struct asc_plan recorded; /* of it, the values alone */

static uint64_t first_place(uint64_t key)
{
    return key * 0x9E3779B97F4A7C15u >> 40;
}

/* A tile's place among the earlier ones; free: one that it may take. -1: neither. */
static int64_t find_earlier(uint64_t key, bool or_free)
{
    for (uint64_t i = 0, at = first_place(key); i < PROBES; i++) {
        const uint64_t there = earlier[(at + i) % TABLE];
        if (there == key || (!there && or_free))
            return (int64_t)((at + i) % TABLE);
    }
    return -1;
}

void recorders_take_values(const struct asc_value values[ASC_OWN_CHANNELS])
{
    memcpy(recorded.value, values, sizeof recorded.value);
}

void recorders_begin_run(void)
{
    if (any_earlier)
        memset(earlier, 0, sizeof earlier);
    any_earlier = false;
    if (atomic_exchange(&used, false))
        memset((void *)table, 0, sizeof table);
}

void recorders_begin_launch(void)
{
    if (atomic_exchange(&used, false)) {
        for (size_t i = 0; i < TABLE; i++) {
            const uint64_t key = atomic_load_explicit(&table[i], memory_order_relaxed) >> BLOCK_BITS << BLOCK_BITS;
            const int64_t at = key ? find_earlier(key, true) : -1;
            if (at >= 0)
                earlier[at] = key;
        }
        any_earlier = true;
        memset((void *)table, 0, sizeof table);
    }
    n_told = 0;
    atomic_store(&said[0], 0);
    atomic_store(&said[1], 0);
}

static uint64_t this_block(void)
{
    const struct worker *w = simt_tls.worker;
    const struct simt_dim grid = w->launch->grid;
    const uint64_t block = w->block.x + (uint64_t)grid.x * (w->block.y + (uint64_t)grid.y * w->block.z);
    return block % ((1u << BLOCK_BITS) - 1) + 1;
}

/* Where a tile stands, with the block that recorded it first; -1: nowhere, or there is no room. */
static int64_t find(size_t offset, uint64_t block, uint64_t *there)
{
    const uint64_t key = (uint64_t)(offset / 16 + 1) << BLOCK_BITS;
    for (uint64_t i = 0, at = first_place(key); i < PROBES; i++) {
        _Atomic uint64_t *entry = &table[(at + i) % TABLE];
        *there = 0;
        if (block ? atomic_compare_exchange_strong(entry, there, key | block)
                  : (*there = atomic_load_explicit(entry, memory_order_relaxed)) == 0)
            return block ? (int64_t)((at + i) % TABLE) : -1;
        if (*there >> BLOCK_BITS == key >> BLOCK_BITS)
            return (int64_t)((at + i) % TABLE);
    }
    return -1;
}

/* The thread's visit of this kv tile. */
static uint32_t visit_now(int kv)
{
    struct fiber *self = simt_tls.self;
    if (self && kv >= 0 && self->visited != kv + 1) {
        self->visited = kv + 1;
        self->visits++;
    }
    return self ? self->visits : 0;
}

static int recorders(int64_t at, uint64_t there, uint32_t visit)
{
    if ((there & ((1u << BLOCK_BITS) - 1)) != this_block())
        return SIMT_OTHER_BLOCK;
    return SIMT_SAME_BLOCK | (atomic_load_explicit(&visit_of[at], memory_order_relaxed) == visit ? SIMT_SAME_VISIT : 0);
}

/* Where the fiber keeps what it was told of this tile; NULL: host code. */
static struct fiber_answer *answer_of(size_t offset)
{
    struct fiber *self = simt_tls.self;
    return self ? &self->answer[first_place(offset) % (sizeof self->answer / sizeof *self->answer)] : NULL;
}

static bool is_answer(const struct fiber_answer *answer, size_t offset, uint32_t visit)
{
    return answer && answer->visit == visit + 1 && answer->offset == offset;
}

/* Who recorded a tile first does not change within a launch; where nobody had, it is this visit from now on. */
static void keep_answer(struct fiber_answer *answer, size_t offset, uint32_t visit, int who)
{
    if (answer)
        *answer = (struct fiber_answer){offset, visit + 1, who ? who : SIMT_SAME_BLOCK | SIMT_SAME_VISIT};
}

int simt_records(size_t offset, int kv)
{
    const uint32_t visit = visit_now(kv);
    struct fiber_answer *answer = answer_of(offset);
    uint64_t there;
    if (is_answer(answer, offset, visit))
        return answer->who;
    atomic_store_explicit(&used, true, memory_order_relaxed);
    if (any_earlier && find_earlier((uint64_t)(offset / 16 + 1) << BLOCK_BITS, false) >= 0)
        return SIMT_OTHER_LAUNCH;
    const int64_t at = find(offset, this_block(), &there);
    const int who = at >= 0 && there ? recorders(at, there, visit) : 0; /* no room: what is not known is not said */
    if (at >= 0 && !there)
        atomic_store_explicit(&visit_of[at], visit, memory_order_relaxed);
    if (at >= 0)
        keep_answer(answer, offset, visit, who);
    return who;
}

int simt_copies(size_t offset, int kv)
{
    const uint32_t visit = visit_now(kv);
    struct fiber_answer *answer = answer_of(offset);
    uint64_t there;
    if (is_answer(answer, offset, visit))
        return answer->who;
    if (any_earlier && find_earlier((uint64_t)(offset / 16 + 1) << BLOCK_BITS, false) >= 0)
        return 0;
    const int64_t at = find(offset, 0, &there);
    const int who = at >= 0 ? recorders(at, there, visit) : 0;
    if (at >= 0)
        keep_answer(answer, offset, visit, who);
    return who;
}

/* Blocks of other workers may be at the same tile: one of them finds the other. y and z are there before x is. */
static void sign_block(uint32_t *head, const struct simt_dim *block)
{
    const uint32_t own = block->x + 1, there = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    if (!there) {
        __atomic_store_n(head + 1, block->y, __ATOMIC_RELAXED);
        __atomic_store_n(head + 2, block->z, __ATOMIC_RELAXED);
        __atomic_store_n(head, own, __ATOMIC_RELEASE);
    } else if (there != own || __atomic_load_n(head + 1, __ATOMIC_RELAXED) != block->y ||
               __atomic_load_n(head + 2, __ATOMIC_RELAXED) != block->z) {
        __atomic_store_n(head, ASC_WRITER_BLOCKS, __ATOMIC_RELAXED);
    }
}

uint32_t *simt_writers(unsigned char *stamps, const struct asc_stamp_map *map, int slot, int kv)
{
    if (!map->writers)
        return NULL;
    uint32_t *head = (uint32_t *)(void *)(stamps + map->writers + (uint64_t)slot * map->writers_slot_stride +
                                          (uint64_t)kv * map->writers_kv_stride);
    if (simt_tls.worker)
        sign_block(head, &simt_tls.worker->block);
    return head;
}

void simt_sign(uint32_t *writers, uint32_t element, uint32_t number, uint32_t line)
{
    const struct fiber *self = simt_tls.self;
    const uint32_t thread = self ? (uint32_t)(self - simt_tls.worker->fiber) : 0;
    const uint32_t shown = number >= ASC_WRITER_SHARED_FROM ? ASC_WRITER_SHARED
                           : number + 1 < ASC_WRITER_FAR    ? number + 1
                                                            : ASC_WRITER_FAR;
    if (writers)
        writers[ASC_WRITER_HEAD + element] =
            shown << ASC_WRITER_NUMBER | (line & 1023u) << ASC_WRITER_LINE | (thread & 1023u);
}

/* Whether it has been told that two blocks record this thread's q tile, or may not be told any more; tell: it is now.
 */
static bool is_told(const struct fiber *self, bool tell)
{
    pthread_mutex_lock(&lock);
    bool fresh = n_told < TOLD;
    for (int i = 0; i < n_told && fresh; i++)
        fresh = told[i][0] != self->batch || told[i][1] != self->head || told[i][2] != self->q_tile;
    if (fresh && tell)
        memcpy(told[n_told++], (const int32_t[3]){self->batch, self->head, self->q_tile}, sizeof told[0]);
    pthread_mutex_unlock(&lock);
    return !fresh;
}

static void two_recorders(int channel)
{
    const struct fiber *self = simt_tls.self;
    if (!self || is_told(self, true))
        return;
    char text[192], tile[40] = "";
    if (channel_per_kv((enum asc_channel)channel) && self->visited)
        snprintf(tile, sizeof tile, ", first in kv tile %d", (int)self->visited - 1);
    snprintf(text, sizeof text,
             "q tile %d of batch %d, head %d is recorded by two blocks%s, with different values: what stands there is "
             "of both",
             self->q_tile, self->batch, self->head, tile);
    struct simt_report r = {.kind = EVENT_TWO_RECORDERS, .text = text, .times = 1};
    report_send(&r, self);
}

/* By more than rounding: sums of 2^12 positive f32 values in two orders are 2^-11 apart at most. */
static bool is_beyond_rounding(int dtype, const void *there, const void *value)
{
    const int paused = traps_pause();
    const double a = dtype_load((enum dtype)dtype, there, 0), b = dtype_load((enum dtype)dtype, value, 0);
    const double larger = fmax(1.0, fmax(fabs(a), fabs(b)));
    const bool is = !(a == b || fabs(a - b) <= larger * 0x1p-11 || (isnan(a) && isnan(b)));
    traps_resume(paused);
    return is;
}

/* The event stands at the probe's line. */
void simt_two_values(int channel, int recorders, int dtype, const void *there, const void *value)
{
    const bool copies = recorders & SIMT_SAME_VISIT;
    if (recorders & SIMT_OTHER_BLOCK) {
        two_recorders(channel);
        return;
    }
    if (!(recorders & (SIMT_SAME_BLOCK | SIMT_OTHER_LAUNCH)) || atomic_load(&said[copies]) >> channel & 1 ||
        (copies && !is_beyond_rounding(dtype, there, value)) ||
        (simt_tls.self && is_told(simt_tls.self, false)) || /* what stands there is another block's */
        atomic_fetch_or(&said[copies], 1u << channel) >> channel & 1)
        return;
    const struct fiber *self = simt_tls.self;
    char at[32] = "";
    if (self && self->visited)
        snprintf(at, sizeof at, ", kv tile %d", self->visited - 1);
    report_raise(
        copies ? EVENT_COPIES_DIFFER : EVENT_TWO_VISITS, false, NULL, 0, NULL,
        copies ? "threads of a block hold different values of an element of %s, q tile %d%s"
        : recorders & SIMT_OTHER_LAUNCH
            ? "elements of %s, q tile %d%s, are recorded in two launches, with different values: the last ones "
              "are kept"
            : "elements of %s, q tile %d%s, are recorded in two visits, with different values: the last ones "
              "are kept",
        plan_channel_name(&recorded, (enum asc_channel)channel), self ? self->q_tile : -1, at);
}
