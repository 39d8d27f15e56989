/* Walks the tiles of one slot as the kernel did and hands each that is asked about to the formulas of its causes. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/local.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/tile.h"
#include "engine/trace/layout.h"
#include <string.h>

struct walk {
    const struct oracle_case *c;
    const uint32_t *bad; /* [kv_tiles] sets of 1u << channel */
    uint32_t everywhere; /* channels that are looked at in all tiles: a declaration may still hold */
    struct cause_tile tile;
    void (*visit)(const struct walk *w, enum asc_channel ch);
    const struct cause_plan *plan;
    struct cause_evidence *evidence; /* [CAUSE_COUNT] */
    struct cause_plan *chosen;       /* where parameters are chosen */
};

static uint32_t bit(enum asc_channel ch)
{
    return 1u << ch;
}

static struct candidate candidate_of(const struct walk *w, enum cause cause, double parameter)
{
    return (struct candidate){.tile = &w->tile,
                              .channel = cause_channel(cause),
                              .parameter = parameter,
                              .want = w->tile.s->mistake.want,
                              .bound = w->tile.s->mistake.bound};
}

/* Tiles of channels that exist once per slot stand at kv 0. */
static uint32_t bad_here(const struct walk *w, enum asc_channel ch)
{
    return w->bad[channel_per_kv(ch) ? w->tile.s->at.kv : 0] & bit(ch);
}

static int is_parametric(enum cause cause)
{
    return cause_parameter(cause)->value != NULL;
}

/* 1 while the cause may still be named. */
static int is_open(const struct walk *w, enum cause cause)
{
    return !w->evidence[cause].given_up && !(is_parametric(cause) && isnan(w->plan->parameter[cause]));
}

/* What may fail before a cause cannot be named any more. */
static uint64_t most_failed(const struct cause_plan *plan, enum asc_channel ch)
{
    return plan->elements[ch] ? plan->elements[ch] / 10000 : UINT64_MAX;
}

/* 1: looked at in right tiles as well. */
static int is_everywhere(enum cause cause)
{
    return cause_is_declaration(cause) || cause_is_everywhere(cause);
}

static void collect(const struct walk *w, enum asc_channel ch)
{
    const int bad = bad_here(w, ch) != 0;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        struct cause_evidence *e = &w->evidence[cause];
        if (cause_channel(cause) != ch || !is_open(w, cause) || !(bad || is_everywhere(cause)))
            continue;
        struct candidate k = candidate_of(w, cause, w->plan->parameter[cause]);
        if (!cause_fill(cause, &k)) {
            e->given_up = 1;
            continue;
        }
        e->applicable = 1;
        cause_weigh(&k, is_parametric(cause) ? 1 : -1, most_failed(w->plan, ch), e);
    }
}

enum { FEW_ROWS = 4 };

/* 1 if a value of the parameter explains less than half of what the first rows hold: it need not be looked at in whole.
   Most values end here. */
static int is_hopeless(const struct walk *w, enum cause cause, double value)
{
    const enum asc_channel ch = cause_channel(cause);
    struct oracle_case c = *w->c;
    struct judge_scratch s = *w->tile.s;
    struct cause_tile few = w->tile;
    struct cause_evidence e = {0};
    if (ch < asc_s || c.in_q.rows <= FEW_ROWS)
        return 0;
    c.in_q.rows = FEW_ROWS;
    for (int i = asc_s; i < ASC_CHANNELS; i++)
        s.stage[i].rows = FEW_ROWS;
    few.c = &c;
    few.s = &s;
    struct candidate k = candidate_of(w, cause, value);
    k.tile = &few;
    s.pad_captured = 0;
    if (!cause_fill(cause, &k))
        return 1;
    cause_weigh(&k, 0, UINT64_MAX, &e);
    return e.explained < e.elements / 2;
}

/* The value that explains most of the elements that may choose: at least half of them, and some that plain rounding can
   not explain. */
static void choose_parameter(const struct walk *w, enum cause cause)
{
    struct cause_plan *plan = w->chosen;
    const uint64_t among = plan->tied[cause];
    struct cause_evidence best = {0};
    double found = NAN;
    uint64_t tied = 0;
    int fits = 0;
    for (int i = 0;; i++) {
        const uint64_t own = i < 64 ? UINT64_C(1) << i : 0;
        const double value = cause_parameter(cause)->value(&w->tile, i);
        struct cause_evidence e = {0};
        if (isnan(value))
            break;
        if (among && !(among & own))
            continue;
        struct candidate k = candidate_of(w, cause, value);
        if (is_hopeless(w, cause, value) || !cause_fill(cause, &k))
            continue;
        cause_weigh(&k, 0, isnan(found) ? UINT64_MAX : best.elements - best.explained, &e);
        if (e.given_up)
            continue;
        const int is_tie = !isnan(found) && e.explained == best.explained;
        fits = is_tie ? fits + 1 : 1;
        tied = is_tie ? tied | own : own;
        if (is_tie && e.discriminating <= best.discriminating)
            continue;
        best = e;
        found = value;
    }
    if (!best.discriminating || best.explained <= best.elements / 2)
        return;
    plan->parameter[cause] = found;
    plan->fits[cause] = fits;
    plan->tied[cause] = tied;
}

static void choose(const struct walk *w, enum asc_channel ch)
{
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (cause_channel(cause) == ch && is_parametric(cause))
            choose_parameter(w, cause);
}

static void visit(const struct walk *w, enum asc_channel ch)
{
    const struct judge_scratch *s = w->tile.s;
    if ((bad_here(w, ch) || w->everywhere & bit(ch)) && s->stage[ch].recorded && scratch_captured(s, w->c, ch)->data)
        w->visit(w, ch);
}

/* U of this tile, the i-th, as it was recorded: once the next tile has rescaled it. */
static void visit_late_u(struct walk *w, int i)
{
    const struct stage *u = &w->tile.s->stage[asc_u];
    const int has_next = u->recorded ? cause_next_alpha(&w->tile, i) : -1;
    if (has_next > 0)
        local_rescale(w->c, w->tile.next_alpha, w->tile.next_alpha_loose, u->want[LOCAL], u->bound[LOCAL]);
    if (has_next >= 0)
        visit(w, asc_u);
    w->tile.next_alpha = w->tile.next_alpha_loose = NULL;
}

/* The i-th tile. alone: nothing later is asked about, so no running state is needed. */
static void walk_tile(struct walk *w, int i, int alone)
{
    const struct oracle_case *c = w->c;
    struct judge_scratch *s = w->tile.s;
    const int kv = c->order[i], late_u = c->conventions.u_phase == ASC_U_RESCALED;
    if (alone && !w->bad[kv] && !w->everywhere)
        return;
    scratch_tile(s, c, kv);
    operand_take(c, s, asc_k);
    operand_take(c, s, asc_v);
    visit(w, asc_k);
    visit(w, asc_v);
    if (tile_left(c, s))
        return;
    if (alone) {
        local_s(c, &s->at, &s->room, scratch_local(s, asc_s));
        tile_adopt(c, s, asc_s);
        tile_padding(c, s);
        visit(w, asc_s);
        return;
    }
    tile_local(c, s);
    padding_excuse(c, s);
    for (int j = 0; j < TILE_STAGES; j++)
        if (!(late_u && tile_stages[j] == asc_u))
            visit(w, tile_stages[j]);
    if (late_u) {
        local_keep_u(c, s);
        visit_late_u(w, i);
    }
    const size_t row_bytes = (size_t)c->in_q.rows * sizeof(double), value_bytes = row_bytes * (size_t)c->head_dim;
    memcpy(s->mistake.l, s->at.l_prev.value, row_bytes);
    memcpy(s->mistake.l_loose, s->at.l_prev.loose, row_bytes);
    memcpy(s->mistake.u, s->at.u_prev.value, value_bytes);
    memcpy(s->mistake.u_loose, s->at.u_prev.loose, value_bytes);
    local_advance(c, s);
}

static void walk_end(struct walk *w)
{
    const enum asc_channel ends[] = {asc_o, asc_lse};
    local_o(w->c, &w->tile.s->at, scratch_local(w->tile.s, asc_o));
    local_lse(w->c, &w->tile.s->at, scratch_local(w->tile.s, asc_lse));
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (!w->c->captured[ends[i]].data)
            continue;
        scratch_take(w->tile.s, w->c, ends[i]);
        visit(w, ends[i]);
    }
}

static void walk_split(struct walk *w, int split, int alone)
{
    const struct oracle_case *c = w->c;
    struct judge_scratch *s = w->tile.s;
    local_begin(c, s, split);
    w->tile.visited[0] = w->tile.visited[1] = w->tile.visited[2] = -1;
    for (int i = s->lists.first_visit[split]; i >= 0 && !s->stopped; i = s->lists.next_visit[i]) {
        const int kv = c->order[i], next = s->lists.next_visit[i];
        s->seen[kv] = 1;
        w->tile.next = next < 0 ? -1 : c->order[next];
        walk_tile(w, i, alone);
        w->tile.visited[1] = w->tile.visited[0];
        w->tile.visited[0] = kv;
        if (w->tile.visited[2] < 0)
            w->tile.visited[2] = kv;
    }
    merge_local(c, s);
}

static int walk_slot(struct walk *w)
{
    const struct oracle_case *c = w->c;
    struct judge_scratch *s = w->tile.s;
    const uint32_t early = bit(asc_q) | bit(asc_k) | bit(asc_v) | bit(asc_s);
    uint32_t asked = w->everywhere;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        asked |= w->bad[kv];
    if (!asked)
        return 0;
    if (scratch_prepare(s, c) != 0)
        return -1;
    reference_inputs(c, s);
    scratch_tile(s, c, 0);
    operand_take(c, s, asc_q);
    visit(w, asc_q);
    merge_begin(c, s);
    for (int split = 0; split < s->lists.splits && !s->stopped; split++)
        walk_split(w, split, !(asked & ~early));
    if (s->stopped)
        return -1;
    merge_finish_local(c, s);
    if (asked & (bit(asc_o) | bit(asc_lse)))
        walk_end(w);
    return 0;
}

int cause_collect(const struct oracle_case *c, const uint32_t *bad, const struct cause_plan *plan,
                  struct judge_scratch *scratch, struct cause_evidence evidence[CAUSE_COUNT])
{
    struct walk w = {
        .c = c, .bad = bad, .tile = {.c = c, .s = scratch}, .visit = collect, .plan = plan, .evidence = evidence};
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (plan->culprits & bit(cause_channel(cause)) && is_everywhere(cause) && is_open(&w, cause))
            w.everywhere |= bit(cause_channel(cause));
    return walk_slot(&w);
}

int cause_choose(const struct oracle_case *c, const uint32_t *bad, struct judge_scratch *scratch,
                 struct cause_plan *plan)
{
    struct walk w = {.c = c, .bad = bad, .tile = {.c = c, .s = scratch}, .visit = choose, .chosen = plan};
    return walk_slot(&w);
}

void cause_plan_begin(struct cause_plan *plan, unsigned culprits)
{
    memset(plan, 0, sizeof *plan);
    plan->culprits = culprits;
    for (int cause = 0; cause < CAUSE_COUNT; cause++)
        plan->parameter[cause] = NAN;
}

void cause_add_evidence(struct cause_evidence to[CAUSE_COUNT], const struct cause_evidence from[CAUSE_COUNT])
{
    for (int c = 0; c < CAUSE_COUNT; c++) {
        to[c].elements += from[c].elements;
        to[c].explained += from[c].explained;
        to[c].rounding += from[c].rounding;
        to[c].discriminating += from[c].discriminating;
        to[c].rows += from[c].rows;
        for (int i = 0; i < from[c].values; i++)
            cause_note_value(&to[c], from[c].value[i]);
        to[c].chance_seen += from[c].chance_seen;
        to[c].chance_tried += from[c].chance_tried;
        to[c].chance_hit += from[c].chance_hit;
        to[c].applicable |= from[c].applicable;
        to[c].given_up |= from[c].given_up;
    }
}
