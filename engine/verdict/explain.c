#include "engine/verdict/explain.h"

#include "engine/verdict/case.h"
#include <stdlib.h>
#include <string.h>

/* Slots that a search begins with, wrong ones and right ones, and how many more may come to try a region on. */
enum { SLOTS_WRONG = 6, SLOTS_FIRST = 8, SLOTS_MOST = 20, ROUNDS = 3, MORE = 4, TILES_OF_SLOT = 6 };

struct explaining {
    const struct judgement *j;
    const struct trace *t;
    enum asc_channel ch;
    struct judge_scratch *scratch;
    struct sample sample;
    struct case_sources sources;
    struct slot_case *cases; /* owned, [SLOTS_MOST] */
    int slots[SLOTS_MOST], n;
};

static bool is_bad(const struct explaining *e, int slot, int kv)
{
    return judgement_tile_bad(e->j, (struct place){slot, kv, e->ch}, 0);
}

static int kv_tiles(const struct explaining *e)
{
    return channel_per_kv(e->ch) ? e->j->kv_tiles : 1;
}

static bool slot_is_wrong(const struct explaining *e, int slot)
{
    for (int kv = 0; kv < kv_tiles(e); kv++)
        if (is_bad(e, slot, kv))
            return true;
    return false;
}

static bool is_taken(const struct explaining *e, int slot)
{
    for (int i = 0; i < e->n; i++)
        if (e->slots[i] == slot)
            return true;
    return !judgement_slot_done(e->j, slot);
}

/* The first bad tile, the last one, the ones beside these, the first of all: where a mistake begins, how it goes on,
   and where there is none. */
static void choose_tiles(const struct explaining *e, int slot, bool *wanted)
{
    const int n = kv_tiles(e);
    int first = -1, last = -1, taken = 0;
    memset(wanted, 0, (size_t)e->j->kv_tiles * sizeof *wanted);
    for (int kv = 0; kv < n; kv++) {
        if (!is_bad(e, slot, kv))
            continue;
        first = first < 0 ? kv : first;
        last = kv;
    }
    const int places[] = {first, first + 1, last, first - 1, 0, last - 1, first + 2, n - 1, n / 2, 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && taken < TILES_OF_SLOT; i++) {
        if (places[i] < 0 || places[i] >= n || wanted[places[i]])
            continue;
        wanted[places[i]] = true;
        taken++;
    }
}

static int add_slot(struct explaining *e, int slot)
{
    const int32_t *at = trace_slot_place(e->t, slot);
    const struct sample_place place = {{at[0], at[1], at[2]},
                                       asc_kv_head(&e->t->problem, at[1], e->t->conventions.kv_head_map)};
    bool *wanted = calloc((size_t)e->j->kv_tiles, sizeof *wanted);
    struct slot_case *c = &e->cases[e->n];
    if (!wanted || slot_case_make(e->t, slot, c) != 0) {
        free(wanted);
        return -1;
    }
    e->slots[e->n++] = slot;
    choose_tiles(e, slot, wanted);
    const int failed = sample_add(&e->sample, &c->c, &place, wanted, e->scratch);
    free(wanted);
    return failed;
}

/* Slots that are wrong, or right, up to `most` of all that were taken: spread over the run, as neighbors are q tiles of
   one head. */
static int add_slots(struct explaining *e, bool wrong, int most)
{
    int all = 0, seen = 0, failed = 0;
    for (int slot = 0; slot < e->j->n_slots; slot++)
        all += !is_taken(e, slot) && slot_is_wrong(e, slot) == wrong;
    const int want = most - e->n;
    for (int slot = 0; slot < e->j->n_slots && e->n < most && !failed; slot++) {
        if (is_taken(e, slot) || slot_is_wrong(e, slot) != wrong)
            continue;
        /* `want` of `all`: whenever i want / all comes to another whole number. */
        if (all <= want || all == 0 || (int64_t)seen * want % all < want)
            failed = add_slot(e, slot);
        seen++;
    }
    return failed;
}

/* 1: the region holds for the tile, whatever row and column; only of what is the same in all of a tile. */
static bool region_has_tile(const struct explaining *e, const struct region *region, int slot, int kv)
{
    const int32_t *at = trace_slot_place(e->t, slot);
    for (int i = 0; i < region->n; i++) {
        const struct term *term = &region->term[i];
        const int x[] = {[AXIS_BATCH] = at[0], [AXIS_HEAD] = at[1], [AXIS_Q_TILE] = at[2], [AXIS_KV_TILE] = kv};
        if (term->axis <= AXIS_KV_TILE && !term_holds(term, x[term->axis]))
            return false;
    }
    return true;
}

/* Slots that the sample has not shown and that speak against the region: bad tiles outside of it, or none bad inside.
 */
static int add_contradicting(struct explaining *e, const struct region *region, int *added)
{
    int failed = 0;
    *added = 0;
    for (int slot = 0; slot < e->j->n_slots && *added < MORE && e->n < SLOTS_MOST && !failed; slot++) {
        bool speaks = false;
        if (is_taken(e, slot))
            continue;
        for (int kv = 0; kv < kv_tiles(e) && !speaks; kv++)
            speaks = is_bad(e, slot, kv) != region_has_tile(e, region, slot, kv);
        if (speaks) {
            failed = add_slot(e, slot);
            ++*added;
        }
    }
    return failed;
}

static struct search_inputs inputs_of(const struct explaining *e)
{
    enum dtype f32;
    return (struct search_inputs){e->sources.sources, e->sources.n, e->t->problem.heads, e->t->problem.kv_heads,
                                  trace_tensor(e->t, 'a', &f32)};
}

static int search(struct explaining *e, const struct rule *known, struct explanation *out)
{
    const struct search_inputs inputs = inputs_of(e);
    return search_stage(&e->sample, e->scratch, &inputs, known, out);
}

/* A region was fitted to a sample: it is tried on what the sample did not show, until nothing speaks against it. A
   pattern that something still speaks against is none. */
static int settle(struct explaining *e, struct explanation *out)
{
    int added = 0, failed = 0;
    for (int round = 0; round < ROUNDS && (out->n || out->pattern) && !failed; round++) {
        const struct rule rule = out->rule[0];
        failed = add_contradicting(e, out->n ? &rule.region : &out->where, &added);
        if (failed || !added)
            return failed;
        failed = search(e, out->n ? &rule : NULL, out);
    }
    if (out->pattern && !failed) {
        out->pattern = false;
        out->text[0] = '\0';
    }
    return failed;
}

int judgement_explain(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                      struct judge_scratch *scratch, struct explanation *out)
{
    struct explaining e = {.j = j, .t = t, .ch = ch, .scratch = scratch};
    *out = (struct explanation){0};
    sample_begin(&e.sample, ch);
    e.cases = calloc(SLOTS_MOST, sizeof *e.cases);
    int failed = e.cases && case_sources(t, &e.sources) == 0 ? 0 : -1;
    if (!failed)
        failed = add_slots(&e, true, SLOTS_WRONG);
    if (!failed)
        failed = add_slots(&e, false, SLOTS_FIRST);
    if (!failed)
        failed = search(&e, NULL, out);
    if (!failed)
        failed = settle(&e, out);
    const struct search_inputs inputs = inputs_of(&e);
    if (!failed)
        failed = search_rest(&e.sample, scratch, &inputs, out);
    sample_free(&e.sample);
    for (int i = 0; e.cases && i < e.n; i++)
        slot_case_free(&e.cases[i]);
    free(e.cases);
    case_sources_free(&e.sources);
    return failed;
}
