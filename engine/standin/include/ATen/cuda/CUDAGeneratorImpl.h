#ifndef STANDIN_GENERATOR_H
#define STANDIN_GENERATOR_H

#include "engine/standin/extension.h"
#include <tuple>

#ifdef __CUDACC__
#define STANDIN_DEVICE __host__ __device__
#else
#define STANDIN_DEVICE
#endif

/* Random numbers have a seed and an offset, no generator. */
namespace at
{
struct Generator {
};
struct PhiloxCudaState {
    uint64_t seed = 0, offset = 0;
};
namespace cuda
{
namespace philox
{
STANDIN_DEVICE inline std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState state)
{
    return {state.seed, state.offset};
}
} // namespace philox
} // namespace cuda
} // namespace at

#endif
