/* Launching a kernel from C++. */
#ifndef SIMT_LAUNCH_H
#define SIMT_LAUNCH_H

#include "cuda_runtime.h"
#include "simt_keywords.h"

namespace simt
{
/* What __cluster_dims__ of the kernel that begins says. */
inline void cluster_dims(unsigned x, unsigned y = 1, unsigned z = 1)
{
    simt_cluster_dims(x, y, z);
}

template <class... Params> struct bound_kernel {
    void (*kernel)(Params...);
    std::tuple<typename std::decay<Params>::type...> args; /* copied once, as a GPU does, and passed to every thread */
    static void enter(void *self)
    {
        bound_kernel *bound = static_cast<bound_kernel *>(self);
        std::apply(bound->kernel, bound->args);
    }
};

/* An argument that is written 0: a number, or a null pointer. */
struct zero {
    template <class T> constexpr operator T *() const
    {
        return nullptr;
    }
    template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type> constexpr operator T() const
    {
        return 0;
    }
};
template <class Arg> using zero_as_number = typename std::conditional<std::is_same<Arg, zero>::value, int, Arg>::type;

/* What k<<<grid, block, shared_bytes, stream>>>(args...) is rewritten into: the arguments are copied once; each thread
   calls `call`, which calls k with them. As after an error on a GPU, launches behind one that failed do nothing. */
template <class Call> struct raw_launch_at {
    const char *name;
    Call call;
    dim3 grid, block;
    size_t shared_bytes;
    simt_dim cluster;
    template <class... Arg> struct bound {
        const Call *call;
        std::tuple<Arg...> args;
        static void enter(void *self)
        {
            bound *b = static_cast<bound *>(self);
            std::apply(*b->call, b->args);
        }
    };
    template <class... Arg> void operator()(Arg... arg) const /* by value: a static const member needs no definition */
    {
        if constexpr ((std::is_same<Arg, zero>::value || ...)) {
            if constexpr (std::is_invocable<const Call &, zero_as_number<Arg> &...>::value)
                return launch<zero_as_number<Arg>...>(std::move(arg)...);
        }
        launch<Arg...>(std::move(arg)...);
    }
    template <class... Arg> void launch(Arg... arg) const
    {
        bound<Arg...> b = {&call, {std::move(arg)...}};
        struct simt_launch launch = {};
        launch.grid = {grid.x, grid.y, grid.z};
        launch.block = {block.x, block.y, block.z};
        launch.shared_bytes = shared_bytes;
        launch.cluster = cluster;
        launch.entry = bound<Arg...>::enter;
        launch.args = &b;
        launch.name = name;
        if (!simt_error())
            simt_launch(&launch);
    }
};

template <class Call> struct raw_launch {
    const char *name;
    Call call;
    raw_launch(const char *kernel, Call c) : name(kernel), call(c) {}
    raw_launch_at<Call> at(dim3 grid, dim3 block, size_t shared_bytes = 0, struct CUstream_st * = nullptr,
                           simt_dim cluster = {}) const
    {
        return {name, call, grid, block, shared_bytes, cluster};
    }
};
} // namespace simt

/* A launch by its configuration. */
enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore = 0,
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
union cudaLaunchAttributeValue {
    struct {
        unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 simt_grid, simt_block;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
    /* gridDim and blockDim are macros that end in (): members of these names are functions. */
    dim3 &simt_gridDim()
    {
        return simt_grid;
    }
    dim3 &simt_blockDim()
    {
        return simt_block;
    }
};
template <class... Params, class... Args>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Params...),
                                             Args &&...args)
{
    simt_dim cluster = {};
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
            const auto &of = config->attrs[i].val.clusterDim;
            cluster = {of.x, of.y, of.z};
        }
    ::simt::raw_launch("cudaLaunchKernelEx", kernel)
        .at(config->simt_grid, config->simt_block, config->dynamicSmemBytes, config->stream,
            cluster)(static_cast<Params>(std::forward<Args>(args))...);
    return cudaGetLastError();
}

/* Headers name it, for clusters, whose launches hardly ever come to it. */
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **)
{
    simt_refuse_launch(
        "cudaLaunchKernelExC, a launch of an untyped pointer: GPU only: the types of its arguments are lost; "
        "<<<>>> and cudaLaunchKernelEx run");
    return cudaErrorNotSupported;
}

/* With a block on each multiprocessor. */
template <class Kernel>
static inline cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, Kernel, const cudaLaunchConfig_t *config)
{
    unsigned blocks = 1;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
            const auto &of = config->attrs[i].val.clusterDim;
            blocks = of.x * of.y * of.z;
        }
    *clusters = blocks ? simt_multiprocessors() / (int)blocks : 0;
    return cudaSuccess;
}

/* Runs kernel<<<grid, block, shared_bytes>>>(args...) to its end: 0, or -1 with simt_error(). */
template <class... Params, class... Args>
static inline int simt_launch_kernel(const char *name, void (*kernel)(Params...), dim3 grid, dim3 block,
                                     size_t shared_bytes, Args &&...args)
{
    static_assert(sizeof...(Params) == sizeof...(Args), "a kernel launch passes every parameter");
    simt::bound_kernel<Params...> bound = {kernel, {static_cast<Params>(std::forward<Args>(args))...}};
    struct simt_launch launch = {};
    launch.grid = {grid.x, grid.y, grid.z};
    launch.block = {block.x, block.y, block.z};
    launch.shared_bytes = shared_bytes;
    launch.entry = simt::bound_kernel<Params...>::enter;
    launch.args = &bound;
    launch.name = name;
    return simt_launch(&launch);
}

#endif
