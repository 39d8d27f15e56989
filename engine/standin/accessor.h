/* Tensors as kernels take them, by value, and index them with []. See tensor.h. */
#ifndef STANDIN_ACCESSOR_H
#define STANDIN_ACCESSOR_H
#pragma GCC system_header /* no warnings of a user's file come from here */

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

namespace at
{
template <class T> struct DefaultPtrTraits {
    using PtrType = T *;
};
template <class T> struct RestrictPtrTraits {
    using PtrType = T *__restrict__;
};

#if defined(__CUDACC__) && !defined(SIMT_HOST)
#define STANDIN_BOTH __host__ __device__
#else
#define STANDIN_BOTH
#endif
template <class T, int N> struct standin_row {
    T *at;
    const int32_t *stride;
    STANDIN_BOTH auto operator[](int64_t i) const -> decltype(auto)
    {
        if constexpr (N == 1)
            return (at[i * stride[0]]);
        else
            return standin_row<T, N - 1>{at + i * stride[0], stride + 1};
    }
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
struct PackedTensorAccessor {
    T *at;
    int32_t sizes_[N], strides_[N];
    STANDIN_BOTH auto operator[](int64_t i) const -> decltype(auto)
    {
        return standin_row<T, N>{at, strides_}[i];
    }
    STANDIN_BOTH int64_t size(int i) const
    {
        return sizes_[i];
    }
    STANDIN_BOTH int64_t stride(int i) const
    {
        return strides_[i];
    }
    STANDIN_BOTH T *data() const
    {
        return at;
    }
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = PackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = PackedTensorAccessor<T, N, Traits, int64_t>;
} // namespace at

#endif
