/* Hands each tile of a slot that is asked about to the formulas of its causes. */
#include "engine/oracle/causes/cause.h"

#include "engine/trace/layout.h"
#include <string.h>

struct walk {
    const struct oracle_case *c;
    const uint32_t *bad; /* [kv_tiles] sets of 1u << channel */
    struct walk_tile tile;
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

static void collect(void *ctx, const struct walk_tile *tile, enum asc_channel ch)
{
    struct walk *w = ctx;
    w->tile = *tile;
    const int bad = bad_here(w, ch) != 0;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        struct cause_evidence *e = &w->evidence[cause];
        if (cause_channel(cause) != ch || !is_open(w, cause) || !(bad || cause_is_declaration(cause)))
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
        const double value = cause_parameter(cause)->value(&w->tile, cause, i);
        struct cause_evidence e = {0};
        if (isnan(value))
            break;
        if (among && !(among & own))
            continue;
        struct candidate k = candidate_of(w, cause, value);
        if (!cause_fill(cause, &k))
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

static void choose(void *ctx, const struct walk_tile *tile, enum asc_channel ch)
{
    struct walk *w = ctx;
    w->tile = *tile;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (cause_channel(cause) == ch && is_parametric(cause))
            choose_parameter(w, cause);
}

int cause_collect(const struct oracle_case *c, const uint32_t *bad, const struct cause_plan *plan,
                  struct judge_scratch *scratch, struct cause_evidence evidence[CAUSE_COUNT])
{
    struct walk w = {.c = c, .bad = bad, .plan = plan, .evidence = evidence};
    struct slot_walk how = {.wanted = bad, .visit = collect, .ctx = &w};
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (plan->culprits & bit(cause_channel(cause)) && cause_is_declaration(cause) && is_open(&w, cause))
            how.everywhere |= bit(cause_channel(cause));
    return slot_walk(c, &how, scratch);
}

int cause_choose(const struct oracle_case *c, const uint32_t *bad, struct judge_scratch *scratch,
                 struct cause_plan *plan)
{
    struct walk w = {.c = c, .bad = bad, .chosen = plan};
    const struct slot_walk how = {.wanted = bad, .visit = choose, .ctx = &w};
    return slot_walk(c, &how, scratch);
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
