#include "engine/oracle/tile.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/element.h"
#include "engine/oracle/local.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/product.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const enum asc_channel tile_stages[TILE_STAGES] = {asc_s, asc_m, asc_alpha, asc_p, asc_l, asc_u};

bool tile_left(const struct oracle_case *c, const struct judge_scratch *s)
{
    if (!s->masked)
        return false;
    for (int i = 0; i < TILE_STAGES; i++) {
        const struct matrix *m = scratch_captured(s, c, tile_stages[i]);
        if (m->data && values_written(m))
            return false;
    }
    return true;
}

/* A tile behind its sequence is all padding. */
static bool is_written(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch)
{
    const struct matrix *padding = ch == asc_s ? c->s_padding : ch == asc_p ? c->p_padding : NULL;
    const bool behind = s->at.cols == 0 && padding && padding[s->at.kv].data;
    return values_written(scratch_captured(s, c, ch)) || (behind && values_written(&padding[s->at.kv]));
}

void tile_adopt(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct matrix *m = scratch_captured(s, c, ch);
    const bool none = ch == asc_alpha && local_alpha_none(c, &s->at);
    if (m->data && !none && (!s->masked || is_written(c, s, ch)))
        scratch_take(s, c, ch);
    else
        scratch_expect(s, ch);
    if (none) /* declared: nothing is rescaled */
        s->at.of[ch].exact = true;
}

void tile_padding(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct matrix *padding = c->s_padding ? &c->s_padding[s->at.kv] : NULL;
    const struct matrix *fed = padding && scratch_fed(s, c, asc_s) ? &c->fed_s_padding[s->at.kv] : NULL;
    double *pad = s->prepared.pad;
    s->at.pad_cols = 0;
    s->pad_captured = false;
    if (values_mask_later(c) || !s->stage[asc_s].recorded || !padding || !padding->data)
        return;
    values_load(padding, pad);
    for (int r = 0; r < padding->rows; r++) {
        for (int col = 0; col < padding->cols; col++) {
            double *x = &pad[(size_t)r * (size_t)padding->cols + (size_t)col];
            if (dtype_is_unwritten(padding->dtype, padding->data, (size_t)(r * padding->row_stride + col)))
                *x = -INFINITY;
            s->pad_captured |= *x != -INFINITY;
        }
    }
    if (fed)
        values_overlay(fed, pad, pad);
    for (int i = 0; i < padding->rows * padding->cols; i++)
        if (pad[i] != -INFINITY)
            s->at.pad_cols = padding->cols;
}

static void formula(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct expected out = scratch_local(s, ch);
    switch (ch) {
    case asc_s:
        local_s(c, &s->at, &s->room, out);
        break;
    case asc_m:
        local_m(c, &s->at, out);
        break;
    case asc_alpha:
        local_alpha(c, &s->at, out);
        break;
    case asc_p:
        local_p(c, &s->at, out);
        break;
    case asc_l:
        local_l(c, &s->at, out);
        break;
    default:
        local_u(c, &s->at, &s->room, out);
        /* Else subnormal factors count as more. */
        s->weighed_p = product_size(c->conventions.acc_u, BOUND_TINY) <= BOUND_TINY;
    }
}

static bool row_written(const struct matrix *m, int r)
{
    for (int col = 0; m->data && col < m->cols; col++)
        if (values_element_written(m, (size_t)(r * m->row_stride + col)))
            return true;
    return false;
}

static bool sees_nothing(const struct operands *x, int r)
{
    for (int col = x->hidden[r]; col < x->visible[r]; col++)
        if (operands_see(x, r, col))
            return false;
    return true;
}

/* A warp may leave out a tile of which its own rows see nothing, while others of the block work on it: of such a row
   nothing is recorded. A U that the next tile rescales is not told apart from that. */
static void find_left_out(const struct oracle_case *c, struct judge_scratch *s)
{
    s->any_left_out = false;
    for (int r = 0; r < c->in_q.rows; r++) {
        bool left_out = c->conventions.u_phase != ASC_U_RESCALED && sees_nothing(&s->at, r);
        for (int i = 0; i < TILE_STAGES && left_out; i++)
            left_out = !row_written(scratch_captured(s, c, tile_stages[i]), r);
        s->left_out[r] = left_out;
        s->any_left_out |= left_out;
    }
}

void tile_local(const struct oracle_case *c, struct judge_scratch *s)
{
    find_left_out(c, s);
    for (int i = 0; i < TILE_STAGES; i++) {
        formula(c, s, tile_stages[i]);
        tile_adopt(c, s, tile_stages[i]);
        if (tile_stages[i] == asc_s) {
            tile_padding(c, s);
            local_use_scores(c, &s->at, (struct expected){s->prepared.scores, s->prepared.scores_loose});
        }
        if (tile_stages[i] == asc_m)
            local_tile_top(c, s);
        if (tile_stages[i] == asc_alpha)
            local_rescale_u(c, s);
        if (tile_stages[i] == asc_p)
            local_use_weights(c, s);
    }
}

VECTOR_UNITS static bool all_finite(const double *x, int n)
{
    int64_t unreal = 0;
    for (int i = 0; i < n; i++)
        unreal |= !(fabs(x[i]) <= DBL_MAX);
    return unreal == 0;
}

static bool equal(const double *x, const double *y, int n)
{
    for (int i = 0; i < n; i++)
        if (!(x[i] == y[i]))
            return false;
    return true;
}

/* What was captured is the input, bit for bit and finite: one array is all there is to it. */
static void take_same(const struct judge_scratch *s, double *input, struct stage *stage)
{
    stage->recorded = true;
    stage->got = stage->want[LOCAL] = stage->want[GLOBAL] = input;
    stage->bound[LOCAL] = stage->bound[GLOBAL] = (double *)s->room.zero;
}

/* Whether the bits of the input are those of the operand: neither a scale nor the launch's own rounding comes between.
 */
static bool holds_values_taken(const struct oracle_case *c, enum asc_channel ch)
{
    return codes_use(c, ch) == CODES_NONE || (codes_use(c, ch) == CODES_RAW && !codes_of(c, ch)->quantized);
}

static void point_value(struct judge_scratch *s, enum asc_channel ch, const struct kept_tile *t)
{
    const struct packed_operand *ready = &t->ready;
    struct shared *shared = &s->room.shared;
    struct original_input *own = &s->input[ch];
    own->value = t->value; /* nobody writes to it before it is loaded anew */
    own->size = own->value;
    own->lossy = false;
    own->top = t->top;
    s->at.unseen[ch] = false;
    s->at.of[ch] = (struct operand){own->value, s->room.zero, 1};
    s->at.size[ch] = own->size;
    *(ch == asc_k ? &shared->k : &shared->v) = *ready;
    take_same(s, own->value, &s->stage[ch]);
}

static bool same_bits(const struct kept_tile *t, const struct matrix *m, int first)
{
    const size_t bytes = dtype_bytes(m->dtype), row = bytes * (size_t)m->cols;
    const unsigned char *at = m->data;
    if (m->dtype != t->dtype || m->cols != t->cols || first + t->rows > m->rows)
        return false;
    at += bytes * (size_t)(first * m->row_stride);
    if (m->row_stride == m->cols)
        return memcmp(at, t->codes, row * (size_t)t->rows) == 0;
    for (int r = 0; r < t->rows; r++)
        if (memcmp(at + bytes * (size_t)(r * m->row_stride), t->codes + row * (size_t)r, row) != 0)
            return false;
    return true;
}

/* Where the numbers of a tile of K or V may be kept; NULL: nowhere, or they do not follow from the bits alone. */
static struct kept_tile *kept_tile(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch)
{
    const bool of_bits = codes_use(c, ch) == CODES_NONE && !codes_uncertain(c, ch);
    if (ch == asc_q || s->at.kv >= KEPT_TILES || !s->kept || !of_bits || scratch_fed(s, c, ch))
        return NULL;
    return &s->kept[2 * s->at.kv + (ch == asc_v)];
}

/* Takes the numbers that an earlier slot has made of the same bits: of these as they were captured here, and of the
   input. */
static bool take_kept(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct matrix *captured = scratch_captured(s, c, ch);
    const struct kept_tile *t = kept_tile(c, s, ch);
    const int first = s->at.kv * c->bc;
    if (!t || !captured->data || t->rows == 0 || t->rows != captured->rows || !same_bits(t, captured, 0) ||
        !same_bits(t, codes_input(c, ch), first))
        return false;
    reference_scales(c, s, ch);
    point_value(s, ch, t);
    return true;
}

/* Room for a tile's arrays in one block; false: there is none. */
static bool lay_kept(struct judge_scratch *s, struct kept_tile *t, size_t codes, size_t numbers, size_t panels,
                     size_t cols)
{
    enum { ARRAYS = 5, WHOLE = 8 }; /* doubles of a cache line */
    const size_t lengths[ARRAYS] = {codes / sizeof(double) + 1, numbers, panels, panels / 2 + 1, cols};
    size_t at[ARRAYS], length = 0;
    for (int i = 0; i < ARRAYS; i++) {
        at[i] = length;
        length += (lengths[i] + WHOLE - 1) / WHOLE * WHOLE;
    }
    free(t->block);
    s->kept_bytes -= t->bytes;
    *t = (struct kept_tile){.bytes = length * sizeof *t->block};
    if (s->kept_bytes + t->bytes > KEPT_BYTES || posix_memalign((void **)&t->block, 64, t->bytes) != 0) {
        *t = (struct kept_tile){0};
        return false;
    }
    s->kept_bytes += t->bytes;
    t->codes = (unsigned char *)(t->block + at[0]);
    t->value = t->block + at[1];
    t->top = t->block + at[4];
    t->ready = (struct packed_operand){.panels = t->block + at[2], .size_panels = t->block + at[3]};
    return true;
}

VECTOR_UNITS static void raise_sizes(const double *restrict x, int rows, int cols, double *restrict top)
{
    memset(top, 0, (size_t)cols * sizeof *top);
    for (int r = 0; r < rows; r++, x += cols)
        for (int i = 0; i < cols; i++)
            top[i] = fabs(x[i]) > top[i] ? fabs(x[i]) : top[i];
}

/* Keeps the numbers at hand, which are those of the captured bits. */
static void keep_tile(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct matrix *m = scratch_captured(s, c, ch);
    const int transposed = ch == asc_k, rows = m->rows, cols = m->cols;
    const int wide = transposed ? rows : cols, deep = transposed ? cols : rows;
    const size_t n = (size_t)rows * (size_t)cols, row = dtype_bytes(m->dtype) * (size_t)cols;
    struct kept_tile *t = kept_tile(c, s, ch);
    if (!t || n == 0 || !lay_kept(s, t, row * (size_t)rows, n, matrix_packed(wide, deep), (size_t)cols))
        return;
    memcpy(t->value, s->input[ch].value, n * sizeof *t->value);
    raise_sizes(t->value, rows, cols, t->top);
    for (int r = 0; r < rows; r++)
        memcpy(t->codes + (size_t)r * row,
               (const unsigned char *)m->data + dtype_bytes(m->dtype) * (size_t)(r * m->row_stride), row);
    matrix_pack(wide, deep, t->value, transposed, t->ready.panels);
    magnitude_pack(&s->room, wide, deep, t->value, transposed, &t->ready);
    t->ready.of = t->value;
    t->dtype = m->dtype;
    t->rows = rows;
    t->cols = cols;
    point_value(s, ch, t);
}

void operand_share_v(const struct oracle_case *c, struct judge_scratch *s)
{
    struct packed_operand *to = &s->room.shared.v_room;
    if (s->room.shared.v.of)
        return;
    matrix_pack(c->head_dim_v, s->at.cols, s->input[asc_v].value, 0, to->panels);
    magnitude_pack(&s->room, c->head_dim_v, s->at.cols, s->input[asc_v].size, 0, to);
    to->of = s->input[asc_v].value;
    s->room.shared.v = *to;
}

bool operand_take(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct matrix *captured = scratch_captured(s, c, ch), *input = codes_input(c, ch);
    const struct original_input *own = &s->input[ch];
    const double **size = &s->at.size[ch];
    struct operand *use = &s->at.of[ch];
    struct stage *stage = &s->stage[ch];
    const int n = stage->rows * stage->cols, first = ch == asc_q ? 0 : s->at.kv * c->bc;
    if (take_kept(c, s, ch))
        return true;
    const bool coded = codes_uncertain(c, ch);
    if (ch != asc_q)
        reference_load(c, s, ch);
    /* What a code becomes is rounded before it is converted: that is no one number in the captured type. */
    const double *loose = coded && own->lossy ? own->loose : s->room.zero;
    s->at.unseen[ch] = own->lossy && !captured->data;
    stage->recorded = false;
    stage->got = stage->got_room;
    stage->want[LOCAL] = stage->want_room;
    *use = (struct operand){own->value, s->room.zero, 1};
    *size = own->size;
    const double fold = ch == asc_q ? values_fold(c) : 1;
    const double *in = own->value;
    if (fold != 1) {
        /* scale and log2 e make a constant that has been rounded up to twice, the product once. */
        double *folded = s->prepared.folded_q;
        for (int i = 0; i < n; i++) {
            folded[i] = own->value[i] * fold;
            s->prepared.folded_bound[i] = bound_convert(folded[i]) + loose[i] * fabs(fold) + BOUND_TINY;
            own->abs_room[i] = fabs(own->size[i] * fold);
        }
        in = use->value = folded;
        *size = own->abs_room;
        s->at.folds_unseen = !captured->data;
    }
    if (!captured->data)
        return fold == 1 && !own->lossy;
    const bool fed = scratch_fed(s, c, ch) != NULL;
    if (fold == 1 && !fed && holds_values_taken(c, ch) && values_same(captured, input, first) &&
        all_finite(own->value, n)) {
        take_same(s, own->value, stage);
        if (!own->lossy)
            keep_tile(c, s, ch);
        return true;
    }
    scratch_take(s, c, ch);
    double unit = 0;
    double half_tiny = 0;
    const bool narrow = bound_narrow(captured->dtype, &unit, &half_tiny) && captured->dtype != input->dtype && !coded;
    const bool same = fed && fold == 1 && equal(use->value, own->value, n) && all_finite(own->value, n);
    for (int i = 0; i < n; i++) {
        /* A NaN or an infinity in the input is where the trouble starts: it never counts as right. */
        stage->want[LOCAL][i] = !isfinite(in[i])      ? NAN
                                : narrow && fold == 1 ? bound_round(captured->dtype, in[i])
                                                      : in[i];
        own->abs_room[i] = fabs(use->value[i]);
    }
    stage->want[GLOBAL] = stage->want[LOCAL];
    stage->bound[LOCAL] = fold == 1 ? (double *)loose : s->prepared.folded_bound;
    stage->bound[GLOBAL] = stage->bound[LOCAL];
    *size = own->abs_room;
    return same;
}

/* NULL: no padding here, or none is recorded. */
static const struct matrix *padding_at(const struct matrix *padding, const struct judge_scratch *s)
{
    return padding && padding[s->at.kv].data ? &padding[s->at.kv] : NULL;
}

/* A padding key has no weight, unless a score other than -inf stands in its place: that is what the conventions say, or
   the fault of S, which locally P follows from. */
static bool weight_is_right(const struct oracle_case *c, const struct judge_scratch *s, const struct matrix *p, int row,
                            int col, int side)
{
    const size_t at = (size_t)(row * p->row_stride + col);
    const struct operand frame = local_p_frame(c, &s->at);
    const double got = dtype_load(p->dtype, p->data, at), m = frame.value[row] * values_natural_m(c);
    const double m_loose = frame.loose[row] * fabs(values_natural_m(c));
    double score = -INFINITY;
    if (got == 0 || !values_element_written(p, at))
        return true;
    if (s->at.pad_cols && side == LOCAL)
        score = s->at.pad[(size_t)row * (size_t)s->at.pad_cols + (size_t)col];
    else if (values_unseen_padding(c, side == LOCAL && s->stage[asc_s].recorded, s->at.cols))
        score = (double)c->conventions.s_masked_value;
    /* From what is no number follows nothing. */
    if (isnan(m) || m == INFINITY || isnan(score))
        return true;
    if (score == -INFINITY)
        return false;
    const double factor = bound_p_factor(c), x = score * values_natural_s(c) - m;
    const double want = factor * exp(x), folded = values_scaled_first(c, m) + bound_offset(c);
    const double loose = m_loose + bound_exp_declared(c, x, folded) + bound_convert(score * values_natural_s(c));
    const double bound = bound_exp_moved(want, factor, x, loose) + fmax(1, factor) * BOUND_TINY;
    return !isfinite(want) || element_within(p->dtype, got, want, bound);
}

static void count(struct verdict *v, double got, int row, int col)
{
    v->count[isnan(got) ? CLASS_NAN : isinf(got) ? CLASS_INF : CLASS_EXTRA]++;
    v->judged = true;
    if (v->worst_ratio == INFINITY)
        return;
    v->worst_ratio = INFINITY;
    v->worst_row = (int16_t)row;
    v->worst_col = (int16_t)col;
}

/* A written NaN or infinity in column d of V's padding. */
static bool is_unreal(const struct matrix *v, int row, int d)
{
    const size_t at = (size_t)(row * v->row_stride + d);
    return !isfinite(dtype_load(v->dtype, v->data, at)) && values_element_written(v, at);
}

static bool column_is_unreal(const struct matrix *v, int d)
{
    for (int row = 0; row < v->rows; row++)
        if (is_unreal(v, row, d))
            return true;
    return false;
}

/* A weight of zero does not help against a NaN: 0 NaN = NaN. A kernel that leaves V's padding out of the product has
   finite numbers in U, and nothing to be blamed for. */
static void excuse_u(struct judge_scratch *s, const struct matrix *v, int d)
{
    const struct stage *u = &s->stage[asc_u];
    if (!column_is_unreal(v, d))
        return;
    for (int r = 0; r < u->rows; r++) {
        const size_t i = (size_t)r * (size_t)u->cols + (size_t)d;
        if (isfinite(u->got[i]) || !isfinite(u->want[LOCAL][i]))
            continue;
        u->want[LOCAL][i] = NAN;
        s->unreal_v[d] = 1;
    }
}

static bool is_zero(const struct matrix *m)
{
    for (int row = 0; row < m->rows; row++)
        for (int col = 0; col < m->cols; col++)
            if (dtype_load(m->dtype, m->data, (size_t)(row * m->row_stride + col)) != 0)
                return false;
    return true;
}

/* A weight that follows from a score of the padding, whose fault it is, takes part in U with what V has there. */
void padding_excuse(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct matrix *p = padding_at(c->p_padding, s), *v = padding_at(c->v_padding, s);
    const struct stage *l = &s->stage[asc_l], *u = &s->stage[asc_u];
    memset(s->unreal_v, 0, (size_t)c->head_dim_v * sizeof *s->unreal_v);
    const bool zeros = !v || is_zero(v);
    for (int r = 0; p && r < p->rows; r++) {
        bool right = true, none = true;
        for (int col = 0; col < p->cols; col++) {
            right = right && weight_is_right(c, s, p, r, col, LOCAL);
            none = none && dtype_load(p->dtype, p->data, (size_t)(r * p->row_stride + col)) == 0;
        }
        if (right && (none || zeros))
            continue;
        if (!right)
            l->want[LOCAL][r] = NAN;
        for (int d = 0; d < u->cols; d++)
            u->want[LOCAL][(size_t)r * (size_t)u->cols + (size_t)d] = NAN;
    }
    for (int d = 0; v && u->recorded && d < u->cols; d++)
        excuse_u(s, v, d);
}

void padding_judge_p(const struct oracle_case *c, const struct judge_scratch *s, int side, struct verdict *v)
{
    const struct matrix *p = padding_at(c->p_padding, s);
    for (int row = 0; p && row < p->rows; row++)
        for (int col = 0; col < p->cols; col++)
            if (!weight_is_right(c, s, p, row, col, side))
                count(v, dtype_load(p->dtype, p->data, (size_t)(row * p->row_stride + col)), row, s->at.cols + col);
}

void padding_judge_v(const struct oracle_case *c, const struct judge_scratch *s, struct verdict *v)
{
    const struct matrix *m = padding_at(c->v_padding, s);
    for (int row = 0; m && row < m->rows; row++)
        for (int d = 0; d < m->cols; d++)
            if (s->unreal_v[d] && is_unreal(m, row, d))
                count(v, dtype_load(m->dtype, m->data, (size_t)(row * m->row_stride + d)), s->at.cols + row, d);
}
