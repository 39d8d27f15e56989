/* Types of PyTorch's C++ API: scalar types, sizes, devices, options, errors. See tensor.h. */
#ifndef STANDIN_TYPES_H
#define STANDIN_TYPES_H
#pragma GCC system_header /* no warnings of a user's file come from here */

#include <algorithm>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <stdint.h>
#include <string>
#include <vector>

namespace c10
{
using Half = __half;
using BFloat16 = __nv_bfloat16;

/* STANDIN_TYPE(name, C++ type, member of dtypes.def) */
#define STANDIN_TYPES(TYPE)                                                                                            \
    TYPE(Byte, uint8_t, U8)                                                                                            \
    TYPE(Char, int8_t, NONE)                                                                                           \
    TYPE(Int, int32_t, I32)                                                                                            \
    TYPE(Long, int64_t, I64)                                                                                           \
    TYPE(Half, Half, F16)                                                                                              \
    TYPE(Float, float, F32)                                                                                            \
    TYPE(Double, double, F64)                                                                                          \
    TYPE(Bool, bool, NONE)                                                                                             \
    TYPE(BFloat16, BFloat16, BF16)
enum class ScalarType : int8_t {
#define TYPE(name, type, code) name,
    STANDIN_TYPES(TYPE)
#undef TYPE
        Undefined
};
inline const char *toString(ScalarType type)
{
    switch (type) {
#define TYPE(name, type, code)                                                                                         \
    case ScalarType::name:                                                                                             \
        return #name;
        STANDIN_TYPES(TYPE)
#undef TYPE
    case ScalarType::Undefined:
        break;
    }
    return "Undefined";
}
inline size_t elementSize(ScalarType type)
{
    switch (type) {
#define TYPE(name, type, code)                                                                                         \
    case ScalarType::name:                                                                                             \
        return sizeof(type);
        STANDIN_TYPES(TYPE)
#undef TYPE
    case ScalarType::Undefined:
        break;
    }
    return 0;
}
template <class T> struct CppTypeToScalarType {
    static constexpr ScalarType value = ScalarType::Undefined;
};
#define TYPE(name, type, code)                                                                                         \
    template <> struct CppTypeToScalarType<type> {                                                                     \
        static constexpr ScalarType value = ScalarType::name;                                                          \
    };
STANDIN_TYPES(TYPE)
#undef TYPE

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
template <class... Part> std::string str(const Part &...part)
{
    std::ostringstream text;
    ((text << part), ...);
    return text.str();
}
inline std::ostream &operator<<(std::ostream &out, ScalarType type)
{
    return out << toString(type);
}

struct IntArrayRef {
    const int64_t *first = nullptr;
    size_t n = 0;
    IntArrayRef() = default; /* without it nvcc takes {} for an array of one 0 */
    IntArrayRef(std::initializer_list<int64_t> list) : first(list.begin()), n(list.size()) {}
    IntArrayRef(const std::vector<int64_t> &list) : first(list.data()), n(list.size()) {}
    IntArrayRef(const int64_t *data, size_t length) : first(data), n(length) {}
    template <size_t N> IntArrayRef(const int64_t (&list)[N]) : first(list), n(N) {}
    const int64_t *begin() const
    {
        return first;
    }
    const int64_t *end() const
    {
        return first + n;
    }
    size_t size() const
    {
        return n;
    }
    int64_t operator[](size_t i) const
    {
        return first[i];
    }
    std::vector<int64_t> vec() const
    {
        return {begin(), end()};
    }
    bool operator==(IntArrayRef other) const
    {
        return std::equal(begin(), end(), other.begin(), other.end());
    }
    bool operator!=(IntArrayRef other) const
    {
        return !(*this == other);
    }
};
inline std::ostream &operator<<(std::ostream &out, IntArrayRef sizes)
{
    out << '[';
    for (size_t i = 0; i < sizes.size(); i++)
        out << (i ? ", " : "") << sizes[i];
    return out << ']';
}

enum class DeviceType : int8_t { CPU, CUDA };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
struct Device {
    DeviceType kind;
    int number;
    Device(DeviceType type, int index = 0) : kind(type), number(index) {}
    bool is_cuda() const
    {
        return kind == kCUDA;
    }
    bool is_cpu() const
    {
        return kind == kCPU;
    }
    DeviceType type() const
    {
        return kind;
    }
    int index() const
    {
        return number;
    }
    bool operator==(const Device &other) const
    {
        return kind == other.kind && number == other.number;
    }
    bool operator!=(const Device &other) const
    {
        return !(*this == other);
    }
};
inline std::ostream &operator<<(std::ostream &out, const Device &device)
{
    return out << (device.is_cuda() ? "cuda" : "cpu");
}

struct TensorOptions {
    ScalarType scalar = ScalarType::Float;
    Device where = kCPU;
    TensorOptions() = default;
    TensorOptions(ScalarType type) : scalar(type) {}
    TensorOptions(Device device) : where(device) {}
    TensorOptions(DeviceType device) : where(device) {}
    TensorOptions dtype(ScalarType type) const
    {
        TensorOptions other = *this;
        other.scalar = type;
        return other;
    }
    TensorOptions device(Device device) const
    {
        TensorOptions other = *this;
        other.where = device;
        return other;
    }
    TensorOptions device(DeviceType type, int index) const
    {
        return device(Device(type, index));
    }
    TensorOptions requires_grad(bool) const
    {
        return *this;
    }
    ScalarType dtype() const
    {
        return scalar;
    }
    Device device() const
    {
        return where;
    }
    bool is_cuda() const
    {
        return where.is_cuda();
    }
    ScalarType scalarType() const
    {
        return scalar;
    }
};
inline bool operator==(const TensorOptions &options, ScalarType type)
{
    return options.scalar == type;
}

template <class T> using optional = std::optional<T>;
using std::nullopt;
} // namespace c10

namespace at
{
using namespace c10;

#define STANDIN_NAMES(NAME, type) constexpr ScalarType NAME = ScalarType::type;
STANDIN_NAMES(kByte, Byte)
STANDIN_NAMES(kUInt8, Byte)
STANDIN_NAMES(kChar, Char)
STANDIN_NAMES(kInt8, Char)
STANDIN_NAMES(kInt, Int)
STANDIN_NAMES(kInt32, Int)
STANDIN_NAMES(kLong, Long)
STANDIN_NAMES(kInt64, Long)
STANDIN_NAMES(kHalf, Half)
STANDIN_NAMES(kFloat16, Half)
STANDIN_NAMES(kBFloat16, BFloat16)
STANDIN_NAMES(kFloat, Float)
STANDIN_NAMES(kFloat32, Float)
STANDIN_NAMES(kDouble, Double)
STANDIN_NAMES(kFloat64, Double)
STANDIN_NAMES(kBool, Bool)
#undef STANDIN_NAMES

[[noreturn]] inline void standin_throw(const std::string &text)
{
    throw c10::Error(text);
}

namespace indexing
{
constexpr std::nullopt_t None = std::nullopt;
enum class EllipsisIndexType { Ellipsis };
constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
struct Slice {
    Slice(optional<int64_t> start = nullopt, optional<int64_t> stop = nullopt, optional<int64_t> step = nullopt)
        : start_(start), stop_(stop), step_(step)
    {
    }
    optional<int64_t> start() const
    {
        return start_;
    }
    optional<int64_t> stop() const
    {
        return stop_;
    }
    int64_t step() const
    {
        return step_.value_or(1);
    }

  private:
    optional<int64_t> start_, stop_, step_;
};
/* Without tensors as indices. */
struct TensorIndex {
    enum class Kind { none, ellipsis, integer, slice } kind;
    int64_t at = 0;
    Slice slice = {};
    TensorIndex(std::nullopt_t) : kind(Kind::none) {}
    TensorIndex(EllipsisIndexType) : kind(Kind::ellipsis) {}
    TensorIndex(const char *dots) : kind(Kind::ellipsis)
    {
        if (std::string(dots) != "...")
            standin_throw("Expected \"...\" to represent an ellipsis index");
    }
    template <class T, class = std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>>
    TensorIndex(T integer) : kind(Kind::integer), at(static_cast<int64_t>(integer))
    {
    }
    TensorIndex(Slice of) : kind(Kind::slice), slice(of) {}
};
} // namespace indexing

inline void standin_cuda(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        standin_throw(c10::str(what, ": ", cudaGetErrorString(status)));
}
} // namespace at

#endif
