/* Functions of PyTorch's C++ API that make tensors. See tensor.h. */
#ifndef STANDIN_FUNCTIONS_H
#define STANDIN_FUNCTIONS_H
#pragma GCC system_header /* no warnings of a user's file come from here */

#include "engine/standin/tensor.h"

namespace at
{
inline Tensor empty(IntArrayRef sizes, const TensorOptions &options = {})
{
    return Tensor(sizes, options);
}
template <class T> inline Tensor full(IntArrayRef sizes, T value, const TensorOptions &options = {})
{
    Tensor made(sizes, options);
    made.fill_(value);
    return made;
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions &options = {})
{
    return full(sizes, 0, options);
}
inline Tensor ones(IntArrayRef sizes, const TensorOptions &options = {})
{
    return full(sizes, 1, options);
}
inline Tensor empty_like(const Tensor &as, const TensorOptions &options)
{
    return as.like(options);
}
inline Tensor empty_like(const Tensor &as)
{
    return as.like(as.options());
}
template <class T> inline Tensor full_like(const Tensor &as, T value, const TensorOptions &options)
{
    const Tensor made = as.like(options);
    made.fill_(value);
    return made;
}
template <class T> inline Tensor full_like(const Tensor &as, T value)
{
    return full_like(as, value, as.options());
}
inline Tensor zeros_like(const Tensor &as)
{
    return full_like(as, 0);
}
inline Tensor zeros_like(const Tensor &as, const TensorOptions &options)
{
    return full_like(as, 0, options);
}
inline Tensor ones_like(const Tensor &as)
{
    return full_like(as, 1);
}
inline Tensor stack(const std::vector<Tensor> &parts, int64_t along = 0)
{
    std::vector<int64_t> sizes = parts.at(0).sizes().vec();
    along += along < 0 ? static_cast<int64_t>(sizes.size()) + 1 : 0;
    sizes.insert(sizes.begin() + static_cast<long>(along), static_cast<int64_t>(parts.size()));
    Tensor all = empty(sizes, parts[0].options());
    for (size_t i = 0; i < parts.size(); i++)
        all.select(along, static_cast<int64_t>(i)).copy_(parts[i]);
    return all;
}
inline Tensor cat(const std::vector<Tensor> &parts, int64_t along = 0)
{
    std::vector<int64_t> sizes = parts.at(0).sizes().vec();
    const size_t d = static_cast<size_t>(along < 0 ? along + parts[0].dim() : along);
    int64_t begin = 0;
    sizes[d] = 0;
    for (const Tensor &part : parts)
        sizes[d] += part.size(along);
    Tensor all = empty(sizes, parts[0].options());
    for (const Tensor &part : parts) {
        all.narrow(along, begin, part.size(along)).copy_(part);
        begin += part.size(along);
    }
    return all;
}
inline TensorOptions dtype(ScalarType type)
{
    return TensorOptions(type);
}
inline TensorOptions device(Device where)
{
    return TensorOptions(where);
}
inline Tensor reshape(const Tensor &as, IntArrayRef sizes)
{
    return as.reshape(sizes);
}
/* The memory stays its owner's. */
inline Tensor from_blob(void *memory, IntArrayRef sizes, IntArrayRef strides, const TensorOptions &options = {})
{
    return Tensor(memory, sizes, strides, options);
}
inline Tensor from_blob(void *memory, IntArrayRef sizes, const TensorOptions &options = {})
{
    std::vector<int64_t> strides(sizes.size());
    int64_t n = 1;
    for (size_t i = sizes.size(); i-- > 0; n *= sizes[i])
        strides[i] = n;
    return Tensor(memory, sizes, strides, options);
}
inline Tensor &sum_out(Tensor &, const Tensor &, IntArrayRef, bool = false)
{
    standin_throw("attnscope's stand-in for torch does not compute: at::sum_out");
}
} // namespace at

namespace torch
{
namespace nn
{
namespace functional
{
/* Of the mode kConstant. */
class PadFuncOptions
{
  public:
    PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
    PadFuncOptions &value(double value)
    {
        value_ = value;
        return *this;
    }
    const std::vector<int64_t> &pad() const
    {
        return pad_;
    }
    double value() const
    {
        return value_;
    }

  private:
    std::vector<int64_t> pad_;
    double value_ = 0;
};
inline at::Tensor pad(const at::Tensor &as, const PadFuncOptions &options)
{
    const std::vector<int64_t> &by = options.pad();
    std::vector<int64_t> sizes = as.sizes().vec();
    if (by.size() % 2)
        at::standin_throw("Padding length must be divisible by 2");
    if (by.size() / 2 > sizes.size())
        at::standin_throw("Padding length should be less than or equal to two times the input dimension");
    for (size_t i = 0; i < by.size(); i++) {
        if (by[i] < 0)
            at::standin_throw("attnscope's stand-in for torch does not pad by less than 0");
        sizes[sizes.size() - 1 - i / 2] += by[i];
    }
    const at::Tensor made = at::full(sizes, options.value(), as.options());
    at::Tensor inner = made;
    for (size_t i = 0; i < by.size(); i += 2) {
        const int64_t along = as.dim() - 1 - static_cast<int64_t>(i / 2);
        inner = inner.narrow(along, by[i], as.size(along));
    }
    inner.copy_(as);
    return made;
}
} // namespace functional
} // namespace nn
} // namespace torch

#endif
