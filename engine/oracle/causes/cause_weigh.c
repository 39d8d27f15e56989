/* Sets a candidate formula against what was captured: how much it explains, how much of that plain rounding cannot,
   and how much of it could be chance. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <string.h>

/* Where a captured value may lie. NaN: the formula gives no number, nor does what was captured. */
struct interval {
    double low, high;
};

/* unlimited: as in struct comparison. */
struct scale {
    enum dtype captured;
    int narrow, unlimited;
};

static double convert(const struct scale *scale, double x)
{
    if (!scale->narrow)
        return fabs(x) > FLT_MAX ? copysign(INFINITY, x) : x;
    return scale->unlimited ? bound_round_unlimited(scale->captured, x) : bound_round(scale->captured, x);
}

static struct interval expected(const struct scale *scale, double want, double bound)
{
    struct interval i = {want, want};
    if (!isfinite(want))
        return i;
    i.low = want - bound;
    i.high = want + bound;
    if (scale->narrow || i.high > FLT_MAX || i.low < -FLT_MAX) {
        i.low = convert(scale, i.low);
        i.high = convert(scale, i.high);
    }
    return i;
}

static int within(const struct interval *i, double got)
{
    return isnan(i->low) ? !isfinite(got) : got >= i->low && got <= i->high;
}

static int apart(const struct interval *a, const struct interval *b)
{
    return a->low > b->high || b->low > a->high;
}

uint64_t evidence_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t evidence_pair(double got, double want)
{
    int exponent = 0;
    const double coarse = isfinite(want) ? ldexp(rint(frexp(want, &exponent) * 0x1p10), exponent) : want;
    uint64_t bits[2];
    memcpy(&bits[0], &got, sizeof got);
    memcpy(&bits[1], &coarse, sizeof coarse);
    return evidence_mix(evidence_mix(bits[0]) ^ bits[1]);
}

bool evidence_nearly_all(uint64_t of, uint64_t n)
{
    return (double)of >= 0.9999 * (double)n;
}

int cause_half(int row, int col)
{
    return (int)(evidence_mix(((uint64_t)(uint32_t)row << 32 | (uint32_t)col) * UINT64_C(0x9E3779B97F4A7C15) + 1) & 1);
}

struct weighing {
    const struct candidate *k;
    const struct stage *stage;
    struct scale scale;
    struct cause_evidence *e;
    int plain;             /* 1: values are compared as they are */
    uint32_t tile;         /* which one, of all */
    uint64_t random, step; /* chance is tried on every step-th element of the tile that discriminates */
    uint64_t seen;         /* of the tile: what is tried does not depend on who weighs which tiles */
};

static size_t places(const struct weighing *w)
{
    return (size_t)w->stage->rows * (size_t)w->stage->cols;
}

/* How often would the candidate agree with values that have nothing to do with it? Tried on the captured value of
   another element of the same tile. */
static void draw_chance(struct weighing *w, const struct interval *candidate, size_t at)
{
    const size_t n = places(w);
    if (n < 2)
        return;
    w->random += UINT64_C(0x9E3779B97F4A7C15);
    size_t other = (size_t)(evidence_mix(w->random) % (n - 1));
    other += other >= at;
    w->e->chance_tried++;
    w->e->chance_hit += (uint64_t)within(candidate, w->stage->got[other]);
}

void cause_note_value(struct cause_evidence *e, uint64_t value)
{
    for (int i = 0; i < e->values; i++)
        if (e->value[i] == value)
            return;
    if (e->values < CAUSE_VALUES)
        e->value[e->values++] = value;
}

/* A number that the mistake puts in whatever the inputs are, as 0 or -inf, is one more each time: it is where it stands
   that tells. */
static void note_value(const struct weighing *w, double got, double right, int is_constant, size_t at)
{
    struct cause_evidence *e = w->e;
    const uint64_t place = (uint64_t)w->tile << 32 | (uint64_t)at;
    if (e->values < CAUSE_VALUES)
        cause_note_value(e, is_constant ? evidence_mix(place + 1) : evidence_pair(got, right));
}

/* A constant that a convention puts in all of a tile cannot be tried on other elements of that tile: they hold it for
   the same reason. Chance is how often it stands where the formula does not put it. */
static void weigh_constant(const struct weighing *w, const struct interval *candidate, double got)
{
    const double constant = w->k->constant;
    if (isnan(constant) || (candidate->low == constant && candidate->high == constant))
        return;
    w->e->chance_tried++;
    w->e->chance_hit += got == constant;
}

/* is_constant: the candidate has no bound. */
static void weigh(struct weighing *w, const struct interval *right, const struct interval *candidate, double got,
                  int written, int is_constant, size_t at)
{
    struct cause_evidence *e = w->e;
    const int explained = written && within(candidate, got);
    e->elements++;
    e->rounding += (uint64_t)(written && within(right, got));
    e->explained += (uint64_t)explained;
    if (!apart(candidate, right)) {
        weigh_constant(w, candidate, got);
        return;
    }
    e->discriminating += (uint64_t)explained;
    if (explained)
        note_value(w, got, at < places(w) ? w->stage->want[LOCAL][at] : right->low,
                   w->k->channel >= asc_s && is_constant, at);
    e->chance_seen++;
    if (w->seen++ % w->step == 0 && isnan(w->k->constant))
        draw_chance(w, candidate, at);
}

/* What stands beyond kv_len: it should be masked, or never written at all; another mask may hide a part of it. */
static void weigh_padding(struct weighing *w, const struct matrix *padding, int r, double masked, int half)
{
    const struct interval right = {masked, masked};
    struct interval seen = right;
    const int is_constant = w->k->row_padding && w->k->row_padding_bound[r] == 0;
    if (w->k->row_padding)
        seen = expected(&w->scale, w->k->row_padding[r], w->k->row_padding_bound[r]);
    for (int col = 0; col < padding->cols; col++) {
        const size_t at = (size_t)(r * padding->row_stride + col);
        const double got = dtype_load(padding->dtype, padding->data, at);
        const bool hidden = (got == masked && !w->k->hides_none) || !values_element_written(padding, at);
        if (half < 0 || cause_half(r, w->stage->cols + col) == half)
            weigh(w, &right, hidden ? &right : &seen, hidden ? masked : got, 1, is_constant, places(w) + at);
    }
}

/* Scores that are not masked are a fault of S; then the weights beyond kv_len follow from them. */
static void weigh_tail(struct weighing *w, int r, int half)
{
    const struct oracle_case *c = w->k->tile->c;
    const struct judge_scratch *s = w->k->tile->s;
    const int is_value = c->conventions.s_masked == ASC_MASKED_VALUE;
    if (w->k->channel == asc_s && s->pad_captured)
        weigh_padding(w, &c->s_padding[s->at.kv], r, is_value ? (double)c->conventions.s_masked_value : -INFINITY,
                      half);
    if (w->k->channel == asc_p && c->p_padding && c->p_padding[s->at.kv].data && !s->at.pad_cols && !is_value)
        weigh_padding(w, &c->p_padding[s->at.kv], r, 0, half);
}

/* Nearly all elements of a cause that holds: wide types, finite numbers, explained and beyond both bounds. 1: done. */
static int weigh_plainly(struct weighing *w, size_t i)
{
    const double got = w->stage->got[i], want = w->k->want[i], bound = w->k->bound[i];
    const double right = w->stage->want[LOCAL][i], right_bound = w->stage->bound[LOCAL][i];
    const double apart = fabs(want - right);
    if (!w->plain || !(fabs(got - want) <= bound && apart > bound + right_bound && apart <= DBL_MAX))
        return 0;
    w->e->elements++;
    w->e->explained++;
    w->e->rounding += fabs(got - right) <= right_bound;
    w->e->discriminating++;
    note_value(w, got, right, bound == 0 && w->k->channel >= asc_s, i);
    w->e->chance_seen++;
    if (w->seen++ % w->step == 0)
        draw_chance(w, &(struct interval){want - bound, want + bound}, i);
    return 1;
}

enum { CHANCES_PER_TILE = 512 };

void cause_weigh(const struct candidate *k, int half, uint64_t most_failed, struct cause_evidence *e)
{
    const struct walk_tile *tile = k->tile;
    const struct stage *stage = &tile->s->stage[k->channel];
    const struct matrix *captured = scratch_captured(tile->s, tile->c, k->channel);
    if (k->channel == asc_l && captured->cols > 1)
        captured = &tile->s->lanes;
    double unit = 0;
    double half_tiny = 0;
    struct weighing w = {.k = k,
                         .stage = stage,
                         .scale = {captured->dtype, bound_narrow(captured->dtype, &unit, &half_tiny),
                                   k->channel == asc_p || k->channel == asc_u},
                         .e = e,
                         .plain = isnan(k->constant),
                         .tile = (uint32_t)tile->s->at.kv << 16 ^ (uint32_t)tile->c->q_tile,
                         .random = (uint64_t)tile->s->at.kv << 32 | (uint32_t)tile->c->q_tile,
                         .step = 1 + (uint64_t)stage->rows * (uint64_t)stage->cols / CHANCES_PER_TILE};
    w.plain = w.plain && !w.scale.narrow;
    for (int r = 0; r < stage->rows; r++) {
        const uint64_t before = e->discriminating;
        for (int col = 0; col < stage->cols; col++) {
            const size_t i = (size_t)r * (size_t)stage->cols + (size_t)col;
            const double got = stage->got[i];
            if (half < 0 && weigh_plainly(&w, i))
                continue;
            /* No statement: no verdict was given here. */
            if (isnan(stage->want[LOCAL][i]) || !(stage->bound[LOCAL][i] <= DBL_MAX) ||
                (half >= 0 && cause_half(r, col) != half))
                continue;
            const struct interval right = expected(&w.scale, stage->want[LOCAL][i], stage->bound[LOCAL][i]);
            const struct interval candidate = expected(&w.scale, k->want[i], k->bound[i]);
            const int written = !isnan(got) || !dtype_is_unwritten(captured->dtype, captured->data,
                                                                   (size_t)(r * captured->row_stride + col));
            weigh(&w, &right, &candidate, got, written, k->bound[i] == 0, i);
        }
        weigh_tail(&w, r, half);
        e->rows += e->discriminating > before;
        if (e->elements - e->explained > most_failed) {
            e->given_up = 1;
            return;
        }
    }
}

/* The first three conditions gave no wrong name when they were tried, and none to 127 mistakes that are not listed:
   - it explains 99.99 % of all elements of tiles with a fault;
   - 16 elements at least lie beyond both bounds from what the right formula wants;
   - n such agreements by chance, each of probability pi, have ln(pi^n) <= -30. pi is estimated on shuffled values,
     never below 1 / (tried + 1): what was not seen in `tried` attempts may still happen.
   Two keep a mistake that is made in some rows only from being taken for one that is made in all of them. Where
   the two formulas can be told apart in few places, as after a peaked softmax, all of these may be left unexplained
   within the 0.01 %, and all that are explained may lie in one row, whose elements are right or wrong together:
   - it explains 99.99 % of the elements that tell it from the right formula as well;
   - they lie in 16 rows at least, so that a mistake of every second row passes once in 2^16 times.
   And one keeps a number from being taken for a formula, where inputs are constant or one-hot and all rows repeat it:
   - they hold 16 different values at least. */
int cause_named(const struct cause_evidence *e)
{
    if (!cause_fits(e) || e->discriminating < CAUSE_ELEMENTS || e->rows < CAUSE_ELEMENTS || e->values < CAUSE_VALUES)
        return 0;
    const double chance = (double)(e->chance_hit + 1) / (double)(e->chance_tried + 1);
    return (double)e->discriminating * -log(chance) >= 30;
}

int cause_fits(const struct cause_evidence *e)
{
    return e->applicable && !e->given_up && e->elements > 0 && e->discriminating > 0 &&
           evidence_nearly_all(e->explained, e->elements) && evidence_nearly_all(e->discriminating, e->chance_seen);
}
