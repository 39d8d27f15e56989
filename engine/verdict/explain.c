#include "engine/verdict/explain.h"

#include "engine/trace/writers.h"
#include "engine/verdict/case.h"
#include "engine/verdict/masks.h"
#include <stdlib.h>
#include <string.h>

/* Slots that a search begins with, wrong ones and right ones, and how many more may come to try a region on. */
enum { SLOTS_WRONG = 6, SLOTS_FIRST = 8, SLOTS_MOST = 20, ROUNDS = 3, MORE = 4, TILES_OF_SLOT = 6 };

/* Of all others so many are checked, of suspects and of those that are none; fewer where a slot has very many tiles. */
enum { CHECKED_MOST = 64, CHECKED_LEAST = 4, TILES_CHECKED = 4096 };

struct explaining {
    const struct judgement *j;
    const struct trace *t;
    enum asc_channel ch;
    struct judge_scratch *scratch; /* of the one thread that does what is not done beside others */
    struct searchers by;
    const struct known_rules *known; /* NULL: none */
    struct sample sample;
    struct case_sources sources;
    struct slot_case *cases; /* owned, [SLOTS_MOST] */
    int slots[SLOTS_MOST], n;
    struct work_items items;
    int32_t *item_room; /* owned: what these point to */
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

static struct sample_place place_of(const struct explaining *e, int slot)
{
    const int32_t *at = trace_slot_place(e->t, slot);
    return (struct sample_place){{at[0], at[1], at[2]},
                                 asc_kv_head(&e->t->problem, at[1], e->t->conventions.kv_head_map)};
}

static int add_slot(struct explaining *e, int slot)
{
    const struct sample_place place = place_of(e, slot);
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

/* The seen-th of `all` is one of `want` that are spread over them: whenever i want / all comes to another whole
   number. */
static bool is_picked(int seen, int want, int all)
{
    return all <= want || all < 1 || (int64_t)seen * want % all < want;
}

/* Slots that are wrong, or right, up to `most` of all that were taken: spread over the run, as neighbors are q tiles of
   one head. Where there are splits they come in pairs: what is merged, or gone on from, may be the
   neighbor's. */
static int add_slots(struct explaining *e, bool wrong, int most)
{
    int all = 0, seen = 0, failed = 0;
    for (int slot = 0; slot < e->j->n_slots; slot++)
        all += !is_taken(e, slot) && slot_is_wrong(e, slot) == wrong;
    const int want = most - e->n, together = e->ch >= asc_m && e->t->plan.kv_splits > 1 && want > 1 ? 2 : 1;
    for (int slot = 0; slot < e->j->n_slots && e->n < most && !failed; slot++) {
        if (is_taken(e, slot) || slot_is_wrong(e, slot) != wrong)
            continue;
        if (is_picked(seen++ / together, want / together, (all + together - 1) / together))
            failed = add_slot(e, slot);
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

/* The block that recorded what a split left; -1: not known. */
static int64_t block_of(const struct trace *t, const struct oracle_case *c, int slot, int split)
{
    static const enum asc_channel channels[] = {asc_u, asc_l, asc_m, asc_s};
    struct trace_writer w;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        for (size_t i = 0; i < sizeof channels / sizeof channels[0] && c->states[kv] == split; i++)
            if (trace_writer(t, channels[i], slot, kv, 0, 0, &w) && !w.blocks)
                return w.block[0];
    return -1;
}

/* Of a run with a work list in which all q tiles are recorded and who worked on each is known: e->items. -1 without
   memory. */
static int find_items(struct explaining *e)
{
    const struct trace *t = e->t;
    const struct asc_problem *p = &t->problem;
    const int q_tiles = (p->q_len + t->plan.br - 1) / t->plan.br, slots = p->batch * p->heads * q_tiles;
    const int most = slots * t->plan.kv_splits;
    bool known = true;
    int n = 0;
    if (e->ch < asc_o || t->plan.kv_splits < 2 || t->plan.kv_deal != ASC_DEAL_MAP || e->j->n_slots != slots ||
        !trace_keeps_writers(t))
        return 0;
    e->item_room = malloc((size_t)(slots + 2 * most) * sizeof *e->item_room);
    if (!e->item_room)
        return -1;
    int32_t *const first = e->item_room, *const block = first + slots, *const last = block + most;
    for (int slot = 0; slot < slots && known; slot++) {
        const int32_t *at = trace_slot_place(t, slot);
        struct slot_case c;
        if ((at[0] * p->heads + at[1]) * q_tiles + at[2] != slot)
            return 0;
        if (slot_case_make(t, slot, &c) != 0)
            return -1;
        first[slot] = n;
        for (int split = 0; c.c.states && split < c.c.states[c.c.kv_tiles] && split < t->plan.kv_splits; split++) {
            const int64_t by = block_of(t, &c.c, slot, split);
            known = known && by >= 0 && by < INT32_MAX;
            block[n++] = (int32_t)by;
        }
        slot_case_free(&c);
    }
    for (int i = 0; i < n; i++)
        last[i] = -1;
    for (int i = 0; i < n && known; i++)
        if (block[i] < n)
            last[block[i]] = i;
    e->items = (struct work_items){first, q_tiles, last, known ? n : 0};
    return 0;
}

static struct search_inputs inputs_of(const struct explaining *e)
{
    enum dtype f32;
    return (struct search_inputs){e->sources.sources,
                                  e->sources.n,
                                  e->t->problem.heads,
                                  e->t->problem.kv_heads,
                                  trace_tensor(e->t, 'a', &f32),
                                  trace_tensor(e->t, 's', &f32),
                                  e->t->problem.page_table,
                                  e->t->problem.page_size,
                                  asc_table_pages(&e->t->problem),
                                  e->known ? e->known->rule : NULL,
                                  e->known ? e->known->n : 0,
                                  e->items,
                                  e->by};
}

static int search(struct explaining *e, const struct rule *known, struct explanation *out)
{
    const struct search_inputs inputs = inputs_of(e);
    return search_stage(&e->sample, e->scratch, &inputs, known, out);
}

/* A slot that the sample has not shown, and a region that is claimed. */
enum standing {
    OUTSIDE,     /* no tile of it is in the region, and none is bad */
    BAD_OUTSIDE, /* one that is bad lies outside of the region */
    ALL_RIGHT,   /* none is bad, though some are in the region */
    PARTLY_RIGHT,
    ALL_BAD /* all that are in the region are bad, and no other */
};

static enum standing standing_of(const struct explaining *e, const struct region *region, int slot)
{
    int bad_in = 0, right_in = 0, bad_out = 0;
    for (int kv = 0; kv < kv_tiles(e); kv++) {
        const bool in = region_has_tile(e, region, slot, kv), bad = is_bad(e, slot, kv);
        bad_in += in && bad;
        right_in += in && !bad;
        bad_out += !in && bad;
    }
    return bad_out ? BAD_OUTSIDE : right_in ? (bad_in ? PARTLY_RIGHT : ALL_RIGHT) : bad_in ? ALL_BAD : OUTSIDE;
}

/* Of the region's tiles the first and the last right one and the first bad one, with those beside them. */
static void choose_doubtful(const struct explaining *e, const struct region *region, int slot, bool *wanted)
{
    const int n = kv_tiles(e);
    int tiles[3] = {-1, -1, -1};
    memset(wanted, 0, (size_t)e->j->kv_tiles * sizeof *wanted);
    for (int kv = 0; kv < n; kv++) {
        if (!region_has_tile(e, region, slot, kv))
            continue;
        const bool bad = is_bad(e, slot, kv);
        if (tiles[bad ? 2 : 0] < 0)
            tiles[bad ? 2 : 0] = kv;
        tiles[1] = bad ? tiles[1] : kv;
    }
    for (int i = 0; i < 3; i++)
        for (int kv = tiles[i] - 1; tiles[i] >= 0 && kv <= tiles[i] + 1; kv++)
            if (kv >= 0 && kv < n)
                wanted[kv] = true;
}

/* The region that rule `which`, or a pattern, is said of. */
static const struct region *region_of(const struct explanation *it, int which)
{
    return it->pattern ? &it->where : &it->rule[which].region;
}

/* Whether it is contradicted by a slot that it was not found on, by more than is left open to a rule. */
static int contradicts(const struct explaining *e, const struct explanation *it, int which, int slot, bool *result)
{
    const struct sample_place place = place_of(e, slot);
    const struct search_inputs inputs = inputs_of(e);
    const struct evidence *known = &it->rule[which].evidence;
    struct evidence found[RULES_MOST] = {0};
    struct sample sample;
    struct slot_case c = {0};
    bool *wanted = calloc((size_t)e->j->kv_tiles, sizeof *wanted);
    sample_begin(&sample, e->ch);
    int failed = wanted && slot_case_make(e->t, slot, &c) == 0 ? 0 : -1;
    if (!failed) {
        choose_doubtful(e, region_of(it, which), slot, wanted);
        failed = sample_add(&sample, &c.c, &place, wanted, e->scratch);
    }
    if (!failed)
        failed = search_check(&sample, e->scratch, &inputs, it, found);
    *result = (known->out + found[which].out) * 10000 > known->told + found[which].told;
    sample_free(&sample);
    slot_case_free(&c);
    free(wanted);
    return failed;
}

/* What was found on a sample, and all slots that it has not shown. */
struct objections {
    bool against; /* one contradicts it */
    int added;    /* that many were added to the sample, which is at most `most` */
    int most;
};

static bool has_room(const struct explaining *e, const struct objections *o)
{
    return o->added < o->most && e->n < SLOTS_MOST;
}

static int add_objection(struct explaining *e, int slot, struct objections *o)
{
    if (!has_room(e, o))
        return 0;
    o->added++;
    return add_slot(e, slot);
}

/* A pattern is contradicted by where bad tiles are. A rule may say of a tile what the right formula says: it is looked
   at first where none is bad. */
static bool is_suspect(const struct explanation *it, enum standing standing)
{
    return it->pattern ? standing != ALL_BAD : standing == ALL_RIGHT;
}

static int checked_most(const struct explaining *e)
{
    const int n = TILES_CHECKED / e->j->kv_tiles;
    return n > CHECKED_MOST ? CHECKED_MOST : n < CHECKED_LEAST ? CHECKED_LEAST : n;
}

/* Slots of the region in which it does not hold: all that are suspect come before the others. */
static int object(struct explaining *e, const struct explanation *it, int which, struct objections *o)
{
    for (int suspects = 1; suspects >= 0; suspects--) {
        int all = 0, seen = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int slot = 0; slot < e->j->n_slots && (!o->against || has_room(e, o)); slot++) {
                const enum standing standing = is_taken(e, slot) ? OUTSIDE : standing_of(e, region_of(it, which), slot);
                bool is_against = it->pattern && suspects;
                if (standing == OUTSIDE || is_suspect(it, standing) != suspects)
                    continue;
                all += pass == 0;
                if (pass == 0 || !is_picked(seen++, checked_most(e), all))
                    continue;
                if (!is_against && contradicts(e, it, which, slot, &is_against) != 0)
                    return -1;
                o->against = o->against || is_against;
                if (is_against && add_objection(e, slot, o) != 0)
                    return -1;
            }
        }
    }
    return 0;
}

/* Bad tiles that a rule's region leaves out say that it may be too narrow. */
static int add_left_out(struct explaining *e, const struct region *region, struct objections *o)
{
    int failed = 0;
    for (int slot = 0; slot < e->j->n_slots && !failed && has_room(e, o); slot++)
        if (!is_taken(e, slot) && standing_of(e, region, slot) == BAD_OUTSIDE)
            failed = add_objection(e, slot, o);
    return failed;
}

/* A region was fitted to a sample: it is tried on what the sample did not show, until nothing speaks against it. What
   something still speaks against is not told: another rule is searched for, once, where what spoke against the first is
   in the sample. */
static int settle(struct explaining *e, struct explanation *out)
{
    bool again = false;
    int failed = 0;
    for (int round = 0; round <= ROUNDS && (out->n || out->pattern); round++) {
        const struct explanation before = *out;
        struct objections o = {.most = round < ROUNDS ? MORE : 0};
        failed = object(e, out, 0, &o);
        if (!failed && out->n)
            failed = add_left_out(e, &before.rule[0].region, &o);
        if (failed || (!o.against && !o.added))
            return failed;
        if (o.added) {
            failed = search(e, &before.rule[0], out);
            if (!failed && before.n && !out->n && !again) {
                again = true;
                failed = search(e, NULL, out);
                if (failed)
                    return failed;
                continue;
            }
        } else {
            *out = (struct explanation){.tried = before.tried};
        }
        /* That search tried one rule alone, or none: where there is a pattern no rule passes. */
        out->runner_up = before.runner_up;
        memcpy(out->runner_up_said, before.runner_up_said, sizeof out->runner_up_said);
        if (failed)
            return failed;
    }
    return 0;
}

/* A second rule was found on the first one's sample alone. */
static int check_second(struct explaining *e, struct explanation *out)
{
    struct objections o = {0};
    if (out->n < 2)
        return 0;
    const int failed = object(e, out, 1, &o);
    if (o.against) {
        out->n = 1;
        out->share = out->rule[0].evidence.share;
        snprintf(out->text, sizeof out->text, "%s", out->said[0]);
    }
    return failed;
}

/* Keys beyond the last one are no part of the sample: where any of those is seen, nothing is said of elsewhere. */
static void limit_pattern(const struct explaining *e, struct explanation *out)
{
    char *at = out->pattern ? strstr(out->text, ", and right elsewhere") : NULL;
    if (!out->pattern || e->ch != asc_s || !e->j->masks || !masks_shows_padding(e->j->masks, e->t))
        return;
    if (at)
        *at = '\0';
    else
        *out = (struct explanation){.tried = out->tried};
}

int judgement_explain(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct searchers by,
                      const struct known_rules *known, struct explanation *out)
{
    struct judge_scratch *const scratch = by.scratch[0];
    struct explaining e = {.j = j, .t = t, .ch = ch, .scratch = scratch, .by = by, .known = known};
    *out = (struct explanation){0};
    sample_begin(&e.sample, ch);
    e.cases = calloc(SLOTS_MOST, sizeof *e.cases);
    int failed = e.cases && case_sources(t, &e.sources) == 0 ? 0 : -1;
    if (!failed)
        failed = find_items(&e);
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
    if (!failed)
        failed = check_second(&e, out);
    limit_pattern(&e, out);
    sample_free(&e.sample);
    for (int i = 0; e.cases && i < e.n; i++)
        slot_case_free(&e.cases[i]);
    free(e.cases);
    free(e.item_room);
    case_sources_free(&e.sources);
    return failed;
}
