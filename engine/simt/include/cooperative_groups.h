/* Cooperative groups of a cluster and of one block: the block, tiles of up to 32 threads, the lanes that run together
   (CUDA C++ Programming Guide, Cooperative Groups). A group of a warp is a set of its lanes; ranks count its lanes from
   the lowest. Groups of a grid are GPU only: gpu_only.def. */
#ifndef SIMT_COOPERATIVE_GROUPS_H
#define SIMT_COOPERATIVE_GROUPS_H

#include "simt_ptx.h"
#include "simt_warp.h"

#define SIMT_HERE simt_file, simt_line

namespace cooperative_groups
{
/* What every group is, and may be kept as. */
class thread_group
{
  public:
    unsigned thread_rank() const
    {
        if (mask)
            return (unsigned)__builtin_popcount(mask & ((1u << simt_lane()) - 1));
        const simt_dim t = simt_thread_index(), n = simt_block_dim();
        return (t.z * n.y + t.y) * n.x + t.x;
    }
    unsigned num_threads() const
    {
        const simt_dim n = simt_block_dim();
        return mask ? (unsigned)__builtin_popcount(mask) : n.x * n.y * n.z;
    }
    unsigned size() const
    {
        return num_threads();
    }
    void sync(SIMT_SITE) const
    {
        if (mask)
            __syncwarp(mask, SIMT_HERE);
        else
            __syncthreads(SIMT_HERE);
    }

    /* Of the executor's own headers. */
    explicit thread_group(unsigned lanes) : mask(lanes) {}
    unsigned simt_lanes() const
    {
        return mask;
    }
    /* The calling thread's of the parts of `width` threads each. */
    unsigned simt_part(unsigned width, const char *file, int line) const
    {
        if (!width || width > 32 || width & (width - 1))
            simt_address_error("tiled_partition: a tile has 1, 2, 4, 8, 16 or 32 threads", file, line);
        if (!mask)
            return ~0u >> (32 - width) << (simt_lane() & ~(width - 1));
        const unsigned first = thread_rank() / width * width;
        unsigned lanes = 0, rank = 0;
        for (unsigned rest = mask; rest; rest &= rest - 1, rank++)
            lanes |= rank >= first && rank < first + width ? rest & -rest : 0;
        return lanes;
    }

  protected:
    unsigned mask; /* 0: the block */
};

class thread_block : public thread_group
{
  public:
    static dim3 group_index()
    {
        return blockIdx;
    }
    static dim3 thread_index()
    {
        return threadIdx;
    }
    static dim3 dim_threads()
    {
        return blockDim;
    }
    static dim3 group_dim()
    {
        return dim_threads();
    }
    static unsigned thread_rank()
    {
        return thread_block().thread_group::thread_rank();
    }
    static unsigned num_threads()
    {
        return thread_block().thread_group::num_threads();
    }
    static unsigned size()
    {
        return num_threads();
    }
    static void sync(SIMT_SITE)
    {
        __syncthreads(SIMT_HERE);
    }

  private:
    thread_block() : thread_group(0) {}
    friend thread_block this_thread_block();
};

inline thread_block this_thread_block()
{
    return thread_block();
}

/* All threads of the blocks that run together; one block alone is a cluster too. */
class cluster_group
{
  public:
    static dim3 dim_blocks()
    {
        const simt_dim n = simt_cluster_dim();
        return dim3(n.x, n.y, n.z);
    }
    static unsigned num_blocks()
    {
        const simt_dim n = simt_cluster_dim();
        return n.x * n.y * n.z;
    }
    static dim3 block_index()
    {
        const simt_dim n = simt_cluster_dim(), b = simt_block_index();
        return dim3(b.x % n.x, b.y % n.y, b.z % n.z);
    }
    static unsigned block_rank()
    {
        return simt_cluster_rank();
    }
    static unsigned num_threads()
    {
        return num_blocks() * thread_block::num_threads();
    }
    static unsigned size()
    {
        return num_threads();
    }
    static unsigned thread_rank()
    {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    struct arrival_token {
    };
    static arrival_token barrier_arrive(SIMT_SITE)
    {
        simt_ptx::cluster_arrive<true>(SIMT_HERE);
        return {};
    }
    static void barrier_wait(SIMT_SITE)
    {
        simt_ptx::cluster_wait(SIMT_HERE);
    }
    static void barrier_wait(arrival_token &&, SIMT_SITE)
    {
        simt_ptx::cluster_wait(SIMT_HERE);
    }
    static void sync(SIMT_SITE)
    {
        barrier_arrive(SIMT_HERE);
        barrier_wait(SIMT_HERE);
    }
    template <class T> static T *map_shared_rank(T *address, int rank, SIMT_SITE)
    {
        return static_cast<T *>(simt_cluster_generic(address, (uint32_t)rank, SIMT_HERE));
    }
    static unsigned query_shared_rank(const void *address, SIMT_SITE)
    {
        return simt_cluster_rank_of(address, SIMT_HERE);
    }

  private:
    cluster_group() {}
    friend cluster_group this_cluster();
};

inline cluster_group this_cluster()
{
    return cluster_group();
}

/* Lanes of one warp. */
class coalesced_group : public thread_group
{
  public:
    unsigned meta_group_rank() const
    {
        return meta_rank;
    }
    unsigned meta_group_size() const
    {
        return meta_size;
    }
    template <class T> T shfl(T value, int rank, SIMT_SITE) const
    {
        return move(value, lane_of((unsigned)rank), SIMT_HERE);
    }
    /* Towards a thread outside the group a thread reads itself. */
    template <class T> T shfl_up(T value, unsigned delta, SIMT_SITE) const
    {
        const unsigned rank = thread_rank();
        return move(value, lane_of(delta > rank ? rank : rank - delta), SIMT_HERE);
    }
    template <class T> T shfl_down(T value, unsigned delta, SIMT_SITE) const
    {
        const unsigned rank = thread_rank();
        return move(value, lane_of(delta >= num_threads() - rank ? rank : rank + delta), SIMT_HERE);
    }
    int any(int predicate, SIMT_SITE) const
    {
        return __any_sync(mask, predicate, SIMT_HERE);
    }
    int all(int predicate, SIMT_SITE) const
    {
        return __all_sync(mask, predicate, SIMT_HERE);
    }
    unsigned ballot(int predicate, SIMT_SITE) const
    {
        return ranks(__ballot_sync(mask, predicate, SIMT_HERE));
    }
    template <class T> unsigned match_any(T value, SIMT_SITE) const
    {
        return ranks(__match_any_sync(mask, value, SIMT_HERE));
    }
    template <class T> unsigned match_all(T value, int &same, SIMT_SITE) const
    {
        return ranks(__match_all_sync(mask, value, &same, SIMT_HERE));
    }
    /* Of the executor's own headers. */
    explicit coalesced_group(unsigned lanes, unsigned rank = 0, unsigned size = 1)
        : thread_group(lanes), meta_rank(rank), meta_size(size)
    {
    }

  protected:
    unsigned meta_rank, meta_size;
    /* Of a rank that no thread has: a lane outside, so that the executor tells. */
    unsigned lane_of(unsigned rank) const
    {
        unsigned rest = mask;
        for (; rest && rank; rank--)
            rest &= rest - 1;
        return (unsigned)__builtin_ctz(rest ? rest : ~mask | 1u << 31);
    }
    unsigned ranks(unsigned lanes) const
    {
        unsigned out = 0, rank = 0;
        for (unsigned rest = mask; rest; rest &= rest - 1)
            out |= (lanes >> __builtin_ctz(rest) & 1) << rank++;
        return out;
    }
    template <class T> T move(const T &value, unsigned lane, const char *file, int line) const
    {
        static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 32,
                      "shuffles of a group move values of up to 32 bytes");
        simt::shuffle_arg<T> arg = {value, value, (int)lane};
        simt_warp_meet(mask, SIMT_SHUFFLE, simt::shuffle_combine<T>, &arg, file, line);
        return arg.out;
    }
};

inline coalesced_group coalesced_threads(SIMT_SITE)
{
    return coalesced_group(__activemask(SIMT_HERE));
}

template <unsigned N, class Parent = void> class thread_block_tile;

template <unsigned N> class thread_block_tile<N, void> : public coalesced_group
{
    static_assert(N && N <= 32 && !(N & (N - 1)), "tiles of more than 32 threads: GPU only");

  public:
    static constexpr unsigned num_threads()
    {
        return N;
    }
    static constexpr unsigned size()
    {
        return N;
    }
    template <class T> T shfl(T value, int rank, SIMT_SITE) const
    {
        return coalesced_group::shfl(value, rank & (int)(N - 1), SIMT_HERE);
    }
    template <class T> T shfl_xor(T value, unsigned flip, SIMT_SITE) const
    {
        const unsigned rank = this->thread_rank(), other = rank ^ flip;
        return this->move(value, this->lane_of(other < N ? other : rank), SIMT_HERE);
    }
    using coalesced_group::coalesced_group;
};

template <unsigned N, class Parent> class thread_block_tile : public thread_block_tile<N, void>
{
  public:
    using thread_block_tile<N, void>::thread_block_tile;
};

template <unsigned N, class Parent> inline thread_block_tile<N, Parent> tiled_partition(const Parent &parent, SIMT_SITE)
{
    return thread_block_tile<N, Parent>(parent.simt_part(N, SIMT_HERE), parent.thread_rank() / N,
                                        (parent.num_threads() + N - 1) / N);
}

inline thread_group tiled_partition(const thread_group &parent, unsigned width, SIMT_SITE)
{
    return thread_group(parent.simt_part(width, SIMT_HERE));
}

inline coalesced_group tiled_partition(const coalesced_group &parent, unsigned width, SIMT_SITE)
{
    return coalesced_group(parent.simt_part(width, SIMT_HERE), parent.thread_rank() / width,
                           (parent.num_threads() + width - 1) / width);
}

/* The second of the two are those where the predicate holds. */
inline coalesced_group binary_partition(const coalesced_group &parent, bool predicate, SIMT_SITE)
{
    const unsigned all = parent.simt_lanes(), held = __ballot_sync(all, predicate, SIMT_HERE);
    if (!held || held == all)
        return coalesced_group(all);
    return coalesced_group(predicate ? held : all & ~held, predicate, 2);
}

/* In the order of their first lanes. */
template <class T> inline coalesced_group labeled_partition(const coalesced_group &parent, T label, SIMT_SITE)
{
    const unsigned lanes = __match_any_sync(parent.simt_lanes(), label, SIMT_HERE), first = lanes & -lanes;
    const unsigned firsts = __ballot_sync(parent.simt_lanes(), first == 1u << simt_lane(), SIMT_HERE);
    return coalesced_group(lanes, (unsigned)__builtin_popcount(firsts & (first - 1)),
                           (unsigned)__builtin_popcount(firsts));
}

inline coalesced_group labeled_partition(const coalesced_group &parent, bool label, SIMT_SITE)
{
    return binary_partition(parent, label, SIMT_HERE);
}

template <class Group> inline void sync(const Group &group, SIMT_SITE)
{
    group.sync(SIMT_HERE);
}

template <class Group> inline unsigned thread_rank(const Group &group)
{
    return group.thread_rank();
}

template <class Group> inline unsigned group_size(const Group &group)
{
    return group.num_threads();
}
} // namespace cooperative_groups

#endif
