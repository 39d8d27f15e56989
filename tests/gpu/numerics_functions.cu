/* Functions and conversions, an argument per thread and turn. */
#include "tests/gpu/numerics_cuda.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

/* x and y to both halves of a register through a 16-bit instruction; the upper half back. */
#define HALVES_ASM(instruction, x)                                                                                     \
    ([](uint32_t both) {                                                                                               \
        uint32_t result;                                                                                               \
        asm(instruction " %0, %1;" : "=r"(result) : "r"(both));                                                        \
        return result >> 16;                                                                                           \
    }((uint32_t)(x) << 16 | (uint32_t)(x)))

__device__ static float f16_float(uint32_t code)
{
    return __half2float(__ushort_as_half((unsigned short)code));
}

__device__ static float bf16_float(uint32_t code)
{
    return __uint_as_float(code << 16);
}

template <int F> __device__ float evaluate(float x, float y, uint32_t code)
{
    float result = 0;
    (void)x;
    (void)y;
    (void)code;
    if constexpr (F == NUMERICS_EX2_FTZ)
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    if constexpr (F == NUMERICS_EX2)
        asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    if constexpr (F == NUMERICS_EXP2F)
        result = exp2f(x);
    if constexpr (F == NUMERICS_EXPF_FAST)
        result = __expf(x);
    if constexpr (F == NUMERICS_EXPF)
        result = expf(x);
    if constexpr (F == NUMERICS_LOGF_FAST)
        result = __logf(x);
    if constexpr (F == NUMERICS_LOGF)
        result = logf(x);
    if constexpr (F == NUMERICS_LG2_LN2) {
        asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
        result = __fmul_rn(result, 0x1.62e43p-1f); /* ln 2 rounded to f32 */
    }
    if constexpr (F == NUMERICS_TANH)
        asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    if constexpr (F == NUMERICS_TANHF)
        result = tanhf(x);
    if constexpr (F == NUMERICS_RCP)
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    if constexpr (F == NUMERICS_DIVIDE_FAST)
        result = __fdividef(x, y);
    if constexpr (F == NUMERICS_DIVIDE_FULL)
        asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
    if constexpr (F == NUMERICS_TIMES_RCP) {
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(y));
        result = __fmul_rn(x, result);
    }
    if constexpr (F == NUMERICS_EX2_F16)
        result = f16_float(HALVES_ASM("ex2.approx.f16x2", code));
    if constexpr (F == NUMERICS_H2EXP2)
        result = __high2float(h2exp2(__half2half2(__ushort_as_half((unsigned short)code))));
    if constexpr (F == NUMERICS_H2EXP)
        result = __high2float(h2exp(__half2half2(__ushort_as_half((unsigned short)code))));
    if constexpr (F == NUMERICS_TANH_F16)
        result = f16_float(HALVES_ASM("tanh.approx.f16x2", code));
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if constexpr (F == NUMERICS_EX2_BF16)
        result = bf16_float(HALVES_ASM("ex2.approx.ftz.bf16x2", code));
    if constexpr (F == NUMERICS_TANH_BF16)
        result = bf16_float(HALVES_ASM("tanh.approx.bf16x2", code));
#endif
    return result;
}

template <int F> __global__ void scan(uint32_t first, uint64_t n, uint32_t step, numerics_worst *worst)
{
    numerics_worst mine = {0, 0, 0, ~0ull};
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        const uint32_t index = first + (uint32_t)(i * step);
        float x = __uint_as_float(index), y = 1;
        if (numerics_type(F) == DTYPE_F64)
            numerics_pair(index, &x, &y);
        if (numerics_type(F) == DTYPE_F16)
            x = f16_float(index);
        if (numerics_type(F) == DTYPE_BF16)
            x = bf16_float(index);
        numerics_weigh(F, x, y, evaluate<F>(x, y, index), index, &mine);
    }
    atomicMax(&worst->error, mine.error);
    atomicMax(&worst->ratio, mine.ratio);
    atomicAdd(&worst->violations, mine.violations);
    atomicMin(&worst->first, mine.first);
}

int numerics_cuda_function(struct numerics_device *d, int f, uint32_t first, uint32_t last, uint32_t step,
                           struct numerics_worst *w, const char **why)
{
    (void)d;
    const uint64_t n = (uint64_t)(last - first) / step + 1;
    const unsigned blocks = n < 1u << 20 ? (unsigned)((n + 255) / 256) : 4096;
    numerics_worst *worst = nullptr;
    if (cudaMalloc(&worst, sizeof *worst) == cudaSuccess)
        cudaMemcpy(worst, w, sizeof *w, cudaMemcpyHostToDevice);
    if (numerics_cuda_status(why) == 1)
        switch (f) {
#define NUMERICS_FUNCTION(id, name, type, first_sm, formula)                                                           \
    case id:                                                                                                           \
        scan<id><<<blocks, 256>>>(first, n, step, worst);                                                              \
        break;
#include "tests/gpu/numerics_functions.def"
#undef NUMERICS_FUNCTION
        default:
            break;
        }
    if (numerics_cuda_status(why) == 1)
        cudaMemcpy(w, worst, sizeof *w, cudaMemcpyDeviceToHost);
    cudaFree(worst);
    return numerics_cuda_status(why);
}

template <int C> __device__ uint32_t convert(uint32_t code)
{
    const float x = __uint_as_float(code);
    if constexpr (C == NUMERICS_F32_F16)
        return __half_as_ushort(__float2half_rn(x));
    if constexpr (C == NUMERICS_F32_BF16)
        return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    if constexpr (C == NUMERICS_F32_F16X2)
        return __half_as_ushort(__high2half(__floats2half2_rn(x, x)));
    if constexpr (C == NUMERICS_F32_BF16X2)
        return __bfloat16_as_ushort(__high2bfloat16(__floats2bfloat162_rn(x, x)));
    if constexpr (C == NUMERICS_F32_E4M3)
        return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
    if constexpr (C == NUMERICS_F32_E5M2)
        return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
    if constexpr (C == NUMERICS_F32_E4M3_OPEN)
        return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3);
    if constexpr (C == NUMERICS_F32_E5M2_OPEN)
        return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2);
    const __half_raw half = {(unsigned short)code};
    const __nv_bfloat16_raw bf16 = {(unsigned short)code};
    if constexpr (C == NUMERICS_F16_E4M3)
        return __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E4M3);
    if constexpr (C == NUMERICS_F16_E5M2)
        return __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E5M2);
    if constexpr (C == NUMERICS_BF16_E4M3)
        return __nv_cvt_bfloat16raw_to_fp8(bf16, __NV_SATFINITE, __NV_E4M3);
    if constexpr (C == NUMERICS_F16_F32)
        return __float_as_uint(__half2float(half));
    if constexpr (C == NUMERICS_BF16_F32)
        return __float_as_uint(__bfloat162float(bf16));
    if constexpr (C == NUMERICS_E4M3_F16)
        return __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, __NV_E4M3).x;
    return __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, __NV_E5M2).x;
}

template <int C, typename RESULT> __global__ void convert_codes(uint32_t first, uint32_t step, uint32_t n, RESULT *out)
{
    const uint32_t threads = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
        out[i] = (RESULT)convert<C>(first + i * step);
}

/* The result type of a width. */
template <int BYTES> struct word;
template <> struct word<1> {
    typedef uint8_t type;
};
template <> struct word<2> {
    typedef uint16_t type;
};
template <> struct word<4> {
    typedef uint32_t type;
};

static constexpr int width(enum dtype t)
{
    return t == DTYPE_F32 ? 4 : t == DTYPE_F16 || t == DTYPE_BF16 ? 2 : 1;
}

int numerics_cuda_convert(struct numerics_device *d, int conversion, uint32_t first, uint32_t step, uint32_t n,
                          void *out, const char **why)
{
    (void)d;
    const unsigned blocks = n < 1u << 20 ? (n + 255) / 256 : 4096;
    void *codes = nullptr;
    size_t bytes = 0;
    cudaMalloc(&codes, (size_t)n * sizeof(uint32_t));
    if (numerics_cuda_status(why) == 1)
        switch (conversion) {
#define NUMERICS_CONVERSION(id, name, from, to, first_sm)                                                              \
    case id:                                                                                                           \
        bytes = width(to);                                                                                             \
        convert_codes<id><<<blocks, 256>>>(first, step, n, (word<width(to)>::type *)codes);                            \
        break;
#include "tests/gpu/numerics_conversions.def"
#undef NUMERICS_CONVERSION
        default:
            break;
        }
    if (numerics_cuda_status(why) == 1)
        cudaMemcpy(out, codes, n * bytes, cudaMemcpyDeviceToHost);
    cudaFree(codes);
    return numerics_cuda_status(why);
}
