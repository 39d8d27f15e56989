#include "engine/oracle/search/lookup.h"

#include "engine/oracle/element.h"
#include "engine/oracle/values.h"
#include <stdlib.h>

/* How many pieces may be nowhere before the operand is given up. */
enum { MISSES_MOST = 24 };

/* Values of all heads that are kept. */
static const size_t loaded_most = (size_t)1 << 20;

/* A head's place among those that are loaded, with room for n values: its own, a free one, or the last. NULL: without
   memory. */
static struct loaded_head *place_of_head(struct search *search, enum asc_channel tensor, int head, size_t n)
{
    struct loaded_heads *heads = search->loaded ? search->loaded : search_room(search, sizeof *heads);
    search->loaded = heads;
    for (int i = 0; heads && i < heads->n; i++)
        if (heads->of[i].known && heads->of[i].tensor == tensor && heads->of[i].head == head)
            return &heads->of[i];
    if (!heads)
        return NULL;
    if (heads->n == 0 || (heads->n < HEADS_LOADED && heads->values + n <= loaded_most))
        heads->n++;
    struct loaded_head *it = &heads->of[heads->n - 1];
    if (n > it->room) {
        it->rows = search_room(search, 2 * n * sizeof *it->rows);
        heads->values += n - it->room;
        it->room = n;
    }
    it->known = false;
    it->tensor = tensor;
    it->head = head;
    return it->rows ? it : NULL;
}

bool lookup_load(struct lookup *l, enum asc_channel tensor, int head)
{
    const struct source *source = source_of(l->search, tensor, head);
    const struct oracle_case *c = l->search->sample->tiles[0].c;
    if (search_is_stopped(l->search) || !source || !source->rows.data ||
        oracle_dim(c, tensor) != oracle_dim(c, l->operand))
        return false;
    if (l->rows && l->tensor == tensor && l->head == head)
        return true;
    struct loaded_head *it =
        place_of_head(l->search, tensor, head, (size_t)source->rows.rows * (size_t)oracle_dim(c, tensor));
    if (!it)
        return false;
    l->rows = it->rows;
    l->loose = it->rows + it->room;
    l->tensor = tensor;
    l->head = head;
    l->n_rows = source->rows.rows;
    it->known = it->known || source_rows(l->search, c, tensor, head, 0, l->n_rows, l->rows, l->loose);
    return it->known;
}

static bool same_piece(const struct lookup *l, const struct wanted_piece *w, const double *have, const double *loose,
                       double fold)
{
    double size = 0, apart = 0;
    if (w->off == 0) {
        for (int i = 0; i < l->span; i++)
            if (!element_within(w->type, w->x[i], have[i] * fold, loose[i] * fabs(fold)))
                return false;
        return true;
    }
    for (int i = 0; i < l->span; i++) {
        apart += (w->x[i] - have[i]) * (w->x[i] - have[i]);
        size += have[i] * have[i];
        if (apart > w->off * w->off * (size + 1) * 64)
            return false;
    }
    return apart <= w->off * w->off * size;
}

/* A piece that is the same everywhere says nothing. */
static bool is_flat(const double *x, int n)
{
    for (int i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

static double fold_of(const struct lookup *l)
{
    const struct sample *s = l->search->sample;
    return l->operand == asc_q && s->channel == asc_q ? values_fold(s->tiles[0].c) : 1;
}

/* The places of a head that hold the piece: one is taken, of several the one nearest to its own place. */
static bool find_in_head(struct lookup *l, const struct wanted_piece *w, struct found *f, int own_row, bool any_piece)
{
    const int D = l->span * l->pieces;
    int best = -1;
    for (int row = 0; row < l->n_rows; row++) {
        for (int p = any_piece ? 0 : f->piece; p < (any_piece ? l->pieces : f->piece + 1); p++) {
            const size_t at = (size_t)row * (size_t)D + (size_t)p * (size_t)l->span;
            if (!same_piece(l, w, l->rows + at, l->loose + at, fold_of(l)))
                continue;
            const int far = abs(row - own_row) * l->pieces + (p != f->piece);
            if (best >= 0 && far >= best)
                continue;
            best = far;
            f->from_row = row;
            f->from_piece = p;
        }
    }
    f->tensor = l->tensor;
    f->head = l->head;
    return best >= 0;
}

/* Its own head first, at any place; then all others, at its own place in a row. */
static bool find_piece(struct lookup *l, const struct wanted_piece *w, struct found *f, int own_row)
{
    const struct search *search = l->search;
    const struct sample_tile *t = &search->sample->tiles[f->tile];
    const enum asc_channel tensors[] = {l->operand, l->operand == asc_v ? asc_k : asc_v, asc_q, asc_k};
    const int own = head_of(search, t, l->operand);
    if (is_flat(w->x, l->span))
        return false;
    if (lookup_load(l, l->operand, own) && find_in_head(l, w, f, own_row, true))
        return true;
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        for (int head = 0; head < count_sources(search, tensors[i]); head++)
            if (lookup_load(l, tensors[i], head) && find_in_head(l, w, f, own_row, false))
                return true;
    return false;
}

/* Inputs that repeat themselves hold a piece at several places, which then tells nothing of where it is from. */
static bool is_elsewhere(struct lookup *l, const struct wanted_piece *w, const struct found *f)
{
    for (int head = 0; head < count_sources(l->search, f->tensor); head++) {
        struct found other = *f;
        if (lookup_load(l, f->tensor, head) &&
            find_in_head(l, w, &other, head == f->head ? f->from_row + 1 : 0, true) &&
            (other.head != f->head || other.from_row != f->from_row))
            return true;
    }
    return false;
}

int lookup_block(const struct lookup *l, const struct sample_tile *t)
{
    return l->operand == asc_q ? t->c->br : t->c->bc;
}

int lookup_tile(const struct lookup *l, const struct sample_tile *t)
{
    return l->operand == asc_q ? t->at[AXIS_Q_TILE] : t->kv;
}

void look_up(struct lookup *l, int tile, int row, int piece, const struct wanted_piece *w)
{
    const struct sample_tile *t = &l->search->sample->tiles[tile];
    enum { CHECKED = 4 };
    struct found f = {.tile = tile, .row = row, .piece = piece};
    if (l->repeats || l->looked >= LOOKED_UP || (l->n == 0 && l->looked >= MISSES_MOST))
        return;
    l->looked++;
    if (l->n >= FOUND_MOST || !find_piece(l, w, &f, lookup_tile(l, t) * lookup_block(l, t) + row))
        return;
    l->repeats = l->n < CHECKED && is_elsewhere(l, w, &f);
    if (!l->repeats)
        l->found[l->n++] = f;
}
