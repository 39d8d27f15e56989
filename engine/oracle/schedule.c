#include "engine/oracle/schedule.h"

#include "engine/trace/layout.h"
#include <stdlib.h>

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

int64_t schedule_diagonal(const struct oracle_case *c, int r)
{
    const int64_t row = (int64_t)c->q_tile * c->br + r;
    return c->causal == ASC_CAUSAL_TOP_LEFT ? row : row + c->kv_len - c->q_len;
}

struct key_range schedule_range(const struct oracle_case *c, int r)
{
    const int64_t diagonal = schedule_diagonal(c, r);
    int64_t first = 0;
    int64_t last = c->kv_len;
    if (c->window_left >= 0)
        first = diagonal - c->window_left;
    if (c->window_right >= 0)
        last = diagonal + c->window_right + 1;
    if (c->causal != ASC_CAUSAL_NONE && last > diagonal + 1)
        last = diagonal + 1;
    last = clamp(last, 0, c->kv_len);
    return (struct key_range){(int)clamp(first, 0, last), (int)last};
}

/* The mask of row r; NULL: there is none. */
static const uint8_t *mask_of(const struct oracle_case *c, int r)
{
    return c->mask.data ? (const uint8_t *)c->mask.data + r * c->mask.row_stride : NULL;
}

bool schedule_shows(const struct oracle_case *c, int r, int key)
{
    const struct key_range keys = schedule_range(c, r);
    return key >= keys.first && key < keys.last && (!c->mask.data || mask_of(c, r)[key]);
}

static int count_keys(const struct oracle_case *c, int r, int first, int last)
{
    const uint8_t *mask = mask_of(c, r);
    int n = mask ? 0 : last - first;
    for (int key = first; mask && key < last; key++)
        n += mask[key] != 0;
    return n;
}

int schedule_keys(const struct oracle_case *c, int r)
{
    const struct key_range keys = schedule_range(c, r);
    return count_keys(c, r, keys.first, keys.last);
}

int schedule_keys_of(const struct oracle_case *c, int r, int kv)
{
    return count_keys(c, r, kv * c->bc + schedule_hidden(c, r, kv), kv * c->bc + schedule_visible(c, r, kv));
}

int schedule_cols(const struct oracle_case *c, int kv)
{
    return (int)clamp(c->kv_len - (int64_t)kv * c->bc, 0, c->bc);
}

void schedule_sight(const struct oracle_case *c, int r, int kv, int *hidden, int *visible)
{
    const struct key_range keys = schedule_range(c, r);
    const int64_t tile = (int64_t)kv * c->bc;
    const uint8_t *mask = mask_of(c, r);
    int first = (int)clamp(keys.first - tile, 0, c->bc);
    int last = (int)clamp(keys.last - tile, 0, c->bc);
    while (mask && last > first && !mask[tile + last - 1])
        last--;
    while (mask && first < last && !mask[tile + first])
        first++;
    *hidden = first < last ? first : last;
    *visible = last;
}

int schedule_visible(const struct oracle_case *c, int r, int kv)
{
    int hidden = 0;
    int visible = 0;
    schedule_sight(c, r, kv, &hidden, &visible);
    return visible;
}

bool schedule_sees(const struct oracle_case *c, int kv)
{
    for (int r = c->in_q.rows - 1; r >= 0; r--)
        if (schedule_hidden(c, r, kv) < schedule_visible(c, r, kv))
            return true;
    return false;
}

int schedule_hidden(const struct oracle_case *c, int r, int kv)
{
    int hidden = 0;
    int visible = 0;
    schedule_sight(c, r, kv, &hidden, &visible);
    return hidden;
}

bool schedule_masked(const struct oracle_case *c, int kv)
{
    for (int r = 0; r < c->in_q.rows; r++)
        if (schedule_hidden(c, r, kv) < schedule_visible(c, r, kv))
            return false;
    return true;
}

int schedule_splits(const struct oracle_case *c)
{
    if (c->kv_splits > 1 && c->kv_deal == ASC_DEAL_ROUND_ROBIN)
        return c->kv_splits < c->kv_tiles ? c->kv_splits : c->kv_tiles;
    if (c->kv_splits > 1 && c->kv_deal == ASC_DEAL_MAP)
        return c->kv_splits;
    return schedule_split(c, c->kv_tiles - 1) + 1; /* contiguous ranges: the last tile is in the last one */
}

int schedule_split(const struct oracle_case *c, int kv)
{
    const struct asc_plan plan = {.kv_splits = c->kv_splits, .kv_deal = c->kv_deal};
    return asc_state_of(&plan, c->states, c->kv_len > 0 ? (c->kv_len - 1) / c->bc + 1 : 0, kv);
}

int schedule_nth(const struct oracle_case *c, int i)
{
    if (c->n_visited > 0)
        return c->order[i];
    const int splits = schedule_splits(c);
    if (c->kv_deal == ASC_DEAL_RANGES || splits <= 1)
        return i;
    for (int split = 0; c->kv_deal == ASC_DEAL_MAP && split < splits; split++)
        for (int kv = 0; kv < c->kv_tiles; kv++)
            if (schedule_split(c, kv) == split && i-- == 0)
                return kv;
    /* The first ones have a tile more than the others. */
    const int tiles = c->kv_tiles / splits, more = c->kv_tiles % splits, of_more = more * (tiles + 1);
    const int split = i < of_more ? i / (tiles + 1) : tiles ? more + (i - of_more) / tiles : splits - 1;
    return split + splits * (i < of_more ? i % (tiles + 1) : tiles ? (i - of_more) % tiles : 0);
}

size_t schedule_lists_room(const struct oracle_case *c)
{
    return 3 * (size_t)schedule_splits(c) + 2 * (size_t)c->kv_tiles + (size_t)c->n_visited;
}

void schedule_lists_make(const struct oracle_case *c, int *room, struct schedule_lists *out)
{
    const int splits = schedule_splits(c);
    out->splits = splits;
    out->first_tile = room;
    out->first_visit = out->first_tile + splits;
    out->last_tile = out->first_visit + splits;
    out->next_tile = out->last_tile + splits;
    out->next_visit = out->next_tile + c->kv_tiles;
    int *first = out->next_visit + c->n_visited; /* [kv_tiles] visit of a tile */
    for (size_t i = 0; i < schedule_lists_room(c); i++)
        room[i] = -1;
    for (int kv = c->kv_tiles - 1; kv >= 0; kv--) {
        const int split = schedule_split(c, kv);
        out->next_tile[kv] = out->first_tile[split];
        out->first_tile[split] = kv;
    }
    for (int i = 0; i < c->n_visited; i++) {
        const int kv = c->order[i];
        if (kv < 0 || kv >= c->kv_tiles)
            continue;
        out->last_tile[schedule_split(c, kv)] = kv;
        first[kv] = first[kv] < 0 ? i : first[kv];
    }
    for (int i = c->n_visited - 1; i >= 0; i--) {
        const int kv = c->order[i];
        if (kv < 0 || kv >= c->kv_tiles || first[kv] != i)
            continue;
        const int split = schedule_split(c, kv);
        out->next_visit[i] = out->first_visit[split];
        out->first_visit[split] = i;
    }
}

bool schedule_empty(const struct oracle_case *c)
{
    for (int r = 0; r < c->in_q.rows; r++)
        if (schedule_keys(c, r) > 0)
            return false;
    return true;
}

static bool any_visit_seen(const struct oracle_case *c)
{
    for (int i = 0; i < c->kv_tiles * ASC_CHANNELS; i++)
        if (channel_per_kv((enum asc_channel)(i % ASC_CHANNELS)) && c->captured[i].data)
            return true;
    return false;
}

static void add_step(struct case_step *steps, int *n, int kv, int split)
{
    const int last = *n - 1, same = last >= 0 && steps[last].split == split;
    steps[*n] = (struct case_step){kv, split, same ? last : -1, -1};
    if (same)
        steps[last].behind = *n;
    ++*n;
}

int steps_list(const struct oracle_case *c, struct case_step *out)
{
    const int shown = any_visit_seen(c);
    int n = 0;
    struct schedule_lists lists;
    int *room = calloc(schedule_lists_room(c), sizeof *room);
    if (!room)
        return -1;
    schedule_lists_make(c, room, &lists);
    for (int split = 0; split < lists.splits; split++) {
        for (int i = lists.first_visit[split]; shown && i >= 0; i = lists.next_visit[i])
            add_step(out, &n, c->order[i], split);
        for (int kv = lists.first_tile[split]; !shown && kv >= 0; kv = lists.next_tile[kv])
            if (!schedule_masked(c, kv))
                add_step(out, &n, kv, split);
    }
    free(room);
    return n;
}
