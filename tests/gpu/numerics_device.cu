/* The first CUDA device behind struct numerics_device. */
#include "tests/gpu/numerics_cuda.h"

int numerics_cuda_status(const char **why)
{
    const cudaError_t sticky = cudaDeviceSynchronize(), last = cudaGetLastError();
    const cudaError_t error = sticky != cudaSuccess ? sticky : last;
    *why = cudaGetErrorString(error);
    return error == cudaSuccess ? 1 : -1;
}

static void *copy_in(const void *data, size_t bytes)
{
    void *device = nullptr;
    if (cudaMalloc(&device, bytes) == cudaSuccess && data)
        cudaMemcpy(device, data, bytes, cudaMemcpyHostToDevice);
    return device;
}

static int product(struct numerics_device *d, const struct vector_row *row, int tiles, const void *a, const void *b,
                   const void *c, uint32_t *out, const char **why)
{
    const struct vector_product p = vector_product(row->instruction);
    if (d->sm < p.first_sm || d->sm > p.last_sm) {
        *why = "not on this architecture";
        return 0;
    }
    const size_t n = (size_t)tiles * p.rows * p.columns, k = (size_t)p.k * row->chain;
    const size_t n_a = (size_t)tiles * p.rows * k, n_b = (size_t)tiles * p.columns * k, bytes = dtype_bytes(p.operand);
    void *const room[] = {copy_in(a, n_a * bytes), copy_in(b, n_b * bytes), copy_in(c, n * dtype_bytes(p.sum)),
                          copy_in(nullptr, n * sizeof *out)};
    cudaMemset(room[3], 0xA5, n * sizeof *out); /* what a kernel leaves out is no result by chance */
    struct product_arguments arguments = {room[0], room[1], room[2], (uint32_t *)room[3], tiles, (int)row->chain};
    int status = numerics_cuda_status(why);
    if (status == 1) {
        const int launched = p.rows == 64 ? numerics_launch_warpgroup(row->instruction, &arguments)
                                          : numerics_launch_warp(row->instruction, &arguments);
        status = numerics_cuda_status(why);
        if (status == 1 && !launched) {
            *why = "not compiled for this architecture";
            status = 0;
        }
        if (status == 1 && cudaMemcpy(out, room[3], n * sizeof *out, cudaMemcpyDeviceToHost) != cudaSuccess)
            status = numerics_cuda_status(why);
    }
    for (void *r : room)
        cudaFree(r);
    return status;
}

int numerics_cuda_open(struct numerics_device *d, const char **why)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || (error == cudaSuccess && count == 0)) {
        *why = cudaGetErrorString(error);
        return 0;
    }
    cudaDeviceProp properties;
    if (error != cudaSuccess || cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
        *why = cudaGetErrorString(error != cudaSuccess ? error : cudaGetLastError());
        return -1;
    }
    snprintf(d->name, sizeof d->name, "%s", properties.name);
    d->sm = properties.major * 10 + properties.minor;
    numerics_driver_version("/proc/driver/nvidia/version", d->kernel_driver, sizeof d->kernel_driver);
    cudaDriverGetVersion(&d->driver);
    cudaRuntimeGetVersion(&d->runtime);
    d->product = product;
    d->function = numerics_cuda_function;
    d->convert = numerics_cuda_convert;
    return numerics_cuda_status(why);
}
