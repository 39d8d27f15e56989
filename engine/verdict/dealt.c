#include "engine/verdict/dealt.h"

#include "engine/oracle/schedule.h"
#include "engine/trace/writers.h"
#include "engine/verdict/case.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Block of one kv tile. */
struct dealt_to {
    bool visited, known;
    uint32_t block[3];
};

static bool any_writer(const struct trace *t, enum asc_channel ch, int slot, int kv, struct trace_writer *out)
{
    const struct tile tile = trace_tile(t, ch, slot, kv);
    for (int i = 0; tile.data && i < tile.valid_rows * tile.valid_cols; i++)
        if (trace_writer(t, ch, slot, kv, i / tile.valid_cols, i % tile.valid_cols, out))
            return true;
    return false;
}

static struct dealt_to dealt_to(const struct trace *t, int slot, int kv)
{
    static const enum asc_channel made[] = {asc_m, asc_alpha, asc_l, asc_p, asc_s, asc_u};
    struct dealt_to out = {.visited = case_visited(t, slot, kv)};
    struct trace_writer w;
    for (size_t i = 0; i < sizeof made / sizeof made[0] && out.visited && !out.known; i++) {
        out.known = any_writer(t, made[i], slot, kv, &w) && !w.blocks;
        if (out.known)
            memcpy(out.block, w.block, sizeof out.block);
    }
    return out;
}

/* Whether rows should see a tile of the slot that nobody came to. -1 without memory. */
static int leaves_out(const struct trace *t, int slot, const struct dealt_to *tiles, bool *out)
{
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    for (int kv = 0; kv < c.c.kv_tiles && !*out; kv++)
        *out = !tiles[kv].visited && schedule_sees(&c.c, kv);
    slot_case_free(&c);
    return 0;
}

static bool same_block(const struct dealt_to *a, const struct dealt_to *b)
{
    return memcmp(a->block, b->block, sizeof a->block) == 0;
}

/* Tiles of one state by the plan that different blocks recorded. */
static bool contradicts_plan(const struct trace *t, int slot, const struct dealt_to *tiles)
{
    const int n = t->layout.kv_tiles;
    int *first = calloc((size_t)t->plan.kv_splits, sizeof *first); /* 1 + the first visited tile of a state */
    bool found = false;
    for (int kv = 0; first && kv < n && !found; kv++) {
        const int state = trace_state(t, slot, kv);
        if (!tiles[kv].visited)
            continue;
        found = first[state] && !same_block(&tiles[first[state] - 1], &tiles[kv]);
        first[state] = first[state] ? first[state] : kv + 1;
    }
    free(first);
    return found;
}

/* Tiles that nobody came to are those of a state of their own. Then how many there are. */
static int number_states(const struct dealt_to *tiles, int n, int32_t *states)
{
    int count = 0;
    bool left_out = false;
    for (int kv = 0; kv < n; kv++) {
        int before = kv - 1; /* a state's tiles are near each other */
        while (before >= 0 && !(tiles[before].visited && same_block(&tiles[before], &tiles[kv])))
            before--;
        left_out |= !tiles[kv].visited;
        states[kv] = !tiles[kv].visited ? -1 : before >= 0 ? states[before] : count++;
    }
    for (int kv = 0; kv < n; kv++)
        states[kv] = states[kv] < 0 ? count : states[kv];
    return states[n] = count + left_out;
}

static int32_t planned_state(const struct trace *t, int batch, int kv)
{
    return asc_state_of(&t->plan, NULL, trace_kv_tiles(t, batch), kv);
}

/* The states of all places by the plan; slots get theirs next. */
static struct trace_dealt *as_planned(const struct trace *t)
{
    const struct layout *l = &t->layout;
    const size_t places = (size_t)t->problem.batch * (size_t)t->problem.heads * (size_t)l->q_tiles,
                 row = (size_t)l->kv_tiles + 1;
    struct trace_dealt *dealt = calloc(1, sizeof *dealt + places * row * sizeof *dealt->states);
    if (!dealt)
        return NULL;
    dealt->splits = t->plan.kv_splits;
    for (size_t i = 0; i < places * row; i++) {
        const int batch = (int)(i / row / ((size_t)t->problem.heads * (size_t)l->q_tiles)), kv = (int)(i % row);
        dealt->states[i] = kv == l->kv_tiles ? t->plan.kv_splits : planned_state(t, batch, kv);
    }
    return dealt;
}

/* false: the block of a tile is not known. */
static bool find_blocks(const struct trace *t, int slot, struct dealt_to *tiles)
{
    bool known = true;
    for (int kv = 0; kv < t->layout.kv_tiles && known; kv++) {
        tiles[kv] = dealt_to(t, slot, kv);
        known = !tiles[kv].visited || tiles[kv].known;
    }
    return known;
}

/* *out: all blocks are known, and contradict the plan in some slot. */
static int is_dealt_otherwise(const struct trace *t, struct dealt_to *tiles, bool *out)
{
    bool known = true, otherwise = false, left_out = false;
    int failed = 0;
    for (int slot = 0; slot < t->layout.n_slots && known; slot++) {
        known = find_blocks(t, slot, tiles);
        otherwise = otherwise || (known && contradicts_plan(t, slot, tiles));
    }
    for (int slot = 0; slot < t->layout.n_slots && known && otherwise && !left_out && !failed; slot++) {
        find_blocks(t, slot, tiles);
        failed = leaves_out(t, slot, tiles, &left_out);
    }
    *out = known && otherwise && left_out;
    return failed;
}

int trace_deal_as_seen(struct trace *t)
{
    bool otherwise = false;
    if (t->dealt || !trace_complete(t) || t->plan.kv_splits <= 1 || t->plan.kv_deal == ASC_DEAL_MAP ||
        !trace_keeps_writers(t))
        return 0;
    struct dealt_to *tiles = calloc((size_t)t->layout.kv_tiles, sizeof *tiles);
    int failed = tiles ? is_dealt_otherwise(t, tiles, &otherwise) : -1;
    struct trace_dealt *dealt = otherwise && !failed ? as_planned(t) : NULL;
    for (int slot = 0; slot < t->layout.n_slots && dealt; slot++) {
        find_blocks(t, slot, tiles);
        const int count =
            number_states(tiles, t->layout.kv_tiles, dealt->states + trace_states_at(t, trace_slot_place(t, slot)));
        dealt->splits = count > dealt->splits ? count : dealt->splits;
    }
    failed = failed || (otherwise && !dealt) ? -1 : 0;
    free(tiles);
    t->dealt = dealt;
    return failed;
}

/* The most tiles of any state, by the plan or as blocks came to them. */
static int longest(const struct trace *t, int slot, bool by_plan)
{
    const int32_t *place = trace_slot_place(t, slot), *states = t->dealt->states + trace_states_at(t, place);
    int most = 0;
    for (int kv = 0; kv < t->layout.kv_tiles; kv++) {
        int count = 0;
        for (int i = kv; i < t->layout.kv_tiles; i++)
            count += by_plan ? planned_state(t, place[0], i) == planned_state(t, place[0], kv)
                             : states[i] == states[kv] && case_visited(t, slot, i);
        most = count > most ? count : most;
    }
    return most;
}

void dealt_words(const struct trace *t, int slot, char out[DEALT_WORDS_BYTES])
{
    out[0] = '\0';
    if (!t->dealt)
        return;
    const int seen = longest(t, slot, false), planned = longest(t, slot, true);
    if (seen != planned)
        snprintf(out, DEALT_WORDS_BYTES, "; a split has up to %d kv tile%s, by the plan up to %d", seen,
                 seen == 1 ? "" : "s", planned);
}
