#include "engine/session/picture.h"

#include "engine/oracle/element.h"
#include "engine/session/cursor_tile.h"
#include "engine/session/session.h"
#include "engine/trace/writers.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 400, MOST_COLS = 640 }; /* cells: as many as a large screen shows */

void picture_free(struct picture *p)
{
    free(p->cells);
    free(p->made);
    *p = (struct picture){.cells = NULL};
}

bool picture_cell_is_special(const struct picture_cell *cell)
{
    return cell->status == CLASS_NAN || cell->status == CLASS_INF || cell->status == CLASS_MISSING ||
           cell->status == CLASS_EXTRA;
}

static double badness(const struct picture_cell *cell)
{
    switch (cell->status) {
    case CLASS_NAN:
        return 1e304;
    case CLASS_INF:
        return 1e303;
    case CLASS_MISSING:
        return 1e302;
    case CLASS_EXTRA:
        return 1e301;
    case STATUS_UNRECORDED:
        return -3;
    case STATUS_UNJUDGED:
        return -2;
    case STATUS_MASKED:
        return -1;
    default:
        return cell->ratio <= 1e300 ? (double)cell->ratio : 1e300;
    }
}

const struct picture_cell *picture_worse(const struct picture_cell *a, const struct picture_cell *b)
{
    return badness(b) > badness(a) ? b : a;
}

enum dtype trace_captured_type(const struct trace *t, enum asc_channel ch)
{
    enum dtype o = DTYPE_F32;
    if (ch == asc_o && trace_tensor(t, 'o', &o))
        return o;
    const int type = t->layout.channel[ch].dtype;
    return type < 0 ? DTYPE_F32 : (enum dtype)type;
}

static int divide_up(int a, int b)
{
    return (a + b - 1) / b;
}

/* What it is of, and how many elements share a cell; without cells. q: of a tile or a q tile. */
static void plan(struct picture *p, const struct trace *t, enum picture_scope scope, enum asc_channel ch,
                 const int32_t place[3], int kv)
{
    const bool per_kv = channel_per_kv(ch);
    *p = (struct picture){.scope = scope, .channel = ch, .batch = place[0], .head = place[1]};
    p->first_q = scope == PICTURE_HEAD ? 0 : place[2];
    p->q_tiles = scope == PICTURE_HEAD ? t->layout.q_tiles : 1;
    p->first_kv = scope == PICTURE_TILE && per_kv ? kv : 0;
    p->kv_tiles = scope == PICTURE_TILE || !per_kv ? 1 : t->layout.kv_tiles;
    p->tile_rows = channel_rows(ch, &t->plan);
    p->tile_cols = channel_cols(ch, &t->plan, &t->problem);
    p->warps = t->layout.warps;
    const int rows = p->q_tiles * p->tile_rows, cols = p->kv_tiles * p->tile_cols;
    p->by_row = divide_up(rows, MOST_ROWS);
    p->by_col = divide_up(cols, MOST_COLS);
    p->rows = divide_up(rows, p->by_row);
    p->cols = divide_up(cols, p->by_col);
}

/* Its cells; of q tile `only` alone, unless that is -1. */
static int make_cells(struct picture *p, int only)
{
    p->part = only;
    if (only >= 0) {
        const int first = (only - p->first_q) * p->tile_rows;
        p->first_row = first / p->by_row;
        p->rows = (first + p->tile_rows - 1) / p->by_row - p->first_row + 1;
    }
    const size_t n = (size_t)p->rows * (size_t)p->cols;
    p->cells = malloc(n * sizeof *p->cells);
    p->made = calloc((size_t)p->q_tiles, 1);
    if (!p->cells || !p->made) {
        picture_free(p);
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        p->cells[i] = (struct picture_cell){.status = STATUS_UNRECORDED, .from_row = -1, .from_col = -1, .thread = -1};
    return 0;
}

/* An element's class, as sign_of_element() has it, and what is masked. */
static struct picture_cell cell_of(const struct tile_detail *d, size_t i, enum dtype type, bool global)
{
    const double want = global ? d->want_global[i] : d->want_local[i],
                 bound = global ? d->bound_global[i] : d->bound_local[i];
    const int class = global ? d->class_global[i] : d->class_local[i];
    struct picture_cell cell = {
        .got = (float)d->got[i], .want = (float)want, .from_row = -1, .from_col = -1, .thread = -1};
    cell.status = (uint8_t) class;
    if (class_bad(class) && class != CLASS_OFF)
        return cell;
    if (class == STATUS_UNJUDGED)
        return cell;
    if (class == CLASS_OK && (!isfinite(want) || isnan(d->got[i]))) {
        cell.status = STATUS_MASKED;
        return cell;
    }
    cell.ratio = (float)element_ratio(type, class, d->got[i], want, bound);
    if (class == CLASS_OK && !global && class_bad(d->class_global[i]))
        cell.status = STATUS_UPSTREAM;
    return cell;
}

/* Lays a tile where it belongs. */
static void add_tile(struct picture *p, const struct trace *t, const struct tile_detail *d, int q, const int *from)
{
    const enum dtype type = trace_captured_type(t, p->channel);
    const int slot = trace_slot(t, p->batch, p->head, q);
    const int top = (q - p->first_q) * p->tile_rows, left = (d->kv - p->first_kv) * p->tile_cols;
    for (int r = 0; r < d->rows && r < p->tile_rows; r++)
        for (int c = 0; c < d->cols && c < p->tile_cols; c++) {
            const size_t i = (size_t)r * (size_t)d->cols + (size_t)c;
            struct picture_cell cell = cell_of(d, i, type, p->global);
            cell.thread = trace_writer_thread(t, p->channel, slot, d->kv, r, c);
            cell.row = top + r;
            cell.col = left + c;
            if (from && from[i] >= 0) {
                cell.from_row = from[i] / d->cols;
                cell.from_col = from[i] % d->cols;
            }
            struct picture_cell *at = &p->cells[(size_t)(cell.row / p->by_row - p->first_row) * (size_t)p->cols +
                                                (size_t)(cell.col / p->by_col)];
            *at = *picture_worse(at, &cell);
        }
}

struct wanted_value {
    double want;
    int at;
};

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct wanted_value *)a)->want, y = ((const struct wanted_value *)b)->want;
    return (x > y) - (x < y);
}

/* For every element of a tile the one whose wanted value it has within that one's bound; -1: none, or several. A right
   element is its own, whatever others are like it. NULL without memory. */
static int *find_origins(const struct tile_detail *d, enum dtype type, bool global)
{
    const int n = d->rows * d->cols;
    const double *want = global ? d->want_global : d->want_local, *bound = global ? d->bound_global : d->bound_local;
    const uint8_t *classes = global ? d->class_global : d->class_local;
    struct wanted_value *sorted = malloc((size_t)n * sizeof *sorted);
    int *from = malloc((size_t)n * sizeof *from), n_sorted = 0;
    double reach = 0; /* the largest */
    if (!sorted || !from) {
        free(sorted);
        free(from);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (isfinite(want[i]) && isfinite(bound[i])) {
            sorted[n_sorted++] = (struct wanted_value){want[i], i};
            reach = fmax(reach, element_reach(type, want[i], bound[i]));
        }
    qsort(sorted, (size_t)n_sorted, sizeof *sorted, by_value);
    for (int i = 0; i < n; i++) {
        from[i] = classes[i] == CLASS_OK ? i : -1;
        if (from[i] >= 0 || !isfinite(d->got[i]))
            continue;
        int low = 0, found = 0;
        for (int high = n_sorted; low < high;) {
            const int middle = (low + high) / 2;
            if (sorted[middle].want < d->got[i] - reach)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < n_sorted && sorted[low].want <= d->got[i] + reach && found < 2; low++) {
            const int at = sorted[low].at;
            if (element_within(type, d->got[i], want[at], bound[at])) {
                from[i] = at;
                found++;
            }
        }
        if (found != 1)
            from[i] = -1;
    }
    free(sorted);
    return from;
}

int picture_of_tile(const struct session *s, bool global, struct picture *out)
{
    const struct tile_detail *d = &s->tile.detail;
    const struct cursor *at = &s->at.cursor;
    *out = (struct picture){.cells = NULL};
    if (!s->run.trace || !d->got || d->rows < 1 || d->cols < 1)
        return -1;
    const int32_t place[3] = {at->batch, at->head, at->q_tile};
    const enum dtype type = trace_captured_type(s->run.trace, at->channel);
    plan(out, s->run.trace, PICTURE_TILE, at->channel, place, at->kv_tile);
    out->global = global;
    int *from = make_cells(out, -1) == 0 ? find_origins(d, type, global) : NULL;
    if (!from) {
        picture_free(out);
        return -1;
    }
    add_tile(out, s->run.trace, d, at->q_tile, from);
    free(from);
    out->n_made = out->n_there = 1;
    return 0;
}

struct adding {
    struct picture *p;
    const struct trace *t;
    int q;
};

static void add_each(void *ctx, const struct tile_detail *d)
{
    const struct adding *a = ctx;
    if (d->channel == (int)a->p->channel)
        add_tile(a->p, a->t, d, a->q, NULL);
}

int picture_of_slot(const struct judgement *j, const struct trace *t, struct place place, enum picture_scope scope,
                    bool global, struct judge_scratch *scratch, struct picture *out)
{
    const int32_t *at = trace_slot_place(t, place.slot);
    struct adding a = {out, t, at[2]};
    struct slot_case c;
    plan(out, t, scope, place.channel, at, 0);
    out->global = global;
    if (slot_case_make(t, place.slot, &c) != 0)
        return -1;
    c.c.fingerprint = j->fingerprint;
    const int failed = make_cells(out, at[2]) != 0 || judge_each(&c.c, scratch, add_each, &a) != 0;
    slot_case_free(&c);
    if (failed)
        picture_free(out);
    return failed ? -1 : 0;
}

static bool there(const struct session *s, int q, int *slot)
{
    const struct cursor *at = &s->at.cursor;
    *slot = trace_slot(s->run.trace, at->batch, at->head, q);
    return judgement_slot_done(s->run.judgement, *slot);
}

bool picture_is_stale(const struct session *s)
{
    const struct picture *p = &s->tile.picture;
    const struct cursor *at = &s->at.cursor;
    return p->scope != s->tile.wants_picture || p->global != s->tile.picture_global || p->channel != at->channel ||
           p->batch != at->batch || p->head != at->head || (p->scope == PICTURE_Q_TILE && p->first_q != at->q_tile);
}

int picture_next_slot(const struct session *s)
{
    const struct picture *p = &s->tile.picture;
    const enum picture_scope scope = s->tile.wants_picture;
    const int q_tiles = s->run.trace->layout.q_tiles, at = s->at.cursor.q_tile;
    int slot;
    if (scope == PICTURE_TILE || !trace_has(s->run.trace, s->at.cursor.channel))
        return -1;
    for (int by = 0; by < (scope == PICTURE_HEAD ? q_tiles : 1); by++)
        for (int side = 0; side < (by ? 2 : 1); side++) {
            const int q = side ? at - by : at + by;
            if (q >= 0 && q < q_tiles && (!p->cells || !p->made[q - p->first_q]) && there(s, q, &slot))
                return slot;
        }
    return -1;
}

int picture_take(struct session *s, struct picture *part)
{
    struct picture *p = &s->tile.picture;
    const int32_t place[3] = {part->batch, part->head, part->part};
    int slot;
    if (!p->cells) {
        plan(p, s->run.trace, part->scope, part->channel, place, 0);
        p->global = part->global;
        if (make_cells(p, -1) != 0)
            return -1;
    }
    for (int r = 0; r < part->rows; r++)
        for (int c = 0; c < part->cols; c++) {
            struct picture_cell *at = &p->cells[(size_t)(part->first_row + r) * (size_t)p->cols + (size_t)c];
            *at = *picture_worse(at, &part->cells[(size_t)r * (size_t)part->cols + (size_t)c]);
        }
    p->made[part->part - p->first_q] = 1;
    p->n_made++;
    p->n_there = 0;
    for (int q = p->first_q; q < p->first_q + p->q_tiles; q++)
        p->n_there += there(s, q, &slot);
    return 0;
}
