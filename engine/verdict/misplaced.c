#include "engine/verdict/misplaced.h"

#include "engine/oracle/element.h"
#include "engine/oracle/search/map.h"
#include "engine/oracle/search/region.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW, COL, SIDES_OF_TILE, MOST = 512, SLOTS_LOOKED_AT = 64 };

static const char *const names[SIDES_OF_TILE] = {"row", "column"}, *const letters[SIDES_OF_TILE] = {"r", "c"};

struct looking {
    enum asc_channel ch;
    enum dtype type;
    int count[SIDES_OF_TILE]; /* of a whole tile */
    struct map map[SIDES_OF_TILE];
    uint32_t *votes[SIDES_OF_TILE]; /* owned, [count][count]: of how many values at i the place is k */
    bool mapped;                    /* the maps are there to be checked */
    bool wrong;                     /* something speaks against them, or against missing alone being what is wrong */
    uint64_t told;                  /* elements that a map moves, and that are found there */
    uint64_t missing;
    uint8_t in[SIDES_OF_TILE][MOST],
        out[SIDES_OF_TILE][MOST]; /* a row or column with an element never written, written */
};

static bool is_missing(const struct tile_detail *d, int i)
{
    return d->class_local[i] == CLASS_MISSING || d->class_global[i] == CLASS_MISSING;
}

/* Whether what stands at i is what is expected at k. */
static bool is_there(const struct looking *l, const struct tile_detail *d, int i, int k)
{
    const double got = d->got[i], want = d->want_global[k];
    if (!isfinite(want) || !isfinite(got))
        return got == want;
    return l->ch == asc_p || l->ch == asc_u ? element_within_unlimited(l->type, got, want, d->bound_global[k])
                                            : element_within(l->type, got, want, d->bound_global[k]);
}

static bool is_expected(const struct tile_detail *d, int i)
{
    return !isnan(d->want_global[i]) && d->bound_global[i] < INFINITY;
}

/* A value that is expected at one place alone says where it belongs. */
static void vote(struct looking *l, const struct tile_detail *d)
{
    enum { LOOKED_UP = 2048 }; /* of a tile: each takes a look at all of it */
    const int n = d->rows * d->cols, step = n / LOOKED_UP | 1;
    for (int i = 0; i < n; i += step) {
        int found = -1;
        if (is_missing(d, i) || !isfinite(d->got[i]))
            continue;
        for (int k = 0; k < n && found != -2; k++)
            if (is_expected(d, k) && isfinite(d->want_global[k]) && is_there(l, d, i, k))
                found = found == -1 ? k : -2;
        if (found < 0)
            continue;
        l->votes[ROW][i / d->cols * l->count[ROW] + found / d->cols]++;
        l->votes[COL][i % d->cols * l->count[COL] + found % d->cols]++;
    }
}

/* Every element is the one that the maps send there; of what lies beyond the problem nothing is known. */
static void check(struct looking *l, const struct tile_detail *d)
{
    for (int i = 0; i < d->rows * d->cols && !l->wrong; i++) {
        const int row = map_at(&l->map[ROW], i / d->cols), col = map_at(&l->map[COL], i % d->cols);
        if (row < 0 || row >= d->rows || col < 0 || col >= d->cols || !is_expected(d, row * d->cols + col))
            continue;
        if (d->class_local[i] == STATUS_UNJUDGED && d->class_global[i] == STATUS_UNJUDGED)
            continue;
        l->wrong = is_missing(d, i) || !is_there(l, d, i, row * d->cols + col);
        l->told += row * d->cols + col != i;
    }
}

/* Where nothing but missing elements is wrong. */
static void note_missing(struct looking *l, const struct tile_detail *d)
{
    for (int i = 0; i < d->rows * d->cols; i++) {
        const bool missing = is_missing(d, i);
        if (!missing && !is_expected(d, i))
            continue;
        l->missing += missing;
        l->wrong |= !missing && class_bad(d->class_global[i]);
        (missing ? l->in : l->out)[ROW][i / d->cols] = 1;
        (missing ? l->in : l->out)[COL][i % d->cols] = 1;
    }
}

static void look(void *ctx, const struct tile_detail *d)
{
    struct looking *l = ctx;
    if (d->channel != (int)l->ch)
        return;
    if (l->mapped)
        check(l, d);
    else
        note_missing(l, d);
}

/* The place that more than half of the values in a row (column) have, of each. */
static bool fit(struct looking *l, int side)
{
    struct pair pairs[MOST];
    size_t n = 0;
    for (int i = 0; i < l->count[side]; i++) {
        const uint32_t *votes = l->votes[side] + (size_t)i * (size_t)l->count[side];
        uint64_t all = 0;
        int most = 0;
        for (int k = 0; k < l->count[side]; k++) {
            all += votes[k];
            most = votes[k] > votes[most] ? k : most;
        }
        if (2 * (uint64_t)votes[most] > all)
            pairs[n++] = (struct pair){i, most};
    }
    if (n < 4 || !(map_fit(pairs, n, l->count[side], &l->map[side]) < INFINITY))
        return false;
    for (size_t i = 0; i < n; i++)
        if (map_at(&l->map[side], pairs[i].from) != pairs[i].to)
            return false;
    return true;
}

static int look_at_slot(const struct trace *t, int slot, struct judge_scratch *scratch, struct looking *l)
{
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    const int failed = judge_each(&c.c, scratch, look, l);
    slot_case_free(&c);
    return failed;
}

static int look_at_all(const struct judgement *j, const struct trace *t, struct judge_scratch *scratch,
                       struct looking *l)
{
    const int n = j->n_slots < SLOTS_LOOKED_AT ? j->n_slots : SLOTS_LOOKED_AT;
    int failed = 0;
    for (int i = 0; i < n && !l->wrong && !failed; i++) { /* not evenly: the same q tile of every head */
        const int first = (int)((int64_t)i * j->n_slots / n), next = (int)((int64_t)(i + 1) * j->n_slots / n);
        failed = look_at_slot(t, first + i * 5 % (next - first), scratch, l);
    }
    return failed;
}

/* Two bits of the index change places, and no other; false: something else. */
static bool exchanged_bits(const struct map *map, int bit[2])
{
    int n = 0;
    if (map->kind != MAP_BITS || map->flip)
        return false;
    for (int k = 0; k < map->bits; k++)
        if (map->row[k] != 1u << k && n++ < 2)
            bit[n - 1] = k;
    return n == 2 && map->row[bit[0]] == 1u << bit[1] && map->row[bit[1]] == 1u << bit[0];
}

static void say_maps(const struct looking *l, char out[MISPLACED_BYTES])
{
    size_t used = 0;
    for (int side = 0; side < SIDES_OF_TILE; side++) {
        char where[96];
        int bit[2];
        if (l->map[side].kind == MAP_SAME || used >= MISPLACED_BYTES)
            continue;
        map_words(&l->map[side], letters[side], where, sizeof where);
        if (exchanged_bits(&l->map[side], bit))
            snprintf(where, sizeof where, "%s with bits %d and %d exchanged", letters[side], bit[0], bit[1]);
        used += (size_t)snprintf(out + used, MISPLACED_BYTES - used, "%s at %s %s what belongs at %s %s",
                                 used ? " and" : "its probe records", names[side], letters[side], names[side], where);
    }
    if (used < MISPLACED_BYTES)
        snprintf(out + used, MISPLACED_BYTES - used, "; O and LSE are within their bounds");
}

static int find_maps(const struct judgement *j, const struct trace *t, struct judge_scratch *scratch, struct looking *l,
                     char out[MISPLACED_BYTES])
{
    struct place at = {.slot = -1};
    for (int slot = 0; slot < j->n_slots && at.slot < 0; slot++)
        for (int kv = 0; kv < j->kv_tiles && at.slot < 0; kv++)
            if (judgement_tile_bad(j, (struct place){slot, kv, l->ch}, false))
                at = (struct place){slot, kv, l->ch};
    struct tile_detail d;
    if (at.slot < 0)
        return 0;
    for (int side = 0; side < SIDES_OF_TILE; side++)
        l->votes[side] = calloc((size_t)l->count[side] * (size_t)l->count[side], sizeof *l->votes[side]);
    if (!l->votes[ROW] || !l->votes[COL] || judgement_detail(j, t, at, scratch, &d) != 0)
        return -1;
    vote(l, &d);
    tile_detail_free(&d);
    l->wrong = false;
    l->mapped = fit(l, ROW) && fit(l, COL) && (l->map[ROW].kind != MAP_SAME || l->map[COL].kind != MAP_SAME);
    if (!l->mapped)
        return 0;
    const int failed = look_at_all(j, t, scratch, l);
    if (!failed && !l->wrong && l->told)
        say_maps(l, out);
    return failed;
}

/* The first q tile is right, nothing of the others was recorded, and that many values were dropped: rows that are
   counted in the matrix lie beyond the tile there. */
static bool counts_in_matrix(const struct judgement *j, const struct trace *t, enum asc_channel ch)
{
    uint64_t missing = 0;
    for (int slot = 0; slot < j->n_slots; slot++) {
        const bool first = trace_slot_place(t, slot)[2] == 0;
        for (int kv = 0; kv < j->kv_tiles; kv++) {
            const struct place place = {slot, kv, ch};
            const struct tile_count count = judgement_count(j, place, false);
            const struct verdict *v = &judgement_tile(j, place)->local;
            if (first ? count.bad > 0 : v->count[CLASS_MISSING] < count.judged)
                return false;
            missing += first ? 0 : count.judged;
        }
    }
    return missing > 0 && trace_dropped(t, ch) >= missing;
}

static bool say_missing(const struct looking *l, char out[MISPLACED_BYTES])
{
    for (int side = COL; side >= ROW; side--) {
        struct term term;
        char where[64];
        if (!(term_fit(l->in[side], l->out[side], l->count[side], &term) < INFINITY))
            continue;
        switch (term.condition) {
        case EQUAL:
            snprintf(where, sizeof where, "= %d", term.a);
            break;
        case FROM:
            snprintf(where, sizeof where, ">= %d", term.a);
            break;
        case BELOW:
            snprintf(where, sizeof where, "< %d", term.a);
            break;
        case UPPER:
        case LOWER:
            snprintf(where, sizeof where, "mod %d %s %d", term.a, term.condition == UPPER ? ">=" : "<", term.a / 2);
            break;
        case RESIDUE:
            snprintf(where, sizeof where, "mod %d = %d", term.a, term.b);
            break;
        default:
            continue;
        }
        snprintf(out, MISPLACED_BYTES, "its probe leaves out what has %s %s; O and LSE are within their bounds",
                 names[side], where);
        return true;
    }
    return false;
}

int misplaced_words(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                    struct judge_scratch *scratch, char out[MISPLACED_BYTES])
{
    struct looking *l = calloc(1, sizeof *l);
    int failed = !l;
    out[0] = '\0';
    if (l) {
        l->ch = ch;
        l->type = (enum dtype)t->layout.channel[ch].dtype;
        l->count[ROW] = channel_rows(ch, &t->plan);
        l->count[COL] = channel_cols(ch, &t->plan, &t->problem);
    }
    if (l && l->count[ROW] <= MOST && l->count[COL] <= MOST) {
        if (counts_in_matrix(j, t, ch))
            snprintf(out, MISPLACED_BYTES,
                     "rows are counted in the tile, from 0 to %d; its probe's are beyond it; "
                     "O and LSE are within their bounds",
                     l->count[ROW] - 1);
        else
            failed = look_at_all(j, t, scratch, l);
        if (!failed && !out[0] && !l->wrong && l->missing)
            say_missing(l, out);
        else if (!failed && !out[0] && channel_per_kv(ch))
            failed = find_maps(j, t, scratch, l, out);
    }
    for (int side = 0; l && side < SIDES_OF_TILE; side++)
        free(l->votes[side]);
    free(l);
    return failed ? -1 : 0;
}
