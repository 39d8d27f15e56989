#include "engine/cursor/pins.h"

#include "engine/verdict/case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same_element(const struct cursor *a, const struct cursor *b)
{
    struct cursor c = *a;
    c.kv_tile = b->kv_tile;
    return cursor_same(&c, b);
}

void pin_forget(struct pin *pin)
{
    free(pin->got);
    free(pin->classes);
    *pin = (struct pin){.at = pin->at};
}

void pins_remove(struct pins *p, int i)
{
    if (i < 0 || i >= p->n)
        return;
    pin_forget(&p->at[i]);
    memmove(p->at + i, p->at + i + 1, (size_t)(--p->n - i) * sizeof *p->at);
}

int pins_toggle(struct pins *p, const struct cursor *c)
{
    for (int i = 0; i < p->n; i++)
        if (same_element(&p->at[i].at, c)) {
            pins_remove(p, i);
            return 0;
        }
    if (p->n == PINS_MAX)
        return -1;
    p->at[p->n++] = (struct pin){.at = *c};
    return 1;
}

void pins_free(struct pins *p)
{
    while (p->n > 0)
        pins_remove(p, p->n - 1);
}

void pins_forget(struct pins *p)
{
    for (int i = 0; i < p->n; i++)
        pin_forget(&p->at[i]);
}

static int make_room(struct pin *pin, int kv_tiles)
{
    const size_t n = (size_t)kv_tiles;
    pin->got = malloc(n * 5 * sizeof *pin->got);
    pin->classes = malloc(n * 2);
    if (!pin->got || !pin->classes) {
        pin_forget(pin);
        return -1;
    }
    for (size_t i = 0; i < n * 5; i++)
        pin->got[i] = NAN;
    memset(pin->classes, STATUS_UNJUDGED, n * 2);
    for (size_t i = 0; i < 2; i++)
        pin->of[i] = (struct pin_values){pin->got + (1 + 2 * i) * n, pin->got + (2 + 2 * i) * n, pin->classes + i * n};
    pin->kv_tiles = kv_tiles;
    return 0;
}

/* Of the tiles as they are judged, those of the pin's channel. */
static void take_element(void *ctx, const struct tile_detail *d)
{
    struct pin *pin = ctx;
    const int col = pin->at.channel == asc_l ? 0 : pin->at.col; /* its lanes come as their sum */
    if (d->channel != (int)pin->at.channel || pin->at.row >= d->rows || col >= d->cols)
        return;
    const int kv = pin->kv_tiles > 1 ? d->kv : 0;
    const size_t i = (size_t)pin->at.row * (size_t)d->cols + (size_t)col;
    pin->got[kv] = d->got[i];
    pin->of[0].want[kv] = d->want_local[i];
    pin->of[0].bound[kv] = d->bound_local[i];
    pin->of[0].class[kv] = d->class_local[i];
    pin->of[1].want[kv] = d->want_global[i];
    pin->of[1].bound[kv] = d->bound_global[i];
    pin->of[1].class[kv] = d->class_global[i];
}

int pin_fill(struct pin *pin, const struct trace *t, const struct judgement *j, struct judge_scratch *scratch)
{
    const int slot = trace_slot(t, pin->at.batch, pin->at.head, pin->at.q_tile);
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    c.c.fingerprint = j->fingerprint;
    int failed = make_room(pin, channel_per_kv(pin->at.channel) ? t->layout.kv_tiles : 1) != 0;
    failed = failed || judge_each(&c.c, scratch, take_element, pin) != 0;
    slot_case_free(&c);
    if (failed)
        pin_forget(pin);
    return failed ? -1 : 0;
}

int pins_unknown(const struct pins *p, const struct trace *t, const struct judgement *j)
{
    for (int i = 0; i < p->n; i++) {
        const struct pin *pin = &p->at[i];
        const struct cursor *at = &pin->at;
        /* Another run may be of another shape. */
        const bool inside =
            at->batch < t->problem.batch && at->head < t->problem.heads && at->q_tile < t->layout.q_tiles;
        if (pin->kv_tiles == 0 && inside && trace_has(t, at->channel) &&
            judgement_slot_done(j, trace_slot(t, at->batch, at->head, at->q_tile)))
            return i;
    }
    return -1;
}

void pins_take(struct pins *p, struct pin *made)
{
    for (int i = 0; i < p->n; i++) {
        struct pin *pin = &p->at[i];
        if (pin->kv_tiles || !same_element(&pin->at, &made->at))
            continue;
        made->at = pin->at;
        *pin = *made;
        *made = (struct pin){0};
        return;
    }
}

bool pin_value(const struct pin *pin, int kv_tile, bool global, struct pin_value *out)
{
    const int kv = pin->kv_tiles > 1 ? kv_tile : 0;
    if (kv < 0 || kv >= pin->kv_tiles)
        return false;
    const struct pin_values *of = &pin->of[global != 0];
    *out = (struct pin_value){pin->got[kv], of->want[kv], of->bound[kv], of->class[kv]};
    return true;
}
