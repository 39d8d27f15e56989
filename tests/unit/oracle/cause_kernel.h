/* A streaming-softmax kernel in plain C f32 that commits one mistake, in values it computes itself: what causes are
   tried on. A run is one head, all its q tiles; three other kv heads lie beside its own. */
#ifndef TEST_CAUSE_KERNEL_H
#define TEST_CAUSE_KERNEL_H

#include "engine/base/tensor_core.h"
#include "engine/oracle/causes/causes.h"
#include "engine/oracle/oracle.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum fill {
    FILL_NORMAL,
    FILL_LARGE,
    FILL_OUTLIERS,
    FILL_POSITIVE,
    FILL_ARANGE,
    FILL_ZEROS,
    FILL_CONSTANT,
    FILL_ONE_HOT
};

enum mistake {
    RIGHT,
#define LISTED(id, ...) id,
#include "tests/unit/oracle/causes_listed.def"
#undef LISTED
#define ALIKE(id, ...) id,
#include "tests/unit/oracle/causes_alike.def"
#undef ALIKE
    LISTED_END,
#define UNLISTED(id) id,
#include "tests/unit/oracle/causes_unlisted.def"
#undef UNLISTED
    MISTAKES
};

enum { KV_HEADS = 4, OWN_HEAD = 1 };

struct spec {
    int q_len, kv_len, head_dim, br, bc;
    enum asc_causal causal;
    enum asc_unit unit; /* of s and m */
    enum dtype p_dtype; /* recorded P */
    enum fill fill;
    int backward;       /* visits kv tiles from the last to the first, and sums from the last term to the first */
    int skips_masked;   /* leaves out tiles that no row sees */
    float v_times;      /* of V */
    int p_offset;       /* P carries the factor 2^p_offset */
    int sums_unrounded; /* l sums P before it is rounded */
    int misdeclared;    /* 1: `declared` stands in for what the kernel does */
    struct asc_conventions declared;
    int has_window, window_left, window_right;
    float softcap;
    int lanes;                    /* partial sums of l in each row; 0: its complete sum */
    int late_u;                   /* U is recorded once the next tile has rescaled it */
    enum asc_p_rounded p_rounded; /* P on its way to V */
    int sums_rounded;             /* l sums that P */
    int tensor_cores;             /* products as those of an H100 compute them, P in f16 */
    int folds_scale;              /* Q holds the scale; unit scaled */
    int lse_base2;
    int alpha_one;      /* of a row without a maximum */
    float m_lag;        /* how far m may stay behind, in log2 units */
    float masked_value; /* the score of a masked key; 0: -inf */
    int shows_unmasked; /* S is recorded before it is masked */
    int isolated;       /* 1 + channel: everything up to it is fed what the right kernel has computed */
    unsigned seed;
    enum mistake mistake;
    enum mistake also;          /* a second one, or RIGHT */
    enum asc_channel also_from; /* the stage from which on that one is made, and the first one no more */
};

/* One q tile of a run. */
struct slot {
    struct oracle_case c;
    struct matrix *captured, *padding; /* owned */
    struct matrix *fed;                /* owned; NULL: nothing is fed */
    void **arrays;                     /* owned, [kv_tiles][ASC_CHANNELS] full tiles */
    int *order;                        /* owned */
    struct tile_verdicts *out;         /* owned */
};

struct run {
    struct spec spec;
    float scale;
    int n_slots;
    struct slot *slots;  /* owned */
    uint16_t *q, *k, *v; /* owned, f16: [q_len][D], [KV_HEADS][kv_len][D] */
    uint64_t random;
    struct run *feed;   /* owned: the run whose values are fed, or NULL */
    enum mistake first; /* spec.mistake is that of the stage at hand, where there are two */
};

static inline void enter_stage(struct run *run, enum asc_channel ch)
{
    if (run->spec.also)
        run->spec.mistake = ch >= run->spec.also_from ? run->spec.also : run->first;
}

static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline double test_uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

static inline double test_normal(uint64_t *state)
{
    double sum = -6; /* twelve uniform values: near enough, and the same bits everywhere */
    for (int i = 0; i < 12; i++)
        sum += test_uniform(state);
    return sum;
}

static inline uint16_t *test_input(const struct spec *s, int rows, uint64_t seed, float times)
{
    const size_t n = (size_t)rows * (size_t)s->head_dim;
    uint64_t state = seed * 7919 + s->seed;
    uint16_t *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++) {
        double x = test_normal(&state);
        switch (s->fill) {
        case FILL_LARGE:
            x *= sqrt(30);
            break;
        case FILL_OUTLIERS:
            x *= test_random(&state) % 64 == 0 ? 30 : 1;
            break;
        case FILL_POSITIVE:
            x = test_uniform(&state);
            break;
        case FILL_ARANGE:
            x = ((double)(i % 251) - 125) / 128;
            break;
        case FILL_ZEROS:
            x = 0;
            break;
        case FILL_CONSTANT:
            x = 0.5;
            break;
        case FILL_ONE_HOT:
            x = i / (size_t)s->head_dim % (size_t)s->head_dim == i % (size_t)s->head_dim;
            break;
        default:
            break;
        }
        dtype_store(DTYPE_F16, data, i, x * (double)times);
    }
    return data;
}

static inline float round_f64_to(enum dtype t, double x)
{
    uint64_t room = 0;
    dtype_store(t, &room, 0, x);
    return (float)dtype_load(t, &room, 0);
}

static inline float round_to(enum dtype t, float x)
{
    return round_f64_to(t, (double)x);
}

static inline float truncated_f16(float x)
{
    uint16_t code = 0;
    dtype_store(DTYPE_F16, &code, 0, (double)x);
    if (fabs(dtype_load(DTYPE_F16, &code, 0)) > fabs((double)x))
        code--;
    return (float)dtype_load(DTYPE_F16, &code, 0);
}

struct tile {
    int kv, first, valid; /* which one, its first key, its keys */
    int before, before2;  /* kv tiles visited before, or -1 */
    int next, start;      /* the one visited next, or -1; the one visited first */
    float *k, *v;         /* [bc][D] as recorded */
    float *other;         /* [bc][D] what a mistake reads in their place */
    float *score, *p;     /* [bc] of a row */
    float *pv_p;          /* [bc] P as the product with V takes it */
};

struct state {
    int row0;      /* first query of the q tile */
    float *q;      /* [br][D] */
    float *m;      /* [br] */
    float *l;      /* [br][lanes] */
    float *u;      /* [br][D] */
    float *l_last; /* [br][lanes] l before the last tile */
    float *u_last; /* [br][D] */
};

static inline void load_tile(const struct run *run, const uint16_t *from, int head, int first, float *to)
{
    const struct spec *s = &run->spec;
    for (int i = 0; i < s->bc * s->head_dim; i++) {
        const int row = first + i / s->head_dim;
        const size_t at = (size_t)(head * s->kv_len + row) * (size_t)s->head_dim + (size_t)(i % s->head_dim);
        to[i] = row >= 0 && row < s->kv_len ? (float)dtype_load(DTYPE_F16, from, at) : 0;
    }
}

static inline void rotate_rows(const struct run *run, float *x, float *room, int by)
{
    const ptrdiff_t bc = run->spec.bc, D = run->spec.head_dim;
    memcpy(room, x, (size_t)(bc * D) * sizeof *x);
    for (int i = 0; i < bc * D; i++)
        x[i] = room[(i / D + by) % bc * D + i % D];
}

/* Zeros where there is no such tile. */
static inline void load_next(const struct run *run, const uint16_t *from, const struct tile *t, float *to)
{
    const struct spec *s = &run->spec;
    load_tile(run, from, OWN_HEAD, t->next >= 0 ? t->next * s->bc : s->kv_len, to);
    for (int i = 0; t->next < 0 && i < s->bc * s->head_dim; i++)
        to[i] = 0;
}

static inline void transpose_blocks(const struct run *run, const float *from, float *to)
{
    const int D = run->spec.head_dim;
    for (int i = 0; i < run->spec.bc * D; i++) {
        const int row = i / D, col = i % D;
        to[i] = from[(row / 8 * 8 + col % 8) * D + col / 8 * 8 + row % 8];
    }
}

#include "tests/unit/oracle/cause_conventions.h"
#include "tests/unit/oracle/cause_mistakes.h"

/* Returns what the kernel goes on with. */
static inline float record(const struct run *run, const struct slot *slot, enum asc_channel ch, int kv, size_t i,
                           float x)
{
    const int at = (channel_per_kv(ch) ? kv : 0) * ASC_CHANNELS + (int)ch;
    const enum dtype t = slot->captured[at].dtype;
    dtype_store(t, slot->arrays[at], i, (double)x);
    if (!run->feed || (int)ch >= run->spec.isolated)
        return x;
    const void *fed = run->feed->slots[slot->c.q_tile].arrays[at];
    return dtype_is_unwritten(t, fed, i) ? x : (float)dtype_load(t, fed, i);
}

static inline void run_row(struct run *run, const struct slot *slot, struct state *st, struct tile *t, int r)
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

static inline void run_tile(struct run *run, const struct slot *slot, struct state *st, int i)
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
    free(t.score);
    free(t.p);
    free(t.pv_p);
}

static inline void run_end(struct run *run, const struct slot *slot, const struct state *st, int last_kv)
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

static inline void make_arrays(const struct run *run, struct slot *slot, int rows)
{
    const struct spec *s = &run->spec;
    const struct asc_plan plan = {.br = s->br, .bc = s->bc, .l_lanes = s->lanes};
    const struct asc_problem problem = {.head_dim = s->head_dim};
    const int tiles = slot->c.kv_tiles;
    for (int i = 0; i < tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        const int kv = i / ASC_CHANNELS, full = channel_rows(ch, &plan), cols = channel_cols(ch, &plan, &problem);
        const int left = s->kv_len - kv * s->bc < s->bc ? s->kv_len - kv * s->bc : s->bc;
        enum dtype t = DTYPE_F32;
        if (ch == asc_q || ch == asc_k || ch == asc_v || ch == asc_o)
            t = DTYPE_F16;
        if (ch == asc_p)
            t = s->p_dtype;
        if (kv > 0 && !channel_per_kv(ch))
            continue;
        const size_t bytes = (size_t)full * (size_t)cols * dtype_bytes(t);
        const uint32_t pattern = UNWRITTEN_32;
        slot->arrays[i] = malloc(bytes + sizeof pattern);
        for (size_t b = 0; b < bytes; b += sizeof pattern)
            memcpy((char *)slot->arrays[i] + b, &pattern, sizeof pattern);
        slot->captured[i] = (struct matrix){slot->arrays[i], t, cols, ch == asc_k || ch == asc_v ? left : rows,
                                            ch == asc_s || ch == asc_p ? left : cols};
        if (ch == asc_s && left < s->bc)
            slot->padding[kv] = (struct matrix){(float *)slot->arrays[i] + left, t, cols, rows, s->bc - left};
        if (ch == asc_p && left < s->bc)
            slot->padding[tiles + kv] =
                (struct matrix){(char *)slot->arrays[i] + (size_t)left * dtype_bytes(t), t, cols, rows, s->bc - left};
    }
}

/* Points the case at what the right kernel has recorded. */
static inline void feed_slot(const struct run *run, struct slot *slot)
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

static inline void run_slot(struct run *run, int q_tile)
{
    const struct spec *s = &run->spec;
    struct slot *slot = &run->slots[q_tile];
    const ptrdiff_t D = s->head_dim;
    const int tiles = (s->kv_len + s->bc - 1) / s->bc, row0 = q_tile * s->br;
    const int rows = s->q_len - row0 < s->br ? s->q_len - row0 : s->br;
    slot->captured = calloc((size_t)tiles * ASC_CHANNELS, sizeof *slot->captured);
    slot->padding = calloc((size_t)tiles * 2, sizeof *slot->padding);
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

static inline struct run *run_kernel(const struct spec *s)
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

static inline void run_free(struct run *run)
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

#endif
