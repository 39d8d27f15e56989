// Inline PTX as kernels of the flash-attention 2 era have it in their headers: templates, macros, register arrays,
// references to other types, predicates.
#pragma once

#include <cuda_fp16.h>
#include <stdint.h>

#define LDMATRIX_X4(R0, R1, R2, R3, addr)                                                                              \
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n"                                  \
                 : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                                                              \
                 : "r"(addr))
#define CP_ASYNC_CG(dst, src, Bytes)                                                                                   \
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(Bytes))
#define CP_ASYNC_COMMIT_GROUP() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT_GROUP(N) asm volatile("cp.async.wait_group %0;\n" ::"n"(N))

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// The same, by PTX alone.
__device__ __forceinline__ uint32_t shared_address_ptx(const void *p)
{
    uint32_t address;
    asm("{ .reg .u64 smem_ptr; cvta.to.shared.u64 smem_ptr, %1; cvt.u32.u64 %0, smem_ptr; }\n"
        : "=r"(address)
        : "l"(p));
    return address;
}

template <int N> __device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N));
}

template <int SizeInBytes>
__device__ __forceinline__ void cp_async_zfill(void *smem_ptr, void const *global_ptr, bool guard)
{
    unsigned smem_int_ptr = shared_address(smem_ptr);
    int src_in_bytes = guard ? SizeInBytes : 0;
    asm volatile(
#if 1
        "cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(smem_int_ptr),
#endif
        "l"(global_ptr), "n"(SizeInBytes), "r"(src_in_bytes));
}

template <int SizeInBytes>
__device__ __forceinline__ void cp_async_if(void *smem_ptr, void const *global_ptr, bool guard)
{
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  setp.ne.b32 p, %0, 0;\n" // nothing is copied where it is not set
                 "  @p cp.async.cg.shared.global [%1], [%2], %3;\n"
                 "}\n" ::"r"((int)guard),
                 "r"(shared_address(smem_ptr)), "l"(global_ptr), "n"(SizeInBytes));
}

__device__ __forceinline__ void zero_unless(void *smem_ptr, bool guard)
{
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  setp.ne.b32 p, %0, 0;\n"
                 "  @!p st.shared.v4.u32 [%1], {%2, %3, %4, %5};\n"
                 "}\n" ::"r"((int)guard),
                 "r"(shared_address(smem_ptr)), "r"(0), "r"(0), "r"(0), "r"(0));
}

template <class T> struct Mma;
template <> struct Mma<__half> {
    __device__ static void fma(float (&d)[4], uint32_t const (&a)[4], uint32_t const (&b)[2], float const (&c)[4])
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,  %1,  %2,  %3},"
                     "{%4,  %5,  %6,  %7},"
                     "{%8,  %9},"
                     "{%10, %11, %12, %13};\n"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
                       "f"(c[2]), "f"(c[3]));
    }
};

__device__ __forceinline__ __half2 pack_half2(float x, float y)
{
    __half2 out;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(reinterpret_cast<uint32_t &>(out)) : "f"(y), "f"(x));
    return out;
}

__device__ __forceinline__ float exp2_ftz(float x)
{
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
