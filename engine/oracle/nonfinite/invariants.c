#include "engine/oracle/nonfinite/invariants.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/oracle.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/scratch.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *sentence, *formula;
} texts[INVARIANT_COUNT] = {
    [INVARIANT_M_RISES] = {"m-rises", "m is NaN, or falls", "m >= m_prev"},
    [INVARIANT_ALPHA] = {"alpha", "alpha is NaN, or not exp(m_prev - m)", "alpha = exp(m_prev − m)"},
    [INVARIANT_ALPHA_ONE] = {"alpha-one", "alpha is NaN, or larger than 1", "alpha <= 1 + eps"},
    [INVARIANT_L_POSITIVE] = {"l-positive", "l is NaN, or not positive in a row that has seen a key", "l > 0"},
    [INVARIANT_SUM] = {"sum", "m + ln l does not match the keys so far", "m + ln l = ln Σ exp(s)"},
    [INVARIANT_OUTPUT] = {"output", "u / l does not match the keys so far", "u / l = Σ exp(s) v / Σ exp(s)"},
};

const char *invariant_name(enum invariant i)
{
    return texts[i].name;
}

const char *invariant_sentence(enum invariant i)
{
    return texts[i].sentence;
}

const char *invariant_formula(enum invariant i)
{
    return texts[i].formula;
}

/* What the reference says of one row after one step, in the frame that the captured m sets, where it can be one. */
struct reference_row {
    double frame; /* natural */
    double l, l_bound;
};

struct judging_states {
    const struct oracle_case *c;
    struct judge_scratch *s;
    struct row_states *out;
    struct reference_row *reference; /* owned, [n_steps][rows] */
    int *step_of;                    /* owned, [kv_tiles], -1: not visited */
};

static void judge(struct judging_states *j, struct row_step *at, enum invariant i, int holds)
{
    j->out->judged |= 1u << i;
    if (holds)
        return;
    at->broken |= 1u << i;
    j->out->broken[i]++;
}

static struct row_step *row_at(const struct judging_states *j, int step, int row)
{
    return step < 0 ? NULL : &j->out->at[(size_t)step * (size_t)j->out->rows + (size_t)row];
}

/* A NaN passes nothing, whatever there was to hold it to, unless the inputs make it one. */
static bool is_own_nan(const struct tile_detail *d, size_t i)
{
    return isnan(d->got[i]) && d->class_global[i] != CLASS_OK && d->class_global[i] != CLASS_MISSING &&
           !(isnan(d->want_global[i]) && d->class_global[i] == STATUS_UNJUDGED);
}

static bool was_written(const struct tile_detail *d, int row)
{
    return d->class_local[row] != CLASS_MISSING && !(isnan(d->got[row]) && d->class_local[row] == CLASS_OK);
}

/* m never falls, lagging or not: max(m_prev, .) is at least m_prev, and a conversion of its unit is monotonic, so that
   there is nothing to allow for but the sink that m may begin at, which is converted by itself. Where the factor is
   negative, so is the order. A fixed m is any number. */
static void judge_m(struct judging_states *j, int step, const struct tile_detail *d)
{
    const int before = j->out->steps[step].before, split = j->out->steps[step].split;
    const int policy = j->c->conventions.m_policy;
    const double natural = values_natural_m(j->c);
    for (int r = 0; r < d->rows; r++) {
        struct row_step *at = row_at(j, step, r);
        if (!was_written(d, r))
            continue;
        at->m = d->got[r];
        at->written |= 1u << asc_m;
        const double from = before < 0 ? local_m_begin(j->c, split) : row_at(j, before, r)->m;
        const double loose = before < 0 ? local_m_begin_loose(j->c, split) * fabs(natural) : 0;
        if (policy == ASC_M_FIXED || (isnan(from) && !is_own_nan(d, (size_t)r)))
            continue;
        judge(j, at, INVARIANT_M_RISES, at->m * natural >= from * natural - loose);
    }
}

/* alpha is judged as the stage is. As m never falls, the exponent of a running or lagging one is at most 0, or what
   rounding makes of 0: bound_exp at 0, and 2 u |m| where score and maximum may have been scaled before they were
   subtracted. */
static void judge_alpha(struct judging_states *j, int step, const struct tile_detail *d)
{
    const struct asc_conventions *conventions = &j->c->conventions;
    for (int r = 0; r < d->rows; r++) {
        struct row_step *at = row_at(j, step, r);
        if (!was_written(d, r))
            continue;
        at->alpha = d->got[r];
        at->written |= 1u << asc_alpha;
        if (d->class_local[r] != STATUS_UNJUDGED || is_own_nan(d, (size_t)r))
            judge(j, at, INVARIANT_ALPHA, d->class_local[r] == CLASS_OK);
        if (conventions->m_policy == ASC_M_FIXED)
            continue;
        const double m = isfinite(at->m) ? at->m * values_natural_m(j->c) : 0;
        judge(j, at, INVARIANT_ALPHA_ONE, at->alpha <= 1 + bound_exp_declared(j->c, 0, values_scaled_first(j->c, m)));
    }
}

/* The reference is L e^M, whatever M; the kernel's is l e^m. Both times e^-frame the reference is what a correct
   kernel's l would be in that frame, with the bound that goes with it (reference.h): |l e^(m - frame) - want| <= bound.
   Where m is the frame, as it is but for an absurd m, the power is 1. l is positive wherever the bound leaves no room
   for 0. */
static void judge_l(struct judging_states *j, int step, const struct tile_detail *d)
{
    const double natural = values_natural_m(j->c), offset = bound_ln_factor(j->c);
    for (int r = 0; r < d->rows; r++) {
        struct row_step *at = row_at(j, step, r);
        struct reference_row *reference = &j->reference[(size_t)step * (size_t)j->out->rows + (size_t)r];
        const double want = d->want_global[r], bound = d->bound_global[r];
        *reference = (struct reference_row){j->s->reference.frame[r], want, bound};
        at->log_sum_want = reference->frame + log(want) - offset;
        if (!was_written(d, r))
            continue;
        at->l = d->got[r];
        at->written |= 1u << asc_l;
        const double m = isnan(at->m) ? reference->frame : at->m * natural;
        at->log_sum = m + log(at->l) - offset;
        if (isnan(want) || !(bound <= INFINITY))
            continue;
        const double power = m == reference->frame || at->l == 0 ? 1 : exp(m - reference->frame);
        const double error = fabs(at->l * power - want);
        at->sum_ratio = isnan(error) ? (double)NAN : error <= 0 ? 0 : bound > 0 ? error / bound : INFINITY;
        judge(j, at, INVARIANT_SUM, error <= bound);
        if (want > bound || is_own_nan(d, (size_t)r))
            judge(j, at, INVARIANT_L_POSITIVE, at->l > 0);
    }
}

/* By how much u was rescaled after l was recorded: where it is recorded behind the next step's alpha. As captured, and
   as the frames say. 0: not known. */
static bool late_factor(const struct judging_states *j, int step, int row, double *got, double *want)
{
    const int behind = j->out->steps[step].behind;
    *got = *want = 1;
    if (j->c->conventions.u_phase != ASC_U_RESCALED || behind < 0)
        return true;
    const size_t rows = (size_t)j->out->rows;
    *got = row_at(j, behind, row)->alpha;
    *want = exp(j->reference[(size_t)step * rows + (size_t)row].frame -
                j->reference[(size_t)behind * rows + (size_t)row].frame);
    return *got > 0 && *want > 0;
}

/* u / l needs no frame. With u off by B_u and l by B_l at most, the quotient of a correct kernel's lies within
   (B_u + |o| B_l) / (l - B_l) of the true one, o (reference.h). A U that was divided by l after the tile is that
   quotient.
 */
static void judge_u(struct judging_states *j, int step, const struct tile_detail *d)
{
    const bool divided = j->c->conventions.u_norm == ASC_U_NORM_TILE;
    for (int r = 0; r < d->rows; r++) {
        struct row_step *at = row_at(j, step, r);
        const struct reference_row *reference = &j->reference[(size_t)step * (size_t)j->out->rows + (size_t)r];
        double got_factor, want_factor;
        if (!(at->written & 1u << asc_l) || !late_factor(j, step, r, &got_factor, &want_factor))
            continue;
        const double l = reference->l * want_factor, l_bound = reference->l_bound * want_factor;
        int holds = 1, any = 0;
        for (int col = 0; col < d->cols; col++)
            any |= is_own_nan(d, (size_t)r * (size_t)d->cols + (size_t)col);
        if (!(l > l_bound)) { /* nothing seen so far, or nothing known */
            if (any)
                judge(j, at, INVARIANT_OUTPUT, 0);
            continue;
        }
        any = 0;
        for (int col = 0; col < d->cols; col++) {
            const size_t i = (size_t)r * (size_t)d->cols + (size_t)col;
            const double o = d->want_global[i] / (divided ? 1 : l);
            const double bound =
                divided ? d->bound_global[i] : (d->bound_global[i] + fabs(o) * l_bound) / (l - l_bound);
            if (d->class_local[i] == CLASS_MISSING || isnan(o) || !(bound <= INFINITY))
                continue;
            const double error = fabs(d->got[i] / (divided ? 1 : at->l * got_factor) - o);
            const double ratio = isnan(error) ? (double)NAN : error <= 0 ? 0 : bound > 0 ? error / bound : INFINITY;
            holds &= error <= bound;
            if (!any || (!isnan(at->output_ratio) && !(ratio <= at->output_ratio))) {
                at->output_ratio = ratio;
                at->output_col = col;
            }
            any = 1;
        }
        if (any)
            judge(j, at, INVARIANT_OUTPUT, holds);
    }
}

static void judge_tile(void *ctx, const struct tile_detail *d)
{
    struct judging_states *j = ctx;
    const int step = channel_per_kv((enum asc_channel)d->channel) ? j->step_of[d->kv] : -1;
    if (step < 0 || d->rows != j->out->rows)
        return;
    switch (d->channel) {
    case asc_m:
        judge_m(j, step, d);
        break;
    case asc_alpha:
        judge_alpha(j, step, d);
        break;
    case asc_l:
        judge_l(j, step, d);
        break;
    case asc_u:
        judge_u(j, step, d);
        break;
    default:
        break;
    }
}

static void find_first(struct row_states *out)
{
    out->first_step = out->first_row = -1;
    for (int i = 0; i < out->n_steps * out->rows && out->first_step < 0; i++) {
        if (!out->at[i].broken)
            continue;
        out->first_step = i / out->rows;
        out->first_row = i % out->rows;
    }
}

int row_states_make(const struct oracle_case *c, struct judge_scratch *scratch, struct row_states *out)
{
    *out = (struct row_states){.rows = c->in_q.rows, .first_step = -1, .first_row = -1};
    out->steps = calloc((size_t)c->kv_tiles + 1, sizeof *out->steps);
    out->n_steps = out->steps ? steps_list(c, out->steps) : -1;
    const size_t n = out->n_steps > 0 ? (size_t)out->n_steps * (size_t)out->rows : 0;
    struct judging_states j = {.c = c, .s = scratch, .out = out};
    out->at = calloc(n + 1, sizeof *out->at);
    j.reference = calloc(n + 1, sizeof *j.reference);
    j.step_of = calloc((size_t)c->kv_tiles + 1, sizeof *j.step_of);
    int failed = out->n_steps < 0 || !out->at || !j.reference || !j.step_of;
    if (!failed) {
        const struct row_step unknown = {
            .m = NAN, .alpha = NAN, .l = NAN, .log_sum = NAN, .log_sum_want = NAN, .sum_ratio = -1, .output_ratio = -1};
        for (size_t i = 0; i < n; i++)
            out->at[i] = unknown;
        for (int kv = 0; kv < c->kv_tiles; kv++)
            j.step_of[kv] = -1;
        for (int i = 0; i < out->n_steps; i++)
            j.step_of[out->steps[i].kv] = i;
        failed = judge_each(c, scratch, judge_tile, &j) != 0;
    }
    free(j.reference);
    free(j.step_of);
    if (failed) {
        row_states_free(out);
        return -1;
    }
    if (c->fed) { /* what was captured is not what the kernel went on with */
        for (size_t i = 0; i < n; i++)
            out->at[i].broken = 0;
        memset(out->broken, 0, sizeof out->broken);
        out->judged = 0;
    }
    find_first(out);
    return 0;
}

void row_states_free(struct row_states *s)
{
    free(s->steps);
    free(s->at);
    *s = (struct row_states){.first_step = -1, .first_row = -1};
}

/* Room for one query and one key as they are multiplied, [head_dim] each, and for the scores of a tile, [bc]. */
struct dot_room {
    double *q, *k, *x;
};

/* What a query or a key is multiplied as; returns what S then gets for it. */
static double load_row(const struct oracle_case *c, enum asc_channel ch, int row, double *out)
{
    const struct coded_rows part = {ch, codes_input(c, ch), codes_of(c, ch), row, 1};
    double by = 1;
    codes_load(c, &part, out, NULL);
    codes_by(c, ch, row, 1, &by);
    return by;
}

/* Natural scores of the keys of tile kv that the row sees, soft cap and bias included; returns how many. */
static int tile_scores(const struct oracle_case *c, int row, int kv, const struct dot_room *room)
{
    double *x = room->x;
    int n = 0;
    const double by_q = load_row(c, asc_q, row, room->q);
    for (int j = schedule_hidden(c, row, kv); j < schedule_visible(c, row, kv); j++) {
        if (!schedule_shows(c, row, kv * c->bc + j))
            continue;
        const double by_k = load_row(c, asc_k, kv * c->bc + j, room->k);
        double dot = 0;
        for (int d = 0; d < c->head_dim; d++)
            dot += room->q[d] * room->k[d];
        const double score = c->scale * dot * (by_q * by_k);
        const double capped = c->softcap > 0 ? c->softcap * tanh(score / c->softcap) : score;
        x[n++] = bias_modified(c, row, kv * c->bc + j, capped);
    }
    return n;
}

/* The running state between two tiles, in natural units. */
struct running {
    double max, sum;
    int seen; /* tiles */
};

/* m, alpha and l behind tile kv. */
static void take_tile(const struct oracle_case *c, int row, int kv, const struct dot_room *room, struct running *at,
                      double *alpha)
{
    const int visible = tile_scores(c, row, kv, room), first = c->conventions.alpha_first;
    const double *x = room->x;
    double next = at->max;
    double added = 0;
    for (int j = 0; j < visible; j++)
        next = fmax(next, x[j]);
    for (int j = 0; j < visible; j++)
        added += x[j] == -INFINITY ? 0 : exp(x[j] - next);
    *alpha = first == ASC_ALPHA_ONE || (first == ASC_ALPHA_ONE_FIRST && at->seen == 0);
    if (first == ASC_ALPHA_NONE_FIRST && at->seen == 0)
        *alpha = NAN;
    if (at->max != -INFINITY)
        *alpha = exp(at->max - next);
    at->sum = (at->max == -INFINITY ? 0 : *alpha * at->sum) + added;
    at->max = next;
    at->seen++;
}

static struct running begin_split(const struct oracle_case *c, int split)
{
    const int l_sink = c->conventions.l_sink;
    const bool at_sink = c->has_sink && split == 0 && (l_sink == ASC_SINK_START || l_sink == ASC_SINK_M_START);
    return (struct running){.max = at_sink ? c->sink : -INFINITY, .sum = at_sink && l_sink == ASC_SINK_START};
}

int row_state_want(const struct oracle_case *c, int row, double *m, double *alpha, double *l)
{
    const double natural = values_natural_m(c), factor_of_p = bound_p_factor(c);
    const size_t head_dim = (size_t)c->head_dim;
    struct schedule_lists lists;
    double *all = malloc((2 * head_dim + (size_t)c->bc) * sizeof *all);
    int *indices = calloc(schedule_lists_room(c), sizeof *indices);
    if (!all || !indices) {
        free(all);
        free(indices);
        return -1;
    }
    schedule_lists_make(c, indices, &lists);
    const struct dot_room room = {all, all + head_dim, all + 2 * head_dim};
    for (int kv = 0; kv < c->kv_tiles; kv++)
        m[kv] = alpha[kv] = l[kv] = NAN;
    for (int split = 0; split < lists.splits; split++) {
        struct running at = begin_split(c, split);
        for (int i = lists.first_visit[split]; i >= 0; i = lists.next_visit[i]) {
            const int kv = c->order[i];
            take_tile(c, row, kv, &room, &at, &alpha[kv]);
            m[kv] = at.max == -INFINITY ? at.max : at.max / natural;
            l[kv] = factor_of_p * at.sum;
        }
    }
    free(indices);
    free(all);
    return 0;
}
