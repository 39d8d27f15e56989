/* The session's stop conditions, and looking for where they hold. */
#include "engine/base/clock.h"
#include "engine/session/common.h"
#include "engine/session/tile_values.h"
#include "engine/session/work.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool session_add_stop(struct session *s, const char *text)
{
    struct stop stop;
    struct err err;
    if (stop_parse(text, s->run.trace ? &s->run.trace->plan : NULL, &stop, &err) != 0)
        return session_stay(s, err.message);
    for (int i = 0; i < s->search.n; i++)
        if (strcmp(s->search.stops[i].text, stop.text) == 0)
            return true;
    if (s->search.n == STOPS_MAX)
        return session_stay(s, "too many stop conditions: `:unstop N` removes one");
    s->search.stops[s->search.n++] = stop;
    return true;
}

void session_remove_stop(struct session *s, int i)
{
    if (i < 0 || i >= s->search.n)
        return;
    memmove(s->search.stops + i, s->search.stops + i + 1, (size_t)(--s->search.n - i) * sizeof *s->search.stops);
}

/* The slot to begin with, on this side of the cursor where its own is not recorded; -1: there is none. */
static int first_slot(const struct session *s, int direction)
{
    const struct trace *t = s->run.trace;
    const int slot = session_slot(s), all = t->layout.n_slots;
    const int32_t here[3] = {s->at.cursor.batch, s->at.cursor.head, s->at.cursor.q_tile};
    if (slot >= 0)
        return slot;
    for (int i = direction > 0 ? 0 : all - 1; i >= 0 && i < all; i += direction) {
        const int32_t *at = trace_slot_place(t, i);
        int side = 0;
        for (int k = 0; k < 3 && side == 0; k++)
            side = (at[k] > here[k]) - (at[k] < here[k]);
        if (side == direction)
            return i;
    }
    return -1;
}

static bool begin(struct session *s, int direction)
{
    struct seek *k = &s->search.seek;
    k->trace = s->run.trace;
    k->judgement = s->run.judgement;
    memcpy(k->stops, s->search.stops, sizeof k->stops);
    k->n_stops = s->search.n;
    k->from = session_place(s);
    k->direction = direction;
    k->first = first_slot(s, direction);
    if (seek_begin(k) != 0)
        return session_stay(s, "out of memory for the search");
    if (work_seek(s->work, k) != 0) {
        seek_end(k);
        return session_stay(s, "cannot start a search thread");
    }
    s->search.under_way = 1;
    s->search.since = clock_seconds();
    return true;
}

bool session_seek(struct session *s, int by)
{
    if (s->search.n == 0)
        return session_stay(s, "no stop condition yet: `:stop nan`, `:stop s off > 8`, `:stop m falls`");
    if (!s->run.trace || !s->run.judgement)
        return session_stay(s, "there is no run yet");
    if (session_busy(s))
        return session_stay(s, "a run is in progress: x stops it");
    s->search.left = abs(by) - 1;
    session_hush(s);
    return by ? begin(s, by < 0 ? -1 : 1) : false;
}

void session_stop_seek(struct session *s)
{
    if (s->search.under_way) {
        work_cancel(s->work);
        work_wait(s->work);
    }
}

/* "nan" or "any of 3 stop conditions" */
static void sought_words(const struct seek *k, char *out, size_t bytes)
{
    if (k->n_stops == 1)
        snprintf(out, bytes, "%s", k->stops[0].text);
    else
        snprintf(out, bytes, "any of %d stop conditions", k->n_stops);
}

void session_say_seeking(struct session *s, double seconds)
{
    char words[80];
    if (seconds < 0.3)
        return;
    sought_words(&s->search.seek, words, sizeof words);
    session_say(s, "searching for %s: %.0f of %.0f q tiles, Esc stops", words, s->job.done, s->job.total);
}

static void go_to_hit(struct session *s, const struct stop_hit *hit)
{
    const struct cursor from = s->at.cursor;
    const struct stop *stop = &s->search.seek.stops[hit->stop];
    session_go(s, hit->place);
    s->at.cursor.row = hit->row < 0 ? 0 : hit->row;
    s->at.cursor.col = hit->col < 0 ? 0 : hit->col;
    if (hit->row < 0)
        stop_element(stop, &s->tile.detail, &s->at.cursor.row, &s->at.cursor.col);
    session_moved(s);
    if (hit->row < 0 && !s->tile.detail.got && tile_values_under_way(s->tile.values)) {
        s->tile.due = ELEMENT_STOP;
        s->tile.due_stop = *stop;
    }
    jumps_note(&s->at.jumps, &from);
    char place[CURSOR_WORDS_BYTES];
    cursor_words(s->run.trace, &s->at.cursor, place);
    session_say(s, "stop %s: %s", stop->text, place);
}

void session_end_seek(struct session *s, bool cancelled)
{
    const int direction = s->search.seek.direction;
    const struct stop_hit hit = seek_end(&s->search.seek);
    char words[80];
    s->search.under_way = 0;
    if (s->search.seek.trace != s->run.trace)
        return; /* another run has come to the screen */
    if (atomic_load(&s->search.seek.no_memory)) {
        session_say(s, "out of memory for a search of the whole run");
        return;
    }
    if (hit.place.slot >= 0 && !cancelled) {
        go_to_hit(s, &hit);
        if (s->search.left-- > 0)
            begin(s, direction);
        return;
    }
    sought_words(&s->search.seek, words, sizeof words);
    if (cancelled)
        session_say(s, "stopped searching for %s", words);
    else
        session_say(s, "%s: not found %s this place", words, direction > 0 ? "after" : "before");
}
