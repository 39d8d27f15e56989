#include "engine/verdict/strides.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include "engine/trace/placed.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SLOTS = 48, SIGHTS = 4096, ROWS_OF_TILE = 8, RUN = 4, TOLD_LEAST = 16 };
#define IMAGE_MOST ((int64_t)1 << 22) /* elements: 32 MiB here, and 64 MiB of places; of more, nothing is said */

/* The memory that a tensor lies in, as the kernel was given it. */
struct image {
    const struct trace *t;
    struct placed own;
    enum asc_channel ch;
    double *value;  /* owned, [elements]; NaN: nobody's */
    int64_t *begin; /* owned, [batch]: rows of the sequences before */
    struct run_place *places;
    size_t n;
};

/* RUN elements, a column apart each, and where the first of them is. */
struct run_place {
    uint64_t hash;
    int64_t at;
};

/* Where a row of a tile was found. With pages, `batch` is the number of its page, here and below, and `row` counts in
   it. */
struct seen_row {
    int batch, head, row;
    int64_t at;
};

/* Element d of row `row` is at first + batch * b + head * h + row * r + col * d. */
struct step_reading {
    int64_t first;
    struct asc_strides stride;
    bool padded; /* rows are counted from the left padding on */
};

struct putting {
    struct image *image;
    const unsigned char *data;
    enum dtype dtype;
    int cols;
    int64_t col;
};

static void put_row(void *ctx, int64_t in_trace, int64_t of_kernel)
{
    const struct putting *p = ctx;
    for (int d = 0; d < p->cols; d++)
        p->image->value[of_kernel + p->col * d] = dtype_load(p->dtype, p->data, (size_t)(in_trace + d));
}

static int image_make(const struct trace *t, enum asc_channel ch, struct image *m)
{
    static const char letters[] = {'q', 'k', 'v'};
    const struct asc_problem *p = &t->problem;
    m->value = malloc((size_t)m->own.elements * sizeof *m->value);
    m->begin = calloc((size_t)p->batch + 1, sizeof *m->begin);
    if (!m->value || !m->begin)
        return -1;
    for (int b = 0; b < p->batch; b++)
        m->begin[b + 1] = m->begin[b] + problem_tensor_rows(&m->own.of, b);
    for (int64_t i = 0; i < m->own.elements; i++)
        m->value[i] = NAN;
    for (int i = 0; i < 3; i++) {
        if (p->lie != ASC_PACKED_QKV && i != (p->v_in_k && ch == asc_v ? TENSOR_K : (int)problem_tensor_of(ch)))
            continue;
        const struct placed part = placed_of(p, (enum problem_tensor_id)i);
        struct putting put = {.image = m, .cols = part.of.cols, .col = part.to.col};
        put.data = trace_tensor(t, letters[i], &put.dtype);
        if (put.data)
            placed_each_row(&part, put_row, &put);
    }
    return 0;
}

/* 0: holds a NaN. */
static uint64_t hash_of(const double run[RUN])
{
    double plain[RUN];
    for (int i = 0; i < RUN; i++) {
        if (isnan(run[i]))
            return 0;
        plain[i] = run[i] + 0.0; /* no negative zero */
    }
    const uint64_t hash = XXH3_64bits(plain, sizeof plain);
    return hash ? hash : 1;
}

static int by_hash(const void *a, const void *b)
{
    const struct run_place *x = a, *y = b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : 0;
}

static int index_runs(struct image *m, int64_t col)
{
    free(m->places);
    m->n = 0;
    m->places = malloc((size_t)(m->own.elements + 1) * sizeof *m->places);
    for (int64_t at = 0; m->places && at + (RUN - 1) * col < m->own.elements; at++) {
        const double run[RUN] = {m->value[at], m->value[at + col], m->value[at + 2 * col], m->value[at + 3 * col]};
        const uint64_t hash = hash_of(run);
        if (hash)
            m->places[m->n++] = (struct run_place){hash, at};
    }
    if (!m->places)
        return -1;
    qsort(m->places, m->n, sizeof *m->places, by_hash);
    return 0;
}

/* -1: nowhere, or at several places. */
static int64_t find_run(const struct image *m, uint64_t hash)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (m->places[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < m->n && m->places[low].hash == hash;
    return found && (low + 1 == m->n || m->places[low + 1].hash != hash) ? m->places[low].at : -1;
}

static double element(const struct matrix *tile, int row, int d)
{
    return dtype_load(tile->dtype, tile->data, (size_t)(row * tile->row_stride + d));
}

/* Where a row of a tile begins in memory. */
static int64_t look_up(const struct image *m, const struct matrix *tile, int row, int64_t col)
{
    for (int d = 0; d + RUN <= tile->cols; d += RUN) {
        const double run[RUN] = {element(tile, row, d), element(tile, row, d + 1), element(tile, row, d + 2),
                                 element(tile, row, d + 3)};
        const uint64_t hash = hash_of(run);
        const int64_t at = hash ? find_run(m, hash) : -1;
        if (at >= 0)
            return at - col * d;
    }
    return -1;
}

static int head_at(const struct image *m, const int32_t *place)
{
    return m->ch == asc_q ? place[1] : asc_kv_head(&m->t->problem, place[1], m->t->conventions.kv_head_map);
}

static int first_row(const struct image *m, const int32_t *place, int kv)
{
    return m->ch == asc_q ? place[2] * m->t->plan.br : kv * m->t->plan.bc;
}

/* A tile of values as the codes that they were, each by its own scale; NaN where a value is no multiple of it by a
   code: values may have been rounded since, to bf16 at most, and codes lie 2^-4 apart. NULL without memory. */
static float *codes_in(const struct image *m, const struct slot_case *c, const struct matrix *tile, int kv)
{
    const struct coding *coding = codes_of(&c->c, m->ch);
    const bool raw = codes_use(&c->c, m->ch) == CODES_RAW;
    const int first = m->ch == asc_q ? 0 : kv * c->c.bc;
    float *codes = malloc((size_t)(tile->rows * tile->cols + 1) * sizeof *codes);
    for (int i = 0; i < tile->rows * tile->cols && codes; i++) {
        const int r = i / tile->cols, d = i % tile->cols;
        const double scale = (raw ? 1 : codes_scale(coding, first + r, d)) * (m->ch == asc_q ? values_fold(&c->c) : 1);
        const double x = element(tile, r, d), code = bound_round(m->own.of.dtype, x / scale);
        codes[i] = fabs(code * scale - x) <= 0x1p-8 * fabs(x) ? (float)code : NAN;
    }
    return codes;
}

/* Calls see(ctx, tile, place, kv) for the tiles of some slots; false ends it. -1 without memory. */
static int each_tile(const struct judgement *j, const struct image *m,
                     bool (*see)(void *ctx, const struct matrix *tile, const int32_t *place, int kv), void *ctx)
{
    const int tiles = channel_per_kv(m->ch) ? j->kv_tiles : 1, n = j->n_slots < SLOTS ? j->n_slots : SLOTS;
    bool goes_on = true;
    for (int i = 0; i < n && goes_on; i++) {
        const int slot = (int)((int64_t)i * j->n_slots / n);
        struct slot_case c;
        if (!judgement_slot_done(j, slot))
            continue;
        if (slot_case_make(m->t, slot, &c) != 0)
            return -1;
        for (int kv = 0; kv < tiles && goes_on; kv++) {
            const struct matrix *tile = &c.captured[kv * ASC_CHANNELS + m->ch];
            struct matrix plain = *tile;
            float *codes = NULL;
            if (!tile->data || !trace_first_stamp(m->t, m->ch, slot, kv))
                continue;
            if (dtype_is_code(m->own.of.dtype)) {
                if (!(codes = codes_in(m, &c, tile, kv))) {
                    slot_case_free(&c);
                    return -1;
                }
                plain.data = codes;
                plain.dtype = DTYPE_F32;
                plain.row_stride = tile->cols;
            }
            goes_on = see(ctx, &plain, trace_slot_place(m->t, slot), kv);
            free(codes);
        }
        slot_case_free(&c);
    }
    return 0;
}

/* The sight of a row of a sequence, not looked up yet. */
static struct seen_row sight_of(const struct image *m, const int32_t *place, int row)
{
    const struct asc_problem *p = m->own.p;
    struct seen_row s = {place[0], head_at(m, place), row, -1};
    if (m->own.paged && row / p->page_size < asc_table_pages(p)) {
        s.batch = p->page_table[(int64_t)place[0] * asc_table_pages(p) + row / p->page_size];
        s.row = row % p->page_size;
    }
    return s;
}

struct looking {
    const struct image *m;
    int64_t col;
    struct seen_row *sights; /* [SIGHTS] */
    size_t n;
};

static bool look_at_tile(void *ctx, const struct matrix *tile, const int32_t *place, int kv)
{
    struct looking *l = ctx;
    const int step = 1 + tile->rows / ROWS_OF_TILE;
    for (int r = 0; r < tile->rows && l->n < SIGHTS; r += step) {
        struct seen_row s = sight_of(l->m, place, first_row(l->m, place, kv) + r);
        s.at = look_up(l->m, tile, r, l->col);
        if (s.at >= 0)
            l->sights[l->n++] = s;
    }
    return l->n < SIGHTS;
}

/* The row that the strides count: through the sequences, or behind a padding. */
static int64_t counted_row(const struct image *m, const struct step_reading *r, int batch, int row)
{
    const struct asc_problem *p = m->own.p;
    const int64_t pad = p->left_pad && r->padded && m->ch != asc_q ? p->kv_len - asc_kv_len(p, batch) : 0;
    return m->own.packed ? m->begin[batch] + row : row + pad;
}

static int64_t read_at(const struct image *m, const struct step_reading *r, const struct seen_row *s)
{
    const int64_t b = m->own.packed ? 0 : r->stride.batch * s->batch;
    return r->first + b + r->stride.head * s->head + r->stride.row * counted_row(m, r, s->batch, s->row);
}

/* A stride from two sights that differ in what it counts alone. */
static void solve(const struct image *m, const struct seen_row *sights, size_t n, struct step_reading *r, int which)
{
    for (size_t i = 0; i < n && which >= 0 && which < 3; i++)
        for (size_t k = i + 1; k < n && k < i + 1 + (size_t)SLOTS * ROWS_OF_TILE; k++) {
            const struct seen_row *a = &sights[i], *b = &sights[k];
            const int64_t apart[3] = {counted_row(m, r, b->batch, b->row) - counted_row(m, r, a->batch, a->row),
                                      b->head - a->head, m->own.packed ? 0 : b->batch - a->batch};
            const int64_t known =
                (which > 0 ? r->stride.row * apart[0] : 0) + (which > 1 ? r->stride.head * apart[1] : 0);
            bool others = true;
            for (int o = which + 1; o < 3; o++)
                others = others && apart[o] == 0;
            const int64_t by = b->at - a->at - known;
            if (!others || apart[which] == 0 || by % apart[which] != 0)
                continue;
            *(which == 0 ? &r->stride.row : which == 1 ? &r->stride.head : &r->stride.batch) = by / apart[which];
            return;
        }
}

/* Most of what was found is where the reading says: some rows are found by chance. */
static bool meets(const struct image *m, const struct step_reading *r, const struct seen_row *sights, size_t n)
{
    size_t met = 0;
    for (size_t i = 0; i < n; i++)
        met += read_at(m, r, &sights[i]) == sights[i].at;
    return n >= TOLD_LEAST && met * 50 >= n * 49;
}

struct checking {
    const struct image *m;
    const struct step_reading *r;
    bool holds;
};

static bool check_tile(void *ctx, const struct matrix *tile, const int32_t *place, int kv)
{
    struct checking *c = ctx;
    const struct image *m = c->m;
    for (int r = 0; r < tile->rows && c->holds; r++) {
        const struct seen_row s = sight_of(m, place, first_row(m, place, kv) + r);
        const int64_t at = read_at(m, c->r, &s);
        for (int d = 0; d < tile->cols && c->holds; d++) {
            const int64_t i = at + c->r->stride.col * d;
            const double got = element(tile, r, d), there = i >= 0 && i < m->own.elements ? m->value[i] : NAN;
            /* What lies between rows is NaN of values, and of codes any. */
            c->holds = i < 0 || i >= m->own.elements || got == there ||
                       (isnan(there) && (isnan(got) || dtype_is_code(m->own.of.dtype)));
        }
    }
    return c->holds;
}

static bool same_strides(const struct image *m, const struct asc_strides *a, const struct asc_strides *b)
{
    return a->row == b->row && (m->own.of.heads == 1 || a->head == b->head) && a->col == b->col &&
           (m->own.packed || (m->own.paged ? m->own.p->pages : m->own.p->batch) == 1 || a->batch == b->batch);
}

static void say_stride(char *out, const char *name, int64_t got, int64_t own)
{
    const size_t used = strlen(out);
    if (got != own)
        snprintf(out + used, ADDRESS_BYTES - used, "%s %s by %lld where they lie %lld apart",
                 used ? "," : "it goes through", name, (long long)got, (long long)own);
}

static void say(const struct image *m, const struct step_reading *r, char out[ADDRESS_BYTES])
{
    static const char *const names[] = {"Q", "K", "V"};
    const struct placed *own = &m->own;
    const struct problem_tensor *of = &own->of;
    const struct asc_strides plain =
        asc_strides_wide(own->p, of->heads, own->paged ? own->p->page_size : of->rows, of->cols);
    out[0] = '\0';
    if (!r->padded && own->p->left_pad && same_strides(m, &r->stride, &own->to) && r->first == own->first) {
        snprintf(out, ADDRESS_BYTES, "the left padding is not added to its rows");
        return;
    }
    if (!same_strides(m, &plain, &own->to) && same_strides(m, &r->stride, &plain))
        snprintf(out, ADDRESS_BYTES, "it is read as if it were contiguous");
    for (int i = TENSOR_Q; i <= TENSOR_V && !out[0]; i++) {
        const struct placed other = placed_of(own->p, (enum problem_tensor_id)i);
        if (!same_strides(m, &other.to, &own->to) && same_strides(m, &r->stride, &other.to))
            snprintf(out, ADDRESS_BYTES, "it is read with the strides of %s", names[i]);
    }
    if (!out[0]) {
        say_stride(out, "rows", r->stride.row, own->to.row);
        say_stride(out, "heads", r->stride.head, own->to.head);
        if (!own->packed)
            say_stride(out, own->paged ? "pages" : "sequences", r->stride.batch, own->to.batch);
        say_stride(out, "columns", r->stride.col, own->to.col);
    }
    const size_t used = strlen(out);
    if (r->first != own->first)
        snprintf(out + used, ADDRESS_BYTES - used, "%s %lld elements %s where it begins",
                 used ? ", and" : "it is read from", (long long)llabs(r->first - own->first),
                 r->first < own->first ? "before" : "behind");
}

static int try_reading(const struct judgement *j, const struct image *m, const struct looking *l, bool padded,
                       char out[ADDRESS_BYTES])
{
    struct step_reading r = {.first = m->own.first, .stride = m->own.to, .padded = padded};
    r.stride.col = l->col;
    if (!l->n)
        return 0;
    if (padded && !meets(m, &r, l->sights, l->n)) {
        for (int which = 0; which < 3; which++)
            solve(m, l->sights, l->n, &r, which);
        r.first = 0;
        r.first = l->sights[0].at - read_at(m, &r, &l->sights[0]);
    }
    struct checking c = {m, &r, meets(m, &r, l->sights, l->n)};
    if (!c.holds)
        return 0;
    if (each_tile(j, m, check_tile, &c) != 0)
        return -1;
    if (c.holds)
        say(m, &r, out);
    return 0;
}

int strides_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char out[ADDRESS_BYTES])
{
    const struct asc_problem *p = &t->problem;
    struct image m = {.t = t, .ch = ch};
    out[0] = '\0';
    if (ch > asc_v || !trace_has(t, ch) || (p->rope && ch != asc_v)) /* rows are not as they lie in memory */
        return 0;
    m.own = placed_of(p, problem_tensor_of(ch));
    /* Codes of half a byte repeat themselves, and those of steps are no numbers as they lie there. */
    if (m.own.elements > IMAGE_MOST || m.own.of.dtype == DTYPE_E2M1 || dtype_is_step_code(m.own.of.dtype))
        return 0;
    const int64_t cols[] = {1, m.own.to.col, m.own.of.rows, m.own.of.cols};
    struct looking l = {.m = &m, .sights = malloc(SIGHTS * sizeof *l.sights)};
    int failed = !l.sights || image_make(t, ch, &m) != 0 ? -1 : 0;
    for (size_t i = 0; i < sizeof cols / sizeof *cols && !failed && !out[0]; i++) {
        if (i > 0 && (cols[i] == cols[i - 1] || (i == 2 && m.own.to.col == 1 && p->lie != ASC_V_TRANSPOSED) ||
                      (i == 3 && p->lie != ASC_V_TRANSPOSED)))
            continue;
        l.col = cols[i];
        l.n = 0;
        failed = index_runs(&m, l.col) != 0 || each_tile(j, &m, look_at_tile, &l) != 0 ? -1 : 0;
        for (int padded = p->left_pad ? 0 : 1;
             padded < (p->lie == ASC_CONTIGUOUS && p->left_pad ? 1 : 2) && !failed && !out[0]; padded++)
            failed = try_reading(j, &m, &l, padded, out);
    }
    free(l.sights);
    free(m.places);
    free(m.value);
    free(m.begin);
    return failed;
}
