#include "engine/verdict/stored.h"

#include "engine/oracle/search/map.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH, HEAD, ROW, AXES };
enum { NOWHERE = -1, SEVERAL = -2 };

/* A row that was recorded: of LSE, an element. */
struct row {
    const unsigned char *data; /* borrowed */
    int32_t of[AXES];
    int64_t at; /* where in memory it begins, in elements; NOWHERE; SEVERAL: more than one row looks like it */
};

/* In elements. */
struct steps {
    int64_t base, of[AXES];
};

struct lookup {
    const struct trace *t;
    struct row *row; /* owned, [n] */
    size_t n;
    struct row *lost; /* owned, [n_lost]: rows that are nowhere: others were stored over them */
    size_t n_lost;
    int64_t *taken; /* owned, [n]: where found rows are, in ascending order */
    int32_t *table; /* owned, [mask + 1]: 1 + index of a row, by the hash of what it holds */
    size_t mask;
    const unsigned char *memory;
    int64_t total, cols, looked_at; /* of a row's columns, the first so many: the rest may be overwritten */
    size_t element, bytes;          /* of an element, of what is looked at of a row */
    int32_t count[AXES];
    struct steps right;
};

static uint64_t hash(const unsigned char *data, size_t bytes)
{
    uint64_t h = bytes, word;
    for (size_t i = 0; i < bytes; i += sizeof word) {
        word = 0;
        memcpy(&word, data + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 32;
    }
    return h;
}

/* The entry of these bytes, or the free one where they belong. */
static int32_t *entry_of(const struct lookup *l, const unsigned char *data)
{
    for (size_t at = hash(data, l->bytes) & l->mask;; at = (at + 1) & l->mask)
        if (!l->table[at] || memcmp(l->row[l->table[at] - 1].data, data, l->bytes) == 0)
            return &l->table[at];
}

/* What a probe did not come to looks like other rows that none came to. */
static void take_row(struct lookup *l, const unsigned char *data, const int32_t of[AXES])
{
    int32_t *entry = entry_of(l, data);
    struct row *row = &l->row[l->n];
    *row = (struct row){data, {of[BATCH], of[HEAD], of[ROW]}, NOWHERE};
    if (*entry)
        row->at = l->row[*entry - 1].at = SEVERAL;
    else
        *entry = (int32_t)l->n + 1;
    l->n++;
}

static void take_tile(struct lookup *l, const struct tile *tile, const int32_t *place)
{
    for (int r = 0; r < tile->valid_rows; r++)
        take_row(l, (const unsigned char *)tile->data + (size_t)(r * tile->cols) * l->element,
                 (const int32_t[AXES]){place[0], place[1], place[2] * l->t->plan.br + r});
}

/* Vectors that kernels store begin at multiples of eight elements. */
static void look_up(struct lookup *l)
{
    const int64_t step = l->cols % 8 ? 1 : 8;
    for (int64_t at = 0; at + l->looked_at <= l->total; at += step) {
        const int32_t *entry = entry_of(l, l->memory + (size_t)at * l->element);
        struct row *row = *entry ? &l->row[*entry - 1] : NULL;
        if (row)
            row->at = row->at == NOWHERE ? at : SEVERAL;
    }
}

static int by_place(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Rows that are found in one place stay. */
static bool keep_found(struct lookup *l)
{
    size_t n = 0;
    l->lost = calloc(l->n + 1, sizeof *l->lost);
    l->taken = calloc(l->n + 1, sizeof *l->taken);
    if (!l->lost || !l->taken)
        return false;
    for (size_t i = 0; i < l->n; i++) {
        if (l->row[i].at == NOWHERE)
            l->lost[l->n_lost++] = l->row[i];
        if (l->row[i].at < 0)
            continue;
        l->taken[n] = l->row[i].at;
        l->row[n++] = l->row[i];
    }
    l->n = n;
    qsort(l->taken, n, sizeof *l->taken, by_place);
    return true;
}

static int64_t place_of(const struct steps *steps, const int32_t of[AXES])
{
    return steps->base + steps->of[BATCH] * of[BATCH] + steps->of[HEAD] * of[HEAD] + steps->of[ROW] * of[ROW];
}

/* Whose place it is. */
static bool owner_of(const struct lookup *l, int64_t at, int32_t of[AXES])
{
    const bool rows_inside = l->right.of[ROW] < l->right.of[HEAD];
    const int order[AXES] = {BATCH, rows_inside ? HEAD : ROW, rows_inside ? ROW : HEAD};
    for (int i = 0; i < AXES; i++) {
        of[order[i]] = (int32_t)(at / l->right.of[order[i]]);
        at %= l->right.of[order[i]];
    }
    return at == 0;
}

/* Where a row goes: by steps; or where a map along an axis says. */
struct rule {
    struct steps steps;
    int axis; /* -1: there is no map */
    struct map map;
};

/* Whether a row that was found covers this place; of parts also where its other parts would be. */
static bool is_taken(const struct lookup *l, int64_t at)
{
    if (l->looked_at == l->cols)
        return bsearch(&at, l->taken, l->n, sizeof at, by_place) != NULL;
    size_t low = 0;
    for (size_t high = l->n; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (l->taken[middle] <= at - l->cols)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->n && l->taken[low] < at + l->cols;
}

/* A rule that sends lost rows to where no other row came says too little of them. Two blocks that store a row at once
   may leave a mixture: one in four is let pass. */
static bool tells_lost(const struct lookup *l, const struct rule *rule)
{
    size_t told = 0;
    for (size_t i = 0; i < l->n_lost; i++) {
        int32_t of[AXES];
        memcpy(of, l->lost[i].of, sizeof of);
        if (rule->axis >= 0)
            of[rule->axis] = map_at(&rule->map, of[rule->axis]);
        if (rule->axis >= 0 && (of[rule->axis] < 0 || of[rule->axis] >= l->count[rule->axis]))
            continue;
        const int64_t at = place_of(&rule->steps, of);
        told += is_taken(l, at);
    }
    return 4 * told >= 3 * l->n_lost;
}

static bool moved(const struct lookup *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->row[i].at != place_of(&l->right, l->row[i].of))
            return true;
    return false;
}

/* The step along an axis, from two rows that lie behind each other and differ in no axis outside of it. */
static bool find_step(const struct lookup *l, int axis, struct steps *steps)
{
    for (size_t i = 1; i < l->n; i++) {
        const struct row *a = &l->row[i - 1], *b = &l->row[i];
        int64_t by = b->of[axis] - a->of[axis], far = b->at - a->at;
        bool same = by != 0;
        for (int outer = 0; outer < axis; outer++)
            same = same && a->of[outer] == b->of[outer];
        for (int inner = axis + 1; inner < AXES; inner++)
            far -= steps->of[inner] * (b->of[inner] - a->of[inner]);
        if (!same)
            continue;
        steps->of[axis] = far / by;
        return far % by == 0;
    }
    return true; /* the right one is as good as another */
}

static bool find_steps(const struct lookup *l, struct steps *steps)
{
    *steps = l->right;
    for (int axis = AXES - 1; axis >= 0; axis--)
        if (!find_step(l, axis, steps))
            return false;
    steps->base = l->row[0].at - place_of(steps, l->row[0].of);
    for (size_t i = 0; i < l->n; i++)
        if (l->row[i].at != place_of(steps, l->row[i].of))
            return false;
    return tells_lost(l, &(struct rule){*steps, -1, {.kind = MAP_SAME}});
}

/* "heads * head_dim = 128", "72" */
static void step_words(const struct lookup *l, int64_t step, char *out, size_t bytes)
{
    const struct asc_problem *p = &l->t->problem;
    const int64_t heads = p->heads, kv_heads = p->kv_heads, rows = p->q_len, keys = p->kv_len;
    const struct {
        int64_t rows;
        const char *name;
    } known[] = {{1, ""},
                 {heads, "heads"},
                 {rows, "q_len"},
                 {heads * rows, "heads * q_len"},
                 {kv_heads, "kv_heads"},
                 {kv_heads * rows, "kv_heads * q_len"},
                 {keys, "kv_len"},
                 {heads * keys, "heads * kv_len"}};
    const char *name = NULL, *of = l->cols == 1 ? "" : p->head_dim_v == p->head_dim ? "head_dim" : "head_dim_v";
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !name; i++)
        name = known[i].rows * l->cols == step ? known[i].name : NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !name && l->cols > 1; i++)
        if (known[i].rows * p->head_dim == step) { /* as Q's rows lie */
            name = known[i].name;
            of = "head_dim";
        }
    if (name && (name[0] || of[0]))
        snprintf(out, bytes, "%s%s%s = %lld", name, name[0] && of[0] ? " * " : "", of, (long long)step);
    else
        snprintf(out, bytes, "%lld", (long long)step);
}

static bool is_step(const struct lookup *l, const struct steps *steps, int axis)
{
    return l->count[axis] < 2 || steps->of[axis] == l->right.of[axis];
}

/* Steps that are wrong, where one is. */
static bool say_steps(const struct lookup *l, const struct steps *steps, char *out, size_t bytes)
{
    static const char *const names[AXES] = {"batch", "head", "row"};
    const int64_t heads = l->count[HEAD], rows = l->count[ROW], cols = l->cols;
    const bool rows_inside = l->right.of[ROW] < l->right.of[HEAD];
    const int64_t row = rows_inside ? heads * cols : cols, head = rows_inside ? cols : rows * cols;
    char is[64], should[64];
    size_t used = 0;
    if (heads > 1 && rows > 1 && steps->base == 0 && steps->of[ROW] == row && steps->of[HEAD] == head &&
        is_step(l, steps, BATCH)) {
        snprintf(out, bytes, "it is stored as [batch]%s%s", rows_inside ? "[q_len][heads]" : "[heads][q_len]",
                 cols > 1 ? "[head_dim]" : "");
        return true;
    }
    for (int axis = AXES - 1; axis >= 0; axis--) {
        if (is_step(l, steps, axis) || used >= bytes)
            continue;
        step_words(l, steps->of[axis], is, sizeof is);
        step_words(l, l->right.of[axis], should, sizeof should);
        used += (size_t)snprintf(out + used, bytes - used, "%sthe step from %s to %s is %s instead of %s",
                                 used ? ", " : "", names[axis], names[axis], is, should);
    }
    return used > 0;
}

static int by_from(const void *a, const void *b)
{
    return ((const struct pair *)a)->from - ((const struct pair *)b)->from;
}

/* The axis in which alone rows are where others belong; -1: none, or more. *n pairs along it, each once. */
static int moved_axis(const struct lookup *l, struct pair *pairs, size_t *n)
{
    int axis = -1;
    for (size_t i = 0; i < l->n; i++) {
        int32_t to[AXES];
        if (!owner_of(l, l->row[i].at, to))
            return -1;
        for (int a = 0; a < AXES; a++) {
            if (to[a] != l->row[i].of[a] && axis >= 0 && axis != a)
                return -1;
            axis = to[a] != l->row[i].of[a] ? a : axis;
        }
    }
    for (size_t i = 0; i < l->n && axis >= 0; i++) {
        int32_t to[AXES];
        owner_of(l, l->row[i].at, to);
        pairs[i] = (struct pair){l->row[i].of[axis], to[axis]};
    }
    qsort(pairs, axis >= 0 ? l->n : 0, sizeof *pairs, by_from);
    *n = 0;
    for (size_t i = 0; i < l->n && axis >= 0; i++)
        if (*n == 0 || pairs[*n - 1].from != pairs[i].from)
            pairs[(*n)++] = pairs[i];
        else if (pairs[*n - 1].to != pairs[i].to)
            return -1;
    return axis;
}

enum { MOST_PAIRS = 4096 }; /* a fit takes the square of it */

/* A map that all pairs meet and that is not the identity. */
static bool fits(const struct pair *pairs, size_t n, int count, struct map *map)
{
    bool all = map_fit(pairs, n, count, map) < INFINITY && map->kind != MAP_SAME;
    for (size_t i = 0; i < n && all; i++)
        all = map_at(map, pairs[i].from) == pairs[i].to;
    return all;
}

static bool tells_all(const struct lookup *l, int axis, const struct pair *pairs, size_t n, const struct map *map)
{
    bool all = tells_lost(l, &(struct rule){l->right, axis, *map});
    for (size_t i = 0; i < n && all; i++)
        all = map_at(map, pairs[i].from) == pairs[i].to;
    return all;
}

/* The cheapest map of the pairs; where it tells nothing of the lost rows, one by which rows share a place. */
static bool find_map(const struct lookup *l, int axis, const struct pair *pairs, size_t n, struct map *map)
{
    static const enum map_kind kinds[] = {MAP_FIXED, MAP_QUOTIENT, MAP_MODULO};
    if (fits(pairs, n, l->count[axis], map) && tells_all(l, axis, pairs, n, map))
        return true;
    for (int a = 0; a < l->count[axis] && l->n_lost; a++)
        for (size_t k = 0; k < (a < 2 ? 1 : sizeof kinds / sizeof kinds[0]); k++) {
            *map = (struct map){.kind = kinds[k], .a = a};
            if (tells_all(l, axis, pairs, n, map))
                return true;
        }
    return false;
}

/* "head h is stored where head h / 2 belongs" */
static bool say_map(const struct lookup *l, bool of_bits, char *out, size_t bytes)
{
    static const char *const names[AXES][2] = {{"batch", "b"}, {"head", "h"}, {"row", "r"}};
    struct pair *pairs = calloc(l->n + 4, sizeof *pairs); /* room for one pair to stand four times */
    struct map map;
    char where[96];
    size_t n = 0;
    const int axis = pairs ? moved_axis(l, pairs, &n) : -1;
    bool said = axis >= 0 && n <= MOST_PAIRS;
    if (said && n == 1 && !l->n_lost) {
        snprintf(out, bytes, "%s %d is stored where %s %d belongs", names[axis][0], pairs[0].from, names[axis][0],
                 pairs[0].to);
        free(pairs);
        return true;
    }
    for (size_t i = 0; said && n < 4; i++) /* many rows stand behind each */
        pairs[n++] = pairs[i];
    said = said && find_map(l, axis, pairs, n, &map) && (map.kind == MAP_BITS) == of_bits;
    if (said) {
        map_words(&map, names[axis][1], where, sizeof where);
        snprintf(out, bytes, "%s %s is stored where %s %s belongs", names[axis][0], names[axis][1], names[axis][0],
                 where);
    }
    free(pairs);
    return said;
}

enum { NO_COLUMN = -1, MOST_COLUMNS = 512 };

/* Where one element of a row stands that is like no other; NO_COLUMN: there is no such, or it is like another. */
static int column_of(const struct lookup *l, const unsigned char *in, const unsigned char *element)
{
    int found = NO_COLUMN;
    for (int c = 0; c < (int)l->cols; c++)
        if (memcmp(in + (size_t)c * l->element, element, l->element) == 0) {
            if (found >= 0)
                return NO_COLUMN;
            found = c;
        }
    return found;
}

/* Where the columns of a row stand in its own place, in each row the same. */
static bool take_columns(const struct lookup *l, const struct row *row, int *to)
{
    const unsigned char *memory = l->memory + (size_t)place_of(&l->right, row->of) * l->element;
    for (int c = 0; c < (int)l->cols; c++) {
        const unsigned char *element = row->data + (size_t)c * l->element;
        const int at = column_of(l, row->data, element) == c ? column_of(l, memory, element) : NO_COLUMN;
        if (at >= 0 && to[c] >= 0 && to[c] != at)
            return false;
        to[c] = at >= 0 ? at : to[c];
    }
    return true;
}

enum { MOST_ROWS = 256 }; /* that are asked for their columns */

/* "column c is stored in column c ^ 8" */
static bool say_columns(const struct lookup *l, char *out, size_t bytes)
{
    int to[MOST_COLUMNS];
    struct pair pairs[MOST_COLUMNS];
    struct map map;
    char where[96];
    size_t n = 0, rows = 0;
    if (l->cols < 2 || l->cols > MOST_COLUMNS)
        return false;
    for (int c = 0; c < (int)l->cols; c++)
        to[c] = NO_COLUMN;
    for (size_t i = 0; i < l->n && rows < MOST_ROWS; i += 1 + l->n / MOST_ROWS, rows++)
        if (!take_columns(l, &l->row[i], to))
            return false;
    for (int c = 0; c < (int)l->cols; c++)
        if (to[c] >= 0)
            pairs[n++] = (struct pair){c, to[c]};
    if (2 * n < (size_t)l->cols || !fits(pairs, n, (int)l->cols, &map))
        return false;
    map_words(&map, "c", where, sizeof where);
    snprintf(out, bytes, "column c is stored in column %s", where);
    return true;
}

/* Rows of all sequences one behind the other, where each has room for the longest. */
static bool say_packed(const struct lookup *l, char *out, size_t bytes)
{
    const struct asc_problem *p = &l->t->problem;
    bool by_head = p->batch > 1, by_row = by_head;
    int64_t all = 0;
    for (int b = 0; b < p->batch; b++)
        all += asc_q_len(p, b);
    for (size_t i = 0; i < l->n && (by_head || by_row); i++) {
        const int32_t *of = l->row[i].of;
        int64_t row = of[ROW];
        for (int b = 0; b < of[BATCH]; b++)
            row += asc_q_len(p, b);
        by_head = by_head && l->row[i].at == (of[HEAD] * all + row) * l->cols;
        by_row = by_row && l->row[i].at == (row * l->count[HEAD] + of[HEAD]) * l->cols;
    }
    if (by_head || by_row)
        snprintf(out, bytes, "it is stored as %s%s",
                 by_head ? "[heads][rows of all sequences]" : "[rows of all sequences][heads]",
                 l->cols > 1 ? "[head_dim]" : "");
    return by_head || by_row;
}

/* Where the row stands that has this number among those of all sequences, which lie one behind the other. */
static int64_t packed_place(const struct lookup *l, int32_t row, int32_t head)
{
    const struct asc_problem *p = &l->t->problem;
    int32_t of[AXES] = {0, head, row};
    while (of[BATCH] + 1 < p->batch && of[ROW] >= asc_q_len(p, of[BATCH]))
        of[ROW] -= asc_q_len(p, of[BATCH]++);
    return place_of(&l->right, of);
}

/* Every sequence begins where the first one does. */
static bool say_first(const struct lookup *l, char *out, size_t bytes)
{
    const struct asc_problem *p = &l->t->problem;
    size_t told = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->row[i].at != packed_place(l, l->row[i].of[ROW], l->row[i].of[HEAD]))
            return false;
    for (size_t i = 0; i < l->n_lost; i++)
        told += is_taken(l, packed_place(l, l->lost[i].of[ROW], l->lost[i].of[HEAD]));
    if (p->batch < 2 || 4 * told < 3 * l->n_lost)
        return false;
    snprintf(out, bytes, "each sequence is stored from where the first one begins%s",
             l->n_lost ? ": they overwrite each other" : "");
    return true;
}

/* Where a sequence begins whose heads lie its own length apart: where it should; as if all were as long as it; where
   the one before ends. */
enum own_begin { BEGINS_RIGHT, BEGINS_BY_OWN, BEGINS_PACKED, OWN_BEGINS };

static int64_t own_place(const struct lookup *l, enum own_begin begin, const int32_t of[AXES])
{
    const struct asc_problem *p = &l->t->problem;
    const int64_t heads = l->count[HEAD], length = asc_q_len(p, of[BATCH]);
    int64_t rows = begin == BEGINS_RIGHT ? p->q_len * heads * of[BATCH] : length * heads * of[BATCH];
    if (begin == BEGINS_PACKED) {
        rows = 0;
        for (int b = 0; b < of[BATCH]; b++)
            rows += heads * asc_q_len(p, b);
    }
    return (rows + length * of[HEAD] + of[ROW]) * l->cols;
}

static bool own_place_fits(const struct lookup *l, enum own_begin begin)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->row[i].at != own_place(l, begin, l->row[i].of))
            return false;
    for (size_t i = 0; i < l->n_lost; i++)
        if (!is_taken(l, own_place(l, begin, l->lost[i].of)))
            return false;
    return true;
}

/* The heads of each sequence as far from each other as it has rows, where all should be as far as of the longest. */
static bool say_own_length(const struct lookup *l, char *out, size_t bytes)
{
    static const char *const begins[OWN_BEGINS] = {"", ", and that from batch to batch as many times the heads",
                                                   ", and a sequence begins where the one before ends"};
    const struct asc_problem *p = &l->t->problem;
    int shown = 0, found = OWN_BEGINS, n = 0;
    for (int begin = 0; begin < OWN_BEGINS; begin++)
        if (own_place_fits(l, (enum own_begin)begin)) {
            found = begin;
            n++;
        }
    if (!n || l->right.of[HEAD] != p->q_len * l->cols)
        return false;
    while (shown + 1 < p->batch && asc_q_len(p, shown) == p->q_len)
        shown++;
    snprintf(out, bytes,
             "the step from head to head is the length of its own sequence (%d of sequence %d) instead of %d%s",
             asc_q_len(p, shown), shown, p->q_len, n == 1 ? begins[found] : "");
    return true;
}

enum { FEWEST = 4 }; /* rows that are found, for a rule to be more than chance */

static bool say(const struct lookup *l, char *out, size_t bytes)
{
    struct steps steps;
    if (l->n < FEWEST || !moved(l))
        return false;
    const bool affine = find_steps(l, &steps);
    if (l->t->problem.has_q_lens && !affine &&
        (say_packed(l, out, bytes) || say_first(l, out, bytes) || say_own_length(l, out, bytes)))
        return true;
    if (say_map(l, false, out, bytes) || (affine && say_steps(l, &steps, out, bytes)) || say_map(l, true, out, bytes))
        return true;
    if (affine)
        snprintf(out, bytes, "it is stored %lld elements %s", llabs((long long)steps.base),
                 steps.base < 0 ? "too early" : "too late");
    return affine;
}

static int64_t rows_recorded(const struct trace *t, enum asc_channel ch)
{
    int64_t n = 0;
    for (int slot = 0; slot < t->layout.n_slots; slot++)
        n += trace_tile(t, ch, slot, 0).valid_rows;
    return n;
}

static void set_up(struct lookup *l, const struct trace *t, enum asc_channel ch, int part)
{
    const struct asc_problem *p = &t->problem;
    const struct problem_tensor tensor = problem_tensor(p, TENSOR_O);
    const struct asc_strides o = tensor.stride;
    l->t = t;
    l->cols = ch == asc_o ? tensor.cols : 1;
    l->looked_at = l->cols / part;
    l->right = (struct steps){0, {o.batch, o.head, o.row}};
    if (ch == asc_lse)
        l->right = (struct steps){0, {(int64_t)p->heads * p->q_len, p->q_len, 1}};
    l->count[BATCH] = p->batch;
    l->count[HEAD] = p->heads;
    l->count[ROW] = p->q_len;
    l->total = l->right.of[BATCH] * p->batch;
    l->bytes = (size_t)l->looked_at * l->element;
}

/* By the first of so many parts of each row. */
static bool say_by_part(const struct trace *t, enum asc_channel ch, int part, char *out, size_t bytes)
{
    struct lookup l = {0};
    enum dtype dtype = DTYPE_F32;
    const int64_t rows = rows_recorded(t, ch);
    size_t entries = 16;
    l.memory = trace_tensor(t, ch == asc_o ? 'o' : 'L', &dtype);
    l.element = dtype_bytes(dtype);
    if (!l.memory || rows < FEWEST || rows > INT32_MAX / 4 || t->layout.channel[ch].dtype != (int)dtype)
        return false;
    set_up(&l, t, ch, part);
    while (entries < 2 * (size_t)rows)
        entries *= 2;
    l.mask = entries - 1;
    l.row = calloc((size_t)rows, sizeof *l.row);
    l.table = calloc(entries, sizeof *l.table);
    bool said = l.row && l.table;
    for (int slot = 0; slot < t->layout.n_slots && said; slot++) {
        const struct tile tile = trace_tile(t, ch, slot, 0);
        if (tile.data)
            take_tile(&l, &tile, trace_slot_place(t, slot));
    }
    if (said) {
        said = part == 1 && say_columns(&l, out, bytes);
        look_up(&l);
        said = said || (keep_found(&l) && say(&l, out, bytes));
    }
    free(l.row);
    free(l.lost);
    free(l.taken);
    free(l.table);
    return said;
}

bool stored_words(const struct trace *t, enum asc_channel ch, char *out, size_t bytes)
{
    enum { HALVES = 2, QUARTERS = 4 }; /* too short a pitch has each row overwritten by the next */
    return say_by_part(t, ch, 1, out, bytes) ||
           (ch == asc_o && t->problem.head_dim_v % 32 == 0 &&
            (say_by_part(t, ch, HALVES, out, bytes) || say_by_part(t, ch, QUARTERS, out, bytes)));
}
