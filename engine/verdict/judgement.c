#include "engine/verdict/judgement.h"

#include "engine/base/pool.h"
#include "engine/oracle/fingerprint.h"
#include "engine/oracle/schedule.h"
#include "engine/verdict/case.h"
#include "engine/verdict/dealt.h"
#include "engine/verdict/masks.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/own.h"
#include "engine/verdict/status.h"
#include <stdlib.h>
#include <string.h>

int judgement_new(const struct trace *t, struct judgement **out)
{
    struct judgement *j = calloc(1, sizeof *j);
    *out = NULL;
    if (!j)
        return -1;
    j->n_slots = t->layout.n_slots;
    j->kv_tiles = t->layout.kv_tiles;
    j->summary.first.slot = -1;
    j->state_break.slot = -1;
    j->summarized = -1;
    j->run_incomplete = !trace_complete(t);
    j->tiles = calloc((size_t)j->n_slots * (size_t)j->kv_tiles * ASC_CHANNELS, sizeof *j->tiles);
    j->statuses = calloc((size_t)j->n_slots * (size_t)j->kv_tiles, ASC_ALL_CHANNELS);
    const size_t n_own = plan_values(&t->plan) ? (size_t)j->n_slots * ASC_OWN_CHANNELS : 0;
    j->own = n_own ? calloc(n_own, sizeof *j->own) : NULL;
    for (size_t i = 0; j->own && i < n_own; i++)
        j->own[i].first_nan.slot = -1;
    j->slot_done = calloc((size_t)j->n_slots, sizeof *j->slot_done);
    j->fingerprint = calloc(1, sizeof *j->fingerprint);
    /* As of trace_lse(): what a complete run shows is noted once; no other thread has the trace yet. */
    if (trace_deal_as_seen((struct trace *)(uintptr_t)t) != 0 || !j->tiles || !j->statuses || (n_own && !j->own) ||
        !j->slot_done || !j->fingerprint || masks_new(t, &j->masks) != 0) {
        judgement_free(j);
        return -1;
    }
    *out = j;
    return 0;
}

void judgement_free(struct judgement *j)
{
    if (!j)
        return;
    for (int i = 0; i < j->n_findings; i++)
        free(j->findings[i].again);
    free(j->tiles);
    free(j->statuses);
    free(j->slot_done);
    free(j->own);
    free(j->fingerprint);
    masks_free(j->masks);
    run_onset_free(j->onset);
    free(j);
}

/* The slots of the sample lie far apart, so that what is wrong in one head or q tile does not make it up; not evenly,
   or they could be the same q tile of every head. */
static int sample_slot(int sample, int samples, int n_slots)
{
    const int first = (int)((int64_t)sample * n_slots / samples),
              next = (int)((int64_t)(sample + 1) * n_slots / samples);
    return first + sample * 5 % (next - first);
}

/* Whether any row sees a key of a tile that was visited: no other slot holds sums that tell. */
static bool slot_sees(const struct oracle_case *c)
{
    for (int visit = 0; visit < c->n_visited; visit++)
        if (schedule_sees(c, c->order[visit]))
            return true;
    return false;
}

/* From `slot` on, round all of them, the first that sees a key; 1: none does. */
static int make_seeing(const struct trace *t, int slot, int n_slots, struct slot_case *c)
{
    for (int i = 0; i < n_slots; i++) {
        if (slot_case_make(t, (slot + i) % n_slots, c) != 0)
            return -1;
        if (slot_sees(&c->c))
            return 0;
        slot_case_free(c);
    }
    return 1;
}

/* Slots whose products are taken for the fingerprint; every worker takes one after the other. */
struct sampling {
    const struct trace *t;
    struct judge_scratch *const *scratch; /* [workers] */
    int n;
    atomic_int next, failed;
    struct fingerprint of[FINGERPRINT_BLOCKS / 2]; /* of each sample */
};

static int sample_step(void *ctx, int worker)
{
    struct sampling *s = ctx;
    const int i = atomic_fetch_add(&s->next, 1), n_slots = s->t->layout.n_slots;
    struct slot_case c;
    if (i >= s->n || atomic_load(&s->failed))
        return 0;
    const int blind = make_seeing(s->t, sample_slot(i, s->n, n_slots), n_slots, &c);
    bool failed = blind < 0;
    if (!blind) {
        failed = fingerprint_add(&s->of[i], &c.c, s->scratch[worker], i, FINGERPRINT_BLOCKS / s->n) != 0;
        slot_case_free(&c);
    }
    if (failed)
        atomic_store(&s->failed, 1);
    return !blind && !failed; /* where no slot sees a key, none does */
}

int judgement_fingerprint(struct judgement *j, const struct trace *t, struct judge_scratch *const *scratch,
                          struct pool *pool)
{
    const struct asc_conventions *conventions = &t->conventions;
    struct sampling s = {.t = t, .scratch = scratch};
    s.n = j->n_slots < FINGERPRINT_BLOCKS / 2 ? j->n_slots : FINGERPRINT_BLOCKS / 2;
    if (conventions->acc_s == ASC_ACC_F32 && conventions->acc_u == ASC_ACC_F32)
        return 0;
    if (pool) {
        pool_start(pool, sample_step, &s);
        pool_wait(pool);
    } else {
        while (sample_step(&s, 0))
            ;
    }
    for (int i = 0; i < s.n; i++)
        fingerprint_join(j->fingerprint, &s.of[i]);
    return atomic_load(&s.failed) ? -1 : 0;
}

static void slot_is_done(struct judgement *j, const struct trace *t, int slot)
{
    judgement_note_statuses(j, t, slot);
    atomic_store_explicit(&j->slot_done[slot], 1, memory_order_release);
    atomic_fetch_add(&j->n_done, 1);
}

int judgement_slot(struct judgement *j, const struct trace *t, int slot, struct judge_scratch *scratch)
{
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    c.c.fingerprint = j->fingerprint;
    int failed = judge_case(&c.c, scratch, judgement_tiles(j, slot), NULL);
    if (!failed)
        failed = masks_slot(j->masks, &c.c, slot, scratch);
    slot_case_free(&c);
    if (failed)
        return -1;
    slot_is_done(j, t, slot);
    return 0;
}

int judgement_adopt(struct judgement *j, const struct trace *t, int slot, const struct tile_verdicts *tiles,
                    const uint32_t *seen, struct judge_scratch *scratch)
{
    const int32_t *place = trace_slot_place(t, slot);
    const int rows = channel_valid_rows(asc_q, &t->problem, &t->plan, place[0], place[2], 0);
    memcpy(judgement_tiles(j, slot), tiles, (size_t)j->kv_tiles * ASC_CHANNELS * sizeof *tiles);
    if (!seen) { /* weights tell */
        struct slot_case c;
        int failed = slot_case_make(t, slot, &c);
        if (!failed)
            failed = masks_slot(j->masks, &c.c, slot, scratch);
        slot_case_free(&c);
        if (failed)
            return -1;
    } else {
        masks_adopt(j->masks, slot, seen, (uint64_t)rows * (uint64_t)t->plan.bc);
    }
    slot_is_done(j, t, slot);
    return 0;
}

int judgement_detail(const struct judgement *j, const struct trace *t, struct place place,
                     struct judge_scratch *scratch, struct tile_detail *out)
{
    const size_t n =
        (size_t)channel_rows(place.channel, &t->plan) * (size_t)channel_cols(place.channel, &t->plan, &t->problem);
    struct tile_verdicts *tiles = calloc((size_t)t->layout.kv_tiles * ASC_CHANNELS, sizeof *tiles);
    struct slot_case c = {0};
    if (channel_is_own(place.channel)) {
        free(tiles);
        return own_detail(t, place, out);
    }
    *out = (struct tile_detail){.channel = (int)place.channel, .kv = channel_per_kv(place.channel) ? place.kv : 0};
    int failed = !tiles || tile_detail_make(out, n) != 0 || slot_case_make(t, place.slot, &c) != 0;
    if (!failed) {
        c.c.fingerprint = j->fingerprint;
        failed = judge_case(&c.c, scratch, tiles, out) != 0;
    }
    slot_case_free(&c);
    free(tiles);
    if (failed)
        tile_detail_free(out);
    return failed ? -1 : 0;
}

int judgement_operands(const struct judgement *j, const struct trace *t, struct place place, int row, int col,
                       struct judge_scratch *scratch, struct derivation *out)
{
    const bool of_keys = place.channel == asc_k || place.channel == asc_v;
    struct slot_case c;
    *out = (struct derivation){.derived = DERIVED_NOT};
    if (channel_is_own(place.channel))
        return 0;
    if (slot_case_make(t, place.slot, &c) != 0)
        return -1;
    slot_case_row(&c, of_keys ? 0 : row);
    c.c.fingerprint = j->fingerprint;
    const int failed = derive_element(&c.c, scratch, place.channel, place.kv, row, col, out);
    slot_case_free(&c);
    return failed;
}

enum unreal judgement_unreal(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                             struct judge_scratch *scratch)
{
    enum { LOOKED_AT = 256 };
    const int tiles = channel_per_kv(ch) ? j->kv_tiles : 1;
    bool any = false, all = true;
    for (int i = 0, n = 0; i < j->n_slots * tiles && n < LOOKED_AT; i++) {
        const struct place place = {i / tiles, i % tiles, ch};
        struct tile_detail d;
        bool unreal = false;
        if (!judgement_slot_done(j, place.slot) || !judgement_tile_bad(j, place, false) ||
            judgement_detail(j, t, place, scratch, &d) != 0)
            continue;
        n++;
        for (int k = 0; k < d.rows * d.cols; k++)
            unreal = unreal || (class_bad(d.class_local[k]) && !isfinite(d.got[k]));
        any = any || unreal;
        all = all && unreal;
        tile_detail_free(&d);
    }
    return !any ? UNREAL_NONE : all ? UNREAL_ALL : UNREAL_SOME;
}

const struct trace_event *judgement_event_of_read(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                                                  struct judge_scratch *scratch)
{
    const struct trace_event *e = ch <= asc_v ? judgement_event_in_slots(j, t, ch) : NULL;
    return e && e->kind == EVENT_UNINITIALIZED && judgement_unreal(j, t, ch, scratch) == UNREAL_ALL ? e : NULL;
}

bool judgement_event_in_part(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                             const struct trace_event *e, struct judge_scratch *scratch)
{
    const bool coded = dtype_is_code((enum dtype)t->problem.dtype) || t->conventions.quantized != ASC_QUANTIZED_GIVEN;
    return e->kind == EVENT_UNINITIALIZED && !coded && judgement_unreal(j, t, ch, scratch) == UNREAL_SOME;
}
