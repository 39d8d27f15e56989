#include "engine/verdict/addresses.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include "engine/trace/rope.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SLOTS_FITTED = 16, SLOTS_CHECKED = 96 };

static bool holds_codes(const struct asc_problem *p, enum asc_channel ch)
{
    return dtype_is_code((enum dtype)(ch == asc_q ? p->dtype : ch == asc_k ? p->k_dtype : p->v_dtype));
}

static int memory_make(const struct trace *t, enum asc_channel ch, struct memory *m)
{
    const struct asc_problem *p = &t->problem;
    *m = (struct memory){.t = t, .p = p, .ch = ch, .coded = holds_codes(p, ch)};
    m->heads = m->ch == asc_q ? p->heads : p->kv_heads;
    m->rows = m->ch == asc_q ? p->q_len : p->kv_len;
    m->paged = m->ch != asc_q && p->page_size > 0;
    m->table_pages = asc_table_pages(p);
    m->turned = p->rope && ch != asc_v;
    m->begin = calloc((size_t)p->batch + 1, sizeof *m->begin);
    m->row = malloc((size_t)p->head_dim * sizeof *m->row);
    if (!m->begin || !m->row || case_sources(t, &m->all) != 0)
        return -1;
    for (int b = 0; b < p->batch; b++)
        m->begin[b + 1] = m->begin[b] + memory_length(m, b);
    m->n = m->paged ? (int64_t)p->pages * p->page_size : m->begin[p->batch];
    m->owner = malloc((size_t)(m->n + 1) * sizeof *m->owner);
    if (!m->owner)
        return -1;
    memset(m->owner, 0xFF, (size_t)m->n * sizeof *m->owner);
    for (int b = 0; b < p->batch; b++)
        for (int64_t row = 0; row < memory_length(m, b); row++)
            m->owner[memory_place(m, b, row)] = (int64_t)b * m->rows + row;
    return 0;
}

static void memory_free(struct memory *m)
{
    free(m->owner);
    free(m->begin);
    free(m->row);
    case_sources_free(&m->all);
}

/* A head of the sequence whose row it is. */
static const struct source *head_at(const struct memory *m, int head, int64_t owner)
{
    const int others[] = {0, m->p->heads, m->p->heads + m->p->kv_heads}, before = m->p->batch * others[m->ch];
    return &m->all.sources[before + (int)(owner / m->rows) * m->heads + head];
}

/* As it lies there, not as RoPE turns it. */
static struct matrix row_at(const struct memory *m, int head, int64_t owner)
{
    const struct problem_tensor of = problem_tensor(m->p, (enum problem_tensor_id)m->ch);
    struct matrix row = {.rows = 1, .cols = of.cols};
    const unsigned char *data = trace_tensor(m->t, "qkv"[m->ch], &row.dtype);
    row.data = data + (size_t)problem_tensor_at(&of, owner / m->rows, head, owner % m->rows) * dtype_bytes(row.dtype);
    return row;
}

static double element(const struct matrix *m, int row, int col)
{
    const size_t at = (size_t)row * (size_t)m->row_stride + (size_t)col;
    return dtype_is_code(m->dtype) ? values_code(m->dtype, ((const uint8_t *)m->data)[at])
                                   : dtype_load(m->dtype, m->data, at);
}

/* Of a row that may have been turned its length, whose bits are in order as numbers are; of codes their signs, which
   scales leave as they are. */
static uint64_t hash_of(const struct memory *of, const struct matrix *m, int row)
{
    uint64_t hash = 0;
    double length = 0;
    for (int col = 0; col < m->cols && of->turned; col++)
        length += element(m, row, col) * element(m, row, col);
    if (of->turned) {
        memcpy(&hash, &length, sizeof hash);
        return hash;
    }
    for (int col = 0; col < m->cols; col++) {
        const double x = element(m, row, col), value = of->coded ? (x > 0) - (x < 0) : x + 0.0;
        hash = XXH3_64bits_withSeed(&value, sizeof value, hash);
    }
    return hash;
}

static bool is_nan_row(const struct matrix *m, int row)
{
    for (int col = 0; col < m->cols; col++)
        if (!isnan(element(m, row, col)))
            return false;
    return true;
}

/* Whether the row, used at `position`, is that other one, turned so and rounded. */
static bool same_turned(const struct memory *of, const struct matrix *m, int row, const struct matrix *other,
                        int position)
{
    const struct rope rope = {of->p->rope, of->p->rope_dim, (double)of->p->rope_base};
    double unit = 0, half_tiny = 0, most = 0;
    for (int col = 0; col < m->cols; col++) {
        of->row[col] = dtype_load(other->dtype, other->data, (size_t)col);
        most = fmax(most, fabs(of->row[col]));
    }
    rope_row(&rope, position, of->row);
    bound_narrow(m->dtype, &unit, &half_tiny);
    const double off = (16 * BOUND_U + 2 * (double)of->t->conventions.rope_error) * most + 2 * half_tiny;
    for (int col = 0; col < m->cols; col++) {
        const double got = element(m, row, col);
        if (!(fabs(got - of->row[col]) <= 2 * unit * fabs(of->row[col]) + off))
            return false;
    }
    return true;
}

static int position_of(const struct memory *m, int batch, int64_t row)
{
    return m->ch == asc_q ? asc_query_position(m->p, batch, (int)row) : m->p->rope_offset + (int)row;
}

/* By which position a row is turned that is used as `place` and belongs to `owner`: those of a cache lie there turned.
 */
static int position_used(const struct memory *m, const struct sight *place, int64_t owner)
{
    const int batch = (int)(owner / m->rows), row = (int)(owner % m->rows);
    return m->ch == asc_k && m->p->new_keys ? position_of(m, batch, row) : position_of(m, place->batch, place->row);
}

/* Whether it is codes, or what they become by the scales of row `scaled`, rounded once in f32 and once to the type that
   it was captured in. */
static bool same_codes(const struct matrix *m, int row, const struct matrix *codes, const struct coding *coding,
                       int scaled)
{
    double unit = 0, half_tiny = 0;
    bound_narrow(m->dtype, &unit, &half_tiny);
    for (int col = 0; col < m->cols; col++) {
        const double code = element(codes, 0, col), want = coding ? code * codes_scale(coding, scaled, col) : code;
        const double off = coding ? (unit + 4 * BOUND_U) * fabs(want) + half_tiny : 0;
        if (!(fabs(element(m, row, col) - want) <= off))
            return false;
    }
    return true;
}

/* Row `row` of a tile, which is `place` of its sequence, and one of memory, of a head. c: the tile's case. */
static bool same_row(const struct memory *of, const struct oracle_case *c, const struct matrix *m, int row,
                     const struct sight *place, int head, int64_t owner)
{
    const struct matrix other = row_at(of, head, owner);
    if (of->turned)
        return same_turned(of, m, row, &other, position_used(of, place, owner));
    if (of->coded && codes_use(c, of->ch) == CODES_RAW)
        return same_codes(m, row, &other, NULL, 0);
    if (of->coded) {
        const struct source *own = head_at(of, head, (int64_t)place->batch * of->rows);
        return same_codes(m, row, &other, &own->coding, place->row) ||
               same_codes(m, row, &other, &head_at(of, head, owner)->coding, (int)(owner % of->rows));
    }
    for (int col = 0; col < m->cols; col++)
        if (element(m, row, col) != element(&other, 0, col))
            return false;
    return true;
}

/* All rows of one head, by hash. */
struct row_entry {
    uint64_t hash;
    int64_t at;
};

static int by_hash(const void *a, const void *b)
{
    const struct row_entry *x = a, *y = b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

static struct row_entry *index_head(const struct memory *m, int head, size_t *n)
{
    struct row_entry *all = malloc((size_t)(m->n + 1) * sizeof *all);
    *n = 0;
    for (int64_t at = 0; all && at < m->n; at++)
        if (m->owner[at] >= 0) {
            const struct matrix row = row_at(m, head, m->owner[at]);
            all[(*n)++] = (struct row_entry){hash_of(m, &row, 0), at};
        }
    if (all)
        qsort(all, *n, sizeof *all, by_hash);
    return all;
}

static size_t lower_bound(const struct row_entry *all, size_t n, uint64_t hash)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (all[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* As find_row(), of a turned row: of those of its length, to 2^-6 of it (of bf16 each element is off by 2^-8). */
static int64_t find_turned(const struct memory *m, const struct row_entry *all, size_t n, const struct matrix *tile,
                           int r, int head, const struct sight *place)
{
    const uint64_t hash = hash_of(m, tile, r);
    double length, least, most;
    uint64_t first, last;
    int64_t found = -1;
    memcpy(&length, &hash, sizeof length);
    least = length * (1 - 0x1p-6);
    most = length * (1 + 0x1p-6);
    memcpy(&first, &least, sizeof first);
    memcpy(&last, &most, sizeof last);
    for (size_t i = isfinite(length) ? lower_bound(all, n, first) : n; i < n && all[i].hash <= last; i++) {
        const struct matrix row = row_at(m, head, m->owner[all[i].at]);
        if (!same_turned(m, tile, r, &row, position_used(m, place, m->owner[all[i].at])))
            continue;
        if (found >= 0)
            return -1;
        found = all[i].at;
    }
    return found;
}

/* Where the content of row r of a tile, which is `place` of its sequence, lies; -1: nowhere, or at several places. */
static int64_t find_row(const struct memory *m, const struct row_entry *all, size_t n, const struct matrix *tile, int r,
                        int head, const struct sight *place)
{
    if (m->turned)
        return find_turned(m, all, n, tile, r, head, place);
    const uint64_t hash = hash_of(m, tile, r);
    const size_t low = lower_bound(all, n, hash);
    return low < n && all[low].hash == hash && (low + 1 == n || all[low + 1].hash != hash) ? all[low].at : -1;
}

static int kv_head_of(const struct memory *m, const int32_t *place)
{
    return m->ch == asc_q ? place[1] : asc_kv_head(m->p, place[1], m->t->conventions.kv_head_map);
}

/* Tile kv of a slot's channel, and which row of the sequence its first one is. */
static struct matrix tile_of(const struct memory *m, const struct slot_case *c, enum asc_channel ch, const int32_t *at,
                             int kv, int *first)
{
    *first = ch == asc_q ? at[2] * m->t->plan.br : kv * m->t->plan.bc;
    return c->captured[kv * ASC_CHANNELS + ch];
}

static bool slot_is_bad(const struct judgement *j, enum asc_channel ch, int slot)
{
    for (int kv = 0; kv < (channel_per_kv(ch) ? j->kv_tiles : 1); kv++)
        if (judgement_tile_bad(j, (struct place){slot, kv, ch}, false))
            return true;
    return false;
}

struct looking {
    const struct judgement *j;
    const struct memory *m;
    enum asc_channel ch;
    struct row_entry *all; /* owned */
    size_t n_all;
    struct sight *sights; /* owned */
    size_t n;
    int head;   /* -1: not known yet */
    bool *seen; /* owned, [batch] */
};

static bool is_visited(const struct memory *m, enum asc_channel ch, int slot, int kv)
{
    return trace_first_stamp(m->t, ch, slot, kv) != 0;
}

static int look_at(struct looking *l, int slot)
{
    const struct memory *m = l->m;
    const int32_t *at = trace_slot_place(m->t, slot);
    struct slot_case c;
    if (slot_case_make(m->t, slot, &c) != 0)
        return -1;
    for (int kv = 0; kv < (channel_per_kv(l->ch) ? l->j->kv_tiles : 1); kv++) {
        int first;
        const struct matrix tile = tile_of(m, &c, l->ch, at, kv, &first);
        for (int r = 0; tile.data && is_visited(m, l->ch, slot, kv) && r < tile.rows; r++) {
            struct sight *s = &l->sights[l->n++];
            *s = (struct sight){at[0], first + r, -1};
            s->at = find_row(m, l->all, l->n_all, &tile, r, l->head, s);
        }
    }
    slot_case_free(&c);
    return 0;
}

/* Slots of the first bad one's head that are bad, of all sequences; or one of each sequence that has none. */
static int look_through(struct looking *l, bool bad, int *taken)
{
    int batch = -1, of_batch = 0, failed = 0;
    for (int slot = 0; slot < l->j->n_slots && *taken < SLOTS_FITTED && !failed; slot++) {
        const int32_t *at = trace_slot_place(l->m->t, slot);
        if (!judgement_slot_done(l->j, slot) || (l->head >= 0 && kv_head_of(l->m, at) != l->head) ||
            slot_is_bad(l->j, l->ch, slot) != bad || (!bad && l->seen[at[0]]))
            continue;
        of_batch = at[0] == batch ? of_batch + 1 : 0;
        batch = at[0];
        if (of_batch >= 2) /* others may be read otherwise */
            continue;
        if (l->head < 0) {
            l->head = kv_head_of(l->m, at);
            l->all = index_head(l->m, l->head, &l->n_all);
        }
        l->seen[batch] = true;
        failed = l->all ? look_at(l, slot) : -1;
        ++*taken;
    }
    return failed;
}

/* The caller's. NULL: memory ran out. */
static struct sight *look(const struct judgement *j, const struct memory *m, enum asc_channel ch, size_t *n)
{
    const size_t tiles = channel_per_kv(ch) ? (size_t)j->kv_tiles : 1;
    const size_t tile_rows = (size_t)(ch == asc_q ? m->t->plan.br : m->t->plan.bc);
    struct looking l = {.j = j, .m = m, .ch = ch, .head = -1};
    int taken = 0;
    l.sights = malloc(SLOTS_FITTED * tiles * tile_rows * sizeof *l.sights);
    l.seen = calloc((size_t)m->p->batch, sizeof *l.seen);
    int failed = l.sights && l.seen ? look_through(&l, true, &taken) : -1;
    if (!failed && l.head >= 0)
        failed = look_through(&l, false, &taken);
    free(l.all);
    free(l.seen);
    *n = l.n;
    if (!failed)
        return l.sights;
    free(l.sights);
    return NULL;
}

/* Whether all rows of a slot are those that the rule reads: of an unused page, NaN. */
static int check_slot(const struct memory *m, const struct address *a, enum asc_channel ch, int slot, bool *holds)
{
    const int32_t *at = trace_slot_place(m->t, slot);
    struct slot_case c;
    if (slot_case_make(m->t, slot, &c) != 0)
        return -1;
    for (int kv = 0; kv < (channel_per_kv(ch) ? m->t->layout.kv_tiles : 1) && *holds; kv++) {
        int first;
        const struct matrix tile = tile_of(m, &c, ch, at, kv, &first);
        for (int r = 0; tile.data && is_visited(m, ch, slot, kv) && r < tile.rows && *holds; r++) {
            const int64_t from = address_reads(m, a, at[0], first + r);
            if (from < 0)
                continue;
            if (m->owner[from] < 0) {
                *holds = is_nan_row(&tile, r);
            } else {
                const struct sight place = {at[0], first + r, from};
                *holds = same_row(m, &c.c, &tile, r, &place, kv_head_of(m, at), m->owner[from]);
            }
        }
    }
    slot_case_free(&c);
    return 0;
}

static int check(const struct judgement *j, const struct memory *m, const struct address *a, enum asc_channel ch,
                 bool *holds)
{
    const int n = j->n_slots < SLOTS_CHECKED ? j->n_slots : SLOTS_CHECKED;
    int failed = 0;
    for (int i = 0; i < n && *holds && !failed; i++) {
        const int slot = (int)((int64_t)i * j->n_slots / n);
        if (judgement_slot_done(j, slot))
            failed = check_slot(m, a, ch, slot, holds);
    }
    return failed;
}

/* The first rule that holds, simple ones first. */
static int find_rule(const struct judgement *j, const struct memory *m, enum asc_channel ch, const struct sight *sights,
                     size_t n, char out[ADDRESS_BYTES])
{
    const int rows[] = {m->t->plan.bc, m->p->page_size * 2, m->p->page_size / 2,
                        m->t->plan.br, m->p->page_size * 4, 16};
    for (int rule = m->paged ? TABLE_OWN : BEGIN_NEXT; rule <= (m->paged ? ROW_MODULO : BEGIN_STEPS); rule++) {
        const bool of_rows = rule == PAGE_ROWS || rule == ENTRY_ROWS || rule == ROW_MODULO;
        for (size_t i = 0; i < (of_rows ? sizeof rows / sizeof *rows : 1); i++) {
            struct address a = {.rule = (enum reading)rule, .rows = of_rows ? rows[i] : 1};
            const bool solved = rule == TABLE_AT || rule == PAGE_NUMBER || rule == BEGIN_STEPS;
            bool holds = a.rows > 0 && (!solved || address_solve(m, sights, n, &a)) && address_fits(m, &a, sights, n);
            if (holds && check(j, m, &a, ch, &holds) != 0)
                return -1;
            if (holds) {
                address_say(m, &a, out);
                return 0;
            }
        }
    }
    return 0;
}

int addresses_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char out[ADDRESS_BYTES])
{
    const struct asc_problem *p = &t->problem;
    const bool paged = ch != asc_q && p->page_size > 0;
    struct memory m = {0};
    size_t n = 0;
    out[0] = '\0';
    if (ch > asc_v || (!paged && p->layout != ASC_THD) || (holds_codes(p, ch) && p->rope && ch != asc_v))
        return 0;
    struct sight *sights = memory_make(t, ch, &m) == 0 ? look(j, &m, ch, &n) : NULL;
    const int failed = sights ? find_rule(j, &m, ch, sights, n, out) : -1;
    free(sights);
    memory_free(&m);
    return failed;
}
