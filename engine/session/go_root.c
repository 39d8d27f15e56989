/* Stepping from one root of NaN or infinity to the next, and the softmax state that views show. */
#include "engine/session/session.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/states.h"
#include <stdio.h>

static int stay(struct session *s, const char *why)
{
    snprintf(s->message, sizeof s->message, "%s", why);
    return 0;
}

int session_root(const struct session *s)
{
    const struct place place = session_place(s);
    return s->judgement && place.slot >= 0 ? run_onset_at(s->judgement->onset, place, s->cursor.row) : -1;
}

static int go(struct session *s, const struct run_root *r)
{
    const int32_t *at = trace_slot_place(s->trace, r->slot);
    struct cursor to = s->cursor;
    to.batch = at[0];
    to.head = at[1];
    to.q_tile = at[2];
    to.channel = r->root.channel;
    to.kv_tile = channel_per_kv(r->root.channel) ? r->root.kv : to.kv_tile;
    to.row = r->root.row;
    to.col = r->root.col;
    return session_jump_to(s, &to);
}

int session_go_root(struct session *s, int by)
{
    const struct judgement *j = s->judgement;
    const int at = session_root(s);
    if (!j || !j->complete)
        return stay(s, "not judged yet");
    if (s->isolation.trace)
        return stay(s, "NaN origin is not computed for isolated runs");
    if (!j->onset || !j->onset->n)
        return stay(s, "no unexpected NaN or infinity in this run");
    const struct run_root *roots = j->onset->first, *first = run_onset_first(j->onset);
    if (at < 0 && by < 0)
        return go(s, &roots[j->onset->n - 1]);
    if (at < 0 || by == 0)
        return go(s, first ? first : roots);
    if (at + by < 0 || at + by >= j->onset->n)
        return stay(s, by > 0 ? "this is the last root that is kept" : "this is the first root");
    return go(s, &roots[at + by]);
}

void session_drop_states(struct session *s)
{
    row_states_free(&s->states);
}

void session_want_states(struct session *s, int on)
{
    const int changed = s->wants_states != on;
    s->wants_states = on;
    if (changed || s->lacks)
        session_refresh_detail(s);
}
