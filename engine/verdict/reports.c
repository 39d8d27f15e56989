#include "engine/verdict/reports.h"

#include "engine/base/path.h"
#include "engine/verdict/judgement.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

size_t reports_count(const struct trace *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->info.n_events; i++)
        n += event_is_mistake(t->info.events[i].kind);
    return n;
}

bool reports_placed(const struct trace *t)
{
    for (size_t i = 0; i < t->info.n_events; i++)
        if (event_is_mistake(t->info.events[i].kind) && t->info.events[i].q_tile >= 0)
            return true;
    return false;
}

const struct trace_event *reports_first(const struct trace *t)
{
    for (size_t i = 0; i < t->info.n_events; i++)
        if (event_is_mistake(t->info.events[i].kind))
            return &t->info.events[i];
    return NULL;
}

const struct trace_event *reports_at(const struct trace *t, const int32_t place[3], int kv)
{
    for (size_t i = 0; i < t->info.n_events; i++)
        if (event_is_mistake(t->info.events[i].kind) && event_is_at(&t->info.events[i], place, kv))
            return &t->info.events[i];
    return NULL;
}

const struct trace_event *reports_shown(const struct trace *t, const int32_t place[3], int kv)
{
    const struct trace_event *e = reports_at(t, place, kv);
    if (!e)
        e = reports_first(t);
    return e || !t->info.n_events ? e : &t->info.events[0];
}

/* How many events are of the i-th one's kind, where it is the first of them; else 0. */
static size_t count_kind(const struct trace *t, size_t i)
{
    const struct trace_event *events = t->info.events;
    size_t n = 0;
    for (size_t k = 0; k < t->info.n_events; k++) {
        const bool same = events[k].kind == events[i].kind;
        if (same && k < i)
            return 0;
        n += same;
    }
    return n;
}

void reports_words(const struct trace *t, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < t->info.n_events && used < bytes; i++) {
        const size_t n = event_is_mistake(t->info.events[i].kind) ? count_kind(t, i) : 0;
        if (n)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s (%zu)", used ? ", " : "",
                                     event_name(t->info.events[i].kind), n);
    }
}

static struct event_place call_of(const char *file, int line, const struct trace_stack *stack)
{
    const struct trace_frame *body = stack->n ? &stack->at[stack->n - 1] : NULL;
    return body ? (struct event_place){body->file, body->line} : (struct event_place){file, line};
}

struct event_place event_call(const struct trace_event *e)
{
    return call_of(e->file, e->line, &e->stack);
}

struct event_place event_other_call(const struct trace_event *e)
{
    return call_of(e->other_file, e->other_line, &e->other_stack);
}

/* "attn.cu:112", of a function that it calls "attn.cu:40 in copy_async, called at attn.cu:112". */
static void place_words(const struct event_place *call, const char *file, int line, const struct trace_stack *stack,
                        char *out, size_t bytes)
{
    const char *function = stack->n ? stack->at[0].function : "";
    if (stack->n)
        snprintf(out, bytes, "%s:%d%s%s, called at %s:%d", file, line, function[0] ? " in " : "", function, call->file,
                 call->line);
    else
        snprintf(out, bytes, "%s:%d", file, line);
}

void event_lines(const struct trace_event *e, int short_names, char *out, size_t bytes)
{
    const struct event_place call = event_call(e), other = event_other_call(e);
    char here[700], there[700];
    out[0] = '\0';
    if (e->line <= 0)
        return;
    const bool elsewhere = strcmp(call.file, other.file) != 0;
    int same = !elsewhere && call.line == other.line;
    if (short_names) {
        snprintf(here, sizeof here, "%s:%d", path_name(call.file), call.line);
        snprintf(there, sizeof there, " and %s:%d", elsewhere ? path_name(other.file) : "", other.line);
    } else {
        place_words(&call, e->file, e->line, &e->stack, here, sizeof here);
        const int used = snprintf(there, sizeof there, "%s and ", e->stack.n ? "," : "");
        if (e->stack.n || e->other_stack.n || elsewhere)
            place_words(&other, e->other_file, e->other_line, &e->other_stack, there + used,
                        sizeof there - (size_t)used);
        else
            snprintf(there + used, sizeof there - (size_t)used, ":%d", e->other_line);
        same = same && e->line == e->other_line && strcmp(e->file, e->other_file) == 0;
    }
    snprintf(out, bytes, "%s%s", here, e->other_line <= 0 || same ? "" : there);
}

/* O and LSE are made of the same, and none of the other: what makes one may stand before the other's probe. */
static bool are_made_together(enum asc_channel a, enum asc_channel b)
{
    return (a == asc_o || a == asc_lse) && (b == asc_o || b == asc_lse);
}

/* Whether a line stands in what this channel's value is made by: behind the probe before its own, in the source. */
static bool between_probes(const struct trace *t, enum asc_channel ch, struct event_place at)
{
    const struct trace_site *own = trace_site(t, ch);
    int before = 0;
    if (!own || at.line <= 0 || at.line > own->line || strcmp(at.file, own->file) != 0)
        return false;
    for (size_t i = 0; i < t->info.n_sites; i++) {
        const struct trace_site *site = &t->info.sites[i];
        if (site->line < own->line && site->line > before && strcmp(site->file, own->file) == 0 &&
            !are_made_together(ch, site->channel))
            before = site->line;
    }
    return before > 0 && at.line > before;
}

/* Whether all of it stands before the first probe of all, which records an input: so it loads that. What one side alone
   does there may load another input ahead, as a copy does that is waited for nowhere: is_its_copy() knows of which. */
static bool loads_first_input(const struct trace *t, enum asc_channel ch, const struct trace_event *e)
{
    const struct event_place sides[] = {event_call(e), event_other_call(e)};
    const struct trace_site *own = trace_site(t, ch);
    bool loads = own && (ch == asc_q || ch == asc_k || ch == asc_v) && sides[0].line > 0 &&
                 (e->kind != EVENT_NEVER_WAITED || sides[1].line > 0);
    for (size_t i = 0; i < t->info.n_sites && loads; i++)
        loads = strcmp(t->info.sites[i].file, own->file) != 0 || t->info.sites[i].line >= own->line;
    for (int i = 0; i < 2 && loads; i++)
        loads = sides[i].line <= 0 || (sides[i].line <= own->line && strcmp(sides[i].file, own->file) == 0);
    return loads;
}

/* Whether it stands before all probes, in a thread that has recorded nothing: as in a kernel that runs first and makes
   the inputs of the one with the probes. Then it may spoil any of them. */
static bool precedes_inputs(const struct trace *t, enum asc_channel ch, const struct trace_event *e)
{
    const struct event_place sides[] = {event_call(e), event_other_call(e)};
    const struct trace_site *own = trace_site(t, ch);
    bool precedes = own && (ch == asc_q || ch == asc_k || ch == asc_v) && sides[0].line > 0 && e->batch < 0 &&
                    (e->kind == EVENT_RACE || e->kind == EVENT_UNINITIALIZED);
    for (size_t i = 0; i < t->info.n_sites && precedes; i++) {
        const struct trace_site *site = &t->info.sites[i];
        for (int k = 0; k < 2 && strcmp(site->file, own->file) == 0; k++)
            precedes &= sides[k].line <= 0 || (sides[k].line < site->line && strcmp(sides[k].file, site->file) == 0);
    }
    return precedes;
}

/* Of one kind at one line the first is listed, wherever it was: it speaks for others, unless it is counted. */
static bool was_there(const struct trace *t, const struct trace_event *e, bool (*in_slot)(const void *ctx, int slot),
                      const void *ctx)
{
    if (event_is_of_numbers(e->kind) || e->times > 1 || e->batch < 0 || e->head < 0 || e->q_tile < 0)
        return true;
    if (e->batch >= t->problem.batch || e->head >= t->problem.heads || e->q_tile >= t->layout.q_tiles)
        return false;
    const int slot = trace_slot(t, e->batch, e->head, e->q_tile);
    return slot >= 0 && in_slot(ctx, slot);
}

/* A thread returned before its copy of what this channel is, or is made of: that may have been issued far ahead, and
   what is there instead was there before. Or this channel is what another thread's copy brings, which it does not wait
   for. */
static bool is_its_copy(const struct trace_event *e, enum asc_channel ch)
{
    static const char *const arrays[ASC_CHANNELS][2] = {
        [asc_q] = {"Q"}, [asc_k] = {"K"}, [asc_v] = {"V"}, [asc_s] = {"Q", "K"}, [asc_u] = {"V"}};
    const bool is_race = e->kind == EVENT_RACE && (ch == asc_q || ch == asc_k || ch == asc_v);
    char from[16];
    bool is = false;
    for (int i = 0; i < 2 && arrays[ch][i] && (is_race || e->kind == EVENT_NEVER_WAITED); i++) {
        snprintf(from, sizeof from, " from %s%s", arrays[ch][i], is_race ? ";" : " ");
        is |= strstr(e->text, from) != NULL;
    }
    return is;
}

static unsigned made_of(enum asc_channel ch)
{
#define SET(of) (1u << asc_##of)
    static const unsigned of[ASC_CHANNELS] = {[asc_s] = SET(q) | SET(k),
                                              [asc_m] = SET(s),
                                              [asc_alpha] = SET(m),
                                              [asc_p] = SET(s) | SET(m),
                                              [asc_l] = SET(alpha) | SET(m) | SET(p),
                                              [asc_u] = SET(alpha) | SET(p) | SET(v),
                                              [asc_o] = SET(u) | SET(l),
                                              [asc_lse] = SET(m) | SET(l)};
#undef SET
    return of[ch];
}

static bool same_place(struct event_place a, struct event_place b)
{
    return a.line == b.line && strcmp(a.file, b.file) == 0;
}

/* The channels whose probes stand at a line, a bit each. */
static unsigned channels_at(const struct trace *t, struct event_place at)
{
    unsigned channels = 0;
    for (size_t i = 0; i < t->info.n_sites; i++)
        if (same_place(at, (struct event_place){t->info.sites[i].file, t->info.sites[i].line}))
            channels |= 1u << t->info.sites[i].channel;
    return channels;
}

/* Whether it is an event of a probe of one of these channels. */
static bool is_at_probe(const struct trace *t, const struct trace_event *e, unsigned channels)
{
    return (channels_at(t, event_call(e)) & channels) != 0;
}

/* The channels that were recorded from the very bytes that it is of; 0: it is not known. */
static unsigned recorded_from(const struct trace *t, const struct trace_event *e)
{
    return channels_at(t, (struct event_place){e->recorder_file, e->recorder_line});
}

/* What was recorded at the probe of this channel, or of what its values are made of, is not one value of one time. */
static bool is_of_two_values(const struct trace *t, const struct trace_event *e, enum asc_channel ch)
{
    const bool of_probe = e->kind == EVENT_TWO_VISITS || e->kind == EVENT_COPIES_DIFFER || e->kind == EVENT_PROBE_RACE;
    return of_probe && is_at_probe(t, e, made_of(ch) | 1u << ch);
}

/* Blocks that run at the same time report in any order: what is said must not hang on it. */
static bool stands_before(const struct trace_event *e, const struct trace_event *than)
{
    const int files = strcmp(e->file, than->file);
    return files != 0 ? files < 0 : e->line < than->line;
}

/* Of two events of probes that of the channel's own, or else that which stands first. */
static bool tells_before(const struct trace *t, enum asc_channel ch, const struct trace_event *e,
                         const struct trace_event *than)
{
    const int own = (int)is_at_probe(t, e, 1u << ch) - (int)is_at_probe(t, than, 1u << ch);
    return own != 0 ? own > 0 : stands_before(e, than);
}

static const struct trace_event *event_of_probe(const struct trace *t, enum event_kind kind, enum asc_channel ch)
{
    const struct trace_event *first = NULL;
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        if (e->kind == kind && is_at_probe(t, e, 1u << ch) && (!first || stands_before(e, first)))
            first = e;
    }
    return first;
}

void event_reason(const struct trace_event *e, char *out, size_t bytes)
{
    static const char *const reasons[] = {
        [EVENT_NEVER_WAITED] = "a cp.async of it is not waited for, ",
        [EVENT_UNINITIALIZED] = "it reads uninitialized memory at ",
        [EVENT_COPIES_DIFFER] = "threads hold different copies of what is recorded at ",
        [EVENT_PROBE_RACE] = "its probe reads what another thread writes, without synchronization, ",
        [EVENT_RACE] = "a race at ",
        [EVENT_TWO_WRITERS] = "two blocks write the same elements of it, ",
        [EVENT_BOUNDS] = "an out-of-bounds access at ",
        [EVENT_FENCE] = "a fence is missing, "};
    char lines[160];
    event_lines(e, 1, lines, sizeof lines);
    if (e->kind == EVENT_CACHE) /* up to what else the cache shows */
        snprintf(out, bytes, "%.*s", (int)strcspn(e->text, ";"), e->text);
    else if (e->line <= 0) /* all of it up to what follows from it */
        snprintf(out, bytes, "%.*s", (int)strcspn(e->text, ":"), e->text);
    else if (e->kind == EVENT_OVERLAP)
        snprintf(out, bytes,
                 "two arrays overlap in shared memory, %s: the first line reads what the second has written", lines);
    else if (e->kind == EVENT_BARRIER)
        snprintf(out, bytes, "%.*s, %s", (int)strcspn(e->text, ";"), e->text, lines);
    else if (e->kind == EVENT_TWO_VISITS)
        snprintf(out, bytes, "what is recorded at %s is of two visits", lines);
    else if ((size_t)e->kind < sizeof reasons / sizeof reasons[0] && reasons[e->kind])
        snprintf(out, bytes, "%s%s", reasons[e->kind], lines);
    else
        snprintf(out, bytes, "%s between its operands and its probe, %s", event_name(e->kind), lines);
}

/* Where arrays overlap there are races too, of which none is the reason. */
static int weight_of(enum event_kind kind)
{
    return kind == EVENT_OVERLAP ? 2 : event_is_mistake(kind);
}

/* What a probe reads too early, or too late, the kernel may as well: then the race is the kernel's own. And that of
   arrays that overlap is not the reason. */
static const struct trace_event *reason_of(const struct trace *t, const struct trace_event *e)
{
    const struct trace_event *best = e;
    for (size_t i = 0; e && (e->kind == EVENT_PROBE_RACE || e->kind == EVENT_RACE) && i < t->info.n_events; i++) {
        const struct trace_event *own = &t->info.events[i];
        const struct event_place here = event_call(own), there = event_other_call(own), at = event_call(e),
                                 other = event_other_call(e);
        const bool is_elsewhere = own->kind == EVENT_RACE && own->recorder_line > 0 &&
                                  !same_place(at, (struct event_place){own->recorder_file, own->recorder_line});
        const bool meets = e->kind == EVENT_PROBE_RACE
                               ? !is_elsewhere && (same_place(here, other) || same_place(there, other))
                               : (same_place(here, at) && same_place(there, other)) ||
                                     (same_place(here, other) && same_place(there, at));
        if ((own->kind == EVENT_RACE || own->kind == EVENT_OVERLAP) && meets &&
            weight_of(own->kind) > weight_of(best->kind))
            best = own;
    }
    return best;
}

/* How many lines before the channel's probe: what stands there makes its value sooner than what stands further off. */
static int lines_before(const struct trace *t, enum asc_channel ch, struct event_place at)
{
    const struct trace_site *own = trace_site(t, ch);
    return own && at.line <= own->line && strcmp(at.file, own->file) == 0 ? own->line - at.line : INT_MAX;
}

/* What the bytes that an event is of say of a channel: they were recorded as it, or as what it is made of; nobody has
   recorded them; or as another one. Of a write over what was read that need not be all: others may have read there
   what has been written too late. */
enum of_bytes { BYTES_NOT, BYTES_OTHERS, BYTES_UNKNOWN, BYTES_OWN };

static enum of_bytes bytes_of(const struct trace *t, const struct trace_event *e, enum asc_channel ch)
{
    const unsigned recorded = recorded_from(t, e);
    return !recorded                               ? BYTES_UNKNOWN
           : recorded & (made_of(ch) | 1u << ch)   ? BYTES_OWN
           : strstr(e->text, " has read;") != NULL ? BYTES_OTHERS
                                                   : BYTES_NOT;
}

/* Whether the first says more of the channel: by its bytes, its kind, how early it stands, how often it was. */
static bool says_more(const struct trace *t, enum asc_channel ch, const struct trace_event *e,
                      const struct trace_event *than)
{
    if (!than)
        return true;
    const int bytes = (int)bytes_of(t, e, ch) - (int)bytes_of(t, than, ch),
              weight = weight_of(e->kind) - weight_of(than->kind), lines = event_call(than).line - event_call(e).line;
    return weight != 0 ? weight > 0 : bytes != 0 ? bytes > 0 : lines != 0 ? lines > 0 : e->times > than->times;
}

const struct trace_event *reports_between(const struct trace *t, enum asc_channel ch,
                                          bool (*in_slot)(const void *ctx, int slot), const void *ctx, bool unreal)
{
    const struct trace_event *best = NULL, *two_values = NULL, *of_bytes = NULL, *of_copy = NULL;
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        const bool mistake = event_is_mistake(e->kind);
        /* It has no line: the values of a whole q tile are nobody's. */
        if (e->kind == EVENT_TWO_RECORDERS && was_there(t, e, in_slot, ctx))
            return e;
        if (is_of_two_values(t, e, ch) && (!two_values || tells_before(t, ch, e, two_values)))
            two_values = e;
        const enum of_bytes bytes = bytes_of(t, e, ch);
        if (!(mistake || (unreal && event_is_of_numbers(e->kind))) || !was_there(t, e, in_slot, ctx) ||
            bytes == BYTES_NOT)
            continue;
        const bool is_copy = is_its_copy(e, ch);
        if (between_probes(t, ch, event_call(e)) || between_probes(t, ch, event_other_call(e)) ||
            loads_first_input(t, ch, e) || (is_copy && e->kind == EVENT_NEVER_WAITED)) {
            best = says_more(t, ch, e, best) ? e : best;
            continue;
        }
        if (!made_of(ch) && bytes == BYTES_OWN && says_more(t, ch, e, of_bytes))
            of_bytes = e;
        /* The copy into an array may as well spoil what is read of the one whose place it takes. */
        const int further =
            is_copy && of_copy ? lines_before(t, ch, event_call(e)) - lines_before(t, ch, event_call(of_copy)) : 0;
        if (is_copy && (!of_copy || further < 0 || (further == 0 && e->times > of_copy->times)))
            of_copy = e;
    }
    if (best && (bytes_of(t, best, ch) != BYTES_OTHERS || !(two_values || of_bytes || of_copy)))
        return reason_of(t, best);
    return two_values ? reason_of(t, two_values) : of_bytes ? reason_of(t, of_bytes) : of_copy;
}

const struct trace_event *reports_before_inputs(const struct trace *t, enum asc_channel ch)
{
    const struct trace_event *best = NULL;
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        if (precedes_inputs(t, ch, e) && says_more(t, ch, e, best))
            best = e;
    }
    return best;
}

const struct trace_event *reports_in_slots(const struct trace *t, enum asc_channel ch,
                                           bool (*in_slot)(const void *ctx, int slot), const void *ctx)
{
    static const enum event_kind kinds[] = {EVENT_NEVER_WAITED, EVENT_OVERLAP, EVENT_RACE, EVENT_UNINITIALIZED,
                                            EVENT_TWO_WRITERS};
    const struct trace_event *best = NULL;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && !best; k++)
        for (size_t i = 0; i < t->info.n_events; i++) {
            const struct trace_event *e = &t->info.events[i];
            if (e->kind == kinds[k] && e->line > 0 && was_there(t, e, in_slot, ctx) &&
                (!best || lines_before(t, ch, event_call(e)) < lines_before(t, ch, event_call(best))))
                best = e;
        }
    return best;
}

const struct trace_event *reports_of_cache(const struct trace *t, enum asc_channel ch, int slot, int key)
{
    char name[32];
    const struct asc_problem *p = &t->problem;
    if ((ch != asc_k && ch != asc_v) || !p->new_keys || key < asc_cache_len(p, trace_slot_place(t, slot)[0]))
        return NULL;
    snprintf(name, sizeof name, "the cache of %s as", channel_label(ch));
    for (size_t i = 0; i < t->info.n_events; i++)
        if (t->info.events[i].kind == EVENT_CACHE && strstr(t->info.events[i].text, name))
            return &t->info.events[i];
    return NULL;
}

static bool is_right(const struct summary *s, enum asc_channel ch)
{
    return s->stage[ch].judged_global > 0 && s->stage[ch].bad_global == 0;
}

/* What has spoiled the record of an operand of this stage; *of: which. NULL: nothing. */
static const struct trace_event *event_of_operand(const struct trace *t, enum asc_channel ch, enum asc_channel *of)
{
    static const enum event_kind kinds[] = {EVENT_PROBE_RACE, EVENT_COPIES_DIFFER};
    for (int i = 0; i < 2 * ASC_CHANNELS; i++) {
        *of = (enum asc_channel)(i % ASC_CHANNELS);
        const struct trace_event *e = made_of(ch) >> *of & 1 ? event_of_probe(t, kinds[i / ASC_CHANNELS], *of) : NULL;
        if (e)
            return e;
    }
    return NULL;
}

/* Whether all that is made of it is right by the inputs. */
static bool is_used_right(const struct summary *summary, enum asc_channel ch)
{
    for (int other = 0; other < ASC_CHANNELS; other++)
        if (made_of((enum asc_channel)other) >> ch & 1 && summary->stage[other].judged_global &&
            !is_right(summary, (enum asc_channel)other))
            return false;
    return true;
}

int reports_misrecorded(const struct summary *summary, const struct trace *t, enum asc_channel ch, char *out,
                        size_t bytes)
{
    const struct stage_summary *stage = &summary->stage[ch];
    const unsigned long long bad = stage->bad_local, all = stage->elements, off = stage->bad_global;
    const struct trace_event *own = event_of_probe(t, EVENT_PROBE_RACE, ch);
    const bool used_right = is_used_right(summary, ch);
    enum asc_channel operand = ch;
    const struct trace_event *found = own ? own : event_of_operand(t, ch, &operand),
                             *race = found ? reason_of(t, found) : NULL;
    const char *name = channel_label(ch), *of = channel_label(operand);
    char lines[160], races[160] = "", why[220];
    if (!found || (race == found && !(own ? used_right : is_right(summary, ch))))
        return 0;
    event_lines(found, 1, lines, sizeof lines);
    event_lines(race, 1, races, sizeof races);
    snprintf(why, sizeof why,
             found->kind == EVENT_PROBE_RACE ? "its probe reads what another thread writes, without synchronization, %s"
                                             : "threads hold different copies of it, %s",
             lines);
    if (own)
        snprintf(out, bytes, "%s was recorded otherwise than %s in %llu of %llu elements: %s%s%s", name,
                 used_right ? "it was used" : "it should be", bad, all, why,
                 used_right ? "" : "; so does the kernel: a race at ", used_right ? "" : races);
    else if (off == 0)
        snprintf(
            out, bytes,
            "%s is right by the inputs; in %llu of %llu elements it does not follow from %s as that was recorded: %s",
            name, bad, all, of, why);
    else
        snprintf(out, bytes,
                 "%s is wrong by the inputs in %llu of %llu elements: a race at %s; it is not judged by %s as that was "
                 "recorded: %s",
                 name, off, (unsigned long long)stage->judged_global, races, of, why);
    return 1 + (int)((own || off == 0 ? found : race) - t->info.events);
}

bool event_is_at(const struct trace_event *e, const int32_t place[3], int kv)
{
    if (e->batch != place[0] || e->head != place[1] || e->q_tile != place[2])
        return false;
    return kv < 0 || e->kv_tile < 0 || e->kv_tile == kv;
}

struct stage_of {
    const struct judgement *j;
    enum asc_channel ch;
};

static bool is_bad_slot(const void *ctx, int slot)
{
    const struct stage_of *of = ctx;
    bool bad = false;
    for (int kv = 0; kv < (channel_per_kv(of->ch) ? of->j->kv_tiles : 1) && !bad; kv++)
        bad = judgement_slot_done(of->j, slot) && judgement_tile_bad(of->j, (struct place){slot, kv, of->ch}, 0);
    return bad;
}

const struct trace_event *judgement_event_in_slots(const struct judgement *j, const struct trace *t,
                                                   enum asc_channel ch)
{
    const struct stage_of stage = {j, ch};
    return reports_in_slots(t, ch, is_bad_slot, &stage);
}

const struct trace_event *judgement_event(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                                          bool unreal)
{
    const struct stage_of stage = {j, ch};
    return reports_between(t, ch, is_bad_slot, &stage, unreal);
}
