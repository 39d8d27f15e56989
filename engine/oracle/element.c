#include "engine/oracle/element.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* A comparison whose captured type may round: then the pass condition is an interval. */
struct judging {
    const struct comparison *c;
    struct verdict *v;
    double worst;     /* error / bound so far */
    double sum_error; /* signed, over n_errors finite pairs */
    uint32_t n_errors;
    int narrow;
};

/* Captured values of a narrow type lie between both ends of the bound rounded to that type: rounding is monotonic, so
   the nearest value to anything within the bound does, and truncation does not. Returns whether got does; *reach is the
   larger distance from want to an end, and the bound itself where both ends are rounded towards want. */
static bool within_rounded(enum dtype t, int unlimited, double got, double want, double bound, double *reach)
{
    double (*const round)(enum dtype t, double x) = unlimited ? bound_round_unlimited : bound_round;
    const double low = round(t, want - bound), high = round(t, want + bound);
    *reach = fmax(bound, fmax(fabs(low - want), fabs(high - want)));
    return got >= low && got <= high;
}

static bool within(enum dtype t, int unlimited, double got, double want, double bound)
{
    double unit = 0;
    double half_tiny = 0;
    double reach = 0;
    const double error = fabs(got - want), end = fabs(want) + bound;
    if (error <= bound && error <= DBL_MAX)
        return true;
    if (!isfinite(got) || !bound_narrow(t, &unit, &half_tiny))
        return false;
    /* Most are farther off than rounding moves an end, where no type is at its largest number: e2m1's is the least. */
    if (end <= E2M1_MAX && error > bound + 2 * (unit * end + half_tiny))
        return false;
    return within_rounded(t, unlimited, got, want, bound, &reach);
}

bool element_within(enum dtype t, double got, double want, double bound)
{
    return within(t, 0, got, want, bound);
}

bool element_within_unlimited(enum dtype t, double got, double want, double bound)
{
    return within(t, 1, got, want, bound);
}

double element_reach(enum dtype t, double want, double bound)
{
    double unit = 0;
    double half_tiny = 0;
    double reach = bound;
    if (bound_narrow(t, &unit, &half_tiny))
        within_rounded(t, 0, want, want, bound, &reach);
    return reach;
}

double element_ratio(enum dtype t, int class, double got, double want, double bound)
{
    if (got == want)
        return 0;
    const double error = fabs(got - want);
    if (isnan(error))
        return NAN;
    const double reach = element_reach(t, want, bound);
    const double ratio = reach > 0 ? error / reach : INFINITY;
    if (class == CLASS_OK)
        return fmin(ratio, 1);
    return class_bad(class) ? fmax(ratio, 1 + FLT_EPSILON) : ratio;
}

/* Whether arithmetic within bound of want may leave the range of type t, or that of the f32 it is done in, on the side
   of the infinity got: exp(100) is no f32, and a correct kernel gives +inf for it. */
static bool overflows(enum dtype t, double got, double want, double bound)
{
    const double end = got > 0 ? want + bound : want - bound;
    return got == bound_round(t, end) || got == bound_round(DTYPE_F32, end);
}

/* A kernel computes in f32: within a larger bound than its numbers are large, every one of them passes. */
static bool can_fail(double want, double bound)
{
    return bound <= FLT_MAX || bound < fabs(want);
}

static enum tile_status classify(const struct comparison *c, int narrow, size_t i, size_t at, double *ratio)
{
    const double got = c->got[i], want = c->want[i], bound = c->bound[i];
    *ratio = INFINITY;
    if (isnan(got) && dtype_is_unwritten(c->captured->dtype, c->captured->data, at))
        return CLASS_MISSING;
    if (isnan(want) && c->lenient) {
        *ratio = 0;
        return STATUS_UNJUDGED;
    }
    if (isnan(got))
        return CLASS_NAN;
    if (isfinite(want) && !can_fail(want, bound)) {
        *ratio = 0;
        return STATUS_UNJUDGED;
    }
    if (isinf(got)) {
        const enum dtype t = c->unlimited ? DTYPE_F32 : c->captured->dtype;
        const bool right = got == want || (isfinite(want) && overflows(t, got, want, bound));
        if (right)
            *ratio = 0;
        return right ? CLASS_OK : CLASS_INF;
    }
    if (isinf(want))
        return CLASS_EXTRA;
    const double error = fabs(got - want);
    if (error <= bound) {
        *ratio = bound > 0 ? error / bound : 0;
        return CLASS_OK;
    }
    double reach = bound;
    int within = narrow && within_rounded(c->captured->dtype, c->unlimited, got, want, bound, &reach);
    *ratio = reach > 0 ? error / reach : INFINITY;
    if (within) {
        *ratio = error > 0 ? fmin(*ratio, 1) : 0;
        return CLASS_OK;
    }
    /* Where the type's step changes, the far end may lie further off than a value that is outside. */
    *ratio = fmax(*ratio, 1 + FLT_EPSILON);
    return CLASS_OFF;
}

static size_t place(const struct matrix *m, int row, int col)
{
    return (size_t)(row * m->row_stride + col);
}

enum tile_status element_classify(const struct comparison *c, int row, int col)
{
    double unit = 0;
    double half_tiny = 0;
    double ratio = 0;
    return classify(c, bound_narrow(c->captured->dtype, &unit, &half_tiny), (size_t)row * (size_t)c->cols + (size_t)col,
                    place(c->captured, row, col), &ratio);
}

static void note_worst(struct judging *j, double ratio, int row, int col)
{
    /* >= 0 lets a NaN ratio (inf / inf) count as the worst there is. */
    if (!(ratio >= 0))
        ratio = INFINITY;
    if (ratio > j->worst) {
        j->worst = ratio;
        j->v->worst_row = (int16_t)row;
        j->v->worst_col = (int16_t)col;
    }
}

/* Whether every element is within its bound, as in nearly all rows of nearly all runs; *sum is then what their signed
   errors add up to, *worse whether one is worse than `worst`. A NaN fails the first comparison, a bound that cannot
   fail the second. */
VECTOR_UNITS static bool is_quiet(const double *got, const double *want, const double *bound, int n, double worst,
                                  double *sum, int *worse)
{
    lanes_f64 sums = {0};
    lanes_i64 loud = {0};
    lanes_i64 high = {0};
    int tail = 1;
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes_f64 error = LANES_LOAD(got + i) - LANES_LOAD(want + i), limit = LANES_LOAD(bound + i);
        const lanes_f64 size = LANES_SIZE(error);
        sums += error;
        loud |= ~((size <= limit) & (limit <= FLT_MAX));
        high |= size > worst * limit;
    }
    *sum = lanes_sum(&sums);
    *worse = lanes_any(&high);
    for (; i < n; i++) {
        const double error = got[i] - want[i], size = fabs(error);
        *sum += error;
        *worse |= size > worst * bound[i];
        tail &= (size <= bound[i]) & (bound[i] <= FLT_MAX);
    }
    return tail && !lanes_any(&loud);
}

enum { ABREAST = 2 }; /* rows whose sums do not wait for one another; more would not find registers enough */

/* The worst of the elements seen so far, and where it stands. */
struct worst {
    double ratio;
    int row, col;
};

/* Quiet elements one after the other: size <= bound, so that what is worse has a bound above 0. */
static inline void raise_worst(const double *got, const double *want, const double *bound, int n, int row, int col,
                               struct worst *worst)
{
    for (int i = 0; i < n; i++) {
        const double size = fabs(got[i] - want[i]);
        if (size > worst->ratio * bound[i] && size / bound[i] > worst->ratio)
            *worst = (struct worst){size / bound[i], row, col + i};
    }
}

/* How many rows, from `row` on, are quiet, in *sum the signed errors of each as is_quiet() sums them; ABREAST at a
   time. Few rows hold something worse than was seen before: these are gone through once more, while they are near.
   Bits of numbers that are not negative are ordered as the numbers are, NaNs above all: signs of differences tell, and
   cost less than comparisons. What has a negative bound, -0 or a NaN, is left to others. */
VECTOR_UNITS static int quiet_rows(const double *got, const double *want, const double *bound, int row, int rows,
                                   int cols, double *sum, struct worst *worst)
{
    for (; cols == 1 && row < rows; row++) {
        const double error = got[row] - want[row], size = fabs(error), limit = bound[row];
        if (!((size <= limit) & (limit <= FLT_MAX)))
            return row;
        raise_worst(got + row, want + row, bound + row, 1, row, 0, worst);
        *sum += error;
    }
    if (cols % WIDE != 0)
        return row;
    const uint64_t largest = format_f64_bits(FLT_MAX);
    for (; row + ABREAST <= rows; row += ABREAST) {
        const size_t first = (size_t)row * (size_t)cols;
        lanes_f64 sums[ABREAST] = {{0}};
        wide_u64 loud = {0};
        wide_u64 high = {0};
        const double most = worst->ratio;
        for (int i = 0; i < cols; i += WIDE) {
            _Pragma("GCC unroll 4") for (int r = 0; r < ABREAST; r++)
            {
                const size_t at = first + (size_t)r * (size_t)cols + (size_t)i;
                const union wide_halves error = {WIDE_LOAD(got + at) - WIDE_LOAD(want + at)};
                const wide_f64 limit = WIDE_LOAD(bound + at), size = (wide_f64)((wide_u64)error.all & INT64_MAX);
                sums[r] += error.half[0];
                sums[r] += error.half[1];
                loud |= (wide_u64)limit | ((wide_u64)limit - (wide_u64)size) | (largest - (wide_u64)limit);
                high |= (wide_u64)(most * limit - size);
            }
        }
        const wide_u64 either = loud | high;
        const bool seen = wide_any_sign(&either);
        if (seen && wide_any_sign(&loud))
            return row;
        for (int i = 0; seen && i < ABREAST * cols; i += LANES) {
            const size_t at = first + (size_t)i;
            const lanes_f64 error = LANES_LOAD(got + at) - LANES_LOAD(want + at), limit = LANES_LOAD(bound + at);
            const lanes_i64 worse = LANES_SIZE(error) > worst->ratio * limit;
            if (lanes_any(&worse))
                raise_worst(got + at, want + at, bound + at, LANES, row + i / cols, i % cols, worst);
        }
        for (int r = 0; r < ABREAST; r++)
            *sum += lanes_sum(&sums[r]);
    }
    return row;
}

enum { PART = 16 }; /* columns: of a row that has anything to look at, most parts have nothing */

/* Finds the worst of a row's quiet elements col .. end - 1, one of which is worse than what was seen before. */
static void find_worst(struct judging *j, int row, int col, int end)
{
    const struct comparison *c = j->c;
    const size_t first = (size_t)row * (size_t)c->cols;
    const double *got = c->got + first, *want = c->want + first, *bound = c->bound + first;
    for (int part = col; part < end; part += PART) {
        const int n = end - part < PART ? end - part : PART;
        double sum = 0;
        int worse = 0;
        is_quiet(got + part, want + part, bound + part, n, j->worst, &sum, &worse);
        for (int i = part; worse && i < part + n; i++) {
            const double size = fabs(got[i] - want[i]);
            if (size > j->worst * bound[i])
                note_worst(j, size / bound[i], row, i);
        }
    }
}

/* Judges elements col .. end - 1 of a row if they are quiet; else returns 0. */
static bool judge_quiet(struct judging *j, int row, int col, int end, uint8_t *classes)
{
    const struct comparison *c = j->c;
    const size_t first = (size_t)row * (size_t)c->cols + (size_t)col;
    double sum = 0;
    int worse = 0;
    if (!is_quiet(c->got + first, c->want + first, c->bound + first, end - col, j->worst, &sum, &worse))
        return false;
    if (worse)
        find_worst(j, row, col, end);
    j->sum_error += sum;
    j->n_errors += (uint32_t)(end - col);
    j->v->count[CLASS_OK] += (uint32_t)(end - col);
    if (classes)
        memset(classes + first, CLASS_OK, (size_t)(end - col));
    return true;
}

/* Judges what quiet rows there are from this one on; returns how many. */
static int judge_quiet_rows(struct judging *j, int row, uint8_t *classes)
{
    const struct comparison *c = j->c;
    struct worst worst = {.ratio = j->worst, .row = -1};
    const int n = quiet_rows(c->got, c->want, c->bound, row, c->rows, c->cols, &j->sum_error, &worst) - row;
    if (worst.row >= 0)
        note_worst(j, worst.ratio, worst.row, worst.col);
    j->n_errors += (uint32_t)(n * c->cols);
    j->v->count[CLASS_OK] += (uint32_t)(n * c->cols);
    if (classes)
        memset(classes + (size_t)row * (size_t)c->cols, CLASS_OK, (size_t)n * (size_t)c->cols);
    return n;
}

static void judge_one(struct judging *j, int row, int col, uint8_t *classes)
{
    const struct comparison *c = j->c;
    const size_t i = (size_t)row * (size_t)c->cols + (size_t)col;
    const double error = c->got[i] - c->want[i], size = fabs(error), bound = c->bound[i];
    enum tile_status class = CLASS_OK;
    /* Nearly all elements of nearly all runs; a NaN fails the first comparison, a bound that cannot fail the
       second. */
    if (size <= bound && bound <= FLT_MAX) {
        if (size > j->worst * bound)
            note_worst(j, size / bound, row, col);
    } else {
        double ratio = 0;
        class = classify(c, j->narrow, i, place(c->captured, row, col), &ratio);
        note_worst(j, ratio, row, col);
    }
    if (size <= DBL_MAX && class != STATUS_UNJUDGED) {
        j->sum_error += error;
        j->n_errors++;
    }
    if (class == STATUS_UNJUDGED)
        j->v->unjudged++;
    else
        j->v->count[class]++;
    if (classes)
        classes[i] = (uint8_t) class;
}

static void judge_row(struct judging *j, int row, uint8_t *classes)
{
    const int cols = j->c->cols;
    if (j->c->left_out && j->c->left_out[row]) {
        j->v->count[CLASS_OK] += (uint32_t)cols;
        if (classes)
            memset(classes + (size_t)row * (size_t)cols, CLASS_OK, (size_t)cols);
        return;
    }
    if (judge_quiet(j, row, 0, cols, classes))
        return;
    for (int part = 0; part < cols; part += PART) {
        const int end = part + PART < cols ? part + PART : cols;
        if (judge_quiet(j, row, part, end, classes))
            continue;
        for (int col = part; col < end; col++)
            judge_one(j, row, col, classes);
    }
}

enum { SAMPLE_BAD = 255, SAMPLE_OK = 31, SAMPLE_STEP = 8, SAMPLE_ROOM = 256 }; /* odd: out of step with columns */

enum { QUARTILES = 3 };

/* The numbers of ranks n / 4, n / 2 and 3 n / 4, none a NaN; x has room for SAMPLE_ROOM. Counting how many stand before
   each takes n^2 steps, but of the vector unit, and n is a few dozen. */
VECTOR_UNITS static void find_quartiles(double *x, int n, double found[QUARTILES])
{
    int64_t before[SAMPLE_ROOM] = {0};
    const int steps = (n + SAMPLE_STEP - 1) / SAMPLE_STEP * SAMPLE_STEP; /* nothing is left over from the vector unit */
    for (int i = n; i < steps; i++)
        x[i] = INFINITY;
    for (int j = 0; j < n; j++)
        for (int64_t i = 0; i < steps; i++)
            before[i] += (x[j] < x[i]) | ((x[j] == x[i]) & (j < i));
    for (int i = 0; i < n; i++)
        for (int q = 0; q < QUARTILES; q++)
            if (before[i] == (q + 1) * n / (QUARTILES + 1))
                found[q] = x[i];
}

/* Median and interquartile range of got / want over evenly spaced elements: a tile has thousands, and a constant factor
   shows in any few of them. Nearest ranks, so that a ratio shown is one that occurs. */
static void judge_ratio(const struct comparison *c, struct verdict *v)
{
    double ratios[SAMPLE_ROOM];
    const size_t n = (size_t)c->rows * (size_t)c->cols, most = verdict_bad(v) ? SAMPLE_BAD : SAMPLE_OK;
    const size_t take = n < most ? n : most;
    int used = 0;
    v->ratio_median = NAN;
    v->ratio_spread = NAN;
    for (size_t k = 0; c->got == c->want && k < take; k++) {
        /* What is the input divides to 1 wherever it can be divided: one such element is enough. */
        const double x = c->got[k * n / take];
        if (x == 0 || !isfinite(x))
            continue;
        v->ratio_median = 1;
        v->ratio_spread = 0;
        return;
    }
    for (size_t k = 0; k < take; k++) {
        const size_t i = k * n / take;
        const double ratio = c->got[i] / c->want[i];
        if (isfinite(ratio) && isfinite(c->want[i]))
            ratios[used++] = ratio;
    }
    if (used == 0)
        return;
    double quartile[QUARTILES];
    find_quartiles(ratios, used, quartile);
    v->ratio_median = (float)quartile[1];
    v->ratio_spread = (float)(quartile[2] - quartile[0]);
}

void element_judge(const struct comparison *c, struct verdict *v, uint8_t *classes)
{
    double unit = 0;
    double half_tiny = 0;
    struct judging j = {.c = c, .v = v, .narrow = bound_narrow(c->captured->dtype, &unit, &half_tiny)};
    if (c->got == c->want) {
        /* An operand that is the input: see operand_take. */
        v->count[CLASS_OK] = (uint32_t)c->rows * (uint32_t)c->cols;
        if (classes)
            memset(classes, CLASS_OK, v->count[CLASS_OK]);
    } else {
        for (int row = 0; row < c->rows;) {
            if (!c->left_out)
                row += judge_quiet_rows(&j, row, classes);
            for (int end = row + ABREAST; row < end && row < c->rows; row++)
                judge_row(&j, row, classes);
        }
    }
    v->judged = v->unjudged < (uint32_t)c->rows * (uint32_t)c->cols;
    v->worst_ratio = (float)j.worst;
    v->mean_error = j.n_errors ? (float)(j.sum_error / j.n_errors) : 0;
    judge_ratio(c, v);
}

void element_judge_padding(const struct matrix *padding, int first_col, double masked, struct verdict *v)
{
    for (int row = 0; row < padding->rows; row++) {
        for (int col = 0; col < padding->cols; col++) {
            const size_t at = place(padding, row, col);
            const double got = dtype_load(padding->dtype, padding->data, at);
            enum tile_status class = CLASS_EXTRA;
            if (got == -INFINITY || got == masked || dtype_is_unwritten(padding->dtype, padding->data, at))
                continue;
            if (isnan(got))
                class = CLASS_NAN;
            else if (isinf(got))
                class = CLASS_INF;
            v->count[class]++;
            v->judged = true;
            if (!(v->worst_ratio == INFINITY)) {
                v->worst_ratio = INFINITY;
                v->worst_row = (int16_t)row;
                v->worst_col = (int16_t)(first_col + col);
            }
        }
    }
}

bool verdict_ok(const struct verdict *v)
{
    return v->judged && verdict_bad(v) == 0;
}

bool class_bad(int element_class)
{
    return element_class != CLASS_OK && element_class != STATUS_UNJUDGED;
}

double verdict_worst(const struct verdict *v)
{
    return v->count[CLASS_NAN] || v->count[CLASS_MISSING] ? (double)NAN : (double)v->worst_ratio;
}

uint32_t verdict_bad(const struct verdict *v)
{
    uint32_t bad = 0;
    for (int class = 0; class < CLASS_COUNT; class ++)
        if (class != CLASS_OK)
            bad += v->count[class];
    return bad;
}
