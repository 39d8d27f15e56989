/* The sums behind a verdict on bias, taken while the oracle walks a case. */
#include "engine/oracle/rounding_bias/rounding_bias.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/product.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The stages that are fitted: what is summed, and O, which is divided. */
enum { FIT_S, FIT_U, FIT_O, FITS };
static const enum asc_channel fitted[FITS] = {asc_s, asc_u, asc_o};

/* Clusters of one of them. */
struct fit_sums {
    int kv_tiles, width;         /* kv tiles it has, columns of one */
    struct cluster *rows;        /* owned, [kv_tiles][q_len] */
    struct cluster *cols;        /* owned, [kv_tiles][width] */
    struct cluster_total *total; /* owned, [kv_tiles] */
    enum rounding_reason barred;
};

struct rounding_head {
    int q_len, kv_len, kv_tiles, rows_max;
    struct fit_sums fit[FITS];
    struct rounding_cell *cells;    /* owned, [ASC_CHANNELS][kv_tiles] */
    struct rounding_drift *drift;   /* owned, [ROUNDING_CURVES][kv_tiles] */
    uint64_t *rows_of[3];           /* owned, of q, k, v: a number for the bits of each row; 0: not seen */
    int n_rows[3];                  /* how many of these there are */
    struct tile_verdicts *verdicts; /* owned, [kv_tiles][ASC_CHANNELS] */
    struct tile_detail detail;      /* its arrays are owned */
    double *a, *b, *norm, *l_ratio; /* owned: squared operands, [rows_max] got l / true l of the tile at hand */
    /* The case at hand. */
    const struct oracle_case *c;
    struct judge_scratch *s;
    const struct rounding_negated *negated;
    int l_kv; /* whose l_ratio that is */
};

static int fit_make(struct fit_sums *f, int q_len, int kv_tiles, int width)
{
    f->kv_tiles = kv_tiles;
    f->width = width;
    f->rows = calloc((size_t)kv_tiles * (size_t)q_len, sizeof *f->rows);
    f->cols = calloc((size_t)kv_tiles * (size_t)width, sizeof *f->cols);
    f->total = calloc((size_t)kv_tiles, sizeof *f->total);
    return f->rows && f->cols && f->total ? 0 : -1;
}

struct rounding_head *rounding_head_new(const struct oracle_case *c)
{
    struct rounding_head *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    const size_t kv_tiles = (size_t)c->kv_tiles, br = (size_t)c->br, bc = (size_t)c->bc, D = (size_t)oracle_widest(c);
    const size_t wide = bc > D ? bc : D, tall = br > bc ? br : bc;
    h->q_len = c->q_len;
    h->kv_len = c->kv_len;
    h->kv_tiles = c->kv_tiles;
    h->rows_max = c->br;
    int failed = fit_make(&h->fit[FIT_S], c->q_len, c->kv_tiles, c->bc);
    failed |= fit_make(&h->fit[FIT_U], c->q_len, c->kv_tiles, c->head_dim_v);
    failed |= fit_make(&h->fit[FIT_O], c->q_len, 1, c->head_dim_v);
    h->n_rows[0] = c->q_len;
    h->n_rows[1] = h->n_rows[2] = c->kv_len;
    for (int i = 0; i < 3; i++)
        h->rows_of[i] = calloc((size_t)h->n_rows[i] + 1, sizeof *h->rows_of[i]);
    h->cells = calloc(ASC_CHANNELS * kv_tiles, sizeof *h->cells);
    h->drift = calloc(ROUNDING_CURVES * kv_tiles, sizeof *h->drift);
    h->verdicts = calloc(kv_tiles * ASC_CHANNELS, sizeof *h->verdicts);
    failed |= tile_detail_make(&h->detail, tall * wide) != 0;
    h->a = calloc(br * wide, sizeof *h->a);
    h->b = calloc(bc * D, sizeof *h->b);
    h->norm = calloc(br * wide, sizeof *h->norm);
    h->l_ratio = calloc(br, sizeof *h->l_ratio);
    for (int i = 0; i < 3; i++)
        failed |= !h->rows_of[i];
    if (failed || !h->cells || !h->drift || !h->verdicts || !h->a || !h->b || !h->norm || !h->l_ratio) {
        rounding_head_free(h);
        return NULL;
    }
    return h;
}

void rounding_head_free(struct rounding_head *h)
{
    if (!h)
        return;
    for (int i = 0; i < FITS; i++) {
        free(h->fit[i].rows);
        free(h->fit[i].cols);
        free(h->fit[i].total);
    }
    for (int i = 0; i < 3; i++)
        free(h->rows_of[i]);
    free(h->cells);
    free(h->drift);
    free(h->verdicts);
    tile_detail_free(&h->detail);
    free(h->a);
    free(h->b);
    free(h->norm);
    free(h->l_ratio);
    free(h);
}

/* A number for the bits of a row; rows that are each other's negatives have the same (their errors are, too). FNV-1a.
 */
static uint64_t row_number(const struct matrix *m, int row)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    int sign = 0;
    for (int col = 0; col < m->cols; col++) {
        const double x = values_element(m, (size_t)(row * m->row_stride + col));
        if (!sign && x != 0)
            sign = x < 0 ? -1 : 1;
        const float value = (float)(sign < 0 ? -x : x) + 0.0f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        h = (h ^ bits) * UINT64_C(0x100000001B3);
        h ^= h >> 29;
    }
    return h | 1;
}

static void number_rows(struct rounding_head *h, const struct oracle_case *c)
{
    const struct matrix *in[3] = {&c->in_q, &c->in_k, &c->in_v};
    const int first[3] = {c->q_tile * c->br, 0, 0};
    for (int i = 0; i < 3; i++)
        for (int row = 0; in[i]->data && row < in[i]->rows && first[i] + row < h->n_rows[i]; row++)
            if (!h->rows_of[i][first[i] + row])
                h->rows_of[i][first[i] + row] = row_number(in[i], row);
}

/* One step of the narrow type at want. */
static double step_of(enum dtype t, double want)
{
    double unit = 0;
    double half_tiny = 0;
    if (!bound_narrow(t, &unit, &half_tiny))
        return 0;
    return fmax(want != 0 ? ldexp(2 * unit, ilogb(want)) : 0, 2 * half_tiny);
}

/* Bits that a result of this accumulator is rounded to: 2^-r is the unit of errors. */
static double accumulator_unit(int accumulator, int n)
{
    int products, fraction, result;
    tensor_core_shape(product_loosest(accumulator, 0, n), &products, &fraction, &result);
    return ldexp(1, -result);
}

/* norm[r][col] = sqrt(sum a^2 b^2). */
static void norms(struct rounding_head *h, const double *a, int rows, const double *b, int cols, int k, int transposed)
{
    for (int i = 0; i < rows * k; i++)
        h->a[i] = a[i] * a[i];
    for (int i = 0; i < cols * k; i++)
        h->b[i] = b[i] * b[i];
    if (transposed)
        matrix_multiply_transposed(rows, cols, k, 1, h->a, k, h->b, k, h->norm, 0);
    else
        matrix_multiply(rows, cols, k, 1, h->a, k, h->b, cols, h->norm, 0);
}

/* What an error of each element is counted in, into h->norm. */
static void units_of_s(struct rounding_head *h, int rows, int cols)
{
    const struct oracle_case *c = h->c;
    const struct judge_scratch *s = h->s;
    const double unit = fabs(values_factor(c->conventions.s_unit, c->scale) / values_fold(c)) *
                        accumulator_unit(c->conventions.acc_s, c->head_dim);
    norms(h, s->at.of[asc_q].value, rows, s->at.of[asc_k].value, cols, c->head_dim, 1);
    for (int i = 0; i < rows * cols; i++)
        h->norm[i] = unit * sqrt(h->norm[i]) * (s->at.scales_s ? s->at.by_q[i / cols] * s->at.by_k[i % cols] : 1);
}

static void units_of_u(struct rounding_head *h, int rows, int cols)
{
    const struct oracle_case *c = h->c;
    const struct judge_scratch *s = h->s;
    const double unit = accumulator_unit(c->conventions.acc_u, c->bc);
    norms(h, s->at.pv_p.value, rows, s->at.of[asc_v].value, cols, s->at.cols, 0);
    for (int i = 0; i < rows * cols; i++) {
        const double before = s->at.of[asc_alpha].value[i / cols] * s->at.u_prev.value[i];
        h->norm[i] = unit * sqrt(h->norm[i] * s->at.times_v * s->at.times_v + before * before);
    }
}

static bool all_zero(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

static enum rounding_reason bars_s(const struct rounding_head *h)
{
    const struct oracle_case *c = h->c;
    const struct judge_scratch *s = h->s;
    if (c->softcap > 0 && !values_capped_later(c))
        return ROUNDING_FUNCTION;
    if (bias_terms(c) && !values_biased_later(c))
        return ROUNDING_TERMS;
    return s->at.folds_unseen || s->at.unseen[asc_q] || s->at.unseen[asc_k] ? ROUNDING_OPERANDS : ROUNDING_CLEAR;
}

static enum rounding_reason bars_u(const struct rounding_head *h)
{
    const struct judge_scratch *s = h->s;
    const struct asc_conventions *conventions = &h->c->conventions;
    const bool exact = s->stage[asc_p].recorded && s->at.pv_p.exact && s->stage[asc_alpha].recorded &&
                       s->at.of[asc_alpha].exact && !s->at.unseen[asc_v] && conventions->u_phase != ASC_U_RESCALED &&
                       conventions->p_max != ASC_P_MAX_TILE && conventions->u_norm != ASC_U_NORM_TILE;
    return exact && all_zero(s->at.u_prev.loose, h->c->in_q.rows * h->c->head_dim_v) ? ROUNDING_CLEAR
                                                                                     : ROUNDING_OPERANDS;
}

static enum rounding_reason bars_o(const struct rounding_head *h)
{
    const struct judge_scratch *s = h->s;
    const int rows = h->c->in_q.rows;
    const bool exact = schedule_splits(h->c) == 1 && s->stage[asc_l].recorded && s->stage[asc_u].recorded;
    return exact && all_zero(s->at.l_prev.loose, rows) && all_zero(s->at.u_prev.loose, rows * h->c->head_dim_v)
               ? ROUNDING_CLEAR
               : ROUNDING_OPERANDS;
}

/* Whether S of this element is the product and nothing else. */
static bool is_product(const struct rounding_head *h, enum asc_channel ch, int row, int col)
{
    return ch != asc_s || operands_see(&h->s->at, row, col);
}

static void count_element(struct rounding_cell *cell, const struct tile_detail *d, enum dtype t, size_t i)
{
    const int class = d->class_local[i];
    const double got = d->got[i], want = d->want_local[i], bound = d->bound_local[i];
    if (class != CLASS_OK && class != CLASS_OFF)
        return;
    cell->elements++;
    cell->fixed += class == CLASS_OK && (isinf(want) || !(bound > 0));
    const double step = cell->narrow && isfinite(want) ? step_of(t, want) : 0;
    if (class == CLASS_OFF) {
        cell->off++;
        cell->off_step += step > 0 && fabs(got - want) <= step + bound;
    }
    if (step > 0) {
        cell->steps += fmax(-8, fmin(8, (got - want) / step));
        cell->only += isfinite(bound) && bound_round(t, want - bound) == bound_round(t, want + bound);
    }
}

/* Half of what this run and the one of negated inputs add up to. */
static void compare_negated(struct rounding_cell *cell, const struct matrix *m, const struct tile_detail *d, size_t i,
                            double unit)
{
    const double other = values_element(m, (size_t)((int)i / d->cols * m->row_stride + (int)i % d->cols));
    if (!isfinite(other) || !isfinite(d->got[i]))
        return;
    cell->compared++;
    cell->broken += other != -d->got[i];
    if (unit > 0)
        cell->even += (d->got[i] + other) / 2 / unit;
}

static const struct matrix *negated_of(const struct rounding_head *h, enum asc_channel ch, int kv)
{
    const struct matrix *run = !h->negated ? NULL : ch == asc_s ? h->negated->q : h->negated->v;
    const struct matrix *m = run ? &run[kv * ASC_CHANNELS + (int)ch] : NULL;
    return m && m->data ? m : NULL;
}

/* S, U or O. */
static void fit_tile(struct rounding_head *h, struct rounding_cell *cell, const struct tile_detail *d, int which)
{
    struct fit_sums *f = &h->fit[which];
    const struct oracle_case *c = h->c;
    const enum asc_channel ch = fitted[which];
    const enum dtype t = scratch_captured(h->s, c, ch)->dtype;
    const enum rounding_reason barred = which == FIT_S ? bars_s(h) : which == FIT_U ? bars_u(h) : bars_o(h);
    const struct matrix *negated =
        which == FIT_S && bias_terms(c) && !values_biased_later(c) ? NULL : negated_of(h, ch, d->kv);
    const int first = c->q_tile * c->br, kv = which == FIT_O ? 0 : d->kv;
    f->barred = barred != ROUNDING_CLEAR ? barred : f->barred;
    if (barred == ROUNDING_CLEAR && which == FIT_S)
        units_of_s(h, d->rows, d->cols);
    if (barred == ROUNDING_CLEAR && which == FIT_U)
        units_of_u(h, d->rows, d->cols);
    for (int i = 0; i < d->rows * d->cols; i++) {
        const int row = i / d->cols, col = i % d->cols;
        const double want = d->want_local[i], got = d->got[i];
        if (!is_product(h, ch, row, col) || !isfinite(want) || !isfinite(got))
            continue;
        const double narrow_step = step_of(t, want);
        const double unit = narrow_step > 0            ? narrow_step
                            : which == FIT_O           ? 0x1p-23 * fabs(want)
                            : barred == ROUNDING_CLEAR ? h->norm[i]
                                                       : 0;
        if (negated)
            compare_negated(cell, negated, d, (size_t)i, unit);
        if (barred != ROUNDING_CLEAR || !(unit > 0) || want == 0 || !isfinite(unit))
            continue;
        const double y = fmax(-3, fmin(3, (got - want) / unit));
        cluster_add(&f->rows[(ptrdiff_t)kv * h->q_len + first + row], &f->cols[(ptrdiff_t)kv * f->width + col],
                    &f->total[kv], want > 0 ? 1 : -1, y);
    }
}

static void drift_add(struct rounding_drift *d, double x)
{
    if (!isfinite(x))
        return;
    d->n += 1;
    d->sum += x;
    d->squares += x * x;
}

/* l and u in the frame of the captured m, so that l / reference is exp of what m + ln l is off by. */
static void drift_tile(struct rounding_head *h, const struct tile_detail *d)
{
    struct rounding_drift *sum = &h->drift[ROUNDING_SUM * h->kv_tiles + d->kv];
    struct rounding_drift *output = &h->drift[ROUNDING_OUTPUT * h->kv_tiles + d->kv];
    if (!h->s->stage[asc_m].recorded)
        return;
    if (d->channel == asc_l) {
        h->l_kv = d->kv;
        for (int r = 0; r < d->rows; r++) {
            h->l_ratio[r] = d->want_global[r] > 0 ? d->got[r] / d->want_global[r] : NAN;
            drift_add(sum, h->l_ratio[r] - 1);
        }
    } else if (d->channel == asc_u && h->l_kv == d->kv && h->c->conventions.u_phase != ASC_U_RESCALED) {
        for (int r = 0; r < d->rows; r++) {
            double along = 0, size = 0;
            for (int i = r * d->cols; i < (r + 1) * d->cols; i++) {
                along += d->got[i] * d->want_global[i];
                size += d->want_global[i] * d->want_global[i];
            }
            const bool divided = h->c->conventions.u_norm == ASC_U_NORM_TILE;
            drift_add(output, along / size / (divided ? 1 : h->l_ratio[r]) - 1);
        }
    }
}

static void take_tile(void *ctx, const struct tile_detail *d)
{
    struct rounding_head *h = ctx;
    struct rounding_cell *cell = &h->cells[d->channel * h->kv_tiles + d->kv];
    const enum asc_channel ch = (enum asc_channel)d->channel;
    const enum dtype t = scratch_captured(h->s, h->c, ch)->dtype;
    double unit, half_tiny;
    cell->narrow = bound_narrow(t, &unit, &half_tiny);
    for (int i = 0; i < d->rows * d->cols; i++)
        count_element(cell, d, t, (size_t)i);
    for (int i = 0; i < FITS; i++)
        if (fitted[i] == ch && h->s->stage[ch].recorded)
            fit_tile(h, cell, d, i);
    if (ch == asc_l || ch == asc_u)
        drift_tile(h, d);
}

/* Tiles that a tensor core's bits were asked of. */
static void count_bits(struct rounding_head *h)
{
    for (int kv = 0; kv < h->kv_tiles; kv++)
        for (int i = 0; i < FITS; i++) {
            const struct verdict *v = &h->verdicts[kv * ASC_CHANNELS + (int)fitted[i]].local;
            struct rounding_cell *cell = &h->cells[(int)fitted[i] * h->kv_tiles + kv];
            if (!v->exact)
                continue;
            cell->off_bits += v->count[CLASS_OFF];
            cell->by_bits += v->count[CLASS_OK] - (v->unequal < v->count[CLASS_OK] ? v->unequal : v->count[CLASS_OK]);
        }
}

int rounding_head_add(struct rounding_head *h, const struct oracle_case *c, const struct rounding_negated *negated,
                      struct judge_scratch *scratch)
{
    h->detail.each = take_tile;
    h->detail.ctx = h;
    h->c = c;
    h->s = scratch;
    h->negated = negated;
    h->l_kv = -1;
    number_rows(h, c);
    memset(h->verdicts, 0, (size_t)h->kv_tiles * ASC_CHANNELS * sizeof *h->verdicts);
    if (judge_case(c, scratch, h->verdicts, &h->detail) != 0)
        return -1;
    count_bits(h);
    return 0;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whether more than a quarter of the rows have been there before. */
static bool repeat(uint64_t *rows, int n)
{
    int seen = 0, distinct = 0;
    qsort(rows, (size_t)n, sizeof *rows, ascending);
    for (int i = 0; i < n; i++) {
        seen += rows[i] != 0;
        distinct += rows[i] != 0 && (i == 0 || rows[i] != rows[i - 1]);
    }
    return 4 * distinct < 3 * seen;
}

/* Why no regression speaks for a channel that has none. */
static enum rounding_reason unfitted(enum asc_channel ch)
{
    switch (ch) {
    case asc_l:
        return ROUNDING_ONE_SIGN;
    case asc_alpha:
    case asc_p:
    case asc_lse:
        return ROUNDING_FUNCTION;
    default:
        return ROUNDING_OPERANDS;
    }
}

static void add_counts(struct rounding_cell *to, const struct rounding_cell *from)
{
    to->elements += from->elements;
    to->off += from->off;
    to->off_bits += from->off_bits;
    to->off_step += from->off_step;
    to->fixed += from->fixed;
    to->by_bits += from->by_bits;
    to->only += from->only;
    to->compared += from->compared;
    to->broken += from->broken;
    to->steps += from->steps;
    to->even += from->even;
    to->narrow |= from->narrow;
}

static void finish_fit(struct rounding_head *h, int which, int repeated, struct rounding_cell *cells)
{
    struct fit_sums *f = &h->fit[which];
    struct cluster_total total = {0};
    for (int kv = 0; kv < f->kv_tiles; kv++) {
        struct cluster *rows = f->rows + (ptrdiff_t)kv * h->q_len;
        cells[kv].fit = clustered_fit(rows, h->q_len, f->cols + (ptrdiff_t)kv * f->width, f->width, &f->total[kv]);
        cells[kv].barred = repeated ? ROUNDING_REPEATED : f->barred;
        cluster_total_merge(&total, &f->total[kv]);
        for (int row = 0; kv > 0 && row < h->q_len; row++)
            cluster_merge(&f->rows[row], &rows[row]);
    }
    struct rounding_cell *all = &cells[h->kv_tiles];
    all->fit = clustered_fit(f->rows, h->q_len, f->cols, f->kv_tiles * f->width, &total);
    all->barred = repeated ? ROUNDING_REPEATED : f->barred;
}

void rounding_head_finish(struct rounding_head *h, struct rounding_cell *cells, struct rounding_drift *drift)
{
    const int tiles = h->kv_tiles, wide = tiles + 1;
    int repeats[3];
    for (int i = 0; i < 3; i++)
        repeats[i] = repeat(h->rows_of[i], h->n_rows[i]);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        struct rounding_cell *to = &cells[(ptrdiff_t)ch * wide];
        memcpy(to, &h->cells[(ptrdiff_t)ch * tiles], (size_t)tiles * sizeof *to);
        to[tiles] = (struct rounding_cell){0};
        for (int kv = 0; kv < tiles; kv++) {
            to[kv].barred = unfitted((enum asc_channel)ch);
            add_counts(&to[tiles], &to[kv]);
        }
        to[tiles].barred = unfitted((enum asc_channel)ch);
        for (int i = 0; i < FITS; i++)
            if ((int)fitted[i] == ch)
                finish_fit(h, i, i == FIT_S ? repeats[0] || repeats[1] : repeats[0] || repeats[1] || repeats[2], to);
        for (int kv = 0; kv <= tiles; kv++)
            rounding_decide(&to[kv]);
    }
    memcpy(drift, h->drift, ROUNDING_CURVES * (size_t)tiles * sizeof *drift);
}
