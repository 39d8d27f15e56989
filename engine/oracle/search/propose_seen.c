/* Another mask of S: keys that a row sees as another row does, a limit that is off or missing, columns taken for other
   keys. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/schedule.h"

/* The mask of S: what each row sees of the tiles is a range of keys, and its last (first) key that of another row. */
static bool seen_of(const struct sample_tile *t, int r, int *first, int *last)
{
    *first = *last = 0;
    for (int col = 0; col < t->cols; col++) {
        if (t->got[(size_t)r * (size_t)t->cols + (size_t)col] == -INFINITY)
            continue;
        if (*last == 0)
            *first = col;
        *last = col + 1;
    }
    for (int col = *first; col < *last; col++)
        if (t->got[(size_t)r * (size_t)t->cols + (size_t)col] == -INFINITY)
            return false;
    return true;
}

/* Of a row that sees all keys of the tile: columns behind the last key that it sees as well, which tell where its limit
   is. 0: those do not tell. */
static int seen_behind(const struct sample_tile *t, int r)
{
    const int n = t->x.pad_cols;
    const double *pad = t->x.pad + (size_t)r * (size_t)n;
    int last = 0;
    while (last < n && pad[last] != -INFINITY)
        last++;
    for (int col = last; col < n; col++)
        if (pad[col] != -INFINITY)
            return 0;
    return last < n ? last : 0;
}

/* Rows where a limit of what is seen lies within the tile, and the row whose limit that is, of the tile or of the head;
   or how far off it is. */
enum limits { LIMIT_OFF, LIMIT_ROW, LIMIT_ROW_OF_HEAD, LIMIT_PACKED_ROW };

static size_t pair_limits(const struct search *search, bool hidden, struct pair *pairs, size_t most, enum limits of,
                          bool *behind)
{
    const struct sample *s = search->sample;
    const int group = search->heads / search->kv_heads;
    size_t n = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (int r = 0; r < t->rows && n < most; r++) {
            int first = 0, last = 0;
            if (!seen_of(t, r, &first, &last))
                continue;
            const struct key_range own = schedule_range(t->c, r);
            const int more = !hidden && last == t->cols && own.last < t->c->kv_len ? seen_behind(t, r) : 0;
            if (hidden ? first == 0 : last == 0 || (last == t->cols && more == 0))
                continue;
            *behind = *behind || more > 0;
            last += more;
            const int key = t->kv * t->c->bc + (hidden ? first : last), off = key - (hidden ? own.first : own.last);
            const int row = of >= LIMIT_ROW_OF_HEAD ? t->at[AXIS_Q_TILE] * t->c->br + r : r;
            pairs[n++] = (struct pair){packed_row(search, t, of == LIMIT_PACKED_ROW ? group : 0, row),
                                       of == LIMIT_OFF ? off : row + off};
        }
    }
    return n;
}

/* A limit that no row has is not another row's. */
static bool pairs_within(const struct pair *pairs, size_t n, int rows)
{
    for (size_t i = 0; i < n; i++)
        if (pairs[i].to < 0 || pairs[i].to >= rows)
            return false;
    return true;
}

static void propose_edges(struct search *search)
{
    enum { PAIRS = 512 };
    const struct sample *s = search->sample;
    struct pair pairs[PAIRS];
    for (int hidden = 0; hidden < 2; hidden++) {
        struct rule rule = rule_new(RULE_SEEN);
        bool behind = false;
        size_t n = pair_limits(search, hidden, pairs, PAIRS, LIMIT_OFF, &behind);
        rule.rows.hidden = hidden;
        rule.plus = hidden ? -SEEN_ALL : SEEN_ALL;
        rule.cost = 3;
        if (!behind)
            rule_try(search, &rule);
        /* A limit moved by so many keys is a row moved by as many: the diagonal goes one key a row. Rows that it is not
           moved for may be a region, or a map of rows may leave them as they are. */
        if (n < 4)
            continue;
        size_t same = 0, moved = 0, first = 0;
        while (first < n && pairs[first].to == 0)
            first++;
        for (size_t i = first; i < n; i++) {
            same += pairs[i].to == pairs[first].to;
            moved += pairs[i].to != 0;
        }
        if (moved >= 4 && same == moved) {
            rule.plus = pairs[first].to;
            rule.cost = 3 + log2(2 + fabs(rule.plus));
            rule_try(search, &rule);
            if (same == n)
                continue;
        }
        rule.plus = 0;
        const int group = search->heads / search->kv_heads, q_len = s->tiles[0].c->q_len;
        const int rows[] = {
            [LIMIT_ROW] = s->tiles[0].c->br, [LIMIT_ROW_OF_HEAD] = q_len, [LIMIT_PACKED_ROW] = q_len * group};
        for (int of = LIMIT_ROW; of <= (group > 1 ? LIMIT_PACKED_ROW : LIMIT_ROW_OF_HEAD); of++) {
            n = pair_limits(search, hidden, pairs, PAIRS, (enum limits)of, &behind);
            rule.rows.whole = of >= LIMIT_ROW_OF_HEAD;
            rule.rows.packed = of == LIMIT_PACKED_ROW ? group : 0;
            rule.cost = pairs_within(pairs, n, rows[of]) ? 2 + of + map_fit(pairs, n, rows[of], &rule.map) : INFINITY;
            if (rule.cost < INFINITY && (rule.map.kind != MAP_SAME || rule.rows.packed))
                rule_try(search, &rule);
        }
    }
}

/* The one column that row r sees and the row above it does not; -1: not one alone. */
static int column_more(const struct sample_tile *t, int r)
{
    int more = -1, n = 0;
    for (int col = 0; col < t->cols; col++) {
        const size_t at = (size_t)r * (size_t)t->cols + (size_t)col;
        if ((t->got[at] == -INFINITY) == (t->got[at - (size_t)t->cols] == -INFINITY))
            continue;
        more = col;
        n++;
    }
    return n == 1 && t->got[(size_t)r * (size_t)t->cols + (size_t)more] != -INFINITY ? more : -1;
}

/* Where the columns of a fragment are not in the order of keys: each row sees a key more than the one above it, which
   tells the key that its column is taken for. */
static void propose_seen_columns(struct search *search)
{
    enum { PAIRS = 512 };
    const struct sample *s = search->sample;
    struct pair pairs[PAIRS];
    struct rule rule = rule_new(RULE_SEEN);
    size_t n = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (int r = 1; r < t->rows && n < PAIRS; r++) {
            const int key = schedule_range(t->c, r).last - 1 - t->kv * t->c->bc, col = column_more(t, r);
            if (schedule_range(t->c, r - 1).last == key + t->kv * t->c->bc && key >= 0 && key < t->cols && col >= 0)
                pairs[n++] = (struct pair){col, key};
        }
    }
    rule.cost = n < 8 ? INFINITY : 4 + map_fit(pairs, n, s->tiles[0].c->bc, &rule.col_map);
    if (rule.cost < INFINITY && rule.col_map.kind != MAP_SAME)
        rule_try(search, &rule);
}

void propose_seen(struct search *search)
{
    propose_edges(search);
    propose_seen_columns(search);
}
