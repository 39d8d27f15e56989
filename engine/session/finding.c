/* Findings: for each stage with local faults, which known mistake explains what was captured. */
#include "engine/session/judgement.h"

#include "engine/session/case.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int judgement_collect(const struct judgement *j, const struct trace *t, unsigned culprits, int slot,
                      struct judge_scratch *scratch, struct cause_evidence evidence[CAUSE_COUNT])
{
    struct slot_case c = {0};
    int failed = 0, made = 0;
    for (int ch = 0; ch < ASC_CHANNELS && !failed; ch++) {
        const int tiles = channel_per_kv(ch) ? j->kv_tiles : 1;
        for (int kv = 0; kv < tiles && !failed; kv++) {
            if (!(culprits & 1u << ch) || !judgement_tile_bad(j, (struct place){slot, kv, ch}, 0))
                continue;
            if (!made)
                failed = slot_case_make(t, slot, &c);
            made = 1;
            if (!failed)
                failed = cause_collect(&c.c, ch, kv, scratch, evidence);
        }
    }
    slot_case_free(&c);
    return failed;
}

void judgement_add_evidence(struct cause_evidence to[CAUSE_COUNT], const struct cause_evidence from[CAUSE_COUNT])
{
    for (int c = 0; c < CAUSE_COUNT; c++) {
        to[c].elements += from[c].elements;
        to[c].explained += from[c].explained;
        to[c].rounding += from[c].rounding;
        to[c].discriminating += from[c].discriminating;
        to[c].chance_tried += from[c].chance_tried;
        to[c].chance_hit += from[c].chance_hit;
        to[c].applicable |= from[c].applicable;
    }
}

/* In row order; where only padding is bad, what the verdict says. */
static void first_bad_element(const struct judgement *j, const struct trace *t, struct judge_scratch *scratch,
                              struct finding *f)
{
    const struct verdict *v = &judgement_tile(j, f->first)->local;
    struct tile_detail d;
    f->row = v->worst_row;
    f->col = v->worst_col;
    if (judgement_detail(j, t, f->first, scratch, &d) != 0)
        return;
    for (int i = 0; i < d.rows * d.cols; i++) {
        if (class_bad(d.class_local[i])) {
            f->row = i / d.cols;
            f->col = i % d.cols;
            break;
        }
    }
    judgement_detail_free(&d);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* 1 if o or lse reached memory otherwise than the probe recorded it, anywhere. */
static int stored_otherwise(const struct trace *t, enum asc_channel ch)
{
    if (ch != asc_o && ch != asc_lse)
        return 0;
    for (int slot = 0; slot < t->layout.n_slots; slot++)
        if (case_output_differs(t, ch, slot))
            return 1;
    return 0;
}

static void write_text(struct finding *f, const struct trace *t, const struct stage_summary *stage)
{
    const char *label = channel_label(f->channel);
    const struct cause_evidence *e = &f->evidence;
    const unsigned long long bad = stage->bad_local, all = stage->elements;
    if (f->cause == CAUSE_NONE && stage->missing_local == stage->bad_local) {
        snprintf(f->text, sizeof f->text, "%s was never written in %llu of %llu elements", label, bad, all);
        return;
    }
    if (f->cause == CAUSE_NONE && stored_otherwise(t, f->channel)) {
        snprintf(
            f->text, sizeof f->text,
            "%s is wrong in %llu of %llu elements: memory does not hold what the probe saw (address or missing store)",
            label, bad, all);
        return;
    }
    if (f->cause == CAUSE_NONE) {
        snprintf(f->text, sizeof f->text, "%s is wrong in %llu of %llu elements: no known cause", label, bad, all);
        return;
    }
    snprintf(f->text, sizeof f->text, "%s = %s explains %.4g%% of %llu (rounding %.2g%%): %s", label,
             cause_formula(f->cause), percent(e->explained, e->elements), (unsigned long long)e->elements,
             percent(e->rounding, e->elements), cause_sentence(f->cause));
}

static void find_channel(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                         const struct stage_summary *stage, const struct cause_evidence evidence[CAUSE_COUNT],
                         struct judge_scratch *scratch, struct finding *f)
{
    memset(f, 0, sizeof *f);
    f->channel = ch;
    f->first = stage->first_local;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        if (cause_channel(cause) != ch || !cause_named(&evidence[cause]))
            continue;
        if (f->cause == CAUSE_NONE) {
            f->cause = cause;
            f->evidence = evidence[cause];
        } else {
            f->also[f->n_also++] = cause;
        }
    }
    first_bad_element(j, t, scratch, f);
    write_text(f, t, stage);
}

static void tiles_left_out(const struct summary *summary, struct finding *f)
{
    memset(f, 0, sizeof *f);
    f->channel = summary->first_unvisited.channel;
    f->first = summary->first_unvisited;
    snprintf(f->text, sizeof f->text, "%llu kv tile%s that rows should see %s never visited",
             (unsigned long long)summary->unvisited, summary->unvisited == 1 ? "" : "s",
             summary->unvisited == 1 ? "was" : "were");
}

int judgement_find(const struct judgement *j, const struct trace *t, const struct summary *summary,
                   const struct cause_evidence evidence[CAUSE_COUNT], struct judge_scratch *scratch,
                   struct finding findings[MAX_FINDINGS])
{
    int n = 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (summary->culprits & 1u << ch)
            find_channel(j, t, ch, &summary->stage[ch], evidence, scratch, &findings[n++]);
    if (summary->unvisited)
        tiles_left_out(summary, &findings[n++]);
    return n;
}
