/* Causes of row reductions that are incomplete. Lanes share a row; which of its columns are a lane's own depends on
   some bits of the column: a reduction that lacks the shuffles over such bits stays within columns that agree in them.
 */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <stdio.h>
#include <string.h>

/* Bits first .. first + n - 1 of a number. */
struct bits {
    int first, n, value; /* value: what they are */
};

enum { MOST_BITS = 3 };

/* The bits that a number below `size` has; 0 where that is no power of 2. */
static int bits_below(int size)
{
    int n = 0;
    if (size & (size - 1))
        return 0;
    while (1 << n < size)
        n++;
    return n;
}

static int bits_of(int x, const struct bits *b)
{
    return x >> b->first & ((1 << b->n) - 1);
}

/* The i-th choice of neighboring bits out of `all`, n 0 behind the last; with each value they may have, if `valued`.
 */
static struct bits choice(int all, int most, int valued, int i)
{
    for (int n = 1; n <= most && n <= all; n++) {
        const int each = valued ? 1 << n : 1;
        if (i < (all - n + 1) * each)
            return (struct bits){i / each, n, i % each};
        i -= (all - n + 1) * each;
    }
    return (struct bits){0, 0, 0};
}

static double lanes_value(const struct walk_tile *tile, int i)
{
    return choice(bits_below(tile->c->bc), MOST_BITS, 1, i).n ? i : NAN;
}

static void lanes_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const struct bits b = choice(bits_below(c->bc), MOST_BITS, 1, (int)value);
    snprintf(text, bytes, "columns c with c / %d mod %d = %d", 1 << b.first, 1 << b.n, b.value);
}

const struct cause_parameter parameter_lanes = {lanes_value, lanes_describe};

int cause_in_lanes(const struct walk_tile *tile, double parameter, int r, int col)
{
    const struct bits b = choice(bits_below(tile->c->bc), MOST_BITS, 1, (int)parameter);
    (void)r;
    return bits_of(col, &b) == b.value;
}

/* Rows that agree in some bits: a half of a fragment, a warp's, every other one. */
static double rows_value(const struct walk_tile *tile, int i)
{
    return choice(bits_below(tile->c->br), MOST_BITS, 1, i).n ? i : NAN;
}

static void rows_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const struct bits b = choice(bits_below(c->br), MOST_BITS, 1, (int)value);
    snprintf(text, bytes, "rows r with r / %d mod %d = %d", 1 << b.first, 1 << b.n, b.value);
}

const struct cause_parameter parameter_rows = {rows_value, rows_describe};

int cause_in_rows(const struct walk_tile *tile, double parameter, int r)
{
    const struct bits b = choice(bits_below(tile->c->br), MOST_BITS, 1, (int)parameter);
    return bits_of(r, &b) == b.value;
}

static double lane_group_value(const struct walk_tile *tile, int i)
{
    return choice(bits_below(tile->c->bc), MOST_BITS, 0, i).n ? i : NAN;
}

static void lane_group_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const struct bits b = choice(bits_below(c->bc), MOST_BITS, 0, (int)value);
    snprintf(text, bytes, "columns with the same c / %d mod %d", 1 << b.first, 1 << b.n);
}

const struct cause_parameter parameter_lane_group = {lane_group_value, lane_group_describe};

/* The maximum over the columns of one group, and the weights that follow from it. */
static void weights_of_group(const struct candidate *k, const struct bits *group)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k), with_m = s;
    const struct stage *score = &k->tile->s->stage[asc_s];
    double *m = k->tile->s->mistake.alpha, *bound = m + score->rows;
    memcpy(k->tile->s->mistake.scores, s.s.value, (size_t)score->rows * (size_t)score->cols * sizeof(double));
    for (int i = 0; i < score->rows * score->cols; i++)
        if (bits_of(i % score->cols, group) != group->value)
            k->tile->s->mistake.scores[i] = -INFINITY;
    s.s.value = k->tile->s->mistake.scores;
    s.pad_cols = 0;
    c.conventions.m_policy = ASC_M_RUNNING;
    local_m(&c, &s, (struct expected){m, bound});
    with_m.of[asc_m].value = m;
    with_m.of[asc_m].loose = bound;
    local_p(k->tile->c, &with_m, cause_out(k));
}

int cause_p_reduction_incomplete(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    const struct stage *p = &s->stage[asc_p];
    struct bits group = choice(bits_below(k->tile->c->bc), MOST_BITS, 0, (int)k->parameter);
    const size_t n = (size_t)p->rows * (size_t)p->cols;
    double *want = s->mistake.operand, *bound = s->mistake.size;
    for (group.value = 0; group.value < 1 << group.n; group.value++) {
        weights_of_group(k, &group);
        for (size_t i = 0; i < n; i++) {
            if (bits_of((int)(i % (size_t)p->cols), &group) != group.value)
                continue;
            want[i] = k->want[i];
            bound[i] = k->bound[i];
        }
    }
    memcpy(k->want, want, n * sizeof *want);
    memcpy(k->bound, bound, n * sizeof *bound);
    return 1;
}

/* The partial sums of l in n lanes, added up without the shuffles over `missing` bits of the lane: each lane has the
   sum of those that agree with it in them. Which lane's sum an element meets: that of its place (the column of O, the
   row of LSE) divided by 2^shift, of `low` bits; or one lane's, always. */
struct lane_sum {
    struct bits missing;
    int shift, low, always; /* always: the lane, or -1 */
};

static int lane_bits(const struct oracle_case *c)
{
    return c->conventions.l_lanes > 1 ? bits_below(c->conventions.l_lanes) : 0;
}

static int lane_sum_of(const struct oracle_case *c, int i, struct lane_sum *out)
{
    enum { SHIFTS = 8 };
    const int all = lane_bits(c), lanes = 1 << all, ways = lanes + SHIFTS * all;
    if (all == 0)
        return 0;
    *out = (struct lane_sum){.missing = choice(all, all, 0, i / ways), .always = i % ways < lanes ? i % ways : -1};
    if (out->always < 0) {
        out->shift = (i % ways - lanes) / all;
        out->low = (i % ways - lanes) % all + 1;
    }
    return out->missing.n > 0;
}

static double lane_sums_value(const struct walk_tile *tile, int i)
{
    struct lane_sum sum;
    return lane_sum_of(tile->c, i, &sum) ? i : NAN;
}

static void lane_sums_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    struct lane_sum sum;
    if (!lane_sum_of(c, (int)value, &sum))
        return;
    const int parts = 1 << sum.missing.n;
    snprintf(text, bytes, "%d of %d lanes%s", c->conventions.l_lanes / parts, c->conventions.l_lanes,
             sum.always < 0 ? ", each its own" : "");
}

const struct cause_parameter parameter_lane_sums = {lane_sums_value, lane_sums_describe};

/* The captured lanes of l behind the last tile; NULL where these are not what O and LSE follow from. */
static const struct matrix *last_lanes(const struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const int kv = k->tile->visited[0];
    if (kv < 0 || c->fed || schedule_splits(c) > 1)
        return NULL;
    const struct matrix *l = &c->captured[kv * ASC_CHANNELS + asc_l];
    return l->data && l->cols == c->conventions.l_lanes ? l : NULL;
}

static double sum_met_at(const struct matrix *lanes, const struct lane_sum *sum, int r, int place)
{
    const int lane = sum->always >= 0 ? sum->always : place >> sum->shift & ((1 << sum->low) - 1);
    double l = 0;
    for (int i = 0; i < lanes->cols; i++)
        if (bits_of(i, &sum->missing) == bits_of(lane, &sum->missing))
            l += dtype_load(lanes->dtype, lanes->data, (size_t)(r * lanes->row_stride + i));
    return l;
}

int cause_o_l_not_reduced(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    const struct stage *o = &s->stage[asc_o];
    const struct matrix *lanes = last_lanes(k);
    struct lane_sum sum;
    if (!lanes || !lane_sum_of(c, (int)k->parameter, &sum))
        return 0;
    cause_right(k);
    for (int i = 0; i < o->rows * o->cols; i++) {
        const double l = sum_met_at(lanes, &sum, i / o->cols, i % o->cols), loose = bound_gamma(lanes->cols) * l;
        if (!(l > loose))
            continue;
        k->want[i] = s->at.u_prev.value[i] / l;
        k->bound[i] = bound_divide(k->want[i]) + (s->at.u_prev.loose[i] + fabs(k->want[i]) * loose) / (l - loose);
    }
    cause_loosen(k, 4);
    return 1;
}

int cause_lse_l_not_reduced(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    const struct matrix *lanes = last_lanes(k);
    const double natural = values_natural_m(c), unit = c->conventions.lse_base2 ? M_LOG2E : 1;
    struct lane_sum sum;
    if (!lanes || !lane_sum_of(c, (int)k->parameter, &sum))
        return 0;
    cause_right(k);
    for (int r = 0; r < s->stage[asc_lse].rows; r++) {
        const double l = sum_met_at(lanes, &sum, r, r), loose = bound_gamma(lanes->cols),
                     m = s->at.m_prev.value[r] * natural;
        if (!(l > 0) || !isfinite(k->want[r]))
            continue;
        const double ln_l = log(l) - bound_ln_factor(c);
        k->want[r] = (m + ln_l) * unit;
        k->bound[r] = (bound_lse(m, ln_l, m + ln_l) + s->at.m_prev.loose[r] * fabs(natural) - log1p(-loose)) * unit;
    }
    cause_loosen(k, 4);
    return 1;
}
