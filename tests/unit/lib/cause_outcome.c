#include "tests/unit/lib/cause_outcome.h"

#include "engine/trace/layout.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct source *list_sources(const struct run *run)
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

struct search_inputs run_inputs(const struct source *sources)
{
    return (struct search_inputs){
        .sources = sources, .n_sources = Q_HEADS + 2 * KV_HEADS, .heads = Q_HEADS, .kv_heads = KV_HEADS};
}

void take_sample(struct run *run, enum asc_channel ch, struct judge_scratch *scratch, struct sample *sample)
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
static enum cause search_name(struct run *run, enum asc_channel ch, struct judge_scratch *scratch)
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

static bool cuts_p(const struct run *run)
{
    const struct spec *s = &run->spec;
    const int tiles = (s->kv_len - 1) / s->bc + 1;
    for (int i = 0; i < run->n_slots * tiles && s->p_rounded == ASC_P_E4M3; i++) {
        const struct matrix *p = &run->slots[i / tiles].captured[i % tiles * ASC_CHANNELS + asc_p];
        for (int k = 0; p->data && k < p->rows * p->cols; k++)
            if (dtype_load(p->dtype, p->data, (size_t)(k / p->cols * p->row_stride + k % p->cols)) > 448)
                return true;
    }
    return false;
}

static uint64_t verdict_elements(const struct verdict *v)
{
    uint64_t n = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        n += v->count[i];
    return n;
}

static bool is_named(const struct outcome *o, enum asc_channel ch)
{
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (o->named[cause] && cause_channel((enum cause)cause) == ch && !cause_is_declaration((enum cause)cause))
            return true;
    return false;
}

int run_outcome(const struct spec *s, struct judge_scratch *scratch, struct outcome *o)
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
        o->named[cause] = cause_named(&o->evidence[cause]);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (o->culprits & 1u << ch && !is_named(o, (enum asc_channel)ch))
            o->named[search_name(run, (enum asc_channel)ch, scratch)] = true;
    o->named[CAUSE_NONE] = false;
    o->cuts_p = cuts_p(run);
    free(one);
    free(wanted);
    run_free(run);
    return failed;
}

int count_names(const struct outcome *o)
{
    int n = 0;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        n += o->named[cause];
    return n;
}

void write_names(const struct outcome *o, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (o->named[cause])
            snprintf(text + strlen(text), bytes - strlen(text), " %s", cause_name((enum cause)cause));
    if (!text[0])
        snprintf(text, bytes, " none");
}
