/* What an extension's file uses around its tensors: checks, dispatch by type, streams and guards, and bindings, of
   which nothing is compiled. See tensor.h. */
#ifndef STANDIN_EXTENSION_H
#define STANDIN_EXTENSION_H
#pragma GCC system_header /* no warnings of a user's file come from here */

#include "engine/standin/functions.h"

#include <math.h>
#include <tuple>

namespace c10
{
namespace cuda
{
struct CUDAStream {
    cudaStream_t on = nullptr;
    operator cudaStream_t() const
    {
        return on;
    }
    cudaStream_t stream() const
    {
        return on;
    }
};
inline CUDAStream getCurrentCUDAStream(int = -1)
{
    return {};
}
inline CUDAStream getDefaultCUDAStream(int = -1)
{
    return {};
}
inline int current_device()
{
    return 0;
}
struct CUDAGuard {
    template <class Where> explicit CUDAGuard(const Where &) {}
};
struct OptionalCUDAGuard {
    OptionalCUDAGuard() = default;
    template <class Where> explicit OptionalCUDAGuard(const Where &) {}
};
} // namespace cuda
struct DeviceGuard {
    explicit DeviceGuard(Device) {}
};
} // namespace c10

namespace at
{
using at::Tensor;
struct DeviceGuard : c10::DeviceGuard {
    using c10::DeviceGuard::DeviceGuard;
};
inline Device device_of(const Tensor &tensor)
{
    return tensor.device();
}
namespace cuda
{
using namespace c10::cuda;
inline cudaDeviceProp *getDeviceProperties(int device)
{
    static cudaDeviceProp properties;
    standin_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    return &properties;
}
inline cudaDeviceProp *getCurrentDeviceProperties()
{
    return getDeviceProperties(0);
}
} // namespace cuda
} // namespace at

namespace torch
{
using namespace at;
using at::Tensor;
namespace cuda
{
inline bool is_available()
{
    return true;
}
} // namespace cuda
} // namespace torch

namespace torch
{
template <class Function> Function *wrap_pybind_function(Function *function)
{
    return function;
}
} // namespace torch

#define TORCH_CHECK(condition, ...)                                                                                    \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            const std::string standin_said = ::c10::str(__VA_ARGS__);                                                  \
            ::at::standin_throw(standin_said.empty() ? "TORCH_CHECK failed: " #condition : standin_said);              \
        }                                                                                                              \
    } while (0)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ASSERT(condition) TORCH_CHECK(condition)
#define AT_ERROR(...) TORCH_CHECK(false, __VA_ARGS__)
#define TORCH_WARN(...) ((void)0)
#define C10_CUDA_CHECK(call) ::at::standin_cuda((call), #call)
#define AT_CUDA_CHECK C10_CUDA_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK C10_CUDA_KERNEL_LAUNCH_CHECK

/* AT_DISPATCH_...(type, "name", [&] { ... scalar_t ... }): the function is compiled for each type, and one is called.
 */
#define AT_DISPATCH_CASE(code, ...)                                                                                    \
    case code: {                                                                                                       \
        using scalar_t [[maybe_unused]] = typename ::at::standin_scalar<code>::type;                                   \
        __VA_ARGS__();                                                                                                 \
        break;                                                                                                         \
    }
#define AT_DISPATCH_SWITCH(type, name, ...)                                                                            \
    do {                                                                                                               \
        const ::at::ScalarType standin_of = (type);                                                                    \
        switch (standin_of) {                                                                                          \
            __VA_ARGS__                                                                                                \
        default:                                                                                                       \
            ::at::standin_throw(::c10::str("\"", name, "\" not implemented for '", standin_of, "'"));                  \
        }                                                                                                              \
    } while (0)
#define STANDIN_FLOATS(...)                                                                                            \
    AT_DISPATCH_CASE(::at::ScalarType::Double, __VA_ARGS__) AT_DISPATCH_CASE(::at::ScalarType::Float, __VA_ARGS__)
#define STANDIN_HALVES(...)                                                                                            \
    AT_DISPATCH_CASE(::at::ScalarType::Half, __VA_ARGS__) AT_DISPATCH_CASE(::at::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) AT_DISPATCH_SWITCH(type, name, STANDIN_FLOATS(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...)                                                           \
    AT_DISPATCH_FLOATING_TYPES_AND(::at::ScalarType::Half, type, name, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(one, type, name, ...)                                                           \
    AT_DISPATCH_SWITCH(type, name, STANDIN_FLOATS(__VA_ARGS__) AT_DISPATCH_CASE(one, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(one, two, type, name, ...)                                                     \
    AT_DISPATCH_SWITCH(                                                                                                \
        type, name, STANDIN_FLOATS(__VA_ARGS__) AT_DISPATCH_CASE(one, __VA_ARGS__) AT_DISPATCH_CASE(two, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...) AT_DISPATCH_SWITCH(type, name, STANDIN_HALVES(__VA_ARGS__))

namespace at
{
template <ScalarType of> struct standin_scalar;
#define TYPE(name, cpp, code)                                                                                          \
    template <> struct standin_scalar<ScalarType::name> {                                                              \
        using type = cpp;                                                                                              \
    };
STANDIN_TYPES(TYPE)
#undef TYPE
} // namespace at

namespace pybind11
{
struct arg {
    explicit arg(const char *) {}
    template <class T> arg &operator=(const T &)
    {
        return *this;
    }
    arg &noconvert(bool = true)
    {
        return *this;
    }
    arg &none(bool = true)
    {
        return *this;
    }
};
struct none {
};
inline namespace literals
{
inline arg operator""_a(const char *name, size_t)
{
    return arg(name);
}
} // namespace literals
} // namespace pybind11
namespace py = pybind11;

/* Templates that nobody calls. */
#define STANDIN_JOIN_(a, b) a##b
#define STANDIN_JOIN(a, b) STANDIN_JOIN_(a, b)
#define STANDIN_BINDINGS(m)                                                                                            \
    template <class Module> [[maybe_unused]] static void STANDIN_JOIN(standin_bindings_, __LINE__)(Module & m)
#define PYBIND11_MODULE(name, m) STANDIN_BINDINGS(m)
#define TORCH_LIBRARY(space, m) STANDIN_BINDINGS(m)
#define TORCH_LIBRARY_FRAGMENT(space, m) STANDIN_BINDINGS(m)
#define TORCH_LIBRARY_IMPL(space, key, m) STANDIN_BINDINGS(m)
#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME extension
#endif

#endif
