#include "engine/oracle/reference.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/local.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/product.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include <string.h>

/* loose: [n], or NULL. */
VECTOR_UNITS static void take_sizes(const struct input_terms *terms, const double *restrict x,
                                    const double *restrict loose, size_t n, double *restrict size)
{
    const struct input_terms t = *terms;
    for (size_t i = 0; i < n && loose; i++)
        size[i] = input_size(&t, x[i], loose[i]);
    for (size_t i = 0; i < n && !loose; i++)
        size[i] = input_size(&t, x[i], 0);
}

/* The type that an input is converted to before it is used; DTYPE_F32: none that is narrower. What codes become is f16
   where nothing else is known. */
static enum dtype used_type(const struct oracle_case *c, enum asc_channel ch)
{
    const int used = values_type(c, ch);
    if (c->rope.kind && ch != asc_v)
        return used < 0 ? c->turned_type : (enum dtype)used;
    switch (codes_use(c, ch)) {
    case CODES_DESCALED:
        return used < 0 ? DTYPE_F16 : (enum dtype)used;
    case CODES_RAW:
        return DTYPE_F32;
    default:
        return used < 0 || used == (int)codes_input(c, ch)->dtype ? DTYPE_F32 : (enum dtype)used;
    }
}

/* A factor that is folded into Q makes what is recorded of it, or where nothing is, a number of the input's type. */
bool reference_input(const struct oracle_case *c, enum asc_channel ch, struct input_terms *t)
{
    const int used = values_type(c, asc_q);
    t->fold = ch == asc_q ? fabs(values_fold(c)) : 1;
    if (t->fold == 1)
        return bound_narrow(used_type(c, ch), &t->unit, &t->half_tiny);
    bound_narrow(used >= 0                           ? (enum dtype)used
                 : codes_use(c, asc_q) != CODES_NONE ? DTYPE_F16
                 : c->rope.kind                      ? c->turned_type
                                                     : c->in_q.dtype,
                 &t->unit, &t->half_tiny);
    return true;
}

/* Loads rows first .. first + rows - 1 of an input. Where the kernel converts it to a narrower type before use, a
   correct one works on values up to half a step away: the sizes include that. */
static void load_input(const struct oracle_case *c, enum asc_channel ch, int first, int rows, struct original_input *to)
{
    const struct coded_rows part = {ch, codes_input(c, ch), codes_of(c, ch), first, rows};
    struct input_terms terms;
    to->value = to->value_room;
    to->top = NULL;
    const bool uncertain = codes_load(c, &part, to->value, to->loose);
    to->lossy = reference_input(c, ch, &terms) || uncertain;
    to->size = to->lossy ? to->size_room : to->value;
    if (to->lossy)
        take_sizes(&terms, to->value, uncertain ? to->loose : NULL, (size_t)rows * (size_t)oracle_dim(c, ch),
                   to->size_room);
}

void reference_load(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const int first = s->at.kv * c->bc;
    load_input(c, ch, first, s->at.cols, &s->input[ch]);
    if (ch == asc_v)
        s->at.input_v = s->input[ch].value;
    reference_scales(c, s, ch);
}

void reference_scales(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const int first = s->at.kv * c->bc;
    if (ch == asc_k)
        codes_by(c, ch, first, s->at.cols, s->input[ch].by);
    else
        s->at.times_v = codes_v_times(c, first);
}

void reference_inputs(const struct oracle_case *c, struct judge_scratch *s)
{
    load_input(c, asc_q, 0, c->in_q.rows, &s->input[asc_q]);
    codes_by(c, asc_q, 0, c->in_q.rows, s->input[asc_q].by);
    s->at.scales_s = c->conventions.qk_descale == ASC_QK_PRODUCT && codes_descale_roundings(c) > 0;
    memset(s->reference.out_top, 0, (size_t)c->head_dim_v * sizeof *s->reference.out_top);
}

/* A sink that m and l begin with is a key of its own: its score is exact, the m that the kernel makes of it may be
   rounded, and l = 1 stands on that. */
void reference_begin(const struct oracle_case *c, struct judge_scratch *s, int split)
{
    const size_t rows = (size_t)c->in_q.rows, values = rows * (size_t)c->head_dim_v;
    s->at.split = split;
    s->at.tiles_seen = 0;
    s->late_kv = -1;
    s->reference.exponential = weight_exponential(c);
    const double start = local_m_begin(c, s->at.split) * values_natural_m(c);
    const double loose = local_m_begin_loose(c, s->at.split) * fabs(values_natural_m(c));
    const int at_sink = local_begins_at_sink(c, s->at.split);
    for (size_t r = 0; r < rows; r++) {
        s->reference.max[r] = at_sink ? c->sink : -INFINITY;
        s->reference.frame[r] = start;
        s->reference.max_bound[r] = loose;
        s->reference.frame_loose[r] = 0;
        s->reference.sum[r] = local_l_begin(c, s->at.split);
        s->reference.sum_error[r] = s->reference.sum[r] * bound_expm1(loose);
    }
    memset(s->reference.out, 0, values * sizeof(double));
    memset(s->reference.out_error, 0, values * sizeof(double));
    memset(s->reference.turned, 0, rows * sizeof(double));
    s->reference.tiles = 0;
    likely_begin(c, s);
}

static void true_product(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *stage = &s->stage[asc_s];
    const int unit = c->conventions.s_unit;
    const struct score_product product = {.q = s->input[asc_q].value,
                                          .k = s->input[asc_k].value,
                                          .size_q = s->input[asc_q].size,
                                          .size_k = s->input[asc_k].size,
                                          .factor = values_factor(unit, c->scale),
                                          .relative = product_score(c),
                                          .want = stage->want[GLOBAL],
                                          .bound = stage->bound[GLOBAL]};
    local_score(c, &s->at, &s->room, &product);
    if (s->input[asc_q].lossy || s->input[asc_k].lossy)
        local_score_lossy(c, &s->at, &s->room, &product);
}

void reference_s(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *stage = &s->stage[asc_s];
    const size_t n = (size_t)stage->rows * (size_t)stage->cols;
    /* Where the captured operands are the inputs local_s has computed this. */
    const bool exact = s->exact_q && s->exact_k;
    if (exact && !s->lean) {
        memcpy(stage->want[GLOBAL], stage->want[LOCAL], n * sizeof(double));
        memcpy(stage->bound[GLOBAL], stage->bound[LOCAL], n * sizeof(double));
    } else if (!exact) {
        true_product(c, s);
    }
    s->reference.s = stage->want[exact ? LOCAL : GLOBAL];
    s->reference.s_bound = stage->bound[exact ? LOCAL : GLOBAL];
    s->reference.s_natural = values_natural_later(c) ? 1 : values_natural_s(c);
    if (values_natural_later(c) || values_mask_later(c)) {
        local_see_scores(
            c, &s->at,
            &(struct score_view){s->reference.s, s->reference.s_bound, s->reference.scores, s->reference.scores_bound});
        s->reference.s = s->reference.scores;
        s->reference.s_bound = s->reference.scores_bound;
    }
}

/* Whether m is no maximum of scores as they were captured: these change their unit first. */
static bool scores_convert(const struct oracle_case *c)
{
    return c->conventions.s_unit != c->conventions.m_unit || values_natural_later(c);
}

/* How many padding keys take part like any other, each with the score of a masked one. */
static int counted_padding(const struct oracle_case *c, const struct judge_scratch *s)
{
    return c->conventions.s_masked == ASC_MASKED_VALUE ? s->at.pad_cols : 0;
}

static double masked_score(const struct oracle_case *c)
{
    return (double)c->conventions.s_masked_value * values_natural_s(c);
}

/* x and off times a positive factor: rounding is monotonic, so that the largest product is that of the largest. */
VECTOR_UNITS static void raise_top(const double *x, const double *off, int n, double factor, double *top,
                                   double *top_bound)
{
    *top = fmax(*top, vector_max(x, n, -INFINITY) * factor);
    *top_bound = fmax(*top_bound, vector_max(off, n, 0) * factor);
}

/* The running maximum of the true scores, and of their bounds; want and bound of m. */
static void take_maximum(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *stage = &s->stage[asc_m];
    const int cols = s->at.cols, converts = scores_convert(c);
    const double back = values_natural_m(c), start = local_m_begin(c, s->at.split);
    for (int r = 0; r < stage->rows; r++) {
        const double *x = s->reference.s + (size_t)r * (size_t)cols;
        const double *off = s->reference.s_bound + (size_t)r * (size_t)cols;
        double top = s->reference.max[r];
        double top_bound = s->reference.max_bound[r];
        s->reference.max_prev[r] = top;
        s->reference.max_bound_prev[r] = top_bound;
        raise_top(x, off, cols, s->reference.s_natural, &top, &top_bound);
        if (counted_padding(c, s))
            top = fmax(top, masked_score(c));
        s->reference.max[r] = top;
        s->reference.max_bound[r] = top_bound;
        double want = top == -INFINITY ? top : top / back;
        double bound = top == -INFINITY ? 0 : top_bound / fabs(back) + BOUND_SLACK * 0x1p-50 * fabs(want);
        if (converts && top != -INFINITY)
            bound += bound_convert(want) + bound_folded_scales(c, want);
        want = fmax(want, start);
        stage->want[GLOBAL][r] = local_policy(c, want, stage->recorded ? &stage->got[r] : NULL, &bound);
        stage->bound[GLOBAL][r] = bound;
    }
}

/* The frame of each row: the captured m where it can serve. */
static void take_frame(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct stage *stage = &s->stage[asc_m];
    const double natural = values_natural_m(c), lag = (double)c->conventions.m_lag * M_LN2;
    for (int r = 0; r < stage->rows; r++) {
        const double start = local_m_begin(c, s->at.split) * natural, top = fmax(s->reference.max[r], start);
        const double captured = stage->recorded ? s->at.of[asc_m].value[r] * natural : NAN;
        s->reference.frame_prev[r] = s->reference.frame[r];
        const bool above = c->conventions.m_policy == ASC_M_FIXED && captured > top && isfinite(captured);
        if (fabs(captured - top) <= FRAME_REACH || above || (s->reference.max[r] == -INFINITY && isfinite(captured))) {
            s->reference.frame[r] = captured;
            s->reference.frame_loose[r] = fmin(bound_expm1(s->at.of[asc_m].loose[r] * fabs(natural)), FRAME_LOST);
        } else {
            /* Not recorded: a correct kernel's frame is its own maximum, within the bound of m. Absurd: the verdict on
               what stands on it need not be gentle. */
            s->reference.frame[r] = top;
            s->reference.frame_loose[r] = 0;
            if (!stage->recorded && c->conventions.m_policy == ASC_M_LAGGING)
                s->reference.frame_loose[r] = fmin(bound_expm1(s->reference.max_bound[r] + lag), FRAME_LOST);
            else if (!stage->recorded && c->conventions.m_policy == ASC_M_RUNNING)
                s->reference.frame_loose[r] = fmin(bound_expm1(s->reference.max_bound[r]), FRAME_LOST);
            else if (!stage->recorded)
                s->reference.frame_loose[r] = FRAME_LOST;
        }
        s->reference.shift[r] = s->reference.max[r] == -INFINITY
                                    ? 1
                                    : exp_lane(fmax(s->reference.max[r] - s->reference.frame[r], -FRAME_ABOVE));
    }
}

static void reference_alpha(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *stage = &s->stage[asc_alpha];
    const double natural = values_natural_m(c);
    const bool running = c->conventions.m_policy == ASC_M_RUNNING;
    const struct exponential *e = &s->reference.exponential;
    for (int r = 0; r < stage->rows; r++) {
        const double start = local_m_begin(c, s->at.split), prev = s->reference.max_prev[r];
        /* Where m may lag there is no true alpha but the one of this run's frames. */
        const double from = running ? fmax(prev, start * natural) : s->reference.frame_prev[r];
        const double to = running ? fmax(s->reference.max[r], start * natural) : s->reference.frame[r];
        const double loose =
            running ? s->reference.max_bound_prev[r] + s->reference.max_bound[r] : log1p(s->reference.frame_loose[r]);
        double want = 0;
        double bound = 0;
        if (!local_alpha_declared(c, &s->at, from == start * natural ? start : from / natural, &want)) {
            const double x = from - to;
            const double folded = values_scaled_first(c, to);
            want = exp_step(x);
            /* A factor of exp(m_prev - m) <= 1, however uncertain both are. */
            bound = fmin(bound_exp_moved(want, 1, x, loose + bound_exp_declared(c, x, folded)),
                         running ? exponential_most(e, folded) : INFINITY) +
                    BOUND_TINY;
        }
        stage->want[GLOBAL][r] = want;
        stage->bound[GLOBAL][r] = bound;
        step_decay(e, prev, s->reference.max[r], s->reference.frame_prev[r], s->reference.frame[r],
                   &s->reference.decay[r], &s->reference.decay_error[r]);
    }
}

/* A score is at most the maximum, so a kernel's exp(s - m) is at most 1, however uncertain s is; in a frame that may
   lag, 2^lag. This is what a weight may err by at most, relative to max; a fixed frame sets no such limit. */
static double weight_limit(const struct oracle_case *c, const struct exponential *e, double shift, double folded)
{
    switch (c->conventions.m_policy) {
    case ASC_M_RUNNING:
        return exponential_most(e, folded) / shift + 1;
    case ASC_M_LAGGING:
        return exponential_most(e, folded) * exp2((double)c->conventions.m_lag) / shift + 1;
    default:
        return FRAME_LOST;
    }
}

/* What P of a row stands on in this run where that is this tile's maximum: the one of the scores that were captured, if
   it can serve. */
struct tile_frame {
    double top;   /* natural; -inf: the row sees nothing of the tile */
    double loose; /* relative uncertainty of exp(-top) */
};

static struct tile_frame tile_frame(const struct oracle_case *c, const struct judge_scratch *s, int r)
{
    const int cols = s->at.cols, recorded = s->stage[asc_s].recorded;
    const double natural = values_natural_m(c), captured = recorded ? s->at.tile_top.value[r] * natural : NAN;
    double top = local_m_start(c) * natural;
    double top_bound = 0;
    raise_top(s->reference.s + (size_t)r * (size_t)cols, s->reference.s_bound + (size_t)r * (size_t)cols, cols,
              s->reference.s_natural, &top, &top_bound);
    if (counted_padding(c, s))
        top = fmax(top, masked_score(c));
    if (fabs(captured - top) <= FRAME_REACH)
        return (struct tile_frame){captured, fmin(bound_expm1(s->at.tile_top.loose[r] * fabs(natural)), FRAME_LOST)};
    return (struct tile_frame){top, recorded || top == -INFINITY ? 0 : fmin(bound_expm1(top_bound), FRAME_LOST)};
}

struct weight_sums {
    double weight, error;
    int seen; /* keys that are not masked */
};

/* P of one row, in this run's frame, from weights relative to the maximum; and what they add up to. */
VECTOR_UNITS static void expect_weights(const struct weight_row *row, const double *restrict weight,
                                        const double *restrict error, double shift, double loose, double *restrict want,
                                        double *restrict bound, struct weight_sums *sums)
{
    int seen = 0;
    for (int i = 0; i < row->n; i++) {
        want[i] = weight[i] * shift;
        bound[i] = (error[i] + loose * (weight[i] + error[i])) * shift;
        seen += row->score[i] != -INFINITY;
    }
    *sums = (struct weight_sums){vector_sum(weight, row->n), vector_sum(error, row->n), seen};
}

/* Weights of a row from the frame of its tile's maximum into that of max, taken in by a beta that errs by `beta`; and
   what they add up to. */
VECTOR_UNITS static void carry_weights(int n, double scale, double beta, double tiny, double *restrict weight,
                                       double *restrict error, struct weight_sums *sums)
{
    for (int i = 0; i < n; i++) {
        error[i] = scale * (error[i] + (weight[i] + error[i]) * beta) + (weight[i] > 0 ? tiny : 0);
        weight[i] *= scale;
    }
    sums->weight = vector_sum(weight, n);
    sums->error = vector_sum(error, n);
}

int reference_added_keys(const struct oracle_case *c)
{
    const int lanes = c->conventions.l_lanes > 1 ? c->conventions.l_lanes : 1;
    return (c->bc + lanes - 1) / lanes + (c->conventions.p_max == ASC_P_MAX_TILE);
}

/* Weights of the tile: w and its error relative to max, p in the frame; and the running sum. */
static void reference_p_l(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *p = &s->stage[asc_p], *l = &s->stage[asc_l];
    const int cols = s->at.cols, padding = counted_padding(c, s), converts = scores_convert(c);
    const int unseen = values_unseen_padding(c, s->stage[asc_s].recorded, s->at.cols);
    const bool is_tile = c->conventions.p_max == ASC_P_MAX_TILE;
    const double relative = bound_sum(reference_added_keys(c)), factor = reference_offset(c);
    const struct exponential *e = &s->reference.exponential;
    enum dtype t;
    double unit = 0;
    double half_tiny = 0;
    if (values_p_type(c, &t) && c->conventions.l_from == ASC_L_ROUNDED)
        bound_narrow(t, &unit, &half_tiny);
    for (int r = 0; r < p->rows; r++) {
        const size_t first = (size_t)r * (size_t)cols;
        const double top = s->reference.max[r], frame = s->reference.frame[r], loose = s->reference.frame_loose[r];
        const double shift = s->reference.shift[r];
        const double folded = exponential_folds(e, frame) + e->offset, tiny = fmax(1, 1 / factor) * BOUND_TINY / shift;
        const double limit = weight_limit(c, e, shift, folded);
        const struct tile_frame own = is_tile ? tile_frame(c, s, r) : (struct tile_frame){0};
        const double own_folded = exponential_folds(e, own.top) + e->offset;
        const bool takes_in = is_tile && own.top != -INFINITY && top != -INFINITY;
        const double beta = takes_in ? bound_expm1(bound_exp_declared(c, own.top - frame, folded) + BOUND_U) : 0;
        s->reference.p_unit[r] = is_tile ? (takes_in ? exp(own.top - top) : 0) / factor : 1 / (shift * factor);
        const double step = half_tiny * s->reference.p_unit[r];
        double sum = s->reference.decay[r] * s->reference.sum[r];
        const double decay = s->reference.decay[r] + s->reference.decay_error[r];
        double moved = s->reference.decay_error[r] * s->reference.sum[r];
        const struct weight_row row = {.score = s->reference.s + first,
                                       .loose = s->reference.s_bound + first,
                                       .n = cols,
                                       .terms = {.natural = s->reference.s_natural,
                                                 .top = is_tile ? own.top : top,
                                                 .frame = is_tile ? own.top : frame,
                                                 .folded = is_tile ? own_folded : folded,
                                                 .convert = converts,
                                                 .factor = 1,
                                                 .limit = is_tile ? exponential_most(e, own_folded) + 1 : limit,
                                                 .tiny = is_tile ? fmax(1, 1 / factor) * BOUND_TINY : tiny}};
        struct weight_sums sums = {0};
        weight_row(e, &row, s->reference.weight + first, s->reference.weight_error + first);
        expect_weights(&row, s->reference.weight + first, s->reference.weight_error + first,
                       is_tile ? factor : factor * shift, is_tile ? own.loose : loose, p->want[GLOBAL] + first,
                       p->bound[GLOBAL] + first, &sums);
        if (is_tile)
            carry_weights(cols, s->reference.p_unit[r] * factor, beta, 2 * tiny, s->reference.weight + first,
                          s->reference.weight_error + first, &sums);
        sum += sums.weight;
        moved += sums.error;
        moved += unseen ? unseen * fmin(exp(masked_score(c) - top), limit) : 0;
        if (padding) {
            sum += padding * exp(masked_score(c) - top);
            moved +=
                padding * exp(masked_score(c) - top) * (bound_exp_declared(c, masked_score(c) - frame, folded) + beta);
        }
        double error = decay * s->reference.sum_error[r] + moved + unit * (sums.weight + sums.error) + step * sums.seen;
        likely_weights(c, s, r,
                       &(struct likely_row){.decay = decay,
                                            .moved = moved,
                                            .reach = sum + error,
                                            .roundings = reference_added_keys(c) + 6,
                                            .unit = unit,
                                            .half_tiny = half_tiny});
        error += relative * (sum + error);
        s->reference.sum[r] = sum;
        s->reference.sum_error[r] = error;
        l->want[GLOBAL][r] = factor * sum * shift;
        l->bound[GLOBAL][r] = factor * (error + loose * (sum + error)) * shift + fmax(1, factor) * c->bc * BOUND_TINY;
    }
}

/* What goes on to P.V, and P where it is recorded as that. */
static void drop_weights(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *p = &s->stage[asc_p];
    if (!s->at.keep)
        return;
    dropout_apply(c, &s->at, s->reference.weight, s->reference.weight_error);
    if (c->conventions.p_dropout == ASC_P_DROPPED)
        dropout_apply(c, &s->at, p->want[GLOBAL], p->bound[GLOBAL]);
}

void reference_tile(const struct oracle_case *c, struct judge_scratch *s)
{
    take_maximum(c, s);
    take_frame(c, s);
    reference_alpha(c, s);
    reference_late_u(c, s);
    reference_p_l(c, s);
    drop_weights(c, s);
    reference_u(c, s);
    s->reference.tiles++;
}

void reference_turn(const struct oracle_case *c, struct judge_scratch *s)
{
    const double tiles = s->reference.tiles, u = tiles * reference_accumulate_error(c),
                 l = tiles * bound_sum(reference_added_keys(c));
    for (int r = 0; r < c->in_q.rows; r++) {
        const double alpha = s->reference.turned[r] + ALPHA_ARGUMENTS, more_u = u + alpha, more_l = l + alpha;
        const double sum = s->reference.sum[r];
        for (int d = 0; d < c->head_dim_v; d++) {
            const size_t i = (size_t)r * (size_t)c->head_dim_v + (size_t)d;
            s->reference.out_error[i] = error_turned(s->reference.out_error[i], more_u, fabs(s->reference.out[i]));
        }
        s->reference.sum_error[r] = error_turned(s->reference.sum_error[r], more_l, sum);
        likely_turn(c, s, r, &(struct likely_turned){tiles, alpha, reference_added_keys(c) + 6});
    }
}

/* A row without any key: nothing follows from the inputs but that both are what the registration says, or any number.
 */
static void reference_of_empty(const struct oracle_case *c, struct judge_scratch *s, int r)
{
    struct stage *o = &s->stage[asc_o], *lse = &s->stage[asc_lse];
    const bool computed = c->conventions.empty_row == ASC_EMPTY_COMPUTED;
    const struct matrix *m = scratch_captured(s, c, asc_o);
    for (int d = 0; d < o->cols; d++) {
        const size_t i = (size_t)r * (size_t)o->cols + (size_t)d;
        const double got = computed && m->data ? dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride + d)) : 0;
        o->want[GLOBAL][i] = isfinite(got) ? got : 0;
        o->bound[GLOBAL][i] = 0;
    }
    m = scratch_captured(s, c, asc_lse);
    const double got = computed && m->data ? dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride)) : 0;
    const double unit = c->conventions.lse_base2 ? M_LOG2E : 1;
    lse->bound[GLOBAL][r] = 0;
    lse->want[GLOBAL][r] = c->conventions.empty_lse_negative ? -INFINITY : INFINITY;
    if (computed) {
        lse->want[GLOBAL][r] = isfinite(got) ? got : 0;
    } else if (c->has_sink) {
        lse->want[GLOBAL][r] = local_lse_of_sink(c, r, &lse->bound[GLOBAL][r]) * unit;
        lse->bound[GLOBAL][r] *= unit;
    }
}

void reference_end(const struct oracle_case *c, struct judge_scratch *s)
{
    struct stage *o = &s->stage[asc_o], *lse = &s->stage[asc_lse];
    const double unit = c->conventions.lse_base2 ? M_LOG2E : 1, offset = bound_ln_factor(c);
    const int lanes = c->conventions.l_lanes;
    const double times = codes_o_times(c);
    memset(s->likely.decided, 0, sizeof s->likely.decided);
    for (int r = 0; r < o->rows; r++) {
        const int keys = schedule_keys(c, r);
        if (keys == 0) {
            reference_of_empty(c, s, r);
            continue;
        }
        const double sum = s->reference.sum[r], joined = lanes > 1 ? bound_gamma(lanes) * sum : 0,
                     error = s->reference.sum_error[r] + joined;
        const double likely = s->likely.on ? fmin(error, likely_of_l(s, r) + joined) : error;
        const bool divides = !merge_leaves_normalized(c);
        for (int d = 0; d < o->cols; d++) {
            const size_t i = (size_t)r * (size_t)o->cols + (size_t)d;
            const double want = s->reference.out[i] / sum;
            double moved = output_moved(want, sum, error, s->reference.out_error[i]);
            if (s->likely.on && sum > likely) {
                const double narrow =
                    output_moved(want, sum, likely, fmin(s->reference.out_error[i], likely_of_u(s, r, i)));
                s->likely.decided[asc_o] |= narrow < moved;
                moved = fmin(moved, narrow);
            }
            o->want[GLOBAL][i] = want * times;
            /* However uncertain the weights, o is a mean of V with weights rounded by less than a half each way. */
            o->bound[GLOBAL][i] = bound_descale(
                c, want, (divides ? bound_divide(want) : 0) + fmin(moved, fabs(want) + 2 * s->reference.out_top[d]),
                times);
        }
        const double ln_sum = log(sum), frame = s->reference.frame[r], want = s->reference.max[r] + ln_sum;
        const double own = bound_lse(fabs(frame) + fabs(offset), s->reference.max[r] - frame + ln_sum + offset, want) +
                           bound_folded_scales(c, frame);
        /* However uncertain the scores, lse lies between their maximum and ln(keys) above it, a sink being another key.
         */
        const double widest = s->reference.max_bound[r] + log(keys + (c->has_sink != 0));
        lse->want[GLOBAL][r] = want * unit;
        s->likely.decided[asc_lse] |= likely < error;
        lse->bound[GLOBAL][r] = (own + fmin(sum > likely ? -log1p(-likely / sum) : INFINITY, widest)) * unit;
        if (c->conventions.lse_base2)
            lse->bound[GLOBAL][r] += bound_convert(want * unit);
    }
}
