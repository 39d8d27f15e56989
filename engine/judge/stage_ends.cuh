/* O and LSE of a run whose stages were captured, and what its verdicts come to: oracle/local.c and reference.c of a
   row's end. */
#ifndef JUDGE_STAGE_ENDS_CUH
#define JUDGE_STAGE_ENDS_CUH

#include "engine/judge/stage_parts.cuh"

/* O or LSE: as judge_ratio() has them. */
static __device__ __noinline__ void stage_take_end(struct judge_part *x, int type, double got, double want,
                                                   double bound, int place, int n, double *samples)
{
    const double ratio = judge_ratio(type, got, want, bound);
    if (!(ratio >= 0 && ratio <= 1)) {
        x->bad = 1;
        return;
    }
    const bool quiet = fabs(got - want) <= bound;
    if (quiet ? fabs(got - want) > x->worst * bound && ratio > x->worst : ratio > x->worst) {
        x->worst = ratio;
        x->place = place;
    }
    x->sum += got - want;
    x->n++;
    const int sample = stage_sample(place, n);
    if (sample >= 0 && fabs(got / want) <= DBL_MAX)
        samples[sample] = got / want;
}

/* sink_reference() and sink_local() of a row: a sink that joins l behind the last tile. */
static __device__ __noinline__ void stage_sink(const struct judge_numbers &n, const struct judge_captured &c,
                                               struct stage_state *s, double *numbers)
{
    const double m = s->m * c.m_natural;
    numbers[OF_KEPT] = numbers[OF_OWN_KEPT] = 1;
    numbers[OF_L_LOOSE] = 0;
    if (n.sink_last && fabs(s->max) <= DBL_MAX) {
        const struct sunk sunk = sink_into(&n.exponential, n.sink, s->max, s->frame, 0);
        const double sum = sunk.kept * s->sum + sunk.weight;
        s->likely_l = sunk.kept * s->likely_l + sink_error(&sunk, s->sum, 0, sum);
        s->l_variance *= sunk.kept * sunk.kept;
        s->sum_error = sink_error(&sunk, s->sum, s->sum_error, sum);
        s->sum = sum;
        s->max = sunk.top;
        numbers[OF_KEPT] = sunk.kept;
    }
    if (n.sink_last && fabs(m) <= DBL_MAX) {
        const struct sunk sunk = sink_into(&n.exponential, n.sink, m, m, 0);
        const double l = sunk.kept * s->l + sunk.weight * n.p_factor;
        numbers[OF_L_LOOSE] =
            sunk.kept * (fabs(s->l) * sunk.kept_loose) + n.p_factor * sunk.weight_loose + 3 * BOUND_U * fabs(l);
        s->l = l;
        if (sunk.top != m)
            s->m = sunk.top / c.m_natural;
        numbers[OF_OWN_KEPT] = sunk.kept;
    }
}

/* local_lse() and the reference's. */
static __device__ __noinline__ void stage_end_row(const struct judge_numbers &n, const struct judge_captured &c,
                                                  const struct stage_state &s, const double *numbers, double together,
                                                  int keys, double got, int place, int rows, double *samples,
                                                  struct judge_part *parts)
{
    const double joined = n.lanes > 1 ? bound_gamma(n.lanes) * s.sum : 0, error = s.sum_error + joined;
    const double most = n.likely ? fmin(error, likely_most(together, s.likely_l, s.l_variance) + joined) : error;
    double ln_sum = log(s.sum), want = s.max + ln_sum;
    double own = bound_lse(fabs(s.frame) + fabs(n.ln_factor), s.max - s.frame + ln_sum + n.ln_factor, want) +
                 n.folded_lse * fabs(s.frame);
    const double widest = s.max_bound + log((double)(keys + (n.has_sink != 0)));
    double bound = (own + fmin(s.sum > most ? -log1p(-most / s.sum) : (double)INFINITY, widest)) * n.lse_unit;
    parts[1].likely |= most < error;
    if (n.lse_unit != 1)
        bound += bound_convert(want * n.lse_unit);
    stage_take_end(&parts[1], n.lse_type, got, want * n.lse_unit, bound, place, rows, samples + JUDGE_SAMPLES);
    const double m = s.m * c.m_natural,
                 off = numbers[OF_L_LOOSE] + (n.lanes > 1 ? bound_gamma(n.lanes) * fabs(s.l) : 0), part = off / s.l;
    ln_sum = log(s.l);
    want = m + ln_sum - n.ln_factor;
    own = bound_lse(fabs(m) + fabs(n.ln_factor), ln_sum, want) + n.folded_lse * fabs(m);
    own += part < 1 ? -log1p(-part) : (double)INFINITY;
    bound = own * n.lse_unit;
    if (n.lse_unit != 1)
        bound += bound_convert(want * n.lse_unit);
    stage_take_end(&parts[0], n.lse_type, got, s.l > 0 ? want * n.lse_unit : (double)NAN, bound, place, rows, samples);
}

static __device__ double stage_likely_u(const double *, double error, const struct stage_element<false> &)
{
    return error;
}

static __device__ double stage_likely_u(const double *numbers, double error, const struct stage_element<true> &u)
{
    return fmin(error, likely_most(numbers[OF_TOGETHER], u.likely.u, u.likely.variance));
}

/* What a sink leaves of an element of U. */
static __device__ void stage_keep(double kept, struct stage_element<false> *u)
{
    u->sum *= kept;
    u->error *= kept;
}

static __device__ void stage_keep(double kept, struct stage_element<true> *u)
{
    u->sum *= kept;
    u->error *= kept;
    u->likely.u *= kept;
    u->likely.variance *= kept * kept;
    u->likely.cut *= kept;
}

/* O of one element: local_o() and the reference's, which it returns. last: the tile visited last. */
template <bool LONG>
static __device__ __noinline__ double
stage_end_element(const struct judge_stage_arrays &work, const struct stage_view &v, const struct judge_tile &tile,
                  const struct stage_room &room, int d, int r, int last, const struct stage_element<LONG> &u,
                  double top, double *samples, struct judge_part *parts)
{
    const struct judge_numbers &n = *v.n;
    const double *numbers = room.of.row + r * OF_NUMBERS, sum = numbers[OF_SUM], l = numbers[OF_L];
    const int place = (v.row + r) * n.head_dim_v + d, elements = v.tile_rows * n.head_dim_v;
    const double got = judge_load(n.type[3], NULL, v.tensors + tile.o, (v.row + r) * work.base.stride[3] + d);
    double want = u.sum / sum;
    double moved = output_moved(want, sum, numbers[OF_ERROR], u.error);
    if (LONG && n.likely && sum > numbers[OF_LIKELY]) {
        const double narrow = output_moved(want, sum, numbers[OF_LIKELY], stage_likely_u(numbers, u.error, u));
        parts[1].likely |= narrow < moved;
        moved = fmin(moved, narrow);
    }
    const double reference = want;
    double bound = bound_divide(want) + fmin(moved, fabs(want) + 2 * top);
    stage_take_end(&parts[1], n.type[3], got, want, bound, place, elements, samples + JUDGE_SAMPLES);
    const double off = numbers[OF_L_LOOSE] + (n.lanes > 1 ? bound_gamma(n.lanes) * fabs(l) : 0), least = fabs(l) - off;
    want = (double)stage_at(v, JUDGE_U, last, v.row + r)[d] * numbers[OF_OWN_KEPT] / l;
    bound = bound_divide(want) + (least > 0 ? fabs(want) * off / least : (double)INFINITY);
    stage_take_end(&parts[0], n.type[3], got, want, bound, place, elements, samples);
    return reference;
}

/* What a row's O errs by, and what is expected of that: noise_of_row(). Each row is added up by one thread in the CPU's
   order; what the tiles needed is room for its elements. Called by all threads of a block, behind whatever reads that.
 */
template <int W, int PASSES, int EACH>
static __device__ void stage_noise(const struct judge_stage_arrays &work, const struct stage_view &v,
                                   const struct judge_tile &tile, const struct stage_room &room,
                                   const struct stage_state &s, const double (&wants)[PASSES][EACH],
                                   const struct stage_element<true> (&u)[PASSES][EACH])
{
    enum { GROUPS = ROWS / EACH };
    const struct judge_numbers &n = *v.n;
    const int row = threadIdx.x / SHARE, column = threadIdx.x % W, group = threadIdx.x / W;
    double *want = room.of.score, *variance = want + ROWS * W, *cut = variance + ROWS * W;
    double together[EACH], sum[EACH];
    struct judge_row out = {};
    for (int i = 0; i < EACH; i++) {
        together[i] = room.of.row[(group + i * GROUPS) * OF_NUMBERS + OF_TOGETHER];
        sum[i] = room.of.row[(group + i * GROUPS) * OF_NUMBERS + OF_SUM];
    }
    const double own = room.of.row[row * OF_NUMBERS + OF_TOGETHER];
    for (int pass = 0; pass < PASSES; pass++) {
        __syncthreads();
        for (int i = 0; i < EACH; i++) {
            const int at = (group + i * GROUPS) * W + column;
            want[at] = wants[pass][i];
            variance[at] =
                likely_variance(together[i], &u[pass][i].likely, sum[i], want[at], n.o_times, n.o_unit, n.o_half_tiny);
            cut[at] = u[pass][i].likely.cut / sum[i] * fabs(n.o_times);
        }
        __syncthreads();
        const int end = n.head_dim_v - pass * W < W ? n.head_dim_v - pass * W : W;
        for (int i = 0; threadIdx.x % SHARE == 0 && row < v.rows && i < end; i++) {
            const int at = row * W + i;
            const double got =
                judge_load(n.type[3], NULL, v.tensors + tile.o, (v.row + row) * work.base.stride[3] + pass * W + i);
            noise_add(&out.noise, got, want[at], judge_round(n.type[3], want[at]), variance[at], cut[at]);
        }
    }
    out.judged = 1;
    out.noise.of_l = s.l_variance / (s.sum * s.sum);
    out.noise.shared = VARIANCE_OF_RANGE * own * n.p_unit * n.p_unit * s.squares / (s.sum * s.sum);
    if (threadIdx.x % SHARE == 0 && row < v.rows)
        work.rows[tile.row + v.row + row] = out;
}

struct judge_finish_arrays {
    const struct judge_part *parts;
    const double *samples;
    struct judge_verdict *verdicts;
    int64_t n;
    int32_t groups; /* parts of each; those that are not there are zeros */
};

/* Joins the parts of each verdict, a warp to one; the quartiles of its sample are find_quartiles()'s. */
static __global__ void judge_finish(const struct judge_finish_arrays work)
{
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const double x = i < work.n && lane < JUDGE_SAMPLES ? work.samples[i * JUDGE_SAMPLES + lane] : (double)NAN;
    int before = 0, n = 0;
    for (int j = 0; j < JUDGE_SAMPLES; j++) {
        const double y = __shfl_sync(0xffffffffu, x, j);
        before += y < x || (y == x && j < lane);
        n += y == y;
    }
    double quartile[3];
    for (int q = 0; q < 3; q++) {
        double found = x == x && before == (q + 1) * n / 4 ? x : -(double)INFINITY;
        for (int flip = 16; flip > 0; flip /= 2)
            found = fmax(found, __shfl_xor_sync(0xffffffffu, found, flip));
        quartile[q] = found;
    }
    if (lane != 0 || i >= work.n)
        return;
    struct judge_verdict out;
    out.all = work.parts[i * work.groups];
    for (int group = 1; group < work.groups; group++)
        stage_part_join(&out.all, work.parts[i * work.groups + group]);
    out.median = n ? (float)quartile[1] : NAN;
    out.spread = n ? (float)(quartile[2] - quartile[0]) : NAN;
    work.verdicts[i] = out;
}

#endif
