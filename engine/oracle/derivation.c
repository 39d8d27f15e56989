#include "engine/oracle/derivation.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/tile.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include "engine/trace/layout.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One walk over the tiles of a case of one row; judge_case does it and calls look() at every tile it judges. */
struct walk {
    const struct oracle_case *c;
    const struct fingerprint *fingerprint;
    const struct judge_scratch *s;
    struct judge_scratch *work; /* the same: for products of tensor cores */
    struct derivation *out;
    int kv, at;     /* the tile, and the element's column */
    int newest;     /* kv tile that was looked at last; -1: none */
    int split;      /* its split */
    bool no_memory; /* for terms */
    /* The reference behind the tile before, in the frame of that tile. */
    double l_before, *u_before; /* u: owned, [head_dim_v] */
    double l_now, *u_now;
};

static void put_step(struct walk *w, const char *name, const char *formula, double got, double want)
{
    struct derivation *d = w->out;
    if (d->n_steps == DERIVATION_STEPS)
        return;
    struct derivation_step *step = &d->step[d->n_steps++];
    *step = (struct derivation_step){.got = got, .want = want, .got_known = true, .want_known = true};
    snprintf(step->name, sizeof step->name, "%s", name);
    snprintf(step->formula, sizeof step->formula, "%s", formula);
}

/* The step put last: it is the value of this channel, which may not be recorded. */
static void is_of_channel(struct walk *w, int recorded)
{
    w->out->step[w->out->n_steps - 1].expected = !recorded;
}

static void only_got(struct walk *w)
{
    w->out->step[w->out->n_steps - 1].want_known = false;
}

static int is_recorded(const struct walk *w, enum asc_channel ch)
{
    return w->s->stage[ch].recorded;
}

/* Room for n terms, or -1. */
static int begin_terms(struct walk *w, int n, const char *index, const char *first, const char *second)
{
    struct derivation *d = w->out;
    d->terms = calloc((size_t)n, sizeof *d->terms);
    if (!d->terms) {
        w->no_memory = 1;
        return -1;
    }
    d->index = index;
    d->factor[0] = first;
    d->factor[1] = second;
    d->n_factors = second ? 2 : 1;
    return 0;
}

static void put_term(struct derivation *d, int at, const double got[2], const double want[2])
{
    struct derivation_term *t = &d->terms[d->n_terms++];
    *t = (struct derivation_term){.at = at, .got = {got[0], got[1]}, .want = {want[0], want[1]}};
    t->term_got = d->n_factors == 2 ? got[0] * got[1] : got[0];
    t->term_want = d->n_factors == 2 ? want[0] * want[1] : want[0];
}

struct sums {
    double got, want;
};

static struct sums add_terms(struct derivation *d)
{
    struct sums sum = {0, 0};
    for (int i = 0; i < d->n_terms; i++) {
        sum.got += d->terms[i].term_got;
        sum.want += d->terms[i].term_want;
        d->size_got += fabs(d->terms[i].term_got);
    }
    return sum;
}

/* NaN before all numbers; where the captured terms are alike, the larger wanted one; then as they stand. */
static int by_value(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a < b) - (a > b);
}

static int by_size(const void *a, const void *b)
{
    const struct derivation_term *x = a, *y = b;
    const int got = by_value(fabs(x->term_got), fabs(y->term_got));
    const int want = by_value(fabs(x->term_want), fabs(y->term_want));
    return got ? got : want ? want : x->at - y->at;
}

static int by_score(const void *a, const void *b)
{
    const struct derivation_term *x = a, *y = b;
    const int got = by_value(x->term_got, y->term_got), want = by_value(x->term_want, y->term_want);
    return got ? got : want ? want : x->at - y->at;
}

static void sort_terms(struct derivation *d, int (*order)(const void *, const void *))
{
    if (d->n_terms > 1)
        qsort(d->terms, (size_t)d->n_terms, sizeof *d->terms, order);
}

static void put_result(struct walk *w, enum asc_channel ch)
{
    const struct stage *stage = &w->s->stage[ch];
    struct derivation *d = w->out;
    d->derived = DERIVED_YES;
    d->recorded = stage->recorded;
    d->got = stage->recorded ? stage->got[w->at] : NAN;
    d->want_local = stage->want[LOCAL][w->at];
    d->want_global = stage->want[GLOBAL][w->at];
}

/* What the declared tensor core gives, as the channel holds it: the one that this run's bits were found to be, or the
   first that the declaration leaves open. */
static void put_tensor_core(struct walk *w, enum asc_channel ch)
{
    struct product_way ways[PRODUCT_WAYS];
    struct product product;
    const int n = product_ways(w->c, ch, ways);
    const struct fingerprint_stage *f = !w->fingerprint ? NULL : ch == asc_s ? &w->fingerprint->s : &w->fingerprint->u;
    const uint32_t fits = f ? fingerprint_fits(f) : 0;
    struct product_way way;
    char name[32];
    if (n == 0 || product_take(w->c, w->work, ch, &product) != 0)
        return;
    way = fits ? f->way[__builtin_ctz(fits)] : ways[0];
    void *sums = w->work->core.sums, *out = w->work->core.out;
    product_sum(w->s, &product, &way, sums);
    product_finish(w->s, &product, &way, sums, out);
    snprintf(name, sizeof name, "%s gives", tensor_core_name(way.model));
    put_step(w, name, fits ? "this run's tensor core, bit for bit" : "a tensor core that the declaration covers",
             (double)((const float *)out)[w->at], NAN);
    only_got(w);
}

static void derive_operand(struct walk *w, enum asc_channel ch)
{
    const struct stage *stage = &w->s->stage[ch];
    const struct oracle_case *c = w->c;
    const int first = ch == asc_q ? 0 : w->s->at.kv * c->bc, row = ch == asc_q ? 0 : w->out->row;
    const struct matrix *in = codes_input(c, ch);
    const double input =
        dtype_load(in->dtype, in->data, (size_t)((int64_t)(first + row) * in->row_stride + w->out->col));
    const double scale = codes_scale(codes_of(c, ch), first + row, w->out->col),
                 fold = ch == asc_q ? values_fold(c) : 1;
    w->at = row * stage->cols + w->out->col;
    const bool turned = c->rope.kind && ch != asc_v;
    put_step(w, dtype_is_code(in->dtype) ? "the input's code" : "the input", turned ? "turned by its position" : "",
             input, input);
    if (codes_use(c, ch) != CODES_NONE)
        put_step(w, "scale", codes_use(c, ch) == CODES_RAW ? "applied after the product" : "", scale, scale);
    if (fold != 1)
        put_step(w, "factor", "folded into Q", fold, fold);
    put_result(w, ch);
}

static void derive_s(struct walk *w)
{
    const struct oracle_case *c = w->c;
    const struct judge_scratch *s = w->s;
    const int n = c->head_dim, col = w->at;
    const size_t key = (size_t)col * (size_t)n;
    const double fold = values_fold(c), factor = values_factor(c->conventions.s_unit, c->scale) / fold;
    if (begin_terms(w, n, "d", "q", "k") != 0)
        return;
    for (int d = 0; d < n; d++)
        put_term(w->out, d, (double[]){s->at.of[asc_q].value[d], s->at.of[asc_k].value[key + (size_t)d]},
                 (double[]){s->input[asc_q].value[d] * fold, s->input[asc_k].value[key + (size_t)d]});
    const struct sums sum = add_terms(w->out);
    put_step(w, "sum of q·k", "in float64", sum.got, sum.want);
    put_step(w, "factor", "", factor, factor);
    if (s->at.scales_s)
        put_step(w, "scales of the codes", "", s->at.by_q[0] * s->at.by_k[col], s->at.by_q[0] * s->at.by_k[col]);
    if (c->softcap > 0 && !values_capped_later(c))
        put_step(w, "soft cap", "cap tanh(x / cap)", c->softcap, c->softcap);
    if (bias_terms(c) && !values_biased_later(c))
        put_step(w, "attention bias", "", s->at.bias[col] / values_natural_s(c), s->at.bias[col] / values_natural_s(c));
    put_tensor_core(w, asc_s);
    sort_terms(w->out, by_size);
}

/* Scores in m's unit as m reads them: what is masked, and not looked at, is left out. */
static void derive_m(struct walk *w)
{
    const struct judge_scratch *s = w->s;
    const double natural = values_natural_m(w->c), start = local_m_begin(w->c, s->at.split);
    const double by = s->at.s_direct ? 1 : s->at.s_natural / natural, true_by = s->reference.s_natural / natural;
    double top = -INFINITY;
    double true_top = -INFINITY;
    char where[64] = "";
    if (begin_terms(w, s->at.cols, "c", "s", NULL) != 0)
        return;
    for (int i = 0; i < s->at.cols; i++) {
        const double got = s->at.s.value[i] == -INFINITY ? -INFINITY : s->at.s.value[i] * by;
        const double want = s->reference.s[i] == -INFINITY ? -INFINITY : s->reference.s[i] * true_by;
        true_top = fmax(true_top, want);
        if (got > top)
            snprintf(where, sizeof where, "c%d", i);
        top = fmax(top, got);
        if (got != -INFINITY || want != -INFINITY)
            put_term(w->out, i, (double[]){got, 0}, (double[]){want, 0});
    }
    put_step(w, "m before", "", s->at.m_prev.value[0], fmax(s->reference.max_prev[0] / natural, start));
    if (s->at.tiles_seen > 0)
        is_of_channel(w, is_recorded(w, asc_m));
    put_step(w, "largest score", where, top, true_top);
    sort_terms(w->out, by_score);
}

static void derive_alpha(struct walk *w)
{
    const struct judge_scratch *s = w->s;
    const double natural = values_natural_m(w->c), start = local_m_begin(w->c, s->at.split);
    const bool running = w->c->conventions.m_policy == ASC_M_RUNNING;
    const double from =
        running ? fmax(s->reference.max_prev[0] / natural, start) : s->reference.frame_prev[0] / natural;
    const double to = running ? fmax(s->reference.max[0] / natural, start) : s->reference.frame[0] / natural;
    const double m = s->at.of[asc_m].value[0];
    double declared;
    put_step(w, "m before", "", s->at.m_prev.value[0], from);
    put_step(w, "m", "", m, to);
    is_of_channel(w, is_recorded(w, asc_m));
    if (local_alpha_declared(w->c, &s->at, s->at.m_prev.value[0], &declared))
        put_step(w, "alpha_first", "declared: nothing to rescale yet", declared, declared);
    else
        put_step(w, "m before - m", "in natural units", (s->at.m_prev.value[0] - m) * natural, (from - to) * natural);
}

static void derive_p(struct walk *w)
{
    const struct judge_scratch *s = w->s;
    const double natural = values_natural_m(w->c), factor = reference_offset(w->c);
    const bool is_tile = w->c->conventions.p_max == ASC_P_MAX_TILE;
    const double m = local_p_frame(w->c, &s->at).value[0] * natural;
    const double frame = is_tile ? s->reference.max[0] + log(s->reference.p_unit[0] * factor) : s->reference.frame[0];
    const double got = s->at.s.value[w->at] * s->at.s_natural, want = s->reference.s[w->at] * s->reference.s_natural;
    put_step(w, "s", "in natural units", got, want);
    is_of_channel(w, is_recorded(w, asc_s));
    put_step(w, is_tile ? "t" : "m",
             is_tile ? "in natural units; this tile's largest score" : "in natural units; P stands on this run's m", m,
             frame);
    is_of_channel(w, is_recorded(w, is_tile ? asc_s : asc_m));
    put_step(w, is_tile ? "s - t" : "s - m", "", got - m, want - frame);
    if (factor != 1)
        put_step(w, "factor", "", factor, factor);
}

/* What l and U before this tile are multiplied by to stand on this tile's m. */
static double true_alpha(const struct judge_scratch *s)
{
    return s->reference.max_prev[0] == -INFINITY ? 0 : exp(s->reference.frame_prev[0] - s->reference.frame[0]);
}

static void put_carried(struct walk *w, const char *name, enum asc_channel ch, double got, double want)
{
    const struct judge_scratch *s = w->s;
    const double alpha = s->at.of[asc_alpha].value[0], wanted = true_alpha(s);
    char before[32], product[32];
    snprintf(before, sizeof before, "%s before", name);
    snprintf(product, sizeof product, "α·%s before", name);
    put_step(w, before, "", got, want);
    if (s->at.tiles_seen > 0)
        is_of_channel(w, is_recorded(w, ch));
    if (ch == asc_u && w->c->conventions.u_phase == ASC_U_RESCALED)
        return; /* it has been rescaled */
    put_step(w, "α", "", alpha, wanted);
    is_of_channel(w, is_recorded(w, asc_alpha));
    if (ch == asc_u && w->c->conventions.u_norm == ASC_U_NORM_TILE) {
        put_step(w, "l before", "", s->at.l_prev.value[0], w->l_before);
        put_step(w, "α·l before·u before", "", alpha * s->at.l_prev.value[0] * got, wanted * w->l_before * want);
        return;
    }
    put_step(w, product, "", alpha * got, wanted * want);
}

/* A P that stands on its tile's maximum, t, is taken in times exp(t - m). */
static void put_beta(struct walk *w, double got, double want)
{
    const struct judge_scratch *s = w->s;
    const double true_beta =
        exp(s->reference.max[0] + log(s->reference.p_unit[0] * reference_offset(w->c)) - s->reference.frame[0]);
    if (w->c->conventions.p_max != ASC_P_MAX_TILE)
        return;
    put_step(w, "exp(t - m)", "t: this tile's largest score", s->at.beta.value[0], true_beta);
    put_step(w, "times the sum", "", s->at.beta.value[0] * got, true_beta * want);
}

static void note_padding(struct walk *w)
{
    int n = 0;
    for (int i = 0; i < w->s->at.pad_cols; i++)
        n += w->s->at.pad[i] != -INFINITY;
    if (n)
        snprintf(w->out->note, sizeof w->out->note, "%d padding keys contribute too", n);
}

static void derive_l(struct walk *w)
{
    const struct judge_scratch *s = w->s;
    const int lanes = w->c->conventions.l_lanes;
    w->at = 0; /* lanes are judged by what they add up to */
    put_carried(w, "l", asc_l, s->at.l_prev.value[0], w->l_before);
    if (lanes > 1)
        snprintf(w->out->note, sizeof w->out->note, "l is the sum of %d partial sums", lanes);
    if (begin_terms(w, s->at.cols, "c", "p", NULL) != 0)
        return;
    for (int i = 0; i < s->at.cols; i++)
        put_term(w->out, i, (double[]){s->at.l_p.value[i], 0}, (double[]){s->stage[asc_p].want[GLOBAL][i], 0});
    const struct sums sum = add_terms(w->out);
    put_step(w, "sum of p", "in float64", sum.got, sum.want);
    is_of_channel(w, is_recorded(w, asc_p));
    put_beta(w, sum.got, sum.want);
    note_padding(w);
    sort_terms(w->out, by_size);
}

static void derive_u(struct walk *w)
{
    const struct judge_scratch *s = w->s;
    const bool rescaled = w->c->conventions.u_phase == ASC_U_RESCALED;
    const double carried = rescaled ? true_alpha(s) * w->u_before[w->at] : w->u_before[w->at];
    put_carried(w, "u", asc_u, s->at.u_prev.value[w->at], carried);
    if (begin_terms(w, s->at.cols, "c", "p", "v") != 0)
        return;
    for (int i = 0; i < s->at.cols; i++) {
        const size_t at = (size_t)i * (size_t)w->c->head_dim_v + (size_t)w->at;
        const bool dropped = w->c->conventions.p_dropout == ASC_P_DROPPED;
        const double by = dropped ? 1 : dropout_keeps(&s->at, 0, i) * dropout_of_weights(w->c);
        put_term(w->out, i, (double[]){s->at.pv_p.value[i], s->at.of[asc_v].value[at]},
                 (double[]){by * s->stage[asc_p].want[GLOBAL][i], s->input[asc_v].value[at]});
    }
    const struct sums sum = add_terms(w->out);
    put_step(w, "sum of p·v", "in float64", sum.got, sum.want);
    if (s->at.times_v != 1)
        put_step(w, "scale of V's codes", "", s->at.times_v, s->at.times_v);
    put_beta(w, sum.got * s->at.times_v, sum.want * s->at.times_v);
    if (w->c->conventions.u_norm == ASC_U_NORM_TILE) {
        put_step(w, "l", "U is divided by it after every tile", s->at.of[asc_l].value[0], w->l_now);
        is_of_channel(w, is_recorded(w, asc_l));
    }
    put_tensor_core(w, asc_u);
    sort_terms(w->out, by_size);
}

/* O and LSE: the state behind the last tile, of several splits the merged one. */
static void derive_end(struct walk *w, enum asc_channel ch)
{
    const struct oracle_case *c = w->c;
    const struct judge_scratch *s = w->s;
    const char *state = c->kv_splits > 1 ? "the splits merged" : "after the last tile";
    const double natural = values_natural_m(c);
    const double shift =
        (isfinite(s->reference.max[0]) ? exp(s->reference.max[0] - s->reference.frame[0]) : 1) * reference_offset(c);
    const double l = s->at.l_prev.value[0], true_l = s->reference.sum[0] * shift, times = codes_o_times(c);
    const int divided = merge_leaves_normalized(c);
    if (ch == asc_o) {
        put_step(w, "u", state, s->at.u_prev.value[w->at],
                 s->reference.out[w->at] * (divided ? shift / true_l : shift));
        is_of_channel(w, c->captured[asc_u].data != NULL);
    } else {
        put_step(w, "m", state, s->at.m_prev.value[0], s->reference.frame[0] / natural);
        is_of_channel(w, c->captured[asc_m].data != NULL);
    }
    if (!divided || ch == asc_lse) {
        put_step(w, "l", state, l, true_l);
        is_of_channel(w, c->captured[asc_l].data != NULL);
    }
    if (ch == asc_lse)
        put_step(w, "ln l", "", log(l), log(true_l));
    if (ch == asc_o && times != 1)
        put_step(w, "scale of V's codes", "", times, times);
    if (ch == asc_lse && bound_ln_factor(c) != 0)
        put_step(w, "offset of P", "minus the logarithm of its factor", bound_ln_factor(c), bound_ln_factor(c));
    put_result(w, ch);
}

static void derive_stage(struct walk *w, enum asc_channel ch)
{
    static void (*const derive[ASC_CHANNELS])(struct walk *) = {
        [asc_s] = derive_s, [asc_m] = derive_m, [asc_alpha] = derive_alpha,
        [asc_p] = derive_p, [asc_l] = derive_l, [asc_u] = derive_u};
    derive[ch](w);
    put_result(w, ch);
}

/* Keeps the reference of l and U behind the tile that is now looked at for the first time. */
static void keep_reference(struct walk *w)
{
    const struct judge_scratch *s = w->s;
    const size_t bytes = (size_t)w->c->head_dim_v * sizeof(double);
    const double shift = s->reference.shift[0] * reference_offset(w->c);
    if (w->split != s->at.split) {
        w->l_now = local_l_begin(w->c, s->at.split) * bound_p_factor(w->c);
        memset(w->u_now, 0, bytes);
    }
    w->split = s->at.split;
    w->newest = s->at.kv;
    w->l_before = w->l_now;
    memcpy(w->u_before, w->u_now, bytes);
    w->l_now = s->reference.sum[0] * shift;
    for (int d = 0; d < w->c->head_dim_v; d++)
        w->u_now[d] = s->reference.out[d] * (w->c->conventions.u_norm != ASC_U_NORM_TILE ? shift
                                             : s->reference.sum[0] > 0                   ? 1 / s->reference.sum[0]
                                                                                         : 0);
}

/* U of the element's tile, recorded once a later tile has rescaled it. */
static void look_late(struct walk *w)
{
    if (w->s->at.kv != w->kv || w->out->channel != asc_u)
        return;
    if (w->newest != w->kv)
        put_step(w, "α of the next tile", "U is recorded after it", w->s->at.of[asc_alpha].value[0], true_alpha(w->s));
    put_result(w, asc_u);
}

static void look(void *ctx, const struct tile_detail *tile)
{
    struct walk *w = ctx;
    const enum asc_channel at = (enum asc_channel)tile->channel, ch = w->out->channel;
    if (at == asc_q || at == asc_k || at == asc_v) {
        if (at == ch && (at == asc_q || tile->kv == w->kv) && w->s->stage[at].recorded)
            derive_operand(w, at);
        return;
    }
    if (!channel_per_kv(at)) {
        if (at == ch)
            derive_end(w, at);
        return;
    }
    if (!w->s->seen[tile->kv] || tile_left(w->c, w->s)) {
        if (tile->kv == w->kv && w->out->derived == DERIVED_NOT)
            w->out->derived = w->s->masked ? DERIVED_MASKED : DERIVED_UNVISITED;
        return;
    }
    if (at == asc_u && w->c->conventions.u_phase == ASC_U_RESCALED) {
        look_late(w);
        return;
    }
    if (tile->kv == w->newest)
        return;
    keep_reference(w);
    if (tile->kv == w->kv && channel_per_kv(ch) && ch != asc_k && ch != asc_v)
        derive_stage(w, ch);
}

int derive_element(struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch, int kv, int row, int col,
                   struct derivation *out)
{
    struct walk w = {.c = c, .s = s, .work = s, .out = out, .kv = kv, .at = col, .newest = -1, .split = -1};
    *out =
        (struct derivation){.channel = ch, .row = row, .col = col, .got = NAN, .want_local = NAN, .want_global = NAN};
    w.u_before = calloc(2 * (size_t)c->head_dim_v, sizeof *w.u_before);
    int failed = !w.u_before;
    if (!failed) {
        w.u_now = w.u_before + c->head_dim_v;
        w.fingerprint = c->fingerprint;
        c->fingerprint = NULL;
        failed = judge_each(c, s, look, &w) != 0 || w.no_memory;
    }
    free(w.u_before);
    if (failed)
        derivation_free(out);
    return failed ? -1 : 0;
}

void derivation_free(struct derivation *d)
{
    if (!d)
        return;
    free(d->terms);
    *d = (struct derivation){0};
}
