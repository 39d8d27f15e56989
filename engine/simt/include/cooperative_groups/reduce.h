/* cooperative_groups::reduce, in CUDA's order of operations: sums of floats come out bit for bit. */
#ifndef SIMT_COOPERATIVE_GROUPS_REDUCE_H
#define SIMT_COOPERATIVE_GROUPS_REDUCE_H

#include "../cooperative_groups.h"

namespace cooperative_groups
{
#define SIMT_GROUP_OP(name, expression)                                                                                \
    template <class T> struct name {                                                                                   \
        T operator()(T a, T b) const                                                                                   \
        {                                                                                                              \
            return (T)(expression);                                                                                    \
        }                                                                                                              \
    };
SIMT_GROUP_OP(plus, a + b)
SIMT_GROUP_OP(less, b < a ? b : a)
SIMT_GROUP_OP(greater, a < b ? b : a)
SIMT_GROUP_OP(bit_and, a &b)
SIMT_GROUP_OP(bit_or, a | b)
SIMT_GROUP_OP(bit_xor, a ^ b)
#undef SIMT_GROUP_OP
} // namespace cooperative_groups

namespace simt
{
template <class T, class Op> struct group_reduce_arg {
    T value, next;
    Op *op;         /* borrowed: each thread's own */
    unsigned group; /* lanes */
};

/* Tiles, and sets of all 32 lanes: a butterfly. Others: the last rank of an inclusive scan has the result. */
template <class T, class Op, bool tile> void group_reduce_combine(void *const args[32], uint32_t lanes)
{
    typedef group_reduce_arg<T, Op> arg;
    int lane_of[32], n = 0;
    for (uint32_t rest = static_cast<arg *>(args[__builtin_ctz(lanes)])->group; rest; rest &= rest - 1)
        lane_of[n++] = __builtin_ctz(rest);
    const bool butterfly = tile || n == 32;
    for (int step = butterfly ? n / 2 : 1; butterfly ? step > 0 : step < n; step = butterfly ? step / 2 : 2 * step) {
        for (int rank = 0; rank < n; rank++) {
            const int lane = lane_of[rank], other = butterfly ? rank ^ step : rank - step;
            if (!(lanes >> lane & 1))
                continue;
            arg *me = static_cast<arg *>(args[lane]);
            me->next = me->value;
            if (other < 0)
                continue;
            if (lanes >> lane_of[other] & 1)
                me->next = (*me->op)(me->value, static_cast<arg *>(args[lane_of[other]])->value);
            else
                simt_shuffle_report(lane, lane_of[other]);
        }
        each_lane<arg>(args, lanes, [](int, arg *me) { me->value = me->next; });
    }
    if (!butterfly && n && lanes >> lane_of[n - 1] & 1) {
        const T result = static_cast<arg *>(args[lane_of[n - 1]])->value;
        each_lane<arg>(args, lanes, [&](int, arg *me) { me->value = result; });
    }
}

template <bool tile, class T, class Op> T group_reduce(unsigned mask, T value, Op &op, const char *file, int line)
{
    static_assert(std::is_same<T, typename std::decay<decltype(op(value, value))>::type>::value,
                  "reduce: the operator's type is another than the value's");
    group_reduce_arg<T, Op> arg = {value, value, &op, mask};
    simt_warp_meet(mask, SIMT_REDUCE, group_reduce_combine<T, Op, tile>, &arg, file, line);
    return arg.value;
}
} // namespace simt

namespace cooperative_groups
{
template <class T, class Op> inline T reduce(const coalesced_group &group, T value, Op &&op, SIMT_SITE)
{
    return simt::group_reduce<false>(group.simt_lanes(), value, op, SIMT_HERE);
}

template <unsigned N, class Parent, class T, class Op>
inline T reduce(const thread_block_tile<N, Parent> &group, T value, Op &&op, SIMT_SITE)
{
    return simt::group_reduce<true>(group.simt_lanes(), value, op, SIMT_HERE);
}
} // namespace cooperative_groups

#endif
