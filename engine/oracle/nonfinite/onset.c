#include "engine/oracle/nonfinite/onset.h"

#include "engine/oracle/codes.h"
#include "engine/oracle/nonfinite/onset_map.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/scratch.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *sentence, *formula;
} origins[ORIGIN_COUNT] = {
#define ORIGIN(id, name, sentence, formula) {name, sentence, formula},
#include "engine/oracle/nonfinite/origins.def"
#undef ORIGIN
};

const char *origin_name(enum nan_origin r)
{
    return origins[r].name;
}

const char *origin_sentence(enum nan_origin r)
{
    return origins[r].sentence;
}

const char *origin_formula(enum nan_origin r)
{
    return origins[r].formula;
}

const char *onset_operand_label(enum onset_operand o)
{
    static const char *const labels[] = {
#define OPERAND(id, label) label,
        ONSET_OPERANDS(OPERAND)
#undef OPERAND
    };
    return labels[o];
}

static void map_free(struct onset_map *map)
{
    free(map->cells);
    free(map->at);
    free(map->steps);
}

static int map_make(const struct oracle_case *c, struct judge_scratch *s, struct onset_map *map)
{
    const size_t tiles = (size_t)c->kv_tiles;
    *map = (struct onset_map){.c = c, .s = s, .rows = c->in_q.rows};
    map->at = calloc(tiles * ASC_CHANNELS, sizeof *map->at);
    map->steps = calloc(tiles, sizeof *map->steps);
    for (int i = 0; map->at && i < c->kv_tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        const int kv = i / ASC_CHANNELS;
        map->at[i] = map->n_cells;
        if (kv == 0 || channel_per_kv(ch))
            map->n_cells += (size_t)onset_rows(map, ch, kv) * (size_t)onset_cols(map, ch, kv);
    }
    map->cells = calloc(map->n_cells + 1, sizeof *map->cells);
    if (map->steps)
        map->n_steps = steps_list(c, map->steps);
    return !map->at || !map->steps || !map->cells || map->n_steps < 0 ? -1 : 0;
}

static bool is_unreal_class(int class)
{
    return class == CLASS_NAN || class == CLASS_INF;
}

/* A NaN that neither verdict can judge is no better for it; an infinity may be what is meant. */
static bool is_bad(double got, int local, int global)
{
    if (isfinite(got) || local == CLASS_MISSING)
        return false;
    return is_unreal_class(local) || is_unreal_class(global) ||
           (isnan(got) && local == STATUS_UNJUDGED && global == STATUS_UNJUDGED);
}

static void note_tile(void *ctx, const struct tile_detail *d)
{
    struct onset_map *map = ctx;
    uint16_t *cell = onset_cell(map, (enum asc_channel)d->channel, d->kv, 0, 0);
    for (int i = 0; i < d->rows * d->cols; i++) {
        if (d->class_local[i] == CLASS_MISSING || (isnan(d->got[i]) && d->class_local[i] == CLASS_OK))
            continue;
        cell[i] = isfinite(d->got[i]) ? CELL_FINITE : CELL_UNREAL;
        if (is_bad(d->got[i], d->class_local[i], d->class_global[i]))
            cell[i] |= CELL_BAD;
    }
}

/* Operands that no probe recorded are the input's. */
static int note_inputs(struct onset_map *map)
{
    const struct oracle_case *c = map->c;
    static const enum asc_channel inputs[] = {asc_q, asc_k, asc_v};
    const size_t n = (size_t)(map->rows > c->bc ? map->rows : c->bc) * (size_t)oracle_widest(c);
    double *values = calloc(n * 2, sizeof *values);
    for (int i = 0; values && i < 3 * map->n_steps; i++) {
        const enum asc_channel ch = inputs[i % 3];
        const int kv = ch == asc_q ? 0 : map->steps[i / 3].kv;
        if (c->captured[kv * ASC_CHANNELS + (int)ch].data || (ch == asc_q && i > 0))
            continue;
        const int rows = onset_rows(map, ch, kv), count = rows * oracle_dim(c, ch);
        const struct coded_rows part = {ch, codes_input(c, ch), codes_of(c, ch), kv * c->bc, rows};
        uint16_t *cell = onset_cell(map, ch, kv, 0, 0);
        codes_load(c, &part, values, values + n);
        for (int k = 0; k < count; k++)
            cell[k] = isfinite(values[k]) ? CELL_FINITE : CELL_UNREAL | CELL_BAD;
    }
    const bool failed = !values;
    free(values);
    return failed ? -1 : 0;
}

/* Walks all elements in the order of execution: by steps, in each by stages, and says of each whether any operand has
   one of the bits. */
struct walk {
    const struct onset_map *map;
    int bits;
    int first_row, rows; /* of the q tile */
    bool skips_keys;     /* no element of k and v has any of the bits */
    void (*visit)(void *ctx, int step, enum asc_channel ch, int row, int col, int operand_has);
    void *ctx;
    /* owned: any element of a row of q, s, p; of k, by keys; of v, by columns */
    uint8_t *q, *s, *p, *k, *v;
};

static bool has(const struct walk *w, enum asc_channel ch, int kv, int row, int col)
{
    return (*onset_cell(w->map, ch, kv, row, col) & w->bits) != 0;
}

static bool has_before(const struct walk *w, int step, enum asc_channel ch, int row, int col)
{
    const int before = w->map->steps[step].before;
    return before >= 0 && has(w, ch, w->map->steps[before].kv, row, col);
}

/* With U recorded behind its rescaling it has the alpha of the step behind. */
static bool alpha_of_u_has(const struct walk *w, int step, int row)
{
    const struct case_step *at = &w->map->steps[step];
    if (w->map->c->conventions.u_phase != ASC_U_RESCALED)
        return has(w, asc_alpha, at->kv, row, 0);
    return at->behind >= 0 && has(w, asc_alpha, w->map->steps[at->behind].kv, row, 0);
}

static bool operand_has(const struct walk *w, int step, enum asc_channel ch, int row, int col)
{
    const struct oracle_case *c = w->map->c;
    const int kv = w->map->steps[step].kv;
    switch (ch) {
    case asc_s: /* a key that the row does not see has no say */
        return (w->q[row] || w->k[col]) && schedule_shows(c, row, kv * c->bc + col);
    case asc_m:
        return w->s[row] || has_before(w, step, asc_m, row, 0);
    case asc_alpha:
        return has(w, asc_m, kv, row, 0) || has_before(w, step, asc_m, row, 0);
    case asc_p:
        return has(w, asc_s, kv, row, col) || has(w, asc_m, kv, row, 0);
    case asc_l:
        return w->p[row] || has(w, asc_alpha, kv, row, 0) || has_before(w, step, asc_l, row, 0);
    case asc_u:
        return w->p[row] || w->v[col] || alpha_of_u_has(w, step, row) || has_before(w, step, asc_u, row, col) ||
               (c->conventions.u_norm == ASC_U_NORM_TILE &&
                (has(w, asc_l, kv, row, 0) || has_before(w, step, asc_l, row, 0)));
    default:
        return false;
    }
}

/* o and lse are made of what every split ends with. */
static bool end_has(const struct walk *w, enum asc_channel ch, int row, int col)
{
    for (int i = 0; i < w->map->n_steps; i++) {
        const struct case_step *step = &w->map->steps[i];
        const bool merges = w->map->c->kv_splits > 1;
        if (step->behind >= 0)
            continue;
        if (has(w, asc_l, step->kv, row, 0) || (ch == asc_o && has(w, asc_u, step->kv, row, col)) ||
            ((ch == asc_lse || merges) && has(w, asc_m, step->kv, row, 0)))
            return true;
    }
    return false;
}

static void walk_stage(struct walk *w, int step, enum asc_channel ch)
{
    const int kv = w->map->steps[step].kv, cols = onset_cols(w->map, ch, kv);
    for (int r = w->first_row; r < w->first_row + w->rows; r++) {
        uint8_t any = 0;
        for (int col = 0; col < cols; col++) {
            w->visit(w->ctx, step, ch, r, col, operand_has(w, step, ch, r, col));
            any |= (uint8_t)has(w, ch, kv, r, col);
        }
        if (ch == asc_s)
            w->s[r] = any;
        if (ch == asc_p)
            w->p[r] = any;
    }
}

static void walk_inputs(struct walk *w, int step, enum asc_channel ch)
{
    const int kv = step < 0 ? 0 : w->map->steps[step].kv, rows = onset_rows(w->map, ch, kv);
    const int cols = onset_cols(w->map, ch, kv);
    memset(w->v, 0, ch == asc_v ? (size_t)cols : 0);
    for (int r = 0; r < rows; r++) {
        uint8_t any = 0;
        for (int col = 0; col < cols; col++) {
            w->visit(w->ctx, step, ch, r, col, 0);
            const uint8_t it = (uint8_t)has(w, ch, kv, r, col);
            any |= it;
            if (ch == asc_v)
                w->v[col] |= it;
        }
        if (ch == asc_q)
            w->q[r] = any;
        if (ch == asc_k)
            w->k[r] = any;
    }
}

static int walk(struct walk *w, int first_step)
{
    static const enum asc_channel stages[] = {asc_s, asc_m, asc_alpha, asc_p, asc_l, asc_u};
    static const enum asc_channel ends[] = {asc_o, asc_lse};
    const size_t rows = (size_t)w->map->rows, keys = (size_t)w->map->c->bc, cols = (size_t)w->map->c->head_dim_v;
    uint8_t *room = calloc(3 * rows + keys + cols, 1);
    if (!room)
        return -1;
    w->q = room;
    w->s = room + rows;
    w->p = room + 2 * rows;
    w->k = room + 3 * rows;
    w->v = room + 3 * rows + keys;
    walk_inputs(w, -1, asc_q);
    for (int step = first_step; step < w->map->n_steps; step++) {
        if (!w->skips_keys) {
            walk_inputs(w, step, asc_k);
            walk_inputs(w, step, asc_v);
        }
        for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
            walk_stage(w, step, stages[i]);
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (int r = w->first_row; r < w->first_row + w->rows; r++)
            for (int col = 0; col < onset_cols(w->map, ends[i], 0); col++)
                w->visit(w->ctx, -1, ends[i], r, col, end_has(w, ends[i], r, col));
    free(room);
    return 0;
}

struct finding_roots {
    struct onset_map *map;
    struct onset *out;
    struct onset_root last; /* the run of elements that the next one may belong to */
    int has_last;
    int kept[ASC_CHANNELS];
    int steps[ONSET_KEPT]; /* of out->first */
};

/* What the mask leaves of the row up to the root. */
static void count_keys(const struct onset_map *map, int step, struct onset_root *root)
{
    const struct oracle_case *c = map->c;
    root->keys = root->keys_so_far = onset_by_keys(root->channel) || root->channel == asc_q ? -1 : 0;
    if (root->keys < 0)
        return;
    if (step < 0) {
        root->keys = root->keys_so_far = schedule_keys(c, root->row);
        return;
    }
    for (int i = step; i >= 0; i = map->steps[i].before) {
        const int kv = map->steps[i].kv, n = schedule_keys_of(c, root->row, kv);
        root->keys = i == step ? n : root->keys;
        root->keys_so_far += n;
    }
}

static void add_root(struct finding_roots *f, int step, enum asc_channel ch, int row, int col)
{
    struct onset *out = f->out;
    struct onset_root root = {.channel = ch, .kv = step < 0 ? 0 : f->map->steps[step].kv, .row = row, .col = col};
    root.members = 1;
    root.last = ch;
    root.last_kv = root.kv;
    root.reached_row = root.reached_col = -1;
    count_keys(f->map, step, &root);
    onset_explain(f->map, step, &root);
    *onset_cell(f->map, ch, root.kv, row, col) |= (uint16_t)(CELL_ROOT | (int)root.origin << CELL_RULE);
    out->roots++;
    out->of_origin[root.origin]++;
    out->of_stage[ch]++;
    const bool same = f->has_last && f->last.channel == ch && f->last.kv == root.kv && f->last.row == row;
    if (same && f->last.origin == root.origin) {
        if (f->last.members > 0)
            out->first[out->n - 1].members++;
        return;
    }
    f->has_last = 1;
    f->last = root;
    f->last.members = f->kept[ch] < ONSET_PER_STAGE;
    if (f->kept[ch]++ < ONSET_PER_STAGE) {
        f->steps[out->n] = step;
        out->first[out->n++] = root;
    }
}

static void look_for_roots(void *ctx, int step, enum asc_channel ch, int row, int col, int operand_bad)
{
    struct finding_roots *f = ctx;
    uint16_t *cell = onset_cell(f->map, ch, step < 0 ? 0 : f->map->steps[step].kv, row, col);
    if (operand_bad && !(*cell & CELL_FINITE))
        *cell |= *cell & CELL_UNREAL ? CELL_BAD : CELL_PASSES;
    else if (*cell & CELL_BAD)
        add_root(f, step, ch, row, col);
    if (*cell & CELL_BAD && ch == asc_o)
        f->out->outputs++;
}

struct following {
    struct onset_map *map;
    struct onset_root *root;
};

static void follow(void *ctx, int step, enum asc_channel ch, int row, int col, int operand_reached)
{
    struct following *f = ctx;
    struct onset_root *root = f->root;
    const int kv = step < 0 ? 0 : f->map->steps[step].kv;
    uint16_t *cell = onset_cell(f->map, ch, kv, row, col);
    if (operand_reached && *cell & (CELL_BAD | CELL_PASSES))
        *cell |= CELL_REACHED;
    if (!(*cell & CELL_REACHED) || !(*cell & CELL_BAD))
        return;
    struct onset_hop *hop = &root->chain[ch];
    if (hop->elements++ == 0)
        hop->first_kv = kv;
    hop->last_kv = kv;
    if (ch != asc_lse || root->last != asc_o) { /* the output is what counts, where it was reached */
        root->last = ch;
        root->last_kv = kv;
    }
    if (ch != asc_o)
        return;
    if (root->reached == 0) {
        root->reached_row = row;
        root->reached_col = col;
    }
    root->reached++;
}

static void count_rows(const struct onset_map *map, struct onset_root *root)
{
    for (int r = 0; r < map->rows; r++) {
        int any = 0;
        for (int col = 0; col < map->c->head_dim_v; col++)
            any |= *onset_cell(map, asc_o, 0, r, col) & CELL_REACHED;
        root->reached_rows += any != 0;
    }
}

/* A root of k or v may reach all rows of the q tile, any other its own. */
static int follow_root(struct onset_map *map, struct onset_root *root, int step)
{
    struct following f = {map, root};
    const int all = onset_by_keys(root->channel);
    struct walk w = {.map = map,
                     .bits = CELL_REACHED,
                     .first_row = all ? 0 : root->row,
                     .rows = all ? map->rows : 1,
                     .skips_keys = !all,
                     .visit = follow,
                     .ctx = &f};
    int left = root->members;
    for (int col = root->col; col < onset_cols(map, root->channel, root->kv) && left > 0; col++) {
        uint16_t *cell = onset_cell(map, root->channel, root->kv, root->row, col);
        if (!(*cell & CELL_ROOT) || *cell >> CELL_RULE != (int)root->origin)
            continue;
        *cell |= CELL_REACHED;
        left--;
    }
    const bool at_end = step < 0 && root->channel != asc_q;
    const int failed = walk(&w, at_end ? map->n_steps : step > 0 ? step : 0);
    count_rows(map, root);
    for (size_t i = 0; i < map->n_cells; i++)
        map->cells[i] &= (uint16_t)~CELL_REACHED;
    return failed;
}

int onset_case(const struct oracle_case *c, struct judge_scratch *scratch, struct onset *out)
{
    struct onset_map map;
    memset(out, 0, sizeof *out);
    if (c->fed)
        return 0;
    struct finding_roots f = {.map = &map, .out = out};
    struct walk w = {
        .map = &map, .bits = CELL_BAD | CELL_PASSES, .rows = c->in_q.rows, .visit = look_for_roots, .ctx = &f};
    int failed = map_make(c, scratch, &map) != 0 || judge_each(map.c, map.s, note_tile, &map) != 0 ||
                 note_inputs(&map) != 0 || walk(&w, 0) != 0;
    for (int i = 0; i < out->n && !failed; i++)
        failed = follow_root(&map, &out->first[i], f.steps[i]);
    map_free(&map);
    return failed ? -1 : 0;
}
