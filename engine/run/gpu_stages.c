#include "engine/run/gpu_stages.h"

#include "engine/judge/captured.h"
#include "engine/judge/numbers.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/run/gpu_work.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = JUDGE_STAGES * JUDGE_SIDES };

void gpu_stages_free(struct gpu_stages *g)
{
    free(g->good);
    free(g->tiles);
    free(g->seen);
    *g = (struct gpu_stages){0};
}

int gpu_stages_unknown(const struct trace *t, const struct fingerprint *f, const char **unknown)
{
    struct slot_case c;
    *unknown = "a run that did not end well, or one of a file";
    if (t->fd < 0 || t->fed || !trace_complete(t) || t->layout.n_slots == 0)
        return 0;
    if (slot_case_make(t, 0, &c) != 0)
        return -1;
    c.c.fingerprint = f;
    *unknown = judge_unknown(&c.c);
    if (!*unknown)
        *unknown = judge_captured_unknown(&c.c);
    slot_case_free(&c);
    return 0;
}

struct gpu_asking {
    const struct trace *t;
    const struct fingerprint *f;
    int32_t (*places)[3]; /* owned, [n] */
    int *slots, *visits;  /* owned, [n]; visits: [n_slots] until the slots are chosen, -1: not asked about */
    int32_t *orders;      /* owned, [n_slots][kv_tiles], then those of each slot that is asked about in turn */
    int64_t n, n_orders;
    struct judge_captured captured;
    struct gpu_work work;
};

void gpu_asking_free(struct gpu_asking *a)
{
    if (!a)
        return;
    gpu_work_close(&a->work);
    free(a->places);
    free(a->slots);
    free(a->visits);
    free(a->orders);
    free(a);
}

/* One slot, or one q tile, after the other, by a pool or alone. */
struct each {
    int64_t n;
    int (*one)(void *ctx, int64_t i); /* -1: no memory */
    void *ctx;
    atomic_llong next;
    atomic_int failed;
};

static int each_step(void *ctx, int worker)
{
    struct each *each = ctx;
    const int64_t i = atomic_fetch_add(&each->next, 1);
    (void)worker;
    if (i >= each->n || atomic_load(&each->failed))
        return 0;
    if (each->one(each->ctx, i) != 0)
        atomic_store(&each->failed, 1);
    return 1;
}

static int for_each(struct pool *pool, int64_t n, int (*one)(void *ctx, int64_t i), void *ctx)
{
    struct each each = {.n = n, .one = one, .ctx = ctx};
    if (pool) {
        pool_start(pool, each_step, &each);
        pool_wait(pool);
    } else {
        while (each_step(&each, 0))
            ;
    }
    return atomic_load(&each.failed) ? -1 : 0;
}

/* Where kv tile 0 of a captured channel begins in the trace's file. */
static int64_t channel_at(const struct trace *t, enum asc_channel ch, int slot)
{
    const struct tile tile = trace_tile(t, ch, slot, 0);
    return tile.data ? (const unsigned char *)tile.data - t->bytes : 0;
}

static void take_layout(const struct trace *t, struct judge_captured *c)
{
    c->groups = (t->plan.br + JUDGE_ROWS - 1) / JUDGE_ROWS;
    c->inputs_end = (int64_t)t->layout.stamps_offset;
    for (int i = 0; i < JUDGE_CAPTURED; i++) {
        const struct tile tile = trace_tile(t, judge_channels[i], 0, 0);
        c->has[i] = tile.data != NULL;
        c->row[i] = tile.cols;
        c->step[i] = (int64_t)t->layout.channel[judge_channels[i]].kv_stride;
        c->slot_bytes[i] = (int64_t)t->layout.channel[judge_channels[i]].slot_stride;
    }
}

/* How the kernel went through a slot. */
static int look_at_slot(void *ctx, int64_t slot)
{
    struct gpu_asking *a = ctx;
    struct slot_case c;
    if (slot_case_make(a->t, (int)slot, &c) != 0)
        return -1;
    c.c.fingerprint = a->f;
    if (slot == 0) {
        a->captured = judge_captured_of(&c.c);
        take_layout(a->t, &a->captured);
    }
    a->visits[slot] = !judge_unknown(&c.c) && judge_captured_whole(&c.c) ? c.c.n_visited : -1;
    for (int i = 0; i < a->visits[slot]; i++)
        a->orders[slot * a->t->layout.kv_tiles + i] = c.c.order[i];
    slot_case_free(&c);
    return 0;
}

static void choose_slots(struct gpu_asking *a)
{
    for (int slot = 0; slot < a->t->layout.n_slots; slot++) {
        const int visits = a->visits[slot];
        if (visits < 0)
            continue;
        memcpy(a->places[a->n], trace_slot_place(a->t, slot), sizeof a->places[a->n]);
        memmove(a->orders + a->n_orders, a->orders + (ptrdiff_t)slot * a->t->layout.kv_tiles,
                (size_t)visits * sizeof *a->orders);
        a->n_orders += visits;
        a->slots[a->n] = slot;
        a->visits[a->n++] = visits;
    }
}

static void fill_slots(const struct gpu_asking *a)
{
    struct judge_slot *slots = gpu_work_part(&a->work, a->work.work->slots);
    int64_t order = 0;
    int64_t verdicts = 0;
    for (int64_t i = 0; i < a->n; i++) {
        slots[i] = (struct judge_slot){.order = order, .visits = a->visits[i], .verdicts = verdicts};
        for (int ch = 0; ch < JUDGE_CAPTURED; ch++)
            slots[i].at[ch] = channel_at(a->t, judge_channels[ch], a->slots[i]);
        order += a->visits[i];
        verdicts += (int64_t)a->visits[i] * KINDS + (int64_t)JUDGE_ENDS * JUDGE_SIDES;
    }
    memcpy(gpu_work_part(&a->work, a->work.work->orders), a->orders, (size_t)a->n_orders * sizeof *a->orders);
}

static int open_work(struct gpu_asking *a, struct err *err)
{
    const struct judge_work wanted = {.end = (int64_t)a->t->layout.total_bytes,
                                      .captured = a->captured,
                                      .n_orders = a->n_orders,
                                      .n_verdicts = a->n_orders * KINDS + a->n * JUDGE_ENDS * JUDGE_SIDES};
    if (a->n == 0)
        return 0;
    if (gpu_work_open(a->t, NULL, a->places, a->n, &wanted, &a->work, err) != 0)
        return -1;
    fill_slots(a);
    return 0;
}

int gpu_stages_ask(const struct trace *t, const struct fingerprint *f, struct pool *pool, struct gpu_asking **out,
                   struct err *err)
{
    const size_t n = (size_t)t->layout.n_slots + 1;
    struct gpu_asking *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a)
        return err_no_memory(err, "", "the judge's work");
    *a = (struct gpu_asking){.t = t,
                             .f = f,
                             .places = calloc(n, sizeof *a->places),
                             .slots = calloc(n, sizeof *a->slots),
                             .visits = calloc(n, sizeof *a->visits),
                             .orders = calloc(n * (size_t)t->layout.kv_tiles, sizeof *a->orders),
                             .work.fd = -1};
    int failed =
        !a->places || !a->slots || !a->visits || !a->orders || for_each(pool, t->layout.n_slots, look_at_slot, a) != 0
            ? err_no_memory(err, "", "the judge's work")
            : 0;
    if (!failed) {
        choose_slots(a);
        failed = open_work(a, err);
    }
    if (failed)
        gpu_asking_free(a);
    else
        *out = a;
    return failed ? -1 : 0;
}

int gpu_stages_run(const struct gpu_asking *a, const char *program, struct gpu_process *process,
                   const struct runner_progress *progress, struct err *err)
{
    return a->n == 0 ? 0 : gpu_work_run(program, process, a->t, &a->work, progress, err);
}

static struct verdict right(int rows, int cols)
{
    struct verdict v = {.judged = true, .visited = true, .ratio_median = NAN, .ratio_spread = NAN};
    v.count[CLASS_OK] = (uint32_t)rows * (uint32_t)cols;
    return v;
}

static struct verdict verdict_of(const struct judge_verdict *from, int rows, int cols)
{
    struct verdict v = right(rows, cols);
    v.worst_row = (int16_t)(from->all.place / cols);
    v.worst_col = (int16_t)(from->all.place % cols);
    v.worst_ratio = (float)from->all.worst;
    v.mean_error = from->all.n ? (float)(from->all.sum / from->all.n) : 0;
    v.ratio_median = from->median;
    v.ratio_spread = from->spread;
    return v;
}

/* Of an operand that is the input: what is sampled of it divided by itself. */
static struct verdict verdict_of_input(const struct matrix *m, int first, int rows)
{
    struct verdict v = right(rows, m->cols);
    const size_t n = (size_t)rows * (size_t)m->cols, take = n < JUDGE_SAMPLES ? n : JUDGE_SAMPLES;
    for (size_t k = 0; k < take; k++) {
        const size_t i = k * n / take;
        const int64_t at = (first + (int64_t)(i / (size_t)m->cols)) * m->row_stride + (int64_t)(i % (size_t)m->cols);
        if (dtype_load(m->dtype, m->data, (size_t)at) != 0) {
            v.ratio_median = 1;
            v.ratio_spread = 0;
        }
    }
    return v;
}

static void take_input(const struct oracle_case *c, enum asc_channel ch, const struct matrix *m, int kv,
                       struct tile_verdicts *tiles)
{
    const int first = ch == asc_q ? 0 : kv * c->bc, rows = ch == asc_q ? c->in_q.rows : schedule_cols(c, kv);
    struct tile_verdicts *v = &tiles[(ch == asc_q ? 0 : kv) * ASC_CHANNELS + (int)ch];
    if (values_captured(c, kv, ch)->data)
        v->local = v->global = verdict_of_input(m, first, rows);
}

/* A tile that no row sees, and that the kernel did not come to. */
static void take_skipped(const struct oracle_case *c, int kv, struct tile_verdicts *tiles)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        struct tile_verdicts *v = &tiles[kv * ASC_CHANNELS + ch];
        if (channel_per_kv((enum asc_channel)ch) && values_captured(c, kv, (enum asc_channel)ch)->data)
            v->local = v->global =
                (struct verdict){.judged = true, .masked = true, .ratio_median = NAN, .ratio_spread = NAN};
    }
}

static void take_tile(const struct oracle_case *c, int kv, const struct judge_verdict from[KINDS],
                      struct tile_verdicts *tiles)
{
    const int cols[JUDGE_STAGES] = {[JUDGE_S] = schedule_cols(c, kv), [JUDGE_M] = 1, [JUDGE_ALPHA] = 1,
                                    [JUDGE_P] = schedule_cols(c, kv), [JUDGE_L] = 1, [JUDGE_U] = c->head_dim_v};
    for (int i = 0; i < JUDGE_STAGES; i++) {
        const enum asc_channel ch = judge_channels[i];
        struct tile_verdicts *v = &tiles[kv * ASC_CHANNELS + (int)ch];
        v->local = verdict_of(&from[(ptrdiff_t)i * JUDGE_SIDES], c->in_q.rows, cols[i]);
        v->global = verdict_of(&from[(ptrdiff_t)i * JUDGE_SIDES + 1], c->in_q.rows, cols[i]);
        if (i == JUDGE_S || i == JUDGE_U)
            v->local.exact = (uint8_t)judge_captured_exact(c, ch);
    }
    take_input(c, asc_k, &c->in_k, kv, tiles);
    take_input(c, asc_v, &c->in_v, kv, tiles);
}

static bool all_right(const struct judge_verdict *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (v[i].all.bad)
            return false;
    return true;
}

/* Whether every element of U of each visit, and of O, was looked at: what no thread came to is not right. They are all
   numbers where they are right. */
static bool looked_at_all(const struct judge_verdict *v, int visits, int64_t elements)
{
    for (int i = 0; i < visits * JUDGE_SIDES; i++)
        if (v[i / JUDGE_SIDES * KINDS + JUDGE_U * JUDGE_SIDES + i % JUDGE_SIDES].all.n != elements)
            return false;
    for (int side = 0; side < JUDGE_SIDES; side++)
        if (v[visits * KINDS + JUDGE_O * JUDGE_SIDES + side].all.n != elements)
            return false;
    return true;
}

struct taking {
    const struct gpu_asking *a;
    struct gpu_stages *out;
};

/* Whether O's errors are of another size than roundings'. -1: no memory, or a row has not been looked at. */
static int looks_unusual(const struct gpu_work *work, int64_t place, const struct oracle_case *c)
{
    const struct judge_tile *tile = (struct judge_tile *)gpu_work_part(work, work->work->tiles) + place;
    const struct judge_numbers *n = (struct judge_numbers *)gpu_work_part(work, work->work->numbers) + tile->numbers;
    const struct judge_row *rows = (struct judge_row *)gpu_work_part(work, work->work->rows) + tile->row;
    struct output_noise noise;
    if (!n->noise)
        return 0;
    struct noise_row *room = calloc((size_t)tile->rows, sizeof *room);
    int all = room != NULL;
    for (int r = 0; r < tile->rows && all; r++) {
        all = rows[r].judged;
        room[r] = rows[r].noise;
    }
    if (all)
        noise_finish(room, tile->rows, n->head_dim_v, true, schedule_keys(c, tile->rows - 1), &noise);
    free(room);
    return !all ? -1 : noise_unusual(&noise);
}

static int take_slot(void *ctx, int64_t place)
{
    const struct taking *taking = ctx;
    const struct gpu_asking *a = taking->a;
    struct gpu_stages *out = taking->out;
    const int kv_tiles = a->t->layout.kv_tiles, slot = a->slots[place];
    const struct judge_slot *of = (struct judge_slot *)gpu_work_part(&a->work, a->work.work->slots) + place;
    const struct judge_verdict *from =
        (struct judge_verdict *)gpu_work_part(&a->work, a->work.work->verdicts) + of->verdicts;
    const int32_t *order = a->orders + of->order;
    const int64_t ends = (int64_t)of->visits * KINDS;
    struct tile_verdicts *tiles = out->tiles + (size_t)slot * (size_t)kv_tiles * ASC_CHANNELS;
    struct slot_case c;
    if (!all_right(from, ends + (int64_t)JUDGE_ENDS * JUDGE_SIDES))
        return 0;
    if (slot_case_make(a->t, slot, &c) != 0)
        return -1;
    const int unusual = looks_unusual(&a->work, place, &c.c);
    if (unusual < 0 || !looked_at_all(from, of->visits, (int64_t)c.c.in_q.rows * c.c.head_dim_v)) {
        slot_case_free(&c);
        return 0;
    }
    c.c.fingerprint = a->f;
    for (int kv = 0; kv < kv_tiles; kv++)
        if (schedule_masked(&c.c, kv))
            take_skipped(&c.c, kv, tiles);
    for (int i = 0; i < of->visits; i++) {
        take_tile(&c.c, order[i], from + (ptrdiff_t)i * KINDS, tiles);
        if (out->seen)
            out->seen[(size_t)slot * (size_t)kv_tiles + (size_t)order[i]] =
                (uint32_t)from[(ptrdiff_t)i * KINDS + (ptrdiff_t)JUDGE_S * JUDGE_SIDES].all.n;
    }
    take_input(&c.c, asc_q, &c.c.in_q, 0, tiles);
    const int cols[JUDGE_ENDS] = {[JUDGE_O] = c.c.head_dim_v, [JUDGE_LSE] = 1};
    for (int i = 0; i < JUDGE_ENDS; i++) {
        struct tile_verdicts *v = &tiles[judge_ends[i]];
        if (!c.c.captured[judge_ends[i]].data)
            continue;
        v->local = verdict_of(&from[ends + (ptrdiff_t)i * JUDGE_SIDES], c.c.in_q.rows, cols[i]);
        v->global = verdict_of(&from[ends + (ptrdiff_t)i * JUDGE_SIDES + 1], c.c.in_q.rows, cols[i]);
        v->global.likely = from[ends + (ptrdiff_t)i * JUDGE_SIDES + 1].all.likely != 0;
        v->global.unusual = i == JUDGE_O && unusual;
    }
    slot_case_free(&c);
    out->good[slot] = 1;
    return 0;
}

int gpu_stages_take(const struct gpu_asking *a, struct pool *pool, struct gpu_stages *out, struct err *err)
{
    const size_t n = (size_t)a->t->layout.n_slots, kv_tiles = (size_t)a->t->layout.kv_tiles;
    struct taking taking = {a, out};
    *out = (struct gpu_stages){.good = calloc(n, sizeof *out->good),
                               .tiles = calloc(n * kv_tiles * ASC_CHANNELS, sizeof *out->tiles),
                               .seen = a->captured.mask_later ? NULL : calloc(n * kv_tiles, sizeof *out->seen)};
    if (!out->good || !out->tiles || (!out->seen && !a->captured.mask_later) ||
        for_each(pool, a->n, take_slot, &taking) != 0) {
        gpu_stages_free(out);
        return err_no_memory(err, "", "the judge's verdicts");
    }
    for (size_t slot = 0; slot < n; slot++)
        out->n_good += out->good[slot];
    return 0;
}

int gpu_stages_judge(const char *program, struct gpu_process *process, struct pool *pool, const struct trace *t,
                     const struct fingerprint *f, const struct runner_progress *progress, struct gpu_stages *out,
                     struct err *err)
{
    struct gpu_asking *a = NULL;
    *out = (struct gpu_stages){0};
    int failed = gpu_stages_ask(t, f, pool, &a, err);
    if (!failed)
        failed = gpu_stages_run(a, program, process, progress, err);
    if (!failed)
        failed = gpu_stages_take(a, pool, out, err);
    gpu_asking_free(a);
    return failed ? -1 : 0;
}

#define SAME_MEAN 1e-3f  /* of sums whose terms nearly cancel */
#define SAME_BOUND 1e-4f /* 2^-15 of a bound, and roundings */
#define SAME_LOG 1e-6f

static bool near(float x, float y, float room)
{
    return x == y || (isnan(x) && isnan(y)) || fabsf(x - y) <= room * fmaxf(fabsf(x), fabsf(y));
}

static bool same_verdict(const struct verdict *x, const struct verdict *y, float room)
{
    return memcmp(x->count, y->count, sizeof x->count) == 0 && x->unjudged == y->unjudged && x->judged == y->judged &&
           x->visited == y->visited && x->masked == y->masked && x->likely == y->likely && x->unusual == y->unusual &&
           x->exact == y->exact && x->unequal == y->unequal && near(x->worst_ratio, y->worst_ratio, room) &&
           near(x->mean_error, y->mean_error, SAME_MEAN) && near(x->ratio_median, y->ratio_median, SAME_LOG) &&
           near(x->ratio_spread, y->ratio_spread, SAME_MEAN) &&
           (room > 0 || (x->worst_row == y->worst_row && x->worst_col == y->worst_col));
}

bool gpu_stages_agree(const struct tile_verdicts *gpu, const struct tile_verdicts *cpu, int kv_tiles)
{
    for (int i = 0; i < kv_tiles * ASC_CHANNELS; i++) {
        const int ch = i % ASC_CHANNELS;
        const float room = ch == asc_lse ? SAME_LOG : 0;
        if (!same_verdict(&gpu[i].local, &cpu[i].local, room) || !same_verdict(&gpu[i].global, &cpu[i].global,
                                                                               ch == asc_u   ? SAME_BOUND
                                                                               : ch == asc_o ? SAME_BOUND
                                                                                             : room))
            return false;
    }
    return true;
}
