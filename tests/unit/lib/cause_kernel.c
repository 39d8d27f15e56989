/* The test kernel of causes: its inputs, and a run from the first tile to the last. */
#include "tests/unit/lib/cause_parts.h"

#include <stdlib.h>
#include <string.h>

static void enter_stage(struct run *run, enum asc_channel ch)
{
    if (run->spec.also)
        run->spec.mistake = ch >= run->spec.also_from ? run->spec.also : run->first;
}

static uint16_t *test_input(const struct spec *s, int rows, uint64_t seed, float times)
{
    const size_t n = (size_t)rows * (size_t)s->head_dim;
    uint64_t state = seed * 7919 + s->seed;
    uint16_t *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++)
        dtype_store(DTYPE_F16, data, i, test_value(s->fill, i, s->head_dim, &state) * (double)times);
    return data;
}

void load_tile(const struct run *run, const uint16_t *from, int head, int first, float *to)
{
    const struct spec *s = &run->spec;
    for (int i = 0; i < s->bc * s->head_dim; i++) {
        const int row = first + i / s->head_dim;
        const size_t at = (size_t)(head * s->kv_len + row) * (size_t)s->head_dim + (size_t)(i % s->head_dim);
        to[i] = row >= 0 && row < s->kv_len ? (float)dtype_load(DTYPE_F16, from, at) : 0;
    }
}

void load_next(const struct run *run, const uint16_t *from, const struct tile *t, float *to)
{
    const struct spec *s = &run->spec;
    load_tile(run, from, OWN_HEAD, t->next >= 0 ? t->next * s->bc : s->kv_len, to);
    for (int i = 0; t->next < 0 && i < s->bc * s->head_dim; i++)
        to[i] = 0;
}

void transpose_blocks(const struct run *run, const float *from, float *to)
{
    const int D = run->spec.head_dim;
    for (int i = 0; i < run->spec.bc * D; i++) {
        const int row = i / D, col = i % D;
        to[i] = from[(row / 8 * 8 + col % 8) * D + col / 8 * 8 + row % 8];
    }
}

/* Returns what the kernel goes on with. */
static float record(const struct run *run, const struct slot *slot, enum asc_channel ch, int kv, size_t i, float x)
{
    const int at = (channel_per_kv(ch) ? kv : 0) * ASC_CHANNELS + (int)ch;
    const enum dtype t = slot->captured[at].dtype;
    dtype_store(t, slot->arrays[at], i, (double)x);
    if (!run->feed || (int)ch >= run->spec.isolated)
        return x;
    const void *fed = run->feed->slots[slot->c.q_tile].arrays[at];
    return dtype_is_unwritten(t, fed, i) ? x : (float)dtype_load(t, fed, i);
}

static void run_row(struct run *run, const struct slot *slot, struct state *st, struct tile *t, int r)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim, bc = s->bc, lanes = lanes_of(s);
    const int real = st->row0 + r < s->q_len;
    enter_stage(run, asc_m);
    float top = mistaken_start(run, st->m[r]);
    enter_stage(run, asc_s);
    for (int c = 0; c < bc; c++) {
        t->score[c] = mistaken_score(run, st, t, r, c);
        if (real && s->shows_unmasked)
            record(run, slot, asc_s, t->kv, (size_t)(r * bc + c),
                   capped(run, dot_product(run, st, t, r, c) * unit_factor(run)));
        else if (real)
            t->score[c] = record(run, slot, asc_s, t->kv, (size_t)(r * bc + c), t->score[c]);
    }
    enter_stage(run, asc_m);
    top = lagging(run, st->m[r], mistaken_maximum(run, st, t, r, top));
    if (real)
        top = record(run, slot, asc_m, t->kv, (size_t)r, top);
    enter_stage(run, asc_alpha);
    float alpha = mistaken_alpha(run, st->m[r], top);
    if (real)
        alpha = record(run, slot, asc_alpha, t->kv, (size_t)r, alpha);
    enter_stage(run, asc_p);
    float sum[MAX_LANES] = {0}, before_rounding[MAX_LANES] = {0};
    for (int c = 0; c < bc; c++) {
        const float p = mistaken_weight(run, st, t, r, c, top);
        t->p[c] = s->p_dtype == DTYPE_F32 ? p : round_to(s->p_dtype, p);
        if (real)
            t->p[c] = record(run, slot, asc_p, t->kv, (size_t)(r * bc + c), t->p[c]);
        before_rounding[c % lanes] += p;
        t->pv_p[c] = round_to(pv_type(s), t->p[c]);
    }
    enter_stage(run, asc_l);
    mistaken_sum(run, t, r, top, sum);
    memcpy(st->l_last + r * lanes, st->l + r * lanes, (size_t)lanes * sizeof(float));
    memcpy(st->u_last + r * D, st->u + r * D, (size_t)D * sizeof(float));
    for (ptrdiff_t lane = 0; lane < lanes; lane++) {
        float *l = &st->l[r * lanes + lane];
        *l = mistaken_l(run, st, t, r, (int)lane, alpha, s->sums_unrounded ? before_rounding[lane] : sum[lane]);
        if (real)
            *l = record(run, slot, asc_l, t->kv, (size_t)(r * lanes + lane), *l);
    }
    enter_stage(run, asc_u);
    for (int d = 0; d < D; d++) {
        float *u = &st->u[r * D + d];
        *u *= mistaken_u_factor(s, alpha, st->m[r], r);
        if (real && s->late_u && t->before >= 0)
            *u = record(run, slot, asc_u, t->before, (size_t)(r * D + d), *u);
    }
    mistaken_u(run, st, t, r, alpha);
    for (int d = 0; d < D && real && !s->late_u; d++)
        st->u[r * D + d] = record(run, slot, asc_u, t->kv, (size_t)(r * D + d), st->u[r * D + d]);
    st->m[r] = top;
}

static void run_tile(struct run *run, const struct slot *slot, struct state *st, int i)
{
    const struct spec *s = &run->spec;
    const size_t n = (size_t)s->bc * (size_t)s->head_dim;
    const int kv = slot->c.order[i], first = kv * s->bc;
    struct tile t = {.kv = kv,
                     .first = first,
                     .valid = s->kv_len - first < s->bc ? s->kv_len - first : s->bc,
                     .before = i > 0 ? slot->c.order[i - 1] : -1,
                     .before2 = i > 1 ? slot->c.order[i - 2] : -1,
                     .next = i + 1 < slot->c.n_visited ? slot->c.order[i + 1] : -1,
                     .start = slot->c.order[0],
                     .k = malloc(n * sizeof(float)),
                     .v = malloc(n * sizeof(float)),
                     .other = malloc(n * sizeof(float)),
                     .other_v = malloc(n * sizeof(float)),
                     .score = malloc((size_t)s->bc * sizeof(float)),
                     .p = malloc((size_t)s->bc * sizeof(float)),
                     .pv_p = malloc((size_t)s->bc * sizeof(float))};
    load_tile(run, run->k, OWN_HEAD, first, t.k);
    load_tile(run, run->v, OWN_HEAD, first, t.v);
    enter_stage(run, asc_k);
    mistaken_tile(run, &t);
    for (size_t j = 0; j < n; j++) {
        t.k[j] = record(run, slot, asc_k, kv, j, t.k[j]);
        t.v[j] = record(run, slot, asc_v, kv, j, t.v[j]);
    }
    for (int r = 0; r < s->br; r++)
        run_row(run, slot, st, &t, r);
    free(t.k);
    free(t.v);
    free(t.other);
    free(t.other_v);
    free(t.score);
    free(t.p);
    free(t.pv_p);
}

static void run_end(struct run *run, const struct slot *slot, const struct state *st, int last_kv)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    for (int i = 0; i < s->br * D && s->late_u && last_kv >= 0; i++)
        if (st->row0 + i / D < s->q_len)
            st->u[i] = record(run, slot, asc_u, last_kv, (size_t)i, st->u[i]);
    for (int r = 0; r < s->br && st->row0 + r < s->q_len; r++) {
        enter_stage(run, asc_lse);
        record(run, slot, asc_lse, 0, (size_t)r, mistaken_lse(run, st, r));
        enter_stage(run, asc_o);
        for (int d = 0; d < D; d++)
            record(run, slot, asc_o, 0, (size_t)(r * D + d), mistaken_o(run, st, r, d));
    }
}

static void make_arrays(const struct run *run, struct slot *slot, int rows)
{
    const struct spec *s = &run->spec;
    const struct asc_plan plan = {.br = s->br, .bc = s->bc, .l_lanes = s->lanes};
    const struct asc_problem problem = {.head_dim = s->head_dim, .head_dim_v = s->head_dim, .kv_len = s->kv_len};
    const int tiles = slot->c.kv_tiles;
    for (int i = 0; i < tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        const int kv = i / ASC_CHANNELS;
        enum dtype t = DTYPE_F32;
        if (ch == asc_q || ch == asc_k || ch == asc_v || ch == asc_o)
            t = DTYPE_F16;
        if (ch == asc_p)
            t = s->p_dtype;
        if (kv > 0 && !channel_per_kv(ch))
            continue;
        slot->arrays[i] =
            test_tile(&plan, &problem, ch, t, kv, rows, &slot->captured[i], test_padding(slot->padding, tiles, ch, kv));
    }
}

/* Points the case at what the right kernel has recorded. */
static void feed_slot(const struct run *run, struct slot *slot)
{
    const struct slot *from = &run->feed->slots[slot->c.q_tile];
    const int n = slot->c.kv_tiles * ASC_CHANNELS;
    slot->fed = calloc((size_t)n, sizeof *slot->fed);
    for (int i = 0; i < n; i++)
        if (i % ASC_CHANNELS < run->spec.isolated)
            slot->fed[i] = from->captured[i];
    slot->c.fed = slot->fed;
    slot->c.fed_s_padding = from->padding;
}

static void run_slot(struct run *run, int q_tile)
{
    const struct spec *s = &run->spec;
    struct slot *slot = &run->slots[q_tile];
    const ptrdiff_t D = s->head_dim;
    const int tiles = (s->kv_len + s->bc - 1) / s->bc, row0 = q_tile * s->br;
    const int rows = s->q_len - row0 < s->br ? s->q_len - row0 : s->br;
    slot->captured = calloc((size_t)tiles * ASC_CHANNELS, sizeof *slot->captured);
    slot->padding = calloc((size_t)tiles * 3, sizeof *slot->padding);
    slot->arrays = calloc((size_t)tiles * ASC_CHANNELS, sizeof *slot->arrays);
    slot->order = calloc((size_t)tiles, sizeof *slot->order);
    slot->out = calloc((size_t)tiles * ASC_CHANNELS, sizeof *slot->out);
    int visited = 0;
    for (int i = 0; i < tiles; i++) {
        const int kv = s->backward ? tiles - 1 - i : i;
        if (!s->skips_masked || tile_is_seen(run, row0, rows, kv))
            slot->order[visited++] = kv;
    }
    slot->c = (struct oracle_case){.scale = (double)run->scale,
                                   .causal = (int)s->causal,
                                   .softcap = (double)s->softcap,
                                   .window_left = s->has_window ? s->window_left : -1,
                                   .window_right = s->has_window ? s->window_right : -1,
                                   .q_len = s->q_len,
                                   .kv_len = s->kv_len,
                                   .head_dim = s->head_dim,
                                   .head_dim_v = s->head_dim,
                                   .br = s->br,
                                   .bc = s->bc,
                                   .q_tile = q_tile,
                                   .o_dtype = DTYPE_F16,
                                   .conventions = conventions_of(s),
                                   .kv_tiles = tiles,
                                   .captured = slot->captured,
                                   .s_padding = slot->padding,
                                   .p_padding = slot->padding + tiles,
                                   .order = slot->order,
                                   .n_visited = visited,
                                   .in_q = {run->q + (size_t)(row0 * D), DTYPE_F16, D, rows, D}};
    if (s->misdeclared)
        slot->c.conventions = s->declared;
    const size_t head = (size_t)s->kv_len * (size_t)D;
    slot->c.in_k = (struct matrix){run->k + OWN_HEAD * head, DTYPE_F16, D, s->kv_len, D};
    slot->c.in_v = (struct matrix){run->v + OWN_HEAD * head, DTYPE_F16, D, s->kv_len, D};
    make_arrays(run, slot, rows);
    if (run->feed)
        feed_slot(run, slot);
    const size_t values = (size_t)s->br * (size_t)D;
    struct state st = {.row0 = row0,
                       .q = calloc(values, sizeof(float)),
                       .m = calloc((size_t)s->br, sizeof(float)),
                       .l = calloc((size_t)s->br * (size_t)lanes_of(s), sizeof(float)),
                       .u = calloc(values, sizeof(float)),
                       .l_last = calloc((size_t)s->br * (size_t)lanes_of(s), sizeof(float)),
                       .u_last = calloc(values, sizeof(float))};
    for (int r = 0; r < s->br; r++) {
        st.m[r] = -INFINITY;
        for (int d = 0; d < D; d++) {
            const size_t i = (size_t)(r * D + d);
            const float q = r < rows ? mistaken_q(run, row0, rows, r, d) : 0;
            st.q[i] = record(run, slot, asc_q, 0, i, s->folds_scale ? round_to(DTYPE_F16, q * run->scale) : q);
        }
    }
    for (int i = 0; i < visited; i++)
        run_tile(run, slot, &st, i);
    run_end(run, slot, &st, visited ? slot->order[visited - 1] : -1);
    free(st.q);
    free(st.m);
    free(st.l);
    free(st.u);
    free(st.l_last);
    free(st.u_last);
}

struct run *run_kernel(const struct spec *s)
{
    struct run *run = calloc(1, sizeof *run);
    run->spec = *s;
    run->first = s->mistake;
    run->scale = 1 / sqrtf((float)s->head_dim);
    run->random = s->seed;
    run->n_slots = (s->q_len + s->br - 1) / s->br;
    run->slots = calloc((size_t)run->n_slots, sizeof *run->slots);
    run->q = test_input(s, 2 * s->q_len, 1, 1); /* of this head and of the one behind */
    run->k = test_input(s, KV_HEADS * s->kv_len, 2, 1);
    run->v = test_input(s, KV_HEADS * s->kv_len, 3, s->v_times);
    if (s->isolated) {
        struct spec right = *s;
        right.isolated = 0;
        right.mistake = RIGHT;
        run->feed = run_kernel(&right);
    }
    for (int i = 0; i < run->n_slots; i++)
        run_slot(run, i);
    return run;
}

void run_free(struct run *run)
{
    if (!run)
        return;
    run_free(run->feed);
    for (int i = 0; i < run->n_slots; i++) {
        struct slot *slot = &run->slots[i];
        for (int j = 0; j < slot->c.kv_tiles * ASC_CHANNELS; j++)
            free(slot->arrays[j]);
        free(slot->arrays);
        free(slot->captured);
        free(slot->padding);
        free(slot->fed);
        free(slot->order);
        free(slot->out);
    }
    free(run->slots);
    free(run->q);
    free(run->k);
    free(run->v);
    free(run);
}
