#include "engine/oracle/scratch.h"

#include "engine/base/format.h"
#include "engine/base/tensor_core.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <float.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct judge_scratch *judge_scratch_new(void)
{
    return calloc(1, sizeof(struct judge_scratch));
}

void judge_scratch_watch(struct judge_scratch *s, int (*ask)(void *ctx), void *ctx)
{
    s->ask = ask;
    s->ask_ctx = ctx;
}

void judge_scratch_free(struct judge_scratch *s)
{
    if (!s)
        return;
    for (int i = 0; s->kept && i < 2 * KEPT_TILES; i++)
        free(s->kept[i].block);
    free(s->kept);
    free(s->block);
    free(s->indices);
    free(s);
}

/* Rows and columns of a channel's tile of the case's queries and C keys. */
static void stage_shape(const struct oracle_case *c, struct stage *stage, enum asc_channel ch, size_t C)
{
    const struct asc_plan plan = {.br = c->in_q.rows, .bc = (int32_t)C};
    const struct asc_problem problem = {.head_dim = c->head_dim, .head_dim_v = c->head_dim_v};
    stage->rows = channel_rows(ch, &plan);
    stage->cols = channel_cols(ch, &plan, &problem);
}

/* Each buffer starts on a cache line of its own. */
static size_t padded(size_t n)
{
    return (n + 7) / 8 * 8;
}

/* What an earlier case needed is kept where it suffices. */
static int reserve(struct judge_scratch *s, size_t doubles, size_t indices)
{
    if (doubles > s->length) {
        double *block = NULL;
        if (posix_memalign((void **)&block, 64, doubles * sizeof *block) != 0)
            return -1;
        free(s->block);
        s->block = block;
        s->length = doubles;
    }
    if (indices > s->index_length) {
        int *more = malloc(indices * sizeof *more);
        if (!more)
            return -1;
        free(s->indices);
        s->indices = more;
        s->index_length = indices;
    }
    return 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Whether no size wraps: there are fewer than 256 arrays, and none has more elements than the longest side of anything
   times the longest row, both rounded up to what a cache line or a tensor core's operand is padded to. The elements of
   a tile are counted in int. */
static bool sizes_fit(const struct oracle_case *c)
{
    const int row = larger(c->bc, oracle_widest(c)), column = larger(c->bc, c->in_q.rows);
    size_t all = 0;
    if (c->in_q.rows < 0 || c->bc < 0 || c->head_dim < 0 || c->head_dim_v < 0 || c->kv_len < 0 || c->kv_tiles < 0)
        return false;
    return column <= INT_MAX / larger(row, 1) && c->kv_tiles <= INT_MAX / ASC_CHANNELS &&
           !__builtin_mul_overflow((size_t)larger(column, row) + 64, (size_t)row + 64, &all) &&
           !__builtin_mul_overflow(all, 256 * sizeof(double), &all);
}

/* Lengths of the sides of arrays: D the larger of head_dim and head_dim_v. */
struct extents {
    size_t R, C, D;
};

/* Where arrays are taken from, one after the other; base NULL: they are only counted. */
struct arena {
    double *base;
    size_t used;
};

static double *take(struct arena *a, size_t n)
{
    double *x = a->base ? a->base + a->used : NULL;
    a->used += padded(n) + 40;
    return x;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void lay_stages(const struct oracle_case *c, struct judge_scratch *s, struct arena *a, const struct extents *e)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        struct stage *stage = &s->stage[ch];
        memset(stage, 0, sizeof *stage);
        stage_shape(c, stage, ch, e->C);
        const size_t n = (size_t)stage->rows * (size_t)stage->cols;
        stage->got = stage->got_room = take(a, n);
        stage->loose_room = take(a, n);
        for (int side = 0; side < SIDES; side++) {
            stage->want[side] = take(a, n);
            stage->bound[side] = take(a, n);
        }
        stage->want_room = stage->want[LOCAL];
    }
    s->late = s->stage[asc_u];
    s->late.got = take(a, e->R * e->D);
    for (int side = 0; side < SIDES; side++) {
        s->late.want[side] = take(a, e->R * e->D);
        s->late.bound[side] = take(a, e->R * e->D);
    }
}

static void lay_inputs(struct judge_scratch *s, struct arena *a, const struct extents *e)
{
    for (int ch = 0; ch < INPUTS; ch++) {
        const size_t rows = ch == asc_q ? e->R : e->C, n = rows * e->D;
        struct original_input *in = &s->input[ch];
        in->value = in->value_room = take(a, n);
        in->loose = take(a, n);
        in->size_room = take(a, n);
        in->abs_room = take(a, n);
        in->by = ch == asc_v ? NULL : take(a, rows);
    }
}

static void lay_carried(struct carried *x, struct arena *a, const struct extents *e)
{
    x->m = take(a, e->R);
    x->m_loose = take(a, e->R);
    x->l = take(a, e->R);
    x->l_loose = take(a, e->R);
    x->u = take(a, e->R * e->D);
    x->u_loose = take(a, e->R * e->D);
}

static void lay_prepared(struct prepared *x, struct arena *a, const struct extents *e, int biased, int drops)
{
    const size_t scores = e->R * e->C, bias = biased ? scores : 0, dropped = drops ? scores : 0;
    x->folded_q = take(a, e->R * e->D);
    x->folded_bound = take(a, e->R * e->D);
    x->bias = take(a, bias);
    x->bias_size = take(a, bias);
    x->scores = take(a, scores);
    x->scores_loose = take(a, scores);
    x->pad = take(a, scores);
    x->tile_top = take(a, e->R);
    x->tile_top_loose = take(a, e->R);
    x->beta = take(a, e->R);
    x->beta_loose = take(a, e->R);
    x->p_rounded = take(a, scores);
    x->p_rounded_loose = take(a, scores);
    x->kept = take(a, dropped);
    x->kept_loose = take(a, dropped);
    x->all = take(a, dropped);
    x->all_loose = take(a, dropped);
    x->lane_sum = take(a, e->R);
}

/* n of f32. */
static size_t narrow(size_t n)
{
    return n / 2 + 1;
}

static void lay_reference(struct reference *t, struct arena *a, const struct extents *e)
{
    double **const rows[] = {&t->max,         &t->max_prev,    &t->max_bound, &t->max_bound_prev, &t->frame,
                             &t->frame_prev,  &t->frame_loose, &t->shift,     &t->p_unit,         &t->decay,
                             &t->decay_error, &t->sum,         &t->sum_error, &t->lost,           &t->turned};
    double **const tiles[] = {&t->weight, &t->weight_error, &t->scores, &t->scores_bound};
    double **const values[] = {&t->out, &t->out_error};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        *rows[i] = take(a, e->R);
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        *tiles[i] = take(a, e->R * e->C);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        *values[i] = take(a, e->R * e->D);
    t->out_top = take(a, e->D);
    t->moved = take(a, e->D);
    t->reach = take(a, e->D);
    t->product = take(a, e->D);
}

static void lay_likely(struct likely *x, struct arena *a, const struct extents *e, bool wanted)
{
    const size_t rows = wanted ? e->R : 0, values = rows * e->D, weights = rows * e->C;
    double **const of_rows[] = {&x->decay, &x->l, &x->l_variance, &x->squares, &x->fixed_unit, &x->variance_unit};
    double **const of_values[] = {&x->u, &x->u_variance, &x->u_cut};
    for (size_t i = 0; i < sizeof of_rows / sizeof of_rows[0]; i++)
        *of_rows[i] = take(a, rows);
    for (size_t i = 0; i < sizeof of_values / sizeof of_values[0]; i++)
        *of_values[i] = take(a, values);
    x->bins = take(a, rows * LIKELY_BINS);
    x->weight = take(a, weights);
    x->weight_variance = take(a, weights);
    void *of_noise = take(a, rows * (sizeof *x->rows / sizeof(double)));
    x->rows = of_noise;
    x->fixed_sums = take(a, narrow(values));
    x->variance_sums = take(a, narrow(values));
}

static void lay_merged(struct merged *x, struct arena *a, const struct extents *e, int splits)
{
    const size_t rows = splits ? e->R : 0, values = rows * e->D;
    x->m = take(a, rows);
    x->l = take(a, rows);
    x->l_loose = take(a, rows);
    x->u = take(a, values);
    x->u_size = take(a, values);
    x->u_loose = take(a, values);
    x->l_likely = take(a, rows);
    x->u_likely = take(a, values);
    x->max_bound = take(a, rows);
}

static void lay_mistake(struct mistake_room *x, struct arena *a, const struct extents *e)
{
    const size_t any = most(e->R, e->C) * most(e->C, e->D);
    x->want = take(a, any);
    x->bound = take(a, any);
    x->operand = take(a, any);
    x->size = take(a, any);
    x->scores = take(a, e->R * e->C);
    x->scores_loose = take(a, e->R * e->C);
    x->alpha = take(a, 2 * e->R);
    x->next = take(a, 4 * e->R);
}

static void lay_room(struct room *x, struct arena *a, const struct extents *e)
{
    const size_t widest = most(e->C, e->D), zeros = most(e->R, e->C) * widest;
    double *zero = take(a, zeros);
    if (zero)
        memset(zero, 0, zeros * sizeof *zero);
    x->zero = zero;
    x->q = take(a, e->R * e->D);
    x->k = take(a, e->C * e->D);
    x->p = take(a, e->R * e->C);
    x->sum = take(a, e->R * widest);
    x->a = take(a, narrow(e->R * widest));
    x->b = take(a, narrow(e->C * e->D));
    x->c = take(a, narrow(e->R * widest));
    x->unit = take(a, e->R);
    x->weighed = take(a, narrow(e->R * e->D));
    x->weighed_unit = take(a, e->R);
    x->shared = (struct shared){.v_room = {.panels = take(a, matrix_packed((int)e->D, (int)e->C)),
                                           .size_panels = take(a, narrow(matrix_packed((int)e->D, (int)e->C)))},
                                .q_rows = take(a, narrow(e->R * e->D)),
                                .q_unit = take(a, e->R)};
}

static void lay_core(struct product_room *x, struct arena *a, const struct extents *e)
{
    const size_t widest = most(e->C, e->D);
    x->a = take(a, tensor_core_room((int)e->R, (int)widest) / sizeof(double));
    x->b = take(a, tensor_core_room((int)widest, (int)widest) / sizeof(double));
    x->codes = take(a, most(e->R, e->C) * widest / 4 + 1);
    x->sums = take(a, narrow(e->R * widest));
    x->out = take(a, narrow(e->R * widest));
    x->model = take(a, e->R * widest);
}

/* All arrays of float64, from base on; returns how many numbers that are. */
static size_t lay(struct judge_scratch *s, const struct oracle_case *c, double *base)
{
    const struct extents e = {(size_t)c->in_q.rows, (size_t)c->bc, (size_t)oracle_widest(c)};
    struct arena a = {.base = base};
    lay_stages(c, s, &a, &e);
    lay_inputs(s, &a, &e);
    lay_carried(&s->carried, &a, &e);
    lay_prepared(&s->prepared, &a, &e, bias_terms(c) > 0, c->keep.data != NULL);
    lay_reference(&s->reference, &a, &e);
    lay_likely(&s->likely, &a, &e, likely_wanted(c));
    for (int side = 0; side < SIDES; side++)
        lay_merged(&s->merged[side], &a, &e, c->kv_splits > 1);
    lay_mistake(&s->mistake, &a, &e);
    lay_room(&s->room, &a, &e);
    lay_core(&s->core, &a, &e);
    return a.used;
}

static void lay_indices(struct judge_scratch *s, const struct oracle_case *c)
{
    const int rows = c->in_q.rows;
    s->hidden = s->indices;
    s->visible = s->hidden + rows;
    s->mistake.hidden = s->visible + rows;
    s->mistake.visible = s->mistake.hidden + rows;
    s->left_out = s->mistake.visible + rows;
    s->unreal_v = s->left_out + rows;
    s->seen = s->unreal_v + c->head_dim_v;
    memset(s->seen, 0, (size_t)c->kv_tiles * sizeof *s->seen);
    schedule_lists_make(c, s->seen + c->kv_tiles, &s->lists);
}

static struct operand operand(const double *value, const double *loose)
{
    return (struct operand){.value = value, .loose = loose};
}

/* Formulas read what is prepared and carried where it lies. */
static void point_operands(struct judge_scratch *s)
{
    const struct prepared *x = &s->prepared;
    s->at = (struct operands){
        .hidden = s->hidden,
        .visible = s->visible,
        .input_v = s->input[asc_v].value,
        .by_q = s->input[asc_q].by,
        .by_k = s->input[asc_k].by,
        .times_v = 1,
        .bias = x->bias,
        .bias_size = x->bias_size,
        .pad = x->pad,
        .m_prev = operand(s->carried.m, s->carried.m_loose),
        .l_prev = operand(s->carried.l, s->carried.l_loose),
        .u_prev = operand(s->carried.u, s->carried.u_loose),
        .tile_top = operand(x->tile_top, x->tile_top_loose),
        .beta = operand(x->beta, x->beta_loose),
    };
}

int scratch_prepare(struct judge_scratch *s, const struct oracle_case *c)
{
    if (!sizes_fit(c))
        return -1;
    const size_t indices =
        5 * (size_t)c->in_q.rows + (size_t)c->head_dim_v + (size_t)c->kv_tiles + schedule_lists_room(c);
    if (reserve(s, lay(s, c, NULL), indices) != 0)
        return -1;
    if (!s->kept)
        s->kept = calloc(2 * (size_t)KEPT_TILES, sizeof *s->kept); /* nothing is kept without it */
    lay(s, c, s->block);
    lay_indices(s, c);
    point_operands(s);
    s->late_kv = -1;
    s->stopped = false;
    s->lean = false;
    return 0;
}

void scratch_tile(struct judge_scratch *s, const struct oracle_case *c, int kv)
{
    const int cols = schedule_cols(c, kv);
    if (s->ask && s->ask(s->ask_ctx))
        s->stopped = true;
    s->at.kv = kv;
    s->at.cols = cols;
    s->masked = schedule_masked(c, kv);
    s->at.pad_cols = 0;
    s->pad_captured = false;
    s->any_left_out = false;
    s->at.s_recorded = false;
    s->weighed_p = false;
    s->room.shared.k = s->room.shared.v = (struct packed_operand){0};
    for (int r = 0; r < c->in_q.rows; r++)
        schedule_sight(c, r, kv, &s->hidden[r], &s->visible[r]);
    s->at.mask = c->mask.data ? (const uint8_t *)c->mask.data + (ptrdiff_t)kv * c->bc : NULL;
    s->at.mask_row = c->mask.row_stride;
    s->at.keep = c->keep.data ? (const uint8_t *)c->keep.data + (ptrdiff_t)kv * c->bc : NULL;
    s->at.keep_row = c->keep.row_stride;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (!channel_per_kv(ch))
            continue;
        stage_shape(c, &s->stage[ch], ch, (size_t)cols);
        s->stage[ch].recorded = false;
    }
    if (bias_terms(c))
        bias_tile(c, kv, cols, s->prepared.bias, s->prepared.bias_size);
}

struct expected scratch_local(const struct judge_scratch *s, enum asc_channel ch)
{
    return (struct expected){s->stage[ch].want[LOCAL], s->stage[ch].bound[LOCAL]};
}

const struct matrix *scratch_captured(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch)
{
    return values_captured(c, s->at.kv, ch);
}

const struct matrix *scratch_fed(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch)
{
    const struct matrix *m = c->fed ? &c->fed[(channel_per_kv(ch) ? s->at.kv : 0) * ASC_CHANNELS + (int)ch] : NULL;
    return m && m->data ? m : NULL;
}

/* Partial sums in the lanes of a row are judged as what they add up to. Narrow ones have been rounded each. */
static void take_lanes(struct judge_scratch *s, const struct matrix *m, struct stage *stage)
{
    double *lane_sum = s->prepared.lane_sum;
    const uint64_t pattern = UNWRITTEN_64;
    double unit = 0;
    double half_tiny = 0;
    bound_narrow(m->dtype, &unit, &half_tiny);
    for (int r = 0; r < m->rows; r++) {
        double sum = 0;
        double loose = 0;
        int missing = 0;
        for (int lane = 0; lane < m->cols; lane++) {
            const size_t at = (size_t)(r * m->row_stride + lane);
            const double x = dtype_load(m->dtype, m->data, at);
            missing |= dtype_is_unwritten(m->dtype, m->data, at);
            sum += x;
            loose += unit * fabs(x) + half_tiny;
        }
        stage->got[r] = lane_sum[r] = sum;
        stage->loose_room[r] = loose <= DBL_MAX ? loose : 0;
        if (missing)
            memcpy(&lane_sum[r], &pattern, sizeof pattern);
    }
    s->lanes = (struct matrix){lane_sum, DTYPE_F64, 1, m->rows, 1};
    stage->recorded = true;
    s->at.of[asc_l] = (struct operand){stage->got, unit > 0 ? stage->loose_room : s->room.zero, unit == 0};
}

/* What the kernel goes on with after each lane's part was overwritten. */
static void feed_lanes(struct judge_scratch *s, const struct matrix *m, const struct matrix *fed,
                       const struct stage *stage)
{
    for (int r = 0; r < m->rows; r++) {
        stage->loose_room[r] = 0;
        for (int lane = 0; lane < m->cols; lane++)
            stage->loose_room[r] += values_overlaid(fed, m, r, lane);
    }
    s->at.of[asc_l] = (struct operand){stage->loose_room, s->room.zero, 1};
}

/* Of a type that saturates; NaN of the others. */
static double largest_of(enum dtype t)
{
    return t == DTYPE_E4M3   ? (double)E4M3_MAX
           : t == DTYPE_E5M2 ? (double)E5M2_MAX
           : t == DTYPE_E2M1 ? (double)E2M1_MAX
                             : NAN;
}

/* A masked element of s or p need not be written: a loop that ends at the diagonal writes none. Then it is what the
   mask makes of it; of scores that are recorded before the mask, what they should be: whoever reads them masks them. */
static void take_masked(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch,
                        const struct matrix *m, const struct stage *stage)
{
    const int is_value = c->conventions.s_masked == ASC_MASKED_VALUE, later = ch == asc_s && values_mask_later(c);
    const double masked = ch == asc_p ? 0 : is_value ? (double)c->conventions.s_masked_value : -INFINITY;
    for (int r = 0; r < m->rows; r++)
        for (int col = s->at.hidden[r] == 0 && !s->at.mask ? s->at.visible[r] : 0; col < m->cols; col++) {
            const size_t i = (size_t)r * (size_t)m->cols + (size_t)col;
            if (operands_see(&s->at, r, col))
                continue;
            if (isnan(stage->got[i]) && !values_element_written(m, (size_t)(r * m->row_stride + col)))
                stage->got[i] = later ? stage->want[LOCAL][i] : masked;
        }
}

/* Rows that were left out of a tile go on with the state of before. */
static void take_left_out(const struct judge_scratch *s, enum asc_channel ch, const struct stage *stage)
{
    const double *before = ch == asc_m ? s->carried.m : ch == asc_l ? s->carried.l : ch == asc_u ? s->carried.u : NULL;
    const size_t n = (size_t)stage->cols;
    for (int r = 0; s->any_left_out && r < stage->rows; r++) {
        if (s->left_out[r] && before)
            memcpy(stage->got + (size_t)r * n, before + (size_t)r * n, n * sizeof *before);
        else if (s->left_out[r] && ch == asc_alpha)
            stage->got[r] = 1;
    }
}

void scratch_take(struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch)
{
    struct stage *stage = &s->stage[ch];
    const struct matrix *m = scratch_captured(s, c, ch);
    double unit = 0;
    double half_tiny = 0;
    const struct matrix *fed = scratch_fed(s, c, ch);
    if (ch == asc_l && m->cols > 1) {
        take_lanes(s, m, stage);
        take_left_out(s, ch, stage);
        if (fed)
            feed_lanes(s, m, fed, stage);
        return;
    }
    values_load(m, stage->got);
    if (ch == asc_s || ch == asc_p)
        take_masked(s, c, ch, m, stage);
    take_left_out(s, ch, stage);
    stage->recorded = true;
    s->at.s_recorded |= ch == asc_s;
    s->at.of[ch] = (struct operand){stage->got, s->room.zero, 1};
    if (fed) {
        values_overlay(fed, stage->got, stage->loose_room);
        s->at.of[ch].value = stage->loose_room;
        return;
    }
    /* Q, K and V are used as they are captured. Any other channel in a narrow type is a rounded copy of the f32 that
       the kernel goes on with (or that very value): both have to be allowed for. */
    if (ch == asc_q || ch == asc_k || ch == asc_v || !bound_narrow(m->dtype, &unit, &half_tiny))
        return;
    const int n = stage->rows * stage->cols;
    const double most = ch == asc_p ? largest_of(m->dtype) : NAN;
    for (int i = 0; i < n; i++) {
        const double size = fabs(stage->got[i]);
        stage->loose_room[i] = size <= DBL_MAX ? (unit * size + half_tiny) * (1 + unit) : 0;
        /* A weight that was cut off may have been any number: l may hold that one. */
        if (size == most)
            stage->loose_room[i] = INFINITY;
    }
    s->at.of[ch].loose = stage->loose_room;
    s->at.of[ch].exact = false;
}

void scratch_expect(struct judge_scratch *s, enum asc_channel ch)
{
    s->at.of[ch] = (struct operand){s->stage[ch].want[LOCAL], s->stage[ch].bound[LOCAL], 0};
}
