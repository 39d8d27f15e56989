#include "engine/verdict/masks.h"

#include "engine/oracle/schedule.h"
#include "engine/trace/writers.h"
#include "engine/verdict/case.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int masks_new(const struct trace *t, struct masks **out)
{
    struct masks *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return -1;
    m->n_slots = t->layout.n_slots;
    m->kv_tiles = t->layout.kv_tiles;
    m->source = calloc((size_t)m->n_slots + 1, sizeof *m->source);
    m->counts = calloc((size_t)m->n_slots * (size_t)m->kv_tiles + 1, sizeof *m->counts);
    m->wrong = calloc((size_t)m->n_slots + 1, sizeof(struct mask_tile *));
    if (!m->source || !m->counts || !m->wrong) {
        masks_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

static void free_tiles(struct mask_tile *tiles, int kv_tiles)
{
    for (int kv = 0; tiles && kv < kv_tiles; kv++)
        mask_tile_free(&tiles[kv]);
    free(tiles);
}

void masks_free(struct masks *m)
{
    if (!m)
        return;
    for (int slot = 0; m->wrong && slot < m->n_slots; slot++)
        free_tiles(m->wrong[slot], m->kv_tiles);
    free(m->wrong);
    free(m->counts);
    free(m->source);
    free(m);
}

int masks_slot(struct masks *m, const struct oracle_case *c, int slot, struct judge_scratch *scratch)
{
    struct mask_counts *counts = m->counts + (size_t)slot * (size_t)m->kv_tiles;
    struct mask_tile *tiles = calloc((size_t)m->kv_tiles + 1, sizeof *tiles);
    uint64_t wrong = 0;
    const bool failed = !tiles || mask_read_all(c, scratch, tiles) != 0;
    for (int kv = 0; kv < m->kv_tiles && !failed; kv++) {
        counts[kv] = tiles[kv].counts;
        wrong += mask_wrong(&counts[kv]);
    }
    m->source[slot] = (uint8_t)mask_source(c);
    if (failed || !wrong) {
        free_tiles(tiles, m->kv_tiles);
        tiles = NULL;
    }
    m->wrong[slot] = tiles;
    return failed ? -1 : 0;
}

void masks_adopt(struct masks *m, int slot, const uint32_t *seen, uint64_t elements)
{
    struct mask_counts *counts = m->counts + (size_t)slot * (size_t)m->kv_tiles;
    for (int kv = 0; kv < m->kv_tiles; kv++)
        counts[kv] = (struct mask_counts){.both = seen[kv], .neither = elements - seen[kv]};
    m->source[slot] = MASK_FROM_S;
}

/* Calls `take` for every slot with a wrong bit. */
static int each_wrong(const struct masks *m, const struct trace *t,
                      void (*take)(const struct oracle_case *c, const struct mask_tile *tiles, struct mask_plan *plan,
                                   struct mask_evidence *evidence),
                      struct mask_plan *plan, struct mask_evidence *evidence)
{
    for (int slot = 0; slot < m->n_slots; slot++) {
        struct slot_case c;
        if (!m->wrong[slot])
            continue;
        if (slot_case_make(t, slot, &c) != 0)
            return -1;
        take(&c.c, m->wrong[slot], plan, evidence);
        slot_case_free(&c);
    }
    return 0;
}

static void take_votes(const struct oracle_case *c, const struct mask_tile *tiles, struct mask_plan *plan,
                       struct mask_evidence *evidence)
{
    (void)evidence;
    mask_vote(c, tiles, plan);
}

static void take_evidence(const struct oracle_case *c, const struct mask_tile *tiles, struct mask_plan *plan,
                          struct mask_evidence *evidence)
{
    mask_collect(c, tiles, plan, evidence);
}

int masks_find(struct masks *m, const struct trace *t)
{
    struct mask_evidence evidence[MASK_SHIFTS] = {{0}};
    struct mask_plan *plan = calloc(1, sizeof *plan);
    int failed = !plan || each_wrong(m, t, take_votes, plan, NULL) != 0;
    if (!failed) {
        mask_plan_close(plan);
        failed = each_wrong(m, t, take_evidence, plan, evidence);
    }
    for (int i = 0; i < MASK_SHIFTS && !failed; i++)
        if (mask_named(&evidence[i]))
            m->name[m->n_names++] = (struct mask_name){(enum mask_shift)i, plan->by[i], evidence[i]};
    free(plan);
    if (!failed)
        atomic_store_explicit(&m->named, true, memory_order_release);
    return failed ? -1 : 0;
}

const struct mask_counts *masks_tile(const struct masks *m, int slot, int kv)
{
    return &m->counts[(size_t)slot * (size_t)m->kv_tiles + (size_t)kv];
}

enum mask_source masks_total(const struct masks *m, struct mask_counts *out)
{
    enum mask_source source = MASK_NOT_KNOWN;
    *out = (struct mask_counts){0};
    for (int slot = 0; slot < m->n_slots; slot++) {
        if (m->source[slot] == MASK_NOT_KNOWN)
            continue;
        source = (enum mask_source)m->source[slot];
        for (int kv = 0; kv < m->kv_tiles; kv++)
            mask_add(out, masks_tile(m, slot, kv));
    }
    return source;
}

/* The columns of row 0 that are wrong by being seen or hidden, in ranges. false: none, or too many. */
static bool wrong_columns(const struct mask_tile *tile, bool seen, char *out, size_t bytes)
{
    enum { RANGES_MAX = 6 };
    size_t used = 0;
    int ranges = 0;
    for (int col = 0; col < tile->cols; col++) {
        const int first = col;
        while (col < tile->cols && mask_bit(tile, tile->applied, 0, col) == seen &&
               mask_bit(tile, tile->wanted, 0, col) != seen)
            col++;
        if (col == first)
            continue;
        if (++ranges > RANGES_MAX || used >= bytes)
            return false;
        used += (size_t)snprintf(out + used, bytes - used, col - first > 1 ? "%s%d-%d" : "%s%d", used ? ", " : "",
                                 first, col - 1);
    }
    return ranges > 0;
}

bool masks_columns_words(const struct masks *m, int slot, int kv, char *out, size_t bytes)
{
    const struct mask_tile *tile = m->wrong[slot] ? &m->wrong[slot][kv] : NULL;
    char hidden[96], seen[96];
    if (!tile || !tile->rows || !tile->counts.only_wanted || !tile->counts.only_applied || tile->counts.unknown)
        return false;
    for (int row = 1; row < tile->rows; row++)
        for (int word = 0; word < tile->words; word++) {
            const size_t at = (size_t)row * (size_t)tile->words + (size_t)word;
            if (tile->applied[at] != tile->applied[word] || tile->wanted[at] != tile->wanted[word])
                return false;
        }
    if (!wrong_columns(tile, false, hidden, sizeof hidden) || !wrong_columns(tile, true, seen, sizeof seen))
        return false;
    snprintf(out, bytes, "hides columns %s and shows columns %s", hidden, seen);
    return true;
}

static bool tail_words(const struct masks *m, const struct trace *t, char *out, size_t bytes)
{
    const int bc = t->plan.bc, kv_len = t->problem.kv_len;
    int first = INT_MAX, last = -1;
    struct mask_counts n;
    if (t->problem.kv_lens || masks_total(m, &n) == MASK_NOT_KNOWN || n.only_wanted || !n.only_applied)
        return false;
    for (int i = 0; i < m->n_slots * m->kv_tiles; i++) {
        const struct mask_tile *tiles = m->wrong[i / m->kv_tiles];
        const int kv = i % m->kv_tiles;
        for (int at = 0; tiles && at < tiles[kv].rows * tiles[kv].cols; at++) {
            const int row = at / tiles[kv].cols, col = at % tiles[kv].cols, key = kv * bc + col;
            if (mask_bit(&tiles[kv], tiles[kv].applied, row, col) &&
                !mask_bit(&tiles[kv], tiles[kv].wanted, row, col)) {
                first = key < first ? key : first;
                last = key > last ? key : last;
            }
        }
    }
    if (first < kv_len || last < 0)
        return false;
    if (first == last)
        snprintf(out, bytes, "key %d is not hidden, kv_len is %d", first, kv_len);
    else
        snprintf(out, bytes, "keys %d to %d are not hidden, kv_len is %d", first, last, kv_len);
    return true;
}

/* The mask that may stand where a tile's own should: of another q tile, of other keys, or transposed: with the row in
   the tile for the column and the column for the row. */
struct mask_of {
    uint32_t q_tile;
    int kv;
    bool turned;
};

/* What speaks for a mask: a tile is wrong and has it; and the mask hides keys there, as more than a missing limit does.
 */
struct speaking {
    bool wrong, hides;
};

/* Whether a slot shows what that mask does, of a kv tile that it has visited. */
static bool has_mask_of(const struct masks *m, int slot, int kv, const struct oracle_case *own, struct mask_of of,
                        struct speaking *tells)
{
    const struct mask_tile *wrong = m->wrong[slot] ? &m->wrong[slot][kv] : NULL;
    const int cols = schedule_cols(own, kv);
    struct oracle_case other = *own;
    bool hides = false;
    if (of.q_tile > INT_MAX / 2 / (unsigned)own->br)
        return false;
    other.q_tile = (int)of.q_tile;
    for (int at = 0; at < own->in_q.rows * cols; at++) {
        const int row = at / cols, col = at % cols, key = kv * own->bc + col;
        const bool wanted = schedule_shows(own, row, key),
                   shown = wrong && wrong->rows ? mask_bit(wrong, wrong->applied, row, col) : wanted;
        if (schedule_shows(&other, of.turned ? col : row, of.kv * own->bc + (of.turned ? row : col)) != shown)
            return false;
        hides = hides || !shown;
    }
    if (wrong && mask_wrong(&wrong->counts)) {
        tells->wrong = true;
        tells->hides = tells->hides || hides;
    }
    return true;
}

/* Whether something holds of each tile that was visited. */
static bool holds_of_all(const struct masks *m, const struct trace *t,
                         bool (*holds_of)(const struct masks *m, int slot, int kv, const struct oracle_case *c,
                                          void *ctx),
                         void *ctx)
{
    bool holds = true;
    for (int slot = 0; slot < m->n_slots && holds; slot++) {
        struct slot_case c;
        if (m->source[slot] == MASK_NOT_KNOWN)
            continue;
        if (slot_case_make(t, slot, &c) != 0)
            return false;
        for (int kv = 0; kv < m->kv_tiles && holds; kv++)
            holds = !case_visited(t, slot, kv) || holds_of(m, slot, kv, &c.c, ctx);
        slot_case_free(&c);
    }
    return holds;
}

/* Whether a tile shows of the keys that there are what the shift, if it moves anything in a row, would have it show. */
static bool has_shift(const struct masks *m, int slot, int kv, const struct oracle_case *c, void *ctx)
{
    const struct mask_name *name = ctx;
    const struct mask_tile *wrong = m->wrong[slot] ? &m->wrong[slot][kv] : NULL;
    const bool of_tail = name->shift == MASK_TAIL || name->shift == MASK_TAIL_LINE;
    for (int row = 0; row < c->in_q.rows; row++) {
        struct key_range range = {0, 0};
        const bool moves = !of_tail && mask_shift_range(c, name->shift, name->by, row, &range);
        for (int col = 0; col < schedule_cols(c, kv); col++) {
            const int key = kv * c->bc + col;
            const bool wanted = schedule_shows(c, row, key),
                       shown = wrong && wrong->rows ? mask_bit(wrong, wrong->applied, row, col) : wanted,
                       in = (key >= range.first && key < range.last) != (name->shift == MASK_INVERTED);
            if ((moves ? in : wanted) != shown)
                return false;
        }
    }
    return true;
}

struct mask_of_tiles {
    struct mask_of (*of)(const struct oracle_case *c, int kv);
    struct speaking tells;
};

static bool has_mask_of_tile(const struct masks *m, int slot, int kv, const struct oracle_case *c, void *ctx)
{
    struct mask_of_tiles *tiles = ctx;
    return has_mask_of(m, slot, kv, c, tiles->of(c, kv), &tiles->tells);
}

static struct mask_of turned(const struct oracle_case *c, int kv)
{
    return (struct mask_of){(uint32_t)c->q_tile, kv, true};
}

static struct mask_of of_columns(const struct oracle_case *c, int kv)
{
    (void)kv;
    return (struct mask_of){(uint32_t)c->q_tile, 0, false};
}

static struct mask_of of_visits(const struct oracle_case *c, int kv)
{
    const int split = schedule_split(c, kv);
    int visit = 0;
    for (int i = 0; i < c->n_visited && c->order[i] != kv; i++)
        visit += schedule_split(c, c->order[i]) == split;
    return (struct mask_of){(uint32_t)c->q_tile, visit, false};
}

/* Those that hold, joined by "or". */
static bool places_words(const struct masks *m, const struct trace *t, char *out, size_t bytes, bool *hides)
{
    static const struct {
        struct mask_of (*of)(const struct oracle_case *c, int kv);
        const char *words;
        bool by_split;
    } places[] = {
        {turned, "the mask has row and column within the tile exchanged", false},
        {of_columns, "the mask counts its keys from the first one of each kv tile", false},
        {of_visits, "the mask counts its keys from the kv tile that is visited first, in the order of visits", true}};
    struct mask_counts all;
    size_t used = 0;
    if (masks_total(m, &all) == MASK_NOT_KNOWN || all.unknown || t->problem.mask_kind)
        return false;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && used < bytes; i++) {
        struct mask_of_tiles tiles = {places[i].of, {false, false}};
        if (!holds_of_all(m, t, has_mask_of_tile, &tiles) || !tiles.tells.wrong)
            continue;
        *hides = used ? *hides && tiles.tells.hides : tiles.tells.hides;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s%s", used ? ", or " : "", places[i].words,
                                 places[i].by_split && t->plan.kv_splits > 1 ? ", by each split for itself" : "");
    }
    return used > 0;
}

/* Tiles with the mask of the q tile that the recording block's number is, along one axis; and whether two of them that
   tell have different numbers. */
struct mask_of_blocks {
    const struct trace *t;
    int axis;
    int64_t told; /* the number in a tile that tells; -1: in none so far */
    bool differ;
};

static bool has_mask_of_block(const struct masks *m, int slot, int kv, const struct oracle_case *c, void *ctx)
{
    struct mask_of_blocks *blocks = ctx;
    struct speaking tells = {false, false};
    struct trace_writer w;
    if (!trace_writer(blocks->t, asc_s, slot, kv, 0, 0, &w) || w.blocks)
        return false;
    const uint32_t number = w.block[blocks->axis];
    const bool has = has_mask_of(m, slot, kv, c, (struct mask_of){number, kv, false}, &tells);
    blocks->differ = blocks->differ || (tells.hides && blocks->told >= 0 && blocks->told != number);
    blocks->told = tells.hides ? number : blocks->told;
    return has;
}

static bool blocks_words(const struct masks *m, const struct trace *t, char *out, size_t bytes)
{
    struct mask_counts all;
    int found = -1;
    if (masks_total(m, &all) == MASK_NOT_KNOWN || all.unknown || t->problem.mask_kind)
        return false;
    for (int axis = 0; axis < 3; axis++) {
        struct mask_of_blocks blocks = {t, axis, -1, false};
        if (!holds_of_all(m, t, has_mask_of_block, &blocks) || !blocks.differ)
            continue;
        if (found >= 0) /* two numbers that say the same are none */
            return false;
        found = axis;
    }
    if (found >= 0)
        snprintf(out, bytes, "the mask is that of q tile blockIdx.%c", "xyz"[found]);
    return found >= 0;
}

void mask_name_words(const struct mask_name *name, char *out, size_t bytes)
{
    const int n = abs(name->by);
    if (name->by && mask_shift_moves(name->shift))
        snprintf(out, bytes, "%s, by %d key%s to the %s", mask_shift_sentence(name->shift), n, n == 1 ? "" : "s",
                 name->by > 0 ? "right" : "left");
    else
        snprintf(out, bytes, "%s", mask_shift_sentence(name->shift));
}

void mask_wanted_words(const struct asc_problem *p, char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "%s",
                                   p->causal == ASC_CAUSAL_TOP_LEFT       ? "causal, top left"
                                   : p->causal == ASC_CAUSAL_BOTTOM_RIGHT ? "causal, bottom right"
                                                                          : "");
    if (p->window_left >= 0)
        used += (size_t)snprintf(out + used, bytes - used, "%swindow %d to the left", used ? ", " : "", p->window_left);
    if (p->window_right >= 0 && p->causal == ASC_CAUSAL_NONE)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s%d to the right", used ? ", " : "",
                                 p->window_left >= 0 ? "" : "window ", p->window_right);
    if (!used)
        snprintf(out, bytes, "every key");
}

bool masks_explain(const struct masks *m, const struct trace *t, uint64_t bad, char *out, size_t bytes, bool *certain)
{
    struct mask_counts n;
    *certain = true;
    if (masks_total(m, &n) == MASK_NOT_KNOWN || mask_wrong(&n) != bad)
        return false;
    struct mask_name name = m->name[0];
    if (tail_words(m, t, out, bytes))
        return true;
    if (m->n_names == 1 && name.evidence.explained == name.evidence.elements && holds_of_all(m, t, has_shift, &name)) {
        mask_name_words(&name, out, bytes);
        return true;
    }
    return places_words(m, t, out, bytes, certain) || blocks_words(m, t, out, bytes);
}

bool masks_shows_padding(const struct masks *m, const struct trace *t)
{
    for (int i = 0; i < m->n_slots * m->kv_tiles; i++) {
        const struct mask_tile *tile = m->wrong[i / m->kv_tiles] ? &m->wrong[i / m->kv_tiles][i % m->kv_tiles] : NULL;
        const int batch = trace_slot_place(t, i / m->kv_tiles)[0];
        const int keys = asc_kv_len(&t->problem, batch) - i % m->kv_tiles * t->plan.bc;
        for (int row = 0; tile && row < tile->rows; row++)
            for (int col = keys > 0 ? keys : 0; col < tile->cols; col++)
                if (mask_bit(tile, tile->applied, row, col))
                    return true;
    }
    return false;
}

void masks_words(const struct masks *m, char *out, size_t bytes)
{
    struct mask_counts n;
    if (masks_total(m, &n) == MASK_NOT_KNOWN) {
        snprintf(out, bytes, "unknown: neither S with its mask nor P is recorded");
        return;
    }
    if (!mask_wrong(&n)) {
        snprintf(out, bytes, "as wanted%s", n.unknown ? ", as far as known" : "");
        return;
    }
    size_t used = 0;
    if (n.only_applied)
        used = (size_t)snprintf(out, bytes, "%llu wrongly seen%s", (unsigned long long)n.only_applied,
                                n.only_wanted ? ", " : "");
    if (n.only_wanted)
        used += (size_t)snprintf(out + used, bytes - used, "%llu wrongly hidden", (unsigned long long)n.only_wanted);
    if (!atomic_load_explicit(&m->named, memory_order_acquire))
        return;
    if (!m->n_names)
        snprintf(out + used, bytes - used, ": no known shift");
    for (int i = 0; i < m->n_names && used < bytes; i++) {
        char words[128];
        mask_name_words(&m->name[i], words, sizeof words);
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", i ? "; " : ": ", words);
    }
}
