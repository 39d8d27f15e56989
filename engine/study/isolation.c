#include "engine/study/isolation.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define IN(ch) (1u << asc_##ch)

static const struct isolation_group groups[] = {
    {"scores", "the product of Q and K", IN(s)},
    {"softmax", "running maximum, weights and row sum", IN(m) | IN(alpha) | IN(p) | IN(l)},
    {"pv", "the product of P and V", IN(u)},
    {"epilogue", "the division and the log-sum-exp", IN(o) | IN(lse)},
};
enum { GROUPS = sizeof groups / sizeof *groups };

const struct isolation_group *isolation_group(int i)
{
    return i >= 0 && i < GROUPS ? &groups[i] : NULL;
}

/* What a stage is computed from in one step. */
static const unsigned inputs[ASC_CHANNELS] = {
    [asc_s] = IN(q) | IN(k),     [asc_m] = IN(s),
    [asc_alpha] = IN(m),         [asc_p] = IN(s) | IN(m),
    [asc_l] = IN(alpha) | IN(p), [asc_u] = IN(v) | IN(alpha) | IN(p),
    [asc_o] = IN(l) | IN(u),     [asc_lse] = IN(m) | IN(l),
};

void isolation_of_stage(enum asc_channel ch, struct isolation_request *out)
{
    *out = (struct isolation_request){.stages = 1u << ch};
    snprintf(out->name, sizeof out->name, "%s", channel_label(ch));
}

int isolation_parse(const char *stage, const char *feed, struct isolation_request *out, struct err *err)
{
    char names[256] = "";
    const int ch = channel_from_name(stage);
    *out = (struct isolation_request){0};
    if (ch >= 0)
        isolation_of_stage((enum asc_channel)ch, out);
    for (int i = 0; i < GROUPS; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", groups[i].name);
        if (strcmp(stage, groups[i].name) == 0) {
            out->stages = groups[i].stages;
            snprintf(out->name, sizeof out->name, "%s", stage);
        }
    }
    if (!out->stages)
        return err_set(err, ERR_USAGE, "--isolate", "expected a channel (q, k, v, ... lse)%s, found '%s'", names,
                       stage);
    if (!feed || strcmp(feed, "reference") == 0)
        return 0;
    if (strlen(feed) >= sizeof out->feed)
        return err_set(err, ERR_USAGE, "--feed", "the path is longer than %zu bytes", sizeof out->feed - 1);
    snprintf(out->feed, sizeof out->feed, "%s", feed);
    return 0;
}

static int last_of(unsigned stages)
{
    int last = -1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (stages & 1u << ch)
            last = ch;
    return last;
}

uint32_t isolation_channels(unsigned stages, const struct trace *t)
{
    uint32_t channels = 0;
    for (int ch = 0; ch <= last_of(stages); ch++)
        if (ch != asc_o && ch != asc_lse && t->layout.channel[ch].dtype >= 0)
            channels |= 1u << ch;
    return channels;
}

enum stage_state isolation_state(const struct summary *summary, enum asc_channel ch)
{
    const struct stage_summary *stage = &summary->stage[ch];
    if (stage->local == STAGE_UNRECORDED)
        return STATE_NONE;
    return stage->bad_local ? STATE_WRONG : stage->bad_global ? STATE_UPSTREAM : STATE_OK;
}

const char *stage_state_word(enum stage_state state)
{
    static const char *const words[] = {
        [STATE_NONE] = "not recorded", [STATE_OK] = "ok", [STATE_WRONG] = "wrong", [STATE_UPSTREAM] = "wrong upstream"};
    return words[state];
}

enum effect isolation_effect(const struct summary *before, const struct summary *after, enum asc_channel ch)
{
    const enum stage_state was = isolation_state(before, ch), is = isolation_state(after, ch);
    if (was == STATE_NONE || is == STATE_NONE)
        return EFFECT_NONE;
    if (is == STATE_OK)
        return was == STATE_OK ? EFFECT_AS_BEFORE : EFFECT_HEALED;
    return was == STATE_OK ? EFFECT_WRONG_NOW : EFFECT_STILL_WRONG;
}

const char *effect_word(enum effect effect)
{
    static const char *const words[] = {[EFFECT_NONE] = "",
                                        [EFFECT_AS_BEFORE] = "as before",
                                        [EFFECT_HEALED] = "healed",
                                        [EFFECT_STILL_WRONG] = "still wrong",
                                        [EFFECT_WRONG_NOW] = "wrong now"};
    return words[effect];
}

__attribute__((format(printf, 3, 4))) static void append(char *out, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, bytes - used, format, args);
    va_end(args);
}

void isolation_labels(unsigned stages, char *out, size_t bytes)
{
    out[0] = '\0';
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (!(stages & 1u << ch))
            continue;
        int end = ch;
        while (end + 1 < ASC_CHANNELS && stages & 1u << (end + 1))
            end++;
        append(out, bytes, "%s%s", out[0] ? ", " : "", channel_label((enum asc_channel)ch));
        if (end - ch >= 2) {
            append(out, bytes, "..%s", channel_label((enum asc_channel)end));
            ch = end;
        }
    }
}

/* What the two runs show, as sets of stages. */
struct outcome {
    unsigned fed;            /* what reached the kernel */
    unsigned up_to;          /* the isolated stages and all before them */
    unsigned culprits;       /* wrong locally in the isolated run */
    unsigned begins;         /* of culprits: wrong in the kv tile visited first alone, by what the state begins at */
    unsigned wrong_now;      /* in that run only */
    unsigned healed, wrong;  /* wrong: behind the isolated stages */
    int clean;               /* nothing is wrong in either */
    const char *kind, *name; /* "exact" or "fed"; what is isolated */
};

static void take_stock(const struct isolation_result *r, struct outcome *out)
{
    *out = (struct outcome){
        .fed = r->trace->fed_channels, .kind = r->asked->feed[0] ? "fed" : "exact", .name = r->asked->name, .clean = 1};
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const unsigned bit = 1u << ch;
        const enum effect effect = isolation_effect(r->before, r->after, (enum asc_channel)ch);
        if (ch <= last_of(r->asked->stages))
            out->up_to |= bit;
        if (isolation_state(r->after, (enum asc_channel)ch) == STATE_WRONG)
            out->culprits |= bit;
        const struct stage_summary *stage = &r->after->stage[ch];
        if ((ch == asc_alpha || ch == asc_l || ch == asc_u) && stage->begins_local == stage->bad_local)
            out->begins |= bit & out->culprits;
        if (effect == EFFECT_WRONG_NOW)
            out->wrong_now |= bit;
        if (effect != EFFECT_NONE && effect != EFFECT_AS_BEFORE)
            out->clean = 0;
        if (effect == EFFECT_HEALED)
            out->healed |= bit;
        if (!(out->up_to & bit) && (effect == EFFECT_STILL_WRONG || effect == EFFECT_WRONG_NOW))
            out->wrong |= bit;
    }
}

static bool several(unsigned stages)
{
    return (stages & (stages - 1)) != 0;
}

void isolation_line(const struct isolation_result *r, char *out, size_t bytes)
{
    struct outcome o;
    char stages[64], from[64];
    unsigned operands = 0;
    take_stock(r, &o);
    out[0] = '\0';
    const unsigned wrong = o.culprits & o.up_to, shown = wrong ? wrong : r->asked->stages;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (shown & 1u << ch)
            operands |= inputs[ch] & ~shown & o.fed;
    isolation_labels(shown, stages, sizeof stages);
    isolation_labels(operands, from, sizeof from);
    append(out, bytes, "%s %s", stages, wrong ? "still wrong" : "right");
    if (operands)
        append(out, bytes, " on %s %s", o.kind, from);
    if (o.healed) {
        isolation_labels(o.healed, stages, sizeof stages);
        append(out, bytes, "; %s %s", stages, several(o.healed) ? "heal" : "heals");
    }
    if (o.wrong) {
        isolation_labels(o.wrong, stages, sizeof stages);
        append(out, bytes, "; %s still wrong", stages);
    }
}

/* The stages that stay wrong by themselves. */
static int culprit_sentences(const struct outcome *o, char out[][ISOLATION_SENTENCE_BYTES])
{
    int n = 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const char *label = channel_label((enum asc_channel)ch);
        if (!(o->culprits & 1u << ch))
            continue;
        if (o->up_to & 1u << ch)
            snprintf(out[n++], ISOLATION_SENTENCE_BYTES, "%s is wrong on %s inputs: %s culprit", label, o->kind,
                     several(o->culprits) ? "a" : "the");
        else if (o->begins & 1u << ch) /* no probe is there yet that could be fed */
            snprintf(out[n++], ISOLATION_SENTENCE_BYTES,
                     "%s stays wrong when %s is fed, only in the first kv tile: the initial value of %s is not fed",
                     label, o->name, channel_label(ch == asc_alpha ? asc_m : (enum asc_channel)ch));
        else
            snprintf(out[n++], ISOLATION_SENTENCE_BYTES, "%s stays wrong when %s is fed: a culprit of its own", label,
                     o->name);
    }
    return n;
}

static bool downstream_sentences(const struct outcome *o, char out[][ISOLATION_SENTENCE_BYTES])
{
    char healed[64], wrong[64];
    const unsigned shown = o->healed & IN(o) && !o->wrong ? IN(o) : o->healed;
    isolation_labels(shown, healed, sizeof healed);
    isolation_labels(o->wrong, wrong, sizeof wrong);
    if (o->healed && !o->wrong)
        snprintf(out[0], ISOLATION_SENTENCE_BYTES, "%s %s when %s is fed: everything after %s is clean", healed,
                 several(shown) ? "heal" : "heals", o->name, o->name);
    else if (o->healed)
        snprintf(out[0], ISOLATION_SENTENCE_BYTES, "%s %s when %s is fed, %s %s not", healed,
                 several(shown) ? "heal" : "heals", o->name, wrong, several(o->wrong) ? "do" : "does");
    else if (o->wrong)
        snprintf(out[0], ISOLATION_SENTENCE_BYTES, "%s %s wrong when %s is fed", wrong,
                 several(o->wrong) ? "stay" : "stays", o->name);
    else
        return false;
    return true;
}

/* What should have been fed and was not. */
static int unfed_sentences(const struct isolation_result *r, char out[][ISOLATION_SENTENCE_BYTES])
{
    char labels[64];
    unsigned unrecorded = 0;
    int n = 0;
    for (int ch = 0; ch <= last_of(r->asked->stages) && ch < asc_o; ch++) {
        const struct trace_site *site = trace_site(r->trace, (enum asc_channel)ch);
        if (r->trace->layout.channel[ch].dtype < 0)
            unrecorded |= 1u << ch;
        else if (trace_unfed(r->trace, (enum asc_channel)ch))
            snprintf(out[n++], ISOLATION_SENTENCE_BYTES, "%s was not fed: its probe's value is const (%.160s:%d)",
                     channel_label((enum asc_channel)ch), site ? site->file : "?", site ? site->line : 0);
    }
    isolation_labels(unrecorded, labels, sizeof labels);
    if (unrecorded)
        snprintf(out[n++], ISOLATION_SENTENCE_BYTES, "%s %s not recorded, so not fed", labels,
                 several(unrecorded) ? "are" : "is");
    return n;
}

int isolation_sentences(const struct isolation_result *r, char out[ISOLATION_SENTENCES][ISOLATION_SENTENCE_BYTES])
{
    struct outcome o;
    char labels[64];
    take_stock(r, &o);
    int n = culprit_sentences(&o, out);
    n += downstream_sentences(&o, out + n);
    if (o.clean)
        snprintf(out[n++], ISOLATION_SENTENCE_BYTES, "every stage is clean, isolated and in the ordinary run");
    isolation_labels(o.wrong_now, labels, sizeof labels);
    if (o.wrong_now)
        snprintf(out[n++], ISOLATION_SENTENCE_BYTES,
                 "%s %s right in the ordinary run: the kernel may continue with a copy that no probe feeds", labels,
                 several(o.wrong_now) ? "were" : "was");
    return n + unfed_sentences(r, out + n);
}
