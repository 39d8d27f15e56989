/* tests/simt/groups.cu on a GPU, as it is on the CPU: what differs is printed, a line each. */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

template <class... Params, class... Args>
static int simt_launch_kernel(const char *name, void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
                              Args... args)
{
    kernel<<<grid, block, shared_bytes>>>(args...);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error)
        printf("%s: %s\n", name, cudaGetErrorString(error));
    return error != cudaSuccess;
}

#include "tests/simt/groups.cu"

int main()
{
    return simt_case("all");
}
