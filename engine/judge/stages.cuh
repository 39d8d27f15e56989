/* Captured stages on a GPU: oracle/local.c and reference.c side by side, tile by tile in the order in which the kernel
   came to them, 16 rows to a block. Every number has the bits that the CPU gives it, but for the logarithms of LSE and
   where reference.c takes sums of the captured P for those of the weights. What is not plainly right is `bad` here,
   whatever the CPU then makes of it. */
#ifndef JUDGE_STAGES_CUH
#define JUDGE_STAGES_CUH

#include "engine/judge/stage_ends.cuh"

/* What the threads that judge S read besides. */
struct stage_scoring {
    const struct judge_range *ranges;
    const unsigned char *mask;
    double unit_k, tiny;
};

/* S of one element, from its sums: its bound, its bits; and what was captured goes where the row's threads find it.
   Called, as all that is done once for an element: inlined it would take minutes to compile. */
static __device__ __noinline__ void stage_score(const struct judge_stage_arrays &work, const struct stage_view &v,
                                                const struct judge_tile &tile, const struct stage_room &room,
                                                const struct stage_scoring &x, int r, int col, double sum, float size,
                                                bool equal, struct judge_part *local, struct judge_part *global)
{
    const struct judge_numbers &n = *v.n;
    const int D = n.head_dim, key = v.kv * n.bc + col, elements = v.tile_rows * v.cols;
    const int place = (v.row + r) * v.cols + col;
    const double grown = n.score_grown * magnitude_grown(x.unit_k * room.of.row[r * OF_NUMBERS + OF_Q], D);
    const bool sees = stage_sees(x.ranges, x.mask, work.base.mask_stride, r, key);
    const bool later = v.c->mask_later != 0; /* S is what it was before that */
    const float captured = stage_at(v, JUDGE_S, v.kv, v.row + r)[col],
                got = later ? captured : stage_masked(captured, sees, -INFINITY);
    double score = n.factor * sum, loose = ((double)size + magnitude_lost(D)) * grown;
    judge_score(n, work.base, tile, v.row + r, key, x.tiny, 0, &score, &loose);
    if (!sees && !later)
        score = -(double)INFINITY, loose = 0;
    const bool product = fabs(score) <= DBL_MAX, has_bits = product && v.c->n_ways[0] > 0;
    local->bad |= has_bits && !equal;
    stage_take(local, got, has_bits ? (double)got : score, has_bits ? 0 : loose, place, elements, v.samples);
    stage_take(global, got, score, loose, place, elements, v.samples + JUDGE_SAMPLES);
    judge_see(n, work.base, tile, v.row + r, key, &score, &loose);
    room.of.score[r * n.bc + col] = sees ? score : -(double)INFINITY;
    room.of.loose[r * n.bc + col] = sees ? loose : 0;
    room.s[r * n.bc + col] = sees || !later ? got : -INFINITY;
}

/* Scores of the tile: every thread one column of EACH rows at a time. */
template <int EACH>
static __device__ void stage_scores(const struct judge_stage_arrays &work, const struct stage_view &v,
                                    const struct judge_tile &tile, const struct stage_room &room,
                                    const struct stage_scoring &x, struct judge_part *local, struct judge_part *global)
{
    enum { WIDE = ROWS * EACH, GROUPS = THREADS / WIDE };
    const int D = v.n->head_dim, first = threadIdx.x / WIDE;
    const double least = v.n->score_least, scale = 1 / x.unit_k;
    for (int col = threadIdx.x % WIDE; col < v.cols; col += WIDE) {
        double sums[EACH];
        float sizes[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++)
            sums[i] = 0, sizes[i] = 0;
#pragma unroll 2
        for (int d = 0; d < D; d++) {
            const double k = (double)room.of.keys[col * (D + 1) + d];
            const float size = magnitude_narrow(judge_size(k, least), scale);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int at = (first + i * GROUPS) * D + d;
                sums[i] = fma((double)room.q[at], k, sums[i]);
                sizes[i] = fmaf(room.size_q[at], size, sizes[i]);
            }
        }
        /* The bits: what was captured is what one of the ways gives. */
        const struct core_rows rows = {room.q + first * D, room.q_exponent + first * D, GROUPS * D};
        unsigned equal = 0;
        float bits[EACH];
        bool open = false;
        for (int way = 0; way < v.c->n_ways[0]; way++) {
            const struct judge_way &of = v.c->way[0][way];
#pragma unroll
            for (int i = 0; of.fresh && i < EACH; i++)
                bits[i] = 0;
            if (of.fresh)
                core_sums<EACH>(of, v.c->least_exponent, rows, room.of.keys + col * (D + 1), 1, D, bits, &open);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const float value = bits[i] * of.factor[0] * of.factor[1];
                open |= !(fabsf(value) <= FLT_MAX);
                if (first + i * GROUPS < v.rows && value == stage_at(v, JUDGE_S, v.kv, v.row + first + i * GROUPS)[col])
                    equal |= 1u << i;
            }
        }
        local->bad |= open;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (first + i * GROUPS < v.rows)
                stage_score(work, v, tile, room, x, first + i * GROUPS, col, sums[i], sizes[i], equal >> i & 1, local,
                            global);
    }
}

static __device__ void stage_scores_of(const struct judge_stage_arrays &work, const struct stage_view &v,
                                       const struct judge_tile &tile, const struct stage_room &room,
                                       const struct stage_scoring &x, struct judge_part *local,
                                       struct judge_part *global)
{
    if (v.n->bc <= 16)
        return stage_scores<1>(work, v, tile, room, x, local, global);
    if (v.n->bc <= 32)
        return stage_scores<2>(work, v, tile, room, x, local, global);
    if (v.n->bc <= 64)
        return stage_scores<4>(work, v, tile, room, x, local, global);
    stage_scores<8>(work, v, tile, room, x, local, global);
}

/* local_alpha_declared(). */
static __device__ bool stage_alpha_declared(const struct judge_numbers &n, const struct judge_captured &c, int seen,
                                            double m_prev, double *alpha)
{
    *alpha = 1;
    if ((c.alpha_one_at_start && m_prev == n.m_begin) || ((c.alpha_one_first || c.alpha_none_first) && seen == 0))
        return true;
    *alpha = 0;
    return m_prev == -(double)INFINITY;
}

/* local_m() and local_alpha(). before_loose: what m is uncertain by before the first key, where a sink begins it. */
static __device__ void stage_m_local(const struct judge_numbers &n, const struct judge_captured &c, double top,
                                     double loose, double before, double before_loose, double *want, double *bound)
{
    if (!c.direct) {
        top *= c.s_natural / c.m_natural;
        loose *= fabs(c.s_natural / c.m_natural);
        if (fabs(top) <= DBL_MAX)
            loose += bound_convert(top) + n.folded_lse * fabs(top);
    }
    *want = before > top ? before : top;
    *bound = fmax(before_loose, loose);
    if (!(before - before_loose <= top + loose))
        *bound = before_loose;
    else if (!(top - loose <= before + before_loose))
        *bound = loose;
    if (*want == -(double)INFINITY)
        *bound = 0;
}

static __device__ void stage_alpha_local(const struct judge_numbers &n, const struct judge_captured &c, int seen,
                                         double m_prev, double prev_loose, double m, double *want, double *bound)
{
    *bound = 0;
    if (stage_alpha_declared(n, c, seen, m_prev, want))
        return;
    const double x = (m_prev - m) * c.m_natural, loose = prev_loose * fabs(c.m_natural);
    *want = fabs(x) <= DBL_MAX ? exp_lane(x) : (double)NAN;
    *bound = bound_exp_moved(
                 *want, 1, x,
                 loose + exponential_error(&n.exponential, x, exponential_folds(&n.exponential, m * c.m_natural))) +
             BOUND_TINY;
}

/* reference_alpha() of a running maximum. */
static __device__ void stage_alpha_global(const struct judge_numbers &n, const struct judge_captured &c, int seen,
                                          double prev, double max, double loose, double *want, double *bound)
{
    const double from = fmax(prev, n.start), to = fmax(max, n.start);
    *bound = 0;
    if (stage_alpha_declared(n, c, seen, from == n.start ? n.m_begin : from / c.m_natural, want))
        return;
    const double x = from - to, folded = exponential_folds(&n.exponential, to);
    *want = exp_lane(x);
    *bound = fmin(bound_exp_moved(*want, 1, x, loose + exponential_error(&n.exponential, x, folded)),
                  exponential_most(&n.exponential, folded)) +
             BOUND_TINY;
}

static __device__ double stage_sum(const float *x, int n)
{
    double sum[4] = {0, 0, 0, 0}, rest = 0;
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += (double)x[i + j];
    for (; i < n; i++)
        rest += (double)x[i];
    double all = 0;
    for (int j = 0; j < 4; j++)
        all += sum[j];
    return all + rest;
}

/* The squares of deal_weights(). */
static __device__ double stage_squares(const double *weight, int cols, double per_unit, double decay, double squares)
{
    if (decay != 1)
        squares *= decay * decay;
    for (int i = 0; i < cols; i++)
        squares += judge_deals(weight[i], per_unit) ? weight[i] * weight[i] : 0;
    return squares;
}

/* m, alpha, P and l of a row, by the threads that share it; the weights that U of the reference takes. */
template <bool LONG>
static __device__ __noinline__ void stage_weights(const struct judge_arrays &work, const struct judge_tile &tile,
                                                  const struct stage_view &v, const struct stage_room &room,
                                                  const struct judge_range *ranges, const unsigned char *mask,
                                                  int64_t mask_stride, struct stage_state *s, struct judge_part *parts)
{
    const struct judge_numbers &n = *v.n;
    const struct judge_captured &c = *v.c;
    const struct exponential *e = &n.exponential;
    const int row = threadIdx.x / SHARE, lane = threadIdx.x % SHARE, W = n.bc, place = v.row + row;
    const bool there = row < v.rows;
    double *score = room.of.score + row * W, *loose = room.of.loose + row * W, *weight = room.of.weight + row * W,
           *error = room.of.error + row * W, *numbers = room.of.row + row * OF_NUMBERS,
           *fixed = room.of.fixed + row * W, *variance = room.of.variance + row * W, *more = room.more + row * W,
           *bins = room.of.bins + row * LIKELY_BINS;
    float *got_s = room.s + row * W, *p = room.p + row * W;
    double *samples = v.samples;
    double top = -INFINITY, top_bound = 0, got_top = -INFINITY, got_loose = 0, visible = 0;
    for (int col = lane; col < v.cols && there; col += SHARE) {
        top = fmax(top, score[col]);
        top_bound = fmax(top_bound, loose[col]);
        double seen = (double)got_s[col], off = 0;
        judge_see(n, work, tile, place, v.kv * W + col, &seen, &off);
        got_top = fmax(got_top, seen);
        got_loose = fmax(got_loose, off);
        visible += score[col] != -(double)INFINITY;
    }
    for (int flip = SHARE / 2; flip > 0; flip /= 2)
        visible += __shfl_xor_sync(0xffffffffu, visible, flip);
    top = judge_row_most<SHARE>(top);
    top_bound = judge_row_most<SHARE>(top_bound);
    got_top = judge_row_most<SHARE>(got_top);
    got_loose = judge_row_most<SHARE>(got_loose);
    const double m = there ? (double)*stage_at(v, JUDGE_M, v.kv, place) : 0;
    const bool denied = c.alpha_none_first && v.seen == 0;
    const float got_alpha = there ? *stage_at(v, JUDGE_ALPHA, v.kv, place) : 0;
    const double alpha = denied ? 1 : (double)got_alpha;
    /* The reference's maximum and frame: take_maximum(), take_frame(). */
    const double max_prev = s->max, max_bound_prev = s->max_bound, frame_prev = s->frame;
    s->max = fmax(s->max, top * n.natural);
    s->max_bound = fmax(s->max_bound, top_bound * n.natural);
    const double most = fmax(s->max, n.start), captured = m * c.m_natural;
    const bool serves =
        fabs(captured - most) <= FRAME_REACH || (s->max == -(double)INFINITY && fabs(captured) <= DBL_MAX);
    s->frame = serves ? captured : most;
    const double shift = s->max == -(double)INFINITY ? 1 : exp_lane(fmax(s->max - s->frame, -FRAME_ABOVE));
    double decay, decay_error;
    step_decay(e, max_prev, s->max, frame_prev, s->frame, &decay, &decay_error);
    if (there && lane == 0) {
        double want, bound;
        const double before_loose = v.seen == 0 ? n.m_begin_loose : 0;
        stage_m_local(n, c, got_top, got_loose, s->m, before_loose, &want, &bound);
        stage_take(&parts[JUDGE_M * 2], m, want, bound, place, v.tile_rows, samples + JUDGE_M * 2 * JUDGE_SAMPLES);
        want = s->max == -(double)INFINITY ? s->max : s->max / c.m_natural;
        bound = s->max == -(double)INFINITY ? 0 : s->max_bound / fabs(c.m_natural) + BOUND_SLACK * 0x1p-50 * fabs(want);
        if (n.convert && s->max != -(double)INFINITY)
            bound += bound_convert(want) + n.folded_lse * fabs(want);
        stage_take(&parts[JUDGE_M * 2 + 1], m, fmax(want, n.m_begin), bound, place, v.tile_rows,
                   samples + (JUDGE_M * 2 + 1) * JUDGE_SAMPLES);
        if (denied) {
            parts[JUDGE_ALPHA * 2].bad |= format_f32_bits(got_alpha) != 0x7FF57FF5u;
        } else {
            stage_alpha_local(n, c, v.seen, s->m, before_loose, m, &want, &bound);
            stage_take(&parts[JUDGE_ALPHA * 2], alpha, want, bound, place, v.tile_rows,
                       samples + JUDGE_ALPHA * 2 * JUDGE_SAMPLES);
            stage_alpha_global(n, c, v.seen, max_prev, s->max, max_bound_prev + s->max_bound, &want, &bound);
            stage_take(&parts[JUDGE_ALPHA * 2 + 1], alpha, want, bound, place, v.tile_rows,
                       samples + (JUDGE_ALPHA * 2 + 1) * JUDGE_SAMPLES);
        }
    }
    /* P: reference_p_l(), and weights() of local.c. */
    const double p_unit = 1 / (shift * n.p_factor), folded = exponential_folds(e, s->frame) + e->offset;
    struct weight_terms terms = {}, own = {};
    terms.natural = n.natural;
    terms.top = s->max;
    terms.frame = s->frame;
    terms.folded = folded;
    terms.factor = 1;
    terms.limit = exponential_most(e, folded) / shift + 1;
    terms.tiny = fmax(1.0, 1 / n.p_factor) * BOUND_TINY / shift;
    terms.convert = n.convert;
    own.natural = c.s_natural;
    own.top = own.frame = captured;
    own.folded = exponential_folds(e, captured) + e->offset;
    own.factor = n.p_factor;
    own.limit = INFINITY;
    own.tiny = fmax(1.0, n.p_factor) * BOUND_TINY;
    own.convert = !c.direct;
    struct likely_terms likely;
    likely.natural = fabs(n.natural);
    likely.random = n.random;
    likely.unit = n.p_unit;
    likely.half_tiny = n.p_half_tiny * p_unit;
    likely.l_unit = n.l_unit;
    likely.l_half_tiny = n.l_half_tiny * p_unit;
    const double turned = n.p_factor * shift;
    const float *got_p = there ? stage_at(v, JUDGE_P, v.kv, place) : NULL;
    const int elements = v.tile_rows * v.cols;
    for (int col = lane; col < v.cols && there; col += SHARE) {
        double off;
        const bool sees = stage_sees(ranges, mask, mask_stride, row, v.kv * W + col);
        const double got = (double)stage_masked(got_p[col], sees, 0), x = score[col];
        double y = (double)got_s[col], y_loose = 0;
        judge_see(n, work, tile, place, v.kv * W + col, &y, &y_loose);
        const double w = weight_exp(e, &terms, x, loose[col], &off), err = weight_error(&terms, x, w, off);
        weight[col] = w;
        error[col] = err;
        stage_take(&parts[JUDGE_P * 2 + 1], got, w * turned, err * turned, place * v.cols + col, elements,
                   samples + (JUDGE_P * 2 + 1) * JUDGE_SAMPLES);
        const double mine = weight_exp(e, &own, y, y_loose, &off);
        stage_take(&parts[JUDGE_P * 2], got, mine, weight_error(&own, y, mine, off), place * v.cols + col, elements,
                   samples + JUDGE_P * 2 * JUDGE_SAMPLES);
        parts[JUDGE_P * 2].bad |=
            !(w <= DBL_MAX) || !(err <= DBL_MAX) || !(got >= 0) || (c.p_type == DTYPE_F16 && got > 65504);
        if (LONG && n.likely) {
            const struct likely_weight one = likely_weight(&likely, w, err, loose[col]);
            fixed[col] = one.fixed;
            variance[col] = one.variance;
            score[col] = one.less;
            loose[col] = one.squares;
            more[col] = one.l_more;
        }
        got_s[col] = (float)got; /* which is as l takes it */
        p[col] = c.p_type == DTYPE_F32 ? (float)got : (float)judge_round(c.p_type, got);
        room.p_exponent[row * W + col] = (int16_t)core_exponent(p[col], c.least_exponent);
    }
    for (int col = lane; col < v.cols && !there; col += SHARE) {
        p[col] = 0;
        room.p_exponent[row * W + col] = CORE_ZERO;
    }
    const double most_decay = decay + decay_error, per_unit = p_unit > 0 ? 1 / p_unit : 0;
    __syncwarp();
    if (LONG && n.likely)
        judge_deal_weights<SHARE>(n, there, weight, v.cols, per_unit, most_decay, bins);
    double mine = 0;
    if (lane < 2)
        mine = judge_sum(lane == 0 ? weight : error, v.cols);
    else if (lane == 2)
        mine = stage_sum(c.l_rounded ? p : got_s, v.cols);
    else if (lane < 6 && LONG && n.likely && there)
        for (int i = 0; i < v.cols; i++)
            mine += (lane == 3 ? score : lane == 4 ? loose : more)[i];
    else if (lane == 6 && LONG && n.likely && there)
        mine = stage_squares(weight, v.cols, per_unit, most_decay, s->squares);
    const int base = threadIdx.x % 32 / SHARE * SHARE;
    const double sum_w = __shfl_sync(0xffffffffu, mine, base), sum_e = __shfl_sync(0xffffffffu, mine, base + 1),
                 sum_p = __shfl_sync(0xffffffffu, mine, base + 2), less = __shfl_sync(0xffffffffu, mine, base + 3),
                 squares = __shfl_sync(0xffffffffu, mine, base + 4), l_more = __shfl_sync(0xffffffffu, mine, base + 5);
    double sum = decay * s->sum, moved = decay_error * s->sum;
    sum += sum_w;
    moved += sum_e;
    double err =
        (decay + decay_error) * s->sum_error + moved + n.l_unit * (sum_w + sum_e) + n.l_half_tiny * p_unit * visible;
    if (LONG && n.likely && there) {
        const double reach = sum + err;
        s->likely_l = most_decay * s->likely_l + moved - less + l_more;
        s->l_variance =
            most_decay * most_decay * s->l_variance + squares + n.roundings * BOUND_U * BOUND_U * reach * reach;
    }
    s->squares = __shfl_sync(0xffffffffu, mine, base + 6);
    err += n.l_error * (sum + err);
    s->sum = sum;
    s->sum_error = err;
    double l = 0;
    for (int i = 0; i < c.l_cols && there; i++)
        l += (double)stage_at(v, JUDGE_L, v.kv, place)[i];
    if (there && lane == 0) {
        const double carried = alpha * s->l, want = carried + sum_p, size = fabs(carried) + sum_p;
        stage_take(&parts[JUDGE_L * 2], l, want, c.l_relative * size + c.l_tiny, place, v.tile_rows,
                   samples + JUDGE_L * 2 * JUDGE_SAMPLES);
        stage_take(&parts[JUDGE_L * 2 + 1], l, n.p_factor * sum * shift, n.p_factor * err * shift + c.l_tiny_global,
                   place, v.tile_rows, samples + (JUDGE_L * 2 + 1) * JUDGE_SAMPLES);
    }
    s->m = m;
    s->l = l;
    /* What P V takes of the weights, and what tensor cores lose of small ones. */
    const bool narrow = n.u_least > BOUND_TINY;
    const double least_weight = n.u_least * p_unit;
    double largest[5] = {0, 0, 0, 0, 0};
    for (int col = lane; col < v.cols && there; col += SHARE) {
        const double w = weight[col];
        double off = n.p_unit > 0 ? weight_rounded(w, error[col], n.p_unit, n.p_half_tiny * p_unit) : error[col];
        if (narrow && w > 0 && w < least_weight)
            off += n.u_error * least_weight;
        error[col] = off;
        largest[0] = fmax(largest[0], w);
        largest[1] = fmax(largest[1], off);
        largest[2] = fmax(largest[2], judge_size((double)p[col], c.p_least));
        if (LONG && n.likely) {
            largest[3] = fmax(largest[3], fabs(fixed[col]));
            largest[4] = fmax(largest[4], variance[col]);
        }
    }
    double unit[5];
    for (int i = 0; i < 5; i++)
        unit[i] = judge_unit(judge_row_most<SHARE>(largest[i]));
    __syncwarp();
    if (lane == 0) {
        numbers[OF_DECAY] = decay;
        numbers[OF_DECAY_ERROR] = decay_error;
        numbers[OF_LOST] = narrow ? n.u_error * (n.u_least * s->sum + v.cols * least_weight) : 0;
        for (int i = 0; i < 3; i++)
            numbers[OF_W + i] = unit[i];
        numbers[OF_ALPHA] = alpha;
        numbers[OF_SHIFT] = turned;
        numbers[OF_F] = unit[3];
        numbers[OF_V] = unit[4];
        numbers[OF_LIKELY_DECAY] = most_decay;
    }
    __syncthreads(); /* the narrowed ones lie where other rows' scores were */
    for (int col = lane; col < v.cols && there; col += SHARE) {
        room.w[row * W + col] = magnitude_narrow(weight[col], 1 / unit[0]);
        room.e[row * W + col] = magnitude_narrow(error[col], 1 / unit[1]);
        room.size_p[row * W + col] = magnitude_narrow(judge_size((double)p[col], c.p_least), 1 / unit[2]);
        if (LONG && n.likely) {
            room.f[row * W + col] = magnitude_narrow(fixed[col], 1 / unit[3]);
            room.v[row * W + col] = magnitude_narrow(variance[col], 1 / unit[4]);
        }
    }
    __syncthreads();
}

/* Units of V in sums of magnitudes: as it is, and where small numbers count as larger ones. */
struct stage_units {
    double v, least, vv;
};

/* Sums over the tile's keys for one element of U: weights and captured P times V; of magnitudes, and (f, v) of likely
   weights. */
struct stage_sums {
    double product, own;
    float w, e, sizes, f, v;
};

static __device__ void stage_likely(const struct stage_view &, const double *, const struct stage_units &,
                                    const struct stage_sums &, double, double, double, struct stage_element<false> *)
{
}

static __device__ void stage_likely(const struct stage_view &v, const double *numbers, const struct stage_units &units,
                                    const struct stage_sums &sums, double size, double moved, double reach,
                                    struct stage_element<true> *u)
{
    const double lost = magnitude_lost(v.cols);
    if (v.n->likely)
        likely_value(numbers[OF_LIKELY_DECAY], &v.n->share, sums.product, size, moved, reach,
                     ((double)sums.f + lost) * magnitude_grown(units.v * numbers[OF_F], v.cols),
                     ((double)sums.v + lost) * magnitude_grown(units.vv * numbers[OF_V], v.cols), &u->likely);
}

template <bool LONG>
static __device__ __noinline__ void
stage_value(const struct stage_view &v, const struct stage_room &room, int d, int r, int before,
            const struct stage_units &units, const struct stage_sums &sums, bool equal, struct stage_element<LONG> *u,
            struct judge_part *local, struct judge_part *global)
{
    const struct judge_numbers &n = *v.n;
    const struct judge_captured &c = *v.c;
    const int dim = n.head_dim_v, elements = v.tile_rows * dim, place = (v.row + r) * dim + d;
    const double *numbers = room.of.row + r * OF_NUMBERS;
    const double lost = magnitude_lost(v.cols);
    const struct sum_terms terms = {numbers[OF_DECAY], numbers[OF_DECAY_ERROR], n.u_error, numbers[OF_LOST]};
    double moved, reach;
    const double of_weights = ((double)sums.w + lost) * magnitude_grown(units.v * numbers[OF_W], v.cols);
    sum_element(&terms, sums.product, of_weights,
                ((double)sums.e + lost) * magnitude_grown(units.v * numbers[OF_E], v.cols), 0, &u->sum, &u->error,
                &moved, &reach);
    stage_likely(v, numbers, units, sums, of_weights, moved, reach, u);
    const float got = stage_at(v, JUDGE_U, v.kv, v.row + r)[d],
                last = before < 0 ? 0 : stage_at(v, JUDGE_U, before, v.row + r)[d];
    const double shift = numbers[OF_SHIFT], alpha = numbers[OF_ALPHA], carried = alpha * (double)last;
    stage_take(global, got, u->sum * shift, u->error * shift + c.u_tiny_global, place, elements,
               v.samples + (JUDGE_U * 2 + 1) * JUDGE_SAMPLES);
    const double size =
        fabs(carried) + ((double)sums.sizes + lost) * magnitude_grown(units.least * numbers[OF_P], v.cols);
    const double want = carried + sums.own;
    const bool has_bits = c.n_ways[1] > 0;
    local->bad |= !(fabs(want) <= DBL_MAX) || (has_bits && !equal);
    stage_take(local, got, has_bits ? (double)got : want, has_bits ? 0 : c.u_relative * size + c.u_tiny, place,
               elements, v.samples + JUDGE_U * 2 * JUDGE_SAMPLES);
}

/* U of one column and EACH rows, from `row` on in steps. before: the tile visited before; -1: none. */
template <int EACH, bool LONG>
static __device__ void stage_values(const struct stage_view &v, const struct stage_room &room, int d, int row, int step,
                                    int before, const struct stage_units &units, struct stage_element<LONG> *u,
                                    double *top, struct judge_part *local, struct judge_part *global)
{
    const int W = v.n->bc, dim = v.n->head_dim_v;
    const double scale = 1 / units.v, scale_least = 1 / units.least, p_least = v.c->p_least;
    struct stage_sums sums[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        sums[i].product = sums[i].own = 0;
        sums[i].w = sums[i].e = sums[i].sizes = sums[i].f = sums[i].v = 0;
    }
#pragma unroll 2 /* as far as registers go */
    for (int k = 0; k < v.cols; k++) {
        const double x = (double)room.of.keys[k * (dim + 1) + d];
        const float size = magnitude_narrow(x, scale), least = magnitude_narrow(judge_size(x, p_least), scale_least);
        const float square = LONG ? magnitude_narrow(x * x, 1 / units.vv) : 0;
        *top = fmax(*top, fabs(x));
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = (row + i * step) * W + k;
            sums[i].product = fma(room.of.weight[at], x, sums[i].product);
            sums[i].own = fma((double)room.p[at], x, sums[i].own);
            sums[i].w = fmaf(room.w[at], size, sums[i].w);
            sums[i].e = fmaf(room.e[at], size, sums[i].e);
            sums[i].sizes = fmaf(room.size_p[at], least, sums[i].sizes);
            if (LONG && v.n->likely) {
                sums[i].f = fmaf(room.f[at], size, sums[i].f);
                sums[i].v = fmaf(room.v[at], square, sums[i].v);
            }
        }
    }
    /* The bits: what was captured is what one of the ways gives. */
    const struct core_rows rows = {room.p + row * W, room.p_exponent + row * W, step * W};
    unsigned equal = 0;
    bool open = false;
    for (int way = 0; way < v.c->n_ways[1]; way++) {
        const struct judge_way &of = v.c->way[1][way];
        float bits[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int r = row + i * step;
            const float last = before < 0 || r >= v.rows ? 0 : stage_at(v, JUDGE_U, before, v.row + r)[d];
            bits[i] = of.join == JUDGE_CARRIES ? (float)room.of.row[r * OF_NUMBERS + OF_ALPHA] * last : 0;
        }
        core_sums<EACH>(of, v.c->least_exponent, rows, room.of.keys + d, dim + 1, v.cols, bits, &open);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int r = row + i * step;
            if (r >= v.rows)
                continue;
            const float alpha = (float)room.of.row[r * OF_NUMBERS + OF_ALPHA],
                        last = before < 0 ? 0 : stage_at(v, JUDGE_U, before, v.row + r)[d];
            const float value = of.join == JUDGE_ADDS  ? alpha * last + bits[i]
                                : of.join == JUDGE_FMA ? fmaf(alpha, last, bits[i])
                                                       : bits[i];
            open |= !(fabsf(value) <= FLT_MAX);
            if (value == stage_at(v, JUDGE_U, v.kv, v.row + r)[d])
                equal |= 1u << i;
        }
    }
    local->bad |= open;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const struct stage_sums mine = sums[i]; /* that alone is in memory */
        struct stage_element<LONG> element = u[i];
        if (row + i * step < v.rows)
            stage_value<LONG>(v, room, d, row + i * step, before, units, mine, equal >> i & 1, &element, local, global);
        u[i] = element;
    }
}

/* A block's rows through all visits. W columns of U to a pass of its threads, PASSES of them. */
template <int W, int PASSES, bool LONG>
__global__ void __launch_bounds__(THREADS, W <= 128 && !LONG ? 2 : 1)
    judge_stages(const struct judge_stage_arrays arrays)
{
    enum { GROUPS = THREADS / W, EACH = ROWS / GROUPS };
    extern __shared__ double judge_shared[];
    struct stage_block &all = *(struct stage_block *)judge_shared;
    const struct judge_block block = arrays.base.blocks[blockIdx.x];
    if (threadIdx.x == 0)
        stage_block_begin(arrays, block, judge_shared);
    __syncthreads();
    const struct judge_stage_arrays &work = all.work;
    const struct judge_tile &tile = all.tile;
    const struct judge_slot &slot = all.slot;
    const struct judge_numbers &n = all.n;
    const struct judge_captured &c = all.work.captured;
    const struct stage_room &room = all.room;
    struct stage_view &v = all.v;
    const struct judge_range *ranges = work.base.ranges + tile.row + block.row;
    const unsigned char *mask =
        work.base.skips ? work.base.tensors + tile.mask + block.row * work.base.mask_stride : NULL;
    const int D = n.head_dim, row = threadIdx.x / SHARE, lane = threadIdx.x % SHARE;
    const int column = threadIdx.x % W, group = threadIdx.x / W, share = block.row / ROWS;
    const int shares = (tile.rows + ROWS - 1) / ROWS;
    struct stage_state s = {};
    s.max = n.max_begin;
    s.max_bound = n.bound_begin;
    s.frame = n.start;
    s.sum = n.l_begin;
    s.sum_error = n.l_error_begin;
    s.m = n.m_begin;
    s.l = n.l_begin * n.p_factor;
    bool open = !stage_same(work, v, JUDGE_Q, 0, tile.q, 0, tile.rows, D, share, shares);
    double most = 0;
    for (int d = lane; d < D; d += SHARE) {
        const double x = row < v.rows ? judge_load(n.type[0], work.base.code, work.base.tensors + tile.q,
                                                   (block.row + row) * work.base.stride[0] + d)
                                      : 0;
        const double size = judge_size(x, n.score_least);
        room.q[row * D + d] = (float)x;
        open |= !(size <= DBL_MAX);
        most = fmax(most, size);
    }
    const double unit_q = judge_unit(judge_row_most<SHARE>(most));
    for (int d = lane; d < D; d += SHARE) {
        const float x = room.q[row * D + d];
        room.size_q[row * D + d] = magnitude_narrow(judge_size((double)x, n.score_least), 1 / unit_q);
        room.q_exponent[row * D + d] = (int16_t)core_exponent(x, c.least_exponent);
    }
    if (lane == 0)
        room.of.row[row * OF_NUMBERS + OF_Q] = unit_q;
    for (int i = threadIdx.x; LONG && n.likely && i < ROWS * LIKELY_BINS; i += THREADS)
        room.of.bins[i] = 0;
    struct stage_element<LONG> u[PASSES][EACH] = {};
    double top[PASSES] = {};
    int before = -1;
    for (int visit = 0; visit < slot.visits; visit++) {
        const int64_t verdict = slot.verdicts + (int64_t)visit * KINDS;
        struct judge_part parts[KINDS];
        for (int i = 0; i < KINDS; i++)
            stage_part_begin(&parts[i]);
        if (threadIdx.x == 0) {
            v.kv = work.orders[slot.order + visit];
            v.cols = tile.keys - v.kv * n.bc < n.bc ? tile.keys - v.kv * n.bc : n.bc;
            v.seen = visit;
            v.samples = work.samples + verdict * JUDGE_SAMPLES;
        }
        __syncthreads();
        open |= !stage_same(work, v, JUDGE_K, 1, tile.k, v.kv * n.bc, v.cols, D, share, shares);
        open |= !stage_same(work, v, JUDGE_V, 2, tile.v, v.kv * n.bc, v.cols, n.head_dim_v, share, shares);
        judge_load_tile<WARPS>(work.base, n.type[1], 1, tile.k, v.kv * n.bc, v.cols, D,
                               {room.of.keys, D + 1, v.cols, D, room.of.most});
        __syncthreads();
        const double most_k = judge_size(judge_block_largest<WARPS>(room.of.most), n.score_least);
        const struct stage_scoring scoring = {ranges, mask, judge_unit(most_k),
                                              n.score_tiny * fmax(1.0, fabs(n.factor))};
        stage_scores_of(work, v, tile, room, scoring, &parts[0], &parts[1]);
        __syncthreads();
        judge_load_tile<WARPS>(work.base, n.type[2], 2, tile.v, v.kv * n.bc, v.cols, n.head_dim_v,
                               {room.of.keys, n.head_dim_v + 1, v.cols, n.head_dim_v, room.of.most});
        __syncthreads();
        const double most_v = judge_block_largest<WARPS>(room.of.most);
        open |= !(most_k <= DBL_MAX) || !(most_v <= DBL_MAX);
        stage_weights<LONG>(work.base, tile, v, room, ranges, mask, work.base.mask_stride, &s, parts);
        const struct stage_units units = {judge_unit(most_v), judge_unit(judge_size(most_v, c.p_least)),
                                          judge_unit(most_v * most_v)};
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (pass * W + column < n.head_dim_v)
                stage_values<EACH, LONG>(v, room, pass * W + column, group, GROUPS, before, units, u[pass], &top[pass],
                                         &parts[JUDGE_U * 2], &parts[JUDGE_U * 2 + 1]);
        parts[0].bad |= open;
#pragma unroll 1
        for (int i = 0; i < KINDS; i++)
            stage_part_put(room, i, parts[i]);
        stage_parts_end(work, room, verdict, share, KINDS);
        before = work.orders[slot.order + visit];
    }
    const int64_t verdict = slot.verdicts + (int64_t)slot.visits * KINDS;
    double *samples = work.samples + verdict * JUDGE_SAMPLES;
    struct judge_part parts[JUDGE_ENDS * JUDGE_SIDES];
    for (int i = 0; i < JUDGE_ENDS * JUDGE_SIDES; i++)
        stage_part_begin(&parts[i]);
    parts[0].bad = open;
    if (row < v.rows && lane == 0) {
        double *numbers = room.of.row + row * OF_NUMBERS;
        const double together = LONG && n.likely ? likely_together(room.of.bins + row * LIKELY_BINS, s.squares) : 1;
        stage_sink(n, c, &s, numbers);
        if (n.has_lse)
            stage_end_row(n, c, s, numbers, together, ranges[row].keys,
                          judge_load(n.lse_type, NULL, work.base.tensors + tile.lse, block.row + row), block.row + row,
                          tile.rows, samples + JUDGE_LSE * 2 * JUDGE_SAMPLES, parts + JUDGE_LSE * 2);
        const double joined = n.lanes > 1 ? bound_gamma(n.lanes) * s.sum : 0;
        numbers[OF_SUM] = s.sum;
        numbers[OF_ERROR] = s.sum_error + joined;
        numbers[OF_L] = s.l;
        numbers[OF_TOGETHER] = together;
        numbers[OF_LIKELY] = LONG && n.likely
                                 ? fmin(numbers[OF_ERROR], likely_most(together, s.likely_l, s.l_variance) + joined)
                                 : numbers[OF_ERROR];
    }
    __syncthreads();
    double wants[LONG ? PASSES : 1][LONG ? EACH : 1] = {};
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int d = pass * W + column, r = group + i * GROUPS;
            if (d < n.head_dim_v && r < v.rows && n.sink_last)
                stage_keep(room.of.row[r * OF_NUMBERS + OF_KEPT], &u[pass][i]);
            if (d < n.head_dim_v && r < v.rows)
                wants[LONG ? pass : 0][LONG ? i : 0] =
                    stage_end_element<LONG>(work, v, tile, room, d, r, before, u[pass][i], top[pass], samples, parts);
        }
    if constexpr (LONG)
        if (n.noise)
            stage_noise<W>(work, v, tile, room, s, wants, u);
    __syncthreads();
    for (int i = 0; i < JUDGE_ENDS * JUDGE_SIDES; i++)
        stage_part_put(room, i, parts[i]);
    stage_parts_end(work, room, verdict, share, JUDGE_ENDS * JUDGE_SIDES);
}

#endif
