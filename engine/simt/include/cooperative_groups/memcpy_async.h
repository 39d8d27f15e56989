/* Copies that a group issues together, as cp.async: each thread its pieces, to be waited for by all. */
#ifndef SIMT_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define SIMT_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include "../cooperative_groups.h"
#include "../cuda_pipeline_primitives.h"

namespace cooperative_groups
{
/* What cp.async cannot copy by its alignment is copied at once. */
template <class Group, class T>
inline void memcpy_async(const Group &group, T *to, const T *from, size_t bytes, SIMT_SITE)
{
    const size_t bits = (size_t)to | (size_t)from, piece = bits % 16 == 0  ? 16
                                                           : bits % 8 == 0 ? 8
                                                           : bits % 4 == 0 ? 4
                                                                           : 1;
    unsigned char *out = (unsigned char *)to;
    const unsigned char *in = (const unsigned char *)from;
    for (size_t i = group.thread_rank() * piece; i < bytes; i += group.num_threads() * piece) {
        if (piece > 1 && bytes - i >= piece)
            __pipeline_memcpy_async(out + i, in + i, piece, 0, SIMT_HERE);
        else
            for (size_t k = i; k < bytes && k < i + piece; k++)
                out[k] = in[k];
    }
    __pipeline_commit();
}

/* Of elements: as many as both have. */
template <class Group, class T>
inline void memcpy_async(const Group &group, T *to, size_t n_to, const T *from, size_t n_from, SIMT_SITE)
{
    memcpy_async(group, to, from, (n_to < n_from ? n_to : n_from) * sizeof(T), SIMT_HERE);
}

template <unsigned groups_left, class Group> inline void wait_prior(const Group &group, SIMT_SITE)
{
    __pipeline_wait_prior(groups_left);
    group.sync(SIMT_HERE);
}

template <class Group> inline void wait(const Group &group, SIMT_SITE)
{
    wait_prior<0>(group, SIMT_HERE);
}
} // namespace cooperative_groups

#endif
