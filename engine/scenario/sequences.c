/* Sequences of their own lengths, the pages that keys lie in, and what RoPE counts in them. */
#include "engine/scenario/keys_set.h"

#include "engine/trace/layout.h"

#include <stdlib.h>
#include <string.h>

static const enum scenario_key_id lens_keys[2] = {KEY_Q_LENS, KEY_KV_LENS}, len_keys[2] = {KEY_Q_LEN, KEY_KV_LEN};

static int longest(const struct scenario *s, int which)
{
    int most = 1;
    for (int b = 0; b < s->n_lens[which]; b++)
        most = s->lens[which][b] > most ? s->lens[which][b] : most;
    return most;
}

static int settle_lengths(struct scenario *s, int which, const int *line, struct err *err)
{
    struct asc_problem *p = &s->problem;
    int32_t *length = which ? &p->kv_len : &p->q_len;
    char where[WHERE_BYTES];
    if (!s->n_lens[which])
        return 0;
    const bool fixed = scenario_stated(s, KEY_BATCH) || scenario_has_inputs(s) || (which && s->n_lens[0]);
    scenario_where(s, line, lens_keys[which], where, sizeof where);
    if (fixed && s->n_lens[which] != p->batch)
        return err_set(err, ERR_INPUT, where, "expected a length for each of %d sequences, found %d", p->batch,
                       s->n_lens[which]);
    p->batch = s->n_lens[which];
    const int most = longest(s, which);
    int64_t all = 0;
    for (int b = 0; b < s->n_lens[which]; b++)
        all += s->lens[which][b];
    if (!which && !all)
        return err_set(err, ERR_INPUT, where, "expected a query in one of the sequences, found none");
    if (!scenario_stated(s, len_keys[which]) && !scenario_has_inputs(s))
        *length = most;
    if (most > *length)
        return err_set(err, ERR_INPUT, where, "expected lengths up to %s (%d), found %d",
                       scenario_keys[len_keys[which]].name, *length, most);
    return 0;
}

/* Half as many again as are used, and one: whoever reads a page that is not the sequence's own mostly finds NaN. */
static int count_pages(const struct asc_problem *p)
{
    int64_t used = 0;
    for (int b = 0; b < p->batch && p->page_size > 0; b++)
        used += ((int64_t)asc_kv_len(p, b) + p->page_size - 1) / p->page_size;
    const int64_t pages = p->page_size > 0 ? used + used / 2 + 1 : 0;
    return pages > ASC_LENGTH_MAX ? ASC_LENGTH_MAX : (int)pages;
}

/* A problem without RoPE has nothing of it; one that a trace says keeps what that says. */
static int settle_rope(struct scenario *s, const int *line, struct err *err)
{
    static const enum scenario_key_id numbers[] = {KEY_ROPE_DIM, KEY_ROPE_OFFSET, KEY_ROPE_BASE};
    struct asc_problem *p = &s->problem;
    const bool of_trace = s->inputs.from_trace && !scenario_stated(s, KEY_ROPE);
    char where[WHERE_BYTES];
    for (int i = 0; i < 3; i++) {
        if (!scenario_stated(s, numbers[i]))
            continue;
        if (!p->rope && !scenario_stated(s, KEY_ROPE)) {
            scenario_where(s, line, numbers[i], where, sizeof where);
            return err_set(err, ERR_INPUT, where, "expected `rope` beside it, found none");
        }
        key_set_rope_number(s, numbers[i], scenario_said(s, numbers[i])); /* it may have been set aside below */
    }
    if (!p->rope)
        p->rope_dim = 0, p->rope_offset = 0, p->rope_base = 0;
    if (p->rope && !of_trace && !scenario_stated(s, KEY_ROPE_DIM))
        p->rope_dim = p->head_dim;
    if (p->rope && !of_trace && !scenario_stated(s, KEY_ROPE_BASE))
        p->rope_base = 10000;
    scenario_where(s, line, KEY_ROPE, where, sizeof where);
    return problem_check_rope(p, where, err);
}

int scenario_settle_sequences(struct scenario *s, const int *line, struct err *err)
{
    struct asc_problem *p = &s->problem;
    if (settle_lengths(s, 0, line, err) != 0 || settle_lengths(s, 1, line, err) != 0)
        return -1;
    const bool own_keys =
        s->n_lens[1] || scenario_stated(s, KEY_KV_LENS) || scenario_stated(s, KEY_KV_LEN) || scenario_has_inputs(s);
    if (s->n_lens[0] && !own_keys)
        p->kv_len = p->q_len;
    p->q_lens = s->lens[0];
    p->kv_lens = own_keys ? s->lens[1] : s->lens[0];
    p->has_q_lens = p->q_lens != NULL;
    p->has_kv_lens = p->kv_lens != NULL;
    p->pages = count_pages(p);
    return settle_rope(s, line, err);
}

int scenario_copy_sequences(const struct scenario *from, struct scenario *out)
{
    for (int i = 0; i < 2; i++) {
        const size_t bytes = (size_t)from->n_lens[i] * sizeof *from->lens[i];
        out->lens[i] = bytes ? malloc(bytes) : NULL;
        if (bytes && !out->lens[i]) {
            out->n_lens[i] = 0;
            out->problem.q_lens = out->problem.kv_lens = NULL;
            return -1;
        }
        if (bytes)
            memcpy(out->lens[i], from->lens[i], bytes);
    }
    out->problem.q_lens = out->lens[0];
    out->problem.kv_lens = !from->problem.kv_lens ? NULL : out->lens[from->problem.kv_lens == from->lens[1]];
    return 0;
}

/* splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

int32_t *scenario_page_table(const struct scenario *s)
{
    const struct asc_problem *p = &s->problem;
    const int per_sequence = asc_table_pages(p);
    int32_t *table = calloc((size_t)p->batch * (size_t)per_sequence + 1, sizeof *table);
    int32_t *order = calloc((size_t)p->pages + 1, sizeof *order);
    uint64_t state = s->fill_k.seed;
    int taken = 0;
    if (table && order) {
        for (int i = 0; i < p->pages; i++)
            order[i] = i;
        for (int i = p->pages - 1; i > 0; i--) { /* Fisher and Yates */
            const int other = (int)(next_random(&state) % (uint64_t)(i + 1));
            const int32_t page = order[i];
            order[i] = order[other];
            order[other] = page;
        }
        for (int b = 0; b < p->batch; b++)
            for (int i = 0; i < per_sequence; i++)
                table[b * per_sequence + i] =
                    (int64_t)i * p->page_size < asc_kv_len(p, b) ? order[taken++] : order[p->pages - 1];
    } else {
        free(table);
        table = NULL;
    }
    free(order);
    return table;
}
