/* The heart: walks the tiles in the order the kernel did, computes what each stage should be, locally and globally, and
   sets what was captured against it. */
#include "engine/oracle/oracle.h"

#include "engine/oracle/element.h"
#include "engine/oracle/fingerprint.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/local.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/tile.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct oracle_case *c;
    struct judge_scratch *s;
    struct tile_verdicts *out;
    struct tile_detail *detail; /* may be NULL; see wanted_detail */
    bool unseen;                /* see visits_unseen */
    bool inputs_alone;          /* and Q was not captured either: O and LSE follow from the inputs */
};

static struct tile_verdicts *verdicts_of(const struct job *job, enum asc_channel ch)
{
    return &job->out[(channel_per_kv(ch) ? job->s->at.kv : 0) * ASC_CHANNELS + (int)ch];
}

static struct tile_detail *wanted_detail(const struct job *job, enum asc_channel ch)
{
    struct tile_detail *d = job->detail;
    if (d && d->each) {
        d->channel = (int)ch;
        d->kv = channel_per_kv(ch) ? job->s->at.kv : 0;
        return d;
    }
    return d && d->channel == (int)ch && (!channel_per_kv(ch) || d->kv == job->s->at.kv) ? d : NULL;
}

static void fill(double *to, const double *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = from ? from[i] : NAN;
}

/* Captured values as they are; expectations only where they were computed. */
static void write_detail(const struct job *job, enum asc_channel ch, int has_local, int has_global)
{
    struct tile_detail *d = wanted_detail(job, ch);
    if (!d)
        return;
    const struct stage *stage = &job->s->stage[ch];
    const int n = stage->rows * stage->cols;
    d->rows = stage->rows;
    d->cols = stage->cols;
    fill(d->got, stage->recorded ? stage->got : NULL, n);
    const bool padded = ch == asc_s || ch == asc_p || (ch != asc_l && job->s->any_left_out);
    if (stage->recorded && padded) /* what was rightly never written is shown as that */
        values_load(scratch_captured(job->s, job->c, ch), d->got);
    fill(d->want_local, has_local ? stage->want[LOCAL] : NULL, n);
    fill(d->bound_local, has_local ? stage->bound[LOCAL] : NULL, n);
    fill(d->want_global, has_global ? stage->want[GLOBAL] : NULL, n);
    fill(d->bound_global, has_global ? stage->bound[GLOBAL] : NULL, n);
}

/* Lanes of l are judged by what they add up to: each shows its own value, no expectation, and the class of the sum. */
static void spread_lanes(const struct job *job, const struct matrix *captured)
{
    struct tile_detail *d = wanted_detail(job, asc_l);
    const int lanes = captured->cols;
    if (!d)
        return;
    for (int i = d->rows * lanes - 1; i >= 0; i--) {
        const int r = i / lanes, lane = i % lanes;
        d->class_local[i] = d->class_local[r];
        d->class_global[i] = d->class_global[r];
        d->got[i] = dtype_load(captured->dtype, captured->data, (size_t)(r * captured->row_stride + lane));
        d->want_local[i] = d->bound_local[i] = d->want_global[i] = d->bound_global[i] = NAN;
    }
    d->cols = lanes;
}

/* Nothing was recorded here: right if no element may contribute, else all of it is missing. */
static void judge_absent(const struct job *job, enum asc_channel ch, int masked, int has_global)
{
    const struct stage *stage = &job->s->stage[ch];
    struct tile_verdicts *v = verdicts_of(job, ch);
    struct tile_detail *d = wanted_detail(job, ch);
    const uint32_t n = (uint32_t)(stage->rows * stage->cols);
    struct verdict absent = {.judged = true, .masked = masked, .ratio_median = NAN, .ratio_spread = NAN};
    if (!masked) {
        absent.count[CLASS_MISSING] = n;
        absent.worst_ratio = INFINITY;
    }
    v->local = absent;
    v->global = absent;
    write_detail(job, ch, 0, has_global);
    if (d) {
        memset(d->class_local, masked ? CLASS_OK : CLASS_MISSING, n);
        memset(d->class_global, masked ? CLASS_OK : CLASS_MISSING, n);
        if (d->each)
            d->each(d->ctx, d);
    }
}

/* Both verdicts on a recorded channel. same: expectation and bound of both sides are the same numbers. lenient: a NaN
   expected locally is an upstream fault; for Q, K and V it is one of the input, which has no upstream. */
static void judge_recorded(const struct job *job, enum asc_channel ch, int same, int lenient)
{
    const struct stage *stage = &job->s->stage[ch];
    struct tile_verdicts *v = verdicts_of(job, ch);
    struct tile_detail *d = wanted_detail(job, ch);
    const bool masked = channel_per_kv(ch) && job->s->masked;
    v->local = (struct verdict){.visited = true, .masked = masked};
    v->global = v->local;
    struct comparison comparison = {
        .captured = scratch_captured(job->s, job->c, ch),
        .got = stage->got,
        .rows = stage->rows,
        .cols = stage->cols,
        .unlimited = ch == asc_p || ch == asc_u,
        .left_out = job->s->any_left_out && channel_per_kv(ch) && ch != asc_k && ch != asc_v ? job->s->left_out : NULL,
    };
    if (ch == asc_l && comparison.captured->cols > 1)
        comparison.captured = &job->s->lanes;
    for (int side = 0; side < SIDES; side++) {
        struct verdict *verdict = side == LOCAL ? &v->local : &v->global;
        if (side == GLOBAL && same && !d) {
            *verdict = v->local;
            break;
        }
        comparison.want = stage->want[side];
        comparison.bound = stage->bound[side];
        comparison.lenient = side == LOCAL && lenient;
        element_judge(&comparison, verdict, !d ? NULL : side == LOCAL ? d->class_local : d->class_global);
    }
    write_detail(job, ch, 1, 1);
    if (d && d->each)
        d->each(d->ctx, d);
    else if (comparison.captured == &job->s->lanes)
        spread_lanes(job, scratch_captured(job->s, job->c, ch));
}

/* Whether it is recorded after the next tile has rescaled it. */
static bool is_late(const struct job *job, enum asc_channel ch)
{
    return ch == asc_u && job->c->conventions.u_phase == ASC_U_RESCALED;
}

/* What a padding column of s may hold besides -inf. */
static double padding_value(const struct oracle_case *c)
{
    return c->conventions.s_masked == ASC_MASKED_VALUE ? (double)c->conventions.s_masked_value : -INFINITY;
}

static bool is_recorded(const struct job *job, enum asc_channel ch)
{
    return scratch_captured(job->s, job->c, ch)->data != NULL;
}

static void judge_operand(const struct job *job, enum asc_channel ch, int masked)
{
    if (!is_recorded(job, ch))
        return;
    if (masked && !values_written(scratch_captured(job->s, job->c, ch)))
        judge_absent(job, ch, 1, 0);
    else
        judge_recorded(job, ch, 1, 0);
}

/* u of an earlier tile, once a later one has rescaled it, or none will. */
static void judge_late_u(const struct job *job)
{
    struct judge_scratch *s = job->s;
    const struct stage u = s->stage[asc_u];
    const int kv = s->at.kv, masked = s->masked;
    if (s->late_kv < 0)
        return;
    s->stage[asc_u] = s->late;
    s->at.kv = s->late_kv;
    s->masked = s->late_masked;
    if (s->late.recorded)
        judge_recorded(job, asc_u, 0, 1);
    else if (is_recorded(job, asc_u))
        judge_absent(job, asc_u, 1, 0);
    s->stage[asc_u] = u;
    s->at.kv = kv;
    s->masked = masked;
    s->late_kv = -1;
}

/* What the kernel says it has not: an lse, or alpha on the first tile. */
static void judge_denied(const struct job *job, enum asc_channel ch)
{
    const struct matrix *m = scratch_captured(job->s, job->c, ch);
    struct tile_verdicts *v = verdicts_of(job, ch);
    struct tile_detail *d = wanted_detail(job, ch);
    v->local = (struct verdict){.judged = true, .visited = true, .ratio_median = NAN, .ratio_spread = NAN};
    for (int r = 0; r < m->rows; r++) {
        const int written = values_element_written(m, (size_t)(r * m->row_stride));
        if (written && !v->local.count[CLASS_EXTRA]++) {
            v->local.worst_row = (int16_t)r;
            v->local.worst_ratio = INFINITY;
        }
        v->local.count[CLASS_OK] += !written;
        if (d)
            d->class_local[r] = d->class_global[r] = written ? CLASS_EXTRA : CLASS_OK;
    }
    v->global = v->local;
    write_detail(job, ch, 0, 0);
    if (d)
        values_load(m, d->got);
    if (d && d->each)
        d->each(d->ctx, d);
}

static struct verdict *verdict_of(const struct job *job, enum asc_channel ch, int side)
{
    struct tile_verdicts *v = verdicts_of(job, ch);
    return side == LOCAL ? &v->local : &v->global;
}

static void judge_visited(const struct job *job, int kv)
{
    struct judge_scratch *s = job->s;
    scratch_tile(s, job->c, kv);
    s->exact_k = operand_take(job->c, s, asc_k);
    operand_take(job->c, s, asc_v);
    judge_operand(job, asc_k, s->masked);
    judge_operand(job, asc_v, s->masked);
    const int left = tile_left(job->c, s);
    if (!left)
        operand_share_v(job->c, s);
    if (job->inputs_alone)
        s->exact_k = false; /* nobody has computed local scores */
    if (!left && !job->inputs_alone) {
        tile_local(job->c, s);
        padding_excuse(job->c, s);
    }
    if (!left) {
        reference_s(job->c, s);
        reference_tile(job->c, s);
    }
    for (int i = 0; i < TILE_STAGES; i++) {
        const enum asc_channel ch = tile_stages[i];
        if (!is_recorded(job, ch) || (!left && is_late(job, ch)))
            continue;
        uint32_t unequal = 0;
        const int model = !left && (ch == asc_s || ch == asc_u) ? fingerprint_expect(job->c, s, ch, &unequal) : -1;
        if (ch == asc_alpha && !left && local_alpha_none(job->c, &s->at) && scratch_captured(s, job->c, ch)->data)
            judge_denied(job, ch);
        else if (s->stage[ch].recorded)
            judge_recorded(job, ch, ch == asc_s && s->exact_q && s->exact_k && model < 0, 1);
        else
            judge_absent(job, ch, 1, 0);
        verdicts_of(job, ch)->local.exact = (uint8_t)(model + 1);
        verdicts_of(job, ch)->local.unequal = unequal;
    }
    for (int side = 0; side < SIDES && s->stage[asc_s].recorded && s->pad_captured; side++)
        element_judge_padding(&job->c->s_padding[kv], s->at.cols, padding_value(job->c), verdict_of(job, asc_s, side));
    if (left)
        return;
    if (job->inputs_alone) {
        s->at.tiles_seen++;
        return;
    }
    for (int side = 0; side < SIDES && s->stage[asc_p].recorded; side++)
        padding_judge_p(job->c, s, side, verdict_of(job, asc_p, side));
    if (s->stage[asc_v].recorded)
        padding_judge_v(job->c, s, &verdicts_of(job, asc_v)->local);
    judge_late_u(job);
    if (is_late(job, asc_u))
        local_keep_u(job->c, s);
    local_advance(job->c, s);
}

/* A tile the kernel did not visit still counts in the reference of o and lse. */
static void judge_unvisited(const struct job *job, int kv)
{
    struct judge_scratch *s = job->s;
    scratch_tile(s, job->c, kv);
    s->exact_k = false;
    if (!s->masked) {
        reference_load(job->c, s, asc_k);
        reference_load(job->c, s, asc_v);
        reference_s(job->c, s);
        reference_tile(job->c, s);
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (channel_per_kv(ch) && is_recorded(job, ch))
            judge_absent(job, ch, s->masked, !s->masked && ch != asc_k && ch != asc_v);
}

/* Whether no channel was recorded that a visit would show in: then all tiles that hold something were visited, as far
   as anybody knows, one after the other. */
static bool visits_unseen(const struct oracle_case *c)
{
    for (int i = 0; i < c->kv_tiles * ASC_CHANNELS; i++)
        if (channel_per_kv((enum asc_channel)(i % ASC_CHANNELS)) && c->captured[i].data)
            return false;
    return true;
}

/* Whether o and lse follow from nothing that was captured but the inputs: the reference, whose bounds are the narrower
   ones, is then what they should be by any account. */
static bool end_follows_from_inputs(const struct job *job)
{
    const struct verdict *q = &verdicts_of(job, asc_q)->local;
    if (!job->unseen)
        return false;
    return !is_recorded(job, asc_q) || (verdict_ok(q) && q->unjudged == 0 && !scratch_fed(job->s, job->c, asc_q));
}

static void judge_end(const struct job *job)
{
    const int from_inputs = job->inputs_alone || end_follows_from_inputs(job);
    local_o(job->c, &job->s->at, scratch_local(job->s, asc_o));
    local_lse(job->c, &job->s->at, scratch_local(job->s, asc_lse));
    reference_end(job->c, job->s);
    const enum asc_channel ends[] = {asc_o, asc_lse};
    job->s->likely.noise.known = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct stage *stage = &job->s->stage[ends[i]];
        if (!is_recorded(job, ends[i]))
            continue;
        if (from_inputs) {
            stage->want[LOCAL] = stage->want[GLOBAL];
            stage->bound[LOCAL] = stage->bound[GLOBAL];
        }
        scratch_take(job->s, job->c, ends[i]);
        if (ends[i] == asc_o)
            likely_noise(job->c, job->s);
        if (ends[i] == asc_lse && job->c->conventions.no_lse)
            judge_denied(job, asc_lse);
        else
            judge_recorded(job, ends[i], 0, 1);
        struct tile_verdicts *v = verdicts_of(job, ends[i]);
        v->global.likely = job->s->likely.on && job->s->likely.decided[ends[i]];
        v->global.unusual = ends[i] == asc_o && noise_unusual(&job->s->likely.noise);
        if (from_inputs) {
            v->local.likely = v->global.likely;
            v->local.unusual = v->global.unusual;
        }
    }
}

/* The tiles of one split: those the kernel visited, as it did, then the others. */
static void judge_split(const struct job *job, int split)
{
    const struct oracle_case *c = job->c;
    const struct schedule_lists *lists = &job->s->lists;
    int *seen = job->s->seen;
    local_begin(c, job->s, split);
    reference_begin(c, job->s, split);
    for (int i = lists->first_visit[split]; i >= 0 && !job->s->stopped; i = lists->next_visit[i]) {
        seen[c->order[i]] = 1;
        judge_visited(job, c->order[i]);
    }
    for (int kv = job->unseen ? lists->first_tile[split] : -1; kv >= 0 && !job->s->stopped; kv = lists->next_tile[kv]) {
        if (seen[kv] || schedule_masked(c, kv))
            continue;
        seen[kv] = 1;
        judge_visited(job, kv);
    }
    judge_late_u(job);
    for (int kv = lists->first_tile[split]; kv >= 0 && !job->s->stopped; kv = lists->next_tile[kv])
        if (!seen[kv])
            judge_unvisited(job, kv);
    if (job->unseen)
        reference_turn(c, job->s);
    merge_local(c, job->s);
    merge_reference(c, job->s);
}

int judge_case(const struct oracle_case *c, struct judge_scratch *scratch, struct tile_verdicts *out,
               struct tile_detail *detail)
{
    struct job job = {.c = c, .s = scratch, .out = out, .detail = detail, .unseen = visits_unseen(c)};
    job.inputs_alone = job.unseen && !c->captured[asc_q].data;
    if (scratch_prepare(scratch, c) != 0)
        return -1;
    memset(out, 0, (size_t)c->kv_tiles * ASC_CHANNELS * sizeof *out);
    if (detail)
        detail->rows = detail->cols = 0;
    scratch->lean = !detail && !c->fingerprint;
    reference_inputs(c, scratch);
    scratch_tile(scratch, c, 0);
    scratch->exact_q = operand_take(c, scratch, asc_q);
    magnitude_share_q(&scratch->room, c->in_q.rows, c->head_dim, scratch->at.size[asc_q]);
    judge_operand(&job, asc_q, schedule_empty(c));
    merge_begin(c, scratch);
    for (int split = 0; split < scratch->lists.splits && !scratch->stopped; split++)
        judge_split(&job, split);
    if (scratch->stopped)
        return -1;
    merge_finish_local(c, scratch);
    merge_finish_reference(c, scratch);
    judge_end(&job);
    return 0;
}

const struct output_noise *judge_noise(const struct judge_scratch *s)
{
    return &s->likely.noise;
}

bool noise_unusual(const struct output_noise *n)
{
    return n->known && !(n->row <= n->limit && n->slope >= n->low && n->slope <= n->high);
}

int tile_detail_make(struct tile_detail *d, size_t n)
{
    double *numbers = calloc(n, 5 * sizeof *numbers + 2);
    if (!numbers)
        return -1;
    d->got = numbers;
    d->want_local = numbers + n;
    d->bound_local = numbers + 2 * n;
    d->want_global = numbers + 3 * n;
    d->bound_global = numbers + 4 * n;
    d->class_local = (uint8_t *)(numbers + 5 * n);
    d->class_global = d->class_local + n;
    return 0;
}

void tile_detail_free(struct tile_detail *d)
{
    free(d->got);
    *d = (struct tile_detail){0};
}

int judge_each(const struct oracle_case *c, struct judge_scratch *scratch,
               void (*each)(void *ctx, const struct tile_detail *d), void *ctx)
{
    const size_t rows = (size_t)(c->in_q.rows > c->bc ? c->in_q.rows : c->bc),
                 cols = (size_t)(oracle_widest(c) > c->bc ? oracle_widest(c) : c->bc);
    struct tile_verdicts *verdicts = calloc((size_t)c->kv_tiles * ASC_CHANNELS, sizeof *verdicts);
    struct tile_detail d = {.each = each, .ctx = ctx};
    int failed = !verdicts || tile_detail_make(&d, rows * cols) != 0;
    failed = failed || judge_case(c, scratch, verdicts, &d) != 0;
    tile_detail_free(&d);
    free(verdicts);
    return failed ? -1 : 0;
}
