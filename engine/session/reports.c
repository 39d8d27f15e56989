#include "engine/session/reports.h"

#include <stdio.h>
#include <string.h>

size_t reports_count(const struct trace *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->info.n_events; i++)
        n += event_is_mistake(t->info.events[i].kind) != 0;
    return n;
}

int reports_placed(const struct trace *t)
{
    for (size_t i = 0; i < t->info.n_events; i++)
        if (event_is_mistake(t->info.events[i].kind) && t->info.events[i].q_tile >= 0)
            return 1;
    return 0;
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
        const int same = strcmp(events[k].kind, events[i].kind) == 0;
        if (same && k < i)
            return 0;
        n += same != 0;
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
            used +=
                (size_t)snprintf(out + used, bytes - used, "%s%s (%zu)", used ? ", " : "", t->info.events[i].kind, n);
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void event_lines(const struct trace_event *e, int short_names, char *out, size_t bytes)
{
    out[0] = '\0';
    if (e->line <= 0)
        return;
    int used = snprintf(out, bytes, "%s:%d", short_names ? base_name(e->file) : e->file, e->line);
    if (e->other_line <= 0 || used < 0 || (size_t)used >= bytes ||
        (e->other_line == e->line && strcmp(e->file, e->other_file) == 0))
        return;
    const int elsewhere = strcmp(e->file, e->other_file) != 0;
    snprintf(out + used, bytes - (size_t)used, " and %s:%d",
             !elsewhere    ? ""
             : short_names ? base_name(e->other_file)
                           : e->other_file,
             e->other_line);
}

/* Whether a line stands in what this channel's value is made by: behind the probe before its own, in the source. */
static bool between_probes(const struct trace *t, enum asc_channel ch, const char *file, int line)
{
    const struct trace_site *own = trace_site(t, ch);
    int before = 0;
    if (!own || line <= 0 || line > own->line || strcmp(file, own->file) != 0)
        return false;
    for (size_t i = 0; i < t->info.n_sites; i++) {
        const struct trace_site *site = &t->info.sites[i];
        if (site->line < own->line && site->line > before && strcmp(site->file, own->file) == 0)
            before = site->line;
    }
    return before > 0 && line > before;
}

static bool is_of_numbers(const char *kind)
{
    const int k = event_from_name(kind);
    return k == EVENT_FP_INVALID || k == EVENT_FP_DIVIDE || k == EVENT_FP_OVERFLOW;
}

/* Of one kind at one line the first is listed, wherever it was: it speaks for others, unless it is counted. */
static bool was_there(const struct trace *t, const struct trace_event *e, const bool *slots)
{
    if (is_of_numbers(e->kind) || e->times > 1 || e->batch < 0 || e->head < 0 || e->q_tile < 0)
        return true;
    if (e->batch >= t->problem.batch || e->head >= t->problem.heads || e->q_tile >= t->layout.q_tiles)
        return false;
    const int slot = trace_slot(t, e->batch, e->head, e->q_tile);
    return slot >= 0 && slots[slot];
}

const struct trace_event *reports_between(const struct trace *t, enum asc_channel ch, const bool *slots, bool unreal)
{
    const struct trace_event *best = NULL;
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        const bool mistake = event_is_mistake(e->kind);
        if (!(mistake || (unreal && is_of_numbers(e->kind))) || !was_there(t, e, slots) ||
            !(between_probes(t, ch, e->file, e->line) || between_probes(t, ch, e->other_file, e->other_line)))
            continue;
        const bool best_mistake = best && event_is_mistake(best->kind);
        if (!best || (mistake && !best_mistake) || (mistake == best_mistake && e->line < best->line))
            best = e;
    }
    return best;
}

int event_is_at(const struct trace_event *e, const int32_t place[3], int kv)
{
    if (e->batch != place[0] || e->head != place[1] || e->q_tile != place[2])
        return 0;
    return kv < 0 || e->kv_tile < 0 || e->kv_tile == kv;
}
