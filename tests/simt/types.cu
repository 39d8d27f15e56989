// Number formats, vector types, arithmetic intrinsics and the host side of the CUDA runtime, each against known values.
#include "check.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <device_launch_parameters.h>
#include <math_constants.h>
#include <string.h>
#include <vector_functions.h>

template <class T> __device__ float f(T v)
{
    return (float)v;
}

__global__ void half_values(const __half2 *in)
{
    const int t = threadIdx.x;
    const __half2 a = in[t]; // (t, t + 0.5)
    const float2 twice = __half22float2(__hadd2(a, a));
    CHECK(twice.x, 2.0f * t);
    CHECK(twice.y, 2.0f * t + 1.0f);
    CHECK(f(__hmul(__low2half(a), __float2half(0.5f))), 0.5f * t);
    CHECK(f(__shfl_xor_sync(~0u, __high2half(a), 1)), (t ^ 1) + 0.5f);
    CHECK(__shfl_xor_sync(~0u, a, 2) == in[t ^ 2], true);
    __half s = a.x;
    s += a.y;
    s = -s / __half(2);
    CHECK(f(s), -(t + 0.25f));
    CHECK(a.x < a.y && a.y > a.x && a.x != a.y && a.x <= a.x && !(a.x == a.y), true);
    const __half nan = __ushort_as_half(0x7E01), inf = CUDART_INF_FP16;
    CHECK(__hisnan(nan) && !(nan == nan) && nan != nan && !(nan < nan) && !__hne(nan, nan) && __hequ(nan, inf), true);
    CHECK(__hisinf(__hneg(inf)), -1);
    CHECK(f(__hmax(nan, __half(3.0f))), 3.0f);
    CHECK(__hisnan(__hmax_nan(nan, __half(3.0f))), true);
    CHECK(__half_as_ushort(__hneg(nan)), 0xFE01);
    CHECK(__half_as_ushort(__float2half(65520.0f)), 0x7C00); // the tie above 65504 rounds to infinity
    CHECK(__half_as_ushort(__float2half_rz(65520.0f)), 0x7BFF);
    CHECK(__half_as_ushort(__float2half_rd(-0x1p-30f)), 0x8001);
    CHECK(__half_as_ushort(__float2half_ru(-0x1p-30f)), 0x8000);
    CHECK(__half_as_ushort(__float2half_ru(1.0f + 0x1p-20f)), 0x3C01);
    CHECK(f(__hfma(__half(3), __half(4), __half(5))), 17.0f);
    // The product is a tie of two halves; c decides, and neither float nor a rounding before the sum would see it.
    CHECK(f(__hfma(__half(1.03125f), __half(1.015625f), __half(0x1p-24f))), 1.046875f + 0x1p-10f);
    CHECK(f(__hfma(__half(1.03125f), __half(1.015625f), __half(-0x1p-24f))), 1.046875f);
    CHECK(f(__hfma(inf, __half(1), __half(1))), CUDART_INF_F);
    CHECK(f(__hfma_relu(__half(1), __half(-2), __half(1))), 0.0f);
    CHECK(f(__hadd_sat(__half(0.75f), __half(0.75f))), 1.0f);
    CHECK(f(hexp2(__half(3))) + f(hsqrt(__half(9))) + f(hlog2(__half(8))) + f(hrcp(__half(4))), 14.25f);
    CHECK(__half2int_rn(__half(2.5f)) * 100 + __half2int_rz(__half(-2.5f)) * 10 + __half2int_ru(__half(2.25f)), 183);
    CHECK((int)__half(-7.75f), -7);
    CHECK(f(__int2half_rn(2049)), 2048.0f);
    CHECK(f(h2exp(__floats2half2_rn(0.0f, 0.0f)).y), 1.0f);
    CHECK(__hbgt2(a, __floats2half2_rn(-1.0f, -1.0f)), true);
    CHECK(f(__lowhigh2highlow(a).x), t + 0.5f);
    CHECK(sizeof(__half2) + alignof(__half2) + sizeof(half) + alignof(half), (size_t)12);
}

__global__ void half_round_trip()
{
    for (unsigned i = threadIdx.x; i < 65536; i += blockDim.x) {
        const __half h = __ushort_as_half((unsigned short)i);
        if (__hisnan(h)) {
            CHECK(__hisnan(__float2half(__half2float(h))), true);
        } else {
            CHECK(__half_as_ushort(__float2half(__half2float(h))), (unsigned short)i);
            CHECK(__half_as_ushort(__double2half((double)f(h))), (unsigned short)i);
        }
        const __nv_bfloat16 b = __ushort_as_bfloat16((unsigned short)i);
        if (!__hisnan(b))
            CHECK(__bfloat16_as_ushort(__float2bfloat16(__bfloat162float(b))), (unsigned short)i);
    }
}

// Whatever a NaN's payload, what it becomes is the one NaN of a GPU.
__global__ void narrowed_nans()
{
    for (unsigned i = 1 + threadIdx.x; i < 1u << 23; i += 8191 * blockDim.x)
        for (unsigned sign = 0; sign < 2; sign++) {
            const unsigned bits = sign << 31 | 0x7F800000u | i;
            const float x = __uint_as_float(bits);
            const double wide = __longlong_as_double((long long)sign << 63 | 0x7FFll << 52 | (long long)i << 29 | i);
            const unsigned short widened = 0x7C00 | (i & 0x3FF);
            CHECK(__half_as_ushort(__float2half(x)), 0x7FFF);
            CHECK(__half_as_ushort(__float2half_ru(x)), 0x7FFF);
            CHECK(__half_as_ushort(__floats2half2_rn(0.0f, x).y), 0x7FFF);
            CHECK(__half_as_ushort(__double2half(wide)), 0x7FFF);
            if (i & 0x3FF)
                CHECK(__half_as_ushort(__hadd(__ushort_as_half(widened), __half(1.0f))), 0x7FFF);
            CHECK(__bfloat16_as_ushort(__float2bfloat16(x)), 0x7FFF);
            CHECK(__bfloat16_as_ushort(__double2bfloat16(wide)), 0x7FFF);
            CHECK(__nv_fp8_e4m3(x).__x, 0x7F);
            CHECK(__nv_fp8_e5m2(x).__x, 0x7F);
        }
}

__global__ void bfloat_values()
{
    CHECK(__bfloat162float(__float2bfloat16(3.14159f)), 3.140625f);
    CHECK(f(__hadd(__nv_bfloat16(1.5f), __nv_bfloat16(2.25f))), 3.75f);
    CHECK(f(__hfma(__nv_bfloat16(1.0625f), __nv_bfloat16(1.0625f), __nv_bfloat16(0x1p-70f))), 1.1328125f);
    CHECK(f(__hfma(__nv_bfloat16(1.0625f), __nv_bfloat16(1.0625f), __nv_bfloat16(-0x1p-70f))), 1.125f);
    CHECK(f(__hfma(__nv_bfloat16(-1.0625f), __nv_bfloat16(1.0625f), __nv_bfloat16(-0x1p-70f))), -1.1328125f);
    const __nv_bfloat162 p = __floats2bfloat162_rn(1.0f, 2.0f) * __bfloat162bfloat162(__nv_bfloat16(3.0f));
    CHECK(__bfloat1622float2(p).x * 10 + __high2float(p), 36.0f);
    CHECK(f(__float22bfloat162_rn(make_float2(5, 6)).y), 6.0f);
    CHECK(f(CUDART_INF_BF16), CUDART_INF_F);
    CHECK(f(__halves2bfloat162(p.y, p.x).x), 6.0f);
}

__global__ void fp8_values()
{
    CHECK(float(__nv_fp8_e4m3(1.3f)), 1.25f);
    CHECK(float(__nv_fp8_e4m3(1000.0f)), 448.0f);
    CHECK(float(__nv_fp8_e5m2(-1e6f)), -57344.0f);
    CHECK(__nv_cvt_float_to_fp8(1000.0f, __NV_NOSAT, __NV_E4M3), 0x7F);
    CHECK(__nv_cvt_float_to_fp8(1e6f, __NV_NOSAT, __NV_E5M2), 0x7C);
    CHECK(__half2float(__half(__nv_cvt_fp8_to_halfraw(0x38, __NV_E4M3))), 1.0f);
    const __nv_fp8x2_storage_t pair = __nv_cvt_float2_to_fp8x2(make_float2(1.0f, 2.0f), __NV_SATFINITE, __NV_E4M3);
    CHECK(pair, 0x4038);
    CHECK(__half2float(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3)).y), 2.0f);
    const float4 four = float4(__nv_fp8x4_e4m3(make_float4(1, 2, -4, 0.5f)));
    CHECK(four.x * 1000 + four.y * 100 + four.z * 10 + four.w, 1160.5f);
    CHECK(float2(__nv_fp8x2_e5m2(make_float2(3, 5))).x, 3.0f);
    CHECK(float(__nv_fp8_e4m3(__float2half(0.3f))), 0.3125f);
    for (int i = 0; i < 256; i++) {
        __nv_fp8_e4m3 v;
        v.__x = (unsigned char)i;
        if ((i & 127) != 127)
            CHECK(__nv_fp8_e4m3(float(v)).__x, (unsigned char)i);
    }
}

__global__ void vectors(const float4 *in, float4 *out)
{
    const int t = threadIdx.x;
    const float4 v = __ldg(&in[t]);
    const int4 bits = *reinterpret_cast<const int4 *>(&in[t]);
    CHECK(__int_as_float(bits.z), v.z);
    const uint4 loaded = *reinterpret_cast<const uint4 *>(&in[t]);
    const __half2 *halves = reinterpret_cast<const __half2 *>(&loaded); // eight halves in one load
    CHECK(__half2float(halves[3].y), 1.875f);                           // upper half of 1.0f
    __stcs(&out[t], make_float4(v.w, v.z, v.y, v.x));
    CHECK(alignof(float4) + alignof(float3) + alignof(int2) + alignof(uchar4) + alignof(double2),
          (size_t)(16 + 4 + 8 + 4 + 16));
    CHECK(sizeof(float3) + sizeof(short4) + sizeof(longlong2), (size_t)(12 + 8 + 16));
    const uint3 index = threadIdx;
    const dim3 size = blockDim;
    CHECK(index.x + size.x * gridDim.y, threadIdx.x + blockDim.x);
}

__global__ void intrinsics()
{
    CHECK(__expf(1.0f), 2.7182817f);
    CHECK(exp2f(3.0f) + rsqrtf(4.0f) + __fdividef(6.0f, 4.0f) + __frcp_rn(8.0f), 10.125f);
    CHECK(__logf(1.0f) + __log2f(8.0f) + __powf(2.0f, 5.0f) + __exp10f(2.0f) + __sinf(0.0f) + __cosf(0.0f), 136.0f);
    CHECK(__fmaf_rn(1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -1.0f - 0x1p-11f), 0x1p-24f);
    CHECK(__fadd_rn(1.0f, 2.0f) * __fmul_rn(2.0f, 3.0f) - __fsub_rn(1.0f, 4.0f), 21.0f);
    CHECK(__saturatef(-1.0f) + __saturatef(CUDART_NAN_F) + __saturatef(5.0f), 1.0f);
    CHECK(__float_as_uint(1.0f), 0x3F800000u);
    CHECK(__float_as_int(-0.0f), (int)0x80000000);
    CHECK(__popc(0xFF0Fu) + __clz(1) + __ffs(8) + __popcll(~0ull) + __clzll(1), 12 + 31 + 4 + 64 + 63);
    CHECK(__brev(1u), 0x80000000u);
    CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7410u), 0x77441100u);
    CHECK(__viaddmin_s32(-5, 3, 1), -2);
    CHECK(__viaddmax_s32(-5, 3, 1), 1);
    CHECK(__viaddmin_u32(-5u, 3u, 1u), 1u);
    CHECK(__viaddmax_u32(-5u, 3u, 1u), -2u);
    CHECK(__funnelshift_l(0x80000000u, 1u, 1), 3u);
    CHECK(__mulhi(-1, 1), -1);
    CHECK(__umulhi(1u << 31, 4u), 2u);
    CHECK(__float2int_rn(2.5f) * 1000 + __float2int_rz(-2.5f) * 100 + __float2int_rd(-2.5f) * 10 + __float2int_ru(2.5f),
          2000 - 200 - 30 + 3);
    CHECK(__float2int_rn(1e20f), 2147483647);
    CHECK(__float2int_rn(-1e20f), (int)0x80000000);
    CHECK(__float2uint_rz(-3.0f), 0u);
    CHECK(__float2uint_rz(1e20f), 0xFFFFFFFFu);
    CHECK(__float2ll_rz(-1e30f), (long long)0x8000000000000000ull);
    CHECK(__float2int_rn(CUDART_NAN_F), 0);
    CHECK(min(3, 4) + (int)max(3u, 4u) + max(-1, 2) + (int)min(2ll, 5ll), 3 + 4 + 2 + 2);
    CHECK(max(1, 2u), 2u);
    CHECK(max(CUDART_NAN_F, 2.0f) + min(1.5, 2.0f), 3.5);
    CHECK(isnan(CUDART_NAN_F) && isinf(-INFINITY) && !isfinite(CUDART_INF_F), true);
    __shared__ int cell;
    cell = 3;
    CHECK(*(int *)__cvta_shared_to_generic(__cvta_generic_to_shared(&cell)), 3);
    CHECK(__CUDA_ARCH__, 900);
}

static const char *host_side()
{
    float *memory = nullptr, back[4] = {};
    const float values[4] = {1, 2, 3, 4};
    if (cudaMalloc(&memory, sizeof values) != cudaSuccess)
        return "cudaMalloc";
    cudaMemcpy(memory, values, sizeof values, cudaMemcpyHostToDevice);
    cudaMemset(memory, 0, sizeof(float));
    cudaMemcpyAsync(back, memory, sizeof back, cudaMemcpyDeviceToHost, nullptr);
    cudaFree(memory);
    if (back[0] != 0 || back[3] != 4)
        return "cudaMemcpy";
    cudaStream_t stream = nullptr;
    int shared = 0;
    cudaDeviceProp prop;
    if (cudaStreamSynchronize(stream) != cudaSuccess || cudaGetDeviceProperties(&prop, 0) != cudaSuccess)
        return "device";
    if (cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) != cudaSuccess || shared != 232448)
        return "cudaDeviceGetAttribute";
    if (cudaFuncSetAttribute(vectors, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) != cudaErrorInvalidValue)
        return "cudaFuncSetAttribute";
    if (strcmp(cudaGetErrorString(cudaErrorInvalidValue), "cudaErrorInvalidValue") != 0)
        return "cudaGetErrorString";
    return nullptr;
}

extern "C" int simt_case(const char *)
{
    __half2 halves[32];
    float4 in[32], out[32];
    for (int i = 0; i < 32; i++) {
        halves[i] = __floats2half2_rn((float)i, (float)i + 0.5f);
        in[i] = make_float4((float)i, 2, 3, 1);
    }
    if (const char *wrong = host_side()) {
        printf("host side: %s\n", wrong);
        return 1;
    }
    int rc = simt_launch_kernel("half_values", half_values, 1, 32, 0, halves);
    rc |= simt_launch_kernel("half_round_trip", half_round_trip, 1, 32, 0);
    rc |= simt_launch_kernel("narrowed_nans", narrowed_nans, 1, 32, 0);
    rc |= simt_launch_kernel("bfloat_values", bfloat_values, 1, 1, 0);
    rc |= simt_launch_kernel("fp8_values", fp8_values, 1, 1, 0);
    rc |= simt_launch_kernel("vectors", vectors, 1, 32, 0, in, out);
    rc |= simt_launch_kernel("intrinsics", intrinsics, 1, 1, 0);
    for (int i = 0; i < 32; i++)
        if (out[i].x != 1 || out[i].w != (float)i)
            failures++;
    return failures | (rc != 0);
}
