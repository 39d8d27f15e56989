#include "engine/oracle/search/sample.h"

#include "engine/oracle/element.h"
#include "engine/oracle/schedule.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A search reads all of it several times over: more would not make a rule surer, but late. */
enum { TILES_MOST = 128 };
static const size_t bytes_most = (size_t)192 << 20;

void sample_begin(struct sample *s, enum asc_channel channel)
{
    *s = (struct sample){.channel = channel};
}

void sample_free(struct sample *s)
{
    for (size_t i = 0; i < s->n_kept; i++)
        free(s->kept[i]);
    free(s->kept);
    free(s->tiles);
    *s = (struct sample){0};
}

/* Room that lives as long as the sample; NULL, and failed, without memory. */
static void *keep_bytes(struct sample *s, size_t bytes)
{
    void *block = malloc(bytes ? bytes : 1);
    void **kept = block ? realloc(s->kept, (s->n_kept + 1) * sizeof *kept) : NULL;
    if (!kept) {
        free(block);
        s->failed = true;
        return NULL;
    }
    s->kept = kept;
    s->kept[s->n_kept++] = block;
    s->bytes += bytes;
    return block;
}

static const double *keep(struct sample *s, const double *x, size_t n)
{
    double *copy = x ? keep_bytes(s, n * sizeof *x) : NULL;
    if (copy)
        memcpy(copy, x, n * sizeof *copy);
    return copy;
}

static const int *keep_ints(struct sample *s, const int *x, size_t n)
{
    int *copy = keep_bytes(s, n * sizeof *copy);
    if (copy)
        memcpy(copy, x, n * sizeof *copy);
    return copy;
}

/* The last tile of each split; -1: it has none, as the splits behind the last tile are no part of the lists. */
static const int *keep_last_tiles(struct sample *s, const struct schedule_lists *lists, int splits)
{
    int *copy = keep_bytes(s, (size_t)splits * sizeof *copy);
    for (int i = 0; copy && i < splits; i++)
        copy[i] = i < lists->splits ? lists->last_tile[i] : -1;
    return copy;
}

static bool all_zero(const double *x, size_t n)
{
    for (size_t i = 0; x && i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

static struct operand keep_operand(struct sample *s, struct operand x, size_t n)
{
    const bool exact = x.exact || all_zero(x.loose, n);
    return (struct operand){keep(s, x.value, n), exact ? s->zero : keep(s, x.loose, n), exact};
}

/* The state after the last tile is all that o and lse are made of; before it, of the last tile, is what they may have
   been made of. */
static struct operands keep_end(struct sample *s, const struct operands *from, size_t R, size_t D)
{
    struct operands x = *from;
    x.m_prev = keep_operand(s, from->m_prev, R);
    x.l_prev = keep_operand(s, from->l_prev, R);
    x.u_prev = keep_operand(s, from->u_prev, R * D);
    return x;
}

static struct operands keep_operands(struct sample *s, const struct walk_tile *tile, const struct operands *from)
{
    const struct judge_scratch *scratch = tile->s;
    const size_t R = (size_t)tile->c->in_q.rows, D = (size_t)tile->c->head_dim, C = (size_t)from->cols;
    const size_t V = (size_t)tile->c->head_dim_v;
    struct operands x = keep_end(s, from, R, V);
    for (int ch = 0; ch < asc_o; ch++) {
        const size_t n = (size_t)scratch->stage[ch].rows * (size_t)scratch->stage[ch].cols;
        const size_t size = ch == asc_q ? R * D : ch == asc_k ? C * D : ch == asc_v ? C * V : n;
        x.of[ch] = keep_operand(s, from->of[ch], size);
        if (ch < INPUTS)
            x.size[ch] = from->size[ch] == from->of[ch].value ? x.of[ch].value : keep(s, from->size[ch], size);
    }
    x.hidden = keep_ints(s, from->hidden, R);
    x.visible = keep_ints(s, from->visible, R);
    x.input_v = from->unseen[asc_v] ? keep(s, from->input_v, C * V) : from->input_v;
    x.by_q = keep(s, from->by_q, R);
    x.by_k = keep(s, from->by_k, C);
    x.bias = keep(s, from->bias, R * C);
    x.bias_size = keep(s, from->bias_size, R * C);
    x.s = keep_operand(s, from->s, R * C);
    x.pad = keep(s, from->pad, R * (size_t)from->pad_cols);
    x.tile_top = keep_operand(s, from->tile_top, R);
    x.beta = keep_operand(s, from->beta, R);
    x.pv_p = keep_operand(s, from->pv_p, R * C);
    x.l_p = keep_operand(s, from->l_p, R * C);
    return x;
}

bool sample_is_right(const struct sample_tile *t, size_t i, double x)
{
    return t->unlimited ? element_within_unlimited(t->type, x, t->want[i], t->bound[i])
                        : element_within(t->type, x, t->want[i], t->bound[i]);
}

static bool is_nobodys(const struct matrix *captured, size_t at, bool input)
{
    return captured->data && (dtype_is_unwritten(captured->dtype, captured->data, at) ||
                              (input && dtype_nobodys(captured->dtype, captured->data, at) == UNUSED_16));
}

static enum cell_state cell_of(const struct sample_tile *t, const struct matrix *captured, bool input, int r, int col)
{
    const size_t i = (size_t)r * (size_t)t->cols + (size_t)col;
    if (isnan(t->want[i]) || !(t->bound[i] < INFINITY))
        return CELL_SILENT;
    if (is_nobodys(captured, (size_t)(r * captured->row_stride + col), input && isnan(t->got[i])))
        return CELL_ABSENT;
    return t->got[i] == t->want[i] || sample_is_right(t, i, t->got[i]) ? CELL_RIGHT : CELL_WRONG;
}

static void fill_cells(struct sample *s, struct sample_tile *t, const struct matrix *captured)
{
    for (int r = 0; r < t->rows; r++)
        for (int col = 0; col < t->cols; col++) {
            const enum cell_state cell = cell_of(t, captured, s->channel <= asc_v, r, col);
            t->cell[(size_t)r * (size_t)t->cols + (size_t)col] = (uint8_t)cell;
            t->any_wrong = t->any_wrong || cell == CELL_WRONG;
            s->wrong += cell == CELL_WRONG;
            s->right += cell == CELL_RIGHT;
            s->absent += cell == CELL_ABSENT;
        }
}

static struct sample_tile *new_tile(struct sample *s)
{
    if (s->n == s->room) {
        const int room = s->room ? 2 * s->room : 16;
        struct sample_tile *tiles = realloc(s->tiles, (size_t)room * sizeof *tiles);
        if (!tiles) {
            s->failed = true;
            return NULL;
        }
        s->tiles = tiles;
        s->room = room;
    }
    s->tiles[s->n] = (struct sample_tile){.before = -1, .next = -1};
    return &s->tiles[s->n++];
}

struct adding {
    struct sample *s;
    const struct sample_place *place;
    int first; /* of the sample's tiles that is this slot's */
};

/* What one tile costs is what all of them do: the limit is kept without counting each array first. */
static bool has_room(const struct sample *s)
{
    return s->n < TILES_MOST && (s->n == 0 || s->bytes + s->bytes / (size_t)s->n <= bytes_most);
}

static void link_tile(struct sample *s, int first, int i)
{
    struct sample_tile *t = &s->tiles[i];
    for (int k = i - 1; k >= first; k--) {
        struct sample_tile *other = &s->tiles[k];
        if (schedule_split(t->c, other->kv) != schedule_split(t->c, t->kv))
            continue;
        if (other->turn != t->turn - 1)
            return;
        t->before = k;
        other->next = i;
        return;
    }
}

static void take_tile(struct adding *a, const struct walk_tile *tile)
{
    struct sample *s = a->s;
    const struct stage *stage = &tile->s->stage[s->channel];
    const struct matrix *captured = scratch_captured(tile->s, tile->c, s->channel);
    const size_t n = (size_t)stage->rows * (size_t)stage->cols;
    const bool ends = s->channel == asc_o || s->channel == asc_lse;
    if (n == 0) /* behind its sequence */
        return;
    if (!has_room(s)) {
        s->full = true;
        return;
    }
    struct sample_tile *t = new_tile(s);
    if (!t)
        return;
    if (s->channel == asc_l && captured->cols > 1)
        captured = &tile->s->lanes;
    memcpy(t->at, a->place->at, sizeof t->at);
    t->c = tile->c;
    t->kv_head = a->place->kv_head;
    t->kv = tile->s->at.kv;
    t->turn = tile->s->at.tiles_seen;
    t->unlimited = s->channel == asc_p || s->channel == asc_u;
    t->is_kv = s->channel == asc_k || s->channel == asc_v;
    t->rows = stage->rows;
    t->cols = stage->cols;
    t->type = captured->dtype;
    t->got = keep(s, stage->got, n);
    t->want = keep(s, stage->want[LOCAL], n);
    t->bound = keep(s, stage->bound[LOCAL], n);
    t->cell = keep_bytes(s, n);
    if (ends) {
        t->x = keep_end(s, &tile->s->at, (size_t)tile->c->in_q.rows, (size_t)tile->c->head_dim_v);
        if (s->has_last)
            t->end = s->last_x;
        if (tile->c->kv_splits > 1 && tile->s->lists.splits <= tile->c->kv_splits)
            t->last_tile = keep_last_tiles(s, &tile->s->lists, tile->c->kv_splits);
    } else if (s->channel >= asc_s) {
        t->x = keep_operands(s, tile, &tile->s->at);
        for (int r = 0; !s->failed && r < tile->c->in_q.rows; r++)
            t->cut = t->cut || t->x.hidden[r] > 0 || t->x.visible[r] < t->x.cols;
        t->new_m = s->channel == asc_m ? t->want : s->channel > asc_m ? t->x.of[asc_m].value : NULL;
    }
    if (tile->next_alpha) {
        t->next_alpha = keep(s, tile->next_alpha, (size_t)stage->rows);
        t->next_alpha_loose = keep(s, tile->next_alpha_loose, (size_t)stage->rows);
    }
    if (s->failed)
        return;
    fill_cells(s, t, captured);
    if (channel_per_kv(s->channel))
        link_tile(s, a->first, s->n - 1);
}

static void visit(void *ctx, const struct walk_tile *tile, enum asc_channel ch)
{
    struct adding *a = ctx;
    struct sample *s = a->s;
    if (s->failed)
        return;
    if (ch == s->channel) {
        take_tile(a, tile);
        return;
    }
    /* Of o and lse: each tile in turn, so that the last one stays. */
    s->last_x = keep_operands(s, tile, &tile->s->at);
    s->has_last = true;
}

int sample_add(struct sample *s, const struct oracle_case *c, const struct sample_place *place, const bool *tiles,
               struct judge_scratch *scratch)
{
    const bool ends = s->channel == asc_o || s->channel == asc_lse;
    const size_t most = (size_t)(c->bc > oracle_widest(c) ? c->bc : oracle_widest(c));
    const size_t rows = (size_t)(c->br > c->bc ? c->br : c->bc);
    struct adding a = {s, place, s->n};
    uint32_t *wanted = calloc((size_t)c->kv_tiles, sizeof *wanted);
    if (!s->zero && (s->zero = keep_bytes(s, rows * most * sizeof *s->zero)))
        memset(s->zero, 0, rows * most * sizeof *s->zero);
    if (!wanted || !s->zero) {
        free(wanted);
        return -1;
    }
    for (int kv = 0; kv < c->kv_tiles; kv++)
        if (tiles[kv])
            wanted[kv] = 1u << s->channel;
    s->has_last = false;
    if (ends && c->n_visited > 0 && schedule_splits(c) == 1)
        wanted[c->order[c->n_visited - 1]] |= 1u << asc_m;
    const struct slot_walk how = {.wanted = wanted, .visit = visit, .ctx = &a};
    const int failed = slot_walk(c, &how, scratch);
    free(wanted);
    return failed || s->failed ? -1 : 0;
}
