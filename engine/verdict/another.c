#include "engine/verdict/another.h"

#include "engine/oracle/element.h"
#include "engine/oracle/search/map.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MOST = 96, FEWEST = 2 };
enum { NONE = -1 };
enum { OF_BATCH, OF_HEAD, OF_Q_TILE, AXES_OF_SLOT };

struct looked_at {
    struct tile_detail detail;
    const int32_t *place;
    bool bad, empty; /* empty: bad, and what rows without any key have */
    int from;        /* whose values it has; NONE */
};

struct looking {
    enum asc_channel ch;
    enum dtype type;
    const struct asc_problem *p;
    int br, count[AXES_OF_SLOT];
    struct looked_at *of; /* owned, [n] */
    int n;
};

/* Whether each value of it is the one that is wanted there, of rows that both have; more than half have to be numbers
   that differ. */
static bool holds(const struct looking *l, const struct looked_at *it, const struct looked_at *other)
{
    const struct tile_detail *got = &it->detail, *want = &other->detail;
    const int rows = got->rows < want->rows ? got->rows : want->rows, n = rows * got->cols;
    int told = 0;
    if (got->cols != want->cols || 2 * rows < got->rows)
        return false;
    for (int i = 0; i < n; i++) {
        if (!element_within(l->type, got->got[i], want->want_global[i], want->bound_global[i]))
            return false;
        told += isfinite(got->got[i]) && got->got[i] != 0;
    }
    return 2 * told > n;
}

static bool is_empty(const struct looking *l, const struct looked_at *it)
{
    const struct tile_detail *d = &it->detail;
    for (int i = 0; i < d->rows * d->cols; i++)
        if (d->got[i] != (l->ch == asc_o ? 0 : -(double)INFINITY))
            return false;
    return it->bad;
}

/* A tile that two others look like tells nothing. */
static void look_up(struct looking *l, struct looked_at *it)
{
    it->from = NONE;
    for (int k = 0; k < l->n && it->bad; k++)
        if (&l->of[k] != it && holds(l, it, &l->of[k])) {
            if (it->from != NONE) {
                it->from = NONE;
                return;
            }
            it->from = k;
        }
}

/* The number of a place where the axes are counted in another order, the last one fastest. */
static int64_t number_by(const struct looking *l, const int32_t *place, const int order[AXES_OF_SLOT])
{
    int64_t number = 0;
    for (int i = 0; i < AXES_OF_SLOT; i++)
        number = number * l->count[order[i]] + place[order[i]];
    return number;
}

static const int own_order[AXES_OF_SLOT] = {OF_BATCH, OF_HEAD, OF_Q_TILE};

/* What is looked up at the number that it has in one order lies at that number in another. */
static bool say_order(const struct looking *l, char out[ANOTHER_BYTES])
{
    static const char *const names[AXES_OF_SLOT] = {"batch", "head", "q tile"};
    static const int orders[][AXES_OF_SLOT] = {{OF_BATCH, OF_HEAD, OF_Q_TILE}, {OF_HEAD, OF_BATCH, OF_Q_TILE},
                                               {OF_BATCH, OF_Q_TILE, OF_HEAD}, {OF_Q_TILE, OF_BATCH, OF_HEAD},
                                               {OF_HEAD, OF_Q_TILE, OF_BATCH}, {OF_Q_TILE, OF_HEAD, OF_BATCH}};
    enum { ORDERS = sizeof orders / sizeof orders[0] };
    for (int pair = 1; pair < 2 * ORDERS; pair++) {
        const int *read = orders[pair < ORDERS ? pair : 0], *lies = orders[pair < ORDERS ? 0 : pair - ORDERS];
        bool holds = read != lies;
        for (int i = 0; i < l->n && holds; i++) {
            const struct looked_at *it = &l->of[i], *from = it->from == NONE ? it : &l->of[it->from];
            holds = (it->bad && it->from == NONE) || number_by(l, it->place, read) == number_by(l, from->place, lies);
        }
        if (!holds)
            continue;
        snprintf(out, ANOTHER_BYTES,
                 "%s is that of another q tile: looked up as [%s][%s][%s], where they lie as [%s][%s][%s]",
                 channel_label(l->ch), names[read[0]], names[read[1]], names[read[2]], names[lies[0]], names[lies[1]],
                 names[lies[2]]);
        return true;
    }
    return false;
}

/* What is looked up at the number that it has where each head has as many q tiles as its own sequence, where all have
   those of the longest; nothing is there behind a shorter one's own. */
static bool say_own_tiles(const struct looking *l, char out[ANOTHER_BYTES])
{
    const int most = l->count[OF_Q_TILE];
    int shown = NONE;
    for (int i = 0; i < l->n; i++) {
        const struct looked_at *it = &l->of[i], *from = it->from == NONE ? it : &l->of[it->from];
        const int32_t *at = it->place;
        const int tiles = (asc_q_len(l->p, at[OF_BATCH]) + l->br - 1) / l->br;
        const int64_t read = ((int64_t)at[OF_BATCH] * l->count[OF_HEAD] + at[OF_HEAD]) * tiles + at[OF_Q_TILE];
        const int there = (asc_q_len(l->p, (int)(read / most / l->count[OF_HEAD])) + l->br - 1) / l->br;
        const bool nothing = read % most >= there, unknown = it->bad && it->from == NONE && !it->empty;
        if (it->empty ? !nothing : !unknown && read != number_by(l, from->place, own_order))
            return false;
        shown = tiles < most && it->bad ? i : shown;
    }
    if (shown == NONE)
        return false;
    const int b = l->of[shown].place[OF_BATCH];
    snprintf(out, ANOTHER_BYTES,
             "%s is that of another q tile: looked up as if each head had as many q tiles as its own sequence (%d of "
             "sequence %d), where they lie as for the longest (%d)",
             channel_label(l->ch), (asc_q_len(l->p, b) + l->br - 1) / l->br, b, most);
    return true;
}

/* The same step through all q tiles. */
static bool say_step(const struct looking *l, char out[ANOTHER_BYTES])
{
    int64_t step = 0;
    for (int i = 0; i < l->n; i++) {
        const struct looked_at *it = &l->of[i];
        if (it->from == NONE)
            continue;
        const int64_t by = number_by(l, l->of[it->from].place, own_order) - number_by(l, it->place, own_order);
        if (step && by != step)
            return false;
        step = by;
    }
    const long long n = llabs((long long)step);
    if (n == 1)
        snprintf(out, ANOTHER_BYTES, "%s is that of the %s q tile, counted through the heads", channel_label(l->ch),
                 step > 0 ? "next" : "previous");
    else
        snprintf(out, ANOTHER_BYTES, "%s is that of the q tile %lld %s, counted through the heads",
                 channel_label(l->ch), n, step > 0 ? "further" : "before");
    return true;
}

/* A map along the one axis in which they differ. */
static bool say_axis(const struct looking *l, struct pair *pairs, char out[ANOTHER_BYTES])
{
    static const char *const names[AXES_OF_SLOT][2] = {{"batch", "b"}, {"head", "h"}, {"q tile", "t"}};
    int axis = NONE;
    size_t n = 0;
    struct map map;
    char where[96];
    for (int i = 0; i < l->n; i++)
        for (int a = 0; a < AXES_OF_SLOT && l->of[i].from != NONE; a++)
            if (l->of[l->of[i].from].place[a] != l->of[i].place[a]) {
                if (axis != NONE && axis != a)
                    return false;
                axis = a;
            }
    for (int i = 0; i < l->n && axis != NONE; i++)
        if (l->of[i].from != NONE || !l->of[i].bad)
            pairs[n++] =
                (struct pair){l->of[i].place[axis], l->of[l->of[i].from == NONE ? i : l->of[i].from].place[axis]};
    if (axis == NONE || !(map_fit(pairs, n, l->count[axis], &map) < INFINITY))
        return false;
    for (size_t i = 0; i < n; i++)
        if (map_at(&map, pairs[i].from) != pairs[i].to)
            return false;
    map_words(&map, names[axis][1], where, sizeof where);
    snprintf(out, ANOTHER_BYTES, "%s is that of %s %s where that of %s %s is wanted", channel_label(l->ch),
             names[axis][0], where, names[axis][0], names[axis][1]);
    return true;
}

static int take_slots(const struct judgement *j, const struct trace *t, struct judge_scratch *scratch,
                      struct looking *l)
{
    for (int slot = 0; slot < j->n_slots; slot++) {
        const struct place place = {slot, 0, l->ch};
        struct looked_at *it = &l->of[l->n];
        if (!judgement_slot_done(j, slot))
            continue;
        if (judgement_detail(j, t, place, scratch, &it->detail) != 0)
            return -1;
        it->place = trace_slot_place(t, slot);
        it->bad = judgement_tile_bad(j, place, true);
        l->n++;
    }
    return 0;
}

int another_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct judge_scratch *scratch,
                  char out[ANOTHER_BYTES], double *share)
{
    const struct asc_problem *p = &t->problem;
    const int q_tiles = (p->q_len + t->plan.br - 1) / t->plan.br;
    enum dtype type = DTYPE_F32; /* of what is judged: in a complete run what memory holds */
    if (!trace_complete(t) || !trace_tensor(t, ch == asc_o ? 'o' : 'L', &type))
        type = (enum dtype)t->layout.channel[ch].dtype;
    struct looking l = {ch, type, p, t->plan.br, {p->batch, p->heads, q_tiles}, NULL, 0};
    int found = 0, bad = 0, empty = 0;
    out[0] = '\0';
    if (j->n_slots > SLOTS_MOST || (size_t)ch >= ASC_CHANNELS)
        return 0;
    l.of = calloc((size_t)j->n_slots + 1, sizeof *l.of);
    struct pair *pairs = calloc((size_t)j->n_slots + 1, sizeof *pairs);
    const int failed = l.of && pairs ? take_slots(j, t, scratch, &l) : -1;
    for (int i = 0; i < l.n && !failed; i++) {
        look_up(&l, &l.of[i]);
        l.of[i].empty = is_empty(&l, &l.of[i]);
        found += l.of[i].from != NONE;
        empty += l.of[i].empty;
        bad += l.of[i].bad;
    }
    const bool told = !failed && found >= FEWEST && 2 * found >= bad;
    if (!(told && (say_axis(&l, pairs, out) || say_order(&l, out))) && !failed && found && found + empty >= FEWEST &&
        2 * (found + empty) >= bad && say_own_tiles(&l, out))
        found += empty;
    else if (told && !out[0])
        say_step(&l, out);
    *share = bad && (told || out[0]) ? (double)found / bad : 0;
    const size_t used = strlen(out);
    if (used && found < bad)
        snprintf(out + used, ANOTHER_BYTES - used, " (shown by %d of the %d q tiles that are wrong)", found, bad);
    for (int i = 0; i < l.n; i++)
        tile_detail_free(&l.of[i].detail);
    free(l.of);
    free(pairs);
    return failed ? -1 : 0;
}
