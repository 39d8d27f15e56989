#include "engine/oracle/search/search.h"

#include "engine/base/pool.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/search/constant.h"
#include "engine/oracle/search/propose.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All room that the search needs. */
static int search_begin(struct search *search, const struct search_inputs *inputs)
{
    struct sample *s = search->sample;
    const struct sample_tile *largest = &s->tiles[0];
    size_t most = 0;
    for (int i = 0; i < s->n; i++) {
        const struct oracle_case *c = s->tiles[i].c;
        const size_t rows = (size_t)(c->br > c->bc ? c->br : c->bc);
        const size_t cols = (size_t)(c->bc > oracle_widest(c) ? c->bc : oracle_widest(c));
        most = rows * cols > most ? rows * cols : most;
        if (c->in_q.rows > largest->c->in_q.rows)
            largest = &s->tiles[i];
    }
    const size_t line = (size_t)largest->c->br + (size_t)largest->c->bc + (size_t)oracle_widest(largest->c);
    search->sources = inputs->sources;
    search->n_sources = inputs->n_sources;
    search->heads = inputs->heads;
    search->kv_heads = inputs->kv_heads;
    search->page_table = inputs->page_table;
    search->page_size = inputs->page_size;
    search->table_pages = inputs->table_pages;
    search->items = inputs->items;
    search->slopes = inputs->slopes;
    search->sinks = inputs->sinks;
    search->room = malloc((6 * most + 4 * line) * sizeof *search->room);
    search->seen[0] = malloc(2 * line * sizeof *search->seen[0]);
    search->labels = calloc((size_t)s->n, sizeof *search->labels);
    for (int i = 0; i < s->n && search->labels; i++)
        if (!(search->labels[i] = malloc(sample_cells(&s->tiles[i]) + 1)))
            search->failed = true;
    if (!search->room || !search->seen[0] || !search->labels || search->failed)
        return -1;
    search->want = search->room;
    search->bound = search->want + most;
    search->operand = search->bound + most;
    search->loose = search->operand + most;
    for (int i = 0; i < 2; i++)
        search->sizes[i] = search->loose + (size_t)(i + 1) * most;
    for (int i = 0; i < 4; i++)
        search->rows[i] = search->sizes[1] + most + (size_t)i * line;
    search->seen[1] = search->seen[0] + line;
    return scratch_prepare(search->scratch, largest->c);
}

static void search_end(struct search *search)
{
    search_release(search);
    free(search->blocks);
    for (int i = 0; search->labels && i < search->sample->n; i++)
        free(search->labels[i]);
    free(search->labels);
    free(search->amax);
    free(search->seen[0]);
    free(search->room);
}

/* The cheapest kinds first. */
static const struct proposal {
    void (*make)(struct search *search);
    bool in_parts; /* it asks search_part() */
} proposals[] = {{propose_result, true},    {propose_displaced, true}, {propose_rope, true},   {propose_scales, true},
                 {propose_quantized, true}, {propose_dropout, false},  {propose_state, false}, {propose_weights, true},
                 {propose_lanes, false},    {propose_edits, true},     {propose_sums, false},  {propose_splits, true},
                 {propose_rows, true}};
enum { PROPOSALS = sizeof proposals / sizeof proposals[0] };

static void propose(struct search *search, int i, int part)
{
    search->part = part;
    search->n_parts = 0;
    proposals[i].make(search);
    search_release(search);
}

/* Parts of proposals are made beside each other, each from what was best when it began, and count in their order: if
   what is best has changed by then, the part is made again. So they find what one thread finds, one after the other. */
struct part {
    enum { PART_OPEN, PART_TAKEN, PART_MADE } state;
    int began;          /* the epoch */
    size_t before, own; /* rules that were tried before it, as far as was known, and by it */
    double over;        /* as of the search */
    struct rule *found; /* owned: best and second; NULL: as before */
    bool failed;
};

enum { SEARCHERS_MOST = 8, PARTS_ALL_TOLD = PROPOSALS * PARTS_MOST };

struct race {
    const struct search_inputs *inputs;
    struct search *search; /* as if all that counts had been made in it; its arrays are of no use to the others */
    struct search own[SEARCHERS_MOST];
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    struct part part[PARTS_ALL_TOLD];
    int counted;
    bool ended;
    atomic_int epoch; /* how often what is best has changed, or it has ended */
};

/* The part counts now. false: more rules were tried before it than it knew of, and one that it took no longer pays. */
static bool take_part(struct race *race, struct part *p)
{
    struct search *search = race->search;
    if (p->over < log2((double)(search->tried + 1) / (double)(p->before + 1)))
        return false;
    search->tried += p->own;
    search->failed |= p->failed;
    if (!p->found)
        return true;
    search->best = p->found[0];
    search->second = p->found[1];
    atomic_fetch_add(&race->epoch, 1);
    return true;
}

static void end_race(struct race *race)
{
    race->ended = true;
    atomic_fetch_add(&race->epoch, 1);
}

static void open_part(struct part *p)
{
    free(p->found);
    *p = (struct part){.state = PART_OPEN};
}

/* Counts what can be, and opens again what began from something else. */
static void count_parts(struct race *race)
{
    while (!race->ended) {
        if (race->counted == PARTS_ALL_TOLD || race->search->failed ||
            (race->counted % PARTS_MOST == 0 && search_is_settled(race->search))) {
            end_race(race);
            return;
        }
        struct part *p = &race->part[race->counted];
        if (p->state != PART_MADE)
            return;
        if (p->began == atomic_load(&race->epoch) && take_part(race, p)) {
            race->counted++;
            continue;
        }
        open_part(p);
        return;
    }
}

static struct part *open_parts(struct race *race)
{
    for (int i = race->counted; i < PARTS_ALL_TOLD; i++) {
        struct part *p = &race->part[i];
        if (p->state == PART_MADE && p->began != atomic_load(&race->epoch))
            open_part(p);
        if (p->state == PART_OPEN)
            return p;
    }
    return NULL;
}

static void make_part(struct race *race, struct search *own, struct part *p)
{
    const int at = (int)(p - race->part), i = at / PARTS_MOST, part = at % PARTS_MOST;
    p->state = PART_TAKEN;
    p->began = own->began = atomic_load(&race->epoch);
    p->before = own->tried = race->search->tried;
    own->best = race->search->best;
    own->second = race->search->second;
    own->kept = own->failed = false;
    own->over = INFINITY;
    pthread_mutex_unlock(&race->lock);
    if (proposals[i].in_parts || part == 0)
        propose(own, i, proposals[i].in_parts ? part : PARTS_ALL);
    struct rule *found = own->kept ? malloc(2 * sizeof *found) : NULL;
    if (found) {
        found[0] = own->best;
        found[1] = own->second;
    }
    pthread_mutex_lock(&race->lock);
    p->failed = own->failed || (own->kept && !found);
    p->found = found;
    p->own = own->tried - p->before;
    p->over = own->over;
    p->state = PART_MADE;
    count_parts(race);
    pthread_cond_broadcast(&race->changed);
}

static int race_step(void *ctx, int worker)
{
    struct race *race = ctx;
    if (worker >= SEARCHERS_MOST)
        return 0;
    struct search *own = &race->own[worker];
    *own = (struct search){
        .sample = race->search->sample, .scratch = race->inputs->by.scratch[worker], .epoch = &race->epoch};
    if (search_begin(own, race->inputs) != 0) { /* no room for one more */
        search_end(own);
        return 0;
    }
    pthread_mutex_lock(&race->lock);
    while (count_parts(race), !race->ended) {
        struct part *p = open_parts(race);
        if (p)
            make_part(race, own, p);
        else
            pthread_cond_wait(&race->changed, &race->lock);
    }
    pthread_cond_broadcast(&race->changed);
    pthread_mutex_unlock(&race->lock);
    search_end(own);
    return 0;
}

static void propose_beside(struct search *search, const struct search_inputs *inputs)
{
    struct race *race = calloc(1, sizeof *race);
    search->failed |= !race;
    if (!race)
        return;
    race->inputs = inputs;
    race->search = search;
    pthread_mutex_init(&race->lock, NULL);
    pthread_cond_init(&race->changed, NULL);
    pool_start(inputs->by.pool, race_step, race);
    pool_wait(inputs->by.pool);
    search->failed |= !race->ended; /* nobody had room */
    pthread_cond_destroy(&race->changed);
    pthread_mutex_destroy(&race->lock);
    for (int i = 0; i < PARTS_ALL_TOLD; i++)
        free(race->part[i].found);
    free(race);
}

static void propose_all(struct search *search, const struct search_inputs *inputs)
{
    if (inputs->by.pool && pool_threads(inputs->by.pool) > 1) {
        propose_beside(search, inputs);
        return;
    }
    for (int i = 0; i < PROPOSALS && !search_is_settled(search); i++)
        propose(search, i, PARTS_ALL);
}

static bool is_in_pattern(uint8_t cell)
{
    return cell == CELL_WRONG || cell == CELL_ABSENT;
}

/* Where a stage is wrong or absent, as a region of its own: it may tell more than no rule at all. */
static bool find_pattern(struct search *search, struct region *region, const char **what)
{
    const struct sample *s = search->sample;
    bool nan = s->absent == 0, same = nan;
    double first = NAN;
    for (int i = 0; i < s->n; i++) {
        const struct sample_tile *t = &s->tiles[i];
        for (size_t k = 0; k < sample_cells(t); k++) {
            search->labels[i][k] = is_in_pattern(t->cell[k])  ? LABEL_IN
                                   : t->cell[k] == CELL_RIGHT ? LABEL_OUT
                                                              : LABEL_SILENT;
            if (t->cell[k] != CELL_WRONG)
                continue;
            nan = nan && isnan(t->got[k]);
            first = isnan(first) ? t->got[k] : first;
            same = same && t->got[k] == first;
        }
    }
    *what = s->wrong == 0                        ? "never written"
            : nan                                ? "NaN"
            : same && first == 0                 ? "0"
            : same && first == (double)-INFINITY ? "-inf"
                                                 : "wrong";
    return s->right > 0 && region_fit(s, search->labels, false, region) && region->n > 0;
}

static void say_pattern(struct search *search, struct explanation *out)
{
    const char *what = "wrong";
    out->pattern = find_pattern(search, &out->where, &what);
    if (!out->pattern && (strcmp(what, "0") == 0 || strcmp(what, "-inf") == 0)) {
        out->pattern = true;
        snprintf(out->text, sizeof out->text, "%s is %s wherever it is wrong", channel_label(search->sample->channel),
                 what);
        return;
    }
    if (!out->pattern)
        return;
    region_say(search->sample, &out->where, out->place, sizeof out->place);
    snprintf(out->text, sizeof out->text, "%s is %s%s, and right elsewhere", channel_label(search->sample->channel),
             what, out->place);
}

/* What most of a stage's formula is made of. */
static const double *material(const struct sample_tile *t, enum asc_channel ch, size_t *n)
{
    const size_t R = (size_t)t->c->in_q.rows, C = (size_t)t->x.cols, D = (size_t)oracle_dim(t->c, ch);
    switch (ch) {
    case asc_s:
        *n = C * D;
        return t->x.of[asc_k].value;
    case asc_m:
    case asc_p:
        *n = R * C;
        return t->x.s.value;
    case asc_alpha:
        *n = R;
        return t->x.of[asc_m].value;
    case asc_l:
        *n = R * C;
        return t->x.l_p.value;
    case asc_u:
        *n = C * D;
        return t->x.of[asc_v].value;
    case asc_o:
        *n = R * D;
        return t->x.u_prev.value;
    case asc_lse:
        *n = R;
        return t->x.m_prev.value;
    default:
        *n = sample_cells(t);
        return t->want;
    }
}

/* How many different values tell a material that is none of these; e2m1 has 15, and scales of e8m0 make few more. */
enum { DIFFERENT = 48, DIFFERENT_HALVES = 8 };

static size_t different_least(const struct sample *s)
{
    const enum asc_channel of = s->channel == asc_s ? asc_k : s->channel == asc_u ? asc_v : s->channel;
    return of <= asc_v && codes_input(s->tiles[0].c, of)->dtype == DTYPE_E2M1 ? DIFFERENT_HALVES : DIFFERENT;
}

/* Inputs that are zero, constant or one-hot: whatever is computed of them, much else would give the same. */
static bool is_flat(const struct sample *s)
{
    double seen[DIFFERENT];
    const size_t least = different_least(s);
    size_t n = 0, all = 0;
    for (int i = 0; i < s->n; i++) {
        size_t values = 0;
        const double *x = material(&s->tiles[i], s->channel, &values);
        for (size_t k = 0; x && k < values; k++) {
            size_t at = 0;
            if (!isfinite(x[k]))
                continue;
            all++;
            while (at < n && seen[at] != x[k])
                at++;
            if (at == n)
                seen[n++] = x[k];
            if (n == least)
                return false;
        }
    }
    return n * 4 < all;
}

/* The same step in this stage, where it has it too; false: it has not. */
static bool follow(const struct rule *rule, enum asc_channel ch, struct rule *out)
{
    const enum asc_channel from = rule->channel;
    *out = *rule;
    out->follows = true;
    out->evidence = (struct evidence){0};
    if (from == ch || rule->kind == RULE_NONE)
        return false;
    if (rule->kind == RULE_SPLITS)
        return from >= asc_o && ch >= asc_o;
    if (rule->kind == RULE_QUANTIZED)
        return from <= asc_v && ch <= asc_v;
    if (rule->kind != RULE_VECTOR || rule->type == DTYPE_COUNT || rule->power != 1 || rule->keys.a)
        return false;
    const bool of_m = rule->slot == SLOT_M || rule->slot == SLOT_M_PREV, of_l = rule->slot == SLOT_L;
    if (of_m && (ch == asc_p || ch == asc_lse)) {
        out->slot = SLOT_M;
        out->entry = ENTRY_M;
    } else if (of_m && ch == asc_alpha) {
        out->slot = SLOT_M_PREV;
        out->entry = ENTRY_M_PREV;
    } else if (of_l && ch != asc_u) {
        out->entry = ch == asc_l ? ENTRY_L_PREV : ENTRY_L;
    }
    return of_m   ? ch == asc_p || ch == asc_lse || ch == asc_alpha
           : of_l ? ch == asc_l || ch >= asc_o
                  : rule->slot == SLOT_ALPHA && (ch == asc_l || ch == asc_u);
}

static void propose_following(struct search *search, const struct search_inputs *inputs)
{
    for (int i = 0; i < inputs->n_elsewhere; i++) {
        struct rule rule;
        if (follow(&inputs->elsewhere[i], search->sample->channel, &rule))
            rule_try(search, &rule);
    }
}

static int run(struct search *search, const struct search_inputs *inputs, const struct rule *known)
{
    if (search_begin(search, inputs) != 0)
        return -1;
    if (known && known->kind != RULE_NONE) {
        struct rule rule = *known;
        rule_try(search, &rule);
        search->second = rule; /* with its counts, though it may not pass */
    } else if (!known && !is_flat(search->sample)) {
        propose_unguarded(search);
        propose_masked(search);
        propose_readings(search);
        propose_all(search, inputs);
        if (search->best.kind == RULE_NONE)
            propose_following(search, inputs);
    }
    search->best.evidence.tried = search->second.evidence.tried = search->tried;
    /* Rules that came after it are among those that were tried. */
    if (search->best.kind != RULE_NONE && search->best.evidence.bits < rule_price(&search->best))
        search->best.kind = RULE_NONE;
    return search->failed ? -1 : 0;
}

int search_stage(struct sample *sample, struct judge_scratch *scratch, const struct search_inputs *inputs,
                 const struct rule *known, struct explanation *out)
{
    struct search search = {.sample = sample, .scratch = scratch, .tried = known ? out->tried : 0};
    memset(out, 0, sizeof *out);
    if (sample->n == 0 || (sample->wrong == 0 && sample->absent == 0))
        return 0;
    const int failed = sample->wrong ? run(&search, inputs, known) : search_begin(&search, inputs);
    if (!failed) {
        out->n = search.best.kind != RULE_NONE;
        out->rule[0] = search.best;
        out->runner_up = search.second;
        out->share = search.best.evidence.share;
        out->tried = search.tried;
        out->wrong = sample->wrong;
        rule_say(sample, &out->rule[0], out->said[0], sizeof out->said[0]);
        out->cause = search.best.evidence.share >= 0.5 ? rule_cause(sample, &out->rule[0]) : CAUSE_NONE;
        rule_say(sample, &out->runner_up, out->runner_up_said, sizeof out->runner_up_said);
        if (!out->n)
            say_pattern(&search, out);
    }
    search_end(&search);
    return failed;
}

/* What a rule explains, and what it says nothing else of, is explained from here on. Returns what its region holds. */
static struct evidence mark_explained(struct search *search, const struct rule *rule)
{
    struct sample *s = search->sample;
    struct rule again = *rule;
    rule_label(search, &again);
    s->wrong = 0;
    for (int i = 0; i < s->n; i++) {
        const struct sample_tile *t = &s->tiles[i];
        for (size_t k = 0; k < sample_cells(t); k++) {
            const int row = (int)(k / (size_t)t->cols), col = (int)(k % (size_t)t->cols);
            if (t->cell[k] == CELL_WRONG && search->labels[i][k] != LABEL_OUT &&
                region_holds(&again.region, t, row, col))
                t->cell[k] = CELL_EXPLAINED;
            s->wrong += t->cell[k] == CELL_WRONG;
        }
    }
    return again.evidence;
}

/* Wrong in the region, and right elsewhere. */
static struct evidence check_pattern(const struct sample *s, const struct region *region)
{
    struct evidence found = {0};
    for (int i = 0; i < s->n; i++) {
        const struct sample_tile *t = &s->tiles[i];
        for (size_t k = 0; k < sample_cells(t); k++) {
            const int row = (int)(k / (size_t)t->cols), col = (int)(k % (size_t)t->cols);
            const bool holds = region_holds(region, t, row, col);
            found.told += t->cell[k] != CELL_SILENT;
            found.out += t->cell[k] != CELL_SILENT && is_in_pattern(t->cell[k]) != holds;
        }
    }
    return found;
}

int search_check(struct sample *sample, struct judge_scratch *scratch, const struct search_inputs *inputs,
                 const struct explanation *e, struct evidence found[RULES_MOST])
{
    struct search search = {.sample = sample, .scratch = scratch};
    if (e->pattern)
        found[0] = check_pattern(sample, &e->where);
    if (sample->n == 0 || e->pattern)
        return 0;
    const int failed = search_begin(&search, inputs);
    for (int i = 0; i < e->n && !failed; i++)
        found[i] = mark_explained(&search, &e->rule[i]);
    search_end(&search);
    return failed;
}

int search_rest(struct sample *sample, struct judge_scratch *scratch, const struct search_inputs *inputs,
                struct explanation *out)
{
    struct search search = {.sample = sample, .scratch = scratch};
    if (!out->n)
        return 0;
    snprintf(out->text, sizeof out->text, "%s", out->said[0]);
    if (out->share >= 0.9999)
        return 0;
    int failed = search_begin(&search, inputs);
    if (!failed)
        mark_explained(&search, &out->rule[0]);
    search_end(&search);
    if (failed || sample->wrong == 0)
        return failed;
    search = (struct search){.sample = sample, .scratch = scratch};
    failed = run(&search, inputs, NULL);
    if (!failed && search.best.kind != RULE_NONE) {
        out->rule[out->n++] = search.best;
        out->share += (1 - out->share) * search.best.evidence.share;
        rule_say(sample, &search.best, out->said[1], sizeof out->said[1]);
        snprintf(out->text, sizeof out->text, "%s; and %s", out->said[0], out->said[1]);
    }
    search_end(&search);
    return failed;
}
