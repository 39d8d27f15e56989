/* What the oracle names for a run of the test kernel: the same steps as a session takes. */
#ifndef TEST_CAUSE_OUTCOME_H
#define TEST_CAUSE_OUTCOME_H

#include "engine/oracle/causes/causes.h"
#include "engine/oracle/search/search.h"
#include "engine/trace/layout.h"
#include "tests/unit/oracle/cause_kernel.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* What every mistake is tried on: square and oblong tiles, tails, both causal corners, every unit. */
static const struct spec shapes[] = {
    {.q_len = 64, .kv_len = 96, .head_dim = 32, .br = 32, .bc = 32, .p_dtype = DTYPE_F32, .unit = ASC_UNIT_SCALED},
    {.q_len = 50, .kv_len = 141, .head_dim = 32, .br = 16, .bc = 64, .p_dtype = DTYPE_F32, .backward = 1},
    {.q_len = 96,
     .kv_len = 96,
     .head_dim = 32,
     .br = 16,
     .bc = 32,
     .p_dtype = DTYPE_F32,
     .unit = ASC_UNIT_LOG2,
     .causal = ASC_CAUSAL_TOP_LEFT},
    {.q_len = 64,
     .kv_len = 110,
     .head_dim = 48,
     .br = 32,
     .bc = 32,
     .p_dtype = DTYPE_F32,
     .unit = ASC_UNIT_SCALED,
     .causal = ASC_CAUSAL_BOTTOM_RIGHT},
    {.q_len = 100,
     .kv_len = 58,
     .head_dim = 16,
     .br = 32,
     .bc = 16,
     .p_dtype = DTYPE_F32,
     .unit = ASC_UNIT_SCALED,
     .causal = ASC_CAUSAL_BOTTOM_RIGHT},
    {.q_len = 60,
     .kv_len = 90,
     .head_dim = 40,
     .br = 32,
     .bc = 16,
     .p_dtype = DTYPE_F32,
     .causal = ASC_CAUSAL_TOP_LEFT},
    {.q_len = 64, .kv_len = 128, .head_dim = 64, .br = 32, .bc = 64, .p_dtype = DTYPE_F16, .unit = ASC_UNIT_LOG2},
    {.q_len = 128,
     .kv_len = 128,
     .head_dim = 16,
     .br = 64,
     .bc = 32,
     .p_dtype = DTYPE_F32,
     .unit = ASC_UNIT_SCALED,
     .causal = ASC_CAUSAL_TOP_LEFT,
     .backward = 1,
     .skips_masked = 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

enum { Q_HEAD = 0, Q_HEADS = 2 };

/* All that the run of the test kernel was given: two heads of Q, and kv heads. */
static inline struct source *list_sources(const struct run *run)
{
    const struct spec *s = &run->spec;
    struct source *list = calloc(Q_HEADS + 2 * KV_HEADS, sizeof *list);
    assert_non_null(list);
    for (int i = 0; i < Q_HEADS; i++) {
        const size_t at = (size_t)i * (size_t)s->q_len * (size_t)s->head_dim;
        list[i] = (struct source){asc_q, Q_HEAD + i, {run->q + at, DTYPE_F16, s->head_dim, s->q_len, s->head_dim}, {0}};
    }
    for (int head = 0; head < KV_HEADS; head++) {
        const size_t at = (size_t)head * (size_t)s->kv_len * (size_t)s->head_dim;
        list[Q_HEADS + head] =
            (struct source){asc_k, head, {run->k + at, DTYPE_F16, s->head_dim, s->kv_len, s->head_dim}, {0}};
        list[Q_HEADS + KV_HEADS + head] =
            (struct source){asc_v, head, {run->v + at, DTYPE_F16, s->head_dim, s->kv_len, s->head_dim}, {0}};
    }
    return list;
}

static inline struct search_inputs run_inputs(const struct source *sources)
{
    return (struct search_inputs){sources, Q_HEADS + 2 * KV_HEADS, Q_HEADS, KV_HEADS, NULL};
}

/* All slots of one stage. */
static inline void take_sample(struct run *run, enum asc_channel ch, struct judge_scratch *scratch,
                               struct sample *sample)
{
    const int tiles = (run->spec.kv_len - 1) / run->spec.bc + 1;
    bool *wanted = calloc((size_t)tiles, sizeof *wanted);
    assert_non_null(wanted);
    sample_begin(sample, ch);
    for (int kv = 0; kv < tiles; kv++)
        wanted[kv] = channel_per_kv(ch) || kv == 0;
    for (int slot = 0; slot < run->n_slots; slot++) {
        const struct sample_place place = {{0, Q_HEAD, slot}, OWN_HEAD};
        assert_int_equal(sample_add(sample, &run->slots[slot].c, &place, wanted, scratch), 0);
    }
    free(wanted);
}

/* The name of the rule that the search finds for a stage. */
static inline enum cause search_name(struct run *run, enum asc_channel ch, struct judge_scratch *scratch)
{
    struct explanation found;
    struct sample sample;
    struct source *sources = list_sources(run);
    const struct search_inputs inputs = run_inputs(sources);
    take_sample(run, ch, scratch, &sample);
    assert_int_equal(search_stage(&sample, scratch, &inputs, NULL, &found), 0);
    assert_int_equal(search_rest(&sample, scratch, &inputs, &found), 0);
    if (getenv("ATTNSCOPE_TEST_TELL"))
        printf("# %s: %s\n", cause_name(found.cause), found.text);
    sample_free(&sample);
    free(sources);
    return found.cause;
}

struct outcome {
    unsigned culprits; /* set of 1u << channel */
    char named[CAUSE_COUNT];
    struct cause_plan plan;
    struct cause_evidence evidence[CAUSE_COUNT];
    struct verdict worst[ASC_CHANNELS]; /* of the tile with most bad elements */
    /* 1: P goes to V as e4m3 and is larger than e4m3 goes: then it is cut off there, whatever else is wrong. */
    int cuts_p;
};

static inline int cuts_p(const struct run *run)
{
    const struct spec *s = &run->spec;
    const int tiles = (s->kv_len - 1) / s->bc + 1;
    for (int i = 0; i < run->n_slots * tiles && s->p_rounded == ASC_P_E4M3; i++) {
        const struct matrix *p = &run->slots[i / tiles].captured[i % tiles * ASC_CHANNELS + asc_p];
        for (int k = 0; p->data && k < p->rows * p->cols; k++)
            if (dtype_load(p->dtype, p->data, (size_t)(k / p->cols * p->row_stride + k % p->cols)) > 448)
                return 1;
    }
    return 0;
}

static inline uint64_t verdict_elements(const struct verdict *v)
{
    uint64_t n = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        n += v->count[i];
    return n;
}

static inline bool is_named(const struct outcome *o, enum asc_channel ch)
{
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (o->named[cause] && cause_channel((enum cause)cause) == ch && !cause_is_declaration((enum cause)cause))
            return true;
    return false;
}

static inline int run_outcome(const struct spec *s, struct judge_scratch *scratch, struct outcome *o)
{
    struct run *run = run_kernel(s);
    const ptrdiff_t tiles = (s->kv_len - 1) / s->bc + 1;
    uint32_t *wanted = calloc((size_t)run->n_slots * (size_t)tiles + 1, sizeof *wanted);
    uint32_t *one = calloc((size_t)tiles + 1, sizeof *one);
    uint32_t most[ASC_CHANNELS] = {0};
    struct {
        int slot, kv;
    } worst[ASC_CHANNELS] = {{0}};
    int failed = 0;
    memset(o, 0, sizeof *o);
    cause_plan_begin(&o->plan, 0);
    for (int slot = 0; slot < run->n_slots; slot++) {
        failed |= judge_case(&run->slots[slot].c, scratch, run->slots[slot].out, NULL);
        for (int i = 0; i < tiles * ASC_CHANNELS; i++) {
            const struct verdict *v = &run->slots[slot].out[i].local;
            const int ch = i % ASC_CHANNELS;
            const uint32_t bad = verdict_bad(v);
            if (!v->judged || !bad)
                continue;
            o->culprits |= 1u << ch;
            o->plan.culprits |= 1u << ch;
            o->plan.elements[ch] += verdict_elements(v);
            wanted[slot * tiles + i / ASC_CHANNELS] |= 1u << ch;
            const int kv = i / ASC_CHANNELS, left = s->kv_len - kv * s->bc;
            const uint32_t weight = bad * (uint32_t)(left < s->bc ? left : s->bc);
            if (weight >= most[ch]) {
                most[ch] = weight;
                worst[ch].slot = slot;
                worst[ch].kv = kv;
                o->worst[ch] = *v;
            }
        }
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (!(o->culprits & 1u << ch))
            continue;
        memset(one, 0, (size_t)tiles * sizeof *one);
        one[worst[ch].kv] = 1u << ch;
        failed |= cause_choose(&run->slots[worst[ch].slot].c, one, scratch, &o->plan);
        int second = -1;
        for (int kv = 0; kv < tiles; kv++)
            if (kv != worst[ch].kv && wanted[worst[ch].slot * tiles + kv] & 1u << ch)
                second = kv;
        if (second < 0)
            continue;
        one[worst[ch].kv] = 0;
        one[second] = 1u << ch;
        failed |= cause_choose(&run->slots[worst[ch].slot].c, one, scratch, &o->plan);
    }
    for (int slot = 0; slot < run->n_slots; slot++)
        failed |= cause_collect(&run->slots[slot].c, wanted + slot * tiles, &o->plan, scratch, o->evidence);
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        o->named[cause] = (char)cause_named(&o->evidence[cause]);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (o->culprits & 1u << ch && !is_named(o, (enum asc_channel)ch))
            o->named[search_name(run, (enum asc_channel)ch, scratch)] = 1;
    o->named[CAUSE_NONE] = 0;
    o->cuts_p = cuts_p(run);
    free(one);
    free(wanted);
    run_free(run);
    return failed;
}

static inline int count_names(const struct outcome *o)
{
    int n = 0;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        n += o->named[cause];
    return n;
}

static inline void write_names(const struct outcome *o, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (o->named[cause])
            snprintf(text + strlen(text), bytes - strlen(text), " %s", cause_name((enum cause)cause));
    if (!text[0])
        snprintf(text, bytes, " none");
}

#endif
