#include "engine/verdict/skipping.h"

#include "engine/oracle/schedule.h"
#include "engine/verdict/case.h"
#include "engine/verdict/dealt.h"
#include <stdio.h>
#include <string.h>

/* What is known of a q tile: its case, and the first and last tile that any row sees. */
struct q_tile {
    const struct trace *t;
    const struct oracle_case *c;
    int batch, first, last;
    int rows; /* that the rule asks */
};

static bool by_last_row(const struct q_tile *q, int kv)
{
    return schedule_keys_of(q->c, q->c->in_q.rows - 1, kv) > 0;
}

static bool any_row_sees(const struct q_tile *q, int first, int end, int kv)
{
    for (int r = first; r < end && r < q->c->in_q.rows; r++)
        if (schedule_keys_of(q->c, r, kv) > 0)
            return true;
    return false;
}

/* As where each warp tells what its rows see, and the last one, or the first one, is believed for all. */
static bool by_first_rows(const struct q_tile *q, int kv)
{
    return any_row_sees(q, 0, q->rows, kv);
}

static bool by_last_rows(const struct q_tile *q, int kv)
{
    return any_row_sees(q, q->c->br - q->rows, q->c->br, kv);
}

/* With the diagonal moved to where kv_len - q_len is `corner`; keys end where they do. */
static bool by_corner(const struct q_tile *q, int corner, int kv)
{
    struct oracle_case c = *q->c;
    c.q_len = c.kv_len - corner;
    return schedule_sees(&c, kv);
}

static bool by_longest(const struct q_tile *q, int kv)
{
    return by_corner(q, q->t->problem.kv_len - q->t->problem.q_len, kv);
}

static bool by_top_left(const struct q_tile *q, int kv)
{
    return by_corner(q, 0, kv);
}

static bool by_first_q_tile(const struct q_tile *q, int kv)
{
    struct oracle_case c = *q->c;
    c.q_tile = 0;
    return c.mask.data ? schedule_sees(q->c, kv) : schedule_sees(&c, kv);
}

static bool by_diagonal(const struct q_tile *q, int kv)
{
    struct oracle_case c = *q->c;
    c.window_right = 0;
    return schedule_sees(&c, kv);
}

/* One key for each lane of a warp. */
static bool by_first_keys(const struct q_tile *q, int kv)
{
    enum { LANES = 32 };
    for (int r = 0; r < q->c->in_q.rows; r++)
        for (int key = kv * q->c->bc; key < kv * q->c->bc + LANES && key < (kv + 1) * q->c->bc; key++)
            if (schedule_shows(q->c, r, key))
                return true;
    return false;
}

static bool by_first_sequence(const struct q_tile *q, int kv)
{
    return kv * q->c->bc < asc_kv_len(&q->t->problem, 0);
}

static bool by_sequence_before(const struct q_tile *q, int kv)
{
    return q->batch == 0 || kv * q->c->bc < asc_kv_len(&q->t->problem, q->batch - 1);
}

static bool rounded_down(const struct q_tile *q, int kv)
{
    return (kv + 1) * q->c->bc <= schedule_range(q->c, q->c->in_q.rows - 1).last;
}

static bool one_key_less(const struct q_tile *q, int kv)
{
    return kv * q->c->bc + 1 < schedule_range(q->c, q->c->in_q.rows - 1).last;
}

static bool not_the_first(const struct q_tile *q, int kv)
{
    return kv != q->first;
}

static bool not_the_last(const struct q_tile *q, int kv)
{
    return kv != q->last;
}

static bool before_a_gap(const struct q_tile *q, int kv)
{
    for (int k = 0; k < kv; k++)
        if (!schedule_sees(q->c, k))
            return false;
    return true;
}

static bool begins_inside(const struct q_tile *q, int kv)
{
    return kv * q->c->bc >= schedule_range(q->c, 0).first;
}

/* As where all threads are asked, not any of them: rows behind the last one see nothing. */
static bool all_take_part(const struct q_tile *q, int kv)
{
    const struct oracle_case *c = q->c;
    int rows = 0, keys = 0;
    for (int r = 0; r < c->in_q.rows; r++)
        rows += schedule_keys_of(c, r, kv) > 0;
    for (int key = kv * c->bc; key < (kv + 1) * c->bc && key < c->kv_len; key++) {
        bool seen = false;
        for (int r = 0; r < c->in_q.rows && !seen; r++)
            seen = schedule_shows(c, r, key);
        keys += seen;
    }
    return rows == c->br && keys == c->bc;
}

static bool begins_before_the_keys_end(const struct q_tile *q, int kv)
{
    (void)kv;
    return (int64_t)q->c->q_tile * q->c->br < q->c->kv_len;
}

static bool has_left_side(const struct asc_problem *p)
{
    return p->window_left >= 0;
}

static bool has_right_side(const struct asc_problem *p)
{
    return p->window_right > 0;
}

static bool has_diagonal(const struct asc_problem *p)
{
    return p->causal != ASC_CAUSAL_NONE || p->window_left >= 0 || p->window_right >= 0;
}

static bool has_sequences(const struct asc_problem *p)
{
    return p->batch > 1;
}

#define VISITED "visited are just those "
#define ANY_OF_FIRST VISITED "that %sfirst %s of a q tile sees"
#define ANY_OF_LAST VISITED "that %slast %s of a q tile sees"

/* Tiles for which it does not hold are left out. Two before the last say where, and not why; the last holds of many
   others' tiles too. Where may_be() is false there is nothing of what a rule speaks of. Of rules that ask so many rows
   all that hold are said as one. */
static const struct {
    bool (*visits)(const struct q_tile *q, int kv);
    const char *words;
    bool (*may_be)(const struct asc_problem *p);
    int rows;
} rules[] = {
    {by_last_row, VISITED "that the last row of a q tile sees", NULL, 0},
    {by_first_rows, ANY_OF_FIRST, NULL, 1},
    {by_first_rows, ANY_OF_FIRST, NULL, 2},
    {by_first_rows, ANY_OF_FIRST, NULL, 4},
    {by_first_rows, ANY_OF_FIRST, NULL, 8},
    {by_first_rows, ANY_OF_FIRST, NULL, 16},
    {by_first_rows, ANY_OF_FIRST, NULL, 32},
    {by_last_rows, ANY_OF_LAST, NULL, 2},
    {by_last_rows, ANY_OF_LAST, NULL, 4},
    {by_last_rows, ANY_OF_LAST, NULL, 8},
    {by_last_rows, ANY_OF_LAST, NULL, 16},
    {by_last_rows, ANY_OF_LAST, NULL, 32},
    {by_diagonal, "the loop ends at the diagonal, without the window's right side", has_right_side, 0},
    {by_first_q_tile, "the loop ends where that of q tile 0 does", NULL, 0},
    {by_first_keys, VISITED "of which a row sees any of the first 32 keys", NULL, 0},
    {by_longest, "the loop goes by the diagonal of the longest lengths", has_diagonal, 0},
    {by_top_left, "the loop goes by a diagonal that begins at key 0", has_diagonal, 0},
    {by_first_sequence, "the loop ends with the keys of sequence 0", has_sequences, 0},
    {by_sequence_before, "the loop ends with the keys of the sequence before", has_sequences, 0},
    {rounded_down, "the number of tiles is rounded down, without the one that the last row's keys end in", NULL, 0},
    {one_key_less, "the number of tiles is that of one key less", NULL, 0},
    {before_a_gap, "the loop ends at the first tile that no row sees", NULL, 0},
    {begins_inside, "the loop begins with the first tile that lies behind the window's start as a whole", has_left_side,
     0},
    {begins_before_the_keys_end, "all of q tiles whose first row is no number of a key", NULL, 0},
    {not_the_first, "the first tile that a q tile sees is missing", NULL, 0},
    {not_the_last, "the last tile that a q tile sees is missing", NULL, 0},
    {all_take_part, "a tile is left out unless each row and each key of it takes part", NULL, 0}};
enum { RULES = sizeof rules / sizeof rules[0], PLACES = 3, MOST = 3 };

enum { NO_SPLIT = -1, OTHER_SPLITS = -2 };

/* The split whose tiles, all of them and no others, were never visited: *lost is what is known of the slots before. */
static void sift_split(const struct oracle_case *c, int kv, bool visited, int *lost)
{
    const int split = schedule_split(c, kv);
    if (!visited && *lost == NO_SPLIT)
        *lost = split;
    if (visited == (split == *lost))
        *lost = OTHER_SPLITS;
}

/* Drops the rules that do not hold of a slot. -1 without memory. */
static int sift(const struct trace *t, int slot, bool holds[RULES], int *lost)
{
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    struct q_tile q = {.t = t, .c = &c.c, .batch = trace_slot_place(t, slot)[0], .first = -1, .last = -1};
    for (int kv = 0; kv < c.c.kv_tiles; kv++)
        if (schedule_sees(&c.c, kv)) {
            q.first = q.first < 0 ? kv : q.first;
            q.last = kv;
        }
    for (int kv = 0; kv < c.c.kv_tiles; kv++) {
        const bool visited = case_visited(t, slot, kv);
        for (int i = 0; i < RULES && schedule_sees(&c.c, kv); i++) {
            q.rows = rules[i].rows;
            holds[i] = holds[i] && rules[i].rows < c.c.br && rules[i].visits(&q, kv) == visited;
        }
    }
    for (int pass = 0; pass < 2 && *lost != OTHER_SPLITS; pass++) /* the first one finds it */
        for (int kv = 0; kv < c.c.kv_tiles; kv++)
            if (schedule_sees(&c.c, kv) && (pass == 1 || !case_visited(t, slot, kv)))
                sift_split(&c.c, kv, case_visited(t, slot, kv), lost);
    slot_case_free(&c);
    return 0;
}

/* Whether a block came to a q tile, though it may have visited no kv tile: its probes outside of the loop say so. Where
   there are none it may have. */
static bool is_worked_on(const struct trace *t, int slot)
{
    static const enum asc_channel outside[] = {asc_q, asc_o, asc_lse};
    bool any =
        !trace_stamps(t, asc_q, slot, 0) && !trace_stamps(t, asc_o, slot, 0) && !trace_stamps(t, asc_lse, slot, 0);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        const uint64_t *stamps = trace_stamps(t, outside[i], slot, 0);
        for (int warp = 0; stamps && warp < t->layout.warps; warp++)
            any = any || stamps[warp];
    }
    return any;
}

/* Whether nothing was visited wherever anything was left out: "; no block works on q tile 2", where it is the same one
   of all heads. -1 without memory. */
static int lost_slots(const struct trace *t, char *out, size_t bytes)
{
    int q_tile = -1, lost = 0, of_q_tile = 0, worked_on = 0;
    for (int slot = 0; slot < t->layout.n_slots; slot++) {
        struct slot_case c;
        bool any = false, left = false;
        if (slot_case_make(t, slot, &c) != 0)
            return -1;
        for (int kv = 0; kv < c.c.kv_tiles; kv++) {
            any = any || case_visited(t, slot, kv);
            left = left || (schedule_sees(&c.c, kv) && !case_visited(t, slot, kv));
        }
        slot_case_free(&c);
        if (left && any)
            return 0;
        if (!left)
            continue;
        const int at = trace_slot_place(t, slot)[2];
        q_tile = lost == 0 || q_tile == at ? at : -2;
        worked_on += is_worked_on(t, slot);
        lost++;
    }
    for (int slot = 0; slot < t->layout.n_slots; slot++)
        of_q_tile += trace_slot_place(t, slot)[2] == q_tile;
    if (worked_on > 0 && worked_on < lost)
        return 0;
    const char *who = worked_on ? "all that are seen of" : "no block works on";
    if (lost && of_q_tile == lost)
        snprintf(out, bytes, "; %s q tile %d", who, q_tile);
    else if (lost)
        snprintf(out, bytes, "; %s %d of %d q tiles of all heads", who, lost, t->layout.n_slots);
    return lost > 0;
}

static size_t say_rule(int i, int last, const char *before, char *out, size_t bytes)
{
    char rows[32] = "row";
    const size_t known = strlen(VISITED);
    const bool goes_on = strstr(before, "; " VISITED) && strncmp(rules[i].words, VISITED, known) == 0;
    const char *words = rules[i].words + (goes_on ? known : 0), *gap = strstr(words, "%s"),
               *next = gap ? strstr(gap + 1, "%s") : NULL;
    if (!next)
        return (size_t)snprintf(out, bytes, "%s", words);
    if (last > i)
        snprintf(rows, sizeof rows, "%d to %d rows", rules[i].rows, rules[last].rows);
    else if (rules[i].rows > 1)
        snprintf(rows, sizeof rows, "%d rows", rules[i].rows);
    return (size_t)snprintf(out, bytes, "%.*s%s%.*s%s%s", (int)(gap - words), words,
                            rules[last].rows > 1 ? "any of the " : "the ", (int)(next - gap - 2), gap + 2, rows,
                            next + 2);
}

/* "; visited are just those that the first row of a q tile sees": a rule that leaves out all tiles which were left out
   and none that was visited, where rows should see them; up to three that do so are joined by "or". "": no rule, or
   more. -1 without memory. */
enum { SKIPPING_BYTES = 320 };
static int skipping_words(const struct trace *t, char out[SKIPPING_BYTES])
{
    bool holds[RULES];
    int n = 0, lost = t->plan.kv_splits > 1 ? NO_SPLIT : OTHER_SPLITS;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < RULES; i++)
        holds[i] = !rules[i].may_be || rules[i].may_be(&t->problem);
    for (int slot = 0; slot < t->layout.n_slots; slot++)
        if (sift(t, slot, holds, &lost) != 0)
            return -1;
    const int whole = lost < 0 && t->plan.kv_splits <= 1 ? lost_slots(t, out, SKIPPING_BYTES) : 0;
    for (int i = 0; i < RULES && whole > 0; i++)
        if (holds[i] && rules[i].visits == begins_before_the_keys_end)
            snprintf(out, SKIPPING_BYTES, "; %s", rules[i].words);
    if (whole != 0)
        return whole < 0 ? -1 : 0;
    int last[RULES];
    for (int i = 0; i < RULES; i++)
        last[i] = i;
    for (int i = RULES - 1; i > 0; i--)
        if (rules[i].rows && rules[i].visits == rules[i - 1].visits && holds[i] && holds[i - 1]) {
            holds[i] = false;
            last[i - 1] = last[i];
        }
    for (int i = 0; i < RULES; i++)
        n += holds[i];
    if (holds[RULES - 1] && (n > 1 || lost >= 0)) {
        holds[RULES - 1] = false;
        n--;
    }
    for (int i = RULES - PLACES; i < RULES && n > MOST; i++) {
        n -= holds[i];
        holds[i] = false;
    }
    if (lost >= 0)
        used = (size_t)snprintf(out, SKIPPING_BYTES, "; all of split %d", lost);
    for (int i = 0, said = lost >= 0; i < RULES && n <= MOST; i++)
        if (holds[i]) {
            used += (size_t)snprintf(out + used, SKIPPING_BYTES - used, "%s", said++ ? ", or " : "; ");
            used += say_rule(i, last[i], out, out + used, SKIPPING_BYTES - used);
        }
    return 0;
}

void left_out_rows(const struct left_out *it, char out[LEFT_OUT_ROWS_BYTES])
{
    if (it->first_row == it->last_row)
        snprintf(out, LEFT_OUT_ROWS_BYTES, "row %d", it->first_row);
    else
        snprintf(out, LEFT_OUT_ROWS_BYTES, "rows %d to %d", it->first_row, it->last_row);
}

/* " h0 q1 k2 (rows 0 to 63)" */
static void left_out_words(const struct trace *t, const struct left_out *it, char out[96])
{
    const int32_t *at = trace_slot_place(t, it->place.slot);
    char batch[16] = "", rows[LEFT_OUT_ROWS_BYTES];
    if (t->problem.batch > 1)
        snprintf(batch, sizeof batch, "b%d ", (int)at[0]);
    left_out_rows(it, rows);
    snprintf(out, 96, " %sh%d q%d k%d (%s)", batch, (int)at[1], (int)at[2], it->place.kv, rows);
}

int skipping_find(const struct judgement *j, const struct trace *t, const struct summary *summary, struct finding *f)
{
    enum { TOLD = 3 };
    struct place at = {0};
    struct left_out it;
    memset(f, 0, sizeof *f);
    f->loop = true;
    f->channel = summary->first_unvisited.channel;
    f->first = summary->first_unvisited;
    char dealt[DEALT_WORDS_BYTES], why[SKIPPING_BYTES] = "";
    dealt_words(t, f->first.slot, dealt);
    if (!dealt[0] && skipping_words(t, why) != 0)
        return -1;
    size_t used = (size_t)snprintf(f->text, sizeof f->text, "%llu kv tile%s that rows should see %s never visited%s%s:",
                                   (unsigned long long)summary->unvisited, summary->unvisited == 1 ? "" : "s",
                                   summary->unvisited == 1 ? "was" : "were", dealt, why);
    for (uint64_t n = 0; judgement_left_out(j, t, &at, &it) && used < sizeof f->text; n++) {
        char words[96];
        if (n == 0)
            f->row = it.first_row < 0 ? 0 : it.first_row;
        left_out_words(t, &it, words);
        if (n < TOLD)
            used += (size_t)snprintf(f->text + used, sizeof f->text - used, "%s%s", n ? "," : "", words);
        else
            used += (size_t)snprintf(f->text + used, sizeof f->text - used, ", ...");
        if (n == TOLD)
            break;
    }
    return 0;
}
