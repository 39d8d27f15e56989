/* Stands in for PyTorch's C++ API, so that an extension's file compiles and runs without PyTorch, on the CPU executor
   and by nvcc: tensors with strides over device memory, what host code makes them from, and nothing that computes but
   max() and min(), by which host code asks for the longest sequence.
   Written after https://docs.pytorch.org/cppdocs; names and meanings are PyTorch's. What is not here does not compile.
 */
#ifndef STANDIN_TENSOR_H
#define STANDIN_TENSOR_H
#pragma GCC system_header /* no warnings of a user's file come from here */

#include "engine/standin/accessor.h"
#include "engine/standin/types.h"

#include <memory>
#include <string.h>

namespace at
{
/* Memory of a tensor on the CPU. The executor runs kernels on the CPU too, and hides it from them as a GPU does. */
#if defined(__CUDACC__) && !defined(SIMT_HOST)
inline void *standin_host_memory(size_t bytes)
{
    return malloc(bytes);
}
inline void standin_host_free(void *memory)
{
    free(memory);
}
#else
inline void *standin_host_memory(size_t bytes)
{
    return simt_allocate_host(bytes);
}
inline void standin_host_free(void *memory)
{
    simt_release(memory);
}
#endif

/* Memory of a tensor; freed with the last tensor on it. */
struct standin_storage {
    void *memory = nullptr;
    bool on_device = true;
    standin_storage(size_t bytes, Device where) : on_device(where.is_cuda())
    {
        if (on_device)
            standin_cuda(cudaMalloc(&memory, std::max<size_t>(bytes, 1)), "cudaMalloc");
        else if (!(memory = standin_host_memory(std::max<size_t>(bytes, 1))))
            throw std::bad_alloc();
    }
    standin_storage(const standin_storage &) = delete;
    ~standin_storage()
    {
        if (on_device)
            cudaFree(memory);
        else
            standin_host_free(memory);
    }
};

class Tensor
{
  public:
    using asc_tensor = void; /* run.h: may be assigned to an array of a run */

    Tensor() = default;
    /* An array of a run, see run.h: not owned. */
    template <class Array, class = decltype(&Array::ask_shape)>
    Tensor(const Array &array)
        : data_(static_cast<char *>(array.at)), sizes_(array.size, array.size + array.dims),
          strides_(array.stride, array.stride + array.dims), options_(standin_type(array.dtype))
    {
        options_ = options_.device(kCUDA);
        array.ask_shape();
    }
    Tensor(IntArrayRef sizes, const TensorOptions &options) : sizes_(sizes.vec()), options_(options)
    {
        strides_.resize(sizes_.size());
        int64_t n = 1;
        for (const int64_t size : sizes_)
            if (size < 0)
                standin_throw(str("a tensor of ", sizes));
        for (size_t i = sizes_.size(); i-- > 0; n *= sizes_[i])
            strides_[i] = n;
        storage_ = std::make_shared<standin_storage>(static_cast<size_t>(n) * element_size(), options.where);
        data_ = static_cast<char *>(storage_->memory);
    }

    Tensor(void *memory, IntArrayRef sizes, IntArrayRef strides, const TensorOptions &options)
        : data_(static_cast<char *>(memory)), sizes_(sizes.vec()), strides_(strides.vec()), options_(options)
    {
        if (sizes_.size() != strides_.size())
            standin_throw(str("a tensor of ", sizes, " with strides ", strides));
    }

    /* Of the same sizes and dense, its strides in the same order: what torch's *_like, clone and to() give. */
    Tensor like(const TensorOptions &options) const
    {
        std::vector<size_t> order(sizes_.size());
        for (size_t i = 0; i < order.size(); i++)
            order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides_[a] > strides_[b]; });
        Tensor other(sizes_, options);
        int64_t n = 1;
        for (size_t i = order.size(); i-- > 0; n *= sizes_[order[i]])
            other.strides_[order[i]] = n;
        return other;
    }

    bool defined() const
    {
        return data_ != nullptr;
    }
    int64_t dim() const
    {
        return static_cast<int64_t>(sizes_.size());
    }
    int64_t ndimension() const
    {
        return dim();
    }
    IntArrayRef sizes() const
    {
        return sizes_;
    }
    IntArrayRef strides() const
    {
        return strides_;
    }
    int64_t size(int64_t i) const
    {
        return sizes_[place(i)];
    }
    int64_t stride(int64_t i) const
    {
        return strides_[place(i)];
    }
    int64_t numel() const
    {
        int64_t n = 1;
        for (const int64_t size : sizes_)
            n *= size;
        return n;
    }
    size_t element_size() const
    {
        return elementSize(options_.scalar);
    }
    size_t itemsize() const
    {
        return element_size();
    }
    size_t nbytes() const
    {
        return static_cast<size_t>(numel()) * element_size();
    }
    ScalarType scalar_type() const
    {
        return options_.scalar;
    }
    ScalarType dtype() const
    {
        return options_.scalar;
    }
    TensorOptions options() const
    {
        return options_;
    }
    const TensorOptions &type() const /* .is_cuda() of the deprecated type() */
    {
        return options_;
    }
    Device device() const
    {
        return options_.where;
    }
    int get_device() const
    {
        return options_.where.index();
    }
    bool is_cuda() const
    {
        return options_.where.is_cuda();
    }
    bool is_cpu() const
    {
        return options_.where.is_cpu();
    }
    bool requires_grad() const
    {
        return false;
    }
    bool is_contiguous() const
    {
        int64_t n = 1;
        for (size_t i = sizes_.size(); i-- > 0; n *= sizes_[i])
            if (sizes_[i] != 1 && strides_[i] != n)
                return false;
        return true;
    }

    void *data_ptr() const
    {
        return data_;
    }
    void *mutable_data_ptr() const
    {
        return data_;
    }
    const void *const_data_ptr() const
    {
        return data_;
    }
    template <class T> T *data_ptr() const
    {
        using Bare = std::remove_const_t<T>;
        if (CppTypeToScalarType<Bare>::value != options_.scalar)
            standin_throw(
                str("expected scalar type ", CppTypeToScalarType<Bare>::value, " but found ", options_.scalar));
        return reinterpret_cast<T *>(data_);
    }
    template <class T> T *mutable_data_ptr() const
    {
        return data_ptr<T>();
    }
    template <class T> const T *const_data_ptr() const
    {
        return data_ptr<T>();
    }
    template <class T> T *data() const
    {
        return data_ptr<T>();
    }
    template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
    PackedTensorAccessor<T, N, Traits, int32_t> packed_accessor32() const
    {
        return accessor<T, N, Traits, int32_t>();
    }
    template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
    PackedTensorAccessor<T, N, Traits, int64_t> packed_accessor64() const
    {
        return accessor<T, N, Traits, int64_t>();
    }

    Tensor transpose(int64_t a, int64_t b) const
    {
        Tensor other = *this;
        std::swap(other.sizes_[place(a)], other.sizes_[place(b)]);
        std::swap(other.strides_[place(a)], other.strides_[place(b)]);
        return other;
    }
    Tensor t() const
    {
        return transpose(0, 1);
    }
    Tensor permute(IntArrayRef order) const
    {
        Tensor other = *this;
        for (size_t i = 0; i < order.size(); i++) {
            other.sizes_[i] = size(order[i]);
            other.strides_[i] = stride(order[i]);
        }
        return other;
    }
    Tensor unsqueeze(int64_t at) const
    {
        Tensor other = *this;
        const size_t i = static_cast<size_t>(at < 0 ? at + dim() + 1 : at);
        other.strides_.insert(other.strides_.begin() + static_cast<long>(i),
                              i < sizes_.size() ? sizes_[i] * strides_[i] : 1);
        other.sizes_.insert(other.sizes_.begin() + static_cast<long>(i), 1);
        return other;
    }
    Tensor squeeze() const
    {
        Tensor other = *this;
        other.sizes_.clear();
        other.strides_.clear();
        for (size_t i = 0; i < sizes_.size(); i++)
            if (sizes_[i] != 1) {
                other.sizes_.push_back(sizes_[i]);
                other.strides_.push_back(strides_[i]);
            }
        return other;
    }
    Tensor squeeze(int64_t at) const
    {
        Tensor other = *this;
        const size_t i = place(at);
        if (sizes_[i] == 1) {
            other.sizes_.erase(other.sizes_.begin() + static_cast<long>(i));
            other.strides_.erase(other.strides_.begin() + static_cast<long>(i));
        }
        return other;
    }
    Tensor narrow(int64_t along, int64_t start, int64_t length) const
    {
        Tensor other = *this;
        const size_t i = place(along);
        if (start < 0)
            start += sizes_[i];
        if (start < 0 || length < 0 || start + length > sizes_[i])
            standin_throw(str("start (", start, ") + length (", length, ") exceeds dimension size (", sizes_[i], ")"));
        other.data_ += start * strides_[i] * static_cast<int64_t>(element_size());
        other.sizes_[i] = length;
        return other;
    }
    Tensor slice(int64_t along = 0, optional<int64_t> start = nullopt, optional<int64_t> end = nullopt,
                 int64_t step = 1) const
    {
        if (step <= 0)
            standin_throw("slice step must be positive");
        const int64_t n = size(along), first = start.value_or(0), last = end.value_or(n);
        const int64_t from = std::clamp<int64_t>(first < 0 ? first + n : first, 0, n);
        const int64_t to = std::clamp<int64_t>(last < 0 ? last + n : last, from, n);
        Tensor other = narrow(along, from, to - from);
        other.sizes_[place(along)] = (to - from + step - 1) / step;
        other.strides_[place(along)] *= step;
        return other;
    }
    Tensor index(std::initializer_list<indexing::TensorIndex> indices) const
    {
        using Kind = indexing::TensorIndex::Kind;
        Tensor other = *this;
        int64_t at = 0, left = 0; /* left: dimensions that the indices behind an ellipsis take */
        for (const indexing::TensorIndex &one : indices)
            left += one.kind == Kind::integer || one.kind == Kind::slice;
        if (left > dim())
            standin_throw(str("too many indices for tensor of dimension ", dim()));
        for (const indexing::TensorIndex &one : indices) {
            left -= one.kind == Kind::integer || one.kind == Kind::slice;
            if (one.kind == Kind::integer)
                other = other.select(at, one.at);
            else if (one.kind == Kind::slice)
                other = other.slice(at, one.slice.start(), one.slice.stop(), one.slice.step()), at++;
            else if (one.kind == Kind::none)
                other = other.unsqueeze(at++);
            else
                at = other.dim() - left;
        }
        return other;
    }
    Tensor select(int64_t along, int64_t at) const
    {
        if (at < -size(along) || at >= size(along))
            standin_throw(str("select(): index ", at, " out of range for tensor of size ", sizes()));
        Tensor other = narrow(along, at, 1);
        const long i = static_cast<long>(place(along));
        other.sizes_.erase(other.sizes_.begin() + i);
        other.strides_.erase(other.strides_.begin() + i);
        return other;
    }
    Tensor operator[](int64_t i) const
    {
        return select(0, i);
    }
    Tensor expand(IntArrayRef sizes) const
    {
        Tensor other = *this;
        if (sizes.size() < sizes_.size())
            standin_throw(str("expand to ", sizes, ": fewer dimensions than the tensor's ", this->sizes()));
        const size_t fresh = sizes.size() - sizes_.size();
        other.sizes_.insert(other.sizes_.begin(), fresh, 1);
        other.strides_.insert(other.strides_.begin(), fresh, 0);
        for (size_t i = 0; i < sizes.size(); i++) {
            if (sizes[i] == other.sizes_[i] || (sizes[i] == -1 && i >= fresh))
                continue;
            if (other.sizes_[i] != 1 || sizes[i] < 0)
                standin_throw(str("expand to ", sizes, ": the tensor's sizes are ", this->sizes()));
            other.sizes_[i] = sizes[i];
            other.strides_[i] = 0;
        }
        return other;
    }
    Tensor view(IntArrayRef sizes) const
    {
        if (!is_contiguous())
            standin_throw("view size is not compatible with input tensor's size and stride; use .reshape(...) instead");
        return reshape(sizes);
    }
    Tensor reshape(IntArrayRef sizes) const
    {
        Tensor other = contiguous();
        std::vector<int64_t> wanted = sizes.vec();
        int64_t n = 1, *open = nullptr;
        for (int64_t &size : wanted)
            (size == -1 ? *(open = &size) : n) *= size == -1 ? -1 : size;
        if (open)
            *open = n ? numel() / n : 0;
        other.sizes_ = wanted;
        other.strides_.resize(wanted.size());
        n = 1;
        for (size_t i = wanted.size(); i-- > 0; n *= wanted[i])
            other.strides_[i] = n;
        if (n != numel())
            standin_throw(str("shape ", sizes, " is invalid for input of size ", numel()));
        return other;
    }
    Tensor flatten(int64_t from = 0, int64_t to = -1) const
    {
        std::vector<int64_t> sizes(sizes_.begin(), sizes_.begin() + static_cast<long>(place(from)));
        int64_t n = 1;
        for (size_t i = place(from); i <= place(to); i++)
            n *= sizes_[i];
        sizes.push_back(n);
        sizes.insert(sizes.end(), sizes_.begin() + static_cast<long>(place(to)) + 1, sizes_.end());
        return reshape(sizes);
    }

    Tensor contiguous() const
    {
        if (is_contiguous())
            return *this;
        Tensor other(sizes_, options_);
        other.copy_(*this);
        return other;
    }
    Tensor clone() const
    {
        Tensor other = like(options_);
        other.copy_(*this);
        return other;
    }
    Tensor detach() const
    {
        return *this;
    }
    Tensor to(ScalarType type) const
    {
        return to(options_.dtype(type));
    }
    Tensor to(Device device) const
    {
        return to(options_.device(device));
    }
    Tensor to(const TensorOptions &options) const
    {
        if (options.scalar == options_.scalar && options.where == options_.where)
            return *this;
        Tensor other = like(options);
        other.copy_(*this);
        return other;
    }
    Tensor to(Device device, ScalarType type) const
    {
        return to(options_.device(device).dtype(type));
    }
    Tensor cpu() const
    {
        return to(Device(kCPU));
    }
    Tensor cuda() const
    {
        return to(Device(kCUDA));
    }
    Tensor to_type(ScalarType type) const
    {
        return to(type);
    }

    /* Through host memory: host code copies where a layout does not suit it, and no kernel is to appear beside its own.
     */
    const Tensor &copy_(const Tensor &from) const
    {
        if (from.numel() != numel())
            standin_throw(str("a tensor of ", from.sizes(), " does not fit one of ", sizes()));
        const std::vector<char> values = from.gather();
        if (from.options_.scalar == options_.scalar)
            scatter(values);
        else
            scatter(convert(values, from.options_.scalar, options_.scalar));
        return *this;
    }
    template <class T> const Tensor &fill_(T value) const
    {
        const double number = static_cast<double>(value);
        std::vector<char> one(sizeof number), values;
        memcpy(one.data(), &number, sizeof number);
        one = convert(one, ScalarType::Double, options_.scalar);
        for (int64_t i = 0; i < numel(); i++)
            values.insert(values.end(), one.begin(), one.end());
        scatter(values);
        return *this;
    }
    const Tensor &zero_() const
    {
        return fill_(0);
    }
    template <class T> T item() const
    {
        T value;
        if (numel() != 1)
            standin_throw(str("a Tensor with ", numel(), " elements cannot be converted to Scalar"));
        const std::vector<char> values = convert(gather(), options_.scalar, CppTypeToScalarType<T>::value);
        memcpy(&value, values.data(), sizeof value);
        return value;
    }
    Tensor max() const
    {
        return extreme(1);
    }
    Tensor min() const
    {
        return extreme(-1);
    }

    /* run.h: the values of an array of a run. */
    template <class Array> void asc_store(Array &array) const
    {
        const Tensor to(array);
        if (to.squeeze().sizes_ != squeeze().sizes_ || to.options_.scalar != options_.scalar)
            standin_throw(str("the host code returns ", options_.scalar, " ", sizes(), " where ", to.options_.scalar,
                              " ", to.sizes(), " is wanted"));
        if (to.data_ != data_ || to.squeeze().strides_ != squeeze().strides_)
            to.copy_(*this);
    }

  private:
    std::shared_ptr<standin_storage> storage_;
    char *data_ = nullptr;
    std::vector<int64_t> sizes_, strides_;
    TensorOptions options_;

    size_t place(int64_t i) const
    {
        const int64_t from_begin = i < 0 ? i + dim() : i;
        if (from_begin < 0 || from_begin >= dim())
            standin_throw(str("Dimension out of range (a tensor of ", dim(), " dimensions has none at ", i, ")"));
        return static_cast<size_t>(from_begin);
    }
    template <class T, size_t N, template <class> class Traits, class Index>
    PackedTensorAccessor<T, N, Traits, Index> accessor() const
    {
        PackedTensorAccessor<T, N, Traits, Index> a = {data_ptr<T>(), {}, {}};
        if (dim() != static_cast<int64_t>(N))
            standin_throw(str("an accessor of ", N, " dimensions of a tensor of ", dim()));
        for (size_t i = 0; i < N; i++) {
            a.sizes_[i] = static_cast<int32_t>(sizes_[i]);
            a.strides_[i] = static_cast<int32_t>(strides_[i]);
        }
        return a;
    }
    static ScalarType standin_type(int dtype)
    {
        enum {
#define DTYPE(id, safetensors, bytes, name) code_##id,
#include "engine/base/dtypes.def"
#undef DTYPE
            code_NONE
        };
#define TYPE(name, type, code)                                                                                         \
    if (dtype == code_##code)                                                                                          \
        return ScalarType::name;
        STANDIN_TYPES(TYPE)
#undef TYPE
        standin_throw("attnscope's stand-in for torch has no tensors of this element type: use pointers");
    }
    /* How many elements lie from the first to the last. */
    int64_t span() const
    {
        int64_t n = 1;
        for (size_t i = 0; i < sizes_.size(); i++)
            n += (sizes_[i] - 1) * strides_[i];
        return numel() ? n : 0;
    }
    template <class Visit> void each(Visit visit) const /* the place of each element, in the order of the indices */
    {
        std::vector<int64_t> at(sizes_.size(), 0);
        int64_t place = 0;
        for (int64_t n = numel(), done = 0; done < n; done++) {
            visit(done, place);
            for (size_t i = sizes_.size(); i-- > 0;) {
                place += strides_[i];
                if (++at[i] < sizes_[i])
                    break;
                place -= sizes_[i] * strides_[i];
                at[i] = 0;
            }
        }
    }
    Tensor extreme(int sign) const
    {
        const size_t size = element_size();
        const std::vector<char> values = gather();
        size_t at = 0;
        if (values.empty())
            standin_throw(str("max() or min() of a tensor of ", sizes()));
        for (size_t i = 0; i < values.size(); i += size) {
            const double value = sign * number(&values[i], options_.scalar);
            if (value > sign * number(&values[at], options_.scalar) || value != value)
                at = i;
            if (value != value)
                break;
        }
        const Tensor one({}, options_);
        one.scatter(std::vector<char>(values.begin() + static_cast<std::ptrdiff_t>(at),
                                      values.begin() + static_cast<std::ptrdiff_t>(at + size)));
        return one;
    }
    std::vector<char> lying() const
    {
        std::vector<char> bytes(static_cast<size_t>(span()) * element_size());
        if (is_cuda())
            standin_cuda(cudaMemcpy(bytes.data(), data_, bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        else
            memcpy(bytes.data(), data_, bytes.size());
        return bytes;
    }
    std::vector<char> gather() const
    {
        const size_t size = element_size();
        const std::vector<char> from = lying();
        if (is_contiguous())
            return from;
        std::vector<char> values(nbytes());
        each([&](int64_t i, int64_t place) {
            memcpy(&values[static_cast<size_t>(i) * size], &from[static_cast<size_t>(place) * size], size);
        });
        return values;
    }
    void scatter(const std::vector<char> &values) const
    {
        const size_t size = element_size();
        if (!numel())
            return;
        const bool dense = is_contiguous();
        std::vector<char> bytes = dense ? values : lying();
        if (!dense)
            each([&](int64_t i, int64_t place) {
                memcpy(&bytes[static_cast<size_t>(place) * size], &values[static_cast<size_t>(i) * size], size);
            });
        if (is_cuda())
            standin_cuda(cudaMemcpy(data_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
        else
            memcpy(data_, bytes.data(), bytes.size());
    }
    static double number(const char *at, ScalarType type)
    {
        switch (type) {
#define TYPE(name, type, code)                                                                                         \
    case ScalarType::name: {                                                                                           \
        type value;                                                                                                    \
        memcpy(static_cast<void *>(&value), at, sizeof value);                                                         \
        return standin_double(value);                                                                                  \
    }
            STANDIN_TYPES(TYPE)
#undef TYPE
        case ScalarType::Undefined:
            break;
        }
        return 0;
    }
    static double standin_double(__half value)
    {
        return static_cast<double>(__half2float(value));
    }
    static double standin_double(__nv_bfloat16 value)
    {
        return static_cast<double>(__bfloat162float(value));
    }
    template <class T> static std::enable_if_t<std::is_arithmetic<T>::value, double> standin_double(T value)
    {
        return static_cast<double>(value);
    }
    static std::vector<char> convert(const std::vector<char> &values, ScalarType from, ScalarType to)
    {
        const size_t n = values.size() / elementSize(from), size = elementSize(to);
        std::vector<char> out(n * size);
        for (size_t i = 0; i < n; i++) {
            const double value = number(&values[i * elementSize(from)], from);
            switch (to) {
#define TYPE(name, type, code)                                                                                         \
    case ScalarType::name: {                                                                                           \
        const type made = type(value);                                                                                 \
        memcpy(&out[i * size], static_cast<const void *>(&made), sizeof made);                                         \
        break;                                                                                                         \
    }
                STANDIN_TYPES(TYPE)
#undef TYPE
            case ScalarType::Undefined:
                break;
            }
        }
        return out;
    }
};
} // namespace at

#endif
