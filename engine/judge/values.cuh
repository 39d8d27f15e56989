/* U of a tile and its bounds: oracle/reference.c, sum_element() and likely_value() of formula.h. */
#ifndef JUDGE_VALUES_CUH
#define JUDGE_VALUES_CUH

#include "engine/judge/weights.cuh"

/* An element of U while tiles come: but for the sum in f32, in units of V's unit / JUDGE_LIFT. */
struct judge_running {
    double sum;
    float error, likely, variance, cut;
};

/* What f32 makes of the formulas' five additions and products a tile: each may be too small by 2^-24. */
static __device__ struct judge_element judge_element_of(const struct judge_running &x, double unit, double tiles)
{
    const double by = unit / JUDGE_LIFT, grown = by * (1 + (5 * tiles + 8) * BOUND_U);
    struct judge_element u;
    u.sum = x.sum;
    u.error = (double)x.error * grown;
    u.likely.u = (double)x.likely * grown;
    u.likely.variance = (double)x.variance * (by * grown);
    u.likely.cut = (double)x.cut * by;
    return u;
}

static __device__ void judge_rescale(struct judge_running *x, float by)
{
    x->error *= by;
    x->likely *= by;
    x->variance *= by * by;
    x->cut *= by;
}

/* The formulas' numbers that are the same for all rows. */
struct judge_shares {
    float relative, systematic, variance, cut, terms;
};
static __device__ struct judge_shares judge_shares_of(const struct judge_numbers &n)
{
    struct judge_shares x;
    x.relative = judge_up(n.u_error);
    x.systematic = judge_up(n.share.systematic);
    x.variance = judge_up(n.share.variance);
    x.cut = (float)n.share.cut;
    x.terms = (float)n.share.terms;
    return x;
}

/* Magnitudes of V as factors: as those of judge_narrow(), but for zeros, and where there can be such. */
template <class ELEMENT> static __device__ float judge_at_least(float x, bool zero)
{
    return ELEMENT::UNIT ? x : zero ? 0 : fmaxf(x, 0x1p-125f);
}

/* P V of eight columns and all rows, added to what there was. d: the first; *top: the largest |v| of column lane / 4
   among keys that the lane has, in units. per_unit: 1 / V's unit. */
template <class ELEMENT, int DIM, bool MORE>
static __device__ void judge_values(const struct judge_numbers &n, const double *scales, const struct judge_room &room,
                                    int d, int key, int cols, double times, double per_unit,
                                    struct judge_running (&u)[4], float *top, bool *open)
{
    enum { ARRAYS = MORE ? JUDGE_SIZES + 1 : JUDGE_SIZES, KINDS = MORE ? 3 : 2 };
    const int upper = threadIdx.x % LANES / 4, pitch = room.pitch_v, whole = judge_whole(cols);
    const float narrow = (float)per_unit;
    const ELEMENT *values = (const ELEMENT *)room.values + d;
    double product[4] = {};
    float sums[ARRAYS][4], most = 0;
    /* Products may underflow, which costs a sum so much at most. */
    const float lost = (float)magnitude_lost(whole);
#pragma unroll
    for (int j = 0; j < ARRAYS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[j][i] = lost;
    const auto factor = [&](int k, int more, int column) {
        struct judge_factor<KINDS> y = {
        };
        if (!MORE) {
            const float x = judge_number((values + k * pitch + column)[more * pitch]);
            y.taken = (double)x;
            y.size[0] = judge_at_least<ELEMENT>(ELEMENT::UNIT ? fabsf(x) : fabsf(x) * narrow, x == 0);
        } else if (k + more < cols && d + column < n.head_dim_v) {
            const ELEMENT *row = (const ELEMENT *)room.values + (k + more) * pitch;
            y.taken = judge_taken(scales, n.input[2], row, key + k + more, d + column);
            const double size = judge_most(n.input[2], row, d + column, y.taken);
            y.size[0] = judge_at_least<ELEMENT>(magnitude_narrow(size, per_unit), size == 0);
            y.size[KINDS - 1] = magnitude_narrow(size - fabs(y.taken), per_unit) + 0x1p-125f;
        }
        y.size[1] = judge_at_least<ELEMENT>(y.size[0] * y.size[0], y.size[0] == 0);
        if (JUDGE_HAS_F64_CORES) /* each lane comes by its keys of the column once */
            most = fmaxf(most, y.size[0]);
        return y;
    };
    const float *arrays[ARRAYS] = {room.sizes[0], room.sizes[1], room.sizes[2], room.sizes[3]};
    if (MORE)
        arrays[ARRAYS - 1] = room.sizes[0];
    judge_multiply<ARRAYS, KINDS, ELEMENT::EXACT && !MORE, (DIM > 0)>(room.weight, room.pitch_p, arrays, room.pitch_p,
                                                                      MORE && n.input[2].lossy ? ARRAYS
                                                                      : n.likely               ? 4
                                                                                               : 2,
                                                                      whole, factor, product, sums);
    for (int k = threadIdx.x % 4; !JUDGE_HAS_F64_CORES && k < whole; k += 4)
        most = fmaxf(most, factor(k, 0, upper).size[0]);
    *top = fmaxf(*top, most * (float)times);
    *open |= !(most <= (float)JUDGE_V_MOST);
    const struct judge_shares share = judge_shares_of(n);
    const float to_units = (float)(per_unit * JUDGE_LIFT);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = upper + i / 2 * 8;
        const struct judge_now now = room.now[row];
        struct judge_running *x = &u[i];
        const double of_tile = times * product[i];
        const float before = fabsf((float)x->sum) * to_units, size = sums[0][i];
        const float fixed = fmaf(now.decay_error, before, now.lost) +
                            (MORE && n.input[2].lossy ? sums[ARRAYS - 1][i] * (float)BOUND_SLACK : 0);
        const float off = fmaf(now.most_decay, x->error, fixed) + sums[1][i];
        const float reach = fmaf(now.decay, before, size) + off;
        x->error = fmaf(share.relative, reach, off);
        x->sum = room.row[row * ROW_NUMBERS + ROW_DECAY] * x->sum + of_tile;
        if (!n.likely)
            continue;
        const float along = __fdividef(fabsf((float)of_tile) * to_units, size);
        x->likely = fmaf(now.most_decay, x->likely, fixed) + fmaf(share.systematic, reach, sums[2][i]);
        x->variance = fmaf(now.squared, x->variance, sums[3][i]) + share.variance * reach * reach;
        x->cut = fmaf(now.most_decay, x->cut, fmaf(share.terms, along, share.cut) * reach);
    }
}

#endif
