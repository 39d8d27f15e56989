#include "engine/study/rounding.h"

#include "engine/base/pool.h"
#include "engine/run/feed.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t negate_elements(enum dtype t, void *data, size_t n)
{
    unsigned char *bytes = data;
    const size_t size = dtype_bytes(t);
    size_t lost = 0;
    if (t == DTYPE_S8) {
        for (size_t i = 0; i < n; i++) {
            lost += bytes[i] == 0x80;
            bytes[i] = bytes[i] == 0x80 ? 0x80 : (unsigned char)-bytes[i];
        }
        return lost;
    }
    if (t == DTYPE_U8) {
        for (size_t i = 0; i < n; i++) {
            lost += bytes[i] == 0;
            bytes[i] = bytes[i] ? (unsigned char)(2 * ASC_U8_MIDPOINT - bytes[i]) : 0;
        }
        return lost;
    }
    for (size_t i = 0; i < n; i++) /* little-endian: the sign is in the last byte */
        bytes[i * size + size - 1] ^= t == DTYPE_E2M1 ? 0x8 : 0x80;
    return 0;
}

/* What a run with this tensor ('q' or 'v', 0: none) negated can tell: S; U and O. A set of 1u << enum asc_channel, of
   those that `run` has recorded. */
static uint32_t negate_channels(const struct trace *run, char which)
{
    static const enum asc_channel of_q[] = {asc_s}, of_v[] = {asc_u, asc_o};
    uint32_t set = 0;
    if (which != 'v' && trace_has(run, of_q[0]))
        set |= 1u << of_q[0];
    for (int i = 0; which != 'q' && i < 2; i++)
        if (trace_has(run, of_v[i]))
            set |= 1u << of_v[i];
    return set;
}

static int negated_trace(const struct trace *run, char which, struct trace **out, struct err *err)
{
    const struct layout *l = &run->layout;
    const unsigned char *at = run->bytes;
    struct trace_inputs inputs = {.of = {at + l->q.offset, at + l->k.offset, at + l->v.offset}};
    const uint64_t bytes = which == 'q' ? l->q.bytes : l->v.bytes;
    void *own = NULL;
    if (which) {
        enum dtype t;
        const void *from = trace_tensor(run, which, &t);
        own = malloc(bytes);
        if (!own)
            return err_no_memory(err, "", "the negated inputs");
        memcpy(own, from, bytes);
        if (negate_elements(t, own, bytes / dtype_bytes(t)) > 0) {
            free(own);
            return err_set(err, ERR_DECLINED, "", "%c contains the u8 code 0, which has no negative",
                           which == 'q' ? 'Q' : 'V');
        }
        inputs.of[which == 'q' ? 0 : 2] = own;
    }
    const int failed = feed_trace_with(run, &inputs, negate_channels(run, which), out, err);
    free(own);
    return failed;
}

/* `run` of this scenario once more with that tensor negated (0: none, the same inputs again), only those channels
   recorded, on a recorder that is not busy. -1: *err; ERR_DECLINED: an element has no negative. */
static int negate_record(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                         const struct trace *run, char which, const struct runner_progress *progress,
                         struct trace **out, struct err *err)
{
    struct trace *t;
    *out = NULL;
    if (negated_trace(run, which, &t, err) != 0)
        return -1;
    const int failed = record_again(r, paths, scenario, run, run->info.probes_off ? PROBES_NONE : PROBES_RECORD, t,
                                    progress, out, err);
    if (failed) {
        trace_free(*out);
        *out = NULL;
    }
    return failed;
}

static bool same_tile(struct tile a, struct tile b)
{
    const size_t size = dtype_bytes(a.dtype);
    if (!a.data || !b.data)
        return true;
    for (int row = 0; row < a.valid_rows; row++)
        if (memcmp((const unsigned char *)a.data + (size_t)(row * a.cols) * size,
                   (const unsigned char *)b.data + (size_t)(row * b.cols) * size, (size_t)a.valid_cols * size) != 0)
            return false;
    return true;
}

/* Whether both hold the same bits in these channels, wherever `run` recorded them, and in O if that is one of them. */
static bool negate_same(const struct trace *run, const struct trace *again, uint32_t channels)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; channels & 1u << ch && slot < run->layout.n_slots; slot++)
            for (int kv = 0; kv < (channel_per_kv(ch) ? run->layout.kv_tiles : 1); kv++)
                if (!same_tile(trace_tile(run, ch, slot, kv), trace_tile(again, ch, slot, kv)))
                    return false;
    enum dtype t;
    return !(channels & 1u << asc_o) ||
           memcmp(trace_tensor(run, 'o', &t), trace_tensor(again, 'o', &t), run->layout.o.bytes) == 0;
}

/* Runs of negated inputs, and one of the same. */
enum { OF_Q, OF_V, RUNS };
static const char which[RUNS] = {'q', 'v'};

struct rounding_scan {
    const struct trace *t;
    const struct judgement *j;
    const struct runner_paths *paths; /* borrowed */
    struct scenario scenario;         /* owned: as it was when the scan began */
    int has_scenario;
    void (*wake)(void *ctx);
    void *ctx;
    pthread_t thread;
    int joinable, negate;
    atomic_int cancel;
    struct pool *pool;              /* owned */
    struct judge_scratch **scratch; /* owned, [pool threads] */
    struct recorder recorder;
    pthread_mutex_t lock; /* of what follows, up to the empty line */
    struct rounding *made;
    struct rounding_progress now;
    int changed, busy;

    /* The scan's own. */
    struct rounding *making;
    struct trace *negated[RUNS];
    atomic_int next, failed;
    struct rounding_progress state; /* the owner's */
    struct rounding *shown;         /* owned: the owner's, state.result */
};

static void rounding_free(struct rounding *b)
{
    if (!b)
        return;
    free(b->cells);
    free(b->drift);
    free(b->group);
    free(b);
}

static struct rounding *rounding_new(const struct trace *t)
{
    struct rounding *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->heads = t->problem.batch * t->problem.heads;
    b->kv_tiles = t->layout.kv_tiles;
    const size_t heads = (size_t)b->heads + 1, tiles = (size_t)b->kv_tiles + 1;
    b->cells = calloc(ASC_CHANNELS * heads * tiles, sizeof *b->cells);
    b->drift = calloc(ROUNDING_CURVES * heads * tiles, sizeof *b->drift);
    b->group = calloc(heads, sizeof *b->group);
    if (!b->cells || !b->drift || !b->group) {
        rounding_free(b);
        return NULL;
    }
    for (int head = 0; head < b->heads; head++)
        b->group[head] = head / t->problem.heads * t->problem.kv_heads +
                         asc_kv_head(&t->problem, head % t->problem.heads, t->conventions.kv_head_map);
    return b;
}

unsigned rounding_found(const struct rounding *b)
{
    unsigned set = 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (rounding_stage(b, (enum asc_channel)ch)->state == ROUNDING_FOUND)
            set |= 1u << ch;
    return set;
}

static void channels_words(unsigned set, char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "%s", set ? "" : "none");
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (set & 1u << ch && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? "," : "", channel_name(ch));
}

bool rounding_meets(const struct rounding *b, const struct expect *expect, char *why, size_t why_bytes)
{
    char want[96], got[96];
    why[0] = '\0';
    if (!expect->bias && !expect->no_bias)
        return true;
    channels_words(expect->bias, want, sizeof want);
    if (!b) {
        snprintf(why, why_bytes, "expected biased rounding in %s, which was not searched for", want);
        return false;
    }
    channels_words(rounding_found(b), got, sizeof got);
    const bool met = rounding_found(b) == expect->bias;
    if (met)
        snprintf(why, why_bytes, "biased rounding in %s, as expected", want);
    else
        snprintf(why, why_bytes, "expected biased rounding in %s, found %s", want, got);
    return met;
}

static bool stopped(const struct rounding_scan *s)
{
    return atomic_load(&s->cancel) || atomic_load(&s->failed);
}

static void report(void *ctx, enum runner_step step, double done, double total)
{
    struct rounding_scan *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->now.step = step;
    s->now.done = (int)done;
    s->now.total = (int)total;
    s->changed = 1;
    pthread_mutex_unlock(&s->lock);
    s->wake(s->ctx);
}

/* One q tile of a head, with its counterparts. -1 without memory. */
static int add_slot(const struct rounding_scan *s, int slot, struct rounding_head **head, struct judge_scratch *scratch)
{
    struct slot_case c, negated[RUNS] = {0};
    int failed = slot_case_make(s->t, slot, &c) != 0;
    for (int i = 0; i < RUNS && !failed; i++)
        failed = s->negated[i] && slot_case_make(s->negated[i], slot, &negated[i]) != 0;
    c.c.fingerprint = s->j->fingerprint;
    if (!failed && !*head)
        failed = !(*head = rounding_head_new(&c.c));
    if (!failed) {
        const struct rounding_negated n = {negated[OF_Q].captured, negated[OF_V].captured};
        failed = rounding_head_add(*head, &c.c, &n, scratch) != 0;
    }
    for (int i = 0; i < RUNS; i++)
        slot_case_free(&negated[i]);
    slot_case_free(&c);
    return failed ? -1 : 0;
}

/* What one head's cells and curves are copied from. */
static int take_head(const struct rounding_scan *s, struct rounding_head *head, int at)
{
    struct rounding *b = s->making;
    const size_t tiles = (size_t)b->kv_tiles;
    struct rounding_cell *cells = calloc(ASC_CHANNELS * (tiles + 1), sizeof *cells);
    struct rounding_drift *drift = calloc(ROUNDING_CURVES * tiles, sizeof *drift);
    if (cells && drift) {
        rounding_head_finish(head, cells, drift);
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            memcpy(&b->cells[((size_t)ch * (size_t)(b->heads + 1) + (size_t)at) * (tiles + 1)],
                   &cells[(size_t)ch * (tiles + 1)], (tiles + 1) * sizeof *cells);
        for (int curve = 0; curve < ROUNDING_CURVES; curve++)
            memcpy(&b->drift[((size_t)curve * (size_t)(b->heads + 1) + (size_t)at) * tiles],
                   &drift[(size_t)curve * tiles], tiles * sizeof *drift);
    }
    const bool failed = !cells || !drift;
    free(cells);
    free(drift);
    return failed ? -1 : 0;
}

/* A head a step. */
static int scan_step(void *ctx, int worker)
{
    struct rounding_scan *s = ctx;
    const int at = atomic_fetch_add(&s->next, 1), heads = s->t->problem.heads;
    struct rounding_head *head = NULL;
    int failed = 0;
    if (at >= s->making->heads || stopped(s))
        return 0;
    for (int q_tile = 0; q_tile < s->t->layout.q_tiles && !failed && !stopped(s); q_tile++) {
        const int slot = trace_slot(s->t, at / heads, at % heads, q_tile);
        if (slot >= 0)
            failed = add_slot(s, slot, &head, s->scratch[worker]);
    }
    if (head && !failed && !stopped(s))
        failed = take_head(s, head, at);
    rounding_head_free(head);
    if (failed)
        atomic_store(&s->failed, 1);
    pthread_mutex_lock(&s->lock);
    s->now.done++;
    s->changed = 1;
    pthread_mutex_unlock(&s->lock);
    s->wake(s->ctx);
    return 1;
}

static struct rounding_cell *cell_of(struct rounding *b, int ch, int head, int kv)
{
    return &b->cells[((ptrdiff_t)ch * (b->heads + 1) + head) * (b->kv_tiles + 1) + kv];
}

/* All heads together. */
static int combine(struct rounding *b)
{
    const struct rounding_cell **cells = calloc((size_t)b->heads, sizeof(struct rounding_cell *));
    for (int ch = 0; cells && ch < ASC_CHANNELS; ch++)
        for (int kv = 0; kv <= b->kv_tiles; kv++) {
            for (int head = 0; head < b->heads; head++)
                cells[head] = cell_of(b, ch, head, kv);
            rounding_combine(cells, b->group, b->heads, cell_of(b, ch, b->heads, kv));
        }
    for (int curve = 0; curve < ROUNDING_CURVES; curve++)
        for (int kv = 0; kv < b->kv_tiles; kv++)
            for (int head = 0; head < b->heads; head++)
                rounding_drift_merge(&b->drift[((ptrdiff_t)curve * (b->heads + 1) + b->heads) * b->kv_tiles + kv],
                                     rounding_drift(b, (enum rounding_curve)curve, head, kv));
    const bool failed = !cells;
    free(cells);
    return failed ? -1 : 0;
}

/* A kernel that leaves other bits each time says nothing by what it leaves of negated inputs. */
static int check_steady(struct rounding_scan *s, const struct runner_progress *progress, struct err *err)
{
    struct rounding *b = s->making;
    uint32_t broken = 0;
    struct trace *again;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (rounding_stage(b, (enum asc_channel)ch)->broken)
            broken |= 1u << ch;
    if (!broken)
        return 0;
    if (negate_record(&s->recorder, s->paths, &s->scenario, s->t, 0, progress, &again, err) != 0)
        return -1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (!(broken & 1u << ch) || negate_same(s->t, again, 1u << ch))
            continue;
        for (int head = 0; head < b->heads; head++)
            for (int kv = 0; kv <= b->kv_tiles; kv++) {
                struct rounding_cell *cell = cell_of(b, ch, head, kv);
                cell->unsteady = true;
                rounding_decide(cell);
            }
    }
    trace_free(again);
    return combine(b) == 0 ? 0 : err_no_memory(err, "", "the search for bias");
}

/* The runs of negated inputs. What cannot be run is said, and the scan goes on without it. */
static int record_negated(struct rounding_scan *s, const struct runner_progress *progress, struct err *err)
{
    static const enum runner_step steps[RUNS] = {STEP_Q_NEGATED, STEP_V_NEGATED};
    struct rounding *b = s->making;
    b->negated = 1;
    if (!s->has_scenario) {
        snprintf(b->lost, sizeof b->lost, "a saved trace has no kernel to run again");
        return 0;
    }
    for (int i = 0; i < RUNS; i++) {
        struct err own = {0};
        if (!negate_channels(s->t, which[i]))
            continue;
        report(s, steps[i], 0, 0);
        if (negate_record(&s->recorder, s->paths, &s->scenario, s->t, which[i], progress, &s->negated[i], &own) == 0)
            continue;
        if (own.code == ERR_CANCELLED) {
            *err = own;
            return -1;
        }
        const size_t used = strlen(b->lost);
        snprintf(b->lost + used, sizeof b->lost - used, "%s%s: %.150s", used ? "; " : "", runner_step_words(steps[i]),
                 own.message);
    }
    return 0;
}

static int scan(struct rounding_scan *s, struct err *err)
{
    const struct runner_progress progress = {.report = report, .ctx = s, .cancel = &s->cancel};
    s->making = rounding_new(s->t);
    if (!s->making)
        return err_no_memory(err, "", "the search for bias");
    if (s->negate && record_negated(s, &progress, err) != 0)
        return -1;
    report(s, STEP_BIAS, 0, s->making->heads);
    atomic_store(&s->next, 0);
    pool_start(s->pool, scan_step, s);
    pool_wait(s->pool);
    if (atomic_load(&s->cancel))
        return err_set(err, ERR_CANCELLED, "", "cancelled while searching for bias");
    if (atomic_load(&s->failed) || combine(s->making) != 0)
        return err_no_memory(err, "", "the search for bias");
    return s->negate && s->has_scenario ? check_steady(s, &progress, err) : 0;
}

static void *scan_thread(void *ctx)
{
    struct rounding_scan *s = ctx;
    struct err err = {0};
    const int failed = scan(s, &err);
    for (int i = 0; i < RUNS; i++) {
        trace_free(s->negated[i]);
        s->negated[i] = NULL;
    }
    pthread_mutex_lock(&s->lock);
    if (failed) {
        rounding_free(s->making);
    } else {
        rounding_free(s->made);
        s->made = s->making;
    }
    s->making = NULL;
    s->now.step = STEP_NONE;
    s->now.err = err;
    s->changed = 1;
    s->busy = 0;
    pthread_mutex_unlock(&s->lock);
    s->wake(s->ctx);
    return NULL;
}

/* The owner may change its own while the scan is under way. */
static int take_scenario(struct rounding_scan *s, const struct rounding_source *source)
{
    if (s->has_scenario)
        scenario_free(&s->scenario);
    s->has_scenario = source->scenario != NULL;
    if (!s->has_scenario)
        return 0;
    return scenario_copy(source->scenario, &s->scenario);
}

int rounding_scan_again(struct rounding_scan *s, const struct rounding_source *source, bool negate)
{
    pthread_mutex_lock(&s->lock);
    const int busy = s->busy;
    pthread_mutex_unlock(&s->lock);
    if (busy)
        return -1;
    if (s->joinable)
        pthread_join(s->thread, NULL);
    s->joinable = 0;
    if (take_scenario(s, source) != 0)
        return -1;
    s->negate = negate;
    s->busy = 1;
    s->now.err = (struct err){0};
    s->now.step = STEP_BIAS;
    s->now.done = s->now.total = 0;
    s->changed = 1;
    atomic_store(&s->cancel, 0);
    atomic_store(&s->failed, 0);
    s->joinable = pthread_create(&s->thread, NULL, scan_thread, s) == 0;
    s->busy = s->joinable;
    return s->joinable ? 0 : -1;
}

int rounding_scan_new(const struct trace *t, const struct judgement *j, const struct rounding_source *source,
                      bool negate, void (*wake)(void *ctx), void *ctx, struct rounding_scan **out)
{
    struct rounding_scan *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return -1;
    s->t = t;
    s->j = j;
    s->paths = source->paths;
    s->wake = wake;
    s->ctx = ctx;
    pthread_mutex_init(&s->lock, NULL);
    int failed = pool_new(0, &s->pool, NULL) != 0;
    s->scratch = failed ? NULL : calloc((size_t)pool_threads(s->pool), sizeof(struct judge_scratch *));
    for (int i = 0; s->scratch && i < pool_threads(s->pool); i++)
        failed |= !(s->scratch[i] = judge_scratch_new());
    if (failed || !s->scratch || rounding_scan_again(s, source, negate) != 0) {
        rounding_scan_free(s);
        return -1;
    }
    rounding_scan_collect(s);
    *out = s;
    return 0;
}

void rounding_scan_cancel(struct rounding_scan *s)
{
    atomic_store(&s->cancel, 1);
}

void rounding_scan_free(struct rounding_scan *s)
{
    if (!s)
        return;
    rounding_scan_cancel(s);
    if (s->joinable)
        pthread_join(s->thread, NULL);
    for (int i = 0; s->scratch && i < pool_threads(s->pool); i++)
        judge_scratch_free(s->scratch[i]);
    free(s->scratch);
    pool_free(s->pool);
    recorder_free(&s->recorder);
    if (s->has_scenario)
        scenario_free(&s->scenario);
    rounding_free(s->made);
    rounding_free(s->shown);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void rounding_scan_finish(struct rounding_scan *s)
{
    if (s->joinable)
        pthread_join(s->thread, NULL);
    s->joinable = 0;
    rounding_scan_collect(s);
}

bool rounding_scan_collect(struct rounding_scan *s)
{
    pthread_mutex_lock(&s->lock);
    const int changed = s->changed;
    s->changed = 0;
    if (s->made) {
        rounding_free(s->shown);
        s->shown = s->made;
        s->made = NULL;
    }
    s->state = s->now;
    s->state.result = s->shown;
    pthread_mutex_unlock(&s->lock);
    return changed;
}

const struct rounding_progress *rounding_scan_progress(const struct rounding_scan *s)
{
    return &s->state;
}
