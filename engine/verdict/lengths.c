#include "engine/verdict/lengths.h"

#include "engine/oracle/schedule.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS_LOOKED_AT = 96, ALTERNATIVES = 3 };

/* LENGTHS(id, end of the keys, queries and keys that the diagonal goes by, number of the words, words): b is the batch,
   B the one before. The words have q_len of the longest sequence for a second number. */
#define LENGTHS_LIST                                                                                                   \
    LENGTHS(KEYS_OF_LONGEST, p->kv_len, q(b), p->kv_len, p->kv_len, "the kv_len of the longest sequence, %d")          \
    LENGTHS(BOTH_OF_LONGEST, p->kv_len, p->q_len, p->kv_len, p->kv_len,                                                \
            "kv_len and q_len of the longest sequences, %d and %d")                                                    \
    LENGTHS(DIAGONAL_OF_LONGEST, k(b), p->q_len, p->kv_len, p->kv_len,                                                 \
            "its diagonal by kv_len and q_len of the longest sequences, %d and %d")                                    \
    LENGTHS(DIAGONAL_OF_LONGEST_KEYS, k(b), q(b), p->kv_len, p->kv_len,                                                \
            "its diagonal by the kv_len of the longest sequence, %d")                                                  \
    LENGTHS(DIAGONAL_OF_LONGEST_QUERIES, k(b), p->q_len, k(b), p->q_len,                                               \
            "its diagonal by the q_len of the longest sequence, %d")                                                   \
    LENGTHS(KEYS_BEFORE, k(B), q(b), k(B), 0, "the kv_len of the sequence before")                                     \
    LENGTHS(BOTH_BEFORE, k(B), q(B), k(B), 0, "kv_len and q_len of the sequence before")                               \
    LENGTHS(KEYS_OF_FIRST, k(0), q(b), k(0), 0, "the kv_len of sequence 0")                                            \
    LENGTHS(QUERIES_FOR_KEYS, q(b), q(b), q(b), 0, "the q_len of the sequence in the place of its kv_len")             \
    LENGTHS(OLD_KEYS, asc_cache_len(p, b), q(b), k(b), 0,                                                              \
            "the keys that were in the cache before the launch, without the new ones")                                 \
    LENGTHS(OLD_LENGTHS, asc_cache_len(p, b), q(b), asc_cache_len(p, b), 0,                                            \
            "the number of keys that were in the cache before the launch, in the place of kv_len")                     \
    LENGTHS(OLD_DIAGONAL, k(b), q(b), asc_cache_len(p, b), 0,                                                          \
            "its diagonal by the number of keys that were in the cache before the launch")                             \
    LENGTHS(WHOLE_PAGES, pages(k(b)), q(b), k(b), p->page_size,                                                        \
            "the end of its last page, kv_len rounded up to a multiple of %d")                                         \
    LENGTHS(WHOLE_PAGES_DIAGONAL, pages(k(b)), q(b), pages(k(b)), p->page_size,                                        \
            "kv_len rounded up to whole pages, a multiple of %d, by which its diagonal goes too")                      \
    LENGTHS(LAST_PAGE_LEFT, k(b) / page * page, q(b), k(b), p->page_size,                                              \
            "the end of its last whole page, kv_len rounded down to a multiple of %d")                                 \
    LENGTHS(CORNER_TURNED, k(b), k(b), q(b), 0, "its diagonal by q_len - kv_len, in the place of kv_len - q_len")      \
    LENGTHS(CORNER_NOT_BELOW, k(b), q(b), k(b) > q(b) ? k(b) : q(b), 0,                                                \
            "its diagonal by kv_len - q_len where that is above 0, and by 0 else")                                     \
    LENGTHS(CORNER_NOT_ABOVE, k(b), q(b), k(b) < q(b) ? k(b) : q(b), 0,                                                \
            "its diagonal by kv_len - q_len where that is below 0, and by 0 else")                                     \
    LENGTHS(CORNER_APART, k(b), q(b), k(b) > q(b) ? k(b) : 2 * q(b) - k(b), 0,                                         \
            "its diagonal by how far kv_len and q_len are apart, whichever is the larger")                             \
    LENGTHS(KEY_MORE, k(b) + 1, q(b), k(b) + 1, 0, "kv_len + 1")                                                       \
    LENGTHS(KEY_LESS, k(b) - 1, q(b), k(b) - 1, 0, "kv_len - 1")                                                       \
    LENGTHS(NO_END, INT32_MAX, q(b), k(b), 0, "none, what lies behind a sequence is seen")

enum lengths {
#define LENGTHS(id, end, queries, keys, number, words) id,
    LENGTHS_LIST
#undef LENGTHS
        LENGTHS_COUNT
};

static const char *const words[LENGTHS_COUNT] = {
#define LENGTHS(id, end, queries, keys, number, words) [id] = (words),
    LENGTHS_LIST
#undef LENGTHS
};

#define q(batch) asc_q_len(p, batch)
#define k(batch) asc_kv_len(p, batch)
#define pages(keys) (((keys) + page - 1) / page * page)

/* The key behind the last one that a query of the sequence sees. */
static int64_t end_by(const struct asc_problem *p, enum lengths by, int b, int64_t query)
{
    const int B = b > 0 ? b - 1 : 0;
    const int64_t page = p->page_size > 0 ? p->page_size : 1;
    int64_t end = 0, diagonal = query;
    switch (by) {
#define LENGTHS(id, end_of_keys, queries, keys, number, words)                                                         \
    case id:                                                                                                           \
        end = end_of_keys;                                                                                             \
        diagonal = p->causal == ASC_CAUSAL_TOP_LEFT ? query : query + (keys) - (queries);                              \
        break;
        LENGTHS_LIST
#undef LENGTHS
    case LENGTHS_COUNT:
        break;
    }
    if (p->causal != ASC_CAUSAL_NONE && diagonal + 1 < end)
        end = diagonal + 1;
    return end > 0 ? end : 0;
}

/* The number that a candidate's words have first. */
static int number_of(const struct asc_problem *p, enum lengths by)
{
    const int number[LENGTHS_COUNT] = {
#define LENGTHS(id, end, queries, keys, number, words) [id] = (number),
        LENGTHS_LIST
#undef LENGTHS
    };
    return number[by];
}
#undef q
#undef k
#undef pages

static bool row_is_written(const struct matrix *m, int row)
{
    for (int col = 0; m->data && row < m->rows && col < m->cols; col++)
        if (!dtype_is_unwritten(m->dtype, m->data, (size_t)row * (size_t)m->row_stride + (size_t)col))
            return true;
    return false;
}

/* How many of the first columns of a row are seen; -1: others are, behind one that is not. */
static int seen_in(const struct matrix *m, int row)
{
    int n = 0, last = 0;
    for (int col = 0; m->data && row < m->rows && col < m->cols; col++) {
        const size_t at = (size_t)row * (size_t)m->row_stride + (size_t)col;
        const bool sees = !dtype_is_unwritten(m->dtype, m->data, at) && dtype_load(m->dtype, m->data, at) != -INFINITY;
        n += sees;
        last = sees ? col + 1 : last;
    }
    return n == last ? n : -1;
}

/* What one slot says against the candidates; *differs: of how many keys a row of it is wrong. */
static void look(const struct trace *t, const struct slot_case *c, const int32_t *at, bool against[LENGTHS_COUNT],
                 uint64_t *differs)
{
    const struct asc_problem *p = &t->problem;
    const int tiles = t->layout.kv_tiles, bc = t->plan.bc;
    for (int row = 0; row < c->c.in_q.rows; row++) {
        int64_t end = 0, visited = 0;
        bool odd = false;
        for (int kv = 0; kv < tiles; kv++) {
            const int own = seen_in(&c->captured[kv * ASC_CHANNELS + asc_s], row);
            const int cols = c->captured[kv * ASC_CHANNELS + asc_s].cols, behind = seen_in(&c->c.s_padding[kv], row);
            if (!row_is_written(&c->captured[kv * ASC_CHANNELS + asc_s], row) &&
                !row_is_written(&c->c.s_padding[kv], row)) /* of a run that ended early, or left out */
                continue;
            odd = odd || own < 0 || behind < 0 || (behind > 0 && own < cols) ||
                  (own + behind > 0 && end < (int64_t)kv * bc);
            end = own + behind > 0 ? (int64_t)kv * bc + own + behind : end;
            visited = (int64_t)(kv + 1) * bc;
        }
        const int64_t wanted = schedule_range(&c->c, row).last;
        *differs += (uint64_t)(end > wanted ? end - wanted : wanted - end);
        for (int i = 0; i < LENGTHS_COUNT; i++) {
            const int64_t by = end_by(p, (enum lengths)i, at[0], (int64_t)at[2] * t->plan.br + row);
            against[i] = against[i] || odd || (by < visited ? by : visited) != end;
        }
    }
}

/* Without a diagonal the end of the keys is all that tells two of them. */
static bool same_ends(const struct asc_problem *p, enum lengths one, enum lengths other)
{
    for (int b = 0; b < p->batch; b++)
        if (end_by(p, one, b, 0) != end_by(p, other, b, 0))
            return false;
    return true;
}

int lengths_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char *out)
{
    const struct asc_problem *p = &t->problem;
    bool against[LENGTHS_COUNT] = {false};
    uint64_t bad = 0, differs = 0;
    const int n = j->n_slots < SLOTS_LOOKED_AT ? j->n_slots : SLOTS_LOOKED_AT;
    out[0] = '\0';
    if ((!p->kv_lens && !p->q_lens && !p->new_keys && !p->page_size) ||
        t->conventions.s_masked != ASC_MASKED_INFINITE || p->window_left >= 0 || p->window_right >= 0)
        return 0;
    for (int i = 0; i < n; i++) {
        const int slot = (int)((int64_t)i * j->n_slots / n);
        struct slot_case c;
        if (!judgement_slot_done(j, slot))
            continue;
        if (slot_case_make(t, slot, &c) != 0)
            return -1;
        look(t, &c, trace_slot_place(t, slot), against, &differs);
        slot_case_free(&c);
        for (int kv = 0; kv < j->kv_tiles; kv++)
            bad += judgement_count(j, (struct place){slot, kv, ch}, false).bad;
    }
    size_t used = 0;
    int held = 0;
    for (int i = 0; i < LENGTHS_COUNT; i++) {
        for (int k = 0; k < i && !against[i]; k++)
            against[i] = !against[k] && p->causal == ASC_CAUSAL_NONE && same_ends(p, (enum lengths)i, (enum lengths)k);
        held += !against[i];
    }
    for (int i = 0; i < LENGTHS_COUNT && bad && bad <= differs && held <= ALTERNATIVES && used < LENGTHS_BYTES; i++) {
        if (against[i])
            continue;
        used += (size_t)snprintf(out + used, LENGTHS_BYTES - used, "%s", used ? ", or " : "");
        if (used < LENGTHS_BYTES) /* NOLINTNEXTLINE(*-format-nonliteral): the list above */
            used +=
                (size_t)snprintf(out + used, LENGTHS_BYTES - used, words[i], number_of(p, (enum lengths)i), p->q_len);
    }
    return 0;
}
