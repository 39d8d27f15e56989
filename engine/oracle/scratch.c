#include "engine/oracle/scratch.h"

#include "engine/base/format.h"
#include "engine/base/tensor_core.h"
#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
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
    free(s->block);
    free(s->indices);
    free(s);
}

/* Rows and columns of a channel's tile of R queries and C keys. */
static void stage_shape(struct stage *stage, enum asc_channel ch, size_t R, size_t C, size_t D)
{
    const struct asc_plan plan = {.br = (int32_t)R, .bc = (int32_t)C};
    const struct asc_problem problem = {.head_dim = (int32_t)D};
    stage->rows = channel_rows(ch, &plan);
    stage->cols = channel_cols(ch, &plan, &problem);
}

/* Each buffer starts on a cache line of its own. */
static size_t padded(size_t n)
{
    return (n + 7) / 8 * 8;
}

enum { ARRAYS_PER_STAGE = 2 + 2 * SIDES };

/* What an earlier case needed is kept where it suffices. */
static int reserve(struct judge_scratch *s, size_t doubles, size_t indices)
{
    if (doubles > s->room) {
        double *block = NULL;
        if (posix_memalign((void **)&block, 64, doubles * sizeof *block) != 0)
            return -1;
        free(s->block);
        s->block = block;
        s->room = doubles;
    }
    if (indices > s->index_room) {
        int *more = malloc(indices * sizeof *more);
        if (!more)
            return -1;
        free(s->indices);
        s->indices = more;
        s->index_room = indices;
    }
    return 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* 1 if no size wraps: there are fewer than 256 arrays, and none has more elements than the longest side of anything
   times the longest row, both rounded up to what a cache line or a tensor core's operand is padded to. The elements of
   a tile are counted in int. */
static int sizes_fit(const struct oracle_case *c)
{
    const int row = larger(c->bc, c->head_dim), column = larger(c->bc, c->in_q.rows);
    size_t all = 0;
    if (c->in_q.rows < 0 || c->bc < 0 || c->head_dim < 0 || c->kv_len < 0 || c->kv_tiles < 0)
        return 0;
    return column <= INT_MAX / larger(row, 1) && c->kv_tiles <= INT_MAX / ASC_CHANNELS &&
           !__builtin_mul_overflow((size_t)larger(column, row) + 64, (size_t)row + 64, &all) &&
           !__builtin_mul_overflow(all, 256 * sizeof(double), &all);
}

int scratch_prepare(struct judge_scratch *s, const struct oracle_case *c)
{
    if (!sizes_fit(c))
        return -1;
    const size_t R = (size_t)c->in_q.rows, C = (size_t)c->bc, D = (size_t)c->head_dim;
    const size_t B = bias_terms(c) > 0, S = c->kv_splits > 1;
    size_t doubles = 0;
#define BUFFER(name, elements, meaning) doubles += padded(elements);
#include "engine/oracle/buffers.def"
#undef BUFFER
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        memset(&s->stage[ch], 0, sizeof s->stage[ch]);
        stage_shape(&s->stage[ch], ch, R, C, D);
        doubles += ARRAYS_PER_STAGE * padded((size_t)s->stage[ch].rows * (size_t)s->stage[ch].cols);
    }
    if (reserve(s, doubles, 4 * R + D + (size_t)c->kv_tiles) != 0)
        return -1;
    double *at = s->block;
#define BUFFER(name, elements, meaning)                                                                                \
    s->name = at;                                                                                                      \
    at += padded(elements);
#include "engine/oracle/buffers.def"
#undef BUFFER
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        struct stage *stage = &s->stage[ch];
        const size_t step = padded((size_t)stage->rows * (size_t)stage->cols);
        stage->got = stage->got_room = at;
        stage->loose_room = at + step;
        for (int side = 0; side < SIDES; side++) {
            stage->want[side] = at + (size_t)(2 + 2 * side) * step;
            stage->bound[side] = at + (size_t)(3 + 2 * side) * step;
        }
        stage->want_room = stage->want[LOCAL];
        at += ARRAYS_PER_STAGE * step;
    }
    s->hidden = s->indices;
    s->visible = s->hidden + R;
    s->cause_hidden = s->visible + R;
    s->cause_visible = s->cause_hidden + R;
    s->unreal_v = s->cause_visible + R;
    s->seen = s->unreal_v + D;
    memset(s->seen, 0, (size_t)c->kv_tiles * sizeof *s->seen);
    s->late = s->stage[asc_u];
    s->late.got = s->late_got;
    s->late.want[LOCAL] = s->late_want;
    s->late.bound[LOCAL] = s->late_bound;
    s->late.want[GLOBAL] = s->late_true;
    s->late.bound[GLOBAL] = s->late_true_bound;
    s->late_kv = -1;
    s->split = 0;
    s->stopped = 0;
    s->folds_unseen = s->unseen_q = s->unseen_k = s->unseen_v = 0;
    s->scales_s = 0;
    s->times_v = 1;
    memset(s->zero, 0, (R > C ? R : C) * (C > D ? C : D) * sizeof(double));
    return 0;
}

void scratch_tile(struct judge_scratch *s, const struct oracle_case *c, int kv)
{
    const int cols = schedule_cols(c, kv);
    if (s->ask && s->ask(s->ask_ctx))
        s->stopped = 1;
    s->kv = kv;
    s->kv_cols = cols;
    s->masked = schedule_masked(c, kv);
    s->pad_cols = s->pad_captured = 0;
    s->weighed_p = 0;
    for (int r = 0; r < c->in_q.rows; r++)
        s->hidden[r] = schedule_hidden(c, r, kv), s->visible[r] = schedule_visible(c, r, kv);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (!channel_per_kv(ch))
            continue;
        stage_shape(&s->stage[ch], ch, (size_t)c->in_q.rows, (size_t)cols, (size_t)c->head_dim);
        s->stage[ch].recorded = 0;
    }
    bias_tile(c, s);
}

const struct matrix *scratch_captured(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch)
{
    return &c->captured[(channel_per_kv(ch) ? s->kv : 0) * ASC_CHANNELS + (int)ch];
}

const struct matrix *scratch_fed(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch)
{
    const struct matrix *m = c->fed ? &c->fed[(channel_per_kv(ch) ? s->kv : 0) * ASC_CHANNELS + (int)ch] : NULL;
    return m && m->data ? m : NULL;
}

/* Partial sums in the lanes of a row are judged as what they add up to. Narrow ones have been rounded each. */
static void take_lanes(struct judge_scratch *s, const struct matrix *m, struct stage *stage)
{
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
        stage->got[r] = s->lane_sum[r] = sum;
        stage->loose_room[r] = loose <= DBL_MAX ? loose : 0;
        if (missing)
            memcpy(&s->lane_sum[r], &pattern, sizeof pattern);
    }
    s->lanes = (struct matrix){s->lane_sum, DTYPE_F64, 1, m->rows, 1};
    stage->recorded = 1;
    stage->value = stage->got;
    stage->loose = unit > 0 ? stage->loose_room : s->zero;
    stage->exact = unit == 0;
}

/* What the kernel goes on with after each lane's part was overwritten. */
static void feed_lanes(const struct judge_scratch *s, const struct matrix *m, const struct matrix *fed,
                       struct stage *stage)
{
    for (int r = 0; r < m->rows; r++) {
        stage->loose_room[r] = 0;
        for (int lane = 0; lane < m->cols; lane++)
            stage->loose_room[r] += values_overlaid(fed, m, r, lane);
    }
    stage->value = stage->loose_room;
    stage->loose = s->zero;
    stage->exact = 1;
}

/* Of a type that saturates; NaN of the others. */
static double largest_of(enum dtype t)
{
    return t == DTYPE_E4M3 ? (double)E4M3_MAX : t == DTYPE_E5M2 ? (double)E5M2_MAX : NAN;
}

/* A masked element of s or p need not be written: a loop that ends at the diagonal writes none. Then it is what the
   mask makes of it; of scores that are recorded before the mask, what they should be: whoever reads them masks them. */
static void take_masked(const struct judge_scratch *s, const struct oracle_case *c, enum asc_channel ch,
                        const struct matrix *m, const struct stage *stage)
{
    const int is_value = c->conventions.s_masked == ASC_MASKED_VALUE, later = ch == asc_s && values_mask_later(c);
    const double masked = ch == asc_p ? 0 : is_value ? (double)c->conventions.s_masked_value : -INFINITY;
    for (int r = 0; r < m->rows; r++)
        for (int col = s->hidden[r] == 0 ? s->visible[r] : 0; col < m->cols; col++) {
            const size_t i = (size_t)r * (size_t)m->cols + (size_t)col;
            if (col >= s->hidden[r] && col < s->visible[r])
                continue;
            if (isnan(stage->got[i]) && !values_element_written(m, (size_t)(r * m->row_stride + col)))
                stage->got[i] = later ? stage->want[LOCAL][i] : masked;
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
        if (fed)
            feed_lanes(s, m, fed, stage);
        return;
    }
    values_load(m, stage->got);
    if (ch == asc_s || ch == asc_p)
        take_masked(s, c, ch, m, stage);
    stage->recorded = 1;
    stage->value = stage->got;
    stage->loose = s->zero;
    stage->exact = 1;
    if (fed) {
        values_overlay(fed, stage->got, stage->loose_room);
        stage->value = stage->loose_room;
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
    stage->loose = stage->loose_room;
    stage->exact = 0;
}

void scratch_expect(struct judge_scratch *s, enum asc_channel ch)
{
    struct stage *stage = &s->stage[ch];
    stage->value = stage->want[LOCAL];
    stage->loose = stage->bound[LOCAL];
    stage->exact = 0;
}
