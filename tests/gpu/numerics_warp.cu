/* mma.sync and WMMA: one warp per block and tile. */
#include "tests/gpu/numerics_cuda.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#define ARCH_AT_LEAST(sm) (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= (sm)*10)

/* One instruction's registers, as the PTX ISA lays them out ("Matrix Fragments for mma.m16n8k8", "... m16n8k16",
   "... m16n8k32"; in 32-bit words the last two are the same): lane = 4 group + member holds of A, rows group and
   group + 8, words member and member + 4; of B, column group, the same words; of C and D, rows group and group + 8,
   columns 2 member and 2 member + 1. */
struct fragments {
    uint32_t a[4], b[2];
    union {
        float wide[4];
        uint32_t half[2]; /* two f16 each */
    } d;
};

#define MMA_16(text)                                                                                                   \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"                        \
                 : "+f"(f.d.wide[0]), "+f"(f.d.wide[1]), "+f"(f.d.wide[2]), "+f"(f.d.wide[3])                          \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]))
#define MMA_8(text)                                                                                                    \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"                                 \
                 : "+f"(f.d.wide[0]), "+f"(f.d.wide[1]), "+f"(f.d.wide[2]), "+f"(f.d.wide[3])                          \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.b[0]))

template <int INSTRUCTION> __device__ void multiply(fragments &f)
{
    if constexpr (INSTRUCTION == VECTOR_MMA_F16)
        MMA_16("m16n8k16.row.col.f32.f16.f16.f32");
    if constexpr (INSTRUCTION == VECTOR_MMA_BF16)
        MMA_16("m16n8k16.row.col.f32.bf16.bf16.f32");
    if constexpr (INSTRUCTION == VECTOR_MMA_F16_K8)
        MMA_8("m16n8k8.row.col.f32.f16.f16.f32");
    if constexpr (INSTRUCTION == VECTOR_MMA_BF16_K8)
        MMA_8("m16n8k8.row.col.f32.bf16.bf16.f32");
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 890
    if constexpr (INSTRUCTION == VECTOR_MMA_E4M3)
        MMA_16("m16n8k32.row.col.f32.e4m3.e4m3.f32");
    if constexpr (INSTRUCTION == VECTOR_MMA_E5M2)
        MMA_16("m16n8k32.row.col.f32.e5m2.e5m2.f32");
#endif
    if constexpr (INSTRUCTION == VECTOR_MMA_F16_F16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};"
                     : "+r"(f.d.half[0]), "+r"(f.d.half[1])
                     : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));
    if constexpr (INSTRUCTION == VECTOR_MMA_F16_F16_K8)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3},{%4},{%0,%1};"
                     : "+r"(f.d.half[0]), "+r"(f.d.half[1])
                     : "r"(f.a[0]), "r"(f.a[1]), "r"(f.b[0]));
}

/* words: of 32 bits, in one instruction's row of A or B: 4 (k8) or 8. */
template <int INSTRUCTION, bool HALF> __global__ void mma(product_arguments p, int words)
{
    const int lane = threadIdx.x, group = lane / 4, member = lane % 4, stride = words * p.chain;
    const uint32_t *a = (const uint32_t *)p.a + (size_t)blockIdx.x * 16 * stride;
    const uint32_t *b = (const uint32_t *)p.b + (size_t)blockIdx.x * 8 * stride;
    const float *c = (const float *)p.c + (size_t)blockIdx.x * 128;
    const uint16_t *c_half = (const uint16_t *)p.c + (size_t)blockIdx.x * 128;
    uint32_t *out = p.out + (size_t)blockIdx.x * 128;
    fragments f = {};
    for (int i = 0; i < 4; i++) {
        const int at = (group + i / 2 * 8) * 8 + member * 2 + i % 2;
        if constexpr (HALF)
            f.d.half[i / 2] |= (uint32_t)c_half[at] << i % 2 * 16;
        else
            f.d.wide[i] = c[at];
    }
    for (int step = 0; step < p.chain; step++) {
        for (int i = 0; i < words / 2; i++) /* rows group, group + 8; then their second words */
            f.a[i] = a[(group + i % 2 * 8) * stride + step * words + member + i / 2 * 4];
        for (int i = 0; i < words / 4; i++)
            f.b[i] = b[group * stride + step * words + member + i * 4];
        multiply<INSTRUCTION>(f);
    }
    for (int i = 0; i < 4; i++) {
        const int at = (group + i / 2 * 8) * 8 + member * 2 + i % 2;
        if constexpr (HALF)
            out[at] = f.d.half[i / 2] >> i % 2 * 16 & 0xFFFF;
        else
            out[at] = __float_as_uint(f.d.wide[i]);
    }
}

template <typename OPERAND, typename SUM> __global__ void wmma_product(product_arguments p)
{
    using namespace nvcuda::wmma;
    __shared__ SUM sum_tile[256];
    const int k = 16 * p.chain;
    const OPERAND *a = (const OPERAND *)p.a + (size_t)blockIdx.x * 16 * k;
    const OPERAND *b = (const OPERAND *)p.b + (size_t)blockIdx.x * 16 * k;
    fragment<matrix_a, 16, 16, 16, OPERAND, row_major> left;
    fragment<matrix_b, 16, 16, 16, OPERAND, col_major> right;
    fragment<accumulator, 16, 16, 16, SUM> sum;
    load_matrix_sync(sum, (const SUM *)p.c + (size_t)blockIdx.x * 256, 16, mem_row_major);
    for (int first = 0; first < k; first += 16) {
        load_matrix_sync(left, a + first, k);
        load_matrix_sync(right, b + first, k);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(sum_tile, sum, 16, mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        if constexpr (sizeof(SUM) == 2)
            p.out[blockIdx.x * 256 + i] = __half_as_ushort(sum_tile[i]);
        else
            p.out[blockIdx.x * 256 + i] = __float_as_uint(sum_tile[i]);
    }
}

int numerics_launch_warp(uint32_t instruction, const struct product_arguments *p)
{
    switch (instruction) {
#define MMA(id, half, words)                                                                                           \
    case id:                                                                                                           \
        mma<id, half><<<p->tiles, 32>>>(*p, words);                                                                    \
        return 1;
        MMA(VECTOR_MMA_F16, false, 8)
        MMA(VECTOR_MMA_BF16, false, 8)
        MMA(VECTOR_MMA_E4M3, false, 8)
        MMA(VECTOR_MMA_E5M2, false, 8)
        MMA(VECTOR_MMA_F16_K8, false, 4)
        MMA(VECTOR_MMA_BF16_K8, false, 4)
        MMA(VECTOR_MMA_F16_F16, true, 8)
        MMA(VECTOR_MMA_F16_F16_K8, true, 4)
#undef MMA
    case VECTOR_WMMA_F16:
        wmma_product<half, float><<<p->tiles, 32>>>(*p);
        return 1;
    case VECTOR_WMMA_BF16:
        wmma_product<__nv_bfloat16, float><<<p->tiles, 32>>>(*p);
        return 1;
    case VECTOR_WMMA_F16_F16:
        wmma_product<half, half><<<p->tiles, 32>>>(*p);
        return 1;
    default:
        return 0;
    }
}
