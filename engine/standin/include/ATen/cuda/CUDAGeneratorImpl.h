#ifndef STANDIN_GENERATOR_H
#define STANDIN_GENERATOR_H

#include "engine/standin/extension.h"
#include <mutex>
#include <tuple>

#ifdef __CUDACC__
#define STANDIN_DEVICE __host__ __device__
#else
#define STANDIN_DEVICE
#endif

namespace c10
{
namespace detail
{
constexpr uint64_t default_rng_seed_val = 67280421310721;
}
} // namespace c10

/* Random numbers have a seed and an offset: the generator counts what its kernels take, and draws nothing. */
namespace at
{
struct PhiloxCudaState {
    uint64_t seed = 0, offset = 0;
    PhiloxCudaState() = default;
    PhiloxCudaState(uint64_t of_seed, uint64_t of_offset) : seed(of_seed), offset(of_offset) {}
};
struct CUDAGeneratorImpl {
    std::mutex mutex_;
    uint64_t current_seed() const
    {
        return seed_;
    }
    void set_current_seed(uint64_t seed)
    {
        seed_ = seed;
        offset_ = 0;
    }
    std::pair<uint64_t, uint64_t> philox_engine_inputs(uint64_t increment)
    {
        const uint64_t before = offset_;
        offset_ += (increment + 3) / 4 * 4;
        return {seed_, before};
    }
    PhiloxCudaState philox_cuda_state(uint64_t increment)
    {
        const std::pair<uint64_t, uint64_t> inputs = philox_engine_inputs(increment);
        return {inputs.first, inputs.second};
    }

  private:
    uint64_t seed_ = c10::detail::default_rng_seed_val, offset_ = 0;
};
struct Generator {
    Generator() = default;
    explicit Generator(std::shared_ptr<CUDAGeneratorImpl> impl) : impl_(std::move(impl)) {}
    bool defined() const
    {
        return impl_ != nullptr;
    }
    template <class Impl> Impl *get() const
    {
        return impl_.get();
    }
    std::mutex &mutex() const
    {
        return impl_->mutex_;
    }
    uint64_t current_seed() const
    {
        return impl_->current_seed();
    }
    void set_current_seed(uint64_t seed) const
    {
        impl_->set_current_seed(seed);
    }

  private:
    std::shared_ptr<CUDAGeneratorImpl> impl_;
};
template <class Impl> Impl *check_generator(const optional<Generator> &gen)
{
    TORCH_CHECK(gen.has_value(), "Expected Generator but received nullopt");
    TORCH_CHECK(gen->defined(), "Generator with undefined implementation is not allowed");
    return gen->get<Impl>();
}
template <class Impl> Impl *get_generator_or_default(const optional<Generator> &gen, const Generator &default_gen)
{
    return gen.has_value() && gen->defined() ? check_generator<Impl>(gen) : check_generator<Impl>(default_gen);
}
namespace cuda
{
namespace detail
{
inline const Generator &getDefaultCUDAGenerator(int = -1)
{
    static const Generator generator(std::make_shared<CUDAGeneratorImpl>());
    return generator;
}
inline Generator createCUDAGenerator(int = -1)
{
    return Generator(std::make_shared<CUDAGeneratorImpl>());
}
} // namespace detail
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
