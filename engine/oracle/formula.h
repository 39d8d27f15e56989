/* The reference's formulas of one element or row, for the CPU's oracle and for the judge on a GPU: C, C++ and CUDA give
   the same bits. Both are compiled without contraction (-ffp-contract=off, -fmad=false), a fused operation is written
   fma(); exponentials are exp_lane(). The logarithms at a row's end are libm's, whose last bit may differ from a GPU's.
 */
#ifndef ORACLE_FORMULA_H
#define ORACLE_FORMULA_H

#include "engine/base/exp.h"
#include <float.h>
#include <math.h>
#include <stdbool.h>

#define FORMULA HOST_AND_DEVICE static inline

/* See bound.h for what they are and who says so. */
#define BOUND_U 0x1p-24     /* unit roundoff of f32 */
#define BOUND_EXP 0x1p-22   /* relative error of exp2: the guide's 2 ulp; measured ex2.approx, exp2f 2^-22.71 */
#define BOUND_TANH 0x1p-14  /* of tanh: see bound_tanh */
#define BOUND_TINY 0x1p-126 /* what underflow can cost an operation, flushed to zero or not */
#define BOUND_SLACK (1 + 0x1p-14)

/* Higham's gamma_n = n u / (1 - n u): the relative error of n roundings in any order. */
FORMULA double bound_gamma(int n)
{
    const double nu = n * BOUND_U;
    return nu < 0.5 ? nu / (1 - nu) * BOUND_SLACK : INFINITY;
}
/* An upper bound of expm1(x), 0 <= x <= 1: the series x + x^2/2 + x^3/6 + ... lies below x + x^2, because e - 2 < 1. */
FORMULA double bound_expm1_near(double x)
{
    return x + x * x;
}
/* The same for any x >= 0. */
FORMULA double bound_expm1(double x)
{
    return x <= 1 ? bound_expm1_near(x) : expm1(x);
}
/* Relative error of exp(x) computed as exp2(x log2 e), x a difference of two f32: the subtraction errs by u |x|, the
   f32 constant and the product by at most another 2.25 u |x|, which exp turns into relative errors; exp2 itself by
   BOUND_EXP, the result's own rounding by u. `folded` is |m| where the kernel may multiply score and maximum by a
   constant before it subtracts: s c and m c are then rounded each, 2 u |m c| beyond what u |x| covers (one of the two
   where an FMA takes s c unrounded). Measured without the subtraction, which is exact there: __expf and expf take 0.48
   of it at most, ex2.approx 0.49 of what it is for x = 0. */
FORMULA double bound_exp(double x, double folded)
{
    return (BOUND_EXP + BOUND_U + 3.25 * BOUND_U * fabs(x) + 2 * BOUND_U * folded) * BOUND_SLACK;
}
/* How far factor exp(x') may lie from want = factor exp(x), x' being within `loose` of x: want expm1(loose). Where
   loose is large it is put into the exponent, so that a want of 0 and a factor beyond any number do not make a NaN. An
   error of the exponential, relative to its result, is as good as one of its argument and belongs to `loose`. */
FORMULA double bound_exp_moved(double want, double factor, double x, double loose)
{
    return loose <= 1 ? want * bound_expm1(loose) : factor * exp_lane(x + loose);
}
/* o = u / l: as u * (1/l) with a reciprocal within one ulp (2 u) and two roundings, or one division (the guide's 2 ulp
   of __fdividef: 4 u). Measured: rcp.approx takes 0.82 of 2 u, x * rcp.approx, __fdividef and div.full 0.65 of 4 u. */
FORMULA double bound_divide(double o)
{
    return (4 * BOUND_U * fabs(o) + 2 * BOUND_TINY) * BOUND_SLACK;
}
/* lse = m + ln l: __logf errs by 2^-21.41 = 3.6e-7 absolutely in [0.5, 2] and by 3 ulp elsewhere (CUDA C++ Programming
   Guide), an ulp being up to 2 u of the value: 6 u, which has room for lg2.approx and its scaling by ln 2 as well
   (measured, for normal l: __logf and that 0.44 of both terms, logf 0.17); m scaled to the unit of lse by 2 u; the
   addition by u. In base 2 all of it is multiplied by log2 e, rounded twice. */
FORMULA double bound_lse(double m, double ln_l, double lse)
{
    return (3.6e-7 + BOUND_U * (6 * fabs(ln_l) + 2 * fabs(m) + fabs(lse))) * BOUND_SLACK;
}
/* Change of unit of a score or maximum that passes the kernel's hands: the constant is rounded twice, the product once.
 */
FORMULA double bound_convert(double x)
{
    return 3 * BOUND_U * fabs(x) * BOUND_SLACK;
}
/* A bias of `terms` terms, the sum of whose magnitudes is `size`, is added to a score: each addition rounds a partial
   sum of at most |score| + size. The terms themselves are off by 4 u: a constant (1 / scale, log2 e) has been rounded
   twice, multiplied by slope or bias, that by a distance. */
FORMULA double bound_bias(double score, double size, int terms)
{
    return (BOUND_U * (4 * size + terms * (fabs(score) + size)) + 4 * BOUND_TINY) * BOUND_SLACK;
}
/* x, in natural units and uncertain by *bound, behind a soft cap: x' = cap tanh(x / cap). tanh is steepest at the end
   of the interval nearest 0, where its slope is 1 - tanh^2. tanh_error: bound_tanh(). */
FORMULA double score_capped(double cap, double tanh_error, double x, double *bound)
{
    const double capped = cap * tanh_lane(x / cap);
    const double flat = tanh_lane(fmax(0.0, fabs(x) - *bound) / cap);
    *bound = fmin((1 - flat * flat) * *bound, 2 * cap) + tanh_error * fabs(capped) + 2 * BOUND_TINY;
    return capped;
}
/* A score gets its bias, the sum of `terms` terms of which `size` is the sum of the magnitudes, both in natural units;
   those of the score are `natural` natural ones. A bias of -inf hides the key. */
FORMULA double score_biased(double score, double bias, double size, int terms, double natural, double *bound)
{
    if (bias == -INFINITY) {
        *bound = 0;
        return -INFINITY;
    }
    *bound += bound_bias(score, size / fabs(natural), terms);
    return score + bias / natural;
}
/* What the exponentials of a case err by. */
struct exponential {
    double more;          /* beyond bound_exp: what a kernel declares */
    double folded_scales; /* and relative to the argument: scales that are part of its constant */
    double offset;        /* of what is rounded with the maximum: P's factor, see bound_offset() */
    bool scaled_first;    /* score and maximum may be multiplied by a constant before they are subtracted */
};

FORMULA double exponential_error(const struct exponential *e, double x, double folded)
{
    const double scales = e->folded_scales * fabs(x); /* not a number where no scales meet an infinite argument */
    return bound_exp(x, folded) + e->more + (scales >= 0 ? scales : 0);
}

/* What of a maximum (natural units) counts as `folded`. */
FORMULA double exponential_folds(const struct exponential *e, double m)
{
    return !e->scaled_first || !(fabs(m) <= DBL_MAX) ? 0 : fabs(m);
}

/* A sink further above m than this gets to be the frame: exp(sink - m) stays a number. */
#define SINK_REACH 80.0

/* exp(sink - m) joins l: *kept is what m's own frame is worth in the new one, *top. The kernel's exponential is taken
   at sink - frame, which is uncertain by `loose`; where the sink lies above, it may rescale everything else by
   exp(frame - sink) instead. */
struct sunk {
    double top, kept, weight, weight_loose, kept_loose;
};
FORMULA struct sunk sink_into(const struct exponential *e, double sink, double m, double frame, double loose)
{
    const double x = sink - frame;
    const double error = exponential_error(e, x, fmax(exponential_folds(e, frame), fabs(sink)) + e->offset) +
                         bound_convert(sink) + bound_expm1(loose);
    struct sunk sunk;
    sunk.top = sink - m > SINK_REACH ? sink : m;
    sunk.kept = exp_lane(m - sunk.top);
    sunk.weight = exp_lane(sink - sunk.top);
    sunk.weight_loose = sunk.weight * bound_expm1(error) + BOUND_TINY;
    sunk.kept_loose = x > 0 ? bound_expm1(error) : 0;
    return sunk;
}
/* The error of l behind a sink; sum: with it. */
FORMULA double sink_error(const struct sunk *sunk, double before, double error, double sum)
{
    return sunk->kept * (error + before * sunk->kept_loose) + sunk->weight_loose + 3 * BOUND_U * sum;
}

/* The largest exp(s - m) with s <= m: 1, but for its rounding; and where both are multiplied by a constant before they
   are subtracted, the same product rounded once and not at all may differ. */
FORMULA double exponential_most(const struct exponential *e, double folded)
{
    return 1.001 * exp_lane(exponential_error(e, 0, folded));
}

/* ln of the largest f32 is 88.7: frames further apart than this lose one another's values. */
#define FRAME_REACH 80.0
/* A fixed maximum may lie above the running one by as much as scores differ; weights of such tiles underflow. Beyond
   this distance they are taken to be e^-650 relative to 1, which is as far below BOUND_TINY: their own numbers and
   those of the errors relative to the maximum, BOUND_TINY e^650 times a row's sum, stay within float64. */
#define FRAME_ABOVE 650.0
/* A relative uncertainty beyond which nothing is said: finite, so that sums with it stay numbers. */
#define FRAME_LOST 1e100

/* exp_lane(x), which is 1 where x is 0: as it is in most tiles, whose maximum is the one before. */
FORMULA double exp_step(double x)
{
    return x == 0 ? 1 : exp_lane(x);
}

/* From the sums so far into the frame of this tile's maximum. The alpha of this run goes from frame to frame; its
   underflow is seen from the frame of max. */
FORMULA void step_decay(const struct exponential *e, double max_prev, double max, double frame_prev, double frame,
                        double *decay, double *error)
{
    *decay = 0;
    *error = 0;
    if (max_prev == -INFINITY)
        return;
    *decay = exp_step(max_prev - max);
    *error = bound_exp_moved(*decay, 1, max_prev - max,
                             exponential_error(e, frame_prev - frame, exponential_folds(e, frame))) +
             BOUND_TINY * exp_step(max_prev - frame_prev - (max - frame));
}

/* Weights of a row: exp(score - top) and how far a correct kernel's may lie from them. */
struct weight_terms {
    double natural;     /* a score of 1 in natural units */
    double top;         /* weights are factor exp(score - top), natural */
    double frame;       /* what the kernel subtracts from a score, natural */
    double frame_loose; /* what that is uncertain by */
    double folded;      /* see bound_exp */
    double factor;
    double limit, tiny; /* an error is at most the limit, and tiny more */
    double convert;     /* 1: the kernel changes the unit of a score first; 0: it does not */
};

#define WEIGHT_MASKED (-1.0)

/* *off: what the exponential's argument may be off by, its own error included; WEIGHT_MASKED: no weight, no error. */
FORMULA double weight_exp(const struct exponential *e, const struct weight_terms *row, double score, double loose,
                          double *off)
{
    const double convert = row->convert, x = score * row->natural;
    const double w = row->factor * exp_lane(x - row->top);
    const double of_score = loose * fabs(row->natural) + row->frame_loose + convert * bound_convert(x);
    const double all = of_score + exponential_error(e, fabs(x - row->frame) + of_score, row->folded);
    const bool masked = x == -INFINITY;
    *off = masked ? WEIGHT_MASKED : all;
    return masked ? 0 : w <= DBL_MAX ? w : (double)NAN;
}

/* `off` at most 1. */
FORMULA double weight_error_near(const struct weight_terms *row, double weight, double off)
{
    const double moved = weight * bound_expm1_near(off);
    return off == WEIGHT_MASKED ? 0 : (moved < row->limit ? moved : row->limit) + row->tiny;
}

FORMULA double weight_error(const struct weight_terms *row, double score, double weight, double off)
{
    if (off <= 1)
        return weight_error_near(row, weight, off);
    return fmin(bound_exp_moved(weight, row->factor, score * row->natural - row->top, off), row->limit) + row->tiny;
}

/* P.V takes a P rounded by unit |p| + step at most. */
FORMULA double weight_rounded(double weight, double error, double unit, double step)
{
    return weight > 0 || error > 0 ? error + (unit * (weight + error) + step) : error;
}

/* What sums of magnitudes, computed in f32, are at least: x of them is at most (x + lost) grown. */
FORMULA double magnitude_grown(double unit, int k)
{
    return unit / (1 - bound_gamma(k + 2));
}
FORMULA double magnitude_lost(int k)
{
    return 3 * k * BOUND_TINY;
}
FORMULA float magnitude_narrow(double x, double scale)
{
    return (float)(fabs(x) * scale);
}

/* How a row's sums go on over one tile. */
struct sum_terms {
    double decay, decay_error; /* of the sums so far, into the frame of this tile's maximum */
    double relative, lost;     /* error of summing; and what is lost below normal numbers */
};

/* Takes a product of the tile and its error into the sum so far. size: sum w |v| at most; errors: sum of error |v|;
   more: what else the product errs by. *fixed: what errs beyond the weights; *reach: the largest partial sum. */
FORMULA void sum_element(const struct sum_terms *row, double product, double size, double errors, double more,
                         double *sum, double *error, double *fixed, double *reach)
{
    const double before = fabs(*sum);
    *fixed = row->decay_error * before + row->lost + more;
    const double off = (row->decay + row->decay_error) * *error + *fixed + errors;
    *reach = row->decay * before + size + off;
    *sum = row->decay * *sum + product;
    *error = off + row->relative * *reach;
}

/* Errors relative to a sum of magnitudes, see product_share(). */
struct product_share {
    double systematic, variance;
    double cut, terms; /* of `systematic`: what is cut off sums; off products, of either sign */
};

#define LIKELY_KEYS 4096    /* rows of fewer keys are judged by the worst case alone */
#define LIKELY_LAMBDA 10.35 /* 2 exp(-lambda^2 / 2) < 1e-12 / 2^36 */
#define LIKELY_STEPS 8      /* a weight of fewer half steps errs by all of one */

/* What a weight errs by with all but certainty (likely.h), and its part in l. */
struct likely_terms {
    double natural;             /* |a score of 1 in natural units| */
    double random;              /* of a score's error what has no mean */
    double unit, half_tiny;     /* P's rounding for P V; half_tiny in the frame of the maximum, as the next pair */
    double l_unit, l_half_tiny; /* and for l */
};
struct likely_weight {
    double fixed, variance, less, squares, l_more;
};
FORMULA struct likely_weight likely_weight(const struct likely_terms *t, double w, double error, double bound)
{
    const double loose = bound * t->natural, size = w + error;
    const double either = w > 0 && loose < 0x1p-6 ? fmin(t->random * w * loose, error) : 0;
    const double rounded = size > 0 ? t->unit * size + t->half_tiny : 0;
    const double l_rounded = size > 0 ? t->l_unit * size + t->l_half_tiny : 0;
    const bool few = size < LIKELY_STEPS * t->half_tiny, l_few = size < LIKELY_STEPS * t->l_half_tiny;
    struct likely_weight x;
    x.fixed = error - either + 4 * t->unit * t->unit * size + (few ? rounded : 0);
    x.variance = either * either + (few ? 0 : rounded * rounded);
    x.less = either;
    x.squares = either * either + (l_few ? 0 : l_rounded * l_rounded);
    x.l_more = 4 * t->l_unit * t->l_unit * size + (l_few ? l_rounded : 0);
    return x;
}

/* Where between two numbers of its type p > 0 lies: of LIKELY_BINS. Of p's digits those behind the type's last one. */
#define LIKELY_BIN_BITS 7
#define LIKELY_BINS (1 << LIKELY_BIN_BITS)
FORMULA int likely_bin(double p, int bits, int least)
{
    const uint64_t code = format_f64_bits(p), digits = (code & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    const int exponent = (int)(code >> 52) - 1023, below = exponent < least ? least - exponent : 0;
    const int behind = 52 - bits - LIKELY_BIN_BITS + below;
    return behind < 64 ? (int)(digits >> behind) & (LIKELY_BINS - 1) : 0;
}

/* One element of U. fixed and variances: sums over the tile's keys of likely_weight()'s times |v| and v^2. */
struct likely_value {
    double u, variance, cut;
};
FORMULA void likely_value(double decay, const struct product_share *share, double product, double size, double moved,
                          double reach, double fixed, double variances, struct likely_value *x)
{
    const double along = fabs(product) / fmax(size, BOUND_TINY);
    x->u = decay * x->u + moved + share->systematic * reach + fixed;
    x->variance = decay * decay * x->variance + variances + share->variance * reach * reach;
    x->cut = decay * x->cut + (share->cut + share->terms * along) * reach;
}

FORMULA double likely_most(double together, double systematic, double variance)
{
    const double either = variance > 0 ? LIKELY_LAMBDA * sqrt(together * variance) : 0;
    return (systematic + either) * BOUND_SLACK;
}

/* Of the range of a rounding what it errs by on average: evenly spread over its step, a third, and steps are powers of
   two below the weight, 0.54 of its square. */
#define VARIANCE_OF_RANGE (0.54 / 3)

/* The variance that is expected of one element's roundings. unit, half_tiny: of O's type; times: what O was multiplied
   by. */
FORMULA double likely_variance(double together, const struct likely_value *x, double sum, double want, double times,
                               double unit, double half_tiny)
{
    const double of_weights = VARIANCE_OF_RANGE * together * x->variance, cut = x->cut / 4;
    const double step = unit * fabs(want) + half_tiny + BOUND_U * fabs(want);
    return (of_weights + cut * cut) / (sum * sum) * times * times + VARIANCE_OF_RANGE * step * step;
}

/* What a row's O errs by, and what is expected of that: sums over its elements. d is the error. */
struct noise_row {
    double by_want, by_rounded; /* d want, and of the error against the rounded reference */
    double squares, spread;     /* want^2, and times the variance */
    double cut;
    double errors, expected; /* d^2, variances */
    double of_l, shared;     /* of the row's sum of weights */
};
FORMULA void noise_add(struct noise_row *row, double got, double want, double rounded, double variance, double cut)
{
    const double off = got - want;
    if (!(fabs(want) <= DBL_MAX) || !(fabs(got) <= DBL_MAX))
        return;
    row->by_want += off * want;
    row->by_rounded += (got - rounded) * want;
    row->squares += want * want;
    row->spread += want * want * variance;
    row->cut += fabs(want) * cut;
    row->errors += off * off;
    row->expected += variance;
}

/* By how much equal weights, which are rounded alike, make the variance of a row larger. sum, squares: of what the bins
   hold, which is sums of weights by where they lie between two numbers of their type; weights_squared: of the weights.
 */
FORMULA double likely_together_of(double sum, double squares, double weights_squared)
{
    const double apart = weights_squared * (1 - 1.0 / LIKELY_BINS);
    return apart > 0 ? fmax(1.0, (squares - sum * sum / LIKELY_BINS) / apart) : (double)INFINITY;
}
FORMULA double likely_together(const double *of_bins, double weights_squared)
{
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < LIKELY_BINS; i++) {
        sum += of_bins[i];
        squares += of_bins[i] * of_bins[i];
    }
    return likely_together_of(sum, squares, weights_squared);
}

/* An alpha's error grows with its argument, by 3.25 u; those of a row add up to no more than e may be raised to. */
#define ALPHA_ARGUMENTS (3.25 * BOUND_U * FRAME_REACH)

/* An error where the kernel may have taken the kv tiles from the last to the first: see reference_turn(). */
FORMULA double error_turned(double error, double more, double size)
{
    return (error + more * size) * (1 + more);
}

/* Rounded to nearest even into so many bits, with exponents from the least on; infinite beyond the largest. */
FORMULA double formula_round(double x, int bits, int least_exponent, double largest)
{
    const double size = fabs(x), least = format_f64_of((uint64_t)(1023 + least_exponent) << 52);
    if (!(size <= DBL_MAX))
        return x;
    double rounded;
    if (size < least) {
        /* Adding 2^52 of the smallest steps leaves whole ones. */
        const double magic = format_f64_of((uint64_t)(1023 + least_exponent - bits + 1 + 52) << 52);
        rounded = size + magic - magic;
    } else {
        const int drop = 53 - bits;
        const uint64_t code = format_f64_bits(size), half = (UINT64_C(1) << (drop - 1)) - 1 + (code >> drop & 1);
        rounded = format_f64_of((code + half) >> drop << drop);
    }
    if (rounded > largest)
        rounded = (double)INFINITY;
    return x < 0 ? -rounded : x > 0 ? rounded : x;
}

FORMULA double formula_f16(double x)
{
    return formula_round(x, 11, -14, 65504);
}
FORMULA double formula_bf16(double x)
{
    return formula_round(x, 8, -126, 0x1.FEp127);
}

/* What the products take of an input that is rounded to a narrower type first, off by `loose` before that; unit and
   half_tiny are 0 where it is not. fold: a factor that is multiplied into it before, 1 for none: its product is rounded
   by a relative error that does not depend on the factor, and half a subnormal, which does. */
struct input_terms {
    double unit, half_tiny, fold;
};
/* Its magnitude at most. */
FORMULA double input_size(const struct input_terms *t, double x, double loose)
{
    if (t->fold != 1)
        return (fabs(x) + loose) * (1 + t->unit) * (1 + 4 * BOUND_U) + (t->half_tiny + BOUND_TINY) / t->fold;
    return fabs(x) * (1 + t->unit) + t->half_tiny + loose * (1 + t->unit);
}
/* How far what a code becomes, x, may lie from a correct kernel's: so many roundings. */
FORMULA double input_descaled(int roundings, double x)
{
    return roundings * BOUND_U * fabs(x) * BOUND_SLACK + BOUND_TINY;
}
/* rope_loose() of a pair that RoPE has turned, which is (a, b) now; share: rope_loose_share(). The squares stay finite,
   and above 0 where a and b are: these are numbers of f32. */
FORMULA double input_turned(double share, double a, double b)
{
    return share * sqrt(a * a + b * b) + 3 * BOUND_TINY;
}

/* What a split ends with is merged by shares, see merge.h. By how much the share of one errs, but for what depends on
   the lse of all. frame: the m that the kernel's own lse_s is made with, uncertain by m_loose; folded: what scales in
   the constant make of it; lse: m + ln l. */
FORMULA double merge_share(const struct exponential *e, double ln_factor, double frame, double m_loose, double folded,
                           double lse)
{
    const double error =
        bound_lse(fabs(frame) + fabs(ln_factor), lse - frame + ln_factor, lse) + bound_convert(lse) + m_loose + folded;
    return bound_expm1(error) + exponential_error(e, lse, 0) + 6 * BOUND_U;
}
/* The other half: of all of it, for |lse_s - lse|, and the sum over so many splits. */
FORMULA double merge_common(double lse, int splits)
{
    return 3.25 * BOUND_U * fabs(lse) + bound_gamma(splits + 2);
}
/* By how much that and the error of lse itself move the sum l of all of them, whose maximum is m. */
FORMULA double merge_of_all(double l, double m, double ln_l, double common, double folded)
{
    return l * (common + bound_expm1(bound_lse(fabs(m), ln_l, m + ln_l) + folded));
}
/* Sums over the splits so far, in the frame of their largest maximum. */
struct merged_value {
    double sum, size, loose, likely;
};
/* A part, uncertain by loose and with all but certainty by likely, joins: what is there keeps `kept` of itself, the
   part weighs `weight`, its share errs by `share`. */
FORMULA void merge_value(double kept, double weight, double share, double part, double loose, double likely,
                         struct merged_value *x)
{
    const double size = fabs(part);
    x->sum = kept * x->sum + weight * part;
    x->size = kept * x->size + weight * size;
    x->loose = kept * x->loose + weight * (loose + (size + loose) * share);
    x->likely = kept * x->likely + weight * (likely + (size + loose) * share);
}
/* l of a part joins, whose own uncertainty its share does not touch. */
FORMULA void merge_sum(double kept, double weight, double share, double part, double loose, double likely,
                       struct merged_value *x)
{
    x->sum = kept * x->sum + weight * part;
    x->loose = kept * x->loose + weight * (loose + fabs(part) * share);
    x->likely = kept * x->likely + weight * (likely + fabs(part) * share);
}

/* The same where o then gets the scale of V's codes, or u or 1 / l has got it: two roundings more at most, since a
   scale over l is rounded, and its product with u. And where it gets the factor of dropout (weight.h). roundings: 0
   where neither is. */
FORMULA double output_scaled(double o, double bound, double roundings, double scale)
{
    const double more = roundings > 0 ? roundings * BOUND_U * (fabs(o) + bound) + BOUND_TINY : 0;
    return (bound + more * BOUND_SLACK) * fabs(scale);
}

/* O of a row whose weights add up to `sum`, off by `error` at most; u and u_error: of U. top: the largest |v|. */
FORMULA double output_moved(double want, double sum, double error, double u_error)
{
    const double least = sum - error;
    return least > 0 ? (u_error + fabs(want) * error) / least : (double)INFINITY;
}

#endif
