/* Barriers and warp operations. A warp operation publishes its argument and waits; the last lane to arrive computes the
   results of all. */
#ifndef SIMT_WARP_H
#define SIMT_WARP_H

#include "simt_keywords.h"

static inline void __syncthreads(SIMT_SITE)
{
    simt_barrier(SIMT_BARRIER, 0, simt_file, simt_line);
}

static inline int __syncthreads_count(int predicate, SIMT_SITE)
{
    return simt_barrier(SIMT_BARRIER_COUNT, predicate, simt_file, simt_line);
}

static inline int __syncthreads_and(int predicate, SIMT_SITE)
{
    return simt_barrier(SIMT_BARRIER_AND, predicate, simt_file, simt_line);
}

static inline int __syncthreads_or(int predicate, SIMT_SITE)
{
    return simt_barrier(SIMT_BARRIER_OR, predicate, simt_file, simt_line);
}

static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, SIMT_SITE)
{
    simt_warp_meet(mask, SIMT_SYNCWARP, nullptr, nullptr, simt_file, simt_line);
}

static inline unsigned __activemask(SIMT_SITE)
{
    return simt_active_mask(simt_file, simt_line);
}

namespace simt
{
/* Calls f(lane, its argument) for every lane of the set. */
template <class Arg, class F> static inline void each_lane(void *const args[32], uint32_t lanes, F f)
{
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        f(lane, static_cast<Arg *>(args[lane]));
    }
}

template <class T> struct shuffle_arg {
    T in, out;
    int source; /* lane */
};

template <class T> void shuffle_combine(void *const args[32], uint32_t lanes)
{
    each_lane<shuffle_arg<T>>(args, lanes, [&](int lane, shuffle_arg<T> *me) {
        if (lanes >> me->source & 1) {
            me->out = static_cast<shuffle_arg<T> *>(args[me->source])->in;
        } else {
            me->out = me->in;
            simt_shuffle_report(lane, me->source);
        }
    });
}

template <class T> static inline T shuffle(unsigned mask, T value, int source, const char *file, int line)
{
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "shuffles move values of up to 8 bytes");
    shuffle_arg<T> arg;
    arg.in = value;
    arg.source = source;
    simt_warp_meet(mask, SIMT_SHUFFLE, shuffle_combine<T>, &arg, file, line);
    return arg.out;
}

/* First lane of the segment of `width` lanes that this lane is in. */
static inline int segment(int lane, int width)
{
    return lane & ~(width - 1);
}

struct vote_arg {
    uint32_t predicate, out;
};

inline void vote_combine(void *const args[32], uint32_t lanes)
{
    uint32_t set = 0;
    each_lane<vote_arg>(args, lanes, [&](int lane, vote_arg *me) { set |= me->predicate << lane; });
    each_lane<vote_arg>(args, lanes, [&](int, vote_arg *me) { me->out = set; });
}

static inline uint32_t vote(unsigned mask, bool predicate, const char *file, int line)
{
    vote_arg arg = {predicate, 0};
    simt_warp_meet(mask, SIMT_VOTE, vote_combine, &arg, file, line);
    return arg.out;
}

template <class T> struct reduce_arg {
    T in, out;
};

template <class T, class Op> void reduce_combine(void *const args[32], uint32_t lanes)
{
    T sum = static_cast<reduce_arg<T> *>(args[__builtin_ctz(lanes)])->in;
    each_lane<reduce_arg<T>>(args, lanes & (lanes - 1), [&](int, reduce_arg<T> *me) { sum = Op::of(sum, me->in); });
    each_lane<reduce_arg<T>>(args, lanes, [&](int, reduce_arg<T> *me) { me->out = sum; });
}

template <class Op, class T> static inline T reduce(unsigned mask, T value, const char *file, int line)
{
    reduce_arg<T> arg = {value, value};
    simt_warp_meet(mask, SIMT_REDUCE, reduce_combine<T, Op>, &arg, file, line);
    return arg.out;
}

template <class T> struct match_arg {
    T in;
    uint32_t same; /* lanes with the same value */
};

template <class T> void match_combine(void *const args[32], uint32_t lanes)
{
    each_lane<match_arg<T>>(args, lanes, [&](int, match_arg<T> *me) {
        me->same = 0;
        each_lane<match_arg<T>>(args, lanes, [&](int lane, const match_arg<T> *other) {
            me->same |= (uint32_t)!memcmp(&me->in, &other->in, sizeof(T)) << lane;
        });
    });
}

template <class T> static inline uint32_t match(unsigned mask, T value, const char *file, int line)
{
    match_arg<T> arg = {value, 0};
    simt_warp_meet(mask, SIMT_MATCH, match_combine<T>, &arg, file, line);
    return arg.same;
}
} // namespace simt

template <class T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE)
{
    const int lane = (int)simt_lane();
    return simt::shuffle(mask, value, simt::segment(lane, width) | (source & (width - 1)), simt_file, simt_line);
}

/* Towards a lane outside the segment a lane reads itself. */
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE)
{
    const int lane = (int)simt_lane(), source = lane - (int)delta;
    return simt::shuffle(mask, value, source < simt::segment(lane, width) ? lane : source, simt_file, simt_line);
}

template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE)
{
    const int lane = (int)simt_lane(), source = lane + (int)delta;
    return simt::shuffle(mask, value, source >= simt::segment(lane, width) + width ? lane : source, simt_file,
                         simt_line);
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, SIMT_SITE)
{
    const int lane = (int)simt_lane(), source = lane ^ flip;
    return simt::shuffle(mask, value, source >= simt::segment(lane, width) + width ? lane : source, simt_file,
                         simt_line);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE)
{
    return simt::vote(mask, predicate != 0, simt_file, simt_line);
}

static inline int __any_sync(unsigned mask, int predicate, SIMT_SITE)
{
    return simt::vote(mask, predicate != 0, simt_file, simt_line) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, SIMT_SITE)
{
    return simt::vote(mask, predicate == 0, simt_file, simt_line) == 0;
}

template <class T> static inline unsigned __match_any_sync(unsigned mask, T value, SIMT_SITE)
{
    return simt::match(mask, value, simt_file, simt_line);
}

template <class T> static inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, SIMT_SITE)
{
    const unsigned same = simt::match(mask, value, simt_file, simt_line);
    *predicate = same == mask;
    return *predicate ? mask : 0;
}

/* SIMT_REDUCE_OP(name, types, expression of a and b) */
#define SIMT_REDUCE_OF(name, T)                                                                                        \
    static inline T __reduce_##name##_sync(unsigned mask, T value, SIMT_SITE)                                          \
    {                                                                                                                  \
        return simt::reduce<simt::reduce_##name>(mask, value, simt_file, simt_line);                                   \
    }
#define SIMT_REDUCE_OP(name, expression)                                                                               \
    namespace simt                                                                                                     \
    {                                                                                                                  \
    struct reduce_##name {                                                                                             \
        template <class T> static T of(T a, T b)                                                                       \
        {                                                                                                              \
            return (T)(expression);                                                                                    \
        }                                                                                                              \
    };                                                                                                                 \
    }                                                                                                                  \
    SIMT_REDUCE_OF(name, unsigned)
SIMT_REDUCE_OP(add, (unsigned)a + (unsigned)b)
SIMT_REDUCE_OP(min, b < a ? b : a)
SIMT_REDUCE_OP(max, a < b ? b : a)
SIMT_REDUCE_OP(and, a &b)
SIMT_REDUCE_OP(or, a | b)
SIMT_REDUCE_OP(xor, a ^ b)
SIMT_REDUCE_OF(add, int)
SIMT_REDUCE_OF(min, int)
SIMT_REDUCE_OF(max, int)
#undef SIMT_REDUCE_OP
#undef SIMT_REDUCE_OF

#endif
