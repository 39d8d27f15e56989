#include "engine/study/difference.h"

#include "engine/base/pool.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/values.h"
#include "engine/verdict/case.h"
#include "engine/verdict/judgement.h"
#include <float.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_ROOM = 1 << 19 }; /* 16 MiB of expectations for a thread */
enum { A, B, RUNS };

/* Two finite values of other bits, and what the oracle says of each. */
struct expectation {
    double want, reach;
};

/* One tile of one channel in both runs. */
struct tile_pair {
    struct matrix m[RUNS];
    int rows, cols;
    int lanes;        /* values that are compared as one: their sum */
    uint64_t order;   /* execution order of run A */
    uint64_t n_pairs; /* finite values of other bits */
    uint64_t at;      /* where its pairs begin in the worker's expectations */
    int in_window;
};

struct worker {
    struct judge_scratch *scratch;   /* owned */
    struct tile_verdicts *verdicts;  /* owned, [kv_tiles][ASC_CHANNELS] */
    struct tile_pair *tiles;         /* owned, [kv_tiles][ASC_ALL_CHANNELS] */
    struct place *places;            /* owned, [kv_tiles * ASC_ALL_CHANNELS] */
    int *order[RUNS];                /* owned, [kv_tiles] */
    struct tile_detail detail;       /* its arrays are owned */
    struct expectation *pairs[RUNS]; /* owned: expectations of either run */
    struct difference sum;
    int run; /* which one is being judged */
};

struct job {
    const struct trace *t[RUNS];
    struct worker *workers; /* owned, [n_workers] */
    int n_workers;
    uint64_t pairs_room;
    int own_b[ASC_OWN_CHANNELS]; /* the channel of B that has the name of A's value; -1: none */
    int64_t n_places;
    atomic_llong next;
    atomic_int failed;
};

/* What kind of number an element is: equal numbers apart, only kinds can be compared without a bound. */
enum kind { KIND_UNWRITTEN, KIND_NAN, KIND_POSITIVE_INFINITY, KIND_NEGATIVE_INFINITY, KIND_FINITE };

static enum kind kind_of(const struct tile_pair *t, int run, int row, int col, double *value)
{
    const struct matrix *m = &t->m[run];
    const size_t at = (size_t)(row * m->row_stride + (int64_t)col * t->lanes);
    int written = 1;
    *value = 0;
    for (int lane = 0; lane < t->lanes; lane++) {
        written = written && values_element_written(m, at + (size_t)lane);
        *value += dtype_load(m->dtype, m->data, at + (size_t)lane);
    }
    if (!written)
        return KIND_UNWRITTEN;
    if (isnan(*value))
        return KIND_NAN;
    if (isinf(*value))
        return *value > 0 ? KIND_POSITIVE_INFINITY : KIND_NEGATIVE_INFINITY;
    return KIND_FINITE;
}

static const unsigned char *address(const struct tile_pair *t, int run, int row, int col)
{
    const struct matrix *m = &t->m[run];
    return (const unsigned char *)m->data +
           (size_t)(row * m->row_stride + (int64_t)col * t->lanes) * dtype_bytes(m->dtype);
}

static bool same_bits(const struct tile_pair *t, int row, int col, int n)
{
    const size_t bytes = (size_t)n * (size_t)t->lanes * dtype_bytes(t->m[A].dtype);
    return memcmp(address(t, A, row, col), address(t, B, row, col), bytes) == 0;
}

/* Steps of the type from one value to the other: codes of one sign are in the order of their values. */
static uint64_t ulp_between(const struct tile_pair *t, int row, int col)
{
    const size_t bytes = dtype_bytes(t->m[A].dtype);
    const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    uint64_t code[RUNS] = {0, 0};
    for (int run = 0; run < RUNS; run++)
        memcpy(&code[run], address(t, run, row, col), bytes);
    const uint64_t a = code[A] & (sign - 1), b = code[B] & (sign - 1);
    if ((code[A] & sign) != (code[B] & sign))
        return a + b;
    return a > b ? a - b : b - a;
}

static struct difference_place place_of(const struct job *job, const struct tile_pair *t, struct place at, int row,
                                        int col)
{
    struct difference_place place = {.order = t->order, .channel = at.channel, .row = row, .col = col};
    const int64_t n = at.slot;
    const struct trace *a = job->t[A];
    place.place[0] = (int32_t)(n / a->layout.q_tiles / a->problem.heads);
    place.place[1] = (int32_t)(n / a->layout.q_tiles % a->problem.heads);
    place.place[2] = (int32_t)(n % a->layout.q_tiles);
    place.kv = channel_per_kv(at.channel) ? at.kv : -1;
    if (channel_is_own(at.channel))
        snprintf(place.own, sizeof place.own, "%s", plan_channel_name(&a->plan, at.channel));
    place.unwritten_a = kind_of(t, A, row, col, &place.got[A]) == KIND_UNWRITTEN;
    place.unwritten_b = kind_of(t, B, row, col, &place.got[B]) == KIND_UNWRITTEN;
    return place;
}

/* Within a tile, elements come in row order. */
static void note(const struct job *job, struct difference_place *first, const struct tile_pair *t, struct place at,
                 int row, int col)
{
    if (t->order < first->order ||
        (t->order == first->order && (row < first->row || (row == first->row && col < first->col))))
        *first = place_of(job, t, at, row, col);
}

/* Everything about a tile that no bound is needed for. */
static void compare_bits(const struct job *job, struct worker *w, struct tile_pair *t, struct place at)
{
    struct channel_difference *d = &w->sum.channel[at.channel];
    double value[RUNS];
    for (int row = 0; row < t->rows; row++) {
        for (int col = 0; col < t->cols; col++) {
            const enum kind a = kind_of(t, A, row, col, &value[A]), b = kind_of(t, B, row, col, &value[B]);
            d->compared++;
            d->nan += a == KIND_NAN && b == KIND_NAN;
            d->unwritten += a == KIND_UNWRITTEN && b == KIND_UNWRITTEN;
            if (same_bits(t, row, col, 1)) {
                d->same++;
                continue;
            }
            note(job, &d->first, t, at, row, col);
            if (a == KIND_FINITE && b == KIND_FINITE && channel_is_own(at.channel)) {
                d->unbounded++;
                d->largest = fmax(d->largest, fabs(value[A] - value[B]));
                const uint64_t ulp = ulp_between(t, row, col);
                d->largest_ulp = ulp > d->largest_ulp ? ulp : d->largest_ulp;
                continue;
            }
            if (a == KIND_FINITE && b == KIND_FINITE) {
                t->n_pairs++;
                continue;
            }
            if (a == b) {
                d->nan_bits++;
                continue;
            }
            if (a == KIND_UNWRITTEN || b == KIND_UNWRITTEN)
                d->coverage++;
            else
                d->classes++;
            note(job, &d->first_bad, t, at, row, col);
        }
    }
}

/* How far a correct captured value may lie from want: of a narrow type, to the ends of its rounded interval. */
static double reach_of(enum dtype t, double want, double bound)
{
    double unit = 0;
    double half_tiny = 0;
    if (!isfinite(want) || !(bound <= FLT_MAX))
        return NAN;
    if (!bound_narrow(t, &unit, &half_tiny))
        return bound;
    return fmax(fabs(bound_round(t, want - bound) - want), fabs(bound_round(t, want + bound) - want));
}

static bool is_pair(const struct tile_pair *t, int row, int col)
{
    double value;
    return !same_bits(t, row, col, 1) && kind_of(t, A, row, col, &value) == KIND_FINITE &&
           kind_of(t, B, row, col, &value) == KIND_FINITE;
}

/* The oracle's walk has come to a tile: keeps what it expects of the pairs. */
static void keep_expectations(void *ctx, const struct tile_detail *d)
{
    struct worker *w = ctx;
    const struct tile_pair *t = &w->tiles[d->kv * ASC_ALL_CHANNELS + d->channel];
    uint64_t at = t->at;
    if (!t->in_window || d->rows != t->rows || d->cols != t->cols)
        return;
    for (int row = 0; row < t->rows; row++)
        for (int col = 0; col < t->cols; col++) {
            const size_t i = (size_t)row * (size_t)t->cols + (size_t)col;
            if (!is_pair(t, row, col))
                continue;
            w->pairs[w->run][at++] = (struct expectation){
                d->want_local[i], reach_of(t->m[w->run].dtype, d->want_local[i], d->bound_local[i])};
        }
}

static void compare_pairs(const struct job *job, struct worker *w, const struct tile_pair *t, struct place at)
{
    struct channel_difference *d = &w->sum.channel[at.channel];
    uint64_t next = t->at;
    double value[RUNS];
    for (int row = 0; row < t->rows; row++) {
        for (int col = 0; col < t->cols; col++) {
            if (!is_pair(t, row, col))
                continue;
            const struct expectation x = w->pairs[A][next], y = w->pairs[B][next];
            next++;
            kind_of(t, A, row, col, &value[A]);
            kind_of(t, B, row, col, &value[B]);
            const double size = fabs(value[A] - value[B]);
            const double own = fabs((value[A] - x.want) - (value[B] - y.want)), limit = x.reach + y.reach;
            const uint64_t ulp = t->lanes == 1 ? ulp_between(t, row, col) : 0;
            d->largest = fmax(d->largest, size);
            d->largest_ulp = ulp > d->largest_ulp ? ulp : d->largest_ulp;
            if (isnan(limit) || isnan(own)) {
                d->unbounded++;
                note(job, &d->first_bad, t, at, row, col);
                continue;
            }
            const double least = fmin(size, own);
            const double ratio = least <= 0 ? 0 : limit > 0 ? least / limit : INFINITY;
            d->largest_ratio = fmax(d->largest_ratio, ratio);
            if (least <= limit) {
                d->within++;
            } else {
                d->beyond++;
                note(job, &d->first_bad, t, at, row, col);
            }
        }
    }
}

/* Judges both runs at this place once for as many tiles as there is room for, again for the next ones. */
static int compare_windows(const struct job *job, struct worker *w, const struct slot_case cases[RUNS],
                           const struct place *places, int n)
{
    for (int from = 0, to = 0; from < n; from = to) {
        uint64_t used = 0;
        for (; to < n; to++) {
            struct tile_pair *t = &w->tiles[places[to].kv * ASC_ALL_CHANNELS + (int)places[to].channel];
            if (used && used + t->n_pairs > job->pairs_room)
                break;
            t->in_window = t->n_pairs > 0;
            t->at = used;
            used += t->n_pairs;
        }
        for (w->run = A; used && w->run < RUNS; w->run++) {
            for (uint64_t i = 0; i < used; i++)
                w->pairs[w->run][i] = (struct expectation){NAN, NAN};
            if (judge_case(&cases[w->run].c, w->scratch, w->verdicts, &w->detail) != 0)
                return -1;
        }
        for (int i = from; i < to; i++) {
            struct tile_pair *t = &w->tiles[places[i].kv * ASC_ALL_CHANNELS + (int)places[i].channel];
            if (t->in_window)
                compare_pairs(job, w, t, places[i]);
            t->in_window = 0;
        }
    }
    return 0;
}

static struct matrix own_matrix(const struct trace *t, int ch, int slot, int kv)
{
    struct tile tile = {0};
    if (ch >= 0)
        tile = trace_tile(t, (enum asc_channel)ch, slot, kv);
    const bool recorded = tile.data && trace_first_stamp(t, (enum asc_channel)ch, slot, kv);
    return (struct matrix){recorded ? tile.data : NULL, tile.dtype, tile.cols, tile.valid_rows, tile.valid_cols};
}

static void take_tile(const struct job *job, struct tile_pair *t, const struct slot_case cases[RUNS],
                      const int slot[RUNS], struct place at, uint64_t order)
{
    const int i = at.kv * ASC_CHANNELS + (int)at.channel;
    if (channel_is_own(at.channel)) {
        *t = (struct tile_pair){.m = {own_matrix(job->t[A], (int)at.channel, slot[A], at.kv),
                                      own_matrix(job->t[B], job->own_b[at.channel - ASC_CHANNELS], slot[B], at.kv)},
                                .lanes = 1,
                                .order = order};
        t->rows = t->m[A].data && t->m[B].data ? t->m[A].rows : 0;
        t->cols = t->m[A].cols;
        return;
    }
    *t = (struct tile_pair){.m = {cases[A].captured[i], cases[B].captured[i]}, .lanes = 1, .order = order};
    if (!t->m[A].data || !t->m[B].data)
        return;
    t->rows = t->m[A].rows;
    t->cols = t->m[A].cols;
    if (at.channel == asc_l) {
        t->lanes = t->cols;
        t->cols = 1;
    }
}

static int compare_place(const struct job *job, struct worker *w, int64_t n)
{
    const struct layout *l = &job->t[A]->layout;
    const int32_t place[3] = {(int32_t)(n / l->q_tiles / job->t[A]->problem.heads),
                              (int32_t)(n / l->q_tiles % job->t[A]->problem.heads), (int32_t)(n % l->q_tiles)};
    int slot[RUNS];
    int visits[RUNS];
    struct slot_case cases[RUNS] = {0};
    for (int run = 0; run < RUNS; run++) {
        slot[run] = trace_slot(job->t[run], place[0], place[1], place[2]);
        visits[run] = visiting_order(job->t[run], slot[run], w->order[run]);
        if (visits[run] < 0)
            return -1;
    }
    const bool both = slot[A] >= 0 && slot[B] >= 0;
    w->sum.both += both;
    w->sum.only[A] += slot[A] >= 0 && slot[B] < 0;
    w->sum.only[B] += slot[B] >= 0 && slot[A] < 0;
    w->sum.reordered +=
        both && visits[A] == visits[B] && memcmp(w->order[A], w->order[B], (size_t)visits[A] * sizeof(int)) != 0;
    if (!both && !w->sum.outputs)
        return 0;
    int failed = place_case_make(job->t[A], place, NULL, &cases[A]) != 0 ||
                 place_case_make(job->t[B], place, NULL, &cases[B]) != 0;
    int any = 0;
    const int n_places = failed ? 0 : judgement_sequence(job->t[A], slot[A], w->places);
    failed |= n_places < 0;
    for (int i = 0; i < n_places; i++) {
        struct place *at = &w->places[i];
        struct tile_pair *t = &w->tiles[at->kv * ASC_ALL_CHANNELS + (int)at->channel];
        at->slot = (int)n;
        take_tile(job, t, cases, slot, *at, (uint64_t)n * (uint64_t)l->kv_tiles * ASC_ALL_CHANNELS + (uint64_t)i);
        compare_bits(job, w, t, *at);
        any |= t->n_pairs > 0;
    }
    if (any)
        failed = compare_windows(job, w, cases, w->places, n_places) != 0;
    slot_case_free(&cases[A]);
    slot_case_free(&cases[B]);
    return failed ? -1 : 0;
}

static int step(void *ctx, int worker)
{
    struct job *job = ctx;
    const int64_t n = atomic_fetch_add(&job->next, 1);
    if (n >= job->n_places || atomic_load(&job->failed))
        return 0;
    if (compare_place(job, &job->workers[worker], n) != 0)
        atomic_store(&job->failed, 1);
    return 1;
}

static void difference_begin(const struct job *job, struct difference *d)
{
    *d = (struct difference){.places = job->n_places};
    for (int run = 0; run < RUNS; run++)
        d->complete[run] = trace_complete(job->t[run]);
    d->outputs = d->complete[A] && d->complete[B];
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        d->channel[ch].first.order = d->channel[ch].first_bad.order = UINT64_MAX;
}

static void earlier(struct difference_place *to, const struct difference_place *from)
{
    if (from->order < to->order)
        *to = *from;
}

static void add(struct difference *to, const struct difference *from)
{
    to->both += from->both;
    to->only[A] += from->only[A];
    to->only[B] += from->only[B];
    to->reordered += from->reordered;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        struct channel_difference *x = &to->channel[ch];
        const struct channel_difference *y = &from->channel[ch];
        x->compared += y->compared;
        x->same += y->same;
        x->nan_bits += y->nan_bits;
        x->within += y->within;
        x->beyond += y->beyond;
        x->unbounded += y->unbounded;
        x->classes += y->classes;
        x->coverage += y->coverage;
        x->nan += y->nan;
        x->unwritten += y->unwritten;
        x->largest = fmax(x->largest, y->largest);
        x->largest_ratio = fmax(x->largest_ratio, y->largest_ratio);
        x->largest_ulp = y->largest_ulp > x->largest_ulp ? y->largest_ulp : x->largest_ulp;
        earlier(&x->first, &y->first);
        earlier(&x->first_bad, &y->first_bad);
    }
}

static void worker_free(struct worker *w)
{
    judge_scratch_free(w->scratch);
    free(w->verdicts);
    free(w->tiles);
    free(w->places);
    tile_detail_free(&w->detail);
    for (int run = 0; run < RUNS; run++) {
        free(w->order[run]);
        free(w->pairs[run]);
    }
}

static int worker_make(const struct job *job, struct worker *w)
{
    const struct trace *t = job->t[A];
    const size_t kv_tiles = (size_t)t->layout.kv_tiles, tiles = kv_tiles * ASC_ALL_CHANNELS;
    const size_t largest = channel_largest_tile(&t->plan, &t->problem);
    const size_t room = largest > job->pairs_room ? largest : job->pairs_room; /* a tile fits in any case */
    w->scratch = judge_scratch_new();
    w->verdicts = calloc(tiles, sizeof *w->verdicts);
    w->tiles = calloc(tiles, sizeof *w->tiles);
    w->places = calloc(tiles, sizeof *w->places);
    w->detail = (struct tile_detail){.each = keep_expectations, .ctx = w};
    int made = w->scratch && w->verdicts && w->tiles && w->places && tile_detail_make(&w->detail, largest) == 0;
    for (int run = 0; run < RUNS; run++) {
        w->order[run] = calloc(kv_tiles, sizeof(int));
        w->pairs[run] = malloc(room * sizeof(struct expectation));
        made = made && w->order[run] && w->pairs[run];
    }
    difference_begin(job, &w->sum);
    return made ? 0 : -1;
}

/* The channel of a value of the same name, columns and type; -1: there is none. */
static int same_value(const struct asc_value *value, const struct asc_plan *plan)
{
    const int ch = value->name[0] ? plan_channel_from_name(plan, value->name) : -1;
    const struct asc_value *there = ch < ASC_CHANNELS ? NULL : &plan->value[ch - ASC_CHANNELS];
    return there && there->cols == value->cols && there->dtype == value->dtype ? ch : -1;
}

int difference_find(const struct trace *a, const struct trace *b, uint64_t pairs_room, struct difference *out,
                    struct err *err)
{
    struct pool *pool = NULL;
    struct job job = {.t = {a, b}, .pairs_room = pairs_room ? pairs_room : PAIRS_ROOM};
    for (int i = 0; i < ASC_OWN_CHANNELS; i++)
        job.own_b[i] = same_value(&a->plan.value[i], &b->plan);
    job.n_places = (int64_t)a->problem.batch * a->problem.heads * a->layout.q_tiles;
    difference_begin(&job, out);
    if (pool_new(0, &pool, err) != 0)
        return -1;
    job.n_workers = pool_threads(pool);
    job.workers = calloc((size_t)job.n_workers, sizeof *job.workers);
    int failed = !job.workers;
    for (int i = 0; i < job.n_workers && !failed; i++)
        failed = worker_make(&job, &job.workers[i]) != 0;
    if (!failed) {
        pool_start(pool, step, &job);
        pool_wait(pool);
        failed = atomic_load(&job.failed);
    }
    pool_free(pool);
    for (int i = 0; i < job.n_workers && job.workers; i++) {
        add(out, &job.workers[i].sum);
        worker_free(&job.workers[i]);
    }
    free(job.workers);
    out->places = trace_places(a); /* not those behind a sequence */
    if (failed)
        return err_no_memory(err, "", "the comparison");
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int run = 0; run < RUNS; run++) {
            const struct trace *t = job.t[run];
            out->channel[ch].in[run] = trace_has(t, ch);
            out->channel[ch].lost[run] = trace_dropped(t, ch) + trace_mistyped(t, ch);
        }
    for (int ch = ASC_CHANNELS; ch < ASC_ALL_CHANNELS; ch++) {
        const int own_b = job.own_b[ch - ASC_CHANNELS];
        out->channel[ch].in[A] = trace_has(a, ch);
        out->channel[ch].in[B] = own_b >= 0 && trace_has(b, (enum asc_channel)own_b);
    }
    if (out->both == 0)
        return err_set(err, ERR_INPUT, "", "nothing to compare: no (batch, head, q tile) is recorded in both runs");
    return 0;
}

bool difference_exact(const struct difference *d)
{
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        if (d->channel[ch].same != d->channel[ch].compared || d->channel[ch].lost[A] != d->channel[ch].lost[B])
            return false;
    return d->complete[A] == d->complete[B];
}

bool difference_within(const struct difference *d)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct channel_difference *x = &d->channel[ch];
        if (x->same + x->nan_bits + x->within != x->compared || x->lost[A] != x->lost[B])
            return false;
    }
    return d->complete[A] == d->complete[B];
}

struct difference_place difference_first(const struct difference *d, int exact)
{
    struct difference_place first = {.order = UINT64_MAX};
    for (int ch = 0; ch < (exact ? ASC_ALL_CHANNELS : ASC_CHANNELS); ch++)
        earlier(&first, exact ? &d->channel[ch].first : &d->channel[ch].first_bad);
    return first;
}

void difference_place_words(const struct difference_place *place, char *out, size_t bytes)
{
    int n = snprintf(out, bytes, "%s[b%d,h%d,q%d", place->own[0] ? place->own : channel_name(place->channel),
                     place->place[0], place->place[1], place->place[2]);
    if (place->kv >= 0)
        n += snprintf(out + n, bytes - (size_t)n, ",k%d", place->kv);
    snprintf(out + n, bytes - (size_t)n, "] row %d, column %d", place->row, place->col);
}
